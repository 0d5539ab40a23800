/* Inside a stage replica. What calls what:
 *
 *   replica.c    life, orders, which message and which unit of compute is next, ends of phases
 *   micro.c      the micro-batches here, from arrival to release, and their passes
 *   rows.c       first stage: which rows come next, chunks, stopping
 *   flow.c       FORWARD, BACKWARD, END: made, checked, taken; credit
 *   unit.c       the units of compute: keys, forward, backward
 *   weights.c    versions of the stage's parameters: servers or ring
 */
#ifndef HPS_TRAIN_REPLICA_INT_H
#define HPS_TRAIN_REPLICA_INT_H

#include "nn/stage.h"
#include "optim/optim.h"
#include "ps/client.h"
#include "ring/ring.h"
#include "train/replica.h"

enum micro_state {
	MICRO_WAIT,  /* its input is here */
	MICRO_PULL,  /* rows are asked for */
	MICRO_READY, /* rows are here: forward may come */
	MICRO_AWAY,  /* sent on; its gradients are to come back */
	MICRO_BACK,  /* backward may come */
};

/* The stage's parameters of one version; micro-batches in flight hold references in asp. */
struct weights {
	unsigned refs;
	float *param; /* n_floats */
};

struct micro {
	struct micro *next; /* ascending by (step, mb) */
	enum micro_state state;
	uint64_t step;
	uint32_t mb, rows;
	bool marker;	/* only tells an idle replica that the step exists */
	uint32_t from;	/* replica of the stage before that it came from */
	uint32_t to;	/* replica of the next stage that has it */
	uint64_t place; /* as FORWARD's aux and arg */
	uint32_t lines;
	struct hps_stage_in in; /* its arrays lie in batch or msg */
	struct hps_pass *pass;	/* NULL: no rows, or not begun */
	struct weights *w;
	struct hps_batch *batch;   /* first stage */
	struct hps_msg msg, grads; /* FORWARD and BACKWARD as they came */
};

enum replica_phase {
	PHASE_IDLE,
	PHASE_TRAIN,
	PHASE_EVAL,
	PHASE_FINISH,
};

enum {
	LEASES_AHEAD = 2, /* asp: chunks asked for before they are worked on */
	STEPS_AHEAD = 8,  /* bsp: as the shards'; an honest peer stays within 2 */
};

struct hps_replica {
	struct hps_replica_opts o;
	const struct hps_deployment *d;
	uint32_t k, k_prev, k_next; /* replicas of this stage and its neighbours; 0: none */
	bool first, last, bsp, ring_sync;
	uint32_t micros; /* G: of a step, and of an evaluation step */
	uint32_t own;	 /* of those here; 0: idle */
	const struct hps_cut *in_cut, *out_cut;
	uint32_t *all_slots; /* 0 .. slots-1 */

	struct hps_stage *program;
	uint32_t max_rows, n_lookups;
	struct hps_ps_rows *rows; /* n_lookups, scratch */
	struct hps_pass **spare;  /* n_spare passes at rest */
	size_t n_spare, cap_spare, n_passes;

	struct micro *micro;
	uint32_t n_micro;

	/* parameters */
	struct hps_ps_client *ps;
	struct hps_ring *ring;
	struct hps_optim optim;
	uint64_t n_floats;
	struct weights *w;	/* the newest */
	struct weights *coming; /* asp: asked for */
	float *state;		/* ring: optimizer state */
	uint64_t updates;	/* ring */
	float *grads;		/* sums over this replica's micro-batches since the last push */
	bool grads_used;	/* not zero any more */
	uint64_t grad_count;
	uint32_t n_back;  /* backward passes since the last push */
	uint64_t version; /* bsp: the step whose parameters w holds; HPS_NO_STEP: not yet here */
	bool update_due;  /* bsp: grads hold the ring's sums for version cur */
	bool pulling, pull_again;
	uint64_t pushes; /* asp: dense pushes so far */

	/* the phase */
	enum replica_phase phase;
	uint32_t epoch;
	uint64_t base;	 /* training: first step of the epoch */
	uint64_t cur;	 /* training, bsp: the step in work; the next one between epochs */
	uint64_t end;	 /* the first step that is none: global in training, from 0 in evaluation;
			  * HPS_NO_STEP: not yet known */
	uint32_t done;	 /* bsp: micro-batches of cur that are done */
	uint64_t n_done; /* evaluation: micro-batches done */
	bool *ended;	 /* k_prev: has said END */
	uint32_t n_ended;
	bool flushing; /* asp: all is done, and pushes are on their way */

