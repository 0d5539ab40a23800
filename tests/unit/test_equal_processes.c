/* Does a job of real processes over real sockets compute what the oracle does, bit for bit? Shapes
 * are chosen so that every pair of values of two factors comes up. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cm.h"

#include "base/file.h"
#include "base/rng.h"
#include "child.h"
#include "data/reader.h"
#include "equal.h"
#include "serve/state.h"

enum { BATCH = 13, ROWS = 2 * BATCH + 5 };
extern char **environ;

/* --- pairwise shapes --- */

enum { MODEL, SHARDS, STAGES, REPLICAS0, REPLICAS1, REPLICAS2, MICRO, DENSE, HOSTS, N_FACTORS };
static const int levels[N_FACTORS] = { 4, 3, 3, 3, 3, 3, 3, 2, 2 };
static const char *const models[] = { "ctrdnn", "matchnet", "2emb", "nce" };
enum { MAX_LEVEL = 4, MIN_SHAPES = 24, MAX_SHAPES = 64 };

typedef bool pairs[N_FACTORS][MAX_LEVEL][N_FACTORS][MAX_LEVEL];

static int new_pairs(pairs seen, const int *v, bool mark)
{
	int n = 0;

	for (int f = 0; f < N_FACTORS; f++)
		for (int g = f + 1; g < N_FACTORS; g++) {
			n += !seen[f][v[f]][g][v[g]];
			seen[f][v[f]][g][v[g]] |= mark;
		}
	return n;
}

/* Greedy: of many random shapes the one that brings most pairs, until all have come up. */
static int choose(int shape[MAX_SHAPES][N_FACTORS])
{
	static pairs seen;
	struct hps_rng r;
	int n = 0, left = 0;

	for (int f = 0; f < N_FACTORS; f++)
		for (int g = f + 1; g < N_FACTORS; g++)
			left += levels[f] * levels[g];
	hps_rng_init(&r, 5, 0);
	while (left > 0 || n < MIN_SHAPES) {
		int most = -1, v[N_FACTORS];

		assert_true(n < MAX_SHAPES);
		for (int tries = 0; tries < 500; tries++) {
			int news;

			for (int f = 0; f < N_FACTORS; f++)
				v[f] = (int)hps_rng_below(&r, (uint64_t)levels[f]);
			news = new_pairs(seen, v, false);
			if (news > most) {
				most = news;
				memcpy(shape[n], v, sizeof(v));
			}
		}
		left -= new_pairs(seen, shape[n++], true);
	}
	return n;
}

/* --- a job on disk --- */

static void replace(char **s, const char *dir, const char *what)
{
	free(*s);
	assert_true(asprintf(s, "ipc://%s/%s", dir, what) > 0);
}

/* Real endpoints; on two hosts every other shard and replica is the second one's. */
static void settle(struct hps_deployment *d, const char *dir, bool two_hosts)
{
	uint32_t n = 0;
	char name[32];

	replace(&d->coordinator.endpoint, dir, "c");
	for (uint32_t i = 0; i < d->n_shards; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		replace(&d->shard[i].endpoint, dir, name);
		if (two_hosts && i % 2)
			strcpy(d->shard[i].host, "ther");
	}
	for (uint32_t s = 0; s < d->n_stages; s++)
		for (uint32_t r = 0; r < d->stage[s].n_replicas; r++) {
			snprintf(name, sizeof(name), "r%u-%u", s, r);
			replace(&d->stage[s].replica[r].endpoint, dir, name);
			if (two_hosts && n++ % 2)
				strcpy(d->stage[s].replica[r].host, "ther");
		}
}

static void write_job(const struct tiny *t, const char *path)
{
	struct hps_job job = { .model = t->job.model, .deployment = t->job.deployment };
	struct hps_buf b = HPS_BUF_INIT;

	assert_int_equal(hps_job_update(&job, HPS_MODEL, NULL), HPS_OK);
	assert_int_equal(hps_job_update(&job, HPS_DEPLOYMENT, NULL), HPS_OK);
	assert_int_equal(hps_doc_to_json(job.doc, &b, NULL), HPS_OK);
	assert_int_equal(hps_file_write(path, b.data, b.len, 0600, NULL), HPS_OK);
	hps_buf_release(&b);
	hps_doc_free(job.doc);
}

static void write_rows(const struct hps_model *m, const char *path)
{
	struct hps_rng r;
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	hps_rng_init(&r, 17, 0);
	for (int i = 0; i < ROWS; i++) {
		fprintf(f, "%d", (int)hps_rng_below(&r, 2));
		for (uint32_t c = 0; c < m->dense; c++)
			fprintf(f, "\t%d", (int)hps_rng_below(&r, 100) - 3);
		for (uint32_t c = 0; c < m->slots; c++)
			fprintf(f, "\t%x", (unsigned)hps_rng_below(&r, 9));
		fputc('\n', f);
	}
	assert_int_equal(fclose(f), 0);
}

static bool want_all(void *ctx, uint64_t *begin, uint64_t *end)
{
	bool *asked = ctx;

	*begin = 0;
	*end = ROWS;
	return !*asked && (*asked = true);
}

static void read_rows(const struct hps_model *m, const char *path, struct hps_reader **r,
		      struct hps_batch **b)
{
	static bool asked;
	const struct hps_reader_wants wants = { want_all, &asked };
	bool at_end;

