/* What would a person place by hand? The heuristic "sparse and I/O layers on CPU, everything else
 * on the fastest", every layer on one type, and plans given by the user. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/opt.h"
#include "plan/plan_int.h"

static enum hps_status list_types(const struct hps_cost *c, const char *name, struct hps_err *err)
{
	struct hps_buf list = { .max = 300 };

	for (uint32_t t = 0; t < c->n_types; t++)
		if (hps_buf_printf(&list, NULL, "%s%s", t ? ", " : "", c->type[t].name))
			break;
	hps_err_set(err, HPS_USAGE, "no type \"%s\"; the cluster has %s", name,
		    list.data ? list.data : "?");
	hps_buf_release(&list);
	return HPS_USAGE;
}

static int find_type(const struct hps_cost *c, const char *name, size_t len)
{
	for (uint32_t t = 0; t < c->n_types; t++)
		if (strlen(c->type[t].name) == len && !memcmp(c->type[t].name, name, len))
			return (int)t;
	return -1;
}

/* One structure, its units settled. */
static enum hps_status solve_one(const struct hps_problem *p, struct hps_span *stage, uint32_t n,
				 struct hps_solution *out, struct hps_err *err)
{
	struct hps_search s;
	struct hps_trial trial;
	enum hps_status rc;

	rc = hps_search_init(&s, p, 0, err);
	if (rc)
		return rc;
	rc = hps_search_try(&s, stage, &n, &trial, err);
	if (!rc)
		rc = hps_search_bound(&s, err);
	if (rc) {
		hps_search_release(&s);
		return rc;
	}
	return hps_search_finish(&s, out, err);
}

enum hps_status hps_plan_all(const struct hps_problem *p, const char *arg, struct hps_solution *out,
			     struct hps_err *err)
{
	int t = find_type(p->cost, arg, strlen(arg));
	struct hps_span stage = { .first = 0, .last = p->cost->n_layers - 1 };

	memset(out, 0, sizeof(*out));
	if (t < 0)
		return list_types(p->cost, arg, err);
	stage.type = (uint32_t)t;
	return solve_one(p, &stage, 1, out, err);
}

/* Seconds a sample of all layers without sparse rows on a type. */
static double dense_time(const struct hps_cost *c, uint32_t t)
{
	double sum = 0;

	for (uint32_t l = 0; l < c->n_layers; l++) {
		struct hps_stage_time st = hps_cost_stage_bare(c, l, l, t, 1);

		if (c->sparse[l + 1] == c->sparse[l])
			sum += hps_stage_ct(c, &st, 1);
	}
	return sum;
}

enum hps_status hps_plan_heuristic(const struct hps_problem *p, const char *arg,
				   struct hps_solution *out, struct hps_err *err)
{
	const struct hps_cost *c = p->cost;
	int cpu = -1, fast = 0;
	struct hps_span *stage;
	enum hps_status rc;
	uint32_t *type, n;

	(void)arg;
	memset(out, 0, sizeof(*out));
	for (uint32_t t = 0; t < c->n_types; t++) {
		if (c->cluster->type[t].device == HPS_DEVICE_CPU &&
		    (cpu < 0 || c->type[t].price < c->type[cpu].price))
			cpu = (int)t;
		if (dense_time(c, t) < dense_time(c, (uint32_t)fast))
			fast = (int)t;
	}
	if (cpu < 0)
		cpu = fast;
	type = hps_calloc(c->n_layers, sizeof(*type), err);
	stage = hps_calloc(c->n_layers, sizeof(*stage), err);
	rc = HPS_MEMORY;
	if (type && stage) {
		for (uint32_t l = 0; l < c->n_layers; l++)
			type[l] = (uint32_t)(c->sparse[l + 1] > c->sparse[l] ? cpu : fast);
		n = hps_spans_of_layers(type, NULL, c->n_layers, stage);
		rc = solve_one(p, stage, n, out, err);
	}
	free(type);
	free(stage);
	return rc;
}

/* --- fixed: --- */

#define FREE_LAYER UINT32_MAX

/* "TYPE*N" or "TYPE*N@FIRST-[LAST]" from s up to end. */
static enum hps_status parse_stage(const struct hps_cost *c, const char *s, const char *end,
				   struct hps_span *out, struct hps_err *err)
{
	const char *star = memchr(s, '*', (size_t)(end - s));
	char text[64], *at, *dash;
	int64_t units, first, last = c->n_layers - 1;
	int t;

