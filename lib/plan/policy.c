/* Which cut and type does the network choose at each layer, and how does its choice depend on its
 * weights? LSTM (Hochreiter, Schmidhuber 1997, with forget gate) and Elman cell, roll-outs in
 * lock step, and back-propagation through time. */
#include "plan/policy.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fmath.h"
#include "base/hot.h"
#include "base/mem.h"
#include "plan/policy_int.h"

enum { P = HPS_POLICY_P, O = HPS_POLICY_OUTPUTS, D = HPS_POLICY_TYPE, X = HPS_POLICY_LAYER };

/* Rows of floats; l: the layer. Sizes in units of one. */
struct hps_rollout_parts {
	struct hps_policy_shape shape;
	float *fixed;  /* l: gates. W x_l + b */
	float *z;      /* gates x width; its gradient when going back */
	float *zt;     /* width x gates, or width x O */
	float *input;  /* l + 1: inputs x width. p_l, h_l-1 */
	float *gate;   /* l: gates x width, after their functions */
	float *cell;   /* l + 1: hidden x width. c_l-1 */
	float *head;   /* l: O x width */
	float *prob;   /* l: width x stride. Of types, where a stage begins */
	float *past;   /* 3 x width: stages so far; length and work of the stage */
	float *dhead;  /* O x width */
	float *dinput; /* inputs x width */
	float *dcell;  /* hidden x width */
	float *sum;    /* gates */
};

const char *hps_cell_name(enum hps_cell c)
{
	return c == HPS_CELL_RNN ? "rnn" : "lstm";
}

struct hps_policy_shape hps_policy_shape(enum hps_cell cell, uint32_t hidden)
{
	struct hps_policy_shape s = { .gates = cell == HPS_CELL_LSTM ? 4 * hidden : hidden,
				      .inputs = P + hidden };

	s.bias = s.layer + (size_t)X * s.gates;
	s.input = s.bias + s.gates;
	s.head = s.input + (size_t)s.inputs * s.gates;
	s.head_bias = s.head + (size_t)hidden * O;
	s.n = s.head_bias + O;
	return s;
}

static void draw(float *w, size_t rows, size_t cols, double scale, struct hps_rng *rng)
{
	double range = scale * sqrt(6.0 / (double)(rows + cols));

	for (size_t i = 0; i < rows * cols; i++)
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
	hps_rng_init(&rng, seed, 0x706f6c69);
	draw(n->weight + s.layer, X, hidden, 1, &rng);
	draw(n->weight + s.layer, X, s.gates, sqrt((double)(X + s.gates) / (X + hidden)), &rng);
	draw(n->weight + s.input, s.inputs, s.gates,
	     sqrt((double)(s.inputs + s.gates) / (s.inputs + hidden)), &rng);
	draw(n->weight + s.head, hidden, O, 0.1, &rng);
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
	} part[13];
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
	PART(z, s.gates * W);
	PART(zt, (s.gates > O ? s.gates : O) * W);
	PART(input, (L + 1) * s.inputs * W);
	PART(gate, L * s.gates * W);
	PART(cell, (L + 1) * H * W);
	PART(head, L * O * W);
	PART(prob, L * W * in->stride);
	PART(past, 3 * W);
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

/* --- kernels: every element's sum is in the order of k, whatever the width --- */

/* out[0..n) += sum over k of coef[k * step] * row[k * n ..] */
HPS_HOT static void add_rows(float *restrict out, size_t n, const float *restrict coef, size_t step,
			     const float *restrict row, size_t count)
{
	size_t k = 0;

	for (; k + 8 <= count; k += 8, row += 8 * n) {
		const float *c = coef + k * step;
		float a0 = c[0], a1 = c[step], a2 = c[2 * step], a3 = c[3 * step];
		float a4 = c[4 * step], a5 = c[5 * step], a6 = c[6 * step], a7 = c[7 * step];

		for (size_t i = 0; i < n; i++) {
			float v = out[i];

			v += a0 * row[i];
			v += a1 * row[n + i];
			v += a2 * row[2 * n + i];
			v += a3 * row[3 * n + i];
			v += a4 * row[4 * n + i];
			v += a5 * row[5 * n + i];
			v += a6 * row[6 * n + i];
			v += a7 * row[7 * n + i];
			out[i] = v;
		}
	}
	for (; k < count; k++, row += n)
		for (size_t i = 0; i < n; i++)
			out[i] += coef[k * step] * row[i];
}

HPS_HOT static void sigmoid_all(float *restrict x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = hps_sigmoidf(x[i]);
}

HPS_HOT static void tanh_all(float *restrict x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = hps_tanhf(x[i]);
}

/* gate: i, f, o (sigmoid), g (tanh), n values each. */
HPS_HOT static void lstm_state(const float *restrict gate, const float *restrict before,
			       float *restrict cell, float *restrict h, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float c = gate[n + i] * before[i] + gate[i] * gate[3 * n + i];

		cell[i] = c;
		h[i] = gate[2 * n + i] * hps_tanhf(c);
	}
}

