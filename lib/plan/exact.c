/* Which plan is cheapest, and how do we know? The sweep over cycle times of exact.h, on top of
 * one fixed tau (tau.c). */
#include "plan/exact.h"
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact_int.h"

/* Sweeps that a proof takes are tens to some thousands. */
enum {
	DEFAULT_SWEEPS = 200000,
	STEP_SWEEPS = 256,
	STEP_TRIES = 5000,
	STRIDES = 32,
	NEAR_TRIES = 2000
};
/* A tau range is searched from its end: prices above best / (tau / RANGE) wait for a later one. The
 * narrower, the fewer labels where sums bind. A first look goes in strides of COARSE, for a good
 * plan to begin with. */
#define RANGE  1.01
#define COARSE 1.5

struct exact {
	struct hps_tau at;
	double best; /* objective by `rate` of the best plan met */
	double rest; /* no plan still to come costs less, by `rate` */
};

static double objective(const struct hps_problem *p, double price, double cycle)
{
	return p->objective == HPS_PRICE_PER_HOUR ? price : price / 3600 * cycle;
}

/* x->rest for all plans with a cycle up to tau: by price or by weights, as the objective is. They
 * are among those of every larger tau, so what is known of those holds. */
static enum hps_status bound(struct exact *x, double tau, struct hps_err *err)
{
	struct hps_dp_query q = { .tau = tau,
				  .first = hps_tau_least_first(&x->at, tau),
				  .first_open = true,
				  .weights = x->at.p->objective == HPS_COST_PER_SAMPLE };
	double unit = q.weights ? 3600 : 1, value = INFINITY, labelled;
	double ceiling = x->best * unit * (1 + 2 * HPS_TIE_EPS);
	bool tolled;
	enum hps_label_end end;
	enum hps_status rc;

	if (q.first)
		value = hps_tau_relaxed(&x->at, &q, ceiling, HPS_RANGE_STEPS, &tolled) / unit;
	x->rest = fmax(x->rest, value);
	if (isinf(value) || hps_lower(x->best, x->rest) || !(x->at.sums.cores || x->at.sums.dense))
		return HPS_OK;
	hps_tau_watch(&x->at);
	rc = hps_label_solve(&x->at.dp, &q, &x->at.sums, ceiling, x->at.search, x->at.tried,
			     &(uint32_t){ 0 }, &labelled, &end, err);
	if (rc || end == HPS_LABEL_STOPPED)
		return rc;
	if (end == HPS_LABEL_FOUND)
		x->rest = fmax(x->rest, labelled / unit);
	else
		x->rest = isfinite(x->best) ? x->best * (1 + 2 * HPS_TIE_EPS) : INFINITY;
	return HPS_OK;
}

/* Count the plan in x->at.stage, and by `step` its structure settled by that. */
static enum hps_status take(struct exact *x, struct hps_err *err)
{
	const struct hps_problem *p = x->at.p;
	const struct hps_vector *v = &x->at.vector;
	struct hps_schedule sched = { x->at.stage, x->at.n, v->shards };
	struct hps_trial t;
	enum hps_status rc;

	x->best = fmin(x->best, objective(p, v->price, v->cycle));
	if (p->cost->opt.evaluator != HPS_EVAL_STEP) {
		hps_trial_of_rate(p, v->cycle, v->price, v->shards, v->units, x->at.n, &t);
		hps_search_offer(x->at.search, x->at.stage, x->at.n, &t);
		return HPS_OK;
	}
	hps_trial_of_schedule(p, &sched, &t);
	hps_search_offer(x->at.search, x->at.stage, x->at.n, &t);
	memcpy(x->at.tried, x->at.stage, x->at.n * sizeof(*x->at.tried));
	rc = hps_settle(p, x->at.tried, x->at.n, &t, err);
	if (!rc)
		hps_search_offer(x->at.search, x->at.tried, x->at.n, &t);
	return rc;
}

/* Is there nothing better to come? By `step` plans beyond the rate's optimum may still be. */
static bool done(const struct exact *x, uint32_t *extra)
{
	if (!hps_lower(x->best, x->rest))
		return false;
	if (x->at.p->cost->opt.evaluator != HPS_EVAL_STEP)
		return true;
	if (!x->at.search->best_trial.feasible)
		return false;
	return hps_lower(x->at.search->best_trial.objective, x->rest) || ++*extra > STEP_SWEEPS;
}

