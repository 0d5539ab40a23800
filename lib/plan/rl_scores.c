/* Was this structure scored before, and which are the best so far? */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/plan_int.h"
#include "plan/rl_int.h"

struct hps_rl_entry {
	uint64_t hash; /* 0: free */
	struct hps_rl_cost cost;
};

/* 24 MiB at most. */
enum { FIRST_ROOM = 1 << 12, MOST_ROOM = 1 << 20 };

bool hps_rl_less(struct hps_rl_cost a, struct hps_rl_cost b)
{
	if (a.feasible != b.feasible)
		return a.feasible;
	return hps_lower(a.value, b.value);
}

enum hps_status hps_rl_scores_init(struct hps_rl_scores *s, struct hps_search *search,
				   struct hps_err *err)
{
	*s = (struct hps_rl_scores){ .search = search, .room = FIRST_ROOM };
	s->entry = hps_calloc(s->room, sizeof(*s->entry), err);
	return s->entry ? HPS_OK : HPS_MEMORY;
}

void hps_rl_scores_release(struct hps_rl_scores *s)
{
	free(s->entry);
	memset(s, 0, sizeof(*s));
}

/* Where the hash is, or would be. */
static struct hps_rl_entry *find(const struct hps_rl_scores *s, uint64_t hash)
{
	size_t i = hash & (s->room - 1);

	while (s->entry[i].hash && s->entry[i].hash != hash)
		i = (i + 1) & (s->room - 1);
	return &s->entry[i];
}

/* Twice the room. Without memory the table stays as it is: it only saves time. */
static void grow(struct hps_rl_scores *s)
{
	struct hps_rl_scores wider = { s->search, NULL, 2 * s->room, s->used };

	wider.entry = hps_calloc(wider.room, sizeof(*wider.entry), NULL);
	if (!wider.entry)
		return;
	for (size_t i = 0; i < s->room; i++)
		if (s->entry[i].hash)
			*find(&wider, s->entry[i].hash) = s->entry[i];
	free(s->entry);
	*s = wider;
}

static void keep(struct hps_rl_scores *s, uint64_t hash, struct hps_rl_cost cost)
{
	if (2 * s->used >= s->room && s->room < MOST_ROOM)
		grow(s);
	if (2 * s->used >= s->room)
		return;
	*find(s, hash) = (struct hps_rl_entry){ hash, cost };
	s->used++;
}

enum hps_status hps_rl_score(struct hps_rl_scores *s, struct hps_span *stage, uint32_t *n,
			     struct hps_rl_cost *out, struct hps_err *err)
{
	uint64_t hash = hps_structure_hash(stage, *n) | 1; /* never 0 */
	const struct hps_rl_entry *e = find(s, hash);
	struct hps_trial t;
	enum hps_status rc;

	if (e->hash) {
		*out = e->cost;
		s->search->evaluations++;
		return HPS_OK;
	}
	rc = hps_search_try(s->search, stage, n, &t, err);
	if (rc)
		return rc;
	*out = (struct hps_rl_cost){ t.feasible, t.feasible ? t.objective : t.excess };
	keep(s, hash, *out);
	return HPS_OK;
}

enum hps_status hps_rl_elites_init(struct hps_rl_elites *e, uint32_t n_layers, struct hps_err *err)
{
	memset(e, 0, sizeof(*e));
	e->block = hps_calloc((size_t)HPS_RL_ELITES * n_layers, sizeof(*e->block), err);
	for (uint32_t i = 0; e->block && i < HPS_RL_ELITES; i++)
		e->at[i].stage = e->block + (size_t)i * n_layers;
	return e->block ? HPS_OK : HPS_MEMORY;
}

void hps_rl_elites_release(struct hps_rl_elites *e)
{
	free(e->block);
	memset(e, 0, sizeof(*e));
}

struct hps_rl_elite *hps_rl_elites_find(struct hps_rl_elites *e, const struct hps_span *stage,
					uint32_t n)
{
	uint64_t hash = hps_structure_hash(stage, n);

	for (uint32_t i = 0; i < e->n; i++)
		if (e->at[i].hash == hash)
			return &e->at[i];
	return NULL;
}

void hps_rl_elites_take(struct hps_rl_elites *e, const struct hps_span *stage, uint32_t n,
			struct hps_rl_cost cost)
{
	struct hps_rl_elite *to = &e->at[e->n];

	if (hps_rl_elites_find(e, stage, n))
		return;
	if (e->n == HPS_RL_ELITES) {
		to = &e->at[0];
		for (uint32_t i = 1; i < e->n; i++)
			if (hps_rl_less(to->cost, e->at[i].cost))
				to = &e->at[i];
		if (!hps_rl_less(cost, to->cost))
			return;
	} else {
		e->n++;
	}
	to->hash = hps_structure_hash(stage, n);
	to->cost = cost;
	to->n = n;
	to->polished = false;
	memcpy(to->stage, stage, n * sizeof(*stage));
}
