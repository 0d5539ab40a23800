/* The sparse table of one shard: 64-bit keys to fixed rows. One thread, no locks.
 *
 *   slots   [ key u64 | row number + 1 u32 | 0 u32 ]  open addressing, linear probing, a power
 *           of two, at most 5/8 full; 0 in the row number marks a free slot
 *   arena   [ embedding dim | optimizer state | frequency u32, last use u32 ]  fixed stride,
 *           in blocks that never move
 *
 * Every key is legal, 0 and UINT64_MAX too. A row comes into being at its first PUSH, in
 * the order of the reduced step: so which rows a ceiling keeps out does not depend on the
 * order of arrival. Until then a pull computes its initial value (a function of seed, table
 * and key) without storing it.
 *
 * Ceilings: bytes are those of slots and arena as allocated. The block size follows from the
 * ceiling, so which push is the first to be refused depends on the number of rows alone. Where
 * the slots may not double any more they fill to 7/8.
 */
#ifndef HPS_TABLE_TABLE_H
#define HPS_TABLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "optim/optim.h"

struct hps_table;

struct hps_table_opts {
	const char *name; /* copied */
	uint32_t dim;	  /* > 0 */
	struct hps_optim optim;
	/* fill a new row's dim values for a key; called by push and by pull */
	void (*init)(void *ctx, uint64_t key, float *row);
	void *init_ctx;
	uint64_t max_rows, max_bytes; /* this shard's share; 0 = none */
};

enum hps_status hps_table_new(const struct hps_table_opts *o, struct hps_table **out,
			      struct hps_err *err);
void hps_table_free(struct hps_table *t);

/* out (n, dim) = the rows of n keys; unseen ones read as their initial value, or zeros if
 * `zeros` (evaluation). Keys may repeat. Batched with software prefetch. Changes nothing. */
void hps_table_pull(const struct hps_table *t, const uint64_t *key, size_t n, bool zeros,
		    float *out);
/* Apply one optimizer step to n DISTINCT keys, creating unseen rows: grad (n, dim) sums over
 * `count` samples (0: nothing happens). Adam's t of a row is its frequency after this push. A
 * key that stands twice gets two steps. At a ceiling unseen keys are dropped and counted.
 * HPS_MEMORY when an allocation fails: the rows before it are updated. */
enum hps_status hps_table_push(struct hps_table *t, const uint64_t *key, const float *grad,
			       size_t n, uint64_t count, uint32_t step, struct hps_err *err);

struct hps_table_stats {
	uint64_t rows, bytes, refused; /* refused: keys dropped at a ceiling, repeats included */
};
void hps_table_stats(const struct hps_table *t, struct hps_table_stats *s);
const char *hps_table_name(const struct hps_table *t); /* lives as long as the table */

/* Visit rows in slot order, which is the same for the same set of keys put in the same order;
 * row: dim + state floats, then freq and last use. Stops at the first status but HPS_OK. */
typedef enum hps_status (*hps_table_visit)(void *ctx, uint64_t key, const float *row, uint32_t freq,
					   uint32_t last, struct hps_err *err);
enum hps_status hps_table_each(const struct hps_table *t, hps_table_visit fn, void *ctx,
			       struct hps_err *err);
/* Make room for `rows` rows in all, as far as the ceilings allow. To be called before many
 * puts: rows saved in slot order come in hash order, which a growing table takes badly. */
enum hps_status hps_table_reserve(struct hps_table *t, uint64_t rows, struct hps_err *err);
/* Insert or replace a whole row (loading): values has dim + state floats. At a ceiling a new
 * key is dropped and counted. */
enum hps_status hps_table_put(struct hps_table *t, uint64_t key, const float *values, uint32_t freq,
			      uint32_t last, struct hps_err *err);
size_t hps_table_row_floats(const struct hps_table *t); /* dim + state */

#endif
