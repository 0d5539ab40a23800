/* Who gets what of a save: every file is read, each shard here keeps its own. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "serve/state_file_int.h"

struct loading {
	const struct hps_state *state;
	const struct hps_job *job;
	struct hps_shard **shard; /* n_shards of the job; NULL: not here */
	uint32_t n_shards;
	size_t vectors;	 /* of dense optimizer state */
	uint64_t *rows;	 /* n_tables: of all files, as their TABLE blocks say */
	uint64_t *seen;	 /* n_tables: rows of the file at hand */
	uint64_t floats; /* dense parameters read */
	float *row;	 /* one, aligned */
};

static enum hps_status check_model(const struct loading *l, const struct state_reader *r,
				   struct hps_err *err)
{
	const struct hps_model *m = &l->job->model;

	if (r->head.digest != m->digest)
		return hps_state_reader_bad(
			r, err, "of another model: digest %016llx, the job's has %016llx",
			(unsigned long long)r->head.digest, (unsigned long long)m->digest);
	if (r->head.save != l->state->save || r->head.n_tables != m->n_tables ||
	    r->head.n_floats != l->state->n_floats)
		return hps_state_reader_bad(r, err, "the head is of another save");
	return HPS_OK;
}

static enum hps_status check_optim(const struct state_reader *r, const char *what,
				   enum hps_optim_kind kind, struct hps_err *err)
{
	enum hps_status st;

	if (r->block.optim == kind)
		return HPS_OK;
	if (r->block.optim > HPS_ADAM)
		return hps_state_reader_bad(r, err, "unknown optimizer %u", r->block.optim);
	st = hps_state_reader_bad(r, err, "%s: saved with the optimizer %s, the job has %s", what,
				  hps_optim_name((enum hps_optim_kind)r->block.optim),
				  hps_optim_name(kind));
	hps_err_hint(err, "give the model the optimizer it was saved with");
	return st;
}

static enum hps_status check_table(const struct loading *l, const struct state_reader *r,
				   struct hps_err *err)
{
	const struct state_block *b = &r->block;
	const struct hps_table_spec *spec;

	if (b->table >= l->job->model.n_tables)
		return hps_state_reader_bad(r, err, "of table %u, the model has %u", b->table,
					    l->job->model.n_tables);
	spec = &l->job->model.table[b->table];
	return check_optim(r, spec->name, spec->optimizer.kind, err);
}

/* Floats of a row of table t, as the job has it. */
static size_t row_floats(const struct loading *l, uint32_t t)
{
	const struct hps_table_spec *spec = &l->job->model.table[t];
	struct hps_optim o = hps_optim_of(&spec->optimizer);

	return spec->dim + hps_optim_state_floats(&o, spec->dim);
}

/* --- first pass: how much there is, so that tables grow once --- */

static enum hps_status count_file(struct loading *l, const char *path, struct hps_err *err)
{
	struct state_reader r;
	enum hps_status st = hps_state_reader_open(&r, path, err);
	bool end = false;

	if (st != HPS_OK)
		return st;
	st = check_model(l, &r, err);
	for (uint32_t t = 0; st == HPS_OK && t <= l->job->model.n_tables; t++) {
		st = hps_state_reader_next(&r, &end, err);
		if (st != HPS_OK)
			break;
		if (r.block.kind != (t ? STATE_TABLE : STATE_MODEL) ||
		    (t && r.block.table != t - 1))
			st = hps_state_reader_bad(&r, err, "not the block expected here");
		else if (t && (st = check_table(l, &r, err)) == HPS_OK) {
			if (r.block.b != row_floats(l, t - 1))
				st = hps_state_reader_bad(
					&r, err, "rows of %llu floats, expected %zu",
					(unsigned long long)r.block.b, row_floats(l, t - 1));
			else if (r.block.a > r.size / STATE_ROW_HEAD)
				st = hps_state_reader_bad(&r, err,
							  "more rows than the file can hold");
			l->rows[t - 1] += r.block.a;
		}
	}
	hps_state_reader_close(&r);
	return st;
}

/* Rows spread evenly: a shard's share, and some more for chance. */
static enum hps_status reserve(struct loading *l, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint32_t s = 0; s < l->n_shards && st == HPS_OK; s++)
		for (uint32_t t = 0; l->shard[s] && t < l->job->model.n_tables && st == HPS_OK;
		     t++) {
			uint64_t share = l->rows[t] / l->n_shards;

			st = hps_table_reserve(hps_shard_table(l->shard[s], t), share + share / 16,
					       err);
		}
	return st;
}

/* --- second pass --- */

static enum hps_status load_rows(struct loading *l, const struct state_reader *r,
				 struct hps_err *err)
{
	const struct state_block *b = &r->block;
	enum hps_status st = check_table(l, r, err);
	size_t floats, stride;

