/* Is this text UTF-8? Table 3-7 of the Unicode standard, as code. */
#include "base/utf8.h"

static int continues(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

size_t hps_utf8_len(const void *text, size_t len)
{
	const unsigned char *s = text;

	if (len == 0)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4 || len < 2 || !continues(s[1]))
		return 0;
	if (s[0] < 0xe0)
		return 2;
	if (len < 3 || !continues(s[2]))
		return 0;
	if (s[0] < 0xf0)
		return (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ? 0 : 3;
	if (len < 4 || !continues(s[3]))
		return 0;
	return (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f) ? 0 : 4;
}

size_t hps_utf8_check(const void *text, size_t len)
{
	const char *s = text;
	size_t i = 0;

	while (i < len) {
		size_t n = hps_utf8_len(s + i, len - i);

		if (n == 0)
			break;
		i += n;
	}
	return i;
}
