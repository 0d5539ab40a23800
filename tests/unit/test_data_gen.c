/* The generator: rows follow from options and number alone, the law of the ids, the truth's
 * parts, and what is said about it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/mem.h"
#include "child.h"
#include "cm.h"
#include "data/conv.h"
#include "data/gen.h"
#include "data/stat.h"
#include "data/truth_int.h"
#include "job/model.h"

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

static void in_scratch(char *path, const char *name)
{
	snprintf(path, 256, "%s/%s", scratch, name);
}

/* Generate into a file, and read it back whole, decompressed. */
static void generate(const struct hps_gen_opts *o, const char *name, struct hps_buf *text,
		     struct hps_gen_summary *s)
{
	char path[256], plain[300];
	const char *const operand = path;
	struct hps_conv_opts c = {
		.path = &operand, .n_paths = 1, .slots = o->slots, .dense = o->dense
	};
	struct hps_sink *sink;
	uint64_t rows, skipped;

	in_scratch(path, name);
	snprintf(plain, sizeof plain, "%s.plain", path);
	assert_int_equal(hps_sink_new(path, &sink, NULL), HPS_OK);
	assert_int_equal(hps_gen(o, sink, s, NULL), HPS_OK);
	assert_int_equal(hps_sink_commit(sink, NULL), HPS_OK);
	hps_sink_free(sink);
	assert_int_equal(hps_sink_new(plain, &sink, NULL), HPS_OK);
	assert_int_equal(hps_conv(&c, sink, &rows, &skipped, NULL), HPS_OK);
	assert_int_equal(rows, o->rows);
	assert_int_equal(hps_sink_commit(sink, NULL), HPS_OK);
	hps_sink_free(sink);
	text->len = 0;
	assert_int_equal(hps_file_read(plain, 0, text, NULL), HPS_OK);
}

static void same_rows_for_any_threads_and_compression(void **state)
{
	struct hps_gen_opts o = hps_gen_defaults();
	struct hps_gen_summary first, s;
	struct hps_buf a = HPS_BUF_INIT, b = HPS_BUF_INIT;

	o.rows = 17000; /* blocks of 8192: an uneven last one */
	o.want_auc = true;
	generate(&o, "a", &a, &first);
	for (uint32_t threads = 2; threads <= 4; threads++) {
		o.threads = threads;
		o.compress = (enum hps_compress)(threads % 3);
		generate(&o, "b", &b, &s);
		assert_int_equal(a.len, b.len);
		assert_memory_equal(a.data, b.data, a.len);
		assert_int_equal(s.positives, first.positives);
		assert_true(s.best_auc.value == first.best_auc.value);
		assert_true(s.best_logloss.value == first.best_logloss.value);
		assert_true(s.expected_logloss.value == first.expected_logloss.value);
	}
	o.seed = 99;
	generate(&o, "b", &b, &s);
	assert_true(a.len != b.len || memcmp(a.data, b.data, a.len) != 0);
	hps_buf_release(&a);
	hps_buf_release(&b);
}

static void skip_continues(void **state)
{
	struct hps_gen_opts o = hps_gen_defaults();
	struct hps_gen_summary s;
	struct hps_buf whole = HPS_BUF_INIT, part = HPS_BUF_INIT;
	size_t at;

	o.rows = 10000;
	generate(&o, "whole", &whole, &s);
	o.rows = 9000;
	generate(&o, "part", &part, &s);
	assert_memory_equal(whole.data, part.data, part.len);
	at = part.len;
	o.skip = 9000;
	o.rows = 1000;
	generate(&o, "part", &part, &s);
	assert_int_equal(at + part.len, whole.len);
	assert_memory_equal(whole.data + at, part.data, part.len);
	hps_buf_release(&whole);
	hps_buf_release(&part);
}

