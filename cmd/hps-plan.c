/* hps-plan: cut the layers into stages and place them. Options and glue. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/out.h"
#include "base/progress.h"
#include "base/sig.h"
#include "doc/doc.h"
#include "draw/draw.h"
#include "draw/trace.h"
#include "plan/compare.h"
#include "plan/pareto.h"
#include "plan/rl.h"
#include "plan/setup.h"
#include "plan/simulate.h"
#include "plan/whatif.h"

#define NAME "hps-plan"

struct plan_options {
	struct hps_plan_words words;
	const char *method;
	bool explain;
	const char *compare, *what_if;
	const char *plot, *dot, *trace; /* files; "-" takes the document's place */
	const char *simulate;		/* words */
	const char *reward;
	int64_t pareto;
	const char *policy, *save_policy; /* files */
	int64_t rounds;			  /* of learning; -1: as many as the budget allows */
};

/* One run: the words, and what was made of them. */
struct run {
	const struct plan_options *opt;
	enum hps_form form;
	const struct hps_method *method;
	const char *arg;	    /* the method's */
	struct hps_buf fixed;	    /* keep: the document's plan as fixed:.., which the method is */
	struct hps_buf method_name; /* as reports and the document tell it */
	struct hps_plan_hooks hooks;
	double told;	/* the best objective that -v has told */
	double seconds; /* that the search took */
	struct hps_job job;
	struct hps_cost cost;
	struct hps_problem problem;
	struct hps_sim_options sim;
	struct hps_reward reward;
	struct hps_simulation simulation; /* stage NULL: none was asked for */
	struct hps_policy policy, learned;
	struct hps_rl_options rl;
	struct hps_plan_words words; /* opt's, and rl */
};

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
	struct run *run = arg;
	char text[64] = "";

	if (n->objective < DBL_MAX)
		snprintf(text, sizeof(text), "best %.6g", n->objective);
	hps_progress_set(n->evaluations, text);
	if (n->objective < run->told) {
		run->told = n->objective;
		hps_verbose("%s after %llu evaluations", text, (unsigned long long)n->evaluations);
	}
}

/* --- pictures --- */

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static enum hps_status write_picture(const char *path, const struct hps_buf *b, struct hps_err *err)
{
	return is_stdout(path) ? hps_out_write(b->data, b->len, err)
			       : hps_file_write(path, b->data, b->len, 0666, err);
}

/* The frontier for --plot where --pareto has made none: by exact, which needs few evaluations. */
enum { PLOT_POINTS = 16, PLOT_EVALUATIONS = 400 };

static enum hps_status plot_frontier(const struct run *run, const struct hps_solution *s,
				     struct hps_frontier *f, struct hps_err *err)
{
	struct hps_problem p = run->problem;
	struct hps_err why = { 0 };
	const char *arg;
	const struct hps_method *exact = hps_method_find("exact", &arg, err);
	enum hps_status rc;

	memset(f, 0, sizeof(*f));
	if (!exact)
		return HPS_USAGE;
	p.floor = 0;
	p.max_evaluations = PLOT_EVALUATIONS;
	hps_progress_start("frontier", 0);
	rc = hps_frontier_find(&p, exact, arg, PLOT_POINTS, s->trial.throughput, f, &why);
	hps_progress_end();
	if (rc == HPS_NO || !rc)
		return HPS_OK;
	if (err)
		*err = why;
	return rc;
}

/* f: what --pareto has found; NULL: none. */
static enum hps_status draw(const struct run *run, const struct hps_solution *s,
			    const struct hps_frontier *f, struct hps_err *err)
{
	const struct hps_job *job = &run->job;
	const char *title = job->has_model ? job->model.name : NULL;
	struct hps_picture x = { &run->problem,		s, title,
				 run->method_name.data, f, run->method_name.data };
	struct hps_frontier mine = { 0 };
	struct hps_buf svg = HPS_BUF_INIT, dot = HPS_BUF_INIT;
	enum hps_status rc = HPS_OK;

	if (run->opt->plot && !f) {
		rc = plot_frontier(run, s, &mine, err);
		x.frontier = &mine;
		x.frontier_method = "exact";
	}
	if (!rc && run->opt->plot)
		rc = hps_draw_svg(&x, &svg, err);
	if (!rc && run->opt->plot)
		rc = write_picture(run->opt->plot, &svg, err);
	if (!rc && run->opt->dot)
		rc = hps_draw_dot(&x, job->has_model ? &job->model : NULL, &dot, err);
	if (!rc && run->opt->dot)
		rc = write_picture(run->opt->dot, &dot, err);
	hps_frontier_release(&mine);
	hps_buf_release(&svg);
	hps_buf_release(&dot);
	return rc;
}

