/* The planning problem, its answer, and the one evaluation that every method shares.
 *
 * A plan cuts the layers into stages and gives each stage a type and integer units. Methods
 * differ in how they choose cuts and types (a STRUCTURE); units, shards and the target cycle
 * are settled by hps_settle, exactly and in the same way for all, so a sampled structure is
 * always scored after provisioning (the joint optimisation of HeterPS). Pure: the clock, the
 * interrupt and progress are callbacks; chance comes from `seed` alone.
 *
 *   problem -> method -> solution          search: problem + budget + best so far
 *                 \-> hps_search_try(structure) -> settled units, objective
 *
 * Objectives (dollars; lower is better), always under throughput >= floor and the limits:
 *   cost per sample  price_per_hour / 3600 * cycle: a training job; a plan may run faster
 *                    than the floor where that is cheaper
 *   price per hour   a load that asks for the floor and pays nothing for more
 * Ties (relative HPS_TIE_EPS): the higher throughput, then fewer units, then fewer stages,
 * then the one met first.
 *
 * Equal neighbouring types are legal (a cut is an extra stage); with `merge` (the papers'
 * rule) they are not.
 */
#ifndef HPS_PLAN_PLAN_H
#define HPS_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "cost/cost.h"
#include "job/job.h"

enum hps_objective { HPS_COST_PER_SAMPLE, HPS_PRICE_PER_HOUR };
const char *hps_objective_name(enum hps_objective o); /* as in the document */
#define HPS_TIE_EPS 1e-9

/* What a long search tells while it runs. */
struct hps_plan_news {
	uint64_t evaluations, max_evaluations; /* max 0 = open */
	double objective; /* the best so far; INFINITY before the first feasible plan */
	double bound;	  /* 0 = none yet */
};

/* All may be NULL: no time limit, no interrupt, no progress. Called from the thread that
 * called the method, at least every few milliseconds. */
struct hps_plan_hooks {
	double (*now)(void *arg); /* monotonic seconds */
	bool (*stop)(void *arg);  /* the user asks for the best so far */
	void (*news)(void *arg, const struct hps_plan_news *n);
	void *arg;
};

/* What judges a settled schedule in place of the formula: samples a second. HPS_NO: it does not
 * run. */
struct hps_reward {
	enum hps_status (*throughput)(void *arg, const struct hps_cost *c,
				      const struct hps_schedule *s, double *out,
				      struct hps_err *err);
	void *arg;
};

struct hps_problem {
	const struct hps_cost *cost; /* borrowed; form, evaluator, batch, shards are in it */
	double floor;		     /* samples a second; 0 = none */
	enum hps_objective objective;
	bool merge;
	uint64_t seed;
	uint64_t max_evaluations; /* 0 = the method's default, none where seconds are given */
	double max_seconds;	  /* 0 = none; needs hooks.now. Not reproducible */
	struct hps_plan_hooks hooks;
	const struct hps_rl_options *rl; /* rl.h; borrowed, NULL = defaults */
	const struct hps_reward *reward; /* borrowed, NULL = the formula. For methods that search by
					  * hps_search_try; the others go by the formula */
};

/* What one structure is worth once its units are settled. */
struct hps_trial {
	bool feasible;
	double objective; /* by the problem; INFINITY if infeasible */
	double graded;	  /* objective, or for an infeasible structure a finite penalty: the
			   * objective at its fastest * 10 * (1 + excess) */
	double excess;	  /* how far off: floor / throughput - 1, plus units over a limit as a
			   * share of it, plus memory over what there is as a share */
	double throughput, price, cost; /* samples a second, dollars an hour, dollars a sample */
	uint32_t shards;
	uint32_t units, stages; /* units: of all stages */
};

/* Settle units and shards of a structure: exact for evaluator `rate` (proof in settle.c); for
 * `step` the best of the vectors that the sweep visits, each scored by `step`, improved by hill
 * climbing. stage[].units are outputs. An infeasible structure gets its fastest units within the
 * limits (1 each where even that is too many). Thread-safe; allocates only beyond 64 stages (then
 * HPS_MEMORY may come). */
enum hps_status hps_settle(const struct hps_problem *p, struct hps_span *stage, uint32_t n_stages,
			   struct hps_trial *out, struct hps_err *err);
