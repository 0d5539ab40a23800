/* What the threads of hps-work leave for its main thread: events of replicas, the end of data,
 * failures; first in, first out. The main thread is woken by its socket.
 */
#ifndef HPS_TRAIN_TRAY_H
#define HPS_TRAIN_TRAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "net/net.h"
#include "train/replica.h"

enum hps_note_kind { HPS_NOTE_EVENT, HPS_NOTE_DATA_END, HPS_NOTE_FAILED };

struct hps_note {
	enum hps_note_kind kind;
	uint32_t from;			/* EVENT: which replica */
	struct hps_replica_event event; /* its arrays lie behind the note */
	uint32_t epoch;			/* DATA_END */
	uint64_t rows;
	struct hps_err err; /* FAILED */
	struct hps_note *next;
};

struct hps_tray {
	pthread_mutex_t lock;
	struct hps_note *first, **last;
	struct hps_net *wake;
	bool lost; /* no memory for a note: FAILED is told once the tray is empty */
};

enum hps_status hps_tray_init(struct hps_tray *t, struct hps_net *wake, struct hps_err *err);
void hps_tray_release(struct hps_tray *t);

/* Any thread. */
void hps_tray_event(struct hps_tray *t, uint32_t from, const struct hps_replica_event *e);
void hps_tray_data_end(struct hps_tray *t, uint32_t epoch, uint64_t rows);
void hps_tray_failed(struct hps_tray *t, const struct hps_err *err);

/* The main thread: the first note, to be free()d; NULL: none. *lost: notes are missing. */
struct hps_note *hps_tray_take(struct hps_tray *t, bool *lost);

#endif
