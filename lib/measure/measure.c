/* What does this machine need for the model? Runs the measurements and makes a profile of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "measure/measure_int.h"

/* Rows to work on: eight of the largest batches, so that a table outgrows the near caches as
 * a real one does; fewer where that would be too many. */
enum { WINDOWS = 8, QUICK_WINDOWS = 2 };
#define MOST_SAMPLE_BYTES   5e8
#define SAMPLE_ROW_BYTES(m) (12.0 + 8.0 * (m)->slots + 4.0 * (m)->dense)

static uint32_t sample_rows(const struct hps_model *m, const struct hps_measure_opts *o,
			    uint32_t largest)
{
	double n = (double)largest * (o->quick ? QUICK_WINDOWS : WINDOWS);

	n = fmin(n, MOST_SAMPLE_BYTES / SAMPLE_ROW_BYTES(m));
	return n < largest ? largest : (uint32_t)n;
}

/* Bytes that rows of a pass take at least, and the sample: what is certainly allocated. */
static double least_bytes(const struct hps_graph *g, uint32_t rows, uint32_t sample)
{
	const struct hps_model *m = g->model;
	double a_row = 0;

	for (uint32_t l = 0; l < m->n_layers; l++) {
		const struct hps_layer_cost *c = &g->cost[l];
		enum hps_op op = m->layer[l].op;

		a_row += 2.0 * (double)c->row_bytes + 12.0 * (double)c->keys;
		if (op != HPS_OP_CONCAT && op != HPS_OP_SLICE) /* may lie in another's place */
			a_row += 2.0 * (double)c->output_bytes;
	}
	return rows * a_row + sample * SAMPLE_ROW_BYTES(m);
}

/* What cannot fit is told before the rows are made up. */
static enum hps_status check_memory(const struct hps_graph *g, const struct hps_measure_opts *o,
				    const uint32_t *batch, uint32_t n, struct hps_err *err)
{
	uint32_t largest = batch[n - 1];
	double need = least_bytes(g, largest, sample_rows(g->model, o, largest));
	double have = hps_mem_total();

	if (need <= have)
		return HPS_OK;
	hps_err_set(err, HPS_MEMORY,
		    "a pass over %u rows needs %.4g bytes of memory or more, there are %.4g",
		    largest, need, have);
	if (o->batch)
		hps_err_hint(err, "time smaller sizes with --batches");
	else
		hps_err_hint(err,
			     "the model's micro-batch has %u rows: train with more "
			     "micro-batches, or time smaller sizes with --batches",
			     hps_micro_rows(g->model));
	return HPS_MEMORY;
}

static void settle_time(struct hps_layer_time *t, double batch)
{
	double fixed = t->forward.c0 + t->backward.c0;
	double shared = (t->forward.c1 + t->backward.c1) * batch;

	t->oct = fixed + shared;
	t->alpha = t->oct > 0 ? shared / t->oct : 1;
}

static double *row_of(const double *v, uint32_t layer, uint32_t n, struct hps_err *err)
{
	double *c = hps_calloc(n, sizeof(*c), err);

	if (c)
		memcpy(c, v + (size_t)layer * n, n * sizeof(*c));
	return c;
}

/* A job pays means of whole passes, interruptions and interplay included. */
static void stretch(struct hps_fit *fit, double by)
{
	fit->c0 *= by;
	fit->c1 *= by;
}

/* The measured type: medians, fits, OCT and alpha of every layer. */
static enum hps_status add_times(struct hps_profile *p, const char *type,
				 const struct hps_layers_result *r, struct hps_err *err)
{
	struct hps_layer_time *time = hps_calloc(p->n_layers, sizeof(*time), err);
	enum hps_status st = time ? HPS_OK : HPS_MEMORY;

	for (uint32_t l = 0; l < p->n_layers && st == HPS_OK; l++) {
		struct hps_layer_time *t = &time[l];

		t->forward_s = row_of(r->forward_s, l, p->n_batches, err);
		t->backward_s = row_of(r->backward_s, l, p->n_batches, err);
		if (!t->forward_s || !t->backward_s) {
			st = HPS_MEMORY;
			break;
		}
		hps_fit_affine(p->batches, t->forward_s, p->n_batches, &t->forward);
		hps_fit_affine(p->batches, t->backward_s, p->n_batches, &t->backward);
		stretch(&t->forward, r->stretch);
		stretch(&t->backward, r->stretch);
		settle_time(t, p->batch);
	}
	if (st == HPS_OK)
		st = hps_profile_add(p, type, false, time, err);
	for (uint32_t l = 0; time && l < p->n_layers; l++) {
		free(time[l].forward_s);
		free(time[l].backward_s);
	}
	free(time);
	return st;
}

