/* Which rows come when, and to whom: the feeder's thread and the ranges it wants. */
#include "train/feeder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"

/* A batch knows its reader by its owner. */
struct source {
	struct hps_reader *reader;
	uint64_t skipped; /* of epochs before */
	const char *path; /* of the first operand, NULL: standard input */
	uint64_t first_row, end_row;
};

struct range {
	struct hps_want want;
	uint32_t to; /* index of replica */
};

struct lease {
	uint64_t step;
	uint32_t to;
};

struct hps_feeder {
	const struct hps_deployment *d;
	struct hps_feeder_opts o;
	uint32_t *replica;
	struct source train, test;
	pthread_t thread;
	bool started;

	pthread_mutex_t life; /* held while a reader is started or stopped */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool quit;
	bool pending, running, stop; /* a phase is asked for; is fed; is to end */
	struct hps_feed phase;	     /* the one asked for or fed */
	uint64_t limit;

	/* ranges asked of the reader and not yet given; the reader's thread puts, ours takes */
	struct range *range;
	size_t n_ranges, cap_ranges;
	uint64_t next_step; /* the next range, where the split is fixed */
	uint32_t next_mb;
	struct lease *lease; /* asp */
	size_t n_leases, cap_leases;
};

enum { AT_ONCE = 2 }; /* steps' worth of batches that may wait in a replica's inbox */

/* --- which rows --- */

static bool is_eval(const struct hps_feeder *f)
{
	return f->phase.kind == HPS_FEED_EVAL;
}

static bool is_static(const struct hps_feeder *f)
{
	return is_eval(f) || f->d->sync == HPS_BSP;
}

static int index_of(const struct hps_feeder *f, uint32_t replica)
{
	for (uint32_t i = 0; i < f->o.n_replicas; i++)
		if (f->replica[i] == replica)
			return (int)i;
	return -1;
}

static uint64_t base(const struct hps_feeder *f)
{
	return is_eval(f) ? 0 : f->phase.step;
}

static struct range range_of(const struct hps_feeder *f, uint64_t step, uint32_t mb, uint32_t to)
{
	bool eval = is_eval(f);
	uint64_t rows = hps_step_rows(f->d, eval), first = (step - base(f)) * rows, begin, end;
	struct range r = { .to = to };

	hps_micro_batch_rows(rows, hps_step_micros(f->d, eval), mb, &begin, &end);
	r.want = (struct hps_want){ .epoch = f->phase.epoch,
				    .eval = eval,
				    .step = step,
				    .mb = mb,
				    .begin = first + begin,
				    .end = first + end };
	return r;
}

/* Fixed split: every micro-batch g that belongs to a replica here. Locked. */
static struct range next_static(struct hps_feeder *f)
{
	uint32_t micros = hps_step_micros(f->d, true), k0 = f->d->stage[0].n_replicas;

	for (;;) {
		uint64_t step = f->next_step;
		uint32_t mb = f->next_mb++;
		int to;

		if (f->next_mb == micros) {
			f->next_mb = 0;
			f->next_step++;
		}
		to = index_of(f, mb % k0);
		if (to >= 0)
			return range_of(f, step, mb, (uint32_t)to);
	}
}

/* asp: micro-batch after micro-batch of the chunks leased. Waits for one; false: stopped.
 * Locked. */
static bool next_leased(struct hps_feeder *f, struct range *r)
{
	while (!f->n_leases && !f->stop && !f->quit)
		pthread_cond_wait(&f->changed, &f->lock);
	if (f->stop || f->quit)
		return false;
	*r = range_of(f, f->lease[0].step, f->next_mb++, f->lease[0].to);
	if (f->next_mb == f->d->micro_batches) {
		f->next_mb = 0;
		memmove(f->lease, f->lease + 1, --f->n_leases * sizeof *f->lease);
	}
	return true;
}

static bool room(void **array, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? 2 * *cap : 32;

	if (n < *cap)
		return true;
	if (hps_realloc(array, more, size, NULL) != HPS_OK)
		return false;
	*cap = more;
	return true;
}

/* The reader asks for the next range; in its thread. */
static bool want_next(void *ctx, uint64_t *begin, uint64_t *end)
{
	struct hps_feeder *f = ctx;
	void *q;
	struct range r;
	bool go;

	pthread_mutex_lock(&f->lock);
	go = !f->stop && !f->quit;
	if (go && is_static(f))
		r = next_static(f);
	else if (go)
		go = next_leased(f, &r);
	q = f->range;
	go = go && room(&q, f->n_ranges, &f->cap_ranges, sizeof *f->range);
	f->range = q;
	if (go) {
		f->range[f->n_ranges++] = r;
		*begin = r.want.begin;
		*end = r.want.end;
	}
	pthread_mutex_unlock(&f->lock);
	return go;
}

/* --- the thread --- */

/* The range that the batch just read is for. */
static struct range take_range(struct hps_feeder *f)
{
	struct range r;

