/* How do rows get from files into batches, ahead of training and in order? The reader's
 * life, its parser threads and the hand-over; scan.c finds the lines. */
#include "data/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "data/reader_int.h"

int hps_reader_room(void **array, size_t n, size_t *cap, size_t size, struct hps_err *err)
{
	size_t more = *cap + *cap / 2 + 16;

	if (n < *cap)
		return 0;
	if (hps_realloc(array, more, size, err) != HPS_OK)
		return -1;
	*cap = more;
	return 0;
}

/* --- jobs --- */

static void drop_text(struct hps_reader *r, struct hps_job *j)
{
	for (size_t i = 0; i < j->n_chunks; i++)
		hps_chunk_put(r->lines, j->chunk[i]);
	j->n_chunks = j->n_lines = j->n_bad = 0;
}

/* Empty a job, its arrays kept for the next use. */
static void reset(struct hps_reader *r, struct hps_job *j)
{
	drop_text(r, j);
	if (j->batch != NULL)
		hps_reader_give_back(r, j->batch);
	j->batch = NULL;
	j->at_end = j->last = j->parsed = false;
	j->status = HPS_OK;
}

static struct hps_batch *batch_get(struct hps_reader *r, size_t rows, struct hps_err *err)
{
	struct hps_batch_node *node;

	if (rows > UINT32_MAX) {
		hps_err_set(err, HPS_MEMORY, "a batch of %zu rows is too large", rows);
		return NULL;
	}
	pthread_mutex_lock(&r->lock);
	if ((node = r->spare) != NULL)
		r->spare = node->next;
	pthread_mutex_unlock(&r->lock);
	if (node == NULL && (node = hps_calloc(1, sizeof *node, err)) == NULL)
		return NULL;
	if (node->batch.row == NULL || node->batch.capacity < rows) {
		hps_batch_release(&node->batch);
		if (hps_batch_init(&node->batch, (uint32_t)rows, r->opts.slots, r->opts.dense,
				   err) != HPS_OK) {
			free(node);
			return NULL;
		}
	}
	return &node->batch;
}

static bool before(const struct hps_line *a, const struct hps_line *b)
{
	return a->file != b->file ? a->file < b->file : a->number < b->number;
}

static void note_place(const struct hps_reader *r, const struct hps_job *j, struct hps_batch *b)
{
	const struct hps_line *first = j->line, *last = j->line;

	b->file = b->last_file = NULL;
	b->first_line = b->last_line = 0;
	if (j->n_lines == 0)
		return;
	for (size_t i = 1; i < j->n_lines; i++) {
		if (before(&j->line[i], first))
			first = &j->line[i];
		if (before(last, &j->line[i]))
			last = &j->line[i];
	}
	b->file = hps_lines_name(r->lines, first->file);
	b->first_line = first->number;
	b->last_file = hps_lines_name(r->lines, last->file);
	b->last_line = last->number;
}

static enum hps_status parse(struct hps_reader *r, struct hps_job *j, struct hps_err *err)
{
	struct hps_batch *b = batch_get(r, j->n_lines, err);

	if (b == NULL)
		return HPS_MEMORY;
	j->batch = b;
	b->rows = 0;
	b->first_row = j->begin;
	b->end_row = j->end;
	note_place(r, j, b);
	for (size_t i = 0; i < j->n_lines; i++) {
		const struct hps_line *l = &j->line[i];
		size_t at = b->rows;

		if (hps_criteo_parse(&r->criteo, l->text, l->len, &b->label[at],
				     &b->feature[at * b->dense], &b->key[at * b->slots])) {
			b->row[at] = j->begin + i;
			b->rows++;
			continue;
		}
		if (hps_reader_room((void **)&j->bad, j->n_bad, &j->cap_bad, sizeof *j->bad, err))
			return HPS_MEMORY;
		j->bad[j->n_bad++] = i;
	}
	if (j->n_bad == 0)
		drop_text(r, j);
	return HPS_OK;
}

