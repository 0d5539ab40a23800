/* Options of hps-work into readers' options and the settings of a job. */
#include "train/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const mode_names[] = { "train", "eval", "predict" };

static bool is_stdin(const char *const *path, size_t n)
{
	if (!n)
		return true;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(path[i], "-"))
			return true;
	return false;
}

static uint32_t epochs(const struct hps_work_opts *o)
{
	if (o->mode != HPS_WORK_TRAIN)
		return 1;
	return o->epochs ? o->epochs : o->job->deployment.epochs;
}

static bool all_first_here(const struct hps_work_opts *o, uint32_t n_first)
{
	return n_first == o->job->deployment.stage[0].n_replicas;
}

enum hps_status hps_work_check_data(const struct hps_work_opts *o, uint32_t n_first,
				    struct hps_err *err)
{
	if (o->mode != HPS_WORK_TRAIN && o->n_test)
		return hps_err_set(err, HPS_USAGE, "--test goes with training; --%s takes DATA",
				   mode_names[o->mode]);
	if (o->n_test && is_stdin(o->test, o->n_test))
		return hps_err_set(err, HPS_USAGE, "--test needs a file: every epoch reads it");
	if (o->mode == HPS_WORK_PREDICT && o->skip_bad)
		return hps_err_set(err, HPS_USAGE,
				   "--skip-bad with --predict: scores could not be told apart");
	if (o->mode == HPS_WORK_PREDICT && o->shuffle_rows)
		return hps_err_set(err, HPS_USAGE,
				   "--shuffle with --predict: scores come in order");
	if (!n_first || !is_stdin(o->data, o->n_data))
		return HPS_OK;
	if (epochs(o) > 1) {
		hps_err_set(err, HPS_USAGE, "standard input can be read once, %u epochs are asked",
			    epochs(o));
		hps_err_hint(err, "give files, or --epochs 1");
		return HPS_USAGE;
	}
	if (!all_first_here(o, n_first)) {
		hps_err_set(err, HPS_USAGE,
			    "standard input needs all first-stage replicas on one host: %u of %u "
			    "are here",
			    n_first, o->job->deployment.stage[0].n_replicas);
		hps_err_hint(err, "give files that every host has");
		return HPS_USAGE;
	}
	return HPS_OK;
}

static void read_how(const struct hps_work_opts *o, uint32_t n_first, struct hps_reader_opts *r)
{
	const struct hps_deployment *d = &o->job->deployment;

	*r = (struct hps_reader_opts){
		.slots = o->job->model.slots,
		.dense = o->job->model.dense,
		.model = &o->job->model,
		.parsers = o->parsers ? o->parsers : 1,
		.skip_bad = o->skip_bad,
		.seed = o->seed,
	};
	/* a step and a half of every replica: one is at work, the next is parsed */
	r->ahead = 2 + n_first * (d->micro_batches + (d->micro_batches + 1) / 2);
}

bool hps_work_train_data(const struct hps_work_opts *o, uint32_t n_first, struct hps_reader_opts *r)
{
	if (o->mode != HPS_WORK_TRAIN)
		return false;
	read_how(o, n_first, r);
	r->path = o->data;
	r->n_paths = o->n_data;
	r->shuffle_rows = o->shuffle_rows;
	r->first_row = o->first_row;
	r->end_row = o->end_row;
	return true;
}

bool hps_work_test_data(const struct hps_work_opts *o, uint32_t n_first, struct hps_reader_opts *r)
{
	bool of_data = o->mode != HPS_WORK_TRAIN;

	if (!of_data && !o->n_test)
		return false;
	read_how(o, n_first, r);
	r->path = of_data ? o->data : o->test;
	r->n_paths = of_data ? o->n_data : o->n_test;
	r->first_row = of_data ? o->first_row : o->test_first_row;
	r->end_row = of_data ? o->end_row : o->test_end_row;
	r->unlabelled = o->mode == HPS_WORK_PREDICT;
	return true;
}

static int put_digest(struct hps_doc *d, const char *key, uint64_t digest)
{
	char text[HPS_DIGEST_LEN];

	hps_digest_text(digest, text);
	return hps_doc_put(d, key, hps_doc_string(text));
}

static int put_rows(struct hps_doc *d, const char *key, uint64_t first, uint64_t end)
{
	char text[48] = "all";

	if (first || end)
		snprintf(text, sizeof text, "%" PRIu64 ":%" PRIu64, first, end);
	return hps_doc_put(d, key, hps_doc_string(text));
}

enum hps_status hps_work_settings(const struct hps_work_opts *o, bool reads, struct hps_doc **out,
				  struct hps_err *err)
{
	uint64_t data = 0, test = 0;
	enum hps_status st = HPS_OK;
	struct hps_doc *d;

	if (reads && !is_stdin(o->data, o->n_data))
		st = hps_data_digest(o->data, o->n_data, &data, err);
	if (st == HPS_OK && reads && o->n_test)
		st = hps_data_digest(o->test, o->n_test, &test, err);
	if (st != HPS_OK)
		return st;
	d = hps_doc_object();
	if (!d || hps_doc_put(d, "mode", hps_doc_string(mode_names[o->mode])) ||
	    hps_doc_put(d, "epochs", hps_doc_int(epochs(o))) ||
	    hps_doc_put(d, "test", hps_doc_bool(o->mode != HPS_WORK_TRAIN || o->n_test)) ||
	    hps_doc_put(d, "seed", hps_doc_u64(o->seed)) ||
	    hps_doc_put(d, "shuffle", hps_doc_u64(o->shuffle_rows)) ||
	    put_rows(d, "rows", o->first_row, o->end_row) ||
	    put_rows(d, "test_rows", o->test_first_row, o->test_end_row) ||
	    (reads && put_digest(d, "train_digest", data)) ||
	    (reads && put_digest(d, "test_digest", test))) {
		hps_doc_free(d);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	*out = d;
	return HPS_OK;
}
