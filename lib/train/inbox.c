/* A replica's inbox: two short queues under a lock. */
#include "train/inbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum hps_status hps_inbox_init(struct hps_inbox *b, struct hps_err *err)
{
	memset(b, 0, sizeof *b);
	if (pthread_mutex_init(&b->lock, NULL))
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	return HPS_OK;
}

void hps_inbox_release(struct hps_inbox *b)
{
	free(b->order);
	free(b->fed);
	pthread_mutex_destroy(&b->lock);
}

static enum hps_status room(void **array, size_t n, size_t *cap, size_t size, struct hps_err *err)
{
	size_t more = *cap ? 2 * *cap : 16;

	if (n < *cap)
		return HPS_OK;
	if (hps_realloc(array, more, size, err) != HPS_OK)
		return HPS_MEMORY;
	*cap = more;
	return HPS_OK;
}

enum hps_status hps_inbox_order(struct hps_inbox *b, const struct hps_order *o, struct hps_err *err)
{
	enum hps_status st;
	void *q;

	pthread_mutex_lock(&b->lock);
	q = b->order;
	st = room(&q, b->n_orders, &b->cap_orders, sizeof *b->order, err);
	b->order = q;
	if (st == HPS_OK)
		b->order[b->n_orders++] = *o;
	pthread_mutex_unlock(&b->lock);
	return st;
}

enum hps_status hps_inbox_feed(struct hps_inbox *b, const struct hps_fed *f, struct hps_err *err)
{
	enum hps_status st;
	void *q;

	pthread_mutex_lock(&b->lock);
	q = b->fed;
	st = room(&q, b->n_fed, &b->cap_fed, sizeof *b->fed, err);
	b->fed = q;
	if (st == HPS_OK)
		b->fed[b->n_fed++] = *f;
	pthread_mutex_unlock(&b->lock);
	return st;
}

void hps_inbox_quit(struct hps_inbox *b)
{
	pthread_mutex_lock(&b->lock);
	b->quit = true;
	pthread_mutex_unlock(&b->lock);
}

size_t hps_inbox_batches(struct hps_inbox *b)
{
	size_t n;

	pthread_mutex_lock(&b->lock);
	n = b->n_fed;
	pthread_mutex_unlock(&b->lock);
	return n;
}

bool hps_inbox_next_order(struct hps_inbox *b, struct hps_order *o)
{
	bool got;

	pthread_mutex_lock(&b->lock);
	got = b->n_orders > 0;
	if (got) {
		*o = b->order[0];
		memmove(b->order, b->order + 1, --b->n_orders * sizeof *b->order);
	}
	pthread_mutex_unlock(&b->lock);
	return got;
}

bool hps_inbox_peek(struct hps_inbox *b, struct hps_fed *f)
{
	bool got;

	pthread_mutex_lock(&b->lock);
	got = b->n_fed > 0 && b->n_orders == 0;
	if (got)
		*f = b->fed[0];
	pthread_mutex_unlock(&b->lock);
	return got;
}

void hps_inbox_drop_first(struct hps_inbox *b)
{
	pthread_mutex_lock(&b->lock);
	memmove(b->fed, b->fed + 1, --b->n_fed * sizeof *b->fed);
	pthread_mutex_unlock(&b->lock);
}

bool hps_inbox_quits(struct hps_inbox *b)
{
	bool quit;

	pthread_mutex_lock(&b->lock);
	quit = b->quit;
	pthread_mutex_unlock(&b->lock);
	return quit;
}
