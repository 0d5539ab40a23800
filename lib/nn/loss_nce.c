/* Noise-contrastive estimation over positive rows: formula and sources in nn/loss.h.
 * coef: a, then c_1..c_k of each row.
 */
#include "nn/loss.h"
#include "nn/stage_int.h"

#include <string.h>

static enum hps_status prepare(const struct hps_graph *g, struct hps_loss_node *l,
			       struct hps_err *err)
{
	const struct hps_model *m = g->model;
	const struct hps_layer *noise = &m->layer[l->spec->input[2]];
	const struct hps_table_spec *t;

	if (noise->op != HPS_OP_NEGATIVES || noise->pooling != HPS_POOL_CONCAT)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "loss: nce's noise must be a negatives layer pooled by concat, "
				   "which '%s' is not",
				   noise->name);
	t = &m->table[noise->table];
	if (t->rows == 0)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "loss: nce's noise is uniform over the rows of table '%s', "
				   "which states none",
				   t->name);
	if (l->edge[0].cols != l->edge[1].cols ||
	    l->edge[2].cols != (uint64_t)noise->count * l->edge[0].cols)
		return hps_err_set(
			err, HPS_BAD_INPUT,
			"loss: nce needs hidden and target of equal width D and noise of "
			"count * D columns, got %u, %u and %u",
			l->edge[0].cols, l->edge[1].cols, l->edge[2].cols);
	l->coef_cols = 1 + noise->count;
	l->log_kq = (float)log((double)noise->count / (double)t->rows);
	return HPS_OK;
}

static double dot(const float *a, const float *b, uint32_t n)
{
	double s = 0;

	for (uint32_t i = 0; i < n; i++)
		s += (double)a[i] * b[i];
	return s;
}

static double forward(struct hps_pass *p, const struct hps_loss_node *l, bool training)
{
	const float *h = hps_read(p, &l->edge[0].value), *t = hps_read(p, &l->edge[1].value);
	const float *noise = hps_read(p, &l->edge[2].value);
	uint32_t d = l->edge[0].cols, k = l->coef_cols - 1;
	float *coef = p->coef;
	double sum = 0;

	for (uint32_t r = 0; r < p->rows; r++) {
		double s = dot(h, t, d);

		p->scores[r] = (float)hps_logistic(s).sigma;
		if (p->in.label[r] > 0.5f) {
			struct hps_logistic x = hps_logistic(l->log_kq - s);

			sum += x.softplus;
			coef[0] = (float)-x.sigma; /* sigma(s - log kq) - 1 */
			for (uint32_t j = 0; j < k; j++) {
				x = hps_logistic(dot(h, noise + (size_t)j * d, d) - l->log_kq);
				sum += x.softplus;
				coef[1 + j] = (float)x.sigma;
			}
		} else if (training) {
			memset(coef, 0, l->coef_cols * sizeof(*coef));
		}
		h += l->edge[0].value.ld;
		t += l->edge[1].value.ld;
		noise += l->edge[2].value.ld;
		coef += l->coef_cols;
	}
	return sum;
}

/* y (n) = or += a x */
static void scaled(float *y, float a, const float *x, uint32_t n, bool add)
{
	for (uint32_t i = 0; i < n; i++)
		y[i] = add ? y[i] + a * x[i] : a * x[i];
}

static void backward(struct hps_pass *p, const struct hps_loss_node *l)
{
	const struct hps_edge *eh = &l->edge[0], *et = &l->edge[1], *en = &l->edge[2];
	uint32_t d = eh->cols, k = l->coef_cols - 1;

	for (uint32_t r = 0; r < p->rows; r++) {
		const float *h = hps_read(p, &eh->value) + (size_t)r * eh->value.ld;
		const float *t = hps_read(p, &et->value) + (size_t)r * et->value.ld;
		const float *noise = hps_read(p, &en->value) + (size_t)r * en->value.ld;
		const float *coef = p->coef + (size_t)r * l->coef_cols;

		if (eh->wants_grad) {
			float *dh = hps_write(p, &eh->grad) + (size_t)r * eh->grad.ld;

			scaled(dh, coef[0], t, d, eh->adds);
			for (uint32_t j = 0; j < k; j++)
				scaled(dh, coef[1 + j], noise + (size_t)j * d, d, true);
		}
		if (et->wants_grad)
			scaled(hps_write(p, &et->grad) + (size_t)r * et->grad.ld, coef[0], h, d,
			       et->adds);
		for (uint32_t j = 0; j < k; j++)
			scaled(hps_write(p, &en->grad) + (size_t)r * en->grad.ld + (size_t)j * d,
			       coef[1 + j], h, d, en->adds);
	}
}

const struct hps_loss_code hps_loss_nce = {
	.n_inputs = 3,
	.prepare = prepare,
	.forward = forward,
	.backward = backward,
};
