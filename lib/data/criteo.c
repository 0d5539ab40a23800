/* What does a line of Criteo text say? A fast path for lines that are as they should be,
 * and a plain one that settles all others and names their faults. */
#include "data/criteo.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"

/* A field's worth of slack for every column: no honest line comes near. */
enum { LINE_BASE = 64 << 10, LINE_COLUMN = 64 };

enum hps_status hps_criteo_init(struct hps_criteo *c, uint32_t slots, uint32_t dense,
				const struct hps_model *model, struct hps_err *err)
{
	if (slots > HPS_MAX_SLOTS || dense > HPS_MAX_COLS)
		return hps_err_set(err, HPS_USAGE, "%u slots and %u dense columns are too many",
				   slots, dense);
	if (slots + dense == 0)
		return hps_err_set(err, HPS_USAGE, "rows without slots and dense columns");
	*c = (struct hps_criteo){ .slots = slots, .dense = dense };
	c->line_max = LINE_BASE + (size_t)LINE_COLUMN * (1 + slots + dense);
	hps_preprocess_init(&c->pre, model);
	return HPS_OK;
}

uint64_t hps_criteo_key(uint32_t slot, const char *text, size_t len)
{
	return hps_hash_bytes(text, len, slot);
}

/* --- the plain path --- */

static enum hps_status expected(struct hps_err *err, size_t column, const char *what,
				struct hps_field f)
{
	int shown = f.len > 40 ? 40 : (int)f.len;

	return hps_err_set(err, HPS_BAD_INPUT, "column %zu: expected %s, got \"%.*s%s\"", column,
			   what, shown, f.text, f.len > 40 ? "..." : "");
}

static bool is_label(struct hps_field f)
{
	return f.len == 1 && (f.text[0] == '0' || f.text[0] == '1');
}

static bool to_integer(struct hps_field f, double *value)
{
	size_t i = f.len > 0 && (f.text[0] == '-' || f.text[0] == '+');
	uint64_t head = 0;
	double x;

	*value = 0;
	if (f.len == 0)
		return true;
	if (i == f.len)
		return false;
	for (size_t j = i; j < f.len; j++)
		if (f.text[j] < '0' || f.text[j] > '9')
			return false;
	while (i < f.len && f.text[i] == '0')
		i++;
	for (size_t end = i + 18; i < f.len && i < end; i++)
		head = head * 10 + (uint64_t)(f.text[i] - '0');
	for (x = (double)head; i < f.len && x < DBL_MAX; i++)
		x = x * 10 + (f.text[i] - '0');
	x = fmin(x, DBL_MAX);
	*value = f.text[0] == '-' ? 0.0 - x : x;
	return true;
}

static size_t count_columns(const char *text, size_t len)
{
	size_t n = 1;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\t';
	return n;
}

enum hps_status hps_criteo_split(const struct hps_criteo *c, const char *text, size_t len,
				 struct hps_field *field, double *value, struct hps_err *err)
{
	size_t want = 1 + (size_t)c->dense + c->slots, got, first;
	const char *end = text + len;

	if (len > c->line_max)
		return hps_err_set(err, HPS_BAD_INPUT, "the line is longer than %zu bytes",
				   c->line_max);
	if (memchr(text, 0, len) != NULL)
		return hps_err_set(err, HPS_BAD_INPUT, "byte %zu is NUL: this is not text",
				   (size_t)((const char *)memchr(text, 0, len) - text) + 1);
	got = count_columns(text, len);
	first = c->unlabelled && got == want - 1;
	if (got + first != want) {
		hps_err_set(err, HPS_BAD_INPUT, "expected %zu columns, got %zu%s", want, got,
			    len == 0 ? " (the line is empty)" : "");
		hps_err_hint(err,
			     "a label, %u numbers and %u ids, as the model or --dense and "
			     "--slots say, with tabs between them",
			     c->dense, c->slots);
		return HPS_BAD_INPUT;
	}
	field[0] = (struct hps_field){ 0 };
	for (size_t i = first; i < want; i++) {
		const char *tab = memchr(text, '\t', (size_t)(end - text));

		if (tab == NULL)
			tab = end;
		field[i] = (struct hps_field){ text, (size_t)(tab - text) };
		text = tab + 1;
	}
	if (first == 0 && !is_label(field[0]))
		return expected(err, 1, "0 or 1", field[0]);
	for (size_t i = 0; i < c->dense; i++)
		if (!to_integer(field[1 + i], &value[i]))
			return expected(err, 2 + i - first, "an integer", field[1 + i]);
	return HPS_OK;
}

