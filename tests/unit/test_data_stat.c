/* Statistics: sketches against exact counts and sorted values, a small file by hand, and
 * the real data where they are. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "child.h"
#include "cm.h"
#include "data/sketch_int.h"
#include "data/stat.h"

static char scratch[128];

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

static void add_id(struct hps_ids *s, uint64_t id)
{
	char text[32];
	int n = snprintf(text, sizeof text, "%llu", (unsigned long long)id);

	assert_int_equal(
		hps_ids_add(s, hps_hash_bytes(text, (uint64_t)n, 3), text, (size_t)n, NULL),
		HPS_OK);
}

static void few_ids_are_counted_exactly(void **state)
{
	struct hps_ids s = { 0 };
	struct hps_stat_id top[HPS_STAT_TOP];

	assert_int_equal(hps_ids_distinct(&s), 0);
	assert_int_equal(hps_ids_top(&s, top), 0);
	for (uint64_t id = 0; id < HPS_STAT_EXACT_IDS; id++)
		add_id(&s, id);
	for (int i = 0; i < 3; i++)
		add_id(&s, 777);
	add_id(&s, 5);
	add_id(&s, 6);
	assert_int_equal(hps_ids_distinct(&s), HPS_STAT_EXACT_IDS);
	assert_null(s.hll);
	assert_int_equal(hps_ids_top(&s, top), HPS_STAT_TOP);
	assert_string_equal(top[0].text, "777");
	assert_int_equal(top[0].count, 4);
	assert_string_equal(top[1].text, "5"); /* equal counts by text */
	assert_string_equal(top[2].text, "6");
	assert_int_equal(top[2].count, 2);
	assert_string_equal(top[3].text, "0");
	hps_ids_release(&s);
}

/* Id k < 5 comes with probability 0.1, 0.08, ..., the rest are ever new: the worst case. */
static void many_ids_are_bounded_and_near(void **state)
{
	enum { N = 400000 };
	struct hps_ids s = { 0 };
	struct hps_stat_id top[HPS_STAT_TOP];
	uint64_t count[5] = { 0 }, fresh = 1000, kinds;
	struct hps_rng rng;

	hps_rng_init(&rng, 6, 0);
	for (int i = 0; i < N; i++) {
		double u = hps_rng_uniform(&rng);
		int k = u < 0.1 ? 0 : u < 0.18 ? 1 : u < 0.24 ? 2 : u < 0.28 ? 3 : u < 0.3 ? 4 : 5;

		if (k < 5)
			count[k]++;
		add_id(&s, k < 5 ? (uint64_t)k : fresh++);
	}
	kinds = fresh - 1000 + 5;
	assert_true(s.n <= HPS_STAT_EXACT_IDS);
	assert_true(s.cap <= 2 * HPS_STAT_EXACT_IDS);
	assert_true(fabs((double)hps_ids_distinct(&s) / (double)kinds - 1) < 4 * 0.0081);
	assert_true(s.miscount > 0 && s.miscount < N / (HPS_STAT_EXACT_IDS / 2));
	assert_int_equal(hps_ids_top(&s, top), HPS_STAT_TOP);
	for (int k = 0; k < 5; k++) {
		assert_int_equal(atoi(top[k].text), k);
		assert_in_range(count[k], top[k].count, top[k].count + s.miscount);
	}
	hps_ids_release(&s);
}

