/* Why this plan? What binds each stage, and what a little more, a little less or another type would
 * do. Text for a person. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/exact.h"
#include "plan/plan_int.h"

#define MILLION 1e6

struct explanation {
	const struct hps_problem *p;
	const struct hps_cost *c;
	const struct hps_solution *s;
	struct hps_cost_result r;
	struct hps_stage_cost *row; /* n_stages */
	struct hps_span *copy;	    /* n_layers + 2, twice */
	struct hps_buf *b;
	struct hps_err *err;
};

static const char *layer_name(const struct hps_cost *c, uint32_t l)
{
	const char *s = c->profile->size[l].name;

	return s ? s : "?";
}

/* The objective as people say it. */
static double shown(const struct explanation *x, const struct hps_trial *t)
{
	return x->p->objective == HPS_PRICE_PER_HOUR ? t->price : t->cost * MILLION;
}

static const char *unit(const struct explanation *x)
{
	return x->p->objective == HPS_PRICE_PER_HOUR ? "dollars per hour"
						     : "dollars per million samples";
}

static bool too_slow(const struct explanation *x, const struct hps_trial *t)
{
	return t->throughput < x->p->floor * (1 - HPS_TIE_EPS);
}

/* The same stages with one unit more or less at stage i; false: none would be left. */
static bool score_with(const struct explanation *x, uint32_t i, int by, struct hps_trial *t)
{
	memcpy(x->copy, x->s->stage, x->s->n_stages * sizeof(*x->copy));
	x->copy[i].units += (uint32_t)by;
	if (!x->copy[i].units)
		return false;
	hps_score(x->p, x->copy, x->s->n_stages, t);
	return true;
}

static enum hps_status one_unit(const struct explanation *x, uint32_t i, int by)
{
	struct hps_trial t;

	if (!score_with(x, i, by, &t))
		return hps_buf_printf(x->b, x->err, "  one unit less: none left\n");
	return hps_buf_printf(x->b, x->err, "  one unit %s: %.6g samples/s, %.6g %s%s\n",
			      by > 0 ? "more" : "less", t.throughput, shown(x, &t), unit(x),
			      t.feasible	? ""
			      : too_slow(x, &t) ? " (below the floor)"
						: " (over a limit)");
}

/* The floor binds a stage that one unit less would make too slow for it, the limit one whose type
 * has no unit left. */
static enum hps_status what_binds(const struct explanation *x, uint32_t i)
{
	const struct hps_span *sp = &x->s->stage[i];
	const struct hps_cost_type *t = &x->c->type[sp->type];
	const struct hps_stage_cost *row = &x->row[i];
	bool pace = x->r.binds <= HPS_BINDS_LINK && x->r.at == i;
	struct hps_trial less;
	uint64_t used = 0;
	enum hps_status rc;

	rc = hps_buf_printf(x->b, x->err,
			    "  %s binds: compute %.4g us, link %.4g us a sample, slack %.4g us%s\n",
			    hps_binding_name(row->binds), row->ct_s * MILLION, row->dt_s * MILLION,
			    row->slack_s * MILLION, pace ? "; sets the pace" : "");
	if (!rc && score_with(x, i, -1, &less) && too_slow(x, &less))
		rc = hps_buf_printf(x->b, x->err,
				    "  floor binds: with one unit less %.6g samples/s are %.3g %% "
				    "below it\n",
				    less.throughput, 100 * (1 - less.throughput / x->p->floor));
	for (uint32_t j = 0; j < x->s->n_stages; j++)
		used += x->s->stage[j].type == sp->type ? x->s->stage[j].units : 0;
	if (!rc && t->limited && used >= t->limit)
		rc = hps_buf_printf(x->b, x->err, "  limit binds: all %u units of %s are in use\n",
				    t->limit, t->name);
	return rc;
}

static enum hps_status explain_stage(const struct explanation *x, uint32_t i)
{
	const struct hps_span *sp = &x->s->stage[i];
	enum hps_status rc;

	rc = hps_buf_printf(x->b, x->err, "stage %u: layers %u-%u (%s .. %s) on %s, %u units\n", i,
			    sp->first, sp->last, layer_name(x->c, sp->first),
			    layer_name(x->c, sp->last), x->c->type[sp->type].name, sp->units);
	if (!rc)
		rc = what_binds(x, i);
	if (!rc)
		rc = one_unit(x, i, -1);
	return rc ? rc : one_unit(x, i, 1);
}

