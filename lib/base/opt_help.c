/* What does -h print? The usage line, which the man page's SYNOPSIS repeats, then each
 * option with its help, all from the table that the parser uses. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "base/opt_int.h"

enum { WIDTH = 80 };

void hps_opt_add_common(const struct hps_cmd *cmd, struct hps_opt_common *c)
{
	const struct hps_opt all[HPS_OPT_COMMON] = {
		{ 0, "seed", HPS_OPT_INT, cmd->seed, "N", "seed of all chance", 0, 0x1p53 },
		{ 0, "json", HPS_OPT_FLAG, &c->json, NULL, "write JSON (the default)" },
		{ 0, "msgpack", HPS_OPT_FLAG, &c->msgpack, NULL, "write msgpack" },
		{ 0, "text", HPS_OPT_FLAG, &c->text, NULL, "write text for a person" },
		{ 'q', "quiet", HPS_OPT_FLAG, &c->quiet, NULL, "tell nothing but errors" },
		{ 'v', "verbose", HPS_OPT_COUNT, &c->verbose, NULL, "tell more" },
		{ 'h', "help", HPS_OPT_FLAG, &c->help, NULL, "show this help" },
		{ 0, "version", HPS_OPT_FLAG, &c->version, NULL, "show the version" },
	};
	const bool has[HPS_OPT_COMMON] = {
		cmd->seed != NULL,
		cmd->has_form,
		cmd->has_form,
		cmd->has_text,
		true,
		true,
		true,
		true,
	};
	size_t n = 0;

	for (size_t i = 0; i < HPS_OPT_COMMON; i++)
		if (has[i])
			c->table[n++] = all[i];
	c->table[n] = (struct hps_opt){ 0 };
}

static bool takes_arg(const struct hps_opt *o)
{
	return o->kind != HPS_OPT_FLAG && o->kind != HPS_OPT_COUNT;
}

static int by_letter(const char *a, const char *b)
{
	int x = tolower((unsigned char)*a), y = tolower((unsigned char)*b);

	return x != y ? x - y : *b - *a; /* aAbB */
}

/* The letters of all options without argument, sorted, as "hqv". */
static void bundle(const struct hps_opt *own, const struct hps_opt *common, char *out)
{
	const struct hps_opt *tables[] = { own, common };
	size_t n = 0;

	for (int t = 0; t < 2; t++)
		for (const struct hps_opt *o = tables[t]; o && o->name; o++) {
			size_t i = n;

			if (!o->letter || takes_arg(o))
				continue;
			for (; i && by_letter(&o->letter, &out[i - 1]) < 0; i--)
				out[i] = out[i - 1];
			out[i] = o->letter;
			n++;
		}
	out[n] = '\0';
}

/* Add " WORD" to the usage, on a new line, indented below the first word, if it is full. */
static enum hps_status add_word(struct hps_buf *b, const char *name, size_t *col, const char *word,
				struct hps_err *err)
{
	size_t len = strlen(word), indent = strlen("usage: ") + strlen(name);
	enum hps_status st;

	if (*col > indent && *col + 1 + len > WIDTH) {
		st = hps_buf_printf(b, err, "\n%*s", (int)indent, "");
		*col = indent;
		if (st != HPS_OK)
			return st;
	}
	*col += 1 + len;
	return hps_buf_printf(b, err, " %s", word);
}

/* "[-t FLOOR]", "[--limit TYPE=N]...", "[--explain]" */
static void option_word(const struct hps_opt *o, char *out, size_t size)
{
	char flag[64];

	if (o->letter)
		snprintf(flag, sizeof(flag), "-%c", o->letter);
	else
		snprintf(flag, sizeof(flag), "--%s", o->name);
	snprintf(out, size, "[%s%s%s]%s", flag, takes_arg(o) ? " " : "", takes_arg(o) ? o->arg : "",
		 o->kind == HPS_OPT_LIST ? "..." : "");
}

static enum hps_status usage(const struct hps_cmd *cmd, const struct hps_opt_common *c,
			     struct hps_buf *b, struct hps_err *err)
{
	size_t col = strlen("usage: ") + strlen(cmd->name);
	char word[160], letters[128 + HPS_OPT_COMMON];
	enum hps_status st = hps_buf_printf(b, err, "usage: %s", cmd->name);

	bundle(cmd->opts, c->table, letters);
	snprintf(word, sizeof(word), "[-%s]", letters);
	if (st == HPS_OK)
		st = add_word(b, cmd->name, &col, word, err);
	if (st == HPS_OK && (cmd->has_form || cmd->has_text)) {
		snprintf(word, sizeof(word), "[%s%s%s]", cmd->has_form ? "--json | --msgpack" : "",
			 cmd->has_form && cmd->has_text ? " | " : "",
			 cmd->has_text ? "--text" : "");
		st = add_word(b, cmd->name, &col, word, err);
	}
	for (const struct hps_opt *o = cmd->opts; st == HPS_OK && o && o->name; o++) {
		if (o->letter && !takes_arg(o))
			continue;
		option_word(o, word, sizeof(word));
		st = add_word(b, cmd->name, &col, word, err);
	}
	if (st == HPS_OK && cmd->seed)
		st = add_word(b, cmd->name, &col, "[--seed N]", err);
	/* Operands word by word, so that a long list wraps too. */
	for (const char *p = cmd->operands; st == HPS_OK && p && *p;) {
		size_t n = strcspn(p, " ");

		snprintf(word, sizeof(word), "%.*s", (int)n, p);
		st = add_word(b, cmd->name, &col, word, err);
		p += n;
		p += strspn(p, " ");
	}
	return st == HPS_OK ? hps_buf_printf(b, err, "\n") : st;
}

static enum hps_status list(const struct hps_opt *o, struct hps_buf *b, struct hps_err *err)
{
	enum { COLUMN = 28 };
	enum hps_status st = HPS_OK;

	for (; st == HPS_OK && o && o->name; o++) {
		char left[96], letter[8] = "    ";
		int n;

		if (o->letter)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		n = snprintf(left, sizeof(left), "  %s--%s%s%s", letter, o->name,
			     takes_arg(o) ? " " : "", takes_arg(o) ? o->arg : "");
		if (n < COLUMN - 1)
			st = hps_buf_printf(b, err, "%-*s%s\n", COLUMN, left, o->help);
		else
			st = hps_buf_printf(b, err, "%s\n%*s%s\n", left, COLUMN, "", o->help);
	}
	return st;
}

enum hps_status hps_opt_help(const struct hps_cmd *cmd, const struct hps_opt_common *common,
			     struct hps_buf *b, struct hps_err *err)
{
	enum hps_status st = usage(cmd, common, b, err);

	if (st == HPS_OK)
		st = hps_buf_printf(b, err, "\n%s\n\noptions:\n", cmd->summary);
	if (st == HPS_OK)
		st = list(cmd->opts, b, err);
	if (st == HPS_OK)
		st = list(common->table, b, err);
	return st;
}
