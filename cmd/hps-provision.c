/* hps-provision: settle a plan's units, and say which host runs what and where it listens.
 * Options and glue. */
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/out.h"
#include "base/rng.h"
#include "doc/doc.h"
#include "plan/provision.h"
#include "plan/setup.h"

#define NAME "hps-provision"

struct provision_options {
	struct hps_plan_words words;
	const char *method, *transport, *run_dir, *job;
	int64_t base_port, epochs;
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

static enum hps_status write_text(const struct hps_problem *p, const struct hps_solution *s,
				  const struct hps_deploy_report *r,
				  const struct hps_deploy_options *d, double samples,
				  struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status rc = hps_deploy_text(p, s, r, d, samples, &b, err);

	if (!rc)
		rc = hps_out_write(b.data, b.len, err);
	hps_buf_release(&b);
	return rc;
}

/* The deployment into the document and out, or a table. */
static enum hps_status deploy(struct hps_job *job, const struct hps_problem *p,
			      const struct hps_solution *s, const struct hps_deploy_options *d,
			      double samples, enum hps_form form, struct hps_err *err)
{
	struct hps_deploy_report report = { 0 };
	enum hps_status rc;

	rc = hps_deploy(p, s, d, &job->deployment, &report, err);
	if (rc == HPS_NO && form == HPS_FORM_TEXT) {
		hps_warn("%s", err->msg);
		return write_text(p, s, NULL, d, samples, err);
	}
	if (rc)
		return rc;
	warn_memory(&job->cluster, &report);
	if (form == HPS_FORM_TEXT) {
		rc = write_text(p, s, &report, d, samples, err);
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
	d->model = job->has_model ? &job->model : NULL;
	if (!rc && !opt->job)
		rc = make_name(job, name, err);
	d->job = opt->job ? opt->job : name->data;
	if (!rc && !opt->run_dir)
		rc = make_run_dir(d->job, dir, err);
	d->run_dir = opt->run_dir ? opt->run_dir : dir->data;
	return rc;
}

static enum hps_status provision(const char *path, enum hps_form form,
				 const struct provision_options *opt, struct hps_err *err)
{
	struct hps_buf name = HPS_BUF_INIT, dir = HPS_BUF_INIT;
	struct hps_solution solution = { 0 };
	struct hps_deploy_options d = { 0 };
	struct hps_problem problem;
	struct hps_cost cost = { 0 };
	enum hps_provisioner how;
	struct hps_job job;
	enum hps_status rc;

	rc = hps_job_read(path, HPS_CLUSTER | HPS_PROFILE | HPS_PLAN,
			  HPS_MODEL | HPS_CLUSTER | HPS_PROFILE | HPS_PLAN, &job, err);
	if (rc)
		return rc;
	rc = hps_problem_setup(&job, &opt->words, true, &cost, &problem, err);
	if (!rc)
		rc = hps_provision(&job, &problem, opt->method, &opt->ratios, opt->words.floor > 0,
				   &how, &solution, err);
	if (rc == HPS_BAD_INPUT)
		hps_err_at(err, "%s", path ? path : "standard input");
	d.method = rc ? NULL : hps_provisioner_name(how);
	if (!rc)
		rc = settle_options(opt, &job, &problem, &d, &name, &dir, err);
	if (!rc)
		rc = deploy(&job, &problem, &solution, &d, opt->samples, form, err);
	hps_buf_release(&name);
	hps_buf_release(&dir);
	hps_solution_release(&solution);
	hps_cost_release(&cost);
	hps_job_release(&job);
	return rc;
}

int main(int argc, char **argv)
{
	struct provision_options opt = { .words.seed = -1, .base_port = 17400 };
	const struct hps_opt opts[] = {
		{ 'm', "method", HPS_OPT_STR, &opt.method, "METHOD",
		  "exact, newton, staratio, stapsratio, keep; default: keep those of fixed:" },
		{ 't', "floor", HPS_OPT_DOUBLE, &opt.words.floor, "FLOOR",
		  "samples a second at least; default: the plan's", DBL_MIN, DBL_MAX },
		{ 0, "cpus-per-gpu", HPS_OPT_DOUBLE, &opt.ratios.cpus_per_gpu, "RATIO",
		  "that staratio keeps; default: the plan's", DBL_MIN, DBL_MAX },
		{ 0, "ps-per-unit", HPS_OPT_DOUBLE, &opt.ratios.ps_per_unit, "RATIO",
		  "shards a unit that stapsratio keeps; default: the plan's", DBL_MIN, DBL_MAX },
		{ 0, "shards", HPS_OPT_INT, &opt.words.shards, "N",
		  "exactly so many parameter server shards", 1, HPS_MAX_SHARDS },
		{ 0, "dense-sync", HPS_OPT_STR, &opt.words.dense_sync, "HOW",
		  "dense parameters: auto (default), ps or ring" },
		{ 0, "batch", HPS_OPT_INT, &opt.words.batch, "N", "rows a step", 1, HPS_MAX_BATCH },
		{ 0, "micro-batches", HPS_OPT_INT, &opt.words.micro_batches, "N",
		  "micro-batches a step and first-stage replica", 1, HPS_MAX_MICRO_BATCHES },
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
		  "rows of an epoch, to total the cost with --text", 0, DBL_MAX },
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
	rc = provision(n ? operand[0] : NULL, cmd.form, &opt, &err);
	return hps_exit(NAME, rc, &err);
}
