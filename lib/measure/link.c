/* How fast do the sockets that training uses move a frame? Two processes, each with a lib/net
 * node, send one back and forth; half a round trip of n bytes is latency + n / bandwidth.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "measure/measure_int.h"
#include "net/net.h"

enum {
	ROUNDS = 15,
	QUICK_ROUNDS = 5,
	WAIT_MS = 20000,
	LOOK_MS = 100, /* between two looks for a signal */
	JOB = 1,
	MAX_BYTES = 16 << 20,
	QUICK_MAX_BYTES = 1 << 20,
	SIZES = 7, /* 4 KiB times a power of 4 */
	COOL_BYTES = 8 << 20,
	ENDPOINT = 320,
};

static enum hps_status open_node(struct hps_net_ctx *ctx, uint32_t self, struct hps_net **out,
				 struct hps_err *err)
{
	struct hps_net_opts o = {
		.job = JOB, .self = self, .max_frame = MAX_BYTES, .known_nodes = 2
	};

	return hps_net_new(ctx, &o, out, err);
}

/* --- the echo --- */

struct echo {
	char at[ENDPOINT]; /* to listen at */
	int tell;	   /* where the endpoint goes, or nothing */
	bool own_thread;   /* not a process: returns instead of exiting */
};

/* Send back what comes, until an END. */
static void answer(struct hps_net *n)
{
	struct hps_msg m;
	uint32_t peer;
	bool got = true, more = true;

	while (more && got && hps_net_recv(n, WAIT_MS, &m, &peer, &got, NULL) == HPS_OK) {
		if (!got)
			break;
		more = m.head.type != HPS_MSG_END;
		if (more && hps_net_send(n, peer, &m, NULL) != HPS_OK)
			break;
		hps_msg_release(&m);
	}
}

static void *echo(void *arg)
{
	struct echo *e = arg;
	struct hps_net_ctx *ctx = NULL;
	struct hps_net *n = NULL;

	if (hps_net_ctx_new(&ctx, NULL) == HPS_OK && open_node(ctx, 0, &n, NULL) == HPS_OK &&
	    hps_net_listen(n, e->at, NULL) == HPS_OK) {
		const char *at = hps_net_endpoint(n);
		ssize_t len = (ssize_t)strlen(at);

		if (write(e->tell, at, (size_t)len) == len) {
			close(e->tell);
			e->tell = -1;
			answer(n);
		}
	}
	if (e->tell >= 0)
		close(e->tell);
	hps_net_free(n, 1000);
	hps_net_ctx_free(ctx);
	return NULL;
}

/* The thread sanitizer follows no threads into a child of a process that has some: there
 * the echo is a thread. */
#ifdef __SANITIZE_THREAD__
#define ECHO_IS_THREAD true
#else
#define ECHO_IS_THREAD false
#endif

struct echoer {
	struct echo echo;
	pid_t pid;
	pthread_t thread;
	bool running;
};

static enum hps_status start_echo(struct echoer *x, int tell, int listen_fd, struct hps_err *err)
{
	enum hps_status st;
	pid_t parent = getpid();

	x->echo.tell = tell;
	if (ECHO_IS_THREAD) {
		st = hps_thread_start(&x->thread, "echo", echo, &x->echo, err);
		if (st != HPS_OK)
			close(tell);
		x->running = st == HPS_OK;
		return st;
	}
	x->pid = fork();
	if (x->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* a terminal's ^C reaches both: the parent says when this ends */
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		if (getppid() != parent)
			_exit(0);
		close(listen_fd);
		echo(&x->echo);
		_exit(0);
	}
	close(tell);
	if (x->pid < 0)
		return hps_err_errno(err, HPS_IO, "cannot start a process");
	x->running = true;
	return HPS_OK;
}

