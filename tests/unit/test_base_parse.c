/* Numbers on the command line: all of the text, within limits, or a message with both. */
#include "cm.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include "base/opt.h"

static void refuse_int(const char *s, int64_t min, int64_t max, const char *msg)
{
	struct hps_err err = { 0 };
	int64_t v = 77;

	assert_int_equal(hps_parse_int(s, min, max, &v, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, msg);
	assert_int_equal(v, 77);
}

static void test_int(void **state)
{
	struct hps_err err = { 0 };
	int64_t v;

	assert_int_equal(hps_parse_int("-42", -100, 100, &v, &err), HPS_OK);
	assert_int_equal(v, -42);
	assert_int_equal(hps_parse_int("9223372036854775807", 0, INT64_MAX, &v, &err), HPS_OK);
	assert_true(v == INT64_MAX);
	assert_int_equal(hps_parse_int("-9223372036854775808", INT64_MIN, 0, &v, &err), HPS_OK);
	assert_true(v == INT64_MIN);
	assert_int_equal(hps_parse_int("+5", 5, 5, &v, &err), HPS_OK);

	refuse_int("abc", 1, INT64_MAX, "expected an integer > 0, got \"abc\"");
	refuse_int("", 0, 9, "expected an integer from 0 to 9, got \"\"");
	refuse_int("5x", 0, INT64_MAX, "expected an integer >= 0, got \"5x\"");
	refuse_int(" 5", INT64_MIN, 9, "expected an integer <= 9, got \" 5\"");
	refuse_int("1.5", INT64_MIN, INT64_MAX, "expected an integer, got \"1.5\"");
	refuse_int("10", 0, 9, "expected an integer from 0 to 9, got \"10\"");
	refuse_int("9223372036854775808", 1, INT64_MAX,
		   "expected an integer > 0, got \"9223372036854775808\"");
	refuse_int("0x10", 0, 99, "expected an integer from 0 to 99, got \"0x10\"");
	refuse_int("1111111111111111111111111111111111111111111111111111111111112", 0, 9,
		   "expected an integer from 0 to 9, got "
		   "\"111111111111111111111111111111111111111111111111111111111111...\"");
}

static void refuse_double(const char *s, double min, double max, const char *msg)
{
	struct hps_err err = { 0 };
	double v = 77;

	assert_int_equal(hps_parse_double(s, min, max, &v, &err), HPS_BAD_INPUT);
	assert_string_equal(err.msg, msg);
	assert_true(v == 77);
}

static void test_double(void **state)
{
	struct hps_err err = { 0 };
	double v;

	assert_int_equal(hps_parse_double("2.5e3", 0, 1e4, &v, &err), HPS_OK);
	assert_true(v == 2500);
	assert_int_equal(hps_parse_double("-.5", -DBL_MAX, DBL_MAX, &v, &err), HPS_OK);
	assert_true(v == -0.5);

	refuse_double("nan", -DBL_MAX, DBL_MAX, "expected a number, got \"nan\"");
	refuse_double("inf", -DBL_MAX, DBL_MAX, "expected a number, got \"inf\"");
	refuse_double("1e999", 0, DBL_MAX, "expected a number >= 0, got \"1e999\"");
	refuse_double("", -DBL_MAX, DBL_MAX, "expected a number, got \"\"");
	refuse_double("1 ", -DBL_MAX, 5, "expected a number <= 5, got \"1 \"");
	refuse_double("0", DBL_MIN, DBL_MAX, "expected a number > 0, got \"0\"");
	refuse_double("1.5", 0, 1, "expected a number from 0 to 1, got \"1.5\"");
}

static void test_bytes(void **state)
{
	static const struct {
		const char *s;
		uint64_t want;
	} good[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "64K", 65536 },
		{ "64k", 65536 },
		{ "16M", 16 << 20 },
		{ "2G", UINT64_C(2) << 30 },
		{ "1.5G", UINT64_C(3) << 29 },
		{ "1T", UINT64_C(1) << 40 },
		{ "18446744073709551615", UINT64_MAX },
	};
	static const char *const bad[] = {
		"",
		"K",
		"-1",
		"+1",
		" 1",
		"1KB",
		"1X",
		"1.5",
		"18446744073709551616",
		"1e3",
		"nan",
		"0x1K",
		"99999999999T",
		"1..5G",
		".5G",
	};
	struct hps_err err = { 0 };
	uint64_t v;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(hps_parse_bytes(good[i].s, &v, &err), HPS_OK);
		assert_true(v == good[i].want);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		err.msg[0] = '\0';
		assert_int_equal(hps_parse_bytes(bad[i], &v, &err), HPS_BAD_INPUT);
		assert_non_null(strstr(err.msg, bad[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_int),
		cmocka_unit_test(test_double),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
