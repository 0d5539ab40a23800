/* A whole job in one process: coordinator, shards, agents and replicas as in hps-serve and
 * hps-work, over queues in memory. What happens next (which message is delivered, which replica
 * computes, which rows are fed) is drawn from order_seed; each connection stays FIFO, as sockets
 * do. Results must not depend on the seed in bsp. The clock is made up: no test waits.
 */
#ifndef HPS_TESTS_ROUTER_H
#define HPS_TESTS_ROUTER_H

#include "data/batch.h"
#include "doc/doc.h"
#include "graph/graph.h"
#include "job/job.h"
#include "ps/shard.h"

struct router_opts {
	const struct hps_job *job; /* one hps-work process a distinct replica host */
	const struct hps_graph *graph;
	/* All rows of a data set, ascending by row number; there are end_row physical rows, and
	 * numbers that no row has are skipped lines. test NULL: no evaluation. */
	const struct hps_batch *train, *test;
	const char *mode; /* "train" (NULL), "eval" or "predict": on test */
	uint32_t epochs;  /* 0: the deployment's */
	uint64_t seed;	  /* of negatives; 0: the deployment's */
	uint64_t order_seed;
	struct hps_shard **shard; /* go on with these (of a result, taken); NULL: new ones */
	uint64_t first_step;	  /* of the result before */
	uint64_t interrupt_at; /* after so many events of any kind, a signal at the first hps-work
				* process; 0: none */
	bool interrupt_serve;  /* ... at hps-serve instead */
	unsigned long fail_at; /* once all are made, the n-th allocation fails; 0: none */
	/* sees every message as it is delivered; dst: node, or HPS_NODE_PROCESS for control */
	void (*tap)(void *ctx, uint32_t dst, const struct hps_msg *m);
	void *tap_ctx;
};

struct router_result {
	enum hps_status status; /* of hps-work; err says why */
	struct hps_err err;
	struct hps_doc **event; /* n_events: as printed, one step event a step */
	size_t n_events;
	double *loss;	/* n_steps: mean loss by step; NAN: no rows */
	uint64_t *rows; /* n_steps */
	size_t n_steps;
	float *score; /* n_scores: predict, in the order printed */
	size_t n_scores;
	struct hps_shard **shard; /* n_shards, as they were at the end */
	uint32_t n_shards;
	uint64_t next_step;
	uint64_t n_actions; /* deliveries, units of compute, feeds: how long it was */
};

/* Run to the end. Fails the test if the job gets stuck; an error of the job is in the result. */
void router_run(const struct router_opts *o, struct router_result *r);
void router_release(struct router_result *r);

/* The model's flat dense vector as the shards hold it; free() it. */
float *router_dense(const struct router_result *r, const struct hps_graph *g);
/* A table's row (dim floats into out): false if it was never pushed. */
bool router_row(const struct router_result *r, const struct hps_graph *g, uint32_t table,
		uint64_t key, float *out);
uint64_t router_rows(const struct router_result *r, uint32_t table);
/* The last event of a name, or NULL. */
const struct hps_doc *router_event(const struct router_result *r, const char *name);
/* A number in an event; NAN if it is null or absent. */
double router_number(const struct hps_doc *event, const char *key);

#endif
