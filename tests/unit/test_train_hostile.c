/* What may a neighbour send to a replica? Nothing that does not hold: it is told, and named, and
 * the replica is as it was. */
#include <stdlib.h>
#include <string.h>
#include "cm.h"

#include "base/rng.h"
#include "ps/shard.h"
#include "tensor/backend.h"
#include "tiny.h"
#include "train/replica.h"

enum { BATCH = 24, FIRST = 2, HERE = 3, LAST = 4 }; /* nodes: 1 the shard, 2, 3, 4 the stages */

/* The middle one of three stages, in step 0 of an epoch, with its shard. */
struct setup {
	struct tiny tiny;
	struct hps_replica *r;
	struct hps_shard *shard;
	struct hps_outbox out;
	bool ended;
};

static void on_event(void *ctx, const struct hps_replica_event *e)
{
	struct setup *s = ctx;

	s->ended |= e->kind == HPS_REPLICA_EPOCH_DONE;
}

static void on_give_back(void *ctx, struct hps_batch *b)
{
	(void)ctx;
	(void)b;
}

static enum hps_status take(struct setup *s, struct hps_msg *m, struct hps_err *err)
{
	return hps_replica_message(s->r, m, &s->out, err);
}

/* What is for the shard goes there and its answers come back; the rest is dropped. */
static void settle(struct setup *s)
{
	while (s->out.n) {
		struct hps_outbox asked = s->out, answers = { 0 };
		struct hps_err err = { 0 };

		s->out = (struct hps_outbox){ 0 };
		for (size_t i = 0; i < asked.n; i++)
			if (asked.item[i].dst == 1) {
				struct hps_msg m = asked.item[i].msg;

				asked.item[i].msg = (struct hps_msg){ 0 };
				m.head.src = HERE;
				assert_int_equal(hps_shard_handle(s->shard, &m, &answers, &err),
						 HPS_OK);
			}
		hps_outbox_release(&asked);
		for (size_t i = 0; i < answers.n; i++) {
			struct hps_msg m = answers.item[i].msg;

			answers.item[i].msg = (struct hps_msg){ 0 };
			if (take(s, &m, &err) != HPS_OK)
				fail_msg("%s: %s", err.where, err.msg);
		}
		hps_outbox_release(&answers);
	}
}

static void setup(struct setup *s)
{
	struct tiny_shape shape = { "2emb", 3, { 1, 1, 1 }, 1, 2, BATCH, HPS_DENSE_PS, HPS_BSP };
	struct hps_order start = { .kind = HPS_ORDER_START }, epoch = { .kind = HPS_ORDER_EPOCH };
	struct hps_replica_opts o = { .stage = 1,
				      .incarnation = 1,
				      .seed = 7,
				      .event = on_event,
				      .give_back = on_give_back,
				      .ctx = s };

	memset(s, 0, sizeof *s);
	tiny_init(&s->tiny, &shape);
	o.job = &s->tiny.job;
	o.graph = &s->tiny.graph;
	o.backend = hps_backend_openblas();
	assert_int_equal(hps_replica_new(&o, &s->r, NULL), HPS_OK);
	assert_int_equal(hps_shard_new(o.job, o.graph, 0, &s->shard, NULL), HPS_OK);
	assert_int_equal(hps_replica_order(s->r, &start, &s->out, NULL), HPS_OK);
	assert_int_equal(hps_replica_order(s->r, &epoch, &s->out, NULL), HPS_OK);
	settle(s);
}

static void teardown(struct setup *s)
{
	hps_outbox_release(&s->out);
	hps_replica_free(s->r);
	hps_shard_free(s->shard);
	tiny_release(&s->tiny);
}

static void add(struct hps_msg *m, size_t bytes)
{
	void *p = calloc(1, bytes ? bytes : 1);

	assert_non_null(p);
	assert_int_equal(hps_msg_take(m, p, bytes, NULL), HPS_OK);
}

static const struct hps_cut *cut(const struct setup *s, uint32_t stage)
{
	return &s->tiny.graph.cut[s->tiny.job.deployment.stage[stage].last];
}

/* A FORWARD as stage 0 would send it: `rows` rows of micro-batch mb of step 0. */
static struct hps_msg forward(const struct setup *s, uint32_t mb, uint32_t rows)
{
	const struct hps_cut *c = cut(s, 0);
	struct hps_msg m = {
		.head = { .type = HPS_MSG_FORWARD, .src = FIRST, .mb = mb, .count = rows }
	};

	add(&m, rows * sizeof(uint64_t));
	add(&m, rows * sizeof(float));
	if (c->dense)
		add(&m, rows * s->tiny.job.model.dense * sizeof(float));
	if (c->n_slots)
		add(&m, rows * c->n_slots * sizeof(uint64_t));
	if (c->n_layers)
		add(&m, rows * c->cols * sizeof(float));
	return m;
}

static struct hps_msg backward(const struct setup *s, uint32_t mb, uint32_t rows)
{
	struct hps_msg m = {
		.head = { .type = HPS_MSG_BACKWARD, .src = LAST, .mb = mb, .count = rows }
	};

	add(&m, rows * cut(s, 1)->cols * sizeof(float));
	return m;
}

static struct hps_msg end(uint64_t step)
{
	return (struct hps_msg){ .head = { .type = HPS_MSG_END, .src = FIRST, .step = step } };
}

static void assert_refused(struct setup *s, struct hps_msg m, const char *who, const char *why)
{
	struct hps_err err = { 0 };
	enum hps_status st = take(s, &m, &err);

	if (st != HPS_NET && st != HPS_BAD_INPUT)
		fail_msg("accepted; expected \"%s\"", why);
	if (!strstr(err.where, who) || !strstr(err.msg, why))
		fail_msg("\"%s: %s\"; expected \"%s: %s\"", err.where, err.msg, who, why);
}

