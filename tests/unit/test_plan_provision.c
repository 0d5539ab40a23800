/* Does Newton find what a dense grid finds, and do its integers and the static rivals hold what
 * they promise? */
#include <math.h>
#include <string.h>
#include "base/rng.h"
#include "cm.h"
#include "plan/provision.h"
#include "plan_case.h"

enum { CASES = 300, GRID = 20000 };

/* A random structure of the case; units 1. */
static uint32_t structure(const struct plan_case *c, uint64_t seed, struct hps_span *stage)
{
	uint32_t type[PLAN_CASE_LAYERS], L = c->cost.n_layers, n;
	uint8_t cut[PLAN_CASE_LAYERS];
	struct hps_rng r;

	hps_rng_init(&r, seed, 5);
	for (uint32_t l = 0; l < L; l++) {
		type[l] = (uint32_t)hps_rng_below(&r, c->cost.n_types);
		cut[l] = hps_rng_below(&r, 3) == 0;
	}
	n = hps_spans_of_layers(type, cut, L, stage);
	for (uint32_t i = 0; i < n; i++)
		stage[i].units = 1;
	return n;
}

/* The best units and shards of a structure by looking at all; INFINITY if none will do. */
static double brute(const struct plan_case *c, const struct hps_span *given, uint32_t n)
{
	struct hps_span stage[PLAN_CASE_LAYERS];
	struct hps_schedule s = { stage, n, 0 };
	double best = INFINITY;
	uint32_t i = 0;

	memcpy(stage, given, n * sizeof(*stage));
	do {
		for (s.shards = c->cost.ps.min; s.shards <= c->cost.ps.max && s.shards < 9;
		     s.shards++) {
			struct hps_cost_result r;
			double value;

			hps_cost_eval(&c->cost, &s, NULL, &r, NULL);
			value = c->problem.objective == HPS_PRICE_PER_HOUR ? r.price : r.cost;
			if (r.fits && r.throughput >= c->problem.floor * (1 - 1e-9))
				best = fmin(best, value);
		}
		for (i = 0; i < n; i++) {
			if (stage[i].units < c->cost.type[stage[i].type].limit) {
				stage[i].units++;
				break;
			}
			stage[i].units = 1;
		}
	} while (i < n);
	return best;
}

/* The least F on a grid, evenly spaced in log tau, down from the largest tau. */
static double grid(const struct plan_case *c, const struct hps_span *stage, uint32_t n, double tau)
{
	double best = hps_continuous_at(&c->problem, stage, n, tau * (1 - 1e-12));

	for (int i = 0; i < GRID; i++) {
		double v = hps_continuous_at(&c->problem, stage, n, tau * exp(-6.0 * i / GRID));

		if (isinf(v))
			break; /* nor further down */
		best = fmin(best, v);
	}
	return best;
}

/* A floor that binds now and then, from what the structure can do. */
static void set_floor(struct plan_case *c, const struct hps_span *given, uint32_t n, uint64_t seed)
{
	struct hps_span stage[PLAN_CASE_LAYERS];
	struct hps_rng r;
	struct hps_trial t;

	memcpy(stage, given, n * sizeof(*stage));
	c->problem.floor = 0;
	assert_int_equal(hps_settle(&c->problem, stage, n, &t, NULL), HPS_OK);
	hps_rng_init(&r, seed, 6);
	if (hps_rng_below(&r, 3))
		c->problem.floor = t.throughput * (0.3 + 2 * hps_rng_uniform(&r));
}

struct tally {
	int feasible, bounds, equal, near_by;
};

