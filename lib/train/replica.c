/* A replica's life: what it is told to do, what it does next, when a phase is over. */
#include "train/replica_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"

uint32_t hps_replica_node(const struct hps_replica *r, uint32_t stage, uint32_t replica)
{
	return hps_node_of_replica(r->d, stage, replica);
}

enum hps_status hps_replica_blame(const struct hps_replica *r, uint32_t node, struct hps_err *err)
{
	char name[256];

	hps_node_name(r->d, node, name, sizeof name);
	hps_err_at(err, "%s", name);
	return HPS_NET;
}

void hps_replica_tell(struct hps_replica *r, const struct hps_replica_event *e)
{
	r->o.event(r->o.ctx, e);
}

bool hps_replica_static(const struct hps_replica *r)
{
	return r->bsp || r->phase == PHASE_EVAL;
}

/* --- life --- */

static enum hps_status refuse_unbuilt(const struct hps_replica *r, struct hps_err *err)
{
	if (r->d->sync != HPS_BSP && r->d->sync != HPS_ASP)
		return hps_err_set(err, HPS_BAD_INPUT, "sync \"%s\" is not built yet",
				   hps_sync_name(r->d->sync));
	if (!r->bsp && r->ring_sync && r->k > 1)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "stage %u: dense_sync \"ring\" with asp is not built: a ring "
				   "needs bsp, or one replica",
				   r->o.stage);
	return HPS_OK;
}

static uint32_t count_own(const struct hps_replica *r)
{
	return r->micros / r->k + (r->o.replica < r->micros % r->k);
}

/* Bytes that one micro-batch of so many rows takes at least: outputs and their gradients, rows
 * looked up and theirs, what was read. */
static double least_bytes(const struct hps_replica *r, uint64_t rows)
{
	const struct hps_deployed_stage *s = &r->d->stage[r->o.stage];
	const struct hps_model *m = &r->o.job->model;
	double row = r->o.stage ? 0 : m->slots * sizeof(uint64_t) + m->dense * sizeof(float);

	for (uint32_t l = s->first; l <= s->last; l++) {
		const struct hps_layer_cost *c = &r->o.graph->cost[l];

		row += 2.0 * (double)c->output_bytes + 2.0 * (double)c->row_bytes +
		       (double)c->keys * (sizeof(uint64_t) + sizeof(uint32_t));
	}
	return row * (double)rows;
}

/* What is planned by the batch must fit, however few rows the data have: a machine that overcommits
 * would end some process, not always this one. */
static enum hps_status check_memory(const struct hps_replica *r, uint64_t rows, struct hps_err *err)
{
	double need = least_bytes(r, rows);
	double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    (double)limit.rlim_cur < have)
		have = (double)limit.rlim_cur;
	if (need <= have)
		return HPS_OK;
	hps_err_set(err, HPS_MEMORY,
		    "micro-batches of %llu rows take at least %.1f GiB, and here are %.1f GiB",
		    (unsigned long long)rows, need / 0x1p30, have / 0x1p30);
	hps_err_at(err, "deployment.batch");
	hps_err_hint(err, "provision a smaller batch, or more micro-batches");
	return HPS_MEMORY;
}

static enum hps_status build(struct hps_replica *r, struct hps_err *err)
{
	const struct hps_deployed_stage *s = &r->d->stage[r->o.stage];
	const struct hps_model *m = &r->o.job->model;
	uint64_t rows = 1;
	enum hps_status st;

	for (int eval = 0; eval < 2; eval++) {
		uint64_t begin, end;

		hps_micro_batch_rows(hps_step_rows(r->d, eval), hps_step_micros(r->d, eval), 0,
				     &begin, &end);
		if (end > rows)
			rows = end;
	}
	if (rows > UINT32_MAX)
		return hps_err_set(err, HPS_BAD_INPUT, "micro-batches of %llu rows are too large",
				   (unsigned long long)rows);
	st = check_memory(r, rows, err);
	if (st != HPS_OK)
		return st;
	r->max_rows = (uint32_t)rows;
	st = hps_stage_new(r->o.graph, s->first, s->last, r->o.backend, r->max_rows, &r->program,
			   err);
	if (st == HPS_OK)
		st = hps_ps_client_new(r->o.job, r->o.graph, r->o.stage, r->o.replica,
				       r->o.incarnation, &r->ps, err);
	if (st != HPS_OK)
		return st;
	r->n_floats = hps_stage_n_floats(r->program);
	r->n_lookups = hps_stage_n_lookups(r->program);
	r->rows = hps_calloc(r->n_lookups, sizeof *r->rows, err);
	r->ended = hps_calloc(r->k_prev, sizeof *r->ended, err);
	r->credit = hps_calloc(r->k_next, sizeof *r->credit, err);
	r->all_slots = hps_calloc(m->slots, sizeof *r->all_slots, err);
	if (!r->rows || !r->ended || !r->credit || !r->all_slots)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < m->slots; i++)
		r->all_slots[i] = i;
	return weights_init(r, err);
}

