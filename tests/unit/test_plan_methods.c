/* The simple methods, the registry, settling and its ties, the budget, and what is said where there
 * is no plan. */
#include <math.h>
#include <string.h>
#include "cm.h"
#include "plan/exact.h"
#include "plan/plan.h"
#include "plan_case.h"

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * fabs(want)))
		fail_msg("expected %.17g, got %.17g", want, got);
}

static enum hps_status solve(const struct hps_problem *p, const char *word, struct hps_solution *s,
			     struct hps_err *err)
{
	const struct hps_method *m;
	const char *arg;

	memset(err, 0, sizeof(*err));
	memset(s, 0, sizeof(*s));
	m = hps_method_find(word, &arg, err);
	return m ? m->solve(p, arg, s, err) : HPS_USAGE;
}

/* Six layers of 10 us a sample on t0 (a CPU, 0.1 $), 2 us on t1 (2 $); layers 0 and 1 have
 * sparse rows. No transfers, no servers' price. */
static void six_layers(struct plan_case *c)
{
	plan_case_init(c, 6, 2, 4);
	for (uint32_t l = 0; l < 6; l++) {
		plan_case_time(c, 0, l, 0, 1e-5);
		plan_case_time(c, 1, l, 0, 2e-6);
	}
	c->size[0].sparse_keys = c->size[1].sparse_keys = 1;
	c->type[0].price = 0.1;
	c->type[1].price = 2;
	c->type[1].device = HPS_DEVICE_CUDA;
	plan_case_ready(c);
}

static void test_all(void **state)
{
	struct hps_solution s;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	six_layers(&c);
	c.problem.floor = 40000;
	assert_int_equal(solve(&c.problem, "all:t0", &s, &err), HPS_OK);
	assert_int_equal(s.n_stages, 1);
	/* 60 us a sample at one unit; three meet the floor, and four cost the same and are
	 * faster. */
	plan_case_is_stage(&s, 0, 0, 5, 0, 4);
	near(s.trial.throughput, 4 / 6e-5);
	near(s.trial.cost, 0.1 / 3600 * 6e-5);
	hps_solution_release(&s);
	/* By price per hour three are enough. */
	c.problem.objective = HPS_PRICE_PER_HOUR;
	assert_int_equal(solve(&c.problem, "all:t0", &s, &err), HPS_OK);
	plan_case_is_stage(&s, 0, 0, 5, 0, 3);
	hps_solution_release(&s);
	assert_int_equal(solve(&c.problem, "all:gpu", &s, &err), HPS_USAGE);
	assert_string_equal(err.msg, "no type \"gpu\"; the cluster has t0, t1");
	assert_int_equal(solve(&c.problem, "all:", &s, &err), HPS_USAGE);
	/* Too high a floor: which stage, by what, how far it gets. */
	c.problem.floor = 1e5;
	assert_int_equal(solve(&c.problem, "all:t0", &s, &err), HPS_NO);
	assert_non_null(strstr(err.msg, "reaches 66666.7 samples/s at best, below the floor of "
					"100000: stage 0 (layers 0-5 on \"t0\", 4 of 4 units) is "
					"bound by compute"));
	near(s.trial.throughput, 4 / 6e-5);
	hps_solution_release(&s);
	plan_case_release(&c);
}

static void test_heuristic(void **state)
{
	struct hps_solution s;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	six_layers(&c);
	c.problem.objective = HPS_PRICE_PER_HOUR;
	c.problem.floor = 1e5;
	assert_int_equal(solve(&c.problem, "heuristic", &s, &err), HPS_OK);
	assert_int_equal(s.n_stages, 2);
	plan_case_is_stage(&s, 0, 0, 1, 0, 2); /* 20 us on CPUs, 10 us are allowed */
	plan_case_is_stage(&s, 1, 2, 5, 1, 1); /* 8 us on one GPU */
	hps_solution_release(&s);
	plan_case_release(&c);
}

