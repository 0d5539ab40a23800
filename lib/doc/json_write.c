/* How does a document read for a person, and for a line-oriented tool? Written here and
 * not by jansson for the shortest doubles that read back equal, and for short lists on
 * one line: a profile is mostly arrays of numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "doc/doc_int.h"

enum { WIDTH = 96, INDENT = 2 };

struct writer {
	struct hps_buf *b;
	struct hps_err *err;
	struct hps_buf line; /* scratch: a value tried on one line; its ceiling is what fits */
};

static enum hps_status put_string(struct hps_buf *b, const char *s, size_t len, struct hps_err *err)
{
	enum hps_status st = hps_buf_add(b, "\"", 1, err);
	size_t done = 0;

	for (size_t i = 0; i < len && st == HPS_OK; i++) {
		unsigned char c = (unsigned char)s[i];
		const char *short_form = c == '"'    ? "\\\""
					 : c == '\\' ? "\\\\"
					 : c == '\n' ? "\\n"
					 : c == '\t' ? "\\t"
					 : c == '\r' ? "\\r"
						     : NULL;

		if (!short_form && c >= 0x20 && c != 0x7f)
			continue;
		st = hps_buf_add(b, s + done, i - done, err);
		done = i + 1;
		if (st == HPS_OK)
			st = short_form ? hps_buf_add(b, short_form, 2, err)
					: hps_buf_printf(b, err, "\\u%04x", c);
	}
	if (st == HPS_OK)
		st = hps_buf_add(b, s + done, len - done, err);
	return st == HPS_OK ? hps_buf_add(b, "\"", 1, err) : st;
}

/* The fewest digits that strtod(3) turns into the same bits; with a point or exponent, so
 * that it stays a real number. 17 always suffice. */
