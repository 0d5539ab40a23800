/* What the coordinator says becomes orders; what the replicas tell becomes messages. */
#include "train/agent_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { LOSSES_AT_ONCE = 256 };

static enum hps_status no_memory(struct hps_err *err)
{
	return hps_err_set(err, HPS_MEMORY, "out of memory");
}

/* --- life --- */

enum hps_status hps_agent_new(const struct hps_agent_opts *o, double now_s, struct hps_agent **out,
			      struct hps_err *err)
{
	const struct hps_deployment *d = &o->job->deployment;
	uint32_t first = hps_node_of_replica(d, 0, 0);
	uint32_t printer = hps_node_of_replica(d, d->n_stages - 1, 0);
	struct hps_member_opts m = {
		.job = o->job,
		.name = o->name,
		.incarnation = o->incarnation,
		.node = o->node,
		.n_nodes = o->n_nodes,
		.settings = o->settings,
		.timeout_s = o->timeout_s,
		.dead_after_s = o->dead_after_s,
	};
	struct hps_agent *a = hps_calloc(1, sizeof *a, err);
	enum hps_status st;

	if (!a) {
		hps_doc_free(o->settings);
		return HPS_MEMORY;
	}
	st = hps_member_new(&m, now_s, &a->member, err);
	a->node = hps_calloc(o->n_nodes, sizeof *a->node, err);
	if (st != HPS_OK || !a->node) {
		hps_agent_free(a);
		return st != HPS_OK ? st : HPS_MEMORY;
	}
	a->job = o->job;
	a->host = o->host;
	a->n_nodes = o->n_nodes;
	a->log_every = o->log_every ? o->log_every : 100;
	for (uint32_t i = 0; i < o->n_nodes; i++) {
		a->node[i] = o->node[i];
		a->n_first += o->node[i] >= first && o->node[i] - first < d->stage[0].n_replicas;
		a->prints |= o->node[i] == printer;
	}
	*out = a;
	return HPS_OK;
}

void hps_agent_free(struct hps_agent *a)
{
	if (!a)
		return;
	hps_member_free(a->member);
	free(a->losses.item);
	free(a->node);
	free(a);
}

bool hps_agent_over(const struct hps_agent *a)
{
	return a->over;
}

bool hps_agent_done(const struct hps_agent *a)
{
	return a->done;
}

static bool is_first(const struct hps_agent *a, uint32_t i)
{
	const struct hps_deployment *d = &a->job->deployment;

	return a->node[i] - hps_node_of_replica(d, 0, 0) < d->stage[0].n_replicas;
}

/* --- from the coordinator --- */

static void order_all(struct hps_agent *a, enum hps_order_kind kind, uint64_t step)
{
	struct hps_order o = { .kind = kind, .epoch = a->epoch, .step = step };
	bool first_only = kind == HPS_ORDER_HOLD || kind == HPS_ORDER_STOP;

	for (uint32_t i = 0; i < a->n_nodes; i++)
		if (!first_only || is_first(a, i))
			a->host.order(a->host.ctx, i, &o);
}

static void feed(struct hps_agent *a, enum hps_feed_kind kind, uint32_t replica, uint64_t step,
		 uint64_t limit)
{
	struct hps_feed f = {
		.kind = kind, .epoch = a->epoch, .replica = replica, .step = step, .limit = limit
	};

	if (a->n_first)
		a->host.feed(a->host.ctx, &f);
}

/* A new phase: an epoch, an evaluation or the finish. */
static enum hps_status begin_phase(struct hps_agent *a, const struct hps_doc *body, double now_s,
				   struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	uint64_t epoch;

	if (agent_u64(body, "epoch", &epoch, err) || agent_u64(body, "step", &a->base, err))
		return HPS_NET;
	if (a->prints)
		st = events_epoch_over(a, now_s, err);
	a->epoch = (uint32_t)epoch;
	a->n_done = a->n_held = 0;
	a->held = a->steps = 0;
	return st;
}

static enum hps_status begin_epoch(struct hps_agent *a, const struct hps_doc *body, double now_s,
				   struct hps_err *err)
{
	enum hps_status st = begin_phase(a, body, now_s, err);

	if (st != HPS_OK)
		return st;
	events_epoch_begins(a, now_s);
	/* orders first: rows of a phase must not reach a replica before its beginning */
	order_all(a, HPS_ORDER_EPOCH, a->base);
	feed(a, HPS_FEED_TRAIN, 0, a->base, HPS_NO_STEP);
	return HPS_OK;
}

