/* read(write(x)) = x for random valid sections, through JSON and through msgpack. */
#include "cm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/rng.h"
#include "job_case.h"

enum { ROUNDS = 300 };

static uint32_t below(struct hps_rng *r, uint32_t n)
{
	return (uint32_t)hps_rng_below(r, n);
}

static bool coin(struct hps_rng *r)
{
	return below(r, 2);
}

/* Numbers of every size, the awkward ones often; > 0. */
static double number(struct hps_rng *r, double max)
{
	static const double awkward[] = {
		1, 0.1, 1e-300, 1.0 / 3, 5e-10, 123456789.0, 0.30000000000000004
	};
	double v = awkward[below(r, sizeof(awkward) / sizeof(*awkward))];

	if (coin(r))
		v = hps_rng_uniform(r) + 1e-9;
	return v < max ? v : max;
}

/* 0 or a number. */
static double figure(struct hps_rng *r)
{
	return below(r, 4) ? number(r, 1e300) : 0;
}

static uint64_t big(struct hps_rng *r)
{
	static const uint64_t awkward[] = { 0,
					    1,
					    (uint64_t)1 << 53,
					    ((uint64_t)1 << 53) + 1,
					    INT64_MAX,
					    (uint64_t)INT64_MAX + 1,
					    UINT64_MAX };

	return coin(r) ? hps_rng_u64(r) : awkward[below(r, sizeof(awkward) / sizeof(*awkward))];
}

static void *array(size_t n, size_t size)
{
	void *p = hps_calloc(n, size, NULL);

	assert_non_null(p);
	return p;
}

static char *name(const char *prefix, uint32_t i)
{
	char text[64];
	char *s;

	snprintf(text, sizeof(text), "%s%u%s", prefix, i, i % 3 ? "" : "_x.y-z");
	s = strdup(text);
	assert_non_null(s);
	return s;
}

static char *text(struct hps_rng *r)
{
	static const char *const awkward[] = { "plain",
					       "with \"quotes\" and \\",
					       "tab\tnew\nline",
					       "\xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
					       "\x01\x1f control",
					       "fixed:cpu*3|v100*1" };
	char *s = strdup(awkward[below(r, sizeof(awkward) / sizeof(*awkward))]);

	assert_non_null(s);
	return s;
}

/* --- a random model --- */

static void random_optimizer(struct hps_rng *r, struct hps_optimizer *o)
{
	hps_optimizer_default((enum hps_optim_kind)below(r, 3), o);
	o->lr = number(r, 1e6);
	if (o->kind == HPS_ADAGRAD)
		o->accumulator = below(r, 3) ? number(r, 1e30) : 0;
	if (o->kind != HPS_SGD)
		o->eps = number(r, 1e6);
	if (o->kind == HPS_ADAM) {
		o->beta1 = hps_rng_uniform(r);
		o->beta2 = hps_rng_uniform(r);
	}
}

/* Some of 0..n-1, each once, in random order; at least one. */
static uint32_t choose(struct hps_rng *r, uint32_t n, uint32_t *out)
{
	uint32_t count = 1 + below(r, n);

	for (uint32_t i = 0; i < n; i++)
		out[i] = i;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = i + below(r, n - i), t = out[i];

		out[i] = out[k];
		out[k] = t;
	}
	return count;
}

static void lookup_layer(struct hps_rng *r, const struct hps_model *m, struct hps_layer *l)
{
	uint32_t keys;

	l->pooling = (enum hps_pooling)below(r, 3);
	if (l->op == HPS_OP_EMBEDDING) {
		l->slot = array(m->slots, sizeof(*l->slot));
		keys = l->n_slots = choose(r, m->slots, l->slot);
	} else {
		keys = l->count = 1 + below(r, 9);
	}
	l->cols = m->table[l->table].dim * (l->pooling == HPS_POOL_CONCAT ? keys : 1);
}

static void inputs(struct hps_layer *l, uint32_t n)
{
	l->n_inputs = n;
	l->input = array(n, sizeof(*l->input));
}

static uint32_t cols_of(const struct hps_model *m, int ref)
{
	return ref == HPS_INPUT_DENSE ? m->dense : m->layer[ref].cols;
}

