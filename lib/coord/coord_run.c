/* What the job is at: epochs, stopping, saving, leaving. The step clock is coord_step.c's,
 * evaluation coord_eval.c's. */
#include "coord/coord_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* --- phases --- */

static void clear_reports(struct hps_coord *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		c->peer[i].reported = c->peer[i].held = false;
	c->holding = false;
	c->hold_step = 0;
}

bool hps_coord_all_reported(const struct hps_coord *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (c->peer[i].work && !c->peer[i].left && !c->peer[i].reported)
			return false;
	return true;
}

struct hps_doc *hps_coord_epoch_body(uint32_t epoch, uint64_t step)
{
	struct hps_doc *d = hps_doc_object();

	if (!d || hps_doc_put(d, "epoch", hps_doc_int(epoch)) ||
	    hps_doc_put(d, "step", hps_doc_u64(step))) {
		hps_doc_free(d);
		return NULL;
	}
	return d;
}

static enum hps_status begin_epoch(struct hps_coord *c, double now_s, struct hps_outbox *out,
				   struct hps_err *err)
{
	struct hps_doc *d = hps_coord_epoch_body(c->epoch, c->base);

	if (!d)
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	c->phase = PHASE_TRAINING;
	clear_reports(c);
	c->completed = c->leased = 0;
	c->n_chunks = HPS_NONE;
	c->has_agreed = false;
	c->epoch_loss = 0;
	c->epoch_samples = 0;
	c->epoch_began_s = now_s;
	return hps_coord_tell_all(c, true, HPS_CTL_EPOCH, d, out, err);
}

static enum hps_status begin_finish(struct hps_coord *c, struct hps_outbox *out,
				    struct hps_err *err)
{
	struct hps_doc *d = hps_coord_epoch_body(c->epoch, c->base);

	if (!d)
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	c->phase = PHASE_FINISHING;
	clear_reports(c);
	return hps_coord_tell_all(c, true, HPS_CTL_FINISH, d, out, err);
}

enum hps_status hps_coord_go(struct hps_coord *c, double now_s, struct hps_outbox *out,
			     struct hps_err *err)
{
	struct hps_doc *d = hps_coord_epoch_body(0, c->base);
	enum hps_status st;

	if (!d)
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	st = hps_coord_tell_all(c, false, HPS_CTL_GO, d, out, err);
	if (st != HPS_OK)
		return st;
	if (c->mode != MODE_TRAIN)
		return hps_coord_begin_eval(c, out, err);
	return c->epochs ? begin_epoch(c, now_s, out, err) : begin_finish(c, out, err);
}

enum hps_status hps_coord_next(struct hps_coord *c, double now_s, struct hps_outbox *out,
			       struct hps_err *err)
{
	if (c->mode != MODE_TRAIN) {
		c->phase = PHASE_LEAVING;
		return hps_coord_say_done(c, out, err);
	}
	c->epoch++;
	if (c->epoch < c->epochs && !c->interrupted)
		return begin_epoch(c, now_s, out, err);
	return begin_finish(c, out, err);
}

/* --- the end of an epoch --- */

static enum hps_status end_epoch(struct hps_coord *c, double now_s, struct hps_outbox *out,
				 struct hps_err *err)
{
	uint64_t steps = c->d->sync == HPS_ASP ? c->completed : c->agreed;

	if (c->n_open || c->completed != steps)
		return hps_err_set(err, HPS_NET,
				   "the epoch has ended after %llu steps, losses are known of %llu",
				   (unsigned long long)steps, (unsigned long long)c->completed);
	if (!c->epoch_samples && !c->interrupted)
		return hps_err_set(err, HPS_BAD_INPUT, "the epoch had no rows to train on");
	c->train_s += now_s - c->epoch_began_s;
	c->base += c->d->sync == HPS_ASP ? c->leased : steps;
	c->epochs_done += !c->interrupted;
	if (c->has_test && !c->interrupted)
		return hps_coord_begin_eval(c, out, err);
	return hps_coord_next(c, now_s, out, err);
}

enum hps_status hps_coord_epoch_done(struct hps_coord *c, struct peer *p,
				     const struct hps_doc *body, double now_s,
				     struct hps_outbox *out, struct hps_err *err)
{
	uint64_t epoch, steps, skipped;

