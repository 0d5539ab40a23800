/* What a shard does with pushes and pulls of rows.
 *
 * In bsp the pushes of a step are kept until the last is in, then summed per key in a fixed
 * order, through a scratch hash from key to its place in the sums, and applied once. */
#include "ps/shard_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/hot.h"
#include "base/mem.h"

enum { GROUP = 16 }; /* keys whose scratch slots are prefetched together */

/* What is left of one push's directory while tables are worked off in ascending order. */
struct rows_cursor {
	const uint64_t *key;
	const float *grad;
	uint32_t entry;
	uint32_t n; /* keys of the table at hand */
};

/* --- life --- */

static void init_row(void *ctx, uint64_t key, float *row)
{
	const struct shard_row_init *in = ctx;

	hps_row_init(in->spec, in->table, key, in->seed, row);
}

/* A shard's part of a ceiling over all shards. */
static uint64_t share_of(uint64_t max, uint32_t shard, uint32_t n_shards)
{
	return max / n_shards + (shard < max % n_shards);
}

static enum hps_status make_table(struct shard_rows *r, const struct hps_deployment *d, uint32_t t,
				  uint32_t shard, struct hps_err *err)
{
	const struct hps_table_spec *spec = r->init[t].spec;
	struct hps_table_opts o = {
		.name = spec->name,
		.dim = spec->dim,
		.optim = hps_optim_of(&spec->optimizer),
		.init = init_row,
		.init_ctx = &r->init[t],
		.max_rows = share_of(spec->max_rows, shard, d->n_shards),
		.max_bytes = share_of(spec->max_bytes, shard, d->n_shards),
	};

	/* a share of no row or byte is not "no ceiling": one byte holds no row */
	if ((spec->max_rows && !o.max_rows) || (spec->max_bytes && !o.max_bytes))
		o.max_bytes = 1;
	return hps_table_new(&o, &r->table[t], err);
}

/* Turns: stage by stage, replica by replica, a replica's micro-batches ascending. */
static void set_turns(struct shard_rows *r, const struct hps_deployment *d)
{
	uint32_t turn = 0;

	for (uint32_t s = 0; s < d->n_stages; s++) {
		uint32_t k = d->stage[s].n_replicas, rank = r->stage_rank[s];

		if (rank == UINT32_MAX)
			continue;
		for (uint32_t i = 0; i < k; i++)
			for (uint32_t g = i; g < r->n_micro; g += k)
				r->turn[rank * r->n_micro + g] = turn++;
	}
}

static enum hps_status make_turns(struct shard_rows *r, const struct hps_job *job,
				  struct hps_err *err)
{
	const struct hps_deployment *d = &job->deployment;
	uint64_t n_micro = (uint64_t)d->stage[0].n_replicas * d->micro_batches;

	if (n_micro < 1 || n_micro > HPS_PS_MAX_MICRO)
		return hps_err_set(
			err, HPS_BAD_INPUT,
			"expected 1 to %d micro-batches a step over all replicas, got %llu",
			HPS_PS_MAX_MICRO, (unsigned long long)n_micro);
	r->n_micro = (uint32_t)n_micro;
	r->stage_rank = hps_calloc(d->n_stages, sizeof(*r->stage_rank), err);
	if (!r->stage_rank)
		return HPS_MEMORY;
	for (uint32_t s = 0; s < d->n_stages; s++)
		r->stage_rank[s] = hps_stage_looks_up(job, s) ? r->n_lookup++ : UINT32_MAX;
	if (!r->bsp)
		return HPS_OK;
	r->n_due = r->n_lookup * r->n_micro;
	r->turn = hps_calloc(r->n_due, sizeof(*r->turn), err);
	r->due = hps_calloc((size_t)r->n_due * HPS_PS_AHEAD, sizeof(*r->due), err);
	r->cursor = hps_calloc(r->n_due, sizeof(*r->cursor), err);
	if (!r->turn || !r->due || !r->cursor)
		return HPS_MEMORY;
	set_turns(r, d);
	return HPS_OK;
}

