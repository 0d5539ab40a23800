/* What of a shard goes into its file. */
#include "serve/state_file_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

static enum hps_status put_model(struct state_writer *w, const struct hps_model *m,
				 struct hps_err *err)
{
	struct hps_doc *d = hps_model_write(m);
	enum hps_status st;

	if (!d)
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	st = hps_doc_to_json(d, &w->body, err);
	hps_doc_free(d);
	if (st == HPS_OK)
		st = hps_state_writer_put(w, (struct state_block){ .kind = STATE_MODEL }, err);
	return st;
}

static enum hps_status put_table_head(struct state_writer *w, const struct hps_job *job, uint32_t t,
				      const struct hps_table *table, struct hps_err *err)
{
	struct hps_table_stats stats;

	hps_table_stats(table, &stats);
	return hps_state_writer_put(
		w,
		(struct state_block){ .kind = STATE_TABLE,
				      .table = t,
				      .optim = job->model.table[t].optimizer.kind,
				      .a = stats.rows,
				      .b = hps_table_row_floats(table) },
		err);
}

/* Rows of one table on their way into blocks. */
struct rows {
	struct state_writer *w;
	uint32_t table, optim;
	size_t floats;
	uint64_t n; /* in the block in the making */
};

static enum hps_status flush_rows(struct rows *r, struct hps_err *err)
{
	struct state_block b = {
		.kind = STATE_ROWS, .table = r->table, .optim = r->optim, .a = r->n
	};

	if (!r->n)
		return HPS_OK;
	r->n = 0;
	return hps_state_writer_put(r->w, b, err);
}

static enum hps_status add_row(void *ctx, uint64_t key, const float *row, uint32_t freq,
			       uint32_t last, struct hps_err *err)
{
	struct rows *r = ctx;
	struct {
		uint64_t key;
		uint32_t freq, last;
	} head = { key, freq, last };
	enum hps_status st;

	_Static_assert(sizeof(head) == STATE_ROW_HEAD, "a row's head is laid out as on disk");
	st = hps_buf_add(&r->w->body, &head, sizeof(head), err);
	if (st == HPS_OK)
		st = hps_buf_add(&r->w->body, row, r->floats * sizeof(float), err);
	r->n++;
	if (st == HPS_OK && r->w->body.len >= STATE_BODY_AIM)
		st = flush_rows(r, err);
	return st;
}

static enum hps_status put_rows(struct state_writer *w, const struct hps_job *job, uint32_t t,
				const struct hps_table *table, struct hps_err *err)
{
	struct rows r = { w, t, job->model.table[t].optimizer.kind, hps_table_row_floats(table),
			  0 };
	enum hps_status st = hps_table_each(table, add_row, &r, err);

	return st == HPS_OK ? flush_rows(&r, err) : st;
}

/* A part, in pieces of about STATE_BODY_AIM. */
static enum hps_status put_dense(struct state_writer *w, const struct hps_job *job,
				 const struct hps_shard_dense *d, struct hps_err *err)
{
	struct hps_optim o = hps_optim_of(&job->model.train.optimizer);
	size_t vectors = hps_optim_state_floats(&o, 1);
	uint64_t piece = STATE_BODY_AIM / sizeof(float) / (1 + vectors);
	enum hps_status st = HPS_OK;

	for (uint64_t at = 0; at < d->n && st == HPS_OK; at += piece) {
		uint64_t n = d->n - at < piece ? d->n - at : piece;

		st = hps_buf_add(&w->body, d->param + at, n * sizeof(float), err);
		for (size_t v = 0; v < vectors && st == HPS_OK; v++)
			st = hps_buf_add(&w->body, d->state + v * d->n + at, n * sizeof(float),
					 err);
		if (st == HPS_OK)
			st = hps_state_writer_put(
				w,
				(struct state_block){ .kind = STATE_DENSE,
						      .optim = job->model.train.optimizer.kind,
						      .a = d->first + at,
						      .b = n,
						      .c = d->updates },
				err);
	}
	return st;
}

static enum hps_status put_all(struct state_writer *w, const struct hps_job *job,
			       const struct hps_shard *s, struct hps_err *err)
{
	enum hps_status st = put_model(w, &job->model, err);

	for (uint32_t t = 0; t < job->model.n_tables && st == HPS_OK; t++)
		st = put_table_head(w, job, t, hps_shard_table(s, t), err);
	for (uint32_t t = 0; t < job->model.n_tables && st == HPS_OK; t++)
		st = put_rows(w, job, t, hps_shard_table(s, t), err);
	for (uint32_t i = 0; i < hps_shard_n_dense(s) && st == HPS_OK; i++) {
		struct hps_shard_dense d = hps_shard_dense(s, i);

		st = put_dense(w, job, &d, err);
	}
	return st;
}

enum hps_status hps_state_write(const struct hps_state_write *w, const struct hps_shard *s,
				struct hps_err *err)
{
	struct hps_shard_stats stats;
	struct state_writer writer;
	struct state_head h;
	enum hps_status st;
	char *path = NULL;

	if (asprintf(&path, "%s/shard-%u.hps", w->tmp, w->shard) < 0)
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	hps_shard_stats(s, &stats);
	h = (struct state_head){
		.shard = w->shard,
		.n_shards = w->job->deployment.n_shards,
		.n_tables = w->job->model.n_tables,
		.digest = w->job->model.digest,
		.save = w->save,
		.step = stats.step,
		.epochs = w->epochs + stats.epochs,
		.n_floats = w->graph->n_floats,
		.seed = w->job->deployment.seed,
	};
	st = hps_state_writer_open(&writer, path, &h, err);
	if (st == HPS_OK) {
		st = put_all(&writer, w->job, s, err);
		if (st == HPS_OK)
			st = hps_state_writer_close(&writer, err);
		else
			hps_state_writer_discard(&writer);
	}
	free(path);
	return st;
}
