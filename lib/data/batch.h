/* Rows in memory: what readers produce and training consumes. */
#ifndef HPS_DATA_BATCH_H
#define HPS_DATA_BATCH_H

#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/* `rows` valid rows in the epoch's order. Skipped lines are holes: they hold no row here
 * but keep their number. Keys are hashes of (slot, text): 64 bits, every value legal,
 * a blank is the hash of the empty text; tables reduce them (hps_table_key). */
struct hps_batch {
	uint32_t rows, capacity;
	uint32_t slots, dense;
	uint64_t *row;		     /* (rows) number of the row in the epoch, all files together */
	float *label;		     /* (rows) 0 or 1 */
	float *feature;		     /* (rows, dense), row-major, transformed */
	uint64_t *key;		     /* (rows, slots), row-major */
	uint64_t first_row, end_row; /* the range asked for */
	/* The lines it was read from, skipped ones included: the first and the last one in
	 * the order of files and lines. NULL and 0 where there was none. Names are borrowed
	 * from the reader. */
	const char *file, *last_file;
	uint64_t first_line, last_line;
};

enum hps_status hps_batch_init(struct hps_batch *b, uint32_t capacity, uint32_t slots,
			       uint32_t dense, struct hps_err *err);
void hps_batch_release(struct hps_batch *b);

#endif