static void texts_are_cut_and_masked(void **state)
{
	struct hps_ids s = { 0 };
	struct hps_stat_id top[HPS_STAT_TOP];

	assert_int_equal(hps_ids_add(&s, 1, "a\tb\xff", 4, NULL), HPS_OK);
	assert_int_equal(hps_ids_add(&s, 2, "abcdefghijklmnopqrstuvwxyz", 26, NULL), HPS_OK);
	assert_int_equal(hps_ids_add(&s, 3, "abcdefghijklmnopqrstuvw", 23, NULL), HPS_OK);
	assert_int_equal(hps_ids_top(&s, top), 3);
	assert_string_equal(top[0].text, "a?b?");
	assert_string_equal(top[1].text, "abcdefghijklmnopqrst...");
	assert_string_equal(top[2].text, "abcdefghijklmnopqrstuvw");
	hps_ids_release(&s);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void quantiles_are_within_a_percent(void **state)
{
	enum { N = 10001 };
	static struct hps_quantiles q;
	static double x[N];
	struct hps_rng rng;

	hps_rng_init(&rng, 2, 0);
	for (int i = 0; i < N; i++) {
		x[i] = floor(exp(12 * hps_rng_uniform(&rng))) - 1;
		if (i % 3 == 0)
			x[i] = -x[i];
		hps_quantiles_add(&q, x[i]);
	}
	qsort(x, N, sizeof *x, by_size);
	for (int p = 0; p <= 100; p++) {
		double want = x[p * (N - 1) / 100];

		assert_true(fabs(hps_quantiles_at(&q, N, p / 100.0) - want) <=
			    0.01 * fabs(want) + 0.5);
	}
}

static void quantiles_survive_extremes(void **state)
{
	static struct hps_quantiles q;

	assert_true(hps_quantiles_at(&q, 0, 0.5) == 0);
	hps_quantiles_add(&q, DBL_MAX);
	hps_quantiles_add(&q, -DBL_MAX);
	hps_quantiles_add(&q, 0);
	assert_true(fabs(hps_quantiles_at(&q, 3, 1) / 0x1p63 - 1) < 0.011);
	assert_true(fabs(hps_quantiles_at(&q, 3, 0) / 0x1p63 + 1) < 0.011);
	assert_true(hps_quantiles_at(&q, 3, 0.5) == 0);
}

static void a_small_file_by_hand(void **state)
{
	char path[256];
	const char *const operand = path;
	struct hps_stat_opts o = {
		.path = &operand, .n_paths = 1, .slots = 2, .dense = 2, .skip_bad = 1
	};
	const char text[] = "1\t3\t\tab\t\n"
			    "0\t-5\t\tab\tcd\r\n"
			    "0\tx\t\tab\tcd\n"
			    "0\t\t\tef\tcd";
	struct hps_stat s;
	struct hps_err err = { 0 };

	snprintf(path, sizeof path, "%s/hand", scratch);
	assert_int_equal(hps_file_write(path, text, strlen(text), 0600, NULL), HPS_OK);
	assert_int_equal(hps_stat(&o, &s, NULL), HPS_OK);
	assert_int_equal(s.rows, 3);
	assert_int_equal(s.bad_lines, 1);
	assert_int_equal(s.bytes, strlen(text) + 1);
	assert_int_equal(s.labelled, 3);
	assert_int_equal(s.positives, 1);
	assert_int_equal(s.dense[0].blanks, 1);
	assert_int_equal(s.dense[0].negatives, 1);
	assert_true(s.dense[0].min == -5 && s.dense[0].max == 3 &&
		    fabs(s.dense[0].mean + 1) < 1e-12);
	assert_true(s.dense[0].p10 == -5 && s.dense[0].any);
	assert_int_equal(s.dense[1].blanks, 3);
	assert_false(s.dense[1].any);
	assert_int_equal(s.slot[0].distinct, 2);
	assert_string_equal(s.slot[0].top[0].text, "ab");
	assert_int_equal(s.slot[0].top[0].count, 2);
	assert_int_equal(s.slot[1].blanks, 1);
	assert_int_equal(s.slot[1].distinct, 2);
	assert_true(s.slot[1].exact);
	hps_stat_release(&s);
	o.skip_bad = 0;
	assert_int_equal(hps_stat(&o, &s, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "column 2: expected an integer, got \"x\"");
	assert_string_equal(strrchr(err.where, ':'), ":3");
	hps_stat_release(&s);
}

static void memory_failures_are_told(void **state)
{
	char path[256];
	const char *const operand = path;
	struct hps_stat_opts o = { .path = &operand, .n_paths = 1, .slots = 2, .dense = 2 };
	const char text[] = "1\t3\t\tab\t\n";
	unsigned long failed = 0;

	snprintf(path, sizeof path, "%s/memory", scratch);
	assert_int_equal(hps_file_write(path, text, strlen(text), 0600, NULL), HPS_OK);
	for (unsigned long nth = 1; nth < 25; nth++) {
		struct hps_stat s;
		enum hps_status st;

		hps_mem_fail_at(nth);
		st = hps_stat(&o, &s, NULL);
		hps_mem_fail_at(0);
		assert_true(st == HPS_OK || st == HPS_MEMORY);
		failed += st == HPS_MEMORY;
		hps_stat_release(&s);
	}
	assert_true(failed > 10);
}

static void criteo_10k(void **state)
{
	const char *data = getenv("HPS_DATA");
	char path[512];
	const char *const operand = path;
	struct hps_stat_opts o = { .path = &operand, .n_paths = 1, .slots = 26, .dense = 13 };
	struct hps_stat s;
	uint64_t distinct = 0;

	snprintf(path, sizeof path, "%s/criteo-10k/criteo_first10000.tsv",
		 data && *data ? data : "../shared/data");
	if (access(path, R_OK) != 0)
		skip();
	assert_int_equal(hps_stat(&o, &s, NULL), HPS_OK);
	for (int i = 0; i < 26; i++)
		distinct += s.slot[i].distinct;
	assert_int_equal(s.rows, 10000);
	assert_int_equal(s.positives, 2182);
	assert_int_equal(distinct, 43591);
	hps_stat_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_ids_are_counted_exactly),
		cmocka_unit_test(many_ids_are_bounded_and_near),
		cmocka_unit_test(texts_are_cut_and_masked),
		cmocka_unit_test(quantiles_are_within_a_percent),
		cmocka_unit_test(quantiles_survive_extremes),
		cmocka_unit_test(a_small_file_by_hand),
		cmocka_unit_test(memory_failures_are_told),
		cmocka_unit_test(criteo_10k),
	};

	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