static void *parse_jobs(void *arg)
{
	struct hps_reader *r = arg;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		struct hps_job *j;
		struct hps_err err;

		while (!r->stopping && r->taken == r->filled)
			pthread_cond_wait(&r->can_parse, &r->lock);
		if (r->stopping)
			break;
		j = &r->job[r->taken++ % r->opts.ahead];
		pthread_mutex_unlock(&r->lock);
		if (!j->last && parse(r, j, &err) != HPS_OK) {
			j->n_bad = 0; /* they were not all looked at */
			j->status = err.status;
			j->err = err;
		}
		pthread_mutex_lock(&r->lock);
		j->parsed = true;
		pthread_cond_broadcast(&r->can_give);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* --- life --- */

static enum hps_status check(const struct hps_reader_opts *o, struct hps_err *err)
{
	if (o->parsers == 0 || o->ahead == 0)
		return hps_err_set(err, HPS_USAGE, "a reader needs a parser and a batch ahead");
	if (o->shuffle_rows > (uint64_t)1 << 32)
		return hps_err_set(err, HPS_USAGE,
				   "a shuffle window of %" PRIu64
				   " rows is too large: at most 2^32",
				   o->shuffle_rows);
	if (o->end_row > 0 && o->end_row <= o->first_row)
		return hps_err_set(err, HPS_USAGE, "rows %" PRIu64 " to %" PRIu64 " are none",
				   o->first_row, o->end_row);
	return HPS_OK;
}

enum hps_status hps_reader_new(const struct hps_reader_opts *opts, struct hps_reader **out,
			       struct hps_err *err)
{
	struct hps_reader *r;
	enum hps_status st = check(opts, err);

	if (st != HPS_OK)
		return st;
	if ((r = hps_calloc(1, sizeof *r, err)) == NULL)
		return HPS_MEMORY;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->can_fill, NULL);
	pthread_cond_init(&r->can_parse, NULL);
	pthread_cond_init(&r->can_give, NULL);
	pthread_cond_init(&r->idle, NULL);
	r->opts = *opts;
	r->opts.path = NULL;
	r->opts.model = NULL;
	if ((st = hps_criteo_init(&r->criteo, opts->slots, opts->dense, opts->model, err)) !=
	    HPS_OK)
		goto fail;
	r->criteo.unlabelled = opts->unlabelled;
	if ((st = hps_lines_new(opts->path, opts->n_paths, r->criteo.line_max, &r->lines, err)) !=
	    HPS_OK)
		goto fail;
	r->job = hps_calloc(opts->ahead, sizeof *r->job, err);
	r->parser = hps_calloc(opts->parsers, sizeof *r->parser, err);
	st = HPS_MEMORY;
	if (r->job == NULL || r->parser == NULL)
		goto fail;
	*out = r;
	return HPS_OK;
fail:
	hps_reader_free(r);
	return st;
}

static void clear_jobs(struct hps_reader *r)
{
	for (uint32_t i = 0; r->job != NULL && i < r->opts.ahead; i++)
		reset(r, &r->job[i]);
}

void hps_reader_free(struct hps_reader *r)
{
	if (r == NULL)
		return;
	hps_reader_stop(r);
	clear_jobs(r);
	for (uint32_t i = 0; r->job != NULL && i < r->opts.ahead; i++) {
		free(r->job[i].line);
		free(r->job[i].chunk);
		free(r->job[i].bad);
	}
	for (struct hps_batch_node *node = r->spare, *next; node != NULL; node = next) {
		next = node->next;
		hps_batch_release(&node->batch);
		free(node);
	}
	hps_lines_free(r->lines);
	pthread_cond_destroy(&r->can_fill);
	pthread_cond_destroy(&r->can_parse);
	pthread_cond_destroy(&r->can_give);
	pthread_cond_destroy(&r->idle);
	pthread_mutex_destroy(&r->lock);
	free(r->job);
	free(r->parser);
	free(r);
}

enum hps_status hps_reader_start(struct hps_reader *r, uint32_t epoch,
				 const struct hps_reader_wants *wants, struct hps_err *err)
{
	enum hps_status st;

	hps_reader_stop(r);
	clear_jobs(r);
	if ((st = hps_lines_rewind(r->lines, err)) != HPS_OK)
		return st;
	r->wants = *wants;
	r->epoch = epoch;
	r->filled = r->taken = r->given = 0;
	r->failed = HPS_OK;
	r->rows = UINT64_MAX;
	atomic_store(&r->skipped, 0);
	r->running = true;
	st = hps_thread_start(&r->scanner, "hps-scan", hps_reader_scan, r, err);
	r->scanning = st == HPS_OK;
	for (r->n_parsers = 0; st == HPS_OK && r->n_parsers < r->opts.parsers;)
		if ((st = hps_thread_start(&r->parser[r->n_parsers], "hps-parse", parse_jobs, r,
					   err)) == HPS_OK)
			r->n_parsers++;
	if (st != HPS_OK)
		hps_reader_stop(r);
	return st;
}

