/* What evaluation gathers: scores into exact metrics, or, to predict, into input order. */
#include "coord/coord_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A generous guess at the seconds that metrics of a row take: the sort dominates. */
static const double measure_row_s = 2e-6;

static uint32_t eval_micros(const struct hps_coord *c)
{
	return c->d->micro_batches * c->d->stage[0].n_replicas;
}

void hps_coord_drop_scores(struct hps_coord *c)
{
	for (size_t i = 0; i < c->n_waiting; i++) {
		for (uint32_t k = 0; k < eval_micros(c); k++)
			hps_msg_release(&c->waiting[i].part[k]);
		free(c->waiting[i].part);
	}
	c->n_waiting = 0;
	hps_scores_release(&c->scores);
	c->scores = (struct hps_scores){ 0 };
}

enum hps_status hps_coord_begin_eval(struct hps_coord *c, struct hps_outbox *out,
				     struct hps_err *err)
{
	struct hps_doc *d = hps_doc_object();

	c->phase = PHASE_EVALUATING;
	c->next_scores = 0;
	c->holding = false;
	for (size_t i = 0; i < c->n_peers; i++)
		c->peer[i].reported = c->peer[i].held = false;
	if (!d || hps_doc_put(d, "epoch", hps_doc_int(c->epoch)) ||
	    hps_doc_put(d, "step", hps_doc_u64(c->base)) ||
	    (c->mode == MODE_PREDICT && hps_doc_put(d, "window", hps_doc_int(PREDICT_WINDOW)))) {
		hps_doc_free(d);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	return hps_coord_tell_all(c, true, HPS_CTL_EVAL, d, out, err);
}

/* Raw frames after the body: rows (u64), scores (f32), labels (f32), all of one length. */
static enum hps_status check_frames(const struct hps_coord *c, const struct hps_msg *m, size_t *n,
				    struct hps_err *err)
{
	if (m->n_frames != 4)
		return hps_err_set(err, HPS_NET, "scores: expected 4 frames, got %u", m->n_frames);
	*n = m->frame[1].len / sizeof(uint64_t);
	if (m->frame[1].len % sizeof(uint64_t) || *n > c->d->batch ||
	    m->frame[2].len != *n * sizeof(float) || m->frame[3].len != *n * sizeof(float))
		return hps_err_set(err, HPS_NET, "scores: frames of %zu, %zu and %zu bytes",
				   m->frame[1].len, m->frame[2].len, m->frame[3].len);
	return HPS_OK;
}

/* --- predict: in order of step and micro-batch --- */

static struct open_scores *find_waiting(struct hps_coord *c, uint64_t step, struct hps_err *err)
{
	struct open_scores *o;
	void *q = c->waiting;

	for (size_t i = 0; i < c->n_waiting; i++)
		if (c->waiting[i].step == step)
			return &c->waiting[i];
	if (hps_realloc(&q, c->n_waiting + 1, sizeof *c->waiting, err) != HPS_OK)
		return NULL;
	c->waiting = q;
	o = &c->waiting[c->n_waiting];
	*o = (struct open_scores){ .step = step };
	o->part = hps_calloc(eval_micros(c), sizeof *o->part, err);
	if (!o->part)
		return NULL;
	c->n_waiting++;
	return o;
}

/* Hand the parts of a complete step to the printing process. */
static enum hps_status pass_on(struct hps_coord *c, struct open_scores *o, struct hps_outbox *out,
			       struct hps_err *err)
{
	struct peer *p = hps_coord_printer(c);
	enum hps_status st = HPS_OK;

	for (uint32_t k = 0; k < eval_micros(c); k++) {
		struct hps_msg *part = &o->part[k];
		struct hps_doc *d;
		struct hps_msg m;

		d = hps_doc_object();
		if (!d || hps_doc_put(d, "step", hps_doc_u64(o->step)) ||
		    hps_doc_put(d, "last", hps_doc_bool(k + 1 == eval_micros(c)))) {
			hps_doc_free(d);
			return hps_err_set(err, HPS_MEMORY, "out of memory");
		}
		st = hps_talk_make(HPS_CTL_SCORES, d, &m, err);
		if (st != HPS_OK)
			return st;
		for (uint32_t f = 1; f < part->n_frames; f++) {
			m.frame[m.n_frames++] = part->frame[f];
			part->frame[f] = (struct hps_frame){ 0 };
		}
		hps_msg_release(part);
		if (!p) {
			hps_msg_release(&m);
			continue;
		}
		st = hps_outbox_put(out, p->number, &m, err);
		if (st != HPS_OK)
			return st;
	}
	free(o->part);
	*o = c->waiting[--c->n_waiting];
	return HPS_OK;
}

static enum hps_status keep_for_order(struct hps_coord *c, uint64_t step, uint64_t mb,
				      struct hps_msg *m, struct hps_outbox *out,
				      struct hps_err *err)
{
	struct open_scores *o;
	enum hps_status st;

