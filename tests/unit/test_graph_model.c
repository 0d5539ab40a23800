/* The graph: parameters of the papers' models, costs and cuts counted by hand, and initial
 * values that depend on nothing but what they belong to. */
#include "cm.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "graph/graph.h"
#include "job_case.h"

struct fixture {
	struct hps_model m;
	struct hps_graph g;
};

static void build(struct fixture *f)
{
	struct hps_err err = { 0 };

	if (hps_graph_build(&f->m, &f->g, &err))
		fail_msg("%s", err.msg);
}

static void load(struct fixture *f, const char *name)
{
	struct hps_err err = { 0 };
	char file[64], path[512];

	snprintf(file, sizeof(file), "models/%s.json", name);
	job_case_path(file, path, sizeof(path));
	if (hps_model_load(path, &f->m, &err))
		fail_msg("%s: %s", err.where, err.msg);
	build(f);
}

static void load_text(struct fixture *f, const char *text)
{
	struct hps_doc *d = job_case_parse(text);
	struct hps_at at = hps_at_root(d, "t");
	struct hps_err err = { 0 };

	if (hps_model_read(&at, &f->m, &err))
		fail_msg("%s: %s", err.where, err.msg);
	hps_doc_free(d);
	build(f);
}

static void release(struct fixture *f)
{
	hps_graph_release(&f->g);
	hps_model_release(&f->m);
}

static uint32_t layer(const struct fixture *f, const char *name)
{
	for (uint32_t i = 0; i < f->m.n_layers; i++)
		if (!strcmp(f->m.layer[i].name, name))
			return i;
	fail_msg("no layer %s", name);
	return 0;
}

/* --- dense parameters --- */

static void test_published_parameters(void **state)
{
	static const struct {
		const char *model;
		uint64_t params;
	} published[] = { { "ctrdnn", 431202 }, { "matchnet", 571350 }, { "2emb", 296942 } };

	for (size_t i = 0; i < sizeof(published) / sizeof(*published); i++) {
		struct fixture f;

		load(&f, published[i].model);
		assert_int_equal(f.g.n_floats, published[i].params);
		assert_int_equal(f.g.layer_offset[f.m.n_layers], published[i].params);
		release(&f);
	}
}

/* W before b, layer after layer, without a gap. */
static void test_parameter_layout(void **state)
{
	struct fixture f;

	load(&f, "ctrdnn");
	assert_int_equal(f.g.n_params, 8);
	assert_int_equal(f.g.param[0].layer, layer(&f, "fc1"));
	assert_string_equal(f.g.param[0].suffix, "W");
	assert_int_equal(f.g.param[0].rows, 273);
	assert_int_equal(f.g.param[0].cols, 400);
	assert_int_equal(f.g.param[0].offset, 0);
	assert_string_equal(f.g.param[1].suffix, "b");
	assert_int_equal(f.g.param[1].rows, 1);
	assert_int_equal(f.g.param[1].cols, 400);
	assert_int_equal(f.g.param[1].offset, 273 * 400);
	assert_int_equal(f.g.param[2].offset, 273 * 400 + 400);
	assert_int_equal(f.g.layer_offset[0], 0);
	assert_int_equal(f.g.layer_offset[layer(&f, "fc1")], 0);
	assert_int_equal(f.g.layer_offset[layer(&f, "fc2")], 109600);
	assert_int_equal(f.g.layer_offset[layer(&f, "out")], 430400);
	release(&f);

	load(&f, "narrow/shared"); /* "gate" has no bias */
	for (uint32_t p = 0; p < f.g.n_params; p++)
		if (f.g.param[p].layer == layer(&f, "gate"))
			assert_string_equal(f.g.param[p].suffix, "W");
	release(&f);

	load(&f, "nce"); /* no dense parameters at all */
	assert_int_equal(f.g.n_params, 0);
	assert_int_equal(f.g.n_floats, 0);
	release(&f);
}

/* --- costs --- */

static void check_cost(const struct fixture *f, const char *name, uint64_t params, uint64_t forward,
		       uint64_t backward, uint64_t keys, uint64_t output_bytes, uint64_t row_bytes)
{
	const struct hps_layer_cost *c = &f->g.cost[layer(f, name)];

	if (c->params != params || c->flops_forward != forward || c->flops_backward != backward ||
	    c->keys != keys || c->output_bytes != output_bytes || c->row_bytes != row_bytes)
		fail_msg("%s: params %llu, FLOPs %llu and %llu, keys %llu, output %llu, rows %llu",
			 name, (unsigned long long)c->params, (unsigned long long)c->flops_forward,
			 (unsigned long long)c->flops_backward, (unsigned long long)c->keys,
			 (unsigned long long)c->output_bytes, (unsigned long long)c->row_bytes);
}

