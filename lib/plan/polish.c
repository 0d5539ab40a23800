/* Is there a better structure next to a sampled one? Local search over moves (moves.h), first
 * improvement: small moves first, each kind in an order of its own. */
#include <string.h>
#include "plan/rl_int.h"

static const enum hps_move order[] = { HPS_MOVE_BOUNDARY, HPS_MOVE_MERGE, HPS_MOVE_SWAP,
				       HPS_MOVE_TYPE, HPS_MOVE_SPLIT };

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t c = a % b;

		a = b;
		b = c;
	}
	return a;
}

struct polishing {
	struct hps_rl_scores *scores;
	struct hps_rng *rng;
	struct hps_span *stage, *tried;
	uint32_t *n;
	struct hps_rl_cost *cost;
	uint64_t end; /* evaluations */
};

static bool spent(struct polishing *x)
{
	return x->scores->search->evaluations >= x->end || !hps_search_more(x->scores->search);
}

/* All moves of a kind, until one is better. They are met as first, first + stride, ..: a
 * permutation, as the stride has no divisor in common with their number. */
static enum hps_status try_kind(struct polishing *x, enum hps_move kind, bool *better,
				struct hps_err *err)
{
	const struct hps_problem *p = x->scores->search->problem;
	uint64_t count = hps_moves_count(p, x->stage, *x->n, kind), at, stride;

	*better = false;
	if (!count)
		return HPS_OK;
	at = hps_rng_below(x->rng, count);
	do
		stride = 1 + hps_rng_below(x->rng, count);
	while (gcd(stride, count) != 1);
	for (uint64_t i = 0; i < count && !spent(x); i++, at = (at + stride) % count) {
		uint32_t n = hps_moves_make(p, x->stage, *x->n, kind, at, x->tried);
		struct hps_rl_cost cost;
		enum hps_status rc = hps_rl_score(x->scores, x->tried, &n, &cost, err);

		if (rc)
			return rc;
		if (!hps_rl_less(cost, *x->cost))
			continue;
		memcpy(x->stage, x->tried, n * sizeof(*x->stage));
		*x->n = n;
		*x->cost = cost;
		*better = true;
		break;
	}
	return HPS_OK;
}

enum hps_status hps_rl_polish(struct hps_rl_scores *s, struct hps_rng *rng, struct hps_span *stage,
			      uint32_t *n, struct hps_rl_cost *cost, uint64_t most,
			      struct hps_span *scratch, bool *done, struct hps_err *err)
{
	struct polishing x = { s, rng, stage, scratch, n, cost, s->search->evaluations + most };
	size_t kinds = sizeof(order) / sizeof(*order), kind = 0;

	*done = false;
	while (kind < kinds && !spent(&x)) {
		bool better;
		enum hps_status rc = try_kind(&x, order[kind], &better, err);

		if (rc)
			return rc;
		kind = better ? 0 : kind + 1;
	}
	*done = kind == kinds;
	return HPS_OK;
}
