/* Does the cost model refuse what cannot be, and say where? */
#include <math.h>
#include <string.h>
#include "cm.h"
#include "cost/cost.h"
#include "plan_case.h"

static void two_types(struct plan_case *c)
{
	plan_case_init(c, 2, 2, 4);
	for (uint32_t i = 0; i < 4; i++)
		plan_case_time(c, i / 2, i % 2, 1e-4, 1e-6);
}

static void refused(const struct plan_case *c, const char *where, const char *msg)
{
	struct hps_err err = { 0 };
	struct hps_cost cost;

	assert_int_equal(hps_cost_init(&cost, &c->profile, &c->cluster, &c->opt, &err),
			 HPS_BAD_INPUT);
	if (!strstr(err.where, where) || !strstr(err.msg, msg))
		fail_msg("expected \"%s\" at \"%s\", got \"%s\" at \"%s\"", msg, where, err.msg,
			 err.where);
}

static void test_times(void **state)
{
	const double bad[] = { -1, NAN, INFINITY };
	struct plan_case c;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		two_types(&c);
		c.time[3].forward.c1 = bad[i];
		refused(&c, "layer \"l1\" on type \"t1\"", "forward c1");
		two_types(&c);
		c.time[3].backward.c0 = bad[i];
		refused(&c, "layer \"l1\" on type \"t1\"", "backward c0");
		two_types(&c);
		c.time[0].oct = bad[i];
		refused(&c, "layer \"l0\" on type \"t0\"", "oct");
		two_types(&c);
		c.time[0].alpha = bad[i];
		refused(&c, "layer \"l0\" on type \"t0\"", "alpha");
		two_types(&c);
		c.size[1].param_bytes = bad[i];
		refused(&c, "layer \"l1\"", "param_bytes");
		two_types(&c);
		c.cut_backward[0] = bad[i];
		refused(&c, "layer \"l0\"", "bytes at the cut");
		two_types(&c);
		c.profile.batch = bad[i];
		refused(&c, "profile: batch", "expected a number > 0");
	}
}

static void test_no_time(void **state)
{
	struct plan_case c;

	(void)state;
	/* A layer below the clock's resolution: in a foreign profile alone. */
	two_types(&c);
	plan_case_time(&c, 0, 1, 0, 0);
	plan_case_ready(&c);
	plan_case_release(&c);
	c.profile.digest = 1;
	refused(&c, "layer \"l1\" on type \"t0\"", "expected a time > 0");
	c.profile.digest = 0;
	plan_case_time(&c, 0, 0, 0, 0);
	refused(&c, "type \"t0\"", "no layer takes any time");
}

static void test_shape(void **state)
{
	struct plan_case c;

	(void)state;
	two_types(&c);
	c.profile.n_layers = 0;
	refused(&c, "profile", "at least one layer");
	two_types(&c);
	c.profile.n_types = 0;
	refused(&c, "profile", "at least one type");
	two_types(&c);
	c.cluster.n_types = 0;
	refused(&c, "cluster", "at least one type");
	two_types(&c);
	c.type[1].name = (char *)"other";
	refused(&c, "cluster.types[1]", "type \"other\" of the cluster has no times");
	two_types(&c);
	c.type[1].limit = 0;
	refused(&c, "cluster.types[1].limit", "expected an integer > 0");
	two_types(&c);
	c.opt.batch = 4;
	c.opt.micro_batches = 5;
	refused(&c, "", "a batch of 4 rows cannot be split into 5 micro-batches");
	/* A type that was profiled and is not in the cluster has no price: left out. */
	two_types(&c);
	c.cluster.n_types = 1;
	plan_case_ready(&c);
	assert_int_equal(c.cost.n_types, 1);
	plan_case_release(&c);
}

static void test_scaling(void **state)
{
	const double bad[] = { 0, -1, NAN, INFINITY };
	struct plan_case c;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		two_types(&c);
		c.opt.form = HPS_COST_PAPER;
		c.time[2].scaling = c.scaling[0];
		c.time[2].n_scaling = 2;
		c.scaling[0][0] = 1;
		c.scaling[0][1] = bad[i];
		refused(&c, "layer \"l0\" on type \"t1\"", "a speed > 0 at 2 units");
	}
}

static void check(const struct plan_case *c, const struct hps_span *stage, uint32_t n,
		  const char *msg)
{
	struct hps_schedule s = { stage, n, 1 };
	struct hps_err err = { 0 };

	assert_int_equal(hps_schedule_check(&c->cost, &s, &err), HPS_BAD_INPUT);
	if (!strstr(err.msg, msg))
		fail_msg("expected \"%s\", got \"%s\"", msg, err.msg);
}

static void test_schedule(void **state)
{
	const struct hps_span gap[] = { { 1, 1, 0, 1 } };
	const struct hps_span open[] = { { 0, 0, 0, 1 } };
	const struct hps_span over[] = { { 0, 2, 0, 1 } };
	const struct hps_span type[] = { { 0, 1, 2, 1 } };
	const struct hps_span units[] = { { 0, 1, 0, 0 } };
	struct plan_case c;

	(void)state;
	two_types(&c);
	plan_case_ready(&c);
	check(&c, NULL, 0, "at least one stage");
	check(&c, gap, 1, "stage 0: layers 1..1 do not follow");
	check(&c, open, 1, "layers 1..1 are in no stage");
	check(&c, over, 1, "within 0..1");
	check(&c, type, 1, "no type 2");
	check(&c, units, 1, "units > 0");
	plan_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),	 cmocka_unit_test(test_no_time),
		cmocka_unit_test(test_shape),	 cmocka_unit_test(test_scaling),
		cmocka_unit_test(test_schedule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