/* Layer l of stage i on type t instead, what is left of the stage on both sides. */
static uint32_t move_layer(const struct hps_solution *s, uint32_t i, uint32_t l, uint32_t t,
			   struct hps_span *out)
{
	uint32_t n = 0;

	for (uint32_t j = 0; j < s->n_stages; j++) {
		struct hps_span sp = s->stage[j];

		if (j != i) {
			out[n++] = sp;
			continue;
		}
		if (l > sp.first)
			out[n++] = (struct hps_span){ sp.first, l - 1, sp.type, 0 };
		out[n++] = (struct hps_span){ l, l, t, 0 };
		if (l < sp.last)
			out[n++] = (struct hps_span){ l + 1, sp.last, sp.type, 0 };
	}
	return n;
}

/* The layer at out[at] becomes part of the neighbours that have its type. */
static uint32_t join_layer(struct hps_span *out, uint32_t n, uint32_t at)
{
	bool left = at && out[at - 1].type == out[at].type;
	bool right = at + 1 < n && out[at + 1].type == out[at].type;
	uint32_t from = at - left, to = at + right;

	out[from].last = out[to].last;
	memmove(&out[from + 1], &out[to + 1], (n - to - 1) * sizeof(*out));
	return n - (to - from);
}

/* What the plan is worth with layer l of stage i on type t. */
static enum hps_status try_elsewhere(const struct explanation *x, uint32_t i, uint32_t l,
				     uint32_t t, struct hps_trial *out)
{
	struct hps_span *joined = x->copy + x->c->n_layers + 2;
	uint32_t n = move_layer(x->s, i, l, t, x->copy), at = i + (l > x->s->stage[i].first);
	uint32_t m;
	struct hps_trial other;
	enum hps_status rc = HPS_OK;

	memcpy(joined, x->copy, n * sizeof(*joined));
	m = x->p->merge ? hps_spans_join(joined, n) : join_layer(joined, n, at);
	rc = hps_settle(x->p, joined, m, out, x->err);
	if (rc || m == n || x->p->merge)
		return rc;
	rc = hps_settle(x->p, x->copy, n, &other, x->err);
	if (!rc && hps_trial_better(&other, out))
		*out = other;
	return rc;
}

/* How much more a is than b: "12.5 %", also of prices that are 0. */
static const char *more(char out[32], const char *format, double a, double b)
{
	double percent = 100 * (a / b - 1);

	if (isfinite(percent) || a <= b)
		snprintf(out, 32, format, isfinite(percent) ? percent : 0);
	else
		snprintf(out, 32, "infinitely");
	return out;
}

static enum hps_status layer_elsewhere(const struct explanation *x, uint32_t i, uint32_t l)
{
	enum hps_status rc = hps_buf_printf(x->b, x->err, "  %u %s on %s:", l, layer_name(x->c, l),
					    x->c->type[x->s->stage[i].type].name);
	const char *sep = "";

	for (uint32_t t = 0; !rc && t < x->c->n_types; t++) {
		const char *name = x->c->type[t].name;
		struct hps_trial trial;
		char percent[32];

		if (t == x->s->stage[i].type)
			continue;
		rc = try_elsewhere(x, i, l, t, &trial);
		if (!rc && trial.feasible)
			rc = hps_buf_printf(
				x->b, x->err, "%s %s %.6g (%s)", sep, name, shown(x, &trial),
				more(percent, "%+.3g %%", trial.objective, x->s->trial.objective));
		else if (!rc && too_slow(x, &trial))
			rc = hps_buf_printf(x->b, x->err, "%s %s too slow (%.4g samples/s)", sep,
					    name, trial.throughput);
		else if (!rc)
			rc = hps_buf_printf(x->b, x->err, "%s %s does not fit", sep, name);
		sep = ",";
	}
	return rc ? rc : hps_buf_printf(x->b, x->err, "\n");
}

static enum hps_status explain_layers(const struct explanation *x)
{
	enum hps_status rc = hps_buf_printf(x->b, x->err,
					    "layers elsewhere (%s, units settled anew)\n", unit(x));

	for (uint32_t i = 0; !rc && i < x->s->n_stages; i++)
		for (uint32_t l = x->s->stage[i].first; !rc && l <= x->s->stage[i].last; l++)
			rc = layer_elsewhere(x, i, l);
	return rc;
}

/* Sweeps are enough to see what is cheapest. */
enum { CHEAPEST_EVALUATIONS = 2000 };

