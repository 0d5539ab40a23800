/* What the files of a shard share: requests (shard.c), tables (shard_rows.c), dense parameters
 * (shard_dense.c). */
#ifndef HPS_PS_SHARD_INT_H
#define HPS_PS_SHARD_INT_H

#include <stdatomic.h>
#include "ps/shard.h"

/* --- tables --- */

struct sum_slot { /* of the scratch hash: key to its place in the sums, of one generation */
	uint64_t key;
	uint32_t at, generation;
};

struct shard_row_init { /* what hps_row_init needs to know of a table */
	const struct hps_table_spec *spec;
	uint32_t table;
	uint64_t seed;
};

struct shard_rows {
	struct hps_table **table; /* n_tables */
	uint32_t n_tables;
	uint32_t *dim;
	struct shard_row_init *init;
	bool bsp;
	uint64_t step; /* bsp: updates applied; asp: latest step pushed + 1 */

	/* bsp: pushes of steps step .. step + HPS_PS_AHEAD - 1, each step's in the order of
	 * summation: [(step % HPS_PS_AHEAD) * n_due + turn]; n_frames 0: not here yet */
	struct hps_msg *due;
	uint32_t n_due, n_micro;
	uint32_t n_here[HPS_PS_AHEAD];
	uint32_t n_lookup;    /* lookup stages */
	uint32_t *stage_rank; /* n_stages: the how-manieth lookup stage; UINT32_MAX: none */
	uint32_t *turn;	      /* n_lookup * n_micro: where a micro-batch's push stands */

	/* scratch of the summation, kept between steps */
	struct sum_slot *sum_slot;
	unsigned sum_bits;
	uint32_t generation;
	uint64_t *sum_key;
	float *sum;
	size_t cap_keys, cap_floats;
	struct rows_cursor *cursor; /* n_due */
};

enum hps_status hps_shard_rows_init(struct shard_rows *r, const struct hps_job *job, uint32_t shard,
				    struct hps_err *err);
void hps_shard_rows_release(struct shard_rows *r);
/* Turn a checked PULL into its ROWS answer: *answer gets frames; m loses its directory. */
enum hps_status hps_shard_rows_answer(struct shard_rows *r, struct hps_msg *m,
				      struct hps_msg *answer, struct hps_err *err);
/* A checked PUSH of the replica's stage, kept or applied; m is empty then. *updated: tables
 * changed. */
enum hps_status hps_shard_rows_push(struct shard_rows *r, struct hps_msg *m, uint32_t stage,
				    bool *updated, struct hps_err *err);

/* --- dense parameters --- */

struct dense_buf { /* parameters that answers under way may share */
	atomic_uint refs;
	float *param;
};

struct shard_dense {
	uint32_t stage, n_replicas;
	uint64_t first, n;
	bool ring, bsp;
	struct hps_optim optim;
	struct dense_buf *buf;
	float *state;
	size_t n_state;
	uint64_t updates;
	uint64_t step;	     /* bsp, "ps": updates due so far, as shard_rows.step */
	struct hps_msg *due; /* [(step % HPS_PS_AHEAD) * n_replicas + replica] */
	uint32_t n_here[HPS_PS_AHEAD];
};

enum hps_status hps_shard_dense_init(struct shard_dense *d, const struct hps_job *job,
				     const struct hps_graph *g, uint32_t stage, uint64_t first,
				     uint64_t n, struct hps_err *err);
void hps_shard_dense_release(struct shard_dense *d);
enum hps_status hps_shard_dense_answer(struct shard_dense *d, uint32_t flags,
				       struct hps_msg *answer, struct hps_err *err);
enum hps_status hps_shard_dense_push(struct shard_dense *d, struct hps_msg *m, uint32_t replica,
				     bool *updated, struct hps_err *err);
enum hps_status hps_shard_dense_set(struct shard_dense *d, struct hps_msg *m, struct hps_err *err);
/* As hps_shard_put_dense: the part of [first, first + n) held here. */
enum hps_status hps_shard_dense_put(struct shard_dense *d, uint64_t first, uint64_t n,
				    const float *param, const float *state, uint64_t updates,
				    struct hps_err *err);

#endif
