/* hps-serve: the parameter servers that a job's deployment puts on this host. */
#include <stdlib.h>

#include "base/log.h"
#include "base/opt.h"
#include "base/out.h"
#include "base/sig.h"
#include "doc/doc.h"
#include "job/job.h"
#include "serve/serve.h"
#include "serve/state.h"

static const char name[] = "hps-serve";

static enum hps_status serve(const char *path, struct hps_serve_opts *o, struct hps_err *err)
{
	struct hps_job job = { 0 };
	enum hps_status st = hps_sig_install(err);

	if (st == HPS_OK)
		st = hps_job_read(path, HPS_MODEL | HPS_DEPLOYMENT, HPS_MODEL | HPS_DEPLOYMENT,
				  &job, err);
	if (st != HPS_OK)
		return st;
	o->job = &job;
	st = hps_serve_run(o, err);
	hps_job_release(&job);
	return st;
}

/* Dense tensors and figures of a save; no run. */
static enum hps_status export_state(const char *path, const char *state, const char *dir,
				    enum hps_form form, struct hps_err *err)
{
	struct hps_state s = { 0 };
	struct hps_doc *d = NULL;
	struct hps_job job = { 0 };
	enum hps_status st = HPS_OK;
	bool found;

	if (path)
		st = hps_job_read(path, HPS_MODEL, HPS_MODEL, &job, err);
	if (st != HPS_OK)
		return st;
	st = hps_state_find(state, &s, &found, err);
	if (st == HPS_OK && !found) {
		st = hps_err_set(err, HPS_BAD_INPUT, "holds no save");
		hps_err_at(err, "%s", state);
	}
	if (st == HPS_OK)
		st = hps_state_export(&s, path ? &job : NULL, dir, &d, err);
	if (st == HPS_OK)
		st = hps_doc_write(d, form, err);
	hps_doc_free(d);
	hps_state_release(&s);
	if (path)
		hps_job_release(&job);
	return st;
}

int main(int argc, char **argv)
{
	struct hps_serve_opts o = { .timeout_s = 60 };
	const char *out = NULL;
	const struct hps_opt opts[] = {
		{ 0, "dead-after", HPS_OPT_DOUBLE, &o.dead_after_s, "S",
		  "a process silent for S seconds is dead (default 5)", 0.1, 86400 },
		{ 0, "export", HPS_OPT_STR, &out, "DIR",
		  "write the dense tensors of the save in --state as .npy files, and exit", 0, 0 },
		{ 0, "host", HPS_OPT_STR, &o.host, "NAME",
		  "serve what the deployment gives to host NAME", 0, 0 },
		{ 'k', "keep", HPS_OPT_FLAG, &o.keep, NULL,
		  "stay for further runs after the last replica has left", 0, 0 },
		{ 0, "state", HPS_OPT_STR, &o.state, "DIR",
		  "load the model from DIR if it is there, and save it there", 0, 0 },
		{ 0, "timeout", HPS_OPT_DOUBLE, &o.timeout_s, "S",
		  "wait S seconds for peers to come (default 60)", 0.1, 1e9 },
		{ 0, NULL, HPS_OPT_FLAG, NULL, NULL, NULL, 0, 0 },
	};
	struct hps_cmd cmd = {
		.name = name,
		.summary = "Serve the parameters of a training job.",
		.operands = "[JOB]",
		.max_operands = 1,
		.opts = opts,
		.has_form = true,
	};
	struct hps_err err = { 0 };
	enum hps_status st;
	char **operand;
	int n;

	if (hps_opt_parse(&cmd, argc, argv, &operand, &n, &st) == HPS_OPT_EXIT)
		return (int)st;
	if (out && !o.state) {
		st = hps_err_set(&err, HPS_USAGE, "--export needs --state DIR, where the save is");
		return hps_exit(name, st, &err);
	}
	st = out ? export_state(n ? operand[0] : NULL, o.state, out, cmd.form, &err)
		 : serve(n ? operand[0] : NULL, &o, &err);
	return hps_exit(name, st, &err);
}
