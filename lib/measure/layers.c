/* What does each layer cost, and do the parts add up? Passes over batches of several sizes,
 * in rounds: one with the clock read between layers, one as a whole.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/mem.h"
#include "measure/measure_int.h"
#include "optim/optim.h"

enum { MIN_ROUNDS = 5, MAX_ROUNDS = 40, QUICK_ROUNDS = 3, DENSE_STEPS = 9, WARM_STEPS = 4 };
#define ENOUGH_S 6.0
#define LEAST_S	 1e-9 /* a time below the clock's own cost: something, for logarithms' sake */

/* Everything of one measurement; times are [..][round], so that medians sort in place. */
struct timing {
	struct hps_rig *rig;
	const struct hps_sample *sample;
	const uint32_t *batch;
	uint32_t n_batches, n_layers, rounds, round;
	const struct hps_measure_opts *o;
	double clock_s;
	double *forward, *backward;	   /* (n_layers, n_batches, rounds) */
	double *pass;			   /* (n_batches, rounds) */
	double *shard_row_s;		   /* (rounds): seconds a row pulled or pushed */
	uint32_t n_shard_row, model_batch; /* index of the size nearest to the model's */
};

static double *at(const struct timing *t, double *v, uint32_t layer, uint32_t size)
{
	return v + ((size_t)layer * t->n_batches + size) * t->rounds;
}

/* The rows of a pass: another window of the sample each time. */
static struct hps_stage_in window(const struct timing *t, uint32_t rows, uint32_t turn)
{
	uint32_t places = t->sample->n / rows;

	return hps_sample_in(t->sample, &t->rig->job.model, turn % places * rows, rows);
}

static uint64_t looked_up(const struct hps_rig *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->n_lookups; i++)
		n += r->rows[i].n;
	return n;
}

/* Begin a pass and fill its rows; finding the distinct keys is the client's work, too. */
static enum hps_status begin(struct timing *t, const struct hps_stage_in *in,
			     struct hps_sides *pull, struct hps_err *err)
{
	double before = hps_cpu_s();
	enum hps_status st = hps_pass_begin(t->rig->pass, in, err);

	pull->client_s += hps_cpu_s() - before;
	return st == HPS_OK ? hps_rig_pull(t->rig, pull, err) : st;
}

/* The client's seconds of a pull or push, shared out to the layers that asked, by rows. */
static void share_out(struct timing *t, double *v, uint32_t size, double client_s)
{
	uint64_t all = looked_up(t->rig);

	for (uint32_t i = 0; i < t->rig->n_lookups && all; i++) {
		const struct hps_lookup *u = hps_pass_lookup(t->rig->pass, i);

		at(t, v, u->layer, size)[t->round] += client_s * u->n_unique / (double)all;
	}
}

/* One pass with the clock read between layers. */
static enum hps_status layer_by_layer(struct timing *t, uint32_t size, struct hps_err *err)
{
	struct hps_stage_in in = window(t, t->batch[size], t->round);
	struct hps_sides pull = { 0 }, push = { 0 };
	struct hps_rig *r = t->rig;
	enum hps_status st = begin(t, &in, &pull, err);
	double now, next;

	if (st != HPS_OK)
		return st;
	memset(r->grads, 0, r->n_floats * sizeof(float));
	now = hps_cpu_s();
	for (uint32_t l = 0; l < t->n_layers; l++, now = next) {
		hps_pass_run_layer(r->pass, l, r->params, r->grads, false);
		next = hps_cpu_s();
		at(t, t->forward, l, size)[t->round] = fmax(next - now - t->clock_s, LEAST_S);
	}
	now = hps_cpu_s();
	for (uint32_t l = t->n_layers; l-- > 0; now = next) {
		hps_pass_run_layer(r->pass, l, r->params, r->grads, true);
		next = hps_cpu_s();
		at(t, t->backward, l, size)[t->round] = fmax(next - now - t->clock_s, LEAST_S);
	}
	st = hps_rig_push(r, t->batch[size], &push, err);
	share_out(t, t->forward, size, pull.client_s);
	share_out(t, t->backward, size, push.client_s);
	return st;
}

/* One pass as a replica does it; *seconds without the shard's. */
static enum hps_status whole(struct timing *t, uint32_t size, double *seconds,
			     struct hps_sides *shard, struct hps_err *err)
{
	struct hps_stage_in in = window(t, t->batch[size], t->round + 1);
	struct hps_sides sides = { 0 };
	struct hps_rig *r = t->rig;
	enum hps_status st;
	double before;

	memset(r->grads, 0, r->n_floats * sizeof(float));
	before = hps_cpu_s();
	st = begin(t, &in, &sides, err);
	if (st != HPS_OK)
		return st;
	hps_pass_forward(r->pass, r->params, true);
	hps_pass_backward(r->pass, r->params, NULL, r->grads);
	st = hps_rig_push(r, t->batch[size], &sides, err);
	*seconds = fmax(hps_cpu_s() - before - sides.shard_s, LEAST_S);
	*shard = sides;
	return st;
}

