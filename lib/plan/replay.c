/* What would a changing load have cost under each way of provisioning? See replay.h. */
#include "plan/replay.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/plan_int.h"

/* Sums over time of one policy. */
struct replaying {
	const struct hps_cost *cost;
	struct hps_replay_row *row;
	struct hps_stage_cost *stage; /* n_stages, of the present deployment */
	struct hps_cost_result now;
	double *paid, *busy; /* n_types + 1, unit-seconds; the last one: shards */
	double capacity;
};

static void deployed(struct replaying *x, const struct hps_watch *w)
{
	struct hps_schedule s = { w->now, w->n, w->now_trial.shards };

	hps_cost_eval(x->cost, &s, NULL, &x->now, x->stage);
	x->capacity = w->now_trial.throughput;
}

/* `s` seconds at a target. */
static void run(struct replaying *x, const struct hps_watch *w, double from_s, double s,
		double target)
{
	double served = fmin(target, x->capacity);
	uint32_t T = x->cost->n_types;

	if (!(s > 0))
		return;
	for (uint32_t i = 0; i < w->n; i++) {
		double units = w->now[i].units * s;

		x->paid[w->now[i].type] += units;
		x->busy[w->now[i].type] +=
			units * fmin(1, served * fmax(x->stage[i].ct_s, x->stage[i].dt_s));
	}
	x->paid[T] += w->now_trial.shards * s;
	x->busy[T] +=
		w->now_trial.shards * s * fmin(1, served * fmax(x->now.ps.cpu_s, x->now.ps.link_s));
	x->row->samples += served * s;
	if (hps_lower(x->capacity, target)) {
		if (isnan(x->row->unmet_from_s))
			x->row->unmet_from_s = from_s;
		x->row->unmet_s += s;
		x->row->unmet_samples += (target - served) * s;
	}
}

static void note(struct replaying *x, const struct hps_watch *w, const struct hps_decision *d)
{
	if (d->reason != HPS_WATCH_START && d->price_before > 0) {
		x->row->changes++;
		x->row->change_dollars += d->change_cost;
	}
	deployed(x, w);
}

static void out_of_reach(struct replaying *x, const struct hps_watch *w)
{
	if (w->unreached && !(x->row->best_rate >= w->now_trial.throughput))
		x->row->best_rate = w->now_trial.throughput;
}

/* From now to a time, deciding on the way. */
static enum hps_status advance(struct replaying *x, struct hps_watch *w, double to_s,
			       struct hps_err *err)
{
	enum hps_status rc = HPS_OK;
	bool decided = true;

	while (!rc && decided) {
		double from = w->time_s, target = w->target;
		struct hps_decision d;
		double until = fmin(to_s, hps_watch_next(w));

		run(x, w, from, until - from, target);
		rc = hps_watch_advance(w, to_s, &decided, &d, err);
		if (!rc && decided)
			note(x, w, &d);
	}
	return rc;
}

static enum hps_status follow(struct replaying *x, struct hps_watch *w, const struct hps_load *load,
			      bool fixed, struct hps_err *err)
{
	enum hps_status rc = HPS_OK;

	w->time_s = load->point[0].time_s;
	for (uint32_t i = 0; !rc && i < load->n; i++) {
		double until = i + 1 < load->n ? load->point[i + 1].time_s : load->end_s;
		struct hps_decision d;
		bool decided = false;

		if (fixed && i) {
			run(x, w, load->point[i].time_s, until - load->point[i].time_s,
			    load->point[i].rate);
			continue;
		}
		rc = hps_watch_load(w, load->point[i].time_s,
				    fixed ? hps_load_peak(load) : load->point[i].rate, &decided, &d,
				    err);
		if (rc)
			break;
		if (decided)
			note(x, w, &d);
		out_of_reach(x, w);
		if (fixed)
			run(x, w, load->point[i].time_s, until - load->point[i].time_s,
			    load->point[i].rate);
		else
			rc = advance(x, w, until, err);
	}
	return rc;
}

