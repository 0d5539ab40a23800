/* Time, traffic and money of a schedule: the one model that every planner, the
 * provisioner, the simulator's check and the prediction share. Pure: no clock, no
 * I/O, no globals. Once prepared, a struct hps_cost is read-only and may be used by
 * any number of threads.
 *
 * Units: seconds, bytes, samples, dollars; prices in dollars an hour. Times in
 * (a, b, c, d) are seconds PER SAMPLE OF THE JOB, so throughput is 1 / time: OCT/B_o is
 * already per sample, dividing by a batch once more is wrong.
 *
 * Symbols
 *   i..j  layers of a stage, both included      t  its type     k  its units
 *   B_o   the profile's batch                   B  rows a step over all replicas
 *   M     micro-batches a step and first-stage replica;  n = M * k_first a step in all;
 *         m = B / n rows a micro-batch (taken as real numbers here)
 *   P     dense parameter bytes of the stage, gradients as large
 *   s     sparse bytes a sample each way: rows pulled (pushed) plus 8 bytes a key
 *   q     sparse keys a sample
 *   F, G  bytes a sample that cross a cut forward, backward
 *   bw_t  bytes a second of a unit of type t, each way. Transfers of both directions
 *         are added, not overlapped: in a step gradients follow activations and a pull
 *         follows the push, so this is what a bsp step sees and a cautious rate.
 *
 * Links. In a cluster of one host, types that the host has use the profile's measured link.
 * In one of several hosts the network, where stated, is everyone's link. Else bw_t is the
 * type's link, else the network, else the measured link; where none is known transfers are
 * free and `link_unknown` is set. Between types t and u: min(bw_t, bw_u), the larger of the
 * two latencies. The servers' link is the network's (not in a cluster of one host), else the
 * measured one.
 *
 * Stage, both forms (HeterPS, with the published overlap of compute and communication):
 *   CT(k) = a + b/k     DT(k) = c + d/k     ET(k) = max(CT, DT)     (serial: CT + DT)
 *
 * Form `paper` (HeterPS as reconstructed: a batch B_o is split over k units):
 *   a = sum OCT_l (1 - alpha_l) / B_o        b = sum OCT_l alpha_l / B_o
 *   c = 2 P / (B_o bw_t)                     (every unit moves all dense parameters: beta 0)
 *   d = 2 s / bw_t + (F + G at both cuts) / bw   (beta 1)
 *   With a measured scaling table, CT(k) = sum OCT_l / (scaling_l[k-1] B_o) instead (speeds), and k
 *   ends with the shortest table of the stage.
 *
 * Form `executor` (ours: whole micro-batches go to replicas):
 *   a = step_overhead_s / B                  (each replica pays it once a step)
 *   b = sum (c0_l n / B + c1_l)              (e(m) / m with e(m) = c0 + c1 m, forward + backward)
 *   c, d: activations and sparse rows as in d above, and dense parameters once a step:
 *     servers  2 P / (B bw_t)                on each replica's link, whatever k
 *     ring     2 P (k-1) / (k B bw_t)        that is c += x, d -= x with x = 2 P / (B bw_t)
 *   In asp a replica pushes after M micro-batches of its own, not after its part of B rows: all
 *   k together k_first times in B rows. So c becomes k_first/k of it, in d.
 *   The ring moves fewer bytes at every k, so `auto` takes it in `rate`; a step also
 *   counts latencies, where the servers win with many replicas and few bytes.
 *   With `weak` each replica works a whole B between two synchronisations (PipeDream):
 *   the dense terms are divided by k once more.
 *   b depends on k_first through n. Planners settle k_first = 1, 2, .. one by one.
 *   Replicas of a later stage beyond n idle: its times are those of n. M k_first <= B.
 *
 * Parameter servers, a stage of their own with S shards (one core each):
 *   cpu  = 2 sum q / rows_per_s + D / bytes_per_s     D = sum over stages that sync through
 *   link = (2 sum s + D) / bw_ps                          servers of 2 P k / B
 *                                                         (asp: 2 P k_first / B)
 *   PT(S) = max(cpu, link) / S      a speed of 0 (not measured) makes its part free
 *
 * Cores that CPU units and shards share (executor form; k busy threads on fewer cores run
 * at cores/k, so all work over all cores is a lower bound of the time a sample):
 *   HT = (sum over stages on CPU types that hosts have of b + cpu of the shards
 *         + input_s_per_sample (reading and parsing) + loopback) / cores
 *   loopback, in a cluster of one host: every transferred byte / bw, moved by the cores.
 *   Without a placement all hosts are one pool; with one, each host is its own.
 *
 * Evaluators
 *   rate  cycle = max(ET of every stage, PT, HT): the steady state.
 *   step  one bsp step fills and drains (executor form; r_s = ceil(n / k_s) rounds of
 *         e_s = c0 + c1 m on the busiest replica of a stage, x_s its transfers at cuts,
 *         work = core seconds of computing a sample that share the cores):
 *           T = sum_s e_s + sum_cuts (m (F + G) / bw + 2 latency)
 *             + max(max_s (r_s - 1) max(e_s, x_s), (n - k_first) m work / cores)
 *             + sync + sparse + step_overhead_s
 *           sync   = max over stages of the dense synchronisation, latencies included:
 *                    ring 2 P (k-1) / (k bw) + 2 (k-1) latency
 *                    servers 2 P max(1 / bw, k / (S bw_ps)) + 2 P k / (S bytes_per_s) + 2 latency
 *                    `auto` takes the smaller
 *           sparse = 2 B sum q / (S rows_per_s) + 2 latency
 *                    + the larger of 2 B sum s / (S bw_ps) and 2 B s / (k bw) of a stage:
 *                    rows go, are updated, and the next ones come, one after the other
 *         cycle = max(T / B, rate): rate bounds step from below by construction.
 *         asp has no barrier: its step is its rate (hps_stage_credit keeps a line of
 *         equal stages full). The paper form has no step.
 *
 * Memory of a unit: 3 P (weights, gradients, optimizer state) + 2 A B / k, A the bytes a
 * sample of the stage's outputs, kept until their backward. An estimate, checked against
 * the type's memory where that is stated.
 *
 * Money: price_per_hour = sum price_t k + ps_price S; cost_per_sample = price_per_hour /
 * 3600 * cycle.
 *
 * Limits: of a type, the smaller of its limit and, where any host has units of it, the
 * units of all hosts; of shards, the hosts' ps_cores. They bind the SUM over stages.
 */
