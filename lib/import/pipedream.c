/* What did PipeDream's profiler measure? Its graph text (graph/graph.py of
 * github.com/msr-fiddle/pipedream; Narayanan et al., SOSP 2019) as a profile. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/opt.h"
#include "import/import_int.h"

#define BETWEEN	  " -- "
#define MAX_MS	  1e12
#define MAX_BYTES 1e18
enum { MAX_ID = 128, MAX_INPUTS = 64 };

/* --- one line --- */

struct reading {
	struct hps_foreign_graph *g;
	size_t line, room_nodes, room_edges;
};

/* Cut text at the first BETWEEN; returns what is behind it, or NULL. */
static char *split(char *text)
{
	char *at = strstr(text, BETWEEN);

	if (!at)
		return NULL;
	*at = '\0';
	return at + strlen(BETWEEN);
}

static enum hps_status check_id(const struct reading *r, const char *id, struct hps_err *err)
{
	size_t len = strlen(id);

	if (len && len <= MAX_ID && !strpbrk(id, " \t"))
		return HPS_OK;
	return hps_foreign_fault(r->g->name, r->line, err,
				 "expected a node's name of 1 to %d bytes, got \"%s\"", MAX_ID, id);
}

/* "12.0", or "[12.0; 4.0]", which are added. */
static enum hps_status number(char *text, double max, double *out, struct hps_err *err)
{
	size_t len = strlen(text);
	enum hps_status st = HPS_OK;
	char *next;

	if (len < 2 || text[0] != '[' || text[len - 1] != ']')
		return hps_parse_double(text, 0, max, out, err);
	text[len - 1] = '\0';
	*out = 0;
	for (text++; text && !st; text = next) {
		double v = 0;

		next = strstr(text, "; ");
		if (next) {
			*next = '\0';
			next += 2;
		}
		st = hps_parse_double(text, 0, max, &v, err);
		*out += v;
	}
	return st;
}

/* "forward_compute_time=0.5, backward_compute_time=..., ...", in this order. */
static enum hps_status read_figures(const struct reading *r, char *text,
				    struct hps_foreign_node *node, struct hps_err *err)
{
	const struct {
		const char *key;
		double max, *out;
	} figure[] = {
		{ "forward_compute_time", MAX_MS, &node->forward_s },
		{ "backward_compute_time", MAX_MS, &node->backward_s },
		{ "activation_size", MAX_BYTES, &node->output_bytes },
		{ "parameter_size", MAX_BYTES, &node->param_bytes },
	};

	for (size_t i = 0; i < sizeof(figure) / sizeof(*figure); i++) {
		size_t len = strlen(figure[i].key);
		char *next = text ? strstr(text, ", ") : NULL;

		if (!text || strncmp(text, figure[i].key, len) || text[len] != '=')
			return hps_foreign_fault(r->g->name, r->line, err,
						 "node \"%s\": expected %s=..., got \"%s\"",
						 node->id, figure[i].key, text ? text : "");
		if (next) {
			*next = '\0';
			next += 2;
		}
		if (number(text + len + 1, figure[i].max, figure[i].out, err)) {
			hps_err_at(err, "%s:%zu: node \"%s\": %s", r->g->name, r->line, node->id,
				   figure[i].key);
			if (err)
				err->status = HPS_BAD_INPUT;
			return HPS_BAD_INPUT;
		}
		text = next;
	}
	if (text)
		return hps_foreign_fault(r->g->name, r->line, err,
					 "node \"%s\": expected no more figures, got \"%s\"",
					 node->id, text);
	node->forward_s *= 1e-3;
	node->backward_s *= 1e-3;
	return HPS_OK;
}

/* Room for one more. */
static enum hps_status grow(void **array, size_t n, size_t *room, size_t size, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	if (n == *room) {
		*room = n ? 2 * n : 64;
		st = hps_realloc(array, *room, size, err);
	}
	return st;
}

static enum hps_status read_node(struct reading *r, char *text, struct hps_err *err)
{
	struct hps_foreign_graph *g = r->g;
	struct hps_foreign_node node = { .id = text, .line = r->line };
	char *what = split(text), *figures = what ? split(what) : NULL;
	enum hps_status st;

