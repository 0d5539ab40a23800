/* A progress bar on a terminal's standard error; silent elsewhere and with -q. */
#ifndef HPS_BASE_PROGRESS_H
#define HPS_BASE_PROGRESS_H

#include <stdint.h>

/* One at a time a process, one thread. total 0 = unknown. Redrawn at most ten times a second. */
void hps_progress_start(const char *what, uint64_t total);
/* done of total, and a short text to the right ("loss 0.4411, 30.1 k/s"); text may be NULL. */
void hps_progress_set(uint64_t done, const char *text);
void hps_progress_end(void);

#endif
