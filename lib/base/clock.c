/* What time is it, and how much CPU time did this thread use? */
#include <time.h>
#include "base/clock.h"

static struct timespec read_clock(clockid_t id)
{
	struct timespec t = { 0 };

	clock_gettime(id, &t); /* cannot fail for these two clocks */
	return t;
}

double hps_now_s(void)
{
	struct timespec t = read_clock(CLOCK_MONOTONIC);

	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int64_t hps_now_ms(void)
{
	struct timespec t = read_clock(CLOCK_MONOTONIC);

	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

double hps_cpu_s(void)
{
	struct timespec t = read_clock(CLOCK_THREAD_CPUTIME_ID);

	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
