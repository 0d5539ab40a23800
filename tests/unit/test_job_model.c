/* The model section: what it accepts and fills in, and every refusal with its place. */
#include "cm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "job_case.h"

static enum hps_status read_text(const char *text, struct hps_model *m, struct hps_err *err)
{
	struct hps_doc *d = job_case_parse(text);
	struct hps_at at = hps_at_root(d, "t");
	enum hps_status rc = hps_model_read(&at, m, err);

	hps_doc_free(d);
	return rc;
}

static void test_everything(void **state)
{
	struct hps_err err = { 0 };
	struct hps_model m;

	if (read_text(job_case_model, &m, &err))
		fail_msg("%s: %s", err.where, err.msg);
	assert_string_equal(m.name, "small");
	assert_string_equal(m.description, "of every op one");
	assert_int_equal(m.slots, 5);
	assert_int_equal(m.dense, 3);
	assert_int_equal(m.preprocess.transform, HPS_TRANSFORM_SIGNED_LOG);
	assert_true(m.preprocess.scale == 0.5 && m.preprocess.missing == -0.25);
	assert_int_equal(m.n_tables, 2);
	assert_int_equal(m.table[0].rows, 50);
	assert_int_equal(m.table[0].max_rows, 40);
	assert_int_equal(m.table[0].optimizer.kind, HPS_ADAGRAD);
	assert_true(m.table[0].optimizer.lr == 0.1 && m.table[0].optimizer.accumulator == 0.1);
	assert_int_equal(m.table[1].init, HPS_INIT_ZERO);
	assert_true(m.table[1].init_scale == 0 && m.table[1].optimizer.eps == 0);
	assert_int_equal(m.n_layers, 8);
	assert_int_equal(m.layer[0].cols, 8);
	assert_int_equal(m.layer[1].cols, 3);
	assert_int_equal(m.layer[1].slot[0], 4);
	assert_int_equal(m.layer[1].table, 1);
	assert_int_equal(m.layer[2].cols, 4);
	assert_int_equal(m.layer[2].count, 6);
	assert_int_equal(m.layer[3].cols, 14);
	assert_int_equal(m.layer[3].n_inputs, 3);
	assert_int_equal(m.layer[3].input[1], HPS_INPUT_DENSE);
	assert_int_equal(m.layer[4].begin, 2);
	assert_int_equal(m.layer[4].cols, 12);
	assert_int_equal(m.layer[5].bias, 0);
	assert_int_equal(m.layer[5].act, HPS_ACT_TANH);
	assert_int_equal(m.layer[6].bias, 1);
	assert_int_equal(m.layer[7].cols, 1);
	assert_int_equal(m.loss.kind, HPS_LOSS_HINGE);
	assert_int_equal(m.loss.input[0], 6);
	assert_int_equal(m.loss.input[1], 7);
	assert_true(m.loss.margin == 0.8);
	assert_int_equal(m.train.sync, HPS_ASP);
	assert_true(m.train.optimizer.beta1 == 0.8 && m.train.optimizer.beta2 == 0.999);
	assert_int_equal(m.train.seed, 7);
	assert_int_not_equal(m.digest, 0);
	hps_model_release(&m);
}

