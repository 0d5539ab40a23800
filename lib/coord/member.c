/* How a process gets into a job, stays in it, and notices that the coordinator is gone. */
#include "coord/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const double heartbeat_s = 0.5;

struct hps_member {
	const struct hps_job *job;
	char *name;
	uint64_t incarnation;
	uint32_t *node;
	uint32_t n_nodes;
	struct hps_doc *settings;
	double timeout_s, dead_after_s;
	double born_s, heard_s, said_s;
	bool welcome, all_in;
	char missing[256]; /* who the coordinator still waits for */
};

enum hps_status hps_member_new(const struct hps_member_opts *o, double now_s,
			       struct hps_member **out, struct hps_err *err)
{
	struct hps_member *m = hps_calloc(1, sizeof *m, err);

	if (!m) {
		hps_doc_free(o->settings);
		return HPS_MEMORY;
	}
	m->job = o->job;
	m->incarnation = o->incarnation;
	m->settings = o->settings;
	m->timeout_s = o->timeout_s;
	m->dead_after_s = o->dead_after_s > 0 ? o->dead_after_s : HPS_DEAD_AFTER_S;
	m->born_s = m->heard_s = now_s;
	m->said_s = now_s - heartbeat_s; /* the first tick joins */
	m->n_nodes = o->n_nodes;
	m->name = hps_strdup(o->name, err);
	m->node = hps_calloc(o->n_nodes, sizeof *m->node, err);
	if (!m->name || !m->node) {
		hps_member_free(m);
		return HPS_MEMORY;
	}
	memcpy(m->node, o->node, o->n_nodes * sizeof *m->node);
	*out = m;
	return HPS_OK;
}

void hps_member_free(struct hps_member *m)
{
	if (!m)
		return;
	free(m->name);
	free(m->node);
	hps_doc_free(m->settings);
	free(m);
}

void hps_notice_release(struct hps_notice *n)
{
	hps_doc_free(n->body);
	hps_msg_release(&n->msg);
	memset(n, 0, sizeof *n);
}

enum hps_status hps_member_say(struct hps_member *m, enum hps_control kind, struct hps_doc *body,
			       struct hps_outbox *out, struct hps_err *err)
{
	struct hps_msg msg;
	enum hps_status st = hps_talk_make(kind, body, &msg, err);

	(void)m;
	if (st == HPS_OK)
		st = hps_outbox_put(out, HPS_NODE_COORDINATOR, &msg, err);
	return st;
}

bool hps_member_in(const struct hps_member *m)
{
	return m->welcome;
}

static enum hps_status say_join(struct hps_member *m, struct hps_outbox *out, struct hps_err *err)
{
	struct hps_doc *d = hps_doc_object(), *nodes = hps_doc_array();
	int bad = !d || !nodes;

