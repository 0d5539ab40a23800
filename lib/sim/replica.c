/* What does a replica do next, and if nothing, what does it wait for? Backward before forward, in
 * order; steps and chunks; the account of its time. */
#include <math.h>
#include "sim/sim_int.h"

/* --- lists: ascending by order, mostly appended --- */

static void list_add(struct sim *s, struct list *l, uint32_t t)
{
	uint32_t at = l->tail, next;

	while (at != NONE && s->token[at].order > s->token[t].order)
		at = s->token[at].prev;
	next = at == NONE ? l->head : s->token[at].next;
	s->token[t].prev = at;
	s->token[t].next = next;
	*(at == NONE ? &l->head : &s->token[at].next) = t;
	*(next == NONE ? &l->tail : &s->token[next].prev) = t;
}

static void list_pop(struct sim *s, struct list *l)
{
	l->head = s->token[l->head].next;
	*(l->head == NONE ? &l->tail : &s->token[l->head].prev) = NONE;
}

/* --- time --- */

void replica_account(struct sim *s, struct replica *r, enum hps_sim_where next)
{
	double t = s->now - r->since;

	s->stage[r->stage].where[r->where] += t;
	if (r->where == HPS_SIM_COMPUTE)
		r->busy += t;
	r->since = s->now;
	r->where = next;
}

static enum hps_sim_where why_idle(const struct sim *s, const struct replica *r)
{
	uint32_t f = r->list[FORWARD].head;

	if (r->owing || (f != NONE && sim_bsp(s) && s->token[f].step > r->version))
		return HPS_SIM_SYNC;
	if (r->n_pull)
		return HPS_SIM_SHARD;
	if (r->n_transit)
		return HPS_SIM_LINK;
	return r->n_away ? HPS_SIM_BUBBLE : HPS_SIM_INPUT;
}

/* --- tasks --- */

/* Those without overlap compute nothing while their link is in use. */
static bool link_rests(const struct sim *s, uint32_t r)
{
	return !s->c->opt.serial || (s->share[link_of(s, r, false)].jobs <= 0 &&
				     s->share[link_of(s, r, true)].jobs <= 0);
}

static bool backward_due(const struct sim *s, const struct replica *r)
{
	uint32_t t = r->list[BACKWARD].head;

	if (t == NONE || !sim_bsp(s))
		return t != NONE;
	return s->token[t].order ==
	       r->cur * s->n + r->number + (uint64_t)r->done * s->stage[r->stage].k;
}

static uint32_t credit(const struct sim *s, uint32_t stage)
{
	return s->o.credit ? s->o.credit : hps_stage_credit(s->n_stages, stage);
}

static bool forward_due(const struct sim *s, const struct replica *r)
{
	uint32_t t = r->list[FORWARD].head;

	if (t == NONE)
		return false;
	if (sim_bsp(s))
		return s->token[t].step <= r->version;
	return s->paper || r->stage + 1 == s->n_stages ||
	       r->n_away < (uint64_t)credit(s, r->stage) * s->stage[r->stage + 1].k;
}

static void begin(struct sim *s, uint32_t r, enum task task, double work)
{
	struct replica *x = &s->replica[r];

	x->task = task;
	x->begin = s->now;
	x->work = work;
	if (s->stage[x->stage].pooled && task != TASK_OVERHEAD)
		share_add(s, s->pool, work, 1, OWNER_REPLICA, r);
	else
		queue_set(&s->queue, id_of_replica(s, r), s->now + work);
}

void replica_look(struct sim *s, uint32_t r)
{
	struct replica *x = &s->replica[r];
	const struct stage *st = &s->stage[x->stage];
	enum list_kind kind = BACKWARD;

	if (x->task != TASK_NONE)
		return;
	if (x->owing || !link_rests(s, r) || (!backward_due(s, x) && !forward_due(s, x))) {
		replica_account(s, x, why_idle(s, x));
		return;
	}
	if (!backward_due(s, x))
		kind = FORWARD;
	x->token = x->list[kind].head;
	list_pop(s, &x->list[kind]);
	replica_account(s, x, HPS_SIM_COMPUTE);
	begin(s, r, kind == BACKWARD ? TASK_BACKWARD : TASK_FORWARD,
	      (kind == BACKWARD ? st->backward_s : st->forward_s) * sim_noise(s, x));
}

