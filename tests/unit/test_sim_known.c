/* The simulator against figures worked out by hand: pipelines, links, shards, rings, stragglers. */
#include <math.h>
#include <string.h>
#include "cm.h"
#include "base/mem.h"
#include "sim_case.h"

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * fabs(want) + 1e-300))
		fail_msg("expected %.17g, got %.17g", want, got);
}

static void within(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("expected %g within %g %%, got %g", want, 100 * tolerance, got);
}

static struct hps_sim_result run(const struct sim_case *c, struct hps_sim_stage *stage)
{
	struct hps_sim_result r;
	struct hps_err err = { 0 };

	if (hps_sim_run(&c->cost, &c->schedule, &c->sim, &r, stage, &err))
		fail_msg("%s", err.msg);
	return r;
}

static void ready(struct sim_case *c)
{
	assert_true(sim_case_ready(c));
}

/* 1200 rows of 10 us. */
static void test_one_replica(void **state)
{
	struct hps_sim_stage row;
	struct hps_sim_result r;
	struct sim_case c;

	(void)state;
	sim_case_init(&c, 1, 1e-5);
	ready(&c);
	r = run(&c, &row);
	near(r.step_s, 0.012);
	near(r.step_least_s, 0.012);
	near(r.step_most_s, 0.012);
	near(r.throughput, 1e5);
	near(r.window_s, 16 * 0.012);
	assert_int_equal(r.steps, 20);
	assert_int_equal(r.warm, 4);
	near(row.share[HPS_SIM_COMPUTE], 1);
	near(row.busiest, 1);
	sim_case_release(&c);
	/* c0 is paid by each micro-batch, the overhead once a step. */
	c.time[0].forward.c0 = 1e-4;
	c.profile.step_overhead_s = 6e-4;
	ready(&c);
	r = run(&c, &row);
	near(r.step_s, 0.012 + 4 * 1e-4 + 6e-4);
	near(row.share[HPS_SIM_STEP], 6e-4 / 0.013);
	sim_case_release(&c);
}

/* S stages alike take M + S - 1 slots; a replica computes in M of them. */
static void test_pipeline_slots(void **state)
{
	static const uint32_t micro[] = { 1, 2, 3, 4, 8, 30 };

	(void)state;
	for (uint32_t S = 1; S <= 4; S++) {
		for (size_t i = 0; i < sizeof(micro) / sizeof(*micro); i++) {
			struct hps_sim_stage row[4];
			struct hps_sim_result r;
			struct sim_case c;
			double M = micro[i];

			sim_case_init(&c, S, 1e-5);
			sim_case_pipeline(&c, 1);
			c.opt.micro_batches = micro[i];
			ready(&c);
			r = run(&c, row);
			near(r.step_s, (M + S - 1) * 0.012 / M);
			for (uint32_t s = 0; s < S; s++)
				near(row[s].share[HPS_SIM_COMPUTE], M / (M + S - 1));
			sim_case_release(&c);
		}
	}
}

static void sums_to_one(const struct hps_sim_stage *row)
{
	double sum = 0;

	for (int w = 0; w < HPS_SIM_WHERES; w++)
		sum += row->share[w];
	near(sum, 1);
}

/* One micro-batch has nothing to hide its transfers behind; many are as fast as the link. */
static void test_slow_link(void **state)
{
	struct hps_sim_stage row[2];
	struct hps_sim_result r;
	struct sim_case c;

	(void)state;
	sim_case_init(&c, 2, 1e-5);
	sim_case_pipeline(&c, 1);
	c.forward[0] = 700;
	c.backward[0] = 300;
	c.profile.link = (struct hps_link){ 1e8, 1e-3 };
	c.opt.micro_batches = 1;
	ready(&c);
	r = run(&c, row);
	near(r.step_s, 2 * 0.012 + 1200 * 1000 / 1e8 + 2e-3);
	near(row[0].link_use, 0.012 / 0.038);
	near(row[1].share[HPS_SIM_LINK], (1200 * 700 / 1e8 + 1e-3) / 0.038);
	sums_to_one(&row[0]);
	sums_to_one(&row[1]);
	sim_case_release(&c);
	/* asp: 1000 bytes a sample on 1e7 bytes a second. */
	c.profile.link = (struct hps_link){ 1e7, 0 };
	c.opt.micro_batches = 12;
	c.opt.mode = HPS_ASP;
	ready(&c);
	c.sim.steps = 100;
	r = run(&c, row);
	within(r.throughput, 1e4, 0.01);
	within(row[0].link_use, 1, 0.01);
	/* Both directions at once: the larger one counts. */
	c.sim.duplex = true;
	r = run(&c, row);
	within(r.throughput, 1e7 / 700, 0.01);
	sim_case_release(&c);
}

