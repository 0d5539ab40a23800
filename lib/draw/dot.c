/* What flows where? The plan as a Graphviz graph. */
#include <stdio.h>
#include <stdlib.h>
#include "base/mem.h"
#include "draw/canvas_int.h"
#include "draw/text_int.h"
#include "graph/graph.h"

enum { MOST_SHARDS = 16, NAME_MOST = 60 };

static const char red[] = "color=\"#b00020\", fontcolor=\"#b00020\", penwidth=3";
struct drawing {
	const struct hps_picture *x;
	const struct hps_cost *cost;
	const struct hps_model *model; /* NULL: a chain */
	struct hps_cost_result r;
	struct hps_stage_cost *row;
	uint32_t *stage_of; /* n_layers */
	struct hps_buf *b;
	struct hps_err *err;
};

static enum hps_status layer_node(const struct drawing *d, uint32_t l)
{
	const struct hps_layer_size *size = &d->cost->profile->size[l];
	enum hps_status rc = hps_buf_printf(d->b, d->err, "\t\tl%u [label=", l);

	if (!rc)
		rc = hps_draw_quoted(d->b, size->name ? size->name : "?", NAME_MOST, d->err);
	return rc ? rc : hps_buf_printf(d->b, d->err, "];\n");
}

/* "stage 0: 3 x cpu", what it takes, and its layers. */
static enum hps_status stage_cluster(const struct drawing *d, uint32_t i)
{
	const struct hps_span *sp = &d->x->solution->stage[i];
	const struct hps_stage_cost *row = &d->row[i];
	bool pace = d->r.binds <= HPS_BINDS_LINK && d->r.at == i;
	char compute[32], link[32];
	enum hps_status rc;

	hps_draw_si(compute, sizeof(compute), row->ct_s, "s");
	hps_draw_si(link, sizeof(link), row->dt_s, "s");
	rc = hps_buf_printf(d->b, d->err,
			    "\tsubgraph cluster_%u {\n"
			    "\t\tlabel=\"stage %u: %u x %s\\ncompute %s, link %s a sample%s\";\n"
			    "\t\tstyle=\"filled\"; fillcolor=\"%s55\"; %s\n",
			    i, i, sp->units, d->cost->type[sp->type].name, compute, link,
			    pace ? "\\nsets the pace" : "", hps_canvas_colour(sp->type),
			    pace ? "color=\"#b00020\"; fontcolor=\"#b00020\"; penwidth=3;" : "");
	for (uint32_t l = sp->first; !rc && l <= sp->last; l++)
		rc = layer_node(d, l);
	if (!rc && i + 1 == d->x->solution->n_stages && d->model)
		rc = hps_buf_printf(d->b, d->err, "\t\tloss [label=\"%s\", shape=ellipse];\n",
				    hps_loss_name(d->model->loss.kind));
	return rc ? rc : hps_buf_printf(d->b, d->err, "\t}\n");
}

/* An edge that carries bytes a sample; thick across a cut, where gradients come back. */
static enum hps_status edge(const struct drawing *d, const char *from, const char *to,
			    double forward, double backward, bool cut)
{
	char ahead[32], back[48] = "";

	hps_draw_si(ahead, sizeof(ahead), forward, "B");
	if (cut && backward > 0) {
		char si[32];

		snprintf(back, sizeof(back), "\\nback %s",
			 hps_draw_si(si, sizeof(si), backward, "B"));
	}
	return hps_buf_printf(d->b, d->err, "\t%s -> %s [label=\"%s%s\"%s];\n", from, to, ahead,
			      back, cut ? ", penwidth=2.5" : "");
}

/* Layer or loss `to` of a stage reads what comes in by reference `input`. */
static enum hps_status input_edge(const struct drawing *d, int input, const char *to,
				  uint32_t stage)
{
	char from[16] = "data";
	double bytes = 4.0 * d->model->dense;
	bool cut = stage > 0;

	if (input == HPS_INPUT_DENSE)
		return edge(d, from, to, bytes, 0, cut);
	bytes = 4.0 * d->model->layer[input].cols;
	snprintf(from, sizeof(from), "l%d", input);
	return edge(d, from, to, bytes, bytes, d->stage_of[input] != stage);
}

static enum hps_status model_edges(const struct drawing *d)
{
	const struct hps_model *m = d->model;
	enum hps_status rc = hps_buf_printf(d->b, d->err, "\tdata [shape=cylinder];\n");

	for (uint32_t l = 0; !rc && l < m->n_layers; l++) {
		const struct hps_layer *layer = &m->layer[l];
		char to[16];

		snprintf(to, sizeof(to), "l%u", l);
		if (layer->op == HPS_OP_EMBEDDING)
			rc = edge(d, "data", to, 8.0 * layer->n_slots, 0, d->stage_of[l] > 0);
		for (uint32_t i = 0; !rc && i < layer->n_inputs; i++)
			rc = input_edge(d, layer->input[i], to, d->stage_of[l]);
	}
	for (uint32_t i = 0; !rc && i < m->loss.n_inputs; i++)
		rc = input_edge(d, m->loss.input[i], "loss", d->x->solution->n_stages - 1);
	return rc;
}

/* What the profile knows: all that crosses behind a layer. */
static enum hps_status chain_edges(const struct drawing *d)
{
	const struct hps_profile *p = d->cost->profile;
	enum hps_status rc = HPS_OK;

