/* A Gaussian process over schedules: what a schedule that was not looked at may cost, and how
 * sure that is.
 *
 * A schedule is a row of n_layers codes, hps_gp_code(type, cut). Two of them differ by
 *   d = (layers of another type) + (layers where one is cut and the other is not) / 2
 * and covary as exp(-d / scale), which is a product over layers of positive definite kernels, and
 * so one itself. Values are standardised; their noise is tiny, as costs are exact. The scale is
 * the one of a few with the greatest marginal likelihood (Rasmussen, Williams 2006, ch. 5).
 *
 * Memory and time are bounded by max_points (N) and max_asked (M): a fit takes N^3 / 3 operations
 * for each scale tried, asking M N^2.
 */
#ifndef HPS_PLAN_GP_H
#define HPS_PLAN_GP_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

static inline uint16_t hps_gp_code(uint32_t type, bool cut)
{
	return (uint16_t)(type << 1 | cut);
}

struct hps_gp {
	uint32_t n_layers, max_points, max_asked;
	uint32_t n;	   /* points of the last fit */
	double scale;	   /* of the kernel; 0 = not chosen yet */
	uint16_t *point;   /* max_points rows of n_layers: filled by the caller before a fit */
	double *value;	   /* max_points, likewise */
	uint16_t *ask;	   /* max_asked rows: filled by the caller before asking */
	double *mean, *sd; /* max_asked: the answer, in units of value */
	/* private */
	uint32_t *distance; /* 2 d of each two points */
	double *kernel;	    /* exp(-d / scale) by 2 d, up to 3 n_layers */
	double *factor, *solved, *weight, *across;
	double center, spread;
};

enum hps_status hps_gp_init(struct hps_gp *g, uint32_t n_layers, uint32_t max_points,
			    uint32_t max_asked, struct hps_err *err);
void hps_gp_release(struct hps_gp *g);

/* Fit to the first n points and values. choose: look for the scale anew. */
void hps_gp_fit(struct hps_gp *g, uint32_t n, bool choose);
/* mean and sd of the first m rows of ask. */
void hps_gp_ask(struct hps_gp *g, uint32_t m);

#endif
