/* What problem did the user state? Words, document and defaults, in that order. */
#include "plan/setup.h"
#include <inttypes.h>
#include <string.h>
#include "base/opt.h"
#include "plan/plan_int.h"

struct word {
	const char *name;
	int value;
};

static const struct word objectives[] = {
	{ "cost_per_sample", HPS_COST_PER_SAMPLE },
	{ "price_per_hour", HPS_PRICE_PER_HOUR },
	{ "cost", HPS_COST_PER_SAMPLE },
	{ "price", HPS_PRICE_PER_HOUR },
	{ NULL, 0 },
};
static const struct word forms[] = {
	{ "executor", HPS_COST_EXECUTOR },
	{ "paper", HPS_COST_PAPER },
	{ NULL, 0 },
};
static const struct word evaluators[] = {
	{ "rate", HPS_EVAL_RATE },
	{ "step", HPS_EVAL_STEP },
	{ NULL, 0 },
};
static const struct word dense_syncs[] = {
	{ "auto", HPS_SYNC_AUTO },
	{ "ps", HPS_SYNC_PS },
	{ "ring", HPS_SYNC_RING },
	{ NULL, 0 },
};
static const struct word syncs[] = {
	{ "bsp", HPS_BSP },
	{ "asp", HPS_ASP },
	{ NULL, 0 },
};
static const struct word transports[] = {
	{ "auto", HPS_TRANSPORT_AUTO },
	{ "ipc", HPS_TRANSPORT_IPC },
	{ "tcp", HPS_TRANSPORT_TCP },
	{ NULL, 0 },
};

/* The value of a word; text NULL keeps *out. */
static enum hps_status choose(const char *what, const char *text, const struct word *words,
			      int *out, struct hps_err *err)
{
	struct hps_buf list = { .max = 256 };

	if (!text)
		return HPS_OK;
	for (const struct word *w = words; w->name; w++) {
		if (!strcmp(w->name, text)) {
			*out = w->value;
			hps_buf_release(&list);
			return HPS_OK;
		}
		if (hps_buf_printf(&list, err, "%s%s", w == words ? "" : ", ", w->name))
			break;
	}
	hps_err_set(err, HPS_USAGE, "unknown %s \"%s\", expected one of %s", what, text,
		    list.data ? list.data : "?");
	hps_buf_release(&list);
	return HPS_USAGE;
}

/* "5000" or "2.5s". */
static enum hps_status parse_budget(const char *s, struct hps_problem *p, struct hps_err *err)
{
	size_t len = s ? strlen(s) : 0;
	char text[64];
	int64_t n;

	if (!s)
		return HPS_OK;
	if (len && len < sizeof(text) && s[len - 1] == 's') {
		memcpy(text, s, len - 1);
		text[len - 1] = '\0';
		if (!hps_parse_double(text, 1e-3, 1e9, &p->max_seconds, NULL))
			return HPS_OK;
	} else if (!hps_parse_int(s, 1, HPS_DOC_INT_MAX, &n, NULL)) {
		p->max_evaluations = (uint64_t)n;
		return HPS_OK;
	}
	return hps_err_set(err, HPS_USAGE,
			   "expected a budget of evaluations (5000) or seconds (2.5s), got \"%s\"",
			   s);
}

static enum hps_status words_of_plan(const struct hps_job *job, struct hps_cost_options *opt,
				     struct hps_problem *p, struct hps_err *err)
{
	const struct hps_plan *plan = &job->plan;
	const char *evaluator = plan->evaluator;
	int v = p->objective;
	enum hps_status rc;

	rc = choose("objective", plan->objective, objectives, &v, err);
	p->objective = (enum hps_objective)v;
	v = opt->form;
	if (!rc)
		rc = choose("form", plan->form, forms, &v, err);
	opt->form = (enum hps_cost_form)v;
	v = opt->evaluator;
	if (!rc && evaluator)
		rc = choose("evaluator", evaluator, evaluators, &v, err);
	opt->evaluator = (enum hps_evaluator)v;
	p->floor = plan->floor_samples_per_s;
	return rc;
}

