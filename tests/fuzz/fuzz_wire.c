/* A shard and a client, fed any messages: no crash, no hang; what does not hold leaves the shard as
 * it was.
 *
 * Input: messages one after another: a byte (bit 7: to the client, else to the shard; bit 6: make
 * the header one that the shard could get; the rest: how the frame is cut), a header of 72 bytes,
 * two bytes with the length of the payload, the payload. Payloads are cut into frames: one, three
 * by 8 and 8-byte keys, or one a byte.  The model is fixed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "ps/client.h"
#include "ps/shard.h"
#include "wire/control.h"
#include "wire/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_SHARDS = 2, N_TABLES = 2 };

static const char model[] =
	"{\"name\":\"fuzz\",\"inputs\":{\"slots\":2,\"dense\":3},\"tables\":["
	"{\"name\":\"a\",\"dim\":4,\"max_rows\":20,\"init\":{\"kind\":\"uniform\",\"scale\":0.1},"
	"\"optimizer\":{\"kind\":\"adam\",\"lr\":0.1}},"
	"{\"name\":\"b\",\"dim\":3,\"rows\":50,\"optimizer\":{\"kind\":\"adagrad\",\"lr\":0.1}}],"
	"\"layers\":["
	"{\"name\":\"ea\",\"op\":\"embedding\",\"table\":\"a\",\"slots\":[0],\"pooling\":\"sum\"},"
	"{\"name\":\"eb\",\"op\":\"embedding\",\"table\":\"b\",\"slots\":[1],\"pooling\":\"sum\"},"
	"{\"name\":\"in\",\"op\":\"concat\",\"inputs\":[\"ea\",\"eb\",\"dense\"]},"
	"{\"name\":\"fc\",\"op\":\"dense\",\"inputs\":[\"in\"],\"units\":2,\"activation\":\"linear\"}],"
	"\"loss\":{\"kind\":\"softmax_cross_entropy\",\"inputs\":[\"fc\"]},"
	"\"train\":{\"batch\":4,\"optimizer\":{\"kind\":\"adam\",\"lr\":0.1}}}";

static void must(int ok)
{
	if (!ok)
		abort();
}

struct world {
	struct hps_job job;
	struct hps_graph graph;
	struct hps_deployed_shard shard_of[N_SHARDS];
	struct hps_deployed_stage stage;
	struct hps_deployed_replica replica[2];
	struct hps_shard *shard;
	struct hps_ps_client *client;
	struct hps_outbox out;
	float rows[16], params[64], state[128];
	uint64_t key[4];
};

static char here[] = "here", cpu[] = "cpu", job_name[] = "fuzz", nowhere[] = "ipc:///nowhere";

static void world_init(struct world *w, bool asp)
{
	struct hps_doc *d = NULL;
	struct hps_at at;
	struct hps_deployment *dep = &w->job.deployment;

	must(hps_doc_parse(model, sizeof(model) - 1, "model", &d, NULL) == HPS_OK);
	at = hps_at_root(d, "model");
	must(hps_model_read(&at, &w->job.model, NULL) == HPS_OK);
	hps_doc_free(d);
	must(hps_graph_build(&w->job.model, &w->graph, NULL) == HPS_OK);
	for (int i = 0; i < 2; i++) {
		w->shard_of[i] = (struct hps_deployed_shard){ here, nowhere };
		w->replica[i] = (struct hps_deployed_replica){ here, nowhere };
	}
	w->stage = (struct hps_deployed_stage){ 0,	    w->job.model.n_layers - 1,
						cpu,	    HPS_DENSE_PS,
						w->replica, 2 };
	dep->job = job_name;
	dep->coordinator.host = here;
	dep->coordinator.endpoint = nowhere;
	dep->shard = w->shard_of;
	dep->n_shards = N_SHARDS;
	dep->stage = &w->stage;
	dep->n_stages = 1;
	dep->batch = 4;
	dep->micro_batches = 2;
	dep->sync = asp ? HPS_ASP : HPS_BSP;
	must(hps_shard_new(&w->job, &w->graph, 0, &w->shard, NULL) == HPS_OK);
	must(hps_ps_client_new(&w->job, &w->graph, 0, 0, 7, &w->client, NULL) == HPS_OK);
}

/* The client waits for something of every kind. */
static void world_ask(struct world *w)
{
	struct hps_ps_rows rows = { 0, 4, 4, w->key, w->rows, NULL };

	for (uint64_t i = 0; i < 4; i++)
		w->key[i] = i * 77;
	must(hps_ps_pull(w->client, 0, 0, 0, 0, &rows, 1, &w->out, NULL) == HPS_OK);
	must(hps_ps_dense_pull(w->client, 0, HPS_FLAG_STATE, w->params, w->state, &w->out, NULL) ==
	     HPS_OK);
	must(hps_ps_flush(w->client, 0, &w->out, NULL) == HPS_OK);
	hps_outbox_release(&w->out);
}

