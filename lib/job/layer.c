/* Do the layers fit together? Reads layers and loss, resolves what they read, settles
 * every width, and refuses what could not be computed or is never used. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "job/job_int.h"

/* While reading: names of all layers, the ones below included, so that a cycle is told
 * from a typo; and stamps that find duplicates and unused things in linear time. */
struct reading {
	struct hps_model *m;
	struct hps_index names;
	uint32_t *seen_layer; /* n_layers + 1: 1 + the last reader; [n_layers]: dense features */
	uint32_t *seen_slot;  /* slots: 1 + the last embedding */
	bool *used_layer;     /* n_layers */
	bool *used_table;     /* n_tables */
	uint64_t params;      /* floats */
};

static uint32_t ref_cols(const struct hps_model *m, int ref)
{
	return ref == HPS_INPUT_DENSE ? m->dense : m->layer[ref].cols;
}

static const char *ref_name(const struct hps_model *m, int ref)
{
	return ref == HPS_INPUT_DENSE ? "dense" : m->layer[ref].name;
}

/* Resolve the name at `at`, read by layer `reader` (n_layers: the loss). */
static enum hps_status read_ref(struct reading *r, const struct hps_at *at, uint32_t reader,
				int *ref, struct hps_err *err)
{
	const struct hps_model *m = r->m;
	bool loss = reader == m->n_layers;
	enum hps_status rc;
	const char *s;
	int64_t found;
	uint32_t *seen;

	rc = hps_at_string(at, &s, err);
	if (rc)
		return rc;
	if (!strcmp(s, "dense")) {
		if (loss)
			return hps_at_error(at, err, "a loss reads layers, not the dense features");
		if (!m->dense)
			return hps_at_error(at, err,
					    "there are no dense features: "
					    "inputs.dense is 0");
		*ref = HPS_INPUT_DENSE;
		seen = &r->seen_layer[m->n_layers];
	} else {
		found = hps_index_find(&r->names, s);
		if (found < 0) {
			rc = hps_at_error(at, err, "no layer is named \"%s\"", s);
			hps_err_hint(err, "a layer reads earlier layers by name, or \"dense\", "
					  "the dense features");
			return rc;
		}
		if (found == reader)
			return hps_at_error(at, err, "layer \"%s\" reads itself: a cycle", s);
		if (found > reader)
			return hps_at_error(at, err,
					    "\"%s\" names a later layer: layers stand in "
					    "topological order; a cycle?",
					    s);
		*ref = (int)found;
		r->used_layer[found] = true;
		seen = &r->seen_layer[found];
	}
	if (*seen == reader + 1)
		return hps_at_error(at, err, "\"%s\" is named twice", s);
	*seen = reader + 1;
	return HPS_OK;
}

static enum hps_status read_inputs(struct reading *r, const struct hps_at *at, uint32_t i,
				   size_t min, size_t max, struct hps_err *err)
{
	struct hps_layer *l = &r->m->layer[i];
	struct hps_at inputs;
	enum hps_status rc;
	uint32_t n;

	rc = hps_get_array(at, "inputs", HPS_REQUIRED, min, max, &inputs, &n, err);
	if (rc)
		return rc;
	l->input = hps_calloc(n, sizeof(*l->input), err);
	if (!l->input)
		return HPS_MEMORY;
	l->n_inputs = n;
	for (uint32_t k = 0; k < n && !rc; k++) {
		struct hps_at item = hps_at_item(&inputs, k);

		rc = read_ref(r, &item, i, &l->input[k], err);
	}
	return rc;
}

/* --- one reader an op; *cols in 64 bits, checked by the caller --- */

static enum hps_status read_table_ref(struct reading *r, const struct hps_at *at,
				      struct hps_layer *l, struct hps_err *err)
{
	struct hps_at table = hps_at_member(at, "table");
	enum hps_status rc;
	const char *s;