static enum hps_status put_double(struct hps_buf *b, double v, struct hps_err *err)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	return hps_buf_printf(b, err, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static enum hps_status put_scalar(struct hps_buf *b, const json_t *j, struct hps_err *err)
{
	switch (json_typeof(j)) {
	case JSON_STRING:
		return put_string(b, json_string_value(j), json_string_length(j), err);
	case JSON_INTEGER:
		return hps_buf_printf(b, err, "%" JSON_INTEGER_FORMAT, json_integer_value(j));
	case JSON_REAL:
		return put_double(b, json_real_value(j), err);
	case JSON_TRUE:
		return hps_buf_add(b, "true", 4, err);
	case JSON_FALSE:
		return hps_buf_add(b, "false", 5, err);
	default:
		return hps_buf_add(b, "null", 4, err);
	}
}

static bool is_container(const json_t *j)
{
	return json_is_object(j) || json_is_array(j);
}

/* On one line: `sep` after each comma, `pad` inside the braces. */
static enum hps_status put_line(struct hps_buf *b, const json_t *j, const char *sep,
				const char *pad, int depth, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	const char *comma = "", *key;
	json_t *v;
	size_t i;

	if (!is_container(j))
		return put_scalar(b, j, err);
	if (depth >= HPS_DOC_MAX_DEPTH)
		return hps_err_set(err, HPS_BAD_INPUT, "nested deeper than %d levels",
				   HPS_DOC_MAX_DEPTH);
	if (json_is_array(j)) {
		st = hps_buf_add(b, "[", 1, err);
		json_array_foreach(j, i, v) {
			if (st == HPS_OK)
				st = hps_buf_printf(b, err, "%s", comma);
			if (st == HPS_OK && *comma)
				st = hps_buf_printf(b, err, "%s", sep);
			if (st == HPS_OK)
				st = put_line(b, v, sep, pad, depth + 1, err);
			if (st != HPS_OK)
				return st;
			comma = ",";
		}
		return st == HPS_OK ? hps_buf_add(b, "]", 1, err) : st;
	}
	if (json_object_size(j) == 0)
		return hps_buf_add(b, "{}", 2, err);
	st = hps_buf_printf(b, err, "{%s", pad);
	json_object_foreach((json_t *)j, key, v) {
		if (st == HPS_OK && *comma)
			st = hps_buf_printf(b, err, ",%s", sep);
		if (st == HPS_OK)
			st = put_string(b, key, strlen(key), err);
		if (st == HPS_OK)
			st = hps_buf_printf(b, err, ":%s", sep);
		if (st == HPS_OK)
			st = put_line(b, v, sep, pad, depth + 1, err);
		if (st != HPS_OK)
			return st;
		comma = ",";
	}
	return st == HPS_OK ? hps_buf_printf(b, err, "%s}", pad) : st;
}

enum hps_status hps_doc_compact(const json_t *j, struct hps_buf *b, struct hps_err *err)
{
	return put_line(b, j, "", "", 0, err);
}

/* Numbers and words side by side, as many as fit in a line. */
static enum hps_status put_filled(struct writer *w, const json_t *j, size_t indent)
{
	enum hps_status st = HPS_OK;
	size_t col = 0, i, n = json_array_size(j);
	json_t *v;

	json_array_foreach(j, i, v) {
		struct hps_buf *item = &w->line;

		item->len = item->max = 0;
		st = put_scalar(item, v, w->err);
		if (st == HPS_OK && i + 1 < n)
			st = hps_buf_add(item, ",", 1, w->err);
		if (st != HPS_OK)
			return st;
		if (col == 0 || col + 1 + item->len > WIDTH) {
			st = hps_buf_printf(w->b, w->err, "\n%*s", (int)indent, "");
			col = indent;
		} else {
			st = hps_buf_add(w->b, " ", 1, w->err);
			col++;
		}
		if (st == HPS_OK)
			st = hps_buf_add(w->b, item->data, item->len, w->err);
		if (st != HPS_OK)
			return st;
		col += item->len;
	}
	return st;
}

static bool all_scalars(const json_t *array)
{
	json_t *v;
	size_t i;

	json_array_foreach(array, i, v)
		if (is_container(v))
			return false;
	return true;
}

static enum hps_status put_value(struct writer *w, const json_t *j, size_t col, int depth);

static enum hps_status put_members(struct writer *w, const json_t *j, size_t indent, int depth)
{
	enum hps_status st = HPS_OK;
	const char *comma = "", *key;
	size_t i, start;
	json_t *v;

	if (json_is_array(j)) {
		json_array_foreach(j, i, v) {
			st = hps_buf_printf(w->b, w->err, "%s\n%*s", comma, (int)indent, "");
			if (st == HPS_OK)
				st = put_value(w, v, indent, depth);
			if (st != HPS_OK)
				return st;
			comma = ",";
		}
		return st;
	}
	json_object_foreach((json_t *)j, key, v) {
		st = hps_buf_printf(w->b, w->err, "%s\n%*s", comma, (int)indent, "");
		start = w->b->len;
		if (st == HPS_OK)
			st = put_string(w->b, key, strlen(key), w->err);
		if (st == HPS_OK)
			st = hps_buf_add(w->b, ": ", 2, w->err);
		if (st == HPS_OK)
			st = put_value(w, v, indent + w->b->len - start, depth);
		if (st != HPS_OK)
			return st;
		comma = ",";
	}
	return st;
}

/* A value that begins in column col, inside `depth` containers. */
static enum hps_status put_value(struct writer *w, const json_t *j, size_t col, int depth)
{
	bool array = json_is_array(j);
	enum hps_status st;

	if (!is_container(j))
		return put_scalar(w->b, j, w->err);
	if (depth >= HPS_DOC_MAX_DEPTH)
		return hps_err_set(w->err, HPS_BAD_INPUT, "nested deeper than %d levels",
				   HPS_DOC_MAX_DEPTH);
	if (depth > 0 && col + 2 < WIDTH) {
		/* The scratch buffer's ceiling ends the try early; a real lack of memory
		 * shows again below. */
		w->line.len = 0;
		w->line.max = WIDTH - col;
		if (put_line(&w->line, j, " ", " ", depth, NULL) == HPS_OK)
			return hps_buf_add(w->b, w->line.data, w->line.len, w->err);
	}
	st = hps_buf_add(w->b, array ? "[" : "{", 1, w->err);
	if (st == HPS_OK)
		st = array && all_scalars(j)
			     ? put_filled(w, j, (size_t)(depth + 1) * INDENT)
			     : put_members(w, j, (size_t)(depth + 1) * INDENT, depth + 1);
	if (st == HPS_OK && (array ? json_array_size(j) : json_object_size(j)))
		st = hps_buf_printf(w->b, w->err, "\n%*s", depth * INDENT, "");
	return st == HPS_OK ? hps_buf_add(w->b, array ? "]" : "}", 1, w->err) : st;
}

enum hps_status hps_doc_to_json(const struct hps_doc *d, struct hps_buf *b, struct hps_err *err)
{
	struct writer w = { .b = b, .err = err };
	enum hps_status st = put_value(&w, hps_doc_json(d), 0, 0);

	hps_buf_release(&w.line);
	return st == HPS_OK ? hps_buf_add(b, "\n", 1, err) : st;
}

enum hps_status hps_doc_to_json_line(const struct hps_doc *d, struct hps_buf *b,
				     struct hps_err *err)
{
	enum hps_status st = hps_doc_compact(hps_doc_json(d), b, err);

	return st == HPS_OK ? hps_buf_add(b, "\n", 1, err) : st;
}