static void one_case(uint64_t seed, struct tally *n)
{
	struct hps_span stage[PLAN_CASE_LAYERS], copy[PLAN_CASE_LAYERS];
	double k[PLAN_CASE_LAYERS], want, bound, floor_tau;
	struct hps_continuous x = { .k = k };
	struct hps_trial exact, newton;
	enum hps_status rc;
	struct plan_case c;
	uint32_t m;

	plan_case_random(&c, seed, 20000);
	m = structure(&c, seed, stage);
	set_floor(&c, stage, m, seed);
	want = brute(&c, stage, m);
	memcpy(copy, stage, m * sizeof(*stage));
	assert_int_equal(hps_provision_units(&c.problem, HPS_PROVISION_EXACT, NULL, copy, m, &exact,
					     NULL, NULL),
			 HPS_OK);
	assert_int_equal(exact.feasible, !isinf(want));
	if (exact.feasible && fabs(exact.objective - want) > 1e-9 * want)
		fail_msg("case %llu: exact %.12g, by looking at all %.12g",
			 (unsigned long long)seed, exact.objective, want);
	memcpy(copy, stage, m * sizeof(*stage));
	assert_int_equal(hps_provision_units(&c.problem, HPS_PROVISION_NEWTON, NULL, copy, m,
					     &newton, &bound, NULL),
			 HPS_OK);
	assert_int_equal(newton.feasible, exact.feasible);
	rc = hps_newton(&c.problem, stage, m, &x, NULL);
	if (rc) {
		assert_int_equal(rc, HPS_NO);
		assert_false(exact.feasible); /* real numbers can do all that integers can */
		goto out;
	}
	floor_tau = c.problem.floor > 0 ? 1 / c.problem.floor : x.tau * 20;
	want = grid(&c, stage, m, floor_tau);
	if (x.bound ? x.value > want * (1 + 1e-9) : x.value > want * 1.02)
		fail_msg("case %llu: newton %.12g, a grid has %.12g", (unsigned long long)seed,
			 x.value, want);
	/* No lower than the grid can see, either. */
	if (x.value < want * (1 - 1e-3))
		fail_msg("case %llu: newton %.12g, a grid has no less than %.12g",
			 (unsigned long long)seed, x.value, want);
	if (exact.feasible) {
		n->feasible++;
		n->bounds += bound > 0;
		assert_true(bound <= exact.objective * (1 + 1e-9));
		assert_true(newton.objective >= exact.objective * (1 - 1e-9));
		n->equal += newton.objective <= exact.objective * (1 + 1e-9);
		n->near_by += newton.objective <= exact.objective * 1.1;
	}
out:
	plan_case_release(&c);
}

static void test_random(void **state)
{
	struct tally n = { 0 };

	(void)state;
	for (uint64_t seed = 1; seed <= CASES; seed++)
		one_case(seed, &n);
	print_message("# %d feasible, %d with a bound, newton optimal in %d, within 10 %% in %d\n",
		      n.feasible, n.bounds, n.equal, n.near_by);
	assert_true(n.feasible > CASES / 4 && n.bounds > n.feasible / 2);
	assert_true(n.equal >= n.feasible * 95 / 100 && n.near_by >= n.feasible * 99 / 100);
}

/* By `step`: as good as looking at all, nearly always, and never worse than hps_settle. */
static void test_steps(void **state)
{
	int feasible = 0, optimal = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= CASES; seed++) {
		struct hps_span stage[PLAN_CASE_LAYERS], copy[PLAN_CASE_LAYERS];
		struct hps_trial settled, t;
		struct plan_case c;
		double want;
		uint32_t n;

		plan_case_random(&c, seed, 20000);
		c.cost.opt.evaluator = HPS_EVAL_STEP;
		n = structure(&c, seed, stage);
		set_floor(&c, stage, n, seed);
		want = brute(&c, stage, n);
		memcpy(copy, stage, n * sizeof(*stage));
		assert_int_equal(hps_settle(&c.problem, copy, n, &settled, NULL), HPS_OK);
		assert_int_equal(hps_provision_units(&c.problem, HPS_PROVISION_EXACT, NULL, stage,
						     n, &t, NULL, NULL),
				 HPS_OK);
		assert_false(hps_trial_better(&settled, &t));
		if (!isinf(want)) {
			feasible++;
			optimal += t.feasible && t.objective <= want * (1 + 1e-9);
		}
		if (t.feasible)
			assert_true(t.objective >= want * (1 - 1e-9));
		plan_case_release(&c);
	}
	print_message("# by step: %d feasible, %d optimal\n", feasible, optimal);
	assert_true(optimal >= feasible * 95 / 100);
}

