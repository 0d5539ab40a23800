/* A server process from its start to its end: load, join, serve run by run, save, leave. */
#include "serve/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/sig.h"
#include "coord/coord.h"
#include "coord/member.h"
#include "graph/graph.h"
#include "net/net.h"
#include "serve/pool_int.h"
#include "serve/state.h"

enum {
	TICK_MS = 50,	  /* the state machines want to be called every 100 ms */
	TURN = 256,	  /* messages a turn at most: a flood must not stop the clock */
	LINGER_MS = 2000, /* for the last words */
};

struct process {
	const struct hps_serve_opts *o;
	const struct hps_job *job;
	const char *host;
	struct hps_graph graph;
	struct hps_shard **shard; /* n_shards of the job; NULL: not here */
	uint32_t n_here;
	uint64_t incarnation, coordinator; /* the coordinator's: both number a save */
	struct hps_state_dir dir;
	uint64_t epochs;     /* of the runs before */
	uint64_t first_step; /* updates that the shards have seen */
	uint32_t run;	     /* how many before this one */
	bool loaded;
	struct hps_net_ctx *ctx;
	struct hps_net *net; /* main thread's */
	struct pool *pool;
	struct hps_coord *coord; /* one of the two */
	struct hps_member *member;
	struct hps_outbox out;
	struct hps_coord_table *table; /* n_tables */
	bool saving, interrupted;
	bool heard, begun; /* a member: the coordinator has spoken; this run has begun */
};

/* --- what runs here --- */

static void list_hosts(const struct hps_job *job, struct hps_err *err)
{
	const struct hps_deployment *d = &job->deployment;
	char list[200] = "";
	size_t len = 0;

	for (uint32_t i = 0; i < d->n_shards && len + 3 < sizeof(list); i++) {
		const char *h = d->shard[i].host;

		if (i && !strcmp(h, d->shard[i - 1].host))
			continue;
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", len ? ", " : "", h);
		if (len >= sizeof(list))
			len = sizeof(list) - 1;
	}
	hps_err_hint(err, "--host takes one of the deployment's hosts; shards are on %s", list);
}

/* The deployment's own copy of a host's name, or NULL. */
static const char *find_host(const struct hps_job *job, const char *name)
{
	const struct hps_deployment *d = &job->deployment;

	for (uint32_t i = 0; i < d->n_shards; i++)
		if (!strcmp(d->shard[i].host, name))
			return d->shard[i].host;
	for (uint32_t s = 0; s < d->n_stages; s++)
		for (uint32_t r = 0; r < d->stage[s].n_replicas; r++)
			if (!strcmp(d->stage[s].replica[r].host, name))
				return d->stage[s].replica[r].host;
	return NULL;
}

static bool single_host(const struct hps_job *job)
{
	const struct hps_deployment *d = &job->deployment;
	const char *name = d->coordinator.host;

	for (uint32_t i = 0; i < d->n_shards; i++)
		if (strcmp(d->shard[i].host, name) != 0)
			return false;
	for (uint32_t s = 0; s < d->n_stages; s++)
		for (uint32_t r = 0; r < d->stage[s].n_replicas; r++)
			if (strcmp(d->stage[s].replica[r].host, name) != 0)
				return false;
	return true;
}

enum hps_status hps_serve_host(const struct hps_job *job, const char *asked, const char **host,
			       struct hps_err *err)
{
	char here[256] = "";

	if (!asked && single_host(job)) {
		*host = job->deployment.coordinator.host;
		return HPS_OK;
	}
	if (!asked && gethostname(here, sizeof(here) - 1))
		return hps_err_errno(err, HPS_IO, "cannot get this host's name");
	*host = find_host(job, asked ? asked : here);
	if (*host)
		return HPS_OK;
	hps_err_set(err, HPS_USAGE, "the deployment has no host \"%s\"%s", asked ? asked : here,
		    asked ? "" : ", which is this machine's name");
	list_hosts(job, err);
	return HPS_USAGE;
}

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
	enum hps_status st = hps_net_ctx_new(&p->ctx, err);

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

/* --- saving --- */

static enum hps_status begin_save(struct process *p, struct hps_err *err)
{
	struct hps_state_write w = { .job = p->job, .graph = &p->graph, .epochs = p->epochs };
	enum hps_status st;

	p->saving = true;
	if (!p->o->state) {
		pool_save(p->pool, NULL);
		return HPS_OK;
	}
	st = hps_state_begin(&p->dir, err);
	if (st != HPS_OK)
		return st;
	w.tmp = p->dir.tmp;
	w.save = hps_hash3(hps_deployment_id(&p->job->deployment), p->coordinator, p->run);
	pool_save(p->pool, &w);
	return HPS_OK;
}

static enum hps_status say_saved(struct process *p, struct hps_err *err)
{
	const char *path = p->o->state;