	if (hps_coord_u64(body, "epoch", &epoch, err) ||
	    hps_coord_u64(body, "steps", &steps, err) ||
	    hps_coord_u64(body, "skipped", &skipped, err))
		return HPS_NET;
	if (c->phase != PHASE_TRAINING || epoch != c->epoch || !p->work || p->reported)
		return hps_err_set(err, HPS_NET, "ends epoch %llu, which it is not in",
				   (unsigned long long)epoch);
	if (c->d->sync != HPS_ASP && c->has_agreed && steps != c->agreed) {
		hps_err_set(err, HPS_BAD_INPUT, "the epoch has %llu steps here, elsewhere %llu",
			    (unsigned long long)steps, (unsigned long long)c->agreed);
		hps_err_hint(err, "give every hps-work of a job the same data");
		return HPS_BAD_INPUT;
	}
	c->agreed = steps;
	c->has_agreed = true;
	p->reported = true;
	p->skipped_train = skipped;
	return hps_coord_all_reported(c) ? end_epoch(c, now_s, out, err) : HPS_OK;
}

/* --- stopping early --- */

enum hps_status hps_coord_hold(struct hps_coord *c, struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	if (c->phase == PHASE_TRAINING && c->d->sync == HPS_ASP)
		return HPS_OK; /* there are no more leases: that is enough */
	c->holding = true;
	c->hold_step = 0;
	for (size_t i = 0; i < c->n_peers && st == HPS_OK; i++)
		if (c->peer[i].first_stage && !c->peer[i].left)
			st = hps_coord_tell(c, &c->peer[i], HPS_CTL_HOLD, NULL, out, err);
	return st;
}

enum hps_status hps_coord_held(struct hps_coord *c, struct peer *p, const struct hps_doc *body,
			       struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	struct hps_doc *d;
	uint64_t step;

	if (hps_coord_u64(body, "step", &step, err))
		return HPS_NET;
	if (!c->holding)
		return HPS_OK; /* the phase ended before it answered */
	if (!p->first_stage || p->held)
		return hps_err_set(err, HPS_NET, "holds what it was not asked to");
	p->held = true;
	if (step > c->hold_step)
		c->hold_step = step;
	for (size_t i = 0; i < c->n_peers; i++)
		if (c->peer[i].first_stage && !c->peer[i].left && !c->peer[i].held)
			return HPS_OK;
	c->holding = false;
	d = hps_coord_epoch_body(c->epoch, c->hold_step);
	if (!d)
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	for (size_t i = 0; i < c->n_peers && st == HPS_OK; i++)
		if (c->peer[i].first_stage && !c->peer[i].left)
			st = hps_coord_tell(c, &c->peer[i], HPS_CTL_STOP, hps_doc_copy(d), out,
					    err);
	hps_doc_free(d);
	return st;
}

/* --- finishing, saving, leaving --- */

static enum hps_status ask_to_save(struct hps_coord *c, struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	c->phase = PHASE_SAVING;
	clear_reports(c);
	for (size_t i = 0; i < c->n_peers && st == HPS_OK; i++)
		if (!c->peer[i].work && !c->peer[i].left)
			st = hps_coord_tell(c, &c->peer[i], HPS_CTL_SAVE, NULL, out, err);
	return st;
}

bool hps_coord_can_save(const struct hps_coord *c, const struct hps_err *why)
{
	if (c->phase != PHASE_EVALUATING || c->mode != MODE_TRAIN || !c->scores.n ||
	    (why->status != HPS_BAD_INPUT && why->status != HPS_IO))
		return false;
	for (uint32_t s = 0; s < c->d->n_stages; s++) /* a ring's are with its replicas */
		if (c->d->stage[s].dense_sync == HPS_DENSE_RING)
			return false;
	return true;
}

enum hps_status hps_coord_fail_saved(struct hps_coord *c, const struct peer *culprit,
				     const struct hps_err *why, struct hps_outbox *out,
				     struct hps_err *err)
{
	enum hps_status st;

	c->outcome = *why;
	hps_err_at(&c->outcome, "%s", culprit->name);
	st = hps_coord_tell_all(c, true, HPS_CTL_ABORT, hps_talk_error(&c->outcome), out, err);
	for (size_t i = 0; i < c->n_peers; i++)
		c->peer[i].left |= c->peer[i].work;
	return st == HPS_OK ? ask_to_save(c, out, err) : st;
}

enum hps_status hps_coord_finished(struct hps_coord *c, struct peer *p, struct hps_outbox *out,
				   struct hps_err *err)
{
	if (c->phase != PHASE_FINISHING || !p->work || p->reported)
		return hps_err_set(err, HPS_NET, "has finished what it was not asked to");
	p->reported = true;
	if (!hps_coord_all_reported(c))
		return HPS_OK;
	return ask_to_save(c, out, err);
}

static enum hps_status leave_if_saved(struct hps_coord *c, struct hps_outbox *out,
				      struct hps_err *err)
{
	if (!c->self_saved)
		return HPS_OK;
	for (size_t i = 0; i < c->n_peers; i++)
		if (!c->peer[i].work && !c->peer[i].left && !c->peer[i].reported)
			return HPS_OK;
	if (c->outcome.status != HPS_OK) {
		c->phase = PHASE_OVER;
		return hps_coord_tell_all(c, false, HPS_CTL_ABORT, hps_talk_error(&c->outcome), out,
					  err);
	}
	c->phase = PHASE_LEAVING;
	return hps_coord_say_done(c, out, err);
}

