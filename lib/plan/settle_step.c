/* Which units are best where a whole step counts? For evaluator `step` hps_settle climbs from what
 * the steady state likes, and stops where no single unit helps; here all pairs of first-stage
 * replicas and rounds are tried.
 *
 * k_first settles the micro-batches, n = M k_first, and so e_s and x_s of every stage. What is then
 * left of T (cost.h) falls with k_s through the rounds alone: max_s (ceil(n / k_s) - 1) u_s, u_s =
 * max(e_s, x_s). So for a bound R of that maximum each stage takes the least k_s whose rounds keep
 * it, and R need only be what some stage and some rounds give: ceil(n / k) has about 2 sqrt(n)
 * values. Not exact in two corners: a later stage that moves sparse rows may want more units for
 * those, and the steady state may bind between two R. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/plan_int.h"
#include "plan/provision_int.h"

struct stepping {
	const struct hps_problem *p;
	struct hps_span *best; /* n: the caller's */
	struct hps_span *now;  /* n */
	double *u;	       /* n, for the present k_first */
	uint32_t n;
	struct hps_trial trial;
};

/* u_s of every stage for n micro-batches a step. */
static void stage_times(struct stepping *x, double n)
{
	const struct hps_cost *c = x->p->cost;
	double m = c->opt.batch / n;

	for (uint32_t i = 0; i < x->n; i++) {
		const struct hps_span *sp = &x->now[i];
		const struct hps_cost_type *t = &c->type[sp->type];
		double e = t->fixed[sp->last + 1] - t->fixed[sp->first] +
			   (t->variable[sp->last + 1] - t->variable[sp->first]) * m;
		double cut = 0;

		if (i)
			cut += hps_cost_cut(c, sp->first, sp->type, (int)sp[-1].type);
		if (i + 1 < x->n)
			cut += hps_cost_cut(c, sp->last + 1, sp->type, (int)sp[1].type);
		x->u[i] = fmax(e, m * cut);
	}
}

/* The least units that keep R and, in the steady state, the floor; scored. */
static void try_bound(struct stepping *x, uint32_t n, double R)
{
	const struct hps_cost *c = x->p->cost;
	struct hps_trial t;

	for (uint32_t i = 1; i < x->n; i++) {
		const struct hps_span *sp = &x->now[i];
		struct hps_stage_time time =
			hps_cost_stage(c, sp->first, sp->last, sp->type, (int)sp[-1].type,
				       i + 1 < x->n ? (int)sp[1].type : -1, x->now[0].units);
		double rounds = x->u[i] > 0 ? floor(R / x->u[i] * (1 + 1e-12)) + 1 : n;
		double k = fmax(1, ceil(n / fmin(rounds, n)));
		uint32_t least;

		if (k > time.max_units)
			return;
		least = hps_stage_units(c, &time, hps_floor_tau(x->p), (uint32_t)k);
		x->now[i].units = least ? least : (uint32_t)k;
	}
	hps_score(x->p, x->now, x->n, &t);
	if (hps_trial_better(&t, &x->trial)) {
		x->trial = t;
		memcpy(x->best, x->now, x->n * sizeof(*x->now));
	}
}

/* Every R that stage i gives with the units that its type has. */
static void try_stage(struct stepping *x, uint32_t n, uint32_t i)
{
	uint32_t limit = x->p->cost->type[x->now[i].type].limit;
	double first = (x->p->cost->opt.micro_batches - 1) * x->u[0];

	for (uint32_t k = 1; k <= limit && k <= n;) {
		uint32_t rounds = (n - 1) / k + 1;

		try_bound(x, n, fmax(first, (rounds - 1) * x->u[i]));
		if (rounds == 1 || (rounds - 1) * x->u[i] <= first)
			break;
		k = (n - 1) / (rounds - 1) + 1;
	}
}

enum hps_status hps_settle_step(const struct hps_problem *p, struct hps_span *stage,
				uint32_t n_stages, struct hps_trial *out, struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	struct stepping x = { .p = p, .best = stage, .n = n_stages, .trial = *out };
	uint32_t most = hps_cost_first_max(c, stage[0].type);

	if (c->opt.evaluator != HPS_EVAL_STEP || c->opt.form != HPS_COST_EXECUTOR ||
	    c->opt.mode != HPS_BSP)
		return HPS_OK;
	x.now = hps_calloc(n_stages, sizeof(*x.now) + sizeof(*x.u), err);
	if (!x.now)
		return HPS_MEMORY;
	x.u = (double *)(x.now + n_stages);
	memcpy(x.now, stage, n_stages * sizeof(*stage));
	for (uint32_t first = 1; first <= most; first++) {
		uint32_t n = c->opt.micro_batches * first;

		/* These replicas alone cost more than what is known. */
		if (p->objective == HPS_PRICE_PER_HOUR && x.trial.feasible &&
		    c->type[stage[0].type].price * first > x.trial.price)
			break;
		x.now[0].units = first;
		stage_times(&x, n);
		if (n_stages == 1)
			try_bound(&x, n, 0);
		for (uint32_t i = 1; i < n_stages; i++)
			try_stage(&x, n, i);
	}
	*out = x.trial;
	free(x.now);
	return HPS_OK;
}
