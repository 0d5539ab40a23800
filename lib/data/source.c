/* What bytes does an operand hold, whatever its compression? Formats by their magic
 * numbers: RFC 1952 (gzip), RFC 8878 (zstd). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "data/source_int.h"

enum { IN_BYTES = 128 << 10 };

enum format { UNKNOWN, PLAIN, GZIP, ZSTD };

struct hps_source {
	const char *path;
	int fd, wake_fd;
	bool owns_fd, pipe, woken;
	bool ended;    /* the file has no more bytes */
	bool at_start; /* between members or frames: the file may end here */
	enum format format;
	char *in; /* IN_BYTES: what was read and not yet delivered, from .. to */
	size_t from, to;
	uint64_t taken; /* bytes of the file read so far */
	z_stream z;
	ZSTD_DStream *zstd;
};

const char *hps_source_name(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* Bad input, at the operand. */
static enum hps_status fail(const struct hps_source *s, struct hps_err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static enum hps_status fail(const struct hps_source *s, struct hps_err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	hps_err_vset(err, HPS_BAD_INPUT, fmt, ap);
	va_end(ap);
	hps_err_at(err, "%s", hps_source_name(s->path));
	return HPS_BAD_INPUT;
}

static enum hps_status fail_errno(const char *path, struct hps_err *err, const char *what)
{
	hps_err_errno(err, HPS_IO, "%s", what);
	hps_err_at(err, "%s", hps_source_name(path));
	return HPS_IO;
}

static int open_path(const char *path, struct stat *info, struct hps_err *err)
{
	int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		fail_errno(path, err, "cannot open");
		return -1;
	}
	if (fstat(fd, info) == 0) {
		if (!S_ISDIR(info->st_mode))
			return fd;
		errno = EISDIR;
	}
	fail_errno(path, err, "cannot read");
	if (fd != STDIN_FILENO)
		close(fd);
	return -1;
}

enum hps_status hps_source_check(const char *path, int *fd, struct hps_err *err)
{
	struct stat info;

	if ((*fd = open_path(path, &info, err)) < 0)
		return HPS_IO;
	if (!S_ISREG(info.st_mode) || *fd == STDIN_FILENO)
		return HPS_OK;
	close(*fd);
	*fd = -1;
	if (info.st_size > 0)
		return HPS_OK;
	hps_err_set(err, HPS_BAD_INPUT, "the file is empty");
	hps_err_at(err, "%s", path);
	return HPS_BAD_INPUT;
}

enum hps_status hps_source_new(const char *path, int fd, int wake_fd, struct hps_source **out,
			       struct hps_err *err)
{
	struct hps_source *s = hps_calloc(1, sizeof *s, err);
	struct stat info;

	if (s == NULL)
		return HPS_MEMORY;
	s->path = path;
	s->owns_fd = fd < 0;
	s->fd = fd;
	s->wake_fd = wake_fd;
	s->at_start = true;
	if ((s->in = hps_calloc(1, IN_BYTES, err)) == NULL) {
		hps_source_free(s);
		return HPS_MEMORY;
	}
	if (fd < 0 && (s->fd = open_path(path, &info, err)) < 0) {
		hps_source_free(s);
		return HPS_IO;
	}
	s->pipe = fstat(s->fd, &info) == 0 && !S_ISREG(info.st_mode);
	*out = s;
	return HPS_OK;
}

void hps_source_free(struct hps_source *s)
{
	if (s == NULL)
		return;
	if (s->format == GZIP)
		inflateEnd(&s->z);
	ZSTD_freeDStream(s->zstd);
	if (s->owns_fd && s->fd > STDIN_FILENO)
		close(s->fd);
	free(s->in);
	free(s);
}

uint64_t hps_source_packed(const struct hps_source *s)
{
	return s->format == GZIP || s->format == ZSTD ? s->taken - (s->to - s->from) : 0;
}

bool hps_source_woken(const struct hps_source *s)
{
	return s->woken;
}

/* read(2), but for signals and wake-ups; 0 at the end and when woken. */
static enum hps_status read_some(struct hps_source *s, char *buf, size_t cap, size_t *n,
				 struct hps_err *err)
{
	struct pollfd p[2] = { { s->fd, POLLIN, 0 }, { s->wake_fd, POLLIN, 0 } };
	ssize_t got;

	*n = 0;
	while (!s->ended) {
		if (s->pipe) {
			if (poll(p, 2, -1) < 0) { /* a descriptor of -1 is never ready */
				if (errno == EINTR)
					continue;
				return fail_errno(s->path, err, "cannot wait for input");
			}
			s->woken = p[1].revents != 0;
			if (s->woken)
				return HPS_OK;
		}
		got = read(s->fd, buf, cap);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return fail_errno(s->path, err, "cannot read");
		*n = (size_t)got;
		s->taken += *n;
		s->ended = got == 0;
		break;
	}
	return HPS_OK;
}

static enum hps_status refill(struct hps_source *s, struct hps_err *err)
{
	enum hps_status st;

	if (s->from < s->to)
		return HPS_OK;
	s->from = s->to = 0;
	if ((st = read_some(s, s->in, IN_BYTES, &s->to, err)) != HPS_OK)
		s->to = 0;
	return st;
}

/* --- what is it? --- */

static bool has(const struct hps_source *s, const char *magic, size_t len)
{
	return s->to - s->from >= len && memcmp(s->in + s->from, magic, len) == 0;
}

/* Formats that are well known and not read here. */
static const struct {
	const char *magic;
	size_t len;
	const char *name;
} foreign[] = {
	{ "BZh", 3, "bzip2" },
	{ "\xfd"
	  "7zXZ",
	  5, "xz" },
	{ "PK\3\4", 4, "a zip archive" },
	{ "\x04\x22\x4d\x18", 4, "lz4" },
	{ "PAR1", 4, "Parquet" },
	{ "ORC", 3, "ORC" },
	{ "\x7f"
	  "ELF",
	  4, "a program" },
	{ "\xff\xfe", 2, "UTF-16 text" },
	{ "\xfe\xff", 2, "UTF-16 text" },
};

static bool is_zstd(const struct hps_source *s)
{
	const unsigned char *p = (const unsigned char *)s->in + s->from;

	return has(s, "\x28\xb5\x2f\xfd", 4) || /* a frame, or a skippable one */
	       (s->to - s->from >= 4 && (p[0] & 0xf0) == 0x50 && p[1] == 0x2a && p[2] == 0x4d &&
		p[3] == 0x18);
}

/* Enough of the start for every magic number, though a pipe may give it byte by byte. */
static enum hps_status read_start(struct hps_source *s, struct hps_err *err)
{
	while (s->to < 8 && !s->ended && !s->woken) {
		size_t n;
		enum hps_status st = read_some(s, s->in + s->to, IN_BYTES - s->to, &n, err);

		if (st != HPS_OK)
			return st;
		s->to += n;
	}
	return HPS_OK;
}

static enum hps_status sniff(struct hps_source *s, struct hps_err *err)
{
	enum hps_status st = read_start(s, err);

	if (st != HPS_OK || s->woken)
		return st;
	if (s->to == 0) {
		fail(s, err, "there is no data");
		hps_err_hint(err, "did the command before in the pipe fail?");
		return HPS_BAD_INPUT;
	}
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
		if (has(s, foreign[i].magic, foreign[i].len))
			return fail(s, err, "this is %s; expected text, plain or in gzip or zstd",
				    foreign[i].name);
	}
	if (has(s, "\x1f\x8b", 2)) {
		if (inflateInit2(&s->z, 16 + MAX_WBITS) != Z_OK)
			return hps_err_set(err, HPS_MEMORY, "no memory to decompress gzip");
		s->format = GZIP;
	} else if (is_zstd(s)) {
		if ((s->zstd = ZSTD_createDStream()) == NULL)
			return hps_err_set(err, HPS_MEMORY, "no memory to decompress zstd");
		s->format = ZSTD;
	} else {
		s->format = PLAIN;
	}
	return HPS_OK;
}

