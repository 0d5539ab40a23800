/* Which version of the stage's parameters is here: through the servers or by ring. */
#include "train/replica_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ps/shard.h"

/* --- versions --- */

static struct weights *weights_new(uint64_t n_floats, struct hps_err *err)
{
	struct weights *w = hps_calloc(1, sizeof *w, err);

	if (!w)
		return NULL;
	w->refs = 1;
	/* never empty: a stage without parameters still hands a pointer around */
	w->param = hps_calloc_aligned(n_floats ? n_floats : 1, sizeof *w->param, err);
	if (!w->param) {
		free(w);
		return NULL;
	}
	return w;
}

struct weights *weights_hold(struct weights *w)
{
	w->refs++;
	return w;
}

void weights_drop(struct weights *w)
{
	if (!w || --w->refs)
		return;
	free(w->param);
	free(w);
}

enum hps_status weights_init(struct hps_replica *r, struct hps_err *err)
{
	size_t n = r->n_floats ? r->n_floats : 1;

	r->optim = hps_optim_of(&r->o.job->model.train.optimizer);
	r->version = HPS_NO_STEP;
	r->w = weights_new(r->n_floats, err);
	r->grads = hps_calloc_aligned(n, sizeof *r->grads, err);
	if (!r->w || !r->grads)
		return HPS_MEMORY;
	if (!r->ring_sync)
		return HPS_OK;
	r->state =
		hps_calloc_aligned(hps_optim_state_floats(&r->optim, n) + 1, sizeof *r->state, err);
	if (!r->state)
		return HPS_MEMORY;
	if (!r->n_floats)
		return HPS_OK;
	return hps_ring_new(r->o.replica, r->k,
			    hps_replica_node(r, r->o.stage, (r->o.replica + 1) % r->k), r->n_floats,
			    &r->ring, err);
}

void weights_release(struct hps_replica *r)
{
	weights_drop(r->w);
	weights_drop(r->coming);
	hps_ring_free(r->ring);
	free(r->state);
	free(r->grads);
}

bool weights_ready(const struct hps_replica *r, uint64_t step)
{
	if (!r->n_floats)
		return true;
	if (!r->bsp)
		return r->version != HPS_NO_STEP;
	return r->version == (r->phase == PHASE_EVAL ? r->cur : step);
}

/* --- from the servers --- */

static enum hps_status pull(struct hps_replica *r, uint64_t step, struct hps_outbox *out,
			    struct hps_err *err)
{
	if (r->pulling) {
		r->pull_again = true;
		return HPS_OK;
	}
	r->pulling = true;
	if (r->bsp)
		return hps_ps_dense_pull(r->ps, step, 0, r->w->param, NULL, out, err);
	/* micro-batches in flight still need the version that is here */
	r->coming = weights_new(r->n_floats, err);
	if (!r->coming)
		return HPS_MEMORY;
	return hps_ps_dense_pull(r->ps, step, 0, r->coming->param, NULL, out, err);
}

enum hps_status weights_start(struct hps_replica *r, uint64_t step, struct hps_outbox *out,
			      struct hps_err *err)
{
	r->cur = step;
	if (!r->n_floats)
		return HPS_OK;
	if (!r->ring_sync)
		return pull(r, step, out, err);
	r->pulling = true;
	return hps_ps_dense_pull(r->ps, step, HPS_FLAG_STATE, r->w->param, r->state, out, err);
}

enum hps_status weights_refresh(struct hps_replica *r, struct hps_outbox *out, struct hps_err *err)
{
	if (r->bsp || r->ring_sync || !r->n_floats)
		return HPS_OK;
	r->version = HPS_NO_STEP;
	return pull(r, 0, out, err);
}

enum hps_status weights_came(struct hps_replica *r, const struct hps_ps_event *ev,
			     struct hps_outbox *out, struct hps_err *err)
{
	r->pulling = false;
	if (ev->flags & HPS_FLAG_STATE)
		r->updates = ev->updates;
	if (r->coming) {
		weights_drop(r->w);
		r->w = r->coming;
		r->coming = NULL;
	}
	if (r->pull_again) {
		r->pull_again = false;
		return pull(r, ev->step, out, err);
	}
	r->version = ev->step;
	return HPS_OK;
}

/* --- gradients --- */

float *weights_grads(struct hps_replica *r)
{
	if (!r->grads_used)
		memset(r->grads, 0, r->n_floats * sizeof *r->grads);
	r->grads_used = true;
	return r->grads;
}

enum hps_status weights_update(struct hps_replica *r, struct hps_err *err)
{
	uint64_t count = hps_ring_count(r->ring);

	if (!r->bsp) { /* the version that is here stays as it is for those in flight */
		struct weights *w = weights_new(r->n_floats, err);

		if (!w)
			return HPS_MEMORY;
		memcpy(w->param, r->w->param, r->n_floats * sizeof *w->param);
		weights_drop(r->w);
		r->w = w;
	}
	if (count)
		hps_optim_update(&r->optim, r->w->param, r->state, r->n_floats, r->grads, count,
				 ++r->updates, r->n_floats);
	r->version = r->bsp ? r->cur : 0;
	r->grads_used = false;
	r->update_due = false;
	return HPS_OK;
}

/* The ring is through. In bsp the update is a unit of work of its own, after what is in the
 * outbox has left: the servers work meanwhile. */
static enum hps_status summed(struct hps_replica *r, struct hps_err *err)
{
	r->update_due = r->bsp;
	return r->bsp ? HPS_OK : weights_update(r, err);
}

static enum hps_status push_ring(struct hps_replica *r, uint64_t step, struct hps_outbox *out,
				 struct hps_err *err)
{
	enum hps_status st;
	bool done;

	r->version = r->bsp ? HPS_NO_STEP : r->version;
	st = hps_ring_start(r->ring, step, weights_grads(r), r->grad_count, out, &done, err);
	return st == HPS_OK && done ? summed(r, err) : st;
}

enum hps_status weights_ring(struct hps_replica *r, struct hps_msg *m, struct hps_outbox *out,
			     struct hps_err *err)
{
	enum hps_status st;
	bool done;

	if (!r->ring) {
		hps_msg_release(m);
		return hps_err_set(err, HPS_NET, "a ring message to a stage without a ring");
	}
	st = hps_ring_message(r->ring, m, out, &done, err);
	return st == HPS_OK && done ? summed(r, err) : st;
}

enum hps_status weights_push(struct hps_replica *r, struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	uint64_t step = r->bsp ? r->cur++ : r->pushes++;

	if (r->n_floats && r->ring_sync) {
		st = push_ring(r, step, out, err);
	} else if (r->n_floats) {
		st = hps_ps_dense_push(r->ps, step, (uint32_t)r->grad_count, r->grads, out, err);
		r->grads_used = false;
		if (r->bsp)
			r->version = HPS_NO_STEP;
		if (st == HPS_OK)
			st = pull(r, r->bsp ? r->cur : step + 1, out, err);
	}
	r->grad_count = 0;
	r->n_back = 0;
	return st;
}
