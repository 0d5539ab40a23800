/* What does row i of a generated data set hold? Zipf's law by the alias method (Walker
 * 1977, Vose 1991), integers by Weibull quantiles, pairs by the identity of factorisation
 * machines (Rendle 2010): sum_{i<j} <v_i, v_j> = (|sum v|^2 - sum |v|^2) / 2. */
#include "data/truth_int.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "job/model.h"

enum {
	CELLS = 2048, /* quantiles of a dense column */
	LATENT = 4,
	SAMPLE = 20000, /* rows that settle the bias */
	FIELD_MAX = 12, /* bytes of a field with its tab */
};

/* With weak interactions the best AUC is near 0.80 at a base rate of a quarter, and mostly
 * additive: 500,000 rows of 50 ids a slot take CTRDNN to within 0.006 of it. Bends that took
 * most of the dense columns' variance cost it another 0.009. */
static const double MAIN_SD = 1.3, DENSE_SD = 0.5, BENT = 0.25;

/* What is drawn apart gets a seed of its own. */
enum stream { ROWS, BIAS_ROWS, WEIGHTS, VECTORS, NAMES, COLUMNS };

struct cell {
	int32_t value;
	float effect;
};

struct hps_truth {
	uint32_t slots, dense;
	uint64_t ids, rows_seed, weights_seed, vectors_seed;
	double blank_rate, bias;
	double weight;	    /* of a slot's unit draw */
	double interaction; /* of the pairs' sum */
	uint64_t *keep;	    /* (ids) alias table: stay below this ... */
	uint32_t *alias;    /* (ids) ... else take that */
	uint32_t *name;	    /* (slots, 2) keys of the ids' names */
	struct cell *cell;  /* (dense, CELLS + 1), the last one: blank */
};

/* --- ids --- */

/* Each of n columns is as likely as the others; within column k, k stays below keep[k],
 * else alias[k]. */
static enum hps_status build_alias(struct hps_truth *t, double exponent, struct hps_err *err)
{
	uint64_t n = t->ids, small = 0, large = n;
	double *p = hps_calloc(n, sizeof *p, err), sum = 0;
	uint32_t *stack =
		hps_calloc(n, sizeof *stack, err); /* small from below, large from above */

	t->keep = hps_calloc(n, sizeof *t->keep, err);
	t->alias = hps_calloc(n, sizeof *t->alias, err);
	if (p == NULL || stack == NULL || t->keep == NULL || t->alias == NULL) {
		free(p);
		free(stack);
		return HPS_MEMORY;
	}
	for (uint64_t k = n; k-- > 0;)
		sum += p[k] = pow((double)(k + 1), -exponent);
	for (uint64_t k = 0; k < n; k++) {
		p[k] *= (double)n / sum;
		t->alias[k] = (uint32_t)k;
		t->keep[k] = UINT64_MAX;
		if (p[k] < 1)
			stack[small++] = (uint32_t)k;
		else
			stack[--large] = (uint32_t)k;
	}
	while (small > 0 && large < n) {
		uint32_t s = stack[--small], l = stack[large];

		t->keep[s] = (uint64_t)(p[s] * 0x1p63) * 2;
		t->alias[s] = l;
		p[l] -= 1 - p[s];
		if (p[l] < 1) {
			large++;
			stack[small++] = l;
		}
	}
	free(p);
	free(stack);
	return HPS_OK;
}

static uint64_t draw_id(const struct hps_truth *t, uint64_t random)
{
	unsigned __int128 x = (unsigned __int128)random * t->ids;
	uint64_t k = (uint64_t)(x >> 64);

	return (uint64_t)x <= t->keep[k] ? k : t->alias[k];
}

/* A bijection of 32 bits (lowbias32, Wellons 2018): no two ids of a slot share a name. */
static uint32_t id_name(const struct hps_truth *t, uint32_t slot, uint64_t id)
{
	uint32_t x = (uint32_t)id + t->name[2 * slot];

	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16 ^ t->name[2 * slot + 1];
}

/* --- dense columns --- */

/* Scale x[0..CELLS) to mean 0 and standard deviation sd; x[CELLS] along with them. */
static void standardise(double *x, double sd)
{
	double mean = 0, var = 0;

	for (int q = 0; q < CELLS; q++)
		mean += x[q] / CELLS;
	for (int q = 0; q < CELLS; q++)
		var += (x[q] - mean) * (x[q] - mean) / CELLS;
	for (int q = 0; q <= CELLS; q++)
		x[q] = var > 0 ? (x[q] - mean) * sd / sqrt(var) : 0;
}

/* The effect of a column is a line over the logarithm, in two columns of three with a bump or
 * a valley laid on it that takes BENT of its variance. A blank has the effect of a zero, which
 * is what it becomes by default. */
