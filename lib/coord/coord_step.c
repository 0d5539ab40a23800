/* The step clock: losses of micro-batches become steps; asp: who gets which chunk of the data. */
#include "coord/coord_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Micro-batches whose losses make a step known. */
static uint32_t step_micros(const struct hps_coord *c)
{
	return c->d->sync == HPS_ASP ? c->d->micro_batches
				     : c->d->micro_batches * c->d->stage[0].n_replicas;
}

static struct open_step *find_open(struct hps_coord *c, uint64_t step, struct hps_err *err)
{
	uint32_t n = step_micros(c);
	struct open_step *o;
	void *q = c->open;

	for (size_t i = 0; i < c->n_open; i++)
		if (c->open[i].step == step)
			return &c->open[i];
	if (c->n_open >= MAX_OPEN_STEPS) {
		hps_err_set(err, HPS_NET, "losses of more than %d steps at once", MAX_OPEN_STEPS);
		return NULL;
	}
	if (hps_realloc(&q, c->n_open + 1, sizeof *c->open, err) != HPS_OK)
		return NULL;
	c->open = q;
	o = &c->open[c->n_open];
	*o = (struct open_step){ .step = step };
	o->loss = hps_calloc(n, sizeof *o->loss, err);
	o->count = hps_calloc(n, sizeof *o->count, err);
	o->have = hps_calloc(n, sizeof *o->have, err);
	if (!o->loss || !o->count || !o->have) {
		free(o->loss);
		free(o->count);
		free(o->have);
		return NULL;
	}
	c->n_open++;
	return o;
}

/* All of a step's losses are here: add them in order of micro-batch, and tell who prints. */
static enum hps_status close_step(struct hps_coord *c, struct open_step *o, struct hps_outbox *out,
				  struct hps_err *err)
{
	struct peer *p = hps_coord_printer(c);
	uint32_t n = step_micros(c);
	uint64_t rows = 0;
	double loss = 0;
	struct hps_doc *d;

	for (uint32_t i = 0; i < n; i++) {
		loss += o->loss[i];
		rows += o->count[i];
	}
	/* asp: chunk numbers have gaps where leases ran past the end; people count steps */
	d = hps_coord_epoch_body(c->epoch, c->first_step + c->steps);
	free(o->loss);
	free(o->count);
	free(o->have);
	*o = c->open[--c->n_open];
	c->completed++;
	c->steps++;
	c->samples += rows;
	c->epoch_samples += rows;
	c->epoch_loss += loss;
	if (!d || hps_doc_put(d, "loss", hps_doc_double(loss)) ||
	    hps_doc_put(d, "rows", hps_doc_u64(rows))) {
		hps_doc_free(d);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	if (!p) {
		hps_doc_free(d);
		return HPS_OK;
	}
	return hps_coord_tell(c, p, HPS_CTL_STEP, d, out, err);
}

/* In bsp steps are told in order, so that sums over steps repeat bit for bit. */
static enum hps_status close_complete(struct hps_coord *c, struct hps_outbox *out,
				      struct hps_err *err)
{
	enum hps_status st;
	size_t i = 0;

	while (i < c->n_open) {
		struct open_step *o = &c->open[i];
		bool turn = c->d->sync == HPS_ASP || o->step == c->base + c->completed;

		if (o->seen < step_micros(c) || !turn) {
			i++;
			continue;
		}
		st = close_step(c, o, out, err);
		if (st != HPS_OK)
			return st;
		i = 0;
	}
	return HPS_OK;
}

/* May a step have losses now? */
static bool step_is_open(const struct hps_coord *c, uint64_t step)
{
	if (c->d->sync == HPS_ASP)
		return step >= c->base && step - c->base < c->leased;
	return step >= c->base + c->completed && step - c->base - c->completed < MAX_OPEN_STEPS;
}

static enum hps_status take_loss(struct hps_coord *c, const struct hps_at *lists, size_t i,
				 struct hps_err *err)
{
	struct hps_at at[4];
	struct open_step *o;
	uint64_t step, mb, count;
	double loss;