static enum hps_status one_size(struct timing *t, uint32_t size, struct hps_err *err)
{
	double *pass = t->pass + (size_t)size * t->rounds + t->round, ignored;
	struct hps_sides shard = { 0 };
	enum hps_status st = hps_stopped(t->o, err);

	/* caches and predictors as after another pass of this size */
	if (st == HPS_OK && !t->o->quick)
		st = whole(t, size, &ignored, &shard, err);
	/* whichever comes first may be the luckier one: take turns */
	if (st == HPS_OK && t->round % 2)
		st = layer_by_layer(t, size, err);
	if (st == HPS_OK)
		st = whole(t, size, pass, &shard, err);
	if (st == HPS_OK && size == t->model_batch && looked_up(t->rig))
		t->shard_row_s[t->n_shard_row++] =
			fmax(shard.shard_s, LEAST_S) / (2.0 * (double)looked_up(t->rig));
	if (st == HPS_OK && t->round % 2 == 0)
		st = layer_by_layer(t, size, err);
	return st;
}

static enum hps_status one_round(struct timing *t, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint32_t size = 0; size < t->n_batches && st == HPS_OK; size++) {
		hps_tell(t->o,
			 (t->round + (size + 0.5) / t->n_batches) / (t->rounds ? t->rounds : 1),
			 "layers");
		st = one_size(t, size, err);
	}
	t->round++;
	return st;
}

static enum hps_status allocate(struct timing *t, uint32_t rounds, struct hps_err *err)
{
	size_t n = (size_t)t->n_layers * t->n_batches * rounds;

	t->rounds = rounds;
	t->round = 0;
	t->n_shard_row = 0;
	t->forward = hps_calloc(n, sizeof(double), err);
	t->backward = hps_calloc(n, sizeof(double), err);
	t->pass = hps_calloc((size_t)t->n_batches * rounds, sizeof(double), err);
	t->shard_row_s = hps_calloc(rounds, sizeof(double), err);
	return t->forward && t->backward && t->pass && t->shard_row_s ? HPS_OK : HPS_MEMORY;
}

static void release(struct timing *t)
{
	free(t->forward);
	free(t->backward);
	free(t->pass);
	free(t->shard_row_s);
	t->forward = t->backward = t->pass = t->shard_row_s = NULL;
}

/* Rows that are there already when times are taken: creating one costs a shard more than
 * finding it, and is rare after the first part of an epoch. Tells the keys, too. */
static enum hps_status warm_up(struct timing *t, double *keys, struct hps_err *err)
{
	struct hps_rig *r = t->rig;
	uint32_t rows = hps_micro_rows(&r->job.model), most = t->batch[t->n_batches - 1], turns;
	enum hps_status st = HPS_OK;

	if (rows > most)
		rows = most;
	turns = t->sample->n / rows;
	for (uint32_t i = 0; i < turns && st == HPS_OK; i++) {
		struct hps_stage_in in = window(t, rows, i);
		struct hps_sides sides = { 0 };

		st = hps_stopped(t->o, err);
		if (st == HPS_OK)
			st = begin(t, &in, &sides, err);
		for (uint32_t k = 0; k < r->n_lookups && st == HPS_OK; k++) {
			const struct hps_lookup *u = hps_pass_lookup(r->pass, k);

			keys[u->layer] += (double)u->n_unique / rows / turns;
			/* a push of what the pass before left: as good as any */
		}
		if (st == HPS_OK)
			st = hps_rig_push(r, rows, &sides, err);
	}
	return st;
}

/* As many rounds as fit the time, judged by the first one after a warm-up. */
static enum hps_status settle_rounds(struct timing *t, uint32_t *rounds, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	double took;

	*rounds = t->o->rounds ? t->o->rounds : QUICK_ROUNDS;
	if (t->o->rounds || t->o->quick)
		return HPS_OK;
	st = allocate(t, 2, err);
	if (st == HPS_OK)
		st = one_round(t, err);
	took = hps_now_s();
	if (st == HPS_OK)
		st = one_round(t, err);
	took = hps_now_s() - took;
	release(t);
	*rounds = (uint32_t)fmin(fmax(ENOUGH_S / took, MIN_ROUNDS), MAX_ROUNDS);
	return st;
}

/* The shard's rate for dense parameters, and the replica's own update of them. */
static enum hps_status dense(struct timing *t, struct hps_layers_result *out, struct hps_err *err)
{
	struct hps_rig *r = t->rig;
	struct hps_optim optim = hps_optim_of(&r->job.model.train.optimizer);
	double shard_s[DENSE_STEPS], update_s[DENSE_STEPS];
	size_t n_state = hps_optim_state_floats(&optim, r->n_floats);
	enum hps_status st = HPS_OK;
	float *state;

