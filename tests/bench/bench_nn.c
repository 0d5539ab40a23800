/* How much of a training step of a model is matrix products: deduplication, forward and
 * backward of one micro-batch against exactly its GEMM calls alone, recorded from a step and
 * replayed on the same matrices, on one core, by the thread's CPU time, in turn. Each step
 * is compared with the calls before and after it; medians of several rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "doc/doc.h"
#include "graph/graph.h"
#include "nn/stage.h"

enum { BATCH = 1000, ROUNDS = 41, WARM_UP = 3, MAX_GEMMS = 128 };

struct product {
	bool ta, tb;
	int m, n, k, lda, ldb, ldc;
	float alpha, beta, *c;
	const float *a, *b;
};

struct bench {
	struct hps_doc *doc;
	struct hps_model model;
	struct hps_graph graph;
	struct hps_backend backend;
	struct hps_stage *stage;
	struct hps_pass *pass;
	struct hps_stage_in in;
	float *params, *grads;
};

/* The products of a step, as the backend below saw them. */
static struct {
	struct product gemm[MAX_GEMMS];
	int n;
	double flops;
} record;

static void recording_gemm(bool ta, bool tb, int m, int n, int k, float alpha, const float *a,
			   int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
	if (record.n == MAX_GEMMS)
		exit(HPS_USAGE);
	record.gemm[record.n++] =
		(struct product){ ta, tb, m, n, k, lda, ldb, ldc, alpha, beta, c, a, b };
	record.flops += 2.0 * m * n * k;
}

static void *room(size_t n, size_t size)
{
	void *p = hps_calloc_aligned(n, size, NULL);

	if (!p) {
		fprintf(stderr, "bench_nn: no memory\n");
		exit(HPS_MEMORY);
	}
	return p;
}

static void ok(enum hps_status status, const struct hps_err *err)
{
	if (status != HPS_OK)
		exit(hps_err_print("bench_nn", err));
}

static float *noise(size_t n)
{
	float *p = room(n, sizeof(*p));

	for (size_t i = 0; i < n; i++)
		p[i] = hps_unit_float(hps_hash3(n, i, 5)) * 0.1f;
	return p;
}

static void open_model(struct bench *b, const char *name)
{
	const char *root = getenv("HPS_ROOT");
	struct hps_err err;
	struct hps_at at;
	char path[4096];

	snprintf(path, sizeof(path), "%s/testdata/models/%s.json", root ? root : ".", name);
	ok(hps_doc_read(path, &b->doc, &err), &err);
	at = hps_at_root(b->doc, path);
	ok(hps_model_read(&at, &b->model, &err), &err);
	ok(hps_graph_build(&b->model, &b->graph, &err), &err);
	b->backend = *hps_backend_openblas();
	ok(hps_stage_new(&b->graph, 0, b->model.n_layers - 1, &b->backend, BATCH, &b->stage, &err),
	   &err);
	ok(hps_pass_new(b->stage, &b->pass, &err), &err);
	b->params = room(b->graph.n_floats, sizeof(float));
	b->grads = room(b->graph.n_floats, sizeof(float));
	hps_param_init_range(&b->graph, 0, b->graph.n_floats, 1, b->params);
}

/* Ids as in a click log: rank^-1 over 20,000 a slot. */
static void make_input(struct bench *b)
{
	const struct hps_model *m = &b->model;
	uint64_t *row = room(BATCH, sizeof(*row));
	uint64_t *key = room((size_t)BATCH * m->slots, sizeof(*key));
	uint32_t *slot = room(m->slots, sizeof(*slot));
	float *label = room(BATCH, sizeof(*label));
	struct hps_rng rng;

	hps_rng_init(&rng, 1, 0);
	for (uint32_t s = 0; s < m->slots; s++)
		slot[s] = s;
	for (size_t i = 0; i < BATCH; i++) {
		row[i] = i;
		label[i] = hps_rng_uniform(&rng) < 0.25;
		for (uint32_t s = 0; s < m->slots; s++) {
			double rank = __builtin_pow(20000.0, hps_rng_uniform(&rng));

			key[i * m->slots + s] = hps_hash3(s, (uint64_t)rank, 9);
		}
	}
	b->in = (struct hps_stage_in){ .rows = BATCH,
				       .row = row,
				       .label = label,
				       .dense = noise((size_t)BATCH * m->dense),
				       .key = key,
				       .key_slot = slot,
				       .n_key_slots = m->slots,
				       .seed = 1 };
}

static void fill_rows(struct bench *b)
{
	struct hps_err err;

	ok(hps_pass_begin(b->pass, &b->in, &err), &err);
	for (uint32_t i = 0; i < hps_stage_n_lookups(b->stage); i++) {
		struct hps_lookup *u = hps_pass_lookup(b->pass, i);

		for (uint32_t k = 0; k < u->n_unique; k++)
			hps_row_init(&b->model.table[u->table], u->table, u->key[k], 1,
				     u->unique + (size_t)k * u->dim);
	}
}

static void step(struct bench *b)
{
	struct hps_err err;

	ok(hps_pass_begin(b->pass, &b->in, &err), &err);
	hps_pass_forward(b->pass, b->params, true);
	hps_pass_backward(b->pass, b->params, NULL, b->grads);
}

static void gemms(struct bench *b)
{
	const struct hps_backend *be = hps_backend_openblas();

	for (int i = 0; i < record.n; i++) {
		const struct product *g = &record.gemm[i];

		be->gemm(g->ta, g->tb, g->m, g->n, g->k, g->alpha, g->a, g->lda, g->b, g->ldb,
			 g->beta, g->c, g->ldc);
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), ascending);
	return v[n / 2];
}

static double timed(void (*f)(struct bench *), struct bench *b)
{
	double start = hps_cpu_s();

	f(b);
	return hps_cpu_s() - start;
}

static void share(const char *name)
{
	static struct bench b;
	double whole[ROUNDS], bare[ROUNDS], ratio[ROUNDS], before, w, g;

	memset(&b, 0, sizeof(b));
	memset(&record, 0, sizeof(record));
	open_model(&b, name);
	make_input(&b);
	fill_rows(&b);
	b.backend.gemm = recording_gemm;
	step(&b);
	b.backend.gemm = hps_backend_openblas()->gemm;
	before = timed(gemms, &b);
	for (int i = -WARM_UP; i < ROUNDS; i++) {
		memset(b.grads, 0, b.graph.n_floats * sizeof(float));
		w = timed(step, &b);
		g = timed(gemms, &b);
		if (i >= 0) {
			whole[i] = w;
			bare[i] = (before + g) / 2;
			ratio[i] = bare[i] / w;
		}
		before = g;
	}
	w = median(whole, ROUNDS);
	g = median(bare, ROUNDS);
	printf("{\"bench\":\"nn.%s.gemm_share\",\"value\":%.3f,\"reach\":0.9,\"unit\":\"ratio\","
	       "\"batch\":%d,\"samples_per_s\":%.0f,\"gemm_samples_per_s\":%.0f,"
	       "\"gemm_gflops\":%.1f}\n",
	       name, median(ratio, ROUNDS), BATCH, BATCH / w, BATCH / g, record.flops / g * 1e-9);
	fflush(stdout);
}

int main(void)
{
	static const char *const models[] = { "ctrdnn", "matchnet", "2emb" };
	const char *prefix = getenv("HPS_BENCH");

	for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
		char name[64];

		snprintf(name, sizeof(name), "nn.%s.gemm_share", models[i]);
		if (!prefix || strncmp(name, prefix, strlen(prefix)) == 0)
			share(models[i]);
	}
	return 0;
}
