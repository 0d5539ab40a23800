/* One stage replica: prefetch, compute, exchange, as a state machine without I/O.
 *
 * Step t of epoch e: rows t*B .. (t+1)*B-1, cut into G = k_0 * M contiguous micro-batches
 * at fixed offsets (hps_micro_batch_rows); micro-batch g of stage s runs on replica g mod k_s.
 * Global steps number on through epochs: they are the parameters' versions.
 *
 * bsp, one step of one replica of stage s:
 *   first stage: rows come from the caller (hps_replica_batch) for its own g, ascending;
 *   others: FORWARD messages from the stage before, in any order, worked off ascending in g.
 *   pull rows (step t) as soon as keys are known, one step ahead; dense parameters of
 *   version t (servers) or the local ones (ring); forward; send FORWARD to stage s+1, replica
 *   g mod k_{s+1}; there the loss; BACKWARD to where the micro-batch came from; backward in
 *   ascending g: parameter gradients add up over the replica's micro-batches in that order,
 *   row gradients are pushed per micro-batch; after the last one DENSE_PUSH or ring.
 * asp: each first-stage replica works on leased chunks of about B / k_0 rows cut into M
 *   micro-batches; forward goes to the replica with the most credit; backward uses the
 *   weights of its forward (versions are kept while in flight).
 * Evaluation: forward only, nothing is created; the last stage emits scores.
 */
#ifndef HPS_TRAIN_REPLICA_H
#define HPS_TRAIN_REPLICA_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "data/batch.h"
#include "graph/graph.h"
#include "job/job.h"
#include "wire/msg.h"

/* Rows [*begin, *end) of micro-batch g of a step of `batch` rows starting at row 0: sizes differ by at
 * most one, larger ones first. */
void hps_micro_batch_rows(uint64_t batch, uint32_t n_micro, uint32_t g, uint64_t *begin,
			  uint64_t *end);

#endif
