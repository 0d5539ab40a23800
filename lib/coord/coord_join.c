/* Who comes in: a process is known by name and incarnation, has nodes nobody else has, and says
 * the same of the job as those before it. */
#include "coord/coord_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MAX_PEERS = 1 << 20 };

/* --- who is missing --- */

/* "stage 1 replica 0 on host b (hps-work), shard 1 on host c (hps-serve) and 3 more" */
void hps_coord_missing(const struct hps_coord *c, char *out, size_t size)
{
	uint32_t n = hps_deployment_nodes(c->d), listed = 0, more = 0;
	size_t len = 0;

	out[0] = 0;
	for (uint32_t node = 1; node < n; node++) {
		char name[192];
		int k;

		if (c->owner[node])
			continue;
		if (listed == 4 || len + sizeof name > size) {
			more++;
			continue;
		}
		hps_node_name(c->d, node, name, sizeof name);
		k = snprintf(out + len, size - len, "%s%s (%s)", listed ? ", " : "", name,
			     node <= c->d->n_shards ? "hps-serve" : "hps-work");
		len += k > 0 && (size_t)k < size - len ? (size_t)k : 0;
		listed++;
	}
	if (more && len < size)
		snprintf(out + len, size - len, " and %u more", more);
}

static bool all_in(const struct hps_coord *c)
{
	uint32_t n = hps_deployment_nodes(c->d);

	for (uint32_t node = 0; node < n; node++)
		if (!c->owner[node])
			return false;
	return true;
}

/* --- admission --- */

struct peer *hps_coord_peer(struct hps_coord *c, uint32_t number)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (c->peer[i].number == number && !c->peer[i].left)
			return &c->peer[i];
	return NULL;
}

static struct peer *peer_by_name(struct hps_coord *c, const char *name)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (!strcmp(c->peer[i].name, name))
			return &c->peer[i];
	return NULL;
}

static enum hps_status refuse(uint32_t number, const struct hps_err *why, struct hps_outbox *out,
			      struct hps_err *err)
{
	return hps_coord_send(number, HPS_CTL_REFUSED, hps_talk_error(why), out, err);
}

/* What two processes both say must be the same: how to train, and on which bytes. */
static enum hps_status same_settings(struct hps_coord *c, const struct hps_doc *theirs,
				     struct hps_err *err)
{
	struct hps_at mine = hps_at_root(c->settings, "settings");
	struct hps_at other = hps_at_root(theirs, "settings");

	for (size_t i = 0; i < hps_at_count(&other); i++) {
		const char *key = hps_at_name(&other, i);
		struct hps_at a = hps_at_member(&mine, key), b = hps_at_member(&other, key);

		if (!a.node || hps_doc_equal(a.node, b.node))
			continue;
		if (!strcmp(key, "train_digest") || !strcmp(key, "test_digest"))
			hps_err_set(err, HPS_BAD_INPUT,
				    "the %s data are not the same bytes as those of another host",
				    strcmp(key, "test_digest") ? "training" : "test");
		else
			hps_err_set(err, HPS_USAGE,
				    "%s is not what another process of the job says", key);
		hps_err_hint(err, "give every hps-work of a job the same options and data");
		return HPS_USAGE;
	}
	return HPS_OK;
}

static enum hps_status keep_settings(struct hps_coord *c, const struct hps_doc *theirs,
				     struct hps_err *err)
{
	struct hps_at mine = hps_at_root(c->settings, "settings");
	struct hps_at other = hps_at_root(theirs, "settings");

	for (size_t i = 0; i < hps_at_count(&other); i++) {
		const char *key = hps_at_name(&other, i);
		struct hps_at a = hps_at_member(&mine, key), b = hps_at_member(&other, key);

		if (!a.node && hps_doc_put(c->settings, key, hps_doc_copy(b.node)))
			return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	return HPS_OK;
}

/* The fault of the servers, and named so. */
static enum hps_status no_model(const struct hps_coord *c, struct hps_err *err)
{
	hps_err_set(err, HPS_BAD_INPUT, "the servers hold no trained model: %s%s",
		    c->state ? "no save is in " : "hps-serve was started without --state",
		    c->state ? c->state : "");
	hps_err_at(err, "serve@%s", c->d->coordinator.host);
	hps_err_hint(err, "start hps-serve with --state DIR of a saved model");
	return HPS_BAD_INPUT;
}

/* mode, epochs, test: how the job goes. */
static enum hps_status read_settings(struct hps_coord *c, const struct hps_doc *settings,
				     struct hps_err *err)
{
	static const char *const modes[] = { "train", "eval", "predict" };
	struct hps_at at = hps_at_root(settings, "settings");
	struct hps_at mode = hps_at_member(&at, "mode"), epochs = hps_at_member(&at, "epochs");
	struct hps_at test = hps_at_member(&at, "test");
	bool has_test;
	uint64_t n;
	int m;

	if (hps_at_choice(&mode, modes, 3, &m, err) ||
	    hps_at_u64(&epochs, 0, HPS_MAX_EPOCHS, &n, err) || hps_at_bool(&test, &has_test, err))
		return HPS_BAD_INPUT;
	if (m != MODE_TRAIN && !c->loaded)
		return no_model(c, err);
	c->mode = (enum mode)m;
	c->epochs = (uint32_t)n;
	c->has_test = has_test;
	c->begun = true;
	return HPS_OK;
}

/* Nodes of a JOIN: known, free, all of one kind. */
static enum hps_status read_nodes(struct hps_coord *c, const struct hps_at *root, struct peer *p,
				  struct hps_err *err)
{
	struct hps_at at = hps_at_member(root, "nodes");
	uint32_t n_nodes = hps_deployment_nodes(c->d), first_replica = c->d->n_shards + 1;
	uint32_t last_stage_0 = hps_node_of_replica(c->d, c->d->n_stages - 1, 0);
	uint32_t n_first = c->d->stage[0].n_replicas;
	enum hps_status st = hps_at_array(&at, err);

