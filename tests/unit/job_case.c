#include "job_case.h"
#include "cm.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char job_case_model[] =
	"{ \"name\": \"small\", \"description\": \"of every op one\",\n"
	"  \"inputs\": { \"slots\": 5, \"dense\": 3 },\n"
	"  \"preprocess\": { \"dense\": { \"transform\": \"signed_log\", \"scale\": 0.5,\n"
	"                                \"missing\": -0.25 } },\n"
	"  \"tables\": [ { \"name\": \"big\", \"dim\": 4, \"rows\": 50, \"max_rows\": 40,\n"
	"                  \"init\": { \"kind\": \"uniform\", \"scale\": 0.02 },\n"
	"                  \"optimizer\": { \"kind\": \"adagrad\", \"lr\": 0.1 } },\n"
	"                { \"name\": \"zero\", \"dim\": 3, \"init\": { \"kind\": \"zero\" },\n"
	"                  \"optimizer\": { \"kind\": \"sgd\", \"lr\": 0.5 } } ],\n"
	"  \"layers\": [\n"
	"    { \"name\": \"emb\", \"op\": \"embedding\", \"table\": \"big\", \"slots\": [0, 3],\n"
	"      \"pooling\": \"concat\" },\n"
	"    { \"name\": \"sum\", \"op\": \"embedding\", \"table\": \"zero\", \"slots\": [4, 1, 2],\n"
	"      \"pooling\": \"sum\" },\n"
	"    { \"name\": \"neg\", \"op\": \"negatives\", \"table\": \"big\", \"count\": 6,\n"
	"      \"pooling\": \"mean\" },\n"
	"    { \"name\": \"in\", \"op\": \"concat\", \"inputs\": [\"emb\", \"dense\", \"sum\"] },\n"
	"    { \"name\": \"part\", \"op\": \"slice\", \"inputs\": [\"in\"], \"begin\": 2,\n"
	"      \"size\": 12 },\n"
	"    { \"name\": \"fc\", \"op\": \"dense\", \"inputs\": [\"part\"], \"units\": 4,\n"
	"      \"bias\": false, \"activation\": \"tanh\" },\n"
	"    { \"name\": \"pos\", \"op\": \"dense\", \"inputs\": [\"fc\"], \"units\": 1 },\n"
	"    { \"name\": \"cos\", \"op\": \"cosine\", \"inputs\": [\"neg\", \"fc\"] } ],\n"
	"  \"loss\": { \"kind\": \"hinge\", \"inputs\": [\"pos\", \"cos\"], \"margin\": 0.8 },\n"
	"  \"train\": { \"batch\": 64, \"micro_batches\": 2, \"epochs\": 3, \"sync\": \"asp\",\n"
	"               \"optimizer\": { \"kind\": \"adam\", \"lr\": 0.002, \"beta1\": 0.8 },\n"
	"               \"seed\": 7 } }\n";

const char job_case_cluster[] =
	"{ \"types\": [ { \"name\": \"cpu\", \"device\": \"cpu\", \"price\": 0.04, \"limit\": 8,\n"
	"                 \"memory\": 4e9, \"link\": { \"bandwidth\": 1.25e9, \"latency\": 5e-5 } },\n"
	"               { \"name\": \"v100\", \"device\": \"cuda\", \"price\": 2.42, \"like\": \"cpu\",\n"
	"                 \"speed\": 12, \"op_speed\": { \"dense\": 60 } } ],\n"
	"  \"hosts\": [ { \"name\": \"a\", \"address\": \"10.0.0.1\", \"memory\": 2e10,\n"
	"                 \"units\": { \"cpu\": 4 }, \"cores\": 4, \"ps_cores\": 2 },\n"
	"               { \"name\": \"b\", \"units\": { \"cpu\": 3, \"v100\": 1 } } ],\n"
	"  \"network\": { \"bandwidth\": 1e9, \"latency\": 1e-4 }, \"ps_price\": 0.05 }\n";

