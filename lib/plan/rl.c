/* What does the learning placer need, and which of its kinds is asked for? */
#include "plan/rl.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact.h"
#include "plan/rivals.h"
#include "plan/rl_int.h"

/* The entropy bonus decays over so many rounds, at most half of the budget's. */
enum { DECAY_ROUNDS = 400 };

static enum hps_status check_options(const struct hps_rl_options *o, enum hps_cell cell,
				     struct hps_err *err)
{
	if (o->policy && o->policy->cell != cell)
		return hps_err_set(err, HPS_USAGE, "the policy is of cell %s, the method's is %s",
				   hps_cell_name(o->policy->cell), hps_cell_name(cell));
	if (!o->policy && o->limited && !o->rounds)
		return hps_err_set(err, HPS_USAGE,
				   "a policy that has not learned decides nothing: without rounds "
				   "one must be given");
	return HPS_OK;
}

static enum hps_status make(struct hps_learner *x, struct hps_err *err)
{
	size_t L = x->p->cost->n_layers, n;
	uint32_t hidden = x->opt.policy ? x->opt.policy->hidden : HPS_POLICY_HIDDEN;
	enum hps_status rc = hps_policy_input_init(&x->in, x->p, err);

	if (!rc)
		rc = hps_policy_init(&x->net, x->cell, hidden, x->p->seed, err);
	if (!rc)
		rc = hps_rollout_init(&x->alone, &x->net, &x->in, 1, err);
	if (!rc && !(x->opt.limited && !x->opt.rounds))
		rc = hps_rollout_init(&x->roll, &x->net, &x->in, HPS_RL_WIDTH, err);
	if (!rc)
		rc = hps_rl_scores_init(&x->scores, &x->search, err);
	if (!rc)
		rc = hps_rl_elites_init(&x->elites, (uint32_t)L, err);
	if (rc)
		return rc;
	n = x->net.n_weights;
	x->grad = hps_calloc_aligned(3 * n, sizeof(float), err);
	x->stage = hps_calloc(2 * L, sizeof(*x->stage), err);
	if (!x->grad || !x->stage)
		return HPS_MEMORY;
	x->m = x->grad + n;
	x->v = x->m + n;
	x->scratch = x->stage + L;
	return HPS_OK;
}

static void unmake(struct hps_learner *x)
{
	hps_rl_elites_release(&x->elites);
	hps_rl_scores_release(&x->scores);
	hps_rollout_release(&x->roll);
	hps_rollout_release(&x->alone);
	hps_policy_release(&x->net);
	hps_policy_input_release(&x->in);
	free(x->grad);
	free(x->stage);
}

/* Work in place of time for a proof, so that it is the same everywhere: exact asks now and then
 * whether it is to stop. In proportion to what the search took, little for a mere decision. */
enum { EVALUATIONS_AN_ASK = 10 };

struct patience {
	const struct hps_plan_hooks *user;
	uint64_t left;
};

static bool out_of_patience(void *arg)
{
	struct patience *x = arg;

	return !x->left-- || (x->user->stop && x->user->stop(x->user->arg));
}

/* How good is the answer, or why is there none? What exact soon proves is a bound without the
 * gap that hps_search_bound leaves; its plan is not looked at. rc: of the answer. */
static enum hps_status prove(const struct hps_problem *p, struct hps_solution *answer,
			     enum hps_status rc, struct hps_err *err)
{
	struct patience x = { &p->hooks, answer->evaluations / EVALUATIONS_AN_ASK };
	struct hps_problem bounded = *p;
	struct hps_err why = { 0 };
	struct hps_solution s;
	enum hps_status proof;

	bounded.hooks = (struct hps_plan_hooks){ .stop = out_of_patience, .arg = &x };
	bounded.reward = NULL;
	bounded.max_seconds = 0;
	bounded.max_evaluations = 0;
	proof = hps_plan_exact(&bounded, "", &s, &why);
	if (rc == HPS_NO && proof == HPS_NO && !s.has_bound && !s.interrupted && err)
		*err = why;
	if (rc == HPS_OK && s.has_bound && (!answer->has_bound || s.bound > answer->bound)) {
		answer->has_bound = true;
		answer->bound = fmin(s.bound, answer->trial.objective);
		answer->proven = hps_solution_gap(answer) == 0;
	}
	hps_solution_release(&s);
	return rc;
}

static enum hps_status solve(const struct hps_problem *p, enum hps_cell cell, bool polishes,
			     struct hps_solution *out, struct hps_err *err)
{
	struct hps_learner x = { .p = p, .cell = cell, .polishes = polishes };
	uint64_t budget = HPS_RL_EVALUATIONS;
	enum hps_status rc;

	memset(out, 0, sizeof(*out));
	if (p->rl)
		x.opt = *p->rl;
	rc = check_options(&x.opt, cell, err);
	if (rc)
		return rc;
	if (p->cost->n_types > HPS_RL_TYPES)
		budget = budget * p->cost->n_types / HPS_RL_TYPES;
	/* A time is a budget of its own. */
	rc = hps_search_init(&x.search, p, p->max_seconds > 0 ? 0 : budget, err);
	if (rc)
		return rc;
	hps_rng_init(&x.rng, p->seed, cell);
	if (p->max_evaluations)
		budget = p->max_evaluations;
	x.decay = budget / HPS_RL_WIDTH / 2 + 1;
	if (x.decay > DECAY_ROUNDS)
		x.decay = DECAY_ROUNDS;
	rc = make(&x, err);
	if (!rc)
		rc = hps_rl_learn(&x, err);
	unmake(&x);
	if (rc && x.opt.learned)
		hps_policy_release(x.opt.learned);
	rc = hps_rival_end(&x.search, rc, out, err);
	if ((rc != HPS_OK && rc != HPS_NO) || out->interrupted || out->proven)
		return rc;
	return prove(p, out, rc, err);
}

enum hps_status hps_plan_rl(const struct hps_problem *p, const char *arg, struct hps_solution *out,
			    struct hps_err *err)
{
	(void)arg;
	return solve(p, HPS_CELL_LSTM, false, out, err);
}

enum hps_status hps_plan_rl_rnn(const struct hps_problem *p, const char *arg,
				struct hps_solution *out, struct hps_err *err)
{
	(void)arg;
	return solve(p, HPS_CELL_RNN, false, out, err);
}

enum hps_status hps_plan_rl_polish(const struct hps_problem *p, const char *arg,
				   struct hps_solution *out, struct hps_err *err)
{
	(void)arg;
	return solve(p, HPS_CELL_LSTM, true, out, err);
}
