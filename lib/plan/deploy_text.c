/* What does a deployment use, need and cost? Text for a person. */
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "plan/deploy.h"
#include "plan/plan_int.h"

/* Share of the paid time of each type's units that they compute or transfer, and of all. */
static enum hps_status type_rows(const struct hps_problem *p, const struct hps_solution *s,
				 const struct hps_stage_cost *row, struct hps_buf *b,
				 struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	double busy_money = 0, money = 0;
	enum hps_status rc;

	rc = hps_buf_printf(b, err, "%-12s%6s%8s%7s%10s\n", "type", "units", "limit", "busy",
			    "price_h");
	for (uint32_t t = 0; !rc && t < c->n_types; t++) {
		uint32_t units = 0;
		double busy = 0;
		char limit[16] = "-";

		for (uint32_t i = 0; i < s->n_stages; i++) {
			if (s->stage[i].type != t)
				continue;
			units += s->stage[i].units;
			busy += s->stage[i].units * fmax(row[i].compute_use, row[i].link_use);
		}
		if (!units)
			continue;
		money += units * c->type[t].price;
		busy_money += busy * c->type[t].price;
		if (c->type[t].limited)
			snprintf(limit, sizeof(limit), "%u", c->type[t].limit);
		rc = hps_buf_printf(b, err, "%-12s%6u%8s%6.0f%%%10.4g\n", c->type[t].name, units,
				    limit, 100 * busy / units, units * c->type[t].price);
	}
	if (!rc && money > 0)
		rc = hps_buf_printf(b, err, "%-12s%6s%8s%6.0f%%%10.4g\n", "all, by money", "", "",
				    100 * busy_money / money, money);
	return rc ? rc : hps_buf_printf(b, err, "\n");
}

static enum hps_status host_rows(const struct hps_problem *p, const struct hps_deploy_report *r,
				 struct hps_buf *b, struct hps_err *err)
{
	const struct hps_cluster *cl = p->cost->cluster;
	enum hps_status rc;

	rc = hps_buf_printf(b, err, "%-16s%9s%8s%7s%12s%12s\n", "host", "replicas", "shards",
			    "cores", "needs_MB", "has_MB");
	for (uint32_t h = 0; !rc && h < cl->n_hosts; h++) {
		const struct hps_host_use *u = &r->host[h];
		char has[24] = "-";

		if (!u->replicas && !u->shards)
			continue;
		if (cl->host[h].memory > 0)
			snprintf(has, sizeof(has), "%.6g", cl->host[h].memory / 1e6);
		rc = hps_buf_printf(b, err, "%-16s%9u%8u%6.0f%%%12.6g%12s%s\n", cl->host[h].name,
				    u->replicas, u->shards, 100 * u->cores_use,
				    u->memory_bytes / 1e6, has,
				    cl->host[h].memory > 0 && u->memory_bytes > cl->host[h].memory
					    ? "  too little"
					    : "");
	}
	return rc ? rc : hps_buf_printf(b, err, "\n");
}

enum hps_status hps_deploy_text(const struct hps_problem *p, const struct hps_solution *s,
				const struct hps_deploy_report *r,
				const struct hps_deploy_options *opt, double samples,
				struct hps_buf *b, struct hps_err *err)
{
	struct hps_schedule sched = { s->stage, s->n_stages, s->trial.shards };
	struct hps_deploy_report paper = { 0 };
	enum hps_status rc = HPS_OK;
	double total;

	if (!r) {
		struct hps_cost step = *p->cost; /* shares its arrays */

		step.opt.evaluator = HPS_EVAL_STEP;
		paper.stage = hps_calloc(s->n_stages, sizeof(*paper.stage), err);
		if (!paper.stage)
			return HPS_MEMORY;
		hps_cost_eval(&step, &sched, NULL, &paper.cost, paper.stage);
		rc = hps_buf_printf(b, err, "on paper: not all of it is on a host\n\n");
	}
	if (!rc)
		rc = hps_plan_text(p, s, opt->method ? opt->method : "settled", b, err);
	if (!rc)
		rc = hps_buf_printf(b, err, "\n");
	if (!rc)
		rc = type_rows(p, s, (r ? r : &paper)->stage, b, err);
	if (!rc && r)
		rc = host_rows(p, r, b, err);
	if (!rc)
		rc = hps_buf_printf(b, err, "predicted    %.6g samples/s, %.6g dollars per hour\n",
				    (r ? r : &paper)->cost.throughput,
				    (r ? r : &paper)->cost.price);
	total = samples * opt->epochs;
	if (!rc && total > 0)
		rc = hps_buf_printf(b, err,
				    "total        %.6g dollars, %.6g hours for %u epochs of %.0f "
				    "samples\n",
				    total * (r ? r : &paper)->cost.cost,
				    total * (r ? r : &paper)->cost.cycle_s / 3600, opt->epochs,
				    samples);
	hps_deploy_report_release(&paper);
	return rc;
}
