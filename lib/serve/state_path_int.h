/* Names in a state directory. For lib/serve only. */
#ifndef HPS_SERVE_STATE_PATH_INT_H
#define HPS_SERVE_STATE_PATH_INT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* As asprintf(3); NULL without memory. */
char *hps_state_path(struct hps_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* HPS_IO: "PATH: WHAT: " and errno's text. */
enum hps_status hps_state_failed(const char *what, const char *path, struct hps_err *err);
/* N of a name "PREFIX" N "SUFFIX"; false for any other. */
bool hps_state_numbered(const char *name, const char *prefix, const char *suffix, uint64_t *n);

/* Is it "save-N"? HPS_BAD_INPUT: it is, and N is beyond HPS_STATE_SAVE_MAX. */
#define HPS_STATE_SAVE_MAX 999999999999999999u
enum hps_status hps_state_is_save(const char *dir, const char *name, bool *is, uint64_t *n,
				  struct hps_err *err);

/* Call fn for every entry but dot files; stops at the first failure. A folder that is not there
 * has none. */
typedef enum hps_status (*state_entry_fn)(void *ctx, const char *dir, const char *name,
					  struct hps_err *err);
enum hps_status hps_state_each_entry(const char *dir, state_entry_fn fn, void *ctx,
				     struct hps_err *err);

#endif
