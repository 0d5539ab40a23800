/* Metrics against counting pairs, against values worked out by hand, and in any order of
 * arrival. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "cm.h"
#include "metric/metric.h"
#include "metric/radix.h"

#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

/* The definition: the share of (positive, negative) pairs in the right order. */
static double auc_by_pairs(const float *score, const float *label, size_t n)
{
	double right = 0, pairs = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			if (label[i] != 1 || label[j] != 0)
				continue;
			pairs++;
			right += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
		}
	return right / pairs;
}

static struct hps_metrics measure(const uint64_t *row, const float *score, const float *label,
				  size_t n)
{
	struct hps_scores s = { 0 };
	struct hps_metrics m;

	assert_int_equal(hps_scores_add(&s, row, score, label, n, NULL), HPS_OK);
	assert_int_equal(hps_scores_metrics(&s, &m, NULL), HPS_OK);
	hps_scores_release(&s);
	return m;
}

static struct hps_metrics measure_in_order(const float *score, const float *label, size_t n)
{
	uint64_t row[64] = { 0 };

	for (size_t i = 0; i < n; i++)
		row[i] = i;
	return measure(row, score, label, n);
}

static void auc_equals_pair_counting(void **state)
{
	enum { MAX = 200 };
	uint64_t row[MAX];
	float score[MAX], label[MAX];
	struct hps_rng rng;

	hps_rng_init(&rng, 7, 0);
	for (int round = 0; round < 200; round++) {
		size_t n = 2 + hps_rng_below(&rng, MAX - 2);
		uint64_t levels = 1 + hps_rng_below(&rng, round % 2 ? 5 : 1000);

		for (size_t i = 0; i < n; i++) {
			row[i] = i;
			score[i] = (float)hps_rng_below(&rng, levels) - (float)(levels / 2);
			label[i] = (float)hps_rng_below(&rng, 2);
		}
		label[0] = 0;
		label[1] = 1;
		assert_near(measure(row, score, label, n).auc.value, auc_by_pairs(score, label, n),
			    1e-15);
	}
}

static void hand_values(void **state)
{
	const float score[] = { 0.1f, 0.4f, 0.35f, 0.8f }, label[] = { 0, 0, 1, 1 };
	struct hps_metrics m = measure_in_order(score, label, 4);
	/* -(ln 0.9 + ln 0.6 + ln 0.35 + ln 0.8) / 4 */
	double loss = 0.47228795;

	assert_int_equal(m.rows, 4);
	assert_int_equal(m.positives, 2);
	assert_near(m.auc.value, 0.75, 0);
	assert_near(m.logloss.value, loss, 1e-7);
	assert_near(m.ne.value, loss / log(2), 1e-7);
	assert_near(m.calibration.value, 1.65 / 2, 1e-7);
	assert_null(m.auc.undefined);
	assert_null(m.logloss.undefined);
	assert_null(m.ne.undefined);
	assert_null(m.calibration.undefined);
}

static void extreme_scores_are_clamped(void **state)
{
	const float score[] = { 0, 1 }, label[] = { 1, 0 };
	struct hps_metrics m = measure_in_order(score, label, 2);

	assert_near(m.logloss.value, -log(1e-15), 0.1);
	assert_near(m.auc.value, 0, 0);
}

static void negative_zero_ties_with_zero(void **state)
{
	const float score[] = { -0.0f, 0.0f }, label[] = { 1, 0 };

	assert_near(measure_in_order(score, label, 2).auc.value, 0.5, 0);
}

static void undefined_with_a_reason(void **state)
{
	const float p[] = { 0.2f, 0.3f }, cosine[] = { -0.2f, 0.3f }, nan_too[] = { NAN, 2 };
	const float zeros[] = { 0, 0 }, ones[] = { 1, 1 }, both[] = { 0, 1 };
	struct hps_metrics m = measure_in_order(p, zeros, 0);

	assert_string_equal(m.auc.undefined, "no rows");
	assert_string_equal(m.logloss.undefined, "no rows");
	assert_string_equal(m.ne.undefined, "no rows");
	assert_string_equal(m.calibration.undefined, "no rows");
	m = measure_in_order(p, zeros, 2);
	assert_string_equal(m.auc.undefined, "one class only");
	assert_string_equal(m.ne.undefined, "one class only");
	assert_string_equal(m.calibration.undefined, "no positives");
	assert_null(m.logloss.undefined);
	m = measure_in_order(p, ones, 2);
	assert_string_equal(m.auc.undefined, "one class only");
	assert_near(m.calibration.value, 0.25, 1e-7);
	m = measure_in_order(cosine, both, 2);
	assert_near(m.auc.value, 1, 0);
	assert_string_equal(m.logloss.undefined, "scores are not probabilities");
	assert_string_equal(m.ne.undefined, "scores are not probabilities");
	assert_string_equal(m.calibration.undefined, "scores are not probabilities");
	m = measure_in_order(nan_too, both, 2);
	assert_string_equal(m.auc.undefined, "a score is not a number");
	assert_string_equal(m.logloss.undefined, "a score is not a number");
	assert_false(isnan(m.auc.value) || isnan(m.logloss.value));
}

