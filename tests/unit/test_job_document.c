/* The job document: its sections read, checked against each other, kept and replaced. */
#include "cm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "job_case.h"

enum { ALL = HPS_MODEL | HPS_CLUSTER | HPS_PROFILE | HPS_PLAN | HPS_DEPLOYMENT };

static enum hps_status read_text(const char *text, unsigned need, unsigned trust,
				 struct hps_job *job, struct hps_err *err)
{
	return hps_job_parse(job_case_parse(text), "t", need, trust, job, err);
}

static void read_all(const char *text, struct hps_job *job)
{
	struct hps_err err = { 0 };

	if (read_text(text, ALL, ALL, job, &err))
		fail_msg("%s: %s", err.where, err.msg);
}

static void test_everything(void **state)
{
	char *text = job_case_document();
	struct hps_job job;
	char name[128];

	read_all(text, &job);
	assert_true(job.has_model && job.has_cluster && job.has_profile && job.has_plan &&
		    job.has_deployment);
	/* cluster */
	assert_int_equal(job.cluster.n_types, 2);
	assert_int_equal(job.cluster.type[0].limit, 8);
	assert_true(job.cluster.type[0].link.bandwidth == 1.25e9);
	assert_int_equal(job.cluster.type[1].device, HPS_DEVICE_CUDA);
	assert_int_equal(job.cluster.type[1].limit, HPS_NO_LIMIT);
	assert_string_equal(job.cluster.type[1].like, "cpu");
	assert_true(job.cluster.type[1].speed == 12 &&
		    job.cluster.type[1].op_speed[HPS_OP_DENSE] == 60 &&
		    job.cluster.type[1].op_speed[HPS_OP_CONCAT] == 0);
	assert_int_equal(job.cluster.host[0].ps_cores, 2);
	assert_string_equal(job.cluster.host[1].address, "127.0.0.1");
	assert_int_equal(job.cluster.host[1].units[1], 1);
	assert_int_equal(job.cluster.host[1].ps_cores, 3); /* its CPU units */
	assert_true(job.cluster.ps_price == 0.05);
	assert_int_equal(hps_cluster_type(&job.cluster, "v100"), 1);
	assert_int_equal(hps_cluster_type(&job.cluster, "k80"), -1);
	/* profile: oct and alpha follow from the fits where they are not given */
	assert_int_equal(job.profile.n_batches, 2);
	assert_true(job.profile.time[0].backward_s[1] == 5e-5);
	assert_true(job.profile.time[0].oct > 0.99 * (2e-6 + 64e-6) &&
		    job.profile.time[0].oct < 1.01 * (2e-6 + 64e-6));
	assert_true(job.profile.time[0].alpha > 0.96 && job.profile.time[0].alpha < 0.98);
	assert_int_equal(job.profile.time[0].n_scaling, 2);
	assert_null(job.profile.time[1].forward_s);
	assert_true(job.profile.time[1].alpha == 0.5);
	assert_true(job.profile.cut_forward_bytes[5] == 28);
	assert_true(job.profile.link_measured && job.profile.shard.measured);
	assert_int_equal(hps_profile_type(&job.profile, "cpu"), 0);
	assert_int_equal(hps_profile_type(&job.profile, "v100"), -1);
	/* plan and deployment */
	assert_int_equal(job.plan.n_stages, 2);
	assert_int_equal(job.plan.stage[1].last, 7);
	assert_true(job.plan.has_bound && job.plan.proven);
	assert_int_equal(job.deployment.n_shards, 2);
	assert_int_equal(job.deployment.stage[1].dense_sync, HPS_DENSE_RING);
	assert_true(job.deployment.simulated);
	/* nodes: coordinator, 2 shards, 2 + 1 replicas */
	assert_int_equal(hps_deployment_nodes(&job.deployment), 6);
	assert_int_equal(hps_node_of_shard(&job.deployment, 1), 2);
	assert_int_equal(hps_node_of_replica(&job.deployment, 0, 1), 4);
	assert_int_equal(hps_node_of_replica(&job.deployment, 1, 0), 5);
	hps_node_name(&job.deployment, 0, name, sizeof(name));
	assert_string_equal(name, "coordinator on host a");
	hps_node_name(&job.deployment, 2, name, sizeof(name));
	assert_string_equal(name, "shard 1 on host b");
	hps_node_name(&job.deployment, 4, name, sizeof(name));
	assert_string_equal(name, "stage 0 replica 1 on host b");
	hps_node_name(&job.deployment, 5, name, sizeof(name));
	assert_string_equal(name, "stage 1 replica 0 on host b");
	hps_node_name(&job.deployment, 6, name, sizeof(name));
	assert_string_equal(name, "node 6, which this job does not have");
	hps_job_release(&job);
	free(text);
}

