/* Where do formula and simulator agree, where do they part, and how long does a big run take?
 *
 * sim.formula_error is the worst disagreement over CASES random cases of each family in
 * tests/unit/sim_case.c, for which the assumptions of sim/sim.h hold. The others each break one
 * assumption; their value is what the formula promises over what the simulator finds, minus 1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/clock.h"
#include "../unit/sim_case.h"

enum { CASES = 200, MOST_SEEDS = 100000 };

static double simulated(const struct sim_case *c)
{
	double throughput;

	if (hps_sim_throughput(&c->cost, &c->schedule, &c->sim, &throughput, NULL))
		exit(HPS_DEVICE);
	return throughput;
}

/* What the formula promises too much. */
static double promise(const struct sim_case *c)
{
	return 1 / (1 + sim_case_error(c)) - 1;
}

static void ready(struct sim_case *c)
{
	if (!sim_case_ready(c))
		exit(HPS_BAD_INPUT);
}

static void formula_error(void)
{
	double worst = 0, of[SIM_FAMILIES] = { 0 };

	for (int f = 0; f < SIM_FAMILIES; f++) {
		for (uint64_t seed = 1, n = 0; n < CASES && seed < MOST_SEEDS; seed++) {
			struct sim_case c;

			if (sim_case_random(&c, (enum sim_family)f, seed)) {
				of[f] = fmax(of[f], fabs(sim_case_error(&c)));
				n++;
			}
			sim_case_release(&c);
		}
		worst = fmax(worst, of[f]);
	}
	printf("{\"bench\":\"sim.formula_error\",\"value\":%.6f,\"reach\":0.05,\"unit\":\"ratio\"",
	       worst);
	for (int f = 0; f < SIM_FAMILIES; f++)
		printf(",\"%s\":%.6f", sim_family_name[f], of[f]);
	printf(",\"cases\":%d}\n", CASES * SIM_FAMILIES);
}

/* The steady state of four stages alike, against steps that fill and drain. */
static void bubbles(void)
{
	static const uint32_t micro[] = { 4, 1, 2, 8, 16, 64 };

	printf("{\"bench\":\"sim.bubble_error\"");
	for (size_t i = 0; i < sizeof(micro) / sizeof(*micro); i++) {
		struct sim_case c;

		sim_case_init(&c, 4, 1e-5);
		sim_case_pipeline(&c, 1);
		c.opt.micro_batches = micro[i];
		ready(&c);
		if (!i)
			printf(",\"value\":%.4f,\"unit\":\"ratio\",\"stages\":4", promise(&c));
		printf(",\"micro_batches_%u\":%.4f", micro[i], promise(&c));
		sim_case_release(&c);
	}
	printf("}\n");
}

/* 32 replicas; bsp, and asp in the same words. */
static void noise(const char *name, double jitter, double share, double factor)
{
	struct sim_case c;
	double bsp;

	sim_case_init(&c, 1, 1e-5);
	c.stage[0].units = 32;
	ready(&c);
	c.sim.steps = 200;
	c.sim.jitter = jitter;
	c.sim.straggler_share = share;
	c.sim.straggler_factor = factor;
	bsp = promise(&c);
	c.sim.mode = HPS_SIM_ASP;
	printf("{\"bench\":\"sim.%s\",\"value\":%.4f,\"unit\":\"ratio\",\"bsp\":%.4f,\"asp\":%.4f,"
	       "\"replicas\":32,\"jitter\":%g,\"share\":%g,\"factor\":%g}\n",
	       name, bsp, bsp, promise(&c), jitter, share, factor);
	sim_case_release(&c);
}

/* --- many random cases --- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void tell_many(const char *name, double *v)
{
	qsort(v, CASES, sizeof(*v), ascending);
	printf("{\"bench\":\"sim.%s\",\"value\":%.4f,\"unit\":\"ratio\",\"min\":%.4f,\"max\":%.4f,"
	       "\"cases\":%d}\n",
	       name, v[CASES / 2], v[0], v[CASES - 1], CASES);
}

/* Pipelines in asp of which a link and something else are wanted at once. */
static void contention(void)
{
	double v[CASES];
	uint64_t n = 0;

	for (uint64_t seed = 1; n < CASES && seed < MOST_SEEDS; seed++) {
		struct sim_case c;

		if (!sim_case_random(&c, SIM_PIPELINE_RATE, seed))
			v[n++] = promise(&c);
		sim_case_release(&c);
	}
	tell_many("contention_error", v);
}

/* Steps of stages that are not alike. */
static void unlike(void)
{
	double v[CASES];
	uint64_t n = 0;

	for (uint64_t seed = 1; n < CASES && seed < MOST_SEEDS; seed++) {
		struct sim_case c;
		bool fits = sim_case_random(&c, SIM_PIPELINE_RATE, seed);

		hps_cost_release(&c.cost);
		c.opt.mode = HPS_BSP;
		c.opt.evaluator = HPS_EVAL_STEP;
		c.opt.micro_batches = 1 + (uint32_t)(seed % 8);
		ready(&c);
		if (fits)
			v[n++] = promise(&c);
		sim_case_release(&c);
	}
	tell_many("unlike_stages_step_error", v);
}

