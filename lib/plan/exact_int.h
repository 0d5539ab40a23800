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

/* A stage at one pair of classes; k 0: none. */
struct hps_dp_cell {
	double value;
	uint32_t k;
};

/* Layers q1 .. q2-1 on one type, for query number `query`. */
struct hps_dp_known {
	uint64_t query;
	bool none, same; /* same: the first cell is for all classes */
};

struct hps_dp {
	const struct hps_problem *p;
	uint32_t L, C;		  /* layers, classes */
	bool counts_first;	  /* k_first changes times */
	struct hps_dp_node *node; /* (L + 1) * C */
	uint32_t *type_of_class;  /* C: some type of each class */
	double *toll;		  /* n_types: what a unit pays besides its price (toll.c), 0 else */
	double toll_back;	  /* the sum of toll * limit, which a plan gets back */
	/* For layers q1 .. q2-1 the types by ascending price * b at k_first 1; NULL where that
	 * would be too large. */
	struct hps_dp_rank {
		double value;
		uint32_t type;
	} * rank;
	/* Stages of the query solved last: tolls do not change them, so further steps of tolls
	 * find them here. Pairs as in rank, by types, each with C * C cells; one of each, used
	 * again and again, where that would be too large. */
	struct hps_dp_known *known;
	struct hps_dp_cell *cell;
	bool knows_all;
	struct hps_dp_query last;
	uint64_t query;	 /* number of last */
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

/* A stage (times without cuts in `bare`, transfers at its cuts added): the least k, what it
 * adds, and the tolls of that; k 0: none. */
struct hps_dp_stage {
	uint32_t k;
	double value, toll;
};
struct hps_dp_stage hps_dp_stage(const struct hps_dp *d, const struct hps_dp_query *q,
				 const struct hps_stage_time *bare, double cuts);
/* Can this stage, whatever its units, not keep within tau by its compute time alone? */
bool hps_dp_too_long(const struct hps_dp *d, const struct hps_dp_query *q,
		     const struct hps_stage_time *bare);

/* Fill all nodes, sums left out, tolls counted. The least value over all structures, without the
 * servers and less toll_back; INFINITY if there is none. */
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

/* --- limits as prices --- */

struct hps_toll {
	double *price, *weights;    /* n_types: tolls found last, for either kind of query */
	double *now, *over, *scale; /* n_types: scratch */
	double pace, least_price;
	struct hps_span *stage, *kept; /* n_layers */
	uint32_t n;
	/* The cheapest path that was met on the way and keeps all limits, in kept: its value with the
	 * servers; n_found 0 if there was none. */
	uint32_t n_found;
	double found;
};
enum hps_status hps_toll_init(struct hps_toll *x, const struct hps_cost *c, struct hps_err *err);
void hps_toll_release(struct hps_toll *x);
/* n_types tolls to be counted from now on; NULL: none. */
void hps_toll_set(struct hps_dp *d, const double *toll);
/* The highest bound, servers included, of what keeps the limits that some steps from the last
 * tolls lead to, or one above the ceiling. The nodes are then of those tolls; up to HPS_MAX_SUMS
 * types have any. */
double hps_toll_raise(struct hps_dp *d, const struct hps_dp_query *q, double ceiling,
		      uint32_t steps, struct hps_toll *x, struct hps_search *search);

/* --- one cycle time, all sums kept (tau.c) --- */

/* k_first within low .. high, and a bound for the price of such plans. */
struct hps_range {
	double bound;
	uint32_t low, high;
	uint32_t guess; /* the k_first that the bound's plan would need */
};

struct hps_tau {
	const struct hps_problem *p;
	struct hps_search *search;
	struct hps_dp dp;
	struct hps_toll toll;
	bool any;		 /* any plan within tau will do, whatever its price */
	uint32_t most_first;	 /* k_first at most */
	struct hps_range *range; /* k_first still to be looked at, the least bound last */
	uint32_t n_ranges, room_ranges;
	double all_units;     /* the price of as many units and shards as there may be */
	double least_price;   /* a bound of the price at the tau solved last, ceiling or not */
	struct hps_sums sums; /* watched: limits for one k_first, servers and cores from then on */
	struct hps_span *stage; /* n_layers: the plan that was tried, and in the end the answer */
	uint32_t n;
	struct hps_vector vector; /* of it */
	/* n_layers each: the best of one k_first, of one tau, and scratch */
	struct hps_span *held, *kept, *tried;
	uint32_t n_held, n_kept;
	struct hps_vector vector_held, vector_kept;
	struct hps_stage_time *time; /* n_layers */
};

enum hps_tau_end {
	HPS_TAU_FOUND, /* the least price is that of stage, n, vector */
	HPS_TAU_NONE,  /* nothing up to the ceiling */
	HPS_TAU_OPEN,  /* stopped; n > 0: stage is what was found until then */
};

enum hps_status hps_tau_init(struct hps_tau *x, const struct hps_problem *p,
			     struct hps_search *search, struct hps_err *err);
/* Also after a failed init. */
void hps_tau_release(struct hps_tau *x);
/* The least price within tau, up to the ceiling. One evaluation. */
enum hps_status hps_tau_solve(struct hps_tau *x, double tau, double ceiling, enum hps_tau_end *out,
			      struct hps_err *err);
/* The least k_first of plans within tau; 0: there are none. */
uint32_t hps_tau_least_first(const struct hps_tau *x, double tau);
/* A bound of what q asks for, servers included: without sums, or where the path's plan breaks
 * limits, with tolls on those (*tolled), as far as some steps take it. The nodes are as it left
 * them. */
double hps_tau_relaxed(struct hps_tau *x, const struct hps_dp_query *q, double ceiling,
		       uint32_t steps, bool *tolled);
enum { HPS_RANGE_STEPS = 8 }; /* for a bound of many k_first */
/* Which sums labels need after that: limits with tolls, loads of servers and cores. */
void hps_tau_watch(struct hps_tau *x);

/* Servers' part of a value at tau: price of the least shards, or their weight. INFINITY if
 * they cannot keep up. */
double hps_dp_servers(const struct hps_dp *d, const struct hps_dp_query *q, double dense_bytes);

#endif
