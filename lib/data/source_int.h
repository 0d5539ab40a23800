/* The bytes of one operand, decompressed: plain, gzip (concatenated members too) or zstd
 * (several frames, skippable ones too), told apart by the first bytes. */
#ifndef HPS_DATA_SOURCE_INT_H
#define HPS_DATA_SOURCE_INT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/* "standard input" for "-". */
const char *hps_source_name(const char *path);

/* Can it be read, and is there something in it? *fd: an open descriptor where the operand
 * can be read only once (a pipe, a terminal), to be given to hps_source_new; else -1.
 * HPS_IO, or HPS_BAD_INPUT for an empty file; where names the operand. */
enum hps_status hps_source_check(const char *path, int *fd, struct hps_err *err);

struct hps_source;

/* fd: as hps_source_check gave it, -1: open path (closed with the source, fd is not).
 * A wait for a pipe ends when wake_fd (-1: none) becomes readable. */
enum hps_status hps_source_new(const char *path, int fd, int wake_fd, struct hps_source **out,
			       struct hps_err *err);

/* Fill buf with at least one byte and at most cap; *n = 0 at the end or when woken (see
 * hps_source_woken). HPS_BAD_INPUT for what is truncated, corrupt (the message names the byte of
 * the file) or another format. */
enum hps_status hps_source_read(struct hps_source *s, char *buf, size_t cap, size_t *n,
				struct hps_err *err);
/* Bytes of the file that have been decompressed; 0 where it is not compressed. */
uint64_t hps_source_packed(const struct hps_source *s);
bool hps_source_woken(const struct hps_source *s);
void hps_source_free(struct hps_source *s);

#endif