	pthread_mutex_lock(&f->lock);
	r = f->range[0];
	memmove(f->range, f->range + 1, --f->n_ranges * sizeof *f->range);
	pthread_mutex_unlock(&f->lock);
	return r;
}

/* Wait until replica `to` has room, and, to predict, until the step may be fed. */
static bool wait_for_room(struct hps_feeder *f, const struct range *r)
{
	uint32_t most = AT_ONCE * f->d->micro_batches + 1;
	bool go;

	pthread_mutex_lock(&f->lock);
	while (!f->stop && !f->quit &&
	       (f->o.waiting(f->o.ctx, r->to) >= most || (is_eval(f) && r->want.step >= f->limit)))
		pthread_cond_wait(&f->changed, &f->lock);
	go = !f->stop && !f->quit;
	pthread_mutex_unlock(&f->lock);
	return go;
}

/* A model that has seen nothing must not be taken for a trained one. (An evaluation of nothing has
 * null figures and says why.) */
static enum hps_status no_rows(const struct source *s, struct hps_err *err)
{
	hps_err_set(err, HPS_BAD_INPUT, "no rows are left to train on");
	if (s->first_row || s->end_row)
		hps_err_hint(err, "rows from %llu on are asked for: the data have not as many",
			     (unsigned long long)s->first_row);
	hps_err_at(err, "%s", s->path ? s->path : "standard input");
	return HPS_BAD_INPUT;
}

static enum hps_status feed_phase(struct hps_feeder *f, struct source *s, struct hps_err *err)
{
	struct hps_reader *reader = s->reader;
	bool told = false;

	for (;;) {
		struct hps_fed fed;
		enum hps_status st;
		struct range r;
		bool at_end;

		st = hps_reader_next(reader, &fed.batch, &at_end, err);
		if (st != HPS_OK || !fed.batch)
			return st;
		r = take_range(f);
		fed.want = r.want;
		fed.data_end = hps_reader_rows(reader);
		if (fed.data_end == 0 && !is_eval(f)) {
			hps_reader_give_back(reader, fed.batch);
			return no_rows(s, err);
		}
		if (fed.data_end != UINT64_MAX && !told) {
			told = true;
			f->o.data_end(f->o.ctx, f->phase.epoch, fed.data_end);
		}
		if (!wait_for_room(f, &r) || !f->o.give(f->o.ctx, r.to, &fed)) {
			hps_reader_give_back(reader, fed.batch);
			return HPS_OK;
		}
	}
}

static bool stops(struct hps_feeder *f)
{
	bool stop;

	pthread_mutex_lock(&f->lock);
	stop = f->stop || f->quit;
	pthread_mutex_unlock(&f->lock);
	return stop;
}

static enum hps_status run_phase(struct hps_feeder *f, struct hps_err *err)
{
	struct hps_reader_wants wants = { .next = want_next, .ctx = f };
	struct source *s = is_eval(f) ? &f->test : &f->train;
	enum hps_status st;

	if (!s->reader)
		return hps_err_set(err, HPS_USAGE, "no %s data", is_eval(f) ? "test" : "training");
	pthread_mutex_lock(&f->life);
	st = hps_reader_start(s->reader, f->phase.epoch, &wants, err);
	pthread_mutex_unlock(&f->life);
	if (st != HPS_OK)
		return st;
	if (!stops(f)) /* told so before the reader had begun: it was not stopped */
		st = feed_phase(f, s, err);
	/* wants must say no before the reader can stop */
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_mutex_lock(&f->life);
	hps_reader_stop(s->reader);
	pthread_mutex_unlock(&f->life);
	pthread_mutex_lock(&f->lock);
	s->skipped += hps_reader_skipped(s->reader);
	pthread_mutex_unlock(&f->lock);
	return st;
}

