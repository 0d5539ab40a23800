/* Does a watched load change the deployment when, and only when, it should? Times are passed in, so
 * every answer is exact. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"
#include "plan/watcher.h"
#include "plan_case.h"

/* One stage, 100,000 samples a second and 1 dollar an hour a unit, 10 units at most. */
static const struct hps_span plan[] = { { 0, 0, 0, 1 } };

static void one_stage(struct plan_case *c)
{
	plan_case_init(c, 1, 1, 10);
	c->opt.form = HPS_COST_PAPER;
	plan_case_time(c, 0, 0, 0, 1e-5);
	plan_case_ready(c);
}

struct watched {
	struct plan_case c;
	struct hps_watch w;
	struct hps_decision d;
	bool decided;
};

static void begin(struct watched *x, double headroom, double margin, double dollars, double s)
{
	struct hps_watch_options opt = {
		.headroom = headroom, .margin = margin, .change_dollars = dollars, .change_s = s
	};

	one_stage(&x->c);
	assert_int_equal(hps_watch_init(&x->w, &x->c.problem, &opt, plan, 1, NULL), HPS_OK);
}

static void end(struct watched *x)
{
	hps_watch_release(&x->w);
	plan_case_release(&x->c);
}

/* The load at a time; units 0: nothing is decided. */
static void load(struct watched *x, double time_s, double target, uint32_t units,
		 enum hps_watch_reason reason)
{
	assert_int_equal(hps_watch_load(&x->w, time_s, target, &x->decided, &x->d, NULL), HPS_OK);
	assert_int_equal(x->decided, units > 0);
	if (!units)
		return;
	assert_int_equal(x->d.stage[0].units, units);
	assert_int_equal(x->d.reason, reason);
	assert_true(x->d.time_s == time_s && x->d.target == target);
}

static void measure(struct watched *x, double time_s, double rate)
{
	assert_int_equal(hps_watch_measured(&x->w, time_s, rate, &x->decided, &x->d, NULL), HPS_OK);
}

/* Time passes; a decision comes at `at`, or none. */
static void advance(struct watched *x, double to_s, double at)
{
	assert_int_equal(hps_watch_advance(&x->w, to_s, &x->decided, &x->d, NULL), HPS_OK);
	assert_int_equal(x->decided, !isinf(at));
	if (x->decided && fabs(x->d.time_s - at) > 1e-6)
		fail_msg("decided at %.9g, expected %.9g", x->d.time_s, at);
}

static void near(double a, double b)
{
	if (fabs(a - b) > 1e-9 * fabs(b))
		fail_msg("%.12g, expected %.12g", a, b);
}

static void test_up_at_once_down_when_it_pays(void **state)
{
	struct watched x;

	(void)state;
	begin(&x, 0, 0.05, 1, 0);
	assert_true(isinf(hps_watch_next(&x.w)));
	load(&x, 0, 250000, 3, HPS_WATCH_START);
	near(x.d.trial.price, 3);
	assert_true(x.d.price_before == 0 && x.d.change_cost == 0 && x.d.reached);
	load(&x, 50, 290000, 0, 0); /* three still do */
	load(&x, 100, 450000, 5, HPS_WATCH_NEEDED);
	near(x.d.price_before, 3);
	near(x.d.change_cost, 1);
	/* Two would do: 3 dollars an hour are lost, a change costs 1: after 1200 s. */
	load(&x, 200, 150000, 0, 0);
	near(hps_watch_next(&x.w), 1400);
	advance(&x, 1399.9, INFINITY);
	advance(&x, 5000, 1400);
	assert_int_equal(x.d.stage[0].units, 2);
	assert_int_equal(x.d.reason, HPS_WATCH_CHEAPER);
	advance(&x, 5000, INFINITY);
	assert_true(x.w.time_s == 5000);
	end(&x);
}

static void test_losses_add_up_and_are_forgotten(void **state)
{
	struct watched x;

	(void)state;
	begin(&x, 0, 0.05, 1, 0);
	load(&x, 0, 450000, 5, HPS_WATCH_START);
	load(&x, 200, 150000, 0, 0);
	/* 600 s at 3 dollars an hour lose 0.5; at 1 an hour the other 0.5 takes 1800 s. */
	load(&x, 800, 350000, 0, 0);
	near(hps_watch_next(&x.w), 2600);
	/* What is there is best again: forgotten. */
	load(&x, 1000, 420000, 0, 0);
	assert_true(isinf(hps_watch_next(&x.w)));
	load(&x, 1100, 150000, 0, 0);
	near(hps_watch_next(&x.w), 2300);
	/* A decision on the way is not skipped by a later load. */
	load(&x, 2300, 150000, 0, 0);
	assert_int_equal(x.w.now[0].units, 2);
	end(&x);
}

