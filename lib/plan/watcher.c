/* What does a watched job print, and when? Lines and times in, JSON lines out: see watcher.h. */
#include "plan/watcher.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum hps_status hps_watcher_init(struct hps_watcher *x, const struct hps_watch_options *opt,
				 const struct hps_span *stage, uint32_t n_stages,
				 struct hps_err *err)
{
	x->told = 1;
	return hps_watch_init(&x->watch, x->problem, opt, stage, n_stages, err);
}

void hps_watcher_release(struct hps_watcher *x)
{
	hps_watch_release(&x->watch);
	hps_lines_release(&x->lines);
}

/* --- what is printed --- */

static enum hps_status emit(struct hps_watcher *x, struct hps_doc *line /* taken */, int bad,
			    struct hps_err *err)
{
	enum hps_status rc =
		bad ? hps_err_set(err, HPS_MEMORY, "out of memory") : x->emit(x->arg, line, err);

	hps_doc_free(line);
	return rc;
}

static struct hps_doc *rate_doc(const struct hps_watcher *x)
{
	double rate = hps_watch_rate(&x->watch);

	return rate > 0 ? hps_doc_double(rate) : hps_doc_null();
}

static int put_stages(const struct hps_watcher *x, const struct hps_decision *d, struct hps_doc *o)
{
	struct hps_doc *a = hps_doc_array();
	int bad = !a;

	for (uint32_t i = 0; !bad && i < x->watch.n; i++) {
		struct hps_doc *s = hps_doc_object();
		const char *type = x->problem->cost->type[d->stage[i].type].name;

		bad = !s || hps_doc_put(s, "type", hps_doc_string(type)) ||
		      hps_doc_put(s, "units", hps_doc_int(d->stage[i].units));
		if (bad)
			hps_doc_free(s);
		else
			bad = hps_doc_add(a, s);
	}
	if (!bad)
		return hps_doc_put(o, "stages", a) ||
		       hps_doc_put(o, "ps_shards", hps_doc_int(d->trial.shards));
	hps_doc_free(a);
	return bad;
}

/* "deployment", or null and why. */
static enum hps_status put_deployment(struct hps_watcher *x, const struct hps_decision *d,
				      struct hps_doc *o, struct hps_err *err)
{
	struct hps_deploy_options opt = *x->deploy;
	struct hps_solution s = { .stage = x->watch.now,
				  .n_stages = x->watch.n,
				  .trial = d->trial };
	struct hps_deployment dep;
	struct hps_err why = { 0 };
	enum hps_status rc;
	char name[160];
	int bad;

	snprintf(name, sizeof(name), "%.110s-%u", opt.job, ++x->deployments);
	opt.job = name;
	opt.method = hps_provisioner_name(x->watch.opt.how);
	rc = hps_deploy(x->problem, &s, &opt, &dep, NULL, &why);
	if (rc && rc != HPS_NO) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc)
		bad = hps_doc_put(o, "deployment", hps_doc_null()) ||
		      hps_doc_put(o, "why", hps_doc_string(why.msg));
	else
		bad = hps_doc_put(o, "deployment", hps_deployment_write(&dep));
	if (!rc)
		hps_deployment_release(&dep);
	return bad ? hps_err_set(err, HPS_MEMORY, "out of memory") : HPS_OK;
}

static enum hps_status tell_decision(struct hps_watcher *x, const struct hps_decision *d,
				     struct hps_err *err)
{
	struct hps_doc *o = hps_doc_object();
	enum hps_status rc;
	int bad;

	if (d->price_before > 0 || d->reason == HPS_WATCH_NEEDED)
		x->changes++;
	x->change_dollars += d->change_cost;
	bad = !o || hps_doc_put(o, "event", hps_doc_string("deployment")) ||
	      hps_doc_put(o, "time_s", hps_doc_double(d->time_s)) ||
	      hps_doc_put(o, "reason", hps_doc_string(hps_watch_reason_name(d->reason))) ||
	      hps_doc_put(o, "reached", hps_doc_bool(d->reached)) ||
	      hps_doc_put(o, "target_samples_per_s", hps_doc_double(d->target)) ||
	      hps_doc_put(o, "floor_samples_per_s", hps_doc_double(d->floor)) ||
	      hps_doc_put(o, "predicted_samples_per_s", hps_doc_double(d->trial.throughput)) ||
	      hps_doc_put(o, "measured_samples_per_s", rate_doc(x)) ||
	      hps_doc_put(o, "efficiency", hps_doc_double(hps_watch_efficiency(&x->watch))) ||
	      hps_doc_put(o, "price_per_hour", hps_doc_double(d->trial.price)) ||
	      hps_doc_put(o, "price_before_per_hour", hps_doc_double(d->price_before)) ||
	      hps_doc_put(o, "change_dollars", hps_doc_double(d->change_cost)) ||
	      put_stages(x, d, o);
	rc = bad ? HPS_OK : put_deployment(x, d, o, err);
	if (rc) {
		hps_doc_free(o);
		return rc;
	}
	return emit(x, o, bad, err);
}

