/* When does a changing load call for another deployment? See watch.h. */
#include "plan/watch.h"
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/plan_int.h"

const char *hps_watch_reason_name(enum hps_watch_reason r)
{
	static const char *const names[] = { "start", "needed", "cheaper", "best" };

	return names[r];
}

struct hps_watch_options hps_watch_defaults(void)
{
	return (struct hps_watch_options){ .margin = 0.05, .change_s = 60 };
}

enum hps_status hps_watch_init(struct hps_watch *w, const struct hps_problem *p,
			       const struct hps_watch_options *opt, const struct hps_span *stage,
			       uint32_t n_stages, struct hps_err *err)
{
	*w = (struct hps_watch){ .problem = *p, .opt = *opt, .n = n_stages, .efficiency = 1 };
	w->problem.objective = HPS_PRICE_PER_HOUR;
	w->now = hps_calloc(n_stages, 2 * sizeof(*w->now), err);
	if (!w->now)
		return HPS_MEMORY;
	w->next = w->now + n_stages;
	memcpy(w->now, stage, n_stages * sizeof(*stage));
	memcpy(w->next, stage, n_stages * sizeof(*stage));
	return HPS_OK;
}

void hps_watch_release(struct hps_watch *w)
{
	free(w->now);
	memset(w, 0, sizeof(*w));
}

void hps_watch_running(struct hps_watch *w, const struct hps_span *stage, uint32_t shards)
{
	struct hps_schedule s = { w->now, w->n, shards };

	memmove(w->now, stage, w->n * sizeof(*stage));
	hps_trial_of_schedule(&w->problem, &s, &w->now_trial);
	w->begun = true;
	w->predicted = w->now_trial.throughput;
}

void hps_watch_running_job(struct hps_watch *w, const struct hps_deployment *d)
{
	if (d->n_stages != w->n)
		return;
	for (uint32_t i = 0; i < w->n; i++) {
		const struct hps_deployed_stage *st = &d->stage[i];

		if (st->first != w->now[i].first || st->last != w->now[i].last ||
		    hps_cluster_type(w->problem.cost->cluster, st->type) != (int)w->now[i].type)
			return;
	}
	for (uint32_t i = 0; i < w->n; i++)
		w->now[i].units = d->stage[i].n_replicas;
	hps_watch_running(w, w->now, d->n_shards);
}

void hps_watch_applied(struct hps_watch *w)
{
	w->efficiency = hps_watch_efficiency(w);
	w->predicted = w->now_trial.throughput;
	w->n_rates = 0;
}

