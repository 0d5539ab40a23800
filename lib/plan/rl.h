/* The learning placer: a recurrent policy (policy.h) samples structures, each is scored after
 * provisioning (hps_search_try: the joint optimisation of HeterPS), and REINFORCE (Williams 1992)
 * makes what scored well likelier. The best structure ever sampled is the answer.
 *
 * Published: an LSTM over layers, the choice before fed back, REINFORCE with a moving average as
 * baseline, the reward of a sample taken after provisioning. Added, for it to converge (all ours):
 * the reward is -log(cost), and the advantage over the baseline is in moving deviations,
 * clipped to -2..3; an entropy bonus that decays; cuts chosen apart from types, types by features;
 * every fourth round four distinct elites are imitated at weight 0.2; Adam with the gradient's norm
 * clipped; and a new policy, of another inclination to cut, when a batch has no variance or nothing
 * improved for 150 rounds. Infeasible structures cost more than all feasible ones, by how far off
 * they are.
 *
 * A policy that is given decides first, then learns on from the same likeliest choices at twice the
 * temperature; it gives way to a new one when its first three rounds meet no feasible structure.
 *
 * Every sample counts as an evaluation, also where its structure was met before and its score
 * is only looked up. A budget in evaluations gives the same bytes for the same seed.
 *
 *   rl          LSTM             rl-rnn    Elman cell
 *   rl+polish   LSTM; elites are improved by local search over structures (moves.h), whose
 *               tries count too, up to half of all
 */
#ifndef HPS_PLAN_RL_H
#define HPS_PLAN_RL_H

#include "plan/policy.h"

/* In hps_problem.rl; NULL there is all defaults. */
struct hps_rl_options {
	const struct hps_policy *policy; /* to begin with; NULL: drawn from the seed. HPS_USAGE
					  * where its cell is not the method's */
	bool limited;			 /* at most `rounds` rounds of learning; 0: the */
	uint64_t rounds;		 /* policy's decision alone (one evaluation) */
	struct hps_policy *learned; /* out, or NULL: the policy whose decision was best among those
				     * at the end of each learning; hps_policy_release */
};

/* The default budget: evaluations on few types, in proportion more on more than 16. */
enum { HPS_RL_EVALUATIONS = 30000, HPS_RL_TYPES = 16 };

enum hps_status hps_plan_rl(const struct hps_problem *p, const char *arg, struct hps_solution *out,
			    struct hps_err *err);
enum hps_status hps_plan_rl_rnn(const struct hps_problem *p, const char *arg,
				struct hps_solution *out, struct hps_err *err);
enum hps_status hps_plan_rl_polish(const struct hps_problem *p, const char *arg,
				   struct hps_solution *out, struct hps_err *err);

#endif