static void world_release(struct world *w)
{
	hps_outbox_release(&w->out);
	hps_ps_client_free(w->client);
	hps_shard_free(w->shard);
	hps_graph_release(&w->graph);
	hps_model_release(&w->job.model);
}

static void cut(struct hps_msg *m, const uint8_t *p, size_t len, unsigned how)
{
	size_t border[HPS_MAX_FRAMES + 1] = { 0 };
	uint32_t n = how % (HPS_MAX_FRAMES + 1);

	for (uint32_t i = 1; i < n; i++) /* 8 or 16 bytes each, the last takes the rest */
		border[i] = border[i - 1] + (how & 8 ? 16 : 8) < len
				    ? border[i - 1] + (how & 8 ? 16 : 8)
				    : len;
	for (uint32_t i = 0; i < n; i++) {
		size_t end = i + 1 == n ? len : border[i + 1];

		must(hps_msg_copy(m, p + border[i], end - border[i], NULL) == HPS_OK);
	}
}

/* A header that gets past the first checks, so that what lies behind them is reached. */
static void tame(struct hps_head *h, bool to_client)
{
	h->type = 1 + h->type % HPS_MSG_CONTROL;
	h->flags &= HPS_FLAG_EVAL | HPS_FLAG_STATE;
	h->src = to_client ? 1 + h->src % N_SHARDS : 1 + N_SHARDS + h->src % 2;
	h->seq = 1 + h->seq % 300;
	h->step %= 12;
	h->mb %= 5;
	h->arg %= 2;
	h->incarnation %= 3;
	h->count %= 3;
}

static uint64_t rows_of(const struct world *w)
{
	uint64_t n = 0;

	for (uint32_t t = 0; t < N_TABLES; t++) {
		struct hps_table_stats s;

		hps_table_stats(hps_shard_table(w->shard, t), &s);
		n += s.rows;
	}
	return n;
}

static void feed_shard(struct world *w, struct hps_msg *m)
{
	struct hps_shard_stats before, after;
	uint64_t rows = rows_of(w);
	struct hps_err err = { 0 };
	enum hps_status st;

	hps_shard_stats(w->shard, &before);
	st = hps_shard_handle(w->shard, m, &w->out, &err);
	must(m->n_frames == 0);
	if (st == HPS_NET) {
		must(err.status == HPS_NET && err.msg[0]);
		hps_shard_stats(w->shard, &after);
		must(!memcmp(&before, &after, sizeof(before)) && rows == rows_of(w));
		must(w->out.n == 0);
	} else {
		must(st == HPS_OK);
	}
	hps_outbox_release(&w->out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t dims[N_TABLES] = { 4, 3 };
	struct world *w = calloc(1, sizeof(*w));
	size_t at = 1;

	must(w != NULL);
	world_init(w, size && data[0] & 1);
	world_ask(w);
	while (at + 1 + HPS_HEAD_BYTES + 2 <= size) {
		uint8_t how = data[at];
		struct hps_msg m = { 0 };
		struct hps_ps_event ev;
		struct hps_doc *d = NULL;
		uint8_t again[HPS_HEAD_BYTES];
		size_t len;
		bool good = hps_head_decode(data + at + 1, HPS_HEAD_BYTES, &m.head, NULL) == HPS_OK;

		if (good) { /* what is read is what was written */
			hps_head_encode(&m.head, again);
			must(!memcmp(again, data + at + 1, HPS_HEAD_BYTES));
		} else {
			memcpy(&m.head, data + at + 1,
			       sizeof(m.head) < HPS_HEAD_BYTES ? sizeof(m.head) : HPS_HEAD_BYTES);
		}
		at += 1 + HPS_HEAD_BYTES;
		len = data[at] | (size_t)data[at + 1] << 8;
		at += 2;
		if (len > size - at)
			len = size - at;
		cut(&m, data + at, len, how & 63);
		at += len;
		if (how & 64)
			tame(&m.head, how & 128);
		(void)hps_dir_check(&m, dims, N_TABLES, NULL);
		if (hps_control_unpack(&m, &d, NULL) == HPS_OK)
			hps_doc_free(d);
		if (how & 128) {
			(void)hps_ps_message(w->client, &m, &ev, NULL);
			must(m.n_frames == 0);
		} else {
			feed_shard(w, &m);
		}
	}
	world_release(w);
	free(w);
	return 0;
}
