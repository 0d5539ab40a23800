/* How is a data set copied without carrying a fault along? One pass over the lines, each
 * parsed as the reader would, the good ones packed into blocks. */
#include "data/conv.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "data/criteo.h"
#include "data/lines_int.h"

enum { BLOCK_BYTES = 2 << 20 };

struct conv {
	const struct hps_conv_opts *opts;
	struct hps_criteo criteo;
	struct hps_lines *lines;
	struct hps_sink *sink;
	struct hps_field *field; /* (columns) */
	double *value;		 /* (columns) */
	struct hps_buf text, packed;
	uint64_t at; /* physical rows read */
	uint64_t rows, skipped;
};

static enum hps_status flush(struct conv *c, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	if (c->text.len == 0)
		return HPS_OK;
	c->packed.len = 0;
	st = hps_compress_block(c->opts->compress, c->text.data, c->text.len, &c->packed, err);
	c->text.len = 0;
	return st == HPS_OK ? hps_sink_write(c->sink, c->packed.data, c->packed.len, err) : st;
}

static enum hps_status take(struct conv *c, const struct hps_chunk *chunk, const char *line,
			    size_t len, uint64_t number, struct hps_err *err)
{
	enum hps_status st = hps_criteo_split(&c->criteo, line, len, c->field, c->value, err);

	if (st != HPS_OK) {
		if (c->skipped < c->opts->skip_bad) {
			c->skipped++;
			return HPS_OK;
		}
		hps_lines_blame(c->lines, chunk->file, number, c->opts->skip_bad, err);
		return st;
	}
	c->rows++;
	if ((st = hps_buf_add(&c->text, line, len, err)) != HPS_OK ||
	    (st = hps_buf_add(&c->text, "\n", 1, err)) != HPS_OK)
		return st;
	return c->text.len < BLOCK_BYTES ? HPS_OK : flush(c, err);
}

static enum hps_status copy_chunk(struct conv *c, const struct hps_chunk *chunk,
				  struct hps_err *err)
{
	const char *line = chunk->data, *end = line + chunk->len, *next;
	uint64_t first = c->opts->first > 0 ? c->opts->first : 1;
	uint64_t last = c->opts->last > 0 ? c->opts->last : UINT64_MAX;
	enum hps_status st = HPS_OK;

	if (c->at + chunk->lines < first) {
		c->at += chunk->lines;
		return HPS_OK;
	}
	for (uint64_t i = 0; st == HPS_OK && i < chunk->lines && c->at < last; i++, line = next) {
		size_t len = hps_line_at(line, end, &next);

		if (++c->at >= first)
			st = take(c, chunk, line, len, chunk->first_line + i, err);
	}
	if (st == HPS_OK && c->opts->go_on != NULL && !c->opts->go_on(c->opts->ctx, c->at))
		st = hps_err_set(err, HPS_IO, "interrupted after %" PRIu64 " rows", c->at);
	return st;
}

static enum hps_status copy(struct conv *c, struct hps_err *err)
{
	struct hps_chunk *chunk;
	enum hps_status st;

	while ((st = hps_lines_next(c->lines, &chunk, err)) == HPS_OK && chunk != NULL) {
		st = copy_chunk(c, chunk, err);
		hps_chunk_put(c->lines, chunk);
		if (st != HPS_OK || c->at == c->opts->last)
			break;
	}
	if (st == HPS_OK)
		st = flush(c, err);
	if (st == HPS_OK && c->rows + c->skipped == 0)
		st = hps_err_set(err, HPS_BAD_INPUT,
				 "no rows are left: the data end at row %" PRIu64, c->at);
	return st;
}

enum hps_status hps_conv(const struct hps_conv_opts *opts, struct hps_sink *sink, uint64_t *rows,
			 uint64_t *skipped, struct hps_err *err)
{
	struct conv c = { .opts = opts, .sink = sink };
	size_t columns = 1 + (size_t)opts->dense + opts->slots;
	enum hps_status st = hps_criteo_init(&c.criteo, opts->slots, opts->dense, NULL, err);

	if (st != HPS_OK)
		return st;
	if (opts->last > 0 && opts->last < opts->first)
		return hps_err_set(err, HPS_USAGE, "rows %" PRIu64 " to %" PRIu64 " are none",
				   opts->first, opts->last);
	c.criteo.unlabelled = opts->unlabelled;
	c.field = hps_calloc(columns, sizeof *c.field, err);
	c.value = hps_calloc(columns, sizeof *c.value, err);
	if (c.field == NULL || c.value == NULL)
		st = HPS_MEMORY;
	if (st == HPS_OK)
		st = hps_lines_new(opts->path, opts->n_paths, c.criteo.line_max, &c.lines, err);
	if (st == HPS_OK)
		st = copy(&c, err);
	*rows = c.rows;
	*skipped = c.skipped;
	hps_lines_free(c.lines);
	hps_buf_release(&c.text);
	hps_buf_release(&c.packed);
	free(c.field);
	free(c.value);
	return st;
}
