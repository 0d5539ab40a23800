/* One parameter server shard: messages in, messages out, no I/O. One thread.
 *
 * Holds this shard's rows of every table and its slice of the dense parameters (the model's
 * flat vector cut into n_shards contiguous slices of nearly equal size, at 16-float borders).
 *
 * bsp. Update t of the tables is due when every lookup stage (one with embedding or negatives
 * layers) has sent its PUSH for each of the step's k_0 * M micro-batches. Then, for each
 * table, gradients are summed per key in (stage, micro-batch's replica, micro-batch) order
 * and applied once, count = the samples of the lowest lookup stage's pushes. A PULL for
 * step t+1 waits for it. Update t of a stage's dense parameters (dense_sync "ps") is due
 * when each of its replicas has sent DENSE_PUSH; the sums are added in replica order.
 * A DENSE_PULL waits likewise. In a ring stage no DENSE_PULL waits and DENSE_PUSH is refused.
 * asp. Every push is applied when it comes, with its own count; no pull waits.
 *
 * Order. A replica may push step t once its pulls of step t are answered; every pull goes to
 * every shard, so honest peers stay within HPS_PS_AHEAD steps of a shard, and a message beyond
 * that does not hold. A bsp push of a step already applied is a repeat and dropped.
 *
 * Parts. Shard i's part of a stage is its slice cut with the stage's run of the flat vector
 * (hps_shard_part). Where it is empty (more shards than parameters, say), client and shard both
 * know it, and no dense message of that stage goes to the shard; one that comes does not hold.
 * An update in which no replica had samples changes nothing and does not count as one.
 *
 * Each replica's requests carry (src, incarnation, seq); one seen before is dropped (a
 * repeated push is applied once), also one more than HPS_PS_WINDOW behind the latest. Another
 * incarnation of a replica starts anew: requests of the one before that still wait, or come late,
 * are dropped. A message that does not hold (unknown node, wrong sizes, a step far from this one)
 * is HPS_NET: the caller refuses that peer from then on.
 */
#ifndef HPS_PS_SHARD_H
#define HPS_PS_SHARD_H

#include "base/err.h"
#include "graph/graph.h"
#include "job/job.h"
#include "table/table.h"
#include "wire/msg.h"

enum {
	HPS_PS_AHEAD = 8,	    /* steps that a request may be ahead of the shard (bsp) */
	HPS_PS_WINDOW = 256,	    /* requests of one replica that may overtake each other */
	HPS_PS_MAX_MICRO = 1 << 16, /* micro-batches a step, over all first-stage replicas */
};

struct hps_shard;

/* job (with model and deployment) and graph are borrowed for the shard's life. Dense parameters
 * start from hps_param_init_range, rows from hps_row_init, both with the deployment's seed. */
enum hps_status hps_shard_new(const struct hps_job *job, const struct hps_graph *g, uint32_t shard,
			      struct hps_shard **out, struct hps_err *err);
void hps_shard_free(struct hps_shard *s);

/* Updates 0 .. step-1 have been before this run: the next is number `step`. Before any message. */
void hps_shard_start(struct hps_shard *s, uint64_t step);

/* One message, taken. Answers go to out (dst = node). HPS_NET: the sender is at fault, the
 * shard is unchanged. HPS_MEMORY: the shard is at fault and should end the job. Frames of a DENSE
 * answer share the shard's parameters (counted references; released from any thread). */
enum hps_status hps_shard_handle(struct hps_shard *s, struct hps_msg *m, struct hps_outbox *out,
				 struct hps_err *err);

struct hps_shard_stats {
	uint64_t pulls, pushes, rows_pulled, rows_pushed;
	uint64_t step;	 /* bsp: updates that tables and all "ps" parts have seen; asp: the latest
			* step pushed + 1 */
	uint64_t epochs; /* begun, as the pushes of rows tell: the latest's number + 1 */
};
void hps_shard_stats(const struct hps_shard *s, struct hps_shard_stats *out);
struct hps_table *hps_shard_table(const struct hps_shard *s, uint32_t table);

/* --- the dense parameters held here, for saving and loading --- */

struct hps_shard_dense {
	uint32_t stage;
	uint64_t first, n;  /* of the model's flat vector; n > 0 */
	const float *param; /* (n), until the next message */
	const float *state; /* as lib/optim lays it out, state_stride n */
	uint64_t updates;
};
uint32_t hps_shard_n_dense(const struct hps_shard *s);
struct hps_shard_dense hps_shard_dense(const struct hps_shard *s, uint32_t i);
/* Take over what this shard holds of [first, first + n): param (n), state with its stride n. */
enum hps_status hps_shard_put_dense(struct hps_shard *s, uint64_t first, uint64_t n,
				    const float *param, const float *state, uint64_t updates,
				    struct hps_err *err);

/* --- who holds what: the same everywhere --- */

/* Which shard holds a key of a table; and the slice [*first, *first + *n) of the flat dense
 * vector that shard i of n_shards holds. */
uint32_t hps_shard_of_key(uint32_t table, uint64_t key, uint32_t n_shards);
void hps_shard_slice(uint64_t n_floats, uint32_t shard, uint32_t n_shards, uint64_t *first,
		     uint64_t *n);
/* What shard i holds of the stage's parameters, by flat offset; *n may be 0. */
void hps_shard_part(const struct hps_job *job, const struct hps_graph *g, uint32_t stage,
		    uint32_t shard, uint64_t *first, uint64_t *n);
/* Does the stage look up rows? */
bool hps_stage_looks_up(const struct hps_job *job, uint32_t stage);
/* The job's optimizers as lib/optim takes them. */
struct hps_optim hps_optim_of(const struct hps_optimizer *o);

#endif
