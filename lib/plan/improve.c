/* Is there a better plan close to the best one? Local search over structures: move a cut, change a
 * stage's type, join two stages, split one; first improvement, until none is left. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/plan_int.h"

struct improving {
	struct hps_search *search;
	struct hps_span *at, *tried; /* n_layers each: the present plan, and a neighbour */
	uint32_t n;
	struct hps_trial trial; /* of at */
	uint64_t left;		/* neighbours that may still be tried */
};

/* Try x->tried, n stages; *taken if it is better than where we are. */
static enum hps_status consider(struct improving *x, uint32_t n, bool *taken, struct hps_err *err)
{
	struct hps_trial t;
	enum hps_status rc;

	*taken = false;
	if (!x->left || !hps_search_more(x->search)) {
		x->left = 0;
		return HPS_OK;
	}
	x->left--;
	rc = hps_search_try(x->search, x->tried, &n, &t, err);
	if (rc || !hps_trial_better(&t, &x->trial))
		return rc;
	memcpy(x->at, x->tried, n * sizeof(*x->at));
	x->n = n;
	x->trial = t;
	*taken = true;
	return HPS_OK;
}

static void copy(struct improving *x)
{
	memcpy(x->tried, x->at, x->n * sizeof(*x->at));
}

/* The cut between stages i and i+1 elsewhere between them. */
static enum hps_status move_cut(struct improving *x, uint32_t i, bool *taken, struct hps_err *err)
{
	uint32_t low = x->at[i].first, high = x->at[i + 1].last - 1;

	for (uint32_t last = low; last <= high && x->left; last++) {
		enum hps_status rc;

		if (last == x->at[i].last)
			continue;
		copy(x);
		x->tried[i].last = last;
		x->tried[i + 1].first = last + 1;
		rc = consider(x, x->n, taken, err);
		if (rc || *taken)
			return rc;
	}
	return HPS_OK;
}

static enum hps_status change_type(struct improving *x, uint32_t i, bool *taken,
				   struct hps_err *err)
{
	for (uint32_t t = 0; t < x->search->problem->cost->n_types && x->left; t++) {
		enum hps_status rc;

		if (t == x->at[i].type)
			continue;
		copy(x);
		x->tried[i].type = t;
		rc = consider(x, x->n, taken, err);
		if (rc || *taken)
			return rc;
	}
	return HPS_OK;
}

/* Stages i and i+1 as one, on the type of either. */
static enum hps_status join(struct improving *x, uint32_t i, bool *taken, struct hps_err *err)
{
	for (uint32_t j = i; j <= i + 1 && x->left; j++) {
		uint32_t type = x->at[j].type, last = x->at[i + 1].last;
		enum hps_status rc;

		copy(x);
		memmove(&x->tried[i + 1], &x->tried[i + 2], (x->n - i - 2) * sizeof(*x->tried));
		x->tried[i].type = type;
		x->tried[i].last = last;
		rc = consider(x, x->n - 1, taken, err);
		if (rc || *taken || x->at[i].type == x->at[i + 1].type)
			return rc;
	}
	return HPS_OK;
}

/* Stage i in two after layer `last`, one of them on another type (or, cuts within a type being
 * legal, both on its own). */
static enum hps_status split(struct improving *x, uint32_t i, uint32_t last, bool *taken,
			     struct hps_err *err)
{
	uint32_t types = x->search->problem->cost->n_types, own = x->at[i].type;

	for (uint32_t side = 0; side < 2; side++) {
		for (uint32_t t = 0; t < types && x->left; t++) {
			enum hps_status rc;

			if (t == own && (side || x->search->problem->merge))
				continue;
			memcpy(x->tried, x->at, (i + 1) * sizeof(*x->at));
			memcpy(&x->tried[i + 1], &x->at[i], (x->n - i) * sizeof(*x->at));
			x->tried[i].last = last;
			x->tried[i + 1].first = last + 1;
			x->tried[i + side].type = t;
			rc = consider(x, x->n + 1, taken, err);
			if (rc || *taken)
				return rc;
		}
	}
	return HPS_OK;
}

/* All neighbours of the present plan until one is better. */
static enum hps_status step(struct improving *x, bool *taken, struct hps_err *err)
{
	enum hps_status rc = HPS_OK;

	*taken = false;
	for (uint32_t i = 0; !rc && !*taken && i + 1 < x->n; i++)
		rc = move_cut(x, i, taken, err);
	for (uint32_t i = 0; !rc && !*taken && i < x->n; i++)
		rc = change_type(x, i, taken, err);
	for (uint32_t i = 0; !rc && !*taken && i + 1 < x->n; i++)
		rc = join(x, i, taken, err);
	for (uint32_t i = 0; !rc && !*taken && i < x->n; i++)
		for (uint32_t l = x->at[i].first; !rc && !*taken && l < x->at[i].last; l++)
			rc = split(x, i, l, taken, err);
	return rc;
}

enum hps_status hps_improve(struct hps_search *s, uint64_t most, struct hps_err *err)
{
	size_t L = s->problem->cost->n_layers;
	struct improving x = { .search = s, .left = most };
	enum hps_status rc = HPS_OK;
	bool taken = true;

	if (!s->n_best)
		return HPS_OK;
	x.at = hps_calloc(2 * L + 1, sizeof(*x.at), err);
	if (!x.at)
		return HPS_MEMORY;
	x.tried = x.at + L;
	x.n = s->n_best;
	x.trial = s->best_trial;
	memcpy(x.at, s->best, x.n * sizeof(*x.at));
	while (!rc && taken && x.left)
		rc = step(&x, &taken, err);
	free(x.at);
	return rc;
}
