/* The CPU backend against plain loops: products, activations and their gradients, copies, at
 * odd sizes and strides, at extremes, and with NaN.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "job/cluster.h"
#include "job/model.h"
#include "tensor/backend.h"

static const int sizes[] = { 0, 1, 2, 3, 7, 8, 15, 16, 17, 33, 64, 101 };
enum { N_SIZES = sizeof(sizes) / sizeof(*sizes), PAD = 3 };

static uint64_t drawn;

static float draw(void)
{
	return hps_unit_float(hps_mix64(++drawn)) * 2;
}

static float *matrix(int rows, int ld)
{
	size_t n = (size_t)rows * (size_t)ld + 16;
	float *p = calloc(n, sizeof(*p));

	assert_non_null(p);
	for (size_t i = 0; i < n; i++)
		p[i] = draw();
	return p;
}

static float *twin(const float *p, int rows, int ld)
{
	size_t bytes = ((size_t)rows * (size_t)ld + 16) * sizeof(*p);
	float *out = malloc(bytes);

	assert_non_null(out);
	memcpy(out, p, bytes);
	return out;
}

static void same(const float *a, const float *b, int rows, int ld)
{
	assert_memory_equal(a, b, ((size_t)rows * (size_t)ld + 16) * sizeof(*a));
}

/* --- products --- */

static double at(const float *a, int ld, bool t, int i, int j)
{
	return t ? a[(size_t)j * (size_t)ld + (size_t)i] : a[(size_t)i * (size_t)ld + (size_t)j];
}

static void check_gemm(const struct hps_backend *be, bool ta, bool tb, int m, int n, int k,
		       float alpha, float beta)
{
	int lda = (ta ? m : k) + PAD, ldb = (tb ? k : n) + PAD, ldc = n + PAD;
	float *a = matrix(ta ? k : m, lda), *b = matrix(tb ? n : k, ldb);
	float *c = matrix(m, ldc), *before = twin(c, m, ldc);

	be->gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < ldc; j++) {
			size_t ij = (size_t)i * (size_t)ldc + (size_t)j;
			double sum = 0, mass = 0;

			if (j >= n) {
				assert_true(c[ij] == before[ij]); /* the padding is not ours */
				continue;
			}
			for (int p = 0; p < k; p++) {
				double x = at(a, lda, ta, i, p) * at(b, ldb, tb, p, j);

				sum += x;
				mass += fabs(x);
			}
			sum = alpha * sum + beta * (double)before[ij];
			mass = fabs(alpha) * mass + fabs(beta * (double)before[ij]);
			if (!(fabs(c[ij] - sum) <= 1e-6 * mass + 1e-30))
				fail_msg("gemm %d%d %dx%dx%d at (%d, %d): %g, plainly %g", ta, tb,
					 m, n, k, i, j, c[ij], sum);
		}
	free(a);
	free(b);
	free(c);
	free(before);
}

static void test_gemm(void **state)
{
	const struct hps_backend *be = hps_backend_openblas();

	for (int i = 0; i < 4; i++)
		for (int m = 0; m < N_SIZES; m++)
			for (int n = 0; n < N_SIZES; n++)
				for (int k = (m + n) % 3; k < N_SIZES; k += 3)
					check_gemm(be, i & 1, i & 2, sizes[m], sizes[n], sizes[k],
						   1.0f, n % 2 ? 0.0f : 1.0f);
	check_gemm(be, false, true, 13, 29, 41, -0.5f, 2.0f);
}