/* In a ring all replicas of a stage take the same steps; asp's do not, so it implies servers. */
static enum hps_status settle_asp(const struct hps_plan_words *w, int *dense_sync,
				  struct hps_err *err)
{
	if (*dense_sync == HPS_SYNC_RING) {
		hps_err_set(err, HPS_USAGE,
			    "dense synchronisation \"ring\" needs bsp: in a ring all replicas take "
			    "the same steps, with asp they do not");
		hps_err_hint(err, w->sync ? "use --dense-sync ps, or --sync bsp"
					  : "the model's sync is asp; use --dense-sync ps");
		return HPS_USAGE;
	}
	*dense_sync = HPS_SYNC_PS;
	return HPS_OK;
}

enum hps_status hps_problem_setup(const struct hps_job *job, const struct hps_plan_words *w,
				  bool use_plan, struct hps_cost *cost, struct hps_problem *p,
				  struct hps_err *err)
{
	struct hps_cost_options opt = { .form = HPS_COST_EXECUTOR };
	enum hps_status rc = HPS_OK;
	int objective, form, evaluator, dense_sync, sync;

	memset(p, 0, sizeof(*p));
	if (use_plan)
		rc = words_of_plan(job, &opt, p, err);
	if (job->has_model) {
		opt.batch = (double)job->model.train.batch;
		opt.micro_batches = job->model.train.micro_batches;
		opt.mode = job->model.train.sync;
		p->seed = job->model.train.seed;
	} else {
		p->seed = 1;
	}
	objective = p->objective;
	form = opt.form;
	evaluator = opt.evaluator;
	dense_sync = opt.dense_sync;
	sync = opt.mode;
	if (!rc)
		rc = choose("objective", w->objective, objectives, &objective, err);
	if (!rc)
		rc = choose("form", w->form, forms, &form, err);
	if (!rc)
		rc = choose("evaluator", w->evaluator, evaluators, &evaluator, err);
	if (!rc)
		rc = choose("dense synchronisation", w->dense_sync, dense_syncs, &dense_sync, err);
	if (!rc && w->sync && !strncmp(w->sync, "ssp", 3))
		rc = hps_err_set(err, HPS_USAGE, "%s is not built yet; bsp and asp are", w->sync);
	if (!rc)
		rc = choose("sync mode", w->sync, syncs, &sync, err);
	if (!rc)
		rc = parse_budget(w->budget, p, err);
	if (!rc && sync == HPS_ASP)
		rc = settle_asp(w, &dense_sync, err);
	if (rc)
		return rc;
	p->objective = (enum hps_objective)objective;
	opt.form = (enum hps_cost_form)form;
	opt.evaluator = (enum hps_evaluator)evaluator;
	opt.dense_sync = (enum hps_sync_choice)dense_sync;
	opt.mode = (enum hps_sync)sync;
	if (w->batch)
		opt.batch = (double)w->batch;
	if (w->micro_batches)
		opt.micro_batches = (uint32_t)w->micro_batches;
	opt.shards = (uint32_t)w->shards;
	if (w->floor > 0)
		p->floor = w->floor;
	if (w->seed >= 0)
		p->seed = (uint64_t)w->seed;
	p->merge = w->merge;
	p->rl = w->rl;
	p->cost = cost;
	return hps_cost_init(cost, &job->profile, &job->cluster, &opt, err);
}

enum hps_status hps_plan_as_fixed(const struct hps_job *job, struct hps_buf *out,
				  struct hps_err *err)
{
	enum hps_status rc = HPS_OK;

	if (!job->has_plan) {
		hps_err_set(err, HPS_BAD_INPUT, "has no plan to keep");
		hps_err_hint(err, "hps-plan with another method makes one");
		return HPS_BAD_INPUT;
	}
	for (uint32_t i = 0; i < job->plan.n_stages && !rc; i++) {
		const struct hps_plan_stage *s = &job->plan.stage[i];

		rc = hps_buf_printf(out, err, "%s%s*%" PRIu32 "@%" PRIu32 "-%" PRIu32,
				    i ? "|" : "fixed:", s->type, s->units, s->first, s->last);
	}
	return rc;
}

enum hps_status hps_transport_of(const char *word, enum hps_transport *out, struct hps_err *err)
{
	int v = HPS_TRANSPORT_AUTO;
	enum hps_status rc = choose("transport", word, transports, &v, err);

	*out = (enum hps_transport)v;
	return rc;
}
