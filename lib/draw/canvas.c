/* How do boxes, lines and text become SVG? Colours: Okabe and Ito, Color Universal Design, 2008. */
#include "draw/canvas_int.h"
#include <stdarg.h>
#include <stdio.h>
#include "draw/text_int.h"

void hps_canvas_raw(struct hps_canvas *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!c->rc)
		c->rc = hps_buf_printf(c->b, c->err, "%s", text);
}

void hps_canvas_rect(struct hps_canvas *c, double x, double y, double w, double h, const char *css)
{
	hps_canvas_raw(
		c, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
		css, x, y, w > 0 ? w : 0, h);
}

void hps_canvas_line(struct hps_canvas *c, double x1, double y1, double x2, double y2,
		     const char *css)
{
	hps_canvas_raw(c, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
		       css, x1, y1, x2, y2);
}

void hps_canvas_text(struct hps_canvas *c, double x, double y, enum hps_anchor anchor,
		     const char *css, size_t most, const char *fmt, ...)
{
	static const char *const anchors[] = { "start", "middle", "end" };
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	hps_canvas_raw(c, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", css, x, y,
		       anchors[anchor]);
	if (!c->rc)
		c->rc = hps_draw_xml(c->b, text, most, c->err);
	hps_canvas_raw(c, "</text>\n");
}

/* Without its black, which is for text; grey in its place. */
static const char *const colour[] = { "#56b4e9", "#e69f00", "#009e73", "#f0e442",
				      "#cc79a7", "#d55e00", "#0072b2", "#999999" };
/* Lines of an 8 x 8 tile. */
static const char *const hatch[] = {
	NULL,
	"M-2,2 L2,-2 M0,8 L8,0 M6,10 L10,6",
	"M-2,6 L2,10 M0,0 L8,8 M6,-2 L10,2",
	"M0,4 L8,4",
	"M4,0 L4,8",
	"M0,4 L8,4 M4,0 L4,8",
	"M0,0 L8,8 M0,8 L8,0",
	"M3,3 L5,3 L5,5 L3,5 Z",
};

enum { COLOURS = sizeof(colour) / sizeof(*colour), HATCHES = sizeof(hatch) / sizeof(*hatch) };

void hps_canvas_define(struct hps_canvas *c, const uint8_t *used, uint32_t n_types)
{
	for (uint32_t t = 0; t < n_types; t++) {
		const char *lines = hatch[t / COLOURS % HATCHES];

		if (used[t] && lines)
			hps_canvas_raw(
				c,
				"<pattern id=\"t%u\" width=\"8\" height=\"8\" "
				"patternUnits=\"userSpaceOnUse\"><path d=\"%s\" fill=\"none\" "
				"stroke=\"#000\" stroke-width=\"1.2\"/></pattern>\n",
				t, lines);
	}
}

static void filled(struct hps_canvas *c, double x, double y, double w, double h, const char *fill,
		   const char *css)
{
	hps_canvas_raw(c,
		       "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
		       "fill=\"%s\"/>\n",
		       css, x, y, w > 0 ? w : 0, h, fill);
}

void hps_canvas_type(struct hps_canvas *c, double x, double y, double w, double h, uint32_t type,
		     const char *css)
{
	char url[32];

	filled(c, x, y, w, h, colour[type % COLOURS], css);
	snprintf(url, sizeof(url), "url(#t%u)", type);
	if (hatch[type / COLOURS % HATCHES])
		filled(c, x, y, w, h, url, css);
}

const char *hps_canvas_colour(uint32_t type)
{
	return colour[type % COLOURS];
}
