/* Do the sections of a job document belong together? Version, digests, layers, types and
 * hosts across sections; and the document as it grows through the pipe. */
#include "job/job.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "job/job_int.h"

/* --- sections and who makes them --- */

static const struct {
	enum hps_section section;
	const char *key, *command;
} sections[] = {
	{ HPS_MODEL, "model", "hps-profile" },
	{ HPS_CLUSTER, "cluster", "hps-profile" },
	{ HPS_PROFILE, "profile", "hps-profile" },
	{ HPS_PLAN, "plan", "hps-plan" },
	{ HPS_DEPLOYMENT, "deployment", "hps-provision" },
};

static bool *has(struct hps_job *job, enum hps_section section)
{
	switch (section) {
	case HPS_MODEL:
		return &job->has_model;
	case HPS_CLUSTER:
		return &job->has_cluster;
	case HPS_PROFILE:
		return &job->has_profile;
	case HPS_PLAN:
		return &job->has_plan;
	case HPS_DEPLOYMENT:
		break;
	}
	return &job->has_deployment;
}

static void release_section(struct hps_job *job, enum hps_section section)
{
	bool *there = has(job, section);

	if (!*there)
		return;
	*there = false;
	switch (section) {
	case HPS_MODEL:
		hps_model_release(&job->model);
		break;
	case HPS_CLUSTER:
		hps_cluster_release(&job->cluster);
		break;
	case HPS_PROFILE:
		hps_profile_release(&job->profile);
		break;
	case HPS_PLAN:
		hps_plan_release(&job->plan);
		break;
	case HPS_DEPLOYMENT:
		hps_deployment_release(&job->deployment);
		break;
	}
}

static enum hps_status read_section(const struct hps_at *at, enum hps_section section,
				    struct hps_job *job, struct hps_err *err)
{
	switch (section) {
	case HPS_MODEL:
		return hps_model_read(at, &job->model, err);
	case HPS_CLUSTER:
		return hps_cluster_read(at, &job->cluster, err);
	case HPS_PROFILE:
		return hps_profile_read(at, &job->profile, err);
	case HPS_PLAN:
		return hps_plan_read(at, &job->plan, err);
	case HPS_DEPLOYMENT:
		break;
	}
	return hps_deployment_read(at, &job->deployment, err);
}

static struct hps_doc *write_section(const struct hps_job *job, enum hps_section section)
{
	switch (section) {
	case HPS_MODEL:
		return hps_model_write(&job->model);
	case HPS_CLUSTER:
		return hps_cluster_write(&job->cluster);
	case HPS_PROFILE:
		return hps_profile_write(&job->profile);
	case HPS_PLAN:
		return hps_plan_write(&job->plan);
	case HPS_DEPLOYMENT:
		break;
	}
	return hps_deployment_write(&job->deployment);
}

/* --- what must agree between sections --- */

static enum hps_status check_digest(const struct hps_at *section, const struct hps_job *job,
				    uint64_t digest, struct hps_err *err)
{
	struct hps_at at = hps_at_member(section, "digest");
	char theirs[HPS_DIGEST_LEN], ours[HPS_DIGEST_LEN];
	enum hps_status rc;

	if (!job->has_model || digest == job->model.digest)
		return HPS_OK;
	hps_digest_text(digest, theirs);
	hps_digest_text(job->model.digest, ours);
	rc = hps_at_error(&at, err, "%s is for another model: digest %s, the model here has %s",
			  section->key, theirs, ours);
	hps_err_hint(err, "inputs, preprocess, tables, layers and loss make the digest; after a "
			  "change run the pipe again from hps-profile");
	return rc;
}

/* The layers that a plan must cover, as far as sections say; 0 = unknown. */
static uint32_t layer_count(const struct hps_job *job)
{
	if (job->has_model)
		return job->model.n_layers;
	return job->has_profile ? job->profile.n_layers : 0;
}

static enum hps_status check_cover(const struct hps_at *section, const struct hps_job *job,
				   uint32_t n_stages, uint32_t last, struct hps_err *err)
{
	struct hps_at stages = hps_at_member(section, "stages");
	struct hps_at item = hps_at_item(&stages, n_stages - 1);
	struct hps_at at = hps_at_member(&item, "last");
	uint32_t n = layer_count(job);

	if (!n || last == n - 1)
		return HPS_OK;
	return hps_at_error(&at, err, "expected %u: the stages cover all %u layers, got %u", n - 1,
			    n, last);
}

