/* Where every matrix of a stage lies, which copies that saves, and which gradient is written
 * first: settled once, before any data is seen. Gradient memory is reused as registers are in
 * a linear scan (Poletto, Sarkar 1999), backward being one pass from the last layer down.
 */
#include "nn/stage_int.h"

#include <stdlib.h>
#include <string.h>
#include "base/mem.h"

enum { NONE = -1 };

/* What is known of a layer's output. */
struct value {
	bool here;	  /* computed in this stage */
	bool in, out;	  /* crosses the cut before, after */
	bool wants;	  /* its gradient is wanted: something trainable lies at or above it */
	bool written;	  /* its gradient, so far */
	uint32_t readers; /* edges that read it, of the whole model and the loss */
	int concat;	  /* node of the concat whose columns it is computed into */
	uint32_t at;	  /* first of these columns */
	uint32_t root, root_at; /* the layer whose gradient holds its gradient, from that column */
	uint32_t death;		/* as a root: the layer whose backward is its last use */
	int slot;		/* as a root: its gradient's memory */
	struct hps_place place, grad;
};

/* Memory for one gradient at a time. */
struct slot {
	uint64_t width, before;
	bool busy;
};

struct layout {
	struct hps_stage *s;
	const struct hps_model *m;
	struct value *v; /* of every layer of the model */
	struct slot *slot;
	uint32_t n_slots;
};

/* Rows of wide matrices start on a cache line. */
static uint32_t lead(uint32_t cols)
{
	return cols <= 16 ? cols : (cols + 15) / 16 * 16;
}

static uint64_t whole_lines(uint64_t cols)
{
	return (cols + 15) / 16 * 16;
}

static struct hps_node *node_of(struct layout *lay, uint32_t layer)
{
	return &lay->s->node[layer - lay->s->first];
}

static enum hps_status survey(struct layout *lay, struct hps_err *err)
{
	const struct hps_graph *g = lay->s->g;
	uint32_t first = lay->s->first, last = lay->s->last;

	for (uint32_t l = 0; l < lay->m->n_layers; l++) {
		const struct hps_layer *layer = &lay->m->layer[l];
		struct value *v = &lay->v[l];

		v->here = l >= first && l <= last;
		v->concat = v->slot = NONE;
		v->root = v->death = l;
		v->wants = layer->op == HPS_OP_EMBEDDING || layer->op == HPS_OP_NEGATIVES ||
			   layer->op == HPS_OP_DENSE;
		for (uint32_t i = 0; i < layer->n_inputs; i++) {
			if (layer->input[i] == HPS_INPUT_DENSE)
				continue;
			lay->v[layer->input[i]].readers++;
			v->wants |= lay->v[layer->input[i]].wants;
		}
	}
	for (uint32_t i = 0; i < lay->m->loss.n_inputs; i++)
		lay->v[lay->m->loss.input[i]].readers++;
	for (uint32_t i = 0; first > 0 && i < g->cut[first - 1].n_layers; i++)
		lay->v[g->cut[first - 1].layer[i]].in = true;
	for (uint32_t i = 0; i < g->cut[last].n_layers; i++)
		lay->v[g->cut[last].layer[i]].out = true;
	for (uint32_t l = first; l <= last; l++)
		if (lay->v[l].readers == 0)
			return hps_err_set(err, HPS_BAD_INPUT, "layer '%s': nothing reads it",
					   lay->m->layer[l].name);
	return HPS_OK;
}

/* --- values --- */

/* The first concat here that reads a layer takes its output in place, unless the output must
 * be contiguous to cross the cut. */
static void choose_concats(struct layout *lay)
{
	for (uint32_t i = 0; i < lay->s->n_nodes; i++) {
		struct hps_node *n = &lay->s->node[i];
		uint32_t at = 0;

		for (uint32_t e = 0; n->layer->op == HPS_OP_CONCAT && e < n->n_edges; e++) {
			int ref = n->layer->input[e];

			n->edge[e].at = at;
			at += n->edge[e].cols;
			if (ref == HPS_INPUT_DENSE || !lay->v[ref].here || lay->v[ref].out ||
			    lay->v[ref].concat != NONE)
				continue;
			lay->v[ref].concat = (int)i;
			lay->v[ref].at = n->edge[e].at;
			n->edge[e].value_in_place = true;
		}
	}
}

static void place_blocks(struct layout *lay, const struct hps_cut *cut, enum hps_area area)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < cut->n_layers; i++) {
		struct value *v = &lay->v[cut->layer[i]];
		uint32_t cols = lay->m->layer[cut->layer[i]].cols;

		v->place = (struct hps_place){ .area = area, .before = before, .ld = cols };
		v->grad = v->place;
		v->grad.area = HPS_AREA_IN_GRAD; /* only an input's stays so */
		before += cols;
	}
	lay->s->cols[area] = before;
	if (area == HPS_AREA_IN)
		lay->s->cols[HPS_AREA_IN_GRAD] = before;
	else
		lay->s->cols[HPS_AREA_GRAD_OUT] = before;
}

