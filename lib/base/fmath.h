/* exp, sigmoid and tanh of one float without branches, so that loops over them become
 * vector code. Method: Cephes' expf and tanhf (Moshier 1992): exp by 2^n times a polynomial
 * on [-ln2/2, ln2/2]; tanh by an odd polynomial below 0.625 and by exp above. NaN in gives
 * NaN out; infinities give the limits. A test holds them to 4 ulp of libm.
 */
#ifndef HPS_BASE_FMATH_H
#define HPS_BASE_FMATH_H

#include <math.h>
#include <stdint.h>

/* The bits of a float, and back: a union, as loops over memcpy are not made vector code. */
union hps_float_bits {
	float f;
	uint32_t u;
};

/* yes where take, no elsewhere; by bits, as a branch would keep a loop scalar. */
static inline float hps_blend(int take, float yes, float no)
{
	union hps_float_bits a = { .f = yes }, b = { .f = no };
	uint32_t mask = 0u - (uint32_t)take;

	a.u = (a.u & mask) | (b.u & ~mask);
	return a.f;
}

/* e^x for x <= 0 or NaN; 0 below -104. */
static inline float hps_exp_neg(float x)
{
	const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
	union hps_float_bits t, lo, hi;
	float n, r, p;
	uint32_t k, half;

	x = hps_blend(x < -104.0f, -104.0f, x);
	t.f = x * 1.44269504088896341f + shift;
	n = t.f - shift;
	r = x - n * 0.693359375f;
	r = r - n * -2.12194440e-4f;
	p = 1.9875691500e-4f;
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * (r * r) + r + 1.0f;
	/* 2^n in two factors: n reaches -150, below the least normal exponent. */
	k = t.u - 0x4b400000u;
	half = (uint32_t)((int32_t)k >> 1);
	lo.u = (half + 127u) << 23;
	hi.u = (k - half + 127u) << 23;
	return p * lo.f * hi.f;
}

static inline float hps_sigmoidf(float x)
{
	float e = hps_exp_neg(-fabsf(x));

	return hps_blend(x > 0.0f, 1.0f, e) / (1.0f + e);
}

static inline float hps_tanhf(float x)
{
	float a = fabsf(x), e = hps_exp_neg(-2.0f * a);
	float big = copysignf((1.0f - e) / (1.0f + e), x);
	float z = x * x, p;

	p = -5.70498872745e-3f;
	p = p * z + 2.06390887954e-2f;
	p = p * z - 5.37397155531e-2f;
	p = p * z + 1.33314422036e-1f;
	p = p * z - 3.33332819422e-1f;
	p = p * z * x + x;
	return hps_blend(a < 0.625f, p, big);
}

#endif
