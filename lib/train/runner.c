/* A replica's thread: take what came, compute a unit, send what follows. */
#include "train/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

enum {
	MESSAGES_AT_ONCE = 64, /* between two units of compute */
	WAIT_MS = 1000,	       /* asleep in the sockets; a wake ends it earlier */
};

/* --- callbacks of the replica, in its thread --- */

static void on_event(void *ctx, const struct hps_replica_event *e)
{
	struct hps_runner *u = ctx;

	hps_tray_event(u->tray, u->index, e);
}

static void on_give_back(void *ctx, struct hps_batch *b)
{
	struct hps_runner *u = ctx;

	u->took(u->ctx, b);
}

/* --- sockets --- */

/* A whole step's rows, activations or parameters, with room for what is beside them: more
 * than an honest peer ever sends in a frame. */
static uint64_t max_frame(const struct hps_job *job, const struct hps_graph *g)
{
	uint64_t widest = job->model.slots * sizeof(uint64_t), rows = 0;

	for (uint32_t l = 0; l < job->model.n_layers; l++) {
		uint64_t n = g->cut[l].cols * sizeof(float);

		rows += g->cost[l].row_bytes;
		widest = n > widest ? n : widest;
	}
	widest = rows > widest ? rows : widest;
	return job->deployment.batch * (widest + 64) + g->n_floats * 4 * sizeof(float) + (1 << 20);
}

static enum hps_status connect_all(struct hps_runner *u, struct hps_err *err)
{
	const struct hps_deployment *d = &u->job->deployment;
	const struct hps_deployed_stage *own = &d->stage[u->stage];
	enum hps_status st = HPS_OK;

	for (uint32_t i = 0; i < d->n_shards && st == HPS_OK; i++)
		st = hps_net_connect(u->net, hps_node_of_shard(d, i), d->shard[i].endpoint, err);
	if (u->stage + 1 < d->n_stages) {
		const struct hps_deployed_stage *next = own + 1;

		for (uint32_t k = 0; k < next->n_replicas && st == HPS_OK; k++)
			st = hps_net_connect(u->net, hps_node_of_replica(d, u->stage + 1, k),
					     next->replica[k].endpoint, err);
	}
	if (own->dense_sync == HPS_DENSE_RING && own->n_replicas > 1 && st == HPS_OK) {
		uint32_t next = (u->replica + 1) % own->n_replicas;

		st = hps_net_connect(u->net, hps_node_of_replica(d, u->stage, next),
				     own->replica[next].endpoint, err);
	}
	return st;
}

enum hps_status hps_runner_init(struct hps_runner *u, const struct hps_runner_opts *o,
				struct hps_err *err)
{
	const struct hps_deployment *d = &o->job->deployment;
	const struct hps_deployed_stage *s = &d->stage[o->stage];
	struct hps_net_opts n = {
		.job = hps_deployment_id(d),
		.incarnation = o->incarnation,
		.self = hps_node_of_replica(d, o->stage, o->replica),
		.max_frame = max_frame(o->job, o->graph),
		.known_nodes = hps_deployment_nodes(d),
		.watch = true,
	};
	struct hps_replica_opts r = {
		.job = o->job,
		.graph = o->graph,
		.stage = o->stage,
		.replica = o->replica,
		.incarnation = o->incarnation,
		.seed = o->seed,
		.operand = o->operand,
		.n_operands = o->n_operands,
		.event = on_event,
		.give_back = on_give_back,
		.ctx = u,
	};
	enum hps_status st = hps_backend_for(HPS_DEVICE_CPU, &r.backend, err);

	memset(u, 0, sizeof *u);
	u->job = o->job;
	u->index = o->index;
	u->stage = o->stage;
	u->replica = o->replica;
	u->tray = o->tray;
	u->took = o->took;
	u->ctx = o->took_ctx;
	u->patience_s = o->patience_s;
	if (st == HPS_OK)
		st = hps_inbox_init(&u->inbox, err);
	u->has_inbox = st == HPS_OK;
	if (st == HPS_OK)
		st = hps_replica_new(&r, &u->r, err);
	if (st == HPS_OK)
		st = hps_net_new(o->ctx, &n, &u->net, err);
	if (st == HPS_OK)
		st = hps_net_listen(u->net, s->replica[o->replica].endpoint, err);
	return st == HPS_OK ? connect_all(u, err) : st;
}

