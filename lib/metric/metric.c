/* How good are the scores of an evaluation? Gathers them in any order, then sums in the
 * order of rows, so that replicas and their timing leave no trace in the figures.
 * Normalised entropy: He et al., Practical Lessons from Predicting Clicks on Ads, 2014. */
#include "metric/metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "metric/radix.h"

static enum hps_status grow(struct hps_scores *s, size_t n, struct hps_err *err)
{
	size_t cap, need;
	enum hps_status st;

	if (hps_add_size(s->n, n, &need) != 0)
		return hps_err_set(err, HPS_MEMORY, "too many scores");
	if (need <= s->cap)
		return HPS_OK;
	cap = s->cap + s->cap / 2 + 1024;
	if (cap < need)
		cap = need;
	if ((st = hps_realloc((void **)&s->row, cap, sizeof *s->row, err)) != HPS_OK ||
	    (st = hps_realloc((void **)&s->score, cap, sizeof *s->score, err)) != HPS_OK ||
	    (st = hps_realloc((void **)&s->label, cap, sizeof *s->label, err)) != HPS_OK)
		return st;
	s->cap = cap;
	return HPS_OK;
}

enum hps_status hps_scores_add(struct hps_scores *s, const uint64_t *row, const float *score,
			       const float *label, size_t n, struct hps_err *err)
{
	enum hps_status st = grow(s, n, err);

	if (st != HPS_OK)
		return st;
	for (size_t i = 0; i < n; i++) {
		if (label[i] != 0.0f && label[i] != 1.0f)
			return hps_err_set(err, HPS_BAD_INPUT,
					   "row %" PRIu64 ": expected a label 0 or 1, got %g",
					   row[i], (double)label[i]);
		s->row[s->n + i] = row[i];
		s->score[s->n + i] = score[i];
		s->label[s->n + i] = label[i] == 1.0f;
	}
	s->n += n;
	return HPS_OK;
}

/* Sort all three arrays by row; score and label travel as one payload. */
static void sort_rows(struct hps_scores *s, uint64_t *payload, uint64_t *scratch)
{
	size_t n = s->n;

	for (size_t i = 0; i < n; i++) {
		uint32_t bits;

		memcpy(&bits, &s->score[i], sizeof bits);
		payload[i] = (uint64_t)bits << 1 | s->label[i];
	}
	hps_radix_sort(s->row, scratch, payload, scratch + n, n);
	for (size_t i = 0; i < n; i++) {
		uint32_t bits = (uint32_t)(payload[i] >> 1);

		memcpy(&s->score[i], &bits, sizeof bits);
		s->label[i] = payload[i] & 1;
	}
}

static enum hps_status no_row_twice(const struct hps_scores *s, struct hps_err *err)
{
	for (size_t i = 1; i < s->n; i++)
		if (s->row[i] == s->row[i - 1])
			return hps_err_set(err, HPS_BAD_INPUT, "row %" PRIu64 " was scored twice",
					   s->row[i]);
	return HPS_OK;
}

static bool any_nan(const struct hps_scores *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (isnan(s->score[i]))
			return true;
	return false;
}

static bool all_probabilities(const struct hps_scores *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!(s->score[i] >= 0.0f && s->score[i] <= 1.0f))
			return false;
	return true;
}

static void probability_sums(const struct hps_scores *s, struct hps_metrics *m)
{
	double loss = 0, lost = 0, scores = 0, n = (double)s->n, p = (double)m->positives;

	for (size_t i = 0; i < s->n; i++) {
		double q = s->score[i], term, sum;

		scores += q;
		q = fmin(fmax(q, 1e-15), 1 - 1e-15);
		term = s->label[i] ? -log(q) : -log1p(-q);
		sum = loss + term; /* Neumaier's compensation; terms are positive */
		lost += loss >= term ? (loss - sum) + term : (term - sum) + loss;
		loss = sum;
	}
	m->logloss.value = (loss + lost) / n;
	if (m->positives == 0)
		m->calibration.undefined = "no positives";
	else
		m->calibration.value = scores / p;
	if (m->positives == 0 || m->positives == m->rows) {
		m->ne.undefined = "one class only";
	} else {
		double base = p / n;

		m->ne.value = m->logloss.value / -(base * log(base) + (1 - base) * log1p(-base));
	}
}

static void all_undefined(struct hps_metrics *m, const char *why)
{
	m->auc.undefined = m->logloss.undefined = m->ne.undefined = m->calibration.undefined = why;
}

enum hps_status hps_scores_metrics(struct hps_scores *s, struct hps_metrics *out,
				   struct hps_err *err)
{
	struct hps_metrics m = { .rows = s->n };
	uint64_t *payload = hps_calloc(s->n, 8, err), *scratch = hps_calloc(s->n, 16, err);
	enum hps_status st = HPS_MEMORY;

	if (payload == NULL || scratch == NULL)
		goto out;
	sort_rows(s, payload, scratch);
	if ((st = no_row_twice(s, err)) != HPS_OK)
		goto out;
	for (size_t i = 0; i < s->n; i++)
		m.positives += s->label[i];
	if (s->n == 0) {
		all_undefined(&m, "no rows");
	} else if (any_nan(s)) {
		all_undefined(&m, "a score is not a number");
	} else {
		for (size_t i = 0; i < s->n; i++)
			payload[i] = hps_auc_pack(s->score[i], s->label[i]);
		if ((st = hps_auc_packed(payload, s->n, &m.auc, err)) != HPS_OK)
			goto out;
		if (all_probabilities(s))
			probability_sums(s, &m);
		else
			m.logloss.undefined = m.ne.undefined = m.calibration.undefined =
				"scores are not probabilities";
	}
	*out = m;
out:
	free(payload);
	free(scratch);
	return st;
}

void hps_scores_release(struct hps_scores *s)
{
	free(s->row);
	free(s->score);
	free(s->label);
	*s = (struct hps_scores){ 0 };
}
