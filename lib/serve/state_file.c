/* How a shard's file is written, and whether one that is read is whole. */
#include "serve/state_file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"

static const char magic[8] = { 'H', 'P', 'S', 'S', 'T', 'A', 'T', 'E' };

static uint64_t head_sum(const struct state_head *h)
{
	return hps_hash_bytes(h, offsetof(struct state_head, sum), 0);
}

static uint64_t block_sum(const struct state_block *b)
{
	return hps_hash_bytes(b, offsetof(struct state_block, head_sum), 0);
}

/* --- writing --- */

enum hps_status hps_state_writer_open(struct state_writer *w, const char *path,
				      struct state_head *h, struct hps_err *err)
{
	enum hps_status st = hps_file_create(&w->file, path, 0666, err);

	w->body = (struct hps_buf)HPS_BUF_INIT;
	w->blocks = 0;
	if (st != HPS_OK)
		return st;
	memcpy(h->magic, magic, sizeof(magic));
	h->version = STATE_VERSION;
	h->sum = head_sum(h);
	st = hps_file_append(&w->file, h, sizeof(*h), err);
	if (st != HPS_OK)
		hps_state_writer_discard(w);
	return st;
}

enum hps_status hps_state_writer_put(struct state_writer *w, struct state_block b,
				     struct hps_err *err)
{
	enum hps_status st;

	b.bytes = w->body.len;
	b.body_sum = hps_hash_bytes(w->body.data, w->body.len, 0);
	b.head_sum = block_sum(&b);
	st = hps_file_append(&w->file, &b, sizeof(b), err);
	if (st == HPS_OK && w->body.len)
		st = hps_file_append(&w->file, w->body.data, w->body.len, err);
	w->body.len = 0;
	w->blocks++;
	return st;
}

enum hps_status hps_state_writer_close(struct state_writer *w, struct hps_err *err)
{
	struct state_block end = { .kind = STATE_END, .a = w->blocks };
	enum hps_status st = hps_state_writer_put(w, end, err);

	if (st != HPS_OK) {
		hps_state_writer_discard(w);
		return st;
	}
	hps_buf_release(&w->body);
	return hps_file_commit(&w->file, err);
}

void hps_state_writer_discard(struct state_writer *w)
{
	hps_buf_release(&w->body);
	hps_file_discard(&w->file);
}

/* --- reading --- */

enum hps_status hps_state_reader_bad(const struct state_reader *r, struct hps_err *err,
				     const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	hps_err_vset(err, HPS_BAD_INPUT, fmt, ap);
	va_end(ap);
	if (r->blocks)
		hps_err_at(err, "block %llu at byte %llu", (unsigned long long)r->blocks,
			   (unsigned long long)r->at);
	hps_err_at(err, "%s", r->path);
	return HPS_BAD_INPUT;
}

/* All of n bytes. */
static enum hps_status read_all(const struct state_reader *r, void *to, size_t n,
				struct hps_err *err)
{
	char *p = to;

	while (n) {
		ssize_t k = read(r->fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0) {
			hps_err_errno(err, HPS_IO, "cannot read");
			hps_err_at(err, "%s", r->path);
			return HPS_IO;
		}
		if (k == 0)
			return hps_state_reader_bad(r, err,
						    "the file ends too early: it is damaged");
		p += k;
		n -= (size_t)k;
	}
	return HPS_OK;
}

enum hps_status hps_state_reader_open(struct state_reader *r, const char *path, struct hps_err *err)
{
	struct state_head *h = &r->head;
	enum hps_status st;
	struct stat file;

	*r = (struct state_reader){ .path = path };
	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0 || fstat(r->fd, &file)) {
		hps_err_errno(err, HPS_IO, "cannot open");
		hps_err_at(err, "%s", path);
		hps_state_reader_close(r);
		return HPS_IO;
	}
	r->size = file.st_size > 0 ? (uint64_t)file.st_size : 0;
	st = read_all(r, h, sizeof(*h), err);
	if (st == HPS_OK && memcmp(h->magic, magic, sizeof(magic)) != 0)
		st = hps_state_reader_bad(r, err, "not a shard's state");
	if (st == HPS_OK && h->version != STATE_VERSION)
		st = hps_state_reader_bad(r, err, "expected version %d of the format, got %u",
					  STATE_VERSION, h->version);
	if (st == HPS_OK &&
	    (h->sum != head_sum(h) || h->shard >= h->n_shards || h->n_tables > HPS_MAX_TABLES))
		st = hps_state_reader_bad(r, err, "the head is damaged");
	if (st != HPS_OK)
		hps_state_reader_close(r);
	r->at = sizeof(*h);
	return st;
}

static enum hps_status read_body(struct state_reader *r, struct hps_err *err)
{
	struct state_block *b = &r->block;
	enum hps_status st;

	if (b->bytes > r->cap) {
		void *p = r->body;

		st = hps_realloc(&p, b->bytes, 1, err);
		if (st != HPS_OK)
			return st;
		r->body = p;
		r->cap = b->bytes;
	}
	st = read_all(r, r->body, b->bytes, err);
	if (st == HPS_OK && b->body_sum != hps_hash_bytes(r->body, b->bytes, 0))
		st = hps_state_reader_bad(r, err,
					  "the checksum does not match: the file is damaged");
	return st;
}

static enum hps_status check_end(struct state_reader *r, struct hps_err *err)
{
	char more;

	if (r->block.a != r->blocks - 1)
		return hps_state_reader_bad(r, err, "expected the end after %llu blocks",
					    (unsigned long long)r->block.a);
	if (read(r->fd, &more, 1) > 0)
		return hps_state_reader_bad(r, err, "bytes follow the end");
	return HPS_OK;
}

enum hps_status hps_state_reader_next(struct state_reader *r, bool *end, struct hps_err *err)
{
	struct state_block *b = &r->block;
	enum hps_status st;

	if (r->blocks)
		r->at += sizeof(*b) + b->bytes;
	r->blocks++;
	*b = (struct state_block){ 0 };
	st = read_all(r, b, sizeof(*b), err);
	if (st != HPS_OK)
		return st;
	if (b->head_sum != block_sum(b) || b->bytes > STATE_BODY_MAX)
		return hps_state_reader_bad(r, err, "the block's head is damaged");
	st = read_body(r, err);
	if (st != HPS_OK)
		return st;
	*end = b->kind == STATE_END;
	if (*end)
		return check_end(r, err);
	if (b->kind < STATE_MODEL || b->kind > STATE_END)
		return hps_state_reader_bad(r, err, "unknown kind of block %u", b->kind);
	return HPS_OK;
}

void hps_state_reader_close(struct state_reader *r)
{
	free(r->body);
	r->body = NULL;
	r->cap = 0;
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}