static void *feed(void *arg)
{
	struct hps_feeder *f = arg;
	struct hps_err err = { 0 };
	enum hps_status st = HPS_OK;

	while (st == HPS_OK) {
		pthread_mutex_lock(&f->lock);
		f->running = false;
		pthread_cond_broadcast(&f->changed);
		while (!f->pending && !f->quit)
			pthread_cond_wait(&f->changed, &f->lock);
		if (f->quit) {
			pthread_mutex_unlock(&f->lock);
			break;
		}
		f->pending = false;
		f->running = true;
		pthread_mutex_unlock(&f->lock);
		st = run_phase(f, &err);
	}
	if (st != HPS_OK)
		f->o.failed(f->o.ctx, &err);
	pthread_mutex_lock(&f->lock);
	f->running = false;
	f->quit = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* --- from other threads --- */

static struct source *running_source(struct hps_feeder *f)
{
	return is_eval(f) ? &f->test : &f->train;
}

/* End the phase that is fed, and wait until it has ended. */
static void stop_phase(struct hps_feeder *f)
{
	struct hps_reader *reader;

	pthread_mutex_lock(&f->lock);
	f->stop = true;
	reader = f->running ? running_source(f)->reader : NULL;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	if (reader) { /* it may sit in a read of a pipe */
		pthread_mutex_lock(&f->life);
		hps_reader_stop(reader);
		pthread_mutex_unlock(&f->life);
	}
	pthread_mutex_lock(&f->lock);
	while (f->running)
		pthread_cond_wait(&f->changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

static enum hps_status begin(struct hps_feeder *f, const struct hps_feed *what)
{
	stop_phase(f);
	pthread_mutex_lock(&f->lock);
	f->phase = *what;
	f->limit = what->limit;
	f->stop = false;
	f->n_ranges = f->n_leases = 0;
	f->next_step = what->kind == HPS_FEED_EVAL ? 0 : what->step;
	f->next_mb = 0;
	f->pending = f->running = !f->quit; /* a feeder that failed feeds no more */
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return HPS_OK;
}

static enum hps_status add_lease(struct hps_feeder *f, const struct hps_feed *what,
				 struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	void *q;

	pthread_mutex_lock(&f->lock);
	q = f->lease;
	if (room(&q, f->n_leases, &f->cap_leases, sizeof *f->lease)) {
		f->lease = q;
		f->lease[f->n_leases++] = (struct lease){ what->step, what->replica };
		pthread_cond_broadcast(&f->changed);
	} else {
		st = hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	pthread_mutex_unlock(&f->lock);
	return st;
}

enum hps_status hps_feeder_order(struct hps_feeder *f, const struct hps_feed *what,
				 struct hps_err *err)
{
	switch (what->kind) {
	case HPS_FEED_TRAIN:
	case HPS_FEED_EVAL:
		return begin(f, what);
	case HPS_FEED_LEASE:
		return add_lease(f, what, err);
	case HPS_FEED_WINDOW:
		pthread_mutex_lock(&f->lock);
		f->limit = what->limit;
		pthread_cond_broadcast(&f->changed);
		pthread_mutex_unlock(&f->lock);
		return HPS_OK;
	case HPS_FEED_STOP:
		stop_phase(f);
		return HPS_OK;
	}
	return HPS_OK;
}

void hps_feeder_poke(struct hps_feeder *f)
{
	pthread_mutex_lock(&f->lock);
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

void hps_feeder_give_back(struct hps_feeder *f, struct hps_batch *b)
{
	/* a reader's spare batches are alike; which one keeps it does not matter */
	hps_reader_give_back(f->train.reader ? f->train.reader : f->test.reader, b);
}

uint64_t hps_feeder_skipped(struct hps_feeder *f, bool test)
{
	uint64_t n;

	pthread_mutex_lock(&f->lock);
	n = test ? f->test.skipped : f->train.skipped;
	pthread_mutex_unlock(&f->lock);
	return n;
}

/* --- life --- */

static enum hps_status open_data(struct source *s, const struct hps_reader_opts *o,
				 struct hps_err *err)
{
	if (!o)
		return HPS_OK;
	s->path = o->n_paths ? o->path[0] : NULL;
	s->first_row = o->first_row;
	s->end_row = o->end_row;
	return hps_reader_new(o, &s->reader, err);
}

enum hps_status hps_feeder_new(const struct hps_feeder_opts *o, struct hps_feeder **out,
			       struct hps_err *err)
{
	struct hps_feeder *f = hps_calloc(1, sizeof *f, err);
	enum hps_status st;

	if (!f)
		return HPS_MEMORY;
	f->o = *o;
	f->d = &o->job->deployment;
	pthread_mutex_init(&f->life, NULL);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	f->replica = hps_calloc(o->n_replicas, sizeof *f->replica, err);
	st = f->replica ? open_data(&f->train, o->train, err) : HPS_MEMORY;
	if (st == HPS_OK)
		st = open_data(&f->test, o->test, err);
	if (st == HPS_OK) {
		memcpy(f->replica, o->replica, o->n_replicas * sizeof *f->replica);
		st = hps_thread_start(&f->thread, "hps-feed", feed, f, err);
		f->started = st == HPS_OK;
	}
	if (st != HPS_OK) {
		hps_feeder_free(f);
		return st;
	}
	*out = f;
	return HPS_OK;
}

void hps_feeder_quit(struct hps_feeder *f)
{
	struct hps_reader *reader;

	pthread_mutex_lock(&f->lock);
	f->quit = f->stop = true;
	reader = f->running ? running_source(f)->reader : NULL;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	if (reader) {
		pthread_mutex_lock(&f->life);
		hps_reader_stop(reader);
		pthread_mutex_unlock(&f->life);
	}
	if (f->started)
		pthread_join(f->thread, NULL);
	f->started = false;
}

void hps_feeder_free(struct hps_feeder *f)
{
	if (!f)
		return;
	hps_feeder_quit(f);
	hps_reader_free(f->train.reader);
	hps_reader_free(f->test.reader);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->life);
	free(f->replica);
	free(f->range);
	free(f->lease);
	free(f);
}
