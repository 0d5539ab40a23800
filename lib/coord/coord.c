/* Who is in the job, who is dead, and how it ends: messages and time. Who comes in is
 * coord_join.c's; what the job is at, once all are in, coord_run.c's. */
#include "coord/coord_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const double heartbeat_s = 0.5;

/* --- life --- */

enum hps_status hps_coord_new(const struct hps_coord_opts *o, double now_s, struct hps_coord **out,
			      struct hps_err *err)
{
	struct hps_coord *c = hps_calloc(1, sizeof *c, err);
	const struct hps_deployment *d = &o->job->deployment;

	if (!c)
		return HPS_MEMORY;
	c->job = o->job;
	c->d = d;
	c->incarnation = o->incarnation;
	c->timeout_s = o->timeout_s;
	c->dead_after_s = o->dead_after_s > 0 ? o->dead_after_s : HPS_DEAD_AFTER_S;
	c->loaded = o->loaded;
	c->state = o->state;
	c->base = c->first_step = o->first_step;
	c->born_s = c->said_s = now_s;
	c->owner = hps_calloc(hps_deployment_nodes(d), sizeof *c->owner, err);
	c->table = hps_calloc(o->job->model.n_tables, sizeof *c->table, err);
	c->settings = hps_doc_object();
	if (!c->owner || !c->table || !c->settings) {
		hps_coord_free(c);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	c->owner[HPS_NODE_COORDINATOR] = HPS_COORD_OURS;
	for (uint32_t i = 0; i < d->n_shards; i++)
		if (!o->host || !strcmp(d->shard[i].host, o->host))
			c->owner[hps_node_of_shard(d, i)] = HPS_COORD_OURS;
	*out = c;
	return HPS_OK;
}

void hps_coord_peer_release(struct peer *p)
{
	free(p->name);
	free(p->node);
}

void hps_coord_free(struct hps_coord *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_peers; i++)
		hps_coord_peer_release(&c->peer[i]);
	for (size_t i = 0; i < c->n_open; i++) {
		free(c->open[i].loss);
		free(c->open[i].count);
		free(c->open[i].have);
	}
	hps_coord_drop_scores(c);
	hps_doc_free(c->settings);
	free(c->open);
	free(c->waiting);
	free(c->peer);
	free(c->owner);
	free(c->table);
	free(c->saved);
	free(c);
}

/* --- saying things --- */

enum hps_status hps_coord_send(uint32_t number, enum hps_control kind, struct hps_doc *body,
			       struct hps_outbox *out, struct hps_err *err)
{
	struct hps_msg m;
	enum hps_status st = hps_talk_make(kind, body, &m, err);

	return st == HPS_OK ? hps_outbox_put(out, number, &m, err) : st;
}

enum hps_status hps_coord_tell(struct hps_coord *c, const struct peer *p, enum hps_control kind,
			       struct hps_doc *body, struct hps_outbox *out, struct hps_err *err)
{
	(void)c;
	return hps_coord_send(p->number, kind, body, out, err);
}

enum hps_status hps_coord_tell_all(struct hps_coord *c, bool work_only, enum hps_control kind,
				   struct hps_doc *body, struct hps_outbox *out,
				   struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (size_t i = 0; i < c->n_peers && st == HPS_OK; i++) {
		const struct peer *p = &c->peer[i];

		if (p->left || (work_only && !p->work))
			continue;
		st = hps_coord_tell(c, p, kind, body ? hps_doc_copy(body) : NULL, out, err);
	}
	hps_doc_free(body);
	return st;
}

struct peer *hps_coord_printer(struct hps_coord *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (c->peer[i].prints && !c->peer[i].left)
			return &c->peer[i];
	return NULL;
}

enum hps_status hps_coord_u64(const struct hps_doc *body, const char *key, uint64_t *out,
			      struct hps_err *err)
{
	struct hps_at root = hps_at_root(body, "control"), at = hps_at_member(&root, key);
	enum hps_status st = hps_at_u64(&at, 0, UINT64_MAX, out, err);

	if (st == HPS_BAD_INPUT) {
		if (err)
			err->status = HPS_NET;
		return HPS_NET;
	}
	return st;
}

enum hps_status hps_coord_abort(struct hps_coord *c, const struct peer *culprit,
				const struct hps_err *why, struct hps_outbox *out,
				struct hps_err *err)
{
	struct hps_err e = *why;

	if (c->phase == PHASE_OVER)
		return HPS_OK;
	if (e.status == HPS_OK)
		e.status = HPS_NET;
	if (culprit)
		hps_err_at(&e, "%s", culprit->name);
	c->phase = PHASE_OVER;
	c->outcome = e;
	return hps_coord_tell_all(c, false, HPS_CTL_ABORT, hps_talk_error(&e), out, err);
}

