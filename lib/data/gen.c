/* How are the rows of a planted truth written fast, and how well can they be predicted?
 * Threads take blocks of rows in turn; the caller's thread writes them in order. */
#include "data/gen.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/thread.h"
#include "data/truth_int.h"

/* About 2 MB of text: a member of its own costs a compressed file nearly nothing. */
enum { BLOCK_ROWS = 8192, BLOCKS_AHEAD = 2 };

struct block {
	uint64_t rows, positives;
	double loss, entropy;
	uint64_t *key; /* (rows) of hps_auc_packed, or NULL */
	struct hps_buf out;
	enum hps_status status;
	struct hps_err err;
};

/* Thread i of n makes blocks i, i + n, i + 2n, ... and queues them. */
struct worker {
	const struct hps_gen_opts *opts;
	const struct hps_truth *truth;
	uint64_t first;
	struct hps_queue *queue;
	pthread_t thread;
};

struct hps_gen_opts hps_gen_defaults(void)
{
	return (struct hps_gen_opts){ .rows = 10000,
				      .slots = 26,
				      .dense = 13,
				      .ids = 1000,
				      .zipf = 1,
				      .interactions = 0.15,
				      .blank_rate = 0.1,
				      .base_rate = 0.25,
				      .threads = 1 };
}

static void block_free(struct block *b)
{
	if (b == NULL)
		return;
	hps_buf_release(&b->out);
	free(b->key);
	free(b);
}

static void score(struct block *b, double logit, bool positive)
{
	double p = 1 / (1 + exp(-logit));
	double if_positive = log1p(exp(-logit)), if_negative = log1p(exp(logit));

	b->loss += positive ? if_positive : if_negative;
	b->entropy += p * if_positive + (1 - p) * if_negative;
	if (b->key != NULL)
		b->key[b->rows] = hps_auc_pack((float)logit, positive);
	b->rows++;
	b->positives += positive;
}

static enum hps_status write_rows(const struct worker *w, uint64_t first, uint64_t rows,
				  struct block *b, struct hps_err *err)
{
	struct hps_buf text = HPS_BUF_INIT;
	enum hps_status st;
	char *p;

	if (w->opts->want_auc && (b->key = hps_calloc(rows, sizeof *b->key, err)) == NULL)
		return HPS_MEMORY;
	st = hps_buf_reserve(&text, rows * hps_truth_row_max(w->truth), err);
	if (st != HPS_OK)
		return st;
	p = text.data;
	for (uint64_t i = 0; i < rows; i++) {
		double logit;
		bool positive;

		p = hps_truth_row(w->truth, first + i, p, &logit, &positive);
		score(b, logit, positive);
	}
	text.len = (size_t)(p - text.data);
	if (w->opts->compress == HPS_COMPRESS_NONE) {
		b->out = text;
		return HPS_OK;
	}
	st = hps_compress_block(w->opts->compress, text.data, text.len, &b->out, err);
	hps_buf_release(&text);
	return st;
}

/* Ends with the last block, when the queue is closed, or without memory, which the writer
 * sees as a NULL too early. */
static void *make_blocks(void *arg)
{
	const struct worker *w = arg;
	uint64_t rows = w->opts->rows, step = (uint64_t)BLOCK_ROWS * w->opts->threads;

	for (uint64_t at = w->first; at < rows; at += step) {
		uint64_t n = rows - at < BLOCK_ROWS ? rows - at : BLOCK_ROWS;
		struct block *b = hps_calloc(1, sizeof *b, NULL);

		if (b == NULL)
			break;
		b->status = write_rows(w, w->opts->skip + at, n, b, &b->err);
		if (!hps_queue_put(w->queue, b)) {
			block_free(b);
			break;
		}
	}
	hps_queue_close(w->queue);
	return NULL;
}

/* --- the writer --- */

struct total {
	struct hps_gen_summary *out;
	double loss, entropy;
	uint64_t *key;
};

static enum hps_status take(const struct hps_gen_opts *o, struct block *b, struct hps_sink *sink,
			    struct total *t, struct hps_err *err)
{
	enum hps_status st;

