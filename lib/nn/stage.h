/* A stage as a program: the forward and backward of layers first..last on a backend.
 *
 * Parameters are one flat vector: the slice [param_offset, param_offset + n_floats) of the
 * model's (graph/graph.h). Gradients are sums over samples, added to what the caller's
 * vector holds. Micro-batches are processed one at a time; a struct hps_pass holds what
 * one micro-batch needs between forward and backward, so several may be in flight.
 *
 * Order of every sum (so that any partition of layers gives the same bits): the gradient
 * of a layer's output is: what came from the next stage, then the stage's own readers in
 * descending layer order (the loss first).
 *
 * Threads: a stage is read-only once built, so passes of several threads may share it; one
 * pass belongs to one thread at a time. 0 rows, and fewer than max_rows, are legal everywhere.
 */
#ifndef HPS_NN_STAGE_H
#define HPS_NN_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "graph/graph.h"
#include "tensor/backend.h"

struct hps_stage;
struct hps_pass;

/* An embedding (or negatives) layer's rows for one micro-batch. index (rows * keys) says
 * for each (sample, key) which unique row; unique (n_unique, dim). grad likewise: the
 * backward pass clears it and adds, samples in ascending order. Owned by the pass. Two
 * layers on one table have a lookup each. */
struct hps_lookup {
	uint32_t layer, table, dim;
	uint32_t keys; /* a sample: n_slots or count */
	uint32_t n_unique;
	uint64_t *key;	 /* n_unique table keys, in order of first appearance */
	uint32_t *index; /* rows * keys */
	float *unique;	 /* n_unique * dim: filled by the caller between key and forward */
	float *grad;	 /* n_unique * dim */
};

/* Build the program for micro-batches of at most max_rows. The graph and the backend
 * outlive the stage. HPS_BAD_INPUT for what the ops and losses here cannot do (nce's noise
 * of a table without rows, say), HPS_DEVICE for a backend that does not fit. */
enum hps_status hps_stage_new(const struct hps_graph *g, uint32_t first, uint32_t last,
			      const struct hps_backend *be, uint32_t max_rows,
			      struct hps_stage **out, struct hps_err *err);
void hps_stage_free(struct hps_stage *s);
uint64_t hps_stage_param_offset(const struct hps_stage *s);
uint64_t hps_stage_n_floats(const struct hps_stage *s);	 /* may be 0 */
uint32_t hps_stage_n_lookups(const struct hps_stage *s); /* embedding and negatives layers */

enum hps_status hps_pass_new(struct hps_stage *s, struct hps_pass **out, struct hps_err *err);
void hps_pass_free(struct hps_pass *p);

/* What enters a stage, laid out as the cut before it says (first stage: from the batch).
 * Pointers are borrowed until backward of this pass is done. */
struct hps_stage_in {
	uint32_t rows;
	const uint64_t *row; /* (rows) global row numbers */
	const float *label;  /* (rows) */
	const float *dense;  /* (rows, model.dense), or NULL if no layer from here on reads it */
	const uint64_t *key; /* (rows, n_key_slots) hashes */
	const uint32_t *key_slot; /* n_key_slots: the slot of each column */
	uint32_t n_key_slots;
	const float *activation; /* the cut's layer outputs one after another: for each layer
				  * of cut.layer a (rows, cols) row-major block */
	uint64_t seed;		 /* for negatives */
	uint32_t epoch;
};

/* Step 1: take the input, deduplicate the keys of every lookup over the micro-batch. After
 * it, hps_pass_lookup(p, i)->key says what to pull. HPS_BAD_INPUT, and the pass as it
 * was, if there are too many rows or something that the stage reads is missing. */
enum hps_status hps_pass_begin(struct hps_pass *p, const struct hps_stage_in *in,
			       struct hps_err *err);
struct hps_lookup *hps_pass_lookup(struct hps_pass *p, uint32_t i);

/* Step 2: forward with the stage's parameters (n_floats). training=false skips what only
 * backward needs. */
void hps_pass_forward(struct hps_pass *p, const float *params, bool training);
/* The activations that cross the cut after the stage (blocks as hps_stage_in.activation);
 * *n floats; NULL for the last stage. Valid until the next begin. */
const float *hps_pass_output(const struct hps_pass *p, uint64_t *n);
/* Last stage: sum of the samples' losses, and scores (rows) in [0,1] where the loss
 * defines a probability. */
double hps_pass_loss(const struct hps_pass *p);
const float *hps_pass_scores(const struct hps_pass *p);

/* Step 3: backward. grad_out: gradients of the output blocks (NULL for the last stage).
 * Adds parameter gradients to grads (n_floats); fills every lookup's grad; and the gradients
 * of the input activations: hps_pass_input_grad (blocks as they came in; NULL if none; zero
 * for a layer that depends on nothing trainable). Once after each forward in training. */
void hps_pass_backward(struct hps_pass *p, const float *params, const float *grad_out,
		       float *grads);
const float *hps_pass_input_grad(const struct hps_pass *p, uint64_t *n);

/* One layer alone, for the profiler to time: its forward or backward on what the pass
 * holds after a full forward and backward; values and gradients become meaningless. An
 * embedding's forward includes the deduplication of its keys; the model's last layer
 * carries the loss. */
void hps_pass_run_layer(struct hps_pass *p, uint32_t layer, const float *params, float *grads,
			bool backward);

#endif
