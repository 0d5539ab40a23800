/* What does more speed cost? One plan for each of some rising floors. */
#include "plan/pareto.h"
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "plan/compare.h"
#include "plan/plan_int.h"

void hps_frontier_release(struct hps_frontier *f)
{
	for (size_t i = 0; i < f->n; i++)
		hps_solution_release(&f->point[i]);
	free(f->point);
	memset(f, 0, sizeof(*f));
}

/* Append, taking s over. A method that does not prove may find later what it should have found
 * before: points that the new one beats go. */
static void append(struct hps_frontier *f, struct hps_solution *s)
{
	while (f->n && !hps_lower(f->point[f->n - 1].trial.objective, s->trial.objective))
		hps_solution_release(&f->point[--f->n]);
	f->point[f->n++] = *s;
	memset(s, 0, sizeof(*s));
}

/* The highest throughput, by rate; 0 if there is no plan at all. */
static enum hps_status highest(const struct hps_problem *p, double *out, struct hps_err *err)
{
	struct hps_solution s;
	enum hps_status rc = hps_plan_fastest(p, &s, err);

	*out = rc ? 0 : s.trial.throughput;
	hps_solution_release(&s);
	return rc == HPS_NO ? HPS_OK : rc;
}

enum hps_status hps_frontier_find(const struct hps_problem *p, const struct hps_method *method,
				  const char *arg, uint32_t most, struct hps_frontier *out,
				  struct hps_err *err)
{
	struct hps_problem asked = *p;
	double low = 0, high;
	enum hps_status rc;

	memset(out, 0, sizeof(*out));
	rc = highest(p, &high, err);
	if (rc)
		return rc;
	out->point = hps_calloc(most, sizeof(*out->point), err);
	if (!out->point)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < most && !out->interrupted; i++) {
		struct hps_err why = { 0 };
		struct hps_solution s;
		double reached;

		rc = method->solve(&asked, arg, &s, i ? &why : err);
		out->interrupted = s.interrupted;
		if (rc) {
			hps_solution_release(&s);
			/* Beyond the first: that fast is not to be had (or not found). */
			if (i && rc != HPS_NO && err)
				*err = why;
			return i && rc == HPS_NO ? HPS_OK : rc;
		}
		reached = s.trial.throughput;
		append(out, &s);
		if (!i)
			low = reached;
		if (high <= low || i + 1 == most)
			break;
		asked.floor = fmax(low * pow(high / low, (i + 1.0) / (most - 1)),
				   reached * (1 + 4 * HPS_TIE_EPS));
		/* The last one asks for the highest itself, which its last bits must not hide. */
		asked.floor = fmin(asked.floor, high * (1 - HPS_TIE_EPS));
		if (asked.floor <= reached)
			break;
	}
	return HPS_OK;
}

enum hps_status hps_frontier_text(const struct hps_problem *p, const struct hps_frontier *f,
				  struct hps_buf *b, struct hps_err *err)
{
	enum hps_status rc = hps_buf_printf(b, err, "throughput\tcost\tbound\tgap\tplan\n");

	for (size_t i = 0; !rc && i < f->n; i++) {
		const struct hps_solution *s = &f->point[i];

		rc = hps_buf_printf(b, err, "%.10g\t%.10g\t", s->trial.throughput,
				    s->trial.objective);
		if (!rc && s->has_bound)
			rc = hps_buf_printf(b, err, "%.10g\t%.6g\t", s->bound, hps_solution_gap(s));
		else if (!rc)
			rc = hps_buf_printf(b, err, "\t\t");
		if (!rc)
			rc = hps_stages_text(p->cost, s, b, err);
		if (!rc)
			rc = hps_buf_printf(b, err, "\n");
	}
	return rc;
}

struct hps_doc *hps_frontier_doc(const struct hps_problem *p, const struct hps_frontier *f,
				 const char *method)
{
	struct hps_doc *list = hps_doc_array();

	for (size_t i = 0; list && i < f->n; i++) {
		if (hps_doc_add(list, hps_solution_doc(p, &f->point[i], method))) {
			hps_doc_free(list);
			return NULL;
		}
	}
	return list;
}
