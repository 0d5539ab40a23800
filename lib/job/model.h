/* The model section: what is trained. Written by hand; read, checked, written.
 *
 *   { "name": "ctrdnn", "description": "...",
 *     "inputs": { "slots": 26, "dense": 13 },
 *     "preprocess": { "dense": { "transform": "signed_log", "scale": 1.0, "missing": 0.0 } },
 *     "tables": [ { "name": "emb", "dim": 10, "rows": 1000001,
 *                   "init": { "kind": "uniform", "scale": 0.01 },
 *                   "optimizer": { "kind": "adagrad", "lr": 0.05 } } ],
 *     "layers": [ { "name": "emb", "op": "embedding", "table": "emb", "slots": [0, ...],
 *                   "pooling": "concat" },
 *                 { "name": "in", "op": "concat", "inputs": ["emb", "dense"] },
 *                 { "name": "fc1", "op": "dense", "inputs": ["in"], "units": 400,
 *                   "activation": "relu" }, ... ],
 *     "loss": { "kind": "softmax_cross_entropy", "inputs": ["out"] },
 *     "train": { "batch": 1000, "micro_batches": 1, "epochs": 1, "sync": "bsp",
 *                "optimizer": { "kind": "adam", "lr": 0.001 } } }
 *
 * Shapes not shown above: op arguments are members of the struct's names (slice: "begin",
 * "size"; negatives: "table", "count", "pooling"; dense: "bias", "activation"); loss hinge
 * has "margin"; optimizers have lr, accumulator, eps, beta1, beta2 as their kind does.
 * "description" and "comment" may stand in every object. Names are up to 128 letters,
 * digits and "_.-", the first a letter or digit.
 *
 * Defaults: inputs.slots 0, inputs.dense 0, preprocess as above (signed_log, 1, 0); a
 * table's rows 0, init uniform with scale 0.01, optimizer adagrad, no ceilings; pooling
 * concat; slice begin 0; bias true; activation linear; margin 1; train as above with seed
 * 1. Optimizers: sgd lr 0.01; adagrad lr 0.05, accumulator 0.1, eps 1e-10; adam lr 0.001,
 * beta1 0.9, beta2 0.999, eps 1e-8. adagrad suits tables, whose rows are seen at very
 * different rates; adam with a small step suits the dense layers.
 *
 * Layers stand in topological order; an input names an earlier layer or the graph input
 * "dense". Everything a layer computes per sample is one row of `cols` floats.
 */
#ifndef HPS_JOB_MODEL_H
#define HPS_JOB_MODEL_H

#include <stdint.h>
#include "base/err.h"
#include "doc/doc.h"

enum hps_act { HPS_ACT_LINEAR, HPS_ACT_RELU, HPS_ACT_SIGMOID, HPS_ACT_TANH };
enum hps_pooling { HPS_POOL_SUM, HPS_POOL_MEAN, HPS_POOL_CONCAT };

enum hps_op {
	HPS_OP_EMBEDDING, /* rows of `table` for the keys of `slots`, pooled over the slots */
	HPS_OP_NEGATIVES, /* `count` rows of `table` drawn over table.rows by (seed, epoch,
			   * global row, index), pooled over count */
	HPS_OP_CONCAT,	  /* inputs side by side */
	HPS_OP_SLICE,	  /* columns begin .. begin+size-1 of one input */
	HPS_OP_DENSE,	  /* act(x W + b); W (in, units) row-major, then b (units) if bias */
	HPS_OP_COSINE,	  /* cosine of two inputs of equal width: one column */
};

enum hps_loss_kind {
	HPS_LOSS_SIGMOID_CE, /* inputs: logit (1 column). score = sigmoid(logit) */
	HPS_LOSS_SOFTMAX_CE, /* inputs: logits (2 columns). score = softmax[1] */
	HPS_LOSS_HINGE,	     /* inputs: pos, neg (1 column each): max(0, margin - pos + neg) on
			      * rows whose label is 1, 0 on the others. score = pos */
	HPS_LOSS_NCE,	     /* inputs: hidden (D), target (D), noise (count*D): see nn/loss.h;
			      * on rows whose label is 1. score = sigmoid(hidden . target) */
};

enum hps_optim_kind { HPS_SGD, HPS_ADAGRAD, HPS_ADAM }; /* ftrl, momentum: refused by name */
enum hps_init_kind { HPS_INIT_ZERO, HPS_INIT_UNIFORM }; /* uniform in [-scale, scale) */
enum hps_sync { HPS_BSP, HPS_ASP };			/* ssp:S: refused by name */
enum hps_transform { HPS_TRANSFORM_NONE, HPS_TRANSFORM_SIGNED_LOG };

