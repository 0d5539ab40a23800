/* What if the cluster were another one: edits by name, before a problem is set up.
 *
 *   v100.price=1.2,network.bandwidth=1e9
 *
 *   TYPE.price|limit|memory|speed|bandwidth|latency   HOST.cores|ps_cores|memory|units.TYPE
 *   network.bandwidth|latency   link.bandwidth|latency   ps.price   shard.rows_per_s|bytes_per_s
 *
 * Each means what it means in the cluster section; link and shard are the profile's. Where hosts
 * have units of a type their numbers win over its limit, and the network or the measured link over
 * its own link (cost.h): such edits are noted. speed is times as fast as the `like` type where the
 * type was declared by one, else times as fast as measured; op_speed keeps its kinds' ratios to
 * speed. A type or host called network, ps, link or shard is not reached, nor a host that has the
 * name of a type.
 */
#ifndef HPS_PLAN_WHATIF_H
#define HPS_PLAN_WHATIF_H

#include "job/job.h"
#include "plan/plan.h"
#include "plan/setup.h"

/* Change job's cluster and profile, and both in job->doc; notes gets a line for each edit that
 * something else overrides. Nothing is changed on HPS_USAGE: an edit that does not parse, a name
 * that is not there (with the list of those that are), a number that is not allowed. */
enum hps_status hps_what_if(struct hps_job *job, const char *edits, struct hps_buf *notes,
			    struct hps_err *err);

/* The plan as things are. Release in every case. */
struct hps_before {
	bool found; /* else there is none, which is an answer too */
	struct hps_trial trial;
	struct hps_buf stages; /* as hps_stages_text has them */
};

/* Plan for job before it is edited, by the method and the words that the edited one gets. */
enum hps_status hps_what_before(const struct hps_job *job, const struct hps_plan_words *words,
				const struct hps_method *method, const char *arg,
				const struct hps_plan_hooks *hooks, struct hps_before *out,
				struct hps_err *err);
void hps_before_release(struct hps_before *b);

/* One line without its end: cost and throughput before and after, and the stages where they
 * differ. */
enum hps_status hps_what_changed(const struct hps_problem *p, const struct hps_before *before,
				 const struct hps_solution *after, struct hps_buf *b,
				 struct hps_err *err);

#endif
