/* Which folders make a save, which is the newest whole one, and how a new one becomes that. */
#include "serve/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/state_file_int.h"

static char *path_of(struct hps_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static char *path_of(struct hps_err *err, const char *fmt, ...)
{
	char *p = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&p, fmt, ap) < 0) {
		hps_err_set(err, HPS_MEMORY, "out of memory");
		p = NULL;
	}
	va_end(ap);
	return p;
}

static enum hps_status failed(const char *what, const char *path, struct hps_err *err)
{
	hps_err_errno(err, HPS_IO, "%s", what);
	hps_err_at(err, "%s", path);
	return HPS_IO;
}

/* N of "PREFIX-N"; false for any other name. */
static bool numbered(const char *name, const char *prefix, const char *suffix, uint64_t *n)
{
	size_t len = strlen(prefix);
	char *end;

	if (strncmp(name, prefix, len) != 0 || name[len] < '0' || name[len] > '9')
		return false;
	errno = 0;
	*n = strtoull(name + len, &end, 10);
	return !errno && !strcmp(end, suffix);
}

static void sync_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	fsync(fd); /* a file system that cannot sync a folder is no error */
	close(fd);
}

/* Call fn for every entry but dot files; stops at the first failure. A folder that is not
 * there has none. */
typedef enum hps_status (*entry_fn)(void *ctx, const char *dir, const char *name,
				    struct hps_err *err);

static enum hps_status each_entry(const char *dir, entry_fn fn, void *ctx, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	struct dirent *e;
	DIR *d = opendir(dir);

	if (!d)
		return errno == ENOENT || errno == ENOTDIR ? HPS_OK
							   : failed("cannot open", dir, err);
	while (st == HPS_OK && (errno = 0, e = readdir(d)))
		if (e->d_name[0] != '.')
			st = fn(ctx, dir, e->d_name, err);
	if (st == HPS_OK && errno)
		st = failed("cannot read", dir, err);
	closedir(d);
	return st;
}

/* --- one process' folder --- */

enum hps_status hps_state_open(struct hps_state_dir *d, const char *root, const char *host,
			       struct hps_err *err)
{
	char *lock = NULL;
	enum hps_status st = HPS_MEMORY;

	*d = (struct hps_state_dir){ .lock_fd = -1 };
	d->root = hps_strdup(root, err);
	d->dir = path_of(err, "%s/%s", root, host);
	if (!d->root || !d->dir)
		goto out;
	st = hps_mkdirs(d->dir, 0777, err);
	if (st != HPS_OK)
		goto out;
	st = HPS_MEMORY;
	lock = path_of(err, "%s/lock", d->dir);
	if (!lock)
		goto out;
	d->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (d->lock_fd < 0) {
		st = failed("cannot open", lock, err);
	} else if (flock(d->lock_fd, LOCK_EX | LOCK_NB)) {
		st = errno == EWOULDBLOCK
			     ? hps_err_set(err, HPS_IO,
					   "another hps-serve has this state directory")
			     : hps_err_errno(err, HPS_IO, "cannot lock");
		hps_err_at(err, "%s", d->dir);
	} else {
		st = HPS_OK;
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
	char *path = path_of(err, "%s/%s", dir, name);

	if (!path)
		return HPS_MEMORY;
	unlink(path);
	free(path);
	return HPS_OK;
}

/* A folder of files only, which all of ours are. What cannot be removed stays, and does no harm. */
static void remove_folder(const char *path)
{
	each_entry(path, remove_file, NULL, NULL);
	rmdir(path);
}

static enum hps_status sweep_one(void *ctx, const char *dir, const char *name, struct hps_err *err)
{
	uint64_t n;
	char *path;

	if (!numbered(name, "tmp-", "", &n))
		return HPS_OK;
	path = path_of(err, "%s/%s", dir, name);
	if (!path)
		return HPS_MEMORY;
	remove_folder(path);
	free(path);
	return HPS_OK;
}

enum hps_status hps_state_begin(struct hps_state_dir *d, struct hps_err *err)
{
	enum hps_status st = each_entry(d->dir, sweep_one, NULL, err); /* what a crash left */

	if (st != HPS_OK)
		return st;
	d->tmp = path_of(err, "%s/tmp-%ld", d->dir, (long)getpid());
	if (!d->tmp)
		return HPS_MEMORY;
	if (mkdir(d->tmp, 0777)) {
		st = failed("cannot make the directory", d->tmp, err);
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

	if (numbered(name, "save-", "", &n) && n > *newest)
		*newest = n;
	return HPS_OK;
}

static enum hps_status newest_in_root(void *ctx, const char *dir, const char *name,
				      struct hps_err *err)
{
	char *host = path_of(err, "%s/%s", dir, name);
	enum hps_status st = host ? each_entry(host, newest_in_host, ctx, err) : HPS_MEMORY;

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

	if (!numbered(name, "save-", "", &n) || n >= drop->keep_from)
		return HPS_OK;
	from = path_of(err, "%s/%s", dir, name);
	to = path_of(err, "%s/tmp-%ld", dir, drop->pid);
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

	if (numbered(name, "save-", "", &n) && n < b->newest && (b->n == b->newest || n > b->n))
		b->n = n;
	return HPS_OK;
}

enum hps_status hps_state_commit(struct hps_state_dir *d, bool whole, struct hps_err *err)
{
	struct dropping drop = { 0, (long)getpid() };
	enum hps_status st;
	uint64_t n = 0;
	char *save;

