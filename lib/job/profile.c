/* What does each layer cost on each type? Reads and checks the profile section. */
#include "job/profile.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "job/job_int.h"

enum { MAX_BATCHES = 1024, MAX_SCALING = 65536 };

static enum hps_status read_batches(const struct hps_at *root, struct hps_profile *p,
				    struct hps_err *err)
{
	enum hps_status rc;
	struct hps_at at;
	uint32_t n;

	rc = hps_get_positive(root, "batch", HPS_REQUIRED, HPS_MAX_BATCH, &p->batch, err);
	if (!rc)
		rc = hps_get_array(root, "batches", HPS_OPTIONAL, 0, MAX_BATCHES, &at, &n, err);
	if (!rc)
		rc = hps_get_doubles(root, "batches", HPS_OPTIONAL, n, &p->batches, err);
	if (rc)
		return rc;
	p->n_batches = n;
	for (uint32_t i = 0; i < n; i++) {
		struct hps_at item = hps_at_item(&at, i);

		if (!(p->batches[i] > (i ? p->batches[i - 1] : 0)))
			return hps_at_expected(&item, err, "ascending batch sizes > 0");
	}
	return HPS_OK;
}

/* --- sizes: what does not depend on the type --- */

static enum hps_status read_size(const struct hps_at *at, struct hps_profile *p, uint32_t l,
				 struct hps_err *err)
{
	static const char *const members[] = {
		"name",	 "param_bytes",	      "output_bytes",	    "sparse_bytes", "sparse_keys",
		"flops", "cut_forward_bytes", "cut_backward_bytes", "description",  "comment",
		NULL
	};
	struct hps_layer_size *s = &p->size[l];
	const struct {
		const char *key;
		double *out;
	} figure[] = {
		{ "param_bytes", &s->param_bytes },
		{ "output_bytes", &s->output_bytes },
		{ "sparse_bytes", &s->sparse_bytes },
		{ "sparse_keys", &s->sparse_keys },
		{ "flops", &s->flops },
		{ "cut_forward_bytes", &p->cut_forward_bytes[l] },
		{ "cut_backward_bytes", &p->cut_backward_bytes[l] },
	};
	enum hps_status rc;

	rc = hps_at_object(at, err);
	if (!rc)
		rc = hps_at_only(at, members, err);
	if (!rc)
		rc = hps_get_text(at, "name", HPS_REQUIRED, HPS_WORD_LEN, &s->name, err);
	for (size_t i = 0; !rc && i < HPS_COUNT(figure); i++)
		rc = hps_get_double(at, figure[i].key, HPS_OPTIONAL, 0, HUGE_VAL, figure[i].out,
				    err);
	if (!rc && l + 1 == p->n_layers &&
	    (p->cut_forward_bytes[l] > 0 || p->cut_backward_bytes[l] > 0))
		return hps_at_error(at, err,
				    "nothing crosses a cut after the last layer, "
				    "its cut_forward_bytes and cut_backward_bytes are 0");
	return rc;
}

static enum hps_status read_sizes(const struct hps_at *root, struct hps_profile *p,
				  struct hps_err *err)
{
	enum hps_status rc;
	struct hps_at at;
	uint32_t n;

	rc = hps_get_array(root, "layers", HPS_REQUIRED, 1, HPS_MAX_LAYERS, &at, &n, err);
	if (rc)
		return rc;
	p->size = hps_calloc(n, sizeof(*p->size), err);
	p->cut_forward_bytes = hps_calloc(n, sizeof(double), err);
	p->cut_backward_bytes = hps_calloc(n, sizeof(double), err);
	if (!p->size || !p->cut_forward_bytes || !p->cut_backward_bytes)
		return HPS_MEMORY;
	p->n_layers = n;
	for (uint32_t l = 0; !rc && l < n; l++) {
		struct hps_at item = hps_at_item(&at, l);

		rc = read_size(&item, p, l, err);
	}
	return rc;
}

/* --- times: of one layer on one type --- */

static enum hps_status read_fit(const struct hps_at *up, const char *key, struct hps_fit *fit,
				bool *there, struct hps_err *err)
{
	static const char *const members[] = {
		"c0", "c1", "error", "description", "comment", NULL
	};
	struct hps_at at = hps_at_member(up, key);
	enum hps_status rc;

	*there = !hps_at_absent(&at);
	if (!*there)
		return HPS_OK;
	rc = hps_at_object(&at, err);
	if (!rc)
		rc = hps_at_only(&at, members, err);
	if (!rc)
		rc = hps_get_double(&at, "c0", HPS_REQUIRED, 0, HUGE_VAL, &fit->c0, err);
	if (!rc)
		rc = hps_get_double(&at, "c1", HPS_REQUIRED, 0, HUGE_VAL, &fit->c1, err);
	if (!rc)
		rc = hps_get_double(&at, "error", HPS_OPTIONAL, 0, HUGE_VAL, &fit->error, err);
	return rc;
}

