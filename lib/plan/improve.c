/* Is there a better plan close to the best one? Local search over structures, by all moves of
 * moves.h that change little: first improvement, until none is left. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/moves.h"
#include "plan/plan_int.h"

/* The fewest first: a better one is met sooner. */
static const enum hps_move kinds[] = { HPS_MOVE_BOUNDARY, HPS_MOVE_TYPE, HPS_MOVE_MERGE,
				       HPS_MOVE_SPLIT };

struct improving {
	struct hps_search *search;
	struct hps_span *at, *tried; /* n_layers each: the present plan, and a neighbour */
	uint32_t n;
	struct hps_trial trial; /* of at */
	uint64_t left;		/* neighbours that may still be tried */
};

/* All neighbours by one kind of move until one is better: *taken, it is the present plan then. */
static enum hps_status step(struct improving *x, enum hps_move kind, bool *taken,
			    struct hps_err *err)
{
	const struct hps_problem *p = x->search->problem;
	uint64_t count = hps_moves_count(p, x->at, x->n, kind);

	for (uint64_t i = 0; i < count && x->left && hps_search_more(x->search); i++) {
		uint32_t n = hps_moves_make(p, x->at, x->n, kind, i, x->tried);
		struct hps_span *swap = x->at;
		struct hps_trial t;
		enum hps_status rc = hps_search_try(x->search, x->tried, &n, &t, err);

		if (rc)
			return rc;
		x->left--;
		if (!hps_trial_better(&t, &x->trial))
			continue;
		x->at = x->tried;
		x->tried = swap;
		x->n = n;
		x->trial = t;
		*taken = true;
		return HPS_OK;
	}
	return HPS_OK;
}

enum hps_status hps_improve(struct hps_search *s, uint64_t most, struct hps_err *err)
{
	size_t L = s->problem->cost->n_layers;
	struct improving x = { .search = s, .left = most };
	struct hps_span *spans;
	enum hps_status rc = HPS_OK;
	bool taken = true;

	if (!s->n_best)
		return HPS_OK;
	spans = hps_calloc(2 * L, sizeof(*spans), err);
	if (!spans)
		return HPS_MEMORY;
	x.at = spans;
	x.tried = spans + L;
	x.n = s->n_best;
	x.trial = s->best_trial;
	memcpy(x.at, s->best, x.n * sizeof(*x.at));
	while (!rc && taken) {
		taken = false;
		for (size_t k = 0; !rc && !taken && k < sizeof(kinds) / sizeof(*kinds); k++)
			rc = step(&x, kinds[k], &taken, err);
	}
	free(spans);
	return rc;
}
