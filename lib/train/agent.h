/* One hps-work process towards the coordinator: what it is told becomes orders to its replicas
 * and to the feeder of rows; what they tell becomes messages; what people see becomes events.
 * Messages in, messages out, the clock is passed in; no I/O. One thread.
 */
#ifndef HPS_TRAIN_AGENT_H
#define HPS_TRAIN_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "coord/member.h"
#include "doc/doc.h"
#include "job/job.h"
#include "train/replica.h"
#include "wire/msg.h"

enum hps_feed_kind {
	HPS_FEED_TRAIN,	 /* an epoch's rows, from its start; epoch, step: first global step */
	HPS_FEED_EVAL,	 /* the test set, from its start; epoch, limit */
	HPS_FEED_LEASE,	 /* asp: after what was leased before, chunk `step` for `replica` */
	HPS_FEED_WINDOW, /* predict: evaluation steps below `limit` may be fed */
	HPS_FEED_STOP,	 /* the epoch or evaluation is over */
};

struct hps_feed {
	enum hps_feed_kind kind;
	uint32_t epoch, replica; /* replica: index of those here */
	uint64_t step, limit;	 /* limit: HPS_NO_STEP: none */
};

/* What the agent wants done; each is called within an hps_agent call. */
struct hps_agent_host {
	/* to the i-th replica here; may only be queued (the replica may be in an event) */
	void (*order)(void *ctx, uint32_t i, const struct hps_order *o);
	void (*feed)(void *ctx, const struct hps_feed *f);
	/* malformed lines so far, over all epochs */
	uint64_t (*skipped)(void *ctx, bool test);
	/* the printing process only. event: borrowed, {"event": "step" | "eval" | "done", ...};
	 * scores: in input order; a step is done */
	enum hps_status (*event)(void *ctx, const struct hps_doc *line, struct hps_err *err);
	enum hps_status (*scores)(void *ctx, const float *score, size_t n, struct hps_err *err);
	void (*progress)(void *ctx, uint32_t epoch, uint64_t samples, double loss,
			 double samples_per_s);
	void *ctx;
};

struct hps_agent_opts {
	const struct hps_job *job; /* borrowed */
	const char *name;	   /* "work@HOST" */
	uint64_t incarnation;
	const uint32_t *node; /* the replicas here, in the order of `i`; copied */
	uint32_t n_nodes;
	/* {"mode": "train" | "eval" | "predict", "epochs": n, "test": bool, ...}: what all
	 * processes must agree on, and "train_digest", "test_digest" where it reads data; taken */
	struct hps_doc *settings;
	double timeout_s, dead_after_s;
	uint64_t log_every; /* steps between step events; 0: 100 */
	struct hps_agent_host host;
};

struct hps_agent;

enum hps_status hps_agent_new(const struct hps_agent_opts *o, double now_s, struct hps_agent **out,
			      struct hps_err *err);
void hps_agent_free(struct hps_agent *a);

/* A CONTROL message from the coordinator, taken. An error is what ends this process, be it that
 * the job was aborted (err says by whom). */
enum hps_status hps_agent_message(struct hps_agent *a, struct hps_msg *m, double now_s,
				  struct hps_outbox *out, struct hps_err *err);
enum hps_status hps_agent_tick(struct hps_agent *a, double now_s, struct hps_outbox *out,
			       struct hps_err *err);
/* An event of replica i. */
enum hps_status hps_agent_replica(struct hps_agent *a, uint32_t i,
				  const struct hps_replica_event *e, struct hps_outbox *out,
				  struct hps_err *err);
/* Send what is gathered: after a run of events. */
enum hps_status hps_agent_flush(struct hps_agent *a, struct hps_outbox *out, struct hps_err *err);
/* asp: the epoch's data have `rows` rows. */
enum hps_status hps_agent_data_end(struct hps_agent *a, uint32_t epoch, uint64_t rows,
				   struct hps_outbox *out, struct hps_err *err);
/* A signal came: the job is to stop after the current step. Before it is let in, and where nobody
 * answers, it is over a second later. */
enum hps_status hps_agent_interrupt(struct hps_agent *a, struct hps_outbox *out,
				    struct hps_err *err);
/* Something went wrong here: tell the coordinator. */
enum hps_status hps_agent_error(struct hps_agent *a, const struct hps_err *what,
				struct hps_outbox *out, struct hps_err *err);
/* The job is over, for good or ill, and the coordinator knows that this process leaves. */
bool hps_agent_over(const struct hps_agent *a);
/* The job was done; what failed since is this process' own affair. The outbox holds its goodbye. */
bool hps_agent_done(const struct hps_agent *a);

#endif
