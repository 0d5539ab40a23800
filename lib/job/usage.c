/* What does a deployment use, need and cost? Reads, checks and writes its usage. */
#include "job/usage.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "job/job_int.h"

/* An optional number >= 0. */
static enum hps_status number(const struct hps_at *at, const char *key, double *out,
			      struct hps_err *err)
{
	return hps_get_double(at, key, HPS_OPTIONAL, 0, HUGE_VAL, out, err);
}

/* It is an object with these members alone. */
static enum hps_status object(const struct hps_at *at, const char *const *members,
			      struct hps_err *err)
{
	enum hps_status rc = hps_at_object(at, err);

	return rc ? rc : hps_at_only(at, members, err);
}

static enum hps_status read_stages(const struct hps_at *root, struct hps_usage *u,
				   struct hps_err *err)
{
	static const char *const members[] = { "slack_s", "utilisation", NULL };
	enum hps_status rc;
	struct hps_at at;
	uint32_t n;

	rc = hps_get_array(root, "stages", HPS_OPTIONAL, 0, HPS_MAX_LAYERS, &at, &n, err);
	if (rc || !n)
		return rc;
	u->stage = hps_calloc(n, sizeof(*u->stage), err);
	if (!u->stage)
		return HPS_MEMORY;
	u->n_stages = n;
	for (uint32_t i = 0; !rc && i < n; i++) {
		struct hps_at item = hps_at_item(&at, i);

		rc = object(&item, members, err);
		if (!rc)
			rc = number(&item, "slack_s", &u->stage[i].slack_s, err);
		if (!rc)
			rc = number(&item, "utilisation", &u->stage[i].utilisation, err);
	}
	return rc;
}

static enum hps_status read_types(const struct hps_at *root, struct hps_usage *u,
				  struct hps_err *err)
{
	static const char *const members[] = { "name", "units", "utilisation", "price_per_hour",
					       NULL };
	enum hps_status rc;
	struct hps_at at;
	uint32_t n;

	rc = hps_get_array(root, "types", HPS_OPTIONAL, 0, HPS_MAX_TYPES, &at, &n, err);
	if (rc || !n)
		return rc;
	u->type = hps_calloc(n, sizeof(*u->type), err);
	if (!u->type)
		return HPS_MEMORY;
	u->n_types = n;
	for (uint32_t i = 0; !rc && i < n; i++) {
		struct hps_at item = hps_at_item(&at, i);
		struct hps_usage_type *t = &u->type[i];

		rc = object(&item, members, err);
		if (!rc)
			rc = hps_get_name(&item, "name", HPS_REQUIRED, &t->name, err);
		if (!rc)
			rc = hps_get_u32(&item, "units", HPS_OPTIONAL, 0, UINT32_MAX, &t->units,
					 err);
		if (!rc)
			rc = number(&item, "utilisation", &t->utilisation, err);
		if (!rc)
			rc = number(&item, "price_per_hour", &t->price_per_hour, err);
	}
	return rc;
}

static enum hps_status read_hosts(const struct hps_at *root, struct hps_usage *u,
				  struct hps_err *err)
{
	static const char *const members[] = { "name",	      "replicas",  "shards", "utilisation",
					       "needs_bytes", "has_bytes", NULL };
	enum hps_status rc;
	struct hps_at at;
	uint32_t n;

	rc = hps_get_array(root, "hosts", HPS_OPTIONAL, 0, HPS_MAX_HOSTS, &at, &n, err);
	if (rc || !n)
		return rc;
	u->host = hps_calloc(n, sizeof(*u->host), err);
	if (!u->host)
		return HPS_MEMORY;
	u->n_hosts = n;
	for (uint32_t i = 0; !rc && i < n; i++) {
		struct hps_at item = hps_at_item(&at, i);
		struct hps_usage_host *h = &u->host[i];

		rc = object(&item, members, err);
		if (!rc)
			rc = hps_get_name(&item, "name", HPS_REQUIRED, &h->name, err);
		if (!rc)
			rc = hps_get_u32(&item, "replicas", HPS_OPTIONAL, 0, UINT32_MAX,
					 &h->replicas, err);
		if (!rc)
			rc = hps_get_u32(&item, "shards", HPS_OPTIONAL, 0, UINT32_MAX, &h->shards,
					 err);
		if (!rc)
			rc = number(&item, "utilisation", &h->utilisation, err);
		if (!rc)
			rc = number(&item, "needs_bytes", &h->needs_bytes, err);
		if (!rc)
			rc = number(&item, "has_bytes", &h->has_bytes, err);
	}
	return rc;
}

static enum hps_status read_numbers(const struct hps_at *at, struct hps_usage *u,
				    struct hps_err *err)
{
	const struct {
		const char *key;
		double *to;
	} all[] = {
		{ "floor_samples_per_s", &u->floor_samples_per_s },
		{ "utilisation", &u->utilisation },
		{ "ps_utilisation", &u->ps_utilisation },
		{ "cost_per_sample", &u->cost_per_sample },
		{ "samples", &u->samples },
		{ "hours", &u->hours },
		{ "dollars", &u->dollars },
	};
	enum hps_status rc = HPS_OK;

