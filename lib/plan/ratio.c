/* What does a provisioner buy that keeps one ratio whatever the load? StaRatio and StaPSRatio as
 * we rebuild them, see provision.h. */
#include "plan/plan_int.h"
#include "plan/provision_int.h"

static bool is_cpu(const struct hps_cost *c, uint32_t t)
{
	return c->cluster->type[t].device == HPS_DEVICE_CPU;
}

/* Which stages a unit may go to. */
enum kind { CPUS, GPUS, ALL };

static bool of_kind(const struct hps_cost *c, const struct hps_span *sp, enum kind kind)
{
	return kind == ALL || is_cpu(c, sp->type) == (kind == CPUS);
}

static uint32_t count(const struct hps_cost *c, const struct hps_span *stage, uint32_t n,
		      enum kind kind)
{
	uint32_t units = 0;

	for (uint32_t i = 0; i < n; i++)
		units += of_kind(c, &stage[i], kind) ? stage[i].units : 0;
	return units;
}

struct hps_ratios hps_ratios_of(const struct hps_cost *c, const struct hps_span *stage,
				uint32_t n_stages, uint32_t shards)
{
	uint32_t cpus = count(c, stage, n_stages, CPUS), gpus = count(c, stage, n_stages, GPUS);

	return (struct hps_ratios){
		.cpus_per_gpu = cpus && gpus ? (double)cpus / gpus : 0,
		.ps_per_unit = shards && cpus + gpus ? (double)shards / (cpus + gpus) : 0,
	};
}

struct hps_ratios hps_ratios_asked(const struct hps_ratios *asked, const struct hps_cost *c,
				   const struct hps_span *stage, uint32_t n_stages, uint32_t shards)
{
	struct hps_ratios r = hps_ratios_of(c, stage, n_stages, shards);

	if (asked->cpus_per_gpu > 0)
		r.cpus_per_gpu = asked->cpus_per_gpu;
	if (asked->ps_per_unit > 0)
		r.ps_per_unit = asked->ps_per_unit;
	return r;
}

/* Is there a unit left of stage i's type, and would it be busy there? */
static bool can_grow(const struct hps_cost *c, const struct hps_span *stage, uint32_t n, uint32_t i,
		     const struct hps_stage_time *t)
{
	uint64_t used = 0;

	for (uint32_t j = 0; j < n; j++)
		if (stage[j].type == stage[i].type)
			used += stage[j].units;
	return used < c->type[stage[i].type].limit && stage[i].units < t->max_units;
}

/* One unit more for the slowest stage of a kind; false if none can take it. */
static bool grow(const struct hps_cost *c, struct hps_span *stage, uint32_t n, enum kind kind)
{
	uint32_t at = UINT32_MAX;
	double worst = -1;

	for (uint32_t i = 0; i < n; i++) {
		struct hps_stage_time t =
			hps_cost_stage(c, stage[i].first, stage[i].last, stage[i].type,
				       i ? (int)stage[i - 1].type : -1,
				       i + 1 < n ? (int)stage[i + 1].type : -1, stage[0].units);
		double et = hps_stage_et(c, &t, stage[i].units);

		if (of_kind(c, &stage[i], kind) && et > worst && can_grow(c, stage, n, i, &t)) {
			worst = et;
			at = i;
		}
	}
	if (at < n)
		stage[at].units++;
	return at < n;
}

enum hps_status hps_staratio(const struct hps_problem *p, double cpus_per_gpu,
			     struct hps_span *stage, uint32_t n_stages, struct hps_trial *out,
			     struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	bool more = true;

	for (uint32_t i = 0; i < n_stages; i++)
		stage[i].units = 1;
	if (!(cpus_per_gpu > 0) || !count(c, stage, n_stages, CPUS) ||
	    !count(c, stage, n_stages, GPUS))
		return hps_err_set(err, HPS_NO,
				   "staratio keeps a ratio of CPU units to GPU units, and the "
				   "plan has no stage on a %s",
				   count(c, stage, n_stages, CPUS) ? "GPU" : "CPU");
	/* GPUs one by one, CPU units by the ratio; where those run out, what there is. */
	for (bool begun = false; more; begun = true) {
		if (begun)
			more = grow(c, stage, n_stages, GPUS);
		while (count(c, stage, n_stages, CPUS) <
			       ceil(cpus_per_gpu * count(c, stage, n_stages, GPUS) - 1e-9) &&
		       grow(c, stage, n_stages, CPUS))
			;
		hps_score(p, stage, n_stages, out);
		if (out->feasible)
			break;
	}
	return HPS_OK;
}

/* As few shards as the ratio wants, of those there are. */
static uint32_t shards_of(const struct hps_cost *c, double ratio, uint32_t units)
{
	double s = ceil(ratio * units - 1e-9);

	return s < c->ps.min ? c->ps.min : s > c->ps.max ? c->ps.max : (uint32_t)s;
}

enum hps_status hps_stapsratio(const struct hps_problem *p, double ps_per_unit,
			       struct hps_span *stage, uint32_t n_stages, struct hps_trial *out,
			       struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	struct hps_schedule s = { .stage = stage, .n_stages = n_stages };
	enum hps_status rc;

	if (!(ps_per_unit > 0))
		return hps_err_set(err, HPS_NO,
				   "stapsratio keeps a ratio of parameter server shards to units, "
				   "and the plan has no shards");
	rc = hps_settle(p, stage, n_stages, out, err);
	if (!rc)
		rc = hps_settle_step(p, stage, n_stages, out, err);
	if (rc || !out->feasible)
		return rc;
	/* More workers bring more shards, whether they are needed or not. */
	do {
		s.shards = shards_of(c, ps_per_unit, count(c, stage, n_stages, ALL));
		hps_trial_of_schedule(p, &s, out);
	} while (!out->feasible && grow(c, stage, n_stages, ALL));
	return HPS_OK;
}
