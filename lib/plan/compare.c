/* Which method does best on this problem, and by how much? */
#include "plan/compare.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/plan_int.h"
#include "plan/rivals.h"

#define MILLION 1e6

enum { SINGLE_TYPES = 4, LONGEST = 4096 };

void hps_comparison_release(struct hps_comparison *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->row[i].method);
		hps_solution_release(&c->row[i].solution);
	}
	free(c->row);
	memset(c, 0, sizeof(*c));
}

/* Every method that needs no word of the user, brute (a judge, refused on most) left out. */
static enum hps_status list_all(const struct hps_problem *p, struct hps_buf *b, struct hps_err *err)
{
	enum hps_status rc = HPS_OK;

	for (const struct hps_method *const *m = hps_methods(); !rc && *m; m++)
		if (!(*m)->has_arg && strcmp((*m)->name, "brute"))
			rc = hps_buf_printf(b, err, "%s%s", b->len ? "," : "", (*m)->name);
	for (uint32_t t = 0; !rc && p->cost->n_types <= SINGLE_TYPES && t < p->cost->n_types; t++)
		if (!strchr(p->cost->type[t].name, ','))
			rc = hps_buf_printf(b, err, ",all:%s", p->cost->type[t].name);
	return rc;
}

/* Rows for each word, under both rules or the one; all words are checked before any method runs. */
static enum hps_status make_rows(struct hps_comparison *c, const char *list, bool merge_alone,
				 struct hps_err *err)
{
	size_t words = 1;

	for (const char *s = list; *s; s++)
		words += *s == ',';
	c->row = hps_calloc(2 * words, sizeof(*c->row), err);
	if (!c->row)
		return HPS_MEMORY;
	for (const char *s = list, *end; words--; s = end + 1) {
		end = strchrnul(s, ',');
		for (int merge = merge_alone; merge < 2; merge++) {
			struct hps_compared *r = &c->row[c->n];
			const char *arg;

			r->method = hps_calloc((size_t)(end - s) + 1, 1, err);
			if (!r->method)
				return HPS_MEMORY;
			c->n++;
			memcpy(r->method, s, (size_t)(end - s));
			r->merge = merge;
			if (!hps_method_find(r->method, &arg, err))
				return HPS_USAGE;
		}
	}
	return HPS_OK;
}

static double now(const struct hps_problem *p)
{
	return p->hooks.now ? p->hooks.now(p->hooks.arg) : 0;
}

static enum hps_status run_row(const struct hps_problem *problem, struct hps_compared *r,
			       struct hps_err *err)
{
	struct hps_problem p = *problem;
	const struct hps_method *m;
	struct hps_err why = { 0 };
	const char *arg;
	double begin = now(&p);

	p.merge = r->merge;
	if (!p.max_evaluations && p.max_seconds <= 0)
		p.max_evaluations = HPS_RIVAL_EVALUATIONS;
	m = hps_method_find(r->method, &arg, err);
	if (!m)
		return HPS_USAGE;
	r->status = m->solve(&p, arg, &r->solution, &why);
	r->seconds = now(&p) - begin;
	snprintf(r->why, sizeof(r->why), "%s", why.msg);
	if (r->status == HPS_OK || r->status == HPS_NO || r->status == HPS_USAGE)
		return HPS_OK;
	if (err)
		*err = why;
	return r->status;
}

static double highest_bound(const struct hps_comparison *c, bool merge)
{
	double bound = -INFINITY;

	/* Plans under the rule are some of all plans. */
	for (size_t i = 0; i < c->n; i++)
		if (c->row[i].solution.has_bound && c->row[i].status == HPS_OK &&
		    (merge || !c->row[i].merge))
			bound = fmax(bound, c->row[i].solution.bound);
	return bound;
}

/* Give every row the best bound of its rule. */
static void share_bounds(struct hps_comparison *c)
{
	for (int merge = 0; merge < 2; merge++) {
		double bound = highest_bound(c, merge);

		for (size_t i = 0; i < c->n; i++) {
			struct hps_solution *s = &c->row[i].solution;

			if (c->row[i].merge != (bool)merge || c->row[i].status || isinf(bound))
				continue;
			s->has_bound = true;
			s->bound = fmin(bound, s->trial.objective);
			s->proven = hps_solution_gap(s) == 0;
		}
	}
}

enum hps_status hps_compare(const struct hps_problem *p, const char *list,
			    struct hps_comparison *out, struct hps_err *err)
{
	struct hps_buf all = { .max = LONGEST };
	enum hps_status rc = HPS_OK;
	bool found = false;

