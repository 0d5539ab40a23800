/* The coordinator of a job: admits processes, keeps the step clock, collects metrics, notices
 * the dead, ends the job. Messages in, messages out, the clock is passed in; no I/O, one thread.
 * It runs in the hps-serve of the coordinator's host (the first shard's).
 *
 *   joining -> training -> [evaluating] -> ... -> finishing -> saving -> leaving -> over
 *                 (--eval, --predict: joining -> evaluating -> saving ...)
 *
 * Expected are all shards and replicas of the deployment; the serve process it runs in is in
 * from the start. A process is known by (name, incarnation): a JOIN repeated by the same
 * incarnation is answered again (from whatever peer number), another incarnation of a name that
 * is in is refused, as are unknown or taken nodes, settings that differ from the first process'
 * and digests of data that differ.
 *
 * Outbox destinations are peer numbers of the socket it listens on (hps_net_recv's *peer), so
 * that hps_net_send_all delivers them.
 *
 * Use, in the serve loop:
 *   recv CONTROL message from peer -> hps_coord_message; at least every 100 ms hps_coord_tick;
 *   send the outbox; then look at hps_coord_want:
 *     HPS_COORD_SAVE   save the shards of this process (or not, without --state), then call
 *                      hps_coord_saved with their counts
 *     HPS_COORD_OVER   send the outbox, leave with hps_coord_outcome
 */
#ifndef HPS_COORD_COORD_H
#define HPS_COORD_COORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "coord/talk.h"
#include "job/job.h"
#include "metric/metric.h"
#include "wire/msg.h"

struct hps_coord;

enum {
	HPS_DEAD_AFTER_S = 5,	/* silent for so long is dead, where nothing else is said */
	HPS_COORD_PATIENCE = 3, /* times as long may pass in which nothing moves */
};

struct hps_coord_opts {
	const struct hps_job *job; /* model and deployment; borrowed for the coordinator's life */
	const char *host;     /* shards deployed here are in from the start; NULL: all shards */
	uint64_t incarnation; /* of this process */
	double timeout_s;     /* name the missing after this; 0: wait for ever (--keep) */
	double dead_after_s;  /* a process silent for this long is dead; 0: 5. After a signal a step
			       * in which nothing moves is waited for HPS_COORD_PATIENCE as long */
	uint64_t first_step;  /* updates the shards have seen (hps_shard_stats.step); 0 at first */
	const char *state;    /* the state directory, for messages; borrowed; NULL: none */
	bool loaded;	      /* the shards hold a loaded or trained model: --eval and --predict
				    * are possible */
};

enum hps_status hps_coord_new(const struct hps_coord_opts *o, double now_s, struct hps_coord **out,
			      struct hps_err *err);
void hps_coord_free(struct hps_coord *c);

/* A CONTROL message from a peer, taken. HPS_NET: the peer is at fault and should be refused
 * (hps_net_refuse); if it was a member, the job has been aborted too. Other errors: end. */
enum hps_status hps_coord_message(struct hps_coord *c, uint32_t peer, struct hps_msg *m,
				  double now_s, struct hps_outbox *out, struct hps_err *err);
/* The socket no longer hears this peer, for what it sent (hps_net_refused): if it is a member, the
 * job is aborted. */
enum hps_status hps_coord_refused(struct hps_coord *c, uint32_t peer, const struct hps_err *why,
				  struct hps_outbox *out, struct hps_err *err);
/* Heartbeats, timeouts, deaths. */
enum hps_status hps_coord_tick(struct hps_coord *c, double now_s, struct hps_outbox *out,
			       struct hps_err *err);
/* A signal came: stop after the current step, save, done with "interrupted". Before all are in:
 * over at once. */
enum hps_status hps_coord_interrupt(struct hps_coord *c, double now_s, struct hps_outbox *out,
				    struct hps_err *err);
/* Something in this process failed (a shard's thread, the disk): end the job with this. */
enum hps_status hps_coord_fail(struct hps_coord *c, const struct hps_err *why, double now_s,
			       struct hps_outbox *out, struct hps_err *err);

enum hps_coord_want { HPS_COORD_NOTHING, HPS_COORD_SAVE, HPS_COORD_OVER };
enum hps_coord_want hps_coord_want(const struct hps_coord *c);

/* What saving has to tell of each table: sums over the shards of a process. */
struct hps_coord_table {
	uint64_t rows, bytes, refused;
};
/* Own shards are saved: path of the state directory or NULL (not saved); table: n_tables of
 * the model. */
enum hps_status hps_coord_saved(struct hps_coord *c, const char *path,
				const struct hps_coord_table *table, double now_s,
				struct hps_outbox *out, struct hps_err *err);

/* Once over: HPS_OK, or what ended the job (err set to it). */
enum hps_status hps_coord_outcome(const struct hps_coord *c, struct hps_err *err);
/* Totals so far. */
struct hps_coord_stats {
	uint64_t steps, samples; /* completed, over all epochs */
	uint64_t next_step;	 /* the version after them: first_step of the next job (--keep) */
	bool interrupted;
};
void hps_coord_stats(const struct hps_coord *c, struct hps_coord_stats *out);

#endif
