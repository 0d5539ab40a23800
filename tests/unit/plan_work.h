/* Workloads to plan: the models of testdata on clusters of two to 64 types, with times that are a
 * pure function of the layers' arithmetic and bytes, so that they are the same everywhere.
 *
 * The cluster's first type, a CPU core, does 60 GFLOP/s, moves 10 GB/s, looks a row up in 60 ns
 * and takes 5 us to start a layer; all other types follow it by their declared speeds, but those of
 * device cuda take 40 us to start a layer (a few kernels).
 *
 * A step has 8000 rows in one micro-batch a first-stage replica; the profile is of 1000.
 *
 * No cmocka here: benchmarks use it too. */
#ifndef HPS_TESTS_PLAN_WORK_H
#define HPS_TESTS_PLAN_WORK_H

#include "plan/plan.h"

struct plan_work {
	struct hps_doc *model_doc, *cluster_doc;
	struct hps_model model;
	struct hps_cluster cluster;
	struct hps_profile profile;
	struct hps_cost cost;
	struct hps_problem problem; /* floor 0, seed 1, by `rate`, cost per sample */
};

/* model: "ctrdnn-16", a file of testdata/models under $HPS_ROOT (or .); cluster: "two-types", one
 * of testdata/clusters. After a failure nothing is held. */
enum hps_status plan_work_open(struct plan_work *w, const char *model, const char *cluster,
			       struct hps_err *err);
void plan_work_close(struct plan_work *w);
/* Set the floor to a share of the highest throughput that limits allow (by hps_plan_fastest, which
 * may take seconds where limits bind); 0: none. */
enum hps_status plan_work_floor(struct plan_work *w, double share, struct hps_err *err);

#endif
