/* Which units are best where a step's time is what counts? Filling and synchronising couple all
 * stages, so least units per stage are no longer best: hill climbing from what the sweep found,
 * one unit more or less at a stage at a time or at all, shards settled for each. */
#include "plan/plan_int.h"

enum { MAX_ROUNDS = 64 };

void hps_score(const struct hps_problem *p, const struct hps_span *stage, uint32_t n_stages,
	       struct hps_trial *out)
{
	const struct hps_cost *c = p->cost;
	struct hps_schedule sched = { stage, n_stages, c->ps.min };
	struct hps_trial t;

	hps_trial_of_schedule(p, &sched, out);
	/* More shards while they help; where the floor is far, in longer strides. */
	for (uint32_t s = c->ps.min + 1; s <= c->ps.max; s += out->feasible ? 1 : 1 + s / 8) {
		double before = out->throughput;

		sched.shards = s;
		hps_trial_of_schedule(p, &sched, &t);
		if (hps_trial_better(&t, out))
			*out = t;
		else if (out->feasible || t.throughput <= before * (1 + HPS_TIE_EPS))
			break;
	}
}

/* Stage i with `units`: kept if better. */
static bool try_units(const struct hps_problem *p, struct hps_span *stage, uint32_t n, uint32_t i,
		      uint32_t units, struct hps_trial *best)
{
	uint32_t before = stage[i].units;
	struct hps_trial t;

	stage[i].units = units;
	hps_score(p, stage, n, &t);
	if (hps_trial_better(&t, best)) {
		*best = t;
		return true;
	}
	stage[i].units = before;
	return false;
}

/* One unit more at every stage: what one alone would wait for, all may use. */
static bool try_all(const struct hps_problem *p, struct hps_span *stage, uint32_t n,
		    struct hps_trial *best)
{
	struct hps_trial t;

	for (uint32_t i = 0; i < n; i++)
		stage[i].units++;
	hps_score(p, stage, n, &t);
	if (hps_trial_better(&t, best)) {
		*best = t;
		return true;
	}
	for (uint32_t i = 0; i < n; i++)
		stage[i].units--;
	return false;
}

void hps_climb(const struct hps_problem *p, struct hps_span *stage, uint32_t n,
	       struct hps_trial *best)
{
	struct hps_trial t;
	bool better = true;

	hps_score(p, stage, n, &t);
	if (hps_trial_better(&t, best))
		*best = t;
	for (int round = 0; better && round < MAX_ROUNDS; round++) {
		better = try_all(p, stage, n, best);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t most = p->cost->type[stage[i].type].limit;

			while (stage[i].units < most &&
			       try_units(p, stage, n, i, stage[i].units + 1, best))
				better = true;
			while (stage[i].units > 1 &&
			       try_units(p, stage, n, i, stage[i].units - 1, best))
				better = true;
		}
	}
}
