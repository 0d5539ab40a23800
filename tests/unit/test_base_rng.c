/* Random numbers: published vectors where they exist, uniformity and independence within
 * five standard deviations where they do not. All seeds are fixed. */
#include "cm.h"
#include <math.h>
#include <string.h>
#include "base/rng.h"

/* splitmix64 of state 0: the reference implementation's first outputs. */
static void test_mix(void **state)
{
	const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

	assert_true(hps_mix64(golden) == UINT64_C(0xe220a8397b1dcdaf));
	assert_true(hps_mix64(golden * 2) == UINT64_C(0x6e789e6aa1b965f4));
	assert_true(hps_mix64(golden * 3) == UINT64_C(0x06c45d188009454f));
	assert_true(hps_mix64(0) == 0);
}

/* XXH64: the empty string, "a" and "abc" as published; the others made with libxxhash 0.8.1,
 * one for each branch of the tail. */
static void test_hash_bytes(void **state)
{
	unsigned char data[256];
	static const struct {
		size_t len;
		uint64_t seed, want;
	} cases[] = {
		{ 0, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xc4349fc93c010000) },
		{ 1, UINT64_C(0x0), UINT64_C(0x1f25c8d0bc1f4bb6) },
		{ 1, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x79826bcd749d267a) },
		{ 3, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x78efd77575e26575) },
		{ 4, UINT64_C(0x0), UINT64_C(0x9bb64b7d66ee9fda) },
		{ 4, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x6f0a6c97d68bf353) },
		{ 7, UINT64_C(0x0), UINT64_C(0x9a7b149959ce60d8) },
		{ 7, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd97ede93c9d66a0d) },
		{ 8, UINT64_C(0x0), UINT64_C(0xdab99d95c6f90092) },
		{ 8, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xa2f1e28437a78a1b) },
		{ 11, UINT64_C(0x0), UINT64_C(0x7a52cc9457cf1a1f) },
		{ 11, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x8d2b0d24762d2b6e) },
		{ 12, UINT64_C(0x0), UINT64_C(0xd52e407833af5133) },
		{ 12, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbcc9f0d616ff9a7b) },
		{ 15, UINT64_C(0x0), UINT64_C(0x1b47cb8243cc8e32) },
		{ 15, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xe2ec50a544faec61) },
		{ 31, UINT64_C(0x0), UINT64_C(0xa2aa5f33cc4a6119) },
		{ 31, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x755437271d1d0a84) },
		{ 32, UINT64_C(0x0), UINT64_C(0x23c3c17ef790fd97) },
		{ 32, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf624b932c090428) },
		{ 33, UINT64_C(0x0), UINT64_C(0x50a7cfc7ba588784) },
		{ 33, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x7aceaf1e9d34ea35) },
		{ 63, UINT64_C(0x0), UINT64_C(0x5e3e54b431c7493c) },
		{ 63, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x2c8ddce5c85d0d9d) },
		{ 64, UINT64_C(0x0), UINT64_C(0x0eb64b3ef6eeb01f) },
		{ 64, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x4af341f14e3a6fc9) },
		{ 100, UINT64_C(0x0), UINT64_C(0xa61f8d4c170fe531) },
		{ 100, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xf6d8f65c625abb4f) },
		{ 256, UINT64_C(0x0), UINT64_C(0x00cfc5207dd8e201) },
		{ 256, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0x05da853cbd232c06) },
	};

	assert_true(hps_hash_bytes("", 0, 0) == UINT64_C(0xef46db3751d8e999));
	assert_true(hps_hash_bytes("a", 1, 0) == UINT64_C(0xd24ec4f1a98c6e5b));
	assert_true(hps_hash_bytes("abc", 3, 0) == UINT64_C(0x44bc2cf5ad770999));
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7 + 3);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_true(hps_hash_bytes(data, cases[i].len, cases[i].seed) == cases[i].want);
}

static void test_hash3(void **state)
{
	uint64_t base = hps_hash3(1, 2, 3);
	double flips = 0;

	/* Order matters, zeros do not vanish. */
	assert_true(hps_hash3(1, 3, 2) != base && hps_hash3(2, 1, 3) != base &&
		    hps_hash3(3, 2, 1) != base);
	assert_true(hps_hash3(0, 0, 0) != 0);
	assert_true(hps_hash3(0, 0, 1) != hps_hash3(0, 1, 0));
	/* A flipped bit flips half of the result: 192 flips of 64 bits, mean 32, sd 4/sqrt(192). */
	for (int i = 0; i < 192; i++) {
		uint64_t w[3] = { 1, 2, 3 };

		w[i / 64] ^= UINT64_C(1) << i % 64;
		flips += __builtin_popcountll(base ^ hps_hash3(w[0], w[1], w[2]));
	}
	assert_true(fabs(flips / 192 - 32) < 5 * 4 / sqrt(192));
}

