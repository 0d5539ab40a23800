/* A whole job in one process, in any order of events. See router.h. */
#include "router.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"

#include "base/mem.h"
#include "base/rng.h"
#include "coord/coord.h"
#include "tensor/backend.h"
#include "train/agent.h"
#include "train/replica.h"

enum { PEER = 1000 }; /* peer number of process 0 */

struct queue { /* FIFO of messages */
	struct hps_msg *m;
	size_t n, cap, head;
};

struct orders {
	struct hps_order *o;
	size_t n, cap, head;
};

struct told { /* an event of a replica on its way to its agent */
	struct hps_replica_event e;
	uint64_t *row;
	float *score, *label;
};

struct replica {
	struct hps_replica *r;
	struct router *router;
	uint32_t stage, node, process, index; /* index: among those of its process */
	struct orders orders;
	struct told *told; /* n_told, from told_head */
	size_t n_told, cap_told, told_head;
	bool first;
};

struct process {
	struct router *router;
	struct hps_agent *agent;
	char name[80];
	const char *host;
	uint32_t *node, n_nodes;
	uint64_t feed_limit; /* predict */
	uint32_t told_end;   /* asp: epoch + 1 whose end was told */
	bool over, interrupted;
};

struct router {
	const struct router_opts *o;
	struct router_result *res;
	const struct hps_deployment *d;
	struct hps_coord *coord;
	struct replica *replica;
	uint32_t n_replicas, n_shards, n_nodes;
	struct process *process;
	uint32_t n_processes;
	struct queue *link; /* n_ends * n_ends, [from * n_ends + to]; ends: nodes, then processes */
	uint32_t n_ends;
	struct hps_rng rng;
	double now_s;
	uint64_t events;
	bool signalled, failed;
	bool moved; /* something but a heartbeat happened since the last tick */
	uint64_t life;
};

/* Every job is another incarnation of its processes: servers that go on know the one before. */
static uint64_t lives;

/* --- growing arrays --- */

static void *grow(void *p, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return p;
	*cap = *cap ? 2 * *cap : 8;
	p = realloc(p, *cap * size);
	assert_non_null(p);
	return p;
}

static void fail_job(struct router *t, enum hps_status st, const struct hps_err *err)
{
	if (t->failed)
		return;
	t->failed = true;
	t->res->status = st;
	t->res->err = *err;
}

/* --- messages --- */

static void *copy(const void *p, size_t bytes)
{
	void *q = malloc(bytes + 1);

	assert_non_null(q);
	if (bytes)
		memcpy(q, p, bytes);
	return q;
}

static void release_copy(void *data, void *hint)
{
	(void)hint;
	free(data);
}

/* As hps_net_send: lent frames are copied, and the sender is filled in. */
static void own(struct hps_msg *m)
{
	for (uint32_t i = 0; i < m->n_frames; i++) {
		struct hps_frame *f = &m->frame[i];

		if (f->release || !f->data)
			continue;
		f->data = copy(f->data, f->len);
		f->release = release_copy;
	}
}

static void send_all(struct router *t, uint32_t from, struct hps_outbox *out)
{
	for (size_t i = 0; i < out->n; i++) {
		uint32_t dst = out->item[i].dst, to = dst >= PEER ? t->n_nodes + dst - PEER : dst;
		struct queue *q = &t->link[from * t->n_ends + to];

		assert_true(to < t->n_ends);
		q->m = grow(q->m, q->n, &q->cap, sizeof *q->m);
		own(&out->item[i].msg);
		out->item[i].msg.head.src = from < t->n_nodes ? from : HPS_NODE_PROCESS;
		q->m[q->n++] = out->item[i].msg;
		out->item[i].msg = (struct hps_msg){ 0 };
	}
	out->n = 0;
	hps_outbox_release(out);
}

/* --- what the agents want --- */

static void on_order(void *ctx, uint32_t i, const struct hps_order *o)
{
	struct process *p = ctx;

	for (uint32_t k = 0; k < p->router->n_replicas; k++) {
		struct replica *r = &p->router->replica[k];
		struct orders *q = &r->orders;

		if (r->node != p->node[i])
			continue;
		q->o = grow(q->o, q->n, &q->cap, sizeof *q->o);
		q->o[q->n++] = *o;
	}
}

static void on_feed(void *ctx, const struct hps_feed *f)
{
	struct process *p = ctx;

	if (f->kind == HPS_FEED_EVAL || f->kind == HPS_FEED_WINDOW)
		p->feed_limit = f->limit;
}

