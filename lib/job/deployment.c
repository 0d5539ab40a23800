/* Which process runs what, and where does it listen? Reads, checks and writes the
 * deployment section, and numbers the nodes of a job. */
#include "job/deployment.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include "base/mem.h"
#include "base/opt.h"
#include "job/job_int.h"
#include "job/plan.h"

static const char *const dense_sync_names[] = { "ps", "ring" };

/* Endpoints are unique over the whole job, so one index goes along. */
struct reading {
	struct hps_index endpoints;
	uint32_t n;
};

static bool endpoint_ok(const char *s)
{
	const size_t path_max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
	const char *colon;
	int64_t port;

	if (!strncmp(s, "ipc://", 6))
		return s[6] && strlen(s + 6) <= path_max;
	if (strncmp(s, "tcp://", 6))
		return false;
	colon = strrchr(s + 6, ':');
	return colon && colon > s + 6 && strlen(s) <= HPS_WORD_LEN &&
	       !strpbrk(s + 6, " \t\r\n/\"'\\") &&
	       strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
	       !hps_parse_int(colon + 1, 1, 65535, &port, NULL);
}

/* "host" and "endpoint" of the object at `at`. */
static enum hps_status read_node(struct reading *r, const struct hps_at *at, char **host,
				 char **endpoint, struct hps_err *err)
{
	static const char *const members[] = { "host", "endpoint", "description", "comment", NULL };
	struct hps_at place = hps_at_member(at, "endpoint");
	enum hps_status rc;

	rc = hps_at_object(at, err);
	if (!rc)
		rc = hps_at_only(at, members, err);
	if (!rc)
		rc = hps_get_name(at, "host", HPS_REQUIRED, host, err);
	if (!rc)
		rc = hps_get_text(at, "endpoint", HPS_REQUIRED, HPS_WORD_LEN, endpoint, err);
	if (rc)
		return rc;
	if (!endpoint_ok(*endpoint))
		return hps_at_expected(&place, err,
				       "\"ipc://PATH\" (at most %zu bytes of path) or "
				       "\"tcp://ADDRESS:PORT\"",
				       sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	if (hps_index_add(&r->endpoints, *endpoint, r->n) != r->n)
		return hps_at_error(&place, err, "\"%s\" is used twice", *endpoint);
	r->n++;
	return HPS_OK;
}

static enum hps_status read_shards(struct reading *r, const struct hps_at *root,
				   struct hps_deployment *d, struct hps_err *err)
{
	struct hps_at coordinator = hps_at_member(root, "coordinator");
	struct hps_at coordinator_host = hps_at_member(&coordinator, "host");
	enum hps_status rc;
	struct hps_at at;
	uint32_t n;

	rc = read_node(r, &coordinator, &d->coordinator.host, &d->coordinator.endpoint, err);
	if (!rc)
		rc = hps_get_array(root, "shards", HPS_REQUIRED, 1, HPS_MAX_SHARDS, &at, &n, err);
	if (rc)
		return rc;
	d->shard = hps_calloc(n, sizeof(*d->shard), err);
	if (!d->shard)
		return HPS_MEMORY;
	d->n_shards = n;
	for (uint32_t i = 0; !rc && i < n; i++) {
		struct hps_at item = hps_at_item(&at, i);

		rc = read_node(r, &item, &d->shard[i].host, &d->shard[i].endpoint, err);
	}
	if (!rc && strcmp(d->coordinator.host, d->shard[0].host))
		return hps_at_error(&coordinator_host, err,
				    "expected \"%s\", the host of the first shard, got \"%s\"",
				    d->shard[0].host, d->coordinator.host);
	return rc;
}

static enum hps_status read_replicas(struct reading *r, const struct hps_at *stage,
				     struct hps_deployed_stage *s, struct hps_err *err)
{
	enum hps_status rc;
	struct hps_at at;
	uint32_t n;

	rc = hps_get_array(stage, "replicas", HPS_REQUIRED, 1, HPS_MAX_UNITS, &at, &n, err);
	if (rc)
		return rc;
	s->replica = hps_calloc(n, sizeof(*s->replica), err);
	if (!s->replica)
		return HPS_MEMORY;
	s->n_replicas = n;
	for (uint32_t i = 0; !rc && i < n; i++) {
		struct hps_at item = hps_at_item(&at, i);

		rc = read_node(r, &item, &s->replica[i].host, &s->replica[i].endpoint, err);
	}
	return rc;
}

static enum hps_status read_stages(struct reading *r, const struct hps_at *root,
				   struct hps_deployment *d, struct hps_err *err)
{
	static const char *const members[] = { "first",	   "last",	  "type",    "dense_sync",
					       "replicas", "description", "comment", NULL };
	uint32_t n, begin = 0;
	enum hps_status rc;
	struct hps_at at;

	rc = hps_get_array(root, "stages", HPS_REQUIRED, 1, HPS_MAX_LAYERS, &at, &n, err);
	if (rc)
		return rc;
	d->stage = hps_calloc(n, sizeof(*d->stage), err);
	if (!d->stage)
		return HPS_MEMORY;
	d->n_stages = n;
	for (uint32_t i = 0; !rc && i < n; i++) {
		struct hps_deployed_stage *s = &d->stage[i];
		struct hps_at item = hps_at_item(&at, i);
		int sync = HPS_DENSE_PS;

		rc = hps_at_object(&item, err);
		if (!rc)
			rc = hps_at_only(&item, members, err);
		if (!rc)
			rc = hps_get_interval(&item, begin, &s->first, &s->last, err);
		if (!rc)
			rc = hps_get_name(&item, "type", HPS_REQUIRED, &s->type, err);
		if (!rc)
			rc = hps_get_choice(&item, "dense_sync", HPS_OPTIONAL, dense_sync_names,
					    HPS_COUNT(dense_sync_names), &sync, err);
		if (!rc)
			rc = read_replicas(r, &item, s, err);
		s->dense_sync = (enum hps_dense_sync)sync;
		begin = s->last + 1;
	}
	return rc;
}

/* How many endpoints the document can hold, for the index: an upper bound. */
static uint32_t count_endpoints(const struct hps_at *root)
{
	struct hps_at shards = hps_at_member(root, "shards");
	struct hps_at stages = hps_at_member(root, "stages");
	size_t n = 1 + hps_at_count(&shards);

	for (size_t i = 0; i < hps_at_count(&stages); i++) {
		struct hps_at item = hps_at_item(&stages, i);
		struct hps_at replicas = hps_at_member(&item, "replicas");

		n += hps_at_count(&replicas);
	}
	return n < HPS_MAX_NODES ? (uint32_t)n : HPS_MAX_NODES + 1;
}

static enum hps_status read_settings(const struct hps_at *at, struct hps_deployment *d,
				     struct hps_err *err)
{
	enum hps_status rc;

	d->micro_batches = 1;
	d->epochs = 1;
	d->seed = 1;
	rc = hps_get_u64(at, "batch", HPS_REQUIRED, 1, HPS_MAX_BATCH, &d->batch, err);
	if (!rc)
		rc = hps_get_u32(at, "micro_batches", HPS_OPTIONAL, 1, HPS_MAX_MICRO_BATCHES,
				 &d->micro_batches, err);
	if (!rc)
		rc = hps_get_u32(at, "epochs", HPS_OPTIONAL, 1, HPS_MAX_EPOCHS, &d->epochs, err);
	if (!rc)
		rc = hps_get_sync(at, "sync", HPS_OPTIONAL, &d->sync, err);
	if (!rc)
		rc = hps_get_u64(at, "seed", HPS_OPTIONAL, 0, UINT64_MAX, &d->seed, err);
	if (!rc)
		rc = hps_get_double(at, "predicted_samples_per_s", HPS_OPTIONAL, 0, HUGE_VAL,
				    &d->predicted_samples_per_s, err);
	if (!rc)
		rc = hps_get_double(at, "price_per_hour", HPS_OPTIONAL, 0, HUGE_VAL,
				    &d->price_per_hour, err);
	if (!rc)
		rc = hps_get_bool(at, "simulated", HPS_OPTIONAL, &d->simulated, err);
	return rc;
}

enum hps_status hps_deployment_read(const struct hps_at *at, struct hps_deployment *d,
				    struct hps_err *err)
{
	static const char *const members[] = { "digest",
					       "job",
					       "coordinator",
					       "shards",
					       "stages",
					       "batch",
					       "micro_batches",
					       "epochs",
					       "sync",
					       "seed",
					       "predicted_samples_per_s",
					       "price_per_hour",
					       "simulated",
					       "usage",
					       "description",
					       "comment",
					       NULL };
	struct hps_at usage = hps_at_member(at, "usage");
	struct reading r = { 0 };
	enum hps_status rc;
	uint32_t n;

	memset(d, 0, sizeof(*d));
	rc = hps_at_object(at, err);
	if (!rc)
		rc = hps_at_only(at, members, err);
	if (!rc)
		rc = hps_get_digest(at, "digest", HPS_REQUIRED, &d->digest, err);
	if (!rc)
		rc = hps_get_name(at, "job", HPS_REQUIRED, &d->job, err);
	n = count_endpoints(at);
	if (!rc && n > HPS_MAX_NODES)
		rc = hps_at_error(at, err, "more than %d nodes", HPS_MAX_NODES);
	if (!rc)
		rc = hps_index_init(&r.endpoints, n, err);
	if (!rc)
		rc = read_shards(&r, at, d, err);
	if (!rc)
		rc = read_stages(&r, at, d, err);
	if (!rc)
		rc = read_settings(at, d, err);
	hps_index_release(&r.endpoints);
	if (!rc && !hps_at_absent(&usage)) {
		rc = hps_usage_read(&usage, &d->usage, err);
		d->has_usage = !rc;
	}
	if (rc)
		hps_deployment_release(d);
	return rc;
}

void hps_deployment_release(struct hps_deployment *d)
{
	for (uint32_t i = 0; i < d->n_shards; i++) {
		free(d->shard[i].host);
		free(d->shard[i].endpoint);
	}
	for (uint32_t i = 0; i < d->n_stages; i++) {
		struct hps_deployed_stage *s = &d->stage[i];

		for (uint32_t k = 0; k < s->n_replicas; k++) {
			free(s->replica[k].host);
			free(s->replica[k].endpoint);
		}
		free(s->replica);
		free(s->type);
	}
	free(d->shard);
	free(d->stage);
	free(d->coordinator.host);
	free(d->coordinator.endpoint);
	free(d->job);
	hps_usage_release(&d->usage);
	memset(d, 0, sizeof(*d));
}

/* --- writing --- */

static struct hps_doc *write_node(const char *host, const char *endpoint)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(d, !d || hps_doc_put(d, "host", hps_doc_string(host)) ||
					 hps_doc_put(d, "endpoint", hps_doc_string(endpoint)));
}

