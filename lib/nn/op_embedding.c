/* Embedding and negatives: which rows a micro-batch needs, pooling them forward, and
 * adding up their gradients backward, samples in ascending order.
 */
#include "nn/stage_int.h"

#include <string.h>
#include "base/hot.h"

static void slot_keys(const struct hps_pass *p, const struct hps_layer *layer, uint64_t rows,
		      uint64_t *key)
{
	for (uint32_t r = 0; r < p->rows; r++) {
		const uint64_t *hash = p->in.key + (size_t)r * p->in.n_key_slots;

		for (uint32_t k = 0; k < layer->n_slots; k++)
			*key++ = hps_table_key(hash[p->column[layer->slot[k]]], rows);
	}
}

static void drawn_keys(const struct hps_pass *p, const struct hps_node *n, uint64_t rows,
		       uint64_t *key)
{
	for (uint32_t r = 0; r < p->rows; r++)
		for (uint32_t k = 0; k < n->layer->count; k++)
			*key++ = hps_negative_key(p->in.seed, p->in.epoch, n->id, p->in.row[r], k,
						  rows);
}

void hps_lookup_begin(struct hps_pass *p, const struct hps_node *n)
{
	struct hps_lookup *u = &p->lookup[n->lookup];
	uint64_t rows = p->stage->g->model->table[u->table].rows;

	if (n->layer->op == HPS_OP_NEGATIVES)
		drawn_keys(p, n, rows, u->key);
	else
		slot_keys(p, n->layer, rows, u->key);
	u->n_unique = hps_dedup(u->key, p->rows * u->keys, u->index, p->hash);
}

/* Rows are a few floats long: copies of fixed size instead of a call for each. */
static inline void copy_row(float *restrict out, const float *restrict row, uint32_t dim)
{
	uint32_t d = 0;

	for (; dim - d >= 8; d += 8)
		memcpy(out + d, row + d, 8 * sizeof(*out));
	if (dim - d >= 4) {
		memcpy(out + d, row + d, 4 * sizeof(*out));
		d += 4;
	}
	if (dim - d >= 2) {
		memcpy(out + d, row + d, 2 * sizeof(*out));
		d += 2;
	}
	if (d < dim)
		out[d] = row[d];
}

/* One sample: rows side by side. */
HPS_HOT static void gather_concat(float *restrict out, const float *restrict unique,
				  const uint32_t *restrict index, uint32_t keys, uint32_t dim)
{
	for (uint32_t k = 0; k < keys; k++, out += dim)
		copy_row(out, unique + (size_t)index[k] * dim, dim);
}

/* One sample: their sum, keys in order, divided by `over`. */
HPS_HOT static void gather_sum(float *restrict out, const float *restrict unique,
			       const uint32_t *restrict index, uint32_t keys, uint32_t dim,
			       float over)
{
	for (uint32_t d = 0; d < dim; d++)
		out[d] = unique[(size_t)index[0] * dim + d];
	for (uint32_t k = 1; k < keys; k++) {
		const float *row = unique + (size_t)index[k] * dim;

		for (uint32_t d = 0; d < dim; d++)
			out[d] += row[d];
	}
	if (over == 1.0f)
		return;
	for (uint32_t d = 0; d < dim; d++)
		out[d] /= over;
}

static float divisor(const struct hps_layer *layer, uint32_t keys)
{
	return layer->pooling == HPS_POOL_MEAN ? (float)keys : 1.0f;
}

static void forward(struct hps_pass *p, const struct hps_node *n, const float *params)
{
	const struct hps_lookup *u = &p->lookup[n->lookup];
	const uint32_t *index = u->index;
	float *out = hps_write(p, &n->value);
	float over = divisor(n->layer, u->keys);

	for (uint32_t r = 0; r < p->rows; r++, out += n->value.ld, index += u->keys) {
		if (n->layer->pooling == HPS_POOL_CONCAT)
			gather_concat(out, u->unique, index, u->keys, u->dim);
		else
			gather_sum(out, u->unique, index, u->keys, u->dim, over);
	}
}

HPS_HOT static void scatter_concat(float *restrict grad, const float *restrict dy,
				   const uint32_t *restrict index, uint32_t keys, uint32_t dim)
{
	for (uint32_t k = 0; k < keys; k++, dy += dim) {
		float *row = grad + (size_t)index[k] * dim;

		for (uint32_t d = 0; d < dim; d++)
			row[d] += dy[d];
	}
}

HPS_HOT static void scatter_sum(float *restrict grad, const float *restrict dy,
				const uint32_t *restrict index, uint32_t keys, uint32_t dim,
				float over)
{
	for (uint32_t k = 0; k < keys; k++) {
		float *row = grad + (size_t)index[k] * dim;

		for (uint32_t d = 0; d < dim; d++)
			row[d] += dy[d] / over;
	}
}

static void backward(struct hps_pass *p, const struct hps_node *n, const float *params,
		     float *grads)
{
	const struct hps_lookup *u = &p->lookup[n->lookup];
	const uint32_t *index = u->index;
	const float *dy = hps_read(p, &n->grad);
	float over = divisor(n->layer, u->keys);

	memset(u->grad, 0, (size_t)u->n_unique * u->dim * sizeof(float));
	for (uint32_t r = 0; r < p->rows; r++, dy += n->grad.ld, index += u->keys) {
		if (n->layer->pooling == HPS_POOL_CONCAT)
			scatter_concat(u->grad, dy, index, u->keys, u->dim);
		else
			scatter_sum(u->grad, dy, index, u->keys, u->dim, over);
	}
}

const struct hps_op_code hps_op_embedding = {
	.min_inputs = 0,
	.max_inputs = 0,
	.forward = forward,
	.backward = backward,
};