static void test_margin_time_headroom(void **state)
{
	struct watched x;

	(void)state;
	/* 4 units instead of 5 save 20 %: not more than 25 %. */
	begin(&x, 0, 0.25, 0.5, 0);
	load(&x, 0, 450000, 5, HPS_WATCH_START);
	load(&x, 10, 350000, 0, 0);
	assert_true(isinf(hps_watch_next(&x.w)));
	load(&x, 20, 250000, 0, 0);
	near(hps_watch_next(&x.w), 20 + 0.5 / 2 * 3600);
	end(&x);
	/* A change takes 360 s at the price of the new one: 0.2 dollars, lost in 240 s. */
	begin(&x, 0, 0.05, 0, 360);
	load(&x, 0, 450000, 5, HPS_WATCH_START);
	load(&x, 0, 150000, 0, 0);
	near(hps_watch_next(&x.w), 240);
	end(&x);
	/* One that costs nothing is made at once. */
	begin(&x, 0, 0, 0, 0);
	load(&x, 0, 450000, 5, HPS_WATCH_START);
	load(&x, 1, 350000, 4, HPS_WATCH_CHEAPER);
	end(&x);
	/* Headroom: provision for 20 % more, but 280,000 on three units need nothing. */
	begin(&x, 0.2, 0.05, 1, 0);
	load(&x, 0, 250000, 3, HPS_WATCH_START);
	near(x.d.floor, 300000);
	load(&x, 1, 280000, 0, 0);
	load(&x, 2, 310000, 4, HPS_WATCH_NEEDED);
	/* 10 units are all there are: without headroom, then. */
	load(&x, 3, 950000, 10, HPS_WATCH_NEEDED);
	assert_true(x.d.reached);
	end(&x);
}

static void test_out_of_reach(void **state)
{
	struct watched x;

	(void)state;
	begin(&x, 0, 0.05, 1, 0);
	load(&x, 0, 2e6, 10, HPS_WATCH_BEST);
	assert_false(x.d.reached);
	near(x.d.trial.throughput, 1e6);
	load(&x, 1, 3e6, 0, 0); /* nothing is faster */
	assert_true(x.w.unreached);
	load(&x, 2, 1e6, 0, 0);
	assert_false(x.w.unreached);
	load(&x, 3, 0, 0, 0); /* no load: one unit */
	near(hps_watch_next(&x.w), 3 + 3600.0 / 9);
	end(&x);
}

static void test_measured(void **state)
{
	struct watched x;

	(void)state;
	begin(&x, 0, 0.05, 1, 0);
	load(&x, 0, 250000, 3, HPS_WATCH_START);
	measure(&x, 1, 240000);
	measure(&x, 2, 1); /* one of them is nonsense */
	assert_false(x.decided);
	near(hps_watch_efficiency(&x.w), 1);
	measure(&x, 3, 240000); /* 80 % of what was predicted: 312,500 are needed */
	assert_true(x.decided);
	assert_int_equal(x.d.reason, HPS_WATCH_NEEDED);
	assert_int_equal(x.d.stage[0].units, 4);
	near(x.d.floor, 312500);
	/* Rates are of what runs, which is still three units, until the new ones are applied. */
	measure(&x, 4, 240000);
	assert_false(x.decided);
	near(hps_watch_efficiency(&x.w), 0.8);
	hps_watch_applied(&x.w);
	near(hps_watch_efficiency(&x.w), 0.8);
	for (int i = 0; i < 3; i++)
		measure(&x, 5 + i, 440000);
	near(hps_watch_efficiency(&x.w), 1); /* faster than predicted is not relied on */
	assert_true(isfinite(hps_watch_next(&x.w)));
	/* The last nine count. */
	for (int i = 0; i < 100; i++)
		measure(&x, 10, i < 91 ? 440000 : 200000 + i);
	near(hps_watch_rate(&x.w), 200095);
	measure(&x, 11, 0); /* no rate */
	near(hps_watch_rate(&x.w), 200095);
	end(&x);
}

static void test_running(void **state)
{
	const struct hps_span running[] = { { 0, 0, 0, 8 } };
	struct watched x;

	(void)state;
	begin(&x, 0, 0.05, 1, 0);
	hps_watch_running(&x.w, running, 0);
	load(&x, 0, 750000, 0, 0);
	load(&x, 1, 850000, 9, HPS_WATCH_NEEDED);
	near(x.d.price_before, 8);
	end(&x);
}

