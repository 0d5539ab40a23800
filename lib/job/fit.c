/* How does a time grow with the batch? The affine fit of struct hps_fit. */
#include <math.h>
#include "job/profile.h"

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