	rc = hps_at_string(&table, &s, err);
	if (rc)
		return rc;
	for (l->table = 0; l->table < r->m->n_tables; l->table++) {
		if (!strcmp(r->m->table[l->table].name, s)) {
			r->used_table[l->table] = true;
			return HPS_OK;
		}
	}
	l->table = 0;
	return hps_at_error(&table, err, "no table is named \"%s\"", s);
}

static enum hps_status read_pooling(const struct reading *r, const struct hps_at *at,
				    struct hps_layer *l, uint32_t keys, uint64_t *cols,
				    struct hps_err *err)
{
	uint32_t dim = r->m->table[l->table].dim;
	int pooling = HPS_POOL_CONCAT;
	enum hps_status rc;

	rc = hps_get_choice(at, "pooling", HPS_OPTIONAL, hps_pooling_names,
			    HPS_COUNT(hps_pooling_names), &pooling, err);
	l->pooling = (enum hps_pooling)pooling;
	*cols = l->pooling == HPS_POOL_CONCAT ? (uint64_t)keys * dim : dim;
	return rc;
}

static enum hps_status read_embedding(struct reading *r, const struct hps_at *at, uint32_t i,
				      uint64_t *cols, struct hps_err *err)
{
	struct hps_model *m = r->m;
	struct hps_layer *l = &m->layer[i];
	struct hps_at slots = hps_at_member(at, "slots");
	enum hps_status rc;
	uint32_t n;

	rc = read_table_ref(r, at, l, err);
	if (rc)
		return rc;
	if (!m->slots)
		return hps_at_error(&slots, err, "there are no slots: inputs.slots is 0");
	rc = hps_get_array(at, "slots", HPS_REQUIRED, 1, HPS_MAX_SLOTS, &slots, &n, err);
	if (rc)
		return rc;
	l->slot = hps_calloc(n, sizeof(*l->slot), err);
	if (!l->slot)
		return HPS_MEMORY;
	for (l->n_slots = 0; l->n_slots < n; l->n_slots++) {
		struct hps_at item = hps_at_item(&slots, l->n_slots);
		int64_t v;

		rc = hps_at_int(&item, 0, m->slots - 1, &v, err);
		if (rc)
			return rc;
		if (r->seen_slot[v] == i + 1)
			return hps_at_error(&item, err, "slot %d is named twice", (int)v);
		r->seen_slot[v] = i + 1;
		l->slot[l->n_slots] = (uint32_t)v;
	}
	return read_pooling(r, at, l, n, cols, err);
}

static enum hps_status read_negatives(struct reading *r, const struct hps_at *at, uint32_t i,
				      uint64_t *cols, struct hps_err *err)
{
	struct hps_layer *l = &r->m->layer[i];
	struct hps_at table = hps_at_member(at, "table");
	enum hps_status rc;

	rc = read_table_ref(r, at, l, err);
	if (!rc && !r->m->table[l->table].rows)
		return hps_at_error(&table, err,
				    "negatives are drawn over a table's rows, and those of \"%s\" "
				    "are whole 64-bit keys (rows 0)",
				    r->m->table[l->table].name);
	if (!rc)
		rc = hps_get_u32(at, "count", HPS_REQUIRED, 1, HPS_MAX_COLS, &l->count, err);
	if (!rc)
		rc = read_pooling(r, at, l, l->count, cols, err);
	return rc;
}

static enum hps_status read_concat(struct reading *r, const struct hps_at *at, uint32_t i,
				   uint64_t *cols, struct hps_err *err)
{
	const struct hps_layer *l = &r->m->layer[i];
	enum hps_status rc = read_inputs(r, at, i, 1, HPS_MAX_LAYERS, err);

	*cols = 0;
	for (uint32_t k = 0; !rc && k < l->n_inputs; k++)
		*cols += ref_cols(r->m, l->input[k]);
	return rc;
}

