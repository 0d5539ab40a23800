/* One option table per command: the parser, -h and the man page's SYNOPSIS agree. */
#ifndef HPS_BASE_OPT_H
#define HPS_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum hps_opt_kind {
	HPS_OPT_FLAG,	/* bool *: set to true */
	HPS_OPT_COUNT,	/* int *: incremented */
	HPS_OPT_STR,	/* const char **: borrowed from argv, not empty */
	HPS_OPT_INT,	/* int64_t *: min..max checked, as integers */
	HPS_OPT_DOUBLE, /* double *: finite, min..max checked */
	HPS_OPT_LIST,	/* struct hps_opt_list *: may be given many times */
};

struct hps_opt_list {
	const char **item; /* borrowed from argv; the array is freed by hps_opt_list_release */
	size_t n;
};

struct hps_opt {
	char letter;	  /* 0 = none */
	const char *name; /* long name without dashes; NULL ends the table */
	enum hps_opt_kind kind;
	void *dst;
	const char *arg;  /* name of the argument in -h: "FILE"; NULL for flags */
	const char *help; /* one line */
	double min, max;  /* of numbers; both 0 = no limit */
};

/* Output form of a filter, settled by the common options --json, --msgpack, --text. */
enum hps_form { HPS_FORM_JSON, HPS_FORM_MSGPACK, HPS_FORM_TEXT };

/* A command: name "hps-plan", what it does in one line, its operands as in the
 * SYNOPSIS ("[JOB]"), how many operands at least and at most (-1 = any). The
 * common options -h, --version, -q, -v are added to every command, --json and
 * --msgpack where has_form, --text where has_text, --seed where seed != NULL. */
struct hps_cmd {
	const char *name, *summary, *operands;
	int min_operands, max_operands;
	const struct hps_opt *opts;
	bool has_form, has_text;
	enum hps_form form; /* result; default JSON */
	int64_t *seed;
};

enum hps_opt_next { HPS_OPT_GO_ON, HPS_OPT_EXIT };

/* Parse with getopt_long(3). Sets up hps_log. On -h or --version prints to
 * standard output and returns HPS_OPT_EXIT with *status 0; on a usage error prints
 * "NAME: what; try 'NAME -h'" to standard error, HPS_OPT_EXIT, *status HPS_USAGE.
 * --msgpack with a terminal as standard output is a usage error. Else HPS_OPT_GO_ON
 * with *operands = argv + optind and *n_operands. Of --json, --msgpack, --text, and of an
 * option given twice, the last one holds. --seed takes 0 to 2^53. An empty string is no STR,
 * LIST or operand. SIGPIPE and SIGXFSZ are ignored from then on, so that a reader who left and
 * a file at its limit are I/O errors like any other.
 *
 * The usage line is, in this order: the letters of all options without argument, as
 * "[-hqv]"; "[--json | --msgpack | --text]"; the table's other options in its order, by
 * their letter if they have one ("[-t RATE]", "[--merge]", "[--limit TYPE=N]..." for a
 * LIST); "[--seed N]"; the operands. -h takes effect where it stands. The man page's
 * SYNOPSIS says the same: scripts/check-docs. */
enum hps_opt_next hps_opt_parse(struct hps_cmd *cmd, int argc, char **argv, char ***operands,
				int *n_operands, enum hps_status *status);

void hps_opt_list_release(struct hps_opt_list *l);

/* The whole of s as a number within [min, max]; the message says what was
 * expected and what was found. */
enum hps_status hps_parse_int(const char *s, int64_t min, int64_t max, int64_t *out,
			      struct hps_err *err);
enum hps_status hps_parse_double(const char *s, double min, double max, double *out,
				 struct hps_err *err);
/* "64K", "16M", "2G", "1.5G" or plain bytes. */
enum hps_status hps_parse_bytes(const char *s, uint64_t *out, struct hps_err *err);

#define HPS_VERSION "0.1.0"

#endif
