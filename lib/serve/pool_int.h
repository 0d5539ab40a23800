/* The shard threads of a process. For lib/serve only. */
#ifndef HPS_SERVE_POOL_INT_H
#define HPS_SERVE_POOL_INT_H

#include "coord/coord.h"
#include "net/net.h"
#include "ps/shard.h"
#include "serve/state.h"

struct pool;

/* For the shards given (n_shards of the job, NULL where not here; borrowed): sockets of ctx, which
 * listen when this returns. wake: whose hps_net_recv returns when something happened. */
enum hps_status hps_pool_new(const struct hps_job *job, struct hps_shard **shard,
			     struct hps_net_ctx *ctx, uint64_t incarnation, struct hps_net *wake,
			     struct pool **out, struct hps_err *err);
/* Start the threads: from now on the shards are theirs. */
enum hps_status hps_pool_start(struct pool *p, struct hps_err *err);
/* Stops the threads, waits for them, closes the sockets. NULL is fine. */
void hps_pool_free(struct pool *p);

/* Have every shard count its tables, and write its file as w says (w->shard is not used; w NULL:
 * only count). w is copied, w->tmp must live until it is done. */
void hps_pool_save(struct pool *p, const struct hps_state_write *w);

enum pool_event { POOL_NOTHING, POOL_SAVED, POOL_FAILED };
/* SAVED once all shards have: table (n_tables of the model) gets the sums, *step the most updates
 * of a shard. FAILED (once): a thread has failed, err says how. */
enum pool_event hps_pool_poll(struct pool *p, struct hps_coord_table *table, uint64_t *step,
			      struct hps_err *err);

#endif
