/* Which plan is cheapest, and how do we know? The sweep over cycle times of exact.h, on top of
 * one fixed tau (dp.c, label.c). */
#include "plan/exact.h"
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact_int.h"

/* Sweeps that a proof takes are tens to some thousands. */
enum { DEFAULT_SWEEPS = 200000, STEP_SWEEPS = 256, STEP_TRIES = 5000, STRIDES = 32 };
/* A tau range is searched from its end: prices above best / (tau / RANGE) wait for a later
 * one. A first look at the range goes in strides of COARSE, for a good plan to begin with. */
#define RANGE  1.1
#define COARSE 1.5

struct exact {
	const struct hps_problem *p;
	struct hps_search *search;
	struct hps_dp dp;
	uint32_t most_first; /* k_first at most */
	struct range *range; /* k_first still to be looked at, the least bound last */
	uint32_t n_ranges, room_ranges;
	double least_price;	/* a bound of the price at the tau solved last, ceiling or not */
	struct hps_sums sums;	/* watched so far */
	struct hps_span *stage; /* L: the plan of one tau and k_first, then of one tau */
	struct hps_span *kept, *tried; /* L */
	struct hps_stage_time *time;   /* L */
	uint32_t n, n_kept;
	struct hps_vector vector, vector_kept; /* of stage, when found */
	double best;			       /* objective by `rate` of the best plan met */
	double rest;			       /* no plan still to come costs less, by `rate` */
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

/* The least price within tau for k_first = first, up to the ceiling, all sums kept. */
static enum hps_status solve_first(struct exact *x, double tau, uint32_t first, double ceiling,
				   enum outcome *out, struct hps_err *err)
{
	const struct hps_cost *c = x->p->cost;
	struct hps_dp_query q = { .tau = tau, .first = first };
	double value = hps_dp_solve(&x->dp, &q) + hps_dp_servers(&x->dp, &q, 0);
	bool more;

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

/* The least k of a first stage within tau, if it is to be `first` or more; 0: none. */
static uint32_t least_first(const struct exact *x, double tau, uint32_t first)
{
	const struct hps_cost *c = x->p->cost;
	uint32_t least = 0;

	for (uint32_t t = 0; t < c->n_types; t++) {
		for (uint32_t j = 0; j < c->n_layers; j++) {
			struct hps_stage_time s = hps_cost_stage_bare(c, 0, j, t, first);
			uint32_t k;

			/* Without its cut, which makes it no slower. */
			s.d += j + 1 < c->n_layers ? hps_cost_cut(c, j + 1, t, -1) : 0;
			k = hps_stage_units(c, &s, tau, first);
			if (k && (!least || k < least))
				least = k;
		}
	}
	return least;
}

/* k_first from `first` on that some first stage takes at this tau; 0: none. b rises with
 * k_first, so what needs more than `first` at `first` needs it at all. */
static uint32_t next_first(const struct exact *x, double tau, uint32_t first)
{
	uint32_t k;

	if (!x->dp.counts_first)
		return first == 1 ? 1 : 0;
	for (; first <= x->most_first; first = k) {
		k = least_first(x, tau, first);
		if (!k || k == first)
			return k;
	}
	return 0;
}

/* k_first within low .. high, and a bound for the price of such plans. */
struct range {
	double bound;
	uint32_t low, high;
	uint32_t guess; /* the k_first that the bound's plan would need */
};

/* What k_first do the micro-batches and first stage of the path's plan ask for? */
static uint32_t guess_first(struct exact *x, uint32_t low, uint32_t high)
{
	uint32_t n = hps_dp_plan(&x->dp, x->tried), most = x->tried[0].units;

	for (uint32_t i = 1; i < n; i++) {
		uint32_t need = (x->tried[i].units - 1) / x->p->cost->opt.micro_batches + 1;

		most = need > most ? need : most;
	}
	return most < low ? low : most > high ? high : most;
}

/* Put low .. high on the heap of ranges unless its bound is above the ceiling. */
static enum hps_status push(struct exact *x, double tau, uint32_t low, uint32_t high,
			    double ceiling, struct hps_err *err)
{
	struct hps_dp_query q = {
		.tau = tau, .first = low, .first_open = true, .first_most = high
	};
	struct range r = { .low = low, .high = high };
	uint32_t i;

	if (low > high)
		return HPS_OK;
	r.bound = hps_dp_solve(&x->dp, &q) + hps_dp_servers(&x->dp, &q, 0);
	x->least_price = fmin(x->least_price, r.bound);
	if (isinf(r.bound) || r.bound > ceiling)
		return HPS_OK;
	r.guess = guess_first(x, low, high);
	if (x->n_ranges == x->room_ranges) {
		uint32_t room = x->room_ranges ? 2 * x->room_ranges : 64;
		void *p = x->range;
		enum hps_status rc = hps_realloc(&p, room, sizeof(*x->range), err);

		if (rc)
			return rc;
		x->range = p;
		x->room_ranges = room;
	}
	/* Sorted, the least bound last: there are few. */
	for (i = x->n_ranges++; i && x->range[i - 1].bound < r.bound; i--)
		x->range[i] = x->range[i - 1];
	x->range[i] = r;
	return HPS_OK;
}

static void keep_cheaper(struct exact *x)
{
	if (x->n_kept && x->vector.price >= x->vector_kept.price)
		return;
	memcpy(x->kept, x->stage, x->n * sizeof(*x->kept));
	x->n_kept = x->n;
	x->vector_kept = x->vector;
}

/* The least price within tau, up to the ceiling, into x->stage and x->vector: item 6. */
static enum hps_status solve(struct exact *x, double tau, double ceiling, enum outcome *out,
			     struct hps_err *err)
{
	bool unknown = false;
	uint32_t least = next_first(x, tau, 1);
	enum hps_status rc = HPS_OK;