static uint64_t holes(const struct hps_batch *b)
{
	return b ? b->end_row - b->rows : 0;
}

static uint64_t on_skipped(void *ctx, bool test)
{
	struct process *p = ctx;
	const struct router_opts *o = p->router->o;

	/* every line is parsed by one process; the first tells of all */
	return p == p->router->process ? holes(test ? o->test : o->train) : 0;
}

static enum hps_status on_event(void *ctx, const struct hps_doc *line, struct hps_err *err)
{
	struct router_result *r = ((struct process *)ctx)->router->res;
	struct hps_at root = hps_at_root(line, "event"), at = hps_at_member(&root, "event");
	size_t cap = r->n_events;
	const char *name;

	(void)err;
	r->event = realloc(r->event, (cap + 1) * sizeof *r->event);
	assert_non_null(r->event);
	r->event[r->n_events++] = hps_doc_copy(line);
	assert_int_equal(hps_at_string(&at, &name, NULL), HPS_OK);
	if (strcmp(name, "step"))
		return HPS_OK;
	r->loss = realloc(r->loss, (r->n_steps + 1) * sizeof *r->loss);
	r->rows = realloc(r->rows, (r->n_steps + 1) * sizeof *r->rows);
	assert_true(r->loss && r->rows);
	r->loss[r->n_steps] = router_number(line, "loss");
	r->rows[r->n_steps++] = (uint64_t)router_number(line, "rows");
	return HPS_OK;
}

static enum hps_status on_scores(void *ctx, const float *score, size_t n, struct hps_err *err)
{
	struct router_result *r = ((struct process *)ctx)->router->res;

	(void)err;
	r->score = realloc(r->score, (r->n_scores + n + 1) * sizeof *score);
	assert_non_null(r->score);
	if (n)
		memcpy(r->score + r->n_scores, score, n * sizeof *score);
	r->n_scores += n;
	return HPS_OK;
}

/* --- what the replicas tell --- */

static void on_told(void *ctx, const struct hps_replica_event *e)
{
	struct replica *r = ctx;
	struct told *t;

	r->told = grow(r->told, r->n_told, &r->cap_told, sizeof *r->told);
	t = &r->told[r->n_told++];
	*t = (struct told){ .e = *e };
	if (e->kind != HPS_REPLICA_SCORES)
		return;
	t->row = copy(e->row, e->count * sizeof *e->row);
	t->score = copy(e->score, e->count * sizeof *e->score);
	t->label = copy(e->label, e->count * sizeof *e->label);
	t->e.row = t->row;
	t->e.score = t->score;
	t->e.label = t->label;
}

static void told_release(struct told *t)
{
	free(t->row);
	free(t->score);
	free(t->label);
	t->row = NULL;
	t->score = t->label = NULL;
}

static void on_give_back(void *ctx, struct hps_batch *b)
{
	(void)ctx;
	hps_batch_release(b);
	free(b);
}

/* --- setting up --- */

static struct hps_doc *settings(const struct router_opts *o)
{
	struct hps_doc *d = hps_doc_object();
	uint32_t epochs = o->epochs ? o->epochs : o->job->deployment.epochs;

	assert_non_null(d);
	assert_int_equal(hps_doc_put(d, "mode", hps_doc_string(o->mode ? o->mode : "train")), 0);
	assert_int_equal(hps_doc_put(d, "epochs", hps_doc_int(epochs)), 0);
	assert_int_equal(hps_doc_put(d, "test", hps_doc_bool(o->test != NULL)), 0);
	return d;
}

static struct process *process_of(struct router *t, const char *host)
{
	for (uint32_t i = 0; i < t->n_processes; i++)
		if (!strcmp(t->process[i].host, host))
			return &t->process[i];
	t->process[t->n_processes].host = host;
	return &t->process[t->n_processes++];
}

static void make_replica(struct router *t, uint32_t stage, uint32_t replica)
{
	struct replica *r = &t->replica[t->n_replicas++];
	struct process *p = process_of(t, t->d->stage[stage].replica[replica].host);
	struct hps_replica_opts o = {
		.job = t->o->job,
		.graph = t->o->graph,
		.backend = hps_backend_openblas(),
		.stage = stage,
		.replica = replica,
		.incarnation = t->life,
		.seed = t->o->seed ? t->o->seed : t->d->seed,
		.event = on_told,
		.give_back = on_give_back,
		.ctx = r,
	};
	struct hps_err err = { 0 };

	r->router = t;
	r->stage = stage;
	r->node = hps_node_of_replica(t->d, stage, replica);
	r->process = (uint32_t)(p - t->process);
	r->index = p->n_nodes;
	r->first = stage == 0;
	p->node = realloc(p->node, (p->n_nodes + 1) * sizeof *p->node);
	assert_non_null(p->node);
	p->node[p->n_nodes++] = r->node;
	if (hps_replica_new(&o, &r->r, &err) != HPS_OK)
		fail_job(t, err.status, &err);
}

