/* The stage replicas that a job puts on one host: what hps-work is.
 *
 *   main thread                    replica threads             feeder, reader threads
 *   agent + socket to the          one replica and its         rows for first-stage
 *   coordinator; events out        sockets each (runner.h)     replicas (feeder.h)
 *        --- orders, batches -------> inbox
 *        <-- events, failures ------- tray
 */
#ifndef HPS_TRAIN_WORK_H
#define HPS_TRAIN_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "job/job.h"

enum hps_work_mode { HPS_WORK_TRAIN, HPS_WORK_EVAL, HPS_WORK_PREDICT };

struct hps_work_opts {
	const struct hps_job *job; /* model and deployment; borrowed */
	const char *host;	   /* a host of the deployment */
	enum hps_work_mode mode;
	const char *const *data; /* n_data operands; none: standard input */
	size_t n_data;
	const char *const *test; /* n_test */
	size_t n_test;
	uint32_t epochs; /* 0: the deployment's */
	uint64_t skip_bad, shuffle_rows;
	uint64_t first_row, end_row;	       /* of data; end 0: to the end */
	uint64_t test_first_row, test_end_row; /* of test */
	double timeout_s, dead_after_s;
	uint64_t log_every;
	uint64_t seed; /* of shuffling and negatives */
	uint32_t parsers;
};

/* Run until the job is done. A host without replicas has nothing to do: HPS_OK at once.
 * Polls hps_sig_caught: the first signal ends the job after its step. Events go to standard
 * output. */
enum hps_status hps_work_run(const struct hps_work_opts *o, struct hps_err *err);

/* The hosts of a deployment, one a line, on standard output. */
enum hps_status hps_work_hosts(const struct hps_deployment *d, struct hps_err *err);

#endif
