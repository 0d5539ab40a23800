/* What does evolution find? A population of structures; each generation as many children as there
 * are members, by crossover of two parents (tournaments of three) at stage boundaries and by
 * mutation (moves.h); the best of both, all different, are the next (elitism: mu + lambda).
 * A population that has found nothing better for a while is replaced, every other time with the
 * best ever among it. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/rivals.h"

enum { LEAST = 8, MOST = 64, TOURNAMENT = 3, PATIENCE = 20, TRIES = 8 };

struct member {
	struct hps_span *stage; /* n_layers */
	uint32_t n;
	uint64_t hash;
	struct hps_trial trial;
};

struct genetic {
	struct hps_search *search;
	struct hps_rng rng;
	uint32_t size;		/* of the population */
	uint32_t n;		/* members and children there are now, at most 2 * size */
	struct member *member;	/* 2 * size */
	struct hps_span *spare; /* n_layers: between crossover and mutation */
	struct hps_span *block; /* owns all stages */
};

static bool there_is(const struct genetic *g, uint64_t hash)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (g->member[i].hash == hash)
			return true;
	return false;
}

/* Score the structure in member[n] and count it in. */
static enum hps_status add(struct genetic *g, uint32_t n_stages, struct hps_err *err)
{
	struct member *m = &g->member[g->n];
	enum hps_status rc;

	m->n = n_stages;
	rc = hps_search_try(g->search, m->stage, &m->n, &m->trial, err);
	if (rc)
		return rc;
	m->hash = hps_structure_hash(m->stage, m->n);
	if (!there_is(g, m->hash))
		g->n++;
	return HPS_OK;
}

/* Best first; what came first wins ties, so the order is one. */
static void sort(struct genetic *g)
{
	for (uint32_t i = 1; i < g->n; i++) {
		struct member m = g->member[i];
		uint32_t j = i;

		for (; j && hps_trial_better(&m.trial, &g->member[j - 1].trial); j--)
			g->member[j] = g->member[j - 1];
		g->member[j] = m;
	}
}

/* Single types, as many as make up a quarter, then chance. */
static enum hps_status populate(struct genetic *g, bool with_best, struct hps_err *err)
{
	const struct hps_problem *p = g->search->problem;
	bool first = !g->search->evaluations;
	enum hps_status rc = HPS_OK;
	uint32_t t = 0;

	g->n = 0;
	if (with_best) {
		struct member *m = &g->member[g->n++];

		m->n = g->search->n_best;
		memcpy(m->stage, g->search->best, m->n * sizeof(*m->stage));
		m->trial = g->search->best_trial;
		m->hash = hps_structure_hash(m->stage, m->n);
	}
	for (uint32_t i = 0; !rc && i < 2 * g->size && g->n < g->size; i++) {
		struct hps_span *stage = g->member[g->n].stage;

		if (!hps_rival_more(g->search))
			break;
		if (first && t < p->cost->n_types && t < g->size / 4) {
			*stage = (struct hps_span){ 0, p->cost->n_layers - 1, t++, 0 };
			rc = add(g, 1, err);
		} else {
			rc = add(g, hps_structure_random(p, &g->rng, stage), err);
		}
	}
	sort(g);
	return rc;
}

/* The best of a few members drawn at random: as they are sorted, the first. */
static const struct member *tournament(struct genetic *g, uint32_t size)
{
	uint64_t best = hps_rng_below(&g->rng, size);

	for (int i = 1; i < TOURNAMENT; i++) {
		uint64_t other = hps_rng_below(&g->rng, size);

		best = other < best ? other : best;
	}
	return &g->member[best];
}

/* Append layers from .. to-1 as they are staged in m. */
static uint32_t append(const struct member *m, uint32_t from, uint32_t to, struct hps_span *out,
		       uint32_t n)
{
	for (uint32_t i = 0; from < to && i < m->n; i++) {
		struct hps_span s = m->stage[i];

		if (s.last < from || s.first >= to)
			continue;
		s.first = s.first < from ? from : s.first;
		s.last = s.last >= to ? to - 1 : s.last;
		out[n++] = s;
	}
	return n;
}