/* Does a picture take the place of the result on standard output? */
static bool picture_on_stdout(const struct run *run)
{
	return is_stdout(run->opt->plot) || is_stdout(run->opt->dot) || is_stdout(run->opt->trace);
}

/* --- reports instead of the document with its plan --- */

/* A list (taken) or a text. */
static enum hps_status write_report(enum hps_form form, struct hps_doc *doc, struct hps_buf *text,
				    struct hps_err *err)
{
	enum hps_status rc;

	if (form == HPS_FORM_TEXT)
		rc = hps_out_text(text->data, text->len, err);
	else if (doc)
		rc = hps_doc_write(doc, form, err);
	else
		rc = hps_err_set(err, HPS_MEMORY, "no memory for the report");
	hps_doc_free(doc);
	return rc;
}

static enum hps_status compare(struct run *run, struct hps_err *err)
{
	const struct hps_problem *p = &run->problem;
	bool text = run->form == HPS_FORM_TEXT;
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_comparison c;
	enum hps_status rc;

	hps_progress_start("comparing", 0);
	rc = hps_compare(p, run->opt->compare, &c, err);
	hps_progress_end();
	for (size_t i = 0; i < c.n && !rc; i++)
		hps_verbose("%s%s: %.3f s", c.row[i].method, c.row[i].merge ? " --merge" : "",
			    c.row[i].seconds);
	if (!rc && text)
		rc = hps_comparison_text(p, &c, &b, err);
	if (!rc)
		rc = write_report(run->form, text ? NULL : hps_comparison_doc(p, &c), &b, err);
	hps_comparison_release(&c);
	hps_buf_release(&b);
	return rc;
}

static enum hps_status pareto(struct run *run, struct hps_err *err)
{
	const struct hps_problem *p = &run->problem;
	bool text = run->form == HPS_FORM_TEXT;
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_frontier f;
	enum hps_status rc;

	hps_progress_start("frontier", 0);
	rc = hps_frontier_find(p, run->method, run->arg, (uint32_t)run->opt->pareto, 0, &f, err);
	hps_progress_end();
	if (!rc && f.interrupted)
		hps_warn("interrupted: the frontier ends early");
	if (!rc)
		rc = draw(run, &f.point[0], &f, err);
	if (!rc && text)
		rc = hps_frontier_text(p, &f, &b, err);
	if (!rc && !picture_on_stdout(run))
		rc = write_report(run->form,
				  text ? NULL : hps_frontier_doc(p, &f, run->method_name.data), &b,
				  err);
	hps_frontier_release(&f);
	hps_buf_release(&b);
	return rc;
}

/* --- the simulator --- */

enum { TRACE_STEPS = 4 }; /* where --simulate says nothing else */

static enum hps_status simulate(struct run *run, const struct hps_solution *s, struct hps_err *err)
{
	const struct plan_options *opt = run->opt;
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_trace trace = { 0 };
	struct hps_err why = { 0 };
	enum hps_status rc;

	if (opt->trace) {
		run->sim.event = hps_trace_event;
		run->sim.arg = &trace;
	}
	if (!opt->simulate)
		run->sim.steps = TRACE_STEPS;
	rc = hps_simulate(&run->problem, s, &run->sim, &run->simulation, &why);
	if (rc == HPS_NO) { /* the plan is good all the same */
		hps_warn("%s: neither report nor trace", why.msg);
		rc = HPS_OK;
	} else if (rc) {
		*err = why;
	} else if (opt->trace) {
		rc = hps_trace_write(&trace, &run->problem, s, &b, err);
		if (!rc)
			rc = write_picture(opt->trace, &b, err);
	}
	if (!rc && trace.left_out)
		hps_warn("the trace ends after %d events; %llu more are left out", HPS_TRACE_MOST,
			 (unsigned long long)trace.left_out);
	hps_trace_release(&trace);
	hps_buf_release(&b);
	return rc;
}

/* --- the plan itself --- */

static enum hps_status write_text(const struct run *run, const struct hps_solution *s,
				  struct hps_err *err)
{
	const struct hps_problem *p = &run->problem;
	bool text = run->form == HPS_FORM_TEXT, explain = run->opt->explain;
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status rc = HPS_OK;

