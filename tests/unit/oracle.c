/* How does a deployment train, step by step, written to be read? See oracle.h. */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>
#include "cm.h"

#include "nn/stage.h"
#include "optim/optim.h"
#include "ring/ring.h"
#include "tensor/backend.h"

/* A table the slow way: rows in order of creation, found by a linear-probe index. */
struct rows {
	uint32_t dim;
	size_t row_floats; /* value, optimizer state, gradient sum */
	struct hps_optim optim;
	size_t n, cap;
	uint64_t *key, *updates;
	uint64_t *touched; /* step number + 1 in which the row's gradient was begun */
	float *data;
	size_t index_size;
	size_t *index; /* row number + 1 */
};

struct oracle {
	const struct hps_job *job;
	const struct hps_graph *g;
	struct hps_stage **stage;
	struct hps_pass **pass; /* (micro-batch, stage): one set for each micro-batch of a step */
	uint64_t **key;		/* likewise: the keys that went in, kept until the step's end */
	uint32_t n_stages, n_micro;
	struct rows *table;
	struct hps_optim optim;
	float *dense, *state, *grad;
	float **replica_grad; /* of the stage at work: [replica] */
	uint64_t steps;
};

static struct hps_optim optim_of(const struct hps_optimizer *o)
{
	return (struct hps_optim){
		.rule = o->kind == HPS_SGD	 ? HPS_RULE_SGD
			: o->kind == HPS_ADAGRAD ? HPS_RULE_ADAGRAD
						 : HPS_RULE_ADAM,
		.lr = (float)o->lr,
		.accumulator = (float)o->accumulator,
		.eps = (float)o->eps,
		.beta1 = (float)o->beta1,
		.beta2 = (float)o->beta2,
	};
}

static void *must_calloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	assert_non_null(p);
	return p;
}

static size_t rows_probe(const struct rows *r, uint64_t key)
{
	size_t at = (key * 0x9e3779b97f4a7c15u) & (r->index_size - 1);

	while (r->index[at] && r->key[r->index[at] - 1] != key)
		at = (at + 1) & (r->index_size - 1);
	return at;
}

static void rows_init(struct rows *r, const struct hps_table_spec *t)
{
	r->dim = t->dim;
	r->optim = optim_of(&t->optimizer);
	r->row_floats = 2 * (size_t)t->dim + hps_optim_state_floats(&r->optim, t->dim);
	r->index_size = 1 << 16;
	r->index = must_calloc(r->index_size, sizeof(*r->index));
	r->cap = r->index_size / 2;
	r->key = must_calloc(r->cap, sizeof(*r->key));
	r->updates = must_calloc(r->cap, sizeof(*r->updates));
	r->touched = must_calloc(r->cap, sizeof(*r->touched));
	r->data = must_calloc(r->cap * r->row_floats, sizeof(*r->data));
}

static void rows_release(struct rows *r)
{
	free(r->key);
	free(r->updates);
	free(r->touched);
	free(r->data);
	free(r->index);
}

static float *rows_find(const struct rows *r, uint64_t key)
{
	size_t i = r->index[rows_probe(r, key)];

	return i ? r->data + (i - 1) * r->row_floats : NULL;
}

static size_t rows_create(struct oracle *o, uint32_t table, uint64_t key)
{
	struct rows *r = &o->table[table];
	size_t at = rows_probe(r, key);

	if (!r->index[at]) {
		float *row = r->data + r->n * r->row_floats;

		assert_true(r->n < r->cap);
		r->key[r->n] = key;
		hps_row_init(&o->job->model.table[table], table, key, o->job->deployment.seed, row);
		hps_optim_state_init(&r->optim, row + r->dim, r->dim);
		r->index[at] = ++r->n;
	}
	return r->index[at] - 1;
}

static float *row_grad(const struct rows *r, size_t i)
{
	return r->data + (i + 1) * r->row_floats - r->dim;
}

struct oracle *oracle_new(const struct hps_job *job, const struct hps_graph *g)
{
	const struct hps_deployment *d = &job->deployment;
	struct oracle *o = must_calloc(1, sizeof(*o));
	uint32_t most = 0;

