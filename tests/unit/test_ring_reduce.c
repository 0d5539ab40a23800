/* Do all ranks of a ring end with the bits of the stated order, whatever the delivery, and
 * does a hostile message change nothing?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "ring/ring.h"

enum { MAX_K = 5, QUEUE = 64 };

/* A router: one FIFO from each rank to the next, any of them delivered next. */
struct net {
	uint32_t k;
	struct hps_ring *ring[MAX_K];
	float *vec[MAX_K];
	uint64_t n;
	struct hps_msg queue[MAX_K][QUEUE]; /* to rank */
	uint32_t head[MAX_K], tail[MAX_K];
	uint64_t to_start[MAX_K], n_done[MAX_K]; /* steps */
	bool running[MAX_K];
	struct hps_rng rng;
};

static void post(struct net *t, struct hps_outbox *out)
{
	for (size_t i = 0; i < out->n; i++) {
		uint32_t dst = out->item[i].dst - 10; /* node numbers are ranks + 10 */

		assert_true(dst < t->k);
		assert_true(t->tail[dst] - t->head[dst] < QUEUE);
		t->queue[dst][t->tail[dst]++ % QUEUE] = out->item[i].msg;
	}
	out->n = 0;
	hps_outbox_release(out);
}

static void open_net(struct net *t, uint32_t k, uint64_t n, uint64_t seed)
{
	struct hps_err err;

	memset(t, 0, sizeof(*t));
	t->k = k;
	t->n = n;
	hps_rng_init(&t->rng, seed, 0);
	for (uint32_t i = 0; i < k; i++) {
		assert_int_equal(hps_ring_new(i, k, 10 + (i + 1) % k, n, &t->ring[i], &err),
				 HPS_OK);
		t->vec[i] = calloc(n + 1, sizeof(float));
		assert_non_null(t->vec[i]);
	}
}

static void close_net(struct net *t)
{
	for (uint32_t i = 0; i < t->k; i++) {
		while (t->head[i] != t->tail[i])
			hps_msg_release(&t->queue[i][t->head[i]++ % QUEUE]);
		hps_ring_free(t->ring[i]);
		free(t->vec[i]);
	}
}

/* Gradients over ten orders of magnitude, so that the order of a sum shows in its bits. */
static float gradient(uint64_t step, uint32_t rank, uint64_t i)
{
	uint64_t h = hps_hash3(step, rank, i);

	return hps_unit_float(h) * (float)(1u << (h >> 59));
}

static uint64_t samples(uint64_t step, uint32_t rank)
{
	return 100 * step + 10 * rank + 1;
}

/* The stated sum of element i. */
static float total_of(uint32_t k, uint32_t chunk, uint64_t step, uint64_t i)
{
	float sum = gradient(step, chunk, i);

	for (uint32_t j = 1; j < k; j++)
		sum = sum + gradient(step, (chunk + j) % k, i);
	return sum;
}

static void check_result(struct net *t, uint32_t rank, uint64_t step)
{
	uint64_t covered = 0, count = 0;

	for (uint32_t c = 0; c < t->k; c++) {
		uint64_t first, len;

		hps_ring_chunk(t->n, t->k, c, &first, &len);
		assert_int_equal(first, covered);
		covered += len;
		assert_true(covered == t->n || covered % 16 == 0);
		for (uint64_t i = first; i < first + len; i++) {
			float want = total_of(t->k, c, step, i);

			if (memcmp(&want, &t->vec[rank][i], sizeof(want)) != 0)
				fail_msg("k %u n %llu rank %u element %llu: %.9g, not %.9g", t->k,
					 (unsigned long long)t->n, rank, (unsigned long long)i,
					 (double)t->vec[rank][i], (double)want);
		}
		count += samples(step, c);
	}
	assert_int_equal(covered, t->n);
	assert_int_equal(hps_ring_count(t->ring[rank]), count);
}

static void finished(struct net *t, uint32_t rank)
{
	check_result(t, rank, t->n_done[rank]++);
	t->running[rank] = false;
	/* the vector is the caller's again: what is still under way must not depend on it */
	memset(t->vec[rank], 0xff, t->n * sizeof(float));
}

static void start(struct net *t, uint32_t rank)
{
	struct hps_outbox out = { 0 };
	uint64_t step = t->to_start[rank]++;
	struct hps_err err;
	bool done;

	for (uint64_t i = 0; i < t->n; i++)
		t->vec[rank][i] = gradient(step, rank, i);
	t->running[rank] = true;
	if (hps_ring_start(t->ring[rank], step, t->vec[rank], samples(step, rank), &out, &done,
			   &err) != HPS_OK)
		fail_msg("%s", err.msg);
	post(t, &out);
	if (done)
		finished(t, rank);
}

