/* What value stands at this place, and if it is the wrong one, how is that told? */
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "doc/doc_int.h"

enum { SHOWN = 60 }; /* bytes of a value or name in a message */

struct hps_at hps_at_root(const struct hps_doc *d, const char *name)
{
	return (struct hps_at){ .node = d,
				.key = name && strcmp(name, "-") ? name : "standard input" };
}

struct hps_at hps_at_member(const struct hps_at *at, const char *key)
{
	json_t *j = json_object_get(hps_doc_json(at->node), key); /* NULL for other types */

	return (struct hps_at){ .node = hps_doc_of(j), .up = at, .key = key };
}

struct hps_at hps_at_item(const struct hps_at *at, size_t i)
{
	json_t *j = json_array_get(hps_doc_json(at->node), i);

	return (struct hps_at){ .node = hps_doc_of(j), .up = at, .index = i };
}

bool hps_at_absent(const struct hps_at *at)
{
	return !at->node || json_is_null(hps_doc_json(at->node));
}

size_t hps_at_count(const struct hps_at *at)
{
	json_t *j = hps_doc_json(at->node);

	return json_is_array(j) ? json_array_size(j) : json_object_size(j);
}

/* --- messages --- */

/* Drop the bytes of a character that was cut in two. */
static void cut(char *s, size_t len)
{
	while (len && ((unsigned char)s[len] & 0xc0) == 0x80)
		len--;
	s[len] = '\0';
}

