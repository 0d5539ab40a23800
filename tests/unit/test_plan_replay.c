/* Is a load read as it was meant, and what does replaying it cost, by hand? */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "cm.h"
#include "plan/replay.h"
#include "plan_case.h"

static void near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * fabs(b)))
		fail_msg("%.12g, expected %.12g", a, b);
}

/* --- a load --- */

static void test_load(void **state)
{
	static const char text[] =
		"{\"event\": \"about\", \"text\": \"passed over\"}\n"
		"{\"time_s\": 0, \"target_samples_per_s\": 100}\r\n"
		"  \n"
		"{\"event\": \"load\", \"time_s\": 60.5, \"target_samples_per_s\": 0, \"more\": 1}\n";
	static const char single[] = "{\"time_s\": 5, \"target_samples_per_s\": 1}";
	struct hps_load l;

	(void)state;
	assert_int_equal(hps_load_parse(text, strlen(text), "l", &l, NULL), HPS_OK);
	assert_int_equal(l.n, 2);
	assert_true(l.point[0].rate == 100 && l.point[1].time_s == 60.5 && l.point[1].rate == 0);
	assert_true(l.end_s == 121); /* as long as the one before */
	assert_true(hps_load_peak(&l) == 100);
	hps_load_release(&l);
	assert_int_equal(hps_load_parse(single, strlen(single), "l", &l, NULL), HPS_OK);
	assert_true(l.end_s == 3605);
	hps_load_release(&l);
}

static void bad_load(const char *text, size_t len, const char *place, const char *msg)
{
	struct hps_err err = { 0 };
	struct hps_load l;
	enum hps_status rc = hps_load_parse(text, len, "l.jsonl", &l, &err);

	if (rc != HPS_BAD_INPUT || strncmp(err.where, place, strlen(place)) ||
	    !strstr(err.msg, msg))
		fail_msg("%.60s: status %d, \"%s: %s\"", text, rc, err.where, err.msg);
	assert_null(l.point);
}

static void test_bad_loads(void **state)
{
#define GOOD "{\"time_s\": 1, \"target_samples_per_s\": 100}\n"
	static const struct {
		const char *text, *place, *msg;
	} bad[] = {
		{ "", "l.jsonl", "no load in it" },
		{ "\n\n", "l.jsonl", "no load in it" },
		{ "{\"event\": \"step\", \"loss\": 1}\n", "l.jsonl", "no load in it" },
		{ GOOD "{\"time_s\": 2, \"target_samples_per_s\": -1}\n",
		  "l.jsonl: line 2: target_samples_per_s", "expected a number >= 0" },
		{ GOOD "{\"time_s\": 2, \"target_samples_per_s\": NaN}\n", "l.jsonl: line 2", "" },
		{ GOOD "{\"time_s\": 2, \"target_samples_per_s\": 1e999}\n", "l.jsonl: line 2",
		  "" },
		{ GOOD "{\"time_s\": 2}\n", "l.jsonl: line 2: target_samples_per_s", "expected" },
		{ GOOD "{\"target_samples_per_s\": 2}\n", "l.jsonl: line 2: time_s", "expected" },
		{ GOOD "{\"time_s\": -2, \"target_samples_per_s\": 1}\n", "l.jsonl: line 2: time_s",
		  "expected" },
		{ GOOD "{\"time_s\": 0.5, \"target_samples_per_s\": 1}\n", "l.jsonl: line 2",
		  "expected a time above 1" },
		{ GOOD GOOD, "l.jsonl: line 2", "expected a time above 1" },
		{ GOOD "{\"event\": \"end\", \"time_s\": 1}\n", "l.jsonl: line 2",
		  "expected a time above 1" },
		{ GOOD "{\"event\": \"end\"}\n", "l.jsonl: line 2: time_s", "expected" },
		{ "{\"event\": \"end\", \"time_s\": 1}\n", "l.jsonl: line 1",
		  "ends before it begins" },
		{ GOOD "{\"event\": \"end\", \"time_s\": 2}\n{\"time_s\": 3, "
		       "\"target_samples_per_s\": 1}\n",
		  "l.jsonl: line 3", "after the end" },
		{ GOOD "{\"time_s\": 2, \"target_samples_per_s\"", "l.jsonl: line 2", "" },
		{ GOOD "[2, 3]\n", "l.jsonl: line 2", "expected a JSON object" },
		{ "\x7f"
		  "ELF\x01\x02\n",
		  "l.jsonl: line 1", "expected a JSON object" },
		{ GOOD "{} {}\n", "l.jsonl: line 2", "" },
	};
	char *longer = malloc(200000);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		bad_load(bad[i].text, strlen(bad[i].text), bad[i].place, bad[i].msg);
	bad_load("\0\0\0\0", 4, "l.jsonl: line 1", "expected a JSON object");
	assert_non_null(longer);
	memset(longer, ' ', 200000);
	longer[0] = '\n';
	bad_load(longer, 200000, "l.jsonl: line 2", "more than 65536 bytes");
	free(longer);
}

