/* What is there to run on? Reads, checks and writes the cluster section: resource types,
 * declared or measured, hosts, network. */
#include "job/cluster.h"
#include <arpa/inet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "job/job_int.h"

static const char *const device_names[] = { "cpu", "cuda" };

#define MAX_PRICE 1e9
#define MAX_BYTES 1e18
#define MAX_SPEED 1e9

enum hps_status hps_get_link(const struct hps_at *up, const char *key, struct hps_link *link,
			     const char *flag, bool *flag_value, struct hps_err *err)
{
	const char *members[] = { "bandwidth", "latency", "description", "comment", flag, NULL };
	struct hps_at at = hps_at_member(up, key);
	enum hps_status rc;

	if (hps_at_absent(&at))
		return HPS_OK;
	rc = hps_at_object(&at, err);
	if (!rc)
		rc = hps_at_only(&at, members, err);
	if (!rc)
		rc = hps_get_double(&at, "bandwidth", HPS_OPTIONAL, 0, MAX_BYTES, &link->bandwidth,
				    err);
	if (!rc)
		rc = hps_get_double(&at, "latency", HPS_OPTIONAL, 0, 1e6, &link->latency, err);
	if (!rc && flag)
		rc = hps_get_bool(&at, flag, HPS_OPTIONAL, flag_value, err);
	return rc;
}

struct hps_doc *hps_link_write(const struct hps_link *link)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(d,
			      !d || hps_doc_put(d, "bandwidth", hps_doc_double(link->bandwidth)) ||
				      hps_doc_put(d, "latency", hps_doc_double(link->latency)));
}

/* --- types --- */

/* "op_speed": {"dense": 20}: the speed of op kinds that differ from "speed". */
static enum hps_status read_op_speed(const struct hps_at *up, struct hps_type *t,
				     struct hps_err *err)
{
	struct hps_at at = hps_at_member(up, "op_speed");
	const char *members[HPS_COUNT(hps_op_names) + 3];
	enum hps_status rc;
	size_t n = HPS_COUNT(hps_op_names);

	if (hps_at_absent(&at))
		return HPS_OK;
	memcpy(members, hps_op_names, sizeof(hps_op_names));
	members[n] = "description";
	members[n + 1] = "comment";
	members[n + 2] = NULL;
	rc = hps_at_object(&at, err);
	if (!rc)
		rc = hps_at_only(&at, members, err);
	for (size_t i = 0; !rc && i < n; i++)
		rc = hps_get_positive(&at, hps_op_names[i], HPS_OPTIONAL, MAX_SPEED,
				      &t->op_speed[i], err);
	return rc;
}

static enum hps_status read_like(const struct hps_at *at, struct hps_type *t, struct hps_err *err)
{
	static const char *const needs_like[] = { "speed", "op_speed" };
	enum hps_status rc;

	rc = hps_get_name(at, "like", HPS_OPTIONAL, &t->like, err);
	if (rc)
		return rc;
	if (!t->like) {
		for (size_t i = 0; i < HPS_COUNT(needs_like); i++) {
			struct hps_at m = hps_at_member(at, needs_like[i]);

			if (!hps_at_absent(&m))
				return hps_at_error(&m, err,
						    "a speed needs \"like\", the type that it "
						    "is relative to");
		}
		return HPS_OK;
	}
	t->speed = 1;
	rc = hps_get_positive(at, "speed", HPS_OPTIONAL, MAX_SPEED, &t->speed, err);
	return rc ? rc : read_op_speed(at, t, err);
}

static enum hps_status read_type(const struct hps_at *at, struct hps_type *t, struct hps_err *err)
{
	static const char *const members[] = { "name",	   "device",	  "price",   "limit",
					       "memory",   "link",	  "like",    "speed",
					       "op_speed", "description", "comment", NULL };
	enum hps_status rc;
	int device = HPS_DEVICE_CPU;

	t->limit = HPS_NO_LIMIT;
	rc = hps_at_object(at, err);
	if (!rc)
		rc = hps_at_only(at, members, err);
	if (!rc)
		rc = hps_get_name(at, "name", HPS_REQUIRED, &t->name, err);
	if (!rc)
		rc = hps_get_choice(at, "device", HPS_OPTIONAL, device_names,
				    HPS_COUNT(device_names), &device, err);
	if (!rc)
		rc = hps_get_double(at, "price", HPS_REQUIRED, 0, MAX_PRICE, &t->price, err);
	if (!rc)
		rc = hps_get_u32(at, "limit", HPS_OPTIONAL, 1, HPS_NO_LIMIT - 1, &t->limit, err);
	if (!rc)
		rc = hps_get_double(at, "memory", HPS_OPTIONAL, 0, MAX_BYTES, &t->memory, err);
	if (!rc)
		rc = hps_get_link(at, "link", &t->link, NULL, NULL, err);
	if (!rc)
		rc = read_like(at, t, err);
	t->device = (enum hps_device)device;
	return rc;
}

