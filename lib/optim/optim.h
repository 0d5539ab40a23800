/* Optimizers, for dense vectors and for table rows; one plain loop and one fast kernel
 * each, equal bit for bit.
 *
 * With g = sum / count (the mean gradient of the step):
 *   sgd      w -= lr * g
 *   adagrad  s += g*g;  w -= lr * g / (sqrt(s) + eps)     (Duchi et al. 2011; s starts at
 *                                                          `accumulator`)
 *   adam     m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g*g;  t += 1
 *            w -= lr * (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps)  (Kingma, Ba 2015)
 * All in float32, b^t in double. State layout of n floats: sgd none; adagrad s[n];
 * adam m then v, v at state + state_stride (state_stride >= n: slices of a longer vector
 * keep their own stride). Adam's t is the caller's: one for a dense vector, one a row for tables
 * (a row untouched in a step is not changed, its t neither).
 */
#ifndef HPS_OPTIM_OPTIM_H
#define HPS_OPTIM_OPTIM_H

#include <stddef.h>
#include <stdint.h>

enum hps_optim_rule { HPS_RULE_SGD, HPS_RULE_ADAGRAD, HPS_RULE_ADAM };

/* Mirrors struct hps_optimizer of lib/job without depending on it. */
struct hps_optim {
	enum hps_optim_rule rule;
	float lr, accumulator, eps, beta1, beta2;
};

/* Floats of state for n weights. */
size_t hps_optim_state_floats(const struct hps_optim *o, size_t n);
void hps_optim_state_init(const struct hps_optim *o, float *state, size_t n);

/* One update of w (n) from the gradient sum (n) over `count` samples; t is the number of
 * this update, from 1. count == 0: nothing happens. Elementwise: any split of a vector
 * gives the same bits. */
void hps_optim_update(const struct hps_optim *o, float *w, float *state, size_t state_stride,
		      const float *grad_sum, uint64_t count, uint64_t t, size_t n);
/* The plain reference: same contract, written to be read. */
void hps_optim_update_plain(const struct hps_optim *o, float *w, float *state, size_t state_stride,
			    const float *grad_sum, uint64_t count, uint64_t t, size_t n);

#endif
