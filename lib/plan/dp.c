/* At one cycle time tau, which cuts and types are cheapest, sums over stages left out? Backward
 * dynamic programming over (cut, class of its bandwidth); exact.h, item 2. Types are tried in the
 * order of what they cost at least, so that few of many are. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact_int.h"

enum { MAX_ORDER = 1 << 24, MAX_CELLS = 1 << 20 };

/* The number of layers q1 .. q2-1 among all such pairs. */
static size_t pair(const struct hps_dp *d, size_t q1, size_t q2)
{
	return q1 * d->L - q1 * (q1 - 1) / 2 + q2 - q1 - 1;
}

static int by_value(const void *a, const void *b)
{
	const struct hps_dp_rank *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->type < y->type ? -1 : 1;
}

/* Types by price * b for each pair. Without (too many, no memory) all types are tried. */
static void rank_types(struct hps_dp *d)
{
	const struct hps_cost *c = d->p->cost;
	size_t pairs = (size_t)d->L * (d->L + 1) / 2;

	if (c->n_types < 3 || d->p->merge || pairs > MAX_ORDER / c->n_types)
		return;
	d->rank = hps_calloc(pairs * c->n_types, sizeof(*d->rank), NULL);
	for (uint32_t q1 = 0; d->rank && q1 < d->L; q1++) {
		for (uint32_t q2 = q1 + 1; q2 <= d->L; q2++) {
			struct hps_dp_rank *rank = d->rank + pair(d, q1, q2) * c->n_types;

			for (uint32_t t = 0; t < c->n_types; t++) {
				struct hps_stage_time s = hps_cost_stage_bare(c, q1, q2 - 1, t, 1);

				/* Nothing is known of a table without looking. */
				rank[t].value =
					hps_stage_regular(c, &s) ? c->type[t].price * s.b : 0;
				rank[t].type = t;
			}
			qsort(rank, c->n_types, sizeof(*rank), by_value);
		}
	}
}

/* Room for the stages of one query, or, where they are too many, of one at a time. */
static enum hps_status make_room(struct hps_dp *d, struct hps_err *err)
{
	size_t each = (size_t)d->C * d->C, pairs = (size_t)d->L * (d->L + 1) / 2, n = 1;

	d->knows_all = pairs <= MAX_CELLS / d->p->cost->n_types / each;
	if (d->knows_all)
		n = pairs * d->p->cost->n_types;
	d->known = hps_calloc(n, sizeof(*d->known), err);
	d->cell = hps_calloc(n * each, sizeof(*d->cell), err);
	return d->known && d->cell ? HPS_OK : HPS_MEMORY;
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
	d->found = hps_calloc((size_t)d->C * (d->C + 1), sizeof(*d->found), err);
	d->toll = hps_calloc(p->cost->n_types, sizeof(*d->toll), err);
	if (!d->node || !d->type_of_class || !d->found || !d->toll || make_room(d, err)) {
		hps_dp_release(d);
		return HPS_MEMORY;
	}
	d->dearest = d->found + (size_t)d->C * d->C;
	for (uint32_t t = 0; t < p->cost->n_types; t++)
		d->type_of_class[p->cost->type[t].link_class] = t;
	rank_types(d);
	return HPS_OK;
}

void hps_dp_release(struct hps_dp *d)
{
	free(d->node);
	free(d->type_of_class);
	free(d->rank);
	free(d->found);
	free(d->toll);
	free(d->known);
	free(d->cell);
	memset(d, 0, sizeof(*d));
}

