/* Answers that are known from elsewhere: measured OPT-350M, PipeDream's own planner on VGG-16,
 * RALP's cuts. Profiles are in testdata/profiles. */
#include <math.h>
#include <string.h>
#include "cm.h"
#include "job_case.h"
#include "plan/exact.h"
#include "plan_case.h"

static void near(double got, double want, double rel)
{
	if (!(fabs(got - want) <= rel * fabs(want)))
		fail_msg("expected %.17g, got %.17g", want, got);
}

static void load(const char *name, struct hps_job *job)
{
	struct hps_err err = { 0 };
	char path[4096];

	job_case_path(name, path, sizeof(path));
	if (hps_job_read(path, HPS_CLUSTER | HPS_PROFILE, HPS_CLUSTER | HPS_PROFILE, job, &err))
		fail_msg("%s: %s", err.where, err.msg);
}

static void opt350(const struct hps_cost *cost, double floor, bool merge, double dollars,
		   double throughput)
{
	struct hps_problem p = { .cost = cost, .floor = floor, .merge = merge };
	struct hps_solution s;
	struct hps_err err = { 0 };

	if (hps_plan_exact(&p, "", &s, &err))
		fail_msg("%s", err.msg);
	assert_true(s.proven);
	near(s.trial.cost * 1024, dollars, 2e-6);
	if (throughput > 0)
		near(s.trial.throughput, throughput, 1e-4);
	for (uint32_t i = 0; i < s.n_stages; i++)
		assert_true(s.stage[i].units <= 64);
	for (uint32_t i = 1; merge && i < s.n_stages; i++)
		assert_true(s.stage[i].type != s.stage[i - 1].type);
	hps_solution_release(&s);
}

static void test_opt350(void **state)
{
	const struct hps_cost_options paper = { .form = HPS_COST_PAPER };
	struct hps_cost cost;
	struct hps_job job;

	(void)state;
	load("profiles/opt350.json", &job);
	assert_int_equal(hps_cost_init(&cost, &job.profile, &job.cluster, &paper, NULL), HPS_OK);
	opt350(&cost, 204.8, true, 0.273028, 0);
	opt350(&cost, 204.8, false, 0.226054, 0);
	opt350(&cost, 51.2, true, 0.254839, 0);
	opt350(&cost, 51.2, false, 0.207832, 125.69);
	hps_cost_release(&cost);
	hps_job_release(&job);
}

static void test_pipedream_vgg16(void **state)
{
	/* PipeDream adds communication to compute, lets every replica work a whole batch between
	 * two synchronisations, and leaves activations out of a stage's time. */
	const struct hps_cost_options opt = {
		.batch = 128,
		.serial = true,
		.weak = true,
		.dense_sync = HPS_SYNC_RING,
		.without = HPS_TERM_CUT | HPS_TERM_PS | HPS_TERM_CORES | HPS_TERM_MEMORY,
	};
	struct hps_problem p = { 0 };
	struct hps_solution s;
	struct hps_cost cost;
	struct hps_job job;

	(void)state;
	load("profiles/vgg16.json", &job);
	assert_int_equal(hps_cost_init(&cost, &job.profile, &job.cluster, &opt, NULL), HPS_OK);
	p.cost = &cost;
	assert_int_equal(hps_plan_fastest(&p, &s, NULL), HPS_OK);
	near(128 / s.trial.throughput, 0.175732624, 1e-9);
	assert_int_equal(s.n_stages, 2);
	assert_int_equal(s.stage[0].last, 14);
	assert_int_equal(s.stage[0].units, 3);
	assert_int_equal(s.stage[1].units, 1);
	hps_solution_release(&s);
	hps_cost_release(&cost);
	hps_job_release(&job);
}

/* Bytes of a worker and step: what the first stage synchronises and sends over its cut. */
static double worker_bytes(const struct hps_cost *c, const struct hps_span *stage, uint32_t n)
{
	struct hps_schedule s = { stage, n, 1 };
	struct hps_stage_cost row[2];
	struct hps_cost_result r;

	hps_cost_eval(c, &s, NULL, &r, row);
	return row[0].dense_bytes + row[0].cut_bytes * c->opt.batch / stage[0].units;
}

static void test_ralp_vgg16(void **state)
{
	const struct hps_cost_options opt = { .batch = 128, .dense_sync = HPS_SYNC_PS };
	const struct hps_span plain[] = { { 0, 39, 0, 1 } };
	/* After the last pooling, node 32: the 31st layer. */
	const struct hps_span split[] = { { 0, 30, 0, 1 }, { 31, 39, 0, 1 } };
	struct hps_cost cost;
	struct hps_job job;

	(void)state;
	load("profiles/vgg16.json", &job);
	assert_string_equal(job.profile.size[30].name, "node32");
	assert_int_equal(hps_cost_init(&cost, &job.profile, &job.cluster, &opt, NULL), HPS_OK);
	near(worker_bytes(&cost, plain, 1), 1106.9e6, 5e-5);
	near(worker_bytes(&cost, split, 2), 143.4e6, 5e-4);
	hps_cost_release(&cost);
	hps_job_release(&job);
}

static void test_ralp_alexnet(void **state)
{
	/* PipeDream's AlexNet profile: 9,878,784 bytes up to the last pooling, 244,403,360 in
	 * all, 36,864 bytes of output there, batch 256. */
	const struct hps_span plain[] = { { 0, 1, 0, 1 } };
	const struct hps_span split[] = { { 0, 0, 0, 1 }, { 1, 1, 0, 1 } };
	struct plan_case c;

	(void)state;
	plan_case_init(&c, 2, 1, 4);
	plan_case_time(&c, 0, 0, 0, 1e-3);
	plan_case_time(&c, 0, 1, 0, 1e-3);
	c.size[0].param_bytes = 9878784;
	c.size[1].param_bytes = 244403360 - 9878784;
	c.cut_forward[0] = c.cut_backward[0] = 36864;
	c.opt.batch = 256;
	c.opt.dense_sync = HPS_SYNC_PS;
	plan_case_ready(&c);
	near(worker_bytes(&c.cost, plain, 1), 488.8e6, 2e-4);
	near(worker_bytes(&c.cost, split, 2), 38.6e6, 2e-3);
	plan_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opt350),
		cmocka_unit_test(test_pipedream_vgg16),
		cmocka_unit_test(test_ralp_vgg16),
		cmocka_unit_test(test_ralp_alexnet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
