/* What lies in a state directory, by name. */
#include "serve/state_path_int.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *hps_state_path(struct hps_err *err, const char *fmt, ...)
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

enum hps_status hps_state_failed(const char *what, const char *path, struct hps_err *err)
{
	hps_err_errno(err, HPS_IO, "%s", what);
	hps_err_at(err, "%s", path);
	return HPS_IO;
}

bool hps_state_numbered(const char *name, const char *prefix, const char *suffix, uint64_t *n)
{
	size_t len = strlen(prefix);
	char *end;

	if (strncmp(name, prefix, len) != 0 || name[len] < '0' || name[len] > '9')
		return false;
	errno = 0;
	*n = strtoull(name + len, &end, 10);
	return !errno && !strcmp(end, suffix);
}

enum hps_status hps_state_is_save(const char *dir, const char *name, bool *is, uint64_t *n,
				  struct hps_err *err)
{
	static const char prefix[] = "save-";
	size_t len = sizeof(prefix) - 1;

	*is = !strncmp(name, prefix, len) && name[len] &&
	      strspn(name + len, "0123456789") == strlen(name + len);
	if (!*is || (hps_state_numbered(name, prefix, "", n) && *n <= HPS_STATE_SAVE_MAX))
		return HPS_OK;
	hps_err_set(err, HPS_BAD_INPUT,
		    "the number of this save is too large: none could follow it");
	hps_err_at(err, "%s/%s", dir, name);
	hps_err_hint(err, "hps-serve numbers saves from 1: rename it, or take it away");
	return HPS_BAD_INPUT;
}

enum hps_status hps_state_each_entry(const char *dir, state_entry_fn fn, void *ctx,
				     struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	struct dirent *e;
	DIR *d = opendir(dir);

	if (!d)
		return errno == ENOENT || errno == ENOTDIR
			       ? HPS_OK
			       : hps_state_failed("cannot open", dir, err);
	while (st == HPS_OK && (errno = 0, e = readdir(d)))
		if (e->d_name[0] != '.')
			st = fn(ctx, dir, e->d_name, err);
	if (st == HPS_OK && errno)
		st = hps_state_failed("cannot read", dir, err);
	closedir(d);
	return st;
}