/* Every table gets its embedding; then random layers over those before; then one concat of
 * all that nobody has read yet, and what the loss needs of it. */
static void random_layers(struct hps_rng *r, struct hps_model *m)
{
	bool used[64] = { false };
	uint32_t middle = m->n_tables + below(r, 12), n, i, k;
	struct hps_layer *l;

	m->layer = array(middle + 5, sizeof(*m->layer));
	for (i = 0; i < middle; i++) {
		l = &m->layer[i];
		if (i < m->n_tables) {
			l->op = m->table[i].rows && coin(r) ? HPS_OP_NEGATIVES : HPS_OP_EMBEDDING;
			l->table = i;
			lookup_layer(r, m, l);
			continue;
		}
		l->op = coin(r) ? HPS_OP_DENSE : HPS_OP_SLICE;
		inputs(l, 1);
		l->input[0] = m->dense && !below(r, 4) ? HPS_INPUT_DENSE : (int)below(r, i);
		if (l->input[0] >= 0)
			used[l->input[0]] = true;
		if (l->op == HPS_OP_SLICE) {
			l->begin = below(r, cols_of(m, l->input[0]));
			l->size = 1 + below(r, cols_of(m, l->input[0]) - l->begin);
			l->cols = l->size;
		} else {
			l->cols = l->units = 1 + below(r, 20);
			l->bias = coin(r);
			l->act = (enum hps_act)below(r, 4);
		}
	}
	l = &m->layer[middle];
	l->op = HPS_OP_CONCAT;
	for (i = 0, n = 0; i < middle; i++)
		n += !used[i];
	inputs(l, n + (m->dense ? 1 : 0));
	for (i = 0, k = 0; i < middle; i++)
		if (!used[i])
			l->input[k++] = (int)i;
	if (m->dense)
		l->input[k] = HPS_INPUT_DENSE;
	for (k = 0; k < l->n_inputs; k++)
		l->cols += cols_of(m, l->input[k]);
	/* Up to three dense layers on it, as the loss wants them. */
	m->loss.kind = (enum hps_loss_kind)below(r, 4);
	m->loss.n_inputs = m->loss.kind < HPS_LOSS_HINGE    ? 1
			   : m->loss.kind == HPS_LOSS_HINGE ? 2
							    : 3;
	if (m->loss.kind == HPS_LOSS_HINGE)
		m->loss.margin = number(r, 1e6);
	for (k = 0; k < m->loss.n_inputs; k++) {
		l = &m->layer[middle + 1 + k];
		l->op = HPS_OP_DENSE;
		inputs(l, 1);
		l->input[0] = (int)middle;
		l->bias = coin(r);
		l->units = m->loss.kind == HPS_LOSS_SOFTMAX_CE ? 2
			   : m->loss.kind == HPS_LOSS_NCE      ? (k == 2 ? 12 : 4)
							       : 1;
		l->cols = l->units;
		m->loss.input[k] = (int)(middle + 1 + k);
	}
	m->n_layers = middle + 1 + m->loss.n_inputs;
	for (i = 0; i < m->n_layers; i++)
		m->layer[i].name = name("l", i);
}

static void random_model(struct hps_rng *r, struct hps_model *m)
{
	memset(m, 0, sizeof(*m));
	m->name = name("m", below(r, 100));
	m->description = coin(r) ? text(r) : NULL;
	m->slots = 1 + below(r, 30);
	m->dense = coin(r) ? 1 + below(r, 20) : 0;
	m->preprocess.transform = (enum hps_transform)below(r, 2);
	m->preprocess.scale = number(r, 1e6);
	m->preprocess.missing = hps_rng_normal(r);
	m->n_tables = 1 + below(r, 3);
	m->table = array(m->n_tables, sizeof(*m->table));
	for (uint32_t i = 0; i < m->n_tables; i++) {
		struct hps_table_spec *t = &m->table[i];

		t->name = name("t", i);
		t->dim = 1 + below(r, 40);
		t->rows = coin(r) ? 0 : 1 + (hps_rng_u64(r) >> 12);
		t->init = (enum hps_init_kind)below(r, 2);
		t->init_scale = t->init == HPS_INIT_UNIFORM ? number(r, 1e6) : 0;
		random_optimizer(r, &t->optimizer);
		t->max_rows = big(r);
		t->max_bytes = big(r);
	}
	random_layers(r, m);
	m->train.batch = 1 + (hps_rng_u64(r) >> (35 + below(r, 28)));
	m->train.micro_batches = 1 + below(r, m->train.batch < 99 ? (uint32_t)m->train.batch : 99);
	m->train.epochs = 1 + below(r, 1000000);
	m->train.sync = (enum hps_sync)below(r, 2);
	m->train.seed = big(r);
	random_optimizer(r, &m->train.optimizer);
	m->digest = hps_model_digest(m);
}

