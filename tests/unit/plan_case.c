/* Small planning problems, and a judge that shares nothing with the planners but the account of
 * one schedule. */
#include "plan_case.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/rng.h"
#include "cm.h"

void plan_case_init(struct plan_case *c, uint32_t L, uint32_t T, uint32_t limit)
{
	memset(c, 0, sizeof(*c));
	assert_true(L <= PLAN_CASE_LAYERS && T <= PLAN_CASE_TYPES);
	c->profile = (struct hps_profile){ .batch = 100,
					   .n_layers = L,
					   .size = c->size,
					   .n_types = T,
					   .type = c->type_name,
					   .simulated = c->simulated,
					   .time = c->time,
					   .cut_forward_bytes = c->cut_forward,
					   .cut_backward_bytes = c->cut_backward };
	c->cluster = (struct hps_cluster){ .type = c->type, .n_types = T, .host = c->host };
	for (uint32_t t = 0; t < T; t++) {
		snprintf(c->name[t], sizeof(c->name[t]), "t%u", t);
		c->type[t] = (struct hps_type){ .name = c->name[t],
						.price = 1,
						.limit = limit ? limit : HPS_NO_LIMIT };
		c->type_name[t] = c->name[t];
	}
	for (uint32_t l = 0; l < L; l++) {
		snprintf(c->name[T + l], sizeof(c->name[T + l]), "l%u", l);
		c->size[l].name = c->name[T + l];
	}
}

void plan_case_time(struct plan_case *c, uint32_t t, uint32_t l, double c0, double c1)
{
	struct hps_layer_time *x = &c->time[t * c->profile.n_layers + l];

	x->forward = (struct hps_fit){ c0, c1, 0 };
	x->oct = c0 + c1 * c->profile.batch;
	x->alpha = x->oct > 0 ? c1 * c->profile.batch / x->oct : 1;
}

void plan_case_host(struct plan_case *c, const uint32_t *units, uint32_t cores, uint32_t ps_cores)
{
	uint32_t h = c->cluster.n_hosts++;
	char *name = c->name[PLAN_CASE_TYPES + PLAN_CASE_LAYERS + h];

	assert_true(h < PLAN_CASE_HOSTS);
	snprintf(name, sizeof(c->name[0]), "h%u", h);
	memcpy(c->units[h], units, c->cluster.n_types * sizeof(*units));
	c->host[h] = (struct hps_host){ .name = name,
					.address = name,
					.units = c->units[h],
					.cores = cores,
					.ps_cores = ps_cores };
}

void plan_case_ready(struct plan_case *c)
{
	struct hps_err err = { 0 };

	if (hps_cost_init(&c->cost, &c->profile, &c->cluster, &c->opt, &err))
		fail_msg("%s: %s", err.where, err.msg);
	c->problem.cost = &c->cost;
}

void plan_case_release(struct plan_case *c)
{
	hps_cost_release(&c->cost);
}

/* --- random problems --- */

static double between(struct hps_rng *r, double low, double high)
{
	return low + (high - low) * hps_rng_uniform(r);
}

static bool one_in(struct hps_rng *r, uint64_t n)
{
	return hps_rng_below(r, n) == 0;
}

/* Schedules of L layers, T types, k units each, S shards. */
static double size_of(double L, double T, double k, double S)
{
	return T * k * pow(1 + T * k, L - 1) * S;
}

static void random_times(struct plan_case *c, struct hps_rng *r)
{
	uint32_t L = c->profile.n_layers, T = c->profile.n_types;
	bool scaled = one_in(r, 6);

	for (uint32_t t = 0; t < T; t++) {
		double speed = exp(between(r, -1, 1));

		for (uint32_t l = 0; l < L; l++) {
			double c1 = between(r, 1e-5, 1e-4) / speed / exp(between(r, -1.5, 1.5));
			struct hps_layer_time *x = &c->time[t * L + l];

			plan_case_time(c, t, l, one_in(r, 3) ? 0 : c1 * between(r, 0, 40), c1);
			if (!scaled || one_in(r, 4))
				continue;
			/* A speed over units that may fall again. */
			x->scaling = c->scaling[t * L + l];
			x->n_scaling = PLAN_CASE_SCALING;
			for (uint32_t k = 0; k < PLAN_CASE_SCALING; k++)
				x->scaling[k] = 1 + k * between(r, 0.1, 1);
		}
	}
}

