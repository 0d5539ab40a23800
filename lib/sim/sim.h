/* What happens when a plan runs: an event-driven execution of the schedule that lib/cost puts into
 * closed formulas. Pure and deterministic: no clock, no I/O, chance from `seed` alone (by counter,
 * so that two runs that differ in one option draw the same noise for the same task).
 *
 * What runs (executor form), as lib/train does it:
 *   - n = M k_first micro-batches of m = B / n rows a step. A replica works on one task at a time,
 *     backward before forward, in order; e(m) of lib/cost, split into forward and backward as the
 *     profile has them (1 : 2 where it only has their sum). Each micro-batch goes forward through
 *     all stages and comes back on the same path.
 *   - bsp: micro-batch g on replica g mod k. A replica starts step t+1 with the parameters of t+1
 *     only; after its last backward come step_overhead_s and the dense synchronisation of its
 *     stage (waiting for each other, where there is nothing to send). Rows are
 *     pulled as soon as the micro-batch is there, up to one step ahead, and answered after all
 *     pushes of step t are worked in.
 *   - asp: chunks of M micro-batches are taken by who is free, a later stage's replica with the
 *     least in hand gets the next one. Nothing waits for a version; a dense push every M backward
 *     passes, one at a time (the next waits for it). A
 *     replica has at most `credit` micro-batches away by each replica of the next stage.
 *     ssp: asp, where a first-stage replica begins chunk c only if every other has done c - bound.
 *   - At most 2 M micro-batches of a first-stage replica are in flight.
 *   - Replicas of pooled types, shards, parsing and, in a cluster of one host, transfers share
 *     the cores of the pool: at most one core each, fair shares where they are more than cores.
 * Form `paper`: batches of B_o go through the stages, each batch over all units of a stage at
 * once (the slowest unit sets the time); no barrier, 8 S + 8 batches in flight, which are a step.
 *
 * Links: each unit has one of its type's bandwidth, for both directions together as in lib/cost,
 * or one each way (`duplex`). Messages on a link share it fairly (processor sharing). A message
 * crosses the links of both ends at once and has passed when the slower end is through, a latency
 * later: exact where one end is the bottleneck. The S shards are even (keys and dense bytes are
 * spread), so one of them is simulated and stands for all: a fair link, and one queue, first
 * come first served.
 * A ring all-reduce begins when the last replica is ready, and moves 2 P (k-1)/k bytes on each
 * link with 2 (k-1) latencies. In asp its traffic is there but nobody waits for the others.
 *
 * Noise: `jitter` is the coefficient of variation of a lognormal factor of mean 1 on every forward
 * and backward; round(share * units) units, at least one where share > 0, chosen by seed, compute
 * `factor` times as long. Links and shards are as measured.
 *
 * WHERE FORMULA AND SIMULATOR AGREE, within 5 % (bsp: to rounding), where
 *   1. there is no noise;
 *   2. at most one resource is wanted by two at once: no stage competes with another for cores,
 *      or all do and nothing else binds;
 *   3. units of a stage carry equal loads: k divides n; with asp all stages have k_first units;
 *   4. links at both ends of a cut have one bandwidth, those of shards not less than a unit's;
 *   and further, for the step (bsp):
 *   5. stages are alike, or there is one micro-batch a replica, or one stage;
 *   6. transfers at cuts are short against computing, as gradients and activations meet on a link;
 *   7. of a synchronisation of several replicas through servers either the link or the shard's
 *      work counts, not both; rows are few against computing, or there is one micro-batch a
 *      step (else their transfers hide behind computing);
 *   8. only the first stage synchronises, or it takes longest: the others' is hidden in draining;
 *   or for the rate (asp, paper):
 *   9. enough is in flight: 2 M k_first micro-batches, and 2 away for a replica of the next
 *      stage (which holds back asp with more than two stages), cover all stages and transfers.
 *  10. of pipelines: a link that is used more than a third of the cycle is the only such resource
 *      (bursts of both directions meet other work otherwise).
 * Where they part, and by how much: tests/bench/bench_sim.c.
 *
 * Cost: a micro-batch makes 2 tasks and up to 6 messages at each stage, each two or three events of
 * O(log A), A what goes on at once: O(steps n S log A) time, O(replicas + n S) memory. 10,000
 * replicas in two stages, 4 micro-batches each, with rows, a ring and 500 shards: 0.11 s of CPU a
 * step; 16 replicas in 4 stages, 20 steps: 0.4 ms (bench_sim.c).
 */
#ifndef HPS_SIM_SIM_H
#define HPS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "cost/cost.h"

enum hps_sim_mode { HPS_SIM_BSP, HPS_SIM_SSP, HPS_SIM_ASP };

