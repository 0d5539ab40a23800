/* Which values do parameters, rows and sampled negatives begin with? All are functions of
 * the seed and of what they are, so no host, shard or order changes them. */
#include <math.h>
#include <string.h>
#include "base/rng.h"
#include "graph/graph.h"

/* What draws from one seed must not share a stream: the tag keeps them apart. */
enum draw { DRAW_PARAM = 1, DRAW_ROW = 2, DRAW_NEGATIVE = 3 };

static uint64_t tagged(uint64_t seed, enum draw tag)
{
	return hps_mix64(seed ^ ((uint64_t)tag << 56));
}

/* Glorot and Bengio 2010: variance 2 / (in + out), uniform. */
static float param_limit(const struct hps_param *p)
{
	return (float)sqrt(6.0 / ((double)p->rows + (double)p->cols));
}

static float draw_param(uint64_t tagged_seed, uint32_t param, uint64_t element, float limit)
{
	return limit * hps_unit_float(hps_hash3(tagged_seed, param, element));
}

/* The parameter that float `at` of the flat vector belongs to. */
static uint32_t find_param(const struct hps_graph *g, uint64_t at)
{
	uint32_t low = 0, high = g->n_params;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (g->param[middle].offset <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void hps_param_init_range(const struct hps_graph *g, uint64_t first, uint64_t n, uint64_t seed,
			  float *out)
{
	uint64_t tag = tagged(seed, DRAW_PARAM), done = 0;
	uint32_t i = n ? find_param(g, first) : 0;

	for (; done < n; i++) {
		const struct hps_param *p = &g->param[i];
		uint64_t element = first + done - p->offset;
		uint64_t left = (uint64_t)p->rows * p->cols - element;
		uint64_t run = left < n - done ? left : n - done;
		float limit = param_limit(p);

		if (p->suffix[0] == 'b')
			memset(out + done, 0, run * sizeof(*out));
		else
			for (uint64_t k = 0; k < run; k++)
				out[done + k] = draw_param(tag, i, element + k, limit);
		done += run;
	}
}

void hps_row_init(const struct hps_table_spec *t, uint32_t table, uint64_t key, uint64_t seed,
		  float *row)
{
	uint64_t base;
	float scale = (float)t->init_scale;

	if (t->init == HPS_INIT_ZERO) {
		memset(row, 0, t->dim * sizeof(*row));
		return;
	}
	/* One hash a row, then splitmix64 along it: its step is the golden ratio. */
	base = hps_hash3(tagged(seed, DRAW_ROW), table, key);
	for (uint32_t j = 0; j < t->dim; j++) {
		base += UINT64_C(0x9e3779b97f4a7c15);
		row[j] = scale * hps_unit_float(hps_mix64(base));
	}
}

uint64_t hps_negative_key(uint64_t seed, uint32_t epoch, uint32_t layer, uint64_t row, uint32_t i,
			  uint64_t rows)
{
	uint64_t stream = hps_hash3(tagged(seed, DRAW_NEGATIVE), epoch, layer);

	return hps_table_key(hps_hash3(stream, row, i), rows);
}
