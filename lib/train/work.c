/* A worker process from its start to its end: open, join, run, leave. */
#include "train/work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/out.h"
#include "base/progress.h"
#include "base/rng.h"
#include "base/sig.h"
#include "train/agent.h"
#include "train/feeder.h"
#include "train/runner.h"
#include "train/settings.h"
#include "train/tray.h"

enum {
	TICK_MS = 50,	  /* the state machines want to be called every 100 ms */
	LINGER_MS = 1000, /* for the last words */
};

struct process {
	const struct hps_work_opts *o;
	const struct hps_job *job;
	struct hps_graph graph;
	uint64_t incarnation;
	struct hps_net_ctx *ctx;
	struct hps_net *net; /* main thread's, to the coordinator */
	struct hps_tray tray;
	bool has_tray;
	struct hps_runner *runner; /* n */
	uint32_t *node;		   /* n */
	uint32_t n, n_first;	   /* replicas here, those of the first stage first */
	struct hps_feeder *feeder;
	struct hps_agent *agent;
	struct hps_outbox out;
	struct hps_err failed; /* of a callback of the agent */
	uint64_t scored;       /* rows, for the progress of what only evaluates */
	bool interrupted;
};

static void keep_failure(struct process *p, enum hps_status st, const struct hps_err *err)
{
	if (st != HPS_OK && p->failed.status == HPS_OK)
		p->failed = *err;
}

/* --- what the agent wants --- */

static void on_order(void *ctx, uint32_t i, const struct hps_order *o)
{
	struct process *p = ctx;
	struct hps_err err;

	keep_failure(p, hps_runner_order(&p->runner[i], o, &err), &err);
}

static void on_feed(void *ctx, const struct hps_feed *f)
{
	struct process *p = ctx;
	struct hps_err err;

	keep_failure(p, hps_feeder_order(p->feeder, f, &err), &err);
}

static uint64_t on_skipped(void *ctx, bool test)
{
	struct process *p = ctx;

	return hps_feeder_skipped(p->feeder, test);
}

static enum hps_status on_print(void *ctx, const struct hps_doc *line, struct hps_err *err)
{
	struct process *p = ctx;
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status st;

	if (p->o->mode == HPS_WORK_PREDICT)
		return HPS_OK; /* nothing but scores */
	st = hps_doc_to_json_line(line, &b, err);
	if (st == HPS_OK)
		st = hps_out_write(b.data, b.len, err);
	if (st == HPS_OK && fflush(stdout)) {
		hps_err_errno(err, HPS_IO, "cannot write");
		hps_err_at(err, "standard output");
		st = HPS_IO;
	}
	hps_buf_release(&b);
	return st;
}

static enum hps_status on_scores(void *ctx, const float *score, size_t n, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	char line[40];

	(void)ctx;
	for (size_t i = 0; i < n && st == HPS_OK; i++) {
		/* nine digits read back as the same float */
		int len = snprintf(line, sizeof line, "%.9g\n", (double)score[i]);

		st = hps_out_write(line, (size_t)len, err);
	}
	return st;
}

static void on_progress(void *ctx, uint32_t epoch, uint64_t samples, double loss,
			double samples_per_s)
{
	char text[96];

	(void)ctx;
	snprintf(text, sizeof text, "epoch %u, loss %.4f, %.1f k samples/s", epoch, loss,
		 isfinite(samples_per_s) ? samples_per_s / 1e3 : 0);
	hps_progress_set(samples, text);
}

/* --- what the feeder wants, in its thread --- */

static bool give(void *ctx, uint32_t i, const struct hps_fed *f)
{
	struct process *p = ctx;
	struct hps_err err;

	if (hps_runner_feed(&p->runner[i], f, &err) == HPS_OK)
		return true;
	hps_tray_failed(&p->tray, &err);
	return false;
}

static size_t waiting(void *ctx, uint32_t i)
{
	struct process *p = ctx;

	return hps_inbox_batches(&p->runner[i].inbox);
}

static void on_data_end(void *ctx, uint32_t epoch, uint64_t rows)
{
	struct process *p = ctx;

	hps_tray_data_end(&p->tray, epoch, rows);
}

static void on_feed_failed(void *ctx, const struct hps_err *err)
{
	struct process *p = ctx;

	hps_tray_failed(&p->tray, err);
}

