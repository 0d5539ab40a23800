/* hps-data: generate, convert and describe data sets. Options and glue of three commands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/out.h"
#include "base/progress.h"
#include "base/sig.h"
#include "data/conv.h"
#include "data/gen.h"
#include "data/stat.h"
#include "doc/doc.h"
#include "job/model.h"

#define NAME "hps-data"

/* What all three take. */
struct shape {
	int64_t slots, dense, skip_bad;
	bool unlabelled;
};

static const struct shape CRITEO = { 26, 13, 0, false };

static bool go_on(void *ctx, uint64_t done)
{
	hps_progress_set(done, NULL);
	return hps_sig_caught() == 0;
}

static bool is_stdout(const char *path)
{
	return !path || !strcmp(path, "-");
}

/* Binary data do not go to a terminal. */
static enum hps_status open_output(const char *path, const char *compress, enum hps_compress *how,
				   struct hps_sink **sink, struct hps_err *err)
{
	enum hps_status rc = hps_compress_parse(compress, how, err);

	if (rc)
		hps_err_at(err, "--compress");
	else if (*how != HPS_COMPRESS_NONE && is_stdout(path) && isatty(STDOUT_FILENO))
		rc = hps_err_set(err, HPS_USAGE, "%s is binary; standard output is a terminal",
				 compress);
	else
		rc = hps_sink_new(path, sink, err);
	return rc;
}

/* --- gen --- */

struct gen_options {
	int64_t rows, skip, slots, dense, ids, threads, seed;
	double interactions, zipf, blank_rate, base_rate;
	const char *output, *compress, *truth;
};

static struct hps_doc *measure(const struct hps_measure *m)
{
	return m->undefined ? hps_doc_null() : hps_doc_double(m->value);
}

static struct hps_doc *settings(const struct hps_gen_opts *o)
{
	struct hps_doc *d = hps_doc_object();
	int bad = hps_doc_put(d, "seed", hps_doc_u64(o->seed)) ||
		  hps_doc_put(d, "skip", hps_doc_u64(o->skip)) ||
		  hps_doc_put(d, "slots", hps_doc_u64(o->slots)) ||
		  hps_doc_put(d, "dense", hps_doc_u64(o->dense)) ||
		  hps_doc_put(d, "ids", hps_doc_u64(o->ids)) ||
		  hps_doc_put(d, "zipf", hps_doc_double(o->zipf)) ||
		  hps_doc_put(d, "interactions", hps_doc_double(o->interactions)) ||
		  hps_doc_put(d, "blank_rate", hps_doc_double(o->blank_rate)) ||
		  hps_doc_put(d, "base_rate", hps_doc_double(o->base_rate));

	if (!bad)
		return d;
	hps_doc_free(d);
	return NULL;
}

/* Rows and truth are two outputs. */
static enum hps_status check_outputs(const struct gen_options *opt, struct hps_err *err)
{
	if (!opt->truth)
		return HPS_OK;
	if (is_stdout(opt->output) && is_stdout(opt->truth)) {
		hps_err_set(err, HPS_USAGE, "--truth: the rows go to standard output already");
		hps_err_hint(err, "name a file for one of them");
		return HPS_USAGE;
	}
	if (!is_stdout(opt->output) && !is_stdout(opt->truth) &&
	    hps_file_same(opt->output, opt->truth))
		return hps_err_set(err, HPS_USAGE, "--truth: %s is where the rows go", opt->truth);
	return HPS_OK;
}

/* To the file begun, or to standard output where there is none. */
static enum hps_status write_truth(struct hps_file_new *file, const struct hps_gen_opts *o,
				   const struct hps_gen_summary *s, struct hps_err *err)
{
	struct hps_doc *d = hps_doc_object();
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status rc;
	int bad = hps_doc_put(d, "rows", hps_doc_u64(s->rows)) ||
		  hps_doc_put(d, "positives", hps_doc_u64(s->positives)) ||
		  hps_doc_put(d, "best_auc", measure(&s->best_auc)) ||
		  hps_doc_put(d, "best_logloss", measure(&s->best_logloss)) ||
		  hps_doc_put(d, "expected_logloss", measure(&s->expected_logloss)) ||
		  hps_doc_put(d, "bias", hps_doc_double(s->bias)) ||
		  hps_doc_put(d, "settings", settings(o));

	rc = bad ? hps_err_set(err, HPS_MEMORY, "no memory for the truth")
		 : hps_doc_to_json(d, &b, err);
	if (!rc)
		rc = file->path ? hps_file_append(file, b.data, b.len, err)
				: hps_out_write(b.data, b.len, err);
	if (!rc && file->path)
		rc = hps_file_commit(file, err);
	hps_buf_release(&b);
	hps_doc_free(d);
	return rc;
}

