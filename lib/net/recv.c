/* What has come in, and which of it may be believed? Every part of a message is checked
 * before any is handed on; who sends nonsense is not heard again.
 */
#include "net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net_int.h"

enum {
	DROPS_A_CALL = 1000, /* refused messages after which a call that should not wait returns */
	WARNINGS = 20,	     /* refused peers told of; an attacker must not fill the log */
};
#define UNKNOWN UINT32_MAX /* peer number of a connection not heard of before */

/* One multipart message as it came. */
struct parts {
	uint64_t id; /* of the connection, on the ROUTER; 0 = an id that we did not give */
	zmq_msg_t part[1 + HPS_MAX_FRAMES];
	uint32_t n; /* kept in part */
	uint32_t total;
};

static uint64_t id_of(zmq_msg_t *z)
{
	const uint8_t *b = zmq_msg_data(z);
	uint64_t id = 0;

	/* a peer may name itself: ours do not, and such a name could be longer */
	if (zmq_msg_size(z) != HPS_NET_ID_BYTES || b[0] != 0)
		return 0;
	for (int i = 0; i < HPS_NET_ID_BYTES; i++)
		id |= (uint64_t)b[i] << (8 * i);
	return id;
}

/* All parts of the next message of a socket; false: none is there. */
static bool take_parts(void *sock, bool router, struct parts *p)
{
	uint32_t i = 0;
	bool more = true;

	memset(p, 0, sizeof(*p));
	while (more) {
		zmq_msg_t z;
		int rc;

		zmq_msg_init(&z);
		do
			rc = zmq_msg_recv(&z, sock, ZMQ_DONTWAIT);
		while (rc < 0 && zmq_errno() == EINTR);
		if (rc < 0) {
			zmq_msg_close(&z);
			break;
		}
		more = zmq_msg_more(&z);
		if (router && i++ == 0) {
			p->id = id_of(&z);
		} else {
			p->total++;
			if (p->n < 1 + HPS_MAX_FRAMES) {
				zmq_msg_init(&p->part[p->n]);
				zmq_msg_move(&p->part[p->n++], &z);
			}
		}
		zmq_msg_close(&z);
	}
	return i > 0 || p->total > 0;
}

static void drop_parts(struct parts *p)
{
	while (p->n)
		zmq_msg_close(&p->part[--p->n]);
}

static void box_release(void *data, void *hint)
{
	(void)data;
	zmq_msg_close(hint);
	free(hint);
}

static void free_release(void *data, void *hint)
{
	(void)hint;
	free(data);
}

/* A received part as a frame. Small ones lie anywhere in libzmq's read buffer: they are
 * copied to where arrays of u64 may stand. */
static enum hps_status to_frame(zmq_msg_t *z, struct hps_frame *f, struct hps_err *err)
{
	size_t len = zmq_msg_size(z);

	if (len > HPS_NET_COPY_BYTES && (uintptr_t)zmq_msg_data(z) % sizeof(uint64_t) == 0) {
		zmq_msg_t *box = hps_calloc(1, sizeof(*box), err);

		if (!box)
			return HPS_MEMORY;
		zmq_msg_init(box);
		zmq_msg_move(box, z);
		*f = (struct hps_frame){ zmq_msg_data(box), len, box_release, box };
	} else {
		void *copy = malloc(len ? len : 1);

		if (!copy)
			return hps_err_set(err, HPS_MEMORY, "no memory for a frame of %zu bytes",
					   len);
		if (len)
			memcpy(copy, zmq_msg_data(z), len);
		*f = (struct hps_frame){ copy, len, free_release, NULL };
	}
	return HPS_OK;
}

/* Is the message as it was sent? */
static enum hps_status check_sum(struct parts *p, struct hps_err *err)
{
	const uint8_t *head = zmq_msg_data(&p->part[0]);
	uint64_t sum = hps_sum_head(head);

	for (uint32_t i = 1; i < p->n; i++)
		sum = hps_sum_frame(sum, zmq_msg_data(&p->part[i]), zmq_msg_size(&p->part[i]));
	if (memcmp(&sum, head + HPS_HEAD_BYTES, HPS_SUM_BYTES) != 0)
		return hps_err_set(err, HPS_NET, "a message damaged on its way: its sum is wrong");
	return HPS_OK;
}

/* What is wrong with a message that should come from `expect` (HPS_PEER_ANON: of the
 * listener's peers, anyone known); HPS_OK: its header is in m. */
static enum hps_status judge(struct hps_net *n, struct parts *p, uint32_t expect, struct hps_msg *m,
			     struct hps_err *err)
{
	size_t len;

