/* The optimizers as a reader would write them down: what optim.c must equal bit for bit. */
#include "optim/optim.h"

#include <math.h>
#include "optim/optim_int.h"

static void update_one(const struct hps_optim *o, float *w, float *s, float *v, float g, uint64_t t)
{
	float m_factor, v_factor;

	switch (o->rule) {
	case HPS_RULE_SGD:
		*w -= o->lr * g;
		return;
	case HPS_RULE_ADAGRAD:
		*s += g * g;
		*w -= o->lr * g / (sqrtf(*s) + o->eps);
		return;
	case HPS_RULE_ADAM:
		m_factor = hps_bias_correction(o->beta1, t);
		v_factor = hps_bias_correction(o->beta2, t);
		*s = o->beta1 * *s + (1.0f - o->beta1) * g;
		*v = o->beta2 * *v + (1.0f - o->beta2) * g * g;
		*w -= o->lr * (*s * m_factor) / (sqrtf(*v * v_factor) + o->eps);
		return;
	}
}

void hps_optim_update_plain(const struct hps_optim *o, float *w, float *state, size_t state_stride,
			    const float *grad_sum, uint64_t count, uint64_t t, size_t n)
{
	if (count == 0)
		return;
	for (size_t i = 0; i < n; i++) {
		float none = 0.0f;
		float *s = o->rule == HPS_RULE_SGD ? &none : &state[i];
		float *v = o->rule == HPS_RULE_ADAM ? &state[state_stride + i] : &none;

		update_one(o, &w[i], s, v, grad_sum[i] / (float)count, t);
	}
}
