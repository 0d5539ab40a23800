/* Where does a document come from, and in which form? Told by its bytes, not by a name:
 * pipes have none (the manner of htslib). */
#include <string.h>
#include "base/file.h"
#include "base/out.h"
#include "doc/doc_int.h"

static const char *shown(const char *name)
{
	return name && strcmp(name, "-") ? name : "standard input";
}

static enum hps_status no_input(bool is_stdin, struct hps_err *err)
{
	hps_err_set(err, HPS_BAD_INPUT, "no input: expected a document, JSON or msgpack");
	if (is_stdin)
		hps_err_hint(err, "did the command before it in the pipe fail?");
	return HPS_BAD_INPUT;
}

/* msgpack's maps and arrays; a document is one of the two. */
static bool begins_msgpack(unsigned char c)
{
	return (c >= 0x80 && c <= 0x9f) || (c >= 0xdc && c <= 0xdf);
}

static enum hps_status parse(const char *data, size_t len, bool is_stdin, json_t **out,
			     struct hps_err *err)
{
	size_t i = 0;
	unsigned char c;

	while (i < len && strchr(" \t\r\n", data[i]) && data[i])
		i++;
	if (i == len)
		return no_input(is_stdin, err);
	if (len > HPS_DOC_MAX_BYTES)
		return hps_err_set(err, HPS_BAD_INPUT, "larger than the limit of %d bytes",
				   HPS_DOC_MAX_BYTES);
	c = (unsigned char)data[i];
	if (c > ' ' && c < 0x7f) /* text: the parser says what is wrong with it, and where */
		return hps_doc_parse_json(data, len, out, err);
	if (i == 0 && begins_msgpack(c))
		return hps_doc_parse_msgpack(data, len, out, err);
	hps_err_set(err, HPS_BAD_INPUT, "neither JSON nor msgpack: begins with byte 0x%02x", c);
	if (len >= 3 && !memcmp(data, "\xef\xbb\xbf", 3))
		hps_err_hint(err, "save it without a byte order mark");
	else if (len >= 2 && !memcmp(data, "\x1f\x8b", 2))
		hps_err_hint(err, "it looks like gzip: pass it through zcat");
	return HPS_BAD_INPUT;
}

enum hps_status hps_doc_parse(const void *data, size_t len, const char *name, struct hps_doc **out,
			      struct hps_err *err)
{
	const char *where = shown(name);
	json_t *j = NULL;
	enum hps_status st = parse(data, len, where != name, &j, err);

	if (st != HPS_OK) {
		hps_err_at(err, "%s", where);
		return st;
	}
	*out = hps_doc_of(j);
	return HPS_OK;
}

enum hps_status hps_doc_read(const char *path, struct hps_doc **out, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status st = hps_file_read(path, HPS_DOC_MAX_BYTES, &b, err);

	if (st == HPS_OK)
		st = hps_doc_parse(b.data, b.len, path, out, err);
	hps_buf_release(&b);
	return st;
}

enum hps_status hps_doc_write(const struct hps_doc *d, enum hps_form form, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status st = form == HPS_FORM_MSGPACK ? hps_doc_to_msgpack(d, &b, err)
						      : hps_doc_to_json(d, &b, err);

	if (st == HPS_OK)
		st = hps_out_write(b.data, b.len, err);
	hps_buf_release(&b);
	return st;
}
