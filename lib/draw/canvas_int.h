/* Private to lib/draw: an SVG in the making. Coordinates in pixels, y downwards. The first error
 * stays; calls after it do nothing. */
#ifndef HPS_DRAW_CANVAS_INT_H
#define HPS_DRAW_CANVAS_INT_H

#include <stdint.h>
#include "base/buf.h"
#include "draw/draw.h"

struct hps_canvas {
	struct hps_buf *b;
	struct hps_err *err;
	enum hps_status rc;
};

enum hps_anchor { HPS_LEFT, HPS_MIDDLE, HPS_RIGHT };

/* Markup as it is: no text of the user's. */
void hps_canvas_raw(struct hps_canvas *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* css: classes of the style sheet in svg.c. */
void hps_canvas_rect(struct hps_canvas *c, double x, double y, double w, double h, const char *css);
void hps_canvas_line(struct hps_canvas *c, double x1, double y1, double x2, double y2,
		     const char *css);
/* One line of text on the baseline y, escaped, at most `most` characters (0: all). */
void hps_canvas_text(struct hps_canvas *c, double x, double y, enum hps_anchor anchor,
		     const char *css, size_t most, const char *fmt, ...)
	__attribute__((format(printf, 7, 8)));

/* A box in the colour of a type, hatched as it is. Types must be defined before. */
void hps_canvas_type(struct hps_canvas *c, double x, double y, double w, double h, uint32_t type,
		     const char *css);
/* "#rrggbb" of it, without the hatching. */
const char *hps_canvas_colour(uint32_t type);
/* The hatching of types, for <defs>; used: by type, those to define. */
void hps_canvas_define(struct hps_canvas *c, const uint8_t *used, uint32_t n_types);

/* --- panels: each draws from y on and returns where it ends --- */

enum { HPS_PICTURE_WIDTH = 1000, HPS_PICTURE_MARGIN = 24 };
double hps_draw_schedule(struct hps_canvas *c, const struct hps_picture *x, double y);
double hps_draw_frontier(struct hps_canvas *c, const struct hps_picture *x, double y);

#endif
