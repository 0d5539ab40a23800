/* Does a deployment put everything on hosts that have room, at addresses that are used once? */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "cm.h"
#include "plan/deploy.h"
#include "plan_case.h"

/* Three layers, CPU type t0 and GPU type t1. */
static void three_layers(struct plan_case *c)
{
	plan_case_init(c, 3, 2, 0);
	for (uint32_t i = 0; i < 6; i++)
		plan_case_time(c, i / 3, i % 3, 1e-4, 1e-5);
	c->type[1].device = HPS_DEVICE_CUDA;
	c->size[0].sparse_bytes = 100;
	c->size[0].sparse_keys = 10;
	c->size[1].param_bytes = 1000;
	c->profile.link = (struct hps_link){ 1e9, 1e-5 };
	c->profile.shard.rows_per_s = 1e6;
	c->opt.micro_batches = 4;
}

static struct hps_solution solution(struct hps_span *stage, uint32_t n, uint32_t shards)
{
	struct hps_solution s = { .stage = stage, .n_stages = n };

	s.trial.shards = shards;
	return s;
}

static struct hps_deploy_options options(void)
{
	return (struct hps_deploy_options){
		.job = "j", .run_dir = "/run/x", .base_port = 7000, .epochs = 2, .seed = 5
	};
}

static void test_one_host(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 2 }, { 1, 2, 0, 1 } };
	struct hps_solution s = solution(stage, 2, 2);
	struct hps_deploy_options opt = options();
	const uint32_t units[] = { 4, 0 };
	struct hps_deploy_report r;
	struct hps_deployment d;
	struct plan_case c;

	(void)state;
	three_layers(&c);
	plan_case_host(&c, units, 2, 2);
	plan_case_ready(&c);
	assert_int_equal(hps_deploy(&c.problem, &s, &opt, &d, &r, NULL), HPS_OK);
	assert_string_equal(d.job, "j");
	assert_string_equal(d.coordinator.endpoint, "ipc:///run/x/c");
	assert_string_equal(d.coordinator.host, "h0");
	assert_int_equal(d.n_shards, 2);
	assert_string_equal(d.shard[1].endpoint, "ipc:///run/x/s1");
	assert_int_equal(d.n_stages, 2);
	assert_int_equal(d.stage[0].n_replicas, 2);
	assert_string_equal(d.stage[0].replica[1].endpoint, "ipc:///run/x/r0.1");
	assert_string_equal(d.stage[1].type, "t0");
	assert_int_equal(d.stage[1].first, 1);
	assert_int_equal(d.batch, 100);
	assert_int_equal(d.micro_batches, 4);
	assert_int_equal(d.epochs, 2);
	assert_int_equal(d.seed, 5);
	assert_int_equal(r.host[0].replicas, 3);
	assert_int_equal(r.host[0].shards, 2);
	/* Predicted by the step, below the steady state. */
	assert_true(d.predicted_samples_per_s > 0);
	assert_true(d.predicted_samples_per_s < 1 / r.cost.rate_s);
	assert_true(r.host[0].cores_use > 0 && r.host[0].cores_use < 1);
	hps_deploy_report_release(&r);
	hps_deployment_release(&d);
	/* tcp on one host: counted ports. */
	opt.transport = HPS_TRANSPORT_TCP;
	assert_int_equal(hps_deploy(&c.problem, &s, &opt, &d, NULL, NULL), HPS_OK);
	assert_string_equal(d.coordinator.endpoint, "tcp://h0:7000");
	assert_string_equal(d.shard[1].endpoint, "tcp://h0:7002");
	assert_string_equal(d.stage[1].replica[0].endpoint, "tcp://h0:7005");
	hps_deployment_release(&d);
	plan_case_release(&c);
}

static void test_several_hosts(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 3 }, { 1, 1, 1, 2 }, { 2, 2, 0, 2 } };
	struct hps_solution s = solution(stage, 3, 3);
	struct hps_deploy_options opt = options();
	const uint32_t first[] = { 4, 0 }, second[] = { 2, 1 }, third[] = { 0, 2 };
	struct hps_deployment d;
	struct hps_deploy_report r;
	struct plan_case c;

	(void)state;
	three_layers(&c);
	plan_case_host(&c, first, 4, 4);
	plan_case_host(&c, second, 2, 0);
	plan_case_host(&c, third, 2, 2);
	plan_case_ready(&c);
	assert_int_equal(hps_deploy(&c.problem, &s, &opt, &d, &r, NULL), HPS_OK);
	/* t0 fills h0 with stage 0 and the first of stage 2, then h1; t1 h1, then h2. */
	assert_string_equal(d.stage[0].replica[2].host, "h0");
	assert_string_equal(d.stage[2].replica[0].host, "h0");
	assert_string_equal(d.stage[2].replica[1].host, "h1");
	assert_string_equal(d.stage[1].replica[0].host, "h1");
	assert_string_equal(d.stage[1].replica[1].host, "h2");
	/* h0's cores are taken, h1 runs no servers: h2 gets two shards, then h0. */
	assert_string_equal(d.shard[0].host, "h2");
	assert_string_equal(d.shard[1].host, "h2");
	assert_string_equal(d.shard[2].host, "h0");
	assert_string_equal(d.coordinator.host, "h2");
	assert_string_equal(d.coordinator.endpoint, "tcp://h2:7000");
	assert_string_equal(d.shard[2].endpoint, "tcp://h0:7000");
	assert_int_equal(r.host[1].replicas, 2);
	hps_deploy_report_release(&r);
	hps_deployment_release(&d);
	plan_case_release(&c);
}

