/* Lines of JSON that say what a job does and what is asked of it: hps-work's events, and a load.
 *
 *   {"event": "load", "time_s": 3600, "target_samples_per_s": 250000}
 *       from this time on so much is asked for, until the next one; 0 = nothing
 *   {"event": "end", "time_s": 86400}
 *       the load ends
 *   {"event": "step", ..., "samples_per_s": 198000}     of hps-work: the measured rate
 *   {"event": "applied"}
 *       the deployment printed last is what runs from now on
 *
 * Other events and members mean nothing here and are passed over; a line without "event" is a load.
 * A load file holds load lines and at most one end, the last line; without it the last rate holds
 * as long as the one before it did, a single one for an hour. Empty lines are passed over. Times
 * are seconds >= 0 and rise; rates are finite and >= 0.
 */
#ifndef HPS_PLAN_EVENT_H
#define HPS_PLAN_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

enum hps_event_kind {
	HPS_EVENT_LOAD,
	HPS_EVENT_END,
	HPS_EVENT_STEP,
	HPS_EVENT_APPLIED,
	HPS_EVENT_OTHER,
};

struct hps_event {
	enum hps_event_kind kind;
	double time_s; /* < 0: not said */
	double rate;   /* LOAD: the target; STEP: measured, 0 = not said */
};

enum { HPS_EVENT_MAX_LINE = 1 << 16, HPS_LOAD_MAX_POINTS = 1 << 20 };

/* One line, without its end. HPS_BAD_INPUT names `name` and the line; a load without a target and,
 * where in_file, without a time, is bad. */
enum hps_status hps_event_read(const char *line, size_t len, const char *name, uint64_t number,
			       bool in_file, struct hps_event *out, struct hps_err *err);

/* Bytes into lines: feed what was read, then take lines until there are none. A line longer than
 * HPS_EVENT_MAX_LINE is told as bad once, and its bytes are dropped. */
struct hps_lines {
	struct hps_buf buf;
	size_t at;	 /* of buf: taken up to here */
	uint64_t number; /* of the line last taken, from 1 */
	bool dropping;	 /* the rest of a line that is too long */
};
enum hps_status hps_lines_feed(struct hps_lines *l, const void *data, size_t len,
			       struct hps_err *err);
/* false: no whole line is left (last: the input is over, what is left is a line). *line is
 * borrowed until the next feed; NULL for a line that was too long. */
bool hps_lines_take(struct hps_lines *l, bool last, const char **line, size_t *len);
bool hps_line_blank(const char *line, size_t len);
void hps_lines_release(struct hps_lines *l);

struct hps_load_point {
	double time_s, rate;
};
struct hps_load {
	struct hps_load_point *point; /* n, times rise */
	uint32_t n;
	double end_s; /* above the last time */
};
/* From the bytes of a file. HPS_BAD_INPUT names the line: bad JSON, a rate that is negative, a time
 * that goes back, nothing in it. */
enum hps_status hps_load_parse(const char *data, size_t len, const char *name, struct hps_load *out,
			       struct hps_err *err);
void hps_load_release(struct hps_load *l);
double hps_load_peak(const struct hps_load *l);

#endif
