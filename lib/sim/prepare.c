/* What does the schedule come to in micro-batches: seconds, bytes, links, who is slow? And the
 * memory of a run. Bytes and times are those of lib/cost. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/rng.h"
#include "sim/sim_int.h"

struct hps_sim_options hps_sim_defaults(const struct hps_cost *c)
{
	return (struct hps_sim_options){
		.mode = c->opt.mode == HPS_ASP ? HPS_SIM_ASP : HPS_SIM_BSP,
		.steps = HPS_SIM_STEPS,
		.straggler_factor = 1,
		.seed = 1,
	};
}

static enum hps_status check_options(const struct hps_sim_options *o, struct hps_err *err)
{
	if (o->steps > HPS_SIM_MOST_STEPS)
		return hps_err_set(err, HPS_USAGE, "simulation: at most %d steps, got %u",
				   HPS_SIM_MOST_STEPS, o->steps);
	if (!(o->jitter >= 0 && o->jitter <= HPS_SIM_MOST_JITTER))
		return hps_err_set(err, HPS_USAGE,
				   "simulation: expected jitter within 0..%d, got %g",
				   HPS_SIM_MOST_JITTER, o->jitter);
	if (!(o->straggler_share >= 0 && o->straggler_share <= 1))
		return hps_err_set(err, HPS_USAGE,
				   "simulation: expected a share of stragglers within 0..1, got %g",
				   o->straggler_share);
	if (o->straggler_share > 0 && !(o->straggler_factor > 0 && o->straggler_factor <= 1e6))
		return hps_err_set(err, HPS_USAGE,
				   "simulation: expected stragglers to be slower by a factor > 0, "
				   "up to 1e6, got %g",
				   o->straggler_factor);
	return HPS_OK;
}

/* The share of a stage's time that is forward. */
static double forward_share(const struct hps_cost *c, const struct hps_span *sp, double m)
{
	const struct hps_profile *p = c->profile;
	int t = hps_profile_type(p, c->type[sp->type].name);
	double forward = 0, all = 0;

	for (uint32_t l = sp->first; t >= 0 && l <= sp->last; l++) {
		const struct hps_layer_time *x = &p->time[(size_t)t * p->n_layers + l];
		double f = x->forward.c0 + x->forward.c1 * m;
		double both = f + x->backward.c0 + x->backward.c1 * m;

		if (both <= 0) {
			both = x->oct;
			f = both / 3;
		}
		forward += f;
		all += both;
	}
	return all > 0 ? forward / all : 1 / 3.;
}

static void fill_times(const struct sim *s, const struct hps_schedule *sched, uint32_t i,
		       struct stage *st)
{
	const struct hps_cost *c = s->c;
	const struct hps_span *sp = &sched->stage[i];
	const struct hps_cost_type *t = &c->type[sp->type];
	double e, f = forward_share(c, sp, s->paper ? c->profile->batch : s->m);

	if (s->paper) {
		struct hps_stage_time time = hps_cost_stage(c, sp->first, sp->last, sp->type, -1,
							    -1, sched->stage[0].units);

		e = hps_stage_ct(c, &time, sp->units) * s->m;
	} else {
		e = t->fixed[sp->last + 1] - t->fixed[sp->first] +
		    (t->variable[sp->last + 1] - t->variable[sp->first]) * s->m;
	}
	st->forward_s = e * f;
	st->backward_s = e - st->forward_s;
}

static void fill_sync(const struct sim *s, uint32_t units, enum hps_dense_sync how,
		      struct stage *st)
{
	bool weak = !s->paper && s->c->opt.weak;

	if (!s->paper && how == HPS_DENSE_RING && units == 1)
		st->dense = 0;
	/* Replicas without parameters wait for each other all the same. */
	st->ring = !s->paper && (how == HPS_DENSE_RING || st->dense <= 0);
	st->period = weak ? units : 1;
	if (!sim_bsp(s) && !s->paper)
		st->period *= s->c->opt.micro_batches;
}

static void fill_stage(const struct sim *s, const struct hps_schedule *sched, uint32_t i,
		       enum hps_dense_sync how)
{
	const struct hps_cost *c = s->c;
	const struct hps_span *sp = &sched->stage[i];
	const struct hps_cost_type *t = &c->type[sp->type];
	struct stage *st = &s->stage[i];
	uint32_t a = sp->first, b = sp->last;

