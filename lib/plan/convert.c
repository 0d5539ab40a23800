/* Solutions to and from the document's plan section. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/plan_int.h"

const char *hps_objective_name(enum hps_objective o)
{
	return o == HPS_PRICE_PER_HOUR ? "price_per_hour" : "cost_per_sample";
}

enum hps_status hps_plan_of_solution(const struct hps_problem *p, const struct hps_solution *s,
				     const char *method, struct hps_plan *plan, struct hps_err *err)
{
	const struct hps_cost *c = p->cost;

	memset(plan, 0, sizeof(*plan));
	plan->stage = hps_calloc(s->n_stages, sizeof(*plan->stage), err);
	if (!plan->stage)
		return HPS_MEMORY;
	plan->n_stages = s->n_stages;
	for (uint32_t i = 0; i < s->n_stages; i++) {
		const struct hps_span *sp = &s->stage[i];

		plan->stage[i].first = sp->first;
		plan->stage[i].last = sp->last;
		plan->stage[i].units = sp->units;
		plan->stage[i].type = hps_strdup(c->type[sp->type].name, err);
		if (!plan->stage[i].type)
			goto fail;
		plan->simulated |= c->type[sp->type].simulated;
	}
	plan->digest = c->profile->digest;
	plan->ps_shards = s->trial.shards;
	plan->floor_samples_per_s = p->floor;
	plan->method = hps_strdup(method, err);
	plan->objective = hps_strdup(hps_objective_name(p->objective), err);
	plan->form = hps_strdup(hps_cost_form_name(c->opt.form), err);
	plan->evaluator = hps_strdup(hps_evaluator_name(c->opt.evaluator), err);
	if (!plan->method || !plan->objective || !plan->form || !plan->evaluator)
		goto fail;
	plan->seed = p->seed;
	plan->evaluations = s->evaluations;
	plan->throughput_samples_per_s = s->trial.throughput;
	plan->cost_per_sample = s->trial.cost;
	plan->price_per_hour = s->trial.price;
	plan->has_bound = s->has_bound;
	plan->bound = s->bound;
	plan->gap = hps_solution_gap(s);
	plan->proven = s->proven;
	plan->interrupted = s->interrupted;
	return HPS_OK;
fail:
	hps_plan_release(plan);
	return HPS_MEMORY;
}

enum hps_status hps_spans_of_plan(const struct hps_cost *c, const struct hps_plan *plan,
				  struct hps_span **stage, struct hps_err *err)
{
	struct hps_span *out = hps_calloc(plan->n_stages, sizeof(*out), err);
	struct hps_schedule sched = { out, plan->n_stages, plan->ps_shards };
	enum hps_status rc;

	if (!out)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < plan->n_stages; i++) {
		int t = hps_cluster_type(c->cluster, plan->stage[i].type);

		if (t < 0) {
			hps_err_set(err, HPS_BAD_INPUT, "the cluster has no type \"%s\"",
				    plan->stage[i].type);
			hps_err_at(err, "plan.stages[%u].type", i);
			free(out);
			return HPS_BAD_INPUT;
		}
		out[i] = (struct hps_span){ plan->stage[i].first, plan->stage[i].last, (uint32_t)t,
					    plan->stage[i].units };
	}
	rc = hps_schedule_check(c, &sched, err);
	if (rc) {
		hps_err_at(err, "plan");
		free(out);
		return rc;
	}
	*stage = out;
	return HPS_OK;
}
