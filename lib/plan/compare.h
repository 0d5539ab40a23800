/* Several methods on one problem, side by side: the same evaluation, the same budget for each, with
 * cuts inside a type and under the merge rule (under that alone where the problem asks for it).
 * Gaps of a rule's rows are to the highest bound that any of them, or exact, knows for it; a bound
 * without the rule holds under it too. */
#ifndef HPS_PLAN_COMPARE_H
#define HPS_PLAN_COMPARE_H

#include "doc/doc.h"
#include "plan/plan.h"

struct hps_compared {
	char *method; /* the user's word */
	bool merge;
	enum hps_status status; /* HPS_OK, HPS_NO; HPS_USAGE where the method refuses the problem */
	char why[256];		/* unless HPS_OK */
	struct hps_solution solution;
	double seconds; /* by the problem's clock; 0 without one */
};

struct hps_comparison {
	struct hps_compared *row;
	size_t n;
	bool interrupted;
};

/* list: methods by comma, or "all": every method that chooses for itself, and all:TYPE for each
 * type where there are at most four. Without any budget each method gets HPS_RIVAL_EVALUATIONS.
 * HPS_USAGE for an unknown method or none; HPS_NO if none finds a plan (out is filled then too).
 * Release in every case. */
enum hps_status hps_compare(const struct hps_problem *p, const char *list,
			    struct hps_comparison *out, struct hps_err *err);
void hps_comparison_release(struct hps_comparison *c);

/* One table for a person, with seconds; the list for the document, without them, so that it is the
 * same for the same seed. NULL without memory. */
enum hps_status hps_comparison_text(const struct hps_problem *p, const struct hps_comparison *c,
				    struct hps_buf *b, struct hps_err *err);
struct hps_doc *hps_comparison_doc(const struct hps_problem *p, const struct hps_comparison *c);

/* "cpu*3@0-5|v100*1@6-8": stages as -m fixed: takes them. */
enum hps_status hps_stages_text(const struct hps_cost *c, const struct hps_solution *s,
				struct hps_buf *b, struct hps_err *err);
/* The solution as the document's plan section; NULL without memory. */
struct hps_doc *hps_solution_doc(const struct hps_problem *p, const struct hps_solution *s,
				 const char *method);

#endif
