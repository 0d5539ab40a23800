/* Summaries of streams in bounded memory: frequent and distinct ids, quantiles. */
#ifndef HPS_DATA_SKETCH_INT_H
#define HPS_DATA_SKETCH_INT_H

#include <stddef.h>
#include <stdint.h>
#include "data/stat.h"

/* Ids told apart by their 64-bit hash. Counts are exact until HPS_STAT_EXACT_IDS are met;
 * then the median count is taken off all, ids that reach zero make room, and `miscount`
 * grows by it: each true count is at most that much higher (Misra, Gries 1982, in the form
 * of Anderson et al. 2017). Zeroed to begin with. */
struct hps_ids {
	struct hps_ids_cell *cell; /* cap, a power of two; count 0: free */
	size_t n, cap;
	uint64_t miscount;
	uint8_t *hll; /* registers; NULL while counts are exact */
};

enum hps_status hps_ids_add(struct hps_ids *s, uint64_t hash, const char *text, size_t len,
			    struct hps_err *err);
uint64_t hps_ids_distinct(const struct hps_ids *s);
/* The HPS_STAT_TOP ids of the highest counts, equal ones by text; returns how many. */
uint32_t hps_ids_top(const struct hps_ids *s, struct hps_stat_id *top);
void hps_ids_release(struct hps_ids *s);

/* Buckets whose bounds grow by 2 % (DDSketch: Masson, Rim, Lee 2019). Values from 1 to 2^63,
 * either sign, and zero; what is smaller counts as zero, what is larger as 2^63. */
enum { HPS_QUANTILE_BUCKETS = 2208 };

struct hps_quantiles {
	uint64_t zero, positive[HPS_QUANTILE_BUCKETS], negative[HPS_QUANTILE_BUCKETS];
};

void hps_quantiles_add(struct hps_quantiles *q, double x);
/* The value below which a share p of n values lies, within 1 %, rounded to an integer. */
double hps_quantiles_at(const struct hps_quantiles *q, uint64_t n, double p);

#endif
