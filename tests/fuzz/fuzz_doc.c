/* The document readers, fed anything: no crash, no hang, a message with a place, and what
 * is taken survives both forms. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "doc/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef enum hps_status write_fn(const struct hps_doc *, struct hps_buf *, struct hps_err *);

static void must(int ok)
{
	if (!ok)
		abort();
}

static void survives(const struct hps_doc *d, write_fn *write)
{
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_doc *back = NULL;
	struct hps_err err = { 0 };

	must(write(d, &b, &err) == HPS_OK);
	must(hps_doc_parse(b.data, b.len, "again", &back, &err) == HPS_OK);
	must(hps_doc_equal(d, back));
	hps_doc_free(back);
	hps_buf_release(&b);
}

/* Ask every node for every type, as the readers above this layer do. */
static void visit(const struct hps_at *at)
{
	struct hps_err err = { 0 };
	uint64_t u;
	int64_t i;
	double v;

	(void)hps_at_int(at, 1, 1000, &i, &err);
	(void)hps_at_u64(at, 1, UINT64_MAX, &u, &err);
	(void)hps_at_double(at, 0, 1, &v, &err);
	hps_at_error(at, &err, "visited");
	must(!strncmp(err.where, "fuzz", 4));
	for (size_t k = 0; k < hps_at_count(at) && k < 64; k++) {
		const char *name = hps_at_name(at, k);
		struct hps_at below = name ? hps_at_member(at, name) : hps_at_item(at, k);

		must(below.node != NULL);
		visit(&below);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hps_doc *d = NULL;
	struct hps_err err = { 0 };
	enum hps_status st = hps_doc_parse(data, size, "fuzz", &d, &err);

	if (st != HPS_OK) {
		must(st == HPS_BAD_INPUT && err.status == st && err.msg[0]);
		must(!strncmp(err.where, "fuzz", 4) && !d);
		return 0;
	}
	must(err.status == HPS_OK);
	survives(d, hps_doc_to_json);
	survives(d, hps_doc_to_json_line);
	survives(d, hps_doc_to_msgpack);

	struct hps_at root = hps_at_root(d, "fuzz");
	visit(&root);
	hps_doc_free(d);
	return 0;
}
