/* make_job: a job document with a deployment of any shape, for tests over real processes.
 *
 * usage: make_job MODEL DIR STAGES SHARDS MICRO BATCH SYNC DENSE [HOSTS]
 *   DIR     where sockets go: ipc://DIR/...
 *   STAGES  replicas of each stage: "2,1"; layers are cut into stages of nearly equal numbers
 *   SYNC    bsp or asp;  DENSE  ps or ring
 *   HOSTS   one (default): all on "here"; spread: every replica on a host of its own, h0, h1, ...
 *           and every shard but the first on s1, s2, ...
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "job/job.h"

enum { MAX_STAGES = 16 };

struct shape {
	const char *dir;
	uint32_t stages, replicas[MAX_STAGES], shards, micro_batches;
	uint64_t batch;
	enum hps_sync sync;
	enum hps_dense_sync dense_sync;
	bool spread;
};

static char *text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char *text(const char *fmt, ...)
{
	char *out = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&out, fmt, ap) < 0)
		abort();
	va_end(ap);
	return out;
}

static void deploy(const struct hps_model *m, const struct shape *s, struct hps_deployment *d)
{
	uint32_t n = 0;

	d->digest = m->digest;
	d->job = text("test-%s", m->name);
	d->coordinator.host = text("here");
	d->coordinator.endpoint = text("ipc://%s/c", s->dir);
	d->n_shards = s->shards;
	d->shard = calloc(s->shards, sizeof *d->shard);
	d->n_stages = s->stages;
	d->stage = calloc(s->stages, sizeof *d->stage);
	d->batch = s->batch;
	d->micro_batches = s->micro_batches;
	d->epochs = 1;
	d->sync = s->sync;
	d->seed = 7;
	if (!d->shard || !d->stage)
		abort();
	for (uint32_t i = 0; i < s->shards; i++) {
		d->shard[i].host = s->spread && i ? text("s%u", i) : text("here");
		d->shard[i].endpoint = text("ipc://%s/s%u", s->dir, i);
	}
	for (uint32_t i = 0; i < s->stages; i++) {
		struct hps_deployed_stage *st = &d->stage[i];

		st->first = m->n_layers * i / s->stages;
		st->last = m->n_layers * (i + 1) / s->stages - 1;
		st->type = text("cpu");
		st->dense_sync = s->dense_sync;
		st->n_replicas = s->replicas[i];
		st->replica = calloc(st->n_replicas, sizeof *st->replica);
		if (!st->replica)
			abort();
		for (uint32_t r = 0; r < st->n_replicas; r++) {
			st->replica[r].host = s->spread ? text("h%u", n++) : text("here");
			st->replica[r].endpoint = text("ipc://%s/r%u-%u", s->dir, i, r);
		}
	}
}

static int read_shape(int argc, char **argv, struct shape *s)
{
	char *list, *word;

	if (argc < 9 || argc > 10)
		return -1;
	*s = (struct shape){ .dir = argv[2],
			     .shards = (uint32_t)strtoul(argv[4], NULL, 10),
			     .micro_batches = (uint32_t)strtoul(argv[5], NULL, 10),
			     .batch = strtoull(argv[6], NULL, 10),
			     .sync = strcmp(argv[7], "asp") ? HPS_BSP : HPS_ASP,
			     .dense_sync = strcmp(argv[8], "ring") ? HPS_DENSE_PS : HPS_DENSE_RING,
			     .spread = argc == 10 && !strcmp(argv[9], "spread") };
	list = text("%s", argv[3]);
	for (word = strtok(list, ","); word && s->stages < MAX_STAGES; word = strtok(NULL, ","))
		s->replicas[s->stages++] = (uint32_t)strtoul(word, NULL, 10);
	free(list);
	return s->stages && s->shards ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct hps_job job = { 0 };
	struct hps_err err = { 0 };
	enum hps_status st;
	struct shape s;

	if (read_shape(argc, argv, &s)) {
		fprintf(stderr, "usage: make_job MODEL DIR STAGES SHARDS MICRO BATCH SYNC DENSE "
				"[one|spread]\n");
		return 2;
	}
	st = hps_model_load(argv[1], &job.model, &err);
	if (st == HPS_OK) {
		job.has_model = true;
		st = hps_job_update(&job, HPS_MODEL, &err);
	}
	if (st == HPS_OK) {
		deploy(&job.model, &s, &job.deployment);
		job.has_deployment = true;
		st = hps_job_update(&job, HPS_DEPLOYMENT, &err);
	}
	if (st == HPS_OK)
		st = hps_doc_write(job.doc, HPS_FORM_JSON, &err);
	hps_job_release(&job);
	return hps_exit("make_job", st, &err);
}
