/* What does a policy see of a problem? Layers and types as numbers without units, so that a
 * policy learned on one model and cluster reads any other: layer kind, sizes, times
 * relative to the rest of the model (papers.md's list), types by price * time relative to the
 * cheapest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/policy_int.h"

enum { WINDOW = 4 };

/* Seconds a sample of layers i..j on one unit of type t. */
static double time_of(const struct hps_cost *c, uint32_t i, uint32_t j, uint32_t t)
{
	struct hps_stage_time st = hps_cost_stage_bare(c, i, j, t, 1);

	st.a = 0; /* what a step costs whatever the layers */
	return fmax(hps_stage_et(c, &st, 1), 1e-15);
}

static double price_time(const struct hps_cost *c, uint32_t i, uint32_t j, uint32_t t)
{
	return fmax(c->type[t].price, 1e-9) * time_of(c, i, j, t);
}

static float clip(double x, double low, double high)
{
	return (float)fmin(fmax(x, low), high);
}

/* v as (v - mean) / deviation, clipped; all 0 where all are equal. */
static void standardise(const double *v, uint32_t n, float *out, size_t step)
{
	double mean = 0, var = 0, dev;

	for (uint32_t i = 0; i < n; i++)
		mean += v[i] / n;
	for (uint32_t i = 0; i < n; i++)
		var += (v[i] - mean) * (v[i] - mean) / n;
	dev = sqrt(var);
	for (uint32_t i = 0; i < n; i++)
		out[i * step] = dev > 1e-6 ? clip((v[i] - mean) / dev, -3, 3) : 0;
}

/* What an op is, as far as sizes tell, so that foreign profiles do: it looks rows up
 * (embedding, negatives), has weights (dense, convolution), computes without (cosine), or
 * only moves (concat, slice). */
static int kind_of(const struct hps_cost *c, uint32_t l)
{
	if (c->profile->size[l].sparse_keys > 0 || c->profile->size[l].sparse_bytes > 0)
		return 0;
	if (c->profile->size[l].param_bytes > 0)
		return 1;
	return c->profile->size[l].flops > 0 ? 2 : 3;
}

/* column: n_layers of scratch. */
static void layer_features(struct hps_policy_input *in, const struct hps_cost *c, double *column)
{
	const struct hps_layer_size *size = c->profile->size;
	uint32_t L = in->n_layers, F = HPS_POLICY_LAYER;
	double before = 0;

	for (uint32_t l = 0; l < L; l++) {
		float *x = in->layer + (size_t)l * F;
		double at = L > 1 ? (double)l / (L - 1) : 0;

		x[0] = (float)(2 * at - 1);
		x[1] = (float)(2 * before - 1);
		before += in->work[l];
		x[2 + kind_of(c, l)] = 1;
		/* Waves over the layers tell places apart that are alike in all else. */
		for (int k = 1; k <= 6; k++)
			x[11 + k] = (float)cos(M_PI * k * at);
	}
	for (uint32_t l = 0; l < L; l++)
		column[l] = log1p(c->cut[l]);
	standardise(column, L, in->layer + 6, F);
	for (uint32_t l = 0; l < L; l++)
		column[l] = log1p(size[l].param_bytes);
	standardise(column, L, in->layer + 7, F);
	for (uint32_t l = 0; l < L; l++)
		column[l] = log1p(size[l].sparse_bytes + 8 * size[l].sparse_keys);
	standardise(column, L, in->layer + 8, F);
	for (uint32_t l = 0; l < L; l++)
		column[l] = log(in->work[l] + 1e-9);
	standardise(column, L, in->layer + 9, F);
	/* Communication time of a cut here, over the time of an average layer, on the type that
	 * is cheapest for all layers. */
	for (uint32_t l = 0, best = 0; l < L; l++) {
		if (!l)
			for (uint32_t t = 1; t < in->n_types; t++)
				if (price_time(c, 0, L - 1, t) < price_time(c, 0, L - 1, best))
					best = t;
		in->layer[(size_t)l * F + 10] = clip(
			log1p(hps_cost_cut(c, l, best, (int)best) * L / time_of(c, 0, L - 1, best)),
			0, 3);
		in->layer[(size_t)l * F + 11] = (float)(L > 1 ? 1.0 / (L - l) : 1);
	}
}