static bool is_view(const struct layout *lay, uint32_t l)
{
	return lay->m->layer[l].op == HPS_OP_SLICE && !lay->v[l].out && lay->v[l].concat == NONE;
}

/* Descending, as a concat comes after what it reads; then the views of slices, ascending. */
static void place_values(struct layout *lay)
{
	struct hps_stage *s = lay->s;
	uint64_t *own = &s->cols[HPS_AREA_ACT];

	for (uint32_t l = s->last + 1; l-- > s->first;) {
		struct value *v = &lay->v[l];
		uint32_t cols = lay->m->layer[l].cols;

		if (v->out || is_view(lay, l))
			continue;
		if (v->concat != NONE) {
			v->place = lay->v[s->node[v->concat].id].place;
			v->place.col += v->at;
			continue;
		}
		v->place = (struct hps_place){ HPS_AREA_ACT, *own, 0, lead(cols) };
		*own += whole_lines(cols);
	}
	for (uint32_t l = s->first; l <= s->last; l++) {
		const struct hps_layer *layer = &lay->m->layer[l];
		int ref;

		if (!is_view(lay, l))
			continue;
		ref = layer->input[0];
		lay->v[l].place = ref == HPS_INPUT_DENSE ? (struct hps_place){ HPS_AREA_DENSE, 0, 0,
									       lay->m->dense }
							 : lay->v[ref].place;
		lay->v[l].place.col += layer->begin;
		node_of(lay, l)->edge[0].value_in_place = true;
	}
}

/* --- gradients --- */

static void share_grads(struct layout *lay)
{
	for (uint32_t l = lay->s->last + 1; l-- > lay->s->first;) {
		struct value *v = &lay->v[l], *to;
		struct hps_node *concat;

		if (v->concat == NONE || v->readers != 1)
			continue;
		concat = &lay->s->node[v->concat];
		to = &lay->v[concat->id];
		v->root = to->root;
		v->root_at = to->root_at + v->at;
		lay->v[v->root].death = l;
		for (uint32_t e = 0; e < concat->n_edges; e++)
			if (concat->layer->input[e] == (int)l)
				concat->edge[e].grad_in_place = true;
	}
}

/* Give a root memory, if it has none: the narrowest free slot that is wide enough, else
 * the widest one made wider, else a new one. */
static void give_slot(struct layout *lay, uint32_t root)
{
	uint64_t width = whole_lines(lay->m->layer[root].cols);
	int best = NONE;

	if (lay->v[root].slot != NONE)
		return;
	for (uint32_t i = 0; i < lay->n_slots; i++) {
		const struct slot *a = &lay->slot[i], *b = best == NONE ? NULL : &lay->slot[best];

		if (a->busy)
			continue;
		if (!b || (b->width < width ? a->width > b->width
					    : a->width >= width && a->width < b->width))
			best = (int)i;
	}
	if (best == NONE)
		best = (int)lay->n_slots++;
	if (lay->slot[best].width < width)
		lay->slot[best].width = width;
	lay->slot[best].busy = true;
	lay->v[root].slot = best;
}

/* A reader is about to write the gradient of `ref`. */
static void write_grad(struct layout *lay, struct hps_edge *e, int ref)
{
	struct value *v;

	if (ref == HPS_INPUT_DENSE || !lay->v[ref].wants)
		return;
	v = &lay->v[ref];
	e->wants_grad = true;
	e->adds = v->written;
	v->written = true;
	if (v->here && !e->grad_in_place)
		give_slot(lay, v->root);
}

/* Play backward once: who writes first, and what is free when. */
static void play_backward(struct layout *lay)
{
	struct hps_stage *s = lay->s;
	const struct hps_cut *out = &s->g->cut[s->last];

	for (uint32_t i = 0; i < out->n_layers; i++) {
		struct value *v = &lay->v[out->layer[i]];

		v->written = v->wants;
		if (v->wants && v->here)
			give_slot(lay, out->layer[i]);
	}
	for (uint32_t i = 0; s->loss.code && i < s->loss.spec->n_inputs; i++)
		write_grad(lay, &s->loss.edge[i], s->loss.spec->input[i]);
	for (uint32_t l = s->last + 1; l-- > s->first;) {
		struct hps_node *n = node_of(lay, l);
		uint32_t root = lay->v[l].root;

		n->wants_grad = lay->v[l].wants;
		for (uint32_t e = 0; n->wants_grad && e < n->n_edges; e++)
			write_grad(lay, &n->edge[e], n->layer->input[e]);
		if (lay->v[root].slot != NONE && lay->v[root].death == l)
			lay->slot[lay->v[root].slot].busy = false;
	}
}

