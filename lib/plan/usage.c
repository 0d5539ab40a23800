/* What do the units, shards and hosts of a deployment do, need and cost? From the cost model's
 * account to the figures of job/usage.h. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/deploy.h"
#include "plan/plan_int.h"

/* Sums of unit prices (or, where nothing has a price, units), and the busy part of them. */
struct shares {
	double paid, busy, units, busy_units;
};

static void count(struct shares *s, double units, double use, double price)
{
	s->paid += units * price;
	s->busy += units * use * price;
	s->units += units;
	s->busy_units += units * use;
}

static enum hps_status fill_types(const struct hps_problem *p, const struct hps_solution *s,
				  struct shares *all, struct hps_usage *u, struct hps_err *err)
{
	const struct hps_cost *c = p->cost;

	u->type = hps_calloc(c->n_types, sizeof(*u->type), err);
	if (!u->type)
		return HPS_MEMORY;
	for (uint32_t t = 0; t < c->n_types; t++) {
		struct hps_usage_type *to = &u->type[u->n_types];
		struct shares one = { 0 };

		for (uint32_t i = 0; i < s->n_stages; i++)
			if (s->stage[i].type == t)
				count(&one, s->stage[i].units, u->stage[i].utilisation,
				      c->type[t].price);
		if (!(one.units > 0))
			continue;
		to->name = hps_strdup(c->type[t].name, err);
		if (!to->name)
			return HPS_MEMORY;
		to->units = (uint32_t)one.units;
		to->utilisation = one.busy_units / one.units;
		to->price_per_hour = one.paid;
		u->n_types++;
		count(all, one.units, to->utilisation, c->type[t].price);
	}
	return HPS_OK;
}

static enum hps_status fill_hosts(const struct hps_cluster *cl, const struct hps_host_use *use,
				  struct hps_usage *u, struct hps_err *err)
{
	u->host = hps_calloc(cl->n_hosts, sizeof(*u->host), err);
	if (!u->host)
		return HPS_MEMORY;
	for (uint32_t h = 0; h < cl->n_hosts; h++) {
		struct hps_usage_host *to = &u->host[u->n_hosts];

		if (!use[h].replicas && !use[h].shards)
			continue;
		to->name = hps_strdup(cl->host[h].name, err);
		if (!to->name)
			return HPS_MEMORY;
		to->replicas = use[h].replicas;
		to->shards = use[h].shards;
		to->utilisation = use[h].cores_use;
		to->needs_bytes = use[h].memory_bytes;
		to->has_bytes = cl->host[h].memory;
		u->n_hosts++;
	}
	return HPS_OK;
}

static enum hps_status fill(const struct hps_problem *p, const struct hps_solution *s,
			    const struct hps_deploy_report *r, const struct hps_deploy_options *opt,
			    struct hps_usage *u, struct hps_err *err)
{
	struct shares all = { 0 };
	enum hps_status rc;

	u->method = hps_strdup(opt->method ? opt->method : "settled", err);
	u->stage = hps_calloc(s->n_stages, sizeof(*u->stage), err);
	if (!u->method || !u->stage)
		return HPS_MEMORY;
	u->n_stages = s->n_stages;
	for (uint32_t i = 0; i < s->n_stages; i++)
		u->stage[i] = (struct hps_usage_stage){ fmax(0, r->stage[i].slack_s),
							fmax(r->stage[i].compute_use,
							     r->stage[i].link_use) };
	rc = fill_types(p, s, &all, u, err);
	if (!rc && r->host)
		rc = fill_hosts(p->cost->cluster, r->host, u, err);
	u->ps_utilisation = fmax(r->cost.ps.cpu_use, r->cost.ps.link_use);
	count(&all, s->trial.shards, u->ps_utilisation, p->cost->ps.price);
	u->utilisation = all.paid > 0 ? all.busy / all.paid : all.busy_units / all.units;
	u->floor_samples_per_s = p->floor;
	u->cost_per_sample = r->cost.cost;
	u->samples = opt->samples * opt->epochs;
	u->hours = u->samples * r->cost.cycle_s / 3600;
	u->dollars = u->samples * r->cost.cost;
	return rc;
}

enum hps_status hps_usage_of(const struct hps_problem *p, const struct hps_solution *s,
			     const struct hps_deploy_report *r,
			     const struct hps_deploy_options *opt, struct hps_usage *u,
			     struct hps_err *err)
{
	enum hps_status rc;

	memset(u, 0, sizeof(*u));
	rc = fill(p, s, r, opt, u, err);
	if (rc)
		hps_usage_release(u);
	return rc;
}
