/* What does more speed cost, and where is this plan? The lower panel of the picture. */
#include <math.h>
#include "draw/canvas_int.h"
#include "draw/text_int.h"

enum { LEFT = 110, RIGHT = 930, HEIGHT = 280, LOG_FROM = 8, AXIS_TITLE_END = 200 };

/* One axis: from low to high of values, begin to end of pixels. */
struct axis {
	double low, high, begin, end;
	bool log;
};

static double place(const struct axis *a, double v)
{
	double share = a->log ? log(v / a->low) / log(a->high / a->low)
			      : (v - a->low) / (a->high - a->low);

	return a->begin + (a->end - a->begin) * fmin(fmax(share, 0), 1);
}

/* A little room around; logarithmic where values differ by a lot. */
static void settle(struct axis *a)
{
	double room;

	if (!(a->high > a->low * (1 + 1e-6)))
		a->high = a->low * 1.1 + 1e-300;
	a->log = a->low > 0 && a->high > LOG_FROM * a->low;
	if (a->log) {
		a->low /= 1.15;
		a->high *= 1.15;
		return;
	}
	room = (a->high - a->low) * 0.06;
	a->high += room;
	a->low = fmax(a->low - room, 0);
}

/* Where ticks go: calls tick for each. */
static void each_tick(const struct axis *a, unsigned n, void (*tick)(void *arg, double v),
		      void *arg)
{
	static const double mantissa[] = { 1, 2, 5 };
	double step, v;

	if (!a->log) {
		step = hps_draw_step(a->high - a->low, n);
		for (double i = ceil(a->low / step); i * step <= a->high; i++)
			tick(arg, i * step);
		return;
	}
	for (int e = (int)floor(log10(a->low)); e <= (int)ceil(log10(a->high)); e++)
		/* Many decades: their beginnings are enough. */
		for (int i = 0; i < (a->high > 1e3 * a->low ? 1 : 3); i++)
			if ((v = mantissa[i] * pow(10, e)) >= a->low && v <= a->high)
				tick(arg, v);
}

struct panel {
	struct hps_canvas *c;
	struct axis x, y;
	double unit; /* of cost: a sample's in millions */
};

static void tick_x(void *arg, double v)
{
	struct panel *p = arg;
	char si[32];

	hps_canvas_line(p->c, place(&p->x, v), p->y.begin, place(&p->x, v), p->y.end, "grid");
	hps_canvas_text(p->c, place(&p->x, v), p->y.begin + 16, HPS_MIDDLE, "small", 0, "%s",
			hps_draw_si(si, sizeof(si), v, ""));
}

static void tick_y(void *arg, double v)
{
	struct panel *p = arg;

	hps_canvas_line(p->c, p->x.begin, place(&p->y, v), p->x.end, place(&p->y, v), "grid");
	hps_canvas_text(p->c, p->x.begin - 8, place(&p->y, v) + 4, HPS_RIGHT, "small", 0, "%.4g",
			v);
}

static void widen(struct axis *a, double v)
{
	a->low = fmin(a->low, v);
	a->high = fmax(a->high, v);
}

static void set_axes(struct panel *p, const struct hps_picture *x)
{
	const struct hps_trial *mine = &x->solution->trial;

	p->x.low = p->x.high = mine->throughput;
	p->y.low = p->y.high = mine->objective * p->unit;
	for (size_t i = 0; i < x->frontier->n; i++) {
		const struct hps_solution *s = &x->frontier->point[i];

		widen(&p->x, s->trial.throughput);
		widen(&p->y, s->trial.objective * p->unit);
		if (s->has_bound && !s->proven && s->bound > 0)
			widen(&p->y, s->bound * p->unit);
	}
	if (x->problem->floor > p->x.low / 4)
		widen(&p->x, x->problem->floor);
	settle(&p->x);
	settle(&p->y);
}