/* Each section with only what has no default. */
static void test_defaults(void **state)
{
	static const char text[] =
		"{ \"hps\": 1,\n"
		"  \"cluster\": { \"types\": [ { \"name\": \"g\", \"device\": \"cuda\", \"price\": 2 },\n"
		"                          { \"name\": \"c\", \"price\": 0.5, \"limit\": null } ],\n"
		"    \"hosts\": [ { \"name\": \"h\", \"units\": { \"c\": 3, \"g\": 2 } } ] },\n"
		"  \"profile\": { \"digest\": \"0000000000000000\", \"batch\": 4,\n"
		"    \"layers\": [ { \"name\": \"any (name)\" } ],\n"
		"    \"types\": [ { \"name\": \"g\", \"layers\": [ { \"oct\": 2, \"alpha\": 0.25 } ] } ]\n"
		"  },\n"
		"  \"plan\": { \"digest\": \"0000000000000000\", \"method\": \"hand\", \"stages\": [\n"
		"    { \"first\": 0, \"last\": 0, \"type\": \"g\", \"units\": 1 } ] },\n"
		"  \"deployment\": { \"digest\": \"0000000000000000\", \"job\": \"j\", \"batch\": 9,\n"
		"    \"coordinator\": { \"host\": \"h\", \"endpoint\": \"ipc://x\" },\n"
		"    \"shards\": [ { \"host\": \"h\", \"endpoint\": \"ipc://y\" } ],\n"
		"    \"stages\": [ { \"first\": 0, \"last\": 0, \"type\": \"g\", \"replicas\": [\n"
		"      { \"host\": \"h\", \"endpoint\": \"tcp://h:1\" } ] } ] } }";
	struct hps_err err = { 0 };
	struct hps_job job;

	if (read_text(text, 0, ALL, &job, &err))
		fail_msg("%s: %s", err.where, err.msg);
	assert_false(job.has_model);
	assert_int_equal(job.cluster.type[1].device, HPS_DEVICE_CPU);
	assert_int_equal(job.cluster.type[1].limit, HPS_NO_LIMIT);
	assert_null(job.cluster.type[0].like);
	assert_true(job.cluster.ps_price == 0.5); /* the first CPU type's */
	assert_int_equal(job.cluster.host->cores, 0);
	assert_int_equal(job.cluster.host->ps_cores, 3);
	assert_true(job.cluster.network.bandwidth == 0);
	assert_int_equal(job.profile.n_batches, 0);
	assert_false(job.profile.simulated[0]);
	assert_false(job.profile.link_measured);
	assert_true(job.profile.time->oct == 2 && job.profile.time->alpha == 0.25);
	assert_int_equal(job.plan.ps_shards, 1);
	assert_int_equal(job.plan.seed, 1);
	assert_string_equal(job.plan.objective, "cost_per_sample");
	assert_string_equal(job.plan.form, "executor");
	assert_string_equal(job.plan.evaluator, "rate");
	assert_false(job.plan.has_bound || job.plan.proven);
	assert_int_equal(job.deployment.micro_batches, 1);
	assert_int_equal(job.deployment.epochs, 1);
	assert_int_equal(job.deployment.seed, 1);
	assert_int_equal(job.deployment.sync, HPS_BSP);
	assert_int_equal(job.deployment.stage->dense_sync, HPS_DENSE_PS);
	hps_job_release(&job);
}

