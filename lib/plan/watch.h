/* When does a changing load call for another deployment? A state machine: time is passed in,
 * decisions come out, nothing is applied here.
 *
 *   hps_watch_init ... for each event: hps_watch_advance to its time (while it decides),
 *                      then hps_watch_load or hps_watch_measured
 *
 * The load asks for `target` samples a second. What is provisioned for:
 *   floor = target (1 + headroom) / efficiency
 *   efficiency = the median of the last rates that were measured / what the model predicts of the
 *       deployment that ran then, at most 1: a job that is slower than predicted gets more; one
 *       that is faster is not relied on. Until three rates were measured it is what it was with
 *       the deployment before, at first 1.
 * Objective: price per hour, no credit for running faster.
 *
 * Another deployment is
 *   start    the first one
 *   needed   the present one is slower than target / efficiency: at once, whatever it costs
 *   cheaper  the best for the floor costs less by more than `margin`, a share of the present price,
 *            and what was lost by not changing since that is so has reached what a change costs:
 *            change_dollars + change_s at the price of the new one (it is paid while the job
 *            stands still). Waiting so never loses more than one change (the break-even rule of ski
 *            rental). The loss is forgotten when the present one is best again.
 *   best     no deployment reaches the target, and this is the fastest there is; `reached` false
 */
#ifndef HPS_PLAN_WATCH_H
#define HPS_PLAN_WATCH_H

#include "plan/provision.h"

enum hps_watch_reason {
	HPS_WATCH_START,
	HPS_WATCH_NEEDED,
	HPS_WATCH_CHEAPER,
	HPS_WATCH_BEST,
};
const char *hps_watch_reason_name(enum hps_watch_reason r);

struct hps_watch_options {
	enum hps_provisioner how;
	struct hps_ratios ratios;
	double headroom, margin;
	double change_dollars, change_s;
};
/* headroom 0, margin 0.05, 0 dollars, 60 s; exact */
struct hps_watch_options hps_watch_defaults(void);

/* What is on, and why. */
struct hps_decision {
	double time_s, target, floor;
	enum hps_watch_reason reason;
	bool reached;	     /* the target is met */
	double price_before; /* dollars an hour; 0 at the start */
	double change_cost;  /* dollars; 0 at the start */
	struct hps_trial trial;
	const struct hps_span *stage; /* borrowed from the watch until its next call */
};

enum { HPS_WATCH_RATES = 9 };

struct hps_watch {
	struct hps_problem problem; /* its own copy; floor as last settled */
	struct hps_watch_options opt;
	uint32_t n;
	struct hps_span *now, *next; /* n stages: present, and best for the floor */
	struct hps_trial now_trial, next_trial;
	bool begun, settled, cheaper;
	bool unreached; /* the target is out of reach at present */
	double time_s, target, floor;
	double lost;	   /* dollars since `cheaper` */
	double predicted;  /* of what runs; 0 = unknown */
	double efficiency; /* of what ran before */
	double rate[HPS_WATCH_RATES];
	uint32_t n_rates;
};

/* stage: the plan's; cost stays borrowed. */
enum hps_status hps_watch_init(struct hps_watch *w, const struct hps_problem *p,
			       const struct hps_watch_options *opt, const struct hps_span *stage,
			       uint32_t n_stages, struct hps_err *err);
/* These units and shards run now, before any load: no start, and rates are measured on them. */
void hps_watch_running(struct hps_watch *w, const struct hps_span *stage, uint32_t shards);
/* The same from a job's deployment; nothing where that has other stages. */
void hps_watch_running_job(struct hps_watch *w, const struct hps_deployment *d);
void hps_watch_release(struct hps_watch *w);

/* Each may decide: *decided, and d then says what. HPS_BAD_INPUT for a time before the last one;
 * HPS_NO as hps_provision_units. */
enum hps_status hps_watch_load(struct hps_watch *w, double time_s, double target, bool *decided,
			       struct hps_decision *d, struct hps_err *err);
/* 0 is no rate and is passed over. */
enum hps_status hps_watch_measured(struct hps_watch *w, double time_s, double rate, bool *decided,
				   struct hps_decision *d, struct hps_err *err);
/* Time passes; stops at the first decision: d->time_s says when, call again. */
enum hps_status hps_watch_advance(struct hps_watch *w, double time_s, bool *decided,
				  struct hps_decision *d, struct hps_err *err);
/* When it decides if nothing else happens; INFINITY: never. */
double hps_watch_next(const struct hps_watch *w);
/* The deployment decided last runs from now on; rates measured before are forgotten. */
void hps_watch_applied(struct hps_watch *w);
double hps_watch_efficiency(const struct hps_watch *w);
/* Median of the last measured rates; 0 = none. */
double hps_watch_rate(const struct hps_watch *w);

#endif