/* oct and alpha as they follow from the fits; given values win, so that foreign profiles
 * need no fit. */
static enum hps_status read_oct(const struct hps_at *at, const struct hps_profile *p,
				struct hps_layer_time *t, bool fitted, struct hps_err *err)
{
	enum hps_presence need = fitted ? HPS_OPTIONAL : HPS_REQUIRED;
	double serial = t->forward.c0 + t->backward.c0;
	double parallel = (t->forward.c1 + t->backward.c1) * p->batch;
	enum hps_status rc;

	t->oct = serial + parallel;
	t->alpha = t->oct > 0 ? parallel / t->oct : 1;
	rc = hps_get_double(at, "oct", need, 0, HUGE_VAL, &t->oct, err);
	return rc ? rc : hps_get_double(at, "alpha", need, 0, 1, &t->alpha, err);
}

static enum hps_status read_scaling(const struct hps_at *at, struct hps_layer_time *t,
				    struct hps_err *err)
{
	struct hps_at place;
	enum hps_status rc;
	uint32_t n;

	rc = hps_get_array(at, "scaling", HPS_OPTIONAL, 0, MAX_SCALING, &place, &n, err);
	if (rc || !n)
		return rc;
	rc = hps_get_doubles(at, "scaling", HPS_OPTIONAL, n, &t->scaling, err);
	if (rc)
		return rc;
	t->n_scaling = n;
	for (uint32_t i = 0; i < n; i++) {
		struct hps_at item = hps_at_item(&place, i);

		if (!(t->scaling[i] > 0))
			return hps_at_expected(&item, err, "a speed > 0, relative to 1 unit");
	}
	return HPS_OK;
}

static enum hps_status read_time(const struct hps_at *at, const struct hps_profile *p, uint32_t l,
				 struct hps_layer_time *t, struct hps_err *err)
{
	static const char *const members[] = { "name",	      "forward_s", "backward_s", "forward",
					       "backward",    "oct",	   "alpha",	 "scaling",
					       "description", "comment",   NULL };
	struct hps_at name = hps_at_member(at, "name");
	bool forward = false, backward = false;
	enum hps_status rc;
	const char *s;

	rc = hps_at_object(at, err);
	if (!rc)
		rc = hps_at_only(at, members, err);
	if (!rc && !hps_at_absent(&name)) {
		rc = hps_at_string(&name, &s, err);
		if (!rc && strcmp(s, p->size[l].name))
			rc = hps_at_expected(&name, err, "\"%s\", the name of layers[%u]",
					     p->size[l].name, l);
	}
	if (!rc)
		rc = hps_get_doubles(at, "forward_s", HPS_OPTIONAL, p->n_batches, &t->forward_s,
				     err);
	if (!rc)
		rc = hps_get_doubles(at, "backward_s", HPS_OPTIONAL, p->n_batches, &t->backward_s,
				     err);
	if (!rc)
		rc = read_fit(at, "forward", &t->forward, &forward, err);
	if (!rc)
		rc = read_fit(at, "backward", &t->backward, &backward, err);
	if (!rc)
		rc = read_oct(at, p, t, forward && backward, err);
	return rc ? rc : read_scaling(at, t, err);
}

static enum hps_status read_type(const struct hps_at *at, struct hps_profile *p, uint32_t t,
				 struct hps_err *err)
{
	static const char *const members[] = { "name",	      "simulated", "layers",
					       "description", "comment",   NULL };
	struct hps_at name = hps_at_member(at, "name");
	struct hps_at layers;
	enum hps_status rc;
	uint32_t n;

	rc = hps_at_only(at, members, err);
	if (!rc)
		rc = hps_get_name(at, "name", HPS_REQUIRED, &p->type[t], err);
	for (uint32_t i = 0; !rc && i < t; i++)
		if (!strcmp(p->type[i], p->type[t]))
			rc = hps_at_error(&name, err, "\"%s\" is the name of types[%u] already",
					  p->type[t], i);
	if (!rc)
		rc = hps_get_bool(at, "simulated", HPS_OPTIONAL, &p->simulated[t], err);
	if (!rc)
		rc = hps_get_array(at, "layers", HPS_REQUIRED, p->n_layers, p->n_layers, &layers,
				   &n, err);
	for (uint32_t l = 0; !rc && l < p->n_layers; l++) {
		struct hps_at item = hps_at_item(&layers, l);

		rc = read_time(&item, p, l, &p->time[(size_t)t * p->n_layers + l], err);
	}
	return rc;
}

static enum hps_status read_types(const struct hps_at *root, struct hps_profile *p,
				  struct hps_err *err)
{
	enum hps_status rc;
	struct hps_at at;
	uint32_t n;