/* Only what has no default. */
static void test_defaults(void **state)
{
	struct hps_err err = { 0 };
	struct hps_model m;

	if (read_text(
		    "{ \"name\": \"m\", \"inputs\": { \"slots\": 2 },\n"
		    "  \"tables\": [ { \"name\": \"t\", \"dim\": 3 } ],\n"
		    "  \"layers\": [ { \"name\": \"e\", \"op\": \"embedding\", \"table\": \"t\",\n"
		    "                  \"slots\": [1, 0] },\n"
		    "                { \"name\": \"o\", \"op\": \"dense\", \"inputs\": [\"e\"],\n"
		    "                  \"units\": 1, \"comment\": \"to logits\" } ],\n"
		    "  \"loss\": { \"kind\": \"sigmoid_cross_entropy\", \"inputs\": [\"o\"] } }",
		    &m, &err))
		fail_msg("%s: %s", err.where, err.msg);
	assert_null(m.description);
	assert_int_equal(m.dense, 0);
	assert_int_equal(m.preprocess.transform, HPS_TRANSFORM_SIGNED_LOG);
	assert_true(m.preprocess.scale == 1 && m.preprocess.missing == 0);
	assert_int_equal(m.table->rows, 0);
	assert_int_equal(m.table->init, HPS_INIT_UNIFORM);
	assert_true(m.table->init_scale == 0.01);
	assert_int_equal(m.table->optimizer.kind, HPS_ADAGRAD);
	assert_true(m.table->optimizer.lr == 0.05 && m.table->optimizer.eps == 1e-10);
	assert_int_equal(m.table->max_rows, 0);
	assert_int_equal(m.table->max_bytes, 0);
	assert_int_equal(m.layer[0].pooling, HPS_POOL_CONCAT);
	assert_int_equal(m.layer[1].bias, 1);
	assert_int_equal(m.layer[1].act, HPS_ACT_LINEAR);
	assert_int_equal(m.train.batch, 1000);
	assert_int_equal(m.train.micro_batches, 1);
	assert_int_equal(m.train.epochs, 1);
	assert_int_equal(m.train.sync, HPS_BSP);
	assert_int_equal(m.train.optimizer.kind, HPS_ADAM);
	assert_true(m.train.optimizer.lr == 0.001 && m.train.optimizer.eps == 1e-8);
	assert_int_equal(m.train.seed, 1);
	hps_model_release(&m);
}

/* What changes the digest: what a profile or a trained parameter depends on, only. */
static void test_digest(void **state)
{
	static const struct {
		const char *find, *replace;
		bool same;
	} edits[] = {
		{ "of every op one", "told otherwise", true },
		{ "\"name\": \"small\"", "\"name\": \"other\"", true },
		{ "\"max_rows\": 40", "\"max_rows\": 39", true },
		{ "\"adagrad\", \"lr\": 0.1", "\"sgd\", \"lr\": 0.2", true },
		{ "\"batch\": 64", "\"batch\": 65", true },
		{ "\"sync\": \"asp\"", "\"sync\": \"bsp\"", true },
		{ "\"seed\": 7", "\"seed\": 8", true },
		{ "\"margin\": 0.8", "\"margin\": 0.80", true },
		{ "\"slots\": 5", "\"slots\": 6", false },
		{ "\"dense\": 3", "\"dense\": 4", false },
		{ "signed_log", "none", false },
		{ "\"scale\": 0.5", "\"scale\": 0.25", false },
		{ "-0.25", "0.25", false },
		{ "\"dim\": 3", "\"dim\": 5", false },
		{ "\"rows\": 50", "\"rows\": 51", false },
		{ "\"scale\": 0.02", "\"scale\": 0.03", false },
		{ "[0, 3]", "[3, 0]", false },
		{ "\"count\": 6", "\"count\": 5", false },
		{ "\"pooling\": \"sum\"", "\"pooling\": \"mean\"", false },
		{ "\"begin\": 2", "\"begin\": 1", false },
		{ "\"bias\": false", "\"bias\": true", false },
		{ "tanh", "relu", false },
		{ "\"emb\", \"dense\", \"sum\"", "\"dense\", \"emb\", \"sum\"", false },
		{ "\"pos\", \"cos\"]", "\"cos\", \"pos\"]", false },
		{ "\"margin\": 0.8", "\"margin\": 0.7", false },
	};
	struct hps_model m;
	uint64_t digest;

	assert_int_equal(read_text(job_case_model, &m, NULL), HPS_OK);
	digest = m.digest;
	hps_model_release(&m);
	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		char *text = job_case_patch(job_case_model, edits[i].find, edits[i].replace);
		struct hps_err err = { 0 };

		if (read_text(text, &m, &err))
			fail_msg("%s: %s: %s", edits[i].replace, err.where, err.msg);
		if ((m.digest == digest) != edits[i].same)
			fail_msg("%s: the digest %s", edits[i].replace,
				 edits[i].same ? "changed" : "did not change");
		hps_model_release(&m);
		free(text);
	}
}

