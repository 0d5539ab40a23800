/* Do the rivals keep the rules? On random problems: no better than the judge's optimum, bounds
 * that are bounds, limits, floor, merge rule and budget kept, the same seed the same answer, a
 * stop the best so far. And what they reach on 16 layers and 2 types. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"
#include "plan/exact.h"
#include "plan/rivals.h"
#include "plan_case.h"

static const char *const rivals[] = {
	"greedy", "genetic", "bayes", "anneal", "random", "auto", "rl", "rl+polish", "rl-rnn",
};
enum { RIVALS = sizeof(rivals) / sizeof(*rivals) };

static enum hps_status solve(const struct hps_problem *p, const char *word, struct hps_solution *s,
			     struct hps_err *err)
{
	const struct hps_method *m;
	const char *arg;

	memset(err, 0, sizeof(*err));
	m = hps_method_find(word, &arg, err);
	assert_non_null(m);
	return m->solve(p, arg, s, err);
}

static void check_plan(const struct plan_case *c, const struct hps_solution *s, const char *name,
		       uint64_t seed)
{
	const struct hps_problem *p = &c->problem;
	struct hps_schedule sched = { s->stage, s->n_stages, s->trial.shards };
	struct hps_cost_result r;
	struct hps_err err = { 0 };

	if (hps_schedule_check(&c->cost, &sched, &err))
		fail_msg("case %llu, %s: %s", (unsigned long long)seed, name, err.msg);
	hps_cost_eval(&c->cost, &sched, NULL, &r, NULL);
	if (!r.fits)
		fail_msg("case %llu, %s: %s", (unsigned long long)seed, name, r.why);
	if (r.throughput < p->floor * (1 - 1e-8))
		fail_msg("case %llu, %s: %g below the floor", (unsigned long long)seed, name,
			 r.throughput);
	assert_true(fabs(r.cost - s->trial.cost) <= 1e-9 * r.cost);
	assert_true(fabs(r.throughput / s->trial.throughput - 1) < 1e-9);
	for (uint32_t i = 1; p->merge && i < s->n_stages; i++)
		assert_int_not_equal(s->stage[i].type, s->stage[i - 1].type);
}

static bool same(const struct hps_solution *a, const struct hps_solution *b)
{
	return a->n_stages == b->n_stages && a->evaluations == b->evaluations &&
	       (!a->n_stages || !memcmp(a->stage, b->stage, a->n_stages * sizeof(*a->stage))) &&
	       !memcmp(&a->trial.cost, &b->trial.cost, sizeof(a->trial.cost)) &&
	       a->bound == b->bound && a->has_bound == b->has_bound;
}

struct score {
	uint64_t found, best, of;
};

static void one_method(struct plan_case *c, const char *name, const struct plan_judge *j,
		       uint64_t seed, struct score *score)
{
	struct hps_solution s, again;
	struct hps_err err;
	enum hps_status rc = solve(&c->problem, name, &s, &err);
	double tie = 4 * HPS_TIE_EPS;

	if (rc != HPS_OK && (rc != HPS_NO || !err.msg[0]))
		fail_msg("case %llu, %s: status %d", (unsigned long long)seed, name, rc);
	/* Where there is no plan, auto has exact look for the fastest one as well. */
	if (rc == HPS_OK || strcmp(name, "auto"))
		assert_true(s.evaluations >= 1 && s.evaluations <= c->problem.max_evaluations);
	assert_int_equal(solve(&c->problem, name, &again, &err), rc);
	assert_true(same(&s, &again));
	hps_solution_release(&again);
	score->of += j->feasible;
	if (rc == HPS_OK) {
		assert_true(j->feasible);
		check_plan(c, &s, name, seed);
		if (s.trial.objective < j->objective * (1 - tie))
			fail_msg("case %llu, %s: %.17g, the optimum is %.17g",
				 (unsigned long long)seed, name, s.trial.objective, j->objective);
		if (!s.has_bound || s.bound > j->objective * (1 + tie))
			fail_msg("case %llu, %s: bound %.17g, the optimum is %.17g",
				 (unsigned long long)seed, name, s.bound, j->objective);
		if (s.proven && s.trial.objective > j->objective * (1 + tie))
			fail_msg("case %llu, %s: not what it claims to have proven",
				 (unsigned long long)seed, name);
		score->found++;
		score->best += s.trial.objective <= j->objective * (1 + tie);
	}
	hps_solution_release(&s);
}

static void test_random_cases(void **state)
{
	struct score score[RIVALS] = { { 0 } };
	const char *env = getenv("HPS_CASES");
	uint64_t n = env ? strtoull(env, NULL, 10) : 60;

	(void)state;
	for (uint64_t seed = 1; seed <= n; seed++) {
		struct plan_judge j;
		struct plan_case c;

		plan_case_random(&c, seed, 4000);
		plan_case_judge(&c, &j);
		c.problem.seed = seed;
		c.problem.max_evaluations = 40 + seed;
		for (int i = 0; i < RIVALS; i++)
			one_method(&c, rivals[i], &j, seed, &score[i]);
		plan_case_release(&c);
	}
	for (int i = 0; i < RIVALS; i++) {
		print_message("# %s: %llu of %llu plans found, %llu optimal\n", rivals[i],
			      (unsigned long long)score[i].found, (unsigned long long)score[i].of,
			      (unsigned long long)score[i].best);
		assert_true(score[i].found * 10 >= score[i].of * 9);
		assert_true(score[i].best * 10 >= score[i].of * (i ? 8 : 4));
	}
}