static void test_fixed(void **state)
{
	const char *bad[] = { "fixed:t0",
			      "fixed:t0*0",
			      "fixed:t0*-1",
			      "fixed:t0*2|",
			      "fixed:t0*1x",
			      "fixed:t0*1@0-9",
			      "fixed:t0*1@4-2",
			      "fixed:t0*1@0-2",
			      "fixed:t0*1@1-",
			      "fixed:t0*1@0-1|t1*1@3-",
			      "fixed:t9*1",
			      "fixed:t0*99999999999",
			      "fixed:t0*1|t0*1|t0*1|t0*1|t0*1|t0*1|t0*1" };
	struct hps_solution s;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	six_layers(&c);
	/* 4 units and 2 of equal speed: the cut that balances is after the fourth layer. */
	c.type[0].limit = 6;
	plan_case_release(&c);
	plan_case_ready(&c);
	assert_int_equal(solve(&c.problem, "fixed:t0*4|t0*2", &s, &err), HPS_OK);
	assert_int_equal(s.n_stages, 2);
	plan_case_is_stage(&s, 0, 0, 3, 0, 4);
	plan_case_is_stage(&s, 1, 4, 5, 0, 2);
	near(s.trial.throughput, 1e5);
	assert_int_equal(s.evaluations, 5);
	hps_solution_release(&s);
	assert_int_equal(solve(&c.problem, "fixed:t0*1@0-0|t0*1@1-", &s, &err), HPS_OK);
	plan_case_is_stage(&s, 0, 0, 0, 0, 1);
	plan_case_is_stage(&s, 1, 1, 5, 0, 1);
	hps_solution_release(&s);
	/* Only the middle one is told where. */
	assert_int_equal(solve(&c.problem, "fixed:t0*1|t1*1@2-3|t0*2", &s, &err), HPS_OK);
	plan_case_is_stage(&s, 0, 0, 1, 0, 1);
	plan_case_is_stage(&s, 1, 2, 3, 1, 1);
	plan_case_is_stage(&s, 2, 4, 5, 0, 2);
	hps_solution_release(&s);
	assert_int_equal(solve(&c.problem, "fixed:t0*4|t0*3", &s, &err), HPS_NO);
	assert_non_null(strstr(err.msg, "7 units of type \"t0\", the limit is 6"));
	hps_solution_release(&s);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (solve(&c.problem, bad[i], &s, &err) != HPS_USAGE)
			fail_msg("%s is taken", bad[i]);
		assert_true(err.msg[0]);
		hps_solution_release(&s);
	}
	plan_case_release(&c);
}

/* Too many choices to look at each: the same answer as where they can be. */
static void test_fixed_many(void **state)
{
	struct hps_solution s;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	plan_case_init(&c, 16, 1, 64);
	for (uint32_t l = 0; l < 16; l++)
		plan_case_time(&c, 0, l, 0, (1 + l % 3) * 1e-6);
	plan_case_ready(&c);
	/* C(15, 7) = 6435 choices, 8 stages; times 1 2 3 1 2 3 ..: sums of 31 over 8 are 4 at
	 * least, and 5 is what contiguous runs allow. */
	assert_int_equal(
		solve(&c.problem, "fixed:t0*1|t0*1|t0*1|t0*1|t0*1|t0*1|t0*1|t0*1", &s, &err),
		HPS_OK);
	near(s.trial.throughput, 1 / 5e-6);
	hps_solution_release(&s);
	assert_int_equal(solve(&c.problem, "fixed:t0*1|t0*1|t0*1", &s, &err), HPS_OK);
	assert_int_equal(s.evaluations, 105);
	near(s.trial.throughput, 1 / 12e-6);
	hps_solution_release(&s);
	plan_case_release(&c);
}

static void test_unknown(void **state)
{
	struct hps_err err = { 0 };
	const char *arg;

	(void)state;
	assert_null(hps_method_find("magic", &arg, &err));
	assert_int_equal(err.status, HPS_USAGE);
	for (const struct hps_method *const *m = hps_methods(); *m; m++)
		assert_non_null(strstr(err.msg, (*m)->synopsis));
	assert_null(hps_method_find("exact:3", &arg, &err));
	assert_null(hps_method_find("all", &arg, &err));
	assert_non_null(hps_method_find(HPS_METHOD_DEFAULT, &arg, &err));
}

