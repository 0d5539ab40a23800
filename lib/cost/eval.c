/* What does a given schedule cost, and what sets its pace? The whole account of cost.h, stage
 * by stage, for both evaluators. */
#include "cost/cost.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "cost/cost_int.h"

enum hps_status hps_schedule_check(const struct hps_cost *c, const struct hps_schedule *s,
				   struct hps_err *err)
{
	uint32_t next = 0;

	if (!s->n_stages)
		return hps_err_set(err, HPS_BAD_INPUT, "a plan needs at least one stage");
	for (uint32_t i = 0; i < s->n_stages; i++) {
		const struct hps_span *st = &s->stage[i];

		if (st->first != next || st->last < st->first || st->last >= c->n_layers)
			return hps_err_set(err, HPS_BAD_INPUT,
					   "stage %u: layers %u..%u do not follow on layer %" PRId64
					   " within 0..%u",
					   i, st->first, st->last, (int64_t)next - 1,
					   c->n_layers - 1);
		if (st->type >= c->n_types)
			return hps_err_set(err, HPS_BAD_INPUT, "stage %u: no type %u", i, st->type);
		if (!st->units)
			return hps_err_set(err, HPS_BAD_INPUT,
					   "stage %u: expected units > 0, got 0", i);
		next = st->last + 1;
	}
	if (next != c->n_layers)
		return hps_err_set(err, HPS_BAD_INPUT, "layers %u..%u are in no stage", next,
				   c->n_layers - 1);
	return HPS_OK;
}

static double over(double bytes, double bandwidth)
{
	return bytes > 0 ? bytes / bandwidth : 0;
}

/* Bandwidth and latency between the types of two neighbouring stages. */
static double cut_bandwidth(const struct hps_cost *c, const struct hps_span *a,
			    const struct hps_span *b)
{
	return fmin(c->type[a->type].bandwidth, c->type[b->type].bandwidth);
}

static double cut_latency(const struct hps_cost *c, const struct hps_span *a,
			  const struct hps_span *b)
{
	return c->cut[b->first] > 0 ? fmax(c->type[a->type].latency, c->type[b->type].latency) : 0;
}

/* Seconds of one step's dense synchronisation, and which way. */
static double sync_time(const struct hps_cost *c, const struct hps_span *st, uint32_t shards,
			enum hps_dense_sync *how)
{
	const struct hps_cost_type *t = &c->type[st->type];
	double bytes = 2 * (c->params[st->last + 1] - c->params[st->first]), k = st->units;
	double ring = over(bytes, t->bandwidth) * (k - 1) / k + 2 * (k - 1) * t->latency;
	double S = shards ? shards : INFINITY; /* the servers' term left out */
	double ps = fmax(over(bytes, fmin(t->bandwidth, c->ps.bandwidth)),
			 over(bytes * k, c->ps.bandwidth * S)) +
		    bytes * k / (c->ps.bytes_per_s * S) + 2 * fmax(t->latency, c->ps.latency);

	*how = c->opt.dense_sync == HPS_SYNC_PS ? HPS_DENSE_PS : HPS_DENSE_RING;
	if (bytes <= 0)
		return 0;
	if (c->opt.dense_sync == HPS_SYNC_PS ||
	    (c->opt.dense_sync == HPS_SYNC_AUTO && c->opt.evaluator == HPS_EVAL_STEP && shards &&
	     ps < ring)) {
		*how = HPS_DENSE_PS;
		return ps;
	}
	return ring;
}

static struct hps_stage_time stage_at(const struct hps_cost *c, const struct hps_schedule *s,
				      uint32_t i)
{
	const struct hps_span *sp = &s->stage[i];
	int left = i ? (int)sp[-1].type : -1;
	int right = i + 1 < s->n_stages ? (int)sp[1].type : -1;

	return hps_cost_stage(c, sp->first, sp->last, sp->type, left, right, s->stage[0].units);
}

/* HT of the busiest host of a placement, whose number goes to *busiest; host_s gets HT of
 * each. all: loopback and shards too, else computing alone. */
