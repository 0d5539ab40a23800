/* Do replicas, servers and coordinator train together, whatever the order of events? */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"

#include "metric/metric.h"
#include "oracle.h"
#include "router.h"
#include "tiny.h"

enum { BATCH = 24, ROWS = 24 * 5 - 7, TEST_ROWS = 40 };

struct setup {
	struct tiny tiny;
	struct hps_batch train, test;
};

static void setup(struct setup *s, const struct tiny_shape *shape)
{
	tiny_init(&s->tiny, shape);
	tiny_data(&s->tiny.job.model, ROWS, 3, &s->train);
	tiny_data(&s->tiny.job.model, TEST_ROWS, 4, &s->test);
}

static void teardown(struct setup *s)
{
	hps_batch_release(&s->train);
	hps_batch_release(&s->test);
	tiny_release(&s->tiny);
}

static void run(struct setup *s, struct router_opts *o, struct router_result *r)
{
	o->job = &s->tiny.job;
	o->graph = &s->tiny.graph;
	o->train = &s->train;
	router_run(o, r);
	if (r->status != HPS_OK)
		fail_msg("%s: %s", r->err.where, r->err.msg);
}

/* Replicas on hosts of their own: a process each. */
static void spread(struct hps_deployment *d)
{
	for (uint32_t s = 0; s < d->n_stages; s++)
		for (uint32_t k = 0; k < d->stage[s].n_replicas; k++) {
			free(d->stage[s].replica[k].host);
			assert_true(asprintf(&d->stage[s].replica[k].host, "h%u-%u", s, k) > 0);
		}
}

/* Bits of a result: losses, dense parameters, rows of the first table. */
static void assert_same(const struct setup *s, const struct router_result *a,
			const struct router_result *b, const char *what)
{
	float *x = router_dense(a, &s->tiny.graph), *y = router_dense(b, &s->tiny.graph);

	assert_int_equal(a->n_steps, b->n_steps);
	if (memcmp(a->loss, b->loss, a->n_steps * sizeof *a->loss))
		fail_msg("%s: losses differ", what);
	if (memcmp(x, y, s->tiny.graph.n_floats * sizeof *x))
		fail_msg("%s: dense parameters differ", what);
	for (uint32_t t = 0; t < s->tiny.job.model.n_tables; t++)
		assert_int_equal(router_rows(a, t), router_rows(b, t));
	free(x);
	free(y);
}

static const struct tiny_shape shapes[] = {
	{ "ctrdnn", 1, { 1 }, 1, 1, BATCH, HPS_DENSE_PS, HPS_BSP },
	{ "ctrdnn", 1, { 1 }, 2, 3, BATCH, HPS_DENSE_RING, HPS_BSP },
	{ "ctrdnn", 1, { 3 }, 2, 2, BATCH, HPS_DENSE_PS, HPS_BSP },
	{ "ctrdnn", 2, { 1, 3 }, 2, 1, BATCH, HPS_DENSE_PS, HPS_BSP },
	{ "ctrdnn", 2, { 1, 3 }, 1, 1, BATCH, HPS_DENSE_RING, HPS_BSP },
	{ "2emb", 3, { 2, 1, 3 }, 3, 2, BATCH, HPS_DENSE_PS, HPS_BSP },
	{ "matchnet", 3, { 2, 2, 1 }, 2, 4, BATCH, HPS_DENSE_RING, HPS_BSP },
	{ "nce", 2, { 2, 3 }, 2, 4, BATCH, HPS_DENSE_PS, HPS_BSP },
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static void test_any_order_gives_the_same_bits(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SHAPES; i++) {
		struct router_opts o = { .epochs = 2, .order_seed = 1 };
		struct router_result first, again;
		struct setup s;
		char name[200];

		tiny_name(&shapes[i], name, sizeof name);
		setup(&s, &shapes[i]);
		o.test = &s.test;
		run(&s, &o, &first);
		assert_int_equal(first.n_steps, 10);
		for (o.order_seed = 2; o.order_seed < 6; o.order_seed++) {
			if (o.order_seed == 4)
				spread(&s.tiny.job.deployment);
			run(&s, &o, &again);
			assert_same(&s, &first, &again, name);
			router_release(&again);
		}
		router_release(&first);
		teardown(&s);
	}
}

