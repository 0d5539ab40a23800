/* How many units does each stage of a plan take, by the method that was asked for? See
 * provision.h. */
#include "plan/provision.h"
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/plan_int.h"
#include "plan/provision_int.h"

static const char *const names[] = { "exact", "newton", "staratio", "stapsratio", "keep" };

const char *hps_provisioner_name(enum hps_provisioner how)
{
	return names[how];
}

enum hps_status hps_provisioner_find(const char *word, enum hps_provisioner *out,
				     struct hps_err *err)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(word, names[i])) {
			*out = (enum hps_provisioner)i;
			return HPS_OK;
		}
	return hps_err_set(err, HPS_USAGE,
			   "unknown method \"%s\", expected one of exact, newton, staratio, "
			   "stapsratio, keep",
			   word);
}

/* Seconds a sample of stage i with these units, and `first` of the first stage. */
static double cycle_with(const struct hps_problem *p, const struct hps_span *stage, uint32_t n,
			 uint32_t i, uint32_t units, uint32_t first)
{
	struct hps_stage_time t = hps_cost_stage(p->cost, stage[i].first, stage[i].last,
						 stage[i].type, i ? (int)stage[i - 1].type : -1,
						 i + 1 < n ? (int)stage[i + 1].type : -1, first);

	return hps_stage_et(p->cost, &t, units);
}

/* Cycles of one unit less than the real numbers' floor, and one more than their ceiling. */
static void window(const struct hps_problem *p, const struct hps_span *stage, uint32_t n,
		   const struct hps_continuous *x, double *most, double *least)
{
	*most = *least = x->tau;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t below = (uint32_t)fmax(1, floor(x->k[i]) - 1);
		uint32_t above = (uint32_t)ceil(x->k[i]) + 1;

		*most = fmax(*most, cycle_with(p, stage, n, i, below, (uint32_t)ceil(x->k[0])));
		*least = fmin(*least, cycle_with(p, stage, n, i, above, (uint32_t)x->k[0]));
	}
}

static enum hps_status exactly(const struct hps_problem *p, struct hps_span *stage, uint32_t n,
			       struct hps_trial *out, struct hps_err *err)
{
	enum hps_status rc = hps_settle(p, stage, n, out, err);

	return rc ? rc : hps_settle_step(p, stage, n, out, err);
}

static enum hps_status by_newton(const struct hps_problem *p, struct hps_span *stage, uint32_t n,
				 struct hps_trial *out, double *bound, struct hps_err *err)
{
	struct hps_continuous x = { .k = hps_calloc(n, sizeof(*x.k), err) };
	double most, least;
	enum hps_status rc;
	bool found = false;

	if (!x.k)
		return HPS_MEMORY;
	rc = hps_newton(p, stage, n, &x, err);
	if (!rc) {
		window(p, stage, n, &x, &most, &least);
		rc = hps_settle_within(p, stage, n, most, least, out, &found, err);
		/* Faster than the window where its price is not met, slower where limits bind. */
		if (!rc && !found)
			rc = hps_settle(p, stage, n, out, err);
		if (!rc)
			rc = hps_settle_step(p, stage, n, out, err);
		if (x.bound)
			*bound = x.value;
	} else if (rc == HPS_NO) {
		rc = exactly(p, stage, n, out, err); /* the fastest, and why */
	}
	free(x.k);
	return rc;
}

enum hps_status hps_provision_units(const struct hps_problem *p, enum hps_provisioner how,
				    const struct hps_ratios *ratios, struct hps_span *stage,
				    uint32_t n_stages, struct hps_trial *out, double *bound,
				    struct hps_err *err)
{
	double none;

	if (!bound)
		bound = &none;
	*bound = 0;
	switch (how) {
	case HPS_PROVISION_NEWTON:
		return by_newton(p, stage, n_stages, out, bound, err);
	case HPS_PROVISION_STARATIO:
		return hps_staratio(p, ratios->cpus_per_gpu, stage, n_stages, out, err);
	case HPS_PROVISION_STAPSRATIO:
		return hps_stapsratio(p, ratios->ps_per_unit, stage, n_stages, out, err);
	case HPS_PROVISION_KEEP:
		hps_score(p, stage, n_stages, out);
		return HPS_OK;
	default:
		return exactly(p, stage, n_stages, out, err);
	}
}

enum hps_status hps_provision(const struct hps_job *job, const struct hps_problem *p,
			      const char *method, const struct hps_ratios *ratios, bool other_floor,
			      enum hps_provisioner *how, struct hps_solution *out,
			      struct hps_err *err)
{
	uint32_t n = job->plan.n_stages;
	struct hps_span *stage = NULL;
	struct hps_search s = { 0 };
	struct hps_ratios own;
	struct hps_trial t;
	enum hps_status rc;
	double bound;

	memset(out, 0, sizeof(*out));
	*how = !other_floor && !strncmp(job->plan.method, "fixed:", 6) ? HPS_PROVISION_KEEP
								       : HPS_PROVISION_EXACT;
	rc = method ? hps_provisioner_find(method, how, err) : HPS_OK;
	if (!rc)
		rc = hps_spans_of_plan(p->cost, &job->plan, &stage, err);
	if (rc)
		return rc;
	own = hps_ratios_asked(ratios, p->cost, stage, n, job->plan.ps_shards);
	rc = hps_search_init(&s, p, 0, err);
	if (!rc)
		rc = hps_provision_units(p, *how, &own, stage, n, &t, &bound, err);
	if (rc) {
		hps_search_release(&s);
	} else {
		s.evaluations = 1;
		s.has_bound = bound > 0;
		s.bound = bound;
		hps_search_offer(&s, stage, n, &t);
		rc = hps_search_finish(&s, out, err);
	}
	free(stage);
	return rc;
}