/* --- messages --- */

static enum hps_status left(struct hps_coord *c, struct peer *p, struct hps_outbox *out,
			    struct hps_err *err)
{
	struct hps_err why;

	p->left = true;
	if (c->phase == PHASE_LEAVING) {
		for (size_t i = 0; i < c->n_peers; i++)
			if (!c->peer[i].left)
				return HPS_OK;
		c->phase = PHASE_OVER;
		return HPS_OK;
	}
	hps_err_set(&why, HPS_NET, "left before the job was done");
	return hps_coord_abort(c, p, &why, out, err);
}

static enum hps_status from_member(struct hps_coord *c, struct peer *p, enum hps_control kind,
				   const struct hps_doc *body, struct hps_msg *m, double now_s,
				   struct hps_outbox *out, struct hps_err *err)
{
	struct hps_err why;

	switch (kind) {
	case HPS_CTL_HEARTBEAT:
		return HPS_OK;
	case HPS_CTL_STEPS:
		return hps_coord_steps(c, p, body, out, err);
	case HPS_CTL_LEASE:
		return hps_coord_lease(c, p, body, out, err);
	case HPS_CTL_DATA_END:
		return hps_coord_data_end(c, body, err);
	case HPS_CTL_EPOCH_DONE:
		return hps_coord_epoch_done(c, p, body, now_s, out, err);
	case HPS_CTL_SCORES:
		return hps_coord_took_scores(c, p, body, m, out, err);
	case HPS_CTL_PRINTED:
		return hps_coord_printed(c, body, out, err);
	case HPS_CTL_EVAL_DONE:
		return hps_coord_eval_done(c, p, body, now_s, out, err);
	case HPS_CTL_FINISHED:
		return hps_coord_finished(c, p, out, err);
	case HPS_CTL_SAVED:
		return hps_coord_took_saved(c, p, body, out, err);
	case HPS_CTL_INTERRUPT:
		return hps_coord_interrupt(c, now_s, out, err);
	case HPS_CTL_HELD:
		return hps_coord_held(c, p, body, out, err);
	case HPS_CTL_ERROR:
		hps_talk_error_read(body, &why);
		return hps_coord_can_save(c, &why) ? hps_coord_fail_saved(c, p, &why, out, err)
						   : hps_coord_abort(c, p, &why, out, err);
	case HPS_CTL_BYE:
		return left(c, p, out, err);
	default:
		return hps_err_set(err, HPS_NET, "a %s message is not for the coordinator",
				   hps_talk_name(kind));
	}
}

enum hps_status hps_coord_message(struct hps_coord *c, uint32_t number, struct hps_msg *m,
				  double now_s, struct hps_outbox *out, struct hps_err *err)
{
	struct hps_err why = { 0 };
	struct hps_doc *body = NULL;
	enum hps_control kind = HPS_CTL_HEARTBEAT;
	enum hps_status st = hps_talk_read(m, &kind, &body, &why);
	struct peer *p = hps_coord_peer(c, number);

	if (p)
		p->heard_s = now_s;
	if (p && kind != HPS_CTL_HEARTBEAT)
		c->moved_s = now_s;
	if (c->phase == PHASE_OVER || (!p && c->outcome.status != HPS_OK))
		st = HPS_OK; /* everybody has been told */
	else if (st == HPS_OK && kind == HPS_CTL_JOIN)
		st = hps_coord_join(c, number, body, now_s, out, &why);
	else if (st == HPS_OK && !p)
		st = hps_err_set(&why, HPS_NET, "a %s message before joining", hps_talk_name(kind));
	else if (st == HPS_OK)
		st = from_member(c, p, kind, body, m, now_s, out, &why);
	hps_doc_free(body);
	hps_msg_release(m);
	if (st == HPS_OK)
		return HPS_OK;
	if (p) {
		/* a member that talks nonsense would be waited for in vain */
		enum hps_status told = hps_coord_abort(c, p, &why, out, err);

		if (told != HPS_OK)
			return told;
	}
	if (err)
		*err = why;
	return st;
}

enum hps_status hps_coord_refused(struct hps_coord *c, uint32_t number, const struct hps_err *why,
				  struct hps_outbox *out, struct hps_err *err)
{
	const struct peer *p = hps_coord_peer(c, number);
	struct hps_err said;

	if (!p)
		return HPS_OK;
	hps_err_set(&said, HPS_NET, "sent the coordinator what does not hold: %s", why->msg);
	return hps_coord_abort(c, p, &said, out, err);
}

/* --- time --- */

static enum hps_status say_heartbeats(struct hps_coord *c, struct hps_outbox *out,
				      struct hps_err *err)
{
	struct hps_doc *d = hps_doc_object();
	char missing[256] = "";

