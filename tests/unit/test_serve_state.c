/* Saved states: equal after loading on any number of shards; the old or the new one after a crash;
 * damage and other models refused. */
#include "cm.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "child.h"
#include "ps_case.h"
#include "serve/state.h"

enum { MAX_SHARDS = 5, KEYS = 300 };

static char root[256];

static int make_root(void **state)
{
	scratch_make(root, sizeof(root));
	return 0;
}

static int drop_root(void **state)
{
	scratch_remove(root);
	return 0;
}

/* --- a job's shards, filled by pushes of their own making --- */

struct shards {
	struct ps_case c;
	struct hps_shard *shard[MAX_SHARDS];
	uint32_t n;
};

static void shards_init(struct shards *s, struct ps_case_opts o)
{
	memset(s, 0, sizeof(*s));
	ps_case_init(&s->c, &o);
	s->n = o.shards;
	for (uint32_t i = 0; i < s->n; i++)
		assert_int_equal(hps_shard_new(&s->c.job, &s->c.graph, i, &s->shard[i], NULL),
				 HPS_OK);
}

static void shards_release(struct shards *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		hps_shard_free(s->shard[i]);
	ps_case_release(&s->c);
}

static uint64_t key_at(uint32_t i)
{
	return i == 0 ? 0 : i == 1 ? UINT64_MAX : hps_mix64(i);
}

/* The values depend on the key or the float's number alone, not on the shard. */
static void fill(struct shards *s, float offset)
{
	float param[1000], state[2000];
	uint64_t n = s->c.graph.n_floats;

	for (uint32_t t = 0; t < 2; t++)
		for (uint32_t i = 0; i < KEYS; i++) {
			uint64_t key = t ? i % 50 : key_at(i);
			uint32_t owner = hps_shard_of_key(t, key, s->n);
			struct hps_table *table = hps_shard_table(s->shard[owner], t);
			float row[16];

			for (size_t j = 0; j < hps_table_row_floats(table); j++)
				row[j] = hps_unit_float(hps_hash3(t, key, j)) + offset;
			assert_int_equal(hps_table_put(table, key, row, i + 1, 7, NULL), HPS_OK);
		}
	assert_true(n < 1000);
	for (uint64_t i = 0; i < n; i++) {
		param[i] = (float)i + offset;
		state[i] = (float)i + 0.25f;
		state[n + i] = (float)i + 0.5f;
	}
	for (uint32_t i = 0; i < s->n; i++) {
		assert_int_equal(hps_shard_put_dense(s->shard[i], 0, n, param, state, 11, NULL),
				 HPS_OK);
		hps_shard_start(s->shard[i], 123);
	}
}

static enum hps_status save_as(struct shards *s, const char *host, uint64_t save,
			       struct hps_err *err)
{
	struct hps_state_dir d;
	enum hps_status st = hps_state_open(&d, root, host, err);

	if (st != HPS_OK)
		return st;
	st = hps_state_begin(&d, err);
	for (uint32_t i = 0; i < s->n && st == HPS_OK; i++) {
		struct hps_state_write w = { d.tmp, &s->c.job, &s->c.graph, i, save, 4 };

		st = hps_state_write(&w, s->shard[i], err);
	}
	if (st == HPS_OK)
		st = hps_state_commit(&d, true, err);
	hps_state_close(&d);
	return st;
}

