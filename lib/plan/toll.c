/* How far do limits raise the least price at one cycle time? Lagrangian relaxation: a unit of a
 * limited type pays a toll, plans get back what the limits allow in tolls; exact.h, item 3.
 * Tolls follow the subgradient (Held, Wolfe, Crowder 1974), used units less the limit, by Polyak's
 * step towards the ceiling. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact_int.h"

enum { PATIENCE = 3 };
#define LEAST_PACE 0.02

void hps_toll_set(struct hps_dp *d, const double *toll)
{
	const struct hps_cost *c = d->p->cost;

	d->toll_back = 0;
	for (uint32_t t = 0; t < c->n_types; t++) {
		d->toll[t] = toll ? toll[t] : 0;
		d->toll_back += d->toll[t] * c->type[t].limit;
	}
}

/* Units of each type in the path's plan beyond its limit, into over; true if none is over. */
static bool count_over(const struct hps_dp *d, struct hps_toll *x)
{
	const struct hps_cost *c = d->p->cost;
	bool fits = true;

	x->n = hps_dp_plan(d, x->stage);
	for (uint32_t t = 0; t < c->n_types; t++)
		x->over[t] = -(double)c->type[t].limit;
	for (uint32_t i = 0; i < x->n; i++)
		x->over[x->stage[i].type] += x->stage[i].units;
	for (uint32_t t = 0; t < c->n_types; t++)
		fits &= x->over[t] <= 0;
	return fits;
}

/* The price of the plan in x->stage, without tolls. */
static double plain_value(const struct hps_dp *d, const struct hps_toll *x, double value)
{
	for (uint32_t t = 0; t < d->p->cost->n_types; t++)
		value -= d->toll[t] * x->over[t];
	return value;
}

/* At most HPS_MAX_SUMS types pay: those that did, then those that are over. */
static void admit(const struct hps_dp *d, struct hps_toll *x)
{
	uint32_t n = 0;

	for (uint32_t t = 0; t < d->p->cost->n_types; t++)
		n += d->toll[t] > 0;
	for (uint32_t t = 0; t < d->p->cost->n_types; t++) {
		if (d->toll[t] > 0)
			continue;
		if (x->over[t] > 0 && n < HPS_MAX_SUMS)
			n++;
		else
			x->over[t] = 0;
	}
}

/* Tolls one step on; false if there is no way to go: the bound is as high as it gets. */
static bool step(struct hps_dp *d, struct hps_toll *x, double lacking)
{
	const struct hps_cost *c = d->p->cost;
	double norm = 0;

	admit(d, x);
	for (uint32_t t = 0; t < c->n_types; t++) {
		/* Types differ in what a unit costs and how many there are. */
		x->scale[t] = (c->type[t].price + x->least_price) / c->type[t].limit;
		norm += x->scale[t] * x->over[t] * x->over[t];
	}
	if (!(norm > 0))
		return false;
	for (uint32_t t = 0; t < c->n_types; t++)
		x->now[t] =
			fmax(0, d->toll[t] + x->pace * lacking / norm * x->scale[t] * x->over[t]);
	hps_toll_set(d, x->now);
	return true;
}

/* Keep what the path's plan is if its limits hold; false if the bound cannot rise any more. */
static bool look(struct hps_dp *d, struct hps_toll *x, double value)
{
	if (count_over(d, x) && plain_value(d, x, value) < x->found) {
		x->found = plain_value(d, x, value);
		x->n_found = x->n;
		memcpy(x->kept, x->stage, x->n * sizeof(*x->stage));
	}
	return value < x->found * (1 - HPS_TIE_EPS);
}

double hps_toll_raise(struct hps_dp *d, const struct hps_dp_query *q, double ceiling,
		      uint32_t steps, struct hps_toll *x, struct hps_search *search)
{
	double servers = hps_dp_servers(d, q, 0), best = -INFINITY;
	double *keep = q->weights ? x->weights : x->price;
	uint32_t misses = 0;
	bool ahead = true;

	x->pace = 1;
	x->n_found = 0;
	x->found = INFINITY;
	hps_toll_set(d, keep);
	while (ahead && best <= ceiling && x->pace > LEAST_PACE && !hps_search_halted(search)) {
		double value = hps_dp_solve(d, q) + servers;

		if (value > best) {
			best = value;
			memcpy(keep, d->toll, d->p->cost->n_types * sizeof(*keep));
			misses = 0;
		} else if (++misses == PATIENCE) {
			/* Too far: back, and on with a shorter step. */
			misses = 0;
			x->pace /= 2;
			hps_toll_set(d, keep);
			value = hps_dp_solve(d, q) + servers;
		}
		ahead = !isinf(value) && look(d, x, value) && steps-- > 0;
		ahead = ahead && step(d, x, 1.05 * fmin(ceiling, x->found) - value);
	}
	hps_toll_set(d, keep);
	hps_dp_solve(d, q);
	return best;
}

enum hps_status hps_toll_init(struct hps_toll *x, const struct hps_cost *c, struct hps_err *err)
{
	size_t T = c->n_types;

	memset(x, 0, sizeof(*x));
	x->price = hps_calloc(5 * T, sizeof(*x->price), err);
	x->stage = hps_calloc(2 * (size_t)c->n_layers, sizeof(*x->stage), err);
	if (!x->price || !x->stage) {
		hps_toll_release(x);
		return HPS_MEMORY;
	}
	x->weights = x->price + T;
	x->now = x->price + 2 * T;
	x->over = x->price + 3 * T;
	x->scale = x->price + 4 * T;
	x->kept = x->stage + c->n_layers;
	for (size_t t = 0; t < T; t++)
		x->least_price = fmax(x->least_price, c->type[t].price / 100);
	return HPS_OK;
}

void hps_toll_release(struct hps_toll *x)
{
	free(x->price);
	free(x->stage);
	memset(x, 0, sizeof(*x));
}