	if (b == NULL)
		return hps_err_set(err, HPS_MEMORY, "no memory for another block of rows");
	if (b->status != HPS_OK) {
		if (err != NULL)
			*err = b->err;
		return b->status;
	}
	if ((st = hps_sink_write(sink, b->out.data, b->out.len, err)) != HPS_OK)
		return st;
	for (uint64_t i = 0; t->key != NULL && i < b->rows; i++)
		t->key[t->out->rows + i] = b->key[i];
	t->out->rows += b->rows;
	t->out->positives += b->positives;
	t->loss += b->loss;
	t->entropy += b->entropy;
	if (o->go_on != NULL && !o->go_on(o->ctx, t->out->rows))
		return hps_err_set(err, HPS_IO, "interrupted after %llu rows",
				   (unsigned long long)t->out->rows);
	return HPS_OK;
}

static enum hps_status collect(const struct hps_gen_opts *o, struct worker *w,
			       struct hps_sink *sink, struct total *t, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint64_t k = 0; st == HPS_OK && t->out->rows < o->rows; k++) {
		struct block *b = hps_queue_get(w[k % o->threads].queue);

		st = take(o, b, sink, t, err);
		block_free(b);
	}
	return st;
}

static void stop(struct worker *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		hps_queue_close(w[i].queue);
	for (uint32_t i = 0; i < n; i++) {
		struct block *b;

		pthread_join(w[i].thread, NULL);
		while ((b = hps_queue_get(w[i].queue)) != NULL)
			block_free(b);
		hps_queue_free(w[i].queue);
	}
}

static enum hps_status run(const struct hps_gen_opts *o, const struct hps_truth *truth,
			   struct hps_sink *sink, struct total *t, struct hps_err *err)
{
	struct worker *w = hps_calloc(o->threads, sizeof *w, err);
	enum hps_status st = w == NULL ? HPS_MEMORY : HPS_OK;
	uint32_t n = 0;

	while (st == HPS_OK && n < o->threads) {
		w[n] = (struct worker){ o, truth, (uint64_t)n * BLOCK_ROWS,
					hps_queue_new(BLOCKS_AHEAD, err), 0 };
		if (w[n].queue == NULL) {
			st = HPS_MEMORY;
		} else if ((st = hps_thread_start(&w[n].thread, "hps-gen", make_blocks, &w[n],
						  err)) != HPS_OK) {
			hps_queue_free(w[n].queue);
		} else {
			n++;
		}
	}
	if (st == HPS_OK)
		st = collect(o, w, sink, t, err);
	stop(w, n);
	free(w);
	return st;
}

static enum hps_status summarise(struct total *t, struct hps_err *err)
{
	struct hps_gen_summary *s = t->out;

	if (s->rows == 0) {
		s->best_logloss.undefined = s->expected_logloss.undefined = "no rows";
	} else {
		s->best_logloss.value = t->loss / (double)s->rows;
		s->expected_logloss.value = t->entropy / (double)s->rows;
	}
	if (t->key != NULL)
		return hps_auc_packed(t->key, s->rows, &s->best_auc, err);
	s->best_auc.undefined = "not asked for";
	return HPS_OK;
}

enum hps_status hps_gen(const struct hps_gen_opts *opts, struct hps_sink *sink,
			struct hps_gen_summary *out, struct hps_err *err)
{
	struct total t = { .out = out };
	struct hps_truth *truth = NULL;
	enum hps_status st = hps_truth_new(opts, &truth, err);

	if (st != HPS_OK)
		return st;
	*out = (struct hps_gen_summary){ .bias = hps_truth_bias(truth) };
	if (opts->want_auc && (t.key = hps_calloc(opts->rows, sizeof *t.key, err)) == NULL)
		st = HPS_MEMORY;
	if (st == HPS_OK)
		st = run(opts, truth, sink, &t, err);
	if (st == HPS_OK)
		st = summarise(&t, err);
	free(t.key);
	hps_truth_free(truth);
	return st;
}