static void must_save(struct shards *s, const char *host, uint64_t save)
{
	struct hps_err err = { 0 };

	if (save_as(s, host, save, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
}

static enum hps_status load_into(struct shards *s, struct hps_state *found, struct hps_err *err)
{
	struct hps_state st;
	bool there;
	enum hps_status rc = hps_state_find(root, &st, &there, err);

	if (rc != HPS_OK)
		return rc;
	assert_true(there);
	rc = hps_state_load(&st, &s->c.job, s->shard, err);
	if (found)
		*found = st;
	if (found)
		found->path = NULL;
	hps_state_release(&st);
	return rc;
}

/* --- what two sets of shards hold --- */

struct counted {
	const struct shards *other;
	uint32_t table;
	size_t n;
	float *row; /* of the other, found */
	uint32_t freq, last;
	uint64_t key;
	bool found;
};

static enum hps_status find_row(void *ctx, uint64_t key, const float *row, uint32_t freq,
				uint32_t last, struct hps_err *err)
{
	struct counted *c = ctx;

	if (key != c->key)
		return HPS_OK;
	c->found = true;
	memcpy(c->row, row, 16);
	c->freq = freq;
	c->last = last;
	return HPS_NO;
}

static enum hps_status compare_row(void *ctx, uint64_t key, const float *row, uint32_t freq,
				   uint32_t last, struct hps_err *err)
{
	struct counted *c = ctx;
	uint32_t owner = hps_shard_of_key(c->table, key, c->other->n);
	struct hps_table *t = hps_shard_table(c->other->shard[owner], c->table);
	float theirs[16] = { 0 };
	struct counted f = { .key = key, .row = theirs };

	hps_table_each(t, find_row, &f, NULL);
	assert_true(f.found);
	assert_memory_equal(theirs, row, 16);
	assert_int_equal(f.freq, freq);
	assert_int_equal(f.last, last);
	c->n++;
	return HPS_OK;
}

static void assert_equal(const struct shards *a, const struct shards *b)
{
	float *pa = calloc(3 * a->c.graph.n_floats, 4), *pb = calloc(3 * a->c.graph.n_floats, 4);
	const struct shards *both[2] = { a, b };
	uint64_t n = a->c.graph.n_floats;
	size_t rows[2] = { 0 };

	for (int k = 0; k < 2; k++) {
		const struct shards *s = both[k];
		float *p = k ? pb : pa;

		for (uint32_t i = 0; i < s->n; i++) {
			for (uint32_t t = 0; t < 2; t++) {
				struct counted c = { .other = both[!k], .table = t };

				assert_int_equal(hps_table_each(hps_shard_table(s->shard[i], t),
								compare_row, &c, NULL),
						 HPS_OK);
				rows[k] += c.n;
			}
			for (uint32_t j = 0; j < hps_shard_n_dense(s->shard[i]); j++) {
				struct hps_shard_dense d = hps_shard_dense(s->shard[i], j);

				memcpy(p + d.first, d.param, d.n * 4);
				memcpy(p + n + d.first, d.state, d.n * 4);
				memcpy(p + 2 * n + d.first, d.state + d.n, d.n * 4);
				assert_int_equal(d.updates, 11);
			}
		}
	}
	assert_int_equal(rows[0], rows[1]);
	assert_int_equal(rows[0], KEYS + 50);
	assert_memory_equal(pa, pb, 3 * n * 4);
	free(pa);
	free(pb);
}

static const struct ps_case_opts two = {
	.shards = 2, .stages = 2, .dense_optim = HPS_ADAM, .table_optim = HPS_ADAM, .seed = 5
};

static void a_save_loads_on_any_number_of_shards(void **state)
{
	struct shards s;
	struct ps_case_opts o = two;

	shards_init(&s, o);
	fill(&s, 0);
	must_save(&s, "here", 77);
	for (o.shards = 1; o.shards <= MAX_SHARDS; o.shards++) {
		struct hps_state found;
		struct shards l;

		o.stages = o.shards % 3 + 1; /* other stages hold the same parameters */
		shards_init(&l, o);
		assert_int_equal(load_into(&l, &found, NULL), HPS_OK);
		assert_int_equal(found.step, 123);
		assert_int_equal(found.epochs, 4);
		assert_int_equal(found.save, 77);
		assert_equal(&s, &l);
		shards_release(&l);
	}
	shards_release(&s);
}

static void the_same_state_is_the_same_bytes(void **state)
{
	struct hps_buf a = HPS_BUF_INIT, b = HPS_BUF_INIT;
	struct shards s;
	char path[300];

	shards_init(&s, two);
	fill(&s, 0);
	must_save(&s, "here", 9);
	snprintf(path, sizeof(path), "%s/here/save-1/shard-0.hps", root);
	assert_int_equal(hps_file_read(path, 0, &a, NULL), HPS_OK);
	must_save(&s, "here", 9);
	snprintf(path, sizeof(path), "%s/here/save-2/shard-0.hps", root);
	assert_int_equal(hps_file_read(path, 0, &b, NULL), HPS_OK);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	hps_buf_release(&a);
	hps_buf_release(&b);
	shards_release(&s);
}

static void nothing_there_is_no_error(void **state)
{
	struct hps_state s;
	char path[300];
	bool found = true;

	assert_int_equal(hps_state_find(root, &s, &found, NULL), HPS_OK);
	assert_false(found);
	snprintf(path, sizeof(path), "%s/absent", root);
	assert_int_equal(hps_state_find(path, &s, &found, NULL), HPS_OK);
	assert_false(found);
}

static void the_directory_is_locked(void **state)
{
	struct hps_state_dir d, e;
	struct hps_err err = { 0 };
	char who[80];

	assert_int_equal(hps_state_open(&d, root, "here", NULL), HPS_OK);
	assert_int_equal(hps_state_open(&e, root, "here", &err), HPS_IO);
	snprintf(who, sizeof(who), "another hps-serve, process %ld, has this state directory",
		 (long)getpid());
	assert_string_equal(err.msg, who);
	assert_non_null(strstr(err.hint, "another --state"));
	assert_int_equal(hps_state_open(&e, root, "there", NULL), HPS_OK);
	hps_state_close(&e);
	hps_state_close(&d);
	assert_int_equal(hps_state_open(&d, root, "here", NULL), HPS_OK);
	hps_state_close(&d);
}

static void a_directory_that_cannot_be_made(void **state)
{
	struct hps_state_dir d;
	struct hps_err err = { 0 };

	assert_int_equal(hps_state_open(&d, "/dev/null/x", "here", &err), HPS_IO);
	assert_non_null(strstr(err.where, "/dev/null"));
}

/* --- several processes, each with its part --- */

static void save_part(struct shards *s, const char *host, uint32_t shard, uint64_t save)
{
	struct hps_state_dir d;
	struct hps_state_write w = { NULL, &s->c.job, &s->c.graph, shard, save, 0 };

	assert_int_equal(hps_state_open(&d, root, host, NULL), HPS_OK);
	assert_int_equal(hps_state_begin(&d, NULL), HPS_OK);
	w.tmp = d.tmp;
	assert_int_equal(hps_state_write(&w, s->shard[shard], NULL), HPS_OK);
	assert_int_equal(hps_state_commit(&d, false, NULL), HPS_OK);
	hps_state_close(&d);
}

static void parts_of_several_processes_make_a_save(void **state)
{
	struct hps_err err = { 0 };
	struct hps_state found;
	struct shards s, old, l;
	bool there;

	shards_init(&s, two);
	shards_init(&old, two);
	fill(&s, 1);
	fill(&old, 2);
	save_part(&old, "a", 0, 1);
	assert_int_equal(hps_state_find(root, &found, &there, &err), HPS_BAD_INPUT);
	assert_non_null(strstr(err.msg, "1 of 2 shards"));
	save_part(&old, "b", 1, 1);
	/* a crash between the two: the old one counts */
	save_part(&s, "b", 1, 2);
	shards_init(&l, two);
	assert_int_equal(load_into(&l, &found, NULL), HPS_OK);
	assert_int_equal(found.save, 1);
	assert_equal(&old, &l);
	shards_release(&l);
	save_part(&s, "a", 0, 2);
	shards_init(&l, two);
	assert_int_equal(load_into(&l, &found, NULL), HPS_OK);
	assert_int_equal(found.save, 2);
	assert_equal(&s, &l);
	shards_release(&l);
	/* and one process that saves all afterwards is newer than both */
	must_save(&old, "c", 3);
	shards_init(&l, two);
	assert_int_equal(load_into(&l, &found, NULL), HPS_OK);
	assert_int_equal(found.save, 3);
	shards_release(&l);
	shards_release(&s);
	shards_release(&old);
}

static size_t saves_of(const char *host)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", root, host);
	return scratch_count(path) - 1; /* the lock */
}

static void old_saves_go(void **state)
{
	struct shards s;

	shards_init(&s, two);
	fill(&s, 0);
	for (uint64_t i = 1; i < 5; i++) {
		must_save(&s, "here", i);
		assert_int_equal(saves_of("here"), 1);
		save_part(&s, "a", 0, i);
		assert_int_equal(saves_of("a"), i == 1 ? 1 : 2);
	}
	shards_release(&s);
}

/* --- crashes and full disks --- */

struct crash {
	struct shards *s;
	rlim_t bytes; /* a file larger than this kills the process, or fails */
	bool kill;
};

static int save_until(void *arg)
{
	struct crash *c = arg;
	struct rlimit lim = { c->bytes, c->bytes };
	struct hps_err err = { 0 };
	struct rlimit core = { 0, 0 };

	signal(SIGXFSZ, c->kill ? SIG_DFL : SIG_IGN);
	setrlimit(RLIMIT_CORE, &core);
	setrlimit(RLIMIT_FSIZE, &lim);
	if (save_as(c->s, "here", 1000 + c->bytes, &err) == HPS_OK)
		return 0;
	hps_err_print("test", &err);
	return err.status;
}

/* Whatever the byte at which it ends, the old state or the new one is there. */
static void a_crash_leaves_the_old_or_the_new(void **state)
{
	struct shards s, old;
	uint32_t n_old = 0, n_new = 0;

	shards_init(&old, two);
	shards_init(&s, two);
	fill(&old, 1);
	fill(&s, 2);
	for (rlim_t bytes = 16; bytes < 40000; bytes = bytes * 7 / 4) {
		struct crash c = { &s, bytes, bytes % 2 };
		struct hps_state found;
		struct child child;
		struct shards l;

		must_save(&old, "here", 1);
		child_run(&child, save_until, &c);
		shards_init(&l, two);
		assert_int_equal(load_into(&l, &found, NULL), HPS_OK);
		if (child.status == 0) {
			assert_int_equal(found.save, 1000 + bytes);
			assert_equal(&s, &l);
			n_new++;
		} else {
			if (c.kill) {
				assert_int_equal(child.status, 128 + SIGXFSZ);
			} else { /* as a full disk */
				assert_int_equal(child.status, HPS_IO);
				assert_non_null(strstr(child.err, "shard-"));
				assert_non_null(strstr(child.err, "cannot write"));
			}
			assert_int_equal(found.save, 1);
			assert_equal(&old, &l);
			n_old++;
		}
		shards_release(&l);
	}
	assert_true(n_old > 3 && n_new > 0);
	must_save(&old, "here", 1);
	assert_int_equal(saves_of("here"), 1); /* what the crashes left is swept */
	shards_release(&s);
	shards_release(&old);
}

/* --- damage --- */

static void spoil(const char *path, off_t at, off_t cut)
{
	char c;
	int fd = open(path, O_RDWR);

	assert_true(fd >= 0);
	if (cut >= 0) {
		assert_int_equal(ftruncate(fd, cut), 0);
	} else {
		assert_int_equal(pread(fd, &c, 1, at), 1);
		c ^= 0x10;
		assert_int_equal(pwrite(fd, &c, 1, at), 1);
	}
	close(fd);
}

static void damage_is_found_and_named(void **state)
{
	struct hps_buf good = HPS_BUF_INIT;
	struct hps_err err;
	struct shards s;
	char path[300];

	shards_init(&s, two);
	fill(&s, 0);
	must_save(&s, "here", 1);
	snprintf(path, sizeof(path), "%s/here/save-1/shard-1.hps", root);
	assert_int_equal(hps_file_read(path, 0, &good, NULL), HPS_OK);
	for (size_t k = 0; k < 120; k++) {
		struct shards l;
		size_t at = k < 90 ? k * 2 : hps_mix64(k) % good.len;

		spoil(path, (off_t)at, k % 4 == 3 ? (off_t)at : -1);
		shards_init(&l, two);
		memset(&err, 0, sizeof(err));
		assert_int_equal(load_into(&l, NULL, &err), HPS_BAD_INPUT);
		if (!strstr(err.where, "shard-1.hps"))
			fail_msg("byte %zu: %s: %s", at, err.where, err.msg);
		if (at >= 80)
			assert_non_null(strstr(err.where, "block "));
		shards_release(&l);
		assert_int_equal(hps_file_write(path, good.data, good.len, 0666, NULL), HPS_OK);
	}
	/* longer than it says */
	assert_int_equal(hps_buf_add(&good, "x", 1, NULL), HPS_OK);
	assert_int_equal(hps_file_write(path, good.data, good.len, 0666, NULL), HPS_OK);
	{
		struct shards l;

		shards_init(&l, two);
		assert_int_equal(load_into(&l, NULL, &err), HPS_BAD_INPUT);
		assert_non_null(strstr(err.msg, "follow the end"));
		shards_release(&l);
	}
	hps_buf_release(&good);
	shards_release(&s);
}

static void another_models_state_is_refused(void **state)
{
	struct hps_err err = { 0 };
	struct shards s, l;

	shards_init(&s, two);
	fill(&s, 0);
	must_save(&s, "here", 1);
	shards_init(&l, two);
	l.c.job.model.digest ^= 1;
	assert_int_equal(load_into(&l, NULL, &err), HPS_BAD_INPUT);
	assert_non_null(strstr(err.msg, "another model"));
	assert_non_null(strstr(err.where, "shard-0.hps"));
	shards_release(&l);
	shards_release(&s);
}

static void other_optimizers_are_refused(void **state)
{
	struct ps_case_opts o = two;
	struct hps_err err = { 0 };
	struct shards s, l;

	shards_init(&s, two);
	fill(&s, 0);
	must_save(&s, "here", 1);
	o.table_optim = HPS_ADAGRAD;
	shards_init(&l, o);
	assert_int_equal(load_into(&l, NULL, &err), HPS_BAD_INPUT);
	assert_non_null(strstr(err.msg, "a: saved with the optimizer adam, the job has adagrad"));
	shards_release(&l);
	o = two;
	o.dense_optim = HPS_SGD;
	shards_init(&l, o);
	assert_int_equal(load_into(&l, NULL, &err), HPS_BAD_INPUT);
	assert_non_null(strstr(err.msg, "dense parameters: saved with the optimizer adam"));
	shards_release(&l);
	shards_release(&s);
}

/* --- memory --- */

static void every_failed_allocation_is_survived(void **state)
{
	enum hps_status st = HPS_MEMORY;
	struct shards s;
	unsigned long n;

	shards_init(&s, two);
	fill(&s, 0);
	must_save(&s, "here", 1);
	for (n = 1; st != HPS_OK; n++) {
		hps_mem_fail_at(n);
		st = save_as(&s, "here", 2, NULL);
		hps_mem_fail_at(0);
		assert_true(st == HPS_OK || st == HPS_MEMORY);
		assert_int_equal(saves_of("here"), 1);
	}
	assert_true(n > 4);
	st = HPS_MEMORY;
	for (n = 1; st != HPS_OK; n++) {
		struct hps_state found;
		struct hps_doc *d = NULL;
		struct shards l;
		bool there;
		char dir[300];

		shards_init(&l, two);
		snprintf(dir, sizeof(dir), "%s/out", root);
		hps_mem_fail_at(n);
		st = hps_state_find(root, &found, &there, NULL);
		if (st == HPS_OK) {
			assert_true(there);
			st = hps_state_load(&found, &l.c.job, l.shard, NULL);
			if (st == HPS_OK)
				st = hps_state_export(&found, &l.c.job, dir, &d, NULL);
			hps_state_release(&found);
		}
		hps_mem_fail_at(0);
		assert_true(st == HPS_OK || st == HPS_MEMORY);
		if (st == HPS_OK)
			assert_equal(&s, &l);
		hps_doc_free(d);
		shards_release(&l);
	}
	assert_true(n > 20);
	shards_release(&s);
}

/* --- export --- */

/* The parser that a reader of .npy has: magic, version, header length, a literal dict. */
static void check_npy(const char *dir, const char *name, const char *shape, const float *data,
		      size_t n)
{
	struct hps_buf b = HPS_BUF_INIT;
	char path[400], expect[200];
	size_t len;

	snprintf(path, sizeof(path), "%s/%s.npy", dir, name);
	assert_int_equal(hps_file_read(path, 0, &b, NULL), HPS_OK);
	assert_memory_equal(b.data, "\x93NUMPY\x01\x00", 8);
	len = (uint8_t)b.data[8] | (size_t)(uint8_t)b.data[9] << 8;
	assert_int_equal((10 + len) % 64, 0);
	assert_int_equal(b.data[10 + len - 1], '\n');
	snprintf(expect, sizeof(expect),
		 "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape);
	assert_memory_equal(b.data + 10, expect, strlen(expect));
	assert_int_equal(strspn(b.data + 10 + strlen(expect), " "), len - strlen(expect) - 1);
	assert_int_equal(b.len, 10 + len + n * 4);
	assert_memory_equal(b.data + 10 + len, data, n * 4);
	hps_buf_release(&b);
}

static void a_save_is_exported(void **state)
{
	struct hps_doc *d = NULL;
	struct hps_state found;
	struct hps_at at, tables, item, rows;
	struct hps_err err = { 0 };
	struct shards s;
	float param[1000];
	uint64_t n;
	char dir[300];
	bool there;

	shards_init(&s, two);
	fill(&s, 0);
	must_save(&s, "here", 1);
	for (uint64_t i = 0; i < s.c.graph.n_floats; i++)
		param[i] = (float)i;
	snprintf(dir, sizeof(dir), "%s/out", root);
	assert_int_equal(hps_state_find(root, &found, &there, NULL), HPS_OK);
	if (hps_state_export(&found, NULL, dir, &d, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
	assert_int_equal(scratch_count(dir), 4);
	check_npy(dir, "fc1.W", "18, 7", param, 18 * 7);
	check_npy(dir, "fc1.b", "7,", param + 18 * 7, 7);
	check_npy(dir, "fc2.W", "10, 2", param + 19 * 7, 20);
	check_npy(dir, "fc2.b", "2,", param + 19 * 7 + 20, 2);
	at = hps_at_root(d, "export");
	tables = hps_at_member(&at, "tables");
	assert_int_equal(hps_at_count(&tables), 2);
	item = hps_at_item(&tables, 0);
	rows = hps_at_member(&item, "rows");
	assert_int_equal(hps_at_u64(&rows, KEYS, KEYS, &n, NULL), HPS_OK);
	hps_doc_free(d);
	/* checked against a job */
	s.c.job.model.digest ^= 1;
	assert_int_equal(hps_state_export(&found, &s.c.job, dir, &d, &err), HPS_BAD_INPUT);
	hps_state_release(&found);
	shards_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IN_ROOT(f) cmocka_unit_test_setup_teardown(f, make_root, drop_root)
		IN_ROOT(a_save_loads_on_any_number_of_shards),
		IN_ROOT(the_same_state_is_the_same_bytes),
		IN_ROOT(nothing_there_is_no_error),
		IN_ROOT(the_directory_is_locked),
		IN_ROOT(a_directory_that_cannot_be_made),
		IN_ROOT(parts_of_several_processes_make_a_save),
		IN_ROOT(old_saves_go),
		IN_ROOT(a_crash_leaves_the_old_or_the_new),
		IN_ROOT(damage_is_found_and_named),
		IN_ROOT(another_models_state_is_refused),
		IN_ROOT(other_optimizers_are_refused),
		IN_ROOT(every_failed_allocation_is_survived),
		IN_ROOT(a_save_is_exported),
	};

	return cmocka_run_group_tests_name("serve_state", tests, NULL, NULL);
}
