/* How is text made safe for a terminal, and how does a line get out whole? */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/text_int.h"
#include "base/utf8.h"

static atomic_bool bar_drawn;
static atomic_int kept_fd = -1;

void hps_text_mask_but(char *s, size_t len, const char *keep)
{
	unsigned char *p = (unsigned char *)s, *end = p + len;

	while (p < end) {
		size_t n = hps_utf8_len(p, (size_t)(end - p));
		bool control = (*p < 0x20 && !(*p && strchr(keep, *p))) || *p == 0x7f;

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

void hps_text_mask(char *s)
{
	hps_text_mask_but(s, strlen(s), "");
}

void hps_text_keep(int fd)
{
	atomic_store(&kept_fd, fd);
}

static void write_all(int fd, const char *s, size_t len)
{
	while (len) {
		ssize_t n = write(fd, s, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		s += n;
		len -= (size_t)n;
	}
}

/* To standard error, in place of a bar. */
static void show(const char *s, size_t len)
{
	static const char wipe[] = "\r\033[K";
	struct iovec v[2] = { { (void *)wipe, sizeof(wipe) - 1 }, { (void *)s, len } };
	int first = atomic_exchange(&bar_drawn, false) ? 0 : 1;
	size_t skip = first ? 0 : v[0].iov_len, done;
	ssize_t n;

	do
		n = writev(STDERR_FILENO, v + first, 2 - first);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return;
	/* A short write to a pipe or terminal: the rest of the line follows. */
	done = (size_t)n > skip ? (size_t)n - skip : 0;
	write_all(STDERR_FILENO, s + done, len - done);
}

void hps_text_emit(const char *s, size_t len)
{
	int fd = atomic_load(&kept_fd);

	show(s, len);
	if (fd >= 0)
		write_all(fd, s, len);
}

void hps_text_bar(const char *s, size_t len)
{
	if (!len) {
		show("", 0);
		return;
	}
	atomic_store(&bar_drawn, false);
	show(s, len);
	atomic_store(&bar_drawn, true);
}
