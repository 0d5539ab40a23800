/* How do the choices depend on the weights? Back-propagation through time of what
 * policy_walk.c did. */
#include <math.h>
#include <string.h>
#include "plan/policy_int.h"

enum { D = HPS_POLICY_TYPE, O = HPS_POLICY_OUTPUTS, P = HPS_POLICY_P, X = HPS_POLICY_LAYER };

/* ln x, with 0 ln 0 = 0. */
static float ln(float p)
{
	return p > 0 ? logf(p) : 0;
}

/* What an entropy over the types that were to be had counts by. */
static float entropy_scale(const struct hps_policy_input *in, uint32_t l)
{
	uint32_t n = in->n_types - (in->merge && l);

	return n > 1 ? (float)(1 / sqrt(log2(n))) : 0;
}

double hps_rollout_loss(const struct hps_rollout *r, const float *weight, const float *bonus)
{
	const struct hps_policy_input *in = r->in;
	size_t W = r->width;
	double loss = 0;

	for (uint32_t l = 0; l < in->n_layers; l++) {
		for (size_t b = 0; b < W; b++) {
			const float *logp = r->part->logp + (l * W + b) * in->stride;
			double p = r->part->head[(l * O + HPS_POLICY_CUT) * W + b], sum = 0;
			bool cut = r->cut[l * W + b];

			if (l && hps_policy_may_cut(in)) {
				loss -= weight[b] * log(cut ? p : 1 - p);
				loss += bonus[b] * (p * log(p) + (1 - p) * log(1 - p));
			}
			if (!cut)
				continue;
			loss -= weight[b] * logp[r->type[l * W + b]];
			for (uint32_t t = 0; t < in->n_types; t++)
				sum += exp(logp[t]) * logp[t];
			loss += bonus[b] * sum * entropy_scale(in, l);
		}
	}
	return loss;
}

/* d loss / d head of layer l, into part->dhead. */
static void head_gradient(struct hps_rollout *r, uint32_t l, const float *weight,
			  const float *bonus)
{
	const struct hps_policy_input *in = r->in;
	size_t W = r->width, S = in->stride;
	float *d = r->part->dhead, scale = entropy_scale(in, l);

	memset(d, 0, O * W * sizeof(*d));
	for (size_t b = 0; b < W; b++) {
		/* The probabilities are not needed again: their place takes d score. */
		float *logp = r->part->logp + (l * W + b) * S, q[D] = { 0 };
		float p = r->part->head[(l * O + HPS_POLICY_CUT) * W + b];
		bool cut = r->cut[l * W + b];

		if (l && hps_policy_may_cut(in))
			d[HPS_POLICY_CUT * W + b] = weight[b] * (p - cut) +
						    bonus[b] * p * (1 - p) * (ln(p) - ln(1 - p));
		if (!cut)
			continue;
		hps_policy_score_back(logp, r->part->prob, S, r->type[l * W + b], weight[b],
				      bonus[b] * scale);
		if (l && !in->merge)
			d[HPS_POLICY_SAME * W + b] = logp[r->type[(l - 1) * W + b]];
		hps_policy_add(q, D, logp, 1, in->by_type + (size_t)l * in->n_types * D,
			       in->n_types);
		for (size_t k = 0; k < D; k++)
			d[(HPS_POLICY_Q + k) * W + b] = q[k];
	}
}

/* out (width, n) = in (n, width), transposed */
static void transpose(const float *restrict in, float *restrict out, size_t n, size_t width)
{
	for (size_t i = 0; i < n; i++)
		for (size_t b = 0; b < width; b++)
			out[b * n + i] = in[i * width + b];
}

/* grad (k, n) += x (k, width) times z (n, width) transposed */
static void outer(struct hps_rollout *r, float *grad, const float *x, size_t k, const float *z,
		  size_t n)
{
	transpose(z, r->part->zt, n, r->width);
	hps_policy_outer(grad, k, n, x, r->part->zt, r->width);
}

static void add_sums(const float *z, size_t n, size_t width, float *out)
{
	for (size_t i = 0; i < n; i++)
		for (size_t b = 0; b < width; b++)
			out[i] += z[i * width + b];
}

void hps_rollout_gradient(struct hps_rollout *r, const struct hps_policy *net, const float *weight,
			  const float *bonus, float *grad)
{
	const struct hps_policy_input *in = r->in;
	struct hps_rollout_parts *p = r->part;
	const struct hps_policy_shape *s = &p->shape;
	size_t W = r->width, H = r->hidden;
	float *dh = p->dinput + P * W;

	memset(p->dinput, 0, s->inputs * W * sizeof(float));
	memset(p->dcell, 0, H * W * sizeof(float));
	for (uint32_t l = in->n_layers; l-- > 0;) {
		const float *x = p->input + l * s->inputs * W, *h = x + (s->inputs + P) * W;
		const float *cell = p->cell + l * H * W, *gate = p->gate + l * s->gates * W;

		head_gradient(r, l, weight, bonus);
		outer(r, grad + s->head, h, H, p->dhead, O);
		add_sums(p->dhead, O, W, grad + s->head_bias);
		hps_policy_backward(dh, H, W, net->weight + s->head, p->dhead, O);
		if (r->cell == HPS_CELL_LSTM)
			hps_policy_lstm_back(gate, cell, cell + H * W, dh, p->dcell, p->z, H * W);
		else
			hps_policy_rnn_back(h, dh, p->z, H * W);
		outer(r, grad + s->input, x, s->inputs, p->z, s->gates);
		memset(p->sum, 0, s->gates * sizeof(float));
		add_sums(p->z, s->gates, W, p->sum);
		hps_policy_outer(grad + s->layer, X, s->gates, in->layer + (size_t)l * X, p->sum,
				 1);
		hps_policy_add(grad + s->bias, s->gates, &(float){ 1 }, 1, p->sum, 1);
		memset(dh, 0, H * W * sizeof(float));
		hps_policy_backward(dh, H, W, net->weight + s->input + P * s->gates, p->z,
				    s->gates);
	}
}
