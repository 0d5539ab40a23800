/* How does a method spend its budget and keep its best? What all methods share besides the
 * evaluation itself. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/plan_int.h"

void hps_solution_release(struct hps_solution *s)
{
	free(s->stage);
	memset(s, 0, sizeof(*s));
}

double hps_solution_gap(const struct hps_solution *s)
{
	double d;

	if (!s->has_bound || !s->trial.feasible)
		return 0;
	d = s->trial.objective - s->bound;
	if (fabs(d) <= HPS_TIE_EPS * fabs(s->bound) || d < 0)
		return 0;
	return s->bound > 0 ? d / s->bound : INFINITY;
}

enum hps_status hps_search_init(struct hps_search *s, const struct hps_problem *p,
				uint64_t default_evaluations, struct hps_err *err)
{
	memset(s, 0, sizeof(*s));
	s->problem = p;
	s->max_evaluations = p->max_evaluations;
	s->deadline = INFINITY;
	if (p->max_seconds > 0 && p->hooks.now)
		s->deadline = p->hooks.now(p->hooks.arg) + p->max_seconds;
	else if (!s->max_evaluations)
		s->max_evaluations = default_evaluations;
	s->best = hps_calloc(p->cost->n_layers, sizeof(*s->best), err);
	return s->best ? HPS_OK : HPS_MEMORY;
}

void hps_search_release(struct hps_search *s)
{
	free(s->best);
	memset(s, 0, sizeof(*s));
}

bool hps_search_halted(struct hps_search *s)
{
	const struct hps_plan_hooks *h = &s->problem->hooks;

	if (!s->interrupted && h->stop && h->stop(h->arg))
		s->interrupted = true;
	return s->interrupted || (isfinite(s->deadline) && h->now(h->arg) >= s->deadline);
}

double hps_search_used(const struct hps_search *s)
{
	const struct hps_problem *p = s->problem;
	double used = 0;

	if (s->max_evaluations)
		used = (double)s->evaluations / (double)s->max_evaluations;
	if (isfinite(s->deadline))
		used = fmax(used, 1 - (s->deadline - p->hooks.now(p->hooks.arg)) / p->max_seconds);
	return used < 0 ? 0 : used > 1 ? 1 : used;
}

bool hps_search_more(struct hps_search *s)
{
	const struct hps_plan_hooks *h = &s->problem->hooks;

	if (hps_search_halted(s) || (s->max_evaluations && s->evaluations >= s->max_evaluations))
		return false;
	if (h->news) {
		struct hps_plan_news news = {
			s->evaluations,
			s->max_evaluations,
			s->n_best ? s->best_trial.objective : INFINITY,
			s->has_bound ? s->bound : 0,
		};

		h->news(h->arg, &news);
	}
	return true;
}

void hps_search_offer(struct hps_search *s, const struct hps_span *stage, uint32_t n,
		      const struct hps_trial *trial)
{
	if (s->n_best && !hps_trial_better(trial, &s->best_trial))
		return;
	memmove(s->best, stage, n * sizeof(*stage));
	s->n_best = n;
	s->best_trial = *trial;
}

uint32_t hps_spans_join(struct hps_span *stage, uint32_t n)
{
	uint32_t m = 0;

	for (uint32_t i = 1; i < n; i++) {
		if (stage[i].type == stage[m].type)
			stage[m].last = stage[i].last;
		else
			stage[++m] = stage[i];
	}
	return m + 1;
}

enum hps_status hps_search_try(struct hps_search *s, struct hps_span *stage, uint32_t *n,
			       struct hps_trial *out, struct hps_err *err)
{
	enum hps_status rc;

	if (s->problem->merge)
		*n = hps_spans_join(stage, *n);
	rc = hps_evaluate(s->problem, stage, *n, out, err);
	if (rc)
		return rc;
	s->evaluations++;
	hps_search_offer(s, stage, *n, out);
	return HPS_OK;
}

enum hps_status hps_search_finish(struct hps_search *s, struct hps_solution *out,
				  struct hps_err *err)
{
	enum hps_status rc = HPS_OK;

	memset(out, 0, sizeof(*out));
	out->evaluations = s->evaluations;
	out->interrupted = s->interrupted;
	out->has_bound = s->has_bound;
	out->bound = s->bound;
	if (!s->n_best) {
		rc = hps_err_set(err, HPS_NO, "stopped before any plan was looked at");
	} else {
		out->stage = s->best;
		out->n_stages = s->n_best;
		out->trial = s->best_trial;
		s->best = NULL;
		if (!out->trial.feasible && s->problem->reward)
			rc = hps_err_set(
				err, HPS_NO,
				"no plan that was looked at reaches %.6g samples/s where the "
				"reward is not the formula's; the nearest reaches %.6g",
				s->problem->floor, out->trial.throughput);
		else if (!out->trial.feasible)
			rc = hps_explain_structure(s->problem, out->stage, out->n_stages,
						   &out->trial, err);
		if (rc && s->interrupted)
			hps_err_hint(err, "it was interrupted before a plan was found");
		/* The bound is a sum in another order than the objective. */
		if (out->trial.feasible && out->has_bound && out->bound > out->trial.objective)
			out->bound = out->trial.objective;
		out->proven = out->trial.feasible && out->has_bound && hps_solution_gap(out) == 0;
	}
	hps_search_release(s);
	return rc;
}

uint32_t hps_spans_of_layers(const uint32_t *type, const uint8_t *cut, uint32_t n_layers,
			     struct hps_span *out)
{
	uint32_t n = 0;

	for (uint32_t l = 0; l < n_layers; l++) {
		if (!l || type[l] != type[l - 1] || (cut && cut[l])) {
			out[n++] = (struct hps_span){ .first = l, .type = type[l] };
		}
		out[n - 1].last = l;
	}
	return n;
}
