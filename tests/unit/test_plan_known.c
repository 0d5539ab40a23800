/* Answers that are known from elsewhere: measured OPT-350M (testdata/profiles), and, where
 * PipeDream's profiles are, its own planner on VGG-16 and RALP's cuts; SqueezeNet's as published. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cm.h"
#include "import/import.h"
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

/* A network that PipeDream profiled, as the job of one GPU type. Skips without the data. */
static void measured(const char *net, struct hps_job *job)
{
	/* half the bandwidth of 1e9 B/s, as PipeDream counts both directions on one link */
	static const char gpu[] = "{\"types\": [{\"name\": \"gpu\", \"device\": \"cuda\","
				  " \"price\": 1, \"limit\": 4, \"link\": {\"bandwidth\": 5e8}}]}";
	const struct hps_import_options o = { 0 };
	const char *data = getenv("HPS_DATA");
	struct hps_doc *d = job_case_parse(gpu);
	struct hps_at at = hps_at_root(d, "gpu");
	struct hps_import_report r;
	struct hps_err err = { 0 };
	char path[512];

	memset(job, 0, sizeof(*job));
	assert_int_equal(hps_cluster_read(&at, &job->cluster, NULL), HPS_OK);
	hps_doc_free(d);
	job->has_cluster = true;
	snprintf(path, sizeof(path), "%s/pipedream-profiles/image_classification__%s.graph.txt",
		 data && *data ? data : "../shared/data", net);
	if (access(path, R_OK) != 0) {
		hps_job_release(job);
		skip();
	}
	if (hps_import(HPS_IMPORT_PIPEDREAM, path, &job->cluster, &o, &job->profile, &r, &err))
		fail_msg("%s: %s", err.where, err.msg);
	job->has_profile = true;
}

static void test_pipedream_vgg16(void **state)
{
	/* PipeDream adds communication to compute, lets every replica work a whole batch between
	 * two synchronisations, and leaves activations out of a stage's time. */
	const struct hps_cost_options opt = {
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
	measured("vgg16", &job);
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

/* Traffic of a worker with all of a network, and with what is above the cut elsewhere. */
static void ralp(const char *net, const char *last, double batch, double all, double cut)
{
	const struct hps_cost_options opt = { .dense_sync = HPS_SYNC_PS };
	struct hps_span split[2] = { { .units = 1 }, { .units = 1 } };
	struct hps_cost cost;
	struct hps_job job;

	measured(net, &job);
	near(job.profile.batch, batch, 1e-15);
	assert_int_equal(hps_cost_init(&cost, &job.profile, &job.cluster, &opt, NULL), HPS_OK);
	split[0].last = job.profile.n_layers - 1;
	near(worker_bytes(&cost, split, 1), all, 1e-3);
	split[0].last = 0;
	while (strcmp(job.profile.size[split[0].last].name, last))
		split[0].last++;
	split[1].first = split[0].last + 1;
	split[1].last = job.profile.n_layers - 1;
	near(worker_bytes(&cost, split, 2), cut, 1e-3);
	hps_cost_release(&cost);
	hps_job_release(&job);
}

static void test_ralp_vgg16(void **state)
{
	(void)state;
	ralp("vgg16", "node32", 128, 1106.9e6, 143.4e6); /* after the last pooling */
}

static void test_ralp_alexnet(void **state)
{
	(void)state;
	ralp("alexnet", "node14", 256, 488.8e6, 38.6e6); /* after the last pooling */
}

static void test_ralp_resnet50(void **state)
{
	(void)state;
	ralp("resnet50", "node174", 128, 204.5e6, 190.2e6); /* after the average pooling */
}

/* SqueezeNet 1.0 (Iandola et al., arXiv 1602.07360, table 1): outputs and parameters of its layers,
 * no fully connected one: whatever is taken from the worker, it sends more than before. */
static void test_ralp_squeezenet(void **state)
{
	static const struct {
		double output, params; /* floats */
	} layer[] = {
		{ 111 * 111 * 96, 14208 },  { 55 * 55 * 96, 0 },
		{ 55 * 55 * 128, 11920 },   { 55 * 55 * 128, 12432 },
		{ 55 * 55 * 256, 45344 },   { 27 * 27 * 256, 0 },
		{ 27 * 27 * 256, 49440 },   { 27 * 27 * 384, 104880 },
		{ 27 * 27 * 384, 111024 },  { 27 * 27 * 512, 188992 },
		{ 13 * 13 * 512, 0 },	    { 13 * 13 * 512, 197184 },
		{ 13 * 13 * 1000, 513000 }, { 1000, 0 },
	};
	uint32_t L = sizeof(layer) / sizeof(layer[0]);
	struct hps_span split[2] = { { .units = 1 }, { .units = 1 } };
	struct plan_case c;
	double all;

	(void)state;
	plan_case_init(&c, L, 1, 0);
	c.profile.batch = 128;
	c.opt.dense_sync = HPS_SYNC_PS;
	for (uint32_t l = 0; l < L; l++) {
		plan_case_time(&c, 0, l, 1e-3, 1e-5);
		c.size[l].param_bytes = 4 * layer[l].params;
		c.size[l].output_bytes = 4 * layer[l].output;
		c.cut_forward[l] = c.cut_backward[l] = l + 1 < L ? 4 * layer[l].output : 0;
	}
	plan_case_ready(&c);
	split[0].last = L - 1;
	all = worker_bytes(&c.cost, split, 1);
	near(all, 2 * 4 * 1248424, 1e-12);
	for (uint32_t l = 0; l + 1 < L; l++) {
		split[0].last = l;
		split[1].first = l + 1;
		split[1].last = L - 1;
		assert_true(worker_bytes(&c.cost, split, 2) > all);
	}
	plan_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opt350),	      cmocka_unit_test(test_pipedream_vgg16),
		cmocka_unit_test(test_ralp_vgg16),    cmocka_unit_test(test_ralp_alexnet),
		cmocka_unit_test(test_ralp_resnet50), cmocka_unit_test(test_ralp_squeezenet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
