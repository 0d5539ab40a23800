/* What does the profile say in the cost model's terms? Checks profile and cluster against each
 * other and turns them into prefix sums, bandwidths and limits, so that any stage's times
 * come in O(1). Equations: cost.h. */
#include "cost/cost.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"

const char *hps_cost_form_name(enum hps_cost_form f)
{
	return f == HPS_COST_PAPER ? "paper" : "executor";
}

const char *hps_evaluator_name(enum hps_evaluator e)
{
	return e == HPS_EVAL_STEP ? "step" : "rate";
}

const char *hps_binding_name(enum hps_binding b)
{
	switch (b) {
	case HPS_BINDS_COMPUTE:
		return "compute";
	case HPS_BINDS_LINK:
		return "link";
	case HPS_BINDS_PS_CPU:
		return "servers";
	case HPS_BINDS_PS_LINK:
		return "servers' link";
	case HPS_BINDS_CORES:
		return "cores";
	}
	return "?";
}

static bool has(const struct hps_cost *c, enum hps_cost_term term)
{
	return !(c->opt.without & term);
}

/* Finite and not negative, or HPS_BAD_INPUT at the place. */
static enum hps_status check_number(double v, struct hps_err *err, const char *layer,
				    const char *type, const char *what)
{
	if (isfinite(v) && v >= 0)
		return HPS_OK;
	hps_err_set(err, HPS_BAD_INPUT, "expected %s >= 0, got %g", what, v);
	if (type)
		hps_err_at(err, "profile: layer \"%s\" on type \"%s\"", layer, type);
	else
		hps_err_at(err, "profile: layer \"%s\"", layer);
	return HPS_BAD_INPUT;
}

/* One layer on one type as (fixed, variable), see struct hps_cost_type. */
static enum hps_status layer_time(const struct hps_cost *c, uint32_t l, const char *type,
				  const struct hps_layer_time *t, double *fixed, double *variable,
				  struct hps_err *err)
{
	const struct hps_profile *p = c->profile;
	const char *name = p->size[l].name ? p->size[l].name : "?";
	double c0 = t->forward.c0 + t->backward.c0, c1 = t->forward.c1 + t->backward.c1;
	enum hps_status rc;

	rc = check_number(t->oct, err, name, type, "a time (oct)");
	if (!rc)
		rc = check_number(t->forward.c0, err, name, type, "a time (forward c0)");
	if (!rc)
		rc = check_number(t->forward.c1, err, name, type, "a time (forward c1)");
	if (!rc)
		rc = check_number(t->backward.c0, err, name, type, "a time (backward c0)");
	if (!rc)
		rc = check_number(t->backward.c1, err, name, type, "a time (backward c1)");
	if (!rc && !(t->alpha >= 0 && t->alpha <= 1)) {
		hps_err_set(err, HPS_BAD_INPUT, "expected alpha within 0..1, got %g", t->alpha);
		hps_err_at(err, "profile: layer \"%s\" on type \"%s\"", name, type);
		rc = HPS_BAD_INPUT;
	}
	if (rc)
		return rc;
	/* A clock that is too coarse for a layer is found in foreign profiles; ours repeats
	 * until the time is seen. */
	if (p->digest && (t->oct <= 0 || c0 + c1 <= 0)) {
		hps_err_set(err, HPS_BAD_INPUT, "expected a time > 0, got 0");
		hps_err_at(err, "profile: layer \"%s\" on type \"%s\"", name, type);
		return HPS_BAD_INPUT;
	}
	if (c->opt.form == HPS_COST_PAPER) {
		double oct = t->oct > 0 ? t->oct : c0 + c1 * p->batch;

		*fixed = oct * (1 - t->alpha) / p->batch;
		*variable = oct * t->alpha / p->batch;
	} else if (c0 + c1 > 0) {
		*fixed = c0;
		*variable = c1;
	} else {
		*fixed = t->oct * (1 - t->alpha);
		*variable = t->oct * t->alpha / p->batch;
	}
	return HPS_OK;
}

/* Rows of the scaling table: as long as the shortest that a layer of the type has; stages of
 * layers without one could go on, but a type is either measured so or not. */
static uint32_t scaling_rows(const struct hps_cost *c, const struct hps_layer_time *t)
{
	uint32_t rows = 0;

	if (c->opt.form != HPS_COST_PAPER)
		return 0;
	for (uint32_t l = 0; l < c->n_layers; l++)
		if (t[l].n_scaling && (!rows || t[l].n_scaling < rows))
			rows = t[l].n_scaling;
	return rows < HPS_COST_MAX_UNITS ? rows : HPS_COST_MAX_UNITS;
}

