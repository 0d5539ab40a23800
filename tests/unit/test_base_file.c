/* Files: read whole within a limit; written by rename, so never half; nothing left behind. */
#include "cm.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "base/mem.h"
#include "child.h"

static char dir[128];

static const char *in_dir(const char *name)
{
	static char path[4][256];
	static int next;

	next = (next + 1) % 4;
	snprintf(path[next], sizeof(path[next]), "%s/%s", dir, name);
	return path[next];
}

static int set_up(void **state)
{
	scratch_make(dir, sizeof(dir));
	return 0;
}

static int tear_down(void **state)
{
	scratch_remove(dir);
	return 0;
}

static void assert_content(const char *path, const char *want)
{
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_err err = { 0 };

	assert_int_equal(hps_file_read(path, 0, &b, &err), HPS_OK);
	assert_string_equal(b.data, want);
	assert_int_equal(b.len, strlen(want));
	hps_buf_release(&b);
}

static void test_commit(void **state)
{
	const char *path = in_dir("a");
	struct hps_file_new f;
	struct hps_err err = { 0 };

	assert_int_equal(hps_file_write(path, "old", 3, 0644, &err), HPS_OK);
	assert_int_equal(hps_file_create(&f, path, 0600, &err), HPS_OK);
	assert_int_equal(hps_file_append(&f, "new ", 4, &err), HPS_OK);
	assert_int_equal(hps_file_append(&f, "content", 7, &err), HPS_OK);
	assert_content(path, "old"); /* until the commit */
	assert_int_equal(scratch_count(dir), 2);
	assert_int_equal(hps_file_commit(&f, &err), HPS_OK);
	assert_content(path, "new content");
	assert_int_equal(scratch_count(dir), 1);
	assert_int_equal(err.status, HPS_OK);

	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_discard(void **state)
{
	const char *path = in_dir("a");
	struct hps_file_new f;
	struct hps_err err = { 0 };

	assert_int_equal(hps_file_create(&f, path, 0644, &err), HPS_OK);
	assert_int_equal(hps_file_append(&f, "x", 1, &err), HPS_OK);
	assert_int_equal(scratch_count(dir), 1);
	hps_file_discard(&f);
	assert_int_equal(scratch_count(dir), 0);

	/* A commit that fails leaves nothing either. */
	assert_int_equal(hps_file_create(&f, path, 0644, &err), HPS_OK);
	assert_int_equal(mkdir(path, 0755), 0); /* rename cannot replace a directory */
	assert_int_equal(hps_file_commit(&f, &err), HPS_IO);
	assert_string_equal(err.where, path);
	assert_int_equal(scratch_count(dir), 1);
}

static void test_stale_temporary(void **state)
{
	const char *path = in_dir("a");
	char stale[300];
	struct hps_err err = { 0 };

	snprintf(stale, sizeof(stale), "%s.tmp.%ld", path, (long)getpid());
	assert_int_equal(symlink("/nonexistent/elsewhere", stale), 0);
	assert_int_equal(hps_file_write(path, "x", 1, 0644, &err), HPS_OK);
	assert_content(path, "x");
	assert_int_equal(scratch_count(dir), 1);
}

static void test_special(void **state)
{
	const char *link = in_dir("link"), *real = in_dir("real");
	struct hps_err err = { 0 };
	struct stat st;

	/* A full device: told, and nothing is put in the device's place. */
	assert_int_equal(hps_file_write("/dev/full", "x", 1, 0644, &err), HPS_IO);
	assert_string_equal(err.where, "/dev/full");
	assert_non_null(strstr(err.msg, strerror(ENOSPC)));
	assert_int_equal(hps_file_write("/dev/null", "x", 1, 0644, &err), HPS_OK);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));

	/* A symbolic link goes on pointing: its target is replaced. */
	assert_int_equal(hps_file_write(real, "old", 3, 0644, &err), HPS_OK);
	assert_int_equal(symlink(real, link), 0);
	assert_int_equal(hps_file_write(link, "new", 3, 0644, &err), HPS_OK);
	assert_content(real, "new");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(scratch_count(dir), 2);

	assert_int_equal(hps_file_write(dir, "x", 1, 0644, &err), HPS_IO);
	assert_int_equal(hps_file_write(in_dir("no/such"), "x", 1, 0644, &err), HPS_IO);
	assert_non_null(strstr(err.msg, strerror(ENOENT)));
}

static void test_read(void **state)
{
	const char *path = in_dir("a");
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_err err = { 0 };
	char big[1000];

	assert_int_equal(hps_file_read(in_dir("none"), 0, &b, &err), HPS_IO);
	assert_string_equal(err.where, in_dir("none"));
	assert_int_equal(hps_file_read(dir, 0, &b, &err), HPS_IO);
	assert_non_null(strstr(err.msg, strerror(EISDIR)));

	memset(big, 'x', sizeof(big));
	assert_int_equal(hps_file_write(path, big, sizeof(big), 0644, &err), HPS_OK);
	err = (struct hps_err){ 0 };
	assert_int_equal(hps_file_read(path, sizeof(big), &b, &err), HPS_OK);
	assert_int_equal(b.len, sizeof(big));
	assert_int_equal(b.data[b.len], '\0');
	hps_buf_release(&b);
	assert_int_equal(hps_file_read(path, sizeof(big) - 1, &b, &err), HPS_BAD_INPUT);
	assert_string_equal(err.where, path);
	hps_buf_release(&b);

	/* Appended to what b holds; an empty file gives "". */
	assert_int_equal(hps_file_write(path, "", 0, 0644, &err), HPS_OK);
	assert_int_equal(hps_buf_add(&b, "have", 4, &err), HPS_OK);
	assert_int_equal(hps_file_read(path, 0, &b, &err), HPS_OK);
	assert_string_equal(b.data, "have");
	hps_buf_release(&b);
}

