/* What a shard does with its part of one stage's dense parameters.
 *
 * Answers share the parameters by a counted reference instead of copying them; an update that
 * finds them still being sent works on a copy. Sums over replicas are made and applied a piece at
 * a time, so that they stay in the cache. */
#include "ps/shard_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/hot.h"
#include "base/mem.h"

enum { PIECE = 2048 }; /* floats summed, then applied */

/* --- shared parameters --- */

static struct dense_buf *buf_new(uint64_t n, struct hps_err *err)
{
	struct dense_buf *b = hps_calloc(1, sizeof(*b), err);

	if (!b)
		return NULL;
	b->param = hps_calloc_aligned(n, sizeof(float), err);
	if (!b->param) {
		free(b);
		return NULL;
	}
	atomic_init(&b->refs, 1);
	return b;
}

static void buf_unref(struct dense_buf *b)
{
	if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1) {
		free(b->param);
		free(b);
	}
}

static void frame_done(void *data, void *hint)
{
	(void)data;
	buf_unref(hint);
}

/* Parameters that no answer shares any more. */
static enum hps_status make_writable(struct shard_dense *d, struct hps_err *err)
{
	struct dense_buf *b;

	if (atomic_load_explicit(&d->buf->refs, memory_order_acquire) == 1)
		return HPS_OK;
	b = buf_new(d->n, err);
	if (!b)
		return HPS_MEMORY;
	memcpy(b->param, d->buf->param, d->n * sizeof(float));
	buf_unref(d->buf);
	d->buf = b;
	return HPS_OK;
}

/* --- life --- */

enum hps_status hps_shard_dense_init(struct shard_dense *d, const struct hps_job *job,
				     const struct hps_graph *g, uint32_t stage, uint64_t first,
				     uint64_t n, struct hps_err *err)
{
	const struct hps_deployed_stage *s = &job->deployment.stage[stage];

	d->stage = stage;
	d->n_replicas = s->n_replicas;
	d->first = first;
	d->n = n;
	d->ring = s->dense_sync == HPS_DENSE_RING;
	d->bsp = job->deployment.sync == HPS_BSP;
	d->optim = hps_optim_of(&job->model.train.optimizer);
	d->n_state = hps_optim_state_floats(&d->optim, n);
	d->buf = buf_new(n, err);
	d->state = hps_calloc_aligned(d->n_state, sizeof(float), err);
	d->due = hps_calloc((size_t)s->n_replicas * HPS_PS_AHEAD, sizeof(*d->due), err);
	if (!d->buf || !d->state || !d->due)
		return HPS_MEMORY;
	hps_param_init_range(g, first, n, job->deployment.seed, d->buf->param);
	hps_optim_state_init(&d->optim, d->state, n);
	return HPS_OK;
}

void hps_shard_dense_release(struct shard_dense *d)
{
	for (size_t i = 0; d->due && i < (size_t)d->n_replicas * HPS_PS_AHEAD; i++)
		hps_msg_release(&d->due[i]);
	free(d->due);
	free(d->state);
	buf_unref(d->buf);
}

/* --- pull and set --- */

enum hps_status hps_shard_dense_answer(struct shard_dense *d, uint32_t flags,
				       struct hps_msg *answer, struct hps_err *err)
{
	answer->head.aux = d->updates;
	atomic_fetch_add_explicit(&d->buf->refs, 1, memory_order_relaxed);
	answer->frame[answer->n_frames++] =
		(struct hps_frame){ d->buf->param, d->n * sizeof(float), frame_done, d->buf };
	if (!(flags & HPS_FLAG_STATE))
		return HPS_OK;
	return hps_msg_copy(answer, d->state, d->n_state * sizeof(float), err);
}

enum hps_status hps_shard_dense_set(struct shard_dense *d, struct hps_msg *m, struct hps_err *err)
{
	if (m->n_frames != 2 || m->frame[0].len != d->n * sizeof(float) ||
	    m->frame[1].len != d->n_state * sizeof(float))
		return hps_err_set(
			err, HPS_NET,
			"dense set: expected frames of %llu parameters and %zu floats of state",
			(unsigned long long)d->n, d->n_state);
	if (make_writable(d, err) != HPS_OK)
		return HPS_MEMORY;
	memcpy(d->buf->param, m->frame[0].data, m->frame[0].len);
	if (d->n_state)
		memcpy(d->state, m->frame[1].data, m->frame[1].len);
	d->updates = m->head.aux;
	return HPS_OK;
}

