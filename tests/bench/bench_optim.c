/* The optimizers' kernels against a bare loop that moves the same bytes (reads w, gradient
 * and state, writes w and state), for a shard's dense vector and for table rows of 10
 * floats that lie in cache; thread CPU time, in turn, medians.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hot.h"
#include "base/mem.h"
#include "base/rng.h"
#include "optim/optim.h"

enum { DENSE = 431202, DIM = 10, ROWS = 2000, ROUNDS = 31 };

static const struct {
	const char *name;
	struct hps_optim o;
} rules[] = {
	{ "sgd", { .rule = HPS_RULE_SGD, .lr = 1e-6f } },
	{ "adagrad",
	  { .rule = HPS_RULE_ADAGRAD, .lr = 1e-6f, .accumulator = 0.1f, .eps = 1e-10f } },
	{ "adam",
	  { .rule = HPS_RULE_ADAM, .lr = 1e-6f, .eps = 1e-8f, .beta1 = 0.9f, .beta2 = 0.999f } },
};

struct vec {
	float *w, *g, *s;
};

static struct vec make(size_t n)
{
	struct vec v = { hps_calloc_aligned(n, sizeof(float), NULL),
			 hps_calloc_aligned(n, sizeof(float), NULL),
			 hps_calloc_aligned(2 * n, sizeof(float), NULL) };

	if (!v.w || !v.g || !v.s)
		exit(HPS_MEMORY);
	for (size_t i = 0; i < n; i++) {
		v.w[i] = hps_unit_float(hps_mix64(i));
		v.g[i] = hps_unit_float(hps_mix64(i + n));
		v.s[i] = v.s[n + i] = 0.1f;
	}
	return v;
}

/* The least that an update of one weight can be: w and `states` arrays read and written. */
HPS_HOT static void stream(float *restrict w, const float *restrict g, float *restrict s,
			   float *restrict s2, size_t n, int states)
{
	if (states == 0)
		for (size_t i = 0; i < n; i++)
			w[i] += g[i];
	else if (states == 1)
		for (size_t i = 0; i < n; i++) {
			w[i] += g[i];
			s[i] += g[i];
		}
	else
		for (size_t i = 0; i < n; i++) {
			w[i] += g[i];
			s[i] += g[i];
			s2[i] += g[i];
		}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), ascending);
	return v[ROUNDS / 2];
}

static void bench(const char *what, size_t r, size_t n, size_t piece)
{
	const struct hps_optim *o = &rules[r].o;
	int states = (int)hps_optim_state_floats(o, 1);
	double fast[ROUNDS], bare[ROUNDS], start;
	struct vec v = make(n);

	for (int i = 0; i < ROUNDS; i++) {
		start = hps_cpu_s();
		for (size_t at = 0; at < n; at += piece)
			hps_optim_update(o, v.w + at, v.s + at, n, v.g + at, 1000, 5, piece);
		fast[i] = hps_cpu_s() - start;
		start = hps_cpu_s();
		for (size_t at = 0; at < n; at += piece)
			stream(v.w + at, v.g + at, v.s + at, v.s + n + at, piece, states);
		bare[i] = hps_cpu_s() - start;
	}
	start = median(fast);
	printf("{\"bench\":\"optim.%s.%s\",\"value\":%.3f,\"reach\":0.5,\"unit\":\"ratio\","
	       "\"floats\":%zu,\"million_floats_per_s\":%.0f}\n",
	       rules[r].name, what, median(bare) / start, n, (double)n / start * 1e-6);
	fflush(stdout);
	free(v.w);
	free(v.g);
	free(v.s);
}

int main(void)
{
	for (size_t r = 0; r < sizeof(rules) / sizeof(*rules); r++) {
		bench("dense", r, DENSE, DENSE);
		bench("rows", r, (size_t)DIM * ROWS, DIM);
	}
	return 0;
}
