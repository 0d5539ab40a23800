/* How does a thread's node come to its sockets: context, listener, connections.
 * ROUTER and DEALER of ZeroMQ.
 */
#include "net.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/mem.h"
#include "net_int.h"

enum {
	RECEIVE_QUEUE =
		1024, /* messages of one connection; then its sender's queue grows instead */
	RECONNECT_MS = 20,
	RECONNECT_MAX_MS = 500,
};

enum hps_status hps_zmq_failed(struct hps_err *err, const char *what)
{
	int cause = zmq_errno();

	hps_err_set(err, cause == ENOMEM ? HPS_MEMORY : HPS_NET, "cannot %s: %s", what,
		    zmq_strerror(cause));
	if (cause == EMFILE || cause == ENFILE)
		hps_err_hint(err, "raise the limit of open files: ulimit -n");
	return cause == ENOMEM ? HPS_MEMORY : HPS_NET;
}

enum {
	/* standard files, data, a state directory, libzmq's own threads */
	OTHER_FILES = 32,
	/* of libzmq's mailbox, ours to wake, listening, a lock */
	FILES_A_SOCKET = 4,
};

enum hps_status hps_net_room(uint64_t sockets, uint64_t connections, struct hps_err *err)
{
	uint64_t need = OTHER_FILES + FILES_A_SOCKET * sockets + connections;
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur == RLIM_INFINITY || r.rlim_cur >= need)
		return HPS_OK;
	if (r.rlim_max == RLIM_INFINITY || r.rlim_max >= need) {
		r.rlim_cur = need;
		if (setrlimit(RLIMIT_NOFILE, &r) == 0)
			return HPS_OK;
	}
	hps_err_set(err, HPS_MEMORY,
		    "%llu sockets may need %llu file descriptors, the limit is %llu",
		    (unsigned long long)sockets, (unsigned long long)need,
		    (unsigned long long)r.rlim_max);
	hps_err_hint(err, "raise it: ulimit -n %llu", (unsigned long long)need);
	return HPS_MEMORY;
}

enum hps_status hps_net_ctx_new(struct hps_net_ctx **out, struct hps_err *err)
{
	struct hps_net_ctx *c;
	int io = hps_cpu_count() / 4;
	enum hps_status st = hps_net_room(2, 2, err);

	if (st != HPS_OK)
		return st;
	c = hps_calloc(1, sizeof(*c), err);
	if (!c)
		return HPS_MEMORY;
	c->zmq = zmq_ctx_new();
	if (!c->zmq) {
		hps_zmq_failed(err, "start ZeroMQ");
		free(c);
		return HPS_MEMORY;
	}
	/* one I/O thread moves some GB/s: more than one only where cores abound */
	zmq_ctx_set(c->zmq, ZMQ_IO_THREADS, io < 1 ? 1 : io > 4 ? 4 : io);
	zmq_ctx_set(c->zmq, ZMQ_MAX_SOCKETS, 16384);
	*out = c;
	return HPS_OK;
}

void hps_net_ctx_free(struct hps_net_ctx *c)
{
	if (!c)
		return;
	while (zmq_ctx_term(c->zmq) != 0 && zmq_errno() == EINTR)
		;
	free(c);
}

enum hps_status hps_net_new(struct hps_net_ctx *c, const struct hps_net_opts *o,
			    struct hps_net **out, struct hps_err *err)
{
	struct hps_net *n = hps_calloc(1, sizeof(*n), err);
	enum hps_status st = HPS_MEMORY;

	if (!n)
		return HPS_MEMORY;
	n->ctx = c;
	n->o = *o;
	n->listener = (struct hps_listener){ .fd = -1, .lock_fd = -1 };
	n->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (n->wake_fd < 0) {
		st = hps_err_errno(err, HPS_NET, "cannot make an eventfd");
		goto fail;
	}
	n->link_of = hps_calloc(o->known_nodes, sizeof(*n->link_of), err);
	n->item = hps_calloc(1, sizeof(*n->item), err);
	if (!n->link_of || !n->item || hps_conns_init(&n->conns, o->known_nodes, err) != HPS_OK)
		goto fail;
	n->item[n->n_items++] = (zmq_pollitem_t){ .fd = n->wake_fd, .events = ZMQ_POLLIN };
	*out = n;
	return HPS_OK;
fail:
	hps_net_free(n, 0);
	return st;
}

