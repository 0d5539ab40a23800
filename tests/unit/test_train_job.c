/* Do replicas, servers and coordinator train together, whatever the order of events? */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order_gives_the_same_bits),
		cmocka_unit_test(test_bits_of_the_oracle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