/* 16 layers, a slow cheap type and a fast one that is dear and slow to start; large outputs in the
 * middle make cuts cost. */
static void sixteen(struct plan_case *c)
{
	plan_case_init(c, 16, 2, 0);
	for (uint32_t l = 0; l < 16; l++) {
		plan_case_time(c, 0, l, 5e-6, 1e-6 * (1 + (l * 7) % 5) * (l < 4 ? 1 : 8));
		plan_case_time(c, 1, l, 4e-5, 2e-7 * (1 + (l * 3) % 4) * (l < 4 ? 20 : 1));
		c->size[l].output_bytes = 400 + 4000 * (l % 3);
		if (l < 15) {
			c->cut_forward[l] = c->size[l].output_bytes;
			c->cut_backward[l] = c->size[l].output_bytes;
		}
		c->size[l].param_bytes = 2e5 * (l % 2);
	}
	c->type[0].price = 0.04;
	c->type[1].price = 2.42;
	c->type[1].device = HPS_DEVICE_CUDA;
	c->profile.link = (struct hps_link){ 1.25e9, 5e-5 };
	c->profile.step_overhead_s = 2e-4;
	c->problem.floor = 1.8e5;
	plan_case_ready(c);
}

/* Gaps in percent after 30,000 evaluations: those that search stay within the 1 % that rl is held
 * to, on a problem whose floor leaves few structures feasible. */
static void test_sixteen(void **state)
{
	const double most[RIVALS] = { INFINITY, 1, 1, 1, INFINITY, 1e-6, 1, 1, 1 };
	struct hps_solution best, s;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	sixteen(&c);
	assert_int_equal(hps_plan_exact(&c.problem, "", &best, &err), HPS_OK);
	assert_true(best.proven);
	c.problem.max_evaluations = HPS_RIVAL_EVALUATIONS;
	c.problem.seed = 1;
	for (int i = 0; i < RIVALS; i++) {
		double gap;

		assert_int_equal(solve(&c.problem, rivals[i], &s, &err), HPS_OK);
		gap = 100 * (s.trial.objective / best.trial.objective - 1);
		print_message("# %s: %.3g %% above the optimum, bound %.3g %% below, %llu "
			      "evaluations\n",
			      rivals[i], gap, 100 * (1 - s.bound / best.trial.objective),
			      (unsigned long long)s.evaluations);
		assert_true(gap > -1e-6 && gap <= most[i]);
		assert_true(s.bound <= best.trial.objective * (1 + 1e-9));
		hps_solution_release(&s);
	}
	hps_solution_release(&best);
	plan_case_release(&c);
}

/* --- greedy by hand --- */

/* Each layer has a type that is ten times as fast; all take c1 alone, so any units of any stage
 * cost price * work, and a cut costs nothing. */
static void test_greedy(void **state)
{
	struct hps_solution s;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	plan_case_init(&c, 4, 2, 0);
	for (uint32_t l = 0; l < 4; l++) {
		plan_case_time(&c, l / 2, l, 0, 1e-5);
		plan_case_time(&c, 1 - l / 2, l, 0, 1e-4);
	}
	plan_case_ready(&c);
	c.problem.floor = 5e4;
	c.problem.objective = HPS_PRICE_PER_HOUR;
	assert_int_equal(solve(&c.problem, "greedy", &s, &err), HPS_OK);
	assert_int_equal(s.n_stages, 2);
	plan_case_is_stage(&s, 0, 0, 1, 0, 1); /* 20 us of work, 20 us allowed */
	plan_case_is_stage(&s, 1, 2, 3, 1, 1);
	/* Looking ahead 2 + 3 * 2 - 3 that go on, else 2 + 3 * 3. */
	assert_int_equal(s.evaluations, 2 + 3 * 2 + 2 + 3 * 3);
	hps_solution_release(&s);
	/* The same by hand where no cut is allowed inside a type. */
	c.problem.merge = true;
	assert_int_equal(solve(&c.problem, "greedy", &s, &err), HPS_OK);
	assert_int_equal(s.n_stages, 2);
	assert_int_equal(s.evaluations, 2 + 3 + 2 + 3 * 2);
	hps_solution_release(&s);
	plan_case_release(&c);
	/* One type, serial work of 15 us in each of 4 layers, 20 us allowed: a stage for each.
	 * Looking ahead sees nothing that fits before the last; layer by layer does. */
	plan_case_init(&c, 4, 1, 0);
	c.opt.form = HPS_COST_PAPER;
	for (uint32_t l = 0; l < 4; l++)
		plan_case_time(&c, 0, l, 1.5e-3, 0);
	plan_case_ready(&c);
	c.problem.floor = 5e4;
	assert_int_equal(solve(&c.problem, "greedy", &s, &err), HPS_OK);
	assert_int_equal(s.n_stages, 4);
	hps_solution_release(&s);
	plan_case_release(&c);
	/* Two types that are the same: the first; and all plans take one unit's work, so the one
	 * with the fewest units, though not at the price of speed. */
	plan_case_init(&c, 4, 2, 1);
	for (uint32_t l = 0; l < 8; l++)
		plan_case_time(&c, l / 4, l % 4, 0, 1e-5);
	plan_case_ready(&c);
	c.problem.objective = HPS_PRICE_PER_HOUR;
	assert_int_equal(solve(&c.problem, "greedy", &s, &err), HPS_OK);
	assert_int_equal(s.n_stages, 1);
	plan_case_is_stage(&s, 0, 0, 3, 0, 1);
	hps_solution_release(&s);
	c.problem.objective = HPS_COST_PER_SAMPLE;
	assert_int_equal(solve(&c.problem, "greedy", &s, &err), HPS_OK);
	assert_int_equal(s.n_stages, 2);
	plan_case_is_stage(&s, 0, 0, 1, 0, 1);
	plan_case_is_stage(&s, 1, 2, 3, 1, 1);
	hps_solution_release(&s);
	plan_case_release(&c);
}

