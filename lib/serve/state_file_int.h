/* The bytes of one shard's file: heads and blocks with their checksums. For lib/serve only. */
#ifndef HPS_SERVE_STATE_FILE_INT_H
#define HPS_SERVE_STATE_FILE_INT_H

#include "base/buf.h"
#include "base/file.h"
#include "job/model.h"
#include "serve/state.h"

/* As on disk: no padding, little-endian hosts only (wire/msg.c sees to that). */
struct state_head {
	char magic[8];
	uint32_t version, shard, n_shards, n_tables;
	uint64_t digest, save, step, epochs, n_floats, seed;
	uint64_t sum;
};

enum state_kind { STATE_MODEL = 1, STATE_TABLE, STATE_ROWS, STATE_DENSE, STATE_END };

struct state_block {
	uint32_t kind, table, optim, zero;
	uint64_t bytes;
	uint64_t a, b, c;
	uint64_t body_sum, head_sum;
};

_Static_assert(sizeof(struct state_head) == 80, "state_head is laid out as on disk");
_Static_assert(sizeof(struct state_block) == 64, "state_block is laid out as on disk");

enum {
	STATE_VERSION = 1,
	STATE_BODY_AIM = 4 << 20,  /* bytes of a body when written */
	STATE_BODY_MAX = 64 << 20, /* and at most when read */
	STATE_ROW_HEAD = 16,	   /* key, frequency, last use */
};

/* --- writing --- */

struct state_writer {
	struct hps_file_new file;
	struct hps_buf body; /* of the block in the making */
	uint64_t blocks;
};

enum hps_status hps_state_writer_open(struct state_writer *w, const char *path,
				      struct state_head *h, struct hps_err *err);
/* Write the block with w->body as its body, and empty that. */
enum hps_status hps_state_writer_put(struct state_writer *w, struct state_block b,
				     struct hps_err *err);
/* The END block, then to the disk. */
enum hps_status hps_state_writer_close(struct state_writer *w, struct hps_err *err);
void hps_state_writer_discard(struct state_writer *w);

/* --- reading --- */

struct state_reader {
	const char *path; /* borrowed */
	int fd;
	uint64_t size;	 /* bytes of the file */
	uint64_t at;	 /* byte of the block at hand */
	uint64_t blocks; /* read */
	struct state_head head;
	struct state_block block;
	char *body; /* of block */
	size_t cap;
};

enum hps_status hps_state_reader_open(struct state_reader *r, const char *path,
				      struct hps_err *err);
/* The next block into r->block and r->body; *end after END, which must be the last. */
enum hps_status hps_state_reader_next(struct state_reader *r, bool *end, struct hps_err *err);
void hps_state_reader_close(struct state_reader *r);
/* "PATH: block 3 at byte 1234: ..."; returns HPS_BAD_INPUT. */
enum hps_status hps_state_reader_bad(const struct state_reader *r, struct hps_err *err,
				     const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
