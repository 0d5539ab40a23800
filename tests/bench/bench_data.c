/* How fast are Criteo rows parsed, read from files and generated? Parsing stands beside the
 * bare search for newlines in the same bytes, in interleaved rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "data/criteo.h"
#include "data/gen.h"
#include "data/reader.h"

enum { ROUNDS = 9, ROWS = 60000, SLOTS = 26, DENSE = 13, BATCH = 1000 };

static const char *const compression[] = { "none", "gzip", "zstd" };

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "bench_data: %s failed\n", what);
	exit(1);
}

static int wanted(const char *name)
{
	const char *prefix = getenv("HPS_BENCH");

	return prefix == NULL || strncmp(name, prefix, strlen(prefix)) == 0;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *x)
{
	qsort(x, ROUNDS, sizeof *x, by_size);
	return x[ROUNDS / 2];
}

static void criteo_model(struct hps_model *m)
{
	*m = (struct hps_model){ .slots = SLOTS, .dense = DENSE };
	m->preprocess.transform = HPS_TRANSFORM_SIGNED_LOG;
	m->preprocess.scale = 1;
}

/* CPU seconds of the process to generate rows into path. */
static double generate(const char *path, enum hps_compress how)
{
	struct hps_gen_opts o = hps_gen_defaults();
	struct hps_gen_summary s;
	struct hps_sink *sink;
	clock_t start = clock();

	o.rows = ROWS;
	o.compress = how;
	check(hps_sink_new(path, &sink, NULL) == HPS_OK, "hps_sink_new");
	check(hps_gen(&o, sink, &s, NULL) == HPS_OK, "hps_gen");
	check(hps_sink_commit(sink, NULL) == HPS_OK, "hps_sink_commit");
	hps_sink_free(sink);
	return (double)(clock() - start) / CLOCKS_PER_SEC;
}

static double scan(const struct hps_buf *text)
{
	double start = hps_cpu_s();
	size_t lines = 0;

	for (const char *p = text->data, *end = p + text->len; p < end; lines++)
		p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
	check(lines == ROWS, "counting lines");
	return hps_cpu_s() - start;
}

static double parse(const struct hps_buf *text, const struct hps_criteo *c)
{
	double start = hps_cpu_s();
	float label, feature[DENSE];
	uint64_t key[SLOTS];

	for (const char *p = text->data, *end = p + text->len; p < end;) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));

		check(hps_criteo_parse(c, p, (size_t)(newline - p), &label, feature, key), "parse");
		p = newline + 1;
	}
	return hps_cpu_s() - start;
}

static void bench_parse(const char *path)
{
	struct hps_buf text = HPS_BUF_INIT;
	struct hps_model m;
	struct hps_criteo c;
	double parsing[ROUNDS], scanning[ROUNDS];

	criteo_model(&m);
	generate(path, HPS_COMPRESS_NONE);
	check(hps_file_read(path, 0, &text, NULL) == HPS_OK, "reading back");
	check(hps_buf_reserve(&text, HPS_TEXT_PAD, NULL) == HPS_OK, "memory");
	check(hps_criteo_init(&c, SLOTS, DENSE, &m, NULL) == HPS_OK, "hps_criteo_init");
	for (int i = 0; i < ROUNDS; i++) {
		parsing[i] = (double)text.len / parse(&text, &c) / 1e6;
		scanning[i] = (double)text.len / scan(&text) / 1e6;
	}
	printf("{\"bench\": \"data.parse.mb_s\", \"value\": %.0f, \"reach\": 500, \"unit\": "
	       "\"MB/s a core\", \"scan_mb_s\": %.0f, \"bytes_a_row\": %.1f}\n",
	       median(parsing), median(scanning), (double)text.len / ROWS);
	hps_buf_release(&text);
}

static bool next_batch(void *ctx, uint64_t *begin, uint64_t *end)
{
	uint64_t *at = ctx;

	*begin = *at;
	*end = *at += BATCH;
	return true;
}

/* Seconds of an epoch, on the wall: a scanner and a parser are at work. */
static double read_all(struct hps_reader *r, uint32_t epoch)
{
	uint64_t at = 0, rows = 0;
	const struct hps_reader_wants wants = { next_batch, &at };
	double start = hps_now_s();
	bool at_end = false;

	check(hps_reader_start(r, epoch, &wants, NULL) == HPS_OK, "hps_reader_start");
	while (!at_end) {
		struct hps_batch *b;

		check(hps_reader_next(r, &b, &at_end, NULL) == HPS_OK, "hps_reader_next");
		rows += b->rows;
		hps_reader_give_back(r, b);
	}
	check(rows == ROWS, "counting rows");
	start = hps_now_s() - start;
	hps_reader_stop(r);
	return start;
}

static void bench_reader(const char *path, enum hps_compress how)
{
	struct hps_model m;
	struct hps_reader_opts o = { .path = &path,
				     .n_paths = 1,
				     .slots = SLOTS,
				     .dense = DENSE,
				     .model = &m,
				     .parsers = 1,
				     .ahead = 4 };
	struct hps_reader *r;
	double rate[ROUNDS];

	criteo_model(&m);
	generate(path, how);
	check(hps_reader_new(&o, &r, NULL) == HPS_OK, "hps_reader_new");
	for (int i = 0; i < ROUNDS; i++)
		rate[i] = ROWS / read_all(r, (uint32_t)i);
	hps_reader_free(r);
	printf("{\"bench\": \"data.reader.%s\", \"value\": %.0f, \"unit\": \"rows/s\", "
	       "\"parsers\": 1}\n",
	       compression[how], median(rate));
}

static void bench_gen(void)
{
	double rate[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		rate[i] = ROWS / generate("/dev/null", HPS_COMPRESS_NONE);
	printf("{\"bench\": \"data.gen.rows_s\", \"value\": %.0f, \"reach\": 200000, \"unit\": "
	       "\"rows/s a core\"}\n",
	       median(rate));
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	char path[512];
	int fd;

	snprintf(path, sizeof path, "%s/hps-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	check((fd = mkstemp(path)) >= 0, "mkstemp");
	close(fd);
	if (wanted("data.parse.mb_s"))
		bench_parse(path);
	for (int how = HPS_COMPRESS_NONE; how <= HPS_COMPRESS_ZSTD; how++) {
		char name[64];

		snprintf(name, sizeof name, "data.reader.%s", compression[how]);
		if (wanted(name))
			bench_reader(path, (enum hps_compress)how);
	}
	if (wanted("data.gen.rows_s"))
		bench_gen();
	unlink(path);
	return 0;
}