static void arrival_leaves_no_trace(void **state)
{
	enum { N = 1000 };
	static uint64_t row[N];
	static float score[N], label[N];
	struct hps_rng rng;
	struct hps_metrics first = { 0 };

	hps_rng_init(&rng, 8, 0);
	for (size_t i = 0; i < N; i++) {
		row[i] = hps_rng_u64(&rng);
		score[i] = (float)hps_rng_uniform(&rng);
		label[i] = hps_rng_uniform(&rng) < score[i];
	}
	for (int round = 0; round < 5; round++) {
		struct hps_metrics m = measure(row, score, label, N);

		if (round == 0)
			first = m;
		assert_memory_equal(&m, &first, sizeof m);
		for (size_t i = N; i > 1; i--) {
			size_t j = hps_rng_below(&rng, i);
			uint64_t r = row[i - 1];
			float s = score[i - 1], l = label[i - 1];

			row[i - 1] = row[j], score[i - 1] = score[j], label[i - 1] = label[j];
			row[j] = r, score[j] = s, label[j] = l;
		}
	}
}

static void bad_scores_are_refused(void **state)
{
	struct hps_scores s = { 0 };
	struct hps_metrics m;
	struct hps_err err = { 0 };
	const uint64_t row[] = { 5, 9, 5 };
	const float score[] = { 0.1f, 0.2f, 0.3f }, label[] = { 0, 1, 1 }, two[] = { 0, 2, 1 };

	assert_int_equal(hps_scores_add(&s, row, score, two, 3, &err), HPS_BAD_INPUT);
	assert_non_null(strstr(err.msg, "row 9"));
	assert_int_equal(s.n, 0);
	assert_int_equal(hps_scores_add(&s, row, score, label, 3, &err), HPS_OK);
	assert_int_equal(hps_scores_metrics(&s, &m, &err), HPS_BAD_INPUT);
	assert_non_null(strstr(err.msg, "row 5"));
	hps_scores_release(&s);
}

static void packed_auc_of_many_rows(void **state)
{
	enum { N = 100000 };
	uint64_t *key = hps_calloc(N, sizeof *key, NULL);
	struct hps_measure auc;

	assert_non_null(key);
	/* Positives are the odd ones: i beats (i - 1) / 2 + 1 of the N / 2 negatives. */
	for (size_t i = 0; i < N; i++)
		key[i] = hps_auc_pack((float)i, i & 1);
	assert_int_equal(hps_auc_packed(key, N, &auc, NULL), HPS_OK);
	assert_near(auc.value, (N / 2 + 1) / 2.0 / (N / 2), 1e-15);
	free(key);
}

static void radix_sort_is_a_stable_sort(void **state)
{
	enum { N = 3000 };
	static uint64_t key[N], pay[N], a[N], b[N];
	struct hps_rng rng;

	hps_rng_init(&rng, 9, 0);
	for (int shift = 0; shift < 64; shift += 9) {
		for (size_t i = 0; i < N; i++) {
			key[i] = hps_rng_u64(&rng) >> shift;
			pay[i] = i;
		}
		hps_radix_sort(key, a, pay, b, N);
		for (size_t i = 1; i < N; i++)
			assert_true(key[i - 1] < key[i] ||
				    (key[i - 1] == key[i] && pay[i - 1] < pay[i]));
	}
}

static void memory_failures_are_told(void **state)
{
	const uint64_t row[] = { 1, 2 };
	const float score[] = { 0.1f, 0.2f }, label[] = { 0, 1 };

	for (unsigned long nth = 1; nth <= 6; nth++) {
		struct hps_scores s = { 0 };
		struct hps_metrics m;
		struct hps_err err = { 0 };
		enum hps_status st;

		hps_mem_fail_at(nth);
		st = hps_scores_add(&s, row, score, label, 2, &err);
		if (st == HPS_OK)
			st = hps_scores_metrics(&s, &m, &err);
		hps_mem_fail_at(0);
		assert_int_equal(st, HPS_MEMORY);
		assert_int_equal(err.status, HPS_MEMORY);
		hps_scores_release(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auc_equals_pair_counting),
		cmocka_unit_test(hand_values),
		cmocka_unit_test(extreme_scores_are_clamped),
		cmocka_unit_test(negative_zero_ties_with_zero),
		cmocka_unit_test(undefined_with_a_reason),
		cmocka_unit_test(arrival_leaves_no_trace),
		cmocka_unit_test(bad_scores_are_refused),
		cmocka_unit_test(packed_auc_of_many_rows),
		cmocka_unit_test(radix_sort_is_a_stable_sort),
		cmocka_unit_test(memory_failures_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
