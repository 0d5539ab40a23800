/* hps-profile: what does each layer of a model cost on the devices here, and what links and a
 * parameter server? Adds the section "profile" to a job document, or makes one of a profile that
 * another tool measured. See hps-profile(1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/out.h"
#include "base/progress.h"
#include "base/sig.h"
#include "base/clock.h"
#include "import/import.h"
#include "job/job.h"
#include "measure/measure.h"

enum { BAR = 1000 }; /* steps of the progress bar */

struct args {
	const char *model, *cluster; /* paths; NULL: standard input, this machine */
	const char *batches, *transport, *type, *import;
	struct hps_opt_list merge;
	int64_t rounds, batch_size;
	enum hps_import_kind kind; /* of import */
	struct hps_measure_opts measure;
	uint32_t batch[HPS_MEASURE_MAX_BATCHES];
};

static bool stopped(void)
{
	return hps_sig_caught() != 0;
}

static void progress(void *ctx, double done, const char *what)
{
	hps_progress_set((uint64_t)(done * BAR), what);
}

/* "1,16,256" */
static enum hps_status parse_batches(struct args *a, struct hps_err *err)
{
	const char *p = a->batches;
	uint32_t n = 0;

	while (p) {
		const char *comma = strchr(p, ',');
		size_t len = comma ? (size_t)(comma - p) : strlen(p);
		char word[24] = "";
		int64_t v;

		if (len < sizeof(word))
			snprintf(word, sizeof(word), "%.*s", (int)len, p);
		if (hps_parse_int(word, 1, 1 << 24, &v, NULL) != HPS_OK ||
		    n == HPS_MEASURE_MAX_BATCHES || (n && (uint32_t)v <= a->batch[n - 1]))
			return hps_err_set(err, HPS_USAGE,
					   "--batches: expected 2 to %d ascending sizes like "
					   "\"16,64,256\", got \"%s\"",
					   HPS_MEASURE_MAX_BATCHES, a->batches);
		a->batch[n++] = (uint32_t)v;
		p = comma ? comma + 1 : NULL;
	}
	if (n < 2)
		return hps_err_set(err, HPS_USAGE,
				   "--batches: a line needs two sizes at least, got \"%s\"",
				   a->batches);
	a->measure.batch = a->batch;
	a->measure.n_batches = n;
	return HPS_OK;
}