static void report_fit(const struct hps_profile *p, const struct hps_model *m,
		       const struct hps_layers_result *r, struct hps_measure_report *report)
{
	const struct hps_layer_time *t = &p->time[(size_t)(p->n_types - 1) * p->n_layers];
	double rows = hps_micro_rows(m), sum = 0, all = 0;
	uint32_t near = 0;

	for (uint32_t b = 1; b < p->n_batches; b++)
		if (fabs(log(p->batches[b] / rows)) < fabs(log(p->batches[near] / rows)))
			near = b;
	for (uint32_t l = 0; l < p->n_layers; l++) {
		sum += r->forward_s[(size_t)l * p->n_batches + near] +
		       r->backward_s[(size_t)l * p->n_batches + near];
		all += t[l].oct;
	}
	report->rounds = r->rounds;
	report->pass_s = r->pass_s[near];
	report->layers_of_pass = sum / r->pass_s[near];
	report->stretch = r->stretch;
	report->worst_error = 0;
	for (uint32_t l = 0; l < p->n_layers; l++) {
		double e = fmax(t[l].forward.error, t[l].backward.error);

		if (t[l].oct >= 0.02 * all && e >= report->worst_error) {
			report->worst_error = e;
			report->worst = m->layer[l].name;
		}
	}
}

static enum hps_status fill(struct hps_profile *p, const struct hps_model *m, const char *type,
			    const uint32_t *batch, uint32_t n_batches, const struct hps_sample *s,
			    const struct hps_layers_result *r, struct hps_measure_report *report,
			    struct hps_err *err)
{
	enum hps_status st = hps_profile_sizes(m, r->keys, p, err);

	if (st != HPS_OK)
		return st;
	p->batches = hps_calloc(n_batches, sizeof(*p->batches), err);
	if (!p->batches)
		return HPS_MEMORY;
	p->n_batches = n_batches;
	for (uint32_t i = 0; i < n_batches; i++)
		p->batches[i] = batch[i];
	p->shard.rows_per_s = r->rows_per_s;
	p->shard.bytes_per_s = r->bytes_per_s;
	p->shard.measured = r->rows_per_s > 0 || r->bytes_per_s > 0;
	p->step_overhead_s = r->update_s;
	p->input_s_per_sample = s->input_s;
	st = add_times(p, type, r, err);
	if (st == HPS_OK)
		report_fit(p, m, r, report);
	return st;
}

static enum hps_status compute(const struct hps_model *m, const struct hps_graph *g,
			       const char *type, const struct hps_backend *be,
			       const uint32_t *batch, uint32_t n, const struct hps_measure_opts *o,
			       struct hps_profile *p, struct hps_measure_report *report,
			       struct hps_err *err)
{
	struct hps_layers_result result = { 0 };
	struct hps_sample sample = { 0 };
	struct hps_rig rig = { 0 };
	enum hps_status st;

	hps_tell(o, 0, o->data ? "data" : "layers");
	st = hps_sample_init(&sample, m, o->data, sample_rows(m, o, batch[n - 1]), err);
	if (st == HPS_OK)
		st = hps_rig_init(&rig, m, g, be, batch[n - 1], err);
	if (st == HPS_OK)
		st = hps_time_layers(&rig, &sample, batch, n, o, &result, err);
	if (st == HPS_OK)
		st = fill(p, m, type, batch, n, &sample, &result, report, err);
	report->rows = sample.read;
	hps_layers_result_release(&result);
	hps_rig_release(&rig);
	hps_sample_release(&sample);
	return st;
}

enum hps_status hps_measure(const struct hps_model *m, const char *type,
			    const struct hps_backend *be, const struct hps_measure_opts *o,
			    struct hps_profile *p, struct hps_measure_report *report,
			    struct hps_err *err)
{
	uint32_t own[HPS_MEASURE_MAX_BATCHES], n = o->n_batches;
	const uint32_t *batch = o->batch;
	struct hps_link link;
	struct hps_graph g;
	enum hps_status st;

	memset(p, 0, sizeof(*p));
	memset(report, 0, sizeof(*report));
	if (!batch) {
		n = hps_measure_batches(m, own);
		batch = own;
	}
	st = hps_graph_build(m, &g, err);
	if (st != HPS_OK)
		return st;
	st = check_memory(&g, o, batch, n, err);
	/* first: the other process is a copy of this one while it is small */
	if (st == HPS_OK)
		st = hps_measure_link(o, &link, err);
	if (st == HPS_OK)
		st = compute(m, &g, type, be, batch, n, o, p, report, err);
	hps_graph_release(&g);
	if (st != HPS_OK) {
		hps_profile_release(p);
		return st;
	}
	p->link = link;
	p->link_measured = true;
	return HPS_OK;
}
