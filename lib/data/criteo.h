/* One line of Criteo text: label, integers, ids, separated by tabs.
 *
 *   label \t int1 .. intD \t id1 .. idS        (1 + dense + slots columns)
 *
 * The label is 0 or 1. An integer is blank or [+-]digits of any length; beyond the range
 * of a double it saturates. An id is blank or any text without a tab; its key is the hash
 * of its bytes with its slot's number as seed. A NUL byte is nowhere legal.
 * Pure functions; a struct hps_criteo may be shared by threads once set up.
 */
#ifndef HPS_DATA_CRITEO_H
#define HPS_DATA_CRITEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "data/preprocess.h"

struct hps_criteo {
	uint32_t slots, dense;
	bool unlabelled; /* the label column may be missing; label = 0 then */
	size_t line_max; /* bytes; a longer line is malformed */
	struct hps_preprocess pre;
};

/* Bytes after a line that hps_criteo_parse may read, though not use. */
enum { HPS_TEXT_PAD = 16 };

/* model: its preprocess rule, NULL for raw values. HPS_USAGE beyond HPS_MAX_SLOTS slots or
 * HPS_MAX_COLS dense columns, or without any column. */
enum hps_status hps_criteo_init(struct hps_criteo *c, uint32_t slots, uint32_t dense,
				const struct hps_model *model, struct hps_err *err);

/* text[0..len) is one line without its end (no \n, no \r\n); text[len] must not be a tab
 * or a digit, and HPS_TEXT_PAD bytes from text + len on must be readable. feature: (dense),
 * key: (slots). False if the line is malformed (what was written then means nothing). */
bool hps_criteo_parse(const struct hps_criteo *c, const char *text, size_t len, float *label,
		      float *feature, uint64_t *key);

/* A field of a line, borrowed from it. */
struct hps_field {
	const char *text;
	size_t len;
};

/* The plain reference of the above, and the one that says what is wrong:
 * "column 3: expected an integer, got "x"". field: (1 + dense + slots) where each column
 * lies, the label first (without one: text NULL); value: (dense), raw, 0 for a blank. */
enum hps_status hps_criteo_split(const struct hps_criteo *c, const char *text, size_t len,
				 struct hps_field *field, double *value, struct hps_err *err);

/* The key of an id. */
uint64_t hps_criteo_key(uint32_t slot, const char *text, size_t len);

#endif