/* beta 0 overwrites even NaN; a NaN operand reaches its row, also against zeros. */
static void test_gemm_nan(void **state)
{
	const struct hps_backend *be = hps_backend_openblas();

	for (int n = 1; n <= 40; n += 13) {
		float *a = matrix(n, n), *b = calloc((size_t)(n * n), sizeof(*b));
		float *c = matrix(n, n);

		assert_non_null(b);
		for (int i = 0; i < n * n; i++)
			c[i] = NAN;
		be->gemm(false, false, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
		for (int i = 0; i < n * n; i++)
			assert_true(c[i] == 0.0f);
		a[(n - 1) * n] = NAN;
		be->gemm(false, false, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
		for (int i = 0; i < n * n; i++)
			assert_int_equal(isnan(c[i]) != 0, i / n == n - 1);
		free(a);
		free(b);
		free(c);
	}
}

/* The same product on other addresses and strides gives the same bits. */
static void test_gemm_repeats(void **state)
{
	const struct hps_backend *be = hps_backend_openblas();

	for (int i = 0; i < N_SIZES; i++) {
		int m = 37, n = sizes[i], k = 53;
		float *a = matrix(m, k), *b = matrix(k, n + 1), *c = matrix(m, n),
		      *c2 = matrix(m, n + 5);
		float *a2 = matrix(m, k + 7);

		for (int r = 0; r < m; r++)
			memcpy(a2 + 1 + (size_t)r * (size_t)(k + 7), a + (size_t)r * (size_t)k,
			       (size_t)k * sizeof(*a));
		be->gemm(false, false, m, n, k, 1.0f, a, k, b, n + 1, 0.0f, c, n);
		be->gemm(false, false, m, n, k, 1.0f, a2 + 1, k + 7, b, n + 1, 0.0f, c2, n + 5);
		for (int r = 0; r < m; r++)
			assert_memory_equal(c + (size_t)r * (size_t)n,
					    c2 + (size_t)r * (size_t)(n + 5),
					    (size_t)n * sizeof(*c));
		free(a);
		free(a2);
		free(b);
		free(c);
		free(c2);
	}
}

/* Threads multiply side by side, each on its own, and get the same bits. */
struct product {
	float *a, *b, *c;
};
enum { SIDE = 150 };

static void *multiply(void *arg)
{
	const struct product *p = arg;

	for (int i = 0; i < 20; i++)
		hps_backend_openblas()->gemm(false, i % 2, SIDE, SIDE, SIDE, 1.0f, p->a, SIDE, p->b,
					     SIDE, 0.0f, p->c, SIDE);
	return NULL;
}

static void test_gemm_threads(void **state)
{
	struct product p[4];
	pthread_t thread[4];
	float *a = matrix(SIDE, SIDE), *b = matrix(SIDE, SIDE);

	for (int i = 0; i < 4; i++) {
		p[i] = (struct product){ a, b, matrix(SIDE, SIDE) };
		if (i > 0)
			assert_int_equal(pthread_create(&thread[i], NULL, multiply, &p[i]), 0);
	}
	for (int i = 1; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	multiply(&p[0]);
	for (int i = 1; i < 4; i++) {
		assert_memory_equal(p[i].c, p[0].c, SIDE * SIDE * sizeof(float));
		free(p[i].c);
	}
	free(p[0].c);
	free(a);
	free(b);
}

static void test_kernels(void **state)
{
	const char *kernels = hps_backend_openblas()->kernels();

	assert_true(strlen(kernels) > 0);
#if defined(__x86_64__)
	/* OpenBLAS's answer for a processor that it does not know. */
	if (!getenv("OPENBLAS_CORETYPE") && __builtin_cpu_supports("avx2") &&
	    __builtin_cpu_supports("fma"))
		assert_string_not_equal(kernels, "Prescott");
#endif
}

/* --- activations --- */

static double exact(enum hps_act_fn act, double x)
{
	switch (act) {
	case HPS_FN_RELU:
		return x < 0 ? 0 : x;
	case HPS_FN_SIGMOID:
		return 1 / (1 + exp(-x));
	case HPS_FN_TANH:
		return tanh(x);
	case HPS_FN_LINEAR:
		break;
	}
	return x;
}

/* In units of the last place of the exact value. */
static double ulps(float got, double want)
{
	float w = (float)want, place = nextafterf(fabsf(w), INFINITY) - fabsf(w);

	if (isnan(want) || isinf(w))
		return isnan(want) ? (isnan(got) ? 0 : INFINITY) : (got == w ? 0 : INFINITY);
	return fabs((double)got - want) / place;
}

static void check_act(const struct hps_backend *be, enum hps_act_fn act, int m, int n, bool bias)
{
	int ld = n + PAD;
	float *y = matrix(m, ld), *b = matrix(1, n), *before = twin(y, m, ld);

	be->bias_act(y, bias ? b : NULL, m, n, ld, act);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < ld; j++) {
			size_t ij = (size_t)i * (size_t)ld + (size_t)j;
			float z = j < n && bias ? before[ij] + b[j] : before[ij];

			if (j >= n)
				assert_true(y[ij] == before[ij]);
			else
				assert_true(ulps(y[ij], exact(act, z)) <=
					    (act >= HPS_FN_SIGMOID ? 4 : 0.5));
		}
	free(y);
	free(b);
	free(before);
}

static void test_bias_act(void **state)
{
	const struct hps_backend *be = hps_backend_openblas();

	for (int act = HPS_FN_LINEAR; act <= HPS_FN_TANH; act++)
		for (int i = 0; i < N_SIZES; i++) {
			check_act(be, (enum hps_act_fn)act, 3, sizes[i], true);
			check_act(be, (enum hps_act_fn)act, sizes[i], 5, false);
		}
}

/* Floats over all exponents and both signs, with 0, the least and the largest, infinities. */
static void test_act_extremes(void **state)
{
	static const float special[] = { 0.0f,	 -0.0f,	  1e-45f,   -1e-45f,  1.17549435e-38f,
					 -88.0f, 88.0f,	  -103.9f,  -104.5f,  -1e4f,
					 1e4f,	 3.4e38f, -3.4e38f, INFINITY, -INFINITY,
					 0.625f, 0.6249f, -0.625f,  9.0f,     -9.1f };
	const struct hps_backend *be = hps_backend_openblas();
	enum { SPECIAL = sizeof(special) / sizeof(*special), MANY = 200000 };
	float *x = malloc(MANY * sizeof(*x)), *y = malloc(MANY * sizeof(*y));

	assert_non_null(x);
	assert_non_null(y);
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t bits = i * 21475u; /* the 2^32 patterns, evenly */

		memcpy(&x[i], &bits, sizeof(bits));
	}
	memcpy(x, special, sizeof(special));
	for (int act = HPS_FN_RELU; act <= HPS_FN_TANH; act++) {
		memcpy(y, x, MANY * sizeof(*x));
		be->bias_act(y, NULL, 1, MANY, MANY, (enum hps_act_fn)act);
		for (int i = 0; i < MANY; i++)
			if (!(ulps(y[i], exact((enum hps_act_fn)act, x[i])) <= 4))
				fail_msg("activation %d of %a: %a", act, x[i], y[i]);
	}
	free(x);
	free(y);
}

static void test_act_nan(void **state)
{
	const struct hps_backend *be = hps_backend_openblas();

	for (int act = HPS_FN_LINEAR; act <= HPS_FN_TANH; act++)
		for (int at_nan = 0; at_nan < 37; at_nan++) {
			float y[37], bias[37], dy[37], db[37] = { 0 };

			for (int j = 0; j < 37; j++) {
				y[j] = draw();
				dy[j] = bias[j] = 1.0f;
			}
			y[at_nan] = NAN;
			be->bias_act(y, bias, 1, 37, 37, (enum hps_act_fn)act);
			for (int j = 0; j < 37; j++)
				assert_int_equal(isnan(y[j]) != 0, j == at_nan);
			dy[at_nan] = NAN;
			be->act_grad(dy, 37, y, 37, 1, 37, (enum hps_act_fn)act, db);
			for (int j = 0; j < 37; j++) {
				assert_int_equal(isnan(dy[j]) != 0, j == at_nan);
				assert_int_equal(isnan(db[j]) != 0, j == at_nan);
			}
		}
}

/* --- gradients, sums, copies: the same bits as the plain loops --- */

static float plain_grad(enum hps_act_fn act, float dy, float y)
{
	switch (act) {
	case HPS_FN_RELU:
		return y > 0 ? dy : 0;
	case HPS_FN_SIGMOID:
		return dy * (y * (1 - y));
	case HPS_FN_TANH:
		return dy * ((1 - y) * (1 + y));
	case HPS_FN_LINEAR:
		break;
	}
	return dy;
}

static void check_grad(const struct hps_backend *be, enum hps_act_fn act, int m, int n, bool bias)
{
	int ldd = n + PAD, ldy = n + 2 * PAD;
	float *dy = matrix(m, ldd), *want = twin(dy, m, ldd), *y = matrix(m, ldy);
	float *db = matrix(1, n), *want_db = twin(db, 1, n);

	be->bias_act(y, NULL, m, n, ldy, act);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			float *d = &want[(size_t)i * (size_t)ldd + (size_t)j];

			*d = plain_grad(act, *d, y[(size_t)i * (size_t)ldy + (size_t)j]);
			if (bias)
				want_db[j] += *d;
		}
	be->act_grad(dy, ldd, y, ldy, m, n, act, bias ? db : NULL);
	same(dy, want, m, ldd);
	same(db, want_db, 1, n);
	free(dy);
	free(want);
	free(y);
	free(db);
	free(want_db);
}

