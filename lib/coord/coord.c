/* Who is in the job, who is missing, who is dead: admission, heartbeats and the end. What the
 * job is at, once all are in, is coord_run.c's. */
#include "coord/coord_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const double heartbeat_s = 0.5;
enum { MAX_PEERS = 1 << 20 };
#define OURS UINT32_MAX

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
	c->dead_after_s = o->dead_after_s > 0 ? o->dead_after_s : 5;
	c->loaded = o->loaded;
	c->base = c->first_step = o->first_step;
	c->born_s = c->said_s = now_s;
	c->owner = hps_calloc(hps_deployment_nodes(d), sizeof *c->owner, err);
	c->table = hps_calloc(o->job->model.n_tables, sizeof *c->table, err);
	c->settings = hps_doc_object();
	if (!c->owner || !c->table || !c->settings) {
		hps_coord_free(c);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	c->owner[HPS_NODE_COORDINATOR] = OURS;
	for (uint32_t i = 0; i < d->n_shards; i++)
		if (!o->host || !strcmp(d->shard[i].host, o->host))
			c->owner[hps_node_of_shard(d, i)] = OURS;
	*out = c;
	return HPS_OK;
}

static void peer_release(struct peer *p)
{
	free(p->name);
	free(p->node);
}

void hps_coord_free(struct hps_coord *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_peers; i++)
		peer_release(&c->peer[i]);
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

static enum hps_status send_to(uint32_t number, enum hps_control kind, struct hps_doc *body,
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
	return send_to(p->number, kind, body, out, err);
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

/* --- who is missing --- */

/* "stage 1 replica 0 on host b (hps-work), shard 1 on host c (hps-serve) and 3 more" */
static void name_missing(const struct hps_coord *c, char *out, size_t size)
{
	uint32_t n = hps_deployment_nodes(c->d), listed = 0, more = 0;
	size_t len = 0;

	out[0] = 0;
	for (uint32_t node = 1; node < n; node++) {
		char name[192];
		int k;

		if (c->owner[node])
			continue;
		if (listed == 4 || len + sizeof name > size) {
			more++;
			continue;
		}
		hps_node_name(c->d, node, name, sizeof name);
		k = snprintf(out + len, size - len, "%s%s (%s)", listed ? ", " : "", name,
			     node <= c->d->n_shards ? "hps-serve" : "hps-work");
		len += k > 0 && (size_t)k < size - len ? (size_t)k : 0;
		listed++;
	}
	if (more && len < size)
		snprintf(out + len, size - len, " and %u more", more);
}

static bool all_in(const struct hps_coord *c)
{
	uint32_t n = hps_deployment_nodes(c->d);

	for (uint32_t node = 0; node < n; node++)
		if (!c->owner[node])
			return false;
	return true;
}

/* --- admission --- */

static struct peer *peer_by_number(struct hps_coord *c, uint32_t number)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (c->peer[i].number == number && !c->peer[i].left)
			return &c->peer[i];
	return NULL;
}

static struct peer *peer_by_name(struct hps_coord *c, const char *name)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (!strcmp(c->peer[i].name, name))
			return &c->peer[i];
	return NULL;
}

static enum hps_status refuse(uint32_t number, const struct hps_err *why, struct hps_outbox *out,
			      struct hps_err *err)
{
	return send_to(number, HPS_CTL_REFUSED, hps_talk_error(why), out, err);
}

/* What two processes both say must be the same: how to train, and on which bytes. */
static enum hps_status same_settings(struct hps_coord *c, const struct hps_doc *theirs,
				     struct hps_err *err)
{
	struct hps_at mine = hps_at_root(c->settings, "settings");
	struct hps_at other = hps_at_root(theirs, "settings");

	for (size_t i = 0; i < hps_at_count(&other); i++) {
		const char *key = hps_at_name(&other, i);
		struct hps_at a = hps_at_member(&mine, key), b = hps_at_member(&other, key);

		if (!a.node || hps_doc_equal(a.node, b.node))
			continue;
		if (!strcmp(key, "train_digest") || !strcmp(key, "test_digest"))
			hps_err_set(err, HPS_BAD_INPUT,
				    "the %s data are not the same bytes as those of another host",
				    strcmp(key, "test_digest") ? "training" : "test");
		else
			hps_err_set(err, HPS_USAGE,
				    "%s is not what another process of the job says", key);
		hps_err_hint(err, "give every hps-work of a job the same options and data");
		return HPS_USAGE;
	}
	return HPS_OK;
}