#ifndef HPS_COST_COST_H
#define HPS_COST_COST_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "job/cluster.h"
#include "job/deployment.h"
#include "job/profile.h"

enum hps_cost_form { HPS_COST_EXECUTOR, HPS_COST_PAPER };
enum hps_evaluator { HPS_EVAL_RATE, HPS_EVAL_STEP };
enum hps_sync_choice { HPS_SYNC_AUTO, HPS_SYNC_PS, HPS_SYNC_RING };

/* Terms that may be left out, for comparisons with models that lack them. */
enum hps_cost_term {
	HPS_TERM_CUT = 1,     /* activations and gradients at cuts */
	HPS_TERM_DENSE = 2,   /* dense parameters */
	HPS_TERM_SPARSE = 4,  /* sparse rows */
	HPS_TERM_PS = 8,      /* servers: time, price */
	HPS_TERM_CORES = 16,  /* shared cores */
	HPS_TERM_MEMORY = 32, /* memory of a unit */
	HPS_TERM_OVERHEAD = 64,
};

struct hps_cost_options {
	enum hps_cost_form form;
	enum hps_evaluator evaluator;
	enum hps_sync_choice dense_sync;
	enum hps_sync mode;	/* HPS_BSP, HPS_ASP */
	double batch;		/* B; 0 = the profile's */
	uint32_t micro_batches; /* M; 0 = 1 */
	uint32_t shards;	/* a fixed S; 0 = as many as the rest needs, at least
				 * min_shards of struct hps_cost */
	bool serial;		/* no overlap: ET = CT + DT */
	bool weak;		/* B grows with k, see above */
	unsigned without;	/* set of enum hps_cost_term */
};

enum { HPS_COST_MAX_UNITS = 4096 }; /* a stage, and shards, where no limit is stated */

struct hps_cost_type {
	const char *name; /* borrowed from the cluster */
	double price;	  /* an hour */
	uint32_t limit;	  /* HPS_COST_MAX_UNITS where none is stated */
	bool limited;	  /* a limit is stated, or hosts have units */
	bool hosted;	  /* some host has units of it */
	bool pooled;	  /* CPU units that hosts have: they share the pool's cores */
	bool simulated;	  /* declared, not measured */
	double memory;	  /* 0 = not stated */
	double bandwidth; /* INFINITY = free */
	double latency;
	uint32_t link_class; /* equal for equal bandwidths, from the slowest on */
	/* Prefix sums over layers, n_layers + 1 each: sum of layers i..j = x[j+1] - x[i]. */
	double *fixed;	  /* executor: c0. paper: OCT (1 - alpha) / B_o */
	double *variable; /* executor: c1. paper: OCT alpha / B_o */
	/* paper form with a scaling table: n_scaling rows of n_layers + 1, row k-1 for k units;
	 * layers without a table follow alpha. NULL = none. */
	double *scaling;
	uint32_t n_scaling;
};

