/* What the files of a client share: requests (client.c), answers (client_take.c), which key goes
 * where (client_split.c). */
#ifndef HPS_PS_CLIENT_INT_H
#define HPS_PS_CLIENT_INT_H

#include "ps/client.h"
#include "ps/shard.h"

/* The distinct keys of one request, table by table in ascending order, a table's in the order of
 * its lookups; each with its shard. Reused from request to request. */
struct split_key {
	uint64_t key;
	float *value;	   /* where the first lookup that asks for it wants it */
	const float *grad; /* of that lookup */
	uint32_t shard;
};

struct split_again { /* a later lookup of the same table asks for the key too */
	uint32_t at; /* index of the key */
	uint32_t dim;
	float *value;
	const float *grad;
};

struct split_group { /* of one table */
	uint32_t table, dim;
	uint32_t begin, end; /* of keys */
};

struct split_slot { /* of the hash that finds common keys; at1: index + 1, 0: free */
	uint64_t key;
	uint32_t at1, pad;
};

struct split {
	uint32_t n_shards, n_tables;
	struct split_key *key;
	uint32_t n_keys;
	struct split_again *again;
	uint32_t n_again;
	struct split_group *group;
	uint32_t n_groups;
	uint32_t *n_of;		    /* [shard * n_groups + group]: keys */
	uint64_t *floats_of;	    /* [shard] */
	uint32_t *keys_of;	    /* [shard] */
	uint32_t *filled, *item_of; /* [shard]: the filler's */
	uint64_t *filled_floats;

	uint32_t *order;    /* of lookups, by table */
	uint32_t *at_table; /* n_tables + 1 */
	struct split_slot *slot;
	size_t cap_keys, cap_again, cap_groups, cap_order, cap_slots;
};

enum hps_status hps_split_init(struct split *s, uint32_t n_shards, uint32_t n_tables,
			       struct hps_err *err);
void hps_split_release(struct split *s);
enum hps_status hps_split_make(struct split *s, const struct hps_ps_rows *rows, uint32_t n,
			       struct hps_err *err);
/* Append a shard's directory to m. */
enum hps_status hps_split_dir(const struct split *s, uint32_t shard, struct hps_msg *m,
			      struct hps_err *err);

/* --- the client --- */

/* A request that waits for answers: of shard i, seq[i] while open[i]. */
struct wait {
	uint64_t *seq;
	bool *open;
	uint32_t n_open;
	uint64_t step;
	uint32_t flags;
};

struct pull {
	struct pull *next;
	struct wait wait;
	uint32_t epoch, mb;
	float **to;	 /* where each value goes: shard by shard, as the keys were sent */
	uint32_t *first; /* n_shards: of to */
	uint32_t *n_of;	 /* n_shards * n_tables: keys asked */
	struct split_again *again; /* copies to make when all is in; value: to */
	float **again_from;
	uint32_t n_again;
	size_t cap_to, cap_again, cap_from;
};

struct part { /* what a shard holds of the stage's parameters; offset from the stage's first */
	uint64_t offset, n;
};

struct hps_ps_client {
	const struct hps_job *job;
	struct hps_head head; /* src, job, incarnation of every request */
	uint32_t stage, n_shards, n_tables;
	bool bsp;
	uint32_t *dim;
	uint64_t *seq; /* n_shards: requests sent */
	struct split split;
	struct pull *pull, **pull_end, *spare;

	struct part *part;
	uint64_t n_floats;
	size_t n_vectors; /* of optimizer state */
	struct wait dense, flush;
	float *params, *state;
	uint64_t updates;
};

#endif
