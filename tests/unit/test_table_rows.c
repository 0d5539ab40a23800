/* The sparse table against a naive map of the same operations, its ceilings and its failures. */
#include "cm.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "table/table.h"

enum { DIM = 5, MAX_ROWS = 20000 };

static void init_row(void *ctx, uint64_t key, float *row)
{
	uint64_t seed = *(const uint64_t *)ctx;

	for (uint64_t j = 0; j < DIM; j++)
		row[j] = hps_unit_float(hps_hash3(seed, key, j));
}

static uint64_t seed = 11;

static struct hps_optim optim_of(enum hps_optim_rule rule)
{
	return (struct hps_optim){ .rule = rule,
				   .lr = 0.1f,
				   .accumulator = 0.1f,
				   .eps = 1e-8f,
				   .beta1 = 0.9f,
				   .beta2 = 0.999f };
}

static struct hps_table *new_table(enum hps_optim_rule rule, uint64_t max_rows, uint64_t max_bytes)
{
	struct hps_table_opts o = { .name = "emb",
				    .dim = DIM,
				    .optim = optim_of(rule),
				    .init = init_row,
				    .init_ctx = &seed,
				    .max_rows = max_rows,
				    .max_bytes = max_bytes };
	struct hps_table *t = NULL;

	assert_int_equal(hps_table_new(&o, &t, NULL), HPS_OK);
	return t;
}

/* --- the naive map: a list searched from its start, updated by the plain optimizer --- */

struct naive_row {
	uint64_t key;
	float w[DIM], state[2 * DIM];
	uint32_t freq, last;
};

struct naive {
	struct naive_row *row;
	size_t n;
	struct hps_optim optim;
};

static struct naive_row *naive_find(const struct naive *m, uint64_t key)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->row[i].key == key)
			return &m->row[i];
	return NULL;
}

static void naive_push(struct naive *m, uint64_t key, const float *g, uint64_t count, uint32_t step)
{
	struct naive_row *r = naive_find(m, key);

	if (!r) {
		r = &m->row[m->n++];
		memset(r, 0, sizeof(*r));
		r->key = key;
		init_row(&seed, key, r->w);
		hps_optim_state_init(&m->optim, r->state, DIM);
	}
	r->freq++;
	r->last = step;
	hps_optim_update_plain(&m->optim, r->w, r->state, DIM, g, count, r->freq, DIM);
}

/* Few enough keys that they repeat; among them the extremes and neighbours that collide. */
static uint64_t some_key(struct hps_rng *r)
{
	static const uint64_t special[] = { 0, UINT64_MAX, 1, 1ull << 63, UINT64_MAX - 1 };
	uint64_t k = hps_rng_below(r, 700);

	if (k < 5)
		return special[k];
	return k < 300 ? k : k < 500 ? k << 40 : hps_mix64(k);
}

static void compare_all(const struct hps_table *t, const struct naive *m)
{
	struct hps_table_stats s;

	hps_table_stats(t, &s);
	assert_int_equal(s.rows, m->n);
	for (size_t i = 0; i < m->n; i++) {
		float out[DIM];

		hps_table_pull(t, &m->row[i].key, 1, true, out);
		assert_memory_equal(out, m->row[i].w, sizeof(out));
	}
}

struct visited {
	const struct naive *m;
	size_t n;
};

static enum hps_status visit(void *ctx, uint64_t key, const float *row, uint32_t freq,
			     uint32_t last, struct hps_err *err)
{
	struct visited *v = ctx;
	const struct naive_row *r = naive_find(v->m, key);

	if (!r)
		return HPS_NO;
	assert_memory_equal(row, r->w, sizeof(r->w));
	assert_memory_equal(row + DIM, r->state, hps_optim_state_floats(&v->m->optim, DIM) * 4);
	assert_int_equal(freq, r->freq);
	assert_int_equal(last, r->last);
	v->n++;
	return HPS_OK;
}

static void push_some(struct hps_table *t, struct naive *m, struct hps_rng *r, uint32_t step)
{
	uint64_t key[150], count = 1 + hps_rng_below(r, 9);
	float grad[150 * DIM];
	size_t n = 0, want = hps_rng_below(r, 150);

	while (n < want) {
		bool there = false;

		key[n] = some_key(r);
		for (size_t i = 0; i < n; i++)
			there |= key[i] == key[n];
		if (there)
			break;
		for (size_t j = 0; j < DIM; j++)
			grad[n * DIM + j] = (float)hps_rng_normal(r);
		n++;
	}
	assert_int_equal(hps_table_push(t, key, grad, n, count, step, NULL), HPS_OK);
	for (size_t i = 0; i < n; i++)
		naive_push(m, key[i], grad + i * DIM, count, step);
}

