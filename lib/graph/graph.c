/* What does each layer cost, and what crosses each cut? Shapes, bytes and FLOPs of a
 * checked model; nothing is measured here. */
#include "graph/graph.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"

static uint32_t ref_cols(const struct hps_model *m, int ref)
{
	return ref == HPS_INPUT_DENSE ? m->dense : m->layer[ref].cols;
}

/* --- what a layer costs --- */

/* FLOPs of an activation a column, the same forward and backward; a transcendental
 * counts 4, as a rough mean of vectorised ones. */
static uint64_t act_flops(enum hps_act act)
{
	switch (act) {
	case HPS_ACT_LINEAR:
		return 0;
	case HPS_ACT_RELU:
		return 1;
	case HPS_ACT_SIGMOID:
	case HPS_ACT_TANH:
		break;
	}
	return 4;
}

static void lookup_cost(const struct hps_model *m, const struct hps_layer *l,
			struct hps_layer_cost *c)
{
	uint64_t keys = l->op == HPS_OP_EMBEDDING ? l->n_slots : l->count;
	uint64_t dim = m->table[l->table].dim;

	c->keys = keys;
	c->row_bytes = keys * dim * 4;
	if (l->pooling != HPS_POOL_CONCAT)
		c->flops_forward = (keys - 1) * dim + (l->pooling == HPS_POOL_MEAN ? dim : 0);
	/* Every looked-up row adds its gradient to the unique row's sum. */
	c->flops_backward = keys * dim * (l->pooling == HPS_POOL_MEAN ? 2 : 1);
}

static void dense_cost(const struct hps_model *m, const struct hps_layer *l, bool input_grad,
		       struct hps_layer_cost *c)
{
	uint64_t gemm = 2 * (uint64_t)ref_cols(m, l->input[0]) * l->units;
	uint64_t bias = l->bias ? l->units : 0;
	uint64_t act = act_flops(l->act) * l->units;

	c->params = gemm / 2 + bias;
	c->flops_forward = gemm + bias + act;
	c->flops_backward = gemm * (input_grad ? 2 : 1) + bias + act;
}

/* Does the backward pass go further down through reference `ref`? Not into the dense
 * features, nor where nothing below has parameters. */
static bool wants_grad(const bool *trained, int ref)
{
	return ref != HPS_INPUT_DENSE && trained[ref];
}

static void layer_cost(const struct hps_model *m, uint32_t i, bool *trained,
		       struct hps_layer_cost *c)
{
	const struct hps_layer *l = &m->layer[i];
	uint64_t cols;

	c->output_bytes = (uint64_t)l->cols * 4;
	for (uint32_t k = 0; k < l->n_inputs; k++)
		trained[i] |= wants_grad(trained, l->input[k]);
	switch (l->op) {
	case HPS_OP_EMBEDDING:
	case HPS_OP_NEGATIVES:
		lookup_cost(m, l, c);
		trained[i] = true;
		break;
	case HPS_OP_DENSE:
		dense_cost(m, l, wants_grad(trained, l->input[0]), c);
		trained[i] = true;
		break;
	case HPS_OP_COSINE:
		/* Three inner products, then two roots and a division; backward, for each
		 * input, d/dx = (y/|y| - cos x/|x|) / |x|. */
		cols = ref_cols(m, l->input[0]);
		c->flops_forward = 6 * cols + 4;
		c->flops_backward = 8 * cols + 8;
		break;
	case HPS_OP_CONCAT:
	case HPS_OP_SLICE:
		break;
	}
}

/* --- dense parameters --- */

static void add_param(struct hps_graph *g, uint32_t layer, const char *suffix, uint32_t rows,
		      uint32_t cols)
{
	g->param[g->n_params++] = (struct hps_param){
		.layer = layer, .suffix = suffix, .rows = rows, .cols = cols, .offset = g->n_floats
	};
	g->n_floats += (uint64_t)rows * cols;
}

static enum hps_status build_params(struct hps_graph *g, struct hps_err *err)
{
	const struct hps_model *m = g->model;

	g->param = hps_calloc((size_t)m->n_layers * 2, sizeof(*g->param), err);
	g->layer_offset = hps_calloc((size_t)m->n_layers + 1, sizeof(*g->layer_offset), err);
	if (!g->param || !g->layer_offset)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < m->n_layers; i++) {
		const struct hps_layer *l = &m->layer[i];

		g->layer_offset[i] = g->n_floats;
		if (l->op != HPS_OP_DENSE)
			continue;
		add_param(g, i, "W", ref_cols(m, l->input[0]), l->units);
		if (l->bias)
			add_param(g, i, "b", 1, l->units);
	}
	g->layer_offset[m->n_layers] = g->n_floats;
	return HPS_OK;
}

