/* Which types of a cluster does a foreign profile speak for? The measured ones, and by their
 * speeds those that are declared relative to them. */
#include <string.h>
#include "base/mem.h"
#include "import/import_int.h"

enum hps_status hps_import_begin(const struct hps_cluster *c, uint32_t n_layers,
				 struct hps_profile *p, struct hps_err *err)
{
	memset(p, 0, sizeof(*p));
	p->size = hps_calloc(n_layers, sizeof(*p->size), err);
	p->cut_forward_bytes = hps_calloc(n_layers, sizeof(double), err);
	p->cut_backward_bytes = hps_calloc(n_layers, sizeof(double), err);
	p->type = hps_calloc(c->n_types, sizeof(*p->type), err);
	p->simulated = hps_calloc(c->n_types, sizeof(*p->simulated), err);
	p->time = hps_calloc((size_t)c->n_types * n_layers, sizeof(*p->time), err);
	if (!p->size || !p->cut_forward_bytes || !p->cut_backward_bytes || !p->type ||
	    !p->simulated || !p->time)
		goto fail;
	p->n_layers = n_layers;
	p->n_types = c->n_types;
	for (uint32_t t = 0; t < c->n_types; t++) {
		p->type[t] = hps_strdup(c->type[t].name, err);
		if (!p->type[t])
			goto fail;
	}
	return HPS_OK;
fail:
	hps_profile_release(p);
	return HPS_MEMORY;
}

/* The type that t's speed is relative to: itself, where it is declared by none. */
static uint32_t root(const struct hps_cluster *c, uint32_t t)
{
	return c->type[t].like ? (uint32_t)hps_cluster_type(c, c->type[t].like) : t;
}

static double speed(const struct hps_cluster *c, uint32_t t)
{
	return c->type[t].like ? c->type[t].speed : 1;
}

/* A measured type that t is related to, the root before others; or -1. */
static int relative(const struct hps_cluster *c, const bool *measured, uint32_t t)
{
	uint32_t r = root(c, t);

	if (measured[r])
		return (int)r;
	for (uint32_t i = 0; i < c->n_types; i++)
		if (measured[i] && root(c, i) == r)
			return (int)i;
	return -1;
}

static void scale(const struct hps_fit *from, double factor, struct hps_fit *to)
{
	to->c0 = from->c0 * factor;
	to->c1 = from->c1 * factor;
	to->error = from->error;
}

enum hps_status hps_import_derive(const struct hps_cluster *c, const bool *measured,
				  struct hps_profile *p, struct hps_err *err)
{
	for (uint32_t t = 0; t < c->n_types; t++) {
		int from = measured[t] ? (int)t : relative(c, measured, t);
		double factor;

		if (measured[t])
			continue;
		if (from < 0) {
			hps_err_set(err, HPS_DEVICE,
				    "the profile has no times of it, nor of a type that it is "
				    "declared relative to");
			hps_err_at(err, "type \"%s\"", c->type[t].name);
			hps_err_hint(err, "declare it relative to a measured type (\"like\": "
					  "\"v100\", \"speed\": 0.5), or take it out");
			return HPS_DEVICE;
		}
		factor = speed(c, (uint32_t)from) / speed(c, t);
		p->simulated[t] = true;
		for (uint32_t l = 0; l < p->n_layers; l++) {
			const struct hps_layer_time *x = &p->time[(size_t)from * p->n_layers + l];
			struct hps_layer_time *y = &p->time[(size_t)t * p->n_layers + l];

			scale(&x->forward, factor, &y->forward);
			scale(&x->backward, factor, &y->backward);
			y->oct = x->oct * factor;
			y->alpha = x->alpha;
		}
	}
	return HPS_OK;
}
