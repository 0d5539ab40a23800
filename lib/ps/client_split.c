/* Which keys a request has, once each, and which shard each goes to. */
#include "ps/client_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

enum hps_status hps_split_init(struct split *s, uint32_t n_shards, uint32_t n_tables,
			       struct hps_err *err)
{
	s->n_shards = n_shards;
	s->n_tables = n_tables;
	s->floats_of = hps_calloc(n_shards, sizeof(*s->floats_of), err);
	s->keys_of = hps_calloc(n_shards, sizeof(*s->keys_of), err);
	s->at_table = hps_calloc((size_t)n_tables + 1, sizeof(*s->at_table), err);
	s->filled = hps_calloc(n_shards, sizeof(*s->filled), err);
	s->item_of = hps_calloc(n_shards, sizeof(*s->item_of), err);
	s->filled_floats = hps_calloc(n_shards, sizeof(*s->filled_floats), err);
	return s->floats_of && s->keys_of && s->at_table && s->filled && s->item_of &&
			       s->filled_floats
		       ? HPS_OK
		       : HPS_MEMORY;
}

void hps_split_release(struct split *s)
{
	free(s->key);
	free(s->again);
	free(s->group);
	free(s->n_of);
	free(s->floats_of);
	free(s->keys_of);
	free(s->filled);
	free(s->item_of);
	free(s->filled_floats);
	free(s->order);
	free(s->at_table);
	free(s->slot);
}

static enum hps_status grow(void *array, size_t *cap, size_t n, size_t size, struct hps_err *err)
{
	void **p = array;
	enum hps_status st;

	if (n <= *cap)
		return HPS_OK;
	n += n / 2;
	st = hps_realloc(p, n, size, err);
	if (st == HPS_OK)
		*cap = n;
	return st;
}

/* order: lookups by table, those of one table as they stand (a counting sort). */
static enum hps_status sort_lookups(struct split *s, const struct hps_ps_rows *rows, uint32_t n,
				    struct hps_err *err)
{
	enum hps_status st = grow(&s->order, &s->cap_order, n, sizeof(*s->order), err);

	if (st != HPS_OK)
		return st;
	memset(s->at_table, 0, ((size_t)s->n_tables + 1) * sizeof(*s->at_table));
	for (uint32_t i = 0; i < n; i++)
		s->at_table[rows[i].table + 1]++;
	for (uint32_t t = 0; t < s->n_tables; t++)
		s->at_table[t + 1] += s->at_table[t];
	for (uint32_t i = 0; i < n; i++)
		s->order[s->at_table[rows[i].table]++] = i;
	return HPS_OK;
}

static void add_key(struct split *s, const struct hps_ps_rows *r, uint32_t i, struct split_group *g)
{
	size_t at = (size_t)i * r->dim;

	s->key[g->end++] = (struct split_key){
		.key = r->key[i],
		.value = r->value ? r->value + at : NULL,
		.grad = r->grad ? r->grad + at : NULL,
		.shard = hps_shard_of_key(r->table, r->key[i], s->n_shards),
	};
}

/* Add a lookup's keys to its group; those that are there already go to `again`. */
static void merge(struct split *s, const struct hps_ps_rows *r, struct split_group *g)
{
	size_t mask = s->cap_slots - 1;

	for (uint32_t i = 0; i < r->n; i++) {
		size_t at = hps_mix64(r->key[i]) & mask;

		while (s->slot[at].at1 && s->slot[at].key != r->key[i])
			at = (at + 1) & mask;
		if (!s->slot[at].at1) {
			s->slot[at] = (struct split_slot){ r->key[i], g->end + 1, 0 };
			add_key(s, r, i, g);
			continue;
		}
		s->again[s->n_again++] = (struct split_again){
			.at = s->slot[at].at1 - 1,
			.dim = r->dim,
			.value = r->value ? r->value + (size_t)i * r->dim : NULL,
			.grad = r->grad ? r->grad + (size_t)i * r->dim : NULL,
		};
	}
}

/* Empty slots for up to n keys. */
static enum hps_status clear_slots(struct split *s, size_t n, struct hps_err *err)
{
	size_t want = 64;

	while (want < 2 * n)
		want *= 2;
	if (want > s->cap_slots) {
		void *p = s->slot;

		if (hps_realloc(&p, want, sizeof(*s->slot), err) != HPS_OK)
			return HPS_MEMORY;
		s->slot = p;
		s->cap_slots = want;
	}
	memset(s->slot, 0, s->cap_slots * sizeof(*s->slot));
	return HPS_OK;
}