	o->job = job;
	o->g = g;
	o->n_stages = d->n_stages;
	o->n_micro = d->stage[0].n_replicas * d->micro_batches;
	o->stage = must_calloc(o->n_stages, sizeof(struct hps_stage *));
	o->pass = must_calloc((size_t)o->n_stages * o->n_micro, sizeof(struct hps_pass *));
	for (uint32_t s = 0; s < o->n_stages; s++) {
		uint32_t rows = (uint32_t)((d->batch + o->n_micro - 1) / o->n_micro);

		assert_int_equal(hps_stage_new(g, d->stage[s].first, d->stage[s].last,
					       hps_backend_openblas(), rows, &o->stage[s], NULL),
				 HPS_OK);
		for (uint32_t m = 0; m < o->n_micro; m++)
			assert_int_equal(
				hps_pass_new(o->stage[s], &o->pass[m * o->n_stages + s], NULL),
				HPS_OK);
		if (d->stage[s].n_replicas > most)
			most = d->stage[s].n_replicas;
	}
	o->key = must_calloc((size_t)o->n_stages * o->n_micro, sizeof(uint64_t *));
	o->table = must_calloc(job->model.n_tables, sizeof(*o->table));
	for (uint32_t t = 0; t < job->model.n_tables; t++)
		rows_init(&o->table[t], &job->model.table[t]);
	o->optim = optim_of(&job->model.train.optimizer);
	o->dense = must_calloc(g->n_floats, sizeof(float));
	o->grad = must_calloc(g->n_floats, sizeof(float));
	o->state = must_calloc(hps_optim_state_floats(&o->optim, g->n_floats), sizeof(float));
	hps_param_init_range(g, 0, g->n_floats, d->seed, o->dense);
	hps_optim_state_init(&o->optim, o->state, g->n_floats);
	o->replica_grad = must_calloc(most + 1, sizeof(float *));
	for (uint32_t r = 0; r < most; r++)
		o->replica_grad[r] = must_calloc(g->n_floats, sizeof(float));
	return o;
}

void oracle_free(struct oracle *o)
{
	for (uint32_t i = 0; i < o->n_stages * o->n_micro; i++)
		hps_pass_free(o->pass[i]), free(o->key[i]);
	for (uint32_t s = 0; s < o->n_stages; s++)
		hps_stage_free(o->stage[s]);
	for (uint32_t t = 0; t < o->job->model.n_tables; t++)
		rows_release(&o->table[t]);
	for (float **p = o->replica_grad; *p; p++)
		free(*p);
	free(o->replica_grad);
	free(o->pass);
	free(o->key);
	free(o->stage);
	free(o->table);
	free(o->dense);
	free(o->state);
	free(o->grad);
	free(o);
}

/* Fill the unique rows of a pass' lookups as a pull would. */
static void pull(struct oracle *o, struct hps_stage *s, struct hps_pass *p)
{
	for (uint32_t i = 0; i < hps_stage_n_lookups(s); i++) {
		struct hps_lookup *l = hps_pass_lookup(p, i);

		for (uint32_t k = 0; k < l->n_unique; k++) {
			const float *row = rows_find(&o->table[l->table], l->key[k]);
			float *to = l->unique + (size_t)k * l->dim;

			if (row)
				memcpy(to, row, l->dim * sizeof(float));
			else
				hps_row_init(&o->job->model.table[l->table], l->table, l->key[k],
					     o->job->deployment.seed, to);
		}
	}
}

/* Columns of the slots that a cut names, out of all slots' keys. */
static uint64_t *pick_keys(const struct hps_batch *data, uint64_t begin, uint32_t rows,
			   const uint32_t *slot, uint32_t n)
{
	uint64_t *out = must_calloc((size_t)rows * n, sizeof(*out));

	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t c = 0; c < n; c++)
			out[(size_t)r * n + c] = data->key[(begin + r) * data->slots + slot[c]];
	return out;
}