	if (!figures)
		return hps_foreign_fault(g->name, r->line, err,
					 "expected \"NODE -- WHAT -- FIGURES\", got \"%s\"", text);
	split(figures); /* what follows is a stage's number */
	node.what = what;
	if (g->n_nodes == HPS_MAX_LAYERS + MAX_INPUTS)
		return hps_foreign_fault(g->name, r->line, err, "more than %d nodes",
					 HPS_MAX_LAYERS);
	st = check_id(r, node.id, err);
	if (!st)
		st = read_figures(r, figures, &node, err);
	if (!st)
		st = grow((void **)&g->node, g->n_nodes, &r->room_nodes, sizeof(*g->node), err);
	if (!st)
		g->node[g->n_nodes++] = node;
	return st;
}

static enum hps_status read_edge(struct reading *r, char *text, struct hps_err *err)
{
	struct hps_foreign_graph *g = r->g;
	struct hps_foreign_edge edge = { .from_id = text, .line = r->line };
	enum hps_status st;

	edge.to_id = split(text);
	if (!edge.to_id)
		return hps_foreign_fault(g->name, r->line, err,
					 "expected an edge \"NODE -- NODE\", got \"%s\"", text);
	st = check_id(r, edge.from_id, err);
	if (!st)
		st = check_id(r, edge.to_id, err);
	if (!st)
		st = grow((void **)&g->edge, g->n_edges, &r->room_edges, sizeof(*g->edge), err);
	if (!st)
		g->edge[g->n_edges++] = edge;
	return st;
}

static enum hps_status read_lines(struct reading *r, char *text, size_t len, struct hps_err *err)
{
	char *end = text + len, *next;
	enum hps_status st = HPS_OK;

	for (; text < end && !st; text = next) {
		char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t n;

		next = stop ? stop + 1 : end;
		stop = stop ? stop : end;
		r->line++;
		if (memchr(text, '\0', (size_t)(stop - text)))
			return hps_foreign_fault(r->g->name, r->line, err, "binary data");
		*stop = '\0';
		n = strlen(text);
		while (n && strchr(" \t\r", text[n - 1]))
			text[--n] = '\0';
		if (!n)
			continue;
		st = *text == '\t' ? read_edge(r, text + 1, err) : read_node(r, text, err);
	}
	return st;
}

/* --- the profile --- */

/* Samples of a batch by the outputs of Linear layers; 0: they do not agree, or there is none. */
static double batch_of(const struct hps_foreign_graph *g)
{
	double batch = 0;

	for (size_t i = 0; i < g->n_nodes; i++) {
		static const char key[] = "out_features=";
		const char *at = strstr(g->node[i].what, key);
		double width, b;

		if (!at || strncmp(g->node[i].what, "Linear(", 7))
			continue;
		width = strtod(at + strlen(key), NULL);
		b = width >= 1 ? g->node[i].output_bytes / 4 / width : 0;
		if (!(b >= 1 && b <= HPS_MAX_BATCH) || (double)(uint64_t)b < b ||
		    (batch > 0 && (b > batch || b < batch)))
			return 0;
		batch = b;
	}
	return batch;
}

static enum hps_status settle_batch(const struct hps_foreign_graph *g,
				    const struct hps_import_options *o, double *batch,
				    struct hps_import_report *r, struct hps_err *err)
{
	*batch = o->batch > 0 ? o->batch : batch_of(g);
	r->batch_found = !(o->batch > 0);
	if (*batch > 0)
		return HPS_OK;
	hps_err_set(err, HPS_USAGE,
		    "no Linear layers whose outputs say how many samples a batch "
		    "had");
	hps_err_at(err, "%s", g->name);
	hps_err_hint(err, "give it with --batch");
	return HPS_USAGE;
}

static enum hps_status pick_type(const struct hps_cluster *c, const char *wanted, uint32_t *type,
				 struct hps_err *err)
{
	int t = wanted ? hps_cluster_type(c, wanted) : 0;

	if (t < 0)
		return hps_err_set(err, HPS_USAGE, "the cluster has no type \"%s\"", wanted);
	*type = (uint32_t)t;
	for (uint32_t i = 0; i < c->n_types && !wanted; i++) {
		if (c->type[i].device == HPS_DEVICE_CUDA) {
			*type = i;
			break;
		}
	}
	return HPS_OK;
}

static double *one(double v, struct hps_err *err)
{
	double *p = hps_calloc(1, sizeof(*p), err);

	if (p)
		*p = v;
	return p;
}