static enum hps_status gen(const struct gen_options *opt, struct hps_err *err)
{
	struct hps_gen_opts o = { .rows = (uint64_t)opt->rows,
				  .skip = (uint64_t)opt->skip,
				  .seed = (uint64_t)opt->seed,
				  .slots = (uint32_t)opt->slots,
				  .dense = (uint32_t)opt->dense,
				  .ids = (uint64_t)opt->ids,
				  .zipf = opt->zipf,
				  .interactions = opt->interactions,
				  .blank_rate = opt->blank_rate,
				  .base_rate = opt->base_rate,
				  .threads = (uint32_t)opt->threads,
				  .want_auc = opt->truth != NULL,
				  .go_on = go_on };
	struct hps_file_new truth = { .fd = -1 };
	struct hps_gen_summary s;
	struct hps_sink *sink = NULL;
	enum hps_status rc = check_outputs(opt, err);

	if (!rc)
		rc = open_output(opt->output, opt->compress, &o.compress, &sink, err);
	if (!rc && opt->truth && !is_stdout(opt->truth))
		rc = hps_file_create(&truth, opt->truth, 0666, err);
	if (!rc) {
		hps_progress_start("rows", o.rows);
		rc = hps_gen(&o, sink, &s, err);
		hps_progress_end();
	}
	if (!rc)
		rc = hps_sink_commit(sink, err);
	hps_sink_free(sink);
	if (!rc && opt->truth)
		rc = write_truth(&truth, &o, &s, err);
	if (truth.path)
		hps_file_discard(&truth);
	return rc;
}

static enum hps_status gen_main(int argc, char **argv, struct hps_err *err)
{
	struct hps_gen_opts d = hps_gen_defaults();
	struct gen_options opt = { .rows = (int64_t)d.rows,
				   .slots = d.slots,
				   .dense = d.dense,
				   .ids = (int64_t)d.ids,
				   .threads = hps_cpu_count(),
				   .seed = 1,
				   .interactions = d.interactions,
				   .zipf = d.zipf,
				   .blank_rate = d.blank_rate,
				   .base_rate = d.base_rate,
				   .compress = "none" };
	const struct hps_opt opts[] = {
		{ 'o', "output", HPS_OPT_STR, &opt.output, "FILE",
		  "write here, not to standard output" },
		{ 0, "compress", HPS_OPT_STR, &opt.compress, "HOW",
		  "none (default), gzip or zstd" },
		{ 'n', "rows", HPS_OPT_INT, &opt.rows, "N", "rows to write (10000)", 0, 0x1p53 },
		{ 0, "skip", HPS_OPT_INT, &opt.skip, "N",
		  "begin after the first N rows: a test set of the same truth", 0, 0x1p53 },
		{ 0, "ids", HPS_OPT_INT, &opt.ids, "N", "ids a slot (1000)", 1,
		  (double)HPS_GEN_MAX_IDS },
		{ 0, "zipf", HPS_OPT_DOUBLE, &opt.zipf, "X",
		  "exponent of the ids' frequencies (1; 0 = all alike)", 0, 10 },
		{ 0, "interactions", HPS_OPT_DOUBLE, &opt.interactions, "X",
		  "standard deviation of the pairs' part of the logit (0.15)", 0, 100 },
		{ 0, "base-rate", HPS_OPT_DOUBLE, &opt.base_rate, "P", "share of positives (0.25)",
		  1e-6, 1 - 1e-6 },
		{ 0, "blank-rate", HPS_OPT_DOUBLE, &opt.blank_rate, "P",
		  "share of blank fields (0.1)", 0, 1 },
		{ 0, "slots", HPS_OPT_INT, &opt.slots, "N", "id columns (26)", 1, HPS_MAX_SLOTS },
		{ 0, "dense", HPS_OPT_INT, &opt.dense, "N", "integer columns (13)", 0,
		  HPS_MAX_SLOTS },
		{ 0, "truth", HPS_OPT_STR, &opt.truth, "FILE",
		  "write the best possible AUC and more to FILE; -: to standard output" },
		{ 'j', "threads", HPS_OPT_INT, &opt.threads, "N", "threads (as many as cores)", 1,
		  1024 },
		{ 0 },
	};
	struct hps_cmd cmd = { .name = NAME " gen",
			       .summary = "Generate rows in Criteo's format from a planted truth.",
			       .operands = "",
			       .opts = opts,
			       .seed = &opt.seed };
	enum hps_status rc;
	char **operand;
	int n;