	if (text)
		rc = hps_plan_text(p, s, run->method_name.data, &b, err);
	if (!rc && text)
		rc = hps_buf_printf(&b, err, "searched     %.3g s\n", run->seconds);
	if (!rc && text && run->opt->simulate && run->simulation.stage)
		rc = hps_simulation_text(p, s, &run->simulation, &b, err);
	if (!rc && text && explain)
		rc = hps_buf_printf(&b, err, "\n");
	if (!rc && explain)
		rc = hps_plan_explain(p, s, &b, err);
	if (!rc && text)
		rc = hps_out_text(b.data, b.len, err);
	if (!rc && !text && explain) {
		hps_out_mask(b.data, b.len);
		fwrite(b.data, 1, b.len, stderr);
	}
	hps_buf_release(&b);
	return rc;
}

static enum hps_status write_document(struct run *run, const struct hps_solution *s,
				      struct hps_err *err)
{
	struct hps_job *job = &run->job;
	enum hps_status rc;

	hps_plan_release(&job->plan);
	job->has_plan = false;
	rc = hps_plan_of_solution(&run->problem, s, run->method_name.data, &job->plan, err);
	if (rc)
		return rc;
	rc = hps_job_update(job, HPS_PLAN, err);
	if (!job->has_plan)
		hps_plan_release(&job->plan);
	/* An older one was of another plan. */
	if (!rc && (run->opt->simulate && run->simulation.stage
			    ? hps_doc_put(job->doc, "simulation",
					  hps_simulation_doc(&run->problem, s, &run->simulation))
			    : hps_doc_remove(job->doc, "simulation")))
		rc = hps_err_set(err, HPS_MEMORY, "no memory for the document");
	return rc ? rc : hps_doc_write(job->doc, run->form, err);
}

/* What the edits changed, told on standard error. */
static enum hps_status tell_what_if(const struct run *run, const struct hps_before *before,
				    const struct hps_solution *s, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status rc = hps_what_changed(&run->problem, before, s, &b, err);

	if (!rc)
		hps_info("%s", b.data);
	hps_buf_release(&b);
	return rc;
}

static enum hps_status plan(struct run *run, const struct hps_before *before, struct hps_err *err)
{
	struct hps_solution s = { 0 };
	double begin = hps_now_s();
	enum hps_status rc;

	hps_progress_start("planning", run->problem.max_evaluations);
	rc = run->method->solve(&run->problem, run->arg, &s, err);
	hps_progress_end();
	run->seconds = hps_now_s() - begin;
	if (!rc)
		hps_verbose("%llu evaluations in %.3f s", (unsigned long long)s.evaluations,
			    run->seconds);
	if (!rc && run->opt->save_policy)
		rc = hps_policy_save(&run->learned, run->opt->save_policy, err);
	if (!rc && run->opt->what_if)
		rc = tell_what_if(run, before, &s, err);
	if (!rc)
		rc = draw(run, &s, NULL, err);
	if (!rc && (run->opt->simulate || run->opt->trace))
		rc = simulate(run, &s, err);
	if (!rc)
		rc = write_text(run, &s, err);
	if (!rc && run->form != HPS_FORM_TEXT && !picture_on_stdout(run))
		rc = write_document(run, &s, err);
	hps_solution_release(&s);
	return rc;
}

/* --- from words to a problem --- */

static enum hps_status edit(struct run *run, struct hps_err *err)
{
	struct hps_buf notes = HPS_BUF_INIT;
	enum hps_status rc = hps_what_if(&run->job, run->opt->what_if, &notes, err);

	for (char *line = notes.data, *end; !rc && line && (end = strchr(line, '\n'));
	     line = end + 1)
		hps_warn("%.*s", (int)(end - line), line);
	hps_buf_release(&notes);
	return rc;
}

static bool keeps(const struct plan_options *opt)
{
	return !strcmp(opt->method, "keep");
}

/* The method; keep: the document's plan, under the name of what made it. */
static enum hps_status set_up_method(struct run *run, struct hps_err *err)
{
	const struct plan_options *opt = run->opt;
	const struct hps_plan *plan = &run->job.plan;
	const char *word = opt->method;
	enum hps_status rc = HPS_OK;

	if (keeps(opt)) {
		rc = hps_plan_as_fixed(&run->job, &run->fixed, err);
		word = run->fixed.data;
	}
	if (!rc && !(run->method = hps_method_find(word, &run->arg, err)))
		return HPS_USAGE;
	if (!rc && keeps(opt) && !opt->words.shards)
		run->words.shards = plan->ps_shards;
	return rc ? rc
		  : hps_buf_printf(&run->method_name, err, "%s",
				   keeps(opt) && plan->method ? plan->method : opt->method);
}