/* Prices above this are of no use for a cycle within (tau / range, tau]. */
static double useful(const struct exact *x, double tau, double range)
{
	if (x->at.p->objective == HPS_PRICE_PER_HOUR)
		return x->best * (1 + 2 * HPS_TIE_EPS);
	if (isinf(x->best) || isinf(tau))
		return INFINITY;
	return x->best * 3600 * range / tau * (1 + 2 * HPS_TIE_EPS);
}

/* A first look: a good plan early saves most of the proof. */
static enum hps_status look_around(struct exact *x, struct hps_err *err)
{
	double tau = hps_floor_tau(x->at.p);
	enum hps_tau_end out = HPS_TAU_FOUND;
	enum hps_status rc = HPS_OK;
	int worse = 0;

	for (int i = 0; !rc && i < STRIDES && hps_search_more(x->at.search); i++) {
		rc = hps_tau_solve(&x->at, tau, useful(x, tau, RANGE), &out, err);
		if (!rc && out == HPS_TAU_FOUND) {
			rc = take(x, err);
			tau = fmin(tau, x->at.vector.cycle);
			worse = 0;
		} else if (isinf(x->best) || ++worse == 6) {
			break;
		}
		tau /= COARSE;
	}
	/* Sums that only far off plans break need no labels. */
	memset(&x->at.sums, 0, sizeof(x->at.sums));
	return rc;
}

/* A little local search from the best plan met: the sweep leaps over what it rules out. */
static enum hps_status look_near(struct exact *x, struct hps_err *err)
{
	const struct hps_problem *p = x->at.p;
	uint64_t evaluations = x->at.search->evaluations;
	enum hps_status rc;

	if (p->cost->opt.evaluator == HPS_EVAL_STEP || p->reward)
		return HPS_OK;
	rc = hps_improve(x->at.search, NEAR_TRIES, err);
	x->at.search->evaluations = evaluations; /* these are for cycle times */
	if (!rc && x->at.search->best_trial.feasible)
		x->best = fmin(x->best, x->at.search->best_trial.objective);
	return rc;
}

/* All cycle times from the floor's down. *open: stopped before the end, x->rest bounds the rest. */
static enum hps_status sweep(struct exact *x, bool *open, struct hps_err *err)
{
	const struct hps_problem *p = x->at.p;
	double tau = hps_floor_tau(p);
	bool by_cost = p->objective == HPS_COST_PER_SAMPLE;
	uint32_t extra = 0;

	*open = false;
	for (;;) {
		/* By `step` the rate's price is no reason to leave a plan out. */
		bool step = p->cost->opt.evaluator == HPS_EVAL_STEP;
		double ceiling = step ? INFINITY : useful(x, tau, RANGE);
		enum hps_tau_end out;
		enum hps_status rc;

		x->at.search->bound = fmin(x->rest, x->best);
		x->at.search->has_bound = isfinite(x->at.search->bound);
		if (!hps_search_more(x->at.search)) {
			*open = true;
			return HPS_OK;
		}
		rc = hps_tau_solve(&x->at, tau, ceiling, &out, err);
		if (rc)
			return rc;
		if (out == HPS_TAU_OPEN) {
			*open = true;
			return x->at.n ? take(x, err) : HPS_OK;
		}
		if (out == HPS_TAU_NONE && (isinf(ceiling) || !by_cost))
			return HPS_OK;
		if (out == HPS_TAU_NONE) {
			/* Plans within tau cost more than the ceiling, and at least that. */
			tau = fmin(tau / RANGE,
				   x->best * 3600 / x->at.least_price * (1 + 2 * HPS_TIE_EPS));
		} else {
			rc = take(x, err);
			if (rc)
				return rc;
			tau = fmin(hps_below(tau), hps_below(x->at.vector.cycle));
			if (by_cost && x->at.vector.price > 0 && !step)
				tau = fmin(tau, x->best * 3600 / x->at.vector.price *
							(1 + 2 * HPS_TIE_EPS));
		}
		rc = bound(x, tau, err);
		if (rc)
			return rc;
		if (isinf(x->rest) || done(x, &extra))
			return HPS_OK;
	}
}

/* The sweep, from the bound for everything on; *lower bounds what was not looked at. */
static enum hps_status sweep_all(struct exact *x, double *lower, struct hps_err *err)
{
	bool open = false;
	enum hps_status rc;

