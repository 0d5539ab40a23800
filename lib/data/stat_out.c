/* How is a description of a data set shown: as a document, or as tables? */
#include <inttypes.h>

#include "data/stat.h"

static double share(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static uint64_t total_distinct(const struct hps_stat *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->n_slots; i++)
		n += s->slot[i].distinct;
	return n;
}

/* --- the document --- */

static struct hps_doc *number_if(bool any, double x)
{
	return any ? hps_doc_double(x) : hps_doc_null();
}

static int add_dense(struct hps_doc *array, uint32_t i, const struct hps_stat_dense *d)
{
	struct hps_doc *o = hps_doc_object();
	int bad = hps_doc_put(o, "column", hps_doc_int(2 + (int64_t)i)) ||
		  hps_doc_put(o, "blanks", hps_doc_u64(d->blanks)) ||
		  hps_doc_put(o, "negatives", hps_doc_u64(d->negatives)) ||
		  hps_doc_put(o, "min", number_if(d->any, d->min)) ||
		  hps_doc_put(o, "mean", number_if(d->any, d->mean)) ||
		  hps_doc_put(o, "max", number_if(d->any, d->max)) ||
		  hps_doc_put(o, "p10", number_if(d->any, d->p10)) ||
		  hps_doc_put(o, "p50", number_if(d->any, d->p50)) ||
		  hps_doc_put(o, "p90", number_if(d->any, d->p90)) ||
		  hps_doc_put(o, "p99", number_if(d->any, d->p99));

	return hps_doc_add(array, o) || bad ? -1 : 0;
}

static int add_top(struct hps_doc *array, const struct hps_stat_id *id, uint64_t rows)
{
	struct hps_doc *o = hps_doc_object();
	int bad = hps_doc_put(o, "id", hps_doc_string(id->text)) ||
		  hps_doc_put(o, "count", hps_doc_u64(id->count)) ||
		  hps_doc_put(o, "share", hps_doc_double(share(id->count, rows)));

	return hps_doc_add(array, o) || bad ? -1 : 0;
}

static int add_slot(struct hps_doc *array, uint32_t i, const struct hps_stat *s)
{
	const struct hps_stat_slot *slot = &s->slot[i];
	struct hps_doc *o = hps_doc_object(), *top = hps_doc_array();
	int bad = hps_doc_put(o, "column", hps_doc_int(2 + (int64_t)s->n_dense + i)) ||
		  hps_doc_put(o, "blanks", hps_doc_u64(slot->blanks)) ||
		  hps_doc_put(o, "distinct", hps_doc_u64(slot->distinct)) ||
		  hps_doc_put(o, "exact", hps_doc_bool(slot->exact)) ||
		  hps_doc_put(o, "miscount", hps_doc_u64(slot->miscount));

	for (uint32_t k = 0; k < slot->n_top; k++)
		bad = add_top(top, &slot->top[k], s->rows) || bad;
	bad = hps_doc_put(o, "top", top) || bad;
	return hps_doc_add(array, o) || bad ? -1 : 0;
}

struct hps_doc *hps_stat_write(const struct hps_stat *s)
{
	struct hps_doc *o = hps_doc_object(), *dense = hps_doc_array(), *slots = hps_doc_array();
	int bad = hps_doc_put(o, "rows", hps_doc_u64(s->rows)) ||
		  hps_doc_put(o, "bad_lines", hps_doc_u64(s->bad_lines)) ||
		  hps_doc_put(o, "bytes", hps_doc_u64(s->bytes)) ||
		  hps_doc_put(o, "labelled", hps_doc_u64(s->labelled)) ||
		  hps_doc_put(o, "positives", hps_doc_u64(s->positives)) ||
		  hps_doc_put(o, "base_rate",
			      number_if(s->labelled > 0, share(s->positives, s->labelled))) ||
		  hps_doc_put(o, "distinct", hps_doc_u64(total_distinct(s)));

	for (uint32_t i = 0; i < s->n_dense; i++)
		bad = add_dense(dense, i, &s->dense[i]) || bad;
	for (uint32_t i = 0; i < s->n_slots; i++)
		bad = add_slot(slots, i, s) || bad;
	bad = hps_doc_put(o, "dense", dense) || bad;
	bad = hps_doc_put(o, "slots", slots) || bad;
	if (!bad)
		return o;
	hps_doc_free(o);
	return NULL;
}

/* --- tables --- */

static enum hps_status head(const struct hps_stat *s, struct hps_buf *b, struct hps_err *err)
{
	return hps_buf_printf(b, err,
			      "rows       %" PRIu64 "\n"
			      "bad lines  %" PRIu64 "\n"
			      "bytes      %" PRIu64 "\n"
			      "positives  %" PRIu64 " (%.4g %%)\n"
			      "distinct   %" PRIu64 "\n",
			      s->rows, s->bad_lines, s->bytes, s->positives,
			      100 * share(s->positives, s->labelled), total_distinct(s));
}

static enum hps_status dense_table(const struct hps_stat *s, struct hps_buf *b, struct hps_err *err)
{
	enum hps_status st =
		hps_buf_printf(b, err, "\n%6s %8s %10s %11s %10s %10s %10s %10s\n", "column",
			       "blank %", "min", "mean", "p50", "p90", "p99", "max");

	for (uint32_t i = 0; st == HPS_OK && i < s->n_dense; i++) {
		const struct hps_stat_dense *d = &s->dense[i];

		st = hps_buf_printf(b, err, "%6" PRIu32 " %8.2f", 2 + i,
				    100 * share(d->blanks, s->rows));
		if (st == HPS_OK && d->any)
			st = hps_buf_printf(b, err, " %10.6g %11.6g %10.6g %10.6g %10.6g %10.6g",
					    d->min, d->mean, d->p50, d->p90, d->p99, d->max);
		if (st == HPS_OK)
			st = hps_buf_add(b, "\n", 1, err);
	}
	return st;
}

static enum hps_status slot_table(const struct hps_stat *s, struct hps_buf *b, struct hps_err *err)
{
	enum hps_status st = hps_buf_printf(b, err, "\n%6s %8s %10s  %s\n", "column", "blank %",
					    "distinct", "most frequent, %");

	for (uint32_t i = 0; st == HPS_OK && i < s->n_slots; i++) {
		const struct hps_stat_slot *slot = &s->slot[i];

		st = hps_buf_printf(b, err, "%6" PRIu32 " %8.2f %s%*" PRIu64 " ",
				    2 + s->n_dense + i, 100 * share(slot->blanks, s->rows),
				    slot->exact ? "" : "~", slot->exact ? 10 : 9, slot->distinct);
		for (uint32_t k = 0; st == HPS_OK && k < slot->n_top; k++)
			st = hps_buf_printf(b, err, " %s %.2f",
					    slot->top[k].text[0] ? slot->top[k].text : "blank",
					    100 * share(slot->top[k].count, s->rows));
		if (st == HPS_OK)
			st = hps_buf_add(b, "\n", 1, err);
	}
	return st;
}

enum hps_status hps_stat_text(const struct hps_stat *s, struct hps_buf *b, struct hps_err *err)
{
	enum hps_status st = head(s, b, err);

	if (st == HPS_OK && s->n_dense > 0)
		st = dense_table(s, b, err);
	if (st == HPS_OK && s->n_slots > 0)
		st = slot_table(s, b, err);
	return st;
}
