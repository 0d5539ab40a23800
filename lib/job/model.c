/* What is trained? Reads and checks the model section: inputs, preprocessing, tables,
 * training defaults; the layers are read in layer.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "job/job_int.h"

const char *const hps_act_names[4] = { "linear", "relu", "sigmoid", "tanh" };
const char *const hps_pooling_names[3] = { "sum", "mean", "concat" };
const char *const hps_op_names[6] = {
	"embedding", "negatives", "concat", "slice", "dense", "cosine"
};
const char *const hps_loss_names[4] = { "sigmoid_cross_entropy", "softmax_cross_entropy", "hinge",
					"nce" };
const char *const hps_optim_names[3] = { "sgd", "adagrad", "adam" };
const char *const hps_init_names[2] = { "zero", "uniform" };
const char *const hps_sync_names[2] = { "bsp", "asp" };
const char *const hps_transform_names[2] = { "none", "signed_log" };

const char *hps_op_name(enum hps_op op)
{
	return hps_op_names[op];
}

const char *hps_optim_name(enum hps_optim_kind kind)
{
	return hps_optim_names[kind];
}

const char *hps_sync_name(enum hps_sync sync)
{
	return hps_sync_names[sync];
}

const char *hps_loss_name(enum hps_loss_kind kind)
{
	return hps_loss_names[kind];
}

/* --- optimizers --- */

void hps_optimizer_default(enum hps_optim_kind kind, struct hps_optimizer *o)
{
	memset(o, 0, sizeof(*o));
	o->kind = kind;
	switch (kind) {
	case HPS_SGD:
		o->lr = 0.01;
		break;
	case HPS_ADAGRAD:
		o->lr = 0.05;
		o->accumulator = 0.1;
		o->eps = 1e-10;
		break;
	case HPS_ADAM:
		o->lr = 0.001;
		o->eps = 1e-8;
		o->beta1 = 0.9;
		o->beta2 = 0.999;
		break;
	}
}

/* A decay in [0, 1): at 1 the mean would never move. */
static enum hps_status read_decay(const struct hps_at *at, const char *key, double *out,
				  struct hps_err *err)
{
	enum hps_status rc = hps_get_double(at, key, HPS_OPTIONAL, 0, 1, out, err);
	struct hps_at m = hps_at_member(at, key);

	if (!rc && *out >= 1)
		return hps_at_expected(&m, err, "a number >= 0 and < 1");
	return rc;
}

static enum hps_status read_kind(const struct hps_at *at, int *kind, struct hps_err *err)
{
	static const char *const later[] = { "ftrl", "momentum" };
	struct hps_at m = hps_at_member(at, "kind");
	enum hps_status rc;
	const char *s;

	rc = hps_at_string(&m, &s, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < HPS_COUNT(later); i++)
		if (!strcmp(s, later[i]))
			return hps_at_error(&m, err,
					    "%s is not built yet; sgd, adagrad and adam are", s);
	return hps_at_choice(&m, hps_optim_names, HPS_COUNT(hps_optim_names), kind, err);
}

/* Absent: *o stays as it is. */
static enum hps_status read_optimizer(const struct hps_at *up, struct hps_optimizer *o,
				      struct hps_err *err)
{
	static const char *const sgd[] = { "kind", "lr", "description", "comment", NULL };
	static const char *const adagrad[] = { "kind",	      "lr",	 "accumulator", "eps",
					       "description", "comment", NULL };
	static const char *const adam[] = { "kind", "lr",	   "beta1",   "beta2",
					    "eps",  "description", "comment", NULL };
	static const char *const *const members[] = { sgd, adagrad, adam };
	struct hps_at at = hps_at_member(up, "optimizer");
	enum hps_status rc;
	int kind = 0;

	if (hps_at_absent(&at))
		return HPS_OK;
	rc = hps_at_object(&at, err);
	if (!rc)
		rc = read_kind(&at, &kind, err);
	if (!rc)
		rc = hps_at_only(&at, members[kind], err);
	if (rc)
		return rc;
	hps_optimizer_default((enum hps_optim_kind)kind, o);
	rc = hps_get_positive(&at, "lr", HPS_OPTIONAL, 1e6, &o->lr, err);
	if (!rc && kind == HPS_ADAGRAD)
		rc = hps_get_double(&at, "accumulator", HPS_OPTIONAL, 0, 1e30, &o->accumulator,
				    err);
	if (!rc && kind != HPS_SGD)
		rc = hps_get_positive(&at, "eps", HPS_OPTIONAL, 1e6, &o->eps, err);
	if (!rc && kind == HPS_ADAM)
		rc = read_decay(&at, "beta1", &o->beta1, err);
	if (!rc && kind == HPS_ADAM)
		rc = read_decay(&at, "beta2", &o->beta2, err);
	return rc;
}

/* --- inputs and preprocessing --- */

static enum hps_status read_inputs(const struct hps_at *root, struct hps_model *m,
				   struct hps_err *err)
{
	static const char *const members[] = { "slots", "dense", "description", "comment", NULL };
	struct hps_at at = hps_at_member(root, "inputs");
	enum hps_status rc;

