/* Small planning problems for tests: made from a seed, and judged by looking at everything. */
#ifndef HPS_TESTS_PLAN_CASE_H
#define HPS_TESTS_PLAN_CASE_H

#include <stdbool.h>
#include <stdint.h>
#include "plan/plan.h"

enum { PLAN_CASE_LAYERS = 16, PLAN_CASE_TYPES = 8, PLAN_CASE_HOSTS = 4, PLAN_CASE_SCALING = 8 };

/* A problem with all that it borrows. */
struct plan_case {
	struct hps_profile profile;
	struct hps_cluster cluster;
	struct hps_cost_options opt;
	struct hps_cost cost;
	struct hps_problem problem;
	/* storage */
	struct hps_layer_size size[PLAN_CASE_LAYERS];
	struct hps_layer_time time[PLAN_CASE_TYPES * PLAN_CASE_LAYERS];
	double scaling[PLAN_CASE_TYPES * PLAN_CASE_LAYERS][PLAN_CASE_SCALING];
	double cut_forward[PLAN_CASE_LAYERS], cut_backward[PLAN_CASE_LAYERS];
	struct hps_type type[PLAN_CASE_TYPES];
	char *type_name[PLAN_CASE_TYPES];
	bool simulated[PLAN_CASE_TYPES];
	struct hps_host host[PLAN_CASE_HOSTS];
	uint32_t units[PLAN_CASE_HOSTS][PLAN_CASE_TYPES];
	char name[PLAN_CASE_TYPES + PLAN_CASE_LAYERS + PLAN_CASE_HOSTS][8];
};

/* L layers, T types "t0".. of the given limit (0: none) at 1 dollar an hour, all times and
 * sizes 0, batch 100, no hosts, no network: to be filled in, then plan_case_ready. */
void plan_case_init(struct plan_case *c, uint32_t L, uint32_t T, uint32_t limit);
/* The layer's fit on a type: forward c0 and c1; oct and alpha follow. */
void plan_case_time(struct plan_case *c, uint32_t t, uint32_t l, double c0, double c1);
/* One host more with these units of each type; cores and ps_cores. */
void plan_case_host(struct plan_case *c, const uint32_t *units, uint32_t cores, uint32_t ps_cores);
/* Prepare cost and problem (floor 0, cost per sample); fails the test if that fails. */
void plan_case_ready(struct plan_case *c);
void plan_case_release(struct plan_case *c);

/* Stage i of the answer is layers first .. last on so many units of the type. */
void plan_case_is_stage(const struct hps_solution *s, uint32_t i, uint32_t first, uint32_t last,
			uint32_t type, uint32_t units);

/* A random problem, all terms of the cost model now and then, at most `most` schedules to look
 * at. */
void plan_case_random(struct plan_case *c, uint64_t seed, double most);

/* The best over all structures, units and shards by hps_cost_eval alone. */
struct plan_judge {
	bool feasible;
	double objective;
	double throughput; /* the highest among those that tie */
	double fastest;	   /* the highest throughput within limits and memory; 0: none fits */
	uint64_t looked_at;
};
void plan_case_judge(const struct plan_case *c, struct plan_judge *j);

#endif
