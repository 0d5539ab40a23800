/* Criteo text, fed anything. The first byte chooses the shape: bits 0-2 slots, 3-5 dense
 * columns, 6 whether the label may lack, 7 what reads the rest:
 * 0: the line parser, whose fast path must agree with the plain one in every value;
 * 1: a whole file (plain, gzip, zstd), whose lines are all rows or bad lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "data/criteo.h"
#include "data/lines_int.h"
#include "data/stat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
	if (!ok)
		abort();
}

static void parse_line(const struct hps_criteo *c, const char *text, size_t len)
{
	struct hps_field field[16];
	struct hps_err err = { 0 };
	uint64_t key[8];
	float label, feature[8];
	double value[8];
	bool fast = hps_criteo_parse(c, text, len, &label, feature, key);
	enum hps_status plain = hps_criteo_split(c, text, len, field, value, &err);

	must(fast == (plain == HPS_OK));
	if (!fast) {
		must(plain == HPS_BAD_INPUT && err.msg[0] != '\0');
		return;
	}
	must(label == (field[0].text != NULL && field[0].text[0] == '1'));
	for (uint32_t i = 0; i < c->dense; i++)
		must(feature[i] == (field[1 + i].len == 0
					    ? c->pre.missing
					    : hps_preprocess_value(&c->pre, value[i])));
	for (uint32_t i = 0; i < c->slots; i++)
		must(key[i] ==
		     hps_criteo_key(i, field[1 + c->dense + i].text, field[1 + c->dense + i].len));
}

static void parse_lines(const struct hps_criteo *c, const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1 + HPS_TEXT_PAD);
	const char *end, *line, *next;

	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\n';
	end = text + size + 1;
	for (line = text; line < end; line = next) {
		size_t len = hps_line_at(line, end, &next);

		must(next > line && (size_t)(next - line) > len);
		parse_line(c, line, len);
	}
	free(text);
}

static void read_file(const struct hps_criteo *c, const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", 0);
	char name[64];
	const char *path = name;
	struct hps_stat_opts o = { .path = &path,
				   .n_paths = 1,
				   .slots = c->slots,
				   .dense = c->dense,
				   .unlabelled = c->unlabelled,
				   .skip_bad = UINT64_MAX };
	struct hps_stat s;
	struct hps_err err = { 0 };
	enum hps_status st;

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	st = hps_stat(&o, &s, &err);
	must(st == HPS_OK ? s.rows + s.bad_lines > 0 : st == HPS_BAD_INPUT && err.where[0] != '\0');
	hps_stat_release(&s);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hps_model m = { 0 };
	struct hps_criteo c;

	m.preprocess.transform = HPS_TRANSFORM_SIGNED_LOG;
	m.preprocess.scale = 1;
	m.preprocess.missing = -1;
	if (size == 0 || hps_criteo_init(&c, data[0] & 7, data[0] >> 3 & 7, &m, NULL) != HPS_OK)
		return 0;
	c.unlabelled = data[0] >> 6 & 1;
	if (data[0] >> 7)
		read_file(&c, data + 1, size - 1);
	else
		parse_lines(&c, data + 1, size - 1);
	return 0;
}
