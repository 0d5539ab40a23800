/* The job document: one object that grows as it flows through the pipe.
 *
 *   { "hps": 1, "model": {...}, "cluster": {...}, "profile": {...}, "plan": {...},
 *     "deployment": {...} }
 *
 * and any other members, which are kept as they are.
 */
#ifndef HPS_JOB_JOB_H
#define HPS_JOB_JOB_H

#include "job/cluster.h"
#include "job/deployment.h"
#include "job/model.h"
#include "job/plan.h"
#include "job/profile.h"

enum { HPS_JOB_VERSION = 1 };

struct hps_job {
	struct hps_doc *doc; /* the whole tree, unknown sections included */
	/* read and checked; a section that is not in `trust` is in doc alone */
	bool has_model, has_cluster, has_profile, has_plan, has_deployment;
	struct hps_model model;
	struct hps_cluster cluster;
	struct hps_profile profile;
	struct hps_plan plan;
	struct hps_deployment deployment;
};

enum hps_section {
	HPS_MODEL = 1,
	HPS_CLUSTER = 2,
	HPS_PROFILE = 4,
	HPS_PLAN = 8,
	HPS_DEPLOYMENT = 16,
};

/* Read and check a job document: version, every section in it, and that they fit
 * together (digests, layer counts and names, types, hosts). Sections in `need` (a set of
 * enum hps_section) must be there; the message says which command adds a missing one.
 * `trust` is a set whose sections are read; others are kept in doc unread. */
enum hps_status hps_job_read(const char *path, unsigned need, unsigned trust, struct hps_job *job,
			     struct hps_err *err);
enum hps_status hps_job_parse(struct hps_doc *doc /* taken */, const char *name, unsigned need,
			      unsigned trust, struct hps_job *job, struct hps_err *err);
/* Replace a section of job->doc by the struct's content (a zeroed job gets a new document);
 * sections made from it, later in the pipe, are removed and released: of model and cluster,
 * which are both inputs, that is profile, plan and deployment. Sets has_SECTION. */
enum hps_status hps_job_update(struct hps_job *job, enum hps_section section, struct hps_err *err);
void hps_job_release(struct hps_job *job);

/* The model, or the cluster, of a file: the bare section as people write it, or a job
 * document that holds it. */
enum hps_status hps_model_load(const char *path, struct hps_model *m, struct hps_err *err);
enum hps_status hps_cluster_load(const char *path, struct hps_cluster *c, struct hps_err *err);

#endif
