/* PipeDream's graph text: order, cuts and sums by hand; which types follow; what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"
#include "base/file.h"
#include "base/mem.h"
#include "import/import.h"
#include "job_case.h"

static const char types_text[] =
	"{\"types\": [{\"name\": \"cpu\", \"price\": 1},"
	" {\"name\": \"v100\", \"device\": \"cuda\", \"price\": 1, \"like\": \"cpu\", \"speed\": 4,"
	"  \"op_speed\": {\"dense\": 100}},"
	" {\"name\": \"k80\", \"device\": \"cuda\", \"price\": 1, \"like\": \"cpu\", \"speed\": 2}]}";

static void cluster(const char *text, struct hps_cluster *c)
{
	struct hps_doc *d = job_case_parse(text);
	struct hps_at at = hps_at_root(d, "c");

	assert_int_equal(hps_cluster_read(&at, c, NULL), HPS_OK);
	hps_doc_free(d);
}

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-12 * fabs(want)))
		fail_msg("expected %.17g, got %.17g", want, got);
}

/* Import a copy of the text, as a file "g", for the types above. */
static enum hps_status import(const char *text, size_t len, const struct hps_import_options *o,
			      struct hps_profile *p, struct hps_import_report *r,
			      struct hps_err *err)
{
	struct hps_cluster c;
	enum hps_status st;
	char *copy = malloc(len + 1);

	assert_non_null(copy);
	memcpy(copy, text, len);
	copy[len] = '\0';
	cluster(types_text, &c);
	st = hps_import_pipedream(copy, len, "g", &c, o, p, r, err);
	free(copy);
	hps_cluster_release(&c);
	return st;
}

static void branches(struct hps_buf *b)
{
	char path[4096];

	job_case_path("examples/branches.graph.txt", path, sizeof(path));
	assert_int_equal(hps_file_read(path, 0, b, NULL), HPS_OK);
}

/* The graph: 2 - 3 - (10 | 5) - 6 - 7, 2 also to 6; Input 1 to 2 and 5. A batch is 8: Linear's
 * 320 bytes are 4 x 10 floats. */
static void test_branches(void **state)
{
	static const char *const name[] = { "node2", "node3", "node5", "node10", "node6", "node7" };
	static const double oct[] = { 6e-3, 2e-3, 3e-3, 8e-3, 0, 2e-3 };
	static const double forward[] = { 2e-3, 1e-3, 1e-3, 3e-3, 0, 0.5e-3 };
	static const double params[] = { 1000, 0, 100, 200, 0, 2600 };
	static const double output[] = { 100, 100, 30, 50, 80, 40 };
	/* node2 goes to 3 and 6: once over each cut up to 6; node3 over those up to 10 */
	static const double cut[] = { 100, 100 + 100, 100 + 100 + 30, 100 + 30 + 50, 80, 0 };
	const struct hps_import_options o = { 0 };
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_import_report r;
	struct hps_profile p;

	(void)state;
	branches(&b);
	assert_int_equal(import(b.data, b.len, &o, &p, &r, NULL), HPS_OK);
	assert_int_equal(p.digest, 0);
	assert_int_equal(p.n_layers, 6);
	assert_int_equal(r.n_dropped, 1);
	assert_int_equal(r.n_measured, 1);
	assert_true(r.batch_found);
	near(p.batch, 8);
	assert_int_equal(p.n_batches, 1);
	near(p.batches[0], 8);
	for (uint32_t l = 0; l < 6; l++) {
		const struct hps_layer_time *v100 = &p.time[6 + l];

		assert_string_equal(p.size[l].name, name[l]);
		near(p.size[l].param_bytes, params[l]);
		near(p.size[l].output_bytes, output[l]);
		near(p.cut_forward_bytes[l], cut[l]);
		near(p.cut_backward_bytes[l], cut[l]);
		near(v100->oct, oct[l]);
		near(v100->alpha, 1);
		near(v100->forward_s[0], forward[l]);
		near(v100->backward_s[0], oct[l] - forward[l]);
		near(v100->forward.c1, forward[l] / 8);
		near(v100->forward.c0 + v100->backward.c0, 0);
	}
	hps_profile_release(&p);
	hps_buf_release(&b);
}

