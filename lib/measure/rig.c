/* What do a replica and a shard cost each other, sockets apart? Their state machines in one
 * thread, handed each other's messages, with the time of both sides.
 */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/mem.h"
#include "measure/measure_int.h"

/* A job of one stage on one unit with one shard, whose batch is one micro-batch. */
static void make_job(struct hps_rig *r, const struct hps_model *m, uint32_t max_rows)
{
	static char host[] = "localhost", none[] = "ipc://none", name[] = "profile", type[] = "cpu";

	r->job.has_model = r->job.has_deployment = true;
	r->job.model = *m;
	r->shard_at = (struct hps_deployed_shard){ host, none };
	r->replica_at = (struct hps_deployed_replica){ host, none };
	r->stage_at = (struct hps_deployed_stage){ .first = 0,
						   .last = m->n_layers - 1,
						   .type = type,
						   .dense_sync = HPS_DENSE_PS,
						   .replica = &r->replica_at,
						   .n_replicas = 1 };
	r->job.deployment = (struct hps_deployment){ .digest = m->digest,
						     .job = name,
						     .coordinator = { host, none },
						     .shard = &r->shard_at,
						     .n_shards = 1,
						     .stage = &r->stage_at,
						     .n_stages = 1,
						     .batch = max_rows,
						     .micro_batches = 1,
						     .epochs = 1,
						     .sync = HPS_BSP,
						     .seed = 1 };
}

static enum hps_status fill(struct hps_rig *r, const struct hps_model *m,
			    const struct hps_backend *be, uint32_t max_rows, struct hps_err *err)
{
	enum hps_status st;

	st = hps_stage_new(r->graph, 0, m->n_layers - 1, be, max_rows, &r->stage, err);
	if (st == HPS_OK)
		st = hps_pass_new(r->stage, &r->pass, err);
	if (st == HPS_OK)
		st = hps_ps_client_new(&r->job, r->graph, 0, 0, 1, &r->client, err);
	if (st == HPS_OK)
		st = hps_shard_new(&r->job, r->graph, 0, &r->shard, err);
	if (st != HPS_OK)
		return st;
	r->n_floats = hps_stage_n_floats(r->stage);
	r->n_lookups = hps_stage_n_lookups(r->stage);
	r->params = hps_calloc_aligned(r->n_floats, sizeof(float), err);
	r->grads = hps_calloc_aligned(r->n_floats, sizeof(float), err);
	r->rows = hps_calloc(r->n_lookups, sizeof(*r->rows), err);
	if (!r->params || !r->grads || !r->rows)
		return HPS_MEMORY;
	hps_param_init_range(r->graph, 0, r->n_floats, 1, r->params);
	return HPS_OK;
}

enum hps_status hps_rig_init(struct hps_rig *r, const struct hps_model *m,
			     const struct hps_graph *g, const struct hps_backend *be,
			     uint32_t max_rows, struct hps_err *err)
{
	enum hps_status st;

	memset(r, 0, sizeof(*r));
	r->graph = g;
	make_job(r, m, max_rows);
	st = fill(r, m, be, max_rows, err);
	if (st != HPS_OK)
		hps_rig_release(r);
	return st;
}

void hps_rig_release(struct hps_rig *r)
{
	hps_shard_free(r->shard);
	hps_ps_client_free(r->client);
	hps_pass_free(r->pass);
	hps_stage_free(r->stage);
	free(r->params);
	free(r->grads);
	free(r->rows);
	memset(r, 0, sizeof(*r));
}

/* Hand the client's messages to the shard and its answers back. */
static enum hps_status exchange(struct hps_rig *r, struct hps_outbox *out, struct hps_sides *t,
				struct hps_err *err)
{
	struct hps_outbox answers = { 0 };
	enum hps_status st = HPS_OK;
	double before = hps_cpu_s(), between;

	for (size_t i = 0; i < out->n && st == HPS_OK; i++)
		st = hps_shard_handle(r->shard, &out->item[i].msg, &answers, err);
	between = hps_cpu_s();
	for (size_t i = 0; i < answers.n && st == HPS_OK; i++) {
		struct hps_ps_event event;

		st = hps_ps_message(r->client, &answers.item[i].msg, &event, err);
	}
	t->shard_s += between - before;
	t->client_s += hps_cpu_s() - between;
	hps_outbox_release(out);
	hps_outbox_release(&answers);
	return st;
}

enum hps_status hps_rig_pull(struct hps_rig *r, struct hps_sides *t, struct hps_err *err)
{
	struct hps_outbox out = { 0 };
	double before = hps_cpu_s();
	enum hps_status st;

	if (r->n_lookups == 0)
		return HPS_OK;
	for (uint32_t i = 0; i < r->n_lookups; i++) {
		struct hps_lookup *u = hps_pass_lookup(r->pass, i);

		r->rows[i] = (struct hps_ps_rows){ .table = u->table,
						   .dim = u->dim,
						   .n = u->n_unique,
						   .key = u->key,
						   .value = u->unique,
						   .grad = u->grad };
	}
	st = hps_ps_pull(r->client, 0, r->step, 0, 0, r->rows, r->n_lookups, &out, err);
	t->client_s += hps_cpu_s() - before;
	return st == HPS_OK ? exchange(r, &out, t, err) : st;
}

enum hps_status hps_rig_push(struct hps_rig *r, uint32_t rows, struct hps_sides *t,
			     struct hps_err *err)
{
	struct hps_outbox out = { 0 };
	double before = hps_cpu_s();
	enum hps_status st;

	if (r->n_lookups == 0)
		return HPS_OK;
	st = hps_ps_push(r->client, 0, r->step++, 0, rows, r->rows, r->n_lookups, &out, err);
	t->client_s += hps_cpu_s() - before;
	if (st == HPS_OK)
		st = exchange(r, &out, t, err);
	return st;
}

enum hps_status hps_rig_dense(struct hps_rig *r, uint32_t rows, struct hps_sides *t,
			      struct hps_err *err)
{
	struct hps_outbox out = { 0 };
	double before = hps_cpu_s();
	enum hps_status st;

	st = hps_ps_dense_push(r->client, r->dense_step++, rows, r->grads, &out, err);
	if (st == HPS_OK)
		st = hps_ps_dense_pull(r->client, r->dense_step, 0, r->params, NULL, &out, err);
	t->client_s += hps_cpu_s() - before;
	if (st == HPS_OK)
		return exchange(r, &out, t, err);
	hps_outbox_release(&out);
	return st;
}