	/* first stage */
	uint64_t want_step;
	uint32_t want_mb;
	bool held;
	uint64_t hold_step;
	uint64_t lease[LEASES_AHEAD];
	uint32_t n_leases, n_asked; /* chunks here and not begun; asked for */
	bool no_leases;

	uint32_t *credit; /* asp: k_next */

	struct hps_msg *early; /* n_early: came before the order to begin */
	size_t n_early, cap_early;
};

/* replica.c */
uint32_t hps_replica_node(const struct hps_replica *r, uint32_t stage, uint32_t replica);
/* "stage 1 replica 0 on host b: " in front of err; HPS_NET. */
enum hps_status hps_replica_blame(const struct hps_replica *r, uint32_t node, struct hps_err *err);
void hps_replica_tell(struct hps_replica *r, const struct hps_replica_event *e);
/* Is the phase over? Then its event is told. */
enum hps_status hps_replica_check_end(struct hps_replica *r, struct hps_outbox *out,
				      struct hps_err *err);
bool hps_replica_static(const struct hps_replica *r); /* micro-batch g to replica g mod k */

/* micro.c */
struct micro *micro_new(struct hps_replica *r, uint64_t step, uint32_t mb, struct hps_err *err);
struct micro *micro_find(const struct hps_replica *r, uint64_t step, uint32_t mb);
void micro_release(struct hps_replica *r, struct micro *m);
void micro_release_all(struct hps_replica *r);
struct hps_pass *pass_get(struct hps_replica *r, struct hps_err *err);
/* Where the rows came from: "train.tsv: lines 12001 to 12250". */
void micro_place(const struct hps_replica *r, const struct micro *m, char *out, size_t size);

/* rows.c */
void rows_begin(struct hps_replica *r);
enum hps_status rows_lease(struct hps_replica *r, uint64_t chunk, struct hps_err *err);
void rows_hold(struct hps_replica *r);
void rows_ask_leases(struct hps_replica *r);

/* flow.c */
enum hps_status flow_send_forward(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
				  struct hps_err *err);
enum hps_status flow_send_back(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
			       struct hps_err *err);
enum hps_status flow_send_end(struct hps_replica *r, struct hps_outbox *out, struct hps_err *err);
/* The number of steps is known: `end` is the first that is none. */
enum hps_status flow_set_end(struct hps_replica *r, uint64_t end, struct hps_outbox *out,
			     struct hps_err *err);
/* The replica of the next stage that gets the micro-batch; false: none has credit. */
bool flow_pick(const struct hps_replica *r, uint32_t mb, uint32_t *to);
enum hps_status flow_take(struct hps_replica *r, struct hps_msg *msg, struct hps_outbox *out,
			  struct hps_err *err);

/* unit.c */
enum hps_status unit_begin(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
			   struct hps_err *err);
enum hps_status unit_forward(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
			     struct hps_err *err);
enum hps_status unit_backward(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
			      struct hps_err *err);
/* Done with it, in evaluation: credit goes back. */
enum hps_status unit_evaluated(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
			       struct hps_err *err);
uint32_t unit_lookup_rows(struct hps_replica *r, struct micro *m);

/* weights.c */
enum hps_status weights_init(struct hps_replica *r, struct hps_err *err);
void weights_release(struct hps_replica *r);
enum hps_status weights_start(struct hps_replica *r, uint64_t step, struct hps_outbox *out,
			      struct hps_err *err);
/* May a micro-batch of this step use them? */
bool weights_ready(const struct hps_replica *r, uint64_t step);
struct weights *weights_hold(struct weights *w);
void weights_drop(struct weights *w);
/* Zeroed gradient sums to add to. */
float *weights_grads(struct hps_replica *r);
/* This replica's sums of step cur (asp: since the last) are complete. */
enum hps_status weights_push(struct hps_replica *r, struct hps_outbox *out, struct hps_err *err);
/* grads hold the ring's sums: the next version. */
enum hps_status weights_update(struct hps_replica *r, struct hps_err *err);
enum hps_status weights_came(struct hps_replica *r, const struct hps_ps_event *ev,
			     struct hps_outbox *out, struct hps_err *err);
enum hps_status weights_ring(struct hps_replica *r, struct hps_msg *m, struct hps_outbox *out,
			     struct hps_err *err);
/* asp: ask for the newest, to evaluate with. */
enum hps_status weights_refresh(struct hps_replica *r, struct hps_outbox *out, struct hps_err *err);

#endif