/* A light check against the oracle; the grid is another test's. */
static void test_bits_of_the_oracle(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SHAPES; i++) {
		struct router_opts o = { .order_seed = 9 };
		struct router_result r;
		struct oracle *oracle;
		struct setup s;
		float *dense;
		char name[200];

		tiny_name(&shapes[i], name, sizeof name);
		setup(&s, &shapes[i]);
		run(&s, &o, &r);
		oracle = oracle_new(&s.tiny.job, &s.tiny.graph);
		for (uint64_t t = 0; t < 5; t++) {
			uint64_t end = (t + 1) * BATCH < ROWS ? (t + 1) * BATCH : ROWS;
			double loss = oracle_step(oracle, 0, &s.train, t * BATCH, end);

			assert_int_equal(r.rows[t], end - t * BATCH);
			if (r.loss[t] != loss / (double)r.rows[t])
				fail_msg("%s: step %u: loss %.17g, oracle %.17g", name, (unsigned)t,
					 r.loss[t], loss / (double)r.rows[t]);
		}
		dense = router_dense(&r, &s.tiny.graph);
		if (memcmp(dense, oracle_dense(oracle), s.tiny.graph.n_floats * sizeof *dense))
			fail_msg("%s: dense parameters are not the oracle's", name);
		free(dense);
		oracle_free(oracle);
		router_release(&r);
		teardown(&s);
	}
}

/* --- evaluation --- */

static void test_evaluation_is_of_all_rows_and_repeats(void **state)
{
	double auc = NAN;

	(void)state;
	for (size_t i = 3; i < 6; i++) {
		struct router_opts o = { .order_seed = i };
		const struct hps_doc *e;
		struct router_result r;
		struct setup s;

		setup(&s, &shapes[i]);
		o.test = &s.test;
		run(&s, &o, &r);
		e = router_event(&r, "eval");
		assert_non_null(e);
		assert_int_equal(router_number(e, "rows"), TEST_ROWS);
		assert_true(router_number(e, "auc") >= 0 && router_number(e, "auc") <= 1);
		assert_true(router_number(e, "logloss") > 0);
		if (i > 3 && i < 5) /* other partitions: other rounding, the same ranks */
			assert_true(fabs(router_number(e, "auc") - auc) < 0.02);
		auc = router_number(e, "auc");
		router_release(&r);
		teardown(&s);
	}
}

/* A plain evaluation of what was trained, and its scores, equal the evaluation after it. */
static void test_eval_and_predict_use_the_loaded_model(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SHAPES; i++) {
		struct router_opts o = { .order_seed = 3 };
		struct router_result r, eval, predict;
		struct hps_scores scores = { 0 };
		struct hps_metrics x;
		struct setup s;
		uint64_t rows;

		setup(&s, &shapes[i]);
		o.test = &s.test;
		run(&s, &o, &r);

		o.mode = "eval";
		o.shard = r.shard;
		o.first_step = r.next_step;
		assert_int_equal(r.next_step, 5);
		rows = router_rows(&r, 0);
		r.shard = NULL;
		run(&s, &o, &eval);
		assert_null(router_event(&eval, "step"));
		assert_true(router_number(router_event(&eval, "eval"), "auc") ==
			    router_number(router_event(&r, "eval"), "auc"));
		assert_int_equal(router_number(router_event(&eval, "done"), "steps"), 0);
		assert_int_equal(router_rows(&eval, 0), rows);

		o.mode = "predict";
		o.shard = eval.shard;
		eval.shard = NULL;
		run(&s, &o, &predict);
		assert_int_equal(predict.n_scores, TEST_ROWS);
		assert_int_equal(hps_scores_add(&scores, s.test.row, predict.score, s.test.label,
						TEST_ROWS, NULL),
				 HPS_OK);
		assert_int_equal(hps_scores_metrics(&scores, &x, NULL), HPS_OK);
		assert_true(x.auc.value == router_number(router_event(&eval, "eval"), "auc"));
		hps_scores_release(&scores);
		router_release(&predict);
		router_release(&eval);
		router_release(&r);
		teardown(&s);
	}
}

