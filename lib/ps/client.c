/* What a replica asks of the shards, and when all of an answer is in. */
#include "ps/client_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* --- life --- */

static enum hps_status wait_init(struct wait *w, uint32_t n_shards, struct hps_err *err)
{
	w->seq = hps_calloc(n_shards, sizeof(*w->seq), err);
	w->open = hps_calloc(n_shards, sizeof(*w->open), err);
	return w->seq && w->open ? HPS_OK : HPS_MEMORY;
}

static void wait_release(struct wait *w)
{
	free(w->seq);
	free(w->open);
}

enum hps_status hps_ps_client_new(const struct hps_job *job, const struct hps_graph *g,
				  uint32_t stage, uint32_t replica, uint64_t incarnation,
				  struct hps_ps_client **out, struct hps_err *err)
{
	const struct hps_deployment *d = &job->deployment;
	struct hps_ps_client *c = hps_calloc(1, sizeof(*c), err);
	uint64_t begin = g->layer_offset[d->stage[stage].first];
	struct hps_optim o = hps_optim_of(&job->model.train.optimizer);

	if (!c)
		return HPS_MEMORY;
	c->job = job;
	c->head.src = hps_node_of_replica(d, stage, replica);
	c->head.job = hps_deployment_id(d);
	c->head.incarnation = incarnation;
	c->stage = stage;
	c->n_shards = d->n_shards;
	c->n_tables = job->model.n_tables;
	c->bsp = d->sync == HPS_BSP;
	c->n_floats = g->layer_offset[d->stage[stage].last + 1] - begin;
	c->n_vectors = hps_optim_state_floats(&o, 1);
	c->pull_end = &c->pull;
	c->dim = hps_calloc(c->n_tables, sizeof(*c->dim), err);
	c->seq = hps_calloc(c->n_shards, sizeof(*c->seq), err);
	c->part = hps_calloc(c->n_shards, sizeof(*c->part), err);
	if (!c->dim || !c->seq || !c->part ||
	    hps_split_init(&c->split, c->n_shards, c->n_tables, err) != HPS_OK ||
	    wait_init(&c->dense, c->n_shards, err) != HPS_OK ||
	    wait_init(&c->flush, c->n_shards, err) != HPS_OK) {
		hps_ps_client_free(c);
		return HPS_MEMORY;
	}
	for (uint32_t t = 0; t < c->n_tables; t++)
		c->dim[t] = job->model.table[t].dim;
	for (uint32_t s = 0; s < c->n_shards; s++) {
		hps_shard_part(job, g, stage, s, &c->part[s].offset, &c->part[s].n);
		c->part[s].offset -= c->part[s].n ? begin : c->part[s].offset;
	}
	*out = c;
	return HPS_OK;
}

static void pull_free(struct pull *p)
{
	if (!p)
		return;
	wait_release(&p->wait);
	free(p->to);
	free(p->first);
	free(p->n_of);
	free(p->again);
	free(p->again_from);
	free(p);
}

static void pulls_free(struct pull *p)
{
	while (p) {
		struct pull *next = p->next;

		pull_free(p);
		p = next;
	}
}

void hps_ps_client_free(struct hps_ps_client *c)
{
	if (!c)
		return;
	pulls_free(c->pull);
	pulls_free(c->spare);
	hps_split_release(&c->split);
	wait_release(&c->dense);
	wait_release(&c->flush);
	free(c->dim);
	free(c->seq);
	free(c->part);
	free(c);
}

/* --- sending --- */

static struct hps_msg request(struct hps_ps_client *c, uint16_t type, uint32_t shard)
{
	struct hps_msg m = { .head = c->head };

	m.head.type = type;
	m.head.seq = ++c->seq[shard];
	return m;
}

static enum hps_status put(struct hps_ps_client *c, uint32_t shard, struct hps_msg *m,
			   struct hps_outbox *out, struct hps_err *err)
{
	return hps_outbox_put(out, hps_node_of_shard(&c->job->deployment, shard), m, err);
}

