/* How does a profile come together: sizes of layers, types measured here, on other hosts, and
 * declared by them.
 */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "measure/measure_int.h"

enum hps_status hps_profile_sizes(const struct hps_model *m, const double *keys,
				  struct hps_profile *p, struct hps_err *err)
{
	struct hps_graph g;
	enum hps_status st;

	memset(p, 0, sizeof(*p));
	st = hps_graph_build(m, &g, err);
	if (st != HPS_OK)
		return st;
	p->digest = m->digest;
	p->batch = (double)m->train.batch;
	p->size = hps_calloc(m->n_layers, sizeof(*p->size), err);
	p->cut_forward_bytes = hps_calloc(m->n_layers, sizeof(double), err);
	p->cut_backward_bytes = hps_calloc(m->n_layers, sizeof(double), err);
	if (!p->size || !p->cut_forward_bytes || !p->cut_backward_bytes)
		goto no_memory;
	p->n_layers = m->n_layers;
	for (uint32_t l = 0; l < m->n_layers; l++) {
		const struct hps_layer *layer = &m->layer[l];
		const struct hps_layer_cost *c = &g.cost[l];
		struct hps_layer_size *s = &p->size[l];
		bool looks_up = layer->op == HPS_OP_EMBEDDING || layer->op == HPS_OP_NEGATIVES;

		s->name = hps_strdup(layer->name, err);
		if (!s->name)
			goto no_memory;
		s->param_bytes = 4.0 * (double)c->params;
		s->output_bytes = (double)c->output_bytes;
		s->sparse_keys = keys ? keys[l] : (double)c->keys;
		if (looks_up)
			s->sparse_bytes = 4.0 * m->table[layer->table].dim * s->sparse_keys;
		s->flops = (double)c->flops_forward;
		p->cut_forward_bytes[l] = (double)g.cut[l].forward_bytes;
		p->cut_backward_bytes[l] = (double)g.cut[l].backward_bytes;
	}
	p->cut_forward_bytes[m->n_layers - 1] = 0;
	p->cut_backward_bytes[m->n_layers - 1] = 0;
	hps_graph_release(&g);
	return HPS_OK;
no_memory:
	hps_graph_release(&g);
	hps_profile_release(p);
	return HPS_MEMORY;
}

enum hps_status hps_profile_add(struct hps_profile *p, const char *type, bool simulated,
				struct hps_layer_time *time, struct hps_err *err)
{
	size_t n = p->n_types;
	char *name;

	if (hps_realloc((void **)&p->type, n + 1, sizeof(*p->type), err) != HPS_OK ||
	    hps_realloc((void **)&p->simulated, n + 1, sizeof(*p->simulated), err) != HPS_OK ||
	    hps_realloc((void **)&p->time, (n + 1) * p->n_layers, sizeof(*p->time), err) != HPS_OK)
		return HPS_MEMORY;
	name = hps_strdup(type, err);
	if (!name)
		return HPS_MEMORY;
	p->type[n] = name;
	p->simulated[n] = simulated;
	memcpy(p->time + n * p->n_layers, time, p->n_layers * sizeof(*time));
	memset(time, 0, p->n_layers * sizeof(*time));
	p->n_types++;
	return HPS_OK;
}

static void settle(struct hps_layer_time *t, double batch)
{
	double fixed = t->forward.c0 + t->backward.c0;
	double shared = (t->forward.c1 + t->backward.c1) * batch;

	if (fixed + shared <= 0)
		return;
	t->oct = fixed + shared;
	t->alpha = shared / t->oct;
}

static void release_times(struct hps_layer_time *t, uint32_t n)
{
	for (uint32_t l = 0; t && l < n; l++) {
		free(t[l].forward_s);
		free(t[l].backward_s);
		free(t[l].scaling);
	}
	free(t);
}

/* --- other hosts --- */

static enum hps_status check_other(const struct hps_profile *p, const struct hps_profile *other,
				   const char *name, struct hps_err *err)
{
	char ours[HPS_DIGEST_LEN], theirs[HPS_DIGEST_LEN];

	hps_digest_text(p->digest, ours);
	hps_digest_text(other->digest, theirs);
	if (other->digest == p->digest && other->n_layers == p->n_layers)
		return HPS_OK;
	hps_err_set(err, HPS_BAD_INPUT, "profile of another model: digest %s, this one has %s",
		    theirs, ours);
	hps_err_hint(err, "profile the same model file on every host");
	hps_err_at(err, "%s", name);
	return HPS_BAD_INPUT;
}

