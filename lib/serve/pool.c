/* What a shard's thread does: messages in, answers out, now and then an order. */
#include "serve/pool_int.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"

enum { LINGER_MS = 2000 }; /* for the last answers */

enum order { ORDER_NONE, ORDER_SAVE, ORDER_STOP };
enum outcome { WORKING, SAVED, FAILED, TOLD };

struct server { /* one shard's thread */
	struct pool *pool;
	uint32_t index; /* of the shard in the job */
	struct hps_shard *shard;
	struct hps_net *net;
	pthread_t thread;
	bool started;
	/* the thread's own */
	struct hps_outbox out;
	bool *warned; /* n_tables */
	/* under pool->lock */
	enum order order;
	enum outcome outcome;
	struct hps_err err;
	struct hps_coord_table *table; /* n_tables, as of the last save */
	uint64_t step;
};

struct pool {
	const struct hps_job *job;
	struct hps_net *wake;
	pthread_mutex_t lock;
	struct hps_state_write write; /* of the save under way; set while no thread saves */
	bool has_write;
	bool saving;
	atomic_bool *told; /* n_tables: a warning about its ceiling was printed */
	struct server *server;
	uint32_t n;
};

/* --- the thread --- */

static void tell(struct server *s, enum outcome outcome, const struct hps_err *err)
{
	pthread_mutex_lock(&s->pool->lock);
	if (s->outcome != FAILED && s->outcome != TOLD) {
		s->outcome = outcome;
		if (err)
			s->err = *err;
	}
	pthread_mutex_unlock(&s->pool->lock);
	hps_net_wake(s->pool->wake);
}

static enum order take_order(struct server *s)
{
	enum order o;

	pthread_mutex_lock(&s->pool->lock);
	o = s->order;
	if (o == ORDER_SAVE)
		s->order = ORDER_NONE;
	pthread_mutex_unlock(&s->pool->lock);
	return o;
}

static void warn_of_ceiling(const struct hps_table_spec *spec)
{
	unsigned long long rows = spec->max_rows, bytes = spec->max_bytes;
	char what[80];

	if (rows && bytes)
		snprintf(what, sizeof(what), "%llu rows or %llu bytes", rows, bytes);
	else
		snprintf(what, sizeof(what), "%llu %s", rows ? rows : bytes,
			 rows ? "rows" : "bytes");
	hps_warn("table %s: its ceiling of %s is reached: new keys are dropped", spec->name, what);
}

/* The first shard that drops a key of a table says so, once a process. */
static void watch_ceilings(struct server *s)
{
	const struct hps_model *m = &s->pool->job->model;

	for (uint32_t t = 0; t < m->n_tables; t++) {
		const struct hps_table_spec *spec = &m->table[t];
		struct hps_table_stats stats;

		if (s->warned[t] || (!spec->max_rows && !spec->max_bytes))
			continue;
		hps_table_stats(hps_shard_table(s->shard, t), &stats);
		if (!stats.refused)
			continue;
		s->warned[t] = true;
		if (!atomic_exchange(&s->pool->told[t], true))
			warn_of_ceiling(spec);
	}
}

static enum hps_status serve_one(struct server *s, struct hps_msg *m, uint32_t peer,
				 struct hps_err *err)
{
	bool push = m->head.type == HPS_MSG_PUSH;
	enum hps_status st = hps_shard_handle(s->shard, m, &s->out, err);

	if (st == HPS_NET) {
		hps_net_refuse(s->net, peer, err->msg);
		st = HPS_OK;
	}
	if (st == HPS_OK && push)
		watch_ceilings(s);
	return st == HPS_OK ? hps_net_send_all(s->net, &s->out, err) : st;
}

static enum hps_status save(struct server *s, struct hps_err *err)
{
	struct hps_state_write w = s->pool->write;
	uint32_t n_tables = s->pool->job->model.n_tables;
	struct hps_shard_stats shard_stats;

