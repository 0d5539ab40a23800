/* What does a rank of a ring send, and what does it make of what comes?
 * Bandwidth-optimal all-reduce (Patarasu, Yuan 2009), summed in a stated order.
 */
#include "ring/ring.h"

#include <stdlib.h>
#include <string.h>
#include "base/hot.h"
#include "base/mem.h"

enum { BORDER = 16 }; /* floats: one cache line */

struct hps_ring {
	uint32_t rank, k, next;
	uint64_t n;
	uint64_t step; /* being reduced, or else the next to come */
	bool stepped;  /* step means something: one was begun or a message kept */
	bool running;
	uint32_t round; /* rounds 0 .. 2k-3: the one whose message is to come */
	float *vec;
	uint64_t own, total; /* samples: this rank's, all ranks' */
	/* Messages of `step` that came before its start, rounds 0 .. n_early-1. The rank before
	 * gets no further than round k-2 without this one. */
	struct hps_msg *early; /* k */
	uint32_t n_early;
};

void hps_ring_chunk(uint64_t n, uint32_t k, uint32_t c, uint64_t *first, uint64_t *len)
{
	uint64_t blocks = n / BORDER + (n % BORDER != 0), each = blocks / k, rest = blocks % k;
	uint64_t begin = each * c + (c < rest ? c : rest), end = begin + each + (c < rest);

	/* only the last block may be short */
	*first = begin * BORDER < n ? begin * BORDER : n;
	*len = (end * BORDER < n ? end * BORDER : n) - *first;
}

enum hps_status hps_ring_new(uint32_t rank, uint32_t k, uint32_t next_node, uint64_t n_floats,
			     struct hps_ring **out, struct hps_err *err)
{
	struct hps_ring *r = hps_calloc(1, sizeof(*r), err);

	if (!r)
		return HPS_MEMORY;
	r->rank = rank;
	r->k = k;
	r->next = next_node;
	r->n = n_floats;
	r->early = hps_calloc(k, sizeof(*r->early), err);
	if (!r->early) {
		free(r);
		return HPS_MEMORY;
	}
	*out = r;
	return HPS_OK;
}

void hps_ring_free(struct hps_ring *r)
{
	if (!r)
		return;
	while (r->n_early)
		hps_msg_release(&r->early[--r->n_early]);
	free(r->early);
	free(r);
}

uint64_t hps_ring_count(const struct hps_ring *r)
{
	return r->total;
}

/* sum (n) = sum + mine, the sum of the ranks before on the left */
HPS_HOT static void add(float *sum, const float *mine, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		sum[i] = sum[i] + mine[i];
}

/* The chunk that round `round`'s message carries to this rank. Chunk c leaves rank c in
 * round 0, is whole at rank c-1 after round k-2, and goes around once more. */
static uint32_t chunk_in(const struct hps_ring *r, uint32_t round)
{
	return (uint32_t)((r->rank + 2ull * r->k - 1 - round) % r->k);
}

static struct hps_head head_of(const struct hps_ring *r, uint32_t round, uint64_t count)
{
	return (struct hps_head){
		.type = HPS_MSG_RING, .step = r->step, .arg = round, .aux = count
	};
}

static enum hps_status fault(struct hps_err *err, const struct hps_msg *m, const char *what)
{
	return hps_err_set(err, HPS_NET, "%s in ring round %u of step %llu", what, m->head.arg,
			   (unsigned long long)m->head.step);
}

/* Does a message hold, given that it is of round `round`? */
static enum hps_status check(const struct hps_ring *r, const struct hps_msg *m, uint32_t round,
			     struct hps_err *err)
{
	uint64_t first, len;

	if (m->head.type != HPS_MSG_RING || m->head.flags)
		return hps_err_set(err, HPS_NET, "message type %u where a ring's is expected",
				   m->head.type);
	if (m->head.arg != round)
		return hps_err_set(err, HPS_NET, "ring round %u where %u is expected (step %llu)",
				   m->head.arg, round, (unsigned long long)m->head.step);
	hps_ring_chunk(r->n, r->k, chunk_in(r, round), &first, &len);
	if (m->n_frames != 1 || m->frame[0].len != len * sizeof(float) ||
	    (uintptr_t)m->frame[0].data % _Alignof(float))
		return fault(err, m, "a chunk of the wrong size");
	return HPS_OK;
}

