/* Shared within lib/import: a foreign graph, and the frame of a profile. */
#ifndef HPS_IMPORT_IMPORT_INT_H
#define HPS_IMPORT_IMPORT_INT_H

#include "import/import.h"

struct hps_foreign_node {
	const char *id, *what; /* borrowed from the text */
	size_t line;
	double forward_s, backward_s, output_bytes, param_bytes; /* of a whole batch */
};

struct hps_foreign_edge {
	const char *from_id, *to_id; /* borrowed from the text */
	size_t line;
	uint32_t from, to; /* nodes */
};

struct hps_foreign_graph {
	const char *name; /* of the file */
	struct hps_foreign_node *node;
	struct hps_foreign_edge *edge;
	size_t n_nodes, n_edges;
};

/* "expected WHAT" at "NAME:LINE"; HPS_BAD_INPUT. */
enum hps_status hps_foreign_fault(const char *name, size_t line, struct hps_err *err,
				  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Resolve the edges' names; nodes must be unique. */
enum hps_status hps_foreign_resolve(struct hps_foreign_graph *g, struct hps_err *err);
/* Take out nodes called Input that read nothing, with their edges. */
enum hps_status hps_foreign_drop_inputs(struct hps_foreign_graph *g, uint32_t *dropped,
					struct hps_err *err);
/* Topological order: order[i] (n_nodes) is the node at place i. A cycle is HPS_BAD_INPUT. */
enum hps_status hps_foreign_order(const struct hps_foreign_graph *g, uint32_t *order,
				  struct hps_err *err);
/* cut[i] (n_nodes): bytes that go over the cut after place i. */
enum hps_status hps_foreign_cuts(const struct hps_foreign_graph *g, const uint32_t *order,
				 double *cut, struct hps_err *err);

/* A profile of n_layers layers (names still NULL) and the cluster's types, all zero. */
enum hps_status hps_import_begin(const struct hps_cluster *c, uint32_t n_layers,
				 struct hps_profile *p, struct hps_err *err);
/* Derive the types that were not measured. */
enum hps_status hps_import_derive(const struct hps_cluster *c, const bool *measured,
				  struct hps_profile *p, struct hps_err *err);

#endif