static void make_agent(struct router *t, struct process *p)
{
	struct hps_agent_opts o = {
		.job = t->o->job,
		.name = p->name,
		.incarnation = t->life,
		.node = p->node,
		.n_nodes = p->n_nodes,
		.settings = settings(t->o),
		.timeout_s = 60,
		.log_every = 1,
		.host = { .order = on_order,
			  .feed = on_feed,
			  .skipped = on_skipped,
			  .event = on_event,
			  .scores = on_scores,
			  .ctx = p },
	};

	p->router = t;
	snprintf(p->name, sizeof p->name, "work@%s", p->host);
	assert_int_equal(hps_agent_new(&o, t->now_s, &p->agent, NULL), HPS_OK);
}

static void make_servers(struct router *t)
{
	struct hps_coord_opts c = {
		.job = t->o->job,
		.timeout_s = 60,
		.first_step = t->o->first_step,
		.loaded = t->o->shard != NULL,
	};

	assert_int_equal(hps_coord_new(&c, t->now_s, &t->coord, NULL), HPS_OK);
	t->res->n_shards = t->n_shards;
	t->res->shard = t->o->shard;
	if (t->o->shard)
		return;
	t->res->shard = calloc(t->n_shards, sizeof *t->res->shard);
	assert_non_null(t->res->shard);
	for (uint32_t i = 0; i < t->n_shards; i++)
		assert_int_equal(hps_shard_new(t->o->job, t->o->graph, i, &t->res->shard[i], NULL),
				 HPS_OK);
}

static void make(struct router *t)
{
	t->n_shards = t->d->n_shards;
	t->n_nodes = hps_deployment_nodes(t->d);
	t->replica = calloc(t->n_nodes, sizeof *t->replica);
	t->process = calloc(t->n_nodes, sizeof *t->process);
	assert_true(t->replica && t->process);
	for (uint32_t s = 0; s < t->d->n_stages; s++)
		for (uint32_t k = 0; k < t->d->stage[s].n_replicas; k++)
			make_replica(t, s, k);
	make_servers(t);
	for (uint32_t i = 0; i < t->n_processes; i++)
		make_agent(t, &t->process[i]);
	t->n_ends = t->n_nodes + t->n_processes;
	t->link = calloc((size_t)t->n_ends * t->n_ends, sizeof *t->link);
	assert_non_null(t->link);
}

static void unmake(struct router *t)
{
	for (uint32_t i = 0; i < t->n_replicas; i++) {
		struct replica *r = &t->replica[i];

		hps_replica_free(r->r);
		for (size_t k = r->told_head; k < r->n_told; k++)
			told_release(&r->told[k]);
		free(r->told);
		free(r->orders.o);
	}
	for (uint32_t i = 0; i < t->n_processes; i++) {
		hps_agent_free(t->process[i].agent);
		free(t->process[i].node);
	}
	for (size_t i = 0; i < (size_t)t->n_ends * t->n_ends; i++) {
		for (size_t k = t->link[i].head; k < t->link[i].n; k++)
			hps_msg_release(&t->link[i].m[k]);
		free(t->link[i].m);
	}
	hps_coord_free(t->coord);
	free(t->link);
	free(t->replica);
	free(t->process);
}

/* --- one thing at a time --- */

static void after_coord(struct router *t)
{
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	struct hps_coord_table *table;
	uint32_t n = t->o->job->model.n_tables;

	if (hps_coord_want(t->coord) != HPS_COORD_SAVE)
		return;
	table = calloc(n ? n : 1, sizeof *table);
	assert_non_null(table);
	for (uint32_t s = 0; s < t->n_shards; s++)
		for (uint32_t i = 0; i < n; i++) {
			struct hps_table_stats x;

			hps_table_stats(hps_shard_table(t->res->shard[s], i), &x);
			table[i].rows += x.rows;
			table[i].bytes += x.bytes;
			table[i].refused += x.refused;
		}
	if (hps_coord_saved(t->coord, NULL, table, t->now_s, &out, &err) != HPS_OK)
		fail_job(t, err.status, &err);
	free(table);
	send_all(t, HPS_NODE_COORDINATOR, &out);
}

