/* The frontier of cost against throughput: for each speed asked, the least cost. */
#ifndef HPS_PLAN_PARETO_H
#define HPS_PLAN_PARETO_H

#include "doc/doc.h"
#include "plan/plan.h"

struct hps_frontier {
	struct hps_solution *point; /* throughput and objective both rise from one to the next */
	size_t n;
	bool interrupted;
};

enum { HPS_FRONTIER_MOST = 10000 };

/* At most `most` (1 .. HPS_FRONTIER_MOST) plans that no other one found beats in both. The method
 * is asked for the cheapest plan above p's floor, then above floors that rise from its throughput
 * to the highest there is (where limits make that hard: the highest that bounded work finds),
 * evenly in logarithm, but never less than just above the last plan; so with `exact` each proven
 * one is on the frontier, and where all of it has fewer points than `most`, neighbouring ones
 * closer than an even share may still be passed over. Each gets p's budget. HPS_NO if not even the
 * first is there. Release in every case. */
enum hps_status hps_frontier_find(const struct hps_problem *p, const struct hps_method *method,
				  const char *arg, uint32_t most, double known,
				  struct hps_frontier *out, struct hps_err *err);
void hps_frontier_release(struct hps_frontier *f);

/* Tab-separated with a line of names: throughput, cost (dollars a sample, or an hour where the
 * objective is that), bound (empty: unknown), gap, plan (as -m fixed: takes it). */
enum hps_status hps_frontier_text(const struct hps_problem *p, const struct hps_frontier *f,
				  struct hps_buf *b, struct hps_err *err);
/* A list of plan sections; NULL without memory. */
struct hps_doc *hps_frontier_doc(const struct hps_problem *p, const struct hps_frontier *f,
				 const char *method);

#endif