	hps_shard_stats(s->shard, &shard_stats);
	s->step = shard_stats.step;
	w.shard = s->index;
	for (uint32_t t = 0; t < n_tables; t++) {
		struct hps_table_stats stats;

		hps_table_stats(hps_shard_table(s->shard, t), &stats);
		s->table[t] = (struct hps_coord_table){ stats.rows, stats.bytes, stats.refused };
	}
	return s->pool->has_write ? hps_state_write(&w, s->shard, err) : HPS_OK;
}

static void say_stats(const struct server *s)
{
	struct hps_shard_stats n;

	hps_shard_stats(s->shard, &n);
	hps_verbose("shard %u: %llu pulls of %llu rows, %llu pushes of %llu rows, %llu steps",
		    s->index, (unsigned long long)n.pulls, (unsigned long long)n.rows_pulled,
		    (unsigned long long)n.pushes, (unsigned long long)n.rows_pushed,
		    (unsigned long long)n.step);
}

static void *serve(void *arg)
{
	struct server *s = arg;
	struct hps_err err = { 0 };
	enum hps_status st = HPS_OK;

	for (;;) {
		enum order order = take_order(s);
		struct hps_msg m;
		uint32_t peer;
		bool got;

		if (order == ORDER_STOP)
			break;
		if (order == ORDER_SAVE && (st = save(s, &err)) == HPS_OK)
			tell(s, SAVED, NULL);
		for (got = true; got && st == HPS_OK;) {
			st = hps_net_recv(s->net, -1, &m, &peer, &got, &err);
			if (st == HPS_OK && got)
				st = serve_one(s, &m, peer, &err);
		}
		if (st != HPS_OK)
			break;
	}
	hps_outbox_release(&s->out);
	say_stats(s);
	if (st != HPS_OK) {
		hps_err_at(&err, "shard %u", s->index);
		tell(s, FAILED, &err);
	}
	return NULL;
}

/* --- for the main thread --- */

/* The largest frame that an honest replica sends a shard, and some: keys, gradients or values of
 * a stage's lookups over a whole batch, or its dense parameters with Adam's state. */
static uint64_t largest_frame(const struct hps_job *job, const struct hps_shard *shard)
{
	const struct hps_model *m = &job->model;
	uint64_t most = 0;

	for (uint32_t l = 0; l < m->n_layers; l++) {
		const struct hps_layer *layer = &m->layer[l];
		uint64_t keys = layer->op == HPS_OP_EMBEDDING	? layer->n_slots
				: layer->op == HPS_OP_NEGATIVES ? layer->count
								: 0;
		uint64_t floats = keys ? m->table[layer->table].dim : 0;

		most += job->deployment.batch * keys * (floats > 2 ? 4 * floats : 8);
	}
	for (uint32_t i = 0; i < hps_shard_n_dense(shard); i++) {
		uint64_t bytes = hps_shard_dense(shard, i).n * 2 * sizeof(float);

		most = bytes > most ? bytes : most;
	}
	return most + (64 << 10); /* directories */
}

static enum hps_status server_init(struct server *s, struct pool *p, uint32_t index,
				   struct hps_shard *shard, struct hps_net_ctx *ctx,
				   uint64_t incarnation, struct hps_err *err)
{
	const struct hps_deployment *d = &p->job->deployment;
	struct hps_net_opts o = { .job = hps_deployment_id(d),
				  .incarnation = incarnation,
				  .self = hps_node_of_shard(d, index),
				  .max_frame = largest_frame(p->job, shard),
				  .known_nodes = hps_deployment_nodes(d) };
	enum hps_status st;

	s->pool = p;
	s->index = index;
	s->shard = shard;
	s->warned = hps_calloc(p->job->model.n_tables, sizeof(*s->warned), err);
	s->table = hps_calloc(p->job->model.n_tables, sizeof(*s->table), err);
	if (!s->warned || !s->table)
		return HPS_MEMORY;
	st = hps_net_new(ctx, &o, &s->net, err);
	if (st == HPS_OK)
		st = hps_net_listen(s->net, d->shard[index].endpoint, err);
	if (st != HPS_OK)
		hps_err_at(err, "shard %u", index);
	return st;
}