	if (hps_opt_parse(&cmd, argc, argv, &operand, &n, &rc) == HPS_OPT_EXIT)
		return rc;
	rc = hps_sig_install(err);
	if (!rc)
		rc = gen(&opt, err);
	return rc;
}

/* --- conv --- */

static enum hps_status conv(struct hps_conv_opts *o, const char *output, const char *compress,
			    struct hps_err *err)
{
	struct hps_sink *sink = NULL;
	uint64_t rows, skipped;
	enum hps_status rc = open_output(output, compress, &o->compress, &sink, err);

	if (rc)
		return rc;
	hps_progress_start("rows", o->last);
	rc = hps_conv(o, sink, &rows, &skipped, err);
	hps_progress_end();
	if (!rc)
		rc = hps_sink_commit(sink, err);
	hps_sink_free(sink);
	if (!rc && skipped)
		hps_warn("malformed lines left out: %llu", (unsigned long long)skipped);
	return rc;
}

static enum hps_status conv_main(int argc, char **argv, struct hps_err *err)
{
	struct shape shape = CRITEO;
	int64_t first = 1, last = 0;
	const char *output = NULL, *compress = "none";
	const struct hps_opt opts[] = {
		{ 'o', "output", HPS_OPT_STR, &output, "FILE",
		  "write here, not to standard output" },
		{ 0, "compress", HPS_OPT_STR, &compress, "HOW", "none (default), gzip or zstd" },
		{ 0, "first", HPS_OPT_INT, &first, "ROW", "the first row to take, from 1", 1,
		  0x1p53 },
		{ 0, "last", HPS_OPT_INT, &last, "ROW", "the last row to take; default: to the end",
		  1, 0x1p53 },
		{ 0, "skip-bad", HPS_OPT_INT, &shape.skip_bad, "N",
		  "leave out up to N malformed lines", 0, 0x1p53 },
		{ 0, "slots", HPS_OPT_INT, &shape.slots, "N", "id columns (26)", 0, HPS_MAX_SLOTS },
		{ 0, "dense", HPS_OPT_INT, &shape.dense, "N", "integer columns (13)", 0,
		  HPS_MAX_SLOTS },
		{ 0, "unlabelled", HPS_OPT_FLAG, &shape.unlabelled, NULL,
		  "lines may lack the label" },
		{ 0 },
	};
	struct hps_cmd cmd = { .name = NAME " conv",
			       .summary = "Copy rows to another compression, every line checked.",
			       .operands = "[FILE ...]",
			       .max_operands = -1,
			       .opts = opts };
	enum hps_status rc;
	char **operand;
	int n;

	if (hps_opt_parse(&cmd, argc, argv, &operand, &n, &rc) == HPS_OPT_EXIT)
		return rc;
	rc = hps_sig_install(err);
	if (!rc) {
		struct hps_conv_opts o = { .path = (const char *const *)operand,
					   .n_paths = (size_t)n,
					   .slots = (uint32_t)shape.slots,
					   .dense = (uint32_t)shape.dense,
					   .unlabelled = shape.unlabelled,
					   .first = (uint64_t)first,
					   .last = (uint64_t)last,
					   .skip_bad = (uint64_t)shape.skip_bad,
					   .go_on = go_on };

		rc = conv(&o, output, compress, err);
	}
	return rc;
}

