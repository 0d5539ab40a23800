/* Documents as msgpack. msgpack-c encodes. Decoding walks the bytes here: msgpack-c's
 * unpacker allocates what a header claims before it looks at the rest, and stops at
 * depth 32. The format: https://github.com/msgpack/msgpack/blob/master/spec.md */
#include <math.h>
#include <msgpack.h>
#include <stdio.h>
#include <string.h>
#include "base/utf8.h"
#include "doc/doc_int.h"

/* --- encode --- */

struct sink {
	struct hps_buf *b;
	struct hps_err *err;
	enum hps_status st; /* the first failure: msgpack-c passes on no more than -1 */
};

static int to_sink(void *arg, const char *data, size_t len)
{
	struct sink *s = arg;

	if (s->st == HPS_OK)
		s->st = hps_buf_add(s->b, data, len, s->err);
	return s->st == HPS_OK ? 0 : -1;
}

static int pack_text(msgpack_packer *pk, const char *s, size_t len)
{
	return msgpack_pack_str(pk, len) || msgpack_pack_str_body(pk, s, len);
}

/* 0, or -1 with the reason in s. */
static int pack(msgpack_packer *pk, const json_t *j, int depth, struct sink *s)
{
	const char *key;
	json_t *v;
	size_t i;

	if ((json_is_object(j) || json_is_array(j)) && depth >= HPS_DOC_MAX_DEPTH) {
		s->st = hps_err_set(s->err, HPS_BAD_INPUT, "nested deeper than %d levels",
				    HPS_DOC_MAX_DEPTH);
		return -1;
	}
	switch (json_typeof(j)) {
	case JSON_OBJECT:
		if (msgpack_pack_map(pk, json_object_size(j)))
			return -1;
		json_object_foreach((json_t *)j, key, v)
			if (pack_text(pk, key, strlen(key)) || pack(pk, v, depth + 1, s))
				return -1;
		return 0;
	case JSON_ARRAY:
		if (msgpack_pack_array(pk, json_array_size(j)))
			return -1;
		json_array_foreach(j, i, v)
			if (pack(pk, v, depth + 1, s))
				return -1;
		return 0;
	case JSON_STRING:
		return pack_text(pk, json_string_value(j), json_string_length(j));
	case JSON_INTEGER:
		return msgpack_pack_int64(pk, json_integer_value(j));
	case JSON_REAL:
		return msgpack_pack_double(pk, json_real_value(j));
	case JSON_TRUE:
		return msgpack_pack_true(pk);
	case JSON_FALSE:
		return msgpack_pack_false(pk);
	case JSON_NULL:
		return msgpack_pack_nil(pk);
	}
	return 0;
}

enum hps_status hps_doc_to_msgpack(const struct hps_doc *d, struct hps_buf *b, struct hps_err *err)
{
	struct sink s = { b, err, HPS_OK };
	msgpack_packer pk;

	msgpack_packer_init(&pk, &s, to_sink);
	pack(&pk, hps_doc_json(d), 0, &s);
	return s.st;
}

/* --- decode --- */

struct cursor {
	const unsigned char *p;
	size_t len, pos;
	size_t values; /* decoded so far */
	struct hps_err *err;
	enum hps_status st; /* why a NULL was returned */
};

/* Fail at byte `pos`; returns NULL for the caller to pass on. */
__attribute__((format(printf, 3, 4))) static json_t *bad(struct cursor *c, size_t pos,
							 const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	c->st = hps_err_vset(c->err, HPS_BAD_INPUT, fmt, ap);
	va_end(ap);
	hps_err_at(c->err, "byte %zu", pos);
	return NULL;
}

static json_t *no_memory(struct cursor *c)
{
	c->st = hps_err_set(c->err, HPS_MEMORY, "cannot allocate the document");
	return NULL;
}

/* A big-endian number of n bytes; -1 and an error where the data ends before. */
static int take(struct cursor *c, size_t n, uint64_t *out)
{
	uint64_t v = 0;

	if (c->len - c->pos < n) {
		bad(c, c->len, "msgpack ends in the middle of a value");
		return -1;
	}
	for (size_t i = 0; i < n; i++)
		v = v << 8 | c->p[c->pos++];
	*out = v;
	return 0;
}

static json_t *text(struct cursor *c, uint64_t n, size_t start)
{
	const char *s = (const char *)c->p + c->pos;
	size_t ok;
	json_t *j;

	if (n > HPS_DOC_MAX_STRING)
		return bad(c, start, "a string longer than 1 MiB");
	if (n > c->len - c->pos)
		return bad(c, start, "a string of %zu bytes where %zu are left", (size_t)n,
			   c->len - c->pos);
	ok = hps_utf8_check(s, n);
	if (ok < n)
		return bad(c, c->pos + ok, "a string that is not UTF-8");
	if (memchr(s, 0, n))
		return bad(c, start, "a string with a NUL byte");
	c->pos += n;
	j = json_stringn(s, n);
	return j ? j : no_memory(c);
}

static json_t *real(struct cursor *c, double v, size_t start)
{
	json_t *j;

	if (!isfinite(v))
		return bad(c, start, "%s has no place in a document",
			   isnan(v) ? "NaN" : "infinity");
	j = json_real(v);
	return j ? j : no_memory(c);
}

static json_t *integer(struct cursor *c, uint64_t bits, bool is_signed)
{
	struct hps_doc *d = is_signed ? hps_doc_int((int64_t)bits) : hps_doc_u64(bits);

	return d ? hps_doc_json(d) : no_memory(c);
}

static json_t *value(struct cursor *c, int depth);

