/* How many ids, which are frequent, how do values spread, when memory is bounded?
 * HyperLogLog: Flajolet et al. 2007 with the estimator of Ertl 2017. */
#include "data/sketch_int.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	FIRST_CELLS = 256,
	HLL_BITS = 14, /* standard error 1.04 / sqrt(2^14) = 0.8 % */
	HLL_REGISTERS = 1 << HLL_BITS,
	HLL_MAX_RANK = 64 - HLL_BITS + 1,
};

struct hps_ids_cell {
	uint64_t hash, count;
	char text[HPS_STAT_TEXT];
};

/* --- distinct --- */

static void hll_add(uint8_t *hll, uint64_t hash)
{
	uint64_t rest = hash << HLL_BITS;
	uint8_t rank = rest == 0 ? HLL_MAX_RANK : (uint8_t)(__builtin_clzll(rest) + 1);
	uint8_t *reg = &hll[hash >> (64 - HLL_BITS)];

	if (*reg < rank)
		*reg = rank;
}

static double hll_estimate(const uint8_t *hll)
{
	double m = HLL_REGISTERS, z, last, x, y = 1, sigma, tau = 0;
	uint64_t count[HLL_MAX_RANK + 1] = { 0 };

	for (int i = 0; i < HLL_REGISTERS; i++)
		count[hll[i]]++;
	/* tau and sigma correct for registers that are full and empty. */
	x = 1 - (double)count[HLL_MAX_RANK] / m;
	if (x > 0 && x < 1) {
		tau = 1 - x;
		do {
			x = sqrt(x);
			last = tau;
			y /= 2;
			tau -= (1 - x) * (1 - x) * y;
		} while (tau != last);
		tau /= 3;
	}
	z = m * tau;
	for (int k = HLL_MAX_RANK - 1; k >= 1; k--)
		z = 0.5 * (z + (double)count[k]);
	x = sigma = (double)count[0] / m;
	y = 1;
	do {
		x *= x;
		last = sigma;
		sigma += x * y;
		y += y;
	} while (sigma != last);
	return m * m / (2 * log(2)) / (z + m * sigma);
}

/* --- frequent --- */

static struct hps_ids_cell *find(const struct hps_ids *s, uint64_t hash)
{
	size_t i = hash & (s->cap - 1);

	while (s->cell[i].count > 0 && s->cell[i].hash != hash)
		i = (i + 1) & (s->cap - 1);
	return &s->cell[i];
}

static enum hps_status rebuild(struct hps_ids *s, size_t cap, uint64_t less, struct hps_err *err)
{
	struct hps_ids old = *s;

	s->cell = hps_calloc(cap, sizeof *s->cell, err);
	if (s->cell == NULL) {
		*s = old;
		return HPS_MEMORY;
	}
	s->cap = cap;
	s->n = 0;
	for (size_t i = 0; i < old.cap; i++) {
		const struct hps_ids_cell *from = &old.cell[i];
		struct hps_ids_cell *to;

		if (from->count <= less)
			continue;
		to = find(s, from->hash);
		*to = *from;
		to->count -= less;
		s->n++;
	}
	free(old.cell);
	return HPS_OK;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Take the median count off all. */
static enum hps_status purge(struct hps_ids *s, struct hps_err *err)
{
	uint64_t *count = hps_calloc(s->n, sizeof *count, err), median;
	enum hps_status st;
	size_t n = 0;

