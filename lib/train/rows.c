/* Which rows a replica of the first stage takes next, where the data end, and how it stops. */
#include "train/replica_int.h"

#include <string.h>

void hps_micro_batch_rows(uint64_t batch, uint32_t n_micro, uint32_t g, uint64_t *begin,
			  uint64_t *end)
{
	uint64_t each = batch / n_micro, more = batch % n_micro;

	*begin = g * each + (g < more ? g : more);
	*end = *begin + each + (g < more);
}

uint64_t hps_step_rows(const struct hps_deployment *d, bool eval)
{
	uint64_t k0 = d->stage[0].n_replicas;

	return eval || d->sync == HPS_BSP ? d->batch : (d->batch + k0 - 1) / k0;
}

uint32_t hps_step_micros(const struct hps_deployment *d, bool eval)
{
	uint32_t m = d->micro_batches;

	return eval || d->sync == HPS_BSP ? m * d->stage[0].n_replicas : m;
}

/* Rows from the epoch's start to a step. */
static uint64_t first_row(const struct hps_replica *r, uint64_t step)
{
	bool eval = r->phase == PHASE_EVAL;

	return (step - (eval ? 0 : r->base)) * hps_step_rows(r->d, eval);
}

void rows_begin(struct hps_replica *r)
{
	bool eval = r->phase == PHASE_EVAL;

	r->want_step = eval ? 0 : r->base;
	r->want_mb = hps_replica_static(r) ? r->o.replica : 0;
	r->held = false;
	r->n_leases = r->n_asked = 0;
	r->no_leases = false;
}

/* asp: the chunk that is being taken in. */
static bool has_chunk(const struct hps_replica *r)
{
	return r->n_leases > 0;
}

bool hps_replica_want(const struct hps_replica *r, struct hps_want *w)
{
	bool eval = r->phase == PHASE_EVAL;
	uint64_t step = r->want_step, begin, end;
	uint32_t most = 2 * (eval || r->bsp ? r->own : r->d->micro_batches);

	if (!r->first || (r->phase != PHASE_TRAIN && !eval) || r->n_micro >= most)
		return false;
	if (hps_replica_static(r)) {
		if ((r->end != HPS_NO_STEP && step >= r->end) ||
		    (r->held && step >= r->hold_step) || (!eval && step > r->cur + 1))
			return false;
	} else {
		if (!has_chunk(r))
			return false;
		step = r->lease[0];
	}
	hps_micro_batch_rows(hps_step_rows(r->d, eval), hps_step_micros(r->d, eval), r->want_mb,
			     &begin, &end);
	w->epoch = r->epoch;
	w->eval = eval;
	w->step = step;
	w->mb = r->want_mb;
	w->begin = first_row(r, step) + begin;
	w->end = first_row(r, step) + end;
	return true;
}

/* The next of this replica's micro-batches. */
static void advance(struct hps_replica *r)
{
	if (hps_replica_static(r)) {
		r->want_mb += r->k;
		if (r->want_mb >= r->micros) {
			r->want_mb = r->o.replica;
			r->want_step++;
		}
		return;
	}
	if (++r->want_mb == r->d->micro_batches) {
		r->want_mb = 0;
		r->n_leases--;
		memmove(r->lease, r->lease + 1, r->n_leases * sizeof *r->lease);
		rows_ask_leases(r);
	}
}

/* Where the rows came from, as FORWARD carries it. */
static void note_place(const struct hps_replica *r, const struct hps_batch *b, struct micro *m)
{
	uint64_t operand = 0, lines;

	for (size_t i = 0; b->file && i < r->o.n_operands && i < UINT16_MAX; i++)
		if (!strcmp(r->o.operand[i], b->file))
			operand = i;
	m->place = operand << 48 | (b->first_line & (((uint64_t)1 << 48) - 1));
	lines = b->last_line - b->first_line + 1;
	if (b->file && b->last_file && !strcmp(b->file, b->last_file) && lines <= UINT32_MAX)
		m->lines = (uint32_t)lines;
}

static enum hps_status take(struct hps_replica *r, const struct hps_want *w, struct hps_batch *b,
			    struct hps_err *err)
{
	struct micro *m;

	if (b->rows > w->end - w->begin || b->slots != r->o.job->model.slots ||
	    b->dense != r->o.job->model.dense)
		return hps_err_set(err, HPS_BAD_INPUT, "a batch of another shape than the model's");
	m = micro_new(r, w->step, w->mb, err);
	if (!m)
		return HPS_MEMORY;
	m->batch = b;
	m->rows = b->rows;
	note_place(r, b, m);
	m->in = (struct hps_stage_in){
		.rows = b->rows,
		.row = b->row,
		.label = b->label,
		.dense = b->feature,
		.key = b->key,
		.key_slot = r->all_slots,
		.n_key_slots = b->slots,
		.seed = r->o.seed,
		.epoch = r->epoch,
	};
	return HPS_OK;
}

enum hps_status hps_replica_batch(struct hps_replica *r, struct hps_batch *b, uint64_t data_end,
				  struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	struct hps_want w;
	bool none; /* the step or chunk lies past the end of the data */

	if (!hps_replica_want(r, &w) || b->first_row != w.begin || b->end_row != w.end) {
		r->o.give_back(r->o.ctx, b);
		return hps_err_set(err, HPS_USAGE, "a batch that was not wanted");
	}
	none = first_row(r, w.step) >= data_end;
	if (hps_replica_static(r) && data_end != UINT64_MAX) {
		uint64_t each = hps_step_rows(r->d, w.eval);
		uint64_t steps = data_end / each + (data_end % each != 0);

		st = flow_set_end(r, (w.eval ? 0 : r->base) + steps, out, err);
	}
	if (st == HPS_OK && !none) {
		st = take(r, &w, b, err);
		if (st == HPS_OK)
			b = NULL;
	}
	if (b)
		r->o.give_back(r->o.ctx, b);
	if (st != HPS_OK)
		return st;
	advance(r);
	return hps_replica_check_end(r, out, err);
}

/* --- stopping --- */

void rows_hold(struct hps_replica *r)
{
	struct hps_replica_event e = { .kind = HPS_REPLICA_HELD, .epoch = r->epoch };

	/* A step begun is one of which any rows are here: it is worked off. */
	r->hold_step = r->want_step + (r->want_mb != r->o.replica);
	if (r->end != HPS_NO_STEP)
		r->hold_step = r->end;
	r->held = true;
	e.step = r->hold_step;
	hps_replica_tell(r, &e);
}

/* --- asp: chunks --- */

void rows_ask_leases(struct hps_replica *r)
{
	while (!r->no_leases && r->n_leases + r->n_asked < LEASES_AHEAD) {
		struct hps_replica_event e = { .kind = HPS_REPLICA_LEASE, .epoch = r->epoch };

		r->n_asked++;
		hps_replica_tell(r, &e);
	}
}

enum hps_status rows_lease(struct hps_replica *r, uint64_t chunk, struct hps_err *err)
{
	if (!r->n_asked || (chunk != HPS_NO_STEP && chunk < r->base))
		return hps_err_set(err, HPS_NET, "a chunk that was not asked for");
	r->n_asked--;
	if (chunk == HPS_NO_STEP)
		r->no_leases = true;
	else
		r->lease[r->n_leases++] = chunk;
	return HPS_OK;
}
