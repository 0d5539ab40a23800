/* What a message looks like in bytes, and whether bytes from a peer are one. */
#include "wire/msg.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "payload frames are little-endian arrays used in place: this host is not"
#endif

static const uint8_t magic[4] = { 'H', 'P', 'S', '1' };

static const char *const type_name[] = {
	[HPS_MSG_PULL] = "pull",	   [HPS_MSG_ROWS] = "rows",
	[HPS_MSG_PUSH] = "push",	   [HPS_MSG_DENSE_PULL] = "dense pull",
	[HPS_MSG_DENSE] = "dense",	   [HPS_MSG_DENSE_PUSH] = "dense push",
	[HPS_MSG_DENSE_SET] = "dense set", [HPS_MSG_FLUSH] = "flush",
	[HPS_MSG_FLUSHED] = "flushed",	   [HPS_MSG_FORWARD] = "forward",
	[HPS_MSG_BACKWARD] = "backward",   [HPS_MSG_END] = "end",
	[HPS_MSG_RING] = "ring",	   [HPS_MSG_CONTROL] = "control",
	[HPS_MSG_REFUSED] = "refused",
};

const char *hps_msg_name(uint16_t type)
{
	if (type < sizeof(type_name) / sizeof(type_name[0]) && type_name[type])
		return type_name[type];
	return "unknown";
}

/* --- header --- */

static uint8_t *put(uint8_t *p, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * i));
	return p + bytes;
}

static uint64_t get(const uint8_t **p, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)(*p)[i] << (8 * i);
	*p += bytes;
	return v;
}

void hps_head_encode(const struct hps_head *h, uint8_t out[HPS_HEAD_BYTES])
{
	uint8_t *p = out;

	memcpy(p, magic, sizeof(magic));
	p = put(p + sizeof(magic), HPS_WIRE_VERSION, 2);
	p = put(p, h->type, 2);
	p = put(p, h->flags, 4);
	p = put(p, h->src, 4);
	p = put(p, h->job, 8);
	p = put(p, h->incarnation, 8);
	p = put(p, h->seq, 8);
	p = put(p, h->step, 8);
	p = put(p, h->epoch, 4);
	p = put(p, h->mb, 4);
	p = put(p, h->count, 4);
	p = put(p, h->arg, 4);
	put(p, h->aux, 8);
}

enum hps_status hps_head_decode(const void *data, size_t len, struct hps_head *h,
				struct hps_err *err)
{
	const uint8_t *p = data;
	uint64_t version;
	struct hps_head x;

	if (len != HPS_HEAD_BYTES)
		return hps_err_set(err, HPS_NET, "expected a header of %d bytes, got %zu",
				   HPS_HEAD_BYTES, len);
	if (memcmp(p, magic, sizeof(magic)) != 0)
		return hps_err_set(err, HPS_NET, "not a message of hps");
	p += sizeof(magic);
	version = get(&p, 2);
	if (version != HPS_WIRE_VERSION)
		return hps_err_set(err, HPS_NET, "expected protocol version %d, got %llu",
				   HPS_WIRE_VERSION, (unsigned long long)version);
	x.type = (uint16_t)get(&p, 2);
	x.flags = (uint32_t)get(&p, 4);
	x.src = (uint32_t)get(&p, 4);
	x.job = get(&p, 8);
	x.incarnation = get(&p, 8);
	x.seq = get(&p, 8);
	x.step = get(&p, 8);
	x.epoch = (uint32_t)get(&p, 4);
	x.mb = (uint32_t)get(&p, 4);
	x.count = (uint32_t)get(&p, 4);
	x.arg = (uint32_t)get(&p, 4);
	x.aux = get(&p, 8);
	if (x.type < HPS_MSG_PULL || x.type > HPS_MSG_REFUSED)
		return hps_err_set(err, HPS_NET, "unknown message type %u", x.type);
	if (x.flags & ~(uint32_t)(HPS_FLAG_EVAL | HPS_FLAG_STATE))
		return hps_err_set(err, HPS_NET, "unknown flags 0x%x", x.flags);
	*h = x;
	return HPS_OK;
}

uint64_t hps_sum_head(const uint8_t head[HPS_HEAD_BYTES])
{
	return hps_hash_bytes(head, HPS_HEAD_BYTES, HPS_WIRE_VERSION);
}

uint64_t hps_sum_frame(uint64_t sum, const void *data, size_t len)
{
	return len <= HPS_SUM_WHOLE ? hps_hash_bytes(data, len, sum) : hps_hash3(sum, len, 1);
}

/* --- frames --- */

static void release_malloced(void *data, void *hint)
{
	(void)hint;
	free(data);
}

enum hps_status hps_msg_take(struct hps_msg *m, void *data, size_t len, struct hps_err *err)
{
	if (m->n_frames == HPS_MAX_FRAMES) {
		free(data);
		return hps_err_set(err, HPS_MEMORY, "a message of more than %d frames",
				   HPS_MAX_FRAMES);
	}
	m->frame[m->n_frames++] = (struct hps_frame){ data, len, release_malloced, NULL };
	return HPS_OK;
}