static double hosts_time(const struct hps_cost *c, const struct hps_schedule *s,
			 const struct hps_placement *place, double ps_cpu, bool all,
			 uint32_t *busiest)
{
	const uint32_t *r = place->replica;
	double most = 0;

	memset(place->host_s, 0, c->cluster->n_hosts * sizeof(*place->host_s));
	for (uint32_t i = 0; i < s->n_stages; i++) {
		const struct hps_span *sp = &s->stage[i];
		struct hps_stage_time st = stage_at(c, s, i);
		double work = c->type[sp->type].pooled ? st.b : 0;

		if (all)
			work = hps_cost_load(c, &st, i ? (int)sp[-1].type : -1, sp->units).cores_s;
		if (all && !i)
			work += c->input; /* the first stage's hosts read the data */
		for (uint32_t k = 0; k < sp->units; k++)
			place->host_s[*r++] += work / sp->units;
	}
	for (uint32_t k = 0; all && k < s->shards; k++)
		place->host_s[place->shard[k]] += ps_cpu;
	for (uint32_t h = 0; h < c->cluster->n_hosts; h++) {
		if (place->host_s[h] > 0)
			place->host_s[h] /= hps_cost_host_cores(c->cluster, h);
		if (place->host_s[h] > most) {
			most = place->host_s[h];
			*busiest = h;
		}
	}
	return most;
}

/* Sums that eval gathers over stages. */
struct account {
	double et;	    /* largest */
	double cores_s;	    /* HT's stages, loopback included */
	double compute_s;   /* the same without loopback */
	double dense_bytes; /* D */
	double step_dense;  /* bytes a step through the servers, as the step chose */
	double fill, rounds, sync, sparse;
};

static void stage_row(const struct hps_cost *c, const struct hps_schedule *s, uint32_t i,
		      const struct hps_stage_time *st, double sync, enum hps_dense_sync how,
		      struct hps_stage_cost *row)
{
	const struct hps_span *sp = &s->stage[i];
	double params = c->params[sp->last + 1] - c->params[sp->first], k = sp->units;

	row->ct_s = hps_stage_ct(c, st, sp->units);
	row->dt_s = hps_stage_dt(st, sp->units);
	row->et_s = hps_stage_et(c, st, sp->units);
	row->binds = row->dt_s > row->ct_s ? HPS_BINDS_LINK : HPS_BINDS_COMPUTE;
	row->dense_sync = how;
	row->sync_s = sync;
	row->cut_bytes = c->cut[sp->first] + c->cut[sp->last + 1];
	row->sparse_bytes = 2 * (c->sparse[sp->last + 1] - c->sparse[sp->first]);
	row->dense_bytes = 2 * params * (how == HPS_DENSE_RING ? (k - 1) / k : 1);
	row->memory_bytes = hps_stage_memory(st, sp->units);
	row->price = c->type[sp->type].price * k;
}

static void check_fit(const struct hps_cost *c, const struct hps_schedule *s, uint32_t i,
		      const struct hps_stage_time *st, struct hps_cost_result *r)
{
	const struct hps_span *sp = &s->stage[i];
	const struct hps_cost_type *t = &c->type[sp->type];
	double memory = hps_stage_memory(st, sp->units);
	uint64_t used = 0;

	if (!r->fits)
		return;
	for (uint32_t j = 0; j < s->n_stages; j++)
		if (s->stage[j].type == sp->type)
			used += s->stage[j].units;
	if (used > t->limit)
		snprintf(r->why, sizeof(r->why),
			 "%" PRIu64 " units of type \"%s\", the limit is %u", used, t->name,
			 t->limit);
	else if (!i && c->opt.form == HPS_COST_EXECUTOR && sp->units > st->busy)
		snprintf(r->why, sizeof(r->why),
			 "the first stage has %u replicas with %u micro-batches each, a step has "
			 "%g rows",
			 sp->units, c->opt.micro_batches, c->opt.batch);
	else if (t->memory > 0 && memory > t->memory)
		snprintf(r->why, sizeof(r->why),
			 "stage %u needs %.4g bytes a unit, a unit of \"%s\" has %.4g", i, memory,
			 t->name, t->memory);
	else
		return;
	r->fits = false;
	r->at = i;
}