/* The measured type, and by their speeds the others: 4 cpu = 1 v100, 2 cpu = 1 k80. */
static void test_types(void **state)
{
	static const struct {
		const char *type;
		double factor[3]; /* cpu, v100, k80; 1: measured */
	} want[] = {
		{ NULL, { 4, 1, 2 } },
		{ "k80", { 2, 0.5, 1 } },
		{ "cpu", { 1, 0.25, 0.5 } },
	};
	struct hps_buf b = HPS_BUF_INIT;

	(void)state;
	branches(&b);
	for (size_t i = 0; i < 3; i++) {
		const struct hps_import_options o = { .type = want[i].type, .batch = 16 };
		struct hps_import_report r;
		struct hps_profile p;

		assert_int_equal(import(b.data, b.len, &o, &p, &r, NULL), HPS_OK);
		assert_false(r.batch_found);
		near(p.batch, 16);
		for (uint32_t t = 0; t < 3; t++) {
			const struct hps_layer_time *x = &p.time[t * 6];
			bool measured = want[i].factor[t] > 0.9 && want[i].factor[t] < 1.1;

			assert_int_equal(p.simulated[t], !measured);
			assert_int_equal(x->forward_s != NULL, measured);
			near(x->oct, 6e-3 * want[i].factor[t]);
			near(x->forward.c1, 2e-3 / 16 * want[i].factor[t]);
		}
		hps_profile_release(&p);
	}
	hps_buf_release(&b);
}

#define F                                                                                          \
	" -- X -- forward_compute_time=1, backward_compute_time=1, activation_size=4, parameter_size=0\n"

/* Numbers settle only what the edges leave open. */
static void test_order(void **state)
{
	static const struct {
		const char *text, *order;
	} want[] = {
		{ "n3" F "n2" F "n1" F "\tn3 -- n2\n\tn2 -- n1\n", "n3 n2 n1 " },
		{ "n10" F "n9" F "n8" F, "n8 n9 n10 " },
		{ "b" F "a" F "n1" F "\tn1 -- b\n\tn1 -- b\n\n", "n1 b a " },
		{ "n4" F "n1" F "n2" F "n3" F "\tn1 -- n4\r\n\tn4 -- n2", "n1 n3 n4 n2 " },
	};
	const struct hps_import_options o = { .batch = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		char got[64] = "";
		struct hps_import_report r;
		struct hps_profile p;

		assert_int_equal(import(want[i].text, strlen(want[i].text), &o, &p, &r, NULL),
				 HPS_OK);
		for (uint32_t l = 0; l < p.n_layers; l++) {
			strcat(got, p.size[l].name);
			strcat(got, " ");
		}
		assert_string_equal(got, want[i].order);
		hps_profile_release(&p);
	}
}

