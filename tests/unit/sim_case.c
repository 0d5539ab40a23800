/* Schedules for which formula and simulator ought to agree. */
#include "sim_case.h"
#include <math.h>
#include <string.h>
#include "base/rng.h"

const char *const sim_family_name[SIM_FAMILIES] = {
	"stage_rate", "pipeline_rate", "paper_rate", "cores_rate",
	"stage_step", "pipeline_step", "rows_step",
};

void sim_case_init(struct sim_case *c, uint32_t L, double c1)
{
	memset(c, 0, sizeof(*c));
	c->type_name = (char *)"t";
	c->type = (struct hps_type){ .name = c->type_name, .price = 1, .limit = HPS_NO_LIMIT };
	c->profile = (struct hps_profile){ .batch = 1200,
					   .n_layers = L,
					   .size = c->size,
					   .n_types = 1,
					   .type = &c->type_name,
					   .simulated = &c->simulated,
					   .time = c->time,
					   .cut_forward_bytes = c->forward,
					   .cut_backward_bytes = c->backward };
	c->cluster = (struct hps_cluster){ .type = &c->type, .n_types = 1, .host = &c->host };
	c->host = (struct hps_host){ .name = c->type_name,
				     .address = c->type_name,
				     .units = &c->units };
	for (uint32_t l = 0; l < L; l++) {
		c->size[l].name = c->type_name;
		c->time[l].forward.c1 = c1 / 3;
		c->time[l].backward.c1 = c1 * 2 / 3;
		c->time[l].oct = c1 * c->profile.batch;
		c->time[l].alpha = 1;
	}
	c->opt = (struct hps_cost_options){ .micro_batches = 4, .dense_sync = HPS_SYNC_RING };
	c->stage[0] = (struct hps_span){ 0, L - 1, 0, 1 };
	c->schedule = (struct hps_schedule){ c->stage, 1, 1 };
}

void sim_case_pipeline(struct sim_case *c, uint32_t k)
{
	for (uint32_t l = 0; l < c->profile.n_layers; l++)
		c->stage[l] = (struct hps_span){ l, l, 0, k };
	c->schedule.n_stages = c->profile.n_layers;
}

bool sim_case_ready(struct sim_case *c)
{
	if (hps_cost_init(&c->cost, &c->profile, &c->cluster, &c->opt, NULL))
		return false;
	c->sim = hps_sim_defaults(&c->cost);
	c->sim.credit = 1000; /* enough is in flight */
	return true;
}

void sim_case_release(struct sim_case *c)
{
	hps_cost_release(&c->cost);
}

double sim_case_error(const struct sim_case *c)
{
	struct hps_cost_result formula;
	double throughput;

	hps_cost_eval(&c->cost, &c->schedule, NULL, &formula, NULL);
	if (hps_sim_throughput(&c->cost, &c->schedule, &c->sim, &throughput, NULL))
		return HUGE_VAL;
	return throughput / formula.throughput - 1;
}

/* --- the families --- */

static double between(struct hps_rng *r, double low, double high)
{
	return low + (high - low) * hps_rng_uniform(r);
}

static double scale(struct hps_rng *r, double low, double high)
{
	return exp(between(r, log(low), log(high)));
}

static uint32_t number(struct hps_rng *r, uint32_t low, uint32_t high)
{
	return low + (uint32_t)hps_rng_below(r, high - low + 1);
}

static bool one_in(struct hps_rng *r, uint64_t n)
{
	return hps_rng_below(r, n) == 0;
}

/* Anything may bind: computing, the unit's link, the shards' work or link, dense parameters. */
static void stage_rate(struct sim_case *c, struct hps_rng *r)
{
	sim_case_init(c, 1, scale(r, 1e-6, 1e-4));
	c->stage[0].units = number(r, 1, 12);
	c->opt.micro_batches = number(r, 2, 8);
	c->opt.mode = HPS_ASP;
	c->profile.link.bandwidth = scale(r, 1e8, 1e10);
	c->profile.step_overhead_s = one_in(r, 2) ? scale(r, 1e-5, 1e-3) : 0;
	c->schedule.shards = number(r, 1, 3);
	if (one_in(r, 2)) {
		c->size[0].sparse_bytes = scale(r, 100, 4000);
		c->size[0].sparse_keys = c->size[0].sparse_bytes / 40;
		c->profile.shard.rows_per_s = scale(r, 1e5, 1e7);
	} else {
		c->opt.dense_sync = one_in(r, 2) ? HPS_SYNC_RING : HPS_SYNC_PS;
		c->size[0].param_bytes = scale(r, 1e4, 1e7);
		c->profile.shard.bytes_per_s = scale(r, 1e8, 1e10);
	}
}

/* Any stage, or the link between two, may bind. */
static void pipeline_rate(struct sim_case *c, struct hps_rng *r)
{
	uint32_t L = number(r, 2, 5);

	sim_case_init(c, L, 1e-5);
	for (uint32_t l = 0; l < L; l++) {
		double c1 = scale(r, 1e-6, 1e-4);

		c->time[l].forward.c1 = c1 * between(r, 0.2, 0.5);
		c->time[l].backward.c1 = c1 - c->time[l].forward.c1;
		c->forward[l] = l + 1 < L ? scale(r, 10, 2000) : 0;
		c->backward[l] = l + 1 < L ? scale(r, 10, 2000) : 0;
	}
	sim_case_pipeline(c, number(r, 1, 4));
	c->opt.micro_batches = 4 * L;
	c->opt.mode = HPS_ASP;
	c->profile.link.bandwidth = scale(r, 1e7, 1e10);
}