static enum hps_status read_slice(struct reading *r, const struct hps_at *at, uint32_t i,
				  uint64_t *cols, struct hps_err *err)
{
	struct hps_layer *l = &r->m->layer[i];
	struct hps_at size = hps_at_member(at, "size");
	enum hps_status rc;
	uint32_t have;

	rc = read_inputs(r, at, i, 1, 1, err);
	if (!rc)
		rc = hps_get_u32(at, "begin", HPS_OPTIONAL, 0, HPS_MAX_COLS, &l->begin, err);
	if (!rc)
		rc = hps_get_u32(at, "size", HPS_REQUIRED, 1, HPS_MAX_COLS, &l->size, err);
	if (rc)
		return rc;
	have = ref_cols(r->m, l->input[0]);
	if ((uint64_t)l->begin + l->size > have)
		return hps_at_error(&size, err,
				    "columns %u..%llu of \"%s\", which has columns 0..%u", l->begin,
				    (unsigned long long)l->begin + l->size - 1,
				    ref_name(r->m, l->input[0]), have - 1);
	*cols = l->size;
	return HPS_OK;
}

static enum hps_status read_dense(struct reading *r, const struct hps_at *at, uint32_t i,
				  uint64_t *cols, struct hps_err *err)
{
	struct hps_layer *l = &r->m->layer[i];
	struct hps_at units = hps_at_member(at, "units");
	int act = HPS_ACT_LINEAR;
	bool bias = true;
	enum hps_status rc;

	rc = read_inputs(r, at, i, 1, 1, err);
	if (!rc)
		rc = hps_get_u32(at, "units", HPS_REQUIRED, 1, HPS_MAX_COLS, &l->units, err);
	if (!rc)
		rc = hps_get_choice(at, "activation", HPS_OPTIONAL, hps_act_names,
				    HPS_COUNT(hps_act_names), &act, err);
	if (!rc)
		rc = hps_get_bool(at, "bias", HPS_OPTIONAL, &bias, err);
	if (rc)
		return rc;
	l->act = (enum hps_act)act;
	l->bias = bias;
	*cols = l->units;
	/* Both factors are at most 2^20, and the sum so far at most 2^36. */
	r->params += (uint64_t)l->units * (ref_cols(r->m, l->input[0]) + (bias ? 1 : 0));
	if (r->params > HPS_MAX_PARAMS)
		return hps_at_error(&units, err,
				    "%llu dense parameters up to here, at most 2^36 in all",
				    (unsigned long long)r->params);
	return HPS_OK;
}

static enum hps_status read_cosine(struct reading *r, const struct hps_at *at, uint32_t i,
				   uint64_t *cols, struct hps_err *err)
{
	const struct hps_layer *l = &r->m->layer[i];
	struct hps_at inputs = hps_at_member(at, "inputs");
	enum hps_status rc = read_inputs(r, at, i, 2, 2, err);
	uint32_t a, b;

	if (rc)
		return rc;
	a = ref_cols(r->m, l->input[0]);
	b = ref_cols(r->m, l->input[1]);
	if (a != b)
		return hps_at_error(&inputs, err,
				    "a cosine needs two inputs of equal width: "
				    "\"%s\" has %u columns, \"%s\" %u",
				    ref_name(r->m, l->input[0]), a, ref_name(r->m, l->input[1]), b);
	*cols = 1;
	return HPS_OK;
}

/* --- the ops, by enum hps_op --- */

#define COMMON "name", "op", "description", "comment"

static const char *const embedding_members[] = { COMMON, "table", "slots", "pooling", NULL };
static const char *const negatives_members[] = { COMMON, "table", "count", "pooling", NULL };
static const char *const concat_members[] = { COMMON, "inputs", NULL };
static const char *const slice_members[] = { COMMON, "inputs", "begin", "size", NULL };
static const char *const dense_members[] = {
	COMMON, "inputs", "units", "bias", "activation", NULL
};

static const struct op_reader {
	const char *const *members;
	enum hps_status (*read)(struct reading *r, const struct hps_at *at, uint32_t i,
				uint64_t *cols, struct hps_err *err);
} op_readers[] = {
	[HPS_OP_EMBEDDING] = { embedding_members, read_embedding },
	[HPS_OP_NEGATIVES] = { negatives_members, read_negatives },
	[HPS_OP_CONCAT] = { concat_members, read_concat },
	[HPS_OP_SLICE] = { slice_members, read_slice },
	[HPS_OP_DENSE] = { dense_members, read_dense },
	[HPS_OP_COSINE] = { concat_members, read_cosine },
};

