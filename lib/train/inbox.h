/* What other threads leave for a replica's thread: orders and batches, each first in, first
 * out. Orders are never refused; batches are bounded by whoever puts them (hps_inbox_batches).
 */
#ifndef HPS_TRAIN_INBOX_H
#define HPS_TRAIN_INBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "data/batch.h"
#include "train/replica.h"

struct hps_fed {	      /* a batch on its way to a replica */
	struct hps_want want; /* what it answers */
	struct hps_batch *batch;
	uint64_t data_end; /* as hps_replica_batch takes it */
};

struct hps_inbox {
	pthread_mutex_t lock;
	struct hps_order *order;
	struct hps_fed *fed;
	size_t n_orders, cap_orders, n_fed, cap_fed;
	bool quit;
};

enum hps_status hps_inbox_init(struct hps_inbox *b, struct hps_err *err);
void hps_inbox_release(struct hps_inbox *b); /* batches in it are the caller's: take them first */

/* Any thread. */
enum hps_status hps_inbox_order(struct hps_inbox *b, const struct hps_order *o,
				struct hps_err *err);
enum hps_status hps_inbox_feed(struct hps_inbox *b, const struct hps_fed *f, struct hps_err *err);
void hps_inbox_quit(struct hps_inbox *b);
size_t hps_inbox_batches(struct hps_inbox *b);

/* The replica's thread. */
bool hps_inbox_next_order(struct hps_inbox *b, struct hps_order *o);
/* The first batch, left there; none while orders wait: they were given before it, and it may be
 * of the phase that they begin. */
bool hps_inbox_peek(struct hps_inbox *b, struct hps_fed *f);
void hps_inbox_drop_first(struct hps_inbox *b); /* after a peek: it was taken */
bool hps_inbox_quits(struct hps_inbox *b);

#endif
