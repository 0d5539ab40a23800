/* Where the row of a key is, and what a pull or a push does to it.
 *
 * Both go over the keys in groups: prefetch the slots of a group, find its rows and prefetch
 * them, then work; so misses of one group overlap (Chen et al. 2007, group prefetching). Slots
 * are indexed by the hash's top bits: doubling then reads and writes both arrays in order. */
#include "table/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	GROUP = 32,		/* keys in flight: enough for a core's 10 to 16 line fill buffers */
	LINE = 64,		/* bytes of a cache line */
	MIN_BITS = 4,		/* of the slot array: 16 slots */
	BLOCK_BYTES = 1 << 20,	/* aim of one arena block */
	BLOCKS_AT_CEILING = 16, /* under a ceiling in bytes the arena has about as many */
	MAX_CHUNK = 64,		/* blocks allocated together at most */
	HUGE_FROM = 4 << 20,	/* bytes from which an array is worth huge pages */
};

struct slot {
	uint64_t key;
	uint32_t row1; /* row number + 1; 0: free */
	uint32_t pad;
};

struct row_tail {
	uint32_t freq, last;
};

struct hps_table {
	struct slot *slot;
	unsigned bits; /* log2 of the slots */
	uint64_t n_rows;
	uint64_t full; /* rows at which the slots must double */

	char **block;
	size_t n_blocks, cap_blocks;
	char **chunk; /* what was allocated: one or more blocks each */
	size_t n_chunks, cap_chunks;
	unsigned block_bits; /* log2 of rows in a block */
	size_t stride;	     /* bytes of a row */

	uint32_t dim;
	size_t floats; /* dim + state */
	struct hps_optim optim;
	void (*init)(void *ctx, uint64_t key, float *row);
	void *init_ctx;
	uint64_t max_rows, max_bytes, refused;
	char *name;
};

/* Two rounds of multiply and shift: unlike a single multiplication it spreads keys that share
 * their low or high bits, and differs from the hash that spreads keys over shards. */
static inline uint64_t hash_key(uint64_t k)
{
	k ^= k >> 32;
	k *= 0xd6e8feb86659fd93u;
	k ^= k >> 29;
	return k * 0x9e3779b97f4a7c15u;
}

static inline size_t home(const struct hps_table *t, uint64_t key)
{
	return (size_t)(hash_key(key) >> (64 - t->bits));
}

static inline char *row_at(const struct hps_table *t, uint32_t row)
{
	size_t in = row & (((uint32_t)1 << t->block_bits) - 1);

	return t->block[row >> t->block_bits] + in * t->stride;
}

static inline struct row_tail *tail_of(const struct hps_table *t, char *row)
{
	return (struct row_tail *)(row + t->floats * sizeof(float));
}

/* The slot that holds key, or the free one where it would go. */
static inline struct slot *probe(const struct hps_table *t, uint64_t key, size_t at)
{
	size_t mask = ((size_t)1 << t->bits) - 1;

	while (t->slot[at].row1 && t->slot[at].key != key)
		at = (at + 1) & mask;
	return &t->slot[at];
}

static inline void prefetch(const char *p, size_t bytes)
{
	const char *end = p + (bytes < 8 * LINE ? bytes : 8 * LINE); /* then the hardware follows */

	for (; p < end; p += LINE)
		__builtin_prefetch(p, 1, 3);
	__builtin_prefetch(end - 1, 1, 3);
}

/* --- growth --- */

static uint64_t slot_bytes(unsigned bits)
{
	return ((uint64_t)1 << bits) * sizeof(struct slot);
}

static uint64_t block_bytes(const struct hps_table *t)
{
	return ((uint64_t)1 << t->block_bits) * t->stride;
}

static uint64_t bytes_now(const struct hps_table *t)
{
	return (t->slot ? slot_bytes(t->bits) : 0) + t->n_blocks * block_bytes(t);
}

/* May the table hold `extra` more bytes, `freed` of the present ones given up? While slots move
 * both arrays exist; the ceiling is on what stays. */