/* The order of members and the form of numbers are not content. */
static void test_digest_form(void **state)
{
	struct hps_doc *d = job_case_parse(job_case_model), *again;
	struct hps_model a, b;
	struct hps_at at = hps_at_root(d, "t");

	assert_int_equal(hps_model_read(&at, &a, NULL), HPS_OK);
	again = hps_model_write(&a);
	at = hps_at_root(again, "t");
	assert_int_equal(hps_model_read(&at, &b, NULL), HPS_OK);
	job_case_same_model(&a, &b);
	hps_model_release(&a);
	hps_model_release(&b);
	hps_doc_free(d);
	hps_doc_free(again);
}

static const struct refusal {
	const char *find, *replace, *told, *hint;
} refusals[] = {
	/* the whole */
	{ "\"name\": \"small\", ", "", "name: missing: expected a string", NULL },
	{ "\"name\": \"small\"", "\"name\": 7", "name: expected a string, got 7", NULL },
	{ "\"name\": \"small\"", "\"name\": \"a/b\"",
	  "name: expected a name (up to 128 of a-z A-Z 0-9 _ . -, the first a letter or digit), "
	  "got \"a/b\"",
	  NULL },
	{ "\"name\": \"small\"", "\"name\": \"../up\"", "name: expected a name (up to 128 of",
	  NULL },
	{ "\"train\"", "\"trian\"", "trian: unknown member", "did you mean \"train\"?" },
	{ "\"of every op one\"", "[]", "description: expected a string, got an array", NULL },
	/* inputs and preprocessing */
	{ "\"slots\": 5", "\"slots\": -1", "inputs.slots: expected an integer >= 0, got -1", NULL },
	{ "\"slots\": 5", "\"slots\": 5000",
	  "inputs.slots: expected an integer from 0 to 4096, got 5000", NULL },
	{ "\"slots\": 5, \"dense\": 3", "",
	  "inputs: a model needs slots or dense features, both are 0", NULL },
	{ "{ \"slots\": 5, \"dense\": 3 }", "3", "inputs: expected an object, got 3", NULL },
	{ "\"dense\": 3", "\"dense\": 1e30",
	  "inputs.dense: expected an integer from 0 to 1048576, got 1e", NULL },
	{ "\"dense\": 3", "\"image\": 3", "inputs.image: unknown member", NULL },
	{ "signed_log", "log", "preprocess.dense.transform: expected \"none\" or \"signed_log\"",
	  NULL },
	{ "\"scale\": 0.5", "\"scale\": 0",
	  "preprocess.dense.scale: expected a number > 0 and <= 1000000, got 0", NULL },
	{ "\"missing\"", "\"mising\"", "preprocess.dense.mising: unknown member",
	  "did you mean \"missing\"?" },
	/* tables */
	{ "\"name\": \"zero\"", "\"name\": \"big\"",
	  "tables[1].name: \"big\" is the name of tables[0] already", NULL },
	{ "\"dim\": 4", "\"dim\": 0", "tables[0].dim: expected an integer > 0, got 0", NULL },
	{ "\"dim\": 4", "\"dim\": 2000000",
	  "tables[0].dim: expected an integer from 1 to 1048576, got 2000000", NULL },
	{ "\"dim\": 4, ", "", "tables[0].dim: missing: expected an integer > 0", NULL },
	{ "\"rows\": 50", "\"rows\": \"18446744073709551615\"",
	  "tables[0].rows: 18446744073709551615 rows of 4 floats are more than 2^62 bytes; "
	  "0 takes whole 64-bit keys",
	  NULL },
	{ "\"rows\": 50", "\"rows\": \"18446744073709551616\"",
	  "tables[0].rows: expected an integer from 0 to 18446744073709551615, got "
	  "\"18446744073709551616\"",
	  NULL },
	{ "\"rows\": 50", "\"rows\": 0.5", "tables[0].rows: expected an integer >= 0, got 0.5",
	  NULL },
	{ "\"kind\": \"uniform\"", "\"kind\": \"normal\"",
	  "tables[0].init.kind: expected \"zero\" or \"uniform\", got \"normal\"", NULL },
	{ "\"kind\": \"zero\"", "\"kind\": \"zero\", \"scale\": 1",
	  "tables[1].init.scale: unknown member", NULL },
	{ "\"kind\": \"adagrad\"", "\"kind\": \"ftrl\"",
	  "tables[0].optimizer.kind: ftrl is not built yet; sgd, adagrad and adam are", NULL },
	{ "\"kind\": \"sgd\"", "\"kind\": \"momentum\"",
	  "tables[1].optimizer.kind: momentum is not built yet; sgd, adagrad and adam are", NULL },
	{ "\"kind\": \"sgd\"", "\"kind\": \"sdg\"",
	  "tables[1].optimizer.kind: expected \"sgd\", \"adagrad\" or \"adam\", got \"sdg\"",
	  "did you mean \"sgd\"?" },
	{ "\"kind\": \"adagrad\", ", "", "tables[0].optimizer.kind: missing: expected a string",
	  NULL },
	{ "\"lr\": 0.1", "\"lr\": -0.1",
	  "tables[0].optimizer.lr: expected a number > 0 and <= 1000000, got -0.1", NULL },
	{ "\"lr\": 0.1", "\"lr\": \"fast\"",
	  "tables[0].optimizer.lr: expected a number > 0 and <= 1000000, got \"fast\"", NULL },
	{ "\"lr\": 0.1", "\"beta1\": 0.1", "tables[0].optimizer.beta1: unknown member", NULL },
	{ "\"max_rows\": 40", "\"max_rows\": -40",
	  "tables[0].max_rows: expected an integer >= 0, got -40", NULL },
	/* layers: names and ops */
	{ "\"name\": \"emb\"", "\"name\": \"dense\"",
	  "layers[0].name: \"dense\" names the dense features; a layer needs another name", NULL },
	{ "\"name\": \"sum\"", "\"name\": \"emb\"",
	  "layers[1].name: \"emb\" is the name of layers[0] already", NULL },
	{ "\"name\": \"neg\", ", "", "layers[2].name: missing: expected a string", NULL },
	{ "\"op\": \"slice\"", "\"op\": \"slize\"",
	  "layers[4].op: expected \"embedding\", \"negatives\", \"concat\", \"slice\", \"dense\" or "
	  "\"cosine\", got \"slize\"",
	  "did you mean \"slice\"?" },
	{ "\"op\": \"slice\"", "\"op\": \"conv2d\"", "layers[4].op: expected \"embedding\"", NULL },
	{ "\"op\": \"slice\", ", "", "layers[4].op: missing: expected \"embedding\"", NULL },
	{ "\"bias\": false", "\"baies\": false", "layers[5].baies: unknown member",
	  "did you mean \"bias\"?" },
	{ "\"units\": 4", "\"units\": 4, \"pooling\": \"sum\"", "layers[5].pooling: unknown member",
	  NULL },
	/* layers: references */
	{ "[\"part\"]", "[\"pat\"]", "layers[5].inputs[0]: no layer is named \"pat\"",
	  "a layer reads earlier layers by name" },
	{ "[\"part\"]", "[\"fc\"]", "layers[5].inputs[0]: layer \"fc\" reads itself: a cycle",
	  NULL },
	{ "[\"part\"]", "[\"pos\"]",
	  "layers[5].inputs[0]: \"pos\" names a later layer: layers stand in topological order; "
	  "a cycle?",
	  NULL },
	{ "[\"part\"]", "[\"part\", \"in\"]", "layers[5].inputs: expected 1 element, got 2", NULL },
	{ "[\"part\"]", "[]", "layers[5].inputs: expected 1 element, got 0", NULL },
	{ "[\"part\"]", "\"part\"", "layers[5].inputs: expected an array, got \"part\"", NULL },
	{ "[\"part\"]", "[4]", "layers[5].inputs[0]: expected a string, got 4", NULL },
	{ "\"inputs\": [\"part\"], ", "", "layers[5].inputs: missing: expected an array", NULL },
	{ "\"dense\", \"sum\"", "\"emb\", \"sum\"", "layers[3].inputs[1]: \"emb\" is named twice",
	  NULL },
	{ "\"emb\", \"dense\"", "\"dense\", \"dense\"",
	  "layers[3].inputs[1]: \"dense\" is named twice", NULL },
	{ ", \"dense\": 3", "",
	  "layers[3].inputs[1]: there are no dense features: inputs.dense is 0", NULL },
	/* layers: arguments */
	{ "\"table\": \"big\", \"slots\"", "\"table\": \"small\", \"slots\"",
	  "layers[0].table: no table is named \"small\"", NULL },
	{ "[0, 3]", "[0, 5]", "layers[0].slots[1]: expected an integer from 0 to 4, got 5", NULL },
	{ "[0, 3]", "[0, -1]", "layers[0].slots[1]: expected an integer from 0 to 4, got -1",
	  NULL },
	{ "[0, 3]", "[3, 3]", "layers[0].slots[1]: slot 3 is named twice", NULL },
	{ "[0, 3]", "[]", "layers[0].slots: expected at least 1 element, got 0", NULL },
	{ "\"slots\": 5", "\"slots\": 0", "layers[0].slots: there are no slots: inputs.slots is 0",
	  NULL },
	{ "\"pooling\": \"concat\"", "\"pooling\": \"max\"",
	  "layers[0].pooling: expected \"sum\", \"mean\" or \"concat\", got \"max\"", NULL },
	{ "\"count\": 6", "\"count\": 0", "layers[2].count: expected an integer > 0, got 0", NULL },
	{ "\"table\": \"big\", \"count\"", "\"table\": \"zero\", \"count\"",
	  "layers[2].table: negatives are drawn over a table's rows, and those of \"zero\" are whole "
	  "64-bit keys (rows 0)",
	  NULL },
	{ "\"size\": 12", "\"size\": 13",
	  "layers[4].size: columns 2..14 of \"in\", which has columns 0..13", NULL },
	{ "\"size\": 12", "\"size\": 0", "layers[4].size: expected an integer > 0, got 0", NULL },
	{ "\"begin\": 2", "\"begin\": -2", "layers[4].begin: expected an integer >= 0, got -2",
	  NULL },
	{ "\"units\": 4", "\"units\": \"abc\"",
	  "layers[5].units: expected an integer > 0, got \"abc\"", NULL },
	{ "\"units\": 4", "\"units\": 0", "layers[5].units: expected an integer > 0, got 0", NULL },
	{ "\"units\": 4", "\"units\": -4", "layers[5].units: expected an integer > 0, got -4",
	  NULL },
	{ "\"units\": 4", "\"units\": 4.5", "layers[5].units: expected an integer > 0, got 4.5",
	  NULL },
	{ "\"units\": 4", "\"units\": 9999999",
	  "layers[5].units: expected an integer from 1 to 1048576, got 9999999", NULL },
	{ "\"bias\": false", "\"bias\": 0", "layers[5].bias: expected true or false, got 0", NULL },
	{ "tanh", "gelu",
	  "layers[5].activation: expected \"linear\", \"relu\", \"sigmoid\" or \"tanh\", got "
	  "\"gelu\"",
	  NULL },
	{ "[\"neg\", \"fc\"]", "[\"sum\", \"fc\"]",
	  "layers[7].inputs: a cosine needs two inputs of equal width: \"sum\" has 3 columns, "
	  "\"fc\" 4",
	  NULL },
	{ "[\"neg\", \"fc\"]", "[\"fc\"]", "layers[7].inputs: expected 2 elements, got 1", NULL },
	{ "[\"neg\", \"fc\"]", "[\"emb\", \"in\"]", "layers[7].inputs: a cosine needs", NULL },
	/* loss */
	{ "\"hinge\"", "\"hindge\"",
	  "loss.kind: expected \"sigmoid_cross_entropy\", \"softmax_cross_entropy\", \"hinge\" or "
	  "\"nce\", got \"hindge\"",
	  "did you mean \"hinge\"?" },
	{ "[\"pos\", \"cos\"]", "[\"pos\"]", "loss.inputs: expected 2 elements, got 1", NULL },
	{ "[\"pos\", \"cos\"]", "[\"pos\", \"dense\"]",
	  "loss.inputs[1]: a loss reads layers, not the dense features", NULL },
	{ "[\"pos\", \"cos\"]", "[\"pos\", \"pos\"]", "loss.inputs[1]: \"pos\" is named twice",
	  NULL },
	{ "[\"pos\", \"cos\"]", "[\"pos\", \"kos\"]", "loss.inputs[1]: no layer is named \"kos\"",
	  NULL },
	{ "[\"pos\", \"cos\"]", "[\"pos\", \"fc\"]",
	  "loss.inputs[1]: loss hinge reads exactly 1 column here, \"fc\" has 4", NULL },
	{ "\"margin\": 0.8", "\"margin\": -1",
	  "loss.margin: expected a number > 0 and <= 1000000, got -1", NULL },
	{ "\"hinge\", \"inputs\": [\"pos\", \"cos\"], \"margin\": 0.8",
	  "\"softmax_cross_entropy\", \"inputs\": [\"fc\"]",
	  "loss.inputs[0]: loss softmax_cross_entropy reads exactly 2 columns here, \"fc\" has 4",
	  NULL },
	{ "\"hinge\", \"inputs\": [\"pos\", \"cos\"], \"margin\": 0.8",
	  "\"sigmoid_cross_entropy\", \"inputs\": [\"fc\"]",
	  "loss.inputs[0]: loss sigmoid_cross_entropy reads exactly 1 column here, \"fc\" has 4",
	  NULL },
	{ "\"hinge\", \"inputs\": [\"pos\", \"cos\"], \"margin\": 0.8",
	  "\"sigmoid_cross_entropy\", \"inputs\": [\"pos\"], \"margin\": 1",
	  "loss.margin: unknown member", NULL },
	{ "\"hinge\", \"inputs\": [\"pos\", \"cos\"], \"margin\": 0.8",
	  "\"sigmoid_cross_entropy\", \"inputs\": [\"pos\"]",
	  "layers[7]: layer \"cos\" is read by no later layer, nor the loss", NULL },
	{ "\"hinge\", \"inputs\": [\"pos\", \"cos\"], \"margin\": 0.8",
	  "\"nce\", \"inputs\": [\"fc\", \"sum\", \"emb\"]",
	  "loss.inputs[1]: loss nce reads exactly 4 columns here, \"sum\" has 3", NULL },
	{ "\"hinge\", \"inputs\": [\"pos\", \"cos\"], \"margin\": 0.8",
	  "\"nce\", \"inputs\": [\"fc\", \"neg\", \"in\"]",
	  "loss.inputs[2]: loss nce reads a multiple of 4 columns here, \"in\" has 14", NULL },
	/* train */
	{ "\"batch\": 64", "\"batch\": 0", "train.batch: expected an integer > 0, got 0", NULL },
	{ "\"batch\": 64", "\"batch\": 1",
	  "train.micro_batches: 2 micro-batches of a batch of 1 rows", NULL },
	{ "\"batch\": 64", "\"batch\": 9007199254740993",
	  "train.batch: expected an integer from 1 to 1073741824, got "
	  "\"9007199254740993\"",
	  NULL },
	{ "\"epochs\": 3", "\"epochs\": 0", "train.epochs: expected an integer > 0, got 0", NULL },
	{ "\"asp\"", "\"ssp:4\"", "train.sync: ssp:4 is not built yet; bsp and asp are", NULL },
	{ "\"asp\"", "\"async\"", "train.sync: expected \"bsp\" or \"asp\", got \"async\"", NULL },
	{ "\"beta1\": 0.8", "\"beta1\": 1",
	  "train.optimizer.beta1: expected a number >= 0 and < 1, got 1", NULL },
	{ "\"seed\": 7", "\"seed\": -7", "train.seed: expected an integer >= 0, got -7", NULL },
};

