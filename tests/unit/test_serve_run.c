/* Server processes over real sockets, with a worker made here: save and load, several runs,
 * several hosts, signals, silence, full disks, nonsense. */
#include "cm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/sig.h"
#include "child.h"
#include "coord/member.h"
#include "net/net.h"
#include "ps/client.h"
#include "ps_case.h"
#include "serve/serve.h"
#include "serve/state.h"

enum { PATIENCE_S = 60, KEYS = 40 };

static char root[256], state_dir[300];

static int make_root(void **state)
{
	scratch_make(root, sizeof(root));
	snprintf(state_dir, sizeof(state_dir), "%s/state", root);
	return 0;
}

static int drop_root(void **state)
{
	scratch_remove(root);
	return 0;
}

/* --- the server's process --- */

struct server {
	struct ps_case *c;
	struct hps_serve_opts o;
	rlim_t file_limit; /* 0: none */
	pid_t pid;
	char log[300];
};

static void server_start(struct server *s, const char *name)
{
	snprintf(s->log, sizeof(s->log), "%s/%s.log", root, name);
	s->o.job = &s->c->job;
	fflush(stdout);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0) {
		struct rlimit lim = { s->file_limit, s->file_limit };
		int fd = open(s->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		struct hps_err err = { 0 };
		enum hps_status st;

		dup2(fd, STDERR_FILENO);
		alarm(PATIENCE_S); /* whatever happens, nothing stays behind */
		signal(SIGXFSZ, SIG_IGN);
		if (s->file_limit)
			setrlimit(RLIMIT_FSIZE, &lim);
		hps_log_init("hps-serve", HPS_LOG_NORMAL);
		st = hps_sig_install(&err);
		if (st == HPS_OK)
			st = hps_serve_run(&s->o, &err);
		if (st != HPS_OK)
			hps_err_print("hps-serve", &err);
		exit((int)st);
	}
}