static bool within_bytes(const struct hps_table *t, uint64_t extra, uint64_t freed)
{
	return !t->max_bytes || bytes_now(t) - freed + extra <= t->max_bytes;
}

/* n * size zeroed bytes. Rows and slots are touched at random: with pages of 2 MiB the
 * translation of addresses misses far less. */
static void *big_calloc(size_t n, size_t size, struct hps_err *err)
{
	char *p = hps_calloc(n, size, err);
	size_t bytes = n * size, page = (size_t)sysconf(_SC_PAGESIZE), skip;

	if (!p || bytes < HUGE_FROM)
		return p;
	skip = page - (uintptr_t)p % page; /* what lies in a page with others */
	madvise(p + skip, (bytes - skip) / page * page, MADV_HUGEPAGE); /* advice: may fail */
	return p;
}

static enum hps_status resize_slots(struct hps_table *t, unsigned bits, struct hps_err *err)
{
	size_t n_old = t->slot ? (size_t)1 << t->bits : 0;
	size_t n = (size_t)1 << bits;
	struct slot *old = t->slot;
	struct slot *fresh = big_calloc(n, sizeof(*fresh), err);

	if (!fresh)
		return HPS_MEMORY;
	t->slot = fresh;
	t->bits = bits;
	t->full = n / 8 * 5;
	for (size_t i = 0; i < n_old; i++)
		if (old[i].row1)
			*probe(t, old[i].key, home(t, old[i].key)) = old[i];
	free(old);
	return HPS_OK;
}

/* Make sure one more slot may be taken; *room is false at the ceiling. */
static enum hps_status room_in_slots(struct hps_table *t, bool *room, struct hps_err *err)
{
	unsigned bits = t->slot ? t->bits + 1 : MIN_BITS;

	*room = true;
	if (t->n_rows < t->full)
		return HPS_OK;
	if (bits < 33 && within_bytes(t, slot_bytes(bits), t->slot ? slot_bytes(t->bits) : 0))
		return resize_slots(t, bits, err);
	*room = t->slot && t->n_rows < slot_bytes(t->bits) / sizeof(struct slot) / 8 * 7;
	return HPS_OK;
}

/* How many blocks to allocate next: more as the table grows, one under a ceiling in bytes. */
static size_t next_chunk(const struct hps_table *t)
{
	size_t n = t->n_blocks / 4;

	if (t->max_bytes || n < 1)
		return 1;
	return n < MAX_CHUNK ? n : MAX_CHUNK;
}

static enum hps_status grow_pointers(char ***array, size_t *cap, size_t n, struct hps_err *err)
{
	void *p = *array;
	enum hps_status st;

	if (n <= *cap)
		return HPS_OK;
	n += n / 2 + 16;
	st = hps_realloc(&p, n, sizeof(**array), err);
	if (st == HPS_OK) {
		*array = p;
		*cap = n;
	}
	return st;
}

static enum hps_status room_in_arena(struct hps_table *t, bool *room, struct hps_err *err)
{
	size_t n = next_chunk(t);
	char *chunk;

	*room = true;
	if (t->n_rows < (uint64_t)t->n_blocks << t->block_bits)
		return HPS_OK;
	*room = within_bytes(t, block_bytes(t), 0);
	if (!*room)
		return HPS_OK;
	if (grow_pointers(&t->block, &t->cap_blocks, t->n_blocks + n, err) != HPS_OK ||
	    grow_pointers(&t->chunk, &t->cap_chunks, t->n_chunks + 1, err) != HPS_OK)
		return HPS_MEMORY;
	chunk = big_calloc(n, block_bytes(t), err);
	if (!chunk)
		return HPS_MEMORY;
	t->chunk[t->n_chunks++] = chunk;
	for (size_t i = 0; i < n; i++)
		t->block[t->n_blocks++] = chunk + i * block_bytes(t);
	return HPS_OK;
}

/* The row of key, made if need be; *row NULL where a ceiling keeps it out. */
static enum hps_status find_or_make(struct hps_table *t, uint64_t key, bool *made, char **row,
				    struct hps_err *err)
{
	struct slot *s = t->slot ? probe(t, key, home(t, key)) : NULL;
	bool room = true;
	enum hps_status st;

