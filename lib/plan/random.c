/* What does chance find? The best of as many random structures as the budget allows: the rival that
 * every search has to beat. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/rivals.h"

enum hps_status hps_plan_random(const struct hps_problem *p, const char *arg,
				struct hps_solution *out, struct hps_err *err)
{
	struct hps_search s;
	struct hps_span *stage;
	struct hps_rng rng;
	enum hps_status rc;

	(void)arg;
	memset(out, 0, sizeof(*out));
	rc = hps_rival_start(&s, p, &rng, err);
	if (rc)
		return rc;
	stage = hps_calloc(p->cost->n_layers, sizeof(*stage), err);
	rc = stage ? HPS_OK : HPS_MEMORY;
	while (!rc && hps_rival_more(&s)) {
		uint32_t n = hps_structure_random(p, &rng, stage);
		struct hps_trial t;

		rc = hps_search_try(&s, stage, &n, &t, err);
	}
	free(stage);
	return hps_rival_end(&s, rc, out, err);
}
