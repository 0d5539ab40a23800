/* How a document travels in a message. */
#include "wire/control.h"

#include <string.h>

enum hps_status hps_control_pack(const struct hps_doc *d, struct hps_msg *m, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status st;

	b.max = HPS_CONTROL_MAX_BYTES;
	*m = (struct hps_msg){ .head.type = HPS_MSG_CONTROL };
	st = hps_doc_to_msgpack(d, &b, err);
	if (st == HPS_OK)
		st = hps_msg_copy(m, b.data, b.len, err);
	hps_buf_release(&b);
	return st;
}

/* The first byte of a msgpack map; JSON's '{' is none of them. */
static bool is_map(const struct hps_frame *f)
{
	uint8_t c;

	if (!f->len)
		return false;
	memcpy(&c, f->data, 1);
	return (c & 0xf0) == 0x80 || c == 0xde || c == 0xdf;
}

enum hps_status hps_control_unpack(const struct hps_msg *m, struct hps_doc **out,
				   struct hps_err *err)
{
	const struct hps_frame *f = &m->frame[0];
	enum hps_status st;

	if (m->head.type != HPS_MSG_CONTROL)
		return hps_err_set(err, HPS_NET, "expected a control message, got %s",
				   hps_msg_name(m->head.type));
	if (m->n_frames < 1 || f->len > HPS_CONTROL_MAX_BYTES)
		return hps_err_set(err, HPS_NET, "control: expected a frame of at most %d bytes",
				   HPS_CONTROL_MAX_BYTES);
	if (!is_map(f))
		return hps_err_set(err, HPS_NET, "control: expected a msgpack object");
	st = hps_doc_parse(f->data, f->len, "control", out, err);
	if (st == HPS_BAD_INPUT) {
		if (err)
			err->status = HPS_NET;
		st = HPS_NET;
	}
	return st;
}
