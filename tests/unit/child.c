/* Child processes and scratch directories for unit tests. */
#include <dirent.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child.h"
#include "cm.h"

/* Read both ends until both are closed, so that neither pipe fills up. */
static void drain(int fds[2], char *text[2], size_t size)
{
	struct pollfd p[2] = { { fds[0], POLLIN, 0 }, { fds[1], POLLIN, 0 } };
	size_t len[2] = { 0, 0 };
	int open_ends = 2;

	while (open_ends) {
		assert_true(poll(p, 2, 60000) > 0);
		for (int i = 0; i < 2; i++) {
			char buf[4096];
			ssize_t n;

			if (p[i].fd < 0 || !p[i].revents)
				continue;
			n = read(p[i].fd, buf, sizeof(buf));
			if (n <= 0) {
				close(p[i].fd);
				p[i].fd = -1;
				open_ends--;
				continue;
			}
			if ((size_t)n > size - 1 - len[i])
				n = (ssize_t)(size - 1 - len[i]);
			memcpy(text[i] + len[i], buf, (size_t)n);
			len[i] += (size_t)n;
		}
	}
	text[0][len[0]] = text[1][len[1]] = '\0';
}

void child_run(struct child *c, int (*fn)(void *arg), void *arg)
{
	int out[2], err[2], status;
	pid_t pid;

	fflush(stdout);
	fflush(stderr);
	assert_int_equal(pipe(out), 0);
	assert_int_equal(pipe(err), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		for (int i = 0; i < 2; i++) {
			close(out[i]);
			close(err[i]);
		}
		status = fn(arg);
		fflush(stdout);
		_exit(status);
	}
	close(out[1]);
	close(err[1]);
	drain((int[2]){ out[0], err[0] }, (char *[2]){ c->out, c->err }, sizeof(c->out));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void scratch_make(char *path, size_t size)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(path, size, "%s/hpsunit-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(path));
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void scratch_remove(const char *path)
{
	assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

size_t scratch_count(const char *path)
{
	struct dirent *e;
	size_t n = 0;
	DIR *d = opendir(path);

	assert_non_null(d);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}
