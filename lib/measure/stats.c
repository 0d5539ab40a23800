/* What do repeated timings say? Medians, the affine fit, the clock's own cost. */
#include <math.h>
#include <stdlib.h>
#include "base/clock.h"
#include "measure/measure_int.h"

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double hps_median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), ascending);
	return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/* Sum of the squared relative errors, and the largest. */
static double misfit(const double *b, const double *s, uint32_t n, const struct hps_fit *f,
		     double *worst)
{
	double sum = 0;

	*worst = 0;
	for (uint32_t i = 0; i < n; i++) {
		double e = fabs(f->c0 + f->c1 * b[i] - s[i]) / s[i];

		sum += e * e;
		*worst = fmax(*worst, e);
	}
	return sum;
}

/* With x = 1/s, y = b/s the model is c0 x + c1 y = 1. Where the unbounded optimum has a
 * negative part the bounded one lies on an axis. */
void hps_fit_affine(const double *b, const double *s, uint32_t n, struct hps_fit *fit)
{
	double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0, det;
	struct hps_fit only_c0 = { 0 }, only_c1 = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		double x = 1 / s[i], y = b[i] / s[i];

		xx += x * x;
		xy += x * y;
		yy += y * y;
		x1 += x;
		y1 += y;
	}
	det = xx * yy - xy * xy;
	*fit = (struct hps_fit){ 0 };
	if (det > 1e-12 * xx * yy) {
		fit->c0 = (yy * x1 - xy * y1) / det;
		fit->c1 = (xx * y1 - xy * x1) / det;
	}
	if (!(det > 1e-12 * xx * yy) || fit->c0 < 0 || fit->c1 < 0) {
		double worst0, worst1;

		only_c0.c0 = x1 / xx;
		only_c1.c1 = y1 / yy;
		*fit = misfit(b, s, n, &only_c1, &worst1) <= misfit(b, s, n, &only_c0, &worst0)
			       ? only_c1
			       : only_c0;
	}
	misfit(b, s, n, fit, &fit->error);
}

double hps_cpu_clock_cost(void)
{
	enum { READINGS = 201 };
	double d[READINGS], before = hps_cpu_s();

	for (int i = 0; i < READINGS; i++) {
		double now = hps_cpu_s();

		d[i] = now - before;
		before = now;
	}
	return hps_median(d, READINGS);
}

enum hps_status hps_stopped(const struct hps_measure_opts *o, struct hps_err *err)
{
	if (o->stopped && o->stopped())
		return hps_err_set(err, HPS_NO, "interrupted");
	return HPS_OK;
}

void hps_tell(const struct hps_measure_opts *o, double done, const char *what)
{
	if (o->progress)
		o->progress(o->ctx, done, what);
}

uint32_t hps_micro_rows(const struct hps_model *m)
{
	uint64_t rows = m->train.batch / (m->train.micro_batches ? m->train.micro_batches : 1);

	return rows < 1 ? 1 : rows > INT32_MAX ? INT32_MAX : (uint32_t)rows;
}

uint32_t hps_measure_batches(const struct hps_model *m, uint32_t out[HPS_MEASURE_MAX_BATCHES])
{
	uint32_t b = hps_micro_rows(m), n = 0;
	const uint32_t want[] = { b / 16, b / 4, b, 2 * b, 3 * b, 4 * b };

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]) && n < 4; i++)
		if (want[i] > (n ? out[n - 1] : 0))
			out[n++] = want[i];
	return n;
}
