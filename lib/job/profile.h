/* The profile section: what each layer costs on each type, what links and shards do.
 *
 * Seconds c(b) of forward, of backward for a batch of b samples on ONE unit; both are
 * fitted affine: c(b) = c0 + c1*b. OCT = c(B_o), alpha = c1*B_o / c(B_o) at B_o = batch.
 * The loss is timed with the last layer.
 *
 *   { "digest": "16 hex digits", "batch": 1000, "batches": [250, 500, 1000],
 *     "layers": [ { "name": "fc1", "param_bytes": 438400, "output_bytes": 1600,
 *                   "sparse_bytes": 0, "sparse_keys": 0, "flops": 218800,
 *                   "cut_forward_bytes": 1612, "cut_backward_bytes": 1600 }, ... ],
 *     "types": [ { "name": "cpu", "simulated": false,
 *                  "layers": [ { "name": "fc1", "forward_s": [...], "backward_s": [...],
 *                                "forward": { "c0": 1e-5, "c1": 2e-7, "error": 0.01 },
 *                                "backward": { ... }, "oct": 6e-4, "alpha": 0.97,
 *                                "scaling": [1, 1.9, 2.7] }, ... ] }, ... ],
 *     "link": { "bandwidth": 2e9, "latency": 2e-5, "measured": true },
 *     "shard": { "rows_per_s": 4e6, "bytes_per_s": 2e9, "measured": true },
 *     "step_overhead_s": 1e-4, "input_s_per_sample": 5e-7 }
 *
 * A foreign profile (lib/import) has the digest 0 and no model beside it: it can be planned
 * and provisioned, not trained. "source" says who measured what.
 *
 * digest, batch, layers and types must be there, and of a layer's time either forward and
 * backward (oct and alpha follow from them) or, as foreign profiles do, oct and alpha.
 * Other defaults: numbers 0, booleans false, no batches, no forward_s, backward_s, scaling.
 * In a type's layers "name" may be left out; if there, it is the layer's.
 */
#ifndef HPS_JOB_PROFILE_H
#define HPS_JOB_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include "doc/doc.h"
#include "job/cluster.h"
#include "job/model.h"

struct hps_fit {
	double c0, c1; /* seconds, seconds a sample; both >= 0 */
	double error;  /* largest relative error over the measured batches */
};

struct hps_layer_time {	   /* of one layer on one type */
	double *forward_s; /* n_batches medians; NULL where declared */
	double *backward_s;
	struct hps_fit forward, backward;
	double oct;	 /* seconds, forward + backward at the profile's batch */
	double alpha;	 /* parallel fraction, 0..1 */
	double *scaling; /* optional measured speed over units: n_scaling times relative to 1 unit */
	uint32_t n_scaling;
};

struct hps_layer_size {	     /* of one layer, independent of type */
	char *name;	     /* as in the model; foreign profiles need no model */
	double param_bytes;  /* dense parameters */
	double output_bytes; /* a sample: what its output costs to send */
	double sparse_bytes; /* a sample: rows pulled, and as many pushed */
	double sparse_keys;  /* a sample, after deduplication in one batch */
	double flops;	     /* a sample, forward */
};

struct hps_profile {
	uint64_t digest; /* of the model; 0 for a foreign profile, which has none */
	char *source;	 /* of a foreign profile: who measured what; or NULL */
	double batch;	 /* B_o */
	double *batches; /* measured batch sizes */
	uint32_t n_batches;
	uint32_t n_layers;
	struct hps_layer_size *size; /* n_layers */
	uint32_t n_types;
	char **type;		     /* n_types names */
	bool *simulated;	     /* n_types: declared, not measured */
	struct hps_layer_time *time; /* n_types * n_layers: time[t * n_layers + l] */
	double *cut_forward_bytes;   /* n_layers: bytes a sample that cross after layer l (0 for
					 * the last), going forward: activations, keys, labels, ids */
	double *cut_backward_bytes;  /* likewise coming back: gradients */
	struct hps_link link;	     /* measured over the transport in use */
	bool link_measured;
	struct {
		double rows_per_s;  /* one shard core: pulled and pushed rows */
		double bytes_per_s; /* one shard core: dense bytes pushed and pulled */
		bool measured;
	} shard;
	double step_overhead_s; /* measured fixed cost of one step of the executor; 0 = unknown */
	double input_s_per_sample; /* core seconds of reading and parsing a row; 0 = unknown */
};

enum hps_status hps_profile_read(const struct hps_at *at, struct hps_profile *p,
				 struct hps_err *err);
struct hps_doc *hps_profile_write(const struct hps_profile *p);
void hps_profile_release(struct hps_profile *p);
int hps_profile_type(const struct hps_profile *p, const char *name); /* or -1 */

/* s (n seconds at b samples) as c0 + c1 * b with both >= 0: least squares of the relative
 * errors, so that small batches count as much as large ones. n >= 1, s > 0. */
void hps_fit_affine(const double *b, const double *s, uint32_t n, struct hps_fit *fit);

#endif