static void test_act_grad(void **state)
{
	const struct hps_backend *be = hps_backend_openblas();

	for (int act = HPS_FN_LINEAR; act <= HPS_FN_TANH; act++)
		for (int i = 0; i < N_SIZES; i++) {
			for (int m = 0; m < 10; m++)
				check_grad(be, (enum hps_act_fn)act, m, sizes[i], m % 2);
			check_grad(be, (enum hps_act_fn)act, 1000, sizes[i], true);
		}
}

/* The derivative is that of the function: central differences in double. */
static void test_act_derivative(void **state)
{
	const struct hps_backend *be = hps_backend_openblas();

	for (int act = HPS_FN_LINEAR; act <= HPS_FN_TANH; act++)
		for (float x = -6.03f; x < 6; x += 0.11f) {
			double h = 1e-6, want = (exact((enum hps_act_fn)act, x + h) -
						 exact((enum hps_act_fn)act, x - h)) /
						(2 * h);
			float y = x, dy = 1;

			be->bias_act(&y, NULL, 1, 1, 1, (enum hps_act_fn)act);
			be->act_grad(&dy, 1, &y, 1, 1, 1, (enum hps_act_fn)act, NULL);
			assert_true(fabs(dy - want) < 1e-6);
		}
}

static void test_copy2d(void **state)
{
	const struct hps_backend *be = hps_backend_openblas();

	for (int i = 0; i < N_SIZES; i++)
		for (int m = 0; m < 6; m++)
			for (int add = 0; add < 2; add++) {
				int n = sizes[i], ldo = n + PAD, ldi = n + 1;
				float *out = matrix(m, ldo), *want = twin(out, m, ldo);
				float *in = matrix(m, ldi);

				for (int r = 0; r < m; r++)
					for (int c = 0; c < n; c++) {
						float *w = &want[r * ldo + c];

						*w = add ? *w + in[r * ldi + c] : in[r * ldi + c];
					}
				be->copy2d(out, ldo, in, ldi, m, n, add);
				same(out, want, m, ldo);
				free(out);
				free(want);
				free(in);
			}
}

