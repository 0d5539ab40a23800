/* What processes and the coordinator say to each other: HPS_MSG_CONTROL messages. Pure.
 *
 * head.arg is the kind, frame 0 one msgpack object (wire/control.h); SCORES carries raw frames
 * after it: row numbers (u64), scores, labels (f32). Every process (one hps-work or hps-serve a
 * host) has one connection to the coordinator, head.src is HPS_NODE_PROCESS, head.incarnation that
 * of the process.
 *
 *   process                                    coordinator
 *   JOIN {name, nodes, settings} ----------->  WELCOME, or REFUSED {error}
 *   HEARTBEAT -- every 0.5 s, both ways ---->  HEARTBEAT {missing} until all are in
 *                                              GO {first_step}
 *                                              EPOCH {epoch, step}: train; step is the first
 *   STEPS {epoch, step, mb, sum, count} ---->  STEP {...} to the printing process
 *   LEASE {epoch, node} (asp) -------------->  LEASE {epoch, node, step}
 *   DATA_END {epoch, rows} (asp) ----------->  (no leases past it)
 *   EPOCH_DONE {epoch, steps, skipped} ----->  EVAL {epoch, step}
 *   SCORES {epoch} + rows, scores, labels -->
 *   EVAL_DONE {epoch, skipped} ------------->  EVALED {metrics} to the printing process
 *                                              ... next EPOCH, or FINISH
 *   FINISHED (handed back, flushed) -------->  SAVE to serve processes
 *   SAVED {path, tables} (serve) ----------->  DONE {...} to all
 *   BYE ------------------------------------>
 *   INTERRUPT (a signal came) -------------->  HOLD to first-stage processes
 *   HELD {step}: the next not begun -------->  STOP {step}: the largest of them ends the run
 *   ERROR {status, where, msg, hint} ------->  ABORT {the same, culprit} to all
 *   predict:                                   SCORES {} in input order to the printing process
 *   PRINTED {step} ------------------------->  WINDOW {step}: rows of steps below may be fed
 */
#ifndef HPS_COORD_TALK_H
#define HPS_COORD_TALK_H

#include <stdint.h>
#include "base/err.h"
#include "doc/doc.h"
#include "wire/control.h"
#include "wire/msg.h"

enum hps_control {
	HPS_CTL_JOIN = 1,
	HPS_CTL_WELCOME,
	HPS_CTL_REFUSED,
	HPS_CTL_HEARTBEAT,
	HPS_CTL_GO,
	HPS_CTL_EPOCH,
	HPS_CTL_STEPS,
	HPS_CTL_STEP,
	HPS_CTL_LEASE,
	HPS_CTL_DATA_END,
	HPS_CTL_EPOCH_DONE,
	HPS_CTL_EVAL,
	HPS_CTL_SCORES,
	HPS_CTL_EVAL_DONE,
	HPS_CTL_EVALED,
	HPS_CTL_FINISH,
	HPS_CTL_FINISHED,
	HPS_CTL_SAVE,
	HPS_CTL_SAVED,
	HPS_CTL_DONE,
	HPS_CTL_BYE,
	HPS_CTL_INTERRUPT,
	HPS_CTL_HOLD,
	HPS_CTL_HELD,
	HPS_CTL_STOP,
	HPS_CTL_ERROR,
	HPS_CTL_ABORT,
	HPS_CTL_PRINTED,
	HPS_CTL_WINDOW,
	HPS_CTL_KINDS,
};

/* No (more) chunk, no step: the value of u64 fields that say "none". */
#define HPS_NONE UINT64_MAX

/* "join", "step", ...: for messages; never NULL. */
const char *hps_talk_name(uint32_t kind);

/* A control message with a body (taken, also on failure; NULL: an empty object). */
enum hps_status hps_talk_make(enum hps_control kind, struct hps_doc *body, struct hps_msg *out,
			      struct hps_err *err);
/* Check kind and body of a received message; *body, an object, is the caller's. HPS_NET: the
 * sender is at fault. */
enum hps_status hps_talk_read(const struct hps_msg *m, enum hps_control *kind,
			      struct hps_doc **body, struct hps_err *err);

/* An error as body members (status, where, msg, hint), and back. */
struct hps_doc *hps_talk_error(const struct hps_err *e);
void hps_talk_error_read(const struct hps_doc *body, struct hps_err *e);

#endif