static void add_table(struct hps_coord_table *sum, const struct hps_coord_table *t)
{
	sum->rows += t->rows;
	sum->bytes += t->bytes;
	sum->refused += t->refused;
}

enum hps_status hps_coord_saved(struct hps_coord *c, const char *path,
				const struct hps_coord_table *table, double now_s,
				struct hps_outbox *out, struct hps_err *err)
{
	(void)now_s;
	if (c->phase != PHASE_SAVING || c->self_saved)
		return HPS_OK;
	if (path) {
		c->saved = hps_strdup(path, err);
		if (!c->saved)
			return HPS_MEMORY;
	}
	for (uint32_t i = 0; i < c->job->model.n_tables; i++)
		add_table(&c->table[i], &table[i]);
	c->self_saved = true;
	return leave_if_saved(c, out, err);
}

enum hps_status hps_coord_took_saved(struct hps_coord *c, struct peer *p,
				     const struct hps_doc *body, struct hps_outbox *out,
				     struct hps_err *err)
{
	struct hps_at root = hps_at_root(body, "saved"), list = hps_at_member(&root, "tables");

	if (c->phase != PHASE_SAVING || p->work || p->reported)
		return hps_err_set(err, HPS_NET, "has saved what it was not asked to");
	if (hps_at_array(&list, err) || hps_at_count(&list) != c->job->model.n_tables)
		return hps_err_set(err, HPS_NET, "saved: expected %u tables",
				   c->job->model.n_tables);
	for (uint32_t i = 0; i < c->job->model.n_tables; i++) {
		struct hps_at at = hps_at_item(&list, i);
		struct hps_coord_table t;

		if (hps_coord_u64(at.node, "rows", &t.rows, err) ||
		    hps_coord_u64(at.node, "bytes", &t.bytes, err) ||
		    hps_coord_u64(at.node, "refused", &t.refused, err))
			return HPS_NET;
		add_table(&c->table[i], &t);
	}
	p->reported = true;
	return leave_if_saved(c, out, err);
}

static struct hps_doc *tables_doc(const struct hps_coord *c)
{
	struct hps_doc *d = hps_doc_object();

	for (uint32_t i = 0; d && i < c->job->model.n_tables; i++) {
		struct hps_doc *t = hps_doc_object();

		if (!t || hps_doc_put(t, "rows", hps_doc_u64(c->table[i].rows)) ||
		    hps_doc_put(t, "bytes", hps_doc_u64(c->table[i].bytes)) ||
		    hps_doc_put(t, "refused", hps_doc_u64(c->table[i].refused))) {
			hps_doc_free(t);
			hps_doc_free(d);
			return NULL;
		}
		if (hps_doc_put(d, c->job->model.table[i].name, t)) {
			hps_doc_free(d);
			return NULL;
		}
	}
	return d;
}

static int put_totals(const struct hps_coord *c, struct hps_doc *d)
{
	uint64_t skipped = 0;
	bool rate = c->train_s > 0 && c->samples;

	for (size_t i = 0; i < c->n_peers; i++)
		skipped += c->peer[i].skipped_train + c->peer[i].skipped_test;
	return hps_doc_put(d, "epochs", hps_doc_int(c->epochs_done)) ||
	       hps_doc_put(d, "steps", hps_doc_u64(c->steps)) ||
	       hps_doc_put(d, "samples", hps_doc_u64(c->samples)) ||
	       hps_doc_put(d, "seconds", hps_doc_double(c->train_s)) ||
	       hps_doc_put(d, "samples_per_s",
			   rate ? hps_doc_double((double)c->samples / c->train_s)
				: hps_doc_null()) ||
	       hps_doc_put(d, "loss",
			   c->epoch_samples
				   ? hps_doc_double(c->epoch_loss / (double)c->epoch_samples)
				   : hps_doc_null()) ||
	       hps_doc_put(d, "skipped", hps_doc_u64(skipped));
}

enum hps_status hps_coord_say_done(struct hps_coord *c, struct hps_outbox *out, struct hps_err *err)
{
	struct hps_doc *d = hps_doc_object();

	if (!d || put_totals(c, d) ||
	    hps_doc_put(d, "saved", c->saved ? hps_doc_string(c->saved) : hps_doc_null()) ||
	    (c->self_saved && hps_doc_put(d, "tables", tables_doc(c))) ||
	    (c->interrupted && hps_doc_put(d, "interrupted", hps_doc_bool(true)))) {
		hps_doc_free(d);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	return hps_coord_tell_all(c, false, HPS_CTL_DONE, d, out, err);
}