	*lower = INFINITY;
	rc = bound(x, hps_floor_tau(x->at.p), err);
	if (!rc && !isinf(x->rest) && x->at.p->objective == HPS_COST_PER_SAMPLE)
		rc = look_around(x, err);
	if (!rc && !isinf(x->rest))
		rc = look_near(x, err);
	if (!rc && !isinf(x->rest) && !hps_lower(x->best, x->rest))
		rc = sweep(x, &open, err);
	if (open)
		*lower = x->rest;
	return rc;
}

/* Every layer on one type, for each type: a plan to begin with, whatever the budget. */
static enum hps_status seed_search(struct exact *x, struct hps_err *err)
{
	const struct hps_cost *c = x->at.p->cost;
	struct hps_problem by_rate = *x->at.p;
	struct hps_cost rate = *c; /* shares its arrays */

	rate.opt.evaluator = HPS_EVAL_RATE;
	by_rate.cost = &rate;
	for (uint32_t t = 0; t < c->n_types && (!t || hps_search_more(x->at.search)); t++) {
		struct hps_span *stage = x->at.stage;
		uint32_t n = 1;
		struct hps_trial trial;
		enum hps_status rc;

		*stage = (struct hps_span){ 0, c->n_layers - 1, t, 0 };
		rc = hps_settle(&by_rate, stage, 1, &trial, err);
		if (rc)
			return rc;
		if (trial.feasible)
			x->best = fmin(x->best, trial.objective);
		rc = hps_search_try(x->at.search, stage, &n, &trial, err);
		if (rc)
			return rc;
	}
	return HPS_OK;
}

enum hps_status hps_plan_exact(const struct hps_problem *p, const char *arg,
			       struct hps_solution *out, struct hps_err *err)
{
	struct hps_search search;
	struct exact x = { .best = INFINITY };
	double lower;
	enum hps_status rc;

	(void)arg;
	memset(out, 0, sizeof(*out));
	rc = hps_search_init(&search, p, DEFAULT_SWEEPS, err);
	if (rc)
		return rc;
	rc = hps_tau_init(&x.at, p, &search, err);
	if (!rc)
		rc = seed_search(&x, err);
	if (!rc)
		rc = sweep_all(&x, &lower, err);
	if (!rc && p->cost->opt.evaluator == HPS_EVAL_STEP)
		rc = hps_improve(&search, STEP_TRIES, err);
	hps_tau_release(&x.at);
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
	if (rc == HPS_NO && !out->interrupted)
		hps_err_hint(err, p->cost->opt.evaluator == HPS_EVAL_STEP
					  ? "by evaluator step not every plan is looked at; rate "
					    "proves what the steady state can do"
					  : "stopped before all plans were looked at: a larger "
					    "--budget may find one");
	return rc;
}

/* --- the highest throughput --- */

/* The least cycle by bisection; each feasible tau is replaced by its plan's own cycle, and the
 * last step shows that nothing is below. */
static enum hps_status bisect(struct exact *x, struct hps_err *err)
{
	double low = 0, high = INFINITY, tau = INFINITY;

	for (;;) {
		enum hps_tau_end out;
		enum hps_status rc = hps_tau_solve(&x->at, tau, INFINITY, &out, err);

		if (rc)
			return rc;
		if (out == HPS_TAU_FOUND) {
			const struct hps_vector *v = &x->at.vector;
			struct hps_trial t;

			hps_trial_of_rate(x->at.p, v->cycle, v->price, v->shards, v->units, x->at.n,
					  &t);
			/* By cycle alone: what it costs does not matter here. */
			x->at.search->n_best = 0;
			hps_search_offer(x->at.search, x->at.stage, x->at.n, &t);
			high = fmin(tau, v->cycle);
		} else {
			low = tau;
		}
		if (hps_below(high) <= low || hps_search_halted(x->at.search))
			return HPS_OK;
		tau = high - low > 1e-9 * high ? (low + high) / 2 : hps_below(high);
	}
}

enum hps_status hps_plan_fastest(const struct hps_problem *p, struct hps_solution *out,
				 struct hps_err *err)
{
	struct hps_problem open = *p;
	struct hps_search search;
	struct exact x = { .best = INFINITY };
	enum hps_status rc;

	memset(out, 0, sizeof(*out));
	open.objective = HPS_PRICE_PER_HOUR;
	open.max_evaluations = 0;
	rc = hps_search_init(&search, &open, 0, err);
	if (rc)
		return rc;
	rc = hps_tau_init(&x.at, &open, &search, err);
	x.at.any = true;
	if (!rc)
		rc = bisect(&x, err);
	hps_tau_release(&x.at);
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