static enum hps_status keep_settings(struct hps_coord *c, const struct hps_doc *theirs,
				     struct hps_err *err)
{
	struct hps_at mine = hps_at_root(c->settings, "settings");
	struct hps_at other = hps_at_root(theirs, "settings");

	for (size_t i = 0; i < hps_at_count(&other); i++) {
		const char *key = hps_at_name(&other, i);
		struct hps_at a = hps_at_member(&mine, key), b = hps_at_member(&other, key);

		if (!a.node && hps_doc_put(c->settings, key, hps_doc_copy(b.node)))
			return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	return HPS_OK;
}

/* mode, epochs, test: how the job goes. */
static enum hps_status read_settings(struct hps_coord *c, const struct hps_doc *settings,
				     struct hps_err *err)
{
	static const char *const modes[] = { "train", "eval", "predict" };
	struct hps_at at = hps_at_root(settings, "settings");
	struct hps_at mode = hps_at_member(&at, "mode"), epochs = hps_at_member(&at, "epochs");
	struct hps_at test = hps_at_member(&at, "test");
	bool has_test;
	uint64_t n;
	int m;

	if (hps_at_choice(&mode, modes, 3, &m, err) ||
	    hps_at_u64(&epochs, 0, HPS_MAX_EPOCHS, &n, err) || hps_at_bool(&test, &has_test, err))
		return HPS_BAD_INPUT;
	if (m != MODE_TRAIN && !c->loaded) {
		hps_err_set(err, HPS_BAD_INPUT, "the servers hold no trained model");
		hps_err_hint(err, "start hps-serve with --state DIR of a saved model");
		return HPS_BAD_INPUT;
	}
	c->mode = (enum mode)m;
	c->epochs = (uint32_t)n;
	c->has_test = has_test;
	c->begun = true;
	return HPS_OK;
}

/* Nodes of a JOIN: known, free, all of one kind. */
static enum hps_status read_nodes(struct hps_coord *c, const struct hps_at *root, struct peer *p,
				  struct hps_err *err)
{
	struct hps_at at = hps_at_member(root, "nodes");
	uint32_t n_nodes = hps_deployment_nodes(c->d), first_replica = c->d->n_shards + 1;
	uint32_t last_stage_0 = hps_node_of_replica(c->d, c->d->n_stages - 1, 0);
	uint32_t n_first = c->d->stage[0].n_replicas;
	enum hps_status st = hps_at_array(&at, err);

	if (st != HPS_OK)
		return st;
	p->n_nodes = (uint32_t)hps_at_count(&at);
	if (!p->n_nodes || p->n_nodes >= n_nodes)
		return hps_err_set(err, HPS_BAD_INPUT, "joins with %u nodes of %u", p->n_nodes,
				   n_nodes);
	p->node = hps_calloc(p->n_nodes, sizeof *p->node, err);
	if (!p->node)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		struct hps_at item = hps_at_item(&at, i);
		char name[192];
		int64_t node;
		bool work;

		st = hps_at_int(&item, 1, n_nodes - 1, &node, err);
		if (st != HPS_OK)
			return st;
		work = node >= first_replica;
		hps_node_name(c->d, (uint32_t)node, name, sizeof name);
		for (uint32_t j = 0; j < i; j++)
			if (p->node[j] == (uint32_t)node)
				return hps_err_set(err, HPS_BAD_INPUT, "joins twice as %s", name);
		if (c->owner[node] == OURS)
			return hps_err_set(err, HPS_NET, "%s is the coordinator's own", name);
		if (c->owner[node])
			return hps_err_set(err, HPS_NET, "%s is taken by %s", name,
					   c->peer[c->owner[node] - 1].name);
		if (i && work != p->work)
			return hps_err_set(err, HPS_BAD_INPUT,
					   "joins with shards and replicas at once");
		p->work = work;
		p->node[i] = (uint32_t)node;
		p->first_stage |= work && (uint32_t)node < first_replica + n_first;
		p->last_stage |= (uint32_t)node >= last_stage_0;
		p->prints |= (uint32_t)node == last_stage_0;
	}
	return HPS_OK;
}

static enum hps_status add_peer(struct hps_coord *c, struct peer *p, struct hps_err *err)
{
	void *q = c->peer;

