/* How many units does each stage of a given structure take? A sweep over cycle times tau, the
 * provisioning of planning by structure.
 *
 * At a fixed tau every stage takes the least k with ET(k) <= tau; nothing that limits or price
 * count falls when a k rises, so this is the cheapest vector within tau and feasible if any is.
 * k_first: in the executor form all b rise with it, so the least k_first that keeps its own stage
 * within tau makes every other k least too (a later stage that needs more replicas than there
 * are micro-batches raises it). Next tau is just below the vector's own cycle e, or where
 * price * tau reaches the best cost: prices only rise. Each step raises some k, so the sweep ends;
 * it stops when the sum of price * least k ET(k), which every later vector costs at least, has
 * reached the best cost. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/plan_int.h"

enum { SMALL = 64, MAX_STEP_VISITS = 512 };

double hps_stage_weight(const struct hps_cost *c, const struct hps_stage_time *s, uint32_t from)
{
	double least = from * hps_stage_et(c, s, from);

	if (!hps_stage_regular(c, s))
		for (uint32_t k = from + 1; k <= s->max_units; k++)
			least = fmin(least, k * hps_stage_et(c, s, k));
	return least;
}

bool hps_trial_better(const struct hps_trial *a, const struct hps_trial *b)
{
	if (a->feasible != b->feasible)
		return a->feasible;
	if (!a->feasible && hps_lower(a->excess, b->excess))
		return true;
	if (!a->feasible && hps_lower(b->excess, a->excess))
		return false;
	if (hps_lower(a->graded, b->graded))
		return true;
	if (hps_lower(b->graded, a->graded))
		return false;
	if (hps_lower(b->throughput, a->throughput))
		return true;
	if (hps_lower(a->throughput, b->throughput))
		return false;
	return a->units != b->units ? a->units < b->units : a->stages < b->stages;
}

void hps_trial_of_rate(const struct hps_problem *p, double cycle_s, double price, uint32_t shards,
		       uint32_t units, uint32_t stages, struct hps_trial *out)
{
	double cycle = fmax(cycle_s, 1e-18), value;

	out->throughput = 1 / cycle;
	out->price = price;
	out->cost = price / 3600 * cycle;
	out->shards = shards;
	out->units = units;
	out->stages = stages;
	out->excess = p->floor > 0 ? fmax(0, p->floor * cycle - 1) : 0;
	if (out->excess <= HPS_TIE_EPS)
		out->excess = 0;
	out->feasible = out->excess == 0;
	value = p->objective == HPS_PRICE_PER_HOUR ? price : out->cost;
	out->objective = out->feasible ? value : INFINITY;
	out->graded = out->feasible ? value : value * 10 * (1 + out->excess);
}

/* Beyond limits or memory by `over`, besides what it is too slow. */
static void make_infeasible(const struct hps_problem *p, struct hps_trial *t, double over)
{
	double value = p->objective == HPS_PRICE_PER_HOUR ? t->price : t->cost;

	t->feasible = false;
	t->objective = INFINITY;
	t->excess += over;
	t->graded = value * 10 * (1 + t->excess);
}

/* Units and shards beyond their limits, as shares of those. */
static double units_over(const struct hps_cost *c, const struct hps_schedule *s)
{
	double over = 0;

	for (uint32_t t = 0; t < c->n_types; t++) {
		double used = 0;

		for (uint32_t i = 0; i < s->n_stages; i++)
			if (s->stage[i].type == t)
				used += s->stage[i].units;
		over += fmax(0, used / c->type[t].limit - 1);
	}
	return over + fmax(0, ((double)s->shards - c->ps.max) / fmax(c->ps.max, 1));
}

void hps_trial_of_schedule(const struct hps_problem *p, const struct hps_schedule *s,
			   struct hps_trial *out)
{
	struct hps_cost_result r;
	uint32_t units = 0;

	for (uint32_t i = 0; i < s->n_stages; i++)
		units += s->stage[i].units;
	hps_cost_eval(p->cost, s, NULL, &r, NULL);
	hps_trial_of_rate(p, r.cycle_s, r.price, s->shards, units, s->n_stages, out);
	if (r.fits)
		return;
	/* At least a little, where it is memory. */
	make_infeasible(p, out, fmax(0.1, units_over(p->cost, s)));
}

struct settling {
	const struct hps_problem *p;
	struct hps_span *stage;
	uint32_t n;
	struct hps_stage_time *time; /* n, for the present k_first */
	uint32_t *best;		     /* n: units of the best vector */
};

