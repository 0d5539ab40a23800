/* A replica's side of the parameter servers: splits keys over shards, gathers answers.
 * Messages in, messages out, no I/O; owned by the replica's thread.
 *
 * Every pull and every bsp push goes to every shard, empty where it has none of the keys; so a
 * pull always ends in an event, and no replica gets far ahead of a shard (ps/shard.h, "Order").
 * Dense messages go to the shards that hold a part of the stage's parameters; a stage without
 * parameters sends none and gets no event: do not ask.
 */
#ifndef HPS_PS_CLIENT_H
#define HPS_PS_CLIENT_H

#include "base/err.h"
#include "graph/graph.h"
#include "job/job.h"
#include "wire/msg.h"

struct hps_ps_client;

/* One table's keys of one micro-batch, over all shards. Pointers are the caller's (struct
 * hps_lookup of lib/nn has the same fields): for a pull key and value must live until the
 * answer is in, for a push none outlives the call. */
struct hps_ps_rows {
	uint32_t table, dim, n;
	const uint64_t *key; /* (n) distinct */
	float *value;	     /* (n, dim): filled by the answer to a pull */
	const float *grad;   /* (n, dim): what a push sends */
};

/* job and g are borrowed for the client's life. incarnation: another one after each restart. */
enum hps_status hps_ps_client_new(const struct hps_job *job, const struct hps_graph *g,
				  uint32_t stage, uint32_t replica, uint64_t incarnation,
				  struct hps_ps_client **out, struct hps_err *err);
void hps_ps_client_free(struct hps_ps_client *c);

/* Ask for the rows of one micro-batch as of `step`; flags: HPS_FLAG_EVAL. rows may hold the
 * same table twice (two lookups); they are merged on the wire, a common key once. At most one pull
 * per (epoch, step, mb, flags) at a time. On failure nothing is asked and out is as before. */
enum hps_status hps_ps_pull(struct hps_ps_client *c, uint32_t epoch, uint64_t step, uint32_t mb,
			    uint32_t flags, const struct hps_ps_rows *rows, uint32_t n,
			    struct hps_outbox *out, struct hps_err *err);
/* Push one micro-batch's gradient sums over `count` samples (asp: to the shards that hold some of
 * the keys). A table that stands twice in rows: gradients of a common key are added, first
 * the earlier lookup's. bsp: only after the pulls of this step are answered. */
enum hps_status hps_ps_push(struct hps_ps_client *c, uint32_t epoch, uint64_t step, uint32_t mb,
			    uint32_t count, const struct hps_ps_rows *rows, uint32_t n,
			    struct hps_outbox *out, struct hps_err *err);
/* The stage's dense parameters as of `step` into params (the stage's n_floats); with
 * HPS_FLAG_STATE also optimizer state (as lib/optim lays it out, stride n_floats) and update
 * count (ring stages at the start). One at a time; params and state live until the event. */
enum hps_status hps_ps_dense_pull(struct hps_ps_client *c, uint64_t step, uint32_t flags,
				  float *params, float *state, struct hps_outbox *out,
				  struct hps_err *err);
/* count 0: grads is not looked at, no frame of it is sent. */
enum hps_status hps_ps_dense_push(struct hps_ps_client *c, uint64_t step, uint32_t count,
				  const float *grads, struct hps_outbox *out, struct hps_err *err);
/* Replica 0 of a ring stage hands its parameters back to the servers, to be saved. */
enum hps_status hps_ps_dense_set(struct hps_ps_client *c, const float *params, const float *state,
				 uint64_t updates, struct hps_outbox *out, struct hps_err *err);
/* Ask every shard to tell when all updates before `step` (and all this client sent) are in. One
 * at a time. */
enum hps_status hps_ps_flush(struct hps_ps_client *c, uint64_t step, struct hps_outbox *out,
			     struct hps_err *err);

enum hps_ps_event_kind { HPS_PS_NONE, HPS_PS_ROWS, HPS_PS_DENSE, HPS_PS_FLUSHED };
struct hps_ps_event { /* what the message just handled completed */
	enum hps_ps_event_kind kind;
	uint32_t epoch, mb, flags;
	uint64_t step, updates; /* updates: of DENSE, the most that a part has seen */
};
/* A message from a shard, taken. Values are written where the pull said. An answer that nobody
 * waits for (a repeat, or to the incarnation before) is dropped: HPS_PS_NONE. HPS_NET: the answer
 * does not hold. */
enum hps_status hps_ps_message(struct hps_ps_client *c, struct hps_msg *m, struct hps_ps_event *ev,
			       struct hps_err *err);

#endif