	if (c->phase == PHASE_JOINING)
		hps_coord_missing(c, missing, sizeof missing);
	if (!d || (missing[0] && hps_doc_put(d, "missing", hps_doc_string(missing)))) {
		hps_doc_free(d);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	return hps_coord_tell_all(c, false, HPS_CTL_HEARTBEAT, d, out, err);
}

/* After a signal the step in work is waited for, but not for ever: a job that stands still could
 * otherwise not be stopped in order. */
static bool stands_still(const struct hps_coord *c, double now_s)
{
	bool working = c->phase == PHASE_TRAINING || c->phase == PHASE_EVALUATING ||
		       c->phase == PHASE_FINISHING;

	return c->interrupted && working &&
	       now_s - c->moved_s > HPS_COORD_PATIENCE * c->dead_after_s;
}

enum hps_status hps_coord_tick(struct hps_coord *c, double now_s, struct hps_outbox *out,
			       struct hps_err *err)
{
	struct hps_err why;
	enum hps_status st = HPS_OK;

	if (c->phase == PHASE_OVER)
		return HPS_OK;
	if (c->phase == PHASE_MEASURING)
		return hps_coord_measure(c, now_s, out, err);
	if (c->phase == PHASE_JOINING && c->timeout_s > 0 && now_s - c->born_s > c->timeout_s) {
		char missing[400];

		hps_coord_missing(c, missing, sizeof missing);
		hps_err_set(&why, HPS_NET, "not all of the job have come within %g s; missing: %s",
			    c->timeout_s, missing);
		hps_err_hint(&why, "start what is missing, or allow more time with --timeout");
		return hps_coord_abort(c, NULL, &why, out, err);
	}
	if (stands_still(c, now_s)) {
		hps_err_set(&why, HPS_NET,
			    "interrupted, and nothing has moved for %g s since: the step in work "
			    "does not end, nothing is saved",
			    HPS_COORD_PATIENCE * c->dead_after_s);
		return hps_coord_abort(c, NULL, &why, out, err);
	}
	for (size_t i = 0; i < c->n_peers && st == HPS_OK; i++) {
		struct peer *p = &c->peer[i];

		if (p->left || now_s - p->heard_s <= c->dead_after_s)
			continue;
		if (c->phase == PHASE_LEAVING) {
			st = left(c, p, out, err);
			continue;
		}
		hps_err_set(&why, HPS_NET, "silent for %g s: it was killed, hangs, or is cut off",
			    c->dead_after_s);
		return hps_coord_abort(c, p, &why, out, err);
	}
	if (st == HPS_OK && c->phase != PHASE_OVER && now_s - c->said_s >= heartbeat_s) {
		c->said_s = now_s;
		st = say_heartbeats(c, out, err);
	}
	return st;
}

enum hps_status hps_coord_interrupt(struct hps_coord *c, double now_s, struct hps_outbox *out,
				    struct hps_err *err)
{
	enum hps_status st;

	if (c->interrupted)
		return HPS_OK;
	c->moved_s = now_s;
	switch (c->phase) {
	case PHASE_JOINING:
		c->interrupted = true;
		st = hps_coord_say_done(c, out, err);
		c->phase = PHASE_OVER;
		return st;
	case PHASE_TRAINING:
	case PHASE_EVALUATING:
		c->interrupted = true;
		return hps_coord_hold(c, out, err);
	case PHASE_MEASURING:
		c->interrupted = true;
		return HPS_OK;
	default:
		return HPS_OK; /* it is ending as it is */
	}
}

enum hps_status hps_coord_fail(struct hps_coord *c, const struct hps_err *why, double now_s,
			       struct hps_outbox *out, struct hps_err *err)
{
	struct hps_err e = *why;

	(void)now_s;
	hps_err_at(&e, "serve@%s", c->d->coordinator.host);
	return hps_coord_abort(c, NULL, &e, out, err);
}

enum hps_coord_want hps_coord_want(const struct hps_coord *c)
{
	if (c->phase == PHASE_OVER)
		return HPS_COORD_OVER;
	if (c->phase == PHASE_SAVING && !c->self_saved)
		return HPS_COORD_SAVE;
	return HPS_COORD_NOTHING;
}

enum hps_status hps_coord_outcome(const struct hps_coord *c, struct hps_err *err)
{
	if (c->outcome.status != HPS_OK && err)
		*err = c->outcome;
	return c->outcome.status;
}

void hps_coord_stats(const struct hps_coord *c, struct hps_coord_stats *out)
{
	out->steps = c->steps;
	out->samples = c->samples;
	out->next_step = c->base;
	out->interrupted = c->interrupted;
}
