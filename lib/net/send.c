/* How does a message leave: header and frames as one multipart message, to the socket
 * that reaches its peer. Frames are handed to libzmq without a copy.
 */
#include "net.h"

#include <errno.h>
#include <string.h>
#include "net_int.h"

/* One frame as a ZeroMQ message; the frame is used up either way. */
static int to_zmq(zmq_msg_t *z, struct hps_frame *f)
{
	int rc;

	if (f->release && f->len > HPS_NET_COPY_BYTES) {
		rc = zmq_msg_init_data(z, f->data, f->len, f->release, f->hint);
		if (rc == 0)
			f->release = NULL;
	} else {
		rc = zmq_msg_init_size(z, f->len);
		if (rc == 0 && f->len)
			memcpy(zmq_msg_data(z), f->data, f->len);
	}
	if (f->release)
		f->release(f->data, f->hint);
	*f = (struct hps_frame){ 0 };
	return rc;
}

static int send_part(void *sock, zmq_msg_t *z, bool more)
{
	int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0), rc;

	do
		rc = zmq_msg_send(z, sock, flags);
	while (rc < 0 && zmq_errno() == EINTR);
	return rc;
}

/* Where a peer is reached; *id is the connection on the ROUTER. NULL: nowhere. */
static void *route(struct hps_net *n, uint32_t peer, uint64_t *id, bool *refused)
{
	struct hps_conn *c;

	if (peer < n->o.known_nodes && n->link_of[peer]) {
		*id = 0;
		*refused = false; /* it is not heard, but may be told why */
		return n->link[n->link_of[peer] - 1].sock;
	}
	*id = hps_conns_route(&n->conns, peer);
	c = *id ? hps_conns_find(&n->conns, *id) : NULL;
	*refused = *id && (!c || c->refused);
	return *id ? n->router : NULL;
}

/* The header, and the sum over it and the frames (before they are handed over). */
static int make_head(zmq_msg_t *z, const struct hps_msg *m)
{
	int rc = zmq_msg_init_size(z, HPS_HEAD_BYTES + HPS_SUM_BYTES);
	uint8_t *to;
	uint64_t sum;

	if (rc != 0)
		return rc;
	to = zmq_msg_data(z);
	hps_head_encode(&m->head, to);
	sum = hps_sum_head(to);
	for (uint32_t i = 0; i < m->n_frames; i++)
		sum = hps_sum_frame(sum, m->frame[i].data, m->frame[i].len);
	memcpy(to + HPS_HEAD_BYTES, &sum, HPS_SUM_BYTES); /* little-endian: see wire/msg.c */
	return 0;
}

/* id: the connection of a ROUTER, 0: sock is a DEALER. */
static enum hps_status send_to(struct hps_net *n, void *sock, uint64_t id, struct hps_msg *m,
			       struct hps_err *err)
{
	zmq_msg_t part[2 + HPS_MAX_FRAMES];
	uint32_t made = 0, sent = 0, n_frames = m->n_frames;
	enum hps_status st = HPS_OK;
	int rc = 0;

	m->head.src = n->o.self;
	m->head.job = n->o.job;
	m->head.incarnation = n->o.incarnation;
	if (id && (rc = zmq_msg_init_size(&part[made], HPS_NET_ID_BYTES)) == 0) {
		for (int i = 0; i < HPS_NET_ID_BYTES; i++)
			((uint8_t *)zmq_msg_data(&part[made]))[i] = (uint8_t)(id >> (8 * i));
		made++;
	}
	if (rc == 0 && (rc = make_head(&part[made], m)) == 0)
		made++;
	for (uint32_t i = 0; i < n_frames && rc == 0; i++)
		if ((rc = to_zmq(&part[made], &m->frame[i])) == 0)
			made++;
	if (rc != 0)
		st = hps_err_set(err, HPS_MEMORY, "no memory to send a message");
	while (rc == 0 && sent < made) {
		if (send_part(sock, &part[sent], sent + 1 < made) < 0)
			break;
		sent++;
	}
	/* a peer of the listener that has left: nobody waits for the message */
	if (rc == 0 && sent < made && zmq_errno() != EHOSTUNREACH)
		st = hps_zmq_failed(err, "send");
	while (sent < made)
		zmq_msg_close(&part[sent++]);
	hps_msg_release(m);
	return st;
}

enum hps_status hps_net_send(struct hps_net *n, uint32_t peer, struct hps_msg *m,
			     struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	bool refused = false;
	uint64_t id;
	void *sock = route(n, peer, &id, &refused);

	if (!sock)
		st = hps_err_set(err, HPS_NET, "node %u is not known here", peer);
	if (!sock || refused) {
		hps_msg_release(m);
		return st;
	}
	return send_to(n, sock, id, m, err);
}

void hps_net_tell_refused(struct hps_net *n, uint64_t id, const char *why)
{
	struct hps_msg m = { .head.type = HPS_MSG_REFUSED };

	if (hps_msg_copy(&m, why, strlen(why), NULL) == HPS_OK)
		send_to(n, n->router, id, &m, NULL);
}

enum hps_status hps_net_send_all(struct hps_net *n, struct hps_outbox *o, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	size_t done = 0;

	while (done < o->n && st == HPS_OK) {
		st = hps_net_send(n, o->item[done].dst, &o->item[done].msg, err);
		done++;
	}
	o->n -= done;
	if (o->n)
		memmove(o->item, o->item + done, o->n * sizeof(*o->item));
	return st;
}