static void release_type(struct hps_type *t)
{
	free(t->name);
	free(t->like);
}

/* Each `like` names a measured type: no chains, so no cycles. */
static enum hps_status check_like(const struct hps_at *types, const struct hps_cluster *c,
				  struct hps_err *err)
{
	for (uint32_t i = 0; i < c->n_types; i++) {
		struct hps_at item = hps_at_item(types, i);
		struct hps_at at = hps_at_member(&item, "like");
		const char *like = c->type[i].like;
		int t;

		if (!like)
			continue;
		t = hps_cluster_type(c, like);
		if (t < 0)
			return hps_at_error(&at, err, "no type is named \"%s\"", like);
		if (c->type[t].like)
			return hps_at_error(&at, err,
					    "\"%s\" is itself declared by another type; name a "
					    "measured one",
					    like);
	}
	return HPS_OK;
}

static enum hps_status read_types(const struct hps_at *root, struct hps_cluster *c,
				  struct hps_err *err)
{
	enum hps_status rc;
	struct hps_at at;
	uint32_t n;

	rc = hps_get_array(root, "types", HPS_REQUIRED, 1, HPS_MAX_TYPES, &at, &n, err);
	if (rc)
		return rc;
	c->type = hps_calloc(n, sizeof(*c->type), err);
	if (!c->type)
		return HPS_MEMORY;
	for (; c->n_types < n; c->n_types++) {
		struct hps_type *t = &c->type[c->n_types];
		struct hps_at item = hps_at_item(&at, c->n_types);
		struct hps_at name = hps_at_member(&item, "name");

		rc = read_type(&item, t, err);
		if (!rc && hps_cluster_type(c, t->name) >= 0)
			rc = hps_at_error(&name, err, "\"%s\" is the name of types[%d] already",
					  t->name, hps_cluster_type(c, t->name));
		if (rc) {
			release_type(t);
			return rc;
		}
	}
	return check_like(&at, c, err);
}

/* --- hosts --- */

static enum hps_status read_units(const struct hps_at *up, const struct hps_cluster *c,
				  struct hps_host *h, struct hps_err *err)
{
	struct hps_at at = hps_at_member(up, "units");
	enum hps_status rc = HPS_OK;

	h->units = hps_calloc(c->n_types, sizeof(*h->units), err);
	if (!h->units)
		return HPS_MEMORY;
	rc = hps_at_object(&at, err);
	for (size_t i = 0; !rc && i < hps_at_count(&at); i++) {
		const char *name = hps_at_name(&at, i);
		struct hps_at member = hps_at_member(&at, name);
		int t = hps_cluster_type(c, name);

		if (t < 0 && (!strcmp(name, "description") || !strcmp(name, "comment")))
			continue;
		if (t < 0)
			return hps_at_error(&member, err, "no type is named \"%s\"", name);
		rc = hps_get_u32(&at, name, HPS_REQUIRED, 0, HPS_MAX_UNITS, &h->units[t], err);
	}
	return rc;
}

static uint32_t cpu_units(const struct hps_cluster *c, const struct hps_host *h)
{
	uint64_t sum = 0;

	for (uint32_t t = 0; t < c->n_types; t++)
		if (c->type[t].device == HPS_DEVICE_CPU)
			sum += h->units[t];
	return sum < HPS_MAX_UNITS ? (uint32_t)sum : HPS_MAX_UNITS;
}

/* A name or an IPv4 address, or an IPv6 one, in brackets or not; a port is no part of it. */
static bool address_ok(const char *s)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr in;
	size_t len = strlen(s);

	if (strpbrk(s, " \t\r\n/\"'\\*"))
		return false;
	if (!strpbrk(s, ":[]"))
		return true;
	if (len >= 2 && s[0] == '[' && s[len - 1] == ']') {
		s++;
		len -= 2;
	}
	if (len >= sizeof(text))
		return false;
	memcpy(text, s, len);
	text[len] = '\0';
	return inet_pton(AF_INET6, text, &in) == 1;
}

