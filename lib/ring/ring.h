/* Ring all-reduce of one stage's gradients: messages in, messages out, no I/O.
 *
 * Reduce-scatter then all-gather (Patarasu, Yuan 2009): the vector of n floats is cut into k
 * chunks at 16-float borders; chunk c's sum is ((g_c + g_{c+1}) + ...) + g_{c+k-1}, ranks mod k,
 * in that order, so every rank ends with the same bits. 2(k-1) messages a rank and step.
 * The sample count is summed along (head.aux).
 *
 * The buffer that came in is summed into and passed on, so a rank copies one chunk a step, and
 * vec is the caller's again as soon as the step is done, whatever is still being sent.
 */
#ifndef HPS_RING_RING_H
#define HPS_RING_RING_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "wire/msg.h"

struct hps_ring;

/* rank of k replicas; next: node of rank + 1 mod k. k == 1: done at start, no message. */
enum hps_status hps_ring_new(uint32_t rank, uint32_t k, uint32_t next_node, uint64_t n_floats,
			     struct hps_ring **out, struct hps_err *err);
void hps_ring_free(struct hps_ring *r); /* NULL is fine */

/* Begin step `step` with this rank's sums in vec (n floats, in place; the caller's until
 * done) over `count` samples. Messages of this step that came early were kept. *done as below.
 * Steps follow one another, the first may be any. HPS_NET: what was kept is of another step. */
enum hps_status hps_ring_start(struct hps_ring *r, uint64_t step, float *vec, uint64_t count,
			       struct hps_outbox *out, bool *done, struct hps_err *err);
/* A HPS_MSG_RING message of rank - 1 (the caller sees to that), taken, in the order they were
 * sent. *done: vec holds the total, hps_ring_count the samples. Between two steps a message of the
 * next one is kept; any other than the one that is due is HPS_NET and changes nothing. */
enum hps_status hps_ring_message(struct hps_ring *r, struct hps_msg *m, struct hps_outbox *out,
				 bool *done, struct hps_err *err);
uint64_t hps_ring_count(const struct hps_ring *r);

/* Chunk c of n floats over k: for the oracle. */
void hps_ring_chunk(uint64_t n, uint32_t k, uint32_t c, uint64_t *first, uint64_t *len);

#endif
