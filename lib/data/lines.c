/* Where do lines begin and end? Cuts what the sources deliver into chunks of whole lines;
 * the rest of a chunk's last line moves to the start of the next. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/hot.h"
#include "base/mem.h"
#include "data/criteo.h"
#include "data/lines_int.h"
#include "data/source_int.h"

/* Fits a second-level cache together with what is parsed out of it. */
enum { READ_BYTES = 256 << 10 };

struct hps_lines {
	const char **path;
	int *fd; /* of operands that can be read only once, else -1 */
	size_t n;
	size_t line_max;
	const char *once; /* the name of such an operand, or NULL */
	bool started;
	int wake_fd;
	atomic_bool woken;

	struct hps_source *source; /* of operand `file`; NULL: to be opened */
	size_t file;
	uint64_t line; /* lines of the file so far */
	char *carry;   /* line_max + 2: the start of a line not yet ended */
	size_t carry_len;
	bool discard; /* the carried line is too long: drop bytes up to its end */

	pthread_mutex_t lock; /* idle, and the chunks' refs */
	struct hps_chunk *idle;
};

static enum hps_status add_operand(struct hps_lines *l, const char *path, struct hps_err *err)
{
	int *fd = &l->fd[l->n];
	enum hps_status st = hps_source_check(path, fd, err);

	if (st != HPS_OK)
		return st;
	for (size_t i = 0; i < l->n && *fd == STDIN_FILENO; i++)
		if (l->fd[i] == STDIN_FILENO)
			return hps_err_set(err, HPS_USAGE, "standard input is named twice");
	if (*fd >= 0)
		l->once = hps_source_name(path);
	l->path[l->n++] = path;
	return HPS_OK;
}

enum hps_status hps_lines_new(const char *const *path, size_t n, size_t line_max,
			      struct hps_lines **out, struct hps_err *err)
{
	static const char *const standard_input = "-";
	struct hps_lines *l = hps_calloc(1, sizeof *l, err);
	enum hps_status st = HPS_MEMORY;

