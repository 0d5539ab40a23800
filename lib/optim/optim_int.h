/* What the fast and the plain optimizers share; private to lib/optim. */
#ifndef HPS_OPTIM_OPTIM_INT_H
#define HPS_OPTIM_OPTIM_INT_H

#include <stdint.h>

/* Adam's bias correction 1 / (1 - beta^t), t >= 1; the power by squaring, as a row's update
 * is shorter than pow(3). */
static inline float hps_bias_correction(float beta, uint64_t t)
{
	double power = 1.0;

	for (double square = beta; t > 0; t >>= 1, square *= square)
		power *= t & 1 ? square : 1.0;
	return (float)(1.0 / (1.0 - power));
}

#endif