static void test_costs(void **state)
{
	struct fixture f;

	load(&f, "ctrdnn");
	check_cost(&f, "emb", 0, 0, 260, 26, 1040, 1040);
	check_cost(&f, "in", 0, 0, 0, 0, 1092, 0);
	/* 2*273*400 + 400 bias + 400 relu; twice that product: the embedding below learns */
	check_cost(&f, "fc1", 109600, 219200, 437600, 0, 1600, 0);
	check_cost(&f, "out", 802, 1602, 3202, 0, 8, 0);
	release(&f);

	load(&f, "matchnet");
	check_cost(&f, "neg_emb", 0, 0, 200, 20, 800, 800);
	check_cost(&f, "pos", 0, 304, 408, 0, 4, 0);
	release(&f);

	/* sum: 24 adds of 10; mean of 3 by 4: 2 adds and a scaling of 4 */
	load(&f, "nce");
	check_cost(&f, "hidden", 0, 240, 250, 25, 40, 1000);
	check_cost(&f, "target", 0, 0, 10, 1, 40, 40);
	check_cost(&f, "noise", 0, 0, 100, 10, 400, 400);
	release(&f);
	load(&f, "narrow/shared");
	check_cost(&f, "total", 0, 8, 12, 3, 16, 48);
	check_cost(&f, "mean", 0, 12, 24, 3, 16, 48);
	check_cost(&f, "drawn", 0, 6, 12, 2, 12, 24);
	check_cost(&f, "part", 0, 0, 0, 0, 76, 0);
	/* 19 -> 11 without bias, sigmoid */
	check_cost(&f, "gate", 209, 418 + 44, 836 + 44, 0, 44, 0);
	release(&f);
}

/* Nothing below the first layer learns: its input needs no gradient. */
static void test_costs_without_input_gradient(void **state)
{
	struct fixture f;

	load_text(&f,
		  "{ \"name\": \"m\", \"inputs\": { \"dense\": 6 }, \"layers\": [\n"
		  "{ \"name\": \"s\", \"op\": \"slice\", \"inputs\": [\"dense\"], \"size\": 5 },\n"
		  "{ \"name\": \"a\", \"op\": \"dense\", \"inputs\": [\"s\"], \"units\": 3 },\n"
		  "{ \"name\": \"o\", \"op\": \"dense\", \"inputs\": [\"a\"], \"units\": 1,\n"
		  "  \"activation\": \"tanh\" } ],\n"
		  "\"loss\": { \"kind\": \"sigmoid_cross_entropy\", \"inputs\": [\"o\"] } }");
	check_cost(&f, "a", 18, 33, 33, 0, 12, 0);
	check_cost(&f, "o", 4, 6 + 1 + 4, 12 + 1 + 4, 0, 4, 0);
	release(&f);
}

/* --- cuts --- */

/* What crosses after layer `after`: names of layers, slots, dense, by hand. */
struct cut_case {
	const char *model, *after, *layers;
	int dense;
	uint32_t n_slots, first_slot;
	uint64_t cols, forward, backward;
};

static const struct cut_case cuts[] = {
	/* 26 * 10 floats, 13 dense features, row and label */
	{ "ctrdnn", "emb", "emb", 1, 0, 0, 260, 1040 + 52 + 12, 1040 },
	{ "ctrdnn", "in", "in", 0, 0, 0, 273, 1092 + 12, 1092 },
	{ "ctrdnn", "fc1", "fc1", 0, 0, 0, 400, 1600 + 12, 1600 },
	{ "ctrdnn", "out", "", 0, 0, 0, 0, 0, 0 },
	/* the item tower and the negatives still need 14 slots and the dense features */
	{ "matchnet", "user_emb", "user_emb", 1, 14, 12, 120, 480 + 52 + 112 + 12, 480 },
	{ "matchnet", "user3", "user3", 1, 14, 12, 50, 200 + 52 + 112 + 12, 200 },
	{ "matchnet", "item_emb", "user3 item_emb", 1, 0, 0, 190, 760 + 52 + 12, 760 },
	{ "matchnet", "item_in", "user3 item_in", 0, 0, 0, 203, 812 + 12, 812 },
	/* the loss reads pos; the user's vector is read by both cosines; negatives are drawn
	 * where they are needed, so only what was computed from them travels */
	{ "matchnet", "pos", "user3 pos", 0, 0, 0, 51, 204 + 12, 204 },
	{ "matchnet", "neg_emb", "user3 pos neg_emb", 0, 0, 0, 251, 1004 + 12, 1004 },
	{ "matchnet", "neg2", "user3 pos neg2", 0, 0, 0, 101, 404 + 12, 404 },
	/* slots 0-4 are looked up twice, in both tables */
	{ "2emb", "big_emb", "big_emb", 1, 5, 0, 260, 1040 + 52 + 40 + 12, 1040 },
	{ "2emb", "big3", "big3", 0, 5, 0, 50, 200 + 40 + 12, 200 },
	{ "2emb", "small_emb", "big3 small_emb", 0, 0, 0, 100, 400 + 12, 400 },
	{ "2emb", "both", "both", 0, 0, 0, 178, 712 + 12, 712 },
	{ "nce", "hidden", "hidden", 0, 1, 25, 10, 40 + 8 + 12, 40 },
	{ "nce", "target", "hidden target", 0, 0, 0, 20, 80 + 12, 80 },
	/* "total" is read again by "join", long after; slot 2 feeds two tables' embeddings */
	{ "narrow/shared", "total", "total", 1, 6, 1, 4, 16 + 12 + 48 + 12, 16 },
	{ "narrow/shared", "in", "total in", 0, 0, 0, 32, 128 + 12, 128 },
	{ "narrow/shared", "part", "total in part", 0, 0, 0, 51, 204 + 12, 204 },
	{ "narrow/shared", "side", "total gate side", 0, 0, 0, 23, 92 + 12, 92 },
};

