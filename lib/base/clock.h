/* Monotonic time. */
#ifndef HPS_BASE_CLOCK_H
#define HPS_BASE_CLOCK_H

#include <stdint.h>

double hps_now_s(void);	  /* seconds, CLOCK_MONOTONIC */
int64_t hps_now_ms(void); /* milliseconds, CLOCK_MONOTONIC */
double hps_cpu_s(void);	  /* CPU seconds of the calling thread */

/* Cores this process may use: those of its affinity mask, but no more than the cgroup's CPU
 * quota, a fraction rounded down; >= 1. */
int hps_cpu_count(void);

#endif
