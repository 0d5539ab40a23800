/* What does Bayesian optimisation find? A Gaussian process over schedules (gp.h) is fitted to
 * log(cost) of the best and the latest of those looked at; of a pool of candidates, one to three
 * moves away from the best or drawn at random, those of the greatest expected improvement (Mockus
 * 1978; Jones, Schonlau, Welch 1998) are looked at next.
 *
 * Where nothing better comes for a while it starts anew: the process knows only what is near.
 *
 * The cost of deciding is bounded, whatever the budget: POINTS schedules in the process, POOL
 * candidates, and after the first evaluations, which are chosen one by one, BATCH of them a fit. */
#include "plan/gp.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/rivals.h"

enum {
	ELITES = 64, /* of POINTS; the others are the latest */
	POINTS = 128,
	POOL = 192,
	BATCH = 32,
	START = 24,	   /* random ones to begin with, or an eighth of the budget */
	CHOOSE_EVERY = 16, /* fits between two choices of the scale */
	SEEN = 1 << 16,	   /* slots for hashes of what was looked at */
	IDLE = 64,	   /* pools without a new candidate: all near ones were looked at */
	PATIENCE = 2000,   /* evaluations without a better one */
};

struct seen_one {
	struct hps_span *stage; /* n_layers */
	uint32_t n;
	double value;
};

struct bayes {
	struct hps_search *search;
	struct hps_rng rng;
	struct hps_gp gp;
	uint64_t better;      /* evaluations when the last better one came */
	struct seen_one *one; /* POINTS: the elites, best first, then a ring of the latest */
	uint32_t n_elites, n_latest, next; /* next: oldest of the ring */
	uint64_t *seen;			   /* SEEN; 0 = empty */
	uint32_t n_seen;
	struct hps_span *candidate, *spare, *block; /* POOL * n_layers, n_layers, all */
	uint32_t *n_stages;			    /* POOL */
	double *gain;				    /* POOL */
};

/* Remember a structure; false if it was there. A full set begins anew. */
static bool remember(struct bayes *b, const struct hps_span *stage, uint32_t n)
{
	uint64_t hash = hps_structure_hash(stage, n) | 1;
	uint64_t at = hps_mix64(hash) % SEEN;

	for (; b->seen[at]; at = (at + 1) % SEEN)
		if (b->seen[at] == hash)
			return false;
	if (b->n_seen >= SEEN / 2) {
		memset(b->seen, 0, SEEN * sizeof(*b->seen));
		b->n_seen = 0;
		at = hps_mix64(hash) % SEEN;
	}
	b->seen[at] = hash;
	b->n_seen++;
	return true;
}

static void store(struct seen_one *one, const struct hps_span *stage, uint32_t n, double value)
{
	memmove(one->stage, stage, n * sizeof(*stage));
	one->n = n;
	one->value = value;
}

static void store_latest(struct bayes *b, const struct hps_span *stage, uint32_t n, double value)
{
	store(&b->one[ELITES + b->next], stage, n, value);
	b->next = (b->next + 1) % (POINTS - ELITES);
	if (b->n_latest < POINTS - ELITES)
		b->n_latest++;
}

/* Among the elites if good enough; what falls out of them, or is not, is the latest. */
static void keep(struct bayes *b, const struct hps_span *stage, uint32_t n, double value)
{
	struct seen_one last;
	uint32_t i;

	if (!b->n_elites || value < b->one[0].value)
		b->better = b->search->evaluations;
	if (b->n_elites == ELITES) {
		last = b->one[ELITES - 1];
		if (value >= last.value) {
			store_latest(b, stage, n, value);
			return;
		}
		store_latest(b, last.stage, last.n, last.value);
	} else {
		last = b->one[b->n_elites++];
	}
	for (i = b->n_elites - 1; i && b->one[i - 1].value > value; i--)
		b->one[i] = b->one[i - 1];
	b->one[i] = last; /* for its room */
	store(&b->one[i], stage, n, value);
}

static enum hps_status look(struct bayes *b, struct hps_span *stage, uint32_t n,
			    struct hps_err *err)
{
	struct hps_trial t;
	enum hps_status rc = hps_search_try(b->search, stage, &n, &t, err);

