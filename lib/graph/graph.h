/* What each op costs and what crosses a cut: shapes, bytes, FLOPs. Pure.
 *
 * A cut after layer j divides layers 0..j from j+1..; across it travel, per sample,
 *   forward:  the output of every layer <= j that a layer > j (or the loss) reads;
 *             the dense features if a layer > j reads them; the keys of every slot that an
 *             embedding > j reads; always the row number (8 bytes) and the label (4 bytes);
 *   backward: the gradient of every layer output that went forward.
 * Floats are 4 bytes, keys 8. Sampled negatives never travel: they are a function of
 * (seed, epoch, row), drawn where they are needed.
 */
#ifndef HPS_GRAPH_GRAPH_H
#define HPS_GRAPH_GRAPH_H

#include <stdint.h>
#include "base/err.h"
#include "job/model.h"

/* One dense parameter tensor; tensors stand in layer order, W before b, in one flat
 * vector of floats for the whole model. */
struct hps_param {
	uint32_t layer;
	const char *suffix;  /* "W" or "b": "fc1.W" */
	uint32_t rows, cols; /* row-major; b: 1 x units */
	uint64_t offset;     /* floats from the start of the model's flat vector */
};

/* What a layer costs a sample. FLOPs count a multiply and an add as two:
 *   dense      forward 2*in*units + bias + activation (relu 1, sigmoid and tanh 4 a column);
 *              backward the same again for W, and once more for the input where anything
 *              below it is trained
 *   embedding, negatives: the pooling's adds; backward one add for each float looked up
 *   cosine     forward 6 a column + 4, backward 8 a column + 8
 *   concat, slice: none */
struct hps_layer_cost {
	uint64_t params; /* floats */
	uint64_t flops_forward, flops_backward;
	uint64_t keys; /* rows looked up a sample */
	uint64_t output_bytes;
	uint64_t row_bytes; /* bytes of embedding rows looked up, before deduplication */
};

/* What goes over the cut after a layer, in this order. */
struct hps_cut {
	uint32_t *layer; /* n_layers outputs, ascending */
	uint32_t n_layers;
	uint32_t *slot; /* n_slots, ascending */
	uint32_t n_slots;
	int dense;				/* the dense features too */
	uint64_t cols;				/* sum of the outputs' columns */
	uint64_t forward_bytes, backward_bytes; /* a sample */
};

struct hps_graph {
	const struct hps_model *model; /* borrowed; outlives the graph */
	struct hps_param *param;
	uint32_t n_params;
	uint64_t n_floats;	     /* of the flat vector */
	struct hps_layer_cost *cost; /* n_layers */
	struct hps_cut *cut;	     /* n_layers; cut[n_layers-1] is empty */
	uint64_t *layer_offset;	     /* n_layers + 1: layer l's floats in the flat vector */
};

/* Of a model that hps_model_read has accepted; on failure (HPS_MEMORY) *g is empty. */
enum hps_status hps_graph_build(const struct hps_model *m, struct hps_graph *g,
				struct hps_err *err);
void hps_graph_release(struct hps_graph *g);

/* The key of a slot's hash in a table: hash mod rows, or the hash if rows is 0. */
static inline uint64_t hps_table_key(uint64_t hash, uint64_t rows)
{
	return rows ? hash % rows : hash;
}

/* The i-th negative of global row `row`: hps_hash3 of (seed mixed with epoch and layer),
 * row and i, reduced to rows (the table's; 0 = the whole hash, which no checked model has). */
uint64_t hps_negative_key(uint64_t seed, uint32_t epoch, uint32_t layer, uint64_t row, uint32_t i,
			  uint64_t rows);

/* Initial values of a run of n floats from `first` of the model's flat vector: uniform in
 * +-sqrt(6 / (rows + cols)) for W (Glorot, Bengio 2010), 0 for b; drawn from
 * (seed, param number, element), the same on every host and shard. */
void hps_param_init_range(const struct hps_graph *g, uint64_t first, uint64_t n, uint64_t seed,
			  float *out);

/* Initial value j of table row `key`: per the table's init, from (seed, table, key, j). */
void hps_row_init(const struct hps_table_spec *t, uint32_t table, uint64_t key, uint64_t seed,
		  float *row /* dim */);

#endif