	rc = hps_at_object(&at, err);
	if (!rc)
		rc = hps_at_only(&at, members, err);
	if (!rc)
		rc = hps_get_u32(&at, "slots", HPS_OPTIONAL, 0, HPS_MAX_SLOTS, &m->slots, err);
	if (!rc)
		rc = hps_get_u32(&at, "dense", HPS_OPTIONAL, 0, HPS_MAX_COLS, &m->dense, err);
	if (!rc && !m->slots && !m->dense)
		return hps_at_error(&at, err, "a model needs slots or dense features, both are 0");
	return rc;
}

static enum hps_status read_preprocess(const struct hps_at *root, struct hps_model *m,
				       struct hps_err *err)
{
	static const char *const members[] = { "dense", "description", "comment", NULL };
	static const char *const rule[] = { "transform",   "scale",   "missing",
					    "description", "comment", NULL };
	struct hps_at at = hps_at_member(root, "preprocess");
	struct hps_at dense;
	enum hps_status rc;
	int transform = HPS_TRANSFORM_SIGNED_LOG;

	m->preprocess.transform = HPS_TRANSFORM_SIGNED_LOG;
	m->preprocess.scale = 1;
	m->preprocess.missing = 0;
	if (hps_at_absent(&at))
		return HPS_OK;
	rc = hps_at_object(&at, err);
	if (!rc)
		rc = hps_at_only(&at, members, err);
	dense = hps_at_member(&at, "dense");
	if (rc || hps_at_absent(&dense))
		return rc;
	rc = hps_at_object(&dense, err);
	if (!rc)
		rc = hps_at_only(&dense, rule, err);
	if (!rc)
		rc = hps_get_choice(&dense, "transform", HPS_OPTIONAL, hps_transform_names,
				    HPS_COUNT(hps_transform_names), &transform, err);
	if (!rc)
		rc = hps_get_positive(&dense, "scale", HPS_OPTIONAL, 1e6, &m->preprocess.scale,
				      err);
	if (!rc)
		rc = hps_get_double(&dense, "missing", HPS_OPTIONAL, -1e6, 1e6,
				    &m->preprocess.missing, err);
	m->preprocess.transform = (enum hps_transform)transform;
	return rc;
}

/* --- tables --- */

static enum hps_status read_init(const struct hps_at *up, struct hps_table_spec *t,
				 struct hps_err *err)
{
	static const char *const uniform[] = { "kind", "scale", "description", "comment", NULL };
	static const char *const zero[] = { "kind", "description", "comment", NULL };
	struct hps_at at = hps_at_member(up, "init");
	enum hps_status rc;
	int kind = HPS_INIT_UNIFORM;

	t->init = HPS_INIT_UNIFORM;
	t->init_scale = 0.01;
	if (hps_at_absent(&at))
		return HPS_OK;
	rc = hps_at_object(&at, err);
	if (!rc)
		rc = hps_get_choice(&at, "kind", HPS_OPTIONAL, hps_init_names,
				    HPS_COUNT(hps_init_names), &kind, err);
	if (!rc)
		rc = hps_at_only(&at, kind == HPS_INIT_ZERO ? zero : uniform, err);
	if (rc)
		return rc;
	t->init = (enum hps_init_kind)kind;
	if (t->init == HPS_INIT_ZERO) {
		t->init_scale = 0;
		return HPS_OK;
	}
	return hps_get_positive(&at, "scale", HPS_OPTIONAL, 1e6, &t->init_scale, err);
}

static enum hps_status read_table(const struct hps_at *at, struct hps_table_spec *t,
				  struct hps_err *err)
{
	static const char *const members[] = { "name",	    "dim",	"rows",	     "init",
					       "optimizer", "max_rows", "max_bytes", "description",
					       "comment",   NULL };
	struct hps_at rows = hps_at_member(at, "rows");
	enum hps_status rc;

	hps_optimizer_default(HPS_ADAGRAD, &t->optimizer);
	rc = hps_at_object(at, err);
	if (!rc)
		rc = hps_at_only(at, members, err);
	if (!rc)
		rc = hps_get_name(at, "name", HPS_REQUIRED, &t->name, err);
	if (!rc)
		rc = hps_get_u32(at, "dim", HPS_REQUIRED, 1, HPS_MAX_COLS, &t->dim, err);
	if (!rc)
		rc = hps_get_u64(at, "rows", HPS_OPTIONAL, 0, UINT64_MAX, &t->rows, err);
	if (!rc && t->rows > HPS_MAX_TABLE_BYTES / 4 / t->dim)
		return hps_at_error(&rows, err,
				    "%llu rows of %u floats are more than 2^62 bytes; "
				    "0 takes whole 64-bit keys",
				    (unsigned long long)t->rows, t->dim);
	if (!rc)
		rc = read_init(at, t, err);
	if (!rc)
		rc = read_optimizer(at, &t->optimizer, err);
	if (!rc)
		rc = hps_get_u64(at, "max_rows", HPS_OPTIONAL, 0, UINT64_MAX, &t->max_rows, err);
	if (!rc)
		rc = hps_get_u64(at, "max_bytes", HPS_OPTIONAL, 0, UINT64_MAX, &t->max_bytes, err);
	return rc;
}