/* From dh and dc (in, of c_l; out, of c_l-1) to dz. */
HPS_HOT static void lstm_back(const float *restrict gate, const float *restrict before,
			      const float *restrict cell, const float *restrict dh,
			      float *restrict dc, float *restrict dz, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float in = gate[i], keep = gate[n + i], out = gate[2 * n + i], g = gate[3 * n + i];
		float t = hps_tanhf(cell[i]);
		float d = dc[i] + dh[i] * out * (1 - t * t);

		dz[i] = d * g * in * (1 - in);
		dz[n + i] = d * before[i] * keep * (1 - keep);
		dz[2 * n + i] = dh[i] * t * out * (1 - out);
		dz[3 * n + i] = d * in * (1 - g * g);
		dc[i] = d * keep;
	}
}

HPS_HOT static void rnn_back(const float *restrict h, const float *restrict dh, float *restrict dz,
			     size_t n)
{
	for (size_t i = 0; i < n; i++)
		dz[i] = dh[i] * (1 - h[i] * h[i]);
}

/* Softmax of x[0..n) in place; entries of -INFINITY get 0. */
HPS_HOT static void softmax(float *restrict x, size_t n)
{
	float most = x[0], sum = 0;

	for (size_t i = 1; i < n; i++)
		most = x[i] > most ? x[i] : most;
	for (size_t i = 0; i < n; i++)
		x[i] = hps_exp_neg(x[i] - most);
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	for (size_t i = 0; i < n; i++)
		x[i] /= sum;
}

/* out (width, n) = in (n, width), transposed */
static void transpose(const float *restrict in, float *restrict out, size_t n, size_t width)
{
	for (size_t i = 0; i < n; i++)
		for (size_t b = 0; b < width; b++)
			out[b * n + i] = in[i * width + b];
}

/* z (outputs, width) += w (k rows of outputs) . x (k, width) */
static void forward_matrix(float *z, size_t outputs, size_t width, const float *w, const float *x,
			   size_t k)
{
	if (width == 1) {
		add_rows(z, outputs, x, 1, w, k);
		return;
	}
	for (size_t i = 0; i < outputs; i++)
		add_rows(z + i * width, width, w + i, outputs, x, k);
}

/* --- walking --- */

static bool may_change(const struct hps_policy_input *in)
{
	return !in->merge || in->n_types > 1;
}

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
static float *type_probabilities(struct hps_rollout *r, uint32_t l, size_t b, int64_t before)
{
	const struct hps_policy_input *in = r->in;
	size_t W = r->width, S = in->stride;
	const float *head = r->part->head + l * O * W + b;
	float *prob = r->part->prob + (l * W + b) * S;

	memset(prob, 0, S * sizeof(*prob));
	add_rows(prob, S, head + HPS_POLICY_Q * W, W, in->type + (size_t)l * D * S, D);
	if (before >= 0)
		prob[before] = in->merge ? -INFINITY : prob[before] + head[HPS_POLICY_SAME * W];
	for (size_t t = in->n_types; t < S; t++)
		prob[t] = -INFINITY;
	softmax(prob, S);
	return prob;
}

static void choose_all(struct hps_rollout *r, uint32_t l, struct hps_rng *rng, uint32_t n_forced)
{
	const struct hps_policy_input *in = r->in;
	size_t W = r->width;
	float *head = r->part->head + l * O * W;

	if (l)
		sigmoid_all(head + HPS_POLICY_CUT * W, W);
	for (size_t b = 0; b < W; b++) {
		uint8_t *cut = &r->cut[l * W + b];
		uint32_t *type = &r->type[l * W + b];
		bool forced = b + n_forced >= W;
		float *prob, p = head[HPS_POLICY_CUT * W + b];

		if (!forced && !l)
			*cut = 1;
		else if (!forced)
			*cut = may_change(in) && (rng ? draw_float(rng) < p : p > 0.5f);
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
		float *x = p->input + l * s->inputs * W, *h = x + (s->inputs + P) * W;
		float *cell = p->cell + l * H * W, *head = p->head + l * O * W;

		memcpy(fixed, net->weight + s->bias, s->gates * sizeof(float));
		add_rows(fixed, s->gates, in->layer + (size_t)l * X, 1, net->weight + s->layer, X);
		for (size_t i = 0; i < s->gates; i++)
			for (size_t b = 0; b < W; b++)
				gate[i * W + b] = fixed[i];
		if (l)
			look_back(r, l);
		forward_matrix(gate, s->gates, W, net->weight + s->input, x, s->inputs);
		if (r->cell == HPS_CELL_LSTM) {
			sigmoid_all(gate, 3 * H * W);
			tanh_all(gate + 3 * H * W, H * W);
			lstm_state(gate, cell, cell + H * W, h, H * W);
		} else {
			tanh_all(gate, H * W);
			memcpy(h, gate, H * W * sizeof(float));
		}
		for (size_t i = 0; i < O; i++)
			for (size_t b = 0; b < W; b++)
				head[i * W + b] = net->weight[s->head_bias + i];
		forward_matrix(head, O, W, net->weight + s->head, h, H);
		choose_all(r, l, rng, n_forced);
	}
}

