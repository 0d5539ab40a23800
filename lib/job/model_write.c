/* A model as a document, every default written out, and the digest that ties profiles,
 * plans and deployments to it. */
#include "job/job_int.h"

static struct hps_doc *write_optimizer(const struct hps_optimizer *o)
{
	struct hps_doc *d = hps_doc_object();
	int failed;

	failed = !d || hps_doc_put(d, "kind", hps_doc_string(hps_optim_name(o->kind))) ||
		 hps_doc_put(d, "lr", hps_doc_double(o->lr));
	if (!failed && o->kind == HPS_ADAGRAD)
		failed = hps_doc_put(d, "accumulator", hps_doc_double(o->accumulator));
	if (!failed && o->kind == HPS_ADAM)
		failed = hps_doc_put(d, "beta1", hps_doc_double(o->beta1)) ||
			 hps_doc_put(d, "beta2", hps_doc_double(o->beta2));
	if (!failed && o->kind != HPS_SGD)
		failed = hps_doc_put(d, "eps", hps_doc_double(o->eps));
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_inputs(const struct hps_model *m)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(d, !d || hps_doc_put(d, "slots", hps_doc_int(m->slots)) ||
					 hps_doc_put(d, "dense", hps_doc_int(m->dense)));
}

static struct hps_doc *write_preprocess(const struct hps_model *m)
{
	const char *transform = hps_transform_names[m->preprocess.transform];
	struct hps_doc *rule = hps_doc_object();
	struct hps_doc *d;

	if (!rule || hps_doc_put(rule, "transform", hps_doc_string(transform)) ||
	    hps_doc_put(rule, "scale", hps_doc_double(m->preprocess.scale)) ||
	    hps_doc_put(rule, "missing", hps_doc_double(m->preprocess.missing)))
		return hps_doc_finish(rule, 1);
	d = hps_doc_object();
	if (!d)
		return hps_doc_finish(rule, 1);
	return hps_doc_finish(d, hps_doc_put(d, "dense", rule));
}

static struct hps_doc *write_init(const struct hps_table_spec *t)
{
	struct hps_doc *d = hps_doc_object();
	int failed;

	failed = !d || hps_doc_put(d, "kind", hps_doc_string(hps_init_names[t->init]));
	if (!failed && t->init == HPS_INIT_UNIFORM)
		failed = hps_doc_put(d, "scale", hps_doc_double(t->init_scale));
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_table(const struct hps_table_spec *t)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(d,
			      !d || hps_doc_put(d, "name", hps_doc_string(t->name)) ||
				      hps_doc_put(d, "dim", hps_doc_int(t->dim)) ||
				      hps_doc_put(d, "rows", hps_doc_u64(t->rows)) ||
				      hps_doc_put(d, "init", write_init(t)) ||
				      hps_doc_put(d, "optimizer", write_optimizer(&t->optimizer)) ||
				      hps_doc_put(d, "max_rows", hps_doc_u64(t->max_rows)) ||
				      hps_doc_put(d, "max_bytes", hps_doc_u64(t->max_bytes)));
}

static struct hps_doc *write_tables(const struct hps_model *m)
{
	struct hps_doc *d = hps_doc_array();
	int failed = !d;

	for (uint32_t i = 0; !failed && i < m->n_tables; i++)
		failed = hps_doc_add(d, write_table(&m->table[i]));
	return hps_doc_finish(d, failed);
}

/* Names of layers read. */
static struct hps_doc *write_refs(const struct hps_model *m, const int *ref, uint32_t n)
{
	struct hps_doc *d = hps_doc_array();
	int failed = !d;

	for (uint32_t i = 0; !failed && i < n; i++)
		failed = hps_doc_add(d, hps_doc_string(ref[i] == HPS_INPUT_DENSE
							       ? "dense"
							       : m->layer[ref[i]].name));
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_slots(const struct hps_layer *l)
{
	struct hps_doc *d = hps_doc_array();
	int failed = !d;

	for (uint32_t i = 0; !failed && i < l->n_slots; i++)
		failed = hps_doc_add(d, hps_doc_int(l->slot[i]));
	return hps_doc_finish(d, failed);
}

static int put_args(const struct hps_model *m, const struct hps_layer *l, struct hps_doc *d)
{
	switch (l->op) {
	case HPS_OP_EMBEDDING:
	case HPS_OP_NEGATIVES:
		return hps_doc_put(d, "table", hps_doc_string(m->table[l->table].name)) ||
		       (l->op == HPS_OP_EMBEDDING
				? hps_doc_put(d, "slots", write_slots(l))
				: hps_doc_put(d, "count", hps_doc_int(l->count))) ||
		       hps_doc_put(d, "pooling", hps_doc_string(hps_pooling_names[l->pooling]));
	case HPS_OP_SLICE:
		return hps_doc_put(d, "begin", hps_doc_int(l->begin)) ||
		       hps_doc_put(d, "size", hps_doc_int(l->size));
	case HPS_OP_DENSE:
		return hps_doc_put(d, "units", hps_doc_int(l->units)) ||
		       hps_doc_put(d, "bias", hps_doc_bool(l->bias)) ||
		       hps_doc_put(d, "activation", hps_doc_string(hps_act_names[l->act]));
	case HPS_OP_CONCAT:
	case HPS_OP_COSINE:
		break;
	}
	return 0;
}

static struct hps_doc *write_layer(const struct hps_model *m, const struct hps_layer *l)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(
		d, !d || hps_doc_put(d, "name", hps_doc_string(l->name)) ||
			   hps_doc_put(d, "op", hps_doc_string(hps_op_name(l->op))) ||
			   (l->n_inputs &&
			    hps_doc_put(d, "inputs", write_refs(m, l->input, l->n_inputs))) ||
			   put_args(m, l, d));
}

