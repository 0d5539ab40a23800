/* The usage part of a deployment: what its units, shards and hosts do, need and cost, as the cost
 * model expects. It describes: nothing that runs depends on it, hps_deployment_id leaves it out.
 *
 *   { "method": "exact", "floor_samples_per_s": 30000, "utilisation": 0.82,
 *     "ps_utilisation": 0.4, "cost_per_sample": 1e-9,
 *     "samples": 45840617, "hours": 0.2, "dollars": 0.03,
 *     "stages": [ { "slack_s": 1e-7, "utilisation": 0.9 }, ... ],
 *     "types": [ { "name": "cpu", "units": 3, "utilisation": 0.8, "price_per_hour": 0.12 }, ... ],
 *     "hosts": [ { "name": "localhost", "replicas": 3, "shards": 1, "utilisation": 0.9,
 *                  "needs_bytes": 1e8, "has_bytes": 2e9 }, ... ] }
 *
 * method and names must be there; other defaults: numbers 0, arrays empty. A utilisation is the
 * share of the time that is paid in which there is something to do: of a stage or type the larger
 * of computing and transferring, of a host that of its cores; in all, by money. slack_s: seconds a
 * sample that a stage could take longer. samples: of all epochs; 0: unknown, then hours and dollars
 * are 0. */
#ifndef HPS_JOB_USAGE_H
#define HPS_JOB_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include "doc/doc.h"

struct hps_usage_stage {
	double slack_s, utilisation;
};

struct hps_usage_type {
	char *name;
	uint32_t units;
	double utilisation, price_per_hour;
};

struct hps_usage_host {
	char *name;
	uint32_t replicas, shards;
	double utilisation;
	double needs_bytes, has_bytes; /* has 0: not stated */
};

struct hps_usage {
	char *method;
	double floor_samples_per_s;
	double utilisation, ps_utilisation;
	double cost_per_sample;
	double samples, hours, dollars;
	struct hps_usage_stage *stage;
	struct hps_usage_type *type; /* those that are used */
	struct hps_usage_host *host; /* likewise */
	uint32_t n_stages, n_types, n_hosts;
};

enum hps_status hps_usage_read(const struct hps_at *at, struct hps_usage *u, struct hps_err *err);
struct hps_doc *hps_usage_write(const struct hps_usage *u);
void hps_usage_release(struct hps_usage *u);

#endif
