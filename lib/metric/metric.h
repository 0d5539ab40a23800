/* Exact metrics of a binary classifier's scores. */
#ifndef HPS_METRIC_METRIC_H
#define HPS_METRIC_METRIC_H

#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/* A value or, where it is not defined, the reason why. */
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
 * logloss, ne, calibration: undefined says "scores are not probabilities". */
struct hps_scores {
	uint64_t *row;
	float *score;
	uint8_t *label;
	size_t n, cap;
};

enum hps_status hps_scores_add(struct hps_scores *s, const uint64_t *row, const float *score,
			       const float *label, size_t n, struct hps_err *err);
/* Sorts s by row, then computes. A row that came twice is HPS_BAD_INPUT. */
enum hps_status hps_scores_metrics(struct hps_scores *s, struct hps_metrics *out,
				   struct hps_err *err);
void hps_scores_release(struct hps_scores *s);

#endif
