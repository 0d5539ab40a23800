/* Which plan is cheapest, and how do we know? The sweep over cycle times of exact.h, on top of
 * one fixed tau (dp.c, label.c). */
#include "plan/exact.h"
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact_int.h"

/* Sweeps that a proof takes are tens to some thousands. */
enum { DEFAULT_SWEEPS = 200000, STEP_SWEEPS = 256, STEP_TRIES = 5000 };
/* A tau range is searched from its end: prices above best / (tau / RANGE) wait for a later
 * one. */
#define RANGE 1.1

struct exact {
	const struct hps_problem *p;
	struct hps_search *search;
	struct hps_dp dp;
	struct hps_sums sums;		/* watched so far */
	struct hps_span *stage, *tried; /* L */
	struct hps_stage_time *time;	/* L */
	uint32_t n;
	struct hps_vector vector; /* of stage, when found */
	double best;		  /* objective by `rate` of the best plan met */
	double rest;		  /* no plan still to come costs less, by `rate` */
};

enum outcome { FOUND, NONE, UNKNOWN };

static double objective(const struct hps_problem *p, double price, double cycle)
{
	return p->objective == HPS_PRICE_PER_HOUR ? price : price / 3600 * cycle;
}

static bool watched(const struct hps_sums *s, uint32_t type)
{
	for (uint32_t i = 0; i < s->n_types; i++)
		if (s->type[i] == type)
			return true;
	return false;
}

/* Times and sums of the plan in x->stage; true if it keeps all sums at tau. Sums that it breaks
 * and that are not watched yet are added; *more says so. */
static bool keeps_sums(struct exact *x, double tau, bool *more)
{
	const struct hps_cost *c = x->p->cost;
	bool ok = true, known;

	*more = false;
	for (uint32_t i = 0; i < x->n; i++) {
		const struct hps_span *sp = &x->stage[i];

		x->time[i] =
			hps_cost_stage(c, sp->first, sp->last, sp->type, i ? (int)sp[-1].type : -1,
				       i + 1 < x->n ? (int)sp[1].type : -1, x->stage[0].units);
	}
	for (uint32_t i = 0; i < x->n; i++) {
		uint64_t used = 0;
		uint32_t t = x->stage[i].type;

		for (uint32_t j = 0; j < x->n; j++)
			if (x->stage[j].type == t)
				used += x->stage[j].units;
		if (used <= c->type[t].limit)
			continue;
		ok = false;
		if (!watched(&x->sums, t) && x->sums.n_types < HPS_MAX_SUMS) {
			x->sums.type[x->sums.n_types++] = t;
			*more = true;
		}
	}
	/* A label's sums are in another order. */
	known = hps_vector_at(c, x->stage, x->time, x->n, tau * (1 + 8 * HPS_TIME_EPS), &x->vector);
	if (!known && !x->sums.cores)
		x->sums.cores = *more = true;
	return ok && known;
}

/* The least price within tau for k_first = first, below the ceiling, all sums kept. */
static enum hps_status solve(struct exact *x, double tau, uint32_t first, double ceiling,
			     enum outcome *out, struct hps_err *err)
{
	const struct hps_cost *c = x->p->cost;
	struct hps_dp_query q = { .tau = tau, .first = first };
	double value = hps_dp_solve(&x->dp, &q);
	bool more;

	x->search->evaluations++;
	value += hps_dp_servers(&x->dp, &q, 0);
	*out = NONE;
	if (isinf(value) || hps_lower(ceiling, value))
		return HPS_OK;
	x->n = hps_dp_plan(&x->dp, x->stage);
	/* Servers whose load depends on units are part of the price: always a sum. */
	x->sums.dense = c->opt.dense_sync == HPS_SYNC_PS && c->opt.form == HPS_COST_EXECUTOR &&
			(c->ps.price > 0 || c->ps.max < HPS_COST_MAX_UNITS);
	*out = FOUND;
	if (keeps_sums(x, tau, &more) && !x->sums.dense)
		return HPS_OK;
	for (;;) {
		enum hps_label_end end;
		enum hps_status rc;

		rc = hps_label_solve(&x->dp, &q, &x->sums, ceiling, x->search, x->stage, &x->n,
				     &value, &end, err);
		if (rc)
			return rc;
		*out = end == HPS_LABEL_FOUND ? FOUND : end == HPS_LABEL_NONE ? NONE : UNKNOWN;
		if (*out == FOUND && !keeps_sums(x, tau, &more)) {
			if (more)
				continue;
			*out = UNKNOWN; /* more types at their limit than are watched */
		}
		return HPS_OK;
	}
}

