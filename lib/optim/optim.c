/* Updates of weights from gradient sums: sgd, AdaGrad (Duchi, Hazan, Singer 2011), Adam
 * (Kingma, Ba 2015). The fast kernels are the plain loops with the rule taken out of them
 * and compiled for wide vectors (which needs -fno-math-errno, for sqrtf); each element's
 * operations and their order are the same.
 */
#include "optim/optim.h"

#include <math.h>
#include "base/hot.h"
#include "optim/optim_int.h"

size_t hps_optim_state_floats(const struct hps_optim *o, size_t n)
{
	switch (o->rule) {
	case HPS_RULE_SGD:
		return 0;
	case HPS_RULE_ADAGRAD:
		return n;
	case HPS_RULE_ADAM:
		return 2 * n;
	}
	return 0;
}

void hps_optim_state_init(const struct hps_optim *o, float *state, size_t n)
{
	float value = o->rule == HPS_RULE_ADAGRAD ? o->accumulator : 0.0f;
	size_t len = hps_optim_state_floats(o, n);

	for (size_t i = 0; i < len; i++)
		state[i] = value;
}

HPS_HOT static void sgd(float *restrict w, const float *restrict sum, float count, float lr,
			size_t n)
{
	for (size_t i = 0; i < n; i++)
		w[i] -= lr * (sum[i] / count);
}

HPS_HOT static void adagrad(float *restrict w, float *restrict s, const float *restrict sum,
			    float count, float lr, float eps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float g = sum[i] / count;

		s[i] += g * g;
		w[i] -= lr * g / (sqrtf(s[i]) + eps);
	}
}

struct adam {
	float lr, eps, b1, b2, c1, c2; /* c1, c2: bias corrections of m and v */
};

HPS_HOT static void adam(float *restrict w, float *restrict m, float *restrict v,
			 const float *restrict sum, float count, struct adam a, size_t n)
{
	const float d1 = 1.0f - a.b1, d2 = 1.0f - a.b2;

	for (size_t i = 0; i < n; i++) {
		float g = sum[i] / count;

		m[i] = a.b1 * m[i] + d1 * g;
		v[i] = a.b2 * v[i] + d2 * g * g;
		w[i] -= a.lr * (m[i] * a.c1) / (sqrtf(v[i] * a.c2) + a.eps);
	}
}

void hps_optim_update(const struct hps_optim *o, float *w, float *state, size_t state_stride,
		      const float *grad_sum, uint64_t count, uint64_t t, size_t n)
{
	if (count == 0 || n == 0)
		return;
	switch (o->rule) {
	case HPS_RULE_SGD:
		sgd(w, grad_sum, (float)count, o->lr, n);
		break;
	case HPS_RULE_ADAGRAD:
		adagrad(w, state, grad_sum, (float)count, o->lr, o->eps, n);
		break;
	case HPS_RULE_ADAM: {
		struct adam a = {
			.lr = o->lr,
			.eps = o->eps,
			.b1 = o->beta1,
			.b2 = o->beta2,
			.c1 = hps_bias_correction(o->beta1, t),
			.c2 = hps_bias_correction(o->beta2, t),
		};

		adam(w, state, state + state_stride, grad_sum, (float)count, a, n);
		break;
	}
	}
}
