/* Which tree does this JSON text hold? jansson parses; its limits are looser than ours,
 * so a scan over the raw bytes first bounds depth, string length and number of values. */
#include <stdio.h>
#include <string.h>
#include "doc/doc_int.h"

/* "line 3, column 7" of data[pos], columns in bytes from 1. */
static void set_place(struct hps_err *err, const char *data, size_t pos)
{
	size_t line = 1, start = 0;

	for (size_t i = 0; i < pos; i++)
		if (data[i] == '\n') {
			line++;
			start = i + 1;
		}
	hps_err_at(err, "line %zu, column %zu", line, pos - start + 1);
}

static enum hps_status check_limits(const char *data, size_t len, struct hps_err *err)
{
	size_t depth = 0, values = 1, string = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		char c = data[i];
		const char *what = NULL;

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
			if (i - string > HPS_DOC_MAX_STRING)
				what = "a string longer than 1 MiB";
		} else if (c == '"') {
			in_string = true;
			string = i;
		} else if (c == '[' || c == '{') {
			values++;
			if (++depth > HPS_DOC_MAX_DEPTH)
				what = "nested deeper than 64 levels";
		} else if (c == ']' || c == '}') {
			depth -= depth > 0; /* jansson tells an unmatched one */
		} else if (c == ',') {
			values++;
		}
		if (values > HPS_DOC_MAX_VALUES)
			what = "more than 16 million values";
		if (what) {
			hps_err_set(err, HPS_BAD_INPUT, "%s", what);
			set_place(err, data, i < len ? i : len);
			return HPS_BAD_INPUT;
		}
	}
	return HPS_OK;
}

/* As strspn, of a text that no NUL ends: a number's is ended by what follows it. */
static size_t span(const char *p, const char *of)
{
	size_t n = 0;

	while (p[n] && strchr(of, p[n]))
		n++;
	return n;
}

/* The next number of a valid text, from *at on; *at goes behind it. */
static const char *next_number(const char **at, size_t *len)
{
	const char *p = *at, *number;
	bool in_string = false;

	for (; in_string || !(*p == '-' || (*p >= '0' && *p <= '9')); p++) {
		if (*p == '"')
			in_string = !in_string;
		else if (in_string && *p == '\\')
			p++;
	}
	number = p;
	*len = span(p, "+-.0123456789eE");
	*at = p + *len;
	return number;
}

/* A real written as an integer that no double is: "9007199254740993.0". Its digits, as a string
 * as such integers are kept; NULL without memory. Other reals stay what they are. */
static json_t *exact(json_t *real, const char *text, size_t len)
{
	size_t digits = (*text == '-') + span(text + (*text == '-'), "0123456789");
	char nearest[400];

	if (text[digits] != '.' || digits + 1 + span(text + digits + 1, "0") != len)
		return json_incref(real);
	snprintf(nearest, sizeof(nearest), "%.0f", json_real_value(real));
	if (strlen(nearest) == digits && !memcmp(nearest, text, digits))
		return json_incref(real);
	return json_stringn(text, digits);
}

/* The number v, at *at or later in the text, as the tree keeps it. */
static json_t *settled(json_t *v, const char **at)
{
	size_t len;
	const char *text = next_number(at, &len);

	return json_is_integer(v) ? hps_doc_json_int(json_integer_value(v)) : exact(v, text, len);
}

/* Integers that a double cannot hold become strings of digits, so that a tree is the
 * same whichever form it came in. *at goes along in the text, whose order jansson keeps. -1
 * without memory. */
static int settle_numbers(json_t *j, const char **at)
{
	const char *key;
	json_t *v;
	size_t i;

	if (json_is_array(j)) {
		json_array_foreach(j, i, v) {
			if (json_is_number(v) ? json_array_set_new(j, i, settled(v, at))
					      : settle_numbers(v, at))
				return -1;
		}
	} else if (json_is_object(j)) {
		json_object_foreach(j, key, v) {
			if (json_is_number(v) ? json_object_set_new_nocheck(j, key, settled(v, at))
					      : settle_numbers(v, at))
				return -1;
		}
	}
	return 0;
}

/* Turn jansson's error into ours. It leaves the text empty where memory ran out. */
static enum hps_status explain(const json_error_t *e, struct hps_err *err)
{
	if (!e->text[0])
		return hps_err_set(err, HPS_MEMORY, "cannot allocate the document");
	if (json_error_code(e) == json_error_null_character)
		hps_err_set(err, HPS_BAD_INPUT, "a string with a NUL character");
	else
		hps_err_set(err, HPS_BAD_INPUT, "not valid JSON: %s", e->text);
	hps_err_at(err, "line %d, column %d", e->line, e->column);
	if (json_error_code(e) == json_error_numeric_overflow && strstr(e->text, "integer"))
		hps_err_hint(err, "integers beyond 2^53 are written as strings of digits");
	return HPS_BAD_INPUT;
}

enum hps_status hps_doc_parse_json(const char *data, size_t len, json_t **out, struct hps_err *err)
{
	enum hps_status st = check_limits(data, len, err);
	const char *at = data;
	json_error_t e;
	json_t *j;

	if (st != HPS_OK)
		return st;
	j = json_loadb(data, len, JSON_REJECT_DUPLICATES, &e);
	if (!j)
		return explain(&e, err);
	if (settle_numbers(j, &at)) {
		json_decref(j);
		return hps_err_set(err, HPS_MEMORY, "cannot allocate the document");
	}
	*out = j;
	return HPS_OK;
}
