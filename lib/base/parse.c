/* Is all of this text one number within limits? */
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/opt.h"

/* "expected WHAT, got VALUE", a long value cut. */
static enum hps_status unexpected(struct hps_err *err, const char *what, const char *s)
{
	return hps_err_set(err, HPS_BAD_INPUT, "expected %s, got \"%.60s%s\"", what, s,
			   strlen(s) > 60 ? "..." : "");
}

enum hps_status hps_parse_int(const char *s, int64_t min, int64_t max, int64_t *out,
			      struct hps_err *err)
{
	char what[96] = "an integer", *end;
	intmax_t v;

	if (min != INT64_MIN && max != INT64_MAX)
		snprintf(what, sizeof(what), "an integer from %" PRId64 " to %" PRId64, min, max);
	else if (min == 1)
		snprintf(what, sizeof(what), "an integer > 0");
	else if (min != INT64_MIN)
		snprintf(what, sizeof(what), "an integer >= %" PRId64, min);
	else if (max != INT64_MAX)
		snprintf(what, sizeof(what), "an integer <= %" PRId64, max);
	errno = 0;
	v = strtoimax(s, &end, 10);
	if (errno || end == s || *end || isspace((unsigned char)*s) || v < min || v > max)
		return unexpected(err, what, s);
	*out = (int64_t)v;
	return HPS_OK;
}

enum hps_status hps_parse_double(const char *s, double min, double max, double *out,
				 struct hps_err *err)
{
	char what[96] = "a number", *end;
	double v;

	if (min > -DBL_MAX && max < DBL_MAX)
		snprintf(what, sizeof(what), "a number from %g to %g", min, max);
	else if (min > 0 && min <= DBL_MIN)
		snprintf(what, sizeof(what), "a number > 0");
	else if (min > -DBL_MAX)
		snprintf(what, sizeof(what), "a number >= %g", min);
	else if (max < DBL_MAX)
		snprintf(what, sizeof(what), "a number <= %g", max);
	v = strtod(s, &end);
	if (end == s || *end || isspace((unsigned char)*s) || !isfinite(v) || v < min || v > max)
		return unexpected(err, what, s);
	*out = v;
	return HPS_OK;
}

enum hps_status hps_parse_bytes(const char *s, uint64_t *out, struct hps_err *err)
{
	static const char what[] = "bytes such as 4096, 64K, 16M or 1.5G";
	static const char units[] = "KMGT";
	const char *unit;
	char *end;
	double v;

	if (!isdigit((unsigned char)*s))
		return unexpected(err, what, s);
	if (s[strspn(s, "0123456789")] == '\0') { /* exact, beyond 2^53 too */
		errno = 0;
		uintmax_t n = strtoumax(s, NULL, 10);

		if (errno || n > UINT64_MAX)
			return unexpected(err, what, s);
		*out = n;
		return HPS_OK;
	}
	v = strtod(s, &end);
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (s + strspn(s, "0123456789.") != end || !unit || end[1])
		return unexpected(err, what, s);
	v = ldexp(v, 10 * (int)(unit - units + 1));
	if (!(v < 0x1p63))
		return unexpected(err, what, s);
	*out = (uint64_t)v;
	return HPS_OK;
}
