/* How fast are the servers' hot paths against the memory they run on? Rows a second of a table's
 * pull and push, and of a shard that is pushed a step of four micro-batches with common keys, over
 * those of a bare loop that copies random rows of the same size (pull: the embedding, push: the
 * row) out of an array of the same footprint. Rounds alternate, in CPU seconds; medians of the
 * ratios. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "ps/client.h"
#include "ps/shard.h"
#include "table/table.h"

enum {
	DIM = 10,
	ROWS = 1 << 21, /* of 88 bytes, and 32 of slots: far beyond the caches */
	BATCH = 8192,	/* keys a call */
	CALLS = 12,	/* a round */
	ROUNDS = 9,
	MICRO = 4,
};

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "bench_ps: %s failed\n", what);
	exit(1);
}

static uint64_t seed = 3;

static void init_row(void *ctx, uint64_t key, float *row)
{
	(void)ctx;
	for (uint64_t j = 0; j < DIM; j++)
		row[j] = hps_unit_float(hps_hash3(seed, key, j));
}

static uint64_t key_of(uint64_t i)
{
	return hps_mix64(i + 1);
}

/* BATCH distinct rows, at random: a run of a random permutation of a power of two. */
static void choose(uint64_t *row, struct hps_rng *r)
{
	uint64_t a = hps_rng_u64(r) | 1, b = hps_rng_u64(r);

	for (uint64_t i = 0; i < BATCH; i++)
		row[i] = ((i * 0x9e3779b97f4a7c15u + b) * a) % ROWS; /* odd factors: a bijection */
}

struct bare {
	char *rows;
	size_t stride;
};

/* The loop that anyone would write: no prefetch, no hash. */
static double bare_round(const struct bare *b, size_t bytes, uint64_t *row, char *out,
			 struct hps_rng *r)
{
	double t = 0;

	for (int c = 0; c < CALLS; c++) {
		double t0;

		choose(row, r);
		t0 = hps_cpu_s();
		for (size_t i = 0; i < BATCH; i++)
			memcpy(out + i * bytes, b->rows + row[i] * b->stride, bytes);
		t += hps_cpu_s() - t0;
	}
	return t;
}

static void to_keys(const uint64_t *row, uint64_t *key)
{
	for (size_t i = 0; i < BATCH; i++)
		key[i] = key_of(row[i]);
}

static double pull_round(const struct hps_table *t, uint64_t *row, uint64_t *key, float *out,
			 struct hps_rng *r)
{
	double s = 0;

	for (int c = 0; c < CALLS; c++) {
		double t0;

		choose(row, r);
		to_keys(row, key);
		t0 = hps_cpu_s();
		hps_table_pull(t, key, BATCH, false, out);
		s += hps_cpu_s() - t0;
	}
	return s;
}

static double push_round(struct hps_table *t, uint64_t *row, uint64_t *key, const float *grad,
			 struct hps_rng *r)
{
	double s = 0;

