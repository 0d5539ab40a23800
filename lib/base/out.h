/* Standard output with a checked end: a delayed write error is an error. */
#ifndef HPS_BASE_OUT_H
#define HPS_BASE_OUT_H

#include <stddef.h>
#include "base/err.h"

/* Write all bytes to standard output. */
enum hps_status hps_out_write(const void *data, size_t len, struct hps_err *err);

/* Make a text fit for a person: control characters but newline and tab become '?', so that names
 * from a document cannot drive the terminal. */
void hps_out_mask(char *text, size_t len);
/* Write it so; text is changed. */
enum hps_status hps_out_text(char *text, size_t len, struct hps_err *err);

/* Flush and close standard output; to be called once, last. HPS_IO names standard
 * output. A command whose reader left (EPIPE) gets HPS_IO too. */
enum hps_status hps_out_close(struct hps_err *err);

/* main()'s end: print err if status is not HPS_OK and err has a message, close
 * standard output with a check, return the exit status. */
int hps_exit(const char *name, enum hps_status status, const struct hps_err *err);

#endif
