/* Does every first-stage replica get its rows, all of them, in order, and nothing after a stop? */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cm.h"

#include "tiny.h"
#include "train/feeder.h"

enum { BATCH = 12, ROWS = 12 * 20 + 5, MOST = 4096 };

/* Replicas 0 and 2 of three; they take what they are given at once, or not at all. */
struct setup {
	struct tiny tiny;
	char path[64];
	struct hps_feeder *f;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct hps_want got[2][MOST];
	uint64_t rows[2], first_row[2][MOST];
	size_t n[2];
	bool full; /* nobody takes anything */
	uint64_t end;
	uint32_t ends; /* how often the end was told */
	enum hps_status failed;
	char where[400];
};

static bool give(void *ctx, uint32_t i, const struct hps_fed *f)
{
	struct setup *s = ctx;

	pthread_mutex_lock(&s->lock);
	if (s->n[i] < MOST) {
		s->got[i][s->n[i]] = f->want;
		s->first_row[i][s->n[i]++] = f->batch->rows ? f->batch->row[0] : UINT64_MAX;
	}
	s->rows[i] += f->batch->rows;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	hps_feeder_give_back(s->f, f->batch);
	return true;
}

static size_t waiting(void *ctx, uint32_t i)
{
	struct setup *s = ctx;
	size_t n;

	pthread_mutex_lock(&s->lock);
	n = s->full || s->n[i] >= 200 ? MOST : 0;
	pthread_mutex_unlock(&s->lock);
	return n;
}