/* Times of all stages for k_first; false if a later stage could never do. */
static void time_stages(struct settling *s, uint32_t first)
{
	const struct hps_cost *c = s->p->cost;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct hps_span *sp = &s->stage[i];

		s->time[i] =
			hps_cost_stage(c, sp->first, sp->last, sp->type, i ? (int)sp[-1].type : -1,
				       i + 1 < s->n ? (int)sp[1].type : -1, first);
	}
}

/* Least units of each stage within tau, k_first from *first upwards; false if there are none. */
static bool least_units(struct settling *s, double tau, uint32_t *first)
{
	const struct hps_cost *c = s->p->cost;
	bool executor = c->opt.form == HPS_COST_EXECUTOR;

again:
	time_stages(s, *first);
	for (uint32_t i = 0; i < s->n; i++) {
		struct hps_stage_time *st = &s->time[i];
		uint32_t k;

		if (executor && i) {
			uint32_t busy = st->busy, most = st->max_units;

			/* As many as the type has; if micro-batches do not keep them busy, take
			 * more of those. */
			st->busy = UINT32_MAX;
			st->max_units = c->type[st->type].limit;
			k = hps_stage_units(c, st, tau, 1);
			st->busy = busy;
			st->max_units = most;
			if (k > busy) {
				*first = (k - 1) / c->opt.micro_batches + 1;
				if (*first > s->time[0].max_units)
					return false;
				goto again;
			}
		} else {
			k = hps_stage_units(c, st, tau, executor ? *first : 1);
		}
		if (!k)
			return false;
		if (executor && !i && k > *first) {
			*first = k;
			goto again;
		}
		s->stage[i].units = k;
	}
	return true;
}

static bool limits_hold(const struct settling *s)
{
	const struct hps_cost *c = s->p->cost;

	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t used = 0;

		for (uint32_t j = 0; j < s->n; j++)
			if (s->stage[j].type == s->stage[i].type)
				used += s->stage[j].units;
		if (used > c->type[s->stage[i].type].limit)
			return false;
	}
	return true;
}

bool hps_vector_at(const struct hps_cost *c, const struct hps_span *stage,
		   const struct hps_stage_time *time, uint32_t n, double tau, struct hps_vector *v)
{
	memset(v, 0, sizeof(*v));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = stage[i].units;
		struct hps_stage_load load =
			hps_cost_load(c, &time[i], i ? (int)stage[i - 1].type : -1, k);

		v->cores_s += load.cores_s;
		v->dense_bytes += load.dense_bytes;
		v->cycle = fmax(v->cycle, hps_stage_et(c, &time[i], k));
		v->price += c->type[stage[i].type].price * k;
		v->units += k;
	}
	if (!hps_cost_shards(c, v->dense_bytes, tau, &v->shards))
		return false;
	v->price += c->ps.price * v->shards;
	v->cycle = fmax(v->cycle, hps_cost_ps_time(c, v->dense_bytes, v->shards));
	v->cycle = fmax(v->cycle, hps_cost_cores_time(c, v->cores_s, v->dense_bytes));
	return v->cycle <= tau * (1 + HPS_TIME_EPS);
}

static bool complete_vector(struct settling *s, double tau, struct hps_vector *v)
{
	return hps_vector_at(s->p->cost, s->stage, s->time, s->n, tau, v);
}

static bool vector_at(struct settling *s, double tau, uint32_t *first, struct hps_vector *v)
{
	return least_units(s, tau, first) && limits_hold(s) && complete_vector(s, tau, v);
}

/* What this vector and every later one costs at least: by objective. */
static double rest_bound(const struct settling *s, const struct hps_vector *v)
{
	const struct hps_cost *c = s->p->cost;
	double sum = 0;

	if (s->p->objective == HPS_PRICE_PER_HOUR)
		return v->price;
	for (uint32_t i = 0; i < s->n; i++)
		sum += c->type[s->stage[i].type].price *
		       hps_stage_weight(c, &s->time[i], s->stage[i].units);
	sum += c->ps.price * hps_cost_ps_time(c, v->dense_bytes, 1);
	return sum / 3600;
}

static void score_vector(struct settling *s, const struct hps_vector *v, struct hps_trial *t)
{
	if (s->p->cost->opt.evaluator == HPS_EVAL_STEP) {
		struct hps_schedule sched = { s->stage, s->n, v->shards };

		hps_trial_of_schedule(s->p, &sched, t);
	} else {
		hps_trial_of_rate(s->p, v->cycle, v->price, v->shards, v->units, s->n, t);
	}
}

static void keep(struct settling *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->best[i] = s->stage[i].units;
}

