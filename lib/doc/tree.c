/* How is a document built and compared? Over jansson's reference-counted values. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/utf8.h"
#include "doc/doc_int.h"

struct hps_doc *hps_doc_object(void)
{
	return hps_doc_of(json_object());
}

struct hps_doc *hps_doc_array(void)
{
	return hps_doc_of(json_array());
}

json_t *hps_doc_json_int(json_int_t v)
{
	char digits[32];

	if (v >= -HPS_DOC_INT_MAX && v <= HPS_DOC_INT_MAX)
		return json_integer(v);
	snprintf(digits, sizeof(digits), "%" JSON_INTEGER_FORMAT, v);
	return json_string(digits);
}

struct hps_doc *hps_doc_int(int64_t v)
{
	return hps_doc_of(hps_doc_json_int(v));
}

struct hps_doc *hps_doc_u64(uint64_t v)
{
	char digits[32];

	if (v <= (uint64_t)HPS_DOC_INT_MAX)
		return hps_doc_of(json_integer((json_int_t)v));
	snprintf(digits, sizeof(digits), "%" PRIu64, v);
	return hps_doc_of(json_string(digits));
}

struct hps_doc *hps_doc_double(double v)
{
	return hps_doc_of(isfinite(v) ? json_real(v) : json_null());
}

/* A path or host name need not be UTF-8, a document must: other bytes become U+FFFD. */
static json_t *repaired(const char *s, size_t len)
{
	static const char replacement[] = "\xef\xbf\xbd";
	struct hps_buf b = HPS_BUF_INIT;
	json_t *j = NULL;

	for (size_t i = 0; i < len;) {
		size_t n = hps_utf8_check(s + i, len - i);

		if (hps_buf_add(&b, s + i, n, NULL) != HPS_OK)
			goto out;
		i += n;
		if (i < len && hps_buf_add(&b, replacement, 3, NULL) != HPS_OK)
			goto out;
		i++;
	}
	j = json_stringn(b.data, b.len);
out:
	hps_buf_release(&b);
	return j;
}

struct hps_doc *hps_doc_string(const char *s)
{
	size_t len;

	if (!s)
		return NULL;
	len = strlen(s);
	return hps_doc_of(hps_utf8_check(s, len) == len ? json_stringn(s, len) : repaired(s, len));
}

struct hps_doc *hps_doc_bool(bool v)
{
	return hps_doc_of(json_boolean(v));
}

struct hps_doc *hps_doc_null(void)
{
	return hps_doc_of(json_null());
}

struct hps_doc *hps_doc_copy(const struct hps_doc *d)
{
	return hps_doc_of(json_deep_copy(hps_doc_json(d)));
}

void hps_doc_free(struct hps_doc *d)
{
	json_decref(hps_doc_json(d));
}

int hps_doc_put(struct hps_doc *obj, const char *key, struct hps_doc *value)
{
	return json_object_set_new(hps_doc_json(obj), key, hps_doc_json(value));
}

int hps_doc_add(struct hps_doc *arr, struct hps_doc *value)
{
	return json_array_append_new(hps_doc_json(arr), hps_doc_json(value));
}

int hps_doc_remove(struct hps_doc *obj, const char *key)
{
	if (!json_is_object(hps_doc_json(obj)))
		return -1;
	json_object_del(hps_doc_json(obj), key); /* fails only where it is absent */
	return 0;
}

bool hps_doc_equal(const struct hps_doc *a, const struct hps_doc *b)
{
	if (!a || !b)
		return a == b;
	return json_equal(hps_doc_json(a), hps_doc_json(b));
}
