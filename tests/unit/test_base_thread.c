/* Threads and the queue: nothing is lost, repeated or reordered, and closing wakes all. */
#include "cm.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/thread.h"

enum { PRODUCERS = 3, CONSUMERS = 3, ITEMS = 2000 };

struct traffic {
	struct hps_queue *q;
	int item[PRODUCERS][ITEMS];
	atomic_int seen[PRODUCERS][ITEMS];
	atomic_int next, disorder;
};

static void *produce(void *arg)
{
	struct traffic *t = arg;
	int me = atomic_fetch_add(&t->next, 1);

	for (int i = 0; i < ITEMS; i++)
		if (!hps_queue_put(t->q, &t->item[me][i]))
			abort();
	return NULL;
}

static void *consume(void *arg)
{
	struct traffic *t = arg;
	int *p, last[PRODUCERS] = { -1, -1, -1 };

	while ((p = hps_queue_get(t->q))) {
		int n = (int)(p - &t->item[0][0]), who = n / ITEMS;

		atomic_fetch_add(&t->seen[who][n % ITEMS], 1);
		if (n % ITEMS <= last[who])
			atomic_fetch_add(&t->disorder, 1);
		last[who] = n % ITEMS;
	}
	return NULL;
}

static void test_many(void **state)
{
	struct traffic *t = hps_calloc(1, sizeof(*t), NULL);
	pthread_t p[PRODUCERS], c[CONSUMERS];
	struct hps_err err = { 0 };

	assert_non_null(t);
	t->q = hps_queue_new(4, &err);
	assert_non_null(t->q);
	for (int i = 0; i < CONSUMERS; i++)
		assert_int_equal(hps_thread_start(&c[i], "consumer", consume, t, &err), HPS_OK);
	for (int i = 0; i < PRODUCERS; i++)
		assert_int_equal(hps_thread_start(&p[i], "producer", produce, t, &err), HPS_OK);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(p[i], NULL);
	hps_queue_close(t->q);
	for (int i = 0; i < CONSUMERS; i++)
		pthread_join(c[i], NULL);
	for (int i = 0; i < PRODUCERS; i++)
		for (int k = 0; k < ITEMS; k++)
			assert_int_equal(t->seen[i][k], 1);
	assert_int_equal(t->disorder, 0); /* one consumer sees one producer's items in order */
	hps_queue_free(t->q);
	free(t);
}

static void *put_one(void *arg)
{
	static int extra;

	return hps_queue_put(arg, &extra) ? arg : NULL;
}

static void *get_one(void *arg)
{
	return hps_queue_get(arg) ? arg : NULL;
}

static void test_close(void **state)
{
	struct hps_queue *q = hps_queue_new(2, NULL);
	int a = 1, b = 2;
	void *got;
	pthread_t t;

	assert_non_null(q);
	assert_true(hps_queue_put(q, &a));
	assert_true(hps_queue_put(q, &b));
	/* A put that waits on a full queue gives up when it is closed; what is in stays. */
	assert_int_equal(hps_thread_start(&t, "put", put_one, q, NULL), HPS_OK);
	hps_queue_close(q);
	pthread_join(t, &got);
	assert_null(got);
	assert_false(hps_queue_put(q, &a));
	assert_ptr_equal(hps_queue_get(q), &a);
	assert_ptr_equal(hps_queue_get(q), &b);
	assert_null(hps_queue_get(q));
	hps_queue_free(q);

	/* A get that waits on an empty queue wakes too. */
	q = hps_queue_new(0, NULL); /* at least one place */
	assert_non_null(q);
	assert_int_equal(hps_thread_start(&t, "get", get_one, q, NULL), HPS_OK);
	hps_queue_close(q);
	pthread_join(t, &got);
	assert_null(got);
	hps_queue_free(q);
	hps_queue_free(NULL);
}

static void *look_around(void *arg)
{
	char *name = arg;
	sigset_t mask;

	pthread_getname_np(pthread_self(), name, 16);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	return sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT) ? name : NULL;
}

static void test_start(void **state)
{
	char name[16] = "";
	sigset_t before, after;
	void *got;
	pthread_t t;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(hps_thread_start(&t, "a-name-that-is-too-long", look_around, name, NULL),
			 HPS_OK);
	pthread_join(t, &got);
	assert_ptr_equal(got, name); /* signals are blocked in it */
	assert_string_equal(name, "a-name-that-is-");
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

static void test_no_memory(void **state)
{
	struct hps_err err = { 0 };
	pthread_t t;

	for (unsigned long n = 1; n <= 2; n++) {
		hps_mem_fail_at(n);
		assert_null(hps_queue_new(4, &err));
		assert_int_equal(err.status, HPS_MEMORY);
	}
	hps_mem_fail_at(1);
	assert_int_equal(hps_thread_start(&t, "x", look_around, NULL, &err), HPS_MEMORY);
	hps_mem_fail_at(0);
	assert_null(hps_queue_new(SIZE_MAX / 2, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
