/* Pieces of the document readers and writers: private to lib/doc. */
#ifndef HPS_DOC_DOC_INT_H
#define HPS_DOC_DOC_INT_H

#include <jansson.h>
#include "doc/doc.h"

/* struct hps_doc is never defined: a pointer to it is a pointer to jansson's value. */
static inline json_t *hps_doc_json(const struct hps_doc *d)
{
	return (json_t *)d;
}

static inline struct hps_doc *hps_doc_of(json_t *j)
{
	return (struct hps_doc *)j;
}

/* An integer node, or a string of digits beyond +-2^53; NULL without memory. */
json_t *hps_doc_json_int(json_int_t v);

/* The two readers; data is not empty. where is left without the document's name. */
enum hps_status hps_doc_parse_json(const char *data, size_t len, json_t **out, struct hps_err *err);
enum hps_status hps_doc_parse_msgpack(const void *data, size_t len, json_t **out,
				      struct hps_err *err);

/* One value on one line without blanks, no newline after it. */
enum hps_status hps_doc_compact(const json_t *j, struct hps_buf *b, struct hps_err *err);

#endif