static void assert_taken(struct setup *s, struct hps_msg m)
{
	struct hps_err err = { 0 };

	if (take(s, &m, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
}

static void work(struct setup *s)
{
	bool did = true;

	while (did) {
		assert_int_equal(hps_replica_work(s->r, &s->out, &did, NULL), HPS_OK);
		settle(s);
		did |= s->out.n > 0;
	}
}

/* The rest of the epoch, as it should go. */
static void go_on(struct setup *s)
{
	work(s);
	assert_taken(s, backward(s, 1, 12));
	assert_taken(s, backward(s, 0, 12));
	work(s);
	assert_taken(s, end(1));
	assert_true(s->ended);
}

static void test_what_does_not_hold_is_refused(void **state)
{
	struct setup s;
	struct hps_msg m;

	(void)state;
	setup(&s);
	m = forward(&s, 0, 12);
	m.head.src = LAST;
	assert_refused(&s, m, "stage 2 replica 0", "no neighbour");
	m = forward(&s, 0, 12);
	m.head.src = 99;
	assert_refused(&s, m, "node 99", "no neighbour");
	assert_refused(&s, forward(&s, 2, 0), "stage 0 replica 0", "a marker for replica 2");
	assert_refused(&s, forward(&s, 0, 13), "stage 0", "13 rows in micro-batch 0");
	m = forward(&s, 0, 12);
	m.head.step = 8;
	assert_refused(&s, m, "stage 0", "step 8 is far from step 0");
	m = forward(&s, 0, 12);
	m.head.flags = HPS_FLAG_EVAL;
	assert_refused(&s, m, "stage 0", "none is due");
	m = forward(&s, 0, 12);
	m.head.count = 11;
	assert_refused(&s, m, "stage 0", "frame 0");
	m = forward(&s, 0, 12);
	add(&m, 8);
	assert_refused(&s, m, "stage 0", "frames");
	m = forward(&s, 0, 12);
	m.head.count = 0;
	assert_refused(&s, m, "stage 0", "expected 0 frames");
	assert_refused(&s, backward(&s, 0, 12), "stage 2", "is not with it");
	m = end(0);
	add(&m, 8);
	assert_refused(&s, m, "stage 0", "with frames");
	m = (struct hps_msg){ .head = { .type = HPS_MSG_RING, .src = HERE } };
	assert_refused(&s, m, "stage 1", "without a ring");
	m = (struct hps_msg){ .head = { .type = HPS_MSG_PULL, .src = FIRST } };
	assert_refused(&s, m, "stage 0", "not for a replica");

	assert_taken(&s, forward(&s, 0, 12));
	assert_taken(&s, forward(&s, 1, 12));
	assert_refused(&s, forward(&s, 1, 12), "stage 0", "came twice");
	work(&s);
	assert_refused(&s, backward(&s, 0, 11), "stage 2", "is not with it");
	m = backward(&s, 0, 12);
	hps_msg_release(&m);
	assert_refused(&s, m, "stage 2", "frames do not fit");
	assert_refused(&s, end(0), "stage 0", "the end is before step 0");
	go_on(&s);
	teardown(&s);
}

static void test_the_end_is_said_once_and_kept(void **state)
{
	struct setup s;
	struct hps_msg m;

	(void)state;
	setup(&s);
	assert_taken(&s, end(1));
	assert_refused(&s, end(1), "stage 0", "a second end");
	m = forward(&s, 0, 12);
	m.head.step = 1;
	assert_refused(&s, m, "stage 0", "step 1 is past the end");
	teardown(&s);
}

/* Any field of any message changed at random: never a crash, never a hang, and what is valid
 * still works afterwards (if none of them was taken for something). */
static void test_random_changes(void **state)
{
	struct hps_rng rng;

	(void)state;
	hps_rng_init(&rng, 5, 0);
	for (int round = 0; round < 300; round++) {
		struct setup s;

		setup(&s);
		for (int i = 0; i < 40; i++) {
			struct hps_msg m =
				hps_rng_below(&rng, 3)
					? forward(&s, (uint32_t)hps_rng_below(&rng, 2), 12)
					: backward(&s, (uint32_t)hps_rng_below(&rng, 2), 12);
			struct hps_err err = { 0 };
			uint64_t wild = hps_rng_u64(&rng) >> hps_rng_below(&rng, 64);
			uint32_t f = (uint32_t)hps_rng_below(&rng, m.n_frames);
			bool did;

			switch (hps_rng_below(&rng, 10)) {
			case 0:
				m.head.type = (uint16_t)hps_rng_below(&rng, 16);
				break;
			case 1:
				m.head.src = (uint32_t)wild;
				break;
			case 2:
				m.head.step = wild;
				break;
			case 3:
				m.head.mb = (uint32_t)wild;
				break;
			case 4:
				m.head.count = (uint32_t)wild;
				break;
			case 5:
				m.head.flags = (uint32_t)hps_rng_below(&rng, 4);
				break;
			case 6:
				m.frame[f].len = hps_rng_below(&rng, m.frame[f].len + 1);
				break;
			case 7:
				m.frame[m.n_frames - 1].release(m.frame[m.n_frames - 1].data, NULL);
				m.n_frames--;
				break;
			default:
				break;
			}
			if (take(&s, &m, &err) != HPS_OK)
				assert_true(err.msg[0] && err.where[0]);
			if (hps_replica_work(s.r, &s.out, &did, &err) != HPS_OK)
				break;
			settle(&s);
		}
		teardown(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_does_not_hold_is_refused),
		cmocka_unit_test(test_the_end_is_said_once_and_kept),
		cmocka_unit_test(test_random_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