static void refuse(const struct refusal *r)
{
	char *text = job_case_patch(job_case_model, r->find, r->replace);
	struct hps_err err = { 0 };
	struct hps_model m;
	char told[1024];

	if (read_text(text, &m, &err) != HPS_BAD_INPUT)
		fail_msg("not refused: %s", r->replace);
	snprintf(told, sizeof(told), "%s: %s", err.where, err.msg);
	if (strncmp(told, "t: ", 3) || strncmp(told + 3, r->told, strlen(r->told)))
		fail_msg("%s\nexpected %s\ngot      %s", r->replace, r->told, told + 3);
	if (r->hint && !strstr(err.hint, r->hint))
		fail_msg("%s: hint \"%s\" lacks \"%s\"", r->replace, err.hint, r->hint);
	/* What was refused leaves nothing behind. */
	assert_null(m.name);
	assert_null(m.layer);
	assert_null(m.table);
	free(text);
}

static void test_refusals(void **state)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
		refuse(&refusals[i]);
}

/* A layer that is read by nobody, a table that no layer uses. */
static void test_unused(void **state)
{
	static const struct refusal table = {
		"{ \"name\": \"zero\", \"dim\": 3,",
		"{ \"name\": \"idle\", \"dim\": 1 },\n{ \"name\": \"zero\", \"dim\": 3,",
		"tables[1]: table \"idle\" is used by no layer", NULL
	};
	static const struct refusal layer = { "[\"emb\", \"dense\", \"sum\"] }",
					      "[\"emb\", \"dense\"] }", "layers[4].size: columns",
					      NULL };
	char *text = job_case_patch(job_case_model, layer.find, layer.replace);
	char *text2 = job_case_patch(text, "\"size\": 12", "\"size\": 5");
	struct hps_err err = { 0 };
	struct hps_model m;

	refuse(&table);
	refuse(&layer);
	assert_int_equal(read_text(text2, &m, &err), HPS_BAD_INPUT);
	assert_string_equal(err.where, "t: layers[1]");
	assert_string_equal(err.msg, "layer \"sum\" is read by no later layer, nor the loss");
	free(text);
	free(text2);
}