/* With what-if the plan for things as they are comes first, where it is to be compared with. */
static enum hps_status set_up(struct run *run, struct hps_before *before, struct hps_err *err)
{
	const struct plan_options *opt = run->opt;
	enum hps_status rc = HPS_OK;

	if (opt->what_if && !opt->compare && !opt->pareto)
		rc = hps_what_before(&run->job, &run->words, run->method, run->arg, &run->hooks,
				     before, err);
	run->told = INFINITY;
	if (!rc && opt->what_if)
		rc = edit(run, err);
	if (!rc)
		rc = hps_problem_setup(&run->job, &run->words, keeps(opt), &run->cost,
				       &run->problem, err);
	if (rc)
		return rc;
	if (run->cost.link_unknown)
		hps_warn("no bandwidth is known for some type: its transfers are taken to be free");
	run->problem.hooks = run->hooks;
	run->reward = (struct hps_reward){ hps_simulate_reward, &run->sim };
	if (opt->reward && !strcmp(opt->reward, "sim"))
		run->problem.reward = &run->reward;
	return hps_simulation_words(&run->problem, opt->simulate ? opt->simulate : "", &run->sim,
				    err);
}

/* Where learning begins, how long it goes on, and whether what was learned is kept. */
static enum hps_status set_up_policy(struct run *run, struct hps_err *err)
{
	const struct plan_options *opt = run->opt;

	run->words = opt->words;
	run->words.rl = &run->rl;
	run->rl.limited = opt->rounds >= 0;
	run->rl.rounds = run->rl.limited ? (uint64_t)opt->rounds : 0;
	run->rl.learned = opt->save_policy ? &run->learned : NULL;
	if (!opt->policy)
		return HPS_OK;
	run->rl.policy = &run->policy;
	return hps_policy_load(opt->policy, &run->policy, err);
}

static bool learns(const char *method)
{
	return !strcmp(method, "rl") || !strcmp(method, "rl+polish") || !strcmp(method, "rl-rnn");
}

static enum hps_status check_policy_words(const struct plan_options *opt, struct hps_err *err)
{
	if (opt->save_policy && (opt->compare || opt->pareto || !learns(opt->method)))
		return hps_err_set(err, HPS_USAGE,
				   "--save-policy keeps what one of -m rl, rl+polish and rl-rnn "
				   "has learned");
	if (!opt->compare && (opt->policy || opt->rounds >= 0) && !learns(opt->method) &&
	    strcmp(opt->method, "auto"))
		return hps_err_set(
			err, HPS_USAGE,
			"--policy and --rounds are for -m rl, rl+polish, rl-rnn and auto, "
			"not for %s",
			opt->method);
	return HPS_OK;
}

/* Methods that ask hps_evaluate of every plan they look at. */
static bool searches(const char *method)
{
	static const char *const names[] = { "anneal", "genetic", "bayes", "greedy", "random" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(method, names[i]))
			return true;
	return learns(method);
}

static enum hps_status check_reward(const struct plan_options *opt, struct hps_err *err)
{
	bool sim = opt->reward && !strcmp(opt->reward, "sim");

	if (opt->reward && !sim && strcmp(opt->reward, "formula"))
		return hps_err_set(err, HPS_USAGE, "unknown reward \"%s\", expected formula or sim",
				   opt->reward);
	if (sim && (opt->compare || opt->pareto || opt->what_if))
		return hps_err_set(err, HPS_USAGE,
				   "--compare, --pareto and --what-if go by the formula");
	if (sim && !searches(opt->method))
		return hps_err_set(
			err, HPS_USAGE,
			"%s goes by the formula; --reward sim is for methods that search",
			opt->method);
	return HPS_OK;
}

static enum hps_status check_words(const struct plan_options *opt, enum hps_form form,
				   struct hps_err *err)
{
	int on_stdout = is_stdout(opt->plot) + is_stdout(opt->dot) + is_stdout(opt->trace) +
			(form != HPS_FORM_JSON);

	if (opt->compare && opt->pareto)
		return hps_err_set(err, HPS_USAGE, "--compare and --pareto are two reports");
	if (opt->compare && (opt->plot || opt->dot))
		return hps_err_set(err, HPS_USAGE,
				   "--plot and --dot draw one plan, --compare makes several");
	if ((opt->compare || opt->pareto) && (opt->simulate || opt->trace))
		return hps_err_set(err, HPS_USAGE,
				   "--simulate and --trace run one plan, --compare and --pareto "
				   "make several");
	if (on_stdout > 1)
		return hps_err_set(err, HPS_USAGE,
				   "standard output takes one of --text, --msgpack, --plot -, "
				   "--dot - and --trace -");
	if (check_policy_words(opt, err))
		return HPS_USAGE;
	return check_reward(opt, err);
}