/* --- the formats --- */

static enum hps_status read_plain(struct hps_source *s, char *buf, size_t cap, size_t *n,
				  struct hps_err *err)
{
	size_t have = s->to - s->from;

	if (have == 0)
		return read_some(s, buf, cap, n, err);
	*n = have < cap ? have : cap;
	memcpy(buf, s->in + s->from, *n);
	s->from += *n;
	return HPS_OK;
}

/* Between two members: the next one begins here, or zeros pad the file's end. */
static enum hps_status next_member(struct hps_source *s, struct hps_err *err)
{
	while (s->from < s->to && s->in[s->from] == 0)
		s->from++;
	if (s->from == s->to)
		return HPS_OK;
	if ((unsigned char)s->in[s->from] != 0x1f)
		return fail(s, err, "junk after the end of the gzip data, at byte %" PRIu64,
			    hps_source_packed(s) + 1);
	s->at_start = false;
	inflateReset(&s->z);
	return HPS_OK;
}

static enum hps_status read_gzip(struct hps_source *s, char *buf, size_t cap, size_t *n,
				 struct hps_err *err)
{
	enum hps_status st;

	for (*n = 0; *n == 0;) {
		bool at_end;
		int rc;

		if ((st = refill(s, err)) != HPS_OK || s->woken)
			return st;
		at_end = s->from == s->to; /* though the decoder may still hold bytes */
		if (at_end && s->at_start)
			return HPS_OK;
		if (s->at_start) {
			if ((st = next_member(s, err)) != HPS_OK)
				return st;
			continue;
		}
		s->z.next_in = (Bytef *)s->in + s->from;
		s->z.avail_in = (uInt)(s->to - s->from);
		s->z.next_out = (Bytef *)buf;
		s->z.avail_out = (uInt)cap;
		rc = inflate(&s->z, Z_NO_FLUSH);
		s->from = s->to - s->z.avail_in;
		*n = cap - s->z.avail_out;
		if (rc == Z_MEM_ERROR)
			return hps_err_set(err, HPS_MEMORY, "no memory to decompress gzip");
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			return fail(s, err, "corrupt gzip data before byte %" PRIu64 ": %s",
				    hps_source_packed(s) + 1,
				    s->z.msg == NULL ? "unknown fault" : s->z.msg);
		s->at_start = rc == Z_STREAM_END;
		if (at_end && *n == 0 && !s->at_start)
			return fail(s, err, "truncated gzip data: it ends after byte %" PRIu64,
				    hps_source_packed(s));
	}
	return HPS_OK;
}