/* Sizes that fit one by one, but not together. */
static void test_totals(void **state)
{
	struct hps_err err = { 0 };
	struct hps_model m;

	assert_int_equal(
		read_text(
			"{ \"name\": \"m\", \"inputs\": { \"dense\": 1000000 }, \"layers\": [\n"
			"{ \"name\": \"a\", \"op\": \"dense\", \"inputs\": [\"dense\"],\n"
			"  \"units\": 60000 },\n"
			"{ \"name\": \"b\", \"op\": \"dense\", \"inputs\": [\"a\"],\n"
			"  \"units\": 1000000 } ],\n"
			"\"loss\": { \"kind\": \"sigmoid_cross_entropy\", \"inputs\": [\"b\"] } }",
			&m, &err),
		HPS_BAD_INPUT);
	assert_string_equal(err.where, "t: layers[1].units");
	assert_string_equal(err.msg,
			    "120001060000 dense parameters up to here, at most 2^36 in all");
	assert_int_equal(
		read_text(
			"{ \"name\": \"m\", \"inputs\": { \"dense\": 1000000 }, \"layers\": [\n"
			"{ \"name\": \"a\", \"op\": \"dense\", \"inputs\": [\"dense\"],\n"
			"  \"units\": 60000 },\n"
			"{ \"name\": \"b\", \"op\": \"concat\", \"inputs\": [\"a\", \"dense\"] } ],\n"
			"\"loss\": { \"kind\": \"sigmoid_cross_entropy\", \"inputs\": [\"b\"] } }",
			&m, &err),
		HPS_BAD_INPUT);
	assert_string_equal(err.where, "t: layers[1]");
	assert_string_equal(err.msg, "layer \"b\" has 1060000 columns, at most 1048576");
	assert_int_equal(
		read_text(
			"{ \"name\": \"m\", \"inputs\": { \"slots\": 1 }, \"layers\": [\n"
			"{ \"name\": \"a\", \"op\": \"negatives\", \"table\": \"t\",\n"
			"  \"count\": 1000000 } ],\n"
			"\"tables\": [ { \"name\": \"t\", \"dim\": 1000000, \"rows\": 7 } ],\n"
			"\"loss\": { \"kind\": \"sigmoid_cross_entropy\", \"inputs\": [\"a\"] } }",
			&m, &err),
		HPS_BAD_INPUT);
	assert_string_equal(err.where, "t: layers[0]");
	assert_string_equal(err.msg, "layer \"a\" has 1000000000000 columns, at most 1048576");
}

