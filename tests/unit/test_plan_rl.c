/* Does learning find the proven optimum on the models it is for, does what was learned carry over,
 * and does it learn from whatever judges? */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"
#include "plan/exact.h"
#include "plan/plan_int.h"
#include "plan/rl.h"
#include "plan/rivals.h"
#include "plan_work.h"

static void open_work(struct plan_work *w, const char *model, const char *cluster, double floor)
{
	struct hps_err err = { 0 };

	if (plan_work_open(w, model, cluster, &err) || plan_work_floor(w, floor, &err))
		fail_msg("%s: %s", err.where, err.msg);
}

static double optimum(const struct hps_problem *p)
{
	struct hps_solution s;
	struct hps_err err = { 0 };
	double out;

	assert_int_equal(hps_plan_exact(p, "", &s, &err), HPS_OK);
	assert_true(s.proven);
	out = s.trial.objective;
	hps_solution_release(&s);
	return out;
}

typedef enum hps_status method(const struct hps_problem *p, const char *arg,
			       struct hps_solution *out, struct hps_err *err);

/* The objective that a method finds; INFINITY for none. */
static double found(const struct hps_problem *p, method *solve)
{
	struct hps_solution s;
	struct hps_err err = { 0 };
	enum hps_status rc = solve(p, "", &s, &err);
	double out = rc ? INFINITY : s.trial.objective;

	assert_true(rc == HPS_OK || rc == HPS_NO);
	hps_solution_release(&s);
	return out;
}

/* No seed left out; the budget is a fifth of the default. */
static void test_seeds(void **state)
{
	static const struct {
		const char *model;
		double floor;
		bool merge;
		uint64_t seeds;
		method *solve;
	} cases[] = {
		{ "ctrdnn-16", 0.8, false, 2, hps_plan_rl },
		{ "ctrdnn-16", 0.3, true, 1, hps_plan_rl },
		{ "ctrdnn-16", 0, false, 1, hps_plan_rl_rnn },
		{ "matchnet", 0.8, false, 1, hps_plan_rl_polish },
		{ "2emb", 0.8, false, 1, hps_plan_rl },
		{ "nce", 0.3, false, 2, hps_plan_rl },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct plan_work w;
		double best;

		open_work(&w, cases[i].model, "two-types", cases[i].floor);
		w.problem.merge = cases[i].merge;
		best = optimum(&w.problem);
		w.problem.max_evaluations = 6000;
		for (uint64_t seed = 1; seed <= cases[i].seeds; seed++) {
			double gap;

			w.problem.seed = seed;
			gap = 100 * (found(&w.problem, cases[i].solve) / best - 1);
			print_message("# %s, floor %g%s, seed %llu: %.2g %%\n", cases[i].model,
				      cases[i].floor, cases[i].merge ? ", merge" : "",
				      (unsigned long long)seed, gap);
			assert_true(gap > -1e-6 && gap < 1);
		}
		plan_work_close(&w);
	}
}

/* --- policies that have learned --- */