static int is_stdin(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

/* What has no meaning with --import, or without it. */
static enum hps_status check_import(struct args *a, struct hps_err *err)
{
	const struct {
		const char *name;
		bool given;
	} timing[] = {
		{ "--data", a->measure.data != NULL }, { "--batches", a->batches != NULL },
		{ "--rounds", a->rounds > 0 },	       { "--transport", a->transport != NULL },
		{ "--merge", a->merge.n > 0 },	       { "--quick", a->measure.quick },
	};
	enum hps_status st;

	if (!a->import)
		return a->batch_size ? hps_err_set(err, HPS_USAGE, "--batch is for --import")
				     : HPS_OK;
	st = hps_import_kind(a->import, &a->kind, err);
	if (st == HPS_OK && !a->cluster)
		return hps_err_set(err, HPS_USAGE,
				   "--import needs a profile and CLUSTER, which has its types");
	if (st == HPS_OK && a->kind == HPS_IMPORT_SAILOR && a->type)
		return hps_err_set(err, HPS_USAGE,
				   "--type: the folders of a sailor profile name its types");
	for (size_t i = 0; i < sizeof(timing) / sizeof(*timing) && st == HPS_OK; i++)
		if (timing[i].given)
			return hps_err_set(err, HPS_USAGE, "%s: with --import nothing is timed",
					   timing[i].name);
	return st;
}

static enum hps_status check_args(struct args *a, struct hps_err *err)
{
	int from_stdin =
		!a->model + is_stdin(a->model) + is_stdin(a->cluster) + is_stdin(a->measure.data);
	enum hps_status st;

	for (size_t i = 0; i < a->merge.n; i++)
		from_stdin += is_stdin(a->merge.item[i]);
	if (from_stdin > 1)
		return hps_err_set(err, HPS_USAGE,
				   "standard input can be only one of MODEL, CLUSTER, --data "
				   "and --merge");
	if (a->transport && strcmp(a->transport, "ipc") != 0 && strcmp(a->transport, "tcp") != 0)
		return hps_err_set(err, HPS_USAGE,
				   "--transport: expected \"ipc\" or \"tcp\", got \"%s\"",
				   a->transport);
	st = check_import(a, err);
	if (st != HPS_OK)
		return st;
	a->measure.rounds = (uint32_t)a->rounds;
	a->measure.stopped = stopped;
	a->measure.progress = progress;
	return a->batches ? parse_batches(a, err) : HPS_OK;
}

/* The model, bare or in a job document, whose other sections stay. */
static enum hps_status read_model(const char *path, struct hps_job *job, struct hps_err *err)
{
	const char *name = !path || strcmp(path, "-") == 0 ? "standard input" : path;
	struct hps_doc *doc;
	struct hps_at root, version;
	enum hps_status st = hps_doc_read(path, &doc, err);

	if (st != HPS_OK)
		return st;
	root = hps_at_root(doc, name);
	version = hps_at_member(&root, "hps");
	if (!hps_at_absent(&version))
		return hps_job_parse(doc, name, HPS_MODEL, HPS_CLUSTER, job, err);
	st = hps_model_read(&root, &job->model, err);
	job->has_model = st == HPS_OK;
	hps_doc_free(doc);
	return st == HPS_OK ? hps_job_update(job, HPS_MODEL, err) : st;
}

static enum hps_status read_cluster(const char *path, struct hps_job *job, struct hps_err *err)
{
	struct hps_cluster c;
	enum hps_status st;

	if (!path && job->has_cluster)
		return HPS_OK;
	st = path ? hps_cluster_load(path, &c, err)
		  : hps_cluster_here((uint32_t)hps_cpu_count(), &c, err);
	if (st != HPS_OK)
		return st;
	if (job->has_cluster)
		hps_cluster_release(&job->cluster);
	job->cluster = c;
	job->has_cluster = true;
	return hps_job_update(job, HPS_CLUSTER, err);
}

/* Profiles of other hosts, n of the list's; each is checked against the model when it is
 * merged. */
struct others {
	struct hps_job *job;
	const struct hps_profile **profile;
	size_t n;
};

static enum hps_status read_others(const struct hps_opt_list *list, struct others *o,
				   struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	o->job = hps_calloc(list->n, sizeof(*o->job), err);
	o->profile = hps_calloc(list->n, sizeof(*o->profile), err);
	if (!o->job || !o->profile)
		return HPS_MEMORY;
	while (o->n < list->n && st == HPS_OK) {
		st = hps_job_read(list->item[o->n], HPS_PROFILE, HPS_MODEL, &o->job[o->n], err);
		if (st == HPS_OK) {
			o->profile[o->n] = &o->job[o->n].profile;
			o->n++;
		}
	}
	return st;
}

static void release_others(struct others *o)
{
	while (o->job && o->n)
		hps_job_release(&o->job[--o->n]);
	free(o->job);
	free(o->profile);
}

static void tell_conflict(const char *name, const char *type)
{
	hps_warn("%s: type \"%s\" is measured already: kept the first", name, type);
}

static void tell_report(const struct args *a, const struct hps_measure_report *r)
{
	if (r->rows == 0)
		hps_info("keys of a batch are taken as all distinct; --data FILE counts them");
	hps_verbose(
		"%u rounds, %llu rows of data; a whole pass takes %.3g ms, its layers add up "
		"to %.3f of it, on the average passes take %.3f of the layers' medians; the worst "
		"fit is off by %.1f %% (layer %s)",
		r->rounds, (unsigned long long)r->rows, 1e3 * r->pass_s, r->layers_of_pass,
		r->stretch, 100 * r->worst_error, r->worst ? r->worst : "-");
	if (a->measure.quick)
		return;
	if (r->layers_of_pass < 0.85 || r->layers_of_pass > 1.15)
		hps_warn("the layers add up to %.2f of a whole pass: this machine is busy; "
			 "profile again, or raise --rounds",
			 r->layers_of_pass);
	if (r->worst_error > 0.25)
		hps_warn(
			"layer \"%s\": its time is no line over the batch, the fit is off by %.0f %%",
			r->worst, 100 * r->worst_error);
}

static void tell_missing(const struct hps_job *job)
{
	for (uint32_t t = 0; t < job->cluster.n_types; t++)
		if (hps_profile_type(&job->profile, job->cluster.type[t].name) < 0)
			hps_warn(
				"type \"%s\" has no times yet: join its host's profile with --merge",
				job->cluster.type[t].name);
}

/* Fill job->profile; the caller's to release even on failure. */
static enum hps_status make_profile(struct args *a, const struct others *o, struct hps_job *job,
				    struct hps_err *err)
{
	struct hps_measure_report report = { 0 };
	const struct hps_backend *be;
	enum hps_status st;
	int type;

	st = hps_measure_pick(&job->cluster, a->type, o->profile, o->n, &type, err);
	if (st != HPS_OK)
		return st;
	/* before minutes are spent on it */
	for (size_t i = 0; i < o->n; i++) {
		struct hps_profile probe;

		st = hps_profile_sizes(&job->model, NULL, &probe, err);
		if (st == HPS_OK)
			st = hps_profile_merge(&probe, o->profile[i], a->merge.item[i],
					       &job->cluster, NULL, err);
		hps_profile_release(&probe);
		if (st != HPS_OK)
			return st;
	}
	if (type >= 0) {
		a->measure.tcp =
			a->transport ? strcmp(a->transport, "tcp") == 0 : job->cluster.n_hosts > 1;
		st = hps_backend_for(job->cluster.type[type].device, &be, err);
		if (st == HPS_OK) {
			hps_progress_start("profile", BAR);
			st = hps_measure(&job->model, job->cluster.type[type].name, be, &a->measure,
					 &job->profile, &report, err);
			hps_progress_end();
		}
		if (st == HPS_OK)
			tell_report(a, &report);
	} else {
		st = hps_profile_sizes(&job->model, NULL, &job->profile, err);
	}
	for (size_t i = 0; i < o->n && st == HPS_OK; i++)
		st = hps_profile_merge(&job->profile, o->profile[i], a->merge.item[i],
				       &job->cluster, tell_conflict, err);
	if (st == HPS_OK)
		st = hps_profile_derive(&job->profile, &job->model, &job->cluster, err);
	if (st == HPS_OK) {
		hps_profile_sort(&job->profile, &job->cluster);
		tell_missing(job);
	}
	return st;
}

static enum hps_status write_result(const struct hps_job *job, enum hps_form form,
				    struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status st;

	if (form != HPS_FORM_TEXT)
		return hps_doc_write(job->doc, form, err);
	st = hps_profile_text(&job->profile, &b, err);
	if (st == HPS_OK)
		st = hps_out_text(b.data, b.len, err);
	hps_buf_release(&b);
	return st;
}

static void tell_import(const struct hps_profile *p, const struct hps_import_report *r)
{
	if (r->batch_found)
		hps_info("%u layers; a batch is %g samples, as the profile tells (or else --batch)",
			 p->n_layers, p->batch);
	hps_verbose("%u of %u types measured, the first is \"%s\"; %u input nodes dropped",
		    r->n_measured, p->n_types, r->type, r->n_dropped);
}

/* Another tool's profile and the cluster as a new job document, without a model. */
static enum hps_status import(const struct args *a, struct hps_job *job, struct hps_err *err)
{
	const struct hps_import_options o = { .type = a->type, .batch = (double)a->batch_size };
	struct hps_import_report report;
	enum hps_status st = read_cluster(a->cluster, job, err);

	if (st == HPS_OK)
		st = hps_import(a->kind, a->model, &job->cluster, &o, &job->profile, &report, err);
	if (st == HPS_OK) {
		tell_import(&job->profile, &report);
		st = hps_job_update(job, HPS_PROFILE, err);
		if (!job->has_profile)
			hps_profile_release(&job->profile);
	}
	return st;
}

static enum hps_status profile(struct args *a, struct hps_job *job, struct hps_err *err)
{
	struct others others = { 0 };
	enum hps_status st = hps_sig_install(err);

	if (st == HPS_OK)
		st = read_model(a->model, job, err);
	if (st == HPS_OK)
		st = read_cluster(a->cluster, job, err);
	if (st == HPS_OK)
		st = read_others(&a->merge, &others, err);
	if (st == HPS_OK) {
		st = make_profile(a, &others, job, err);
		if (st == HPS_OK)
			st = hps_job_update(job, HPS_PROFILE, err);
		if (!job->has_profile)
			hps_profile_release(&job->profile);
	}
	release_others(&others);
	return st;
}

static enum hps_status run(struct args *a, enum hps_form form, struct hps_err *err)
{
	struct hps_job job = { 0 };
	enum hps_status st = check_args(a, err);

	if (st == HPS_OK)
		st = a->import ? import(a, &job, err) : profile(a, &job, err);
	if (st == HPS_OK)
		st = write_result(&job, form, err);
	hps_job_release(&job);
	return st;
}

int main(int argc, char **argv)
{
	struct args a = { 0 };
	const struct hps_opt opts[] = {
		{ 0, "data", HPS_OPT_STR, &a.measure.data, "FILE",
		  "rows to work on: counts the keys that a batch shares" },
		{ 0, "batches", HPS_OPT_STR, &a.batches, "N,N,...",
		  "batch sizes to time; default: B/16, B/4, B, 2B of the model's B" },
		{ 0, "rounds", HPS_OPT_INT, &a.rounds, "N",
		  "times that each size is timed; default: what takes about 6 s", 1,
		  HPS_MEASURE_MAX_ROUNDS },
		{ 0, "transport", HPS_OPT_STR, &a.transport, "KIND",
		  "sockets of the link: ipc (default on one host) or tcp" },
		{ 0, "type", HPS_OPT_STR, &a.type, "NAME",
		  "the cluster's type that this machine is, or that FILE was measured on" },
		{ 0, "merge", HPS_OPT_LIST, &a.merge, "FILE",
		  "join the profile of another host's job document" },
		{ 0, "quick", HPS_OPT_FLAG, &a.measure.quick, NULL,
		  "as few rounds as can be: rough figures" },
		{ 0, "import", HPS_OPT_STR, &a.import, "KIND",
		  "time nothing: MODEL is a profile of pipedream (a file) or sailor (a directory)" },
		{ 0, "batch", HPS_OPT_INT, &a.batch_size, "N",
		  "the batch that imported times are of; default: as the profile tells", 1,
		  HPS_MAX_BATCH },
		{ 0 },
	};
	struct hps_cmd cmd = {
		.name = "hps-profile",
		.summary = "Time every layer of a model here, links and a parameter server.",
		.operands = "[MODEL [CLUSTER]]",
		.max_operands = 2,
		.opts = opts,
		.has_form = true,
		.has_text = true,
	};
	enum hps_status st;
	struct hps_err err = { 0 };
	char **operand;
	int n;

	if (hps_opt_parse(&cmd, argc, argv, &operand, &n, &st) == HPS_OPT_EXIT)
		return hps_exit(cmd.name, st, NULL);
	a.model = n > 0 ? operand[0] : NULL;
	a.cluster = n > 1 ? operand[1] : NULL;
	st = run(&a, cmd.form, &err);
	hps_opt_list_release(&a.merge);
	if (st != HPS_OK && hps_sig_caught()) {
		hps_err_print(cmd.name, &err);
		return 128 + hps_sig_caught();
	}
	return hps_exit(cmd.name, st, &err);
}
