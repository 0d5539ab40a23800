/* Where does each layer run, and how long does each stage take? The upper panel of the picture. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/mem.h"
#include "draw/canvas_int.h"
#include "draw/text_int.h"

enum {
	LAYER_X = HPS_PICTURE_MARGIN,
	LAYER_W = 250,
	SWATCH_W = 30,
	LAYER_H = 18,
	LABEL_X = LAYER_X + LAYER_W + 12,
	BAR_X = LABEL_X + 196,
	BAR_W = 360,
	BAR_H = 14,
	BLOCK_H = 54,
	BLOCK_GAP = 6,
	NAME_MOST = 32, /* characters that fit beside a swatch */
	TYPE_MOST = 18,
};

/* Bars of one block: a stage, the servers, the shared cores. */
struct bar {
	double seconds;
	const char *what; /* NULL: no such bar */
	bool pace;
	int type; /* -1: none of a type's */
};

struct panel {
	struct hps_canvas *c;
	const struct hps_picture *x;
	const struct hps_cost *cost;
	const struct hps_stage_cost *row;
	struct hps_cost_result r;
	double longest; /* seconds at the right end of the axis */
	double floor_s; /* 0: none, or off the axis */
};

static double bar_x(const struct panel *p, double seconds)
{
	return BAR_X + BAR_W * fmin(seconds / p->longest, 1);
}

static void draw_bar(const struct panel *p, double y, const struct bar *bar)
{
	double w = bar_x(p, bar->seconds) - BAR_X;
	const char *css = bar->pace	   ? bar->type >= 0 ? "bar pace" : "bar plain pace"
			  : bar->type >= 0 ? "bar"
					   : "bar plain";
	char si[32];

	if (!bar->what)
		return;
	if (bar->type >= 0)
		hps_canvas_type(p->c, BAR_X, y, w, BAR_H, (uint32_t)bar->type, css);
	else
		hps_canvas_rect(p->c, BAR_X, y, w, BAR_H, css);
	hps_canvas_text(p->c, BAR_X + BAR_W + 12, y + 11, HPS_LEFT,
			bar->pace ? "small strong" : "small", 0, "%s %s", bar->what,
			hps_draw_si(si, sizeof(si), bar->seconds, "s"));
}

static void draw_bars(const struct panel *p, double top, double h, const struct bar bar[2])
{
	double y = top + (h - (2 * BAR_H + 4)) / 2;

	draw_bar(p, y, &bar[0]);
	draw_bar(p, y + BAR_H + 4, &bar[1]);
}

static void draw_label(const struct panel *p, double top, double h, const char *name,
		       const char *type, double count, const char *unit, double price)
{
	double y = top + h / 2 - 10;

	hps_canvas_text(p->c, LABEL_X, y, HPS_LEFT, "strong", 0, "%s", name);
	if (type)
		hps_canvas_text(p->c, LABEL_X, y + 15, HPS_LEFT, "", TYPE_MOST + 8,
				"%.0f \xc3\x97 %s", count, type);
	else
		hps_canvas_text(p->c, LABEL_X, y + 15, HPS_LEFT, "", 0, "%.3g %s", count, unit);
	if (price >= 0)
		hps_canvas_text(p->c, LABEL_X, y + 30, HPS_LEFT, "small", 0, "%.4g dollars/h",
				price);
}

static void draw_layer(const struct panel *p, double y, uint32_t l, uint32_t type)
{
	const char *name = p->cost->profile->size[l].name;

	hps_canvas_type(p->c, LAYER_X, y, SWATCH_W, LAYER_H, type, "box");
	hps_canvas_rect(p->c, LAYER_X + SWATCH_W, y, LAYER_W - SWATCH_W, LAYER_H, "box name");
	hps_canvas_text(p->c, LAYER_X + SWATCH_W + 6, y + 13, HPS_LEFT, "small", NAME_MOST, "%u %s",
			l, name ? name : "?");
}

/* Returns the block's height. */
static double draw_stage(const struct panel *p, double top, uint32_t i)
{
	const struct hps_span *sp = &p->x->solution->stage[i];
	const struct hps_stage_cost *row = &p->row[i];
	uint32_t n = sp->last - sp->first + 1;
	double h = fmax(BLOCK_H, n * LAYER_H), y = top + (h - n * LAYER_H) / 2;
	bool mine = p->r.at == i;
	const struct bar bar[2] = {
		{ row->ct_s, "compute", mine && p->r.binds == HPS_BINDS_COMPUTE, (int)sp->type },
		{ row->dt_s, "link", mine && p->r.binds == HPS_BINDS_LINK, -1 },
	};
	char name[32];

	for (uint32_t l = sp->first; l <= sp->last; l++, y += LAYER_H)
		draw_layer(p, y, l, sp->type);
	snprintf(name, sizeof(name), "stage %u", i);
	draw_label(p, top, h, name, p->cost->type[sp->type].name, sp->units, NULL, row->price);
	draw_bars(p, top, h, bar);
	return h;
}

