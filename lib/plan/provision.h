/* How many units does each stage of a plan take? The provisioner of HeterPS, its exact form, and
 * the static rivals that its authors compare with. Pure.
 *
 *   exact       hps_settle: the integer optimum of the plan's structure by `rate`; by `step` the
 *               best over first-stage replicas and rounds (settle_step.c), which is no proof.
 *   newton      the continuous optimum, then integers by an exact search around it (below).
 *   staratio    CPU units : GPU units fixed, PS shards as many as needed.
 *   stapsratio  PS shards : units fixed, units as few as the floor allows.
 *   keep        the units that the plan has; shards as many as needed.
 *
 * Newton. With real k, stage i needs for a cycle of tau seconds a sample
 *   k_i(tau) = max(1, memory_i, b_i / (tau - a_i), d_i / (tau - c_i))     (serial: their sums)
 *   S(tau)   = max(least shards, PS work / tau)
 * and the job costs F(tau) = tau (sum price_i k_i(tau) + ps_price S(tau)), tau <= 1/floor. In the
 * executor form b_i = v_i + f_i k_1(tau): more first-stage replicas make smaller micro-batches.
 * F is convex where all stages are regular (hps_stage_regular): b/(tau - a) and
 * tau/(tau - a) = 1 + a/(tau - a) are convex, positive and falling; products, sums and maxima of
 * such are so too; and tau max(1, ..) is the maximum of convex functions. So F' rises, its zero is
 * the optimum, and F there is a LOWER BOUND of every integer plan of this structure. The maxima
 * leave kinks in F', so Newton's step F'/F'' is taken only inside a bracket of the sign of F' that
 * it halves at least every second time, else the bracket is bisected. Price per hour falls with
 * tau: its optimum is at 1/floor. A stage with a measured scaling table is interpolated between
 * integers, the bracket then comes from a scan, and nothing is proven: no bound.
 * Limits, shards and shared cores hold from some tau upwards, which bisection finds.
 * Integers: the vectors that hps_settle's sweep visits from the cycle of one unit less to that of
 * one more than the real numbers' floor and ceiling, stage by stage; if none of them will do, all
 * that are slower, down to the floor.
 *
 * Static ratios. What StaRatio and StaPSRatio are is the authors' idea (a fixed ratio of CPU cores
 * to GPUs, of PS cores to workers); the ratios that they used are not at hand, and the rest is
 * ours: by default the plan's own ratio, so that they are right at the rate that the plan was made
 * for. Units are added one by one to the stage that is slowest in what its kind has
 * to share, until the floor is met. Units of a kind that no stage can use, and those beyond what
 * the cluster has, are not bought, which flatters the rivals.
 */
#ifndef HPS_PLAN_PROVISION_H
#define HPS_PLAN_PROVISION_H

#include "plan/plan.h"

enum hps_provisioner {
	HPS_PROVISION_EXACT,
	HPS_PROVISION_NEWTON,
	HPS_PROVISION_STARATIO,
	HPS_PROVISION_STAPSRATIO,
	HPS_PROVISION_KEEP,
};
const char *hps_provisioner_name(enum hps_provisioner how);

struct hps_ratios {
	double cpus_per_gpu; /* CPU units a GPU unit, > 0; 0 = none can be told */
	double ps_per_unit;  /* shards a unit of any stage, > 0; 0 likewise */
};
/* Those of a plan's stages and shards. */
struct hps_ratios hps_ratios_of(const struct hps_cost *c, const struct hps_span *stage,
				uint32_t n_stages, uint32_t shards);
/* Those asked for; 0: those of the plan. */
struct hps_ratios hps_ratios_asked(const struct hps_ratios *asked, const struct hps_cost *c,
				   const struct hps_span *stage, uint32_t n_stages,
				   uint32_t shards);

/* The continuous optimum. */
struct hps_continuous {
	double tau;   /* seconds a sample */
	double value; /* the objective there: dollars a sample, or an hour */
	double *k;    /* n_stages, real units; the caller's array */
	double shards;
	bool bound;	 /* value is a lower bound of the structure's integer plans */
	uint32_t newton; /* steps that Newton took */
	uint32_t bisect; /* and bisection */
};
/* HPS_NO if no tau within the floor will do. */
enum hps_status hps_newton(const struct hps_problem *p, const struct hps_span *stage,
			   uint32_t n_stages, struct hps_continuous *out, struct hps_err *err);
/* The same objective at a given tau, INFINITY where it cannot be: for tests and plots. */
double hps_continuous_at(const struct hps_problem *p, const struct hps_span *stage,
			 uint32_t n_stages, double tau);

/* Settle stage[].units and shards; out says what they cost and whether the floor is met: if not,
 * they are the fastest that this way finds. *bound (may be NULL): a lower bound of the
 * structure's objective, 0 = none. HPS_NO where a ratio has nothing to hold on to. */
enum hps_status hps_provision_units(const struct hps_problem *p, enum hps_provisioner how,
				    const struct hps_ratios *ratios, struct hps_span *stage,
				    uint32_t n_stages, struct hps_trial *out, double *bound,
				    struct hps_err *err);

/* The stages of the job's plan become the solution. method: as above, NULL: keep where the user
 * fixed them (method "fixed:...") and asks for no other floor, else exact. ratios: 0 = the plan's
 * own. *how tells what was done. HPS_USAGE for another word, HPS_NO as the methods. */
enum hps_status hps_provision(const struct hps_job *job, const struct hps_problem *p,
			      const char *method, const struct hps_ratios *ratios, bool other_floor,
			      enum hps_provisioner *how, struct hps_solution *out,
			      struct hps_err *err);
enum hps_status hps_provisioner_find(const char *word, enum hps_provisioner *out,
				     struct hps_err *err);

#endif
