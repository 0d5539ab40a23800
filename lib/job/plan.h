/* The plan section: layers cut into stages, each with a type and integer units.
 *
 *   { "digest": "16 hex digits",
 *     "stages": [ { "first": 0, "last": 1, "type": "cpu", "units": 3 }, ... ],
 *     "ps_shards": 2, "floor_samples_per_s": 10000, "method": "exact",
 *     "objective": "cost_per_sample", "form": "executor", "evaluator": "rate", "seed": 1,
 *     "evaluations": 120, "throughput_samples_per_s": 10450.5, "cost_per_sample": 3.2e-9,
 *     "price_per_hour": 0.12, "bound": 3.2e-9, "gap": 0, "proven": true,
 *     "simulated": false, "interrupted": false }
 *
 * digest, stages and method must be there. Defaults: ps_shards 1, objective
 * cost_per_sample, form executor, evaluator rate, seed 1, numbers 0, booleans false; a
 * bound that is absent or null is unknown, and gap is then absent too.
 */
#ifndef HPS_JOB_PLAN_H
#define HPS_JOB_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include "doc/doc.h"

struct hps_plan_stage {
	uint32_t first, last; /* layers, both included, model order; stages cover all layers */
	char *type;
	uint32_t units;
};

struct hps_plan {
	uint64_t digest; /* of the model; 0 for a foreign profile */
	struct hps_plan_stage *stage;
	uint32_t n_stages;
	uint32_t ps_shards;
	double floor_samples_per_s; /* 0 = none */
	char *method;		    /* "exact", "fixed:...", ... */
	char *objective;	    /* "cost_per_sample", "price_per_hour" */
	char *form;		    /* "paper" or "executor" */
	char *evaluator;	    /* "rate" or "step" */
	uint64_t seed;
	uint64_t evaluations;
	double throughput_samples_per_s;
	double cost_per_sample; /* dollars */
	double price_per_hour;	/* dollars */
	double bound;		/* lower bound of the objective; 0 = unknown */
	double gap;		/* (cost - bound) / bound; 0 = proven optimal */
	bool has_bound, proven, simulated, interrupted;
};

enum { HPS_MAX_SHARDS = 65536 };

enum hps_status hps_plan_read(const struct hps_at *at, struct hps_plan *p, struct hps_err *err);
struct hps_doc *hps_plan_write(const struct hps_plan *p);
void hps_plan_release(struct hps_plan *p);

#endif
