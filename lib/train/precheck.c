/* Can the test data be read? They are met only after an epoch of training, too late to be told of a
 * malformed line: so their first rows are parsed before anybody is waited for. */
#include "train/settings.h"

#include <sys/stat.h>

#include "base/log.h"

/* As many as parse in about a second: evaluating them takes longer, after every epoch. */
enum { CHECK_ROWS = 1000000, CHECK_AT_ONCE = 4096 };

static bool next_range(void *ctx, uint64_t *begin, uint64_t *end)
{
	uint64_t *at = ctx;

	*begin = *at;
	*end = *at += CHECK_AT_ONCE;
	return *begin < CHECK_ROWS;
}

/* A pipe can be read once. */
static bool are_files(const char *const *path, size_t n)
{
	struct stat st;

	for (size_t i = 0; i < n; i++)
		if (stat(path[i], &st) || !S_ISREG(st.st_mode))
			return false;
	return true;
}

static enum hps_status read_through(struct hps_reader *reader, uint64_t *rows, struct hps_err *err)
{
	uint64_t at = 0;
	struct hps_reader_wants wants = { .next = next_range, .ctx = &at };
	enum hps_status st = hps_reader_start(reader, 0, &wants, err);
	bool at_end = false;

	*rows = 0;
	while (st == HPS_OK && !at_end) {
		struct hps_batch *b;

		st = hps_reader_next(reader, &b, &at_end, err);
		if (st != HPS_OK || !b)
			break;
		*rows += b->rows;
		hps_reader_give_back(reader, b);
	}
	hps_reader_stop(reader);
	return st;
}

enum hps_status hps_work_check_test(const struct hps_work_opts *o, uint32_t n_first,
				    struct hps_err *err)
{
	struct hps_reader_opts r;
	struct hps_reader *reader;
	enum hps_status st;
	uint64_t rows;

	if (!n_first || o->mode != HPS_WORK_TRAIN || !are_files(o->test, o->n_test) ||
	    !hps_work_test_data(o, n_first, &r))
		return HPS_OK;
	st = hps_reader_new(&r, &reader, err);
	if (st != HPS_OK)
		return st;
	st = read_through(reader, &rows, err);
	hps_reader_free(reader);
	if (st == HPS_OK && !rows)
		hps_warn("%s: no rows are left to evaluate", o->test[0]);
	return st;
}
