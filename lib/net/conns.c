/* Which connection is which peer's, and which were refused? A hash over the connections of
 * one listener; its size is bounded, since anybody may connect and leave as often as he likes.
 */
#include "net_int.h"

#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/rng.h"
#include "net.h"

enum { FIRST_SLOTS = 64 };

static uint32_t slot_of(const struct hps_conns *c, uint64_t id)
{
	uint32_t mask = c->n_slots - 1, s = (uint32_t)hps_mix64(id) & mask;

	while (c->slot[s] && c->conn[c->slot[s] - 1].id != id)
		s = (s + 1) & mask;
	return s;
}

/* Index all connections anew in n_slots; without memory the old index stands. */
static enum hps_status reindex(struct hps_conns *c, uint32_t n_slots, struct hps_err *err)
{
	if (n_slots != c->n_slots) {
		uint32_t *slot = hps_calloc(n_slots, sizeof(*slot), err);

		if (!slot)
			return HPS_MEMORY;
		free(c->slot);
		c->slot = slot;
		c->n_slots = n_slots;
	}
	memset(c->slot, 0, n_slots * sizeof(*c->slot));
	for (uint32_t i = 0; i < c->n; i++)
		c->slot[slot_of(c, c->conn[i].id)] = i + 1;
	return HPS_OK;
}

enum hps_status hps_conns_init(struct hps_conns *c, uint32_t n_nodes, struct hps_err *err)
{
	memset(c, 0, sizeof(*c));
	c->node = hps_calloc(n_nodes, sizeof(*c->node), err);
	c->n_nodes = n_nodes;
	if (!c->node || reindex(c, FIRST_SLOTS, err) != HPS_OK) {
		hps_conns_release(c);
		return HPS_MEMORY;
	}
	return HPS_OK;
}

void hps_conns_release(struct hps_conns *c)
{
	free(c->conn);
	free(c->slot);
	free(c->node);
	free(c->anon);
	memset(c, 0, sizeof(*c));
}

struct hps_conn *hps_conns_find(struct hps_conns *c, uint64_t id)
{
	uint32_t i = c->slot[slot_of(c, id)];

	return i ? &c->conn[i - 1] : NULL;
}

/* A refused peer that comes back over the same connection is judged anew: it will have
 * to send nonsense again. Peers in good standing keep their numbers. */
static void forget_refused(struct hps_conns *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->n; i++)
		if (!c->conn[i].refused)
			c->conn[kept++] = c->conn[i];
	c->n = kept;
	reindex(c, c->n_slots, NULL); /* of the same size: cannot fail */
}

enum hps_status hps_conns_add(struct hps_conns *c, uint64_t id, uint32_t peer, bool refused,
			      struct hps_err *err)
{
	if (c->n == HPS_MAX_CONNS)
		forget_refused(c);
	if (c->n == HPS_MAX_CONNS)
		return hps_err_set(err, HPS_NO, "more than %d peers", HPS_MAX_CONNS);
	if (c->n == c->cap) {
		uint32_t cap = c->cap ? 2 * c->cap : FIRST_SLOTS / 2;

		if (hps_realloc((void **)&c->conn, cap, sizeof(*c->conn), err) != HPS_OK)
			return HPS_MEMORY;
		c->cap = cap;
	}
	if (2 * (c->n + 1) > c->n_slots && reindex(c, 2 * c->n_slots, err) != HPS_OK)
		return HPS_MEMORY;
	if (peer >= HPS_PEER_ANON && !refused) {
		if (c->n_anon == c->cap_anon) {
			uint32_t cap = c->cap_anon ? 2 * c->cap_anon : 16;

			if (hps_realloc((void **)&c->anon, cap, sizeof(*c->anon), err) != HPS_OK)
				return HPS_MEMORY;
			c->cap_anon = cap;
		}
		c->anon[c->n_anon++] = id;
	}
	c->conn[c->n] = (struct hps_conn){ .id = id, .peer = peer, .refused = refused };
	c->slot[slot_of(c, id)] = ++c->n;
	return HPS_OK;
}

uint64_t hps_conns_route(const struct hps_conns *c, uint32_t peer)
{
	if (peer < c->n_nodes)
		return c->node[peer];
	if (peer >= HPS_PEER_ANON && peer - HPS_PEER_ANON < c->n_anon)
		return c->anon[peer - HPS_PEER_ANON];
	return 0;
}
