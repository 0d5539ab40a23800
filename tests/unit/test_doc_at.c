/* Values with their place: what is taken, and what is said of the rest. */
#include "cm.h"
#include <float.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "doc/doc.h"
#include "child.h"

static const char text[] =
	"{ \"name\": \"ctrdnn\", \"count\": 3, \"whole\": 3.0, \"digits\": \"18446744073709551615\",\n"
	"  \"negative\": \"-9007199254740993\", \"half\": 2.5, \"yes\": true, \"nothing\": null,\n"
	"  \"layers\": [ {}, { \"units\": \"abc\", \"op\": \"dnese\", \"unitz\": 1 }, [ [ 1e30 ] ] ],\n"
	"  \"a b\": 1, \"long\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa4\xc3\xa4"
	"aaaaaaaaaaaaaaaaaaa\", \"control\": \"\\u001b[2J\\u009b\" }";

static struct hps_doc *doc;
static struct hps_at root;

static int set_up(void **state)
{
	struct hps_err err = { 0 };

	assert_int_equal(hps_doc_parse(text, sizeof(text) - 1, "model.json", &doc, &err), HPS_OK);
	root = hps_at_root(doc, "model.json");
	return 0;
}

static int tear_down(void **state)
{
	hps_doc_free(doc);
	return 0;
}

static void told(const struct hps_err *err, const char *where, const char *msg)
{
	assert_int_equal(err->status, HPS_BAD_INPUT);
	assert_string_equal(err->where, where);
	assert_string_equal(err->msg, msg);
}

static void test_places(void **state)
{
	struct hps_err err = { 0 };
	struct hps_at layers = hps_at_member(&root, "layers");
	struct hps_at layer = hps_at_item(&layers, 1), units = hps_at_member(&layer, "units");
	struct hps_at odd = hps_at_item(&layers, 2), inner = hps_at_item(&odd, 0);
	struct hps_at far = hps_at_item(&layers, 7), name = hps_at_member(&root, "a b");
	struct hps_at below = hps_at_member(&far, "x");
	int64_t v = 77;

	assert_int_equal(hps_at_int(&units, 1, INT64_MAX, &v, &err), HPS_BAD_INPUT);
	told(&err, "model.json: layers[1].units", "expected an integer > 0, got \"abc\"");
	hps_at_object(&inner, &err);
	told(&err, "model.json: layers[2][0]", "expected an object, got an array");
	hps_at_array(&layer, &err);
	told(&err, "model.json: layers[1]", "expected an array, got an object");
	hps_at_error(&name, &err, "cycle through %s", "fc1");
	told(&err, "model.json: [\"a b\"]", "cycle through fc1");
	hps_at_error(&root, &err, "too small");
	told(&err, "model.json", "too small");
	assert_int_equal(hps_at_int(&below, 1, 2, &v, &err), HPS_BAD_INPUT);
	told(&err, "model.json: layers[7].x", "missing: expected an integer from 1 to 2");
	assert_int_equal(v, 77);

	struct hps_at nameless = hps_at_root(doc, NULL), dash = hps_at_root(doc, "-");
	hps_at_error(&nameless, &err, "x");
	assert_string_equal(err.where, "standard input");
	hps_at_error(&dash, &err, "x");
	assert_string_equal(err.where, "standard input");
	assert_int_equal(hps_at_error(&root, NULL, "no one listens"), HPS_BAD_INPUT);

	/* A name as long as a page is cut, in whole characters; the file's name stays. */
	char longest[1001] = "";
	for (int i = 0; i < 500; i++)
		strcat(longest, "\xc3\xa4");
	struct hps_at cut = hps_at_member(&root, longest);
	hps_at_error(&cut, &err, "x");
	assert_true(strlen(err.where) < 100);
	assert_memory_equal(err.where, "model.json: [\"\xc3\xa4", 16);
	assert_non_null(strstr(err.where, "\xa4...\"]"));
}

