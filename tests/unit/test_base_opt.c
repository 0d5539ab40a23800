/* Options: what the table says is what the parser takes and what -h shows. */
#include "cm.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/out.h"
#include "child.h"

/* A command with an option of each kind. */
struct values {
	bool explain, merge;
	int depth;
	const char *method;
	int64_t units, seed;
	double floor;
	struct hps_opt_list limits;
};

struct given {
	const char *arg[16]; /* NULL-terminated, without the name */
	const char *full;    /* a file to put in standard output's place */
	unsigned long fail_at;
};

static int run(void *arg)
{
	struct given *g = arg;
	struct values v = { .method = "exact", .units = -1 };
	struct hps_opt opts[] = {
		{ 'm', "method", HPS_OPT_STR, &v.method, "METHOD", "how to search" },
		{ 'n', "units", HPS_OPT_INT, &v.units, "N", "units at most", 1, 64 },
		{ 't', "floor", HPS_OPT_DOUBLE, &v.floor, "RATE", "samples/s", 0, 1e9 },
		{ 0, "limit", HPS_OPT_LIST, &v.limits, "TYPE=N", "units of a type" },
		{ 'e', "explain", HPS_OPT_FLAG, &v.explain, NULL, "say what binds" },
		{ 'D', "deep", HPS_OPT_COUNT, &v.depth, NULL, "deeper" },
		{ 0, "merge", HPS_OPT_FLAG, &v.merge, NULL, "join equal neighbours" },
		{ 0 },
	};
	struct hps_cmd cmd = {
		.name = "hps-x",
		.summary = "Try the option table.",
		.operands = "[JOB] DATA...",
		.min_operands = 1,
		.max_operands = 3,
		.opts = opts,
		.has_form = true,
		.has_text = true,
		.seed = &v.seed,
	};
	char *argv[20] = { "hps-x" }, **operands;
	int argc = 1, n;
	enum hps_status st;
	struct hps_err err = { 0 };

	while (g->arg[argc - 1]) {
		argv[argc] = (char *)g->arg[argc - 1];
		argc++;
	}
	if (g->full)
		dup2(open(g->full, O_WRONLY), STDOUT_FILENO);
	hps_mem_fail_at(g->fail_at);
	if (hps_opt_parse(&cmd, argc, argv, &operands, &n, &st) == HPS_OPT_EXIT)
		return hps_exit("hps-x", st, &err);
	printf("m=%s n=%d t=%g e=%d D=%d merge=%d seed=%d form=%d log=%d", v.method, (int)v.units,
	       v.floor, v.explain, v.depth, v.merge, (int)v.seed, cmd.form, hps_log_level());
	for (size_t i = 0; i < v.limits.n; i++)
		printf(" limit:%s", v.limits.item[i]);
	for (int i = 0; i < n; i++)
		printf(" %s", operands[i]);
	printf("\n");
	hps_opt_list_release(&v.limits);
	return hps_exit("hps-x", st, &err);
}

static void expect(int status, const char *out, const char *err, const struct given *g)
{
	struct child c;

	child_run(&c, run, (void *)g);
	assert_string_equal(c.err, err);
	assert_string_equal(c.out, out);
	assert_int_equal(c.status, status);
}

static void test_values(void **state)
{
	expect(0, "m=exact n=-1 t=0 e=0 D=0 merge=0 seed=0 form=0 log=0 a\n", "",
	       &(struct given){ { "a" } });
	/* Options after operands, joined and apart, short and long, repeated. */
	expect(0, "m=rl n=64 t=2.5 e=1 D=3 merge=1 seed=9 form=1 log=2 limit:cpu=2 limit:v=3 a b\n",
	       "",
	       &(struct given){ { "a", "-mrl", "-n", "64", "--floor=2.5", "-eDD", "--deep",
				  "--merge", "--limit", "cpu=2", "--limit=v=3", "--seed=9",
				  "--msgpack", "-vvv", "b" } });
}

static void test_form_and_level(void **state)
{
	expect(0, "m=exact n=-1 t=0 e=0 D=0 merge=0 seed=0 form=2 log=-1 a\n", "",
	       &(struct given){ { "--msgpack", "--text", "-q", "a" } });
	expect(0, "m=exact n=-1 t=0 e=0 D=0 merge=0 seed=0 form=0 log=1 a\n", "",
	       &(struct given){ { "--text", "--json", "-v", "a" } });
	expect(0, "m=exact n=-1 t=0 e=0 D=0 merge=0 seed=0 form=0 log=0 -e\n", "",
	       &(struct given){ { "--", "-e" } });
	/* Abbreviations are getopt_long's. */
	expect(0, "m=exact n=-1 t=0 e=1 D=0 merge=0 seed=0 form=0 log=0 a\n", "",
	       &(struct given){ { "--expl", "a" } });
}

#define TRY "; try 'hps-x -h'\n"