	if (!rc)
		keep(b, stage, n, hps_rival_value(&t));
	return rc;
}

/* Under `merge` neighbours of one type are one stage, here before they are looked at. */
static uint32_t normalise(const struct bayes *b, struct hps_span *stage, uint32_t n)
{
	uint32_t m = 0;

	if (!b->search->problem->merge)
		return n;
	for (uint32_t i = 1; i < n; i++) {
		if (stage[i].type == stage[m].type)
			stage[m].last = stage[i].last;
		else
			stage[++m] = stage[i];
	}
	return m + 1;
}

/* Single types and chance. */
static enum hps_status begin(struct bayes *b, struct hps_err *err)
{
	const struct hps_problem *p = b->search->problem;
	uint64_t few = b->search->max_evaluations / 8;
	uint32_t start = !b->search->max_evaluations || few > START ? START : (uint32_t)few;
	enum hps_status rc = HPS_OK;

	for (uint32_t i = 0; !rc && (i < start || i < 2) && hps_rival_more(b->search); i++) {
		struct hps_span *stage = b->candidate;
		uint32_t n = 1;

		if (i < p->cost->n_types && i < start / 2 + 1)
			*stage = (struct hps_span){ 0, p->cost->n_layers - 1, i, 0 };
		else
			n = hps_structure_random(p, &b->rng, stage);
		if (remember(b, stage, n) || !b->n_elites)
			rc = look(b, stage, n, err);
	}
	return rc;
}

static void encode(const struct bayes *b, const struct hps_span *stage, uint32_t n, uint16_t *row)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t l = stage[i].first; l <= stage[i].last; l++)
			row[l] = hps_gp_code(stage[i].type, l == stage[i].first);
}

/* Costs far above the others say only "not there": cut off at thrice the median's distance from
 * the best, so that they do not flatten what matters. */
static double ceiling(const struct bayes *b)
{
	double best = b->one[0].value;
	double middle = b->one[b->n_elites / 2].value;

	return best + 3 * (middle - best) + 0.05;
}

static void fit(struct bayes *b, bool choose)
{
	uint32_t n = 0, L = b->search->problem->cost->n_layers;
	double most = ceiling(b);

	for (uint32_t i = 0; i < POINTS; i++) {
		const struct seen_one *one = &b->one[i];

		if (i < ELITES ? i >= b->n_elites : i - ELITES >= b->n_latest)
			continue;
		encode(b, one->stage, one->n, b->gp.point + (size_t)n * L);
		b->gp.value[n++] = fmin(one->value, most);
	}
	hps_gp_fit(&b->gp, n, choose);
}

/* One candidate: by even chance one move from an elite (good ones more often), more moves, or now
 * and then at random. */
static uint32_t propose(struct bayes *b, struct hps_span *stage)
{
	const struct hps_problem *p = b->search->problem;
	double u = hps_rng_uniform(&b->rng);
	const struct seen_one *from = &b->one[(uint32_t)(u * u * b->n_elites)];
	uint64_t pick = hps_rng_below(&b->rng, 8);
	uint32_t n = from->n, moves = pick < 4 ? 1 : pick < 6 ? 2 : 3;

	if (pick == 7)
		return hps_structure_random(p, &b->rng, stage);
	memcpy(stage, from->stage, n * sizeof(*stage));
	while (moves--) {
		memcpy(b->spare, stage, n * sizeof(*stage));
		n = hps_moves_random(p, &b->rng, b->spare, n, stage);
	}
	return normalise(b, stage, n);
}

/* Fill the pool with what was not looked at yet; returns how many. */
static uint32_t fill_pool(struct bayes *b)
{
	uint32_t L = b->search->problem->cost->n_layers, m = 0;
	uint64_t hashes[POOL];

	for (uint32_t i = 0; i < 2 * POOL && m < POOL; i++) {
		struct hps_span *stage = b->candidate + (size_t)m * L;
		uint32_t n = propose(b, stage);
		uint64_t hash = hps_structure_hash(stage, n) | 1, at = hps_mix64(hash) % SEEN;
		bool known = false;

		for (; !known && b->seen[at]; at = (at + 1) % SEEN)
			known = b->seen[at] == hash;
		for (uint32_t j = 0; !known && j < m; j++)
			known = hashes[j] == hash;
		if (known)
			continue;
		hashes[m] = hash;
		b->n_stages[m] = n;
		encode(b, stage, n, b->gp.ask + (size_t)m * L);
		m++;
	}
	return m;
}