/* 20 keys a sample, pulled and pushed, at 1e6 a second and shard. */
static void test_saturated_shards(void **state)
{
	struct hps_sim_stage row;
	struct hps_sim_result r;
	struct sim_case c;

	(void)state;
	sim_case_init(&c, 1, 1e-6);
	c.size[0].sparse_bytes = 800;
	c.size[0].sparse_keys = 20;
	c.profile.shard.rows_per_s = 1e6;
	c.stage[0].units = 2;
	c.schedule.shards = 2;
	c.opt.mode = HPS_ASP;
	ready(&c);
	c.sim.steps = 50;
	r = run(&c, &row);
	within(r.throughput, 2 * 1e6 / 40, 0.01);
	near(r.shard_use, 1);
	within(row.share[HPS_SIM_SHARD], 1 - 5e4 * 1e-6 / 2, 0.01);
	sim_case_release(&c);
	/* bsp, one replica and one micro-batch: the pull waits for the push before it. */
	c.opt.mode = HPS_BSP;
	c.opt.micro_batches = 1;
	c.stage[0].units = 1;
	c.profile.link = (struct hps_link){ 1e9, 1e-4 };
	ready(&c);
	r = run(&c, &row);
	near(r.step_s, 1.2e-3 + 2 * (1200 * 20 / 2e6 + 1200 * 960 / 1e9 + 1e-4));
	sim_case_release(&c);
}

static void test_ring(void **state)
{
	(void)state;
	for (uint32_t k = 1; k <= 9; k++) {
		struct hps_sim_stage row;
		struct sim_case c;

		sim_case_init(&c, 1, 1e-5);
		c.stage[0].units = k;
		c.size[0].param_bytes = 1e6;
		c.profile.link = (struct hps_link){ 1e8, 1e-4 };
		ready(&c);
		near(run(&c, &row).step_s, 0.012 / k + 2 * (k - 1) * (1e6 / k / 1e8 + 1e-4));
		sim_case_release(&c);
	}
}

/* Through the servers: all pushes share the shards' links, then their work, then back. */
static void test_servers(void **state)
{
	struct hps_sim_stage row;
	struct sim_case c;

	(void)state;
	sim_case_init(&c, 1, 1e-5);
	c.size[0].param_bytes = 1e6;
	c.profile.link = (struct hps_link){ 1e8, 1e-4 };
	c.profile.shard.bytes_per_s = 1e9;
	c.opt.dense_sync = HPS_SYNC_PS;
	ready(&c);
	near(run(&c, &row).step_s, 0.012 + 2 * (1e6 / 1e8 + 1e6 / 1e9 + 1e-4));
	near(row.share[HPS_SIM_SYNC], 1 - 0.012 / run(&c, &row).step_s);
	sim_case_release(&c);
	/* 6 replicas on 2 shards whose work takes no time: 6 P / (2 bw) each way. */
	c.stage[0].units = 6;
	c.schedule.shards = 2;
	c.profile.shard.bytes_per_s = 0;
	ready(&c);
	near(run(&c, &row).step_s, 0.002 + 2 * (3e6 / 1e8 + 1e-4));
	sim_case_release(&c);
}

/* bsp waits for the slowest, asp gets the sum of speeds, ssp in the long run the slowest too. */
static void test_stragglers(void **state)
{
	struct hps_sim_stage row;
	struct hps_sim_result r;
	struct sim_case c;

	(void)state;
	sim_case_init(&c, 1, 1e-5);
	c.stage[0].units = 4;
	ready(&c);
	c.sim.straggler_share = 0.25;
	c.sim.straggler_factor = 3;
	r = run(&c, &row);
	near(r.step_s, 3 * 0.003);
	near(row.busiest, 1);
	near(row.idlest, 1 / 3.);
	near(row.share[HPS_SIM_COMPUTE], (1 + 3 / 3.) / 4);
	c.sim.mode = HPS_SIM_ASP;
	c.sim.steps = 300;
	r = run(&c, &row);
	within(r.throughput, (3 + 1 / 3.) * 1e5, 0.005);
	near(row.share[HPS_SIM_COMPUTE], 1);
	c.sim.mode = HPS_SIM_SSP;
	c.sim.bound = 3;
	within(run(&c, &row).throughput, 4 * 1e5 / 3, 0.01);
	/* Before the bound is reached nobody waits. */
	c.sim.bound = 1000;
	near(run(&c, &row).throughput, r.throughput);
	sim_case_release(&c);
}