	if (l == NULL)
		return HPS_MEMORY;
	if (n == 0) {
		path = &standard_input;
		n = 1;
	}
	pthread_mutex_init(&l->lock, NULL);
	l->line_max = line_max;
	l->wake_fd = -1;
	l->path = hps_calloc(n, sizeof *l->path, err);
	l->fd = hps_calloc(n, sizeof *l->fd, err);
	l->carry = hps_calloc(line_max + 2, 1, err);
	if (l->path == NULL || l->fd == NULL || l->carry == NULL)
		goto fail;
	if ((l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
		st = hps_err_errno(err, HPS_IO, "cannot create an eventfd");
		goto fail;
	}
	for (size_t i = 0; i < n; i++)
		if ((st = add_operand(l, path[i], err)) != HPS_OK)
			goto fail;
	*out = l;
	return HPS_OK;
fail:
	hps_lines_free(l);
	return st;
}

void hps_lines_free(struct hps_lines *l)
{
	if (l == NULL)
		return;
	hps_source_free(l->source);
	for (struct hps_chunk *c = l->idle, *next; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	for (size_t i = 0; i < l->n; i++)
		if (l->fd[i] > STDIN_FILENO)
			close(l->fd[i]);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	pthread_mutex_destroy(&l->lock);
	free(l->path);
	free(l->fd);
	free(l->carry);
	free(l);
}

enum hps_status hps_lines_rewind(struct hps_lines *l, struct hps_err *err)
{
	uint64_t woken;

	if (l->started && l->once != NULL) {
		hps_err_set(err, HPS_USAGE, "it can be read only once: several epochs need files");
		hps_err_at(err, "%s", l->once);
		return HPS_USAGE;
	}
	hps_source_free(l->source);
	l->source = NULL;
	l->file = 0;
	atomic_store(&l->woken, false);
	while (read(l->wake_fd, &woken, sizeof woken) < 0 && errno == EINTR)
		;
	return HPS_OK;
}

void hps_lines_wake(struct hps_lines *l)
{
	uint64_t one = 1;

	atomic_store(&l->woken, true);
	while (write(l->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

const char *hps_lines_name(const struct hps_lines *l, uint32_t file)
{
	return hps_source_name(l->path[file]);
}

void hps_lines_blame(const struct hps_lines *l, uint32_t file, uint64_t line, uint64_t skipped,
		     struct hps_err *err)
{
	hps_err_at(err, "%s:%" PRIu64, hps_lines_name(l, file), line);
	if (skipped > 0)
		hps_err_hint(err,
			     "malformed lines before it that were skipped: %" PRIu64
			     ", as many as allowed",
			     skipped);
}

/* --- chunks --- */

static struct hps_chunk *chunk_get(struct hps_lines *l, struct hps_err *err)
{
	struct hps_chunk *c;

	pthread_mutex_lock(&l->lock);
	if ((c = l->idle) != NULL)
		l->idle = c->next;
	pthread_mutex_unlock(&l->lock);
	if (c == NULL)
		c = hps_calloc(1, sizeof *c + l->line_max + 2 + READ_BYTES + 1 + HPS_TEXT_PAD, err);
	if (c != NULL) {
		c->refs = 1;
		c->mark = 0;
		c->len = 0;
	}
	return c;
}

void hps_chunk_hold(struct hps_lines *l, struct hps_chunk *c)
{
	pthread_mutex_lock(&l->lock);
	c->refs++;
	pthread_mutex_unlock(&l->lock);
}

void hps_chunk_put(struct hps_lines *l, struct hps_chunk *c)
{
	pthread_mutex_lock(&l->lock);
	if (--c->refs == 0) {
		c->next = l->idle;
		l->idle = c;
	}
	pthread_mutex_unlock(&l->lock);
}

/* --- cutting --- */

/* Bytes of a too long line at the start of text[0..n): dropped up to its newline. */
static size_t drop_rest(struct hps_lines *l, char *text, size_t n)
{
	char *newline = memchr(text, '\n', n);

	if (newline == NULL)
		return 0;
	n -= (size_t)(newline - text);
	memmove(text, newline, n);
	l->discard = false;
	return n;
}

/* The carried bytes, then READ_BYTES of the source or what is left of it. */
static enum hps_status fill(struct hps_lines *l, struct hps_chunk *c, bool *ended,
			    struct hps_err *err)
{
	size_t full = l->carry_len + READ_BYTES, n;
	enum hps_status st;

	memcpy(c->data, l->carry, l->carry_len);
	c->len = l->carry_len;
	l->carry_len = 0;
	while (c->len < full && !atomic_load(&l->woken)) {
		if ((st = hps_source_read(l->source, c->data + c->len, full - c->len, &n, err)) !=
		    HPS_OK)
			return st;
		if (n == 0) {
			*ended = !hps_source_woken(l->source);
			break;
		}
		c->len += l->discard ? drop_rest(l, c->data + c->len, n) : n;
	}
	return HPS_OK;
}

/* Move what follows the last newline to the carry, cut if it is too long already. */
static void carry_tail(struct hps_lines *l, struct hps_chunk *c)
{
	char *newline = memrchr(c->data, '\n', c->len);
	size_t whole = newline == NULL ? 0 : (size_t)(newline + 1 - c->data);

	l->carry_len = c->len - whole;
	if (l->carry_len > l->line_max + 1) { /* one more: it may be the \r of an \r\n */
		l->carry_len = l->line_max + 2;
		l->discard = true;
	}
	memcpy(l->carry, c->data + whole, l->carry_len);
	c->len = whole;
}

/* Eight-bit sums of at most 255 terms, so that a vector holds as many as bytes. */
static HPS_HOT size_t count_newlines(const char *text, size_t n)
{
	size_t total = 0;

	while (n > 0) {
		size_t block = n < 192 ? n : 192;
		unsigned char sum = 0;

		for (size_t i = 0; i < block; i++)
			sum = (unsigned char)(sum + (text[i] == '\n'));
		total += sum;
		text += block;
		n -= block;
	}
	return total;
}

/* Damage in a compressed operand: the line that it was met in. */
static void blame_packed(const struct hps_lines *l, uint64_t whole, struct hps_err *err)
{
	if (err == NULL)
		return;
	err->where[0] = '\0';
	hps_err_at(err, "%s:%" PRIu64, hps_lines_name(l, (uint32_t)l->file), whole + 1);
	hps_err_hint(err, "whole lines before it: %" PRIu64, whole);
}

static enum hps_status next_of_file(struct hps_lines *l, struct hps_chunk *c, struct hps_err *err)
{
	bool ended = false;
	enum hps_status st = fill(l, c, &ended, err);

	if (st == HPS_BAD_INPUT && l->source != NULL && hps_source_packed(l->source) > 0)
		blame_packed(l, l->line + count_newlines(c->data, c->len), err);
	if (st != HPS_OK || atomic_load(&l->woken))
		return st;
	if (!ended)
		carry_tail(l, c);
	else if (c->len > 0 && c->data[c->len - 1] != '\n')
		c->data[c->len++] = '\n';
	memset(c->data + c->len, 0, HPS_TEXT_PAD);
	c->file = (uint32_t)l->file;
	c->first_line = l->line + 1;
	c->lines = count_newlines(c->data, c->len);
	l->line += c->lines;
	if (!ended)
		return HPS_OK;
	hps_source_free(l->source);
	l->source = NULL;
	if (l->line == 0) {
		hps_err_set(err, HPS_BAD_INPUT, "there is no data");
		hps_err_at(err, "%s", hps_lines_name(l, c->file));
		return HPS_BAD_INPUT;
	}
	l->file++;
	return HPS_OK;
}

static enum hps_status open_file(struct hps_lines *l, struct hps_err *err)
{
	l->line = 0;
	l->carry_len = 0;
	l->discard = false;
	return hps_source_new(l->path[l->file], l->fd[l->file], l->wake_fd, &l->source, err);
}

enum hps_status hps_lines_next(struct hps_lines *l, struct hps_chunk **out, struct hps_err *err)
{
	struct hps_chunk *c = chunk_get(l, err);
	enum hps_status st = c == NULL ? HPS_MEMORY : HPS_OK;

	*out = NULL;
	l->started = true;
	while (st == HPS_OK && l->file < l->n && !atomic_load(&l->woken)) {
		if (l->source == NULL && (st = open_file(l, err)) != HPS_OK)
			break;
		st = next_of_file(l, c, err);
		if (st == HPS_OK && !atomic_load(&l->woken) && c->lines > 0) {
			*out = c;
			return HPS_OK;
		}
	}
	if (c != NULL)
		hps_chunk_put(l, c);
	return st;
}

/* --- lines of a chunk --- */

size_t hps_line_at(const char *text, const char *end, const char **next)
{
	const char *newline = memchr(text, '\n', (size_t)(end - text));
	size_t len;

	if (newline == NULL)
		newline = end;
	*next = newline < end ? newline + 1 : end;
	len = (size_t)(newline - text);
	return len > 0 && text[len - 1] == '\r' ? len - 1 : len;
}

const char *hps_line_skip(const char *text, const char *end, uint64_t n)
{
	while (n > 0) {
		size_t block = end - text < 4096 ? (size_t)(end - text) : 4096;
		size_t found = count_newlines(text, block);

		if (found >= n)
			break;
		text += block;
		n -= found;
	}
	for (; n > 0; n--)
		text = (const char *)memchr(text, '\n', (size_t)(end - text)) + 1;
	return text;
}