/* --- replaying --- */

static const struct hps_span one[] = { { 0, 0, 0, 1 } };

/* As test_plan_watch: 100,000 samples a second and 1 dollar an hour a unit, 10 units. */
static void one_stage(struct plan_case *c)
{
	plan_case_init(c, 1, 1, 10);
	c->opt.form = HPS_COST_PAPER;
	plan_case_time(c, 0, 0, 0, 1e-5);
	plan_case_ready(c);
}

static void test_by_hand(void **state)
{
	struct hps_watch_options opt = { .margin = 0.05, .change_dollars = 0.5 };
	struct hps_load_point point[] = { { 100, 250000 }, { 3700, 50000 } };
	struct hps_load load = { point, 2, 7300 };
	const struct hps_replay_row *r;
	struct hps_replay replay;
	struct plan_case c;

	(void)state;
	one_stage(&c);
	assert_int_equal(hps_replay(&c.problem, &opt, one, 1, &load, &replay, NULL), HPS_OK);
	/* 3 units; at 3700 s one would do: 2 dollars an hour lose 0.5 in 900 s; so 4500 s of
	 * 3 units and 2700 s of one, 16200 unit-seconds of which 9000 + 1800 are busy. */
	r = &replay.row[HPS_POLICY_EXACT];
	assert_true(r->done && r->changes == 1);
	near(r->dollars, 4.5);
	near(r->change_dollars, 0.5);
	near(r->utilisation, 10800.0 / 16200);
	near(r->type_use[0], 10800.0 / 16200);
	near(r->samples, 3600.0 * 300000);
	assert_true(isnan(r->ps_use) && r->unmet_s == 0 && isnan(r->unmet_from_s));
	near(replay.row[HPS_POLICY_NEWTON].dollars, 4.5);
	r = &replay.row[HPS_POLICY_PEAK];
	assert_int_equal(r->changes, 0);
	near(r->dollars, 6);
	near(r->utilisation, 0.5);
	near(hps_replay_utilisation_over(&replay, HPS_POLICY_PEAK), 4.0 / 3);
	near(hps_replay_cost_over(&replay, HPS_POLICY_PEAK), 6.0 / 5);
	/* What has no ratio to keep says so. */
	assert_false(replay.row[HPS_POLICY_STARATIO].done);
	assert_non_null(strstr(replay.row[HPS_POLICY_STARATIO].why, "no stage on a GPU"));
	assert_non_null(strstr(replay.row[HPS_POLICY_STAPSRATIO].why, "no shards"));
	assert_true(isnan(hps_replay_cost_over(&replay, HPS_POLICY_STARATIO)));
	hps_replay_release(&replay);
	plan_case_release(&c);
}

static void test_out_of_reach(void **state)
{
	struct hps_watch_options opt = hps_watch_defaults();
	struct hps_load_point point[] = {
		{ 0, 250000 }, { 1000, 1.5e6 }, { 1500, 2e6 }, { 2000, 0 }
	};
	struct hps_load load = { point, 4, 2600 };
	const struct hps_replay_row *r;
	struct hps_replay replay;
	struct hps_buf text = HPS_BUF_INIT;
	struct plan_case c;

	(void)state;
	one_stage(&c);
	assert_int_equal(hps_replay(&c.problem, &opt, one, 1, &load, &replay, NULL), HPS_OK);
	for (int i = 0; i < HPS_POLICIES; i++) {
		r = &replay.row[i];
		if (!r->done)
			continue;
		near(r->unmet_from_s, 1000);
		near(r->best_rate, 1e6);
		near(r->unmet_s, 1000);
		near(r->unmet_samples, 500 * 0.5e6 + 500 * 1e6);
		near(r->samples, 1000 * 250000.0 + 1000 * 1e6);
	}
	assert_int_equal(hps_replay_text(&replay, &text, NULL), HPS_OK);
	assert_non_null(strstr(text.data,
			       "exact: from 1000 s on a target is out of reach; the best "
			       "there is are 1e+06 samples/s"));
	hps_buf_release(&text);
	hps_replay_release(&replay);
	plan_case_release(&c);
}

