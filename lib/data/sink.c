/* How does a data set get out, compressed or not, and never half? */
#include "data/sink.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/out.h"

/* Fast rather than small: such data are written once and read a few times. */
enum { GZIP_LEVEL = 1, ZSTD_LEVEL = 3 };

static const char *const names[] = { "none", "gzip", "zstd" };

enum hps_status hps_compress_parse(const char *name, enum hps_compress *out, struct hps_err *err)
{
	for (int i = 0; i < 3; i++)
		if (strcmp(name, names[i]) == 0) {
			*out = (enum hps_compress)i;
			return HPS_OK;
		}
	return hps_err_set(err, HPS_USAGE, "expected none, gzip or zstd, got \"%s\"", name);
}

static enum hps_status gzip(const void *data, size_t len, struct hps_buf *out, struct hps_err *err)
{
	z_stream z = { 0 };
	enum hps_status st;
	int rc;

	if (len > UINT32_MAX / 2)
		return hps_err_set(err, HPS_MEMORY, "a block of %zu bytes is too large", len);
	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return hps_err_set(err, HPS_MEMORY, "no memory to compress");
	z.avail_out = (uInt)deflateBound(&z, (uLong)len);
	if ((st = hps_buf_reserve(out, z.avail_out, err)) == HPS_OK) {
		z.next_in = (Bytef *)(uintptr_t)data;
		z.avail_in = (uInt)len;
		z.next_out = (Bytef *)out->data + out->len;
		rc = deflate(&z, Z_FINISH);
		if (rc == Z_STREAM_END)
			out->len += z.total_out;
		else
			st = hps_err_set(err, HPS_MEMORY, "cannot compress: zlib says %d", rc);
	}
	deflateEnd(&z);
	return st;
}

static enum hps_status zstd(const void *data, size_t len, struct hps_buf *out, struct hps_err *err)
{
	size_t bound = ZSTD_compressBound(len), n;
	enum hps_status st = hps_buf_reserve(out, bound, err);

	if (st != HPS_OK)
		return st;
	n = ZSTD_compress(out->data + out->len, bound, data, len, ZSTD_LEVEL);
	if (ZSTD_isError(n))
		return hps_err_set(err, HPS_MEMORY, "cannot compress: %s", ZSTD_getErrorName(n));
	out->len += n;
	return HPS_OK;
}

enum hps_status hps_compress_block(enum hps_compress how, const void *data, size_t len,
				   struct hps_buf *out, struct hps_err *err)
{
	switch (how) {
	case HPS_COMPRESS_GZIP:
		return gzip(data, len, out, err);
	case HPS_COMPRESS_ZSTD:
		return zstd(data, len, out, err);
	default:
		return hps_buf_add(out, data, len, err);
	}
}

struct hps_sink {
	bool to_stdout, open;
	struct hps_file_new file;
};

enum hps_status hps_sink_new(const char *path, struct hps_sink **out, struct hps_err *err)
{
	struct hps_sink *s = hps_calloc(1, sizeof *s, err);
	enum hps_status st;

	if (s == NULL)
		return HPS_MEMORY;
	s->to_stdout = path == NULL || strcmp(path, "-") == 0;
	if (!s->to_stdout && (st = hps_file_create(&s->file, path, 0666, err)) != HPS_OK) {
		free(s);
		return st;
	}
	s->open = !s->to_stdout;
	*out = s;
	return HPS_OK;
}

enum hps_status hps_sink_write(struct hps_sink *s, const void *data, size_t len,
			       struct hps_err *err)
{
	if (s->to_stdout)
		return hps_out_write(data, len, err);
	return hps_file_append(&s->file, data, len, err);
}

enum hps_status hps_sink_commit(struct hps_sink *s, struct hps_err *err)
{
	bool open = s->open;

	s->open = false;
	return open ? hps_file_commit(&s->file, err) : HPS_OK;
}

void hps_sink_free(struct hps_sink *s)
{
	if (s != NULL && s->open)
		hps_file_discard(&s->file);
	free(s);
}
