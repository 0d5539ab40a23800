/* Messages between the nodes of a job: a fixed header frame, then raw frames. Pure.
 *
 * Header frame, 72 bytes, little-endian:
 *
 *    0  u32 magic "HPS1"    4  u16 version      6  u16 type      8  u32 flags  12  u32 src
 *   16  u64 job            24  u64 incarnation 32  u64 seq      40  u64 step
 *   48  u32 epoch          52  u32 mb          56  u32 count    60  u32 arg
 *   64  u64 aux
 *
 * On a socket (lib/net) 8 bytes follow it: a sum over the header and the frames, so that a message
 * damaged on its way is refused rather than believed. Of frames beyond HPS_SUM_WHOLE bytes, which
 * hold numbers to compute with, it covers the length only.
 *
 * src is the sender's node number (job/deployment.h), or HPS_NODE_PROCESS for a process'
 * control connection. job is hps_deployment_id: a peer of another job is refused.
 * seq counts a sender's requests to one receiver from 1; with (src, incarnation) it makes
 * a repeated push harmless. Payload frames are raw little-endian arrays, sent without
 * copying; control messages have one msgpack frame (wire/control.h). Hosts are little-endian:
 * msg.c refuses to compile elsewhere.
 */
#ifndef HPS_WIRE_MSG_H
#define HPS_WIRE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum {
	HPS_WIRE_VERSION = 1,
	HPS_HEAD_BYTES = 72,
	HPS_SUM_BYTES = 8,
	HPS_SUM_WHOLE = 4096,
	HPS_MAX_FRAMES = 6
};
#define HPS_NODE_COORDINATOR 0u
#define HPS_NODE_PROCESS     UINT32_MAX

enum hps_msg_type {
	/* replica -> shard, shard -> replica */
	HPS_MSG_PULL = 1,   /* frames: directory, keys. step: the version wanted (bsp: answered
			     * when the tables have seen updates 0 .. step-1). To EVERY shard, even
			     * empty: so no replica gets far ahead of a shard */
	HPS_MSG_ROWS,	    /* frames: directory, values. The answer to a PULL, same step/mb/seq */
	HPS_MSG_PUSH,	    /* frames: directory, keys, gradient sums. count: samples. bsp: every
			     * lookup stage sends one a micro-batch to EVERY shard, even empty */
	HPS_MSG_DENSE_PULL, /* no frame; arg: stage; step as in PULL */
	HPS_MSG_DENSE,	    /* the answer. frame: this shard's part of the stage's parameters; with
			     * HPS_FLAG_STATE a second frame: optimizer state of the part; aux:
			     * updates done. A shard whose part is empty takes no part in dense
			     * messages of the stage: neither asked nor sent to */
	HPS_MSG_DENSE_PUSH, /* frame: gradient sums, this shard's part; arg: stage; count */
	HPS_MSG_DENSE_SET,  /* frames: parameters, optimizer state; arg: stage; aux: updates done */
	HPS_MSG_FLUSH,	    /* answered by FLUSHED when all updates before `step` are applied */
	HPS_MSG_FLUSHED,
	/* replica -> replica */
	HPS_MSG_FORWARD,  /* frames: row numbers, labels, [dense], [keys], [activations] as the cut
			     * says; aux: operand << 48 | first line; arg: line count */
	HPS_MSG_BACKWARD, /* frame: gradients as the cut says; HPS_FLAG_EVAL: none, credit only */
	HPS_MSG_END,	  /* forward, to every replica of the next stage: the epoch's steps are
			     * 0..step-1 of this sender (bsp: the same for all) */
	HPS_MSG_RING,	  /* frame: one chunk; arg: ring round; step */
	/* anyone <-> coordinator: one msgpack frame (wire/control.h) */
	HPS_MSG_CONTROL,
	/* who listens -> who connected: what you sent does not hold, you are not heard any more.
	 * One frame: why, as text */
	HPS_MSG_REFUSED,
};

enum hps_msg_flag {
	HPS_FLAG_EVAL = 1,  /* evaluation: nothing is created or changed */
	HPS_FLAG_STATE = 2, /* with optimizer state */
};

struct hps_head {
	uint16_t type;
	uint32_t flags, src;
	uint64_t job, incarnation, seq, step;
	uint32_t epoch, mb, count, arg;
	uint64_t aux;
};

/* One payload frame: owned bytes with their release function, or borrowed ones
 * (release NULL) that outlive the message. release may be called from any thread. data is NULL
 * only where len is 0. */
struct hps_frame {
	void *data;
	size_t len;
	void (*release)(void *data, void *hint);
	void *hint;
};

struct hps_msg {
	struct hps_head head;
	uint32_t n_frames;
	struct hps_frame frame[HPS_MAX_FRAMES];
};

void hps_head_encode(const struct hps_head *h, uint8_t out[HPS_HEAD_BYTES]);
/* HPS_NET with what is wrong: length, magic, version, type, flags. h is set on success only. */
enum hps_status hps_head_decode(const void *data, size_t len, struct hps_head *h,
				struct hps_err *err);

/* The sum of an encoded header, and that sum with a further frame. */
uint64_t hps_sum_head(const uint8_t head[HPS_HEAD_BYTES]);
uint64_t hps_sum_frame(uint64_t sum, const void *data, size_t len);

/* "pull", "dense push", ...: a constant for messages, never NULL. */
const char *hps_msg_name(uint16_t type);

/* Append a frame. _take: data was malloc()ed, the message frees it (at once on failure, which
 * is HPS_MEMORY when there are too many frames). _copy: copies. */
enum hps_status hps_msg_take(struct hps_msg *m, void *data, size_t len, struct hps_err *err);
enum hps_status hps_msg_copy(struct hps_msg *m, const void *data, size_t len, struct hps_err *err);
void hps_msg_release(struct hps_msg *m); /* frees the frames; the message is empty then */

/* Frame i as an array whose start is aligned to 8 bytes: what came from a socket may not be, and
 * is then replaced by a copy. NULL without memory. An empty frame gives a valid pointer. */
void *hps_msg_array(struct hps_msg *m, uint32_t i, struct hps_err *err);

/* A directory frame: one entry a table in a PULL, ROWS or PUSH. */
struct hps_dir_entry {
	uint32_t table; /* model table index */
	uint32_t n;	/* keys of this table, following those of the entries before */
};
/* Check a PULL, ROWS or PUSH against the tables' dims: number of frames, entries ascending by
 * table, counts and frame lengths agreeing, no overflow. HPS_NET with a reason, also for a
 * message of another type. */
enum hps_status hps_dir_check(const struct hps_msg *m, const uint32_t *dims, uint32_t n_tables,
			      struct hps_err *err);
/* Entry i of a checked message's directory, and their number. */
uint32_t hps_dir_count(const struct hps_msg *m);
struct hps_dir_entry hps_dir_entry(const struct hps_msg *m, uint32_t i);

/* Messages a state machine wants sent, in order. */
struct hps_outbox {
	struct {
		uint32_t dst; /* node */
		struct hps_msg msg;
	} * item;
	size_t n, cap;
};
/* Takes the message (released on failure). */
enum hps_status hps_outbox_put(struct hps_outbox *o, uint32_t dst, struct hps_msg *m,
			       struct hps_err *err);
/* Frees everything unsent in it; the outbox is empty then and may be used again. */
void hps_outbox_release(struct hps_outbox *o);

#endif
