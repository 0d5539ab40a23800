/* Who of many jobs on one link, or one pool of cores, ends when? Processor sharing by virtual time
 * (as in fair queueing: Demers, Keshav, Shenker 1989); jobs in a pairing heap (Fredman, Sedgewick,
 * Sleator, Tarjan 1986). */
#include <math.h>
#include "sim/sim_int.h"

static double rate(const struct share *x)
{
	return fmin(x->most, x->capacity / x->jobs);
}

void share_advance(struct share *x, double now)
{
	if (x->jobs > 0) {
		double each = (now - x->at) * rate(x);

		x->v += each;
		x->carried += each * x->jobs;
	}
	x->at = now;
}

static uint32_t meld(struct piece *p, uint32_t a, uint32_t b)
{
	uint32_t other;

	if (a == NONE || b == NONE)
		return a == NONE ? b : a;
	if (p[b].target < p[a].target) {
		other = a;
		a = b;
	} else {
		other = b;
	}
	p[other].next = p[a].child;
	p[a].child = other;
	return a;
}

/* The heap that a node's children make: in pairs from the left, then from the right. */
static uint32_t meld_children(struct piece *p, uint32_t at)
{
	uint32_t pairs = NONE, root = NONE;

	while (at != NONE) {
		uint32_t a = at, b = p[a].next;

		at = b == NONE ? NONE : p[b].next;
		p[a].next = NONE;
		if (b != NONE)
			p[b].next = NONE;
		a = meld(p, a, b);
		p[a].next = pairs;
		pairs = a;
	}
	while (pairs != NONE) {
		uint32_t next = p[pairs].next;

		p[pairs].next = NONE;
		root = meld(p, root, pairs);
		pairs = next;
	}
	return root;
}

static void schedule(struct sim *s, uint32_t share)
{
	struct share *x = &s->share[share];

	if (x->root == NONE)
		queue_drop(&s->queue, share);
	else
		queue_set(&s->queue, share,
			  s->now + fmax(0, s->piece[x->root].target - x->v) / rate(x));
}

void share_add(struct sim *s, uint32_t share, double amount, uint32_t weight, enum owner owner,
	       uint32_t id)
{
	struct share *x = &s->share[share];
	uint32_t p = sim_new_piece(s);

	if (p == NONE)
		return;
	share_advance(x, s->now);
	s->piece[p] = (struct piece){ .target = x->v + amount,
				      .owner = owner,
				      .id = id,
				      .weight = weight,
				      .child = NONE,
				      .next = NONE };
	x->root = meld(s->piece, x->root, p);
	x->jobs += weight;
	schedule(s, share);
}

struct piece share_due(struct sim *s, uint32_t share)
{
	struct share *x = &s->share[share];
	uint32_t p = x->root;
	struct piece due = s->piece[p];

	share_advance(x, s->now);
	x->v = due.target; /* but for rounding it is there */
	x->root = meld_children(s->piece, due.child);
	x->jobs -= due.weight;
	if (x->root == NONE)
		x->v = x->jobs = 0;
	s->piece[p].next = s->free_piece;
	s->free_piece = p;
	schedule(s, share);
	return due;
}
