/* Sigmoid cross entropy: formula in nn/loss.h. coef: the logit's derivative. */
#include "nn/loss.h"
#include "nn/stage_int.h"

static enum hps_status prepare(const struct hps_graph *g, struct hps_loss_node *l,
			       struct hps_err *err)
{
	if (l->edge[0].cols != 1)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "loss: sigmoid_cross_entropy needs 1 column, got %u",
				   l->edge[0].cols);
	l->coef_cols = 1;
	return HPS_OK;
}

static double forward(struct hps_pass *p, const struct hps_loss_node *l, bool training)
{
	const float *z = hps_read(p, &l->edge[0].value);
	double sum = 0;

	for (uint32_t r = 0; r < p->rows; r++, z += l->edge[0].value.ld) {
		bool one = p->in.label[r] > 0.5f;
		struct hps_logistic x = hps_logistic(one ? -*z : *z); /* sigma: the other class */

		sum += x.softplus;
		p->scores[r] = (float)(one ? x.other : x.sigma);
		if (training)
			p->coef[r] = (float)(one ? -x.sigma : x.sigma);
	}
	return sum;
}

static void backward(struct hps_pass *p, const struct hps_loss_node *l)
{
	const struct hps_edge *e = &l->edge[0];

	if (e->wants_grad)
		p->stage->be->copy2d(hps_write(p, &e->grad), (int)e->grad.ld, p->coef, 1,
				     (int)p->rows, 1, e->adds);
}

const struct hps_loss_code hps_loss_sigmoid_ce = {
	.n_inputs = 1,
	.prepare = prepare,
	.forward = forward,
	.backward = backward,
};
