/* Pictures of a plan, as text: pure, the same bytes for the same plan. */
#ifndef HPS_DRAW_DRAW_H
#define HPS_DRAW_DRAW_H

#include "base/buf.h"
#include "job/model.h"
#include "plan/pareto.h"
#include "plan/plan.h"

/* What is to be drawn; all borrowed. */
struct hps_picture {
	const struct hps_problem *problem;
	const struct hps_solution *solution; /* feasible; its stages cover the layers */
	const char *title;		     /* the model's name, or NULL */
	const char *method;		     /* that made the solution */
	const struct hps_frontier *frontier; /* NULL or empty: not drawn */
	const char *frontier_method;	     /* that made it */
};

/* SVG 1.1, UTF-8. Two panels:
 *
 *   layers | stage: type x units, price | bars: compute, link  |  legend of types
 *   cost against throughput: the frontier as a staircase, its plans, the bound below a plan that
 *   is not proven, the solution as a diamond, the floor as a line
 *
 * A type has the colour of its index modulo 8 (Okabe and Ito's, which colour-blind people can tell
 * apart) and the hatching of its index / 8 modulo 8, and its name stands at every stage. Names may
 * hold anything: they are escaped, and what XML does not allow is replaced. HPS_MEMORY alone. */
enum hps_status hps_draw_svg(const struct hps_picture *x, struct hps_buf *b, struct hps_err *err);

/* Graphviz: a cluster for each stage, in it a node for each layer, edges with the bytes a sample
 * that they carry (thick where they cross a cut, forward and back), the parameter servers with
 * their shards, and how each stage synchronises. What sets the pace is red. model NULL, or not of
 * these layers: a chain. HPS_MEMORY alone. */
enum hps_status hps_draw_dot(const struct hps_picture *x, const struct hps_model *model,
			     struct hps_buf *b, struct hps_err *err);

#endif
