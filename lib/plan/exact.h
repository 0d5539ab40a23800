/* The proven optimum: a sweep over cycle times, each solved by dynamic programming over cuts
 * and types, with labels where stages are coupled.
 *
 * Problem. Choose stages (i..j, type t, units k) over layers 0..L-1. A plan p has a cycle time
 * e(p) = the largest of its ETs, PT and HT, and a price rate R(p) = sum price_t k + ps_price S.
 * Minimise e(p) R(p) subject to e(p) <= 1/floor, k <= max_units of the stage, sum of k over the
 * stages of a type <= its limit, S <= its limit, memory.
 *
 * 1. Fix tau. Every quantity that a plan consumes (price, units of a type, load of the servers,
 *    work on shared cores) does not fall when one stage's k rises. So among plans of one
 *    structure with e <= tau, the one where every stage takes the LEAST k with ET(k) <= tau
 *    (hps_stage_units) and the servers the least S is the cheapest, and fits if any fits.
 * 2. Hence G(tau) = min { R(p) : e(p) <= tau } is a shortest path over (cut, bandwidth it is
 *    crossed at): a stage's ET depends on its neighbours only through that, and it takes as many
 *    values as types have bandwidths. A state may claim less bandwidth than the two sides have,
 *    never more: claiming less is never better, so the optimum is unchanged. With `merge` each
 *    state keeps its best way and the best one of another type.
 * 3. Couplings. Loads of servers and cores, and units of limited types, are sums over stages.
 *    First the path is sought without the sums (a relaxation). If its plan keeps all of them it
 *    is optimal. Broken limits get a toll l_t >= 0: a unit costs price_t + l_t, and a plan gets
 *    sum l_t limit_t back. What keeps its limits pays no more than it gets back, so the path under
 *    tolls bounds it for any l (Lagrangian relaxation); subgradient steps raise that bound, and
 *    paths met on the way that keep all limits are plans. Where bound and plan do not meet,
 *    the sums with a toll become resources of a label (price, resources). A label is dropped when
 *    another at the same state is no worse in all of them (by 1., any completion of the one
 *    completes the other), or when its price and tolls plus the path of what is left, less what
 *    it gets back, reach the best known; only watched sums have tolls, so a label that is no
 *    worse is not dropped where the other would not be. Sums not yet broken stay out; a
 *    solution that breaks a new one adds it and solves again. At the end the plan keeps all sums
 *    and is optimal under some of them, so it is optimal under all.
 * 4. Sweep. The optimum is min over tau <= 1/floor of e(p_tau) R(p_tau), p_tau a minimiser of
 *    G(tau). Start at tau = 1/floor. With e = e(p_tau): G is constant on [e, tau], so a plan
 *    with e(p) in [e, tau] has R(p) >= G(tau) and costs no less than e G(tau), already counted.
 *    What is left has e(p) < e. It also has R(p) >= G(tau), so a plan better than the best cost
 *    C has e(p) < C / G(tau): go on at tau' = min(just below e, C / G(tau)).
 * 5. Bound. Let k_e be the least k with ET(k) < e. A plan with e(p) < e has k >= k_e at every
 *    stage and e(p) >= ET(k), so it costs at least the sum over stages of price_t times the
 *    least of k ET(k) over k >= k_e. k max(a + b/k, c + d/k) = max(b + k a, d + k c); where it
 *    does not fall with k that least is at k_e, otherwise (a falling table, 1/k^2) it is taken over
 *    all k up to the limit. S PT(S) is the servers' load, so they add ps_price times that.
 *    The shortest path under these weights, sums left out, bounds all that is still to come;
 *    stop when it reaches C. Stopped earlier by the budget, min(C, bound) is a valid bound.
 * 6. k_first. In the executor form b depends on k_first through n = M k_first, and k of a later
 *    stage is at most n. A range of k_first is bounded by the path with n of its low end and the
 *    replicas of its high end, as b grows with n. One tau is solved by branch and bound over
 *    ranges, best bound first: a range is split halfway between its low end and the k_first that the
 *    bound's plan asks for, down to one k_first, which is solved exactly. Bounds of 5. take the
 *    whole range from the least k_first that tau allows.
 * 7. Objective price per hour: G(1/floor); then smaller tau while G stays the same, for ties.
 * 8. Evaluator step: its cycle is at least the rate's, so the bound holds for it too. Structures
 *    met on the way are settled by it, the best is improved by local search, and is proven only
 *    where it meets the bound.
 *
 * A first look at few tau and some local search from what it finds give a plan to begin with: the
 * better C, the more of the sweep is leapt over.
 *
 * Evaluations: one for each solved tau.
 */
#ifndef HPS_PLAN_EXACT_H
#define HPS_PLAN_EXACT_H

#include "plan/plan.h"

enum hps_status hps_plan_exact(const struct hps_problem *p, const char *arg,
			       struct hps_solution *out, struct hps_err *err);

#endif