	for (int k = 0; k < 4; k++)
		at[k] = hps_at_item(&lists[k], i);
	if (hps_at_u64(&at[0], 0, UINT64_MAX, &step, err) ||
	    hps_at_u64(&at[1], 0, step_micros(c) - 1, &mb, err) ||
	    hps_at_double(&at[2], -HUGE_VAL, HUGE_VAL, &loss, err) ||
	    hps_at_u64(&at[3], 0, UINT32_MAX, &count, err))
		return HPS_NET;
	if (!step_is_open(c, step))
		return hps_err_set(err, HPS_NET, "a loss of step %llu, which is not being trained",
				   (unsigned long long)step);
	o = find_open(c, step, err);
	if (!o)
		return err ? err->status : HPS_MEMORY;
	if (o->have[mb])
		return hps_err_set(err, HPS_NET, "step %llu, micro-batch %llu: a second loss",
				   (unsigned long long)step, (unsigned long long)mb);
	o->have[mb] = 1;
	o->loss[mb] = loss;
	o->count[mb] = (uint32_t)count;
	o->seen++;
	return HPS_OK;
}

enum hps_status hps_coord_steps(struct hps_coord *c, struct peer *p, const struct hps_doc *body,
				struct hps_outbox *out, struct hps_err *err)
{
	static const char *const keys[] = { "step", "mb", "loss", "count" };
	struct hps_at root = hps_at_root(body, "steps"), lists[4];
	enum hps_status st;
	size_t n = 0;

	if (c->phase != PHASE_TRAINING || !p->last_stage)
		return hps_err_set(err, HPS_NET, "losses at a time when nothing is trained");
	for (int k = 0; k < 4; k++) {
		lists[k] = hps_at_member(&root, keys[k]);
		if (hps_at_array(&lists[k], err))
			return HPS_NET;
		if (k && hps_at_count(&lists[k]) != n)
			return hps_err_set(err, HPS_NET, "steps: lists of unequal length");
		n = hps_at_count(&lists[k]);
	}
	for (size_t i = 0; i < n; i++) {
		st = take_loss(c, lists, i, err);
		if (st != HPS_OK)
			return st;
	}
	return close_complete(c, out, err);
}

/* --- asp: chunks are leased, so that a fast replica gets more --- */

enum hps_status hps_coord_lease(struct hps_coord *c, struct peer *p, const struct hps_doc *body,
				struct hps_outbox *out, struct hps_err *err)
{
	uint64_t epoch, node, step = HPS_NONE;
	struct hps_doc *d;

	if (hps_coord_u64(body, "epoch", &epoch, err) || hps_coord_u64(body, "node", &node, err))
		return HPS_NET;
	if (c->d->sync != HPS_ASP || !p->first_stage || c->phase != PHASE_TRAINING ||
	    epoch != c->epoch)
		return hps_err_set(err, HPS_NET, "asks for data when there is none to ask for");
	if (!c->interrupted && c->leased < c->n_chunks)
		step = c->base + c->leased++;
	d = hps_coord_epoch_body(c->epoch, step);
	if (!d || hps_doc_put(d, "node", hps_doc_u64(node))) {
		hps_doc_free(d);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	return hps_coord_tell(c, p, HPS_CTL_LEASE, d, out, err);
}

enum hps_status hps_coord_data_end(struct hps_coord *c, const struct hps_doc *body,
				   struct hps_err *err)
{
	uint64_t k0 = c->d->stage[0].n_replicas, chunk = (c->d->batch + k0 - 1) / k0;
	uint64_t epoch, rows, n;

	if (hps_coord_u64(body, "epoch", &epoch, err) || hps_coord_u64(body, "rows", &rows, err))
		return HPS_NET;
	if (c->phase != PHASE_TRAINING || epoch != c->epoch)
		return HPS_OK; /* came late: the epoch ended otherwise */
	n = rows / chunk + (rows % chunk != 0);
	if (c->n_chunks != HPS_NONE && c->n_chunks != n)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "the data end after %llu rows here, elsewhere not",
				   (unsigned long long)rows);
	c->n_chunks = n;
	return HPS_OK;
}
