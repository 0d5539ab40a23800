/* Documents in both forms: what is written reads back equal, what is wrong is told with its
 * place, what is too much is refused before it is allocated. */
#include "cm.h"
#include <jansson.h>
#include <math.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/rng.h"
#include "doc/doc.h"

/* --- random trees --- */

static void random_text(struct hps_rng *r, char *out, size_t size)
{
	static const char *const piece[] = { "a",
					     "units",
					     " ",
					     "\"",
					     "\\",
					     "\n",
					     "\x01",
					     "\x7f",
					     "\t",
					     "/",
					     "\xc3\xa4",
					     "\xe2\x82\xac",
					     "0",
					     "{",
					     "\r",
					     ":,",
					     "\xf0\x9f\x98\x80" };
	size_t n = hps_rng_below(r, 12);

	*out = '\0';
	while (n-- && strlen(out) + 8 < size)
		strcat(out, piece[hps_rng_below(r, sizeof(piece) / sizeof(*piece))]);
}

static double random_double(struct hps_rng *r)
{
	union {
		uint64_t bits;
		double v;
	} u = { hps_rng_u64(r) };

	switch (hps_rng_below(r, 4)) {
	case 0:
		return isfinite(u.v) ? u.v : 0.1; /* any magnitude, subnormals too */
	case 1:
		return (double)(int64_t)hps_rng_below(r, 1000) / 10;
	case 2:
		return (double)hps_rng_below(r, 1 << 20);
	default:
		return hps_rng_normal(r);
	}
}

static struct hps_doc *random_tree(struct hps_rng *r, int depth)
{
	char text[128], key[160];
	struct hps_doc *d;
	size_t n;

	switch (hps_rng_below(r, depth > 0 ? 10 : 8)) {
	case 0:
		return hps_doc_null();
	case 1:
		return hps_doc_bool(hps_rng_u64(r) & 1);
	case 2:
		return hps_doc_int((int64_t)hps_rng_below(r, 300) - 150);
	case 3:
		return hps_doc_int((int64_t)(hps_rng_u64(r) >> hps_rng_below(r, 64)) *
				   (hps_rng_u64(r) & 1 ? 1 : -1));
	case 4:
		return hps_doc_u64(hps_rng_u64(r) >> hps_rng_below(r, 64));
	case 5:
	case 6:
		return hps_doc_double(random_double(r));
	case 7:
		random_text(r, text, sizeof(text));
		return hps_doc_string(text);
	case 8:
		d = hps_doc_array();
		n = hps_rng_below(r, hps_rng_below(r, 20) ? 6 : 40);
		while (n--)
			assert_int_equal(hps_doc_add(d, random_tree(r, depth - 1)), 0);
		return d;
	default:
		d = hps_doc_object();
		n = hps_rng_below(r, 6);
		while (n--) {
			random_text(r, text, sizeof(text));
			snprintf(key, sizeof(key), "%zu%s", n, text);
			assert_int_equal(hps_doc_put(d, key, random_tree(r, depth - 1)), 0);
		}
		return d;
	}
}

typedef enum hps_status write_fn(const struct hps_doc *, struct hps_buf *, struct hps_err *);

/* Written, read and written again: equal trees, equal bytes (so the order is kept too). */
static struct hps_doc *round_trip(const struct hps_doc *d, write_fn *write, struct hps_buf *b)
{
	struct hps_buf again = HPS_BUF_INIT;
	struct hps_doc *back = NULL;
	struct hps_err err = { 0 };

	assert_int_equal(write(d, b, &err), HPS_OK);
	if (hps_doc_parse(b->data, b->len, "t", &back, &err) != HPS_OK)
		fail_msg("%s: %s in %s", err.where, err.msg, b->data);
	if (!hps_doc_equal(d, back))
		fail_msg("not equal: %s", b->data);
	assert_int_equal(write(back, &again, &err), HPS_OK);
	assert_int_equal(again.len, b->len);
	assert_memory_equal(again.data, b->data, b->len);
	hps_buf_release(&again);
	return back;
}

