/* Threads with names, and a bounded queue between them. */
#ifndef HPS_BASE_THREAD_H
#define HPS_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

/* Start fn(arg) under a name of at most 15 bytes, all signals blocked in it. */
enum hps_status hps_thread_start(pthread_t *t, const char *name, void *(*fn)(void *), void *arg,
				 struct hps_err *err);

/* A bounded queue of pointers; many producers, many consumers. */
struct hps_queue;
struct hps_queue *hps_queue_new(size_t capacity, struct hps_err *err);
/* The queue must be quiet; items left in it are the caller's. */
void hps_queue_free(struct hps_queue *q);
/* Blocks while full; false once closed (the item stays the caller's). */
bool hps_queue_put(struct hps_queue *q, void *item);
/* Blocks while empty; NULL once closed and empty. */
void *hps_queue_get(struct hps_queue *q);
/* No more puts; waiting gets drain, then see NULL. */
void hps_queue_close(struct hps_queue *q);

#endif