/* xoshiro256** from the state 1, 2, 3, 4: as in the reference implementation's test of the
 * Rust crate rand_xoshiro. */
static void test_xoshiro(void **state)
{
	struct hps_rng r = { { 1, 2, 3, 4 } };
	const uint64_t want[] = { 11520,
				  0,
				  1509978240,
				  UINT64_C(1215971899390074240),
				  UINT64_C(1216172134540287360),
				  UINT64_C(607988272756665600) };

	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		assert_true(hps_rng_u64(&r) == want[i]);
}

static void test_streams(void **state)
{
	struct hps_rng a, b, c;

	hps_rng_init(&a, 7, 1);
	hps_rng_init(&b, 7, 1);
	hps_rng_init(&c, 7, 2);
	int same = 0;
	for (int i = 0; i < 1000; i++) {
		uint64_t x = hps_rng_u64(&a);

		assert_true(x == hps_rng_u64(&b));
		same += x == hps_rng_u64(&c);
	}
	assert_int_equal(same, 0);
	hps_rng_init(&a, 0, 0);
	assert_true(a.s[0] | a.s[1] | a.s[2] | a.s[3]);
}

static void test_below(void **state)
{
	enum { N = 70000 };
	struct hps_rng r;
	int count[7] = { 0 };
	uint64_t high = 0, big = (UINT64_C(3) << 62); /* rejects a quarter of the draws */
	double chi2 = 0;

	hps_rng_init(&r, 1, 0);
	for (int i = 0; i < N; i++)
		count[hps_rng_below(&r, 7)]++;
	for (int i = 0; i < 7; i++)
		chi2 += (count[i] - N / 7.0) * (count[i] - N / 7.0) / (N / 7.0);
	assert_true(chi2 < 22.46); /* 6 degrees of freedom, 0.1 % */
	for (int i = 0; i < 100; i++)
		assert_true(hps_rng_below(&r, 1) == 0);
	/* Biased modulo would put half of the draws below 2^62, not a third. */
	for (int i = 0; i < N; i++) {
		uint64_t x = hps_rng_below(&r, big);

		assert_true(x < big);
		high += x < UINT64_C(1) << 62;
	}
	assert_true(fabs((double)high / N - 1.0 / 3) < 5 * sqrt(2.0 / 9 / N));
}

static void test_moments(void **state)
{
	enum { N = 200000 };
	double sum = 0, sq = 0, u = 0, low = 1, up = 0;
	struct hps_rng r;

	hps_rng_init(&r, 42, 0);
	for (int i = 0; i < N; i++) {
		double x = hps_rng_normal(&r), v = hps_rng_uniform(&r);

		sum += x;
		sq += x * x;
		u += v;
		low = fmin(low, v);
		up = fmax(up, v);
	}
	assert_true(low >= 0 && up < 1 && low < 1e-3 && up > 1 - 1e-3);
	assert_true(fabs(u / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
	assert_true(fabs(sum / N) < 5 / sqrt(N));
	assert_true(fabs(sq / N - 1) < 5 * sqrt(2.0 / N));
}

static void test_unit_float(void **state)
{
	double sum = 0;

	assert_true(hps_unit_float(0) == -1.0f);
	assert_true(hps_unit_float(UINT64_MAX) == 1 - 0x1p-23f);
	assert_true(hps_unit_float(UINT64_C(1) << 63) == 0.0f);
	for (uint64_t i = 0; i < 100000; i++)
		sum += (double)hps_unit_float(hps_hash3(1, 2, i));
	assert_true(fabs(sum / 1e5) < 5 * sqrt(1.0 / 3 / 1e5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mix),	cmocka_unit_test(test_hash_bytes),
		cmocka_unit_test(test_hash3),	cmocka_unit_test(test_xoshiro),
		cmocka_unit_test(test_streams), cmocka_unit_test(test_below),
		cmocka_unit_test(test_moments), cmocka_unit_test(test_unit_float),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
