/* How is one member of a section read, checked and named? Numbers, names, arrays,
 * digests: the small readers that all sections share. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/rng.h"
#include "job/job_int.h"

/* Nothing to read: the caller's default stands. */
static bool skip(const struct hps_at *member, enum hps_presence p)
{
	return p == HPS_OPTIONAL && hps_at_absent(member);
}

/* The ceiling is named only to what exceeds it: everyone else is told the plain thing,
 * "an integer > 0". */
enum hps_status hps_get_u64(const struct hps_at *at, const char *key, enum hps_presence p,
			    uint64_t min, uint64_t max, uint64_t *out, struct hps_err *err)
{
	struct hps_at m = hps_at_member(at, key);
	enum hps_status rc;
	double v;

	if (skip(&m, p))
		return HPS_OK;
	rc = hps_at_u64(&m, min, max, out, NULL);
	if (!rc)
		return HPS_OK;
	if (!hps_at_double(&m, (double)max, HUGE_VAL, &v, NULL))
		return hps_at_expected(&m, err, "an integer from %" PRIu64 " to %" PRIu64, min,
				       max);
	return hps_at_u64(&m, min, UINT64_MAX, out, err);
}

enum hps_status hps_get_u32(const struct hps_at *at, const char *key, enum hps_presence p,
			    uint32_t min, uint32_t max, uint32_t *out, struct hps_err *err)
{
	uint64_t v = *out;
	enum hps_status rc = hps_get_u64(at, key, p, min, max, &v, err);

	if (!rc)
		*out = (uint32_t)v;
	return rc;
}

enum hps_status hps_get_double(const struct hps_at *at, const char *key, enum hps_presence p,
			       double min, double max, double *out, struct hps_err *err)
{
	struct hps_at m = hps_at_member(at, key);

	if (skip(&m, p))
		return HPS_OK;
	return hps_at_double(&m, min, max, out, err);
}

enum hps_status hps_get_positive(const struct hps_at *at, const char *key, enum hps_presence p,
				 double max, double *out, struct hps_err *err)
{
	return hps_get_double(at, key, p, DBL_MIN, max, out, err);
}

enum hps_status hps_get_bool(const struct hps_at *at, const char *key, enum hps_presence p,
			     bool *out, struct hps_err *err)
{
	struct hps_at m = hps_at_member(at, key);

	if (skip(&m, p))
		return HPS_OK;
	return hps_at_bool(&m, out, err);
}

enum hps_status hps_get_choice(const struct hps_at *at, const char *key, enum hps_presence p,
			       const char *const *names, size_t n, int *out, struct hps_err *err)
{
	struct hps_at m = hps_at_member(at, key);

	if (skip(&m, p))
		return HPS_OK;
	return hps_at_choice(&m, names, n, out, err);
}

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool hps_name_ok(const char *s)
{
	size_t n = 0;

	if (!is_alnum(s[0]))
		return false;
	for (; s[n]; n++)
		if (n >= HPS_NAME_LEN || !(is_alnum(s[n]) || strchr("_.-", s[n])))
			return false;
	return true;
}

static enum hps_status take(const char *s, char **out, struct hps_err *err)
{
	char *copy = hps_strdup(s, err);

	if (!copy)
		return HPS_MEMORY;
	*out = copy;
	return HPS_OK;
}

enum hps_status hps_get_name(const struct hps_at *at, const char *key, enum hps_presence p,
			     char **out, struct hps_err *err)
{
	struct hps_at m = hps_at_member(at, key);
	enum hps_status rc;
	const char *s;

	if (skip(&m, p))
		return HPS_OK;
	rc = hps_at_string(&m, &s, err);
	if (rc)
		return rc;
	if (!hps_name_ok(s))
		return hps_at_expected(&m, err, HPS_NAME_RULE);
	return take(s, out, err);
}

enum hps_status hps_get_text(const struct hps_at *at, const char *key, enum hps_presence p,
			     size_t max, char **out, struct hps_err *err)
{
	struct hps_at m = hps_at_member(at, key);
	enum hps_status rc;
	const char *s;

	if (skip(&m, p))
		return HPS_OK;
	rc = hps_at_string(&m, &s, err);
	if (rc)
		return rc;
	if (!*s || strlen(s) > max)
		return hps_at_expected(&m, err, "a text of 1 to %zu bytes", max);
	return take(s, out, err);
}

enum hps_status hps_get_digest(const struct hps_at *at, const char *key, enum hps_presence p,
			       uint64_t *out, struct hps_err *err)
{
	struct hps_at m = hps_at_member(at, key);
	enum hps_status rc;
	const char *s;

	if (skip(&m, p))
		return HPS_OK;
	rc = hps_at_string(&m, &s, err);
	if (rc)
		return rc;
	if (strlen(s) != HPS_DIGEST_LEN - 1 || strspn(s, "0123456789abcdef") != HPS_DIGEST_LEN - 1)
		return hps_at_expected(&m, err, "16 lower-case hex digits");
	*out = strtoull(s, NULL, 16);
	return HPS_OK;
}

enum hps_status hps_get_sync(const struct hps_at *at, const char *key, enum hps_presence p,
			     enum hps_sync *out, struct hps_err *err)
{
	struct hps_at m = hps_at_member(at, key);
	enum hps_status rc;
	const char *s;
	int v = 0;