	if (st != HPS_OK)
		return st;
	p->n_nodes = (uint32_t)hps_at_count(&at);
	if (!p->n_nodes || p->n_nodes >= n_nodes)
		return hps_err_set(err, HPS_BAD_INPUT, "joins with %u nodes of %u", p->n_nodes,
				   n_nodes);
	p->node = hps_calloc(p->n_nodes, sizeof *p->node, err);
	if (!p->node)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		struct hps_at item = hps_at_item(&at, i);
		char name[192];
		int64_t node;
		bool work;

		st = hps_at_int(&item, 1, n_nodes - 1, &node, err);
		if (st != HPS_OK)
			return st;
		work = node >= first_replica;
		hps_node_name(c->d, (uint32_t)node, name, sizeof name);
		for (uint32_t j = 0; j < i; j++)
			if (p->node[j] == (uint32_t)node)
				return hps_err_set(err, HPS_BAD_INPUT, "joins twice as %s", name);
		if (c->owner[node] == HPS_COORD_OURS)
			return hps_err_set(err, HPS_NET, "%s is the coordinator's own", name);
		if (c->owner[node])
			return hps_err_set(err, HPS_NET, "%s is taken by %s", name,
					   c->peer[c->owner[node] - 1].name);
		if (i && work != p->work)
			return hps_err_set(err, HPS_BAD_INPUT,
					   "joins with shards and replicas at once");
		p->work = work;
		p->node[i] = (uint32_t)node;
		p->first_stage |= work && (uint32_t)node < first_replica + n_first;
		p->last_stage |= (uint32_t)node >= last_stage_0;
		p->prints |= (uint32_t)node == last_stage_0;
	}
	return HPS_OK;
}

static enum hps_status add_peer(struct hps_coord *c, struct peer *p, struct hps_err *err)
{
	void *q = c->peer;

	if (c->n_peers >= MAX_PEERS || hps_realloc(&q, c->n_peers + 1, sizeof *c->peer, err))
		return HPS_MEMORY;
	c->peer = q;
	c->peer[c->n_peers++] = *p;
	for (uint32_t i = 0; i < p->n_nodes; i++)
		c->owner[p->node[i]] = (uint32_t)c->n_peers;
	return HPS_OK;
}

/* Read and check a JOIN of a process not yet known; p is the caller's to release on failure. */
static enum hps_status examine(struct hps_coord *c, const struct hps_at *root, struct peer *p,
			       struct hps_err *why)
{
	struct hps_at settings = hps_at_member(root, "settings");
	enum hps_status st;

	if (c->phase != PHASE_JOINING)
		return hps_err_set(why, HPS_NET, "the job has begun without it");
	st = read_nodes(c, root, p, why);
	if (st != HPS_OK || !p->work)
		return st;
	st = hps_at_object(&settings, why);
	if (st == HPS_OK)
		st = same_settings(c, settings.node, why);
	if (st == HPS_OK && !c->begun)
		st = read_settings(c, settings.node, why);
	return st == HPS_OK ? keep_settings(c, settings.node, why) : st;
}

enum hps_status hps_coord_join(struct hps_coord *c, uint32_t number, const struct hps_doc *body,
			       double now_s, struct hps_outbox *out, struct hps_err *err)
{
	struct hps_at root = hps_at_root(body, "join"), at = hps_at_member(&root, "name");
	struct peer p = { .number = number, .heard_s = now_s };
	struct hps_err why = { 0 };
	struct peer *old;
	const char *name;
	enum hps_status st;

	if (hps_at_string(&at, &name, err) || strlen(name) > 255 ||
	    hps_coord_u64(body, "incarnation", &p.incarnation, err))
		return hps_err_set(err, HPS_NET, "a join without a name or an incarnation");
	old = peer_by_name(c, name);
	if (old && old->incarnation == p.incarnation && !old->left) {
		old->number = number;
		old->heard_s = now_s;
		st = hps_coord_tell(c, old, HPS_CTL_WELCOME, NULL, out, err);
		return st;
	}
	if (old) {
		hps_err_set(&why, HPS_NET, "%s is in the job already", name);
		hps_err_hint(&why, "one hps-work or hps-serve runs a host's part of a job");
		return refuse(number, &why, out, err);
	}
	if (hps_coord_peer(c, number))
		return hps_err_set(err, HPS_NET, "joins under a second name, %s", name);
	st = examine(c, &root, &p, &why);
	if (st == HPS_OK) {
		p.name = hps_strdup(name, &why);
		st = p.name ? add_peer(c, &p, &why) : HPS_MEMORY;
	}
	if (st != HPS_OK) {
		hps_coord_peer_release(&p);
		if (strncmp(why.where, "serve@", 6) != 0)
			hps_err_at(&why, "%s", name);
		return refuse(number, &why, out, err);
	}
	st = hps_coord_tell(c, &c->peer[c->n_peers - 1], HPS_CTL_WELCOME, NULL, out, err);
	if (st == HPS_OK && all_in(c))
		st = hps_coord_go(c, now_s, out, err);
	return st;
}