/* --- one case each --- */

static void one(const char *name, struct sim_case *c, const char *what)
{
	printf("{\"bench\":\"sim.%s\",\"value\":%.4f,\"unit\":\"ratio\",\"case\":\"%s\"}\n", name,
	       promise(c), what);
	sim_case_release(c);
}

/* Rows of eight micro-batches hide behind computing, which the formula adds. */
static void rows(void)
{
	struct sim_case c;

	sim_case_init(&c, 1, 1e-5);
	c.stage[0].units = 4;
	c.opt.micro_batches = 8;
	c.opt.evaluator = HPS_EVAL_STEP;
	c.size[0].sparse_bytes = 1000;
	c.size[0].sparse_keys = 25;
	c.profile.shard.rows_per_s = 4e7;
	c.profile.link.bandwidth = 4e9;
	ready(&c);
	one("rows_step_error", &c, "bsp, 4 replicas, 8 micro-batches, rows take half as long");
}

/* The link's and the shards' work go on at once. */
static void dense(void)
{
	struct sim_case c;

	sim_case_init(&c, 1, 1e-5);
	c.stage[0].units = 8;
	c.opt.evaluator = HPS_EVAL_STEP;
	c.opt.dense_sync = HPS_SYNC_PS;
	c.size[0].param_bytes = 1e6;
	c.profile.link.bandwidth = 1e9;
	c.profile.shard.bytes_per_s = 1e9;
	ready(&c);
	one("dense_step_error", &c, "bsp, 8 replicas through a shard as fast as its link");
}

/* As many micro-batches away as the executor allows. */
static void credit(void)
{
	struct sim_case c;

	sim_case_init(&c, 5, 1e-5);
	sim_case_pipeline(&c, 1);
	c.opt.mode = HPS_ASP;
	c.opt.micro_batches = 8;
	ready(&c);
	c.sim.steps = 50;
	c.sim.credit = 0;
	one("credit_error", &c, "asp, 5 stages of one replica, 8 micro-batches");
}

/* Links that carry both directions at once. */
static void duplex(void)
{
	struct sim_case c;

	sim_case_init(&c, 2, 1e-6);
	sim_case_pipeline(&c, 1);
	c.forward[0] = c.backward[0] = 500;
	c.profile.link.bandwidth = 1e8;
	c.opt.mode = HPS_ASP;
	c.opt.micro_batches = 12;
	ready(&c);
	c.sim.steps = 50;
	c.sim.duplex = true;
	one("duplex_error", &c, "asp, the link binds, as many bytes each way");
}

/* Seconds of CPU for a step of 10,000 replicas in two stages with links, rows and a ring. */
static void hosts(void)
{
	struct hps_sim_result r;
	struct sim_case c;
	double begin;

	sim_case_init(&c, 2, 1e-5);
	c.profile.batch = 4e6;
	sim_case_pipeline(&c, 5000);
	c.forward[0] = c.backward[0] = 500;
	c.size[0].sparse_bytes = 1000;
	c.size[0].sparse_keys = 25;
	c.size[1].param_bytes = 1e6;
	c.profile.link.bandwidth = 1e9;
	c.profile.shard.rows_per_s = 1e7;
	c.schedule.shards = 500;
	ready(&c);
	c.sim.jitter = 0.2;
	c.sim.steps = 10;
	begin = hps_cpu_s();
	if (hps_sim_run(&c.cost, &c.schedule, &c.sim, &r, NULL, NULL))
		exit(HPS_DEVICE);
	begin = hps_cpu_s() - begin;
	printf("{\"bench\":\"sim.10000_replicas.step_seconds\",\"value\":%.4f,\"unit\":\"s\","
	       "\"million_events_per_s\":%.2f,\"events\":%llu,\"steps\":%u,\"simulated_s\":%.4f}\n",
	       begin / c.sim.steps, (double)r.events / begin * 1e-6, (unsigned long long)r.events,
	       c.sim.steps, r.step_s * c.sim.steps);
	sim_case_release(&c);
}

/* What a search that takes it as its reward pays: a small plan, the default steps. */
static void reward(void)
{
	enum { RUNS = 300 };
	struct sim_case c;
	double begin, sum = 0;

	sim_case_init(&c, 4, 1e-5);
	sim_case_pipeline(&c, 4);
	c.forward[0] = c.backward[0] = 100;
	c.profile.link.bandwidth = 1e9;
	ready(&c);
	begin = hps_cpu_s();
	for (int i = 0; i < RUNS; i++)
		sum += simulated(&c);
	begin = hps_cpu_s() - begin;
	printf("{\"bench\":\"sim.reward.ms\",\"value\":%.4f,\"unit\":\"ms\",\"stages\":4,"
	       "\"replicas\":16,\"steps\":20,\"samples_per_s\":%.6g}\n",
	       begin / RUNS * 1e3, sum / RUNS);
	sim_case_release(&c);
}

int main(void)
{
	formula_error();
	bubbles();
	noise("straggler_error", 0, 1 / 32., 2);
	noise("jitter_error", 0.2, 0, 1);
	contention();
	unlike();
	rows();
	dense();
	credit();
	duplex();
	hosts();
	reward();
	return 0;
}