static void test_time_goes_back(void **state)
{
	struct hps_err err = { 0 };
	struct watched x;

	(void)state;
	begin(&x, 0, 0.05, 1, 0);
	load(&x, 10, 250000, 3, HPS_WATCH_START);
	assert_int_equal(hps_watch_load(&x.w, 9, 1, &x.decided, &x.d, &err), HPS_BAD_INPUT);
	assert_non_null(strstr(err.msg, "time goes back"));
	assert_int_equal(hps_watch_advance(&x.w, NAN, &x.decided, &x.d, &err), HPS_BAD_INPUT);
	end(&x);
}

/* --- lines in, lines out --- */

struct printed {
	struct hps_buf out;
	int complaints;
	char last[300];
};

static enum hps_status print(void *arg, const struct hps_doc *line, struct hps_err *err)
{
	struct printed *p = arg;

	return hps_doc_to_json_line(line, &p->out, err);
}

static void complain(void *arg, const struct hps_err *err)
{
	struct printed *p = arg;

	p->complaints++;
	snprintf(p->last, sizeof(p->last), "%s: %s", err->where, err->msg);
}

/* Feeds text in pieces; the caller frees p->out. */
static enum hps_status watch_text(const char *text, size_t len, size_t piece,
				  const struct hps_load *from_file, struct printed *p)
{
	struct hps_deploy_options deploy = { .job = "j", .run_dir = "/run/x", .base_port = 7000 };
	struct hps_watch_options opt = hps_watch_defaults();
	struct hps_watcher x = { .deploy = &deploy,
				 .load = from_file,
				 .name = "in",
				 .emit = print,
				 .complain = complain,
				 .arg = p };
	enum hps_status rc = HPS_OK;
	struct plan_case c;

	memset(p, 0, sizeof(*p));
	one_stage(&c);
	x.problem = &c.problem;
	assert_int_equal(hps_watcher_init(&x, &opt, plan, 1, NULL), HPS_OK);
	assert_int_equal(hps_watcher_tick(&x, 0, NULL), HPS_OK);
	for (size_t at = 0; !rc && at < len && !x.over; at += piece)
		rc = hps_watcher_feed(&x, text + at, at + piece < len ? piece : len - at, 5, NULL);
	if (!rc)
		rc = hps_watcher_end(&x, 7, NULL);
	hps_watcher_release(&x);
	plan_case_release(&c);
	return rc;
}

static void prints(const struct printed *p, const char *text, int times)
{
	int n = 0;

	for (const char *s = p->out.data; s && (s = strstr(s, text)); s++)
		n++;
	if (n != times)
		fail_msg("\"%s\" %d times, expected %d, in\n%s", text, n, times, p->out.data);
}

static void test_lines(void **state)
{
	static const char text[] =
		"{\"event\": \"load\", \"time_s\": 0, \"target_samples_per_s\": 250000}\n"
		"\n"
		"{\"event\": \"eval\", \"auc\": 0.7}\n"
		"{\"event\": \"step\", \"samples_per_s\": null}\n"
		"{\"event\": \"step\", \"samples_per_s\": 240000}\n"
		"{\"event\": \"step\", \"samples_per_s\": 240000}\n"
		"{\"event\": \"step\", \"samples_per_s\": 240000}\r\n"
		"{\"event\": \"applied\"}\n"
		"{\"event\": \"load\", \"time_s\": 60, \"target_samples_per_s\": 80000}\n"
		"{\"event\": \"end\", \"time_s\": 7200}\n"
		"junk after the end\n";
	struct printed whole, bytes;

	(void)state;
	assert_int_equal(watch_text(text, sizeof(text) - 1, 1 << 20, NULL, &whole), HPS_OK);
	assert_int_equal(watch_text(text, sizeof(text) - 1, 1, NULL, &bytes), HPS_OK);
	assert_string_equal(whole.out.data, bytes.out.data);
	assert_int_equal(whole.complaints, 0);
	prints(&whole, "\"event\":\"deployment\"", 3);
	prints(&whole, "\"reason\":\"start\"", 1);
	prints(&whole, "\"reason\":\"needed\"", 1);
	prints(&whole, "\"reason\":\"cheaper\"", 1);
	prints(&whole, "\"event\":\"rate\"", 1);
	prints(&whole, "\"stages\":[{\"type\":\"t0\",\"units\":4}]", 1);
	prints(&whole, "\"deployment\":null,\"why\":\"the cluster has no hosts to run on\"", 3);
	prints(&whole, "{\"event\":\"done\",\"time_s\":7200", 1);
	hps_buf_release(&whole.out);
	hps_buf_release(&bytes.out);
}