static void pull_some(const struct hps_table *t, const struct naive *m, struct hps_rng *r)
{
	bool zeros = hps_rng_below(r, 2);
	uint64_t key[100];
	float out[100 * DIM];

	for (size_t i = 0; i < 100; i++)
		key[i] = some_key(r);
	hps_table_pull(t, key, 100, zeros, out);
	for (size_t i = 0; i < 100; i++) {
		const struct naive_row *row = naive_find(m, key[i]);
		float expect[DIM] = { 0 };

		if (row)
			memcpy(expect, row->w, sizeof(expect));
		else if (!zeros)
			init_row(&seed, key[i], expect);
		assert_memory_equal(out + i * DIM, expect, sizeof(expect));
	}
}

static void like_a_map(enum hps_optim_rule rule)
{
	struct hps_table *t = new_table(rule, 0, 0);
	struct naive m = { .row = calloc(1000, sizeof(*m.row)), .optim = optim_of(rule) };
	struct visited v = { &m, 0 };
	struct hps_rng r;

	hps_rng_init(&r, 5, rule);
	for (uint32_t step = 0; step < 60; step++) {
		pull_some(t, &m, &r);
		push_some(t, &m, &r, step);
	}
	compare_all(t, &m);
	assert_int_equal(hps_table_each(t, visit, &v, NULL), HPS_OK);
	assert_int_equal(v.n, m.n);
	assert_true(m.n > 400);
	free(m.row);
	hps_table_free(t);
}

static void sgd_like_a_map(void **state)
{
	like_a_map(HPS_RULE_SGD);
}

static void adagrad_like_a_map(void **state)
{
	like_a_map(HPS_RULE_ADAGRAD);
}

static void adam_like_a_map(void **state)
{
	like_a_map(HPS_RULE_ADAM);
}

static void a_pull_creates_nothing_and_no_samples_change_nothing(void **state)
{
	struct hps_table *t = new_table(HPS_RULE_ADAGRAD, 0, 0);
	struct hps_table_stats s;
	uint64_t key[2] = { 3, 4 };
	float out[2 * DIM], grad[2 * DIM] = { 1 };

	hps_table_pull(t, key, 2, false, out);
	assert_int_equal(hps_table_push(t, key, grad, 2, 0, 1, NULL), HPS_OK);
	hps_table_stats(t, &s);
	assert_int_equal(s.rows, 0);
	hps_table_free(t);
}

/* --- growth, saving, loading --- */

struct copy {
	struct hps_table *to;
};

static enum hps_status copy_row(void *ctx, uint64_t key, const float *row, uint32_t freq,
				uint32_t last, struct hps_err *err)
{
	struct copy *c = ctx;

	return hps_table_put(c->to, key, row, freq, last, err);
}

static enum hps_status stop_at_once(void *ctx, uint64_t key, const float *row, uint32_t freq,
				    uint32_t last, struct hps_err *err)
{
	++*(int *)ctx;
	return HPS_IO;
}

static void many_rows_survive_growth_and_copying(void **state)
{
	struct hps_table *t = new_table(HPS_RULE_ADAM, 0, 0), *u = new_table(HPS_RULE_ADAM, 0, 0);
	struct hps_table_stats s, su;
	float grad[DIM] = { 1, -1, 2, -2, 0.5f };
	uint64_t key = 0;
	int calls = 0;

	for (key = 0; key < MAX_ROWS; key++)
		assert_int_equal(hps_table_push(t, &key, grad, 1, 1, (uint32_t)key, NULL), HPS_OK);
	hps_table_stats(t, &s);
	assert_int_equal(s.rows, MAX_ROWS);
	assert_int_equal(s.refused, 0);
	assert_int_equal(hps_table_reserve(u, s.rows, NULL), HPS_OK);
	assert_int_equal(hps_table_each(t, copy_row, &(struct copy){ u }, NULL), HPS_OK);
	hps_table_stats(u, &su);
	assert_int_equal(su.rows, MAX_ROWS);
	assert_int_equal(su.bytes, s.bytes);
	for (key = 0; key < MAX_ROWS; key += 37) {
		float a[DIM], b[DIM];

		/* one more step: equal only if the optimizer's state came along */
		assert_int_equal(hps_table_push(t, &key, grad, 1, 2, 9, NULL), HPS_OK);
		assert_int_equal(hps_table_push(u, &key, grad, 1, 2, 9, NULL), HPS_OK);
		hps_table_pull(t, &key, 1, true, a);
		hps_table_pull(u, &key, 1, true, b);
		assert_memory_equal(a, b, sizeof(a));
	}
	assert_int_equal(hps_table_each(t, stop_at_once, &calls, NULL), HPS_IO);
	assert_int_equal(calls, 1);
	hps_table_free(t);
	hps_table_free(u);
}

/* --- ceilings --- */