/* --- the other sections --- */

static struct hps_link random_link(struct hps_rng *r)
{
	return (struct hps_link){ .bandwidth = coin(r) ? number(r, 1e18) : 0,
				  .latency = coin(r) ? number(r, 1e6) : 0 };
}

static void random_cluster(struct hps_rng *r, struct hps_cluster *c)
{
	memset(c, 0, sizeof(*c));
	c->n_types = 1 + below(r, 5);
	c->type = array(c->n_types, sizeof(*c->type));
	for (uint32_t t = 0; t < c->n_types; t++) {
		struct hps_type *y = &c->type[t];

		y->name = name("t", t);
		y->device = (enum hps_device)below(r, 2);
		y->price = coin(r) ? number(r, 1e9) : 0;
		y->limit = coin(r) ? HPS_NO_LIMIT : 1 + below(r, HPS_NO_LIMIT - 1);
		y->memory = coin(r) ? number(r, 1e18) : 0;
		y->link = random_link(r);
		if (t && coin(r)) {
			y->like = name("t", 0);
			y->speed = number(r, 1e9);
			for (int op = 0; op < 6; op++)
				y->op_speed[op] = coin(r) ? number(r, 1e9) : 0;
		}
	}
	c->n_hosts = below(r, 4);
	c->host = array(c->n_hosts, sizeof(*c->host));
	for (uint32_t h = 0; h < c->n_hosts; h++) {
		struct hps_host *x = &c->host[h];

		x->name = name("h", h);
		x->address = name("address.", h);
		x->memory = coin(r) ? number(r, 1e18) : 0;
		x->units = array(c->n_types, sizeof(*x->units));
		for (uint32_t t = 0; t < c->n_types; t++)
			x->units[t] = below(r, HPS_MAX_UNITS + 1);
		x->cores = coin(r) ? below(r, 1000) : 0;
		x->ps_cores = below(r, 1000);
	}
	c->network = random_link(r);
	c->ps_price = number(r, 1e9);
}

static double *figures(struct hps_rng *r, uint32_t n)
{
	double *v = array(n, sizeof(*v));

	for (uint32_t i = 0; i < n; i++)
		v[i] = figure(r);
	return v;
}

static void random_time(struct hps_rng *r, const struct hps_profile *p, struct hps_layer_time *t)
{
	t->forward_s = coin(r) ? figures(r, p->n_batches) : NULL;
	t->backward_s = coin(r) ? figures(r, p->n_batches) : NULL;
	t->forward = (struct hps_fit){ figure(r), figure(r), figure(r) };
	t->backward = (struct hps_fit){ figure(r), figure(r), figure(r) };
	t->oct = figure(r);
	t->alpha = hps_rng_uniform(r);
	t->n_scaling = below(r, 4);
	t->scaling = t->n_scaling ? array(t->n_scaling, sizeof(double)) : NULL;
	for (uint32_t i = 0; i < t->n_scaling; i++)
		t->scaling[i] = number(r, 1e300);
}

