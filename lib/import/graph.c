/* How does a branched graph become a row of layers? Names resolved, topological order (Kahn,
 * Communications of the ACM 5, 1962), and what crosses each cut. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "import/import_int.h"

enum hps_status hps_foreign_fault(const char *name, size_t line, struct hps_err *err,
				  const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	hps_err_vset(err, HPS_BAD_INPUT, fmt, ap);
	va_end(ap);
	hps_err_at(err, "%s:%zu", name, line);
	return HPS_BAD_INPUT;
}

/* --- names --- */

static int by_id(const void *a, const void *b)
{
	const struct hps_foreign_node *x = *(const struct hps_foreign_node *const *)a;
	const struct hps_foreign_node *y = *(const struct hps_foreign_node *const *)b;
	int order = strcmp(x->id, y->id);

	return order ? order : (x->line > y->line) - (x->line < y->line);
}

static int id_is(const void *id, const void *node)
{
	return strcmp(id, (*(const struct hps_foreign_node *const *)node)->id);
}

static enum hps_status find(const struct hps_foreign_graph *g,
			    const struct hps_foreign_node *const *sorted, const char *id,
			    size_t line, uint32_t *out, struct hps_err *err)
{
	const struct hps_foreign_node *const *hit =
		bsearch(id, sorted, g->n_nodes, sizeof(*sorted), id_is);

	if (!hit)
		return hps_foreign_fault(g->name, line, err,
					 "an edge of node \"%s\", which is not there", id);
	*out = (uint32_t)(*hit - g->node);
	return HPS_OK;
}

enum hps_status hps_foreign_resolve(struct hps_foreign_graph *g, struct hps_err *err)
{
	const struct hps_foreign_node **sorted = hps_calloc(g->n_nodes, sizeof(*sorted), err);
	enum hps_status st = HPS_OK;

	if (!sorted)
		return HPS_MEMORY;
	for (size_t i = 0; i < g->n_nodes; i++)
		sorted[i] = &g->node[i];
	qsort(sorted, g->n_nodes, sizeof(*sorted), by_id);
	for (size_t i = 1; i < g->n_nodes && !st; i++)
		if (!strcmp(sorted[i]->id, sorted[i - 1]->id))
			st = hps_foreign_fault(g->name, sorted[i]->line, err,
					       "node \"%s\" is on line %zu already", sorted[i]->id,
					       sorted[i - 1]->line);
	for (size_t i = 0; i < g->n_edges && !st; i++) {
		struct hps_foreign_edge *e = &g->edge[i];

		st = find(g, sorted, e->from_id, e->line, &e->from, err);
		if (!st)
			st = find(g, sorted, e->to_id, e->line, &e->to, err);
	}
	free(sorted);
	return st;
}

/* --- what is no layer --- */

enum hps_status hps_foreign_drop_inputs(struct hps_foreign_graph *g, uint32_t *dropped,
					struct hps_err *err)
{
	enum { GONE = UINT32_MAX };
	uint32_t *to = hps_calloc(g->n_nodes, sizeof(*to), err);
	size_t nodes = 0, edges = 0;

	if (!to)
		return HPS_MEMORY;
	for (size_t i = 0; i < g->n_edges; i++)
		to[g->edge[i].to] = 1; /* it reads something */
	for (size_t i = 0; i < g->n_nodes; i++) {
		if (!to[i] && !strncmp(g->node[i].what, "Input", 5)) {
			to[i] = (uint32_t)GONE;
			continue;
		}
		g->node[nodes] = g->node[i];
		to[i] = (uint32_t)nodes++;
	}
	for (size_t i = 0; i < g->n_edges; i++) {
		struct hps_foreign_edge e = g->edge[i];

		if (to[e.from] == (uint32_t)GONE)
			continue;
		e.from = to[e.from];
		e.to = to[e.to];
		g->edge[edges++] = e;
	}
	*dropped = (uint32_t)(g->n_nodes - nodes);
	g->n_nodes = nodes;
	g->n_edges = edges;
	free(to);
	return HPS_OK;
}

/* --- order --- */

/* Edges by the node that they leave: those of node i are next[first[i]] .. [first[i + 1] - 1]. */
struct leaving {
	size_t *first; /* n_nodes + 1 */
	uint32_t *next;
	uint32_t *reads; /* n_nodes: edges that come in */
};

static void leaving_release(struct leaving *v)
{
	free(v->first);
	free(v->next);
	free(v->reads);
	memset(v, 0, sizeof(*v));
}

