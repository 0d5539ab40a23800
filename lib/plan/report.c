/* What does a plan look like, and what would a little more or less do? Text for a person. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact.h"
#include "plan/plan_int.h"

#define MILLION 1e6

static const char *layer_name(const struct hps_cost *c, uint32_t l)
{
	const char *s = c->profile->size[l].name;

	return s ? s : "?";
}

static enum hps_status stage_rows(const struct hps_cost *c, const struct hps_solution *s,
				  const struct hps_stage_cost *row, struct hps_buf *b,
				  struct hps_err *err)
{
	enum hps_status rc;

	rc = hps_buf_printf(b, err, "%-6s%-9s%-12s%6s%12s%12s%12s%7s  %-8s%-6s%10s\n", "stage",
			    "layers", "type", "units", "compute_us", "link_us", "slack_us", "busy",
			    "binds", "sync", "price_h");
	for (uint32_t i = 0; !rc && i < s->n_stages; i++) {
		const struct hps_span *sp = &s->stage[i];
		char layers[24];

		snprintf(layers, sizeof(layers), "%u-%u", sp->first, sp->last);
		rc = hps_buf_printf(
			b, err, "%-6u%-9s%-12s%6u%12.4g%12.4g%12.4g%6.0f%%  %-8s%-6s%10.4g\n", i,
			layers, c->type[sp->type].name, sp->units, row[i].ct_s * MILLION,
			row[i].dt_s * MILLION, row[i].slack_s * MILLION,
			100 * fmax(row[i].compute_use, row[i].link_use),
			hps_binding_name(row[i].binds),
			row[i].dense_bytes <= 0		      ? "-"
			: row[i].dense_sync == HPS_DENSE_RING ? "ring"
							      : "ps",
			row[i].price);
	}
	return rc;
}

static enum hps_status summary(const struct hps_problem *p, const struct hps_solution *s,
			       const struct hps_cost_result *r, const char *method,
			       struct hps_buf *b, struct hps_err *err)
{
	const struct hps_trial *t = &s->trial;
	enum hps_status rc;

	rc = hps_buf_printf(b, err,
			    "throughput   %.6g samples/s (floor %.6g)\n"
			    "cost         %.6g dollars per million samples, %.6g per hour\n"
			    "method       %s, objective %s, form %s, evaluator %s, seed %llu, "
			    "%llu evaluations\n",
			    t->throughput, p->floor, t->cost * MILLION, t->price, method,
			    hps_objective_name(p->objective), hps_cost_form_name(p->cost->opt.form),
			    hps_evaluator_name(p->cost->opt.evaluator), (unsigned long long)p->seed,
			    (unsigned long long)s->evaluations);
	if (!rc && s->has_bound)
		rc = hps_buf_printf(b, err, "bound        %.6g %s, gap %.3g %%%s%s\n",
				    s->bound * (p->objective == HPS_PRICE_PER_HOUR ? 1 : MILLION),
				    p->objective == HPS_PRICE_PER_HOUR ? "dollars per hour"
								       : "dollars per million "
									 "samples",
				    100 * hps_solution_gap(s), s->proven ? ", proven optimal" : "",
				    s->interrupted ? ", interrupted" : "");
	if (!rc && p->cost->opt.evaluator == HPS_EVAL_STEP)
		rc = hps_buf_printf(b, err,
				    "step         %.6g s: fill %.4g, dense sync %.4g, sparse rows "
				    "%.4g\n",
				    r->step_s, r->fill_s, r->sync_s, r->sparse_s);
	return rc;
}

enum hps_status hps_plan_text(const struct hps_problem *p, const struct hps_solution *s,
			      const char *method, struct hps_buf *b, struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	struct hps_schedule sched = { s->stage, s->n_stages, s->trial.shards };
	struct hps_stage_cost *row = hps_calloc(s->n_stages, sizeof(*row), err);
	struct hps_cost_result r;
	enum hps_status rc;

	if (!row)
		return HPS_MEMORY;
	hps_cost_eval(c, &sched, NULL, &r, row);
	rc = stage_rows(c, s, row, b, err);
	if (!rc && sched.shards)
		rc = hps_buf_printf(b, err, "%-6s%-9s%-12s%6u%12.4g%12.4g%12s%6.0f%%%26.4g\n", "ps",
				    "-", "shards", sched.shards, r.ps.cpu_s * MILLION,
				    r.ps.link_s * MILLION, "",
				    100 * fmax(r.ps.cpu_use, r.ps.link_use), r.ps.price);
	if (!rc && r.cores_s > 0)
		rc = hps_buf_printf(b, err, "%-6s%-9s%-12s%6.4g%12.4g%12s%12s%6.0f%%\n", "cores",
				    "-", "shared", c->cores, r.cores_s * MILLION, "", "",
				    100 * r.cores_use);
	if (!rc)
		rc = hps_buf_printf(b, err, "\n");
	if (!rc)
		rc = summary(p, s, &r, method, b, err);
	free(row);
	return rc;
}

/* --- explain --- */

