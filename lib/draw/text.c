/* How does text that somebody else wrote get into a picture unharmed and without harm? */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/utf8.h"
#include "draw/text_int.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS    "\xe2\x80\xa6"

/* The character at s (not at its end): its length, 0 if these bytes are none that XML allows:
 * controls, U+FFFE and U+FFFF are not. */
static size_t char_length(const char *s)
{
	size_t n = hps_utf8_len(s, strnlen(s, 4));
	bool c0 = (unsigned char)*s < 0x20 || *s == 0x7f;
	bool c1 = n == 2 && !memcmp(s, "\xc2", 1) && (unsigned char)s[1] < 0xa0;
	bool none = n == 3 && !memcmp(s, "\xef\xbf", 2) && (unsigned char)s[2] >= 0xbe;

	return c0 || c1 || none ? 0 : n;
}

static size_t step(const char *s)
{
	size_t n = char_length(s);

	return n ? n : 1;
}

static const char *xml_entity(char c)
{
	return c == '&'	  ? "&amp;"
	       : c == '<' ? "&lt;"
	       : c == '>' ? "&gt;"
	       : c == '"' ? "&quot;"
			  : NULL;
}

static const char *dot_escape(char c)
{
	return c == '&' ? "&amp;" : c == '"' ? "\\\"" : c == '\\' ? "\\\\" : NULL;
}

static enum hps_status add_escaped(struct hps_buf *b, const char *s, size_t most,
				   const char *(*escape)(char c), struct hps_err *err)
{
	enum hps_status rc = HPS_OK;
	size_t n = 0;

	for (; !rc && *s; s += step(s), n++) {
		const char *special = escape(*s);

		if (most && n + 1 == most && s[step(s)])
			return hps_buf_printf(b, err, ELLIPSIS);
		if (special)
			rc = hps_buf_printf(b, err, "%s", special);
		else if (char_length(s))
			rc = hps_buf_add(b, s, step(s), err);
		else
			rc = hps_buf_printf(b, err, REPLACEMENT);
	}
	return rc;
}

enum hps_status hps_draw_xml(struct hps_buf *b, const char *s, size_t most, struct hps_err *err)
{
	return add_escaped(b, s, most, xml_entity, err);
}

enum hps_status hps_draw_quoted(struct hps_buf *b, const char *s, size_t most, struct hps_err *err)
{
	enum hps_status rc = hps_buf_printf(b, err, "\"");

	if (!rc)
		rc = add_escaped(b, s, most, dot_escape, err);
	return rc ? rc : hps_buf_printf(b, err, "\"");
}

const char *hps_draw_si(char *out, size_t size, double value, const char *unit)
{
	static const char *const prefix[] = { "p", "n", "u", "m", "", "k", "M", "G", "T", "P" };
	int i = 4;

	if (value != 0 && isfinite(value)) {
		i += (int)floor(log10(fabs(value) * (1 + 1e-9)) / 3);
		i = i < 0 ? 0 : i > 9 ? 9 : i;
		value /= pow(1000, i - 4);
	}
	/* %.3g would turn 999.6 into 1e+03 */
	snprintf(out, size, fabs(value) >= 999.5 ? "%.0f %s%s" : "%.3g %s%s", value, prefix[i],
		 unit);
	return out;
}

double hps_draw_step(double range, unsigned n)
{
	double unit = pow(10, floor(log10(range / n))), times = range / n / unit;

	return unit * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}
