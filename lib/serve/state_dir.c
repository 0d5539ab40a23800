/* How a process' new save becomes the newest one, whatever happens on the way. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "serve/state.h"
#include "serve/state_path_int.h"

static void sync_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	fsync(fd); /* a file system that cannot sync a folder is no error */
	close(fd);
}

/* Whoever has the lock has written its number into it (hps_state_open). */
static enum hps_status taken(int lock_fd, struct hps_err *err)
{
	char text[24] = "";
	ssize_t n = pread(lock_fd, text, sizeof(text) - 1, 0);
	long pid = n > 0 ? strtol(text, NULL, 10) : 0;

	if (pid > 0)
		hps_err_set(err, HPS_IO, "another hps-serve, process %ld, has this state directory",
			    pid);
	else
		hps_err_set(err, HPS_IO, "another hps-serve has this state directory");
	hps_err_hint(err, "wait until it has ended, end it, or give another --state");
	return HPS_IO;
}

enum hps_status hps_state_open(struct hps_state_dir *d, const char *root, const char *host,
			       struct hps_err *err)
{
	char *lock = NULL;
	enum hps_status st = HPS_MEMORY;

	*d = (struct hps_state_dir){ .lock_fd = -1 };
	d->root = hps_strdup(root, err);
	d->dir = hps_state_path(err, "%s/%s", root, host);
	if (!d->root || !d->dir)
		goto out;
	st = hps_mkdirs(d->dir, 0777, err);
	if (st != HPS_OK)
		goto out;
	st = HPS_MEMORY;
	lock = hps_state_path(err, "%s/lock", d->dir);
	if (!lock)
		goto out;
	d->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (d->lock_fd < 0) {
		st = hps_state_failed("cannot open", lock, err);
	} else if (flock(d->lock_fd, LOCK_EX | LOCK_NB)) {
		st = errno == EWOULDBLOCK ? taken(d->lock_fd, err)
					  : hps_err_errno(err, HPS_IO, "cannot lock");
		hps_err_at(err, "%s", d->dir);
	} else {
		st = HPS_OK;
		if (ftruncate(d->lock_fd, 0) == 0)
			dprintf(d->lock_fd, "%ld\n", (long)getpid());
	}
out:
	free(lock);
	if (st != HPS_OK)
		hps_state_close(d);
	return st;
}

void hps_state_close(struct hps_state_dir *d)
{
	hps_state_abandon(d);
	if (d->lock_fd >= 0)
		close(d->lock_fd);
	free(d->root);
	free(d->dir);
	*d = (struct hps_state_dir){ .lock_fd = -1 };
}

static enum hps_status remove_file(void *ctx, const char *dir, const char *name,
				   struct hps_err *err)
{
	char *path = hps_state_path(err, "%s/%s", dir, name);

	if (!path)
		return HPS_MEMORY;
	unlink(path);
	free(path);
	return HPS_OK;
}

/* A folder of files only, which all of ours are. What cannot be removed stays, and does no harm. */
static void remove_folder(const char *path)
{
	hps_state_each_entry(path, remove_file, NULL, NULL);
	rmdir(path);
}

static enum hps_status sweep_one(void *ctx, const char *dir, const char *name, struct hps_err *err)
{
	uint64_t n;
	char *path;

	if (!hps_state_numbered(name, "tmp-", "", &n))
		return HPS_OK;
	path = hps_state_path(err, "%s/%s", dir, name);
	if (!path)
		return HPS_MEMORY;
	remove_folder(path);
	free(path);
	return HPS_OK;
}

enum hps_status hps_state_begin(struct hps_state_dir *d, struct hps_err *err)
{
	enum hps_status st =
		hps_state_each_entry(d->dir, sweep_one, NULL, err); /* what a crash left */

	if (st != HPS_OK)
		return st;
	d->tmp = hps_state_path(err, "%s/tmp-%ld", d->dir, (long)getpid());
	if (!d->tmp)
		return HPS_MEMORY;
	if (mkdir(d->tmp, 0777)) {
		st = hps_state_failed("cannot make the directory", d->tmp, err);
		free(d->tmp);
		d->tmp = NULL;
	}
	return st;
}

void hps_state_abandon(struct hps_state_dir *d)
{
	if (d->tmp)
		remove_folder(d->tmp);
	free(d->tmp);
	d->tmp = NULL;
}

/* The highest number of a save in any HOST of DIR: the next one is newer than all. */
static enum hps_status newest_in_host(void *ctx, const char *dir, const char *name,
				      struct hps_err *err)
{
	uint64_t *newest = ctx, n;
	bool is;
	enum hps_status st = hps_state_is_save(dir, name, &is, &n, err);

	if (st == HPS_OK && is && n > *newest)
		*newest = n;
	return st;
}

static enum hps_status newest_in_root(void *ctx, const char *dir, const char *name,
				      struct hps_err *err)
{
	char *host = hps_state_path(err, "%s/%s", dir, name);
	enum hps_status st =
		host ? hps_state_each_entry(host, newest_in_host, ctx, err) : HPS_MEMORY;

	free(host);
	return st;
}

struct dropping {
	uint64_t keep_from; /* older ones go */
	long pid;
};

/* Renamed first: a save that is half gone must not look like one. */
static enum hps_status drop_old(void *ctx, const char *dir, const char *name, struct hps_err *err)
{
	const struct dropping *drop = ctx;
	char *from, *to;
	uint64_t n;

	if (!hps_state_numbered(name, "save-", "", &n) || n >= drop->keep_from)
		return HPS_OK;
	from = hps_state_path(err, "%s/%s", dir, name);
	to = hps_state_path(err, "%s/tmp-%ld", dir, drop->pid);
	if (from && to && !rename(from, to))
		remove_folder(to);
	free(from);
	free(to);
	return HPS_OK;
}

/* The one before `newest` in this folder, or newest. */
struct before {
	uint64_t newest, n;
};

static enum hps_status find_before(void *ctx, const char *dir, const char *name,
				   struct hps_err *err)
{
	struct before *b = ctx;
	uint64_t n;

	if (hps_state_numbered(name, "save-", "", &n) && n < b->newest &&
	    (b->n == b->newest || n > b->n))
		b->n = n;
	return HPS_OK;
}

enum hps_status hps_state_commit(struct hps_state_dir *d, bool whole, struct hps_err *err)
{
	struct dropping drop = { 0, (long)getpid() };
	enum hps_status st;
	uint64_t n = 0;
	char *save;

	st = hps_state_each_entry(d->root, newest_in_root, &n, err);
	save = st == HPS_OK ? hps_state_path(err, "%s/save-%llu", d->dir, (unsigned long long)++n)
			    : NULL;
	if (!save) {
		hps_state_abandon(d);
		return st == HPS_OK ? HPS_MEMORY : st;
	}
	sync_folder(d->tmp);
	if (rename(d->tmp, save)) {
		st = hps_state_failed("cannot rename to", save, err);
		hps_state_abandon(d);
	} else {
		sync_folder(d->dir);
		free(d->tmp);
		d->tmp = NULL;
		drop.keep_from = n;
		if (!whole) {
			struct before b = { n, n };

			hps_state_each_entry(d->dir, find_before, &b, NULL);
			drop.keep_from = b.n;
		}
		hps_state_each_entry(d->dir, drop_old, &drop,
				     NULL); /* the new one is safe already */
	}
	free(save);
	return st;
}