void replica_ready(struct sim *s, uint32_t r, uint32_t token, enum list_kind kind)
{
	list_add(s, &s->replica[r].list[kind], token);
	replica_look(s, r);
}

/* --- micro-batches come and go --- */

void replica_take(struct sim *s, uint32_t r, uint32_t token)
{
	struct replica *x = &s->replica[r];
	const struct stage *st = &s->stage[x->stage];
	uint32_t m;

	if (st->rows <= 0 && st->row_bytes <= 0) {
		replica_ready(s, r, token, FORWARD);
		return;
	}
	x->n_pull++;
	replica_look(s, r);
	m = message_new(s, MESSAGE_PULL, r, token);
	if (m != NONE)
		message_send(s, m, r, NONE, 0, st->latency);
}

static bool may_begin(const struct sim *s, const struct replica *x)
{
	uint64_t step = x->born / s->own;

	if (x->in_flight >= s->in_flight || x->reading != NONE)
		return false;
	if (sim_bsp(s))
		return step <= x->cur + 1;
	return s->paper || s->o.mode == HPS_SIM_ASP || step <= s->clock + s->o.bound;
}

void replica_read(struct sim *s, uint32_t r)
{
	uint32_t token = s->replica[r].reading;

	s->replica[r].reading = NONE;
	replica_take(s, r, token);
	replica_feed(s, r);
}

void replica_feed(struct sim *s, uint32_t r)
{
	struct replica *x = &s->replica[r];

	while (!s->rc && may_begin(s, x)) {
		uint32_t t = sim_new_token(s);

		if (t == NONE)
			return;
		s->token[t].step = x->born / s->own;
		s->token[t].micro = (uint32_t)(x->born % s->own * s->stage[0].k + x->number);
		s->token[t].order =
			sim_bsp(s) ? s->token[t].step * s->n + s->token[t].micro : s->births;
		s->path[(uint64_t)t * s->n_stages] = r;
		x->born++;
		s->births++;
		x->in_flight++;
		if (s->input > 0) {
			x->reading = t;
			share_add(s, s->pool, s->input, 1, OWNER_READER, r);
		} else {
			replica_take(s, r, t);
		}
	}
}

/* On to the next stage: replica g mod k, or who has least in hand. */
static void send_on(struct sim *s, struct replica *x, uint32_t r, uint32_t token)
{
	struct stage *next = &s->stage[x->stage + 1];
	uint32_t k = s->token[token].micro % next->k, to, m;

	if (!sim_bsp(s)) {
		k = queue_top(&next->load);
		queue_set(&next->load, k, next->load.time[k] + 1);
	}
	to = next->replica0 + k;
	s->path[(uint64_t)token * s->n_stages + x->stage + 1] = to;
	x->n_away++;
	s->replica[to].n_transit++;
	replica_look(s, to);
	m = message_new(s, MESSAGE_ACTIVATIONS, to, token);
	if (m != NONE)
		message_send(s, m, r, to, s->stage[x->stage].up, next->hop);
}

/* A first-stage replica has done a chunk more: ssp may let others begin. */
static void turn_done(struct sim *s, struct replica *x)
{
	const struct stage *st = &s->stage[0];

	if (x->turn++ > s->clock || --s->at_clock)
		return;
	s->clock++;
	for (uint32_t k = 0; k < st->k; k++)
		s->at_clock += s->replica[k].turn == s->clock;
	for (uint32_t k = 0; s->o.mode == HPS_SIM_SSP && k < st->k; k++)
		replica_feed(s, k);
}

static void step_told(struct sim *s)
{
	double took = s->now - s->last_step;

	s->step_least = fmin(s->step_least, took);
	s->step_most = fmax(s->step_most, took);
	s->last_step = s->now;
}

/* Back at the first stage: it is done. */
static void finish(struct sim *s, struct replica *x, uint32_t token)
{
	sim_free_token(s, token);
	x->in_flight--;
	s->done++;
	if (s->done % s->n == 0)
		step_told(s);
}

