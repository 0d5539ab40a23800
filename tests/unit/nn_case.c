/* Cases of tests/golden/nn.json: reading them, and running them stage by stage by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "nn_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *room(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	assert_non_null(p);
	return p;
}

struct hps_doc *nn_golden(const char *name)
{
	const char *root = getenv("HPS_ROOT");
	struct hps_doc *d = NULL;
	struct hps_err err;
	char path[4096];

	snprintf(path, sizeof(path), "%s/tests/golden/%s", root ? root : ".", name);
	if (hps_doc_read(path, &d, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
	return d;
}

size_t nn_golden_count(const struct hps_doc *d)
{
	struct hps_at at = hps_at_root(d, "golden");

	return hps_at_count(&at);
}

const struct hps_doc *nn_member(const struct hps_doc *obj, const char *key)
{
	struct hps_at at = hps_at_root(obj, "golden"), m = hps_at_member(&at, key);

	if (!m.node)
		fail_msg("no member %s", key);
	return m.node;
}

static void flatten(const struct hps_at *at, double *out, size_t *n)
{
	struct hps_err err;

	if (hps_at_array(at, NULL) != HPS_OK) {
		double v;

		if (hps_at_double(at, -1e300, 1e300, &v, &err) != HPS_OK)
			fail_msg("%s: %s", err.where, err.msg);
		if (out)
			out[*n] = v;
		++*n;
		return;
	}
	for (size_t i = 0; i < hps_at_count(at); i++) {
		struct hps_at item = hps_at_item(at, i);

		flatten(&item, out, n);
	}
}

double *nn_numbers(const struct hps_doc *obj, const char *key, size_t *n)
{
	struct hps_at at = hps_at_root(key ? nn_member(obj, key) : obj, "golden");
	double *out;

	*n = 0;
	flatten(&at, NULL, n);
	out = room(*n, sizeof(*out));
	*n = 0;
	flatten(&at, out, n);
	return out;
}

float nn_pseudo(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t x = a * 0x9e3779b1u + b * 0x85ebca77u + c * 0xc2b2ae3du + 0x27d4eb2fu;

	x = (x ^ (x >> 15)) * 0x2c1b3c6du;
	x = (x ^ (x >> 12)) * 0x297a2d39u;
	x ^= x >> 15;
	return (float)(x >> 8) / (1 << 24) - 0.5f;
}

float nn_row_value(uint32_t table, uint64_t key, uint32_t d)
{
	return nn_pseudo(7 + table, (uint32_t)key, d) * 2;
}

static float *floats(const struct hps_doc *obj, const char *key, size_t *n)
{
	double *v = nn_numbers(obj, key, n);
	float *out = room(*n, sizeof(*out));

	for (size_t i = 0; i < *n; i++)
		out[i] = (float)v[i];
	free(v);
	return out;
}

static uint64_t *keys(const struct hps_doc *obj, const char *key, size_t *n)
{
	double *v = nn_numbers(obj, key, n);
	uint64_t *out = room(*n, sizeof(*out));

	for (size_t i = 0; i < *n; i++)
		out[i] = (uint64_t)v[i];
	free(v);
	return out;
}

static void read_data(struct nn_case *c)
{
	const struct hps_doc *data = nn_member(c->doc, "data");
	const struct hps_doc *drawn = nn_member(data, "negatives");
	size_t n;

	c->label = floats(data, "label", &n);
	c->rows = (uint32_t)n;
	c->key = keys(data, "key", &n);
	assert_int_equal(n, (size_t)c->rows * c->model.slots);
	c->dense = floats(data, "dense", &n);
	assert_int_equal(n, (size_t)c->rows * c->model.dense);
	c->drawn = room(c->model.n_layers, sizeof(*c->drawn));
	for (uint32_t l = 0; l < c->model.n_layers; l++)
		if (c->model.layer[l].op == HPS_OP_NEGATIVES)
			c->drawn[l] = keys(drawn, c->model.layer[l].name, &n);
	c->row = room(c->rows, sizeof(*c->row));
	for (uint32_t r = 0; r < c->rows; r++)
		c->row[r] = 1000 + r;
	c->slot = room(c->model.slots, sizeof(*c->slot));
	for (uint32_t s = 0; s < c->model.slots; s++)
		c->slot[s] = s;
}

void nn_case_init(struct nn_case *c, const struct hps_doc *golden, size_t i)
{
	struct hps_at all = hps_at_root(golden, "golden"), at = hps_at_item(&all, i);
	struct hps_at model;
	struct hps_err err;
	double *number;
	size_t n;

	memset(c, 0, sizeof(*c));
	c->doc = at.node;
	model = hps_at_member(&at, "model");
	if (hps_model_read(&model, &c->model, &err) != HPS_OK ||
	    hps_graph_build(&c->model, &c->graph, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
	number = nn_numbers(c->doc, "number", &n);
	c->number = (uint32_t)*number;
	free(number);
	read_data(c);
	c->params = room(c->graph.n_floats, sizeof(float));
	for (uint64_t k = 0; k < c->graph.n_floats; k++)
		c->params[k] = nn_pseudo(3, (uint32_t)k, c->number) * 1.5f;
}

void nn_case_release(struct nn_case *c)
{
	for (uint32_t l = 0; l < c->model.n_layers; l++)
		free(c->drawn[l]);
	free(c->drawn);
	free(c->row);
	free(c->key);
	free(c->slot);
	free(c->label);
	free(c->dense);
	free(c->params);
	hps_graph_release(&c->graph);
	hps_model_release(&c->model);
}

/* --- running --- */

