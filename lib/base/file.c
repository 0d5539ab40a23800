/* Whole files in, whole files out: written beside their place, then renamed (rename(2)
 * replaces atomically), so that no reader ever sees half a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "base/mem.h"

static const char *shown(const char *path)
{
	return path && strcmp(path, "-") ? path : "standard input";
}

static enum hps_status read_fd(int fd, size_t max, struct hps_buf *b, struct hps_err *err)
{
	size_t room = 64 << 10, start = b->len;
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 && (uint64_t)st.st_size <= max)
		room = (size_t)st.st_size + 1; /* one more, so that the end is seen at once */
	for (;;) {
		ssize_t n;
		enum hps_status rc = hps_buf_reserve(b, room, err);

		if (rc != HPS_OK)
			return rc;
		n = read(fd, b->data + b->len, room);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return hps_err_errno(err, HPS_IO, "cannot read");
		b->len += (size_t)n;
		b->data[b->len] = '\0';
		if (b->len - start > max)
			return hps_err_set(err, HPS_BAD_INPUT, "larger than the limit of %zu bytes",
					   max);
		if (n == 0)
			return HPS_OK;
		room = 64 << 10;
		if (room < b->len / 2)
			room = b->len / 2;
	}
}

enum hps_status hps_file_read(const char *path, size_t max, struct hps_buf *b, struct hps_err *err)
{
	bool is_stdin = !path || !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	enum hps_status st;

	if (fd < 0)
		st = hps_err_errno(err, HPS_IO, "cannot open");
	else
		st = read_fd(fd, max ? max : (size_t)1 << 30, b, err);
	if (st != HPS_OK)
		hps_err_at(err, "%s", shown(path));
	if (fd >= 0 && !is_stdin)
		close(fd);
	return st;
}

static void release(struct hps_file_new *f)
{
	free(f->path);
	free(f->tmp);
	f->path = f->tmp = NULL;
	f->fd = -1;
}

/* Fails with errno at path, after removing what was begun. */
static enum hps_status failed(struct hps_file_new *f, const char *what, struct hps_err *err)
{
	hps_err_errno(err, HPS_IO, "%s", what);
	hps_err_at(err, "%s", f->path);
	hps_file_discard(f);
	return HPS_IO;
}

/* Where the file will really lie: a symbolic link keeps pointing, its target is replaced. */
static char *target(const char *path, struct hps_err *err)
{
	struct stat st;
	char *real = NULL, *copy;

	if (!lstat(path, &st) && S_ISLNK(st.st_mode))
		real = realpath(path, NULL);
	copy = hps_strdup(real ? real : path, err);
	free(real);
	return copy;
}

enum hps_status hps_file_create(struct hps_file_new *f, const char *path, int mode,
				struct hps_err *err)
{
	struct stat st;
	size_t size;

	*f = (struct hps_file_new){ .fd = -1 };
	f->path = target(path, err);
	if (!f->path)
		return HPS_MEMORY;
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		/* A device or a pipe cannot be replaced, only written. */
		f->fd = open(path, O_WRONLY | O_CLOEXEC);
		return f->fd < 0 ? failed(f, "cannot open for writing", err) : HPS_OK;
	}
	size = strlen(f->path) + 32;
	f->tmp = hps_calloc(size, 1, err);
	if (!f->tmp) {
		release(f);
		return HPS_MEMORY;
	}
	snprintf(f->tmp, size, "%s.tmp.%ld", f->path, (long)getpid());
	unlink(f->tmp); /* of a dead process that had this number */
	f->fd = open(f->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	return f->fd < 0 ? failed(f, "cannot create", err) : HPS_OK;
}

enum hps_status hps_file_append(struct hps_file_new *f, const void *data, size_t len,
				struct hps_err *err)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(f->fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			hps_err_errno(err, HPS_IO, "cannot write");
			hps_err_at(err, "%s", f->path);
			return HPS_IO;
		}
		p += n;
		len -= (size_t)n;
	}
	return HPS_OK;
}

/* The new name must reach the disk too. A file system that cannot sync a folder is no error. */
static void sync_parent(const char *path)
{
	char *copy = strdup(path), *slash = copy ? strrchr(copy, '/') : NULL;
	int fd;

	if (slash)
		slash[slash == copy] = '\0';
	fd = copy ? open(slash ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(copy);
}

enum hps_status hps_file_commit(struct hps_file_new *f, struct hps_err *err)
{
	int fd = f->fd;

	/* Devices and pipes do not sync: EINVAL, EROFS. */
	if (f->tmp && fsync(fd))
		return failed(f, "cannot write", err);
	f->fd = -1;
	if (close(fd))
		return failed(f, "cannot write", err);
	if (f->tmp) {
		if (rename(f->tmp, f->path))
			return failed(f, "cannot rename into place", err);
		sync_parent(f->path);
	}
	release(f);
	return HPS_OK;
}

void hps_file_discard(struct hps_file_new *f)
{
	int saved = errno;

	if (f->fd >= 0)
		close(f->fd);
	if (f->tmp)
		unlink(f->tmp);
	release(f);
	errno = saved;
}

enum hps_status hps_file_write(const char *path, const void *data, size_t len, int mode,
			       struct hps_err *err)
{
	struct hps_file_new f;
	enum hps_status st = hps_file_create(&f, path, mode, err);

	if (st != HPS_OK)
		return st;
	st = hps_file_append(&f, data, len, err);
	if (st != HPS_OK) {
		hps_file_discard(&f);
		return st;
	}
	return hps_file_commit(&f, err);
}

/* The directory that path is in. */
static int stat_parent(const char *path, struct stat *st)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : NULL;
	int rc = slash && !dir ? -1 : stat(slash ? dir : ".", st);

	free(dir);
	return rc;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool hps_file_same(const char *a, const char *b)
{
	struct stat x, y;

	if (!stat(a, &x) && !stat(b, &y))
		return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
	return !strcmp(last_part(a), last_part(b)) && !stat_parent(a, &x) && !stat_parent(b, &y) &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

enum hps_status hps_mkdirs(const char *path, int mode, struct hps_err *err)
{
	char *copy = hps_strdup(path, err), *p = copy;
	enum hps_status st = HPS_OK;
	struct stat s;

	if (!copy)
		return HPS_MEMORY;
	do {
		p += strspn(p, "/");
		p += strcspn(p, "/");
		char end = *p;
		*p = '\0';
		if (*copy && mkdir(copy, (mode_t)mode)) {
			int why = errno;
			bool there = !stat(copy, &s);

			if (!there || !S_ISDIR(s.st_mode)) {
				errno = there ? ENOTDIR : why;
				st = hps_err_errno(err, HPS_IO, "cannot make the directory");
				hps_err_at(err, "%s", copy);
			}
		}
		*p = end;
	} while (st == HPS_OK && *p);
	free(copy);
	return st;
}
