/* What a simulated plan does, as a timeline in the Chrome trace event format: chrome://tracing and
 * ui.perfetto.dev open it. A process for each stage's replicas, one for each stage's links, one for
 * the shards; a row for each replica, link and the shards' queue. Messages that share a link get
 * rows side by side. Times in microseconds from the start. */
#ifndef HPS_DRAW_TRACE_H
#define HPS_DRAW_TRACE_H

#include "plan/plan.h"
#include "sim/sim.h"

enum { HPS_TRACE_MOST = 500000 };

/* Events as they come; the first HPS_TRACE_MOST are kept, the others counted. */
struct hps_trace {
	struct hps_sim_event *event;
	size_t n, room;
	uint64_t left_out;
	bool failed; /* no memory */
};

/* A callback for hps_sim_options.event; arg: a struct hps_trace, zeroed before. */
void hps_trace_event(void *arg, const struct hps_sim_event *e);
/* The file's text. Events are sorted in place. */
enum hps_status hps_trace_write(struct hps_trace *t, const struct hps_problem *p,
				const struct hps_solution *s, struct hps_buf *b,
				struct hps_err *err);
void hps_trace_release(struct hps_trace *t);

#endif
