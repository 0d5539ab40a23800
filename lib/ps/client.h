/* A replica's side of the parameter servers: splits keys over shards, gathers answers.
 * Messages in, messages out, no I/O; owned by the replica's thread.
 */
#ifndef HPS_PS_CLIENT_H
#define HPS_PS_CLIENT_H

#include "base/err.h"
#include "graph/graph.h"
#include "job/job.h"
#include "wire/msg.h"

struct hps_ps_client;

/* One table's keys of one micro-batch, over all shards. Pointers are the caller's (struct
 * hps_lookup of lib/nn has the same fields) and must live until the answer is in. */
struct hps_ps_rows {
	uint32_t table, dim, n;
	const uint64_t *key; /* (n) distinct */
	float *value;	     /* (n, dim): filled by the answer to a pull */
	const float *grad;   /* (n, dim): what a push sends */
};

enum hps_status hps_ps_client_new(const struct hps_job *job, const struct hps_graph *g,
				  uint32_t stage, uint32_t replica, uint64_t incarnation,
				  struct hps_ps_client **out, struct hps_err *err);
void hps_ps_client_free(struct hps_ps_client *c);

/* Ask for the rows of one micro-batch as of `step`; flags: HPS_FLAG_EVAL. rows may hold the
 * same table twice (two lookups); they are merged on the wire. At most one pull per
 * (epoch, step, mb, flags) at a time. A shard none of whose keys are asked gets no message. */
enum hps_status hps_ps_pull(struct hps_ps_client *c, uint32_t epoch, uint64_t step, uint32_t mb,
			    uint32_t flags, const struct hps_ps_rows *rows, uint32_t n,
			    struct hps_outbox *out, struct hps_err *err);
/* Push one micro-batch's gradient sums over `count` samples: to every shard in bsp, even
 * with no keys. A table that stands twice in rows: gradients of a common key are added,
 * first the earlier lookup's. */
enum hps_status hps_ps_push(struct hps_ps_client *c, uint32_t epoch, uint64_t step, uint32_t mb,
			    uint32_t count, const struct hps_ps_rows *rows, uint32_t n,
			    struct hps_outbox *out, struct hps_err *err);
/* The stage's dense parameters as of `step` into params (the stage's n_floats); with
 * HPS_FLAG_STATE also optimizer state and update count (ring stages at the start). */
enum hps_status hps_ps_dense_pull(struct hps_ps_client *c, uint64_t step, uint32_t flags,
				  float *params, float *state, struct hps_outbox *out,
				  struct hps_err *err);
enum hps_status hps_ps_dense_push(struct hps_ps_client *c, uint64_t step, uint32_t count,
				  const float *grads, struct hps_outbox *out, struct hps_err *err);
/* Replica 0 of a ring stage hands its parameters back to the servers, to be saved. */
enum hps_status hps_ps_dense_set(struct hps_ps_client *c, const float *params, const float *state,
				 uint64_t updates, struct hps_outbox *out, struct hps_err *err);
/* Ask every shard to tell when all updates before `step` (and all this client sent) are in. */
enum hps_status hps_ps_flush(struct hps_ps_client *c, uint64_t step, struct hps_outbox *out,
			     struct hps_err *err);

enum hps_ps_event_kind { HPS_PS_NONE, HPS_PS_ROWS, HPS_PS_DENSE, HPS_PS_FLUSHED };
struct hps_ps_event { /* what the message just handled completed */
	enum hps_ps_event_kind kind;
	uint32_t epoch, mb, flags;
	uint64_t step, updates;
};
/* A message from a shard, taken. Values are written where the pull said. */
enum hps_status hps_ps_message(struct hps_ps_client *c, struct hps_msg *m, struct hps_ps_event *ev,
			       struct hps_err *err);

#endif