static void check_cut(const struct fixture *f, const struct cut_case *c)
{
	const struct hps_cut *cut = &f->g.cut[layer(f, c->after)];
	char layers[256] = "";

	for (uint32_t i = 0; i < cut->n_layers; i++) {
		strcat(layers, i ? " " : "");
		strcat(layers, f->m.layer[cut->layer[i]].name);
	}
	if (strcmp(layers, c->layers))
		fail_msg("%s after %s: \"%s\" cross, not \"%s\"", c->model, c->after, layers,
			 c->layers);
	assert_int_equal(cut->dense, c->dense);
	assert_int_equal(cut->n_slots, c->n_slots);
	if (c->n_slots)
		assert_int_equal(cut->slot[0], c->first_slot);
	for (uint32_t i = 1; i < cut->n_slots; i++)
		assert_true(cut->slot[i] > cut->slot[i - 1]);
	if (cut->cols != c->cols || cut->forward_bytes != c->forward ||
	    cut->backward_bytes != c->backward)
		fail_msg("%s after %s: %llu columns, %llu and %llu bytes", c->model, c->after,
			 (unsigned long long)cut->cols, (unsigned long long)cut->forward_bytes,
			 (unsigned long long)cut->backward_bytes);
}

static void test_cuts(void **state)
{
	for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		struct fixture f;

		load(&f, cuts[i].model);
		check_cut(&f, &cuts[i]);
		release(&f);
	}
}

/* A layer that both a later layer and the loss read crosses every cut from it on. */
static void test_cut_loss(void **state)
{
	struct fixture f;

	load_text(&f,
		  "{ \"name\": \"m\", \"inputs\": { \"dense\": 2 }, \"layers\": [\n"
		  "{ \"name\": \"p\", \"op\": \"dense\", \"inputs\": [\"dense\"], \"units\": 1 },\n"
		  "{ \"name\": \"q\", \"op\": \"dense\", \"inputs\": [\"p\"], \"units\": 3 },\n"
		  "{ \"name\": \"n\", \"op\": \"dense\", \"inputs\": [\"q\"], \"units\": 1 } ],\n"
		  "\"loss\": { \"kind\": \"hinge\", \"inputs\": [\"p\", \"n\"] } }");
	check_cut(&f, &(struct cut_case){ "m", "p", "p", 0, 0, 0, 1, 4 + 12, 4 });
	check_cut(&f, &(struct cut_case){ "m", "q", "p q", 0, 0, 0, 4, 16 + 12, 16 });
	check_cut(&f, &(struct cut_case){ "m", "n", "", 0, 0, 0, 0, 0, 0 });
	release(&f);
}

/* --- initial values --- */

static void test_param_init(void **state)
{
	struct fixture f;
	float *all, *part, limit = (float)sqrt(6.0 / (23 + 9));
	double sum = 0, squares = 0;
	uint64_t n;

	load(&f, "narrow/ctrdnn");
	n = f.g.n_floats;
	all = malloc(n * sizeof(*all));
	part = malloc(n * sizeof(*part));
	assert_non_null(all);
	assert_non_null(part);
	hps_param_init_range(&f.g, 0, n, 5, all);
	/* Any run of floats, across tensors too, has the same values. */
	for (uint64_t first = 0; first < n; first += 13) {
		for (uint64_t len = 1; first + len <= n; len += 29) {
			memset(part, 0x7f, n * sizeof(*part));
			hps_param_init_range(&f.g, first, len, 5, part);
			assert_memory_equal(part, all + first, len * sizeof(*part));
			if (len < n) /* and nothing beyond the run is written */
				assert_int_equal(((unsigned char *)(part + len))[0], 0x7f);
		}
	}
	hps_param_init_range(&f.g, 0, 0, 5, part);
	/* Glorot: uniform within the limit, variance limit^2 / 3; biases are 0. */
	for (uint64_t e = 0; e < 23 * 9; e++) {
		assert_true(fabsf(all[e]) <= limit);
		sum += all[e];
		squares += (double)all[e] * all[e];
	}
	assert_true(fabs(sum / 207) < 0.25 * limit);
	assert_true(squares / 207 > 0.25 * limit * limit && squares / 207 < 0.42 * limit * limit);
	for (uint64_t e = 23 * 9; e < 24 * 9; e++)
		assert_true(all[e] == 0);
	/* Another seed, another tensor: other values. */
	assert_true(all[f.g.param[2].offset] != all[0] * limit);
	hps_param_init_range(&f.g, 0, n, 6, part);
	assert_true(part[0] != all[0]);
	assert_memory_not_equal(part, all, n * sizeof(*part));
	free(all);
	free(part);
	release(&f);
}

