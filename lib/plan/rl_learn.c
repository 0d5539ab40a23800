/* What does the policy learn from its samples? REINFORCE with a moving average of the rewards as
 * baseline (Williams 1992), and what makes it converge: see rl.h. */
#include <math.h>
#include <string.h>
#include "plan/plan_int.h"
#include "plan/policy_int.h"
#include "plan/rivals.h"
#include "plan/rl_int.h"

enum {
	WIDTH = HPS_RL_WIDTH,
	IMITATE_EVERY = 4, /* rounds */
	PATIENCE = 150,	   /* rounds without a better plan */
	WARM_PATIENCE = 3, /* rounds without any plan, of a policy that has learned elsewhere */
	POLISH_EVERY = 16, /* rounds */
};
static const double rate = 0.03, imitation = 0.2, entropy_begin = 0.4, entropy_end = 0.05,
		    advantage_low = -2, advantage_high = 3, memory = 0.9;
/* What a run keeps of a policy that has learned elsewhere; the rest is a new one's. */
static const float kept = 0.3f;
/* The first log-odds of a cut, run by run: few stages, many, .. */
static const float inclination[] = { 0, -1, -3, -2 };

enum state { GO_ON, RUN_OVER, ALL_OVER };

/* What a run maximises: -log(cost), 0 for the dearest feasible structure met. Infeasible ones lie
 * below all feasible ones, by how far off they are, not by what they cost: cheap and slow is no way
 * to a floor. */
static double reward(const struct hps_learner *x, struct hps_rl_cost c)
{
	return c.feasible ? log(x->worst / fmax(c.value, 1e-300)) : -1 - 2 * log1p(c.value);
}

static void note(struct hps_learner *x, const struct hps_span *stage, uint32_t n,
		 struct hps_rl_cost c)
{
	hps_rl_elites_take(&x->elites, stage, n, c);
	if (c.feasible)
		x->worst = fmax(x->worst, fmax(c.value, 1e-300));
	if (hps_rl_less(c, x->best)) {
		x->best = c;
		x->stale = 0;
	}
}

/* The policy's own decision. Where the budget is spent it is scored all the same, to choose what to
 * keep, and not counted. */
static enum hps_status decide(struct hps_learner *x, struct hps_rl_cost *out, struct hps_err *err)
{
	struct hps_trial t;
	enum hps_status rc;
	uint32_t n;

	hps_rollout_run(&x->alone, &x->net, NULL, 0);
	n = hps_rollout_spans(&x->alone, 0, x->stage);
	if (hps_rival_more(&x->search)) {
		rc = hps_rl_score(&x->scores, x->stage, &n, out, err);
		if (!rc)
			note(x, x->stage, n, *out);
		return rc;
	}
	rc = hps_evaluate(x->p, x->stage, n, &t, err);
	*out = (struct hps_rl_cost){ t.feasible, t.feasible ? t.objective : t.excess };
	return rc;
}

static void forget(struct hps_learner *x)
{
	memset(x->m, 0, 2 * x->net.n_weights * sizeof(float)); /* v lies behind */
	x->elites.n = 0;
	x->best = (struct hps_rl_cost){ false, INFINITY };
	x->round = x->stale = 0;
}

/* The policy that is given, as it is. */
static enum hps_status decide_given(struct hps_learner *x, struct hps_err *err)
{
	struct hps_rl_cost cost;
	enum hps_status rc = hps_policy_copy(&x->net, x->opt.policy, err);

	return rc ? rc : decide(x, &cost, err);
}

/* From a new policy; the first run from a blend of it and the one that is given, which has decided
 * by then (Ash, Adams 2020: shrink and perturb). */
static enum hps_status begin_run(struct hps_learner *x, struct hps_err *err)
{
	enum hps_status rc = HPS_OK;
	struct hps_policy fresh;

	forget(x);
	x->warm = x->opt.policy && !x->runs;
	if (x->warm)
		rc = decide_given(x, err);
	if (!rc)
		rc = hps_policy_init(&fresh, x->cell, x->net.hidden,
				     hps_hash3(x->p->seed, x->runs, x->cell), err);
	if (rc)
		return rc;
	fresh.weight[hps_policy_shape(x->cell, fresh.hidden).head_bias] =
		inclination[(x->runs + x->p->seed) % 4];
	for (size_t i = 0; x->warm && i < fresh.n_weights; i++)
		fresh.weight[i] += kept * (x->net.weight[i] - fresh.weight[i]);
	rc = hps_policy_copy(&x->net, &fresh, err);
	hps_policy_release(&fresh);
	x->runs++;
	return rc;
}

static enum hps_status end_run(struct hps_learner *x, struct hps_err *err)
{
	struct hps_rl_cost cost;
	enum hps_status rc;

	if (!x->opt.learned && !hps_search_more(&x->search))
		return HPS_OK;
	rc = decide(x, &cost, err);
	if (rc || !x->opt.learned || (x->has_learned && !hps_rl_less(cost, x->learned)))
		return rc;
	x->has_learned = true;
	x->learned = cost;
	return hps_policy_copy(x->opt.learned, &x->net, err);
}

/* The last columns of the batch walk as the elites did. */
static uint32_t force_elites(struct hps_learner *x)
{
	uint32_t n = x->round % IMITATE_EVERY == IMITATE_EVERY - 1 ? x->elites.n : 0;

	for (uint32_t e = 0; e < n; e++) {
		const struct hps_rl_elite *elite = &x->elites.at[e];
		uint32_t column = WIDTH - n + e;

		for (uint32_t i = 0; i < elite->n; i++) {
			const struct hps_span *s = &elite->stage[i];

			for (uint32_t l = s->first; l <= s->last; l++) {
				x->roll.type[(size_t)l * WIDTH + column] = s->type;
				x->roll.cut[(size_t)l * WIDTH + column] = l == s->first;
			}
		}
	}
	return n;
}

