/* Private to the exact planner: one fixed tau, as a shortest path (dp.c), and with sums over
 * stages (label.c). The proof is in exact.h.
 *
 * A node (q, w) is a cut before layer q that is crossed at the bandwidth of class w: the stages on
 * both sides have classes >= w. A cut's bandwidth is the smaller of the two sides', so the node
 * with that w is among those of a plan, and the others count the cut slower than it is, which is
 * never better. Nothing crosses at q = 0 and q = L: w is 0 there.
 */
#ifndef HPS_PLAN_EXACT_INT_H
#define HPS_PLAN_EXACT_INT_H

#include "plan/plan_int.h"

/* What is asked about one tau. */
struct hps_dp_query {
	double tau;
	uint32_t first;	 /* k_first: n = M * first */
	bool first_open; /* any k_first >= first, later stages as many as their type has: a
			  * bound for all of them. Else k_first = first exactly (executor form). */
	bool weights;	 /* minimise the sum of price * least k ET(k) (item 5), else of price * k */
	uint32_t first_most; /* with first_open: k_first is no more than this; 0 = no limit */
};

/* The best way on from a node, whose next stage is `type`; value INFINITY: none. */
struct hps_dp_way {
	double value;
	uint32_t units, stages; /* of all that follows: ties */
	uint32_t type, next;	/* the next stage and the cut after it */
	uint32_t next_class;
	uint32_t k;
};

/* Two ways of different types: with merge, the second is for a predecessor of the first's
 * type. Without, only the first is used. */
struct hps_dp_node {
	struct hps_dp_way way[2];
};

struct hps_dp {
	const struct hps_problem *p;
	uint32_t L, C;		  /* layers, classes */
	bool counts_first;	  /* k_first changes times */
	struct hps_dp_node *node; /* (L + 1) * C */
	uint32_t *type_of_class;  /* C: some type of each class */
	/* For layers q1 .. q2-1 the types by ascending price * b at k_first 1; NULL where that
	 * would be too large. */
	struct hps_dp_rank {
		double value;
		uint32_t type;
	} * rank;
	double *found;	 /* C * C: scratch, the best value of a stage so far, by its two cuts */
	double *dearest; /* C: scratch, the largest of found within a class; < 0: to be looked up */
};

enum hps_status hps_dp_init(struct hps_dp *d, const struct hps_problem *p, struct hps_err *err);
void hps_dp_release(struct hps_dp *d);

static inline struct hps_dp_node *hps_dp_at(const struct hps_dp *d, uint32_t q, uint32_t w)
{
	return &d->node[(size_t)q * d->C + w];
}

/* The way on from a node for a plan whose last stage is on `type`. */
static inline const struct hps_dp_way *hps_dp_after(const struct hps_dp *d,
						    const struct hps_dp_node *node, uint32_t type)
{
	return &node->way[d->p->merge && node->way[0].type == type];
}

/* Classes of a cut before q that a stage on t may have beside it: 0 .. this - 1. */
static inline uint32_t hps_dp_classes(const struct hps_dp *d, uint32_t q, uint32_t t)
{
	return q && q < d->L ? d->p->cost->type[t].link_class + 1 : 1;
}

/* A stage (times without cuts in `bare`, transfers at its cuts added): the least k and what it
 * adds; k 0: none. */
struct hps_dp_stage {
	uint32_t k;
	double value;
};
struct hps_dp_stage hps_dp_stage(const struct hps_dp *d, const struct hps_dp_query *q,
				 const struct hps_stage_time *bare, double cuts);
/* Can this stage, whatever its units, not keep within tau by its compute time alone? */
bool hps_dp_too_long(const struct hps_dp *d, const struct hps_dp_query *q,
		     const struct hps_stage_time *bare);

/* Fill all nodes, sums left out. The least value over all structures, without the servers;
 * INFINITY if there is none. */
double hps_dp_solve(struct hps_dp *d, const struct hps_dp_query *q);
/* The structure that attains it, with units, into stage (L); returns the number of stages. */
uint32_t hps_dp_plan(const struct hps_dp *d, struct hps_span *stage);

/* --- sums over stages --- */

enum { HPS_MAX_SUMS = 12 };

/* Which sums are watched: units of types, dense bytes through servers, work on cores. */
struct hps_sums {
	uint32_t type[HPS_MAX_SUMS], n_types;
	bool dense, cores;
};

enum hps_label_end {
	HPS_LABEL_FOUND,   /* stage, n and value are the optimum */
	HPS_LABEL_NONE,	   /* nothing below the ceiling */
	HPS_LABEL_STOPPED, /* too many labels, or out of time */
};

/* The optimum under the watched sums, given hps_dp_solve's nodes for the same query. Values
 * above `ceiling` are not looked for. value is with the servers. */
enum hps_status hps_label_solve(const struct hps_dp *d, const struct hps_dp_query *q,
				const struct hps_sums *sums, double ceiling,
				struct hps_search *search, struct hps_span *stage, uint32_t *n,
				double *value, enum hps_label_end *end, struct hps_err *err);

/* Servers' part of a value at tau: price of the least shards, or their weight. INFINITY if
 * they cannot keep up. */
double hps_dp_servers(const struct hps_dp *d, const struct hps_dp_query *q, double dense_bytes);

#endif