/* E max(best - Y, 0), Y normal. */
static double improvement(double best, double mean, double sd)
{
	double z;

	if (sd <= 0)
		return fmax(best - mean, 0);
	z = (best - mean) / sd;
	return (best - mean) * 0.5 * erfc(-z * M_SQRT1_2) +
	       sd * exp(-0.5 * z * z) * 0.5 * M_2_SQRTPI * M_SQRT1_2;
}

/* The best candidates of a pool of m. */
static enum hps_status look_at_best(struct bayes *b, uint32_t m, uint32_t batch,
				    struct hps_err *err)
{
	uint32_t L = b->search->problem->cost->n_layers;
	double best = b->one[0].value;
	enum hps_status rc = HPS_OK;

	hps_gp_ask(&b->gp, m);
	for (uint32_t i = 0; i < m; i++)
		b->gain[i] = improvement(best, b->gp.mean[i], b->gp.sd[i]);
	for (uint32_t k = 0; !rc && k < batch && k < m && hps_search_more(b->search); k++) {
		uint32_t top = 0;

		for (uint32_t i = 1; i < m; i++)
			if (b->gain[i] > b->gain[top])
				top = i;
		b->gain[top] = -1;
		remember(b, b->candidate + (size_t)top * L, b->n_stages[top]);
		rc = look(b, b->candidate + (size_t)top * L, b->n_stages[top], err);
	}
	return rc;
}

static enum hps_status optimise(struct bayes *b, struct hps_err *err)
{
	enum hps_status rc = begin(b, err);
	uint32_t idle = 0;

	for (uint64_t round = 0; !rc && idle < IDLE && hps_search_more(b->search); round++) {
		uint64_t batch = 1 + b->search->evaluations / 16;
		uint32_t m = fill_pool(b);

		idle = m ? 0 : idle + 1;
		if (m) {
			fit(b, round % CHOOSE_EVERY == 0);
			rc = look_at_best(b, m, batch < BATCH ? (uint32_t)batch : BATCH, err);
		}
		if (!rc && b->search->evaluations - b->better > PATIENCE) {
			b->n_elites = b->n_latest = b->next = 0;
			rc = begin(b, err);
		}
	}
	return rc;
}

static enum hps_status make_room(struct bayes *b, uint32_t L, struct hps_err *err)
{
	b->one = hps_calloc(POINTS, sizeof(*b->one), err);
	b->seen = hps_calloc(SEEN, sizeof(*b->seen), err);
	b->n_stages = hps_calloc(POOL, sizeof(*b->n_stages), err);
	b->gain = hps_calloc(POOL, sizeof(*b->gain), err);
	b->block = hps_calloc(((size_t)POINTS + POOL + 1) * L, sizeof(*b->block), err);
	if (!b->one || !b->seen || !b->n_stages || !b->gain || !b->block)
		return HPS_MEMORY;
	for (size_t i = 0; i < POINTS; i++)
		b->one[i].stage = b->block + i * L;
	b->candidate = b->block + (size_t)POINTS * L;
	b->spare = b->candidate + (size_t)POOL * L;
	return hps_gp_init(&b->gp, L, POINTS, POOL, err);
}

enum hps_status hps_plan_bayes(const struct hps_problem *p, const char *arg,
			       struct hps_solution *out, struct hps_err *err)
{
	struct hps_search s;
	struct bayes b = { .search = &s };
	enum hps_status rc;

	(void)arg;
	memset(out, 0, sizeof(*out));
	rc = hps_rival_start(&s, p, &b.rng, err);
	if (rc)
		return rc;
	rc = make_room(&b, p->cost->n_layers, err);
	if (!rc)
		rc = optimise(&b, err);
	hps_gp_release(&b.gp);
	free(b.one);
	free(b.seen);
	free(b.n_stages);
	free(b.gain);
	free(b.block);
	return hps_rival_end(&s, rc, out, err);
}
