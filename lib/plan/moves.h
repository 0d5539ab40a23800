/* Structures drawn at random, and the small steps between them: what every method that searches
 * by trial shares.
 *
 *   stages   aaa|bb|b        boundary  aa|bbb|b  one cut elsewhere between its neighbours
 *                            type      ccc|bb|b  a stage on another type
 *                            merge     aaa|bbb   two neighbours are one, on the type of either
 *                            split     aa|c|bb|b a stage cut in two, both on its type (not under
 *                                                --merge) or one of them on another
 *                            run       a|cc|bb|b layers in a row become a stage on some type,
 *                                                whatever they were part of
 *                            swap      bbb|aa|b  two stages exchange their types
 *
 * Any structure is reached from any other. All that comes out covers the layers in order; units
 * are 0, to be settled. Under `merge` neighbours may come out on one type: hps_search_try joins
 * them.
 */
#ifndef HPS_PLAN_MOVES_H
#define HPS_PLAN_MOVES_H

#include "base/rng.h"
#include "plan/plan.h"

enum hps_move {
	HPS_MOVE_BOUNDARY,
	HPS_MOVE_TYPE,
	HPS_MOVE_MERGE,
	HPS_MOVE_SPLIT,
	HPS_MOVE_RUN,
	HPS_MOVE_SWAP,
	HPS_MOVES
};

/* How many moves of a kind there are from stage[0..n), and the one numbered i (below that) into
 * out, which has room for all layers and is not stage. Returns its number of stages. For local
 * search all of some kinds are a neighbourhood; runs are L (L + 1) / 2 * T. */
uint64_t hps_moves_count(const struct hps_problem *p, const struct hps_span *stage, uint32_t n,
			 enum hps_move kind);
uint32_t hps_moves_make(const struct hps_problem *p, const struct hps_span *stage, uint32_t n,
			enum hps_move kind, uint64_t i, struct hps_span *out);

/* One move: a kind of those that are possible, then one of that kind, uniformly. A copy where
 * none is possible (one layer, one type). */
uint32_t hps_moves_random(const struct hps_problem *p, struct hps_rng *r,
			  const struct hps_span *stage, uint32_t n, struct hps_span *out);

/* A structure: number of stages uniform, so that few and many are met alike, then cuts and types
 * uniform. Under `merge` neighbours differ. stage has room for all layers. */
uint32_t hps_structure_random(const struct hps_problem *p, struct hps_rng *r,
			      struct hps_span *stage);

/* Equal for equal structures, whatever their units. */
uint64_t hps_structure_hash(const struct hps_span *stage, uint32_t n);

#endif
