/* How near to the proven optimum do the searching methods come, and how long do they take? The
 * workloads of plan_work.h, the same budget of evaluations for all, several seeds; seconds are
 * of this thread's CPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "plan/exact.h"
#include "plan/rivals.h"
#include "plan/rl.h"
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

/* none: counts the runs that found no plan; NULL: such a run is a gap without end. */
static void run_seeds(const struct work *k, const char *cluster, const char *method,
		      uint64_t evaluations, uint32_t seeds, struct figures *gaps, uint32_t *none,
		      struct figures *seconds)
{
	struct hps_err err = { 0 };
	struct plan_work w;
	double best, gap, s;

	must(plan_work_open(&w, k->model, cluster, &err), &err);
	must(plan_work_floor(&w, k->floor, &err), &err);
	w.problem.merge = k->merge;
	best = objective(&w.problem, "exact", &s);
	w.problem.max_evaluations = evaluations;
	for (uint32_t seed = 1; seed <= seeds; seed++) {
		w.problem.seed = seed;
		gap = 100 * (objective(&w.problem, method, &s) / best - 1);
		if (none && !isfinite(gap))
			++*none;
		else
			add(gaps, gap);
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
		uint32_t none = 0;

		snprintf(name, sizeof(name), "plan.%s.16x2.gap", methods[m]);
		if (!wanted(name))
			continue;
		for (size_t i = 0; i < sizeof(two_types) / sizeof(*two_types); i++)
			run_seeds(&two_types[i], "two-types", methods[m], EVALUATIONS, RIVALS_SEEDS,
				  &gaps, &none, &seconds);
		snprintf(more, sizeof(more), ", \"no_plan\": %u, \"seconds\": %.4g", none,
			 quantile(&seconds, 0.5));
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
		run_seeds(&two_types[i], "two-types", "rl", EVALUATIONS, RL_SEEDS, &gaps, NULL,
			  &seconds);
	print("plan.rl.16x2.gap", quantile(&gaps, 1), 1, "%", &gaps, "");
	print("plan.rl.16x2.seconds", quantile(&seconds, 0.5), 1, "s", &seconds, "");
}

/* --- the proof --- */

struct proof {
	const char *model, *cluster;
	double floor; /* samples/s */
	double share; /* of the fastest, in place of floor */
	uint32_t
		units; /* of each type, for clusters that state no limits; 0: as many as there are */
	bool merge;
};
/* From no floor to where limits bind hard. */
static const char *const models_16x2[] = { "ctrdnn-16", "matchnet", "2emb", "nce" };
static const double shares_16x2[] = { 0, 0.3, 0.5, 0.8, 0.95 };
static const struct proof proofs_20x64[] = {
	{ "ctrdnn-20", "64-types", 0 },	  { "ctrdnn-20", "64-types", 1e5 },
	{ "ctrdnn-20", "64-types", 1e6 }, { "ctrdnn-20", "64-types", 2.5e6 },
	{ "ctrdnn-20", "64-types", 3e6 }, { "ctrdnn-20", "64-types", 4e6 },
	{ "ctrdnn-20", "64-types", 1e7 },
};
enum { RL_20X64 = 3 }; /* of these, what the policy is tried on, too */
/* Near the fastest that the limits allow, and where a layer takes hundreds of units. */
static const struct proof proofs_tight[] = {
	{ "ctrdnn-20", "64-types-tight", 4e6 },	  { "ctrdnn-20", "64-types-tight", 5e6 },
	{ "ctrdnn-20", "64-types-tight", 5.5e6 }, { "ctrdnn-20", "64-types", 6e6, .units = 16 },
	{ "ctrdnn-20", "64-types", 2e7 },
};

static double cpu_now(void *arg)
{
	(void)arg;
	return hps_cpu_s();
}

/* What proofs came to. */
struct proofs {
	struct figures seconds, gaps;
	uint32_t open; /* those that were not proven */
	uint32_t none; /* proven to have no plan */
};

/* budget in seconds of CPU, 0: until it is proven. */
static void prove(const struct proof *k, double budget, struct proofs *out)
{
	struct hps_err err = { 0 };
	struct hps_solution s;
	struct plan_work w;
	enum hps_status rc;
	double begin;

	must(plan_work_open(&w, k->model, k->cluster, &err), &err);
	for (uint32_t t = 0; k->units && t < w.cost.n_types; t++)
		w.cost.type[t].limit = k->units;
	w.problem.floor = k->floor;
	if (k->share > 0)
		must(plan_work_floor(&w, k->share, &err), &err);
	w.problem.merge = k->merge;
	w.problem.max_seconds = budget;
	w.problem.hooks.now = cpu_now;
	begin = hps_cpu_s();
	rc = hps_plan_exact(&w.problem, "", &s, &err);
	add(&out->seconds, hps_cpu_s() - begin);
	if (rc == HPS_NO && !s.interrupted) {
		out->none++;
	} else {
		must(rc, &err);
		add(&out->gaps, 100 * hps_solution_gap(&s));
		out->open += !s.proven;
	}
	hps_solution_release(&s);
	plan_work_close(&w);
}

static void print_proofs(const char *name, struct proofs *x, bool gap, double reach)
{
	char more[96];

	snprintf(more, sizeof(more), ", \"not_proven\": %u, \"no_plan\": %u, \"cpu_seconds\": %.4g",
		 x->open, x->none, quantile(&x->seconds, 0.5));
	if (gap)
		print(name, quantile(&x->gaps, 1), reach, "%", &x->gaps, more);
	else
		print(name, quantile(&x->seconds, 1), reach, "CPU s", &x->seconds, more);
}

static void bench_proofs(const char *name, const struct proof *proof, size_t n, double budget,
			 bool gap, double reach)
{
	struct proofs x = { .open = 0 };

	if (!wanted(name))
		return;
	for (size_t i = 0; i < n; i++)
		prove(&proof[i], budget, &x);
	print_proofs(name, &x, gap, reach);
}

static void bench_16x2(void)
{
	const char *name = "plan.exact.16x2.seconds";
	struct proofs x = { .open = 0 };

	if (!wanted(name))
		return;
	for (size_t m = 0; m < sizeof(models_16x2) / sizeof(*models_16x2); m++) {
		for (size_t i = 0; i < sizeof(shares_16x2) / sizeof(*shares_16x2); i++) {
			struct proof k = { models_16x2[m], "two-types", .share = shares_16x2[i] };

			prove(&k, 0, &x);
			k.merge = true;
			prove(&k, 0, &x);
		}
	}
	print_proofs(name, &x, false, 0.1);
}

static void bench_exact(void)
{
	bench_16x2();
	bench_proofs("plan.exact.20x64.seconds", proofs_20x64,
		     sizeof(proofs_20x64) / sizeof(*proofs_20x64), 0, false, 1);
	bench_proofs("plan.exact.20x64-tight.gap", proofs_tight,
		     sizeof(proofs_tight) / sizeof(*proofs_tight), 10, true, 0);
}

/* --- the policy where types are many, and once it has learned --- */

enum { MANY_SEEDS = 20, DECISIONS = 501 };

static void bench_many_types(void)
{
	struct figures gaps = { .n = 0 }, seconds = { .n = 0 };

	if (!wanted("plan.rl.20x64"))
		return;
	for (size_t i = 0; i < RL_20X64; i++) {
		const struct proof *k = &proofs_20x64[i];
		struct hps_err err = { 0 };
		struct plan_work w;
		double best, s;

		must(plan_work_open(&w, k->model, k->cluster, &err), &err);
		w.problem.floor = k->floor;
		best = objective(&w.problem, "exact", &s);
		/* the seeds take turns at the floors */
		for (w.problem.seed = 1 + i; w.problem.seed <= MANY_SEEDS;
		     w.problem.seed += RL_20X64) {
			add(&gaps, 100 * (objective(&w.problem, "rl", &s) / best - 1));
			add(&seconds, s);
		}
		plan_work_close(&w);
	}
	print("plan.rl.20x64.gap", quantile(&gaps, 0.5), 2, "%", &gaps, "");
	print("plan.rl.20x64.seconds", quantile(&seconds, 0.5), 10, "CPU s", &seconds, "");
}

static void learn(const char *model, struct hps_policy *out)
{
	struct hps_rl_options rl = { .learned = out };
	struct hps_solution s;
	struct hps_err err = { 0 };
	struct plan_work w;

	must(plan_work_open(&w, model, "two-types", &err), &err);
	w.problem.rl = &rl;
	must(hps_plan_rl(&w.problem, "", &s, &err), &err);
	hps_solution_release(&s);
	plan_work_close(&w);
}

/* From the problem to a plan with its units: features, the likeliest choices, settling. */
static void bench_decision(void)
{
	struct figures ms = { .n = 0 };
	struct hps_policy policy = { .weight = NULL };
	struct hps_err err = { 0 };
	struct plan_work w;

	if (!wanted("plan.policy.decision_ms"))
		return;
	learn("ctrdnn-8", &policy);
	must(plan_work_open(&w, "ctrdnn-16", "two-types", &err), &err);
	for (uint32_t i = 0; i < DECISIONS; i++) {
		double begin = hps_cpu_s();
		struct hps_policy_input in;
		struct hps_rollout r;
		struct hps_span stage[64];
		struct hps_trial t;
		uint32_t n;

		must(hps_policy_input_init(&in, &w.problem, &err), &err);
		must(hps_rollout_init(&r, &policy, &in, 1, &err), &err);
		hps_rollout_run(&r, &policy, NULL, 0);
		n = hps_rollout_spans(&r, 0, stage);
		must(hps_settle(&w.problem, stage, n, &t, &err), &err);
		hps_rollout_release(&r);
		hps_policy_input_release(&in);
		add(&ms, 1e3 * (hps_cpu_s() - begin));
	}
	print("plan.policy.decision_ms", quantile(&ms, 0.5), 0.1, "CPU ms", &ms, "");
	hps_policy_release(&policy);
	plan_work_close(&w);
}

int main(void)
{
	bench_exact();
	bench_rl();
	bench_many_types();
	bench_decision();
	bench_rivals();
	return 0;
}