static enum hps_status begin_eval(struct hps_agent *a, const struct hps_doc *body, double now_s,
				  struct hps_err *err)
{
	struct hps_at root = hps_at_root(body, "eval"), at = hps_at_member(&root, "window");
	enum hps_status st = begin_phase(a, body, now_s, err);
	uint64_t limit = HPS_NO_STEP;

	if (st == HPS_OK && !hps_at_absent(&at))
		st = agent_u64(body, "window", &limit, err);
	if (st != HPS_OK)
		return st;
	order_all(a, HPS_ORDER_EVAL, a->base);
	feed(a, HPS_FEED_EVAL, 0, 0, limit);
	return HPS_OK;
}

static enum hps_status take_lease(struct hps_agent *a, const struct hps_doc *body,
				  struct hps_err *err)
{
	struct hps_order o = { .kind = HPS_ORDER_LEASE, .epoch = a->epoch };
	uint64_t node;

	if (agent_u64(body, "node", &node, err) || agent_u64(body, "step", &o.step, err))
		return HPS_NET;
	for (uint32_t i = 0; i < a->n_nodes; i++) {
		if (a->node[i] != node)
			continue;
		a->host.order(a->host.ctx, i, &o);
		if (o.step != HPS_NO_STEP)
			feed(a, HPS_FEED_LEASE, i, o.step, HPS_NO_STEP);
		return HPS_OK;
	}
	return hps_err_set(err, HPS_NET, "coordinator: a chunk for a replica that is not here");
}

static enum hps_status take_scores(struct hps_agent *a, struct hps_notice *n,
				   struct hps_outbox *out, struct hps_err *err)
{
	struct hps_at root = hps_at_root(n->body, "scores"), at = hps_at_member(&root, "last");
	const float *score;
	struct hps_doc *d;
	enum hps_status st;
	uint64_t step;
	bool last;

	if (agent_u64(n->body, "step", &step, err) || hps_at_bool(&at, &last, err))
		return HPS_NET;
	if (n->msg.n_frames != 4 || n->msg.frame[2].len % sizeof *score)
		return hps_err_set(err, HPS_NET, "coordinator: scores in %u frames",
				   n->msg.n_frames);
	score = hps_msg_array(&n->msg, 2, err);
	if (!score)
		return HPS_MEMORY;
	st = a->host.scores(a->host.ctx, score, n->msg.frame[2].len / sizeof *score, err);
	if (st != HPS_OK || !last)
		return st;
	d = hps_doc_object();
	if (!d || hps_doc_put(d, "step", hps_doc_u64(step))) {
		hps_doc_free(d);
		return no_memory(err);
	}
	return hps_member_say(a->member, HPS_CTL_PRINTED, d, out, err);
}

static enum hps_status take_done(struct hps_agent *a, const struct hps_doc *body, double now_s,
				 struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = hps_member_say(a->member, HPS_CTL_BYE, NULL, out, err);

	/* first the goodbye: whether it can be printed is this process' own affair */
	a->over = a->done = true;
	if (st == HPS_OK && a->prints)
		st = events_epoch_over(a, now_s, err);
	if (st == HPS_OK && a->prints)
		st = events_copy(a, "done", body, err);
	return st;
}

static enum hps_status act(struct hps_agent *a, struct hps_notice *n, double now_s,
			   struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st;
	uint64_t step;

	if (!n->kind)
		return HPS_OK;
	switch (n->kind) {
	case HPS_CTL_GO:
		st = agent_u64(n->body, "step", &step, err);
		if (st == HPS_OK)
			order_all(a, HPS_ORDER_START, step);
		return st;
	case HPS_CTL_EPOCH:
		return begin_epoch(a, n->body, now_s, err);
	case HPS_CTL_EVAL:
		return begin_eval(a, n->body, now_s, err);
	case HPS_CTL_LEASE:
		return take_lease(a, n->body, err);
	case HPS_CTL_HOLD:
		order_all(a, HPS_ORDER_HOLD, 0);
		return HPS_OK;
	case HPS_CTL_STOP:
		st = agent_u64(n->body, "step", &step, err);
		if (st == HPS_OK)
			order_all(a, HPS_ORDER_STOP, step);
		return st;
	case HPS_CTL_FINISH:
		st = begin_phase(a, n->body, now_s, err);
		if (st == HPS_OK)
			order_all(a, HPS_ORDER_FINISH, a->base);
		return st;
	case HPS_CTL_STEP:
		return events_step(a, n->body, now_s, err);
	case HPS_CTL_EVALED:
		return events_copy(a, "eval", n->body, err);
	case HPS_CTL_SCORES:
		return take_scores(a, n, out, err);
	case HPS_CTL_WINDOW:
		st = agent_u64(n->body, "step", &step, err);
		if (st == HPS_OK)
			feed(a, HPS_FEED_WINDOW, 0, 0, step);
		return st;
	case HPS_CTL_DONE:
		return take_done(a, n->body, now_s, out, err);
	default:
		return hps_err_set(err, HPS_NET, "coordinator: a %s message is not for hps-work",
				   hps_talk_name(n->kind));
	}
}

