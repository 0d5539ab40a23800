/* How fast does a plan run, and where does the time go? The loop over events, and the window of
 * steps that is measured. */
#include <math.h>
#include <string.h>
#include "sim/sim_int.h"

const char *hps_sim_kind_name(enum hps_sim_kind k)
{
	static const char *const names[HPS_SIM_KINDS] = {
		"forward",    "backward",   "step overhead", "activations", "gradients",
		"pull",	      "push",	    "dense push",    "dense pull",  "ring",
		"serve pull", "serve push", "serve dense",
	};

	return k < HPS_SIM_KINDS ? names[k] : "?";
}

const char *hps_sim_where_name(enum hps_sim_where w)
{
	static const char *const names[HPS_SIM_WHERES] = {
		"compute", "cores", "step", "input", "bubble", "link", "shard", "sync",
	};

	return w < HPS_SIM_WHERES ? names[w] : "?";
}

void sim_tell(const struct sim *s, enum hps_sim_kind kind, double begin, uint32_t replica,
	      uint64_t step, uint32_t micro, double bytes)
{
	struct hps_sim_event e = { .kind = kind,
				   .begin_s = begin,
				   .end_s = s->now,
				   .stage = s->replica[replica].stage,
				   .replica = s->replica[replica].number,
				   .step = step,
				   .micro = micro,
				   .bytes = bytes };

	s->o.event(s->o.arg, &e);
}

static void share_event(struct sim *s, uint32_t share)
{
	struct piece p = share_due(s, share);

	switch (p.owner) {
	case OWNER_MESSAGE:
		message_passed(s, p.id);
		break;
	case OWNER_REPLICA:
		replica_finished(s, p.id);
		break;
	case OWNER_READER:
		replica_read(s, p.id);
		break;
	case OWNER_SHARD:
		shard_done(s);
		break;
	}
	/* Whoever waits for its link to be free may go on. */
	if (s->c->opt.serial && share < s->n_replicas * s->ways)
		replica_look(s, share / s->ways);
}

static void next_event(struct sim *s)
{
	uint32_t id = queue_top(&s->queue);

	s->now = s->queue.time[id];
	s->events++;
	if (id < s->n_shares) {
		share_event(s, id);
		return;
	}
	queue_drop(&s->queue, id);
	if (id < id_of_shard(s))
		replica_finished(s, id - s->n_shares);
	else if (id == id_of_shard(s))
		shard_done(s);
	else
		message_came(s, id - id_of_message(s, 0));
}

static enum hps_status check_end(struct sim *s, struct hps_err *err)
{
	if (!s->queue.n)
		return hps_err_set(err, HPS_NO,
				   "simulation: nothing is left to happen after %llu of "
				   "%llu micro-batches",
				   (unsigned long long)s->done, (unsigned long long)s->target);
	if (s->o.most_events && s->events >= s->o.most_events)
		return hps_err_set(err, HPS_NO, "simulation: stopped after %llu events",
				   (unsigned long long)s->events);
	if (s->o.stop && s->events % 4096 == 0 && s->o.stop(s->o.stop_arg))
		return hps_err_set(err, HPS_NO, "simulation: interrupted");
	return HPS_OK;
}

static enum hps_status run_until(struct sim *s, uint64_t done, struct hps_err *err)
{
	while (s->done < done && !s->rc) {
		s->rc = check_end(s, err);
		if (!s->rc)
			next_event(s);
	}
	return s->rc;
}

/* What is measured begins now. */
static void open_window(struct sim *s)
{
	s->window_begin = s->last_step = s->now;
	s->step_least = INFINITY;
	s->step_most = 0;
	s->shard_busy_before = s->shard_busy;
	if (s->job != NONE)
		s->shard_busy_before += s->now - s->job_begin;
	for (uint32_t r = 0; r < s->n_replicas; r++) {
		struct replica *x = &s->replica[r];

		replica_account(s, x, x->where);
		x->busy = 0;
	}
	for (uint32_t i = 0; i < s->n_stages; i++)
		memset(s->stage[i].where, 0, sizeof(s->stage[i].where));
	for (uint32_t i = 0; i < s->n_shares; i++) {
		share_advance(&s->share[i], s->now);
		s->carried[i] = s->share[i].carried;
	}
}

