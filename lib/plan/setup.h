/* From a job document and the words of a command line to a planning problem. */
#ifndef HPS_PLAN_SETUP_H
#define HPS_PLAN_SETUP_H

#include "base/buf.h"
#include "base/opt.h"
#include "job/job.h"
#include "plan/deploy.h"
#include "plan/plan.h"

/* What the user said; NULL, 0 or false where nothing was. */
struct hps_plan_words {
	const char *objective;	/* "cost", "price", or as in the document */
	const char *form;	/* "executor", "paper" */
	const char *evaluator;	/* "rate", "step" */
	const char *dense_sync; /* "auto", "ps", "ring" */
	const char *sync;	/* "bsp", "asp" */
	const char *budget;	/* "5000" evaluations or "2.5s" */
	double floor;
	int64_t batch, micro_batches, shards, seed;
	bool merge;
	const struct hps_rl_options *rl; /* into the problem */
};

/* Rows of a command's option table for the words that planning and provisioning share. */
/* clang-format off */
#define HPS_PLAN_WORD_OPTS(w) \
	{ 0, "batch", HPS_OPT_INT, &(w)->batch, "N", "rows a step", 1, HPS_MAX_BATCH }, \
	{ 0, "micro-batches", HPS_OPT_INT, &(w)->micro_batches, "N", \
	  "micro-batches a step and first-stage replica", 1, HPS_MAX_MICRO_BATCHES }, \
	{ 0, "shards", HPS_OPT_INT, &(w)->shards, "N", \
	  "exactly so many parameter server shards", 1, HPS_MAX_SHARDS }, \
	{ 0, "dense-sync", HPS_OPT_STR, &(w)->dense_sync, "HOW", \
	  "dense parameters: auto (default), ps or ring" }
/* clang-format on */

/* Prepare cost (hps_cost_release) and problem from job's profile and cluster. What was not said
 * comes from the plan where use_plan (objective, form, evaluator, floor), then the model's train
 * settings, then the profile's batch, else defaults. hooks
 * are left empty. HPS_USAGE for words that mean nothing, HPS_BAD_INPUT for the document. */
enum hps_status hps_problem_setup(const struct hps_job *job, const struct hps_plan_words *w,
				  bool use_plan, struct hps_cost *cost, struct hps_problem *p,
				  struct hps_err *err);

/* The job's plan in the words of hps_method_find: "fixed:cpu*2@0-2|v100*1@3-5". HPS_BAD_INPUT
 * without a plan. */
enum hps_status hps_plan_as_fixed(const struct hps_job *job, struct hps_buf *out,
				  struct hps_err *err);

/* "auto", "ipc", "tcp" */
enum hps_status hps_transport_of(const char *word, enum hps_transport *out, struct hps_err *err);

#endif