static void test_bad_lines(void **state)
{
	static const char *const bad[] = {
		"junk\n",
		"{\"event\": \"load\"}\n",
		"{\"event\": \"load\", \"target_samples_per_s\": -1}\n",
		"{\"event\": \"load\", \"target_samples_per_s\": NaN}\n",
		"{\"event\": \"load\", \"target_samples_per_s\": 1e999}\n",
		"{\"event\": \"load\", \"target_samples_per_s\": \"many\"}\n",
		"{\"event\": \"load\", \"time_s\": -1, \"target_samples_per_s\": 1}\n",
		"{\"event\": \"step\", \"samples_per_s\": -3}\n",
		"{\"event\": 3}\n",
		"{}\n",
		"[1]\n",
		"\x93\x01\x02\x03\n",
		"{\"event\": \"load\", \"target_samples_per_s\": 1\n",
	};
	static const char back[] =
		"{\"event\": \"load\", \"time_s\": 9, \"target_samples_per_s\": 250000}\n"
		"{\"event\": \"load\", \"time_s\": 8, \"target_samples_per_s\": 990000}\n";
	static const char impossible[] = "{\"event\": \"load\", \"target_samples_per_s\": 2e6}";
	char *longer = malloc(300000);
	struct printed p;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char text[400];
		int n = snprintf(text, sizeof(text), "{\"event\": \"x\"}\n%s{\"event\": \"x\"}\n",
				 bad[i]);

		if (watch_text(text, (size_t)n, 7, NULL, &p) != HPS_BAD_INPUT || p.complaints != 1)
			fail_msg("%s is taken", bad[i]);
		if (!strstr(p.last, "in: line 2"))
			fail_msg("no place in \"%s\"", p.last);
		prints(&p, "\"bad_lines\":1", 1);
		hps_buf_release(&p.out);
	}
	assert_int_equal(watch_text(back, sizeof(back) - 1, 9, NULL, &p), HPS_BAD_INPUT);
	assert_non_null(strstr(p.last, "time goes back"));
	prints(&p, "\"event\":\"deployment\"", 1);
	hps_buf_release(&p.out);
	/* A line that never seems to end is one bad line, and what follows is read. */
	assert_non_null(longer);
	memset(longer, 'x', 300000);
	memcpy(longer + 300000 - 17, "\n{\"event\": \"end\"}", 17);
	assert_int_equal(watch_text(longer, 300000, 5000, NULL, &p), HPS_BAD_INPUT);
	assert_int_equal(p.complaints, 1);
	prints(&p, "\"lines\":2,\"bad_lines\":1", 1);
	hps_buf_release(&p.out);
	free(longer);
	/* The last line needs no end. */
	assert_int_equal(watch_text(impossible, sizeof(impossible) - 1, 9, NULL, &p), HPS_NO);
	prints(&p, "\"reason\":\"best\",\"reached\":false", 1);
	hps_buf_release(&p.out);
}

static void test_load_from_file(void **state)
{
	struct hps_load_point point[] = { { 0, 250000 }, { 3, 450000 }, { 100, 1e6 } };
	struct hps_load load_3 = { point, 3, 200 }, over_at_6 = { point, 2, 6 };
	static const char text[] = "{\"event\": \"load\", \"target_samples_per_s\": 1}\n";
	struct printed p;

	(void)state;
	/* The caller's clock ends at 7: two of the three have come. */
	assert_int_equal(watch_text("", 0, 1, &load_3, &p), HPS_OK);
	prints(&p, "\"event\":\"deployment\"", 2);
	prints(&p, "\"event\":\"deployment\",\"time_s\":3", 1);
	prints(&p, "\"event\":\"done\",\"time_s\":7", 1);
	hps_buf_release(&p.out);
	assert_int_equal(watch_text("", 0, 1, &over_at_6, &p), HPS_OK);
	prints(&p, "\"event\":\"done\",\"time_s\":6", 1);
	hps_buf_release(&p.out);
	assert_int_equal(watch_text(text, sizeof(text) - 1, 99, &load_3, &p), HPS_BAD_INPUT);
	assert_non_null(strstr(p.last, "the load comes from a file"));
	hps_buf_release(&p.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_up_at_once_down_when_it_pays),
		cmocka_unit_test(test_losses_add_up_and_are_forgotten),
		cmocka_unit_test(test_margin_time_headroom),
		cmocka_unit_test(test_out_of_reach),
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_time_goes_back),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_load_from_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