static void paper_rate(struct sim_case *c, struct hps_rng *r)
{
	uint32_t L = number(r, 1, 5);

	pipeline_rate(c, r);
	c->opt.form = HPS_COST_PAPER;
	for (uint32_t l = 0; l < c->profile.n_layers; l++) {
		c->time[l].alpha = between(r, 0.5, 1);
		c->time[l].oct = scale(r, 1e-3, 1e-1);
		c->stage[l].units = number(r, 1, 8);
		c->size[l].param_bytes = l < L && one_in(r, 2) ? scale(r, 1e4, 1e7) : 0;
	}
}

static void cores_rate(struct sim_case *c, struct hps_rng *r)
{
	sim_case_init(c, number(r, 1, 3), scale(r, 1e-6, 1e-4));
	c->units = 64;
	c->cluster.n_hosts = 1;
	c->host.cores = number(r, 1, 4);
	c->host.ps_cores = 4;
	sim_case_pipeline(c, number(r, 4, 8));
	c->opt.micro_batches = 8;
	c->opt.mode = HPS_ASP;
	c->profile.input_s_per_sample = one_in(r, 2) ? scale(r, 1e-8, 1e-6) : 0;
}

/* Several micro-batches, then a synchronisation by ring, or of which the shards' link or work
 * counts. */
static void stage_step(struct sim_case *c, struct hps_rng *r)
{
	sim_case_init(c, 1, scale(r, 1e-6, 1e-4));
	c->stage[0].units = number(r, 1, 12);
	c->opt.micro_batches = number(r, 1, 8);
	c->opt.evaluator = HPS_EVAL_STEP;
	c->time[0].forward.c0 = one_in(r, 2) ? scale(r, 1e-5, 1e-3) : 0;
	c->profile.step_overhead_s = one_in(r, 2) ? scale(r, 1e-5, 1e-3) : 0;
	c->opt.dense_sync = one_in(r, 2) ? HPS_SYNC_RING : HPS_SYNC_PS;
	c->size[0].param_bytes = scale(r, 1e4, 1e7);
	c->schedule.shards = number(r, 1, 3);
	c->profile.link.bandwidth = scale(r, 1e8, 1e10);
	c->profile.link.latency = one_in(r, 2) ? scale(r, 1e-6, 1e-3) : 0;
}

/* Fill and drain of stages alike, with any number of micro-batches. */
static void pipeline_step(struct sim_case *c, struct hps_rng *r)
{
	uint32_t L = number(r, 2, 6);
	double c1 = scale(r, 1e-6, 1e-4);

	sim_case_init(c, L, c1);
	for (uint32_t l = 0; l + 1 < L; l++)
		c->forward[l] = c->backward[l] = scale(r, 4, 40);
	c->profile.link.bandwidth = 40 / c1 * 100;
	sim_case_pipeline(c, number(r, 1, 4));
	c->opt.micro_batches = number(r, 1, 12);
	c->opt.evaluator = HPS_EVAL_STEP;
}

/* Nothing hides the rows behind anything: a pull waits for the update before it. */
static void rows_step(struct sim_case *c, struct hps_rng *r)
{
	sim_case_init(c, 1, scale(r, 1e-6, 1e-4));
	c->opt.micro_batches = 1;
	c->opt.evaluator = HPS_EVAL_STEP;
	c->size[0].sparse_bytes = scale(r, 100, 4000);
	c->size[0].sparse_keys = c->size[0].sparse_bytes / 40;
	c->schedule.shards = number(r, 1, 3);
	c->profile.link.latency = one_in(r, 2) ? scale(r, 1e-6, 1e-3) : 0;
	c->profile.shard.rows_per_s = one_in(r, 3) ? 0 : scale(r, 1e5, 1e7);
	c->profile.link.bandwidth = one_in(r, 3) ? 0 : scale(r, 1e7, 1e10);
}

/* Assumption 10: links that are used meet no other resource that is. */
static bool one_binds(const struct sim_case *c)
{
	struct hps_stage_cost row[SIM_CASE_LAYERS];
	struct hps_cost_result r;
	uint32_t links = 0, wanted = 0;
	double limit;

	hps_cost_eval(&c->cost, &c->schedule, NULL, &r, row);
	limit = r.rate_s / 3;
	for (uint32_t i = 0; i < c->schedule.n_stages; i++) {
		links += row[i].dt_s > limit;
		wanted += (row[i].dt_s > limit) + (row[i].ct_s > limit);
	}
	return !links || wanted == 1;
}

bool sim_case_random(struct sim_case *c, enum sim_family f, uint64_t seed)
{
	static void (*const make[SIM_FAMILIES])(struct sim_case *, struct hps_rng *) = {
		stage_rate, pipeline_rate, paper_rate, cores_rate,
		stage_step, pipeline_step, rows_step,
	};
	struct hps_rng r;

	hps_rng_init(&r, seed, f);
	make[f](c, &r);
	if (!sim_case_ready(c))
		return false;
	c->sim.steps = f == SIM_PAPER_RATE ? 20 : c->opt.mode == HPS_ASP ? 60 : 6;
	return (f != SIM_PIPELINE_RATE && f != SIM_PAPER_RATE) || one_binds(c);
}