static const struct refusal {
	const char *find, *replace, *told, *hint;
} refusals[] = {
	/* the document */
	{ "{ \"hps\": 1,", "{", "t: not a job document: no member \"hps\"", NULL },
	{ "\"hps\": 1", "\"hps\": 2",
	  "t: hps: made by a newer hps (document version 2, this one reads 1)", NULL },
	{ "\"hps\": 1", "\"hps\": 0", "t: hps: expected an integer > 0, got 0", NULL },
	{ "\"hps\": 1", "\"hps\": \"one\"", "t: hps: expected an integer > 0, got \"one\"", NULL },
	{ "\"model\"", "\"mold\"", "t: no section \"model\"", "hps-profile adds it" },
	{ "\"cluster\"", "\"claster\"", "t: no section \"cluster\"", "hps-profile adds it" },
	{ "\"profile\"", "\"profil\"", "t: no section \"profile\"", "hps-profile adds it" },
	{ "\"plan\"", "\"plans\"", "t: no section \"plan\"", "hps-plan adds it" },
	{ "\"deployment\"", "\"deploy\"", "t: no section \"deployment\"", "hps-provision adds it" },
	{ "\"units\": 4", "\"units\": \"abc\"",
	  "t: model.layers[5].units: expected an integer > 0, got \"abc\"", NULL },
	/* cluster: types */
	{ "{ \"types\": [", "{ \"tips\": [", "t: cluster.tips: unknown member",
	  "did you mean \"types\"?" },
	{ "\"name\": \"v100\"", "\"name\": \"cpu\"",
	  "t: cluster.types[1].name: \"cpu\" is the name of types[0] already", NULL },
	{ "\"name\": \"v100\"", "\"name\": \"v|100\"",
	  "t: cluster.types[1].name: expected a name (up to", NULL },
	{ "\"device\": \"cuda\"", "\"device\": \"tpu\"",
	  "t: cluster.types[1].device: expected \"cpu\" or \"cuda\", got \"tpu\"", NULL },
	{ "\"price\": 2.42, ", "",
	  "t: cluster.types[1].price: missing: expected a number from 0 to 1000000000", NULL },
	{ "\"price\": 2.42", "\"price\": -1",
	  "t: cluster.types[1].price: expected a number from 0 to 1000000000, got -1", NULL },
	{ "\"limit\": 8", "\"limit\": 0",
	  "t: cluster.types[0].limit: expected an integer > 0, got 0", NULL },
	{ "\"limit\": 8", "\"limit\": 4294967295",
	  "t: cluster.types[0].limit: expected an integer from 1 to 4294967294, got 4294967295",
	  NULL },
	{ "\"like\": \"cpu\"", "\"like\": \"gpu\"",
	  "t: cluster.types[1].like: no type is named \"gpu\"", NULL },
	{ "\"like\": \"cpu\"", "\"like\": \"v100\"",
	  "t: cluster.types[1].like: \"v100\" is itself declared by another type; name a measured one",
	  NULL },
	{ "\"like\": \"cpu\",\n", "",
	  "t: cluster.types[1].speed: a speed needs \"like\", the type that it is relative to",
	  NULL },
	{ "\"speed\": 12", "\"speed\": 0",
	  "t: cluster.types[1].speed: expected a number > 0 and <= 1000000000, got 0", NULL },
	{ "\"op_speed\": { \"dense\"", "\"op_speed\": { \"dence\"",
	  "t: cluster.types[1].op_speed.dence: unknown member", "did you mean \"dense\"?" },
	{ "\"dense\": 60", "\"dense\": -60",
	  "t: cluster.types[1].op_speed.dense: expected a number > 0 and <= 1000000000, got -60",
	  NULL },
	{ "\"bandwidth\": 1.25e9", "\"bandwidth\": -1",
	  "t: cluster.types[0].link.bandwidth: expected a number from 0 to 1e+18, got -1", NULL },
	{ "\"bandwidth\": 1.25e9", "\"bandwith\": 1",
	  "t: cluster.types[0].link.bandwith: unknown member", "did you mean \"bandwidth\"?" },
	/* cluster: hosts */
	{ "\"name\": \"b\", \"units\"", "\"name\": \"a\", \"units\"",
	  "t: cluster.hosts[1].name: \"a\" is the name of hosts[0] already", NULL },
	{ "\"cpu\": 3, \"v100\": 1", "\"cpu\": 3, \"k80\": 1",
	  "t: cluster.hosts[1].units.k80: no type is named \"k80\"", NULL },
	{ "\"v100\": 1 }", "\"v100\": -1 }",
	  "t: cluster.hosts[1].units.v100: expected an integer >= 0, got -1", NULL },
	{ ", \"units\": { \"cpu\": 3, \"v100\": 1 }", "",
	  "t: cluster.hosts[1].units: missing: expected an object", NULL },
	{ "\"10.0.0.1\"", "\"10.0.0.1/8\"",
	  "t: cluster.hosts[0].address: expected a host name or an IP address, got \"10.0.0.1/8\"",
	  NULL },
	{ "\"10.0.0.1\"", "\"10.0.0.1:80\"",
	  "t: cluster.hosts[0].address: expected a host name or an IP address, got \"10.0.0.1:80\"",
	  NULL },
	{ "\"10.0.0.1\"", "\"*\"",
	  "t: cluster.hosts[0].address: expected a host name or an IP address, got \"*\"", NULL },
	{ "\"ps_cores\": 2", "\"ps_cores\": 2000000",
	  "t: cluster.hosts[0].ps_cores: expected an integer from 0 to 1048576, got 2000000",
	  NULL },
	{ "\"latency\": 1e-4", "\"latency\": \"1ms\"",
	  "t: cluster.network.latency: expected a number from 0 to 1000000, got \"1ms\"", NULL },
	{ "\"ps_price\": 0.05", "\"ps_price\": []",
	  "t: cluster.ps_price: expected a number from 0 to 1000000000, got an array", NULL },
	/* profile */
	{ "\"batch\": 64, \"batches\"", "\"batch\": 0, \"batches\"",
	  "t: profile.batch: expected a number > 0 and <= 1073741824, got 0", NULL },
	{ "[16, 64]", "[64, 16]",
	  "t: profile.batches[1]: expected ascending batch sizes > 0, got 16", NULL },
	{ "[16, 64]", "[0, 64]", "t: profile.batches[0]: expected ascending batch sizes > 0, got 0",
	  NULL },
	{ "[16, 64]", "[16, 32, 64]",
	  "t: profile.types[0].layers[0].forward_s: expected 3 elements, got 2", NULL },
	{ "\"sparse_keys\": 1.5", "\"sparse_keys\": -1.5",
	  "t: profile.layers[0].sparse_keys: expected a number >= 0, got -1.5", NULL },
	{ "{ \"name\": \"cos\" } ]", "{ \"name\": \"cos\", \"cut_forward_bytes\": 4 } ]",
	  "t: profile.layers[7]: nothing crosses a cut after the last layer, its cut_forward_bytes "
	  "and cut_backward_bytes are 0",
	  NULL },
	{ "{ \"name\": \"cos\" } ]", "{ \"name\": \"cosine\" } ]",
	  "t: profile.layers[7].name: expected \"cos\", the model's layer, got \"cosine\"", NULL },
	{ "{ \"name\": \"pos\" }, ", "", "t: profile.types[0].layers: expected 7 elements, got 8",
	  NULL },
	{ "\"simulated\": false, \"layers\"", "\"simulated\": 0, \"layers\"",
	  "t: profile.types[0].simulated: expected true or false, got 0", NULL },
	{ "{ \"name\": \"emb\", \"forward_s\"", "{ \"name\": \"ebm\", \"forward_s\"",
	  "t: profile.types[0].layers[0].name: expected \"emb\", the name of layers[0], got \"ebm\"",
	  NULL },
	{ "[1e-5, 3e-5]", "[1e-5, -3e-5]",
	  "t: profile.types[0].layers[0].forward_s[1]: expected a number >= 0, got -3", NULL },
	{ "\"c0\": 1e-6", "\"co\": 1e-6",
	  "t: profile.types[0].layers[0].forward.co: unknown member", "did you mean \"c0\"?" },
	{ "\"c1\": 4e-7, ", "",
	  "t: profile.types[0].layers[0].forward.c1: missing: expected a number >= 0", NULL },
	{ "{ \"oct\": 1e-4, \"alpha\": 0.5 }", "{ \"oct\": 1e-4, \"alpha\": 1.5 }",
	  "t: profile.types[0].layers[1].alpha: expected a number from 0 to 1, got 1.5", NULL },
	{ "{ \"oct\": 1e-4, \"alpha\": 0.5 }", "{ \"alpha\": 0.5 }",
	  "t: profile.types[0].layers[1].oct: missing: expected a number >= 0", NULL },
	{ "[1, 1.9]", "[1, 0]",
	  "t: profile.types[0].layers[0].scaling[1]: expected a speed > 0, relative to 1 unit, got 0",
	  NULL },
	{ "\"name\": \"cpu\", \"simulated\"", "\"name\": \"k80\", \"simulated\"",
	  "t: profile.types[0].name: the cluster has no type \"k80\"", NULL },
	{ "\"oct\": 1e-4, \"alpha\": 0.5 } ] } ],",
	  "\"oct\": 1e-4, \"alpha\": 0.5 } ] }, { \"name\": \"cpu\", \"layers\": [\n"
	  "{ \"oct\": 1, \"alpha\": 0 }, { \"oct\": 1, \"alpha\": 0 }, { \"oct\": 1, \"alpha\": 0 },\n"
	  "{ \"oct\": 1, \"alpha\": 0 }, { \"oct\": 1, \"alpha\": 0 }, { \"oct\": 1, \"alpha\": 0 },\n"
	  "{ \"oct\": 1, \"alpha\": 0 }, { \"oct\": 1, \"alpha\": 0 } ] } ],",
	  "t: profile.types[1].name: \"cpu\" is the name of types[0] already", NULL },
	{ "\"input_s_per_sample\": 5e-7", "\"input_s_per_sample\": -1",
	  "t: profile.input_s_per_sample: expected a number >= 0, got -1", NULL },
	{ "\"rows_per_s\": 4e6", "\"rows\": 4e6", "t: profile.shard.rows: unknown member", NULL },
	{ "\"step_overhead_s\": 1e-4", "\"step_overhead_s\": true",
	  "t: profile.step_overhead_s: expected a number >= 0, got true", NULL },
	/* plan */
	{ "\"stages\": [\n", "\"stages\": [], \"stage\": [\n", "t: plan.stage: unknown member",
	  "did you mean \"stages\"?" },
	{ "\"last\": 2, \"type\": \"cpu\", \"units\": 2",
	  "\"last\": 1, \"type\": \"cpu\", \"units\": 2",
	  "t: plan.stages[1].first: expected 2: stages cover all layers in order, got 3", NULL },
	{ "{ \"first\": 3, \"last\": 7, \"type\": \"cpu\", \"units\": 1 }",
	  "{ \"first\": 3, \"last\": 6, \"type\": \"cpu\", \"units\": 1 }",
	  "t: plan.stages[1].last: expected 7: the stages cover all 8 layers, got 6", NULL },
	{ "{ \"first\": 3, \"last\": 7, \"type\": \"cpu\", \"units\": 1 }",
	  "{ \"first\": 3, \"last\": 8, \"type\": \"cpu\", \"units\": 1 }",
	  "t: plan.stages[1].last: expected 7: the stages cover all 8 layers, got 8", NULL },
	{ "{ \"first\": 3, \"last\": 7, \"type\": \"cpu\", \"units\": 1 }",
	  "{ \"first\": 3, \"last\": 2, \"type\": \"cpu\", \"units\": 1 }",
	  "t: plan.stages[1].last: expected an integer >= 3, got 2", NULL },
	{ "\"type\": \"cpu\", \"units\": 2", "\"type\": \"k80\", \"units\": 2",
	  "t: plan.stages[0].type: the cluster has no type \"k80\"", NULL },
	{ "\"type\": \"cpu\", \"units\": 2", "\"type\": \"v100\", \"units\": 2",
	  "t: plan.stages[0].type: the profile has no type \"v100\"", NULL },
	{ "\"type\": \"cpu\", \"units\": 2", "\"type\": \"cpu\", \"units\": 0",
	  "t: plan.stages[0].units: expected an integer > 0, got 0", NULL },
	{ "\"method\": \"exact\",", "", "t: plan.method: missing: expected a string", NULL },
	{ "\"method\": \"exact\"", "\"method\": \"\"",
	  "t: plan.method: expected a text of 1 to 65536 bytes, got \"\"", NULL },
	{ "\"objective\": \"cost_per_sample\"", "\"objective\": \"cost\"",
	  "t: plan.objective: expected \"cost_per_sample\" or \"price_per_hour\", got \"cost\"",
	  NULL },
	{ "\"form\": \"executor\"", "\"form\": \"papers\"",
	  "t: plan.form: expected \"paper\" or \"executor\", got \"papers\"",
	  "did you mean \"paper\"?" },
	{ "\"evaluator\": \"rate\"", "\"evaluator\": 1",
	  "t: plan.evaluator: expected \"rate\" or \"step\", got 1", NULL },
	{ "\"bound\": 1.9e-8,", "", "t: plan.gap: a gap needs \"bound\"", NULL },
	{ "\"proven\": true", "\"proven\": \"yes\"",
	  "t: plan.proven: expected true or false, got \"yes\"", NULL },
	{ "\"floor_samples_per_s\": 1000", "\"floor_samples_per_s\": -1",
	  "t: plan.floor_samples_per_s: expected a number >= 0, got -1", NULL },
	{ "\"ps_shards\": 2", "\"ps_shards\": 100000",
	  "t: plan.ps_shards: expected an integer from 0 to 65536, got 100000", NULL },
	/* deployment */
	{ "\"job\": \"small-1\"", "\"job\": \"small/1\"",
	  "t: deployment.job: expected a name (up to 128 of", NULL },
	{ "\"coordinator\": { \"host\": \"a\"", "\"coordinator\": { \"host\": \"b\"",
	  "t: deployment.coordinator.host: expected \"a\", the host of the first shard, got \"b\"",
	  NULL },
	{ "tcp://10.0.0.1:7001", "tcp://10.0.0.1:7000",
	  "t: deployment.shards[0].endpoint: \"tcp://10.0.0.1:7000\" is used twice", NULL },
	{ "tcp://h:7003", "tcp://10.0.0.1:7001",
	  "t: deployment.stages[0].replicas[1].endpoint: \"tcp://10.0.0.1:7001\" is used twice",
	  NULL },
	{ "tcp://h:7003", "tcp://h:0",
	  "t: deployment.stages[0].replicas[1].endpoint: expected \"ipc://PATH\" (at most 107 bytes "
	  "of path) or \"tcp://ADDRESS:PORT\", got \"tcp://h:0\"",
	  NULL },
	{ "tcp://h:7003", "tcp://h:70000", "t: deployment.stages[0].replicas[1].endpoint: expected",
	  NULL },
	{ "tcp://h:7003", "tcp://h:+7", "t: deployment.stages[0].replicas[1].endpoint: expected",
	  NULL },
	{ "tcp://h:7003", "tcp://:7003", "t: deployment.stages[0].replicas[1].endpoint: expected",
	  NULL },
	{ "tcp://h:7003", "tcp://h", "t: deployment.stages[0].replicas[1].endpoint: expected",
	  NULL },
	{ "tcp://h:7003", "udp://h:7003", "t: deployment.stages[0].replicas[1].endpoint: expected",
	  NULL },
	{ "ipc:///tmp/hps/s1", "ipc://",
	  "t: deployment.shards[1].endpoint: expected \"ipc://PATH\"", NULL },
	{ "ipc:///tmp/hps/s1",
	  "ipc:///0123456789012345678901234567890123456789012345678901234567890123456789"
	  "012345678901234567890123456789012345678",
	  "t: deployment.shards[1].endpoint: expected \"ipc://PATH\" (at most 107 bytes", NULL },
	{ "\"b\", \"endpoint\": \"ipc", "\"c\", \"endpoint\": \"ipc",
	  "t: deployment.shards[1].host: the cluster has no host \"c\"", NULL },
	{ "\"b\", \"endpoint\": \"tcp://h", "\"c\", \"endpoint\": \"tcp://h",
	  "t: deployment.stages[0].replicas[1].host: the cluster has no host \"c\"", NULL },
	{ "\"type\": \"cpu\", \"dense_sync\": \"ps\"", "\"type\": \"k80\", \"dense_sync\": \"ps\"",
	  "t: deployment.stages[0].type: the cluster has no type \"k80\"", NULL },
	{ "\"dense_sync\": \"ps\"", "\"dense_sync\": \"pss\"",
	  "t: deployment.stages[0].dense_sync: expected \"ps\" or \"ring\", got \"pss\"", NULL },
	{ "\"last\": 2, \"type\": \"cpu\", \"dense_sync\"",
	  "\"last\": 3, \"type\": \"cpu\", \"dense_sync\"",
	  "t: deployment.stages[1].first: expected 4: stages cover all layers in order, got 3",
	  NULL },
	{ "\"last\": 7, \"type\": \"cpu\", \"dense_sync\"",
	  "\"last\": 6, \"type\": \"cpu\", \"dense_sync\"",
	  "t: deployment.stages[1].last: expected 7: the stages cover all 8 layers, got 6", NULL },
	{ "\"sync\": \"bsp\"", "\"sync\": \"ssp:2\"",
	  "t: deployment.sync: ssp:2 is not built yet; bsp and asp are", NULL },
	{ "  \"batch\": 64, \"micro_batches\"", "  \"micro_batches\"",
	  "t: deployment.batch: missing: expected an integer > 0", NULL },
	{ "\"coordinator\": {", "\"coordinator\": 1, \"c\": {", "t: deployment.c: unknown member",
	  NULL },
};

