/* Which keys of a micro-batch are distinct: open addressing with linear probing over a
 * scratch of 32-bit numbers, small enough for the second-level cache at the usual batch.
 */
#include "nn/stage_int.h"

#include <string.h>

/* At least twice n, a power of two. */
size_t hps_dedup_slots(size_t n)
{
	size_t slots = 64;

	while (slots < 2 * n)
		slots *= 2;
	return slots;
}

/* Fibonacci hashing (Knuth, TAOCP 3, 6.4) of the folded key. */
static inline uint32_t home(uint64_t key, int shift)
{
	return (uint32_t)(((key ^ (key >> 32)) * UINT64_C(0x9e3779b97f4a7c15)) >> shift);
}

uint32_t hps_dedup(uint64_t *key, uint32_t n, uint32_t *index, uint32_t *slot)
{
	size_t slots = hps_dedup_slots(n);
	uint32_t mask = (uint32_t)(slots - 1), unique = 0;
	int shift = 64 - __builtin_ctzll(slots);

	memset(slot, 0, slots * sizeof(*slot));
	for (uint32_t i = 0; i < n; i++) {
		uint64_t k = key[i];
		uint32_t h = home(k, shift);

		/* A slot holds 1 + the number of a unique key; 0 is empty. */
		while (slot[h] != 0 && key[slot[h] - 1] != k)
			h = (h + 1) & mask;
		if (slot[h] == 0) {
			key[unique++] = k;
			slot[h] = unique;
		}
		index[i] = slot[h] - 1;
	}
	return unique;
}