static void deliver(struct net *t, uint32_t rank)
{
	struct hps_outbox out = { 0 };
	struct hps_err err;
	bool done;

	if (hps_ring_message(t->ring[rank], &t->queue[rank][t->head[rank]++ % QUEUE], &out, &done,
			     &err) != HPS_OK)
		fail_msg("%s", err.msg);
	post(t, &out);
	if (done)
		finished(t, rank);
}

/* Run `steps` steps, each rank starting its next one and each message arriving at random. */
static void run(struct net *t, uint64_t steps)
{
	for (;;) {
		uint32_t can[2 * MAX_K], n = 0, pick;

		for (uint32_t i = 0; i < t->k; i++) {
			if (!t->running[i] && t->to_start[i] < steps)
				can[n++] = i;
			if (t->head[i] != t->tail[i])
				can[n++] = MAX_K + i;
		}
		if (n == 0)
			break;
		pick = can[hps_rng_below(&t->rng, n)];
		if (pick < MAX_K)
			start(t, pick);
		else
			deliver(t, pick - MAX_K);
	}
	for (uint32_t i = 0; i < t->k; i++)
		assert_int_equal(t->n_done[i], steps);
}

static void all_ranks_get_the_stated_bits(void **state)
{
	static const uint64_t size[] = {
		0, 1, 15, 16, 17, 31, 33, 64, 79, 80, 81, 100, 1000, 4097
	};
	struct net *t = malloc(sizeof(*t));

	(void)state;
	assert_non_null(t);
	for (uint32_t k = 1; k <= MAX_K; k++)
		for (size_t s = 0; s < sizeof(size) / sizeof(size[0]); s++)
			for (uint64_t seed = 0; seed < 8; seed++) {
				open_net(t, k, size[s], seed);
				run(t, 4);
				close_net(t);
			}
	free(t);
}

/* Every rank but one runs as far as it can before that one starts: its messages wait. */
static void early_messages_are_kept(void **state)
{
	struct net *t = malloc(sizeof(*t));

	(void)state;
	assert_non_null(t);
	for (uint32_t k = 2; k <= MAX_K; k++)
		for (uint32_t late = 0; late < k; late++) {
			open_net(t, k, 333, 0);
			for (uint64_t step = 0; step < 3; step++) {
				uint32_t got = 0;
				bool moved = true;

				for (uint32_t i = 0; i < k; i++)
					if (i != late)
						start(t, i);
				while (moved) {
					moved = false;
					for (uint32_t i = 0; i < k; i++)
						while (t->head[i] != t->tail[i]) {
							got += i == late;
							deliver(t, i);
							moved = true;
						}
				}
				assert_int_equal(got, k - 1);
				assert_int_equal(t->n_done[(late + 1) % k], step);
				start(t, late);
				run(t, step + 1);
			}
			close_net(t);
		}
	free(t);
}

static void first_step_may_be_any(void **state)
{
	struct hps_ring *r;
	struct hps_outbox out = { 0 };
	struct hps_err err;
	float vec[32] = { 0 };
	bool done;

	(void)state;
	assert_int_equal(hps_ring_new(0, 1, 10, 32, &r, &err), HPS_OK);
	assert_int_equal(hps_ring_start(r, 7, vec, 3, &out, &done, &err), HPS_OK);
	assert_true(done);
	assert_int_equal(hps_ring_count(r), 3);
	assert_int_equal(hps_ring_start(r, 9, vec, 3, &out, &done, &err), HPS_NET);
	assert_int_equal(hps_ring_start(r, 8, vec, 4, &out, &done, &err), HPS_OK);
	assert_int_equal(hps_ring_count(r), 4);
	assert_int_equal(out.n, 0);
	hps_ring_free(r);
}

static struct hps_msg ring_msg(uint64_t step, uint32_t round, size_t floats, uint64_t count)
{
	struct hps_msg m = {
		.head = { .type = HPS_MSG_RING, .step = step, .arg = round, .aux = count }
	};
	struct hps_err err;

	assert_int_equal(hps_msg_take(&m, calloc(floats + 1, 4), 4 * floats, &err), HPS_OK);
	return m;
}

static void refused(struct hps_ring *r, struct hps_msg m)
{
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	bool done = true;

	assert_int_equal(hps_ring_message(r, &m, &out, &done, &err), HPS_NET);
	assert_true(err.msg[0] != '\0');
	assert_false(done);
	assert_int_equal(out.n, 0);
	assert_int_equal(m.n_frames, 0); /* taken */
}