static void test_refusals(void **state)
{
	char *document = job_case_document();

	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		const struct refusal *r = &refusals[i];
		char *text = job_case_patch(document, r->find, r->replace);
		struct hps_err err = { 0 };
		struct hps_job job;
		char told[1024];

		if (read_text(text, ALL, ALL, &job, &err) != HPS_BAD_INPUT)
			fail_msg("not refused: %s", r->replace);
		snprintf(told, sizeof(told), "%s: %s", err.where, err.msg);
		if (strncmp(told, r->told, strlen(r->told)))
			fail_msg("%s\nexpected %s\ngot      %s", r->replace, r->told, told);
		if (r->hint && !strstr(err.hint, r->hint))
			fail_msg("%s: hint \"%s\" lacks \"%s\"", r->replace, err.hint, r->hint);
		assert_null(job.doc);
		assert_false(job.has_model);
		free(text);
	}
	free(document);
}

/* A profile, plan or deployment of another model says so, whatever the model changed in. */
static void test_another_model(void **state)
{
	char *document = job_case_document(), *text;
	struct hps_err err = { 0 };
	struct hps_job job;
	uint64_t ours, theirs;
	char told[512], a[HPS_DIGEST_LEN], b[HPS_DIGEST_LEN];
	static const struct {
		const char *key;
		unsigned section;
	} tied[] = { { "profile", HPS_PROFILE },
		     { "plan", HPS_PLAN },
		     { "deployment", HPS_DEPLOYMENT } };

	read_all(document, &job);
	theirs = job.model.digest;
	hps_job_release(&job);
	text = job_case_patch(document, "tanh", "relu");
	assert_int_equal(read_text(text, HPS_MODEL, HPS_MODEL, &job, &err), HPS_OK);
	ours = job.model.digest;
	hps_job_release(&job);
	hps_digest_text(ours, a);
	hps_digest_text(theirs, b);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(read_text(text, HPS_MODEL, tied[i].section, &job, &err),
				 HPS_BAD_INPUT);
		snprintf(told, sizeof(told), "t: %s.digest", tied[i].key);
		assert_string_equal(err.where, told);
		snprintf(told, sizeof(told),
			 "%s is for another model: digest %s, the model here has %s", tied[i].key,
			 b, a);
		assert_string_equal(err.msg, told);
		assert_non_null(strstr(err.hint, "hps-profile"));
	}
	free(text);
	free(document);
}

