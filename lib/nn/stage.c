/* Building a stage: checks, one node a layer, the loss; where things lie is layout.c's. */
#include "nn/stage_int.h"

#include <limits.h>
#include <stdlib.h>
#include "base/mem.h"

static const struct hps_op_code *const op_code[] = {
	[HPS_OP_EMBEDDING] = &hps_op_embedding, [HPS_OP_NEGATIVES] = &hps_op_embedding,
	[HPS_OP_CONCAT] = &hps_op_concat,	[HPS_OP_SLICE] = &hps_op_slice,
	[HPS_OP_DENSE] = &hps_op_dense,		[HPS_OP_COSINE] = &hps_op_cosine,
};

static const struct hps_loss_code *const loss_code[] = {
	[HPS_LOSS_SIGMOID_CE] = &hps_loss_sigmoid_ce,
	[HPS_LOSS_SOFTMAX_CE] = &hps_loss_softmax_ce,
	[HPS_LOSS_HINGE] = &hps_loss_hinge,
	[HPS_LOSS_NCE] = &hps_loss_nce,
};

static uint32_t cols_of(const struct hps_model *m, int ref)
{
	return ref == HPS_INPUT_DENSE ? m->dense : m->layer[ref].cols;
}

static uint32_t keys_of(const struct hps_layer *l)
{
	return l->op == HPS_OP_NEGATIVES ? l->count : l->n_slots;
}

static bool looks_up(const struct hps_layer *l)
{
	return l->op == HPS_OP_EMBEDDING || l->op == HPS_OP_NEGATIVES;
}

static enum hps_status add_node(struct hps_stage *s, uint32_t id, struct hps_edge *edge,
				struct hps_err *err)
{
	const struct hps_model *m = s->g->model;
	const struct hps_layer *layer = &m->layer[id];
	struct hps_node *n = &s->node[s->n_nodes++];

	*n = (struct hps_node){ .id = id,
				.layer = layer,
				.code = op_code[layer->op],
				.edge = edge,
				.n_edges = layer->n_inputs,
				.param = s->g->layer_offset[id] - s->g->layer_offset[s->first] };
	if (layer->n_inputs < n->code->min_inputs || layer->n_inputs > n->code->max_inputs)
		return hps_err_set(err, HPS_BAD_INPUT, "layer '%s': %s with %u inputs", layer->name,
				   hps_op_name(layer->op), layer->n_inputs);
	for (uint32_t i = 0; i < layer->n_inputs; i++) {
		edge[i].cols = cols_of(m, layer->input[i]);
		if (layer->input[i] == HPS_INPUT_DENSE)
			s->reads_dense = true;
	}
	if (!looks_up(layer))
		return HPS_OK;
	if (layer->op == HPS_OP_NEGATIVES)
		s->draws = true;
	else
		s->reads_slots = true;
	if (keys_of(layer) == 0 || (uint64_t)keys_of(layer) * s->max_rows > INT32_MAX)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "layer '%s': %u keys a sample and %u samples: the product must "
				   "be above 0 and below 2^31",
				   layer->name, keys_of(layer), s->max_rows);
	if (keys_of(layer) > s->max_keys)
		s->max_keys = keys_of(layer);
	n->lookup = s->n_lookups;
	s->lookup_node[s->n_lookups++] = s->n_nodes - 1;
	return HPS_OK;
}

static enum hps_status add_loss(struct hps_stage *s, struct hps_err *err)
{
	const struct hps_model *m = s->g->model;
	struct hps_loss_node *l = &s->loss;

	if (s->last != m->n_layers - 1)
		return HPS_OK;
	l->spec = &m->loss;
	l->code = loss_code[m->loss.kind];
	if (m->loss.n_inputs != l->code->n_inputs)
		return hps_err_set(err, HPS_BAD_INPUT, "loss: %s with %u inputs",
				   hps_loss_name(m->loss.kind), m->loss.n_inputs);
	for (uint32_t i = 0; i < m->loss.n_inputs; i++)
		l->edge[i].cols = cols_of(m, m->loss.input[i]);
	return l->code->prepare(s->g, l, err);
}

static enum hps_status check(const struct hps_graph *g, uint32_t first, uint32_t last,
			     const struct hps_backend *be, uint32_t max_rows, struct hps_err *err)
{
	if (be->abi != HPS_BACKEND_ABI)
		return hps_err_set(err, HPS_DEVICE, "backend %s speaks version %u, expected %d",
				   be->name, be->abi, HPS_BACKEND_ABI);
	if (!be->host_memory)
		return hps_err_set(err, HPS_DEVICE,
				   "backend %s: its memory is out of the host's reach, which the "
				   "ops still need",
				   be->name);
	if (first > last || last >= g->model->n_layers)
		return hps_err_set(err, HPS_BAD_INPUT, "stage of layers %u to %u of %u", first,
				   last, g->model->n_layers);
	if (max_rows == 0 || max_rows > INT_MAX)
		return hps_err_set(err, HPS_BAD_INPUT, "micro-batches of %u rows: expected 1 to %d",
				   max_rows, INT_MAX);
	return HPS_OK;
}

static enum hps_status build(struct hps_stage *s, struct hps_err *err)
{
	const struct hps_model *m = s->g->model;
	enum hps_status status;
	struct hps_edge *edge;
	size_t n_edges = 0, n = s->last - s->first + 1;

	for (uint32_t l = s->first; l <= s->last; l++)
		n_edges += m->layer[l].n_inputs;
	s->node = hps_calloc(n, sizeof(*s->node), err);
	s->edges = edge = hps_calloc(n_edges, sizeof(*s->edges), err);
	s->lookup_node = hps_calloc(n, sizeof(*s->lookup_node), err);
	if (!s->node || !s->edges || !s->lookup_node)
		return HPS_MEMORY;
	for (uint32_t l = s->first; l <= s->last; l++) {
		status = add_node(s, l, edge, err);
		if (status != HPS_OK)
			return status;
		edge += m->layer[l].n_inputs;
	}
	status = add_loss(s, err);
	return status == HPS_OK ? hps_stage_layout(s, err) : status;
}

enum hps_status hps_stage_new(const struct hps_graph *g, uint32_t first, uint32_t last,
			      const struct hps_backend *be, uint32_t max_rows,
			      struct hps_stage **out, struct hps_err *err)
{
	enum hps_status status = check(g, first, last, be, max_rows, err);
	struct hps_stage *s;

	if (status != HPS_OK)
		return status;
	s = hps_calloc(1, sizeof(*s), err);
	if (!s)
		return HPS_MEMORY;
	*s = (struct hps_stage){
		.g = g, .be = be, .first = first, .last = last, .max_rows = max_rows
	};
	status = build(s, err);
	if (status != HPS_OK) {
		hps_stage_free(s);
		return status;
	}
	*out = s;
	return HPS_OK;
}

void hps_stage_free(struct hps_stage *s)
{
	if (!s)
		return;
	free(s->node);
	free(s->edges);
	free(s->lookup_node);
	free(s->forward_copy);
	free(s->backward_copy);
	free(s->backward_clear);
	free(s);
}

uint64_t hps_stage_param_offset(const struct hps_stage *s)
{
	return s->g->layer_offset[s->first];
}

uint64_t hps_stage_n_floats(const struct hps_stage *s)
{
	return s->g->layer_offset[s->last + 1] - s->g->layer_offset[s->first];
}

uint32_t hps_stage_n_lookups(const struct hps_stage *s)
{
	return s->n_lookups;
}