struct hps_cost {
	const struct hps_profile *profile; /* borrowed */
	const struct hps_cluster *cluster; /* borrowed */
	struct hps_cost_options opt;	   /* batch and micro_batches settled */
	uint32_t n_layers, n_types, n_classes;
	struct hps_cost_type *type; /* n_types, in the cluster's order */
	/* prefix sums, n_layers + 1 */
	double *params;	   /* P, bytes */
	double *sparse;	   /* s, bytes a sample one way, keys included */
	double *keys;	   /* q */
	double *output;	   /* A, bytes a sample */
	double *cut;	   /* n_layers + 1: F + G of the cut BEFORE layer l; 0 at both ends */
	double overhead;   /* step_overhead_s, or 0 */
	double input;	   /* input_s_per_sample, or 0 */
	bool link_unknown; /* some transfer is free for want of a bandwidth */
	bool one_host;
	struct {
		double rows_per_s, bytes_per_s; /* of one shard; INFINITY = free */
		double bandwidth, latency;
		double price;
		uint32_t min, max; /* shards */
	} ps;
	double cores;	      /* of the pool; INFINITY = not shared */
	double *memory_block; /* owns the prefix sums */
};

/* Times of a stage for all k at once: CT(k) = a + b/k (or the table's), DT(k) = c + d/k
 * + w/k^2. Valid for the neighbours and the k_first it was asked for. */
struct hps_stage_time {
	double a, b, c, d, w;
	double pushes; /* of all replicas in B rows, where it does not go by k; else 0 */
	double mem_fixed, mem_shared; /* bytes of a unit: mem_fixed + mem_shared / k */
	uint32_t type, first, last;
	uint32_t busy;	    /* units beyond these idle: micro-batches, rows, the table's end */
	uint32_t max_units; /* busy, or the type's limit if less */
};

/* A stage of a schedule. */
struct hps_span {
	uint32_t first, last; /* layers, both included */
	uint32_t type;	      /* index into cost->type */
	uint32_t units;
};

struct hps_schedule {
	const struct hps_span *stage; /* n_stages, covering all layers in order */
	uint32_t n_stages;
	uint32_t shards;
};

/* On which host replicas and shards run (indices into cluster->host). */
struct hps_placement {
	const uint32_t *replica; /* stage by stage, units of each */
	const uint32_t *shard;	 /* schedule.shards */
	double *host_s;		 /* out, n_hosts: HT of each host */
};

/* What sets the pace. */
enum hps_binding {
	HPS_BINDS_COMPUTE, /* CT of stage `at` */
	HPS_BINDS_LINK,	   /* DT of stage `at` */
	HPS_BINDS_PS_CPU,
	HPS_BINDS_PS_LINK,
	HPS_BINDS_CORES, /* of host `at`, or of the pool */
};

struct hps_stage_cost {
	double ct_s, dt_s, et_s;      /* a sample */
	double slack_s;		      /* cycle - ET */
	double compute_use, link_use; /* CT / cycle, DT / cycle: shares of the time */
	enum hps_binding binds;	      /* HPS_BINDS_COMPUTE or HPS_BINDS_LINK: the larger */
	enum hps_dense_sync dense_sync;
	double cut_bytes;    /* a sample at its own cuts, both directions */
	double sparse_bytes; /* a sample, pulled and pushed */
	double dense_bytes;  /* a STEP and replica, both directions */
	double sync_s;	     /* a step: dense synchronisation with latencies */
	double memory_bytes; /* of one unit */
	double price;	     /* an hour, all units */
};

struct hps_cost_result {
	double cycle_s;	   /* seconds a sample, by the evaluator asked for */
	double rate_s;	   /* likewise by `rate` */
	double throughput; /* samples a second */
	double price;	   /* dollars an hour */
	double cost;	   /* dollars a sample */
	enum hps_binding binds;
	uint32_t at; /* which stage or host; UINT32_MAX = the pool */
	struct {
		double cpu_s, link_s; /* a sample, of each shard */
		double cpu_use, link_use;
		double sparse_bytes; /* a sample, all shards */
		double dense_bytes;  /* a step, all shards */
		double price;
	} ps;
	double cores_s;		 /* HT: of the pool, or of the busiest host of a placement */
	double cores_use;	 /* HT / cycle */
	double step_s;		 /* T: one step, evaluator step; else B * cycle */
	double fill_s;		 /* of it: the sums over stages and cuts */
	double sync_s, sparse_s; /* of it */
	bool fits;		 /* limits and memory hold; if not, at names the stage */
	char why[200];		 /* what does not fit, with numbers; "" */
};

