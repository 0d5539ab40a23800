/* Small jobs for tests: a narrow model of testdata, a deployment of any shape, random rows. */
#ifndef HPS_TESTS_TINY_H
#define HPS_TESTS_TINY_H

#include "data/batch.h"
#include "graph/graph.h"
#include "job/job.h"

struct tiny_shape {
	const char *model; /* testdata/models/narrow/MODEL.json */
	uint32_t stages, replicas[3], shards, micro_batches, batch;
	enum hps_dense_sync dense_sync; /* of every stage */
	enum hps_sync sync;
};

struct tiny {
	struct hps_job job; /* model and deployment; doc NULL */
	struct hps_graph graph;
};

/* Layers are cut into stages of nearly equal numbers. Endpoints are made-up. Fails the test on
 * any error. Release with tiny_release. */
void tiny_init(struct tiny *t, const struct tiny_shape *s);
void tiny_release(struct tiny *t);

/* rows random rows for the model's inputs, a few ids a slot, labels of both kinds. */
void tiny_data(const struct hps_model *m, uint32_t rows, uint64_t seed, struct hps_batch *b);

/* "ctrdnn: 2 stages 3+1, 2 shards, 4 micro-batches, batch 24, ring" */
const char *tiny_name(const struct tiny_shape *s, char *text, size_t size);

#endif