static void learn(const char *model, double floor, struct hps_policy *out)
{
	struct hps_rl_options rl = { .learned = out };
	struct plan_work w;

	open_work(&w, model, "two-types", floor);
	w.problem.rl = &rl;
	w.problem.max_evaluations = 6000;
	assert_true(isfinite(found(&w.problem, hps_plan_rl)));
	assert_non_null(out->weight);
	plan_work_close(&w);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median over seeds, one more where there is none. */
static double median(struct hps_problem *p, const struct hps_policy *policy)
{
	struct hps_rl_options rl = { .policy = policy };
	double value[5];

	p->rl = &rl;
	for (uint64_t seed = 0; seed < 5; seed++) {
		p->seed = seed + 1;
		value[seed] = found(p, hps_plan_rl);
	}
	p->rl = NULL;
	qsort(value, 5, sizeof(*value), ascending);
	return value[2];
}

/* On models that it has not seen, under a tight floor, with the same few budgets for all: a policy
 * of ctrdnn-16 on two types is far more often ahead of one that begins with nothing than behind it,
 * and never far behind. */
static void test_warm(void **state)
{
	static const char *const models[] = { "matchnet", "2emb", "nce" };
	static const char *const clusters[] = { "two-types", "four-types" };
	static const uint64_t budgets[] = { 32, 96, 320 };
	struct hps_policy policy = { .weight = NULL };
	int ahead = 0, behind = 0;

	(void)state;
	learn("ctrdnn-16", 0.8, &policy);
	for (int i = 0; i < 3 * 2; i++) {
		const char *model = models[i / 2], *cluster = clusters[i % 2];
		struct plan_work w;

		open_work(&w, model, cluster, 0.8);
		for (int b = 0; b < 3; b++) {
			double warm, cold;

			w.problem.max_evaluations = budgets[b];
			warm = median(&w.problem, &policy);
			cold = median(&w.problem, NULL);
			print_message("# %s, %s, %llu evaluations: warm %.5g, cold %.5g\n", model,
				      cluster, (unsigned long long)budgets[b], warm, cold);
			ahead += hps_lower(warm, cold);
			behind += hps_lower(cold, warm);
			assert_true(warm <= 1.1 * cold);
		}
		plan_work_close(&w);
	}
	print_message("# ahead in %d, behind in %d\n", ahead, behind);
	assert_true(ahead >= 3 * behind && ahead > 2);
	hps_policy_release(&policy);
}

/* Two types learned, four and sixteen served: a legal plan each, by one evaluation. */
static void test_other_types(void **state)
{
	static const char *const clusters[] = { "two-types", "four-types", "16-types" };
	struct hps_policy policy = { .weight = NULL };

	(void)state;
	learn("ctrdnn-8", 0, &policy);
	for (int i = 0; i < 3; i++) {
		struct hps_rl_options rl = { .policy = &policy, .limited = true };
		struct hps_solution s;
		struct hps_err err = { 0 };
		struct plan_work w;

		open_work(&w, "ctrdnn-16", clusters[i], 0);
		w.problem.rl = &rl;
		assert_int_equal(hps_plan_rl(&w.problem, "", &s, &err), HPS_OK);
		assert_int_equal(s.evaluations, 1);
		assert_true(s.trial.feasible && s.bound <= s.trial.objective);
		/* Better than the dearest type for all, by far. */
		print_message("# %s: %.3g of the bound\n", clusters[i],
			      s.trial.objective / s.bound);
		assert_true(s.trial.objective < 8 * s.bound);
		hps_solution_release(&s);
		plan_work_close(&w);
	}
	hps_policy_release(&policy);
}

/* --- another judge --- */

/* Half the speed for each stage beyond the first. */
static enum hps_status few_stages(void *arg, const struct hps_cost *c, const struct hps_schedule *s,
				  double *out, struct hps_err *err)
{
	struct hps_cost_result r;

	(void)err;
	++*(uint64_t *)arg;
	hps_cost_eval(c, s, NULL, &r, NULL);
	*out = r.throughput / (double)(1u << (s->n_stages - 1));
	return HPS_OK;
}

static enum hps_status nothing_runs(void *arg, const struct hps_cost *c,
				    const struct hps_schedule *s, double *out, struct hps_err *err)
{
	(void)arg;
	(void)c;
	(void)s;
	*out = 0;
	return hps_err_set(err, HPS_NO, "it does not run");
}

static void test_reward(void **state)
{
	uint64_t asked = 0;
	struct hps_reward reward = { few_stages, &asked }, none = { nothing_runs, NULL };
	struct hps_solution s, formula;
	struct hps_err err = { 0 };
	struct plan_work w;

	(void)state;
	open_work(&w, "ctrdnn-16", "two-types", 0.3);
	w.problem.max_evaluations = 4000;
	assert_int_equal(hps_plan_rl(&w.problem, "", &formula, &err), HPS_OK);
	assert_true(formula.n_stages > 1);
	w.problem.reward = &reward;
	assert_int_equal(hps_plan_rl(&w.problem, "", &s, &err), HPS_OK);
	assert_true(asked > 10);
	assert_true(s.trial.throughput >= w.problem.floor && s.bound <= s.trial.objective);
	/* What the formula likes best is worth less here than what was found. */
	assert_int_equal(
		hps_reward_trial(&w.problem, formula.stage, formula.n_stages, &formula.trial, &err),
		HPS_OK);
	assert_true(hps_trial_better(&s.trial, &formula.trial));
	hps_solution_release(&s);
	hps_solution_release(&formula);
	w.problem.reward = &none;
	w.problem.max_evaluations = 64;
	assert_int_equal(hps_plan_rl(&w.problem, "", &s, &err), HPS_NO);
	assert_non_null(strstr(err.msg, "reward"));
	hps_solution_release(&s);
	plan_work_close(&w);
}

/* --- options that do not go together --- */

static void test_options(void **state)
{
	struct hps_policy policy;
	struct hps_rl_options rl = { .policy = &policy };
	struct hps_solution s;
	struct hps_err err = { 0 };
	struct plan_work w;

	(void)state;
	open_work(&w, "nce", "two-types", 0);
	w.problem.rl = &rl;
	assert_int_equal(hps_policy_init(&policy, HPS_CELL_RNN, 4, 1, &err), HPS_OK);
	assert_int_equal(hps_plan_rl(&w.problem, "", &s, &err), HPS_USAGE);
	assert_non_null(strstr(err.msg, "cell rnn"));
	/* Any number of hidden units will do. */
	w.problem.max_evaluations = 100;
	assert_int_equal(hps_plan_rl_rnn(&w.problem, "", &s, &err), HPS_OK);
	hps_solution_release(&s);
	rl = (struct hps_rl_options){ .limited = true };
	assert_int_equal(hps_plan_rl(&w.problem, "", &s, &err), HPS_USAGE);
	hps_policy_release(&policy);
	plan_work_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeds),	    cmocka_unit_test(test_warm),
		cmocka_unit_test(test_other_types), cmocka_unit_test(test_reward),
		cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