	memset(out, 0, sizeof(*out));
	if (!strcmp(list, "all")) {
		rc = list_all(p, &all, err);
		list = all.data;
	}
	if (!rc)
		rc = make_rows(out, list, p->merge, err);
	hps_buf_release(&all);
	for (size_t i = 0; !rc && i < out->n; i++) {
		rc = run_row(p, &out->row[i], err);
		found = found || out->row[i].status == HPS_OK;
		out->interrupted = out->interrupted || out->row[i].solution.interrupted;
	}
	if (rc)
		return rc;
	share_bounds(out);
	if (!found)
		return hps_err_set(err, HPS_NO, "no method finds a plan; %s: %s",
				   out->row[0].method, out->row[0].why);
	return HPS_OK;
}

enum hps_status hps_stages_text(const struct hps_cost *c, const struct hps_solution *s,
				struct hps_buf *b, struct hps_err *err)
{
	enum hps_status rc = HPS_OK;

	for (uint32_t i = 0; !rc && i < s->n_stages; i++)
		rc = hps_buf_printf(b, err, "%s%s*%u@%u-%u", i ? "|" : "",
				    c->type[s->stage[i].type].name, s->stage[i].units,
				    s->stage[i].first, s->stage[i].last);
	return rc;
}

static double best_objective(const struct hps_comparison *c)
{
	double best = INFINITY;

	for (size_t i = 0; i < c->n; i++)
		if (c->row[i].status == HPS_OK)
			best = fmin(best, c->row[i].solution.trial.objective);
	return best;
}

static enum hps_status text_row(const struct hps_problem *p, const struct hps_compared *r,
				double best, struct hps_buf *b, struct hps_err *err)
{
	const struct hps_solution *s = &r->solution;
	bool hourly = p->objective == HPS_PRICE_PER_HOUR;
	char gap[32] = "?", bound[32] = "?";
	enum hps_status rc;

	rc = hps_buf_printf(b, err, "%-12s%-7s", r->method, r->merge ? "merge" : "cuts");
	if (rc)
		return rc;
	if (r->status)
		return hps_buf_printf(b, err, "%s\n", r->why);
	if (s->has_bound)
		snprintf(bound, sizeof(bound), "%.6g", s->bound * (hourly ? 1 : MILLION));
	if (s->has_bound)
		snprintf(gap, sizeof(gap), "%.3g%s", 100 * hps_solution_gap(s),
			 s->interrupted ? "!" : "");
	rc = hps_buf_printf(b, err, "%12.6g%12.6g%12.4g%12s%10s%13llu%10.3f  ",
			    hourly ? s->trial.price : s->trial.cost * MILLION, s->trial.throughput,
			    best > 0 ? 100 * (s->trial.objective / best - 1) : 0, bound, gap,
			    (unsigned long long)s->evaluations, r->seconds);
	if (!rc)
		rc = hps_stages_text(p->cost, s, b, err);
	return rc ? rc : hps_buf_printf(b, err, "\n");
}

enum hps_status hps_comparison_text(const struct hps_problem *p, const struct hps_comparison *c,
				    struct hps_buf *b, struct hps_err *err)
{
	double best = best_objective(c);
	enum hps_status rc;

	rc = hps_buf_printf(b, err, "%-12s%-7s%12s%12s%12s%12s%10s%13s%10s  %s\n", "method", "rule",
			    p->objective == HPS_PRICE_PER_HOUR ? "price_h" : "cost_M", "samples_s",
			    "over_best%", "bound", "gap%", "evaluations", "seconds", "stages");
	for (size_t i = 0; !rc && i < c->n; i++)
		rc = text_row(p, &c->row[i], best, b, err);
	return rc;
}

struct hps_doc *hps_solution_doc(const struct hps_problem *p, const struct hps_solution *s,
				 const char *method)
{
	struct hps_doc *doc;
	struct hps_plan plan;

	if (hps_plan_of_solution(p, s, method, &plan, NULL))
		return NULL;
	doc = hps_plan_write(&plan);
	hps_plan_release(&plan);
	return doc;
}

struct hps_doc *hps_comparison_doc(const struct hps_problem *p, const struct hps_comparison *c)
{
	struct hps_doc *list = hps_doc_array();

	for (size_t i = 0; list && i < c->n; i++) {
		const struct hps_compared *r = &c->row[i];
		struct hps_doc *row = hps_doc_object();
		bool bad = hps_doc_put(row, "method", hps_doc_string(r->method)) ||
			   hps_doc_put(row, "merge", hps_doc_bool(r->merge));

		if (!bad && r->status)
			bad = hps_doc_put(row, "error", hps_doc_string(r->why));
		else if (!bad)
			bad = hps_doc_put(row, "plan",
					  hps_solution_doc(p, &r->solution, r->method));
		if (bad) {
			hps_doc_free(row);
			hps_doc_free(list);
			return NULL;
		}
		if (hps_doc_add(list, row)) {
			hps_doc_free(list);
			return NULL;
		}
	}
	return list;
}
