/* What do repeated timings say? Medians, the clock's own cost. */
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