static enum hps_status tell_rate(struct hps_watcher *x, struct hps_err *err)
{
	const struct hps_watch *w = &x->watch;
	double now =
		w->predicted > 0 && w->n_rates >= 3 ? hps_watch_rate(w) / w->predicted : x->told;
	struct hps_doc *o;
	int bad;

	if (!(fabs(now - x->told) > w->opt.margin))
		return HPS_OK;
	x->told = now;
	o = hps_doc_object();
	bad = !o || hps_doc_put(o, "event", hps_doc_string("rate")) ||
	      hps_doc_put(o, "time_s", hps_doc_double(w->time_s)) ||
	      hps_doc_put(o, "measured_samples_per_s", rate_doc(x)) ||
	      hps_doc_put(o, "predicted_samples_per_s", hps_doc_double(w->predicted)) ||
	      hps_doc_put(o, "efficiency", hps_doc_double(hps_watch_efficiency(w)));
	return emit(x, o, bad, err);
}

static enum hps_status tell_done(struct hps_watcher *x, struct hps_err *err)
{
	struct hps_doc *o = hps_doc_object();

	return emit(x, o,
		    !o || hps_doc_put(o, "event", hps_doc_string("done")) ||
			    hps_doc_put(o, "time_s", hps_doc_double(x->watch.time_s)) ||
			    hps_doc_put(o, "lines", hps_doc_u64(x->lines.number)) ||
			    hps_doc_put(o, "bad_lines", hps_doc_u64(x->bad_lines)) ||
			    hps_doc_put(o, "changes", hps_doc_int(x->changes)) ||
			    hps_doc_put(o, "change_dollars", hps_doc_double(x->change_dollars)) ||
			    hps_doc_put(o, "reached", hps_doc_bool(!x->unreached)),
		    err);
}

/* --- what happens --- */

static enum hps_status told(struct hps_watcher *x, enum hps_status rc, bool decided,
			    const struct hps_decision *d, struct hps_err *err)
{
	if (x->watch.unreached && !x->unreached)
		x->unreached_s = x->watch.time_s;
	x->unreached |= x->watch.unreached;
	if (x->watch.unreached)
		x->best_rate = fmax(x->best_rate, x->watch.now_trial.throughput);
	return rc || !decided ? rc : tell_decision(x, d, err);
}

static enum hps_status advance(struct hps_watcher *x, double time_s, struct hps_err *err)
{
	enum hps_status rc = HPS_OK;
	bool decided = true;

	while (!rc && decided) {
		struct hps_decision d;

		rc = hps_watch_advance(&x->watch, time_s, &decided, &d, err);
		rc = told(x, rc, decided, &d, err);
	}
	return rc;
}

static enum hps_status load_is(struct hps_watcher *x, double time_s, double target,
			       struct hps_err *err)
{
	struct hps_decision d;
	bool decided = false;
	enum hps_status rc = advance(x, time_s, err);

	if (!rc)
		rc = hps_watch_load(&x->watch, time_s, target, &decided, &d, err);
	return told(x, rc, decided, &d, err);
}

static enum hps_status rate_is(struct hps_watcher *x, double time_s, double rate,
			       struct hps_err *err)
{
	struct hps_decision d;
	bool decided = false;
	enum hps_status rc = advance(x, time_s, err);

	if (!rc)
		rc = hps_watch_measured(&x->watch, time_s, rate, &decided, &d, err);
	if (!rc)
		rc = tell_rate(x, err);
	return told(x, rc, decided, &d, err);
}

/* HPS_BAD_INPUT: the line cannot be. */
static enum hps_status happen(struct hps_watcher *x, const struct hps_event *e, double now_s,
			      struct hps_err *err)
{
	double before = x->watch.time_s, at;
	bool said = e->time_s >= 0 && !x->load;

