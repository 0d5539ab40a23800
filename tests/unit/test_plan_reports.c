/* Do comparison, frontier and what-if say what is so? */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"
#include "plan/compare.h"
#include "plan/exact.h"
#include "plan/pareto.h"
#include "plan/setup.h"
#include "plan/whatif.h"
#include "plan_case.h"

static void open_case(struct plan_case *c)
{
	plan_case_init(c, 5, 2, 6);
	for (uint32_t l = 0; l < 5; l++) {
		plan_case_time(c, 0, l, 2e-4, 1e-5 * (1 + l));
		plan_case_time(c, 1, l, 1e-4, 1e-5 * (5 - l) / 3);
	}
	c->type[0].price = 0.3;
	plan_case_ready(c);
	c->problem.max_evaluations = 60;
	c->problem.seed = 1;
}

static void test_compare(void **state)
{
	struct hps_buf text = HPS_BUF_INIT, a = HPS_BUF_INIT, b = HPS_BUF_INIT;
	struct hps_comparison c, again;
	struct hps_err err = { 0 };
	struct hps_doc *doc;
	struct plan_case pc;
	double best[2];

	(void)state;
	open_case(&pc);
	assert_int_equal(hps_compare(&pc.problem, "exact,random,all:t1", &c, &err), HPS_OK);
	assert_int_equal(c.n, 6);
	best[0] = c.row[0].solution.trial.objective;
	best[1] = c.row[1].solution.trial.objective;
	for (size_t i = 0; i < c.n; i++) {
		const struct hps_solution *s = &c.row[i].solution;

		assert_int_equal(c.row[i].merge, i % 2);
		assert_int_equal(c.row[i].status, HPS_OK);
		assert_true(s->evaluations <= 60);
		/* Each has exact's bound of its rule, whatever it knew itself. */
		assert_true(fabs(s->bound / best[i % 2] - 1) < 1e-8);
		assert_true(s->trial.objective >= best[i % 2] * (1 - 1e-9));
		for (uint32_t j = 1; c.row[i].merge && j < s->n_stages; j++)
			assert_int_not_equal(s->stage[j].type, s->stage[j - 1].type);
	}
	assert_true(best[1] >= best[0] * (1 - 1e-9));
	assert_int_equal(hps_comparison_text(&pc.problem, &c, &text, &err), HPS_OK);
	assert_non_null(strstr(text.data, "\nall:t1      merge"));
	assert_non_null(strstr(text.data, "t1*"));
	doc = hps_comparison_doc(&pc.problem, &c);
	assert_int_equal(hps_doc_to_json(doc, &a, &err), HPS_OK);
	hps_doc_free(doc);
	assert_int_equal(hps_compare(&pc.problem, "exact,random,all:t1", &again, &err), HPS_OK);
	doc = hps_comparison_doc(&pc.problem, &again);
	assert_int_equal(hps_doc_to_json(doc, &b, &err), HPS_OK);
	hps_doc_free(doc);
	assert_string_equal(a.data, b.data);
	hps_comparison_release(&again);
	hps_comparison_release(&c);
	hps_buf_release(&text);
	hps_buf_release(&a);
	hps_buf_release(&b);
	plan_case_release(&pc);
}

static void test_compare_all(void **state)
{
	struct hps_comparison c;
	struct hps_err err = { 0 };
	struct plan_case pc;
	size_t singles = 0;

	(void)state;
	open_case(&pc);
	assert_int_equal(hps_compare(&pc.problem, "all", &c, &err), HPS_OK);
	for (size_t i = 0; i < c.n; i++) {
		assert_string_not_equal(c.row[i].method, "brute");
		singles += !strncmp(c.row[i].method, "all:", 4);
	}
	assert_int_equal(singles, 4);
	hps_comparison_release(&c);
	/* A word that is none, before anything runs. */
	assert_int_equal(hps_compare(&pc.problem, "exact,magic", &c, &err), HPS_USAGE);
	assert_non_null(strstr(err.msg, "\"magic\""));
	assert_int_equal(c.row[0].solution.evaluations, 0);
	hps_comparison_release(&c);
	assert_int_equal(hps_compare(&pc.problem, "", &c, &err), HPS_USAGE);
	hps_comparison_release(&c);
	/* One that does not do stands with its reason, beside one that does. */
	pc.problem.floor = 4e4;
	assert_int_equal(hps_compare(&pc.problem, "all:t0,exact", &c, &err), HPS_OK);
	assert_int_equal(c.row[0].status, HPS_NO);
	assert_true(c.row[0].why[0]);
	hps_comparison_release(&c);
	pc.problem.floor = 1e9;
	assert_int_equal(hps_compare(&pc.problem, "all:t0,exact", &c, &err), HPS_NO);
	hps_comparison_release(&c);
	plan_case_release(&pc);
}

