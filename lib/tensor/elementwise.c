/* The CPU's elementwise kernels: bias with activation, its gradient with
 * column sums, copies.
 * Loops are plain C that the compiler turns into vector code; every element's arithmetic
 * keeps its written order, so each clone returns the same bits.
 */
#include "tensor/cpu_int.h"

#include <string.h>
#include "base/fmath.h"
#include "base/hot.h"

/* --- y = act(y + bias) --- */

HPS_HOT static void add_bias(float *restrict y, const float *restrict bias, int n)
{
	for (int j = 0; j < n; j++)
		y[j] += bias[j];
}

/* x < 0 ? 0 : x, not max(x, 0): a NaN is not below zero and stays. */
HPS_HOT static void relu_bias(float *restrict y, const float *restrict bias, int n)
{
	for (int j = 0; j < n; j++) {
		float z = y[j] + bias[j];

		y[j] = z < 0.0f ? 0.0f : z;
	}
}

HPS_HOT static void relu_row(float *y, int n)
{
	for (int j = 0; j < n; j++)
		y[j] = y[j] < 0.0f ? 0.0f : y[j];
}

HPS_HOT static void sigmoid_row(float *y, int n)
{
	for (int j = 0; j < n; j++)
		y[j] = hps_sigmoidf(y[j]);
}

HPS_HOT static void tanh_row(float *y, int n)
{
	for (int j = 0; j < n; j++)
		y[j] = hps_tanhf(y[j]);
}

static void linear_row(float *y, int n)
{
}

void hps_cpu_bias_act(float *y, const float *bias, int m, int n, int ld, enum hps_act_fn act)
{
	static void (*const row[])(float *, int) = {
		[HPS_FN_LINEAR] = linear_row,
		[HPS_FN_RELU] = relu_row,
		[HPS_FN_SIGMOID] = sigmoid_row,
		[HPS_FN_TANH] = tanh_row,
	};

	for (int i = 0; i < m; i++, y += ld) {
		if (bias && act == HPS_FN_RELU) {
			relu_bias(y, bias, n);
			continue;
		}
		if (bias)
			add_bias(y, bias, n);
		row[act](y, n);
	}
}

/* --- sums --- */

HPS_HOT static void add_row(float *restrict out, const float *restrict in, int n)
{
	for (int j = 0; j < n; j++)
		out[j] += in[j];
}

/* Four rows a pass over out: a quarter of its loads and stores, the same order of sums. */
HPS_HOT static void add_4rows(float *restrict out, const float *restrict in, size_t ld, int n)
{
	const float *r0 = in, *r1 = in + ld, *r2 = in + 2 * ld, *r3 = in + 3 * ld;

	for (int j = 0; j < n; j++)
		out[j] = (((out[j] + r0[j]) + r1[j]) + r2[j]) + r3[j];
}

/* --- dy *= act'(y) --- */

/* y <= 0, not !(y > 0): where y is NaN the gradient passes. */
HPS_HOT static void relu_grad(float *restrict dy, const float *restrict y, int n)
{
	for (int j = 0; j < n; j++)
		dy[j] = y[j] <= 0.0f ? 0.0f : dy[j];
}

HPS_HOT static void sigmoid_grad(float *restrict dy, const float *restrict y, int n)
{
	for (int j = 0; j < n; j++)
		dy[j] *= y[j] * (1.0f - y[j]);
}

/* (1 - y)(1 + y): 1 - y*y would lose what is left near |y| = 1. */
HPS_HOT static void tanh_grad(float *restrict dy, const float *restrict y, int n)
{
	for (int j = 0; j < n; j++)
		dy[j] *= (1.0f - y[j]) * (1.0f + y[j]);
}

static void linear_grad(float *dy, const float *y, int n)
{
}

/* Four rows at a time, so that they are summed while they are in the first-level cache. */
void hps_cpu_act_grad(float *dy, int ldd, const float *y, int ldy, int m, int n,
		      enum hps_act_fn act, float *db)
{
	static void (*const row[])(float *, const float *, int) = {
		[HPS_FN_LINEAR] = linear_grad,
		[HPS_FN_RELU] = relu_grad,
		[HPS_FN_SIGMOID] = sigmoid_grad,
		[HPS_FN_TANH] = tanh_grad,
	};
	const float *from = dy;

	for (int i = 0; i < m; i++, dy += ldd, y += ldy) {
		row[act](dy, y, n);
		if (db && i % 4 == 3) {
			add_4rows(db, from, (size_t)ldd, n);
			from += 4 * (size_t)ldd;
		}
	}
	for (int i = m - m % 4; db && i < m; i++, from += ldd)
		add_row(db, from, n);
}

void hps_cpu_copy2d(float *out, int ldo, const float *in, int ldi, int m, int n, bool add)
{
	if (n == 0)
		return;
	for (int i = 0; i < m; i++, out += ldo, in += ldi) {
		if (add)
			add_row(out, in, n);
		else
			memcpy(out, in, (size_t)n * sizeof(*out));
	}
}
