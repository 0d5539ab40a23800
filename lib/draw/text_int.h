/* Private to lib/draw: text of any origin made fit for a picture. */
#ifndef HPS_DRAW_TEXT_INT_H
#define HPS_DRAW_TEXT_INT_H

#include <stddef.h>
#include "base/buf.h"

/* Append at most `most` characters of s (0: all; where more are cut, the last is an ellipsis), as
 * XML text or attribute (&, <, >, " escaped; controls, lone surrogates, U+FFFE and U+FFFF and bytes
 * that are no UTF-8 become U+FFFD). */
enum hps_status hps_draw_xml(struct hps_buf *b, const char *s, size_t most, struct hps_err *err);
/* The same between double quotes of Graphviz: " and \ get a backslash, & an entity, as Graphviz
 * reads entities in labels. */
enum hps_status hps_draw_quoted(struct hps_buf *b, const char *s, size_t most, struct hps_err *err);

/* "12.3 us", "4.56 MB": three digits and a prefix, into out (24 bytes or more). */
const char *hps_draw_si(char *out, size_t size, double value, const char *unit);

/* 1, 2 or 5 times a power of ten: about n of them make up range (> 0). */
double hps_draw_step(double range, unsigned n);

#endif