enum hps_status hps_shard_rows_init(struct shard_rows *r, const struct hps_job *job, uint32_t shard,
				    struct hps_err *err)
{
	const struct hps_model *m = &job->model;
	enum hps_status st = HPS_OK;

	r->bsp = job->deployment.sync == HPS_BSP;
	r->n_tables = m->n_tables;
	r->table = hps_calloc(m->n_tables, sizeof(*r->table), err);
	r->dim = hps_calloc(m->n_tables, sizeof(*r->dim), err);
	r->init = hps_calloc(m->n_tables, sizeof(*r->init), err);
	if (!r->table || !r->dim || !r->init)
		return HPS_MEMORY;
	for (uint32_t t = 0; t < m->n_tables && st == HPS_OK; t++) {
		r->dim[t] = m->table[t].dim;
		r->init[t] = (struct shard_row_init){ &m->table[t], t, job->deployment.seed };
		st = make_table(r, &job->deployment, t, shard, err);
	}
	return st == HPS_OK ? make_turns(r, job, err) : st;
}

void hps_shard_rows_release(struct shard_rows *r)
{
	for (uint32_t t = 0; r->table && t < r->n_tables; t++)
		hps_table_free(r->table[t]);
	for (size_t i = 0; r->due && i < (size_t)r->n_due * HPS_PS_AHEAD; i++)
		hps_msg_release(&r->due[i]);
	free(r->table);
	free(r->dim);
	free(r->init);
	free(r->stage_rank);
	free(r->turn);
	free(r->due);
	free(r->cursor);
	free(r->sum_slot);
	free(r->sum_key);
	free(r->sum);
}

/* --- pull --- */

enum hps_status hps_shard_rows_answer(struct shard_rows *r, struct hps_msg *m,
				      struct hps_msg *answer, struct hps_err *err)
{
	bool zeros = m->head.flags & HPS_FLAG_EVAL;
	const uint64_t *key = hps_msg_array(m, 1, err);
	size_t floats = 0;
	void *values = NULL;
	float *out;

	if (!key)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < hps_dir_count(m); i++)
		floats += (size_t)hps_dir_entry(m, i).n * r->dim[hps_dir_entry(m, i).table];
	if (hps_realloc(&values, floats ? floats : 1, sizeof(float), err) != HPS_OK)
		return HPS_MEMORY;
	out = values;
	for (uint32_t i = 0; i < hps_dir_count(m); i++) {
		struct hps_dir_entry e = hps_dir_entry(m, i);

		hps_table_pull(r->table[e.table], key, e.n, zeros, out);
		key += e.n;
		out += (size_t)e.n * r->dim[e.table];
	}
	answer->frame[answer->n_frames++] = m->frame[0]; /* the directory goes back as it came */
	m->frame[0] = (struct hps_frame){ 0 };
	return hps_msg_take(answer, values, floats * sizeof(float), err);
}

/* --- summation --- */

static inline size_t sum_home(const struct shard_rows *r, uint64_t key)
{
	return (size_t)(((key ^ (key >> 32)) * 0x9e3779b97f4a7c15u) >> (64 - r->sum_bits));
}

/* Room to sum `keys` keys (at most) of dim floats, and a fresh generation of slots. */
static enum hps_status sum_reserve(struct shard_rows *r, size_t keys, uint32_t dim,
				   struct hps_err *err)
{
	unsigned bits = r->sum_bits ? r->sum_bits : 8;
	enum hps_status st;
	void *p;