static void random_sizes(struct plan_case *c, struct hps_rng *r)
{
	uint32_t L = c->profile.n_layers;

	for (uint32_t l = 0; l < L; l++) {
		c->size[l].param_bytes = one_in(r, 3) ? 0 : between(r, 0, 2e6);
		c->size[l].output_bytes = between(r, 0, 4000);
		if (l < 2 && !one_in(r, 3)) {
			c->size[l].sparse_bytes = between(r, 0, 2000);
			c->size[l].sparse_keys = between(r, 0, 40);
		}
		if (l + 1 < L) {
			c->cut_forward[l] = between(r, 0, 4000);
			c->cut_backward[l] = between(r, 0, 4000);
		}
	}
	c->profile.link =
		(struct hps_link){ one_in(r, 4) ? 0 : exp(between(r, log(3e7), log(3e10))), 1e-5 };
	c->profile.shard.rows_per_s = one_in(r, 3) ? 0 : between(r, 5e5, 5e6);
	c->profile.shard.bytes_per_s = one_in(r, 3) ? 0 : between(r, 1e8, 2e9);
	c->profile.input_s_per_sample = one_in(r, 2) ? 0 : between(r, 0, 1e-6);
	c->profile.step_overhead_s = one_in(r, 2) ? 0 : between(r, 0, 1e-3);
}

static void random_cluster(struct plan_case *c, struct hps_rng *r, uint32_t limit, uint32_t S)
{
	uint32_t T = c->cluster.n_types, hosts = (uint32_t)hps_rng_below(r, 3);

	for (uint32_t t = 0; t < T; t++) {
		c->type[t].price = exp(between(r, -1.5, 1.5));
		c->type[t].limit = 1 + (uint32_t)hps_rng_below(r, limit);
		if (!one_in(r, 3))
			c->type[t].link.bandwidth = exp(between(r, log(3e7), log(3e10)));
		if (one_in(r, 4))
			c->type[t].device = HPS_DEVICE_CUDA;
		if (one_in(r, 5))
			c->type[t].memory = between(r, 1e5, 1e7);
	}
	if (one_in(r, 2))
		c->cluster.network.bandwidth = exp(between(r, log(3e7), log(3e10)));
	c->cluster.ps_price = one_in(r, 3) ? 0 : between(r, 0.01, 1);
	for (uint32_t h = 0; h < hosts; h++) {
		uint32_t units[PLAN_CASE_TYPES];

		for (uint32_t t = 0; t < T; t++)
			units[t] = (uint32_t)hps_rng_below(r, limit + 1);
		plan_case_host(c, units, 1 + (uint32_t)hps_rng_below(r, 4),
			       h ? 0 : 1 + (uint32_t)hps_rng_below(r, S));
	}
}

void plan_case_is_stage(const struct hps_solution *s, uint32_t i, uint32_t first, uint32_t last,
			uint32_t type, uint32_t units)
{
	assert_true(i < s->n_stages);
	assert_int_equal(s->stage[i].first, first);
	assert_int_equal(s->stage[i].last, last);
	assert_int_equal(s->stage[i].type, type);
	assert_int_equal(s->stage[i].units, units);
}