/* The label is as likely as the logit says, and the figures follow from both. */
static void the_summary_tells_the_truth(void **state)
{
	enum { N = 20000 };
	struct hps_gen_opts o = hps_gen_defaults();
	struct hps_gen_summary s;
	struct hps_truth *t;
	struct hps_buf text = HPS_BUF_INIT;
	struct hps_scores scores = { 0 };
	struct hps_metrics m;
	char *row, *line;

	o.rows = N;
	o.ids = 50;
	o.base_rate = 0.1;
	o.want_auc = true;
	generate(&o, "truth", &text, &s);
	assert_int_equal(hps_truth_new(&o, &t, NULL), HPS_OK);
	assert_true(hps_truth_bias(t) == s.bias);
	row = hps_calloc(hps_truth_row_max(t), 1, NULL);
	assert_non_null(row);
	line = text.data;
	for (uint64_t i = 0; i < N; i++) {
		double logit;
		bool positive;
		char *end = hps_truth_row(t, i, row, &logit, &positive);
		float score = (float)logit, label = positive;

		assert_true((size_t)(end - row) <= hps_truth_row_max(t));
		assert_memory_equal(line, row, (size_t)(end - row));
		line += end - row;
		assert_int_equal(row[0], positive ? '1' : '0');
		assert_int_equal(hps_scores_add(&scores, &i, &score, &label, 1, NULL), HPS_OK);
	}
	assert_int_equal(hps_scores_metrics(&scores, &m, NULL), HPS_OK);
	assert_int_equal(m.positives, s.positives);
	assert_true(m.auc.value == s.best_auc.value);
	assert_true(m.auc.value > 0.7 && m.auc.value < 0.9);
	for (size_t i = 0; i < N; i++) /* as probabilities */
		scores.score[i] = 1 / (1 + expf(-scores.score[i]));
	assert_int_equal(hps_scores_metrics(&scores, &m, NULL), HPS_OK);
	assert_true(fabs(m.logloss.value - s.best_logloss.value) < 1e-6);
	/* Four standard deviations; the bias itself was fitted on a sample. */
	assert_true(fabs(m.calibration.value - 1) < 4 * sqrt(0.9 / (0.1 * N)));
	assert_true(fabs((double)s.positives / N - 0.1) < 0.01);
	assert_true(fabs(s.best_logloss.value - s.expected_logloss.value) < 0.01);
	hps_scores_release(&scores);
	hps_truth_free(t);
	free(row);
	hps_buf_release(&text);
}

static double spread(const double *x, int n)
{
	double mean = 0, var = 0;

	for (int i = 0; i < n; i++)
		mean += x[i] / n;
	for (int i = 0; i < n; i++)
		var += (x[i] - mean) * (x[i] - mean) / n;
	return sqrt(var);
}

/* The rows of a seed are the same whatever the interactions: their part is the difference. */
static void interactions_have_the_strength_asked_for(void **state)
{
	enum { N = 5000 };
	static double logit[3][N], part[N];
	static const double strength[] = { 0, 1, 2 };
	struct hps_gen_opts o = hps_gen_defaults();
	bool positive;

	for (int k = 0; k < 3; k++) {
		struct hps_truth *t;
		char *row;

		o.interactions = strength[k];
		o.ids = 5000;
		o.zipf = 0;
		assert_int_equal(hps_truth_new(&o, &t, NULL), HPS_OK);
		row = hps_calloc(hps_truth_row_max(t), 1, NULL);
		for (uint64_t i = 0; i < N; i++)
			hps_truth_row(t, i, row, &logit[k][i], &positive);
		hps_truth_free(t);
		free(row);
	}
	for (int k = 1; k < 3; k++) {
		for (int i = 0; i < N; i++)
			part[i] = logit[k][i] - logit[0][i];
		assert_true(fabs(spread(part, N) / strength[k] - 1) < 0.1);
	}
	assert_true(spread(logit[0], N) > 1 && spread(logit[0], N) < 2);
}

static void ids_follow_zipf(void **state)
{
	struct hps_gen_opts o = hps_gen_defaults();
	struct hps_gen_summary s;
	struct hps_buf text = HPS_BUF_INIT;
	char path[256];
	const char *const operand = path;
	struct hps_stat_opts q = { .path = &operand, .n_paths = 1 };
	struct hps_stat stat;

	o.rows = 20000;
	o.slots = 3;
	o.dense = 2;
	o.ids = 100;
	o.blank_rate = 0;
	q.slots = o.slots;
	q.dense = o.dense;
	for (int zipf = 0; zipf <= 2; zipf++) {
		double sum = 0;

		o.zipf = zipf;
		generate(&o, "zipf", &text, &s);
		in_scratch(path, "zipf");
		assert_int_equal(hps_stat(&q, &stat, NULL), HPS_OK);
		for (int k = 1; k <= 100; k++)
			sum += pow(k, -zipf);
		for (uint32_t slot = 0; slot < o.slots; slot++) {
			assert_int_equal(stat.slot[slot].blanks, 0);
			assert_true(stat.slot[slot].distinct <= 100);
			assert_true(zipf == 2 || stat.slot[slot].distinct == 100);
			for (int k = 0; zipf > 0 && k < 3; k++) {
				double p = pow(k + 1, -zipf) / sum;

				assert_true(fabs((double)stat.slot[slot].top[k].count / 20000 - p) <
					    5 * sqrt(p / 20000));
			}
		}
		hps_stat_release(&stat);
	}
	/* Blanks come as often as asked for, in every column. */
	o.blank_rate = 0.3;
	generate(&o, "zipf", &text, &s);
	assert_int_equal(hps_stat(&q, &stat, NULL), HPS_OK);
	for (int i = 0; i < 2; i++)
		assert_true(fabs((double)stat.dense[i].blanks / 20000 - 0.3) < 0.016);
	for (int i = 0; i < 3; i++)
		assert_true(fabs((double)stat.slot[i].blanks / 20000 - 0.3) < 0.016);
	hps_stat_release(&stat);
	hps_buf_release(&text);
}

