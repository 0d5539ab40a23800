/* hps-provision: settle a plan's units, and say which host runs what and where it listens.
 * Options and glue. */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/out.h"
#include "base/rng.h"
#include "base/sig.h"
#include "doc/doc.h"
#include "plan/provision.h"
#include "plan/replay.h"
#include "plan/setup.h"
#include "plan/watcher.h"

#define NAME "hps-provision"

struct provision_options {
	struct hps_plan_words words;
	const char *method, *transport, *run_dir, *job;
	int64_t base_port, epochs;
	const char *simulate, *load;
	struct hps_watch_options watch;
	bool watching;
	struct hps_ratios ratios;
	double samples;
};

/* "MODEL-xxxxxxxx": unique a run, short enough for a socket's path. */
static enum hps_status make_name(const struct hps_job *job, struct hps_buf *b, struct hps_err *err)
{
	const char *model = job->has_model ? job->model.name : "job";
	uint64_t unique = hps_hash3((uint64_t)getpid(), (uint64_t)(hps_now_s() * 1e9),
				    (uint64_t)(uintptr_t)b);

	return hps_buf_printf(b, err, "%.24s-%08" PRIx32, model, (uint32_t)unique);
}

static enum hps_status make_run_dir(const char *name, struct hps_buf *b, struct hps_err *err)
{
	const char *base = getenv("XDG_RUNTIME_DIR");

	return hps_buf_printf(b, err, "%s/hps-%s", base && *base == '/' ? base : "/tmp", name);
}

static void warn_memory(const struct hps_cluster *cl, const struct hps_deploy_report *r)
{
	for (uint32_t h = 0; h < cl->n_hosts; h++)
		if (cl->host[h].memory > 0 && r->host[h].memory_bytes > cl->host[h].memory)
			hps_warn("host \"%s\" needs %.4g bytes of memory and has %.4g",
				 cl->host[h].name, r->host[h].memory_bytes, cl->host[h].memory);
}

/* A plan by `rate` may be for a floor that its steps miss. */
static void warn_floor(const struct hps_problem *p, const struct hps_deployment *d)
{
	if (d->predicted_samples_per_s < p->floor * (1 - 1e-9))
		hps_warn("predicted are %.6g samples/s, below the floor of %.6g: a bsp step fills, "
			 "drains and synchronises; hps-plan --evaluator step plans for that",
			 d->predicted_samples_per_s, p->floor);
}

static enum hps_status write_text(const struct hps_problem *p, const struct hps_solution *s,
				  const struct hps_deploy_report *r,
				  const struct hps_deploy_options *d, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status rc = hps_deploy_text(p, s, r, d, &b, err);

	if (!rc)
		rc = hps_out_text(b.data, b.len, err);
	hps_buf_release(&b);
	return rc;
}

/* The deployment into the document and out, or a table. */
static enum hps_status deploy(struct hps_job *job, const struct hps_problem *p,
			      const struct hps_solution *s, const struct hps_deploy_options *d,
			      enum hps_form form, struct hps_err *err)
{
	struct hps_deploy_report report = { 0 };
	enum hps_status rc;

	rc = hps_deploy(p, s, d, &job->deployment, &report, err);
	if (rc == HPS_NO && form == HPS_FORM_TEXT) {
		hps_warn("%s", err->msg);
		return write_text(p, s, NULL, d, err);
	}
	if (rc)
		return rc;
	warn_memory(&job->cluster, &report);
	warn_floor(p, &job->deployment);
	if (form == HPS_FORM_TEXT) {
		rc = write_text(p, s, &report, d, err);
		hps_deployment_release(&job->deployment);
	} else {
		rc = hps_job_update(job, HPS_DEPLOYMENT, err);
		if (!job->has_deployment)
			hps_deployment_release(&job->deployment);
		if (!rc)
			rc = hps_doc_write(job->doc, form, err);
	}
	hps_deploy_report_release(&report);
	return rc;
}

static enum hps_status settle_options(const struct provision_options *opt,
				      const struct hps_job *job, const struct hps_problem *p,
				      struct hps_deploy_options *d, struct hps_buf *name,
				      struct hps_buf *dir, struct hps_err *err)
{
	enum hps_status rc = hps_transport_of(opt->transport, &d->transport, err);

	if (!rc && opt->job && !hps_name_ok(opt->job))
		rc = hps_err_set(err, HPS_USAGE, "--job: expected " HPS_NAME_RULE ", got \"%s\"",
				 opt->job);
	d->base_port = (uint16_t)opt->base_port;
	d->epochs = opt->epochs	     ? (uint32_t)opt->epochs
		    : job->has_model ? job->model.train.epochs
				     : 1;
	d->seed = p->seed;
	d->samples = opt->samples;
	d->model = job->has_model ? &job->model : NULL;
	if (!rc && !opt->job)
		rc = make_name(job, name, err);
	d->job = opt->job ? opt->job : name->data;
	if (!rc && !opt->run_dir)
		rc = make_run_dir(d->job, dir, err);
	d->run_dir = opt->run_dir ? opt->run_dir : dir->data;
	return rc;
}

