/* The line parser: the fast path against the plain one, values, limits, messages; and the
 * rule of preprocessing. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "cm.h"
#include "data/criteo.h"

enum { SLOTS = 3, DENSE = 2, COLUMNS = 1 + DENSE + SLOTS };

static struct hps_criteo format(bool unlabelled)
{
	struct hps_criteo c;
	struct hps_model m = { 0 };

	m.preprocess.transform = HPS_TRANSFORM_SIGNED_LOG;
	m.preprocess.scale = 0.5;
	m.preprocess.missing = -1;
	assert_int_equal(hps_criteo_init(&c, SLOTS, DENSE, &m, NULL), HPS_OK);
	c.unlabelled = unlabelled;
	return c;
}

struct row {
	float label, feature[DENSE];
	uint64_t key[SLOTS];
};

/* Both paths must agree on whether the line holds and on all of its values. */
static bool parse(const struct hps_criteo *c, const char *line, size_t len, struct row *r,
		  struct hps_err *err)
{
	char *text = hps_calloc(1, len + HPS_TEXT_PAD, NULL); /* exact: a sanitizer sees all */
	struct hps_field field[COLUMNS];
	double value[DENSE];
	bool fast, plain;

	assert_non_null(text);
	memcpy(text, line, len);
	text[len] = '\n';
	fast = hps_criteo_parse(c, text, len, &r->label, r->feature, r->key);
	plain = hps_criteo_split(c, text, len, field, value, err) == HPS_OK;
	assert_int_equal(fast, plain);
	if (fast) {
		assert_int_equal(r->label == 1, field[0].text != NULL && field[0].text[0] == '1');
		for (int i = 0; i < DENSE; i++)
			assert_true(r->feature[i] ==
				    (field[1 + i].len == 0
					     ? c->pre.missing
					     : hps_preprocess_value(&c->pre, value[i])));
		for (uint32_t i = 0; i < SLOTS; i++)
			assert_int_equal(r->key[i], hps_hash_bytes(field[1 + DENSE + i].text,
								   field[1 + DENSE + i].len, i));
	}
	free(text);
	return fast;
}

static bool parse_text(const char *line, struct row *r, struct hps_err *err)
{
	struct hps_criteo c = format(false);

	return parse(&c, line, strlen(line), r, err);
}

static void a_line_becomes_a_row(void **state)
{
	struct row r;

	assert_true(parse_text("1\t-3\t\t68fd1e64\t\ta longer text than eight", &r, NULL));
	assert_true(r.label == 1);
	assert_true(r.feature[0] == (float)(-0.5 * log(4)));
	assert_true(r.feature[1] == -1);
	assert_int_equal(r.key[0], hps_hash_bytes("68fd1e64", 8, 0));
	assert_int_equal(r.key[1], hps_hash_bytes("", 0, 1));
	assert_true(parse_text("0\t\t\t\t\t", &r, NULL));
	assert_true(r.label == 0);
	/* The same text in another slot is another key. */
	assert_true(parse_text("0\t1\t2\tab\tab\tab", &r, NULL));
	assert_true(r.key[0] != r.key[1] && r.key[1] != r.key[2]);
}

static void extreme_integers_saturate(void **state)
{
	static const char *const text[] = {
		"0",
		"-0",
		"+7",
		"1023",
		"1024",
		"-1024",
		"999999999999999999",
		"1000000000000000000",
		"9223372036854775808",
		"-18446744073709551616",
		"000000000000000000000000000012",
		"00000000000000000000000000000000",
	};
	char line[1024];
	struct row r;

	for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
		double x = strtod(text[i], NULL);

		snprintf(line, sizeof line, "0\t%s\t-%s\ta\tb\tc", text[i],
			 text[i][0] == '-' || text[i][0] == '+' ? text[i] + 1 : text[i]);
		assert_true(parse_text(line, &r, NULL));
		assert_true(fabs(r.feature[0] - copysign(log1p(fabs(x)), x) * 0.5) < 1e-5);
	}
	memset(line, '9', sizeof line);
	memcpy(line, "0\t-", 3);
	snprintf(line + 900, sizeof line - 900, "\t1\ta\tb\tc");
	assert_true(parse_text(line, &r, NULL));
	assert_true(r.feature[0] == (float)(-0.5 * log(DBL_MAX)));
}

static void faults_are_named(void **state)
{
	static const struct {
		const char *line, *says;
	} bad[] = {
		{ "", "expected 6 columns, got 1 (the line is empty)" },
		{ "0\t1\t2\ta\tb", "expected 6 columns, got 5" },
		{ "0\t1\t2\ta\tb\tc\t", "expected 6 columns, got 7" },
		{ "2\t1\t2\ta\tb\tc", "column 1: expected 0 or 1, got \"2\"" },
		{ "\t1\t2\ta\tb\tc", "column 1: expected 0 or 1, got \"\"" },
		{ "01\t1\t2\ta\tb\tc", "column 1: expected 0 or 1, got \"01\"" },
		{ "0\tx\t2\ta\tb\tc", "column 2: expected an integer, got \"x\"" },
		{ "0\t1\t2.5\ta\tb\tc", "column 3: expected an integer, got \"2.5\"" },
		{ "0\t1\t-\ta\tb\tc", "column 3: expected an integer, got \"-\"" },
		{ "0\t1\t--1\ta\tb\tc", "column 3: expected an integer, got \"--1\"" },
		{ "0\t1\t 1\ta\tb\tc", "column 3: expected an integer, got \" 1\"" },
		{ "0\t1\t0123456789012345678x\ta\tb\tc", "column 3: expected an integer" },
		{ "0\t1\tabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\ta\tb\tc",
		  "got \"abcdefghijklmnopqrstuvwxyzabcdefghijklmn...\"" },
	};
	struct row r;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hps_err err = { 0 };

		assert_false(parse_text(bad[i].line, &r, &err));
		assert_int_equal(err.status, HPS_BAD_INPUT);
		if (strstr(err.msg, bad[i].says) == NULL)
			fail_msg("\"%s\" lacks \"%s\"", err.msg, bad[i].says);
	}
}