	if (p->total > 1 + HPS_MAX_FRAMES)
		return hps_err_set(err, HPS_NET, "%u frames in a message", p->total);
	if (p->n == 0)
		return hps_err_set(err, HPS_NET, "a message without a header");
	len = zmq_msg_size(&p->part[0]);
	if (len != HPS_HEAD_BYTES + HPS_SUM_BYTES)
		return hps_err_set(err, HPS_NET, "expected a header of %d bytes, got %zu",
				   HPS_HEAD_BYTES + HPS_SUM_BYTES, len);
	if (hps_head_decode(zmq_msg_data(&p->part[0]), HPS_HEAD_BYTES, &m->head, err) != HPS_OK ||
	    check_sum(p, err) != HPS_OK)
		return HPS_NET;
	if (m->head.job != n->o.job)
		return hps_err_set(err, HPS_NET, "a message of another job (%016llx, not %016llx)",
				   (unsigned long long)m->head.job, (unsigned long long)n->o.job);
	if (m->head.src != HPS_NODE_PROCESS && m->head.src >= n->o.known_nodes)
		return hps_err_set(err, HPS_NET, "node number %u, of %u", m->head.src,
				   n->o.known_nodes);
	if (expect != HPS_PEER_ANON && m->head.src != expect)
		return hps_err_set(err, HPS_NET, "node number %u where it was %u", m->head.src,
				   expect);
	if (m->head.type == HPS_MSG_REFUSED && (p->id || p->n != 2))
		return hps_err_set(err, HPS_NET, "a refusal where none is due");
	for (uint32_t i = 1; i < p->n; i++)
		if (zmq_msg_size(&p->part[i]) > n->o.max_frame)
			return hps_err_set(err, HPS_NET, "a frame of %zu bytes",
					   zmq_msg_size(&p->part[i]));
	return HPS_OK;
}

static void warn_refused(struct hps_net *n, uint32_t peer, const char *from, const char *why)
{
	char who[32];

	if (peer < HPS_PEER_ANON)
		snprintf(who, sizeof(who), "node %u", peer);
	else if (peer == UNKNOWN)
		snprintf(who, sizeof(who), "a new peer");
	else
		snprintf(who, sizeof(who), "peer %u", peer - HPS_PEER_ANON);
	if (n->warned++ < WARNINGS)
		hps_warn("refused %s%s%s: %s", who, from && *from ? " at " : "", from ? from : "",
			 why);
	if (n->warned == WARNINGS)
		hps_warn("further refused peers are not told");
}

/* The message is believed: settle its peer's number. */
static enum hps_status settle_peer(struct hps_net *n, uint64_t id, struct hps_conn *c,
				   const struct hps_msg *m, uint32_t *peer, struct hps_err *err)
{
	uint32_t src = m->head.src;
	enum hps_status st;

	if (c) {
		*peer = c->peer;
	} else {
		*peer = src == HPS_NODE_PROCESS ? HPS_PEER_ANON + n->conns.n_anon : src;
		st = hps_conns_add(&n->conns, id, *peer, false, err);
		if (st != HPS_OK)
			return st;
	}
	if (src != HPS_NODE_PROCESS)
		n->conns.node[src] = id;
	return HPS_OK;
}

/* A connection of the listener has sent nonsense. Whoever it is learns why: an honest peer would
 * wait for its answer for ever. */
static void refuse_conn(struct hps_net *n, uint64_t id, struct hps_conn *c, const char *from,
			const struct hps_err *why)
{
	warn_refused(n, c ? c->peer : UNKNOWN, from, why->msg);
	hps_net_tell_refused(n, id, why->msg);
	if (c) {
		c->refused = true;
		n->has_refused = true;
		n->refused_peer = c->peer;
		n->refused_why = *why;
	} else { /* at the ceiling it stays unknown, and is judged anew */
		hps_conns_add(&n->conns, id, HPS_PEER_ANON, true, NULL);
	}
}

/* The node at the other end of a link is no longer heard: that ends what this one does with it. */
static enum hps_status refuse_link(struct hps_net *n, struct hps_link *link, const char *from,
				   const struct hps_err *why, struct hps_err *err)
{
	warn_refused(n, link->node, from, why->msg);
	link->refused = true;
	return hps_err_set(err, HPS_NET, "sent what does not hold: %s", why->msg);
}

/* "refuses what was sent to it: WHY" */
static enum hps_status was_refused(struct hps_link *link, struct parts *p, struct hps_err *err)
{
	size_t len = zmq_msg_size(&p->part[1]);

	link->refused = true;
	return hps_err_set(err, HPS_NET, "refuses what was sent to it: %.*s",
			   (int)(len < 200 ? len : 200), (const char *)zmq_msg_data(&p->part[1]));
}

static enum hps_status to_frames(struct parts *p, struct hps_msg *m, bool *got, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint32_t i = 1; i < p->n && st == HPS_OK; i++) {
		st = to_frame(&p->part[i], &m->frame[m->n_frames], err);
		m->n_frames += st == HPS_OK;
	}
	if (st == HPS_OK)
		*got = true;
	else
		hps_msg_release(m);
	return st;
}

static const char *address(struct parts *p)
{
	return p->n ? zmq_msg_gets(&p->part[0], "Peer-Address") : NULL;
}

/* Turn the parts of a link's message into it, or drop them; *got tells which. */
static enum hps_status accept_link(struct hps_net *n, struct hps_link *link, struct parts *p,
				   struct hps_msg *m, uint32_t *peer, bool *got,
				   struct hps_err *err)
{
	struct hps_err why;