enum hps_status hps_msg_copy(struct hps_msg *m, const void *data, size_t len, struct hps_err *err)
{
	void *copy = hps_calloc(len, 1, err);

	if (!copy)
		return HPS_MEMORY;
	if (len)
		memcpy(copy, data, len);
	return hps_msg_take(m, copy, len, err);
}

static void release_frame(struct hps_frame *f)
{
	if (f->release)
		f->release(f->data, f->hint);
}

void hps_msg_release(struct hps_msg *m)
{
	for (uint32_t i = 0; i < m->n_frames; i++)
		release_frame(&m->frame[i]);
	m->n_frames = 0;
}

void *hps_msg_array(struct hps_msg *m, uint32_t i, struct hps_err *err)
{
	struct hps_frame *f = &m->frame[i];
	void *copy;

	if (f->data && ((uintptr_t)f->data & 7) == 0)
		return f->data;
	copy = hps_calloc(f->len, 1, err);
	if (!copy)
		return NULL;
	if (f->len)
		memcpy(copy, f->data, f->len);
	release_frame(f);
	*f = (struct hps_frame){ copy, f->len, release_malloced, NULL };
	return copy;
}

/* --- directories --- */

uint32_t hps_dir_count(const struct hps_msg *m)
{
	return (uint32_t)(m->frame[0].len / sizeof(struct hps_dir_entry));
}

struct hps_dir_entry hps_dir_entry(const struct hps_msg *m, uint32_t i)
{
	const char *dir = m->frame[0].data;
	struct hps_dir_entry e;

	memcpy(&e, dir + i * sizeof(e), sizeof(e));
	return e;
}

static enum hps_status check_len(const struct hps_msg *m, uint32_t i, uint64_t bytes,
				 struct hps_err *err)
{
	if (m->frame[i].len != bytes)
		return hps_err_set(err, HPS_NET, "%s: expected %llu bytes in frame %u, got %zu",
				   hps_msg_name(m->head.type), (unsigned long long)bytes, i,
				   m->frame[i].len);
	return HPS_OK;
}

enum hps_status hps_dir_check(const struct hps_msg *m, const uint32_t *dims, uint32_t n_tables,
			      struct hps_err *err)
{
	uint32_t frames = m->head.type == HPS_MSG_PUSH ? 3 : 2;
	const char *name = hps_msg_name(m->head.type);
	uint64_t keys = 0, floats = 0; /* below 2^8 * 2^32 and 2^8 * 2^52: no overflow */
	enum hps_status st = HPS_OK;

	if (m->head.type != HPS_MSG_PULL && m->head.type != HPS_MSG_ROWS &&
	    m->head.type != HPS_MSG_PUSH)
		return hps_err_set(err, HPS_NET, "%s: no directory in such a message", name);
	if (m->n_frames != frames)
		return hps_err_set(err, HPS_NET, "%s: expected %u frames, got %u", name, frames,
				   m->n_frames);
	if (m->frame[0].len % sizeof(struct hps_dir_entry) ||
	    m->frame[0].len / sizeof(struct hps_dir_entry) > n_tables)
		return hps_err_set(err, HPS_NET,
				   "%s: expected a directory of at most %u entries, got %zu bytes",
				   name, n_tables, m->frame[0].len);
	for (uint32_t i = 0; i < hps_dir_count(m); i++) {
		struct hps_dir_entry e = hps_dir_entry(m, i);

		if (e.table >= n_tables || (i && e.table <= hps_dir_entry(m, i - 1).table))
			return hps_err_set(
				err, HPS_NET,
				"%s: entry %u: expected ascending tables below %u, got %u", name, i,
				n_tables, e.table);
		keys += e.n;
		floats += (uint64_t)e.n * dims[e.table];
	}
	if (m->head.type != HPS_MSG_ROWS)
		st = check_len(m, 1, keys * sizeof(uint64_t), err);
	if (st == HPS_OK && m->head.type != HPS_MSG_PULL)
		st = check_len(m, frames - 1, floats * sizeof(float), err);
	return st;
}

/* --- outbox --- */

enum hps_status hps_outbox_put(struct hps_outbox *o, uint32_t dst, struct hps_msg *m,
			       struct hps_err *err)
{
	if (o->n == o->cap) {
		size_t cap = o->cap ? o->cap * 2 : 8;
		void *p = o->item;
		enum hps_status st = hps_realloc(&p, cap, sizeof(*o->item), err);

		if (st != HPS_OK) {
			hps_msg_release(m);
			return st;
		}
		o->item = p;
		o->cap = cap;
	}
	o->item[o->n].dst = dst;
	o->item[o->n++].msg = *m;
	m->n_frames = 0;
	return HPS_OK;
}

void hps_outbox_release(struct hps_outbox *o)
{
	for (size_t i = 0; i < o->n; i++)
		hps_msg_release(&o->item[i].msg);
	free(o->item);
	*o = (struct hps_outbox){ 0 };
}
