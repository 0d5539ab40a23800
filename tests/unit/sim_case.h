/* Random schedules in families where the closed formulas of lib/cost and the simulator ought to
 * agree (the assumptions that sim/sim.h numbers), for the property test and the benchmark. */
#ifndef HPS_TESTS_SIM_CASE_H
#define HPS_TESTS_SIM_CASE_H

#include <stdint.h>
#include "sim/sim.h"

enum { SIM_CASE_LAYERS = 8 };

struct sim_case {
	struct hps_profile profile;
	struct hps_cluster cluster;
	struct hps_cost_options opt;
	struct hps_cost cost;
	struct hps_span stage[SIM_CASE_LAYERS];
	struct hps_schedule schedule;
	struct hps_sim_options sim;
	/* storage */
	struct hps_layer_size size[SIM_CASE_LAYERS];
	struct hps_layer_time time[SIM_CASE_LAYERS];
	double forward[SIM_CASE_LAYERS], backward[SIM_CASE_LAYERS];
	struct hps_type type;
	char *type_name;
	bool simulated;
	struct hps_host host;
	uint32_t units;
};

enum sim_family {
	SIM_STAGE_RATE,	   /* one stage, asp: computing, links, shards, dense parameters */
	SIM_PIPELINE_RATE, /* several stages, asp */
	SIM_PAPER_RATE,	   /* several stages, the paper's form */
	SIM_CORES_RATE,	   /* more replicas than cores, asp */
	SIM_STAGE_STEP,	   /* one stage, bsp, synchronisation */
	SIM_PIPELINE_STEP, /* stages alike, bsp: fill and drain */
	SIM_ROWS_STEP,	   /* one micro-batch a step, bsp: rows pulled and pushed */
	SIM_FAMILIES
};
extern const char *const sim_family_name[SIM_FAMILIES];

/* One of a family by seed, ready to be run. false: the assumptions do not hold for this one.
 * Release it in both cases. */
bool sim_case_random(struct sim_case *c, enum sim_family f, uint64_t seed);
/* L layers of one type, all alike: `c1` seconds a sample, no bytes; one stage on one unit. */
void sim_case_init(struct sim_case *c, uint32_t L, double c1);
/* One stage a layer, k units each. */
void sim_case_pipeline(struct sim_case *c, uint32_t k);
bool sim_case_ready(struct sim_case *c);
void sim_case_release(struct sim_case *c);
/* Throughput by simulator over that by formula, minus 1; HUGE_VAL if the simulator fails. */
double sim_case_error(const struct sim_case *c);

#endif