/* Take back what a request that failed has put. */
static enum hps_status take_back(struct hps_outbox *out, size_t n, enum hps_status st)
{
	if (st == HPS_OK)
		return st;
	while (out->n > n)
		hps_msg_release(&out->item[--out->n].msg);
	return st;
}

static void wait_for(struct wait *w, uint32_t shard, uint64_t seq)
{
	w->seq[shard] = seq;
	w->open[shard] = true;
	w->n_open++;
}

static void *new_frame(struct hps_msg *m, uint64_t bytes, struct hps_err *err)
{
	void *p = NULL;

	if (hps_realloc(&p, bytes, 1, err) != HPS_OK || hps_msg_take(m, p, bytes, err) != HPS_OK)
		return NULL;
	return p;
}

/* --- pull --- */

static struct pull *pull_new(struct hps_ps_client *c, struct hps_err *err)
{
	struct pull *p = c->spare;

	if (p) {
		c->spare = p->next;
		p->next = NULL;
		return p;
	}
	p = hps_calloc(1, sizeof(*p), err);
	if (!p)
		return NULL;
	p->first = hps_calloc(c->n_shards, sizeof(*p->first), err);
	p->n_of = hps_calloc((size_t)c->n_shards * c->n_tables, sizeof(*p->n_of), err);
	if (!p->first || !p->n_of || wait_init(&p->wait, c->n_shards, err) != HPS_OK) {
		pull_free(p);
		return NULL;
	}
	return p;
}

static enum hps_status reserve(void *array, size_t *cap, size_t n, size_t size, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	if (n > *cap && (st = hps_realloc(array, n, size, err)) == HPS_OK)
		*cap = n;
	return st;
}

/* What the answers will need: where values go, what was asked. */
static enum hps_status pull_plan(struct hps_ps_client *c, struct pull *p, struct hps_err *err)
{
	const struct split *s = &c->split;
	uint32_t at = 0;

	if (reserve(&p->to, &p->cap_to, s->n_keys, sizeof(*p->to), err) != HPS_OK ||
	    reserve(&p->again, &p->cap_again, s->n_again, sizeof(*p->again), err) != HPS_OK ||
	    reserve(&p->again_from, &p->cap_from, s->n_again, sizeof(*p->again_from), err) !=
		    HPS_OK)
		return HPS_MEMORY;
	p->n_again = s->n_again;
	for (uint32_t i = 0; i < s->n_again; i++) {
		p->again[i] = s->again[i];
		p->again_from[i] = s->key[s->again[i].at].value;
	}
	memset(p->n_of, 0, (size_t)c->n_shards * c->n_tables * sizeof(*p->n_of));
	for (uint32_t j = 0; j < c->n_shards; j++) {
		p->first[j] = at;
		at += s->keys_of[j];
		for (uint32_t i = 0; i < s->n_groups; i++)
			p->n_of[(size_t)j * c->n_tables + s->group[i].table] =
				s->n_of[(size_t)j * s->n_groups + i];
	}
	return HPS_OK;
}

/* Fill the key frames, and the places of the values in the same order. */
static void pull_fill(struct hps_ps_client *c, struct pull *p, const struct hps_outbox *out,
		      size_t base)
{
	struct split *s = &c->split;

	memset(s->filled, 0, c->n_shards * sizeof(*s->filled));
	for (uint32_t k = 0; k < s->n_keys; k++) {
		uint32_t j = s->key[k].shard, i = s->filled[j]++;
		uint64_t *key = out->item[base + j].msg.frame[1].data;

		key[i] = s->key[k].key;
		p->to[p->first[j] + i] = s->key[k].value;
	}
}

static enum hps_status pull_put(struct hps_ps_client *c, struct pull *p, struct hps_outbox *out,
				struct hps_err *err)
{
	size_t base = out->n;