struct hps_stage_in nn_case_input(const struct nn_case *c, uint32_t first, uint32_t rows,
				  const float *activation, uint64_t **key)
{
	const struct hps_cut *cut = first > 0 ? &c->graph.cut[first - 1] : NULL;
	uint32_t n_slots = cut ? cut->n_slots : c->model.slots;
	const uint32_t *slot = cut ? cut->slot : c->slot;

	*key = room((size_t)rows * n_slots, sizeof(**key));
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t s = 0; s < n_slots; s++)
			(*key)[(size_t)r * n_slots + s] =
				c->key[(size_t)r * c->model.slots + slot[s]];
	return (struct hps_stage_in){ .rows = rows,
				      .row = c->row,
				      .label = c->label,
				      .dense = cut && !cut->dense ? NULL : c->dense,
				      .key = *key,
				      .key_slot = slot,
				      .n_key_slots = n_slots,
				      .activation = activation,
				      .seed = 1,
				      .epoch = 0 };
}

/* Unique in order of first appearance, by looking at all that came before. */
static void state_keys(struct hps_lookup *u, const uint64_t *key, uint32_t n)
{
	u->n_unique = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;

		while (k < u->n_unique && u->key[k] != key[i])
			k++;
		if (k == u->n_unique)
			u->key[u->n_unique++] = key[i];
		u->index[i] = k;
	}
}

void nn_case_fill(const struct nn_case *c, struct hps_pass *p, uint32_t n_lookups)
{
	for (uint32_t i = 0; i < n_lookups; i++) {
		struct hps_lookup *u = hps_pass_lookup(p, i);

		if (c->drawn[u->layer] && u->n_unique > 0)
			state_keys(u, c->drawn[u->layer], c->rows * u->keys);
		for (uint32_t k = 0; k < u->n_unique; k++)
			for (uint32_t d = 0; d < u->dim; d++)
				u->unique[(size_t)k * u->dim + d] =
					nn_row_value(u->table, u->key[k], d);
	}
}

struct piece {
	struct hps_stage *stage;
	struct hps_pass *pass;
	uint64_t *key;
	float *out, *grad_in; /* copies, as the wire would make */
};

static float *copy(const float *p, uint64_t n)
{
	float *out = room(n, sizeof(*out));

	if (p)
		memcpy(out, p, n * sizeof(*out));
	return out;
}

static void ok(enum hps_status status, const struct hps_err *err)
{
	if (status != HPS_OK)
		fail_msg("%s", err->msg);
}

static void piece_new(const struct nn_case *c, struct piece *s, uint32_t first, uint32_t last,
		      uint32_t max_rows)
{
	struct hps_err err;

	ok(hps_stage_new(&c->graph, first, last, hps_backend_openblas(), max_rows, &s->stage, &err),
	   &err);
	ok(hps_pass_new(s->stage, &s->pass, &err), &err);
}

static void piece_free(struct piece *s)
{
	hps_pass_free(s->pass);
	hps_stage_free(s->stage);
	free(s->key);
	free(s->out);
	free(s->grad_in);
}