static void close_socket(void *sock, int linger_ms)
{
	zmq_setsockopt(sock, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
	zmq_close(sock);
}

void hps_net_free(struct hps_net *n, int linger_ms)
{
	if (!n)
		return;
	hps_listener_close(&n->listener);
	if (n->router)
		close_socket(n->router, linger_ms);
	for (uint32_t i = 0; i < n->n_links; i++) {
		/* first: libzmq leaks what it can't tell a watcher that has gone */
		if (n->link[i].watch) {
			zmq_socket_monitor(n->link[i].sock, NULL, 0);
			close_socket(n->link[i].watch, 0);
		}
		close_socket(n->link[i].sock, linger_ms);
	}
	hps_conns_release(&n->conns);
	free(n->link);
	free(n->link_of);
	free(n->item);
	if (n->wake_fd >= 0)
		close(n->wake_fd);
	free(n);
}

static enum hps_status open_socket(struct hps_net *n, int type, void **out, struct hps_err *err)
{
	int64_t max = n->o.max_frame > INT64_MAX ? INT64_MAX : (int64_t)n->o.max_frame;
	int send_queue = 0, receive_queue = RECEIVE_QUEUE, yes = 1, linger = 0;
	int first = RECONNECT_MS, most = RECONNECT_MAX_MS;
	void *s = zmq_socket(n->ctx->zmq, type);

	if (!s)
		return hps_zmq_failed(err, "make a ZeroMQ socket");
	if (max < HPS_HEAD_BYTES + HPS_SUM_BYTES)
		max = HPS_HEAD_BYTES + HPS_SUM_BYTES;
	if (zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &max, sizeof(max)) ||
	    zmq_setsockopt(s, ZMQ_SNDHWM, &send_queue, sizeof(send_queue)) ||
	    zmq_setsockopt(s, ZMQ_RCVHWM, &receive_queue, sizeof(receive_queue)) ||
	    zmq_setsockopt(s, ZMQ_LINGER, &linger, sizeof(linger)) ||
	    zmq_setsockopt(s, ZMQ_IPV6, &yes, sizeof(yes)) ||
	    zmq_setsockopt(s, ZMQ_TCP_KEEPALIVE, &yes, sizeof(yes)) ||
	    zmq_setsockopt(s, ZMQ_RECONNECT_IVL, &first, sizeof(first)) ||
	    zmq_setsockopt(s, ZMQ_RECONNECT_IVL_MAX, &most, sizeof(most)) ||
	    (type == ZMQ_ROUTER && zmq_setsockopt(s, ZMQ_ROUTER_MANDATORY, &yes, sizeof(yes)))) {
		hps_zmq_failed(err, "set up a ZeroMQ socket");
		zmq_close(s);
		return HPS_NET;
	}
	*out = s;
	return HPS_OK;
}

static enum hps_status add_item(struct hps_net *n, void *sock, struct hps_err *err)
{
	if (hps_realloc((void **)&n->item, n->n_items + 1, sizeof(*n->item), err) != HPS_OK)
		return HPS_MEMORY;
	n->item[n->n_items++] = (zmq_pollitem_t){ .socket = sock, .events = ZMQ_POLLIN };
	return HPS_OK;
}

enum hps_status hps_net_listen(struct hps_net *n, const char *endpoint, struct hps_err *err)
{
	struct hps_endpoint e;
	void *router = NULL;
	enum hps_status st;