static void no_plan(struct plan_case *c, const char *word, const char *msg)
{
	struct hps_solution s;
	struct hps_err err;

	plan_case_ready(c);
	assert_int_equal(solve(&c->problem, word, &s, &err), HPS_NO);
	if (!strstr(err.msg, msg))
		fail_msg("expected \"%s\", got \"%s\"", msg, err.msg);
	hps_solution_release(&s);
	plan_case_release(c);
}

static void test_infeasible(void **state)
{
	const uint32_t units[] = { 4, 4 };
	struct plan_case c;

	(void)state;
	/* 4 + 4 units: at best the types share the layers. */
	six_layers(&c);
	plan_case_release(&c);
	c.problem.floor = 1e6;
	no_plan(&c, "exact",
		"no plan reaches 1e+06 samples/s: the best throughput there is is "
		"400000, where stage");
	/* A layer that is too slow whatever is done. */
	plan_case_time(&c, 0, 3, 0, 1);
	plan_case_time(&c, 1, 3, 0, 0.5);
	no_plan(&c, "exact",
		"layer 3 \"l3\" alone takes 0.125 s a sample at least, 1e-06 s is "
		"allowed (on \"t1\", its best type, with 4 units)");
	/* Servers. */
	six_layers(&c);
	plan_case_release(&c);
	c.profile.shard.rows_per_s = 1e5;
	plan_case_host(&c, units, 100, 2);
	c.problem.floor = 1e5;
	no_plan(&c, "exact",
		"the servers take 4e-05 s a sample, 2 shards at most make it 2e-05 s, "
		"1e-05 s is allowed; the best throughput there is is 50000");
	/* Cores: 8 units on one core. */
	six_layers(&c);
	plan_case_release(&c);
	c.cluster.n_types = 1;
	plan_case_host(&c, units, 1, 2);
	c.problem.floor = 3e4;
	no_plan(&c, "exact",
		"the best throughput there is is 16666.7, where all work shares 1 "
		"cores");
	/* Memory. */
	six_layers(&c);
	plan_case_release(&c);
	c.size[4].param_bytes = 1e6;
	c.type[0].memory = c.type[1].memory = 1e6;
	no_plan(&c, "exact", "layer 4 \"l4\" fits the memory of no type");
	/* More PS cores asked for than there are. */
	six_layers(&c);
	plan_case_release(&c);
	plan_case_host(&c, units, 4, 2);
	c.opt.shards = 3;
	no_plan(&c, "exact", "3 parameter server shards are needed, 2 PS cores are there");
}

static double ticks(void *arg)
{
	return *(double *)arg += 0.01;
}

static bool always(void *arg)
{
	(void)arg;
	return true;
}

static void test_budget(void **state)
{
	struct hps_solution s, full;
	struct hps_err err;
	struct plan_case c;
	double clock = 0;

	(void)state;
	plan_case_init(&c, 12, 4, 40);
	for (uint32_t l = 0; l < 12; l++)
		for (uint32_t t = 0; t < 4; t++)
			plan_case_time(&c, t, l, 1e-5 * ((l * 7 + t * 3) % 5),
				       1e-6 * (1 + (l * 5 + t * 11) % 7));
	c.problem.floor = 1e5;
	plan_case_ready(&c);
	assert_int_equal(solve(&c.problem, "exact", &full, &err), HPS_OK);
	assert_true(full.proven);
	assert_true(full.evaluations > 3);
	/* Stopped early: a plan, and a bound that is one. */
	for (uint64_t n = 1; n < full.evaluations; n++) {
		c.problem.max_evaluations = n;
		assert_int_equal(solve(&c.problem, "exact", &s, &err), HPS_OK);
		assert_true(s.evaluations <= n);
		assert_true(s.trial.objective >= full.trial.objective * (1 - 1e-9));
		assert_true(s.has_bound);
		assert_true(s.bound <= full.trial.objective * (1 + 1e-9));
		hps_solution_release(&s);
	}
	c.problem.max_evaluations = 0;
	c.problem.max_seconds = 0.035;
	c.problem.hooks.now = ticks;
	c.problem.hooks.arg = &clock;
	assert_int_equal(solve(&c.problem, "exact", &s, &err), HPS_OK);
	assert_true(s.evaluations < full.evaluations);
	hps_solution_release(&s);
	c.problem.hooks.stop = always;
	assert_int_equal(solve(&c.problem, "exact", &s, &err), HPS_OK);
	assert_true(s.interrupted);
	assert_false(s.proven);
	hps_solution_release(&s);
	hps_solution_release(&full);
	plan_case_release(&c);
}