static enum hps_status read_layer(struct reading *r, const struct hps_at *at, uint32_t i,
				  struct hps_err *err)
{
	struct hps_layer *l = &r->m->layer[i];
	enum hps_status rc;
	uint64_t cols = 0;
	int op = 0;

	rc = hps_get_choice(at, "op", HPS_REQUIRED, hps_op_names, HPS_COUNT(hps_op_names), &op,
			    err);
	if (rc)
		return rc;
	l->op = (enum hps_op)op;
	rc = hps_at_only(at, op_readers[op].members, err);
	if (!rc)
		rc = op_readers[op].read(r, at, i, &cols, err);
	if (rc)
		return rc;
	if (cols > HPS_MAX_COLS)
		return hps_at_error(at, err, "layer \"%s\" has %llu columns, at most %d", l->name,
				    (unsigned long long)cols, HPS_MAX_COLS);
	l->cols = (uint32_t)cols;
	return HPS_OK;
}

static enum hps_status read_names(struct reading *r, const struct hps_at *at, struct hps_err *err)
{
	struct hps_model *m = r->m;
	enum hps_status rc;

	for (uint32_t i = 0; i < m->n_layers; i++) {
		struct hps_at item = hps_at_item(at, i);
		struct hps_at name = hps_at_member(&item, "name");
		uint32_t first;

		rc = hps_at_object(&item, err);
		if (!rc)
			rc = hps_get_name(&item, "name", HPS_REQUIRED, &m->layer[i].name, err);
		if (rc)
			return rc;
		if (!strcmp(m->layer[i].name, "dense"))
			return hps_at_error(&name, err,
					    "\"dense\" names the dense features; "
					    "a layer needs another name");
		first = hps_index_add(&r->names, m->layer[i].name, i);
		if (first != i)
			return hps_at_error(&name, err, "\"%s\" is the name of layers[%u] already",
					    m->layer[i].name, first);
	}
	return HPS_OK;
}

/* --- loss --- */

static enum hps_status need_cols(const struct hps_model *m, const struct hps_at *inputs, uint32_t k,
				 uint32_t cols, struct hps_err *err)
{
	struct hps_at item = hps_at_item(inputs, k);
	int ref = m->loss.input[k];

	if (m->layer[ref].cols == cols)
		return HPS_OK;
	return hps_at_error(&item, err, "loss %s reads exactly %u column%s here, \"%s\" has %u",
			    hps_loss_name(m->loss.kind), cols, cols == 1 ? "" : "s",
			    m->layer[ref].name, m->layer[ref].cols);
}

static enum hps_status check_loss(const struct hps_model *m, const struct hps_at *inputs,
				  struct hps_err *err)
{
	struct hps_at noise = hps_at_item(inputs, 2);
	enum hps_status rc = HPS_OK;
	uint32_t dim, have;

	switch (m->loss.kind) {
	case HPS_LOSS_SIGMOID_CE:
		return need_cols(m, inputs, 0, 1, err);
	case HPS_LOSS_SOFTMAX_CE:
		return need_cols(m, inputs, 0, 2, err);
	case HPS_LOSS_HINGE:
		rc = need_cols(m, inputs, 0, 1, err);
		return rc ? rc : need_cols(m, inputs, 1, 1, err);
	case HPS_LOSS_NCE:
		dim = m->layer[m->loss.input[0]].cols;
		rc = need_cols(m, inputs, 1, dim, err);
		have = m->layer[m->loss.input[2]].cols;
		if (!rc && have % dim)
			return hps_at_error(&noise, err,
					    "loss nce reads a multiple of %u columns here, "
					    "\"%s\" has %u",
					    dim, m->layer[m->loss.input[2]].name, have);
		return rc;
	}
	return rc;
}