	x->search->evaluations++;
	x->n_kept = x->n_ranges = 0;
	x->least_price = INFINITY;
	if (least)
		rc = push(x, tau, least, x->dp.counts_first ? x->most_first : least, ceiling, err);
	while (!rc && x->n_ranges) {
		struct range r = x->range[--x->n_ranges];
		enum outcome one;

		if (r.bound > ceiling || hps_search_halted(x->search)) {
			unknown |= r.bound <= ceiling;
			break;
		}
		rc = solve_first(x, tau, r.guess, ceiling, &one, err);
		unknown |= one == UNKNOWN;
		if (!rc && one == FOUND)
			keep_cheaper(x);
		if (x->n_kept)
			ceiling = fmin(ceiling, x->vector_kept.price * (1 - HPS_TIME_EPS));
		if (!rc)
			rc = push(x, tau, r.low, r.guess - 1, ceiling, err);
		if (!rc)
			rc = push(x, tau, r.guess + 1, r.high, ceiling, err);
	}
	*out = unknown ? UNKNOWN : x->n_kept ? FOUND : NONE;
	memcpy(x->stage, x->kept, x->n_kept * sizeof(*x->stage));
	x->n = x->n_kept;
	x->vector = x->vector_kept;
	return rc;
}

/* Does the path's plan break a sum that is watched? If not, labels would find no other. */
static bool breaks_watched(struct exact *x)
{
	const struct hps_cost *c = x->p->cost;
	uint32_t n;

	if (x->sums.cores || x->sums.dense)
		return true;
	if (!x->sums.n_types)
		return false;
	n = hps_dp_plan(&x->dp, x->tried);
	for (uint32_t i = 0; i < x->sums.n_types; i++) {
		uint64_t used = 0;

		for (uint32_t j = 0; j < n; j++)
			if (x->tried[j].type == x->sums.type[i])
				used += x->tried[j].units;
		if (used > c->type[x->sums.type[i]].limit)
			return true;
	}
	return false;
}

/* x->rest for all plans with a cycle up to tau: by price or by weights, as the objective is. They
 * are among those of every larger tau, so what is known of those holds. */
static enum hps_status bound(struct exact *x, double tau, struct hps_err *err)
{
	struct hps_dp_query q = { .tau = tau,
				  .first = next_first(x, tau, 1),
				  .first_open = true,
				  .weights = x->p->objective == HPS_COST_PER_SAMPLE };
	double unit = q.weights ? 3600 : 1, value = INFINITY, labelled;
	enum hps_label_end end;
	enum hps_status rc;

	if (q.first)
		value = (hps_dp_solve(&x->dp, &q) + hps_dp_servers(&x->dp, &q, 0)) / unit;
	x->rest = fmax(x->rest, value);
	if (isinf(value) || hps_lower(x->best, x->rest) || !breaks_watched(x))
		return HPS_OK;
	rc = hps_label_solve(&x->dp, &q, &x->sums, x->best * unit * (1 + 2 * HPS_TIE_EPS),
			     x->search, x->tried, &(uint32_t){ 0 }, &labelled, &end, err);
	if (rc || end == HPS_LABEL_STOPPED)
		return rc;
	if (end == HPS_LABEL_FOUND)
		x->rest = fmax(x->rest, labelled / unit);
	else
		x->rest = isfinite(x->best) ? x->best * (1 + 2 * HPS_TIE_EPS) : INFINITY;
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

/* Prices above this are of no use for a cycle within (tau / range, tau]. */
static double useful(const struct exact *x, double tau, double range)
{
	if (x->p->objective == HPS_PRICE_PER_HOUR)
		return x->best * (1 + 2 * HPS_TIE_EPS);
	if (isinf(x->best) || isinf(tau))
		return INFINITY;
	return x->best * 3600 * range / tau * (1 + 2 * HPS_TIE_EPS);
}

/* A first look: a good plan early saves most of the proof. */
static enum hps_status look_around(struct exact *x, struct hps_err *err)
{
	double tau = hps_floor_tau(x->p);
	enum outcome out = FOUND;
	enum hps_status rc = HPS_OK;
	int worse = 0;

