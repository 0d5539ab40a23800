/* Read training data: Criteo TSV (label, 13 integers, 26 hex ids, blanks allowed) in
 * plain, gzip or zstd files or standard input, sniffed by content.
 *
 * One reader a process. A scanner thread decompresses and finds lines; `parsers`
 * threads parse only the rows asked for, batches ahead. Row numbers count physical
 * lines over all files from 0, an epoch starts again at 0. The number of integer and
 * id columns follows the model (label + dense + slots columns).
 */
#ifndef HPS_DATA_READER_H
#define HPS_DATA_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "data/batch.h"
#include "job/model.h"

struct hps_reader_opts {
	const char *const *path; /* n_paths; "-" or none: standard input */
	size_t n_paths;
	uint32_t slots, dense;
	const struct hps_model *model; /* its preprocess rule; borrowed, for the reader's life */
	uint32_t parsers;	 /* threads, >= 1 */
	uint32_t ahead;		 /* batches parsed ahead, >= 1 */
	uint64_t skip_bad;	 /* malformed lines tolerated, in all */
	uint64_t shuffle_rows;	 /* window, 0 = none: rows are permuted within consecutive windows
				  * of this many by (seed, epoch, window), the same on every host */
	uint64_t seed;
	uint64_t first_row, end_row; /* use only physical rows [first, end); end 0 = to the end.
				      * They are renumbered from 0 */
	bool unlabelled; /* predict: rows may lack the label column; label = 0 then */
};

/* Which rows make a batch: the caller says, the parsers run ahead of it. Called from
 * the reader's own thread, in increasing order of *begin; false = nothing more. */
struct hps_reader_wants {
	bool (*next)(void *ctx, uint64_t *begin, uint64_t *end);
	void *ctx;
};

struct hps_reader;

/* Open all files (an absent, empty or unreadable one is told at once). */
enum hps_status hps_reader_new(const struct hps_reader_opts *opts, struct hps_reader **out,
			       struct hps_err *err);
/* Begin an epoch. wants: the row ranges; standard input allows epoch 0 only. */
enum hps_status hps_reader_start(struct hps_reader *r, uint32_t epoch,
				 const struct hps_reader_wants *wants, struct hps_err *err);
/* The next batch asked for, in order. *out is the caller's until hps_reader_give_back.
 * A range partly or wholly past the end comes with fewer rows or none; *at_end is set when
 * end_row of the batch reaches or passes the end of the data. HPS_BAD_INPUT names file and
 * line: "train.tsv:17: column 3: ...". One thread. */
enum hps_status hps_reader_next(struct hps_reader *r, struct hps_batch **out, bool *at_end,
				struct hps_err *err);
/* The number of rows (physical lines in the range used) of the data, known once a batch of this
 * epoch came with *at_end; UINT64_MAX before. The thread of hps_reader_next. */
uint64_t hps_reader_rows(const struct hps_reader *r);
void hps_reader_give_back(struct hps_reader *r, struct hps_batch *b);
/* Stop the epoch (drops what was parsed ahead). Also the way to interrupt a blocked next. */
void hps_reader_stop(struct hps_reader *r);
uint64_t hps_reader_skipped(const struct hps_reader *r); /* malformed lines so far */
void hps_reader_free(struct hps_reader *r);

/* A digest of the operands' bytes: sizes and, of each file, 64 blocks of 64 KiB spread
 * over it. 0 for standard input. Peers that must read the same data compare it. */
enum hps_status hps_data_digest(const char *const *path, size_t n, uint64_t *digest,
				struct hps_err *err);

#endif
