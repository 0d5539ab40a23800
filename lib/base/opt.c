/* Which options and operands did the user give? A table over getopt_long(3); the
 * manner of git's parse-options: one table makes parser and help agree. */
#include <fcntl.h>
#include <float.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"
#include "base/opt_int.h"
#include "base/out.h"

/* getopt_long returns FIRST_LONG + index for a long option, the letter for a short one. */
enum { FIRST_LONG = 256 };

struct parser {
	struct hps_cmd *cmd;
	struct hps_opt_common common;
	const struct hps_opt **opt; /* all options; n */
	size_t n;
	struct option *longs;
	char *shorts;
};

static void parser_release(struct parser *p)
{
	free(p->opt);
	free(p->longs);
	free(p->shorts);
}

static enum hps_status parser_init(struct parser *p, struct hps_cmd *cmd, struct hps_err *err)
{
	size_t own = 0, shorts = 0;

	*p = (struct parser){ .cmd = cmd };
	hps_opt_add_common(cmd, &p->common);
	while (cmd->opts && cmd->opts[own].name)
		own++;
	p->opt = hps_calloc(own + HPS_OPT_COMMON, sizeof(*p->opt), err);
	p->longs = hps_calloc(own + HPS_OPT_COMMON + 1, sizeof(*p->longs), err);
	p->shorts = hps_calloc(2 * (own + HPS_OPT_COMMON) + 2, 1, err);
	if (!p->opt || !p->longs || !p->shorts) {
		parser_release(p);
		return HPS_MEMORY;
	}
	for (size_t i = 0; i < own; i++)
		p->opt[p->n++] = &cmd->opts[i];
	for (const struct hps_opt *o = p->common.table; o->name; o++)
		p->opt[p->n++] = o;
	p->shorts[shorts++] = ':'; /* a missing argument is told apart from an unknown option */
	for (size_t i = 0; i < p->n; i++) {
		const struct hps_opt *o = p->opt[i];
		bool arg = o->kind != HPS_OPT_FLAG && o->kind != HPS_OPT_COUNT;

		p->longs[i] = (struct option){ o->name, arg ? required_argument : no_argument, NULL,
					       FIRST_LONG + (int)i };
		if (o->letter) {
			p->shorts[shorts++] = o->letter;
			if (arg)
				p->shorts[shorts++] = ':';
		}
	}
	return HPS_OK;
}

static const struct hps_opt *find(const struct parser *p, int c)
{
	if (c >= FIRST_LONG)
		return (size_t)(c - FIRST_LONG) < p->n ? p->opt[c - FIRST_LONG] : NULL;
	for (size_t i = 0; i < p->n; i++)
		if (p->opt[i]->letter && p->opt[i]->letter == c)
			return p->opt[i];
	return NULL;
}

static enum hps_status list_add(struct hps_opt_list *l, const char *arg, struct hps_err *err)
{
	enum hps_status st = hps_realloc((void **)&l->item, l->n + 1, sizeof(*l->item), err);

	if (st == HPS_OK)
		l->item[l->n++] = arg;
	return st;
}

