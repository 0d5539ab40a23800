/* A server process from its start to its end: load, listen, serve run by run, leave. */
#include "serve/process_int.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/sig.h"

static enum hps_status make_shards(struct process *p, struct hps_err *err)
{
	const struct hps_deployment *d = &p->job->deployment;
	enum hps_status st = HPS_OK;

	for (uint32_t i = 0; i < d->n_shards && st == HPS_OK; i++) {
		if (strcmp(d->shard[i].host, p->host) != 0)
			continue;
		st = hps_shard_new(p->job, &p->graph, i, &p->shard[i], err);
		p->n_here += st == HPS_OK;
	}
	return st;
}

static uint64_t rows_here(const struct process *p)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; i < p->job->deployment.n_shards; i++)
		for (uint32_t t = 0; p->shard[i] && t < p->job->model.n_tables; t++) {
			struct hps_table_stats s;

			hps_table_stats(hps_shard_table(p->shard[i], t), &s);
			rows += s.rows;
		}
	return rows;
}

static enum hps_status load(struct process *p, struct hps_err *err)
{
	struct hps_state s = { 0 };
	bool found = false;
	enum hps_status st = hps_state_find(p->o->state, &s, &found, err);

	if (st == HPS_OK && found)
		st = hps_state_load(&s, p->job, p->shard, err);
	if (st == HPS_OK && found) {
		p->loaded = true;
		p->first_step = s.step;
		p->epochs = s.epochs;
		for (uint32_t i = 0; i < p->job->deployment.n_shards; i++)
			if (p->shard[i])
				hps_shard_start(p->shard[i], s.step);
		hps_info("loaded %s: %llu rows for %u shards here, after %llu steps", p->o->state,
			 (unsigned long long)rows_here(p), p->n_here, (unsigned long long)s.step);
	} else if (st == HPS_OK) {
		hps_info("%s holds no save yet: the model starts anew", p->o->state);
	}
	hps_state_release(&s);
	return st;
}

/* Where the main thread listens, or whom it talks to. */
static enum hps_status open_net(struct process *p, bool coordinates, struct hps_err *err)
{
	const struct hps_deployment *d = &p->job->deployment;
	uint64_t scores = d->batch * sizeof(uint64_t); /* the row numbers of evaluated rows */
	struct hps_net_opts o = { .job = hps_deployment_id(d),
				  .incarnation = p->incarnation,
				  .self = coordinates ? HPS_NODE_COORDINATOR : HPS_NODE_PROCESS,
				  .max_frame = scores > HPS_CONTROL_MAX_BYTES
						       ? scores
						       : HPS_CONTROL_MAX_BYTES,
				  .known_nodes = hps_deployment_nodes(d) };
	uint64_t here = 0, peers = hps_deployment_nodes(d);
	enum hps_status st;

	for (uint32_t i = 0; i < d->n_shards; i++)
		here += !strcmp(d->shard[i].host, p->host);
	/* every node may speak to every shard and to the coordinator */
	st = hps_net_room(1 + here, (1 + here) * peers, err);
	if (st == HPS_OK)
		st = hps_net_ctx_new(&p->ctx, err);

	if (st == HPS_OK)
		st = hps_net_new(p->ctx, &o, &p->net, err);
	if (st != HPS_OK)
		return st;
	if (!coordinates)
		return hps_net_connect(p->net, HPS_NODE_COORDINATOR, d->coordinator.endpoint, err);
	st = hps_net_listen(p->net, d->coordinator.endpoint, err);
	if (st != HPS_OK)
		hps_err_at(err, "coordinator");
	return st;
}

static uint64_t new_incarnation(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return hps_hash3((uint64_t)t.tv_sec, (uint64_t)t.tv_nsec, (uint64_t)getpid());
}

static enum hps_status start(struct process *p, bool coordinates, struct hps_err *err)
{
	enum hps_status st;

	if (p->o->state) {
		st = hps_state_open(&p->dir, p->o->state, p->host, err);
		if (st != HPS_OK)
			return st;
	}
	/* sockets first: a port in use is told before a long load */
	st = open_net(p, coordinates, err);
	if (st == HPS_OK)
		st = make_shards(p, err);
	if (st == HPS_OK)
		st = hps_pool_new(p->job, p->shard, p->ctx, p->incarnation, p->net, &p->pool, err);
	if (st == HPS_OK && p->o->state)
		st = load(p, err);
	if (st == HPS_OK)
		st = hps_pool_start(p->pool, err);
	return st;
}

static void release(struct process *p)
{
	hps_pool_free(p->pool);
	hps_outbox_release(&p->out);
	hps_net_free(p->net, LINGER_MS);
	hps_net_ctx_free(p->ctx);
	for (uint32_t i = 0; p->shard && i < p->job->deployment.n_shards; i++)
		hps_shard_free(p->shard[i]);
	free(p->shard);
	free(p->table);
	hps_state_close(&p->dir);
	hps_graph_release(&p->graph);
}

enum hps_status hps_serve_run(const struct hps_serve_opts *o, struct hps_err *err)
{
	const struct hps_deployment *d = &o->job->deployment;
	struct process p = {
		.o = o, .job = o->job, .incarnation = new_incarnation(), .dir.lock_fd = -1
	};
	enum hps_status st = hps_serve_host(o->job, o->host, &p.host, err);
	bool coordinates;

	if (st != HPS_OK)
		return st;
	if (!hps_serve_has_shards(o->job, p.host)) {
		hps_info("no shard of this job is on host %s: nothing to serve", p.host);
		return HPS_OK;
	}
	coordinates = !strcmp(d->coordinator.host, p.host);
	p.coordinator = p.incarnation;
	st = hps_graph_build(&o->job->model, &p.graph, err);
	if (st != HPS_OK)
		return st;
	p.shard = hps_calloc(d->n_shards, sizeof(*p.shard), err);
	p.table = hps_calloc(o->job->model.n_tables, sizeof(*p.table), err);
	st = p.shard && p.table ? start(&p, coordinates, err) : HPS_MEMORY;
	if (st == HPS_OK)
		hps_verbose("host %s: %u of %u shards, %s", p.host, p.n_here, d->n_shards,
			    coordinates ? "coordinator" : d->coordinator.endpoint);
	while (st == HPS_OK) {
		st = coordinates ? hps_process_coordinate(&p, err) : hps_process_join(&p, err);
		p.run++;
		if (!o->keep || hps_sig_caught())
			break;
	}
	release(&p);
	return st;
}