static double use_of(const struct sim *s, uint32_t share, double window)
{
	const struct share *x = &s->share[share];

	return window > 0 && !isinf(x->capacity)
		       ? (x->carried - s->carried[share]) / (x->capacity * window)
		       : 0;
}

static double link_use(const struct sim *s, uint32_t replica, double window)
{
	return fmax(use_of(s, link_of(s, replica, false), window),
		    use_of(s, link_of(s, replica, true), window));
}

static void report_stage(const struct sim *s, uint32_t i, double window, struct hps_sim_stage *out)
{
	const struct stage *st = &s->stage[i];

	memset(out, 0, sizeof(*out));
	if (window <= 0)
		return;
	for (int w = 0; w < HPS_SIM_WHERES; w++)
		out->share[w] = fmax(0, st->where[w] / (window * st->k));
	out->idlest = 1;
	for (uint32_t r = st->replica0; r < st->replica0 + st->k; r++) {
		double busy = s->replica[r].busy / window, use = link_use(s, r, window);

		out->busiest = fmax(out->busiest, busy);
		out->idlest = fmax(0, fmin(out->idlest, busy));
		out->link_use += use / st->k;
		out->link_use_most = fmax(out->link_use_most, use);
	}
}

static void report(struct sim *s, uint32_t warm, struct hps_sim_result *r,
		   struct hps_sim_stage *stage)
{
	double window = s->now - s->window_begin, counted = s->o.steps - warm;
	/* The paper's form counts by several batches; told is what B rows take. */
	double of_b = s->c->opt.batch / (s->n * s->m);

	for (uint32_t i = 0; i < s->n_replicas; i++)
		replica_account(s, &s->replica[i], s->replica[i].where);
	for (uint32_t i = 0; i < s->n_shares; i++)
		share_advance(&s->share[i], s->now);
	if (s->job != NONE)
		s->shard_busy += s->now - s->job_begin;
	*r = (struct hps_sim_result){
		.throughput = window > 0 ? counted * s->n * s->m / window : INFINITY,
		.step_s = window / counted * of_b,
		.step_least_s = s->step_least * of_b,
		.step_most_s = s->step_most * of_b,
		.window_s = window,
		.steps = s->o.steps,
		.warm = warm,
		.events = s->events,
	};
	if (s->shards && window > 0) {
		r->shard_use = (s->shard_busy - s->shard_busy_before) / window;
		r->shard_link_use = link_use(s, NONE, window);
	}
	if (s->pool != NONE)
		r->cores_use = use_of(s, s->pool, window);
	for (uint32_t i = 0; stage && i < s->n_stages; i++)
		report_stage(s, i, window, &stage[i]);
}

enum hps_status hps_sim_run(const struct hps_cost *c, const struct hps_schedule *sched,
			    const struct hps_sim_options *o, struct hps_sim_result *r,
			    struct hps_sim_stage *stage, struct hps_err *err)
{
	struct sim s;
	uint32_t warm;
	enum hps_status rc = sim_init(&s, c, sched, o, err);

	if (!rc) {
		warm = s.o.steps > 1 ? s.o.steps / 5 + (s.o.steps < 5) : 0;
		open_window(&s);
		for (uint32_t k = 0; k < s.stage[0].k && !s.rc; k++)
			replica_feed(&s, k);
		rc = run_until(&s, (uint64_t)warm * s.n, err);
		if (!rc && warm)
			open_window(&s);
		if (!rc)
			rc = run_until(&s, s.target, err);
		if (!rc)
			report(&s, warm, r, stage);
	}
	sim_release(&s);
	return rc;
}

enum hps_status hps_sim_throughput(const struct hps_cost *c, const struct hps_schedule *s,
				   const struct hps_sim_options *o, double *throughput,
				   struct hps_err *err)
{
	struct hps_sim_result r;
	enum hps_status rc = hps_sim_run(c, s, o, &r, NULL, err);

	if (!rc)
		*throughput = r.throughput;
	return rc;
}