/* Deliver a message to whom it is for. */
static void deliver(struct router *t, uint32_t from, uint32_t to, struct hps_msg *m)
{
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	enum hps_status st;

	t->moved |= m->head.type != HPS_MSG_CONTROL || m->head.arg != HPS_CTL_HEARTBEAT;
	if (t->o->tap)
		t->o->tap(t->o->tap_ctx, to < t->n_nodes && to ? to : HPS_NODE_PROCESS, m);
	if (to == HPS_NODE_COORDINATOR) {
		st = hps_coord_message(t->coord, PEER + from - t->n_nodes, m, t->now_s, &out, &err);
		send_all(t, to, &out);
		after_coord(t);
	} else if (to <= t->n_shards) {
		st = hps_shard_handle(t->res->shard[to - 1], m, &out, &err);
		send_all(t, to, &out);
	} else if (to < t->n_nodes) {
		st = hps_replica_message(t->replica[to - t->n_shards - 1].r, m, &out, &err);
		send_all(t, to, &out);
	} else {
		struct process *p = &t->process[to - t->n_nodes];

		st = hps_agent_message(p->agent, m, t->now_s, &out, &err);
		p->over = hps_agent_over(p->agent);
		send_all(t, to, &out);
	}
	if (st != HPS_OK)
		fail_job(t, st, &err);
}

static void agent_result(struct router *t, struct process *p, struct hps_outbox *out,
			 enum hps_status st, const struct hps_err *err)
{
	send_all(t, t->n_nodes + (uint32_t)(p - t->process), out);
	if (st != HPS_OK)
		fail_job(t, st, err);
}

/* An error of a replica ends the job through its agent and the coordinator, as in hps-work. */
static void replica_result(struct router *t, struct replica *r, struct hps_outbox *out,
			   enum hps_status st, const struct hps_err *err)
{
	struct process *p = &t->process[r->process];
	struct hps_outbox told = { 0 };

	send_all(t, r->node, out);
	if (st == HPS_OK)
		return;
	fail_job(t, st, err);
	if (hps_agent_error(p->agent, err, &told, NULL) == HPS_OK)
		send_all(t, t->n_nodes + r->process, &told);
}

/* The rows that a replica wants, cut from the whole set. */
static struct hps_batch *cut(const struct hps_batch *all, uint64_t begin, uint64_t end)
{
	struct hps_batch *b = calloc(1, sizeof *b);
	uint32_t first = 0, last;

	assert_non_null(b);
	while (first < all->rows && all->row[first] < begin)
		first++;
	for (last = first; last < all->rows && all->row[last] < end; last++)
		;
	/* the reader's memory, not the job's: tried again when an allocation is made to fail */
	if (hps_batch_init(b, last - first, all->slots, all->dense, NULL) != HPS_OK)
		assert_int_equal(hps_batch_init(b, last - first, all->slots, all->dense, NULL),
				 HPS_OK);
	b->rows = last - first;
	b->first_row = begin;
	b->end_row = end;
	if (b->rows) {
		b->file = b->last_file = "router.tsv";
		b->first_line = begin + 1;
		b->last_line = end;
	}
	memcpy(b->row, all->row + first, b->rows * sizeof *b->row);
	memcpy(b->label, all->label + first, b->rows * sizeof *b->label);
	memcpy(b->feature, all->feature + (size_t)first * all->dense,
	       (size_t)b->rows * all->dense * sizeof *b->feature);
	memcpy(b->key, all->key + (size_t)first * all->slots,
	       (size_t)b->rows * all->slots * sizeof *b->key);
	return b;
}

static bool feed(struct router *t, struct replica *r)
{
	struct process *p = &t->process[r->process];
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	const struct hps_batch *all;
	uint64_t data_end;
	enum hps_status st;
	struct hps_want w;

	if (!r->r || !hps_replica_want(r->r, &w))
		return false;
	if (w.eval && w.step >= p->feed_limit)
		return false;
	all = w.eval ? t->o->test : t->o->train;
	assert_non_null(all);
	data_end = w.end >= all->end_row ? all->end_row : UINT64_MAX;
	if (data_end != UINT64_MAX && !w.eval && t->d->sync == HPS_ASP &&
	    p->told_end != w.epoch + 1) {
		p->told_end = w.epoch + 1;
		st = hps_agent_data_end(p->agent, w.epoch, all->end_row, &out, &err);
		agent_result(t, p, &out, st, &err);
	}
	st = hps_replica_batch(r->r, cut(all, w.begin, w.end), data_end, &out, &err);
	replica_result(t, r, &out, st, &err);
	return true;
}

