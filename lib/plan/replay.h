/* What would a changing load have cost under each way of provisioning? Replays a load over the
 * watch's state machine, one for each policy, exactly from event to event.
 *
 * Policies: exact, newton, staratio, stapsratio follow the load with the same hysteresis and the
 * same cost of changing; peak is the exact answer for the highest rate, kept all the time.
 *
 * A deployment that could do C samples a second serves min(target, C). A stage is then busy for the
 * share served * max(CT, DT) of the time, a shard for served * max(its CPU's, its link's time).
 *   utilisation of a type = unit-hours busy / unit-hours paid
 *   utilisation in all    = the same weighted by price (where nothing has a price, by units)
 * Changing costs money beside the units; while it lasts the old deployment goes on.
 */
#ifndef HPS_PLAN_REPLAY_H
#define HPS_PLAN_REPLAY_H

#include "doc/doc.h"
#include "plan/event.h"
#include "plan/watch.h"

enum hps_policy {
	HPS_POLICY_EXACT,
	HPS_POLICY_NEWTON,
	HPS_POLICY_STARATIO,
	HPS_POLICY_STAPSRATIO,
	HPS_POLICY_PEAK,
	HPS_POLICIES,
};
const char *hps_policy_name(enum hps_policy p);

struct hps_replay_row {
	bool done; /* false: why says what it lacks */
	char why[200];
	double dollars, change_dollars; /* units and shards; changes */
	double utilisation;
	double *type_use; /* n_types; NAN where none was paid */
	double ps_use;	  /* NAN where there are no shards */
	double samples;	  /* served */
	double unmet_s, unmet_samples;
	double unmet_from_s; /* the first time a target was not met; NAN */
	double best_rate;    /* the fastest there is, where a target was out of reach; NAN */
	uint32_t changes;
};

struct hps_replay {
	const struct hps_cost *cost; /* borrowed */
	const struct hps_load *load; /* borrowed */
	struct hps_watch_options opt;
	struct hps_replay_row row[HPS_POLICIES];
};

/* stage: the plan's structure; opt.how is set for each policy. HPS_MEMORY. */
enum hps_status hps_replay(const struct hps_problem *p, const struct hps_watch_options *opt,
			   const struct hps_span *stage, uint32_t n_stages,
			   const struct hps_load *load, struct hps_replay *out,
			   struct hps_err *err);
void hps_replay_release(struct hps_replay *r);

/* exact's over a rival's: utilisation exact / rival, cost rival / exact, changes included; NAN
 * where one of them was not done. */
double hps_replay_utilisation_over(const struct hps_replay *r, enum hps_policy rival);
double hps_replay_cost_over(const struct hps_replay *r, enum hps_policy rival);

struct hps_doc *hps_replay_doc(const struct hps_replay *r); /* NULL: no memory */
enum hps_status hps_replay_text(const struct hps_replay *r, struct hps_buf *b, struct hps_err *err);

#endif
