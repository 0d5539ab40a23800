/* How much of a training step of a model is matrix products: deduplication, forward and
 * backward of one micro-batch against exactly its GEMM calls alone, on one core, by the
 * thread's CPU time, in turn, medians of several rounds.
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

enum { BATCH = 1000, ROUNDS = 31, WARM_UP = 3, MAX_GEMMS = 128 };

struct product {
	bool ta, tb;
	int m, n, k;
	float beta, *a, *b, *c;
};

struct bench {
	struct hps_doc *doc;
	struct hps_model model;
	struct hps_graph graph;
	struct hps_stage *stage;
	struct hps_pass *pass;
	struct hps_stage_in in;
	float *params, *grads;
	struct product gemm[MAX_GEMMS];
	int n_gemms;
	double flops;
};

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
	ok(hps_stage_new(&b->graph, 0, b->model.n_layers - 1, hps_backend_openblas(), BATCH,
			 &b->stage, &err),
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

static void add_gemm(struct bench *b, struct product g)
{
	if (b->n_gemms == MAX_GEMMS)
		exit(HPS_USAGE);
	b->gemm[b->n_gemms++] = g;
	b->flops += 2.0 * g.m * g.n * g.k;
}

/* The products of every dense layer, in the order of a step, on matrices of its own. */
static void list_gemms(struct bench *b)
{
	const struct hps_model *m = &b->model;
	struct product back[MAX_GEMMS];
	int n_back = 0;

	for (uint32_t l = 0; l < m->n_layers; l++) {
		const struct hps_layer *layer = &m->layer[l];
		bool features = layer->op == HPS_OP_DENSE && layer->input[0] == HPS_INPUT_DENSE;
		int in, units = (int)layer->units;
		float *x, *y, *w, *dw, *dx;

		if (layer->op != HPS_OP_DENSE)
			continue;
		in = (int)(features ? m->dense : m->layer[layer->input[0]].cols);
		x = noise((size_t)BATCH * in);
		y = noise((size_t)BATCH * units);
		w = noise((size_t)in * units);
		dw = noise((size_t)in * units);
		dx = noise((size_t)BATCH * in);
		add_gemm(b, (struct product){ false, false, BATCH, units, in, 0, x, w, y });
		if (!features)
			back[n_back++] =
				(struct product){ false, true, BATCH, in, units, 0, y, w, dx };
		back[n_back++] = (struct product){ true, false, in, units, BATCH, 1, x, y, dw };
	}
	while (n_back > 0)
		add_gemm(b, back[--n_back]);
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

	for (int i = 0; i < b->n_gemms; i++) {
		const struct product *g = &b->gemm[i];

		be->gemm(g->ta, g->tb, g->m, g->n, g->k, 1.0f, g->a, g->ta ? g->m : g->k, g->b,
			 g->tb ? g->k : g->n, g->beta, g->c, g->n);
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
	double whole[ROUNDS], bare[ROUNDS], w, g;

	memset(&b, 0, sizeof(b));
	open_model(&b, name);
	make_input(&b);
	fill_rows(&b);
	list_gemms(&b);
	for (int i = -WARM_UP; i < ROUNDS; i++) {
		memset(b.grads, 0, b.graph.n_floats * sizeof(float));
		w = timed(step, &b);
		g = timed(gemms, &b);
		if (i >= 0) {
			whole[i] = w;
			bare[i] = g;
		}
	}
	w = median(whole, ROUNDS);
	g = median(bare, ROUNDS);
	printf("{\"bench\":\"nn.%s.gemm_share\",\"value\":%.3f,\"reach\":0.9,\"unit\":\"ratio\","
	       "\"batch\":%d,\"samples_per_s\":%.0f,\"gemm_samples_per_s\":%.0f,"
	       "\"gemm_gflops\":%.1f}\n",
	       name, g / w, BATCH, BATCH / w, BATCH / g, b.flops / g * 1e-9);
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