/* A later stage's slow replica gets less in asp. */
static void test_straggler_downstream(void **state)
{
	struct hps_sim_stage row[2];
	struct sim_case c;
	double bsp, asp;

	(void)state;
	sim_case_init(&c, 2, 1e-5);
	sim_case_pipeline(&c, 4);
	c.time[0].forward.c1 = c.time[0].backward.c1 = 1e-7;
	c.opt.micro_batches = 8;
	ready(&c);
	c.sim.straggler_share = 0.125; /* one of eight: seeds 1.. put it in either stage */
	c.sim.straggler_factor = 4;
	c.sim.steps = 100;
	for (c.sim.seed = 1, row[1].idlest = 1; row[1].idlest > 0.5; c.sim.seed++) {
		assert_true(c.sim.seed < 20);
		run(&c, row);
	}
	c.sim.seed--;
	bsp = run(&c, row).throughput;
	within(bsp, 1e5, 0.03);
	c.sim.mode = HPS_SIM_ASP;
	asp = run(&c, row).throughput;
	within(asp, 3.25e5, 0.03);
	sim_case_release(&c);
}

/* Eight threads on two cores run at a quarter. */
static void test_shared_cores(void **state)
{
	struct hps_sim_stage row;
	struct hps_sim_result r;
	struct sim_case c;

	(void)state;
	sim_case_init(&c, 1, 1e-5);
	c.units = 8;
	c.cluster.n_hosts = 1;
	c.host.cores = 2;
	c.host.ps_cores = 1;
	c.stage[0].units = 8;
	ready(&c);
	r = run(&c, &row);
	near(r.throughput, 2e5);
	near(r.cores_use, 1);
	near(row.share[HPS_SIM_COMPUTE], 0.25);
	near(row.share[HPS_SIM_CORES], 0.75);
	sim_case_release(&c);
	/* Parsing takes a core too: 10 + 2 us a row on two cores. */
	c.profile.input_s_per_sample = 2e-6;
	c.opt.mode = HPS_ASP;
	ready(&c);
	c.sim.steps = 200;
	within(run(&c, &row).throughput, 2 / 12e-6, 0.01);
	sim_case_release(&c);
}

/* Replicas beyond the micro-batches idle, but take part in the synchronisation. */
static void test_idle_replicas(void **state)
{
	(void)state;
	for (int ps = 0; ps < 2; ps++) {
		struct hps_sim_stage row[2];
		struct sim_case c;

		sim_case_init(&c, 2, 1e-5);
		sim_case_pipeline(&c, 5);
		c.stage[0].units = 1;
		c.opt.micro_batches = 2;
		c.size[1].param_bytes = 1e6;
		c.profile.link.bandwidth = 1e8;
		c.opt.dense_sync = ps ? HPS_SYNC_PS : HPS_SYNC_RING;
		ready(&c);
		/* The second stage's parameters come last: a slot of 6 ms follows on them. */
		near(run(&c, row).step_s, 0.006 + (ps ? 2 * 5e6 / 1e8 : 2 * 0.8e6 / 1e8));
		near(row[1].idlest, 0);
		sim_case_release(&c);
	}
}

/* The paper's form: the batch over all units of a stage, (a + b/k) a sample. */
static void test_paper(void **state)
{
	struct hps_sim_stage row[2];
	struct hps_sim_result r;
	struct sim_case c;

	(void)state;
	sim_case_init(&c, 2, 1e-5);
	sim_case_pipeline(&c, 4);
	c.opt.form = HPS_COST_PAPER;
	c.time[1].alpha = 0.8;
	ready(&c);
	r = run(&c, row);
	within(r.throughput, 1 / (1e-5 * (0.2 + 0.8 / 4)), 0.01);
	within(r.step_s, 1200 / r.throughput, 1e-9);
	/* One slow unit of four makes its stage slow. */
	c.sim.straggler_share = 1;
	c.sim.straggler_factor = 2;
	within(run(&c, row).throughput, 1 / (2e-5 * (0.2 + 0.8 / 4)), 0.01);
	sim_case_release(&c);
}

