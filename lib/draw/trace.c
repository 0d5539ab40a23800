/* What happens when, in a browser? The Chrome trace event format (Google, "Trace Event Format",
 * 2016): complete events, and metadata that name processes and threads. */
#include "draw/trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "doc/doc.h"

enum { LANES = 16, FIRST_ROOM = 1024 };

void hps_trace_event(void *arg, const struct hps_sim_event *e)
{
	struct hps_trace *t = arg;
	void *array = t->event;
	size_t room = t->room ? 2 * t->room : FIRST_ROOM;

	if (t->n == HPS_TRACE_MOST || t->failed) {
		t->left_out++;
		return;
	}
	if (t->n == t->room) {
		t->failed = hps_realloc(&array, room, sizeof(*t->event), NULL);
		if (t->failed)
			return;
		t->event = array;
		t->room = room;
	}
	t->event[t->n++] = *e;
}

void hps_trace_release(struct hps_trace *t)
{
	free(t->event);
	t->event = NULL;
}

/* Which process of the trace: a stage's replicas, a stage's links, the shards. */
enum place { REPLICA, LINK, SHARD };

static enum place place_of(const struct hps_sim_event *e)
{
	if (e->kind <= HPS_SIM_OVERHEAD)
		return REPLICA;
	return e->kind < HPS_SIM_SERVE_PULL ? LINK : SHARD;
}

/* The shards' work is one row, whoever it is for. */
static int same_row(const struct hps_sim_event *a, const struct hps_sim_event *b)
{
	int d = (int)place_of(a) - (int)place_of(b);

	if (d || place_of(a) == SHARD)
		return d;
	if (a->stage != b->stage)
		return a->stage < b->stage ? -1 : 1;
	return (a->replica > b->replica) - (a->replica < b->replica);
}

static int in_order(const void *pa, const void *pb)
{
	const struct hps_sim_event *a = pa, *b = pb;
	int d = same_row(a, b);

	if (d)
		return d;
	if (a->begin_s != b->begin_s)
		return a->begin_s < b->begin_s ? -1 : 1;
	if (a->end_s != b->end_s)
		return a->end_s < b->end_s ? -1 : 1;
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	if (a->micro != b->micro)
		return a->micro < b->micro ? -1 : 1;
	return (int)a->kind - (int)b->kind;
}

/* --- one line of the list --- */

struct out {
	struct hps_buf *b;
	struct hps_err *err;
	bool begun;
};

/* Takes the object over; NULL: no memory. */
static enum hps_status put(struct out *o, struct hps_doc *d)
{
	enum hps_status rc;

	if (!d)
		return hps_err_set(o->err, HPS_MEMORY, "no memory for the trace");
	if (o->begun)
		o->b->data[--o->b->len] = '\0'; /* the comma goes before the line's end */
	rc = o->begun ? hps_buf_add(o->b, ",\n", 2, o->err) : HPS_OK;
	if (!rc)
		rc = hps_doc_to_json_line(d, o->b, o->err);
	o->begun = true;
	hps_doc_free(d);
	return rc;
}

static uint32_t pid_of(const struct hps_solution *s, enum place place, uint32_t stage)
{
	return 1 + (place == SHARD ? 2 * s->n_stages : place == LINK ? s->n_stages + stage : stage);
}

static struct hps_doc *unless(int bad, struct hps_doc *d)
{
	if (bad)
		hps_doc_free(d);
	return bad ? NULL : d;
}

static struct hps_doc *name(const char *what, uint32_t pid, uint64_t tid, const char *text)
{
	struct hps_doc *d = hps_doc_object(), *args = hps_doc_object();
	int bad = !d || !args || hps_doc_put(args, "name", hps_doc_string(text));

	if (bad || !d) {
		hps_doc_free(args);
		return unless(1, d);
	}
	return unless(hps_doc_put(d, "args", args) ||
			      hps_doc_put(d, "name", hps_doc_string(what)) ||
			      hps_doc_put(d, "ph", hps_doc_string("M")) ||
			      hps_doc_put(d, "pid", hps_doc_int(pid)) ||
			      hps_doc_put(d, "tid", hps_doc_u64(tid)),
		      d);
}

static struct hps_doc *slice(const struct hps_sim_event *e, uint32_t pid, uint64_t tid)
{
	static const char *const category[] = { "compute", "link", "shard" };
	struct hps_doc *d = hps_doc_object(), *args = hps_doc_object();
	int bad = !d || !args || hps_doc_put(args, "step", hps_doc_u64(e->step)) ||
		  (e->micro != UINT32_MAX &&
		   hps_doc_put(args, "micro_batch", hps_doc_int(e->micro))) ||
		  (e->bytes > 0 && hps_doc_put(args, "bytes", hps_doc_double(e->bytes)));