	if (x->load && (e->kind == HPS_EVENT_LOAD || e->kind == HPS_EVENT_END))
		return hps_err_set(err, HPS_BAD_INPUT,
				   "the load comes from a file, it cannot be changed here");
	if (e->kind == HPS_EVENT_OTHER)
		return HPS_OK;
	if (said && x->timed && e->time_s < before)
		return hps_err_set(err, HPS_BAD_INPUT, "time goes back from %.17g s to %.17g s",
				   before, e->time_s);
	/* The first time that is said sets the clock. */
	if (said && !x->timed)
		x->watch.time_s = fmin(before, e->time_s);
	x->timed |= said;
	at = said ? e->time_s : x->timed ? x->watch.time_s : fmax(now_s, before);
	if (e->kind == HPS_EVENT_LOAD)
		return load_is(x, at, e->rate, err);
	if (e->kind == HPS_EVENT_STEP)
		return rate_is(x, at, e->rate, err);
	if (e->kind == HPS_EVENT_APPLIED)
		hps_watch_applied(&x->watch);
	else
		x->over = true;
	return advance(x, at, err);
}

static void complain(struct hps_watcher *x, struct hps_err *err)
{
	x->bad_lines++;
	x->complain(x->arg, err);
}

static enum hps_status one_line(struct hps_watcher *x, const char *line, size_t len, double now_s,
				struct hps_err *err)
{
	struct hps_err why = { 0 };
	struct hps_event e = { 0 };
	enum hps_status rc;
	char place[300];

	snprintf(place, sizeof(place), "%.250s: line %" PRIu64, x->name, x->lines.number);
	if (!line) {
		hps_err_set(&why, HPS_BAD_INPUT, "a line of more than %d bytes",
			    HPS_EVENT_MAX_LINE);
		hps_err_at(&why, "%s", place);
		complain(x, &why);
		return HPS_OK;
	}
	if (hps_line_blank(line, len))
		return HPS_OK;
	rc = hps_event_read(line, len, x->name, x->lines.number, false, &e, &why);
	if (!rc) {
		rc = happen(x, &e, now_s, &why);
		if (rc == HPS_BAD_INPUT)
			hps_err_at(&why, "%s", place);
	}
	if (rc == HPS_BAD_INPUT)
		complain(x, &why);
	else if (rc && err)
		*err = why;
	return rc == HPS_BAD_INPUT ? HPS_OK : rc;
}

static enum hps_status lines(struct hps_watcher *x, bool last, double now_s, struct hps_err *err)
{
	enum hps_status rc = HPS_OK;
	const char *line;
	size_t len;

	while (!rc && !x->over && hps_lines_take(&x->lines, last, &line, &len))
		rc = one_line(x, line, len, now_s, err);
	return rc;
}

enum hps_status hps_watcher_feed(struct hps_watcher *x, const void *data, size_t len, double now_s,
				 struct hps_err *err)
{
	enum hps_status rc = hps_lines_feed(&x->lines, data, len, err);

	return rc ? rc : lines(x, false, now_s, err);
}

double hps_watcher_next(const struct hps_watcher *x)
{
	double next = hps_watch_next(&x->watch);

	if (!x->load)
		return x->timed ? INFINITY : next;
	return fmin(next, x->next_point < x->load->n ? x->load->point[x->next_point].time_s
						     : x->load->end_s);
}

enum hps_status hps_watcher_tick(struct hps_watcher *x, double now_s, struct hps_err *err)
{
	enum hps_status rc = HPS_OK;

	if (x->timed || x->over)
		return HPS_OK;
	now_s = fmax(now_s, x->watch.time_s);
	while (!rc && x->load && x->next_point < x->load->n &&
	       x->load->point[x->next_point].time_s <= now_s) {
		const struct hps_load_point *p = &x->load->point[x->next_point++];

		rc = load_is(x, fmax(p->time_s, x->watch.time_s), p->rate, err);
	}
	if (!rc && x->load && x->load->end_s <= now_s) {
		now_s = fmax(x->load->end_s, x->watch.time_s);
		x->over = true;
	}
	return rc ? rc : advance(x, now_s, err);
}

enum hps_status hps_watcher_end(struct hps_watcher *x, double now_s, struct hps_err *err)
{
	enum hps_status rc = lines(x, true, now_s, err);

	if (!rc)
		rc = hps_watcher_tick(x, now_s, err);
	if (!rc)
		rc = tell_done(x, err);
	if (rc)
		return rc;
	if (x->bad_lines) {
		hps_err_set(err, HPS_BAD_INPUT, "%" PRIu64 " of %" PRIu64 " lines were passed over",
			    x->bad_lines, x->lines.number);
		hps_err_at(err, "%s", x->name);
		return HPS_BAD_INPUT;
	}
	if (x->unreached)
		return hps_err_set(err, HPS_NO,
				   "from %.6g s on a target was out of reach: %.6g samples/s are "
				   "the best there is",
				   x->unreached_s, x->best_rate);
	return HPS_OK;
}