/* A stage's part in filling and draining, see T in cost.h. */
static void step_terms(const struct hps_cost *c, const struct hps_schedule *s, uint32_t i,
		       struct account *acc)
{
	const struct hps_span *sp = &s->stage[i];
	const struct hps_cost_type *t = &c->type[sp->type];
	double n = (double)c->opt.micro_batches * s->stage[0].units, m = c->opt.batch / n;
	double e = t->fixed[sp->last + 1] - t->fixed[sp->first] +
		   (t->variable[sp->last + 1] - t->variable[sp->first]) * m;
	double sparse = c->sparse[sp->last + 1] - c->sparse[sp->first];
	double x = 0;

	acc->fill += e;
	if (i) {
		double cut = over(m * c->cut[sp->first], cut_bandwidth(c, sp - 1, sp));

		acc->fill += cut + 2 * cut_latency(c, sp - 1, sp);
		x += cut;
	}
	if (i + 1 < s->n_stages)
		x += over(m * c->cut[sp->last + 1], cut_bandwidth(c, sp, sp + 1));
	acc->rounds = fmax(acc->rounds, (ceil(n / sp->units) - 1) * fmax(e, x));
	acc->sparse = fmax(acc->sparse, over(2 * c->opt.batch * sparse,
					     fmin(t->bandwidth, c->ps.bandwidth) * sp->units));
}

static double step_time(const struct hps_cost *c, const struct hps_schedule *s, struct account *acc,
			double compute_ht, struct hps_cost_result *r)
{
	double n = (double)c->opt.micro_batches * s->stage[0].units, m = c->opt.batch / n;
	double rows = 2 * c->opt.batch * c->keys[c->n_layers];

	acc->rounds = fmax(acc->rounds, (n - s->stage[0].units) * m * compute_ht);
	if (s->shards && rows > 0) {
		acc->sparse = fmax(acc->sparse, over(2 * c->opt.batch * c->sparse[c->n_layers],
						     c->ps.bandwidth * s->shards));
		acc->sparse += rows / (c->ps.rows_per_s * s->shards);
		acc->sparse += 2 * c->ps.latency;
	}
	r->fill_s = acc->fill;
	r->sync_s = acc->sync;
	r->sparse_s = acc->sparse;
	return acc->fill + acc->rounds + acc->sync + acc->sparse + c->overhead;
}

/* The largest of the rate's terms, and whose it is. */
static void take_rate(struct hps_cost_result *r, double v, enum hps_binding binds, uint32_t at)
{
	if (v <= r->rate_s)
		return;
	r->rate_s = v;
	r->binds = binds;
	if (r->fits)
		r->at = at;
}

static void check_shards(const struct hps_cost *c, const struct hps_schedule *s,
			 struct hps_cost_result *r)
{
	if (!r->fits || (s->shards >= c->ps.min && s->shards <= c->ps.max))
		return;
	r->fits = false;
	if (s->shards > c->ps.max)
		snprintf(r->why, sizeof(r->why),
			 "%u parameter server shards are needed, %u PS cores are there", s->shards,
			 c->ps.max);
	else
		snprintf(r->why, sizeof(r->why), "%u shards, %u are needed", s->shards, c->ps.min);
}

/* How busy servers, cores and stages are in the cycle that was found. */
static void take_uses(const struct hps_cost *c, const struct hps_schedule *s,
		      const struct account *acc, double ps_cpu, double ps_link,
		      struct hps_cost_result *r, struct hps_stage_cost *stage)
{
	r->ps.cpu_s = ps_cpu;
	r->ps.link_s = ps_link;
	r->ps.cpu_use = r->cycle_s > 0 ? ps_cpu / r->cycle_s : 0;
	r->ps.link_use = r->cycle_s > 0 ? ps_link / r->cycle_s : 0;
	r->ps.sparse_bytes = s->shards ? 2 * c->sparse[c->n_layers] : 0;
	r->ps.dense_bytes = acc->step_dense;
	r->cores_use = r->cycle_s > 0 ? r->cores_s / r->cycle_s : 0;
	for (uint32_t i = 0; stage && i < s->n_stages; i++) {
		stage[i].slack_s = r->cycle_s - stage[i].et_s;
		stage[i].compute_use = r->cycle_s > 0 ? stage[i].ct_s / r->cycle_s : 0;
		stage[i].link_use = r->cycle_s > 0 ? stage[i].dt_s / r->cycle_s : 0;
	}
}

