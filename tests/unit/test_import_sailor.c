/* Sailor's profiles: times, fits, alpha by hand; types that follow; what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"
#include "base/mem.h"
#include "import/import.h"
#include "job_case.h"

/* Two layers: forward 1 + m, backward 2 m, update 0.25; and forward 0, backward 1, update 0.5.
 * At micro-batch 2 all layers take 8, on two units 6, on four 5: alpha is 1/2. */
static const char a100[] = "{\"1\": {\"1\": {\"0\": [2, 2, 0.25], \"1\": [0, 1, 0.5]}},"
			   " \"2\": {\"4\": {\"0\": [1, 3, 9], \"1\": [0, 1, 9]},"
			   "         \"1\": {\"1\": [0, 1, 0.5], \"0\": [3, 4, 0.25]},"
			   "         \"2\": {\"0\": [2, 3, 9], \"1\": [0, 1, 9]}},"
			   " \"4\": {\"1\": {\"0\": [5, 8, 0.25], \"1\": [0, 1, 0.5]}},"
			   " \"8\": {\"2\": {\"0\": [1, 1, 1], \"1\": [1, 1, 1]}}}";
/* One unit alone, no micro-batch 4: 3 m and 3, and 1 m and 0. */
static const char v100[] = "{\"2\": {\"1\": {\"0\": [6, 3, 1], \"1\": [2, 0, 1]}},"
			   " \"1\": {\"1\": {\"0\": [3, 3, 1], \"1\": [1, 0, 1]}}}";

static const char types_text[] =
	"{\"types\": [{\"name\": \"cpu\", \"price\": 1},"
	" {\"name\": \"a100\", \"device\": \"cuda\", \"price\": 1, \"like\": \"cpu\", \"speed\": 8},"
	" {\"name\": \"v100\", \"device\": \"cuda\", \"price\": 1}]}";

struct given {
	struct hps_cluster cluster;
	struct hps_doc *doc[3];
};

static void give(struct given *g, const char *a, const char *v)
{
	struct hps_doc *d = job_case_parse(types_text);
	struct hps_at at = hps_at_root(d, "c");

	assert_int_equal(hps_cluster_read(&at, &g->cluster, NULL), HPS_OK);
	hps_doc_free(d);
	g->doc[0] = NULL;
	g->doc[1] = a ? job_case_parse(a) : NULL;
	g->doc[2] = v ? job_case_parse(v) : NULL;
}

static void take(struct given *g)
{
	hps_cluster_release(&g->cluster);
	for (size_t i = 0; i < 3; i++)
		hps_doc_free(g->doc[i]);
}

static enum hps_status import(const struct given *g, double batch, struct hps_profile *p,
			      struct hps_import_report *r, struct hps_err *err)
{
	static const char *const name[] = { "cpu.json", "a100.json", "v100.json" };
	const struct hps_import_options o = { .batch = batch };

	return hps_import_sailor(g->doc, name, &g->cluster, &o, p, r, err);
}

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-12 * fmax(fabs(want), 1e-3)))
		fail_msg("expected %.17g, got %.17g", want, got);
}

static void is_time(const struct hps_layer_time *t, double oct, double alpha, double f0, double f1,
		    double b0, double b1)
{
	near(t->oct, oct);
	near(t->alpha, alpha);
	near(t->forward.c0, f0);
	near(t->forward.c1, f1);
	near(t->backward.c0, b0);
	near(t->backward.c1, b1);
}

static void test_two_types(void **state)
{
	struct hps_import_report r;
	struct hps_profile p;
	struct given g;

	(void)state;
	give(&g, a100, v100);
	assert_int_equal(import(&g, 0, &p, &r, NULL), HPS_OK);
	assert_int_equal(r.n_measured, 2);
	assert_string_equal(r.type, "a100");
	assert_true(r.batch_found);
	assert_int_equal(p.digest, 0);
	near(p.batch, 2);
	assert_int_equal(p.n_batches, 2);
	near(p.batches[0], 1);
	near(p.batches[1], 2);
	assert_int_equal(p.n_layers, 2);
	assert_string_equal(p.size[1].name, "layer1");
	/* cpu: eight times a100 */
	is_time(&p.time[0], 56, 0.5, 8, 8, 0, 16);
	assert_true(p.simulated[0]);
	/* a100's line is over 1, 2 and 4, though 4 is no size that both have */
	is_time(&p.time[2], 7, 0.5, 1, 1, 0, 2);
	is_time(&p.time[3], 1, 0.5, 0, 0, 1, 0);
	assert_false(p.simulated[1]);
	near(p.time[2].forward_s[0], 2);
	near(p.time[2].backward_s[1], 4);
	/* v100 has no other parallelism: alpha is each layer's */
	is_time(&p.time[4], 9, 6.0 / 9, 0, 3, 3, 0);
	is_time(&p.time[5], 2, 1, 0, 1, 0, 0);
	assert_false(p.simulated[2]);
	near(p.step_overhead_s, 2);
	hps_profile_release(&p);
	take(&g);
}

