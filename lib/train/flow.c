/* What passes between stages: FORWARD, BACKWARD and END, made, checked and taken.
 *
 * A FORWARD has frames only if it has rows: row numbers, labels, then dense features, keys and
 * activations where the cut between the stages says so (graph/graph.h). */
#include "train/replica_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool in_training(const struct hps_replica *r)
{
	return r->phase == PHASE_TRAIN;
}

static struct hps_msg message(const struct hps_replica *r, enum hps_msg_type type)
{
	struct hps_msg m = { .head.type = type };

	m.head.src = hps_replica_node(r, r->o.stage, r->o.replica);
	m.head.flags = in_training(r) ? 0 : HPS_FLAG_EVAL;
	m.head.epoch = r->epoch;
	return m;
}

/* A frame that lies here until the caller has sent the outbox. */
static void lend(struct hps_msg *m, const void *data, size_t len)
{
	m->frame[m->n_frames++] = (struct hps_frame){ .data = (void *)data, .len = len };
}

/* --- sending --- */

/* The columns of the slots that later stages read. */
static enum hps_status add_keys(const struct hps_replica *r, const struct micro *m,
				struct hps_msg *msg, struct hps_err *err)
{
	const struct hps_cut *cut = r->out_cut;
	uint32_t n = cut->n_slots, columns = m->in.n_key_slots, c = 0;
	uint64_t *key;

	if (n == columns) {
		lend(msg, m->in.key, (size_t)m->rows * n * sizeof *key);
		return HPS_OK;
	}
	key = hps_calloc((size_t)m->rows * n, sizeof *key, err);
	if (!key)
		return HPS_MEMORY;
	for (uint32_t s = 0; s < n; s++) { /* both ascend */
		while (c < columns && m->in.key_slot[c] != cut->slot[s])
			c++;
		if (c == columns) {
			free(key);
			return hps_err_set(err, HPS_BAD_INPUT, "no keys of slot %u at the cut",
					   cut->slot[s]);
		}
		for (uint32_t i = 0; i < m->rows; i++)
			key[(size_t)i * n + s] = m->in.key[(size_t)i * columns + c];
	}
	return hps_msg_take(msg, key, (size_t)m->rows * n * sizeof *key, err);
}

static enum hps_status add_frames(const struct hps_replica *r, const struct micro *m,
				  struct hps_msg *msg, struct hps_err *err)
{
	const struct hps_cut *cut = r->out_cut;
	enum hps_status st = HPS_OK;
	uint64_t n;

	lend(msg, m->in.row, m->rows * sizeof *m->in.row);
	lend(msg, m->in.label, m->rows * sizeof *m->in.label);
	if (cut->dense)
		lend(msg, m->in.dense, (size_t)m->rows * r->o.job->model.dense * sizeof(float));
	if (cut->n_slots)
		st = add_keys(r, m, msg, err);
	if (st == HPS_OK && cut->n_layers) {
		const float *x = hps_pass_output(m->pass, &n);

		lend(msg, x, n * sizeof *x);
	}
	return st;
}

/* Replicas of the next stage that get no micro-batch of a step hear of it from replica 0. */
static enum hps_status send_markers(struct hps_replica *r, uint64_t step, struct hps_outbox *out,
				    struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint32_t j = r->micros; j < r->k_next && st == HPS_OK; j++) {
		struct hps_msg msg = message(r, HPS_MSG_FORWARD);

		msg.head.step = step;
		msg.head.mb = j;
		st = hps_outbox_put(out, hps_replica_node(r, r->o.stage + 1, j), &msg, err);
	}
	return st;
}

enum hps_status flow_send_forward(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
				  struct hps_err *err)
{
	struct hps_msg msg = message(r, HPS_MSG_FORWARD);
	enum hps_status st = HPS_OK;

	msg.head.step = m->step;
	msg.head.mb = m->mb;
	msg.head.count = m->rows;
	msg.head.aux = m->place;
	msg.head.arg = m->lines;
	if (m->rows)
		st = add_frames(r, m, &msg, err);
	if (st != HPS_OK) {
		hps_msg_release(&msg);
		return st;
	}
	if (!hps_replica_static(r))
		r->credit[m->to]--;
	st = hps_outbox_put(out, hps_replica_node(r, r->o.stage + 1, m->to), &msg, err);
	if (st == HPS_OK && in_training(r) && r->bsp && m->mb == 0)
		st = send_markers(r, m->step, out, err);
	return st;
}