void hps_cost_eval(const struct hps_cost *c, const struct hps_schedule *s,
		   const struct hps_placement *place, struct hps_cost_result *r,
		   struct hps_stage_cost *stage)
{
	struct account acc = { 0 };
	double ps_cpu, ps_link, compute_ht = 0;
	uint32_t busiest = UINT32_MAX;

	memset(r, 0, sizeof(*r));
	r->fits = true;
	r->at = UINT32_MAX;
	for (uint32_t i = 0; i < s->n_stages; i++) {
		const struct hps_span *sp = &s->stage[i];
		struct hps_stage_time st = stage_at(c, s, i);
		struct hps_stage_load load =
			hps_cost_load(c, &st, i ? (int)sp[-1].type : -1, sp->units);
		enum hps_dense_sync how;
		double sync = sync_time(c, sp, s->shards, &how);
		double ct = hps_stage_ct(c, &st, sp->units), dt = hps_stage_dt(&st, sp->units);

		check_fit(c, s, i, &st, r);
		take_rate(r, c->opt.serial ? ct + dt : fmax(ct, dt),
			  dt > ct ? HPS_BINDS_LINK : HPS_BINDS_COMPUTE, i);
		acc.cores_s += load.cores_s;
		acc.compute_s += c->type[sp->type].pooled ? st.b : 0;
		acc.dense_bytes += load.dense_bytes;
		if (how == HPS_DENSE_PS)
			acc.step_dense +=
				2 * (c->params[sp->last + 1] - c->params[sp->first]) * sp->units;
		acc.sync = fmax(acc.sync, sync);
		step_terms(c, s, i, &acc);
		r->price += c->type[sp->type].price * sp->units;
		if (stage)
			stage_row(c, s, i, &st, sync, how, &stage[i]);
	}
	ps_cpu = s->shards ? hps_cost_ps_cpu(c, acc.dense_bytes) / s->shards : 0;
	ps_link = s->shards ? hps_cost_ps_link(c, acc.dense_bytes) / s->shards : 0;
	take_rate(r, ps_cpu, HPS_BINDS_PS_CPU, UINT32_MAX);
	take_rate(r, ps_link, HPS_BINDS_PS_LINK, UINT32_MAX);
	if (!isinf(c->cores) && place) {
		compute_ht = hosts_time(c, s, place, ps_cpu, false, &busiest);
		r->cores_s = hosts_time(c, s, place, ps_cpu, true, &busiest);
	} else if (!isinf(c->cores)) {
		compute_ht = acc.compute_s / c->cores;
		r->cores_s = (acc.cores_s + c->input + ps_cpu * s->shards) / c->cores;
	}
	take_rate(r, r->cores_s, HPS_BINDS_CORES, busiest);
	check_shards(c, s, r);
	r->ps.price = c->ps.price * s->shards;
	r->price += r->ps.price;
	r->cycle_s = r->rate_s;
	r->step_s = c->opt.batch * r->rate_s;
	if (c->opt.evaluator == HPS_EVAL_STEP && c->opt.form == HPS_COST_EXECUTOR &&
	    c->opt.mode == HPS_BSP) {
		double t = step_time(c, s, &acc, compute_ht, r);

		r->step_s = fmax(t, r->step_s);
		r->cycle_s = r->step_s / c->opt.batch;
	}
	r->throughput = r->cycle_s > 0 ? 1 / r->cycle_s : INFINITY;
	r->cost = r->price / 3600 * r->cycle_s;
	take_uses(c, s, &acc, ps_cpu, ps_link, r, stage);
}
