/* What the files of a server process share: the process (serve.c), its runs (run_coord.c,
 * run_member.c), saving (saving.c). For lib/serve only. */
#ifndef HPS_SERVE_PROCESS_INT_H
#define HPS_SERVE_PROCESS_INT_H

#include "coord/coord.h"
#include "coord/member.h"
#include "graph/graph.h"
#include "net/net.h"
#include "serve/pool_int.h"
#include "serve/serve.h"
#include "serve/state.h"

enum {
	TICK_MS = 50,	  /* the state machines want to be called every 100 ms */
	TURN = 256,	  /* messages a turn at most: a flood must not stop the clock */
	LINGER_MS = 2000, /* for the last words */
};

struct process {
	const struct hps_serve_opts *o;
	const struct hps_job *job;
	const char *host;
	struct hps_graph graph;
	struct hps_shard **shard; /* n_shards of the job; NULL: not here */
	uint32_t n_here;
	uint64_t incarnation, coordinator; /* the coordinator's: both number a save */
	struct hps_state_dir dir;
	uint64_t epochs;     /* of the runs before */
	uint64_t first_step; /* updates that the shards have seen */
	uint32_t run;	     /* how many before this one */
	bool loaded;
	struct hps_net_ctx *ctx;
	struct hps_net *net; /* main thread's */
	struct pool *pool;
	struct hps_coord *coord; /* one of the two */
	struct hps_member *member;
	struct hps_outbox out;
	struct hps_coord_table *table; /* n_tables */
	bool saving, interrupted;
	bool heard, begun; /* a member: the coordinator has spoken; this run has begun */
};

/* saving.c: have the shards' threads save; look whether they have, or have failed. */
enum hps_status hps_process_save(struct process *p, struct hps_err *err);
enum hps_status hps_process_look(struct process *p, struct hps_err *err);

/* One run from the first JOIN to the last BYE; its outcome. */
enum hps_status hps_process_coordinate(struct process *p, struct hps_err *err);
enum hps_status hps_process_join(struct process *p, struct hps_err *err);

#endif