/* Every point is the proven optimum above its own throughput, and none beats another in both. */
static void test_frontier(void **state)
{
	struct hps_buf text = HPS_BUF_INIT;
	struct hps_solution fastest, s;
	struct hps_frontier f;
	struct hps_err err = { 0 };
	struct plan_case pc;
	const char *arg;
	const struct hps_method *exact = hps_method_find("exact", &arg, &err);
	size_t lines = 0;
	double fastest_s;

	(void)state;
	open_case(&pc);
	pc.problem.max_evaluations = 0;
	assert_int_equal(hps_frontier_find(&pc.problem, exact, arg, 12, 0, &f, &err), HPS_OK);
	assert_in_range(f.n, 4, 12);
	for (size_t i = 0; i < f.n; i++) {
		struct hps_problem p = pc.problem;

		p.floor = f.point[i].trial.throughput;
		assert_int_equal(hps_plan_exact(&p, "", &s, &err), HPS_OK);
		assert_true(fabs(s.trial.objective / f.point[i].trial.objective - 1) < 1e-8);
		hps_solution_release(&s);
		if (!i)
			continue;
		assert_true(f.point[i].trial.throughput > f.point[i - 1].trial.throughput);
		assert_true(f.point[i].trial.objective > f.point[i - 1].trial.objective);
	}
	assert_int_equal(hps_plan_fastest(&pc.problem, &fastest, &err), HPS_OK);
	assert_true(fabs(f.point[f.n - 1].trial.throughput / fastest.trial.throughput - 1) < 1e-6);
	fastest_s = fastest.trial.throughput;
	hps_solution_release(&fastest);
	assert_int_equal(hps_frontier_text(&pc.problem, &f, &text, &err), HPS_OK);
	for (const char *c = text.data; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, f.n + 1);
	hps_buf_release(&text);
	hps_frontier_release(&f);
	/* The floors go up to what is said to be reached; here nothing is. */
	assert_int_equal(hps_frontier_find(&pc.problem, exact, arg, 2, fastest_s * 2, &f, &err),
			 HPS_OK);
	assert_int_equal(f.n, 1);
	hps_frontier_release(&f);
	assert_int_equal(hps_frontier_find(&pc.problem, exact, arg, 2, 0, &f, &err), HPS_OK);
	assert_int_equal(f.n, 2);
	hps_frontier_release(&f);
	/* One point is the cheapest plan; a floor beyond all is no frontier. */
	assert_int_equal(hps_frontier_find(&pc.problem, exact, arg, 1, 0, &f, &err), HPS_OK);
	assert_int_equal(f.n, 1);
	hps_frontier_release(&f);
	pc.problem.floor = 1e9;
	assert_int_equal(hps_frontier_find(&pc.problem, exact, arg, 5, 0, &f, &err), HPS_NO);
	assert_int_equal(f.n, 0);
	hps_frontier_release(&f);
	plan_case_release(&pc);
}

/* --- explain --- */

/* What explain says that layer l of the plan would cost on type t. */
static double said_elsewhere(const char *text, uint32_t l, const char *t)
{
	char what[32];
	const char *line;

	snprintf(what, sizeof(what), "\n  %u l%u on ", l, l);
	line = strstr(text, what);
	assert_non_null(line);
	snprintf(what, sizeof(what), " %s ", t);
	line = strstr(strchr(line, ':'), what);
	assert_non_null(line);
	return strtod(line + strlen(what), NULL);
}

/* Layer 1 of t0 | t0 t0 | t1 (stages 0, 1-2, 3) on t1, and layer 2: a stage of its own, or with its
 * neighbour of that type. */