static void test_count_and_names(void **state)
{
	struct hps_at layers = hps_at_member(&root, "layers"), name = hps_at_member(&root, "name");
	struct hps_at nothing = hps_at_member(&root, "nothing"),
		      none = hps_at_member(&root, "none");

	assert_int_equal(hps_at_count(&root), 12);
	assert_int_equal(hps_at_count(&layers), 3);
	assert_int_equal(hps_at_count(&name), 0);
	assert_int_equal(hps_at_count(&none), 0);
	assert_string_equal(hps_at_name(&root, 0), "name");
	assert_string_equal(hps_at_name(&root, 11), "control");
	assert_null(hps_at_name(&root, 12));
	assert_null(hps_at_name(&layers, 0));
	assert_true(hps_at_absent(&nothing));
	assert_true(hps_at_absent(&none));
	assert_false(hps_at_absent(&name));
}

static void test_int(void **state)
{
	static const struct {
		const char *key;
		int64_t min, max, want; /* want 77: refused */
		const char *msg;
	} cases[] = {
		{ "count", 1, 3, 3, NULL },
		{ "whole", 3, INT64_MAX, 3, NULL },
		{ "negative", INT64_MIN, INT64_MAX, INT64_C(-9007199254740993), NULL },
		{ "count", 4, 9, 77, "expected an integer from 4 to 9, got 3" },
		{ "half", 0, HPS_DOC_INT_MAX, 77, "expected an integer >= 0, got 2.5" },
		{ "digits", INT64_MIN, INT64_MAX, 77,
		  "expected an integer, got \"18446744073709551615\"" },
		{ "yes", INT64_MIN, -5, 77, "expected an integer <= -5, got true" },
		{ "nothing", 1, INT64_MAX, 77, "expected an integer > 0, got null" },
		{ "none", 1, INT64_MAX, 77, "missing: expected an integer > 0" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct hps_at at = hps_at_member(&root, cases[i].key);
		struct hps_err err = { 0 };
		int64_t v = 77;

		assert_int_equal(hps_at_int(&at, cases[i].min, cases[i].max, &v, &err),
				 cases[i].msg ? HPS_BAD_INPUT : HPS_OK);
		assert_true(v == cases[i].want);
		if (cases[i].msg)
			assert_string_equal(err.msg, cases[i].msg);
	}
	struct hps_at layers = hps_at_member(&root, "layers"), a = hps_at_item(&layers, 2);
	struct hps_at b = hps_at_item(&a, 0), huge = hps_at_item(&b, 0);
	struct hps_err err = { 0 };
	int64_t v;
	assert_int_equal(hps_at_int(&huge, 0, INT64_MAX, &v, &err), HPS_BAD_INPUT);
	told(&err, "model.json: layers[2][0][0]", "expected an integer >= 0, got 1e+30");
}

static void test_u64(void **state)
{
	struct hps_at digits = hps_at_member(&root, "digits"),
		      count = hps_at_member(&root, "count");
	struct hps_at negative = hps_at_member(&root, "negative");
	struct hps_at name = hps_at_member(&root, "name");
	struct hps_err err = { 0 };
	uint64_t v = 77;

	assert_int_equal(hps_at_u64(&digits, 0, UINT64_MAX, &v, &err), HPS_OK);
	assert_true(v == UINT64_MAX);
	assert_int_equal(hps_at_u64(&count, 0, 3, &v, &err), HPS_OK);
	assert_int_equal(v, 3);
	v = 77;
	assert_int_equal(hps_at_u64(&negative, 0, UINT64_MAX, &v, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "expected an integer >= 0, got \"-9007199254740993\"");
	assert_int_equal(hps_at_u64(&count, 4, UINT64_MAX, &v, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "expected an integer >= 4, got 3");
	assert_int_equal(hps_at_u64(&count, 1, 2, &v, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "expected an integer from 1 to 2, got 3");
	assert_int_equal(hps_at_u64(&name, 1, UINT64_MAX, &v, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "expected an integer > 0, got \"ctrdnn\"");
	assert_int_equal(v, 77);
}

static void test_double(void **state)
{
	static const struct {
		const char *key;
		double min, max, want;
		const char *msg;
	} cases[] = {
		{ "half", 0, 10, 2.5, NULL },
		{ "count", -DBL_MAX, DBL_MAX, 3, NULL },
		{ "digits", 0, DBL_MAX, 18446744073709551615.0, NULL }, /* an integer after all */
		{ "half", 3, 4, 77, "expected a number from 3 to 4, got 2.5" },
		{ "half", 3, DBL_MAX, 77, "expected a number >= 3, got 2.5" },
		{ "half", -DBL_MAX, 2, 77, "expected a number <= 2, got 2.5" },
		{ "name", DBL_MIN, DBL_MAX, 77, "expected a number > 0, got \"ctrdnn\"" },
		{ "name", DBL_MIN, 1, 77, "expected a number > 0 and <= 1, got \"ctrdnn\"" },
		{ "yes", -DBL_MAX, DBL_MAX, 77, "expected a number, got true" },
		{ "none", -DBL_MAX, DBL_MAX, 77, "missing: expected a number" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct hps_at at = hps_at_member(&root, cases[i].key);
		struct hps_err err = { 0 };
		double v = 77;

		assert_int_equal(hps_at_double(&at, cases[i].min, cases[i].max, &v, &err),
				 cases[i].msg ? HPS_BAD_INPUT : HPS_OK);
		assert_true(v == cases[i].want);
		if (cases[i].msg)
			assert_string_equal(err.msg, cases[i].msg);
	}
}

static void test_others(void **state)
{
	struct hps_at yes = hps_at_member(&root, "yes"), name = hps_at_member(&root, "name");
	struct hps_at count = hps_at_member(&root, "count"), lng = hps_at_member(&root, "long");
	struct hps_at control = hps_at_member(&root, "control");
	struct hps_err err = { 0 };
	const char *s = NULL;
	bool b = false;

	assert_int_equal(hps_at_bool(&yes, &b, &err), HPS_OK);
	assert_true(b);
	assert_int_equal(hps_at_bool(&count, &b, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "expected true or false, got 3");
	assert_int_equal(hps_at_string(&name, &s, &err), HPS_OK);
	assert_string_equal(s, "ctrdnn");
	assert_int_equal(hps_at_string(&count, &s, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, "expected a string, got 3");

	/* Long values are cut in whole characters, control characters escaped. */
	hps_at_array(&lng, &err);
	assert_string_equal(err.msg,
			    "expected an array, got \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			    "aaaaaaaaaaaaaa...\"");
	hps_at_array(&control, &err);
	assert_string_equal(err.msg, "expected an array, got \"\\u001b[2J\xc2\x9b\"");
}

static void test_choice(void **state)
{
	static const char *const ops[] = { "embedding", "concat", "dense" };
	struct hps_at layers = hps_at_member(&root, "layers"), layer = hps_at_item(&layers, 1);
	struct hps_at op = hps_at_member(&layer, "op"), units = hps_at_member(&layer, "units");
	struct hps_at none = hps_at_member(&layer, "none");
	struct hps_err err = { 0 };
	int v = 77;

	assert_int_equal(hps_at_choice(&op, ops, 3, &v, &err), HPS_BAD_INPUT);
	told(&err, "model.json: layers[1].op",
	     "expected \"embedding\", \"concat\" or \"dense\", got \"dnese\"");
	assert_string_equal(err.hint, "did you mean \"dense\"?");
	assert_int_equal(hps_at_choice(&units, ops, 3, &v, &err), HPS_BAD_INPUT);
	assert_string_equal(err.hint, "");
	assert_int_equal(hps_at_choice(&none, ops, 3, &v, &err), HPS_BAD_INPUT);
	assert_int_equal(v, 77);
	static const char *const known[] = { "abc", "x" };
	assert_int_equal(hps_at_choice(&units, known, 2, &v, &err), HPS_OK);
	assert_int_equal(v, 0);
}

static void test_only(void **state)
{
	static const char *const all[] = { "units", "op", "unitz", NULL };
	static const char *const some[] = { "units", "op", NULL };
	static const char *const others[] = { "name", "activation", NULL };
	struct hps_at layers = hps_at_member(&root, "layers"), layer = hps_at_item(&layers, 1);
	struct hps_at empty = hps_at_item(&layers, 0);
	struct hps_err err = { 0 };

	assert_int_equal(hps_at_only(&layer, all, &err), HPS_OK);
	assert_int_equal(hps_at_only(&empty, some, &err), HPS_OK);
	assert_int_equal(hps_at_only(&layer, some, &err), HPS_BAD_INPUT);
	told(&err, "model.json: layers[1].unitz", "unknown member");
	assert_string_equal(err.hint, "did you mean \"units\"?");
	assert_int_equal(hps_at_only(&layer, others, &err), HPS_BAD_INPUT);
	told(&err, "model.json: layers[1].units", "unknown member");
	assert_string_equal(err.hint, "known here: \"name\" and \"activation\"");
	assert_int_equal(hps_at_only(&layers, some, &err), HPS_BAD_INPUT);
	told(&err, "model.json: layers", "expected an object, got an array");
}

static void test_read_file(void **state)
{
	char dir[128], path[160];
	struct hps_doc *d = NULL;
	struct hps_err err = { 0 };

	scratch_make(dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/job.json", dir);
	assert_int_equal(hps_doc_read(path, &d, &err), HPS_IO);
	assert_string_equal(err.where, path);
	assert_int_equal(hps_file_write(path, text, sizeof(text) - 1, 0644, &err), HPS_OK);
	assert_int_equal(hps_doc_read(path, &d, &err), HPS_OK);
	assert_true(hps_doc_equal(d, doc));
	hps_doc_free(d);
	assert_int_equal(hps_file_write(path, "", 0, 0644, &err), HPS_OK);
	assert_int_equal(hps_doc_read(path, &d, &err), HPS_BAD_INPUT);
	told(&err, path, "no input: expected a document, JSON or msgpack");
	assert_string_equal(err.hint, "");
	scratch_remove(dir);
}

static int empty_pipe(void *arg)
{
	struct hps_doc *d;
	struct hps_err err = { 0 };
	int fds[2];

	if (pipe(fds))
		return 99;
	close(fds[1]);
	dup2(fds[0], STDIN_FILENO);
	return hps_doc_read(arg, &d, &err) == HPS_OK ? 98 : hps_err_print("hps-x", &err);
}

/* Written in each form to standard output; the parent reads it back. */
static int write_form(void *arg)
{
	struct hps_err err = { 0 };

	return hps_doc_write(doc, *(enum hps_form *)arg, &err);
}

static void test_pipes(void **state)
{
	struct hps_buf json = HPS_BUF_INIT;
	struct child c;

	child_run(&c, empty_pipe, NULL);
	assert_int_equal(c.status, HPS_BAD_INPUT);
	assert_string_equal(
		c.err, "hps-x: standard input: no input: expected a document, JSON or msgpack\n"
		       "hint: did the command before it in the pipe fail?\n");
	assert_int_equal(hps_doc_to_json(doc, &json, NULL), HPS_OK);
	child_run(&c, write_form, &(enum hps_form){ HPS_FORM_JSON });
	assert_string_equal(c.out, json.data);
	child_run(&c, write_form, &(enum hps_form){ HPS_FORM_MSGPACK });
	assert_int_equal((unsigned char)c.out[0], 0x8c); /* a map of 12 */
	hps_buf_release(&json);
}

#define WITH_DOC(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DOC(test_places),	  WITH_DOC(test_count_and_names),
		WITH_DOC(test_int),	  WITH_DOC(test_u64),
		WITH_DOC(test_double),	  WITH_DOC(test_others),
		WITH_DOC(test_choice),	  WITH_DOC(test_only),
		WITH_DOC(test_read_file), WITH_DOC(test_pipes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
