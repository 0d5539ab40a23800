/* Whether a request holds, whether it is a repeat, when it may be answered. */
#include "ps/shard_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* What a shard remembers of one replica. */
struct peer {
	uint32_t stage, replica;
	bool known;
	uint64_t incarnation, before; /* the present one, and the one it replaced */
	bool has_before;
	uint64_t top;			   /* highest seq seen */
	uint64_t seen[HPS_PS_WINDOW / 64]; /* bit seq % HPS_PS_WINDOW, of those up to top */
	uint32_t n_parked;
};

struct hps_shard {
	const struct hps_job *job;
	uint64_t id;
	uint32_t node;	     /* this shard's */
	uint32_t first_node; /* of the replicas */
	struct peer *peer;
	uint32_t n_peers;
	bool bsp;
	struct shard_rows rows;
	struct shard_dense *dense; /* n_dense parts, by stage */
	uint32_t n_dense;
	uint32_t *part_of;	/* n_stages: index into dense, UINT32_MAX: none here */
	struct hps_msg *parked; /* requests that wait for an update, in order of arrival */
	size_t n_parked, cap_parked;
	uint32_t max_parked; /* of one replica */
	struct hps_shard_stats stats;
};

/* --- life --- */

static enum hps_status make_peers(struct hps_shard *s, struct hps_err *err)
{
	const struct hps_deployment *d = &s->job->deployment;

	s->first_node = hps_node_of_replica(d, 0, 0);
	s->n_peers = hps_deployment_nodes(d) - s->first_node;
	s->peer = hps_calloc(s->n_peers, sizeof(*s->peer), err);
	if (!s->peer)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < d->n_stages; i++)
		for (uint32_t r = 0; r < d->stage[i].n_replicas; r++) {
			struct peer *p = &s->peer[hps_node_of_replica(d, i, r) - s->first_node];

			p->stage = i;
			p->replica = r;
		}
	return HPS_OK;
}

static enum hps_status make_parts(struct hps_shard *s, const struct hps_graph *g, uint32_t shard,
				  struct hps_err *err)
{
	uint32_t n_stages = s->job->deployment.n_stages;
	enum hps_status st;

	s->dense = hps_calloc(n_stages, sizeof(*s->dense), err);
	s->part_of = hps_calloc(n_stages, sizeof(*s->part_of), err);
	if (!s->dense || !s->part_of)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < n_stages; i++) {
		uint64_t first, n;

		hps_shard_part(s->job, g, i, shard, &first, &n);
		s->part_of[i] = n ? s->n_dense : UINT32_MAX;
		if (!n)
			continue;
		st = hps_shard_dense_init(&s->dense[s->n_dense++], s->job, g, i, first, n, err);
		if (st != HPS_OK)
			return st;
	}
	return HPS_OK;
}

enum hps_status hps_shard_new(const struct hps_job *job, const struct hps_graph *g, uint32_t shard,
			      struct hps_shard **out, struct hps_err *err)
{
	struct hps_shard *s = hps_calloc(1, sizeof(*s), err);
	enum hps_status st;

	if (!s)
		return HPS_MEMORY;
	s->job = job;
	s->id = hps_deployment_id(&job->deployment);
	s->node = hps_node_of_shard(&job->deployment, shard);
	s->bsp = job->deployment.sync == HPS_BSP;
	st = hps_shard_rows_init(&s->rows, job, shard, err);
	if (st == HPS_OK)
		st = make_peers(s, err);
	if (st == HPS_OK)
		st = make_parts(s, g, shard, err);
	if (st != HPS_OK) {
		hps_shard_free(s);
		return st;
	}
	s->max_parked = 64 + 4 * s->rows.n_micro;
	*out = s;
	return HPS_OK;
}

void hps_shard_free(struct hps_shard *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_dense; i++)
		hps_shard_dense_release(&s->dense[i]);
	for (size_t i = 0; i < s->n_parked; i++)
		hps_msg_release(&s->parked[i]);
	hps_shard_rows_release(&s->rows);
	free(s->dense);
	free(s->part_of);
	free(s->parked);
	free(s->peer);
	free(s);
}

void hps_shard_start(struct hps_shard *s, uint64_t step)
{
	s->rows.step = step;
	for (uint32_t i = 0; i < s->n_dense; i++)
		s->dense[i].step = step;
}

