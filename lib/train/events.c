/* What people see of a job: step, eval and done events. */
#include "train/agent_int.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

static enum hps_status no_memory(struct hps_err *err)
{
	return hps_err_set(err, HPS_MEMORY, "out of memory");
}

static double rate(const struct hps_agent *a, double now_s)
{
	double s = now_s - a->marked_s;

	return s > 0 ? (double)(a->samples - a->marked_samples) / s : NAN;
}

static double mean(const struct last_step *l)
{
	return l->rows ? l->loss / (double)l->rows : NAN; /* null in JSON */
}

static enum hps_status print_step(struct hps_agent *a, double now_s, struct hps_err *err)
{
	struct last_step *l = &a->last;
	struct hps_doc *d = hps_doc_object();
	enum hps_status st;

	if (!d || hps_doc_put(d, "event", hps_doc_string("step")) ||
	    hps_doc_put(d, "epoch", hps_doc_int(l->epoch)) ||
	    hps_doc_put(d, "step", hps_doc_u64(l->step)) ||
	    hps_doc_put(d, "rows", hps_doc_u64(l->rows)) ||
	    hps_doc_put(d, "loss", hps_doc_double(mean(l))) ||
	    hps_doc_put(d, "samples", hps_doc_u64(a->samples)) ||
	    hps_doc_put(d, "samples_per_s", hps_doc_double(rate(a, now_s)))) {
		hps_doc_free(d);
		return no_memory(err);
	}
	l->printed = true;
	a->marked_s = now_s;
	a->marked_samples = a->samples;
	st = a->host.event(a->host.ctx, d, err);
	hps_doc_free(d);
	return st;
}

enum hps_status agent_u64(const struct hps_doc *body, const char *key, uint64_t *out,
			  struct hps_err *err)
{
	struct hps_at root = hps_at_root(body, "coordinator"), at = hps_at_member(&root, key);

	return hps_at_u64(&at, 0, UINT64_MAX, out, err) == HPS_OK ? HPS_OK : HPS_NET;
}

enum hps_status events_step(struct hps_agent *a, const struct hps_doc *body, double now_s,
			    struct hps_err *err)
{
	struct hps_at root = hps_at_root(body, "coordinator"), at = hps_at_member(&root, "loss");
	struct last_step l = { .known = true };
	uint64_t epoch;

	if (agent_u64(body, "epoch", &epoch, err) || agent_u64(body, "step", &l.step, err) ||
	    agent_u64(body, "rows", &l.rows, err) ||
	    hps_at_double(&at, -HUGE_VAL, HUGE_VAL, &l.loss, err))
		return HPS_NET;
	l.epoch = (uint32_t)epoch;
	a->last = l;
	a->samples += l.rows;
	if (a->host.progress)
		a->host.progress(a->host.ctx, l.epoch, a->samples, mean(&l), rate(a, now_s));
	if ((l.step + 1) % a->log_every)
		return HPS_OK;
	return print_step(a, now_s, err);
}

enum hps_status events_epoch_over(struct hps_agent *a, double now_s, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	if (a->last.known && !a->last.printed)
		st = print_step(a, now_s, err);
	a->last.known = false;
	return st;
}

void events_epoch_begins(struct hps_agent *a, double now_s)
{
	a->marked_s = now_s;
	a->marked_samples = a->samples;
}

enum hps_status events_copy(struct hps_agent *a, const char *name, const struct hps_doc *body,
			    struct hps_err *err)
{
	struct hps_at at = hps_at_root(body, "coordinator");
	struct hps_doc *d = hps_doc_object();
	enum hps_status st;
	int bad = !d || hps_doc_put(d, "event", hps_doc_string(name));

	for (size_t i = 0; !bad && i < hps_at_count(&at); i++) {
		const char *key = hps_at_name(&at, i);
		struct hps_at member = hps_at_member(&at, key);

		bad = hps_doc_put(d, key, hps_doc_copy(member.node));
	}
	if (bad) {
		hps_doc_free(d);
		return no_memory(err);
	}
	st = a->host.event(a->host.ctx, d, err);
	hps_doc_free(d);
	return st;
}