/* One table's lookups, order[begin .. end), become a group. */
static enum hps_status add_group(struct split *s, const struct hps_ps_rows *rows, uint32_t begin,
				 uint32_t end, struct hps_err *err)
{
	struct split_group *g = &s->group[s->n_groups++];
	const struct hps_ps_rows *r = &rows[s->order[begin]];
	size_t n = 0;

	*g = (struct split_group){ r->table, r->dim, s->n_keys, s->n_keys };
	if (end - begin == 1) {
		for (uint32_t i = 0; i < r->n; i++)
			add_key(s, r, i, g);
	} else {
		for (uint32_t i = begin; i < end; i++)
			n += rows[s->order[i]].n;
		if (clear_slots(s, n, err) != HPS_OK)
			return HPS_MEMORY;
		for (uint32_t i = begin; i < end; i++)
			merge(s, &rows[s->order[i]], g);
	}
	s->n_keys = g->end;
	return HPS_OK;
}

static void count_keys(struct split *s)
{
	memset(s->n_of, 0, (size_t)s->n_shards * s->n_groups * sizeof(*s->n_of));
	memset(s->keys_of, 0, s->n_shards * sizeof(*s->keys_of));
	memset(s->floats_of, 0, s->n_shards * sizeof(*s->floats_of));
	for (uint32_t i = 0; i < s->n_groups; i++)
		for (uint32_t k = s->group[i].begin; k < s->group[i].end; k++)
			s->n_of[(size_t)s->key[k].shard * s->n_groups + i]++;
	for (uint32_t j = 0; j < s->n_shards; j++)
		for (uint32_t i = 0; i < s->n_groups; i++) {
			uint32_t n = s->n_of[(size_t)j * s->n_groups + i];

			s->keys_of[j] += n;
			s->floats_of[j] += (uint64_t)n * s->group[i].dim;
		}
}

enum hps_status hps_split_make(struct split *s, const struct hps_ps_rows *rows, uint32_t n,
			       struct hps_err *err)
{
	size_t keys = 0, groups = s->cap_groups;
	enum hps_status st;

	s->n_keys = s->n_again = s->n_groups = 0;
	for (uint32_t i = 0; i < n; i++)
		keys += rows[i].n;
	if (keys > UINT32_MAX - 1)
		return hps_err_set(err, HPS_MEMORY, "%zu keys in one micro-batch", keys);
	if ((st = grow(&s->key, &s->cap_keys, keys, sizeof(*s->key), err)) != HPS_OK ||
	    (st = grow(&s->again, &s->cap_again, keys, sizeof(*s->again), err)) != HPS_OK ||
	    (st = grow(&s->group, &groups, n, sizeof(*s->group), err)) != HPS_OK ||
	    (st = sort_lookups(s, rows, n, err)) != HPS_OK)
		return st;
	if (groups != s->cap_groups) {
		void *p = s->n_of;

		if (hps_realloc(&p, groups * s->n_shards, sizeof(*s->n_of), err) != HPS_OK)
			return HPS_MEMORY;
		s->n_of = p;
		s->cap_groups = groups;
	}
	for (uint32_t i = 0, end; i < n && st == HPS_OK; i = end) {
		for (end = i + 1; end < n; end++)
			if (rows[s->order[end]].table != rows[s->order[i]].table)
				break;
		st = add_group(s, rows, i, end, err);
	}
	if (st == HPS_OK && s->n_groups)
		count_keys(s);
	else if (st == HPS_OK) {
		memset(s->keys_of, 0, s->n_shards * sizeof(*s->keys_of));
		memset(s->floats_of, 0, s->n_shards * sizeof(*s->floats_of));
	}
	return st;
}

enum hps_status hps_split_dir(const struct split *s, uint32_t shard, struct hps_msg *m,
			      struct hps_err *err)
{
	struct hps_dir_entry *dir = hps_calloc(s->n_groups, sizeof(*dir), err);
	size_t n = 0;

	if (!dir)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < s->n_groups; i++) {
		uint32_t keys = s->n_of[(size_t)shard * s->n_groups + i];

		if (keys)
			dir[n++] = (struct hps_dir_entry){ s->group[i].table, keys };
	}
	return hps_msg_take(m, dir, n * sizeof(*dir), err);
}
