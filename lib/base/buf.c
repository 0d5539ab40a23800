/* A growing byte buffer with a ceiling; doubling growth. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/mem.h"

void hps_buf_release(struct hps_buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
}

enum hps_status hps_buf_reserve(struct hps_buf *b, size_t extra, struct hps_err *err)
{
	size_t max = b->max ? b->max : SIZE_MAX / 2;
	size_t need, cap;

	if (hps_add_size(b->len, extra, &need) || need > max)
		return hps_err_set(err, HPS_MEMORY, "buffer would grow past its limit of %zu bytes",
				   max);
	if (b->data && need < b->cap)
		return HPS_OK;
	cap = b->cap < 64 ? 64 : b->cap;
	while (cap <= need)
		cap = cap > SIZE_MAX / 4 ? need + 1 : cap * 2;
	if (cap > max)
		cap = max + 1; /* need <= max, so the content and its NUL fit */
	enum hps_status st = hps_realloc((void **)&b->data, cap, 1, err);
	if (st != HPS_OK)
		return st;
	b->cap = cap;
	b->data[b->len] = '\0';
	return HPS_OK;
}

enum hps_status hps_buf_add(struct hps_buf *b, const void *data, size_t len, struct hps_err *err)
{
	enum hps_status st = hps_buf_reserve(b, len, err);

	if (st != HPS_OK)
		return st;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return HPS_OK;
}

enum hps_status hps_buf_printf(struct hps_buf *b, struct hps_err *err, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return hps_err_errno(err, HPS_MEMORY, "cannot format text");
	enum hps_status st = hps_buf_reserve(b, (size_t)n, err);
	if (st != HPS_OK)
		return st;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
	return HPS_OK;
}

char *hps_buf_take(struct hps_buf *b)
{
	char *data;

	if (!b->data && hps_buf_reserve(b, 0, NULL) != HPS_OK)
		return NULL;
	data = b->data;
	b->data = NULL;
	b->len = b->cap = 0;
	return data;
}