static void piece_forward(const struct nn_case *c, struct piece *s, uint32_t first, uint32_t last,
			  uint32_t rows, const float *activation)
{
	struct hps_err err;
	struct hps_stage_in in;
	const float *out;
	uint64_t n;

	free(s->key);
	free(s->out);
	in = nn_case_input(c, first, rows, activation, &s->key);
	ok(hps_pass_begin(s->pass, &in, &err), &err);
	nn_case_fill(c, s->pass, hps_stage_n_lookups(s->stage));
	hps_pass_forward(s->pass, c->params + hps_stage_param_offset(s->stage), true);
	out = hps_pass_output(s->pass, &n);
	s->out = copy(out, n);
	assert_int_equal(n, rows * c->graph.cut[last].cols);
}

static void piece_backward(const struct nn_case *c, struct piece *s, const float *grad_out,
			   float *grads)
{
	uint64_t offset = hps_stage_param_offset(s->stage), n;
	const float *grad_in;

	hps_pass_backward(s->pass, c->params + offset, grad_out, grads + offset);
	free(s->grad_in);
	grad_in = hps_pass_input_grad(s->pass, &n);
	s->grad_in = copy(grad_in, n);
}

/* One micro-batch through all pieces. */
static void through(const struct nn_case *c, struct piece *s, const uint32_t *last, uint32_t n,
		    uint32_t rows, float *grads)
{
	for (uint32_t i = 0; i < n; i++)
		piece_forward(c, &s[i], i ? last[i - 1] + 1 : 0, last[i], rows,
			      i ? s[i - 1].out : NULL);
	for (uint32_t i = n; i-- > 0;)
		piece_backward(c, &s[i], i + 1 < n ? s[i + 1].grad_in : NULL, grads);
}

/* Other data than the case's: every row counts, every number differs. */
static void use_passes(const struct nn_case *c, struct piece *s, const uint32_t *last, uint32_t n,
		       uint32_t rows)
{
	float *grads = room(c->graph.n_floats, sizeof(*grads));
	struct nn_case other = *c;

	other.label = room(c->rows, sizeof(float));
	other.dense = room((size_t)c->rows * c->model.dense, sizeof(float));
	other.key = room((size_t)c->rows * c->model.slots, sizeof(*other.key));
	for (uint32_t i = 0; i < c->rows; i++)
		other.label[i] = 1;
	for (size_t i = 0; i < (size_t)c->rows * c->model.dense; i++)
		other.dense[i] = 2 - c->dense[i];
	for (size_t i = 0; i < (size_t)c->rows * c->model.slots; i++)
		other.key[i] = c->key[i] + 1 + i % 3;
	through(&other, s, last, n, rows, grads);
	free(other.label);
	free(other.dense);
	free(other.key);
	free(grads);
}

static void copy_lookups(struct piece *s, struct nn_run *out)
{
	for (uint32_t i = 0; i < hps_stage_n_lookups(s->stage); i++) {
		const struct hps_lookup *u = hps_pass_lookup(s->pass, i);
		struct nn_rows *to = &out->lookup[out->n_lookups++];

		*to = (struct nn_rows){ u->layer, u->table, u->dim, u->n_unique, NULL, NULL };
		to->key = room(u->n_unique, sizeof(*to->key));
		memcpy(to->key, u->key, u->n_unique * sizeof(*to->key));
		to->grad = copy(u->grad, (uint64_t)u->n_unique * u->dim);
	}
}

void nn_case_run(const struct nn_case *c, const uint32_t *last, uint32_t n, uint32_t rows,
		 uint32_t max_rows, struct nn_run *out)
{
	struct piece *s = room(n, sizeof(*s));

	*out = (struct nn_run){ .rows = rows };
	out->grads = room(c->graph.n_floats, sizeof(float));
	out->lookup = room(c->model.n_layers, sizeof(*out->lookup));
	for (uint32_t i = 0; i < n; i++)
		piece_new(c, &s[i], i ? last[i - 1] + 1 : 0, last[i], max_rows);
	if (c->used_passes)
		use_passes(c, s, last, n, max_rows < c->rows ? max_rows : c->rows);
	through(c, s, last, n, rows, out->grads);
	out->loss = hps_pass_loss(s[n - 1].pass);
	out->scores = copy(hps_pass_scores(s[n - 1].pass), rows);
	for (uint32_t i = 0; i < n; i++) {
		copy_lookups(&s[i], out);
		piece_free(&s[i]);
	}
	free(s);
}

void nn_run_release(struct nn_run *r)
{
	for (uint32_t i = 0; i < r->n_lookups; i++) {
		free(r->lookup[i].key);
		free(r->lookup[i].grad);
	}
	free(r->lookup);
	free(r->scores);
	free(r->grads);
}