/* Minus how much dearer than the cheapest type layers i..j are, in doublings (to 4 of them). */
static void dearness(const struct hps_cost *c, uint32_t i, uint32_t j, double *column, float *out)
{
	double least = INFINITY;

	for (uint32_t t = 0; t < c->n_types; t++) {
		column[t] = log2(price_time(c, i, j, t));
		least = fmin(least, column[t]);
	}
	for (uint32_t t = 0; t < c->n_types; t++)
		out[t] = clip(least - column[t], -4, 0) / 2;
}

/* How far all units of type t are from holding the floor with layers i..j, in doublings / 4. */
static float reach(const struct hps_problem *p, uint32_t i, uint32_t j, uint32_t t)
{
	double least = time_of(p->cost, i, j, t) / p->cost->type[t].limit;

	return p->floor > 0 ? clip(log2(least * p->floor) / 4, -2, 2) : -2;
}

static void type_features(struct hps_policy_input *in, const struct hps_problem *p, double *column)
{
	const struct hps_cost *c = p->cost;
	uint32_t T = in->n_types, L = in->n_layers, S = in->stride;

	for (uint32_t l = 0; l < L; l++) {
		float *f = in->type + (size_t)l * HPS_POLICY_TYPE * S;
		uint32_t near = l + WINDOW < L ? l + WINDOW - 1 : L - 1;

		dearness(c, l, l, column, f);
		dearness(c, l, near, column, f + S);
		dearness(c, l, L - 1, column, f + 2 * S);
		for (uint32_t t = 0; t < T; t++)
			column[t] = log(fmax(c->type[t].price, 1e-9));
		standardise(column, T, f + 3 * S, 1);
		for (uint32_t t = 0; t < T; t++)
			column[t] = isfinite(c->type[t].bandwidth) ? log(c->type[t].bandwidth) : 30;
		standardise(column, T, f + 4 * S, 1);
		for (uint32_t t = 0; t < T; t++) {
			double fixed = c->type[t].fixed[near + 1] - c->type[t].fixed[l];

			if (c->opt.form == HPS_COST_EXECUTOR)
				fixed /= c->opt.batch;

			/* Could all its units hold the floor, for a few layers and for the rest? */
			f[5 * S + t] = reach(p, l, near, t);
			f[6 * S + t] = reach(p, l, L - 1, t);
			/* What does not shrink with the micro-batch. */
			f[7 * S + t] = (float)fmin(fixed / time_of(c, l, near, t), 1);
		}
		for (uint32_t t = 0; t < T; t++)
			for (uint32_t k = 0; k < HPS_POLICY_TYPE; k++)
				in->by_type[((size_t)l * T + t) * HPS_POLICY_TYPE + k] =
					f[k * S + t];
	}
}

enum hps_status hps_policy_input_init(struct hps_policy_input *in, const struct hps_problem *p,
				      struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	uint32_t most = c->n_types > c->n_layers ? c->n_types : c->n_layers;
	double *column, all = 0;

	memset(in, 0, sizeof(*in));
	in->n_layers = c->n_layers;
	in->n_types = c->n_types;
	in->stride = (c->n_types + HPS_POLICY_LANES - 1) / HPS_POLICY_LANES * HPS_POLICY_LANES;
	in->merge = p->merge;
	column = hps_calloc(most, sizeof(*column), err);
	in->layer = hps_calloc((size_t)c->n_layers * HPS_POLICY_LAYER, sizeof(float), err);
	in->type = hps_calloc_aligned((size_t)c->n_layers * HPS_POLICY_TYPE * in->stride,
				      sizeof(float), err);
	in->by_type = hps_calloc_aligned((size_t)c->n_layers * HPS_POLICY_TYPE * c->n_types,
					 sizeof(float), err);
	in->work = hps_calloc(c->n_layers, sizeof(float), err);
	if (!column || !in->layer || !in->type || !in->by_type || !in->work) {
		free(column);
		hps_policy_input_release(in);
		return HPS_MEMORY;
	}
	for (uint32_t l = 0; l < c->n_layers; l++) {
		column[l] = INFINITY;
		for (uint32_t t = 0; t < c->n_types; t++)
			column[l] = fmin(column[l], price_time(c, l, l, t));
		all += column[l];
	}
	for (uint32_t l = 0; l < c->n_layers; l++)
		in->work[l] = (float)(column[l] / all);
	layer_features(in, c, column);
	type_features(in, p, column);
	free(column);
	return HPS_OK;
}

void hps_policy_input_release(struct hps_policy_input *in)
{
	free(in->layer);
	free(in->type);
	free(in->by_type);
	free(in->work);
	memset(in, 0, sizeof(*in));
}
