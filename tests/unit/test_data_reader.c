/* The reader: every compression, several files, ranges, order, shuffling, malformed lines,
 * damaged files, pipes, stopping. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "child.h"
#include "cm.h"
#include "data/reader.h"
#include "data/sink.h"

enum { SLOTS = 2, DENSE = 1 };

static char scratch[128];

static const char *in_scratch(const char *name)
{
	static char path[4][256];
	static int turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof path[0], "%s/%s", scratch, name);
	return p;
}

static int make_scratch(void **state)
{
	scratch_make(scratch, sizeof scratch);
	return 0;
}

static int remove_scratch(void **state)
{
	scratch_remove(scratch);
	return 0;
}

/* Row i of the data: its number is its integer, so that a batch tells what it holds. */
static void add_row(struct hps_buf *b, uint64_t i, const char *end)
{
	assert_int_equal(hps_buf_printf(b, NULL, "%d\t%d\tid%d\t%s%s", (int)(i % 3 == 0), (int)i,
					(int)(i % 7), i % 5 ? "x" : "", end),
			 HPS_OK);
}

static void write_bytes(const char *path, const void *data, size_t len)
{
	assert_int_equal(hps_file_write(path, data, len, 0600, NULL), HPS_OK);
}

static void write_rows(const char *path, uint64_t from, uint64_t to, enum hps_compress how)
{
	struct hps_buf text = HPS_BUF_INIT, out = HPS_BUF_INIT;

	/* Two members or frames, cut within a line. */
	for (uint64_t i = from; i < to; i++)
		add_row(&text, i, "\n");
	assert_int_equal(hps_compress_block(how, text.data, text.len / 2, &out, NULL), HPS_OK);
	assert_int_equal(hps_compress_block(how, text.data + text.len / 2, text.len - text.len / 2,
					    &out, NULL),
			 HPS_OK);
	write_bytes(path, out.data, out.len);
	hps_buf_release(&text);
	hps_buf_release(&out);
}

/* Wants: batches of `size` rows from `begin` on, each `stride` rows after the one before. */
struct wants {
	uint64_t begin, size, stride;
	uint64_t left; /* batches */
};

static bool next_want(void *ctx, uint64_t *begin, uint64_t *end)
{
	struct wants *w = ctx;

	if (w->left == 0)
		return false;
	w->left--;
	*begin = w->begin;
	*end = w->begin + w->size;
	w->begin += w->stride;
	return true;
}

static struct hps_reader_opts options(const char *const *path, size_t n)
{
	return (struct hps_reader_opts){
		.path = path, .n_paths = n, .slots = SLOTS, .dense = DENSE, .parsers = 2, .ahead = 3
	};
}

static struct hps_reader *open_reader(const struct hps_reader_opts *o)
{
	struct hps_reader *r;
	struct hps_err err = { 0 };

