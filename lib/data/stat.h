/* Describe a data set in one pass and bounded memory.
 *
 * Exact: rows, lines, positives, blanks, minimum, mean, maximum. Quantiles come from a
 * histogram over the logarithm: within 1 % of the value, beyond +-2^63 cut. Distinct ids and
 * the counts of the most frequent ones are exact while a slot has at most
 * HPS_STAT_EXACT_IDS of them; beyond, distinct ids are estimated by HyperLogLog (standard
 * error 0.8 %), and a frequent id's count may be too low by `miscount` at most.
 * Memory: about 3 MiB a slot and 40 KiB a dense column at most.
 */
#ifndef HPS_DATA_STAT_H
#define HPS_DATA_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "doc/doc.h"

enum { HPS_STAT_EXACT_IDS = 32768, HPS_STAT_TOP = 5, HPS_STAT_TEXT = 24 };

struct hps_stat_opts {
	const char *const *path; /* n_paths; none: standard input */
	size_t n_paths;
	uint32_t slots, dense;
	bool unlabelled;
	uint64_t skip_bad; /* as struct hps_conv_opts */
	/* Called now and then with the lines read; false = stop, HPS_IO. May be NULL. */
	bool (*go_on)(void *ctx, uint64_t done);
	void *ctx;
};

struct hps_stat_dense {
	uint64_t blanks, negatives;
	bool any; /* a value that is not blank; else the rest means nothing */
	double min, mean, max, p10, p50, p90, p99;
};

struct hps_stat_id {
	char text[HPS_STAT_TEXT]; /* cut, with "..." at its end then */
	uint64_t count;
};

struct hps_stat_slot {
	uint64_t blanks;
	uint64_t distinct; /* a blank is one more */
	bool exact;
	uint64_t miscount;
	struct hps_stat_id top[HPS_STAT_TOP]; /* n_top, by count; a blank is "" */
	uint32_t n_top;
};

struct hps_stat {
	uint64_t rows, bad_lines, bytes; /* bytes: of the text, decompressed */
	uint64_t labelled, positives;
	uint32_t n_dense, n_slots;
	struct hps_stat_dense *dense;
	struct hps_stat_slot *slot;
};

/* *out is released by hps_stat_release, also after a failure. */
enum hps_status hps_stat(const struct hps_stat_opts *opts, struct hps_stat *out,
			 struct hps_err *err);
void hps_stat_release(struct hps_stat *s);

/* As a document (NULL without memory), and as a table for a person, appended to b. */
struct hps_doc *hps_stat_write(const struct hps_stat *s);
enum hps_status hps_stat_text(const struct hps_stat *s, struct hps_buf *b, struct hps_err *err);

#endif
