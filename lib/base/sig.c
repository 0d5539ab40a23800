/* Was this process asked to stop? A flag and a descriptor set by SIGINT and SIGTERM;
 * the second signal quits at once (the manner of redis). */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/sig.h"

/* A handler can reach nothing but statics; both are lock-free. */
static atomic_int caught;
static atomic_int event_fd = -1;

static void on_signal(int signo)
{
	int saved = errno, none = 0;
	uint64_t one = 1;

	if (!atomic_compare_exchange_strong(&caught, &none, signo))
		_exit(128 + signo);
	ssize_t n = write(atomic_load(&event_fd), &one, sizeof(one));
	(void)n; /* the counter of a fresh eventfd cannot be full */
	errno = saved;
}

enum hps_status hps_sig_install(struct hps_err *err)
{
	struct sigaction stop = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t stopping;

	if (atomic_load(&event_fd) < 0) {
		int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

		if (fd < 0)
			return hps_err_errno(err, HPS_IO, "cannot make an event descriptor");
		atomic_store(&event_fd, fd);
	}
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

int hps_sig_fd(void)
{
	return atomic_load(&event_fd);
}