static void send_back(struct sim *s, struct replica *x, uint32_t r, uint32_t token)
{
	struct stage *st = &s->stage[x->stage];
	uint32_t m;

	if (st->rows > 0 || st->row_bytes > 0) {
		m = message_new(s, MESSAGE_PUSH, r, token);
		if (m == NONE)
			return;
		s->message[m].token = NONE; /* it may be gone when the push arrives */
		message_send(s, m, r, NONE, st->row_bytes, st->latency);
	}
	if (!x->stage) {
		finish(s, x, token);
		return;
	}
	if (!sim_bsp(s))
		queue_set(&st->load, x->number, st->load.time[x->number] - 1);
	m = message_new(s, MESSAGE_GRADIENTS, r, token);
	if (m != NONE)
		message_send(s, m, r, replica_of(s, token, x->stage - 1), st->down, st->hop);
}

/* --- ends of steps --- */

/* Micro-batches of a step on this replica; since the last push. */
static uint32_t of_step(const struct sim *s, const struct replica *x)
{
	const struct stage *st = &s->stage[x->stage];

	return sim_bsp(s) ? (s->n - x->number + st->k - 1) / st->k : st->period;
}

/* Dense pushes of a replica at once: the executor has one; the paper's form overlaps all. */
static uint32_t most_syncing(const struct sim *s)
{
	return s->paper ? s->n : 1;
}

static void synchronise(struct sim *s, uint32_t r)
{
	struct replica *x = &s->replica[r];
	const struct stage *st = &s->stage[x->stage];

	x->cur++;
	if (sim_bsp(s)) {
		if ((st->dense > 0 || st->active > 1) && x->cur % st->period == 0)
			dense_begin(s, r);
		else
			x->version = x->cur;
	} else if (st->dense > 0 && x->syncing == most_syncing(s)) {
		x->owing = true;
	} else if (st->dense > 0) {
		x->syncing++;
		dense_begin(s, r);
	}
}

void replica_version(struct sim *s, uint32_t r)
{
	struct replica *x = &s->replica[r];

	x->version = x->cur;
	if (x->owing) {
		x->owing = false;
		dense_begin(s, r);
	} else if (x->syncing) {
		x->syncing--;
	}
	replica_look(s, r);
}

static void step_done(struct sim *s, uint32_t r)
{
	struct replica *x = &s->replica[r];

	x->done = 0;
	if (s->overhead > 0) {
		replica_account(s, x, HPS_SIM_STEP);
		begin(s, r, TASK_OVERHEAD, s->overhead);
	} else {
		synchronise(s, r);
	}
}

static void told_task(const struct sim *s, uint32_t r, enum task task, uint32_t token)
{
	const struct replica *x = &s->replica[r];

	if (!s->o.event)
		return;
	if (task == TASK_OVERHEAD)
		sim_tell(s, HPS_SIM_OVERHEAD, x->begin, r, x->cur, NONE, 0);
	else
		sim_tell(s, task == TASK_FORWARD ? HPS_SIM_FORWARD : HPS_SIM_BACKWARD, x->begin, r,
			 s->token[token].step, s->token[token].micro, 0);
}

/* The part of the time that sharing cores has added; of a task that began before the window, as
 * much as lies in it. */
static void charge_cores(struct sim *s, struct replica *x)
{
	double longer = s->now - x->begin - x->work;

	if (!s->stage[x->stage].pooled || longer <= 0)
		return;
	if (x->begin < s->window_begin)
		longer *= (s->now - s->window_begin) / (s->now - x->begin);
	s->stage[x->stage].where[HPS_SIM_CORES] += longer;
	s->stage[x->stage].where[HPS_SIM_COMPUTE] -= longer;
	x->busy -= longer;
}

void replica_finished(struct sim *s, uint32_t r)
{
	struct replica *x = &s->replica[r];
	enum task task = x->task;
	uint32_t token = x->token;
	bool turn = false;

	told_task(s, r, task, token);
	x->task = TASK_NONE;
	replica_account(s, x, HPS_SIM_INPUT);
	if (task == TASK_OVERHEAD) {
		synchronise(s, r);
	} else {
		charge_cores(s, x);
		if (task == TASK_FORWARD && x->stage + 1 < s->n_stages) {
			send_on(s, x, r, token);
		} else if (task == TASK_FORWARD) {
			list_add(s, &x->list[BACKWARD], token);
		} else {
			send_back(s, x, r, token);
			turn = !x->stage && (x->born - x->in_flight) % s->own == 0;
			if (++x->done == of_step(s, x))
				step_done(s, r);
		}
	}
	replica_look(s, r);
	if (!x->stage)
		replica_feed(s, r);
	if (turn) /* last, as it may begin a task here */
		turn_done(s, x);
}