static void test_brute_refuses(void **state)
{
	struct hps_solution s;
	struct hps_err err;
	struct plan_case c;

	(void)state;
	plan_case_init(&c, 16, 4, 4);
	for (uint32_t l = 0; l < 16; l++)
		for (uint32_t t = 0; t < 4; t++)
			plan_case_time(&c, t, l, 0, 1e-6);
	plan_case_ready(&c);
	assert_int_equal(solve(&c.problem, "brute", &s, &err), HPS_USAGE);
	assert_non_null(strstr(err.msg, "of 16 layers on 4 types"));
	plan_case_release(&c);
}

static void test_layers_to_spans(void **state)
{
	const uint32_t type[] = { 0, 0, 1, 1, 1, 0 };
	const uint8_t cut[] = { 0, 0, 0, 0, 1, 0 };
	struct hps_span s[6];

	(void)state;
	assert_int_equal(hps_spans_of_layers(type, NULL, 6, s), 3);
	assert_int_equal(s[1].first, 2);
	assert_int_equal(s[1].last, 4);
	assert_int_equal(s[1].type, 1);
	assert_int_equal(hps_spans_of_layers(type, cut, 6, s), 4);
	assert_int_equal(s[1].last, 3);
	assert_int_equal(s[2].first, 4);
}

/* With merge, equal neighbours that a method tries are one stage. */
static void test_merge(void **state)
{
	struct hps_span stage[] = { { 0, 1, 0, 0 }, { 2, 3, 0, 0 }, { 4, 5, 1, 0 } };
	struct hps_search search;
	struct hps_trial trial;
	struct hps_solution s;
	struct plan_case c;
	uint32_t n = 3;

	(void)state;
	six_layers(&c);
	c.problem.merge = true;
	assert_int_equal(hps_search_init(&search, &c.problem, 10, NULL), HPS_OK);
	assert_true(hps_search_more(&search));
	assert_int_equal(hps_search_try(&search, stage, &n, &trial, NULL), HPS_OK);
	assert_int_equal(n, 2);
	assert_int_equal(stage[0].last, 3);
	assert_int_equal(stage[1].first, 4);
	assert_int_equal(hps_search_finish(&search, &s, NULL), HPS_OK);
	assert_int_equal(s.n_stages, 2);
	assert_int_equal(s.evaluations, 1);
	hps_solution_release(&s);
	plan_case_release(&c);
}

/* An infeasible structure is graded by how far off it is. */
static void test_graded(void **state)
{
	struct hps_span stage[] = { { 0, 5, 0, 0 } };
	struct hps_trial near_by, far_off;
	struct plan_case c;

	(void)state;
	six_layers(&c);
	c.problem.floor = 7e4; /* 66,667 is the most */
	assert_int_equal(hps_settle(&c.problem, stage, 1, &near_by, NULL), HPS_OK);
	assert_false(near_by.feasible);
	near(near_by.excess, 7e4 / (4 / 6e-5) - 1);
	assert_true(isfinite(near_by.graded));
	c.problem.floor = 7e5;
	assert_int_equal(hps_settle(&c.problem, stage, 1, &far_off, NULL), HPS_OK);
	assert_true(far_off.graded > near_by.graded);
	assert_true(hps_trial_better(&near_by, &far_off));
	assert_int_equal(stage[0].units, 4);
	plan_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_heuristic),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_fixed_many),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_infeasible),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_brute_refuses),
		cmocka_unit_test(test_layers_to_spans),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_graded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
