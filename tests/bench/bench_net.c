/* How much of what bare ZeroMQ moves does lib/net move? Dense push and pull of one shard's
 * parameters, both ways, the same bytes over the same transport in interleaved rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <unistd.h>
#include <zmq.h>

#include "base/clock.h"
#include "net/net.h"

enum { ROUNDS = 9, STEPS = 40, BYTES = 431202 * 4 /* the dense parameters of CTRDNN */ };

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "bench_net: %s failed\n", what);
	exit(1);
}

/* Buffers are the benchmark's own and used again and again: nothing to free. */
static void keep(void *data, void *hint)
{
	(void)data;
	(void)hint;
}

/* --- lib/net: PUSH one way, DENSE_PULL and its answer DENSE the other --- */

struct side {
	struct hps_net *net;
	void *bare;
	void *bytes;
	int rounds;
};

static struct hps_net *node(struct hps_net_ctx *ctx, uint32_t self)
{
	struct hps_net_opts o = {
		.job = 1, .self = self, .max_frame = 2 * BYTES, .known_nodes = 2
	};
	struct hps_net *n = NULL;

	check(hps_net_new(ctx, &o, &n, NULL) == HPS_OK, "hps_net_new");
	return n;
}

static void put(struct hps_net *n, uint32_t peer, uint16_t type, void *bytes)
{
	struct hps_msg m = { .head = { .type = type } };

	if (bytes)
		m.frame[m.n_frames++] = (struct hps_frame){ bytes, BYTES, keep, NULL };
	check(hps_net_send(n, peer, &m, NULL) == HPS_OK, "hps_net_send");
}

static size_t get(struct hps_net *n, uint16_t type)
{
	struct hps_msg m;
	uint32_t peer;
	bool got = false;
	size_t len;

	check(hps_net_recv(n, 60000, &m, &peer, &got, NULL) == HPS_OK && got, "hps_net_recv");
	check(m.head.type == type, "order");
	len = m.n_frames ? m.frame[0].len : 0;
	hps_msg_release(&m);
	return len;
}

static void *net_server(void *arg)
{
	struct side *s = arg;

	for (int i = 0; i < s->rounds * STEPS; i++) {
		check(get(s->net, HPS_MSG_DENSE_PUSH) == BYTES, "push");
		check(get(s->net, HPS_MSG_DENSE_PULL) == 0, "pull");
		put(s->net, 1, HPS_MSG_DENSE, s->bytes);
	}
	return NULL;
}

static double net_round(struct side *s)
{
	double t = hps_now_s();

	for (int i = 0; i < STEPS; i++) {
		put(s->net, 0, HPS_MSG_DENSE_PUSH, s->bytes);
		put(s->net, 0, HPS_MSG_DENSE_PULL, NULL);
		check(get(s->net, HPS_MSG_DENSE) == BYTES, "answer");
	}
	return hps_now_s() - t;
}

/* --- bare ZeroMQ: one message there, one back --- */

static void bare_put(void *sock, const void *id, size_t id_len, void *bytes)
{
	zmq_msg_t m;

	if (id)
		check(zmq_send(sock, id, id_len, ZMQ_SNDMORE) == (int)id_len, "zmq_send");
	check(zmq_msg_init_data(&m, bytes, BYTES, keep, NULL) == 0, "zmq_msg_init_data");
	check(zmq_msg_send(&m, sock, 0) == BYTES, "zmq_msg_send");
}

static void bare_get(void *sock)
{
	zmq_msg_t m;

	zmq_msg_init(&m);
	check(zmq_msg_recv(&m, sock, 0) == BYTES, "zmq_msg_recv");
	zmq_msg_close(&m);
}

static void *bare_server(void *arg)
{
	struct side *s = arg;
	char id[16];

	for (int i = 0; i < s->rounds * STEPS; i++) {
		int n = zmq_recv(s->bare, id, sizeof(id), 0);

		check(n > 0, "zmq_recv");
		bare_get(s->bare);
		bare_put(s->bare, id, (size_t)n, s->bytes);
	}
	return NULL;
}

