/* How does a node come to listen at an endpoint that nobody else has, and say why if not?
 * An ipc path belongs to the holder of the flock(2) on PATH.lock, which dies with it.
 */
#include "net_int.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"

enum { BACKLOG = 1024 };

static enum hps_status in_use(const char *path, int lock_fd, struct hps_err *err)
{
	char who[32] = "";
	ssize_t got = lock_fd < 0 ? 0 : pread(lock_fd, who, sizeof(who) - 1, 0);
	long pid = got > 0 ? strtol(who, NULL, 10) : 0;

	if (pid > 0)
		hps_err_set(err, HPS_NET, "path is in use by process %ld", pid);
	else
		hps_err_set(err, HPS_NET, "path is in use by another process");
	hps_err_hint(err, "is this job running already? (%s)", path);
	return HPS_NET;
}

static enum hps_status make_dir(const char *path, struct hps_err *err)
{
	char dir[sizeof(((struct hps_listener *)0)->path)];

	snprintf(dir, sizeof(dir), "%s", path);
	if (hps_mkdirs(dirname(dir), 0700, err) == HPS_OK)
		return HPS_OK;
	if (err)
		err->status = HPS_NET;
	hps_err_hint(err, "the directory of an ipc endpoint must be writable here");
	return HPS_NET;
}

/* A job's own directory goes with the last socket in it; others are people's. */
static void drop_dir(const char *lock)
{
	char dir[sizeof(((struct hps_listener *)0)->lock)], name[sizeof(dir)];

	snprintf(dir, sizeof(dir), "%s", lock);
	dirname(dir);
	snprintf(name, sizeof(name), "%s", dir);
	if (!strncmp(basename(name), "hps-", 4))
		rmdir(dir); /* fails, as it should, while others are in it */
}

/* The lock file of a path, locked, in a directory that is made. The loop ends a race with a
 * holder that removes either between our open and our flock. */
static enum hps_status take_lock(struct hps_listener *l, const char *path, struct hps_err *err)
{
	char name[sizeof(l->lock)], pid[32];
	struct stat here, there;
	int fd, len;

	snprintf(name, sizeof(name), "%s.lock", path);
	for (;;) {
		if (make_dir(path, err) != HPS_OK)
			return HPS_NET;
		fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return hps_err_errno(err, HPS_NET, "cannot make the lock file %s", name);
		if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
			int cause = errno;

			if (cause == EWOULDBLOCK)
				in_use(path, fd, err);
			else
				hps_err_errno(err, HPS_NET, "cannot lock %s", name);
			close(fd);
			return HPS_NET;
		}
		if (fstat(fd, &here) == 0 && stat(name, &there) == 0 &&
		    here.st_ino == there.st_ino && here.st_dev == there.st_dev)
			break;
		close(fd);
	}
	len = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	/* the pid is for the message of a second comer only */
	if (ftruncate(fd, 0) != 0 || write(fd, pid, (size_t)len) != len)
		errno = 0;
	memcpy(l->lock, name, sizeof(l->lock));
	l->lock_fd = fd;
	return HPS_OK;
}

/* Remove what a killed process left at the path, and nothing else. */
static enum hps_status clear_path(const char *path, const struct sockaddr_un *sa,
				  struct hps_err *err)
{
	struct stat st;
	int fd, rc;

	if (lstat(path, &st) != 0) {
		if (errno == ENOENT)
			return HPS_OK;
		return hps_err_errno(err, HPS_NET, "cannot look at the path");
	}
	if (!S_ISSOCK(st.st_mode)) {
		hps_err_set(err, HPS_NET, "path exists and is not a socket");
		hps_err_hint(err, "remove it, or name another path");
		return HPS_NET;
	}
	/* a program that knows no lock file may be listening there */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return hps_err_errno(err, HPS_NET, "cannot make a socket");
	rc = connect(fd, (const struct sockaddr *)sa, sizeof(*sa));
	if (rc == 0 || errno == EAGAIN) {
		close(fd);
		return in_use(path, -1, err);
	}
	close(fd);
	if (unlink(path) != 0 && errno != ENOENT)
		return hps_err_errno(err, HPS_NET, "cannot remove the socket of a process gone");
	return HPS_OK;
}

