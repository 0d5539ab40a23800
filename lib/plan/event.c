/* What does a line of events or of a load say? Everything in it is hostile until checked. */
#include "plan/event.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "doc/doc.h"

static enum hps_status read_time(const struct hps_at *root, bool needed, struct hps_event *e,
				 struct hps_err *err)
{
	struct hps_at at = hps_at_member(root, "time_s");

	e->time_s = -1;
	if (hps_at_absent(&at) && !needed)
		return HPS_OK;
	return hps_at_double(&at, 0, DBL_MAX, &e->time_s, err);
}

static enum hps_status read_event(const struct hps_at *root, bool in_file, struct hps_event *e,
				  struct hps_err *err)
{
	struct hps_at kind = hps_at_member(root, "event"), at;
	const char *name = "load";
	enum hps_status rc = hps_at_object(root, err);

	if (!rc && !hps_at_absent(&kind))
		rc = hps_at_string(&kind, &name, err);
	if (rc)
		return rc;
	*e = (struct hps_event){ .kind = HPS_EVENT_OTHER, .time_s = -1 };
	if (!strcmp(name, "load")) {
		e->kind = HPS_EVENT_LOAD;
		rc = read_time(root, in_file, e, err);
		at = hps_at_member(root, "target_samples_per_s");
		return rc ? rc : hps_at_double(&at, 0, DBL_MAX, &e->rate, err);
	}
	if (!strcmp(name, "end")) {
		e->kind = HPS_EVENT_END;
		return read_time(root, in_file, e, err);
	}
	if (!strcmp(name, "applied"))
		e->kind = HPS_EVENT_APPLIED;
	if (!strcmp(name, "step")) {
		e->kind = HPS_EVENT_STEP;
		at = hps_at_member(root, "samples_per_s");
		if (!hps_at_absent(&at))
			rc = hps_at_double(&at, 0, DBL_MAX, &e->rate, err);
	}
	return rc ? rc : read_time(root, false, e, err);
}

enum hps_status hps_event_read(const char *line, size_t len, const char *name, uint64_t number,
			       bool in_file, struct hps_event *out, struct hps_err *err)
{
	struct hps_doc *doc = NULL;
	enum hps_status rc;
	struct hps_at root;
	char place[320];

	snprintf(place, sizeof(place), "%.250s: line %" PRIu64, name, number);
	/* One byte tells msgpack from JSON: here it would be junk. */
	if (len && line[0] != '{') {
		rc = hps_err_set(err, HPS_BAD_INPUT, "expected a JSON object, got \"%.*s\"%s",
				 (int)(len < 40 ? len : 40), line, len < 40 ? "" : "...");
		hps_err_at(err, "%s", place);
		return rc;
	}
	rc = hps_doc_parse(line, len, place, &doc, err);
	if (rc)
		return rc;
	root = hps_at_root(doc, place);
	rc = read_event(&root, in_file, out, err);
	hps_doc_free(doc);
	return rc;
}

/* --- lines --- */

enum hps_status hps_lines_feed(struct hps_lines *l, const void *data, size_t len,
			       struct hps_err *err)
{
	if (l->at) {
		memmove(l->buf.data, l->buf.data + l->at, l->buf.len - l->at);
		l->buf.len -= l->at;
		l->at = 0;
	}
	return hps_buf_add(&l->buf, data, len, err);
}

bool hps_lines_take(struct hps_lines *l, bool last, const char **line, size_t *len)
{
	for (;;) {
		const char *data = l->buf.data + l->at, *end;
		size_t left = l->buf.len - l->at;

		if (!left)
			return false;
		end = memchr(data, '\n', left);
		*len = end ? (size_t)(end - data) : left;
		if (!end && !last && left <= HPS_EVENT_MAX_LINE)
			return false;
		l->at += *len + (end != NULL);
		if (l->dropping) {
			l->dropping = !end;
			continue;
		}
		l->number++;
		l->dropping = !end && !last;
		*line = *len <= HPS_EVENT_MAX_LINE ? data : NULL;
		return true;
	}
}