static struct hps_doc *write_shards(const struct hps_deployment *d)
{
	struct hps_doc *a = hps_doc_array();
	int failed = !a;

	for (uint32_t i = 0; !failed && i < d->n_shards; i++)
		failed = hps_doc_add(a, write_node(d->shard[i].host, d->shard[i].endpoint));
	return hps_doc_finish(a, failed);
}

static struct hps_doc *write_replicas(const struct hps_deployed_stage *s)
{
	struct hps_doc *a = hps_doc_array();
	int failed = !a;

	for (uint32_t i = 0; !failed && i < s->n_replicas; i++)
		failed = hps_doc_add(a, write_node(s->replica[i].host, s->replica[i].endpoint));
	return hps_doc_finish(a, failed);
}

static struct hps_doc *write_stages(const struct hps_deployment *d)
{
	struct hps_doc *a = hps_doc_array();
	int failed = !a;

	for (uint32_t i = 0; !failed && i < d->n_stages; i++) {
		const struct hps_deployed_stage *s = &d->stage[i];
		struct hps_doc *o = hps_doc_object();

		failed = !o || hps_doc_put(o, "first", hps_doc_int(s->first)) ||
			 hps_doc_put(o, "last", hps_doc_int(s->last)) ||
			 hps_doc_put(o, "type", hps_doc_string(s->type)) ||
			 hps_doc_put(o, "dense_sync",
				     hps_doc_string(dense_sync_names[s->dense_sync])) ||
			 hps_doc_put(o, "replicas", write_replicas(s));
		failed = hps_doc_add(a, hps_doc_finish(o, failed));
	}
	return hps_doc_finish(a, failed);
}