static enum hps_status fill_scaling(const struct hps_cost *c, struct hps_cost_type *ct,
				    const struct hps_layer_time *t, struct hps_err *err)
{
	size_t width = (size_t)c->n_layers + 1;

	for (uint32_t k = 1; k <= ct->n_scaling; k++) {
		double *row = ct->scaling + (k - 1) * width;

		for (uint32_t l = 0; l < c->n_layers; l++) {
			double fixed = ct->fixed[l + 1] - ct->fixed[l];
			double variable = ct->variable[l + 1] - ct->variable[l];
			double v = fixed + variable / k;

			if (t[l].n_scaling) {
				double s = t[l].scaling[k - 1];

				if (!isfinite(s) || s <= 0) {
					hps_err_set(err, HPS_BAD_INPUT,
						    "expected a speed > 0 at %u units, got %g", k,
						    s);
					hps_err_at(err, "profile: layer \"%s\" on type \"%s\"",
						   c->profile->size[l].name, ct->name);
					return HPS_BAD_INPUT;
				}
				v = (fixed + variable) / s;
			}
			row[l + 1] = row[l] + v;
		}
	}
	return HPS_OK;
}

static enum hps_status fill_type(struct hps_cost *c, uint32_t t, const struct hps_layer_time *time,
				 struct hps_err *err)
{
	struct hps_cost_type *ct = &c->type[t];
	enum hps_status rc;

	for (uint32_t l = 0; l < c->n_layers; l++) {
		double fixed, variable;

		rc = layer_time(c, l, ct->name, &time[l], &fixed, &variable, err);
		if (rc)
			return rc;
		ct->fixed[l + 1] = ct->fixed[l] + fixed;
		ct->variable[l + 1] = ct->variable[l] + variable;
	}
	if (!(ct->fixed[c->n_layers] + ct->variable[c->n_layers] > 0)) {
		hps_err_set(err, HPS_BAD_INPUT, "no layer takes any time");
		hps_err_at(err, "profile: type \"%s\"", ct->name);
		return HPS_BAD_INPUT;
	}
	return ct->n_scaling ? fill_scaling(c, ct, time, err) : HPS_OK;
}

static enum hps_status fill_sizes(struct hps_cost *c, struct hps_err *err)
{
	const struct hps_profile *p = c->profile;
	enum hps_status rc = HPS_OK;

	for (uint32_t l = 0; !rc && l < c->n_layers; l++) {
		const struct hps_layer_size *s = &p->size[l];
		const char *name = s->name ? s->name : "?";
		bool last = l + 1 == c->n_layers;
		double cut = last ? 0 : p->cut_forward_bytes[l] + p->cut_backward_bytes[l];

		rc = check_number(s->param_bytes, err, name, NULL, "param_bytes");
		if (!rc)
			rc = check_number(s->output_bytes, err, name, NULL, "output_bytes");
		if (!rc)
			rc = check_number(s->sparse_bytes, err, name, NULL, "sparse_bytes");
		if (!rc)
			rc = check_number(s->sparse_keys, err, name, NULL, "sparse_keys");
		if (!rc)
			rc = check_number(cut, err, name, NULL, "bytes at the cut");
		c->params[l + 1] = c->params[l] + (has(c, HPS_TERM_DENSE) ? s->param_bytes : 0);
		c->output[l + 1] = c->output[l] + s->output_bytes;
		c->keys[l + 1] = c->keys[l] + (has(c, HPS_TERM_SPARSE) ? s->sparse_keys : 0);
		c->sparse[l + 1] =
			c->sparse[l] +
			(has(c, HPS_TERM_SPARSE) ? s->sparse_bytes + 8 * s->sparse_keys : 0);
		c->cut[l + 1] = has(c, HPS_TERM_CUT) ? cut : 0;
	}
	return rc;
}

double hps_cost_host_cores(const struct hps_cluster *cl, uint32_t h)
{
	double cores = cl->host[h].cores;

	for (uint32_t t = 0; !cl->host[h].cores && t < cl->n_types; t++)
		if (cl->type[t].device == HPS_DEVICE_CPU)
			cores += cl->host[h].units[t];
	return cores;
}