/* A bound for all plans with a cycle up to tau: by price or by weights, as the objective is. */
static enum hps_status bound(struct exact *x, double tau, uint32_t first, bool first_open,
			     double *out, struct hps_err *err)
{
	struct hps_dp_query q = { .tau = tau,
				  .first = first,
				  .first_open = first_open,
				  .weights = x->p->objective == HPS_COST_PER_SAMPLE };
	double unit = q.weights ? 3600 : 1, value;
	enum hps_label_end end;
	enum hps_status rc;

	value = (hps_dp_solve(&x->dp, &q) + hps_dp_servers(&x->dp, &q, 0)) / unit;
	*out = value;
	if (isinf(value) || hps_lower(x->best, value))
		return HPS_OK;
	if (!x->sums.n_types && !x->sums.cores && !x->sums.dense)
		return HPS_OK;
	rc = hps_label_solve(&x->dp, &q, &x->sums, x->best * unit * (1 + 2 * HPS_TIE_EPS),
			     x->search, x->tried, &(uint32_t){ 0 }, &value, &end, err);
	if (rc || end == HPS_LABEL_STOPPED)
		return rc;
	*out = end == HPS_LABEL_FOUND ? fmax(*out, value / unit) : INFINITY;
	if (end == HPS_LABEL_NONE && isfinite(x->best))
		*out = x->best * (1 + 2 * HPS_TIE_EPS);
	return HPS_OK;
}

/* Count the plan in x->stage, and by `step` its structure settled by that. */
static enum hps_status take(struct exact *x, struct hps_err *err)
{
	const struct hps_problem *p = x->p;
	const struct hps_vector *v = &x->vector;
	struct hps_schedule sched = { x->stage, x->n, v->shards };
	struct hps_trial t;
	enum hps_status rc;

	x->best = fmin(x->best, objective(p, v->price, v->cycle));
	if (p->cost->opt.evaluator != HPS_EVAL_STEP) {
		hps_trial_of_rate(p, v->cycle, v->price, v->shards, v->units, x->n, &t);
		hps_search_offer(x->search, x->stage, x->n, &t);
		return HPS_OK;
	}
	hps_trial_of_schedule(p, &sched, &t);
	hps_search_offer(x->search, x->stage, x->n, &t);
	memcpy(x->tried, x->stage, x->n * sizeof(*x->tried));
	rc = hps_settle(p, x->tried, x->n, &t, err);
	if (!rc)
		hps_search_offer(x->search, x->tried, x->n, &t);
	return rc;
}

/* Is there nothing better to come? By `step` plans beyond the rate's optimum may still be. */
static bool done(const struct exact *x, uint32_t *extra)
{
	if (!hps_lower(x->best, x->rest))
		return false;
	if (x->p->cost->opt.evaluator != HPS_EVAL_STEP)
		return true;
	if (!x->search->best_trial.feasible)
		return false;
	return hps_lower(x->search->best_trial.objective, x->rest) || ++*extra > STEP_SWEEPS;
}

/* All cycle times for k_first = first. *open: stopped before the end, x->rest bounds the rest. */
static enum hps_status sweep(struct exact *x, uint32_t first, bool *open, struct hps_err *err)
{
	const struct hps_problem *p = x->p;
	double tau = hps_floor_tau(p);
	bool by_cost = p->objective == HPS_COST_PER_SAMPLE;
	uint32_t extra = 0;