enum hps_status hps_replica_new(const struct hps_replica_opts *o, struct hps_replica **out,
				struct hps_err *err)
{
	struct hps_replica *r = hps_calloc(1, sizeof *r, err);
	const struct hps_deployment *d = &o->job->deployment;
	enum hps_status st;

	if (!r)
		return HPS_MEMORY;
	r->o = *o;
	r->d = d;
	r->k = d->stage[o->stage].n_replicas;
	r->first = o->stage == 0;
	r->last = o->stage + 1 == d->n_stages;
	r->k_prev = r->first ? 0 : d->stage[o->stage - 1].n_replicas;
	r->k_next = r->last ? 0 : d->stage[o->stage + 1].n_replicas;
	r->in_cut = r->first ? NULL : &o->graph->cut[d->stage[o->stage - 1].last];
	r->out_cut = r->last ? NULL : &o->graph->cut[d->stage[o->stage].last];
	r->bsp = d->sync == HPS_BSP;
	r->ring_sync = d->stage[o->stage].dense_sync == HPS_DENSE_RING;
	r->micros = hps_step_micros(d, true);
	r->own = count_own(r);
	r->end = HPS_NO_STEP;
	st = refuse_unbuilt(r, err);
	if (st == HPS_OK)
		st = build(r, err);
	if (st != HPS_OK) {
		hps_replica_free(r);
		return st;
	}
	*out = r;
	return HPS_OK;
}

void hps_replica_free(struct hps_replica *r)
{
	if (!r)
		return;
	micro_release_all(r);
	for (size_t i = 0; i < r->n_early; i++)
		hps_msg_release(&r->early[i]);
	weights_release(r);
	hps_ps_client_free(r->ps);
	hps_stage_free(r->program);
	free(r->early);
	free(r->rows);
	free(r->ended);
	free(r->credit);
	free(r->all_slots);
	free(r);
}

/* --- the end of a phase --- */

static void done(struct hps_replica *r, enum hps_replica_event_kind kind)
{
	struct hps_replica_event e = { .kind = kind, .epoch = r->epoch };

	e.step = kind == HPS_REPLICA_EPOCH_DONE && r->bsp ? r->cur : 0;
	r->phase = PHASE_IDLE;
	hps_replica_tell(r, &e);
}

/* asp: everything this replica will ever get in this epoch is worked off. */
static bool drained(const struct hps_replica *r)
{
	if (r->n_micro)
		return false;
	if (r->first)
		return r->no_leases && !r->n_leases && !r->n_asked;
	return r->n_ended == r->k_prev;
}

static enum hps_status check_asp_end(struct hps_replica *r, struct hps_outbox *out,
				     struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	if (r->flushing || !drained(r))
		return HPS_OK;
	r->flushing = true;
	if (r->n_back)
		st = weights_push(r, out, err);
	if (st == HPS_OK)
		st = flow_send_end(r, out, err);
	return st == HPS_OK ? hps_ps_flush(r->ps, 0, out, err) : st;
}

enum hps_status hps_replica_check_end(struct hps_replica *r, struct hps_outbox *out,
				      struct hps_err *err)
{
	bool ends_known = r->end != HPS_NO_STEP && r->n_ended == r->k_prev;

	if (r->phase == PHASE_EVAL) {
		if (ends_known && r->n_done == r->end * r->own)
			done(r, HPS_REPLICA_EVAL_DONE);
	} else if (r->phase == PHASE_TRAIN && !r->bsp) {
		return check_asp_end(r, out, err);
	} else if (r->phase == PHASE_TRAIN) {
		if (ends_known && r->cur == r->end && weights_ready(r, r->cur))
			done(r, HPS_REPLICA_EPOCH_DONE);
	}
	return HPS_OK;
}

/* --- orders --- */

static enum hps_status take_early(struct hps_replica *r, struct hps_outbox *out,
				  struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	size_t n = r->n_early, i = 0;

	for (; i < n && st == HPS_OK; i++) {
		uint32_t src = r->early[i].head.src;

		st = flow_take(r, &r->early[i], out, err);
		if (st == HPS_NET)
			hps_replica_blame(r, src, err);
	}
	for (; i < n; i++)
		hps_msg_release(&r->early[i]);
	r->n_early = 0;
	return st;
}

