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
 * A DENSE_PULL waits likewise.
 * asp. Every push is applied when it comes, with its own count; no pull waits.
 *
 * Each replica's requests carry (src, incarnation, seq); one seen before is dropped (a
 * repeated push is applied once). A message that does not hold (unknown node, wrong sizes, a step
 * far from this one) is HPS_NET: the caller refuses that peer from then on.
 */
#ifndef HPS_PS_SHARD_H
#define HPS_PS_SHARD_H

#include "base/err.h"
#include "graph/graph.h"
#include "job/job.h"
#include "table/table.h"
#include "wire/msg.h"

struct hps_shard;

/* job (with model and deployment) and graph are borrowed for the shard's life. */
enum hps_status hps_shard_new(const struct hps_job *job, const struct hps_graph *g, uint32_t shard,
			      struct hps_shard **out, struct hps_err *err);
void hps_shard_free(struct hps_shard *s);

/* One message, taken. Answers go to out (dst = node). HPS_NET: the sender is at fault, the
 * shard is unchanged. HPS_MEMORY: the shard is at fault and should end the job. */
enum hps_status hps_shard_handle(struct hps_shard *s, struct hps_msg *m, struct hps_outbox *out,
				 struct hps_err *err);

struct hps_shard_stats {
	uint64_t pulls, pushes, rows_pulled, rows_pushed, step;
};
void hps_shard_stats(const struct hps_shard *s, struct hps_shard_stats *out);
const struct hps_table *hps_shard_table(const struct hps_shard *s, uint32_t table);

/* Which shard holds a key of a table; and the slice [*first, *first + *n) of the flat dense
 * vector that shard i of n_shards holds. The same everywhere. */
uint32_t hps_shard_of_key(uint32_t table, uint64_t key, uint32_t n_shards);
void hps_shard_slice(uint64_t n_floats, uint32_t shard, uint32_t n_shards, uint64_t *first,
		     uint64_t *n);

#endif