static bool same_batches(const struct hps_profile *a, const struct hps_profile *b)
{
	return a->n_batches == b->n_batches &&
	       (a->n_batches == 0 ||
		memcmp(a->batches, b->batches, a->n_batches * sizeof(double)) == 0);
}

static double *copy(const double *v, uint32_t n, struct hps_err *err)
{
	double *c = hps_calloc(n, sizeof(*c), err);

	if (c && n)
		memcpy(c, v, n * sizeof(*c));
	return c;
}

/* A type's times of another profile, as p would hold them. NULL without memory. */
static struct hps_layer_time *copy_times(const struct hps_profile *p,
					 const struct hps_profile *other, uint32_t type,
					 struct hps_err *err)
{
	struct hps_layer_time *t = hps_calloc(p->n_layers, sizeof(*t), err);
	bool lists = same_batches(p, other), failed = !t;

	for (uint32_t l = 0; l < p->n_layers && !failed; l++) {
		const struct hps_layer_time *from =
			&other->time[(size_t)type * other->n_layers + l];

		t[l] = *from;
		t[l].forward_s = t[l].backward_s = t[l].scaling = NULL;
		if (lists && from->forward_s)
			failed |= !(t[l].forward_s = copy(from->forward_s, p->n_batches, err));
		if (lists && from->backward_s)
			failed |= !(t[l].backward_s = copy(from->backward_s, p->n_batches, err));
		if (from->scaling)
			failed |= !(t[l].scaling = copy(from->scaling, from->n_scaling, err));
		settle(&t[l], p->batch);
	}
	if (failed) {
		release_times(t, p->n_layers);
		return NULL;
	}
	return t;
}

static enum hps_status take_type(struct hps_profile *p, const struct hps_profile *other,
				 uint32_t type, struct hps_err *err)
{
	struct hps_layer_time *t = copy_times(p, other, type, err);
	enum hps_status st =
		t ? hps_profile_add(p, other->type[type], other->simulated[type], t, err)
		  : HPS_MEMORY;

	release_times(t, p->n_layers);
	return st;
}

enum hps_status hps_profile_merge(struct hps_profile *p, const struct hps_profile *other,
				  const char *name, const struct hps_cluster *c,
				  void (*told)(const char *name, const char *type),
				  struct hps_err *err)
{
	enum hps_status st = check_other(p, other, name, err);

	if (st == HPS_OK && p->n_types == 0 && p->n_batches == 0 && other->n_batches) {
		p->batches = copy(other->batches, other->n_batches, err);
		if (!p->batches)
			return HPS_MEMORY;
		p->n_batches = other->n_batches;
	}
	for (uint32_t i = 0; i < other->n_types && st == HPS_OK; i++) {
		int in_cluster = hps_cluster_type(c, other->type[i]);

		/* declared types are derived anew, from this cluster's speeds */
		if (other->simulated[i] || in_cluster < 0 || c->type[in_cluster].like)
			continue;
		if (hps_profile_type(p, other->type[i]) >= 0) {
			if (told)
				told(name, other->type[i]);
			continue;
		}
		st = take_type(p, other, i, err);
	}
	if (st != HPS_OK)
		return st;
	if (!p->link_measured && other->link.bandwidth > 0) {
		p->link = other->link;
		p->link_measured = other->link_measured;
	}
	if (!p->shard.measured && other->shard.measured)
		p->shard = other->shard;
	if (p->step_overhead_s <= 0)
		p->step_overhead_s = other->step_overhead_s;
	if (p->input_s_per_sample <= 0)
		p->input_s_per_sample = other->input_s_per_sample;
	return HPS_OK;
}

/* --- declared types --- */

static void divide(struct hps_fit *f, double speed)
{
	f->c0 /= speed;
	f->c1 /= speed;
}

