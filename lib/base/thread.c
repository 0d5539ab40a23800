/* Threads with names, and a bounded queue between them: a ring under one mutex. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/thread.h"

struct start {
	void *(*fn)(void *);
	void *arg;
	char name[16]; /* the kernel's limit, NUL included */
};

static void *run(void *arg)
{
	struct start s = *(struct start *)arg;

	free(arg);
	pthread_setname_np(pthread_self(), s.name);
	return s.fn(s.arg);
}

enum hps_status hps_thread_start(pthread_t *t, const char *name, void *(*fn)(void *), void *arg,
				 struct hps_err *err)
{
	struct start *s = hps_calloc(1, sizeof(*s), err);
	sigset_t all, old;
	int rc;

	if (!s)
		return HPS_MEMORY;
	s->fn = fn;
	s->arg = arg;
	snprintf(s->name, sizeof(s->name), "%s", name);
	/* Inherited by the thread: signals go to the main thread, which polls for them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(t, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		free(s);
		errno = rc;
		return hps_err_errno(err, HPS_MEMORY, "cannot start thread %s", name);
	}
	return HPS_OK;
}

struct hps_queue {
	pthread_mutex_t lock;
	pthread_cond_t not_full, not_empty;
	void **item; /* ring of cap: n items from head on */
	size_t cap, head, n;
	bool closed;
};

struct hps_queue *hps_queue_new(size_t capacity, struct hps_err *err)
{
	struct hps_queue *q = hps_calloc(1, sizeof(*q), err);

	if (!q)
		return NULL;
	q->cap = capacity ? capacity : 1;
	q->item = hps_calloc(q->cap, sizeof(*q->item), err);
	if (!q->item) {
		free(q);
		return NULL;
	}
	pthread_mutex_init(&q->lock, NULL); /* default attributes: these cannot fail */
	pthread_cond_init(&q->not_full, NULL);
	pthread_cond_init(&q->not_empty, NULL);
	return q;
}

void hps_queue_free(struct hps_queue *q)
{
	if (!q)
		return;
	pthread_cond_destroy(&q->not_empty);
	pthread_cond_destroy(&q->not_full);
	pthread_mutex_destroy(&q->lock);
	free(q->item);
	free(q);
}

bool hps_queue_put(struct hps_queue *q, void *item)
{
	bool ok;

	pthread_mutex_lock(&q->lock);
	while (q->n == q->cap && !q->closed)
		pthread_cond_wait(&q->not_full, &q->lock);
	ok = !q->closed;
	if (ok) {
		q->item[(q->head + q->n++) % q->cap] = item;
		pthread_cond_signal(&q->not_empty);
	}
	pthread_mutex_unlock(&q->lock);
	return ok;
}

/* The lock is held and there is an item. */
static void *pop(struct hps_queue *q)
{
	void *item = q->item[q->head];

	q->head = (q->head + 1) % q->cap;
	q->n--;
	pthread_cond_signal(&q->not_full);
	return item;
}

void *hps_queue_get(struct hps_queue *q)
{
	void *item;

	pthread_mutex_lock(&q->lock);
	while (q->n == 0 && !q->closed)
		pthread_cond_wait(&q->not_empty, &q->lock);
	item = q->n ? pop(q) : NULL;
	pthread_mutex_unlock(&q->lock);
	return item;
}

void hps_queue_close(struct hps_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->not_full);
	pthread_cond_broadcast(&q->not_empty);
	pthread_mutex_unlock(&q->lock);
}
