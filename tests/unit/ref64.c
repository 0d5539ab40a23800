/* What are a model's exact gradients? Sample by sample, in double, no tricks. */
#include "ref64.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"

/* One sample at work: value and gradient of every layer's output, one after another. */
struct sample {
	const struct hps_graph *g;
	const struct hps_model *m;
	const float *param;
	ref64_row row;
	void *ctx;
	const float *dense_in;
	const uint64_t *hash;
	uint64_t seed, row_number;
	uint32_t epoch;
	float label;
	double **value, **grad; /* n_layers */
	struct ref64 *out;
};

static double act(enum hps_act a, double z)
{
	switch (a) {
	case HPS_ACT_RELU:
		return z > 0 ? z : 0;
	case HPS_ACT_SIGMOID:
		return 1 / (1 + exp(-z));
	case HPS_ACT_TANH:
		return tanh(z);
	default:
		return z;
	}
}

static double act_slope(enum hps_act a, double y)
{
	switch (a) {
	case HPS_ACT_RELU:
		return y > 0;
	case HPS_ACT_SIGMOID:
		return y * (1 - y);
	case HPS_ACT_TANH:
		return 1 - y * y;
	default:
		return 1;
	}
}

/* Key number i of an embedding or negatives layer. */
static uint64_t key_of(const struct sample *s, uint32_t layer, uint32_t i)
{
	const struct hps_layer *l = &s->m->layer[layer];
	uint64_t rows = s->m->table[l->table].rows;

	if (l->op == HPS_OP_NEGATIVES)
		return hps_negative_key(s->seed, s->epoch, layer, s->row_number, i, rows);
	return hps_table_key(s->hash[l->slot[i]], rows);
}

static uint32_t n_keys(const struct hps_layer *l)
{
	return l->op == HPS_OP_NEGATIVES ? l->count : l->n_slots;
}

static double input_at(const struct sample *s, const struct hps_layer *l, uint32_t i, uint32_t c)
{
	return l->input[i] == HPS_INPUT_DENSE ? s->dense_in[c] : s->value[l->input[i]][c];
}

static uint32_t input_cols(const struct sample *s, const struct hps_layer *l, uint32_t i)
{
	return l->input[i] == HPS_INPUT_DENSE ? s->m->dense : s->m->layer[l->input[i]].cols;
}

static void input_add(struct sample *s, const struct hps_layer *l, uint32_t i, uint32_t c, double g)
{
	if (l->input[i] != HPS_INPUT_DENSE)
		s->grad[l->input[i]][c] += g;
}

/* Parameters of a dense layer: W (in, units) row-major, then b. */
static uint64_t weight_at(const struct sample *s, uint32_t layer, uint32_t i, uint32_t u)
{
	return s->g->layer_offset[layer] + (uint64_t)i * s->m->layer[layer].units + u;
}

static void forward(struct sample *s, uint32_t layer)
{
	const struct hps_layer *l = &s->m->layer[layer];
	double *y = s->value[layer];
	uint32_t at = 0;

	memset(y, 0, l->cols * sizeof(*y));
	switch (l->op) {
	case HPS_OP_EMBEDDING:
	case HPS_OP_NEGATIVES: {
		uint32_t dim = s->m->table[l->table].dim, n = n_keys(l);

		for (uint32_t i = 0; i < n; i++) {
			const float *row = s->row(s->ctx, l->table, key_of(s, layer, i));

			for (uint32_t c = 0; c < dim; c++)
				y[l->pooling == HPS_POOL_CONCAT ? i * dim + c : c] +=
					l->pooling == HPS_POOL_MEAN ? row[c] / (double)n : row[c];
		}
		break;
	}
	case HPS_OP_CONCAT:
		for (uint32_t i = 0; i < l->n_inputs; i++)
			for (uint32_t c = 0; c < input_cols(s, l, i); c++)
				y[at++] = input_at(s, l, i, c);
		break;
	case HPS_OP_SLICE:
		for (uint32_t c = 0; c < l->size; c++)
			y[c] = input_at(s, l, 0, l->begin + c);
		break;
	case HPS_OP_DENSE: {
		uint32_t in = input_cols(s, l, 0);

		for (uint32_t u = 0; u < l->units; u++) {
			double z = l->bias ? s->param[weight_at(s, layer, in, u)] : 0;

			for (uint32_t i = 0; i < in; i++)
				z += input_at(s, l, 0, i) * s->param[weight_at(s, layer, i, u)];
			y[u] = act(l->act, z);
		}
		break;
	}
	case HPS_OP_COSINE: {
		double ab = 0, aa = 0, bb = 0;

		for (uint32_t c = 0; c < input_cols(s, l, 0); c++) {
			double a = input_at(s, l, 0, c), b = input_at(s, l, 1, c);

			ab += a * b;
			aa += a * a;
			bb += b * b;
		}
		y[0] = aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
		break;
	}
	}
}