struct feed {
	int fd;
	size_t bytes;
};

static void *feed_pipe(void *arg)
{
	struct feed *f = arg;
	char block[1000];

	memset(block, 'y', sizeof(block));
	for (size_t left = f->bytes; left;) {
		ssize_t n = write(f->fd, block, left < sizeof(block) ? left : sizeof(block));

		if (n <= 0)
			break;
		left -= (size_t)n;
	}
	close(f->fd);
	return NULL;
}

static void test_read_pipe(void **state)
{
	int fds[2], saved = dup(STDIN_FILENO);
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_err err = { 0 };
	pthread_t t;

	assert_int_equal(pipe(fds), 0);
	struct feed f = { fds[1], 300000 };
	assert_int_equal(pthread_create(&t, NULL, feed_pipe, &f), 0);
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	assert_int_equal(hps_file_read("-", 0, &b, &err), HPS_OK);
	pthread_join(t, NULL);
	dup2(saved, STDIN_FILENO);
	close(saved);
	assert_int_equal(b.len, 300000);
	for (size_t i = 0; i < b.len; i++)
		assert_int_equal(b.data[i], 'y');
	hps_buf_release(&b);
}

static void test_mkdirs(void **state)
{
	const char *deep = in_dir("a/b//c"), *file = in_dir("file");
	struct hps_err err = { 0 };
	struct stat st;
	char below[300];

	assert_int_equal(hps_mkdirs(deep, 0755, &err), HPS_OK);
	assert_int_equal(stat(deep, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(hps_mkdirs(deep, 0755, &err), HPS_OK); /* again */
	assert_int_equal(hps_mkdirs("/", 0755, &err), HPS_OK);

	assert_int_equal(hps_file_write(file, "", 0, 0644, &err), HPS_OK);
	snprintf(below, sizeof(below), "%s/d/e", file);
	assert_int_equal(hps_mkdirs(below, 0755, &err), HPS_IO);
	assert_string_equal(err.where, file);
	assert_non_null(strstr(err.msg, strerror(ENOTDIR)));
}

static enum hps_status round_trip(struct hps_err *err)
{
	char path[300];
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status st;

	snprintf(path, sizeof(path), "%s/x/y", dir);
	st = hps_mkdirs(path, 0755, err);
	snprintf(path, sizeof(path), "%s/x/y/f", dir);
	if (st == HPS_OK)
		st = hps_file_write(path, "text", 4, 0644, err);
	if (st == HPS_OK)
		st = hps_file_read(path, 0, &b, err);
	if (st == HPS_OK)
		assert_string_equal(b.data, "text");
	hps_buf_release(&b);
	return st;
}

static void test_torture(void **state)
{
	enum hps_status st = HPS_MEMORY;
	unsigned long n;
	char sub[300];

	snprintf(sub, sizeof(sub), "%s/x/y", dir);
	for (n = 1; st != HPS_OK; n++) {
		struct hps_err err = { 0 };

		hps_mem_fail_at(n);
		st = round_trip(&err);
		hps_mem_fail_at(0);
		assert_true(st == HPS_OK || st == HPS_MEMORY);
		assert_int_equal(err.status, st);
		if (!access(sub, F_OK)) /* the file or nothing, no temporary */
			assert_true(scratch_count(sub) <= 1);
	}
	assert_true(n > 3);
}

static void test_same(void **state)
{
	struct hps_err err = { 0 };
	char rough[300];

	snprintf(rough, sizeof(rough), "%s/../%s//a", dir, strrchr(dir, '/') + 1);
	/* Neither is there yet. */
	assert_true(hps_file_same(in_dir("a"), rough));
	assert_true(hps_file_same("no-such", "./no-such"));
	assert_false(hps_file_same(in_dir("a"), in_dir("b")));
	assert_false(hps_file_same("a", in_dir("a")));
	assert_false(hps_file_same(in_dir("x/a"), in_dir("y/a"))); /* no such directories */
	/* One there, both there, a link to it. */
	assert_int_equal(hps_file_write(in_dir("a"), "", 0, 0600, &err), HPS_OK);
	assert_true(hps_file_same(in_dir("a"), rough));
	assert_false(hps_file_same(in_dir("a"), in_dir("b")));
	assert_int_equal(symlink("a", in_dir("b")), 0);
	assert_true(hps_file_same(in_dir("a"), in_dir("b")));
	/* What is written in place takes two writers. */
	assert_false(hps_file_same("/dev/null", "/dev/null"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_commit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_discard, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stale_temporary, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_special, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_read, set_up, tear_down),
		cmocka_unit_test(test_read_pipe),
		cmocka_unit_test_setup_teardown(test_mkdirs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_torture, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