	if (hps_reader_new(o, &r, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
	return r;
}

static void start(struct hps_reader *r, uint32_t epoch, struct wants *w)
{
	const struct hps_reader_wants wants = { next_want, w };

	assert_int_equal(hps_reader_start(r, epoch, &wants, NULL), HPS_OK);
}

/* Read an epoch in batches of `size` to its end: values[row number] = the integer, -1 for
 * holes. Returns the rows' end, or on failure fills err. */
static enum hps_status read_epoch(struct hps_reader *r, uint32_t epoch, uint64_t size, int *value,
				  size_t max, uint64_t *rows, struct hps_err *err)
{
	struct wants w = { 0, size, size, UINT64_MAX };
	const struct hps_reader_wants wants = { next_want, &w };
	enum hps_status st = hps_reader_start(r, epoch, &wants, err);
	uint64_t next = 0;
	bool at_end = st != HPS_OK;

	for (size_t i = 0; i < max; i++)
		value[i] = -1;
	*rows = 0;
	while (!at_end) {
		struct hps_batch *b;

		if ((st = hps_reader_next(r, &b, &at_end, err)) != HPS_OK)
			break;
		assert_non_null(b);
		assert_int_equal(b->first_row, next);
		next = b->end_row;
		for (uint32_t k = 0; k < b->rows; k++) {
			int v = (int)b->feature[k];

			assert_in_range(b->row[k], b->first_row, b->end_row - 1);
			assert_true(b->row[k] < max);
			assert_int_equal(value[b->row[k]], -1);
			value[b->row[k]] = v;
			assert_int_equal(b->label[k] == 1, v % 3 == 0);
			assert_int_equal(b->key[k * SLOTS + 1],
					 hps_hash_bytes("x", v % 5 ? 1 : 0, 1));
			++*rows;
		}
		hps_reader_give_back(r, b);
	}
	hps_reader_stop(r); /* w ends here */
	return st;
}

static void all_compressions_read_alike(void **state)
{
	enum { N = 30000 };
	static int value[N + 1];
	static const char *const name[] = { "none", "gzip", "zstd" };
	uint64_t rows;

	for (int how = 0; how < 3; how++) {
		const char *path = in_scratch(name[how]);
		struct hps_reader_opts o = options(&path, 1);
		struct hps_reader *r;

		write_rows(path, 0, N, (enum hps_compress)how);
		o.parsers = 1 + (uint32_t)how;
		o.ahead = 1 + 2 * (uint32_t)how;
		r = open_reader(&o);
		for (uint32_t epoch = 0; epoch < 2; epoch++) {
			assert_int_equal(read_epoch(r, epoch, 777, value, N + 1, &rows, NULL),
					 HPS_OK);
			assert_int_equal(rows, N);
			for (int i = 0; i < N; i++)
				assert_int_equal(value[i], i);
		}
		hps_reader_free(r);
	}
}

static void files_follow_one_another(void **state)
{
	enum { N = 3000 };
	static int value[N];
	const char *path[3] = { in_scratch("a"), in_scratch("b"), in_scratch("c") };
	struct hps_reader_opts o = options(path, 3);
	struct hps_buf text = HPS_BUF_INIT;
	struct hps_reader *r;
	struct hps_batch *b;
	struct wants w = { 990, 20, 20, 1 };
	uint64_t rows;
	bool at_end;

	write_rows(path[0], 0, 1000, HPS_COMPRESS_ZSTD);
	for (uint64_t i = 1000; i < 2000; i++) /* \r\n, and no end of the last line */
		add_row(&text, i, i < 1999 ? "\r\n" : "");
	write_bytes(path[1], text.data, text.len);
	write_rows(path[2], 2000, N, HPS_COMPRESS_GZIP);
	r = open_reader(&o);
	assert_int_equal(read_epoch(r, 0, 64, value, N, &rows, NULL), HPS_OK);
	assert_int_equal(rows, N);
	for (int i = 0; i < N; i++)
		assert_int_equal(value[i], i);
	start(r, 1, &w);
	assert_int_equal(hps_reader_next(r, &b, &at_end, NULL), HPS_OK);
	assert_string_equal(b->file, path[0]);
	assert_int_equal(b->first_line, 991);
	assert_string_equal(b->last_file, path[1]);
	assert_int_equal(b->last_line, 10);
	assert_false(at_end);
	hps_reader_give_back(r, b);
	hps_reader_free(r);
	hps_buf_release(&text);
}

static void only_ranges_wanted_are_parsed(void **state)
{
	const char *path = in_scratch("rows");
	struct hps_reader_opts o = options(&path, 1);
	struct hps_buf text = HPS_BUF_INIT;
	struct wants w = { 100, 10, 200, 3 };
	struct hps_reader *r;
	struct hps_batch *b;
	bool at_end;

	for (uint64_t i = 0; i < 505; i++)
		if (i >= 110 && i < 300)
			assert_int_equal(hps_buf_printf(&text, NULL, "junk\n"), HPS_OK);
		else
			add_row(&text, i, "\n");
	write_bytes(path, text.data, text.len);
	r = open_reader(&o);
	start(r, 0, &w);
	for (uint64_t k = 0; k < 3; k++) {
		assert_int_equal(hps_reader_next(r, &b, &at_end, NULL), HPS_OK);
		assert_int_equal(b->rows, k < 2 ? 10 : 5);
		assert_int_equal(b->row[0], 100 + 200 * k);
		assert_int_equal(b->feature[0], 100 + 200 * k);
		assert_int_equal(b->first_line, 101 + 200 * k);
		assert_int_equal(at_end, k == 2);
		hps_reader_give_back(r, b);
	}
	assert_int_equal(hps_reader_next(r, &b, &at_end, NULL), HPS_OK);
	assert_null(b);
	hps_reader_free(r);
	hps_buf_release(&text);
}

static void the_end_is_seen_at_once(void **state)
{
	const char *path = in_scratch("end");
	struct hps_reader_opts o = options(&path, 1);
	struct hps_reader *r;
	struct hps_batch *b;
	struct wants w = { 0, 50, 50, 4 };
	bool at_end;

	write_rows(path, 0, 100, HPS_COMPRESS_NONE);
	r = open_reader(&o);
	start(r, 0, &w);
	for (int k = 0; k < 4; k++) { /* 50, 50, then two that lie past the end */
		assert_int_equal(hps_reader_next(r, &b, &at_end, NULL), HPS_OK);
		assert_int_equal(b->rows, k < 2 ? 50 : 0);
		assert_int_equal(at_end, k >= 1);
		assert_int_equal(hps_reader_rows(r), k >= 1 ? 100 : UINT64_MAX);
		if (k == 3)
			assert_null(b->file);
		hps_reader_give_back(r, b);
	}
	hps_reader_free(r);
}

static void a_part_of_the_rows(void **state)
{
	static int value[100];
	const char *path = in_scratch("part");
	struct hps_reader_opts o = options(&path, 1);
	struct hps_reader *r;
	uint64_t rows;

	write_rows(path, 0, 1000, HPS_COMPRESS_NONE);
	o.first_row = 900;
	o.end_row = 950;
	for (int shuffle = 0; shuffle < 2; shuffle++) {
		int sum = 0;

		o.shuffle_rows = shuffle ? 16 : 0;
		r = open_reader(&o);
		assert_int_equal(read_epoch(r, 0, 25, value, 100, &rows, NULL), HPS_OK);
		assert_int_equal(rows, 50);
		for (int i = 0; i < 50; i++)
			sum += value[i] - 900;
		assert_int_equal(sum, 49 * 50 / 2);
		hps_reader_free(r);
	}
	o.first_row = 5000;
	o.end_row = 0;
	r = open_reader(&o);
	assert_int_equal(read_epoch(r, 0, 25, value, 100, &rows, NULL), HPS_OK);
	assert_int_equal(rows, 0);
	hps_reader_free(r);
	o.end_row = 5000;
	assert_int_equal(hps_reader_new(&o, &r, NULL), HPS_USAGE);
}

static void shuffling_permutes_within_windows(void **state)
{
	enum { N = 2500, WINDOW = 1000 };
	static int a[N], b[N], other[N], seen[N];
	const char *path[2] = { in_scratch("s1"), in_scratch("s2") };
	struct hps_reader_opts o = options(path, 2);
	struct hps_reader *r;
	uint64_t rows;
	int moved = 0, differ = 0;

	write_rows(path[0], 0, 1500, HPS_COMPRESS_NONE);
	write_rows(path[1], 1500, N, HPS_COMPRESS_GZIP);
	o.shuffle_rows = WINDOW;
	o.seed = 5;
	r = open_reader(&o);
	assert_int_equal(read_epoch(r, 0, 300, a, N, &rows, NULL), HPS_OK);
	assert_int_equal(rows, N);
	/* Another size of batches and number of threads: the same order. */
	assert_int_equal(read_epoch(r, 1, 300, other, N, &rows, NULL), HPS_OK);
	hps_reader_free(r);
	o.parsers = 3;
	r = open_reader(&o);
	assert_int_equal(read_epoch(r, 0, 77, b, N, &rows, NULL), HPS_OK);
	hps_reader_free(r);
	assert_memory_equal(a, b, sizeof a);
	memset(seen, 0, sizeof seen);
	for (int i = 0; i < N; i++) {
		assert_int_equal(a[i] / WINDOW, i / WINDOW);
		assert_int_equal(seen[a[i]]++, 0);
		moved += a[i] != i;
		differ += a[i] != other[i];
	}
	assert_true(moved > N * 9 / 10);
	assert_true(differ > N * 9 / 10);
}

/* A host that asks for a part of the ranges sees the rows that another sees there. */
static void shuffled_ranges_mean_the_same_rows(void **state)
{
	enum { N = 2500 };
	static int all[N];
	const char *path = in_scratch("same");
	struct hps_reader_opts o = options(&path, 1);
	struct wants w = { 150, 100, 450, 6 };
	struct hps_reader *r;
	struct hps_batch *b;
	uint64_t rows;
	bool at_end;

	write_rows(path, 0, N, HPS_COMPRESS_NONE);
	o.shuffle_rows = 200;
	o.seed = 9;
	r = open_reader(&o);
	assert_int_equal(read_epoch(r, 3, 256, all, N, &rows, NULL), HPS_OK);
	start(r, 3, &w);
	for (int k = 0; k < 6; k++) {
		uint64_t begin = 150 + 450 * (uint64_t)k, last = 0;

		assert_int_equal(hps_reader_next(r, &b, &at_end, NULL), HPS_OK);
		assert_int_equal(b->rows, 100);
		for (uint32_t i = 0; i < b->rows; i++) {
			assert_int_equal(b->row[i], begin + i);
			assert_int_equal((int)b->feature[i], all[begin + i]);
			assert_in_range((int)b->feature[i] + 1, b->first_line, b->last_line);
			if ((uint64_t)b->feature[i] > last)
				last = (uint64_t)b->feature[i];
		}
		assert_int_equal(b->last_line, last + 1);
		assert_int_equal(at_end, k == 5 && begin + 100 >= N);
		hps_reader_give_back(r, b);
	}
	hps_reader_free(r);
}

static void write_with_bad_lines(const char *path)
{
	struct hps_buf text = HPS_BUF_INIT;

	for (uint64_t i = 0; i < 100; i++)
		if (i % 20 == 16)
			assert_int_equal(hps_buf_printf(&text, NULL, "0\tx%d\ta\tb\n", (int)i),
					 HPS_OK);
		else
			add_row(&text, i, "\n");
	write_bytes(path, text.data, text.len);
	hps_buf_release(&text);
}

static void bad_lines_are_counted_or_named(void **state)
{
	static int value[100];
	const char *path = in_scratch("bad.tsv");
	struct hps_reader_opts o = options(&path, 1);

	write_with_bad_lines(path); /* lines 17, 37, 57, 77, 97 */
	for (uint64_t tolerated = 0; tolerated <= 5; tolerated++)
		for (uint64_t size = 1; size < 200; size = size * 5 + 2) {
			struct hps_err err = { 0 };
			struct hps_reader *r;
			uint64_t rows;
			char want[300];

			o.skip_bad = tolerated;
			r = open_reader(&o);
			if (tolerated == 5) { /* anew in each epoch */
				for (uint32_t epoch = 0; epoch < 2; epoch++) {
					assert_int_equal(
						read_epoch(r, epoch, size, value, 100, &rows, &err),
						HPS_OK);
					assert_int_equal(rows, 95);
					assert_int_equal(value[16], -1);
					assert_int_equal(value[17], 17);
				}
				assert_int_equal(hps_reader_skipped(r), 5);
			} else {
				bool at_end;
				struct hps_batch *b;

				assert_int_equal(read_epoch(r, 0, size, value, 100, &rows, &err),
						 HPS_BAD_INPUT);
				snprintf(want, sizeof want, "%s:%d", path,
					 (int)tolerated * 20 + 17);
				assert_string_equal(err.where, want);
				snprintf(want, sizeof want,
					 "column 2: expected an integer, got \"x%d\"",
					 (int)tolerated * 20 + 16);
				assert_string_equal(err.msg, want);
				snprintf(want, sizeof want, "skipped: %d,", (int)tolerated);
				assert_true(tolerated == 0 || strstr(err.hint, want) != NULL);
				assert_int_equal(hps_reader_skipped(r), tolerated);
				/* It stays failed. */
				assert_int_equal(hps_reader_next(r, &b, &at_end, NULL),
						 HPS_BAD_INPUT);
				assert_null(b);
			}
			hps_reader_free(r);
		}
}

static void bad_lines_are_named_when_shuffled(void **state)
{
	static int value[100];
	const char *path = in_scratch("bad.tsv");
	struct hps_reader_opts o = options(&path, 1);
	struct hps_err err = { 0 };
	struct hps_reader *r;
	uint64_t rows;
	int line, row;

	write_with_bad_lines(path);
	o.shuffle_rows = 30;
	r = open_reader(&o);
	assert_int_equal(read_epoch(r, 0, 10, value, 100, &rows, &err), HPS_BAD_INPUT);
	assert_int_equal(sscanf(strrchr(err.where, ':'), ":%d", &line), 1);
	assert_int_equal(sscanf(err.msg, "column 2: expected an integer, got \"x%d\"", &row), 1);
	assert_int_equal(line, row + 1);
	hps_reader_free(r);
}

static void long_lines_take_bounded_memory(void **state)
{
	static int value[10];
	const char *path = in_scratch("long");
	struct hps_reader_opts o = options(&path, 1);
	struct hps_buf text = HPS_BUF_INIT;
	struct hps_err err = { 0 };
	struct hps_reader *r;
	uint64_t rows;

	add_row(&text, 0, "\n");
	/* Around the limit of this many columns, then far beyond it and any buffer. */
	for (size_t len = 65780; len < 65800; len++) {
		assert_int_equal(hps_buf_reserve(&text, len + 1, NULL), HPS_OK);
		memset(text.data + text.len, 'y', len);
		text.len += len;
		assert_int_equal(hps_buf_add(&text, "\r\n", 2, NULL), HPS_OK);
	}
	assert_int_equal(hps_buf_reserve(&text, 5000000, NULL), HPS_OK);
	memset(text.data + text.len, '\r', 5000000);
	text.len += 5000000;
	assert_int_equal(hps_buf_add(&text, "\n", 1, NULL), HPS_OK);
	add_row(&text, 22, "\n");
	write_bytes(path, text.data, text.len);
	r = open_reader(&o);
	assert_int_equal(read_epoch(r, 0, 5, value, 10, &rows, &err), HPS_BAD_INPUT);
	assert_int_equal(err.where[strlen(err.where) - 1], '2');
	hps_reader_free(r);
	o.skip_bad = 21;
	r = open_reader(&o);
	{
		static int all[23];

		assert_int_equal(read_epoch(r, 0, 5, all, 23, &rows, &err), HPS_OK);
		assert_int_equal(rows, 2);
		assert_int_equal(all[22], 22);
	}
	hps_reader_free(r);
	hps_buf_release(&text);
}

/* Read path to its end; what went wrong, if anything. */
static enum hps_status outcome(const char *path, struct hps_err *err)
{
	static int value[100000];
	struct hps_reader_opts o = options(&path, 1);
	struct hps_reader *r;
	enum hps_status st = hps_reader_new(&o, &r, err);
	uint64_t rows;

	if (st != HPS_OK)
		return st;
	st = read_epoch(r, 0, 500, value, 100000, &rows, err);
	hps_reader_free(r);
	return st;
}

static void expect(const char *path, enum hps_status st, const char *says)
{
	struct hps_err err = { 0 };

	assert_int_equal(outcome(path, &err), st);
	if (strstr(err.msg, says) == NULL)
		fail_msg("\"%s\" lacks \"%s\"", err.msg, says);
	assert_int_equal(strncmp(err.where, path, strlen(path)), 0);
}

static void damaged_files_are_named(void **state)
{
	const char *path = in_scratch("whole"), *cut = in_scratch("cut");
	struct hps_buf whole = HPS_BUF_INIT, empty = HPS_BUF_INIT;

	for (int how = HPS_COMPRESS_GZIP; how <= HPS_COMPRESS_ZSTD; how++) {
		const char *says = how == HPS_COMPRESS_GZIP ? "truncated gzip" : "truncated zstd";

		write_rows(path, 0, 20000, (enum hps_compress)how);
		whole.len = 0;
		assert_int_equal(hps_file_read(path, 0, &whole, NULL), HPS_OK);
		for (size_t keep = 9; keep < whole.len - 1; keep += whole.len / 13) {
			struct hps_err err = { 0 };

			write_bytes(cut, whole.data, keep);
			/* The cut may fall between the members: a line lacks its end then. */
			assert_int_equal(outcome(cut, &err), HPS_BAD_INPUT);
		}
		write_bytes(cut, whole.data, whole.len - 1);
		expect(cut, HPS_BAD_INPUT, says);
		write_bytes(cut, whole.data, 5);
		expect(cut, HPS_BAD_INPUT, says);
		whole.data[whole.len / 3] ^= 0x55;
		write_bytes(cut, whole.data, whole.len);
		{
			struct hps_err err = { 0 };

			assert_int_equal(outcome(cut, &err), HPS_BAD_INPUT);
		}
		assert_int_equal(hps_compress_block((enum hps_compress)how, "", 0, &empty, NULL),
				 HPS_OK);
		write_bytes(cut, empty.data, empty.len);
		expect(cut, HPS_BAD_INPUT, "there is no data");
		empty.len = 0;
	}
	hps_buf_release(&whole);
	hps_buf_release(&empty);
}

static void other_things_are_named(void **state)
{
	const char *path = in_scratch("thing");
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_rng rng;

	expect(in_scratch("absent"), HPS_IO, "cannot open");
	expect(scratch, HPS_IO, "cannot read");
	write_bytes(path, "", 0);
	expect(path, HPS_BAD_INPUT, "the file is empty");
	write_bytes(path,
		    "\xfd"
		    "7zXZ\0\0\0",
		    8);
	expect(path, HPS_BAD_INPUT, "this is xz");
	write_bytes(path, "BZh91AY", 7);
	expect(path, HPS_BAD_INPUT, "this is bzip2");
	write_bytes(path,
		    "\xff\xfe"
		    "0\0\t\0",
		    6);
	expect(path, HPS_BAD_INPUT, "UTF-16");
	write_bytes(path, "\0", 1);
	expect(path, HPS_BAD_INPUT, "byte 1 is NUL");
	hps_rng_init(&rng, 4, 0);
	for (int i = 0; i < 100000; i++) {
		uint64_t x = hps_rng_u64(&rng);

		assert_int_equal(hps_buf_add(&b, &x, 8, NULL), HPS_OK);
	}
	b.data[0] = 'a';
	write_bytes(path, b.data, b.len);
	expect(path, HPS_BAD_INPUT, "");
	/* A whole gzip member, then zeros are padding, anything else is junk. */
	b.len = 0;
	assert_int_equal(hps_compress_block(HPS_COMPRESS_GZIP, "1\t2\ta\tb\n", 8, &b, NULL),
			 HPS_OK);
	assert_int_equal(hps_buf_add(&b, "\0\0\0", 3, NULL), HPS_OK);
	write_bytes(path, b.data, b.len);
	{
		struct hps_err err = { 0 };
		struct hps_reader_opts o = options(&path, 1);
		struct hps_reader *r = open_reader(&o);
		struct hps_batch *batch;
		struct wants w = { 0, 9, 9, 1 };
		bool at_end;

		start(r, 0, &w);
		assert_int_equal(hps_reader_next(r, &batch, &at_end, &err), HPS_OK);
		assert_int_equal(batch->rows, 1);
		assert_true(at_end);
		hps_reader_give_back(r, batch);
		hps_reader_free(r);
	}
	assert_int_equal(hps_buf_add(&b, "junk", 4, NULL), HPS_OK);
	write_bytes(path, b.data, b.len);
	expect(path, HPS_BAD_INPUT, "junk after");
	hps_buf_release(&b);
}

/* --- pipes --- */

struct feed {
	const char *path;
	const char *data;
	size_t len;
};

static void *feed_fifo(void *arg)
{
	struct feed *f = arg;
	int fd = open(f->path, O_WRONLY);

	for (size_t i = 0; i < f->len;) {
		ssize_t n = write(fd, f->data + i, i < 100 ? 1 : f->len - i);

		if (n <= 0)
			break;
		i += (size_t)n;
	}
	close(fd);
	return NULL;
}

static void a_pipe_is_read_once(void **state)
{
	static int value[5000];
	const char *path = in_scratch("fifo");
	struct hps_buf text = HPS_BUF_INIT, packed = HPS_BUF_INIT;
	struct hps_reader_opts o = options(&path, 1);
	struct hps_reader_wants wants = { next_want, NULL };
	struct wants w = { 0, 10, 10, 1 };
	struct hps_err err = { 0 };
	struct hps_reader *r;
	pthread_t t;
	uint64_t rows;

	for (uint64_t i = 0; i < 5000; i++)
		add_row(&text, i, "\n");
	assert_int_equal(hps_compress_block(HPS_COMPRESS_GZIP, text.data, text.len, &packed, NULL),
			 HPS_OK);
	assert_int_equal(mkfifo(path, 0600), 0);
	for (int how = 0; how < 2; how++) {
		struct feed f = { path, how ? packed.data : text.data,
				  how ? packed.len : text.len };

		assert_int_equal(pthread_create(&t, NULL, feed_fifo, &f), 0);
		r = open_reader(&o);
		assert_int_equal(read_epoch(r, 0, 100, value, 5000, &rows, NULL), HPS_OK);
		assert_int_equal(rows, 5000);
		pthread_join(t, NULL);
		wants.ctx = &w;
		assert_int_equal(hps_reader_start(r, 1, &wants, &err), HPS_USAGE);
		assert_string_equal(err.where, path);
		hps_reader_free(r);
	}
	hps_buf_release(&text);
	hps_buf_release(&packed);
}

static void *stop_it(void *arg)
{
	hps_reader_stop(arg);
	return NULL;
}

/* Nobody writes to the pipe: next waits for ever, unless another thread stops it. */
static void stop_ends_a_wait_for_input(void **state)
{
	const char *path = in_scratch("silent");
	struct hps_reader_opts o = options(&path, 1);
	struct wants w = { 0, 10, 10, 5 };
	struct hps_reader *r;
	struct hps_batch *b;
	pthread_t t;
	bool at_end;
	int writer;

	assert_int_equal(mkfifo(path, 0600), 0);
	writer = open(path, O_RDWR | O_CLOEXEC);
	assert_true(writer >= 0);
	r = open_reader(&o);
	start(r, 0, &w);
	assert_int_equal(pthread_create(&t, NULL, stop_it, r), 0);
	assert_int_equal(hps_reader_next(r, &b, &at_end, NULL), HPS_OK);
	assert_null(b);
	pthread_join(t, NULL);
	hps_reader_free(r);
	close(writer);
}

static void stop_at_any_moment(void **state)
{
	const char *path = in_scratch("stop");
	struct hps_reader_opts o = options(&path, 1);
	struct hps_reader *r;
	struct hps_batch *kept = NULL;
	struct wants w[40];
	int first = -1;

	write_rows(path, 0, 20000, HPS_COMPRESS_ZSTD);
	o.shuffle_rows = 500;
	r = open_reader(&o);
	for (uint32_t epoch = 0; epoch < 40; epoch++) {
		struct hps_batch *b;
		bool at_end;

		w[epoch] = (struct wants){ 0, 64, 64, UINT64_MAX };
		start(r, epoch, &w[epoch]);
		for (uint32_t i = 0; i < epoch; i++) {
			assert_int_equal(hps_reader_next(r, &b, &at_end, NULL), HPS_OK);
			if (kept == NULL) {
				kept = b;
				first = (int)b->feature[0];
			} else {
				hps_reader_give_back(r, b);
			}
		}
		if (epoch % 2)
			hps_reader_stop(r);
	}
	hps_reader_stop(r);
	assert_int_equal((int)kept->feature[0], first);
	hps_reader_give_back(r, kept);
	hps_reader_free(r);
}

static void overlapping_ranges_are_refused(void **state)
{
	const char *path = in_scratch("overlap");
	struct hps_reader_opts o = options(&path, 1);
	struct wants w = { 0, 10, 5, 2 };
	struct hps_reader *r;
	struct hps_batch *b;
	bool at_end;

	write_rows(path, 0, 100, HPS_COMPRESS_NONE);
	r = open_reader(&o);
	start(r, 0, &w);
	assert_int_equal(hps_reader_next(r, &b, &at_end, NULL), HPS_OK);
	hps_reader_give_back(r, b);
	assert_int_equal(hps_reader_next(r, &b, &at_end, NULL), HPS_USAGE);
	hps_reader_free(r);
}

static void memory_failures_are_told(void **state)
{
	static int value[3000];
	const char *path = in_scratch("memory");
	struct hps_reader_opts o = options(&path, 1);
	unsigned long failed = 0;

	write_rows(path, 0, 3000, HPS_COMPRESS_GZIP);
	o.shuffle_rows = 300;
	for (unsigned long nth = 1; nth < 60; nth++) {
		struct hps_reader *r = NULL;
		struct hps_err err = { 0 };
		enum hps_status st;
		uint64_t rows;

		hps_mem_fail_at(nth);
		st = hps_reader_new(&o, &r, &err);
		if (st == HPS_OK)
			st = read_epoch(r, 0, 50, value, 3000, &rows, &err);
		hps_mem_fail_at(0);
		assert_true(st == HPS_OK || st == HPS_MEMORY);
		failed += st == HPS_MEMORY;
		if (r != NULL)
			hps_reader_free(r);
	}
	assert_true(failed > 15);
}

static void digests_tell_files_apart(void **state)
{
	const char *path[2] = { in_scratch("d1"), in_scratch("d2") }, *pipe_path = in_scratch("dp");
	const char *swapped[2] = { path[1], path[0] };
	struct hps_buf b = HPS_BUF_INIT;
	uint64_t d, same, other;

	write_rows(path[0], 0, 30000, HPS_COMPRESS_NONE);
	write_rows(path[1], 5, 10, HPS_COMPRESS_NONE);
	assert_int_equal(hps_data_digest(path, 2, &d, NULL), HPS_OK);
	assert_int_equal(hps_data_digest(path, 2, &same, NULL), HPS_OK);
	assert_int_equal(d, same);
	assert_true(d != 0);
	assert_int_equal(hps_data_digest(swapped, 2, &other, NULL), HPS_OK);
	assert_true(d != other);
	/* Any byte of a file of up to 4 MiB counts. */
	assert_int_equal(hps_file_read(path[0], 0, &b, NULL), HPS_OK);
	for (size_t at = 0; at < b.len; at += b.len / 7) {
		b.data[at] ^= 1;
		write_bytes(path[0], b.data, b.len);
		assert_int_equal(hps_data_digest(path, 2, &other, NULL), HPS_OK);
		assert_true(d != other);
		b.data[at] ^= 1;
	}
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	{
		int writer = open(pipe_path, O_RDWR | O_CLOEXEC);

		path[1] = pipe_path;
		assert_int_equal(hps_data_digest(path, 2, &d, NULL), HPS_OK);
		assert_int_equal(d, 0);
		close(writer);
	}
	path[1] = in_scratch("nothing");
	assert_int_equal(hps_data_digest(path, 2, &d, NULL), HPS_IO);
	hps_buf_release(&b);
}

static void criteo_10k(void **state)
{
	const char *data = getenv("HPS_DATA");
	char name[512];
	const char *path = name;
	struct hps_reader_opts o = options(&path, 1);
	struct wants w = { 0, 1000, 1000, UINT64_MAX };
	struct hps_reader *r;
	uint32_t rows = 0, positives = 0;
	bool at_end = false;

	snprintf(name, sizeof name, "%s/criteo-10k/criteo_first10000.tsv",
		 data && *data ? data : "../shared/data");
	if (access(name, R_OK) != 0)
		skip();
	o.slots = 26;
	o.dense = 13;
	r = open_reader(&o);
	start(r, 0, &w);
	while (!at_end) {
		struct hps_batch *b;

		assert_int_equal(hps_reader_next(r, &b, &at_end, NULL), HPS_OK);
		rows += b->rows;
		for (uint32_t i = 0; i < b->rows; i++)
			positives += b->label[i] == 1;
		hps_reader_give_back(r, b);
	}
	assert_int_equal(rows, 10000);
	assert_int_equal(positives, 2182);
	hps_reader_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_compressions_read_alike),
		cmocka_unit_test(files_follow_one_another),
		cmocka_unit_test(only_ranges_wanted_are_parsed),
		cmocka_unit_test(the_end_is_seen_at_once),
		cmocka_unit_test(a_part_of_the_rows),
		cmocka_unit_test(shuffling_permutes_within_windows),
		cmocka_unit_test(shuffled_ranges_mean_the_same_rows),
		cmocka_unit_test(bad_lines_are_counted_or_named),
		cmocka_unit_test(bad_lines_are_named_when_shuffled),
		cmocka_unit_test(long_lines_take_bounded_memory),
		cmocka_unit_test(damaged_files_are_named),
		cmocka_unit_test(other_things_are_named),
		cmocka_unit_test(a_pipe_is_read_once),
		cmocka_unit_test(stop_ends_a_wait_for_input),
		cmocka_unit_test(stop_at_any_moment),
		cmocka_unit_test(overlapping_ranges_are_refused),
		cmocka_unit_test(memory_failures_are_told),
		cmocka_unit_test(digests_tell_files_apart),
		cmocka_unit_test(criteo_10k),
	};

	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