/* No array or layer count costs more than its document does. */
static void test_many_layers(void **state)
{
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_err err = { 0 };
	struct hps_model m;
	char *more;

	hps_buf_printf(&b, NULL,
		       "{ \"name\": \"m\", \"inputs\": { \"dense\": 1 }, \"layers\": [\n"
		       "{ \"name\": \"l0\", \"op\": \"concat\", \"inputs\": [\"dense\"] }");
	for (int i = 1; i < HPS_MAX_LAYERS; i++)
		hps_buf_printf(&b, NULL,
			       ",{ \"name\": \"l%d\", \"op\": \"concat\", \"inputs\": [\"l%d\"] }",
			       i, i - 1);
	hps_buf_printf(&b, NULL,
		       "], \"loss\": { \"kind\": \"sigmoid_cross_entropy\","
		       " \"inputs\": [\"l%d\"] } }",
		       HPS_MAX_LAYERS - 1);
	if (read_text(b.data, &m, &err))
		fail_msg("%s: %s", err.where, err.msg);
	assert_int_equal(m.n_layers, HPS_MAX_LAYERS);
	hps_model_release(&m);
	more = job_case_patch(b.data, "[\n", "[\n{ \"name\": \"x\" },\n");
	assert_int_equal(read_text(more, &m, &err), HPS_BAD_INPUT);
	assert_string_equal(err.where, "t: layers");
	assert_string_equal(err.msg, "expected at most 4096 elements, got 4097");
	free(more);
	hps_buf_release(&b);
}