/* --- stops --- */

struct stopping {
	uint64_t asked, after;
	uint64_t news;
	double best, clock;
};

static bool stop_after(void *arg)
{
	struct stopping *x = arg;

	return x->asked++ >= x->after;
}

static void note(void *arg, const struct hps_plan_news *n)
{
	struct stopping *x = arg;

	x->news++;
	assert_true(n->objective <= x->best || isinf(x->best));
	x->best = n->objective;
}

static double tick(void *arg)
{
	return ((struct stopping *)arg)->clock += 0.001;
}

static void test_interrupt(void **state)
{
	struct hps_solution s;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	sixteen(&c);
	c.problem.floor = 0;
	for (int i = 0; i < RIVALS; i++) {
		for (uint64_t after = 0; after < 200; after = 3 * after + 7) {
			struct stopping x = { .after = after, .best = INFINITY };

			c.problem.hooks = (struct hps_plan_hooks){ NULL, stop_after, note, &x };
			assert_int_equal(solve(&c.problem, rivals[i], &s, &err), HPS_OK);
			check_plan(&c, &s, rivals[i], after);
			/* greedy, and auto's proof, may have been done before. */
			if (!s.interrupted)
				assert_true(x.asked <= after);
			assert_true(s.evaluations <= after + 2);
			assert_true(s.has_bound && s.bound <= s.trial.objective);
			if (s.evaluations > 3)
				assert_true(x.news > 0);
			hps_solution_release(&s);
		}
	}
	plan_case_release(&c);
}

static void test_seconds(void **state)
{
	struct hps_solution s;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	sixteen(&c);
	c.problem.floor = 0;
	c.problem.max_seconds = 0.5;
	for (int i = 0; i < RIVALS; i++) {
		struct stopping x = { 0 };

		c.problem.hooks = (struct hps_plan_hooks){ tick, NULL, NULL, &x };
		assert_int_equal(solve(&c.problem, rivals[i], &s, &err), HPS_OK);
		assert_true(x.clock <= 0.51);
		assert_false(s.interrupted);
		hps_solution_release(&s);
	}
	plan_case_release(&c);
}

/* One layer, or one type: nothing to move. */
static void test_tiny(void **state)
{
	struct hps_solution s;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	for (uint32_t L = 1; L <= 2; L++) {
		plan_case_init(&c, L, 1, 3);
		for (uint32_t l = 0; l < L; l++)
			plan_case_time(&c, 0, l, 0, 1e-5);
		plan_case_ready(&c);
		c.problem.max_evaluations = 500;
		for (int merge = 0; merge < 2; merge++) {
			c.problem.merge = merge;
			for (int i = 0; i < RIVALS; i++) {
				assert_int_equal(solve(&c.problem, rivals[i], &s, &err), HPS_OK);
				assert_true(s.proven);
				hps_solution_release(&s);
			}
		}
		plan_case_release(&c);
	}
}

/* No plan: all say so, with the best throughput that they know of. */
static void test_no_plan(void **state)
{
	struct hps_solution s;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	sixteen(&c);
	c.type[0].limit = c.type[1].limit = 1;
	plan_case_release(&c);
	c.problem.floor = 1e9;
	plan_case_ready(&c);
	c.problem.max_evaluations = 300;
	for (int i = 0; i < RIVALS; i++) {
		assert_int_equal(solve(&c.problem, rivals[i], &s, &err), HPS_NO);
		assert_true(err.msg[0]);
		assert_true(s.trial.throughput > 0 && s.n_stages >= 1);
		assert_false(s.proven);
		hps_solution_release(&s);
	}
	plan_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_cases), cmocka_unit_test(test_sixteen),
		cmocka_unit_test(test_greedy),	     cmocka_unit_test(test_interrupt),
		cmocka_unit_test(test_seconds),	     cmocka_unit_test(test_tiny),
		cmocka_unit_test(test_no_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