/* --- repeats --- */

static bool seen_before(const struct peer *p, const struct hps_head *h)
{
	uint64_t bit = h->seq % HPS_PS_WINDOW;

	if (p->has_before && h->incarnation == p->before)
		return true;
	if (!p->known || h->incarnation != p->incarnation || h->seq > p->top)
		return false;
	return p->top - h->seq >= HPS_PS_WINDOW || (p->seen[bit / 64] >> (bit % 64) & 1);
}

static void drop_parked_of(struct hps_shard *s, uint32_t src)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n_parked; i++) {
		if (s->parked[i].head.src == src)
			hps_msg_release(&s->parked[i]);
		else
			s->parked[kept++] = s->parked[i];
	}
	s->n_parked = kept;
}

/* A request that holds begins another life of its replica. */
static void meet(struct hps_shard *s, struct peer *p, const struct hps_head *h)
{
	if (p->known && p->incarnation == h->incarnation)
		return;
	drop_parked_of(s, h->src);
	p->has_before = p->known;
	p->before = p->incarnation;
	p->known = true;
	p->incarnation = h->incarnation;
	p->top = 0;
	p->n_parked = 0;
	memset(p->seen, 0, sizeof(p->seen));
}

static void mark_seen(struct peer *p, uint64_t seq)
{
	uint64_t bit;

	if (seq > p->top) {
		uint64_t from = p->top + 1;

		if (seq - p->top >= HPS_PS_WINDOW)
			memset(p->seen, 0, sizeof(p->seen));
		else
			for (uint64_t i = from; i < seq; i++) {
				bit = i % HPS_PS_WINDOW;
				p->seen[bit / 64] &= ~(1ull << (bit % 64));
			}
		p->top = seq;
	}
	bit = seq % HPS_PS_WINDOW;
	p->seen[bit / 64] |= 1ull << (bit % 64);
}

/* --- when a request may be answered --- */

static bool dense_ready(const struct hps_shard *s, const struct shard_dense *d, uint64_t step)
{
	return !s->bsp || d->ring || d->step >= step;
}

static bool rows_ready(const struct hps_shard *s, uint64_t step)
{
	return !s->bsp || !s->rows.n_lookup || s->rows.step >= step;
}

static bool ready(const struct hps_shard *s, const struct hps_head *h)
{
	if (h->type == HPS_MSG_PULL)
		return rows_ready(s, h->step);
	if (h->type == HPS_MSG_DENSE_PULL)
		return dense_ready(s, &s->dense[s->part_of[h->arg]], h->step);
	for (uint32_t i = 0; i < s->n_dense; i++)
		if (!dense_ready(s, &s->dense[i], h->step))
			return false;
	return rows_ready(s, h->step);
}

/* Updates that tables and parts have all seen. */
static uint64_t slowest(const struct hps_shard *s)
{
	uint64_t step = s->rows.step;
	bool any = s->rows.n_lookup > 0;

	for (uint32_t i = 0; s->bsp && i < s->n_dense; i++)
		if (!s->dense[i].ring && (!any || s->dense[i].step < step)) {
			step = s->dense[i].step;
			any = true;
		}
	return step;
}

static enum hps_status answer(struct hps_shard *s, struct hps_msg *m, struct hps_outbox *out,
			      struct hps_err *err)
{
	struct hps_msg a = { .head = m->head };
	enum hps_status st = HPS_OK;

	a.head.src = s->node;
	a.head.job = s->id;
	a.head.incarnation = 0; /* lib/net puts this process' own */
	switch (m->head.type) {
	case HPS_MSG_PULL:
		a.head.type = HPS_MSG_ROWS;
		st = hps_shard_rows_answer(&s->rows, m, &a, err);
		break;
	case HPS_MSG_DENSE_PULL:
		a.head.type = HPS_MSG_DENSE;
		st = hps_shard_dense_answer(&s->dense[s->part_of[m->head.arg]], m->head.flags, &a,
					    err);
		break;
	default:
		a.head.type = HPS_MSG_FLUSHED;
		break;
	}
	if (st != HPS_OK) {
		hps_msg_release(&a);
		return st;
	}
	return hps_outbox_put(out, m->head.src, &a, err);
}

