/* Diagnostics, signals, standard output and the progress bar, each in a child process. */
#include "cm.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/out.h"
#include "base/progress.h"
#include "base/sig.h"
#include "base/thread.h"
#include "child.h"

static int say(void *arg)
{
	hps_log_init("hps-x", *(int *)arg);
	hps_warn("warn %d", 1);
	hps_info("info\033[31m");
	hps_verbose("verbose");
	hps_progress_start("never on a pipe", 10);
	hps_progress_set(5, "x");
	hps_progress_end();
	return 0;
}

static void test_levels(void **state)
{
	struct child c;

	child_run(&c, say, &(int){ HPS_LOG_QUIET });
	assert_string_equal(c.err, "");
	child_run(&c, say, &(int){ HPS_LOG_NORMAL });
	assert_string_equal(c.err, "hps-x: warn 1\nhps-x: info?[31m\n");
	child_run(&c, say, &(int){ HPS_LOG_VERBOSE });
	assert_string_equal(c.err, "hps-x: warn 1\nhps-x: info?[31m\nhps-x: verbose\n");
	assert_string_equal(c.out, "");
}

static int say_and_keep(void *arg)
{
	hps_log_init("hps-x", HPS_LOG_NORMAL);
	if (hps_log_keep(arg, NULL) != HPS_OK)
		return 1;
	hps_warn("kept");
	return hps_err_print("hps-x", &(struct hps_err){ HPS_IO, "", "the last", "" });
}

static void test_kept(void **state)
{
	char file[] = "/tmp/hpsunit-kept-XXXXXX", text[64] = "";
	int fd = mkstemp(file);
	struct hps_err err = { 0 };
	struct child c;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "before\n", 7), 7);
	child_run(&c, say_and_keep, file);
	assert_int_equal(c.status, HPS_IO);
	assert_string_equal(c.err, "hps-x: kept\nhps-x: the last\n");
	assert_int_equal(pread(fd, text, sizeof(text) - 1, 0), 35);
	assert_string_equal(text, "before\nhps-x: kept\nhps-x: the last\n");
	close(fd);
	unlink(file);
	assert_int_equal(hps_log_keep("/dev/null/x", &err), HPS_IO);
	assert_string_equal(err.where, "/dev/null/x");
}

enum { LINES = 50 };

static void *chatter(void *arg)
{
	for (int i = 0; i < LINES; i++)
		hps_warn("%s", (const char *)arg);
	return NULL;
}

