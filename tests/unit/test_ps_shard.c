/* Shards and clients over a network that reorders and repeats, against a plain loop: bit for bit. */
#include "cm.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "ps/client.h"
#include "ps/shard.h"
#include "ps_case.h"

enum { MAX_SHARDS = 40, MAX_REPLICAS = 9, MAX_LOOKUPS = 4, MAX_KEYS = 9, MAX_MICRO = 12, DIM = 4 };

/* --- the plain loop: rows in a list, sums in written order, plain optimizers --- */

struct plain_row {
	uint32_t table;
	uint64_t key;
	float w[DIM], state[2 * DIM], sum[DIM];
	uint64_t t;
	bool summed;
};

struct plain {
	const struct ps_case *c;
	struct plain_row row[4000];
	size_t n_rows;
	float *w, *state; /* flat; state: stage by stage */
	uint64_t updates[3];
};

static struct plain *plain_new(const struct ps_case *c)
{
	struct plain *p = calloc(1, sizeof(*p));
	struct hps_optim o = hps_optim_of(&c->job.model.train.optimizer);
	const struct hps_deployment *d = &c->job.deployment;

	p->c = c;
	p->w = calloc(c->graph.n_floats, sizeof(float));
	p->state = calloc(2 * c->graph.n_floats, sizeof(float));
	hps_param_init_range(&c->graph, 0, c->graph.n_floats, d->seed, p->w);
	for (uint32_t s = 0; s < d->n_stages; s++) {
		uint64_t b = c->graph.layer_offset[d->stage[s].first];

		hps_optim_state_init(&o, p->state + 2 * b,
				     c->graph.layer_offset[d->stage[s].last + 1] - b);
	}
	return p;
}

static void plain_free(struct plain *p)
{
	free(p->w);
	free(p->state);
	free(p);
}

static struct plain_row *plain_find(struct plain *p, uint32_t table, uint64_t key)
{
	for (size_t i = 0; i < p->n_rows; i++)
		if (p->row[i].table == table && p->row[i].key == key)
			return &p->row[i];
	return NULL;
}

static void plain_read(struct plain *p, uint32_t table, uint64_t key, bool zeros, float *out)
{
	const struct hps_table_spec *spec = &p->c->job.model.table[table];
	struct plain_row *r = plain_find(p, table, key);

	if (r)
		memcpy(out, r->w, spec->dim * sizeof(float));
	else if (zeros)
		memset(out, 0, spec->dim * sizeof(float));
	else
		hps_row_init(spec, table, key, p->c->job.deployment.seed, out);
}

static void plain_add(struct plain *p, uint32_t table, uint64_t key, const float *g)
{
	const struct hps_table_spec *spec = &p->c->job.model.table[table];
	struct plain_row *r = plain_find(p, table, key);
	struct hps_optim o = hps_optim_of(&spec->optimizer);

	if (!r) {
		r = &p->row[p->n_rows++];
		assert_true(p->n_rows < 4000);
		*r = (struct plain_row){ .table = table, .key = key };
		hps_row_init(spec, table, key, p->c->job.deployment.seed, r->w);
		hps_optim_state_init(&o, r->state, spec->dim);
	}
	for (uint32_t j = 0; j < spec->dim; j++)
		r->sum[j] = r->summed ? r->sum[j] + g[j] : g[j];
	r->summed = true;
}

static void plain_apply_rows(struct plain *p, uint64_t count)
{
	for (size_t i = 0; i < p->n_rows; i++) {
		struct plain_row *r = &p->row[i];
		const struct hps_table_spec *spec = &p->c->job.model.table[r->table];
		struct hps_optim o = hps_optim_of(&spec->optimizer);

		if (!r->summed)
			continue;
		r->summed = false;
		hps_optim_update_plain(&o, r->w, r->state, spec->dim, r->sum, count, ++r->t,
				       spec->dim);
	}
}

/* --- what one micro-batch of a stage brings --- */

struct micro {
	struct hps_ps_rows rows[MAX_LOOKUPS];
	uint32_t n, count;
	uint64_t key[MAX_LOOKUPS][MAX_KEYS];
	float value[MAX_LOOKUPS][MAX_KEYS * DIM], grad[MAX_LOOKUPS][MAX_KEYS * DIM];
};

static uint64_t some_key(struct hps_rng *r, uint32_t table)
{
	uint64_t k = hps_rng_below(r, 50);

	if (table == 1)
		return k; /* of 50 rows */
	return k == 0 ? 0 : k == 1 ? UINT64_MAX : k < 25 ? k : hps_mix64(k);
}

static void fill_lookup(struct micro *m, struct hps_rng *r, const struct hps_layer *l, uint32_t dim)
{
	uint32_t i = m->n++, n = (uint32_t)hps_rng_below(r, MAX_KEYS + 1);
	uint32_t used = 0;

	for (uint32_t k = 0; k < n; k++) {
		uint64_t key = some_key(r, l->table);
		bool there = false;

		for (uint32_t j = 0; j < used; j++)
			there |= m->key[i][j] == key;
		if (!there)
			m->key[i][used++] = key;
	}
	for (uint32_t j = 0; j < used * dim; j++) {
		m->grad[i][j] = (float)hps_rng_normal(r);
		m->value[i][j] = -99;
	}
	m->rows[i] =
		(struct hps_ps_rows){ l->table, dim, used, m->key[i], m->value[i], m->grad[i] };
}

/* The same for everybody who asks: from (step, stage, micro-batch). */
static void make_micro(struct micro *m, const struct ps_case *c, uint64_t step, uint32_t stage,
		       uint32_t mb)
{
	const struct hps_deployed_stage *s = &c->job.deployment.stage[stage];
	struct hps_rng r;

	hps_rng_init(&r, step * 64 + mb, stage + 1);
	memset(m, 0, sizeof(*m));
	m->count = (uint32_t)hps_rng_below(&r, 5);
	for (uint32_t l = s->first; l <= s->last; l++) {
		const struct hps_layer *layer = &c->job.model.layer[l];

		if (layer->op == HPS_OP_EMBEDDING)
			fill_lookup(m, &r, layer, c->job.model.table[layer->table].dim);
	}
	if (!m->count) /* a micro-batch past the end of the data: no rows */
		for (uint32_t i = 0; i < m->n; i++)
			m->rows[i].n = 0;
}

