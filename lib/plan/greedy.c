/* What does one decision for each layer find, none taken back? The myopic rival.
 *
 * Layers are taken in model order. Each goes where it adds least to the cost (units settled), those
 * before it as decided: on in the present stage, or in a new one on any type. What is to come is
 * not known, so it is guessed, in one pass as going on in the same stage, in another as nothing at
 * all (the floor holds for the layers so far; the last cut counts at its own type's bandwidth). The
 * first guess is bad where the floor needs many stages, the second where a unit pays only once
 * it is full; the better of the two plans is the answer. Ties as for plans (plan.h); then going
 * on before cutting, then the cluster's order of types. At most 2 L (T + 1) evaluations. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/rivals.h"

struct greedy {
	struct hps_search *search;
	struct hps_span *stage, *tried; /* n_layers each: decided, and one choice */
	uint32_t n;			/* stages decided */
	bool ahead;			/* the layers to come follow in the same stage */
	/* the best choice for the present layer */
	bool chosen;
	struct hps_span choice; /* becomes the last stage: the present one or a new one */
	struct hps_trial best;
};

/* The last stage so far as `last`, if it begins where that does, else one more. */
static uint32_t put(const struct greedy *g, struct hps_span last, struct hps_span *out)
{
	uint32_t n = g->n;

	memcpy(out, g->stage, n * sizeof(*out));
	if (n && out[n - 1].first == last.first)
		n--;
	else if (n)
		out[n - 1].last = last.first - 1;
	out[n] = last;
	return n + 1;
}

static enum hps_status look(struct greedy *g, struct hps_span last, struct hps_err *err)
{
	uint32_t n = put(g, last, g->tried);
	struct hps_trial t;
	enum hps_status rc;

	if (!hps_rival_more(g->search))
		return HPS_OK;
	if (last.last + 1 == g->search->problem->cost->n_layers) {
		rc = hps_search_try(g->search, g->tried, &n, &t, err);
	} else {
		rc = hps_settle(g->search->problem, g->tried, n, &t, err);
		g->search->evaluations++;
	}
	if (!rc && (!g->chosen || hps_trial_better(&t, &g->best))) {
		g->chosen = true;
		g->best = t;
		g->choice = last;
	}
	return rc;
}

static enum hps_status decide(struct greedy *g, uint32_t layer, struct hps_err *err)
{
	const struct hps_problem *p = g->search->problem;
	uint32_t end = g->ahead ? p->cost->n_layers - 1 : layer;
	const struct hps_span *present = g->n ? &g->stage[g->n - 1] : NULL;
	enum hps_status rc = HPS_OK;

	g->chosen = false;
	if (present && g->ahead) {
		/* That is the plan of the last decision: g->best. */
		g->chosen = true;
		g->choice = *present;
	} else if (present) {
		rc = look(g, (struct hps_span){ present->first, end, present->type, 0 }, err);
	}
	for (uint32_t t = 0; !rc && t < p->cost->n_types; t++)
		if (!present || !p->merge || t != present->type)
			rc = look(g, (struct hps_span){ layer, end, t, 0 }, err);
	if (!rc && g->chosen)
		g->n = put(g, g->choice, g->stage);
	return rc;
}

static enum hps_status pass(struct greedy *g, bool ahead, struct hps_err *err)
{
	uint32_t L = g->search->problem->cost->n_layers;
	enum hps_status rc = HPS_OK;

	g->n = 0;
	g->ahead = ahead;
	for (uint32_t l = 0; !rc && l < L && hps_rival_more(g->search); l++)
		rc = decide(g, l, err);
	return rc;
}

enum hps_status hps_plan_greedy(const struct hps_problem *p, const char *arg,
				struct hps_solution *out, struct hps_err *err)
{
	size_t L = p->cost->n_layers;
	struct hps_search s;
	struct greedy g = { .search = &s };
	struct hps_span *spans;
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
	if (!rc)
		rc = pass(&g, true, err);
	if (!rc)
		rc = pass(&g, false, err);
	free(spans);
	return hps_rival_end(&s, rc, out, err);
}