	*made = false;
	*row = NULL;
	if (s && s->row1) {
		*row = row_at(t, s->row1 - 1);
		return HPS_OK;
	}
	if ((t->max_rows && t->n_rows >= t->max_rows) || t->n_rows >= UINT32_MAX - 1)
		room = false;
	if (room && (st = room_in_slots(t, &room, err)) != HPS_OK)
		return st;
	if (room && (st = room_in_arena(t, &room, err)) != HPS_OK)
		return st;
	if (!room) {
		t->refused++;
		return HPS_OK;
	}
	s = probe(t, key, home(t, key));
	s->key = key;
	s->row1 = (uint32_t)t->n_rows + 1;
	*row = row_at(t, (uint32_t)t->n_rows++);
	*made = true;
	return HPS_OK;
}

/* --- life --- */

/* Rows of a block: a power of two of about BLOCK_BYTES, less under a low ceiling. */
static unsigned choose_block_bits(size_t stride, uint64_t max_bytes)
{
	uint64_t aim = BLOCK_BYTES;
	unsigned bits = 0;

	if (max_bytes && max_bytes / BLOCKS_AT_CEILING < aim)
		aim = max_bytes / BLOCKS_AT_CEILING;
	while (bits < 20 && ((uint64_t)2 << bits) * stride <= aim)
		bits++;
	return bits;
}

enum hps_status hps_table_new(const struct hps_table_opts *o, struct hps_table **out,
			      struct hps_err *err)
{
	struct hps_table *t = hps_calloc(1, sizeof(*t), err);

	if (!t)
		return HPS_MEMORY;
	t->dim = o->dim;
	t->floats = o->dim + hps_optim_state_floats(&o->optim, o->dim);
	t->stride = t->floats * sizeof(float) + sizeof(struct row_tail);
	t->block_bits = choose_block_bits(t->stride, o->max_bytes);
	t->optim = o->optim;
	t->init = o->init;
	t->init_ctx = o->init_ctx;
	t->max_rows = o->max_rows;
	t->max_bytes = o->max_bytes;
	t->name = hps_strdup(o->name, err);
	if (!t->name) {
		hps_table_free(t);
		return HPS_MEMORY;
	}
	*out = t;
	return HPS_OK;
}

void hps_table_free(struct hps_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_chunks; i++)
		free(t->chunk[i]);
	free(t->chunk);
	free(t->block);
	free(t->slot);
	free(t->name);
	free(t);
}

/* --- pull and push --- */

void hps_table_pull(const struct hps_table *t, const uint64_t *key, size_t n, bool zeros,
		    float *out)
{
	size_t bytes = t->dim * sizeof(float);
	const char *row[GROUP];
	size_t at[GROUP];

	for (size_t i = 0; i < n; i += GROUP) {
		size_t m = n - i < GROUP ? n - i : GROUP;

		for (size_t j = 0; t->slot && j < m; j++) {
			at[j] = home(t, key[i + j]);
			__builtin_prefetch(&t->slot[at[j]]);
		}
		for (size_t j = 0; j < m; j++) {
			const struct slot *s = t->slot ? probe(t, key[i + j], at[j]) : NULL;

			row[j] = s && s->row1 ? row_at(t, s->row1 - 1) : NULL;
			if (row[j])
				prefetch(row[j], bytes);
		}
		for (size_t j = 0; j < m; j++) {
			float *to = out + (i + j) * t->dim;

			if (row[j])
				memcpy(to, row[j], bytes);
			else if (zeros)
				memset(to, 0, bytes);
			else
				t->init(t->init_ctx, key[i + j], to);
		}
	}
}

static void new_row(struct hps_table *t, uint64_t key, char *row)
{
	float *w = (float *)row;

	t->init(t->init_ctx, key, w);
	hps_optim_state_init(&t->optim, w + t->dim, t->dim);
}

static void update_row(struct hps_table *t, char *row, const float *grad, uint64_t count,
		       uint32_t step)
{
	struct row_tail *tail = tail_of(t, row);
	float *w = (float *)row;

	if (tail->freq < UINT32_MAX)
		tail->freq++;
	tail->last = step;
	hps_optim_update(&t->optim, w, w + t->dim, t->dim, grad, count, tail->freq, t->dim);
}