static void test_malformed(void **state)
{
	static const struct {
		const char *text, *where, *what;
	} bad[] = {
		{ "", "g", "no layers" },
		{ "n1 -- Input -- forward_compute_time=1, backward_compute_time=1, activation_size=4, "
		  "parameter_size=0",
		  "g", "no layers" },
		{ "a" F "junk\n", "g:2", "expected \"NODE -- WHAT -- FIGURES\", got \"junk\"" },
		{ "a" F "b -- X\n", "g:2", "expected \"NODE -- WHAT" },
		{ "a b" F, "g:1", "expected a node's name" },
		{ " -- X -- forward_compute_time=1\n", "g:1", "expected a node's name" },
		{ "a" F "a" F, "g:2", "node \"a\" is on line 1 already" },
		{ "a" F "\ta -- b\n", "g:2", "an edge of node \"b\", which is not there" },
		{ "\tb -- a\na" F, "g:1", "an edge of node \"b\"" },
		{ "a" F "\ta b\n", "g:2", "expected an edge" },
		{ "a" F "\ta -- a\n", "g:1", "node \"a\" reads its own output: a cycle" },
		{ "a" F "b" F "c" F "d" F "\ta -- b\n\tb -- c\n\tc -- b\n\tc -- d\n",
		  "g:", "a cycle" },
		{ "a -- X -- forward_compute_time=1, backward_compute_time=1, activation_size=4\n",
		  "g:1", "node \"a\": expected parameter_size=..., got \"\"" },
		{ "a -- X -- backward_compute_time=1, forward_compute_time=1, activation_size=4, "
		  "parameter_size=0\n",
		  "g:1", "expected forward_compute_time=..., got" },
		{ "a -- X -- forward_compute_time=1, backward_compute_time=1, activation_size=4, "
		  "parameter_size=0, more=1\n",
		  "g:1", "expected no more figures, got \"more=1\"" },
		{ "a -- X -- forward_compute_time=nan, backward_compute_time=1, activation_size=4, "
		  "parameter_size=0\n",
		  "g:1: node \"a\": forward_compute_time", "got \"nan\"" },
		{ "a -- X -- forward_compute_time=1, backward_compute_time=-1, activation_size=4, "
		  "parameter_size=0\n",
		  "g:1: node \"a\": backward_compute_time", "got \"-1\"" },
		{ "a -- X -- forward_compute_time=1, backward_compute_time=1, activation_size=[4; ], "
		  "parameter_size=0\n",
		  "g:1: node \"a\": activation_size", "got \"\"" },
		{ "a -- X -- forward_compute_time=1, backward_compute_time=1, activation_size=4, "
		  "parameter_size=1e300\n",
		  "g:1: node \"a\": parameter_size", "got \"1e300\"" },
		{ "a -- X -- forward_compute_time=0, backward_compute_time=0, activation_size=4, "
		  "parameter_size=0\n",
		  "g", "no layer takes any time" },
	};
	const struct hps_import_options o = { .batch = 1 };
	struct hps_import_report r;
	struct hps_profile p;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct hps_err err = { 0 };

		if (import(bad[i].text, strlen(bad[i].text), &o, &p, &r, &err) != HPS_BAD_INPUT ||
		    err.status != HPS_BAD_INPUT ||
		    strncmp(err.where, bad[i].where, strlen(bad[i].where)) ||
		    !strstr(err.msg, bad[i].what))
			fail_msg("case %zu: %d %s: %s", i, (int)err.status, err.where, err.msg);
		assert_null(p.size);
	}
	{
		static const char junk[] = "a" F "\0\1\2 -- \0";
		struct hps_err err = { 0 };

		assert_int_equal(import(junk, sizeof(junk), &o, &p, &r, &err), HPS_BAD_INPUT);
		assert_string_equal(err.where, "g:2");
		assert_string_equal(err.msg, "binary data");
	}
}

/* The cycle that is named is one: of a - (b - c) - d, b or c. */
static void test_cycle_is_named(void **state)
{
	static const char text[] =
		"a" F "b" F "c" F "d" F "\ta -- b\n\tb -- c\n\tc -- b\n\tc -- d\n";
	const struct hps_import_options o = { .batch = 1 };
	struct hps_import_report r;
	struct hps_err err = { 0 };
	struct hps_profile p;

	(void)state;
	assert_int_equal(import(text, strlen(text), &o, &p, &r, &err), HPS_BAD_INPUT);
	assert_true(!strcmp(err.where, "g:2") || !strcmp(err.where, "g:3"));
}