static bool work(struct router *t, struct replica *r)
{
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	enum hps_status st;
	bool did;

	st = hps_replica_work(r->r, &out, &did, &err);
	replica_result(t, r, &out, st, &err);
	return did;
}

static bool give_order(struct router *t, struct replica *r)
{
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	enum hps_status st;

	if (r->orders.head == r->orders.n)
		return false;
	st = hps_replica_order(r->r, &r->orders.o[r->orders.head++], &out, &err);
	replica_result(t, r, &out, st, &err);
	return true;
}

static bool tell(struct router *t, struct replica *r)
{
	struct process *p = &t->process[r->process];
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	enum hps_status st;

	if (r->told_head == r->n_told)
		return false;
	st = hps_agent_replica(p->agent, r->index, &r->told[r->told_head].e, &out, &err);
	if (st == HPS_OK && hps_rng_below(&t->rng, 2))
		st = hps_agent_flush(p->agent, &out, &err);
	told_release(&r->told[r->told_head++]);
	agent_result(t, p, &out, st, &err);
	t->events++;
	return true;
}

static void flush(struct router *t, struct process *p)
{
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };

	agent_result(t, p, &out, hps_agent_flush(p->agent, &out, &err), &err);
}

static void tick(struct router *t)
{
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	enum hps_status st = hps_coord_tick(t->coord, t->now_s, &out, &err);

	send_all(t, HPS_NODE_COORDINATOR, &out);
	after_coord(t);
	if (st != HPS_OK)
		fail_job(t, st, &err);
	for (uint32_t i = 0; i < t->n_processes; i++) {
		struct process *p = &t->process[i];

		flush(t, p);
		st = hps_agent_tick(p->agent, t->now_s, &out, &err);
		agent_result(t, p, &out, st, &err);
	}
}

static bool deliver_one(struct router *t)
{
	size_t n = (size_t)t->n_ends * t->n_ends, at = hps_rng_below(&t->rng, n);

	for (size_t i = 0; i < n; i++, at = at + 1 == n ? 0 : at + 1) {
		struct queue *q = &t->link[at];
		struct hps_msg m;

		if (q->head == q->n)
			continue;
		m = q->m[q->head++];
		if (q->head == q->n)
			q->head = q->n = 0;
		deliver(t, (uint32_t)(at / t->n_ends), (uint32_t)(at % t->n_ends), &m);
		return true;
	}
	return false;
}

/* One of the things that can happen now; false if there is none. */
static bool act(struct router *t)
{
	uint32_t start = (uint32_t)hps_rng_below(&t->rng, 5);

	for (uint32_t i = 0; i < 5; i++) {
		uint32_t what = (start + i) % 5;
		uint32_t at = (uint32_t)hps_rng_below(&t->rng, t->n_replicas);

		if (what == 0 && deliver_one(t))
			return true;
		for (uint32_t k = 0; what && k < t->n_replicas; k++) {
			struct replica *r = &t->replica[(at + k) % t->n_replicas];

			if ((what == 1 && work(t, r)) || (what == 2 && feed(t, r)) ||
			    (what == 3 && give_order(t, r)) || (what == 4 && tell(t, r))) {
				t->moved = true;
				return true;
			}
			if (t->failed)
				return true;
		}
	}
	return false;
}

static void stuck(struct router *t)
{
	char text[200];

	for (uint32_t i = 0; i < t->n_replicas; i++) {
		hps_replica_waits(t->replica[i].r, text, sizeof text);
		print_error("stage %u, node %u: %s\n", t->replica[i].stage, t->replica[i].node,
			    text);
	}
	fail_msg("the job is stuck");
}

static void interrupt(struct router *t)
{
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	enum hps_status st;

	if (t->signalled || !t->o->interrupt_at || t->events < t->o->interrupt_at)
		return;
	t->signalled = true;
	if (t->o->interrupt_serve) {
		st = hps_coord_interrupt(t->coord, t->now_s, &out, &err);
		send_all(t, HPS_NODE_COORDINATOR, &out);
		assert_int_equal(st, HPS_OK);
		return;
	}
	st = hps_agent_interrupt(t->process[0].agent, &out, &err);
	agent_result(t, &t->process[0], &out, st, &err);
}