enum hps_status hps_agent_message(struct hps_agent *a, struct hps_msg *m, double now_s,
				  struct hps_outbox *out, struct hps_err *err)
{
	struct hps_notice n;
	enum hps_status st = hps_member_message(a->member, m, now_s, &n, err);

	if (st != HPS_OK) {
		a->over = true; /* aborted or refused: the coordinator knows */
		return st;
	}
	st = act(a, &n, now_s, out, err);
	hps_notice_release(&n);
	return st;
}

/* --- from the replicas --- */

static enum hps_status add_loss(struct hps_agent *a, const struct hps_replica_event *e,
				struct hps_outbox *out, struct hps_err *err)
{
	struct loss_list *l = &a->losses;

	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 16;
		void *q = l->item;

		if (hps_realloc(&q, cap, sizeof *l->item, err) != HPS_OK)
			return HPS_MEMORY;
		l->item = q;
		l->cap = cap;
	}
	l->item[l->n].step = e->step;
	l->item[l->n].mb = e->mb;
	l->item[l->n].count = e->count;
	l->item[l->n++].loss = e->loss;
	return l->n < LOSSES_AT_ONCE ? HPS_OK : hps_agent_flush(a, out, err);
}

enum hps_status hps_agent_flush(struct hps_agent *a, struct hps_outbox *out, struct hps_err *err)
{
	struct hps_doc *d, *step, *mb, *loss, *count;
	struct loss_list *l = &a->losses;
	int bad = 0;

	if (!l->n)
		return HPS_OK;
	d = hps_doc_object();
	/* put takes each list over at once; they stay reachable through d */
	bad = !d || hps_doc_put(d, "step", step = hps_doc_array()) ||
	      hps_doc_put(d, "mb", mb = hps_doc_array()) ||
	      hps_doc_put(d, "loss", loss = hps_doc_array()) ||
	      hps_doc_put(d, "count", count = hps_doc_array());
	for (size_t i = 0; !bad && i < l->n; i++)
		bad = hps_doc_add(step, hps_doc_u64(l->item[i].step)) ||
		      hps_doc_add(mb, hps_doc_int(l->item[i].mb)) ||
		      hps_doc_add(loss, hps_doc_double(l->item[i].loss)) ||
		      hps_doc_add(count, hps_doc_int(l->item[i].count));
	if (bad) {
		hps_doc_free(d);
		return no_memory(err);
	}
	l->n = 0;
	return hps_member_say(a->member, HPS_CTL_STEPS, d, out, err);
}

/* Members of {"epoch": e, KEY: value} in one go. */
static struct hps_doc *pair(uint32_t epoch, const char *key, uint64_t value)
{
	struct hps_doc *d = hps_doc_object();

	if (!d || hps_doc_put(d, "epoch", hps_doc_int(epoch)) ||
	    hps_doc_put(d, key, hps_doc_u64(value))) {
		hps_doc_free(d);
		return NULL;
	}
	return d;
}

static enum hps_status say_pair(struct hps_agent *a, enum hps_control kind, const char *key,
				uint64_t value, struct hps_outbox *out, struct hps_err *err)
{
	struct hps_doc *d = pair(a->epoch, key, value);

	return d ? hps_member_say(a->member, kind, d, out, err) : no_memory(err);
}

static enum hps_status say_scores(struct hps_agent *a, const struct hps_replica_event *e,
				  struct hps_outbox *out, struct hps_err *err)
{
	struct hps_doc *d = pair(a->epoch, "step", e->step);
	struct hps_msg m;
	enum hps_status st;

	if (!d || hps_doc_put(d, "mb", hps_doc_int(e->mb))) {
		hps_doc_free(d);
		return no_memory(err);
	}
	st = hps_talk_make(HPS_CTL_SCORES, d, &m, err);
	if (st == HPS_OK)
		st = hps_msg_copy(&m, e->row, e->count * sizeof *e->row, err);
	if (st == HPS_OK)
		st = hps_msg_copy(&m, e->score, e->count * sizeof *e->score, err);
	if (st == HPS_OK)
		st = hps_msg_copy(&m, e->label, e->count * sizeof *e->label, err);
	if (st != HPS_OK) {
		hps_msg_release(&m);
		return st;
	}
	return hps_outbox_put(out, HPS_NODE_COORDINATOR, &m, err);
}