/* Without overlap a stage takes computing and transfers; PipeDream's replicas synchronise less. */
static void test_serial_and_weak(void **state)
{
	struct hps_sim_stage row[2];
	struct sim_case c;

	(void)state;
	sim_case_init(&c, 1, 1e-5);
	c.stage[0].units = 2;
	c.size[0].param_bytes = 6e5;
	c.profile.link.bandwidth = 1e8;
	ready(&c);
	near(run(&c, row).step_s, 0.006 + 0.006);
	sim_case_release(&c);
	c.opt.weak = true;
	ready(&c);
	near(run(&c, row).step_s, 0.006 + 0.003);
	sim_case_release(&c);
	c.opt.weak = false;
	c.opt.serial = true;
	c.opt.mode = HPS_ASP;
	ready(&c);
	c.sim.steps = 100;
	within(run(&c, row).throughput, 1200 / 0.012, 0.02);
	sim_case_release(&c);
}

/* --- noise --- */

static void test_jitter(void **state)
{
	struct hps_sim_stage row;
	struct sim_case c;
	double bsp, asp, again;

	(void)state;
	sim_case_init(&c, 1, 1e-5);
	c.stage[0].units = 16;
	ready(&c);
	c.sim.jitter = 0.5;
	c.sim.steps = 400;
	bsp = run(&c, &row).throughput;
	again = run(&c, &row).throughput;
	assert_memory_equal(&bsp, &again, sizeof(bsp));
	c.sim.mode = HPS_SIM_ASP;
	asp = run(&c, &row).throughput;
	/* Mean 1: nothing waits in asp. In bsp the slowest of 16 sums of 8 draws counts: their
	 * deviation is 0.5 * sqrt(5 / 9) / 2 (forward a third), the mean of the largest of 16
	 * normals 1.77 deviations. */
	within(asp, 16e5, 0.01);
	within(bsp, 16e5 / (1 + 1.77 * 0.25 * sqrt(5 / 9.)), 0.05);
	c.sim.seed = 2;
	again = run(&c, &row).throughput;
	assert_true(again != asp);
	within(again, asp, 0.02);
	sim_case_release(&c);
}

/* --- events --- */

struct seen {
	uint32_t n[HPS_SIM_KINDS];
	double busy[4], end[4], last, bytes;
};

static void see(void *arg, const struct hps_sim_event *e)
{
	struct seen *s = arg;

	assert_true(e->end_s >= s->last && e->begin_s <= e->end_s);
	s->last = e->end_s;
	s->n[e->kind]++;
	s->bytes += e->bytes;
	if (e->kind > HPS_SIM_OVERHEAD)
		return;
	/* A replica does one thing at a time. */
	assert_true(e->begin_s >= s->end[e->stage * 2 + e->replica] - 1e-12);
	s->end[e->stage * 2 + e->replica] = e->end_s;
	s->busy[e->stage * 2 + e->replica] += e->end_s - e->begin_s;
}

static void test_events(void **state)
{
	struct hps_sim_stage row[2];
	struct hps_sim_result r;
	struct sim_case c;
	struct seen seen = { 0 };

	(void)state;
	sim_case_init(&c, 2, 1e-5);
	sim_case_pipeline(&c, 2);
	c.forward[0] = 60;
	c.backward[0] = 40;
	c.size[0].sparse_bytes = 100;
	c.size[0].sparse_keys = 2;
	c.size[1].param_bytes = 1e5;
	c.profile.link.bandwidth = 1e8;
	c.profile.shard.rows_per_s = 1e7;
	c.profile.shard.bytes_per_s = 1e9;
	c.opt.dense_sync = HPS_SYNC_PS;
	ready(&c);
	c.sim.steps = 3;
	c.sim.event = see;
	c.sim.arg = &seen;
	r = run(&c, row);
	/* Steps of 8 micro-batches, through two stages and back. */
	assert_int_equal(seen.n[HPS_SIM_FORWARD], 3 * 8 * 2);
	assert_int_equal(seen.n[HPS_SIM_BACKWARD], 3 * 8 * 2);
	assert_int_equal(seen.n[HPS_SIM_ACTIVATIONS], 3 * 8);
	assert_int_equal(seen.n[HPS_SIM_GRADIENTS], 3 * 8);
	assert_true(seen.n[HPS_SIM_PULL] >= 3 * 8);
	assert_true(seen.n[HPS_SIM_PUSH] >= 2 * 8);
	assert_true(seen.n[HPS_SIM_DENSE_PUSH] >= 2 * 2);
	assert_int_equal(seen.n[HPS_SIM_RING], 0);
	for (int i = 0; i < 4; i++)
		near(seen.busy[i], 3 * 0.006);
	assert_true(r.events > 0);
	sim_case_release(&c);
}