	*st = (struct stage){ .first = a, .last = b };
	st->k = s->paper ? 1 : sp->units;
	st->units = s->paper ? sp->units : 1;
	st->active = st->k < s->n || !sim_bsp(s) ? st->k : s->n;
	if (i) {
		st->replica0 = st[-1].replica0 + st[-1].k;
		st->unit0 = st[-1].unit0 + sp[-1].units;
		if (c->cut[a] > 0) {
			st->down = s->m * c->profile->cut_backward_bytes[a - 1];
			st->hop = fmax(t->latency, c->type[sp[-1].type].latency);
		}
	}
	if (i + 1 < sched->n_stages && c->cut[b + 1] > 0)
		st->up = s->m * c->profile->cut_forward_bytes[b];
	st->bandwidth = t->bandwidth;
	st->latency = fmax(t->latency, c->ps.latency);
	st->ring_latency = t->latency;
	st->pooled = t->pooled && s->pool != NONE;
	st->row_bytes = s->m * (c->sparse[b + 1] - c->sparse[a]);
	st->rows = s->m * (c->keys[b + 1] - c->keys[a]);
	st->dense = c->params[b + 1] - c->params[a];
	fill_times(s, sched, i, st);
	fill_sync(s, sp->units, how, st);
}

/* Everything of the schedule but memory. */
static enum hps_status fill_stages(struct sim *s, const struct hps_schedule *sched,
				   struct hps_err *err)
{
	struct hps_stage_cost *row = hps_calloc(sched->n_stages, sizeof(*row), err);
	struct hps_cost_result r;

	if (!row)
		return HPS_MEMORY;
	hps_cost_eval(s->c, sched, NULL, &r, row);
	for (uint32_t i = 0; i < sched->n_stages; i++) {
		fill_stage(s, sched, i, row[i].dense_sync);
		if (s->stage[i].rows > 0 || s->stage[i].row_bytes > 0)
			s->row_pushes_of_step += s->n;
	}
	free(row);
	return HPS_OK;
}

static void fill_shares(struct sim *s)
{
	for (uint32_t r = 0; r < s->n_replicas; r++)
		for (uint32_t w = 0; w < s->ways; w++)
			s->share[r * s->ways + w].capacity =
				s->stage[s->replica[r].stage].bandwidth;
	for (uint32_t w = 0; w < s->ways; w++)
		s->share[s->n_replicas * s->ways + w].capacity = s->c->ps.bandwidth;
	for (uint32_t i = 0; i < s->n_shares; i++) {
		s->share[i].most = INFINITY;
		s->share[i].root = NONE;
	}
	if (s->pool != NONE) {
		s->share[s->pool].capacity = s->c->cores;
		s->share[s->pool].most = 1;
	}
}

/* Exactly so many of the units are slow, each set as likely as any other (Knuth's algorithm S). A
 * paper stage is as slow as its slowest unit. */
static void choose_stragglers(struct sim *s)
{
	double want = round(s->o.straggler_share * s->n_units);
	struct hps_rng rng;

	hps_rng_init(&rng, s->o.seed, 1);
	if (s->o.straggler_share > 0 && want < 1)
		want = 1;
	for (uint32_t r = 0, unit = 0; r < s->n_replicas; r++) {
		s->replica[r].slow = 1;
		for (uint32_t u = 0; u < s->stage[s->replica[r].stage].units; u++, unit++) {
			if (hps_rng_uniform(&rng) * (s->n_units - unit) >= want)
				continue;
			want--;
			s->replica[r].slow = s->o.straggler_factor;
		}
	}
}

static void fill_replicas(struct sim *s)
{
	for (uint32_t i = 0, r = 0; i < s->n_stages; i++) {
		for (uint32_t k = 0; k < s->stage[i].k; k++, r++) {
			struct replica *x = &s->replica[r];

			*x = (struct replica){ .stage = i, .number = k };
			x->token = x->reading = NONE;
			x->list[FORWARD] = x->list[BACKWARD] = (struct list){ NONE, NONE };
			x->where = HPS_SIM_INPUT;
		}
	}
	choose_stragglers(s);
}

