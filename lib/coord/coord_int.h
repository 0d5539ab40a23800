/* Inside the coordinator: who comes in (coord_join.c), who is in or dead (coord.c), what the job is
 * at (coord_run.c), the step clock (coord_step.c), what evaluation gathers (coord_eval.c). */
#ifndef HPS_COORD_COORD_INT_H
#define HPS_COORD_COORD_INT_H

#include "coord/coord.h"

enum phase {
	PHASE_JOINING,
	PHASE_TRAINING,
	PHASE_EVALUATING,
	PHASE_MEASURING, /* all scores are here: metrics come with the next tick */
	PHASE_FINISHING,
	PHASE_SAVING,
	PHASE_LEAVING,
	PHASE_OVER,
};

enum mode { MODE_TRAIN, MODE_EVAL, MODE_PREDICT };

struct peer { /* one process */
	char *name;
	uint64_t incarnation;
	uint32_t number; /* of its connection, on our socket */
	uint32_t *node;
	uint32_t n_nodes;
	double heard_s;
	bool work;	  /* runs replicas; else shards */
	bool first_stage; /* runs replicas of the first stage */
	bool last_stage;
	bool prints;   /* runs replica 0 of the last stage */
	bool reported; /* has ended the phase */
	bool held;     /* has answered HOLD */
	bool left;
	uint64_t skipped_train, skipped_test;
};

/* A step of which some micro-batches' losses are known. */
struct open_step {
	uint64_t step;
	uint32_t seen;
	double *loss;	 /* n_micro, by micro-batch */
	uint32_t *count; /* n_micro */
	uint8_t *have;	 /* n_micro */
};

/* predict: an evaluation step of which some scores are here. */
struct open_scores {
	uint64_t step;
	uint32_t seen;
	struct hps_msg *part; /* n_micro, by micro-batch; type 0: not yet here */
};

struct hps_coord {
	const struct hps_job *job;
	const struct hps_deployment *d;
	uint64_t incarnation;
	double timeout_s, dead_after_s;
	bool loaded;
	const char *state; /* borrowed */

	struct peer *peer;
	size_t n_peers;
	uint32_t *owner; /* by node: index in peer + 1, 0: nobody yet, UINT32_MAX: this process */
	double born_s, said_s;

	enum phase phase;
	bool begun; /* the first process' settings are taken */
	struct hps_doc *settings;
	enum mode mode;
	bool has_test;
	uint32_t epochs;

	uint32_t epoch, epochs_done;
	uint64_t base;	    /* first step of this epoch */
	uint64_t completed; /* steps of this epoch whose losses are all known */
	uint64_t agreed;    /* bsp: steps of the epoch as the first process to end it says */
	bool has_agreed;
	struct open_step *open;
	size_t n_open;
	uint64_t leased, n_chunks; /* asp */
	double epoch_loss;
	uint64_t epoch_samples;

	bool interrupted;
	double moved_s; /* the last time that a member said anything of the work, or a signal came */
	bool holding;
	uint64_t hold_step;

	struct hps_scores scores;
	struct open_scores *waiting;
	size_t n_waiting;
	uint64_t next_scores; /* the next evaluation step to hand to the printing process */

	uint64_t first_step, steps, samples;
	double epoch_began_s, train_s;
	struct hps_coord_table *table; /* n_tables, summed over processes */
	char *saved;		       /* path */
	bool self_saved;

	struct hps_err outcome;
};

enum { PREDICT_WINDOW = 16, MAX_OPEN_STEPS = 4096 };

/* The owner of the nodes of the process that the coordinator runs in. */
#define HPS_COORD_OURS UINT32_MAX

/* coord.c */
enum hps_status hps_coord_send(uint32_t number, enum hps_control kind, struct hps_doc *body,
			       struct hps_outbox *out, struct hps_err *err);
void hps_coord_peer_release(struct peer *p);
enum hps_status hps_coord_tell(struct hps_coord *c, const struct peer *p, enum hps_control kind,
			       struct hps_doc *body, struct hps_outbox *out, struct hps_err *err);
/* To every process that is in and runs replicas (or every one), a copy of body (taken). */
enum hps_status hps_coord_tell_all(struct hps_coord *c, bool work_only, enum hps_control kind,
				   struct hps_doc *body, struct hps_outbox *out,
				   struct hps_err *err);
