/* Exact metrics of a binary classifier's scores. */
#ifndef HPS_METRIC_METRIC_H
#define HPS_METRIC_METRIC_H

#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/* A value or, where it is not defined, the reason why. Never NaN or infinite. */
struct hps_measure {
	double value;
	const char *undefined; /* NULL, or a constant: "one class only", "no rows" */
};

struct hps_metrics {
	uint64_t rows, positives;
	struct hps_measure auc;		/* ties count half */
	struct hps_measure logloss;	/* nats; scores clamped to [1e-15, 1 - 1e-15] */
	struct hps_measure ne;		/* logloss over the entropy of the base rate (He 2014) */
	struct hps_measure calibration; /* sum of scores over positives */
};

/* Scores gathered from anywhere in any order: (row, score, label). Sorting by row first
 * makes sums independent of arrival. Scores that are not in [0, 1] (a cosine) get no
 * logloss, ne, calibration: undefined says "scores are not probabilities". A NaN among
 * them leaves all four undefined: "a score is not a number". Zeroed to begin with; one
 * thread at a time. */
struct hps_scores {
	uint64_t *row;
	float *score;
	uint8_t *label;
	size_t n, cap;
};

/* Labels must be 0 or 1, else HPS_BAD_INPUT names the row and nothing is added. */
enum hps_status hps_scores_add(struct hps_scores *s, const uint64_t *row, const float *score,
			       const float *label, size_t n, struct hps_err *err);
/* Sorts s by row, then computes; takes 32 more bytes a row meanwhile. A row that came
 * twice is HPS_BAD_INPUT. *out is untouched on failure. */
enum hps_status hps_scores_metrics(struct hps_scores *s, struct hps_metrics *out,
				   struct hps_err *err);
void hps_scores_release(struct hps_scores *s);

/* The area under the ROC curve of packed scores, for callers with many rows: 8 bytes a
 * row and 8 more while it sorts. Exact: ties count half, the rank sum is an integer.
 * Sorts key[0..n) in place. */
uint64_t hps_auc_pack(float score, int positive); /* score must not be NaN; -0 equals 0 */
enum hps_status hps_auc_packed(uint64_t *key, size_t n, struct hps_measure *out,
			       struct hps_err *err);

#endif
