/* Stable sorting of 64-bit keys in linear time, with or without a payload. */
#ifndef HPS_METRIC_RADIX_H
#define HPS_METRIC_RADIX_H

#include <stddef.h>
#include <stdint.h>

/* Ascending, stable. scratch is as large as key; the result is in key. payload and its
 * scratch may both be NULL. Passes over bytes that all keys share are left out. */
void hps_radix_sort(uint64_t *key, uint64_t *key_scratch, uint64_t *payload,
		    uint64_t *payload_scratch, size_t n);

#endif
