/* Private to lib/plan: the static rivals of provisioning, see provision.h. */
#ifndef HPS_PLAN_PROVISION_INT_H
#define HPS_PLAN_PROVISION_INT_H

#include "plan/provision.h"

/* Units and shards by a fixed ratio; out is infeasible where the floor is out of reach. HPS_NO if
 * the plan has nothing that the ratio is of. */
enum hps_status hps_staratio(const struct hps_problem *p, double cpus_per_gpu,
			     struct hps_span *stage, uint32_t n_stages, struct hps_trial *out,
			     struct hps_err *err);
enum hps_status hps_stapsratio(const struct hps_problem *p, double ps_per_unit,
			       struct hps_span *stage, uint32_t n_stages, struct hps_trial *out,
			       struct hps_err *err);

/* For evaluator `step` (else nothing): better units than hps_settle's, which stage and *out hold;
 * about first-stage limit * sqrt(micro-batches) schedules are scored. */
enum hps_status hps_settle_step(const struct hps_problem *p, struct hps_span *stage,
				uint32_t n_stages, struct hps_trial *out, struct hps_err *err);

#endif
