/* Random numbers by counter, hashes, and a sequential generator.
 * splitmix64: Steele, Lea, Flood 2014. xoshiro256**: Blackman, Vigna 2018.
 * hps_hash_bytes is XXH64 (Collet), from its specification. */
#include <math.h>
#include <string.h>
#include "base/rng.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)
#define P1     UINT64_C(0x9e3779b185ebca87)
#define P2     UINT64_C(0xc2b2ae3d27d4eb4f)
#define P3     UINT64_C(0x165667b19e3779f9)
#define P4     UINT64_C(0x85ebca77c2b2ae63)
#define P5     UINT64_C(0x27d4eb2f165667c5)

uint64_t hps_mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* Chained, each word offset by another constant: swapping two words changes the result,
 * and zeros do not stay zero. */
uint64_t hps_hash3(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t h = hps_mix64(a + GOLDEN);

	h = hps_mix64(h ^ (b + P2));
	return hps_mix64(h ^ (c + P3));
}

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

/* Little-endian on every host, so that digests agree. */
static uint64_t get64(const unsigned char *p)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static uint64_t get32(const unsigned char *p)
{
	return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

static uint64_t xx_round(uint64_t acc, uint64_t lane)
{
	return rotl(acc + lane * P2, 31) * P1;
}

static uint64_t xx_merge(uint64_t h, uint64_t acc)
{
	return (h ^ xx_round(0, acc)) * P1 + P4;
}

uint64_t hps_hash_bytes(const void *data, uint64_t len, uint64_t seed)
{
	const unsigned char *p = data;
	uint64_t left = len, h;

	if (left >= 32) {
		uint64_t a = seed + P1 + P2, b = seed + P2, c = seed, d = seed - P1;

		for (; left >= 32; p += 32, left -= 32) {
			a = xx_round(a, get64(p));
			b = xx_round(b, get64(p + 8));
			c = xx_round(c, get64(p + 16));
			d = xx_round(d, get64(p + 24));
		}
		h = rotl(a, 1) + rotl(b, 7) + rotl(c, 12) + rotl(d, 18);
		h = xx_merge(xx_merge(xx_merge(xx_merge(h, a), b), c), d);
	} else {
		h = seed + P5;
	}
	h += len;
	for (; left >= 8; p += 8, left -= 8)
		h = rotl(h ^ xx_round(0, get64(p)), 27) * P1 + P4;
	if (left >= 4) {
		h = rotl(h ^ (get32(p) * P1), 23) * P2 + P3;
		p += 4;
		left -= 4;
	}
	for (; left; p++, left--)
		h = rotl(h ^ (*p * P5), 11) * P1;
	h = (h ^ (h >> 33)) * P2;
	h = (h ^ (h >> 29)) * P3;
	return h ^ (h >> 32);
}

void hps_rng_init(struct hps_rng *r, uint64_t seed, uint64_t stream)
{
	uint64_t x = hps_hash3(seed, stream, 0);

	/* splitmix64 never yields four zeros in a row, the one state that is forbidden. */
	for (int i = 0; i < 4; i++)
		r->s[i] = hps_mix64(x += GOLDEN);
}

uint64_t hps_rng_u64(struct hps_rng *r)
{
	uint64_t *s = r->s, out = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return out;
}

uint64_t hps_rng_below(struct hps_rng *r, uint64_t n)
{
	uint64_t reject = -n % n, x; /* 2^64 mod n values at the bottom would be too likely */

	do
		x = hps_rng_u64(r);
	while (x < reject);
	return x % n;
}

double hps_rng_uniform(struct hps_rng *r)
{
	return (double)(hps_rng_u64(r) >> 11) * 0x1p-53;
}

double hps_rng_normal(struct hps_rng *r)
{
	/* Box and Muller 1958; 1 - u lies in (0, 1], so the logarithm is finite. */
	double radius = sqrt(-2 * log(1 - hps_rng_uniform(r)));

	return radius * cos(6.283185307179586477 * hps_rng_uniform(r));
}

float hps_unit_float(uint64_t hash)
{
	return (float)((int32_t)(hash >> 40) - (1 << 23)) * 0x1p-23f;
}
