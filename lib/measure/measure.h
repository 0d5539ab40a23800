/* The profiler's timing: what every layer, the links and one shard cost on this machine.
 *
 * Compute is timed by the CPU clock of the thread that does it: that is what a core needs,
 * whatever else runs on a shared machine, and steadier than wall time there. Links are
 * timed by the wall clock, since waiting is what they cost. Every figure is the median over
 * rounds, after a warm-up, and each round visits all batch sizes, so that a noisy moment hits
 * all alike. A job, though, pays means: the fits (c0, c1; so OCT) are those of the medians
 * times `stretch`, the mean of the whole passes over what the layers' medians add up to.
 *
 * Layers are timed where they stand in a pass, one clock reading between two of them, forward
 * first to last and backward last to first: caches are as a real step finds them. An
 * embedding's (and negatives') time holds all that a replica's thread does for it:
 * forward the deduplication of keys, its part of the pull, pooling; backward the sums per
 * row and its part of the push. Rows come from a real shard in the same thread, whose time
 * is counted apart. A link's frames leave caches that hold other things and reach threads that
 * sleep, as after a step's compute.
 *
 * step_overhead_s is what a step costs a replica however few samples it has: one update of
 * all dense parameters by the model's optimizer, and clearing their gradients.
 */
#ifndef HPS_MEASURE_MEASURE_H
#define HPS_MEASURE_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "job/cluster.h"
#include "job/model.h"
#include "job/profile.h"
#include "tensor/backend.h"

enum { HPS_MEASURE_MAX_BATCHES = 32, HPS_MEASURE_MAX_ROUNDS = 10000 };

struct hps_measure_opts {
	const uint32_t *batch; /* n_batches ascending sizes, at least 2; NULL: around the model's */
	uint32_t n_batches;
	uint32_t rounds;  /* 0: as many as take about 6 s, 5 to 40 */
	bool quick;	  /* as few as can be, for tests */
	bool tcp;	  /* the link's transport; false: ipc */
	const char *data; /* rows to work on, as hps_reader takes them; NULL: made-up ones */
	/* Polled between passes: true ends the measurement with HPS_NO. May be NULL. */
	bool (*stopped)(void);
	/* done of total, 0..1, and what is being timed. May be NULL. */
	void (*progress)(void *ctx, double done, const char *what);
	void *ctx;
};

/* How far the figures hold together, for messages. */
struct hps_measure_report {
	uint32_t rounds;
	uint64_t rows;	       /* of data read; 0: made-up rows, keys all distinct */
	double layers_of_pass; /* sum of the layers' medians over a whole pass's median, at the
				* batch nearest to the model's */
	double pass_s;	       /* that pass */
	double stretch;	       /* what the fits are longer than the medians, as a factor */
	double worst_error;    /* largest error of a fit, of a layer with 2 % of the time or more */
	const char *worst;     /* that layer's name, borrowed from the model */
};

/* The sizes that are timed without opts.batch: B/16, B/4, B, 2B of the model's micro-batch, or
 * the like of four where B is small. Returns how many. */
uint32_t hps_measure_batches(const struct hps_model *m, uint32_t out[HPS_MEASURE_MAX_BATCHES]);

/* Time everything for a profile of one type, named `type` (copied): sizes, the type's
 * times, link, shard, step overhead. On failure *p is empty. HPS_BAD_INPUT names a line of
 * the data, HPS_NET, HPS_MEMORY; HPS_NO: stopped. */
enum hps_status hps_measure(const struct hps_model *m, const char *type,
			    const struct hps_backend *be, const struct hps_measure_opts *o,
			    struct hps_profile *p, struct hps_measure_report *report,
			    struct hps_err *err);

/* --- parts, also of use alone --- */

/* Latency and bandwidth of n ascending frames' one-way seconds: the line through them; where noise
 * leaves it no slope, what the largest frame was moved with at least. */
struct hps_link hps_link_of(const double *bytes, const double *seconds, uint32_t n);

/* Bandwidth and latency between two processes over ipc, or tcp on the loopback: half a round
 * trip of 4 KiB to 16 MiB frames (quick: to 1 MiB). */
enum hps_status hps_measure_link(const struct hps_measure_opts *o, struct hps_link *link,
				 struct hps_err *err);

/* What must be there before types and times: sizes of layers, cuts. keys (n_layers) is
 * rows looked up a sample after deduplication; NULL: none shared. No types yet. */
enum hps_status hps_profile_sizes(const struct hps_model *m, const double *keys,
				  struct hps_profile *p, struct hps_err *err);

/* Add a type: times (n_layers) are moved, the caller's are zeroed. HPS_MEMORY. */
enum hps_status hps_profile_add(struct hps_profile *p, const char *type, bool simulated,
				struct hps_layer_time *time, struct hps_err *err);

/* Take over from another host's profile the types of the cluster that p lacks, and link and
 * shard where p has none; batch sizes measured there differ: their list is left out, the
 * fit stands. told: called once for each type that both have (p keeps its own). HPS_BAD_INPUT:
 * of another model; where is `name`, the document's. */
enum hps_status hps_profile_merge(struct hps_profile *p, const struct hps_profile *other,
				  const char *name, const struct hps_cluster *c,
				  void (*told)(const char *name, const char *type),
				  struct hps_err *err);

/* Add every type that the cluster declares by another one (`like`), marked simulated: times
 * divided by its speed, of the op where stated. What is declared by a type that p lacks
 * stays out. */
enum hps_status hps_profile_derive(struct hps_profile *p, const struct hps_model *m,
				   const struct hps_cluster *c, struct hps_err *err);

/* The profile's types in the cluster's order. */
void hps_profile_sort(struct hps_profile *p, const struct hps_cluster *c);

/* The type of the cluster that this machine's CPU stands for: `wanted` if not NULL, else the
 * only one of device cpu that is neither declared nor of `have` (merged profiles; may be
 * NULL). -1: none is to be measured here. HPS_USAGE: no such type, or several.
 * HPS_DEVICE: a type that can be neither measured here nor found elsewhere. */
enum hps_status hps_measure_pick(const struct hps_cluster *c, const char *wanted,
				 const struct hps_profile *const *have, size_t n_have, int *type,
				 struct hps_err *err);

/* Tables for a person. */
enum hps_status hps_profile_text(const struct hps_profile *p, struct hps_buf *b,
				 struct hps_err *err);

#endif
