/* One micro-batch of a small model, from a case of tests/golden/nn.json, and running it
 * through any partition of its layers. Every failure ends the test.
 */
#ifndef HPS_TESTS_NN_CASE_H
#define HPS_TESTS_NN_CASE_H

#include "doc/doc.h"
#include "graph/graph.h"
#include "nn/stage.h"

struct nn_case {
	const struct hps_doc *doc; /* the case's object, borrowed */
	struct hps_model model;
	struct hps_graph graph;
	uint32_t number, rows;
	uint64_t *row, *key;
	uint32_t *slot;
	float *label, *dense, *params;
	uint64_t **drawn; /* n_layers: negatives that the case states, (rows, count), or NULL */
	bool used_passes; /* nn_case_run: on passes that another micro-batch went through */
};

/* tests/golden/NAME, to be freed with hps_doc_free. */
struct hps_doc *nn_golden(const char *name);
size_t nn_golden_count(const struct hps_doc *d);
void nn_case_init(struct nn_case *c, const struct hps_doc *golden, size_t i);
void nn_case_release(struct nn_case *c);
/* Numbers of an array (nested ones flattened), malloc()ed; obj[key], or obj itself if key
 * is NULL. */
double *nn_numbers(const struct hps_doc *obj, const char *key, size_t *n);
const struct hps_doc *nn_member(const struct hps_doc *obj, const char *key);

/* pseudo() of make_golden.py: a number in [-0.5, 0.5), exact in a float. */
float nn_pseudo(uint32_t a, uint32_t b, uint32_t c);
/* Element d of a table's row. */
float nn_row_value(uint32_t table, uint64_t key, uint32_t d);

/* What a micro-batch gave. */
struct nn_rows { /* of one lookup, in layer order */
	uint32_t layer, table, dim, n;
	uint64_t *key;
	float *grad;
};
struct nn_run {
	double loss;
	uint32_t rows, n_lookups;
	float *scores, *grads; /* (rows), (n_floats) */
	struct nn_rows *lookup;
};

/* The input of the stage that starts at layer `first`: only what the cut before it carries.
 * *key is malloc()ed for it. */
struct hps_stage_in nn_case_input(const struct nn_case *c, uint32_t first, uint32_t rows,
				  const float *activation, uint64_t **key);
/* After begin: state the case's negatives, and give every lookup its rows. */
void nn_case_fill(const struct nn_case *c, struct hps_pass *p, uint32_t n_lookups);
/* Forward and backward of the first `rows` rows, the layers cut after last[0], last[1], ..,
 * last[n - 1] = n_layers - 1; passes planned for max_rows. */
void nn_case_run(const struct nn_case *c, const uint32_t *last, uint32_t n, uint32_t rows,
		 uint32_t max_rows, struct nn_run *out);
void nn_run_release(struct nn_run *r);

/* The loss in double, from the definitions, with one number changed by delta: parameter
 * `param`, or element d of row (table, key) if param < 0. */
struct nn_bump {
	int64_t param;
	uint32_t table, d;
	uint64_t key;
	double delta;
};
double nn_case_loss64(const struct nn_case *c, const struct nn_bump *bump);

#endif
