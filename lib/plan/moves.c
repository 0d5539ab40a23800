/* Which structures lie next to a structure, and how is one drawn at random? */
#include "plan/moves.h"
#include <string.h>

static uint32_t length(const struct hps_span *s)
{
	return s->last - s->first + 1;
}

/* Places for the cut before stage i, i >= 1, besides its own. */
static uint32_t boundary_places(const struct hps_span *stage, uint32_t i)
{
	return length(&stage[i - 1]) + length(&stage[i]) - 2;
}

/* Ways to make stages i-1 and i one: on the type of either. */
static uint32_t merge_ways(const struct hps_span *stage, uint32_t i)
{
	return stage[i - 1].type == stage[i].type ? 1 : 2;
}

/* Ways to cut a stage at one place: the left part on another type, the right one, or (where
 * that is legal) neither. */
static uint32_t split_ways(const struct hps_problem *p)
{
	return 2 * (p->cost->n_types - 1) + !p->merge;
}

uint64_t hps_moves_count(const struct hps_problem *p, const struct hps_span *stage, uint32_t n,
			 enum hps_move kind)
{
	uint64_t others = p->cost->n_types - 1, L = p->cost->n_layers, sum = 0;

	switch (kind) {
	case HPS_MOVE_BOUNDARY:
		for (uint32_t i = 1; i < n; i++)
			sum += boundary_places(stage, i);
		return sum;
	case HPS_MOVE_TYPE:
		return n * others;
	case HPS_MOVE_MERGE:
		for (uint32_t i = 1; i < n; i++)
			sum += merge_ways(stage, i);
		return sum;
	case HPS_MOVE_SPLIT:
		return (uint64_t)(p->cost->n_layers - n) * split_ways(p);
	case HPS_MOVE_RUN:
		return L * (L + 1) / 2 * p->cost->n_types;
	case HPS_MOVE_SWAP:
		return (uint64_t)n * (n - 1) / 2;
	case HPS_MOVES:
		break;
	}
	return 0;
}

/* Type number i of those that are not `type`. */
static uint32_t other(uint32_t type, uint64_t i)
{
	return (uint32_t)i + (i >= type);
}

static void move_boundary(const struct hps_span *stage, uint64_t i, struct hps_span *out)
{
	uint32_t at = 1, cut;

	for (; i >= boundary_places(stage, at); at++)
		i -= boundary_places(stage, at);
	cut = stage[at - 1].first + 1 + (uint32_t)i;
	cut += cut >= stage[at].first;
	out[at - 1].last = cut - 1;
	out[at].first = cut;
}

static uint32_t merge(const struct hps_span *stage, uint32_t n, uint64_t i, struct hps_span *out)
{
	uint32_t at = 1;

	for (; i >= merge_ways(stage, at); at++)
		i -= merge_ways(stage, at);
	out[at - 1].last = stage[at].last;
	out[at - 1].type = stage[at - 1 + i].type;
	memcpy(out + at, stage + at + 1, (n - at - 1) * sizeof(*out));
	return n - 1;
}

/* Room for `by` stages more after stage `at`. */
static uint32_t make_room(const struct hps_span *stage, uint32_t n, uint32_t at, uint32_t by,
			  struct hps_span *out)
{
	memcpy(out + at + 1 + by, stage + at + 1, (n - at - 1) * sizeof(*out));
	return n + by;
}

static uint32_t split(const struct hps_problem *p, const struct hps_span *stage, uint32_t n,
		      uint64_t i, struct hps_span *out)
{
	uint32_t others = p->cost->n_types - 1, ways = split_ways(p), way = (uint32_t)(i % ways);
	uint32_t at = 0, left, right, cut;
	uint64_t place = i / ways;

	for (; place >= length(&stage[at]) - 1; at++)
		place -= length(&stage[at]) - 1;
	left = right = stage[at].type;
	if (way < others)
		left = other(left, way);
	else if (way < 2 * others)
		right = other(right, way - others);
	cut = stage[at].first + 1 + (uint32_t)place;
	n = make_room(stage, n, at, 1, out);
	out[at] = (struct hps_span){ stage[at].first, cut - 1, left, 0 };
	out[at + 1] = (struct hps_span){ cut, stage[at].last, right, 0 };
	return n;
}