/* A layer's figures on the measured type; bytes a sample. */
static enum hps_status fill_layer(const struct hps_foreign_node *node, double cut,
				  struct hps_profile *p, uint32_t l, struct hps_layer_time *t,
				  struct hps_err *err)
{
	struct hps_layer_size *s = &p->size[l];

	s->name = hps_strdup(node->id, err);
	s->param_bytes = node->param_bytes;
	s->output_bytes = node->output_bytes / p->batch;
	p->cut_forward_bytes[l] = p->cut_backward_bytes[l] = cut / p->batch;
	t->forward_s = one(node->forward_s, err);
	t->backward_s = one(node->backward_s, err);
	t->forward.c1 = node->forward_s / p->batch;
	t->backward.c1 = node->backward_s / p->batch;
	t->oct = node->forward_s + node->backward_s;
	t->alpha = 1;
	return s->name && t->forward_s && t->backward_s ? HPS_OK : HPS_MEMORY;
}

static enum hps_status fill(const struct hps_foreign_graph *g, const struct hps_cluster *c,
			    uint32_t type, double batch, struct hps_profile *p, struct hps_err *err)
{
	uint32_t *order = hps_calloc(g->n_nodes, sizeof(*order), err);
	double *cut = hps_calloc(g->n_nodes, sizeof(*cut), err);
	bool *measured = hps_calloc(c->n_types, sizeof(*measured), err);
	enum hps_status st = order && cut && measured ? HPS_OK : HPS_MEMORY;

	if (!st)
		st = hps_foreign_order(g, order, err);
	if (!st)
		st = hps_foreign_cuts(g, order, cut, err);
	if (!st)
		st = hps_import_begin(c, (uint32_t)g->n_nodes, p, err);
	if (!st) {
		p->batch = batch;
		p->batches = one(batch, err);
		p->n_batches = p->batches ? 1 : 0;
		st = p->batches ? HPS_OK : HPS_MEMORY;
		measured[type] = true;
	}
	for (uint32_t l = 0; l < g->n_nodes && !st; l++)
		st = fill_layer(&g->node[order[l]], cut[l], p, l,
				&p->time[(size_t)type * p->n_layers + l], err);
	if (!st)
		st = hps_import_derive(c, measured, p, err);
	if (st)
		hps_profile_release(p);
	free(order);
	free(cut);
	free(measured);
	return st;
}

/* A graph that makes a profile: layers, and time that they take. */
static enum hps_status check_graph(const struct hps_foreign_graph *g, struct hps_err *err)
{
	double seconds = 0;

	for (size_t i = 0; i < g->n_nodes; i++)
		seconds += g->node[i].forward_s + g->node[i].backward_s;
	if (g->n_nodes && g->n_nodes <= HPS_MAX_LAYERS && seconds > 0)
		return HPS_OK;
	if (!g->n_nodes)
		hps_err_set(err, HPS_BAD_INPUT, "no layers");
	else if (g->n_nodes > HPS_MAX_LAYERS)
		hps_err_set(err, HPS_BAD_INPUT, "%zu layers, at most %d", g->n_nodes,
			    HPS_MAX_LAYERS);
	else
		hps_err_set(err, HPS_BAD_INPUT, "no layer takes any time");
	hps_err_at(err, "%s", g->name);
	return HPS_BAD_INPUT;
}

enum hps_status hps_import_pipedream(char *text, size_t len, const char *name,
				     const struct hps_cluster *c,
				     const struct hps_import_options *o, struct hps_profile *p,
				     struct hps_import_report *r, struct hps_err *err)
{
	struct hps_foreign_graph g = { .name = name };
	struct reading reading = { .g = &g };
	enum hps_status st;
	uint32_t type = 0;
	double batch;

	memset(p, 0, sizeof(*p));
	memset(r, 0, sizeof(*r));
	st = pick_type(c, o->type, &type, err);
	if (!st)
		st = read_lines(&reading, text, len, err);
	if (!st)
		st = hps_foreign_resolve(&g, err);
	if (!st)
		st = hps_foreign_drop_inputs(&g, &r->n_dropped, err);
	if (!st)
		st = check_graph(&g, err);
	if (!st)
		st = settle_batch(&g, o, &batch, r, err);
	if (!st)
		st = fill(&g, c, type, batch, p, err);
	r->n_measured = 1;
	r->type = c->type[type].name;
	free(g.node);
	free(g.edge);
	return st;
}
