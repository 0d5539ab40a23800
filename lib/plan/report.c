/* What does a plan look like? Text for a person. */
#include <stdio.h>
#include <stdlib.h>
#include "base/mem.h"
#include "plan/plan_int.h"

#define MILLION 1e6

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