/* Shares from sums. */
static void total(struct replaying *x)
{
	const struct hps_cost *c = x->cost;
	double money = 0, busy_money = 0, paid = 0, busy = 0;

	for (uint32_t t = 0; t <= c->n_types; t++) {
		double price = t < c->n_types ? c->type[t].price : c->ps.price;
		double use = x->paid[t] > 0 ? x->busy[t] / x->paid[t] : NAN;

		if (t < c->n_types)
			x->row->type_use[t] = use;
		else
			x->row->ps_use = use;
		money += price * x->paid[t];
		busy_money += price * x->busy[t];
		paid += x->paid[t];
		busy += x->busy[t];
	}
	x->row->dollars = money / 3600;
	x->row->utilisation = money > 0 ? busy_money / money : busy / paid;
}

static enum hps_status replay_one(const struct hps_problem *p, struct hps_watch_options opt,
				  enum hps_policy policy, const struct hps_span *stage, uint32_t n,
				  const struct hps_load *load, struct hps_replay_row *row,
				  struct hps_err *err)
{
	static const enum hps_provisioner how[] = {
		HPS_PROVISION_EXACT,	  HPS_PROVISION_NEWTON, HPS_PROVISION_STARATIO,
		HPS_PROVISION_STAPSRATIO, HPS_PROVISION_EXACT,
	};
	struct replaying x = { .cost = p->cost, .row = row };
	uint32_t T = p->cost->n_types;
	struct hps_err why = { 0 };
	struct hps_watch w = { 0 };
	enum hps_status rc = HPS_MEMORY;

	opt.how = how[policy];
	row->unmet_from_s = row->best_rate = NAN;
	row->type_use = hps_calloc(T, sizeof(*row->type_use), err);
	x.stage = hps_calloc(n, sizeof(*x.stage), err);
	x.paid = hps_calloc(2 * ((size_t)T + 1), sizeof(*x.paid), err);
	if (row->type_use && x.stage && x.paid)
		rc = hps_watch_init(&w, p, &opt, stage, n, err);
	if (!rc) {
		x.busy = x.paid + T + 1;
		rc = follow(&x, &w, load, policy == HPS_POLICY_PEAK, &why);
		if (rc == HPS_NO) {
			snprintf(row->why, sizeof(row->why), "%s", why.msg);
			rc = HPS_OK;
		} else if (rc && err) {
			*err = why;
		} else if (!rc) {
			total(&x);
			row->done = true;
		}
	}
	hps_watch_release(&w);
	free(x.stage);
	free(x.paid);
	return rc;
}

enum hps_status hps_replay(const struct hps_problem *p, const struct hps_watch_options *opt,
			   const struct hps_span *stage, uint32_t n_stages,
			   const struct hps_load *load, struct hps_replay *out, struct hps_err *err)
{
	enum hps_status rc = HPS_OK;

	*out = (struct hps_replay){ .cost = p->cost, .load = load, .opt = *opt };
	for (int i = 0; !rc && i < HPS_POLICIES; i++)
		rc = replay_one(p, *opt, (enum hps_policy)i, stage, n_stages, load, &out->row[i],
				err);
	if (rc)
		hps_replay_release(out);
	return rc;
}

void hps_replay_release(struct hps_replay *r)
{
	for (int i = 0; i < HPS_POLICIES; i++)
		free(r->row[i].type_use);
	memset(r, 0, sizeof(*r));
}

double hps_replay_utilisation_over(const struct hps_replay *r, enum hps_policy rival)
{
	const struct hps_replay_row *a = &r->row[HPS_POLICY_EXACT], *b = &r->row[rival];

	return a->done && b->done && b->utilisation > 0 ? a->utilisation / b->utilisation : NAN;
}

double hps_replay_cost_over(const struct hps_replay *r, enum hps_policy rival)
{
	const struct hps_replay_row *a = &r->row[HPS_POLICY_EXACT], *b = &r->row[rival];
	double mine = a->dollars + a->change_dollars;

	return a->done && b->done && mine > 0 ? (b->dollars + b->change_dollars) / mine : NAN;
}
