/* hps-plan: cut the layers into stages and place them. Options and glue. */
#include <float.h>
#include <stdio.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/out.h"
#include "base/progress.h"
#include "base/sig.h"
#include "doc/doc.h"
#include "plan/setup.h"

#define NAME "hps-plan"

static double now(void *arg)
{
	(void)arg;
	return hps_now_s();
}

static bool stop(void *arg)
{
	(void)arg;
	return hps_sig_caught() != 0;
}

static void news(void *arg, const struct hps_plan_news *n)
{
	char text[64] = "";

	(void)arg;
	if (n->objective < DBL_MAX)
		snprintf(text, sizeof(text), "best %.6g", n->objective);
	hps_progress_set(n->evaluations, text);
}

static enum hps_status write_text(const struct hps_problem *p, const struct hps_solution *s,
				  const char *method, bool text, bool explain, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status rc = HPS_OK;

	if (text)
		rc = hps_plan_text(p, s, method, &b, err);
	if (!rc && text && explain)
		rc = hps_buf_printf(&b, err, "\n");
	if (!rc && explain)
		rc = hps_plan_explain(p, s, &b, err);
	if (!rc && text)
		rc = hps_out_write(b.data, b.len, err);
	else if (!rc && explain)
		fwrite(b.data, 1, b.len, stderr);
	hps_buf_release(&b);
	return rc;
}

struct plan_options {
	struct hps_plan_words words;
	const char *method;
	bool explain;
};

static enum hps_status plan(const char *path, enum hps_form form, const struct plan_options *opt,
			    struct hps_err *err)
{
	const struct hps_method *method;
	struct hps_solution solution = { 0 };
	struct hps_problem problem;
	struct hps_cost cost = { 0 };
	struct hps_job job;
	const char *arg;
	double begin = hps_now_s();
	enum hps_status rc;

	method = hps_method_find(opt->method, &arg, err);
	if (!method)
		return HPS_USAGE;
	rc = hps_job_read(path, HPS_CLUSTER | HPS_PROFILE, HPS_MODEL | HPS_CLUSTER | HPS_PROFILE,
			  &job, err);
	if (rc)
		return rc;
	rc = hps_problem_setup(&job, &opt->words, false, &cost, &problem, err);
	if (rc) {
		if (rc == HPS_BAD_INPUT)
			hps_err_at(err, "%s", path ? path : "standard input");
		goto out;
	}
	if (cost.link_unknown)
		hps_warn("no bandwidth is known for some type: its transfers are taken to be free");
	problem.hooks = (struct hps_plan_hooks){ now, stop, news, NULL };
	hps_progress_start("planning", problem.max_evaluations);
	rc = method->solve(&problem, arg, &solution, err);
	hps_progress_end();
	if (rc)
		goto out;
	hps_verbose("%llu evaluations in %.3f s", (unsigned long long)solution.evaluations,
		    hps_now_s() - begin);
	rc = write_text(&problem, &solution, opt->method, form == HPS_FORM_TEXT, opt->explain, err);
	if (!rc && form != HPS_FORM_TEXT)
		rc = hps_plan_of_solution(&problem, &solution, opt->method, &job.plan, err);
	if (!rc && form != HPS_FORM_TEXT) {
		rc = hps_job_update(&job, HPS_PLAN, err);
		if (!job.has_plan)
			hps_plan_release(&job.plan);
		if (!rc)
			rc = hps_doc_write(job.doc, form, err);
	}
out:
	hps_solution_release(&solution);
	hps_cost_release(&cost);
	hps_job_release(&job);
	return rc;
}

int main(int argc, char **argv)
{
	struct plan_options opt = { .method = HPS_METHOD_DEFAULT, .words.seed = -1 };
	const struct hps_opt opts[] = {
		{ 'm', "method", HPS_OPT_STR, &opt.method, "METHOD",
		  "how to search; default: " HPS_METHOD_DEFAULT },
		{ 't', "floor", HPS_OPT_DOUBLE, &opt.words.floor, "FLOOR",
		  "samples a second at least", DBL_MIN, DBL_MAX },
		{ 0, "objective", HPS_OPT_STR, &opt.words.objective, "WHAT",
		  "cost (per sample, default) or price (per hour)" },
		{ 0, "form", HPS_OPT_STR, &opt.words.form, "FORM",
		  "cost model: executor (default) or paper" },
		{ 0, "evaluator", HPS_OPT_STR, &opt.words.evaluator, "E",
		  "rate (steady state, default) or step (one bsp step)" },
		{ 0, "merge", HPS_OPT_FLAG, &opt.words.merge, NULL,
		  "no two neighbouring stages on one type" },
		{ 0, "batch", HPS_OPT_INT, &opt.words.batch, "N", "rows a step", 1, 1 << 30 },
		{ 0, "micro-batches", HPS_OPT_INT, &opt.words.micro_batches, "N",
		  "micro-batches a step and first-stage replica", 1, 1 << 20 },
		{ 0, "shards", HPS_OPT_INT, &opt.words.shards, "N",
		  "exactly so many parameter server shards", 1, 1 << 16 },
		{ 0, "dense-sync", HPS_OPT_STR, &opt.words.dense_sync, "HOW",
		  "dense parameters: auto (default), ps or ring" },
		{ 0, "budget", HPS_OPT_STR, &opt.words.budget, "N",
		  "at most N evaluations, or seconds (2.5s)" },
		{ 0, "explain", HPS_OPT_FLAG, &opt.explain, NULL,
		  "say what binds each stage (with --text, else on standard error)" },
		{ 0 },
	};
	struct hps_cmd cmd = {
		.name = NAME,
		.summary = "Cut the layers of a job into stages and place each on a resource type.",
		.operands = "[JOB]",
		.max_operands = 1,
		.opts = opts,
		.has_form = true,
		.has_text = true,
		.seed = &opt.words.seed,
	};
	struct hps_err err = { 0 };
	enum hps_status rc;
	char **operand;
	int n;

	if (hps_opt_parse(&cmd, argc, argv, &operand, &n, &rc) == HPS_OPT_EXIT)
		return hps_exit(NAME, rc, NULL);
	rc = hps_sig_install(&err);
	if (!rc)
		rc = plan(n ? operand[0] : NULL, cmd.form, &opt, &err);
	return hps_exit(NAME, rc, &err);
}
