/* Read training data: Criteo TSV (label, 13 integers, 26 hex ids, blanks allowed) in
 * plain, gzip or zstd files or standard input, sniffed by content.
 *
 *   files -> scanner thread -> chunks of lines -> `parsers` threads -> batches, in order
 *
 * One reader a process. A scanner thread decompresses and finds lines; `parsers`
 * threads parse only the rows asked for, batches ahead; other lines are only counted.
 * Row numbers count physical lines over all files from 0, an epoch starts again at 0. The
 * number of integer and id columns follows the model (label + dense + slots columns).
 *
 * Memory: the text and the rows of `ahead` batches and of those the caller holds, about
 * 600 KiB of buffers, and with shuffling the text of two windows.
 *
 * Shuffling: the physical rows wN .. wN+N-1 of window w are permuted by (seed, epoch, w);
 * the last, shorter window within itself. Row numbers, of ranges and in batches, are then
 * positions in that order: so [begin, end) means the same rows on every host, and no number
 * comes twice in an epoch. Messages and places still name the true files and lines.
 *
 * Malformed lines are told in the order of rows when their batch is taken, whatever
 * parser met them first.
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
	const char *const *path; /* n_paths, the strings borrowed for the reader's life; "-" or
				  * none: standard input */
	size_t n_paths;
	uint32_t slots, dense;
	const struct hps_model *model; /* its preprocess rule, copied; NULL: values as they are */
	uint32_t parsers;	       /* threads, >= 1 */
	uint32_t ahead;		       /* batches parsed ahead, >= 1 */
	uint64_t skip_bad;	       /* malformed lines tolerated, in an epoch */
	uint64_t shuffle_rows;	       /* N, the window; 0 or 1: as they stand; at most 2^32 */
	uint64_t seed;
	uint64_t first_row, end_row; /* use only physical rows [first, end); end 0 = to the end.
				      * They are renumbered from 0, then shuffled */
	bool unlabelled;	     /* predict: rows may lack the label column; label = 0 then */
};

/* Which rows make a batch: the caller says, the parsers run ahead of it. Called from
 * the reader's own thread, in increasing order of *begin and without overlap (else
 * HPS_USAGE); false = nothing more. It may block, but must return false before
 * hps_reader_stop can end, and must not call the reader. ctx lives until the epoch is
 * stopped. */
struct hps_reader_wants {
	bool (*next)(void *ctx, uint64_t *begin, uint64_t *end);
	void *ctx;
};

struct hps_reader;

/* Check all files (an absent, empty or unreadable one is told at once). */
enum hps_status hps_reader_new(const struct hps_reader_opts *opts, struct hps_reader **out,
			       struct hps_err *err);
/* Begin an epoch, stopping one that runs. wants: the row ranges, copied; standard input and
 * pipes allow one epoch (HPS_USAGE). */
enum hps_status hps_reader_start(struct hps_reader *r, uint32_t epoch,
				 const struct hps_reader_wants *wants, struct hps_err *err);
/* The next batch asked for, in order. *out is the caller's until hps_reader_give_back; NULL
 * after the last range and once stopped. A range partly or wholly past the end comes with
 * fewer rows or none; *at_end is set when end_row of the batch reaches or passes the end of
 * the data. HPS_BAD_INPUT names file and line: "train.tsv:17: column 3: ..."; a failure
 * ends the epoch, later calls repeat it. One thread. */
enum hps_status hps_reader_next(struct hps_reader *r, struct hps_batch **out, bool *at_end,
				struct hps_err *err);
/* The number of rows of the epoch's data (lines in the range used), known once a batch came with
 * *at_end; UINT64_MAX before. The thread of hps_reader_next. */
uint64_t hps_reader_rows(const struct hps_reader *r);
/* Any thread. */
void hps_reader_give_back(struct hps_reader *r, struct hps_batch *b);
/* Stop the epoch (drops what was parsed ahead; batches taken stay valid). Also the way to
 * interrupt a blocked next, from any thread. */
void hps_reader_stop(struct hps_reader *r);
uint64_t hps_reader_skipped(const struct hps_reader *r); /* malformed lines so far in the epoch */
/* Stops first; all batches must have been given back. */
void hps_reader_free(struct hps_reader *r);

/* A digest of the operands' bytes: sizes and, of each file, 64 blocks of 64 KiB spread
 * over it. 0 if one is standard input or a pipe. Peers that must read the same data
 * compare it. */
enum hps_status hps_data_digest(const char *const *path, size_t n, uint64_t *digest,
				struct hps_err *err);

#endif
