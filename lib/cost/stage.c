/* How long does a stage take on k units, and how few units keep it within a cycle time? The
 * stage's terms of cost.h from prefix sums, and their inverse. */
#include "cost/cost.h"
#include <math.h>
#include "cost/cost_int.h"

static double over(double bytes, double bandwidth)
{
	return bytes > 0 ? bytes / bandwidth : 0;
}

double hps_cost_cut(const struct hps_cost *c, uint32_t before, uint32_t t, int neighbour)
{
	double bw = c->type[t].bandwidth;

	if (neighbour >= 0 && c->type[neighbour].bandwidth < bw)
		bw = c->type[neighbour].bandwidth;
	return over(c->cut[before], bw);
}

/* The dense parameters' share of c, d and w. */
static void dense_terms(const struct hps_cost *c, struct hps_stage_time *s, double bytes)
{
	const struct hps_cost_type *t = &c->type[s->type];
	double x;

	if (c->opt.form == HPS_COST_PAPER) {
		s->c += over(2 * bytes, t->bandwidth) / c->profile->batch;
	} else if (c->opt.dense_sync == HPS_SYNC_PS) {
		x = over(2 * bytes, fmin(t->bandwidth, c->ps.bandwidth)) / c->opt.batch;
		if (s->pushes > 0)
			s->d += s->pushes * x;
		else
			s->c += x;
	} else if (c->opt.weak) {
		x = over(2 * bytes, t->bandwidth) / c->opt.batch;
		s->d += x;
		s->w -= x;
	} else {
		x = over(2 * bytes, t->bandwidth) / c->opt.batch;
		s->c += x;
		s->d -= x;
	}
}

struct hps_stage_time hps_cost_stage_bare(const struct hps_cost *c, uint32_t i, uint32_t j,
					  uint32_t t, uint32_t first_units)
{
	const struct hps_cost_type *type = &c->type[t];
	struct hps_stage_time s = { .type = t, .first = i, .last = j, .busy = UINT32_MAX };
	double fixed = type->fixed[j + 1] - type->fixed[i];
	double variable = type->variable[j + 1] - type->variable[i];
	double sparse = c->sparse[j + 1] - c->sparse[i];
	double output = c->output[j + 1] - c->output[i];
	double rows = c->opt.batch, n = (double)c->opt.micro_batches * first_units;

	if (c->opt.form == HPS_COST_PAPER) {
		rows = c->profile->batch;
		s.a = fixed;
		s.b = variable;
		if (type->scaling)
			s.busy = type->n_scaling;
	} else {
		double most = i ? n : floor(c->opt.batch / c->opt.micro_batches);

		s.a = c->overhead / c->opt.batch;
		s.b = fixed * n / c->opt.batch + variable;
		if (most < s.busy)
			s.busy = (uint32_t)most;
	}
	s.max_units = s.busy < type->limit ? s.busy : type->limit;
	if (c->opt.weak)
		s.pushes = 1;
	else if (c->opt.form == HPS_COST_EXECUTOR && c->opt.mode == HPS_ASP)
		s.pushes = first_units;
	s.d = over(2 * sparse, fmin(type->bandwidth, c->ps.bandwidth));
	dense_terms(c, &s, c->params[j + 1] - c->params[i]);
	s.mem_fixed = 3 * (c->params[j + 1] - c->params[i]);
	*(c->opt.weak ? &s.mem_fixed : &s.mem_shared) += 2 * output * rows;
	return s;
}

struct hps_stage_time hps_cost_stage(const struct hps_cost *c, uint32_t i, uint32_t j, uint32_t t,
				     int left, int right, uint32_t first_units)
{
	struct hps_stage_time s = hps_cost_stage_bare(c, i, j, t, first_units);

	s.d += hps_cost_cut(c, i, t, left) + hps_cost_cut(c, j + 1, t, right);
	return s;
}

double hps_stage_ct(const struct hps_cost *c, const struct hps_stage_time *s, uint32_t k)
{
	const struct hps_cost_type *t = &c->type[s->type];
	const double *row;

	if (k > s->busy)
		k = s->busy;
	if (!t->scaling)
		return s->a + s->b / k;
	row = t->scaling + (size_t)(k - 1) * (c->n_layers + 1);
	return row[s->last + 1] - row[s->first];
}

double hps_stage_dt(const struct hps_stage_time *s, uint32_t k)
{
	double n = k < s->busy ? k : s->busy, dt = s->c + s->d / n + s->w / (n * n);

	/* The ring's c + d/k is 0 at k = 1 only up to rounding. */
	return dt > 0 ? dt : 0;
}

double hps_stage_memory(const struct hps_stage_time *s, uint32_t k)
{
	return s->mem_fixed + s->mem_shared / (k < s->busy ? k : s->busy);
}

double hps_stage_et(const struct hps_cost *c, const struct hps_stage_time *s, uint32_t k)
{
	double ct = hps_stage_ct(c, s, k), dt = hps_stage_dt(s, k);

	return c->opt.serial ? ct + dt : fmax(ct, dt);
}

/* The least real k with fixed + shared / k <= lim; INFINITY if there is none. */
static double least(double fixed, double shared, double lim)
{
	if (shared <= 0)
		return 1; /* falls with fewer units: the caller checks */
	return lim > fixed ? shared / (lim - fixed) : INFINITY;
}