	for (uint32_t j = 0; j < c->n_shards; j++) {
		struct hps_msg m = request(c, HPS_MSG_PULL, j);

		m.head.epoch = p->epoch;
		m.head.step = p->wait.step;
		m.head.mb = p->mb;
		m.head.flags = p->wait.flags;
		if (hps_split_dir(&c->split, j, &m, err) != HPS_OK ||
		    !new_frame(&m, (uint64_t)c->split.keys_of[j] * sizeof(uint64_t), err)) {
			hps_msg_release(&m);
			return HPS_MEMORY;
		}
		if (put(c, j, &m, out, err) != HPS_OK)
			return HPS_MEMORY;
		wait_for(&p->wait, j, c->seq[j]);
	}
	pull_fill(c, p, out, base);
	return HPS_OK;
}

enum hps_status hps_ps_pull(struct hps_ps_client *c, uint32_t epoch, uint64_t step, uint32_t mb,
			    uint32_t flags, const struct hps_ps_rows *rows, uint32_t n,
			    struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = hps_split_make(&c->split, rows, n, err);
	struct pull *p = st == HPS_OK ? pull_new(c, err) : NULL;
	size_t before = out->n;

	if (!p)
		return HPS_MEMORY;
	p->epoch = epoch;
	p->mb = mb;
	p->wait.step = step;
	p->wait.flags = flags;
	p->wait.n_open = 0;
	st = pull_plan(c, p, err);
	if (st == HPS_OK)
		st = pull_put(c, p, out, err);
	if (st != HPS_OK) {
		pull_free(p);
		return take_back(out, before, st);
	}
	*c->pull_end = p;
	c->pull_end = &p->next;
	return HPS_OK;
}

/* --- push --- */

/* Fill keys and gradients; a key's later lookups are added to its first. */
static void push_fill(struct hps_ps_client *c, const struct hps_outbox *out, size_t base,
		      const uint32_t *item_of)
{
	struct split *s = &c->split;

	memset(s->filled, 0, c->n_shards * sizeof(*s->filled));
	memset(s->filled_floats, 0, c->n_shards * sizeof(*s->filled_floats));
	for (uint32_t i = 0; i < s->n_groups; i++)
		for (uint32_t k = s->group[i].begin; k < s->group[i].end; k++) {
			uint32_t j = s->key[k].shard, dim = s->group[i].dim;
			const struct hps_msg *m = &out->item[base + item_of[j]].msg;
			float *grad = (float *)m->frame[2].data + s->filled_floats[j];

			((uint64_t *)m->frame[1].data)[s->filled[j]++] = s->key[k].key;
			memcpy(grad, s->key[k].grad, dim * sizeof(float));
			s->key[k].value = grad;
			s->filled_floats[j] += dim;
		}
	for (uint32_t a = 0; a < s->n_again; a++) {
		float *sum = s->key[s->again[a].at].value;

		for (uint32_t d = 0; d < s->again[a].dim; d++)
			sum[d] += s->again[a].grad[d];
	}
}

enum hps_status hps_ps_push(struct hps_ps_client *c, uint32_t epoch, uint64_t step, uint32_t mb,
			    uint32_t count, const struct hps_ps_rows *rows, uint32_t n,
			    struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = hps_split_make(&c->split, rows, n, err);
	size_t before = out->n;
	struct split *s = &c->split;

	for (uint32_t j = 0; j < c->n_shards && st == HPS_OK; j++) {
		struct hps_msg m;

		if (!c->bsp && !s->keys_of[j])
			continue;
		m = request(c, HPS_MSG_PUSH, j);
		m.head.epoch = epoch;
		m.head.step = step;
		m.head.mb = mb;
		m.head.count = count;
		if (hps_split_dir(s, j, &m, err) != HPS_OK ||
		    !new_frame(&m, (uint64_t)s->keys_of[j] * sizeof(uint64_t), err) ||
		    !new_frame(&m, s->floats_of[j] * sizeof(float), err)) {
			hps_msg_release(&m);
			st = HPS_MEMORY;
			break;
		}
		s->item_of[j] = (uint32_t)(out->n - before);
		st = put(c, j, &m, out, err);
	}
	if (st == HPS_OK)
		push_fill(c, out, before, s->item_of);
	return take_back(out, before, st);
}

