/* A process' side of the coordinator: joins, keeps the heartbeat, notices that the coordinator is
 * gone. Messages in, messages out, the clock is passed in. hps-work builds on it
 * (train/agent.h); an hps-serve that is not the coordinator's host uses it as it is:
 *
 *   hps_member_new, then in the loop: hps_member_tick at least every 100 ms; each CONTROL message
 *   from the coordinator -> hps_member_message, then act on notice.kind:
 *     HPS_CTL_SAVE       save, then hps_member_saved
 *     HPS_CTL_DONE       hps_member_say(BYE), leave, status 0
 *     HPS_CTL_ABORT, HPS_CTL_REFUSED: the call itself returns their status and error: leave
 *   On a signal hps_member_say(INTERRUPT); on a failure of its own hps_member_error.
 * Messages go to node HPS_NODE_COORDINATOR.
 */
#ifndef HPS_COORD_MEMBER_H
#define HPS_COORD_MEMBER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "coord/talk.h"
#include "coord/coord.h"
#include "job/job.h"
#include "wire/msg.h"

struct hps_member;

struct hps_member_opts {
	const struct hps_job *job; /* borrowed */
	const char *name;	   /* "work@HOST", "serve@HOST"; copied */
	uint64_t incarnation;
	const uint32_t *node; /* what runs here; copied */
	uint32_t n_nodes;
	struct hps_doc *settings; /* what all work processes must agree on; taken, NULL for serve */
	double timeout_s;	  /* to get in, and until all are in; 0: for ever */
	double dead_after_s;	  /* a silent coordinator is dead; 0: 5 */
};

enum hps_status hps_member_new(const struct hps_member_opts *o, double now_s,
			       struct hps_member **out, struct hps_err *err);
void hps_member_free(struct hps_member *m);

struct hps_notice {
	enum hps_control kind; /* 0: nothing the owner must act on */
	struct hps_doc *body;  /* object; owned by the notice */
	struct hps_msg msg;    /* SCORES only: with its raw frames */
};
void hps_notice_release(struct hps_notice *n);

/* A message from the coordinator, taken. REFUSED and ABORT come back as the error they carry. */
enum hps_status hps_member_message(struct hps_member *m, struct hps_msg *msg, double now_s,
				   struct hps_notice *out_notice, struct hps_err *err);
/* JOIN (again), heartbeat. HPS_NET: the coordinator has not answered in time, a peer is missing,
 * or the coordinator is gone; err names it. */
enum hps_status hps_member_tick(struct hps_member *m, double now_s, struct hps_outbox *out,
				struct hps_err *err);
/* Has the coordinator let it in? */
bool hps_member_in(const struct hps_member *m);
/* Say something; body taken (NULL: none). */
enum hps_status hps_member_say(struct hps_member *m, enum hps_control kind, struct hps_doc *body,
			       struct hps_outbox *out, struct hps_err *err);
/* Tell the coordinator what went wrong here; it aborts the job. */
enum hps_status hps_member_error(struct hps_member *m, const struct hps_err *what,
				 struct hps_outbox *out, struct hps_err *err);
/* serve: the answer to SAVE; as hps_coord_saved. */
enum hps_status hps_member_saved(struct hps_member *m, const char *path,
				 const struct hps_coord_table *table, struct hps_outbox *out,
				 struct hps_err *err);

#endif