/* The same for units that are given (fixed:): shards alone are settled. */
void hps_score(const struct hps_problem *p, const struct hps_span *stage, uint32_t n_stages,
	       struct hps_trial *out);
/* What every method that searches asks: hps_settle, and where the problem has a reward of its own
 * that throughput in place of the formula's. Where it misses the floor, units are settled again for
 * a floor higher by as much, three times at most. */
enum hps_status hps_evaluate(const struct hps_problem *p, struct hps_span *stage, uint32_t n_stages,
			     struct hps_trial *out, struct hps_err *err);
/* The same for units that are given and were scored by the formula: *trial is changed. */
enum hps_status hps_reward_trial(const struct hps_problem *p, const struct hps_span *stage,
				 uint32_t n_stages, struct hps_trial *trial, struct hps_err *err);
/* Is a better than b by objective and ties? Infeasible ones by excess, then `graded`. */
bool hps_trial_better(const struct hps_trial *a, const struct hps_trial *b);

/* The answer. `stage` is owned; release with hps_solution_release, also after a failure. */
struct hps_solution {
	struct hps_span *stage;
	uint32_t n_stages;
	struct hps_trial trial; /* what it costs, how fast, how many shards */
	double bound;		/* no plan's objective is below; for `rate` and so for `step` too */
	bool has_bound;
	bool proven; /* objective equals bound (relative HPS_TIE_EPS) */
	bool interrupted;
	uint64_t evaluations;
};
void hps_solution_release(struct hps_solution *s);
/* (objective - bound) / bound, or 0. */
double hps_solution_gap(const struct hps_solution *s);

/* --- for methods: search with a budget ---
 *   struct hps_search s;
 *   hps_search_init(&s, problem, default_evaluations, err) ...
 *   while (hps_search_more(&s)) {
 *           fill stage[], n;
 *           hps_search_try(&s, stage, n, &trial, err) ...   (counts one, keeps the best)
 *   }
 *   hps_search_finish(&s, solution, err)
 */
struct hps_search {
	const struct hps_problem *problem;
	struct hps_span *best; /* n_layers; n_best of them in use */
	uint32_t n_best;
	struct hps_trial best_trial;
	uint64_t evaluations, max_evaluations;
	double deadline; /* by hooks.now; INFINITY = none */
	bool interrupted;
	bool has_bound; /* a method that knows one sets both */
	double bound;
};
enum hps_status hps_search_init(struct hps_search *s, const struct hps_problem *p,
				uint64_t default_evaluations, struct hps_err *err);
/* Evaluations left, time left, nobody asked to stop. Tells news now and then. */
bool hps_search_more(struct hps_search *s);
/* Asked to stop, or out of time: for the inside of a long evaluation. */
bool hps_search_halted(struct hps_search *s);
/* Share of the budget that is gone, 0 .. 1: of evaluations or of seconds, whichever is more. */
double hps_search_used(const struct hps_search *s);
/* A lower bound for methods that have none of their own, once they are done: the optimum where sums
 * over stages (limits of a type, work on shared cores, dense bytes through servers) are left out,
 * or less where that would take long. No evaluation, past any budget: it takes milliseconds for
 * two types and up to half a second for 64. Nothing is done where no plan is feasible. */
enum hps_status hps_search_bound(struct hps_search *s, struct hps_err *err);
/* A structure with `merge` on and equal neighbours is joined first: stage and *n change. */
enum hps_status hps_search_try(struct hps_search *s, struct hps_span *stage, uint32_t *n,
			       struct hps_trial *out, struct hps_err *err);
/* Keep this structure with these units, already scored, if it is the best so far. */
void hps_search_offer(struct hps_search *s, const struct hps_span *stage, uint32_t n,
		      const struct hps_trial *trial);
/* Local search from the best: cuts moved, types changed, stages joined and split, at most `most`
 * tries, each an evaluation; until no neighbour is better. */
enum hps_status hps_improve(struct hps_search *s, uint64_t most, struct hps_err *err);
/* Move the best into out. If none is feasible: HPS_NO, err says what binds the least infeasible
 * one and how fast it is, out holds it. Releases s in every case. */