static enum hps_status read_loss(struct reading *r, const struct hps_at *root, struct hps_err *err)
{
	static const char *const plain[] = { "kind", "inputs", "description", "comment", NULL };
	static const char *const hinge[] = { "kind",	    "inputs",  "margin",
					     "description", "comment", NULL };
	static const uint32_t n_inputs[] = { 1, 1, 2, 3 };
	struct hps_model *m = r->m;
	struct hps_at at = hps_at_member(root, "loss");
	struct hps_at inputs;
	enum hps_status rc;
	int kind = 0;

	rc = hps_at_object(&at, err);
	if (!rc)
		rc = hps_get_choice(&at, "kind", HPS_REQUIRED, hps_loss_names,
				    HPS_COUNT(hps_loss_names), &kind, err);
	if (rc)
		return rc;
	m->loss.kind = (enum hps_loss_kind)kind;
	rc = hps_at_only(&at, kind == HPS_LOSS_HINGE ? hinge : plain, err);
	if (!rc)
		rc = hps_get_array(&at, "inputs", HPS_REQUIRED, n_inputs[kind], n_inputs[kind],
				   &inputs, &m->loss.n_inputs, err);
	for (uint32_t k = 0; !rc && k < m->loss.n_inputs; k++) {
		struct hps_at item = hps_at_item(&inputs, k);

		rc = read_ref(r, &item, m->n_layers, &m->loss.input[k], err);
	}
	if (!rc && kind == HPS_LOSS_HINGE) {
		m->loss.margin = 1;
		rc = hps_get_positive(&at, "margin", HPS_OPTIONAL, 1e6, &m->loss.margin, err);
	}
	return rc ? rc : check_loss(m, &inputs, err);
}

static enum hps_status check_used(const struct reading *r, const struct hps_at *root,
				  const struct hps_at *layers, struct hps_err *err)
{
	const struct hps_model *m = r->m;
	struct hps_at tables = hps_at_member(root, "tables");

	for (uint32_t i = 0; i < m->n_layers; i++) {
		struct hps_at item = hps_at_item(layers, i);

		if (!r->used_layer[i])
			return hps_at_error(&item, err,
					    "layer \"%s\" is read by no later layer, nor the loss",
					    m->layer[i].name);
	}
	for (uint32_t i = 0; i < m->n_tables; i++) {
		struct hps_at item = hps_at_item(&tables, i);

		if (!r->used_table[i])
			return hps_at_error(&item, err, "table \"%s\" is used by no layer",
					    m->table[i].name);
	}
	return HPS_OK;
}

enum hps_status hps_layers_read(const struct hps_at *at, struct hps_model *m, struct hps_err *err)
{
	struct reading r = { .m = m };
	struct hps_at layers;
	enum hps_status rc;
	uint32_t n;

	rc = hps_get_array(at, "layers", HPS_REQUIRED, 1, HPS_MAX_LAYERS, &layers, &n, err);
	if (rc)
		return rc;
	m->layer = hps_calloc(n, sizeof(*m->layer), err);
	if (!m->layer)
		return HPS_MEMORY;
	m->n_layers = n;
	r.seen_layer = hps_calloc(n + 1, sizeof(*r.seen_layer), err);
	r.seen_slot = hps_calloc(m->slots, sizeof(*r.seen_slot), err);
	r.used_layer = hps_calloc(n, sizeof(*r.used_layer), err);
	r.used_table = hps_calloc(m->n_tables, sizeof(*r.used_table), err);
	if (!r.seen_layer || !r.seen_slot || !r.used_layer || !r.used_table)
		rc = HPS_MEMORY;
	if (!rc)
		rc = hps_index_init(&r.names, n, err);
	if (!rc)
		rc = read_names(&r, &layers, err);
	for (uint32_t i = 0; !rc && i < n; i++) {
		struct hps_at item = hps_at_item(&layers, i);

		rc = read_layer(&r, &item, i, err);
	}
	if (!rc)
		rc = read_loss(&r, at, err);
	if (!rc)
		rc = check_used(&r, at, &layers, err);
	hps_index_release(&r.names);
	free(r.seen_layer);
	free(r.seen_slot);
	free(r.used_layer);
	free(r.used_table);
	return rc;
}
