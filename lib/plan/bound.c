/* How good can a plan be at best? A quick lower bound: the sweep of exact.h over the relaxed
 * problem whose plans keep no sums over stages.
 *
 * A relaxed plan has e = the largest of its ETs and of PT without dense bytes, which is no more
 * than the true cycle, and the price of its units and of the shards that such a PT needs, no more
 * than the true price. So items 1, 2, 4, 5 and 6 of exact.h hold with e in place of e(p), and the
 * relaxed optimum bounds the true one. A plan that is known is where the sweep begins: what cannot
 * be below it need not be looked at, and the bound is then its own cost. With many link classes
 * every neighbour counts as the fastest, which makes no stage slower. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact_int.h"

/* Stage times looked at in all, and in one solution of a fixed tau: 40 to 60 ns each. */
#define MAX_WORK      1e7
#define MAX_WORK_EACH 1e6

struct bounding {
	const struct hps_problem *p;
	struct hps_problem open; /* p with one link class, where there are many */
	struct hps_cost cost;
	struct hps_cost_type *type;
	struct hps_dp dp;
	struct hps_span *stage; /* L */
	double work_each, work;
	double best; /* by objective, the least of what search found and of relaxed plans */
};

static double per_solution(const struct hps_cost *c)
{
	double L = c->n_layers, C = c->n_classes;

	return L * (L + 1) / 2 * c->n_types * C * C;
}

/* All types in one class, whose member is the one with the fastest link. */
static enum hps_status join_classes(struct bounding *b, struct hps_err *err)
{
	const struct hps_cost *c = b->p->cost;
	uint32_t fastest = 0;

	b->type = hps_calloc(c->n_types, sizeof(*b->type), err);
	if (!b->type)
		return HPS_MEMORY;
	memcpy(b->type, c->type, c->n_types * sizeof(*b->type));
	for (uint32_t t = 0; t < c->n_types; t++) {
		b->type[t].link_class = 0;
		if (b->type[t].bandwidth > b->type[fastest].bandwidth)
			fastest = t;
	}
	b->cost = *c;
	b->cost.type = b->type;
	b->cost.n_classes = 1;
	b->open = *b->p;
	b->open.cost = &b->cost;
	b->p = &b->open;
	if (hps_dp_init(&b->dp, b->p, err))
		return HPS_MEMORY;
	b->dp.type_of_class[0] = fastest;
	return HPS_OK;
}

static enum hps_status start(struct bounding *b, const struct hps_search *search,
			     struct hps_err *err)
{
	memset(b, 0, sizeof(*b));
	b->p = search->problem;
	b->best = search->best_trial.objective;
	b->stage = hps_calloc(b->p->cost->n_layers, sizeof(*b->stage), err);
	if (!b->stage)
		return HPS_MEMORY;
	if (per_solution(b->p->cost) > MAX_WORK_EACH) {
		if (join_classes(b, err))
			return HPS_MEMORY;
	} else if (hps_dp_init(&b->dp, b->p, err)) {
		return HPS_MEMORY;
	}
	b->work_each = per_solution(b->p->cost);
	return HPS_OK;
}

static bool spent(const struct bounding *b)
{
	return b->work > MAX_WORK;
}

static double solve(struct bounding *b, const struct hps_dp_query *q)
{
	b->work += b->work_each;
	return hps_dp_solve(&b->dp, q) + hps_dp_servers(&b->dp, q, 0);
}

/* For all plans with a cycle up to tau. */
static double rest(struct bounding *b, double tau, uint32_t first, bool first_open)
{
	bool by_cost = b->p->objective == HPS_COST_PER_SAMPLE;
	struct hps_dp_query q = { tau, first, first_open, by_cost };

	return solve(b, &q) / (by_cost ? 3600 : 1);
}

/* e of the relaxed plan that was just found for tau. */
static double cycle(struct bounding *b, double tau)
{
	const struct hps_cost *c = b->p->cost;
	uint32_t n = hps_dp_plan(&b->dp, b->stage), shards = 0;
	const struct hps_span *s = b->stage;
	double e;

	hps_cost_shards(c, 0, tau, &shards);
	e = hps_cost_ps_time(c, 0, shards);
	for (uint32_t i = 0; i < n; i++) {
		struct hps_stage_time st =
			hps_cost_stage_bare(c, s[i].first, s[i].last, s[i].type, s[0].units);
		uint32_t left = b->dp.type_of_class[i ? c->type[s[i - 1].type].link_class : 0];

		if (i)
			st.d += hps_cost_cut(c, s[i].first, s[i].type, (int)left);
		if (i + 1 < n)
			st.d += hps_cost_cut(
				c, s[i + 1].first, s[i].type,
				(int)b->dp.type_of_class[c->type[s[i + 1].type].link_class]);
		e = fmax(e, hps_stage_et(c, &st, s[i].units));
	}
	return e;
}

/* All cycle times for one k_first; *left bounds what was not looked at, INFINITY if nothing. */
static void sweep(struct bounding *b, uint32_t first, double *left)
{
	double tau = hps_floor_tau(b->p);

	for (;;) {
		struct hps_dp_query q = { .tau = tau, .first = first };
		double price = solve(b, &q), e;

		*left = INFINITY;
		if (isinf(price))
			return;
		if (b->p->objective == HPS_PRICE_PER_HOUR) {
			b->best = fmin(b->best, price);
			return;
		}
		e = cycle(b, tau);
		b->best = fmin(b->best, price / 3600 * e);
		tau = fmin(hps_below(tau), hps_below(e));
		if (price > 0)
			tau = fmin(tau, b->best * 3600 / price * (1 + 2 * HPS_TIE_EPS));
		*left = rest(b, tau, first, false);
		if (isinf(*left) || hps_lower(b->best, *left) || spent(b))
			return;
	}
}

static double relaxed_optimum(struct bounding *b)
{
	const struct hps_cost *c = b->p->cost;
	double tau = hps_floor_tau(b->p), left;
	uint32_t most = 1;

	for (uint32_t t = 0; b->dp.counts_first && t < c->n_types; t++)
		if (hps_cost_first_max(c, t) > most)
			most = hps_cost_first_max(c, t);
	for (uint32_t first = 1; first <= most; first++) {
		double later = rest(b, tau, first, true);

		if (isinf(later) || hps_lower(b->best, later))
			break;
		if (spent(b))
			return fmin(b->best, later);
		sweep(b, first, &left);
		if (left <= b->best) {
			later = first < most ? rest(b, tau, first + 1, true) : INFINITY;
			return fmin(b->best, fmin(left, later));
		}
	}
	return b->best;
}

enum hps_status hps_search_bound(struct hps_search *s, struct hps_err *err)
{
	struct bounding b;
	enum hps_status rc;

	if (!s->n_best || !s->best_trial.feasible)
		return HPS_OK;
	rc = start(&b, s, err);
	if (!rc) {
		double bound = relaxed_optimum(&b);

		if (!s->has_bound || bound > s->bound)
			s->bound = bound;
		s->has_bound = true;
	}
	hps_dp_release(&b.dp);
	free(b.type);
	free(b.stage);
	return rc;
}
