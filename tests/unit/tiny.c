/* Small jobs for tests. See tiny.h. */
#include "tiny.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"

#include "base/rng.h"

static char *text(const char *fmt, uint32_t a, uint32_t b)
{
	char *s = NULL;

	assert_true(asprintf(&s, fmt, a, b) > 0);
	return s;
}

static void deploy(const struct hps_model *m, const struct tiny_shape *s, struct hps_deployment *d)
{
	*d = (struct hps_deployment){
		.digest = m->digest,
		.job = text("tiny", 0, 0),
		.n_shards = s->shards,
		.n_stages = s->stages,
		.batch = s->batch,
		.micro_batches = s->micro_batches,
		.epochs = 1,
		.sync = s->sync,
		.seed = 7,
	};
	d->coordinator.host = text("here", 0, 0);
	d->coordinator.endpoint = text("ipc://c", 0, 0);
	d->shard = calloc(s->shards, sizeof(*d->shard));
	d->stage = calloc(s->stages, sizeof(*d->stage));
	assert_true(d->shard && d->stage);
	for (uint32_t i = 0; i < s->shards; i++) {
		d->shard[i].host = text("here", 0, 0);
		d->shard[i].endpoint = text("ipc://s%u", i, 0);
	}
	for (uint32_t i = 0; i < s->stages; i++) {
		struct hps_deployed_stage *st = &d->stage[i];

		st->first = m->n_layers * i / s->stages;
		st->last = m->n_layers * (i + 1) / s->stages - 1;
		st->type = text("cpu", 0, 0);
		st->dense_sync = s->dense_sync;
		st->n_replicas = s->replicas[i];
		st->replica = calloc(st->n_replicas, sizeof(*st->replica));
		assert_non_null(st->replica);
		for (uint32_t r = 0; r < st->n_replicas; r++) {
			st->replica[r].host = text("here", 0, 0);
			st->replica[r].endpoint = text("ipc://r%u-%u", i, r);
		}
	}
}

void tiny_init(struct tiny *t, const struct tiny_shape *s)
{
	struct hps_err err = { 0 };
	char path[256];

	memset(t, 0, sizeof(*t));
	snprintf(path, sizeof(path), "testdata/models/narrow/%s.json", s->model);
	if (hps_model_load(path, &t->job.model, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
	deploy(&t->job.model, s, &t->job.deployment);
	t->job.has_model = t->job.has_deployment = true;
	if (hps_graph_build(&t->job.model, &t->graph, &err) != HPS_OK)
		fail_msg("%s", err.msg);
}

void tiny_release(struct tiny *t)
{
	hps_graph_release(&t->graph);
	hps_deployment_release(&t->job.deployment);
	hps_model_release(&t->job.model);
}

void tiny_data(const struct hps_model *m, uint32_t rows, uint64_t seed, struct hps_batch *b)
{
	struct hps_rng r;

	assert_int_equal(hps_batch_init(b, rows, m->slots, m->dense, NULL), HPS_OK);
	hps_rng_init(&r, seed, 0);
	b->rows = rows;
	b->end_row = rows;
	for (uint32_t i = 0; i < rows; i++) {
		b->row[i] = i;
		b->label[i] = (float)hps_rng_below(&r, 2);
		for (uint32_t c = 0; c < m->dense; c++)
			b->feature[(size_t)i * m->dense + c] = (float)hps_rng_normal(&r);
		for (uint32_t c = 0; c < m->slots; c++)
			b->key[(size_t)i * m->slots + c] = hps_mix64(c << 8 | hps_rng_below(&r, 9));
	}
}

const char *tiny_name(const struct tiny_shape *s, char *out, size_t size)
{
	char replicas[64] = "";

	for (uint32_t i = 0; i < s->stages; i++)
		snprintf(replicas + strlen(replicas), sizeof(replicas) - strlen(replicas), "%s%u",
			 i ? "+" : "", s->replicas[i]);
	snprintf(out, size, "%s: %u stages %s, %u shards, %u micro-batches, batch %u, %s, %s",
		 s->model, s->stages, replicas, s->shards, s->micro_batches, s->batch,
		 s->dense_sync == HPS_DENSE_RING ? "ring" : "ps", hps_sync_name(s->sync));
	return out;
}
