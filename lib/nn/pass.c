/* One micro-batch on its way through a stage: its memory, its input, forward, backward. */
#include "nn/stage_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"

/* rows * cols floats of the backend; NULL with err set when they are too many. */
static void *matrix(const struct hps_stage *s, uint64_t rows, uint64_t cols, struct hps_err *err)
{
	size_t floats, bytes;

	if (hps_mul_size(rows, cols, &floats) || hps_mul_size(floats, sizeof(float), &bytes)) {
		hps_err_set(err, HPS_MEMORY, "a matrix of %llu x %llu floats",
			    (unsigned long long)rows, (unsigned long long)cols);
		return NULL;
	}
	return s->be->alloc(bytes, err);
}

static enum hps_status new_lookup(const struct hps_stage *s, uint32_t i, struct hps_lookup *u,
				  struct hps_err *err)
{
	const struct hps_node *n = &s->node[s->lookup_node[i]];
	size_t most;

	u->layer = n->id;
	u->table = n->layer->table;
	u->dim = s->g->model->table[u->table].dim;
	u->keys = n->layer->op == HPS_OP_NEGATIVES ? n->layer->count : n->layer->n_slots;
	most = (size_t)s->max_rows * u->keys; /* below 2^31, as hps_stage_new saw to */
	u->key = hps_calloc(most, sizeof(*u->key), err);
	u->index = hps_calloc(most, sizeof(*u->index), err);
	u->unique = matrix(s, most, u->dim, err);
	u->grad = matrix(s, most, u->dim, err);
	return u->key && u->index && u->unique && u->grad ? HPS_OK : HPS_MEMORY;
}

static enum hps_status fill(struct hps_pass *p, const struct hps_stage *s, struct hps_err *err)
{
	static const enum hps_area own[] = { HPS_AREA_OUT, HPS_AREA_IN_GRAD, HPS_AREA_ACT,
					     HPS_AREA_GRAD };

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		p->rw[own[i]] = matrix(s, s->max_rows, s->cols[own[i]], err);
		p->ro[own[i]] = p->rw[own[i]];
		if (!p->ro[own[i]])
			return HPS_MEMORY;
	}
	p->lookup = hps_calloc(s->n_lookups, sizeof(*p->lookup), err);
	p->column = hps_calloc(s->g->model->slots, sizeof(*p->column), err);
	p->hash = hps_calloc(hps_dedup_slots((size_t)s->max_rows * s->max_keys), sizeof(*p->hash),
			     err);
	p->scores = hps_calloc(s->loss.code ? s->max_rows : 0, sizeof(*p->scores), err);
	p->coef = matrix(s, s->max_rows, s->loss.coef_cols, err);
	if (!p->lookup || !p->column || !p->hash || !p->scores || !p->coef)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < s->n_lookups; i++)
		if (new_lookup(s, i, &p->lookup[i], err) != HPS_OK)
			return HPS_MEMORY;
	return HPS_OK;
}

enum hps_status hps_pass_new(struct hps_stage *s, struct hps_pass **out, struct hps_err *err)
{
	struct hps_pass *p = hps_calloc(1, sizeof(*p), err);

	if (!p)
		return HPS_MEMORY;
	p->stage = s;
	if (fill(p, s, err) != HPS_OK) {
		hps_pass_free(p);
		return HPS_MEMORY;
	}
	*out = p;
	return HPS_OK;
}

void hps_pass_free(struct hps_pass *p)
{
	const struct hps_backend *be;

	if (!p)
		return;
	be = p->stage->be;
	for (int a = 0; a < HPS_N_AREAS; a++)
		be->release(p->rw[a]);
	for (uint32_t i = 0; p->lookup && i < p->stage->n_lookups; i++) {
		free(p->lookup[i].key);
		free(p->lookup[i].index);
		be->release(p->lookup[i].unique);
		be->release(p->lookup[i].grad);
	}
	be->release(p->coef);
	free(p->lookup);
	free(p->column);
	free(p->hash);
	free(p->scores);
	free(p);
}

/* --- input --- */

/* in.key's columns by slot, and that every slot read here is there. */
static enum hps_status find_columns(struct hps_pass *p, const struct hps_stage_in *in,
				    struct hps_err *err)
{
	const struct hps_model *m = p->stage->g->model;

	memset(p->column, 0xff, m->slots * sizeof(*p->column));
	for (uint32_t c = 0; c < in->n_key_slots; c++)
		if (in->key_slot[c] < m->slots)
			p->column[in->key_slot[c]] = c;
	for (uint32_t i = 0; i < p->stage->n_lookups; i++) {
		const struct hps_layer *l = &m->layer[p->lookup[i].layer];

		for (uint32_t k = 0; l->op == HPS_OP_EMBEDDING && k < l->n_slots; k++)
			if (p->column[l->slot[k]] == UINT32_MAX)
				return hps_err_set(err, HPS_BAD_INPUT,
						   "layer '%s': the input has no keys of slot %u",
						   l->name, l->slot[k]);
	}
	return HPS_OK;
}

static enum hps_status check_input(const struct hps_stage *s, const struct hps_stage_in *in,
				   struct hps_err *err)
{
	const char *missing = NULL;

