/* The planted truth of generated data: what a row holds and how likely its label is.
 *
 *   logit = bias
 *         + sum over slots of w[slot][id]                    standard deviation MAIN_SD
 *         + sum over dense columns of f_column(log|value|)   DENSE_SD; lines, bumps and valleys
 *         + c * sum over pairs of slots of <v[slot][id], v[slot'][id']>   `interactions`
 *
 * w and the vectors v (4 numbers each) are drawn by (seed, slot, id), so they take no memory;
 * a blank counts as one more id or value. Everything in row i follows from (options, i)
 * alone. The bias is set so that the mean of sigmoid(logit) is the base rate.
 */
#ifndef HPS_DATA_TRUTH_INT_H
#define HPS_DATA_TRUTH_INT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "data/gen.h"

struct hps_truth;

enum hps_status hps_truth_new(const struct hps_gen_opts *opts, struct hps_truth **out,
			      struct hps_err *err);
void hps_truth_free(struct hps_truth *t);
double hps_truth_bias(const struct hps_truth *t);

/* Bytes of a row at most. */
size_t hps_truth_row_max(const struct hps_truth *t);

/* Write row i, at most hps_truth_row_max bytes, and return its end. Any thread. */
char *hps_truth_row(const struct hps_truth *t, uint64_t i, char *text, double *logit,
		    bool *positive);

#endif
