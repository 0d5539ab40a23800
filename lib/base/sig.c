/* Was this process asked to stop? A flag set by SIGINT and SIGTERM;
 * the second signal quits at once (the manner of redis). */
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>
#include "base/sig.h"

/* A handler can reach nothing but statics; this one is lock-free. */
static atomic_int caught;

static void on_signal(int signo)
{
	int none = 0;

	if (!atomic_compare_exchange_strong(&caught, &none, signo))
		_exit(128 + signo);
}

enum hps_status hps_sig_install(struct hps_err *err)
{
	struct sigaction stop = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t stopping;

	sigemptyset(&stop.sa_mask);
	sigemptyset(&ignore.sa_mask);
	sigemptyset(&stopping);
	sigaddset(&stopping, SIGINT);
	sigaddset(&stopping, SIGTERM);
	sigaddset(&stopping, SIGHUP);
	if (sigaction(SIGINT, &stop, NULL) || sigaction(SIGTERM, &stop, NULL) ||
	    sigaction(SIGHUP, &stop, NULL) || sigaction(SIGPIPE, &ignore, NULL) ||
	    sigaction(SIGXFSZ, &ignore, NULL) ||
	    /* who started this one may have held them back until now */
	    sigprocmask(SIG_UNBLOCK, &stopping, NULL))
		return hps_err_errno(err, HPS_IO, "cannot install signal handlers");
	return HPS_OK;
}

int hps_sig_caught(void)
{
	return atomic_load_explicit(&caught, memory_order_relaxed);
}