	if (count == NULL)
		return HPS_MEMORY;
	if (s->hll == NULL && (s->hll = hps_calloc(HLL_REGISTERS, 1, err)) == NULL) {
		free(count);
		return HPS_MEMORY;
	}
	for (size_t i = 0; i < s->cap; i++) {
		if (s->cell[i].count == 0)
			continue;
		count[n++] = s->cell[i].count;
		hll_add(s->hll, s->cell[i].hash);
	}
	qsort(count, n, sizeof *count, by_value);
	median = count[n / 2];
	free(count);
	if ((st = rebuild(s, s->cap, median, err)) == HPS_OK)
		s->miscount += median;
	return st;
}

static enum hps_status make_room(struct hps_ids *s, struct hps_err *err)
{
	if (s->n == HPS_STAT_EXACT_IDS)
		return purge(s, err);
	if (2 * (s->n + 1) > s->cap)
		return rebuild(s, s->cap == 0 ? FIRST_CELLS : 2 * s->cap, 0, err);
	return HPS_OK;
}

/* Shown to people and in JSON: other bytes than printable ASCII become a question mark. */
static void copy_text(char *to, const char *text, size_t len)
{
	size_t n = len < HPS_STAT_TEXT ? len : HPS_STAT_TEXT - 1;

	for (size_t i = 0; i < n; i++)
		to[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	if (n < len)
		memset(to + n - 3, '.', 3);
	to[n] = '\0';
}

enum hps_status hps_ids_add(struct hps_ids *s, uint64_t hash, const char *text, size_t len,
			    struct hps_err *err)
{
	struct hps_ids_cell *cell = s->cap == 0 ? NULL : find(s, hash);
	enum hps_status st;

	if (s->hll != NULL)
		hll_add(s->hll, hash);
	if (cell == NULL || cell->count == 0) {
		if ((st = make_room(s, err)) != HPS_OK)
			return st;
		cell = find(s, hash);
		cell->hash = hash;
		copy_text(cell->text, text, len);
		s->n++;
	}
	cell->count++;
	return HPS_OK;
}

uint64_t hps_ids_distinct(const struct hps_ids *s)
{
	return s->hll == NULL ? s->n : (uint64_t)llround(hll_estimate(s->hll));
}

static bool ranks_before(const struct hps_ids_cell *c, const struct hps_stat_id *id)
{
	return c->count != id->count ? c->count > id->count : strcmp(c->text, id->text) < 0;
}

uint32_t hps_ids_top(const struct hps_ids *s, struct hps_stat_id *top)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->cap; i++) {
		const struct hps_ids_cell *c = &s->cell[i];
		uint32_t at = n;

		if (c->count == 0)
			continue;
		while (at > 0 && ranks_before(c, &top[at - 1]))
			at--;
		if (at == HPS_STAT_TOP)
			continue;
		if (n < HPS_STAT_TOP)
			n++;
		memmove(&top[at + 1], &top[at], (n - 1 - at) * sizeof *top);
		top[at].count = c->count;
		memcpy(top[at].text, c->text, sizeof c->text);
	}
	return n;
}

void hps_ids_release(struct hps_ids *s)
{
	free(s->cell);
	free(s->hll);
	*s = (struct hps_ids){ 0 };
}

/* --- quantiles --- */

static const double LOG_GAMMA = 0.019802627296179712; /* log 1.02 */

void hps_quantiles_add(struct hps_quantiles *q, double x)
{
	double size = fabs(x);
	int i;

	if (size < 1) {
		q->zero++;
		return;
	}
	i = (int)ceil(log(fmin(size, 0x1p63)) / LOG_GAMMA);
	if (i >= HPS_QUANTILE_BUCKETS)
		i = HPS_QUANTILE_BUCKETS - 1;
	if (x < 0)
		q->negative[i]++;
	else
		q->positive[i]++;
}

/* The middle of bucket i, whose values lie in (1.02^(i-1), 1.02^i]. */
static double bucket(int i)
{
	return rint(2 * exp(i * LOG_GAMMA) / 2.02);
}

double hps_quantiles_at(const struct hps_quantiles *q, uint64_t n, double p)
{
	double rank = n > 0 ? p * ((double)n - 1) : 0;
	uint64_t below = 0;

	for (int i = HPS_QUANTILE_BUCKETS - 1; i >= 0; i--) {
		below += q->negative[i];
		if ((double)below > rank)
			return -bucket(i);
	}
	below += q->zero;
	if ((double)below > rank)
		return 0;
	for (int i = 0; i < HPS_QUANTILE_BUCKETS; i++) {
		below += q->positive[i];
		if ((double)below > rank)
			return bucket(i);
	}
	return 0;
}
