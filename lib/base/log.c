/* Diagnostics on standard error, one whole line at a time. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "base/text_int.h"

/* Set once before threads start, then only read. */
static const char *log_name = "hps";
static int log_level = HPS_LOG_NORMAL;

void hps_log_init(const char *name, int level)
{
	log_name = name;
	log_level = level;
}

int hps_log_level(void)
{
	return log_level;
}

enum hps_status hps_log_keep(const char *file, struct hps_err *err)
{
	int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0) {
		hps_err_errno(err, HPS_IO, "cannot be written");
		hps_err_at(err, "%s", file);
		return HPS_IO;
	}
	hps_text_keep(fd);
	return HPS_OK;
}

__attribute__((format(printf, 1, 0))) static void say(const char *fmt, va_list ap)
{
	char line[2048]; /* below PIPE_BUF: the kernel keeps it whole */
	int n = snprintf(line, sizeof(line), "%s: ", log_name);
	size_t len;

	if (n < 0 || (size_t)n >= sizeof(line))
		return;
	vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	hps_text_mask(line);
	len = strlen(line);
	line[len++] = '\n';
	hps_text_emit(line, len);
}

void hps_warn(const char *fmt, ...)
{
	va_list ap;

	if (log_level < HPS_LOG_NORMAL)
		return;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void hps_info(const char *fmt, ...)
{
	va_list ap;

	if (log_level < HPS_LOG_NORMAL)
		return;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void hps_verbose(const char *fmt, ...)
{
	va_list ap;

	if (log_level < HPS_LOG_VERBOSE)
		return;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}