/* Servers that stay: another run goes on from where the one before ended. */
static void test_training_goes_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SHAPES; i++) {
		struct router_opts o = { .order_seed = 3, .epochs = 10 };
		struct router_result first, second;
		struct setup s;

		setup(&s, &shapes[i]);
		run(&s, &o, &first);
		assert_int_equal(first.next_step, 50);
		o.epochs = 1;
		o.shard = first.shard;
		first.shard = NULL;
		o.first_step = first.next_step;
		run(&s, &o, &second);
		assert_int_equal(second.next_step, 55);
		assert_int_equal(second.n_steps, 5);
		assert_int_equal(router_number(second.event[0], "step"), 50);
		assert_true(second.loss[0] < first.loss[0]);
		router_release(&first);
		router_release(&second);
		teardown(&s);
	}
}

static void test_predict_keeps_input_order_over_many_steps(void **state)
{
	struct tiny_shape shape = { "ctrdnn", 2, { 3, 2 }, 2, 2, 12, HPS_DENSE_PS, HPS_BSP };
	struct router_opts o = { .order_seed = 5 };
	struct router_result r, first, again;
	struct setup s;

	(void)state;
	setup(&s, &shape);
	spread(&s.tiny.job.deployment);
	run(&s, &o, &r);
	hps_batch_release(&s.test);
	tiny_data(&s.tiny.job.model, 12 * 50 + 5, 8, &s.test); /* more than the window */
	o.test = &s.test;
	o.mode = "predict";
	o.first_step = r.next_step;
	o.shard = r.shard;
	r.shard = NULL;
	run(&s, &o, &first);
	o.shard = first.shard;
	first.shard = NULL;
	o.order_seed = 6;
	run(&s, &o, &again);
	assert_int_equal(first.n_scores, 12 * 50 + 5);
	assert_int_equal(again.n_scores, first.n_scores);
	assert_memory_equal(first.score, again.score, first.n_scores * sizeof(float));
	router_release(&again);
	router_release(&first);
	router_release(&r);
	teardown(&s);
}

static void test_eval_needs_a_model(void **state)
{
	struct router_opts o = { .mode = "eval" };
	struct router_result r;
	struct setup s;

	(void)state;
	setup(&s, &shapes[0]);
	o.test = &s.test;
	o.job = &s.tiny.job;
	o.graph = &s.tiny.graph;
	router_run(&o, &r);
	assert_int_equal(r.status, HPS_BAD_INPUT);
	assert_non_null(strstr(r.err.msg, "no trained model"));
	router_release(&r);
	teardown(&s);
}

/* --- data --- */

static void test_skipped_lines_leave_steps_in_place(void **state)
{
	struct router_opts o = { .order_seed = 3 };
	struct router_result r;
	struct setup s;
	uint32_t kept = 0;

	(void)state;
	setup(&s, &shapes[5]);
	for (uint32_t i = 0; i < s.train.rows; i++) {
		/* all of step 2, and a line here and there */
		if ((i >= 48 && i < 72) || i % 11 == 5)
			continue;
		s.train.row[kept] = s.train.row[i];
		s.train.label[kept++] = s.train.label[i];
	}
	s.train.rows = kept;
	run(&s, &o, &r);
	assert_int_equal(r.n_steps, 5);
	assert_int_equal(r.rows[2], 0);
	assert_true(isnan(r.loss[2]));
	assert_int_equal(router_number(router_event(&r, "done"), "samples"), kept);
	assert_int_equal(router_number(router_event(&r, "done"), "skipped"), ROWS - kept);
	router_release(&r);
	teardown(&s);
}

static void test_the_number_of_steps_at_borders(void **state)
{
	static const uint32_t rows[] = { 1, 8, 23, 24, 25, 31, 47, 48, 49 };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct router_opts o = { .order_seed = i };
		struct router_result r;
		struct setup s;

		setup(&s, &shapes[2]);
		spread(&s.tiny.job.deployment);
		s.train.rows = rows[i];
		s.train.end_row = rows[i];
		run(&s, &o, &r);
		assert_int_equal(r.n_steps, (rows[i] + BATCH - 1) / BATCH);
		assert_int_equal(router_number(router_event(&r, "done"), "samples"), rows[i]);
		router_release(&r);
		teardown(&s);
	}
}

