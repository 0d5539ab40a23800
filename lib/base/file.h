/* Whole files in, whole files out (by rename, never half). */
#ifndef HPS_BASE_FILE_H
#define HPS_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"

/* Read all of path ("-" or NULL: standard input) into b, at most max bytes (0: 1 GiB).
 * HPS_IO when it cannot be opened or read, HPS_BAD_INPUT when larger; where names the path
 * ("standard input" for -). */
enum hps_status hps_file_read(const char *path, size_t max, struct hps_buf *b, struct hps_err *err);

/* A file in the making: written to PATH.tmp.PID beside it, fsync()ed and renamed
 * by commit; discard removes it. Parent directories must exist. One writer a path in a
 * process. A symbolic link is followed; a device or pipe is written in place. A failed
 * create or commit leaves nothing to discard, a failed append does. */
struct hps_file_new {
	char *path, *tmp;
	int fd;
};
enum hps_status hps_file_create(struct hps_file_new *f, const char *path, int mode,
				struct hps_err *err);
enum hps_status hps_file_append(struct hps_file_new *f, const void *data, size_t len,
				struct hps_err *err);
enum hps_status hps_file_commit(struct hps_file_new *f, struct hps_err *err);
void hps_file_discard(struct hps_file_new *f);

/* create, append, commit in one. */
enum hps_status hps_file_write(const char *path, const void *data, size_t len, int mode,
			       struct hps_err *err);

/* Would two files written to a and b be one? The same name in the same directory, or one regular
 * file under two names. */
bool hps_file_same(const char *a, const char *b);

/* mkdir -p. */
enum hps_status hps_mkdirs(const char *path, int mode, struct hps_err *err);

#endif
