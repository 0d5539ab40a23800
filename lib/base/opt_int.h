/* The option table in full, shared by parser and help: private to lib/base. */
#ifndef HPS_BASE_OPT_INT_H
#define HPS_BASE_OPT_INT_H

#include "base/buf.h"
#include "base/opt.h"

enum { HPS_OPT_COMMON = 8 };

/* What the common options set. */
struct hps_opt_common {
	bool help, version, quiet, json, msgpack, text;
	int verbose;
	struct hps_opt table[HPS_OPT_COMMON + 1]; /* ends with a NULL name */
};

/* Fill common->table with the common options that cmd has. */
void hps_opt_add_common(const struct hps_cmd *cmd, struct hps_opt_common *common);

/* Append the usage line(s) and the options with their help, as -h prints them. */
enum hps_status hps_opt_help(const struct hps_cmd *cmd, const struct hps_opt_common *common,
			     struct hps_buf *b, struct hps_err *err);

#endif