/* Without the model, a plan still has to fit its profile. */
static void test_plan_of_another_profile(void **state)
{
	char *document = job_case_document();
	static const char before[] = "\"profile\": { \"digest\": \"";
	char *at = strstr(document, before);
	struct hps_err err = { 0 };
	struct hps_job job;

	assert_non_null(at);
	memset(at + strlen(before), '0', HPS_DIGEST_LEN - 1);
	assert_int_equal(read_text(document, 0, HPS_PROFILE | HPS_PLAN, &job, &err), HPS_BAD_INPUT);
	assert_string_equal(err.where, "t: plan.digest");
	assert_string_equal(err.msg, "plan is for another profile's model");
	free(document);
}

/* A profile of the right digest, but with a layer less. */
static void test_profile_layers(void **state)
{
	static const char size[] = "{ \"name\": \"pos\" }, ",
			  time[] = "{ \"oct\": 0, \"alpha\": 1 }, ";
	char *document = job_case_document();
	char *one = job_case_patch(document, size, "");
	char *both = job_case_patch(one, time, "");
	struct hps_err err = { 0 };
	struct hps_job job;

	assert_int_equal(read_text(both, 0, ALL, &job, &err), HPS_BAD_INPUT);
	assert_string_equal(err.where, "t: profile.layers");
	assert_string_equal(err.msg, "7 layers, the model has 8");
	free(document);
	free(one);
	free(both);
}