	for (int c = 0; c < CALLS; c++) {
		double t0;

		choose(row, r);
		to_keys(row, key);
		t0 = hps_cpu_s();
		check(hps_table_push(t, key, grad, BATCH, 1000, (uint32_t)c, NULL) == HPS_OK,
		      "push");
		s += hps_cpu_s() - t0;
	}
	return s;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

static void report(const char *name, double *share, double *ours, double *bare, double rows,
		   const char *more)
{
	printf("{\"bench\": \"%s\", \"value\": %.4f, \"reach\": 0.5, \"unit\": \"ratio\", "
	       "\"rows_per_s\": %.4g, \"bare_rows_per_s\": %.4g, \"rows\": %d, \"dim\": %d%s}\n",
	       name, median(share), rows / median(ours), rows / median(bare), ROWS, DIM, more);
	fflush(stdout);
}

static void bench_table(const struct bare *bare, char *out, uint64_t *row, uint64_t *key,
			float *grad)
{
	struct hps_table_opts o = { .name = "emb",
				    .dim = DIM,
				    .optim = { .rule = HPS_RULE_ADAGRAD,
					       .lr = 0.05f,
					       .accumulator = 0.1f,
					       .eps = 1e-10f },
				    .init = init_row };
	double pull[ROUNDS], push[ROUNDS], thin[ROUNDS], full[ROUNDS], a[ROUNDS], b[ROUNDS];
	struct hps_table *t = NULL;
	struct hps_rng r;

	hps_rng_init(&r, 1, 1);
	check(hps_table_new(&o, &t, NULL) == HPS_OK, "table");
	for (uint64_t i = 0; i < ROWS; i += BATCH) {
		for (uint64_t j = 0; j < BATCH; j++)
			key[j] = key_of(i + j);
		check(hps_table_push(t, key, grad, BATCH, 1, 0, NULL) == HPS_OK, "fill");
	}
	for (int k = -1; k < ROUNDS; k++) { /* the first is a warm-up */
		int at = k < 0 ? 0 : k;

		thin[at] = bare_round(bare, DIM * sizeof(float), row, out, &r);
		pull[at] = pull_round(t, row, key, (float *)out, &r);
		full[at] = bare_round(bare, bare->stride, row, out, &r);
		push[at] = push_round(t, row, key, grad, &r);
		a[at] = thin[at] / pull[at];
		b[at] = full[at] / push[at];
	}
	report("ps.table.pull_share", a, pull, thin, (double)BATCH * CALLS, "");
	report("ps.table.push_share", b, push, full, (double)BATCH * CALLS,
	       ", \"optimizer\": \"adagrad\"");
	hps_table_free(t);
}

/* --- a shard: one table, one stage of one replica, MICRO micro-batches a step --- */

static const char model[] =
	"{\"name\":\"bench\",\"inputs\":{\"slots\":1,\"dense\":0},\"tables\":["
	"{\"name\":\"emb\",\"dim\":10,\"optimizer\":{\"kind\":\"adagrad\",\"lr\":0.05}}],\"layers\":["
	"{\"name\":\"emb\",\"op\":\"embedding\",\"table\":\"emb\",\"slots\":[0],\"pooling\":\"sum\"},"
	"{\"name\":\"out\",\"op\":\"dense\",\"inputs\":[\"emb\"],\"units\":2,\"activation\":\"linear\"}],"
	"\"loss\":{\"kind\":\"softmax_cross_entropy\",\"inputs\":[\"out\"]},"
	"\"train\":{\"batch\":1000,\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.1}}}";

struct one_shard {
	struct hps_job job;
	struct hps_graph graph;
	struct hps_deployed_shard shard;
	struct hps_deployed_stage stage;
	struct hps_deployed_replica replica;
};

static char here[] = "here", cpu[] = "cpu", nowhere[] = "ipc:///nowhere";

static void deploy(struct one_shard *w)
{
	struct hps_doc *d = NULL;
	struct hps_at at;

	check(hps_doc_parse(model, sizeof(model) - 1, "model", &d, NULL) == HPS_OK, "model");
	at = hps_at_root(d, "model");
	check(hps_model_read(&at, &w->job.model, NULL) == HPS_OK, "model");
	hps_doc_free(d);
	check(hps_graph_build(&w->job.model, &w->graph, NULL) == HPS_OK, "graph");
	w->shard = (struct hps_deployed_shard){ here, nowhere };
	w->replica = (struct hps_deployed_replica){ here, nowhere };
	w->stage = (struct hps_deployed_stage){ 0, 1, cpu, HPS_DENSE_PS, &w->replica, 1 };
	w->job.deployment = (struct hps_deployment){ .job = here,
						     .coordinator = { here, nowhere },
						     .shard = &w->shard,
						     .n_shards = 1,
						     .stage = &w->stage,
						     .n_stages = 1,
						     .batch = 1000,
						     .micro_batches = MICRO,
						     .seed = 1 };
}

static void push_step(struct hps_shard *s, struct hps_ps_client *c, uint64_t step, uint64_t *key,
		      float *grad, double *took)
{
	struct hps_outbox out = { 0 };
	double t0;

	for (uint32_t m = 0; m < MICRO; m++) {
		/* neighbouring micro-batches have half of their keys in common */
		struct hps_ps_rows rows = { .table = 0,
					    .dim = DIM,
					    .n = BATCH / 2,
					    .key = key + m * BATCH / 8,
					    .grad = grad };

		check(hps_ps_push(c, 0, step, m, 250, &rows, 1, &out, NULL) == HPS_OK, "push");
	}
	t0 = hps_cpu_s();
	for (uint32_t m = 0; m < MICRO; m++)
		check(hps_shard_handle(s, &out.item[m].msg, &out, NULL) == HPS_OK, "handle");
	*took += hps_cpu_s() - t0;
	hps_outbox_release(&out);
}

static void bench_shard(const struct bare *bare, char *out, uint64_t *row, uint64_t *key,
			float *grad)
{
	double ours[ROUNDS], full[ROUNDS], share[ROUNDS];
	struct one_shard w = { 0 };
	struct hps_ps_client *c = NULL;
	struct hps_shard *s = NULL;
	struct hps_rng r;
	uint64_t step = 0;

	deploy(&w);
	hps_rng_init(&r, 2, 1);
	check(hps_shard_new(&w.job, &w.graph, 0, &s, NULL) == HPS_OK, "shard");
	check(hps_ps_client_new(&w.job, &w.graph, 0, 0, 1, &c, NULL) == HPS_OK, "client");
	for (uint64_t i = 0; i < ROWS; i += BATCH) {
		for (uint64_t j = 0; j < BATCH; j++)
			key[j] = key_of(i + j);
		check(hps_table_push(hps_shard_table(s, 0), key, grad, BATCH, 1, 0, NULL) == HPS_OK,
		      "fill");
	}
	for (int k = -1; k < ROUNDS; k++) {
		int at = k < 0 ? 0 : k;

		full[at] = bare_round(bare, bare->stride, row, out, &r);
		ours[at] = 0;
		for (int call = 0; call < CALLS; call++) {
			choose(row, &r);
			to_keys(row, key);
			push_step(s, c, step++, key, grad, &ours[at]);
		}
		ours[at] /= 2; /* a step has MICRO * BATCH / 2 keys: as many as two calls */
		share[at] = full[at] / ours[at];
	}
	report("ps.shard.push_share", share, ours, full, (double)BATCH * CALLS,
	       ", \"micro_batches\": 4, \"optimizer\": \"adagrad\"");
	hps_ps_client_free(c);
	hps_shard_free(s);
	hps_graph_release(&w.graph);
	hps_model_release(&w.job.model);
}

int main(void)
{
	struct bare bare = { .stride = 2 * DIM * sizeof(float) + 8 };
	size_t out_bytes = BATCH * bare.stride;
	uint64_t *row = malloc(BATCH * sizeof(*row)), *key = malloc(BATCH * sizeof(*key));
	float *grad = malloc(BATCH * DIM * sizeof(*grad));
	char *out = malloc(out_bytes);

	bare.rows = malloc(ROWS * bare.stride);
	check(row && key && grad && out && bare.rows, "malloc");
	memset(bare.rows, 1, ROWS * bare.stride);
	memset(out, 0, out_bytes);
	for (size_t i = 0; i < BATCH * DIM; i++)
		grad[i] = hps_unit_float(i);
	bench_table(&bare, out, row, key, grad);
	bench_shard(&bare, out, row, key, grad);
	free(bare.rows);
	free(out);
	free(row);
	free(key);
	free(grad);
	return fflush(stdout) || ferror(stdout) ? 4 : 0;
}
