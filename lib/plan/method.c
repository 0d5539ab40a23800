/* Which methods are there, and which one does a word name? */
#include <string.h>
#include "plan/exact.h"
#include "plan/plan_int.h"
#include "plan/rivals.h"
#include "plan/rl.h"

static const struct hps_method exact = {
	"exact", "exact", "the proven optimum (exact.h)", false, hps_plan_exact,
};
static const struct hps_method brute = {
	"brute", "brute", "every structure; small problems only", false, hps_plan_brute,
};
static const struct hps_method heuristic = {
	"heuristic",
	"heuristic",
	"layers with sparse rows on the cheapest CPU type, all others on the fastest type",
	false,
	hps_plan_heuristic,
};
static const struct hps_method all = {
	"all", "all:TYPE", "every layer on one type", true, hps_plan_all,
};
static const struct hps_method fixed = {
	"fixed",
	"fixed:TYPE*N[@FIRST-LAST]|...",
	"these stages; cuts not given are chosen",
	true,
	hps_plan_fixed,
};

static const struct hps_method auto_ = {
	"auto",
	"auto",
	"exact where it proves within the budget, else the best that is found",
	false,
	hps_plan_auto,
};
static const struct hps_method greedy = {
	"greedy", "greedy",	   "layer by layer, each where the plan costs least",
	false,	  hps_plan_greedy,
};
static const struct hps_method genetic = {
	"genetic", "genetic",	     "evolution: crossover at stage boundaries, mutation",
	false,	   hps_plan_genetic,
};
static const struct hps_method bayes = {
	"bayes", "bayes",	 "Bayesian optimisation: a Gaussian process over schedules",
	false,	 hps_plan_bayes,
};
static const struct hps_method anneal = {
	"anneal", "anneal", "simulated annealing", false, hps_plan_anneal,
};
static const struct hps_method random_ = {
	"random", "random",	   "the best of as many random structures as the budget allows",
	false,	  hps_plan_random,
};

static const struct hps_method rl = {
	"rl", "rl", "a recurrent policy (LSTM) learns by trial, REINFORCE", false, hps_plan_rl,
};
static const struct hps_method rl_polish = {
	"rl+polish", "rl+polish",	 "rl, its best samples improved by local search",
	false,	     hps_plan_rl_polish,
};
static const struct hps_method rl_rnn = {
	"rl-rnn", "rl-rnn", "rl with an Elman cell in place of the LSTM", false, hps_plan_rl_rnn,
};

static const struct hps_method *const methods[] = {
	&rl,	 &rl_polish, &rl_rnn, &exact,	  &auto_, &greedy, &genetic, &bayes,
	&anneal, &random_,   &brute,  &heuristic, &all,	  &fixed,  NULL,
};

const struct hps_method *const *hps_methods(void)
{
	return methods;
}

const struct hps_method *hps_method_find(const char *word, const char **arg, struct hps_err *err)
{
	const char *colon = strchr(word, ':');
	size_t len = colon ? (size_t)(colon - word) : strlen(word);
	struct hps_buf list = { .max = 400 };

	for (size_t i = 0; methods[i]; i++) {
		const struct hps_method *m = methods[i];

		if (strlen(m->name) == len && !memcmp(m->name, word, len) &&
		    (m->has_arg ? colon && colon[1] : !colon)) {
			*arg = colon ? colon + 1 : "";
			hps_buf_release(&list);
			return m;
		}
		if (hps_buf_printf(&list, NULL, "%s%s", i ? ", " : "", m->synopsis))
			break;
	}
	hps_err_set(err, HPS_USAGE, "unknown method \"%s\"; methods are %s, keep", word,
		    list.data ? list.data : "");
	hps_buf_release(&list);
	return NULL;
}