	if (!star || (size_t)(end - star) > sizeof(text))
		return hps_err_set(err, HPS_USAGE,
				   "fixed: expected TYPE*N or TYPE*N@FIRST-LAST, got \"%.*s\"",
				   (int)(end - s), s);
	t = find_type(c, s, (size_t)(star - s));
	if (t < 0) {
		snprintf(text, sizeof(text), "%.*s", (int)(star - s), s);
		return list_types(c, text, err);
	}
	snprintf(text, sizeof(text), "%.*s", (int)(end - star - 1), star + 1);
	at = strchr(text, '@');
	if (at)
		*at++ = '\0';
	if (hps_parse_int(text, 1, UINT32_MAX, &units, err))
		goto usage;
	*out = (struct hps_span){ FREE_LAYER, FREE_LAYER, (uint32_t)t, (uint32_t)units };
	if (!at)
		return HPS_OK;
	dash = strchr(at, '-');
	if (!dash)
		goto usage;
	*dash++ = '\0';
	if (hps_parse_int(at, 0, c->n_layers - 1, &first, err) ||
	    (*dash && hps_parse_int(dash, first, c->n_layers - 1, &last, err)))
		goto usage;
	out->first = (uint32_t)first;
	out->last = (uint32_t)last;
	return HPS_OK;
usage:
	return hps_err_set(err, HPS_USAGE,
			   "fixed: \"%.*s\": expected TYPE*N or TYPE*N@FIRST-LAST with N >= 1 and "
			   "layers within 0..%u",
			   (int)(end - s), s, c->n_layers - 1);
}

static enum hps_status parse_stages(const struct hps_cost *c, const char *arg,
				    struct hps_span *stage, uint32_t *n, struct hps_err *err)
{
	const char *end = arg;

	for (*n = 0; *end; arg = end + 1) {
		enum hps_status rc;

		end = strchrnul(arg, '|');
		if (*n == c->n_layers)
			return hps_err_set(err, HPS_USAGE,
					   "fixed: more stages than the model's %u layers",
					   c->n_layers);
		rc = parse_stage(c, arg, end, &stage[*n], err);
		if (rc)
			return rc;
		(*n)++;
	}
	return HPS_OK;
}

/* The layers that stage i may end with, when it begins at `first`: within what was asked for,
 * and leaving a layer for each later stage. false: it may not begin there. */
static bool ends(const struct hps_cost *c, const struct hps_span *ask, uint32_t n, uint32_t i,
		 uint32_t first, uint32_t *low, uint32_t *high)
{
	*low = first;
	*high = c->n_layers - (n - i);
	if (i + 1 == n)
		*low = c->n_layers - 1;
	if (ask[i].first != FREE_LAYER) {
		if (first != ask[i].first)
			return false;
		*low = *high = ask[i].last;
	}
	if (i + 1 < n && ask[i + 1].first != FREE_LAYER) {
		if (ask[i + 1].first <= first || ask[i + 1].first - 1 < *low ||
		    ask[i + 1].first - 1 > *high)
			return false;
		*low = *high = ask[i + 1].first - 1;
	}
	return *low >= first && *low <= *high && *high < c->n_layers &&
	       (i + 1 == n) == (*high == c->n_layers - 1);
}

enum { ENUMERATE_MAX = 10000 };

struct fixing {
	struct hps_search *search;
	const struct hps_span *ask;
	struct hps_span *stage, *best;
	uint32_t n;
	uint64_t left; /* steps of the enumeration that are left; 0 = too many choices */
	bool found;
	struct hps_trial trial;
	struct hps_cost step; /* the cost model under `step`: it settles what rate calls a tie */
	double step_cycle;
};

static double step_cycle(const struct fixing *f, uint32_t shards)
{
	struct hps_schedule sched = { f->stage, f->n, shards };
	struct hps_cost_result r;

	hps_cost_eval(&f->step, &sched, NULL, &r, NULL);
	return r.cycle_s;
}

static void consider(struct fixing *f)
{
	struct hps_trial t;
	double cycle;

	hps_score(f->search->problem, f->stage, f->n, &t);
	f->search->evaluations++;
	if (f->found && hps_trial_better(&f->trial, &t))
		return;
	cycle = step_cycle(f, t.shards);
	if (f->found && !hps_trial_better(&t, &f->trial) && cycle >= f->step_cycle)
		return;
	f->found = true;
	f->trial = t;
	f->step_cycle = cycle;
	memcpy(f->best, f->stage, f->n * sizeof(*f->best));
}