static void random_profile(struct hps_rng *r, struct hps_profile *p)
{
	memset(p, 0, sizeof(*p));
	p->digest = big(r);
	p->batch = number(r, 1e9);
	p->n_batches = below(r, 5);
	p->batches = array(p->n_batches, sizeof(double));
	for (uint32_t i = 0; i < p->n_batches; i++)
		p->batches[i] = (i ? p->batches[i - 1] : 0) + 1 + below(r, 100);
	p->n_layers = 1 + below(r, 6);
	p->size = array(p->n_layers, sizeof(*p->size));
	p->cut_forward_bytes = figures(r, p->n_layers);
	p->cut_backward_bytes = figures(r, p->n_layers);
	p->cut_forward_bytes[p->n_layers - 1] = p->cut_backward_bytes[p->n_layers - 1] = 0;
	for (uint32_t l = 0; l < p->n_layers; l++)
		p->size[l] = (struct hps_layer_size){ text(r),	 figure(r), figure(r),
						      figure(r), figure(r), figure(r) };
	p->n_types = 1 + below(r, 4);
	p->type = array(p->n_types, sizeof(*p->type));
	p->simulated = array(p->n_types, sizeof(*p->simulated));
	p->time = array((size_t)p->n_types * p->n_layers, sizeof(*p->time));
	for (uint32_t t = 0; t < p->n_types; t++) {
		p->type[t] = name("t", t);
		p->simulated[t] = coin(r);
		for (uint32_t l = 0; l < p->n_layers; l++)
			random_time(r, p, &p->time[t * p->n_layers + l]);
	}
	p->link = random_link(r);
	p->link_measured = coin(r);
	p->shard.rows_per_s = figure(r);
	p->shard.bytes_per_s = figure(r);
	p->shard.measured = coin(r);
	p->source = coin(r) ? text(r) : NULL;
	p->step_overhead_s = figure(r);
	p->input_s_per_sample = figure(r);
}

static char *word(struct hps_rng *r, const char *const *words, uint32_t n)
{
	char *s = strdup(words[below(r, n)]);

	assert_non_null(s);
	return s;
}

static void random_plan(struct hps_rng *r, struct hps_plan *p)
{
	static const char *const objectives[] = { "cost_per_sample", "price_per_hour" };
	static const char *const forms[] = { "paper", "executor" };
	static const char *const evaluators[] = { "rate", "step" };
	uint32_t begin = 0;

	memset(p, 0, sizeof(*p));
	p->digest = big(r);
	p->n_stages = 1 + below(r, 5);
	p->stage = array(p->n_stages, sizeof(*p->stage));
	for (uint32_t i = 0; i < p->n_stages; i++) {
		p->stage[i] = (struct hps_plan_stage){ begin, begin + below(r, 4), name("t", i),
						       1 + below(r, HPS_MAX_UNITS) };
		begin = p->stage[i].last + 1;
	}
	p->ps_shards = below(r, HPS_MAX_SHARDS + 1);
	p->floor_samples_per_s = figure(r);
	p->method = text(r);
	p->objective = word(r, objectives, 2);
	p->form = word(r, forms, 2);
	p->evaluator = word(r, evaluators, 2);
	p->seed = big(r);
	p->evaluations = big(r);
	p->throughput_samples_per_s = figure(r);
	p->cost_per_sample = figure(r);
	p->price_per_hour = figure(r);
	p->has_bound = coin(r);
	p->bound = p->has_bound ? figure(r) : 0;
	p->gap = p->has_bound ? figure(r) : 0;
	p->proven = coin(r);
	p->simulated = coin(r);
	p->interrupted = coin(r);
}

static char *endpoint(struct hps_rng *r, uint32_t i)
{
	char s[64];
	char *copy;

	if (coin(r))
		snprintf(s, sizeof(s), "tcp://10.0.0.1:%u", 1 + i);
	else
		snprintf(s, sizeof(s), "ipc:///tmp/with space/%u", i);
	copy = strdup(s);
	assert_non_null(copy);
	return copy;
}

static void random_usage(struct hps_rng *r, struct hps_usage *u)
{
	u->method = name("m", below(r, 9));
	u->floor_samples_per_s = figure(r);
	u->utilisation = figure(r);
	u->ps_utilisation = figure(r);
	u->cost_per_sample = figure(r);
	u->samples = figure(r);
	u->hours = figure(r);
	u->dollars = figure(r);
	u->n_stages = below(r, 3);
	u->stage = array(u->n_stages, sizeof(*u->stage));
	for (uint32_t i = 0; i < u->n_stages; i++)
		u->stage[i] = (struct hps_usage_stage){ figure(r), figure(r) };
	u->n_types = below(r, 3);
	u->type = array(u->n_types, sizeof(*u->type));
	for (uint32_t i = 0; i < u->n_types; i++)
		u->type[i] =
			(struct hps_usage_type){ name("t", i), below(r, 99), figure(r), figure(r) };
	u->n_hosts = below(r, 3);
	u->host = array(u->n_hosts, sizeof(*u->host));
	for (uint32_t i = 0; i < u->n_hosts; i++)
		u->host[i] = (struct hps_usage_host){ name("h", i), below(r, 99), below(r, 9),
						      figure(r),    figure(r),	  figure(r) };
}