static void test_a_loss_that_is_not_finite_ends_the_job(void **state)
{
	struct router_opts o = { .order_seed = 3 };
	struct router_result r;
	struct setup s;

	(void)state;
	setup(&s, &shapes[3]);
	o.job = &s.tiny.job;
	o.graph = &s.tiny.graph;
	o.train = &s.train;
	s.train.feature[(size_t)60 * s.train.dense] = NAN; /* step 2 */
	router_run(&o, &r);
	assert_int_equal(r.status, HPS_BAD_INPUT);
	assert_non_null(strstr(r.err.where, "step 2, micro-batch 0"));
	assert_non_null(strstr(r.err.msg, "loss is nan"));
	assert_non_null(strstr(r.err.msg, "lines 49 to 72"));
	router_release(&r);
	teardown(&s);
}

/* --- stopping --- */

static void test_a_signal_stops_after_a_step_and_saves(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SHAPES; i++)
		for (uint64_t at = 1; at < 60; at += 7) {
			struct router_opts o = { .order_seed = at,
						 .epochs = 3,
						 .interrupt_at = at,
						 .interrupt_serve = at % 2 };
			const struct hps_doc *done;
			struct router_result r;
			struct hps_at root, flag;
			struct setup s;
			bool cut;

			setup(&s, &shapes[i]);
			if (at % 3 == 0)
				spread(&s.tiny.job.deployment);
			o.test = &s.test;
			run(&s, &o, &r);
			done = router_event(&r, "done");
			assert_non_null(done);
			root = hps_at_root(done, "done");
			flag = hps_at_member(&root, "interrupted");
			assert_int_equal(router_number(done, "steps"), r.n_steps);
			if (r.n_steps < 15)
				assert_int_equal(hps_at_bool(&flag, &cut, NULL), HPS_OK);
			for (uint64_t t = 0; t < r.n_steps; t++)
				assert_int_equal(r.rows[t], t % 5 < 4 ? BATCH : ROWS - 4 * BATCH);
			assert_int_equal(r.next_step, r.n_steps);
			router_release(&r);
			teardown(&s);
		}
}

/* --- asp --- */

static void test_asp_trains_every_row_once(void **state)
{
	static const struct tiny_shape asp[] = {
		{ "ctrdnn", 1, { 1 }, 1, 1, BATCH, HPS_DENSE_PS, HPS_ASP },
		{ "ctrdnn", 1, { 1 }, 2, 2, BATCH, HPS_DENSE_RING, HPS_ASP },
		{ "ctrdnn", 1, { 3 }, 2, 2, BATCH, HPS_DENSE_PS, HPS_ASP },
		{ "2emb", 2, { 2, 3 }, 2, 4, BATCH, HPS_DENSE_PS, HPS_ASP },
		{ "matchnet", 3, { 3, 1, 2 }, 1, 2, BATCH, HPS_DENSE_PS, HPS_ASP },
		{ "nce", 3, { 1, 2, 1 }, 3, 1, BATCH, HPS_DENSE_PS, HPS_ASP },
	};

	(void)state;
	for (size_t i = 0; i < sizeof asp / sizeof *asp; i++)
		for (uint64_t seed = 0; seed < 4; seed++) {
			struct router_opts o = { .order_seed = seed, .epochs = 2 };
			struct router_result r;
			struct setup s;

			setup(&s, &asp[i]);
			o.test = &s.test;
			if (seed & 1)
				spread(&s.tiny.job.deployment);
			run(&s, &o, &r);
			assert_int_equal(router_number(router_event(&r, "done"), "samples"),
					 2 * ROWS);
			assert_int_equal(router_number(router_event(&r, "eval"), "rows"),
					 TEST_ROWS);
			for (uint64_t t = 0; t < r.n_steps; t++)
				assert_true(isfinite(r.loss[t]));
			router_release(&r);
			teardown(&s);
		}
}

