/* Every term of the cost model against figures worked out by hand. */
#include <math.h>
#include <string.h>
#include "cm.h"
#include "cost/cost.h"
#include "plan_case.h"

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-12 * fabs(want) + 1e-300))
		fail_msg("expected %.17g, got %.17g", want, got);
}

/* Two layers, one type; layer 0: c0 1 ms, c1 10 us; layer 1: c0 0, c1 20 us. B = 100. */
static void two_layers(struct plan_case *c)
{
	plan_case_init(c, 2, 1, 8);
	plan_case_time(c, 0, 0, 1e-3, 1e-5);
	plan_case_time(c, 0, 1, 0, 2e-5);
}

static void eval(const struct plan_case *c, const struct hps_span *stage, uint32_t n,
		 uint32_t shards, struct hps_cost_result *r, struct hps_stage_cost *row)
{
	struct hps_schedule s = { stage, n, shards };
	struct hps_err err = { 0 };

	if (hps_schedule_check(&c->cost, &s, &err))
		fail_msg("%s", err.msg);
	hps_cost_eval(&c->cost, &s, NULL, r, row);
}

static void test_executor_compute(void **state)
{
	struct plan_case c;
	struct hps_stage_time s;

	(void)state;
	two_layers(&c);
	c.opt.micro_batches = 2;
	c.profile.step_overhead_s = 5e-4;
	plan_case_ready(&c);
	/* k_first 1: n = 2, m = 50, e = 1e-3 + 50 * 1e-5 = 1.5e-3, a sample 3e-5. */
	s = hps_cost_stage(&c.cost, 0, 0, 0, -1, -1, 1);
	near(s.a, 5e-4 / 100);
	near(s.b, 3e-5);
	near(hps_stage_ct(&c.cost, &s, 1), 3.5e-5);
	/* k_first 4: n = 8, m = 12.5, e = 1e-3 + 1.25e-4, a sample 9e-5, over 4 replicas. */
	s = hps_cost_stage(&c.cost, 0, 0, 0, -1, -1, 4);
	near(hps_stage_ct(&c.cost, &s, 4), 5e-6 + 9e-5 / 4);
	/* Both layers in one stage: their fits add up. */
	s = hps_cost_stage(&c.cost, 0, 1, 0, -1, -1, 1);
	near(s.b, 5e-5);
	assert_int_equal(s.max_units, 8);
	/* A later stage has no use for more replicas than micro-batches. */
	s = hps_cost_stage(&c.cost, 1, 1, 0, 0, -1, 2);
	assert_int_equal(s.max_units, 4);
	plan_case_release(&c);
}

static void test_paper_compute(void **state)
{
	struct plan_case c;
	struct hps_stage_time s;

	(void)state;
	plan_case_init(&c, 2, 1, 8);
	/* OCT 4 ms at B_o 100, alpha 0.75; and OCT 2 ms, alpha 0.5. */
	plan_case_time(&c, 0, 0, 1e-3, 3e-5);
	plan_case_time(&c, 0, 1, 1e-3, 1e-5);
	c.opt.form = HPS_COST_PAPER;
	plan_case_ready(&c);
	s = hps_cost_stage(&c.cost, 0, 1, 0, -1, -1, 1);
	near(s.a, 4e-5 * 0.25 + 2e-5 * 0.5);
	near(s.b, 4e-5 * 0.75 + 2e-5 * 0.5);
	near(hps_stage_ct(&c.cost, &s, 4), 2e-5 + 1e-5);
	plan_case_release(&c);
}

