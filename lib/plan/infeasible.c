/* Why not? Names the layer, stage or limit that keeps a plan from its floor, with numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "plan/plan_int.h"

static const char *layer_name(const struct hps_cost *c, uint32_t l)
{
	const char *s = c->profile->size[l].name;

	return s ? s : "?";
}

/* Would one unit more at this stage leave its time as it is, or worse? */
static bool more_is_no_help(const struct hps_cost *c, const struct hps_span *stage, uint32_t n,
			    uint32_t i)
{
	struct hps_stage_time st = hps_cost_stage(
		c, stage[i].first, stage[i].last, stage[i].type, i ? (int)stage[i - 1].type : -1,
		i + 1 < n ? (int)stage[i + 1].type : -1, stage[0].units);

	return stage[i].units < st.max_units &&
	       hps_stage_et(c, &st, stage[i].units + 1) >= hps_stage_et(c, &st, stage[i].units);
}

/* "stage 1 (layers 3-5 on "v100", 8 of 8 units) is bound by compute" */
static void name_binding(const struct hps_cost *c, const struct hps_span *stage, uint32_t n,
			 const struct hps_cost_result *r, uint32_t shards, char *out, size_t size)
{
	const struct hps_span *sp;

	switch (r->binds) {
	case HPS_BINDS_COMPUTE:
	case HPS_BINDS_LINK:
		sp = &stage[r->at];
		snprintf(out, size,
			 "stage %u (layers %u-%u on \"%s\", %u of %u units) is bound by %s%s",
			 r->at, sp->first, sp->last, c->type[sp->type].name, sp->units,
			 c->type[sp->type].limit, hps_binding_name(r->binds),
			 more_is_no_help(c, stage, n, r->at)
				 ? " (more units would synchronise for longer)"
				 : "");
		break;
	case HPS_BINDS_PS_CPU:
	case HPS_BINDS_PS_LINK:
		snprintf(out, size, "the %s (%u of %u shards) is the bottleneck",
			 hps_binding_name(r->binds), shards, c->ps.max);
		break;
	case HPS_BINDS_CORES:
		snprintf(out, size, "all work shares %g cores", c->cores);
		break;
	}
}

enum hps_status hps_explain_structure(const struct hps_problem *p, const struct hps_span *stage,
				      uint32_t n_stages, const struct hps_trial *t,
				      struct hps_err *err)
{
	struct hps_schedule sched = { stage, n_stages, t->shards };
	struct hps_cost_result r;
	char what[200] = "";

	hps_cost_eval(p->cost, &sched, NULL, &r, NULL);
	if (!r.fits)
		return hps_err_set(err, HPS_NO, "this placement does not fit: %s", r.why);
	name_binding(p->cost, stage, n_stages, &r, t->shards, what, sizeof(what));
	hps_err_set(err, HPS_NO,
		    "this placement reaches %.6g samples/s at best, below the floor of %.6g: %s",
		    r.throughput, p->floor, what);
	hps_err_hint(err, "hps-plan -m exact looks at all placements");
	return HPS_NO;
}

/* The least time a sample of one layer alone, on any type with all its units; *type is where. */
static double best_alone(const struct hps_cost *c, uint32_t l, uint32_t *type, uint32_t *units)
{
	double best = INFINITY;

	for (uint32_t t = 0; t < c->n_types; t++) {
		uint32_t most = l ? c->type[t].limit : hps_cost_first_max(c, t);

		/* The ring's time rises with k, the compute's falls: look at few or all. */
		for (uint32_t k = 1; k <= most; k = k < 64 || k == most ? k + 1
						    : 2 * k < most	? 2 * k
									: most) {
			struct hps_stage_time st = hps_cost_stage_bare(c, l, l, t, l ? 1 : k);
			double et;

			/* As if there were micro-batches for all. */
			if (l && c->opt.form == HPS_COST_EXECUTOR)
				st.busy = UINT32_MAX;
			if (c->type[t].memory > 0 && hps_stage_memory(&st, k) > c->type[t].memory)
				continue;
			et = hps_stage_et(c, &st, k);
			if (et < best) {
				best = et;
				*type = t;
				*units = k;
			}
		}
	}
	return best;
}

