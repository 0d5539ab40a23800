/* Which files make the newest whole save of a state directory. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "serve/state.h"
#include "serve/state_file_int.h"
#include "serve/state_path_int.h"

struct found_file {
	char *path;
	struct state_head head;
	uint64_t n; /* of its folder */
};

struct finding {
	struct found_file *file;
	size_t n_files;
	uint64_t n;	 /* of the folder at hand */
	uint64_t newest; /* of all folders */
	bool any;	 /* folder */
};

static enum hps_status found(void *ctx, const char *dir, const char *name, struct hps_err *err)
{
	struct finding *f = ctx;
	struct state_reader r;
	enum hps_status st;
	void *p = f->file;
	uint64_t shard;
	char *path;

	if (!hps_state_numbered(name, "shard-", ".hps", &shard))
		return HPS_OK;
	path = hps_state_path(err, "%s/%s", dir, name);
	if (!path)
		return HPS_MEMORY;
	st = hps_state_reader_open(&r, path, err);
	if (st == HPS_OK) {
		hps_state_reader_close(&r);
		if (r.head.shard != shard)
			st = hps_state_reader_bad(&r, err, "holds shard %u", r.head.shard);
	}
	if (st == HPS_OK)
		st = hps_realloc(&p, f->n_files + 1, sizeof(*f->file), err);
	if (st != HPS_OK) {
		free(path);
		return st;
	}
	f->file = p;
	f->file[f->n_files++] = (struct found_file){ path, r.head, f->n };
	return HPS_OK;
}

static enum hps_status find_in_host(void *ctx, const char *dir, const char *name,
				    struct hps_err *err)
{
	struct finding *f = ctx;
	enum hps_status st;
	char *save;
	bool is;

	st = hps_state_is_save(dir, name, &is, &f->n, err);
	if (st != HPS_OK || !is)
		return st;
	f->any = true;
	f->newest = f->n > f->newest ? f->n : f->newest;
	save = hps_state_path(err, "%s/%s", dir, name);
	st = save ? hps_state_each_entry(save, found, f, err) : HPS_MEMORY;
	free(save);
	return st;
}

static enum hps_status find_in_root(void *ctx, const char *dir, const char *name,
				    struct hps_err *err)
{
	char *host = hps_state_path(err, "%s/%s", dir, name);
	enum hps_status st = host ? hps_state_each_entry(host, find_in_host, ctx, err) : HPS_MEMORY;

	free(host);
	return st;
}

static int newest_first(const void *x, const void *y)
{
	const struct found_file *a = x, *b = y;

	if (a->n != b->n)
		return a->n < b->n ? 1 : -1;
	return strcmp(a->path, b->path);
}

/* Take the files of the save that file i is of, if every shard is there. */
static enum hps_status take_save(const struct finding *f, size_t i, struct hps_state *s,
				 uint32_t *have, struct hps_err *err)
{
	const struct state_head *h = &f->file[i].head;
	uint32_t n = h->n_shards;

	*have = 0;
	if (n > f->n_files) {
		for (size_t j = 0; j < f->n_files; j++)
			*have += f->file[j].head.save == h->save;
		return HPS_OK;
	}
	s->path = hps_calloc(n, sizeof(*s->path), err);
	if (!s->path)
		return HPS_MEMORY;
	s->n_files = n;
	for (size_t j = 0; j < f->n_files; j++) {
		const struct state_head *o = &f->file[j].head;

		if (o->save != h->save || o->n_shards != n || o->digest != h->digest ||
		    o->shard >= n || s->path[o->shard])
			continue;
		s->path[o->shard] = hps_strdup(f->file[j].path, err);
		if (!s->path[o->shard])
			return HPS_MEMORY;
		++*have;
		/* asp: shards need not have seen the same */
		s->step = o->step > s->step ? o->step : s->step;
		s->epochs = o->epochs > s->epochs ? o->epochs : s->epochs;
	}
	s->digest = h->digest;
	s->save = h->save;
	s->seed = h->seed;
	s->n_floats = h->n_floats;
	return HPS_OK;
}

enum hps_status hps_state_find(const char *root, struct hps_state *s, bool *there,
			       struct hps_err *err)
{
	struct finding f = { 0 };
	enum hps_status st = hps_state_each_entry(root, find_in_root, &f, err);
	uint32_t have = 0, newest = 0;

	*s = (struct hps_state){ 0 };
	*there = false;
	if (st == HPS_OK && f.n_files)
		qsort(f.file, f.n_files, sizeof(*f.file), newest_first);
	for (size_t i = 0; i < f.n_files && st == HPS_OK && !*there; i++) {
		st = take_save(&f, i, s, &have, err);
		newest = i ? newest : have;
		*there = st == HPS_OK && have == f.file[i].head.n_shards;
		if (*there && f.file[i].n < f.newest)
			hps_warn("%s: save-%llu is not whole: save-%llu, an older one, is used",
				 root, (unsigned long long)f.newest,
				 (unsigned long long)f.file[i].n);
		if (!*there)
			hps_state_release(s);
	}
	if (st == HPS_OK && f.n_files && !*there) {
		st = hps_err_set(err, HPS_BAD_INPUT,
				 "no save is complete: of the newest %u of %u shards are here",
				 newest, f.file[0].head.n_shards);
		hps_err_at(err, "%s", root);
		hps_err_hint(err, "each hps-serve saves its own shards under its host's name: copy "
				  "the others' folders here");
	}
	if (st == HPS_OK && f.any && !f.n_files) {
		st = hps_err_set(err, HPS_BAD_INPUT, "no save is complete: save-%llu is empty",
				 (unsigned long long)f.newest);
		hps_err_at(err, "%s", root);
		hps_err_hint(err, "take it away to begin anew");
	}
	for (size_t i = 0; i < f.n_files; i++)
		free(f.file[i].path);
	free(f.file);
	return st;
}

void hps_state_release(struct hps_state *s)
{
	for (uint32_t i = 0; s->path && i < s->n_files; i++)
		free(s->path[i]);
	free(s->path);
	*s = (struct hps_state){ 0 };
}