static void on_data_end(void *ctx, uint32_t epoch, uint64_t rows)
{
	struct setup *s = ctx;

	(void)epoch;
	pthread_mutex_lock(&s->lock);
	s->end = rows;
	s->ends++;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void on_failed(void *ctx, const struct hps_err *err)
{
	struct setup *s = ctx;

	pthread_mutex_lock(&s->lock);
	s->failed = err->status;
	snprintf(s->where, sizeof s->where, "%s", err->where);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void write_rows(struct setup *s, int bad)
{
	FILE *f;
	int fd;

	snprintf(s->path, sizeof s->path, "/tmp/hps-feeder.XXXXXX");
	fd = mkstemp(s->path);
	assert_true(fd >= 0);
	f = fdopen(fd, "w");
	assert_non_null(f);
	for (int i = 0; i < ROWS; i++)
		fprintf(f, i == bad ? "nonsense\n" : "1\t1\t2\t3\ta\tb\tc\td\te\n");
	assert_int_equal(fclose(f), 0);
}

static void setup(struct setup *s, enum hps_sync sync, int bad)
{
	struct tiny_shape shape = { "ctrdnn", 1, { 3 }, 1, 2, BATCH, HPS_DENSE_PS, sync };
	static const uint32_t replica[] = { 0, 2 };
	const char *path = s->path;
	struct hps_reader_opts train = { .path = &path, .n_paths = 1, .parsers = 2, .ahead = 4 };
	struct hps_feeder_opts o = { .replica = replica,
				     .n_replicas = 2,
				     .train = &train,
				     .test = &train,
				     .give = give,
				     .waiting = waiting,
				     .data_end = on_data_end,
				     .failed = on_failed,
				     .ctx = s };
	struct hps_err err = { 0 };

	memset(s, 0, sizeof *s);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	tiny_init(&s->tiny, &shape);
	write_rows(s, bad);
	o.job = &s->tiny.job;
	train.slots = s->tiny.job.model.slots;
	train.dense = s->tiny.job.model.dense;
	train.model = &s->tiny.job.model;
	if (hps_feeder_new(&o, &s->f, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
}

static void teardown(struct setup *s)
{
	hps_feeder_free(s->f);
	tiny_release(&s->tiny);
	unlink(s->path);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
}

static void tell(struct setup *s, struct hps_feed what)
{
	assert_int_equal(hps_feeder_order(s->f, &what, NULL), HPS_OK);
}

static void wait_for(struct setup *s, size_t n0, size_t n1)
{
	pthread_mutex_lock(&s->lock);
	while (s->n[0] < n0 || s->n[1] < n1)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void forget(struct setup *s)
{
	pthread_mutex_lock(&s->lock);
	memset(s->n, 0, sizeof s->n);
	memset(s->rows, 0, sizeof s->rows);
	pthread_mutex_unlock(&s->lock);
}

/* Micro-batches of steps from `base`, the replica's own, ascending. */
static void assert_fixed_split(struct setup *s, uint32_t i, uint64_t base, bool eval)
{
	uint32_t replica = i ? 2 : 0;

	for (size_t k = 0; k < s->n[i]; k++) {
		const struct hps_want *w = &s->got[i][k];

		assert_int_equal(w->step, base + k / 2);
		assert_int_equal(w->mb, replica + k % 2 * 3);
		assert_int_equal(w->begin, (w->step - base) * BATCH + w->mb * 2);
		assert_int_equal(w->end, w->begin + 2);
		assert_int_equal(w->eval, eval);
		assert_true(s->first_row[i][k] == (w->begin < ROWS ? w->begin : UINT64_MAX));
	}
}

static void test_a_fixed_split_goes_to_its_replicas(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, -1);
	tell(&s, (struct hps_feed){ .kind = HPS_FEED_TRAIN, .step = 100, .limit = HPS_NO_STEP });
	wait_for(&s, 44, 44); /* 21 steps are there: past the end ranges come empty */
	tell(&s, (struct hps_feed){ .kind = HPS_FEED_STOP });
	assert_fixed_split(&s, 0, 100, false);
	assert_fixed_split(&s, 1, 100, false);
	/* 20 whole steps of 4 rows; of the last one rows 240 .. 244: micro-batches 0, 2 */
	assert_int_equal(s.rows[0], 20 * 4 + 2);
	assert_int_equal(s.rows[1], 20 * 4 + 1);
	assert_int_equal(s.end, ROWS);
	assert_int_equal(s.ends, 1);
	teardown(&s);
}

static void test_phases_follow_one_another(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, -1);
	for (uint32_t epoch = 0; epoch < 30; epoch++) {
		forget(&s);
		tell(&s, (struct hps_feed){ .kind = HPS_FEED_TRAIN,
					    .epoch = epoch,
					    .step = 7,
					    .limit = HPS_NO_STEP });
		wait_for(&s, epoch % 7, epoch % 5); /* stopped anywhere, at once too */
		tell(&s, (struct hps_feed){ .kind = HPS_FEED_STOP });
		assert_fixed_split(&s, 0, 7, false);
		forget(&s);
		tell(&s, (struct hps_feed){ .kind = HPS_FEED_EVAL, .epoch = epoch, .limit = 3 });
		wait_for(&s, 6, 6);
		tell(&s, (struct hps_feed){ .kind = HPS_FEED_WINDOW, .limit = 5 });
		wait_for(&s, 10, 10);
		tell(&s, (struct hps_feed){ .kind = HPS_FEED_STOP });
		assert_int_equal(s.n[0], 10); /* not beyond the window */
		assert_int_equal(s.n[1], 10);
		assert_fixed_split(&s, 1, 0, true);
	}
	teardown(&s);
}

static void test_leased_chunks_go_where_they_were_leased(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, HPS_ASP, -1); /* chunks of 4 rows, 2 micro-batches */
	tell(&s, (struct hps_feed){ .kind = HPS_FEED_TRAIN, .step = 10, .limit = HPS_NO_STEP });
	tell(&s, (struct hps_feed){ .kind = HPS_FEED_LEASE, .replica = 1, .step = 10 });
	tell(&s, (struct hps_feed){ .kind = HPS_FEED_LEASE, .replica = 0, .step = 13 });
	wait_for(&s, 2, 2);
	tell(&s, (struct hps_feed){ .kind = HPS_FEED_LEASE, .replica = 1, .step = 70 });
	wait_for(&s, 2, 4);
	tell(&s, (struct hps_feed){ .kind = HPS_FEED_STOP });
	assert_int_equal(s.got[1][0].begin, 0);
	assert_int_equal(s.got[0][0].begin, 12);
	assert_int_equal(s.got[0][1].end, 16);
	assert_int_equal(s.got[1][2].begin, 240);
	assert_int_equal(s.rows[1], 4 + 4);
	teardown(&s);
}

static void test_a_bad_line_is_told_once(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, 28);
	tell(&s, (struct hps_feed){ .kind = HPS_FEED_TRAIN, .limit = HPS_NO_STEP });
	pthread_mutex_lock(&s.lock);
	while (!s.failed)
		pthread_cond_wait(&s.changed, &s.lock);
	pthread_mutex_unlock(&s.lock);
	assert_int_equal(s.failed, HPS_BAD_INPUT);
	assert_non_null(strstr(s.where, ":29"));
	tell(&s, (struct hps_feed){ .kind = HPS_FEED_STOP }); /* does not hang */
	teardown(&s);
}

static void test_freed_while_nobody_takes(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct setup s;

		setup(&s, HPS_BSP, -1);
		s.full = true;
		tell(&s, (struct hps_feed){ .kind = HPS_FEED_TRAIN, .limit = HPS_NO_STEP });
		if (i & 1) {
			pthread_mutex_lock(&s.lock);
			s.full = false;
			pthread_mutex_unlock(&s.lock);
			hps_feeder_poke(s.f);
			wait_for(&s, 1, 1);
		}
		teardown(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_fixed_split_goes_to_its_replicas),
		cmocka_unit_test(test_phases_follow_one_another),
		cmocka_unit_test(test_leased_chunks_go_where_they_were_leased),
		cmocka_unit_test(test_a_bad_line_is_told_once),
		cmocka_unit_test(test_freed_while_nobody_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