enum hps_status hps_shard_dense_put(struct shard_dense *d, uint64_t first, uint64_t n,
				    const float *param, const float *state, uint64_t updates,
				    struct hps_err *err)
{
	uint64_t begin = first > d->first ? first : d->first;
	uint64_t end = first + n < d->first + d->n ? first + n : d->first + d->n;

	if (begin >= end)
		return HPS_OK;
	if (make_writable(d, err) != HPS_OK)
		return HPS_MEMORY;
	memcpy(d->buf->param + (begin - d->first), param + (begin - first),
	       (end - begin) * sizeof(float));
	for (size_t v = 0; v < d->n_state / d->n; v++)
		memcpy(d->state + v * d->n + (begin - d->first), state + v * n + (begin - first),
		       (end - begin) * sizeof(float));
	if (updates > d->updates)
		d->updates = updates;
	return HPS_OK;
}

/* --- push --- */

HPS_HOT static void add(float *sum, const float *g, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum[i] += g[i];
}

/* One update from the sums of n_push pushes, in their order; those without samples may be empty. */
static enum hps_status update(struct shard_dense *d, struct hps_msg *push, uint32_t n_push,
			      struct hps_err *err)
{
	uint64_t count = 0;
	uint32_t sources = 0, last = 0;
	float sum[PIECE];

	for (uint32_t r = 0; r < n_push; r++) {
		count += push[r].head.count;
		if (push[r].frame[0].len) {
			sources++;
			last = r;
		}
	}
	if (!count)
		return HPS_OK;
	if (make_writable(d, err) != HPS_OK)
		return HPS_MEMORY;
	d->updates++;
	for (uint64_t i = 0; i < d->n; i += PIECE) {
		size_t n = d->n - i < PIECE ? d->n - i : PIECE;
		const float *grad = sum;
		bool first = true;

		for (uint32_t r = 0; sources > 1 && r < n_push; r++) {
			const float *g = push[r].frame[0].data;

			if (!push[r].frame[0].len)
				continue;
			if (first)
				memcpy(sum, g + i, n * sizeof(float));
			else
				add(sum, g + i, n);
			first = false;
		}
		if (sources == 1)
			grad = (const float *)push[last].frame[0].data + i;
		hps_optim_update(&d->optim, d->buf->param + i, d->n_state ? d->state + i : d->state,
				 d->n, grad, count, d->updates, n);
	}
	return HPS_OK;
}

static enum hps_status check_push(const struct shard_dense *d, const struct hps_msg *m,
				  struct hps_err *err)
{
	if (d->ring)
		return hps_err_set(err, HPS_NET, "dense push: stage %u has a ring", d->stage);
	if (m->head.flags)
		return hps_err_set(err, HPS_NET, "dense push: unexpected flags 0x%x",
				   m->head.flags);
	if (m->n_frames != 1 ||
	    (m->frame[0].len != d->n * sizeof(float) && (m->frame[0].len || m->head.count)))
		return hps_err_set(err, HPS_NET, "dense push: expected a frame of %llu floats",
				   (unsigned long long)d->n);
	return HPS_OK;
}

enum hps_status hps_shard_dense_push(struct shard_dense *d, struct hps_msg *m, uint32_t replica,
				     bool *updated, struct hps_err *err)
{
	uint32_t lane = (uint32_t)(m->head.step % HPS_PS_AHEAD);
	enum hps_status st = check_push(d, m, err);
	struct hps_msg *slot = &d->due[(size_t)lane * d->n_replicas + replica];

	if (st != HPS_OK)
		return st;
	if (d->bsp && m->head.step < d->step)
		return HPS_OK; /* of a step that is done: a repeat */
	if (d->bsp && m->head.step - d->step >= HPS_PS_AHEAD)
		return hps_err_set(err, HPS_NET, "dense push: step %llu is far from step %llu",
				   (unsigned long long)m->head.step, (unsigned long long)d->step);
	if (!hps_msg_array(m, 0, err))
		return HPS_MEMORY;
	if (!d->bsp) {
		*updated = true;
		return update(d, m, 1, err);
	}
	if (slot->n_frames)
		return HPS_OK; /* here already */
	*slot = *m;
	m->n_frames = 0;
	d->n_here[lane]++;
	while (st == HPS_OK && d->n_here[d->step % HPS_PS_AHEAD] == d->n_replicas) {
		struct hps_msg *due = d->due + (d->step % HPS_PS_AHEAD) * d->n_replicas;

		st = update(d, due, d->n_replicas, err);
		for (uint32_t r = 0; r < d->n_replicas; r++)
			hps_msg_release(&due[r]);
		d->n_here[d->step % HPS_PS_AHEAD] = 0;
		d->step++;
		*updated = true;
	}
	return st;
}