/* Sections that are not trusted are not even looked at, but stay in the document. */
static void test_trust(void **state)
{
	char *document = job_case_document();
	char *text = job_case_patch(document, "\"method\": \"exact\"", "\"mehtod\": 7");
	struct hps_err err = { 0 };
	struct hps_job job;
	struct hps_at root, plan, method;

	assert_int_equal(read_text(text, 0, ALL, &job, &err), HPS_BAD_INPUT);
	assert_int_equal(read_text(text, HPS_MODEL | HPS_PLAN, 0, &job, &err), HPS_BAD_INPUT);
	if (read_text(text, HPS_MODEL, HPS_CLUSTER | HPS_PROFILE, &job, &err))
		fail_msg("%s: %s", err.where, err.msg);
	assert_true(job.has_model && job.has_cluster && job.has_profile);
	assert_false(job.has_plan || job.has_deployment);
	root = hps_at_root(job.doc, "t");
	plan = hps_at_member(&root, "plan");
	method = hps_at_member(&plan, "mehtod");
	assert_false(hps_at_absent(&method));
	hps_job_release(&job);
	free(text);
	free(document);
}

static bool there(const struct hps_job *job, const char *key)
{
	struct hps_at root = hps_at_root(job->doc, "t");
	struct hps_at member = hps_at_member(&root, key);

	return !hps_at_absent(&member);
}

/* A new section takes the old one's place and what was made from it goes; sections that
 * nobody knows stay. */
