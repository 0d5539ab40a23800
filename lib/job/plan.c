/* Which layers run on what? Reads, checks and writes the plan section. */
#include "job/plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "job/job_int.h"

static const char *const objective_names[] = { "cost_per_sample", "price_per_hour" };
static const char *const form_names[] = { "paper", "executor" };
static const char *const evaluator_names[] = { "rate", "step" };

enum hps_status hps_get_interval(const struct hps_at *at, uint32_t begin, uint32_t *first,
				 uint32_t *last, struct hps_err *err)
{
	struct hps_at first_at = hps_at_member(at, "first");
	enum hps_status rc;

	rc = hps_get_u32(at, "first", HPS_REQUIRED, 0, HPS_MAX_LAYERS - 1, first, err);
	if (!rc && *first != begin)
		return hps_at_error(&first_at, err,
				    "expected %u: stages cover all layers in order, got %u", begin,
				    *first);
	return rc ? rc
		  : hps_get_u32(at, "last", HPS_REQUIRED, *first, HPS_MAX_LAYERS - 1, last, err);
}

static enum hps_status read_stages(const struct hps_at *root, struct hps_plan *p,
				   struct hps_err *err)
{
	static const char *const members[] = { "first",	      "last",	 "type", "units",
					       "description", "comment", NULL };
	uint32_t n, begin = 0;
	enum hps_status rc;
	struct hps_at at;

	rc = hps_get_array(root, "stages", HPS_REQUIRED, 1, HPS_MAX_LAYERS, &at, &n, err);
	if (rc)
		return rc;
	p->stage = hps_calloc(n, sizeof(*p->stage), err);
	if (!p->stage)
		return HPS_MEMORY;
	p->n_stages = n;
	for (uint32_t i = 0; !rc && i < n; i++) {
		struct hps_plan_stage *s = &p->stage[i];
		struct hps_at item = hps_at_item(&at, i);

		rc = hps_at_object(&item, err);
		if (!rc)
			rc = hps_at_only(&item, members, err);
		if (!rc)
			rc = hps_get_interval(&item, begin, &s->first, &s->last, err);
		if (!rc)
			rc = hps_get_name(&item, "type", HPS_REQUIRED, &s->type, err);
		if (!rc)
			rc = hps_get_u32(&item, "units", HPS_REQUIRED, 1, HPS_MAX_UNITS, &s->units,
					 err);
		begin = s->last + 1;
	}
	return rc;
}

/* One of the names, copied; names[def] by default. */
static enum hps_status read_word(const struct hps_at *at, const char *key, const char *const *names,
				 size_t n, int def, char **out, struct hps_err *err)
{
	enum hps_status rc;

	rc = hps_get_choice(at, key, HPS_OPTIONAL, names, n, &def, err);
	if (rc)
		return rc;
	*out = hps_strdup(names[def], err);
	return *out ? HPS_OK : HPS_MEMORY;
}

static enum hps_status read_bound(const struct hps_at *at, struct hps_plan *p, struct hps_err *err)
{
	struct hps_at bound = hps_at_member(at, "bound");
	struct hps_at gap = hps_at_member(at, "gap");
	enum hps_status rc;

	p->has_bound = !hps_at_absent(&bound);
	if (!p->has_bound) {
		if (!hps_at_absent(&gap))
			return hps_at_error(&gap, err, "a gap needs \"bound\"");
		return HPS_OK;
	}
	rc = hps_at_double(&bound, 0, HUGE_VAL, &p->bound, err);
	/* A little below 0 is rounding: the bound and the cost are sums in other orders. */
	return rc ? rc : hps_get_double(at, "gap", HPS_OPTIONAL, -1, HUGE_VAL, &p->gap, err);
}

static enum hps_status read_figures(const struct hps_at *at, struct hps_plan *p,
				    struct hps_err *err)
{
	const struct {
		const char *key;
		double *out;
	} figure[] = {
		{ "floor_samples_per_s", &p->floor_samples_per_s },
		{ "throughput_samples_per_s", &p->throughput_samples_per_s },
		{ "cost_per_sample", &p->cost_per_sample },
		{ "price_per_hour", &p->price_per_hour },
	};
	const struct {
		const char *key;
		bool *out;
	} flag[] = {
		{ "proven", &p->proven },
		{ "simulated", &p->simulated },
		{ "interrupted", &p->interrupted },
	};
	enum hps_status rc = HPS_OK;

	for (size_t i = 0; !rc && i < HPS_COUNT(figure); i++)
		rc = hps_get_double(at, figure[i].key, HPS_OPTIONAL, 0, HUGE_VAL, figure[i].out,
				    err);
	for (size_t i = 0; !rc && i < HPS_COUNT(flag); i++)
		rc = hps_get_bool(at, flag[i].key, HPS_OPTIONAL, flag[i].out, err);
	return rc;
}