static enum hps_status park(struct hps_shard *s, struct peer *p, struct hps_msg *m,
			    struct hps_err *err)
{
	if (p->known && p->incarnation == m->head.incarnation && p->n_parked >= s->max_parked)
		return hps_err_set(err, HPS_NET, "%s: more than %u requests wait already",
				   hps_msg_name(m->head.type), s->max_parked);
	if (s->n_parked == s->cap_parked) {
		size_t cap = s->cap_parked ? s->cap_parked * 2 : 16;
		void *q = s->parked;

		if (hps_realloc(&q, cap, sizeof(*s->parked), err) != HPS_OK)
			return HPS_MEMORY;
		s->parked = q;
		s->cap_parked = cap;
	}
	meet(s, p, &m->head);
	s->parked[s->n_parked++] = *m;
	m->n_frames = 0;
	p->n_parked++;
	return HPS_OK;
}

/* After an update: answer what waited for it, in order of arrival. */
static enum hps_status answer_parked(struct hps_shard *s, struct hps_outbox *out,
				     struct hps_err *err)
{
	enum hps_status st = HPS_OK;
	size_t kept = 0;

	for (size_t i = 0; i < s->n_parked; i++) {
		struct hps_msg *m = &s->parked[i];

		if (st == HPS_OK && ready(s, &m->head)) {
			s->peer[m->head.src - s->first_node].n_parked--;
			st = answer(s, m, out, err);
			hps_msg_release(m);
		} else {
			s->parked[kept++] = *m;
		}
	}
	s->n_parked = kept;
	return st;
}

/* --- requests --- */

static enum hps_status far_from(const struct hps_head *h, uint64_t step, struct hps_err *err)
{
	return hps_err_set(err, HPS_NET, "%s: step %llu is far from step %llu",
			   hps_msg_name(h->type), (unsigned long long)h->step,
			   (unsigned long long)step);
}

static bool is_far(const struct hps_shard *s, uint64_t step, uint64_t now)
{
	return s->bsp && step > now && step - now > HPS_PS_AHEAD;
}

static enum hps_status check_pull(const struct hps_shard *s, const struct hps_msg *m,
				  struct hps_err *err)
{
	if (s->rows.n_lookup && is_far(s, m->head.step, s->rows.step))
		return far_from(&m->head, s->rows.step, err);
	return hps_dir_check(m, s->rows.dim, s->rows.n_tables, err);
}

/* A dense request is of the sender's own stage, and of a part that is here. */
static enum hps_status find_part(struct hps_shard *s, const struct peer *p, const struct hps_msg *m,
				 struct shard_dense **d, struct hps_err *err)
{
	if (m->head.arg != p->stage)
		return hps_err_set(err, HPS_NET, "%s: expected stage %u, got %u",
				   hps_msg_name(m->head.type), p->stage, m->head.arg);
	if (s->part_of[p->stage] == UINT32_MAX)
		return hps_err_set(err, HPS_NET, "%s: no parameters of stage %u are here",
				   hps_msg_name(m->head.type), p->stage);
	*d = &s->dense[s->part_of[p->stage]];
	return HPS_OK;
}

static enum hps_status check_empty(const struct hps_msg *m, struct hps_err *err)
{
	if (m->n_frames)
		return hps_err_set(err, HPS_NET, "%s: expected no frame, got %u",
				   hps_msg_name(m->head.type), m->n_frames);
	return HPS_OK;
}

static enum hps_status check_push(const struct hps_shard *s, const struct peer *p,
				  const struct hps_msg *m, struct hps_err *err)
{
	uint32_t k = s->job->deployment.stage[p->stage].n_replicas;

	if (s->bsp && m->head.mb % k != p->replica)
		return hps_err_set(err, HPS_NET, "push: micro-batch %u is not replica %u's",
				   m->head.mb, p->replica);
	return hps_dir_check(m, s->rows.dim, s->rows.n_tables, err);
}

static enum hps_status handle_request(struct hps_shard *s, struct peer *p, struct hps_msg *m,
				      struct hps_outbox *out, bool *updated, struct hps_err *err)
{
	const struct hps_head head = m->head;
	struct shard_dense *d = NULL;
	enum hps_status st = HPS_OK;
	size_t keys;