/* Limit, link and place of a type. */
static void settle_type(struct hps_cost *c, uint32_t t)
{
	const struct hps_cluster *cl = c->cluster;
	const struct hps_type *type = &cl->type[t];
	const struct hps_link *measured = &c->profile->link, *link = measured;
	struct hps_cost_type *ct = &c->type[t];
	uint64_t units = 0;

	for (uint32_t h = 0; h < cl->n_hosts; h++)
		units += cl->host[h].units[t];
	ct->price = type->price;
	ct->memory = has(c, HPS_TERM_MEMORY) ? type->memory : 0;
	ct->hosted = units > 0;
	ct->limited = type->limit != HPS_NO_LIMIT || units > 0;
	ct->limit = type->limit != HPS_NO_LIMIT ? type->limit : HPS_COST_MAX_UNITS;
	if (units > 0 && (type->limit == HPS_NO_LIMIT || units < type->limit))
		ct->limit = units < UINT32_MAX ? (uint32_t)units : UINT32_MAX - 1;
	ct->pooled = units > 0 && type->device == HPS_DEVICE_CPU && isfinite(c->cores);

	if (c->one_host && ct->hosted && measured->bandwidth > 0)
		link = measured;
	else if (cl->n_hosts > 1 && cl->network.bandwidth > 0)
		link = &cl->network;
	else if (type->link.bandwidth > 0)
		link = &type->link;
	else if (cl->network.bandwidth > 0)
		link = &cl->network;
	ct->bandwidth = link->bandwidth > 0 ? link->bandwidth : INFINITY;
	ct->latency = link->latency;
	if (isinf(ct->bandwidth))
		c->link_unknown = true;
}

static void settle_cluster(struct hps_cost *c)
{
	const struct hps_cluster *cl = c->cluster;
	const struct hps_profile *p = c->profile;
	bool network = cl->n_hosts != 1 && cl->network.bandwidth > 0;
	double cores = 0;
	uint64_t ps_cores = 0;

	c->one_host = cl->n_hosts == 1;
	for (uint32_t h = 0; h < cl->n_hosts; h++) {
		cores += hps_cost_host_cores(cl, h);
		ps_cores += cl->host[h].ps_cores;
	}
	if (isfinite(p->input_s_per_sample) && p->input_s_per_sample > 0 &&
	    c->opt.form == HPS_COST_EXECUTOR && has(c, HPS_TERM_OVERHEAD))
		c->input = p->input_s_per_sample;
	c->cores = INFINITY;
	if (cores > 0 && c->opt.form == HPS_COST_EXECUTOR && has(c, HPS_TERM_CORES))
		c->cores = cores;

	c->ps.rows_per_s = p->shard.rows_per_s > 0 ? p->shard.rows_per_s : INFINITY;
	c->ps.bytes_per_s = p->shard.bytes_per_s > 0 ? p->shard.bytes_per_s : INFINITY;
	c->ps.bandwidth = network		  ? cl->network.bandwidth
			  : p->link.bandwidth > 0 ? p->link.bandwidth
						  : INFINITY;
	c->ps.latency = network ? cl->network.latency : p->link.latency;
	if (!has(c, HPS_TERM_PS))
		return;
	c->ps.price = cl->ps_price;
	c->ps.max = cl->n_hosts ? (uint32_t)(ps_cores < UINT32_MAX ? ps_cores : UINT32_MAX)
				: HPS_COST_MAX_UNITS;
	c->ps.min = c->opt.form == HPS_COST_EXECUTOR || c->sparse[c->n_layers] > 0;
	if (c->opt.shards) {
		c->ps.min = c->opt.shards;
		if (c->ps.max > c->opt.shards)
			c->ps.max = c->opt.shards;
	}
}

/* Types of equal bandwidth get equal classes, numbered from the slowest on. */
static void number_classes(struct hps_cost *c)
{
	double above = -1;

	for (uint32_t n = 0; n < c->n_types;) {
		double next = INFINITY;

		for (uint32_t t = 0; t < c->n_types; t++)
			if (c->type[t].bandwidth > above)
				next = fmin(next, c->type[t].bandwidth);
		for (uint32_t t = 0; t < c->n_types; t++) {
			if (c->type[t].bandwidth == next) {
				c->type[t].link_class = c->n_classes;
				n++;
			}
		}
		c->n_classes++;
		above = next;
	}
}

/* One block for all prefix sums; type[] must have n_scaling and names. */
static enum hps_status allocate(struct hps_cost *c, struct hps_err *err)
{
	size_t width = (size_t)c->n_layers + 1, rows = 5, words;
	double *at;

