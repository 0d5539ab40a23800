/* Shutdown by a polled flag; a second signal quits at once. Installed by commands only. */
#ifndef HPS_BASE_SIG_H
#define HPS_BASE_SIG_H

#include "base/err.h"

/* SIGINT, SIGTERM and SIGHUP set the flag (the second one _exits with 128 + signal);
 * SIGPIPE and SIGXFSZ are ignored. */
enum hps_status hps_sig_install(struct hps_err *err);

/* The first signal caught, or 0. Any thread; a plain load. */
int hps_sig_caught(void);

/* Readable when a signal was caught: for poll loops. -1 if not installed. */
int hps_sig_fd(void);

#endif