/* --- dense parameters --- */

enum hps_status hps_ps_dense_pull(struct hps_ps_client *c, uint64_t step, uint32_t flags,
				  float *params, float *state, struct hps_outbox *out,
				  struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	size_t before = out->n;

	c->dense.step = step;
	c->dense.flags = flags;
	c->dense.n_open = 0;
	c->updates = 0;
	c->params = params;
	c->state = state;
	for (uint32_t j = 0; j < c->n_shards && st == HPS_OK; j++) {
		struct hps_msg m;

		if (!c->part[j].n)
			continue;
		m = request(c, HPS_MSG_DENSE_PULL, j);
		m.head.step = step;
		m.head.flags = flags;
		m.head.arg = c->stage;
		st = put(c, j, &m, out, err);
		if (st == HPS_OK)
			wait_for(&c->dense, j, c->seq[j]);
	}
	if (st != HPS_OK)
		c->dense.n_open = 0;
	return take_back(out, before, st);
}

enum hps_status hps_ps_dense_push(struct hps_ps_client *c, uint64_t step, uint32_t count,
				  const float *grads, struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	size_t before = out->n;

	for (uint32_t j = 0; j < c->n_shards && st == HPS_OK; j++) {
		const struct part *p = &c->part[j];
		uint64_t bytes = count ? p->n * sizeof(float) : 0;
		struct hps_msg m;
		float *to;

		if (!p->n)
			continue;
		m = request(c, HPS_MSG_DENSE_PUSH, j);
		m.head.step = step;
		m.head.count = count;
		m.head.arg = c->stage;
		to = new_frame(&m, bytes, err);
		if (to && bytes)
			memcpy(to, grads + p->offset, bytes);
		st = to ? put(c, j, &m, out, err) : HPS_MEMORY;
	}
	return take_back(out, before, st);
}

enum hps_status hps_ps_dense_set(struct hps_ps_client *c, const float *params, const float *state,
				 uint64_t updates, struct hps_outbox *out, struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	size_t before = out->n;

	for (uint32_t j = 0; j < c->n_shards && st == HPS_OK; j++) {
		const struct part *p = &c->part[j];
		struct hps_msg m;
		float *to;

		if (!p->n)
			continue;
		m = request(c, HPS_MSG_DENSE_SET, j);
		m.head.arg = c->stage;
		m.head.aux = updates;
		st = hps_msg_copy(&m, params + p->offset, p->n * sizeof(float), err);
		to = st == HPS_OK ? new_frame(&m, c->n_vectors * p->n * sizeof(float), err) : NULL;
		for (size_t v = 0; to && v < c->n_vectors; v++)
			memcpy(to + v * p->n, state + v * c->n_floats + p->offset,
			       p->n * sizeof(float));
		if (to) {
			st = put(c, j, &m, out, err);
		} else {
			hps_msg_release(&m);
			st = HPS_MEMORY;
		}
	}
	return take_back(out, before, st);
}

enum hps_status hps_ps_flush(struct hps_ps_client *c, uint64_t step, struct hps_outbox *out,
			     struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	size_t before = out->n;

	c->flush.step = step;
	c->flush.n_open = 0;
	for (uint32_t j = 0; j < c->n_shards && st == HPS_OK; j++) {
		struct hps_msg m = request(c, HPS_MSG_FLUSH, j);

		m.head.step = step;
		st = put(c, j, &m, out, err);
		if (st == HPS_OK)
			wait_for(&c->flush, j, c->seq[j]);
	}
	if (st != HPS_OK)
		c->flush.n_open = 0;
	return take_back(out, before, st);
}
