/* The learning placer: REINFORCE on a recurrent policy (policy.h), every sampled schedule
 * scored after provisioning (hps_search_try).
 */
#ifndef HPS_PLAN_RL_H
#define HPS_PLAN_RL_H

#include "plan/policy.h"

struct hps_rl_options {
	const struct hps_policy *policy; /* start from it; NULL: drawn from the seed */
	int64_t rounds;			 /* of learning at most; -1: as the budget allows; 0: the
					  * policy's own decision alone */
	bool moving_baseline;		 /* the textbook's, instead of the batch's mean */
	struct hps_policy *learned;	 /* out, may be NULL: what was learned */
};

enum { HPS_RL_EVALUATIONS = 30000 };

enum hps_status hps_plan_rl(const struct hps_problem *p, const char *arg, struct hps_solution *out,
			    struct hps_err *err);
enum hps_status hps_plan_rl_rnn(const struct hps_problem *p, const char *arg,
				struct hps_solution *out, struct hps_err *err);
enum hps_status hps_plan_rl_polish(const struct hps_problem *p, const char *arg,
				   struct hps_solution *out, struct hps_err *err);
extern double hps_rl_knob[16];

#endif
