/* The deployment section: which process runs what, and where it listens.
 *
 * Nodes of a job are numbered from its deployment, the same on every host:
 * 0 the coordinator, 1 .. S the shards, S+1 .. the replicas, stage by stage.
 *
 *   { "digest": "16 hex digits", "job": "ctrdnn-5f21",
 *     "coordinator": { "host": "localhost", "endpoint": "ipc:///tmp/x/c" },
 *     "shards": [ { "host": "localhost", "endpoint": "ipc:///tmp/x/s0" }, ... ],
 *     "stages": [ { "first": 0, "last": 1, "type": "cpu", "dense_sync": "ps",
 *                   "replicas": [ { "host": "localhost", "endpoint": "..." }, ... ] }, ... ],
 *     "batch": 1000, "micro_batches": 4, "epochs": 1, "sync": "bsp", "seed": 1,
 *     "predicted_samples_per_s": 30000, "price_per_hour": 0.12, "simulated": false,
 *     "usage": { as in usage.h; may be absent } }
 *
 * Must be there: digest, job, coordinator, shards, stages, batch. Defaults: dense_sync ps,
 * micro_batches 1, epochs 1, sync bsp, seed 1, numbers 0, simulated false. The coordinator
 * and the first shard are on one host; every endpoint is used once.
 */
#ifndef HPS_JOB_DEPLOYMENT_H
#define HPS_JOB_DEPLOYMENT_H

#include <stdbool.h>
#include <stdint.h>
#include "doc/doc.h"
#include "job/model.h"
#include "job/usage.h"

enum hps_dense_sync { HPS_DENSE_PS, HPS_DENSE_RING };

struct hps_deployed_shard {
	char *host, *endpoint;
};

struct hps_deployed_replica {
	char *host;
	char *endpoint; /* where it listens for earlier stages and its ring */
};

struct hps_deployed_stage {
	uint32_t first, last; /* layers */
	char *type;
	enum hps_dense_sync dense_sync; /* "ps" or "ring" */
	struct hps_deployed_replica *replica;
	uint32_t n_replicas;
};

struct hps_deployment {
	uint64_t digest; /* of the model */
	char *job;	 /* a name, unique a run: part of ipc paths and of every message's job id */
	struct {
		char *host, *endpoint;
	} coordinator; /* in the hps-serve of the first shard's host */
	struct hps_deployed_shard *shard;
	uint32_t n_shards;
	struct hps_deployed_stage *stage;
	uint32_t n_stages;
	uint64_t batch;		/* rows a step over all first-stage replicas */
	uint32_t micro_batches; /* a step and first-stage replica */
	uint32_t epochs;
	enum hps_sync sync;
	uint64_t seed;
	double predicted_samples_per_s; /* what the cost model expects here; 0 = unknown */
	double price_per_hour;
	bool simulated;
	bool has_usage;
	struct hps_usage usage;
};

enum { HPS_MAX_NODES = 1 << 20 };

/* Endpoints: "ipc://PATH" (at most 107 bytes of path) or "tcp://ADDRESS:PORT". */
enum hps_status hps_deployment_read(const struct hps_at *at, struct hps_deployment *d,
				    struct hps_err *err);
struct hps_doc *hps_deployment_write(const struct hps_deployment *d);
void hps_deployment_release(struct hps_deployment *d);

uint32_t hps_deployment_nodes(const struct hps_deployment *d);
uint32_t hps_node_of_shard(const struct hps_deployment *d, uint32_t shard);
uint32_t hps_node_of_replica(const struct hps_deployment *d, uint32_t stage, uint32_t replica);
/* asp, evaluation: micro-batches that a replica of `stage` may have at each replica of the next
 * one: as many as stages follow, and one, so that a line of equal stages stays full. */
uint32_t hps_stage_credit(uint32_t n_stages, uint32_t stage);
/* "coordinator", "shard 1", "stage 0 replica 2" with the host: for messages. */
void hps_node_name(const struct hps_deployment *d, uint32_t node, char *out, size_t size);
/* A digest over the whole deployment and model digest: peers of one job agree on it. */
uint64_t hps_deployment_id(const struct hps_deployment *d);

#endif