/* A replica's thread has taken a batch from its inbox (NULL), or is done with one. */
static void on_took(void *ctx, struct hps_batch *b)
{
	struct process *p = ctx;

	if (b)
		hps_feeder_give_back(p->feeder, b);
	else
		hps_feeder_poke(p->feeder);
}

/* --- setting up --- */

static enum hps_status find_replicas(struct process *p, struct hps_err *err)
{
	const struct hps_deployment *d = &p->job->deployment;
	uint32_t n = hps_deployment_nodes(d);

	p->runner = hps_calloc(n, sizeof *p->runner, err);
	p->node = hps_calloc(n, sizeof *p->node, err);
	if (!p->runner || !p->node)
		return HPS_MEMORY;
	for (uint32_t s = 0; s < d->n_stages; s++)
		for (uint32_t k = 0; k < d->stage[s].n_replicas; k++) {
			if (strcmp(d->stage[s].replica[k].host, p->o->host) != 0)
				continue;
			p->runner[p->n].stage = s;
			p->runner[p->n].replica = k;
			p->node[p->n++] = hps_node_of_replica(d, s, k);
			p->n_first += s == 0;
		}
	return HPS_OK;
}

static enum hps_status make_runners(struct process *p, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint32_t i = 0; i < p->n && st == HPS_OK; i++) {
		struct hps_runner_opts o = {
			.job = p->job,
			.graph = &p->graph,
			.ctx = p->ctx,
			.index = i,
			.stage = p->runner[i].stage,
			.replica = p->runner[i].replica,
			.incarnation = p->incarnation,
			.seed = p->o->seed,
			.patience_s =
				HPS_COORD_PATIENCE *
				(p->o->dead_after_s > 0 ? p->o->dead_after_s : HPS_DEAD_AFTER_S),
			.operand = p->o->data,
			.n_operands = p->o->n_data,
			.tray = &p->tray,
			.took = on_took,
			.took_ctx = p,
		};

		st = hps_runner_init(&p->runner[i], &o, err);
	}
	return st;
}

static enum hps_status make_feeder(struct process *p, struct hps_err *err)
{
	struct hps_reader_opts train, test;
	struct hps_feeder_opts f = {
		.job = p->job,
		.give = give,
		.waiting = waiting,
		.data_end = on_data_end,
		.failed = on_feed_failed,
		.ctx = p,
		.n_replicas = p->n_first,
	};
	uint32_t *first;
	enum hps_status st;

	if (!p->n_first)
		return HPS_OK;
	first = hps_calloc(p->n_first, sizeof *first, err);
	if (!first)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < p->n_first; i++)
		first[i] = p->runner[i].replica;
	f.replica = first;
	f.train = hps_work_train_data(p->o, p->n_first, &train) ? &train : NULL;
	f.test = hps_work_test_data(p->o, p->n_first, &test) ? &test : NULL;
	st = hps_feeder_new(&f, &p->feeder, err);
	free(first);
	return st;
}

static enum hps_status make_agent(struct process *p, struct hps_err *err)
{
	char name[300];
	struct hps_agent_opts a = {
		.job = p->job,
		.name = name,
		.incarnation = p->incarnation,
		.node = p->node,
		.n_nodes = p->n,
		.timeout_s = p->o->timeout_s,
		.dead_after_s = p->o->dead_after_s,
		.log_every = p->o->log_every,
		.host = { .order = on_order,
			  .feed = on_feed,
			  .skipped = on_skipped,
			  .event = on_print,
			  .scores = on_scores,
			  .progress = on_progress,
			  .ctx = p },
	};
	enum hps_status st = hps_work_settings(p->o, p->n_first > 0, &a.settings, err);

	if (st != HPS_OK)
		return st;
	snprintf(name, sizeof name, "work@%s", p->o->host);
	return hps_agent_new(&a, hps_now_s(), &p->agent, err);
}

/* A replica listens, to those before it and its ring, and connects to shards, those after it and its
 * ring. */
static enum hps_status check_room(const struct process *p, struct hps_err *err)
{
	const struct hps_deployment *d = &p->job->deployment;
	uint64_t sockets = 1, connections = 1;

	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t s = p->runner[i].stage;
		uint64_t before = s ? d->stage[s - 1].n_replicas : 0;
		uint64_t after = s + 1 < d->n_stages ? d->stage[s + 1].n_replicas : 0;

		sockets += 2 + 3 * (d->n_shards + after + 1); /* each connection is watched */
		connections += 2 + d->n_shards + after + before;
	}
	return hps_net_room(sockets, connections, err);
}