static void add_row_grad(struct sample *s, uint32_t table, uint64_t key, const double *g)
{
	struct ref64_rows *r = &s->out->rows[table];
	uint32_t dim = s->m->table[table].dim;
	size_t i = 0;

	while (i < r->n && r->key[i] != key)
		i++;
	if (i == r->n) {
		if (r->n == r->cap) {
			r->cap = r->cap ? 2 * r->cap : 64;
			r->key = realloc(r->key, r->cap * sizeof(*r->key));
			r->grad = realloc(r->grad, r->cap * dim * sizeof(*r->grad));
			assert_non_null(r->key);
			assert_non_null(r->grad);
		}
		r->key[r->n++] = key;
		memset(r->grad + i * dim, 0, dim * sizeof(*r->grad));
	}
	for (uint32_t c = 0; c < dim; c++)
		r->grad[i * dim + c] += g[c];
}

static void backward(struct sample *s, uint32_t layer)
{
	const struct hps_layer *l = &s->m->layer[layer];
	const double *y = s->value[layer], *dy = s->grad[layer];
	uint32_t at = 0;

	switch (l->op) {
	case HPS_OP_EMBEDDING:
	case HPS_OP_NEGATIVES: {
		uint32_t dim = s->m->table[l->table].dim, n = n_keys(l);

		for (uint32_t i = 0; i < n; i++) {
			double g[512];

			assert_true(dim <= 512);
			for (uint32_t c = 0; c < dim; c++)
				g[c] = dy[l->pooling == HPS_POOL_CONCAT ? i * dim + c : c] /
				       (l->pooling == HPS_POOL_MEAN ? (double)n : 1);
			add_row_grad(s, l->table, key_of(s, layer, i), g);
		}
		break;
	}
	case HPS_OP_CONCAT:
		for (uint32_t i = 0; i < l->n_inputs; i++)
			for (uint32_t c = 0; c < input_cols(s, l, i); c++)
				input_add(s, l, i, c, dy[at++]);
		break;
	case HPS_OP_SLICE:
		for (uint32_t c = 0; c < l->size; c++)
			input_add(s, l, 0, l->begin + c, dy[c]);
		break;
	case HPS_OP_DENSE: {
		uint32_t in = input_cols(s, l, 0);

		for (uint32_t u = 0; u < l->units; u++) {
			double dz = dy[u] * act_slope(l->act, y[u]);

			for (uint32_t i = 0; i < in; i++) {
				uint64_t w = weight_at(s, layer, i, u);

				s->out->dense[w] += dz * input_at(s, l, 0, i);
				input_add(s, l, 0, i, dz * s->param[w]);
			}
			if (l->bias)
				s->out->dense[weight_at(s, layer, in, u)] += dz;
		}
		break;
	}
	case HPS_OP_COSINE: {
		double aa = 0, bb = 0;
		uint32_t n = input_cols(s, l, 0);

		for (uint32_t c = 0; c < n; c++) {
			aa += pow(input_at(s, l, 0, c), 2);
			bb += pow(input_at(s, l, 1, c), 2);
		}
		for (uint32_t c = 0; c < n && aa > 0 && bb > 0; c++) {
			double a = input_at(s, l, 0, c), b = input_at(s, l, 1, c);

			input_add(s, l, 0, c, dy[0] * (b / sqrt(aa * bb) - y[0] * a / aa));
			input_add(s, l, 1, c, dy[0] * (a / sqrt(aa * bb) - y[0] * b / bb));
		}
		break;
	}
	}
}