static enum hps_status read_zstd(struct hps_source *s, char *buf, size_t cap, size_t *n,
				 struct hps_err *err)
{
	enum hps_status st;

	for (*n = 0; *n == 0;) {
		ZSTD_outBuffer out = { buf, cap, 0 };
		ZSTD_inBuffer in;
		size_t rc;

		if ((st = refill(s, err)) != HPS_OK || s->woken)
			return st;
		in = (ZSTD_inBuffer){ s->in + s->from, s->to - s->from, 0 };
		if (in.size == 0 && s->at_start)
			return HPS_OK;
		rc = ZSTD_decompressStream(s->zstd, &out, &in);
		s->from += in.pos;
		*n = out.pos;
		if (ZSTD_isError(rc))
			return fail(s, err, "corrupt zstd data before byte %" PRIu64 ": %s",
				    hps_source_packed(s) + 1, ZSTD_getErrorName(rc));
		s->at_start = rc == 0;
		if (in.size == 0 && out.pos == 0 && rc != 0)
			return fail(s, err, "truncated zstd data: it ends after byte %" PRIu64,
				    hps_source_packed(s));
	}
	return HPS_OK;
}

enum hps_status hps_source_read(struct hps_source *s, char *buf, size_t cap, size_t *n,
				struct hps_err *err)
{
	*n = 0;
	if (s->format == UNKNOWN) {
		enum hps_status st = sniff(s, err);

		if (st != HPS_OK || s->woken)
			return st;
	}
	switch (s->format) {
	case GZIP:
		return read_gzip(s, buf, cap, n, err);
	case ZSTD:
		return read_zstd(s, buf, cap, n, err);
	default:
		return read_plain(s, buf, cap, n, err);
	}
}