static enum hps_status read_host(const struct hps_at *at, const struct hps_cluster *c,
				 struct hps_host *h, struct hps_err *err)
{
	static const char *const members[] = { "name",	      "address", "memory",
					       "units",	      "cores",	 "ps_cores",
					       "description", "comment", NULL };
	enum hps_status rc;

	rc = hps_at_object(at, err);
	if (!rc)
		rc = hps_at_only(at, members, err);
	if (!rc)
		rc = hps_get_name(at, "name", HPS_REQUIRED, &h->name, err);
	if (!rc)
		rc = hps_get_text(at, "address", HPS_OPTIONAL, HPS_WORD_LEN, &h->address, err);
	if (!rc && !h->address) {
		h->address = hps_strdup("127.0.0.1", err);
		rc = h->address ? HPS_OK : HPS_MEMORY;
	}
	if (!rc && !address_ok(h->address)) {
		struct hps_at address = hps_at_member(at, "address");

		rc = hps_at_expected(&address, err, "a host name or an IP address");
	}
	if (!rc)
		rc = hps_get_double(at, "memory", HPS_OPTIONAL, 0, MAX_BYTES, &h->memory, err);
	if (!rc)
		rc = read_units(at, c, h, err);
	if (!rc)
		rc = hps_get_u32(at, "cores", HPS_OPTIONAL, 0, HPS_MAX_UNITS, &h->cores, err);
	if (!rc)
		h->ps_cores = h->cores ? h->cores : cpu_units(c, h);
	if (!rc)
		rc = hps_get_u32(at, "ps_cores", HPS_OPTIONAL, 0, HPS_MAX_UNITS, &h->ps_cores, err);
	return rc;
}

static void release_host(struct hps_host *h)
{
	free(h->name);
	free(h->address);
	free(h->units);
}

static enum hps_status read_hosts(const struct hps_at *root, struct hps_cluster *c,
				  struct hps_err *err)
{
	struct hps_index names = { 0 };
	enum hps_status rc;
	struct hps_at at;
	uint32_t n;

	rc = hps_get_array(root, "hosts", HPS_OPTIONAL, 0, HPS_MAX_HOSTS, &at, &n, err);
	if (rc)
		return rc;
	c->host = hps_calloc(n, sizeof(*c->host), err);
	if (!c->host)
		return HPS_MEMORY;
	rc = hps_index_init(&names, n, err);
	while (!rc && c->n_hosts < n) {
		struct hps_host *h = &c->host[c->n_hosts];
		struct hps_at item = hps_at_item(&at, c->n_hosts);
		struct hps_at name = hps_at_member(&item, "name");
		uint32_t first = c->n_hosts;

		rc = read_host(&item, c, h, err);
		if (!rc)
			first = hps_index_add(&names, h->name, c->n_hosts);
		if (!rc && first != c->n_hosts)
			rc = hps_at_error(&name, err, "\"%s\" is the name of hosts[%u] already",
					  h->name, first);
		if (rc)
			release_host(h);
		else
			c->n_hosts++;
	}
	hps_index_release(&names);
	return rc;
}

/* --- the section --- */

static double default_ps_price(const struct hps_cluster *c)
{
	for (uint32_t t = 0; t < c->n_types; t++)
		if (c->type[t].device == HPS_DEVICE_CPU)
			return c->type[t].price;
	return 0;
}

enum hps_status hps_cluster_read(const struct hps_at *at, struct hps_cluster *c,
				 struct hps_err *err)
{
	static const char *const members[] = { "types",	      "hosts",	 "network", "ps_price",
					       "description", "comment", NULL };
	enum hps_status rc;

	memset(c, 0, sizeof(*c));
	rc = hps_at_object(at, err);
	if (!rc)
		rc = hps_at_only(at, members, err);
	if (!rc)
		rc = read_types(at, c, err);
	if (!rc)
		rc = read_hosts(at, c, err);
	if (!rc)
		rc = hps_get_link(at, "network", &c->network, NULL, NULL, err);
	c->ps_price = default_ps_price(c);
	if (!rc)
		rc = hps_get_double(at, "ps_price", HPS_OPTIONAL, 0, MAX_PRICE, &c->ps_price, err);
	if (rc)
		hps_cluster_release(c);
	return rc;
}

static struct hps_doc *write_op_speed(const struct hps_type *t)
{
	struct hps_doc *d = hps_doc_object();
	int failed = !d;

