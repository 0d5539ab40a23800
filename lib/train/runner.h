/* A replica and its thread: compute, and the sockets that its messages go through.
 *
 * It listens at its endpoint for earlier stages and its ring, and connects to the shards, to
 * all replicas of the next stage and to the next rank of its ring. Between units of compute it
 * looks at its sockets without waiting; with nothing to do it sleeps in them.
 */
#ifndef HPS_TRAIN_RUNNER_H
#define HPS_TRAIN_RUNNER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "graph/graph.h"
#include "job/job.h"
#include "net/net.h"
#include "train/inbox.h"
#include "train/replica.h"
#include "train/tray.h"

struct hps_runner {
	uint32_t index; /* among those of the process */
	const struct hps_job *job;
	uint32_t stage, replica;
	struct hps_replica *r;
	struct hps_net *net;
	struct hps_inbox inbox;
	struct hps_tray *tray;
	void (*took)(void *ctx, struct hps_batch *b); /* a batch is no longer used: b; or left
						       * the inbox: NULL */
	void *ctx;
	pthread_t thread;
	bool started, has_inbox;
	double compute_s, wait_s; /* of the thread; read after the join */
	double patience_s;	  /* with a connection that was cut */
	double waits_since_s;	  /* 0: at work */
};

struct hps_runner_opts {
	const struct hps_job *job; /* borrowed, as all here */
	const struct hps_graph *graph;
	struct hps_net_ctx *ctx;
	uint32_t index, stage, replica;
	uint64_t incarnation, seed;
	double patience_s; /* what was on its way when a connection was cut is given up after this
			    * long without anything to do */
	const char *const *operand;
	size_t n_operands;
	struct hps_tray *tray;
	void (*took)(void *ctx, struct hps_batch *b);
	void *took_ctx;
};

/* Make the replica, bind its endpoint, connect it. The runner must not move afterwards. */
enum hps_status hps_runner_init(struct hps_runner *u, const struct hps_runner_opts *o,
				struct hps_err *err);
enum hps_status hps_runner_start(struct hps_runner *u, struct hps_err *err);
/* Any thread. */
enum hps_status hps_runner_order(struct hps_runner *u, const struct hps_order *o,
				 struct hps_err *err);
enum hps_status hps_runner_feed(struct hps_runner *u, const struct hps_fed *f, struct hps_err *err);
void hps_runner_quit(struct hps_runner *u);
/* After quit: join the thread and close the sockets, ... */
void hps_runner_stop(struct hps_runner *u, int linger_ms);
/* ... and, once the sockets' context is gone, free the rest. */
void hps_runner_release(struct hps_runner *u);

#endif
