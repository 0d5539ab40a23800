/* How control messages are put together and taken apart. */
#include "coord/talk.h"

#include <stdio.h>
#include <string.h>

static const char *const names[HPS_CTL_KINDS] = {
	[HPS_CTL_JOIN] = "join",
	[HPS_CTL_WELCOME] = "welcome",
	[HPS_CTL_REFUSED] = "refused",
	[HPS_CTL_HEARTBEAT] = "heartbeat",
	[HPS_CTL_GO] = "go",
	[HPS_CTL_EPOCH] = "epoch",
	[HPS_CTL_STEPS] = "steps",
	[HPS_CTL_STEP] = "step",
	[HPS_CTL_LEASE] = "lease",
	[HPS_CTL_DATA_END] = "data end",
	[HPS_CTL_EPOCH_DONE] = "epoch done",
	[HPS_CTL_EVAL] = "eval",
	[HPS_CTL_SCORES] = "scores",
	[HPS_CTL_EVAL_DONE] = "eval done",
	[HPS_CTL_EVALED] = "evaled",
	[HPS_CTL_FINISH] = "finish",
	[HPS_CTL_FINISHED] = "finished",
	[HPS_CTL_SAVE] = "save",
	[HPS_CTL_SAVED] = "saved",
	[HPS_CTL_DONE] = "done",
	[HPS_CTL_BYE] = "bye",
	[HPS_CTL_INTERRUPT] = "interrupt",
	[HPS_CTL_HOLD] = "hold",
	[HPS_CTL_HELD] = "held",
	[HPS_CTL_STOP] = "stop",
	[HPS_CTL_ERROR] = "error",
	[HPS_CTL_ABORT] = "abort",
	[HPS_CTL_PRINTED] = "printed",
	[HPS_CTL_WINDOW] = "window",
};

const char *hps_talk_name(uint32_t kind)
{
	return kind < HPS_CTL_KINDS && names[kind] ? names[kind] : "unknown";
}

enum hps_status hps_talk_make(enum hps_control kind, struct hps_doc *body, struct hps_msg *out,
			      struct hps_err *err)
{
	enum hps_status st;

	if (!body)
		body = hps_doc_object();
	if (!body)
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	st = hps_control_pack(body, out, err);
	hps_doc_free(body);
	if (st == HPS_OK)
		out->head.arg = kind;
	return st;
}

enum hps_status hps_talk_read(const struct hps_msg *m, enum hps_control *kind,
			      struct hps_doc **body, struct hps_err *err)
{
	if (m->head.arg == 0 || m->head.arg >= HPS_CTL_KINDS)
		return hps_err_set(err, HPS_NET, "unknown control message %u", m->head.arg);
	*kind = (enum hps_control)m->head.arg;
	if (*kind != HPS_CTL_SCORES && m->n_frames > 1)
		return hps_err_set(err, HPS_NET, "%s: expected one frame, got %u",
				   hps_talk_name(*kind), m->n_frames);
	return hps_control_unpack(m, body, err);
}

struct hps_doc *hps_talk_error(const struct hps_err *e)
{
	struct hps_doc *d = hps_doc_object();

	if (!d)
		return NULL;
	if (hps_doc_put(d, "status", hps_doc_int(e->status)) ||
	    hps_doc_put(d, "where", hps_doc_string(e->where)) ||
	    hps_doc_put(d, "msg", hps_doc_string(e->msg)) ||
	    hps_doc_put(d, "hint", hps_doc_string(e->hint))) {
		hps_doc_free(d);
		return NULL;
	}
	return d;
}

static void take_text(const struct hps_at *at, const char *key, char *out, size_t size)
{
	struct hps_at a = hps_at_member(at, key);
	const char *s;

	out[0] = 0;
	if (!hps_at_absent(&a) && hps_at_string(&a, &s, NULL) == HPS_OK)
		snprintf(out, size, "%s", s);
}

void hps_talk_error_read(const struct hps_doc *body, struct hps_err *e)
{
	struct hps_at at = hps_at_root(body, "error");
	struct hps_at a = hps_at_member(&at, "status");
	int64_t status;

	if (!e)
		return;
	memset(e, 0, sizeof *e);
	/* A sender that says "ok" or nonsense has still ended the job. */
	if (hps_at_int(&a, HPS_NO, HPS_DEVICE, &status, NULL) != HPS_OK)
		status = HPS_NET;
	e->status = (enum hps_status)status;
	take_text(&at, "where", e->where, sizeof e->where);
	take_text(&at, "msg", e->msg, sizeof e->msg);
	take_text(&at, "hint", e->hint, sizeof e->hint);
	if (!e->msg[0])
		snprintf(e->msg, sizeof e->msg, "failed without saying why");
}
