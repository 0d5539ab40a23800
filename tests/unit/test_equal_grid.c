/* Does the runtime compute what the oracle does, bit for bit, in every shape? The full grid of
 * models, shards, stages, replicas and micro-batches, with messages in random order. */
#include "cm.h"

#include "equal.h"
#include "oracle.h"
#include "router.h"
#include "tiny.h"

/* Three steps, the last one short: with 12 micro-batches some of it are empty. */
enum { BATCH = 13, ROWS = 2 * BATCH + 5, STEPS = 3 };

static const uint32_t micro[] = { 1, 2, 4 };

static void one(const struct tiny_shape *s, uint64_t order)
{
	struct tiny t;
	struct hps_batch data;
	struct oracle *o;
	struct router_result r;
	double loss[STEPS];
	char name[128];

	tiny_name(s, name, sizeof(name));
	tiny_init(&t, s);
	tiny_data(&t.job.model, ROWS, 11, &data);
	o = oracle_new(&t.job, &t.graph);
	for (uint64_t i = 0; i < STEPS; i++) {
		uint64_t end = (i + 1) * BATCH < ROWS ? (i + 1) * BATCH : ROWS;

		loss[i] = oracle_step(o, 0, &data, i * BATCH, end) / (double)(end - i * BATCH);
	}
	router_run(
		&(struct router_opts){
			.job = &t.job, .graph = &t.graph, .train = &data, .order_seed = order },
		&r);
	if (r.status != HPS_OK)
		fail_msg("%s: %s: %s", name, r.err.where, r.err.msg);
	assert_int_equal(r.n_steps, STEPS);
	for (size_t i = 0; i < STEPS; i++)
		if (r.loss[i] != loss[i])
			fail_msg("%s: step %zu: loss %.17g, oracle %.17g", name, i, r.loss[i],
				 loss[i]);
	equal_assert(&t, o, &r, name);
	router_release(&r);
	oracle_free(o);
	hps_batch_release(&data);
	tiny_release(&t);
}

/* All replica counts 1..3 of 1..3 stages, shards 1..3, micro-batches 1, 2, 4, both ways to
 * synchronise dense parameters. */
static void grid(const char *model)
{
	uint64_t n = 0;

	for (uint32_t stages = 1; stages <= 3; stages++)
		for (uint32_t replicas = 0; replicas < (stages == 1   ? 3
							: stages == 2 ? 9
								      : 27);
		     replicas++)
			for (uint32_t at = 0; at < 3 * 3 * 2; at++)
				one(
					&(struct tiny_shape){
						.model = model,
						.stages = stages,
						.replicas = { replicas % 3 + 1,
							      replicas / 3 % 3 + 1,
							      replicas / 9 + 1 },
						.shards = at % 3 + 1,
						.micro_batches = micro[at / 3 % 3],
						.batch = BATCH,
						.dense_sync =
							at / 9 ? HPS_DENSE_RING : HPS_DENSE_PS,
					},
					++n);
	assert_int_equal(n, 39 * 18);
}

static void test_ctrdnn(void **state)
{
	(void)state;
	grid("ctrdnn");
}

static void test_matchnet(void **state)
{
	(void)state;
	grid("matchnet");
}

static void test_2emb(void **state)
{
	(void)state;
	grid("2emb");
}

static void test_nce(void **state)
{
	(void)state;
	grid("nce");
}

/* What the four do not have: two embeddings of one table, adam, sgd, more batches than fit. */
static void test_others(void **state)
{
	static const char *const models[] = { "shared", "ctrdnn-adam", "ctrdnn-sgd",
					      "ctrdnn-mixed" };
	static const struct tiny_shape shapes[] = {
		{ .stages = 1, .replicas = { 2 }, .shards = 2, .micro_batches = 2 },
		{ .stages = 2, .replicas = { 3, 2 }, .shards = 3, .micro_batches = 1 },
		{ .stages = 3, .replicas = { 1, 3, 2 }, .shards = 1, .micro_batches = 4 },
		{ .stages = 3, .replicas = { 2, 1, 1 }, .shards = 9, .micro_batches = 16 },
	};

	(void)state;
	for (size_t m = 0; m < sizeof(models) / sizeof(*models); m++)
		for (size_t i = 0; i < 2 * sizeof(shapes) / sizeof(*shapes); i++) {
			struct tiny_shape s = shapes[i / 2];

			s.model = models[m];
			s.batch = BATCH;
			s.dense_sync = i % 2 ? HPS_DENSE_RING : HPS_DENSE_PS;
			if (s.micro_batches * s.replicas[0] > BATCH)
				s.micro_batches = BATCH / s.replicas[0];
			one(&s, i);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ctrdnn), cmocka_unit_test(test_matchnet),
		cmocka_unit_test(test_2emb),   cmocka_unit_test(test_nce),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
