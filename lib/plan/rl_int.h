/* Private to lib/plan: what the learning placer remembers. */
#ifndef HPS_PLAN_RL_INT_H
#define HPS_PLAN_RL_INT_H

#include "plan/moves.h"
#include "plan/rl.h"

/* What a structure costs: ordered, feasible ones first. */
struct hps_rl_cost {
	bool feasible;
	double value; /* objective, or how far off (excess) */
};
bool hps_rl_less(struct hps_rl_cost a, struct hps_rl_cost b); /* by more than a tie */

/* Scores of structures met before, by hash: open addressing, at most half full; full, it takes no
 * more. Two structures of one 64-bit hash are not expected in any search's lifetime. */
struct hps_rl_scores {
	struct hps_search *search; /* borrowed */
	struct hps_rl_entry *entry;
	size_t room, used;
};
enum hps_status hps_rl_scores_init(struct hps_rl_scores *s, struct hps_search *search,
				   struct hps_err *err);
void hps_rl_scores_release(struct hps_rl_scores *s);
/* One evaluation: looked up, or tried. Under merge stage and *n may change. */
enum hps_status hps_rl_score(struct hps_rl_scores *s, struct hps_span *stage, uint32_t *n,
			     struct hps_rl_cost *out, struct hps_err *err);

/* The best distinct structures of a run. */
enum { HPS_RL_ELITES = 4 };
struct hps_rl_elite {
	uint64_t hash;
	struct hps_rl_cost cost;
	struct hps_span *stage; /* room for n_layers */
	uint32_t n;
	bool polished; /* no neighbour is better, or it is no longer looked for */
};
struct hps_rl_elites {
	struct hps_rl_elite at[HPS_RL_ELITES];
	uint32_t n;
	struct hps_span *block;
};
enum hps_status hps_rl_elites_init(struct hps_rl_elites *e, uint32_t n_layers, struct hps_err *err);
void hps_rl_elites_release(struct hps_rl_elites *e);
void hps_rl_elites_take(struct hps_rl_elites *e, const struct hps_span *stage, uint32_t n,
			struct hps_rl_cost cost);
/* NULL where it is none of them. */
struct hps_rl_elite *hps_rl_elites_find(struct hps_rl_elites *e, const struct hps_span *stage,
					uint32_t n);

/* polish.c: first improvement over all moves, each kind in an order drawn from rng, until no
 * neighbour is better, `most` evaluations are spent, or the search's budget is. *cost is of stage,
 * both change; out of room for n_layers as scratch. *done: no neighbour is better. */
enum hps_status hps_rl_polish(struct hps_rl_scores *s, struct hps_rng *rng, struct hps_span *stage,
			      uint32_t *n, struct hps_rl_cost *cost, uint64_t most,
			      struct hps_span *scratch, bool *done, struct hps_err *err);

/* --- rl_learn.c --- */

enum { HPS_RL_WIDTH = 32 }; /* samples a round */

struct hps_learner {
	const struct hps_problem *p;
	struct hps_rl_options opt;
	enum hps_cell cell;
	bool polishes;
	struct hps_search search;
	struct hps_rng rng;
	struct hps_policy_input in;
	struct hps_policy net;
	struct hps_rollout roll, alone; /* a round's samples; one walk, for decisions */
	struct hps_rl_scores scores;
	struct hps_rl_elites elites;
	float *grad, *m, *v; /* n_weights each, one block */
	struct hps_span *stage, *scratch;
	double worst;	    /* the dearest feasible structure met, 0 = none */
	uint64_t polishing; /* evaluations spent on it */
	uint64_t runs, rounds;
	uint64_t decay; /* rounds until the entropy bonus is at its least */
	bool has_learned;
	struct hps_rl_cost learned; /* of opt.learned's decision */
	/* of the present run */
	uint64_t round, stale;
	struct hps_rl_cost best;
	bool warm;
	double baseline, deviation; /* moving averages of its batches' rewards */
};

/* Learn until the budget or the rounds are spent, one run after the other. */
enum hps_status hps_rl_learn(struct hps_learner *x, struct hps_err *err);

#endif