static enum hps_status run_all(const char *path, enum hps_form form, const struct plan_options *opt,
			       struct hps_err *err)
{
	struct run run = { .opt = opt, .form = form, .told = INFINITY };
	struct hps_before before = { 0 };
	enum hps_status rc;

	rc = check_words(opt, form, err);
	if (rc)
		return rc;
	run.hooks = (struct hps_plan_hooks){ now, stop, news, &run };
	if (!keeps(opt) && !hps_method_find(opt->method, &run.arg, err))
		return HPS_USAGE;
	rc = set_up_policy(&run, err);
	if (!rc)
		rc = hps_job_read(path, HPS_CLUSTER | HPS_PROFILE,
				  HPS_MODEL | HPS_CLUSTER | HPS_PROFILE |
					  (keeps(opt) ? HPS_PLAN : 0),
				  &run.job, err);
	if (rc)
		goto out;
	rc = set_up_method(&run, err);
	if (!rc)
		rc = set_up(&run, &before, err);
	if (rc == HPS_BAD_INPUT)
		hps_err_at(err, "%s", path ? path : "standard input");
	if (!rc)
		rc = opt->compare  ? compare(&run, err)
		     : opt->pareto ? pareto(&run, err)
				   : plan(&run, &before, err);
out:
	hps_before_release(&before);
	hps_buf_release(&run.fixed);
	hps_buf_release(&run.method_name);
	hps_simulation_release(&run.simulation);
	hps_cost_release(&run.cost);
	hps_job_release(&run.job);
	hps_policy_release(&run.policy);
	hps_policy_release(&run.learned);
	return rc;
}

int main(int argc, char **argv)
{
	struct plan_options opt = { .words.seed = -1, .rounds = -1 };
	const struct hps_opt opts[] = {
		{ 'm', "method", HPS_OPT_STR, &opt.method, "METHOD",
		  "how to search, or keep: the plan that is there; default: " HPS_METHOD_DEFAULT
		  ", with --pareto exact" },
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
		HPS_PLAN_WORD_OPTS(&opt.words),
		{ 0, "budget", HPS_OPT_STR, &opt.words.budget, "N",
		  "at most N evaluations, or seconds (2.5s)" },
		{ 0, "reward", HPS_OPT_STR, &opt.reward, "WHAT",
		  "what judges a plan: formula (default) or sim, as --simulate says" },
		{ 0, "rounds", HPS_OPT_INT, &opt.rounds, "N",
		  "rl: at most N rounds of learning; 0: the policy's decision alone", 0,
		  INT64_MAX },
		{ 0, "policy", HPS_OPT_STR, &opt.policy, "FILE", "rl: begin with this policy" },
		{ 0, "save-policy", HPS_OPT_STR, &opt.save_policy, "FILE",
		  "rl: keep the policy that was learned" },
		{ 0, "compare", HPS_OPT_STR, &opt.compare, "LIST",
		  "run these methods (a,b,c or all) and write a list" },
		{ 0, "pareto", HPS_OPT_INT, &opt.pareto, "N",
		  "write the frontier of cost against throughput, at most N plans", 1,
		  HPS_FRONTIER_MOST },
		{ 0, "what-if", HPS_OPT_STR, &opt.what_if, "EDITS",
		  "plan for another cluster: v100.price=1.2,network.bandwidth=1e9" },
		{ 0, "plot", HPS_OPT_STR, &opt.plot, "FILE",
		  "draw the plan and the frontier as SVG (-: instead of the document)" },
		{ 0, "dot", HPS_OPT_STR, &opt.dot, "FILE",
		  "draw the plan for Graphviz (-: instead of the document)" },
		{ 0, "simulate", HPS_OPT_STR, &opt.simulate, "WORDS",
		  "run the plan in the simulator: bsp|asp|ssp:N,jitter=CV,stragglers=SHARE*FACTOR,"
		  "steps=N,duplex" },
		{ 0, "trace", HPS_OPT_STR, &opt.trace, "FILE",
		  "write the simulated timeline for a browser (-: instead of the document)" },
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
	if (!opt.method)
		opt.method = opt.pareto ? "exact" : HPS_METHOD_DEFAULT;
	rc = hps_sig_install(&err);
	if (!rc)
		rc = run_all(n ? operand[0] : NULL, cmd.form, &opt, &err);
	return hps_exit(NAME, rc, &err);
}