	if (link->refused)
		return HPS_OK;
	*peer = link->node;
	if (judge(n, p, link->node, m, &why) != HPS_OK)
		return refuse_link(n, link, address(p), &why, err);
	if (m->head.type == HPS_MSG_REFUSED)
		return was_refused(link, p, err);
	return to_frames(p, m, got, err);
}

/* The same of a connection of the listener. */
static enum hps_status accept_conn(struct hps_net *n, struct parts *p, struct hps_msg *m,
				   uint32_t *peer, bool *got, struct hps_err *err)
{
	struct hps_conn *c = p->id ? hps_conns_find(&n->conns, p->id) : NULL;
	uint32_t expect = HPS_PEER_ANON;
	enum hps_status st;
	struct hps_err why;

	if (c)
		expect = c->peer < HPS_PEER_ANON ? c->peer : HPS_NODE_PROCESS;
	if (!p->id && !n->told_names) {
		hps_warn("refused a peer that names its connection");
		n->told_names = true;
	}
	if (!p->id || (c && c->refused))
		return HPS_OK;
	if (judge(n, p, expect, m, &why) != HPS_OK) {
		refuse_conn(n, p->id, c, address(p), &why);
		return HPS_OK;
	}
	st = settle_peer(n, p->id, c, m, peer, err);
	if (st != HPS_OK)
		return st == HPS_NO ? HPS_OK : st;
	return to_frames(p, m, got, err);
}

static enum hps_status accept_parts(struct hps_net *n, struct hps_link *link, struct parts *p,
				    struct hps_msg *m, uint32_t *peer, bool *got,
				    struct hps_err *err)
{
	enum hps_status st;

	memset(m, 0, sizeof(*m));
	st = link ? accept_link(n, link, p, m, peer, got, err)
		  : accept_conn(n, p, m, peer, got, err);
	drop_parts(p);
	return st;
}

/* Look at every socket once, from the one whose turn it is. *looked: a message was there. */
static enum hps_status look(struct hps_net *n, struct hps_msg *m, uint32_t *peer, bool *got,
			    bool *looked, struct hps_err *err)
{
	uint32_t n_socks = n->n_links + (n->router != NULL);
	struct parts p;

	*looked = false;
	for (uint32_t i = 0; i < n_socks; i++) {
		uint32_t s = (n->turn + i) % n_socks;
		struct hps_link *link = s < n->n_links ? &n->link[s] : NULL;

		if (!take_parts(link ? link->sock : n->router, !link, &p))
			continue;
		n->turn = (s + 1) % n_socks;
		*looked = true;
		return accept_parts(n, link, &p, m, peer, got, err);
	}
	return HPS_OK;
}

static void drain_wake(struct hps_net *n)
{
	uint64_t count;

	while (read(n->wake_fd, &count, sizeof(count)) > 0)
		;
}

/* The flag is set before the eventfd: at worst a later poll returns once too often. */
static bool was_woken(struct hps_net *n)
{
	if (!atomic_exchange(&n->woken, false))
		return false;
	drain_wake(n);
	return true;
}

enum hps_status hps_net_recv(struct hps_net *n, int timeout_ms, struct hps_msg *m, uint32_t *peer,
			     bool *got, struct hps_err *err)
{
	int64_t end = timeout_ms > 0 ? hps_now_ms() + timeout_ms : 0;
	unsigned dropped = 0;

	*got = false;
	*peer = HPS_NODE_PROCESS;
	for (;;) {
		int64_t left = timeout_ms > 0 ? end - hps_now_ms() : timeout_ms;
		enum hps_status st;
		bool looked;

		if (was_woken(n))
			return HPS_OK;
		st = look(n, m, peer, got, &looked, err);
		if (st != HPS_OK || *got)
			return st;
		if (looked) {
			if (timeout_ms >= 0 && left <= 0 && ++dropped >= DROPS_A_CALL)
				return HPS_OK;
			continue;
		}
		if (timeout_ms >= 0 && left <= 0)
			return HPS_OK;
		if (zmq_poll(n->item, (int)n->n_items, (long)left) < 0)
			return zmq_errno() == EINTR ? HPS_OK
						    : hps_zmq_failed(err, "wait for messages");
		if (n->item[0].revents & ZMQ_POLLIN)
			drain_wake(n);
	}
}

void hps_net_refuse(struct hps_net *n, uint32_t peer, const char *why)
{
	uint64_t id = hps_conns_route(&n->conns, peer);
	struct hps_conn *c = id ? hps_conns_find(&n->conns, id) : NULL;
	struct hps_link *link =
		peer < n->o.known_nodes && n->link_of[peer] ? &n->link[n->link_of[peer] - 1] : NULL;

	if ((c && !c->refused) || (link && !link->refused))
		warn_refused(n, peer, NULL, why);
	if (c && !c->refused)
		hps_net_tell_refused(n, id, why);
	if (c)
		c->refused = true;
	if (link)
		link->refused = true;
}

bool hps_net_refused(struct hps_net *n, uint32_t *peer, struct hps_err *why)
{
	if (!n->has_refused)
		return false;
	n->has_refused = false;
	*peer = n->refused_peer;
	*why = n->refused_why;
	return true;
}