static void random_deployment(struct hps_rng *r, struct hps_deployment *d)
{
	uint32_t begin = 0, nodes = 0;

	memset(d, 0, sizeof(*d));
	d->digest = big(r);
	d->job = name("job", below(r, 9));
	d->coordinator.host = name("h", 0);
	d->coordinator.endpoint = endpoint(r, nodes++);
	d->n_shards = 1 + below(r, 4);
	d->shard = array(d->n_shards, sizeof(*d->shard));
	for (uint32_t i = 0; i < d->n_shards; i++)
		d->shard[i] = (struct hps_deployed_shard){ name("h", i), endpoint(r, nodes++) };
	d->n_stages = 1 + below(r, 4);
	d->stage = array(d->n_stages, sizeof(*d->stage));
	for (uint32_t i = 0; i < d->n_stages; i++) {
		struct hps_deployed_stage *s = &d->stage[i];

		s->first = begin;
		s->last = begin + below(r, 3);
		begin = s->last + 1;
		s->type = name("t", i);
		s->dense_sync = (enum hps_dense_sync)below(r, 2);
		s->n_replicas = 1 + below(r, 4);
		s->replica = array(s->n_replicas, sizeof(*s->replica));
		for (uint32_t k = 0; k < s->n_replicas; k++)
			s->replica[k] =
				(struct hps_deployed_replica){ name("h", k), endpoint(r, nodes++) };
	}
	d->batch = 1 + below(r, HPS_MAX_BATCH);
	d->micro_batches = 1 + below(r, HPS_MAX_MICRO_BATCHES);
	d->epochs = 1 + below(r, HPS_MAX_EPOCHS);
	d->sync = (enum hps_sync)below(r, 2);
	d->seed = big(r);
	d->predicted_samples_per_s = figure(r);
	d->price_per_hour = figure(r);
	d->simulated = coin(r);
	d->has_usage = coin(r);
	if (d->has_usage)
		random_usage(r, &d->usage);
}

/* --- there and back --- */

/* Defines test_KIND. */
#define ROUND_TRIP(kind, seed)                                                                     \
	static void test_##kind(void **state)                                                      \
	{                                                                                          \
		for (uint32_t round = 0; round < ROUNDS; round++) {                                \
			struct hps_##kind x, y;                                                    \
			struct hps_rng r;                                                          \
			struct hps_doc *written;                                                   \
                                                                                                   \
			hps_rng_init(&r, seed, round);                                             \
			random_##kind(&r, &x);                                                     \
			written = hps_##kind##_write(&x);                                          \
			for (int msgpack = 0; msgpack < 2; msgpack++) {                            \
				struct hps_doc *d = job_case_again(written, msgpack);              \
				struct hps_at at = hps_at_root(d, "t");                            \
				struct hps_err err = { 0 };                                        \
                                                                                                   \
				if (hps_##kind##_read(&at, &y, &err))                              \
					fail_msg("round %u: %s: %s", round, err.where, err.msg);   \
				job_case_same_##kind(&x, &y);                                      \
				hps_##kind##_release(&y);                                          \
				hps_doc_free(d);                                                   \
			}                                                                          \
			hps_doc_free(written);                                                     \
			hps_##kind##_release(&x);                                                  \
		}                                                                                  \
	}

ROUND_TRIP(model, 1)
ROUND_TRIP(cluster, 2)
ROUND_TRIP(profile, 3)
ROUND_TRIP(plan, 4)
ROUND_TRIP(deployment, 5)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),	   cmocka_unit_test(test_cluster),
		cmocka_unit_test(test_profile),	   cmocka_unit_test(test_plan),
		cmocka_unit_test(test_deployment),
	};

	return cmocka_run_group_tests_name("job property", tests, NULL, NULL);
}
