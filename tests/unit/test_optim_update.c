/* Optimizers: the fast kernels equal the plain loops bit for bit, whatever the split and
 * the alignment; both equal PyTorch's and the formulas in double.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "nn_case.h"
#include "optim/optim.h"

static const struct hps_optim rules[] = {
	{ .rule = HPS_RULE_SGD, .lr = 0.1f },
	{ .rule = HPS_RULE_ADAGRAD, .lr = 0.05f, .accumulator = 0.1f, .eps = 1e-10f },
	{ .rule = HPS_RULE_ADAM, .lr = 0.01f, .eps = 1e-8f, .beta1 = 0.9f, .beta2 = 0.999f },
};
enum { N_RULES = sizeof(rules) / sizeof(*rules), MANY = 1000, SLACK = 64 };

/* A vector with its state (stride `stride`), each at its own misalignment. */
struct vec {
	float *w, *state, *g;
	void *mem;
};

static struct vec vec_new(const struct hps_optim *o, size_t n, size_t stride, uint64_t seed,
			  size_t shift)
{
	struct vec v = { .mem = calloc(2 * n + 2 * stride + 4 * SLACK, sizeof(float)) };

	assert_non_null(v.mem);
	v.w = (float *)v.mem + shift % 17;
	v.g = v.w + n + shift % 5;
	v.state = v.g + n + shift % 11;
	for (size_t i = 0; i < n; i++)
		v.w[i] = hps_unit_float(hps_hash3(seed, i, 0));
	if (o->rule != HPS_RULE_SGD)
		hps_optim_state_init(o, v.state, stride);
	return v;
}

/* Sums over many samples, over all magnitudes, now and then 0. */
static void gradient(struct vec *v, size_t n, uint64_t seed, uint64_t step)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t h = hps_hash3(seed, i, step);

		v->g[i] = h % 7 == 0 ? 0.0f
				     : ldexpf(hps_unit_float(h), (int)(hps_mix64(h) % 60) - 30);
	}
}

static void same(const struct hps_optim *o, const struct vec *a, const struct vec *b, size_t n,
		 size_t stride)
{
	assert_memory_equal(a->w, b->w, n * sizeof(float));
	if (o->rule != HPS_RULE_SGD)
		assert_memory_equal(a->state, b->state, n * sizeof(float));
	if (o->rule == HPS_RULE_ADAM)
		assert_memory_equal(a->state + stride, b->state + stride, n * sizeof(float));
}

static void test_fast_equals_plain(void **state)
{
	for (int r = 0; r < N_RULES; r++)
		for (size_t n = 1; n < 100; n++) {
			size_t stride = n + n % 3;
			struct vec a = vec_new(&rules[r], n, stride, n, n);
			struct vec b = vec_new(&rules[r], n, stride, n, 3 * n + 1);

			for (uint64_t t = 1; t <= 5; t++) {
				gradient(&a, n, n, t);
				gradient(&b, n, n, t);
				hps_optim_update(&rules[r], a.w, a.state, stride, a.g, 37 * t, t,
						 n);
				hps_optim_update_plain(&rules[r], b.w, b.state, stride, b.g, 37 * t,
						       t, n);
				same(&rules[r], &a, &b, n, stride);
			}
			free(a.mem);
			free(b.mem);
		}
}

/* Slices of a long vector, of random lengths, updated in random places first. */
static void test_splits(void **state)
{
	struct hps_rng rng;

	hps_rng_init(&rng, 5, 0);
	for (int round = 0; round < 60; round++) {
		const struct hps_optim *o = &rules[round % N_RULES];
		struct vec whole = vec_new(o, MANY, MANY, 1, (size_t)round);
		struct vec parts = vec_new(o, MANY, MANY, 1, (size_t)round * 7 + 2);

		for (uint64_t t = 1; t <= 3; t++) {
			size_t at = 0;

			gradient(&whole, MANY, 2, t);
			gradient(&parts, MANY, 2, t);
			hps_optim_update(o, whole.w, whole.state, MANY, whole.g, 1000, t, MANY);
			while (at < MANY) {
				size_t n = 1 + hps_rng_below(&rng, round % 2 ? 300 : 20);

				n = n > MANY - at ? MANY - at : n;
				hps_optim_update(o, parts.w + at, parts.state + at, MANY,
						 parts.g + at, 1000, t, n);
				at += n;
			}
			same(o, &whole, &parts, MANY, MANY);
		}
		free(whole.mem);
		free(parts.mem);
	}
}

/* One element in double, from the header's formulas. */
static void exact(const struct hps_optim *o, double *w, double *s, double *v, double g, int t)
{
	switch (o->rule) {
	case HPS_RULE_SGD:
		*w -= o->lr * g;
		break;
	case HPS_RULE_ADAGRAD:
		*s += g * g;
		*w -= o->lr * g / (sqrt(*s) + o->eps);
		break;
	case HPS_RULE_ADAM:
		*s = o->beta1 * *s + (1 - o->beta1) * g;
		*v = o->beta2 * *v + (1 - o->beta2) * g * g;
		*w -= o->lr * (*s / (1 - pow(o->beta1, t))) /
		      (sqrt(*v / (1 - pow(o->beta2, t))) + o->eps);
		break;
	}
}

