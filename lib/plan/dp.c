/* At one cycle time tau, which cuts and types are cheapest, sums over stages left out? Backward
 * dynamic programming over (cut, class before it, class after it); exact.h, item 2. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact_int.h"

enum hps_status hps_dp_init(struct hps_dp *d, const struct hps_problem *p, struct hps_err *err)
{
	memset(d, 0, sizeof(*d));
	d->p = p;
	d->L = p->cost->n_layers;
	d->C = p->cost->n_classes;
	d->counts_first = hps_cost_first_matters(p->cost);
	d->node = hps_calloc(((size_t)d->L + 1) * d->C * d->C, sizeof(*d->node), err);
	d->type_of_class = hps_calloc(d->C, sizeof(*d->type_of_class), err);
	d->left = hps_calloc(d->C, sizeof(*d->left), err);
	if (!d->node || !d->type_of_class || !d->left) {
		hps_dp_release(d);
		return HPS_MEMORY;
	}
	for (uint32_t t = 0; t < p->cost->n_types; t++)
		d->type_of_class[p->cost->type[t].link_class] = t;
	return HPS_OK;
}

void hps_dp_release(struct hps_dp *d)
{
	free(d->node);
	free(d->type_of_class);
	free(d->left);
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

	/* A table may speed up a longer stage less, never make it faster; but its best k is not
	 * known without looking. */
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

/* The way on from a node whose last stage was on `type`. */
static const struct hps_dp_way *way_after(const struct hps_dp *d, const struct hps_dp_node *node,
					  uint32_t type)
{
	return &node->way[d->p->merge && node->way[0].type == type];
}

/* Stages on t from q1 to q2, for all classes around it. */
static void extend(struct hps_dp *d, const struct hps_dp_query *q, uint32_t q1, uint32_t q2,
		   uint32_t t, const struct hps_stage_time *bare, const double *left)
{
	const struct hps_cost *c = d->p->cost;
	uint32_t mine = c->type[t].link_class;
	uint32_t rights = q2 < d->L ? d->C : 1, lefts = q1 ? d->C : 1;

	for (uint32_t cn = 0; cn < rights; cn++) {
		const struct hps_dp_way *rest = NULL;
		double right = 0;

		if (q2 < d->L) {
			rest = way_after(d, hps_dp_at(d, q2, mine, cn), t);
			if (isinf(rest->value))
				continue;
			right = hps_cost_cut(c, q2, t, (int)d->type_of_class[cn]);
		}
		for (uint32_t cl = 0; cl < lefts; cl++) {
			struct hps_dp_stage st = hps_dp_stage(d, q, bare, left[cl] + right);
			struct hps_dp_way w = { .type = t,
						.next = q2,
						.next_class = cn,
						.k = st.k,
						.value = st.value,
						.units = st.k,
						.stages = 1 };

			if (!st.k)
				continue;
			if (rest) {
				w.value += rest->value;
				w.units += rest->units;
				w.stages += rest->stages;
			}
			offer(hps_dp_at(d, q1, cl, mine), &w);
		}
	}
}

double hps_dp_solve(struct hps_dp *d, const struct hps_dp_query *q)
{
	const struct hps_cost *c = d->p->cost;
	double best = INFINITY;

	for (size_t i = 0; i < ((size_t)d->L + 1) * d->C * d->C; i++)
		d->node[i].way[0] = d->node[i].way[1] =
			(struct hps_dp_way){ .value = INFINITY, .type = UINT32_MAX };
	for (uint32_t q1 = d->L; q1-- > 0;) {
		for (uint32_t t = 0; t < c->n_types; t++) {
			for (uint32_t cl = 0; cl < d->C; cl++)
				d->left[cl] =
					q1 ? hps_cost_cut(c, q1, t, (int)d->type_of_class[cl]) : 0;
			for (uint32_t q2 = q1 + 1; q2 <= d->L; q2++) {
				struct hps_stage_time bare =
					hps_cost_stage_bare(c, q1, q2 - 1, t, q->first);

				if (hps_dp_too_long(d, q, &bare))
					break;
				extend(d, q, q1, q2, t, &bare, d->left);
			}
		}
	}
	for (uint32_t cn = 0; cn < d->C; cn++)
		best = fmin(best, hps_dp_at(d, 0, 0, cn)->way[0].value);
	return best;
}

uint32_t hps_dp_plan(const struct hps_dp *d, struct hps_span *stage)
{
	const struct hps_dp_way *w = &hps_dp_at(d, 0, 0, 0)->way[0];
	uint32_t n = 0, at = 0;

	for (uint32_t cn = 1; cn < d->C; cn++)
		if (way_better(&hps_dp_at(d, 0, 0, cn)->way[0], w))
			w = &hps_dp_at(d, 0, 0, cn)->way[0];
	for (;;) {
		uint32_t mine = d->p->cost->type[w->type].link_class;

		stage[n++] = (struct hps_span){ at, w->next - 1, w->type, w->k };
		at = w->next;
		if (at == d->L)
			return n;
		w = way_after(d, hps_dp_at(d, at, mine, w->next_class), w->type);
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
