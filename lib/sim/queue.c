/* Who is due next? A binary heap of numbers by time, with their places, so that a due time can
 * change in O(log n). */
#include <math.h>
#include <stdlib.h>
#include "base/mem.h"
#include "sim/sim_int.h"

enum hps_status queue_grow(struct queue *q, uint32_t ids, struct hps_err *err)
{
	void *heap = q->heap, *pos = q->pos, *time = q->time, *seq = q->seq;
	enum hps_status rc;

	if (ids <= q->ids)
		return HPS_OK;
	rc = hps_realloc(&heap, ids, sizeof(*q->heap), err);
	q->heap = heap;
	if (!rc)
		rc = hps_realloc(&pos, ids, sizeof(*q->pos), err);
	q->pos = pos;
	if (!rc)
		rc = hps_realloc(&time, ids, sizeof(*q->time), err);
	q->time = time;
	if (!rc)
		rc = hps_realloc(&seq, ids, sizeof(*q->seq), err);
	q->seq = seq;
	if (rc)
		return rc;
	for (uint32_t i = q->ids; i < ids; i++) {
		q->pos[i] = NONE;
		q->time[i] = 0;
	}
	q->ids = ids;
	return HPS_OK;
}

void queue_release(struct queue *q)
{
	free(q->heap);
	free(q->pos);
	free(q->time);
	free(q->seq);
}

static bool before(const struct queue *q, uint32_t a, uint32_t b)
{
	return q->time[a] < q->time[b] || (q->time[a] == q->time[b] && q->seq[a] < q->seq[b]);
}

static void put(struct queue *q, uint32_t at, uint32_t id)
{
	q->heap[at] = id;
	q->pos[id] = at;
}

static void settle(struct queue *q, uint32_t at, uint32_t id)
{
	while (at && before(q, id, q->heap[(at - 1) / 2])) {
		put(q, at, q->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	for (uint32_t down = 2 * at + 1; down < q->n; down = 2 * at + 1) {
		if (down + 1 < q->n && before(q, q->heap[down + 1], q->heap[down]))
			down++;
		if (!before(q, q->heap[down], id))
			break;
		put(q, at, q->heap[down]);
		at = down;
	}
	put(q, at, id);
}

void queue_set(struct queue *q, uint32_t id, double time)
{
	if (q->pos[id] == NONE)
		q->pos[id] = q->n++;
	q->time[id] = time;
	q->seq[id] = q->next_seq++;
	settle(q, q->pos[id], id);
}

void queue_drop(struct queue *q, uint32_t id)
{
	uint32_t at = q->pos[id], last;

	if (at == NONE)
		return;
	q->pos[id] = NONE;
	last = q->heap[--q->n];
	if (last != id)
		settle(q, at, last);
}
