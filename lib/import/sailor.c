/* What did Sailor's profiler measure? Its profile.json of one GPU type or more
 * (github.com/eth-easl/sailor; Strati et al., SOSP 2025) as a profile. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/opt.h"
#include "import/import_int.h"

enum { MAX_BATCHES = 1024, MAX_PARALLEL = 256, MAX_POINTS = 65536 };
#define MAX_S 1e9

/* What was measured at one micro-batch and tensor parallelism. */
struct point {
	double batch;
	int64_t parallel;
	double *s; /* n_layers times forward, backward, update */
};

/* Of one type. */
struct points {
	const char *type;    /* borrowed */
	struct point *point; /* by batch, then parallelism, once all are read */
	size_t n;
};

struct sailor {
	struct points *of; /* n_types; n 0: not measured */
	uint32_t n_types, n_layers;
	double *batch; /* n_batches that all measured types have, ascending */
	uint32_t n_batches;
};

static void sailor_release(struct sailor *x)
{
	for (uint32_t t = 0; x->of && t < x->n_types; t++) {
		for (size_t i = 0; i < x->of[t].n; i++)
			free(x->of[t].point[i].s);
		free(x->of[t].point);
	}
	free(x->of);
	free(x->batch);
}

/* --- reading --- */

/* A member's name as an integer within 1 .. max, in its only spelling: no "01". */
static enum hps_status read_key(const struct hps_at *at, const char *what, int64_t max,
				int64_t *out, struct hps_err *err)
{
	char again[24] = "";

	if (!hps_parse_int(at->key, 1, max, out, NULL))
		snprintf(again, sizeof(again), "%lld", (long long)*out);
	if (strcmp(again, at->key))
		return hps_at_error(at, err, "expected a %s from 1 to %lld as name, got \"%s\"",
				    what, (long long)max, at->key);
	return HPS_OK;
}

static enum hps_status read_layer(const struct hps_at *at, double *s, struct hps_err *err)
{
	enum hps_status st = hps_at_array(at, err);

	if (!st && hps_at_count(at) != 3)
		return hps_at_error(at, err,
				    "expected [forward_s, backward_s, update_s], got %zu "
				    "elements",
				    hps_at_count(at));
	for (size_t i = 0; i < 3 && !st; i++) {
		struct hps_at item = hps_at_item(at, i);

		st = hps_at_double(&item, 0, MAX_S, &s[i], err);
	}
	return st;
}

/* The layers "0", "1", .. of one micro-batch and parallelism, as many as everywhere. */
static enum hps_status read_layers(const struct hps_at *at, struct sailor *x, double *s,
				   struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint32_t l = 0; l < x->n_layers && !st; l++) {
		char key[16];
		struct hps_at layer;

		snprintf(key, sizeof(key), "%u", l);
		layer = hps_at_member(at, key);
		if (hps_at_absent(&layer))
			return hps_at_error(at, err, "no layer \"%s\"; layers are 0 to %u", key,
					    x->n_layers - 1);
		st = read_layer(&layer, s + 3 * (size_t)l, err);
	}
	return st;
}

static enum hps_status count_layers(const struct hps_at *at, struct sailor *x, struct hps_err *err)
{
	enum hps_status st = hps_at_object(at, err);
	size_t n = hps_at_count(at);

	if (st)
		return st;
	if (!x->n_layers && n && n <= HPS_MAX_LAYERS)
		x->n_layers = (uint32_t)n;
	if (!n || n > HPS_MAX_LAYERS)
		return hps_at_error(at, err, "expected 1 to %d layers, got %zu", HPS_MAX_LAYERS, n);
	if (n != x->n_layers)
		return hps_at_error(at, err, "%zu layers, %u elsewhere", n, x->n_layers);
	return HPS_OK;
}

static enum hps_status read_point(const struct hps_at *at, double batch, struct sailor *x,
				  struct points *to, struct hps_err *err)
{
	struct point p = { .batch = batch };
	enum hps_status st = read_key(at, "tensor parallelism", MAX_PARALLEL, &p.parallel, err);

	if (!st)
		st = count_layers(at, x, err);
	if (!st && to->n == MAX_POINTS)
		return hps_at_error(at, err, "more than %d measurements", MAX_POINTS);
	if (!st)
		st = hps_realloc((void **)&to->point, to->n + 1, sizeof(p), err);
	if (!st) {
		p.s = hps_calloc(3 * (size_t)x->n_layers, sizeof(double), err);
		st = p.s ? HPS_OK : HPS_MEMORY;
	}
	if (st)
		return st;
	to->point[to->n++] = p;
	return read_layers(at, x, p.s, err);
}

static int by_batch(const void *a, const void *b)
{
	const struct point *x = a, *y = b;
	int order = (x->batch > y->batch) - (x->batch < y->batch);

	return order ? order : (x->parallel > y->parallel) - (x->parallel < y->parallel);
}