	for (int i = 0; !rc && i < STRIDES && hps_search_more(x->search); i++) {
		rc = solve(x, tau, useful(x, tau, COARSE), &out, err);
		if (!rc && out == FOUND) {
			rc = take(x, err);
			tau = fmin(tau, x->vector.cycle);
			worse = 0;
		} else if (isinf(x->best) || ++worse == 6) {
			break;
		}
		tau /= COARSE;
	}
	/* Sums that only far off plans break need no labels. */
	memset(&x->sums, 0, sizeof(x->sums));
	return rc;
}

/* All cycle times from the floor's down. *open: stopped before the end, x->rest bounds the rest. */
static enum hps_status sweep(struct exact *x, bool *open, struct hps_err *err)
{
	const struct hps_problem *p = x->p;
	double tau = hps_floor_tau(p);
	bool by_cost = p->objective == HPS_COST_PER_SAMPLE;
	uint32_t extra = 0;

	*open = false;
	for (;;) {
		/* By `step` the rate's price is no reason to leave a plan out. */
		bool step = p->cost->opt.evaluator == HPS_EVAL_STEP;
		double ceiling = step ? INFINITY : useful(x, tau, RANGE);
		enum outcome out;
		enum hps_status rc;

		x->search->bound = fmin(x->rest, x->best);
		x->search->has_bound = isfinite(x->search->bound);
		if (!hps_search_more(x->search)) {
			*open = true;
			return HPS_OK;
		}
		rc = solve(x, tau, ceiling, &out, err);
		if (rc)
			return rc;
		if (out == UNKNOWN) {
			*open = true;
			return HPS_OK;
		}
		if (out == NONE && (isinf(ceiling) || !by_cost))
			return HPS_OK;
		if (out == NONE) {
			/* Plans within tau cost more than the ceiling, and at least that. */
			tau = fmin(tau / RANGE,
				   x->best * 3600 / x->least_price * (1 + 2 * HPS_TIE_EPS));
		} else {
			rc = take(x, err);
			if (rc)
				return rc;
			tau = fmin(hps_below(tau), hps_below(x->vector.cycle));
			if (by_cost && x->vector.price > 0 && !step)
				tau = fmin(tau, x->best * 3600 / x->vector.price *
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
	rc = bound(x, hps_floor_tau(x->p), err);
	if (!rc && !isinf(x->rest) && x->p->objective == HPS_COST_PER_SAMPLE)
		rc = look_around(x, err);
	if (!rc && !isinf(x->rest) && !hps_lower(x->best, x->rest))
		rc = sweep(x, &open, err);
	if (open)
		*lower = x->rest;
	return rc;
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
	x->most_first = 1;
	for (uint32_t t = 0; x->dp.counts_first && t < p->cost->n_types; t++)
		if (hps_cost_first_max(p->cost, t) > x->most_first)
			x->most_first = hps_cost_first_max(p->cost, t);
	x->stage = hps_calloc(3 * L, sizeof(*x->stage), err);
	x->time = hps_calloc(L, sizeof(*x->time), err);
	if (!x->stage || !x->time)
		return HPS_MEMORY;
	x->kept = x->stage + L;
	x->tried = x->stage + 2 * L;
	return HPS_OK;
}

static void stop(struct exact *x)
{
	hps_dp_release(&x->dp);
	free(x->stage);
	free(x->time);
	free(x->range);
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
		rc = sweep_all(&x, &lower, err);
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

/* The least cycle by bisection; each feasible tau is replaced by its plan's own cycle, and the
 * last step shows that nothing is below. */
static enum hps_status bisect(struct exact *x, struct hps_err *err)
{
	double low = 0, high = INFINITY, tau = INFINITY;

	for (;;) {
		enum outcome out;
		enum hps_status rc = solve(x, tau, INFINITY, &out, err);

		if (rc)
			return rc;
		if (out == FOUND) {
			const struct hps_vector *v = &x->vector;
			struct hps_trial t;

			hps_trial_of_rate(x->p, v->cycle, v->price, v->shards, v->units, x->n, &t);
			/* By cycle alone: what it costs does not matter here. */
			x->search->n_best = 0;
			hps_search_offer(x->search, x->stage, x->n, &t);
			high = fmin(tau, v->cycle);
		} else {
			low = tau;
		}
		if (hps_below(high) <= low || hps_search_halted(x->search))
			return HPS_OK;
		tau = high - low > 1e-9 * high ? (low + high) / 2 : hps_below(high);
	}
}

enum hps_status hps_plan_fastest(const struct hps_problem *p, struct hps_solution *out,
				 struct hps_err *err)
{
	struct hps_problem open = *p;
	struct hps_search search;
	struct exact x;
	enum hps_status rc;

	memset(out, 0, sizeof(*out));
	open.objective = HPS_PRICE_PER_HOUR;
	open.max_evaluations = 0;
	rc = hps_search_init(&search, &open, 0, err);
	if (rc)
		return rc;
	rc = start(&x, &open, &search, err);
	if (!rc)
		rc = bisect(&x, err);
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