/* One micro-batch through all stages; its passes then wait for backward. */
static double forward(struct oracle *o, uint32_t micro, uint32_t epoch,
		      const struct hps_batch *data, uint64_t begin, uint32_t rows)
{
	struct hps_pass **pass = o->pass + (size_t)micro * o->n_stages;
	uint64_t **key = o->key + (size_t)micro * o->n_stages;
	const struct hps_deployment *d = &o->job->deployment;
	uint32_t slots = o->job->model.slots;
	uint32_t *all = must_calloc(slots, sizeof(*all));

	for (uint32_t i = 0; i < slots; i++)
		all[i] = i;
	for (uint32_t s = 0; s < o->n_stages; s++) {
		const struct hps_cut *cut = s ? &o->g->cut[d->stage[s].first - 1] : NULL;
		struct hps_stage_in in = {
			.rows = rows,
			.row = data->row + begin,
			.label = data->label + begin,
			.dense = data->feature + begin * data->dense,
			.key_slot = cut ? cut->slot : all,
			.n_key_slots = cut ? cut->n_slots : slots,
			.seed = d->seed,
			.epoch = epoch,
		};
		uint64_t n;

		free(key[s]);
		in.key = key[s] = pick_keys(data, begin, rows, in.key_slot, in.n_key_slots);
		if (s)
			in.activation = hps_pass_output(pass[s - 1], &n);
		assert_int_equal(hps_pass_begin(pass[s], &in, NULL), HPS_OK);
		pull(o, o->stage[s], pass[s]);
		hps_pass_forward(pass[s], o->dense + hps_stage_param_offset(o->stage[s]), true);
	}
	free(all);
	return hps_pass_loss(pass[o->n_stages - 1]);
}

/* Backward of all micro-batches through stage s; fills replica_grad, returns nothing else:
 * row gradients stay in the passes. */
static void backward(struct oracle *o, uint32_t s)
{
	const struct hps_deployment *d = &o->job->deployment;
	uint64_t at = hps_stage_param_offset(o->stage[s]), n = hps_stage_n_floats(o->stage[s]);
	uint32_t k = d->stage[s].n_replicas;

	for (uint32_t r = 0; r < k; r++)
		memset(o->replica_grad[r] + at, 0, n * sizeof(float));
	for (uint32_t m = 0; m < o->n_micro; m++) {
		struct hps_pass **pass = o->pass + (size_t)m * o->n_stages;
		uint64_t cols;
		const float *from =
			s + 1 < o->n_stages ? hps_pass_input_grad(pass[s + 1], &cols) : NULL;

		hps_pass_backward(pass[s], o->dense + at, from, o->replica_grad[m % k] + at);
	}
}

/* The sum of the replicas' gradients in the order of the stage's way to synchronise. */
static void reduce_dense(struct oracle *o, uint32_t s)
{
	const struct hps_deployed_stage *st = &o->job->deployment.stage[s];
	uint64_t at = hps_stage_param_offset(o->stage[s]), n = hps_stage_n_floats(o->stage[s]);
	uint32_t k = st->n_replicas, chunks = st->dense_sync == HPS_DENSE_RING ? k : 1;

	for (uint32_t c = 0; c < chunks; c++) {
		uint64_t lo = 0, len = n;

		if (chunks > 1)
			hps_ring_chunk(n, k, c, &lo, &len);
		for (uint64_t i = lo; i < lo + len; i++) {
			float sum = o->replica_grad[c][at + i];

			for (uint32_t r = 1; r < k; r++)
				sum += o->replica_grad[(c + r) % k][at + i];
			o->grad[at + i] = sum;
		}
	}
}

