/* Are moves what moves.h says, and does the surrogate say what a Gaussian process says? */
#include <math.h>
#include <string.h>
#include "cm.h"
#include "plan/gp.h"
#include "plan/moves.h"
#include "plan_case.h"

enum { L = 7, T = 3 };

static void open_case(struct plan_case *c, uint32_t layers, uint32_t types)
{
	plan_case_init(c, layers, types, 0);
	for (uint32_t t = 0; t < types; t++)
		for (uint32_t l = 0; l < layers; l++)
			plan_case_time(c, t, l, 0, 1e-6);
	plan_case_ready(c);
}

static void check_structure(const struct hps_problem *p, const struct hps_span *s, uint32_t n)
{
	uint32_t at = 0;

	assert_in_range(n, 1, p->cost->n_layers);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(s[i].first, at);
		assert_true(s[i].last >= s[i].first);
		assert_true(s[i].type < p->cost->n_types);
		at = s[i].last + 1;
	}
	assert_int_equal(at, p->cost->n_layers);
}

/* A structure as a number: digits of type * 2 + cut. */
static uint64_t number(const struct hps_span *s, uint32_t n, uint32_t types)
{
	uint64_t x = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t l = s[i].first; l <= s[i].last; l++)
			x = x * 2 * types + 2 * s[i].type + (l == s[i].first);
	return x;
}

/* Moves of one kind from one structure are all legal, all different and, runs and exchanges of
 * equal types aside, none is the structure itself. */
static void check_kind(const struct hps_problem *p, const struct hps_span *s, uint32_t n,
		       enum hps_move kind)
{
	uint64_t count = hps_moves_count(p, s, n, kind), made[512];
	uint64_t self = number(s, n, p->cost->n_types);

	assert_true(count <= 512);
	for (uint64_t i = 0; i < count; i++) {
		struct hps_span out[L];
		uint32_t m = hps_moves_make(p, s, n, kind, i, out);

		check_structure(p, out, m);
		made[i] = number(out, m, p->cost->n_types);
		if (kind == HPS_MOVE_RUN || kind == HPS_MOVE_SWAP)
			continue;
		assert_true(made[i] != self);
		for (uint64_t j = 0; j < i; j++)
			assert_true(made[i] != made[j]);
	}
}

static void test_moves(void **state)
{
	struct hps_span s[L];
	struct plan_case c;
	struct hps_rng r;

	(void)state;
	open_case(&c, L, T);
	hps_rng_init(&r, 1, 1);
	for (int i = 0; i < 300; i++) {
		uint32_t n;

		c.problem.merge = i % 3 == 0;
		n = hps_structure_random(&c.problem, &r, s);
		check_structure(&c.problem, s, n);
		for (uint32_t j = 1; c.problem.merge && j < n; j++)
			assert_int_not_equal(s[j].type, s[j - 1].type);
		for (uint32_t kind = 0; kind < HPS_MOVES; kind++)
			check_kind(&c.problem, s, n, (enum hps_move)kind);
	}
	plan_case_release(&c);
}

static void is(const struct hps_span *s, uint32_t n, const char *want)
{
	char got[3 * L] = "";
	size_t len = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (i)
			got[len++] = '|';
		for (uint32_t l = s[i].first; l <= s[i].last; l++)
			got[len++] = (char)('a' + s[i].type);
	}
	assert_string_equal(got, want);
}

/* The picture in moves.h: aaa|bb|b on types a, b, c. */
static void test_picture(void **state)
{
	const struct hps_span s[] = { { 0, 2, 0, 5 }, { 3, 4, 1, 6 }, { 5, 5, 1, 7 } };
	struct hps_span out[L];
	struct plan_case c;
	const struct hps_problem *p = &c.problem;

	(void)state;
	open_case(&c, 6, T);
	assert_int_equal(hps_moves_count(p, s, 3, HPS_MOVE_BOUNDARY), 4);
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_BOUNDARY, 0, out), "a|bbbb|b");
	assert_int_equal(out[0].units, 0);
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_BOUNDARY, 1, out), "aa|bbb|b");
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_BOUNDARY, 2, out), "aaaa|b|b");
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_BOUNDARY, 3, out), "aaa|b|bb");
	assert_int_equal(hps_moves_count(p, s, 3, HPS_MOVE_TYPE), 6);
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_TYPE, 1, out), "ccc|bb|b");
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_TYPE, 4, out), "aaa|bb|a");
	assert_int_equal(hps_moves_count(p, s, 3, HPS_MOVE_MERGE), 3);
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_MERGE, 0, out), "aaaaa|b");
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_MERGE, 1, out), "bbbbb|b");
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_MERGE, 2, out), "aaa|bbb");
	assert_int_equal(hps_moves_count(p, s, 3, HPS_MOVE_SPLIT), 15);
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_SPLIT, 0, out), "b|aa|bb|b");
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_SPLIT, 4, out), "a|aa|bb|b");
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_SPLIT, 8, out), "aa|c|bb|b");
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_SPLIT, 14, out), "aaa|b|b|b");
	assert_int_equal(hps_moves_count(p, s, 3, HPS_MOVE_RUN), 63);
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_RUN, 2, out), "c|aa|bb|b");
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_RUN, (6 + 2) * 3 + 2, out), "a|ccc|b|b");
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_RUN, 15, out), "aaaaaa");
	assert_int_equal(hps_moves_count(p, s, 3, HPS_MOVE_SWAP), 3);
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_SWAP, 0, out), "bbb|aa|b");
	is(out, hps_moves_make(p, s, 3, HPS_MOVE_SWAP, 1, out), "bbb|bb|a");
	c.problem.merge = true;
	assert_int_equal(hps_moves_count(p, s, 3, HPS_MOVE_SPLIT), 12);
	plan_case_release(&c);
}

