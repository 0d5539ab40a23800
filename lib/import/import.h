/* Profiles that other tools measured, as the profile section of a job document.
 *
 * A foreign profile knows what layers cost, not what they compute: its document has no model
 * and its digest is 0. It can be planned and provisioned; training needs a model.
 *
 * Both readers fill a profile whose types are the cluster's, in its order. What the cluster
 * declares relative to a measured type (or, the other way round, what a measured type is
 * declared relative to) is derived by `speed` and marked simulated; `op_speed` has no say,
 * since op kinds are those of hps. A type that is related to no measured one is refused.
 *
 * pipedream: the text that PipeDream's profiler writes (graph.txt), one GPU type:
 *   node4 -- Conv2d(64, ...) -- forward_compute_time=3.1, backward_compute_time=5.6,
 *           activation_size=143327232.0, parameter_size=1229568.0     (one line, ms and bytes)
 *   <tab>node4 -- node5                                               (an edge)
 * in any order; activation_size may be "[a; b]", several outputs, which are added; a trailing
 * "-- stage_id=N" is passed over. Nodes that are called Input and read nothing are the loading
 * of data and dropped. The others are put in topological order; of those that could come next
 * the one with the smallest number at the end of its name does. Across the cut after layer j
 * goes forward, once, the whole output of each layer <= j that an edge leads from to a layer
 * > j; coming back, as many bytes of gradients. Bytes of activations are those of a batch,
 * here divided by it. Only one batch size was measured, so all of the time is taken to grow
 * with it: c0 = 0, c1 = time / batch, alpha = 1.
 *
 * sailor: a directory with DIR/TYPE/profile.json for one type or more of the cluster,
 *   { "micro-batch": { "tensor parallelism": { "layer": [forward_s, backward_s, update_s] } } }
 * with layers 0, 1, .. the same everywhere. Of tensor parallelism 1 come the times at each
 * micro-batch, fitted affine; `batches` holds those sizes that all types have. OCT is forward
 * plus backward at `batch`. alpha is the type's: the least squares of
 *   total(n) / total(1) = 1 - alpha (1 - 1/n)    over the parallelisms n measured at `batch`
 * within 0..1; where only n = 1 was, a layer's c1 B / c(B). step_overhead_s is the update of
 * all layers on the slowest type. The format has no sizes: parameters and activations are 0,
 * so transfers cost nothing.
 */
#ifndef HPS_IMPORT_IMPORT_H
#define HPS_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "doc/doc.h"
#include "job/cluster.h"
#include "job/profile.h"

enum hps_import_kind { HPS_IMPORT_PIPEDREAM, HPS_IMPORT_SAILOR };

struct hps_import_options {
	/* pipedream: which type of the cluster was measured; NULL: the first of device cuda, or
	 * else the first */
	const char *type;
	/* The profile's batch; 0: of pipedream, what the outputs of Linear layers say (bytes / 4 /
	 * out_features, where all agree), else HPS_USAGE; of sailor, the largest micro-batch that
	 * every type has at tensor parallelism 1 (one that some lacks is HPS_USAGE). */
	double batch;
};

/* What was settled, for messages. */
struct hps_import_report {
	uint32_t n_measured; /* types */
	const char *type;    /* the first of them, borrowed from the cluster */
	uint32_t n_dropped;  /* Input nodes */
	bool batch_found;    /* it was not given */
};

/* "pipedream" or "sailor". HPS_USAGE names both. */
enum hps_status hps_import_kind(const char *word, enum hps_import_kind *kind, struct hps_err *err);

/* Read a file ("-": standard input), or a directory. *p is the caller's to release, empty on
 * failure. HPS_BAD_INPUT: malformed, named by file and line, or by the place in a document;
 * HPS_IO: not readable; HPS_DEVICE: a type of the cluster has neither times nor a speed
 * relative to one that has. */
enum hps_status hps_import(enum hps_import_kind kind, const char *path, const struct hps_cluster *c,
			   const struct hps_import_options *o, struct hps_profile *p,
			   struct hps_import_report *r, struct hps_err *err);

/* --- the same of memory --- */

/* A graph's text, which is changed; text[len] is 0. name: of the file, in messages. */
enum hps_status hps_import_pipedream(char *text, size_t len, const char *name,
				     const struct hps_cluster *c,
				     const struct hps_import_options *o, struct hps_profile *p,
				     struct hps_import_report *r, struct hps_err *err);
/* doc[t] of the cluster's type t, named name[t]; NULL: not measured. */
enum hps_status hps_import_sailor(struct hps_doc *const *doc, const char *const *name,
				  const struct hps_cluster *c, const struct hps_import_options *o,
				  struct hps_profile *p, struct hps_import_report *r,
				  struct hps_err *err);

#endif
