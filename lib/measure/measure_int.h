/* Parts of lib/measure: rows to work on, and one replica with one shard in one thread. */
#ifndef HPS_MEASURE_MEASURE_INT_H
#define HPS_MEASURE_MEASURE_INT_H

#include "graph/graph.h"
#include "job/job.h"
#include "measure/measure.h"
#include "nn/stage.h"
#include "ps/client.h"
#include "ps/shard.h"

/* --- rows.c --- */

struct hps_sample {
	uint32_t n;    /* rows, at least the n asked for: few data repeat */
	uint64_t read; /* rows that came from data; 0 = made up */
	uint64_t *row;
	float *label, *dense;
	uint64_t *key;	/* (n, slots) */
	uint32_t *slot; /* 0 .. slots-1 */
	uint32_t n_slots;
	double input_s; /* CPU seconds a row of reading and parsing; 0 = unknown */
};

enum hps_status hps_sample_init(struct hps_sample *s, const struct hps_model *m, const char *data,
				uint32_t n, struct hps_err *err);
void hps_sample_release(struct hps_sample *s);
/* Rows [first, first + rows) as a first stage takes them. */
struct hps_stage_in hps_sample_in(const struct hps_sample *s, const struct hps_model *m,
				  uint32_t first, uint32_t rows);

/* --- rig.c --- */

/* The whole model as one stage of one replica with one shard, without threads or sockets. */
struct hps_rig {
	struct hps_job job; /* shallow: model borrowed, deployment below */
	struct hps_deployed_shard shard_at;
	struct hps_deployed_replica replica_at;
	struct hps_deployed_stage stage_at;
	const struct hps_graph *graph;
	struct hps_stage *stage;
	struct hps_pass *pass;
	struct hps_ps_client *client;
	struct hps_shard *shard;
	struct hps_ps_rows *rows; /* of the pass's lookups */
	uint32_t n_lookups;
	float *params, *grads;
	uint64_t n_floats;
	uint64_t step, dense_step; /* updates of tables, of dense parameters */
};

enum hps_status hps_rig_init(struct hps_rig *r, const struct hps_model *m,
			     const struct hps_graph *g, const struct hps_backend *be,
			     uint32_t max_rows, struct hps_err *err);
void hps_rig_release(struct hps_rig *r);

/* CPU seconds of both sides of an exchange. */
struct hps_sides {
	double client_s, shard_s;
};

/* Fill the lookups' rows as of this step; push their gradients, which ends the step. The
 * seconds are added. */
enum hps_status hps_rig_pull(struct hps_rig *r, struct hps_sides *t, struct hps_err *err);
enum hps_status hps_rig_push(struct hps_rig *r, uint32_t rows, struct hps_sides *t,
			     struct hps_err *err);
/* Push the dense gradients (n_floats > 0) and pull the parameters: a step of their own. */
enum hps_status hps_rig_dense(struct hps_rig *r, uint32_t rows, struct hps_sides *t,
			      struct hps_err *err);

/* --- layers.c --- */

struct hps_layers_result {
	double *forward_s, *backward_s; /* (n_layers, n_batches) medians */
	double *pass_s;			/* (n_batches) medians of whole passes */
	double stretch;			/* mean of a whole pass over its layers' medians */
	double *keys;			/* (n_layers): rows looked up a sample, distinct in a
					 * micro-batch of the model's */
	double rows_per_s, bytes_per_s; /* of the shard, at the model's batch */
	double update_s;		/* one dense update and clearing */
	uint32_t rounds;
};

enum hps_status hps_time_layers(struct hps_rig *r, const struct hps_sample *s,
				const uint32_t *batch, uint32_t n_batches,
				const struct hps_measure_opts *o, struct hps_layers_result *out,
				struct hps_err *err);
void hps_layers_result_release(struct hps_layers_result *r);

/* --- stats.c --- */

double hps_median(double *v, size_t n); /* sorts v; n >= 1 */
/* What one reading of the CPU clock costs, to be taken off. */
double hps_cpu_clock_cost(void);
enum hps_status hps_stopped(const struct hps_measure_opts *o, struct hps_err *err);
void hps_tell(const struct hps_measure_opts *o, double done, const char *what);
/* Rows of a micro-batch of the model's own settings. */
uint32_t hps_micro_rows(const struct hps_model *m);

#endif
