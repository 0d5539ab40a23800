/* A shard's saved file, fed anything: refused with a place, or loaded and exported; no crash, no
 * memory beyond what the file could hold. The first byte says how much of the checksums is put
 * right beforehand (0: none), so that what lies behind them is reached. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/rng.h"
#include "serve/state_file_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char model[] =
	"{\"name\":\"fuzz\",\"inputs\":{\"slots\":1,\"dense\":1},\"tables\":[{\"name\":\"a\",\"dim\":2,"
	"\"max_rows\":1000,\"optimizer\":{\"kind\":\"adagrad\",\"lr\":0.1}}],\"layers\":["
	"{\"name\":\"e\",\"op\":\"embedding\",\"table\":\"a\",\"slots\":[0],\"pooling\":\"sum\"},"
	"{\"name\":\"in\",\"op\":\"concat\",\"inputs\":[\"e\",\"dense\"]},"
	"{\"name\":\"f\",\"op\":\"dense\",\"inputs\":[\"in\"],\"units\":1,\"activation\":\"linear\"}],"
	"\"loss\":{\"kind\":\"sigmoid_cross_entropy\",\"inputs\":[\"f\"]},"
	"\"train\":{\"batch\":4,\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.1}}}";

static char here[] = "here", cpu[] = "cpu", nowhere[] = "ipc:///nowhere";
static struct hps_deployed_shard shard_of = { here, nowhere };
static struct hps_deployed_replica replica = { here, nowhere };
static struct hps_deployed_stage stage = { 0, 2, cpu, HPS_DENSE_PS, &replica, 1 };

static void must(int ok)
{
	if (!ok)
		abort();
}

static void make_job(struct hps_job *job, struct hps_graph *g)
{
	struct hps_err err = { 0 };
	struct hps_doc *d = NULL;
	struct hps_at at;

	must(hps_doc_parse(model, sizeof(model) - 1, "model", &d, &err) == HPS_OK);
	at = hps_at_root(d, "model");
	must(hps_model_read(&at, &job->model, &err) == HPS_OK);
	hps_doc_free(d);
	must(hps_graph_build(&job->model, g, NULL) == HPS_OK);
	job->deployment = (struct hps_deployment){ .job = here,
						   .coordinator = { here, nowhere },
						   .shard = &shard_of,
						   .n_shards = 1,
						   .stage = &stage,
						   .n_stages = 1,
						   .batch = 4,
						   .micro_batches = 1 };
}

/* Put checksums right, as far as the blocks can be followed. */
static void mend(uint8_t *p, size_t size, unsigned blocks)
{
	struct state_head h;
	struct state_block b;
	size_t at = sizeof(h);

	if (size < sizeof(h))
		return;
	memcpy(&h, p, sizeof(h));
	h.sum = hps_hash_bytes(&h, offsetof(struct state_head, sum), 0);
	memcpy(p, &h, sizeof(h));
	while (blocks-- && size - at >= sizeof(b)) {
		memcpy(&b, p + at, sizeof(b));
		if (b.bytes <= size - at - sizeof(b))
			b.body_sum = hps_hash_bytes(p + at + sizeof(b), b.bytes, 0);
		b.head_sum = hps_hash_bytes(&b, offsetof(struct state_block, head_sum), 0);
		memcpy(p + at, &b, sizeof(b));
		if (b.bytes > size - at - sizeof(b))
			return;
		at += sizeof(b) + b.bytes;
	}
}

static void load(const struct hps_state *s, struct hps_job *job, const struct hps_graph *g)
{
	struct hps_err err = { 0 };
	struct hps_shard *shard = NULL;
	enum hps_status st;

	must(hps_shard_new(job, g, 0, &shard, NULL) == HPS_OK);
	st = hps_state_load(s, job, &shard, &err);
	must(st == HPS_OK || (st == HPS_BAD_INPUT && err.where[0] && err.msg[0]));
	hps_shard_free(shard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char path[64], *paths[1] = { path };
	struct state_reader r;
	struct hps_err err = { 0 };
	struct hps_graph g;
	struct hps_job job = { 0 };
	struct hps_doc *d = NULL;
	int fd = memfd_create("state", 0);
	uint8_t *copy = malloc(size ? size : 1);

	must(fd >= 0 && copy);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (size) {
		memcpy(copy, data + 1, size - 1);
		mend(copy, size - 1, data[0]);
		must(write(fd, copy, size - 1) == (ssize_t)size - 1);
	}
	make_job(&job, &g);
	if (hps_state_reader_open(&r, path, &err) == HPS_OK) {
		struct hps_state s = { paths, 1, r.head.digest,	 r.head.save, 0,
				       0,     0, r.head.n_floats };

		hps_state_reader_close(&r);
		load(&s, &job, &g);
		/* where it cannot write: what is read is checked before */
		must(hps_state_export(&s, NULL, "/dev/null/x", &d, &err) != HPS_OK);
	}
	hps_graph_release(&g);
	hps_model_release(&job.model);
	free(copy);
	close(fd);
	return 0;
}