enum hps_status flow_send_back(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
			       struct hps_err *err)
{
	struct hps_msg msg = message(r, HPS_MSG_BACKWARD);
	uint64_t n;

	if (r->first || m->marker)
		return HPS_OK;
	msg.head.step = m->step;
	msg.head.mb = m->mb;
	msg.head.count = m->rows;
	if (in_training(r) && m->rows && r->in_cut->n_layers) {
		const float *x = hps_pass_input_grad(m->pass, &n);

		lend(&msg, x, n * sizeof *x); /* the pass rests until the outbox is sent */
	}
	return hps_outbox_put(out, hps_replica_node(r, r->o.stage - 1, m->from), &msg, err);
}

enum hps_status flow_send_end(struct hps_replica *r, struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint32_t j = 0; j < r->k_next && st == HPS_OK; j++) {
		struct hps_msg msg = message(r, HPS_MSG_END);

		msg.head.step = r->end;
		st = hps_outbox_put(out, hps_replica_node(r, r->o.stage + 1, j), &msg, err);
	}
	return st;
}

bool flow_pick(const struct hps_replica *r, uint32_t mb, uint32_t *to)
{
	*to = 0;
	if (hps_replica_static(r)) {
		*to = mb % r->k_next;
		return true;
	}
	for (uint32_t j = 1; j < r->k_next; j++)
		if (r->credit[j] > r->credit[*to])
			*to = j;
	return r->credit[*to] > 0;
}

/* --- the number of steps --- */

enum hps_status flow_set_end(struct hps_replica *r, uint64_t end, struct hps_outbox *out,
			     struct hps_err *err)
{
	if (r->end != HPS_NO_STEP) {
		if (r->end == end)
			return HPS_OK;
		hps_err_set(err, HPS_BAD_INPUT,
			    "replicas of the first stage disagree on the number of steps: %llu "
			    "and %llu",
			    (unsigned long long)(r->end - (in_training(r) ? r->base : 0)),
			    (unsigned long long)(end - (in_training(r) ? r->base : 0)));
		hps_err_hint(err, "give every hps-work of a job the same data");
		return HPS_BAD_INPUT;
	}
	for (const struct micro *m = r->micro; m; m = m->next)
		if (m->step >= end)
			return hps_err_set(err, HPS_NET,
					   "the end is before step %llu, which is here",
					   (unsigned long long)m->step);
	if (in_training(r) && (end < r->base || r->cur > end))
		return hps_err_set(err, HPS_NET, "the end is before the step in work");
	r->end = end;
	return flow_send_end(r, out, err);
}

static enum hps_status take_end(struct hps_replica *r, const struct hps_msg *msg, uint32_t from,
				struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	if (msg->n_frames || r->ended[from])
		return hps_err_set(err, HPS_NET, "a second end, or one with frames");
	if (hps_replica_static(r))
		st = flow_set_end(r, msg->head.step, out, err);
	if (st != HPS_OK)
		return st;
	r->ended[from] = true;
	r->n_ended++;
	return hps_replica_check_end(r, out, err);
}

/* --- FORWARD --- */

static bool is_marker(const struct hps_replica *r, const struct hps_head *h)
{
	return r->bsp && in_training(r) && h->mb >= r->micros;
}