static void test_formulas(void **state)
{
	for (int r = 0; r < N_RULES; r++) {
		const struct hps_optim *o = &rules[r];
		float w = 0.5f, st[2] = { 0 }, g;
		double dw = 0.5, s = o->rule == HPS_RULE_ADAGRAD ? o->accumulator : 0, v = 0;

		hps_optim_state_init(o, st, 1);
		for (int t = 1; t <= 200; t++) {
			g = hps_unit_float(hps_mix64((uint64_t)t)) * 100;
			hps_optim_update(o, &w, st, 1, &g, 50, (uint64_t)t, 1);
			exact(o, &dw, &s, &v, g / 50.0, t);
			assert_true(fabs(w - dw) <= 1e-5 * fabs(dw) + 2e-6);
		}
	}
}

static void test_golden(void **state)
{
	struct hps_doc *golden = nn_golden("optim.json");
	struct hps_at all = hps_at_root(golden, "optim.json");

	assert_int_equal(hps_at_count(&all), N_RULES);
	for (size_t r = 0; r < N_RULES; r++) {
		struct hps_at at = hps_at_item(&all, r);
		float w[9], s[18], g[9];
		size_t n;
		double *steps = nn_numbers(at.node, "steps", &n);
		double *count = nn_numbers(at.node, "count", &n);

		for (uint32_t i = 0; i < 9; i++)
			w[i] = nn_pseudo(1, i, 0) * 4;
		hps_optim_state_init(&rules[r], s, 9);
		for (uint32_t t = 0; t < 4; t++) {
			for (uint32_t i = 0; i < 9; i++)
				g[i] = nn_pseudo(2, i, t) * 8;
			hps_optim_update(&rules[r], w, s, 9, g, (uint64_t)*count, t + 1, 9);
			for (uint32_t i = 0; i < 9; i++)
				assert_true(fabs(w[i] - steps[9 * t + i]) <=
					    1e-6 * (1 + fabs(steps[9 * t + i])));
		}
		free(steps);
		free(count);
	}
	hps_doc_free(golden);
}

static void test_no_samples_no_change(void **state)
{
	for (int r = 0; r < N_RULES; r++) {
		struct vec a = vec_new(&rules[r], 20, 20, 3, 0),
			   b = vec_new(&rules[r], 20, 20, 3, 0);

		gradient(&a, 20, 3, 1);
		hps_optim_update(&rules[r], a.w, a.state, 20, a.g, 0, 1, 20);
		hps_optim_update(&rules[r], a.w, a.state, 20, a.g, 5, 1, 0);
		hps_optim_update_plain(&rules[r], a.w, a.state, 20, a.g, 0, 1, 20);
		same(&rules[r], &a, &b, 20, 20);
		free(a.mem);
		free(b.mem);
	}
}

/* Nothing is written past the vector and its state. */
static void test_bounds(void **state)
{
	for (int r = 0; r < N_RULES; r++)
		for (size_t n = 0; n < 40; n++) {
			float w[64], s[128], g[64];

			for (size_t i = 0; i < 64; i++)
				w[i] = s[i] = s[64 + i] = g[i] = 2.0f;
			hps_optim_update(&rules[r], w, s, 64, g, 3, 1, n);
			for (size_t i = n; i < 64; i++)
				assert_true(w[i] == 2 && s[i] == 2 && s[64 + i] == 2 && g[i] == 2);
			assert_true(n == 0 || w[n - 1] < 2);
		}
}

static void test_nan_stays(void **state)
{
	for (int r = 0; r < N_RULES; r++) {
		float w[20], s[40], g[20];

		hps_optim_state_init(&rules[r], s, 20);
		for (int i = 0; i < 20; i++) {
			w[i] = 1;
			g[i] = i == 7 ? NAN : 1;
		}
		hps_optim_update(&rules[r], w, s, 20, g, 1, 1, 20);
		for (int i = 0; i < 20; i++)
			assert_int_equal(isnan(w[i]) != 0, i == 7);
	}
}

static void test_state(void **state)
{
	float s[8];

	assert_int_equal(hps_optim_state_floats(&rules[0], 4), 0);
	assert_int_equal(hps_optim_state_floats(&rules[1], 4), 4);
	assert_int_equal(hps_optim_state_floats(&rules[2], 4), 8);
	for (int i = 0; i < 8; i++)
		s[i] = 9;
	hps_optim_state_init(&rules[0], s, 4);
	assert_true(s[0] == 9);
	hps_optim_state_init(&rules[1], s, 4);
	assert_true(s[0] == 0.1f && s[3] == 0.1f && s[4] == 9);
	hps_optim_state_init(&rules[2], s, 4);
	assert_true(s[0] == 0 && s[7] == 0);
	/* the same order as lib/job's kinds */
	assert_int_equal(HPS_RULE_SGD, HPS_SGD);
	assert_int_equal(HPS_RULE_ADAGRAD, HPS_ADAGRAD);
	assert_int_equal(HPS_RULE_ADAM, HPS_ADAM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fast_equals_plain),
		cmocka_unit_test(test_splits),
		cmocka_unit_test(test_formulas),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_no_samples_no_change),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_nan_stays),
		cmocka_unit_test(test_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
