/* How near to the proven optimum do the searching methods come, and how long do they take? The
 * workloads of plan_work.h, the same budget of evaluations for all, several seeds; seconds are
 * of this thread's CPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "plan/rivals.h"
#include "../unit/plan_work.h"

enum { MOST_RUNS = 512 };

/* What several runs gave. */
struct figures {
	double value[MOST_RUNS];
	uint32_t n;
};

static void add(struct figures *f, double value)
{
	if (f->n < MOST_RUNS)
		f->value[f->n++] = value;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The share q of them is no more than this. */
static double quantile(struct figures *f, double q)
{
	qsort(f->value, f->n, sizeof(*f->value), ascending);
	return f->n ? f->value[(uint32_t)(q * (f->n - 1) + 0.5)] : NAN;
}

/* A number, or null for one that is none: a run found no plan. */
static void print_number(const char *name, double value)
{
	if (isfinite(value))
		printf(", \"%s\": %.4g", name, value);
	else
		printf(", \"%s\": null", name);
}

/* more: further members, beginning with a comma, or "" */
static void print(const char *name, double value, double reach, const char *unit,
		  struct figures *spread, const char *more)
{
	printf("{\"bench\": \"%s\"", name);
	print_number("value", value);
	if (reach > 0)
		print_number("reach", reach);
	printf(", \"unit\": \"%s\", \"runs\": %u", unit, spread->n);
	print_number("median", quantile(spread, 0.5));
	print_number("p90", quantile(spread, 0.9));
	print_number("worst", quantile(spread, 1));
	printf("%s}\n", more);
	fflush(stdout);
}

/* Does $HPS_BENCH ask for it? */
static bool wanted(const char *name)
{
	const char *prefix = getenv("HPS_BENCH");

	return !prefix || !strncmp(name, prefix, strnlen(prefix, strlen(name)));
}

static void must(enum hps_status rc, const struct hps_err *err)
{
	if (!rc)
		return;
	fprintf(stderr, "bench_plan: %s: %s\n", err->where, err->msg);
	exit(rc);
}

/* The method's answer; *seconds of CPU. An infeasible one has the objective INFINITY. */
static double objective(const struct hps_problem *p, const char *method, double *seconds)
{
	struct hps_solution s;
	struct hps_err err = { 0 };
	const char *arg;
	const struct hps_method *m = hps_method_find(method, &arg, &err);
	double begin = hps_cpu_s(), out;
	enum hps_status rc;

	must(m ? HPS_OK : HPS_USAGE, &err);
	rc = m->solve(p, arg, &s, &err);
	*seconds = hps_cpu_s() - begin;
	if (rc != HPS_NO)
		must(rc, &err);
	out = rc ? INFINITY : s.trial.objective;
	hps_solution_release(&s);
	return out;
}

/* --- gaps on 16 layers and 2 types, and the other models on the same cluster --- */

struct work {
	const char *model;
	double floor; /* share of the fastest */
	bool merge;
};
static const struct work two_types[] = {
	{ "ctrdnn-16", 0, false },  { "ctrdnn-16", 0.3, false }, { "ctrdnn-16", 0.8, false },
	{ "ctrdnn-16", 0.8, true }, { "matchnet", 0, false },	 { "matchnet", 0.3, true },
	{ "matchnet", 0.8, false }, { "2emb", 0.3, false },	 { "2emb", 0.8, true },
	{ "nce", 0.3, false },	    { "nce", 0.8, false },
};
enum { EVALUATIONS = 30000, RIVALS_SEEDS = 3, RL_SEEDS = 20 };

static void run_seeds(const struct work *k, const char *cluster, const char *method,
		      uint64_t evaluations, uint32_t seeds, struct figures *gaps,
		      struct figures *seconds)
{
	struct hps_err err = { 0 };
	struct plan_work w;
	double best, s;

	must(plan_work_open(&w, k->model, cluster, &err), &err);
	must(plan_work_floor(&w, k->floor, &err), &err);
	w.problem.merge = k->merge;
	best = objective(&w.problem, "exact", &s);
	w.problem.max_evaluations = evaluations;
	for (uint32_t seed = 1; seed <= seeds; seed++) {
		w.problem.seed = seed;
		add(gaps, 100 * (objective(&w.problem, method, &s) / best - 1));
		add(seconds, s);
	}
	plan_work_close(&w);
}

static void bench_rivals(void)
{
	static const char *const methods[] = { "rl+polish", "rl-rnn", "greedy", "genetic",
					       "bayes",	    "anneal", "random" };

	for (size_t m = 0; m < sizeof(methods) / sizeof(*methods); m++) {
		struct figures gaps = { .n = 0 }, seconds = { .n = 0 };
		char name[64], more[64];

		snprintf(name, sizeof(name), "plan.%s.16x2.gap", methods[m]);
		if (!wanted(name))
			continue;
		for (size_t i = 0; i < sizeof(two_types) / sizeof(*two_types); i++)
			run_seeds(&two_types[i], "two-types", methods[m], EVALUATIONS, RIVALS_SEEDS,
				  &gaps, &seconds);
		snprintf(more, sizeof(more), ", \"seconds\": %.4g", quantile(&seconds, 0.5));
		print(name, quantile(&gaps, 1), 0, "%", &gaps, more);
	}
}

/* What the policy is held to: the worst of all seeds, none left out. */
static void bench_rl(void)
{
	struct figures gaps = { .n = 0 }, seconds = { .n = 0 };

	if (!wanted("plan.rl.16x2"))
		return;
	for (size_t i = 0; i < sizeof(two_types) / sizeof(*two_types); i++)
		run_seeds(&two_types[i], "two-types", "rl", EVALUATIONS, RL_SEEDS, &gaps, &seconds);
	print("plan.rl.16x2.gap", quantile(&gaps, 1), 1, "%", &gaps, "");
	print("plan.rl.16x2.seconds", quantile(&seconds, 0.5), 1, "s", &seconds, "");
}

int main(void)
{
	bench_rl();
	bench_rivals();
	return 0;
}
