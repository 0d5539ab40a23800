/* At one cycle time tau, which plan is cheapest when units of a type, load of the servers or work
 * on shared cores are limited over all stages? Labels with dominance, bounded by the nodes of
 * dp.c; exact.h, item 3. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact_int.h"

enum { FIRST_LABELS = 1 << 10, MAX_LABELS = 1 << 20, NO_LABEL = UINT32_MAX };

/* A way from layer 0 to a cut. */
struct label {
	double value;	     /* without the servers */
	double toll;	     /* that its units pay */
	double dense, cores; /* sums that are watched; 0 else */
	uint32_t used[HPS_MAX_SUMS];
	uint32_t units;
	uint32_t prev; /* label at the cut before */
	uint32_t type, first, k;
};

struct bucket {
	uint32_t *label;
	uint32_t n, room;
};

struct labels {
	const struct hps_dp *d;
	const struct hps_dp_query *q;
	const struct hps_sums *sums;
	struct label *all;
	uint32_t n, room;
	struct bucket *bucket; /* as hps_dp's nodes */
	double ceiling;
	uint32_t best; /* the label that ends at L */
	double best_value;
	bool full;
};

static struct bucket *bucket_at(struct labels *s, uint32_t q, uint32_t w)
{
	return &s->bucket[(size_t)q * s->d->C + w];
}

/* Any completion of b completes a, at no more. */
static bool dominates(const struct labels *s, const struct label *a, const struct label *b)
{
	double eps = HPS_TIME_EPS * fabs(b->value);

	if (a->value > b->value + eps || (a->value > b->value - eps && a->units > b->units))
		return false;
	if (s->d->p->merge && a->type != b->type)
		return false;
	/* Sums of the same layers in another order differ in the last bits. */
	if (a->dense > b->dense * (1 + HPS_TIME_EPS) || a->cores > b->cores * (1 + HPS_TIME_EPS))
		return false;
	for (uint32_t i = 0; i < s->sums->n_types; i++)
		if (a->used[i] > b->used[i])
			return false;
	return true;
}

static bool fits(const struct labels *s, const struct label *l)
{
	const struct hps_cost *c = s->d->p->cost;

	for (uint32_t i = 0; i < s->sums->n_types; i++)
		if (l->used[i] > c->type[s->sums->type[i]].limit)
			return false;
	return !s->sums->cores ||
	       hps_cost_cores_time(c, l->cores, l->dense) <= s->q->tau * (1 + HPS_TIME_EPS);
}

/* A new label number, or NO_LABEL: full, or no memory (then *rc). */
static uint32_t new_label(struct labels *s, const struct label *l, enum hps_status *rc,
			  struct hps_err *err)
{
	if (s->n == s->room) {
		uint32_t room = 2 * s->room;
		void *p = s->all;

		if (room > MAX_LABELS) {
			s->full = true;
			return NO_LABEL;
		}
		*rc = hps_realloc(&p, room, sizeof(*s->all), err);
		if (*rc)
			return NO_LABEL;
		s->all = p;
		s->room = room;
	}
	s->all[s->n] = *l;
	return s->n++;
}

static enum hps_status insert(struct labels *s, struct bucket *b, const struct label *l,
			      struct hps_err *err)
{
	enum hps_status rc = HPS_OK;
	uint32_t kept = 0, id;

	for (uint32_t i = 0; i < b->n; i++)
		if (dominates(s, &s->all[b->label[i]], l))
			return HPS_OK;
	for (uint32_t i = 0; i < b->n; i++)
		if (!dominates(s, l, &s->all[b->label[i]]))
			b->label[kept++] = b->label[i];
	b->n = kept;
	if (b->n == b->room) {
		uint32_t room = b->room ? 2 * b->room : 8;
		void *p = b->label;

		rc = hps_realloc(&p, room, sizeof(*b->label), err);
		if (rc)
			return rc;
		b->label = p;
		b->room = room;
	}
	id = new_label(s, l, &rc, err);
	if (id != NO_LABEL)
		b->label[b->n++] = id;
	return rc;
}

/* The end of a plan: is it the best? */
static enum hps_status finish(struct labels *s, const struct label *l, struct hps_err *err)
{
	double value = l->value + hps_dp_servers(s->d, s->q, l->dense);
	enum hps_status rc = HPS_OK;
	uint32_t id;

	if (isinf(value) || value > s->ceiling * (1 + HPS_TIME_EPS))
		return HPS_OK;
	if (s->best != NO_LABEL && value > s->best_value * (1 - HPS_TIME_EPS) &&
	    l->units >= s->all[s->best].units)
		return HPS_OK;
	id = new_label(s, l, &rc, err);
	if (id == NO_LABEL)
		return rc;
	s->best = id;
	s->best_value = s->ceiling = value;
	return HPS_OK;
}

/* One stage after each label of a bucket, its cuts at classes wl and wr. */
static enum hps_status extend(struct labels *s, const struct bucket *from, uint32_t wl, uint32_t q2,
			      uint32_t wr, const struct hps_stage_time *bare, double cuts,
			      struct hps_err *err)
{
	const struct hps_dp *d = s->d;
	const struct hps_cost *c = d->p->cost;
	uint32_t t = bare->type;
	struct hps_dp_stage st = hps_dp_stage(d, s->q, bare, cuts);
	struct hps_stage_load load;
	double rest = 0;