static enum hps_status begin(struct hps_replica *r, enum replica_phase phase,
			     const struct hps_order *o, struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	if (r->phase != PHASE_IDLE || (r->bsp && o->step != r->cur))
		return hps_err_set(err, HPS_NET, "told to begin at step %llu, stands at %llu",
				   (unsigned long long)o->step, (unsigned long long)r->cur);
	r->phase = phase;
	r->epoch = o->epoch;
	if (phase == PHASE_TRAIN)
		r->base = r->cur = o->step;
	r->end = HPS_NO_STEP;
	r->done = 0;
	r->n_done = 0;
	r->n_ended = 0;
	r->flushing = false;
	memset(r->ended, 0, r->k_prev * sizeof *r->ended);
	for (uint32_t j = 0; j < r->k_next; j++)
		r->credit[j] = hps_stage_credit(r->d->n_stages, r->o.stage);
	if (r->first)
		rows_begin(r);
	if (phase == PHASE_EVAL)
		st = weights_refresh(r, out, err);
	else if (r->first && !r->bsp)
		rows_ask_leases(r);
	return st == HPS_OK ? take_early(r, out, err) : st;
}

static enum hps_status finish(struct hps_replica *r, struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	if (r->phase != PHASE_IDLE)
		return hps_err_set(err, HPS_NET, "told to finish in the middle of an epoch");
	r->phase = PHASE_FINISH;
	if (r->ring && r->o.replica == 0)
		st = hps_ps_dense_set(r->ps, r->w->param, r->state, r->updates, out, err);
	return st == HPS_OK ? hps_ps_flush(r->ps, r->bsp ? r->cur : 0, out, err) : st;
}

enum hps_status hps_replica_order(struct hps_replica *r, const struct hps_order *o,
				  struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st;

	switch (o->kind) {
	case HPS_ORDER_START:
		return weights_start(r, o->step, out, err);
	case HPS_ORDER_EPOCH:
		return begin(r, PHASE_TRAIN, o, out, err);
	case HPS_ORDER_EVAL:
		return begin(r, PHASE_EVAL, o, out, err);
	case HPS_ORDER_LEASE:
		if (!r->first || r->bsp || r->phase != PHASE_TRAIN)
			return hps_err_set(err, HPS_NET, "a chunk that was not asked for");
		st = rows_lease(r, o->step, err);
		return st == HPS_OK ? hps_replica_check_end(r, out, err) : st;
	case HPS_ORDER_HOLD:
		if (r->first)
			rows_hold(r);
		return HPS_OK;
	case HPS_ORDER_STOP:
		/* the phase may have ended by itself meanwhile */
		if (!r->first || !r->held || (r->phase != PHASE_TRAIN && r->phase != PHASE_EVAL))
			return HPS_OK;
		r->held = false; /* the end bounds it from now on */
		st = flow_set_end(r, o->step, out, err);
		return st == HPS_OK ? hps_replica_check_end(r, out, err) : st;
	case HPS_ORDER_FINISH:
		return finish(r, out, err);
	}
	return hps_err_set(err, HPS_USAGE, "unknown order %d", o->kind);
}

/* --- messages --- */

static enum hps_status rows_came(struct hps_replica *r, const struct hps_ps_event *ev)
{
	bool eval = ev->flags & HPS_FLAG_EVAL;
	struct micro *m = micro_find(r, eval ? ev->epoch : ev->step, ev->mb);

	if (m && m->state == MICRO_PULL)
		m->state = MICRO_READY;
	return HPS_OK;
}

static enum hps_status from_shard(struct hps_replica *r, struct hps_msg *m, struct hps_outbox *out,
				  struct hps_err *err)
{
	struct hps_ps_event ev = { .kind = HPS_PS_NONE };
	enum hps_status st = hps_ps_message(r->ps, m, &ev, err);

	if (st != HPS_OK)
		return st;
	switch (ev.kind) {
	case HPS_PS_NONE:
		return HPS_OK;
	case HPS_PS_ROWS:
		return rows_came(r, &ev);
	case HPS_PS_DENSE:
		st = weights_came(r, &ev, out, err);
		return st == HPS_OK ? hps_replica_check_end(r, out, err) : st;
	case HPS_PS_FLUSHED:
		if (r->phase == PHASE_FINISH)
			done(r, HPS_REPLICA_FINISHED);
		else if (r->phase == PHASE_TRAIN && r->flushing)
			done(r, HPS_REPLICA_EPOCH_DONE);
		return HPS_OK;
	}
	return HPS_OK;
}

static enum hps_status from_ring(struct hps_replica *r, struct hps_msg *m, struct hps_outbox *out,
				 struct hps_err *err)
{
	uint32_t before = (r->o.replica + r->k - 1) % r->k;
	enum hps_status st;

