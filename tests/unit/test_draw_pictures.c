/* Do pictures hold what they draw, whatever it is called, and nothing else? */
#include <stdlib.h>
#include <string.h>
#include "cm.h"
#include "draw/draw.h"
#include "draw/text_int.h"
#include "plan/exact.h"
#include "plan_case.h"

static void check_text(enum hps_status (*draw)(struct hps_buf *b, const char *s, size_t most,
					       struct hps_err *err),
		       const char *s, size_t most, const char *want)
{
	struct hps_buf b = HPS_BUF_INIT;

	assert_int_equal(draw(&b, s, most, NULL), HPS_OK);
	assert_string_equal(b.data ? b.data : "", want);
	hps_buf_release(&b);
}

static void test_escapes(void **state)
{
	(void)state;
	check_text(hps_draw_xml, "a<b>&\"c'", 0, "a&lt;b&gt;&amp;&quot;c'");
	check_text(hps_draw_quoted, "a<b>&\"\\N", 0, "\"a<b>&amp;\\\"\\\\N\"");
	/* Controls, C1, U+FFFE, a surrogate, a torn sequence, an overlong one: one sign a byte or
	 * character. */
	check_text(hps_draw_xml, "\x01\x7f|", 0, "\xef\xbf\xbd\xef\xbf\xbd|");
	check_text(hps_draw_xml, "\xef\xbf\xbe", 2, "\xef\xbf\xbd\xe2\x80\xa6");
	check_text(hps_draw_xml, "\xe6\x97\xa5\xe6\x97", 0, "\xe6\x97\xa5\xef\xbf\xbd\xef\xbf\xbd");
	check_text(hps_draw_xml, "\xc0\x80", 0, "\xef\xbf\xbd\xef\xbf\xbd");
	/* Cut between characters, never within one. */
	check_text(hps_draw_xml, "\xc3\xbc\xc3\xbc\xc3\xbc", 3, "\xc3\xbc\xc3\xbc\xc3\xbc");
	check_text(hps_draw_xml, "\xc3\xbc\xc3\xbc\xc3\xbc", 2, "\xc3\xbc\xe2\x80\xa6");
	check_text(hps_draw_xml, "", 2, "");
}

static void check_si(double value, const char *want)
{
	char out[32];

	assert_string_equal(hps_draw_si(out, sizeof(out), value, "s"), want);
}

static void test_numbers(void **state)
{
	(void)state;
	check_si(0, "0 s");
	check_si(1.234e-5, "12.3 us");
	check_si(0.001, "1 ms");
	check_si(999.7, "1000 s");
	check_si(4.5e6, "4.5 Ms");
	check_si(1e-20, "1e-08 ps");
	assert_true(hps_draw_step(1, 5) == 0.2);
	assert_true(hps_draw_step(760, 5) == 200);
}

/* Three layers on three types, the servers and a ring in use. */
static void open_case(struct plan_case *c, struct hps_solution *s)
{
	struct hps_err err = { 0 };

	plan_case_init(c, 3, 3, 8);
	for (uint32_t l = 0; l < 3; l++) {
		for (uint32_t t = 0; t < 3; t++)
			plan_case_time(c, t, l, 1e-4, l == t ? 1e-5 : 1e-3);
		c->size[l].param_bytes = 1e6;
	}
	c->size[0].sparse_bytes = 80;
	c->size[0].sparse_keys = 2;
	for (uint32_t l = 0; l < 2; l++)
		c->cut_forward[l] = 412, c->cut_backward[l] = 400;
	c->size[1].name = "<&\">";
	c->cluster.network = (struct hps_link){ 1e9, 1e-5 };
	c->profile.shard.rows_per_s = 1e6;
	c->profile.shard.bytes_per_s = 1e9;
	plan_case_ready(c);
	c->problem.floor = 8e4;
	if (hps_plan_exact(&c->problem, "", s, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(s->n_stages, 3);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *s = text; (s = strstr(s, what)); s += strlen(what))
		n++;
	return n;
}

static void test_svg(void **state)
{
	struct hps_buf a = HPS_BUF_INIT, b = HPS_BUF_INIT;
	struct hps_solution s;
	struct hps_frontier f = { .point = &s, .n = 1 };
	struct plan_case c;

	(void)state;
	open_case(&c, &s);

	struct hps_picture x = { &c.problem, &s, "a & b", "exact", NULL, NULL };

	assert_int_equal(hps_draw_svg(&x, &a, NULL), HPS_OK);
	assert_int_equal(count(a.data, ">stage "), 3);
	assert_int_equal(count(a.data, ">a &amp; b</text>"), 1);
	assert_int_equal(count(a.data, ">1 &lt;&amp;&quot;&gt;</text>"), 1);
	assert_int_equal(count(a.data, "<circle"), 0);
	/* Every text that was begun ends, and nothing is left open. */
	assert_int_equal(count(a.data, "<text"), count(a.data, "</text>"));
	assert_int_equal(count(a.data, "nan"), 0);
	assert_int_equal(count(a.data, "inf"), 0);
	x.frontier = &f;
	x.frontier_method = "exact";
	assert_int_equal(hps_draw_svg(&x, &b, NULL), HPS_OK);
	assert_int_equal(count(b.data, "<circle"), 1);
	assert_true(b.len > a.len);
	/* A ceiling is an error, not half a picture that passes for one. */
	struct hps_buf small = { .max = 2000 };

	assert_int_equal(hps_draw_svg(&x, &small, NULL), HPS_MEMORY);
	hps_buf_release(&small);
	hps_buf_release(&a);
	hps_buf_release(&b);
	hps_solution_release(&s);
	plan_case_release(&c);
}

static void test_dot(void **state)
{
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_solution s;
	struct plan_case c;

	(void)state;
	open_case(&c, &s);

	struct hps_picture x = { &c.problem, &s, NULL, "exact", NULL, NULL };

	assert_int_equal(hps_draw_dot(&x, NULL, &b, NULL), HPS_OK);
	assert_int_equal(count(b.data, "subgraph cluster_"), 3);
	assert_int_equal(count(b.data, "label=\"412 B\\nback 400 B\", penwidth=2.5"), 2);
	assert_int_equal(count(b.data, "l1 [label=\"<&amp;\\\">\"]"), 1);
	assert_int_equal(count(b.data, "l0 -> ps"), 1);
	assert_int_equal(count(b.data, "sets the pace") + count(b.data, "set the pace") +
				 count(b.data, "set by the shared"),
			 1);
	assert_int_equal(count(b.data, "{"), count(b.data, "}"));
	hps_buf_release(&b);
	hps_solution_release(&s);
	plan_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_svg),
		cmocka_unit_test(test_dot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