struct hps_dp_stage hps_dp_stage(const struct hps_dp *d, const struct hps_dp_query *q,
				 const struct hps_stage_time *bare, double cuts)
{
	const struct hps_cost *c = d->p->cost;
	const struct hps_cost_type *t = &c->type[bare->type];
	struct hps_dp_stage out = { 0 };
	struct hps_stage_time st = *bare;
	bool first = d->counts_first && st.first == 0;

	st.d += cuts;
	if (q->first_open && st.first && d->counts_first) {
		double busy = (double)c->opt.micro_batches * q->first_most;

		st.busy = q->first_most && busy < UINT32_MAX ? (uint32_t)busy : UINT32_MAX;
		st.max_units = st.busy < t->limit ? st.busy : t->limit;
	}
	out.k = hps_stage_units(c, &st, q->tau, first ? q->first : 1);
	if (first && (q->first_open ? q->first_most && out.k > q->first_most : out.k != q->first))
		out.k = 0;
	if (out.k)
		out.value = t->price * (q->weights ? hps_stage_weight(c, &st, out.k) : out.k);
	out.toll = d->toll[bare->type] * out.k;
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

/* A stage on the way q1 .. q2 at classes wl, wr. */
static void take(struct hps_dp *d, uint32_t q1, uint32_t wl, uint32_t q2, uint32_t wr,
		 const struct hps_dp_way *rest, uint32_t t, const struct hps_dp_cell *cell)
{
	struct hps_dp_way w = { .type = t,
				.next = q2,
				.next_class = wr,
				.k = cell->k,
				.value = cell->value + d->toll[t] * cell->k,
				.units = cell->k,
				.stages = 1 };

	if (w.value < d->found[wl * d->C + wr]) {
		d->found[wl * d->C + wr] = w.value;
		for (uint32_t i = wl > wr ? wl : wr; i < d->C; i++)
			d->dearest[i] = -1;
	}
	if (rest) {
		w.value += rest->value;
		w.units += rest->units;
		w.stages += rest->stages;
	}
	offer(hps_dp_at(d, q1, wl), &w);
}

static double cut_at(const struct hps_dp *d, uint32_t q, uint32_t t, uint32_t w)
{
	return q && q < d->L ? hps_cost_cut(d->p->cost, q, t, (int)d->type_of_class[w]) : 0;
}

/* What layers q1 .. q2-1 need on a type, for all classes of their cuts, into known and cell. */
static void look_up(struct hps_dp *d, const struct hps_dp_query *q, uint32_t q1, uint32_t q2,
		    uint32_t t, struct hps_dp_known *known, struct hps_dp_cell *cell)
{
	uint32_t lefts = hps_dp_classes(d, q1, t), rights = hps_dp_classes(d, q2, t);
	struct hps_stage_time bare = hps_cost_stage_bare(d->p->cost, q1, q2 - 1, t, q->first);
	struct hps_dp_stage fast, slow;

	*known = (struct hps_dp_known){ .query = d->query, .none = true };
	if (hps_dp_too_long(d, q, &bare))
		return;
	fast = hps_dp_stage(d, q, &bare,
			    cut_at(d, q1, t, lefts - 1) + cut_at(d, q2, t, rights - 1));
	if (!fast.k)
		return;
	known->none = false;
	/* Often a stage's cuts do not matter: then all classes are as the fastest. */
	slow = hps_dp_stage(d, q, &bare, cut_at(d, q1, t, 0) + cut_at(d, q2, t, 0));
	known->same = slow.k == fast.k && slow.value == fast.value;
	cell[0] = (struct hps_dp_cell){ fast.value, fast.k };
	for (uint32_t wr = 0; wr < rights && !known->same; wr++) {
		for (uint32_t wl = 0; wl < lefts; wl++) {
			struct hps_dp_stage st = hps_dp_stage(
				d, q, &bare, cut_at(d, q1, t, wl) + cut_at(d, q2, t, wr));

			cell[wl * d->C + wr] = (struct hps_dp_cell){ st.value, st.k };
		}
	}
}

/* One stage on a type, for all classes of its cuts. */
static void extend(struct hps_dp *d, const struct hps_dp_query *q, uint32_t q1, uint32_t q2,
		   uint32_t t)
{
	uint32_t lefts = hps_dp_classes(d, q1, t), rights = hps_dp_classes(d, q2, t);
	size_t at = d->knows_all ? pair(d, q1, q2) * d->p->cost->n_types + t : 0;
	struct hps_dp_known *known = &d->known[at];
	struct hps_dp_cell *cell = &d->cell[at * d->C * d->C];

	if (!d->knows_all || known->query != d->query)
		look_up(d, q, q1, q2, t, known, cell);
	if (known->none)
		return;
	for (uint32_t wr = 0; wr < rights; wr++) {
		const struct hps_dp_way *rest = NULL;

		if (q2 < d->L) {
			rest = hps_dp_after(d, hps_dp_at(d, q2, wr), t);
			if (isinf(rest->value))
				continue;
		}
		for (uint32_t wl = 0; wl < lefts; wl++) {
			const struct hps_dp_cell *c = &cell[known->same ? 0 : wl * d->C + wr];

			if (c->k)
				take(d, q1, wl, q2, wr, rest, t, c);
		}
	}
}

/* The dearest that a stage on t may be and still matter: what has been found for its cuts. Kept
 * for each class until something cheaper is found. */
static double dearest(struct hps_dp *d, uint32_t q1, uint32_t q2, uint32_t t)
{
	double *most = &d->dearest[d->p->cost->type[t].link_class];

	if (*most >= 0)
		return *most;
	*most = 0;
	for (uint32_t wl = 0; wl < hps_dp_classes(d, q1, t); wl++)
		for (uint32_t wr = 0; wr < hps_dp_classes(d, q2, t); wr++)
			if (d->found[wl * d->C + wr] > *most)
				*most = d->found[wl * d->C + wr];
	*most *= 1 + HPS_TIME_EPS;
	return *most;
}

/* All stages of layers q1 .. q2-1. */
static void extend_all(struct hps_dp *d, const struct hps_dp_query *q, uint32_t q1, uint32_t q2)
{
	const struct hps_cost *c = d->p->cost;
	const struct hps_dp_rank *rank = d->rank ? d->rank + pair(d, q1, q2) * c->n_types : NULL;

	for (uint32_t i = 0; i < d->C * d->C; i++)
		d->found[i] = INFINITY;
	for (uint32_t w = 0; w < d->C; w++)
		d->dearest[w] = INFINITY;
	for (uint32_t i = 0; i < c->n_types; i++) {
		uint32_t t = rank ? rank[i].type : i;

		/* price * k >= price * b / tau, price * k ET(k) >= price * b, b is least at k_first
		 * 1, and tolls come on top. */
		if (rank && rank[i].value > (q->weights ? 1 : q->tau) * dearest(d, q1, q2, t))
			continue;
		extend(d, q, q1, q2, t);
	}
}

static bool same_query(const struct hps_dp_query *a, const struct hps_dp_query *b)
{
	return a->tau == b->tau && a->first == b->first && a->first_open == b->first_open &&
	       a->weights == b->weights && a->first_most == b->first_most;
}

double hps_dp_solve(struct hps_dp *d, const struct hps_dp_query *q)
{
	if (!same_query(q, &d->last)) {
		d->last = *q;
		d->query++;
	}
	for (size_t i = 0; i < ((size_t)d->L + 1) * d->C; i++)
		d->node[i].way[0] = d->node[i].way[1] =
			(struct hps_dp_way){ .value = INFINITY, .type = UINT32_MAX };
	for (uint32_t q1 = d->L; q1-- > 0;)
		for (uint32_t q2 = q1 + 1; q2 <= d->L; q2++)
			extend_all(d, q, q1, q2);
	return hps_dp_at(d, 0, 0)->way[0].value - d->toll_back;
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