	*open = false;
	for (;;) {
		double ceiling = INFINITY;
		enum outcome out;
		enum hps_status rc;

		if (!hps_search_more(x->search)) {
			*open = true;
			return HPS_OK;
		}
		/* Only worth it where labels are at work: the path alone needs no ceiling. */
		if (by_cost && isfinite(x->best) && isfinite(tau) && x->sums.n_types)
			ceiling = x->best * 3600 / (tau / RANGE);
		rc = solve(x, tau, first, ceiling, &out, err);
		if (rc)
			return rc;
		if (out == UNKNOWN) {
			*open = true;
			return HPS_OK;
		}
		if (out == NONE && isinf(ceiling))
			return HPS_OK;
		if (out == NONE) {
			tau /= RANGE;
		} else {
			rc = take(x, err);
			if (rc)
				return rc;
			tau = fmin(hps_below(tau), hps_below(x->vector.cycle));
			if (by_cost && x->vector.price > 0 &&
			    p->cost->opt.evaluator == HPS_EVAL_RATE)
				tau = fmin(tau, x->best * 3600 / x->vector.price *
							(1 + 2 * HPS_TIE_EPS));
		}
		rc = bound(x, tau, first, false, &x->rest, err);
		if (rc)
			return rc;
		if (isinf(x->rest) || done(x, &extra))
			return HPS_OK;
	}
}

/* One sweep for each k_first, until the bound for all larger ones says stop. */
static enum hps_status sweeps(struct exact *x, double *lower, struct hps_err *err)
{
	const struct hps_problem *p = x->p;
	double tau = hps_floor_tau(p);
	uint32_t most = 1;

	for (uint32_t t = 0; x->dp.counts_first && t < p->cost->n_types; t++)
		if (hps_cost_first_max(p->cost, t) > most)
			most = hps_cost_first_max(p->cost, t);
	*lower = INFINITY;
	for (uint32_t first = 1; first <= most; first++) {
		double later;
		bool open;
		enum hps_status rc;

		rc = bound(x, tau, first, true, &later, err);
		if (rc)
			return rc;
		x->search->bound = fmin(later, x->best);
		x->search->has_bound = isfinite(x->search->bound);
		if (isinf(later) || hps_lower(x->best, later))
			break;
		x->rest = later;
		rc = sweep(x, first, &open, err);
		if (rc)
			return rc;
		if (open) {
			/* Plans of this k_first that are left, and of all larger ones. */
			rc = first < most ? bound(x, tau, first + 1, true, &later, err) : HPS_OK;
			*lower = fmin(x->rest, first < most ? later : INFINITY);
			return rc;
		}
	}
	return HPS_OK;
}

/* Every layer on one type, for each type: a plan to begin with, whatever the budget. */
static enum hps_status seed_search(struct exact *x, struct hps_err *err)
{
	const struct hps_cost *c = x->p->cost;
	struct hps_problem by_rate = *x->p;
	struct hps_cost rate = *c; /* shares its arrays */

	rate.opt.evaluator = HPS_EVAL_RATE;
	by_rate.cost = &rate;
	for (uint32_t t = 0; t < c->n_types && (!t || hps_search_more(x->search)); t++) {
		struct hps_span *stage = x->stage;
		uint32_t n = 1;
		struct hps_trial trial;
		enum hps_status rc;

		*stage = (struct hps_span){ 0, c->n_layers - 1, t, 0 };
		rc = hps_settle(&by_rate, stage, 1, &trial, err);
		if (rc)
			return rc;
		if (trial.feasible)
			x->best = fmin(x->best, trial.objective);
		rc = hps_search_try(x->search, stage, &n, &trial, err);
		if (rc)
			return rc;
	}
	return HPS_OK;
}

static enum hps_status start(struct exact *x, const struct hps_problem *p,
			     struct hps_search *search, struct hps_err *err)
{
	size_t L = p->cost->n_layers;
	enum hps_status rc;

	memset(x, 0, sizeof(*x));
	x->p = p;
	x->search = search;
	x->best = INFINITY;
	rc = hps_dp_init(&x->dp, p, err);
	if (rc)
		return rc;
	x->stage = hps_calloc(2 * L, sizeof(*x->stage), err);
	x->time = hps_calloc(L, sizeof(*x->time), err);
	if (!x->stage || !x->time)
		return HPS_MEMORY;
	x->tried = x->stage + L;
	return HPS_OK;
}

static void stop(struct exact *x)
{
	hps_dp_release(&x->dp);
	free(x->stage);
	free(x->time);
}