static bool plain_name(const char *s)
{
	for (const char *p = s; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-')
			return false;
	return *s && strlen(s) <= SHOWN;
}

/* Append the place below the root to path: "layers[3].units". */
static void put_path(const struct hps_at *at, char *path, size_t size)
{
	char name[SHOWN + 1];
	size_t n;

	if (!at->up)
		return;
	put_path(at->up, path, size);
	n = strlen(path);
	if (!at->key) {
		snprintf(path + n, size - n, "[%zu]", at->index);
	} else if (plain_name(at->key)) {
		snprintf(path + n, size - n, "%s%s", n ? "." : "", at->key);
	} else {
		n = strlen(at->key);
		snprintf(name, sizeof(name), "%s", at->key);
		if (n > SHOWN) {
			cut(name, SHOWN - 3);
			strcat(name, "...");
		}
		n = strlen(path);
		snprintf(path + n, size - n, "[\"%s\"]", name);
	}
}

/* Set where in err, whose message stands. */
static enum hps_status place(const struct hps_at *at, struct hps_err *err)
{
	char path[sizeof(err->where)] = "";
	const struct hps_at *root = at;

	while (root->up)
		root = root->up;
	put_path(at, path, sizeof(path));
	if (*path)
		hps_err_at(err, "%s", path);
	hps_err_at(err, "%s", root->key);
	return HPS_BAD_INPUT;
}

/* The value as it would be written, cut; containers by their kind. */
static void put_shown(const json_t *j, char *out, size_t size)
{
	struct hps_buf b = HPS_BUF_INIT;

	if (json_is_object(j)) {
		snprintf(out, size, "an object");
	} else if (json_is_array(j)) {
		snprintf(out, size, "an array");
	} else if (hps_doc_compact(j, &b, NULL) != HPS_OK) {
		snprintf(out, size, "another value");
	} else {
		bool quoted = json_is_string(j);

		if (b.len > SHOWN)
			cut(b.data, SHOWN - 4);
		snprintf(out, size, "%s%s%s", b.data, b.len > SHOWN ? "..." : "",
			 b.len > SHOWN && quoted ? "\"" : "");
	}
	hps_buf_release(&b);
}

enum hps_status hps_at_expected(const struct hps_at *at, struct hps_err *err, const char *what, ...)
{
	char expected[384], got[SHOWN + 8];
	va_list ap;

	va_start(ap, what);
	vsnprintf(expected, sizeof(expected), what, ap);
	va_end(ap);
	if (at->node) {
		put_shown(hps_doc_json(at->node), got, sizeof(got));
		hps_err_set(err, HPS_BAD_INPUT, "expected %s, got %s", expected, got);
	} else {
		hps_err_set(err, HPS_BAD_INPUT, "missing: expected %s", expected);
	}
	return place(at, err);
}

enum hps_status hps_at_error(const struct hps_at *at, struct hps_err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	hps_err_vset(err, HPS_BAD_INPUT, fmt, ap);
	va_end(ap);
	return place(at, err);
}

/* --- typed values --- */

/* Digits with an optional minus: how integers beyond 2^53 are written. */
static const char *digits_of(const json_t *j)
{
	const char *s = json_string_value(j);
	size_t n;

	if (!s)
		return NULL;
	n = strspn(s + (*s == '-'), "0123456789");
	return n && !s[(*s == '-') + n] ? s : NULL;
}

/* A real number that is an integer within +-2^53. */
static bool whole(const json_t *j, int64_t *out)
{
	double v = json_real_value(j);

	if (!json_is_real(j) || v != floor(v) || fabs(v) > (double)HPS_DOC_INT_MAX)
		return false;
	*out = (int64_t)v;
	return true;
}

static bool get_int(const json_t *j, int64_t *out)
{
	const char *s = digits_of(j);

	if (json_is_integer(j)) {
		*out = json_integer_value(j);
		return true;
	}
	if (whole(j, out))
		return true;
	if (!s)
		return false;
	errno = 0;
	*out = strtoll(s, NULL, 10);
	return errno == 0;
}

static bool get_u64(const json_t *j, uint64_t *out)
{
	const char *s = digits_of(j);
	int64_t v;

	if (s && *s != '-') {
		errno = 0;
		*out = strtoull(s, NULL, 10);
		return errno == 0;
	}
	if (!get_int(j, &v) || v < 0)
		return false;
	*out = (uint64_t)v;
	return true;
}

enum hps_status hps_at_int(const struct hps_at *at, int64_t min, int64_t max, int64_t *out,
			   struct hps_err *err)
{
	int64_t v;

	if (at->node && get_int(hps_doc_json(at->node), &v) && v >= min && v <= max) {
		*out = v;
		return HPS_OK;
	}
	/* Beyond 2^53 a limit is as good as none, and would only confuse. */
	if (min > -HPS_DOC_INT_MAX && max < HPS_DOC_INT_MAX)
		return hps_at_expected(at, err, "an integer from %" PRId64 " to %" PRId64, min,
				       max);
	if (min == 1)
		return hps_at_expected(at, err, "an integer > 0");
	if (min > -HPS_DOC_INT_MAX)
		return hps_at_expected(at, err, "an integer >= %" PRId64, min);
	if (max < HPS_DOC_INT_MAX)
		return hps_at_expected(at, err, "an integer <= %" PRId64, max);
	return hps_at_expected(at, err, "an integer");
}

enum hps_status hps_at_u64(const struct hps_at *at, uint64_t min, uint64_t max, uint64_t *out,
			   struct hps_err *err)
{
	uint64_t v;

	if (at->node && get_u64(hps_doc_json(at->node), &v) && v >= min && v <= max) {
		*out = v;
		return HPS_OK;
	}
	if (max < (uint64_t)HPS_DOC_INT_MAX)
		return hps_at_expected(at, err, "an integer from %" PRIu64 " to %" PRIu64, min,
				       max);
	if (min == 1)
		return hps_at_expected(at, err, "an integer > 0");
	return hps_at_expected(at, err, "an integer >= %" PRIu64, min);
}

enum hps_status hps_at_double(const struct hps_at *at, double min, double max, double *out,
			      struct hps_err *err)
{
	const json_t *j = hps_doc_json(at->node);
	bool lower = min > -DBL_MAX, upper = max < DBL_MAX;
	const char *s = digits_of(j);

	if (json_is_number(j) || s) {
		double v = s ? strtod(s, NULL) : json_number_value(j);

		if (isfinite(v) && v >= min && v <= max) {
			*out = v;
			return HPS_OK;
		}
	}
	if (min > 0 && min <= DBL_MIN)
		return upper ? hps_at_expected(at, err, "a number > 0 and <= %.15g", max)
			     : hps_at_expected(at, err, "a number > 0");
	if (lower && upper)
		return hps_at_expected(at, err, "a number from %.15g to %.15g", min, max);
	if (lower)
		return hps_at_expected(at, err, "a number >= %.15g", min);
	if (upper)
		return hps_at_expected(at, err, "a number <= %.15g", max);
	return hps_at_expected(at, err, "a number");
}

enum hps_status hps_at_bool(const struct hps_at *at, bool *out, struct hps_err *err)
{
	const json_t *j = hps_doc_json(at->node);

	if (!json_is_boolean(j))
		return hps_at_expected(at, err, "true or false");
	*out = json_is_true(j);
	return HPS_OK;
}

enum hps_status hps_at_string(const struct hps_at *at, const char **out, struct hps_err *err)
{
	const char *s = json_string_value(hps_doc_json(at->node));

	if (!s)
		return hps_at_expected(at, err, "a string");
	*out = s;
	return HPS_OK;
}

enum hps_status hps_at_array(const struct hps_at *at, struct hps_err *err)
{
	return json_is_array(hps_doc_json(at->node)) ? HPS_OK
						     : hps_at_expected(at, err, "an array");
}

enum hps_status hps_at_object(const struct hps_at *at, struct hps_err *err)
{
	return json_is_object(hps_doc_json(at->node)) ? HPS_OK
						      : hps_at_expected(at, err, "an object");
}