static void test_scaling_table(void **state)
{
	struct plan_case c;
	struct hps_stage_time s;

	(void)state;
	plan_case_init(&c, 2, 1, 8);
	plan_case_time(&c, 0, 0, 1e-3, 3e-5); /* OCT 4 ms */
	plan_case_time(&c, 0, 1, 1e-3, 1e-5); /* OCT 2 ms, alpha 0.5: no table */
	c.time[0].scaling = c.scaling[0];
	c.time[0].n_scaling = 3;
	c.scaling[0][0] = 1;
	c.scaling[0][1] = 2;
	c.scaling[0][2] = 1.6; /* three units are slower than two */
	c.opt.form = HPS_COST_PAPER;
	plan_case_ready(&c);
	s = hps_cost_stage(&c.cost, 0, 1, 0, -1, -1, 1);
	assert_int_equal(s.max_units, 3);
	near(hps_stage_ct(&c.cost, &s, 2), 4e-5 / 2 + 2e-5 * (0.5 + 0.25));
	near(hps_stage_ct(&c.cost, &s, 3), 4e-5 / 1.6 + 2e-5 * (0.5 + 0.5 / 3));
	/* The least k within a time: 2 is enough where 3 is not. */
	assert_int_equal(hps_stage_units(&c.cost, &s, 3.5e-5, 1), 2);
	assert_int_equal(hps_stage_units(&c.cost, &s, 3.5e-5, 3), 0);
	plan_case_release(&c);
}

static void test_cut(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 2 }, { 1, 1, 1, 1 } };
	struct hps_stage_cost row[2];
	struct hps_cost_result r;
	struct plan_case c;

	(void)state;
	plan_case_init(&c, 2, 2, 8);
	for (uint32_t i = 0; i < 4; i++)
		plan_case_time(&c, i / 2, i % 2, 0, 1e-6);
	c.cut_forward[0] = 1000;
	c.cut_backward[0] = 500;
	c.type[0].link.bandwidth = 1e6;
	c.type[1].link.bandwidth = 5e5;
	plan_case_ready(&c);
	/* 1500 bytes a sample over the slower of the two links; two replicas share them. */
	eval(&c, stage, 2, 1, &r, row);
	near(row[0].dt_s, 1500 / 5e5 / 2);
	near(row[1].dt_s, 1500 / 5e5);
	near(row[0].cut_bytes, 1500);
	near(r.cycle_s, 3e-3);
	assert_int_equal(r.binds, HPS_BINDS_LINK);
	assert_int_equal(r.at, 1);
	near(row[0].slack_s, 1.5e-3);
	near(row[0].link_use, 0.5);
	/* One stage: nothing crosses. */
	stage[0].last = 1;
	eval(&c, stage, 1, 1, &r, row);
	near(row[0].dt_s, 0);
	plan_case_release(&c);
}

static void test_dense_sync(void **state)
{
	struct plan_case c;
	struct hps_stage_time s;

	(void)state;
	two_layers(&c);
	c.size[0].param_bytes = 3e5;
	c.size[1].param_bytes = 2e5;
	c.type[0].link.bandwidth = 1e8;
	c.profile.link.bandwidth = 1e8;
	plan_case_ready(&c);
	/* 2 P / (B bw) = 1e6 / (100 * 1e8) = 1e-4; ring: 0 at one replica, (k-1)/k of it else. */
	s = hps_cost_stage(&c.cost, 0, 1, 0, -1, -1, 1);
	near(hps_stage_dt(&s, 1), 0);
	near(hps_stage_dt(&s, 2), 5e-5);
	near(hps_stage_dt(&s, 5), 8e-5);
	near(hps_cost_load(&c.cost, &s, -1, 5).dense_bytes, 0);
	plan_case_release(&c);
	/* Servers: all of it whatever k; 2 P k / B bytes a sample through them. */
	c.opt.dense_sync = HPS_SYNC_PS;
	plan_case_ready(&c);
	s = hps_cost_stage(&c.cost, 0, 1, 0, -1, -1, 1);
	near(hps_stage_dt(&s, 1), 1e-4);
	near(hps_stage_dt(&s, 5), 1e-4);
	near(hps_cost_load(&c.cost, &s, -1, 5).dense_bytes, 5e4);
	plan_case_release(&c);
	/* Paper form: a batch of B_o is split, each unit moves all parameters. */
	c.opt.form = HPS_COST_PAPER;
	plan_case_ready(&c);
	s = hps_cost_stage(&c.cost, 0, 1, 0, -1, -1, 1);
	near(hps_stage_dt(&s, 4), 1e-4);
	plan_case_release(&c);
	/* Weak scaling (PipeDream): (x / k) (1 - 1/k). */
	c.opt = (struct hps_cost_options){ .weak = true };
	plan_case_ready(&c);
	s = hps_cost_stage(&c.cost, 0, 1, 0, -1, -1, 1);
	near(hps_stage_dt(&s, 1), 0);
	near(hps_stage_dt(&s, 4), 1e-4 / 4 * 0.75);
	plan_case_release(&c);
	c.opt = (struct hps_cost_options){ .without = HPS_TERM_DENSE };
	plan_case_ready(&c);
	s = hps_cost_stage(&c.cost, 0, 1, 0, -1, -1, 1);
	near(hps_stage_dt(&s, 4), 0);
	plan_case_release(&c);
}

