/* Monotonic time. */
#ifndef HPS_BASE_CLOCK_H
#define HPS_BASE_CLOCK_H

#include <stdint.h>

double hps_now_s(void);	  /* seconds, CLOCK_MONOTONIC */
int64_t hps_now_ms(void); /* milliseconds, CLOCK_MONOTONIC */
double hps_cpu_s(void);	  /* CPU seconds of the calling thread */
int hps_cpu_count(void);  /* cores this process may use (affinity and cgroup quota), >= 1 */

#endif