static double draw_servers(const struct panel *p, double top)
{
	const struct bar bar[2] = {
		{ p->r.ps.cpu_s, "compute", p->r.binds == HPS_BINDS_PS_CPU, -1 },
		{ p->r.ps.link_s, "link", p->r.binds == HPS_BINDS_PS_LINK, -1 },
	};

	draw_label(p, top, BLOCK_H, "parameter servers", NULL, p->x->solution->trial.shards,
		   p->x->solution->trial.shards == 1 ? "shard" : "shards", p->r.ps.price);
	draw_bars(p, top, BLOCK_H, bar);
	return BLOCK_H;
}

static double draw_cores(const struct panel *p, double top)
{
	const struct bar bar[2] = { { p->r.cores_s, "all work", p->r.binds == HPS_BINDS_CORES,
				      -1 } };

	draw_label(p, top, BLOCK_H, "shared cores", NULL, p->cost->cores, "cores", -1);
	draw_bars(p, top, BLOCK_H, bar);
	return BLOCK_H;
}

/* Ticks, the cycle above and the floor below, over blocks from top to bottom. */
static void draw_axis(const struct panel *p, double top, double bottom)
{
	double step = hps_draw_step(p->longest, 5), cycle = bar_x(p, p->r.cycle_s);
	char si[32];

	hps_canvas_line(p->c, BAR_X, bottom, BAR_X + BAR_W, bottom, "axis");
	for (double s = 0; s <= p->longest * (1 + 1e-9); s += step) {
		hps_canvas_line(p->c, bar_x(p, s), bottom, bar_x(p, s), bottom + 4, "axis");
		hps_canvas_text(p->c, bar_x(p, s), bottom + 16, HPS_MIDDLE, "small", 0, "%s",
				hps_draw_si(si, sizeof(si), s, "s"));
	}
	hps_canvas_line(p->c, cycle, top - 4, cycle, bottom, "cycle");
	hps_canvas_text(p->c, cycle, top - 8, HPS_RIGHT, "small strong", 0, "cycle %s a sample",
			hps_draw_si(si, sizeof(si), p->r.cycle_s, "s"));
	if (p->floor_s <= 0)
		return;
	hps_canvas_line(p->c, bar_x(p, p->floor_s), top - 4, bar_x(p, p->floor_s), bottom + 4,
			"floor");
	hps_canvas_text(p->c, bar_x(p, p->floor_s), bottom + 31, HPS_RIGHT, "small", 0,
			"floor allows %s", hps_draw_si(si, sizeof(si), p->floor_s, "s"));
}

/* Names of the types in use, by their colours. */
static double draw_legend(const struct panel *p, double y)
{
	const struct hps_solution *s = p->x->solution;
	double x = LAYER_X;

	for (uint32_t t = 0; t < p->cost->n_types; t++) {
		const struct hps_cost_type *type = &p->cost->type[t];
		uint64_t units = 0;

		for (uint32_t i = 0; i < s->n_stages; i++)
			units += s->stage[i].type == t ? s->stage[i].units : 0;
		if (!units)
			continue;
		if (x + 230 > HPS_PICTURE_WIDTH - HPS_PICTURE_MARGIN) {
			x = LAYER_X;
			y += 20;
		}
		hps_canvas_type(p->c, x, y, SWATCH_W, 14, t, "box");
		hps_canvas_text(p->c, x + SWATCH_W + 6, y + 11, HPS_LEFT, "small", TYPE_MOST + 12,
				type->limited ? "%s (%llu of %u)" : "%s (%llu)", type->name,
				(unsigned long long)units, type->limit);
		x += 240;
	}
	return y + 20;
}

double hps_draw_schedule(struct hps_canvas *c, const struct hps_picture *x, double y)
{
	const struct hps_problem *problem = x->problem;
	const struct hps_solution *s = x->solution;
	struct hps_schedule sched = { s->stage, s->n_stages, s->trial.shards };
	struct panel p = { .c = c, .x = x, .cost = problem->cost };
	struct hps_stage_cost *row = hps_calloc(s->n_stages, sizeof(*row), c->err);
	double top;

	if (!row) {
		c->rc = HPS_MEMORY;
		return y;
	}
	p.row = row;
	hps_cost_eval(p.cost, &sched, NULL, &p.r, row);
	p.longest = p.r.cycle_s * 1.05;
	/* A floor that does not bind would press the bars together. */
	if (problem->floor > 0 && 1 / problem->floor < 2 * p.r.cycle_s) {
		p.floor_s = 1 / problem->floor;
		p.longest = fmax(p.longest, p.floor_s * 1.05);
	}
	y = draw_legend(&p, y);
	top = y + 26;
	y = top;
	for (uint32_t i = 0; i < s->n_stages; i++)
		y += draw_stage(&p, y, i) + BLOCK_GAP;
	if (s->trial.shards)
		y += draw_servers(&p, y) + BLOCK_GAP;
	if (p.r.cores_s > 0)
		y += draw_cores(&p, y) + BLOCK_GAP;
	draw_axis(&p, top, y);
	free(row);
	return y + 40;
}