/* Every choice of cuts from stage i on. */
static void enumerate(struct fixing *f, uint32_t i, uint32_t first)
{
	const struct hps_cost *c = f->search->problem->cost;
	uint32_t low, high;

	if (!f->left || !ends(c, f->ask, f->n, i, first, &low, &high))
		return;
	f->stage[i] = f->ask[i];
	f->stage[i].first = first;
	for (uint32_t last = low; last <= high && --f->left; last++) {
		f->stage[i].last = last;
		if (i + 1 < f->n)
			enumerate(f, i + 1, last + 1);
		else
			consider(f);
	}
}

/* Where there are too many choices: the least of the largest ET, by dynamic programming over
 * (stage, last layer). cycle and from: n * n_layers. */
static bool balance(struct fixing *f, double *cycle, uint32_t *from)
{
	const struct hps_cost *c = f->search->problem->cost;
	uint32_t L = c->n_layers;

	for (size_t i = 0; i < (size_t)f->n * L; i++)
		cycle[i] = INFINITY;
	for (uint32_t i = 0; i < f->n; i++) {
		int left = i ? (int)f->ask[i - 1].type : -1;
		int right = i + 1 < f->n ? (int)f->ask[i + 1].type : -1;

		for (uint32_t first = i; first < (i ? L : 1); first++) {
			double before = i ? cycle[(i - 1) * L + first - 1] : 0;
			uint32_t low, high;

			if (isinf(before) || !ends(c, f->ask, f->n, i, first, &low, &high))
				continue;
			for (uint32_t last = low; last <= high; last++) {
				struct hps_stage_time st =
					hps_cost_stage(c, first, last, f->ask[i].type, left, right,
						       f->ask[0].units);
				double e = fmax(before, hps_stage_et(c, &st, f->ask[i].units));

				if (e < cycle[i * L + last]) {
					cycle[i * L + last] = e;
					from[i * L + last] = first;
				}
			}
		}
	}
	if (isinf(cycle[(f->n - 1) * L + L - 1]))
		return false;
	for (uint32_t i = f->n, last = L - 1; i-- > 0; last = from[i * L + last] - 1) {
		f->stage[i] = f->ask[i];
		f->stage[i].first = from[i * L + last];
		f->stage[i].last = last;
	}
	consider(f);
	return true;
}

static enum hps_status choose_cuts(struct fixing *f, struct hps_err *err)
{
	size_t cells = (size_t)f->n * f->search->problem->cost->n_layers;
	uint32_t *from;
	double *cycle;

	f->left = ENUMERATE_MAX;
	enumerate(f, 0, 0);
	if (f->left)
		return HPS_OK;
	cycle = hps_calloc(cells, sizeof(*cycle), err);
	from = hps_calloc(cells, sizeof(*from), err);
	if (cycle && from)
		balance(f, cycle, from);
	free(cycle);
	free(from);
	return cycle && from ? HPS_OK : HPS_MEMORY;
}

enum hps_status hps_plan_fixed(const struct hps_problem *p, const char *arg,
			       struct hps_solution *out, struct hps_err *err)
{
	size_t L = p->cost->n_layers;
	struct hps_search search;
	struct fixing f = { .search = &search, .step = *p->cost };
	struct hps_span *spans;
	enum hps_status rc;

	memset(out, 0, sizeof(*out));
	f.step.opt.evaluator = HPS_EVAL_STEP;
	rc = hps_search_init(&search, p, 0, err);
	if (rc)
		return rc;
	spans = hps_calloc(3 * L, sizeof(*spans), err);
	if (!spans) {
		rc = HPS_MEMORY;
		goto out;
	}
	f.ask = spans;
	f.stage = spans + L;
	f.best = spans + 2 * L;
	rc = parse_stages(p->cost, arg, spans, &f.n, err);
	if (!rc)
		rc = choose_cuts(&f, err);
	if (!rc && !f.found)
		rc = hps_err_set(err, HPS_USAGE,
				 "fixed: the layers asked for do not follow on each other from 0 "
				 "to %u",
				 p->cost->n_layers - 1);
	if (!rc) {
		hps_search_offer(&search, f.best, f.n, &f.trial);
		rc = hps_search_bound(&search, err);
	}
	if (!rc)
		rc = hps_search_finish(&search, out, err);
out:
	hps_search_release(&search);
	free(spans);
	return rc;
}