static void test_usage_errors(void **state)
{
	expect(2, "", "hps-x: unknown option -x" TRY, &(struct given){ { "-x", "a" } });
	expect(2, "", "hps-x: unknown option --nope" TRY, &(struct given){ { "--nope", "a" } });
	expect(2, "", "hps-x: unknown option --me" TRY, &(struct given){ { "--me", "a" } });
	expect(2, "", "hps-x: -m needs an argument, METHOD" TRY, &(struct given){ { "a", "-m" } });
	expect(2, "", "hps-x: --limit needs an argument, TYPE=N" TRY,
	       &(struct given){ { "a", "--limit" } });
	expect(2, "", "hps-x: --merge takes no argument" TRY,
	       &(struct given){ { "--merge=1", "a" } });
	expect(2, "", "hps-x: -n: expected an integer from 1 to 64, got \"65\"" TRY,
	       &(struct given){ { "-n", "65", "a" } });
	expect(2, "", "hps-x: --units: expected an integer from 1 to 64, got \"two\"" TRY,
	       &(struct given){ { "--units=two", "a" } });
	expect(2, "", "hps-x: -t: expected a number from 0 to 1e+09, got \"-1\"" TRY,
	       &(struct given){ { "-t-1", "a" } });
	expect(2, "",
	       "hps-x: --seed: expected an integer from 0 to 9007199254740992, got \"-1\"" TRY,
	       &(struct given){ { "--seed", "-1", "a" } });
	expect(2, "", "hps-x: -m: expected METHOD, got \"\"" TRY,
	       &(struct given){ { "-m", "", "a" } });
	expect(2, "", "hps-x: --method: expected METHOD, got \"\"" TRY,
	       &(struct given){ { "--method=", "a" } });
	expect(2, "", "hps-x: --limit: expected TYPE=N, got \"\"" TRY,
	       &(struct given){ { "--limit", "a", "--limit", "", "a" } });
	expect(2, "", "hps-x: empty operand: expected [JOB] DATA..." TRY,
	       &(struct given){ { "a", "" } });
	expect(2, "", "hps-x: no operand: expected [JOB] DATA..." TRY, &(struct given){ { NULL } });
	expect(2, "", "hps-x: unexpected operand \"d\"" TRY,
	       &(struct given){ { "a", "b", "c", "d" } });
}

static void test_help(void **state)
{
	static const char want[] =
		"usage: hps-x [-Dehqv] [--json | --msgpack | --text] [-m METHOD] [-n N] [-t RATE]\n"
		"             [--limit TYPE=N]... [--merge] [--seed N] [JOB] DATA...\n"
		"\n"
		"Try the option table.\n"
		"\n"
		"options:\n"
		"  -m, --method METHOD       how to search\n"
		"  -n, --units N             units at most\n"
		"  -t, --floor RATE          samples/s\n"
		"      --limit TYPE=N        units of a type\n"
		"  -e, --explain             say what binds\n"
		"  -D, --deep                deeper\n"
		"      --merge               join equal neighbours\n"
		"      --seed N              seed of all chance\n"
		"      --json                write JSON (the default)\n"
		"      --msgpack             write msgpack\n"
		"      --text                write text for a person\n"
		"  -q, --quiet               tell nothing but errors\n"
		"  -v, --verbose             tell more\n"
		"  -h, --help                show this help\n"
		"      --version             show the version\n";

	expect(0, want, "", &(struct given){ { "-h" } });
	/* Whatever else is wrong after it. */
	expect(0, want, "", &(struct given){ { "--help", "--nope" } });
	expect(0, "hps-x " HPS_VERSION "\n", "", &(struct given){ { "--version" } });
}

static void test_full_device(void **state)
{
	static const char told[] =
		"hps-x: standard output: cannot write: No space left on device\n";

	expect(4, "", told, &(struct given){ { "-h" }, "/dev/full", 0 });
	expect(4, "", told, &(struct given){ { "--version" }, "/dev/full", 0 });
	expect(4, "", told, &(struct given){ { "a" }, "/dev/full", 0 });
}

static void test_torture(void **state)
{
	struct given g = { { "--limit", "a", "--limit", "b", "x" } };
	struct given h = { { "-h" } };
	struct child c;

	for (g.fail_at = 1;; g.fail_at++) {
		child_run(&c, run, &g);
		if (c.status == 0)
			break;
		assert_int_equal(c.status, HPS_MEMORY);
		assert_non_null(strstr(c.err, "cannot allocate"));
	}
	assert_true(g.fail_at >= 5); /* three arrays, two list items */
	for (h.fail_at = 1;; h.fail_at++) {
		child_run(&c, run, &h);
		if (c.status == 0)
			break;
		assert_int_equal(c.status, HPS_MEMORY);
	}
	assert_true(h.fail_at >= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),	     cmocka_unit_test(test_form_and_level),
		cmocka_unit_test(test_usage_errors), cmocka_unit_test(test_help),
		cmocka_unit_test(test_full_device),  cmocka_unit_test(test_torture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