static enum hps_status leaving_init(const struct hps_foreign_graph *g, struct leaving *v,
				    struct hps_err *err)
{
	v->first = hps_calloc(g->n_nodes + 2, sizeof(*v->first), err);
	v->next = hps_calloc(g->n_edges, sizeof(*v->next), err);
	v->reads = hps_calloc(g->n_nodes, sizeof(*v->reads), err);
	if (!v->first || !v->next || !v->reads) {
		leaving_release(v);
		return HPS_MEMORY;
	}
	/* Counted two places on, so that filling in leaves each start where it belongs. */
	for (size_t i = 0; i < g->n_edges; i++)
		v->first[g->edge[i].from + 2]++;
	for (size_t i = 2; i < g->n_nodes + 2; i++)
		v->first[i] += v->first[i - 1];
	for (size_t i = 0; i < g->n_edges; i++) {
		v->next[v->first[g->edge[i].from + 1]++] = g->edge[i].to;
		v->reads[g->edge[i].to]++;
	}
	return HPS_OK;
}

/* The number at the end of "node12", so that layers come as they were made. */
static uint64_t number(const char *id)
{
	size_t len = strlen(id), digits = 0;

	while (digits < len && digits < 18 && id[len - 1 - digits] >= '0' &&
	       id[len - 1 - digits] <= '9')
		digits++;
	return digits ? strtoull(id + len - digits, NULL, 10) : UINT64_MAX;
}

/* Every node that is left reads another one that is: going back ends in a cycle. */
static enum hps_status cycle(const struct hps_foreign_graph *g, const bool *done,
			     struct hps_err *err)
{
	uint32_t *reads = hps_calloc(g->n_nodes, sizeof(*reads), err), at = 0;

	if (!reads)
		return HPS_MEMORY;
	for (size_t i = 0; i < g->n_edges; i++)
		if (!done[g->edge[i].from])
			reads[g->edge[i].to] = g->edge[i].from;
	while (done[at])
		at++;
	for (size_t i = 0; i < g->n_nodes; i++)
		at = reads[at];
	free(reads);
	return hps_foreign_fault(g->name, g->node[at].line, err,
				 "node \"%s\" reads its own output: a cycle", g->node[at].id);
}

enum hps_status hps_foreign_order(const struct hps_foreign_graph *g, uint32_t *order,
				  struct hps_err *err)
{
	uint64_t *key = hps_calloc(g->n_nodes, sizeof(*key), err);
	bool *done = hps_calloc(g->n_nodes, sizeof(*done), err);
	struct leaving v = { 0 };
	enum hps_status st = !key || !done ? HPS_MEMORY : leaving_init(g, &v, err);

	if (st)
		goto out;
	for (size_t i = 0; i < g->n_nodes; i++)
		key[i] = number(g->node[i].id);
	for (size_t place = 0; place < g->n_nodes; place++) {
		size_t best = g->n_nodes;

		for (size_t i = 0; i < g->n_nodes; i++)
			if (!done[i] && !v.reads[i] && (best == g->n_nodes || key[i] < key[best]))
				best = i;
		if (best == g->n_nodes) {
			st = cycle(g, done, err);
			goto out;
		}
		done[best] = true;
		order[place] = (uint32_t)best;
		for (size_t i = v.first[best]; i < v.first[best + 1]; i++)
			v.reads[v.next[i]]--;
	}
out:
	leaving_release(&v);
	free(key);
	free(done);
	return st;
}

/* --- cuts --- */

enum hps_status hps_foreign_cuts(const struct hps_foreign_graph *g, const uint32_t *order,
				 double *cut, struct hps_err *err)
{
	uint32_t *place = hps_calloc(g->n_nodes, sizeof(*place), err);
	uint32_t *last = hps_calloc(g->n_nodes, sizeof(*last), err); /* reader of place i */

	if (!place || !last) {
		free(place);
		free(last);
		return HPS_MEMORY;
	}
	for (uint32_t i = 0; i < g->n_nodes; i++) {
		place[order[i]] = i;
		cut[i] = 0;
	}
	for (size_t i = 0; i < g->n_edges; i++) {
		uint32_t from = place[g->edge[i].from], to = place[g->edge[i].to];

		if (to > last[from])
			last[from] = to;
	}
	for (uint32_t i = 0; i < g->n_nodes; i++)
		for (uint32_t j = i; j < last[i]; j++)
			cut[j] += g->node[order[i]].output_bytes;
	free(place);
	free(last);
	return HPS_OK;
}