/* Moves one by one come to every structure there is: 3 * 4^2 of three layers. */
static void test_reach(void **state)
{
	struct hps_span s[3] = { { 0, 2, 0, 0 } }, out[3];
	bool seen[216] = { false };
	uint32_t n = 1, met = 0;
	struct plan_case c;
	struct hps_rng r;

	(void)state;
	open_case(&c, 3, T);
	hps_rng_init(&r, 2, 1);
	for (int i = 0; i < 5000; i++) {
		uint64_t x = number(s, n, T);

		assert_true(x < 216);
		met += !seen[x];
		seen[x] = true;
		n = hps_moves_random(&c.problem, &r, s, n, out);
		memcpy(s, out, n * sizeof(*s));
	}
	assert_int_equal(met, 48);
	plan_case_release(&c);
	/* Nothing to do: a copy. */
	open_case(&c, 1, 1);
	c.problem.merge = true;
	s[0] = (struct hps_span){ 0, 0, 0, 4 };
	assert_int_equal(hps_moves_random(&c.problem, &r, s, 1, out), 1);
	is(out, 1, "a");
	plan_case_release(&c);
}

static void test_hash(void **state)
{
	struct hps_span a[] = { { 0, 2, 0, 5 }, { 3, 6, 1, 6 } };
	struct hps_span b[] = { { 0, 2, 0, 1 }, { 3, 6, 1, 2 } };

	(void)state;
	assert_true(hps_structure_hash(a, 2) == hps_structure_hash(b, 2));
	b[1].type = 0;
	assert_true(hps_structure_hash(a, 2) != hps_structure_hash(b, 2));
	b[1] = (struct hps_span){ 4, 6, 1, 0 };
	assert_true(hps_structure_hash(a, 2) != hps_structure_hash(b, 2));
	assert_true(hps_structure_hash(a, 1) != hps_structure_hash(a, 2));
}

static void near(double got, double want, double eps)
{
	if (!(fabs(got - want) <= eps))
		fail_msg("expected %.17g, got %.17g", want, got);
}

/* Two points a distance of 1.5 apart (one type, one cut), scale 2, asked half way and far off:
 * worked by hand from k = exp(-d / 2) and the 2 x 2 inverse. */
static void test_gp(void **state)
{
	const uint16_t a = hps_gp_code(0, true), b = hps_gp_code(1, true),
		       o = hps_gp_code(1, false);
	double k = exp(-0.75), near_a = exp(-0.25), near_b = exp(-0.5), k00 = 1 + 1e-6;
	double det = k00 * k00 - k * k, wa, wb, y = 1; /* 3 and 7 standardised: -1 and 1 */
	struct hps_gp g;

	(void)state;
	assert_int_equal(hps_gp_init(&g, 2, 4, 3, NULL), HPS_OK);
	g.scale = 2;
	memcpy(g.point, (uint16_t[]){ a, b, b, o }, 4 * sizeof(a));
	g.value[0] = 3;
	g.value[1] = 7;
	hps_gp_fit(&g, 2, false);
	/* The points themselves, and (a, o): half a cut from the first, a type from the second. */
	memcpy(g.ask, (uint16_t[]){ a, b, b, o, a, o }, 6 * sizeof(a));
	hps_gp_ask(&g, 3);
	near(g.mean[0], 3, 1e-4);
	near(g.mean[1], 7, 1e-4);
	near(g.sd[0], 0, 5e-3);
	wa = (k00 * near_a - k * near_b) / det;
	wb = (k00 * near_b - k * near_a) / det;
	near(g.mean[2], 5 + 2 * y * (wb - wa), 1e-9);
	near(g.sd[2], 2 * sqrt(1 - wa * near_a - wb * near_b), 1e-9);
	hps_gp_release(&g);
}

/* Values that are a sum over layers of smooth effects are learned: unseen ones are told better than
 * by their mean, and the scale is chosen from the values. */
static void test_gp_learns(void **state)
{
	enum { D = 12, N = 100, M = 50 };
	double error = 0, spread = 0, mean = 0, truth[M];
	struct hps_rng r;
	struct hps_gp g;

	(void)state;
	hps_rng_init(&r, 3, 1);
	assert_int_equal(hps_gp_init(&g, D, N, M, NULL), HPS_OK);
	for (int i = 0; i < N + M; i++) {
		uint16_t *row = i < N ? g.point + i * D : g.ask + (i - N) * D;
		double v = 0;

		for (int l = 0; l < D; l++) {
			uint32_t type = (uint32_t)hps_rng_below(&r, 2);

			row[l] = hps_gp_code(type, hps_rng_below(&r, 2));
			v += type ? l : 0;
		}
		if (i < N)
			g.value[i] = v;
		else
			truth[i - N] = v;
	}
	hps_gp_fit(&g, N, true);
	assert_true(g.scale > 1);
	hps_gp_ask(&g, M);
	for (int i = 0; i < M; i++)
		mean += truth[i] / M;
	for (int i = 0; i < M; i++) {
		error += (g.mean[i] - truth[i]) * (g.mean[i] - truth[i]);
		spread += (mean - truth[i]) * (mean - truth[i]);
		assert_true(g.sd[i] > 0);
	}
	assert_true(error < 0.3 * spread);
	hps_gp_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves), cmocka_unit_test(test_picture),
		cmocka_unit_test(test_reach), cmocka_unit_test(test_hash),
		cmocka_unit_test(test_gp),    cmocka_unit_test(test_gp_learns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
