/* Whether an answer is one that was asked for, and when all of a request is in. */
#include "ps/client_int.h"

#include <string.h>

/* Is it what w waits for from this shard? */
static bool awaited(const struct wait *w, uint32_t shard, const struct hps_head *h)
{
	return w->n_open && w->open[shard] && w->seq[shard] == h->seq && w->step == h->step &&
	       w->flags == h->flags;
}

static bool all_in(struct wait *w, uint32_t shard)
{
	w->open[shard] = false;
	return --w->n_open == 0;
}

static enum hps_status not_asked(uint32_t shard, struct hps_err *err)
{
	return hps_err_set(err, HPS_NET, "shard %u: an answer with other rows than asked", shard);
}

static enum hps_status check_rows(const struct hps_ps_client *c, const struct pull *p,
				  uint32_t shard, const struct hps_msg *m, struct hps_err *err)
{
	const uint32_t *n_of = p->n_of + (size_t)shard * c->n_tables;
	enum hps_status st = hps_dir_check(m, c->dim, c->n_tables, err);
	uint32_t e = 0;

	if (st != HPS_OK) {
		hps_err_at(err, "shard %u", shard);
		return st;
	}
	for (uint32_t t = 0; t < c->n_tables; t++) {
		if (!n_of[t])
			continue;
		if (e == hps_dir_count(m) || hps_dir_entry(m, e).table != t ||
		    hps_dir_entry(m, e).n != n_of[t])
			return not_asked(shard, err);
		e++;
	}
	return e == hps_dir_count(m) ? HPS_OK : not_asked(shard, err);
}

static enum hps_status take_rows(struct hps_ps_client *c, struct hps_msg *m, uint32_t shard,
				 struct hps_ps_event *ev, struct hps_err *err)
{
	struct pull **at = &c->pull, *p;
	const char *value = m->n_frames > 1 ? m->frame[1].data : NULL;
	enum hps_status st;
	float **to;

	while (*at && !awaited(&(*at)->wait, shard, &m->head))
		at = &(*at)->next;
	p = *at;
	if (!p)
		return HPS_OK;
	st = check_rows(c, p, shard, m, err);
	if (st != HPS_OK)
		return st;
	to = p->to + p->first[shard];
	for (uint32_t t = 0; t < c->n_tables; t++) {
		size_t bytes = c->dim[t] * sizeof(float);

		for (uint32_t i = 0; i < p->n_of[(size_t)shard * c->n_tables + t]; i++) {
			memcpy(*to++, value, bytes);
			value += bytes;
		}
	}
	if (!all_in(&p->wait, shard))
		return HPS_OK;
	for (uint32_t a = 0; a < p->n_again; a++)
		memcpy(p->again[a].value, p->again_from[a], p->again[a].dim * sizeof(float));
	*ev = (struct hps_ps_event){ .kind = HPS_PS_ROWS,
				     .epoch = p->epoch,
				     .mb = p->mb,
				     .flags = p->wait.flags,
				     .step = p->wait.step };
	*at = p->next;
	if (!*at)
		c->pull_end = at;
	p->next = c->spare;
	c->spare = p;
	return HPS_OK;
}

static enum hps_status take_dense(struct hps_ps_client *c, struct hps_msg *m, uint32_t shard,
				  struct hps_ps_event *ev, struct hps_err *err)
{
	const struct part *p = &c->part[shard];
	bool with_state = c->dense.flags & HPS_FLAG_STATE;
	size_t vectors = with_state ? c->n_vectors : 0;

	if (!awaited(&c->dense, shard, &m->head))
		return HPS_OK;
	if (m->n_frames != (with_state ? 2u : 1u) || m->frame[0].len != p->n * sizeof(float) ||
	    (with_state && m->frame[1].len != vectors * p->n * sizeof(float)))
		return hps_err_set(err, HPS_NET, "shard %u: expected %llu dense parameters", shard,
				   (unsigned long long)p->n);
	memcpy(c->params + p->offset, m->frame[0].data, p->n * sizeof(float));
	for (size_t v = 0; v < vectors; v++)
		memcpy(c->state + v * c->n_floats + p->offset,
		       (const char *)m->frame[1].data + v * p->n * sizeof(float),
		       p->n * sizeof(float));
	if (m->head.aux > c->updates)
		c->updates = m->head.aux;
	if (all_in(&c->dense, shard))
		*ev = (struct hps_ps_event){ .kind = HPS_PS_DENSE,
					     .flags = c->dense.flags,
					     .step = c->dense.step,
					     .updates = c->updates };
	return HPS_OK;
}

static enum hps_status take_flushed(struct hps_ps_client *c, struct hps_msg *m, uint32_t shard,
				    struct hps_ps_event *ev)
{
	if (awaited(&c->flush, shard, &m->head) && all_in(&c->flush, shard))
		*ev = (struct hps_ps_event){ .kind = HPS_PS_FLUSHED, .step = c->flush.step };
	return HPS_OK;
}

enum hps_status hps_ps_message(struct hps_ps_client *c, struct hps_msg *m, struct hps_ps_event *ev,
			       struct hps_err *err)
{
	uint32_t shard = m->head.src - hps_node_of_shard(&c->job->deployment, 0);
	enum hps_status st;

	*ev = (struct hps_ps_event){ HPS_PS_NONE };
	if (shard >= c->n_shards)
		st = hps_err_set(err, HPS_NET, "node %u is no shard", m->head.src);
	else if (m->head.type == HPS_MSG_ROWS)
		st = take_rows(c, m, shard, ev, err);
	else if (m->head.type == HPS_MSG_DENSE)
		st = take_dense(c, m, shard, ev, err);
	else if (m->head.type == HPS_MSG_FLUSHED)
		st = take_flushed(c, m, shard, ev);
	else
		st = hps_err_set(err, HPS_NET, "shard %u: %s is not an answer", shard,
				 hps_msg_name(m->head.type));
	hps_msg_release(m);
	return st;
}