/* Prepare. HPS_BAD_INPUT names the place in the profile or cluster: a type of the cluster
 * that the profile lacks, a time that is not finite or negative, a layer that takes no time
 * on any type, a limit of 0, n_layers or n_types of 0, a batch below M. Types of the profile
 * that the cluster lacks have no price and are left out. */
enum hps_status hps_cost_init(struct hps_cost *c, const struct hps_profile *p,
			      const struct hps_cluster *cl, const struct hps_cost_options *opt,
			      struct hps_err *err);
void hps_cost_release(struct hps_cost *c);

/* Stage i..j on type t in O(1). left, right: types of the neighbours, -1 at the ends (only
 * their bandwidth counts). first_units: k_first, used by the executor form. */
struct hps_stage_time hps_cost_stage(const struct hps_cost *c, uint32_t i, uint32_t j, uint32_t t,
				     int left, int right, uint32_t first_units);
/* The same without the cuts' transfers, and those: seconds a sample of the cut before layer
 * `before` (L: none) for a stage on t whose neighbour there is on type `neighbour`. A planner
 * adds them to d itself. */
struct hps_stage_time hps_cost_stage_bare(const struct hps_cost *c, uint32_t i, uint32_t j,
					  uint32_t t, uint32_t first_units);
double hps_cost_cut(const struct hps_cost *c, uint32_t before, uint32_t t, int neighbour);
double hps_stage_ct(const struct hps_cost *c, const struct hps_stage_time *s, uint32_t k);
double hps_stage_dt(const struct hps_stage_time *s, uint32_t k);
double hps_stage_memory(const struct hps_stage_time *s, uint32_t k);
double hps_stage_et(const struct hps_cost *c, const struct hps_stage_time *s, uint32_t k);
/* The least k >= min with ET(k) <= tau and the memory fitting; 0 if there is none up to
 * max_units. Comparison with relative tolerance HPS_TIME_EPS, as identical layers give sums
 * that differ in the last bits. */
uint32_t hps_stage_units(const struct hps_cost *c, const struct hps_stage_time *s, double tau,
			 uint32_t min);
#define HPS_TIME_EPS 1e-12

/* CT and DT have the closed form above (no table, no w): k ET(k) does not fall with k. */
bool hps_stage_regular(const struct hps_cost *c, const struct hps_stage_time *s);

/* Does k_first change other stages' times? (executor form with some c0 or M k_first = B) */
bool hps_cost_first_matters(const struct hps_cost *c);
/* The most k_first can be on type t. */
uint32_t hps_cost_first_max(const struct hps_cost *c, uint32_t t);

/* Additive loads of a stage, for couplings between stages. */
struct hps_stage_load {
	double cores_s;	    /* core seconds a sample in the pool; 0 for types outside it */
	double dense_bytes; /* D: bytes a sample through the servers, both directions */
};
struct hps_stage_load hps_cost_load(const struct hps_cost *c, const struct hps_stage_time *s,
				    int left, uint32_t k);
/* The least S for dense load D at tau; false if there is none up to ps.max (S = 0 is an answer
 * where there are no servers). */
bool hps_cost_shards(const struct hps_cost *c, double dense_bytes, double tau, uint32_t *shards);
/* PT(S), and HT of the pool for the sum of the stages' cores_s. */
double hps_cost_ps_time(const struct hps_cost *c, double dense_bytes, uint32_t shards);
double hps_cost_cores_time(const struct hps_cost *c, double cores_s, double dense_bytes);

/* The whole account of a schedule. stage (n_stages of the schedule) may be NULL. place may be
 * NULL: the pool. The schedule must be well formed (hps_schedule_check). Limits and memory are
 * reported, not enforced. */
void hps_cost_eval(const struct hps_cost *c, const struct hps_schedule *s,
		   const struct hps_placement *place, struct hps_cost_result *r,
		   struct hps_stage_cost *stage);

/* Cores of a host that CPU units and shards share: stated, or its CPU units. */
double hps_cost_host_cores(const struct hps_cluster *cl, uint32_t host);

/* Stages cover 0 .. n_layers-1 in order, types exist, units >= 1. HPS_BAD_INPUT says which. */
enum hps_status hps_schedule_check(const struct hps_cost *c, const struct hps_schedule *s,
				   struct hps_err *err);

const char *hps_binding_name(enum hps_binding b);     /* "compute", "link", ... */
const char *hps_cost_form_name(enum hps_cost_form f); /* "executor", "paper" */
const char *hps_evaluator_name(enum hps_evaluator e); /* "rate", "step" */

#endif
