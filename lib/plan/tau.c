/* Which plan is cheapest within one cycle time, all sums kept? Branch and bound over k_first on top
 * of dp.c, toll.c and label.c; exact.h, items 3 and 6. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact_int.h"

/* Steps of tolls before labels. */
enum { FIRST_STEPS = 12 };

static bool watched(const struct hps_sums *s, uint32_t type)
{
	for (uint32_t i = 0; i < s->n_types; i++)
		if (s->type[i] == type)
			return true;
	return false;
}

/* Times and sums of the plan in x->stage; true if it keeps all sums at tau. Sums that it breaks
 * and that are not watched yet are added; *more says so. */
static bool keeps_sums(struct hps_tau *x, double tau, bool *more)
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

static bool keeps_limits(const struct hps_cost *c, const struct hps_span *stage, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t used = 0;

		for (uint32_t j = 0; j < n; j++)
			if (stage[j].type == stage[i].type)
				used += stage[j].units;
		if (used > c->type[stage[i].type].limit)
			return false;
	}
	return true;
}

double hps_tau_relaxed(struct hps_tau *x, const struct hps_dp_query *q, double ceiling,
		       uint32_t steps, bool *tolled)
{
	double all = x->all_units * (q->weights ? q->tau : 1), value;

	*tolled = false;
	hps_toll_set(&x->dp, NULL);
	value = hps_dp_solve(&x->dp, q) + hps_dp_servers(&x->dp, q, 0);
	if (isinf(value) || hps_lower(ceiling, value) || isinf(fmin(all, ceiling)) ||
	    (x->any && q->first_open))
		return value;
	if (keeps_limits(x->p->cost, x->tried, hps_dp_plan(&x->dp, x->tried)))
		return value;
	*tolled = true;
	value = fmax(value,
		     hps_toll_raise(&x->dp, q, fmin(all, ceiling), steps, &x->toll, x->search));
	return hps_lower(all, value) ? INFINITY : value;
}

void hps_tau_watch(struct hps_tau *x)
{
	const struct hps_cost *c = x->p->cost;

	/* Servers whose load depends on units are part of the price: always a sum. */
	x->sums.dense = c->opt.dense_sync == HPS_SYNC_PS && c->opt.form == HPS_COST_EXECUTOR &&
			(c->ps.price > 0 || c->ps.max < HPS_COST_MAX_UNITS);
	x->sums.n_types = 0;
	for (uint32_t t = 0; t < c->n_types; t++)
		if (x->dp.toll[t] > 0)
			x->sums.type[x->sums.n_types++] = t;
}

/* The plan in x->stage is the best so far for this tau and k_first; up to what a better one
 * costs. */
static void hold(struct hps_tau *x, double *ceiling)
{
	memcpy(x->held, x->stage, x->n * sizeof(*x->held));
	x->n_held = x->n;
	x->vector_held = x->vector;
	*ceiling = fmin(*ceiling, x->vector.price * (1 - HPS_TIME_EPS));
}

/* The least price within tau for k_first = first, up to the ceiling, all sums kept. */
static enum hps_status solve_first(struct hps_tau *x, double tau, uint32_t first, double ceiling,
				   enum hps_tau_end *out, struct hps_err *err)
{
	struct hps_dp_query q = { .tau = tau, .first = first };
	bool more, tolled;
	double value = hps_tau_relaxed(x, &q, ceiling, FIRST_STEPS, &tolled);

	*out = HPS_TAU_NONE;
	x->n_held = 0;
	if (isinf(value) || hps_lower(ceiling, value))
		return HPS_OK;
	hps_tau_watch(x);
	x->n = tolled ? x->toll.n_found : hps_dp_plan(&x->dp, x->stage);
	if (tolled)
		memcpy(x->stage, x->toll.kept, x->n * sizeof(*x->stage));
	/* What a toll led to may be dearer than what is looked for: then it shows nothing. */
	if (x->n && keeps_sums(x, tau, &more) && !hps_lower(ceiling, x->vector.price)) {
		hold(x, &ceiling);
		*out = HPS_TAU_FOUND;
		if (x->any || (!x->sums.dense && !hps_lower(value, x->vector.price)))
			return HPS_OK;
	}
	for (;;) {
		enum hps_label_end end;
		enum hps_status rc;

		rc = hps_label_solve(&x->dp, &q, &x->sums, ceiling, x->search, x->stage, &x->n,
				     &value, &end, err);
		if (rc)
			return rc;
		if (end == HPS_LABEL_STOPPED)
			*out = HPS_TAU_OPEN;
		if (end != HPS_LABEL_FOUND)
			return HPS_OK;
		if (keeps_sums(x, tau, &more)) {
			hold(x, &ceiling);
			*out = HPS_TAU_FOUND;
			return HPS_OK;
		}
		if (!more) {
			*out = HPS_TAU_OPEN; /* more types at their limit than are watched */
			return HPS_OK;
		}
	}
}

/* The least k of a first stage within tau, if it is to be `first` or more; 0: none. */
static uint32_t least_first(const struct hps_tau *x, double tau, uint32_t first)
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

/* b rises with k_first, so what needs more than k_first there needs it at all. */
uint32_t hps_tau_least_first(const struct hps_tau *x, double tau)
{
	uint32_t first = 1, k;

	if (!x->dp.counts_first)
		return 1;
	for (; first <= x->most_first; first = k) {
		k = least_first(x, tau, first);
		if (!k || k == first)
			return k;
	}
	return 0;
}

