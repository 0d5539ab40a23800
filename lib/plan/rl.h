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
 * A policy that is given decides first. The first run then begins shrunk and perturbed (Ash, Adams
 * 2020): with 0.3 of its weights and 0.7 of a new policy's, so that what another job made sure of
 * leans the first samples and still yields to what this one shows. A run that began so gives way to
 * a new policy when its first three rounds meet no feasible structure.
 *
 * Where that helps: while the budget is small, most under tight floors, on models unlike its own
 * too, at the share of the highest throughput that it has learned for. A policy of ctrdnn-16 on two
 * types against a new one, medians of 11 seeds on matchnet, 2emb, nce (two types and four) and
 * ctrdnn-16 (four), at floors of 0, 0.3 and 0.8, after 32, 96, 320 and 1000 evaluations: the new
 * one is not yet at the optimum in 31 of 84 cells; the given one is ahead in 20 of them, up to
 * twofold, and behind in 3, by 0.2, 2 and 15 %: after some 10 rounds, where four types make another
 * shape of plan cheaper than its two did, and later by chance. It does not help to meet the first
 * feasible structure where hardly any is, nor with thousands of evaluations.
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
