/* A plan in the simulator (sim/sim.h): the user's words, the run, the report. */
#ifndef HPS_PLAN_SIMULATE_H
#define HPS_PLAN_SIMULATE_H

#include "doc/doc.h"
#include "plan/plan.h"
#include "sim/sim.h"

struct hps_simulation {
	struct hps_sim_options options; /* as run */
	struct hps_sim_result result;
	struct hps_sim_stage *stage; /* n_stages */
	uint32_t n_stages;
};

/* "asp,jitter=0.2,stragglers=0.05*3,steps=100": by comma, the last of a kind holds; "": none.
 *   bsp, asp, ssp:BOUND   jitter=CV   stragglers=SHARE*FACTOR   steps=N   duplex
 * Starts from the problem's mode and seed, no noise. HPS_USAGE names the word. */
enum hps_status hps_simulation_words(const struct hps_problem *p, const char *words,
				     struct hps_sim_options *o, struct hps_err *err);
/* Run the solution; the problem's stop hook ends it with HPS_NO. Release in every case; stage is NULL
 * unless HPS_OK. */
enum hps_status hps_simulate(const struct hps_problem *p, const struct hps_solution *s,
			     const struct hps_sim_options *o, struct hps_simulation *out,
			     struct hps_err *err);
void hps_simulation_release(struct hps_simulation *x);

/* The simulator as a reward: arg is a struct hps_sim_options, whose `stop` is not asked; HPS_NO also
 * for a schedule that takes more than HPS_SIMULATE_MOST events. */
enum hps_status hps_simulate_reward(void *arg, const struct hps_cost *c,
				    const struct hps_schedule *s, double *out, struct hps_err *err);
enum { HPS_SIMULATE_MOST = 2000000 };

/* Tables for a person; the document's "simulation" section, NULL without memory. */
enum hps_status hps_simulation_text(const struct hps_problem *p, const struct hps_solution *s,
				    const struct hps_simulation *x, struct hps_buf *b,
				    struct hps_err *err);
struct hps_doc *hps_simulation_doc(const struct hps_problem *p, const struct hps_solution *s,
				   const struct hps_simulation *x);

#endif