bool hps_line_blank(const char *line, size_t len)
{
	size_t i = 0;

	while (i < len && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r'))
		i++;
	return i == len;
}

void hps_lines_release(struct hps_lines *l)
{
	hps_buf_release(&l->buf);
	memset(l, 0, sizeof(*l));
}

/* --- a load --- */

static enum hps_status at_line(struct hps_err *err, const char *name, uint64_t number)
{
	hps_err_at(err, "%.250s: line %" PRIu64, name, number);
	return HPS_BAD_INPUT;
}

static enum hps_status add_point(struct hps_load *l, uint32_t *room, const struct hps_event *e,
				 struct hps_err *err)
{
	double before = l->n ? l->point[l->n - 1].time_s : -1;

	if (l->end_s > 0)
		return hps_err_set(err, HPS_BAD_INPUT, "a line after the end of the load");
	if (e->time_s <= before)
		return hps_err_set(
			err, HPS_BAD_INPUT,
			"expected a time above %.17g, that of the line before, got %.17g", before,
			e->time_s);
	if (e->kind == HPS_EVENT_END) {
		if (!l->n)
			return hps_err_set(err, HPS_BAD_INPUT, "the load ends before it begins");
		l->end_s = e->time_s;
		return HPS_OK;
	}
	if (l->n == HPS_LOAD_MAX_POINTS)
		return hps_err_set(err, HPS_BAD_INPUT, "more than %d lines of load",
				   HPS_LOAD_MAX_POINTS);
	if (l->n == *room) {
		*room = *room ? *room * 2 : 64;
		if (hps_realloc((void **)&l->point, *room, sizeof(*l->point), err))
			return HPS_MEMORY;
	}
	l->point[l->n++] = (struct hps_load_point){ e->time_s, e->rate };
	return HPS_OK;
}

static double end_of(const struct hps_load *l)
{
	const struct hps_load_point *p = &l->point[l->n - 1];

	return p->time_s + (l->n > 1 ? p->time_s - p[-1].time_s : 3600);
}

enum hps_status hps_load_parse(const char *data, size_t len, const char *name, struct hps_load *out,
			       struct hps_err *err)
{
	const char *at = data, *over = data + len;
	enum hps_status rc = HPS_OK;
	uint64_t number = 0;
	uint32_t room = 0;

	memset(out, 0, sizeof(*out));
	while (!rc && at < over) {
		const char *nl = memchr(at, '\n', (size_t)(over - at)), *end = nl ? nl : over;
		size_t n = (size_t)(end - at);
		struct hps_event e = { 0 };

		number++;
		if (n > HPS_EVENT_MAX_LINE) {
			hps_err_set(err, HPS_BAD_INPUT, "a line of more than %d bytes",
				    HPS_EVENT_MAX_LINE);
			rc = at_line(err, name, number);
		} else if (!hps_line_blank(at, n)) {
			rc = hps_event_read(at, n, name, number, true, &e, err);
			if (!rc && (e.kind == HPS_EVENT_LOAD || e.kind == HPS_EVENT_END)) {
				rc = add_point(out, &room, &e, err);
				if (rc == HPS_BAD_INPUT)
					at_line(err, name, number);
			}
		}
		at = end + 1;
	}
	if (!rc && !out->n) {
		rc = hps_err_set(err, HPS_BAD_INPUT,
				 "no load in it, expected lines such as {\"time_s\": 0, "
				 "\"target_samples_per_s\": 20000}");
		hps_err_at(err, "%.250s", name);
	}
	if (!rc && !(out->end_s > 0))
		out->end_s = end_of(out);
	if (rc)
		hps_load_release(out);
	return rc;
}

void hps_load_release(struct hps_load *l)
{
	free(l->point);
	memset(l, 0, sizeof(*l));
}

double hps_load_peak(const struct hps_load *l)
{
	double peak = 0;

	for (uint32_t i = 0; i < l->n; i++)
		peak = fmax(peak, l->point[i].rate);
	return peak;
}