static void build_column(struct cell *cell, uint32_t column, double sd, struct hps_rng *rng)
{
	double scale = exp(5 * hps_rng_uniform(rng)), shape = 1 + 2 * hps_rng_uniform(rng);
	double sign = hps_rng_uniform(rng) < 0.5 ? -1 : 1;
	double bend = hps_rng_uniform(rng) < 0.5 ? -1 : 1, centre = hps_rng_uniform(rng) - 0.3;
	double line[CELLS + 1], bent[CELLS + 1] = { 0 };

	for (int q = 0; q < CELLS; q++) {
		double e = -log1p(-(q + 0.5) / CELLS), v = floor(scale * pow(e, shape));

		v -= column % 4 == 1 ? 2 : 0;
		cell[q].value = (int32_t)v;
		line[q] = copysign(log1p(fabs(v)), v);
	}
	line[CELLS] = 0;
	standardise(line, 1);
	for (int q = 0; q <= CELLS; q++) {
		double x = line[q] - centre;

		if (column % 3 == 1)
			bent[q] = exp(-x * x / 0.7);
		else if (column % 3 == 2)
			bent[q] = fabs(x);
	}
	standardise(bent, bend * sqrt(BENT));
	for (int q = 0; q <= CELLS; q++)
		line[q] = sign * sqrt(1 - BENT) * line[q] + bent[q];
	standardise(line, sd);
	for (int q = 0; q <= CELLS; q++)
		cell[q].effect = (float)line[q];
}

/* --- rows --- */

struct drawn {
	double sum[LATENT], squares;
	double logit;
};

static void add_id(const struct hps_truth *t, struct drawn *d, uint32_t slot, uint64_t id)
{
	uint64_t v = hps_hash3(t->vectors_seed, slot, id);

	d->logit += t->weight * (double)hps_unit_float(hps_hash3(t->weights_seed, slot, id));
	for (int k = 0; k < LATENT; k++) {
		double x = (double)(int16_t)(v >> (16 * k)) * 0x1p-15;

		d->sum[k] += x;
		d->squares += x * x;
	}
}

static char *put_int(char *p, int32_t value)
{
	char digits[FIELD_MAX];
	uint32_t left = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
	int n = 0;

	if (value < 0)
		*p++ = '-';
	do
		digits[n++] = (char)('0' + left % 10);
	while ((left /= 10) > 0);
	while (n > 0)
		*p++ = digits[--n];
	return p;
}