	while (((size_t)1 << bits) < 2 * keys)
		bits++;
	if (bits != r->sum_bits) {
		struct sum_slot *slot = hps_calloc((size_t)1 << bits, sizeof(*slot), err);

		if (!slot)
			return HPS_MEMORY;
		free(r->sum_slot);
		r->sum_slot = slot;
		r->sum_bits = bits;
		r->generation = 0;
	}
	if (r->generation == UINT32_MAX) {
		memset(r->sum_slot, 0, sizeof(*r->sum_slot) << r->sum_bits);
		r->generation = 0;
	}
	r->generation++;
	if (keys > r->cap_keys) {
		p = r->sum_key;
		if ((st = hps_realloc(&p, keys, sizeof(*r->sum_key), err)) != HPS_OK)
			return st;
		r->sum_key = p;
		r->cap_keys = keys;
	}
	if (keys * dim > r->cap_floats) {
		p = r->sum;
		if ((st = hps_realloc(&p, keys, dim * sizeof(float), err)) != HPS_OK)
			return st;
		r->sum = p;
		r->cap_floats = keys * dim;
	}
	return HPS_OK;
}

static inline void sum_one(struct shard_rows *r, size_t at, uint64_t key, const float *grad,
			   uint32_t dim, uint32_t *n)
{
	size_t mask = ((size_t)1 << r->sum_bits) - 1;
	struct sum_slot *s = &r->sum_slot[at];
	float *sum;

	while (s->generation == r->generation && s->key != key)
		s = &r->sum_slot[at = (at + 1) & mask];
	if (s->generation != r->generation) {
		*s = (struct sum_slot){ key, *n, r->generation };
		r->sum_key[*n] = key;
		memcpy(r->sum + (size_t)*n * dim, grad, dim * sizeof(float));
		++*n;
		return;
	}
	sum = r->sum + (size_t)s->at * dim;
	for (uint32_t j = 0; j < dim; j++)
		sum[j] += grad[j];
}

HPS_HOT static void sum_push(struct shard_rows *r, const struct rows_cursor *c, uint32_t dim,
			     uint32_t *n)
{
	size_t at[GROUP];

	for (uint32_t i = 0; i < c->n; i += GROUP) {
		uint32_t m = c->n - i < GROUP ? c->n - i : GROUP;

		for (uint32_t j = 0; j < m; j++) {
			at[j] = sum_home(r, c->key[i + j]);
			__builtin_prefetch(&r->sum_slot[at[j]], 1);
		}
		for (uint32_t j = 0; j < m; j++)
			sum_one(r, at[j], c->key[i + j], c->grad + (size_t)(i + j) * dim, dim, n);
	}
}

/* Sum one table's gradients of a step and apply them. */
static enum hps_status update_table(struct shard_rows *r, const struct hps_msg *due, uint32_t t,
				    uint64_t count, struct hps_err *err)
{
	const struct rows_cursor *only = NULL;
	uint32_t dim = r->dim[t], sources = 0, n = 0;
	size_t total = 0;
	enum hps_status st;

	for (uint32_t i = 0; i < r->n_due; i++) {
		struct rows_cursor *c = &r->cursor[i];
		bool has = c->entry < hps_dir_count(&due[i]) &&
			   hps_dir_entry(&due[i], c->entry).table == t;

		c->n = has ? hps_dir_entry(&due[i], c->entry++).n : 0;
		if (c->n) {
			only = c;
			sources++;
			total += c->n;
		}
	}
	if (sources == 1) { /* the keys of one push are distinct: nothing to sum */
		st = hps_table_push(r->table[t], only->key, only->grad, only->n, count,
				    (uint32_t)r->step, err);
	} else if (sources) {
		if (total > UINT32_MAX)
			return hps_err_set(err, HPS_MEMORY, "table %s: too many keys in a step",
					   hps_table_name(r->table[t]));
		if ((st = sum_reserve(r, total, dim, err)) != HPS_OK)
			return st;
		for (uint32_t i = 0; i < r->n_due; i++)
			sum_push(r, &r->cursor[i], dim, &n);
		st = hps_table_push(r->table[t], r->sum_key, r->sum, n, count, (uint32_t)r->step,
				    err);
	} else {
		return HPS_OK;
	}
	for (uint32_t i = 0; i < r->n_due; i++) {
		r->cursor[i].key += r->cursor[i].n;
		r->cursor[i].grad += (size_t)r->cursor[i].n * dim;
	}
	return st;
}

