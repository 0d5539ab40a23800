/* Memory of a batch of rows. */
#include "data/batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum hps_status hps_batch_init(struct hps_batch *b, uint32_t capacity, uint32_t slots,
			       uint32_t dense, struct hps_err *err)
{
	size_t features, keys;

	*b = (struct hps_batch){ .capacity = capacity, .slots = slots, .dense = dense };
	if (hps_mul_size(capacity, dense, &features) != 0 ||
	    hps_mul_size(capacity, slots, &keys) != 0)
		return hps_err_set(err, HPS_MEMORY, "a batch of %" PRIu32 " rows is too large",
				   capacity);
	b->row = hps_calloc(capacity, sizeof *b->row, err);
	b->label = hps_calloc(capacity, sizeof *b->label, err);
	b->feature = hps_calloc_aligned(features, sizeof *b->feature, err);
	b->key = hps_calloc_aligned(keys, sizeof *b->key, err);
	if (b->row == NULL || b->label == NULL || b->feature == NULL || b->key == NULL) {
		hps_batch_release(b);
		return HPS_MEMORY;
	}
	return HPS_OK;
}

void hps_batch_release(struct hps_batch *b)
{
	free(b->row);
	free(b->label);
	free(b->feature);
	free(b->key);
	*b = (struct hps_batch){ 0 };
}
