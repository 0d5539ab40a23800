/* The planners that learned search is compared with: each as good as its kind gets, all by
 * hps_search_try, so one evaluation is the same work for all. A budget in evaluations gives the
 * same answer for the same seed, a stop gives the best so far (at least one structure is always
 * looked at), and the bound is hps_search_bound's.
 *
 *   greedy   layer by layer in model order, each where the whole plan costs least (greedy.c)
 *   genetic  crossover at stage boundaries, mutation by moves, the best survive (genetic.c)
 *   bayes    a Gaussian process over schedules, expected improvement (bayes.c, gp.h)
 *   anneal   simulated annealing over moves, restarts (anneal.c)
 *   random   the best of N (random.c)
 *   auto     exact where it proves within the budget, else the best that search finds (auto.c)
 */
#ifndef HPS_PLAN_RIVALS_H
#define HPS_PLAN_RIVALS_H

#include "plan/moves.h"
#include "plan/plan.h"

/* Where neither evaluations nor seconds are given. */
enum { HPS_RIVAL_EVALUATIONS = 30000 };

enum hps_status hps_plan_greedy(const struct hps_problem *p, const char *arg,
				struct hps_solution *out, struct hps_err *err);
enum hps_status hps_plan_genetic(const struct hps_problem *p, const char *arg,
				 struct hps_solution *out, struct hps_err *err);
enum hps_status hps_plan_bayes(const struct hps_problem *p, const char *arg,
			       struct hps_solution *out, struct hps_err *err);
enum hps_status hps_plan_anneal(const struct hps_problem *p, const char *arg,
				struct hps_solution *out, struct hps_err *err);
enum hps_status hps_plan_random(const struct hps_problem *p, const char *arg,
				struct hps_solution *out, struct hps_err *err);
enum hps_status hps_plan_auto(const struct hps_problem *p, const char *arg,
			      struct hps_solution *out, struct hps_err *err);

/* --- what they share --- */

/* Search and chance from the problem. After a failure nothing is held. */
enum hps_status hps_rival_start(struct hps_search *s, const struct hps_problem *p,
				struct hps_rng *rng, struct hps_err *err);
/* hps_search_more, and true until something was looked at. */
bool hps_rival_more(struct hps_search *s);
/* hps_search_bound and hps_search_finish, or release where rc says that the search failed. */
enum hps_status hps_rival_end(struct hps_search *s, enum hps_status rc, struct hps_solution *out,
			      struct hps_err *err);
/* What surrogate and temperature work on: log(cost), so that prices of any size will do; infeasible
 * ones lie above, by how far off they are. */
double hps_rival_value(const struct hps_trial *t);

#endif
