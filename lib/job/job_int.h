/* Shared by the section readers and writers of lib/job: members with their checks. */
#ifndef HPS_JOB_JOB_INT_H
#define HPS_JOB_JOB_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "doc/doc.h"
#include "job/cluster.h"
#include "job/model.h"

/* Every get function reads member `key` of the object at `at`. An absent (or null) member
 * is an error if REQUIRED; if OPTIONAL, *out keeps the default that the caller put there. */
enum hps_presence { HPS_OPTIONAL, HPS_REQUIRED };

enum {
	HPS_TEXT_LEN = 65536, /* bytes of a free text at most */
	HPS_WORD_LEN = 1024,  /* bytes of a short text: a method, an address */
};

enum hps_status hps_get_u32(const struct hps_at *at, const char *key, enum hps_presence p,
			    uint32_t min, uint32_t max, uint32_t *out, struct hps_err *err);
enum hps_status hps_get_u64(const struct hps_at *at, const char *key, enum hps_presence p,
			    uint64_t min, uint64_t max, uint64_t *out, struct hps_err *err);
/* A number within [min, max]. */
enum hps_status hps_get_double(const struct hps_at *at, const char *key, enum hps_presence p,
			       double min, double max, double *out, struct hps_err *err);
/* A number > 0, at most max. */
enum hps_status hps_get_positive(const struct hps_at *at, const char *key, enum hps_presence p,
				 double max, double *out, struct hps_err *err);
enum hps_status hps_get_bool(const struct hps_at *at, const char *key, enum hps_presence p,
			     bool *out, struct hps_err *err);
enum hps_status hps_get_choice(const struct hps_at *at, const char *key, enum hps_presence p,
			       const char *const *names, size_t n, int *out, struct hps_err *err);
/* A name: letters, digits and "_.-", the first a letter or digit, so that it can be part of
 * a path and of "fixed:cpu*3|v100*1". *out is malloc()ed, *out before is overwritten. */
enum hps_status hps_get_name(const struct hps_at *at, const char *key, enum hps_presence p,
			     char **out, struct hps_err *err);
/* Any text of at most `max` bytes, not empty; *out as in hps_get_name. */
enum hps_status hps_get_text(const struct hps_at *at, const char *key, enum hps_presence p,
			     size_t max, char **out, struct hps_err *err);
/* 16 hex digits. */
enum hps_status hps_get_digest(const struct hps_at *at, const char *key, enum hps_presence p,
			       uint64_t *out, struct hps_err *err);
/* "bsp" or "asp"; ssp is refused by name. */
enum hps_status hps_get_sync(const struct hps_at *at, const char *key, enum hps_presence p,
			     enum hps_sync *out, struct hps_err *err);
/* An array of min..max elements: its place, and the count. Absent and OPTIONAL: count 0. */
enum hps_status hps_get_array(const struct hps_at *at, const char *key, enum hps_presence p,
			      size_t min, size_t max, struct hps_at *place, uint32_t *count,
			      struct hps_err *err);
/* An array of exactly n numbers >= 0 into a new malloc()ed array; absent and OPTIONAL: NULL. */
enum hps_status hps_get_doubles(const struct hps_at *at, const char *key, enum hps_presence p,
				uint32_t n, double **out, struct hps_err *err);

/* Writers: NULL without memory. finish: d, or NULL and d freed if a put before failed. */
struct hps_doc *hps_doc_finish(struct hps_doc *d, int failed);
struct hps_doc *hps_doc_digest(uint64_t digest);
struct hps_doc *hps_doc_doubles(const double *v, uint32_t n);

/* A map from names to numbers, so that hostile documents cost no quadratic time.
 * Names are borrowed. */
struct hps_index {
	struct {
		const char *name; /* NULL: free */
		uint32_t value;
	} * slot;
	uint32_t mask;
};
enum hps_status hps_index_init(struct hps_index *x, uint32_t n, struct hps_err *err);
void hps_index_release(struct hps_index *x);
/* Returns the value now under the name: `value`, or the older one if the name was there.
 * At most n names in all. */
uint32_t hps_index_add(struct hps_index *x, const char *name, uint32_t value);
/* The value or -1. */
int64_t hps_index_find(const struct hps_index *x, const char *name);

/* Digests: a chain of hashes over little-endian words and length-prefixed strings, in an
 * order fixed by the code, so that it does not depend on the document's form. */
uint64_t hps_digest_u64(uint64_t digest, uint64_t v);
uint64_t hps_digest_double(uint64_t digest, double v);
uint64_t hps_digest_str(uint64_t digest, const char *s);

/* cluster.c: {"bandwidth", "latency"} of member `key`, both optional; with `flag` also
 * that boolean member. An absent object leaves *link. */
enum hps_status hps_get_link(const struct hps_at *at, const char *key, struct hps_link *link,
			     const char *flag, bool *flag_value, struct hps_err *err);
struct hps_doc *hps_link_write(const struct hps_link *link);

/* plan.c: "first" and "last" of a stage whose first layer must be `begin`. */
enum hps_status hps_get_interval(const struct hps_at *at, uint32_t begin, uint32_t *first,
				 uint32_t *last, struct hps_err *err);

/* layer.c: layers and loss of a model whose inputs and tables are read. */
enum hps_status hps_layers_read(const struct hps_at *at, struct hps_model *m, struct hps_err *err);

/* Names of enum values, in their order. */
extern const char *const hps_act_names[4];
extern const char *const hps_pooling_names[3];
extern const char *const hps_op_names[6];
extern const char *const hps_loss_names[4];
extern const char *const hps_optim_names[3];
extern const char *const hps_init_names[2];
extern const char *const hps_sync_names[2];
extern const char *const hps_transform_names[2];

#define HPS_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