static bool all_over(const struct router *t)
{
	for (uint32_t i = 0; i < t->n_processes; i++)
		if (!t->process[i].over)
			return false;
	return hps_coord_want(t->coord) == HPS_COORD_OVER;
}

static void loop(struct router *t)
{
	uint32_t quiet = 0;

	while (!t->failed && !all_over(t)) {
		t->res->n_actions++;
		interrupt(t);
		if (act(t)) {
			t->now_s += 1e-6;
			continue;
		}
		/* nothing but time can help */
		quiet = t->moved ? 0 : quiet + 1;
		t->moved = false;
		if (quiet > 40)
			stuck(t);
		t->now_s += 0.1;
		tick(t);
	}
}

void router_run(const struct router_opts *o, struct router_result *r)
{
	struct router t = {
		.o = o, .res = r, .d = &o->job->deployment, .now_s = 1, .life = ++lives
	};
	struct hps_coord_stats stats;
	struct hps_err err;

	memset(r, 0, sizeof *r);
	hps_rng_init(&t.rng, o->order_seed, 77);
	make(&t);
	hps_mem_fail_at(o->fail_at);
	loop(&t);
	hps_mem_fail_at(0);
	hps_coord_stats(t.coord, &stats);
	r->next_step = stats.next_step;
	if (!t.failed && hps_coord_outcome(t.coord, &err) != HPS_OK)
		fail_job(&t, err.status, &err);
	unmake(&t);
}

/* --- looking at it --- */

void router_release(struct router_result *r)
{
	for (uint32_t i = 0; r->shard && i < r->n_shards; i++)
		hps_shard_free(r->shard[i]);
	for (size_t i = 0; i < r->n_events; i++)
		hps_doc_free(r->event[i]);
	free(r->shard);
	free(r->event);
	free(r->loss);
	free(r->rows);
	free(r->score);
	memset(r, 0, sizeof *r);
}

float *router_dense(const struct router_result *r, const struct hps_graph *g)
{
	float *x = calloc(g->n_floats ? g->n_floats : 1, sizeof *x);

	assert_non_null(x);
	for (uint32_t s = 0; s < r->n_shards; s++)
		for (uint32_t i = 0; i < hps_shard_n_dense(r->shard[s]); i++) {
			struct hps_shard_dense d = hps_shard_dense(r->shard[s], i);

			memcpy(x + d.first, d.param, d.n * sizeof *x);
		}
	return x;
}

struct finding {
	uint64_t key;
	uint32_t dim;
	float *out;
	bool found;
};

static enum hps_status visit(void *ctx, uint64_t key, const float *row, uint32_t freq,
			     uint32_t last, struct hps_err *err)
{
	struct finding *f = ctx;

	(void)freq;
	(void)last;
	(void)err;
	if (key == f->key) {
		memcpy(f->out, row, f->dim * sizeof *row);
		f->found = true;
	}
	return HPS_OK;
}

bool router_row(const struct router_result *r, const struct hps_graph *g, uint32_t table,
		uint64_t key, float *out)
{
	struct finding f = { .key = key, .dim = g->model->table[table].dim, .out = out };
	uint32_t s = hps_shard_of_key(table, key, r->n_shards);

	assert_int_equal(hps_table_each(hps_shard_table(r->shard[s], table), visit, &f, NULL),
			 HPS_OK);
	return f.found;
}

uint64_t router_rows(const struct router_result *r, uint32_t table)
{
	uint64_t n = 0;

	for (uint32_t s = 0; s < r->n_shards; s++) {
		struct hps_table_stats x;

		hps_table_stats(hps_shard_table(r->shard[s], table), &x);
		n += x.rows;
	}
	return n;
}

const struct hps_doc *router_event(const struct router_result *r, const char *name)
{
	for (size_t i = r->n_events; i-- > 0;) {
		struct hps_at root = hps_at_root(r->event[i], "event");
		struct hps_at at = hps_at_member(&root, "event");
		const char *s;

		if (hps_at_string(&at, &s, NULL) == HPS_OK && !strcmp(s, name))
			return r->event[i];
	}
	return NULL;
}

double router_number(const struct hps_doc *event, const char *key)
{
	struct hps_at root = hps_at_root(event, "event"), at = hps_at_member(&root, key);
	double x;

	return hps_at_double(&at, -HUGE_VAL, HUGE_VAL, &x, NULL) == HPS_OK ? x : NAN;
}
