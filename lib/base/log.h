/* Diagnostics on standard error: for commands and long-running loops, never for
 * the outcome of a library function (that is struct hps_err). */
#ifndef HPS_BASE_LOG_H
#define HPS_BASE_LOG_H

#include "base/err.h"

enum hps_log_level {
	HPS_LOG_QUIET = -1,
	HPS_LOG_NORMAL = 0,
	HPS_LOG_VERBOSE = 1,
	HPS_LOG_DEBUG = 2
};

/* Set once by the command before threads start: the prefix and the level. */
void hps_log_init(const char *name, int level);
int hps_log_level(void);

/* From now on messages, the last one on a failure included, are added to the file, too, made
 * if it is not there: a terminal then has them together with a progress bar. Once, before
 * threads start. HPS_IO with the file's name. */
enum hps_status hps_log_keep(const char *file, struct hps_err *err);

/* One line "NAME: text"; control characters masked; whole lines from any thread. */
void hps_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));    /* always but -q */
void hps_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));    /* always but -q */
void hps_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* with -v */

#endif
