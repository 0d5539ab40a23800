/* Dense: y = act(x W + b), W (in, units) row-major, and its three gradients; the backend
 * does the products.
 */
#include "nn/stage_int.h"

/* lib/job's activations and the backend's are one list. */
_Static_assert((int)HPS_ACT_LINEAR == (int)HPS_FN_LINEAR && (int)HPS_ACT_RELU == (int)HPS_FN_RELU &&
		       (int)HPS_ACT_SIGMOID == (int)HPS_FN_SIGMOID &&
		       (int)HPS_ACT_TANH == (int)HPS_FN_TANH,
	       "activations differ");

static void forward(struct hps_pass *p, const struct hps_node *n, const float *params)
{
	const struct hps_backend *be = p->stage->be;
	const struct hps_edge *x = n->edge;
	const float *w = params + n->param;
	const float *b = n->layer->bias ? w + (size_t)x->cols * n->layer->units : NULL;
	int rows = (int)p->rows, units = (int)n->layer->units;
	float *y = hps_write(p, &n->value);

	be->gemm(false, false, rows, units, (int)x->cols, 1.0f, hps_read(p, &x->value),
		 (int)x->value.ld, w, units, 0.0f, y, (int)n->value.ld);
	be->bias_act(y, b, rows, units, (int)n->value.ld, (enum hps_act_fn)n->layer->act);
}

static void backward(struct hps_pass *p, const struct hps_node *n, const float *params,
		     float *grads)
{
	const struct hps_backend *be = p->stage->be;
	const struct hps_edge *x = n->edge;
	const float *w = params + n->param;
	float *dw = grads + n->param;
	float *db = n->layer->bias ? dw + (size_t)x->cols * n->layer->units : NULL;
	int rows = (int)p->rows, units = (int)n->layer->units, in = (int)x->cols;
	int ldg = (int)n->grad.ld;
	float *dy = hps_write(p, &n->grad);

	be->act_grad(dy, ldg, hps_read(p, &n->value), (int)n->value.ld, rows, units,
		     (enum hps_act_fn)n->layer->act, db);
	/* dW += x' dy; dx = or += dy W' */
	be->gemm(true, false, in, units, rows, 1.0f, hps_read(p, &x->value), (int)x->value.ld, dy,
		 ldg, 1.0f, dw, units);
	if (x->wants_grad)
		be->gemm(false, true, rows, in, units, 1.0f, dy, ldg, w, units,
			 x->adds ? 1.0f : 0.0f, hps_write(p, &x->grad), (int)x->grad.ld);
}

const struct hps_op_code hps_op_dense = {
	.min_inputs = 1,
	.max_inputs = 1,
	.forward = forward,
	.backward = backward,
};
