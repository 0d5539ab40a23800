/* The oracle of the runtime: one process, one loop, no messages.
 *
 * Replays a deployment's partition of layers and rows and its summation order (bsp, as
 * lib/ps/shard.h, lib/ring/ring.h and lib/train/replica.h state it) with the ops of lib/nn and the
 * plain optimizers; shares no code with the executor, the servers or the table.
 */
#ifndef HPS_TESTS_ORACLE_H
#define HPS_TESTS_ORACLE_H

#include "data/batch.h"
#include "graph/graph.h"
#include "job/job.h"

struct oracle;

/* job (model and deployment) and graph are borrowed. Aborts the test on any failure. */
struct oracle *oracle_new(const struct hps_job *job, const struct hps_graph *g);
void oracle_free(struct oracle *o);

/* One step over rows [begin, end) of data (end - begin <= deployment batch); returns the sum of
 * the samples' losses, added up over micro-batches in order. */
double oracle_step(struct oracle *o, uint32_t epoch, const struct hps_batch *data, uint64_t begin,
		   uint64_t end);

/* The model's flat dense vector now. */
const float *oracle_dense(const struct oracle *o);
/* Row of a key (dim floats), or NULL if it was never updated. */
const float *oracle_row(const struct oracle *o, uint32_t table, uint64_t key);
size_t oracle_rows(const struct oracle *o, uint32_t table);
/* Row number i of a table, in order of creation. */
const float *oracle_row_at(const struct oracle *o, uint32_t table, size_t i, uint64_t *key);

/* The last step's gradient sums, before the update: dense (flat), and rows by oracle_row's key. */
const float *oracle_dense_grad(const struct oracle *o);
const float *oracle_row_grad(const struct oracle *o, uint32_t table, uint64_t key);

#endif
