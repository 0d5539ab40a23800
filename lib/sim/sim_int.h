/* Inside the simulator. What calls what:
 *
 *   run.c      the loop over events, and the window that is measured
 *   prepare.c  the schedule as numbers: times, bytes, links; noise; memory
 *   replica.c  who computes what next; steps; where the time goes
 *   message.c  what passes over links, and where it arrives
 *   shard.c    the queue of the shards; versions of rows and parameters
 *   share.c    one resource shared fairly by many jobs
 *   queue.c    who is due next
 */
#ifndef HPS_SIM_SIM_INT_H
#define HPS_SIM_SIM_INT_H

#include "sim/sim.h"

#define NONE UINT32_MAX

/* Numbers with a due time each: a binary heap that knows where each number is. Equal times go in
 * the order in which they were set. */
struct queue {
	uint32_t n, ids;
	uint32_t *heap, *pos; /* pos NONE: not in it */
	double *time;
	uint64_t *seq, next_seq;
};
enum hps_status queue_grow(struct queue *q, uint32_t ids, struct hps_err *err);
void queue_release(struct queue *q);
void queue_set(struct queue *q, uint32_t id, double time); /* in, or moved */
void queue_drop(struct queue *q, uint32_t id);
static inline uint32_t queue_top(const struct queue *q)
{
	return q->n ? q->heap[0] : NONE;
}

enum owner { OWNER_MESSAGE, OWNER_REPLICA, OWNER_READER, OWNER_SHARD };

/* A job on a shared resource; jobs of one resource are a pairing heap by target. */
struct piece {
	double target; /* of the resource's virtual time */
	enum owner owner;
	uint32_t id, weight;
	uint32_t child, next; /* next: sibling, or the next free one */
};

/* Processor sharing by virtual time: v grows by what each job gets, so a job of `amount` ends when
 * v has grown by it, whoever comes and goes meanwhile. */
struct share {
	double capacity, most; /* units a second in all, and of one job */
	double v, at;	       /* v at time `at` */
	double jobs;	       /* weights of those here */
	double carried;	       /* units served so far */
	uint32_t root;
};

enum list_kind { FORWARD, BACKWARD };
struct list {
	uint32_t head, tail;
};

/* A micro-batch: in one place at a time. */
struct token {
	uint64_t order; /* bsp: step * n + number; else in order of birth */
	uint64_t step;
	uint32_t micro;
	uint32_t prev, next; /* in a list; next: also the next free one */
};

enum task { TASK_NONE, TASK_FORWARD, TASK_BACKWARD, TASK_OVERHEAD };

struct replica {
	uint32_t stage, number;
	double slow;
	enum task task;
	uint32_t token;
	double begin, work; /* of the task */
	uint64_t tasks;	    /* so far: the counter of its noise */
	struct list list[2];
	uint32_t n_pull, n_transit, n_away;
	uint32_t done;	     /* backward passes of this step, or since the last push */
	uint64_t cur;	     /* the step in work: steps done */
	uint64_t version;    /* of the parameters here */
	uint64_t born, turn; /* first stage: micro-batches begun; chunks done */
	uint32_t in_flight;
	uint32_t reading; /* token, or NONE */
	uint32_t syncing; /* no bsp: dense pushes under way */
	bool owing;	  /* another is due, and has to wait for one of them */
	enum hps_sim_where where;
	double since, busy; /* busy: seconds of computing */
};

struct stage {
	uint32_t first, last, k;  /* k: replicas; paper: 1 */
	uint32_t units;		  /* that work together as a replica: 1; paper: all */
	uint32_t active;	  /* replicas that get micro-batches */
	uint32_t replica0, unit0; /* numbers of the first replica and unit in all */
	double forward_s, backward_s;
	double bandwidth;
	double latency, ring_latency, hop; /* to the shards; of the ring; of the cut before it */
	bool pooled;
	double up, down;	/* bytes a micro-batch to the next stage, to the one before */
	double row_bytes, rows; /* a micro-batch, each way */
	double dense;		/* P, bytes; 0 = no synchronisation */
	bool ring;
	uint32_t period; /* of it: bsp in steps, else in backward passes */
	uint32_t pushed, ready, ring_left;
	struct queue load; /* asp: micro-batches in hand of each replica */
	double where[HPS_SIM_WHERES];
};

enum message_kind {
	MESSAGE_ACTIVATIONS,
	MESSAGE_GRADIENTS,
	MESSAGE_PULL, /* asked for, served, and on its way back */
	MESSAGE_PUSH,
	MESSAGE_DENSE,
	MESSAGE_WEIGHTS,
	MESSAGE_RING,
};

struct message {
	enum message_kind kind;
	bool back; /* a pull, the answer of which is on its way */
	uint32_t stage, replica, token;
	uint64_t step;
	uint32_t pieces; /* still to pass */
	double delay, begin, bytes;
	uint32_t next; /* in the shard's queue, held, or free */
};