enum hps_status hps_search_finish(struct hps_search *s, struct hps_solution *out,
				  struct hps_err *err);
void hps_search_release(struct hps_search *s);

/* Layers to structure: type[l] per layer, cut[l] != 0 = a stage begins at l (cut[0] is taken
 * as set; a change of type always cuts). cut may be NULL. Returns the number of stages. */
uint32_t hps_spans_of_layers(const uint32_t *type, const uint8_t *cut, uint32_t n_layers,
			     struct hps_span *out /* n_layers */);

/* --- methods --- */
struct hps_method {
	const char *name;     /* "exact"; with arg: "all:" and the rest of the user's word is arg */
	const char *synopsis; /* "fixed:TYPE*N|TYPE*N..." */
	const char *summary;  /* one line for -h and the list */
	bool has_arg;
	/* HPS_OK; HPS_NO with why in err if no plan meets the floor and the limits (out then
	 * holds the fastest known); HPS_USAGE for a bad arg. */
	enum hps_status (*solve)(const struct hps_problem *p, const char *arg,
				 struct hps_solution *out, struct hps_err *err);
};
#define HPS_METHOD_DEFAULT "rl"
/* All methods, NULL-terminated. */
const struct hps_method *const *hps_methods(void);
/* By the user's word; *arg is what follows the colon, or "". NULL with HPS_USAGE and the list
 * in err. */
const struct hps_method *hps_method_find(const char *word, const char **arg, struct hps_err *err);

enum hps_status hps_plan_heuristic(const struct hps_problem *p, const char *arg,
				   struct hps_solution *out, struct hps_err *err);
enum hps_status hps_plan_all(const struct hps_problem *p, const char *arg, struct hps_solution *out,
			     struct hps_err *err);
enum hps_status hps_plan_fixed(const struct hps_problem *p, const char *arg,
			       struct hps_solution *out, struct hps_err *err);
/* Every structure, refused above HPS_BRUTE_MAX of them. The judge of the others in tests. */
enum hps_status hps_plan_brute(const struct hps_problem *p, const char *arg,
			       struct hps_solution *out, struct hps_err *err);
enum { HPS_BRUTE_MAX = 2000000 };

/* The highest throughput there is under limits and memory, whatever it costs, by `rate`.
 * out is a solution with that throughput (trial.feasible: does it meet the floor?). HPS_NO if
 * no plan fits the limits at all. */
enum hps_status hps_plan_fastest(const struct hps_problem *p, struct hps_solution *out,
				 struct hps_err *err);
/* Why no plan meets the floor: sets err to HPS_NO with the layer, stage or limit that binds,
 * numbers, and the best throughput there is. fastest: hps_plan_fastest's answer, NULL if no plan
 * fits at all. Returns HPS_NO. */
enum hps_status hps_explain_no(const struct hps_problem *p, const struct hps_solution *fastest,
			       struct hps_err *err);

/* --- to and from the document --- */
/* plan owns all it points to: hps_plan_release. */
enum hps_status hps_plan_of_solution(const struct hps_problem *p, const struct hps_solution *s,
				     const char *method, struct hps_plan *plan,
				     struct hps_err *err);
/* Spans of a plan read from a document: *stage is malloc()ed, n_stages long. HPS_BAD_INPUT if
 * the cluster has no such type or the layers do not fit. */
enum hps_status hps_spans_of_plan(const struct hps_cost *c, const struct hps_plan *plan,
				  struct hps_span **stage, struct hps_err *err);

/* For a person: a table of stages, and the summary line. */
enum hps_status hps_plan_text(const struct hps_problem *p, const struct hps_solution *s,
			      const char *method, struct hps_buf *b, struct hps_err *err);
/* For each stage what binds it (compute, link, floor, limit), its slack, and what one unit less
 * and one more would do; the price of the floor; and what each layer would cost on each other
 * type, the rest of the cuts and types as they are and units settled anew. A layer that comes to
 * stand beside a stage of its new type joins it where that is better, or the rule. */
enum hps_status hps_plan_explain(const struct hps_problem *p, const struct hps_solution *s,
				 struct hps_buf *b, struct hps_err *err);

#endif
