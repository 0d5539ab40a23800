/* Who gets an endpoint, and is it said what is wrong with the others? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "net/net.h"

static char dir[64];

static int setup(void **state)
{
	(void)state;
	scratch_make(dir, sizeof(dir));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static struct hps_net *new_net(struct hps_net_ctx *ctx)
{
	struct hps_net_opts o = { .job = 1, .self = 0, .max_frame = 1 << 20, .known_nodes = 2 };
	struct hps_net *n = NULL;
	struct hps_err err;

	if (hps_net_new(ctx, &o, &n, &err) != HPS_OK)
		fail_msg("%s", err.msg);
	return n;
}

/* One listener alone, made and ended. */
static enum hps_status try_listen(const char *endpoint, struct hps_err *err)
{
	struct hps_net_ctx *ctx;
	struct hps_net *n;
	enum hps_status st;

	memset(err, 0, sizeof(*err));
	assert_int_equal(hps_net_ctx_new(&ctx, err), HPS_OK);
	n = new_net(ctx);
	st = hps_net_listen(n, endpoint, err);
	hps_net_free(n, 0);
	hps_net_ctx_free(ctx);
	return st;
}

static void expect_refused(const char *endpoint, const char *msg, const char *hint)
{
	struct hps_err err;

	assert_int_equal(try_listen(endpoint, &err), HPS_NET);
	if (!strstr(err.msg, msg) || !strstr(err.hint, hint))
		fail_msg("%s: \"%s\" (hint \"%s\"), expected \"%s\" (hint \"%s\")", endpoint,
			 err.msg, err.hint, msg, hint);
	assert_string_equal(err.where, endpoint);
}

static void endpoints_that_mean_nothing(void **state)
{
	(void)state;
	expect_refused("", "expected ipc://PATH or tcp://HOST:PORT", "");
	expect_refused("udp://127.0.0.1:1", "expected ipc://PATH or tcp://HOST:PORT", "");
	expect_refused("ipc://", "expected ipc://PATH", "");
	expect_refused("ipc://@abstract", "expected ipc://PATH", "");
	expect_refused("ipc://*", "expected ipc://PATH", "");
	expect_refused("tcp://127.0.0.1", "expected tcp://HOST:PORT", "");
	expect_refused("tcp://127.0.0.1:", "expected tcp://HOST:PORT", "");
	expect_refused("tcp://127.0.0.1:65536", "expected tcp://HOST:PORT", "");
	expect_refused("tcp://127.0.0.1:-1", "expected tcp://HOST:PORT", "");
	expect_refused("tcp://127.0.0.1:80x", "expected tcp://HOST:PORT", "");
	expect_refused("tcp://:80", "expected tcp://HOST:PORT", "");
	expect_refused("tcp://::1:80", "expected tcp://HOST:PORT", "brackets");
	expect_refused("tcp://*:80", "got \"*\"", "0.0.0.0");
}

static void a_path_too_long(void **state)
{
	char at[300];
	struct hps_err err;
	size_t len;

	(void)state;
	len = (size_t)snprintf(at, sizeof(at), "ipc://%s/", dir);
	memset(at + len, 'x', 6 + 108 - len);
	at[6 + 108] = '\0';
	expect_refused(at, "too long for a socket, at most 107", "shorter");
	at[6 + 107] = '\0';
	assert_int_equal(try_listen(at, &err), HPS_OK);
	assert_int_equal(scratch_count(dir), 0);
}

static void directories_are_made_or_named(void **state)
{
	char at[200], file[128], want[160];
	struct hps_err err;
	struct stat st;

	(void)state;
	snprintf(at, sizeof(at), "ipc://%s/a/b/c", dir);
	assert_int_equal(try_listen(at, &err), HPS_OK);
	snprintf(file, sizeof(file), "%s/a/b", dir);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	snprintf(file, sizeof(file), "%s/file", dir);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	snprintf(at, sizeof(at), "ipc://%s/file/sock", dir);
	assert_int_equal(try_listen(at, &err), HPS_NET);
	snprintf(want, sizeof(want), "%s", file);
	if (!strstr(err.where, want) && !strstr(err.msg, want))
		fail_msg("%s: %s", err.where, err.msg);
	assert_non_null(strstr(err.hint, "directory"));
}

static void a_file_in_the_way_is_kept(void **state)
{
	char at[200], file[128];
	struct stat st;

	(void)state;
	snprintf(file, sizeof(file), "%s/precious", dir);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	snprintf(at, sizeof(at), "ipc://%s", file);
	expect_refused(at, "exists and is not a socket", "another path");
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(scratch_count(dir), 1); /* no lock left */
}

