/* How is text made safe for a terminal, and how does a line get out whole? */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/text_int.h"
#include "base/utf8.h"

static atomic_bool bar_drawn;

void hps_text_mask(char *s)
{
	unsigned char *p = (unsigned char *)s, *end = p + strlen(s);

	while (p < end) {
		size_t n = hps_utf8_len(p, (size_t)(end - p));
		bool control = *p < 0x20 || *p == 0x7f;

		if (n == 2 && p[0] == 0xc2 && p[1] < 0xa0) { /* C1: one '?' for each byte */
			p[1] = '?';
			control = true;
		}
		if (n == 0 || control) {
			*p = '?';
			n = 1;
		}
		p += n;
	}
}

void hps_text_bar(bool drawn)
{
	atomic_store(&bar_drawn, drawn);
}

void hps_text_emit(const char *s, size_t len)
{
	static const char wipe[] = "\r\033[K";
	struct iovec v[2] = { { (void *)wipe, sizeof(wipe) - 1 }, { (void *)s, len } };
	int first = atomic_exchange(&bar_drawn, false) ? 0 : 1;
	ssize_t n;

	do
		n = writev(STDERR_FILENO, v + first, 2 - first);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return;
	/* A short write to a pipe or terminal: the rest of the line follows. */
	size_t done = (size_t)n;
	if (first == 0)
		done = done > v[0].iov_len ? done - v[0].iov_len : 0;
	while (done < len) {
		n = write(STDERR_FILENO, s + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		done += (size_t)n;
	}
}