/* A limit of the table as an integer; doubles beyond the range of int64_t are its ends. */
static int64_t as_int(double v)
{
	return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

static enum hps_status store(const struct hps_opt *o, const char *arg, struct hps_err *err)
{
	bool limited = o->min != 0 || o->max != 0;

	/* An empty path or name is a slip, mostly an unset variable of a script. */
	if ((o->kind == HPS_OPT_STR || o->kind == HPS_OPT_LIST) && !*arg)
		return hps_err_set(err, HPS_USAGE, "expected %s, got \"\"", o->arg);
	switch (o->kind) {
	case HPS_OPT_FLAG:
		*(bool *)o->dst = true;
		return HPS_OK;
	case HPS_OPT_COUNT:
		++*(int *)o->dst;
		return HPS_OK;
	case HPS_OPT_STR:
		*(const char **)o->dst = arg;
		return HPS_OK;
	case HPS_OPT_INT:
		return hps_parse_int(arg, limited ? as_int(o->min) : INT64_MIN,
				     limited ? as_int(o->max) : INT64_MAX, o->dst, err);
	case HPS_OPT_DOUBLE:
		return hps_parse_double(arg, limited ? o->min : -DBL_MAX,
					limited ? o->max : DBL_MAX, o->dst, err);
	case HPS_OPT_LIST:
		return list_add(o->dst, arg, err);
	}
	return HPS_OK;
}

static void option_name(const struct hps_opt *o, int c, char *out, size_t size)
{
	if (c < FIRST_LONG)
		snprintf(out, size, "-%c", c);
	else
		snprintf(out, size, "--%s", o->name);
}

/* What getopt_long found wrong: ':' a missing argument, '?' anything else. */
static enum hps_status complain(const struct parser *p, int c, char **argv, struct hps_err *err)
{
	const struct hps_opt *o = optopt ? find(p, optopt) : NULL;
	char name[64];

	if (!o && optopt && optopt < FIRST_LONG)
		return hps_err_set(err, HPS_USAGE, "unknown option -%c", optopt);
	if (!o) /* optind is past it: unknown or ambiguous */
		return hps_err_set(err, HPS_USAGE, "unknown option %s", argv[optind - 1]);
	option_name(o, optopt, name, sizeof(name));
	if (c == ':')
		return hps_err_set(err, HPS_USAGE, "%s needs an argument, %s", name, o->arg);
	return hps_err_set(err, HPS_USAGE, "%s takes no argument", name);
}

static enum hps_status take_options(struct parser *p, int argc, char **argv, struct hps_err *err)
{
	int c;

	opterr = 0;
	optind = 0; /* glibc: start afresh, also in a second parse */
	while ((c = getopt_long(argc, argv, p->shorts, p->longs, NULL)) != -1) {
		const struct hps_opt *o = c == '?' || c == ':' ? NULL : find(p, c);
		enum hps_status st;
		char name[64];

		if (!o)
			return complain(p, c, argv, err);
		if (o->dst == &p->common.json || o->dst == &p->common.msgpack ||
		    o->dst == &p->common.text) /* the last one holds */
			p->common.json = p->common.msgpack = p->common.text = false;
		st = store(o, optarg, err);
		if (st != HPS_OK) {
			option_name(o, c, name, sizeof(name));
			hps_err_at(err, "%s", name);
			return st == HPS_MEMORY ? st : HPS_USAGE;
		}
		if (p->common.help || p->common.version)
			return HPS_OK; /* whatever follows */
	}
	return HPS_OK;
}

static enum hps_status check_operands(const struct hps_cmd *cmd, int n, char **operands,
				      struct hps_err *err)
{
	if (n < cmd->min_operands)
		return hps_err_set(err, HPS_USAGE, "%s operand: expected %s", n ? "missing" : "no",
				   cmd->operands);
	if (cmd->max_operands >= 0 && n > cmd->max_operands)
		return hps_err_set(err, HPS_USAGE, "unexpected operand \"%s\"",
				   operands[cmd->max_operands]);
	for (int i = 0; i < n; i++)
		if (!*operands[i])
			return hps_err_set(err, HPS_USAGE, "empty operand: expected %s",
					   cmd->operands);
	return HPS_OK;
}

/* Settle what the common options say. */
static enum hps_status settle(struct parser *p, struct hps_err *err)
{
	struct hps_opt_common *c = &p->common;

	hps_log_init(p->cmd->name, c->quiet			? HPS_LOG_QUIET
				   : c->verbose > HPS_LOG_DEBUG ? HPS_LOG_DEBUG
								: c->verbose);
	p->cmd->form = c->msgpack ? HPS_FORM_MSGPACK : c->text ? HPS_FORM_TEXT : HPS_FORM_JSON;
	if (c->msgpack && isatty(STDOUT_FILENO))
		return hps_err_set(err, HPS_USAGE,
				   "--msgpack is binary; standard output is a terminal");
	return HPS_OK;
}

/* Text for -h and --version, flushed here so that a full disk is noticed and told. */
static enum hps_status show(const struct parser *p, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status st;

	if (p->common.help)
		st = hps_opt_help(p->cmd, &p->common, &b, err);
	else
		st = hps_buf_printf(&b, err, "%s %s\n", p->cmd->name, HPS_VERSION);
	if (st == HPS_OK)
		st = hps_out_write(b.data, b.len, err);
	hps_buf_release(&b);
	if (st == HPS_OK && fflush(stdout)) {
		st = hps_err_errno(err, HPS_IO, "cannot write");
		hps_err_at(err, "standard output");
		__fpurge(stdout); /* told once: hps_exit need not meet it again */
		clearerr(stdout);
	}
	return st;
}

/* A standard descriptor that the caller closed would be given to the next file opened, and messages
 * would land there. What takes its place cannot be read or written, as if it were closed; a closed
 * standard error swallows. */
static void fill_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY) != fd)
			return; /* no /dev/null: as before */
}

enum hps_opt_next hps_opt_parse(struct hps_cmd *cmd, int argc, char **argv, char ***operands,
				int *n_operands, enum hps_status *status)
{
	struct hps_err err = { 0 };
	struct parser p;
	bool done = false;

	fill_standard_files();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	hps_log_init(cmd->name, HPS_LOG_NORMAL);
	*status = parser_init(&p, cmd, &err);
	if (*status == HPS_OK) {
		*status = take_options(&p, argc, argv, &err);
		if (*status == HPS_OK && (p.common.help || p.common.version)) {
			done = true;
			*status = show(&p, &err);
		}
		if (*status == HPS_OK && !done)
			*status = settle(&p, &err);
		parser_release(&p);
	}
	*operands = argv + optind;
	*n_operands = argc - optind;
	if (*status == HPS_OK && !done)
		*status = check_operands(cmd, *n_operands, *operands, &err);
	if (*status == HPS_USAGE) {
		char try[64];

		snprintf(try, sizeof(try), "; try '%s -h'", cmd->name);
		size_t len = strlen(err.msg), room = sizeof(err.msg) - 1 - strlen(try);
		snprintf(err.msg + (len < room ? len : room), strlen(try) + 1, "%s", try);
	}
	err.status = *status;
	if (*status != HPS_OK)
		hps_err_print(cmd->name, &err);
	return *status != HPS_OK || done ? HPS_OPT_EXIT : HPS_OPT_GO_ON;
}

void hps_opt_list_release(struct hps_opt_list *l)
{
	free(l->item);
	l->item = NULL;
	l->n = 0;
}
