/* What does simulated annealing find? (Kirkpatrick, Gelatt, Vecchi 1983.) From a structure to one
 * next to it (moves.h); a step that costs more is taken with probability exp(-increase of
 * log(cost) / temperature), the temperature falling geometrically over the budget. As costs enter
 * by their logarithm, temperatures are relative increases and need no tuning to the problem. The
 * budget is spent on several coolings: the first from the best single type, later ones by turns
 * from chance and, less hot, from the best so far. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/rivals.h"

static const double hot = 0.1, warm = 0.03, cold = 0.002;
enum { EACH = 1500, MOST_RUNS = 40 };

struct annealing {
	struct hps_search *search;
	struct hps_rng rng;
	struct hps_span *at, *tried; /* n_layers each */
	uint32_t n;		     /* of at */
	double value;
};

static enum hps_status begin_at(struct annealing *a, uint32_t n, struct hps_err *err)
{
	struct hps_trial t;
	enum hps_status rc = hps_search_try(a->search, a->at, &n, &t, err);

	a->n = n;
	a->value = hps_rival_value(&t);
	return rc;
}

/* The best of all layers on one type; up to a tenth of the budget. */
static enum hps_status begin_single(struct annealing *a, struct hps_err *err)
{
	const struct hps_cost *c = a->search->problem->cost;
	enum hps_status rc = HPS_OK;

	for (uint32_t t = 0; !rc && t < c->n_types && hps_rival_more(a->search); t++) {
		uint32_t n = 1;
		struct hps_trial trial;

		if (t && hps_search_used(a->search) > 0.1)
			break;
		*a->tried = (struct hps_span){ 0, c->n_layers - 1, t, 0 };
		rc = hps_search_try(a->search, a->tried, &n, &trial, err);
	}
	if (rc)
		return rc;
	*a->at = *a->search->best;
	a->n = 1;
	a->value = hps_rival_value(&a->search->best_trial);
	return HPS_OK;
}

static void begin_best(struct annealing *a)
{
	a->n = a->search->n_best;
	memcpy(a->at, a->search->best, a->n * sizeof(*a->at));
	a->value = hps_rival_value(&a->search->best_trial);
}

/* One cooling, until `end` of the budget is used. */
static enum hps_status cool(struct annealing *a, double temperature, double end,
			    struct hps_err *err)
{
	const struct hps_problem *p = a->search->problem;
	double begin = hps_search_used(a->search), used = begin, fall = log(cold / temperature);

	for (; used < end && hps_search_more(a->search); used = hps_search_used(a->search)) {
		double heat = temperature * exp(fall * (used - begin) / (end - begin)), rise;
		uint32_t n = hps_moves_random(p, &a->rng, a->at, a->n, a->tried);
		struct hps_span *swap = a->at;
		struct hps_trial t;
		enum hps_status rc = hps_search_try(a->search, a->tried, &n, &t, err);

		if (rc)
			return rc;
		rise = hps_rival_value(&t) - a->value;
		if (rise > 0 && hps_rng_uniform(&a->rng) >= exp(-rise / heat))
			continue;
		a->at = a->tried;
		a->tried = swap;
		a->n = n;
		a->value += rise;
	}
	return HPS_OK;
}

static enum hps_status anneal(struct annealing *a, struct hps_err *err)
{
	const struct hps_search *s = a->search;
	uint64_t runs = s->max_evaluations ? s->max_evaluations / EACH : MOST_RUNS;
	enum hps_status rc = begin_single(a, err);

	if (runs < 1)
		runs = 1;
	if (runs > MOST_RUNS)
		runs = MOST_RUNS;
	for (uint64_t run = 0; !rc && run < runs && hps_search_more(a->search); run++) {
		bool from_best = run && run % 2 == 0;

		if (from_best)
			begin_best(a);
		else if (run)
			rc = begin_at(a, hps_structure_random(s->problem, &a->rng, a->at), err);
		if (!rc)
			rc = cool(a, from_best ? warm : hot, (double)(run + 1) / (double)runs, err);
	}
	return rc;
}

enum hps_status hps_plan_anneal(const struct hps_problem *p, const char *arg,
				struct hps_solution *out, struct hps_err *err)
{
	size_t L = p->cost->n_layers;
	struct hps_search s;
	struct annealing a = { .search = &s };
	struct hps_span *spans;
	enum hps_status rc;

	(void)arg;
	memset(out, 0, sizeof(*out));
	rc = hps_rival_start(&s, p, &a.rng, err);
	if (rc)
		return rc;
	spans = hps_calloc(2 * L, sizeof(*spans), err);
	rc = HPS_MEMORY;
	if (spans) {
		a.at = spans;
		a.tried = spans + L;
		rc = anneal(&a, err);
	}
	free(spans);
	return hps_rival_end(&s, rc, out, err);
}