static enum hps_status read_type(const struct hps_at *root, struct sailor *x, struct points *to,
				 struct hps_err *err)
{
	enum hps_status st = hps_at_object(root, err);
	size_t n = hps_at_count(root);

	if (!st && (!n || n > MAX_BATCHES))
		return hps_at_error(root, err, "expected 1 to %d micro-batches, got %zu",
				    MAX_BATCHES, n);
	for (size_t i = 0; i < n && !st; i++) {
		struct hps_at batch = hps_at_member(root, hps_at_name(root, i));
		int64_t rows;

		st = read_key(&batch, "micro-batch", HPS_MAX_BATCH, &rows, err);
		if (!st)
			st = hps_at_object(&batch, err);
		if (!st && (!hps_at_count(&batch) || hps_at_count(&batch) > MAX_PARALLEL))
			return hps_at_error(&batch, err, "expected 1 to %d parallelisms, got %zu",
					    MAX_PARALLEL, hps_at_count(&batch));
		for (size_t k = 0; k < hps_at_count(&batch) && !st; k++) {
			struct hps_at parallel = hps_at_member(&batch, hps_at_name(&batch, k));

			st = read_point(&parallel, (double)rows, x, to, err);
		}
	}
	if (to->n)
		qsort(to->point, to->n, sizeof(*to->point), by_batch);
	return st;
}

/* --- which batch sizes --- */

static const struct point *find(const struct points *of, double batch, int64_t parallel)
{
	const struct point key = { .batch = batch, .parallel = parallel };

	return bsearch(&key, of->point, of->n, sizeof(key), by_batch);
}

/* Sizes that every measured type has at parallelism 1; `first` is one of those types. */
static enum hps_status common_batches(struct sailor *x, const struct points *first,
				      struct hps_err *err)
{
	x->batch = hps_calloc(first->n, sizeof(*x->batch), err);
	if (!x->batch)
		return HPS_MEMORY;
	for (size_t i = 0; i < first->n; i++) {
		bool all = first->point[i].parallel == 1;

		for (uint32_t t = 0; t < x->n_types; t++)
			if (x->of[t].n && !find(&x->of[t], first->point[i].batch, 1))
				all = false;
		if (all)
			x->batch[x->n_batches++] = first->point[i].batch;
	}
	if (!x->n_batches)
		return hps_err_set(
			err, HPS_BAD_INPUT,
			"no micro-batch was measured at tensor parallelism 1 on every type");
	return HPS_OK;
}

static enum hps_status settle_batch(const struct sailor *x, double wanted, double *batch,
				    struct hps_err *err)
{
	*batch = x->batch[x->n_batches - 1];
	if (!(wanted > 0))
		return HPS_OK;
	for (uint32_t i = 0; i < x->n_batches; i++) {
		if (!(x->batch[i] < wanted) && !(x->batch[i] > wanted)) {
			*batch = wanted;
			return HPS_OK;
		}
	}
	return hps_err_set(
		err, HPS_USAGE,
		"--batch: %g was not measured at tensor parallelism 1 on every type; the "
		"largest that was is %g",
		wanted, *batch);
}

/* --- the profile --- */

static double total(const struct point *p, uint32_t n_layers)
{
	double sum = 0;

	for (size_t l = 0; l < n_layers; l++)
		sum += p->s[3 * l] + p->s[3 * l + 1];
	return sum;
}

/* alpha of a type, see import.h; -1: nothing but parallelism 1. */
static double alpha_of(const struct sailor *x, const struct points *of, double batch)
{
	const struct point *one = find(of, batch, 1);
	double xx = 0, xy = 0, whole = total(one, x->n_layers);

	for (size_t i = 0; i < of->n && whole > 0; i++) {
		const struct point *p = &of->point[i];
		double a = 1 - 1 / (double)p->parallel;

		if (p->parallel == 1 || p->batch < batch || p->batch > batch)
			continue;
		xx += a * a;
		xy += a * (1 - total(p, x->n_layers) / whole);
	}
	return xx > 0 ? fmax(0, fmin(1, xy / xx)) : -1;
}

/* Time `which` of a layer (0 forward, 1 backward) over all micro-batches of the type. Zeros,
 * where the clock saw nothing, have no say. */
static enum hps_status fit(const struct points *of, uint32_t l, int which, struct hps_fit *out,
			   struct hps_err *err)
{
	double *b = hps_calloc(of->n, sizeof(*b), err), *s = hps_calloc(of->n, sizeof(*s), err);
	uint32_t n = 0;

	for (size_t i = 0; b && s && i < of->n; i++) {
		double v = of->point[i].s[3 * (size_t)l + (size_t)which];

		if (of->point[i].parallel != 1 || v < DBL_MIN)
			continue;
		b[n] = of->point[i].batch;
		s[n++] = v;
	}
	if (n)
		hps_fit_affine(b, s, n, out);
	free(b);
	free(s);
	return b && s ? HPS_OK : HPS_MEMORY;
}

