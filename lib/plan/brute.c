/* Which structure is best, if all are looked at? The judge of the other methods. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/plan_int.h"

struct brute {
	struct hps_search *search;
	struct hps_span *stage, *tried;
};

/* Structures of L layers on T types: the first layer has T choices, each later one goes on or
 * begins a stage on any type (with merge: on another type). */
static double count(const struct hps_problem *p)
{
	double T = p->cost->n_types;

	return T * pow(p->merge ? T : T + 1, p->cost->n_layers - 1.0);
}

/* Every continuation of stage[0..n), the last of which ends at layer - 1 so far. */
static enum hps_status extend(struct brute *b, uint32_t n, uint32_t layer, struct hps_err *err)
{
	const struct hps_problem *p = b->search->problem;
	const struct hps_cost *c = p->cost;
	enum hps_status rc = HPS_OK;

	if (layer == c->n_layers) {
		struct hps_trial trial;

		if (!hps_search_more(b->search))
			return HPS_OK;
		memcpy(b->tried, b->stage, n * sizeof(*b->tried));
		return hps_search_try(b->search, b->tried, &n, &trial, err);
	}
	if (n) {
		uint32_t last = b->stage[n - 1].last;

		b->stage[n - 1].last = layer;
		rc = extend(b, n, layer + 1, err);
		b->stage[n - 1].last = last;
	}
	for (uint32_t t = 0; !rc && t < c->n_types; t++) {
		if (p->merge && n && b->stage[n - 1].type == t)
			continue;
		b->stage[n] = (struct hps_span){ layer, layer, t, 0 };
		rc = extend(b, n + 1, layer + 1, err);
	}
	return rc;
}

enum hps_status hps_plan_brute(const struct hps_problem *p, const char *arg,
			       struct hps_solution *out, struct hps_err *err)
{
	uint32_t L = p->cost->n_layers;
	struct hps_search s;
	struct brute b = { .search = &s };
	struct hps_span *spans;
	enum hps_status rc;

	(void)arg;
	memset(out, 0, sizeof(*out));
	if (count(p) > HPS_BRUTE_MAX)
		return hps_err_set(err, HPS_USAGE,
				   "brute looks at every structure: %.3g of %u layers on %u types, "
				   "at most %d",
				   count(p), L, p->cost->n_types, HPS_BRUTE_MAX);
	rc = hps_search_init(&s, p, HPS_BRUTE_MAX, err);
	if (rc)
		return rc;
	spans = hps_calloc(2 * (size_t)L, sizeof(*spans), err);
	b.stage = spans;
	b.tried = spans ? spans + L : NULL;
	rc = spans ? extend(&b, 0, 0, err) : HPS_MEMORY;
	free(spans);
	if (rc) {
		hps_search_release(&s);
		return rc;
	}
	/* All looked at, and each settled exactly: its best is the bound. */
	if (s.evaluations >= count(p) - 0.5 && s.n_best && s.best_trial.feasible &&
	    p->cost->opt.evaluator == HPS_EVAL_RATE) {
		s.has_bound = true;
		s.bound = s.best_trial.objective;
	} else {
		rc = hps_search_bound(&s, err);
	}
	if (rc) {
		hps_search_release(&s);
		return rc;
	}
	return hps_search_finish(&s, out, err);
}