/* Who asks for a throughput pays what the next plan to its right costs. */
static void draw_staircase(const struct panel *p, const struct hps_frontier *f)
{
	double x = p->x.begin, y;

	hps_canvas_raw(p->c, "<path class=\"stairs\" d=\"M");
	for (size_t i = 0; i < f->n; i++) {
		y = place(&p->y, f->point[i].trial.objective * p->unit);
		hps_canvas_raw(p->c, "%.1f,%.1f ", x, y);
		x = place(&p->x, f->point[i].trial.throughput);
		hps_canvas_raw(p->c, "%.1f,%.1f ", x, y);
	}
	hps_canvas_raw(p->c, "\"/>\n");
}

static void draw_points(const struct panel *p, const struct hps_frontier *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct hps_solution *s = &f->point[i];
		double x = place(&p->x, s->trial.throughput);
		double y = place(&p->y, s->trial.objective * p->unit);

		if (!s->proven && s->has_bound)
			hps_canvas_line(p->c, x, y, x, place(&p->y, s->bound * p->unit), "bound");
		hps_canvas_raw(p->c, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
			       s->proven ? "point" : "point open", x, y);
	}
}

static void draw_mine(const struct panel *p, const struct hps_picture *x)
{
	double cx = place(&p->x, x->solution->trial.throughput);
	double cy = place(&p->y, x->solution->trial.objective * p->unit);
	bool right = cx > LEFT + (RIGHT - LEFT) * 0.5;

	hps_canvas_raw(p->c, "<path class=\"mine\" d=\"M%.1f,%.1f l8,8 l-8,8 l-8,-8 Z\"/>\n", cx,
		       cy - 8);
	for (int i = 0; i < 2; i++)
		hps_canvas_text(p->c, cx + (right ? -10 : 10), cy - 12,
				right ? HPS_RIGHT : HPS_LEFT, i ? "strong" : "strong halo", 0,
				"this plan");
}

double hps_draw_frontier(struct hps_canvas *c, const struct hps_picture *x, double y)
{
	bool hourly = x->problem->objective == HPS_PRICE_PER_HOUR;
	struct panel p = { .c = c, .unit = hourly ? 1 : 1e6 };
	double floor_x;

	p.x.begin = LEFT;
	p.x.end = RIGHT;
	p.y.begin = y + 60 + HEIGHT;
	p.y.end = y + 60;
	set_axes(&p, x);
	hps_canvas_text(c, HPS_PICTURE_MARGIN, y + 20, HPS_LEFT, "strong", 0,
			"Cost against throughput");
	hps_canvas_text(
		c, HPS_PICTURE_MARGIN, y + 38, HPS_LEFT, "small", 150,
		"%zu plans by %s%s; full: proven the cheapest at that speed; open: not, the line "
		"goes down to the bound",
		x->frontier->n, x->frontier_method,
		x->frontier->interrupted ? " (interrupted)" : "");
	each_tick(&p.x, 6, tick_x, &p);
	each_tick(&p.y, 5, tick_y, &p);
	hps_canvas_line(c, LEFT, p.y.begin, RIGHT, p.y.begin, "axis");
	hps_canvas_line(c, LEFT, p.y.begin, LEFT, p.y.end, "axis");
	hps_canvas_text(c, RIGHT, p.y.begin + 34, HPS_RIGHT, "small", 0, "samples a second");
	hps_canvas_text(c, HPS_PICTURE_MARGIN, p.y.end - 8, HPS_LEFT, "small", 0, "dollars %s",
			hourly ? "an hour" : "per million samples");
	if (x->problem->floor > p.x.low && x->problem->floor < p.x.high) {
		floor_x = place(&p.x, x->problem->floor);
		hps_canvas_line(c, floor_x, p.y.begin, floor_x, p.y.end, "floor");
		hps_canvas_text(c, fmax(floor_x, AXIS_TITLE_END), p.y.end - 8, HPS_LEFT, "small", 0,
				"floor");
	}
	draw_staircase(&p, x->frontier);
	draw_points(&p, x->frontier);
	draw_mine(&p, x);
	return p.y.begin + 44;
}