static enum hps_status open_ipc(const struct hps_endpoint *e, struct hps_listener *l,
				struct hps_err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	if (take_lock(l, e->path, err) != HPS_OK)
		return HPS_NET;
	memcpy(sa.sun_path, e->path, sizeof(sa.sun_path));
	if (clear_path(e->path, &sa, err) != HPS_OK)
		return HPS_NET;
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return hps_err_errno(err, HPS_NET, "cannot make a socket");
	if (bind(l->fd, (const struct sockaddr *)&sa, sizeof(sa)) != 0)
		return hps_err_errno(err, HPS_NET, "cannot bind");
	memcpy(l->path, e->path, sizeof(l->path)); /* from here on it is ours to remove */
	if (chmod(e->path, 0600) != 0 || listen(l->fd, BACKLOG) != 0)
		return hps_err_errno(err, HPS_NET, "cannot listen");
	return HPS_OK;
}

static enum hps_status bind_failed(const struct hps_endpoint *e, struct hps_err *err)
{
	switch (errno) {
	case EADDRINUSE:
		hps_err_set(err, HPS_NET, "port %u is in use", e->port);
		hps_err_hint(
			err,
			"is this job running already? `ss -ltnp sport = :%u` tells whose it is",
			e->port);
		break;
	case EADDRNOTAVAIL:
		hps_err_set(err, HPS_NET, "%s is not an address of this host", e->host);
		hps_err_hint(err, "run the command on the host that the deployment names, "
				  "or correct the host's \"address\" in the cluster file");
		break;
	case EACCES:
		hps_err_set(err, HPS_NET, "port %u may not be used by this user", e->port);
		hps_err_hint(err, "ports below 1024 are the system's; take a higher one");
		break;
	default:
		hps_err_errno(err, HPS_NET, "cannot bind");
	}
	return HPS_NET;
}

static enum hps_status open_tcp(const struct hps_endpoint *e, struct hps_listener *l,
				char actual[HPS_ENDPOINT_MAX], struct hps_err *err)
{
	struct sockaddr_storage sa;
	socklen_t len;
	int yes = 1;

	if (hps_endpoint_resolve(e, &sa, &len, err) != HPS_OK)
		return HPS_NET;
	l->fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return hps_err_errno(err, HPS_NET, "cannot make a socket");
	/* a port in TIME_WAIT of the run before is free to take; two listeners are not */
	if (setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0)
		return hps_err_errno(err, HPS_NET, "cannot set up a socket");
	if (bind(l->fd, (const struct sockaddr *)&sa, len) != 0)
		return bind_failed(e, err);
	if (listen(l->fd, BACKLOG) != 0)
		return errno == EADDRINUSE ? bind_failed(e, err)
					   : hps_err_errno(err, HPS_NET, "cannot listen");
	len = sizeof(sa);
	if (getsockname(l->fd, (struct sockaddr *)&sa, &len) != 0)
		return hps_err_errno(err, HPS_NET, "cannot tell the port");
	hps_endpoint_print(&sa, actual);
	return HPS_OK;
}

enum hps_status hps_listener_open(const struct hps_endpoint *e, struct hps_listener *l,
				  char actual[HPS_ENDPOINT_MAX], struct hps_err *err)
{
	enum hps_status st;

	*l = (struct hps_listener){ .fd = -1, .lock_fd = -1 };
	if (e->ipc) {
		st = open_ipc(e, l, err);
		snprintf(actual, HPS_ENDPOINT_MAX, "ipc://%s", e->path);
	} else {
		st = open_tcp(e, l, actual, err);
	}
	if (st != HPS_OK) {
		if (l->fd >= 0)
			close(l->fd);
		l->fd = -1;
		hps_listener_close(l);
	}
	return st;
}

void hps_listener_close(struct hps_listener *l)
{
	if (l->path[0])
		unlink(l->path);
	if (l->lock_fd >= 0) {
		unlink(l->lock);
		close(l->lock_fd);
		drop_dir(l->lock);
	}
	*l = (struct hps_listener){ .fd = -1, .lock_fd = -1 };
}