static void test_update(void **state)
{
	char *document = job_case_document();
	struct hps_err err = { 0 };
	struct hps_job job, again;

	read_all(document, &job);
	job.deployment.epochs = 9;
	assert_int_equal(hps_job_update(&job, HPS_DEPLOYMENT, &err), HPS_OK);
	assert_true(job.has_plan && job.has_deployment && there(&job, "plan"));
	assert_int_equal(hps_job_update(&job, HPS_PROFILE, &err), HPS_OK);
	assert_true(job.has_profile && there(&job, "profile"));
	assert_false(job.has_plan || there(&job, "plan") || there(&job, "deployment"));
	hps_job_release(&job);
	read_all(document, &job);
	job.plan.seed = 12;
	assert_int_equal(hps_job_update(&job, HPS_PLAN, &err), HPS_OK);
	assert_true(job.has_plan && there(&job, "plan") && there(&job, "profile"));
	assert_false(job.has_deployment || there(&job, "deployment"));
	assert_int_equal(
		hps_job_parse(job_case_again(job.doc, 0), "t", HPS_PLAN, ALL, &again, &err),
		HPS_OK);
	assert_int_equal(again.plan.seed, 12);
	hps_job_release(&again);
	assert_int_equal(hps_job_update(&job, HPS_MODEL, &err), HPS_OK);
	assert_true(job.has_model && job.has_cluster && there(&job, "cluster"));
	assert_false(job.has_profile || there(&job, "profile"));
	assert_false(job.has_plan || there(&job, "plan"));
	assert_true(there(&job, "notes") && there(&job, "hps"));
	hps_job_release(&job);
	free(document);
}

/* From nothing: what hps-profile does with a model and a cluster. */
static void test_grow(void **state)
{
	struct hps_doc *d = job_case_parse(job_case_model);
	struct hps_at at = hps_at_root(d, "t");
	struct hps_job job = { 0 }, again;
	struct hps_err err = { 0 };

	assert_int_equal(hps_model_read(&at, &job.model, &err), HPS_OK);
	assert_int_equal(hps_job_update(&job, HPS_MODEL, &err), HPS_OK);
	assert_int_equal(hps_cluster_here(3, &job.cluster, &err), HPS_OK);
	assert_int_equal(hps_job_update(&job, HPS_CLUSTER, &err), HPS_OK);
	if (hps_job_parse(job_case_again(job.doc, 1), "t", HPS_MODEL | HPS_CLUSTER, ALL, &again,
			  &err))
		fail_msg("%s: %s", err.where, err.msg);
	job_case_same_model(&job.model, &again.model);
	job_case_same_cluster(&job.cluster, &again.cluster);
	assert_string_equal(again.cluster.host->name, "localhost");
	assert_int_equal(again.cluster.host->units[0], 3);
	assert_int_equal(again.cluster.type->limit, 3);
	assert_true(again.cluster.type->price == 0.04 && again.cluster.ps_price == 0.04);
	hps_job_release(&job);
	hps_job_release(&again);
	hps_doc_free(d);
}

/* The same through both forms, and the same again after writing. */
static void test_forms(void **state)
{
	char *document = job_case_document();
	struct hps_err err = { 0 };
	struct hps_job job, again;

	read_all(document, &job);
	for (int msgpack = 0; msgpack < 2; msgpack++) {
		if (hps_job_parse(job_case_again(job.doc, msgpack), "t", ALL, ALL, &again, &err))
			fail_msg("%s: %s", err.where, err.msg);
		job_case_same_model(&job.model, &again.model);
		job_case_same_cluster(&job.cluster, &again.cluster);
		job_case_same_profile(&job.profile, &again.profile);
		job_case_same_plan(&job.plan, &again.plan);
		job_case_same_deployment(&job.deployment, &again.deployment);
		assert_true(hps_doc_equal(job.doc, again.doc));
		assert_true(hps_deployment_id(&job.deployment) ==
			    hps_deployment_id(&again.deployment));
		hps_job_release(&again);
	}
	hps_job_release(&job);
	free(document);
}

/* Peers of one job agree on its id, and any difference makes another. */
static void test_deployment_id(void **state)
{
	static const char *const edits[][2] = {
		{ "\"job\": \"small-1\"", "\"job\": \"small-2\"" },
		{ "10.0.0.1:7000", "10.0.0.1:7009" },
		{ "10.0.0.1:7001", "10.0.0.1:7009" },
		{ "10.0.0.1:7002", "10.0.0.1:7009" },
		{ "\"b\", \"endpoint\": \"tcp://h", "\"a\", \"endpoint\": \"tcp://h" },
		{ "\"dense_sync\": \"ps\"", "\"dense_sync\": \"ring\"" },
		{ "\"epochs\": 3, \"sync\": \"bsp\"", "\"epochs\": 4, \"sync\": \"bsp\"" },
		{ "\"sync\": \"bsp\", \"seed\": 7", "\"sync\": \"bsp\", \"seed\": 8" },
		{ "\"sync\": \"bsp\", \"seed\": 7", "\"sync\": \"asp\", \"seed\": 7" },
		{ "\"simulated\": true,\n  \"usage\"", "\"simulated\": false,\n  \"usage\"" },
	};
	char *document = job_case_document();
	struct hps_job job;
	uint64_t id;

	read_all(document, &job);
	id = hps_deployment_id(&job.deployment);
	hps_job_release(&job);
	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		char *text = job_case_patch(document, edits[i][0], edits[i][1]);

		read_all(text, &job);
		if (hps_deployment_id(&job.deployment) == id)
			fail_msg("%s: the same id", edits[i][1]);
		hps_job_release(&job);
		free(text);
	}
	free(document);
}