static void test_serial(void **state)
{
	struct plan_case c;
	struct hps_stage_time s;

	(void)state;
	two_layers(&c);
	c.size[0].param_bytes = 5e5;
	c.type[0].link.bandwidth = 1e8;
	c.opt.serial = true;
	plan_case_ready(&c);
	s = hps_cost_stage(&c.cost, 0, 1, 0, -1, -1, 1);
	/* b = 1e-3/100 + 3e-5 = 4e-5 */
	near(hps_stage_et(&c.cost, &s, 2), 2e-5 + 5e-5);
	c.cost.opt.serial = false;
	near(hps_stage_et(&c.cost, &s, 2), 5e-5);
	plan_case_release(&c);
}

static void sparse_case(struct plan_case *c)
{
	two_layers(c);
	c->size[0].sparse_bytes = 880;
	c->size[0].sparse_keys = 20; /* 160 bytes of keys: 1040 bytes each way */
	c->profile.link.bandwidth = 1e8;
	c->profile.shard.rows_per_s = 1e6;
	c->profile.shard.bytes_per_s = 1e9;
	c->cluster.ps_price = 0.1;
}

static void test_servers(void **state)
{
	struct hps_span stage[] = { { 0, 1, 0, 2 } };
	struct hps_stage_cost row[1];
	struct hps_cost_result r;
	struct plan_case c;
	uint32_t shards;

	(void)state;
	sparse_case(&c);
	plan_case_ready(&c);
	eval(&c, stage, 1, 4, &r, row);
	near(row[0].dt_s, 2080 / 1e8 / 2); /* pulled and pushed, by two replicas */
	near(row[0].sparse_bytes, 2080);
	near(r.ps.cpu_s, 40 / 1e6 / 4);
	near(r.ps.link_s, 2080 / 1e8 / 4);
	near(r.price, 2 * 1 + 4 * 0.1);
	near(r.ps.price, 0.4);
	/* b = 1e-5 n / 1 + 3e-5 with n = 2: 5e-5 / 2 */
	near(r.cycle_s, 2.5e-5);
	near(r.cost, 2.4 / 3600 * 2.5e-5);
	near(r.throughput, 4e4);
	near(r.ps.cpu_use, 0.4);
	/* One shard is what all wait for: 40 us. */
	eval(&c, stage, 1, 1, &r, row);
	near(r.cycle_s, 4e-5);
	assert_int_equal(r.binds, HPS_BINDS_PS_CPU);
	/* The least shards for a cycle time. */
	assert_true(hps_cost_shards(&c.cost, 0, 4e-5, &shards));
	assert_int_equal(shards, 1);
	assert_true(hps_cost_shards(&c.cost, 0, 3.9e-5, &shards));
	assert_int_equal(shards, 2);
	assert_true(hps_cost_shards(&c.cost, 0, 1e-5, &shards));
	assert_int_equal(shards, 4);
	/* 1e6 bytes a sample more: 1 ms of a core. */
	near(hps_cost_ps_time(&c.cost, 1e6, 2), (1e6 + 2080) / 1e8 / 2);
	plan_case_release(&c);
	/* Without servers nothing is paid. */
	c.opt.without = HPS_TERM_PS;
	plan_case_ready(&c);
	assert_true(hps_cost_shards(&c.cost, 0, 1e-9, &shards));
	assert_int_equal(shards, 0);
	eval(&c, stage, 1, 0, &r, row);
	near(r.price, 2);
	plan_case_release(&c);
}