enum hps_status hps_pool_new(const struct hps_job *job, struct hps_shard **shard,
			     struct hps_net_ctx *ctx, uint64_t incarnation, struct hps_net *wake,
			     struct pool **out, struct hps_err *err)
{
	struct pool *p = hps_calloc(1, sizeof(*p), err);
	enum hps_status st = HPS_OK;

	if (!p)
		return HPS_MEMORY;
	p->job = job;
	p->wake = wake;
	pthread_mutex_init(&p->lock, NULL);
	p->server = hps_calloc(job->deployment.n_shards, sizeof(*p->server), err);
	p->told = hps_calloc(job->model.n_tables, sizeof(*p->told), err);
	if (!p->server || !p->told)
		st = HPS_MEMORY;
	for (uint32_t i = 0; i < job->deployment.n_shards && st == HPS_OK; i++)
		if (shard[i])
			st = server_init(&p->server[p->n++], p, i, shard[i], ctx, incarnation, err);
	if (st != HPS_OK) {
		hps_pool_free(p);
		return st;
	}
	*out = p;
	return HPS_OK;
}

enum hps_status hps_pool_start(struct pool *p, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint32_t i = 0; i < p->n && st == HPS_OK; i++) {
		char name[16];

		snprintf(name, sizeof(name), "shard %u", p->server[i].index);
		st = hps_thread_start(&p->server[i].thread, name, serve, &p->server[i], err);
		p->server[i].started = st == HPS_OK;
	}
	return st;
}

static void give_order(struct pool *p, enum order order)
{
	pthread_mutex_lock(&p->lock);
	for (uint32_t i = 0; i < p->n; i++) {
		p->server[i].order = order;
		if (order == ORDER_SAVE && p->server[i].outcome == SAVED)
			p->server[i].outcome = WORKING;
	}
	pthread_mutex_unlock(&p->lock);
	for (uint32_t i = 0; i < p->n; i++)
		if (p->server[i].started)
			hps_net_wake(p->server[i].net);
}

void hps_pool_free(struct pool *p)
{
	if (!p)
		return;
	give_order(p, ORDER_STOP);
	for (uint32_t i = 0; i < p->n; i++) {
		struct server *s = &p->server[i];

		if (s->started)
			pthread_join(s->thread, NULL);
		hps_net_free(s->net, LINGER_MS);
		free(s->warned);
		free(s->table);
	}
	pthread_mutex_destroy(&p->lock);
	free(p->server);
	free(p->told);
	free(p);
}

void hps_pool_save(struct pool *p, const struct hps_state_write *w)
{
	p->has_write = w != NULL;
	if (w)
		p->write = *w;
	p->saving = true;
	give_order(p, ORDER_SAVE);
}

static void add_up(const struct pool *p, struct hps_coord_table *table, uint64_t *step)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->server[i].step > *step)
			*step = p->server[i].step;
	for (uint32_t t = 0; t < p->job->model.n_tables; t++) {
		table[t] = (struct hps_coord_table){ 0 };
		for (uint32_t i = 0; i < p->n; i++) {
			table[t].rows += p->server[i].table[t].rows;
			table[t].bytes += p->server[i].table[t].bytes;
			table[t].refused += p->server[i].table[t].refused;
		}
	}
}

enum pool_event hps_pool_poll(struct pool *p, struct hps_coord_table *table, uint64_t *step,
			      struct hps_err *err)
{
	enum pool_event ev = POOL_NOTHING;
	uint32_t saved = 0;

	pthread_mutex_lock(&p->lock);
	for (uint32_t i = 0; i < p->n && ev == POOL_NOTHING; i++) {
		struct server *s = &p->server[i];

		saved += s->outcome == SAVED;
		if (s->outcome == FAILED) {
			s->outcome = TOLD;
			*err = s->err;
			ev = POOL_FAILED;
		}
	}
	if (ev == POOL_NOTHING && p->saving && saved == p->n) {
		p->saving = false;
		add_up(p, table, step);
		ev = POOL_SAVED;
	}
	pthread_mutex_unlock(&p->lock);
	return ev;
}
