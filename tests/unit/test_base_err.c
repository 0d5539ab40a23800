/* Errors: filled in parts, cut where they do not fit, printed without control characters. */
#include "cm.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/utf8.h"
#include "child.h"

static void test_parts(void **state)
{
	struct hps_err err = { 0 };

	assert_int_equal(hps_err_set(&err, HPS_BAD_INPUT, "expected %s", "units"), HPS_BAD_INPUT);
	assert_int_equal(err.status, HPS_BAD_INPUT);
	assert_string_equal(err.msg, "expected units");
	hps_err_at(&err, "layers[%d]", 3);
	hps_err_at(&err, "model.json");
	assert_string_equal(err.where, "model.json: layers[3]");
	hps_err_hint(&err, "try %d", 1);
	assert_string_equal(err.hint, "try 1");

	/* A new message clears the place and hint of the old one, */
	hps_err_set(&err, HPS_IO, "again");
	assert_string_equal(err.where, "");
	assert_string_equal(err.hint, "");
	/* and arguments may point into the error itself. */
	hps_err_set(&err, HPS_IO, "while %s", err.msg);
	assert_string_equal(err.msg, "while again");
	hps_err_at(&err, "a");
	hps_err_at(&err, "%s", err.where);
	assert_string_equal(err.where, "a: a");
}

static void test_null(void **state)
{
	assert_int_equal(hps_err_set(NULL, HPS_NET, "x"), HPS_NET);
	errno = ENOENT;
	assert_int_equal(hps_err_errno(NULL, HPS_IO, "x"), HPS_IO);
	assert_int_equal(errno, ENOENT);
	hps_err_at(NULL, "x");
	hps_err_hint(NULL, "x");
	assert_int_equal(hps_err_print("hps", NULL), HPS_OK);
}

static void test_errno(void **state)
{
	struct hps_err err = { 0 };
	char longest[1000];

	errno = ENOENT;
	assert_int_equal(hps_err_errno(&err, HPS_IO, "cannot open %s", "x"), HPS_IO);
	assert_string_equal(err.msg, "cannot open x: No such file or directory");
	assert_int_equal(errno, ENOENT);

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	hps_err_errno(&err, HPS_IO, "%s", longest);
	assert_non_null(strstr(err.msg, ": No such file or directory"));
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
}

static void test_cut(void **state)
{
	struct hps_err err = { 0 };

	hps_err_set(&err, HPS_IO, "%2000s", "x");
	hps_err_at(&err, "%2000s", "y");
	hps_err_at(&err, "file");
	hps_err_hint(&err, "%2000s", "z");
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	assert_int_equal(strlen(err.where), sizeof(err.where) - 1);
	assert_memory_equal(err.where, "file: ", 6);
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
}

static int print(void *arg)
{
	return hps_err_print("hps-x", arg);
}

static void test_print(void **state)
{
	struct hps_err err = { 0 };
	struct child c;

	hps_err_set(&err, HPS_BAD_INPUT,
		    "got \"a\033[2J\x7f\n\xc2\x9b"
		    "1m\xff\xc3\xa4\"");
	hps_err_at(&err, "in\r");
	hps_err_hint(&err, "\tno");
	child_run(&c, print, &err);
	assert_int_equal(c.status, HPS_BAD_INPUT);
	assert_string_equal(c.out, "");
	assert_string_equal(c.err, "hps-x: in?: got \"a?[2J????1m?\xc3\xa4\"\nhint: ?no\n");

	hps_err_set(&err, HPS_MEMORY, "%s", "");
	child_run(&c, print, &err);
	assert_string_equal(c.err, "hps-x: memory\n");
}

static void test_names(void **state)
{
	for (int s = HPS_OK; s <= HPS_DEVICE; s++) {
		assert_string_not_equal(hps_status_name((enum hps_status)s), "unknown status");
		for (int t = HPS_OK; t < s; t++)
			assert_string_not_equal(hps_status_name((enum hps_status)s),
						hps_status_name((enum hps_status)t));
	}
	assert_non_null(hps_status_name((enum hps_status)1234));
}

static void test_utf8(void **state)
{
	static const struct {
		const char *s;
		size_t len, want;
	} cases[] = {
		{ "", 0, 0 },
		{ "a", 1, 1 },
		{ "\xc3\xa4", 2, 2 },
		{ "\xc3\xa4", 1, 0 },	  /* cut */
		{ "\xc3(", 2, 0 },	  /* no continuation */
		{ "\x80", 1, 0 },	  /* a lone continuation */
		{ "\xc0\xaf", 2, 0 },	  /* overlong "/" */
		{ "\xe0\x80\xaf", 3, 0 }, /* overlong */
		{ "\xe2\x82\xac", 3, 3 },
		{ "\xe2\x82\xac", 2, 0 },
		{ "\xed\xa0\x80", 3, 0 }, /* a surrogate */
		{ "\xf0\x9f\x98\x80", 4, 4 },
		{ "\xf0\x8f\xbf\xbf", 4, 0 }, /* overlong */
		{ "\xf4\x90\x80\x80", 4, 0 }, /* past U+10FFFF */
		{ "\xf5\x80\x80\x80", 4, 0 },
		{ "\xf0\x9f\x98", 3, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(hps_utf8_len(cases[i].s, cases[i].len), cases[i].want);
	assert_int_equal(hps_utf8_check("a\xc3\xa4\xe2\x82\xac", 6), 6);
	assert_int_equal(hps_utf8_check("a\xc3\xa4\xe2\x82", 5), 3);
	assert_int_equal(hps_utf8_check("\0\xff", 2), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts), cmocka_unit_test(test_null),
		cmocka_unit_test(test_errno), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_print), cmocka_unit_test(test_names),
		cmocka_unit_test(test_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
