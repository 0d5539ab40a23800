/* What is the exact area under the ROC curve? The Mann-Whitney statistic by ranks
 * (Hanley, McNeil 1982): pairs (positive above negative) + half the tied pairs,
 * counted in integers, divided once at the end. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "metric/metric.h"
#include "metric/radix.h"

/* Bits of a float in an order that unsigned comparison keeps. */
static uint32_t ordered_bits(float x)
{
	uint32_t u;

	x += 0.0f; /* -0 becomes 0 */
	memcpy(&u, &x, sizeof u);
	return u & 0x80000000u ? ~u : u | 0x80000000u;
}

uint64_t hps_auc_pack(float score, int positive)
{
	return (uint64_t)ordered_bits(score) << 1 | (positive != 0);
}

/* Sorted keys: one group of equal scores after the other. */
static void rank_sum(const uint64_t *key, size_t n, struct hps_measure *out)
{
	unsigned __int128 twice = 0; /* twice the pairs in the right order */
	uint64_t pos = 0, neg = 0;

	for (size_t i = 0; i < n;) {
		uint64_t score = key[i] >> 1, p = 0, m = 0;

		for (; i < n && key[i] >> 1 == score; i++) {
			p += key[i] & 1;
			m += ~key[i] & 1;
		}
		twice += (unsigned __int128)p * (2 * (unsigned __int128)neg + m);
		pos += p;
		neg += m;
	}
	*out = (struct hps_measure){ 0 };
	if (n == 0)
		out->undefined = "no rows";
	else if (pos == 0 || neg == 0)
		out->undefined = "one class only";
	else
		out->value =
			(double)((long double)twice / (2.0L * (long double)pos * (long double)neg));
}

enum hps_status hps_auc_packed(uint64_t *key, size_t n, struct hps_measure *out,
			       struct hps_err *err)
{
	uint64_t *scratch = hps_calloc(n, sizeof *scratch, err);

	if (scratch == NULL)
		return HPS_MEMORY;
	hps_radix_sort(key, scratch, NULL, NULL, n);
	rank_sum(key, n, out);
	free(scratch);
	return HPS_OK;
}
