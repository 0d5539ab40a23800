/* Does every message arrive whole, in order and at the right peer, and who frees what? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "net/net.h"

enum { JOB = 77, WAIT_MS = 20000 };

struct pair {
	struct hps_net_ctx *ctx;
	struct hps_net *server, *client; /* node 0 listens, node 1 connects */
	char dir[64];
};

static struct hps_net *node(struct hps_net_ctx *ctx, uint32_t self)
{
	struct hps_net_opts o = { .job = JOB,
				  .incarnation = 100 + self,
				  .self = self,
				  .max_frame = 1 << 26,
				  .known_nodes = 4 };
	struct hps_net *n;
	struct hps_err err;

	if (hps_net_new(ctx, &o, &n, &err) != HPS_OK)
		fail_msg("%s", err.msg);
	return n;
}

static void ok(enum hps_status st, const struct hps_err *err)
{
	if (st != HPS_OK)
		fail_msg("%s: %s", err->where, err->msg);
}

static int open_pair(void **state, const char *scheme)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct hps_err err;
	char at[128];

	assert_non_null(p);
	strcpy(p->dir, "/tmp/hpsnet-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	ok(hps_net_ctx_new(&p->ctx, &err), &err);
	p->server = node(p->ctx, 0);
	p->client = node(p->ctx, 1);
	if (strcmp(scheme, "ipc") == 0)
		snprintf(at, sizeof(at), "ipc://%s/a/b/server", p->dir);
	else
		snprintf(at, sizeof(at), "tcp://127.0.0.1:0");
	ok(hps_net_listen(p->server, at, &err), &err);
	ok(hps_net_connect(p->client, 0, hps_net_endpoint(p->server), &err), &err);
	*state = p;
	return 0;
}

static int setup_ipc(void **state)
{
	return open_pair(state, "ipc");
}

static int setup_tcp(void **state)
{
	return open_pair(state, "tcp");
}

static int teardown(void **state)
{
	struct pair *p = *state;
	char path[128];

	hps_net_free(p->client, 1000);
	hps_net_free(p->server, 1000);
	hps_net_ctx_free(p->ctx);
	/* socket and lock are gone: the directories are empty */
	snprintf(path, sizeof(path), "%s/a/b", p->dir);
	if (access(path, F_OK) == 0) {
		assert_int_equal(rmdir(path), 0);
		*strrchr(path, '/') = '\0';
		assert_int_equal(rmdir(path), 0);
	}
	assert_int_equal(rmdir(p->dir), 0);
	free(p);
	return 0;
}

static struct hps_msg receive(struct hps_net *n, uint32_t *peer)
{
	struct hps_msg m = { 0 };
	struct hps_err err;
	bool got = false;

	ok(hps_net_recv(n, WAIT_MS, &m, peer, &got, &err), &err);
	if (!got)
		fail_msg("no message within %d ms", WAIT_MS);
	return m;
}

static void send_one(struct hps_net *n, uint32_t to, uint32_t arg)
{
	struct hps_msg m = { .head = { .type = HPS_MSG_PULL, .arg = arg } };
	struct hps_err err;

	ok(hps_net_send(n, to, &m, &err), &err);
}

static atomic_int released;

static void counted_release(void *data, void *hint)
{
	assert_ptr_equal(hint, &released);
	free(data);
	atomic_fetch_add(&released, 1);
}