/* log(1 + exp(x)) */
static double softplus(double x)
{
	return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double nce(struct sample *s, const struct hps_loss *ls)
{
	const struct hps_layer *noise = &s->m->layer[ls->input[2]];
	uint32_t d = s->m->layer[ls->input[0]].cols, k = noise->cols / d;
	const double *h = s->value[ls->input[0]];
	double shift = log((double)k / (double)s->m->table[noise->table].rows), loss = 0;

	for (uint32_t j = 0; j <= k; j++) { /* 0: the target, then the noise */
		uint32_t from = (uint32_t)ls->input[j ? 2 : 1];
		size_t off = j ? (size_t)(j - 1) * d : 0;
		const double *w = s->value[from] + off;
		double z = -shift, slope;

		for (uint32_t c = 0; c < d; c++)
			z += h[c] * w[c];
		loss += softplus(j ? z : -z);
		slope = 1 / (1 + exp(-z)) - (j ? 0 : 1);
		for (uint32_t c = 0; c < d; c++) {
			s->grad[ls->input[0]][c] += slope * w[c];
			s->grad[from][off + c] += slope * h[c];
		}
	}
	return loss;
}

/* The loss of the sample; its gradient goes into the inputs'. */
static double loss(struct sample *s)
{
	const struct hps_loss *ls = &s->m->loss;
	const double *z = s->value[ls->input[0]];
	double *dz = s->grad[ls->input[0]], v;

	switch (ls->kind) {
	case HPS_LOSS_SIGMOID_CE:
		dz[0] += 1 / (1 + exp(-z[0])) - s->label;
		return softplus(z[0]) - s->label * z[0];
	case HPS_LOSS_SOFTMAX_CE: {
		double p1 = 1 / (1 + exp(z[0] - z[1]));
		int one = s->label > 0.5f;

		dz[0] += 1 - p1 - !one;
		dz[1] += p1 - one;
		return softplus(one ? z[0] - z[1] : z[1] - z[0]);
	}
	case HPS_LOSS_HINGE:
		v = ls->margin - z[0] + s->value[ls->input[1]][0];
		if (s->label < 0.5f || v <= 0)
			return 0;
		dz[0] -= 1;
		s->grad[ls->input[1]][0] += 1;
		return v;
	default:
		return s->label < 0.5f ? 0 : nce(s, ls);
	}
}

void ref64_gradient(const struct hps_graph *g, const float *dense, ref64_row row, void *ctx,
		    const struct hps_batch *data, uint64_t begin, uint64_t end, uint64_t seed,
		    uint32_t epoch, struct ref64 *out)
{
	const struct hps_model *m = g->model;
	struct sample s = { .g = g,
			    .m = m,
			    .param = dense,
			    .row = row,
			    .ctx = ctx,
			    .seed = seed,
			    .epoch = epoch,
			    .out = out };

	*out = (struct ref64){ .n_tables = m->n_tables };
	out->dense = calloc(g->n_floats + 1, sizeof(double));
	out->rows = calloc(m->n_tables + 1, sizeof(*out->rows));
	s.value = calloc(m->n_layers, sizeof(double *));
	s.grad = calloc(m->n_layers, sizeof(double *));
	assert_true(out->dense && out->rows && s.value && s.grad);
	for (uint32_t l = 0; l < m->n_layers; l++) {
		s.value[l] = calloc(m->layer[l].cols, sizeof(double));
		s.grad[l] = calloc(m->layer[l].cols, sizeof(double));
		assert_true(s.value[l] && s.grad[l]);
	}
	for (uint64_t r = begin; r < end; r++) {
		s.row_number = data->row[r];
		s.label = data->label[r];
		s.dense_in = data->feature + r * data->dense;
		s.hash = data->key + r * data->slots;
		for (uint32_t l = 0; l < m->n_layers; l++) {
			forward(&s, l);
			memset(s.grad[l], 0, m->layer[l].cols * sizeof(double));
		}
		out->loss += loss(&s);
		for (uint32_t l = m->n_layers; l-- > 0;)
			backward(&s, l);
	}
	for (uint32_t l = 0; l < m->n_layers; l++) {
		free(s.value[l]);
		free(s.grad[l]);
	}
	free(s.value);
	free(s.grad);
}

const double *ref64_row_grad(const struct ref64 *r, const struct hps_graph *g, uint32_t table,
			     uint64_t key)
{
	const struct ref64_rows *t = &r->rows[table];

	for (size_t i = 0; i < t->n; i++)
		if (t->key[i] == key)
			return t->grad + i * g->model->table[table].dim;
	return NULL;
}

void ref64_release(struct ref64 *r)
{
	for (uint32_t t = 0; t < r->n_tables; t++) {
		free(r->rows[t].key);
		free(r->rows[t].grad);
	}
	free(r->rows);
	free(r->dense);
}