	if (n->router)
		return hps_err_set(err, HPS_NET, "listening already at %s", n->endpoint);
	st = hps_endpoint_parse(endpoint, &e, err);
	if (st != HPS_OK)
		return st;
	st = hps_listener_open(&e, &n->listener, n->endpoint, err);
	if (st != HPS_OK)
		goto fail;
	st = open_socket(n, ZMQ_ROUTER, &router, err);
	if (st != HPS_OK)
		goto fail;
	if (zmq_setsockopt(router, ZMQ_USE_FD, &n->listener.fd, sizeof(n->listener.fd)) ||
	    zmq_bind(router, n->endpoint)) {
		st = hps_zmq_failed(err, "listen");
		goto fail;
	}
	n->listener.fd = -1; /* libzmq's now */
	st = add_item(n, router, err);
	if (st != HPS_OK)
		goto fail;
	n->router = router;
	return HPS_OK;
fail:
	if (n->listener.fd >= 0)
		close(n->listener.fd);
	hps_listener_close(&n->listener);
	if (router)
		zmq_close(router);
	n->endpoint[0] = '\0';
	hps_err_at(err, "%s", endpoint);
	return st;
}

const char *hps_net_endpoint(const struct hps_net *n)
{
	return n->endpoint;
}

/* A PAIR that hears when the socket loses its connection; NULL on failure. */
static void *watch_link(struct hps_net *n, void *sock)
{
	char at[64];
	void *watch;

	snprintf(at, sizeof(at), "inproc://watch-%p-%" PRIu32, (void *)n, n->n_links);
	if (zmq_socket_monitor(sock, at, ZMQ_EVENT_DISCONNECTED))
		return NULL;
	watch = zmq_socket(n->ctx->zmq, ZMQ_PAIR);
	if (watch && zmq_connect(watch, at)) {
		zmq_close(watch);
		return NULL;
	}
	return watch;
}

bool hps_net_cut(struct hps_net *n, uint32_t *node)
{
	for (uint32_t i = 0; i < n->n_links; i++) {
		struct hps_link *l = &n->link[i];
		char event[512]; /* its number and value, then its address */

		while (l->watch && zmq_recv(l->watch, event, sizeof(event), ZMQ_DONTWAIT) >= 0)
			l->cut = true;
	}
	for (uint32_t i = 0; i < n->n_links; i++) {
		if (n->link[i].cut) {
			*node = n->link[i].node;
			return true;
		}
	}
	return false;
}

enum hps_status hps_net_connect(struct hps_net *n, uint32_t node, const char *endpoint,
				struct hps_err *err)
{
	char numeric[HPS_ENDPOINT_MAX];
	struct sockaddr_storage sa;
	struct hps_endpoint e;
	enum hps_status st;
	socklen_t len;
	void *sock, *watch = NULL;

	if (node >= n->o.known_nodes || n->link_of[node])
		return hps_err_set(err, HPS_NET, "node %u is %s", node,
				   node < n->o.known_nodes ? "connected already" : "not known");
	st = hps_endpoint_parse(endpoint, &e, err);
	if (st != HPS_OK)
		return st;
	if (!e.ipc) {
		st = hps_endpoint_resolve(&e, &sa, &len, err);
		if (st == HPS_OK && e.port == 0)
			st = hps_err_set(err, HPS_NET, "expected a port > 0");
		if (st != HPS_OK) {
			hps_err_at(err, "%s", endpoint);
			return st;
		}
		hps_endpoint_print(&sa, numeric);
	}
	if (hps_realloc((void **)&n->link, n->n_links + 1, sizeof(*n->link), err) != HPS_OK)
		return HPS_MEMORY;
	st = open_socket(n, ZMQ_DEALER, &sock, err);
	if (st != HPS_OK)
		return st;
	if (n->o.watch && !(watch = watch_link(n, sock))) {
		st = hps_zmq_failed(err, "watch a connection");
	} else if (zmq_connect(sock, e.ipc ? endpoint : numeric)) {
		st = hps_zmq_failed(err, "connect");
		hps_err_at(err, "%s", endpoint);
	} else {
		st = add_item(n, sock, err);
	}
	if (st != HPS_OK) {
		zmq_close(sock);
		if (watch)
			zmq_close(watch);
		return st;
	}
	n->link[n->n_links++] = (struct hps_link){ .sock = sock, .watch = watch, .node = node };
	n->link_of[node] = n->n_links;
	return HPS_OK;
}

void hps_net_wake(struct hps_net *n)
{
	uint64_t one = 1;
	ssize_t rc;

	atomic_store(&n->woken, true);
	rc = write(n->wake_fd, &one, sizeof(one));
	(void)rc; /* when it is full it is readable, too */
}
