/* Which cut and type does the network choose at each layer? LSTM (Hochreiter, Schmidhuber 1997,
 * with a forget gate) and Elman cell, roll-outs in lock step. */
#include <string.h>
#include "plan/policy_int.h"

enum { D = HPS_POLICY_TYPE, O = HPS_POLICY_OUTPUTS, X = HPS_POLICY_LAYER };

/* The score of what is not to be had: its probability is 0 in floats, its logarithm finite. */
static const float never = -1e4f;

/* p_l of every column: what was chosen at l - 1, seen from layer l. */
static void look_back(struct hps_rollout *r, uint32_t l)
{
	const struct hps_policy_input *in = r->in;
	size_t W = r->width;
	float *x = r->part->input + l * r->part->shape.inputs * W, *past = r->part->past;
	const float *f = in->type + (size_t)l * D * in->stride;

	for (size_t b = 0; b < W; b++) {
		uint32_t t = r->type[(l - 1) * W + b];
		bool cut = r->cut[(l - 1) * W + b];

		past[b] += cut;
		past[W + b] = (cut ? 0 : past[W + b]) + 1;
		past[2 * W + b] = (cut ? 0 : past[2 * W + b]) + in->work[l - 1];
		x[b] = 1;
		x[W + b] = cut;
		x[2 * W + b] = past[b] / (float)in->n_layers;
		x[3 * W + b] = past[W + b] / 4 < 2 ? past[W + b] / 4 : 2;
		x[4 * W + b] = 2 * past[2 * W + b];
		for (size_t d = 0; d < D; d++)
			x[(HPS_POLICY_PAST + d) * W + b] = f[d * in->stride + t];
	}
}

static float draw_float(struct hps_rng *rng)
{
	return (float)(hps_rng_u64(rng) >> 40) * 0x1p-24f;
}

static uint32_t choose(const float *prob, uint32_t n, struct hps_rng *rng)
{
	uint32_t best = 0;
	float u, sum = 0;

	if (!rng) {
		for (uint32_t t = 1; t < n; t++)
			if (prob[t] > prob[best])
				best = t;
		return best;
	}
	u = draw_float(rng);
	for (uint32_t t = 0; t < n; t++) {
		if (prob[t] <= 0)
			continue;
		best = t;
		sum += prob[t];
		if (u < sum)
			break;
	}
	return best;
}

/* P(type) at layer l for column b, whose type before is `before` (or -1). */
static const float *type_probabilities(struct hps_rollout *r, uint32_t l, size_t b, int64_t before)
{
	const struct hps_policy_input *in = r->in;
	size_t W = r->width, S = in->stride;
	const float *head = r->part->head + l * O * W + b;
	float *score = r->part->logp + (l * W + b) * S;

	memset(score, 0, S * sizeof(*score));
	hps_policy_add(score, S, head + HPS_POLICY_Q * W, W, in->type + (size_t)l * D * S, D);
	if (before >= 0)
		score[before] = in->merge ? never : score[before] + head[HPS_POLICY_SAME * W];
	for (size_t t = in->n_types; t < S; t++)
		score[t] = never;
	hps_policy_log_softmax(score, r->part->prob, S);
	return r->part->prob;
}

static void choose_all(struct hps_rollout *r, uint32_t l, struct hps_rng *rng, uint32_t n_forced)
{
	const struct hps_policy_input *in = r->in;
	size_t W = r->width;
	float *head = r->part->head + l * O * W;

	if (l)
		hps_policy_sigmoid(head + HPS_POLICY_CUT * W, W);
	for (size_t b = 0; b < W; b++) {
		uint8_t *cut = &r->cut[l * W + b];
		uint32_t *type = &r->type[l * W + b];
		bool forced = b + n_forced >= W;
		const float *prob;
		float p = head[HPS_POLICY_CUT * W + b];

		if (!forced && !l)
			*cut = 1;
		else if (!forced)
			*cut = hps_policy_may_cut(in) && (rng ? draw_float(rng) < p : p > 0.5f);
		if (!*cut) {
			*type = *(type - W);
			continue;
		}
		prob = type_probabilities(r, l, b, l ? (int64_t) * (type - W) : -1);
		if (!forced)
			*type = choose(prob, in->n_types, rng);
	}
}

void hps_rollout_run(struct hps_rollout *r, const struct hps_policy *net, struct hps_rng *rng,
		     uint32_t n_forced)
{
	const struct hps_policy_input *in = r->in;
	struct hps_rollout_parts *p = r->part;
	const struct hps_policy_shape *s = &p->shape;
	size_t W = r->width, H = r->hidden;

	memset(p->past, 0, 3 * W * sizeof(float));
	memset(p->input, 0, s->inputs * W * sizeof(float));
	for (uint32_t l = 0; l < in->n_layers; l++) {
		float *fixed = p->fixed + l * s->gates, *gate = p->gate + l * s->gates * W;
		float *x = p->input + l * s->inputs * W, *h = x + (s->inputs + HPS_POLICY_P) * W;
		float *cell = p->cell + l * H * W, *head = p->head + l * O * W;

		memcpy(fixed, net->weight + s->bias, s->gates * sizeof(float));
		hps_policy_add(fixed, s->gates, in->layer + (size_t)l * X, 1,
			       net->weight + s->layer, X);
		for (size_t i = 0; i < s->gates; i++)
			for (size_t b = 0; b < W; b++)
				gate[i * W + b] = fixed[i];
		if (l)
			look_back(r, l);
		hps_policy_forward(gate, s->gates, W, net->weight + s->input, x, s->inputs);
		if (r->cell == HPS_CELL_LSTM) {
			hps_policy_sigmoid(gate, 3 * H * W);
			hps_policy_tanh(gate + 3 * H * W, H * W);
			hps_policy_lstm(gate, cell, cell + H * W, h, H * W);
		} else {
			hps_policy_tanh(gate, H * W);
			memcpy(h, gate, H * W * sizeof(float));
		}
		for (size_t i = 0; i < O; i++)
			for (size_t b = 0; b < W; b++)
				head[i * W + b] = net->weight[s->head_bias + i];
		hps_policy_forward(head, O, W, net->weight + s->head, h, H);
		choose_all(r, l, rng, n_forced);
	}
}

uint32_t hps_rollout_spans(const struct hps_rollout *r, uint32_t b, struct hps_span *out)
{
	uint32_t n = 0;

	for (uint32_t l = 0; l < r->in->n_layers; l++) {
		size_t at = (size_t)l * r->width + b;

		if (r->cut[at])
			out[n++] = (struct hps_span){ .first = l, .type = r->type[at] };
		out[n - 1].last = l;
	}
	return n;
}
