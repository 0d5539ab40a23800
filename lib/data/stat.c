/* What is in a data set? One pass over the lines, each column summarised on its own. */
#include "data/stat.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "data/criteo.h"
#include "data/lines_int.h"
#include "data/sketch_int.h"

struct pass {
	const struct hps_stat_opts *opts;
	struct hps_criteo criteo;
	struct hps_lines *lines;
	struct hps_field *field;	 /* (columns) */
	double *value;			 /* (columns) */
	struct hps_quantiles *quantiles; /* (dense) */
	struct hps_ids *ids;		 /* (slots) */
	uint64_t at;			 /* lines read */
	struct hps_stat *out;
};

static void add_value(struct pass *p, uint32_t i)
{
	struct hps_stat_dense *d = &p->out->dense[i];
	double x = p->value[i], n;

	if (p->field[1 + i].len == 0) {
		d->blanks++;
		return;
	}
	n = (double)(p->out->rows - d->blanks);
	d->min = d->any ? fmin(d->min, x) : x;
	d->max = d->any ? fmax(d->max, x) : x;
	d->mean += x / n - d->mean / n; /* no sum that could overflow */
	d->any = true;
	d->negatives += x < 0;
	hps_quantiles_add(&p->quantiles[i], x);
}

static enum hps_status add_row(struct pass *p, struct hps_err *err)
{
	struct hps_stat *s = p->out;

	s->rows++;
	if (p->field[0].text != NULL) {
		s->labelled++;
		s->positives += p->field[0].text[0] == '1';
	}
	for (uint32_t i = 0; i < s->n_dense; i++)
		add_value(p, i);
	for (uint32_t i = 0; i < s->n_slots; i++) {
		const struct hps_field *f = &p->field[1 + s->n_dense + i];
		enum hps_status st = hps_ids_add(&p->ids[i], hps_criteo_key(i, f->text, f->len),
						 f->text, f->len, err);

		if (st != HPS_OK)
			return st;
		s->slot[i].blanks += f->len == 0;
	}
	return HPS_OK;
}

static enum hps_status add_chunk(struct pass *p, const struct hps_chunk *chunk, struct hps_err *err)
{
	const char *line = chunk->data, *end = line + chunk->len, *next;
	enum hps_status st = HPS_OK;

	p->out->bytes += chunk->len;
	p->at += chunk->lines;
	for (uint64_t i = 0; st == HPS_OK && i < chunk->lines; i++, line = next) {
		size_t len = hps_line_at(line, end, &next);

		st = hps_criteo_split(&p->criteo, line, len, p->field, p->value, err);
		if (st == HPS_OK) {
			st = add_row(p, err);
		} else if (p->out->bad_lines < p->opts->skip_bad) {
			p->out->bad_lines++;
			st = HPS_OK;
		} else {
			hps_lines_blame(p->lines, chunk->file, chunk->first_line + i,
					p->opts->skip_bad, err);
		}
	}
	if (st == HPS_OK && p->opts->go_on != NULL && !p->opts->go_on(p->opts->ctx, p->at))
		st = hps_err_set(err, HPS_IO, "interrupted after %" PRIu64 " rows", p->at);
	return st;
}

static void summarise(struct pass *p)
{
	struct hps_stat *s = p->out;

	for (uint32_t i = 0; i < s->n_dense; i++) {
		struct hps_stat_dense *d = &s->dense[i];
		uint64_t n = s->rows - d->blanks;

		d->p10 = hps_quantiles_at(&p->quantiles[i], n, 0.1);
		d->p50 = hps_quantiles_at(&p->quantiles[i], n, 0.5);
		d->p90 = hps_quantiles_at(&p->quantiles[i], n, 0.9);
		d->p99 = hps_quantiles_at(&p->quantiles[i], n, 0.99);
	}
	for (uint32_t i = 0; i < s->n_slots; i++) {
		struct hps_stat_slot *slot = &s->slot[i];

		slot->distinct = hps_ids_distinct(&p->ids[i]);
		slot->exact = p->ids[i].hll == NULL;
		slot->miscount = p->ids[i].miscount;
		slot->n_top = hps_ids_top(&p->ids[i], slot->top);
	}
}

static enum hps_status prepare(struct pass *p, struct hps_err *err)
{
	const struct hps_stat_opts *o = p->opts;
	struct hps_stat *s = p->out;
	size_t columns = 1 + (size_t)o->dense + o->slots;
	enum hps_status st = hps_criteo_init(&p->criteo, o->slots, o->dense, NULL, err);

	if (st != HPS_OK)
		return st;
	p->criteo.unlabelled = o->unlabelled;
	p->field = hps_calloc(columns, sizeof *p->field, err);
	p->value = hps_calloc(columns, sizeof *p->value, err);
	p->quantiles = hps_calloc(o->dense, sizeof *p->quantiles, err);
	p->ids = hps_calloc(o->slots, sizeof *p->ids, err);
	s->dense = hps_calloc(o->dense, sizeof *s->dense, err);
	s->slot = hps_calloc(o->slots, sizeof *s->slot, err);
	if (p->field == NULL || p->value == NULL || p->quantiles == NULL || p->ids == NULL ||
	    s->dense == NULL || s->slot == NULL)
		return HPS_MEMORY;
	s->n_dense = o->dense;
	s->n_slots = o->slots;
	return hps_lines_new(o->path, o->n_paths, p->criteo.line_max, &p->lines, err);
}

enum hps_status hps_stat(const struct hps_stat_opts *opts, struct hps_stat *out,
			 struct hps_err *err)
{
	struct pass p = { .opts = opts, .out = out };
	struct hps_chunk *chunk;
	enum hps_status st;

	*out = (struct hps_stat){ 0 };
	st = prepare(&p, err);
	while (st == HPS_OK && (st = hps_lines_next(p.lines, &chunk, err)) == HPS_OK &&
	       chunk != NULL) {
		st = add_chunk(&p, chunk, err);
		hps_chunk_put(p.lines, chunk);
	}
	if (st == HPS_OK)
		summarise(&p);
	for (uint32_t i = 0; p.ids != NULL && i < opts->slots; i++)
		hps_ids_release(&p.ids[i]);
	hps_lines_free(p.lines);
	free(p.field);
	free(p.value);
	free(p.quantiles);
	free(p.ids);
	return st;
}

void hps_stat_release(struct hps_stat *s)
{
	free(s->dense);
	free(s->slot);
	*s = (struct hps_stat){ 0 };
}