static enum hps_status fill_layer(const struct sailor *x, const struct points *of, uint32_t l,
				  double alpha, const struct hps_profile *p,
				  struct hps_layer_time *t, struct hps_err *err)
{
	const double *s = find(of, p->batch, 1)->s + 3 * (size_t)l;
	double shared;
	enum hps_status st;

	t->forward_s = hps_calloc(x->n_batches, sizeof(double), err);
	t->backward_s = hps_calloc(x->n_batches, sizeof(double), err);
	if (!t->forward_s || !t->backward_s)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < x->n_batches; i++) {
		const struct point *at = find(of, x->batch[i], 1);

		t->forward_s[i] = at->s[3 * (size_t)l];
		t->backward_s[i] = at->s[3 * (size_t)l + 1];
	}
	st = fit(of, l, 0, &t->forward, err);
	if (!st)
		st = fit(of, l, 1, &t->backward, err);
	t->oct = s[0] + s[1];
	shared = (t->forward.c1 + t->backward.c1) * p->batch;
	t->alpha = alpha >= 0	? alpha
		   : shared > 0 ? shared / (t->forward.c0 + t->backward.c0 + shared)
				: 1;
	return st;
}

static enum hps_status fill_type(const struct sailor *x, uint32_t t, struct hps_profile *p,
				 struct hps_err *err)
{
	const struct points *of = &x->of[t];
	const struct point *one = find(of, p->batch, 1);
	double alpha = alpha_of(x, of, p->batch), update = 0;
	enum hps_status st = HPS_OK;

	if (!(total(one, x->n_layers) > 0)) {
		hps_err_set(err, HPS_BAD_INPUT, "no layer takes any time at micro-batch %g",
			    p->batch);
		hps_err_at(err, "type \"%s\"", of->type);
		return HPS_BAD_INPUT;
	}
	for (uint32_t l = 0; l < x->n_layers && !st; l++) {
		st = fill_layer(x, of, l, alpha, p, &p->time[(size_t)t * p->n_layers + l], err);
		update += one->s[3 * (size_t)l + 2];
	}
	p->step_overhead_s = fmax(p->step_overhead_s, update);
	return st;
}

static enum hps_status fill(const struct sailor *x, const struct hps_cluster *c, double batch,
			    struct hps_profile *p, struct hps_err *err)
{
	bool *measured = hps_calloc(c->n_types, sizeof(*measured), err);
	enum hps_status st = measured ? hps_import_begin(c, x->n_layers, p, err) : HPS_MEMORY;

	if (!st) {
		p->batch = batch;
		p->batches = hps_calloc(x->n_batches, sizeof(double), err);
		st = p->batches ? HPS_OK : HPS_MEMORY;
	}
	if (!st) {
		memcpy(p->batches, x->batch, x->n_batches * sizeof(double));
		p->n_batches = x->n_batches;
	}
	for (uint32_t l = 0; l < x->n_layers && !st; l++) {
		char name[32];

		snprintf(name, sizeof(name), "layer%u", l);
		p->size[l].name = hps_strdup(name, err);
		st = p->size[l].name ? HPS_OK : HPS_MEMORY;
	}
	for (uint32_t t = 0; t < c->n_types && !st; t++) {
		measured[t] = x->of[t].n > 0;
		if (measured[t])
			st = fill_type(x, t, p, err);
	}
	if (!st)
		st = hps_import_derive(c, measured, p, err);
	if (st)
		hps_profile_release(p);
	free(measured);
	return st;
}

enum hps_status hps_import_sailor(struct hps_doc *const *doc, const char *const *name,
				  const struct hps_cluster *c, const struct hps_import_options *o,
				  struct hps_profile *p, struct hps_import_report *r,
				  struct hps_err *err)
{
	struct sailor x = { .n_types = c->n_types };
	const struct points *first = NULL;
	enum hps_status st = HPS_OK;
	double batch = 0;

	memset(p, 0, sizeof(*p));
	memset(r, 0, sizeof(*r));
	x.of = hps_calloc(c->n_types, sizeof(*x.of), err);
	if (!x.of)
		return HPS_MEMORY;
	for (uint32_t t = 0; t < c->n_types && !st; t++) {
		struct hps_at root = hps_at_root(doc[t], name[t]);

		if (!doc[t])
			continue;
		x.of[t].type = c->type[t].name;
		st = read_type(&root, &x, &x.of[t], err);
		first = first ? first : &x.of[t];
		r->n_measured++;
	}
	if (!st && !first)
		st = hps_err_set(err, HPS_BAD_INPUT, "no type of the cluster was measured");
	if (!st)
		st = common_batches(&x, first, err);
	if (!st)
		st = settle_batch(&x, o->batch, &batch, err);
	if (!st)
		st = fill(&x, c, batch, p, err);
	r->type = first ? first->type : NULL;
	r->batch_found = !(o->batch > 0);
	sailor_release(&x);
	return st;
}