static void frames_of_every_size(void **state)
{
	static const size_t size[] = { 0,   1,	  7,	8,    63,     511,     512,
				       513, 4096, 8191, 8192, 100001, 1 << 20, 20 << 20 };
	enum { N = sizeof(size) / sizeof(size[0]) };
	struct pair *p = *state;
	struct hps_msg m;
	struct hps_err err;
	uint32_t peer;

	atomic_store(&released, 0);
	for (unsigned i = 0; i < N; i++) {
		struct hps_frame *f;

		m = (struct hps_msg){ .head = { .type = HPS_MSG_PUSH,
						.flags = HPS_FLAG_EVAL,
						.seq = UINT64_MAX - i,
						.step = (uint64_t)i << 40,
						.epoch = i,
						.mb = i + 1,
						.count = i + 2,
						.arg = i + 3,
						.aux = UINT64_MAX / 3 } };
		m.n_frames = 1 + i % HPS_MAX_FRAMES;
		for (unsigned k = 0; k < m.n_frames; k++) {
			f = &m.frame[k];
			*f = (struct hps_frame){ malloc(size[i] + 1), size[i], counted_release,
						 &released };
			assert_non_null(f->data);
			memset(f->data, (int)(i + k), size[i]);
		}
		ok(hps_net_send(p->client, 0, &m, &err), &err);
		assert_int_equal(m.n_frames, 0); /* taken */
	}
	for (unsigned i = 0; i < N; i++) {
		m = receive(p->server, &peer);
		assert_int_equal(peer, 1);
		assert_int_equal(m.head.type, HPS_MSG_PUSH);
		assert_int_equal(m.head.flags, HPS_FLAG_EVAL);
		assert_int_equal(m.head.src, 1);
		assert_int_equal(m.head.job, JOB);
		assert_int_equal(m.head.incarnation, 101);
		assert_true(m.head.seq == UINT64_MAX - i);
		assert_int_equal(m.head.step, (uint64_t)i << 40);
		assert_int_equal(m.head.epoch, i);
		assert_int_equal(m.head.mb, i + 1);
		assert_int_equal(m.head.count, i + 2);
		assert_int_equal(m.head.arg, i + 3);
		assert_true(m.head.aux == UINT64_MAX / 3);
		assert_int_equal(m.n_frames, 1 + i % HPS_MAX_FRAMES);
		for (unsigned k = 0; k < m.n_frames; k++) {
			const uint8_t *b = m.frame[k].data;

			assert_int_equal(m.frame[k].len, size[i]);
			assert_int_equal((uintptr_t)b % 8, 0);
			for (size_t j = 0; j < size[i]; j++)
				if (b[j] != (uint8_t)(i + k))
					fail_msg("byte %zu of frame %u is %u", j, k, b[j]);
		}
		hps_msg_release(&m);
	}
}

static void every_release_runs_once(void **state)
{
	struct pair *p = *state;
	struct hps_msg m;
	struct hps_err err;
	uint32_t peer;
	int sent = 0;

	atomic_store(&released, 0);
	for (int i = 0; i < 20; i++) {
		m = (struct hps_msg){ .head = { .type = HPS_MSG_PUSH } };
		for (int k = 0; k < 2; k++, sent++)
			m.frame[m.n_frames++] =
				(struct hps_frame){ calloc(1, 1000000), k ? 1000000u : 100u,
						    counted_release, &released };
		ok(hps_net_send(p->client, 0, &m, &err), &err);
	}
	/* to nobody: released too */
	m = (struct hps_msg){ .head = { .type = HPS_MSG_PUSH }, .n_frames = 1 };
	m.frame[0] = (struct hps_frame){ calloc(1, 10), 10, counted_release, &released };
	sent++;
	assert_int_equal(hps_net_send(p->client, 3, &m, &err), HPS_NET);
	for (int i = 0; i < 20; i++) {
		m = receive(p->server, &peer);
		hps_msg_release(&m);
	}
	/* closing the context ends the I/O thread, which frees what it sent */
	hps_net_free(p->client, 1000);
	hps_net_free(p->server, 1000);
	hps_net_ctx_free(p->ctx);
	p->client = p->server = NULL;
	p->ctx = NULL;
	assert_int_equal(atomic_load(&released), sent);
}

static void borrowed_frames_may_change_after_the_send(void **state)
{
	struct pair *p = *state;
	uint8_t *bytes = malloc(100000);
	struct hps_msg m;
	struct hps_err err;
	uint32_t peer;

	assert_non_null(bytes);
	for (int i = 0; i < 50; i++) {
		memset(bytes, i, 100000);
		m = (struct hps_msg){ .head = { .type = HPS_MSG_PUSH }, .n_frames = 1 };
		m.frame[0] = (struct hps_frame){ bytes, 100000, NULL, NULL };
		ok(hps_net_send(p->client, 0, &m, &err), &err);
	}
	memset(bytes, 255, 100000);
	for (int i = 0; i < 50; i++) {
		m = receive(p->server, &peer);
		assert_int_equal(((uint8_t *)m.frame[0].data)[0], i);
		assert_int_equal(((uint8_t *)m.frame[0].data)[99999], i);
		hps_msg_release(&m);
	}
	free(bytes);
}

