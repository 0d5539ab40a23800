/* Sockets of one thread: addresses are node numbers, payloads are struct hps_msg.
 *
 * ROUTER where a node listens, one DEALER for each node it connects to (ZeroMQ). A peer
 * is trusted with nothing: header, frame count and frame sizes are checked here against the
 * limits, and a peer that sent a bad message is refused (its messages dropped, once logged, and
 * told why, so that an honest one does not wait for an answer). A refusal holds for the connection
 * it came over, so that nobody can have another node refused by using its number; answers to a node
 * go over the connection that it spoke on last.
 *
 * A struct hps_net is used by one thread at a time; only hps_net_wake is for any thread.
 * Messages between two nodes never overtake each other in one direction. libzmq keeps a
 * message until its last frame is there, so a peer that never ends one costs memory here.
 */
#ifndef HPS_NET_NET_H
#define HPS_NET_NET_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "wire/msg.h"

struct hps_net_ctx; /* a process' ZeroMQ context; shared by threads */
/* See to it that this process may open the descriptors that so many sockets and connections take,
 * before libzmq, which aborts where it may not: raises the soft limit towards the hard one.
 * HPS_MEMORY: that is too low. */
enum hps_status hps_net_room(uint64_t sockets, uint64_t connections, struct hps_err *err);
/* Sees to room for a few. */
enum hps_status hps_net_ctx_new(struct hps_net_ctx **out, struct hps_err *err);
/* Waits for unsent messages at most linger_ms of each socket (hps_net_free's). NULL is fine. */
void hps_net_ctx_free(struct hps_net_ctx *c);

struct hps_net_opts {
	uint64_t job;	      /* deployment id: messages of another job are refused */
	uint64_t incarnation; /* put in every header sent */
	uint32_t self;	      /* node number, or HPS_NODE_PROCESS */
	uint64_t max_frame;   /* bytes of one frame accepted (ZMQ_MAXMSGSIZE) */
	uint32_t known_nodes; /* src below this, or HPS_NODE_PROCESS, else refused */
	bool watch;	      /* for hps_net_cut: two more sockets a connection */
};

struct hps_net;
enum hps_status hps_net_new(struct hps_net_ctx *c, const struct hps_net_opts *o,
			    struct hps_net **out, struct hps_err *err);
/* Unsent messages are given linger_ms to leave, by the context. NULL is fine. */
void hps_net_free(struct hps_net *n, int linger_ms);

/* Bind, once a net. An ipc path is guarded by PATH.lock (flock, removed at close), since a
 * second bind would steal it silently; its directory is made (mode 0700; one named hps-* is
 * removed with the last socket in it), and the socket a killed process left behind is taken over. A
 * port in use, an address not of this host, a path too long are named with a hint: HPS_NET.
 * "tcp://HOST:0" takes any port: hps_net_endpoint tells which. HOST is a name, an IPv4 address or
 * an IPv6 one in brackets; nothing listens on more interfaces than it says. */
enum hps_status hps_net_listen(struct hps_net *n, const char *endpoint, struct hps_err *err);
const char *hps_net_endpoint(const struct hps_net *n); /* "" before listen */
/* Connect to a node, once each; the peer may come up later. */
enum hps_status hps_net_connect(struct hps_net *n, uint32_t node, const char *endpoint,
				struct hps_err *err);

/* Peers: a node number for connected nodes and for nodes heard of on the listener; anonymous
 * peers (src HPS_NODE_PROCESS) are numbered from HPS_PEER_ANON in order of appearance. */
#define HPS_PEER_ANON 0x80000000u

/* Send, taken also on failure; never blocks (queues are unbounded: credit bounds them above).
 * src, job and incarnation of the header are filled in. Frames go without copying: their release
 * function runs later, in a thread of ZeroMQ; borrowed frames (release NULL) are copied. A
 * peer not known: HPS_NET. What goes to a peer of the listener that has left, or that was refused,
 * is dropped. */
enum hps_status hps_net_send(struct hps_net *n, uint32_t peer, struct hps_msg *m,
			     struct hps_err *err);
/* Send and empty an outbox. On failure the rest stays in it. */
enum hps_status hps_net_send_all(struct hps_net *n, struct hps_outbox *o, struct hps_err *err);

/* The next message, waiting at most timeout_ms (0: no wait, -1: for ever). *got is false
 * when none came, hps_net_wake was called or a signal came. Frames are owned by the message,
 * writable and aligned to 8 bytes. HPS_MEMORY: one message was lost. HPS_NET: a node that this one
 * connected to has sent what does not hold, or refuses what was sent to it; *peer is its number,
 * HPS_NODE_PROCESS if it was none's fault. It is refused from then on, but can be spoken to. */
enum hps_status hps_net_recv(struct hps_net *n, int timeout_ms, struct hps_msg *m, uint32_t *peer,
			     bool *got, struct hps_err *err);
/* From now on drop what this peer sends (it sent nonsense); says so once on stderr. */
void hps_net_refuse(struct hps_net *n, uint32_t peer, const char *why);
/* Has a peer of the listener, one that had been heard before, been refused since the last call for
 * a message that did not hold? Of several the last. */
bool hps_net_refused(struct hps_net *n, uint32_t *peer, struct hps_err *why);

/* Was the connection to a connected node cut since it was made? ZeroMQ makes a new one, but what
 * was on its way is lost. Also so where the node has ended. *node: which, of several the first. */
bool hps_net_cut(struct hps_net *n, uint32_t *node);

/* From any thread: make a waiting or the next hps_net_recv return with *got false. */
void hps_net_wake(struct hps_net *n);

#endif