/* The cheapest plan for a floor, as far as was looked; false: none was found. */
static enum hps_status cheapest(const struct explanation *x, double floor, struct hps_solution *s,
				bool *found)
{
	struct hps_problem p = *x->p;
	enum hps_status rc;

	p.floor = floor;
	p.max_evaluations = CHEAPEST_EVALUATIONS;
	p.hooks.news = NULL;
	rc = hps_plan_exact(&p, "", s, x->err);
	*found = !rc;
	return rc == HPS_NO ? HPS_OK : rc; /* interrupted, say */
}

/* What the floor costs is the method's merit no more than its fault: the cheapest plans with and
 * without it are compared, then this one with the cheapest. */
static enum hps_status explain_floor(const struct explanation *x)
{
	const struct hps_trial *mine = &x->s->trial;
	struct hps_solution open, floored = { 0 };
	const struct hps_solution *best = &open;
	double floor = x->p->floor;
	char percent[32];
	bool found, found_floored = false;
	enum hps_status rc;

	if (floor <= 0)
		return hps_buf_printf(x->b, x->err, "floor: none\n");
	rc = cheapest(x, 0, &open, &found);
	if (rc || !found)
		goto out;
	if (open.trial.throughput >= floor * (1 - HPS_TIE_EPS)) {
		rc = hps_buf_printf(x->b, x->err, "floor: %.6g does not bind, %.6g is %s%s\n",
				    floor, open.trial.throughput,
				    open.trial.throughput > floor * (1 + HPS_TIE_EPS) ? "cheaper"
										      : "cheapest",
				    open.proven ? "" : " as far as was looked");
	} else {
		rc = cheapest(x, floor, &floored, &found_floored);
		if (!rc && found_floored)
			best = &floored;
		if (!rc)
			rc = hps_buf_printf(
				x->b, x->err,
				"floor: %.6g costs %s more than the cheapest plan without it "
				"(%.6g %s at %.6g samples/s)\n",
				floor,
				more(percent, "%.3g %%",
				     found_floored ? floored.trial.objective : mine->objective,
				     open.trial.objective),
				shown(x, &open.trial), unit(x), open.trial.throughput);
	}
	if (!rc && hps_lower(best->trial.objective, mine->objective))
		rc = hps_buf_printf(
			x->b, x->err,
			"this plan costs %s more than the cheapest (%.6g %s at %.6g "
			"samples/s)\n",
			more(percent, "%.3g %%", mine->objective, best->trial.objective),
			shown(x, &best->trial), unit(x), best->trial.throughput);
out:
	hps_solution_release(&open);
	hps_solution_release(&floored);
	return rc;
}

static enum hps_status explain(const struct explanation *x)
{
	double steady_s = x->r.rate_s * x->c->opt.batch;
	enum hps_status rc = HPS_OK;

	for (uint32_t i = 0; !rc && i < x->s->n_stages; i++)
		rc = explain_stage(x, i);
	if (!rc && x->r.binds > HPS_BINDS_LINK)
		rc = hps_buf_printf(x->b, x->err, "the %s set the pace\n",
				    hps_binding_name(x->r.binds));
	if (!rc && x->r.step_s > steady_s * (1 + HPS_TIE_EPS))
		rc = hps_buf_printf(x->b, x->err,
				    "a step takes %.3g %% longer than the steady state: filling, "
				    "draining and synchronising\n",
				    100 * (x->r.step_s / steady_s - 1));
	if (!rc)
		rc = explain_floor(x);
	return rc || x->c->n_types < 2 ? rc : explain_layers(x);
}

enum hps_status hps_plan_explain(const struct hps_problem *p, const struct hps_solution *s,
				 struct hps_buf *b, struct hps_err *err)
{
	struct explanation x = { .p = p, .c = p->cost, .s = s, .b = b, .err = err };
	struct hps_schedule sched = { s->stage, s->n_stages, s->trial.shards };
	enum hps_status rc = HPS_MEMORY;

	x.row = hps_calloc(s->n_stages, sizeof(*x.row), err);
	x.copy = hps_calloc(2 * ((size_t)p->cost->n_layers + 2), sizeof(*x.copy), err);
	if (x.row && x.copy) {
		hps_cost_eval(p->cost, &sched, NULL, &x.r, x.row);
		rc = explain(&x);
	}
	free(x.row);
	free(x.copy);
	return rc;
}