static void test_shared_cores(void **state)
{
	struct hps_span one[] = { { 0, 1, 0, 3 } };
	struct hps_span two[] = { { 0, 0, 0, 1 }, { 1, 1, 0, 1 } };
	struct hps_stage_cost row[2];
	struct hps_cost_result r;
	const uint32_t units[] = { 8 };
	struct plan_case c;

	(void)state;
	sparse_case(&c);
	c.profile.link.bandwidth = 0;
	c.profile.input_s_per_sample = 1e-6;
	plan_case_host(&c, units, 2, 2);
	plan_case_ready(&c);
	near(c.cost.cores, 2);
	/* Three replicas and a shard on two cores. n = 3: b = 1e-3 * 3 / 100 + 3e-5 = 6e-5 core
	 * seconds a sample, 40 us of the shard, 1 us of parsing. */
	eval(&c, one, 1, 1, &r, row);
	near(row[0].ct_s, 2e-5);
	near(r.cores_s, (6e-5 + 4e-5 + 1e-6) / 2);
	near(r.cycle_s, 5.05e-5);
	assert_int_equal(r.binds, HPS_BINDS_CORES);
	near(r.cores_use, 1);
	/* Two stages of one replica: 2e-5 + 2e-5 of work, both have a core's worth. */
	eval(&c, two, 2, 1, &r, row);
	near(r.cores_s, (4e-5 + 4e-5 + 1e-6) / 2);
	plan_case_release(&c);
	/* Transfers on one host are the cores' work too: 2080 bytes, and a cut of 1000. */
	c.profile.link.bandwidth = 1e8;
	c.cut_forward[0] = 600;
	c.cut_backward[0] = 400;
	plan_case_ready(&c);
	eval(&c, two, 2, 1, &r, row);
	near(r.cores_s, (4e-5 + 4e-5 + 1e-6 + 3080 / 1e8) / 2);
	plan_case_release(&c);
}

static void test_placement(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 2 }, { 1, 1, 0, 1 } };
	struct hps_schedule s = { stage, 2, 1 };
	const uint32_t four[] = { 4 };
	const uint32_t replica[] = { 0, 1, 1 }, shard[] = { 0 };
	double host_s[2];
	struct hps_placement place = { replica, shard, host_s };
	struct hps_cost_result r;
	struct plan_case c;

	(void)state;
	sparse_case(&c);
	plan_case_host(&c, four, 1, 1);
	plan_case_host(&c, four, 1, 1);
	plan_case_ready(&c);
	/* n = 2: b of stage 0 is 2e-5 + 1e-5, half of it on each host; stage 1 2e-5; shard 40 us. */
	hps_cost_eval(&c.cost, &s, &place, &r, NULL);
	near(host_s[0], 1.5e-5 + 4e-5);
	near(host_s[1], 1.5e-5 + 2e-5);
	near(r.cores_s, 5.5e-5);
	assert_int_equal(r.at, 0);
	hps_cost_eval(&c.cost, &s, NULL, &r, NULL);
	near(r.cores_s, (3e-5 + 2e-5 + 4e-5) / 2);
	plan_case_release(&c);
}

static void test_memory_and_limits(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 2 }, { 1, 1, 0, 2 } };
	struct hps_stage_cost row[2];
	struct hps_cost_result r;
	struct hps_stage_time s;
	struct plan_case c;

	(void)state;
	two_layers(&c);
	c.size[0].param_bytes = 1000;
	c.size[0].output_bytes = 40;
	c.opt.micro_batches = 4;
	c.type[0].memory = 8000;
	plan_case_ready(&c);
	/* 3 P + 2 A B / k = 3000 + 8000 / k */
	eval(&c, stage, 2, 1, &r, row);
	near(row[0].memory_bytes, 7000);
	assert_true(r.fits);
	stage[0].units = 1;
	eval(&c, stage, 2, 1, &r, row);
	assert_false(r.fits);
	assert_non_null(strstr(r.why, "stage 0 needs 1.1e+04 bytes a unit"));
	s = hps_cost_stage(&c.cost, 0, 0, 0, -1, -1, 1);
	assert_int_equal(hps_stage_units(&c.cost, &s, INFINITY, 1), 2);
	/* Units of both stages count against the type's limit. */
	stage[0].units = 5;
	stage[1].units = 4;
	eval(&c, stage, 2, 1, &r, row);
	assert_false(r.fits);
	assert_non_null(strstr(r.why, "9 units of type \"t0\", the limit is 8"));
	/* More replicas than the step has micro-batches are paid for, and idle. */
	stage[0].units = 1;
	c.cost.type[0].memory = 0;
	stage[1].units = 5;
	eval(&c, stage, 2, 1, &r, row);
	assert_true(r.fits);
	near(row[1].ct_s, 2e-5 / 4);
	near(r.price, 6);
	/* The first stage cannot have more than there are rows. */
	c.cost.opt.micro_batches = 21;
	stage[0].units = 5;
	stage[1].units = 1;
	eval(&c, stage, 2, 1, &r, row);
	assert_false(r.fits);
	assert_non_null(strstr(r.why, "5 replicas with 21 micro-batches each, a step has 100"));
	plan_case_release(&c);
}

