/* Which hosts listen at one address, so that their ports must differ, and can the others reach
 * it? Addresses are compared as text, IPv6 ones by value; all of loopback is one machine. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/mem.h"
#include "plan/deploy_int.h"

/* An IPv6 address without its brackets; false: it is something else. */
static bool ipv6(const char *address, char out[INET6_ADDRSTRLEN])
{
	struct in6_addr in;
	size_t len = strlen(address);

	if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
		address++;
		len -= 2;
	}
	if (len >= INET6_ADDRSTRLEN)
		return false;
	memcpy(out, address, len);
	out[len] = '\0';
	return inet_pton(AF_INET6, out, &in) == 1 &&
	       inet_ntop(AF_INET6, &in, out, INET6_ADDRSTRLEN) != NULL;
}

bool hps_address_loopback(const char *address)
{
	struct in_addr in;
	char six[INET6_ADDRSTRLEN];

	if (inet_pton(AF_INET, address, &in) == 1)
		return ntohl(in.s_addr) >> 24 == 127;
	return !strcasecmp(address, "localhost") || (ipv6(address, six) && !strcmp(six, "::1"));
}

enum hps_status hps_address_endpoint(const char *address, uint32_t port, struct hps_buf *b,
				     struct hps_err *err)
{
	char six[INET6_ADDRSTRLEN];

	if (ipv6(address, six))
		return hps_buf_printf(b, err, "tcp://[%s]:%u", six, port);
	return hps_buf_printf(b, err, "tcp://%s:%u", address, port);
}

struct entry {
	const char *address;
	bool loopback;
	uint32_t host;
	char six[INET6_ADDRSTRLEN];
};

static int by_address(const struct entry *a, const struct entry *b)
{
	if (a->loopback || b->loopback)
		return b->loopback - a->loopback;
	return strcasecmp(*a->six ? a->six : a->address, *b->six ? b->six : b->address);
}

static int compare(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	int c = by_address(a, b);

	return c ? c : (a->host > b->host) - (a->host < b->host);
}

enum hps_status hps_address_groups(const struct hps_cluster *cl, uint32_t *group,
				   struct hps_err *err)
{
	struct entry *e = hps_calloc(cl->n_hosts, sizeof(*e), err);

	if (!e)
		return HPS_MEMORY;
	for (uint32_t h = 0; h < cl->n_hosts; h++) {
		e[h] = (struct entry){ .address = cl->host[h].address,
				       .loopback = hps_address_loopback(cl->host[h].address),
				       .host = h };
		if (!ipv6(e[h].address, e[h].six))
			*e[h].six = '\0';
	}
	qsort(e, cl->n_hosts, sizeof(*e), compare);
	for (uint32_t i = 0; i < cl->n_hosts; i++)
		group[e[i].host] =
			i && !by_address(&e[i - 1], &e[i]) ? group[e[i - 1].host] : e[i].host;
	free(e);
	return HPS_OK;
}
