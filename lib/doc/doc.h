/* A document: a tree of values read from JSON or msgpack, and the places in it.
 *
 * Opaque over jansson; no other module sees that library. Values are reference
 * counted: what `new`, `read` and `copy` return is released by hps_doc_free; get
 * functions return borrowed nodes that live as long as their tree. Put functions
 * take over ("steal") the value given, also when they fail. Integers are exact
 * within +-2^53; a larger one is a string of digits. One tree belongs to one thread.
 */
#ifndef HPS_DOC_DOC_H
#define HPS_DOC_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/opt.h"

struct hps_doc;

#define HPS_DOC_INT_MAX ((int64_t)1 << 53)

/* What a reader takes at most, whoever wrote it; writers keep the depth too. */
enum {
	HPS_DOC_MAX_BYTES = 256 << 20,
	HPS_DOC_MAX_STRING = 1 << 20,
	HPS_DOC_MAX_VALUES = 1 << 24,
	HPS_DOC_MAX_DEPTH = 64, /* containers inside each other */
};

/* --- reading and writing whole documents --- */

/* Read a file, or standard input for "-" or NULL; JSON or msgpack by the first byte.
 * An empty pipe is told as such, with a hint that the command before may have failed.
 * Depth, size and string lengths are bounded; duplicate object keys are refused.
 * HPS_IO, HPS_BAD_INPUT (where = the path and, for JSON, line and column). */
enum hps_status hps_doc_read(const char *path, struct hps_doc **out, struct hps_err *err);
enum hps_status hps_doc_parse(const void *data, size_t len, const char *name, struct hps_doc **out,
			      struct hps_err *err);

/* Append as JSON (indented, keys in the order they were put, a newline at the end),
 * one compact JSON line, or msgpack. Doubles are written so that they read back equal. */
enum hps_status hps_doc_to_json(const struct hps_doc *d, struct hps_buf *b, struct hps_err *err);
enum hps_status hps_doc_to_json_line(const struct hps_doc *d, struct hps_buf *b,
				     struct hps_err *err);
enum hps_status hps_doc_to_msgpack(const struct hps_doc *d, struct hps_buf *b, struct hps_err *err);

/* Write to standard output in one of the forms (JSON or MSGPACK). */
enum hps_status hps_doc_write(const struct hps_doc *d, enum hps_form form, struct hps_err *err);

/* --- building ---
 * The add and put functions return -1 without memory (or for a NULL value), so a
 * writer may chain them with || and report HPS_MEMORY once. */
struct hps_doc *hps_doc_object(void);
struct hps_doc *hps_doc_array(void);
struct hps_doc *hps_doc_int(int64_t v);	       /* a string of digits beyond 2^53 */
struct hps_doc *hps_doc_u64(uint64_t v);       /* likewise */
struct hps_doc *hps_doc_double(double v);      /* null if not finite */
struct hps_doc *hps_doc_string(const char *s); /* bytes that are not UTF-8 become U+FFFD */
struct hps_doc *hps_doc_bool(bool v);
struct hps_doc *hps_doc_null(void);
struct hps_doc *hps_doc_copy(const struct hps_doc *d); /* deep */
void hps_doc_free(struct hps_doc *d);

int hps_doc_put(struct hps_doc *obj, const char *key, struct hps_doc *value);
int hps_doc_add(struct hps_doc *arr, struct hps_doc *value);
int hps_doc_remove(struct hps_doc *obj, const char *key); /* absent: 0 */
bool hps_doc_equal(const struct hps_doc *a, const struct hps_doc *b);

/* --- reading values, with their place ---
 * A place is a chain of frames on the caller's stack, root first; the document's
 * name comes first in messages: "model.json: layers[3].units". */
struct hps_at {
	const struct hps_doc *node; /* NULL: absent */
	const struct hps_at *up;    /* NULL at the root */
	const char *key;	    /* member name, or the document's name at the root */
	size_t index;		    /* element index, where key is NULL */
};

struct hps_at hps_at_root(const struct hps_doc *d, const char *name);
struct hps_at hps_at_member(const struct hps_at *at, const char *key); /* node NULL if absent */
struct hps_at hps_at_item(const struct hps_at *at, size_t i);

bool hps_at_absent(const struct hps_at *at);  /* absent or null */
size_t hps_at_count(const struct hps_at *at); /* elements or members; 0 for scalars */

/* "expected WHAT, got VALUE" at the place; returns HPS_BAD_INPUT. */
enum hps_status hps_at_expected(const struct hps_at *at, struct hps_err *err, const char *what, ...)
	__attribute__((format(printf, 3, 4)));
/* Another message at the place; returns HPS_BAD_INPUT. */
enum hps_status hps_at_error(const struct hps_at *at, struct hps_err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Typed values. An absent one is an error. Integers accept 3, 3.0 and "3", doubles any of
 * these. Limits are told as "> 0" where min is 1 for integers, DBL_MIN for doubles; those of
 * the type (INT64_MIN, -DBL_MAX, DBL_MAX, 2^53 and beyond) are not told. */
enum hps_status hps_at_int(const struct hps_at *at, int64_t min, int64_t max, int64_t *out,
			   struct hps_err *err);
enum hps_status hps_at_u64(const struct hps_at *at, uint64_t min, uint64_t max, uint64_t *out,
			   struct hps_err *err);
enum hps_status hps_at_double(const struct hps_at *at, double min, double max, double *out,
			      struct hps_err *err);
enum hps_status hps_at_bool(const struct hps_at *at, bool *out, struct hps_err *err);
enum hps_status hps_at_string(const struct hps_at *at, const char **out, struct hps_err *err);
enum hps_status hps_at_array(const struct hps_at *at, struct hps_err *err);  /* is it one? */
enum hps_status hps_at_object(const struct hps_at *at, struct hps_err *err); /* is it one? */
/* One of names[0..n), returned as its index; the message lists the names. */
enum hps_status hps_at_choice(const struct hps_at *at, const char *const *names, size_t n, int *out,
			      struct hps_err *err);
/* It is an object, and every member is one of names (NULL-terminated): a typo is named, with
 * the nearest name, or else the known ones, as hint. */
enum hps_status hps_at_only(const struct hps_at *at, const char *const *names, struct hps_err *err);
/* Member name i of an object, in order; NULL past the end. Takes time linear in i. */
const char *hps_at_name(const struct hps_at *at, size_t i);

#endif