double hps_watch_rate(const struct hps_watch *w)
{
	double sorted[HPS_WATCH_RATES];
	uint32_t n = w->n_rates < HPS_WATCH_RATES ? w->n_rates : HPS_WATCH_RATES;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i;

		for (; at && sorted[at - 1] > w->rate[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = w->rate[i];
	}
	return n ? sorted[n / 2] : 0;
}

double hps_watch_efficiency(const struct hps_watch *w)
{
	if (w->n_rates < 3 || w->predicted <= 0)
		return w->efficiency;
	return fmin(1, hps_watch_rate(w) / w->predicted);
}

static double change_cost(const struct hps_watch *w)
{
	return w->opt.change_dollars + w->opt.change_s / 3600 * w->next_trial.price;
}

/* The best for this floor into next. */
static enum hps_status settle(struct hps_watch *w, double floor, struct hps_err *err)
{
	enum hps_status rc;

	if (w->settled && floor == w->problem.floor)
		return HPS_OK;
	w->problem.floor = floor;
	rc = hps_provision_units(&w->problem, w->opt.how, &w->opt.ratios, w->next, w->n,
				 &w->next_trial, NULL, err);
	w->settled = !rc;
	return rc;
}

static void take_next(struct hps_watch *w, enum hps_watch_reason reason, struct hps_decision *d)
{
	double before = w->begun ? w->now_trial.price : 0, cost = w->begun ? change_cost(w) : 0;

	memcpy(w->now, w->next, w->n * sizeof(*w->now));
	w->now_trial = w->next_trial;
	if (!w->begun)
		w->predicted = w->now_trial.throughput;
	w->begun = true;
	w->cheaper = false;
	w->lost = 0;
	*d = (struct hps_decision){
		.time_s = w->time_s,
		.target = w->target,
		.floor = w->floor,
		.reason = reason,
		.reached = !w->unreached,
		.price_before = before,
		.change_cost = cost,
		.trial = w->now_trial,
		.stage = w->now,
	};
}

/* Load or efficiency are new: what now? */
static enum hps_status decide(struct hps_watch *w, bool *decided, struct hps_decision *d,
			      struct hps_err *err)
{
	double need = w->target / hps_watch_efficiency(w);
	enum hps_status rc;

	*decided = false;
	w->floor = need * (1 + w->opt.headroom);
	rc = settle(w, w->floor, err);
	if (!rc && !w->next_trial.feasible && w->opt.headroom > 0) {
		/* Without headroom, rather than not at all. */
		w->floor = need;
		rc = settle(w, w->floor, err);
	}
	if (rc)
		return rc;
	w->unreached = false;
	if (!w->begun || hps_lower(w->now_trial.throughput, need)) {
		bool faster =
			!w->begun || hps_lower(w->now_trial.throughput, w->next_trial.throughput);

		w->unreached = !w->next_trial.feasible;
		*decided = w->next_trial.feasible || faster;
		if (*decided)
			take_next(w,
				  w->unreached ? HPS_WATCH_BEST
				  : w->begun   ? HPS_WATCH_NEEDED
					       : HPS_WATCH_START,
				  d);
		w->cheaper = false;
		w->lost = 0;
		return HPS_OK;
	}
	if (!w->next_trial.feasible ||
	    !(w->next_trial.price < w->now_trial.price * (1 - w->opt.margin))) {
		w->cheaper = false;
		w->lost = 0;
		return HPS_OK;
	}
	w->cheaper = true;
	if (w->lost >= change_cost(w)) {
		take_next(w, HPS_WATCH_CHEAPER, d);
		*decided = true;
	}
	return HPS_OK;
}

double hps_watch_next(const struct hps_watch *w)
{
	double saving = (w->now_trial.price - w->next_trial.price) / 3600;

	if (!w->cheaper)
		return INFINITY;
	return w->time_s + fmax(0, change_cost(w) - w->lost) / saving;
}

enum hps_status hps_watch_advance(struct hps_watch *w, double time_s, bool *decided,
				  struct hps_decision *d, struct hps_err *err)
{
	double at = hps_watch_next(w);

	*decided = false;
	if (!(time_s >= w->time_s))
		return hps_err_set(err, HPS_BAD_INPUT, "time goes back from %.17g s to %.17g s",
				   w->time_s, time_s);
	if (at <= time_s) {
		w->time_s = at;
		take_next(w, HPS_WATCH_CHEAPER, d);
		*decided = true;
		return HPS_OK;
	}
	if (w->cheaper)
		w->lost += (w->now_trial.price - w->next_trial.price) / 3600 * (time_s - w->time_s);
	w->time_s = time_s;
	return HPS_OK;
}

/* Nothing may be decided between the last event and this one: the caller has advanced. */
static enum hps_status to_time(struct hps_watch *w, double time_s, struct hps_err *err)
{
	struct hps_decision d;
	enum hps_status rc = HPS_OK;
	bool decided = true;

	while (!rc && decided)
		rc = hps_watch_advance(w, time_s, &decided, &d, err);
	return rc;
}

enum hps_status hps_watch_load(struct hps_watch *w, double time_s, double target, bool *decided,
			       struct hps_decision *d, struct hps_err *err)
{
	enum hps_status rc = to_time(w, time_s, err);

	*decided = false;
	if (rc)
		return rc;
	w->target = target;
	return decide(w, decided, d, err);
}

enum hps_status hps_watch_measured(struct hps_watch *w, double time_s, double rate, bool *decided,
				   struct hps_decision *d, struct hps_err *err)
{
	enum hps_status rc = to_time(w, time_s, err);

	*decided = false;
	if (rc || !(rate > 0))
		return rc;
	w->rate[w->n_rates++ % HPS_WATCH_RATES] = rate;
	if (w->n_rates >= 2 * HPS_WATCH_RATES)
		w->n_rates = HPS_WATCH_RATES; /* full; the next place follows from it */
	return w->begun && w->target > 0 ? decide(w, decided, d, err) : HPS_OK;
}