/* --- a model or a cluster from a file --- */

static void put(const char *dir, const char *name, const char *text, char *path, size_t size)
{
	struct hps_err err = { 0 };

	snprintf(path, size, "%s/%s", dir, name);
	if (hps_file_write(path, text, strlen(text), 0600, &err))
		fail_msg("%s: %s", err.where, err.msg);
}

static void test_load(void **state)
{
	char dir[] = "/tmp/hps-job-XXXXXX", model[64], cluster[64], whole[64], absent[64],
	     told[128];
	char *document = job_case_document(), *no_model, *newer;
	struct hps_err err = { 0 };
	struct hps_model a, b;
	struct hps_cluster c, d;

	assert_non_null(mkdtemp(dir));
	put(dir, "model.json", job_case_model, model, sizeof(model));
	put(dir, "cluster.json", job_case_cluster, cluster, sizeof(cluster));
	put(dir, "job.json", document, whole, sizeof(whole));
	no_model = job_case_patch(document, "\"model\"", "\"mold\"");
	put(dir, "absent.json", no_model, absent, sizeof(absent));

	assert_int_equal(hps_model_load(model, &a, &err), HPS_OK);
	assert_int_equal(hps_model_load(whole, &b, &err), HPS_OK);
	job_case_same_model(&a, &b);
	hps_model_release(&a);
	hps_model_release(&b);
	assert_int_equal(hps_cluster_load(cluster, &c, &err), HPS_OK);
	assert_int_equal(hps_cluster_load(whole, &d, &err), HPS_OK);
	job_case_same_cluster(&c, &d);
	hps_cluster_release(&c);
	hps_cluster_release(&d);

	/* One for the other, none at all, a model where a job document is wanted. */
	assert_int_equal(hps_model_load(cluster, &a, &err), HPS_BAD_INPUT);
	assert_string_equal(err.where, cluster);
	assert_string_equal(err.msg, "expected a model, this is a cluster");
	assert_int_equal(hps_cluster_load(model, &c, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "expected a cluster, this is a model");
	assert_int_equal(hps_model_load(absent, &a, &err), HPS_BAD_INPUT);
	assert_string_equal(err.where, absent);
	assert_string_equal(err.msg, "a job document without section \"model\"");
	snprintf(told, sizeof(told), "%s/none", dir);
	assert_int_equal(hps_model_load(told, &a, &err), HPS_IO);
	assert_int_equal(hps_cluster_load(told, &c, &err), HPS_IO);
	newer = job_case_patch(document, "\"hps\": 1", "\"hps\": 3");
	put(dir, "absent.json", newer, absent, sizeof(absent));
	assert_int_equal(hps_model_load(absent, &a, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "made by a newer hps (document version 3, this one reads 1)");
	free(newer);
	{
		struct hps_job job;

		assert_int_equal(hps_job_read(model, 0, ALL, &job, &err), HPS_BAD_INPUT);
		assert_string_equal(err.msg, "not a job document: no member \"hps\"");
		assert_non_null(strstr(err.hint, "this is a model; hps-profile"));
		assert_int_equal(hps_job_read(cluster, 0, ALL, &job, &err), HPS_BAD_INPUT);
		assert_non_null(strstr(err.hint, "this is a cluster; hps-profile"));
		assert_int_equal(hps_job_read(told, 0, ALL, &job, &err), HPS_IO);
		assert_int_equal(hps_job_read(whole, ALL, ALL, &job, &err), HPS_OK);
		hps_job_release(&job);
	}
	unlink(model);
	unlink(cluster);
	unlink(whole);
	unlink(absent);
	rmdir(dir);
	free(no_model);
	free(document);
}

static void test_testdata_clusters(void **state)
{
	static const struct {
		const char *file;
		uint32_t types, hosts;
	} clusters[] = { { "here", 1, 1 }, { "two-types", 2, 3 }, { "four-types", 4, 6 } };

	for (size_t i = 0; i < sizeof(clusters) / sizeof(*clusters); i++) {
		struct hps_err err = { 0 };
		struct hps_cluster c;
		char name[64], path[512];

		snprintf(name, sizeof(name), "clusters/%s.json", clusters[i].file);
		job_case_path(name, path, sizeof(path));
		if (hps_cluster_load(path, &c, &err))
			fail_msg("%s: %s", err.where, err.msg);
		assert_int_equal(c.n_types, clusters[i].types);
		assert_int_equal(c.n_hosts, clusters[i].hosts);
		assert_null(c.type[0].like);
		for (uint32_t t = 1; t < c.n_types; t++)
			assert_string_equal(c.type[t].like, "cpu");
		hps_cluster_release(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_another_model),
		cmocka_unit_test(test_plan_of_another_profile),
		cmocka_unit_test(test_profile_layers),
		cmocka_unit_test(test_trust),
		cmocka_unit_test(test_update),
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_deployment_id),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_testdata_clusters),
	};

	return cmocka_run_group_tests_name("job document", tests, NULL, NULL);
}
