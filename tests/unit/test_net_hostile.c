/* Does a server go on serving good peers whatever bytes others send it, and does it never
 * hand on what they sent? Attackers speak raw ZeroMQ or raw TCP.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "net/net.h"
#include "net/net_int.h"

enum { PART = HPS_HEAD_BYTES + HPS_SUM_BYTES }; /* the header as it is sent */
enum { JOB = 99, GOOD = 1000, MAX_FRAME = 10000, WAIT_MS = 20000, NODES = 4 };

struct stage {
	struct hps_net_ctx *ctx;
	struct hps_net *server, *good; /* nodes 0 and 1 */
	void *zmq;		       /* the attackers' */
};

static struct hps_net *node(struct hps_net_ctx *ctx, uint32_t self)
{
	struct hps_net_opts o = { .job = JOB,
				  .incarnation = 5,
				  .self = self,
				  .max_frame = MAX_FRAME,
				  .known_nodes = NODES };
	struct hps_net *n = NULL;

	assert_int_equal(hps_net_new(ctx, &o, &n, NULL), HPS_OK);
	return n;
}

static int setup(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));

	hps_log_init("test", HPS_LOG_QUIET);
	assert_int_equal(hps_net_ctx_new(&s->ctx, NULL), HPS_OK);
	s->server = node(s->ctx, 0);
	s->good = node(s->ctx, 1);
	assert_int_equal(hps_net_listen(s->server, "tcp://127.0.0.1:0", NULL), HPS_OK);
	assert_int_equal(hps_net_connect(s->good, 0, hps_net_endpoint(s->server), NULL), HPS_OK);
	s->zmq = zmq_ctx_new();
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct stage *s = *state;

	zmq_ctx_term(s->zmq);
	hps_net_free(s->good, 0);
	hps_net_free(s->server, 0);
	hps_net_ctx_free(s->ctx);
	free(s);
	return 0;
}

static void send_good(struct hps_net *n, uint32_t to, uint32_t arg)
{
	struct hps_msg m = { .head = { .type = HPS_MSG_PULL, .arg = arg } };

	assert_int_equal(hps_net_send(n, to, &m, NULL), HPS_OK);
}

static struct hps_msg receive(struct hps_net *n, uint32_t *peer)
{
	struct hps_msg m = { 0 };
	bool got = false;

	assert_int_equal(hps_net_recv(n, WAIT_MS, &m, peer, &got, NULL), HPS_OK);
	assert_true(got);
	return m;
}

/* The good peer is served: there and back. */
static void still_serves(struct stage *s)
{
	struct hps_msg m;
	uint32_t peer;

	send_good(s->good, 0, GOOD);
	m = receive(s->server, &peer);
	assert_int_equal(m.head.arg, GOOD); /* nothing of an attacker came before */
	assert_int_equal(peer, 1);
	send_good(s->server, 1, GOOD + 1);
	m = receive(s->good, &peer);
	assert_int_equal(m.head.arg, GOOD + 1);
}

static void *attacker(struct stage *s)
{
	void *sock = zmq_socket(s->zmq, ZMQ_DEALER);
	int linger = 0;

	assert_non_null(sock);
	zmq_setsockopt(sock, ZMQ_LINGER, &linger, sizeof(linger));
	assert_int_equal(zmq_connect(sock, hps_net_endpoint(s->server)), 0);
	return sock;
}

static struct hps_head good_head(uint32_t src)
{
	return (struct hps_head){ .type = HPS_MSG_PULL, .src = src, .job = JOB, .seq = 1 };
}

/* As sent before n frames. */
static void seal(const struct hps_head *h, const struct hps_frame *f, uint32_t n, uint8_t out[PART])
{
	uint64_t sum;

	hps_head_encode(h, out);
	sum = hps_sum_head(out);
	for (uint32_t i = 0; i < n; i++)
		sum = hps_sum_frame(sum, f[i].data, f[i].len);
	memcpy(out + HPS_HEAD_BYTES, &sum, sizeof(sum));
}

static void send_head(void *sock, const struct hps_head *h, int more)
{
	uint8_t b[PART];

	seal(h, NULL, 0, b);
	assert_int_equal(zmq_send(sock, b, sizeof(b), more ? ZMQ_SNDMORE : 0), sizeof(b));
}

