/* Is the exact planner's answer the optimum? Against a judge that looks at every schedule, over
 * random problems with all terms, limits, servers, memory, tables. HPS_CASES sets how many. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "cm.h"
#include "plan/exact.h"
#include "plan/exact_int.h"
#include "plan_case.h"
#include "plan_work.h"

static uint64_t cases(uint64_t def)
{
	const char *s = getenv("HPS_CASES");

	return s ? strtoull(s, NULL, 10) : def;
}

static void check_schedule(const struct plan_case *c, const struct hps_solution *s, uint64_t seed)
{
	struct hps_schedule sched = { s->stage, s->n_stages, s->trial.shards };
	struct hps_cost_result r;
	struct hps_err err = { 0 };

	if (hps_schedule_check(&c->cost, &sched, &err))
		fail_msg("case %llu: %s", (unsigned long long)seed, err.msg);
	hps_cost_eval(&c->cost, &sched, NULL, &r, NULL);
	if (!r.fits)
		fail_msg("case %llu: %s", (unsigned long long)seed, r.why);
	if (!(fabs(r.throughput / s->trial.throughput - 1) < 1e-9))
		fail_msg("case %llu: %.17g samples/s, %.17g by eval", (unsigned long long)seed,
			 s->trial.throughput, r.throughput);
	assert_true(fabs(r.cost - s->trial.cost) <= 1e-9 * r.cost);
	assert_true(fabs(r.price - s->trial.price) <= 1e-9 * r.price);
}

static void compare(const struct plan_case *c, const char *name, const struct hps_solution *s,
		    enum hps_status rc, const struct plan_judge *j, uint64_t seed)
{
	double tie = 4 * HPS_TIE_EPS;

	if ((rc == HPS_OK) != j->feasible || (rc != HPS_OK && rc != HPS_NO))
		fail_msg("case %llu: %s says %d, the judge %s", (unsigned long long)seed, name, rc,
			 j->feasible ? "found a plan" : "found none");
	if (rc)
		return;
	check_schedule(c, s, seed);
	if (fabs(s->trial.objective - j->objective) > tie * j->objective)
		fail_msg("case %llu: %s %.17g, the judge %.17g", (unsigned long long)seed, name,
			 s->trial.objective, j->objective);
	if (s->trial.throughput < j->throughput * (1 - tie))
		fail_msg("case %llu: %s ties at %.17g samples/s, the judge %.17g",
			 (unsigned long long)seed, name, s->trial.throughput, j->throughput);
	if (!s->proven || !s->has_bound || s->bound > j->objective * (1 + tie))
		fail_msg("case %llu: %s: bound %.17g, optimum %.17g%s", (unsigned long long)seed,
			 name, s->bound, j->objective, s->proven ? "" : ", not proven");
}

static void test_random(void **state)
{
	uint64_t n = cases(400), no = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= n; seed++) {
		struct hps_solution s, b;
		struct plan_judge j;
		struct plan_case c;
		enum hps_status rc;

		plan_case_random(&c, seed, 20000);
		plan_case_judge(&c, &j);
		rc = hps_plan_exact(&c.problem, "", &s, NULL);
		compare(&c, "exact", &s, rc, &j, seed);
		rc = hps_plan_brute(&c.problem, "", &b, NULL);
		compare(&c, "brute", &b, rc, &j, seed);
		no += rc == HPS_NO;
		hps_solution_release(&b);
		hps_solution_release(&s);
		rc = hps_plan_fastest(&c.problem, &s, NULL);
		assert_int_equal(rc == HPS_OK, j.fastest > 0);
		if (!rc && fabs(s.trial.throughput / j.fastest - 1) > 1e-8)
			fail_msg("case %llu: fastest %.17g, the judge %.17g",
				 (unsigned long long)seed, s.trial.throughput, j.fastest);
		hps_solution_release(&s);
		plan_case_release(&c);
	}
	/* Both answers are met often. */
	assert_in_range(no, n / 50, n / 2);
}

/* By `step` the search is heuristic, its bound is not: it holds, nothing is called proven that is
 * not, and almost all answers are the optimum. */