static void options_out_of_range_are_refused(void **state)
{
	struct hps_gen_opts bad[10];
	struct hps_gen_summary s;
	struct hps_sink *sink;

	for (int i = 0; i < 10; i++)
		bad[i] = hps_gen_defaults();
	bad[0].slots = 0;
	bad[1].ids = 0;
	bad[2].ids = HPS_GEN_MAX_IDS + 1;
	bad[3].zipf = -1;
	bad[4].interactions = NAN;
	bad[5].blank_rate = 1.5;
	bad[6].base_rate = 0;
	bad[7].threads = 0;
	bad[8].dense = HPS_MAX_SLOTS + 1;
	bad[9].base_rate = NAN;
	assert_int_equal(hps_sink_new("/dev/null", &sink, NULL), HPS_OK);
	for (int i = 0; i < 10; i++)
		assert_int_equal(hps_gen(&bad[i], sink, &s, NULL), HPS_USAGE);
	hps_sink_free(sink);
}

static void no_rows_are_undefined(void **state)
{
	struct hps_gen_opts o = hps_gen_defaults();
	struct hps_gen_summary s;
	struct hps_sink *sink;

	o.rows = 0;
	o.want_auc = true;
	assert_int_equal(hps_sink_new("/dev/null", &sink, NULL), HPS_OK);
	assert_int_equal(hps_gen(&o, sink, &s, NULL), HPS_OK);
	assert_string_equal(s.best_auc.undefined, "no rows");
	assert_string_equal(s.best_logloss.undefined, "no rows");
	hps_sink_free(sink);
}

static bool no_further(void *ctx, uint64_t done)
{
	return done < 10000;
}

static void failures_end_all_threads(void **state)
{
	struct hps_gen_opts o = hps_gen_defaults();
	struct hps_gen_summary s;
	struct hps_sink *sink;
	struct hps_err err = { 0 };
	char path[256];
	unsigned long failed = 0;

	o.rows = 100000;
	o.threads = 3;
	assert_int_equal(hps_sink_new("/dev/full", &sink, NULL), HPS_OK);
	assert_int_equal(hps_gen(&o, sink, &s, &err), HPS_IO);
	hps_sink_free(sink);
	o.go_on = no_further;
	in_scratch(path, "cut");
	assert_int_equal(hps_sink_new(path, &sink, NULL), HPS_OK);
	assert_int_equal(hps_gen(&o, sink, &s, &err), HPS_IO);
	assert_non_null(strstr(err.msg, "interrupted"));
	hps_sink_free(sink);
	assert_int_equal(hps_file_read(path, 0, &(struct hps_buf)HPS_BUF_INIT, NULL), HPS_IO);
	o.go_on = NULL;
	o.rows = 9000;
	o.threads = 2;
	o.want_auc = true;
	for (unsigned long nth = 1; nth < 24; nth++) {
		enum hps_status st;

		assert_int_equal(hps_sink_new("/dev/null", &sink, NULL), HPS_OK);
		hps_mem_fail_at(nth);
		st = hps_gen(&o, sink, &s, NULL);
		hps_mem_fail_at(0);
		assert_true(st == HPS_OK || st == HPS_MEMORY);
		failed += st == HPS_MEMORY;
		hps_sink_free(sink);
	}
	assert_true(failed > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_rows_for_any_threads_and_compression),
		cmocka_unit_test(skip_continues),
		cmocka_unit_test(the_summary_tells_the_truth),
		cmocka_unit_test(interactions_have_the_strength_asked_for),
		cmocka_unit_test(ids_follow_zipf),
		cmocka_unit_test(options_out_of_range_are_refused),
		cmocka_unit_test(no_rows_are_undefined),
		cmocka_unit_test(failures_end_all_threads),
	};

	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
