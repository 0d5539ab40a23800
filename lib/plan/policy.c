/* What are a policy and a roll-out made of, and where do a policy's first weights come from? */
#include "plan/policy.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/policy_int.h"

/* A stream of its own for weights. */
enum { WEIGHT_STREAM = 4 };
enum { X = HPS_POLICY_LAYER, O = HPS_POLICY_OUTPUTS };

const char *hps_cell_name(enum hps_cell c)
{
	return c == HPS_CELL_RNN ? "rnn" : "lstm";
}

struct hps_policy_shape hps_policy_shape(enum hps_cell cell, uint32_t hidden)
{
	struct hps_policy_shape s = { .gates = cell == HPS_CELL_LSTM ? 4 * hidden : hidden,
				      .inputs = HPS_POLICY_P + hidden };

	s.bias = s.layer + (size_t)X * s.gates;
	s.input = s.bias + s.gates;
	s.head = s.input + (size_t)s.inputs * s.gates;
	s.head_bias = s.head + (size_t)hidden * O;
	s.n = s.head_bias + O;
	return s;
}

/* Glorot, Bengio 2010: fan is inputs + outputs of a gate. */
static void draw(float *w, size_t n, uint32_t fan, double scale, struct hps_rng *rng)
{
	double range = scale * sqrt(6.0 / fan);

	for (size_t i = 0; i < n; i++)
		w[i] = (float)(range * (2 * hps_rng_uniform(rng) - 1));
}

enum hps_status hps_policy_init(struct hps_policy *n, enum hps_cell cell, uint32_t hidden,
				uint64_t seed, struct hps_err *err)
{
	struct hps_policy_shape s = hps_policy_shape(cell, hidden);
	struct hps_rng rng;

	memset(n, 0, sizeof(*n));
	if (!hidden || hidden > HPS_POLICY_MAX_HIDDEN)
		return hps_err_set(err, HPS_USAGE, "expected 1..%d hidden units, got %u",
				   HPS_POLICY_MAX_HIDDEN, hidden);
	n->weight = hps_calloc_aligned(s.n, sizeof(float), err);
	if (!n->weight)
		return HPS_MEMORY;
	n->cell = cell;
	n->hidden = hidden;
	n->n_weights = s.n;
	hps_rng_init(&rng, seed, WEIGHT_STREAM);
	draw(n->weight + s.layer, X * s.gates, X + hidden, 1, &rng);
	draw(n->weight + s.input, s.inputs * s.gates, s.inputs + hidden, 1, &rng);
	draw(n->weight + s.head, hidden * O, hidden + O, 0.1, &rng);
	if (cell == HPS_CELL_LSTM)
		for (uint32_t i = hidden; i < 2 * hidden; i++)
			n->weight[s.bias + i] = 1;
	return HPS_OK;
}

enum hps_status hps_policy_copy(struct hps_policy *to, const struct hps_policy *from,
				struct hps_err *err)
{
	if (!to->weight) {
		to->weight = hps_calloc_aligned(from->n_weights, sizeof(float), err);
		if (!to->weight)
			return HPS_MEMORY;
		to->cell = from->cell;
		to->hidden = from->hidden;
		to->n_weights = from->n_weights;
	}
	memcpy(to->weight, from->weight, from->n_weights * sizeof(float));
	return HPS_OK;
}

void hps_policy_release(struct hps_policy *n)
{
	free(n->weight);
	memset(n, 0, sizeof(*n));
}

enum hps_status hps_rollout_init(struct hps_rollout *r, const struct hps_policy *net,
				 const struct hps_policy_input *in, uint32_t width,
				 struct hps_err *err)
{
	struct hps_policy_shape s = hps_policy_shape(net->cell, net->hidden);
	size_t L = in->n_layers, W = width, H = net->hidden;
	struct hps_rollout_parts *p;
	struct {
		float **at;
		size_t n;
	} part[14];
	size_t all = 0, n = 0;
	float *block;

	memset(r, 0, sizeof(*r));
	p = r->part = hps_calloc(1, sizeof(*p), err);
	r->type = hps_calloc(L * W, sizeof(*r->type), err);
	r->cut = hps_calloc(L * W, sizeof(*r->cut), err);
	if (!p || !r->type || !r->cut)
		goto no_memory;
	p->shape = s;
#define PART(name, size) (part[n].at = &p->name, part[n++].n = (size))
	PART(fixed, L * s.gates);
	PART(input, (L + 1) * s.inputs * W);
	PART(gate, L * s.gates * W);
	PART(cell, (L + 1) * H * W);
	PART(head, L * O * W);
	PART(logp, L * W * in->stride);
	PART(prob, in->stride);
	PART(past, 3 * W);
	PART(z, s.gates * W);
	PART(zt, (s.gates > O ? s.gates : O) * W);
	PART(dhead, O * W);
	PART(dinput, s.inputs * W);
	PART(dcell, H * W);
	PART(sum, s.gates);
#undef PART
	/* Layers and types are at most 4096 and 256, width is small: no overflow in size_t. */
	for (size_t i = 0; i < n; i++)
		all += (part[i].n + 15) / 16 * 16;
	block = r->block = hps_calloc_aligned(all, sizeof(float), err);
	if (!block)
		goto no_memory;
	for (size_t i = 0; i < n; i++) {
		*part[i].at = block;
		block += (part[i].n + 15) / 16 * 16;
	}
	r->in = in;
	r->cell = net->cell;
	r->hidden = net->hidden;
	r->width = width;
	return HPS_OK;
no_memory:
	hps_rollout_release(r);
	return HPS_MEMORY;
}

void hps_rollout_release(struct hps_rollout *r)
{
	free(r->part);
	free(r->type);
	free(r->cut);
	free(r->block);
	memset(r, 0, sizeof(*r));
}