static enum hps_status check_type(const struct hps_at *at, const struct hps_job *job,
				  const char *type, struct hps_err *err)
{
	if (job->has_cluster && hps_cluster_type(&job->cluster, type) < 0)
		return hps_at_error(at, err, "the cluster has no type \"%s\"", type);
	return HPS_OK;
}

static enum hps_status check_profile(const struct hps_at *at, const struct hps_job *job,
				     struct hps_err *err)
{
	const struct hps_profile *p = &job->profile;
	const struct hps_model *m = &job->model;
	struct hps_at layers = hps_at_member(at, "layers");
	struct hps_at types = hps_at_member(at, "types");
	enum hps_status rc = check_digest(at, job, p->digest, err);

	if (!rc && job->has_model && p->n_layers != m->n_layers)
		return hps_at_error(&layers, err, "%u layers, the model has %u", p->n_layers,
				    m->n_layers);
	for (uint32_t l = 0; !rc && job->has_model && l < p->n_layers; l++) {
		struct hps_at item = hps_at_item(&layers, l);
		struct hps_at name = hps_at_member(&item, "name");

		if (strcmp(p->size[l].name, m->layer[l].name))
			rc = hps_at_expected(&name, err, "\"%s\", the model's layer",
					     m->layer[l].name);
	}
	for (uint32_t t = 0; !rc && t < p->n_types; t++) {
		struct hps_at item = hps_at_item(&types, t);
		struct hps_at name = hps_at_member(&item, "name");

		rc = check_type(&name, job, p->type[t], err);
	}
	return rc;
}

static enum hps_status check_plan(const struct hps_at *at, const struct hps_job *job,
				  struct hps_err *err)
{
	const struct hps_plan *p = &job->plan;
	struct hps_at stages = hps_at_member(at, "stages");
	struct hps_at digest = hps_at_member(at, "digest");
	enum hps_status rc = check_digest(at, job, p->digest, err);

	if (!rc && job->has_profile && p->digest != job->profile.digest)
		return hps_at_error(&digest, err, "plan is for another profile's model");
	if (!rc)
		rc = check_cover(at, job, p->n_stages, p->stage[p->n_stages - 1].last, err);
	for (uint32_t i = 0; !rc && i < p->n_stages; i++) {
		struct hps_at item = hps_at_item(&stages, i);
		struct hps_at type = hps_at_member(&item, "type");

		rc = check_type(&type, job, p->stage[i].type, err);
		if (!rc && job->has_profile &&
		    hps_profile_type(&job->profile, p->stage[i].type) < 0)
			rc = hps_at_error(&type, err, "the profile has no type \"%s\"",
					  p->stage[i].type);
	}
	return rc;
}

static enum hps_status check_host(const struct hps_at *node, const struct hps_index *hosts,
				  const char *host, struct hps_err *err)
{
	struct hps_at at = hps_at_member(node, "host");

	if (hps_index_find(hosts, host) < 0)
		return hps_at_error(&at, err, "the cluster has no host \"%s\"", host);
	return HPS_OK;
}

static enum hps_status check_hosts(const struct hps_at *at, const struct hps_job *job,
				   struct hps_err *err)
{
	const struct hps_deployment *d = &job->deployment;
	struct hps_at coordinator = hps_at_member(at, "coordinator");
	struct hps_at shards = hps_at_member(at, "shards");
	struct hps_at stages = hps_at_member(at, "stages");
	struct hps_index hosts = { 0 };
	enum hps_status rc;

	if (!job->has_cluster)
		return HPS_OK;
	rc = hps_index_init(&hosts, job->cluster.n_hosts, err);
	for (uint32_t i = 0; !rc && i < job->cluster.n_hosts; i++)
		hps_index_add(&hosts, job->cluster.host[i].name, i);
	if (!rc)
		rc = check_host(&coordinator, &hosts, d->coordinator.host, err);
	for (uint32_t i = 0; !rc && i < d->n_shards; i++) {
		struct hps_at item = hps_at_item(&shards, i);

		rc = check_host(&item, &hosts, d->shard[i].host, err);
	}
	for (uint32_t i = 0; !rc && i < d->n_stages; i++) {
		struct hps_at stage = hps_at_item(&stages, i);
		struct hps_at replicas = hps_at_member(&stage, "replicas");

		for (uint32_t k = 0; !rc && k < d->stage[i].n_replicas; k++) {
			struct hps_at item = hps_at_item(&replicas, k);

			rc = check_host(&item, &hosts, d->stage[i].replica[k].host, err);
		}
	}
	hps_index_release(&hosts);
	return rc;
}

