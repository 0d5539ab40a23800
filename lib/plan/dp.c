/* At one cycle time tau, which cuts and types are cheapest, sums over stages left out? Backward
 * dynamic programming over (cut, class of its bandwidth); exact.h, item 2. Types are tried in the
 * order of what they cost at least, so that few of many are. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact_int.h"

enum { MAX_ORDER = 1 << 24 };

/* The number of layers q1 .. q2-1 among all such pairs. */
static size_t pair(const struct hps_dp *d, size_t q1, size_t q2)
{
	return q1 * d->L - q1 * (q1 - 1) / 2 + q2 - q1 - 1;
}

struct rank {
	double value;
	uint16_t type;
};

static int by_value(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->type - y->type;
}

/* Types by price * b for each pair. Without (too many, no memory) all types are tried. */
static void rank_types(struct hps_dp *d)
{
	const struct hps_cost *c = d->p->cost;
	size_t pairs = (size_t)d->L * (d->L + 1) / 2;
	struct rank *rank;

	if (c->n_types < 3 || d->p->merge || pairs > MAX_ORDER / c->n_types)
		return;
	rank = hps_calloc(c->n_types, sizeof(*rank), NULL);
	d->order = hps_calloc(pairs * c->n_types, sizeof(*d->order), NULL);
	for (uint32_t q1 = 0; rank && d->order && q1 < d->L; q1++) {
		for (uint32_t q2 = q1 + 1; q2 <= d->L; q2++) {
			uint16_t *order = d->order + pair(d, q1, q2) * c->n_types;

			for (uint32_t t = 0; t < c->n_types; t++) {
				struct hps_stage_time s = hps_cost_stage_bare(c, q1, q2 - 1, t, 1);

				rank[t] = (struct rank){ c->type[t].price * s.b, (uint16_t)t };
			}
			qsort(rank, c->n_types, sizeof(*rank), by_value);
			for (uint32_t t = 0; t < c->n_types; t++)
				order[t] = rank[t].type;
		}
	}
	if (!rank) {
		free(d->order);
		d->order = NULL;
	}
	free(rank);
}

enum hps_status hps_dp_init(struct hps_dp *d, const struct hps_problem *p, struct hps_err *err)
{
	memset(d, 0, sizeof(*d));
	d->p = p;
	d->L = p->cost->n_layers;
	d->C = p->cost->n_classes;
	d->counts_first = hps_cost_first_matters(p->cost);
	d->node = hps_calloc(((size_t)d->L + 1) * d->C, sizeof(*d->node), err);
	d->type_of_class = hps_calloc(d->C, sizeof(*d->type_of_class), err);
	d->found = hps_calloc((size_t)d->C * d->C, sizeof(*d->found), err);
	if (!d->node || !d->type_of_class || !d->found) {
		hps_dp_release(d);
		return HPS_MEMORY;
	}
	for (uint32_t t = 0; t < p->cost->n_types; t++)
		d->type_of_class[p->cost->type[t].link_class] = t;
	rank_types(d);
	return HPS_OK;
}

void hps_dp_release(struct hps_dp *d)
{
	free(d->node);
	free(d->type_of_class);
	free(d->order);
	free(d->found);
	memset(d, 0, sizeof(*d));
}

struct hps_dp_stage hps_dp_stage(const struct hps_dp *d, const struct hps_dp_query *q,
				 const struct hps_stage_time *bare, double cuts)
{
	const struct hps_cost *c = d->p->cost;
	const struct hps_cost_type *t = &c->type[bare->type];
	struct hps_dp_stage out = { 0, 0 };
	struct hps_stage_time st = *bare;
	bool first = d->counts_first && st.first == 0;

	st.d += cuts;
	if (q->first_open && st.first && d->counts_first) {
		st.busy = UINT32_MAX;
		st.max_units = t->limit;
	}
	out.k = hps_stage_units(c, &st, q->tau, first ? q->first : 1);
	if (first && !q->first_open && out.k != q->first)
		out.k = 0;
	if (out.k)
		out.value = t->price * (q->weights ? hps_stage_weight(c, &st, out.k) : out.k);
	return out;
}

bool hps_dp_too_long(const struct hps_dp *d, const struct hps_dp_query *q,
		     const struct hps_stage_time *bare)
{
	const struct hps_cost *c = d->p->cost;

	/* Which k is best by a table is not known without looking. */
	if (!hps_stage_regular(c, bare))
		return false;
	return bare->a + bare->b / c->type[bare->type].limit > q->tau * (1 + HPS_TIME_EPS);
}

static bool way_better(const struct hps_dp_way *a, const struct hps_dp_way *b)
{
	double eps = HPS_TIME_EPS * fabs(b->value);

	if (a->value < b->value - eps || (isinf(b->value) && !isinf(a->value)))
		return true;
	if (isinf(a->value) || a->value > b->value + eps)
		return false;
	return a->units != b->units ? a->units < b->units : a->stages < b->stages;
}