static void test_row_init(void **state)
{
	struct hps_table_spec t = { .dim = 64, .init = HPS_INIT_UNIFORM, .init_scale = 0.5 };
	float a[64], b[64];
	double sum = 0, squares = 0;

	hps_row_init(&t, 1, UINT64_MAX, 5, a);
	hps_row_init(&t, 1, UINT64_MAX, 5, b);
	assert_memory_equal(a, b, sizeof(a));
	hps_row_init(&t, 1, 0, 5, b);
	assert_memory_not_equal(a, b, sizeof(a));
	hps_row_init(&t, 2, UINT64_MAX, 5, b);
	assert_memory_not_equal(a, b, sizeof(a));
	hps_row_init(&t, 1, UINT64_MAX, 6, b);
	assert_memory_not_equal(a, b, sizeof(a));
	for (uint64_t key = 0; key < 100; key++) {
		hps_row_init(&t, 0, key, 1, a);
		for (int j = 0; j < 64; j++) {
			assert_true(a[j] >= -0.5f && a[j] < 0.5f);
			sum += a[j];
			squares += (double)a[j] * a[j];
		}
	}
	assert_true(fabs(sum / 6400) < 0.015); /* 4 standard errors */
	assert_true(fabs(squares / 6400 - 0.25 / 3) < 0.005);
	t.init = HPS_INIT_ZERO;
	hps_row_init(&t, 1, 3, 5, a);
	for (int j = 0; j < 64; j++)
		assert_true(a[j] == 0);
}

/* Drawn by (seed, epoch, layer, row, i), evenly over the rows. */
static void test_negatives(void **state)
{
	uint64_t key = hps_negative_key(1, 0, 2, 77, 3, 1000);
	int count[10] = { 0 };
	bool other = false;

	assert_true(key < 1000);
	assert_int_equal(hps_negative_key(1, 0, 2, 77, 3, 1000), key);
	/* Each of the five changes it, for some draw. */
	for (int what = 0; what < 5; what++, other = false) {
		for (uint32_t i = 0; i < 8; i++)
			other |= hps_negative_key(1 + (what == 0), what == 1, 2 + (what == 2),
						  77 + (what == 3), i + (what == 4),
						  1000) != hps_negative_key(1, 0, 2, 77, i, 1000);
		assert_true(other);
	}
	for (uint64_t row = 0; row < 1000; row++)
		for (uint32_t i = 0; i < 10; i++)
			count[hps_negative_key(9, 1, 0, row, i, 10)]++;
	for (int k = 0; k < 10; k++)
		assert_true(count[k] > 850 && count[k] < 1150); /* 5 standard deviations */
	assert_int_equal(hps_negative_key(9, 1, 0, 5, 0, 1), 0);
}

static void test_keys(void **state)
{
	assert_true(hps_table_key(UINT64_MAX, 0) == UINT64_MAX);
	assert_true(hps_table_key(103, 50) == 3);
}

/* Every allocation of a build failing in turn. */
static void test_memory(void **state)
{
	struct fixture f;
	enum hps_status rc = HPS_MEMORY;
	unsigned long n = 0;

	load(&f, "narrow/shared");
	hps_graph_release(&f.g);
	while (rc) {
		struct hps_err err = { 0 };

		hps_mem_fail_at(++n);
		rc = hps_graph_build(&f.m, &f.g, &err);
		hps_mem_fail_at(0);
		if (rc) {
			assert_int_equal(rc, HPS_MEMORY);
			assert_int_equal(err.status, HPS_MEMORY);
			assert_null(f.g.cut);
		}
	}
	assert_true(n > 20);
	release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_parameters),
		cmocka_unit_test(test_parameter_layout),
		cmocka_unit_test(test_costs),
		cmocka_unit_test(test_costs_without_input_gradient),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_cut_loss),
		cmocka_unit_test(test_param_init),
		cmocka_unit_test(test_row_init),
		cmocka_unit_test(test_negatives),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