/* End the job: everybody is told what and whose fault (NULL: this process'). */
enum hps_status hps_coord_abort(struct hps_coord *c, const struct peer *culprit,
				const struct hps_err *why, struct hps_outbox *out,
				struct hps_err *err);
struct peer *hps_coord_printer(struct hps_coord *c);
/* Members of an object as numbers; HPS_NET when they do not hold. */
enum hps_status hps_coord_u64(const struct hps_doc *body, const char *key, uint64_t *out,
			      struct hps_err *err);

/* coord_join.c */
struct peer *hps_coord_peer(struct hps_coord *c, uint32_t number);
/* "stage 1 replica 0 on host b (hps-work), shard 1 on host c (hps-serve) and 3 more" */
void hps_coord_missing(const struct hps_coord *c, char *out, size_t size);
enum hps_status hps_coord_join(struct hps_coord *c, uint32_t number, const struct hps_doc *body,
			       double now_s, struct hps_outbox *out, struct hps_err *err);

/* coord_step.c */
enum hps_status hps_coord_steps(struct hps_coord *c, struct peer *p, const struct hps_doc *body,
				struct hps_outbox *out, struct hps_err *err);
enum hps_status hps_coord_lease(struct hps_coord *c, struct peer *p, const struct hps_doc *body,
				struct hps_outbox *out, struct hps_err *err);
enum hps_status hps_coord_data_end(struct hps_coord *c, const struct hps_doc *body,
				   struct hps_err *err);

/* coord_run.c */
/* {"epoch": e, "step": s}; NULL without memory. */
struct hps_doc *hps_coord_epoch_body(uint32_t epoch, uint64_t step);
enum hps_status hps_coord_go(struct hps_coord *c, double now_s, struct hps_outbox *out,
			     struct hps_err *err);
enum hps_status hps_coord_epoch_done(struct hps_coord *c, struct peer *p,
				     const struct hps_doc *body, double now_s,
				     struct hps_outbox *out, struct hps_err *err);
enum hps_status hps_coord_finished(struct hps_coord *c, struct peer *p, struct hps_outbox *out,
				   struct hps_err *err);
enum hps_status hps_coord_took_saved(struct hps_coord *c, struct peer *p,
				     const struct hps_doc *body, struct hps_outbox *out,
				     struct hps_err *err);
enum hps_status hps_coord_hold(struct hps_coord *c, struct hps_outbox *out, struct hps_err *err);
enum hps_status hps_coord_held(struct hps_coord *c, struct peer *p, const struct hps_doc *body,
			       struct hps_outbox *out, struct hps_err *err);
/* May the servers save what was trained before this failure? They may where it is one of the test
 * data: evaluation changes nothing, and a score has come, so every shard has seen all updates. */
bool hps_coord_can_save(const struct hps_coord *c, const struct hps_err *why);
/* End the job as hps_coord_abort does, but let the servers save first. */
enum hps_status hps_coord_fail_saved(struct hps_coord *c, const struct peer *culprit,
				     const struct hps_err *why, struct hps_outbox *out,
				     struct hps_err *err);
/* After an epoch's evaluation, or its end where there is none. */
enum hps_status hps_coord_next(struct hps_coord *c, double now_s, struct hps_outbox *out,
			       struct hps_err *err);
enum hps_status hps_coord_say_done(struct hps_coord *c, struct hps_outbox *out,
				   struct hps_err *err);
/* Has every process that runs replicas reported? */
bool hps_coord_all_reported(const struct hps_coord *c);

/* coord_eval.c */
enum hps_status hps_coord_begin_eval(struct hps_coord *c, struct hps_outbox *out,
				     struct hps_err *err);
enum hps_status hps_coord_took_scores(struct hps_coord *c, struct peer *p,
				      const struct hps_doc *body, struct hps_msg *m,
				      struct hps_outbox *out, struct hps_err *err);
enum hps_status hps_coord_printed(struct hps_coord *c, const struct hps_doc *body,
				  struct hps_outbox *out, struct hps_err *err);
enum hps_status hps_coord_eval_done(struct hps_coord *c, struct peer *p, const struct hps_doc *body,
				    double now_s, struct hps_outbox *out, struct hps_err *err);
enum hps_status hps_coord_measure(struct hps_coord *c, double now_s, struct hps_outbox *out,
				  struct hps_err *err);
void hps_coord_drop_scores(struct hps_coord *c);

#endif
