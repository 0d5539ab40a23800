/* The parameter servers that a job puts on one host: a thread for each shard, and the coordinator
 * where the deployment puts it.
 *
 *   main thread                           shard thread i
 *   coordinator (or member) + its socket  hps_shard + its ROUTER socket
 *        | order: save, stop                   ^
 *        +---------- under a lock -------------+
 *        ^ saved, failed (wakes the main thread's socket)
 *
 * A thread owns its shard and socket from start to end; only orders and their outcome are shared.
 */
#ifndef HPS_SERVE_SERVE_H
#define HPS_SERVE_SERVE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "job/job.h"

struct hps_serve_opts {
	const struct hps_job *job; /* model and deployment; borrowed */
	const char *host;	   /* which part runs here; NULL: all of a single-host job, else the
				    * host of this machine's name */
	const char *state;   /* directory to load from at the start and to save in; NULL: none */
	bool keep;	     /* serve one run after the other, and wait for ever */
	double timeout_s;    /* for peers to come; with keep: not used */
	double dead_after_s; /* 0: the coordinator's default */
};

/* Which host's part runs here: o->host, or as said there. HPS_USAGE: the deployment has no such
 * host; the hint lists those it has. *host is borrowed from the job. */
enum hps_status hps_serve_host(const struct hps_job *job, const char *asked, const char **host,
			       struct hps_err *err);
bool hps_serve_has_shards(const struct hps_job *job, const char *host);

/* Serve until the last replica has left (keep: until a signal, or a run that fails: its shards may
 * be between two steps). A host without shards has nothing to do: HPS_OK at once. Polls
 * hps_sig_caught: the first signal ends the run after its step, saves and returns. */
enum hps_status hps_serve_run(const struct hps_serve_opts *o, struct hps_err *err);

#endif