/* --- the thread --- */

static enum hps_status take_orders(struct hps_runner *u, bool *did, struct hps_err *err)
{
	struct hps_outbox out = { 0 };
	struct hps_order o;
	enum hps_status st = HPS_OK;

	while (st == HPS_OK && hps_inbox_next_order(&u->inbox, &o)) {
		*did = true;
		st = hps_replica_order(u->r, &o, &out, err);
		if (st == HPS_OK)
			st = hps_net_send_all(u->net, &out, err);
	}
	hps_outbox_release(&out);
	return st;
}

/* A batch of an epoch that is over, or of a step past its end. */
static bool is_stale(const struct hps_runner *u, const struct hps_fed *f, bool wanted,
		     const struct hps_want *w)
{
	struct hps_replica_state s;

	hps_replica_state(u->r, &s);
	if (s.idle)
		return true;
	return wanted && (w->epoch != f->want.epoch || w->eval != f->want.eval ||
			  w->step != f->want.step || w->mb != f->want.mb);
}

static enum hps_status take_batches(struct hps_runner *u, bool *did, struct hps_err *err)
{
	struct hps_outbox out = { 0 };
	enum hps_status st = HPS_OK;
	struct hps_fed f;

	while (st == HPS_OK && hps_inbox_peek(&u->inbox, &f)) {
		struct hps_want w;
		bool wanted = hps_replica_want(u->r, &w);

		if (is_stale(u, &f, wanted, &w)) {
			hps_inbox_drop_first(&u->inbox);
			u->took(u->ctx, f.batch);
			u->took(u->ctx, NULL);
			continue;
		}
		if (!wanted)
			break;
		*did = true;
		hps_inbox_drop_first(&u->inbox);
		st = hps_replica_batch(u->r, f.batch, f.data_end, &out, err);
		u->took(u->ctx, NULL);
		if (st == HPS_OK)
			st = hps_net_send_all(u->net, &out, err);
	}
	hps_outbox_release(&out);
	return st;
}

/* Whose fault it is, by name: of this job's nodes. */
static void name_sender(const struct hps_runner *u, uint32_t node, struct hps_err *err)
{
	char name[192];

	if (node == HPS_NODE_PROCESS)
		return;
	hps_node_name(&u->job->deployment, node, name, sizeof name);
	hps_err_at(err, "%s", name);
}

/* Messages that are here; waits for the first at most wait_ms. */
static enum hps_status take_messages(struct hps_runner *u, int wait_ms, bool *did,
				     struct hps_err *err)
{
	struct hps_outbox out = { 0 };
	enum hps_status st = HPS_OK;

	for (int i = 0; i < MESSAGES_AT_ONCE && st == HPS_OK; i++) {
		struct hps_msg m;
		uint32_t peer;
		bool got;

		st = hps_net_recv(u->net, i ? 0 : wait_ms, &m, &peer, &got, err);
		if (st == HPS_NET)
			name_sender(u, peer, err);
		if (st != HPS_OK || !got)
			break;
		*did = true;
		st = hps_replica_message(u->r, &m, &out, err);
		if (st == HPS_NET)
			name_sender(u, peer, err);
		if (st == HPS_OK)
			st = hps_net_send_all(u->net, &out, err);
	}
	hps_outbox_release(&out);
	return st;
}

static enum hps_status compute(struct hps_runner *u, bool *did, struct hps_err *err)
{
	struct hps_outbox out = { 0 };
	enum hps_status st = hps_replica_work(u->r, &out, did, err);

	if (st == HPS_OK)
		st = hps_net_send_all(u->net, &out, err);
	hps_outbox_release(&out);
	return st;
}

/* A connection was cut, and nothing has come since that this replica could work on: what was on
 * its way is lost, and nobody will send it again. A peer that has ended is missed, and named, by
 * the coordinator before that. */
static enum hps_status check_cut(struct hps_runner *u, struct hps_err *err)
{
	struct hps_replica_state state;
	char name[400], waits[200];
	uint32_t node;

