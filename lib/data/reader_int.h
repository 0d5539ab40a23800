/* What the reader's scanner, its parsers and its caller share.
 *
 * Jobs stand in a ring: the scanner fills job[filled], parsers take job[taken], the caller
 * receives job[given], each counter running modulo `ahead`, given <= taken <= filled.
 *
 *        given        taken           filled
 *   ... | parsed | in parsing | scanned | free ...
 *
 * A job belongs to one side at a time: it changes hands under the lock.
 */
#ifndef HPS_DATA_READER_INT_H
#define HPS_DATA_READER_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include "data/criteo.h"
#include "data/lines_int.h"
#include "data/reader.h"

struct hps_line {
	const char *text; /* in a chunk that the job holds */
	uint32_t len, file;
	uint64_t number;
};

struct hps_job {
	uint64_t begin, end;   /* rows asked for; line[i] is row begin + i */
	struct hps_line *line; /* n_lines */
	size_t n_lines, cap_lines;
	struct hps_chunk **chunk; /* n_chunks held */
	size_t n_chunks, cap_chunks;
	bool at_end;
	uint64_t rows;		/* at_end: of all the data */
	bool last;		/* no batch: the caller wants nothing more, or it failed */
	enum hps_status status; /* after all its lines */
	struct hps_err err;

	bool parsed;
	struct hps_batch *batch;
	size_t *bad; /* lines that are malformed, ascending */
	size_t n_bad, cap_bad;
};

struct hps_batch_node {
	struct hps_batch batch; /* first: a batch is its node */
	struct hps_batch_node *next;
};

struct hps_reader {
	struct hps_reader_opts opts;
	struct hps_criteo criteo;
	struct hps_lines *lines;

	/* of the running epoch */
	struct hps_reader_wants wants;
	uint32_t epoch;
	pthread_t scanner, *parser;
	uint32_t n_parsers; /* started */
	bool scanning;	    /* the scanner was started */

	pthread_mutex_t lock;
	pthread_cond_t can_fill, can_parse, can_give, idle;
	struct hps_job *job; /* opts.ahead */
	uint64_t filled, taken, given;
	bool running, stopping;
	_Atomic uint64_t skipped;
	struct hps_batch_node *spare;
	/* the caller's thread only */
	uint64_t rows; /* of the data; UINT64_MAX: not yet known */
	enum hps_status failed;
	struct hps_err failure;
};

/* The scanner thread; arg is the reader. */
void *hps_reader_scan(void *arg);

/* Room for one more element in an array that doubles; 0 or -1 with HPS_MEMORY in err. */
int hps_reader_room(void **array, size_t n, size_t *cap, size_t size, struct hps_err *err);

#endif
