/* Pairwise hinge over positive rows: formula in nn/loss.h. coef: 1 where it is active. */
#include "nn/loss.h"
#include "nn/stage_int.h"

static enum hps_status prepare(const struct hps_graph *g, struct hps_loss_node *l,
			       struct hps_err *err)
{
	for (int i = 0; i < 2; i++)
		if (l->edge[i].cols != 1)
			return hps_err_set(err, HPS_BAD_INPUT,
					   "loss: hinge needs inputs of 1 column, got %u",
					   l->edge[i].cols);
	l->coef_cols = 1;
	return HPS_OK;
}

static double forward(struct hps_pass *p, const struct hps_loss_node *l, bool training)
{
	const float *pos = hps_read(p, &l->edge[0].value), *neg = hps_read(p, &l->edge[1].value);
	double sum = 0;

	for (uint32_t r = 0; r < p->rows; r++) {
		double h = l->spec->margin - *pos + *neg;
		bool active = p->in.label[r] > 0.5f && !(h <= 0); /* NaN counts */

		if (active)
			sum += h;
		p->scores[r] = *pos;
		if (training)
			p->coef[r] = active ? 1.0f : 0.0f;
		pos += l->edge[0].value.ld;
		neg += l->edge[1].value.ld;
	}
	return sum;
}

static void backward(struct hps_pass *p, const struct hps_loss_node *l)
{
	for (int i = 0; i < 2; i++) {
		const struct hps_edge *e = &l->edge[i];
		float sign = i == 0 ? -1.0f : 1.0f, *g;

		if (!e->wants_grad)
			continue;
		g = hps_write(p, &e->grad);
		for (uint32_t r = 0; r < p->rows; r++, g += e->grad.ld)
			*g = e->adds ? *g + sign * p->coef[r] : sign * p->coef[r];
	}
}

const struct hps_loss_code hps_loss_hinge = {
	.n_inputs = 2,
	.prepare = prepare,
	.forward = forward,
	.backward = backward,
};