enum hps_status hps_plan_read(const struct hps_at *at, struct hps_plan *p, struct hps_err *err)
{
	static const char *const members[] = { "digest",
					       "stages",
					       "ps_shards",
					       "floor_samples_per_s",
					       "method",
					       "objective",
					       "form",
					       "evaluator",
					       "seed",
					       "evaluations",
					       "throughput_samples_per_s",
					       "cost_per_sample",
					       "price_per_hour",
					       "bound",
					       "gap",
					       "proven",
					       "simulated",
					       "interrupted",
					       "description",
					       "comment",
					       NULL };
	enum hps_status rc;

	memset(p, 0, sizeof(*p));
	p->ps_shards = 1;
	p->seed = 1;
	rc = hps_at_object(at, err);
	if (!rc)
		rc = hps_at_only(at, members, err);
	if (!rc)
		rc = hps_get_digest(at, "digest", HPS_REQUIRED, &p->digest, err);
	if (!rc)
		rc = read_stages(at, p, err);
	if (!rc)
		rc = hps_get_u32(at, "ps_shards", HPS_OPTIONAL, 0, HPS_MAX_SHARDS, &p->ps_shards,
				 err);
	if (!rc)
		rc = hps_get_text(at, "method", HPS_REQUIRED, HPS_TEXT_LEN, &p->method, err);
	if (!rc)
		rc = read_word(at, "objective", objective_names, HPS_COUNT(objective_names), 0,
			       &p->objective, err);
	if (!rc)
		rc = read_word(at, "form", form_names, HPS_COUNT(form_names), 1, &p->form, err);
	if (!rc)
		rc = read_word(at, "evaluator", evaluator_names, HPS_COUNT(evaluator_names), 0,
			       &p->evaluator, err);
	if (!rc)
		rc = hps_get_u64(at, "seed", HPS_OPTIONAL, 0, UINT64_MAX, &p->seed, err);
	if (!rc)
		rc = hps_get_u64(at, "evaluations", HPS_OPTIONAL, 0, UINT64_MAX, &p->evaluations,
				 err);
	if (!rc)
		rc = read_figures(at, p, err);
	if (!rc)
		rc = read_bound(at, p, err);
	if (rc)
		hps_plan_release(p);
	return rc;
}

static struct hps_doc *write_stage(const struct hps_plan_stage *s)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(d, !d || hps_doc_put(d, "first", hps_doc_int(s->first)) ||
					 hps_doc_put(d, "last", hps_doc_int(s->last)) ||
					 hps_doc_put(d, "type", hps_doc_string(s->type)) ||
					 hps_doc_put(d, "units", hps_doc_int(s->units)));
}

static struct hps_doc *write_stages(const struct hps_plan *p)
{
	struct hps_doc *d = hps_doc_array();
	int failed = !d;

	for (uint32_t i = 0; !failed && i < p->n_stages; i++)
		failed = hps_doc_add(d, write_stage(&p->stage[i]));
	return hps_doc_finish(d, failed);
}

struct hps_doc *hps_plan_write(const struct hps_plan *p)
{
	struct hps_doc *d = hps_doc_object();
	int failed;

	failed = !d || hps_doc_put(d, "digest", hps_doc_digest(p->digest)) ||
		 hps_doc_put(d, "stages", write_stages(p)) ||
		 hps_doc_put(d, "ps_shards", hps_doc_int(p->ps_shards)) ||
		 hps_doc_put(d, "floor_samples_per_s", hps_doc_double(p->floor_samples_per_s)) ||
		 hps_doc_put(d, "method", hps_doc_string(p->method)) ||
		 hps_doc_put(d, "objective", hps_doc_string(p->objective)) ||
		 hps_doc_put(d, "form", hps_doc_string(p->form)) ||
		 hps_doc_put(d, "evaluator", hps_doc_string(p->evaluator)) ||
		 hps_doc_put(d, "seed", hps_doc_u64(p->seed)) ||
		 hps_doc_put(d, "evaluations", hps_doc_u64(p->evaluations)) ||
		 hps_doc_put(d, "throughput_samples_per_s",
			     hps_doc_double(p->throughput_samples_per_s)) ||
		 hps_doc_put(d, "cost_per_sample", hps_doc_double(p->cost_per_sample)) ||
		 hps_doc_put(d, "price_per_hour", hps_doc_double(p->price_per_hour));
	if (!failed && p->has_bound)
		failed = hps_doc_put(d, "bound", hps_doc_double(p->bound)) ||
			 hps_doc_put(d, "gap", hps_doc_double(p->gap));
	return hps_doc_finish(d,
			      failed || hps_doc_put(d, "proven", hps_doc_bool(p->proven)) ||
				      hps_doc_put(d, "simulated", hps_doc_bool(p->simulated)) ||
				      hps_doc_put(d, "interrupted", hps_doc_bool(p->interrupted)));
}

void hps_plan_release(struct hps_plan *p)
{
	for (uint32_t i = 0; i < p->n_stages; i++)
		free(p->stage[i].type);
	free(p->stage);
	free(p->method);
	free(p->objective);
	free(p->form);
	free(p->evaluator);
	memset(p, 0, sizeof(*p));
}
