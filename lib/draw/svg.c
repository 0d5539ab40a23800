/* What does a plan look like? Header, schedule and frontier on one page of SVG. */
#include <math.h>
#include <stdlib.h>
#include "base/mem.h"
#include "draw/canvas_int.h"
#include "draw/draw.h"

static const char style[] = "<style>\n"
			    "text { font: 13px sans-serif; fill: #111; }\n"
			    ".title { font-size: 18px; font-weight: bold; }\n"
			    ".small { font-size: 11px; }\n"
			    ".strong { font-weight: bold; }\n"
			    ".halo { fill: #fff; stroke: #fff; stroke-width: 4px; }\n"
			    ".paper { fill: #fff; }\n"
			    ".box { stroke: #333; stroke-width: 0.6; }\n"
			    ".name { fill: #f4f4f4; }\n"
			    ".bar { stroke: #333; stroke-width: 0.6; fill-opacity: 0.9; }\n"
			    ".plain { fill: #ccc; }\n"
			    ".link { stroke-dasharray: 2 2; }\n"
			    ".pace { stroke: #b00020; stroke-width: 2.4; }\n"
			    ".axis { stroke: #333; }\n"
			    ".grid { stroke: #ddd; }\n"
			    ".cycle { stroke: #b00020; stroke-width: 1.2; }\n"
			    ".floor { stroke: #000; stroke-dasharray: 6 4; }\n"
			    ".stairs { fill: none; stroke: #0072b2; stroke-width: 1.5; }\n"
			    ".bound { stroke: #0072b2; stroke-dasharray: 2 2; }\n"
			    ".point { fill: #0072b2; stroke: #0072b2; }\n"
			    ".point.open { fill: #fff; }\n"
			    ".mine { fill: #d55e00; stroke: #000; }\n"
			    "</style>\n";

static double draw_header(struct hps_canvas *c, const struct hps_picture *x)
{
	const struct hps_problem *p = x->problem;
	const struct hps_trial *t = &x->solution->trial;
	double y = HPS_PICTURE_MARGIN + 14;

	hps_canvas_text(c, HPS_PICTURE_MARGIN, y, HPS_LEFT, "title", 90, "%s%s",
			x->title ? x->title : "Plan",
			x->solution->interrupted ? " (interrupted)" : "");
	hps_canvas_text(
		c, HPS_PICTURE_MARGIN, y + 22, HPS_LEFT, "", 0,
		"%.6g samples/s (floor %.6g), %.6g dollars per million samples, %.6g an hour",
		t->throughput, p->floor, t->cost * 1e6, t->price);
	hps_canvas_text(c, HPS_PICTURE_MARGIN, y + 40, HPS_LEFT, "small", 150,
			"method %s, objective %s, form %s, evaluator %s, %llu evaluations%s",
			x->method, hps_objective_name(p->objective),
			hps_cost_form_name(p->cost->opt.form),
			hps_evaluator_name(p->cost->opt.evaluator),
			(unsigned long long)x->solution->evaluations,
			x->solution->proven ? ", proven optimal" : "");
	if (!x->solution->proven && x->solution->has_bound)
		hps_canvas_text(c, HPS_PICTURE_MARGIN, y + 56, HPS_LEFT, "small", 0,
				"at most %.3g %% above the cheapest there is",
				100 * hps_solution_gap(x->solution));
	return y + 68;
}

/* The types that the picture shows, for <defs>. */
static void define_types(struct hps_canvas *c, const struct hps_picture *x)
{
	uint32_t n = x->problem->cost->n_types;
	uint8_t *used = hps_calloc(n, 1, c->err);

	if (!used) {
		c->rc = HPS_MEMORY;
		return;
	}
	for (uint32_t i = 0; i < x->solution->n_stages; i++)
		used[x->solution->stage[i].type] = 1;
	hps_canvas_raw(c, "<defs>\n");
	hps_canvas_define(c, used, n);
	hps_canvas_raw(c, "</defs>\n");
	free(used);
}

enum hps_status hps_draw_svg(const struct hps_picture *x, struct hps_buf *b, struct hps_err *err)
{
	struct hps_buf body = HPS_BUF_INIT;
	struct hps_canvas c = { &body, err, HPS_OK };
	double height;

	define_types(&c, x);
	height = hps_draw_schedule(&c, x, draw_header(&c, x));
	if (x->frontier && x->frontier->n)
		height = hps_draw_frontier(&c, x, height);
	height = ceil(height + HPS_PICTURE_MARGIN);
	if (!c.rc)
		c.rc = hps_buf_printf(
			b, err,
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
			"viewBox=\"0 0 %d %.0f\">\n%s"
			"<rect class=\"paper\" width=\"%d\" height=\"%.0f\"/>\n",
			HPS_PICTURE_WIDTH, height, HPS_PICTURE_WIDTH, height, style,
			HPS_PICTURE_WIDTH, height);
	if (!c.rc)
		c.rc = hps_buf_add(b, body.data, body.len, err);
	if (!c.rc)
		c.rc = hps_buf_printf(b, err, "</svg>\n");
	hps_buf_release(&body);
	return c.rc;
}