/* --- --simulate --- */

static enum hps_status read_load(const char *path, struct hps_load *load, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status rc = hps_file_read(path, 0, &b, err);

	if (!rc)
		rc = hps_load_parse(b.data, b.len, strcmp(path, "-") ? path : "standard input",
				    load, err);
	hps_buf_release(&b);
	return rc;
}

static enum hps_status write_replay(const struct hps_replay *r, enum hps_form form,
				    struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_doc *doc = NULL;
	enum hps_status rc;

	if (form == HPS_FORM_TEXT) {
		rc = hps_replay_text(r, &b, err);
		if (!rc)
			rc = hps_out_write(b.data, b.len, err);
	} else {
		doc = hps_replay_doc(r);
		rc = doc ? hps_doc_write(doc, form, err)
			 : hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	hps_doc_free(doc);
	hps_buf_release(&b);
	return rc;
}

static enum hps_status simulate(const struct provision_options *opt, const struct hps_problem *p,
				const struct hps_span *stage, uint32_t n, enum hps_form form,
				struct hps_err *err)
{
	const struct hps_replay_row *exact;
	struct hps_replay replay = { 0 };
	struct hps_load load = { 0 };
	enum hps_status rc;

	rc = read_load(opt->simulate, &load, err);
	if (!rc)
		rc = hps_replay(p, &opt->watch, stage, n, &load, &replay, err);
	if (!rc)
		rc = write_replay(&replay, form, err);
	exact = &replay.row[HPS_POLICY_EXACT];
	if (!rc && exact->done && exact->unmet_s > 0) {
		rc = hps_err_set(err, HPS_NO,
				 "from %.17g s on the load is out of reach: %.6g samples/s are the "
				 "best there is",
				 exact->unmet_from_s, exact->best_rate);
		hps_err_at(err, "%s", opt->simulate);
	}
	hps_replay_release(&replay);
	hps_load_release(&load);
	return rc;
}

/* --- --watch --- */

static enum hps_status write_line(void *arg, const struct hps_doc *line, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status rc = hps_doc_to_json_line(line, &b, err);

	(void)arg;
	if (!rc)
		rc = hps_out_write(b.data, b.len, err);
	if (!rc && fflush(stdout)) {
		rc = hps_err_errno(err, HPS_IO, "cannot write");
		hps_err_at(err, "standard output");
	}
	hps_buf_release(&b);
	return rc;
}

enum { TOLD_BAD_LINES = 10 };

static void tell_bad_line(void *arg, const struct hps_err *err)
{
	int *told = arg;

	if (*told < TOLD_BAD_LINES)
		hps_warn("%s: %s", err->where, err->msg);
	if (++*told == TOLD_BAD_LINES)
		hps_warn("more bad lines are counted only");
}

/* Wait for input, a signal, or the time that the watch asks for; read what there is. */
static enum hps_status wait_input(struct hps_watcher *x, double start_s, bool *over,
				  struct hps_err *err)
{
	struct pollfd fd[] = { { .fd = STDIN_FILENO, .events = POLLIN },
			       { .fd = hps_sig_fd(), .events = POLLIN } };
	double wait_s = hps_watcher_next(x) - (hps_now_s() - start_s);
	char bytes[1 << 16];
	ssize_t n;

	n = poll(fd, 2, isinf(wait_s) ? -1 : (int)fmin(fmax(ceil(wait_s * 1000), 0), 1e9));
	if (n < 0 && errno != EINTR)
		return hps_err_errno(err, HPS_IO, "cannot wait for input");
	*over = hps_sig_caught();
	if (n <= 0 || *over || !fd[0].revents)
		return HPS_OK;
	n = read(STDIN_FILENO, bytes, sizeof(bytes));
	if (n < 0 && errno != EINTR) {
		hps_err_errno(err, HPS_IO, "cannot read");
		hps_err_at(err, "standard input");
		return HPS_IO;
	}
	*over = n == 0;
	return n > 0 ? hps_watcher_feed(x, bytes, (size_t)n, hps_now_s() - start_s, err) : HPS_OK;
}

static enum hps_status watch(const struct provision_options *opt, const struct hps_job *job,
			     const struct hps_problem *p,
			     const struct hps_deploy_options *deploy_opt,
			     const struct hps_span *stage, uint32_t n, struct hps_err *err)
{
	struct hps_watcher x = { .problem = p,
				 .deploy = deploy_opt,
				 .name = "standard input",
				 .emit = write_line,
				 .complain = tell_bad_line };
	struct hps_load load = { 0 };
	double start_s = hps_now_s();
	enum hps_status rc;
	bool over = false;
	int told = 0;

	x.arg = &told;
	rc = opt->load ? read_load(opt->load, &load, err) : HPS_OK;
	x.load = opt->load ? &load : NULL;
	if (!rc)
		rc = hps_watcher_init(&x, &opt->watch, stage, n, err);
	if (!rc && job->has_deployment)
		hps_watch_running_job(&x.watch, &job->deployment);
	if (!rc)
		rc = hps_sig_install(err);
	while (!rc && !x.over && !over) {
		rc = hps_watcher_tick(&x, hps_now_s() - start_s, err);
		if (!rc && !x.over)
			rc = wait_input(&x, start_s, &over, err);
	}
	if (!rc)
		rc = hps_watcher_end(&x, hps_now_s() - start_s, err);
	hps_watcher_release(&x);
	hps_load_release(&load);
	return rc;
}

/* --- all of them --- */

static enum hps_status follow_load(const struct provision_options *given, const struct hps_job *job,
				   const struct hps_problem *p,
				   const struct hps_deploy_options *deploy_opt, enum hps_form form,
				   struct hps_err *err)
{
	struct provision_options opt = *given;
	uint32_t n = job->plan.n_stages;
	struct hps_problem priced = *p;
	struct hps_span *stage = NULL;
	enum hps_status rc;

	priced.objective = HPS_PRICE_PER_HOUR;
	rc = opt.method ? hps_provisioner_find(opt.method, &opt.watch.how, err) : HPS_OK;
	if (!rc)
		rc = hps_spans_of_plan(p->cost, &job->plan, &stage, err);
	if (rc)
		return rc;
	opt.watch.ratios = hps_ratios_asked(&opt.ratios, p->cost, stage, n, job->plan.ps_shards);
	rc = opt.simulate ? simulate(&opt, &priced, stage, n, form, err)
			  : watch(&opt, job, &priced, deploy_opt, stage, n, err);
	free(stage);
	return rc;
}

static enum hps_status settle_once(const struct provision_options *opt, struct hps_job *job,
				   const struct hps_problem *p, struct hps_deploy_options *d,
				   const char *path, enum hps_form form, struct hps_err *err)
{
	struct hps_solution solution = { 0 };
	enum hps_provisioner how;
	enum hps_status rc;

	rc = hps_provision(job, p, opt->method, &opt->ratios, opt->words.floor > 0, &how, &solution,
			   err);
	if (rc == HPS_BAD_INPUT)
		hps_err_at(err, "%s", path ? path : "standard input");
	d->method = rc ? NULL : hps_provisioner_name(how);
	if (!rc)
		rc = deploy(job, p, &solution, d, form, err);
	hps_solution_release(&solution);
	return rc;
}

static enum hps_status provision(const char *path, enum hps_form form,
				 const struct provision_options *opt, struct hps_err *err)
{
	unsigned trust = HPS_MODEL | HPS_CLUSTER | HPS_PROFILE | HPS_PLAN;
	struct hps_buf name = HPS_BUF_INIT, dir = HPS_BUF_INIT;
	struct hps_deploy_options d = { 0 };
	struct hps_problem problem;
	struct hps_cost cost = { 0 };
	struct hps_job job;
	enum hps_status rc;

	rc = hps_job_read(path, HPS_CLUSTER | HPS_PROFILE | HPS_PLAN,
			  trust | (opt->watching ? HPS_DEPLOYMENT : 0), &job, err);
	if (rc)
		return rc;
	rc = hps_problem_setup(&job, &opt->words, true, &cost, &problem, err);
	if (rc == HPS_BAD_INPUT)
		hps_err_at(err, "%s", path ? path : "standard input");
	if (!rc)
		rc = settle_options(opt, &job, &problem, &d, &name, &dir, err);
	if (!rc && (opt->watching || opt->simulate))
		rc = follow_load(opt, &job, &problem, &d, form, err);
	else if (!rc)
		rc = settle_once(opt, &job, &problem, &d, path, form, err);
	hps_buf_release(&name);
	hps_buf_release(&dir);
	hps_cost_release(&cost);
	hps_job_release(&job);
	return rc;
}

/* Options that do not go together. */
static enum hps_status check_options(const struct provision_options *opt, const char *path,
				     enum hps_form form, struct hps_err *err)
{
	bool follow = opt->watching || opt->simulate, piped = !path || !strcmp(path, "-");

	if (opt->watching && opt->simulate)
		return hps_err_set(err, HPS_USAGE, "--watch and --simulate exclude each other");
	if (opt->load && !opt->watching)
		return hps_err_set(err, HPS_USAGE, "--load goes with --watch");
	if (opt->watching && form != HPS_FORM_JSON)
		return hps_err_set(err, HPS_USAGE, "--watch writes JSON lines and nothing else");
	if (follow && opt->words.floor > 0)
		return hps_err_set(err, HPS_USAGE, "the load says the floor, not -t");
	if (follow && opt->method && !strcmp(opt->method, "keep"))
		return hps_err_set(err, HPS_USAGE, "keep does not follow a load");
	if (opt->simulate && opt->method)
		return hps_err_set(err, HPS_USAGE, "--simulate compares all methods, not -m");
	if (piped && (opt->watching || (opt->simulate && !strcmp(opt->simulate, "-"))))
		return hps_err_set(err, HPS_USAGE,
				   "standard input holds the %s; the job must be a file",
				   opt->watching ? "events" : "load");
	if (opt->load && !strcmp(opt->load, "-"))
		return hps_err_set(err, HPS_USAGE,
				   "standard input holds the events, --load must "
				   "be a file");
	return HPS_OK;
}

int main(int argc, char **argv)
{
	struct provision_options opt = { .words.seed = -1,
					 .base_port = 17400,
					 .watch = hps_watch_defaults() };
	const struct hps_opt opts[] = {
		{ 'm', "method", HPS_OPT_STR, &opt.method, "METHOD",
		  "exact, newton, staratio, stapsratio, keep; default: keep those of fixed:" },
		{ 't', "floor", HPS_OPT_DOUBLE, &opt.words.floor, "FLOOR",
		  "samples a second at least; default: the plan's", DBL_MIN, DBL_MAX },
		{ 0, "cpus-per-gpu", HPS_OPT_DOUBLE, &opt.ratios.cpus_per_gpu, "RATIO",
		  "that staratio keeps; default: the plan's", DBL_MIN, DBL_MAX },
		{ 0, "ps-per-unit", HPS_OPT_DOUBLE, &opt.ratios.ps_per_unit, "RATIO",
		  "shards a unit that stapsratio keeps; default: the plan's", DBL_MIN, DBL_MAX },
		HPS_PLAN_WORD_OPTS(&opt.words),
		{ 0, "epochs", HPS_OPT_INT, &opt.epochs, "N", "times through the data", 1,
		  HPS_MAX_EPOCHS },
		{ 0, "sync", HPS_OPT_STR, &opt.words.sync, "MODE", "bsp or asp" },
		{ 0, "job", HPS_OPT_STR, &opt.job, "NAME",
		  "the job's name; default: the model's and a unique end" },
		{ 0, "transport", HPS_OPT_STR, &opt.transport, "KIND",
		  "auto (default: ipc on one host), ipc or tcp" },
		{ 0, "run-dir", HPS_OPT_STR, &opt.run_dir, "DIR",
		  "where ipc sockets will be; default: by the job's name" },
		{ 0, "base-port", HPS_OPT_INT, &opt.base_port, "PORT",
		  "first tcp port on each host (17400)", 1, 65535 },
		{ 0, "samples", HPS_OPT_DOUBLE, &opt.samples, "N",
		  "rows of an epoch, to total hours and cost", 0, DBL_MAX },
		{ 0, "watch", HPS_OPT_FLAG, &opt.watching, NULL,
		  "read events and loads, print each deployment that is needed or cheaper" },
		{ 0, "load", HPS_OPT_STR, &opt.load, "FILE",
		  "with --watch: the load over time, in real time" },
		{ 0, "simulate", HPS_OPT_STR, &opt.simulate, "LOAD",
		  "replay a load: cost and utilisation of exact and of its rivals" },
		{ 0, "headroom", HPS_OPT_DOUBLE, &opt.watch.headroom, "SHARE",
		  "provision for so much more than is asked for (0)", 0, 100 },
		{ 0, "margin", HPS_OPT_DOUBLE, &opt.watch.margin, "SHARE",
		  "change only for what is cheaper by more than this (0.05)", 0, 1 },
		{ 0, "change-cost", HPS_OPT_DOUBLE, &opt.watch.change_dollars, "DOLLARS",
		  "what a change costs (0), beside the time it takes", 0, DBL_MAX },
		{ 0, "change-time", HPS_OPT_DOUBLE, &opt.watch.change_s, "SECONDS",
		  "that a change takes, at the price of the new deployment (60)", 0, DBL_MAX },
		{ 0 },
	};
	struct hps_cmd cmd = {
		.name = NAME,
		.summary = "Settle the units of a plan, its shards, hosts and addresses.",
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
	rc = check_options(&opt, n ? operand[0] : NULL, cmd.form, &err);
	if (!rc)
		rc = provision(n ? operand[0] : NULL, cmd.form, &opt, &err);
	return hps_exit(NAME, rc, &err);
}
