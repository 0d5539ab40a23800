/* hps-work: the stage replicas that a job's deployment puts on this host. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/opt.h"
#include "base/out.h"
#include "base/sig.h"
#include "job/job.h"
#include "serve/serve.h"
#include "train/work.h"

static const char name[] = "hps-work";

/* "A:B": rows A .. B-1 from 0; either may be left out. */
static enum hps_status parse_rows(const char *option, const char *text, uint64_t *first,
				  uint64_t *end, struct hps_err *err)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	int64_t a = 0, b = 0;
	char left[32] = "";

	if (!text)
		return HPS_OK;
	if (!colon || colon - text >= (int)sizeof left)
		goto bad;
	memcpy(left, text, (size_t)(colon - text));
	if ((left[0] && hps_parse_int(left, 0, HPS_DOC_INT_MAX, &a, NULL)) ||
	    (colon[1] && hps_parse_int(colon + 1, 1, HPS_DOC_INT_MAX, &b, NULL)) || (b && b <= a))
		goto bad;
	*first = (uint64_t)a;
	*end = (uint64_t)b;
	return HPS_OK;
bad:
	return hps_err_set(err, HPS_USAGE, "%s: expected A:B, rows A to B-1 from 0, got \"%s\"",
			   option, text);
}

static enum hps_status work(const char *path, const char *host, bool hosts, bool has_seed,
			    struct hps_work_opts *o, struct hps_err *err)
{
	struct hps_job job = { 0 };
	enum hps_status st = hps_sig_install(err);

	if (st == HPS_OK)
		st = hps_job_read(path, HPS_MODEL | HPS_DEPLOYMENT, HPS_MODEL | HPS_DEPLOYMENT,
				  &job, err);
	if (st != HPS_OK)
		return st;
	o->job = &job;
	if (!has_seed)
		o->seed = job.deployment.seed;
	if (hosts)
		st = hps_work_hosts(&job.deployment, err);
	else if ((st = hps_serve_host(&job, host, &o->host, err)) == HPS_OK)
		st = hps_work_run(o, err);
	hps_job_release(&job);
	return st;
}

int main(int argc, char **argv)
{
	struct hps_work_opts o = { .timeout_s = 60 };
	struct hps_opt_list test = { 0 };
	const char *host = NULL, *messages = NULL, *rows = NULL, *test_rows = NULL;
	int64_t epochs = 0, log_every = 100, parsers = 1, seed = -1, shuffle = 0, skip_bad = 0;
	bool eval = false, predict = false, hosts = false;
	const struct hps_opt opts[] = {
		{ 0, "dead-after", HPS_OPT_DOUBLE, &o.dead_after_s, "S",
		  "a coordinator silent for S seconds is dead (default 5)", 0.1, 86400 },
		{ 0, "epochs", HPS_OPT_INT, &epochs, "N",
		  "train N epochs (default: the deployment's)", 1, HPS_MAX_EPOCHS },
		{ 0, "eval", HPS_OPT_FLAG, &eval, NULL,
		  "do not train: evaluate the servers' model on DATA", 0, 0 },
		{ 0, "host", HPS_OPT_STR, &host, "NAME",
		  "run what the deployment gives to host NAME", 0, 0 },
		{ 0, "hosts", HPS_OPT_FLAG, &hosts, NULL,
		  "print the deployment's hosts, one a line, and exit", 0, 0 },
		{ 0, "log-every", HPS_OPT_INT, &log_every, "N",
		  "print every N-th step, and each epoch's last (default 100)", 1, 1e15 },
		{ 0, "messages", HPS_OPT_STR, &messages, "FILE", "add messages to FILE, too", 0,
		  0 },
		{ 0, "parsers", HPS_OPT_INT, &parsers, "N", "threads that parse rows (default 1)",
		  1, 256 },
		{ 0, "predict", HPS_OPT_FLAG, &predict, NULL,
		  "do not train: print a score for each row of DATA, in order", 0, 0 },
		{ 0, "rows", HPS_OPT_STR, &rows, "A:B", "use only rows A to B-1 of DATA, from 0", 0,
		  0 },
		{ 0, "shuffle", HPS_OPT_INT, &shuffle, "ROWS",
		  "shuffle DATA within windows of ROWS rows (default: none)", 0, 4294967296.0 },
		{ 0, "skip-bad", HPS_OPT_INT, &skip_bad, "N",
		  "skip up to N malformed lines an epoch (default 0)", 0, 1e15 },
		{ 0, "test", HPS_OPT_LIST, &test, "FILE",
		  "evaluate on FILE after each epoch; may be given again", 0, 0 },
		{ 0, "test-rows", HPS_OPT_STR, &test_rows, "A:B",
		  "use only rows A to B-1 of the test files", 0, 0 },
		{ 0, "timeout", HPS_OPT_DOUBLE, &o.timeout_s, "S",
		  "wait S seconds for peers to come (default 60)", 0.1, 1e9 },
		{ 0, NULL, HPS_OPT_FLAG, NULL, NULL, NULL, 0, 0 },
	};
	struct hps_cmd cmd = {
		.name = name,
		.summary = "Train, or use, a job's model: run the replicas of this host.",
		.operands = "JOB [DATA ...]",
		.min_operands = 1,
		.max_operands = -1,
		.opts = opts,
		.seed = &seed,
	};
	struct hps_err err = { 0 };
	enum hps_status st;
	char **operand;
	int n;

	if (hps_opt_parse(&cmd, argc, argv, &operand, &n, &st) == HPS_OPT_EXIT)
		return (int)st;
	o.mode = predict ? HPS_WORK_PREDICT : eval ? HPS_WORK_EVAL : HPS_WORK_TRAIN;
	o.data = (const char *const *)operand + 1;
	o.n_data = (size_t)n - 1;
	o.test = test.item;
	o.n_test = test.n;
	o.epochs = (uint32_t)epochs;
	o.log_every = (uint64_t)log_every;
	o.parsers = (uint32_t)parsers;
	o.shuffle_rows = (uint64_t)shuffle;
	o.skip_bad = (uint64_t)skip_bad;
	o.seed = (uint64_t)seed;
	st = messages ? hps_log_keep(messages, &err) : HPS_OK;
	if (st == HPS_OK && eval && predict)
		st = hps_err_set(&err, HPS_USAGE, "--eval and --predict exclude each other");
	if (st == HPS_OK)
		st = parse_rows("--rows", rows, &o.first_row, &o.end_row, &err);
	if (st == HPS_OK)
		st = parse_rows("--test-rows", test_rows, &o.test_first_row, &o.test_end_row, &err);
	if (st == HPS_OK)
		st = work(operand[0], host, hosts, seed >= 0, &o, &err);
	hps_opt_list_release(&test);
	return hps_exit(name, st, &err);
}