	if (m->head.src != hps_replica_node(r, r->o.stage, before)) {
		hps_msg_release(m);
		return hps_err_set(err, HPS_NET, "a ring message from no neighbour");
	}
	st = weights_ring(r, m, out, err);
	return st == HPS_OK ? hps_replica_check_end(r, out, err) : st;
}

enum hps_status hps_replica_message(struct hps_replica *r, struct hps_msg *m,
				    struct hps_outbox *out, struct hps_err *err)
{
	uint32_t src = m->head.src;
	enum hps_status st;

	switch (m->head.type) {
	case HPS_MSG_ROWS:
	case HPS_MSG_DENSE:
	case HPS_MSG_FLUSHED:
		st = from_shard(r, m, out, err);
		break;
	case HPS_MSG_FORWARD:
	case HPS_MSG_BACKWARD:
	case HPS_MSG_END:
		st = flow_take(r, m, out, err);
		break;
	case HPS_MSG_RING:
		st = from_ring(r, m, out, err);
		break;
	default:
		hps_msg_release(m);
		st = hps_err_set(err, HPS_NET, "%s is not for a replica",
				 hps_msg_name(m->head.type));
	}
	return st == HPS_NET ? hps_replica_blame(r, src, err) : st;
}

/* --- what is next --- */

/* May backward of m come now? In bsp gradients add up in ascending order. */
static bool backward_due(const struct hps_replica *r, const struct micro *m)
{
	/* an idle replica has no forward that waits for the parameters */
	if (m->state != MICRO_BACK || (m->marker && !weights_ready(r, m->step)))
		return false;
	if (!r->bsp)
		return true;
	return m->step == r->cur && (m->marker || m->mb == r->o.replica + r->done * r->k);
}

static bool forward_due(const struct hps_replica *r, struct micro *m)
{
	if (m->state != MICRO_READY || !weights_ready(r, m->step))
		return false;
	return r->last || flow_pick(r, m->mb, &m->to);
}

enum hps_status hps_replica_work(struct hps_replica *r, struct hps_outbox *out, bool *did,
				 struct hps_err *err)
{
	struct micro *back = NULL, *keys = NULL, *forward = NULL, *ahead = NULL;
	bool bsp = r->bsp && r->phase == PHASE_TRAIN;

	*did = true;
	if (r->update_due) {
		enum hps_status st = weights_update(r, err);

		return st == HPS_OK ? hps_replica_check_end(r, out, err) : st;
	}
	for (struct micro *m = r->micro; m; m = m->next) {
		if (!back && backward_due(r, m))
			back = m;
		if (!forward && forward_due(r, m))
			forward = m;
		if (m->state != MICRO_WAIT)
			continue;
		if (!bsp || m->step == r->cur)
			keys = keys ? keys : m;
		else if (m->step == r->cur + 1)
			ahead = ahead ? ahead : m;
	}
	/* Keys of this step first: its rows are then on their way while others compute. Keys
	 * of the next step last: the servers answer them only after this one's update. */
	if (keys)
		return unit_begin(r, keys, out, err);
	if (back)
		return unit_backward(r, back, out, err);
	if (forward)
		return unit_forward(r, forward, out, err);
	if (ahead)
		return unit_begin(r, ahead, out, err);
	*did = false;
	return HPS_OK;
}

/* --- looking at it --- */

void hps_replica_state(const struct hps_replica *r, struct hps_replica_state *s)
{
	s->epoch = r->epoch;
	s->step = r->cur;
	s->in_flight = r->n_micro;
	s->idle = r->phase == PHASE_IDLE;
	s->expects = !s->idle && (r->micro || r->pulling || r->version == HPS_NO_STEP);
}

static const char *what_is_missing(const struct hps_replica *r, const struct micro *m)
{
	switch (m->state) {
	case MICRO_PULL:
		return "rows";
	case MICRO_AWAY:
		return "gradients from the next stage";
	case MICRO_READY:
		return weights_ready(r, m->step) ? "credit" : "parameters";
	default:
		return "an earlier micro-batch";
	}
}

void hps_replica_waits(const struct hps_replica *r, char *out, size_t size)
{
	static const char *const phases[] = { "between epochs", "training", "evaluating",
					      "finishing" };
	const struct micro *m = r->micro;

	if (m)
		snprintf(out, size, "%s, step %llu: micro-batch %u waits for %s", phases[r->phase],
			 (unsigned long long)m->step, m->mb, what_is_missing(r, m));
	else
		snprintf(out, size, "%s, step %llu, %u of %u ends known", phases[r->phase],
			 (unsigned long long)r->cur, r->n_ended, r->k_prev);
}