/* A header and one frame, in order. */
static void send_framed(void *sock, const struct hps_head *h, void *data, size_t len)
{
	struct hps_frame f = { .data = data, .len = len };
	uint8_t b[PART];

	seal(h, &f, 1, b);
	assert_int_equal(zmq_send(sock, b, sizeof(b), ZMQ_SNDMORE), sizeof(b));
	assert_int_equal(zmq_send(sock, data, len, 0), len);
}

/* Receive until the server has refused one more peer; nothing may come out meanwhile. */
static void until_refused(struct stage *s, unsigned before)
{
	double end = hps_now_s() + WAIT_MS / 1e3;

	while (s->server->warned == before) {
		struct hps_msg m;
		uint32_t peer;
		bool got;

		assert_int_equal(hps_net_recv(s->server, 20, &m, &peer, &got, NULL), HPS_OK);
		if (got)
			fail_msg("a bad message was handed on");
		assert_true(hps_now_s() < end);
	}
	assert_int_equal(s->server->warned, before + 1);
}

enum { N_ATTACKS = 18 };

/* Attack i on a fresh connection. */
static void attack(void *sock, int i)
{
	struct hps_head h = good_head(2);
	uint8_t b[PART + 8] = { 0 };
	struct hps_rng rng;

	seal(&h, NULL, 0, b);
	switch (i) {
	case 0: /* too short, too long, empty */
		zmq_send(sock, b, PART - 1, 0);
		break;
	case 1:
		zmq_send(sock, b, PART + 8, 0);
		break;
	case 2:
		zmq_send(sock, b, 0, 0);
		break;
	case 3: /* magic, version, type, flags */
		b[0] ^= 1;
		zmq_send(sock, b, PART, 0);
		break;
	case 4:
		b[4] = 2;
		zmq_send(sock, b, PART, 0);
		break;
	case 5:
		b[6] = 0xff;
		zmq_send(sock, b, PART, 0);
		break;
	case 6:
		b[11] = 0x80;
		zmq_send(sock, b, PART, 0);
		break;
	case 7: /* another job */
		h.job = JOB + 1;
		send_head(sock, &h, 0);
		break;
	case 8: /* node numbers that do not exist */
		h.src = NODES;
		send_head(sock, &h, 0);
		break;
	case 9:
		h.src = UINT32_MAX - 1;
		send_head(sock, &h, 0);
		break;
	case 10: /* one frame too many; very many */
		send_head(sock, &h, 1);
		for (int k = 0; k <= HPS_MAX_FRAMES; k++)
			zmq_send(sock, b, 4, k < HPS_MAX_FRAMES ? ZMQ_SNDMORE : 0);
		break;
	case 11:
		send_head(sock, &h, 1);
		for (int k = 0; k <= 5000; k++)
			zmq_send(sock, b, 4, k < 5000 ? ZMQ_SNDMORE : 0);
		break;
	case 12: /* the header not first */
		zmq_send(sock, "", 0, ZMQ_SNDMORE);
		send_head(sock, &h, 0);
		break;
	case 13: /* junk */
		hps_rng_init(&rng, 1, 0);
		for (size_t k = 0; k < PART; k++)
			b[k] = (uint8_t)hps_rng_u64(&rng);
		zmq_send(sock, b, PART, 0);
		break;
	case 14:
		memset(b, 0xff, sizeof(b));
		zmq_send(sock, b, PART, 0);
		break;
	case 15: /* a bit changed on its way: in a number, in the sum, in a frame */
		b[32] ^= 4;
		zmq_send(sock, b, PART, 0);
		break;
	case 16:
		b[PART - 1] ^= 1;
		zmq_send(sock, b, PART, 0);
		break;
	case 17:
		zmq_send(sock, b, PART, ZMQ_SNDMORE);
		zmq_send(sock, "", 0, 0);
		break;
	}
}

static void bad_messages_are_refused_for_good(void **state)
{
	struct stage *s = *state;
	void *sock[N_ATTACKS];

	for (int i = 0; i < N_ATTACKS; i++) {
		unsigned before = s->server->warned;
		struct hps_head h = good_head(3);

		sock[i] = attacker(s);
		attack(sock[i], i);
		until_refused(s, before);
		/* from now on nothing is heard from there, and nothing said about it */
		for (int k = 0; k < 10; k++)
			send_head(sock[i], &h, 0);
		attack(sock[i], i);
		still_serves(s);
	}
	/* all that the attackers sent has been looked at when a second round is refused */
	for (int i = 0; i < N_ATTACKS; i++) {
		unsigned before = s->server->warned;
		void *more = attacker(s);

		attack(more, i);
		until_refused(s, before);
		zmq_close(more);
		zmq_close(sock[i]);
	}
	assert_int_equal(s->server->warned, 2 * N_ATTACKS);
	still_serves(s);
}