static void test_explain(void **state)
{
	struct hps_span plan[3] = { { 0, 0, 0, 1 }, { 1, 2, 0, 1 }, { 3, 4, 1, 1 } };
	struct hps_span alone[4] = {
		{ 0, 0, 0, 0 }, { 1, 1, 1, 0 }, { 2, 2, 0, 0 }, { 3, 4, 1, 0 }
	};
	struct hps_span own[4] = { { 0, 0, 0, 0 }, { 1, 1, 0, 0 }, { 2, 2, 1, 0 }, { 3, 4, 1, 0 } };
	struct hps_span joined[3] = { { 0, 0, 0, 0 }, { 1, 1, 0, 0 }, { 2, 4, 1, 0 } };
	struct hps_span merged[2] = { { 0, 1, 0, 0 }, { 2, 4, 1, 0 } };
	struct hps_solution s = { .stage = plan, .n_stages = 3 };
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_trial t, u;
	struct hps_err err = { 0 };
	struct plan_case pc;

	(void)state;
	open_case(&pc);
	hps_score(&pc.problem, plan, 3, &s.trial);
	assert_int_equal(hps_plan_explain(&pc.problem, &s, &b, &err), HPS_OK);
	assert_int_equal(hps_settle(&pc.problem, alone, 4, &t, &err), HPS_OK);
	assert_true(fabs(said_elsewhere(b.data, 1, "t1") / (t.cost * 1e6) - 1) < 1e-5);
	assert_int_equal(hps_settle(&pc.problem, own, 4, &t, &err), HPS_OK);
	assert_int_equal(hps_settle(&pc.problem, joined, 3, &u, &err), HPS_OK);
	assert_true(t.cost != u.cost);
	assert_true(fabs(said_elsewhere(b.data, 2, "t1") / (fmin(t.cost, u.cost) * 1e6) - 1) <
		    1e-5);
	hps_buf_release(&b);
	/* The rule joins whatever its choice. */
	pc.problem.merge = true;
	assert_int_equal(hps_plan_explain(&pc.problem, &s, &b, &err), HPS_OK);
	assert_int_equal(hps_settle(&pc.problem, merged, 2, &t, &err), HPS_OK);
	assert_true(fabs(said_elsewhere(b.data, 2, "t1") / (t.cost * 1e6) - 1) < 1e-5);
	hps_buf_release(&b);
	plan_case_release(&pc);
}

/* --- what-if --- */

/* Without the notes. */
static enum hps_status what_if(struct hps_job *job, const char *edits, struct hps_err *err)
{
	struct hps_buf notes = HPS_BUF_INIT;
	enum hps_status rc = hps_what_if(job, edits, &notes, err);

	hps_buf_release(&notes);
	return rc;
}

static void open_job(struct hps_job *job)
{
	const char *root = getenv("HPS_ROOT");
	char path[4096];
	struct hps_err err = { 0 };

	snprintf(path, sizeof(path), "%s/testdata/profiles/two-types.json", root ? root : ".");
	if (hps_job_read(path, HPS_CLUSTER | HPS_PROFILE, HPS_MODEL | HPS_CLUSTER | HPS_PROFILE,
			 job, &err))
		fail_msg("%s: %s", err.where, err.msg);
}

static void test_what_if(void **state)
{
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_err err = { 0 };
	struct hps_job job, back;
	struct hps_doc *doc;
	double oct, forward, cpu_oct;
	uint32_t L;
	int gpu;

	(void)state;
	open_job(&job);
	L = job.profile.n_layers;
	gpu = hps_profile_type(&job.profile, "v100");
	oct = job.profile.time[(size_t)gpu * L].oct;
	forward = job.profile.time[(size_t)gpu * L].forward.c1;
	cpu_oct = job.profile.time[0].oct;
	assert_int_equal(what_if(&job,
				 "v100.price=1.25,v100.limit=3,v100.memory=5e9,"
				 "v100.bandwidth=7e8,v100.latency=1e-3,network.bandwidth=1e9,"
				 "network.latency=2e-5,ps.price=0.5,cpu.price=0.0625",
				 &err),
			 HPS_OK);
	gpu = hps_cluster_type(&job.cluster, "v100");
	assert_true(job.cluster.type[gpu].price == 1.25);
	assert_int_equal(job.cluster.type[gpu].limit, 3);
	assert_true(job.cluster.type[gpu].memory == 5e9);
	assert_true(job.cluster.type[gpu].link.bandwidth == 7e8);
	assert_true(job.cluster.type[gpu].link.latency == 1e-3);
	assert_true(job.cluster.network.bandwidth == 1e9);
	assert_true(job.cluster.network.latency == 2e-5);
	assert_true(job.cluster.ps_price == 0.5);
	assert_true(job.cluster.type[hps_cluster_type(&job.cluster, "cpu")].price == 0.0625);
	/* Twice as fast as measured: half the time, and no longer measured. */
	assert_int_equal(what_if(&job, "v100.speed=2", &err), HPS_OK);
	gpu = hps_profile_type(&job.profile, "v100");
	assert_true(fabs(job.profile.time[(size_t)gpu * L].oct - oct / 2) < 1e-15);
	assert_true(fabs(job.profile.time[(size_t)gpu * L].forward.c1 - forward / 2) < 1e-18);
	assert_true(job.profile.simulated[gpu]);
	assert_true(job.profile.time[0].oct == cpu_oct);
	/* The document says the same, and is one. */
	assert_int_equal(hps_doc_to_json(job.doc, &b, &err), HPS_OK);
	assert_int_equal(hps_doc_parse(b.data, b.len, "edited", &doc, &err), HPS_OK);
	if (hps_job_parse(doc, "edited", HPS_CLUSTER | HPS_PROFILE,
			  HPS_MODEL | HPS_CLUSTER | HPS_PROFILE, &back, &err))
		fail_msg("%s: %s", err.where, err.msg);
	gpu = hps_cluster_type(&back.cluster, "v100");
	assert_true(back.cluster.type[gpu].price == 1.25);
	hps_job_release(&back);
	hps_buf_release(&b);
	hps_job_release(&job);
}