/* --- cuts --- */

/* The last layer that reads each thing; the loss reads as layer n_layers. -1: nobody. */
struct last_use {
	int64_t *layer; /* n_layers */
	int64_t *slot;	/* slots */
	int64_t dense;
};

static void find_last_use(const struct hps_model *m, struct last_use *u)
{
	u->dense = -1;
	for (uint32_t i = 0; i < m->n_layers; i++)
		u->layer[i] = -1;
	for (uint32_t s = 0; s < m->slots; s++)
		u->slot[s] = -1;
	for (uint32_t i = 0; i < m->n_layers; i++) {
		const struct hps_layer *l = &m->layer[i];

		for (uint32_t k = 0; k < l->n_inputs; k++) {
			if (l->input[k] == HPS_INPUT_DENSE)
				u->dense = i;
			else
				u->layer[l->input[k]] = i;
		}
		for (uint32_t k = 0; k < l->n_slots; k++)
			u->slot[l->slot[k]] = i;
	}
	for (uint32_t k = 0; k < m->loss.n_inputs; k++)
		u->layer[m->loss.input[k]] = m->n_layers;
}

static enum hps_status build_cut(const struct hps_model *m, const struct last_use *u, uint32_t j,
				 struct hps_cut *c, struct hps_err *err)
{
	uint32_t n_layers = 0, n_slots = 0;

	for (uint32_t i = 0; i <= j; i++)
		n_layers += u->layer[i] > j;
	for (uint32_t s = 0; s < m->slots; s++)
		n_slots += u->slot[s] > j;
	c->layer = hps_calloc(n_layers, sizeof(*c->layer), err);
	c->slot = hps_calloc(n_slots, sizeof(*c->slot), err);
	if (!c->layer || !c->slot)
		return HPS_MEMORY;
	for (uint32_t i = 0; i <= j; i++) {
		if (u->layer[i] > j) {
			c->layer[c->n_layers++] = i;
			c->cols += m->layer[i].cols;
		}
	}
	for (uint32_t s = 0; s < m->slots; s++)
		if (u->slot[s] > j)
			c->slot[c->n_slots++] = s;
	c->dense = u->dense > j;
	c->backward_bytes = 4 * c->cols;
	/* activations, dense features, keys, row number, label */
	c->forward_bytes = 4 * c->cols + (c->dense ? 4 * (uint64_t)m->dense : 0) +
			   8 * (uint64_t)c->n_slots + 8 + 4;
	return HPS_OK;
}

static enum hps_status build_cuts(struct hps_graph *g, struct hps_err *err)
{
	const struct hps_model *m = g->model;
	enum hps_status rc = HPS_OK;
	struct last_use u = { 0 };

	u.layer = hps_calloc(m->n_layers, sizeof(*u.layer), err);
	u.slot = hps_calloc(m->slots, sizeof(*u.slot), err);
	if (!u.layer || !u.slot)
		rc = HPS_MEMORY;
	if (!rc)
		find_last_use(m, &u);
	/* The last layer's cut stays empty: the loss is with it. */
	for (uint32_t j = 0; !rc && j + 1 < m->n_layers; j++)
		rc = build_cut(m, &u, j, &g->cut[j], err);
	free(u.layer);
	free(u.slot);
	return rc;
}

enum hps_status hps_graph_build(const struct hps_model *m, struct hps_graph *g, struct hps_err *err)
{
	enum hps_status rc = HPS_OK;
	bool *trained;

	memset(g, 0, sizeof(*g));
	g->model = m;
	trained = hps_calloc(m->n_layers, sizeof(*trained), err);
	g->cost = hps_calloc(m->n_layers, sizeof(*g->cost), err);
	g->cut = hps_calloc(m->n_layers, sizeof(*g->cut), err);
	if (!trained || !g->cost || !g->cut)
		rc = HPS_MEMORY;
	for (uint32_t i = 0; !rc && i < m->n_layers; i++)
		layer_cost(m, i, trained, &g->cost[i]);
	if (!rc)
		rc = build_params(g, err);
	if (!rc)
		rc = build_cuts(g, err);
	free(trained);
	if (rc)
		hps_graph_release(g);
	return rc;
}

void hps_graph_release(struct hps_graph *g)
{
	for (uint32_t j = 0; g->cut && j < g->model->n_layers; j++) {
		free(g->cut[j].layer);
		free(g->cut[j].slot);
	}
	free(g->cut);
	free(g->cost);
	free(g->param);
	free(g->layer_offset);
	memset(g, 0, sizeof(*g));
}
