/* Generate Criteo-format rows from a planted non-linear truth, and the best possible AUC
 * of what was written. */
#ifndef HPS_DATA_GEN_H
#define HPS_DATA_GEN_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "data/sink.h"
#include "metric/metric.h"

struct hps_gen_opts {
	uint64_t rows, skip; /* rows skip .. skip + rows - 1 of the endless data set */
	uint64_t seed;
	uint32_t slots, dense;
	uint64_t ids;	     /* a slot, 1 .. HPS_GEN_MAX_IDS */
	double zipf;	     /* exponent: id k of a slot has weight k^-zipf; 0 = all alike */
	double interactions; /* standard deviation of the pairs' part of the logit */
	double blank_rate;   /* of every id and integer */
	double base_rate;    /* of positives, in expectation; 0 < r < 1 */
	uint32_t threads;    /* the output is the same for any number */
	enum hps_compress compress;
	bool want_auc; /* takes 16 bytes a row */
	/* Called now and then with the rows done; false = stop, HPS_IO. May be NULL. */
	bool (*go_on)(void *ctx, uint64_t done);
	void *ctx;
};

#define HPS_GEN_MAX_IDS ((uint64_t)1 << 24)

/* 10,000 rows of Criteo's shape: 26 slots of 1,000 ids, 13 integers, weak interactions. */
struct hps_gen_opts hps_gen_defaults(void);

struct hps_gen_summary {
	uint64_t rows, positives;
	double bias;
	/* Of the true probabilities against the labels that were drawn: what no model can
	 * beat, but for luck. The AUC is exact, of the true logits rounded to float. */
	struct hps_measure best_auc, best_logloss;
	struct hps_measure expected_logloss; /* the mean entropy of the true probabilities */
};

/* HPS_USAGE for options out of range. */
enum hps_status hps_gen(const struct hps_gen_opts *opts, struct hps_sink *sink,
			struct hps_gen_summary *out, struct hps_err *err);

#endif