/* A declared type's speed is the declared one: setting what it is changes nothing. */
static void test_declared_speed(void **state)
{
	struct hps_err err = { 0 };
	struct hps_type *t;
	struct hps_job job;
	double oct;
	size_t at;

	(void)state;
	open_job(&job);
	t = &job.cluster.type[hps_cluster_type(&job.cluster, "v100")];
	t->like = strdup("cpu");
	t->speed = 12;
	t->op_speed[0] = 6;
	at = (size_t)hps_profile_type(&job.profile, "v100") * job.profile.n_layers;
	oct = job.profile.time[at].oct;
	assert_int_equal(what_if(&job, "v100.speed=12", &err), HPS_OK);
	assert_true(job.profile.time[at].oct == oct);
	assert_int_equal(what_if(&job, "v100.speed=24", &err), HPS_OK);
	assert_true(job.profile.time[at].oct == oct / 2);
	assert_true(t->speed == 24 && t->op_speed[0] == 12);
	hps_job_release(&job);
}

static void test_what_if_refuses(void **state)
{
	const struct {
		const char *edits, *says;
	} bad[] = {
		{ "tpu.price=1", "the cluster has no \"tpu\"; it has cpu, v100, network, ps" },
		{ "v100.cost=1", "it has price, limit, memory, speed, bandwidth, latency" },
		{ "network.price=1", "it has bandwidth, latency" },
		{ "ps.limit=1", "it has price" },
		{ "v100.price", "expected NAME.FIELD=NUMBER" },
		{ "v100=1", "expected NAME.FIELD=NUMBER" },
		{ ".price=1", "expected NAME.FIELD=NUMBER" },
		{ "", "expected NAME.FIELD=NUMBER" },
		{ "cpu.price=1,", "expected NAME.FIELD=NUMBER" },
		{ "v100.price=-1", "v100.price" },
		{ "v100.price=nan", "v100.price" },
		{ "v100.limit=0", "v100.limit" },
		{ "v100.limit=1.5", "v100.limit" },
		{ "v100.speed=0", "v100.speed" },
		{ "v100.bandwidth=0", "v100.bandwidth" },
		{ "v100.latency=x", "v100.latency" },
	};
	struct hps_err err = { 0 };
	struct hps_job job;
	double price;
	char *many;

	(void)state;
	open_job(&job);
	price = job.cluster.type[0].price;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(what_if(&job, bad[i].edits, &err), HPS_USAGE);
		if (!strstr(err.msg, bad[i].says))
			fail_msg("%s: got \"%s\"", bad[i].edits, err.msg);
	}
	/* All or none of the edits. */
	assert_int_equal(what_if(&job, "cpu.price=9,tpu.price=1", &err), HPS_USAGE);
	assert_true(job.cluster.type[0].price == price);
	many = calloc(4000, 1);
	for (int i = 0; i < 65; i++)
		strcat(many, i ? ",cpu.price=1" : "cpu.price=1");
	assert_int_equal(what_if(&job, many, &err), HPS_USAGE);
	memset(many, 'x', 3999);
	assert_int_equal(what_if(&job, many, &err), HPS_USAGE);
	free(many);
	hps_job_release(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compare),		cmocka_unit_test(test_compare_all),
		cmocka_unit_test(test_frontier),	cmocka_unit_test(test_explain),
		cmocka_unit_test(test_what_if),		cmocka_unit_test(test_declared_speed),
		cmocka_unit_test(test_what_if_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