enum hps_status hps_plan_exact(const struct hps_problem *p, const char *arg,
			       struct hps_solution *out, struct hps_err *err)
{
	struct hps_search search;
	struct exact x;
	double lower;
	enum hps_status rc;

	(void)arg;
	memset(out, 0, sizeof(*out));
	rc = hps_search_init(&search, p, DEFAULT_SWEEPS, err);
	if (rc)
		return rc;
	rc = start(&x, p, &search, err);
	if (!rc)
		rc = seed_search(&x, err);
	if (!rc)
		rc = sweeps(&x, &lower, err);
	if (!rc && p->cost->opt.evaluator == HPS_EVAL_STEP)
		rc = hps_improve(&search, STEP_TRIES, err);
	stop(&x);
	if (rc) {
		hps_search_release(&search);
		return rc;
	}
	search.bound = fmin(lower, x.best);
	search.has_bound = isfinite(search.bound);
	if (!search.best_trial.feasible && isinf(fmin(lower, x.best)) && !search.interrupted) {
		hps_search_release(&search);
		rc = hps_plan_fastest(p, out, err);
		return rc == HPS_MEMORY ? rc : hps_explain_no(p, rc ? NULL : out, err);
	}
	rc = hps_search_finish(&search, out, err);
	if (rc == HPS_NO && p->cost->opt.evaluator == HPS_EVAL_STEP)
		hps_err_hint(err,
			     "by evaluator step not every plan is looked at; rate proves what the "
			     "steady state can do");
	return rc;
}

/* --- the highest throughput --- */

/* The least cycle for k_first = first that is below *high, by bisection; each feasible tau is
 * replaced by its plan's own cycle, and the last step shows that nothing is below. */
static enum hps_status fastest_of(struct exact *x, uint32_t first, double *high,
				  struct hps_err *err)
{
	double low = 0, tau = hps_below(*high);
	enum outcome out;

	for (;;) {
		enum hps_status rc = solve(x, tau, first, INFINITY, &out, err);

		if (rc)
			return rc;
		if (out == FOUND) {
			struct hps_trial t;
			const struct hps_vector *v = &x->vector;

			hps_trial_of_rate(x->p, v->cycle, v->price, v->shards, v->units, x->n, &t);
			/* By cycle alone: what it costs does not matter here. */
			x->search->n_best = 0;
			hps_search_offer(x->search, x->stage, x->n, &t);
			*high = fmin(tau, v->cycle);
		} else {
			low = tau;
		}
		if (hps_below(*high) <= low || hps_search_halted(x->search))
			return HPS_OK;
		tau = *high - low > 1e-9 * *high ? (isinf(*high) ? 1 : (low + *high) / 2)
						 : hps_below(*high);
	}
}

enum hps_status hps_plan_fastest(const struct hps_problem *p, struct hps_solution *out,
				 struct hps_err *err)
{
	struct hps_problem open = *p;
	struct hps_search search;
	uint32_t most = 1;
	double high = INFINITY;
	struct exact x;
	enum hps_status rc;

	memset(out, 0, sizeof(*out));
	open.objective = HPS_PRICE_PER_HOUR;
	open.max_evaluations = 0;
	rc = hps_search_init(&search, &open, 0, err);
	if (rc)
		return rc;
	rc = start(&x, &open, &search, err);
	for (uint32_t t = 0; !rc && x.dp.counts_first && t < p->cost->n_types; t++)
		if (hps_cost_first_max(p->cost, t) > most)
			most = hps_cost_first_max(p->cost, t);
	for (uint32_t first = 1; !rc && first <= most; first++) {
		struct hps_dp_query q = { .tau = hps_below(high),
					  .first = first,
					  .first_open = true };

		if (isinf(hps_dp_solve(&x.dp, &q)))
			break;
		rc = fastest_of(&x, first, &high, err);
	}
	stop(&x);
	if (rc || !search.n_best) {
		hps_search_release(&search);
		return rc ? rc : hps_err_set(err, HPS_NO, "no plan fits the limits and the memory");
	}
	out->stage = search.best;
	search.best = NULL;
	out->n_stages = search.n_best;
	out->trial = search.best_trial;
	out->evaluations = search.evaluations;
	hps_search_release(&search);
	return HPS_OK;
}