static enum hps_status read_tables(const struct hps_at *root, struct hps_model *m,
				   struct hps_err *err)
{
	struct hps_at at;
	enum hps_status rc;
	uint32_t n;

	rc = hps_get_array(root, "tables", HPS_OPTIONAL, 0, HPS_MAX_TABLES, &at, &n, err);
	if (rc)
		return rc;
	m->table = hps_calloc(n, sizeof(*m->table), err);
	if (!m->table)
		return HPS_MEMORY;
	for (; m->n_tables < n; m->n_tables++) {
		struct hps_table_spec *t = &m->table[m->n_tables];
		struct hps_at item = hps_at_item(&at, m->n_tables);
		struct hps_at name = hps_at_member(&item, "name");

		rc = read_table(&item, t, err);
		for (uint32_t i = 0; !rc && i < m->n_tables; i++)
			if (!strcmp(m->table[i].name, t->name))
				rc = hps_at_error(&name, err,
						  "\"%s\" is the name of tables[%u] already",
						  t->name, i);
		if (rc) {
			free(t->name);
			return rc;
		}
	}
	return HPS_OK;
}

/* --- training defaults --- */

static enum hps_status read_train(const struct hps_at *root, struct hps_model *m,
				  struct hps_err *err)
{
	static const char *const members[] = { "batch",	      "micro_batches", "epochs",
					       "sync",	      "optimizer",     "seed",
					       "description", "comment",       NULL };
	struct hps_at at = hps_at_member(root, "train");
	struct hps_at micro;
	enum hps_status rc;

	m->train.batch = 1000;
	m->train.micro_batches = 1;
	m->train.epochs = 1;
	m->train.sync = HPS_BSP;
	m->train.seed = 1;
	hps_optimizer_default(HPS_ADAM, &m->train.optimizer);
	if (hps_at_absent(&at))
		return HPS_OK;
	rc = hps_at_object(&at, err);
	if (!rc)
		rc = hps_at_only(&at, members, err);
	if (!rc)
		rc = hps_get_u64(&at, "batch", HPS_OPTIONAL, 1, HPS_MAX_BATCH, &m->train.batch,
				 err);
	if (!rc)
		rc = hps_get_u32(&at, "micro_batches", HPS_OPTIONAL, 1, HPS_MAX_MICRO_BATCHES,
				 &m->train.micro_batches, err);
	micro = hps_at_member(&at, "micro_batches");
	if (!rc && m->train.micro_batches > m->train.batch)
		return hps_at_error(&micro, err, "%u micro-batches of a batch of %llu rows",
				    m->train.micro_batches, (unsigned long long)m->train.batch);
	if (!rc)
		rc = hps_get_u32(&at, "epochs", HPS_OPTIONAL, 1, HPS_MAX_EPOCHS, &m->train.epochs,
				 err);
	if (!rc)
		rc = hps_get_sync(&at, "sync", HPS_OPTIONAL, &m->train.sync, err);
	if (!rc)
		rc = read_optimizer(&at, &m->train.optimizer, err);
	if (!rc)
		rc = hps_get_u64(&at, "seed", HPS_OPTIONAL, 0, UINT64_MAX, &m->train.seed, err);
	return rc;
}

enum hps_status hps_model_read(const struct hps_at *at, struct hps_model *m, struct hps_err *err)
{
	static const char *const members[] = { "name",	     "description", "comment", "inputs",
					       "preprocess", "tables",	    "layers",  "loss",
					       "train",	     NULL };
	enum hps_status rc;

	memset(m, 0, sizeof(*m));
	rc = hps_at_object(at, err);
	if (!rc)
		rc = hps_at_only(at, members, err);
	if (!rc)
		rc = hps_get_name(at, "name", HPS_REQUIRED, &m->name, err);
	if (!rc)
		rc = hps_get_text(at, "description", HPS_OPTIONAL, HPS_TEXT_LEN, &m->description,
				  err);
	if (!rc)
		rc = read_inputs(at, m, err);
	if (!rc)
		rc = read_preprocess(at, m, err);
	if (!rc)
		rc = read_tables(at, m, err);
	if (!rc)
		rc = hps_layers_read(at, m, err);
	if (!rc)
		rc = read_train(at, m, err);
	if (rc)
		hps_model_release(m);
	else
		m->digest = hps_model_digest(m);
	return rc;
}

void hps_model_release(struct hps_model *m)
{
	for (uint32_t i = 0; i < m->n_tables; i++)
		free(m->table[i].name);
	for (uint32_t i = 0; i < m->n_layers; i++) {
		free(m->layer[i].name);
		free(m->layer[i].input);
		free(m->layer[i].slot);
	}
	free(m->table);
	free(m->layer);
	free(m->name);
	free(m->description);
	memset(m, 0, sizeof(*m));
}