	if (bad || !d) {
		hps_doc_free(args);
		return unless(1, d);
	}
	return unless(
		hps_doc_put(d, "args", args) ||
			hps_doc_put(d, "name", hps_doc_string(hps_sim_kind_name(e->kind))) ||
			hps_doc_put(d, "cat", hps_doc_string(category[place_of(e)])) ||
			hps_doc_put(d, "ph", hps_doc_string("X")) ||
			hps_doc_put(d, "ts", hps_doc_double(e->begin_s * 1e6)) ||
			hps_doc_put(d, "dur", hps_doc_double((e->end_s - e->begin_s) * 1e6)) ||
			hps_doc_put(d, "pid", hps_doc_int(pid)) ||
			hps_doc_put(d, "tid", hps_doc_u64(tid)),
		d);
}

/* --- names --- */

static const char *layer(const struct hps_cost *c, uint32_t l)
{
	return c->profile->size[l].name ? c->profile->size[l].name : "?";
}

static enum hps_status name_processes(struct out *o, const struct hps_problem *p,
				      const struct hps_solution *s)
{
	struct hps_buf text = HPS_BUF_INIT;
	enum hps_status rc = HPS_OK;

	for (uint32_t i = 0; !rc && i < s->n_stages; i++) {
		const struct hps_span *sp = &s->stage[i];

		for (int place = REPLICA; !rc && place <= LINK; place++) {
			text.len = 0;
			rc = hps_buf_printf(&text, o->err, "%sstage %u: %s .. %s on %s",
					    place == LINK ? "links of " : "", i,
					    layer(p->cost, sp->first), layer(p->cost, sp->last),
					    p->cost->type[sp->type].name);
			if (!rc)
				rc = put(o, name("process_name", pid_of(s, (enum place)place, i), 0,
						 text.data));
		}
	}
	text.len = 0;
	if (!rc && s->trial.shards)
		rc = hps_buf_printf(&text, o->err, "each of %u shards", s->trial.shards);
	if (!rc && s->trial.shards)
		rc = put(o, name("process_name", pid_of(s, SHARD, 0), 0, text.data));
	hps_buf_release(&text);
	return rc;
}

static enum hps_status name_row(struct out *o, const struct hps_sim_event *e, uint32_t pid,
				uint64_t tid, uint32_t lane)
{
	char text[64];

	if (place_of(e) == SHARD)
		snprintf(text, sizeof(text), "queue");
	else if (lane)
		snprintf(text, sizeof(text), "link of replica %u (%u)", e->replica, lane + 1);
	else
		snprintf(text, sizeof(text), "%sreplica %u", place_of(e) == LINK ? "link of " : "",
			 e->replica);
	return put(o, name("thread_name", pid, tid, text));
}

/* The first lane that is free by then; slices of one lane must not overlap, so what finds none is
 * laid over the last. */
static uint32_t lane_of(const double *end, uint32_t lanes, double begin)
{
	uint32_t i = 0;

	while (i < lanes && end[i] > begin)
		i++;
	return i < LANES ? i : LANES - 1;
}

/* Events of one row, in lanes. */
static enum hps_status write_row(struct out *o, const struct hps_solution *s,
				 const struct hps_sim_event *e, size_t n)
{
	uint32_t pid = pid_of(s, place_of(e), place_of(e) == SHARD ? 0 : e->stage), lanes = 0;
	double end[LANES];
	enum hps_status rc = HPS_OK;

	for (size_t i = 0; !rc && i < n; i++) {
		uint32_t lane = lane_of(end, lanes, e[i].begin_s);
		uint64_t row = place_of(e) == SHARD ? 0 : e->replica, tid = row * LANES + lane + 1;

		if (lane == lanes) {
			lanes++;
			rc = name_row(o, &e[i], pid, tid, lane);
		}
		end[lane] = e[i].end_s;
		if (!rc)
			rc = put(o, slice(&e[i], pid, tid));
	}
	return rc;
}

enum hps_status hps_trace_write(struct hps_trace *t, const struct hps_problem *p,
				const struct hps_solution *s, struct hps_buf *b,
				struct hps_err *err)
{
	struct out o = { .b = b, .err = err };
	enum hps_status rc;

	if (t->failed)
		return hps_err_set(err, HPS_MEMORY, "no memory for the trace");
	if (t->n)
		qsort(t->event, t->n, sizeof(*t->event), in_order);
	rc = hps_buf_printf(b, err, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
	if (!rc)
		rc = name_processes(&o, p, s);
	for (size_t from = 0, to; !rc && from < t->n; from = to) {
		for (to = from + 1; to < t->n && !same_row(&t->event[from], &t->event[to]); to++)
			;
		rc = write_row(&o, s, t->event + from, to - from);
	}
	return rc ? rc : hps_buf_printf(b, err, "]}\n");
}