struct sim {
	const struct hps_cost *c;
	struct hps_sim_options o;
	bool paper, loopback;
	double now;
	uint32_t n_stages, n_replicas, n_units;
	struct stage *stage;
	struct replica *replica;
	uint32_t n;		 /* micro-batches a step */
	uint32_t own, in_flight; /* of a first-stage replica: a step; at most */
	double m;		 /* rows of each */
	double overhead, input;	 /* seconds */
	double sigma;		 /* of the lognormal's normal */

	struct queue queue;
	struct share *share;	       /* links of replicas, of the shard, the pool */
	uint32_t n_shares, ways, pool; /* ways: 2 with duplex; pool NONE */
	double *carried;	       /* n_shares, at the window's beginning */

	struct piece *piece;
	uint32_t n_piece, free_piece;
	struct token *token;
	uint32_t *path; /* token by stage: its replicas */
	uint32_t n_token, free_token;
	struct message *message;
	uint32_t n_message, free_message;

	/* the shard that stands for all */
	uint32_t shards;
	double ps_latency;
	uint32_t job; /* at work on it; NONE */
	double job_begin, shard_busy;
	uint32_t line_head, line_tail, held_head, held_tail;
	uint32_t row_pushes, row_pushes_of_step;
	uint64_t row_version;

	uint64_t births, done, target, clock; /* clock: chunks that all have done */
	uint32_t at_clock;		      /* replicas that have done no more */
	double window_begin, last_step, step_least, step_most, shard_busy_before;
	uint64_t events;
	enum hps_status rc;
	struct hps_err *err;
};

/* Numbers in the queue: shares, then replicas, the shard, messages. */
static inline uint32_t id_of_replica(const struct sim *s, uint32_t r)
{
	return s->n_shares + r;
}
static inline uint32_t id_of_shard(const struct sim *s)
{
	return s->n_shares + s->n_replicas;
}
static inline uint32_t id_of_message(const struct sim *s, uint32_t m)
{
	return s->n_shares + s->n_replicas + 1 + m;
}
/* Links: of a replica, or of the shard (NONE), in or out. */
static inline uint32_t link_of(const struct sim *s, uint32_t replica, bool in)
{
	return (replica == NONE ? s->n_replicas : replica) * s->ways + (in ? s->ways - 1 : 0);
}
static inline uint32_t replica_of(const struct sim *s, uint32_t token, uint32_t stage)
{
	return s->path[(uint64_t)token * s->n_stages + stage];
}
static inline bool sim_bsp(const struct sim *s)
{
	return !s->paper && s->o.mode == HPS_SIM_BSP;
}

/* prepare.c */
enum hps_status sim_init(struct sim *s, const struct hps_cost *c, const struct hps_schedule *sched,
			 const struct hps_sim_options *o, struct hps_err *err);
void sim_release(struct sim *s);
double sim_noise(struct sim *s, struct replica *r); /* the factor of its next task */
uint32_t sim_new_piece(struct sim *s);		    /* NONE: s->rc is set */
uint32_t sim_new_token(struct sim *s);
uint32_t sim_new_message(struct sim *s);
void sim_free_token(struct sim *s, uint32_t t);
void sim_free_message(struct sim *s, uint32_t m);
void sim_tell(const struct sim *s, enum hps_sim_kind kind, double begin, uint32_t replica,
	      uint64_t step, uint32_t micro, double bytes);

/* share.c */
void share_add(struct sim *s, uint32_t share, double amount, uint32_t weight, enum owner owner,
	       uint32_t id);
struct piece share_due(struct sim *s, uint32_t share); /* the one that ends now, taken out */
void share_advance(struct share *x, double now);

/* message.c */
uint32_t message_new(struct sim *s, enum message_kind kind, uint32_t replica, uint32_t token);
/* From one replica to another; NONE: the shards. Bytes of all units. */
void message_send(struct sim *s, uint32_t m, uint32_t from, uint32_t to, double bytes,
		  double delay);
void message_passed(struct sim *s, uint32_t m); /* a piece is through */
void message_came(struct sim *s, uint32_t m);	/* the delay is over */

/* shard.c */
void shard_take(struct sim *s, uint32_t m); /* a message is at the shards */
void shard_done(struct sim *s);		    /* with the job in hand */
void dense_begin(struct sim *s, uint32_t replica);

/* replica.c */
void replica_feed(struct sim *s, uint32_t r); /* first stage: begin what may begin */
void replica_read(struct sim *s, uint32_t r); /* parsed */
void replica_take(struct sim *s, uint32_t r, uint32_t token); /* a micro-batch has come */
void replica_ready(struct sim *s, uint32_t r, uint32_t token, enum list_kind kind);
void replica_version(struct sim *s, uint32_t r);  /* the next parameters are here */
void replica_finished(struct sim *s, uint32_t r); /* its task */
void replica_look(struct sim *s, uint32_t r);	  /* begin the next task, or say why not */
void replica_account(struct sim *s, struct replica *r, enum hps_sim_where next);

#endif