static void a_ceiling_in_rows_is_kept(void **state)
{
	struct hps_table *t = new_table(HPS_RULE_ADAGRAD, 10, 0);
	uint64_t key[30];
	float grad[30 * DIM], out[DIM], init[DIM];
	struct hps_table_stats s;

	for (size_t i = 0; i < 30; i++)
		key[i] = i;
	for (size_t i = 0; i < 30 * DIM; i++)
		grad[i] = 1;
	for (int round = 0; round < 2; round++)
		assert_int_equal(hps_table_push(t, key, grad, 30, 1, 0, NULL), HPS_OK);
	hps_table_stats(t, &s);
	assert_int_equal(s.rows, 10);
	assert_int_equal(s.refused, 40);
	/* the first ones in, and updated twice; the others still read as new */
	hps_table_pull(t, &key[9], 1, true, out);
	init_row(&seed, 9, init);
	assert_memory_not_equal(out, init, sizeof(out));
	hps_table_pull(t, &key[10], 1, false, out);
	init_row(&seed, 10, init);
	assert_memory_equal(out, init, sizeof(out));
	hps_table_free(t);
}

static void a_ceiling_in_bytes_is_kept(void **state)
{
	static const uint64_t ceiling[] = { 1, 200, 5000, 100000, 3000000 };

	for (size_t c = 0; c < sizeof(ceiling) / sizeof(*ceiling); c++) {
		struct hps_table *t = new_table(HPS_RULE_ADAGRAD, 0, ceiling[c]);
		uint64_t row_bytes = (2 * DIM) * sizeof(float) + 8 + 16;
		float grad[DIM] = { 1 };
		struct hps_table_stats s;

		for (uint64_t key = 0; key < ceiling[c] / row_bytes + 200; key++)
			assert_int_equal(hps_table_push(t, &key, grad, 1, 1, 0, NULL), HPS_OK);
		hps_table_stats(t, &s);
		assert_true(s.bytes <= ceiling[c]);
		assert_int_equal(s.refused, ceiling[c] / row_bytes + 200 - s.rows);
		/* and is of use: at least 40 % of it holds rows */
		if (ceiling[c] >= 5000)
			assert_true(s.rows * row_bytes * 5 >= ceiling[c] * 2);
		hps_table_free(t);
	}
}

static void a_reserve_respects_the_ceiling(void **state)
{
	struct hps_table *t = new_table(HPS_RULE_SGD, 0, 10000);
	struct hps_table_stats s;

	assert_int_equal(hps_table_reserve(t, 1000000, NULL), HPS_OK);
	hps_table_stats(t, &s);
	assert_true(s.bytes <= 10000);
	hps_table_free(t);
}

/* --- failures of memory --- */

static void every_failed_allocation_is_survived(void **state)
{
	for (unsigned long n = 1;; n++) {
		struct hps_table_opts o = { .name = "emb",
					    .dim = DIM,
					    .optim = optim_of(HPS_RULE_ADAGRAD),
					    .init = init_row,
					    .init_ctx = &seed };
		struct hps_table *t = NULL;
		float grad[64 * DIM], out[DIM], init[DIM];
		uint64_t key[64];
		enum hps_status st;
		struct hps_err err = { 0 };
		struct hps_table_stats s;

		for (size_t i = 0; i < 64; i++)
			key[i] = i;
		for (size_t i = 0; i < 64 * DIM; i++)
			grad[i] = 1;
		hps_mem_fail_at(n);
		st = hps_table_new(&o, &t, &err);
		if (st == HPS_OK)
			st = hps_table_push(t, key, grad, 64, 1, 0, &err);
		hps_mem_fail_at(0);
		if (st == HPS_OK) {
			assert_true(n > 4);
			hps_table_free(t);
			break;
		}
		assert_int_equal(st, HPS_MEMORY);
		assert_int_equal(err.status, HPS_MEMORY);
		if (!t)
			continue;
		/* rows before it are updated, those after it are not; and it goes on working */
		hps_table_stats(t, &s);
		assert_true(s.rows < 64);
		for (uint64_t i = 0; i < 64; i++) {
			hps_table_pull(t, &i, 1, false, out);
			init_row(&seed, i, init);
			assert_int_equal(memcmp(out, init, sizeof(out)) != 0, i < s.rows);
		}
		assert_int_equal(hps_table_push(t, key, grad, 64, 1, 1, NULL), HPS_OK);
		hps_table_stats(t, &s);
		assert_int_equal(s.rows, 64);
		hps_table_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sgd_like_a_map),
		cmocka_unit_test(adagrad_like_a_map),
		cmocka_unit_test(adam_like_a_map),
		cmocka_unit_test(a_pull_creates_nothing_and_no_samples_change_nothing),
		cmocka_unit_test(many_rows_survive_growth_and_copying),
		cmocka_unit_test(a_ceiling_in_rows_is_kept),
		cmocka_unit_test(a_ceiling_in_bytes_is_kept),
		cmocka_unit_test(a_reserve_respects_the_ceiling),
		cmocka_unit_test(every_failed_allocation_is_survived),
	};

	return cmocka_run_group_tests_name("table_rows", tests, NULL, NULL);
}