/* Keep the best way, and the best of another type. */
static void offer(struct hps_dp_node *node, const struct hps_dp_way *w)
{
	if (way_better(w, &node->way[0])) {
		if (node->way[0].type != w->type)
			node->way[1] = node->way[0];
		node->way[0] = *w;
	} else if (w->type != node->way[0].type && way_better(w, &node->way[1])) {
		node->way[1] = *w;
	}
}

/* One stage on a type, for all classes of its cuts. */
static void extend(struct hps_dp *d, const struct hps_dp_query *q, uint32_t q1, uint32_t q2,
		   const struct hps_stage_time *bare)
{
	const struct hps_cost *c = d->p->cost;
	uint32_t t = bare->type, lefts = hps_dp_classes(d, q1, t),
		 rights = hps_dp_classes(d, q2, t);

	for (uint32_t wr = 0; wr < rights; wr++) {
		const struct hps_dp_way *rest = NULL;
		double right = 0;

		if (q2 < d->L) {
			rest = hps_dp_after(d, hps_dp_at(d, q2, wr), t);
			if (isinf(rest->value))
				continue;
			right = hps_cost_cut(c, q2, t, (int)d->type_of_class[wr]);
		}
		for (uint32_t wl = 0; wl < lefts; wl++) {
			double left = q1 ? hps_cost_cut(c, q1, t, (int)d->type_of_class[wl]) : 0;
			struct hps_dp_stage st = hps_dp_stage(d, q, bare, left + right);
			struct hps_dp_way w = { .type = t,
						.next = q2,
						.next_class = wr,
						.k = st.k,
						.value = st.value,
						.units = st.k,
						.stages = 1 };

			if (!st.k)
				continue;
			d->found[wl * d->C + wr] = fmin(d->found[wl * d->C + wr], st.value);
			if (rest) {
				w.value += rest->value;
				w.units += rest->units;
				w.stages += rest->stages;
			}
			offer(hps_dp_at(d, q1, wl), &w);
		}
	}
}

/* The dearest that a stage on t may be and still matter: what has been found for its cuts. */
static double dearest(const struct hps_dp *d, uint32_t q1, uint32_t q2, uint32_t t)
{
	uint32_t lefts = hps_dp_classes(d, q1, t), rights = hps_dp_classes(d, q2, t);
	double most = 0;

	for (uint32_t wl = 0; wl < lefts; wl++)
		for (uint32_t wr = 0; wr < rights; wr++)
			most = fmax(most, d->found[wl * d->C + wr]);
	return most * (1 + HPS_TIME_EPS);
}

/* All stages of layers q1 .. q2-1. */
static void extend_all(struct hps_dp *d, const struct hps_dp_query *q, uint32_t q1, uint32_t q2)
{
	const struct hps_cost *c = d->p->cost;
	const uint16_t *order = d->order ? d->order + pair(d, q1, q2) * c->n_types : NULL;

	for (uint32_t i = 0; i < d->C * d->C; i++)
		d->found[i] = INFINITY;
	for (uint32_t i = 0; i < c->n_types; i++) {
		uint32_t t = order ? order[i] : i;
		struct hps_stage_time bare = hps_cost_stage_bare(c, q1, q2 - 1, t, q->first);

		/* price * k >= price * b / tau, price * k ET(k) >= price * b, and b at k_first 1 is
		 * the order's. */
		if (order && hps_stage_regular(c, &bare)) {
			double b =
				q->first == 1 ? bare.b : hps_cost_stage_bare(c, q1, q2 - 1, t, 1).b;

			if (c->type[t].price * (q->weights ? b : b / q->tau) >
			    dearest(d, q1, q2, t))
				continue;
		}
		if (!hps_dp_too_long(d, q, &bare))
			extend(d, q, q1, q2, &bare);
	}
}

double hps_dp_solve(struct hps_dp *d, const struct hps_dp_query *q)
{
	for (size_t i = 0; i < ((size_t)d->L + 1) * d->C; i++)
		d->node[i].way[0] = d->node[i].way[1] =
			(struct hps_dp_way){ .value = INFINITY, .type = UINT32_MAX };
	for (uint32_t q1 = d->L; q1-- > 0;)
		for (uint32_t q2 = q1 + 1; q2 <= d->L; q2++)
			extend_all(d, q, q1, q2);
	return hps_dp_at(d, 0, 0)->way[0].value;
}

uint32_t hps_dp_plan(const struct hps_dp *d, struct hps_span *stage)
{
	const struct hps_dp_way *w = &hps_dp_at(d, 0, 0)->way[0];
	uint32_t n = 0, at = 0;

	for (;;) {
		stage[n++] = (struct hps_span){ at, w->next - 1, w->type, w->k };
		at = w->next;
		if (at == d->L)
			return n;
		w = hps_dp_after(d, hps_dp_at(d, at, w->next_class), w->type);
	}
}

double hps_dp_servers(const struct hps_dp *d, const struct hps_dp_query *q, double dense_bytes)
{
	const struct hps_cost *c = d->p->cost;
	uint32_t shards;

	if (!hps_cost_shards(c, dense_bytes, q->tau, &shards))
		return INFINITY;
	return c->ps.price * (q->weights ? hps_cost_ps_time(c, dense_bytes, 1) : shards);
}