/* The sweep from tau down to `least`; true if some vector met the floor. */
static bool sweep(struct settling *s, double tau, double least, struct hps_trial *best)
{
	bool step = s->p->cost->opt.evaluator == HPS_EVAL_STEP, found = false;
	uint32_t first = 1, visits = 0;
	struct hps_vector v;

	while (tau >= least && vector_at(s, tau, &first, &v)) {
		struct hps_trial t;

		if (found && hps_lower(best->objective, rest_bound(s, &v)))
			break;
		score_vector(s, &v, &t);
		if (t.feasible && (!found || hps_trial_better(&t, best))) {
			*best = t;
			keep(s);
			found = true;
		}
		if (step && ++visits == MAX_STEP_VISITS)
			break;
		tau = hps_below(v.cycle);
		if (found && s->p->objective == HPS_COST_PER_SAMPLE && v.price > 0)
			tau = fmin(tau, best->cost * 3600 / v.price * (1 + 2 * HPS_TIE_EPS));
	}
	return found;
}

/* The fastest vector within the limits, for a structure that misses the floor: bisection
 * between an infeasible and a feasible tau, each feasible one replaced by its vector's cycle. */
static bool fastest(struct settling *s, struct hps_trial *out)
{
	double low = 0, high;
	uint32_t first = 1;
	struct hps_vector v, best;

	if (!vector_at(s, INFINITY, &first, &v))
		return false;
	best = v;
	keep(s);
	high = v.cycle;
	for (int i = 0; i < 60 && high - low > 1e-6 * high; i++) {
		double tau = (low + high) / 2;

		first = 1;
		if (vector_at(s, tau, &first, &v)) {
			best = v;
			keep(s);
			high = fmin(v.cycle, tau);
		} else {
			low = tau;
		}
	}
	for (uint32_t i = 0; i < s->n; i++)
		s->stage[i].units = s->best[i];
	score_vector(s, &best, out);
	return true;
}

/* Not even one unit each: how far over limits, memory and servers? */
static void hopeless(struct settling *s, struct hps_trial *out)
{
	const struct hps_cost *c = s->p->cost;
	double over = 0;
	struct hps_vector v;

	for (uint32_t i = 0; i < s->n; i++)
		s->stage[i].units = 1;
	time_stages(s, 1);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct hps_cost_type *t = &c->type[s->stage[i].type];
		double memory = hps_stage_memory(&s->time[i], t->limit);

		if (t->memory > 0 && memory > t->memory)
			over += memory / t->memory - 1;
		over += 1.0 / t->limit;
	}
	complete_vector(s, INFINITY, &v);
	v.cycle = fmax(v.cycle, 1e-18);
	hps_trial_of_rate(s->p, v.cycle, v.price, v.shards, v.units, s->n, out);
	make_infeasible(s->p, out, over);
}

/* Fails only beyond SMALL stages. */
static enum hps_status start(struct settling *s, void **big, struct hps_err *err)
{
	*big = NULL;
	if (s->n <= SMALL)
		return HPS_OK;
	*big = hps_calloc(s->n, sizeof(*s->time) + sizeof(*s->best), err);
	if (!*big)
		return HPS_MEMORY;
	s->time = *big;
	s->best = (uint32_t *)(s->time + s->n);
	return HPS_OK;
}

static void take_best(struct settling *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->stage[i].units = s->best[i];
}

enum hps_status hps_settle(const struct hps_problem *p, struct hps_span *stage, uint32_t n_stages,
			   struct hps_trial *out, struct hps_err *err)
{
	struct hps_stage_time small_time[SMALL];
	uint32_t small_best[SMALL];
	struct settling s = { p, stage, n_stages, small_time, small_best };
	void *big;

	if (start(&s, &big, err))
		return HPS_MEMORY;
	if (sweep(&s, hps_floor_tau(p), 0, out))
		take_best(&s);
	else if (!fastest(&s, out))
		hopeless(&s, out);
	if (p->cost->opt.evaluator == HPS_EVAL_STEP)
		hps_climb(p, stage, n_stages, out);
	free(big);
	return HPS_OK;
}

enum hps_status hps_settle_within(const struct hps_problem *p, struct hps_span *stage,
				  uint32_t n_stages, double most, double least,
				  struct hps_trial *out, bool *found, struct hps_err *err)
{
	struct hps_stage_time small_time[SMALL];
	uint32_t small_best[SMALL];
	struct settling s = { p, stage, n_stages, small_time, small_best };
	void *big;

	if (start(&s, &big, err))
		return HPS_MEMORY;
	*found = sweep(&s, fmin(most, hps_floor_tau(p)), least, out);
	if (*found) {
		take_best(&s);
		if (p->cost->opt.evaluator == HPS_EVAL_STEP)
			hps_climb(p, stage, n_stages, out);
	}
	free(big);
	return HPS_OK;
}
