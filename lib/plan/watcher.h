/* hps-provision --watch without its clock and descriptors: bytes and times in, JSON lines out.
 *
 * In: lines as event.h has them, and with a load from a file, that one. Out, through emit:
 *   {"event": "deployment", "time_s", "reason", "reached", "target_samples_per_s",
 *    "floor_samples_per_s", "predicted_samples_per_s", "measured_samples_per_s", "efficiency",
 *    "price_per_hour", "price_before_per_hour", "change_dollars",
 *    "stages": [{"type", "units"}], "ps_shards", "deployment"}
 *       each time another one is needed or cheaper; "deployment" as in the job document, null
 *       where the hosts cannot hold it, and "why" then
 *   {"event": "rate", "time_s", "measured_samples_per_s", "predicted_samples_per_s",
 *    "efficiency"}
 *       each time the measured rate's share of the predicted one has moved by the margin
 *   {"event": "done", "time_s", "lines", "bad_lines", "changes", "change_dollars", "reached"}
 *       at the end; reached: no target was out of reach
 *
 * Time. Where events say a time, those are the clock, and others happen at the time of the last
 * one that had one. Until then, and with a load from a file, it is the caller's clock, in seconds
 * from the start.
 * A line that is malformed is told through `complain` with its place and passed over.
 */
#ifndef HPS_PLAN_WATCHER_H
#define HPS_PLAN_WATCHER_H

#include "doc/doc.h"
#include "plan/deploy.h"
#include "plan/event.h"
#include "plan/watch.h"

struct hps_watcher {
	/* set by the caller before init */
	const struct hps_problem *problem;
	const struct hps_deploy_options *deploy; /* job: names get -1, -2 ... */
	const struct hps_load *load;		 /* NULL: from events */
	const char *name;			 /* of the input, for messages */
	enum hps_status (*emit)(void *arg, const struct hps_doc *line, struct hps_err *err);
	void (*complain)(void *arg, const struct hps_err *err);
	void *arg;
	/* its own */
	struct hps_watch watch;
	struct hps_lines lines;
	uint32_t next_point;
	bool timed; /* events say the time */
	bool over;  /* the load has ended */
	bool unreached;
	double unreached_s, best_rate; /* since when, and the fastest there is */
	double told;		       /* the efficiency told last */
	uint64_t bad_lines;
	uint32_t deployments, changes;
	double change_dollars;
};

enum hps_status hps_watcher_init(struct hps_watcher *x, const struct hps_watch_options *opt,
				 const struct hps_span *stage, uint32_t n_stages,
				 struct hps_err *err);
void hps_watcher_release(struct hps_watcher *x);
/* What was read, at now_s. Errors are emit's, and HPS_NO, HPS_MEMORY. */
enum hps_status hps_watcher_feed(struct hps_watcher *x, const void *data, size_t len, double now_s,
				 struct hps_err *err);
/* Time passes. */
enum hps_status hps_watcher_tick(struct hps_watcher *x, double now_s, struct hps_err *err);
/* When tick should be called at the latest; INFINITY: no need. */
double hps_watcher_next(const struct hps_watcher *x);
/* The input is over, or the user asks for the end: what is left is a line, then "done".
 * HPS_BAD_INPUT if lines were bad, else HPS_NO if a target was out of reach; err tells. */
enum hps_status hps_watcher_end(struct hps_watcher *x, double now_s, struct hps_err *err);

#endif