/* One stage, b/k and a serial part: F = tau p b / (tau - a) is least where units end at 1; with
 * servers at a price that falls with tau, by hand. */
static void test_by_hand(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 1 }, { 1, 1, 1, 1 } };
	double k[2];
	struct hps_continuous x = { .k = k };
	struct plan_case c;

	(void)state;
	plan_case_init(&c, 2, 2, 0);
	/* paper: a = c0 / B, b = c1. F = tau (p0 b0 / (tau - a0) + p1 b1 / (tau - a1)). */
	c.opt.form = HPS_COST_PAPER;
	plan_case_time(&c, 0, 0, 1e-3, 1e-3);
	plan_case_time(&c, 1, 1, 2e-3, 4e-3);
	plan_case_time(&c, 1, 0, 1, 1);
	plan_case_time(&c, 0, 1, 1, 1);
	plan_case_ready(&c);
	/* F falls while both have more than one unit: until k_0 = 1 at tau = 1.01e-3, from where
	 * F = tau (1 + 4e-3 / (tau - 2e-5)), F' = 1 + 4e-3 / (tau - a) - 4e-3 tau / (tau - a)^2 = 0
	 * where (tau - a)^2 = 4e-3 a: tau = 2e-5 + sqrt(8e-8) = 3.028e-4 < 1.01e-3. So at the kink. */
	assert_int_equal(hps_newton(&c.problem, stage, 2, &x, NULL), HPS_OK);
	assert_true(fabs(x.tau - 1.01e-3) < 1e-12);
	assert_true(fabs(k[0] - 1) < 1e-9 && fabs(k[1] - 4e-3 / 9.9e-4) < 1e-9);
	assert_true(fabs(x.value * 3600 - 1.01e-3 * (1 + 4e-3 / 9.9e-4)) < 1e-12);
	assert_true(x.bound);
	plan_case_release(&c);
	/* A slower second stage moves the optimum off the kink: a1 = 2e-3 has
	 * tau = 2e-3 + sqrt(4e-3 * 2e-3). */
	plan_case_time(&c, 1, 1, 0.2, 4e-3);
	plan_case_ready(&c);
	assert_int_equal(hps_newton(&c.problem, stage, 2, &x, NULL), HPS_OK);
	assert_true(fabs(x.tau - (2e-3 + sqrt(8e-6))) < 1e-10);
	assert_true(x.newton > 0 && x.newton < 12);
	/* A floor that binds. */
	c.problem.floor = 250;
	assert_int_equal(hps_newton(&c.problem, stage, 2, &x, NULL), HPS_OK);
	assert_true(fabs(x.tau - 1.0 / 250) < 1e-15);
	/* One that a serial part makes unreachable. */
	c.problem.floor = 501;
	assert_int_equal(hps_newton(&c.problem, stage, 2, &x, NULL), HPS_NO);
	plan_case_release(&c);
}

/* Two CPU stages and a GPU stage, rates of 1 / (10 us / k). */
static void rivals_case(struct plan_case *c)
{
	plan_case_init(c, 3, 2, 40);
	for (uint32_t l = 0; l < 3; l++) {
		plan_case_time(c, 0, l, 0, l ? 20e-6 : 10e-6);
		plan_case_time(c, 1, l, 0, 5e-6);
	}
	c->type[1].device = HPS_DEVICE_CUDA;
	c->size[0].sparse_bytes = 1;
	c->size[0].sparse_keys = 1;
	c->opt.micro_batches = 4;
	c->profile.shard.rows_per_s = 4e5; /* 2 rows a sample: 5 us on one shard */
	c->problem.objective = HPS_PRICE_PER_HOUR;
	plan_case_ready(c);
}

