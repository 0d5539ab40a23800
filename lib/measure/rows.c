/* Which rows does the profiler work on? The first ones of real data, or made-up ones whose
 * keys are all distinct: the most traffic that a batch can cause.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/mem.h"
#include "base/rng.h"
#include "data/reader.h"
#include "measure/measure_int.h"

enum {
	CHUNK = 4096,	   /* rows read at a time */
	READ_ROWS = 65536, /* rows parsed at least, if there are as many: to time the reader */
};

static double process_cpu_s(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum hps_status allocate(struct hps_sample *s, const struct hps_model *m, uint32_t n,
				struct hps_err *err)
{
	size_t keys, features;

	if (hps_mul_size(n, m->slots, &keys) || hps_mul_size(n, m->dense, &features))
		return hps_err_set(err, HPS_MEMORY, "%u rows are too many", n);
	s->n = n;
	s->n_slots = m->slots;
	s->row = hps_calloc(n, sizeof(*s->row), err);
	s->label = hps_calloc(n, sizeof(*s->label), err);
	s->dense = hps_calloc(features, sizeof(*s->dense), err);
	s->key = hps_calloc(keys, sizeof(*s->key), err);
	s->slot = hps_calloc(m->slots, sizeof(*s->slot), err);
	if (!s->row || !s->label || !s->dense || !s->key || !s->slot)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < m->slots; i++)
		s->slot[i] = i;
	return HPS_OK;
}

static void make_up(struct hps_sample *s, const struct hps_model *m)
{
	struct hps_rng rng;

	hps_rng_init(&rng, 1, 0);
	for (uint32_t i = 0; i < s->n; i++) {
		s->row[i] = i;
		s->label[i] = (float)(hps_rng_u64(&rng) >> 63);
		for (uint32_t d = 0; d < m->dense; d++)
			s->dense[(size_t)i * m->dense + d] = (float)hps_rng_normal(&rng);
		for (uint32_t k = 0; k < m->slots; k++)
			s->key[(size_t)i * m->slots + k] = hps_rng_u64(&rng);
	}
}

struct ranges {
	uint64_t next, end;
};

static bool next_range(void *ctx, uint64_t *begin, uint64_t *end)
{
	struct ranges *r = ctx;

	if (r->next >= r->end)
		return false;
	*begin = r->next;
	*end = r->next + CHUNK < r->end ? r->next + CHUNK : r->end;
	r->next = *end;
	return true;
}

/* The valid rows of a batch, as many as there is room for. */
static void keep(struct hps_sample *s, const struct hps_model *m, const struct hps_batch *b,
		 uint32_t *kept)
{
	uint32_t n = s->n - *kept < b->rows ? s->n - *kept : b->rows;
	size_t at = *kept;

	if (n == 0)
		return;
	memcpy(s->row + at, b->row, n * sizeof(*s->row));
	memcpy(s->label + at, b->label, n * sizeof(*s->label));
	if (m->dense)
		memcpy(s->dense + at * m->dense, b->feature,
		       (size_t)n * m->dense * sizeof(*s->dense));
	if (m->slots)
		memcpy(s->key + at * m->slots, b->key, (size_t)n * m->slots * sizeof(*s->key));
	*kept += n;
}

/* Fill up with what is there: a short file repeats, under row numbers of its own. */
static void repeat(struct hps_sample *s, const struct hps_model *m, uint32_t kept)
{
	for (uint32_t i = kept; i < s->n; i++) {
		size_t from = i - kept;

		s->row[i] = s->row[kept - 1] + 1 + from;
		s->label[i] = s->label[from];
		if (m->dense)
			memcpy(s->dense + (size_t)i * m->dense, s->dense + from * m->dense,
			       m->dense * sizeof(*s->dense));
		if (m->slots)
			memcpy(s->key + (size_t)i * m->slots, s->key + from * m->slots,
			       m->slots * sizeof(*s->key));
	}
}

static enum hps_status read_all(struct hps_sample *s, const struct hps_model *m,
				struct hps_reader *reader, struct hps_err *err)
{
	struct ranges want = { 0, s->n > READ_ROWS ? s->n : READ_ROWS };
	struct hps_reader_wants wants = { next_range, &want };
	double before = process_cpu_s();
	struct hps_batch *b = NULL;
	enum hps_status st;
	uint32_t kept = 0;
	bool at_end = false;

	st = hps_reader_start(reader, 0, &wants, err);
	while (st == HPS_OK && !at_end) {
		st = hps_reader_next(reader, &b, &at_end, err);
		if (st != HPS_OK || !b)
			break;
		s->read += b->rows;
		keep(s, m, b, &kept);
		hps_reader_give_back(reader, b);
	}
	if (st != HPS_OK)
		return st;
	if (s->read == 0)
		return hps_err_set(err, HPS_BAD_INPUT, "no rows");
	s->input_s = (process_cpu_s() - before) / (double)s->read;
	repeat(s, m, kept);
	return HPS_OK;
}

static enum hps_status read_data(struct hps_sample *s, const struct hps_model *m, const char *data,
				 struct hps_err *err)
{
	struct hps_reader_opts o = {
		.path = &data,
		.n_paths = 1,
		.slots = m->slots,
		.dense = m->dense,
		.model = m,
		.parsers = 1,
		.ahead = 2,
	};
	struct hps_reader *reader = NULL;
	enum hps_status st = hps_reader_new(&o, &reader, err);

	if (st != HPS_OK)
		return st;
	st = read_all(s, m, reader, err);
	hps_reader_free(reader);
	if (st == HPS_BAD_INPUT && err && !err->where[0])
		hps_err_at(err, "%s", data);
	return st;
}

enum hps_status hps_sample_init(struct hps_sample *s, const struct hps_model *m, const char *data,
				uint32_t n, struct hps_err *err)
{
	enum hps_status st;

	memset(s, 0, sizeof(*s));
	st = allocate(s, m, n, err);
	if (st == HPS_OK && data)
		st = read_data(s, m, data, err);
	else if (st == HPS_OK)
		make_up(s, m);
	if (st != HPS_OK)
		hps_sample_release(s);
	return st;
}

void hps_sample_release(struct hps_sample *s)
{
	free(s->row);
	free(s->label);
	free(s->dense);
	free(s->key);
	free(s->slot);
	memset(s, 0, sizeof(*s));
}

struct hps_stage_in hps_sample_in(const struct hps_sample *s, const struct hps_model *m,
				  uint32_t first, uint32_t rows)
{
	return (struct hps_stage_in){
		.rows = rows,
		.row = s->row + first,
		.label = s->label + first,
		.dense = m->dense ? s->dense + (size_t)first * m->dense : NULL,
		.key = m->slots ? s->key + (size_t)first * m->slots : NULL,
		.key_slot = s->slot,
		.n_key_slots = s->n_slots,
		.seed = 1,
	};
}