static enum hps_status check_deployment(const struct hps_at *at, const struct hps_job *job,
					struct hps_err *err)
{
	const struct hps_deployment *d = &job->deployment;
	struct hps_at stages = hps_at_member(at, "stages");
	enum hps_status rc = check_digest(at, job, d->digest, err);

	if (!rc)
		rc = check_cover(at, job, d->n_stages, d->stage[d->n_stages - 1].last, err);
	for (uint32_t i = 0; !rc && i < d->n_stages; i++) {
		struct hps_at item = hps_at_item(&stages, i);
		struct hps_at type = hps_at_member(&item, "type");

		rc = check_type(&type, job, d->stage[i].type, err);
	}
	return rc ? rc : check_hosts(at, job, err);
}

static enum hps_status check_section(const struct hps_at *at, enum hps_section section,
				     const struct hps_job *job, struct hps_err *err)
{
	switch (section) {
	case HPS_PROFILE:
		return check_profile(at, job, err);
	case HPS_PLAN:
		return check_plan(at, job, err);
	case HPS_DEPLOYMENT:
		return check_deployment(at, job, err);
	case HPS_MODEL:
	case HPS_CLUSTER:
		break;
	}
	return HPS_OK;
}

/* --- the document --- */

static enum hps_status check_version(const struct hps_at *root, struct hps_err *err)
{
	struct hps_at at = hps_at_member(root, "hps");
	struct hps_at layers = hps_at_member(root, "layers");
	struct hps_at types = hps_at_member(root, "types");
	enum hps_status rc;
	int64_t version;

	rc = hps_at_object(root, err);
	if (rc)
		return rc;
	if (hps_at_absent(&at)) {
		rc = hps_at_error(root, err, "not a job document: no member \"hps\"");
		if (!hps_at_absent(&layers))
			hps_err_hint(err,
				     "this is a model; hps-profile makes a job document of it");
		else if (!hps_at_absent(&types))
			hps_err_hint(err, "this is a cluster; hps-profile takes it after a model");
		return rc;
	}
	rc = hps_at_int(&at, 1, HPS_DOC_INT_MAX, &version, err);
	if (!rc && version > HPS_JOB_VERSION)
		return hps_at_error(&at, err,
				    "made by a newer hps (document version %" PRId64
				    ", this one reads %d)",
				    version, HPS_JOB_VERSION);
	return rc;
}

/* A section that is needed and not there. Of a foreign profile there will never be a model. */
static enum hps_status missing(const struct hps_at *root, size_t section, struct hps_err *err)
{
	struct hps_at profile = hps_at_member(root, "profile");
	enum hps_status rc = hps_at_error(root, err, "no section \"%s\"", sections[section].key);
	uint64_t digest = 1;

	hps_err_hint(err, "%s adds it", sections[section].command);
	if (sections[section].section == HPS_MODEL &&
	    !hps_get_digest(&profile, "digest", HPS_REQUIRED, &digest, NULL) && !digest) {
		rc = hps_at_error(root, err,
				  "no section \"model\": this is a job of a foreign profile, which "
				  "knows what layers cost, not what they compute");
		hps_err_hint(err, "it can be planned and provisioned, not trained");
	}
	return rc;
}

static enum hps_status read_all(const struct hps_at *root, unsigned need, unsigned trust,
				struct hps_job *job, struct hps_err *err)
{
	enum hps_status rc = check_version(root, err);

	for (size_t i = 0; !rc && i < HPS_COUNT(sections); i++) {
		struct hps_at at = hps_at_member(root, sections[i].key);

		if (hps_at_absent(&at)) {
			if (!(need & sections[i].section))
				continue;
			return missing(root, i, err);
		}
		if (!((need | trust) & sections[i].section))
			continue;
		rc = read_section(&at, sections[i].section, job, err);
		if (rc)
			return rc;
		*has(job, sections[i].section) = true;
		rc = check_section(&at, sections[i].section, job, err);
	}
	return rc;
}

