/* Private to lib/plan: what settling and searching share. */
#ifndef HPS_PLAN_PLAN_INT_H
#define HPS_PLAN_PLAN_INT_H

#include <math.h>
#include "plan/plan.h"

/* A cycle time below e by more than the comparison's tolerance: the next tau of a sweep. */
static inline double hps_below(double e)
{
	return e * (1 - 4 * HPS_TIME_EPS);
}

/* The largest cycle time that the floor allows. */
static inline double hps_floor_tau(const struct hps_problem *p)
{
	return p->floor > 0 ? 1 / p->floor : INFINITY;
}

/* a < b, and no tie. */
static inline bool hps_lower(double a, double b)
{
	return isinf(b) ? a < b : a < b - fabs(b) * HPS_TIE_EPS;
}

/* One vector of units, with the least shards for a tau. */
struct hps_vector {
	double cycle, price;	     /* rate */
	double dense_bytes, cores_s; /* sums over stages */
	uint32_t shards, units;
};
/* time[i] must be the stages' times for stage[0].units. false if its cycle is above tau. */
bool hps_vector_at(const struct hps_cost *c, const struct hps_span *stage,
		   const struct hps_stage_time *time, uint32_t n, double tau, struct hps_vector *v);

/* Least of k ET(k) over k >= from: what a stage adds at least to price * cycle, per price. */
double hps_stage_weight(const struct hps_cost *c, const struct hps_stage_time *s, uint32_t from);

/* Fill a trial from a cycle time and a price; feasible if the floor is met. */
void hps_trial_of_rate(const struct hps_problem *p, double cycle_s, double price, uint32_t shards,
		       uint32_t units, uint32_t stages, struct hps_trial *out);
/* The same by hps_cost_eval, with the evaluator asked for. Limits and memory count as well. */
void hps_trial_of_schedule(const struct hps_problem *p, const struct hps_schedule *s,
			   struct hps_trial *out);

/* hps_settle among the vectors that cycle times from `most` (or the floor's, if less) down to
 * `least` ask for. found: one of them is feasible; else out and units say nothing. */
enum hps_status hps_settle_within(const struct hps_problem *p, struct hps_span *stage,
				  uint32_t n_stages, double most, double least,
				  struct hps_trial *out, bool *found, struct hps_err *err);

/* For `step`: better units of a structure by hill climbing; *best is what stage has now. */
void hps_climb(const struct hps_problem *p, struct hps_span *stage, uint32_t n,
	       struct hps_trial *best);

/* Neighbours on one type become one stage. Returns how many are left. */
uint32_t hps_spans_join(struct hps_span *stage, uint32_t n);

/* Why a given structure does not do: HPS_NO with numbers in err. */
enum hps_status hps_explain_structure(const struct hps_problem *p, const struct hps_span *stage,
				      uint32_t n_stages, const struct hps_trial *t,
				      struct hps_err *err);

#endif
