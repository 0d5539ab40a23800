/* Is this text UTF-8? RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF. */
#ifndef HPS_BASE_UTF8_H
#define HPS_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the well-formed sequence that begins at s, reading at most len bytes;
 * 0 if there is none (or len is 0). */
size_t hps_utf8_len(const void *s, size_t len);

/* Offset of the first byte in s[0..len) that begins no well-formed sequence; len if all is well. */
size_t hps_utf8_check(const void *s, size_t len);

#endif
