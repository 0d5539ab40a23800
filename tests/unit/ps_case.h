/* A small job for tests of the servers: two tables (one looked up twice in a stage, one in two
 * stages), two dense layers, one to three stages. */
#ifndef HPS_TESTS_PS_CASE_H
#define HPS_TESTS_PS_CASE_H

#include "graph/graph.h"
#include "job/job.h"

struct ps_case {
	struct hps_job job; /* model and deployment only */
	struct hps_graph graph;
};

struct ps_case_opts {
	uint32_t shards, stages; /* stages: 1 to 3 */
	uint32_t replicas[3];	 /* 0 counts as 1 */
	uint32_t micro_batches;	 /* 0 counts as 1 */
	enum hps_sync sync;
	enum hps_dense_sync dense_sync; /* of the last stage; the others are "ps" */
	enum hps_optim_kind dense_optim,
		table_optim;	      /* table_optim: of table "a"; "b" has adagrad */
	uint64_t max_rows, max_bytes; /* of table "a" */
	const char *endpoints; /* of shards and coordinator: "DIR/s0.ipc" ...; NULL: "/nowhere" */
	uint64_t seed;
};

/* Fails the running test if anything fails. */
void ps_case_init(struct ps_case *c, const struct ps_case_opts *o);
void ps_case_release(struct ps_case *c);

#endif