enum hps_status hps_job_parse(struct hps_doc *doc, const char *name, unsigned need, unsigned trust,
			      struct hps_job *job, struct hps_err *err)
{
	struct hps_at root = hps_at_root(doc, name);
	enum hps_status rc;

	memset(job, 0, sizeof(*job));
	job->doc = doc;
	rc = read_all(&root, need, trust, job, err);
	if (rc)
		hps_job_release(job);
	return rc;
}

enum hps_status hps_job_read(const char *path, unsigned need, unsigned trust, struct hps_job *job,
			     struct hps_err *err)
{
	struct hps_doc *doc;
	enum hps_status rc;

	memset(job, 0, sizeof(*job));
	rc = hps_doc_read(path, &doc, err);
	return rc ? rc : hps_job_parse(doc, path, need, trust, job, err);
}

enum hps_status hps_job_update(struct hps_job *job, enum hps_section section, struct hps_err *err)
{
	struct hps_doc *value = write_section(job, section);
	const char *key = NULL;

	if (!value)
		goto no_memory;
	if (!job->doc) {
		job->doc = hps_doc_object();
		if (!job->doc || hps_doc_put(job->doc, "hps", hps_doc_int(HPS_JOB_VERSION)))
			goto no_memory;
	}
	for (size_t i = 0; i < HPS_COUNT(sections); i++) {
		if (sections[i].section == section) {
			key = sections[i].key;
		} else if (key && sections[i].section != HPS_CLUSTER) {
			release_section(job, sections[i].section);
			hps_doc_remove(job->doc, sections[i].key);
		}
	}
	if (hps_doc_put(job->doc, key, value)) {
		value = NULL;
		goto no_memory;
	}
	*has(job, section) = true;
	return HPS_OK;
no_memory:
	hps_doc_free(value);
	return hps_err_set(err, HPS_MEMORY, "no memory for the job document");
}

void hps_job_release(struct hps_job *job)
{
	for (size_t i = 0; i < HPS_COUNT(sections); i++)
		release_section(job, sections[i].section);
	hps_doc_free(job->doc);
	job->doc = NULL;
}

/* --- one section of a file --- */

/* The section's own document, or the one that holds it: sets *at. A model is known by its
 * layers, a cluster by its types: one given for the other is told as such. */
static enum hps_status find_section(const struct hps_at *root, const char *key,
				    struct hps_at *member, const struct hps_at **at,
				    struct hps_err *err)
{
	struct hps_at version = hps_at_member(root, "hps");
	struct hps_at layers = hps_at_member(root, "layers");
	struct hps_at types = hps_at_member(root, "types");
	bool model = !strcmp(key, "model");
	enum hps_status rc;

	*at = root;
	if (hps_at_absent(&version)) {
		if (hps_at_absent(model ? &layers : &types) &&
		    !hps_at_absent(model ? &types : &layers))
			return hps_at_error(root, err, "expected a %s, this is a %s", key,
					    model ? "cluster" : "model");
		return HPS_OK;
	}
	rc = check_version(root, err);
	if (rc)
		return rc;
	*member = hps_at_member(root, key);
	*at = member;
	if (!hps_at_absent(member))
		return HPS_OK;
	return hps_at_error(root, err, "a job document without section \"%s\"", key);
}

enum hps_status hps_model_load(const char *path, struct hps_model *m, struct hps_err *err)
{
	const struct hps_at *at;
	struct hps_at root, member;
	struct hps_doc *doc;
	enum hps_status rc;

	memset(m, 0, sizeof(*m));
	rc = hps_doc_read(path, &doc, err);
	if (rc)
		return rc;
	root = hps_at_root(doc, path);
	rc = find_section(&root, "model", &member, &at, err);
	if (!rc)
		rc = hps_model_read(at, m, err);
	hps_doc_free(doc);
	return rc;
}

enum hps_status hps_cluster_load(const char *path, struct hps_cluster *c, struct hps_err *err)
{
	const struct hps_at *at;
	struct hps_at root, member;
	struct hps_doc *doc;
	enum hps_status rc;

	memset(c, 0, sizeof(*c));
	rc = hps_doc_read(path, &doc, err);
	if (rc)
		return rc;
	root = hps_at_root(doc, path);
	rc = find_section(&root, "cluster", &member, &at, err);
	if (!rc)
		rc = hps_cluster_read(at, c, err);
	hps_doc_free(doc);
	return rc;
}