/* --- and back --- */

/* ln x, with 0 ln 0 = 0. */
static float ln(float p)
{
	return p > 0 ? logf(p) : 0;
}

/* What an entropy over the types that were to be had counts by. */
static float entropy_scale(const struct hps_policy_input *in, uint32_t l)
{
	uint32_t n = in->n_types - (in->merge && l);

	return n > 1 ? (float)(log(2) / log(n)) : 0;
}

double hps_rollout_loss(const struct hps_rollout *r, const float *weight, const float *bonus)
{
	const struct hps_policy_input *in = r->in;
	size_t W = r->width;
	double loss = 0;

	for (uint32_t l = 0; l < in->n_layers; l++) {
		for (size_t b = 0; b < W; b++) {
			const float *prob = r->part->prob + (l * W + b) * in->stride;
			double p = r->part->head[(l * O + HPS_POLICY_CUT) * W + b], sum = 0;
			bool cut = r->cut[l * W + b];

			if (l && may_change(in)) {
				loss -= weight[b] * log(cut ? p : 1 - p);
				loss += bonus[b] * (p * log(p) + (1 - p) * log(1 - p));
			}
			if (!cut)
				continue;
			loss -= weight[b] * log(prob[r->type[l * W + b]]);
			for (uint32_t t = 0; t < in->n_types; t++)
				sum += prob[t] > 0 ? prob[t] * log(prob[t]) : 0;
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
	const float *f = in->type + (size_t)l * D * S;
	float *d = r->part->dhead, scale = entropy_scale(in, l);

	memset(d, 0, O * W * sizeof(*d));
	for (size_t b = 0; b < W; b++) {
		float *prob = r->part->prob + (l * W + b) * S, entropy = 0;
		float p = r->part->head[(l * O + HPS_POLICY_CUT) * W + b];
		uint32_t t = r->type[l * W + b];
		bool cut = r->cut[l * W + b];

		if (l && may_change(in))
			d[HPS_POLICY_CUT * W + b] = weight[b] * (p - cut) +
						    bonus[b] * p * (1 - p) * (ln(p) - ln(1 - p));
		if (!cut)
			continue;
		for (uint32_t u = 0; u < in->n_types; u++)
			entropy -= prob[u] * ln(prob[u]);
		/* The probabilities are not needed again: their place takes d score. */
		for (uint32_t u = 0; u < in->n_types; u++)
			prob[u] = weight[b] * (prob[u] - (u == t)) +
				  bonus[b] * scale * prob[u] * (ln(prob[u]) + entropy);
		if (l && !in->merge)
			d[HPS_POLICY_SAME * W + b] = prob[r->type[(l - 1) * W + b]];
		for (size_t k = 0; k < D; k++) {
			float sum = 0;

			for (uint32_t u = 0; u < in->n_types; u++)
				sum += prob[u] * f[k * S + u];
			d[(HPS_POLICY_Q + k) * W + b] = sum;
		}
	}
}

/* grad (k rows of n) += x (k, width) . z^T (width, n), z given as (n, width) */
static void outer(struct hps_rollout *r, float *grad, const float *x, size_t k, const float *z,
		  size_t n)
{
	size_t W = r->width;

	transpose(z, r->part->zt, n, W);
	for (size_t j = 0; j < k; j++)
		add_rows(grad + j * n, n, x + j * W, 1, r->part->zt, W);
}

/* d of inputs (k, width) += w (k rows of n) . z (n, width) */
static void backward_matrix(float *d, size_t k, size_t width, const float *w, const float *z,
			    size_t n)
{
	for (size_t j = 0; j < k; j++)
		add_rows(d + j * width, width, w + j * n, 1, z, n);
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
		backward_matrix(dh, H, W, net->weight + s->head, p->dhead, O);
		if (r->cell == HPS_CELL_LSTM)
			lstm_back(gate, cell, cell + H * W, dh, p->dcell, p->z, H * W);
		else
			rnn_back(h, dh, p->z, H * W);
		outer(r, grad + s->input, x, s->inputs, p->z, s->gates);
		memset(p->sum, 0, s->gates * sizeof(float));
		add_sums(p->z, s->gates, W, p->sum);
		for (size_t j = 0; j < X; j++)
			add_rows(grad + s->layer + j * s->gates, s->gates,
				 in->layer + (size_t)l * X + j, 1, p->sum, 1);
		add_rows(grad + s->bias, s->gates, &(float){ 1 }, 1, p->sum, 1);
		memset(dh, 0, H * W * sizeof(float));
		backward_matrix(dh, H, W, net->weight + s->input + P * s->gates, p->z, s->gates);
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
