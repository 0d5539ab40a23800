/* A case's loss in double, one sample after another, straight from the definitions of
 * job/model.h and nn/loss.h: what finite differences are taken of.
 */
#include "nn_case.h"

#include <math.h>
#include <stdlib.h>

struct eval {
	const struct nn_case *c;
	const struct nn_bump *bump;
	uint32_t r;	/* the sample */
	double **value; /* n_layers */
};

static double param(const struct eval *e, uint64_t i)
{
	double v = e->c->params[i];

	return e->bump && e->bump->param == (int64_t)i ? v + e->bump->delta : v;
}

static double row_value(const struct eval *e, uint32_t table, uint64_t key, uint32_t d)
{
	const struct nn_bump *b = e->bump;
	double v = nn_row_value(table, key, d);

	return b && b->param < 0 && b->table == table && b->key == key && b->d == d ? v + b->delta
										    : v;
}

static double input(const struct eval *e, int ref, uint32_t i)
{
	return ref == HPS_INPUT_DENSE ? e->c->dense[(size_t)e->r * e->c->model.dense + i]
				      : e->value[ref][i];
}

static uint32_t width(const struct eval *e, int ref)
{
	return ref == HPS_INPUT_DENSE ? e->c->model.dense : e->c->model.layer[ref].cols;
}

static uint64_t key_of(const struct eval *e, uint32_t l, uint32_t k)
{
	const struct hps_layer *layer = &e->c->model.layer[l];

	if (layer->op == HPS_OP_NEGATIVES)
		return e->c->drawn[l][(size_t)e->r * layer->count + k];
	return hps_table_key(e->c->key[(size_t)e->r * e->c->model.slots + layer->slot[k]],
			     e->c->model.table[layer->table].rows);
}

static void embedding(const struct eval *e, uint32_t l, double *y)
{
	const struct hps_layer *layer = &e->c->model.layer[l];
	uint32_t n = layer->op == HPS_OP_NEGATIVES ? layer->count : layer->n_slots;
	uint32_t dim = e->c->model.table[layer->table].dim;

	for (uint32_t k = 0; k < n; k++)
		for (uint32_t d = 0; d < dim; d++) {
			double v = row_value(e, layer->table, key_of(e, l, k), d);

			if (layer->pooling == HPS_POOL_CONCAT)
				y[k * dim + d] = v;
			else
				y[d] += layer->pooling == HPS_POOL_MEAN ? v / n : v;
		}
}

static double activate(enum hps_act act, double z)
{
	switch (act) {
	case HPS_ACT_RELU:
		return z > 0 ? z : 0;
	case HPS_ACT_SIGMOID:
		return 1 / (1 + exp(-z));
	case HPS_ACT_TANH:
		return tanh(z);
	case HPS_ACT_LINEAR:
		break;
	}
	return z;
}

static void dense(const struct eval *e, uint32_t l, double *y)
{
	const struct hps_layer *layer = &e->c->model.layer[l];
	uint64_t w = e->c->graph.layer_offset[l];
	uint32_t in = width(e, layer->input[0]), units = layer->units;

	for (uint32_t j = 0; j < units; j++) {
		double z = layer->bias ? param(e, w + (uint64_t)in * units + j) : 0;

		for (uint32_t i = 0; i < in; i++)
			z += input(e, layer->input[0], i) * param(e, w + (uint64_t)i * units + j);
		y[j] = activate(layer->act, z);
	}
}

static void cosine(const struct eval *e, uint32_t l, double *y)
{
	const int *in = e->c->model.layer[l].input;
	double ab = 0, aa = 0, bb = 0;

	for (uint32_t i = 0; i < width(e, in[0]); i++) {
		double a = input(e, in[0], i), b = input(e, in[1], i);

		ab += a * b;
		aa += a * a;
		bb += b * b;
	}
	*y = aa > 1e-16 && bb > 1e-16 ? ab / sqrt(aa * bb) : 0;
}

static void layer_forward(const struct eval *e, uint32_t l)
{
	const struct hps_layer *layer = &e->c->model.layer[l];
	double *y = e->value[l];
	uint32_t at = 0;

	switch (layer->op) {
	case HPS_OP_EMBEDDING:
	case HPS_OP_NEGATIVES:
		embedding(e, l, y);
		break;
	case HPS_OP_CONCAT:
		for (uint32_t i = 0; i < layer->n_inputs; i++)
			for (uint32_t j = 0; j < width(e, layer->input[i]); j++)
				y[at++] = input(e, layer->input[i], j);
		break;
	case HPS_OP_SLICE:
		for (uint32_t j = 0; j < layer->size; j++)
			y[j] = input(e, layer->input[0], layer->begin + j);
		break;
	case HPS_OP_DENSE:
		dense(e, l, y);
		break;
	case HPS_OP_COSINE:
		cosine(e, l, y);
		break;
	}
}

static double nce(const struct eval *e, const struct hps_loss *loss)
{
	const struct hps_layer *noise = &e->c->model.layer[loss->input[2]];
	const double *h = e->value[loss->input[0]], *t = e->value[loss->input[1]];
	const double *n = e->value[loss->input[2]];
	uint32_t dim = e->c->model.layer[loss->input[0]].cols;
	double log_kq = log((double)noise->count / (double)e->c->model.table[noise->table].rows);
	double s = 0, sum;

	for (uint32_t d = 0; d < dim; d++)
		s += h[d] * t[d];
	sum = log(1 + exp(-(s - log_kq)));
	for (uint32_t j = 0; j < noise->count; j++) {
		s = 0;
		for (uint32_t d = 0; d < dim; d++)
			s += h[d] * n[j * dim + d];
		sum += log(1 + exp(s - log_kq));
	}
	return sum;
}

static double sample_loss(const struct eval *e)
{
	const struct hps_loss *loss = &e->c->model.loss;
	const double *x = e->value[loss->input[0]];
	double y = e->c->label[e->r], h;

	switch (loss->kind) {
	case HPS_LOSS_SIGMOID_CE:
		return -y * log(1 / (1 + exp(-x[0]))) - (1 - y) * log(1 / (1 + exp(x[0])));
	case HPS_LOSS_SOFTMAX_CE:
		return log(exp(x[0]) + exp(x[1])) - x[y > 0 ? 1 : 0];
	case HPS_LOSS_HINGE:
		h = loss->margin - x[0] + e->value[loss->input[1]][0];
		return y > 0 && h > 0 ? h : 0;
	case HPS_LOSS_NCE:
		return y > 0 ? nce(e, loss) : 0;
	}
	return NAN;
}

double nn_case_loss64(const struct nn_case *c, const struct nn_bump *bump)
{
	struct eval e = { .c = c, .bump = bump };
	double sum = 0;

	e.value = calloc(c->model.n_layers, sizeof(*e.value));
	for (e.r = 0; e.r < c->rows; e.r++) {
		for (uint32_t l = 0; l < c->model.n_layers; l++) {
			e.value[l] = calloc(c->model.layer[l].cols, sizeof(double));
			layer_forward(&e, l);
		}
		sum += sample_loss(&e);
		for (uint32_t l = 0; l < c->model.n_layers; l++)
			free(e.value[l]);
	}
	free(e.value);
	return sum;
}