	for (uint32_t t = 0; t < c->n_types; t++)
		rows += 2 + (size_t)c->type[t].n_scaling;
	if (hps_mul_size(rows, width, &words))
		return hps_err_set(err, HPS_MEMORY, "too many layers and types");
	at = c->memory_block = hps_calloc(words, sizeof(double), err);
	if (!at)
		return HPS_MEMORY;
	double **own[] = { &c->params, &c->sparse, &c->keys, &c->output, &c->cut };
	for (size_t i = 0; i < 5; i++, at += width)
		*own[i] = at;
	for (uint32_t t = 0; t < c->n_types; t++) {
		c->type[t].fixed = at;
		c->type[t].variable = at + width;
		at += 2 * width;
		if (c->type[t].n_scaling)
			c->type[t].scaling = at;
		at += width * c->type[t].n_scaling;
	}
	return HPS_OK;
}

static enum hps_status check_shape(struct hps_cost *c, struct hps_err *err)
{
	const struct hps_profile *p = c->profile;

	if (!p->n_layers || !p->n_types) {
		hps_err_set(err, HPS_BAD_INPUT, "expected at least one %s, got none",
			    p->n_layers ? "type" : "layer");
		hps_err_at(err, "profile");
		return HPS_BAD_INPUT;
	}
	if (!c->cluster->n_types) {
		hps_err_set(err, HPS_BAD_INPUT, "expected at least one type, got none");
		hps_err_at(err, "cluster");
		return HPS_BAD_INPUT;
	}
	if (!isfinite(p->batch) || p->batch <= 0) {
		hps_err_set(err, HPS_BAD_INPUT, "expected a number > 0, got %g", p->batch);
		hps_err_at(err, "profile: batch");
		return HPS_BAD_INPUT;
	}
	if (c->opt.batch <= 0)
		c->opt.batch = p->batch;
	if (!c->opt.micro_batches)
		c->opt.micro_batches = 1;
	if (c->opt.form == HPS_COST_EXECUTOR && c->opt.batch < c->opt.micro_batches)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "a batch of %g rows cannot be split into %u micro-batches",
				   c->opt.batch, c->opt.micro_batches);
	return HPS_OK;
}

enum hps_status hps_cost_init(struct hps_cost *c, const struct hps_profile *p,
			      const struct hps_cluster *cl, const struct hps_cost_options *opt,
			      struct hps_err *err)
{
	enum hps_status rc;

	memset(c, 0, sizeof(*c));
	c->profile = p;
	c->cluster = cl;
	c->opt = *opt;
	rc = check_shape(c, err);
	if (rc)
		return rc;
	c->n_layers = p->n_layers;
	c->n_types = cl->n_types;
	c->type = hps_calloc(c->n_types, sizeof(*c->type), err);
	if (!c->type)
		return HPS_MEMORY;
	for (uint32_t t = 0; t < c->n_types; t++) {
		int i = hps_profile_type(p, cl->type[t].name);

		if (i < 0) {
			hps_err_set(err, HPS_BAD_INPUT,
				    "type \"%s\" of the cluster has no times in the profile",
				    cl->type[t].name);
			hps_err_at(err, "cluster.types[%u]", t);
			hps_err_hint(err, "profile it with hps-profile, or take it out");
			rc = HPS_BAD_INPUT;
			goto fail;
		}
		if (cl->type[t].limit == 0) {
			hps_err_set(err, HPS_BAD_INPUT, "expected an integer > 0, got 0");
			hps_err_at(err, "cluster.types[%u].limit", t);
			rc = HPS_BAD_INPUT;
			goto fail;
		}
		c->type[t].name = cl->type[t].name;
		c->type[t].simulated = p->simulated && p->simulated[i];
		c->type[t].n_scaling = scaling_rows(c, p->time + (size_t)i * p->n_layers);
	}
	rc = allocate(c, err);
	if (!rc)
		rc = fill_sizes(c, err);
	for (uint32_t t = 0; !rc && t < c->n_types; t++) {
		int i = hps_profile_type(p, cl->type[t].name);

		rc = fill_type(c, t, p->time + (size_t)i * p->n_layers, err);
	}
	if (rc)
		goto fail;
	if (c->opt.form == HPS_COST_EXECUTOR && has(c, HPS_TERM_OVERHEAD) &&
	    isfinite(p->step_overhead_s) && p->step_overhead_s > 0)
		c->overhead = p->step_overhead_s;
	settle_cluster(c);
	for (uint32_t t = 0; t < c->n_types; t++)
		settle_type(c, t);
	number_classes(c);
	return HPS_OK;
fail:
	hps_cost_release(c);
	return rc;
}

void hps_cost_release(struct hps_cost *c)
{
	free(c->type);
	free(c->memory_block);
	memset(c, 0, sizeof(*c));
}