static void hostile_messages_change_nothing(void **state)
{
	struct hps_outbox out = { 0 };
	struct hps_ring *r, *one;
	struct hps_err err;
	struct hps_msg m;
	float vec[96], before[96];
	bool done;

	(void)state;
	assert_int_equal(hps_ring_new(0, 1, 10, 96, &one, &err), HPS_OK);
	refused(one, ring_msg(0, 0, 32, 1));
	hps_ring_free(one);

	/* k = 3, chunks of 32 floats; before the start only rounds 0 and 1 are possible */
	assert_int_equal(hps_ring_new(0, 3, 11, 96, &r, &err), HPS_OK);
	refused(r, ring_msg(5, 1, 32, 1));
	refused(r, ring_msg(5, 2, 32, 1));
	refused(r, ring_msg(5, 4000000000u, 32, 1));
	refused(r, ring_msg(5, 0, 31, 1));
	refused(r, ring_msg(5, 0, 33, 1));
	m = ring_msg(5, 0, 32, 1);
	m.head.type = HPS_MSG_PUSH;
	refused(r, m);
	m = ring_msg(5, 0, 32, 1);
	m.head.flags = HPS_FLAG_EVAL;
	refused(r, m);
	m = ring_msg(5, 0, 32, 1);
	assert_int_equal(hps_msg_copy(&m, "x", 1, &err), HPS_OK);
	refused(r, m);
	m = ring_msg(5, 0, 32, 1);
	hps_msg_release(&m);
	refused(r, m);

	m = ring_msg(5, 0, 32, 1);
	assert_int_equal(hps_ring_message(r, &m, &out, &done, &err), HPS_OK); /* kept */
	refused(r, ring_msg(5, 0, 32, 1));
	refused(r, ring_msg(6, 1, 32, 1));
	assert_int_equal(hps_ring_start(r, 4, vec, 2, &out, &done, &err), HPS_NET);

	for (int i = 0; i < 96; i++)
		vec[i] = (float)i;
	assert_int_equal(hps_ring_start(r, 5, vec, 2, &out, &done, &err), HPS_OK);
	assert_false(done);
	assert_int_equal(out.n, 2); /* own chunk; what was kept, passed on */
	assert_int_equal(out.item[1].msg.head.aux, 3);
	hps_outbox_release(&out);
	memset(&out, 0, sizeof(out));
	memcpy(before, vec, sizeof(vec));
	assert_int_equal(hps_ring_start(r, 6, vec, 2, &out, &done, &err), HPS_NET);
	refused(r, ring_msg(5, 0, 32, 1));
	refused(r, ring_msg(5, 2, 32, 1));
	refused(r, ring_msg(6, 0, 32, 1));
	refused(r, ring_msg(4, 1, 32, 1));
	refused(r, ring_msg(5, 1, 16, 1));
	refused(r, ring_msg(5, 1, 32, UINT64_MAX)); /* the count would overflow */
	assert_memory_equal(before, vec, sizeof(vec));

	m = ring_msg(5, 1, 32, 40);
	assert_int_equal(hps_ring_message(r, &m, &out, &done, &err), HPS_OK);
	refused(r, ring_msg(5, 2, 32, 41)); /* the total is 42 */
	m = ring_msg(5, 2, 32, 42);
	assert_int_equal(hps_ring_message(r, &m, &out, &done, &err), HPS_OK);
	m = ring_msg(5, 3, 32, 42);
	assert_int_equal(hps_ring_message(r, &m, &out, &done, &err), HPS_OK);
	assert_true(done);
	assert_int_equal(hps_ring_count(r), 42);
	hps_outbox_release(&out);
	hps_ring_free(r);
}

/* A kept message and one under way are freed with the ring; leak checkers see to it. */
static void a_ring_may_be_freed_in_the_middle(void **state)
{
	struct net *t = malloc(sizeof(*t));

	(void)state;
	assert_non_null(t);
	open_net(t, 4, 500, 1);
	start(t, 0);
	start(t, 1);
	deliver(t, 1);
	deliver(t, 2);
	deliver(t, 2);
	close_net(t);
	free(t);
}

static void chunks_of_huge_vectors(void **state)
{
	uint64_t n = (uint64_t)1 << 62, end = 0, first, len;

	(void)state;
	for (uint32_t c = 0; c < 1000; c++) {
		hps_ring_chunk(n - 5, 1000, c, &first, &len);
		assert_true(first == end);
		end = first + len;
	}
	assert_true(end == n - 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_get_the_stated_bits),
		cmocka_unit_test(early_messages_are_kept),
		cmocka_unit_test(first_step_may_be_any),
		cmocka_unit_test(hostile_messages_change_nothing),
		cmocka_unit_test(a_ring_may_be_freed_in_the_middle),
		cmocka_unit_test(chunks_of_huge_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