/* Add one micro-batch's row gradients, lookups of one table merged first. */
static void add_rows(struct oracle *o, struct hps_stage *s, struct hps_pass *p)
{
	uint32_t n = hps_stage_n_lookups(s);

	for (uint32_t i = 0; i < n; i++) {
		const struct hps_lookup *l = hps_pass_lookup(p, i);
		struct rows *t = &o->table[l->table];

		for (uint32_t k = 0; k < l->n_unique; k++) {
			float g[512];
			bool seen = false;
			size_t row;

			assert_true(l->dim <= 512);
			memcpy(g, l->grad + (size_t)k * l->dim, l->dim * sizeof(float));
			for (uint32_t j = 0; j < n; j++) {
				const struct hps_lookup *b = hps_pass_lookup(p, j);

				if (j == i || b->table != l->table)
					continue;
				for (uint32_t q = 0; q < b->n_unique; q++) {
					if (b->key[q] != l->key[k])
						continue;
					seen |= j < i; /* done with the earlier lookup */
					for (uint32_t c = 0; c < l->dim; c++)
						g[c] += b->grad[(size_t)q * l->dim + c];
				}
			}
			if (seen)
				continue;
			row = rows_create(o, l->table, l->key[k]);
			if (t->touched[row] != o->steps + 1) {
				t->touched[row] = o->steps + 1;
				memcpy(row_grad(t, row), g, l->dim * sizeof(float));
				continue;
			}
			for (uint32_t c = 0; c < l->dim; c++)
				row_grad(t, row)[c] += g[c];
		}
	}
}

static void update_rows(struct oracle *o, uint64_t count)
{
	for (uint32_t t = 0; t < o->job->model.n_tables; t++) {
		struct rows *r = &o->table[t];

		for (size_t i = 0; i < r->n; i++) {
			float *row = r->data + i * r->row_floats;

			if (r->touched[i] == o->steps + 1)
				hps_optim_update_plain(&r->optim, row, row + r->dim, r->dim,
						       row_grad(r, i), count, ++r->updates[i],
						       r->dim);
		}
	}
}

double oracle_step(struct oracle *o, uint32_t epoch, const struct hps_batch *data, uint64_t begin,
		   uint64_t end)
{
	const struct hps_deployment *d = &o->job->deployment;
	double loss = 0;
	uint64_t at = begin;

	/* fixed offsets: sizes differ by at most one, larger ones first */
	for (uint32_t m = 0; m < o->n_micro; m++) {
		uint64_t size = d->batch / o->n_micro + (m < d->batch % o->n_micro);
		uint64_t to = at + size < end ? at + size : end;

		loss += forward(o, m, epoch, data, at < end ? at : end,
				(uint32_t)(to - (at < end ? at : end)));
		at = to;
	}
	for (uint32_t s = o->n_stages; s-- > 0;) {
		backward(o, s);
		reduce_dense(o, s);
	}
	for (uint32_t s = 0; s < o->n_stages; s++)
		for (uint32_t r = 0; r < d->stage[s].n_replicas; r++)
			for (uint32_t m = r; m < o->n_micro; m += d->stage[s].n_replicas)
				add_rows(o, o->stage[s], o->pass[(size_t)m * o->n_stages + s]);
	update_rows(o, end - begin);
	hps_optim_update_plain(&o->optim, o->dense, o->state, o->g->n_floats, o->grad, end - begin,
			       o->steps + 1, o->g->n_floats);
	o->steps++;
	return loss;
}

const float *oracle_dense(const struct oracle *o)
{
	return o->dense;
}

const float *oracle_dense_grad(const struct oracle *o)
{
	return o->grad;
}

const float *oracle_row(const struct oracle *o, uint32_t table, uint64_t key)
{
	return rows_find(&o->table[table], key);
}

const float *oracle_row_grad(const struct oracle *o, uint32_t table, uint64_t key)
{
	const struct rows *r = &o->table[table];
	size_t i = r->index[rows_probe(r, key)];

	return i && r->touched[i - 1] == o->steps ? row_grad(r, i - 1) : NULL;
}

size_t oracle_rows(const struct oracle *o, uint32_t table)
{
	return o->table[table].n;
}

const float *oracle_row_at(const struct oracle *o, uint32_t table, size_t i, uint64_t *key)
{
	const struct rows *r = &o->table[table];

	*key = r->key[i];
	return r->data + i * r->row_floats;
}