/* The rows of m keys, made where need be (row[j] NULL: kept out), prefetched; *found of them before
 * an allocation failed. */
static enum hps_status find_group(struct hps_table *t, const uint64_t *key, size_t m, char **row,
				  size_t *found, struct hps_err *err)
{
	const struct slot *slots = t->slot;
	size_t at[GROUP];

	for (size_t j = 0; slots && j < m; j++) {
		at[j] = home(t, key[j]);
		__builtin_prefetch(&slots[at[j]]);
	}
	for (size_t j = 0; j < m; j++) {
		/* at[j] holds until the slots are doubled */
		const struct slot *s = slots && slots == t->slot ? probe(t, key[j], at[j]) : NULL;
		enum hps_status st;
		bool made;

		*found = j;
		if (s && s->row1) {
			row[j] = row_at(t, s->row1 - 1);
			prefetch(row[j], t->stride);
			continue;
		}
		st = find_or_make(t, key[j], &made, &row[j], err);
		if (st != HPS_OK)
			return st;
		if (made)
			new_row(t, key[j], row[j]);
		else if (row[j])
			prefetch(row[j], t->stride);
	}
	*found = m;
	return HPS_OK;
}

enum hps_status hps_table_push(struct hps_table *t, const uint64_t *key, const float *grad,
			       size_t n, uint64_t count, uint32_t step, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	char *row[GROUP];

	for (size_t i = 0; count && i < n && st == HPS_OK; i += GROUP) {
		size_t m = n - i < GROUP ? n - i : GROUP, found;

		st = find_group(t, key + i, m, row, &found, err);
		for (size_t j = 0; j < found; j++)
			if (row[j])
				update_row(t, row[j], grad + (i + j) * t->dim, count, step);
	}
	return st;
}

/* --- whole tables --- */

void hps_table_stats(const struct hps_table *t, struct hps_table_stats *s)
{
	*s = (struct hps_table_stats){ t->n_rows, bytes_now(t), t->refused };
}

const char *hps_table_name(const struct hps_table *t)
{
	return t->name;
}

size_t hps_table_row_floats(const struct hps_table *t)
{
	return t->floats;
}

enum hps_status hps_table_each(const struct hps_table *t, hps_table_visit fn, void *ctx,
			       struct hps_err *err)
{
	size_t n = t->slot ? (size_t)1 << t->bits : 0;

	for (size_t i = 0; i < n; i++) {
		enum hps_status st;
		char *row;

		if (!t->slot[i].row1)
			continue;
		row = row_at(t, t->slot[i].row1 - 1);
		st = fn(ctx, t->slot[i].key, (const float *)row, tail_of(t, row)->freq,
			tail_of(t, row)->last, err);
		if (st != HPS_OK)
			return st;
	}
	return HPS_OK;
}

enum hps_status hps_table_reserve(struct hps_table *t, uint64_t rows, struct hps_err *err)
{
	unsigned bits = t->slot ? t->bits : MIN_BITS;
	uint64_t freed = t->slot ? slot_bytes(t->bits) : 0;

	if (t->max_rows && rows > t->max_rows)
		rows = t->max_rows;
	while (bits < 32 && ((uint64_t)1 << bits) / 8 * 5 <= rows &&
	       within_bytes(t, slot_bytes(bits + 1), freed))
		bits++;
	if ((t->slot && bits == t->bits) || !within_bytes(t, slot_bytes(bits), freed))
		return HPS_OK;
	return resize_slots(t, bits, err);
}

enum hps_status hps_table_put(struct hps_table *t, uint64_t key, const float *values, uint32_t freq,
			      uint32_t last, struct hps_err *err)
{
	bool made;
	char *row;
	enum hps_status st = find_or_make(t, key, &made, &row, err);

	if (st != HPS_OK || !row)
		return st;
	memcpy(row, values, t->floats * sizeof(float));
	*tail_of(t, row) = (struct row_tail){ freq, last };
	return HPS_OK;
}
