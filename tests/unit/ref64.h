/* A model's loss and gradients in double, from the definitions: the reference for rounding. */
#ifndef HPS_TESTS_REF64_H
#define HPS_TESTS_REF64_H

#include "data/batch.h"
#include "graph/graph.h"

struct ref64_rows { /* gradient sums of one table's rows */
	size_t n, cap;
	uint64_t *key;
	double *grad; /* (n, dim) */
};

struct ref64 {
	double loss;		 /* sum over samples */
	double *dense;		 /* (n_floats) gradient sums */
	struct ref64_rows *rows; /* one a table */
	uint32_t n_tables;
};

/* Value of a table's row: dim floats, valid until the next call. */
typedef const float *(*ref64_row)(void *ctx, uint32_t table, uint64_t key);

/* Gradient sums over rows [begin, end) of data at the given parameters. */
void ref64_gradient(const struct hps_graph *g, const float *dense, ref64_row row, void *ctx,
		    const struct hps_batch *data, uint64_t begin, uint64_t end, uint64_t seed,
		    uint32_t epoch, struct ref64 *out);
/* Gradient of a key, or NULL. */
const double *ref64_row_grad(const struct ref64 *r, const struct hps_graph *g, uint32_t table,
			     uint64_t key);
void ref64_release(struct ref64 *r);

#endif