/* The layer that is slowest even alone; true if it misses the floor or fits nowhere. */
static bool slow_layer(const struct hps_problem *p, struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	double worst = 0, tau = hps_floor_tau(p);
	uint32_t at = 0, type = 0, units = 0;

	for (uint32_t l = 0; l < c->n_layers; l++) {
		uint32_t t = 0, k = 0;
		double et = best_alone(c, l, &t, &k);

		if (et <= worst)
			continue;
		worst = et;
		at = l;
		type = t;
		units = k;
	}
	if (isinf(worst))
		hps_err_set(err, HPS_NO, "layer %u \"%s\" fits the memory of no type", at,
			    layer_name(c, at));
	else if (worst > tau * (1 + HPS_TIME_EPS))
		hps_err_set(err, HPS_NO,
			    "no plan reaches %.6g samples/s: layer %u \"%s\" alone takes %.4g s a "
			    "sample at least, %.4g s is allowed (on \"%s\", its best type, with %u "
			    "units)",
			    p->floor, at, layer_name(c, at), worst, tau, c->type[type].name, units);
	else
		return false;
	return true;
}

static bool slow_servers(const struct hps_problem *p, struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	double tau = hps_floor_tau(p), load = hps_cost_ps_time(c, 0, 1);

	if (c->ps.max < c->ps.min) {
		hps_err_set(err, HPS_NO,
			    "%u parameter server shards are needed, %u PS cores are "
			    "there",
			    c->ps.min, c->ps.max);
		return true;
	}
	if (!(load > c->ps.max * tau * (1 + HPS_TIME_EPS)))
		return false;
	hps_err_set(
		err, HPS_NO,
		"no plan reaches %.6g samples/s: the servers take %.4g s a sample, %u shards at "
		"most make it %.4g s, %.4g s is allowed",
		p->floor, load, c->ps.max, load / c->ps.max, tau);
	return true;
}

/* ", the best there is is 5040 samples/s: ..." */
static void add_fastest(const struct hps_problem *p, const struct hps_solution *f,
			struct hps_err *err)
{
	struct hps_schedule sched = { f->stage, f->n_stages, f->trial.shards };
	struct hps_cost_result r;
	char what[200] = "";

	hps_cost_eval(p->cost, &sched, NULL, &r, NULL);
	name_binding(p->cost, f->stage, f->n_stages, &r, f->trial.shards, what, sizeof(what));
	if (err->msg[0]) {
		size_t len = strlen(err->msg);

		snprintf(err->msg + len, sizeof(err->msg) - len,
			 "; the best throughput there is is %.6g samples/s", f->trial.throughput);
		return;
	}
	hps_err_set(
		err, HPS_NO,
		"no plan reaches %.6g samples/s: the best throughput there is is %.6g, where %s",
		p->floor, f->trial.throughput, what);
}

/* More stages than units, say: which limits are there? */
static void no_fit(const struct hps_problem *p, struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	uint64_t units = 0;

	for (uint32_t t = 0; t < c->n_types; t++)
		units += c->type[t].limit;
	hps_err_set(err, HPS_NO,
		    "no plan fits the memory and the limits: %u types with %" PRIu64
		    " units in all, memory of the largest %.4g bytes a unit",
		    c->n_types, units, c->type[0].memory);
}

enum hps_status hps_explain_no(const struct hps_problem *p, const struct hps_solution *fastest,
			       struct hps_err *err)
{
	struct hps_err mine = { .status = HPS_NO };

	if (!slow_layer(p, &mine) && !slow_servers(p, &mine) && !fastest)
		no_fit(p, &mine);
	if (fastest)
		add_fastest(p, fastest, &mine);
	hps_err_hint(&mine,
		     "lower the floor (-t), raise limits in the cluster, or add a faster type");
	if (err)
		*err = mine;
	return HPS_NO;
}
