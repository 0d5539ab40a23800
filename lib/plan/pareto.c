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

/* Work in place of time, so that the frontier is the same everywhere: the search for the highest
 * throughput asks now and then whether it is to stop. */
enum { MOST_ASKED = 4000 };

struct patience {
	const struct hps_plan_hooks *user;
	uint32_t asked;
};

static bool out_of_patience(void *arg)
{
	struct patience *x = arg;

	return x->asked++ >= MOST_ASKED || (x->user->stop && x->user->stop(x->user->arg));
}

/* The highest throughput, by rate, or what that much work finds of it; 0 if there is no plan. */
static enum hps_status highest(const struct hps_problem *p, double *out, struct hps_err *err)
{
	struct patience x = { .user = &p->hooks };
	struct hps_problem bounded = *p;
	struct hps_solution s;
	enum hps_status rc;

	bounded.hooks = (struct hps_plan_hooks){ .stop = out_of_patience, .arg = &x };
	bounded.max_seconds = 0;
	rc = hps_plan_fastest(&bounded, &s, err);
	*out = rc ? 0 : s.trial.throughput;
	hps_solution_release(&s);
	return rc == HPS_NO ? HPS_OK : rc;
}

/* The plan above the floor that p asks for. *reached: how fast it is, 0 where there is none. */
static enum hps_status add_point(const struct hps_problem *p, const struct hps_method *method,
				 const char *arg, struct hps_frontier *f, double *reached,
				 struct hps_err *err)
{
	struct hps_solution s;
	enum hps_status rc = method->solve(p, arg, &s, err);

	f->interrupted = s.interrupted;
	*reached = rc ? 0 : s.trial.throughput;
	if (!rc)
		append(f, &s);
	hps_solution_release(&s);
	return rc;
}

enum hps_status hps_frontier_find(const struct hps_problem *p, const struct hps_method *method,
				  const char *arg, uint32_t most, double known,
				  struct hps_frontier *out, struct hps_err *err)
{
	struct hps_problem asked = *p;
	double low, high = 0, reached;
	enum hps_status rc;

	memset(out, 0, sizeof(*out));
	out->point = hps_calloc(most, sizeof(*out->point), err);
	if (!out->point)
		return HPS_MEMORY;
	rc = add_point(p, method, arg, out, &low, err);
	reached = low;
	if (!rc && most > 1 && !out->interrupted)
		rc = highest(p, &high, err);
	high = fmax(high, known);
	for (uint32_t i = 1; !rc && i < most && high > reached && !out->interrupted; i++) {
		struct hps_err why = { 0 };

		asked.floor = fmax(low * pow(high / low, i / (most - 1.0)),
				   reached * (1 + 4 * HPS_TIE_EPS));
		/* The last one asks for the highest itself, which its last bits must not hide. */
		asked.floor = fmin(asked.floor, high * (1 - HPS_TIE_EPS));
		if (asked.floor <= reached)
			break;
		rc = add_point(&asked, method, arg, out, &reached, &why);
		/* That fast is not to be had, or not found. */
		if (rc == HPS_NO)
			return HPS_OK;
		if (rc && err)
			*err = why;
	}
	return rc;
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