static void test_asp_stops_on_a_signal(void **state)
{
	struct tiny_shape shape = { "ctrdnn", 2, { 2, 2 }, 2, 2, BATCH, HPS_DENSE_PS, HPS_ASP };

	(void)state;
	for (uint64_t at = 1; at < 60; at += 6) {
		struct router_opts o = { .order_seed = at, .epochs = 3, .interrupt_at = at };
		struct router_result r;
		struct setup s;

		setup(&s, &shape);
		spread(&s.tiny.job.deployment);
		run(&s, &o, &r);
		assert_true(router_number(router_event(&r, "done"), "samples") < 3 * ROWS);
		router_release(&r);
		teardown(&s);
	}
}

static void test_asp_learns_as_bsp_does(void **state)
{
	double loss[2] = { 0 };

	(void)state;
	for (int asp = 0; asp < 2; asp++) {
		struct tiny_shape shape = {
			"ctrdnn", 2, { 2, 1 }, 2, 2, BATCH, HPS_DENSE_PS, asp ? HPS_ASP : HPS_BSP
		};
		struct router_opts o = { .order_seed = 1, .epochs = 20 };
		struct router_result r;
		struct setup s;

		setup(&s, &shape);
		run(&s, &o, &r);
		loss[asp] = router_number(router_event(&r, "done"), "loss");
		assert_true(loss[asp] < 0.8 * r.loss[0]);
		router_release(&r);
		teardown(&s);
	}
}

static void test_what_is_not_built_is_refused(void **state)
{
	struct tiny_shape shape = { "ctrdnn", 1, { 2 }, 1, 1, BATCH, HPS_DENSE_RING, HPS_ASP };
	struct router_opts o = { .order_seed = 1 };
	struct router_result r;
	struct setup s;

	(void)state;
	setup(&s, &shape);
	o.job = &s.tiny.job;
	o.graph = &s.tiny.graph;
	o.train = &s.train;
	router_run(&o, &r);
	assert_int_equal(r.status, HPS_BAD_INPUT);
	assert_non_null(strstr(r.err.msg, "\"ring\" with asp is not built"));
	router_release(&r);
	teardown(&s);
}

/* --- no memory --- */

static void test_no_memory_is_an_error_of_the_job(void **state)
{
	static const size_t which[] = { 0, 4, 5, 6 };
	bool failed;

	(void)state;
	for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
		unsigned long n = 1, failures = 0;

		for (failed = true; failed; n += n < 200 ? 1 : n / 40) {
			struct router_opts o = { .order_seed = 1, .fail_at = n };
			struct router_result r;
			struct setup s;

			setup(&s, &shapes[which[i]]);
			o.test = &s.test;
			o.job = &s.tiny.job;
			o.graph = &s.tiny.graph;
			o.train = &s.train;
			router_run(&o, &r);
			/* what a shard or the reader asked for may have been done without */
			failed = r.status != HPS_OK || n < 200;
			if (r.status != HPS_OK)
				assert_int_equal(r.status, HPS_MEMORY);
			failures += r.status != HPS_OK;
			router_release(&r);
			teardown(&s);
		}
		assert_true(failures > 150);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order_gives_the_same_bits),
		cmocka_unit_test(test_bits_of_the_oracle),
		cmocka_unit_test(test_evaluation_is_of_all_rows_and_repeats),
		cmocka_unit_test(test_eval_and_predict_use_the_loaded_model),
		cmocka_unit_test(test_training_goes_on),
		cmocka_unit_test(test_predict_keeps_input_order_over_many_steps),
		cmocka_unit_test(test_eval_needs_a_model),
		cmocka_unit_test(test_skipped_lines_leave_steps_in_place),
		cmocka_unit_test(test_the_number_of_steps_at_borders),
		cmocka_unit_test(test_a_loss_that_is_not_finite_ends_the_job),
		cmocka_unit_test(test_a_signal_stops_after_a_step_and_saves),
		cmocka_unit_test(test_asp_trains_every_row_once),
		cmocka_unit_test(test_asp_stops_on_a_signal),
		cmocka_unit_test(test_asp_learns_as_bsp_does),
		cmocka_unit_test(test_what_is_not_built_is_refused),
		cmocka_unit_test(test_no_memory_is_an_error_of_the_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