/* A micro-batch's gradients of a key: the earlier lookup's first; then they join the sum. */
static void plain_add_micro(struct plain *p, const struct micro *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		for (uint32_t k = 0; k < m->rows[i].n; k++) {
			uint32_t table = m->rows[i].table, dim = m->rows[i].dim;
			float g[DIM];
			bool before = false;

			memcpy(g, m->grad[i] + k * dim, dim * sizeof(float));
			for (uint32_t j = 0; j < m->n; j++) {
				if (m->rows[j].table != table || j == i)
					continue;
				for (uint32_t q = 0; q < m->rows[j].n; q++) {
					if (m->key[j][q] != m->key[i][k])
						continue;
					before |= j < i;
					for (uint32_t d = 0; d < dim; d++)
						g[d] += m->grad[j][q * dim + d];
				}
			}
			if (!before)
				plain_add(p, table, m->key[i][k], g);
		}
}

static void dense_grad(float *g, uint64_t n, uint64_t step, uint32_t stage, uint32_t replica,
		       uint32_t *count)
{
	struct hps_rng r;

	hps_rng_init(&r, step * 64 + replica, stage + 100);
	*count = (uint32_t)hps_rng_below(&r, 4);
	for (uint64_t i = 0; i < n; i++)
		g[i] = (float)hps_rng_normal(&r);
}

static void plain_dense(struct plain *p, uint64_t step, uint32_t stage)
{
	const struct hps_deployed_stage *s = &p->c->job.deployment.stage[stage];
	struct hps_optim o = hps_optim_of(&p->c->job.model.train.optimizer);
	uint64_t b = p->c->graph.layer_offset[s->first];
	uint64_t n = p->c->graph.layer_offset[s->last + 1] - b, total = 0;
	float *g = calloc(n, sizeof(float)), *sum = calloc(n, sizeof(float));
	bool any = false;

	for (uint32_t r = 0; r < s->n_replicas; r++) {
		uint32_t count;

		dense_grad(g, n, step, stage, r, &count);
		total += count;
		for (uint64_t i = 0; count && i < n; i++)
			sum[i] = any ? sum[i] + g[i] : g[i];
		any |= count > 0;
	}
	if (total)
		hps_optim_update_plain(&o, p->w + b, p->state + 2 * b, n, sum, total,
				       ++p->updates[stage], n);
	free(g);
	free(sum);
}

static void plain_step(struct plain *p, uint64_t step)
{
	const struct hps_deployment *d = &p->c->job.deployment;
	uint32_t n_micro = d->stage[0].n_replicas * d->micro_batches;
	uint64_t count = 0;
	struct micro m;

	for (uint32_t s = 0; s < d->n_stages; s++) {
		for (uint32_t r = 0; r < d->stage[s].n_replicas; r++)
			for (uint32_t g = r; g < n_micro; g += d->stage[s].n_replicas) {
				make_micro(&m, p->c, step, s, g);
				plain_add_micro(p, &m);
				if (s == 0)
					count += m.count;
			}
		plain_dense(p, step, s);
	}
	if (count)
		plain_apply_rows(p, count);
	for (size_t i = 0; i < p->n_rows; i++)
		p->row[i].summed = false;
}

/* --- the network --- */

struct world {
	struct ps_case c;
	struct hps_shard *shard[MAX_SHARDS];
	struct hps_ps_client *client[MAX_REPLICAS]; /* by node, from the first replica */
	uint32_t n_clients;
	struct hps_outbox air; /* on its way */
	struct hps_rng rng;
	bool chaos;			     /* reorder and repeat */
	struct micro micro[2][3][MAX_MICRO]; /* [step % 2][stage][mb] */
	bool rows_in[2][3][MAX_MICRO], dense_in[MAX_REPLICAS], flushed[MAX_REPLICAS];
	uint64_t dense_updates[MAX_REPLICAS];
	uint64_t delivered;
};

static uint32_t first_replica(const struct world *w)
{
	return hps_node_of_replica(&w->c.job.deployment, 0, 0);
}

static uint32_t stage_of(const struct world *w, uint32_t client, uint32_t *replica)
{
	const struct hps_deployment *d = &w->c.job.deployment;
	uint32_t s = 0;

	while (client >= d->stage[s].n_replicas)
		client -= d->stage[s++].n_replicas;
	*replica = client;
	return s;
}

static void world_init(struct world *w, const struct ps_case_opts *o)
{
	memset(w, 0, sizeof(*w));
	ps_case_init(&w->c, o);
	hps_rng_init(&w->rng, o->seed, 77);
	for (uint32_t i = 0; i < o->shards; i++)
		assert_int_equal(hps_shard_new(&w->c.job, &w->c.graph, i, &w->shard[i], NULL),
				 HPS_OK);
	w->n_clients = hps_deployment_nodes(&w->c.job.deployment) - first_replica(w);
	for (uint32_t i = 0; i < w->n_clients; i++) {
		uint32_t replica, stage = stage_of(w, i, &replica);

		assert_int_equal(hps_ps_client_new(&w->c.job, &w->c.graph, stage, replica, 1000 + i,
						   &w->client[i], NULL),
				 HPS_OK);
	}
}

static void world_release(struct world *w)
{
	hps_outbox_release(&w->air);
	for (uint32_t i = 0; i < w->n_clients; i++)
		hps_ps_client_free(w->client[i]);
	for (uint32_t i = 0; i < w->c.job.deployment.n_shards; i++)
		hps_shard_free(w->shard[i]);
	ps_case_release(&w->c);
}

static struct hps_msg copy_of(const struct hps_msg *m)
{
	struct hps_msg c = { .head = m->head };