/* testdata/models: all are read, and say what they are. */
static void test_testdata(void **state)
{
	static const struct {
		const char *file;
		uint32_t layers;
	} models[] = {
		{ "ctrdnn", 6 },
		{ "ctrdnn-criteo-10k", 6 },
		{ "ctrdnn-8", 8 },
		{ "ctrdnn-12", 12 },
		{ "ctrdnn-16", 16 },
		{ "ctrdnn-20", 20 },
		{ "matchnet", 14 },
		{ "2emb", 10 },
		{ "nce", 3 },
		{ "narrow/ctrdnn", 6 },
		{ "narrow/ctrdnn-sgd", 6 },
		{ "narrow/ctrdnn-adam", 6 },
		{ "narrow/ctrdnn-mixed", 6 },
		{ "narrow/matchnet", 14 },
		{ "narrow/2emb", 10 },
		{ "narrow/nce", 3 },
		{ "narrow/shared", 12 },
	};
	struct hps_model m, again;

	for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
		struct hps_err err = { 0 };
		char name[64], path[512];
		struct hps_doc *d;
		struct hps_at at;

		snprintf(name, sizeof(name), "models/%s.json", models[i].file);
		job_case_path(name, path, sizeof(path));
		if (hps_model_load(path, &m, &err))
			fail_msg("%s: %s", err.where, err.msg);
		assert_int_equal(m.n_layers, models[i].layers);
		assert_non_null(m.description);
		d = hps_model_write(&m);
		at = hps_at_root(d, "t");
		if (hps_model_read(&at, &again, &err))
			fail_msg("%s: %s", err.where, err.msg);
		job_case_same_model(&m, &again);
		hps_doc_free(d);
		hps_model_release(&m);
		hps_model_release(&again);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything), cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_digest),	   cmocka_unit_test(test_digest_form),
		cmocka_unit_test(test_refusals),   cmocka_unit_test(test_unused),
		cmocka_unit_test(test_totals),	   cmocka_unit_test(test_many_layers),
		cmocka_unit_test(test_testdata),
	};

	return cmocka_run_group_tests_name("job model", tests, NULL, NULL);
}