static void random_options(struct plan_case *c, struct hps_rng *r, uint32_t S)
{
	c->opt = (struct hps_cost_options){
		.form = one_in(r, 3) ? HPS_COST_PAPER : HPS_COST_EXECUTOR,
		.dense_sync = one_in(r, 3) ? HPS_SYNC_PS : HPS_SYNC_AUTO,
		.batch = one_in(r, 2) ? 0 : floor(between(r, 20, 300)),
		.micro_batches = 1 + (uint32_t)hps_rng_below(r, 4),
		.shards = c->cluster.n_hosts ? 0 : 1 + (uint32_t)hps_rng_below(r, S),
		.serial = one_in(r, 8),
		.weak = one_in(r, 8),
		.without = one_in(r, 3) ? (unsigned)hps_rng_below(r, 128) : 0,
	};
	if (c->opt.form == HPS_COST_EXECUTOR && c->opt.dense_sync == HPS_SYNC_PS && one_in(r, 2))
		c->opt.mode = HPS_ASP;
	c->problem.objective = one_in(r, 4) ? HPS_PRICE_PER_HOUR : HPS_COST_PER_SAMPLE;
	c->problem.merge = one_in(r, 4);
}

void plan_case_random(struct plan_case *c, uint64_t seed, double most)
{
	uint32_t L, T, limit, S;
	struct plan_judge judge;
	struct hps_rng r;

	hps_rng_init(&r, seed, 77);
	do {
		L = 1 + (uint32_t)hps_rng_below(&r, 9);
		T = 1 + (uint32_t)hps_rng_below(&r, 4);
		limit = 1 + (uint32_t)hps_rng_below(&r, 9);
		S = 1 + (uint32_t)hps_rng_below(&r, 3);
	} while (size_of(L, T, limit, S) > most || size_of(L, T, limit, S) < most / 30);
	plan_case_init(c, L, T, limit);
	random_times(c, &r);
	random_sizes(c, &r);
	random_cluster(c, &r, limit, S);
	random_options(c, &r, S);
	plan_case_ready(c);
	if (one_in(&r, 4))
		return;
	/* A floor somewhere around what there is. */
	plan_case_judge(c, &judge);
	if (judge.fastest > 0)
		c->problem.floor = judge.fastest * between(&r, 0.2, 1.05);
}

/* --- the judge --- */

struct judging {
	const struct plan_case *c;
	struct plan_judge *j;
	struct hps_span stage[PLAN_CASE_LAYERS];
};

static void look(struct judging *x, uint32_t n, uint32_t shards)
{
	const struct hps_problem *p = &x->c->problem;
	struct hps_schedule s = { x->stage, n, shards };
	struct hps_cost_result r;
	double value;

	hps_cost_eval(&x->c->cost, &s, NULL, &r, NULL);
	x->j->looked_at++;
	if (!r.fits)
		return;
	x->j->fastest = fmax(x->j->fastest, r.throughput);
	if (r.throughput < p->floor * (1 - 1e-10))
		return;
	value = p->objective == HPS_PRICE_PER_HOUR ? r.price : r.cost;
	if (!x->j->feasible || value < x->j->objective * (1 - HPS_TIE_EPS)) {
		x->j->objective = value;
		x->j->throughput = r.throughput;
	} else if (value <= x->j->objective * (1 + HPS_TIE_EPS)) {
		x->j->objective = fmin(value, x->j->objective);
		x->j->throughput = fmax(x->j->throughput, r.throughput);
	}
	x->j->feasible = true;
}

static void judge_from(struct judging *x, uint32_t n, uint32_t layer)
{
	const struct hps_cost *c = &x->c->cost;

	if (layer == c->n_layers) {
		for (uint32_t s = c->ps.min; s <= c->ps.max; s++)
			look(x, n, s);
		return;
	}
	for (uint32_t last = layer; last < c->n_layers; last++) {
		for (uint32_t t = 0; t < c->n_types; t++) {
			if (x->c->problem.merge && n && x->stage[n - 1].type == t)
				continue;
			for (uint32_t k = 1; k <= c->type[t].limit; k++) {
				x->stage[n] = (struct hps_span){ layer, last, t, k };
				judge_from(x, n + 1, last + 1);
			}
		}
	}
}

void plan_case_judge(const struct plan_case *c, struct plan_judge *j)
{
	struct judging x = { .c = c, .j = j };

	memset(j, 0, sizeof(*j));
	judge_from(&x, 0, 0);
}