/* What k_first do the micro-batches and first stage of the path's plan ask for? */
static uint32_t guess_first(struct hps_tau *x, uint32_t low, uint32_t high)
{
	uint32_t n = hps_dp_plan(&x->dp, x->tried), most = x->tried[0].units;

	for (uint32_t i = 1; i < n; i++) {
		uint32_t need = (x->tried[i].units - 1) / x->p->cost->opt.micro_batches + 1;

		most = need > most ? need : most;
	}
	return most < low ? low : most > high ? high : most;
}

/* Put low .. high on the heap of ranges unless its bound is above the ceiling. A single k_first is
 * going to be solved anyway: for it the bound of what it is part of will do. */
static enum hps_status push(struct hps_tau *x, double tau, uint32_t low, uint32_t high,
			    double known, double ceiling, struct hps_err *err)
{
	struct hps_dp_query q = {
		.tau = tau, .first = low, .first_open = true, .first_most = high
	};
	struct hps_range r = { .low = low, .high = high };
	bool tolled;
	uint32_t i;

	if (low == high && known > 0) {
		r.bound = known;
		r.guess = low;
	} else {
		r.bound = hps_tau_relaxed(x, &q, ceiling, HPS_RANGE_STEPS, &tolled);
		x->least_price = fmin(x->least_price, r.bound);
	}
	if (isinf(r.bound) || r.bound > ceiling)
		return HPS_OK;
	if (low < high)
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

static void keep_cheaper(struct hps_tau *x)
{
	if (!x->n_held || (x->n_kept && x->vector_held.price >= x->vector_kept.price))
		return;
	memcpy(x->kept, x->held, x->n_held * sizeof(*x->kept));
	x->n_kept = x->n_held;
	x->vector_kept = x->vector_held;
}

enum hps_status hps_tau_solve(struct hps_tau *x, double tau, double ceiling, enum hps_tau_end *out,
			      struct hps_err *err)
{
	bool unknown = false;
	uint32_t least = hps_tau_least_first(x, tau);
	enum hps_status rc = HPS_OK;

	x->search->evaluations++;
	x->n_kept = x->n_ranges = 0;
	x->least_price = INFINITY;
	if (least)
		rc = push(x, tau, least, x->dp.counts_first ? x->most_first : least, 0, ceiling,
			  err);
	while (!rc && x->n_ranges) {
		struct hps_range r = x->range[--x->n_ranges];
		enum hps_tau_end one;

		if (r.bound > ceiling || hps_search_halted(x->search)) {
			unknown |= r.bound <= ceiling;
			break;
		}
		if (r.low < r.high) {
			/* What is asked for beyond the low end is often met closer to it. */
			uint32_t middle = r.low + (r.guess - r.low) / 2;

			rc = push(x, tau, r.low, middle, r.bound, ceiling, err);
			if (!rc)
				rc = push(x, tau, middle + 1, r.high, r.bound, ceiling, err);
			continue;
		}
		rc = solve_first(x, tau, r.low, ceiling, &one, err);
		unknown |= one == HPS_TAU_OPEN;
		if (!rc)
			keep_cheaper(x);
		if (x->any && x->n_kept)
			break;
		if (x->n_kept)
			ceiling = fmin(ceiling, x->vector_kept.price * (1 - HPS_TIME_EPS));
	}
	*out = unknown && !(x->any && x->n_kept) ? HPS_TAU_OPEN
	       : x->n_kept			 ? HPS_TAU_FOUND
						 : HPS_TAU_NONE;
	memcpy(x->stage, x->kept, x->n_kept * sizeof(*x->stage));
	x->n = x->n_kept;
	x->vector = x->vector_kept;
	return rc;
}

enum hps_status hps_tau_init(struct hps_tau *x, const struct hps_problem *p,
			     struct hps_search *search, struct hps_err *err)
{
	size_t L = p->cost->n_layers;
	enum hps_status rc;

	memset(x, 0, sizeof(*x));
	x->p = p;
	x->search = search;
	rc = hps_dp_init(&x->dp, p, err);
	if (rc)
		return rc;
	x->all_units = p->cost->ps.price > 0 ? p->cost->ps.price * p->cost->ps.max : 0;
	for (uint32_t t = 0; t < p->cost->n_types; t++)
		x->all_units += p->cost->type[t].price * p->cost->type[t].limit;
	x->most_first = 1;
	for (uint32_t t = 0; x->dp.counts_first && t < p->cost->n_types; t++)
		if (hps_cost_first_max(p->cost, t) > x->most_first)
			x->most_first = hps_cost_first_max(p->cost, t);
	rc = hps_toll_init(&x->toll, p->cost, err);
	if (rc)
		return rc;
	x->stage = hps_calloc(4 * L, sizeof(*x->stage), err);
	x->time = hps_calloc(L, sizeof(*x->time), err);
	if (!x->stage || !x->time)
		return HPS_MEMORY;
	x->kept = x->stage + L;
	x->tried = x->stage + 2 * L;
	x->held = x->stage + 3 * L;
	return HPS_OK;
}

void hps_tau_release(struct hps_tau *x)
{
	hps_dp_release(&x->dp);
	hps_toll_release(&x->toll);
	free(x->stage);
	free(x->time);
	free(x->range);
}
