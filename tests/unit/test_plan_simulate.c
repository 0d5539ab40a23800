/* The simulator as hps-plan asks for it: words, the run, its report, its interruption. */
#include <string.h>
#include "cm.h"
#include "plan/simulate.h"
#include "sim_case.h"

struct fixture {
	struct sim_case c;
	struct hps_problem p;
	struct hps_solution s;
	struct hps_cost_result predicted;
};

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	sim_case_init(&f->c, 2, 1e-5);
	sim_case_pipeline(&f->c, 2);
	assert_true(sim_case_ready(&f->c));
	f->p.cost = &f->c.cost;
	f->p.seed = 7;
	f->s.stage = f->c.stage;
	f->s.n_stages = 2;
	f->s.trial.shards = 1;
	hps_cost_eval(&f->c.cost, &f->c.schedule, NULL, &f->predicted, NULL);
	f->s.trial.throughput = f->predicted.throughput;
}

static void test_words(void **state)
{
	struct hps_sim_options o;
	struct fixture f;

	(void)state;
	setup(&f);
	assert_int_equal(hps_simulation_words(&f.p, "", &o, NULL), HPS_OK);
	assert_int_equal(o.mode, HPS_SIM_BSP);
	assert_int_equal(o.seed, 7);
	assert_true(o.jitter == 0 && o.straggler_share == 0 && !o.duplex);
	assert_int_equal(
		hps_simulation_words(&f.p, "asp,ssp:4,jitter=0.5,stragglers=0.1*3,steps=9,duplex",
				     &o, NULL),
		HPS_OK);
	assert_int_equal(o.mode, HPS_SIM_SSP);
	assert_int_equal(o.bound, 4);
	assert_int_equal(o.steps, 9);
	assert_true(o.jitter == 0.5 && o.straggler_share == 0.1 && o.straggler_factor == 3 &&
		    o.duplex);
	assert_int_equal(hps_simulation_words(&f.p, "asp,,bsp", &o, NULL), HPS_USAGE);
	sim_case_release(&f.c);
}

/* Five slots for four micro-batches: the prediction of the rate is a quarter too high. */
static void test_report(void **state)
{
	struct hps_sim_options o;
	struct hps_simulation x;
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_at root, at;
	struct hps_doc *d;
	struct fixture f;
	double v;

	(void)state;
	setup(&f);
	assert_int_equal(hps_simulation_words(&f.p, "bsp", &o, NULL), HPS_OK);
	assert_int_equal(hps_simulate(&f.p, &f.s, &o, &x, NULL), HPS_OK);
	assert_int_equal(hps_simulation_text(&f.p, &f.s, &x, &b, NULL), HPS_OK);
	assert_non_null(strstr(b.data, "-20 % to the prediction; bsp, 20 steps"));
	d = hps_simulation_doc(&f.p, &f.s, &x);
	assert_non_null(d);
	root = hps_at_root(d, "simulation");
	at = hps_at_member(&root, "over_prediction");
	assert_int_equal(hps_at_double(&at, -1, 1, &v, NULL), HPS_OK);
	assert_true(v > -0.2 - 1e-9 && v < -0.2 + 1e-9);
	at = hps_at_member(&root, "stages");
	assert_int_equal(hps_at_count(&at), 2);
	hps_doc_free(d);
	hps_buf_release(&b);
	hps_simulation_release(&x);
	sim_case_release(&f.c);
}

static bool stop(void *arg)
{
	(void)arg;
	return true;
}

static void test_interrupted(void **state)
{
	struct hps_sim_options o;
	struct hps_simulation x;
	struct hps_err err = { 0 };
	struct fixture f;

	(void)state;
	setup(&f);
	f.p.hooks.stop = stop;
	assert_int_equal(hps_simulation_words(&f.p, "steps=100000", &o, NULL), HPS_OK);
	assert_int_equal(hps_simulate(&f.p, &f.s, &o, &x, &err), HPS_NO);
	assert_string_equal(err.msg, "simulation: interrupted");
	assert_null(x.stage);
	hps_simulation_release(&x);
	sim_case_release(&f.c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
