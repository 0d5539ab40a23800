/* Copy a data set: another compression, some of the rows, every line checked on the way. */
#ifndef HPS_DATA_CONV_H
#define HPS_DATA_CONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "data/sink.h"

struct hps_conv_opts {
	const char *const *path; /* n_paths; none: standard input */
	size_t n_paths;
	uint32_t slots, dense;
	bool unlabelled;      /* lines may lack the label */
	uint64_t first, last; /* physical rows from 1 over all files; last 0: to the end */
	uint64_t skip_bad;    /* malformed lines left out; one more is HPS_BAD_INPUT */
	enum hps_compress compress;
	/* Called now and then with the lines read; false = stop, HPS_IO. May be NULL. */
	bool (*go_on)(void *ctx, uint64_t done);
	void *ctx;
};

/* Lines end in \n whatever they ended in. HPS_BAD_INPUT names file and line; no row between
 * first and last is HPS_BAD_INPUT too. */
enum hps_status hps_conv(const struct hps_conv_opts *opts, struct hps_sink *sink, uint64_t *rows,
			 uint64_t *skipped, struct hps_err *err);

#endif