static int two_threads(void *arg)
{
	pthread_t a, b;

	hps_log_init("t", HPS_LOG_NORMAL);
	if (hps_thread_start(&a, "a", chatter, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL) != HPS_OK ||
	    hps_thread_start(&b, "b", chatter, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", NULL) != HPS_OK)
		return 1;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}

static void test_whole_lines(void **state)
{
	struct child c;
	int n = 0;

	child_run(&c, two_threads, NULL);
	assert_int_equal(c.status, 0);
	for (char *line = strtok(c.err, "\n"); line; line = strtok(NULL, "\n"), n++)
		assert_true(!strcmp(line, "t: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") ||
			    !strcmp(line, "t: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"));
	assert_int_equal(n, 2 * LINES);
}

static int too_long(void *arg)
{
	static char text[5000];

	memset(text, 'x', sizeof(text) - 1);
	hps_log_init("t", HPS_LOG_NORMAL);
	hps_warn("%s", text);
	return 0;
}

static void test_long_line(void **state)
{
	struct child c;
	size_t len;

	child_run(&c, too_long, NULL);
	len = strlen(c.err);
	assert_true(len > 1000 && len < 2100);
	assert_int_equal(c.err[len - 1], '\n');
}

/* --- standard output --- */

static int write_to(void *arg)
{
	struct hps_err err = { 0 };
	const char *path = arg;

	if (path)
		dup2(open(path, O_WRONLY), STDOUT_FILENO);
	enum hps_status st = hps_out_write("text\n", 5, &err);
	return hps_exit("hps-x", st, &err);
}

static int report_no(void *arg)
{
	struct hps_err err = { 0 };

	dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
	printf("partial");
	hps_err_set(&err, HPS_NO, "no plan");
	return hps_exit("hps-x", HPS_NO, &err);
}

static int no_reader(void *arg)
{
	struct hps_err err = { 0 };
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	if (pipe(fds))
		return 99;
	close(fds[0]);
	dup2(fds[1], STDOUT_FILENO);
	return hps_exit("hps-x", hps_out_write("text\n", 5, &err), &err);
}

static int closed_output(void *arg)
{
	close(STDOUT_FILENO);
	if (*(int *)arg)
		printf("text");
	return hps_exit("hps-x", HPS_OK, NULL);
}

static void test_output(void **state)
{
	struct child c;

	child_run(&c, write_to, NULL);
	assert_int_equal(c.status, 0);
	assert_string_equal(c.out, "text\n");
	child_run(&c, write_to, "/dev/full");
	assert_int_equal(c.status, HPS_IO);
	assert_string_equal(c.err,
			    "hps-x: standard output: cannot write: No space left on device\n");
	child_run(&c, report_no, NULL); /* the first failure is the one that counts */
	assert_int_equal(c.status, HPS_NO);
	assert_string_equal(c.err, "hps-x: no plan\n");
	child_run(&c, no_reader, NULL);
	assert_int_equal(c.status, HPS_IO);
	assert_non_null(strstr(c.err, "Broken pipe"));
	child_run(&c, closed_output, &(int){ 0 });
	assert_int_equal(c.status, 0);
	child_run(&c, closed_output, &(int){ 1 });
	assert_int_equal(c.status, HPS_IO);
}

/* --- signals --- */

static int catch_one(void *arg)
{
	struct pollfd p = { .events = POLLIN };
	struct hps_err err = { 0 };

	if (hps_sig_fd() != -1 || hps_sig_install(&err) != HPS_OK || hps_sig_caught())
		return 90;
	p.fd = hps_sig_fd();
	if (poll(&p, 1, 0) != 0)
		return 91;
	raise(SIGTERM);
	if (hps_sig_caught() != SIGTERM)
		return 92;
	/* The descriptor stays readable: every poll loop sees it. */
	if (poll(&p, 1, 0) != 1 || poll(&p, 1, 0) != 1)
		return 93;
	if (*(int *)arg)
		raise(*(int *)arg);
	return 0;
}

static void test_signals(void **state)
{
	struct child c;

	child_run(&c, catch_one, &(int){ 0 });
	assert_int_equal(c.status, 0);
	child_run(&c, catch_one, &(int){ SIGPIPE });
	assert_int_equal(c.status, 0);
	child_run(&c, catch_one, &(int){ SIGINT }); /* the second one quits */
	assert_int_equal(c.status, 128 + SIGINT);
	child_run(&c, catch_one, &(int){ SIGTERM });
	assert_int_equal(c.status, 128 + SIGTERM);
}

/* --- the progress bar, on a terminal --- */

static void draw(void)
{
	double start = hps_now_s();

	hps_log_init("hps-x", HPS_LOG_NORMAL);
	hps_progress_start("train", 100);
	hps_progress_set(50, "loss 0.5\033[31m");
	hps_warn("meanwhile");
	/* Redrawn ten times a second at most: many calls in a quarter second are few draws. */
	while (hps_now_s() - start < 0.25)
		hps_progress_set(60, "again");
	while (hps_now_s() - start < 0.36)
		;
	hps_progress_set(100, "done");
	hps_progress_end();
	hps_progress_start("count", 0);
	hps_progress_set(7, NULL);
	hps_progress_end();
	hps_log_init("hps-x", HPS_LOG_QUIET);
	hps_progress_start("quiet", 100);
	hps_progress_set(1, "quiet");
	hps_progress_end();
}

static void test_progress(void **state)
{
	struct winsize size = { .ws_row = 24, .ws_col = 70 };
	char text[8192] = "";
	size_t len = 0;
	int master, status;
	pid_t pid = forkpty(&master, NULL, NULL, &size);

	if (pid == 0) {
		draw();
		_exit(0);
	}
	assert_true(pid > 0);
	for (ssize_t n; (n = read(master, text + len, sizeof(text) - 1 - len)) > 0;)
		len += (size_t)n;
	close(master);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	text[len] = '\0';

	assert_non_null(strstr(text, "\rtrain [============            ]  50%"));
	assert_non_null(strstr(text, "loss 0.5?[31m"));
	/* A line wipes the bar first. */
	assert_non_null(strstr(text, "\033[K\r\033[Khps-x: meanwhile\r\n"));
	int draws = 0;
	for (char *p = text; (p = strstr(p, "again")); p++)
		draws++;
	assert_true(draws <= 3);
	assert_non_null(strstr(text, "train [========================] 100%  done"));
	assert_non_null(strstr(text, "count 7"));
	assert_null(strstr(text, "quiet"));
	assert_memory_equal(text + len - 4, "\r\033[K", 4); /* nothing is left on the screen */
	for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n"))
		assert_true(strlen(line) <= 69 + 2 * 3); /* with "\033[K" at either end */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),	    cmocka_unit_test(test_kept),
		cmocka_unit_test(test_whole_lines), cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_output),	    cmocka_unit_test(test_signals),
		cmocka_unit_test(test_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