/* --- refusals --- */

static void refused(struct sim_case *c, enum hps_status want, const char *text)
{
	struct hps_sim_result r;
	struct hps_err err = { 0 };

	assert_int_equal(hps_sim_run(&c->cost, &c->schedule, &c->sim, &r, NULL, &err), want);
	if (!strstr(err.msg, text))
		fail_msg("\"%s\" is not in \"%s\"", text, err.msg);
	c->sim = hps_sim_defaults(&c->cost);
}

static bool stop(void *arg)
{
	(void)arg;
	return true;
}

static void test_refusals(void **state)
{
	struct sim_case c;

	(void)state;
	sim_case_init(&c, 1, 1e-5);
	ready(&c);
	c.sim.jitter = NAN;
	refused(&c, HPS_USAGE, "expected jitter within 0..10, got nan");
	c.sim.jitter = 11;
	refused(&c, HPS_USAGE, "got 11");
	c.sim.straggler_share = 1.5;
	refused(&c, HPS_USAGE, "share of stragglers within 0..1, got 1.5");
	c.sim.straggler_share = 0.5;
	c.sim.straggler_factor = 0;
	refused(&c, HPS_USAGE, "factor > 0, up to 1e6, got 0");
	c.sim.steps = HPS_SIM_MOST_STEPS + 1;
	refused(&c, HPS_USAGE, "at most 1000000 steps");
	c.sim.most_events = 10;
	refused(&c, HPS_NO, "stopped after 10 events");
	c.sim.stop = stop;
	c.sim.steps = 10000;
	refused(&c, HPS_NO, "interrupted");
	c.stage[0].last = 3;
	refused(&c, HPS_BAD_INPUT, "within 0..0");
	c.stage[0].last = 0;
	c.stage[0].units = 1 << 22;
	refused(&c, HPS_MEMORY, "are more than 2097152");
	sim_case_release(&c);
}

/* Whichever allocation fails, it says so and leaves nothing behind. */
static void test_out_of_memory(void **state)
{
	struct sim_case c;
	enum hps_status rc = HPS_MEMORY;
	unsigned long n = 0;
	double throughput;

	(void)state;
	sim_case_init(&c, 2, 1e-5);
	sim_case_pipeline(&c, 40);
	c.size[0].sparse_keys = 1;
	c.profile.link.bandwidth = 1e8;
	c.opt.mode = HPS_ASP;
	ready(&c);
	c.sim.steps = 2;
	while (rc) {
		hps_mem_fail_at(++n);
		rc = hps_sim_throughput(&c.cost, &c.schedule, &c.sim, &throughput, NULL);
		hps_mem_fail_at(0);
		assert_true(rc == HPS_OK || rc == HPS_MEMORY);
	}
	assert_true(n > 15);
	sim_case_release(&c);
}

/* Ten thousand replicas: seconds, and the answer of the formula. */
static void test_ten_thousand(void **state)
{
	struct hps_sim_stage row;
	struct sim_case c;

	(void)state;
	sim_case_init(&c, 1, 1e-5);
	c.profile.batch = 1e6;
	c.time[0].oct = 10;
	c.stage[0].units = 10000;
	c.size[0].param_bytes = 1e6;
	c.profile.link.bandwidth = 1e9;
	c.opt.micro_batches = 2;
	ready(&c);
	c.sim.steps = 3;
	near(run(&c, &row).step_s, 1e-3 + 2 * 1e6 * 0.9999 / 1e9);
	sim_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_replica),  cmocka_unit_test(test_pipeline_slots),
		cmocka_unit_test(test_slow_link),    cmocka_unit_test(test_saturated_shards),
		cmocka_unit_test(test_ring),	     cmocka_unit_test(test_servers),
		cmocka_unit_test(test_stragglers),   cmocka_unit_test(test_straggler_downstream),
		cmocka_unit_test(test_shared_cores), cmocka_unit_test(test_idle_replicas),
		cmocka_unit_test(test_paper),	     cmocka_unit_test(test_serial_and_weak),
		cmocka_unit_test(test_jitter),	     cmocka_unit_test(test_events),
		cmocka_unit_test(test_refusals),     cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_ten_thousand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