static enum hps_status check_forward(const struct hps_replica *r, const struct hps_head *h,
				     uint32_t from, struct hps_err *err)
{
	bool eval = !in_training(r);
	uint64_t begin, end;

	if (is_marker(r, h)) {
		if (h->mb != r->o.replica || from != 0 || h->count)
			return hps_err_set(err, HPS_NET, "forward: a marker for replica %u", h->mb);
	} else {
		if (h->mb >= hps_step_micros(r->d, eval) ||
		    (hps_replica_static(r) && h->mb % r->k != r->o.replica))
			return hps_err_set(err, HPS_NET, "forward: micro-batch %u is not for here",
					   h->mb);
		hps_micro_batch_rows(hps_step_rows(r->d, eval), hps_step_micros(r->d, eval), h->mb,
				     &begin, &end);
		if (h->count > end - begin)
			return hps_err_set(err, HPS_NET, "forward: %u rows in micro-batch %u",
					   h->count, h->mb);
	}
	if (!eval &&
	    (h->step < (r->bsp ? r->cur : r->base) || (r->bsp && h->step - r->cur >= STEPS_AHEAD)))
		return hps_err_set(err, HPS_NET, "forward: step %llu is far from step %llu",
				   (unsigned long long)h->step, (unsigned long long)r->cur);
	if (hps_replica_static(r) && r->end != HPS_NO_STEP && h->step >= r->end)
		return hps_err_set(err, HPS_NET, "forward: step %llu is past the end",
				   (unsigned long long)h->step);
	if (!hps_replica_static(r) && r->ended[from])
		return hps_err_set(err, HPS_NET, "forward after the end");
	if (r->n_micro >=
	    (uint64_t)STEPS_AHEAD * r->micros +
		    (uint64_t)hps_stage_credit(r->d->n_stages, r->o.stage - 1) * r->k_prev)
		return hps_err_set(err, HPS_NET, "forward: more micro-batches than credit");
	if (micro_find(r, h->step, h->mb))
		return hps_err_set(err, HPS_NET, "forward: step %llu, micro-batch %u came twice",
				   (unsigned long long)h->step, h->mb);
	return HPS_OK;
}

/* Frame number *i as an array of n elements of `size` bytes. */
static enum hps_status take_array(struct hps_msg *msg, uint32_t *i, uint64_t n, size_t size,
				  const void **out, struct hps_err *err)
{
	if (*i >= msg->n_frames || msg->frame[*i].len != n * size)
		return hps_err_set(err, HPS_NET, "forward: frame %u is missing or not %llu bytes",
				   *i, (unsigned long long)(n * size));
	*out = hps_msg_array(msg, (*i)++, err);
	return *out ? HPS_OK : HPS_MEMORY;
}

static enum hps_status take_input(const struct hps_replica *r, struct hps_msg *msg,
				  struct hps_stage_in *in, struct hps_err *err)
{
	const struct hps_cut *cut = r->in_cut;
	uint64_t n = msg->head.count;
	enum hps_status st;
	const void *p = NULL;
	uint32_t i = 0;

	*in = (struct hps_stage_in){ .rows = msg->head.count,
				     .seed = r->o.seed,
				     .epoch = r->epoch };
	if (!n)
		goto end;
	st = take_array(msg, &i, n, sizeof(uint64_t), &p, err);
	in->row = p;
	if (st == HPS_OK) {
		st = take_array(msg, &i, n, sizeof(float), &p, err);
		in->label = p;
	}
	if (st == HPS_OK && cut->dense) {
		st = take_array(msg, &i, n * r->o.job->model.dense, sizeof(float), &p, err);
		in->dense = p;
	}
	if (st == HPS_OK && cut->n_slots) {
		st = take_array(msg, &i, n * cut->n_slots, sizeof(uint64_t), &p, err);
		in->key = p;
		in->key_slot = cut->slot;
		in->n_key_slots = cut->n_slots;
	}
	if (st == HPS_OK && cut->n_layers) {
		st = take_array(msg, &i, n * cut->cols, sizeof(float), &p, err);
		in->activation = p;
	}
	if (st != HPS_OK)
		return st;
end:
	if (i != msg->n_frames)
		return hps_err_set(err, HPS_NET, "forward: expected %u frames, got %u", i,
				   msg->n_frames);
	return HPS_OK;
}

static enum hps_status take_forward(struct hps_replica *r, struct hps_msg *msg, uint32_t from,
				    struct hps_err *err)
{
	const struct hps_head *h = &msg->head;
	struct hps_stage_in in;
	enum hps_status st;
	struct micro *m;

