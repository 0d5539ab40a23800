/* How to sort many 64-bit keys fast? Least significant digit first, eight bits a
 * pass (Knuth, TAOCP 3, 5.2.5), all histograms in one sweep. */
#include "metric/radix.h"

#include <string.h>

enum { DIGITS = 8, RADIX = 256 };

static void pass(const uint64_t *from, uint64_t *to, const uint64_t *pay_from, uint64_t *pay_to,
		 size_t n, const size_t *count, int shift)
{
	size_t at[RADIX], sum = 0;

	for (int d = 0; d < RADIX; d++) {
		at[d] = sum;
		sum += count[d];
	}
	for (size_t i = 0; i < n; i++) {
		size_t j = at[from[i] >> shift & (RADIX - 1)]++;

		to[j] = from[i];
		if (pay_from != NULL)
			pay_to[j] = pay_from[i];
	}
}

void hps_radix_sort(uint64_t *key, uint64_t *key_scratch, uint64_t *payload,
		    uint64_t *payload_scratch, size_t n)
{
	size_t count[DIGITS][RADIX];
	uint64_t *from = key, *to = key_scratch, *pay_from = payload, *pay_to = payload_scratch;

	if (n < 2)
		return;
	memset(count, 0, sizeof count);
	for (size_t i = 0; i < n; i++)
		for (int d = 0; d < DIGITS; d++)
			count[d][key[i] >> (8 * d) & (RADIX - 1)]++;
	for (int d = 0; d < DIGITS; d++) {
		uint64_t *swap;

		if (count[d][key[0] >> (8 * d) & (RADIX - 1)] == n)
			continue;
		pass(from, to, pay_from, pay_to, n, count[d], 8 * d);
		swap = from, from = to, to = swap;
		swap = pay_from, pay_from = pay_to, pay_to = swap;
	}
	if (from != key) {
		memcpy(key, from, n * sizeof *key);
		if (payload != NULL)
			memcpy(payload, pay_from, n * sizeof *payload);
	}
}