static void nul_and_length_are_refused(void **state)
{
	struct hps_criteo c = format(false);
	struct hps_err err = { 0 };
	size_t len = c.line_max + 1;
	char *line = hps_calloc(1, len, NULL);
	struct row r;

	assert_non_null(line);
	assert_false(parse(&c, "0\t1\t2\ta\0b\tb\tc", 13, &r, &err));
	assert_string_equal(err.msg, "byte 8 is NUL: this is not text");
	memset(line, 'x', len);
	memcpy(line, "0\t1\t2\ta\tb\t", 10);
	assert_true(parse(&c, line, len - 1, &r, &err));
	assert_false(parse(&c, line, len, &r, &err));
	assert_non_null(strstr(err.msg, "longer than"));
	free(line);
}

static void the_label_may_lack(void **state)
{
	struct hps_criteo c = format(true);
	struct hps_err err = { 0 };
	struct row r;

	assert_true(parse(&c, "5\t\ta\tb\tc", 8, &r, NULL));
	assert_true(r.label == 0 && r.feature[0] == (float)(0.5 * log(6)));
	assert_true(parse(&c, "1\t5\t\ta\tb\tc", 10, &r, NULL));
	assert_true(r.label == 1);
	assert_false(parse(&c, "5\tz\ta\tb\tc", 9, &r, &err));
	assert_string_equal(err.msg, "column 2: expected an integer, got \"z\"");
	assert_false(parse(&c, "a\tb\tc", 5, &r, &err));
}

/* Lines made of what lines are made of, in any order: the two paths must agree. */
static void paths_agree_on_random_lines(void **state)
{
	static const char *const part[] = { "\t",      "\t", "\t",	  "0",	      "1",  "-",
					    "+",       "12", "999999999", "68fd1e64", "ab", "x",
					    "1234567", "\r", " ",	  "\v" };
	struct hps_criteo c[2] = { format(false), format(true) };
	struct hps_rng rng;
	size_t good = 0;

	hps_rng_init(&rng, 3, 0);
	for (int i = 0; i < 100000; i++) {
		char line[256] = "";
		struct row r;
		size_t n = hps_rng_below(&rng, 14);

		if (hps_rng_below(&rng, 2))
			strcpy(line, "1\t");
		for (size_t k = 0; k < n; k++)
			strcat(line, part[hps_rng_below(&rng, sizeof part / sizeof *part)]);
		good += parse(&c[i & 1], line, strlen(line), &r, NULL);
	}
	assert_true(good > 1000);
}

static void preprocessing_is_odd_and_finite(void **state)
{
	static const double x[] = { 0, 0.5, 1, 2, 1023, 1024, 1e9, 1e300, DBL_MAX };
	static const double scale[] = { 1, 0.1, -2, 0, 1e300 };
	struct hps_model m = { 0 };
	struct hps_preprocess p;

	for (int t = HPS_TRANSFORM_NONE; t <= HPS_TRANSFORM_SIGNED_LOG; t++)
		for (size_t s = 0; s < sizeof scale / sizeof *scale; s++) {
			m.preprocess.transform = (enum hps_transform)t;
			m.preprocess.scale = scale[s];
			m.preprocess.missing = 1e300;
			hps_preprocess_init(&p, &m);
			assert_true(p.missing == FLT_MAX);
			for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
				float y = hps_preprocess_value(&p, x[i]);

				assert_true(isfinite(y));
				assert_true(hps_preprocess_value(&p, -x[i]) == -y);
			}
			for (int i = 0; i < HPS_PREPROCESS_SMALL; i++)
				assert_true(p.small[i] == hps_preprocess_value(&p, i));
			assert_false(signbit(hps_preprocess_value(&p, -0.0)));
		}
	hps_preprocess_init(&p, NULL);
	assert_true(hps_preprocess_value(&p, -7) == -7);
	assert_true(p.missing == 0);
}

static void too_many_columns_are_refused(void **state)
{
	struct hps_criteo c;

	assert_int_equal(hps_criteo_init(&c, HPS_MAX_SLOTS + 1, 0, NULL, NULL), HPS_USAGE);
	assert_int_equal(hps_criteo_init(&c, 0, HPS_MAX_COLS + 1, NULL, NULL), HPS_USAGE);
	assert_int_equal(hps_criteo_init(&c, 0, 0, NULL, NULL), HPS_USAGE);
	assert_int_equal(hps_criteo_init(&c, 0, 1, NULL, NULL), HPS_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_becomes_a_row),
		cmocka_unit_test(extreme_integers_saturate),
		cmocka_unit_test(faults_are_named),
		cmocka_unit_test(nul_and_length_are_refused),
		cmocka_unit_test(the_label_may_lack),
		cmocka_unit_test(paths_agree_on_random_lines),
		cmocka_unit_test(preprocessing_is_odd_and_finite),
		cmocka_unit_test(too_many_columns_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
