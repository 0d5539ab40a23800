/* Where data sets are written: a file that appears whole, by rename, or standard output;
 * plain, gzip or zstd. Compressed data are a sequence of members or frames, one a block:
 * any reader of the format joins them, and blocks can be compressed by several threads. */
#ifndef HPS_DATA_SINK_H
#define HPS_DATA_SINK_H

#include <stddef.h>
#include "base/buf.h"
#include "base/err.h"

enum hps_compress { HPS_COMPRESS_NONE, HPS_COMPRESS_GZIP, HPS_COMPRESS_ZSTD };

/* "none", "gzip", "zstd"; else HPS_USAGE says so. */
enum hps_status hps_compress_parse(const char *name, enum hps_compress *out, struct hps_err *err);

/* Append data as one whole member or frame (or as it is) to out. Blocks of 1 MiB and more
 * compress about as well as the whole would. Any thread. */
enum hps_status hps_compress_block(enum hps_compress how, const void *data, size_t len,
				   struct hps_buf *out, struct hps_err *err);

struct hps_sink;

/* path NULL or "-": standard output. */
enum hps_status hps_sink_new(const char *path, struct hps_sink **out, struct hps_err *err);
enum hps_status hps_sink_write(struct hps_sink *s, const void *data, size_t len,
			       struct hps_err *err);
/* The file appears. (Standard output is closed by hps_exit.) */
enum hps_status hps_sink_commit(struct hps_sink *s, struct hps_err *err);
/* Without a commit before, nothing is left of the file. NULL is fine. */
void hps_sink_free(struct hps_sink *s);

#endif