/* Rewards of n samples to weights of their log probabilities: how much better than the baseline,
 * which knows nothing of this batch, in its deviations. false: no variance to learn from. */
static bool weigh(struct hps_learner *x, const double *r, uint32_t n, float *weight)
{
	double mean = 0, var = 0, dev, baseline = x->baseline, spread = x->deviation;

	for (uint32_t b = 0; b < n; b++)
		mean += r[b] / n;
	for (uint32_t b = 0; b < n; b++)
		var += (r[b] - mean) * (r[b] - mean) / n;
	dev = sqrt(var);
	if (dev < HPS_TIE_EPS)
		return false;
	if (!x->round) {
		baseline = mean;
		spread = dev;
	}
	x->baseline = memory * baseline + (1 - memory) * mean;
	x->deviation = memory * spread + (1 - memory) * dev;
	for (uint32_t b = 0; b < n; b++) {
		double advantage = (r[b] - baseline) / fmax(spread, HPS_TIE_EPS);

		weight[b] = (float)(fmin(fmax(advantage, advantage_low), advantage_high) / n);
	}
	return true;
}

static void update(struct hps_learner *x, float *weight, uint32_t n_samples)
{
	double share = x->round < x->decay ? (double)x->round / (double)x->decay : 1;
	double entropy = entropy_begin * (1 - share * (1 - entropy_end));
	float bonus[WIDTH];

	for (uint32_t b = 0; b < WIDTH; b++) {
		bonus[b] = b < n_samples ? (float)(entropy / n_samples) : 0;
		if (b >= n_samples)
			weight[b] = (float)(imitation / (WIDTH - n_samples));
	}
	memset(x->grad, 0, x->net.n_weights * sizeof(float));
	hps_rollout_gradient(&x->roll, &x->net, weight, bonus, x->grad);
	hps_policy_adam(x->net.weight, x->grad, x->m, x->v, x->net.n_weights, x->round + 1, rate);
}

static enum hps_status play_round(struct hps_learner *x, enum state *state, struct hps_err *err)
{
	uint32_t n = WIDTH - force_elites(x);
	struct hps_rl_cost cost[WIDTH];
	double r[WIDTH];
	float weight[WIDTH];

	*state = ALL_OVER;
	x->stale++;
	x->rounds++;
	hps_rollout_run(&x->roll, &x->net, &x->rng, WIDTH - n);
	for (uint32_t b = 0; b < n; b++) {
		uint32_t stages = hps_rollout_spans(&x->roll, b, x->stage);
		enum hps_status rc;

		if (!hps_rival_more(&x->search))
			return HPS_OK;
		rc = hps_rl_score(&x->scores, x->stage, &stages, &cost[b], err);
		if (rc)
			return rc;
		note(x, x->stage, stages, cost[b]);
	}
	for (uint32_t b = 0; b < n; b++)
		r[b] = reward(x, cost[b]);
	if (!x->opt.limited || x->rounds < x->opt.rounds)
		*state = RUN_OVER;
	if (!weigh(x, r, n, weight) || x->stale > PATIENCE ||
	    (x->warm && !x->best.feasible && x->round + 1 >= WARM_PATIENCE))
		return HPS_OK;
	update(x, weight, n);
	x->round++;
	if (*state == RUN_OVER)
		*state = GO_ON;
	return HPS_OK;
}

/* The best elite that has not been, as far as half of all evaluations go. */
static enum hps_status polish(struct hps_learner *x, struct hps_err *err)
{
	uint64_t begin = x->search.evaluations;
	struct hps_rl_elite *from = NULL, *to;
	struct hps_rl_cost cost;
	enum hps_status rc;
	uint32_t n;
	bool done;

	for (uint32_t i = 0; i < x->elites.n; i++)
		if (!x->elites.at[i].polished &&
		    (!from || hps_rl_less(x->elites.at[i].cost, from->cost)))
			from = &x->elites.at[i];
	if (!from || begin <= 2 * x->polishing)
		return HPS_OK;
	n = from->n;
	cost = from->cost;
	memcpy(x->stage, from->stage, n * sizeof(*x->stage));
	rc = hps_rl_polish(&x->scores, &x->rng, x->stage, &n, &cost, begin - 2 * x->polishing,
			   x->scratch, &done, err);
	x->polishing += x->search.evaluations - begin;
	if (rc)
		return rc;
	if (hps_rl_less(cost, from->cost)) {
		from->polished = true; /* and so the next to go, as all that is dearer */
		note(x, x->stage, n, cost);
	}
	to = hps_rl_elites_find(&x->elites, x->stage, n);
	if (to && done)
		to->polished = true;
	return HPS_OK;
}

enum hps_status hps_rl_learn(struct hps_learner *x, struct hps_err *err)
{
	enum state state = RUN_OVER;
	enum hps_status rc = HPS_OK;

	if (x->opt.limited && !x->opt.rounds) {
		forget(x);
		return decide_given(x, err);
	}
	while (!rc && state != ALL_OVER) {
		if (state == RUN_OVER)
			rc = begin_run(x, err);
		if (!rc)
			rc = play_round(x, &state, err);
		if (!rc && x->polishes && x->round % POLISH_EVERY == POLISH_EVERY - 1)
			rc = polish(x, err);
		if (!rc && state != GO_ON)
			rc = end_run(x, err);
	}
	return rc;
}