static bool within(const struct hps_cost *c, const struct hps_stage_time *s, uint32_t k, double lim,
		   double memory)
{
	return hps_stage_et(c, s, k) <= lim && hps_stage_memory(s, k) <= memory;
}

bool hps_stage_regular(const struct hps_cost *c, const struct hps_stage_time *s)
{
	return !c->type[s->type].scaling && s->w == 0;
}

uint32_t hps_stage_units(const struct hps_cost *c, const struct hps_stage_time *s, double tau,
			 uint32_t min)
{
	double lim = tau * (1 + HPS_TIME_EPS), memory = c->type[s->type].memory, k;
	uint32_t units;

	if (memory <= 0)
		memory = INFINITY;
	if (!min)
		min = 1;
	if (!hps_stage_regular(c, s)) {
		for (units = min; units <= s->max_units; units++)
			if (within(c, s, units, lim, memory))
				return units;
		return 0;
	}
	k = fmax(min, least(s->mem_fixed, s->mem_shared, memory));
	if (c->opt.serial)
		k = fmax(k, least(s->a + s->c, s->b + s->d, lim));
	else
		k = fmax(k, fmax(least(s->a, s->b, lim), least(s->c, s->d, lim)));
	if (!(k <= (double)s->max_units + 1))
		return 0;
	/* Rounding may put k an ulp to either side of an integer. */
	units = (uint32_t)ceil(k);
	if (units > min && within(c, s, units - 1, lim, memory))
		units--;
	else if (units <= s->max_units && !within(c, s, units, lim, memory))
		units++;
	return units <= s->max_units && within(c, s, units, lim, memory) ? units : 0;
}

bool hps_cost_first_matters(const struct hps_cost *c)
{
	if (c->opt.form != HPS_COST_EXECUTOR)
		return false;
	if (c->opt.mode == HPS_ASP && c->params[c->n_layers] > 0)
		return true;
	for (uint32_t t = 0; t < c->n_types; t++)
		if (c->type[t].fixed[c->n_layers] > 0 || c->type[t].limit > c->opt.micro_batches)
			return true;
	return false;
}

uint32_t hps_cost_first_max(const struct hps_cost *c, uint32_t t)
{
	double most = floor(c->opt.batch / c->opt.micro_batches);

	if (c->opt.form != HPS_COST_EXECUTOR || most >= c->type[t].limit)
		return c->type[t].limit;
	return (uint32_t)most;
}

struct hps_stage_load hps_cost_load(const struct hps_cost *c, const struct hps_stage_time *s,
				    int left, uint32_t k)
{
	const struct hps_cost_type *t = &c->type[s->type];
	struct hps_stage_load load = { 0, 0 };
	double params = c->params[s->last + 1] - c->params[s->first], moved;

	if (c->opt.form != HPS_COST_EXECUTOR)
		return load;
	/* All replicas together, in bytes a sample. */
	if (c->opt.dense_sync == HPS_SYNC_PS)
		moved = load.dense_bytes =
			2 * params / c->opt.batch * (s->pushes > 0 ? s->pushes : k);
	else
		moved = 2 * params / c->opt.batch * (c->opt.weak ? (k - 1.0) / k : k - 1.0);
	if (!t->pooled)
		return load;
	load.cores_s = s->b;
	if (c->one_host) {
		load.cores_s += over(moved, t->bandwidth);
		load.cores_s += over(2 * (c->sparse[s->last + 1] - c->sparse[s->first]),
				     fmin(t->bandwidth, c->ps.bandwidth));
		/* Each cut once: by the stage after it. */
		if (left >= 0)
			load.cores_s += hps_cost_cut(c, s->first, s->type, left);
	}
	return load;
}

double hps_cost_ps_cpu(const struct hps_cost *c, double dense_bytes)
{
	if (!c->ps.max && !c->ps.min)
		return 0;
	return 2 * c->keys[c->n_layers] / c->ps.rows_per_s + dense_bytes / c->ps.bytes_per_s;
}

double hps_cost_ps_link(const struct hps_cost *c, double dense_bytes)
{
	if (!c->ps.max && !c->ps.min)
		return 0;
	return over(2 * c->sparse[c->n_layers] + dense_bytes, c->ps.bandwidth);
}

double hps_cost_ps_time(const struct hps_cost *c, double dense_bytes, uint32_t shards)
{
	double load = fmax(hps_cost_ps_cpu(c, dense_bytes), hps_cost_ps_link(c, dense_bytes));

	return load > 0 ? load / shards : 0;
}

bool hps_cost_shards(const struct hps_cost *c, double dense_bytes, double tau, uint32_t *shards)
{
	double load = fmax(hps_cost_ps_cpu(c, dense_bytes), hps_cost_ps_link(c, dense_bytes));
	double need = load > 0 ? load / (tau * (1 + HPS_TIME_EPS)) : 0;

	*shards = c->ps.min;
	if (need > *shards) {
		if (need > c->ps.max)
			return false;
		*shards = (uint32_t)ceil(need);
	}
	return *shards <= c->ps.max;
}

double hps_cost_cores_time(const struct hps_cost *c, double cores_s, double dense_bytes)
{
	/* Only where hosts are known do shards share their cores. */
	double all = cores_s + c->input + hps_cost_ps_cpu(c, dense_bytes);

	return isinf(c->cores) ? 0 : all / c->cores;
}