static const char profile[] =
	"{ \"digest\": \"DIGEST\", \"batch\": 64, \"batches\": [16, 64],\n"
	"  \"layers\": [\n"
	"    { \"name\": \"emb\", \"sparse_bytes\": 32, \"sparse_keys\": 1.5, \"output_bytes\": 32 },\n"
	"    { \"name\": \"sum\" }, { \"name\": \"neg\" }, { \"name\": \"in\" }, { \"name\": \"part\" },\n"
	"    { \"name\": \"fc\", \"param_bytes\": 192, \"flops\": 112, \"cut_forward_bytes\": 28,\n"
	"      \"cut_backward_bytes\": 16 },\n"
	"    { \"name\": \"pos\" }, { \"name\": \"cos\" } ],\n"
	"  \"types\": [ { \"name\": \"cpu\", \"simulated\": false, \"layers\": [\n"
	"      { \"name\": \"emb\", \"forward_s\": [1e-5, 3e-5], \"backward_s\": [2e-5, 5e-5],\n"
	"        \"forward\": { \"c0\": 1e-6, \"c1\": 4e-7, \"error\": 0.02 },\n"
	"        \"backward\": { \"c0\": 1e-6, \"c1\": 6e-7 }, \"scaling\": [1, 1.9] },\n"
	"      { \"oct\": 1e-4, \"alpha\": 0.5 }, { \"oct\": 1e-4, \"alpha\": 0.5 },\n"
	"      { \"oct\": 0, \"alpha\": 1 }, { \"oct\": 1e-4, \"alpha\": 0.5 },\n"
	"      { \"oct\": 1e-4, \"alpha\": 0.5 }, { \"oct\": 1e-4, \"alpha\": 0.5 },\n"
	"      { \"oct\": 1e-4, \"alpha\": 0.5 } ] } ],\n"
	"  \"link\": { \"bandwidth\": 2e9, \"latency\": 2e-5, \"measured\": true },\n"
	"  \"shard\": { \"rows_per_s\": 4e6, \"bytes_per_s\": 2e9, \"measured\": true },\n"
	"  \"step_overhead_s\": 1e-4, \"input_s_per_sample\": 5e-7 }";

static const char plan[] =
	"{ \"digest\": \"DIGEST\", \"stages\": [\n"
	"    { \"first\": 0, \"last\": 2, \"type\": \"cpu\", \"units\": 2 },\n"
	"    { \"first\": 3, \"last\": 7, \"type\": \"cpu\", \"units\": 1 } ],\n"
	"  \"ps_shards\": 2, \"floor_samples_per_s\": 1000, \"method\": \"exact\",\n"
	"  \"objective\": \"cost_per_sample\", \"form\": \"executor\", \"evaluator\": \"rate\",\n"
	"  \"seed\": 3, \"evaluations\": 17, \"throughput_samples_per_s\": 1200.5,\n"
	"  \"cost_per_sample\": 2e-8, \"price_per_hour\": 0.12, \"bound\": 1.9e-8,\n"
	"  \"gap\": 0.05, \"proven\": true, \"simulated\": false, \"interrupted\": false }";

static const char deployment[] =
	"{ \"digest\": \"DIGEST\", \"job\": \"small-1\",\n"
	"  \"coordinator\": { \"host\": \"a\", \"endpoint\": \"tcp://10.0.0.1:7000\" },\n"
	"  \"shards\": [ { \"host\": \"a\", \"endpoint\": \"tcp://10.0.0.1:7001\" },\n"
	"                { \"host\": \"b\", \"endpoint\": \"ipc:///tmp/hps/s1\" } ],\n"
	"  \"stages\": [ { \"first\": 0, \"last\": 2, \"type\": \"cpu\", \"dense_sync\": \"ps\",\n"
	"                  \"replicas\": [ { \"host\": \"a\", \"endpoint\": \"tcp://10.0.0.1:7002\" },\n"
	"                                  { \"host\": \"b\", \"endpoint\": \"tcp://h:7003\" } ] },\n"
	"                { \"first\": 3, \"last\": 7, \"type\": \"cpu\", \"dense_sync\": \"ring\",\n"
	"                  \"replicas\": [ { \"host\": \"b\",\n"
	"                                    \"endpoint\": \"tcp://[::1]:7004\" } ] } ],\n"
	"  \"batch\": 64, \"micro_batches\": 2, \"epochs\": 3, \"sync\": \"bsp\", \"seed\": 7,\n"
	"  \"predicted_samples_per_s\": 1200.5, \"price_per_hour\": 0.2, \"simulated\": true,\n"
	"  \"usage\": { \"method\": \"exact\", \"utilisation\": 0.5,\n"
	"    \"stages\": [ { \"slack_s\": 1e-7, \"utilisation\": 0.9 }, { } ],\n"
	"    \"types\": [ { \"name\": \"cpu\", \"units\": 3, \"utilisation\": 0.75 } ],\n"
	"    \"hosts\": [ { \"name\": \"a\", \"replicas\": 1, \"needs_bytes\": 5e8 } ] } }";

