/* Is everything timed that a profile holds, on real rows and made-up ones, and does it stop when
 * told? The figures themselves are the machine's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "job/job.h"
#include "measure/measure.h"

static char dir[64];

static int setup(void **state)
{
	(void)state;
	scratch_make(dir, sizeof(dir));
	return setenv("TMPDIR", dir, 1);
}

/* Nothing is left of sockets and their locks. */
static int teardown(void **state)
{
	(void)state;
	scratch_remove(dir);
	return unsetenv("TMPDIR");
}

static void load(const char *name, struct hps_model *m)
{
	const char *root = getenv("HPS_ROOT");
	struct hps_err err;
	char path[512];

	snprintf(path, sizeof(path), "%s/testdata/models/narrow/%s.json", root ? root : ".", name);
	if (hps_model_load(path, m, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
}

static void measured(const struct hps_model *m, const struct hps_measure_opts *o,
		     struct hps_profile *p, struct hps_measure_report *r)
{
	struct hps_err err = { 0 };

	if (hps_measure(m, "cpu", hps_backend_openblas(), o, p, r, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
}

static void check_whole(const struct hps_model *m, const struct hps_profile *p, bool dense)
{
	assert_int_equal(p->n_types, 1);
	assert_string_equal(p->type[0], "cpu");
	assert_false(p->simulated[0]);
	assert_true(p->digest == m->digest);
	for (uint32_t l = 0; l < p->n_layers; l++) {
		const struct hps_layer_time *t = &p->time[l];

		for (uint32_t b = 0; b < p->n_batches; b++) {
			assert_true(t->forward_s[b] > 0 && t->forward_s[b] < 10);
			assert_true(t->backward_s[b] > 0 && t->backward_s[b] < 10);
		}
		assert_true(t->oct > 0 && isfinite(t->oct));
		assert_true(t->alpha >= 0 && t->alpha <= 1);
		assert_true(t->forward.c0 >= 0 && t->forward.c1 >= 0);
	}
	assert_true(p->link_measured && p->link.bandwidth > 1e6 && p->link.latency >= 0);
	assert_true(p->shard.measured && p->shard.rows_per_s > 0);
	assert_int_equal(p->shard.bytes_per_s > 0, dense);
	assert_int_equal(p->step_overhead_s > 0, dense);
}

/* The lines are the medians', stretched to what whole passes take. */
static void check_stretch(const struct hps_profile *p, double stretch)
{
	assert_true(stretch > 0.2 && stretch < 50);
	for (uint32_t l = 0; l < p->n_layers; l++) {
		struct hps_fit f;

		hps_fit_affine(p->batches, p->time[l].backward_s, p->n_batches, &f);
		assert_true(fabs(p->time[l].backward.c0 - f.c0 * stretch) <= 1e-12);
		assert_true(fabs(p->time[l].backward.c1 - f.c1 * stretch) <= 1e-12);
	}
}

/* Every model: also those with negatives, shared tables, hinge and nce losses. */
static void every_kind_of_model(void **state)
{
	static const char *const name[] = { "ctrdnn", "matchnet", "2emb",
					    "nce",    "shared",	  "ctrdnn-mixed" };
	struct hps_measure_opts o = { .quick = true };
	struct hps_measure_report r;
	struct hps_profile p;
	struct hps_model m;

	(void)state;
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		uint32_t sizes[HPS_MEASURE_MAX_BATCHES];
		double params = 0;

		load(name[i], &m);
		measured(&m, &o, &p, &r);
		for (uint32_t l = 0; l < p.n_layers; l++)
			params += p.size[l].param_bytes;
		check_whole(&m, &p, params > 0);
		assert_int_equal(p.n_batches, hps_measure_batches(&m, sizes));
		assert_true(p.n_batches >= 4);
		assert_int_equal(r.rows, 0);
		assert_true(r.rounds == 3 && r.pass_s > 0 && r.layers_of_pass > 0);
		assert_non_null(r.worst);
		check_stretch(&p, r.stretch);
		assert_true(p.input_s_per_sample == 0);
		hps_profile_release(&p);
		hps_model_release(&m);
	}
	assert_int_equal(scratch_count(dir), 0);
}

static void default_sizes(void **state)
{
	uint32_t b[HPS_MEASURE_MAX_BATCHES];
	struct hps_model m = { .train = { .batch = 1000, .micro_batches = 1 } };

	(void)state;
	assert_int_equal(hps_measure_batches(&m, b), 4);
	assert_int_equal(b[0], 62);
	assert_int_equal(b[1], 250);
	assert_int_equal(b[2], 1000);
	assert_int_equal(b[3], 2000);
	m.train.micro_batches = 4; /* what a replica works on at a time */
	hps_measure_batches(&m, b);
	assert_int_equal(b[2], 250);
	m.train.batch = m.train.micro_batches = 1;
	assert_int_equal(hps_measure_batches(&m, b), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(b[i], i + 1);
}

/* Rows in which slot 0 is always the same id, and the others never repeat; row `bad` lacks a
 * column. */
static void write_rows(const char *path, int rows, int bad)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (int i = 0; i < rows; i++) {
		fprintf(f, "%d\t%d\t\t%d", i % 2, i, -i);
		fprintf(f, "\tcafe");
		for (int s = 1; s < (i == bad ? 4 : 5); s++)
			fprintf(f, "\t%x", i * 8 + s);
		fprintf(f, "\n");
	}
	assert_int_equal(fclose(f), 0);
}

static void keys_are_counted_in_data(void **state)
{
	const uint32_t sizes[] = { 6, 24, 48 };
	struct hps_measure_opts o = { .quick = true, .batch = sizes, .n_batches = 3 };
	struct hps_measure_report r;
	struct hps_profile p;
	struct hps_model m;
	char path[128];

	(void)state;
	load("ctrdnn", &m);
	m.table[0].rows = 0; /* the whole hash: only equal ids meet */
	snprintf(path, sizeof(path), "%s/rows.tsv", dir);
	write_rows(path, 500, -1);
	o.data = path;
	measured(&m, &o, &p, &r);
	check_whole(&m, &p, true);
	assert_int_equal(r.rows, 500);
	/* 24 rows share one key of slot 0 and have four each for themselves */
	assert_true(fabs(p.size[0].sparse_keys - (4 + 1.0 / 24)) < 1e-9);
	assert_true(p.input_s_per_sample > 0 && p.input_s_per_sample < 1e-2);
	assert_int_equal(p.n_batches, 3);
	hps_profile_release(&p);

	/* fewer rows than a batch: they repeat, and so do their keys */
	write_rows(path, 10, -1);
	measured(&m, &o, &p, &r);
	assert_int_equal(r.rows, 10);
	assert_true(fabs(p.size[0].sparse_keys - 41.0 / 24) < 1e-9);
	hps_profile_release(&p);
	hps_model_release(&m);
}

static void bad_data_is_named(void **state)
{
	struct hps_measure_opts o = { .quick = true };
	struct hps_measure_report r;
	struct hps_profile p;
	struct hps_model m;
	struct hps_err err;
	char path[128], want[160];

	(void)state;
	load("ctrdnn", &m);
	snprintf(path, sizeof(path), "%s/rows.tsv", dir);
	o.data = path;
	assert_int_equal(hps_measure(&m, "cpu", hps_backend_openblas(), &o, &p, &r, &err), HPS_IO);
	write_rows(path, 300, 216);
	assert_int_equal(hps_measure(&m, "cpu", hps_backend_openblas(), &o, &p, &r, &err),
			 HPS_BAD_INPUT);
	snprintf(want, sizeof(want), "%s:217", path);
	if (!strstr(err.where, want))
		fail_msg("%s: %s", err.where, err.msg);
	assert_int_equal(p.n_layers, 0);
	hps_model_release(&m);
}

static int stop_after;

static bool stop(void)
{
	return stop_after-- <= 0;
}

static void told_to_stop_it_stops(void **state)
{
	struct hps_measure_opts o = { .quick = true, .stopped = stop };
	struct hps_measure_report r;
	struct hps_profile p;
	struct hps_model m;
	struct hps_err err;
	int never = 1 << 20, last = 0;

	(void)state;
	load("ctrdnn", &m);
	/* in the link's rounds, in the layers', in the servers' */
	for (int i = 0; i < 200 && last != HPS_OK + 1; i += 19) {
		enum hps_status st;

		stop_after = i;
		st = hps_measure(&m, "cpu", hps_backend_openblas(), &o, &p, &r, &err);
		if (st == HPS_OK) {
			hps_profile_release(&p);
			last = HPS_OK + 1;
			continue;
		}
		assert_int_equal(st, HPS_NO);
		assert_string_equal(err.msg, "interrupted");
		assert_int_equal(p.n_layers, 0);
		assert_int_equal(scratch_count(dir), 0);
	}
	assert_int_equal(last, HPS_OK + 1);
	stop_after = never;
	hps_model_release(&m);
}

static void both_transports(void **state)
{
	struct hps_measure_opts o = { .quick = true };
	struct hps_link link;
	struct hps_err err;

	(void)state;
	for (int tcp = 0; tcp < 2; tcp++) {
		o.tcp = tcp;
		if (hps_measure_link(&o, &link, &err) != HPS_OK)
			fail_msg("%s: %s", err.where, err.msg);
		assert_true(link.bandwidth > 1e6 && link.bandwidth < 1e12);
		assert_true(link.latency >= 0 && link.latency < 1);
	}
	assert_int_equal(scratch_count(dir), 0);
}

int main(void)
{
#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default_sizes), IN_DIR(both_transports),
		IN_DIR(every_kind_of_model),	 IN_DIR(keys_are_counted_in_data),
		IN_DIR(bad_data_is_named),	 IN_DIR(told_to_stop_it_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
