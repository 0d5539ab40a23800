/* What do the shards do, and which version do they answer with? One queue stands for all shards,
 * as keys and dense bytes are spread over them evenly. In bsp rows of step t+1 are held back until
 * all pushes of step t are in, dense parameters until all of the stage's are. */
#include <math.h>
#include "sim/sim_int.h"

static void append(struct sim *s, uint32_t *head, uint32_t *tail, uint32_t m)
{
	s->message[m].next = NONE;
	if (*head == NONE)
		*head = m;
	else
		s->message[*tail].next = m;
	*tail = m;
}

/* Seconds of a shard for its part. */
static double service(const struct sim *s, const struct message *x)
{
	const struct stage *st = &s->stage[x->stage];

	if (!s->shards)
		return 0;
	if (x->kind == MESSAGE_PULL || x->kind == MESSAGE_PUSH)
		return st->rows / (s->c->ps.rows_per_s * s->shards);
	return s->paper ? 0 : st->dense / (s->c->ps.bytes_per_s * s->shards);
}

static void complete(struct sim *s);

/* Begin what is next in line; what takes no time is done at once. */
static void serve(struct sim *s)
{
	while (s->job == NONE && s->line_head != NONE && !s->rc) {
		uint32_t m = s->line_head;
		double work = service(s, &s->message[m]);

		s->line_head = s->message[m].next;
		s->job = m;
		s->job_begin = s->now;
		if (work <= 0)
			complete(s);
		else if (s->pool != NONE)
			share_add(s, s->pool, work, s->shards, OWNER_SHARD, 0);
		else
			queue_set(&s->queue, id_of_shard(s), s->now + work);
	}
}

static void line_up(struct sim *s, uint32_t m)
{
	append(s, &s->line_head, &s->line_tail, m);
}

void shard_take(struct sim *s, uint32_t m)
{
	const struct message *x = &s->message[m];

	if (x->kind == MESSAGE_PULL && sim_bsp(s) && x->step > s->row_version)
		append(s, &s->held_head, &s->held_tail, m);
	else
		line_up(s, m);
	serve(s);
}

/* Those of the version that is there now; a pull of the step after it may have come early. */
static void release_held(struct sim *s)
{
	uint32_t m = s->held_head;

	s->held_head = s->held_tail = NONE;
	while (m != NONE) {
		uint32_t next = s->message[m].next;

		if (s->message[m].step > s->row_version)
			append(s, &s->held_head, &s->held_tail, m);
		else
			line_up(s, m);
		m = next;
	}
}

static void rows_pushed(struct sim *s)
{
	if (!sim_bsp(s) || ++s->row_pushes < s->row_pushes_of_step)
		return;
	s->row_pushes = 0;
	s->row_version++;
	release_held(s);
}

/* The answer to a dense push: to its sender, or in bsp to all once all have pushed. */
static void dense_pushed(struct sim *s, uint32_t replica)
{
	struct stage *st = &s->stage[s->replica[replica].stage];
	uint32_t from = replica, n = 1;

	if (s->paper) {
		replica_version(s, replica);
		return;
	}
	if (sim_bsp(s)) {
		if (++st->pushed < st->k)
			return;
		st->pushed = 0;
		from = st->replica0;
		n = st->k;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t m = message_new(s, MESSAGE_WEIGHTS, from + i, NONE);

		if (m == NONE)
			return;
		line_up(s, m);
	}
}

static void tell(const struct sim *s, const struct message *x)
{
	enum hps_sim_kind kind = x->kind == MESSAGE_PULL   ? HPS_SIM_SERVE_PULL
				 : x->kind == MESSAGE_PUSH ? HPS_SIM_SERVE_PUSH
							   : HPS_SIM_SERVE_DENSE;

	if (s->o.event && s->now > s->job_begin)
		sim_tell(s, kind, s->job_begin, x->replica, x->step,
			 x->token != NONE ? s->token[x->token].micro : NONE, 0);
}

static void complete(struct sim *s)
{
	uint32_t m = s->job;
	struct message x = s->message[m];
	const struct stage *st = &s->stage[x.stage];

	s->job = NONE;
	s->shard_busy += s->now - s->job_begin;
	tell(s, &x);
	switch (x.kind) {
	case MESSAGE_PULL:
		s->message[m].back = true;
		s->replica[x.replica].n_pull--;
		s->replica[x.replica].n_transit++;
		replica_look(s, x.replica);
		message_send(s, m, NONE, x.replica, st->row_bytes, st->latency);
		break;
	case MESSAGE_WEIGHTS:
		message_send(s, m, NONE, x.replica, st->dense, st->latency);
		break;
	case MESSAGE_PUSH:
		sim_free_message(s, m);
		rows_pushed(s);
		break;
	default:
		sim_free_message(s, m);
		dense_pushed(s, x.replica);
		break;
	}
}

void shard_done(struct sim *s)
{
	complete(s);
	serve(s);
}

static void dense_send(struct sim *s, uint32_t replica)
{
	const struct stage *st = &s->stage[s->replica[replica].stage];
	uint32_t m = message_new(s, MESSAGE_DENSE, replica, NONE);

	/* The paper's form counts both ways on the unit's link, and no servers. */
	if (m != NONE)
		message_send(s, m, replica, NONE, s->paper ? 2 * st->dense : st->dense,
			     s->paper ? 0 : st->latency);
}

static void ring_send(struct sim *s, uint32_t replica)
{
	const struct stage *st = &s->stage[s->replica[replica].stage];
	uint32_t m = message_new(s, MESSAGE_RING, replica, NONE);
	double k = st->k;

	double latency = st->dense > 0 ? 2 * (k - 1) * st->ring_latency : 0;

	if (m != NONE)
		message_send(s, m, replica, replica, 2 * st->dense * (k - 1) / k, latency);
}

/* bsp: a replica is ready; with the first, those that have no micro-batch are too. */
void dense_begin(struct sim *s, uint32_t replica)
{
	struct stage *st = &s->stage[s->replica[replica].stage];

	if (!sim_bsp(s)) {
		if (st->ring)
			ring_send(s, replica);
		else
			dense_send(s, replica);
		return;
	}
	st->ready++;
	if (st->ring && st->ready == st->active) {
		st->ring_left = st->k;
		for (uint32_t k = 0; k < st->k; k++)
			ring_send(s, st->replica0 + k);
	}
	if (!st->ring) {
		dense_send(s, replica);
		for (uint32_t k = st->active; st->ready == 1 && k < st->k; k++)
			dense_send(s, st->replica0 + k);
	}
	if (st->ready == st->active)
		st->ready = 0;
}
