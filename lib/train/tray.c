/* The main thread's tray: notes in a list under a lock. */
#include "train/tray.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum hps_status hps_tray_init(struct hps_tray *t, struct hps_net *wake, struct hps_err *err)
{
	memset(t, 0, sizeof *t);
	t->last = &t->first;
	t->wake = wake;
	if (pthread_mutex_init(&t->lock, NULL))
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	return HPS_OK;
}

void hps_tray_release(struct hps_tray *t)
{
	while (t->first) {
		struct hps_note *n = t->first;

		t->first = n->next;
		free(n);
	}
	pthread_mutex_destroy(&t->lock);
}

/* Hand over a note; NULL: there was no memory for it. */
static void put(struct hps_tray *t, struct hps_note *n)
{
	pthread_mutex_lock(&t->lock);
	if (n) {
		n->next = NULL;
		*t->last = n;
		t->last = &n->next;
	} else {
		t->lost = true;
	}
	pthread_mutex_unlock(&t->lock);
	hps_net_wake(t->wake);
}

void hps_tray_event(struct hps_tray *t, uint32_t from, const struct hps_replica_event *e)
{
	size_t n = e->kind == HPS_REPLICA_SCORES ? e->count : 0;
	size_t bytes = n * (sizeof *e->row + sizeof *e->score + sizeof *e->label);
	struct hps_note *note = hps_calloc(1, sizeof *note + bytes, NULL);
	uint64_t *row;
	float *score, *label;

	if (note) {
		note->kind = HPS_NOTE_EVENT;
		note->from = from;
		note->event = *e;
	}
	if (note && n) {
		row = (uint64_t *)(note + 1);
		score = (float *)(row + n);
		label = score + n;
		memcpy(row, e->row, n * sizeof *row);
		memcpy(score, e->score, n * sizeof *score);
		memcpy(label, e->label, n * sizeof *label);
		note->event.row = row;
		note->event.score = score;
		note->event.label = label;
	}
	put(t, note);
}

void hps_tray_data_end(struct hps_tray *t, uint32_t epoch, uint64_t rows)
{
	struct hps_note *note = hps_calloc(1, sizeof *note, NULL);

	if (note) {
		note->kind = HPS_NOTE_DATA_END;
		note->epoch = epoch;
		note->rows = rows;
	}
	put(t, note);
}

void hps_tray_failed(struct hps_tray *t, const struct hps_err *err)
{
	struct hps_note *note = hps_calloc(1, sizeof *note, NULL);

	if (note) {
		note->kind = HPS_NOTE_FAILED;
		note->err = *err;
	}
	put(t, note);
}

struct hps_note *hps_tray_take(struct hps_tray *t, bool *lost)
{
	struct hps_note *n;

	pthread_mutex_lock(&t->lock);
	n = t->first;
	if (n) {
		t->first = n->next;
		if (!t->first)
			t->last = &t->first;
	}
	*lost = !n && t->lost;
	pthread_mutex_unlock(&t->lock);
	return n;
}