	if (skip(&m, p))
		return HPS_OK;
	rc = hps_at_string(&m, &s, err);
	if (rc)
		return rc;
	if (!strncmp(s, "ssp", 3))
		return hps_at_error(&m, err, "%s is not built yet; bsp and asp are", s);
	rc = hps_at_choice(&m, hps_sync_names, HPS_COUNT(hps_sync_names), &v, err);
	if (rc)
		return rc;
	*out = (enum hps_sync)v;
	return HPS_OK;
}

enum hps_status hps_get_array(const struct hps_at *at, const char *key, enum hps_presence p,
			      size_t min, size_t max, struct hps_at *place, uint32_t *count,
			      struct hps_err *err)
{
	enum hps_status rc;
	size_t n;

	*place = hps_at_member(at, key);
	*count = 0;
	if (skip(place, p))
		return HPS_OK;
	rc = hps_at_array(place, err);
	if (rc)
		return rc;
	n = hps_at_count(place);
	if (n != min && min == max)
		return hps_at_error(place, err, "expected %zu element%s, got %zu", min,
				    min == 1 ? "" : "s", n);
	if (n < min)
		return hps_at_error(place, err, "expected at least %zu element%s, got %zu", min,
				    min == 1 ? "" : "s", n);
	if (n > max)
		return hps_at_error(place, err, "expected at most %zu element%s, got %zu", max,
				    max == 1 ? "" : "s", n);
	*count = (uint32_t)n;
	return HPS_OK;
}

enum hps_status hps_get_doubles(const struct hps_at *at, const char *key, enum hps_presence p,
				uint32_t n, double **out, struct hps_err *err)
{
	enum hps_status rc;
	struct hps_at place;
	uint32_t count;
	double *v;

	*out = NULL;
	place = hps_at_member(at, key);
	if (skip(&place, p))
		return HPS_OK;
	rc = hps_get_array(at, key, p, n, n, &place, &count, err);
	if (rc)
		return rc;
	v = hps_calloc(n, sizeof(*v), err);
	if (!v)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct hps_at item = hps_at_item(&place, i);

		rc = hps_at_double(&item, 0, HUGE_VAL, &v[i], err);
	}
	if (rc)
		free(v);
	else
		*out = v;
	return rc;
}

void hps_digest_text(uint64_t digest, char out[HPS_DIGEST_LEN])
{
	for (int i = HPS_DIGEST_LEN - 2; i >= 0; i--, digest >>= 4)
		out[i] = "0123456789abcdef"[digest & 15];
	out[HPS_DIGEST_LEN - 1] = '\0';
}

struct hps_doc *hps_doc_finish(struct hps_doc *d, int failed)
{
	if (!failed)
		return d;
	hps_doc_free(d);
	return NULL;
}

struct hps_doc *hps_doc_digest(uint64_t digest)
{
	char text[HPS_DIGEST_LEN];

	hps_digest_text(digest, text);
	return hps_doc_string(text);
}

struct hps_doc *hps_doc_doubles(const double *v, uint32_t n)
{
	struct hps_doc *a = hps_doc_array();
	int failed = !a;

	for (uint32_t i = 0; !failed && i < n; i++)
		failed = hps_doc_add(a, hps_doc_double(v[i]));
	return hps_doc_finish(a, failed);
}

/* --- names to numbers: open addressing, at most half full --- */

enum hps_status hps_index_init(struct hps_index *x, uint32_t n, struct hps_err *err)
{
	uint32_t size = 4;

	while (size / 2 < n && size < UINT32_C(1) << 31)
		size *= 2;
	x->mask = size - 1;
	x->slot = hps_calloc(size, sizeof(*x->slot), err);
	return x->slot ? HPS_OK : HPS_MEMORY;
}

void hps_index_release(struct hps_index *x)
{
	free(x->slot);
	x->slot = NULL;
}

static uint32_t index_slot(const struct hps_index *x, const char *name)
{
	uint32_t i = (uint32_t)hps_hash_bytes(name, strlen(name), 0) & x->mask;

	while (x->slot[i].name && strcmp(x->slot[i].name, name))
		i = (i + 1) & x->mask;
	return i;
}

uint32_t hps_index_add(struct hps_index *x, const char *name, uint32_t value)
{
	uint32_t i = index_slot(x, name);

	if (!x->slot[i].name) {
		x->slot[i].name = name;
		x->slot[i].value = value;
	}
	return x->slot[i].value;
}

int64_t hps_index_find(const struct hps_index *x, const char *name)
{
	uint32_t i = index_slot(x, name);

	return x->slot[i].name ? (int64_t)x->slot[i].value : -1;
}

/* --- digests --- */

uint64_t hps_digest_u64(uint64_t digest, uint64_t v)
{
	uint8_t b[8];

	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)(v >> (8 * i));
	return hps_hash_bytes(b, sizeof(b), digest);
}

uint64_t hps_digest_double(uint64_t digest, double v)
{
	uint64_t bits;

	if (v == 0)
		v = 0; /* -0.0 and 0.0 are one value */
	memcpy(&bits, &v, sizeof(bits));
	return hps_digest_u64(digest, bits);
}

uint64_t hps_digest_str(uint64_t digest, const char *s)
{
	uint64_t n = strlen(s);

	return hps_hash_bytes(s, n, hps_digest_u64(digest, n));
}