	for (uint32_t l = 0; !rc && l + 1 < p->n_layers; l++) {
		bool cut = d->stage_of[l] != d->stage_of[l + 1];
		char from[16], to[16];

		snprintf(from, sizeof(from), "l%u", l);
		snprintf(to, sizeof(to), "l%u", l + 1);
		rc = edge(d, from, to, cut ? p->cut_forward_bytes[l] : p->size[l].output_bytes,
			  p->cut_backward_bytes[l], cut);
	}
	return rc;
}

static enum hps_status servers_node(const struct drawing *d)
{
	uint32_t shards = d->x->solution->trial.shards;
	bool pace = d->r.binds == HPS_BINDS_PS_CPU || d->r.binds == HPS_BINDS_PS_LINK;
	enum hps_status rc =
		hps_buf_printf(d->b, d->err, "\tps [shape=record, label=\"{parameter servers%s|{",
			       pace ? ": set the pace" : "");

	if (shards > MOST_SHARDS)
		rc = rc ? rc : hps_buf_printf(d->b, d->err, "%u shards", shards);
	for (uint32_t i = 0; !rc && shards <= MOST_SHARDS && i < shards; i++)
		rc = hps_buf_printf(d->b, d->err, "%sshard %u", i ? "|" : "", i);
	return rc ? rc
		  : hps_buf_printf(d->b, d->err, "}}\"%s%s];\n", pace ? ", " : "", pace ? red : "");
}

/* Rows that layers pull and push, dense parameters that a stage's replicas share. */
static enum hps_status sync_edges(const struct drawing *d, uint32_t i)
{
	const struct hps_span *sp = &d->x->solution->stage[i];
	const struct hps_stage_cost *row = &d->row[i];
	enum hps_status rc = HPS_OK;
	char si[32];

	for (uint32_t l = sp->first; !rc && l <= sp->last && d->x->solution->trial.shards; l++) {
		double bytes = d->cost->profile->size[l].sparse_bytes;

		if (bytes <= 0)
			continue;
		rc = hps_buf_printf(
			d->b, d->err,
			"\tl%u -> ps [dir=both, style=bold, label=\"rows %s each way\"];\n", l,
			hps_draw_si(si, sizeof(si), bytes, "B"));
	}
	if (rc || row->dense_bytes <= 0)
		return rc;
	hps_draw_si(si, sizeof(si), row->dense_bytes, "B");
	if (row->dense_sync == HPS_DENSE_RING)
		return hps_buf_printf(
			d->b, d->err,
			"\tring%u [shape=note, label=\"ring of %u: %s a step and "
			"replica\"];\n"
			"\tl%u -> ring%u [ltail=cluster_%u, dir=both, style=dashed];\n",
			i, sp->units, si, sp->last, i, i);
	return hps_buf_printf(
		d->b, d->err,
		"\tl%u -> ps [ltail=cluster_%u, dir=both, style=dashed, label=\"dense %s "
		"a step and replica\"];\n",
		sp->last, i, si);
}

static enum hps_status draw(const struct drawing *d)
{
	const struct hps_solution *s = d->x->solution;
	char cycle[32];
	enum hps_status rc;

	hps_draw_si(cycle, sizeof(cycle), d->r.cycle_s, "s");
	rc = hps_buf_printf(d->b, d->err, "digraph plan {\n\tlabel=");
	if (!rc)
		rc = hps_draw_quoted(d->b, d->x->title ? d->x->title : "plan", NAME_MOST, d->err);
	if (!rc)
		rc = hps_buf_printf(
			d->b, d->err,
			" + \"\\n%.6g samples/s, %.6g dollars per million samples; a cycle is "
			"%s%s\";\n"
			"\tlabelloc=t; rankdir=TB; compound=true;\n"
			"\tgraph [fontname=\"sans-serif\"];\n"
			"\tnode [shape=box, style=filled, fillcolor=white, "
			"fontname=\"sans-serif\"];\n"
			"\tedge [fontname=\"sans-serif\", fontsize=10];\n",
			s->trial.throughput, s->trial.cost * 1e6, cycle,
			d->r.binds == HPS_BINDS_CORES ? ", set by the shared cores" : "");
	for (uint32_t i = 0; !rc && i < s->n_stages; i++)
		rc = stage_cluster(d, i);
	if (!rc)
		rc = d->model ? model_edges(d) : chain_edges(d);
	if (!rc && s->trial.shards)
		rc = servers_node(d);
	for (uint32_t i = 0; !rc && i < s->n_stages; i++)
		rc = sync_edges(d, i);
	return rc ? rc : hps_buf_printf(d->b, d->err, "}\n");
}

enum hps_status hps_draw_dot(const struct hps_picture *x, const struct hps_model *model,
			     struct hps_buf *b, struct hps_err *err)
{
	const struct hps_solution *s = x->solution;
	struct hps_schedule sched = { s->stage, s->n_stages, s->trial.shards };
	struct drawing d = { .x = x, .cost = x->problem->cost, .b = b, .err = err };
	enum hps_status rc = HPS_MEMORY;

	if (model && model->n_layers == d.cost->n_layers)
		d.model = model;
	d.row = hps_calloc(s->n_stages, sizeof(*d.row), err);
	d.stage_of = hps_calloc(d.cost->n_layers, sizeof(*d.stage_of), err);
	if (!d.row || !d.stage_of)
		goto out;
	hps_cost_eval(d.cost, &sched, NULL, &d.r, d.row);
	for (uint32_t i = 0; i < s->n_stages; i++)
		for (uint32_t l = s->stage[i].first; l <= s->stage[i].last; l++)
			d.stage_of[l] = i;
	rc = draw(&d);
out:
	free(d.row);
	free(d.stage_of);
	return rc;
}
