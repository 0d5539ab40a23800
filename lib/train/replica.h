/* One stage replica: prefetch, compute, exchange, as a state machine without I/O.
 *
 * Step t of an epoch: its rows t*B .. (t+1)*B-1, cut into G = k_0 * M contiguous micro-batches
 * at fixed offsets (hps_micro_batch_rows); micro-batch g of stage s runs on replica g mod k_s.
 * A step whose first row is past the end of the data is no step; in the last one micro-batches
 * may be short or empty, but all G are there. Global steps number on through epochs: they are
 * the parameters' versions.
 *
 * bsp, one step of one replica of stage s:
 *   first stage: rows come from the caller (hps_replica_batch) for its own g, ascending;
 *   others: FORWARD messages from the stage before, worked off as they come.
 *   pull rows (step t) as soon as keys are known, one step ahead; dense parameters of
 *   version t (servers) or the local ones (ring); forward; send FORWARD to stage s+1, replica
 *   g mod k_{s+1}; there the loss; BACKWARD to where the micro-batch came from; backward in
 *   ascending g: parameter gradients add up over the replica's micro-batches in that order,
 *   from zero; row gradients are pushed per micro-batch; after the last one DENSE_PUSH or ring
 *   (all-reduce, then the optimizer here, with the count of all).
 *   A stage with more replicas than G leaves some idle: they bring zeros and no samples to
 *   the sums. They learn of a step from replica 0 of the stage before: a FORWARD with mb
 *   >= G, without rows (mb = their replica number).
 * asp: a first-stage replica works on leased chunks of C = ceil(B / k_0) rows cut into M
 *   micro-batches (hps_micro_batch_rows(C, M, g)); chunk numbers take the place of steps. Forward
 *   goes to the replica with the most credit; backward uses the weights of its forward (versions
 *   are kept while in flight); a dense push every M backward passes.
 * Evaluation: forward only, partitioned as bsp, nothing is created; the last stage emits
 *   scores; BACKWARD with HPS_FLAG_EVAL gives back credit.
 *
 * The owner (a thread of hps-work, a test) feeds it with orders, messages and batches, asks for
 * units of compute with hps_replica_work, and gets messages in an outbox and events by callback.
 * One thread owns a replica. Errors: any status but HPS_OK ends the job; err names the place.
 *
 * Frames in the outbox may lie in the replica: send the outbox (hps_net_send copies them)
 * before the next call. The callbacks must not call the replica.
 */
#ifndef HPS_TRAIN_REPLICA_H
#define HPS_TRAIN_REPLICA_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "data/batch.h"
#include "graph/graph.h"
#include "job/job.h"
#include "tensor/backend.h"
#include "wire/msg.h"

/* Rows [*begin, *end) of micro-batch g of a step of `batch` rows starting at row 0: sizes differ by
 * at most one, larger ones first. */
void hps_micro_batch_rows(uint64_t batch, uint32_t n_micro, uint32_t g, uint64_t *begin,
			  uint64_t *end);
/* Rows of a step (bsp, evaluation: B) or of a chunk (asp: C), and micro-batches in it (G, M). */
uint64_t hps_step_rows(const struct hps_deployment *d, bool eval);
uint32_t hps_step_micros(const struct hps_deployment *d, bool eval);

/* --- what a replica is told --- */

enum hps_order_kind {
	HPS_ORDER_START,  /* get parameters; step: the version to start from */
	HPS_ORDER_EPOCH,  /* train an epoch; epoch, step: its first global step */
	HPS_ORDER_EVAL,	  /* evaluate; epoch, step: the version to evaluate (= the next step) */
	HPS_ORDER_LEASE,  /* asp, first stage: step: a global chunk number, HPS_NO_STEP: no more */
	HPS_ORDER_HOLD,	  /* first stage: begin no further step; event HELD tells the next one */
	HPS_ORDER_STOP,	  /* first stage: this epoch (or evaluation) ends before `step` */
	HPS_ORDER_FINISH, /* hand ring parameters back, flush; event FINISHED */
};
#define HPS_NO_STEP UINT64_MAX

struct hps_order {
	enum hps_order_kind kind;
	uint32_t epoch;
	uint64_t step;
};

/* --- what it tells --- */

