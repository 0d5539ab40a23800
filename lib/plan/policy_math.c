/* The policy's arithmetic, made for vectors: an element's sum is in the order of k whatever the
 * width, and sums over elements keep LANES partial sums, so that every clone and every width
 * returns the same bits. */
#include <math.h>
#include "base/fmath.h"
#include "base/hot.h"
#include "plan/policy_int.h"

static inline void add_rows(float *restrict out, size_t n, const float *restrict coef, size_t step,
			    const float *restrict row, size_t count)
{
	size_t k = 0;

	for (; k + 8 <= count; k += 8, row += 8 * n) {
		const float *c = coef + k * step;
		float a0 = c[0], a1 = c[step], a2 = c[2 * step], a3 = c[3 * step];
		float a4 = c[4 * step], a5 = c[5 * step], a6 = c[6 * step], a7 = c[7 * step];

		for (size_t i = 0; i < n; i++) {
			float v = out[i];

			v += a0 * row[i];
			v += a1 * row[n + i];
			v += a2 * row[2 * n + i];
			v += a3 * row[3 * n + i];
			v += a4 * row[4 * n + i];
			v += a5 * row[5 * n + i];
			v += a6 * row[6 * n + i];
			v += a7 * row[7 * n + i];
			out[i] = v;
		}
	}
	for (; k < count; k++, row += n)
		for (size_t i = 0; i < n; i++)
			out[i] += coef[k * step] * row[i];
}

HPS_HOT void hps_policy_add(float *restrict out, size_t n, const float *restrict coef, size_t step,
			    const float *restrict row, size_t count)
{
	add_rows(out, n, coef, step, row, count);
}

HPS_HOT void hps_policy_forward(float *restrict z, size_t outputs, size_t width,
				const float *restrict w, const float *restrict x, size_t k)
{
	if (width == 1)
		add_rows(z, outputs, x, 1, w, k);
	else
		for (size_t i = 0; i < outputs; i++)
			add_rows(z + i * width, width, w + i, outputs, x, k);
}

HPS_HOT void hps_policy_backward(float *restrict d, size_t k, size_t width, const float *restrict w,
				 const float *restrict z, size_t n)
{
	for (size_t j = 0; j < k; j++)
		add_rows(d + j * width, width, w + j * n, 1, z, n);
}

HPS_HOT void hps_policy_outer(float *restrict grad, size_t k, size_t n, const float *restrict x,
			      const float *restrict zt, size_t width)
{
	for (size_t j = 0; j < k; j++)
		add_rows(grad + j * n, n, x + j * width, 1, zt, width);
}

HPS_HOT void hps_policy_sigmoid(float *restrict x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = hps_sigmoidf(x[i]);
}

HPS_HOT void hps_policy_tanh(float *restrict x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = hps_tanhf(x[i]);
}

HPS_HOT void hps_policy_lstm(const float *restrict gate, const float *restrict before,
			     float *restrict cell, float *restrict h, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float c = gate[n + i] * before[i] + gate[i] * gate[3 * n + i];

		cell[i] = c;
		h[i] = gate[2 * n + i] * hps_tanhf(c);
	}
}

HPS_HOT void hps_policy_lstm_back(const float *restrict gate, const float *restrict before,
				  const float *restrict cell, const float *restrict dh,
				  float *restrict dc, float *restrict dz, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float in = gate[i], keep = gate[n + i], out = gate[2 * n + i], g = gate[3 * n + i];
		float t = hps_tanhf(cell[i]);
		float d = dc[i] + dh[i] * out * (1 - t * t);

		dz[i] = d * g * in * (1 - in);
		dz[n + i] = d * before[i] * keep * (1 - keep);
		dz[2 * n + i] = dh[i] * t * out * (1 - out);
		dz[3 * n + i] = d * in * (1 - g * g);
		dc[i] = d * keep;
	}
}

HPS_HOT void hps_policy_rnn_back(const float *restrict h, const float *restrict dh,
				 float *restrict dz, size_t n)
{
	for (size_t i = 0; i < n; i++)
		dz[i] = dh[i] * (1 - h[i] * h[i]);
}

enum { LANES = HPS_POLICY_LANES };

HPS_HOT void hps_policy_log_softmax(float *restrict x, float *restrict prob, size_t n)
{
	float most[LANES], sum[LANES] = { 0 }, top, all = 0;

	for (size_t i = 0; i < LANES; i++)
		most[i] = x[i];
	for (size_t k = LANES; k < n; k += LANES)
		for (size_t i = 0; i < LANES; i++)
			most[i] = x[k + i] > most[i] ? x[k + i] : most[i];
	top = most[0];
	for (size_t i = 1; i < LANES; i++)
		top = most[i] > top ? most[i] : top;
	for (size_t i = 0; i < n; i++)
		prob[i] = hps_exp_neg(x[i] - top);
	for (size_t k = 0; k < n; k += LANES)
		for (size_t i = 0; i < LANES; i++)
			sum[i] += prob[k + i];
	for (size_t i = 0; i < LANES; i++)
		all += sum[i];
	top += logf(all);
	for (size_t i = 0; i < n; i++) {
		prob[i] /= all;
		x[i] -= top;
	}
}

HPS_HOT void hps_policy_score_back(float *restrict logp, float *restrict prob, size_t n,
				   uint32_t choice, float weight, float bonus)
{
	float part[LANES] = { 0 }, entropy = 0;

	for (size_t i = 0; i < n; i++)
		prob[i] = hps_exp_neg(logp[i]);
	for (size_t k = 0; k < n; k += LANES)
		for (size_t i = 0; i < LANES; i++)
			part[i] -= prob[k + i] * logp[k + i];
	for (size_t i = 0; i < LANES; i++)
		entropy += part[i];
	for (size_t i = 0; i < n; i++)
		logp[i] = prob[i] * (weight + bonus * (logp[i] + entropy));
	logp[choice] -= weight;
}

/* One step of Adam on n weights: rate over the first moment's bias, and the second's. */
HPS_HOT static void adam_step(float *restrict weight, const float *restrict grad, float *restrict m,
			      float *restrict v, size_t n, float scale, float rate, float second)
{
	for (size_t i = 0; i < n; i++) {
		float g = grad[i] * scale;

		m[i] = 0.9f * m[i] + 0.1f * g;
		v[i] = 0.999f * v[i] + 0.001f * (g * g);
		weight[i] -= rate * m[i] / (sqrtf(v[i] * second) + 1e-8f);
	}
}

void hps_policy_adam(float *restrict weight, const float *restrict grad, float *restrict m,
		     float *restrict v, size_t n, uint64_t step, double rate)
{
	double norm = 0;

	for (size_t i = 0; i < n; i++)
		norm += (double)grad[i] * grad[i];
	norm = sqrt(norm);
	adam_step(weight, grad, m, v, n, norm > 1 ? (float)(1 / norm) : 1,
		  (float)(rate / (1 - pow(0.9, (double)step))),
		  (float)(1 / (1 - pow(0.999, (double)step))));
}