/* A cut of either parent, or an end of the model. */
static uint32_t boundary(struct genetic *g, const struct member *a, const struct member *b)
{
	uint64_t i = hps_rng_below(&g->rng, (uint64_t)a->n + b->n);

	if (i < a->n)
		return a->stage[i].first;
	i -= a->n;
	return i ? b->stage[i].first : g->search->problem->cost->n_layers;
}

/* a, but with what lies between two boundaries from b. */
static uint32_t cross(struct genetic *g, const struct member *a, const struct member *b,
		      struct hps_span *out)
{
	uint32_t x = boundary(g, a, b), y = boundary(g, a, b), n;
	uint32_t low = x < y ? x : y, high = x < y ? y : x;

	n = append(a, 0, low, out, 0);
	n = append(b, low, high, out, n);
	return append(a, high, g->search->problem->cost->n_layers, out, n);
}

/* A child of the first `size` members into stage: crossed, and mutated with even chance, and in any
 * case while it is nothing new. */
static uint32_t breed(struct genetic *g, uint32_t size, struct hps_span *stage)
{
	const struct hps_problem *p = g->search->problem;
	const struct member *a = tournament(g, size), *b = tournament(g, size);
	uint32_t n = cross(g, a, b, stage);

	for (int i = 0; i < TRIES; i++) {
		if (hps_rng_below(&g->rng, 2) && !there_is(g, hps_structure_hash(stage, n)))
			break;
		memcpy(g->spare, stage, n * sizeof(*stage));
		n = hps_moves_random(p, &g->rng, g->spare, n, stage);
	}
	return n;
}

static enum hps_status generation(struct genetic *g, bool *better, struct hps_err *err)
{
	struct hps_trial best = g->member[0].trial;
	uint32_t size = g->n;
	enum hps_status rc = HPS_OK;

	for (uint32_t i = 0; !rc && i < g->size && hps_search_more(g->search); i++)
		rc = add(g, breed(g, size, g->member[g->n].stage), err);
	sort(g);
	if (g->n > g->size)
		g->n = g->size;
	*better = hps_trial_better(&g->member[0].trial, &best);
	return rc;
}

static enum hps_status evolve(struct genetic *g, struct hps_err *err)
{
	enum hps_status rc = HPS_OK;

	for (uint32_t run = 0; !rc && hps_rival_more(g->search); run++) {
		rc = populate(g, run && run % 2 == 0, err);
		for (int idle = 0; !rc && idle < PATIENCE && hps_search_more(g->search); idle++) {
			bool better;

			rc = generation(g, &better, err);
			if (better)
				idle = -1;
		}
	}
	return rc;
}

/* Small budgets are for small populations: about 3 sqrt(evaluations) / 8 members. */
static uint32_t size_of(const struct hps_search *s)
{
	uint32_t size = LEAST;

	if (!s->max_evaluations)
		return MOST;
	while (size < MOST && (uint64_t)size * size * 64 / 9 < s->max_evaluations)
		size++;
	return size;
}

enum hps_status hps_plan_genetic(const struct hps_problem *p, const char *arg,
				 struct hps_solution *out, struct hps_err *err)
{
	size_t L = p->cost->n_layers;
	struct hps_search s;
	struct genetic g = { .search = &s };
	enum hps_status rc;

	(void)arg;
	memset(out, 0, sizeof(*out));
	rc = hps_rival_start(&s, p, &g.rng, err);
	if (rc)
		return rc;
	g.size = size_of(&s);
	/* A child that is no member is scored all the same: one place more. */
	g.member = hps_calloc(2 * (size_t)g.size + 1, sizeof(*g.member), err);
	g.block = hps_calloc((2 * (size_t)g.size + 2) * L, sizeof(*g.block), err);
	rc = HPS_MEMORY;
	if (g.member && g.block) {
		for (uint32_t i = 0; i <= 2 * g.size; i++)
			g.member[i].stage = g.block + i * L;
		g.spare = g.block + (2 * (size_t)g.size + 1) * L;
		rc = evolve(&g, err);
	}
	free(g.member);
	free(g.block);
	return hps_rival_end(&s, rc, out, err);
}