	return p->coord ? hps_coord_saved(p->coord, path, p->table, hps_now_s(), &p->out, err)
			: hps_member_saved(p->member, path, p->table, &p->out, err);
}

static enum hps_status end_save(struct process *p, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	p->saving = false;
	if (p->o->state) {
		st = hps_state_commit(&p->dir, p->n_here == p->job->deployment.n_shards, err);
		if (st == HPS_OK)
			hps_info("saved in %s", p->dir.dir);
	}
	p->loaded = true;
	return st == HPS_OK ? say_saved(p, err) : st;
}

/* What the shards' threads have to tell. */
static enum hps_status look_at_pool(struct process *p, struct hps_err *err)
{
	switch (pool_poll(p->pool, p->table, &p->first_step, err)) {
	case POOL_SAVED:
		return end_save(p, err);
	case POOL_FAILED:
		return err->status;
	default:
		return HPS_OK;
	}
}

/* --- a run, as the coordinator --- */

static enum hps_status coord_receive(struct process *p, struct hps_err *err)
{
	enum hps_status st;
	struct hps_msg m;
	uint32_t peer;
	bool got;
	int n = 0;

	st = hps_net_recv(p->net, TICK_MS, &m, &peer, &got, err);
	while (st == HPS_OK && got) {
		st = hps_coord_message(p->coord, peer, &m, hps_now_s(), &p->out, err);
		if (st == HPS_NET) { /* the peer's fault; if it is a member, the run has ended */
			hps_net_refuse(p->net, peer, err->msg);
			st = HPS_OK;
		}
		if (st == HPS_OK)
			st = hps_net_send_all(p->net, &p->out, err);
		if (st != HPS_OK || ++n == TURN)
			break;
		st = hps_net_recv(p->net, 0, &m, &peer, &got, err);
	}
	return st;
}

static enum hps_status coord_turn(struct process *p, struct hps_err *err)
{
	enum hps_status st = coord_receive(p, err);

	if (st == HPS_OK && hps_sig_caught() && !p->interrupted) {
		p->interrupted = true;
		st = hps_coord_interrupt(p->coord, hps_now_s(), &p->out, err);
	}
	if (st == HPS_OK)
		st = look_at_pool(p, err);
	if (st == HPS_OK && !p->saving && hps_coord_want(p->coord) == HPS_COORD_SAVE)
		st = begin_save(p, err);
	if (st == HPS_OK)
		st = hps_coord_tick(p->coord, hps_now_s(), &p->out, err);
	if (st == HPS_OK)
		st = hps_net_send_all(p->net, &p->out, err);
	return st;
}

static enum hps_status run_coordinator(struct process *p, struct hps_err *err)
{
	struct hps_coord_opts o = { .job = p->job,
				    .host = p->host,
				    .incarnation = p->incarnation,
				    .timeout_s = p->o->keep ? 0 : p->o->timeout_s,
				    .dead_after_s = p->o->dead_after_s,
				    .first_step = p->first_step,
				    .loaded = p->loaded };
	struct hps_coord_stats stats;
	enum hps_status st = hps_coord_new(&o, hps_now_s(), &p->coord, err), told;
	struct hps_err second;

	if (st != HPS_OK)
		return st;
	while (st == HPS_OK && hps_coord_want(p->coord) != HPS_COORD_OVER)
		st = coord_turn(p, err);
	if (st != HPS_OK) { /* something here failed: the others must know */
		told = hps_coord_fail(p->coord, err, hps_now_s(), &p->out, &second);
		if (told == HPS_OK)
			hps_net_send_all(p->net, &p->out, &second);
	} else {
		st = hps_net_send_all(p->net, &p->out, err);
		if (st == HPS_OK)
			st = hps_coord_outcome(p->coord, err);
	}
	hps_coord_stats(p->coord, &stats);
	p->first_step = stats.next_step;
	hps_coord_free(p->coord);
	p->coord = NULL;
	return st;
}

/* --- a run, as a member --- */

/* The coordinator says which step the run begins with: shards that stand elsewhere have loaded
 * another save, or none. */
static enum hps_status check_go(const struct process *p, const struct hps_doc *body,
				struct hps_err *err)
{
	struct hps_at root = hps_at_root(body, "go"), at = hps_at_member(&root, "step");
	uint64_t step;
	enum hps_status st = hps_at_u64(&at, 0, UINT64_MAX, &step, err);

	if (st != HPS_OK || step == p->first_step || p->job->deployment.sync != HPS_BSP)
		return st;
	hps_err_set(err, HPS_BAD_INPUT, "the run begins at step %llu, the shards here are at %llu",
		    (unsigned long long)step, (unsigned long long)p->first_step);
	hps_err_hint(err, "give every hps-serve of a job the same save with --state");
	return HPS_BAD_INPUT;
}