/* One connection, one identity. */
static void a_connection_keeps_its_number(void **state)
{
	static const uint32_t first[] = { 2, 2, HPS_NODE_PROCESS },
			      then[] = { 3, HPS_NODE_PROCESS, 2 };
	struct stage *s = *state;

	for (int i = 0; i < 3; i++) {
		unsigned before = s->server->warned;
		void *sock = attacker(s);
		struct hps_head h = good_head(first[i]);
		uint32_t peer;

		send_head(sock, &h, 0);
		receive(s->server, &peer);
		assert_int_equal(peer >= HPS_PEER_ANON, first[i] == HPS_NODE_PROCESS);
		h.src = then[i];
		send_head(sock, &h, 0);
		until_refused(s, before);
		still_serves(s);
		zmq_close(sock);
	}
}

/* Who uses another's number is refused alone: the owner is heard and answered. */
static void a_forged_number_hurts_nobody_else(void **state)
{
	struct stage *s = *state;
	void *sock = attacker(s);
	struct hps_head h = good_head(1);
	uint32_t peer;

	still_serves(s);
	send_head(sock, &h, 0);
	receive(s->server, &peer);
	assert_int_equal(peer, 1);
	hps_net_refuse(s->server, peer, "said by the test");
	assert_int_equal(s->server->warned, 1);
	send_head(sock, &h, 0);
	hps_net_refuse(s->server, peer, "said again");
	assert_int_equal(s->server->warned, 1);
	still_serves(s);
	zmq_close(sock);
}

static void an_oversized_frame_ends_its_connection_only(void **state)
{
	struct stage *s = *state;
	void *sock = attacker(s);
	struct hps_head h = good_head(2);
	uint8_t *big = calloc(1, MAX_FRAME + 1);
	struct hps_msg m;
	uint32_t peer;
	bool got = false;
	double end = hps_now_s() + WAIT_MS / 1e3;

	send_framed(sock, &h, big, MAX_FRAME);
	m = receive(s->server, &peer);
	assert_int_equal(m.frame[0].len, MAX_FRAME);
	hps_msg_release(&m);

	send_framed(sock, &h, big, MAX_FRAME + 1);
	/* libzmq cuts the connection there; the attacker's socket makes a new one */
	h.arg = 77;
	while (!got) {
		send_head(sock, &h, 0);
		assert_int_equal(hps_net_recv(s->server, 20, &m, &peer, &got, NULL), HPS_OK);
		assert_true(hps_now_s() < end);
	}
	assert_int_equal(m.head.arg, 77);
	assert_int_equal(m.n_frames, 0);
	zmq_close(sock);
	/* what it had sent more often than needed */
	do {
		assert_int_equal(hps_net_recv(s->server, 20, &m, &peer, &got, NULL), HPS_OK);
		assert_true(!got || m.head.arg == 77);
	} while (got);
	still_serves(s);
	free(big);
}

static void peers_that_name_themselves_are_dropped(void **state)
{
	static const char *const name[] = { "a", "abcde", "name-longer-than-five" };
	struct stage *s = *state;
	struct hps_head h = good_head(2);

	for (int i = 0; i < 3; i++) {
		void *sock = zmq_socket(s->zmq, ZMQ_DEALER);
		int linger = 0;
		double end = hps_now_s() + WAIT_MS / 1e3;

		zmq_setsockopt(sock, ZMQ_LINGER, &linger, sizeof(linger));
		zmq_setsockopt(sock, ZMQ_ROUTING_ID, name[i], strlen(name[i]));
		assert_int_equal(zmq_connect(sock, hps_net_endpoint(s->server)), 0);
		send_head(sock, &h, 0);
		s->server->told_names = false;
		while (!s->server->told_names) {
			struct hps_msg m;
			uint32_t peer;
			bool got;

			assert_int_equal(hps_net_recv(s->server, 20, &m, &peer, &got, NULL),
					 HPS_OK);
			assert_false(got);
			assert_true(hps_now_s() < end);
		}
		still_serves(s);
		zmq_close(sock);
	}
}