/* The same stages with one unit more or less at stage i: what it does, in words. */
static enum hps_status one_unit(const struct hps_problem *p, const struct hps_solution *s,
				struct hps_span *copy, uint32_t i, int by, struct hps_buf *b,
				struct hps_err *err)
{
	struct hps_trial t;

	memcpy(copy, s->stage, s->n_stages * sizeof(*copy));
	copy[i].units += (uint32_t)by;
	if (!copy[i].units)
		return hps_buf_printf(b, err, "one unit less: none left\n");
	hps_score(p, copy, s->n_stages, &t);
	return hps_buf_printf(b, err,
			      "one unit %s: %.6g samples/s, %.6g dollars per million samples%s\n",
			      by > 0 ? "more" : "less", t.throughput, t.cost * MILLION,
			      t.feasible			     ? ""
			      : t.throughput < p->floor * (1 - 1e-9) ? " (below the floor)"
								     : " (over a limit)");
}

static enum hps_status explain_stage(const struct hps_problem *p, const struct hps_solution *s,
				     const struct hps_cost_result *r,
				     const struct hps_stage_cost *row, struct hps_span *copy,
				     uint32_t i, struct hps_buf *b, struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	const struct hps_span *sp = &s->stage[i];
	const struct hps_cost_type *t = &c->type[sp->type];
	bool sets = (r->binds == HPS_BINDS_COMPUTE || r->binds == HPS_BINDS_LINK) && r->at == i;
	enum hps_status rc;

	rc = hps_buf_printf(b, err,
			    "stage %u: layers %u-%u (%s .. %s) on %s, %u units%s\n"
			    "  %s binds: compute %.4g us, link %.4g us a sample, slack %.4g us%s\n",
			    i, sp->first, sp->last, layer_name(c, sp->first),
			    layer_name(c, sp->last), t->name, sp->units,
			    sp->units == t->limit ? ", all there are" : "",
			    hps_binding_name(row->binds), row->ct_s * MILLION, row->dt_s * MILLION,
			    row->slack_s * MILLION, sets ? "; sets the pace" : "");
	if (!rc)
		rc = hps_buf_printf(b, err, "  ");
	if (!rc)
		rc = one_unit(p, s, copy, i, -1, b, err);
	if (!rc)
		rc = hps_buf_printf(b, err, "  ");
	return rc ? rc : one_unit(p, s, copy, i, 1, b, err);
}

/* Layer l of stage i on type t instead, what is left of the stage on both sides. */
static uint32_t move_layer(const struct hps_solution *s, uint32_t i, uint32_t l, uint32_t t,
			   struct hps_span *out)
{
	uint32_t n = 0;

	for (uint32_t j = 0; j < s->n_stages; j++) {
		struct hps_span sp = s->stage[j];

		if (j != i) {
			out[n++] = sp;
			continue;
		}
		if (l > sp.first)
			out[n++] = (struct hps_span){ sp.first, l - 1, sp.type, 0 };
		out[n++] = (struct hps_span){ l, l, t, 0 };
		if (l < sp.last)
			out[n++] = (struct hps_span){ l + 1, sp.last, sp.type, 0 };
	}
	return n;
}

