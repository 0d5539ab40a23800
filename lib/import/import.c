/* Where does a foreign profile lie, and what is it called? Files and directories for the
 * readers, which work on memory. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/mem.h"
#include "import/import_int.h"

enum { MAX_GRAPH_BYTES = 64 << 20 };

static const char *const kinds[] = { "pipedream", "sailor" };

enum hps_status hps_import_kind(const char *word, enum hps_import_kind *kind, struct hps_err *err)
{
	for (int i = 0; i < 2; i++) {
		if (!strcmp(word, kinds[i])) {
			*kind = (enum hps_import_kind)i;
			return HPS_OK;
		}
	}
	return hps_err_set(err, HPS_USAGE,
			   "--import: expected \"pipedream\" or \"sailor\", got \"%s\"", word);
}

/* "pipedream alexnet.graph.txt": the last part of the path, without the slashes at its end. */
static enum hps_status set_source(enum hps_import_kind kind, const char *path,
				  struct hps_profile *p, struct hps_err *err)
{
	size_t end = strlen(path), begin;
	char text[NAME_MAX + 32];

	while (end && path[end - 1] == '/')
		end--;
	for (begin = end; begin && path[begin - 1] != '/' && end - begin < NAME_MAX; begin--)
		;
	snprintf(text, sizeof(text), "%s %.*s", kinds[kind], (int)(end - begin), path + begin);
	p->source = hps_strdup(text, err);
	return p->source ? HPS_OK : HPS_MEMORY;
}

static enum hps_status import_graph(const char *path, const struct hps_cluster *c,
				    const struct hps_import_options *o, struct hps_profile *p,
				    struct hps_import_report *r, struct hps_err *err)
{
	const char *name = strcmp(path, "-") ? path : "standard input";
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status st = hps_file_read(path, MAX_GRAPH_BYTES, &b, err);
	char nothing[1] = "";

	if (!st)
		st = hps_import_pipedream(b.data ? b.data : nothing, b.len, name, c, o, p, r, err);
	hps_buf_release(&b);
	return st;
}

/* --- a directory, with a folder for each type --- */

/* The folders there are, for the hint. */
static void hint_folders(DIR *d, struct hps_err *err)
{
	struct hps_buf b = { .max = 160 };
	const struct dirent *e;

	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && e->d_type != DT_REG &&
		    hps_buf_printf(&b, NULL, "%s%s", b.len ? ", " : "", e->d_name))
			break;
	if (b.len)
		hps_err_hint(err,
			     "a type of the cluster must have the name of a folder; there are "
			     "%s",
			     b.data);
	hps_buf_release(&b);
}

/* DIR/TYPE/profile.json of each type that has one: doc and name, n_types of each. */
static enum hps_status read_folders(const char *dir, const struct hps_cluster *c,
				    struct hps_doc **doc, char **name, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	bool any = false;
	DIR *d = opendir(dir);

	if (!d)
		return hps_err_errno(err, HPS_IO, "cannot read the directory \"%s\"", dir);
	for (uint32_t t = 0; t < c->n_types && !st; t++) {
		struct hps_buf b = { .max = PATH_MAX };

		st = hps_buf_printf(&b, err, "%s/%s/profile.json", dir, c->type[t].name);
		name[t] = hps_buf_take(&b);
		if (!st && !name[t])
			st = hps_err_set(err, HPS_MEMORY, "no memory for a path");
		if (st || (access(name[t], F_OK) && (errno == ENOENT || errno == ENOTDIR)))
			continue;
		st = hps_doc_read(name[t], &doc[t], err);
		any = true;
	}
	if (!st && !any) {
		st = hps_err_set(err, HPS_BAD_INPUT,
				 "expected TYPE/profile.json of a type of the cluster, found none");
		hps_err_at(err, "%s", dir);
		hint_folders(d, err);
	}
	closedir(d);
	return st;
}

static enum hps_status import_folders(const char *dir, const struct hps_cluster *c,
				      const struct hps_import_options *o, struct hps_profile *p,
				      struct hps_import_report *r, struct hps_err *err)
{
	struct hps_doc **doc = hps_calloc(c->n_types, sizeof(*doc), err);
	char **name = hps_calloc(c->n_types, sizeof(*name), err);
	enum hps_status st = doc && name ? read_folders(dir, c, doc, name, err) : HPS_MEMORY;

	if (!st)
		st = hps_import_sailor(doc, (const char *const *)name, c, o, p, r, err);
	if (st && err && !*err->where)
		hps_err_at(err, "%s", dir);
	for (uint32_t t = 0; doc && name && t < c->n_types; t++) {
		hps_doc_free(doc[t]);
		free(name[t]);
	}
	free(doc);
	free(name);
	return st;
}

enum hps_status hps_import(enum hps_import_kind kind, const char *path, const struct hps_cluster *c,
			   const struct hps_import_options *o, struct hps_profile *p,
			   struct hps_import_report *r, struct hps_err *err)
{
	enum hps_status st;

	memset(p, 0, sizeof(*p));
	st = kind == HPS_IMPORT_SAILOR ? import_folders(path, c, o, p, r, err)
				       : import_graph(path, c, o, p, r, err);
	if (!st)
		st = set_source(kind, strcmp(path, "-") ? path : "standard input", p, err);
	if (st)
		hps_profile_release(p);
	return st;
}