static double bare_round(struct side *s)
{
	double t = hps_now_s();

	for (int i = 0; i < STEPS; i++) {
		bare_put(s->bare, NULL, 0, s->bytes);
		bare_get(s->bare);
	}
	return hps_now_s() - t;
}

static void *bare_socket(void *ctx, int type)
{
	void *s = zmq_socket(ctx, type);
	int none = 0;

	check(s != NULL, "zmq_socket");
	zmq_setsockopt(s, ZMQ_SNDHWM, &none, sizeof(none));
	zmq_setsockopt(s, ZMQ_RCVHWM, &none, sizeof(none));
	zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof(none));
	return s;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	char dir[] = "/tmp/hpsbench-XXXXXX", at[64];
	double net_s[ROUNDS], bare_s[ROUNDS], share[ROUNDS], bytes = 2.0 * BYTES * STEPS;
	struct side server = { .rounds = ROUNDS + 1 }, client = { 0 };
	void *cs = zmq_ctx_new(), *cc = zmq_ctx_new();
	struct hps_net_ctx *ns, *nc;
	pthread_t tn, tb;

	check(mkdtemp(dir) != NULL, "mkdtemp");
	server.bytes = calloc(1, BYTES);
	client.bytes = calloc(1, BYTES);
	check(server.bytes && client.bytes, "calloc");
	check(hps_net_ctx_new(&ns, NULL) == HPS_OK && hps_net_ctx_new(&nc, NULL) == HPS_OK, "ctx");
	server.net = node(ns, 0);
	client.net = node(nc, 1);
	snprintf(at, sizeof(at), "ipc://%s/net", dir);
	check(hps_net_listen(server.net, at, NULL) == HPS_OK, "listen");
	check(hps_net_connect(client.net, 0, at, NULL) == HPS_OK, "connect");
	server.bare = bare_socket(cs, ZMQ_ROUTER);
	client.bare = bare_socket(cc, ZMQ_DEALER);
	snprintf(at, sizeof(at), "ipc://%s/bare", dir);
	check(zmq_bind(server.bare, at) == 0 && zmq_connect(client.bare, at) == 0, "bare");
	check(!pthread_create(&tn, NULL, net_server, &server), "thread");
	check(!pthread_create(&tb, NULL, bare_server, &server), "thread");
	net_round(&client); /* warm-up */
	bare_round(&client);
	for (int r = 0; r < ROUNDS; r++) {
		net_s[r] = net_round(&client);
		bare_s[r] = bare_round(&client);
		share[r] = bare_s[r] / net_s[r];
	}
	pthread_join(tn, NULL);
	pthread_join(tb, NULL);
	qsort(share, ROUNDS, sizeof(double), by_value);
	qsort(net_s, ROUNDS, sizeof(double), by_value);
	qsort(bare_s, ROUNDS, sizeof(double), by_value);
	printf("{\"bench\": \"net.dense.share\", \"value\": %.4f, \"reach\": 0.9, "
	       "\"unit\": \"ratio\", \"net_bytes_per_s\": %.4g, \"bare_bytes_per_s\": %.4g, "
	       "\"frame_bytes\": %d, \"transport\": \"ipc\"}\n",
	       share[ROUNDS / 2], bytes / net_s[ROUNDS / 2], bytes / bare_s[ROUNDS / 2], BYTES);
	hps_net_free(client.net, 0);
	hps_net_free(server.net, 0);
	hps_net_ctx_free(nc);
	hps_net_ctx_free(ns);
	zmq_close(client.bare);
	zmq_close(server.bare);
	zmq_ctx_term(cc);
	zmq_ctx_term(cs);
	unlink(at + strlen("ipc://"));
	free(server.bytes);
	free(client.bytes);
	rmdir(dir);
	return fflush(stdout) || ferror(stdout) ? 4 : 0;
}
