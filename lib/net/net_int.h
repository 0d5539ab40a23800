/* Parts of lib/net: endpoints, the listening socket, the connections heard of, the whole. */
#ifndef HPS_NET_NET_INT_H
#define HPS_NET_NET_INT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <zmq.h>
#include "base/err.h"
#include "net.h"

/* --- endpoint.c --- */

struct hps_endpoint {
	bool ipc;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* ipc */
	char host[256];						/* tcp: without brackets */
	uint16_t port;
};

/* "ipc://PATH" or "tcp://HOST:PORT"; where of an error is the text. HPS_NET. */
enum hps_status hps_endpoint_parse(const char *text, struct hps_endpoint *e, struct hps_err *err);

/* The address of a tcp endpoint: IPv4 if the host has one, else IPv6. */
enum hps_status hps_endpoint_resolve(const struct hps_endpoint *e, struct sockaddr_storage *sa,
				     socklen_t *len, struct hps_err *err);

/* "tcp://127.0.0.1:5555", "tcp://[::1]:5555". */
enum { HPS_ENDPOINT_MAX = 320 };
void hps_endpoint_print(const struct sockaddr_storage *sa, char out[HPS_ENDPOINT_MAX]);

/* --- listen.c --- */

/* A listening socket made by us rather than by libzmq, which would unlink an ipc path
 * in its own time, perhaps when it is already another's. */
struct hps_listener {
	int fd;	     /* libzmq's from hps_listener_given on, else closed by us; -1 = none */
	int lock_fd; /* ipc: held as long as the path is ours; -1 = none */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];	    /* ipc once bound, else "" */
	char lock[sizeof(((struct sockaddr_un *)0)->sun_path) + 8]; /* "" without lock_fd */
};

/* Bind and listen; actual is what peers connect to. */
enum hps_status hps_listener_open(const struct hps_endpoint *e, struct hps_listener *l,
				  char actual[HPS_ENDPOINT_MAX], struct hps_err *err);
/* Remove path and lock; call it before libzmq closes the socket. */
void hps_listener_close(struct hps_listener *l);

/* --- conns.c --- */

/* Connections to the listener, by the five bytes that ROUTER gives each. */
struct hps_conn {
	uint64_t id;   /* those bytes as a number; never 0 */
	uint32_t peer; /* number of hps_net.h */
	bool refused;
};

struct hps_conns {
	struct hps_conn *conn; /* n, in order of appearance */
	uint32_t n, cap;
	uint32_t *slot; /* open addressing over conn: index + 1, 0 = free */
	uint32_t n_slots;
	uint64_t *node; /* n_nodes: id of the connection to use for a node, 0 = none */
	uint32_t n_nodes;
	uint64_t *anon; /* n_anon: ids of anonymous peers */
	uint32_t n_anon, cap_anon;
};

enum { HPS_MAX_CONNS = 1 << 20 };

enum hps_status hps_conns_init(struct hps_conns *c, uint32_t n_nodes, struct hps_err *err);
void hps_conns_release(struct hps_conns *c);
/* NULL if never heard of. Valid until the next add. */
struct hps_conn *hps_conns_find(struct hps_conns *c, uint64_t id);
/* A connection not there yet; at the ceiling refused ones are forgotten to make room,
 * HPS_NO when that does not help. */
enum hps_status hps_conns_add(struct hps_conns *c, uint64_t id, uint32_t peer, bool refused,
			      struct hps_err *err);
/* The connection to send to a peer, 0 = none. */
uint64_t hps_conns_route(const struct hps_conns *c, uint32_t peer);

/* --- net.c --- */

/* A frame up to this costs less to copy than to hand over. The thread sanitizer cannot see
 * libzmq hand a frame to its own thread and would report (or slowly suppress) each release
 * there: under it every frame is copied. */
#ifdef __SANITIZE_THREAD__
#define HPS_NET_COPY_BYTES SIZE_MAX
#else
#define HPS_NET_COPY_BYTES ((size_t)512)
#endif

enum {
	/* of the routing id that ROUTER makes up for a connection: 0, then a number */
	HPS_NET_ID_BYTES = 5,
};

struct hps_net_ctx {
	void *zmq;
};

struct hps_link { /* a DEALER, to one node */
	void *sock;
	void *watch; /* PAIR that hears of its connection; NULL where nobody asks */
	bool cut;
	uint32_t node;
	bool refused;
};

struct hps_net {
	struct hps_net_ctx *ctx;
	struct hps_net_opts o;
	void *router; /* NULL until listen */
	struct hps_listener listener;
	char endpoint[HPS_ENDPOINT_MAX];
	struct hps_conns conns;
	struct hps_link *link; /* n_links DEALERs */
	uint32_t n_links;
	uint32_t *link_of;    /* known_nodes: index + 1, 0 = not connected */
	zmq_pollitem_t *item; /* n_items: wake_fd, DEALERs, ROUTER if any */
	uint32_t n_items;
	uint32_t turn;	 /* socket to look at first: each gets its turn */
	unsigned warned; /* refused peers so far */
	bool told_names; /* of a peer with a routing id of its own */
	bool has_refused;
	uint32_t refused_peer; /* for hps_net_refused */
	struct hps_err refused_why;
	int wake_fd;
	atomic_bool woken;
};

/* --- send.c --- */

/* Tell the connection why it is no longer heard; if that fails, it is not told. */
void hps_net_tell_refused(struct hps_net *n, uint64_t id, const char *why);

/* --- net.c again --- */

/* "cannot WHAT: the cause that libzmq gives". HPS_NET or HPS_MEMORY. */
enum hps_status hps_zmq_failed(struct hps_err *err, const char *what);

#endif
