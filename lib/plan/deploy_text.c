/* What does a deployment use, need and cost? Text for a person. */
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "plan/deploy.h"
#include "plan/plan_int.h"

static enum hps_status type_rows(const struct hps_problem *p, const struct hps_solution *s,
				 const struct hps_usage *u, double price, struct hps_buf *b,
				 struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	enum hps_status rc;

	rc = hps_buf_printf(b, err, "%-12s%6s%8s%7s%10s\n", "type", "units", "limit", "busy",
			    "price_h");
	for (uint32_t i = 0; !rc && i < u->n_types; i++) {
		const struct hps_usage_type *t = &u->type[i];
		int at = hps_cluster_type(c->cluster, t->name);
		char limit[16] = "-";

		if (c->type[at].limited)
			snprintf(limit, sizeof(limit), "%u", c->type[at].limit);
		rc = hps_buf_printf(b, err, "%-12s%6u%8s%6.0f%%%10.4g\n", t->name, t->units, limit,
				    100 * t->utilisation, t->price_per_hour);
	}
	if (!rc && s->trial.shards)
		rc = hps_buf_printf(b, err, "%-12s%6u%8s%6.0f%%%10.4g\n", "ps shards",
				    s->trial.shards, "", 100 * u->ps_utilisation,
				    c->ps.price * s->trial.shards);
	if (!rc)
		rc = hps_buf_printf(b, err, "%-12s%6s%8s%6.0f%%%10.4g\n\n", "all, by money", "", "",
				    100 * u->utilisation, price);
	return rc;
}

static enum hps_status host_rows(const struct hps_usage *u, struct hps_buf *b, struct hps_err *err)
{
	enum hps_status rc;

	rc = hps_buf_printf(b, err, "%-16s%9s%8s%7s%12s%12s\n", "host", "replicas", "shards",
			    "cores", "needs_MB", "has_MB");
	for (uint32_t i = 0; !rc && i < u->n_hosts; i++) {
		const struct hps_usage_host *h = &u->host[i];
		char has[24] = "-";

		if (h->has_bytes > 0)
			snprintf(has, sizeof(has), "%.6g", h->has_bytes / 1e6);
		rc = hps_buf_printf(
			b, err, "%-16s%9u%8u%6.0f%%%12.6g%12s%s\n", h->name, h->replicas, h->shards,
			100 * h->utilisation, h->needs_bytes / 1e6, has,
			h->has_bytes > 0 && h->needs_bytes > h->has_bytes ? "  too little" : "");
	}
	return rc ? rc : hps_buf_printf(b, err, "\n");
}

/* On paper: no hosts. */
static enum hps_status account(const struct hps_problem *p, const struct hps_solution *s,
			       struct hps_deploy_report *r, struct hps_err *err)
{
	struct hps_schedule sched = { s->stage, s->n_stages, s->trial.shards };
	struct hps_cost step = *p->cost; /* shares its arrays */

	step.opt.evaluator = HPS_EVAL_STEP;
	r->stage = hps_calloc(s->n_stages, sizeof(*r->stage), err);
	if (!r->stage)
		return HPS_MEMORY;
	hps_cost_eval(&step, &sched, NULL, &r->cost, r->stage);
	return HPS_OK;
}

static enum hps_status totals(const struct hps_usage *u, const struct hps_deploy_report *r,
			      const struct hps_deploy_options *opt, struct hps_buf *b,
			      struct hps_err *err)
{
	enum hps_status rc;

	rc = hps_buf_printf(b, err, "predicted    %.6g samples/s, %.6g dollars per hour\n",
			    r->cost.throughput, r->cost.price);
	if (rc || !(u->samples > 0))
		return rc;
	return hps_buf_printf(b, err,
			      "total        %.6g dollars, %.6g hours for %u epochs of %.0f "
			      "samples\n",
			      u->dollars, u->hours, opt->epochs, opt->samples);
}

enum hps_status hps_deploy_text(const struct hps_problem *p, const struct hps_solution *s,
				const struct hps_deploy_report *placed,
				const struct hps_deploy_options *opt, struct hps_buf *b,
				struct hps_err *err)
{
	struct hps_deploy_report paper = { 0 };
	const struct hps_deploy_report *r = placed ? placed : &paper;
	struct hps_usage u = { 0 };
	enum hps_status rc = HPS_OK;

	if (!placed)
		rc = account(p, s, &paper, err);
	if (!rc)
		rc = hps_usage_of(p, s, r, opt, &u, err);
	if (!rc && !placed)
		rc = hps_buf_printf(b, err, "on paper: not all of it is on a host\n\n");
	if (!rc)
		rc = hps_plan_text(p, s, u.method, b, err);
	if (!rc)
		rc = hps_buf_printf(b, err, "\n");
	if (!rc)
		rc = type_rows(p, s, &u, r->cost.price, b, err);
	if (!rc && placed)
		rc = host_rows(&u, b, err);
	if (!rc)
		rc = totals(&u, r, opt, b, err);
	hps_usage_release(&u);
	hps_deploy_report_release(&paper);
	return rc;
}