static enum hps_status member_notice(struct process *p, struct hps_msg *m, bool *over,
				     struct hps_err *err)
{
	uint64_t from = m->head.incarnation;
	struct hps_notice n;
	enum hps_status st = hps_member_message(p->member, m, hps_now_s(), &n, err);

	p->heard = true;
	if (st != HPS_OK)
		return st;
	switch (n.kind) {
	case HPS_CTL_GO:
		p->begun = true;
		st = check_go(p, n.body, err);
		break;
	case HPS_CTL_SAVE:
		p->coordinator = from;
		st = begin_save(p, err);
		break;
	case HPS_CTL_DONE:
		*over = true;
		st = hps_member_say(p->member, HPS_CTL_BYE, NULL, &p->out, err);
		break;
	default:
		break;
	}
	hps_notice_release(&n);
	return st;
}

static enum hps_status member_turn(struct process *p, bool *over, struct hps_err *err)
{
	enum hps_status st;
	struct hps_msg m;
	uint32_t peer;
	bool got;

	st = hps_net_recv(p->net, TICK_MS, &m, &peer, &got, err);
	while (st == HPS_OK && got && !*over) {
		st = member_notice(p, &m, over, err);
		if (st != HPS_OK)
			return st;
		st = hps_net_recv(p->net, 0, &m, &peer, &got, err);
	}
	if (st == HPS_OK && got)
		hps_msg_release(&m);
	if (st == HPS_OK && hps_sig_caught() && !p->interrupted) {
		p->interrupted = true;
		if (p->heard)
			st = hps_member_say(p->member, HPS_CTL_INTERRUPT, NULL, &p->out, err);
		else
			*over = true; /* nobody to ask */
	}
	if (st == HPS_OK)
		st = look_at_pool(p, err);
	if (st == HPS_OK && !*over)
		st = hps_member_tick(p->member, hps_now_s(), &p->out, err);
	if (st == HPS_OK)
		st = hps_net_send_all(p->net, &p->out, err);
	return st;
}

static enum hps_status run_member(struct process *p, struct hps_err *err)
{
	const struct hps_deployment *d = &p->job->deployment;
	struct hps_err mine = { 0 }, second;
	enum hps_status st;
	uint32_t *node = hps_calloc(p->n_here, sizeof(*node), err), n = 0;
	char name[160];
	struct hps_member_opts o = { .job = p->job,
				     .name = name,
				     .incarnation = p->incarnation,
				     .node = node,
				     .n_nodes = p->n_here,
				     .timeout_s = p->o->keep ? 0 : p->o->timeout_s,
				     .dead_after_s = p->o->dead_after_s };
	bool over = false;

	if (!node)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < d->n_shards; i++)
		if (p->shard[i])
			node[n++] = hps_node_of_shard(d, i);
	snprintf(name, sizeof(name), "serve@%s", p->host);
	st = hps_member_new(&o, hps_now_s(), &p->member, err);
	free(node);
	while (st == HPS_OK && !over)
		st = member_turn(p, &over, &mine);
	if (st != HPS_OK && p->member) {
		if (err)
			*err = mine;
		if (hps_member_error(p->member, &mine, &p->out, &second) == HPS_OK)
			hps_net_send_all(p->net, &p->out, &second);
	}
	hps_member_free(p->member);
	p->member = NULL;
	return st;
}

/* With --keep a member asks to join the next run while the coordinator may still be ending the one
 * before: it is refused until that is over, and asks again. */
static bool between_runs(const struct process *p)
{
	return p->o->keep && p->run && !p->begun;
}

static enum hps_status run_member_kept(struct process *p, struct hps_err *err)
{
	const struct timespec pause = { .tv_nsec = 200 * 1000 * 1000 };
	enum hps_status st;

	for (;;) {
		p->begun = p->heard = false;
		st = run_member(p, err);
		if (st != HPS_NET || !between_runs(p))
			return st;
		if (hps_sig_caught())
			return HPS_OK; /* nothing was under way */
		nanosleep(&pause, NULL);
	}
}

/* --- the process --- */

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
		st = pool_new(p->job, p->shard, p->ctx, p->incarnation, p->net, &p->pool, err);
	if (st == HPS_OK && p->o->state)
		st = load(p, err);
	if (st == HPS_OK)
		st = pool_start(p->pool, err);
	return st;
}

static void release(struct process *p)
{
	pool_free(p->pool);
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

static bool has_shards(const struct hps_job *job, const char *host)
{
	for (uint32_t i = 0; i < job->deployment.n_shards; i++)
		if (!strcmp(job->deployment.shard[i].host, host))
			return true;
	return false;
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
	if (!has_shards(o->job, p.host)) {
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
		st = coordinates ? run_coordinator(&p, err) : run_member_kept(&p, err);
		p.run++;
		if (!o->keep || hps_sig_caught())
			break;
	}
	release(&p);
	return st;
}
