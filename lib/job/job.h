/* The job document: one object that grows as it flows through the pipe. */
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
	bool has_model, has_cluster, has_profile, has_plan, has_deployment;
	struct hps_model model;
	struct hps_cluster cluster;
	struct hps_profile profile;
	struct hps_plan plan;
	struct hps_deployment deployment;
};

enum hps_section {
	HPS_MODEL = 1, HPS_CLUSTER = 2, HPS_PROFILE = 4, HPS_PLAN = 8, HPS_DEPLOYMENT = 16,
};

/* Read and check a job document: version, every section in it, and that they fit
 * together (digests, layer counts, type names). Sections in `need` (a set of
 * enum hps_section) must be there; the message says which command adds a missing one.
 * `trust` is a set whose sections are read; others are kept in doc unread. */
enum hps_status hps_job_read(const char *path, unsigned need, unsigned trust, struct hps_job *job,
			     struct hps_err *err);
enum hps_status hps_job_parse(struct hps_doc *doc /* taken */, const char *name, unsigned need,
			      unsigned trust, struct hps_job *job, struct hps_err *err);
/* Replace a section of job->doc by the struct's content; sections after it in the
 * pipe (a plan of an older profile, say) are removed. */
enum hps_status hps_job_update(struct hps_job *job, enum hps_section section, struct hps_err *err);
void hps_job_release(struct hps_job *job);

#endif