void hps_reader_stop(struct hps_reader *r)
{
	pthread_mutex_lock(&r->lock);
	if (r->stopping) { /* another thread is at it */
		while (r->running)
			pthread_cond_wait(&r->idle, &r->lock);
	}
	if (!r->running) {
		pthread_mutex_unlock(&r->lock);
		return;
	}
	r->stopping = true;
	pthread_cond_broadcast(&r->can_fill);
	pthread_cond_broadcast(&r->can_parse);
	pthread_cond_broadcast(&r->can_give);
	pthread_mutex_unlock(&r->lock);
	hps_lines_wake(r->lines);
	if (r->scanning)
		pthread_join(r->scanner, NULL);
	for (uint32_t i = 0; i < r->n_parsers; i++)
		pthread_join(r->parser[i], NULL);
	pthread_mutex_lock(&r->lock);
	r->running = r->stopping = false;
	pthread_cond_broadcast(&r->idle);
	pthread_mutex_unlock(&r->lock);
}

/* --- the caller's side --- */

/* What is wrong with a line that did not parse. */
static enum hps_status explain(struct hps_reader *r, const struct hps_line *l, struct hps_err *err)
{
	size_t columns = 1 + (size_t)r->opts.dense + r->opts.slots;
	struct hps_field *field = hps_calloc(columns, sizeof *field, err);
	double *value = hps_calloc(columns, sizeof *value, err);
	enum hps_status st = HPS_MEMORY;

	if (field != NULL && value != NULL) {
		st = hps_criteo_split(&r->criteo, l->text, l->len, field, value, err);
		hps_lines_blame(r->lines, l->file, l->number, r->opts.skip_bad, err);
	}
	free(field);
	free(value);
	return st;
}

static enum hps_status settle(struct hps_reader *r, struct hps_job *j, struct hps_err *err)
{
	for (size_t i = 0; i < j->n_bad; i++) {
		if (atomic_load(&r->skipped) == r->opts.skip_bad)
			return explain(r, &j->line[j->bad[i]], err);
		atomic_fetch_add(&r->skipped, 1);
	}
	if (j->status != HPS_OK && err != NULL)
		*err = j->err;
	return j->status;
}

/* The next job once it is parsed; NULL when the reader stops. */
static struct hps_job *await(struct hps_reader *r)
{
	struct hps_job *j = NULL;

	pthread_mutex_lock(&r->lock);
	while (r->running && !r->stopping) {
		j = &r->job[r->given % r->opts.ahead];
		if (r->given < r->filled && j->parsed)
			break;
		j = NULL;
		pthread_cond_wait(&r->can_give, &r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return j;
}

enum hps_status hps_reader_next(struct hps_reader *r, struct hps_batch **out, bool *at_end,
				struct hps_err *err)
{
	struct hps_job *j = NULL;

	*out = NULL;
	*at_end = false;
	if (r->failed == HPS_OK) {
		if ((j = await(r)) == NULL)
			return HPS_OK;
		*at_end = j->at_end;
		if (j->last)
			return HPS_OK;
		if (j->at_end)
			r->rows = j->rows;
		r->failed = settle(r, j, &r->failure);
	}
	if (r->failed != HPS_OK) {
		*at_end = false;
		if (err != NULL)
			*err = r->failure;
		return r->failed;
	}
	*out = j->batch;
	j->batch = NULL;
	reset(r, j);
	pthread_mutex_lock(&r->lock);
	r->given++;
	pthread_cond_signal(&r->can_fill);
	pthread_mutex_unlock(&r->lock);
	return HPS_OK;
}

void hps_reader_give_back(struct hps_reader *r, struct hps_batch *b)
{
	struct hps_batch_node *node = (struct hps_batch_node *)b;

	if (b == NULL)
		return;
	pthread_mutex_lock(&r->lock);
	node->next = r->spare;
	r->spare = node;
	pthread_mutex_unlock(&r->lock);
}

uint64_t hps_reader_rows(const struct hps_reader *r)
{
	return r->rows;
}

uint64_t hps_reader_skipped(const struct hps_reader *r)
{
	return atomic_load(&r->skipped);
}