/* --- stat --- */

static enum hps_status show(const struct hps_stat *s, enum hps_form form, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_doc *d;
	enum hps_status rc;

	if (form == HPS_FORM_TEXT) {
		rc = hps_stat_text(s, &b, err);
		if (!rc)
			rc = hps_out_write(b.data, b.len, err);
		hps_buf_release(&b);
		return rc;
	}
	d = hps_stat_write(s);
	rc = d ? hps_doc_write(d, form, err)
	       : hps_err_set(err, HPS_MEMORY, "no memory for the description");
	hps_doc_free(d);
	return rc;
}

static enum hps_status stat_main(int argc, char **argv, struct hps_err *err)
{
	struct shape shape = CRITEO;
	const struct hps_opt opts[] = {
		{ 0, "skip-bad", HPS_OPT_INT, &shape.skip_bad, "N",
		  "leave out up to N malformed lines", 0, 0x1p53 },
		{ 0, "slots", HPS_OPT_INT, &shape.slots, "N", "id columns (26)", 0, HPS_MAX_SLOTS },
		{ 0, "dense", HPS_OPT_INT, &shape.dense, "N", "integer columns (13)", 0,
		  HPS_MAX_SLOTS },
		{ 0, "unlabelled", HPS_OPT_FLAG, &shape.unlabelled, NULL,
		  "lines may lack the label" },
		{ 0 },
	};
	struct hps_cmd cmd = { .name = NAME " stat",
			       .summary = "Describe a data set in one pass and bounded memory.",
			       .operands = "[FILE ...]",
			       .max_operands = -1,
			       .opts = opts,
			       .has_form = true,
			       .has_text = true };
	struct hps_stat s = { 0 };
	enum hps_status rc;
	char **operand;
	int n;

	if (hps_opt_parse(&cmd, argc, argv, &operand, &n, &rc) == HPS_OPT_EXIT)
		return rc;
	rc = hps_sig_install(err);
	if (!rc) {
		struct hps_stat_opts o = { .path = (const char *const *)operand,
					   .n_paths = (size_t)n,
					   .slots = (uint32_t)shape.slots,
					   .dense = (uint32_t)shape.dense,
					   .unlabelled = shape.unlabelled,
					   .skip_bad = (uint64_t)shape.skip_bad,
					   .go_on = go_on };

		hps_progress_start("rows", 0);
		rc = hps_stat(&o, &s, err);
		hps_progress_end();
	}
	if (!rc)
		rc = show(&s, cmd.form, err);
	hps_stat_release(&s);
	return rc;
}

/* --- which? --- */

static const struct {
	const char *name;
	enum hps_status (*main)(int argc, char **argv, struct hps_err *err);
} commands[] = { { "gen", gen_main }, { "conv", conv_main }, { "stat", stat_main } };

enum { COMMANDS = sizeof(commands) / sizeof(*commands) };

static enum hps_status choose(int argc, char **argv, struct hps_err *err)
{
	struct hps_cmd cmd = {
		.name = NAME, .operands = "gen|conv|stat", .min_operands = 1, .max_operands = 1
	};
	enum hps_status rc = HPS_OK;
	char **operand;
	int n;

	for (int i = 0; argc > 1 && i < COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].main(argc - 1, argv + 1, err);
	if (argc > 1 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		for (int i = 0; !rc && i < COMMANDS; i++) {
			if (i)
				rc = hps_out_write("\n", 1, err);
			if (!rc)
				rc = commands[i].main(2, argv, err);
		}
		return rc;
	}
	if (hps_opt_parse(&cmd, argc, argv, &operand, &n, &rc) == HPS_OPT_EXIT)
		return rc;
	return hps_err_set(err, HPS_USAGE, "expected gen, conv or stat, got \"%s\"", operand[0]);
}

int main(int argc, char **argv)
{
	struct hps_err err = { 0 };
	enum hps_status rc = choose(argc, argv, &err);

	return hps_exit(NAME, rc, &err);
}