	if (q2 < d->L)
		rest = hps_dp_after(d, hps_dp_at(d, q2, wr), t)->value;
	if (!st.k || isinf(rest))
		return HPS_OK;
	load = hps_cost_load(c, bare, bare->first ? (int)d->type_of_class[wl] : -1, st.k);
	for (uint32_t i = 0; i < (from ? from->n : 1); i++) {
		struct label l = { .prev = NO_LABEL };
		enum hps_status rc;

		if (from) {
			if (d->p->merge && s->all[from->label[i]].type == t)
				continue;
			l = s->all[from->label[i]];
			l.prev = from->label[i];
		}
		l.value += st.value;
		l.toll += st.toll;
		l.units += st.k;
		l.type = t;
		l.first = bare->first;
		l.k = st.k;
		if (s->sums->dense)
			l.dense += load.dense_bytes;
		if (s->sums->cores)
			l.cores += load.cores_s;
		for (uint32_t j = 0; j < s->sums->n_types; j++)
			if (s->sums->type[j] == t)
				l.used[j] += st.k;
		if (!fits(s, &l) ||
		    l.value + l.toll + rest - d->toll_back + hps_dp_servers(d, s->q, l.dense) >
			    s->ceiling * (1 + HPS_TIME_EPS))
			continue;
		rc = q2 < d->L ? insert(s, bucket_at(s, q2, wr), &l, err) : finish(s, &l, err);
		if (rc)
			return rc;
	}
	return HPS_OK;
}

/* All stages on t that begin at q1 with the cut there at class wl. */
static enum hps_status extend_all(struct labels *s, const struct bucket *from, uint32_t q1,
				  uint32_t wl, uint32_t t, struct hps_err *err)
{
	const struct hps_dp *d = s->d;
	const struct hps_cost *c = d->p->cost;
	double left = q1 ? hps_cost_cut(c, q1, t, (int)d->type_of_class[wl]) : 0;

	for (uint32_t q2 = q1 + 1; q2 <= d->L; q2++) {
		struct hps_stage_time bare = hps_cost_stage_bare(c, q1, q2 - 1, t, s->q->first);

		if (hps_dp_too_long(d, s->q, &bare))
			break;
		for (uint32_t wr = 0; wr < hps_dp_classes(d, q2, t); wr++) {
			double right = 0;
			enum hps_status rc;

			if (q2 < d->L)
				right = hps_cost_cut(c, q2, t, (int)d->type_of_class[wr]);
			rc = extend(s, from, wl, q2, wr, &bare, left + right, err);
			if (rc)
				return rc;
		}
	}
	return HPS_OK;
}

static enum hps_status run(struct labels *s, struct hps_search *search, bool *stopped,
			   struct hps_err *err)
{
	const struct hps_dp *d = s->d;
	enum hps_status rc = HPS_OK;

	for (uint32_t t = 0; !rc && t < d->p->cost->n_types; t++)
		rc = extend_all(s, NULL, 0, 0, t, err);
	for (uint32_t q = 1; !rc && q < d->L; q++) {
		for (uint32_t t = 0; t < d->p->cost->n_types; t++) {
			for (uint32_t wl = 0; !rc && wl < hps_dp_classes(d, q, t); wl++) {
				struct bucket *b = bucket_at(s, q, wl);

				if (s->full || hps_search_halted(search)) {
					*stopped = true;
					return HPS_OK;
				}
				if (b->n)
					rc = extend_all(s, b, q, wl, t, err);
			}
		}
	}
	return rc;
}

static uint32_t trace(const struct labels *s, struct hps_span *stage)
{
	uint32_t n = 0, last = s->d->L - 1;

	for (uint32_t id = s->best; id != NO_LABEL; id = s->all[id].prev)
		n++;
	for (uint32_t id = s->best, i = n; id != NO_LABEL; id = s->all[id].prev) {
		const struct label *l = &s->all[id];

		stage[--i] = (struct hps_span){ l->first, last, l->type, l->k };
		last = l->first - 1;
	}
	return n;
}

enum hps_status hps_label_solve(const struct hps_dp *d, const struct hps_dp_query *q,
				const struct hps_sums *sums, double ceiling,
				struct hps_search *search, struct hps_span *stage, uint32_t *n,
				double *value, enum hps_label_end *end, struct hps_err *err)
{
	struct labels s = { .d = d, .q = q, .sums = sums, .ceiling = ceiling, .best = NO_LABEL };
	size_t nodes = ((size_t)d->L + 1) * d->C;
	bool stopped = false;
	enum hps_status rc;

	s.room = FIRST_LABELS;
	s.all = hps_calloc(s.room, sizeof(*s.all), err);
	s.bucket = hps_calloc(nodes, sizeof(*s.bucket), err);
	if (!s.all || !s.bucket) {
		free(s.all);
		free(s.bucket);
		return HPS_MEMORY;
	}
	rc = run(&s, search, &stopped, err);
	*end = stopped || s.full    ? HPS_LABEL_STOPPED
	       : s.best == NO_LABEL ? HPS_LABEL_NONE
				    : HPS_LABEL_FOUND;
	*value = INFINITY;
	if (!rc && s.best != NO_LABEL) {
		*n = trace(&s, stage);
		*value = s.best_value;
	}
	for (size_t i = 0; i < nodes; i++)
		free(s.bucket[i].label);
	free(s.bucket);
	free(s.all);
	return rc;
}