struct hps_doc *hps_deployment_write(const struct hps_deployment *d)
{
	struct hps_doc *o = hps_doc_object();

	return hps_doc_finish(
		o, !o || hps_doc_put(o, "digest", hps_doc_digest(d->digest)) ||
			   hps_doc_put(o, "job", hps_doc_string(d->job)) ||
			   hps_doc_put(o, "coordinator",
				       write_node(d->coordinator.host, d->coordinator.endpoint)) ||
			   hps_doc_put(o, "shards", write_shards(d)) ||
			   hps_doc_put(o, "stages", write_stages(d)) ||
			   hps_doc_put(o, "batch", hps_doc_u64(d->batch)) ||
			   hps_doc_put(o, "micro_batches", hps_doc_int(d->micro_batches)) ||
			   hps_doc_put(o, "epochs", hps_doc_int(d->epochs)) ||
			   hps_doc_put(o, "sync", hps_doc_string(hps_sync_name(d->sync))) ||
			   hps_doc_put(o, "seed", hps_doc_u64(d->seed)) ||
			   hps_doc_put(o, "predicted_samples_per_s",
				       hps_doc_double(d->predicted_samples_per_s)) ||
			   hps_doc_put(o, "price_per_hour", hps_doc_double(d->price_per_hour)) ||
			   hps_doc_put(o, "simulated", hps_doc_bool(d->simulated)) ||
			   (d->has_usage && hps_doc_put(o, "usage", hps_usage_write(&d->usage))));
}