static struct hps_doc *write_layers(const struct hps_model *m)
{
	struct hps_doc *d = hps_doc_array();
	int failed = !d;

	for (uint32_t i = 0; !failed && i < m->n_layers; i++)
		failed = hps_doc_add(d, write_layer(m, &m->layer[i]));
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_loss(const struct hps_model *m)
{
	const struct hps_loss *l = &m->loss;
	struct hps_doc *d = hps_doc_object();
	int failed;

	failed = !d || hps_doc_put(d, "kind", hps_doc_string(hps_loss_name(l->kind))) ||
		 hps_doc_put(d, "inputs", write_refs(m, l->input, l->n_inputs));
	if (!failed && l->kind == HPS_LOSS_HINGE)
		failed = hps_doc_put(d, "margin", hps_doc_double(l->margin));
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_train(const struct hps_model *m)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(
		d, !d || hps_doc_put(d, "batch", hps_doc_u64(m->train.batch)) ||
			   hps_doc_put(d, "micro_batches", hps_doc_int(m->train.micro_batches)) ||
			   hps_doc_put(d, "epochs", hps_doc_int(m->train.epochs)) ||
			   hps_doc_put(d, "sync", hps_doc_string(hps_sync_name(m->train.sync))) ||
			   hps_doc_put(d, "optimizer", write_optimizer(&m->train.optimizer)) ||
			   hps_doc_put(d, "seed", hps_doc_u64(m->train.seed)));
}

struct hps_doc *hps_model_write(const struct hps_model *m)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(
		d, !d || hps_doc_put(d, "name", hps_doc_string(m->name)) ||
			   (m->description &&
			    hps_doc_put(d, "description", hps_doc_string(m->description))) ||
			   hps_doc_put(d, "inputs", write_inputs(m)) ||
			   hps_doc_put(d, "preprocess", write_preprocess(m)) ||
			   hps_doc_put(d, "tables", write_tables(m)) ||
			   hps_doc_put(d, "layers", write_layers(m)) ||
			   hps_doc_put(d, "loss", write_loss(m)) ||
			   hps_doc_put(d, "train", write_train(m)));
}

/* --- digest --- */

static uint64_t digest_layer(uint64_t h, const struct hps_model *m, const struct hps_layer *l)
{
	h = hps_digest_str(h, l->name);
	h = hps_digest_str(h, hps_op_name(l->op));
	h = hps_digest_u64(h, l->n_inputs);
	for (uint32_t i = 0; i < l->n_inputs; i++)
		h = hps_digest_u64(h, (uint64_t)(int64_t)l->input[i]);
	switch (l->op) {
	case HPS_OP_EMBEDDING:
	case HPS_OP_NEGATIVES:
		h = hps_digest_str(h, m->table[l->table].name);
		h = hps_digest_u64(h, l->n_slots);
		for (uint32_t i = 0; i < l->n_slots; i++)
			h = hps_digest_u64(h, l->slot[i]);
		h = hps_digest_u64(h, l->count);
		h = hps_digest_str(h, hps_pooling_names[l->pooling]);
		break;
	case HPS_OP_SLICE:
		h = hps_digest_u64(h, l->begin);
		h = hps_digest_u64(h, l->size);
		break;
	case HPS_OP_DENSE:
		h = hps_digest_u64(h, l->units);
		h = hps_digest_u64(h, l->bias ? 1 : 0);
		h = hps_digest_str(h, hps_act_names[l->act]);
		break;
	case HPS_OP_CONCAT:
	case HPS_OP_COSINE:
		break;
	}
	return h;
}

uint64_t hps_model_digest(const struct hps_model *m)
{
	uint64_t h = hps_digest_str(0, "hps model 1");

	h = hps_digest_u64(h, m->slots);
	h = hps_digest_u64(h, m->dense);
	h = hps_digest_str(h, hps_transform_names[m->preprocess.transform]);
	h = hps_digest_double(h, m->preprocess.scale);
	h = hps_digest_double(h, m->preprocess.missing);
	h = hps_digest_u64(h, m->n_tables);
	for (uint32_t i = 0; i < m->n_tables; i++) {
		const struct hps_table_spec *t = &m->table[i];

		h = hps_digest_str(h, t->name);
		h = hps_digest_u64(h, t->dim);
		h = hps_digest_u64(h, t->rows);
		h = hps_digest_str(h, hps_init_names[t->init]);
		h = hps_digest_double(h, t->init_scale);
	}
	h = hps_digest_u64(h, m->n_layers);
	for (uint32_t i = 0; i < m->n_layers; i++)
		h = digest_layer(h, m, &m->layer[i]);
	h = hps_digest_str(h, hps_loss_name(m->loss.kind));
	for (uint32_t i = 0; i < m->loss.n_inputs; i++)
		h = hps_digest_u64(h, (uint64_t)(int64_t)m->loss.input[i]);
	h = hps_digest_double(h, m->loss.margin);
	return h ? h : 1; /* 0 says "of no model" */
}
