/* How a stage is laid out; private to lib/nn.
 *
 * The program is one node a layer. Every matrix of a pass, values and gradients alike, is a
 * place in one of a few areas, so that layers may share memory:
 *
 *   DENSE | IN | GRAD_OUT      borrowed: dense features, blocks that came over a cut
 *   OUT   | IN_GRAD            blocks that go over a cut, contiguous as the wire wants them
 *   ACT                        the other layers' outputs
 *   GRAD                       gradients, reused once a layer's backward is done
 *
 * A layer read by a concat writes straight into the concat's columns; a slice is a view of
 * its input; the gradient of a layer that only a concat reads is a view of the concat's.
 */
#ifndef HPS_NN_STAGE_INT_H
#define HPS_NN_STAGE_INT_H

#include "nn/stage.h"

enum hps_area {
	HPS_AREA_DENSE,
	HPS_AREA_IN,
	HPS_AREA_GRAD_OUT,
	HPS_AREA_OUT,
	HPS_AREA_IN_GRAD,
	HPS_AREA_ACT,
	HPS_AREA_GRAD,
	HPS_N_AREAS,
};

/* A (rows, cols) matrix at area + rows * before + col, with leading dimension ld. */
struct hps_place {
	enum hps_area area;
	uint64_t before; /* columns before it; whole cache lines in ACT and GRAD */
	uint32_t col, ld;
};

/* One input of a node. */
struct hps_edge {
	uint32_t cols;
	uint32_t at; /* concat: its first column in the output */
	struct hps_place value, grad;
	bool wants_grad;     /* something trainable lies above it */
	bool adds;	     /* others wrote its gradient before: add to it */
	bool value_in_place; /* concat, slice: nothing to copy forward */
	bool grad_in_place;  /* concat: nothing to copy backward */
};

struct hps_node {
	uint32_t id;
	const struct hps_layer *layer;
	const struct hps_op_code *code;
	struct hps_place value, grad;
	struct hps_edge *edge;
	uint32_t n_edges;
	uint32_t lookup; /* embedding, negatives: its number */
	bool wants_grad;
	uint64_t param; /* dense: W in the stage's vector of floats, b behind it */
};

/* The loss, where the stage has it. */
struct hps_loss_node {
	const struct hps_loss *spec;
	const struct hps_loss_code *code; /* NULL: not here */
	struct hps_edge edge[3];
	uint32_t coef_cols; /* floats a row kept for backward */
	float log_kq;	    /* nce: log(count / rows) */
};

/* Copy or clear between blocks at a stage's border. */
struct hps_move {
	struct hps_place from, to;
	uint32_t cols;
};

struct hps_stage {
	const struct hps_graph *g;
	const struct hps_backend *be;
	uint32_t first, last, max_rows;
	struct hps_node *node;
	uint32_t n_nodes;
	struct hps_edge *edges; /* all nodes' */
	struct hps_loss_node loss;
	uint32_t *lookup_node; /* node of each lookup */
	uint32_t n_lookups;
	uint32_t max_keys; /* the most keys a sample of one lookup */
	bool reads_slots, reads_dense, draws;
	struct hps_move *forward_copy;	 /* layers that only travel through */
	struct hps_move *backward_copy;	 /* gradients that come from the next stage */
	struct hps_move *backward_clear; /* input gradients that nothing here feeds */
	uint32_t n_forward_copy, n_backward_copy, n_backward_clear;
	uint64_t cols[HPS_N_AREAS]; /* floats a row of each area */
};

struct hps_pass {
	const struct hps_stage *stage;
	struct hps_stage_in in;
	uint32_t rows;
	const float *ro[HPS_N_AREAS];
	float *rw[HPS_N_AREAS]; /* NULL for what is borrowed */
	struct hps_lookup *lookup;
	uint32_t *column; /* slot to column of in.key */
	uint32_t *hash;	  /* dedup's slots */
	float *scores, *coef;
	double loss;
};

/* What an op does; rows > 0 whenever one of these is called. */
struct hps_op_code {
	uint32_t min_inputs, max_inputs;
	void (*forward)(struct hps_pass *p, const struct hps_node *n, const float *params);
	/* Clears or adds as each edge says. */
	void (*backward)(struct hps_pass *p, const struct hps_node *n, const float *params,
			 float *grads);
};

struct hps_loss_code {
	uint32_t n_inputs;
	/* Widths, and what else the loss needs; sets coef_cols. */
	enum hps_status (*prepare)(const struct hps_graph *g, struct hps_loss_node *l,
				   struct hps_err *err);
	/* Scores; the sum of losses; with `training`, coef: the derivatives that backward needs. */
	double (*forward)(struct hps_pass *p, const struct hps_loss_node *l, bool training);
	void (*backward)(struct hps_pass *p, const struct hps_loss_node *l);
};

extern const struct hps_op_code hps_op_embedding, hps_op_concat, hps_op_slice, hps_op_dense,
	hps_op_cosine; /* embedding serves negatives too */
extern const struct hps_loss_code hps_loss_sigmoid_ce, hps_loss_softmax_ce, hps_loss_hinge,
	hps_loss_nce;

/* Settle every place, edge and move of the stage (layout.c). */
enum hps_status hps_stage_layout(struct hps_stage *s, struct hps_err *err);

/* Make key (n) unique in place, in order of first appearance, and index (n) say where each
 * went; returns how many there are. slot: scratch of hps_dedup_slots(n) words. */
uint32_t hps_dedup(uint64_t *key, uint32_t n, uint32_t *index, uint32_t *slot);
size_t hps_dedup_slots(size_t n);

/* Fill the keys of a lookup from the pass's input and deduplicate them (op_embedding.c). */
void hps_lookup_begin(struct hps_pass *p, const struct hps_node *n);

static inline const float *hps_read(const struct hps_pass *p, const struct hps_place *at)
{
	return p->ro[at->area] + p->rows * at->before + at->col;
}

static inline float *hps_write(const struct hps_pass *p, const struct hps_place *at)
{
	return p->rw[at->area] + p->rows * at->before + at->col;
}

#endif
