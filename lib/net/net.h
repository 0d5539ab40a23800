/* Sockets of one thread: addresses are node numbers, payloads are struct hps_msg.
 *
 * ROUTER where a node listens, one DEALER for each node it connects to (ZeroMQ). A peer
 * is trusted with nothing: header, frame count and frame sizes are checked here against the
 * limits, and a peer that sent a bad message is refused (its messages dropped, once logged).
 */
#ifndef HPS_NET_NET_H
#define HPS_NET_NET_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "wire/msg.h"

struct hps_net_ctx; /* a process' ZeroMQ context; shared by threads */
enum hps_status hps_net_ctx_new(struct hps_net_ctx **out, struct hps_err *err);
/* Waits for unsent messages at most linger_ms of each socket (hps_net_free's). */
void hps_net_ctx_free(struct hps_net_ctx *c);

struct hps_net_opts {
	uint64_t job;		 /* deployment id: messages of another job are refused */
	uint64_t incarnation;	 /* put in every header sent */
	uint32_t self;		 /* node number, or HPS_NODE_PROCESS */
	uint64_t max_frame;	 /* bytes of one frame accepted (ZMQ_MAXMSGSIZE) */
	uint32_t known_nodes;	 /* src below this, or HPS_NODE_PROCESS, else refused */
};

struct hps_net;
enum hps_status hps_net_new(struct hps_net_ctx *c, const struct hps_net_opts *o,
			    struct hps_net **out, struct hps_err *err);
void hps_net_free(struct hps_net *n, int linger_ms);

/* Bind. An ipc path is guarded by PATH.lock (flock, removed at close), since a second bind
 * would steal it silently; its directory is made (mode 0700). A port in use, an address not
 * of this host, a path too long are named with a hint: HPS_NET. "tcp://HOST:0" takes
 * any port: hps_net_endpoint tells which. */
enum hps_status hps_net_listen(struct hps_net *n, const char *endpoint, struct hps_err *err);
const char *hps_net_endpoint(const struct hps_net *n);
/* Connect to a node; the peer may come up later. */
enum hps_status hps_net_connect(struct hps_net *n, uint32_t node, const char *endpoint,
				struct hps_err *err);

/* Peers: a node number for connected nodes and for nodes heard of on the listener; anonymous
 * peers (src HPS_NODE_PROCESS) are numbered from HPS_PEER_ANON in order of appearance. */
#define HPS_PEER_ANON 0x80000000u

/* Send, taken; never blocks (queues are unbounded: credit bounds them above). Frames go without
 * copying. A peer not known: HPS_NET. */
enum hps_status hps_net_send(struct hps_net *n, uint32_t peer, struct hps_msg *m,
			     struct hps_err *err);
/* Send and empty an outbox. */
enum hps_status hps_net_send_all(struct hps_net *n, struct hps_outbox *o, struct hps_err *err);

/* The next message, waiting at most timeout_ms (0: no wait, -1: for ever). *got is false
 * when none came or hps_net_wake was called. Frames are owned by the message. */
enum hps_status hps_net_recv(struct hps_net *n, int timeout_ms, struct hps_msg *m, uint32_t *peer,
			     bool *got, struct hps_err *err);
/* From now on drop what this peer sends (it sent nonsense); says so once on stderr. */
void hps_net_refuse(struct hps_net *n, uint32_t peer, const char *why);

/* From any thread: make a waiting or the next hps_net_recv return. */
void hps_net_wake(struct hps_net *n);

#endif