	st = each_entry(d->root, newest_in_root, &n, err);
	save = st == HPS_OK ? path_of(err, "%s/save-%llu", d->dir, (unsigned long long)++n) : NULL;
	if (!save) {
		hps_state_abandon(d);
		return st == HPS_OK ? HPS_MEMORY : st;
	}
	sync_folder(d->tmp);
	if (rename(d->tmp, save)) {
		st = failed("cannot rename to", save, err);
		hps_state_abandon(d);
	} else {
		sync_folder(d->dir);
		free(d->tmp);
		d->tmp = NULL;
		drop.keep_from = n;
		if (!whole) {
			struct before b = { n, n };

			each_entry(d->dir, find_before, &b, NULL);
			drop.keep_from = b.n;
		}
		each_entry(d->dir, drop_old, &drop, NULL); /* the new one is safe already */
	}
	free(save);
	return st;
}

/* --- finding a whole save --- */

struct found_file {
	char *path;
	struct state_head head;
	uint64_t n; /* of its folder */
};

struct finding {
	struct found_file *file;
	size_t n_files;
	uint64_t n; /* of the folder at hand */
};

static enum hps_status found(void *ctx, const char *dir, const char *name, struct hps_err *err)
{
	struct finding *f = ctx;
	struct state_reader r;
	enum hps_status st;
	void *p = f->file;
	uint64_t shard;
	char *path;

	if (!numbered(name, "shard-", ".hps", &shard))
		return HPS_OK;
	path = path_of(err, "%s/%s", dir, name);
	if (!path)
		return HPS_MEMORY;
	st = state_reader_open(&r, path, err);
	if (st == HPS_OK) {
		state_reader_close(&r);
		if (r.head.shard != shard)
			st = state_reader_bad(&r, err, "holds shard %u", r.head.shard);
	}
	if (st == HPS_OK)
		st = hps_realloc(&p, f->n_files + 1, sizeof(*f->file), err);
	if (st != HPS_OK) {
		free(path);
		return st;
	}
	f->file = p;
	f->file[f->n_files++] = (struct found_file){ path, r.head, f->n };
	return HPS_OK;
}

static enum hps_status find_in_host(void *ctx, const char *dir, const char *name,
				    struct hps_err *err)
{
	struct finding *f = ctx;
	enum hps_status st;
	char *save;

	if (!numbered(name, "save-", "", &f->n))
		return HPS_OK;
	save = path_of(err, "%s/%s", dir, name);
	st = save ? each_entry(save, found, f, err) : HPS_MEMORY;
	free(save);
	return st;
}

static enum hps_status find_in_root(void *ctx, const char *dir, const char *name,
				    struct hps_err *err)
{
	char *host = path_of(err, "%s/%s", dir, name);
	enum hps_status st = host ? each_entry(host, find_in_host, ctx, err) : HPS_MEMORY;

	free(host);
	return st;
}

static int newest_first(const void *x, const void *y)
{
	const struct found_file *a = x, *b = y;

	if (a->n != b->n)
		return a->n < b->n ? 1 : -1;
	return strcmp(a->path, b->path);
}

/* Take the files of the save that file i is of, if every shard is there. */
static enum hps_status take_save(const struct finding *f, size_t i, struct hps_state *s,
				 uint32_t *have, struct hps_err *err)
{
	const struct state_head *h = &f->file[i].head;
	uint32_t n = h->n_shards;

	*have = 0;
	if (n > f->n_files) {
		for (size_t j = 0; j < f->n_files; j++)
			*have += f->file[j].head.save == h->save;
		return HPS_OK;
	}
	s->path = hps_calloc(n, sizeof(*s->path), err);
	if (!s->path)
		return HPS_MEMORY;
	s->n_files = n;
	for (size_t j = 0; j < f->n_files; j++) {
		const struct state_head *o = &f->file[j].head;

		if (o->save != h->save || o->n_shards != n || o->digest != h->digest ||
		    o->shard >= n || s->path[o->shard])
			continue;
		s->path[o->shard] = hps_strdup(f->file[j].path, err);
		if (!s->path[o->shard])
			return HPS_MEMORY;
		++*have;
		/* asp: shards need not have seen the same */
		s->step = o->step > s->step ? o->step : s->step;
		s->epochs = o->epochs > s->epochs ? o->epochs : s->epochs;
	}
	s->digest = h->digest;
	s->save = h->save;
	s->seed = h->seed;
	s->n_floats = h->n_floats;
	return HPS_OK;
}

enum hps_status hps_state_find(const char *root, struct hps_state *s, bool *there,
			       struct hps_err *err)
{
	struct finding f = { 0 };
	enum hps_status st = each_entry(root, find_in_root, &f, err);
	uint32_t have = 0, newest = 0;

	*s = (struct hps_state){ 0 };
	*there = false;
	if (st == HPS_OK && f.n_files)
		qsort(f.file, f.n_files, sizeof(*f.file), newest_first);
	for (size_t i = 0; i < f.n_files && st == HPS_OK && !*there; i++) {
		st = take_save(&f, i, s, &have, err);
		newest = i ? newest : have;
		*there = st == HPS_OK && have == f.file[i].head.n_shards;
		if (!*there)
			hps_state_release(s);
	}
	if (st == HPS_OK && f.n_files && !*there) {
		st = hps_err_set(err, HPS_BAD_INPUT,
				 "no save is complete: of the newest %u of %u shards are here",
				 newest, f.file[0].head.n_shards);
		hps_err_at(err, "%s", root);
		hps_err_hint(err, "each hps-serve saves its own shards under its host's name: copy "
				  "the others' folders here");
	}
	for (size_t i = 0; i < f.n_files; i++)
		free(f.file[i].path);
	free(f.file);
	return st;
}

void hps_state_release(struct hps_state *s)
{
	for (uint32_t i = 0; s->path && i < s->n_files; i++)
		free(s->path[i]);
	free(s->path);
	*s = (struct hps_state){ 0 };
}