static void test_links(void **state)
{
	const uint32_t units[] = { 1, 0 };
	struct plan_case c;

	(void)state;
	plan_case_init(&c, 1, 2, 4);
	plan_case_time(&c, 0, 0, 0, 1e-6);
	plan_case_time(&c, 1, 0, 0, 1e-6);
	/* Nothing known: free, and told. */
	plan_case_ready(&c);
	assert_true(isinf(c.cost.type[0].bandwidth));
	assert_true(c.cost.link_unknown);
	plan_case_release(&c);
	/* No hosts: a type's link, else the network, else what was measured. */
	c.profile.link.bandwidth = 1e9;
	c.type[0].link.bandwidth = 2e9;
	plan_case_ready(&c);
	near(c.cost.type[0].bandwidth, 2e9);
	near(c.cost.type[1].bandwidth, 1e9);
	assert_int_equal(c.cost.n_classes, 2);
	assert_false(c.cost.link_unknown);
	plan_case_release(&c);
	c.cluster.network.bandwidth = 3e9;
	plan_case_ready(&c);
	near(c.cost.type[1].bandwidth, 3e9);
	near(c.cost.ps.bandwidth, 3e9);
	plan_case_release(&c);
	/* One host: what was measured there, for the types that it has. */
	plan_case_host(&c, units, 0, 1);
	plan_case_ready(&c);
	near(c.cost.type[0].bandwidth, 1e9);
	near(c.cost.type[1].bandwidth, 3e9);
	near(c.cost.ps.bandwidth, 1e9);
	plan_case_release(&c);
	/* Several hosts: the network between them is everyone's. */
	plan_case_host(&c, units, 0, 1);
	plan_case_ready(&c);
	near(c.cost.type[0].bandwidth, 3e9);
	assert_int_equal(c.cost.n_classes, 1);
	/* Limits: what was stated, or what hosts have. */
	assert_int_equal(c.cost.type[0].limit, 2);
	assert_int_equal(c.cost.type[1].limit, 4);
	assert_int_equal(c.cost.ps.max, 2);
	plan_case_release(&c);
}

static void test_step(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 1 }, { 1, 1, 0, 1 } };
	struct hps_stage_cost row[2];
	struct hps_cost_result r;
	struct plan_case c;

	(void)state;
	plan_case_init(&c, 2, 1, 8);
	plan_case_time(&c, 0, 0, 1e-3, 1e-5);
	plan_case_time(&c, 0, 1, 1e-3, 1e-5);
	c.opt.micro_batches = 4;
	c.opt.evaluator = HPS_EVAL_STEP;
	plan_case_ready(&c);
	/* Two equal stages, four micro-batches: 4 of 5 rounds do work. e = 1.25 ms. */
	eval(&c, stage, 2, 1, &r, row);
	near(r.step_s, 5 * 1.25e-3);
	near(r.rate_s / r.cycle_s, 0.8);
	near(r.fill_s, 2.5e-3);
	plan_case_release(&c);
	/* asp has no barrier. */
	c.opt.mode = HPS_ASP;
	plan_case_ready(&c);
	eval(&c, stage, 2, 1, &r, row);
	near(r.cycle_s, r.rate_s);
	plan_case_release(&c);
}

