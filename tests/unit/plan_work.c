/* Which problems do planners meet on the models that the systems were built for? */
#include "plan_work.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "graph/graph.h"
#include "measure/measure.h"

/* What a device does: see the header. */
struct speeds {
	double flops, bytes, key_s, start_s;
};
static const struct speeds cpu = { 60e9, 10e9, 60e-9, 5e-6 };
static const double card_start_s = 40e-6;

static struct hps_fit fit(const struct speeds *d, double flops, double bytes, double keys)
{
	return (struct hps_fit){
		.c0 = d->start_s,
		.c1 = flops / d->flops + bytes / d->bytes + keys * d->key_s,
	};
}

/* The measured type. */
static enum hps_status add_core(struct plan_work *w, const struct hps_graph *g, struct hps_err *err)
{
	struct hps_layer_time *t = hps_calloc(w->model.n_layers, sizeof(*t), err);
	enum hps_status rc;

	if (!t)
		return HPS_MEMORY;
	for (uint32_t l = 0; l < w->model.n_layers; l++) {
		const struct hps_layer_cost *c = &g->cost[l];
		double moved = 2 * ((double)c->output_bytes + (double)c->row_bytes);
		double keys = (double)c->keys;

		t[l].forward = fit(&cpu, (double)c->flops_forward, moved, keys);
		t[l].backward = fit(&cpu, (double)c->flops_backward, moved, keys);
		t[l].oct = t[l].forward.c0 + t[l].backward.c0 +
			   (t[l].forward.c1 + t[l].backward.c1) * w->profile.batch;
		t[l].alpha = (t[l].forward.c1 + t[l].backward.c1) * w->profile.batch / t[l].oct;
	}
	rc = hps_profile_add(&w->profile, w->cluster.type[0].name, false, t, err);
	free(t);
	return rc;
}

static enum hps_status make_times(struct plan_work *w, struct hps_err *err)
{
	struct hps_graph g;
	enum hps_status rc = hps_graph_build(&w->model, &g, err);

	if (rc)
		return rc;
	rc = add_core(w, &g, err);
	if (!rc)
		rc = hps_profile_derive(&w->profile, &w->model, &w->cluster, err);
	for (uint32_t t = 1; !rc && t < w->cluster.n_types; t++) {
		struct hps_layer_time *x = w->profile.time + (size_t)t * w->profile.n_layers;

		if (w->cluster.type[t].device != HPS_DEVICE_CUDA)
			continue;
		for (uint32_t l = 0; l < w->profile.n_layers; l++)
			x[l].forward.c0 = x[l].backward.c0 = card_start_s;
	}
	hps_graph_release(&g);
	return rc;
}

/* PATH as a document. */
static enum hps_status open_doc(const char *kind, const char *name, struct hps_doc **doc,
				char *path, size_t room, struct hps_err *err)
{
	const char *root = getenv("HPS_ROOT");

	snprintf(path, room, "%s/testdata/%s/%s.json", root ? root : ".", kind, name);
	return hps_doc_read(path, doc, err);
}

static enum hps_status open_documents(struct plan_work *w, const char *model, const char *cluster,
				      struct hps_err *err)
{
	char path[4096];
	struct hps_at at;
	enum hps_status rc = open_doc("models", model, &w->model_doc, path, sizeof(path), err);

	if (rc)
		return rc;
	at = hps_at_root(w->model_doc, path);
	rc = hps_model_read(&at, &w->model, err);
	if (!rc)
		rc = open_doc("clusters", cluster, &w->cluster_doc, path, sizeof(path), err);
	if (rc)
		return rc;
	at = hps_at_root(w->cluster_doc, path);
	return hps_cluster_read(&at, &w->cluster, err);
}

enum hps_status plan_work_open(struct plan_work *w, const char *model, const char *cluster,
			       struct hps_err *err)
{
	const struct hps_cost_options opt = { .batch = 8000 };
	enum hps_status rc;

	memset(w, 0, sizeof(*w));
	rc = open_documents(w, model, cluster, err);
	if (!rc)
		rc = hps_profile_sizes(&w->model, NULL, &w->profile, err);
	if (!rc)
		rc = make_times(w, err);
	w->profile.link = (struct hps_link){ 1.25e9, 5e-5 };
	w->profile.shard.rows_per_s = 1e7;
	w->profile.shard.bytes_per_s = 3e9;
	w->profile.step_overhead_s = 2e-4;
	if (!rc)
		rc = hps_cost_init(&w->cost, &w->profile, &w->cluster, &opt, err);
	w->problem.cost = &w->cost;
	w->problem.seed = 1;
	if (rc)
		plan_work_close(w);
	return rc;
}

enum hps_status plan_work_floor(struct plan_work *w, double share, struct hps_err *err)
{
	struct hps_solution fastest;
	enum hps_status rc;

	w->problem.floor = 0;
	if (share <= 0)
		return HPS_OK;
	rc = hps_plan_fastest(&w->problem, &fastest, err);
	if (!rc)
		w->problem.floor = share * fastest.trial.throughput;
	hps_solution_release(&fastest);
	return rc;
}

void plan_work_close(struct plan_work *w)
{
	hps_cost_release(&w->cost);
	hps_profile_release(&w->profile);
	hps_cluster_release(&w->cluster);
	hps_model_release(&w->model);
	hps_doc_free(w->model_doc);
	hps_doc_free(w->cluster_doc);
	memset(w, 0, sizeof(*w));
}
