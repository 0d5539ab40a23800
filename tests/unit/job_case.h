/* Documents for tests of the job document: small texts, patched, read and compared. */
#ifndef HPS_TESTS_JOB_CASE_H
#define HPS_TESTS_JOB_CASE_H

#include <stddef.h>
#include "base/buf.h"
#include "job/job.h"

/* Valid sections, small, with every kind of member in them; and the job document made of
 * them. Digests are those of the model. */
extern const char job_case_model[], job_case_cluster[];

/* The text of a whole valid job document. free() it. */
char *job_case_document(void);

/* text with the first occurrence of `find` replaced; fails the test if there is none.
 * find NULL: a copy. free() it. */
char *job_case_patch(const char *text, const char *find, const char *replace);

/* Parse, named "t"; fails the test if it is no document. */
struct hps_doc *job_case_parse(const char *text);

/* The tree as text, then read again: as JSON, or as msgpack. */
struct hps_doc *job_case_again(const struct hps_doc *d, int msgpack);

/* testdata/NAME below HPS_ROOT (default "."), into path. */
void job_case_path(const char *name, char *path, size_t size);

/* Fail the test unless every field is equal. */
void job_case_same_model(const struct hps_model *a, const struct hps_model *b);
void job_case_same_cluster(const struct hps_cluster *a, const struct hps_cluster *b);
void job_case_same_profile(const struct hps_profile *a, const struct hps_profile *b);
void job_case_same_plan(const struct hps_plan *a, const struct hps_plan *b);
void job_case_same_deployment(const struct hps_deployment *a, const struct hps_deployment *b);

#endif