	for (uint32_t i = 0; !bad && i < m->n_nodes; i++)
		bad = hps_doc_add(nodes, hps_doc_int(m->node[i]));
	if (bad) {
		hps_doc_free(d);
		hps_doc_free(nodes);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	if (hps_doc_put(d, "nodes", nodes) || hps_doc_put(d, "name", hps_doc_string(m->name)) ||
	    hps_doc_put(d, "incarnation", hps_doc_u64(m->incarnation)) ||
	    (m->settings && hps_doc_put(d, "settings", hps_doc_copy(m->settings)))) {
		hps_doc_free(d);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	return hps_member_say(m, HPS_CTL_JOIN, d, out, err);
}

/* "coordinator on HOST (ENDPOINT)" */
static void name_coordinator(const struct hps_member *m, char *out, size_t size)
{
	const struct hps_deployment *d = &m->job->deployment;

	snprintf(out, size, "the coordinator, hps-serve on %s (%s)", d->coordinator.host,
		 d->coordinator.endpoint);
}

enum hps_status hps_member_tick(struct hps_member *m, double now_s, struct hps_outbox *out,
				struct hps_err *err)
{
	char who[256];

	name_coordinator(m, who, sizeof who);
	if (!m->all_in && m->timeout_s > 0 && now_s - m->born_s > m->timeout_s) {
		if (!m->welcome) {
			hps_err_set(err, HPS_NET, "%s has not answered within %g s", who,
				    m->timeout_s);
			hps_err_hint(err, "start hps-serve there with the same job document");
			return HPS_NET;
		}
		hps_err_set(err, HPS_NET, "not all of the job have come within %g s; missing: %s",
			    m->timeout_s, m->missing[0] ? m->missing : "unknown");
		hps_err_hint(err, "start what is missing, or allow more time with --timeout");
		return HPS_NET;
	}
	if (m->welcome && now_s - m->heard_s > m->dead_after_s)
		return hps_err_set(err, HPS_NET, "%s has been silent for %g s", who,
				   m->dead_after_s);
	if (now_s - m->said_s < heartbeat_s)
		return HPS_OK;
	m->said_s = now_s;
	if (!m->welcome)
		return say_join(m, out, err);
	return hps_member_say(m, HPS_CTL_HEARTBEAT, NULL, out, err);
}

/* A heartbeat may name who is missing, or ask for patience while something long is computed. */
static void take_heartbeat(struct hps_member *m, const struct hps_doc *body, double now_s)
{
	struct hps_at at = hps_at_root(body, "heartbeat");
	struct hps_at missing = hps_at_member(&at, "missing"), busy = hps_at_member(&at, "busy_s");
	const char *s;
	double busy_s;

	if (!hps_at_absent(&missing) && hps_at_string(&missing, &s, NULL) == HPS_OK)
		snprintf(m->missing, sizeof m->missing, "%s", s);
	if (!hps_at_absent(&busy) && hps_at_double(&busy, 0, 3600, &busy_s, NULL) == HPS_OK)
		m->heard_s = now_s + busy_s;
}

enum hps_status hps_member_message(struct hps_member *m, struct hps_msg *msg, double now_s,
				   struct hps_notice *notice, struct hps_err *err)
{
	struct hps_doc *body = NULL;
	enum hps_control kind;
	enum hps_status st = hps_talk_read(msg, &kind, &body, err);

	memset(notice, 0, sizeof *notice);
	if (st != HPS_OK) {
		hps_err_at(err, "coordinator");
		hps_msg_release(msg);
		return st;
	}
	if (now_s > m->heard_s)
		m->heard_s = now_s;
	switch (kind) {
	case HPS_CTL_WELCOME:
		m->welcome = true;
		break;
	case HPS_CTL_HEARTBEAT:
		take_heartbeat(m, body, now_s);
		break;
	case HPS_CTL_REFUSED:
	case HPS_CTL_ABORT: {
		struct hps_err e;

		hps_talk_error_read(body, &e);
		if (err)
			*err = e;
		st = e.status;
		break;
	}
	default:
		if (kind == HPS_CTL_GO)
			m->all_in = true;
		notice->kind = kind;
		notice->body = body;
		notice->msg = *msg;
		return HPS_OK;
	}
	hps_doc_free(body);
	hps_msg_release(msg);
	return st;
}

enum hps_status hps_member_error(struct hps_member *m, const struct hps_err *what,
				 struct hps_outbox *out, struct hps_err *err)
{
	struct hps_doc *d = hps_talk_error(what);

	if (!d)
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	return hps_member_say(m, HPS_CTL_ERROR, d, out, err);
}

enum hps_status hps_member_saved(struct hps_member *m, const char *path,
				 const struct hps_coord_table *table, struct hps_outbox *out,
				 struct hps_err *err)
{
	struct hps_doc *d = hps_doc_object(), *list = hps_doc_array();
	int bad = !d || !list;

	for (uint32_t i = 0; !bad && i < m->job->model.n_tables; i++) {
		struct hps_doc *t = hps_doc_object();

		bad = !t || hps_doc_put(t, "rows", hps_doc_u64(table[i].rows)) ||
		      hps_doc_put(t, "bytes", hps_doc_u64(table[i].bytes)) ||
		      hps_doc_put(t, "refused", hps_doc_u64(table[i].refused));
		if (bad)
			hps_doc_free(t);
		else
			bad = hps_doc_add(list, t);
	}
	if (!bad) {
		bad = hps_doc_put(d, "tables", list);
		list = NULL;
	}
	bad = bad || hps_doc_put(d, "path", path ? hps_doc_string(path) : hps_doc_null());
	if (bad) {
		hps_doc_free(d);
		hps_doc_free(list);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	return hps_member_say(m, HPS_CTL_SAVED, d, out, err);
}