	for (uint32_t i = 0; i < m->n_frames; i++)
		assert_int_equal(hps_msg_copy(&c, m->frame[i].data, m->frame[i].len, NULL), HPS_OK);
	return c;
}

static void note(struct world *w, uint32_t client, const struct hps_ps_event *ev)
{
	uint32_t replica, stage = stage_of(w, client, &replica);

	if (ev->kind == HPS_PS_ROWS)
		w->rows_in[ev->step % 2][stage][ev->mb] = true;
	else if (ev->kind == HPS_PS_DENSE) {
		w->dense_in[client] = true;
		w->dense_updates[client] = ev->updates;
	} else if (ev->kind == HPS_PS_FLUSHED)
		w->flushed[client] = true;
}

/* Deliver one message: in chaos any of those on their way, and sometimes once more later. */
static bool deliver(struct world *w)
{
	size_t i = w->chaos && w->air.n ? hps_rng_below(&w->rng, w->air.n) : 0;
	struct hps_err err = { 0 };
	struct hps_ps_event ev;
	struct hps_msg m;
	uint32_t dst;

	if (!w->air.n)
		return false;
	m = w->air.item[i].msg;
	dst = w->air.item[i].dst;
	memmove(&w->air.item[i], &w->air.item[i + 1], (w->air.n - i - 1) * sizeof(*w->air.item));
	w->air.n--;
	if (w->chaos && hps_rng_below(&w->rng, 4) == 0) {
		struct hps_msg again = copy_of(&m);

		assert_int_equal(hps_outbox_put(&w->air, dst, &again, NULL), HPS_OK);
	}
	w->delivered++;
	if (dst < first_replica(w)) {
		if (hps_shard_handle(w->shard[dst - 1], &m, &w->air, &err) != HPS_OK)
			fail_msg("shard %u: %s", dst - 1, err.msg);
	} else {
		if (hps_ps_message(w->client[dst - first_replica(w)], &m, &ev, &err) != HPS_OK)
			fail_msg("client: %s", err.msg);
		note(w, dst - first_replica(w), &ev);
	}
	assert_int_equal(m.n_frames, 0);
	return true;
}

static void drain(struct world *w)
{
	bool chaos = w->chaos;

	w->chaos = false;
	while (deliver(w))
		;
	w->chaos = chaos;
}

/* --- one step of everybody --- */

static uint32_t n_micro_of(const struct world *w)
{
	return w->c.job.deployment.stage[0].n_replicas * w->c.job.deployment.micro_batches;
}

static void pull_rows(struct world *w, uint64_t step)
{
	const struct hps_deployment *d = &w->c.job.deployment;

	for (uint32_t s = 0; s < d->n_stages; s++)
		for (uint32_t g = 0; hps_stage_looks_up(&w->c.job, s) && g < n_micro_of(w); g++) {
			struct micro *m = &w->micro[step % 2][s][g];
			uint32_t node = hps_node_of_replica(d, s, g % d->stage[s].n_replicas);

			make_micro(m, &w->c, step, s, g);
			w->rows_in[step % 2][s][g] = false;
			assert_int_equal(hps_ps_pull(w->client[node - first_replica(w)], 0, step, g,
						     0, m->rows, m->n, &w->air, NULL),
					 HPS_OK);
		}
}

static void await_rows(struct world *w, struct plain *p, uint64_t step)
{
	for (uint32_t s = 0; s < w->c.job.deployment.n_stages; s++)
		for (uint32_t g = 0; hps_stage_looks_up(&w->c.job, s) && g < n_micro_of(w); g++) {
			struct micro *m = &w->micro[step % 2][s][g];

			while (!w->rows_in[step % 2][s][g])
				assert_true(deliver(w));
			for (uint32_t i = 0; i < m->n; i++)
				for (uint32_t k = 0; k < m->rows[i].n; k++) {
					uint32_t dim = m->rows[i].dim;
					float expect[DIM];

					plain_read(p, m->rows[i].table, m->key[i][k], false,
						   expect);
					assert_memory_equal(m->value[i] + k * dim, expect, dim * 4);
				}
		}
}

static bool has_dense(const struct world *w, uint32_t stage, uint64_t *first, uint64_t *n)
{
	const struct hps_deployed_stage *s = &w->c.job.deployment.stage[stage];

	*first = w->c.graph.layer_offset[s->first];
	*n = w->c.graph.layer_offset[s->last + 1] - *first;
	return *n > 0;
}

static void check_dense(struct world *w, struct plain *p, uint64_t step)
{
	float *got[MAX_REPLICAS] = { NULL };
	uint64_t first, n;

	for (uint32_t i = 0; i < w->n_clients; i++) {
		uint32_t replica, stage = stage_of(w, i, &replica);

		w->dense_in[i] = !has_dense(w, stage, &first, &n);
		if (w->dense_in[i])
			continue;
		got[i] = calloc(n, sizeof(float));
		assert_int_equal(
			hps_ps_dense_pull(w->client[i], step, 0, got[i], NULL, &w->air, NULL),
			HPS_OK);
	}
	for (uint32_t i = 0; i < w->n_clients; i++) {
		uint32_t replica, stage = stage_of(w, i, &replica);

		while (!w->dense_in[i])
			assert_true(deliver(w));
		if (!has_dense(w, stage, &first, &n))
			continue;
		assert_memory_equal(got[i], p->w + first, n * sizeof(float));
		assert_int_equal(w->dense_updates[i], p->updates[stage]);
		free(got[i]);
	}
}