static void test_batch(void **state)
{
	struct hps_import_report r;
	struct hps_err err = { 0 };
	struct hps_profile p;
	struct given g;

	(void)state;
	give(&g, a100, v100);
	assert_int_equal(import(&g, 1, &p, &r, NULL), HPS_OK);
	assert_false(r.batch_found);
	near(p.time[2].oct, 4);
	near(p.time[2].alpha, 3.0 / 4); /* no other parallelism at 1: 3 m of 1 + 3 m */
	hps_profile_release(&p);
	assert_int_equal(import(&g, 4, &p, &r, &err), HPS_USAGE);
	assert_non_null(strstr(err.msg, "the largest that was is 2"));
	take(&g);
}

static void test_malformed(void **state)
{
	static const struct {
		const char *text, *where, *what;
	} bad[] = {
		{ "[]", "a100.json", "expected an object" },
		{ "{}", "a100.json", "expected 1 to 1024 micro-batches, got 0" },
		{ "{\"x\": {}}", "a100.json: x", "expected a micro-batch from 1 to" },
		{ "{\"01\": {}}", "a100.json: 01", "expected a micro-batch" },
		{ "{\"0\": {}}", "a100.json: 0", "expected a micro-batch" },
		{ "{\"1\": {}}", "a100.json: 1", "expected 1 to 256 parallelisms, got 0" },
		{ "{\"1\": {\"a\": {}}}", "a100.json: 1.a", "expected a tensor parallelism" },
		{ "{\"1\": {\"1\": {}}}", "a100.json: 1.1", "expected 1 to 4096 layers, got 0" },
		{ "{\"1\": {\"1\": {\"1\": [1, 1, 1]}}}", "a100.json: 1.1", "no layer \"0\"" },
		{ "{\"1\": {\"1\": {\"0\": [1, 1, 1]}, \"2\": {\"0\": [1, 1, 1], \"1\": [1, 1, 1]}}}",
		  "a100.json: 1.2", "2 layers, 1 elsewhere" },
		{ "{\"1\": {\"1\": {\"0\": 3}}}", "a100.json: 1.1.0", "expected an array" },
		{ "{\"1\": {\"1\": {\"0\": [1, 1]}}}", "a100.json: 1.1.0",
		  "expected [forward_s, backward_s, update_s], got 2" },
		{ "{\"1\": {\"1\": {\"0\": [1, -1, 1]}}}", "a100.json: 1.1.0[1]", "got -1" },
		{ "{\"1\": {\"1\": {\"0\": [1, 1, null]}}}", "a100.json: 1.1.0[2]", "" },
		{ "{\"1\": {\"1\": {\"0\": [1e300, 1, 1]}}}", "a100.json: 1.1.0[0]", "got 1e+300" },
		{ "{\"1\": {\"1\": {\"0\": [0, 0, 1]}}}", "type \"a100\"",
		  "no layer takes any time at micro-batch 1" },
		{ "{\"1\": {\"2\": {\"0\": [1, 1, 1]}}}", "", "no micro-batch was measured" },
	};
	struct hps_import_report r;
	struct hps_profile p;
	struct given g;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct hps_err err = { 0 };

		give(&g, bad[i].text, NULL);
		if (import(&g, 0, &p, &r, &err) != HPS_BAD_INPUT ||
		    strcmp(err.where, bad[i].where) || !strstr(err.msg, bad[i].what))
			fail_msg("case %zu: %s: %s", i, err.where, err.msg);
		assert_null(p.size);
		take(&g);
	}
}

static void test_types_must_fit(void **state)
{
	static const char three[] = "{\"1\": {\"1\": {\"0\": [1, 1, 1], \"1\": [1, 1, 1],"
				    " \"2\": [1, 1, 1]}}}";
	struct hps_import_report r;
	struct hps_err err = { 0 };
	struct hps_profile p;
	struct given g;

	(void)state;
	give(&g, NULL, NULL);
	assert_int_equal(import(&g, 0, &p, &r, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "no type of the cluster was measured");
	take(&g);
	give(&g, a100, NULL);
	assert_int_equal(import(&g, 0, &p, &r, &err), HPS_DEVICE);
	assert_string_equal(err.where, "type \"v100\"");
	take(&g);
	give(&g, a100, three);
	assert_int_equal(import(&g, 0, &p, &r, &err), HPS_BAD_INPUT);
	assert_string_equal(err.where, "v100.json: 1.1");
	assert_string_equal(err.msg, "3 layers, 2 elsewhere");
	take(&g);
}

static void test_without_memory(void **state)
{
	enum hps_status st = HPS_MEMORY;
	struct hps_import_report r;
	unsigned long n = 0;
	struct hps_profile p;
	struct given g;

	(void)state;
	give(&g, a100, v100);
	while (st == HPS_MEMORY) {
		hps_mem_fail_at(++n);
		st = import(&g, 0, &p, &r, NULL);
		hps_mem_fail_at(0);
		if (st == HPS_MEMORY)
			assert_null(p.size);
	}
	assert_int_equal(st, HPS_OK);
	assert_true(n > 20);
	hps_profile_release(&p);
	take(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_types),      cmocka_unit_test(test_batch),
		cmocka_unit_test(test_malformed),      cmocka_unit_test(test_types_must_fit),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
