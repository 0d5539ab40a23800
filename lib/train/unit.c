/* One unit of compute: the keys of a micro-batch, its forward, its backward. */
#include "train/replica_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The lookups of a micro-batch as the servers' client takes them; 0 without rows. */
uint32_t unit_lookup_rows(struct hps_replica *r, struct micro *m)
{
	if (!m->pass)
		return 0;
	for (uint32_t i = 0; i < r->n_lookups; i++) {
		const struct hps_lookup *l = hps_pass_lookup(m->pass, i);

		r->rows[i] = (struct hps_ps_rows){ .table = l->table,
						   .dim = l->dim,
						   .n = l->n_unique,
						   .key = l->key,
						   .value = l->unique,
						   .grad = l->grad };
	}
	return r->n_lookups;
}

enum hps_status unit_begin(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
			   struct hps_err *err)
{
	bool eval = r->phase == PHASE_EVAL;
	enum hps_status st = HPS_OK;

	if (m->marker) {
		m->state = MICRO_BACK;
		return HPS_OK;
	}
	if (m->rows) {
		m->pass = pass_get(r, err);
		if (!m->pass)
			return HPS_MEMORY;
		st = hps_pass_begin(m->pass, &m->in, err);
		if (st != HPS_OK)
			return st;
	}
	if (!r->n_lookups) {
		m->state = MICRO_READY;
		return HPS_OK;
	}
	m->state = MICRO_PULL;
	/* In evaluation all pulls are of one version; the epoch's place carries the step. */
	return hps_ps_pull(r->ps, eval ? (uint32_t)m->step : r->epoch, eval ? r->cur : m->step,
			   m->mb, eval ? HPS_FLAG_EVAL : 0, r->rows, unit_lookup_rows(r, m), out,
			   err);
}

/* --- the last stage --- */

/* what: "loss", "a score" */
static enum hps_status not_finite(const struct hps_replica *r, const struct micro *m,
				  const char *what, double v, struct hps_err *err)
{
	char place[400];

	micro_place(r, m, place, sizeof place);
	hps_err_set(err, HPS_BAD_INPUT, "%s is %s (%s)", what, isnan(v) ? "nan" : "infinite",
		    place);
	hps_err_at(err, "step %llu, micro-batch %u", (unsigned long long)m->step, m->mb);
	hps_err_hint(err, "a smaller learning rate, or a look at those lines, may help");
	return HPS_BAD_INPUT;
}

static enum hps_status tell_loss(struct hps_replica *r, struct micro *m, struct hps_err *err)
{
	struct hps_replica_event e = {
		.kind = HPS_REPLICA_LOSS,
		.epoch = r->epoch,
		.step = m->step,
		.mb = m->mb,
		.count = m->rows,
		.loss = m->rows ? hps_pass_loss(m->pass) : 0,
	};

	if (!isfinite(e.loss))
		return not_finite(r, m, "loss", e.loss, err);
	hps_replica_tell(r, &e);
	m->state = MICRO_BACK;
	return HPS_OK;
}

static enum hps_status tell_scores(struct hps_replica *r, struct micro *m, struct hps_err *err)
{
	struct hps_replica_event e = {
		.kind = HPS_REPLICA_SCORES,
		.epoch = r->epoch,
		.step = m->step,
		.mb = m->mb,
		.count = m->rows,
		.row = m->in.row,
		.label = m->in.label,
		.score = m->rows ? hps_pass_scores(m->pass) : NULL,
	};

	/* the last update may have spoilt the model: no loss has told of it */
	for (uint32_t i = 0; i < m->rows; i++)
		if (!isfinite(e.score[i]))
			return not_finite(r, m, "a score", e.score[i], err);
	hps_replica_tell(r, &e);
	return HPS_OK;
}

/* --- forward --- */

enum hps_status unit_evaluated(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
			       struct hps_err *err)
{
	enum hps_status st = flow_send_back(r, m, out, err);

	micro_release(r, m);
	r->n_done++;
	return st == HPS_OK ? hps_replica_check_end(r, out, err) : st;
}

enum hps_status unit_forward(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
			     struct hps_err *err)
{
	bool eval = r->phase == PHASE_EVAL;
	enum hps_status st;

	m->w = weights_hold(r->w);
	if (m->rows)
		hps_pass_forward(m->pass, m->w->param, !eval);
	if (!r->last) {
		m->state = MICRO_AWAY;
		return flow_send_forward(r, m, out, err);
	}
	if (!eval)
		return tell_loss(r, m, err);
	st = tell_scores(r, m, err);
	return st == HPS_OK ? unit_evaluated(r, m, out, err) : st;
}

/* --- backward --- */

enum hps_status unit_backward(struct hps_replica *r, struct micro *m, struct hps_outbox *out,
			      struct hps_err *err)
{
	const float *grad_out = m->grads.n_frames ? m->grads.frame[0].data : NULL;
	enum hps_status st = HPS_OK;

	if (m->rows)
		hps_pass_backward(m->pass, m->w->param, grad_out, weights_grads(r));
	r->grad_count += m->rows;
	/* first what others wait for */
	st = flow_send_back(r, m, out, err);
	if (st == HPS_OK && r->n_lookups && !m->marker)
		st = hps_ps_push(r->ps, r->epoch, m->step, m->mb, m->rows, r->rows,
				 unit_lookup_rows(r, m), out, err);
	micro_release(r, m);
	if (st != HPS_OK)
		return st;
	r->n_back++;
	if (r->bsp ? ++r->done == (r->own ? r->own : 1) : r->n_back == r->d->micro_batches) {
		r->done = 0;
		st = weights_push(r, out, err);
	}
	return st == HPS_OK ? hps_replica_check_end(r, out, err) : st;
}