static void test_step(void **state)
{
	uint64_t n = 0, best = 0, missed = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= cases(400); seed++) {
		struct hps_solution s;
		struct plan_judge j;
		struct plan_case c;
		enum hps_status rc;

		plan_case_random(&c, seed, 4000);
		c.cost.opt.evaluator = HPS_EVAL_STEP;
		plan_case_judge(&c, &j);
		rc = hps_plan_exact(&c.problem, "", &s, NULL);
		if (rc == HPS_OK) {
			check_schedule(&c, &s, seed);
			assert_true(j.feasible);
			assert_true(s.bound <= j.objective * (1 + 1e-8));
			assert_true(s.trial.objective >= j.objective * (1 - 1e-8));
			best += s.trial.objective <= j.objective * (1 + 1e-8);
			if (s.proven)
				assert_true(s.trial.objective <= j.objective * (1 + 1e-8));
		} else {
			assert_int_equal(rc, HPS_NO);
			missed += j.feasible;
		}
		n += j.feasible;
		hps_solution_release(&s);
		plan_case_release(&c);
	}
	assert_true(best * 100 >= n * 97);
	assert_true(missed * 100 <= n);
}

/* Where limits bind, the least price at one cycle time is the answer of any ceiling from there on,
 * and of none below: a dearer plan in its place would let the sweep leap over cheaper ones. */
static void test_ceiling(void **state)
{
	static const double shares[] = { 0.5, 0.6, 0.7, 0.8, 0.9 };
	static const double under[] = { 0.999999, 0.999, 0.99, 0.95 };
	struct hps_err err = { 0 };
	struct plan_work w;
	double fastest;

	assert_int_equal(plan_work_open(&w, "matchnet", "two-types", &err), 0);
	assert_int_equal(plan_work_floor(&w, 1, &err), 0);
	fastest = w.problem.floor;
	for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		double tau = 1 / (shares[i] * fastest), least;
		enum hps_tau_end end;
		struct hps_search search;
		struct hps_tau x;

		assert_int_equal(hps_search_init(&search, &w.problem, 1000, &err), 0);
		assert_int_equal(hps_tau_init(&x, &w.problem, &search, &err), 0);
		assert_int_equal(hps_tau_solve(&x, tau, INFINITY, &end, &err), 0);
		assert_int_equal(end, HPS_TAU_FOUND);
		least = x.vector.price;
		assert_int_equal(hps_tau_solve(&x, tau, least * (1 + 2 * HPS_TIE_EPS), &end, &err),
				 0);
		assert_int_equal(end, HPS_TAU_FOUND);
		assert_true(fabs(x.vector.price / least - 1) < 1e-9);
		for (size_t j = 0; j < sizeof(under) / sizeof(*under); j++) {
			assert_int_equal(hps_tau_solve(&x, tau, under[j] * least, &end, &err), 0);
			assert_int_equal(end, HPS_TAU_NONE);
		}
		hps_tau_release(&x);
		hps_search_release(&search);
	}
	plan_work_close(&w);
}

static double tick(void *arg)
{
	return (*(double *)arg)++;
}

/* A budget that runs out at any point, of evaluations or (by a clock that counts how often it is
 * read) in the middle of one: the best so far, never better than the optimum, a bound that is
 * never above it, and no proof where there is none. */
static void test_budget(void **state)
{
	uint64_t n = 0, open = 0, bounded = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= cases(300); seed++) {
		struct hps_solution s;
		struct plan_judge j;
		struct plan_case c;
		enum hps_status rc;
		double time = 0, tie = 4 * HPS_TIE_EPS;

		plan_case_random(&c, seed, 4000);
		plan_case_judge(&c, &j);
		if (seed % 2) {
			c.problem.max_evaluations = 1 + seed / 2 % 12;
		} else {
			c.problem.max_seconds = 1 + (double)(seed / 2 % 40);
			c.problem.hooks.now = tick;
			c.problem.hooks.arg = &time;
		}
		rc = hps_plan_exact(&c.problem, "", &s, NULL);
		if (rc == HPS_OK) {
			assert_true(j.feasible);
			check_schedule(&c, &s, seed);
			if (s.trial.objective < j.objective * (1 - tie))
				fail_msg("case %llu: %.17g, the judge %.17g",
					 (unsigned long long)seed, s.trial.objective, j.objective);
			if (s.proven && s.trial.objective > j.objective * (1 + tie))
				fail_msg("case %llu: %.17g is not proven, the judge %.17g",
					 (unsigned long long)seed, s.trial.objective, j.objective);
			open += !s.proven;
		} else {
			assert_int_equal(rc, HPS_NO);
		}
		if (j.feasible && s.has_bound && s.bound > j.objective * (1 + tie))
			fail_msg("case %llu: bound %.17g, the judge %.17g",
				 (unsigned long long)seed, s.bound, j.objective);
		n += j.feasible;
		bounded += j.feasible && s.has_bound && s.bound > 0;
		hps_solution_release(&s);
		plan_case_release(&c);
	}
	/* Many are stopped before the proof, most of them with some bound. */
	assert_true(open * 5 >= n);
	assert_true(bounded * 2 >= n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_step),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