	if (r->n_floats == 0)
		return HPS_OK;
	state = hps_calloc_aligned(n_state, sizeof(float), err);
	if (!state)
		return HPS_MEMORY;
	hps_optim_state_init(&optim, state, r->n_floats);
	for (uint32_t i = 0; i < WARM_STEPS + DENSE_STEPS && st == HPS_OK; i++) {
		struct hps_sides sides = { 0 };
		double before;

		st = hps_stopped(t->o, err);
		if (st == HPS_OK)
			st = hps_rig_dense(r, 1, &sides, err);
		before = hps_cpu_s();
		hps_optim_update(&optim, r->params, state, r->n_floats, r->grads, 1, i + 1,
				 r->n_floats);
		memset(r->grads, 0, r->n_floats * sizeof(float));
		if (i >= WARM_STEPS) {
			update_s[i - WARM_STEPS] = hps_cpu_s() - before;
			shard_s[i - WARM_STEPS] = fmax(sides.shard_s, LEAST_S);
		}
	}
	free(state);
	if (st != HPS_OK)
		return st;
	out->update_s = hps_median(update_s, DENSE_STEPS);
	out->bytes_per_s =
		2.0 * sizeof(float) * (double)r->n_floats / hps_median(shard_s, DENSE_STEPS);
	return HPS_OK;
}

/* The size nearest to the model's micro-batch, by ratio. */
static uint32_t nearest(const struct hps_model *m, const uint32_t *batch, uint32_t n)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < n; i++)
		if (fabs(log((double)batch[i] / hps_micro_rows(m))) <
		    fabs(log((double)batch[best] / hps_micro_rows(m))))
			best = i;
	return best;
}

/* Seconds of all whole passes over what the medians of their layers add up to. */
static double stretch(const struct timing *t, const struct hps_layers_result *out)
{
	double passes = 0, medians = 0;

	for (size_t i = 0; i < (size_t)t->n_batches * t->rounds; i++)
		passes += t->pass[i];
	for (size_t i = 0; i < (size_t)t->n_layers * t->n_batches; i++)
		medians += t->rounds * (out->forward_s[i] + out->backward_s[i]);
	return passes / medians;
}

static void take_medians(struct timing *t, struct hps_layers_result *out)
{
	for (uint32_t l = 0; l < t->n_layers; l++)
		for (uint32_t b = 0; b < t->n_batches; b++) {
			size_t i = (size_t)l * t->n_batches + b;

			out->forward_s[i] = hps_median(at(t, t->forward, l, b), t->rounds);
			out->backward_s[i] = hps_median(at(t, t->backward, l, b), t->rounds);
		}
	out->stretch = stretch(t, out);
	for (uint32_t b = 0; b < t->n_batches; b++)
		out->pass_s[b] = hps_median(t->pass + (size_t)b * t->rounds, t->rounds);
	if (t->n_shard_row)
		out->rows_per_s = 1 / hps_median(t->shard_row_s, t->n_shard_row);
	out->rounds = t->rounds;
}

enum hps_status hps_time_layers(struct hps_rig *r, const struct hps_sample *s,
				const uint32_t *batch, uint32_t n_batches,
				const struct hps_measure_opts *o, struct hps_layers_result *out,
				struct hps_err *err)
{
	struct timing t = { .rig = r,
			    .sample = s,
			    .batch = batch,
			    .n_batches = n_batches,
			    .n_layers = r->job.model.n_layers,
			    .o = o,
			    .clock_s = hps_cpu_clock_cost(),
			    .model_batch = nearest(&r->job.model, batch, n_batches) };
	size_t n = (size_t)t.n_layers * n_batches;
	enum hps_status st = HPS_MEMORY;
	uint32_t rounds = 0;

	memset(out, 0, sizeof(*out));
	out->forward_s = hps_calloc(n, sizeof(double), err);
	out->backward_s = hps_calloc(n, sizeof(double), err);
	out->pass_s = hps_calloc(n_batches, sizeof(double), err);
	out->keys = hps_calloc(t.n_layers, sizeof(double), err);
	if (out->forward_s && out->backward_s && out->pass_s && out->keys)
		st = warm_up(&t, out->keys, err);
	if (st == HPS_OK)
		st = settle_rounds(&t, &rounds, err);
	if (st == HPS_OK)
		st = allocate(&t, rounds, err);
	while (st == HPS_OK && t.round < rounds)
		st = one_round(&t, err);
	if (st == HPS_OK) {
		take_medians(&t, out);
		hps_tell(o, 1, "servers");
		st = dense(&t, out, err);
	}
	release(&t);
	if (st != HPS_OK)
		hps_layers_result_release(out);
	return st;
}

void hps_layers_result_release(struct hps_layers_result *r)
{
	free(r->forward_s);
	free(r->backward_s);
	free(r->pass_s);
	free(r->keys);
	memset(r, 0, sizeof(*r));
}
