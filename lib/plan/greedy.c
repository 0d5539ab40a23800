/* What does one look at each layer find? The myopic rival: layers in model order, each put where the
 * stages so far, units settled, cost least: on with the last stage, or in a new one on any type.
 *
 * A beginning of the model is scored as if it were all of it; the floor holds for it too, and its
 * last cut is counted at the bandwidth of its own type, as if the next layer stayed there. Ties as
 * for plans (plan.h): higher throughput, fewer units, fewer stages; then going on before
 * cutting, then the cluster's order of types. No layer is looked at again: L (T + 1)
 * evaluations. Where the budget is less, the rest goes on with the last stage. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/rivals.h"

struct greedy {
	struct hps_search *search;
	struct hps_span *stage, *tried; /* n_layers each: chosen so far, and one choice more */
	uint32_t n;
	struct hps_trial best; /* of the choices for this layer */
	struct hps_span choice;
	bool chosen;
};

/* Is there an evaluation left besides the one that the whole plan needs? */
static bool may_look(struct greedy *g)
{
	const struct hps_search *s = g->search;

	return hps_search_more(g->search) &&
	       (!s->max_evaluations || s->evaluations + 1 < s->max_evaluations);
}

/* The stages so far with `last` as number `at`, the last one. */
static enum hps_status look(struct greedy *g, uint32_t at, struct hps_span last,
			    struct hps_err *err)
{
	struct hps_trial t;
	enum hps_status rc;

	if (!may_look(g))
		return HPS_OK;
	memcpy(g->tried, g->stage, at * sizeof(*g->tried));
	g->tried[at] = last;
	rc = hps_settle(g->search->problem, g->tried, at + 1, &t, err);
	if (rc)
		return rc;
	g->search->evaluations++;
	if (g->chosen && !hps_trial_better(&t, &g->best))
		return HPS_OK;
	g->chosen = true;
	g->best = t;
	g->choice = last;
	return HPS_OK;
}

static enum hps_status place(struct greedy *g, uint32_t layer, struct hps_err *err)
{
	const struct hps_problem *p = g->search->problem;
	struct hps_span on = { .first = 0, .last = layer };
	enum hps_status rc = HPS_OK;

	g->chosen = false;
	if (g->n) {
		on = g->stage[g->n - 1];
		on.last = layer;
		rc = look(g, g->n - 1, on, err);
	}
	for (uint32_t t = 0; !rc && t < p->cost->n_types; t++)
		if (!g->n || !p->merge || t != on.type)
			rc = look(g, g->n, (struct hps_span){ layer, layer, t, 0 }, err);
	if (!g->chosen)
		g->choice = on;
	if (g->n && g->choice.first == on.first)
		g->stage[g->n - 1] = g->choice;
	else
		g->stage[g->n++] = g->choice;
	return rc;
}

enum hps_status hps_plan_greedy(const struct hps_problem *p, const char *arg,
				struct hps_solution *out, struct hps_err *err)
{
	size_t L = p->cost->n_layers;
	struct hps_search s;
	struct greedy g = { .search = &s };
	struct hps_span *spans;
	struct hps_trial t;
	struct hps_rng unused;
	enum hps_status rc;

	(void)arg;
	memset(out, 0, sizeof(*out));
	rc = hps_rival_start(&s, p, &unused, err);
	if (rc)
		return rc;
	spans = hps_calloc(2 * L, sizeof(*spans), err);
	rc = spans ? HPS_OK : HPS_MEMORY;
	g.stage = spans;
	g.tried = spans ? spans + L : NULL;
	for (uint32_t l = 0; !rc && l < L; l++)
		rc = place(&g, l, err);
	if (!rc)
		rc = hps_search_try(&s, g.stage, &g.n, &t, err);
	free(spans);
	return hps_rival_end(&s, rc, out, err);
}