static int raw_tcp(struct stage *s)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	sa.sin_port = htons((uint16_t)atoi(strrchr(hps_net_endpoint(s->server), ':') + 1));
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static void raw_bytes_do_no_harm(void **state)
{
	struct stage *s = *state;
	uint8_t junk[65536];
	int fd[40], n = 0;
	struct hps_rng rng;

	hps_rng_init(&rng, 7, 0);
	for (int i = 0; i < 40; i++) {
		size_t len = 1 + hps_rng_below(&rng, sizeof(junk) - 1);

		for (size_t k = 0; k < sizeof(junk); k++)
			junk[k] = (uint8_t)hps_rng_u64(&rng);
		switch (i % 5) {
		case 0: /* noise */
			break;
		case 1:
			strcpy((char *)junk, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
			break;
		case 2: /* a good greeting, then noise */
			memset(junk, 0, 64);
			junk[0] = 0xff;
			junk[9] = 0x7f;
			junk[10] = 3;
			strcpy((char *)junk + 12, "NULL");
			break;
		case 3: /* an old protocol without a greeting: id frame, then a message */
			memcpy(junk, "\x01\x00\x49\x00", 4);
			len = 4 + PART;
			break;
		case 4: /* nothing at all, or half a greeting */
			memset(junk, 0xff, 10);
			len = (size_t)i % 10;
			break;
		}
		fd[n] = raw_tcp(s);
		if (len && send(fd[n], junk, len, MSG_NOSIGNAL) < 0 && i % 5 == 4)
			fail_msg("could not send");
		n++;
		if (i % 8 == 0)
			still_serves(s);
	}
	still_serves(s);
	while (n)
		close(fd[--n]);
	still_serves(s);
}

struct flood {
	void *sock;
	atomic_bool stop;
};

static void *flood(void *arg)
{
	struct flood *f = arg;

	while (!atomic_load(&f->stop))
		for (int i = 0; i < 100; i++)
			if (zmq_send(f->sock, "junk", 4, ZMQ_DONTWAIT) < 0)
				break;
	return NULL;
}

static void a_flood_starves_nobody(void **state)
{
	struct stage *s = *state;
	struct flood f = { .sock = attacker(s) };
	struct hps_msg m;
	pthread_t t;
	uint32_t peer;
	double start;
	bool got;

	zmq_send(f.sock, "junk", 4, 0);
	until_refused(s, 0);
	assert_int_equal(pthread_create(&t, NULL, flood, &f), 0);
	for (int i = 0; i < 100; i++)
		still_serves(s);
	/* calls that should not wait, or not for long, return */
	start = hps_now_s();
	for (int i = 0; i < 20; i++) {
		assert_int_equal(hps_net_recv(s->server, 0, &m, &peer, &got, NULL), HPS_OK);
		assert_false(got);
		assert_int_equal(hps_net_recv(s->server, 5, &m, &peer, &got, NULL), HPS_OK);
		assert_false(got);
	}
	assert_true(hps_now_s() - start < 5);
	atomic_store(&f.stop, true);
	pthread_join(t, NULL);
	zmq_close(f.sock);
	assert_int_equal(s->server->warned, 1);
	still_serves(s);
}

/* The node that a client connected to is believed no more than others. */
static void a_hostile_server_is_refused(void **state)
{
	struct stage *s = *state;
	void *router = zmq_socket(s->zmq, ZMQ_ROUTER);
	char at[64], id[16];
	size_t len = sizeof(at);
	struct hps_head h = good_head(3); /* should be 2 */
	struct hps_err err = { 0 };
	enum hps_status st = HPS_OK;
	struct hps_msg m;
	uint32_t peer;
	double end = hps_now_s() + WAIT_MS / 1e3;
	bool got;
	int n, linger = 0;

	zmq_setsockopt(router, ZMQ_LINGER, &linger, sizeof(linger));
	assert_int_equal(zmq_bind(router, "tcp://127.0.0.1:*"), 0);
	assert_int_equal(zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, at, &len), 0);
	assert_int_equal(hps_net_connect(s->good, 2, at, NULL), HPS_OK);
	send_good(s->good, 2, 1);
	n = zmq_recv(router, id, sizeof(id), 0);
	assert_true(n > 0);
	assert_int_equal(zmq_recv(router, id + n, sizeof(id) - (size_t)n, 0), PART);
	zmq_send(router, id, (size_t)n, ZMQ_SNDMORE);
	send_head(router, &h, 0);
	while (st == HPS_OK) {
		st = hps_net_recv(s->good, 20, &m, &peer, &got, &err);
		assert_false(got);
		assert_true(hps_now_s() < end);
	}
	assert_int_equal(st, HPS_NET); /* who waits for its answers waits in vain */
	assert_int_equal(peer, 2);
	assert_string_equal(err.msg, "sent what does not hold: node number 3 where it was 2");
	assert_int_equal(s->good->warned, 1);
	still_serves(s);
	send_good(s->good, 2, 77); /* it may be told why it is left */
	assert_int_equal(zmq_recv(router, id, sizeof(id), 0), n);
	zmq_close(router);
}