static void test_step_communication(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 2 }, { 1, 1, 0, 1 } };
	struct hps_stage_cost row[2];
	struct hps_cost_result r;
	struct plan_case c;
	double fill, rounds, sync, sparse;

	(void)state;
	sparse_case(&c);
	c.profile.link.latency = 1e-4;
	c.profile.step_overhead_s = 7e-4;
	c.size[0].param_bytes = 1e6;
	c.cut_forward[0] = 3000;
	c.cut_backward[0] = 1000;
	c.opt.evaluator = HPS_EVAL_STEP;
	c.opt.micro_batches = 2;
	plan_case_ready(&c);
	/* n = 4, m = 25: e = 1.25 ms and 0.5 ms; the cut moves 25 * 4000 bytes in 1 ms. Stage 1
	 * does 4 rounds of max(0.5, 1) ms, stage 0 2 of 1.25. */
	eval(&c, stage, 2, 1, &r, row);
	fill = 1.25e-3 + 0.5e-3 + 1e-3 + 2e-4;
	rounds = 3 * 1e-3;
	/* Ring over two replicas: 2e6 / 1e8 / 2 + 2 latencies. */
	sync = 1e-2 + 2e-4;
	/* 4000 rows of one shard at 1e6/s: 4 ms; 208,000 bytes 2.08 ms; two latencies. */
	sparse = 4e-3 + 2.08e-3 + 2e-4;
	near(r.fill_s, fill);
	near(r.sync_s, sync);
	near(r.sparse_s, sparse);
	near(r.step_s, fill + rounds + sync + sparse + 7e-4);
	assert_int_equal(row[0].dense_sync, HPS_DENSE_RING);
	near(row[0].dense_bytes, 1e6);
	plan_case_release(&c);
	/* Few bytes, many replicas, long latency: two messages of the servers beat 2 (k-1). */
	c.size[0].param_bytes = 100;
	c.profile.link.latency = 1e-2;
	plan_case_ready(&c);
	stage[0].units = 8;
	eval(&c, stage, 2, 1, &r, row);
	assert_int_equal(row[0].dense_sync, HPS_DENSE_PS);
	near(row[0].sync_s, 200 * 8 / 1e8 + 200 * 8 / 1e9 + 2e-2);
	plan_case_release(&c);
	c.opt.dense_sync = HPS_SYNC_RING;
	plan_case_ready(&c);
	eval(&c, stage, 2, 1, &r, row);
	assert_int_equal(row[0].dense_sync, HPS_DENSE_RING);
	near(row[0].sync_s, 200 * 7 / 8. / 1e8 + 14e-2);
	plan_case_release(&c);
}

/* A 2-core host: more stages than cores pay for it in a step too. */
static void test_step_shared_cores(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 1 }, { 1, 1, 0, 1 }, { 2, 2, 0, 1 } };
	const uint32_t units[] = { 4 };
	struct hps_cost_result r;
	struct plan_case c;

	(void)state;
	plan_case_init(&c, 3, 1, 8);
	for (uint32_t l = 0; l < 3; l++)
		plan_case_time(&c, 0, l, 0, 1e-5);
	plan_case_host(&c, units, 2, 2);
	c.opt.micro_batches = 4;
	c.opt.evaluator = HPS_EVAL_STEP;
	plan_case_ready(&c);
	/* e = 0.25 ms; the first micro-batch takes 3 e, each of the other three 3 e / 2 cores. */
	eval(&c, stage, 3, 1, &r, NULL);
	near(r.step_s, (3 + 3 * 1.5) * 0.25e-3);
	near(r.rate_s, 1.5e-5);
	plan_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_executor_compute),
		cmocka_unit_test(test_paper_compute),
		cmocka_unit_test(test_scaling_table),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_dense_sync),
		cmocka_unit_test(test_serial),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_shared_cores),
		cmocka_unit_test(test_placement),
		cmocka_unit_test(test_memory_and_limits),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_step),
		cmocka_unit_test(test_step_communication),
		cmocka_unit_test(test_step_shared_cores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
