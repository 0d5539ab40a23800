/* Rows for the first-stage replicas of a process: one thread that reads ahead and hands each
 * replica the micro-batches that are its own, in the order they are wanted.
 *
 *   reader -> hps-feed thread -> inbox of replica i (at most a few batches)
 *
 * Which ranges come is known without asking the replicas: all of a step that are theirs, step by
 * step; in asp the leased chunks.
 */
#ifndef HPS_TRAIN_FEEDER_H
#define HPS_TRAIN_FEEDER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "data/reader.h"
#include "job/job.h"
#include "train/agent.h"
#include "train/inbox.h"

struct hps_feeder;

struct hps_feeder_opts {
	const struct hps_job *job;		    /* borrowed */
	const struct hps_reader_opts *train, *test; /* copied; NULL: no such data */
	const uint32_t *replica; /* numbers in the first stage of those here, ascending; copied */
	uint32_t n_replicas;
	/* to replica[i]; false: the job is ending and the batch stays the feeder's */
	bool (*give)(void *ctx, uint32_t i, const struct hps_fed *f);
	size_t (*waiting)(void *ctx, uint32_t i); /* batches given and not yet taken */
	/* the data have ended, or could not be read */
	void (*data_end)(void *ctx, uint32_t epoch, uint64_t rows);
	void (*failed)(void *ctx, const struct hps_err *err);
	void *ctx; /* the callbacks come from the feeder's thread */
};

/* Opens the data and starts the thread. */
enum hps_status hps_feeder_new(const struct hps_feeder_opts *o, struct hps_feeder **out,
			       struct hps_err *err);
/* Quits first. Batches must have been given back (hps_feeder_give_back). */
void hps_feeder_free(struct hps_feeder *f);

/* What the agent wants; HPS_FEED_LEASE's replica is an index of `replica`. */
enum hps_status hps_feeder_order(struct hps_feeder *f, const struct hps_feed *what,
				 struct hps_err *err);
/* Any thread: a replica has taken a batch, there may be room. */
void hps_feeder_poke(struct hps_feeder *f);
/* Any thread. */
void hps_feeder_give_back(struct hps_feeder *f, struct hps_batch *b);
/* Malformed lines so far, all epochs. */
uint64_t hps_feeder_skipped(struct hps_feeder *f, bool test);
/* End it, by the thread that frees it: when this returns nothing more is given. */
void hps_feeder_quit(struct hps_feeder *f);

#endif