static int server_end(struct server *s)
{
	int status;

	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void assert_said(const struct server *s, const char *what)
{
	struct hps_buf b = HPS_BUF_INIT;

	assert_int_equal(hps_file_read(s->log, 0, &b, NULL), HPS_OK);
	if (!b.data || !strstr(b.data, what))
		fail_msg("expected \"%s\" in: %s", what, b.data ? b.data : "");
	hps_buf_release(&b);
}

static void assert_not_said(const struct server *s, const char *what)
{
	struct hps_buf b = HPS_BUF_INIT;

	assert_int_equal(hps_file_read(s->log, 0, &b, NULL), HPS_OK);
	if (b.data && strstr(b.data, what))
		fail_msg("unexpected \"%s\" in: %s", what, b.data);
	hps_buf_release(&b);
}

/* Its log grows: look until it says so. */
static void await_said(const struct server *s, const char *what)
{
	for (double end = hps_now_s() + 20; hps_now_s() < end; usleep(1000)) {
		struct hps_buf b = HPS_BUF_INIT;
		bool there = hps_file_read(s->log, 0, &b, NULL) == HPS_OK && b.data &&
			     strstr(b.data, what);

		hps_buf_release(&b);
		if (there)
			return;
	}
	fail_msg("\"%s\" was never said", what);
}

/* --- a worker of one replica of one stage --- */

struct worker {
	struct ps_case *c;
	struct hps_net_ctx *ctx;
	struct hps_net *ps, *ctl;
	struct hps_ps_client *client;
	struct hps_member *member;
	struct hps_outbox out;
	const char *mode;
	uint64_t steps;	  /* of the epoch */
	uint64_t kill_at; /* when this many steps are done, SIGTERM goes to kill_pid */
	pid_t kill_pid;
	/* what happened */
	uint64_t first_step, done_steps;
	bool over, held;
	uint64_t stop; /* UINT64_MAX: not told to */
	struct hps_doc *done;
	struct hps_err err;
	enum hps_status st;
	float dense[1000];
	float rows[KEYS * 4];
};

static const struct hps_deployment *deployment(const struct worker *w)
{
	return &w->c->job.deployment;
}

static uint32_t replica_node(const struct worker *w)
{
	return hps_node_of_replica(deployment(w), 0, 0);
}

static void worker_init(struct worker *w, struct ps_case *c, uint64_t incarnation)
{
	uint32_t node = hps_node_of_replica(&c->job.deployment, 0, 0);
	struct hps_net_opts o = { .job = hps_deployment_id(&c->job.deployment),
				  .incarnation = incarnation,
				  .self = node,
				  .max_frame = 1 << 20,
				  .known_nodes = hps_deployment_nodes(&c->job.deployment) };

	memset(w, 0, sizeof(*w));
	w->c = c;
	w->mode = "train";
	w->steps = 3;
	w->stop = UINT64_MAX;
	assert_int_equal(hps_net_ctx_new(&w->ctx, NULL), HPS_OK);
	assert_int_equal(hps_net_new(w->ctx, &o, &w->ps, NULL), HPS_OK);
	for (uint32_t i = 0; i < c->job.deployment.n_shards; i++)
		assert_int_equal(
			hps_net_connect(w->ps, 1 + i, c->job.deployment.shard[i].endpoint, NULL),
			HPS_OK);
	o.self = HPS_NODE_PROCESS;
	assert_int_equal(hps_net_new(w->ctx, &o, &w->ctl, NULL), HPS_OK);
	assert_int_equal(hps_net_connect(w->ctl, HPS_NODE_COORDINATOR,
					 c->job.deployment.coordinator.endpoint, NULL),
			 HPS_OK);
	assert_int_equal(hps_ps_client_new(&c->job, &c->graph, 0, 0, incarnation, &w->client, NULL),
			 HPS_OK);
}

static void worker_join(struct worker *w, uint64_t incarnation)
{
	struct hps_doc *settings = hps_doc_object();
	uint32_t node = replica_node(w);
	struct hps_member_opts o = { .job = &w->c->job,
				     .name = "work@here",
				     .incarnation = incarnation,
				     .node = &node,
				     .n_nodes = 1,
				     .settings = settings,
				     .timeout_s = PATIENCE_S,
				     .dead_after_s = 20 };

	hps_doc_put(settings, "mode", hps_doc_string(w->mode));
	hps_doc_put(settings, "epochs", hps_doc_int(1));
	hps_doc_put(settings, "test", hps_doc_bool(false));
	assert_int_equal(hps_member_new(&o, hps_now_s(), &w->member, NULL), HPS_OK);
}

static void worker_release(struct worker *w)
{
	hps_outbox_release(&w->out);
	hps_net_free(w->ps, 1000);
	hps_net_free(w->ctl, 1000);
	hps_net_ctx_free(w->ctx);
	hps_ps_client_free(w->client);
	hps_member_free(w->member);
	hps_doc_free(w->done);
}

static uint64_t member_u64(const struct hps_doc *d, const char *key)
{
	struct hps_at body = hps_at_root(d, "body"), at = hps_at_member(&body, key);
	uint64_t v;

	assert_int_equal(hps_at_u64(&at, 0, UINT64_MAX, &v, NULL), HPS_OK);
	return v;
}

static struct hps_doc *numbers(const char *a, uint64_t x, const char *b, uint64_t y, const char *c,
			       uint64_t z)
{
	struct hps_doc *d = hps_doc_object();

	assert_int_equal(hps_doc_put(d, a, hps_doc_u64(x)), 0);
	if (b)
		assert_int_equal(hps_doc_put(d, b, hps_doc_u64(y)), 0);
	if (c)
		assert_int_equal(hps_doc_put(d, c, hps_doc_u64(z)), 0);
	return d;
}

static void say(struct worker *w, enum hps_control kind, struct hps_doc *body)
{
	assert_int_equal(hps_member_say(w->member, kind, body, &w->out, NULL), HPS_OK);
	assert_int_equal(hps_net_send_all(w->ctl, &w->out, NULL), HPS_OK);
}

static void listen_to(struct worker *w, int ms);

/* The shards' answers until an event of this kind, or until the run is over. */
static void await(struct worker *w, enum hps_ps_event_kind kind)
{
	struct hps_ps_event ev = { HPS_PS_NONE };
	double end = hps_now_s() + 20;

	assert_int_equal(hps_net_send_all(w->ps, &w->out, NULL), HPS_OK);
	while (ev.kind != kind && !w->over) {
		struct hps_msg m;
		uint32_t peer;
		bool got;

		assert_int_equal(hps_net_recv(w->ps, 50, &m, &peer, &got, NULL), HPS_OK);
		if (got)
			assert_int_equal(hps_ps_message(w->client, &m, &ev, NULL), HPS_OK);
		assert_true(hps_now_s() < end);
		listen_to(w, 0);
	}
}

static void pull_all(struct worker *w, uint64_t step, uint32_t flags)
{
	struct hps_ps_rows rows = { .table = 0, .dim = 4, .n = KEYS };
	uint64_t key[KEYS];

	for (uint64_t k = 0; k < KEYS; k++)
		key[k] = hps_mix64(k);
	rows.key = key;
	rows.value = w->rows;
	assert_int_equal(hps_ps_pull(w->client, 0, step, 0, flags, &rows, 1, &w->out, NULL),
			 HPS_OK);
	await(w, HPS_PS_ROWS);
	if (w->over)
		return;
	assert_int_equal(hps_ps_dense_pull(w->client, step, 0, w->dense, NULL, &w->out, NULL),
			 HPS_OK);
	await(w, HPS_PS_DENSE);
}

static void say_loss(struct worker *w, uint64_t step)
{
	static const char *const list[] = { "step", "mb", "loss", "count" };
	struct hps_doc *d = hps_doc_object();

	for (int k = 0; k < 4; k++) {
		struct hps_doc *a = hps_doc_array();

		hps_doc_add(a, k == 2 ? hps_doc_double(6)
				      : hps_doc_u64(k == 0   ? step
						    : k == 3 ? 12
							     : 0));
		assert_int_equal(hps_doc_put(d, list[k], a), 0);
	}
	assert_int_equal(hps_doc_put(d, "epoch", hps_doc_int(0)), 0);
	say(w, HPS_CTL_STEPS, d);
}

static void train_step(struct worker *w, uint64_t step)
{
	struct hps_ps_rows rows = { .table = 0, .dim = 4, .n = KEYS };
	float grad[KEYS * 4], dense[1000];
	uint64_t key[KEYS];

	pull_all(w, step, 0);
	if (w->over)
		return;
	for (uint64_t k = 0; k < KEYS; k++)
		key[k] = hps_mix64(k);
	for (int i = 0; i < KEYS * 4; i++)
		grad[i] = hps_unit_float(hps_hash3(step, (uint64_t)i, 1));
	for (int i = 0; i < 1000; i++)
		dense[i] = hps_unit_float(hps_hash3(step, (uint64_t)i, 2));
	rows.key = key;
	rows.grad = grad;
	assert_int_equal(hps_ps_push(w->client, 0, step, 0, 12, &rows, 1, &w->out, NULL), HPS_OK);
	assert_int_equal(hps_ps_dense_push(w->client, step, 12, dense, &w->out, NULL), HPS_OK);
	assert_int_equal(hps_net_send_all(w->ps, &w->out, NULL), HPS_OK);
	say_loss(w, step);
	w->done_steps++;
}

static void take_notice(struct worker *w, struct hps_notice *n);

/* What the coordinator says, for at most ms. */
static void listen_to(struct worker *w, int ms)
{
	struct hps_notice n;
	struct hps_msg m;
	uint32_t peer;
	bool got;

	assert_int_equal(hps_net_recv(w->ctl, ms, &m, &peer, &got, NULL), HPS_OK);
	if (got) {
		w->st = hps_member_message(w->member, &m, hps_now_s(), &n, &w->err);
		if (w->st == HPS_OK) {
			take_notice(w, &n);
			hps_notice_release(&n);
		}
	}
	if (w->st == HPS_OK)
		w->st = hps_member_tick(w->member, hps_now_s(), &w->out, &w->err);
	assert_int_equal(hps_net_send_all(w->ctl, &w->out, NULL), HPS_OK);
	w->over |= w->st != HPS_OK;
}

static void train(struct worker *w, uint64_t first)
{
	uint64_t step = first;

	w->first_step = first;
	for (; step < first + w->steps && step < w->stop && !w->over; step++) {
		train_step(w, step);
		if (w->kill_pid && w->done_steps == w->kill_at) {
			kill(w->kill_pid, SIGTERM);
			while (!w->held && !w->over)
				listen_to(w, 50);
			say(w, HPS_CTL_HELD, numbers("step", step + 1, NULL, 0, NULL, 0));
			while (w->stop == UINT64_MAX && !w->over)
				listen_to(w, 50);
		}
	}
	if (!w->over)
		say(w, HPS_CTL_EPOCH_DONE,
		    numbers("epoch", 0, "steps", step - first, "skipped", 0));
}

static void take_notice(struct worker *w, struct hps_notice *n)
{
	switch (n->kind) {
	case HPS_CTL_EPOCH:
		train(w, member_u64(n->body, "step"));
		break;
	case HPS_CTL_EVAL:
		w->first_step = member_u64(n->body, "step");
		pull_all(w, w->first_step, HPS_FLAG_EVAL);
		say(w, HPS_CTL_EVAL_DONE, numbers("epoch", 0, "skipped", 0, "steps", 0));
		break;
	case HPS_CTL_HOLD:
		w->held = true;
		break;
	case HPS_CTL_STOP:
		w->stop = member_u64(n->body, "step");
		break;
	case HPS_CTL_FINISH:
		assert_int_equal(
			hps_ps_flush(w->client, w->first_step + w->done_steps, &w->out, NULL),
			HPS_OK);
		await(w, HPS_PS_FLUSHED);
		pull_all(w, w->first_step + w->done_steps, HPS_FLAG_EVAL);
		say(w, HPS_CTL_FINISHED, NULL);
		break;
	case HPS_CTL_DONE:
		w->done = n->body;
		n->body = NULL;
		w->over = true;
		say(w, HPS_CTL_BYE, NULL);
		break;
	default:
		break;
	}
}

static void worker_run(struct worker *w, uint64_t incarnation)
{
	double end = hps_now_s() + PATIENCE_S / 2;

	worker_join(w, incarnation);
	while (!w->over) {
		listen_to(w, 50);
		assert_true(hps_now_s() < end);
	}
}

static void must_run(struct worker *w, struct ps_case *c, uint64_t incarnation)
{
	worker_init(w, c, incarnation);
	worker_run(w, incarnation);
	if (w->st != HPS_OK)
		fail_msg("%s: %s", w->err.where, w->err.msg);
	worker_release(w);
	w->done = NULL;
}

static struct ps_case_opts opts_of(uint32_t shards)
{
	return (struct ps_case_opts){ .shards = shards,
				      .stages = 1,
				      .dense_optim = HPS_ADAM,
				      .table_optim = HPS_ADAGRAD,
				      .endpoints = root,
				      .seed = 3 };
}

/* --- runs --- */

static void a_run_is_saved_and_goes_on_from_there(void **state)
{
	struct ps_case_opts o = opts_of(2);
	struct worker one, two, whole;
	struct ps_case c;
	struct server s = { .c = &c, .o = { .state = state_dir, .timeout_s = 30 } };

	ps_case_init(&c, &o);
	server_start(&s, "first");
	must_run(&one, &c, 11);
	assert_int_equal(server_end(&s), 0);
	assert_int_equal(one.first_step, 0);
	assert_said(&s, "holds no save yet");
	assert_said(&s, "saved in");
	ps_case_release(&c);
	/* the next run, on three shards */
	o.shards = 3;
	ps_case_init(&c, &o);
	server_start(&s, "second");
	must_run(&two, &c, 12);
	assert_int_equal(server_end(&s), 0);
	assert_said(&s, "loaded");
	assert_int_equal(two.first_step, 3);
	ps_case_release(&c);
	/* both together are one run of six steps on one shard, bit for bit */
	o.shards = 1;
	ps_case_init(&c, &o);
	s.o.state = NULL;
	server_start(&s, "whole");
	worker_init(&whole, &c, 13);
	whole.steps = 6;
	worker_run(&whole, 13);
	assert_int_equal(whole.st, HPS_OK);
	worker_release(&whole);
	assert_int_equal(server_end(&s), 0);
	assert_memory_equal(two.rows, whole.rows, sizeof(two.rows));
	assert_memory_equal(two.dense, whole.dense, c.graph.n_floats * 4);
	assert_memory_not_equal(one.rows, whole.rows, sizeof(one.rows));
	ps_case_release(&c);
}

static void kept_servers_serve_run_after_run(void **state)
{
	struct ps_case_opts o = opts_of(2);
	struct worker w;
	struct ps_case c;
	struct server s = { .c = &c, .o = { .state = state_dir, .keep = true, .timeout_s = 30 } };

	ps_case_init(&c, &o);
	server_start(&s, "kept");
	for (uint64_t run = 0; run < 3; run++) {
		must_run(&w, &c, 20 + run);
		assert_int_equal(w.first_step, 3 * run);
	}
	kill(s.pid, SIGTERM);
	assert_int_equal(server_end(&s), 0);
	ps_case_release(&c);
}

static void two_hosts_serve_one_job(void **state)
{
	struct ps_case_opts o = opts_of(3);
	struct worker w;
	struct ps_case c;
	struct server a = {
		.c = &c, .o = { .state = state_dir, .keep = true, .host = "here", .timeout_s = 30 }
	};
	struct server b = {
		.c = &c, .o = { .state = state_dir, .keep = true, .host = "there", .timeout_s = 30 }
	};
	struct hps_state found;
	bool there;

	ps_case_init(&c, &o);
	free(c.job.deployment.shard[1].host);
	c.job.deployment.shard[1].host = strdup("there");
	server_start(&b, "there");
	server_start(&a, "here");
	for (uint64_t run = 0; run < 2; run++) {
		must_run(&w, &c, 30 + run);
		assert_int_equal(w.first_step, 3 * run);
	}
	kill(a.pid, SIGTERM);
	kill(b.pid, SIGTERM);
	assert_int_equal(server_end(&a), 0);
	assert_int_equal(server_end(&b), 0);
	assert_int_equal(hps_state_find(state_dir, &found, &there, NULL), HPS_OK);
	assert_true(there);
	assert_int_equal(found.step, 6);
	assert_int_equal(found.n_files, 3);
	hps_state_release(&found);
	/* one of them has lost its state: the run is refused, not half trained */
	{
		char gone[400];

		snprintf(gone, sizeof(gone), "%s/empty", root);
		a.o.keep = b.o.keep = false;
		b.o.state = gone;
		server_start(&b, "empty");
		server_start(&a, "full");
		worker_init(&w, &c, 40);
		worker_run(&w, 40);
		assert_int_equal(w.st, HPS_BAD_INPUT);
		assert_non_null(strstr(w.err.msg, "begins at step 6, the shards here are at 0"));
		worker_release(&w);
		assert_int_equal(server_end(&a), HPS_BAD_INPUT);
		assert_int_equal(server_end(&b), HPS_BAD_INPUT);
	}
	ps_case_release(&c);
}

static void a_host_without_shards_has_nothing_to_do(void **state)
{
	struct ps_case_opts o = opts_of(1);
	struct ps_case c;
	struct server s = { .c = &c, .o = { .host = "there", .timeout_s = 30 } };

	ps_case_init(&c, &o);
	free(c.job.deployment.stage[0].replica[0].host);
	c.job.deployment.stage[0].replica[0].host = strdup("there");
	server_start(&s, "idle");
	assert_int_equal(server_end(&s), 0);
	assert_said(&s, "nothing to serve");
	s.o.host = "nowhere";
	server_start(&s, "nowhere");
	assert_int_equal(server_end(&s), HPS_USAGE);
	assert_said(&s, "no host \"nowhere\"");
	assert_said(&s, "hint: --host takes");
	ps_case_release(&c);
}

static void evaluation_needs_a_model_and_changes_none(void **state)
{
	struct ps_case_opts o = opts_of(2);
	struct worker w, trained;
	struct ps_case c;
	struct server s = { .c = &c, .o = { .state = state_dir, .timeout_s = 30 } };

	ps_case_init(&c, &o);
	server_start(&s, "empty");
	worker_init(&w, &c, 50);
	w.mode = "eval";
	worker_run(&w, 50);
	assert_int_equal(w.st, HPS_BAD_INPUT);
	assert_non_null(strstr(w.err.msg, "no trained model"));
	worker_release(&w);
	kill(s.pid, SIGTERM); /* it waits for one that may join */
	assert_int_equal(server_end(&s), 0);
	server_start(&s, "train");
	must_run(&trained, &c, 51);
	assert_int_equal(server_end(&s), 0);
	server_start(&s, "eval");
	worker_init(&w, &c, 52);
	w.mode = "eval";
	worker_run(&w, 52);
	assert_int_equal(w.st, HPS_OK);
	assert_memory_equal(w.rows, trained.rows, sizeof(w.rows));
	assert_memory_equal(w.dense, trained.dense, c.graph.n_floats * 4);
	worker_release(&w);
	assert_int_equal(server_end(&s), 0);
	assert_not_said(&s, "saved in");
	ps_case_release(&c);
}

/* --- ceilings --- */

static void a_ceiling_is_told_once_and_counted(void **state)
{
	struct ps_case_opts o = opts_of(2);
	struct hps_at root_at, tables, a, refused;
	struct worker w;
	struct ps_case c;
	struct server s = { .c = &c, .o = { .timeout_s = 30 } };
	struct hps_buf b = HPS_BUF_INIT;
	uint64_t n;
	char *first;

	o.max_rows = 10;
	ps_case_init(&c, &o);
	server_start(&s, "ceiling");
	worker_init(&w, &c, 60);
	worker_run(&w, 60);
	assert_int_equal(w.st, HPS_OK);
	root_at = hps_at_root(w.done, "done");
	tables = hps_at_member(&root_at, "tables");
	a = hps_at_member(&tables, "a");
	refused = hps_at_member(&a, "rows");
	assert_int_equal(hps_at_u64(&refused, 10, 10, &n, NULL), HPS_OK);
	refused = hps_at_member(&a, "refused");
	assert_int_equal(hps_at_u64(&refused, 90, 90, &n, NULL), HPS_OK); /* 30 keys, 3 steps */
	worker_release(&w);
	assert_int_equal(server_end(&s), 0);
	assert_int_equal(hps_file_read(s.log, 0, &b, NULL), HPS_OK);
	first = strstr(b.data, "table a: its ceiling of 10 rows is reached");
	assert_non_null(first);
	assert_null(strstr(first + 1, "table a: its ceiling"));
	hps_buf_release(&b);
	ps_case_release(&c);
}

/* --- ends --- */

static void a_signal_saves_after_the_step(void **state)
{
	struct ps_case_opts o = opts_of(2);
	struct hps_state found;
	struct worker w;
	struct ps_case c;
	struct server s = { .c = &c, .o = { .state = state_dir, .timeout_s = 30 } };
	bool there;

	ps_case_init(&c, &o);
	server_start(&s, "signal");
	worker_init(&w, &c, 70);
	w.steps = 1000000;
	w.kill_at = 2;
	w.kill_pid = s.pid;
	worker_run(&w, 70);
	assert_int_equal(w.st, HPS_OK);
	assert_int_equal(w.done_steps, 2);
	worker_release(&w);
	assert_int_equal(server_end(&s), 0);
	assert_int_equal(hps_state_find(state_dir, &found, &there, NULL), HPS_OK);
	assert_true(there);
	assert_int_equal(found.step, 2);
	hps_state_release(&found);
	ps_case_release(&c);
}

static void a_signal_before_anyone_came_ends_at_once(void **state)
{
	struct ps_case_opts o = opts_of(2);
	struct ps_case c;
	struct server s = { .c = &c, .o = { .timeout_s = 0.2 } };

	ps_case_init(&c, &o);
	free(c.job.deployment.shard[1].host);
	c.job.deployment.shard[1].host = strdup("there");
	/* nobody comes */
	s.o.host = "here";
	server_start(&s, "alone");
	assert_int_equal(server_end(&s), HPS_NET);
	assert_said(&s, "missing: shard 1 on host there (hps-serve), stage 0 replica 0");
	assert_said(&s, "0.2 s");
	s.o.host = "there";
	server_start(&s, "orphan");
	assert_int_equal(server_end(&s), HPS_NET);
	assert_said(&s, "the coordinator, hps-serve on here");
	/* a signal: when its sockets are there */
	s.o.timeout_s = 30;
	s.o.state = state_dir;
	server_start(&s, "early");
	await_said(&s, "no save yet");
	kill(s.pid, SIGINT);
	assert_int_equal(server_end(&s), 0);
	ps_case_release(&c);
}

static void a_full_disk_is_told_and_the_old_save_stays(void **state)
{
	struct ps_case_opts o = opts_of(2);
	struct hps_state found;
	struct worker w;
	struct ps_case c;
	struct server s = { .c = &c, .o = { .state = state_dir, .timeout_s = 30 } };
	bool there;

	ps_case_init(&c, &o);
	server_start(&s, "ok");
	must_run(&w, &c, 80);
	assert_int_equal(server_end(&s), 0);
	s.file_limit = 3000;
	server_start(&s, "full");
	worker_init(&w, &c, 81);
	worker_run(&w, 81);
	assert_int_equal(w.st, HPS_IO);
	assert_non_null(strstr(w.err.msg, "cannot write"));
	worker_release(&w);
	assert_int_equal(server_end(&s), HPS_IO);
	assert_said(&s, "cannot write");
	assert_said(&s, "shard-");
	assert_int_equal(hps_state_find(state_dir, &found, &there, NULL), HPS_OK);
	assert_true(there);
	assert_int_equal(found.step, 3);
	hps_state_release(&found);
	ps_case_release(&c);
}

static void a_silent_worker_is_named(void **state)
{
	struct ps_case_opts o = opts_of(1);
	struct worker w;
	struct ps_case c;
	struct server s = { .c = &c, .o = { .timeout_s = 30, .dead_after_s = 1 } };
	int status = 0;
	pid_t pid;

	ps_case_init(&c, &o);
	server_start(&s, "silent");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) { /* a worker that is killed at its second step */
		alarm(PATIENCE_S);
		worker_init(&w, &c, 90);
		w.kill_pid = getpid();
		w.kill_at = 2;
		w.steps = 1000;
		worker_run(&w, 90);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(server_end(&s), HPS_NET);
	assert_said(&s, "work@here: silent for 1 s");
	ps_case_release(&c);
}

/* Servers that get in each other's way: the second is told, the first goes on. No thread is here
 * when they are forked. */
static void a_port_in_use_is_named(void **state)
{
	struct ps_case_opts o = opts_of(2);
	struct worker w;
	struct ps_case c, other;
	struct server s = { .c = &c, .o = { .state = state_dir, .timeout_s = 30 } };
	struct server t = { .c = &c, .o = { .timeout_s = 30 } };

	ps_case_init(&c, &o);
	ps_case_init(&other, &o);
	server_start(&s, "one");
	await_said(&s, "no save yet");
	server_start(&t, "coordinator");
	assert_int_equal(server_end(&t), HPS_NET);
	assert_said(&t, "coordinator: ");
	assert_said(&t, c.job.deployment.coordinator.endpoint);
	free(other.job.deployment.coordinator.endpoint);
	assert_true(asprintf(&other.job.deployment.coordinator.endpoint, "ipc://%s/c2.ipc", root) >
		    0);
	t.c = &other;
	server_start(&t, "shard");
	assert_int_equal(server_end(&t), HPS_NET);
	assert_said(&t, "shard 0: ");
	assert_said(&t, c.job.deployment.shard[0].endpoint);
	t.o.state = state_dir;
	server_start(&t, "state");
	assert_int_equal(server_end(&t), HPS_IO);
	assert_said(&t, "has this state directory");
	must_run(&w, &c, 95);
	assert_int_equal(server_end(&s), 0);
	ps_case_release(&c);
	ps_case_release(&other);
}

/* --- nonsense --- */

static void nonsense_is_refused_and_the_server_lives(void **state)
{
	struct ps_case_opts o = opts_of(2);
	struct worker w;
	struct ps_case c;
	struct server s = { .c = &c, .o = { .timeout_s = 30 } };
	struct hps_net_opts no;
	struct hps_net_ctx *ctx;
	struct hps_net *bad;

	ps_case_init(&c, &o);
	server_start(&s, "nonsense");
	no = (struct hps_net_opts){ .job = hps_deployment_id(&c.job.deployment),
				    .incarnation = 666,
				    .self = hps_node_of_replica(&c.job.deployment, 0, 0),
				    .max_frame = 1 << 20,
				    .known_nodes = hps_deployment_nodes(&c.job.deployment) };
	assert_int_equal(hps_net_ctx_new(&ctx, NULL), HPS_OK);
	assert_int_equal(hps_net_new(ctx, &no, &bad, NULL), HPS_OK);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(
			hps_net_connect(bad, 1 + i, c.job.deployment.shard[i].endpoint, NULL),
			HPS_OK);
	for (uint64_t k = 1; k < 20; k++) {
		struct hps_msg m = { .head = { .type = HPS_MSG_PUSH, .seq = k, .step = k * 1000 } };

		assert_int_equal(hps_msg_copy(&m, "garbage", 7, NULL), HPS_OK);
		assert_int_equal(hps_net_send(bad, 1 + k % 2, &m, NULL), HPS_OK);
	}
	must_run(&w, &c, 96);
	assert_int_equal(server_end(&s), 0);
	assert_said(&s, "refused");
	hps_net_free(bad, 0);
	hps_net_ctx_free(ctx);
	ps_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IN_ROOT(f) cmocka_unit_test_setup_teardown(f, make_root, drop_root)
		IN_ROOT(a_run_is_saved_and_goes_on_from_there),
		IN_ROOT(kept_servers_serve_run_after_run),
		IN_ROOT(two_hosts_serve_one_job),
		IN_ROOT(a_host_without_shards_has_nothing_to_do),
		IN_ROOT(evaluation_needs_a_model_and_changes_none),
		IN_ROOT(a_ceiling_is_told_once_and_counted),
		IN_ROOT(a_signal_saves_after_the_step),
		IN_ROOT(a_signal_before_anyone_came_ends_at_once),
		IN_ROOT(a_full_disk_is_told_and_the_old_save_stays),
		IN_ROOT(a_silent_worker_is_named),
		IN_ROOT(a_port_in_use_is_named),
		IN_ROOT(nonsense_is_refused_and_the_server_lives),
	};

	alarm(4 * PATIENCE_S);
	return cmocka_run_group_tests_name("serve_run", tests, NULL, NULL);
}