	if (step < c->next_scores || step - c->next_scores >= 2 * PREDICT_WINDOW)
		return hps_err_set(err, HPS_NET, "scores of step %llu, expected %llu or soon after",
				   (unsigned long long)step, (unsigned long long)c->next_scores);
	o = find_waiting(c, step, err);
	if (!o)
		return HPS_MEMORY;
	if (o->part[mb].head.type)
		return hps_err_set(err, HPS_NET, "step %llu, micro-batch %llu: scores came twice",
				   (unsigned long long)step, (unsigned long long)mb);
	o->part[mb] = *m;
	m->n_frames = 0;
	o->seen++;
	for (size_t i = 0; i < c->n_waiting;) {
		o = &c->waiting[i];
		if (o->step != c->next_scores || o->seen < eval_micros(c)) {
			i++;
			continue;
		}
		st = pass_on(c, o, out, err);
		if (st != HPS_OK)
			return st;
		c->next_scores++;
		i = 0;
	}
	return HPS_OK;
}

enum hps_status hps_coord_printed(struct hps_coord *c, const struct hps_doc *body,
				  struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	uint64_t step;

	if (hps_coord_u64(body, "step", &step, err))
		return HPS_NET;
	if (c->mode != MODE_PREDICT || step >= c->next_scores)
		return hps_err_set(err, HPS_NET, "has printed what it was not given");
	for (size_t i = 0; i < c->n_peers && st == HPS_OK; i++) {
		struct peer *p = &c->peer[i];
		struct hps_doc *d;

		if (!p->first_stage || p->left)
			continue;
		d = hps_doc_object();
		if (!d || hps_doc_put(d, "step", hps_doc_u64(step + 1 + PREDICT_WINDOW))) {
			hps_doc_free(d);
			return hps_err_set(err, HPS_MEMORY, "out of memory");
		}
		st = hps_coord_tell(c, p, HPS_CTL_WINDOW, d, out, err);
	}
	return st;
}

/* --- evaluation --- */

enum hps_status hps_coord_took_scores(struct hps_coord *c, struct peer *p,
				      const struct hps_doc *body, struct hps_msg *m,
				      struct hps_outbox *out, struct hps_err *err)
{
	const uint64_t *row;
	const float *score, *label;
	uint64_t step, mb;
	enum hps_status st;
	size_t n = 0;

	if (c->phase != PHASE_EVALUATING || !p->last_stage || p->reported)
		return hps_err_set(err, HPS_NET, "scores at a time when nothing is evaluated");
	if (hps_coord_u64(body, "step", &step, err) || hps_coord_u64(body, "mb", &mb, err))
		return HPS_NET;
	if (mb >= eval_micros(c))
		return hps_err_set(err, HPS_NET, "scores of micro-batch %llu of %u",
				   (unsigned long long)mb, eval_micros(c));
	st = check_frames(c, m, &n, err);
	if (st != HPS_OK)
		return st;
	if (c->mode == MODE_PREDICT)
		return keep_for_order(c, step, mb, m, out, err);
	if (!n)
		return HPS_OK;
	row = hps_msg_array(m, 1, err);
	score = hps_msg_array(m, 2, err);
	label = hps_msg_array(m, 3, err);
	if (!row || !score || !label)
		return HPS_MEMORY;
	return hps_scores_add(&c->scores, row, score, label, n, err);
}

enum hps_status hps_coord_eval_done(struct hps_coord *c, struct peer *p, const struct hps_doc *body,
				    double now_s, struct hps_outbox *out, struct hps_err *err)
{
	struct hps_doc *d;
	uint64_t skipped;

	if (hps_coord_u64(body, "skipped", &skipped, err))
		return HPS_NET;
	if (c->phase != PHASE_EVALUATING || !p->work || p->reported)
		return hps_err_set(err, HPS_NET, "ends an evaluation that it is not in");
	p->reported = true;
	p->skipped_test = skipped;
	if (!hps_coord_all_reported(c))
		return HPS_OK;
	if (c->mode == MODE_PREDICT || c->interrupted) {
		hps_coord_drop_scores(c);
		return hps_coord_next(c, now_s, out, err);
	}
	c->phase = PHASE_MEASURING;
	d = hps_doc_object();
	if (!d || hps_doc_put(d, "busy_s", hps_doc_double((double)c->scores.n * measure_row_s))) {
		hps_doc_free(d);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	return hps_coord_tell_all(c, false, HPS_CTL_HEARTBEAT, d, out, err);
}

static int put_measure(struct hps_doc *d, const char *key, const char *reason_key,
		       const struct hps_measure *m)
{
	if (!m->undefined)
		return hps_doc_put(d, key, hps_doc_double(m->value));
	return hps_doc_put(d, key, hps_doc_null()) ||
	       hps_doc_put(d, reason_key, hps_doc_string(m->undefined));
}

enum hps_status hps_coord_measure(struct hps_coord *c, double now_s, struct hps_outbox *out,
				  struct hps_err *err)
{
	struct peer *p = hps_coord_printer(c);
	struct hps_err why = { 0 };
	struct hps_metrics x;
	double busy_s = (double)c->scores.n * measure_row_s;
	enum hps_status st;
	struct hps_doc *d;

	st = hps_scores_metrics(&c->scores, &x, &why);
	hps_coord_drop_scores(c);
	if (st != HPS_OK)
		return hps_coord_abort(c, NULL, &why, out, err);
	for (size_t i = 0; i < c->n_peers; i++)
		c->peer[i].heard_s = now_s + busy_s; /* nobody was listened to meanwhile */
	d = hps_doc_object();
	if (!d || hps_doc_put(d, "epoch", hps_doc_int(c->epoch)) ||
	    hps_doc_put(d, "rows", hps_doc_u64(x.rows)) ||
	    hps_doc_put(d, "positives", hps_doc_u64(x.positives)) ||
	    put_measure(d, "auc", "auc_reason", &x.auc) ||
	    put_measure(d, "logloss", "logloss_reason", &x.logloss) ||
	    put_measure(d, "ne", "ne_reason", &x.ne) ||
	    put_measure(d, "calibration", "calibration_reason", &x.calibration)) {
		hps_doc_free(d);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	if (p)
		st = hps_coord_tell(c, p, HPS_CTL_EVALED, d, out, err);
	else
		hps_doc_free(d);
	return st == HPS_OK ? hps_coord_next(c, now_s, out, err) : st;
}
