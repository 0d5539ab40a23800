/* The section readers, fed any document: no crash, no hang; a message with a place, or a
 * job that can be written, read again and laid out as a graph. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "graph/graph.h"
#include "job/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned all = HPS_MODEL | HPS_CLUSTER | HPS_PROFILE | HPS_PLAN | HPS_DEPLOYMENT;

static void must(int ok)
{
	if (!ok)
		abort();
}

static void refused(enum hps_status rc, const struct hps_err *err)
{
	must(rc == HPS_BAD_INPUT && err->status == rc);
	must(!strncmp(err->where, "fuzz", 4) && *err->msg);
}

static void lay_out(const struct hps_model *m)
{
	struct hps_err err = { 0 };
	struct hps_graph g;
	float value[8];

	must(hps_graph_build(m, &g, &err) == HPS_OK);
	must(g.layer_offset[m->n_layers] == g.n_floats);
	if (g.n_floats >= 8)
		hps_param_init_range(&g, g.n_floats - 8, 8, 1, value);
	hps_graph_release(&g);
}

/* Each section by its writer, in a document of its own. */
static struct hps_doc *write_all(const struct hps_job *job)
{
	struct hps_doc *d = hps_doc_object();
	int failed = !d || hps_doc_put(d, "hps", hps_doc_int(HPS_JOB_VERSION));

	if (job->has_model)
		failed |= hps_doc_put(d, "model", hps_model_write(&job->model));
	if (job->has_cluster)
		failed |= hps_doc_put(d, "cluster", hps_cluster_write(&job->cluster));
	if (job->has_profile)
		failed |= hps_doc_put(d, "profile", hps_profile_write(&job->profile));
	if (job->has_plan)
		failed |= hps_doc_put(d, "plan", hps_plan_write(&job->plan));
	if (job->has_deployment)
		failed |= hps_doc_put(d, "deployment", hps_deployment_write(&job->deployment));
	must(!failed);
	return d;
}

static void survives(const struct hps_job *job)
{
	struct hps_doc *once = write_all(job), *twice;
	struct hps_err err = { 0 };
	struct hps_job again;

	must(hps_job_parse(hps_doc_copy(once), "fuzz", 0, all, &again, &err) == HPS_OK);
	twice = write_all(&again);
	must(hps_doc_equal(once, twice));
	must(!job->has_model || job->model.digest == again.model.digest);
	must(!job->has_deployment ||
	     hps_deployment_id(&job->deployment) == hps_deployment_id(&again.deployment));
	hps_doc_free(once);
	hps_doc_free(twice);
	hps_job_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hps_err err = { 0 };
	struct hps_doc *d = NULL;
	struct hps_cluster c;
	struct hps_model m;
	struct hps_job job;
	struct hps_at at;
	enum hps_status rc;

	if (hps_doc_parse(data, size, "fuzz", &d, &err))
		return 0; /* fuzz_doc looks at these */
	at = hps_at_root(d, "fuzz");
	rc = hps_model_read(&at, &m, &err);
	if (rc) {
		refused(rc, &err);
	} else {
		lay_out(&m);
		hps_model_release(&m);
	}
	rc = hps_cluster_read(&at, &c, &err);
	if (rc)
		refused(rc, &err);
	else
		hps_cluster_release(&c);
	rc = hps_job_parse(d, "fuzz", 0, all, &job, &err);
	if (rc) {
		refused(rc, &err);
		return 0;
	}
	if (job.has_model)
		lay_out(&job.model);
	survives(&job);
	hps_job_release(&job);
	return 0;
}