static void test_staratio(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 1 }, { 1, 1, 0, 1 }, { 2, 2, 1, 1 } };
	struct hps_ratios ratios = { .cpus_per_gpu = 6 };
	struct hps_trial t;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	rivals_case(&c);
	/* 400,000/s: 2.5 us a sample: 4 + 8 CPUs and 2 GPUs, as the ratio has it. */
	c.problem.floor = 4e5;
	assert_int_equal(hps_provision_units(&c.problem, HPS_PROVISION_STARATIO, &ratios, stage, 3,
					     &t, NULL, NULL),
			 HPS_OK);
	assert_true(t.feasible);
	assert_int_equal(stage[0].units, 4);
	assert_int_equal(stage[1].units, 8);
	assert_int_equal(stage[2].units, 2);
	assert_int_equal(t.shards, 2);
	assert_true(fabs(hps_ratios_of(&c.cost, stage, 3, 2).cpus_per_gpu - 6) < 1e-12);
	assert_true(fabs(hps_ratios_of(&c.cost, stage, 3, 2).ps_per_unit - 2.0 / 14) < 1e-12);
	/* With 3 CPUs a GPU it takes 4 GPUs, where exact takes 2. */
	ratios.cpus_per_gpu = 3;
	assert_int_equal(hps_provision_units(&c.problem, HPS_PROVISION_STARATIO, &ratios, stage, 3,
					     &t, NULL, NULL),
			 HPS_OK);
	assert_true(t.feasible && stage[2].units == 4 && stage[0].units + stage[1].units == 12);
	/* Out of reach: 40 CPUs in all. */
	c.problem.floor = 2e6;
	assert_int_equal(hps_provision_units(&c.problem, HPS_PROVISION_STARATIO, &ratios, stage, 3,
					     &t, NULL, NULL),
			 HPS_OK);
	assert_false(t.feasible);
	/* Nothing on a GPU. */
	stage[2].type = 0;
	assert_int_equal(hps_provision_units(&c.problem, HPS_PROVISION_STARATIO, &ratios, stage, 3,
					     &t, NULL, &err),
			 HPS_NO);
	assert_non_null(strstr(err.msg, "no stage on a GPU"));
	plan_case_release(&c);
}

static void test_stapsratio(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 1 }, { 1, 1, 0, 1 }, { 2, 2, 1, 1 } };
	struct hps_ratios ratios = { .ps_per_unit = 0.5 };
	struct hps_trial t;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	rivals_case(&c);
	c.problem.floor = 4e5;
	/* 14 units as exact has them, and 7 shards where 2 would do. */
	assert_int_equal(hps_provision_units(&c.problem, HPS_PROVISION_STAPSRATIO, &ratios, stage,
					     3, &t, NULL, NULL),
			 HPS_OK);
	assert_true(t.feasible && t.shards == 7 && t.units == 14);
	/* Too few: workers are added until there are 2. */
	ratios.ps_per_unit = 1.0 / 20;
	assert_int_equal(hps_provision_units(&c.problem, HPS_PROVISION_STAPSRATIO, &ratios, stage,
					     3, &t, NULL, NULL),
			 HPS_OK);
	assert_true(t.feasible && t.shards == 2);
	assert_int_equal(t.units, 21);
	ratios.ps_per_unit = 0;
	assert_int_equal(hps_provision_units(&c.problem, HPS_PROVISION_STAPSRATIO, &ratios, stage,
					     3, &t, NULL, &err),
			 HPS_NO);
	plan_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),	   cmocka_unit_test(test_steps),
		cmocka_unit_test(test_by_hand),	   cmocka_unit_test(test_staratio),
		cmocka_unit_test(test_stapsratio),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