	st = check_forward(r, h, from, err);
	if (st == HPS_OK)
		st = take_input(r, msg, &in, err);
	if (st != HPS_OK)
		return st;
	m = micro_new(r, h->step, h->mb, err);
	if (!m)
		return HPS_MEMORY;
	m->rows = h->count;
	m->marker = is_marker(r, h);
	m->from = from;
	m->place = h->aux;
	m->lines = h->arg;
	m->in = in;
	m->msg = *msg;
	msg->n_frames = 0;
	return HPS_OK;
}

/* --- BACKWARD --- */

static enum hps_status take_backward(struct hps_replica *r, struct hps_msg *msg, uint32_t from,
				     struct hps_outbox *out, struct hps_err *err)
{
	const struct hps_head *h = &msg->head;
	struct micro *m = micro_find(r, h->step, h->mb);
	bool grads = in_training(r) && h->count && r->out_cut->n_layers;

	if (!m || m->state != MICRO_AWAY || m->to != from || h->count != m->rows)
		return hps_err_set(err, HPS_NET,
				   "backward: step %llu, micro-batch %u is not with it",
				   (unsigned long long)h->step, h->mb);
	if (msg->n_frames != (grads ? 1u : 0u) ||
	    (grads && msg->frame[0].len != m->rows * r->out_cut->cols * sizeof(float)))
		return hps_err_set(err, HPS_NET, "backward: frames do not fit %u rows", m->rows);
	if (!in_training(r))
		return unit_evaluated(r, m, out, err);
	if (grads && !hps_msg_array(msg, 0, err))
		return HPS_MEMORY;
	if (!r->bsp)
		r->credit[from]++;
	m->grads = *msg;
	msg->n_frames = 0;
	m->state = MICRO_BACK;
	return HPS_OK;
}

/* --- any of them --- */

/* The neighbours may be told to begin before this replica is. */
static enum hps_status keep_early(struct hps_replica *r, struct hps_msg *msg, struct hps_err *err)
{
	uint64_t most = (uint64_t)STEPS_AHEAD * r->micros +
			((uint64_t)r->d->n_stages + 1) * (r->k_prev + r->k_next);
	void *q = r->early;

	if (r->n_early >= most)
		return hps_err_set(err, HPS_NET, "%s: too many before this replica has begun",
				   hps_msg_name(msg->head.type));
	if (r->n_early == r->cap_early) {
		size_t cap = r->cap_early ? 2 * r->cap_early : 8;

		if (hps_realloc(&q, cap, sizeof *r->early, err) != HPS_OK)
			return HPS_MEMORY;
		r->early = q;
		r->cap_early = cap;
	}
	r->early[r->n_early++] = *msg;
	msg->n_frames = 0;
	return HPS_OK;
}

/* Which replica of the neighbouring stage sent it? */
static bool sender(const struct hps_replica *r, uint32_t src, bool before, uint32_t *from)
{
	uint32_t n = before ? r->k_prev : r->k_next;

	if (!n)
		return false;
	*from = src - hps_replica_node(r, before ? r->o.stage - 1 : r->o.stage + 1, 0);
	return *from < n; /* wraps for a smaller src */
}

enum hps_status flow_take(struct hps_replica *r, struct hps_msg *msg, struct hps_outbox *out,
			  struct hps_err *err)
{
	bool back = msg->head.type == HPS_MSG_BACKWARD, eval = msg->head.flags & HPS_FLAG_EVAL;
	enum hps_status st;
	uint32_t from;

	if (!sender(r, msg->head.src, !back, &from))
		st = hps_err_set(err, HPS_NET, "%s from a replica that is no neighbour",
				 hps_msg_name(msg->head.type));
	else if (r->phase == PHASE_IDLE && !back)
		st = keep_early(r, msg, err);
	else if (r->phase != (eval ? PHASE_EVAL : PHASE_TRAIN))
		st = hps_err_set(err, HPS_NET, "%s at a time when none is due",
				 hps_msg_name(msg->head.type));
	else if (back)
		st = take_backward(r, msg, from, out, err);
	else if (msg->head.type == HPS_MSG_END)
		st = take_end(r, msg, from, out, err);
	else
		st = take_forward(r, msg, from, err);
	hps_msg_release(msg);
	return st;
}
