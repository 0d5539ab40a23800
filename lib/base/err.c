/* What went wrong, where, and the way out: filling and printing the one error value. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/text_int.h"

enum hps_status hps_err_vset(struct hps_err *err, enum hps_status status, const char *fmt,
			     va_list ap)
{
	char msg[sizeof(err->msg)]; /* an argument may point into err itself */

	if (!err)
		return status;
	vsnprintf(msg, sizeof(msg), fmt, ap);
	memcpy(err->msg, msg, sizeof(msg));
	err->status = status;
	err->where[0] = '\0';
	err->hint[0] = '\0';
	return status;
}

enum hps_status hps_err_set(struct hps_err *err, enum hps_status status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	hps_err_vset(err, status, fmt, ap);
	va_end(ap);
	return status;
}

enum hps_status hps_err_errno(struct hps_err *err, enum hps_status status, const char *fmt, ...)
{
	int saved = errno;
	char text[96];
	const char *reason = strerror_r(saved, text, sizeof(text));
	va_list ap;

	va_start(ap, fmt);
	hps_err_vset(err, status, fmt, ap);
	va_end(ap);
	if (err) {
		size_t len = strlen(err->msg), need = strlen(reason) + 2;

		/* The reason matters more than the tail of a long name. */
		if (len + need >= sizeof(err->msg))
			len = sizeof(err->msg) - 1 - need;
		snprintf(err->msg + len, sizeof(err->msg) - len, ": %s", reason);
	}
	errno = saved;
	return status;
}

void hps_err_at(struct hps_err *err, const char *fmt, ...)
{
	char where[sizeof(err->where)];
	size_t len;
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(where, sizeof(where), fmt, ap);
	va_end(ap);
	len = strlen(where);
	if (err->where[0] && len + 3 < sizeof(where))
		snprintf(where + len, sizeof(where) - len, ": %s", err->where);
	memcpy(err->where, where, sizeof(where));
}

void hps_err_hint(struct hps_err *err, const char *fmt, ...)
{
	char hint[sizeof(err->hint)];
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(hint, sizeof(hint), fmt, ap);
	va_end(ap);
	memcpy(err->hint, hint, sizeof(hint));
}

enum hps_status hps_err_print(const char *name, const struct hps_err *err)
{
	char line[sizeof(err->where) + sizeof(err->msg) + 128], hint[sizeof(err->hint) + 16];
	char text[sizeof(line) + sizeof(hint) + 2];
	int n;

	if (!err)
		return HPS_OK;
	snprintf(line, sizeof(line), "%s: %s%s%s", name, err->where, err->where[0] ? ": " : "",
		 err->msg[0] ? err->msg : hps_status_name(err->status));
	snprintf(hint, sizeof(hint), "hint: %s", err->hint);
	hps_text_mask(line);
	hps_text_mask(hint);
	n = snprintf(text, sizeof(text), "%s\n%s%s", line, err->hint[0] ? hint : "",
		     err->hint[0] ? "\n" : "");
	hps_text_emit(text, (size_t)n);
	return err->status;
}

const char *hps_status_name(enum hps_status status)
{
	switch (status) {
	case HPS_OK:
		return "ok";
	case HPS_NO:
		return "no";
	case HPS_USAGE:
		return "usage";
	case HPS_BAD_INPUT:
		return "bad input";
	case HPS_IO:
		return "input or output";
	case HPS_NET:
		return "network";
	case HPS_MEMORY:
		return "memory";
	case HPS_DEVICE:
		return "device";
	}
	return "unknown status";
}