enum hps_replica_event_kind {
	HPS_REPLICA_LOSS,   /* last stage, a micro-batch: epoch, step, mb, loss, count */
	HPS_REPLICA_SCORES, /* last stage, evaluation: epoch, step, mb, count, row, score, label */
	HPS_REPLICA_LEASE,  /* asp, first stage: one more chunk is wanted */
	HPS_REPLICA_EPOCH_DONE, /* all its work of the epoch is done and, in asp, applied;
				 * step: the first of the next epoch (asp: 0) */
	HPS_REPLICA_EVAL_DONE,
	HPS_REPLICA_HELD, /* step: the first it has not begun */
	HPS_REPLICA_FINISHED,
};

struct hps_replica_event {
	enum hps_replica_event_kind kind;
	uint32_t epoch, mb, count;
	uint64_t step;
	double loss;	     /* sum over count samples */
	const uint64_t *row; /* borrowed for the call */
	const float *score, *label;
};

struct hps_replica_opts {
	const struct hps_job
		*job; /* model, deployment; borrowed, as graph and backend, for its life */
	const struct hps_graph *graph;
	const struct hps_backend *backend;
	uint32_t stage, replica;
	uint64_t incarnation;	    /* of the process; in every message */
	uint64_t seed;		    /* of sampled negatives */
	const char *const *operand; /* names of data files for messages; may be NULL */
	size_t n_operands;
	void (*event)(void *ctx, const struct hps_replica_event *e); /* within any call */
	/* a batch given is no longer used; within any call, hps_replica_free too */
	void (*give_back)(void *ctx, struct hps_batch *b);
	void *ctx;
};

struct hps_replica;

/* Refuses what is not built by name (asp with dense_sync ring over several replicas). */
enum hps_status hps_replica_new(const struct hps_replica_opts *o, struct hps_replica **out,
				struct hps_err *err);
void hps_replica_free(struct hps_replica *r);

enum hps_status hps_replica_order(struct hps_replica *r, const struct hps_order *o,
				  struct hps_outbox *out, struct hps_err *err);

/* A message from a shard or another replica, taken; in any order that keeps each connection
 * FIFO. HPS_NET: err says which peer broke the protocol. */
enum hps_status hps_replica_message(struct hps_replica *r, struct hps_msg *m,
				    struct hps_outbox *out, struct hps_err *err);

/* Compute one unit (the forward or backward of a micro-batch, the keys of one) if any is
 * ready. *did: something was done, call again. HPS_BAD_INPUT: the loss is nan or infinite:
 * "step 12, micro-batch 1: loss is nan (train.tsv: lines 12001 to 12250)". */
enum hps_status hps_replica_work(struct hps_replica *r, struct hps_outbox *out, bool *did,
				 struct hps_err *err);

/* --- rows, first stage --- */

struct hps_want {
	uint32_t epoch;
	bool eval;
	uint64_t step; /* global (eval: from 0) */
	uint32_t mb;
	uint64_t begin, end; /* rows of the epoch's (the test set's) data */
};

/* Which rows it takes next: false when it has enough for now, is held, or the epoch's end is
 * known to be reached. Rows are wanted in ascending order. */
bool hps_replica_want(const struct hps_replica *r, struct hps_want *w);
/* The rows last wanted, taken (given back by callback). data_end: the number of rows of the
 * data if the reader has come to their end, else UINT64_MAX. The replicas of the first stage
 * may learn it at different times, but must be told the same number. */
enum hps_status hps_replica_batch(struct hps_replica *r, struct hps_batch *b, uint64_t data_end,
				  struct hps_outbox *out, struct hps_err *err);

/* --- looking at it --- */

struct hps_replica_state {
	uint32_t epoch;
	uint64_t step;	    /* the step it works on */
	uint32_t in_flight; /* micro-batches begun and not done */
	bool idle;	    /* between phases: waits for an order */
	bool expects;	    /* peers owe it something: rows, parameters, gradients */
};
void hps_replica_state(const struct hps_replica *r, struct hps_replica_state *s);
/* What it waits for, for messages: "training, step 12: micro-batch 1 waits for rows". */
void hps_replica_waits(const struct hps_replica *r, char *out, size_t size);

#endif