/* msgpack-c reads what we wrote and writes the same bytes. */
static void check_with_msgpack_c(const struct hps_buf *b)
{
	msgpack_unpacked u;
	msgpack_sbuffer s;
	msgpack_packer pk;
	size_t off = 0;

	msgpack_unpacked_init(&u);
	assert_int_equal(msgpack_unpack_next(&u, b->data, b->len, &off), MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(off, b->len);
	msgpack_sbuffer_init(&s);
	msgpack_packer_init(&pk, &s, msgpack_sbuffer_write);
	assert_int_equal(msgpack_pack_object(&pk, u.data), 0);
	assert_int_equal(s.size, b->len);
	assert_memory_equal(s.data, b->data, b->len);
	msgpack_sbuffer_destroy(&s);
	msgpack_unpacked_destroy(&u);
}

static void test_random_trees(void **state)
{
	struct hps_rng r;

	hps_rng_init(&r, 20, 1);
	for (int i = 0; i < 1500; i++) {
		struct hps_buf json = HPS_BUF_INIT, line = HPS_BUF_INIT, packed = HPS_BUF_INIT;
		struct hps_buf cross = HPS_BUF_INIT;
		struct hps_doc *d = hps_doc_object(), *a, *b, *c;

		assert_int_equal(hps_doc_put(d, "root", random_tree(&r, i % 9)), 0);
		a = round_trip(d, hps_doc_to_json, &json);
		b = round_trip(d, hps_doc_to_json_line, &line);
		c = round_trip(d, hps_doc_to_msgpack, &packed);
		check_with_msgpack_c(&packed);
		assert_null(memchr(line.data, '\n', line.len - 1));
		/* From msgpack to JSON gives the bytes that JSON gave. */
		assert_int_equal(hps_doc_to_json(c, &cross, NULL), HPS_OK);
		assert_string_equal(cross.data, json.data);
		hps_doc_free(a);
		hps_doc_free(b);
		hps_doc_free(c);
		hps_doc_free(d);
		hps_buf_release(&json);
		hps_buf_release(&line);
		hps_buf_release(&packed);
		hps_buf_release(&cross);
	}
}

/* --- how it looks --- */

static struct hps_doc *parse(const char *text)
{
	struct hps_doc *d = NULL;
	struct hps_err err = { 0 };

	if (hps_doc_parse(text, strlen(text), "t", &d, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
	return d;
}

static void test_layout(void **state)
{
	static const char want[] =
		"{\n"
		"  \"name\": \"ctrdnn\",\n"
		"  \"link\": { \"bandwidth\": 1250000000.0, \"latency\": 5e-05 },\n"
		"  \"none\": {},\n"
		"  \"empty\": [],\n"
		"  \"layers\": [\n"
		"    { \"name\": \"fc1\", \"op\": \"dense\", \"inputs\": [\"a\", \"b\"], \"units\": 400 },\n"
		"    {\n"
		"      \"name\": \"a name that is long enough\",\n"
		"      \"description\": \"that this layer does not fit in one line of the text\",\n"
		"      \"bias\": true\n"
		"    }\n"
		"  ],\n"
		"  \"seconds\": [\n"
		"    0.1, 0.2, 0.30000000000000004, 1e-300, 123456.789, 3.0, -0.0, 100, 1e+22, 0.1, 0.2, 0.3,\n"
		"    0.4, 0.5, 0.6, 0.7, 0.8, 0.9\n"
		"  ],\n"
		"  \"big\": \"18446744073709551615\"\n"
		"}\n";
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_doc *d = parse(want);

	assert_int_equal(hps_doc_to_json(d, &b, NULL), HPS_OK);
	assert_string_equal(b.data, want);
	b.len = 0;
	hps_doc_free(d);
	d = parse("{ \"a\" : [ 1, 2.50, {} ] ,\"b\":null, \"c\": \"\\u007f\\u0001\\u00e4/\" }");
	assert_int_equal(hps_doc_to_json_line(d, &b, NULL), HPS_OK);
	assert_string_equal(b.data,
			    "{\"a\":[1,2.5,{}],\"b\":null,\"c\":\"\\u007f\\u0001\xc3\xa4/\"}\n");
	hps_doc_free(d);
	hps_buf_release(&b);
}

static void test_integers(void **state)
{
	struct hps_doc *d = parse("[9007199254740992, 9007199254740993, -9007199254740993, "
				  "9223372036854775807, [12345678901234567]]");
	struct hps_doc *want = hps_doc_array(), *inner = hps_doc_array();
	struct hps_buf b = HPS_BUF_INIT;

	hps_doc_add(want, hps_doc_int(INT64_C(9007199254740992)));
	hps_doc_add(want, hps_doc_string("9007199254740993"));
	hps_doc_add(want, hps_doc_int(INT64_C(-9007199254740993)));
	hps_doc_add(want, hps_doc_u64(INT64_MAX));
	hps_doc_add(inner, hps_doc_string("12345678901234567"));
	hps_doc_add(want, inner);
	assert_true(hps_doc_equal(d, want));
	assert_int_equal(hps_doc_to_json_line(d, &b, NULL), HPS_OK);
	assert_string_equal(b.data, "[9007199254740992,\"9007199254740993\",\"-9007199254740993\","
				    "\"9223372036854775807\",[\"12345678901234567\"]]\n");
	hps_buf_release(&b);
	hps_doc_free(d);
	hps_doc_free(want);
}

/* Every integer form of msgpack at its limits. */
/* A real that is no double, but an integer: as exact as if the point were not there. */
static void test_long_reals(void **state)
{
	struct hps_doc *d =
		parse("{\"a 1\\\"2.5\": [9007199254740993.0, -9007199254740993.00, true, "
		      "9007199254740994.0, 1e300], \"b\": {\"3\": "
		      "123456789012345678901234567890.0, \"c\": -0.0}, "
		      "\"d\": 9007199254740992.0, \"e\": 0.5, \"f\": 9007199254740993}");
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_at root = hps_at_root(d, "t"), at = hps_at_member(&root, "a 1\"2.5");
	struct hps_at item = hps_at_item(&at, 0);
	struct hps_err err = { 0 };
	uint64_t u;

	assert_int_equal(hps_doc_to_json_line(d, &b, &err), HPS_OK);
	assert_string_equal(b.data,
			    "{\"a 1\\\"2.5\":[\"9007199254740993\",\"-9007199254740993\",true,"
			    "9007199254740994.0,1e+300],\"b\":{\"3\":"
			    "\"123456789012345678901234567890\",\"c\":-0.0},"
			    "\"d\":9007199254740992.0,\"e\":0.5,\"f\":\"9007199254740993\"}\n");
	assert_int_equal(hps_at_u64(&item, 0, UINT64_MAX, &u, &err), HPS_OK);
	assert_int_equal(u, UINT64_C(9007199254740993));
	assert_int_equal(hps_at_double(&item, 0, 1, &(double){ 0 }, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "expected a number from 0 to 1, got \"9007199254740993\"");
	hps_buf_release(&b);
	hps_doc_free(d);
}

static void test_msgpack_integers(void **state)
{
	static const unsigned char bytes[] = {
		0x9f, 0x00, 0x7f, 0xe0, 0xff, 0xcc, 0xff, 0xcd, 0xff, 0xff, 0xce, 0xff,
		0xff, 0xff, 0xff, 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xd0, 0x80, 0xd1, 0x80, 0x00, 0xd2, 0x80, 0x00, 0x00, 0x00, 0xd3, 0x80,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xca, 0x3f, 0x80, 0x00, 0x00,
		0xcb, 0x3f, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a, 0xc0,
	};
	struct hps_doc *d = NULL;
	struct hps_err err = { 0 };
	struct hps_buf b = HPS_BUF_INIT;

	assert_int_equal(hps_doc_parse(bytes, sizeof(bytes), "t", &d, &err), HPS_OK);
	assert_int_equal(hps_doc_to_json_line(d, &b, NULL), HPS_OK);
	assert_string_equal(b.data,
			    "[0,127,-32,-1,255,65535,4294967295,\"18446744073709551615\",-128,"
			    "-32768,-2147483648,\"-9223372036854775808\",1.0,0.1,null]\n");
	hps_buf_release(&b);
	hps_doc_free(d);
}

/* --- what is refused --- */

static void refuse(const void *data, size_t len, const char *where, const char *msg)
{
	struct hps_doc *d = NULL;
	struct hps_err err = { 0 };
	char *exact = malloc(len ? len : 1); /* so that the sanitizer sees a read past the end */

	assert_non_null(exact);
	memcpy(exact, data, len);
	assert_int_equal(hps_doc_parse(exact, len, "in", &d, &err), HPS_BAD_INPUT);
	free(exact);
	assert_int_equal(err.status, HPS_BAD_INPUT);
	assert_null(d);
	assert_string_equal(err.where, where);
	if (!strstr(err.msg, msg))
		fail_msg("\"%s\" is not in \"%s\"", msg, err.msg);
}

static void test_bad_json(void **state)
{
	static const struct {
		const char *text, *where, *msg;
	} cases[] = {
		{ "", "in", "no input" },
		{ " \n\t\r", "in", "no input" },
		{ "{", "in: line 1, column 1", "not valid JSON" },
		{ "{\"a\": 1,\n \"b\" 2}", "in: line 2, column 6", "':' expected near '2'" },
		{ "{\"a\": 1, \"a\": 2}", "in: line 1, column 12", "duplicate object key" },
		{ "[1, 2] 3", "in: line 1, column 8", "end of file expected" },
		{ "[1, 2,]", "in: line 1, column 7", "unexpected token near ']'" },
		{ "hello", "in: line 1, column 5", "'[' or '{' expected" },
		{ "3", "in: line 1, column 1", "'[' or '{' expected" },
		{ "[NaN]", "in: line 1, column 4", "invalid token" },
		{ "[1e999]", "in: line 1, column 6", "real number overflow" },
		{ "[99999999999999999999]", "in: line 1, column 21", "too big integer" },
		{ "[\"\xff\"]", "in: line 1, column 2", "unable to decode byte 0xff" },
		{ "[\"\\u0000\"]", "in: line 1, column 9", "NUL" },
		{ "[\"\\ud800\"]", "in: line 1, column 9", "invalid Unicode" },
		{ "[\"a\nb\"]", "in: line 1, column 3", "unexpected newline" },
		{ "\x1f\x8b\x08", "in", "neither JSON nor msgpack: begins with byte 0x1f" },
		{ "\xef\xbb\xbf{}", "in", "neither JSON nor msgpack: begins with byte 0xef" },
		{ " \x81\xa1\x61\x01", "in", "neither JSON nor msgpack" },
		{ "\x7f", "in", "neither JSON nor msgpack" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		refuse(cases[i].text, strlen(cases[i].text), cases[i].where, cases[i].msg);
	refuse("\0{}", 3, "in", "neither JSON nor msgpack: begins with byte 0x00");
	refuse("[1]\0", 4, "in: line 1, column 4", "not valid JSON");
}

static void test_bad_msgpack(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *where, *msg;
	} cases[] = {
		{ "\x91", 1, "in: byte 0", "1 items where 0 bytes are left" },
		{ "\x92\x01\xcd\x01", 4, "in: byte 4", "ends in the middle" },
		{ "\x81\xa1\x61", 3, "in: byte 3", "ends in the middle" },
		{ "\xdd\xff\xff\xff\xff", 5, "in: byte 0", "4294967295 items" },
		{ "\xdf\xff\xff\xff\xff", 5, "in: byte 0", "4294967295 items" },
		{ "\xdf\x00\x00\x00\x02\xa1\x61\x01", 8, "in: byte 0", "2 items where 3 bytes" },
		{ "\xdc\x00", 2, "in: byte 2", "ends in the middle" },
		{ "\x91\xdb\xff\xff\xff\xff", 6, "in: byte 1", "a string longer than 1 MiB" },
		{ "\x91\xd9\x05\x61\x61", 5, "in: byte 1", "a string of 5 bytes where 2 are left" },
		{ "\x91\xa2\x61\xff", 4, "in: byte 3", "not UTF-8" },
		{ "\x91\xa2\x61\x00", 4, "in: byte 1", "NUL byte" },
		{ "\x81\x01\x02", 3, "in: byte 1", "name that is not a string" },
		{ "\x82\xa1\x61\x01\xa1\x61\x02", 7, "in: byte 4", "duplicate member \"a\"" },
		{ "\x91\xc4\x01\x00", 4, "in: byte 1", "binary data" },
		{ "\x91\xc7\x01\x00\x00", 5, "in: byte 1", "extension type" },
		{ "\x91\xd4\x00\x00", 4, "in: byte 1", "extension type" },
		{ "\x91\xc1", 2, "in: byte 1", "0xc1" },
		{ "\x91\xca\x7f\xc0\x00\x00", 6, "in: byte 1", "NaN" },
		{ "\x91\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", 10, "in: byte 1", "infinity" },
		{ "\x90\x90", 2, "in: byte 1", "1 bytes of garbage" },
		{ "\x90\n", 2, "in: byte 1", "1 bytes of garbage" },
		{ "\xa1\x61", 2, "in", "neither JSON nor msgpack" },
		{ "\xc0", 1, "in", "neither JSON nor msgpack" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		refuse(cases[i].bytes, cases[i].len, cases[i].where, cases[i].msg);
}

/* Every prefix of a good document is refused, in either form, and reads nothing past it. */
static void test_truncated(void **state)
{
	struct hps_doc *d = parse("{\"a\": [1, 2.5, \"three\", null, true], \"b\": {\"c\": -70000, "
				  "\"d\": \"18446744073709551615\"}}");
	write_fn *const forms[] = { hps_doc_to_json, hps_doc_to_msgpack };

	for (int f = 0; f < 2; f++) {
		struct hps_buf b = HPS_BUF_INIT;

		assert_int_equal(forms[f](d, &b, NULL), HPS_OK);
		for (size_t n = 0; n + 1 + (f == 0) <= b.len; n++) { /* JSON ends in a newline */
			struct hps_doc *none = NULL;
			struct hps_err err = { 0 };
			char *exact = malloc(n ? n : 1);

			assert_non_null(exact);
			memcpy(exact, b.data, n);
			assert_int_equal(hps_doc_parse(exact, n, "in", &none, &err), HPS_BAD_INPUT);
			assert_non_null(strstr(err.where, "in"));
			free(exact);
		}
		hps_buf_release(&b);
	}
	hps_doc_free(d);
}

static char *nested(int depth, char open, char close)
{
	char *s = calloc(1, (size_t)depth * 2 + 1);

	assert_non_null(s);
	memset(s, open, (size_t)depth);
	memset(s + depth, close, (size_t)depth);
	return s;
}

static void test_depth(void **state)
{
	char *ok = nested(HPS_DOC_MAX_DEPTH, '[', ']'), *deep = nested(65, '[', ']');
	char *packed = nested(65, '\x91', '\x91');
	struct hps_doc *d, *outer;
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_err err = { 0 };

	refuse(deep, strlen(deep), "in: line 1, column 65", "nested deeper than 64 levels");
	refuse(packed, 65, "in: byte 64", "nested deeper than 64 levels");
	d = parse(ok);
	hps_doc_free(round_trip(d, hps_doc_to_json, &b));
	b.len = 0;
	hps_doc_free(round_trip(d, hps_doc_to_msgpack, &b));
	/* What could not be read again is not written. */
	outer = hps_doc_array();
	assert_int_equal(hps_doc_add(outer, d), 0);
	assert_int_equal(hps_doc_to_json(outer, &b, &err), HPS_BAD_INPUT);
	assert_int_equal(hps_doc_to_json_line(outer, &b, &err), HPS_BAD_INPUT);
	err = (struct hps_err){ 0 };
	assert_int_equal(hps_doc_to_msgpack(outer, &b, &err), HPS_BAD_INPUT);
	assert_non_null(strstr(err.msg, "nested deeper"));
	hps_doc_free(outer);
	hps_buf_release(&b);
	free(ok);
	free(deep);
	free(packed);
	/* A hundred thousand levels are no deeper than 65. */
	deep = nested(100000, '[', ']');
	refuse(deep, strlen(deep), "in: line 1, column 65", "nested deeper");
	free(deep);
	packed = nested(100000, '\x91', '\x91');
	refuse(packed, 200000, "in: byte 64", "nested deeper");
	free(packed);
}

static void test_sizes(void **state)
{
	const size_t most = HPS_DOC_MAX_STRING;
	char *s = malloc(most + 16);
	struct hps_doc *d = NULL;
	struct hps_err err = { 0 };

	assert_non_null(s);
	memset(s, 'x', most + 16);
	memcpy(s, "[\"", 2);
	memcpy(s + most, "\"]", 2);
	assert_int_equal(hps_doc_parse(s, most + 2, "t", &d, &err), HPS_OK);
	hps_doc_free(d);
	s[most] = s[most + 1] = 'x';
	memcpy(s + most + 8, "\"]", 2);
	refuse(s, most + 10, "in: line 1, column 1048579", "a string longer than 1 MiB");

	memcpy(s, "\x91\xdb\x00\x10\x00\x00", 6);
	memset(s + 6, 'x', most);
	d = NULL;
	assert_int_equal(hps_doc_parse(s, most + 6, "t", &d, &err), HPS_OK);
	hps_doc_free(d);
	s[5] = 1;
	refuse(s, most + 7, "in: byte 1", "a string longer than 1 MiB");
	free(s);
}

/* --- building --- */

static void test_build(void **state)
{
	struct hps_doc *d = hps_doc_object(), *copy;
	struct hps_buf b = HPS_BUF_INIT;

	assert_int_equal(hps_doc_put(d, "nan", hps_doc_double(NAN)), 0);
	assert_int_equal(hps_doc_put(d, "inf", hps_doc_double(-INFINITY)), 0);
	assert_int_equal(hps_doc_put(d, "host",
				     hps_doc_string("a\xff"
						    "b\xc3")),
			 0);
	assert_int_equal(hps_doc_put(d, "gone", hps_doc_int(1)), 0);
	assert_int_equal(hps_doc_put(d, "z", hps_doc_int(1)), 0);
	assert_int_equal(hps_doc_put(d, "host2", NULL), -1);
	assert_int_equal(hps_doc_put(d, "bad\xff", hps_doc_int(1)), -1);
	assert_int_equal(hps_doc_put(NULL, "x", hps_doc_int(1)), -1);
	assert_int_equal(hps_doc_add(d, hps_doc_int(1)), -1); /* not an array */
	assert_int_equal(hps_doc_remove(d, "gone"), 0);
	assert_int_equal(hps_doc_remove(d, "gone"), 0);
	assert_null(hps_doc_string(NULL));

	copy = hps_doc_copy(d);
	assert_true(hps_doc_equal(d, copy));
	/* A member that is replaced keeps its place; the copy is deep. */
	assert_int_equal(hps_doc_put(copy, "inf", hps_doc_string("new")), 0);
	assert_false(hps_doc_equal(d, copy));
	assert_int_equal(hps_doc_to_json_line(copy, &b, NULL), HPS_OK);
	assert_string_equal(b.data, "{\"nan\":null,\"inf\":\"new\",\"host\":\"a\xef\xbf\xbd"
				    "b\xef\xbf\xbd\",\"z\":1}\n");
	assert_true(hps_doc_equal(NULL, NULL));
	assert_false(hps_doc_equal(d, NULL));
	hps_doc_free(copy);
	hps_doc_free(d);
	hps_doc_free(NULL);
	hps_buf_release(&b);
}

/* --- no memory --- */

static void *counted_malloc(size_t n)
{
	return hps_calloc(1, n, NULL);
}

static enum hps_status all_forms(struct hps_err *err)
{
	static const char text[] = "{\"a\": [1, 2.5, \"three\", null, 12345678901234567], "
				   "\"b\": {\"c\": -7, \"a longer name\": []}}";
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_doc *d = NULL, *e = NULL;
	enum hps_status st = hps_doc_parse(text, sizeof(text) - 1, "t", &d, err);

	if (st == HPS_OK)
		st = hps_doc_to_msgpack(d, &b, err);
	if (st == HPS_OK)
		st = hps_doc_parse(b.data, b.len, "t", &e, err);
	if (st == HPS_OK)
		st = hps_doc_to_json(e, &b, err);
	hps_doc_free(d);
	hps_doc_free(e);
	hps_buf_release(&b);
	return st;
}

static void test_torture(void **state)
{
	enum { MOST = 400 }; /* more than are made; a failed try at one line is no failure */
	int failed = 0;

	json_set_alloc_funcs(counted_malloc, free);
	for (unsigned long n = 1; n <= MOST; n++) {
		struct hps_err err = { 0 };
		enum hps_status st;

		hps_mem_fail_at(n);
		st = all_forms(&err);
		hps_mem_fail_at(0);
		failed += st != HPS_OK;
		/* jansson's scanner tells a lack of memory as a syntax error. */
		if (st == HPS_BAD_INPUT && strstr(err.msg, "not valid JSON"))
			continue;
		if (st != HPS_OK && (st != HPS_MEMORY || err.status != HPS_MEMORY))
			fail_msg("allocation %lu: status %d: %s: %s", n, st, err.where, err.msg);
		if (n == MOST)
			assert_int_equal(st, HPS_OK);
	}
	json_set_alloc_funcs(malloc, free);
	assert_true(failed > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_trees), cmocka_unit_test(test_layout),
		cmocka_unit_test(test_integers),     cmocka_unit_test(test_msgpack_integers),
		cmocka_unit_test(test_bad_json),     cmocka_unit_test(test_bad_msgpack),
		cmocka_unit_test(test_long_reals),   cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_depth),	     cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_build),	     cmocka_unit_test(test_torture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