static void push_all(struct world *w, uint64_t step)
{
	const struct hps_deployment *d = &w->c.job.deployment;
	uint32_t from = (uint32_t)hps_rng_below(&w->rng, w->n_clients);

	for (uint32_t q = 0; q < w->n_clients; q++) {
		uint32_t i = (q + from) % w->n_clients, r, s = stage_of(w, i, &r), count;
		uint64_t first, n;

		for (uint32_t g = r; hps_stage_looks_up(&w->c.job, s) && g < n_micro_of(w);
		     g += d->stage[s].n_replicas) {
			struct micro *m = &w->micro[step % 2][s][g];

			assert_int_equal(hps_ps_push(w->client[i], 0, step, g, m->count, m->rows,
						     m->n, &w->air, NULL),
					 HPS_OK);
		}
		if (has_dense(w, s, &first, &n)) {
			float *grad = calloc(n, sizeof(float));

			dense_grad(grad, n, step, s, r, &count);
			assert_int_equal(
				hps_ps_dense_push(w->client[i], step, count, grad, &w->air, NULL),
				HPS_OK);
			free(grad);
		}
		for (int k = 0; k < 3; k++)
			deliver(w);
	}
}

/* What the shards hold in the end is what the plain loop holds, no row more or less. */
struct comparing {
	struct plain *p;
	uint32_t table, shard, n_shards;
	size_t n;
};

static enum hps_status compare_row(void *ctx, uint64_t key, const float *row, uint32_t freq,
				   uint32_t last, struct hps_err *err)
{
	struct comparing *c = ctx;
	struct plain_row *r = plain_find(c->p, c->table, key);
	const struct hps_table_spec *spec = &c->p->c->job.model.table[c->table];
	struct hps_optim o = hps_optim_of(&spec->optimizer);

	if (!r || hps_shard_of_key(c->table, key, c->n_shards) != c->shard)
		return HPS_NO;
	assert_memory_equal(row, r->w, spec->dim * sizeof(float));
	assert_memory_equal(row + spec->dim, r->state,
			    hps_optim_state_floats(&o, spec->dim) * sizeof(float));
	assert_int_equal(freq, r->t);
	c->n++;
	return HPS_OK;
}

static void compare_end(struct world *w, struct plain *p)
{
	size_t rows = 0;

	for (uint32_t s = 0; s < w->c.job.deployment.n_shards; s++)
		for (uint32_t t = 0; t < 2; t++) {
			struct comparing c = { p, t, s, w->c.job.deployment.n_shards, 0 };

			assert_int_equal(hps_table_each(hps_shard_table(w->shard[s], t),
							compare_row, &c, NULL),
					 HPS_OK);
			rows += c.n;
		}
	assert_int_equal(rows, p->n_rows);
}

static void run_bsp(const struct ps_case_opts *o, uint64_t steps)
{
	struct world *w = malloc(sizeof(*w));
	struct plain *p;

	world_init(w, o);
	p = plain_new(&w->c);
	w->chaos = true;
	pull_rows(w, 0);
	for (uint64_t step = 0; step < steps; step++) {
		pull_rows(w, step + 1); /* one step ahead */
		await_rows(w, p, step);
		check_dense(w, p, step);
		push_all(w, step);
		plain_step(p, step);
	}
	for (uint32_t i = 0; i < w->n_clients; i++)
		assert_int_equal(hps_ps_flush(w->client[i], steps, &w->air, NULL), HPS_OK);
	await_rows(w, p, steps);
	drain(w);
	check_dense(w, p, steps);
	drain(w);
	for (uint32_t i = 0; i < w->n_clients; i++)
		assert_true(w->flushed[i]);
	compare_end(w, p);
	for (uint32_t s = 0; s < o->shards; s++) {
		struct hps_shard_stats stats;

		hps_shard_stats(w->shard[s], &stats);
		assert_int_equal(stats.step, steps);
	}
	plain_free(p);
	world_release(w);
	free(w);
}

