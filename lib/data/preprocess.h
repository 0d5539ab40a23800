/* The rule of the model file that turns a dense field into a feature: the one function
 * that training and scoring share. */
#ifndef HPS_DATA_PREPROCESS_H
#define HPS_DATA_PREPROCESS_H

#include "job/model.h"

enum { HPS_PREPROCESS_SMALL = 1024 };

struct hps_preprocess {
	enum hps_transform transform;
	double scale;
	float missing;
	float small[HPS_PREPROCESS_SMALL]; /* hps_preprocess_value of 0, 1, 2, ... */
};

/* The model's rule; NULL: values as they are, blanks 0. */
void hps_preprocess_init(struct hps_preprocess *p, const struct hps_model *m);

/* none: x * scale; signed_log: sign(x) * log(1 + |x|) * scale. Odd in x, always finite:
 * what a float cannot hold becomes +-FLT_MAX, -0 becomes 0. x must not be NaN. */
float hps_preprocess_value(const struct hps_preprocess *p, double x);

#endif
