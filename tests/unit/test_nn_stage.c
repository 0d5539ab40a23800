/* A stage's edges: wrong input, NaN, extremes, no rows, passes in flight, one layer alone,
 * no memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nn_case.h"

/* A model from JSON text. */
struct small {
	struct hps_doc *doc;
	struct hps_model m;
	struct hps_graph g;
};

static void small_init(struct small *s, const char *json)
{
	struct hps_err err;
	struct hps_at at;

	if (hps_doc_parse(json, strlen(json), "test", &s->doc, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
	at = hps_at_root(s->doc, "test");
	if (hps_model_read(&at, &s->m, &err) != HPS_OK ||
	    hps_graph_build(&s->m, &s->g, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
}

static void small_release(struct small *s)
{
	hps_graph_release(&s->g);
	hps_model_release(&s->m);
	hps_doc_free(s->doc);
}

static enum hps_status whole_stage(const struct hps_graph *g, uint32_t rows, struct hps_stage **s,
				   struct hps_err *err)
{
	return hps_stage_new(g, 0, g->model->n_layers - 1, hps_backend_openblas(), rows, s, err);
}

/* The case of this name. */
static void named(struct nn_case *c, const struct hps_doc *golden, const char *name)
{
	for (size_t i = 0; i < nn_golden_count(golden); i++) {
		nn_case_init(c, golden, i);
		if (strcmp(c->model.name, name) == 0)
			return;
		nn_case_release(c);
	}
	fail_msg("no case %s", name);
}

/* --- keys --- */

static void test_dedup(void **state)
{
	static const char json[] =
		"{\"name\":\"d\",\"inputs\":{\"slots\":3},"
		"\"tables\":[{\"name\":\"t\",\"dim\":2},{\"name\":\"u\",\"dim\":1,\"rows\":5}],"
		"\"layers\":[{\"name\":\"a\",\"op\":\"embedding\",\"table\":\"t\",\"slots\":[2,0]},"
		"{\"name\":\"b\",\"op\":\"embedding\",\"table\":\"u\",\"slots\":[1,2]},"
		"{\"name\":\"c\",\"op\":\"concat\",\"inputs\":[\"a\",\"b\"]},"
		"{\"name\":\"o\",\"op\":\"dense\",\"inputs\":[\"c\"],\"units\":1}],"
		"\"loss\":{\"kind\":\"sigmoid_cross_entropy\",\"inputs\":[\"o\"]}}";
	enum { ROWS = 500 };
	/* columns in an order of their own, and one that nobody asked for */
	const uint32_t slots[4] = { 1, 7, 2, 0 };
	uint64_t *key = calloc(ROWS * 4, sizeof(*key));
	float label[ROWS] = { 0 };
	struct hps_stage *stage;
	struct hps_pass *pass;
	struct hps_err err;
	struct small s;

	assert_non_null(key);
	small_init(&s, json);
	assert_int_equal(whole_stage(&s.g, ROWS, &stage, &err), HPS_OK);
	assert_int_equal(hps_pass_new(stage, &pass, &err), HPS_OK);
	for (int range = 1; range < 2000; range *= 7) {
		struct hps_stage_in in = { .rows = ROWS,
					   .label = label,
					   .key = key,
					   .key_slot = slots,
					   .n_key_slots = 4 };

		for (size_t i = 0; i < ROWS * 4; i++) {
			uint64_t h = hps_mix64(i * (uint64_t)range);

			/* few values, every 64-bit one legal, and many that share low bits */
			key[i] = h % 3 == 0 ? 0 - h % (uint64_t)range : (h % (uint64_t)range) << 40;
		}
		assert_int_equal(hps_pass_begin(pass, &in, &err), HPS_OK);
		for (uint32_t i = 0; i < 2; i++) {
			const struct hps_lookup *u = hps_pass_lookup(pass, i);
			const struct hps_layer *layer = &s.m.layer[u->layer];
			uint64_t rows = s.m.table[u->table].rows;
			uint32_t seen = 0;

			assert_int_equal(u->keys, 2);
			for (uint32_t k = 0; k < ROWS * 2; k++) {
				static const uint32_t column[3] = { 3, 0, 2 };
				uint64_t want = hps_table_key(
					key[k / 2 * 4 + column[layer->slot[k % 2]]], rows);

				assert_true(u->index[k] <= seen); /* first appearance */
				if (u->index[k] == seen)
					seen++;
				assert_true(u->index[k] < u->n_unique);
				assert_true(u->key[u->index[k]] == want);
			}
			assert_int_equal(seen, u->n_unique);
			for (uint32_t k = 0; k < u->n_unique; k++)
				for (uint32_t j = 0; j < k; j++)
					assert_true(u->key[k] != u->key[j]);
		}
	}
	hps_pass_free(pass);
	hps_stage_free(stage);
	small_release(&s);
	free(key);
}

/* Negatives follow (seed, epoch, row), wherever the row stands in a micro-batch. */
static void test_negatives_follow_the_row(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");
	struct hps_stage *stage;
	struct hps_pass *a, *b;
	struct hps_err err;
	struct nn_case c;
	uint64_t *key_a, *key_b, row_b[3];
	struct hps_stage_in in_a, in_b;
	const struct hps_lookup *ua, *ub;

	named(&c, golden, "negatives");
	in_a = nn_case_input(&c, 0, c.rows, NULL, &key_a);
	in_b = nn_case_input(&c, 0, 3, NULL, &key_b);
	for (int r = 0; r < 3; r++)
		row_b[r] = c.row[2 + r];
	in_b.row = row_b;
	assert_int_equal(whole_stage(&c.graph, c.rows, &stage, &err), HPS_OK);
	assert_int_equal(hps_pass_new(stage, &a, &err), HPS_OK);
	assert_int_equal(hps_pass_new(stage, &b, &err), HPS_OK);
	assert_int_equal(hps_pass_begin(a, &in_a, &err), HPS_OK);
	assert_int_equal(hps_pass_begin(b, &in_b, &err), HPS_OK);
	ua = hps_pass_lookup(a, 1);
	ub = hps_pass_lookup(b, 1);
	assert_int_equal(c.model.layer[ua->layer].op, HPS_OP_NEGATIVES);
	for (uint32_t r = 0; r < 3; r++)
		for (uint32_t k = 0; k < ua->keys; k++) {
			uint64_t key = ub->key[ub->index[r * ub->keys + k]];

			assert_true(key == ua->key[ua->index[(r + 2) * ua->keys + k]]);
			assert_true(key == hps_negative_key(in_b.seed, in_b.epoch, ub->layer,
							    row_b[r], k,
							    c.model.table[ub->table].rows));
		}
	hps_pass_free(a);
	hps_pass_free(b);
	hps_stage_free(stage);
	free(key_a);
	free(key_b);
	nn_case_release(&c);
	hps_doc_free(golden);
}

/* --- wrong input --- */

static void refused(struct hps_pass *pass, const struct hps_stage_in *in, const char *word)
{
	struct hps_err err = { 0 };

	assert_int_equal(hps_pass_begin(pass, in, &err), HPS_BAD_INPUT);
	if (!strstr(err.msg, word))
		fail_msg("\"%s\" says nothing of %s", err.msg, word);
}

static void test_missing_input(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");
	struct hps_stage *stage;
	struct hps_stage_in in, bad;
	struct hps_pass *pass;
	struct hps_err err;
	struct nn_case c;
	uint64_t *key;
	double loss;

	named(&c, golden, "matchnet");
	assert_int_equal(whole_stage(&c.graph, c.rows, &stage, &err), HPS_OK);
	assert_int_equal(hps_pass_new(stage, &pass, &err), HPS_OK);
	in = nn_case_input(&c, 0, c.rows, NULL, &key);
	assert_int_equal(hps_pass_begin(pass, &in, &err), HPS_OK);
	nn_case_fill(&c, pass, hps_stage_n_lookups(stage));
	hps_pass_forward(pass, c.params, true);
	loss = hps_pass_loss(pass);

	bad = in;
	bad.rows = c.rows + 1;
	refused(pass, &bad, "8 rows");
	bad = in;
	bad.dense = NULL;
	refused(pass, &bad, "dense");
	bad = in;
	bad.key = NULL;
	refused(pass, &bad, "keys");
	bad = in;
	bad.row = NULL;
	refused(pass, &bad, "row numbers");
	bad = in;
	bad.label = NULL;
	refused(pass, &bad, "labels");
	bad = in;
	bad.n_key_slots = 2;
	refused(pass, &bad, "slot 2");

	/* The pass is as it was: its backward still runs. */
	assert_true(hps_pass_loss(pass) == loss);
	hps_pass_free(pass);
	hps_stage_free(stage);

	/* A later stage without what should have come over the cut. */
	assert_int_equal(hps_stage_new(&c.graph, 1, c.model.n_layers - 1, hps_backend_openblas(),
				       c.rows, &stage, &err),
			 HPS_OK);
	assert_int_equal(hps_pass_new(stage, &pass, &err), HPS_OK);
	refused(pass, &in, "activations");
	hps_pass_free(pass);
	hps_stage_free(stage);
	free(key);
	nn_case_release(&c);
	hps_doc_free(golden);
}

static void test_wrong_stages(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");
	struct hps_backend other = *hps_backend_openblas();
	struct hps_stage *stage = NULL;
	struct hps_err err;
	struct nn_case c;

	named(&c, golden, "ctrdnn");
	assert_int_equal(hps_stage_new(&c.graph, 2, 1, hps_backend_openblas(), 1, &stage, &err),
			 HPS_BAD_INPUT);
	assert_int_equal(hps_stage_new(&c.graph, 0, 99, hps_backend_openblas(), 1, &stage, &err),
			 HPS_BAD_INPUT);
	assert_int_equal(whole_stage(&c.graph, 0, &stage, &err), HPS_BAD_INPUT);
	assert_int_equal(whole_stage(&c.graph, UINT32_MAX, &stage, &err), HPS_BAD_INPUT);
	/* 4 keys a sample: their number would not fit in 31 bits */
	assert_int_equal(whole_stage(&c.graph, 1 << 29, &stage, &err), HPS_BAD_INPUT);
	other.abi++;
	assert_int_equal(hps_stage_new(&c.graph, 0, 1, &other, 1, &stage, &err), HPS_DEVICE);
	other = *hps_backend_openblas();
	other.host_memory = false;
	assert_int_equal(hps_stage_new(&c.graph, 0, 1, &other, 1, &stage, &err), HPS_DEVICE);
	assert_null(stage);
	nn_case_release(&c);
	hps_doc_free(golden);
}

/* Models that a reader lets pass or not, but a stage cannot run. */
static void test_wrong_losses(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");
	struct hps_stage *stage = NULL;
	struct hps_err err;
	struct nn_case c;
	uint64_t rows;
	int input;

	named(&c, golden, "nce");
	rows = c.model.table[1].rows;
	c.model.table[1].rows = 0; /* no noise distribution */
	assert_int_equal(whole_stage(&c.graph, 4, &stage, &err), HPS_BAD_INPUT);
	assert_non_null(strstr(err.msg, "target"));
	c.model.table[1].rows = rows;
	input = c.model.loss.input[2];
	c.model.loss.input[2] = c.model.loss.input[1]; /* noise that is not drawn */
	assert_int_equal(whole_stage(&c.graph, 4, &stage, &err), HPS_BAD_INPUT);
	c.model.loss.input[2] = input;
	c.model.layer[input].pooling = HPS_POOL_SUM;
	assert_int_equal(whole_stage(&c.graph, 4, &stage, &err), HPS_BAD_INPUT);
	c.model.layer[input].pooling = HPS_POOL_CONCAT;
	c.model.layer[c.model.loss.input[1]].cols--;
	assert_int_equal(whole_stage(&c.graph, 4, &stage, &err), HPS_BAD_INPUT);
	c.model.layer[c.model.loss.input[1]].cols++;
	c.model.loss.n_inputs = 2;
	assert_int_equal(whole_stage(&c.graph, 4, &stage, &err), HPS_BAD_INPUT);
	c.model.loss.n_inputs = 3;
	assert_int_equal(whole_stage(&c.graph, 4, &stage, &err), HPS_OK);
	hps_stage_free(stage);
	nn_case_release(&c);

	named(&c, golden, "ctrdnn");
	c.model.loss.kind = HPS_LOSS_SIGMOID_CE; /* of two columns */
	assert_int_equal(whole_stage(&c.graph, 4, &stage, &err), HPS_BAD_INPUT);
	c.model.loss.kind = HPS_LOSS_SOFTMAX_CE;
	c.model.layer[5].units = c.model.layer[5].cols = 3;
	assert_int_equal(whole_stage(&c.graph, 4, &stage, &err), HPS_BAD_INPUT);
	c.model.layer[5].units = c.model.layer[5].cols = 2;
	c.model.layer[5].input[0] = 2; /* nobody reads fc2, fc3 */
	assert_int_equal(whole_stage(&c.graph, 4, &stage, &err), HPS_BAD_INPUT);
	assert_non_null(strstr(err.msg, "fc3"));
	c.model.layer[5].input[0] = 4;
	nn_case_release(&c);
	hps_doc_free(golden);
}

/* --- losses at extremes, on logits given as dense features --- */

struct probe {
	struct small s;
	struct hps_stage *stage;
	struct hps_pass *pass;
};

/* Features go through a dense layer whose weights are the identity. */
static void probe_init(struct probe *p, const char *loss, int width)
{
	struct hps_err err;
	char json[512];

	snprintf(
		json, sizeof(json),
		"{\"name\":\"p\",\"inputs\":{\"slots\":0,\"dense\":%d},\"layers\":[{\"name\":\"z\","
		"\"op\":\"dense\",\"inputs\":[\"dense\"],\"units\":%d,\"bias\":false}],"
		"\"loss\":{\"kind\":\"%s\",\"inputs\":[\"z\"]}}",
		width, width, loss);
	small_init(&p->s, json);
	assert_int_equal(whole_stage(&p->s.g, 1, &p->stage, &err), HPS_OK);
	assert_int_equal(hps_pass_new(p->stage, &p->pass, &err), HPS_OK);
}

static void probe_release(struct probe *p)
{
	hps_pass_free(p->pass);
	hps_stage_free(p->stage);
	small_release(&p->s);
}

/* Loss of one row; the gradient of the logits is that of W, x being 1 where z is read. */
static double probe_run(struct probe *p, const float *z, float y, float *score, float *dz)
{
	static const float eye1[1] = { 1 }, eye2[4] = { 1, 0, 0, 1 };
	uint32_t n = p->s.m.dense;
	struct hps_stage_in in = { .rows = 1, .label = &y, .dense = z };
	const float *w = n == 1 ? eye1 : eye2;
	float grads[4] = { 0 };
	struct hps_err err;

	assert_int_equal(hps_pass_begin(p->pass, &in, &err), HPS_OK);
	hps_pass_forward(p->pass, w, true);
	hps_pass_backward(p->pass, w, NULL, grads);
	*score = hps_pass_scores(p->pass)[0];
	for (uint32_t j = 0; j < n; j++)
		dz[j] = grads[j]; /* dW[0][j] = z[0] dz[j] */
	return hps_pass_loss(p->pass);
}

static void test_sigmoid_extremes(void **state)
{
	struct probe p;
	float score, dz;

	probe_init(&p, "sigmoid_cross_entropy", 1);
	for (float z = -200; z <= 200; z += 12.5f)
		for (int y = 0; y < 2; y++) {
			long double e = expl(-(long double)z);
			double want = (double)(y ? log1pl(e) : (long double)z + log1pl(e));
			double sigma = (double)(1 / (1 + e));

			if (y == 0)
				want = (double)log1pl(expl((long double)z));
			assert_true(fabs(probe_run(&p, &z, (float)y, &score, &dz) - want) <=
				    1e-12 * want);
			assert_true(fabs(score - sigma) <= 1e-7 * sigma + 1e-45);
			want = z * (y ? -1 / (1 + exp((double)z)) : sigma);
			assert_true(fabs(dz - want) <= 1e-6 * fabs(want) + 1e-42);
		}
	for (int y = 0; y < 2; y++) {
		float z = NAN;

		assert_true(isnan(probe_run(&p, &z, (float)y, &score, &dz)));
		assert_true(isnan(score));
		z = y ? -3e38f : 3e38f;
		assert_true(probe_run(&p, &z, (float)y, &score, &dz) > 1e38);
		z = y ? -INFINITY : INFINITY;
		assert_false(isfinite(probe_run(&p, &z, (float)y, &score, &dz)));
	}
	probe_release(&p);
}

static void test_softmax_extremes(void **state)
{
	struct probe p;
	float score, dz[2], z[2];

	probe_init(&p, "softmax_cross_entropy", 2);
	for (float d = -300; d <= 300; d += 12.5f)
		for (int y = 0; y < 2; y++) {
			double p1 = 1 / (1 + exp(-(double)d)), other = 1 / (1 + exp((double)d));
			double want = y ? log1p(exp(-(double)d)) : log1p(exp((double)d));

			if (y ? d < -100 : d > 100)
				want = fabs(d);
			z[0] = 1;
			z[1] = 1 + d;
			assert_true(fabs(probe_run(&p, z, (float)y, &score, dz) - want) <=
				    1e-12 * want);
			assert_true(fabs(score - p1) <= 1e-7 * p1 + 1e-45);
			assert_true(fabs(dz[1] - (y ? -other : p1)) <= 1e-6 * fabs(dz[1]) + 1e-45);
			assert_true(dz[0] == -dz[1]);
		}
	for (int i = 0; i < 2; i++) {
		z[i] = NAN;
		z[1 - i] = 1;
		assert_true(isnan(probe_run(&p, z, 1, &score, dz)));
		assert_true(isnan(probe_run(&p, z, 0, &score, dz)));
	}
	probe_release(&p);
}

/* NaN in one parameter or row reaches the loss of every model. */
static void test_nan_reaches_the_loss(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");

	for (size_t i = 0; i < nn_golden_count(golden); i++) {
		struct nn_run run;
		struct nn_case c;
		uint32_t last;

		nn_case_init(&c, golden, i);
		last = c.model.n_layers - 1;
		for (uint64_t k = 0; k < c.graph.n_floats; k++) {
			float keep = c.params[k];

			c.params[k] = NAN;
			nn_case_run(&c, &last, 1, c.rows, c.rows, &run);
			if (!isnan(run.loss))
				fail_msg("%s: parameter %llu is NaN, the loss %g", c.model.name,
					 (unsigned long long)k, run.loss);
			nn_run_release(&run);
			c.params[k] = keep;
		}
		for (uint32_t r = 0; r < c.rows && c.model.dense > 0; r++) {
			float keep = c.dense[r * c.model.dense];

			c.dense[r * c.model.dense] = NAN;
			nn_case_run(&c, &last, 1, c.rows, c.rows, &run);
			/* hinge and nce look at rows whose label is 1 */
			if (c.model.loss.kind <= HPS_LOSS_SOFTMAX_CE || c.label[r] > 0)
				assert_true(isnan(run.loss));
			nn_run_release(&run);
			c.dense[r * c.model.dense] = keep;
		}
		nn_case_release(&c);
	}
	hps_doc_free(golden);
}

/* Without a positive row hinge and nce have no loss and no gradient, but scores. */
static void test_negative_rows_do_not_count(void **state)
{
	static const char *const names[] = { "matchnet", "negatives", "nce" };
	struct hps_doc *golden = nn_golden("nn.json");

	for (size_t i = 0; i < 3; i++) {
		struct nn_run run, before;
		struct nn_case c;
		uint32_t last;

		named(&c, golden, names[i]);
		last = c.model.n_layers - 1;
		nn_case_run(&c, &last, 1, c.rows, c.rows, &before);
		assert_true(before.loss > 0);
		memset(c.label, 0, c.rows * sizeof(*c.label));
		nn_case_run(&c, &last, 1, c.rows, c.rows, &run);
		assert_true(run.loss == 0);
		assert_memory_equal(run.scores, before.scores, c.rows * sizeof(float));
		for (uint64_t k = 0; k < c.graph.n_floats; k++)
			assert_true(run.grads[k] == 0);
		for (uint32_t l = 0; l < run.n_lookups; l++)
			for (uint32_t k = 0; k < run.lookup[l].n * run.lookup[l].dim; k++)
				assert_true(run.lookup[l].grad[k] == 0);
		nn_run_release(&run);
		nn_run_release(&before);
		nn_case_release(&c);
	}
	hps_doc_free(golden);
}

/* A vector of zeros has no direction: cosine 0, and no gradient, not an infinite one. */
static void test_cosine_of_nothing(void **state)
{
	static const char json[] =
		"{\"name\":\"c\",\"inputs\":{\"slots\":2,\"dense\":0},"
		"\"tables\":[{\"name\":\"t\",\"dim\":3},{\"name\":\"u\",\"dim\":3}],"
		"\"layers\":[{\"name\":\"a\",\"op\":\"embedding\",\"table\":\"t\",\"slots\":[0]},"
		"{\"name\":\"b\",\"op\":\"embedding\",\"table\":\"u\",\"slots\":[1]},"
		"{\"name\":\"c\",\"op\":\"cosine\",\"inputs\":[\"a\",\"b\"]}],"
		"\"loss\":{\"kind\":\"sigmoid_cross_entropy\",\"inputs\":[\"c\"]}}";
	static const uint32_t slot[2] = { 0, 1 };
	uint64_t key[2] = { 5, 6 };
	float label = 1;
	struct hps_stage_in in = { 1, NULL, &label, NULL, key, slot, 2, NULL, 0, 0 };
	struct hps_stage *stage;
	struct hps_pass *pass;
	struct hps_err err;
	struct small s;

	small_init(&s, json);
	assert_int_equal(whole_stage(&s.g, 1, &stage, &err), HPS_OK);
	assert_int_equal(hps_pass_new(stage, &pass, &err), HPS_OK);
	for (int zero = 0; zero < 2; zero++) {
		assert_int_equal(hps_pass_begin(pass, &in, &err), HPS_OK);
		for (int d = 0; d < 3; d++) {
			hps_pass_lookup(pass, zero)->unique[d] = 0;
			hps_pass_lookup(pass, 1 - zero)->unique[d] = 3e30f; /* squares overflow */
		}
		hps_pass_forward(pass, NULL, true);
		assert_true(hps_pass_scores(pass)[0] == 0.5f);
		hps_pass_backward(pass, NULL, NULL, NULL);
		for (int d = 0; d < 3; d++)
			assert_true(hps_pass_lookup(pass, 0)->grad[d] == 0 &&
				    hps_pass_lookup(pass, 1)->grad[d] == 0);
	}
	hps_pass_free(pass);
	hps_stage_free(stage);
	small_release(&s);
}

/* --- passes --- */

static void begin_and_forward(const struct nn_case *c, struct hps_stage *stage, struct hps_pass *p,
			      const struct hps_stage_in *in)
{
	struct hps_err err;

	assert_int_equal(hps_pass_begin(p, in, &err), HPS_OK);
	nn_case_fill(c, p, hps_stage_n_lookups(stage));
	hps_pass_forward(p, c->params, true);
}

/* Two micro-batches in flight give what each gives alone; gradients add up. */
static void test_passes_in_flight(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");
	struct hps_stage_in in[2];
	struct hps_pass *p[2];
	struct hps_stage *stage;
	struct hps_err err;
	struct nn_case c;
	uint64_t *key[2];
	double alone[2];
	float *one, *both;

	named(&c, golden, "tangle");
	one = calloc(c.graph.n_floats, sizeof(*one));
	both = calloc(c.graph.n_floats, sizeof(*both));
	assert_non_null(one);
	assert_non_null(both);
	assert_int_equal(whole_stage(&c.graph, c.rows, &stage, &err), HPS_OK);
	assert_int_equal(hps_stage_n_floats(stage), c.graph.n_floats);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hps_pass_new(stage, &p[i], &err), HPS_OK);
		in[i] = nn_case_input(&c, 0, c.rows - (uint32_t)i * 3, NULL, &key[i]);
	}
	for (int i = 0; i < 2; i++) {
		begin_and_forward(&c, stage, p[0], &in[i]);
		alone[i] = hps_pass_loss(p[0]);
		hps_pass_backward(p[0], c.params, NULL, one);
	}
	for (int i = 0; i < 2; i++)
		begin_and_forward(&c, stage, p[i], &in[i]);
	for (int i = 0; i < 2; i++) {
		assert_true(hps_pass_loss(p[i]) == alone[i]);
		hps_pass_backward(p[i], c.params, NULL, both);
	}
	assert_memory_equal(one, both, c.graph.n_floats * sizeof(*one));
	for (int i = 0; i < 2; i++) {
		hps_pass_free(p[i]);
		free(key[i]);
	}
	hps_stage_free(stage);
	free(one);
	free(both);
	nn_case_release(&c);
	hps_doc_free(golden);
}

/* Threads share a stage; each has a pass. */
struct worker {
	const struct nn_case *c;
	struct hps_stage *stage;
	double loss;
	float *grads;
	bool same;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct hps_stage_in in;
	struct hps_pass *p;
	uint64_t *key;

	w->same = false;
	if (hps_pass_new(w->stage, &p, NULL) != HPS_OK)
		return NULL;
	in = nn_case_input(w->c, 0, w->c->rows, NULL, &key);
	w->same = true;
	for (int i = 0; i < 50; i++) {
		if (hps_pass_begin(p, &in, NULL) != HPS_OK)
			w->same = false;
		nn_case_fill(w->c, p, hps_stage_n_lookups(w->stage));
		hps_pass_forward(p, w->c->params, true);
		memset(w->grads, 0, w->c->graph.n_floats * sizeof(float));
		hps_pass_backward(p, w->c->params, NULL, w->grads);
		if (hps_pass_loss(p) != w->loss)
			w->same = false;
	}
	hps_pass_free(p);
	free(key);
	return NULL;
}

static void test_threads(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");
	struct worker w[3];
	pthread_t thread[3];
	struct hps_stage *stage;
	struct hps_err err;
	struct nn_case c;
	struct nn_run run;
	uint32_t last;

	named(&c, golden, "tangle");
	last = c.model.n_layers - 1;
	nn_case_run(&c, &last, 1, c.rows, c.rows, &run);
	assert_int_equal(whole_stage(&c.graph, c.rows, &stage, &err), HPS_OK);
	for (int i = 0; i < 3; i++) {
		w[i] = (struct worker){ &c, stage, run.loss, NULL, false };
		w[i].grads = calloc(c.graph.n_floats, sizeof(float));
		assert_non_null(w[i].grads);
		assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_true(w[i].same);
		assert_memory_equal(w[i].grads, run.grads, c.graph.n_floats * sizeof(float));
		free(w[i].grads);
	}
	hps_stage_free(stage);
	nn_run_release(&run);
	nn_case_release(&c);
	hps_doc_free(golden);
}

/* What depends on nothing trainable gets zeros back, whatever lay there before. */
static void test_untrainable_input(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");
	struct hps_stage *stage;
	struct hps_pass *pass;
	struct hps_err err;
	struct nn_case c;
	float activation[7 * 22], grads[64] = { 0 };

	named(&c, golden, "dense-features");
	for (int i = 0; i < 7 * 22; i++)
		activation[i] = nn_pseudo(9, (uint32_t)i, 0);
	assert_int_equal(hps_stage_new(&c.graph, 2, 3, hps_backend_openblas(), 7, &stage, &err),
			 HPS_OK);
	assert_int_equal(hps_pass_new(stage, &pass, &err), HPS_OK);
	for (uint32_t rows = 7; rows > 0; rows--) {
		struct hps_stage_in in;
		uint64_t *key, n;
		const float *back;

		in = nn_case_input(&c, 2, rows, activation, &key);
		begin_and_forward(&c, stage, pass, &in);
		hps_pass_backward(pass, c.params + hps_stage_param_offset(stage), NULL, grads);
		back = hps_pass_input_grad(pass, &n);
		assert_int_equal(n, rows * 22); /* h (19), then s (3), a slice of the features */
		for (uint32_t i = 0; i < rows * 22; i++)
			assert_int_equal(back[i] == 0, i >= rows * 19);
		free(key);
	}
	hps_pass_free(pass);
	hps_stage_free(stage);
	nn_case_release(&c);
	hps_doc_free(golden);
}

/* Evaluation: the same loss and scores as in training. */
static void test_without_training(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");

	for (size_t i = 0; i < nn_golden_count(golden); i++) {
		struct hps_stage *stage;
		struct hps_stage_in in;
		struct hps_pass *pass;
		struct hps_err err;
		struct nn_case c;
		struct nn_run run;
		uint64_t *key;
		uint32_t last;

		nn_case_init(&c, golden, i);
		last = c.model.n_layers - 1;
		nn_case_run(&c, &last, 1, c.rows, c.rows, &run);
		assert_int_equal(whole_stage(&c.graph, c.rows, &stage, &err), HPS_OK);
		assert_int_equal(hps_pass_new(stage, &pass, &err), HPS_OK);
		in = nn_case_input(&c, 0, c.rows, NULL, &key);
		assert_int_equal(hps_pass_begin(pass, &in, &err), HPS_OK);
		nn_case_fill(&c, pass, hps_stage_n_lookups(stage));
		hps_pass_forward(pass, c.params, false);
		assert_true(hps_pass_loss(pass) == run.loss);
		assert_memory_equal(hps_pass_scores(pass), run.scores, c.rows * sizeof(float));
		hps_pass_free(pass);
		hps_stage_free(stage);
		free(key);
		nn_run_release(&run);
		nn_case_release(&c);
	}
	hps_doc_free(golden);
}

/* The profiler's way: layer by layer forward is the whole forward; any layer's backward may
 * be repeated, and nothing becomes denormal or infinite.
 */
static void test_layers_alone(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");

	for (size_t i = 0; i < nn_golden_count(golden); i++) {
		struct hps_stage *stage;
		struct hps_stage_in in;
		struct hps_pass *pass;
		struct hps_err err;
		struct nn_case c;
		uint64_t *key;
		float *grads;
		double loss;

		nn_case_init(&c, golden, i);
		grads = calloc(c.graph.n_floats + 1, sizeof(*grads));
		assert_non_null(grads);
		for (uint32_t l = 0; l < c.model.n_layers; l++)
			free(c.drawn[l]), c.drawn[l] = NULL; /* run_layer draws anew */
		assert_int_equal(whole_stage(&c.graph, c.rows, &stage, &err), HPS_OK);
		assert_int_equal(hps_pass_new(stage, &pass, &err), HPS_OK);
		in = nn_case_input(&c, 0, c.rows, NULL, &key);
		begin_and_forward(&c, stage, pass, &in);
		loss = hps_pass_loss(pass);
		hps_pass_backward(pass, c.params, NULL, grads);
		for (uint32_t l = 0; l < hps_stage_n_lookups(stage); l++)
			hps_pass_lookup(pass, l)->n_unique = 0;
		for (uint32_t l = 0; l < c.model.n_layers; l++)
			hps_pass_run_layer(pass, l, c.params, grads, false);
		for (uint32_t l = 0; l < hps_stage_n_lookups(stage); l++)
			assert_true(hps_pass_lookup(pass, l)->n_unique > 0);
		assert_true(hps_pass_loss(pass) == loss);
		for (uint32_t l = c.model.n_layers; l-- > 0;)
			for (int repeat = 0; repeat < 100; repeat++)
				hps_pass_run_layer(pass, l, c.params, grads, true);
		for (uint64_t k = 0; k < c.graph.n_floats; k++)
			assert_true(isfinite(grads[k]));
		memset(grads, 0, c.graph.n_floats * sizeof(*grads));
		for (uint32_t l = 0; l < c.model.n_layers; l++)
			if (c.model.layer[l].act >= HPS_ACT_SIGMOID) {
				float most = 0;

				hps_pass_run_layer(pass, l, c.params, grads, true);
				for (uint64_t k = c.graph.layer_offset[l];
				     k < c.graph.layer_offset[l + 1]; k++)
					most = fmaxf(most, fabsf(grads[k]));
				assert_true(most > 1e-12f);
			}
		hps_pass_free(pass);
		hps_stage_free(stage);
		free(key);
		free(grads);
		nn_case_release(&c);
	}
	hps_doc_free(golden);
}

static void test_no_memory(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");
	struct nn_case c;
	unsigned long n = 0;
	bool done = false;

	named(&c, golden, "tangle");
	while (!done) {
		struct hps_stage *stage = NULL;
		struct hps_pass *pass = NULL;
		struct hps_err err = { 0 };
		enum hps_status status;

		hps_mem_fail_at(++n);
		status = hps_stage_new(&c.graph, 1, 8, hps_backend_openblas(), 5, &stage, &err);
		if (status == HPS_OK)
			status = hps_pass_new(stage, &pass, &err);
		hps_mem_fail_at(0);
		done = status == HPS_OK;
		if (!done) {
			assert_int_equal(status, HPS_MEMORY);
			assert_int_equal(err.status, HPS_MEMORY);
		}
		hps_pass_free(pass);
		hps_stage_free(stage);
	}
	assert_true(n > 20);
	nn_case_release(&c);
	hps_doc_free(golden);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dedup),
		cmocka_unit_test(test_negatives_follow_the_row),
		cmocka_unit_test(test_missing_input),
		cmocka_unit_test(test_wrong_stages),
		cmocka_unit_test(test_wrong_losses),
		cmocka_unit_test(test_sigmoid_extremes),
		cmocka_unit_test(test_softmax_extremes),
		cmocka_unit_test(test_nan_reaches_the_loss),
		cmocka_unit_test(test_negative_rows_do_not_count),
		cmocka_unit_test(test_cosine_of_nothing),
		cmocka_unit_test(test_passes_in_flight),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_untrainable_input),
		cmocka_unit_test(test_without_training),
		cmocka_unit_test(test_layers_alone),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