/* An honest peer whose message was damaged does not wait for an answer for ever. */
static void who_is_refused_learns_why(void **state)
{
	struct stage *s = *state;
	struct hps_err err = { 0 };
	enum hps_status st = HPS_OK;
	double end = hps_now_s() + WAIT_MS / 1e3;
	struct hps_msg m;
	uint32_t peer;
	bool got;

	still_serves(s);
	assert_false(hps_net_refused(s->server, &peer, &err));
	hps_net_refuse(s->server, 1, "said by the test");
	while (st == HPS_OK) {
		st = hps_net_recv(s->good, 20, &m, &peer, &got, &err);
		assert_false(got);
		assert_true(hps_now_s() < end);
	}
	assert_int_equal(st, HPS_NET);
	assert_int_equal(peer, 0);
	assert_string_equal(err.msg, "refuses what was sent to it: said by the test");
	/* once: from then on it is not heard */
	assert_int_equal(hps_net_recv(s->good, 20, &m, &peer, &got, &err), HPS_OK);
}

/* The owner of a listener can tell that one of those it knows has been refused. */
static void a_refused_acquaintance_is_told_of(void **state)
{
	struct stage *s = *state;
	void *sock = attacker(s);
	struct hps_head h = good_head(2);
	struct hps_err why;
	uint32_t peer;

	attack(sock, 13); /* of a stranger: nobody's business */
	until_refused(s, 0);
	assert_false(hps_net_refused(s->server, &peer, &why));
	zmq_close(sock);
	sock = attacker(s);
	send_head(sock, &h, 0);
	receive(s->server, &peer);
	assert_int_equal(peer, 2);
	attack(sock, 15);
	until_refused(s, 1);
	assert_true(hps_net_refused(s->server, &peer, &why));
	assert_int_equal(peer, 2);
	assert_non_null(strstr(why.msg, "damaged"));
	assert_false(hps_net_refused(s->server, &peer, &why));
	zmq_close(sock);
}

static void many_connections_come_and_go(void **state)
{
	struct stage *s = *state;
	struct hps_head h = good_head(HPS_NODE_PROCESS);
	uint32_t peer;

	for (uint32_t i = 0; i < 150; i++) {
		void *sock = attacker(s);

		if (i % 3) {
			send_head(sock, &h, 0);
			receive(s->server, &peer);
			assert_true(peer >= HPS_PEER_ANON);
		} else {
			unsigned before = s->server->warned;

			zmq_send(sock, "x", 1, 0);
			until_refused(s, before);
		}
		zmq_close(sock);
	}
	assert_int_equal(s->server->conns.n, 150);
	assert_int_equal(s->server->conns.n_anon, 100);
	still_serves(s);
}

int main(void)
{
#define ON_STAGE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		ON_STAGE(bad_messages_are_refused_for_good),
		ON_STAGE(a_connection_keeps_its_number),
		ON_STAGE(a_forged_number_hurts_nobody_else),
		ON_STAGE(an_oversized_frame_ends_its_connection_only),
		ON_STAGE(peers_that_name_themselves_are_dropped),
		ON_STAGE(raw_bytes_do_no_harm),
		ON_STAGE(a_flood_starves_nobody),
		ON_STAGE(a_hostile_server_is_refused),
		ON_STAGE(who_is_refused_learns_why),
		ON_STAGE(a_refused_acquaintance_is_told_of),
		ON_STAGE(many_connections_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
