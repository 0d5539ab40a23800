/* Is this one of the names that are known, and if not, which one was meant? Nearest by
 * optimal string alignment distance (insert, delete, replace, swap of neighbours). */
#include <stdio.h>
#include <string.h>
#include "doc/doc_int.h"

enum { LONGEST = 40 }; /* names compared; longer ones get no suggestion */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	size_t d[LONGEST + 1][LONGEST + 1];

	if (n > LONGEST || m > LONGEST)
		return SIZE_MAX;
	for (size_t i = 0; i <= n; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			size_t replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			d[i][j] = least(replace, least(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[n][m];
}

/* The name nearest to s, if it is near enough to be a slip: a third of its length. */
static const char *nearest(const char *s, const char *const *names, size_t n)
{
	const char *best = NULL;
	size_t least_d = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		size_t d = distance(s, names[i]);

		if (d < least_d && d <= 1 + strlen(names[i]) / 3 && d < strlen(names[i])) {
			least_d = d;
			best = names[i];
		}
	}
	return best;
}

/* "a", "b" or "c"; what does not fit is cut. */
static void put_list(const char *const *names, size_t n, const char *last, char *out, size_t size)
{
	size_t len = 0;

	*out = '\0';
	for (size_t i = 0; i < n && len < size; i++) {
		const char *sep = i == 0 ? "" : i + 1 == n ? last : ", ";

		len += (size_t)snprintf(out + len, size - len, "%s\"%s\"", sep, names[i]);
	}
}

enum hps_status hps_at_choice(const struct hps_at *at, const char *const *names, size_t n, int *out,
			      struct hps_err *err)
{
	const char *s = json_string_value(hps_doc_json(at->node)), *near;
	enum hps_status st;
	char list[320];

	for (size_t i = 0; s && i < n; i++)
		if (!strcmp(s, names[i])) {
			*out = (int)i;
			return HPS_OK;
		}
	put_list(names, n, " or ", list, sizeof(list));
	st = hps_at_expected(at, err, "%s", list);
	near = s ? nearest(s, names, n) : NULL;
	if (near)
		hps_err_hint(err, "did you mean \"%s\"?", near);
	return st;
}

enum hps_status hps_at_only(const struct hps_at *at, const char *const *names, struct hps_err *err)
{
	enum hps_status st = hps_at_object(at, err);
	const char *key, *near;
	char list[224];
	size_t n = 0;
	json_t *v;

	if (st != HPS_OK)
		return st;
	while (names[n])
		n++;
	json_object_foreach(hps_doc_json(at->node), key, v) {
		size_t i = 0;

		while (i < n && strcmp(key, names[i]))
			i++;
		if (i < n)
			continue;
		struct hps_at member = hps_at_member(at, key);
		st = hps_at_error(&member, err, "unknown member");
		near = nearest(key, names, n);
		put_list(names, n, " and ", list, sizeof(list));
		if (near)
			hps_err_hint(err, "did you mean \"%s\"?", near);
		else
			hps_err_hint(err, "known here: %s", list);
		return st;
	}
	return HPS_OK;
}

const char *hps_at_name(const struct hps_at *at, size_t i)
{
	json_t *j = hps_doc_json(at->node);

	for (void *it = json_object_iter(j); it; it = json_object_iter_next(j, it))
		if (i-- == 0)
			return json_object_iter_key(it);
	return NULL;
}