enum hps_sim_kind {
	HPS_SIM_FORWARD,
	HPS_SIM_BACKWARD,
	HPS_SIM_OVERHEAD,
	HPS_SIM_ACTIVATIONS, /* messages, on the sender's link: to the next stage */
	HPS_SIM_GRADIENTS,   /* to the stage before */
	HPS_SIM_PULL,	     /* rows, from the shards */
	HPS_SIM_PUSH,	     /* rows, to the shards */
	HPS_SIM_DENSE_PUSH,
	HPS_SIM_DENSE_PULL,
	HPS_SIM_RING,
	HPS_SIM_SERVE_PULL, /* the shard at work */
	HPS_SIM_SERVE_PUSH,
	HPS_SIM_SERVE_DENSE,
	HPS_SIM_KINDS
};
const char *hps_sim_kind_name(enum hps_sim_kind k); /* "forward", ... */

/* Something that took from begin_s to end_s; told when it ends. */
struct hps_sim_event {
	enum hps_sim_kind kind;
	double begin_s, end_s;
	uint32_t stage, replica; /* whose task or message; the shard's work: for whom */
	uint64_t step;		 /* asp: number of the chunk's turn */
	uint32_t micro;		 /* UINT32_MAX: of no micro-batch */
	double bytes;		 /* of messages */
};

struct hps_sim_options {
	enum hps_sim_mode mode;
	uint32_t bound;	 /* ssp */
	uint32_t credit; /* asp, ssp: micro-batches that a replica may have away, by each of the
			  * next stage; 0 = hps_stage_credit, the executor's */
	uint32_t
		steps; /* of B rows; 0 = 20. The first fifth, at least one of several, is warm-up */
	double jitter; /* coefficient of variation, 0..HPS_SIM_MOST_JITTER */
	double straggler_share, straggler_factor; /* 0..1, > 0; share 0 = none */
	uint64_t seed;
	bool duplex;	      /* links carry both directions at once */
	uint64_t most_events; /* 0 = open; HPS_NO beyond */
	void (*event)(void *arg, const struct hps_sim_event *e); /* NULL = not wanted */
	bool (*stop)(void *arg); /* asked now and then; true ends it with HPS_NO. NULL = never */
	void *arg, *stop_arg;
};
enum { HPS_SIM_STEPS = 20, HPS_SIM_MOST_STEPS = 1000000, HPS_SIM_MOST_JITTER = 10 };
/* bsp or asp as the cost's options have it, no noise, the default steps, seed 1. */
struct hps_sim_options hps_sim_defaults(const struct hps_cost *c);

/* Where the time of a stage's replicas goes, as shares of all of it: they add up to 1. */
enum hps_sim_where {
	HPS_SIM_COMPUTE,
	HPS_SIM_CORES,	/* computing slowly, as cores are shared */
	HPS_SIM_STEP,	/* the executor's overhead */
	HPS_SIM_INPUT,	/* nothing is here: earlier stages, parsing, or a step that has not begun */
	HPS_SIM_BUBBLE, /* all is on its way through later stages */
	HPS_SIM_LINK,	/* the next message is on its way to here */
	HPS_SIM_SHARD,	/* rows are asked for, the shards have not answered */
	HPS_SIM_SYNC,	/* parameters of the next step are not here */
	HPS_SIM_WHERES
};
const char *hps_sim_where_name(enum hps_sim_where w); /* "compute", "cores", ... */

struct hps_sim_stage {
	double share[HPS_SIM_WHERES];
	double busiest;	 /* the replica that computes most: its share of the time */
	double idlest;	 /* that computes least */
	double link_use; /* bytes on a unit's link over what it can carry; the mean */
	double link_use_most;
};

struct hps_sim_result {
	double throughput; /* samples a second, after the warm-up */
	double step_s;	   /* a step of B rows: mean */
	double step_least_s, step_most_s;
	double window_s;       /* simulated time after the warm-up */
	uint32_t steps, warm;  /* simulated in all; of them not counted */
	double shard_use;      /* the queue at work, a share of the time; 0 without shards */
	double shard_link_use; /* of each shard's link */
	double cores_use;      /* of the pool; 0 where nothing shares cores */
	uint64_t events;
};

/* Run it. stage (n_stages) may be NULL. The schedule must hold (hps_schedule_check, which is
 * asked). HPS_USAGE names an option out of range; HPS_NO: stopped, or most_events; HPS_MEMORY also
 * where more than HPS_SIM_MOST_TOKENS micro-batches would be in flight. Reentrant. */
enum hps_status hps_sim_run(const struct hps_cost *c, const struct hps_schedule *s,
			    const struct hps_sim_options *o, struct hps_sim_result *r,
			    struct hps_sim_stage *stage, struct hps_err *err);
enum { HPS_SIM_MOST_TOKENS = 1 << 22 };

/* Samples a second alone: what a search takes as its reward. */
enum hps_status hps_sim_throughput(const struct hps_cost *c, const struct hps_schedule *s,
				   const struct hps_sim_options *o, double *throughput,
				   struct hps_err *err);

#endif