/* --- memory and lookup --- */

static void test_memory(void **state)
{
	const struct hps_backend *be = hps_backend_openblas();
	float host[5] = { 1, 2, 3, 4, 5 }, back[5] = { 0 }, *dev;
	struct hps_err err;

	assert_int_equal(be->abi, HPS_BACKEND_ABI);
	assert_true(be->host_memory);
	dev = be->alloc(sizeof(host), &err);
	assert_non_null(dev);
	assert_int_equal((uintptr_t)dev % 64, 0);
	for (int i = 0; i < 5; i++)
		assert_true(dev[i] == 0);
	assert_int_equal(be->upload(dev, host, sizeof(host), &err), HPS_OK);
	assert_int_equal(be->download(back, dev, sizeof(back), &err), HPS_OK);
	assert_memory_equal(host, back, sizeof(host));
	be->release(dev);
	be->release(NULL);
}

static void test_devices(void **state)
{
	const struct hps_backend *be = NULL;
	struct hps_err err;

	assert_int_equal(hps_backend_for(HPS_DEVICE_CPU, &be, &err), HPS_OK);
	assert_ptr_equal(be, hps_backend_openblas());
	assert_int_equal(hps_backend_for(HPS_DEVICE_CUDA, &be, &err), HPS_DEVICE);
	assert_non_null(strstr(err.msg, "cuda"));
	assert_true(err.hint[0] != '\0');
	assert_int_equal(hps_backend_for(99, &be, &err), HPS_DEVICE);
}

static void test_activations_are_lib_jobs(void **state)
{
	assert_int_equal(HPS_FN_LINEAR, HPS_ACT_LINEAR);
	assert_int_equal(HPS_FN_RELU, HPS_ACT_RELU);
	assert_int_equal(HPS_FN_SIGMOID, HPS_ACT_SIGMOID);
	assert_int_equal(HPS_FN_TANH, HPS_ACT_TANH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gemm),
		cmocka_unit_test(test_gemm_nan),
		cmocka_unit_test(test_gemm_repeats),
		cmocka_unit_test(test_gemm_threads),
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_bias_act),
		cmocka_unit_test(test_act_extremes),
		cmocka_unit_test(test_act_nan),
		cmocka_unit_test(test_act_grad),
		cmocka_unit_test(test_act_derivative),
		cmocka_unit_test(test_copy2d),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_activations_are_lib_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