char *job_case_patch(const char *text, const char *find, const char *replace)
{
	const char *at = find ? strstr(text, find) : text;
	char *out = malloc(strlen(text) + (find ? strlen(replace) : 0) + 1);

	if (!at || !out) {
		fail_msg("\"%s\" is not in the document", find);
		abort();
	}
	memcpy(out, text, (size_t)(at - text));
	out[at - text] = '\0';
	if (find) {
		strcat(out, replace);
		at += strlen(find);
	}
	strcat(out, at);
	return out;
}

struct hps_doc *job_case_parse(const char *text)
{
	struct hps_err err = { 0 };
	struct hps_doc *d = NULL;

	if (hps_doc_parse(text, strlen(text), "t", &d, &err))
		fail_msg("%s: %s\n%s", err.where, err.msg, text);
	return d;
}

char *job_case_document(void)
{
	struct hps_doc *d = job_case_parse(job_case_model);
	struct hps_at at = hps_at_root(d, "t");
	struct hps_buf b = HPS_BUF_INIT;
	char digest[HPS_DIGEST_LEN], *text, *next;
	struct hps_model m;

	assert_int_equal(hps_model_read(&at, &m, NULL), HPS_OK);
	hps_digest_text(m.digest, digest);
	hps_model_release(&m);
	hps_doc_free(d);
	assert_int_equal(hps_buf_printf(&b, NULL,
					"{ \"hps\": 1, \"model\": %s, \"cluster\": %s,\n"
					"\"profile\": %s,\n\"plan\": %s,\n\"deployment\": %s,\n"
					"\"notes\": { \"by\": \"hand\" } }\n",
					job_case_model, job_case_cluster, profile, plan,
					deployment),
			 HPS_OK);
	text = hps_buf_take(&b);
	while (strstr(text, "DIGEST")) {
		next = job_case_patch(text, "DIGEST", digest);
		free(text);
		text = next;
	}
	return text;
}

struct hps_doc *job_case_again(const struct hps_doc *d, int msgpack)
{
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_doc *out = NULL;
	struct hps_err err = { 0 };

	assert_non_null(d);
	if (msgpack)
		assert_int_equal(hps_doc_to_msgpack(d, &b, &err), HPS_OK);
	else
		assert_int_equal(hps_doc_to_json(d, &b, &err), HPS_OK);
	if (hps_doc_parse(b.data, b.len, "t", &out, &err))
		fail_msg("%s: %s", err.where, err.msg);
	hps_buf_release(&b);
	return out;
}

void job_case_path(const char *name, char *path, size_t size)
{
	const char *root = getenv("HPS_ROOT");

	snprintf(path, size, "%s/testdata/%s", root ? root : ".", name);
}

/* --- equality, field by field --- */