	if (st != HPS_OK)
		return st;
	floats = row_floats(l, b->table);
	stride = STATE_ROW_HEAD + floats * sizeof(float);
	if (b->a > b->bytes / stride || b->a * stride != b->bytes)
		return hps_state_reader_bad(
			r, err, "expected %llu rows of %zu bytes, got %llu bytes",
			(unsigned long long)b->a, stride, (unsigned long long)b->bytes);
	l->seen[b->table] += b->a;
	for (uint64_t i = 0; i < b->a && st == HPS_OK; i++) {
		const char *p = r->body + i * stride;
		struct hps_shard *shard;
		uint32_t use[2];
		uint64_t key;

		memcpy(&key, p, sizeof(key));
		memcpy(use, p + sizeof(key), sizeof(use));
		shard = l->shard[hps_shard_of_key(b->table, key, l->n_shards)];
		if (!shard)
			continue;
		memcpy(l->row, p + STATE_ROW_HEAD, floats * sizeof(float));
		st = hps_table_put(hps_shard_table(shard, b->table), key, l->row, use[0], use[1],
				   err);
	}
	return st;
}

static enum hps_status load_dense(struct loading *l, const struct state_reader *r,
				  struct hps_err *err)
{
	enum hps_optim_kind kind = l->job->model.train.optimizer.kind;
	const struct state_block *b = &r->block;
	const float *param = (const float *)r->body;
	enum hps_status st = check_optim(r, "dense parameters", kind, err);

	if (st != HPS_OK)
		return st;
	if (b->b > l->state->n_floats || b->a > l->state->n_floats - b->b ||
	    b->bytes != b->b * (1 + l->vectors) * sizeof(float))
		return hps_state_reader_bad(r, err, "parameters %llu to %llu of %llu do not fit",
					    (unsigned long long)b->a,
					    (unsigned long long)(b->a + b->b),
					    (unsigned long long)l->state->n_floats);
	l->floats += b->b;
	for (uint32_t s = 0; s < l->n_shards && st == HPS_OK; s++)
		if (l->shard[s])
			st = hps_shard_put_dense(l->shard[s], b->a, b->b, param, param + b->b, b->c,
						 err);
	return st;
}

static enum hps_status load_file(struct loading *l, const char *path, struct hps_err *err)
{
	uint32_t n_tables = l->job->model.n_tables;
	struct state_reader r;
	enum hps_status st = hps_state_reader_open(&r, path, err);
	bool end = false;

	if (st != HPS_OK)
		return st;
	memset(l->seen, 0, n_tables * sizeof(*l->seen));
	st = check_model(l, &r, err);
	while (st == HPS_OK && !end) {
		st = hps_state_reader_next(&r, &end, err);
		if (st != HPS_OK || end)
			break;
		if (r.block.kind == STATE_TABLE && r.block.table < n_tables)
			l->seen[r.block.table] -= r.block.a; /* 0 again when all rows came */
		else if (r.block.kind == STATE_ROWS)
			st = load_rows(l, &r, err);
		else if (r.block.kind == STATE_DENSE)
			st = load_dense(l, &r, err);
	}
	for (uint32_t t = 0; t < n_tables && st == HPS_OK; t++)
		if (l->seen[t])
			st = hps_state_reader_bad(&r, err, "other rows of table %s than it says",
						  l->job->model.table[t].name);
	hps_state_reader_close(&r);
	return st;
}

enum hps_status hps_state_load(const struct hps_state *s, const struct hps_job *job,
			       struct hps_shard **shards, struct hps_err *err)
{
	struct hps_optim o = hps_optim_of(&job->model.train.optimizer);
	struct loading l = { .state = s,
			     .job = job,
			     .shard = shards,
			     .n_shards = job->deployment.n_shards,
			     .vectors = hps_optim_state_floats(&o, 1) };
	enum hps_status st = HPS_OK;
	size_t widest = 0;

	for (uint32_t t = 0; t < job->model.n_tables; t++)
		widest = row_floats(&l, t) > widest ? row_floats(&l, t) : widest;
	l.rows = hps_calloc(job->model.n_tables, sizeof(*l.rows), err);
	l.seen = hps_calloc(job->model.n_tables, sizeof(*l.seen), err);
	l.row = hps_calloc(widest, sizeof(*l.row), err);
	if (!l.rows || !l.seen || !l.row)
		st = HPS_MEMORY;
	for (uint32_t i = 0; i < s->n_files && st == HPS_OK; i++)
		st = count_file(&l, s->path[i], err);
	if (st == HPS_OK)
		st = reserve(&l, err);
	for (uint32_t i = 0; i < s->n_files && st == HPS_OK; i++)
		st = load_file(&l, s->path[i], err);
	if (st == HPS_OK && l.floats != s->n_floats) {
		st = hps_err_set(err, HPS_BAD_INPUT, "%llu dense parameters of %llu are there",
				 (unsigned long long)l.floats, (unsigned long long)s->n_floats);
		hps_err_at(err, "%s", s->path[0]);
	}
	free(l.rows);
	free(l.seen);
	free(l.row);
	return st;
}