static enum hps_status update_tables(struct shard_rows *r, struct hps_err *err)
{
	struct hps_msg *due = r->due + (size_t)(r->step % HPS_PS_AHEAD) * r->n_due;
	enum hps_status st = HPS_OK;
	uint64_t count = 0;

	for (uint32_t i = 0; i < r->n_due; i++) {
		r->cursor[i] =
			(struct rows_cursor){ due[i].frame[1].data, due[i].frame[2].data, 0, 0 };
		if (i < r->n_micro) /* the turns of the lowest lookup stage */
			count += due[i].head.count;
	}
	for (uint32_t t = 0; t < r->n_tables && st == HPS_OK; t++)
		st = update_table(r, due, t, count, err);
	for (uint32_t i = 0; i < r->n_due; i++)
		hps_msg_release(&due[i]);
	r->n_here[r->step % HPS_PS_AHEAD] = 0;
	r->step++;
	return st;
}

/* --- push --- */

static enum hps_status apply_now(struct shard_rows *r, struct hps_msg *m, struct hps_err *err)
{
	const uint64_t *key = m->frame[1].data;
	const float *grad = m->frame[2].data;
	enum hps_status st = HPS_OK;

	for (uint32_t i = 0; i < hps_dir_count(m) && st == HPS_OK; i++) {
		struct hps_dir_entry e = hps_dir_entry(m, i);

		st = hps_table_push(r->table[e.table], key, grad, e.n, m->head.count,
				    (uint32_t)m->head.step, err);
		key += e.n;
		grad += (size_t)e.n * r->dim[e.table];
	}
	if (m->head.step >= r->step && m->head.step < UINT64_MAX)
		r->step = m->head.step + 1;
	return st;
}

static enum hps_status keep(struct shard_rows *r, struct hps_msg *m, uint32_t rank, bool *updated,
			    struct hps_err *err)
{
	uint32_t lane = (uint32_t)(m->head.step % HPS_PS_AHEAD);
	enum hps_status st = HPS_OK;
	struct hps_msg *slot;

	if (m->head.step < r->step)
		return HPS_OK; /* of a step that is done: a repeat */
	if (m->head.step - r->step >= HPS_PS_AHEAD)
		return hps_err_set(err, HPS_NET, "push: step %llu is far from step %llu",
				   (unsigned long long)m->head.step, (unsigned long long)r->step);
	slot = &r->due[(size_t)lane * r->n_due + r->turn[rank * r->n_micro + m->head.mb]];
	if (slot->n_frames)
		return HPS_OK; /* here already */
	*slot = *m;
	m->n_frames = 0;
	r->n_here[lane]++;
	while (st == HPS_OK && r->n_here[r->step % HPS_PS_AHEAD] == r->n_due) {
		st = update_tables(r, err);
		*updated = true;
	}
	return st;
}

enum hps_status hps_shard_rows_push(struct shard_rows *r, struct hps_msg *m, uint32_t stage,
				    bool *updated, struct hps_err *err)
{
	uint32_t rank = r->stage_rank[stage];

	if (rank == UINT32_MAX)
		return hps_err_set(err, HPS_NET, "push: stage %u looks up no rows", stage);
	if (m->head.flags)
		return hps_err_set(err, HPS_NET, "push: unexpected flags 0x%x", m->head.flags);
	if (m->head.mb >= r->n_micro)
		return hps_err_set(err, HPS_NET, "push: expected a micro-batch below %u, got %u",
				   r->n_micro, m->head.mb);
	if (!hps_msg_array(m, 1, err) || !hps_msg_array(m, 2, err))
		return HPS_MEMORY;
	if (r->bsp)
		return keep(r, m, rank, updated, err);
	*updated = true;
	return apply_now(r, m, err);
}