static char *put_hex(char *p, uint32_t value)
{
	for (int shift = 28; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[value >> shift & 15];
	return p;
}

static char *draw_row(const struct hps_truth *t, struct hps_rng *rng, char *p, double *logit)
{
	struct drawn d = { .logit = t->bias };
	double pairs = 0;

	for (uint32_t i = 0; i < t->dense; i++) {
		bool blank = hps_rng_uniform(rng) < t->blank_rate;
		uint64_t q = blank ? CELLS : hps_rng_u64(rng) % CELLS;
		const struct cell *cell = &t->cell[(size_t)i * (CELLS + 1) + q];

		*p++ = '\t';
		if (!blank)
			p = put_int(p, cell->value);
		d.logit += (double)cell->effect;
	}
	for (uint32_t i = 0; i < t->slots; i++) {
		bool blank = hps_rng_uniform(rng) < t->blank_rate;
		uint64_t id = blank ? UINT64_MAX : draw_id(t, hps_rng_u64(rng));

		*p++ = '\t';
		if (!blank)
			p = put_hex(p, id_name(t, i, id));
		add_id(t, &d, i, id);
	}
	for (int k = 0; k < LATENT; k++)
		pairs += d.sum[k] * d.sum[k];
	*logit = d.logit + t->interaction * (pairs - d.squares) / 2;
	return p;
}

char *hps_truth_row(const struct hps_truth *t, uint64_t i, char *text, double *logit,
		    bool *positive)
{
	struct hps_rng rng;
	char *p;

	hps_rng_init(&rng, t->rows_seed, i);
	p = draw_row(t, &rng, text + 1, logit);
	*positive = hps_rng_uniform(&rng) < 1 / (1 + exp(-*logit));
	text[0] = *positive ? '1' : '0';
	*p++ = '\n';
	return p;
}

size_t hps_truth_row_max(const struct hps_truth *t)
{
	return FIELD_MAX * ((size_t)t->slots + t->dense + 1);
}

double hps_truth_bias(const struct hps_truth *t)
{
	return t->bias;
}

/* --- making it --- */

/* The bias at which a sample's mean probability is the base rate, by bisection. */
static enum hps_status settle_bias(struct hps_truth *t, uint64_t seed, double rate,
				   struct hps_err *err)
{
	double *logit = hps_calloc(SAMPLE, sizeof *logit, err), low = -50, high = 50;
	char *text = hps_calloc(hps_truth_row_max(t), 1, err);

	for (uint64_t i = 0; logit != NULL && text != NULL && i < SAMPLE; i++) {
		struct hps_rng rng;

		hps_rng_init(&rng, seed, i);
		draw_row(t, &rng, text, &logit[i]);
	}
	for (int step = 0; logit != NULL && text != NULL && step < 60; step++) {
		double mean = 0;

		t->bias = (low + high) / 2;
		for (int i = 0; i < SAMPLE; i++)
			mean += 1 / (1 + exp(-logit[i] - t->bias)) / SAMPLE;
		if (mean < rate)
			low = t->bias;
		else
			high = t->bias;
	}
	free(logit);
	free(text);
	return logit == NULL || text == NULL ? HPS_MEMORY : HPS_OK;
}

static enum hps_status check(const struct hps_gen_opts *o, struct hps_err *err)
{
	if (o->slots == 0 || o->slots > HPS_MAX_SLOTS || o->dense > HPS_MAX_SLOTS)
		return hps_err_set(err, HPS_USAGE, "expected 1 to %d slots, 0 to %d dense columns",
				   HPS_MAX_SLOTS, HPS_MAX_SLOTS);
	if (o->ids == 0 || o->ids > HPS_GEN_MAX_IDS)
		return hps_err_set(err, HPS_USAGE, "expected 1 to %d ids a slot",
				   (int)HPS_GEN_MAX_IDS);
	if (!(o->zipf >= 0 && o->zipf <= 10) || !(o->interactions >= 0 && o->interactions <= 100))
		return hps_err_set(err, HPS_USAGE,
				   "expected an exponent of 0 to 10 and "
				   "interactions of 0 to 100");
	if (!(o->blank_rate >= 0 && o->blank_rate <= 1))
		return hps_err_set(err, HPS_USAGE, "expected a rate of blanks from 0 to 1");
	if (!(o->base_rate > 0 && o->base_rate < 1))
		return hps_err_set(err, HPS_USAGE, "expected a base rate between 0 and 1");
	if (o->threads == 0)
		return hps_err_set(err, HPS_USAGE, "expected a thread or more");
	return HPS_OK;
}

enum hps_status hps_truth_new(const struct hps_gen_opts *o, struct hps_truth **out,
			      struct hps_err *err)
{
	double pairs = (double)o->slots * (o->slots - 1.0) / 2;
	enum hps_status st = check(o, err);
	struct hps_truth *t;

	if (st != HPS_OK)
		return st;
	if ((t = hps_calloc(1, sizeof *t, err)) == NULL)
		return HPS_MEMORY;
	t->slots = o->slots;
	t->dense = o->dense;
	t->ids = o->ids;
	t->blank_rate = o->blank_rate;
	t->rows_seed = hps_hash3(o->seed, ROWS, 0);
	t->weights_seed = hps_hash3(o->seed, WEIGHTS, 0);
	t->vectors_seed = hps_hash3(o->seed, VECTORS, 0);
	t->weight = MAIN_SD * sqrt(3.0 / o->slots); /* a unit draw has variance 1/3 */
	t->interaction = pairs > 0 ? o->interactions * 3 / sqrt(pairs * LATENT) : 0;
	t->name = hps_calloc(2 * (size_t)t->slots, sizeof *t->name, err);
	t->cell = hps_calloc((size_t)t->dense * (CELLS + 1), sizeof *t->cell, err);
	st = t->name == NULL || t->cell == NULL ? HPS_MEMORY : build_alias(t, o->zipf, err);
	if (st == HPS_OK) {
		for (uint32_t i = 0; i < 2 * t->slots; i++)
			t->name[i] = (uint32_t)hps_hash3(o->seed, NAMES, i);
		for (uint32_t i = 0; i < t->dense; i++) {
			struct hps_rng rng;

			hps_rng_init(&rng, hps_hash3(o->seed, COLUMNS, 0), i);
			build_column(&t->cell[(size_t)i * (CELLS + 1)], i,
				     DENSE_SD / sqrt(t->dense), &rng);
		}
		st = settle_bias(t, hps_hash3(o->seed, BIAS_ROWS, 0), o->base_rate, err);
	}
	if (st != HPS_OK) {
		hps_truth_free(t);
		return st;
	}
	*out = t;
	return HPS_OK;
}

void hps_truth_free(struct hps_truth *t)
{
	if (t == NULL)
		return;
	free(t->keep);
	free(t->alias);
	free(t->name);
	free(t->cell);
	free(t);
}