static void a_second_listener_is_refused(void **state)
{
	struct hps_net_ctx *ctx;
	struct hps_net *n;
	struct hps_err err;
	char at[200], who[64];

	(void)state;
	snprintf(at, sizeof(at), "ipc://%s/s", dir);
	assert_int_equal(hps_net_ctx_new(&ctx, &err), HPS_OK);
	n = new_net(ctx);
	assert_int_equal(hps_net_listen(n, at, &err), HPS_OK);
	assert_string_equal(hps_net_endpoint(n), at);
	assert_int_equal(hps_net_listen(n, at, &err), HPS_NET); /* once a net */
	snprintf(who, sizeof(who), "in use by process %ld", (long)getpid());
	expect_refused(at, who, "running already");
	assert_int_equal(scratch_count(dir), 2); /* the first one's socket and lock stand */
	hps_net_free(n, 0);
	assert_int_equal(scratch_count(dir), 0);
	assert_int_equal(try_listen(at, &err), HPS_OK); /* before the context ends */
	hps_net_ctx_free(ctx);
}

static void a_listener_without_a_lock_is_respected(void **state)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	char at[200];
	int fd;

	(void)state;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/foreign", dir);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 1), 0);
	snprintf(at, sizeof(at), "ipc://%s", sa.sun_path);
	expect_refused(at, "in use by another process", "");
	close(fd);
}

static void a_killed_process_path_is_taken_over(void **state)
{
	char at[200], c;
	struct hps_err err;
	int ready[2], status;
	pid_t pid;

	(void)state;
	snprintf(at, sizeof(at), "ipc://%s/s", dir);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct hps_net_opts o = { .max_frame = 1, .known_nodes = 1 };
		struct hps_net_ctx *ctx;
		struct hps_net *n;

		if (hps_net_ctx_new(&ctx, NULL) || hps_net_new(ctx, &o, &n, NULL) ||
		    hps_net_listen(n, at, NULL))
			_exit(1);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	assert_int_equal(try_listen(at, &err), HPS_NET);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(scratch_count(dir), 2); /* it left socket and lock */
	assert_int_equal(try_listen(at, &err), HPS_OK);
	assert_int_equal(scratch_count(dir), 0);
}

/* Several processes take and leave one path; a file made with O_EXCL proves that no two
 * ever hold it at a time. */
static void never_two_at_a_time(void **state)
{
	enum { N = 4, TRIES = 60 };
	char at[200], mark[128];
	int winners = 0;
	pid_t pid[N];

	(void)state;
	snprintf(at, sizeof(at), "ipc://%s/s", dir);
	snprintf(mark, sizeof(mark), "%s/mark", dir);
	for (int i = 0; i < N; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0) {
			struct hps_net_opts o = { .max_frame = 1, .known_nodes = 1 };
			struct hps_net_ctx *ctx;
			int fd, bad = 0, won = 0;

			if (hps_net_ctx_new(&ctx, NULL))
				_exit(2);
			for (int t = 0; t < TRIES; t++) {
				struct hps_net *n;

				if (hps_net_new(ctx, &o, &n, NULL))
					_exit(2);
				if (hps_net_listen(n, at, NULL) == HPS_OK) {
					won++;
					fd = open(mark, O_CREAT | O_EXCL | O_WRONLY, 0600);
					bad += fd < 0;
					close(fd);
					bad += unlink(mark) != 0;
				}
				hps_net_free(n, 0);
			}
			hps_net_ctx_free(ctx);
			_exit(bad ? 1 : won ? 0 : 3);
		}
	}
	for (int i = 0; i < N; i++) {
		int status;

		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status) % 3, 0); /* 3: never its turn */
		winners += WEXITSTATUS(status) == 0;
	}
	assert_true(winners > 0);
	assert_int_equal(scratch_count(dir), 0);
}

static void a_port_in_use_is_named(void **state)
{
	struct hps_net_ctx *ctx;
	struct hps_net *n;
	struct hps_err err;
	char want[64];
	const char *at;

	(void)state;
	assert_int_equal(hps_net_ctx_new(&ctx, &err), HPS_OK);
	n = new_net(ctx);
	assert_int_equal(hps_net_listen(n, "tcp://127.0.0.1:0", &err), HPS_OK);
	at = hps_net_endpoint(n);
	assert_memory_equal(at, "tcp://127.0.0.1:", 16);
	assert_true(atoi(at + 16) > 0);
	snprintf(want, sizeof(want), "port %s is in use", at + 16);
	expect_refused(at, want, "ss -ltnp");
	hps_net_free(n, 0);
	hps_net_ctx_free(ctx);
}

static void an_address_of_another_host_is_named(void **state)
{
	(void)state;
	/* TEST-NET-1 (RFC 5737) is nobody's */
	expect_refused("tcp://192.0.2.1:7777", "192.0.2.1 is not an address of this host",
		       "deployment");
}