static enum hps_status make_net(struct process *p, struct hps_err *err)
{
	const struct hps_deployment *d = &p->job->deployment;
	struct hps_net_opts n = {
		.job = hps_deployment_id(d),
		.incarnation = p->incarnation,
		.self = HPS_NODE_PROCESS,
		.max_frame = d->batch * 64 + HPS_CONTROL_MAX_BYTES,
		.known_nodes = hps_deployment_nodes(d),
	};
	enum hps_status st = check_room(p, err);

	if (st == HPS_OK)
		st = hps_net_ctx_new(&p->ctx, err);
	if (st == HPS_OK)
		st = hps_net_new(p->ctx, &n, &p->net, err);
	if (st == HPS_OK)
		st = hps_net_connect(p->net, HPS_NODE_COORDINATOR, d->coordinator.endpoint, err);
	if (st == HPS_OK)
		st = hps_tray_init(&p->tray, p->net, err);
	p->has_tray = st == HPS_OK;
	return st;
}

/* Everything that may fail here and now does so before the others are met. */
static enum hps_status make(struct process *p, struct hps_err *err)
{
	enum hps_status st = hps_graph_build(&p->job->model, &p->graph, err);

	if (st == HPS_OK)
		st = make_net(p, err);
	if (st == HPS_OK)
		st = make_runners(p, err);
	if (st == HPS_OK)
		st = make_feeder(p, err);
	if (st == HPS_OK)
		st = make_agent(p, err);
	for (uint32_t i = 0; i < p->n && st == HPS_OK; i++)
		st = hps_runner_start(&p->runner[i], err);
	return st;
}

/* linger_ms: how long the last words to the coordinator may take. */
static void unmake(struct process *p, int linger_ms)
{
	if (p->feeder)
		hps_feeder_quit(p->feeder);
	for (uint32_t i = 0; i < p->n; i++)
		hps_runner_quit(&p->runner[i]);
	for (uint32_t i = 0; i < p->n; i++)
		hps_runner_stop(&p->runner[i], 0);
	hps_net_free(p->net, linger_ms);
	hps_net_ctx_free(p->ctx);
	for (uint32_t i = 0; i < p->n; i++)
		hps_runner_release(&p->runner[i]);
	hps_feeder_free(p->feeder);
	if (p->has_tray)
		hps_tray_release(&p->tray);
	hps_agent_free(p->agent);
	hps_outbox_release(&p->out);
	hps_graph_release(&p->graph);
	free(p->runner);
	free(p->node);
}

/* --- running --- */

static enum hps_status take_messages(struct process *p, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (int wait_ms = TICK_MS; st == HPS_OK && !hps_agent_over(p->agent); wait_ms = 0) {
		struct hps_msg m;
		uint32_t peer;
		bool got;

		st = hps_net_recv(p->net, wait_ms, &m, &peer, &got, err);
		if (st == HPS_NET && peer == HPS_NODE_COORDINATOR)
			hps_err_at(err, "coordinator");
		if (st != HPS_OK || !got)
			return st;
		if (m.head.type != HPS_MSG_CONTROL) {
			hps_msg_release(&m);
			continue;
		}
		st = hps_agent_message(p->agent, &m, hps_now_s(), &p->out, err);
	}
	return st;
}

static enum hps_status take_note(struct process *p, const struct hps_note *n, struct hps_err *err)
{
	switch (n->kind) {
	case HPS_NOTE_EVENT:
		if (n->event.kind == HPS_REPLICA_SCORES && p->o->mode != HPS_WORK_TRAIN)
			hps_progress_set(p->scored += n->event.count, "rows");
		return hps_agent_replica(p->agent, n->from, &n->event, &p->out, err);
	case HPS_NOTE_DATA_END:
		if (p->job->deployment.sync != HPS_ASP || p->o->mode != HPS_WORK_TRAIN)
			return HPS_OK;
		return hps_agent_data_end(p->agent, n->epoch, n->rows, &p->out, err);
	case HPS_NOTE_FAILED:
		*err = n->err;
		return n->err.status;
	}
	return HPS_OK;
}

static enum hps_status take_notes(struct process *p, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	struct hps_note *n;
	bool lost;

	while (st == HPS_OK && (n = hps_tray_take(&p->tray, &lost))) {
		st = take_note(p, n, err);
		free(n);
	}
	if (st == HPS_OK && lost)
		st = hps_err_set(err, HPS_MEMORY, "out of memory");
	return st == HPS_OK ? hps_agent_flush(p->agent, &p->out, err) : st;
}

