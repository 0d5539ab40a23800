/* What is on the links, and what happens where it arrives? A message is a piece of work for the
 * links of both ends and, in a cluster of one host, for the cores; it has passed when all are
 * through, and is there a latency later. */
#include <math.h>
#include "sim/sim_int.h"

uint32_t message_new(struct sim *s, enum message_kind kind, uint32_t replica, uint32_t token)
{
	const struct replica *r = &s->replica[replica];
	uint32_t m = sim_new_message(s);
	struct message *x;

	if (m == NONE)
		return NONE;
	x = &s->message[m];
	*x = (struct message){ .kind = kind,
			       .stage = r->stage,
			       .replica = replica,
			       .token = token,
			       .step = token != NONE ? s->token[token].step : r->cur - (r->cur > 0),
			       .next = NONE };
	return m;
}

/* One end's part: its units, or the shards, share the bytes; a paper stage's dense parameters go
 * to every unit. */
static void pass_end(struct sim *s, uint32_t m, uint32_t replica, bool in, double bytes)
{
	uint32_t link = link_of(s, replica, in);
	double among = replica == NONE ? s->shards : s->stage[s->replica[replica].stage].units;

	if (s->paper && s->message[m].kind == MESSAGE_DENSE)
		among = 1;
	if (isinf(s->share[link].capacity))
		return;
	s->message[m].pieces++;
	share_add(s, link, bytes / among, 1, OWNER_MESSAGE, m);
}

static double end_bandwidth(const struct sim *s, uint32_t replica)
{
	return s->share[link_of(s, replica, false)].capacity;
}

void message_send(struct sim *s, uint32_t m, uint32_t from, uint32_t to, double bytes, double delay)
{
	struct message *x = &s->message[m];
	/* Shards that are not there have no link; the paper's dense parameters pass none. */
	bool lone = !s->shards || (s->paper && x->kind == MESSAGE_DENSE);
	double bandwidth = INFINITY;

	x->begin = s->now;
	x->bytes = bytes;
	x->delay = delay;
	x->pieces = 0;
	if (bytes > 0) {
		if (from != NONE || !lone)
			pass_end(s, m, from, false, bytes);
		if ((to != NONE || !lone) && x->kind != MESSAGE_RING)
			pass_end(s, m, to, true, bytes);
		bandwidth = fmin(end_bandwidth(s, from), end_bandwidth(s, to));
		if (s->loopback && s->stage[x->stage].pooled && !isinf(bandwidth)) {
			s->message[m].pieces++;
			share_add(s, s->pool, bytes / bandwidth, 1, OWNER_MESSAGE, m);
		}
	}
	if (!s->message[m].pieces && !s->rc)
		queue_set(&s->queue, id_of_message(s, m), s->now + delay);
}

void message_passed(struct sim *s, uint32_t m)
{
	struct message *x = &s->message[m];

	if (--x->pieces)
		return;
	if (x->delay > 0)
		queue_set(&s->queue, id_of_message(s, m), s->now + x->delay);
	else
		message_came(s, m);
}

static void tell(const struct sim *s, const struct message *x)
{
	static const enum hps_sim_kind kinds[] = {
		[MESSAGE_ACTIVATIONS] = HPS_SIM_ACTIVATIONS,
		[MESSAGE_GRADIENTS] = HPS_SIM_GRADIENTS,
		[MESSAGE_PULL] = HPS_SIM_PULL,
		[MESSAGE_PUSH] = HPS_SIM_PUSH,
		[MESSAGE_DENSE] = HPS_SIM_DENSE_PUSH,
		[MESSAGE_WEIGHTS] = HPS_SIM_DENSE_PULL,
		[MESSAGE_RING] = HPS_SIM_RING,
	};
	uint32_t from = x->replica;

	if (!s->o.event || x->bytes <= 0)
		return;
	/* Gradients are told of by the stage that sends them. */
	if (x->kind == MESSAGE_ACTIVATIONS)
		from = replica_of(s, x->token, x->stage - 1);
	sim_tell(s, kinds[x->kind], x->begin, from, x->step,
		 x->token != NONE ? s->token[x->token].micro : NONE, x->bytes);
}

/* Gradients are at the stage before the sender's. */
static void gradients_came(struct sim *s, uint32_t token, uint32_t stage)
{
	uint32_t r = replica_of(s, token, stage - 1);

	s->replica[r].n_away--;
	replica_ready(s, r, token, BACKWARD);
}

static void ring_came(struct sim *s, uint32_t replica)
{
	struct stage *st = &s->stage[s->replica[replica].stage];

	if (!sim_bsp(s)) {
		replica_version(s, replica);
		return;
	}
	if (--st->ring_left)
		return;
	for (uint32_t k = 0; k < st->active; k++)
		replica_version(s, st->replica0 + k);
}

void message_came(struct sim *s, uint32_t m)
{
	struct message x = s->message[m];

	tell(s, &x);
	switch (x.kind) {
	case MESSAGE_PULL:
		if (!x.back) {
			shard_take(s, m);
			return;
		}
		s->replica[x.replica].n_transit--;
		replica_ready(s, x.replica, x.token, FORWARD);
		break;
	case MESSAGE_PUSH:
	case MESSAGE_DENSE:
		shard_take(s, m);
		return;
	case MESSAGE_ACTIVATIONS:
		s->replica[x.replica].n_transit--;
		replica_take(s, x.replica, x.token);
		break;
	case MESSAGE_GRADIENTS:
		gradients_came(s, x.token, x.stage);
		break;
	case MESSAGE_WEIGHTS:
		replica_version(s, x.replica);
		break;
	case MESSAGE_RING:
		ring_came(s, x.replica);
		break;
	}
	sim_free_message(s, m);
}
