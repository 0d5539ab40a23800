/* What does an endpoint mean: the text of a deployment as a path or an address.
 * Names are resolved here, not by libzmq, which retries an unknown one in silence.
 */
#include "net_int.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include "base/opt.h"

static enum hps_status parse_ipc(const char *text, struct hps_endpoint *e, struct hps_err *err)
{
	const char *path = text + 6;
	size_t len = strlen(path);

	/* libzmq gives both a meaning of its own: abstract names and wildcards */
	if (len == 0 || path[0] == '@' || path[0] == '*')
		return hps_err_set(err, HPS_NET, "expected ipc://PATH");
	if (len >= sizeof(e->path)) {
		hps_err_set(err, HPS_NET, "path of %zu bytes is too long for a socket, at most %zu",
			    len, sizeof(e->path) - 1);
		hps_err_hint(err, "use a shorter directory, or a tcp endpoint");
		return HPS_NET;
	}
	e->ipc = true;
	memcpy(e->path, path, len + 1);
	return HPS_OK;
}

static enum hps_status parse_tcp(const char *text, struct hps_endpoint *e, struct hps_err *err)
{
	const char *host = text + 6, *colon = strrchr(host, ':');
	int64_t port;
	size_t len;

	if (!colon || hps_parse_int(colon + 1, 0, 65535, &port, NULL) != HPS_OK)
		return hps_err_set(err, HPS_NET, "expected tcp://HOST:PORT");
	len = (size_t)(colon - host);
	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	} else if (memchr(host, ':', len)) {
		hps_err_set(err, HPS_NET, "expected tcp://HOST:PORT");
		hps_err_hint(err, "an IPv6 address stands in brackets: tcp://[::1]:5555");
		return HPS_NET;
	}
	if (len == 1 && host[0] == '*') {
		hps_err_set(err, HPS_NET, "expected an address or a name, got \"*\"");
		hps_err_hint(err, "0.0.0.0 stands for every interface of a host");
		return HPS_NET;
	}
	if (len == 0 || len >= sizeof(e->host))
		return hps_err_set(err, HPS_NET, "expected tcp://HOST:PORT");
	memcpy(e->host, host, len);
	e->host[len] = '\0';
	e->port = (uint16_t)port;
	return HPS_OK;
}

enum hps_status hps_endpoint_parse(const char *text, struct hps_endpoint *e, struct hps_err *err)
{
	enum hps_status st;

	memset(e, 0, sizeof(*e));
	if (strncmp(text, "ipc://", 6) == 0)
		st = parse_ipc(text, e, err);
	else if (strncmp(text, "tcp://", 6) == 0)
		st = parse_tcp(text, e, err);
	else
		st = hps_err_set(err, HPS_NET, "expected ipc://PATH or tcp://HOST:PORT");
	if (st != HPS_OK)
		hps_err_at(err, "%s", text);
	return st;
}

enum hps_status hps_endpoint_resolve(const struct hps_endpoint *e, struct sockaddr_storage *sa,
				     socklen_t *len, struct hps_err *err)
{
	struct addrinfo want = { .ai_socktype = SOCK_STREAM }, *all = NULL, *a, *use = NULL;
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", e->port);
	rc = getaddrinfo(e->host, port, &want, &all);
	if (rc != 0) {
		hps_err_set(err, HPS_NET, "host \"%s\" is not known here: %s", e->host,
			    gai_strerror(rc));
		hps_err_hint(err, "give the host an \"address\" in the cluster file");
		return HPS_NET;
	}
	for (a = all; a; a = a->ai_next) {
		if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
			continue;
		if (!use || (use->ai_family == AF_INET6 && a->ai_family == AF_INET))
			use = a;
	}
	if (!use || use->ai_addrlen > sizeof(*sa)) {
		freeaddrinfo(all);
		return hps_err_set(err, HPS_NET, "host \"%s\" has no internet address", e->host);
	}
	memset(sa, 0, sizeof(*sa));
	memcpy(sa, use->ai_addr, use->ai_addrlen);
	*len = use->ai_addrlen;
	freeaddrinfo(all);
	return HPS_OK;
}

void hps_endpoint_print(const struct sockaddr_storage *sa, char out[HPS_ENDPOINT_MAX])
{
	char a[INET6_ADDRSTRLEN] = "";

	if (sa->ss_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;

		inet_ntop(AF_INET6, &v6->sin6_addr, a, sizeof(a));
		snprintf(out, HPS_ENDPOINT_MAX, "tcp://[%s]:%u", a, ntohs(v6->sin6_port));
	} else {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;

		inet_ntop(AF_INET, &v4->sin_addr, a, sizeof(a));
		snprintf(out, HPS_ENDPOINT_MAX, "tcp://%s:%u", a, ntohs(v4->sin_port));
	}
}