/* Two CPU stages of 10 and 20 us, a GPU stage of 5 us, 5 us of a shard. */
static void test_rivals(void **state)
{
	const struct hps_span stage[] = { { 0, 0, 0, 1 }, { 1, 1, 0, 1 }, { 2, 2, 1, 1 } };
	struct hps_watch_options opt = hps_watch_defaults();
	struct hps_load_point point[] = { { 0, 4e5 } };
	struct hps_load load = { point, 1, 3600 };
	struct hps_replay replay;
	struct hps_doc *doc;
	struct plan_case c;

	(void)state;
	plan_case_init(&c, 3, 2, 40);
	for (uint32_t l = 0; l < 3; l++) {
		plan_case_time(&c, 0, l, 0, l ? 20e-6 : 10e-6);
		plan_case_time(&c, 1, l, 0, 5e-6);
	}
	c.type[1].device = HPS_DEVICE_CUDA;
	c.size[0].sparse_keys = 1;
	c.profile.shard.rows_per_s = 4e5;
	c.cluster.ps_price = 1;
	c.opt.micro_batches = 4;
	plan_case_ready(&c);
	/* exact: 4 + 8 CPUs, 2 GPUs, 2 shards, all busy. */
	opt.ratios = (struct hps_ratios){ .cpus_per_gpu = 3, .ps_per_unit = 0.5 };
	assert_int_equal(hps_replay(&c.problem, &opt, stage, 3, &load, &replay, NULL), HPS_OK);
	near(replay.row[HPS_POLICY_EXACT].dollars, 16);
	near(replay.row[HPS_POLICY_EXACT].utilisation, 1);
	near(replay.row[HPS_POLICY_EXACT].ps_use, 1);
	/* staratio: 12 CPUs take 4 GPUs, two of them idle. */
	near(replay.row[HPS_POLICY_STARATIO].dollars, 18);
	near(hps_replay_utilisation_over(&replay, HPS_POLICY_STARATIO), 18.0 / 16);
	near(hps_replay_cost_over(&replay, HPS_POLICY_STARATIO), 18.0 / 16);
	near(replay.row[HPS_POLICY_STARATIO].type_use[1], 0.5);
	/* stapsratio: 14 units take 7 shards, 2 of them busy. */
	near(replay.row[HPS_POLICY_STAPSRATIO].dollars, 21);
	near(replay.row[HPS_POLICY_STAPSRATIO].ps_use, 2.0 / 7);
	near(hps_replay_cost_over(&replay, HPS_POLICY_STAPSRATIO), 21.0 / 16);
	doc = hps_replay_doc(&replay);
	assert_non_null(doc);
	hps_doc_free(doc);
	hps_replay_release(&replay);
	plan_case_release(&c);
}

/* Whatever allocation fails, it is told and nothing leaks. */
static void test_without_memory(void **state)
{
	const struct hps_span stage[] = { { 0, 0, 0, 1 } };
	struct hps_watch_options opt = hps_watch_defaults();
	struct hps_load_point point[] = { { 0, 250000 }, { 1000, 50000 } };
	struct hps_load load = { point, 2, 9000 };
	enum hps_status rc = HPS_MEMORY;
	struct hps_replay replay;
	struct plan_case c;
	unsigned long n = 0;

	(void)state;
	one_stage(&c);
	while (rc == HPS_MEMORY) {
		struct hps_err err = { 0 };

		hps_mem_fail_at(++n);
		rc = hps_replay(&c.problem, &opt, stage, 1, &load, &replay, &err);
		assert_true(rc == HPS_OK || (rc == HPS_MEMORY && err.msg[0]));
	}
	hps_mem_fail_at(0);
	assert_true(n > HPS_POLICIES * 3);
	hps_replay_release(&replay);
	plan_case_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load),	cmocka_unit_test(test_bad_loads),
		cmocka_unit_test(test_by_hand), cmocka_unit_test(test_out_of_reach),
		cmocka_unit_test(test_rivals),	cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