/* --- nodes --- */

uint32_t hps_deployment_nodes(const struct hps_deployment *d)
{
	return hps_node_of_replica(d, d->n_stages, 0);
}

uint32_t hps_node_of_shard(const struct hps_deployment *d, uint32_t shard)
{
	(void)d;
	return 1 + shard;
}

uint32_t hps_node_of_replica(const struct hps_deployment *d, uint32_t stage, uint32_t replica)
{
	uint32_t node = 1 + d->n_shards;

	for (uint32_t i = 0; i < stage; i++)
		node += d->stage[i].n_replicas;
	return node + replica;
}

uint32_t hps_stage_credit(uint32_t n_stages, uint32_t stage)
{
	return n_stages - stage;
}

void hps_node_name(const struct hps_deployment *d, uint32_t node, char *out, size_t size)
{
	uint32_t left = node;

	if (left == 0) {
		snprintf(out, size, "coordinator on host %s", d->coordinator.host);
		return;
	}
	left -= 1;
	if (left < d->n_shards) {
		snprintf(out, size, "shard %u on host %s", left, d->shard[left].host);
		return;
	}
	left -= d->n_shards;
	for (uint32_t i = 0; i < d->n_stages; i++) {
		const struct hps_deployed_stage *s = &d->stage[i];

		if (left < s->n_replicas) {
			snprintf(out, size, "stage %u replica %u on host %s", i, left,
				 s->replica[left].host);
			return;
		}
		left -= s->n_replicas;
	}
	snprintf(out, size, "node %u, which this job does not have", node);
}

uint64_t hps_deployment_id(const struct hps_deployment *d)
{
	uint64_t h = hps_digest_str(0, "hps deployment 1");

	h = hps_digest_u64(h, d->digest);
	h = hps_digest_str(h, d->job);
	h = hps_digest_str(h, d->coordinator.host);
	h = hps_digest_str(h, d->coordinator.endpoint);
	h = hps_digest_u64(h, d->n_shards);
	for (uint32_t i = 0; i < d->n_shards; i++) {
		h = hps_digest_str(h, d->shard[i].host);
		h = hps_digest_str(h, d->shard[i].endpoint);
	}
	h = hps_digest_u64(h, d->n_stages);
	for (uint32_t i = 0; i < d->n_stages; i++) {
		const struct hps_deployed_stage *s = &d->stage[i];

		h = hps_digest_u64(h, s->first);
		h = hps_digest_u64(h, s->last);
		h = hps_digest_str(h, s->type);
		h = hps_digest_str(h, dense_sync_names[s->dense_sync]);
		h = hps_digest_u64(h, s->n_replicas);
		for (uint32_t k = 0; k < s->n_replicas; k++) {
			h = hps_digest_str(h, s->replica[k].host);
			h = hps_digest_str(h, s->replica[k].endpoint);
		}
	}
	h = hps_digest_u64(h, d->batch);
	h = hps_digest_u64(h, d->micro_batches);
	h = hps_digest_u64(h, d->epochs);
	h = hps_digest_str(h, hps_sync_name(d->sync));
	h = hps_digest_u64(h, d->seed);
	h = hps_digest_double(h, d->predicted_samples_per_s);
	h = hps_digest_double(h, d->price_per_hour);
	return hps_digest_u64(h, d->simulated);
}