static enum hps_status allocate(struct sim *s, struct hps_err *err)
{
	s->replica = hps_calloc(s->n_replicas, sizeof(*s->replica), err);
	if (!s->replica)
		return HPS_MEMORY;
	s->share = hps_calloc(s->n_shares, sizeof(*s->share), err);
	if (!s->share)
		return HPS_MEMORY;
	s->carried = hps_calloc(s->n_shares, sizeof(*s->carried), err);
	if (!s->carried)
		return HPS_MEMORY;
	if (queue_grow(&s->queue, id_of_message(s, 0), err))
		return HPS_MEMORY;
	for (uint32_t i = 1; i < s->n_stages && !sim_bsp(s); i++) {
		struct queue *q = &s->stage[i].load;

		if (queue_grow(q, s->stage[i].k, err))
			return HPS_MEMORY;
		for (uint32_t k = 0; k < s->stage[i].k; k++)
			queue_set(q, k, 0);
	}
	return HPS_OK;
}

/* How much there is of everything, before the stages are filled. */
static enum hps_status measure(struct sim *s, const struct hps_schedule *sched, struct hps_err *err)
{
	const struct hps_cost *c = s->c;
	uint64_t n = (uint64_t)c->opt.micro_batches * sched->stage[0].units, units = 0;

	s->paper = c->opt.form == HPS_COST_PAPER;
	for (uint32_t i = 0; i < sched->n_stages; i++)
		units += sched->stage[i].units;
	if (s->paper)
		n = 8 * (uint64_t)sched->n_stages + 8;
	if (n > HPS_SIM_MOST_TOKENS / 2 || units > HPS_SIM_MOST_TOKENS)
		return hps_err_set(err, HPS_MEMORY,
				   "simulation: %llu micro-batches a step and %llu units are more "
				   "than %d",
				   (unsigned long long)n, (unsigned long long)units,
				   HPS_SIM_MOST_TOKENS / 2);
	s->n_stages = sched->n_stages;
	s->n = (uint32_t)n;
	s->n_units = (uint32_t)units;
	s->n_replicas = s->paper ? s->n_stages : s->n_units;
	s->m = s->paper ? c->profile->batch : c->opt.batch / (double)n;
	s->own = s->paper ? s->n : c->opt.micro_batches;
	s->in_flight = s->paper ? s->n : 2 * s->own;
	s->overhead = s->paper ? 0 : c->overhead;
	s->shards = sched->shards;
	s->ps_latency = c->ps.latency;
	s->ways = s->o.duplex ? 2 : 1;
	s->n_shares = (s->n_replicas + 1) * s->ways;
	s->pool = NONE;
	if (!isinf(c->cores) && !s->paper)
		s->pool = s->n_shares++;
	s->input = s->pool != NONE ? c->input * s->m : 0;
	s->loopback = c->one_host && s->pool != NONE;
	return HPS_OK;
}

enum hps_status sim_init(struct sim *s, const struct hps_cost *c, const struct hps_schedule *sched,
			 const struct hps_sim_options *o, struct hps_err *err)
{
	enum hps_status rc = check_options(o, err);

	memset(s, 0, sizeof(*s));
	s->c = c;
	s->o = *o;
	s->err = err;
	s->job = s->line_head = s->line_tail = s->held_head = s->held_tail = NONE;
	s->free_piece = s->free_token = s->free_message = NONE;
	s->sigma = sqrt(log1p(o->jitter * o->jitter));
	if (!s->o.steps)
		s->o.steps = HPS_SIM_STEPS;
	if (!rc)
		rc = hps_schedule_check(c, sched, err);
	if (!rc)
		rc = measure(s, sched, err);
	if (rc)
		return rc;
	s->stage = hps_calloc(s->n_stages, sizeof(*s->stage), err);
	if (!s->stage)
		return HPS_MEMORY;
	rc = fill_stages(s, sched, err);
	if (!rc)
		rc = allocate(s, err);
	if (rc)
		return rc;
	fill_replicas(s);
	fill_shares(s);
	s->at_clock = s->stage[0].k;
	s->target = (uint64_t)s->n * s->o.steps;
	return HPS_OK;
}

