/* Inside the agent: the protocol (agent.c) and what is printed (events.c). */
#ifndef HPS_TRAIN_AGENT_INT_H
#define HPS_TRAIN_AGENT_INT_H

#include "train/agent.h"

/* Losses not yet told to the coordinator. */
struct loss_list {
	struct {
		uint64_t step;
		uint32_t mb, count;
		double loss;
	} * item;
	size_t n, cap;
};

/* The step told last, to be printed at the end of an epoch if it was not. */
struct last_step {
	bool known, printed;
	uint32_t epoch;
	uint64_t step, rows;
	double loss;
};

struct hps_agent {
	const struct hps_job *job;
	struct hps_agent_host host;
	struct hps_member *member;
	uint32_t *node;
	uint32_t n_nodes, n_first; /* replicas here; of the first stage */
	bool prints;
	uint64_t log_every;

	uint32_t epoch;
	uint64_t base;
	uint32_t n_done; /* replicas that have ended the phase */
	uint32_t n_held;
	uint64_t held, steps; /* steps: as the replicas ended the epoch */
	struct loss_list losses;

	struct last_step last;
	uint64_t samples, marked_samples; /* all; at the last step event */
	double marked_s;
	bool over;
	bool done; /* the job was done before it was over here */
	bool leaving;
	double leave_s; /* a signal came before the coordinator's welcome: goes then without it */
};

/* events.c: the printing process' */
enum hps_status events_step(struct hps_agent *a, const struct hps_doc *body, double now_s,
			    struct hps_err *err);
/* The epoch is over: its last step is printed if it was not; the clock of rates stands still. */
enum hps_status events_epoch_over(struct hps_agent *a, double now_s, struct hps_err *err);
void events_epoch_begins(struct hps_agent *a, double now_s);
/* An event with the members of body. */
enum hps_status events_copy(struct hps_agent *a, const char *name, const struct hps_doc *body,
			    struct hps_err *err);
/* A member as a number; HPS_NET if it is none. */
enum hps_status agent_u64(const struct hps_doc *body, const char *key, uint64_t *out,
			  struct hps_err *err);

#endif