	if (c->n_peers >= MAX_PEERS || hps_realloc(&q, c->n_peers + 1, sizeof *c->peer, err))
		return HPS_MEMORY;
	c->peer = q;
	c->peer[c->n_peers++] = *p;
	for (uint32_t i = 0; i < p->n_nodes; i++)
		c->owner[p->node[i]] = (uint32_t)c->n_peers;
	return HPS_OK;
}

/* Read and check a JOIN of a process not yet known; p is the caller's to release on failure. */
static enum hps_status examine(struct hps_coord *c, const struct hps_at *root, struct peer *p,
			       struct hps_err *why)
{
	struct hps_at settings = hps_at_member(root, "settings");
	enum hps_status st;

	if (c->phase != PHASE_JOINING)
		return hps_err_set(why, HPS_NET, "the job has begun without it");
	st = read_nodes(c, root, p, why);
	if (st != HPS_OK || !p->work)
		return st;
	st = hps_at_object(&settings, why);
	if (st == HPS_OK)
		st = same_settings(c, settings.node, why);
	if (st == HPS_OK && !c->begun)
		st = read_settings(c, settings.node, why);
	return st == HPS_OK ? keep_settings(c, settings.node, why) : st;
}

static enum hps_status join(struct hps_coord *c, uint32_t number, const struct hps_doc *body,
			    double now_s, struct hps_outbox *out, struct hps_err *err)
{
	struct hps_at root = hps_at_root(body, "join"), at = hps_at_member(&root, "name");
	struct peer p = { .number = number, .heard_s = now_s };
	struct hps_err why = { 0 };
	struct peer *old;
	const char *name;
	enum hps_status st;

	if (hps_at_string(&at, &name, err) || strlen(name) > 255 ||
	    hps_coord_u64(body, "incarnation", &p.incarnation, err))
		return hps_err_set(err, HPS_NET, "a join without a name or an incarnation");
	old = peer_by_name(c, name);
	if (old && old->incarnation == p.incarnation && !old->left) {
		old->number = number;
		old->heard_s = now_s;
		st = hps_coord_tell(c, old, HPS_CTL_WELCOME, NULL, out, err);
		return st;
	}
	if (old) {
		hps_err_set(&why, HPS_NET, "%s is in the job already", name);
		hps_err_hint(&why, "one hps-work or hps-serve runs a host's part of a job");
		return refuse(number, &why, out, err);
	}
	if (peer_by_number(c, number))
		return hps_err_set(err, HPS_NET, "joins under a second name, %s", name);
	st = examine(c, &root, &p, &why);
	if (st == HPS_OK) {
		p.name = hps_strdup(name, &why);
		st = p.name ? add_peer(c, &p, &why) : HPS_MEMORY;
	}
	if (st != HPS_OK) {
		peer_release(&p);
		hps_err_at(&why, "%s", name);
		return refuse(number, &why, out, err);
	}
	st = hps_coord_tell(c, &c->peer[c->n_peers - 1], HPS_CTL_WELCOME, NULL, out, err);
	if (st == HPS_OK && all_in(c))
		st = hps_coord_go(c, now_s, out, err);
	return st;
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
		return hps_coord_abort(c, p, &why, out, err);
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
	enum hps_control kind;
	enum hps_status st = hps_talk_read(m, &kind, &body, &why);
	struct peer *p = peer_by_number(c, number);

	if (p)
		p->heard_s = now_s;
	if (c->phase == PHASE_OVER)
		st = HPS_OK; /* everybody has been told */
	else if (st == HPS_OK && kind == HPS_CTL_JOIN)
		st = join(c, number, body, now_s, out, &why);
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

/* --- time --- */

static enum hps_status say_heartbeats(struct hps_coord *c, struct hps_outbox *out,
				      struct hps_err *err)
{
	struct hps_doc *d = hps_doc_object();
	char missing[256] = "";

	if (c->phase == PHASE_JOINING)
		name_missing(c, missing, sizeof missing);
	if (!d || (missing[0] && hps_doc_put(d, "missing", hps_doc_string(missing)))) {
		hps_doc_free(d);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	return hps_coord_tell_all(c, false, HPS_CTL_HEARTBEAT, d, out, err);
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

		name_missing(c, missing, sizeof missing);
		hps_err_set(&why, HPS_NET, "not all of the job have come within %g s; missing: %s",
			    c->timeout_s, missing);
		hps_err_hint(&why, "start what is missing, or allow more time with --timeout");
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

	(void)now_s;
	if (c->interrupted)
		return HPS_OK;
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