	asked = false;
	assert_int_equal(hps_reader_new(&(struct hps_reader_opts){ .path = &path,
								   .n_paths = 1,
								   .slots = m->slots,
								   .dense = m->dense,
								   .model = m,
								   .parsers = 1,
								   .ahead = 1 },
					r, NULL),
			 HPS_OK);
	assert_int_equal(hps_reader_start(*r, 0, &wants, NULL), HPS_OK);
	assert_int_equal(hps_reader_next(*r, b, &at_end, NULL), HPS_OK);
	assert_int_equal((*b)->rows, ROWS);
}

/* --- its processes --- */

static pid_t start(const char *dir, const char *const *argv)
{
	posix_spawn_file_actions_t fa;
	char path[512], log[512];
	const char *bin = getenv("HPS_BIN");
	pid_t pid;

	snprintf(path, sizeof(path), "%s/%s", bin ? bin : "build/bin", argv[0]);
	snprintf(log, sizeof(log), "%s/log", dir);
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&fa, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	posix_spawn_file_actions_adddup2(&fa, 1, 2);
	assert_int_equal(posix_spawn(&pid, path, &fa, NULL, (char **)(uintptr_t)argv, environ), 0);
	posix_spawn_file_actions_destroy(&fa);
	return pid;
}

static void run_processes(const char *dir, const char *job, const char *data,
			  const struct hps_deployment *d, const char *name)
{
	static const char *const hosts[] = { "here", "ther" };
	char state[512];
	pid_t pid[4];
	int n = 0, status, bad = 0;

	snprintf(state, sizeof(state), "%s/state", dir);
	for (int h = 0; h < 2; h++) {
		bool serves = false, works = false;

		for (uint32_t i = 0; i < d->n_shards; i++)
			serves |= !strcmp(d->shard[i].host, hosts[h]);
		for (uint32_t s = 0; s < d->n_stages; s++)
			for (uint32_t r = 0; r < d->stage[s].n_replicas; r++)
				works |= !strcmp(d->stage[s].replica[r].host, hosts[h]);
		if (serves)
			pid[n++] = start(dir, (const char *[]){ "hps-serve", "--state", state,
								"--host", hosts[h], job, NULL });
		if (works)
			pid[n++] = start(dir, (const char *[]){ "hps-work", "--host", hosts[h], job,
								data, NULL });
	}
	while (n-- > 0) {
		assert_int_equal(waitpid(pid[n], &status, 0), pid[n]);
		bad |= status;
	}
	if (bad) {
		struct hps_buf b = HPS_BUF_INIT;
		char log[512];

		snprintf(log, sizeof(log), "%s/log", dir);
		hps_file_read(log, 0, &b, NULL);
		fail_msg("%s: a process failed (wait status %#x):\n%s", name, bad,
			 b.data ? b.data : "");
	}
}

static void load(const struct tiny *t, const char *dir, struct router_result *r)
{
	struct hps_state s;
	char path[512];
	bool found;

	snprintf(path, sizeof(path), "%s/state", dir);
	assert_int_equal(hps_state_find(path, &s, &found, NULL), HPS_OK);
	assert_true(found);
	*r = (struct router_result){ .n_shards = t->job.deployment.n_shards };
	r->shard = calloc(r->n_shards, sizeof(struct hps_shard *));
	assert_non_null(r->shard);
	for (uint32_t i = 0; i < r->n_shards; i++)
		assert_int_equal(hps_shard_new(&t->job, &t->graph, i, &r->shard[i], NULL), HPS_OK);
	assert_int_equal(hps_state_load(&s, &t->job, r->shard, NULL), HPS_OK);
	hps_state_release(&s);
}

static void one(const int *v)
{
	static const uint32_t micro[] = { 1, 2, 4 };
	struct tiny_shape shape = {
		.model = models[v[MODEL]],
		.shards = (uint32_t)v[SHARDS] + 1,
		.stages = (uint32_t)v[STAGES] + 1,
		.replicas = { (uint32_t)v[REPLICAS0] + 1, (uint32_t)v[REPLICAS1] + 1,
			      (uint32_t)v[REPLICAS2] + 1 },
		.micro_batches = micro[v[MICRO]],
		.batch = BATCH,
		.dense_sync = v[DENSE] ? HPS_DENSE_RING : HPS_DENSE_PS,
	};
	char dir[256], name[128], job[300], data[300];
	struct router_result r;
	struct hps_reader *reader;
	struct hps_batch *b;
	struct oracle *o;
	struct tiny t;

	tiny_name(&shape, name, sizeof(name));
	scratch_make(dir, sizeof(dir));
	snprintf(job, sizeof(job), "%s/job.json", dir);
	snprintf(data, sizeof(data), "%s/data.tsv", dir);
	tiny_init(&t, &shape);
	settle(&t.job.deployment, dir, v[HOSTS]);
	write_job(&t, job);
	write_rows(&t.job.model, data);
	run_processes(dir, job, data, &t.job.deployment, name);

	read_rows(&t.job.model, data, &reader, &b);
	o = oracle_new(&t.job, &t.graph);
	for (uint64_t at = 0; at < ROWS; at += BATCH)
		oracle_step(o, 0, b, at, at + BATCH < ROWS ? at + BATCH : ROWS);
	load(&t, dir, &r);
	equal_assert(&t, o, &r, name);

	router_release(&r);
	oracle_free(o);
	hps_reader_give_back(reader, b);
	hps_reader_free(reader);
	tiny_release(&t);
	scratch_remove(dir);
}

static void test_pairwise(void **state)
{
	int shape[MAX_SHAPES][N_FACTORS], n = choose(shape);

	(void)state;
	assert_true(n >= MIN_SHAPES);
	for (int i = 0; i < n; i++)
		one(shape[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