/* All replicas here have ended the phase. */
static enum hps_status say_ended(struct hps_agent *a, enum hps_replica_event_kind kind,
				 struct hps_outbox *out, struct hps_err *err)
{
	bool eval = kind == HPS_REPLICA_EVAL_DONE;
	struct hps_doc *d;
	uint64_t skipped;

	feed(a, HPS_FEED_STOP, 0, 0, HPS_NO_STEP);
	skipped = a->n_first ? a->host.skipped(a->host.ctx, eval) : 0;
	d = pair(a->epoch, "skipped", skipped);
	if (!d || (!eval && hps_doc_put(d, "steps", hps_doc_u64(a->steps)))) {
		hps_doc_free(d);
		return no_memory(err);
	}
	return hps_member_say(a->member, eval ? HPS_CTL_EVAL_DONE : HPS_CTL_EPOCH_DONE, d, out,
			      err);
}

static enum hps_status take_end(struct hps_agent *a, const struct hps_replica_event *e,
				struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st;

	if (e->kind == HPS_REPLICA_EPOCH_DONE && e->step)
		a->steps = e->step - a->base;
	if (++a->n_done < a->n_nodes)
		return HPS_OK;
	st = hps_agent_flush(a, out, err);
	if (st != HPS_OK)
		return st;
	if (e->kind == HPS_REPLICA_FINISHED)
		return hps_member_say(a->member, HPS_CTL_FINISHED, NULL, out, err);
	return say_ended(a, e->kind, out, err);
}

enum hps_status hps_agent_replica(struct hps_agent *a, uint32_t i,
				  const struct hps_replica_event *e, struct hps_outbox *out,
				  struct hps_err *err)
{
	switch (e->kind) {
	case HPS_REPLICA_LOSS:
		return add_loss(a, e, out, err);
	case HPS_REPLICA_SCORES:
		return say_scores(a, e, out, err);
	case HPS_REPLICA_LEASE:
		return say_pair(a, HPS_CTL_LEASE, "node", a->node[i], out, err);
	case HPS_REPLICA_EPOCH_DONE:
	case HPS_REPLICA_EVAL_DONE:
	case HPS_REPLICA_FINISHED:
		return take_end(a, e, out, err);
	case HPS_REPLICA_HELD:
		if (e->step > a->held)
			a->held = e->step;
		if (++a->n_held < a->n_first)
			return HPS_OK;
		return say_pair(a, HPS_CTL_HELD, "step", a->held, out, err);
	}
	return HPS_OK;
}

enum hps_status hps_agent_data_end(struct hps_agent *a, uint32_t epoch, uint64_t rows,
				   struct hps_outbox *out, struct hps_err *err)
{
	struct hps_doc *d = pair(epoch, "rows", rows);

	return d ? hps_member_say(a->member, HPS_CTL_DATA_END, d, out, err) : no_memory(err);
}

/* --- endings --- */

enum { GOODBYE_S = 1 };

enum hps_status hps_agent_interrupt(struct hps_agent *a, struct hps_outbox *out,
				    struct hps_err *err)
{
	/* also before its welcome: the coordinator may have let it in by now, and would miss it */
	a->leaving = true;
	return hps_member_say(a->member, HPS_CTL_INTERRUPT, NULL, out, err);
}

/* A signal came and there is no coordinator that could end the job. */
static enum hps_status leave_alone(struct hps_agent *a, struct hps_err *err)
{
	struct hps_doc *d;
	enum hps_status st;

	a->over = true; /* nothing has begun */
	if (!a->prints)
		return HPS_OK;
	d = hps_doc_object();
	if (!d || hps_doc_put(d, "steps", hps_doc_int(0)) ||
	    hps_doc_put(d, "interrupted", hps_doc_bool(true))) {
		hps_doc_free(d);
		return no_memory(err);
	}
	st = events_copy(a, "done", d, err);
	hps_doc_free(d);
	return st;
}

enum hps_status hps_agent_tick(struct hps_agent *a, double now_s, struct hps_outbox *out,
			       struct hps_err *err)
{
	if (!a->leaving || hps_member_in(a->member))
		return hps_member_tick(a->member, now_s, out, err);
	if (!a->leave_s)
		a->leave_s = now_s + GOODBYE_S;
	return now_s < a->leave_s ? HPS_OK : leave_alone(a, err);
}

enum hps_status hps_agent_error(struct hps_agent *a, const struct hps_err *what,
				struct hps_outbox *out, struct hps_err *err)
{
	return hps_member_error(a->member, what, out, err);
}
