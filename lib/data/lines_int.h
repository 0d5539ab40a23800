/* The lines of several operands, in chunks of whole lines.
 *
 *   chunk   | line \n line \n ... line \n | pad |     lines of one file only
 *
 * A line longer than line_max is cut to line_max + 1 bytes, so that whoever parses it
 * sees that it is too long, and memory stays bounded. The last line of a file gets its
 * newline if it has none. A \r before a newline is left for hps_line_at to drop.
 */
#ifndef HPS_DATA_LINES_INT_H
#define HPS_DATA_LINES_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct hps_chunk {
	struct hps_chunk *next; /* in the free list */
	unsigned refs;		/* under the list's lock */
	uint32_t file;		/* index of the operand */
	uint64_t first_line;	/* number of its first line in the file, from 1 */
	uint64_t lines;
	uint64_t mark; /* the consumer's own; 0 to begin with */
	size_t len;
	char data[]; /* len bytes, HPS_TEXT_PAD more may be read */
};

struct hps_lines;

/* Check all operands as hps_source_check; none: standard input. The paths are borrowed for
 * the reader's life, the array is not. */
enum hps_status hps_lines_new(const char *const *path, size_t n, size_t line_max,
			      struct hps_lines **out, struct hps_err *err);
void hps_lines_free(struct hps_lines *l); /* all chunks must have been put back */

/* Begin at the first operand again: HPS_USAGE if one can be read only once, and was. */
enum hps_status hps_lines_rewind(struct hps_lines *l, struct hps_err *err);

/* The next chunk, with one reference; NULL at the end of the last operand and after
 * hps_lines_wake. A file without a line is HPS_BAD_INPUT. One thread. */
enum hps_status hps_lines_next(struct hps_lines *l, struct hps_chunk **out, struct hps_err *err);

/* References may be taken and put back by any thread. */
void hps_chunk_hold(struct hps_lines *l, struct hps_chunk *c);
void hps_chunk_put(struct hps_lines *l, struct hps_chunk *c);

/* End a wait for input for good, until the next rewind; any thread. */
void hps_lines_wake(struct hps_lines *l);

/* The name of operand i for messages. */
const char *hps_lines_name(const struct hps_lines *l, uint32_t file);

/* Put "FILE:LINE" in front of a malformed line's error, and how many were skipped before it
 * where some were. */
void hps_lines_blame(const struct hps_lines *l, uint32_t file, uint64_t line, uint64_t skipped,
		     struct hps_err *err);

/* The length of the line at text, less \n or \r\n; *next is where the one after begins. */
size_t hps_line_at(const char *text, const char *end, const char **next);

/* Where the line after the first n begins, in a text of at least n whole lines. */
const char *hps_line_skip(const char *text, const char *end, uint64_t n);

#endif