#define SAME(field)                                                                                \
	do {                                                                                       \
		if (a->field != b->field)                                                          \
			fail_msg(#field " differs");                                               \
	} while (0)
#define SAME_TEXT(field)                                                                           \
	do {                                                                                       \
		if (!a->field != !b->field || (a->field && strcmp(a->field, b->field)))            \
			fail_msg(#field " differs: %s, %s", a->field, b->field);                   \
	} while (0)
#define SAME_ARRAY(field, n)                                                                       \
	do {                                                                                       \
		if ((n) && memcmp(a->field, b->field, (n) * sizeof(*a->field)))                    \
			fail_msg(#field " differs");                                               \
	} while (0)

static void same_optimizer(const struct hps_optimizer *a, const struct hps_optimizer *b)
{
	SAME(kind);
	SAME(lr);
	SAME(accumulator);
	SAME(eps);
	SAME(beta1);
	SAME(beta2);
}

static void same_table(const struct hps_table_spec *a, const struct hps_table_spec *b)
{
	SAME_TEXT(name);
	SAME(dim);
	SAME(rows);
	SAME(init);
	SAME(init_scale);
	same_optimizer(&a->optimizer, &b->optimizer);
	SAME(max_rows);
	SAME(max_bytes);
}

static void same_layer(const struct hps_layer *a, const struct hps_layer *b)
{
	SAME_TEXT(name);
	SAME(op);
	SAME(n_inputs);
	SAME_ARRAY(input, a->n_inputs);
	SAME(table);
	SAME(n_slots);
	SAME_ARRAY(slot, a->n_slots);
	SAME(pooling);
	SAME(count);
	SAME(begin);
	SAME(size);
	SAME(units);
	SAME(bias);
	SAME(act);
	SAME(cols);
}

void job_case_same_model(const struct hps_model *a, const struct hps_model *b)
{
	SAME_TEXT(name);
	SAME_TEXT(description);
	SAME(slots);
	SAME(dense);
	SAME(preprocess.transform);
	SAME(preprocess.scale);
	SAME(preprocess.missing);
	SAME(n_tables);
	for (uint32_t i = 0; i < a->n_tables; i++)
		same_table(&a->table[i], &b->table[i]);
	SAME(n_layers);
	for (uint32_t i = 0; i < a->n_layers; i++)
		same_layer(&a->layer[i], &b->layer[i]);
	SAME(loss.kind);
	SAME(loss.n_inputs);
	for (uint32_t i = 0; i < 3; i++)
		SAME(loss.input[i]);
	SAME(loss.margin);
	SAME(train.batch);
	SAME(train.micro_batches);
	SAME(train.epochs);
	SAME(train.sync);
	same_optimizer(&a->train.optimizer, &b->train.optimizer);
	SAME(train.seed);
	SAME(digest);
}

static void same_link(const struct hps_link *a, const struct hps_link *b)
{
	SAME(bandwidth);
	SAME(latency);
}

void job_case_same_cluster(const struct hps_cluster *x, const struct hps_cluster *y)
{
	assert_int_equal(x->n_types, y->n_types);
	for (uint32_t i = 0; i < x->n_types; i++) {
		const struct hps_type *a = &x->type[i], *b = &y->type[i];

		SAME_TEXT(name);
		SAME(device);
		SAME(price);
		SAME(limit);
		SAME(memory);
		same_link(&a->link, &b->link);
		SAME_TEXT(like);
		SAME(speed);
		for (size_t k = 0; k < 8; k++)
			SAME(op_speed[k]);
	}
	assert_int_equal(x->n_hosts, y->n_hosts);
	for (uint32_t i = 0; i < x->n_hosts; i++) {
		const struct hps_host *a = &x->host[i], *b = &y->host[i];

		SAME_TEXT(name);
		SAME_TEXT(address);
		SAME(memory);
		SAME_ARRAY(units, x->n_types);
		SAME(cores);
		SAME(ps_cores);
	}
	same_link(&x->network, &y->network);
	assert_true(x->ps_price == y->ps_price);
}

static void same_fit(const struct hps_fit *a, const struct hps_fit *b)
{
	SAME(c0);
	SAME(c1);
	SAME(error);
}

static void same_time(const struct hps_layer_time *a, const struct hps_layer_time *b,
		      uint32_t n_batches)
{
	assert_int_equal(!a->forward_s, !b->forward_s);
	assert_int_equal(!a->backward_s, !b->backward_s);
	SAME_ARRAY(forward_s, a->forward_s ? n_batches : 0);
	SAME_ARRAY(backward_s, a->backward_s ? n_batches : 0);
	same_fit(&a->forward, &b->forward);
	same_fit(&a->backward, &b->backward);
	SAME(oct);
	SAME(alpha);
	SAME(n_scaling);
	SAME_ARRAY(scaling, a->n_scaling);
}

static void same_size(const struct hps_layer_size *a, const struct hps_layer_size *b)
{
	SAME_TEXT(name);
	SAME(param_bytes);
	SAME(output_bytes);
	SAME(sparse_bytes);
	SAME(sparse_keys);
	SAME(flops);
}

void job_case_same_profile(const struct hps_profile *a, const struct hps_profile *b)
{
	SAME(digest);
	SAME_TEXT(source);
	SAME(batch);
	SAME(n_batches);
	SAME_ARRAY(batches, a->n_batches);
	SAME(n_layers);
	for (uint32_t l = 0; l < a->n_layers; l++)
		same_size(&a->size[l], &b->size[l]);
	SAME_ARRAY(cut_forward_bytes, a->n_layers);
	SAME_ARRAY(cut_backward_bytes, a->n_layers);
	SAME(n_types);
	for (uint32_t t = 0; t < a->n_types; t++) {
		SAME_TEXT(type[t]);
		SAME(simulated[t]);
		for (uint32_t l = 0; l < a->n_layers; l++)
			same_time(&a->time[t * a->n_layers + l], &b->time[t * a->n_layers + l],
				  a->n_batches);
	}
	same_link(&a->link, &b->link);
	SAME(link_measured);
	SAME(shard.rows_per_s);
	SAME(shard.bytes_per_s);
	SAME(shard.measured);
	SAME(step_overhead_s);
	SAME(input_s_per_sample);
}

void job_case_same_plan(const struct hps_plan *a, const struct hps_plan *b)
{
	SAME(digest);
	SAME(n_stages);
	for (uint32_t i = 0; i < a->n_stages; i++) {
		SAME(stage[i].first);
		SAME(stage[i].last);
		SAME_TEXT(stage[i].type);
		SAME(stage[i].units);
	}
	SAME(ps_shards);
	SAME(floor_samples_per_s);
	SAME_TEXT(method);
	SAME_TEXT(objective);
	SAME_TEXT(form);
	SAME_TEXT(evaluator);
	SAME(seed);
	SAME(evaluations);
	SAME(throughput_samples_per_s);
	SAME(cost_per_sample);
	SAME(price_per_hour);
	SAME(bound);
	SAME(gap);
	SAME(has_bound);
	SAME(proven);
	SAME(simulated);
	SAME(interrupted);
}

static void same_stage(const struct hps_deployed_stage *a, const struct hps_deployed_stage *b)
{
	SAME(first);
	SAME(last);
	SAME_TEXT(type);
	SAME(dense_sync);
	SAME(n_replicas);
	for (uint32_t i = 0; i < a->n_replicas; i++) {
		SAME_TEXT(replica[i].host);
		SAME_TEXT(replica[i].endpoint);
	}
}

static void same_usage(const struct hps_usage *a, const struct hps_usage *b)
{
	if (!a->method && !b->method)
		return;
	SAME_TEXT(method);
	SAME(floor_samples_per_s);
	SAME(utilisation);
	SAME(ps_utilisation);
	SAME(cost_per_sample);
	SAME(samples);
	SAME(hours);
	SAME(dollars);
	SAME(n_stages);
	SAME(n_types);
	SAME(n_hosts);
	for (uint32_t i = 0; i < a->n_stages; i++) {
		SAME(stage[i].slack_s);
		SAME(stage[i].utilisation);
	}
	for (uint32_t i = 0; i < a->n_types; i++) {
		SAME_TEXT(type[i].name);
		SAME(type[i].units);
		SAME(type[i].utilisation);
		SAME(type[i].price_per_hour);
	}
	for (uint32_t i = 0; i < a->n_hosts; i++) {
		SAME_TEXT(host[i].name);
		SAME(host[i].replicas);
		SAME(host[i].shards);
		SAME(host[i].utilisation);
		SAME(host[i].needs_bytes);
		SAME(host[i].has_bytes);
	}
}

void job_case_same_deployment(const struct hps_deployment *a, const struct hps_deployment *b)
{
	SAME(digest);
	SAME_TEXT(job);
	SAME_TEXT(coordinator.host);
	SAME_TEXT(coordinator.endpoint);
	SAME(n_shards);
	for (uint32_t i = 0; i < a->n_shards; i++) {
		SAME_TEXT(shard[i].host);
		SAME_TEXT(shard[i].endpoint);
	}
	SAME(n_stages);
	for (uint32_t i = 0; i < a->n_stages; i++)
		same_stage(&a->stage[i], &b->stage[i]);
	SAME(batch);
	SAME(micro_batches);
	SAME(epochs);
	SAME(sync);
	SAME(seed);
	SAME(predicted_samples_per_s);
	SAME(price_per_hour);
	SAME(simulated);
	SAME(has_usage);
	same_usage(&a->usage, &b->usage);
}