static void order_is_kept_both_ways(void **state)
{
	enum { N = 3000 };
	struct pair *p = *state;
	struct hps_outbox out = { 0 };
	struct hps_err err;
	uint32_t peer;

	send_one(p->client, 0, 0);
	receive(p->server, &peer);
	for (uint32_t i = 0; i < N; i++) {
		struct hps_msg m = { .head = { .type = HPS_MSG_ROWS, .arg = i } };

		ok(hps_msg_take(&m, calloc(1, i * 7 % 9000 + 1), i * 7 % 9000 + 1, &err), &err);
		ok(hps_outbox_put(&out, 1, &m, &err), &err);
		send_one(p->client, 0, i);
	}
	ok(hps_net_send_all(p->server, &out, &err), &err);
	assert_int_equal(out.n, 0);
	hps_outbox_release(&out);
	for (uint32_t i = 0; i < N; i++) {
		struct hps_msg m = receive(p->client, &peer);

		assert_int_equal(peer, 0);
		assert_int_equal(m.head.arg, i);
		assert_int_equal(m.frame[0].len, i * 7 % 9000 + 1);
		hps_msg_release(&m);
		m = receive(p->server, &peer);
		assert_int_equal(m.head.arg, i);
		hps_msg_release(&m);
	}
}

static void anonymous_peers_get_numbers(void **state)
{
	struct pair *p = *state;
	struct hps_net *anon[3];
	struct hps_msg m;
	struct hps_err err;
	uint32_t peer, seen = 0;

	for (uint32_t i = 0; i < 3; i++) {
		anon[i] = node(p->ctx, HPS_NODE_PROCESS);
		ok(hps_net_connect(anon[i], 0, hps_net_endpoint(p->server), &err), &err);
		send_one(anon[i], 0, i);
		m = receive(p->server, &peer);
		assert_int_equal(m.head.arg, i);
		assert_int_equal(peer, HPS_PEER_ANON + i);
	}
	for (uint32_t i = 0; i < 3; i++)
		send_one(anon[i], 0, 10 + i);
	for (uint32_t i = 0; i < 3; i++) {
		m = receive(p->server, &peer);
		assert_int_equal(peer - HPS_PEER_ANON, m.head.arg - 10);
		seen |= 1u << m.head.arg;
		send_one(p->server, peer, 20 + peer - HPS_PEER_ANON);
	}
	assert_int_equal(seen, 7u << 10);
	for (uint32_t i = 0; i < 3; i++) {
		m = receive(anon[i], &peer);
		assert_int_equal(m.head.arg, 20 + i);
		hps_net_free(anon[i], 0);
	}
}

/* A node that comes back over a new connection gets the answers there; what goes to one
 * that has left is dropped without an error. */
static void answers_follow_a_restarted_node(void **state)
{
	struct pair *p = *state;
	struct hps_net *again;
	struct hps_msg m;
	struct hps_err err;
	uint32_t peer;

	send_one(p->client, 0, 1);
	receive(p->server, &peer);
	hps_net_free(p->client, 1000);
	p->client = NULL;
	for (uint32_t i = 0; i < 100; i++)
		send_one(p->server, 1, 1000 + i);
	again = node(p->ctx, 1);
	ok(hps_net_connect(again, 0, hps_net_endpoint(p->server), &err), &err);
	send_one(again, 0, 2);
	m = receive(p->server, &peer);
	assert_int_equal(peer, 1);
	assert_int_equal(m.head.arg, 2);
	send_one(p->server, 1, 3);
	m = receive(again, &peer);
	assert_int_equal(m.head.arg, 3);
	hps_net_free(again, 0);
}

static void the_peer_may_come_up_later(void **state)
{
	struct pair *p = *state;
	struct hps_net *late = node(p->ctx, 2);
	struct hps_err err;
	struct hps_msg m;
	uint32_t peer;
	char at[128];

	snprintf(at, sizeof(at), "ipc://%s/late", p->dir);
	ok(hps_net_connect(p->client, 2, at, &err), &err);
	send_one(p->client, 2, 5);
	ok(hps_net_listen(late, at, &err), &err);
	m = receive(late, &peer);
	assert_int_equal(peer, 1);
	assert_int_equal(m.head.arg, 5);
	hps_net_free(late, 0);
}