enum hps_status hps_profile_derive(struct hps_profile *p, const struct hps_model *m,
				   const struct hps_cluster *c, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint32_t i = 0; i < c->n_types && st == HPS_OK; i++) {
		const struct hps_type *type = &c->type[i];
		struct hps_layer_time *t;
		int base;

		if (!type->like || hps_profile_type(p, type->name) >= 0)
			continue;
		base = hps_profile_type(p, type->like);
		if (base < 0)
			continue;
		t = hps_calloc(p->n_layers, sizeof(*t), err);
		if (!t)
			return HPS_MEMORY;
		for (uint32_t l = 0; l < p->n_layers; l++) {
			const struct hps_layer_time *from =
				&p->time[(size_t)base * p->n_layers + l];
			double speed = type->op_speed[m->layer[l].op];

			if (speed <= 0)
				speed = type->speed;
			t[l].forward = from->forward;
			t[l].backward = from->backward;
			divide(&t[l].forward, speed);
			divide(&t[l].backward, speed);
			t[l].oct = from->oct / speed;
			t[l].alpha = from->alpha;
			settle(&t[l], p->batch);
		}
		st = hps_profile_add(p, type->name, true, t, err);
		release_times(t, p->n_layers);
	}
	return st;
}

static void swap_types(struct hps_profile *p, uint32_t a, uint32_t b)
{
	char *name = p->type[a];
	bool simulated = p->simulated[a];

	p->type[a] = p->type[b];
	p->type[b] = name;
	p->simulated[a] = p->simulated[b];
	p->simulated[b] = simulated;
	for (uint32_t l = 0; l < p->n_layers; l++) {
		struct hps_layer_time *x = &p->time[(size_t)a * p->n_layers + l];
		struct hps_layer_time *y = &p->time[(size_t)b * p->n_layers + l];
		struct hps_layer_time t = *x;

		*x = *y;
		*y = t;
	}
}

void hps_profile_sort(struct hps_profile *p, const struct hps_cluster *c)
{
	for (uint32_t i = 1; i < p->n_types; i++)
		for (uint32_t j = i;
		     j > 0 && hps_cluster_type(c, p->type[j]) < hps_cluster_type(c, p->type[j - 1]);
		     j--)
			swap_types(p, j, j - 1);
}

/* --- which type is this machine? --- */

static bool have_type(const struct hps_profile *const *have, size_t n, const char *type)
{
	for (size_t i = 0; i < n; i++) {
		int t = hps_profile_type(have[i], type);

		if (t >= 0 && !have[i]->simulated[t])
			return true;
	}
	return false;
}

/* A type whose times can come from nowhere. */
static enum hps_status not_here(const struct hps_type *t, struct hps_err *err)
{
	const struct hps_backend *be;
	enum hps_status st = hps_backend_for(t->device, &be, err);

	if (st == HPS_OK)
		st = hps_err_set(err, HPS_DEVICE, "not measured here");
	hps_err_at(err, "type \"%s\"", t->name);
	hps_err_hint(err, "profile it on a host that has it and give the result to --merge, or "
			  "declare it: \"like\": \"cpu\", \"speed\": 12");
	return st;
}

enum hps_status hps_measure_pick(const struct hps_cluster *c, const char *wanted,
				 const struct hps_profile *const *have, size_t n_have, int *type,
				 struct hps_err *err)
{
	int found = -1;

	if (wanted) {
		found = hps_cluster_type(c, wanted);
		if (found < 0)
			return hps_err_set(err, HPS_USAGE, "the cluster has no type \"%s\"",
					   wanted);
		if (c->type[found].like)
			return hps_err_set(err, HPS_USAGE,
					   "type \"%s\" is declared by \"%s\", not measured",
					   wanted, c->type[found].like);
		*type = found;
		return c->type[found].device == HPS_DEVICE_CPU ? HPS_OK
							       : not_here(&c->type[found], err);
	}
	for (uint32_t i = 0; i < c->n_types; i++) {
		const struct hps_type *t = &c->type[i];

		if (t->like)
			continue;
		if (t->device != HPS_DEVICE_CPU) {
			if (!have_type(have, n_have, t->name))
				return not_here(t, err);
			continue;
		}
		if (found >= 0 && have_type(have, n_have, t->name))
			continue;
		if (found >= 0 && !have_type(have, n_have, c->type[found].name)) {
			hps_err_set(err, HPS_USAGE,
				    "types \"%s\" and \"%s\" are both CPUs to measure",
				    c->type[found].name, t->name);
			hps_err_hint(err, "say which one this machine is with --type, and join the "
					  "other's profile with --merge");
			return HPS_USAGE;
		}
		found = (int)i;
	}
	*type = found;
	return HPS_OK;
}