struct hps_optimizer {
	enum hps_optim_kind kind;
	double lr;
	double accumulator;  /* adagrad: initial accumulator, default 0.1 */
	double eps;	     /* adagrad 1e-10, adam 1e-8 */
	double beta1, beta2; /* adam: 0.9, 0.999 */
};

struct hps_table_spec {
	char *name;
	uint32_t dim;
	uint64_t rows; /* key = hash mod rows; 0: the whole 64-bit hash is the key */
	enum hps_init_kind init;
	double init_scale;
	struct hps_optimizer optimizer;
	uint64_t max_rows, max_bytes; /* ceilings over all shards; 0 = none */
};

/* An input reference: >= 0 layer index, HPS_INPUT_DENSE the dense features. */
#define HPS_INPUT_DENSE (-1)

struct hps_layer {
	char *name;
	enum hps_op op;
	int *input; /* n_inputs references */
	uint32_t n_inputs;
	/* op arguments; those of other ops are zero */
	uint32_t table; /* EMBEDDING, NEGATIVES: index into tables */
	uint32_t *slot; /* EMBEDDING: n_slots slot numbers */
	uint32_t n_slots;
	enum hps_pooling pooling;
	uint32_t count;	      /* NEGATIVES */
	uint32_t begin, size; /* SLICE */
	uint32_t units;	      /* DENSE */
	int bias;	      /* DENSE: 1 by default */
	enum hps_act act;
	uint32_t cols; /* width of the output, settled by the reader */
};

struct hps_loss {
	enum hps_loss_kind kind;
	int input[3]; /* layer indices */
	uint32_t n_inputs;
	double margin; /* HINGE */
};

struct hps_model {
	char *name, *description;
	uint32_t slots, dense; /* inputs */
	struct {
		enum hps_transform transform; /* signed_log: sign(x) * log(1 + |x|) * scale */
		double scale, missing;	      /* missing: the value of a blank, after transform */
	} preprocess;
	struct hps_table_spec *table;
	uint32_t n_tables;
	struct hps_layer *layer;
	uint32_t n_layers;
	struct hps_loss loss;
	struct {
		uint64_t batch;		/* rows a step, over all replicas */
		uint32_t micro_batches; /* M: a step and first-stage replica */
		uint32_t epochs;
		enum hps_sync sync;
		struct hps_optimizer optimizer; /* dense parameters */
		uint64_t seed;
	} train;
	uint64_t digest; /* over inputs, preprocess, tables' name/dim/rows, layers, loss */
};

/* Limits that the reader enforces. */
/* What models, layers, types, hosts and jobs are called. */
#define HPS_NAME_RULE "a name (up to 128 of a-z A-Z 0-9 _ . -, the first a letter or digit)"
enum { HPS_NAME_LEN = 128 };
bool hps_name_ok(const char *s);

enum { HPS_MAX_LAYERS = 4096, HPS_MAX_SLOTS = 4096, HPS_MAX_TABLES = 256, HPS_MAX_COLS = 1 << 20 };
enum { HPS_MAX_BATCH = 1 << 30, HPS_MAX_MICRO_BATCHES = 65536, HPS_MAX_EPOCHS = 1000000 };
#define HPS_MAX_PARAMS	    ((uint64_t)1 << 36) /* dense parameters in all */
#define HPS_MAX_TABLE_BYTES ((uint64_t)1 << 62) /* rows * dim * 4 */

/* Checks everything that can be checked without data: names unique, references
 * backwards only, widths matching, no layer or table without a use. HPS_BAD_INPUT with the
 * place. On failure *m is empty. */
enum hps_status hps_model_read(const struct hps_at *at, struct hps_model *m, struct hps_err *err);
struct hps_doc *hps_model_write(const struct hps_model *m); /* NULL without memory */
void hps_model_release(struct hps_model *m);

/* The digest of a model whose cols are settled, never 0; the reader has put it in
 * m->digest. Descriptions, ceilings, optimizers and train do not change it. */
uint64_t hps_model_digest(const struct hps_model *m);

/* "16 hex digits" in documents. */
#define HPS_DIGEST_LEN 17
void hps_digest_text(uint64_t digest, char out[HPS_DIGEST_LEN]);

/* An optimizer of this kind with its defaults; members of other kinds are 0. */
void hps_optimizer_default(enum hps_optim_kind kind, struct hps_optimizer *o);

const char *hps_op_name(enum hps_op op);
const char *hps_optim_name(enum hps_optim_kind kind);
const char *hps_sync_name(enum hps_sync sync);
const char *hps_loss_name(enum hps_loss_kind kind);

#endif
