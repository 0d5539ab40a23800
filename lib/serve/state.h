/* A trained model on disk: saved by the shards of one or more processes, loaded by any number.
 *
 *   DIR/
 *     HOST/                    one for each hps-serve of the job, locked while that runs
 *       lock
 *       save-7/                complete: it got its name by one rename, when all was on disk
 *         shard-0.hps
 *         shard-1.hps
 *       tmp-1234/              in the making, or left by a crash: swept by the next save
 *
 * A save is the newest save-N of every HOST that belong together (same save id). So a crash at
 * any moment leaves the old save or the new one. A process whose save is whole drops the one
 * before it; processes that each save a part keep one more, since the others may not be done.
 * Processes on several hosts each need the others' folders beside their own to load: a shared
 * file system, or copies.
 *
 * shard-I.hps, little-endian:
 *
 *   head    0 "HPSSTATE"       8 u32 version 1     12 u32 shard        16 u32 shards in all
 *          20 u32 tables      24 u64 model digest  32 u64 save id      40 u64 step
 *          48 u64 epochs      56 u64 dense floats  64 u64 seed         72 u64 checksum of 0..71
 *   blocks, each a head and a body:
 *           0 u32 kind         4 u32 table          8 u32 optimizer    12 u32 0
 *          16 u64 body bytes  24 u64 a             32 u64 b            40 u64 c
 *          48 u64 checksum of the body             56 u64 checksum of 0..55
 *     MODEL  the model section as JSON
 *     TABLE  a: rows of the table here, b: floats of a row; no body
 *     ROWS   a: rows; body: of each [ key u64 | frequency u32 | last use u32 | floats ]
 *     DENSE  a: first float of the flat vector, b: n, c: updates; body: parameters (n), then
 *            optimizer state as lib/optim lays it out with stride n
 *     END    a: blocks before it; no body
 *   MODEL and all TABLE blocks come first. Checksums are hps_hash_bytes with seed 0.
 */
#ifndef HPS_SERVE_STATE_H
#define HPS_SERVE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "doc/doc.h"
#include "graph/graph.h"
#include "job/job.h"
#include "ps/shard.h"

/* --- one process' folder --- */

struct hps_state_dir {
	char *dir;  /* DIR/HOST */
	char *root; /* DIR */
	char *tmp;  /* of the save in the making, NULL when there is none */
	int lock_fd;
};

/* Make DIR/HOST and lock it. HPS_IO: it cannot be written, or another hps-serve has it. */
enum hps_status hps_state_open(struct hps_state_dir *d, const char *root, const char *host,
			       struct hps_err *err);
void hps_state_close(struct hps_state_dir *d); /* abandons a save in the making */

/* Begin a save (d->tmp), write each shard's file into it, commit or abandon. */
enum hps_status hps_state_begin(struct hps_state_dir *d, struct hps_err *err);
/* whole: this process has all shards of the job, so that older saves may go. */
enum hps_status hps_state_commit(struct hps_state_dir *d, bool whole, struct hps_err *err);
void hps_state_abandon(struct hps_state_dir *d);

/* Write one shard's file into folder `tmp`; any thread that owns the shard. save: the same number
 * in all files of a save. epochs: those before this run. HPS_IO names the file. */
struct hps_state_write {
	const char *tmp;
	const struct hps_job *job;
	const struct hps_graph *graph;
	uint32_t shard;
	uint64_t save, epochs;
};
enum hps_status hps_state_write(const struct hps_state_write *w, const struct hps_shard *s,
				struct hps_err *err);

/* --- a whole save --- */

struct hps_state {
	char **path; /* n_files: by shard */
	uint32_t n_files;
	uint64_t digest, save, step, epochs, seed, n_floats;
};

/* The newest save in DIR of which every shard is there. None at all (or no DIR): *found false.
 * HPS_BAD_INPUT: a file is damaged, or saves are there but none is complete. */
enum hps_status hps_state_find(const char *root, struct hps_state *s, bool *found,
			       struct hps_err *err);
void hps_state_release(struct hps_state *s);

/* Put all of it that belongs here into shards[0 .. n_shards), by shard number, NULL where not
 * here. Shards are fresh; the caller starts them at s->step. HPS_BAD_INPUT: another model's,
 * other optimizers, damaged (file and place). */
enum hps_status hps_state_load(const struct hps_state *s, const struct hps_job *job,
			       struct hps_shard **shards, struct hps_err *err);

/* Write each dense tensor as DIR/NAME.npy (float32, C order) and describe the save: *out, an
 * object, is the caller's. job: to check against, or NULL (the file knows its model). */
enum hps_status hps_state_export(const struct hps_state *s, const struct hps_job *job,
				 const char *dir, struct hps_doc **out, struct hps_err *err);

#endif
