/* How does a rival begin and end? */
#include "plan/rivals.h"
#include <math.h>

/* A stream of its own for searching. */
enum { SEARCH_STREAM = 3 };

enum hps_status hps_rival_start(struct hps_search *s, const struct hps_problem *p,
				struct hps_rng *rng, struct hps_err *err)
{
	enum hps_status rc = hps_search_init(s, p, HPS_RIVAL_EVALUATIONS, err);

	if (!rc)
		hps_rng_init(rng, p->seed, SEARCH_STREAM);
	return rc;
}

bool hps_rival_more(struct hps_search *s)
{
	return hps_search_more(s) || !s->evaluations;
}

enum hps_status hps_rival_end(struct hps_search *s, enum hps_status rc, struct hps_solution *out,
			      struct hps_err *err)
{
	if (!rc)
		rc = hps_search_bound(s, err);
	if (!rc)
		return hps_search_finish(s, out, err);
	hps_search_release(s);
	return rc;
}

double hps_rival_value(const struct hps_trial *t)
{
	/* graded alone would lead to what is slow and cheap, away from the floor. */
	return log(fmax(t->graded, 1e-300)) + (t->feasible ? 0 : 3 * log1p(t->excess));
}
