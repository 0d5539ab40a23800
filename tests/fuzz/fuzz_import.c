/* Foreign profiles, fed anything: the first byte chooses the reader (even: pipedream's text, odd:
 * sailor's document). A message, or a profile that can be written and read again as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char types[] =
	"{\"types\": [{\"name\": \"a\", \"price\": 1},"
	" {\"name\": \"b\", \"device\": \"cuda\", \"price\": 1, \"like\": \"a\", \"speed\": 3}]}";

static void must(int ok)
{
	if (!ok)
		abort();
}

static void read_types(struct hps_cluster *c)
{
	struct hps_doc *d;
	struct hps_at at;

	must(hps_doc_parse(types, strlen(types), "types", &d, NULL) == HPS_OK);
	at = hps_at_root(d, "types");
	must(hps_cluster_read(&at, c, NULL) == HPS_OK);
	hps_doc_free(d);
}

static enum hps_status read_graph(const uint8_t *data, size_t size, const struct hps_cluster *c,
				  struct hps_profile *p, struct hps_err *err)
{
	const struct hps_import_options o = { .batch = size & 1 ? 3 : 0 };
	struct hps_import_report r;
	char *text = malloc(size + 1);
	enum hps_status st;

	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	st = hps_import_pipedream(text, size, "fuzz", c, &o, p, &r, err);
	free(text);
	return st;
}

static enum hps_status read_times(const uint8_t *data, size_t size, const struct hps_cluster *c,
				  struct hps_profile *p, struct hps_err *err)
{
	static const char *const name[] = { "fuzz", "fuzz" };
	const struct hps_import_options o = { 0 };
	struct hps_doc *doc[2] = { NULL, NULL };
	struct hps_import_report r;
	enum hps_status st = hps_doc_parse(data, size, "fuzz", &doc[1], err);

	if (st == HPS_OK)
		st = hps_import_sailor(doc, name, c, &o, p, &r, err);
	hps_doc_free(doc[1]);
	return st;
}

static void survives(const struct hps_profile *p)
{
	struct hps_doc *once = hps_profile_write(p), *twice;
	struct hps_at at = hps_at_root(once, "fuzz");
	struct hps_profile again;

	must(once && hps_profile_read(&at, &again, NULL) == HPS_OK);
	twice = hps_profile_write(&again);
	must(twice && hps_doc_equal(once, twice));
	hps_doc_free(once);
	hps_doc_free(twice);
	hps_profile_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hps_err err = { 0 };
	struct hps_profile p = { 0 };
	struct hps_cluster c;
	enum hps_status st;

	if (!size)
		return 0;
	read_types(&c);
	st = data[0] % 2 ? read_times(data + 1, size - 1, &c, &p, &err)
			 : read_graph(data + 1, size - 1, &c, &p, &err);
	if (st == HPS_OK)
		survives(&p);
	else
		must((st == HPS_BAD_INPUT || st == HPS_USAGE) && err.status == st && *err.msg);
	hps_profile_release(&p);
	hps_cluster_release(&c);
	return 0;
}
