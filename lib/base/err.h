/* What went wrong, where, and the way out: the one error value of hps. */
#ifndef HPS_BASE_ERR_H
#define HPS_BASE_ERR_H

#include <stdarg.h>

/* Exit statuses of every command, and the return value of every function that
 * can fail. hps(7) documents them; a test holds the two equal. */
enum hps_status {
	HPS_OK = 0,	   /* done */
	HPS_NO = 1,	   /* the answer is no: an infeasible plan, say */
	HPS_USAGE = 2,	   /* wrong options or operands */
	HPS_BAD_INPUT = 3, /* a document or data that does not hold */
	HPS_IO = 4,	   /* a file, a pipe or the disk */
	HPS_NET = 5,	   /* the network or a peer */
	HPS_MEMORY = 6,	   /* no memory, or a ceiling is reached */
	HPS_DEVICE = 7,	   /* a backend or device */
};

/* Three parts, printed as "COMMAND: WHERE: MSG" and a line "hint: HINT".
 * A function leaves err untouched on success; err may be NULL everywhere. Text
 * that does not fit is cut, control characters are masked when printed. */
struct hps_err {
	enum hps_status status;
	char where[384]; /* file and place: "model.json: layers[3].units"; may be "" */
	char msg[512];
	char hint[256]; /* may be "" */
};

/* Set status and message, clear where and hint; returns status, so that
 * `return hps_err_set(err, HPS_IO, ...)` reads well. */
enum hps_status hps_err_set(struct hps_err *err, enum hps_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
enum hps_status hps_err_vset(struct hps_err *err, enum hps_status status, const char *fmt,
			     va_list ap);

/* As hps_err_set, with ": strerror(errno)" appended and errno kept. */
enum hps_status hps_err_errno(struct hps_err *err, enum hps_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Put a place in front of what where holds, joined by ": ". */
void hps_err_at(struct hps_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Set the hint. */
void hps_err_hint(struct hps_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Print to standard error as "NAME: WHERE: MSG\n[hint: HINT\n]", masked; returns status. */
enum hps_status hps_err_print(const char *name, const struct hps_err *err);

/* "bad input", "usage", ...: a constant, never NULL. */
const char *hps_status_name(enum hps_status status);

#endif