void sim_release(struct sim *s)
{
	for (uint32_t i = 0; s->stage && i < s->n_stages; i++)
		queue_release(&s->stage[i].load);
	queue_release(&s->queue);
	free(s->stage);
	free(s->replica);
	free(s->share);
	free(s->carried);
	free(s->piece);
	free(s->token);
	free(s->path);
	free(s->message);
}

/* A lognormal factor of mean 1 from the unit's own counter (Box and Muller 1958). */
static double draw(const struct sim *s, uint32_t unit, uint64_t task)
{
	uint64_t h = hps_hash3(s->o.seed, unit, task);
	double u = ((double)(h >> 11) + 0.5) * 0x1p-53;
	double w = (double)(hps_mix64(h) >> 11) * 0x1p-53;
	double z = sqrt(-2 * log(u)) * cos(2 * M_PI * w);

	return exp(s->sigma * z - s->sigma * s->sigma / 2);
}

double sim_noise(struct sim *s, struct replica *r)
{
	const struct stage *st = &s->stage[r->stage];
	double most = 0;

	if (s->sigma <= 0)
		return r->slow;
	r->tasks++;
	for (uint32_t u = 0; u < st->units; u++)
		most = fmax(most, draw(s, st->unit0 + r->number * st->units + u, r->tasks));
	return most * r->slow;
}

/* --- memory that grows while it runs --- */

enum { FIRST_ROOM = 256 };

/* A number out of the free list, or a new one; room is doubled. */
static bool grow(struct sim *s, void **array, uint32_t *n, size_t size, uint32_t *to)
{
	*to = *n ? 2 * *n : FIRST_ROOM;
	if (!s->rc && *n > 16u * HPS_SIM_MOST_TOKENS)
		s->rc = hps_err_set(s->err, HPS_MEMORY, "simulation: too much is in flight");
	if (!s->rc)
		s->rc = hps_realloc(array, *to, size, s->err);
	return !s->rc;
}

uint32_t sim_new_piece(struct sim *s)
{
	void *array = s->piece;
	uint32_t p = s->free_piece, to;

	if (p == NONE) {
		if (!grow(s, &array, &s->n_piece, sizeof(*s->piece), &to))
			return NONE;
		s->piece = array;
		for (p = s->n_piece; p < to; p++)
			s->piece[p].next = p + 1 < to ? p + 1 : NONE;
		p = s->n_piece;
		s->n_piece = to;
	}
	s->free_piece = s->piece[p].next;
	return p;
}

uint32_t sim_new_token(struct sim *s)
{
	void *array = s->token, *path = s->path;
	uint32_t t = s->free_token, to;

	if (t == NONE) {
		if (!grow(s, &array, &s->n_token, sizeof(*s->token), &to))
			return NONE;
		s->token = array;
		s->rc = hps_realloc(&path, (size_t)to * s->n_stages, sizeof(*s->path), s->err);
		if (s->rc)
			return NONE;
		s->path = path;
		for (t = s->n_token; t < to; t++)
			s->token[t].next = t + 1 < to ? t + 1 : NONE;
		t = s->n_token;
		s->n_token = to;
	}
	s->free_token = s->token[t].next;
	return t;
}

void sim_free_token(struct sim *s, uint32_t t)
{
	s->token[t].next = s->free_token;
	s->free_token = t;
}

uint32_t sim_new_message(struct sim *s)
{
	void *array = s->message;
	uint32_t m = s->free_message, to;

	if (m == NONE) {
		if (!grow(s, &array, &s->n_message, sizeof(*s->message), &to))
			return NONE;
		s->message = array;
		s->rc = queue_grow(&s->queue, id_of_message(s, to), s->err);
		if (s->rc)
			return NONE;
		for (m = s->n_message; m < to; m++)
			s->message[m].next = m + 1 < to ? m + 1 : NONE;
		m = s->n_message;
		s->n_message = to;
	}
	s->free_message = s->message[m].next;
	return m;
}

void sim_free_message(struct sim *s, uint32_t m)
{
	s->message[m].next = s->free_message;
	s->free_message = m;
}