	for (size_t i = 0; !failed && i < HPS_COUNT(hps_op_names); i++)
		if (t->op_speed[i] > 0)
			failed = hps_doc_put(d, hps_op_names[i], hps_doc_double(t->op_speed[i]));
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_type(const struct hps_type *t)
{
	struct hps_doc *d = hps_doc_object();
	int failed;

	failed = !d || hps_doc_put(d, "name", hps_doc_string(t->name)) ||
		 hps_doc_put(d, "device", hps_doc_string(device_names[t->device])) ||
		 hps_doc_put(d, "price", hps_doc_double(t->price));
	if (!failed && t->limit != HPS_NO_LIMIT)
		failed = hps_doc_put(d, "limit", hps_doc_int(t->limit));
	if (!failed)
		failed = hps_doc_put(d, "memory", hps_doc_double(t->memory)) ||
			 hps_doc_put(d, "link", hps_link_write(&t->link));
	if (!failed && t->like)
		failed = hps_doc_put(d, "like", hps_doc_string(t->like)) ||
			 hps_doc_put(d, "speed", hps_doc_double(t->speed)) ||
			 hps_doc_put(d, "op_speed", write_op_speed(t));
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_units(const struct hps_cluster *c, const struct hps_host *h)
{
	struct hps_doc *d = hps_doc_object();
	int failed = !d;

	for (uint32_t t = 0; !failed && t < c->n_types; t++)
		failed = hps_doc_put(d, c->type[t].name, hps_doc_int(h->units[t]));
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_host(const struct hps_cluster *c, const struct hps_host *h)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(d, !d || hps_doc_put(d, "name", hps_doc_string(h->name)) ||
					 hps_doc_put(d, "address", hps_doc_string(h->address)) ||
					 hps_doc_put(d, "memory", hps_doc_double(h->memory)) ||
					 hps_doc_put(d, "units", write_units(c, h)) ||
					 hps_doc_put(d, "cores", hps_doc_int(h->cores)) ||
					 hps_doc_put(d, "ps_cores", hps_doc_int(h->ps_cores)));
}

struct hps_doc *hps_cluster_write(const struct hps_cluster *c)
{
	struct hps_doc *types = hps_doc_array();
	struct hps_doc *hosts = hps_doc_array();
	struct hps_doc *d = hps_doc_object();
	int failed = !types || !hosts || !d;

	for (uint32_t t = 0; !failed && t < c->n_types; t++)
		failed = hps_doc_add(types, write_type(&c->type[t]));
	for (uint32_t h = 0; !failed && h < c->n_hosts; h++)
		failed = hps_doc_add(hosts, write_host(c, &c->host[h]));
	if (failed) {
		hps_doc_free(types);
		hps_doc_free(hosts);
		return hps_doc_finish(d, failed);
	}
	failed = hps_doc_put(d, "types", types);
	if (hps_doc_put(d, "hosts", hosts) || failed)
		failed = 1;
	return hps_doc_finish(d, failed || hps_doc_put(d, "network", hps_link_write(&c->network)) ||
					 hps_doc_put(d, "ps_price", hps_doc_double(c->ps_price)));
}

void hps_cluster_release(struct hps_cluster *c)
{
	for (uint32_t i = 0; c->type && i < c->n_types; i++)
		release_type(&c->type[i]);
	for (uint32_t i = 0; c->host && i < c->n_hosts; i++)
		release_host(&c->host[i]);
	free(c->type);
	free(c->host);
	memset(c, 0, sizeof(*c));
}

enum hps_status hps_cluster_here(uint32_t cores, struct hps_cluster *c, struct hps_err *err)
{
	memset(c, 0, sizeof(*c));
	c->type = hps_calloc(1, sizeof(*c->type), err);
	c->host = hps_calloc(1, sizeof(*c->host), err);
	if (!c->type || !c->host)
		goto fail;
	c->n_types = 1;
	c->n_hosts = 1;
	c->type->name = hps_strdup("cpu", err);
	c->type->device = HPS_DEVICE_CPU;
	c->type->price = 0.04;
	c->type->limit = cores;
	c->host->name = hps_strdup("localhost", err);
	c->host->address = hps_strdup("127.0.0.1", err);
	c->host->units = hps_calloc(1, sizeof(*c->host->units), err);
	if (!c->type->name || !c->host->name || !c->host->address || !c->host->units)
		goto fail;
	c->host->units[0] = cores;
	c->host->cores = cores;
	c->host->ps_cores = cores;
	c->ps_price = c->type->price;
	return HPS_OK;
fail:
	hps_cluster_release(c);
	return HPS_MEMORY;
}

int hps_cluster_type(const struct hps_cluster *c, const char *name)
{
	for (uint32_t t = 0; t < c->n_types; t++)
		if (!strcmp(c->type[t].name, name))
			return (int)t;
	return -1;
}