	if (in->rows > s->max_rows)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "a micro-batch of %u rows where at most %u were planned",
				   in->rows, s->max_rows);
	if (in->rows == 0)
		return HPS_OK;
	if (s->reads_dense && !in->dense)
		missing = "dense features";
	else if (s->reads_slots && !in->key)
		missing = "keys";
	else if (s->draws && !in->row)
		missing = "row numbers";
	else if (s->loss.code && !in->label)
		missing = "labels";
	else if (s->cols[HPS_AREA_IN] > 0 && !in->activation)
		missing = "activations";
	if (missing)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "a micro-batch without %s, which layers %u "
				   "to %u read",
				   missing, s->first, s->last);
	return HPS_OK;
}

enum hps_status hps_pass_begin(struct hps_pass *p, const struct hps_stage_in *in,
			       struct hps_err *err)
{
	const struct hps_stage *s = p->stage;
	enum hps_status status = check_input(s, in, err);

	if (status == HPS_OK && s->reads_slots && in->rows > 0)
		status = find_columns(p, in, err);
	if (status != HPS_OK)
		return status;
	p->in = *in;
	p->rows = in->rows;
	p->loss = 0;
	p->ro[HPS_AREA_DENSE] = in->dense;
	p->ro[HPS_AREA_IN] = in->activation;
	p->ro[HPS_AREA_GRAD_OUT] = NULL;
	for (uint32_t i = 0; i < s->n_lookups; i++)
		hps_lookup_begin(p, &s->node[s->lookup_node[i]]);
	return HPS_OK;
}

struct hps_lookup *hps_pass_lookup(struct hps_pass *p, uint32_t i)
{
	return &p->lookup[i];
}

/* --- forward --- */

static void move(const struct hps_pass *p, const struct hps_move *m)
{
	p->stage->be->copy2d(hps_write(p, &m->to), (int)m->to.ld, hps_read(p, &m->from),
			     (int)m->from.ld, (int)p->rows, (int)m->cols, false);
}

void hps_pass_forward(struct hps_pass *p, const float *params, bool training)
{
	const struct hps_stage *s = p->stage;

	if (p->rows == 0)
		return;
	for (uint32_t i = 0; i < s->n_forward_copy; i++)
		move(p, &s->forward_copy[i]);
	for (uint32_t i = 0; i < s->n_nodes; i++)
		s->node[i].code->forward(p, &s->node[i], params);
	if (s->loss.code)
		p->loss = s->loss.code->forward(p, &s->loss, training);
}

const float *hps_pass_output(const struct hps_pass *p, uint64_t *n)
{
	*n = p->rows * p->stage->cols[HPS_AREA_OUT];
	return p->stage->cols[HPS_AREA_OUT] > 0 ? p->ro[HPS_AREA_OUT] : NULL;
}

double hps_pass_loss(const struct hps_pass *p)
{
	return p->loss;
}

const float *hps_pass_scores(const struct hps_pass *p)
{
	return p->scores;
}

/* --- backward --- */

void hps_pass_backward(struct hps_pass *p, const float *params, const float *grad_out, float *grads)
{
	const struct hps_stage *s = p->stage;

	if (p->rows == 0)
		return;
	p->ro[HPS_AREA_GRAD_OUT] = grad_out;
	for (uint32_t i = 0; i < s->n_backward_clear; i++) {
		const struct hps_move *m = &s->backward_clear[i];

		memset(hps_write(p, &m->to), 0, (size_t)p->rows * m->cols * sizeof(float));
	}
	for (uint32_t i = 0; i < s->n_backward_copy; i++)
		move(p, &s->backward_copy[i]);
	if (s->loss.code)
		s->loss.code->backward(p, &s->loss);
	for (uint32_t i = s->n_nodes; i-- > 0;)
		if (s->node[i].wants_grad)
			s->node[i].code->backward(p, &s->node[i], params, grads);
}

const float *hps_pass_input_grad(const struct hps_pass *p, uint64_t *n)
{
	*n = p->rows * p->stage->cols[HPS_AREA_IN_GRAD];
	return p->stage->cols[HPS_AREA_IN_GRAD] > 0 ? p->ro[HPS_AREA_IN_GRAD] : NULL;
}

/* --- one layer alone --- */

/* A saturating activation's gradient shrinks with every repetition; numbers below the
 * normal range would take more time than any real batch does. */
static void refresh(struct hps_pass *p, const struct hps_node *n)
{
	float *dy;

	if (n->layer->op != HPS_OP_DENSE ||
	    (n->layer->act != HPS_ACT_SIGMOID && n->layer->act != HPS_ACT_TANH))
		return;
	dy = hps_write(p, &n->grad);
	if (fabsf(dy[0]) > 1e-9f)
		return;
	for (uint32_t r = 0; r < p->rows; r++)
		for (uint32_t c = 0; c < n->layer->cols; c++)
			dy[(size_t)r * n->grad.ld + c] = 1.0f;
}

void hps_pass_run_layer(struct hps_pass *p, uint32_t layer, const float *params, float *grads,
			bool backward)
{
	const struct hps_stage *s = p->stage;
	const struct hps_node *n = &s->node[layer - s->first];
	bool with_loss = s->loss.code && layer == s->last;

	if (p->rows == 0)
		return;
	if (backward) {
		if (with_loss)
			s->loss.code->backward(p, &s->loss);
		if (!n->wants_grad)
			return;
		refresh(p, n);
		n->code->backward(p, n, params, grads);
		return;
	}
	if (n->layer->op == HPS_OP_EMBEDDING || n->layer->op == HPS_OP_NEGATIVES)
		hps_lookup_begin(p, n);
	n->code->forward(p, n, params);
	if (with_loss)
		p->loss = s->loss.code->forward(p, &s->loss, true);
}