static void test_huge_counts(void **state)
{
	const struct hps_import_options o = { .batch = 1 };
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_import_report r;
	struct hps_err err = { 0 };
	struct hps_profile p;

	(void)state;
	for (int i = 0; i < HPS_MAX_LAYERS; i++)
		assert_int_equal(hps_buf_printf(&b, NULL, "n%d" F, i), HPS_OK);
	for (int i = 1; i < HPS_MAX_LAYERS; i++)
		assert_int_equal(hps_buf_printf(&b, NULL, "\tn0 -- n%d\n", i), HPS_OK);
	assert_int_equal(import(b.data, b.len, &o, &p, &r, &err), HPS_OK);
	near(p.cut_forward_bytes[HPS_MAX_LAYERS - 2], 4);
	hps_profile_release(&p);
	assert_int_equal(hps_buf_printf(&b, NULL, "one" F), HPS_OK);
	assert_int_equal(import(b.data, b.len, &o, &p, &r, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "4097 layers, at most 4096");
	hps_buf_release(&b);
}

static void test_batch_and_type_must_be_known(void **state)
{
	static const char plain[] = "a" F;
	static const char differ[] =
		"a -- Linear(in_features=1, out_features=2) -- forward_compute_time=1, "
		"backward_compute_time=1, activation_size=16, parameter_size=0\n"
		"b -- Linear(in_features=1, out_features=1) -- forward_compute_time=1, "
		"backward_compute_time=1, activation_size=16, parameter_size=0\n";
	const struct hps_import_options none = { 0 }, wrong = { .type = "tpu", .batch = 1 };
	struct hps_import_report r;
	struct hps_err err = { 0 };
	struct hps_profile p;

	(void)state;
	assert_int_equal(import(plain, strlen(plain), &none, &p, &r, &err), HPS_USAGE);
	assert_non_null(strstr(err.hint, "--batch"));
	assert_int_equal(import(differ, strlen(differ), &none, &p, &r, &err), HPS_USAGE);
	assert_int_equal(import(plain, strlen(plain), &wrong, &p, &r, &err), HPS_USAGE);
	assert_non_null(strstr(err.msg, "no type \"tpu\""));
}

/* A type without times, and without a speed relative to one that has. */
static void test_unrelated_type(void **state)
{
	struct hps_import_options o = { .batch = 1 };
	char text[] = "a" F;
	struct hps_import_report r;
	struct hps_err err = { 0 };
	struct hps_cluster c;
	struct hps_profile p;

	(void)state;
	cluster("{\"types\": [{\"name\": \"cpu\", \"price\": 1},"
		" {\"name\": \"gpu\", \"device\": \"cuda\", \"price\": 1}]}",
		&c);
	assert_int_equal(hps_import_pipedream(text, strlen(text), "g", &c, &o, &p, &r, &err),
			 HPS_DEVICE);
	assert_string_equal(err.where, "type \"cpu\"");
	assert_null(p.size);
	hps_cluster_release(&c);
}

static void test_without_memory(void **state)
{
	const struct hps_import_options o = { 0 };
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status st = HPS_MEMORY;
	struct hps_import_report r;
	unsigned long n = 0;
	struct hps_cluster c;
	struct hps_profile p;

	(void)state;
	cluster(types_text, &c);
	while (st == HPS_MEMORY) {
		b = (struct hps_buf)HPS_BUF_INIT;
		branches(&b);
		hps_mem_fail_at(++n);
		st = hps_import_pipedream(b.data, b.len, "g", &c, &o, &p, &r, NULL);
		hps_mem_fail_at(0);
		hps_buf_release(&b);
		if (st == HPS_MEMORY)
			assert_null(p.size);
	}
	assert_int_equal(st, HPS_OK);
	assert_true(n > 20);
	hps_profile_release(&p);
	hps_cluster_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_cycle_is_named),
		cmocka_unit_test(test_huge_counts),
		cmocka_unit_test(test_batch_and_type_must_be_known),
		cmocka_unit_test(test_unrelated_type),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
