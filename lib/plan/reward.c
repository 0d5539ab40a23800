/* What is a schedule worth where something other than the formula judges it (a simulator)? */
#include "plan/plan_int.h"

enum { MOST_TRIES = 3 };

/* Beyond what misses a floor: nothing runs at all. */
static const double far_off = 1e3;

enum hps_status hps_reward_trial(const struct hps_problem *p, const struct hps_span *stage,
				 uint32_t n_stages, struct hps_trial *trial, struct hps_err *err)
{
	struct hps_schedule sched = { stage, n_stages, trial->shards };
	struct hps_err why = { 0 };
	double throughput = 0;
	enum hps_status rc;

	rc = p->reward->throughput(p->reward->arg, p->cost, &sched, &throughput, &why);
	if (rc == HPS_NO) {
		trial->feasible = false;
		trial->objective = INFINITY;
		trial->excess += far_off;
		trial->graded *= far_off;
		return HPS_OK;
	}
	if (rc) {
		if (err)
			*err = why;
		return rc;
	}
	hps_trial_of_rate(p, 1 / throughput, trial->price, trial->shards, trial->units,
			  trial->stages, trial);
	return HPS_OK;
}

enum hps_status hps_evaluate(const struct hps_problem *p, struct hps_span *stage, uint32_t n_stages,
			     struct hps_trial *out, struct hps_err *err)
{
	struct hps_problem asked = *p;
	enum hps_status rc = hps_settle(p, stage, n_stages, out, err);

	if (!p->reward)
		return rc;
	for (int i = 1; !rc && out->feasible; i++) {
		rc = hps_reward_trial(p, stage, n_stages, out, err);
		if (rc || out->feasible || i == MOST_TRIES)
			break;
		asked.floor *= p->floor / out->throughput * (1 + HPS_TIME_EPS);
		rc = hps_settle(&asked, stage, n_stages, out, err);
	}
	return rc;
}