	for (size_t i = 0; !rc && i < HPS_COUNT(all); i++)
		rc = number(at, all[i].key, all[i].to, err);
	return rc;
}

enum hps_status hps_usage_read(const struct hps_at *at, struct hps_usage *u, struct hps_err *err)
{
	static const char *const members[] = { "method",	  "floor_samples_per_s",
					       "utilisation",	  "ps_utilisation",
					       "cost_per_sample", "samples",
					       "hours",		  "dollars",
					       "stages",	  "types",
					       "hosts",		  NULL };
	enum hps_status rc;

	memset(u, 0, sizeof(*u));
	rc = object(at, members, err);
	if (!rc)
		rc = hps_get_text(at, "method", HPS_REQUIRED, HPS_WORD_LEN, &u->method, err);
	if (!rc)
		rc = read_numbers(at, u, err);
	if (!rc)
		rc = read_stages(at, u, err);
	if (!rc)
		rc = read_types(at, u, err);
	if (!rc)
		rc = read_hosts(at, u, err);
	if (rc)
		hps_usage_release(u);
	return rc;
}

void hps_usage_release(struct hps_usage *u)
{
	for (uint32_t i = 0; i < u->n_types; i++)
		free(u->type[i].name);
	for (uint32_t i = 0; i < u->n_hosts; i++)
		free(u->host[i].name);
	free(u->stage);
	free(u->type);
	free(u->host);
	free(u->method);
	memset(u, 0, sizeof(*u));
}

/* --- writing --- */

static struct hps_doc *write_stages(const struct hps_usage *u)
{
	struct hps_doc *a = hps_doc_array();
	int bad = !a;

	for (uint32_t i = 0; !bad && i < u->n_stages; i++) {
		const struct hps_usage_stage *s = &u->stage[i];
		struct hps_doc *o = hps_doc_object();

		bad = !o || hps_doc_put(o, "slack_s", hps_doc_double(s->slack_s)) ||
		      hps_doc_put(o, "utilisation", hps_doc_double(s->utilisation));
		bad = hps_doc_add(a, hps_doc_finish(o, bad));
	}
	return hps_doc_finish(a, bad);
}

static struct hps_doc *write_types(const struct hps_usage *u)
{
	struct hps_doc *a = hps_doc_array();
	int bad = !a;

	for (uint32_t i = 0; !bad && i < u->n_types; i++) {
		const struct hps_usage_type *t = &u->type[i];
		struct hps_doc *o = hps_doc_object();

		bad = !o || hps_doc_put(o, "name", hps_doc_string(t->name)) ||
		      hps_doc_put(o, "units", hps_doc_int(t->units)) ||
		      hps_doc_put(o, "utilisation", hps_doc_double(t->utilisation)) ||
		      hps_doc_put(o, "price_per_hour", hps_doc_double(t->price_per_hour));
		bad = hps_doc_add(a, hps_doc_finish(o, bad));
	}
	return hps_doc_finish(a, bad);
}

static struct hps_doc *write_hosts(const struct hps_usage *u)
{
	struct hps_doc *a = hps_doc_array();
	int bad = !a;

	for (uint32_t i = 0; !bad && i < u->n_hosts; i++) {
		const struct hps_usage_host *h = &u->host[i];
		struct hps_doc *o = hps_doc_object();

		bad = !o || hps_doc_put(o, "name", hps_doc_string(h->name)) ||
		      hps_doc_put(o, "replicas", hps_doc_int(h->replicas)) ||
		      hps_doc_put(o, "shards", hps_doc_int(h->shards)) ||
		      hps_doc_put(o, "utilisation", hps_doc_double(h->utilisation)) ||
		      hps_doc_put(o, "needs_bytes", hps_doc_double(h->needs_bytes)) ||
		      hps_doc_put(o, "has_bytes", hps_doc_double(h->has_bytes));
		bad = hps_doc_add(a, hps_doc_finish(o, bad));
	}
	return hps_doc_finish(a, bad);
}

struct hps_doc *hps_usage_write(const struct hps_usage *u)
{
	struct hps_doc *o = hps_doc_object();

	return hps_doc_finish(
		o, !o || hps_doc_put(o, "method", hps_doc_string(u->method)) ||
			   hps_doc_put(o, "floor_samples_per_s",
				       hps_doc_double(u->floor_samples_per_s)) ||
			   hps_doc_put(o, "utilisation", hps_doc_double(u->utilisation)) ||
			   hps_doc_put(o, "ps_utilisation", hps_doc_double(u->ps_utilisation)) ||
			   hps_doc_put(o, "cost_per_sample", hps_doc_double(u->cost_per_sample)) ||
			   hps_doc_put(o, "samples", hps_doc_double(u->samples)) ||
			   hps_doc_put(o, "hours", hps_doc_double(u->hours)) ||
			   hps_doc_put(o, "dollars", hps_doc_double(u->dollars)) ||
			   hps_doc_put(o, "stages", write_stages(u)) ||
			   hps_doc_put(o, "types", write_types(u)) ||
			   hps_doc_put(o, "hosts", write_hosts(u)));
}