/* Room for n items of at least `least` bytes each? A claim that cannot be true is told
 * before anything is allocated for it. */
static int claim(struct cursor *c, uint64_t n, size_t least, int depth, size_t start)
{
	if (depth >= HPS_DOC_MAX_DEPTH)
		bad(c, start, "nested deeper than %d levels", HPS_DOC_MAX_DEPTH);
	else if (n > (c->len - c->pos) / least)
		bad(c, start, "%zu items where %zu bytes are left", (size_t)n, c->len - c->pos);
	else
		return 0;
	return -1;
}

static json_t *array(struct cursor *c, uint64_t n, int depth, size_t start)
{
	json_t *a, *v;

	if (claim(c, n, 1, depth, start))
		return NULL;
	a = json_array();
	if (!a)
		return no_memory(c);
	for (uint64_t i = 0; i < n; i++) {
		v = value(c, depth + 1);
		if (v && json_array_append_new(a, v))
			v = no_memory(c);
		if (!v) {
			json_decref(a);
			return NULL;
		}
	}
	return a;
}

/* One "key: value" into obj; -1 on failure. */
static int member(struct cursor *c, json_t *obj, int depth)
{
	size_t start = c->pos;
	json_t *key = value(c, depth), *v;
	int rc = -1;

	if (!key)
		return -1;
	if (!json_is_string(key)) {
		bad(c, start, "a member's name that is not a string");
	} else if (json_object_get(obj, json_string_value(key))) {
		bad(c, start, "duplicate member \"%.60s\"", json_string_value(key));
	} else {
		v = value(c, depth);
		rc = v ? json_object_set_new_nocheck(obj, json_string_value(key), v) : -1;
		if (v && rc)
			no_memory(c);
	}
	json_decref(key);
	return rc;
}

static json_t *map(struct cursor *c, uint64_t n, int depth, size_t start)
{
	json_t *obj;

	if (claim(c, n, 2, depth, start))
		return NULL;
	obj = json_object();
	if (!obj)
		return no_memory(c);
	for (uint64_t i = 0; i < n; i++)
		if (member(c, obj, depth + 1)) {
			json_decref(obj);
			return NULL;
		}
	return obj;
}

/* The types whose first byte is 0xc0 to 0xdf. */
static json_t *long_form(struct cursor *c, unsigned type, int depth, size_t start)
{
	uint64_t n = 0;
	uint32_t bits;
	float f;
	double d;

	switch (type) {
	case 0xc0:
		return json_null();
	case 0xc2:
	case 0xc3:
		return json_boolean(type == 0xc3);
	case 0xca:
		if (take(c, 4, &n))
			return NULL;
		bits = (uint32_t)n;
		memcpy(&f, &bits, 4);
		return real(c, f, start);
	case 0xcb:
		if (take(c, 8, &n))
			return NULL;
		memcpy(&d, &n, 8);
		return real(c, d, start);
	case 0xcc:
	case 0xcd:
	case 0xce:
	case 0xcf:
		return take(c, (size_t)1 << (type - 0xcc), &n) ? NULL : integer(c, n, false);
	case 0xd0:
		return take(c, 1, &n) ? NULL : integer(c, (uint64_t)(int8_t)n, true);
	case 0xd1:
		return take(c, 2, &n) ? NULL : integer(c, (uint64_t)(int16_t)n, true);
	case 0xd2:
		return take(c, 4, &n) ? NULL : integer(c, (uint64_t)(int32_t)n, true);
	case 0xd3:
		return take(c, 8, &n) ? NULL : integer(c, n, true);
	case 0xd9:
	case 0xda:
	case 0xdb:
		return take(c, (size_t)1 << (type - 0xd9), &n) ? NULL : text(c, n, start);
	case 0xdc:
	case 0xdd:
		return take(c, type == 0xdc ? 2 : 4, &n) ? NULL : array(c, n, depth, start);
	case 0xde:
	case 0xdf:
		return take(c, type == 0xde ? 2 : 4, &n) ? NULL : map(c, n, depth, start);
	case 0xc4:
	case 0xc5:
	case 0xc6:
		return bad(c, start, "binary data (msgpack bin) has no place in a document");
	case 0xc1:
		return bad(c, start, "0xc1 begins no msgpack value");
	default:
		return bad(c, start, "an extension type (msgpack ext) has no place in a document");
	}
}

static json_t *value(struct cursor *c, int depth)
{
	size_t start = c->pos;
	uint64_t first;
	unsigned type;

	if (++c->values > HPS_DOC_MAX_VALUES)
		return bad(c, start, "more than 16 million values");
	if (take(c, 1, &first))
		return NULL;
	type = (unsigned)first;
	if (type < 0x80)
		return integer(c, type, false);
	if (type < 0x90)
		return map(c, type & 0x0f, depth, start);
	if (type < 0xa0)
		return array(c, type & 0x0f, depth, start);
	if (type < 0xc0)
		return text(c, type & 0x1f, start);
	if (type < 0xe0)
		return long_form(c, type, depth, start);
	return integer(c, (uint64_t)(int8_t)type, true);
}

enum hps_status hps_doc_parse_msgpack(const void *data, size_t len, json_t **out,
				      struct hps_err *err)
{
	struct cursor c = { .p = data, .len = len, .err = err };
	json_t *j = value(&c, 0);

	if (!j)
		return c.st;
	if (c.pos < len) {
		json_decref(j);
		bad(&c, c.pos, "%zu bytes of garbage after the document", len - c.pos);
		return c.st;
	}
	*out = j;
	return HPS_OK;
}