	switch (m->head.type) {
	case HPS_MSG_PULL:
		st = check_pull(s, m, err);
		if (st == HPS_OK) {
			s->stats.pulls++;
			s->stats.rows_pulled += m->frame[1].len / sizeof(uint64_t);
		}
		break;
	case HPS_MSG_DENSE_PULL:
		st = find_part(s, p, m, &d, err);
		if (st == HPS_OK && !d->ring && is_far(s, m->head.step, d->step))
			st = far_from(&m->head, d->step, err);
		if (st == HPS_OK)
			st = check_empty(m, err);
		break;
	case HPS_MSG_FLUSH:
		st = check_empty(m, err);
		if (st == HPS_OK && !ready(s, &m->head) && is_far(s, m->head.step, slowest(s)))
			st = far_from(&m->head, slowest(s), err);
		break;
	case HPS_MSG_PUSH:
		st = check_push(s, p, m, err);
		if (st != HPS_OK)
			return st;
		keys = m->frame[1].len / sizeof(uint64_t);
		st = hps_shard_rows_push(&s->rows, m, p->stage, updated, err);
		if (st == HPS_OK) {
			s->stats.pushes++;
			s->stats.rows_pushed += keys;
			if (head.epoch >= s->stats.epochs)
				s->stats.epochs = (uint64_t)head.epoch + 1;
		}
		return st;
	case HPS_MSG_DENSE_PUSH:
		st = find_part(s, p, m, &d, err);
		return st == HPS_OK ? hps_shard_dense_push(d, m, p->replica, updated, err) : st;
	case HPS_MSG_DENSE_SET:
		st = find_part(s, p, m, &d, err);
		return st == HPS_OK ? hps_shard_dense_set(d, m, err) : st;
	default:
		return hps_err_set(err, HPS_NET, "%s: not a request to a shard",
				   hps_msg_name(m->head.type));
	}
	if (st != HPS_OK)
		return st;
	return ready(s, &m->head) ? answer(s, m, out, err) : park(s, p, m, err);
}

enum hps_status hps_shard_handle(struct hps_shard *s, struct hps_msg *m, struct hps_outbox *out,
				 struct hps_err *err)
{
	uint32_t at = m->head.src - s->first_node; /* wraps for what is no replica */
	struct hps_head head = m->head;
	enum hps_status st = HPS_OK;
	bool updated = false;
	struct peer *p;

	if (m->head.src < s->first_node || at >= s->n_peers)
		st = hps_err_set(err, HPS_NET, "node %u is no replica", m->head.src);
	else if (!m->head.seq)
		st = hps_err_set(err, HPS_NET, "%s: expected a sequence number from 1, got 0",
				 hps_msg_name(m->head.type));
	if (st != HPS_OK) {
		hps_msg_release(m);
		return st;
	}
	p = &s->peer[at];
	if (seen_before(p, &head)) {
		hps_msg_release(m);
		return HPS_OK;
	}
	st = handle_request(s, p, m, out, &updated, err);
	if (st == HPS_OK) {
		meet(s, p, &head);
		mark_seen(p, head.seq);
	}
	hps_msg_release(m);
	if (st == HPS_OK && updated)
		st = answer_parked(s, out, err);
	return st;
}

/* --- what it holds --- */

void hps_shard_stats(const struct hps_shard *s, struct hps_shard_stats *out)
{
	*out = s->stats;
	out->step = slowest(s);
}

struct hps_table *hps_shard_table(const struct hps_shard *s, uint32_t table)
{
	return s->rows.table[table];
}

uint32_t hps_shard_n_dense(const struct hps_shard *s)
{
	return s->n_dense;
}

struct hps_shard_dense hps_shard_dense(const struct hps_shard *s, uint32_t i)
{
	const struct shard_dense *d = &s->dense[i];

	return (struct hps_shard_dense){ d->stage,	d->first, d->n,
					 d->buf->param, d->state, d->updates };
}

enum hps_status hps_shard_put_dense(struct hps_shard *s, uint64_t first, uint64_t n,
				    const float *param, const float *state, uint64_t updates,
				    struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint32_t i = 0; i < s->n_dense && st == HPS_OK; i++)
		st = hps_shard_dense_put(&s->dense[i], first, n, param, state, updates, err);
	return st;
}