static void place_grads(struct layout *lay)
{
	struct hps_stage *s = lay->s;
	uint64_t *all = &s->cols[HPS_AREA_GRAD];

	for (uint32_t i = 0; i < lay->n_slots; i++) {
		lay->slot[i].before = *all;
		*all += lay->slot[i].width;
	}
	for (uint32_t l = s->first; l <= s->last; l++) {
		struct value *v = &lay->v[l];

		if (v->wants)
			v->grad =
				(struct hps_place){ HPS_AREA_GRAD,
						    lay->slot[lay->v[v->root].slot].before,
						    v->root_at, lead(lay->m->layer[v->root].cols) };
	}
}

/* --- edges and moves --- */

static void finish_edge(const struct layout *lay, struct hps_edge *e, int ref)
{
	if (ref == HPS_INPUT_DENSE) {
		e->value = (struct hps_place){ HPS_AREA_DENSE, 0, 0, lay->m->dense };
		return;
	}
	e->value = lay->v[ref].place;
	e->grad = lay->v[ref].grad;
}

static void finish_nodes(struct layout *lay)
{
	struct hps_stage *s = lay->s;

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct hps_node *n = &s->node[i];

		n->value = lay->v[n->id].place;
		n->grad = lay->v[n->id].grad;
		for (uint32_t e = 0; e < n->n_edges; e++)
			finish_edge(lay, &n->edge[e], n->layer->input[e]);
	}
	for (uint32_t i = 0; s->loss.code && i < s->loss.spec->n_inputs; i++)
		finish_edge(lay, &s->loss.edge[i], s->loss.spec->input[i]);
}

/* What crosses both cuts travels through; out of place blocks are found in the cut's order. */
static void make_moves(struct layout *lay)
{
	struct hps_stage *s = lay->s;
	const struct hps_cut *out = &s->g->cut[s->last], *in;
	uint64_t before = 0;

	for (uint32_t i = 0; i < out->n_layers; i++) {
		const struct value *v = &lay->v[out->layer[i]];
		uint32_t cols = lay->m->layer[out->layer[i]].cols;
		struct hps_place to = { HPS_AREA_OUT, before, 0, cols }, from = to;

		from.area = HPS_AREA_GRAD_OUT;
		if (v->in)
			s->forward_copy[s->n_forward_copy++] =
				(struct hps_move){ v->place, to, cols };
		if (v->wants)
			s->backward_copy[s->n_backward_copy++] =
				(struct hps_move){ from, v->grad, cols };
		before += cols;
	}
	in = s->first > 0 ? &s->g->cut[s->first - 1] : NULL;
	for (uint32_t i = 0; in && i < in->n_layers; i++) {
		const struct value *v = &lay->v[in->layer[i]];

		if (!v->written)
			s->backward_clear[s->n_backward_clear++] =
				(struct hps_move){ .to = v->grad,
						   .cols = lay->m->layer[in->layer[i]].cols };
	}
}

enum hps_status hps_stage_layout(struct hps_stage *s, struct hps_err *err)
{
	const struct hps_model *m = s->g->model;
	struct layout lay = { .s = s, .m = m };
	enum hps_status status = HPS_MEMORY;
	uint32_t n_out = s->g->cut[s->last].n_layers;
	uint32_t n_in = s->first > 0 ? s->g->cut[s->first - 1].n_layers : 0;

	lay.v = hps_calloc(m->n_layers, sizeof(*lay.v), err);
	lay.slot = hps_calloc(s->n_nodes, sizeof(*lay.slot), err);
	s->forward_copy = hps_calloc(n_out, sizeof(*s->forward_copy), err);
	s->backward_copy = hps_calloc(n_out, sizeof(*s->backward_copy), err);
	s->backward_clear = hps_calloc(n_in, sizeof(*s->backward_clear), err);
	if (!lay.v || !lay.slot || !s->forward_copy || !s->backward_copy || !s->backward_clear)
		goto out;
	status = survey(&lay, err);
	if (status != HPS_OK)
		goto out;
	choose_concats(&lay);
	/* OUT first: a layer that crosses both cuts is read where it came in. */
	place_blocks(&lay, &s->g->cut[s->last], HPS_AREA_OUT);
	if (s->first > 0)
		place_blocks(&lay, &s->g->cut[s->first - 1], HPS_AREA_IN);
	place_values(&lay);
	share_grads(&lay);
	play_backward(&lay);
	place_grads(&lay);
	finish_nodes(&lay);
	make_moves(&lay);
out:
	free(lay.v);
	free(lay.slot);
	return status;
}