static enum hps_status explain_layers(const struct hps_problem *p, const struct hps_solution *s,
				      struct hps_span *copy, struct hps_buf *b, struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	enum hps_status rc;

	rc = hps_buf_printf(b, err,
			    "layers elsewhere (dollars per million samples, units settled anew)\n");
	for (uint32_t i = 0; !rc && i < s->n_stages; i++) {
		for (uint32_t l = s->stage[i].first; !rc && l <= s->stage[i].last; l++) {
			rc = hps_buf_printf(b, err, "  %u %s on %s:", l, layer_name(c, l),
					    c->type[s->stage[i].type].name);
			for (uint32_t t = 0; !rc && t < c->n_types; t++) {
				struct hps_trial trial;
				uint32_t n;

				if (t == s->stage[i].type)
					continue;
				n = move_layer(s, i, l, t, copy);
				rc = hps_settle(p, copy, n, &trial, err);
				if (!rc && trial.feasible)
					rc = hps_buf_printf(b, err, " %s %.6g", c->type[t].name,
							    trial.cost * MILLION);
				else if (!rc)
					rc = hps_buf_printf(b, err, " %s infeasible",
							    c->type[t].name);
			}
			if (!rc)
				rc = hps_buf_printf(b, err, "\n");
		}
	}
	return rc;
}

/* What would be cheapest without the floor? */
static enum hps_status explain_floor(const struct hps_problem *p, const struct hps_solution *s,
				     struct hps_buf *b, struct hps_err *err)
{
	struct hps_problem open = *p;
	struct hps_solution free_s;
	enum hps_status rc;

	if (p->floor <= 0)
		return hps_buf_printf(b, err, "floor: none\n");
	open.floor = 0;
	open.max_evaluations = 2000;
	open.hooks.news = NULL;
	rc = hps_plan_exact(&open, "", &free_s, err);
	if (rc) {
		hps_solution_release(&free_s);
		return rc;
	}
	if (hps_lower(free_s.trial.objective, s->trial.objective))
		rc = hps_buf_printf(b, err,
				    "floor: %.6g costs %.3g %% more than the cheapest plan without "
				    "it (%.6g dollars per million samples at %.6g samples/s)\n",
				    p->floor,
				    100 * (s->trial.objective / free_s.trial.objective - 1),
				    free_s.trial.cost * MILLION, free_s.trial.throughput);
	else
		rc = hps_buf_printf(b, err, "floor: %.6g does not bind, %.6g is %s\n", p->floor,
				    s->trial.throughput,
				    s->trial.throughput > p->floor * (1 + 1e-9) ? "cheaper"
										: "cheapest");
	hps_solution_release(&free_s);
	return rc;
}

enum hps_status hps_plan_explain(const struct hps_problem *p, const struct hps_solution *s,
				 struct hps_buf *b, struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	struct hps_schedule sched = { s->stage, s->n_stages, s->trial.shards };
	struct hps_stage_cost *row = hps_calloc(s->n_stages, sizeof(*row), err);
	struct hps_span *copy = hps_calloc((size_t)c->n_layers + 2, sizeof(*copy), err);
	struct hps_cost_result r;
	enum hps_status rc = row && copy ? HPS_OK : HPS_MEMORY;

	if (!rc)
		hps_cost_eval(c, &sched, NULL, &r, row);
	for (uint32_t i = 0; !rc && i < s->n_stages; i++)
		rc = explain_stage(p, s, &r, &row[i], copy, i, b, err);
	if (!rc && r.binds > HPS_BINDS_LINK)
		rc = hps_buf_printf(b, err, "the %s set the pace\n", hps_binding_name(r.binds));
	if (!rc && r.step_s > r.rate_s * c->opt.batch * (1 + 1e-9))
		rc = hps_buf_printf(b, err,
				    "a step takes %.3g %% longer than the steady state: filling, "
				    "draining and synchronising\n",
				    100 * (r.step_s / (r.rate_s * c->opt.batch) - 1));
	if (!rc)
		rc = explain_floor(p, s, b, err);
	if (!rc && c->n_types > 1)
		rc = explain_layers(p, s, copy, b, err);
	free(row);
	free(copy);
	return rc;
}