	rc = hps_get_array(root, "types", HPS_REQUIRED, 1, HPS_MAX_TYPES, &at, &n, err);
	/* Before n_types * n_layers are allocated: are they there? */
	for (uint32_t t = 0; !rc && t < n; t++) {
		struct hps_at item = hps_at_item(&at, t);
		struct hps_at layers;
		uint32_t count;

		rc = hps_at_object(&item, err);
		if (!rc)
			rc = hps_get_array(&item, "layers", HPS_REQUIRED, p->n_layers, p->n_layers,
					   &layers, &count, err);
	}
	if (rc)
		return rc;
	p->type = hps_calloc(n, sizeof(*p->type), err);
	p->simulated = hps_calloc(n, sizeof(*p->simulated), err);
	p->time = hps_calloc((size_t)n * p->n_layers, sizeof(*p->time), err);
	if (!p->type || !p->simulated || !p->time)
		return HPS_MEMORY;
	p->n_types = n;
	for (uint32_t t = 0; !rc && t < n; t++) {
		struct hps_at item = hps_at_item(&at, t);

		rc = read_type(&item, p, t, err);
	}
	return rc;
}

/* --- the section --- */

static enum hps_status read_shard(const struct hps_at *root, struct hps_profile *p,
				  struct hps_err *err)
{
	static const char *const members[] = { "rows_per_s",  "bytes_per_s", "measured",
					       "description", "comment",     NULL };
	struct hps_at at = hps_at_member(root, "shard");
	enum hps_status rc;

	if (hps_at_absent(&at))
		return HPS_OK;
	rc = hps_at_object(&at, err);
	if (!rc)
		rc = hps_at_only(&at, members, err);
	if (!rc)
		rc = hps_get_double(&at, "rows_per_s", HPS_OPTIONAL, 0, HUGE_VAL,
				    &p->shard.rows_per_s, err);
	if (!rc)
		rc = hps_get_double(&at, "bytes_per_s", HPS_OPTIONAL, 0, HUGE_VAL,
				    &p->shard.bytes_per_s, err);
	if (!rc)
		rc = hps_get_bool(&at, "measured", HPS_OPTIONAL, &p->shard.measured, err);
	return rc;
}

enum hps_status hps_profile_read(const struct hps_at *at, struct hps_profile *p,
				 struct hps_err *err)
{
	static const char *const members[] = {
		"digest",      "source",  "batch", "batches",	      "layers",
		"types",       "link",	  "shard", "step_overhead_s", "input_s_per_sample",
		"description", "comment", NULL
	};
	enum hps_status rc;

	memset(p, 0, sizeof(*p));
	rc = hps_at_object(at, err);
	if (!rc)
		rc = hps_at_only(at, members, err);
	if (!rc)
		rc = hps_get_digest(at, "digest", HPS_REQUIRED, &p->digest, err);
	if (!rc)
		rc = hps_get_text(at, "source", HPS_OPTIONAL, HPS_WORD_LEN, &p->source, err);
	if (!rc)
		rc = read_batches(at, p, err);
	if (!rc)
		rc = read_sizes(at, p, err);
	if (!rc)
		rc = read_types(at, p, err);
	if (!rc)
		rc = hps_get_link(at, "link", &p->link, "measured", &p->link_measured, err);
	if (!rc)
		rc = read_shard(at, p, err);
	if (!rc)
		rc = hps_get_double(at, "step_overhead_s", HPS_OPTIONAL, 0, HUGE_VAL,
				    &p->step_overhead_s, err);
	if (!rc)
		rc = hps_get_double(at, "input_s_per_sample", HPS_OPTIONAL, 0, HUGE_VAL,
				    &p->input_s_per_sample, err);
	if (rc)
		hps_profile_release(p);
	return rc;
}

void hps_profile_release(struct hps_profile *p)
{
	for (size_t i = 0; i < (size_t)p->n_types * p->n_layers; i++) {
		free(p->time[i].forward_s);
		free(p->time[i].backward_s);
		free(p->time[i].scaling);
	}
	for (uint32_t t = 0; t < p->n_types; t++)
		free(p->type[t]);
	for (uint32_t l = 0; l < p->n_layers; l++)
		free(p->size[l].name);
	free(p->source);
	free(p->batches);
	free(p->size);
	free(p->type);
	free(p->simulated);
	free(p->time);
	free(p->cut_forward_bytes);
	free(p->cut_backward_bytes);
	memset(p, 0, sizeof(*p));
}

int hps_profile_type(const struct hps_profile *p, const char *name)
{
	for (uint32_t t = 0; t < p->n_types; t++)
		if (!strcmp(p->type[t], name))
			return (int)t;
	return -1;
}
