/* Whatever the problem and the schedule, a run ends, its account adds up, and no resource does more
 * than it can. */
#include <math.h>
#include "cm.h"
#include "base/rng.h"
#include "plan_case.h"
#include "sim/sim.h"

enum { CASES = 300 };

static uint32_t draw_schedule(const struct hps_cost *c, struct hps_rng *r, struct hps_span *stage)
{
	uint32_t n = 0;

	for (uint32_t l = 0; l < c->n_layers; l++) {
		if (l && hps_rng_below(r, 3)) {
			stage[n - 1].last = l;
			continue;
		}
		stage[n++] = (struct hps_span){ l, l, (uint32_t)hps_rng_below(r, c->n_types),
						1 + (uint32_t)hps_rng_below(r, 6) };
	}
	return n;
}

static void draw_options(const struct hps_cost *c, struct hps_rng *r, struct hps_sim_options *o)
{
	*o = hps_sim_defaults(c);
	o->mode = (enum hps_sim_mode)hps_rng_below(r, 3);
	o->bound = (uint32_t)hps_rng_below(r, 3);
	o->credit = (uint32_t)hps_rng_below(r, 4);
	o->steps = 1 + (uint32_t)hps_rng_below(r, 8);
	o->duplex = hps_rng_below(r, 2);
	if (hps_rng_below(r, 2))
		o->jitter = 2 * hps_rng_uniform(r);
	if (hps_rng_below(r, 2))
		o->straggler_share = hps_rng_uniform(r);
	o->straggler_factor = 1 + 4 * hps_rng_uniform(r);
	o->seed = hps_rng_u64(r);
	o->most_events = 2000000; /* a run that would not end */
}

static void check(const struct hps_sim_result *r, const struct hps_sim_stage *row, uint32_t n)
{
	assert_true(r->throughput > 0 && r->step_s >= 0 && r->step_least_s <= r->step_most_s);
	assert_true(r->shard_use >= 0 && r->shard_use <= 1 + 1e-9);
	assert_true(r->shard_link_use >= 0 && r->shard_link_use <= 1 + 1e-9);
	assert_true(r->cores_use >= 0 && r->cores_use <= 1 + 1e-9);
	for (uint32_t i = 0; i < n && r->window_s > 0; i++) {
		double sum = 0;

		for (int w = 0; w < HPS_SIM_WHERES; w++) {
			assert_true(row[i].share[w] >= 0 && row[i].share[w] <= 1 + 1e-6);
			sum += row[i].share[w];
		}
		assert_true(fabs(sum - 1) < 1e-6);
		assert_true(row[i].link_use <= row[i].link_use_most + 1e-9);
		assert_true(row[i].link_use_most <= 1 + 1e-9);
	}
}

static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < CASES; seed++) {
		struct hps_span stage[PLAN_CASE_LAYERS];
		struct hps_sim_stage row[PLAN_CASE_LAYERS];
		struct hps_sim_options o;
		struct hps_sim_result r;
		struct hps_schedule s = { .stage = stage };
		struct hps_err err = { 0 };
		struct hps_rng rng;
		struct plan_case c;

		hps_rng_init(&rng, seed, 5);
		plan_case_random(&c, seed, 3000);
		s.n_stages = draw_schedule(&c.cost, &rng, stage);
		s.shards = (uint32_t)hps_rng_below(&rng, 4);
		draw_options(&c.cost, &rng, &o);
		if (hps_sim_run(&c.cost, &s, &o, &r, row, &err))
			fail_msg("seed %llu: %s", (unsigned long long)seed, err.msg);
		check(&r, row, s.n_stages);
		plan_case_release(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
