/* Slice: some columns of one input; forward a view wherever the layout allows it. */
#include "nn/stage_int.h"

#include <string.h>

static void forward(struct hps_pass *p, const struct hps_node *n, const float *params)
{
	const struct hps_edge *e = n->edge;

	if (!e->value_in_place)
		p->stage->be->copy2d(hps_write(p, &n->value), (int)n->value.ld,
				     hps_read(p, &e->value) + n->layer->begin, (int)e->value.ld,
				     (int)p->rows, (int)n->layer->size, false);
}

/* The first to write an input's gradient also clears the columns it does not reach. */
static void backward(struct hps_pass *p, const struct hps_node *n, const float *params,
		     float *grads)
{
	const struct hps_edge *e = n->edge;
	float *dx;

	if (!e->wants_grad)
		return;
	dx = hps_write(p, &e->grad);
	if (!e->adds)
		for (uint32_t r = 0; r < p->rows; r++)
			memset(dx + (size_t)r * e->grad.ld, 0, e->cols * sizeof(*dx));
	p->stage->be->copy2d(dx + n->layer->begin, (int)e->grad.ld, hps_read(p, &n->grad),
			     (int)n->grad.ld, (int)p->rows, (int)n->layer->size, true);
}

const struct hps_op_code hps_op_slice = {
	.min_inputs = 1,
	.max_inputs = 1,
	.forward = forward,
	.backward = backward,
};