static void waiting_ends_in_time(void **state)
{
	struct pair *p = *state;
	struct hps_msg m;
	struct hps_err err;
	uint32_t peer;
	bool got = true;
	double t = hps_now_s();

	ok(hps_net_recv(p->server, 0, &m, &peer, &got, &err), &err);
	assert_false(got);
	ok(hps_net_recv(p->server, 30, &m, &peer, &got, &err), &err);
	assert_false(got);
	assert_true(hps_now_s() - t >= 0.029);
}

static void *wake(void *arg)
{
	hps_net_wake(arg);
	return NULL;
}

static void wake_ends_a_wait(void **state)
{
	struct pair *p = *state;
	struct hps_msg m;
	struct hps_err err;
	uint32_t peer;
	bool got;
	pthread_t t;

	/* before the wait, and more than once: the next one returns, the one after waits */
	hps_net_wake(p->server);
	hps_net_wake(p->server);
	ok(hps_net_recv(p->server, -1, &m, &peer, &got, &err), &err);
	assert_false(got);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(pthread_create(&t, NULL, wake, p->server), 0);
		ok(hps_net_recv(p->server, -1, &m, &peer, &got, &err), &err);
		assert_false(got);
		assert_int_equal(pthread_join(t, NULL), 0);
	}
	/* a wake goes before a message that waits, and loses none */
	send_one(p->client, 0, 9);
	m = receive(p->server, &peer);
	send_one(p->client, 0, 10);
	hps_net_wake(p->server);
	ok(hps_net_recv(p->server, -1, &m, &peer, &got, &err), &err);
	assert_false(got);
	m = receive(p->server, &peer);
	assert_int_equal(m.head.arg, 10);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void a_signal_ends_a_wait(void **state)
{
	struct sigaction sa = { .sa_handler = on_alarm }, before;
	struct itimerval soon = { .it_value = { 0, 20000 }, .it_interval = { 0, 20000 } };
	struct itimerval off = { 0 };
	struct pair *p = *state;
	struct hps_msg m;
	struct hps_err err;
	uint32_t peer;
	bool got;

	sigaction(SIGALRM, &sa, &before);
	setitimer(ITIMER_REAL, &soon, NULL);
	ok(hps_net_recv(p->server, -1, &m, &peer, &got, &err), &err);
	assert_false(got);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &before, NULL);
}

/* Both ends listen and connect to each other, as in a ring of two. */
static void two_ways_between_two_nodes(void **state)
{
	struct pair *p = *state;
	struct hps_err err;
	struct hps_msg m;
	uint32_t peer;

	ok(hps_net_listen(p->client, "tcp://localhost:0", &err), &err);
	ok(hps_net_connect(p->server, 1, hps_net_endpoint(p->client), &err), &err);
	for (uint32_t i = 0; i < 10; i++) {
		send_one(p->client, 0, i);
		send_one(p->server, 1, 100 + i);
	}
	for (uint32_t i = 0; i < 10; i++) {
		m = receive(p->server, &peer);
		assert_int_equal(m.head.arg, i);
		assert_int_equal(peer, 1);
		m = receive(p->client, &peer);
		assert_int_equal(m.head.arg, 100 + i);
		assert_int_equal(peer, 0);
	}
	assert_int_equal(hps_net_connect(p->server, 1, hps_net_endpoint(p->client), &err), HPS_NET);
	assert_int_equal(hps_net_connect(p->server, 4, hps_net_endpoint(p->client), &err), HPS_NET);
}

int main(void)
{
#define BOTH(f)                                                                                    \
	cmocka_unit_test_setup_teardown(f, setup_ipc, teardown),                                   \
		cmocka_unit_test_setup_teardown(f, setup_tcp, teardown)
	const struct CMUnitTest tests[] = {
		BOTH(frames_of_every_size),
		BOTH(every_release_runs_once),
		BOTH(borrowed_frames_may_change_after_the_send),
		BOTH(order_is_kept_both_ways),
		BOTH(anonymous_peers_get_numbers),
		BOTH(answers_follow_a_restarted_node),
		BOTH(the_peer_may_come_up_later),
		BOTH(waiting_ends_in_time),
		BOTH(wake_ends_a_wait),
		BOTH(a_signal_ends_a_wait),
		BOTH(two_ways_between_two_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
