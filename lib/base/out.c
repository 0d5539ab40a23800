/* Did everything that was written to standard output arrive? */
#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include "base/out.h"
#include "base/text_int.h"

static enum hps_status cannot_write(struct hps_err *err)
{
	if (errno)
		hps_err_errno(err, HPS_IO, "cannot write");
	else
		hps_err_set(err, HPS_IO, "cannot write: an earlier write failed");
	hps_err_at(err, "standard output");
	return HPS_IO;
}

enum hps_status hps_out_write(const void *data, size_t len, struct hps_err *err)
{
	errno = 0;
	if (len && fwrite(data, 1, len, stdout) != len)
		return cannot_write(err);
	return HPS_OK;
}

void hps_out_mask(char *text, size_t len)
{
	hps_text_mask_but(text, len, "\n\t");
}

enum hps_status hps_out_text(char *text, size_t len, struct hps_err *err)
{
	hps_out_mask(text, len);
	return hps_out_write(text, len, err);
}

enum hps_status hps_out_close(struct hps_err *err)
{
	int before = ferror(stdout), pending = __fpending(stdout) != 0, rc;

	errno = 0;
	rc = fclose(stdout);
	/* A command started with standard output closed that wrote nothing is fine (the rule
	 * of gnulib's close_stdout). */
	if (rc && errno == EBADF && !before && !pending)
		return HPS_OK;
	if (rc || before)
		return cannot_write(err);
	return HPS_OK;
}

int hps_exit(const char *name, enum hps_status status, const struct hps_err *err)
{
	struct hps_err late = { 0 };

	if (status != HPS_OK && err && err->msg[0])
		hps_err_print(name, err);
	if (hps_out_close(&late) != HPS_OK && status == HPS_OK) {
		hps_err_print(name, &late);
		status = HPS_IO;
	}
	return (int)status;
}