static enum hps_status turn(struct process *p, struct hps_err *err)
{
	enum hps_status st = take_messages(p, err);

	if (st == HPS_OK)
		st = take_notes(p, err);
	if (st == HPS_OK && p->failed.status != HPS_OK) {
		*err = p->failed;
		st = p->failed.status;
	}
	if (st == HPS_OK && !hps_agent_over(p->agent))
		st = hps_agent_tick(p->agent, hps_now_s(), &p->out, err);
	if (st == HPS_OK && hps_sig_caught() && !p->interrupted) {
		p->interrupted = true;
		hps_info("signal %d: stopping after this step", hps_sig_caught());
		st = hps_agent_interrupt(p->agent, &p->out, err);
	}
	return st == HPS_OK ? hps_net_send_all(p->net, &p->out, err) : st;
}

/* Tell the coordinator why this process leaves; what cannot be told any more is let go. */
static void say_why(struct process *p, const struct hps_err *why)
{
	struct hps_err ignored;

	hps_outbox_release(&p->out);
	if (hps_agent_error(p->agent, why, &p->out, &ignored) == HPS_OK)
		hps_net_send_all(p->net, &p->out, &ignored);
}

static enum hps_status run(struct process *p, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	hps_progress_start(p->o->mode == HPS_WORK_TRAIN	 ? "training"
			   : p->o->mode == HPS_WORK_EVAL ? "evaluating"
							 : "predicting",
			   0);
	while (st == HPS_OK && !hps_agent_over(p->agent))
		st = turn(p, err);
	hps_progress_end();
	return st;
}

enum hps_status hps_work_run(const struct hps_work_opts *o, struct hps_err *err)
{
	struct process p = { .o = o, .job = o->job };
	enum hps_status st = find_replicas(&p, err);
	int linger_ms;
	bool told;

	/* one process is another incarnation than the one before it, on any host */
	p.incarnation =
		hps_hash3((uint64_t)time(NULL), (uint64_t)getpid(), (uint64_t)(hps_now_s() * 1e9));
	if (st == HPS_OK && !p.n) {
		hps_verbose("the deployment puts no replica on %s: nothing to do", o->host);
		free(p.runner);
		free(p.node);
		return HPS_OK;
	}
	if (st == HPS_OK)
		st = hps_work_check_data(o, p.n_first, err);
	if (st == HPS_OK)
		st = hps_work_check_test(o, p.n_first, err);
	if (st == HPS_OK)
		st = make(&p, err);
	if (st == HPS_OK)
		st = run(&p, err);
	/* a coordinator that aborted the job may be gone: nothing is left to be told */
	told = p.agent && hps_agent_over(p.agent) && st != HPS_OK;
	linger_ms = told ? 0 : LINGER_MS;
	if (told && hps_agent_done(p.agent)) {
		struct hps_err ignored;

		hps_net_send_all(p.net, &p.out, &ignored); /* the goodbye */
		linger_ms = LINGER_MS;
	}
	if (st != HPS_OK && p.agent && err && !told)
		say_why(&p, err);
	unmake(&p, linger_ms);
	return st;
}

enum hps_status hps_work_hosts(const struct hps_deployment *d, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status st = HPS_OK;
	const char **seen = NULL;
	size_t n = 0, most = d->n_shards;

	for (uint32_t s = 0; s < d->n_stages; s++)
		most += d->stage[s].n_replicas;
	seen = hps_calloc(most, sizeof *seen, err);
	if (!seen)
		return HPS_MEMORY;
	for (uint32_t node = 1; node <= most && st == HPS_OK; node++) {
		const char *host = NULL;
		uint32_t left = node - 1;
		size_t i = 0;

		if (left < d->n_shards)
			host = d->shard[left].host;
		left -= d->n_shards;
		for (uint32_t s = 0; !host && s < d->n_stages; s++) {
			if (left < d->stage[s].n_replicas)
				host = d->stage[s].replica[left].host;
			else
				left -= d->stage[s].n_replicas;
		}
		while (i < n && strcmp(seen[i], host) != 0)
			i++;
		if (i < n)
			continue;
		seen[n++] = host;
		st = hps_buf_printf(&b, err, "%s\n", host);
	}
	if (st == HPS_OK)
		st = hps_out_write(b.data, b.len, err);
	hps_buf_release(&b);
	free(seen);
	return st;
}