	hps_replica_state(u->r, &state);
	if (!state.expects || hps_now_s() - u->waits_since_s < u->patience_s ||
	    !hps_net_cut(u->net, &node))
		return HPS_OK;
	hps_node_name(&u->job->deployment, node, name, sizeof name);
	hps_replica_waits(u->r, waits, sizeof waits);
	hps_err_set(err, HPS_NET,
		    "the connection to %s was cut, and what was on its way is lost (%s)", name,
		    waits);
	hps_err_hint(err, "the job goes on from its last save: start it again");
	return HPS_NET;
}

static enum hps_status turn(struct hps_runner *u, struct hps_err *err)
{
	bool did = false, worked = false;
	enum hps_status st = take_orders(u, &did, err);
	double t;

	if (st == HPS_OK)
		st = take_batches(u, &did, err);
	if (st == HPS_OK)
		st = take_messages(u, 0, &did, err);
	t = hps_now_s();
	if (st == HPS_OK)
		st = compute(u, &worked, err);
	u->compute_s += hps_now_s() - t;
	if (did || worked)
		u->waits_since_s = 0;
	if (st != HPS_OK || did || worked)
		return st;
	t = hps_now_s();
	if (u->waits_since_s <= 0)
		u->waits_since_s = t;
	st = take_messages(u, WAIT_MS, &did, err);
	u->wait_s += hps_now_s() - t;
	return st == HPS_OK && !did ? check_cut(u, err) : st;
}

static void *run(void *arg)
{
	struct hps_runner *u = arg;
	struct hps_err err = { 0 };
	enum hps_status st = HPS_OK;

	while (st == HPS_OK && !hps_inbox_quits(&u->inbox))
		st = turn(u, &err);
	if (st == HPS_NET) { /* a peer's fault: who met with it */
		char name[192];

		hps_node_name(&u->job->deployment,
			      hps_node_of_replica(&u->job->deployment, u->stage, u->replica), name,
			      sizeof name);
		hps_err_at(&err, "%s", name);
	}
	if (st != HPS_OK)
		hps_tray_failed(u->tray, &err);
	return NULL;
}

enum hps_status hps_runner_start(struct hps_runner *u, struct hps_err *err)
{
	enum hps_status st;
	char name[16];

	snprintf(name, sizeof name, "stage%u.%u", u->stage, u->replica);
	st = hps_thread_start(&u->thread, name, run, u, err);
	u->started = st == HPS_OK;
	return st;
}

/* --- from other threads --- */

enum hps_status hps_runner_order(struct hps_runner *u, const struct hps_order *o,
				 struct hps_err *err)
{
	enum hps_status st = hps_inbox_order(&u->inbox, o, err);

	hps_net_wake(u->net);
	return st;
}

enum hps_status hps_runner_feed(struct hps_runner *u, const struct hps_fed *f, struct hps_err *err)
{
	enum hps_status st = hps_inbox_feed(&u->inbox, f, err);

	hps_net_wake(u->net);
	return st;
}

void hps_runner_quit(struct hps_runner *u)
{
	if (!u->started)
		return;
	hps_inbox_quit(&u->inbox);
	hps_net_wake(u->net);
}

void hps_runner_stop(struct hps_runner *u, int linger_ms)
{
	if (u->started)
		pthread_join(u->thread, NULL);
	if (u->started)
		hps_verbose("stage %u replica %u: computed %.2f s, waited %.2f s", u->stage,
			    u->replica, u->compute_s, u->wait_s);
	u->started = false;
	hps_net_free(u->net, linger_ms);
	u->net = NULL;
}

void hps_runner_release(struct hps_runner *u)
{
	struct hps_order o;
	struct hps_fed f;

	while (u->has_inbox && hps_inbox_next_order(&u->inbox, &o))
		;
	while (u->has_inbox && hps_inbox_peek(&u->inbox, &f)) {
		hps_inbox_drop_first(&u->inbox);
		u->took(u->ctx, f.batch);
	}
	hps_replica_free(u->r);
	if (u->has_inbox)
		hps_inbox_release(&u->inbox);
	memset(u, 0, sizeof *u);
}