/* Use the message of the round that is due, and send what follows from it. */
static enum hps_status advance(struct hps_ring *r, struct hps_msg *m, struct hps_outbox *out,
			       bool *done, struct hps_err *err)
{
	uint32_t last_reduce = r->k - 2, last = 2 * r->k - 3;
	struct hps_frame *f = &m->frame[0];
	uint64_t first, len, count = m->head.aux;
	enum hps_status st;

	hps_ring_chunk(r->n, r->k, chunk_in(r, r->round), &first, &len);
	if (r->round <= last_reduce && __builtin_add_overflow(count, r->own, &count))
		return fault(err, m, "an impossible sample count");
	if (r->round > last_reduce && count != r->total)
		return fault(err, m, "another sample count");
	if (!f->release && f->len) { /* borrowed: not ours to sum into */
		struct hps_msg copy = { .head = m->head };

		st = hps_msg_copy(&copy, f->data, f->len, err);
		if (st != HPS_OK)
			return st;
		*m = copy;
	}
	if (r->round <= last_reduce)
		add(f->data, r->vec + first, len);
	if (r->round >= last_reduce && len)
		memcpy(r->vec + first, f->data, len * sizeof(float));
	if (r->round == last_reduce)
		r->total = count;
	if (r->round == last) {
		r->running = false;
		r->step++;
		*done = true;
		return HPS_OK;
	}
	r->round++;
	m->head = head_of(r, r->round, count);
	return hps_outbox_put(out, r->next, m, err);
}

enum hps_status hps_ring_start(struct hps_ring *r, uint64_t step, float *vec, uint64_t count,
			       struct hps_outbox *out, bool *done, struct hps_err *err)
{
	struct hps_msg m = { 0 };
	enum hps_status st;
	uint64_t first, len;
	uint32_t n_early = r->n_early;

	*done = false;
	if (r->running || (r->stepped && step != r->step))
		return hps_err_set(err, HPS_NET, "ring step %llu where %llu is expected",
				   (unsigned long long)step, (unsigned long long)r->step);
	r->step = step;
	r->stepped = true;
	r->vec = vec;
	r->own = count;
	r->round = 0;
	if (r->k == 1) {
		r->total = count;
		r->step++;
		*done = true;
		return HPS_OK;
	}
	hps_ring_chunk(r->n, r->k, r->rank, &first, &len);
	st = hps_msg_copy(&m, vec + first, len * sizeof(float), err);
	if (st != HPS_OK)
		return st;
	m.head = head_of(r, 0, count);
	st = hps_outbox_put(out, r->next, &m, err);
	if (st != HPS_OK)
		return st;
	r->running = true;
	r->n_early = 0;
	for (uint32_t i = 0; i < n_early; i++) {
		if (st == HPS_OK)
			st = advance(r, &r->early[i], out, done, err);
		hps_msg_release(&r->early[i]);
	}
	return st;
}

static enum hps_status keep(struct hps_ring *r, struct hps_msg *m, struct hps_err *err)
{
	enum hps_status st;

	if (r->stepped && m->head.step != r->step)
		return hps_err_set(err, HPS_NET, "ring step %llu where %llu is expected",
				   (unsigned long long)m->head.step, (unsigned long long)r->step);
	if (m->head.arg > r->k - 2)
		return fault(err, m, "a message before its time");
	st = check(r, m, r->n_early, err);
	if (st != HPS_OK)
		return st;
	r->step = m->head.step;
	r->stepped = true;
	r->early[r->n_early++] = *m;
	*m = (struct hps_msg){ 0 };
	return HPS_OK;
}

enum hps_status hps_ring_message(struct hps_ring *r, struct hps_msg *m, struct hps_outbox *out,
				 bool *done, struct hps_err *err)
{
	enum hps_status st;

	*done = false;
	if (r->k == 1)
		st = hps_err_set(err, HPS_NET, "a ring message to a ring of one");
	else if (!r->running)
		st = keep(r, m, err);
	else if (m->head.step != r->step)
		st = hps_err_set(err, HPS_NET, "ring step %llu where %llu is expected",
				 (unsigned long long)m->head.step, (unsigned long long)r->step);
	else
		st = check(r, m, r->round, err);
	if (st == HPS_OK && r->running)
		st = advance(r, m, out, done, err);
	hps_msg_release(m);
	return st;
}
