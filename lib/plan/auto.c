/* The best answer for the budget: the proven optimum where it is within reach, else the best of
 * what the proof met on its way and what search finds with the rest, under the best bound known. */
#include <string.h>
#include "plan/exact.h"
#include "plan/plan_int.h"
#include "plan/rivals.h"
#include "plan/rl.h"

/* Without a budget: sweeps for a proof, most take less than a hundred. */
enum { PROOF_SWEEPS = 2000 };

/* A share of p's budget for exact; the rest is search's. */
static void give_exact(struct hps_problem *p)
{
	if (p->max_seconds > 0)
		p->max_seconds /= 2;
	if (p->max_evaluations)
		p->max_evaluations = p->max_evaluations / 2 + p->max_evaluations % 2;
	else if (p->max_seconds <= 0)
		p->max_evaluations = PROOF_SWEEPS;
}

/* *better and *other are solutions of one problem; the better one stays in *better, with the
 * higher bound and the evaluations of both. */
static void unite(struct hps_solution *better, struct hps_solution *other)
{
	struct hps_solution *a = better, *b = other;
	double bound =
		fmax(a->has_bound ? a->bound : -INFINITY, b->has_bound ? b->bound : -INFINITY);
	uint64_t evaluations = a->evaluations + b->evaluations;

	if (b->stage && (!a->stage || hps_trial_better(&b->trial, &a->trial))) {
		struct hps_solution swap = *a;

		*a = *b;
		*b = swap;
	}
	a->interrupted = better->interrupted || other->interrupted;
	a->evaluations = evaluations;
	a->has_bound = isfinite(bound);
	a->bound = a->has_bound ? bound : 0;
	if (a->trial.feasible && a->has_bound && a->bound > a->trial.objective)
		a->bound = a->trial.objective;
	a->proven = a->trial.feasible && a->has_bound && hps_solution_gap(a) == 0;
	hps_solution_release(b);
}

/* What is left of p's budget after exact; false if nothing. */
static bool leave_rest(const struct hps_problem *p, double begin, uint64_t evaluations,
		       struct hps_problem *rest)
{
	*rest = *p;
	if (p->max_evaluations) {
		if (p->max_evaluations <= evaluations)
			return false;
		rest->max_evaluations -= evaluations;
	}
	if (p->max_seconds > 0 && p->hooks.now)
		rest->max_seconds -= p->hooks.now(p->hooks.arg) - begin;
	return p->max_seconds <= 0 || rest->max_seconds > 0;
}

enum hps_status hps_plan_auto(const struct hps_problem *p, const char *arg,
			      struct hps_solution *out, struct hps_err *err)
{
	double begin = p->max_seconds > 0 && p->hooks.now ? p->hooks.now(p->hooks.arg) : 0;
	struct hps_problem part = *p;
	struct hps_solution found = { 0 };
	struct hps_err why = { 0 };
	enum hps_status rc;

	give_exact(&part);
	rc = hps_plan_exact(&part, "", out, &why);
	/* Proven, or proven that there is none (then it has no bound). */
	if ((rc != HPS_OK && rc != HPS_NO) || out->proven || out->interrupted ||
	    (rc == HPS_NO && !out->has_bound) || !leave_rest(p, begin, out->evaluations, &part)) {
		if (rc && err)
			*err = why;
		return rc;
	}
	rc = hps_plan_rl_polish(&part, "", &found, &why);
	if (rc == HPS_OK || rc == HPS_NO) {
		unite(out, &found);
		rc = out->trial.feasible ? HPS_OK : rc;
	}
	hps_solution_release(&found);
	if (rc && err)
		*err = why;
	return rc;
}