static void end_echo(struct echoer *x, bool told)
{
	if (!x->running)
		return;
	if (ECHO_IS_THREAD) {
		pthread_join(x->thread, NULL);
		return;
	}
	if (!told)
		kill(x->pid, SIGKILL);
	while (waitpid(x->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* --- the round trips --- */

/* Between two exchanges a replica computes: its caches hold other things when it sends, and
 * the peer's threads are asleep. */
static void cool(uint8_t *other)
{
	for (size_t i = 0; i < COOL_BYTES; i += 64)
		other[i]++;
}

static void keep(void *data, void *hint)
{
	(void)data;
	(void)hint;
}

static enum hps_status round_trip(const struct hps_measure_opts *o, struct hps_net *n, void *bytes,
				  size_t len, double *seconds, struct hps_err *err)
{
	struct hps_msg m = { .head = { .type = HPS_MSG_DENSE }, .n_frames = 1 };
	double before = hps_now_s();
	enum hps_status st;
	uint32_t peer;
	bool got = false;

	m.frame[0] = (struct hps_frame){ bytes, len, keep, NULL };
	st = hps_net_send(n, 0, &m, err);
	while (st == HPS_OK && !got && hps_now_s() < before + WAIT_MS / 1e3) {
		st = hps_net_recv(n, LOOK_MS, &m, &peer, &got, err);
		if (st == HPS_OK && !got)
			st = hps_stopped(o, err);
	}
	if (st != HPS_OK)
		return st;
	if (!got)
		return hps_err_set(err, HPS_NET, "the process at the link's other end is silent");
	*seconds = hps_now_s() - before;
	hps_msg_release(&m);
	return HPS_OK;
}

struct hps_link hps_link_of(const double *bytes, const double *seconds, uint32_t n)
{
	struct hps_fit fit;

	hps_fit_affine(bytes, seconds, n, &fit);
	return (struct hps_link){
		.bandwidth = fit.c1 > 0 ? 1 / fit.c1 : bytes[n - 1] / seconds[n - 1],
		.latency = fit.c0,
	};
}

static enum hps_status trips(const struct hps_measure_opts *o, struct hps_net *n, void *bytes,
			     uint8_t *other, struct hps_link *link, struct hps_err *err)
{
	size_t most = o->quick ? QUICK_MAX_BYTES : MAX_BYTES;
	int rounds = o->quick ? QUICK_ROUNDS : ROUNDS, sizes = 0;
	double times[SIZES][ROUNDS], size[SIZES], median[SIZES];
	enum hps_status st = HPS_OK;

	for (size_t len = 4096; len <= most; len *= 4)
		size[sizes++] = (double)len;
	for (int r = -2; r < rounds && st == HPS_OK; r++)
		for (int i = 0; i < sizes && st == HPS_OK; i++) {
			double s = 0;

			st = hps_stopped(o, err);
			cool(other);
			if (st == HPS_OK)
				st = round_trip(o, n, bytes, (size_t)size[i], &s, err);
			if (r >= 0)
				times[i][r] = s / 2;
		}
	if (st != HPS_OK)
		return st;
	for (int i = 0; i < sizes; i++)
		median[i] = hps_median(times[i], (size_t)rounds);
	*link = hps_link_of(size, median, (uint32_t)sizes);
	return HPS_OK;
}

static enum hps_status with_peer(const struct hps_measure_opts *o, const char *at,
				 struct hps_link *link, struct hps_err *err)
{
	struct hps_msg end = { .head = { .type = HPS_MSG_END } };
	struct hps_net_ctx *ctx = NULL;
	struct hps_net *n = NULL;
	void *bytes = hps_calloc(MAX_BYTES, 1, err), *other = hps_calloc(COOL_BYTES, 1, err);
	enum hps_status st = bytes && other ? hps_net_ctx_new(&ctx, err) : HPS_MEMORY;

	if (st == HPS_OK)
		st = open_node(ctx, 1, &n, err);
	if (st == HPS_OK)
		st = hps_net_connect(n, 0, at, err);
	if (st == HPS_OK)
		st = trips(o, n, bytes, other, link, err);
	if (n && (st == HPS_OK || ECHO_IS_THREAD) && hps_net_send(n, 0, &end, err) != HPS_OK)
		st = HPS_NET;
	hps_net_free(n, st == HPS_OK || ECHO_IS_THREAD ? 1000 : 0);
	hps_net_ctx_free(ctx);
	free(other);
	free(bytes); /* lent to messages that the context might still have held */
	return st;
}

/* The endpoint that the echo listens at; "" if it could not. */
static void hear_endpoint(int fd, char at[ENDPOINT])
{
	size_t len = 0;
	ssize_t got;

	while (len < ENDPOINT - 1) {
		got = read(fd, at + len, ENDPOINT - 1 - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		len += (size_t)got;
	}
	at[len] = '\0';
}

enum hps_status hps_measure_link(const struct hps_measure_opts *o, struct hps_link *link,
				 struct hps_err *err)
{
	const char *tmp = getenv("TMPDIR");
	char dir[64] = "", at[ENDPOINT];
	struct echoer x = { 0 };
	enum hps_status st =
		hps_net_room(2, 2, err); /* the echo could not tell why it is not there */
	int pipe_fd[2];

	*link = (struct hps_link){ 0 };
	if (st != HPS_OK)
		return st;
	hps_tell(o, 0, "link");
	strcpy(x.echo.at, "tcp://127.0.0.1:0");
	if (!o->tcp) {
		/* a long TMPDIR would not fit a socket's path */
		snprintf(dir, sizeof(dir), "%s/hps-link-XXXXXX",
			 tmp && *tmp && strlen(tmp) < sizeof(dir) - 17 ? tmp : "/tmp");
		if (!mkdtemp(dir))
			return hps_err_errno(err, HPS_IO, "cannot make a directory like %s", dir);
		snprintf(x.echo.at, sizeof(x.echo.at), "ipc://%s/link", dir);
	}
	if (pipe2(pipe_fd, O_CLOEXEC) != 0) {
		st = hps_err_errno(err, HPS_IO, "cannot make a pipe");
	} else {
		st = start_echo(&x, pipe_fd[1], pipe_fd[0], err);
		hear_endpoint(pipe_fd[0], at);
		close(pipe_fd[0]);
		if (st == HPS_OK && !at[0])
			st = hps_err_set(err, HPS_NET, "cannot listen at %s", x.echo.at);
		if (st == HPS_OK)
			st = with_peer(o, at, link, err);
		end_echo(&x, st == HPS_OK);
	}
	if (dir[0]) {
		/* a killed echo leaves its socket and its lock */
		unlink(x.echo.at + strlen("ipc://"));
		strcat(x.echo.at, ".lock");
		unlink(x.echo.at + strlen("ipc://"));
		rmdir(dir);
	}
	return st;
}
