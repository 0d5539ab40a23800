/* Concat: inputs side by side. Most inputs write straight into its columns (layout.c);
 * the rest, as the dense features and what came over a cut, are copied here.
 */
#include "nn/stage_int.h"

static void forward(struct hps_pass *p, const struct hps_node *n, const float *params)
{
	float *out = hps_write(p, &n->value);

	for (uint32_t i = 0; i < n->n_edges; i++) {
		const struct hps_edge *e = &n->edge[i];

		if (!e->value_in_place)
			p->stage->be->copy2d(out + e->at, (int)n->value.ld, hps_read(p, &e->value),
					     (int)e->value.ld, (int)p->rows, (int)e->cols, false);
	}
}

static void backward(struct hps_pass *p, const struct hps_node *n, const float *params,
		     float *grads)
{
	const float *dy = hps_read(p, &n->grad);

	for (uint32_t i = 0; i < n->n_edges; i++) {
		const struct hps_edge *e = &n->edge[i];

		if (e->wants_grad && !e->grad_in_place)
			p->stage->be->copy2d(hps_write(p, &e->grad), (int)e->grad.ld, dy + e->at,
					     (int)n->grad.ld, (int)p->rows, (int)e->cols, e->adds);
	}
}

const struct hps_op_code hps_op_concat = {
	.min_inputs = 1,
	.max_inputs = UINT32_MAX,
	.forward = forward,
	.backward = backward,
};
