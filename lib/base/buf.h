/* A growing byte buffer with a ceiling. */
#ifndef HPS_BASE_BUF_H
#define HPS_BASE_BUF_H

#include <stddef.h>
#include "base/err.h"

/* data is always NUL-terminated when non-NULL; len excludes the NUL. */
struct hps_buf {
	char *data;
	size_t len, cap;
	size_t max; /* growth beyond this fails with HPS_MEMORY; 0 = SIZE_MAX / 2 */
};

/* clang-format off */
#define HPS_BUF_INIT { 0 }
/* clang-format on */

void hps_buf_release(struct hps_buf *b);
enum hps_status hps_buf_reserve(struct hps_buf *b, size_t extra, struct hps_err *err);
enum hps_status hps_buf_add(struct hps_buf *b, const void *data, size_t len, struct hps_err *err);
enum hps_status hps_buf_printf(struct hps_buf *b, struct hps_err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The content, to be free()d by the caller; b is left empty. "" when empty; NULL without memory. */
char *hps_buf_take(struct hps_buf *b);

#endif
