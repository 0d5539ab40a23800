/* From a settled plan to a deployment: hosts, endpoints, synchronisation, prediction. Pure: paths
 * and the job's name come from the caller.
 *
 * Placement. Replicas, stage by stage, take free units of their type host by host in the cluster's
 * order, so that a stage is on few hosts. Each shard then goes to the host with a free PS core
 * whose cores have the least to do (replicas of CPU types and shards count one each). The
 * coordinator is with the first shard.
 *
 * Endpoints. ipc (all on one host): RUN_DIR/c, RUN_DIR/s0, RUN_DIR/r0.1 (stage.replica).
 * tcp: the host's address, ports counted from base_port at each address: coordinator, shards,
 * replicas. Hosts of one address (all of loopback is one) share its ports.
 *
 * Prediction: evaluator `step` with the placement, whatever the plan was found with; asp has no
 * barrier, so its steady state.
 */
#ifndef HPS_PLAN_DEPLOY_H
#define HPS_PLAN_DEPLOY_H

#include "plan/plan.h"

enum hps_transport { HPS_TRANSPORT_AUTO, HPS_TRANSPORT_IPC, HPS_TRANSPORT_TCP };

struct hps_deploy_options {
	const char *job;	      /* its name; a legal document name */
	const char *run_dir;	      /* of ipc sockets */
	enum hps_transport transport; /* auto: ipc on one host, else tcp */
	uint16_t base_port;
	uint32_t epochs;
	uint64_t seed;
	const struct hps_model *model; /* for memory; NULL = unknown */
	const char *method;	       /* how units were settled; NULL = not said */
	double samples;		       /* of an epoch, to total the cost; 0 = unknown */
};

/* What a host gets and needs. */
struct hps_host_use {
	uint32_t replicas, shards;
	double memory_bytes; /* needed: replicas, and its share of the tables */
	double cores_use;    /* HT over the cycle: share of the cores' time */
};

struct hps_deploy_report {
	struct hps_cost_result cost;  /* by `step`, placed */
	struct hps_stage_cost *stage; /* n_stages */
	struct hps_host_use *host;    /* n_hosts of the cluster */
};
void hps_deploy_report_release(struct hps_deploy_report *r);

/* d is owned by the caller (hps_deployment_release), r may be NULL. HPS_NO: hosts lack units or
 * PS cores (which type, how many). HPS_USAGE: a transport or port that cannot be. HPS_BAD_INPUT:
 * hosts whose addresses do not let them meet: no ports for all that share one, or one of them is
 * loopback and another is not. */
enum hps_status hps_deploy(const struct hps_problem *p, const struct hps_solution *s,
			   const struct hps_deploy_options *opt, struct hps_deployment *d,
			   struct hps_deploy_report *r, struct hps_err *err);

/* Figures of a report; without r->host, no hosts. hps_usage_release. */
enum hps_status hps_usage_of(const struct hps_problem *p, const struct hps_solution *s,
			     const struct hps_deploy_report *r,
			     const struct hps_deploy_options *opt, struct hps_usage *u,
			     struct hps_err *err);

/* For a person: stages with their slack, use of types and hosts, money. r NULL: on paper, no
 * hosts. */
enum hps_status hps_deploy_text(const struct hps_problem *p, const struct hps_solution *s,
				const struct hps_deploy_report *r,
				const struct hps_deploy_options *opt, struct hps_buf *b,
				struct hps_err *err);

#endif