static void bsp_equals_the_plain_loop(void **state)
{
	static const struct ps_case_opts cases[] = {
		{ .shards = 1, .stages = 1, .seed = 1 },
		{ .shards = 2,
		  .stages = 1,
		  .replicas = { 2 },
		  .micro_batches = 2,
		  .table_optim = HPS_ADAGRAD,
		  .dense_optim = HPS_ADAM,
		  .seed = 2 },
		{ .shards = 3,
		  .stages = 2,
		  .replicas = { 2, 3 },
		  .micro_batches = 4,
		  .table_optim = HPS_ADAM,
		  .dense_optim = HPS_ADAGRAD,
		  .seed = 3 },
		{ .shards = 2,
		  .stages = 3,
		  .replicas = { 3, 2, 1 },
		  .micro_batches = 1,
		  .table_optim = HPS_ADAM,
		  .dense_optim = HPS_SGD,
		  .seed = 4 },
		{ .shards = 1,
		  .stages = 2,
		  .replicas = { 1, 3 },
		  .micro_batches = 2,
		  .table_optim = HPS_ADAGRAD,
		  .dense_optim = HPS_ADAM,
		  .seed = 5 },
		/* more shards than lines of parameters: most parts are empty */
		{ .shards = 40,
		  .stages = 2,
		  .replicas = { 1, 2 },
		  .micro_batches = 3,
		  .table_optim = HPS_SGD,
		  .dense_optim = HPS_ADAM,
		  .seed = 6 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		run_bsp(&cases[i], 12);
}

/* The result depends neither on the number of shards nor on arrival: rows of 1 and 3 shards. */
static void shards_do_not_change_the_bits(void **state)
{
	for (uint64_t seed = 20; seed < 26; seed++) {
		struct ps_case_opts o = { .stages = 2,
					  .replicas = { 2, 2 },
					  .micro_batches = 2,
					  .table_optim = HPS_ADAM,
					  .dense_optim = HPS_ADAM,
					  .seed = seed };

		for (o.shards = 1; o.shards <= 3; o.shards++)
			run_bsp(&o, 4);
	}
}

static void asp_applies_every_push_at_once(void **state)
{
	struct ps_case_opts o = { .shards = 3,
				  .stages = 1,
				  .sync = HPS_ASP,
				  .micro_batches = 4,
				  .table_optim = HPS_ADAM,
				  .dense_optim = HPS_ADAM,
				  .seed = 9 };
	struct world *w = malloc(sizeof(*w));
	struct plain *p;

	world_init(w, &o);
	p = plain_new(&w->c);
	for (uint64_t step = 0; step < 10; step++)
		for (uint32_t g = 0; g < 4; g++) {
			struct micro *m = &w->micro[step % 2][0][g];

			make_micro(m, &w->c, step, 0, g);
			m->count += m->n && !m->count; /* rows never come without samples */
			assert_int_equal(hps_ps_push(w->client[0], 0, step, g, m->count, m->rows,
						     m->n, &w->air, NULL),
					 HPS_OK);
			drain(w);
			plain_add_micro(p, m);
			plain_apply_rows(p, m->count);
		}
	for (uint64_t step = 0; step < 3; step++) {
		float *g = calloc(w->c.graph.n_floats, sizeof(float));
		uint32_t count;

		dense_grad(g, w->c.graph.n_floats, step, 0, 0, &count);
		assert_int_equal(hps_ps_dense_push(w->client[0], step, count, g, &w->air, NULL),
				 HPS_OK);
		drain(w);
		plain_dense(p, step, 0);
		free(g);
	}
	check_dense(w, p, 123456); /* no pull waits */
	pull_rows(w, 777);
	await_rows(w, p, 777);
	compare_end(w, p);
	plain_free(p);
	world_release(w);
	free(w);
}

/* --- evaluation --- */

static void evaluation_reads_zeros_and_makes_no_row(void **state)
{
	struct ps_case_opts o = { .shards = 2, .stages = 1, .seed = 3 };
	struct world *w = malloc(sizeof(*w));
	struct hps_table_stats s;
	uint64_t key[3] = { 7, UINT64_MAX, 0 };
	float value[12];
	struct hps_ps_rows rows = { 0, 4, 3, key, value, NULL };

	world_init(w, &o);
	memset(value, 1, sizeof(value));
	assert_int_equal(hps_ps_pull(w->client[0], 2, 0, 0, HPS_FLAG_EVAL, &rows, 1, &w->air, NULL),
			 HPS_OK);
	drain(w);
	assert_true(w->rows_in[0][0][0]);
	for (int i = 0; i < 12; i++)
		assert_true(value[i] == 0);
	for (uint32_t i = 0; i < 2; i++) {
		hps_table_stats(hps_shard_table(w->shard[i], 0), &s);
		assert_int_equal(s.rows, 0);
	}
	world_release(w);
	free(w);
}

/* --- a client that dies and comes again --- */

static void a_restarted_client_is_not_repeated(void **state)
{
	struct ps_case_opts o = { .shards = 2,
				  .stages = 1,
				  .micro_batches = 2,
				  .table_optim = HPS_ADAM,
				  .dense_optim = HPS_ADAM,
				  .seed = 8 };
	struct world *w = malloc(sizeof(*w));
	struct hps_outbox late = { 0 };
	struct plain *p;

	world_init(w, &o);
	p = plain_new(&w->c);
	pull_rows(w, 0);
	await_rows(w, p, 0);
	check_dense(w, p, 0);
	pull_rows(w, 1);
	push_all(w, 0); /* both micro-batches: update 0 is done */
	drain(w);
	plain_step(p, 0);
	await_rows(w, p, 1);
	check_dense(w, p, 1);
	/* of step 1 the first micro-batch's push arrives, the rest is still under way when it dies */
	assert_int_equal(hps_ps_push(w->client[0], 0, 1, 0, w->micro[1][0][0].count,
				     w->micro[1][0][0].rows, w->micro[1][0][0].n, &w->air, NULL),
			 HPS_OK);
	pull_rows(w, 2);
	drain(w);
	assert_int_equal(hps_ps_push(w->client[0], 0, 1, 1, 5, w->micro[0][0][0].rows,
				     w->micro[0][0][0].n, &late, NULL),
			 HPS_OK);
	hps_ps_client_free(w->client[0]);
	assert_int_equal(hps_ps_client_new(&w->c.job, &w->c.graph, 0, 0, 5000, &w->client[0], NULL),
			 HPS_OK);
	/* its next life does both steps over */
	for (uint64_t step = 0; step < 2; step++) {
		pull_rows(w, step);
		while (!w->rows_in[step % 2][0][0] || !w->rows_in[step % 2][0][1])
			assert_true(deliver(w));
		push_all(w, step);
		for (size_t i = 0; i < late.n; i++) {
			struct hps_msg m = copy_of(&late.item[i].msg);

			assert_int_equal(hps_outbox_put(&w->air, late.item[i].dst, &m, NULL),
					 HPS_OK);
		}
		drain(w);
	}
	plain_step(p, 1);
	pull_rows(w, 2);
	await_rows(w, p, 2);
	check_dense(w, p, 2);
	compare_end(w, p);
	hps_outbox_release(&late);
	plain_free(p);
	world_release(w);
	free(w);
}

/* --- dense parameters handed over --- */

static void a_ring_stage_takes_state_and_hands_it_back(void **state)
{
	struct ps_case_opts o = { .shards = 3,
				  .stages = 2,
				  .replicas = { 1, 2 },
				  .dense_sync = HPS_DENSE_RING,
				  .dense_optim = HPS_ADAM,
				  .seed = 4 };
	struct world *w = malloc(sizeof(*w));
	uint64_t first, n;
	float *param, *opt, *param2, *opt2;
	struct hps_err err = { 0 };
	struct hps_msg m;

	world_init(w, &o);
	assert_true(has_dense(w, 1, &first, &n));
	param = calloc(n, 4), opt = calloc(2 * n, 4), param2 = calloc(n, 4),
	opt2 = calloc(2 * n, 4);
	for (uint64_t i = 0; i < n; i++) {
		param[i] = (float)i;
		opt[i] = (float)i + 0.25f;
		opt[n + i] = (float)i + 0.5f;
	}
	assert_int_equal(hps_ps_dense_set(w->client[1], param, opt, 41, &w->air, NULL), HPS_OK);
	drain(w);
	/* the other replica reads it, whatever the step */
	assert_int_equal(
		hps_ps_dense_pull(w->client[2], 999, HPS_FLAG_STATE, param2, opt2, &w->air, NULL),
		HPS_OK);
	drain(w);
	assert_true(w->dense_in[2]);
	assert_int_equal(w->dense_updates[2], 41);
	assert_memory_equal(param, param2, n * 4);
	assert_memory_equal(opt, opt2, 2 * n * 4);
	/* a push to a ring stage does not hold */
	assert_int_equal(hps_ps_dense_push(w->client[1], 0, 1, param, &w->air, NULL), HPS_OK);
	m = w->air.item[0].msg;
	w->air.item[0].msg.n_frames = 0;
	assert_int_equal(hps_shard_handle(w->shard[w->air.item[0].dst - 1], &m, &w->air, &err),
			 HPS_NET);
	assert_non_null(strstr(err.msg, "ring"));
	free(param), free(opt), free(param2), free(opt2);
	world_release(w);
	free(w);
}

static void an_answer_under_way_does_not_change(void **state)
{
	struct ps_case_opts o = { .shards = 1, .stages = 1, .dense_optim = HPS_ADAGRAD, .seed = 4 };
	struct world *w = malloc(sizeof(*w));
	struct hps_msg held;
	struct plain *p;
	uint64_t n;

	world_init(w, &o);
	p = plain_new(&w->c);
	n = w->c.graph.n_floats;
	assert_int_equal(hps_ps_dense_pull(w->client[0], 0, 0, p->state, NULL, &w->air, NULL),
			 HPS_OK);
	deliver(w);
	assert_int_equal(w->air.n, 1);
	held = w->air.item[0].msg;
	w->air.n = 0;
	for (uint64_t step = 0; step < 3; step++) {
		float *g = calloc(n, 4);

		memset(g, 0x3f, n * 4);
		assert_int_equal(hps_ps_dense_push(w->client[0], step, 1, g, &w->air, NULL),
				 HPS_OK);
		drain(w);
		free(g);
	}
	assert_int_equal(held.frame[0].len, n * 4);
	assert_memory_equal(held.frame[0].data, p->w, n * 4);
	assert_memory_not_equal(hps_shard_dense(w->shard[0], 0).param, p->w, n * 4);
	hps_msg_release(&held);
	plain_free(p);
	world_release(w);
	free(w);
}

static void parts_are_put_wherever_they_came_from(void **state)
{
	struct ps_case_opts o = { .shards = 3, .stages = 2, .dense_optim = HPS_ADAM, .seed = 4 };
	struct world *w = malloc(sizeof(*w));
	uint64_t n, seen = 0;
	float *param, *opt;

	world_init(w, &o);
	n = w->c.graph.n_floats;
	param = calloc(n, 4), opt = calloc(2 * n, 4);
	for (uint64_t i = 0; i < n; i++)
		param[i] = (float)i, opt[i] = (float)i + 0.25f, opt[n + i] = (float)i + 0.5f;
	for (uint32_t s = 0; s < 3; s++) {
		/* two pieces whose border lies somewhere in the middle of a part */
		uint64_t cut = n / 2 + 3;
		float *tail = calloc(2 * (n - cut), 4);

		memcpy(tail, opt + cut, (n - cut) * 4);
		memcpy(tail + (n - cut), opt + n + cut, (n - cut) * 4);
		assert_int_equal(
			hps_shard_put_dense(w->shard[s], cut, n - cut, param + cut, tail, 9, NULL),
			HPS_OK);
		free(tail);
		tail = calloc(2 * cut, 4);
		memcpy(tail, opt, cut * 4);
		memcpy(tail + cut, opt + n, cut * 4);
		assert_int_equal(hps_shard_put_dense(w->shard[s], 0, cut, param, tail, 7, NULL),
				 HPS_OK);
		free(tail);
		for (uint32_t i = 0; i < hps_shard_n_dense(w->shard[s]); i++) {
			struct hps_shard_dense d = hps_shard_dense(w->shard[s], i);

			assert_memory_equal(d.param, param + d.first, d.n * 4);
			assert_memory_equal(d.state, opt + d.first, d.n * 4);
			assert_memory_equal(d.state + d.n, opt + n + d.first, d.n * 4);
			assert_true(d.updates == 7 || d.updates == 9);
			seen += d.n;
		}
	}
	assert_int_equal(seen, n);
	free(param), free(opt);
	world_release(w);
	free(w);
}

/* --- what does not hold --- */

static void refuse(struct world *w, struct hps_msg *m, const char *why)
{
	struct hps_shard_stats before, after;
	struct hps_err err = { 0 };
	struct hps_outbox out = { 0 };

	hps_shard_stats(w->shard[0], &before);
	assert_int_equal(hps_shard_handle(w->shard[0], m, &out, &err), HPS_NET);
	if (!strstr(err.msg, why))
		fail_msg("expected \"%s\", got \"%s\"", why, err.msg);
	hps_shard_stats(w->shard[0], &after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(out.n, 0);
	assert_int_equal(m->n_frames, 0);
	hps_outbox_release(&out);
}

static struct hps_msg req(struct world *w, uint16_t type, uint32_t client)
{
	static uint64_t seq;
	struct hps_msg m = { .head = { .type = type,
				       .src = first_replica(w) + client,
				       .seq = ++seq,
				       .incarnation = 1 } };

	if (type == HPS_MSG_PULL || type == HPS_MSG_PUSH)
		for (int i = 0; i < (type == HPS_MSG_PULL ? 2 : 3); i++)
			assert_int_equal(hps_msg_copy(&m, "", 0, NULL), HPS_OK);
	return m;
}

static void bad_requests_are_refused(void **state)
{
	struct ps_case_opts o = {
		.shards = 2, .stages = 3, .replicas = { 2, 1, 1 }, .micro_batches = 2, .seed = 4
	};
	struct world *w = malloc(sizeof(*w));
	struct hps_msg m;
	float zeros[64] = { 0 };

	world_init(w, &o);
	m = req(w, HPS_MSG_PULL, 0), m.head.src = 0;
	refuse(w, &m, "node 0 is no replica");
	m = req(w, HPS_MSG_PULL, 0), m.head.src = 2;
	refuse(w, &m, "no replica");
	m = req(w, HPS_MSG_PULL, 0), m.head.src = first_replica(w) + 4;
	refuse(w, &m, "no replica");
	m = req(w, HPS_MSG_PULL, 0), m.head.src = HPS_NODE_PROCESS;
	refuse(w, &m, "no replica");
	m = req(w, HPS_MSG_PULL, 0), m.head.seq = 0;
	refuse(w, &m, "sequence");
	m = req(w, HPS_MSG_ROWS, 0);
	refuse(w, &m, "not a request");
	m = req(w, HPS_MSG_CONTROL, 0);
	refuse(w, &m, "not a request");
	m = req(w, HPS_MSG_PULL, 0), m.head.step = HPS_PS_AHEAD + 1;
	refuse(w, &m, "far from step 0");
	m = req(w, HPS_MSG_PULL, 0), assert_int_equal(hps_msg_copy(&m, "", 0, NULL), HPS_OK);
	refuse(w, &m, "frames");
	m = req(w, HPS_MSG_PUSH, 0), m.head.mb = 1;
	refuse(w, &m, "not replica 0's");
	m = req(w, HPS_MSG_PUSH, 0), m.head.mb = 4;
	refuse(w, &m, "below 4");
	m = req(w, HPS_MSG_PUSH, 0), m.head.step = HPS_PS_AHEAD;
	refuse(w, &m, "far from step 0");
	m = req(w, HPS_MSG_PUSH, 0), m.head.step = UINT64_MAX;
	refuse(w, &m, "far from step 0");
	m = req(w, HPS_MSG_PUSH, 0), m.head.flags = HPS_FLAG_EVAL;
	refuse(w, &m, "flags");
	m = req(w, HPS_MSG_PUSH, 3); /* stage 2: fc2 only */
	refuse(w, &m, "looks up no rows");
	m = req(w, HPS_MSG_DENSE_PULL, 0), m.head.arg = 1;
	refuse(w, &m, "expected stage 0, got 1");
	m = req(w, HPS_MSG_DENSE_PULL, 2), m.head.arg = 1; /* stage 1 has no parameters */
	refuse(w, &m, "no parameters");
	m = req(w, HPS_MSG_DENSE_PULL, 0), m.head.step = 99;
	refuse(w, &m, "far from");
	m = req(w, HPS_MSG_DENSE_PULL, 0), assert_int_equal(hps_msg_copy(&m, "x", 1, NULL), HPS_OK);
	refuse(w, &m, "no frame");
	m = req(w, HPS_MSG_DENSE_PUSH, 0), m.head.count = 1;
	refuse(w, &m, "expected a frame");
	m = req(w, HPS_MSG_DENSE_PUSH, 0), m.head.count = 1;
	assert_int_equal(hps_msg_copy(&m, zeros, 64, NULL), HPS_OK);
	refuse(w, &m, "expected a frame");
	m = req(w, HPS_MSG_DENSE_PUSH, 0), m.head.count = 1;
	assert_int_equal(hps_msg_copy(&m, zeros, 0, NULL), HPS_OK);
	refuse(w, &m, "expected a frame");
	m = req(w, HPS_MSG_DENSE_SET, 0);
	assert_int_equal(hps_msg_copy(&m, zeros, 64, NULL), HPS_OK);
	refuse(w, &m, "expected frames");
	m = req(w, HPS_MSG_FLUSH, 0), m.head.step = 50;
	refuse(w, &m, "far from");
	world_release(w);
	free(w);
}

static void waiting_requests_are_bounded(void **state)
{
	struct ps_case_opts o = { .shards = 1, .stages = 1, .seed = 4 };
	struct world *w = malloc(sizeof(*w));
	struct hps_err err = { 0 };
	enum hps_status st = HPS_OK;
	int n = 0;

	world_init(w, &o);
	while (st == HPS_OK && n < 10000) {
		struct hps_msg m = req(w, HPS_MSG_PULL, 0);

		m.head.step = 1;
		st = hps_shard_handle(w->shard[0], &m, &w->air, &err);
		n++;
	}
	assert_int_equal(st, HPS_NET);
	assert_non_null(strstr(err.msg, "wait already"));
	assert_true(n < 200);
	world_release(w);
	free(w);
}

static void bad_answers_are_refused(void **state)
{
	struct ps_case_opts o = { .shards = 1, .stages = 1, .dense_optim = HPS_ADAM, .seed = 4 };
	struct world *w = malloc(sizeof(*w));
	uint64_t key[2] = { 1, 2 };
	float value[8], *param;
	struct hps_ps_rows rows = { 0, 4, 2, key, value, NULL };
	struct hps_ps_event ev;
	struct hps_msg good, m;
	struct hps_err err;

	world_init(w, &o);
	param = calloc(w->c.graph.n_floats, 4);
	assert_int_equal(hps_ps_pull(w->client[0], 0, 0, 0, 0, &rows, 1, &w->air, NULL), HPS_OK);
	deliver(w);
	good = w->air.item[0].msg;
	w->air.n = 0;
	m = copy_of(&good), m.head.src = 9;
	assert_int_equal(hps_ps_message(w->client[0], &m, &ev, &err), HPS_NET);
	m = copy_of(&good), m.head.type = HPS_MSG_PUSH;
	assert_int_equal(hps_ps_message(w->client[0], &m, &ev, &err), HPS_NET);
	m = copy_of(&good), m.frame[1].len -= 4;
	assert_int_equal(hps_ps_message(w->client[0], &m, &ev, &err), HPS_NET);
	m = copy_of(&good), ((struct hps_dir_entry *)m.frame[0].data)->n = 1, m.frame[1].len = 16;
	assert_int_equal(hps_ps_message(w->client[0], &m, &ev, &err), HPS_NET);
	m = copy_of(&good), m.frame[0].len = 0, m.frame[1].len = 0;
	assert_int_equal(hps_ps_message(w->client[0], &m, &ev, &err), HPS_NET);
	m = copy_of(&good), m.head.seq++; /* nobody waits for that one */
	assert_int_equal(hps_ps_message(w->client[0], &m, &ev, &err), HPS_OK);
	assert_int_equal(ev.kind, HPS_PS_NONE);
	assert_int_equal(hps_ps_message(w->client[0], &good, &ev, &err), HPS_OK);
	assert_int_equal(ev.kind, HPS_PS_ROWS);
	assert_int_equal(hps_ps_dense_pull(w->client[0], 0, 0, param, NULL, &w->air, NULL), HPS_OK);
	deliver(w);
	m = copy_of(&w->air.item[0].msg), m.frame[0].len -= 4;
	assert_int_equal(hps_ps_message(w->client[0], &m, &ev, &err), HPS_NET);
	free(param);
	world_release(w);
	free(w);
}

/* --- memory --- */

static enum hps_status one_step(struct world *w)
{
	struct hps_outbox *air = &w->air;
	enum hps_status st = HPS_OK;

	for (uint32_t i = 0; i < w->c.job.deployment.n_shards && st == HPS_OK; i++)
		st = hps_shard_new(&w->c.job, &w->c.graph, i, &w->shard[i], NULL);
	if (st == HPS_OK)
		st = hps_ps_client_new(&w->c.job, &w->c.graph, 0, 0, 1, &w->client[0], NULL);
	for (uint64_t step = 0; step < 2 && st == HPS_OK; step++) {
		float grad[400] = { 0 }, param[400];
		uint64_t sent;

		for (uint32_t g = 0; g < 2 && st == HPS_OK; g++) {
			struct micro *m = &w->micro[step][0][g];

			make_micro(m, &w->c, step, 0, g);
			sent = air->n;
			st = hps_ps_pull(w->client[0], 0, step, g, 0, m->rows, m->n, air, NULL);
			assert_true(st == HPS_OK || air->n == sent);
			sent = air->n;
			if (st == HPS_OK)
				st = hps_ps_push(w->client[0], 0, step, g, 3, m->rows, m->n, air,
						 NULL);
			assert_true(st == HPS_OK || air->n == sent);
		}
		if (st == HPS_OK)
			st = hps_ps_dense_pull(w->client[0], step, 0, param, NULL, air, NULL);
		if (st == HPS_OK)
			st = hps_ps_dense_push(w->client[0], step, 1, grad, air, NULL);
		while (st == HPS_OK && air->n) {
			struct hps_msg m = air->item[0].msg;
			uint32_t dst = air->item[0].dst;
			struct hps_ps_event ev;

			memmove(&air->item[0], &air->item[1], --air->n * sizeof(*air->item));
			st = dst < first_replica(w)
				     ? hps_shard_handle(w->shard[dst - 1], &m, air, NULL)
				     : hps_ps_message(w->client[0], &m, &ev, NULL);
		}
	}
	return st;
}

static void every_failed_allocation_is_survived(void **state)
{
	struct ps_case_opts o = { .shards = 2,
				  .stages = 1,
				  .micro_batches = 2,
				  .dense_optim = HPS_ADAM,
				  .table_optim = HPS_ADAGRAD,
				  .seed = 4 };
	struct world *w = malloc(sizeof(*w));
	enum hps_status st = HPS_MEMORY;
	unsigned long n;

	for (n = 1; st != HPS_OK; n++) {
		memset(w, 0, sizeof(*w));
		ps_case_init(&w->c, &o);
		w->n_clients = 1;
		hps_mem_fail_at(n);
		st = one_step(w);
		hps_mem_fail_at(0);
		assert_true(st == HPS_OK || st == HPS_MEMORY);
		world_release(w);
	}
	assert_true(n > 50);
	free(w);
}

/* --- who holds what --- */

static void keys_spread_evenly(void **state)
{
	static const uint32_t shards[] = { 1, 2, 3, 7, 64 };

	for (size_t i = 0; i < sizeof(shards) / sizeof(*shards); i++) {
		uint32_t n_of[64] = { 0 };

		for (uint64_t key = 0; key < 64000; key++) {
			uint32_t s = hps_shard_of_key(1, key << (key % 3 * 20), shards[i]);

			assert_true(s < shards[i]);
			n_of[s]++;
		}
		for (uint32_t s = 0; s < shards[i]; s++) {
			double mean = 64000.0 / shards[i];

			assert_true(n_of[s] > mean * 0.8 && n_of[s] < mean * 1.2);
		}
	}
}

static void slices_cover_the_vector(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 15, 16, 17, 100, 431202 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (uint32_t shards = 1; shards < 12; shards++) {
			uint64_t next = 0, least = UINT64_MAX, most = 0;

			for (uint32_t s = 0; s < shards; s++) {
				uint64_t first, n;

				hps_shard_slice(sizes[i], s, shards, &first, &n);
				assert_int_equal(first, next);
				assert_true(first % 16 == 0 || n == 0);
				next = first + n;
				least = n < least ? n : least;
				most = n > most ? n : most;
			}
			assert_int_equal(next, sizes[i]);
			assert_true(most - least <= 31);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bsp_equals_the_plain_loop),
		cmocka_unit_test(shards_do_not_change_the_bits),
		cmocka_unit_test(asp_applies_every_push_at_once),
		cmocka_unit_test(evaluation_reads_zeros_and_makes_no_row),
		cmocka_unit_test(a_restarted_client_is_not_repeated),
		cmocka_unit_test(a_ring_stage_takes_state_and_hands_it_back),
		cmocka_unit_test(an_answer_under_way_does_not_change),
		cmocka_unit_test(parts_are_put_wherever_they_came_from),
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(waiting_requests_are_bounded),
		cmocka_unit_test(bad_answers_are_refused),
		cmocka_unit_test(every_failed_allocation_is_survived),
		cmocka_unit_test(keys_spread_evenly),
		cmocka_unit_test(slices_cover_the_vector),
	};

	return cmocka_run_group_tests_name("ps_shard", tests, NULL, NULL);
}