static void refused(const struct plan_case *c, const struct hps_solution *s,
		    const struct hps_deploy_options *opt, enum hps_status status, const char *msg)
{
	struct hps_err err = { 0 };
	struct hps_deployment d;

	assert_int_equal(hps_deploy(&c->problem, s, opt, &d, NULL, &err), status);
	if (!strstr(err.msg, msg))
		fail_msg("expected \"%s\", got \"%s\"", msg, err.msg);
}

static void test_refused(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 3 }, { 1, 2, 1, 2 } };
	struct hps_solution s = solution(stage, 2, 1);
	struct hps_deploy_options opt = options();
	const uint32_t units[] = { 2, 0 };
	char longer[120];
	struct plan_case c;

	(void)state;
	three_layers(&c);
	plan_case_ready(&c);
	refused(&c, &s, &opt, HPS_NO, "no hosts");
	plan_case_release(&c);
	plan_case_host(&c, units, 2, 1);
	plan_case_host(&c, units, 2, 1);
	plan_case_ready(&c);
	refused(&c, &s, &opt, HPS_NO,
		"type \"t1\": the plan takes 2 units, the hosts have 0, 2 are missing");
	stage[1].type = 0;
	refused(&c, &s, &opt, HPS_NO,
		"type \"t0\": the plan takes 5 units, the hosts have 4, 1 are missing");
	stage[1].units = 1;
	s.trial.shards = 3;
	refused(&c, &s, &opt, HPS_NO, "3 parameter server shards are needed, the hosts have 2");
	s.trial.shards = 1;
	opt.transport = HPS_TRANSPORT_IPC;
	refused(&c, &s, &opt, HPS_USAGE, "ipc sockets reach no other host");
	opt.transport = HPS_TRANSPORT_AUTO;
	opt.base_port = 65534;
	refused(&c, &s, &opt, HPS_USAGE, "no ports left on host \"h0\" from 65534 on");
	/* One host and a path that no socket can have. */
	stage[0] = (struct hps_span){ 0, 2, 0, 1 };
	s.n_stages = 1;
	c.host[1].ps_cores = 0;
	memset(longer, 'd', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	opt.run_dir = longer;
	refused(&c, &s, &opt, HPS_USAGE, "longer than 107 bytes");
	plan_case_release(&c);
}

static void addresses(struct plan_case *c, char *first, char *second)
{
	c->host[0].address = first;
	c->host[1].address = second;
}

/* Hosts of one address count their ports together; loopback is one machine by any name. */
static void test_shared_address(void **state)
{
	struct hps_span stage[] = { { 0, 0, 0, 3 }, { 1, 2, 0, 1 } };
	struct hps_solution s = solution(stage, 2, 2);
	struct hps_deploy_options opt = options();
	const uint32_t units[] = { 2, 0 };
	static char *const same[][2] = { { "127.0.0.1", "127.0.0.1" },
					 { "127.0.0.1", "localhost" },
					 { "127.0.0.2", "::1" },
					 { "node", "Node" },
					 { "fe80::1", "[FE80:0::1]" } };
	struct hps_deployment d;
	struct plan_case c;

	(void)state;
	three_layers(&c);
	plan_case_host(&c, units, 2, 1);
	plan_case_host(&c, units, 2, 1);
	plan_case_ready(&c);
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		const char *end[7];
		size_t n = 0;

		addresses(&c, same[i][0], same[i][1]);
		assert_int_equal(hps_deploy(&c.problem, &s, &opt, &d, NULL, NULL), HPS_OK);
		end[n++] = d.coordinator.endpoint;
		end[n++] = d.shard[0].endpoint;
		end[n++] = d.shard[1].endpoint;
		for (uint32_t k = 0; k < 3; k++)
			end[n++] = d.stage[0].replica[k].endpoint;
		end[n++] = d.stage[1].replica[0].endpoint;
		for (size_t e = 0; e < n; e++) {
			char port[8];

			snprintf(port, sizeof(port), ":%zu", 7000 + e);
			assert_string_equal(strrchr(end[e], ':'), port);
		}
		assert_string_not_equal(d.shard[0].host, d.shard[1].host);
		hps_deployment_release(&d);
	}
	opt.base_port = 65530;
	refused(&c, &s, &opt, HPS_BAD_INPUT, "hosts \"h0\" and \"h1\" are both at [FE80:0::1]");
	/* Each on its own has ports enough. */
	addresses(&c, "fe80::1", "node");
	assert_int_equal(hps_deploy(&c.problem, &s, &opt, &d, NULL, NULL), HPS_OK);
	assert_string_equal(d.coordinator.endpoint, "tcp://[fe80::1]:65530");
	hps_deployment_release(&d);
	addresses(&c, "node", "127.0.0.1");
	refused(&c, &s, &opt, HPS_BAD_INPUT,
		"host \"h1\" is at 127.0.0.1, where host \"h0\" (node) does not reach it");
	plan_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared_address),
		cmocka_unit_test(test_one_host),
		cmocka_unit_test(test_several_hosts),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