/* --- the fast path --- */

static inline uint64_t load8(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

/* 0x80 in the lowest byte of v that is zero, and maybe in later ones. */
static inline uint64_t zero_byte(uint64_t v)
{
	return (v - 0x0101010101010101u) & ~v & 0x8080808080808080u;
}

/* Where the field at p ends: at the first tab, else at end. The lowest byte of a
 * little-endian word comes first. */
static inline const char *field_end(const char *p, const char *end)
{
	uint64_t tab = zero_byte(load8(p) ^ 0x0909090909090909u);

	if (tab != 0)
		p += __builtin_ctzll(tab) / 8;
	else if (p[8] == '\t')
		p += 8;
	else if (end - p <= 8 || (p = memchr(p + 8, '\t', (size_t)(end - p - 8))) == NULL)
		p = end;
	return p < end ? p : end;
}

static inline uint64_t rotate(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

/* hps_criteo_key of eight bytes, which nearly all ids have: hps_hash_bytes (XXH64) with its
 * loops undone, at half the price. */
static inline uint64_t key8(uint32_t slot, uint64_t word)
{
	const uint64_t p1 = 0x9e3779b185ebca87u, p2 = 0xc2b2ae3d27d4eb4fu, p3 = 0x165667b19e3779f9u,
		       p4 = 0x85ebca77c2b2ae63u, p5 = 0x27d4eb2f165667c5u;
	uint64_t h = slot + p5 + 8;

	h = rotate(h ^ rotate(word * p2, 31) * p1, 27) * p1 + p4;
	h = (h ^ h >> 33) * p2;
	h = (h ^ h >> 29) * p3;
	return h ^ h >> 32;
}

/* The value of 1 to 8 digits at the start of word; false if they are none. Two digits, then
 * four, then eight are joined by one multiplication each (Lemire 2021). */
static inline bool digits8(uint64_t word, int len, uint64_t *value)
{
	uint64_t zeros = len == 8 ? 0 : 0x3030303030303030u >> (8 * len), x;

	word = word << (64 - 8 * len) | zeros;
	x = word - 0x3030303030303030u;
	if (((word + 0x4646464646464646u) | x) & 0x8080808080808080u)
		return false;
	x = x * 10 + (x >> 8);
	*value = ((x & 0x000000ff000000ffu) * 0x000f424000000064u +
		  ((x >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >>
		 32;
	return true;
}

/* The feature of the integer at p, up to end or a tab. Returns its end, NULL if it is none. */
static inline const char *integer(const struct hps_preprocess *pre, const char *p, const char *end,
				  float *feature)
{
	bool negative = *p == '-';
	const char *start = p + negative, *stop;
	uint64_t v;
	double x;

	if (p == end || *p == '\t') {
		*feature = pre->missing;
		return p;
	}
	stop = field_end(start, end);
	if (stop > start && stop - start <= 8 && digits8(load8(start), (int)(stop - start), &v)) {
		if (v < HPS_PREPROCESS_SMALL) {
			*feature = negative ? 0.0f - pre->small[v] : pre->small[v];
			return stop;
		}
		x = negative ? -(double)v : (double)v;
	} else if (!to_integer((struct hps_field){ p, (size_t)(stop - p) }, &x)) {
		return NULL;
	}
	*feature = hps_preprocess_value(pre, x);
	return stop;
}

bool hps_criteo_parse(const struct hps_criteo *c, const char *text, size_t len, float *label,
		      float *feature, uint64_t *key)
{
	const char *p = text, *end = text + len;
	size_t left = (size_t)c->dense + c->slots; /* columns after the label */

	if (len > c->line_max || memchr(text, 0, len) != NULL)
		return false;
	*label = 0;
	if (!c->unlabelled || count_columns(text, len) != left) {
		if (len < 2 || (*p & 0xfe) != '0' || p[1] != '\t')
			return false;
		*label = (float)(*p - '0');
		p += 2;
	}
	for (size_t i = 0; i < c->dense; i++) {
		if ((p = integer(&c->pre, p, end, &feature[i])) == NULL)
			return false;
		if (--left > 0 ? p >= end || *p++ != '\t' : p != end)
			return false;
	}
	for (uint32_t i = 0; i < c->slots; i++) {
		const char *q = field_end(p, end);

		key[i] = q - p == 8 ? key8(i, load8(p)) : hps_criteo_key(i, p, (size_t)(q - p));
		if (--left > 0 ? q == end : q != end)
			return false;
		p = q + 1;
	}
	return true;
}