static void ipv6_in_brackets(void **state)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct hps_net_ctx *ctx;
	struct hps_net *n, *c;
	struct hps_msg m = { .head = { .type = HPS_MSG_FLUSH } };
	struct hps_err err;
	uint32_t peer;
	bool here = fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0, got;

	(void)state;
	if (fd >= 0)
		close(fd);
	if (!here)
		skip();
	assert_int_equal(hps_net_ctx_new(&ctx, &err), HPS_OK);
	n = new_net(ctx);
	c = new_net(ctx);
	assert_int_equal(hps_net_listen(n, "tcp://[::1]:0", &err), HPS_OK);
	assert_memory_equal(hps_net_endpoint(n), "tcp://[::1]:", 12);
	assert_int_equal(hps_net_connect(c, 0, hps_net_endpoint(n), &err), HPS_OK);
	assert_int_equal(hps_net_send(c, 0, &m, &err), HPS_OK);
	assert_int_equal(hps_net_recv(n, 20000, &m, &peer, &got, &err), HPS_OK);
	assert_true(got);
	hps_net_free(c, 0);
	hps_net_free(n, 0);
	hps_net_ctx_free(ctx);
}

static void connecting_nowhere_is_told(void **state)
{
	struct hps_net_ctx *ctx;
	struct hps_net *n;
	struct hps_err err;

	(void)state;
	assert_int_equal(hps_net_ctx_new(&ctx, &err), HPS_OK);
	n = new_net(ctx);
	assert_int_equal(hps_net_connect(n, 1, "tcp://127.0.0.1:0", &err), HPS_NET);
	assert_non_null(strstr(err.msg, "port > 0"));
	assert_int_equal(hps_net_connect(n, 1, "http://a", &err), HPS_NET);
	/* a label of more than 63 bytes is no name: no server is asked */
	assert_int_equal(
		hps_net_connect(n, 1,
				"tcp://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
				"aaaaaaaaaaaaaaaaaaaaaaaaa:1",
				&err),
		HPS_NET);
	assert_non_null(strstr(err.msg, "is not known here"));
	assert_non_null(strstr(err.hint, "address"));
	hps_net_free(n, 0);
	hps_net_ctx_free(ctx);
}

/* A connection that ends, and ZeroMQ's patience with it, are not hidden from who asks. */
static void a_connection_that_is_cut(void **state)
{
	struct hps_net_opts o = {
		.job = 1, .self = 1, .max_frame = 1 << 20, .known_nodes = 2, .watch = true
	};
	struct hps_msg m = { .head = { .type = HPS_MSG_END } };
	struct hps_net_ctx *a, *b;
	struct hps_net *listener, *n;
	uint32_t node = 7, peer;
	char at[100];
	bool got;

	(void)state;
	snprintf(at, sizeof(at), "ipc://%s/cut", dir);
	assert_int_equal(hps_net_ctx_new(&a, NULL), HPS_OK);
	assert_int_equal(hps_net_ctx_new(&b, NULL), HPS_OK);
	listener = new_net(a);
	assert_int_equal(hps_net_listen(listener, at, NULL), HPS_OK);
	assert_int_equal(hps_net_new(b, &o, &n, NULL), HPS_OK);
	assert_int_equal(hps_net_connect(n, 0, at, NULL), HPS_OK);
	assert_false(hps_net_cut(n, &node));
	assert_int_equal(hps_net_send(n, 0, &m, NULL), HPS_OK);
	assert_int_equal(hps_net_recv(listener, 10000, &m, &peer, &got, NULL), HPS_OK);
	assert_true(got);
	hps_msg_release(&m);
	assert_false(hps_net_cut(n, &node));
	hps_net_free(listener, 0);
	hps_net_ctx_free(a);
	for (int i = 0; i < 1000 && !hps_net_cut(n, &node); i++)
		assert_int_equal(hps_net_recv(n, 10, &m, &peer, &got, NULL), HPS_OK);
	assert_true(hps_net_cut(n, &node));
	assert_int_equal(node, 0);
	hps_net_free(n, 0);
	hps_net_ctx_free(b);
}

int main(void)
{
#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		IN_DIR(never_two_at_a_time),
		IN_DIR(a_killed_process_path_is_taken_over),
		cmocka_unit_test(endpoints_that_mean_nothing),
		IN_DIR(a_path_too_long),
		IN_DIR(directories_are_made_or_named),
		IN_DIR(a_file_in_the_way_is_kept),
		IN_DIR(a_second_listener_is_refused),
		IN_DIR(a_listener_without_a_lock_is_respected),
		cmocka_unit_test(a_port_in_use_is_named),
		cmocka_unit_test(an_address_of_another_host_is_named),
		cmocka_unit_test(ipv6_in_brackets),
		cmocka_unit_test(connecting_nowhere_is_told),
		cmocka_unit_test(a_connection_that_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