/* The pair (x, y), x <= y < n, number i of n (n + 1) / 2. */
static void pair(uint64_t i, uint32_t n, uint32_t *x, uint32_t *y)
{
	for (*x = 0; i >= n - *x; ++*x)
		i -= n - *x;
	*y = *x + (uint32_t)i;
}

static uint32_t run(const struct hps_problem *p, const struct hps_span *stage, uint32_t n,
		    uint64_t i, struct hps_span *out)
{
	struct hps_span mine = { .type = (uint32_t)(i % p->cost->n_types) };
	uint32_t m = 0;

	pair(i / p->cost->n_types, p->cost->n_layers, &mine.first, &mine.last);
	for (uint32_t s = 0; s < n && stage[s].first < mine.first; s++) {
		out[m] = stage[s];
		if (out[m].last >= mine.first)
			out[m].last = mine.first - 1;
		m++;
	}
	out[m++] = mine;
	for (uint32_t s = 0; s < n; s++) {
		if (stage[s].last <= mine.last)
			continue;
		out[m] = stage[s];
		if (out[m].first <= mine.last)
			out[m].first = mine.last + 1;
		m++;
	}
	return m;
}

static void swap(uint32_t n, uint64_t i, struct hps_span *out)
{
	uint32_t x, y, type;

	pair(i, n - 1, &x, &y);
	type = out[x].type;
	out[x].type = out[y + 1].type;
	out[y + 1].type = type;
}

uint32_t hps_moves_make(const struct hps_problem *p, const struct hps_span *stage, uint32_t n,
			enum hps_move kind, uint64_t i, struct hps_span *out)
{
	uint32_t others = p->cost->n_types - 1;

	memcpy(out, stage, n * sizeof(*out));
	switch (kind) {
	case HPS_MOVE_BOUNDARY:
		move_boundary(stage, i, out);
		break;
	case HPS_MOVE_TYPE:
		out[i / others].type = other(stage[i / others].type, i % others);
		break;
	case HPS_MOVE_MERGE:
		n = merge(stage, n, i, out);
		break;
	case HPS_MOVE_SPLIT:
		n = split(p, stage, n, i, out);
		break;
	case HPS_MOVE_RUN:
		n = run(p, stage, n, i, out);
		break;
	case HPS_MOVE_SWAP:
		swap(n, i, out);
		break;
	case HPS_MOVES:
		break;
	}
	for (uint32_t s = 0; s < n; s++)
		out[s].units = 0;
	return n;
}

uint32_t hps_moves_random(const struct hps_problem *p, struct hps_rng *r,
			  const struct hps_span *stage, uint32_t n, struct hps_span *out)
{
	uint64_t count[HPS_MOVES], kinds = 0, pick;
	uint32_t kind = 0;

	for (uint32_t k = 0; k < HPS_MOVES; k++) {
		count[k] = hps_moves_count(p, stage, n, (enum hps_move)k);
		kinds += count[k] > 0;
	}
	if (!kinds)
		return hps_moves_make(p, stage, n, HPS_MOVES, 0, out);
	pick = hps_rng_below(r, kinds);
	for (; !count[kind] || pick; kind++)
		pick -= count[kind] > 0;
	return hps_moves_make(p, stage, n, (enum hps_move)kind, hps_rng_below(r, count[kind]), out);
}

uint32_t hps_structure_random(const struct hps_problem *p, struct hps_rng *r,
			      struct hps_span *stage)
{
	uint32_t L = p->cost->n_layers, T = p->cost->n_types;
	uint32_t stages = p->merge && T == 1 ? 1 : 1 + (uint32_t)hps_rng_below(r, L), n = 0;

	for (uint32_t l = 0; l < L; l++) {
		/* stages - n cuts are still to be drawn from L - l places; 0 is always one. */
		if (!l || hps_rng_below(r, L - l) < stages - n) {
			uint32_t t;

			if (l && p->merge)
				t = other(stage[n - 1].type, hps_rng_below(r, T - 1));
			else
				t = (uint32_t)hps_rng_below(r, T);
			stage[n++] = (struct hps_span){ .first = l, .type = t };
		}
		stage[n - 1].last = l;
	}
	return n;
}

uint64_t hps_structure_hash(const struct hps_span *stage, uint32_t n)
{
	uint64_t h = n;

	for (uint32_t i = 0; i < n; i++)
		h = hps_hash3(h, stage[i].first, stage[i].type);
	return h;
}
