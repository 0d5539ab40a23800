/* Which lines make which batch? The reader's scanner thread: counts lines, takes those of
 * the ranges that the caller wants, shuffled within windows if so asked, and puts them into
 * jobs for the parsers. Permutation: Fisher, Yates (Durstenfeld 1964). */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/reader_int.h"

/* A line of the window, with the chunk that holds it. */
struct spot {
	struct hps_line line;
	struct hps_chunk *chunk;
};

/* Rows are numbered after first_row has been passed. */
struct scan {
	struct hps_reader *r;
	uint64_t limit;	 /* rows of the epoch at most */
	uint64_t serial; /* of the job being filled, from 1: marks the chunks it holds */

	struct hps_chunk *chunk; /* being read; NULL: the next one is to be loaded */
	const char *at;		 /* in chunk */
	uint64_t line;		 /* number of the line at `at` */
	uint64_t chunk_left;	 /* lines from `at` on */
	uint64_t row;		 /* of the line at `at` */
	bool ended;		 /* no line is left */

	struct spot *spot; /* of the window: n_spots, in shuffled order */
	size_t n_spots, cap_spots;
	uint64_t spot_row;	 /* of spot[0]; windows begin at multiples of shuffle_rows */
	struct hps_chunk **held; /* n_held: the window's, one reference each */
	size_t n_held, cap_held;

	enum hps_status pending; /* met while looking beyond a job: the next one's */
	struct hps_err err;
	uint64_t end; /* of the job before */
};

/* --- the line cursor --- */

static void leave_chunk(struct scan *s)
{
	if (s->chunk != NULL)
		hps_chunk_put(s->r->lines, s->chunk);
	s->chunk = NULL;
	s->chunk_left = 0;
}

/* Make a line stand at the cursor, or set ended. */
static enum hps_status load(struct scan *s, struct hps_err *err)
{
	enum hps_status st;

	if (s->row >= s->limit)
		s->ended = true;
	if (s->chunk_left > 0 || s->ended)
		return HPS_OK;
	leave_chunk(s);
	if ((st = hps_lines_next(s->r->lines, &s->chunk, err)) != HPS_OK)
		return st;
	if (s->chunk == NULL) {
		s->ended = true;
		return HPS_OK;
	}
	s->at = s->chunk->data;
	s->line = s->chunk->first_line;
	s->chunk_left = s->chunk->lines;
	return HPS_OK;
}

/* Pass n lines, or those there are. */
static enum hps_status skip(struct scan *s, uint64_t n, struct hps_err *err)
{
	while (n > 0) {
		enum hps_status st = load(s, err);
		uint64_t step = n < s->chunk_left ? n : s->chunk_left;

		if (st != HPS_OK || s->ended)
			return st;
		if (step < s->chunk_left)
			s->at = hps_line_skip(s->at, s->chunk->data + s->chunk->len, step);
		s->chunk_left -= step;
		s->line += step;
		s->row += step;
		n -= step;
	}
	return HPS_OK;
}

/* The line at the cursor, which must stand at one; passes it. */
static struct hps_line take(struct scan *s)
{
	struct hps_line l = { .text = s->at, .file = s->chunk->file, .number = s->line };

	l.len = (uint32_t)hps_line_at(s->at, s->chunk->data + s->chunk->len, &s->at);
	s->chunk_left--;
	s->line++;
	s->row++;
	return l;
}

/* --- jobs --- */

static enum hps_status job_add(struct scan *s, struct hps_job *j, const struct hps_line *line,
			       struct hps_chunk *chunk, struct hps_err *err)
{
	if (hps_reader_room((void **)&j->line, j->n_lines, &j->cap_lines, sizeof *j->line, err) ||
	    hps_reader_room((void **)&j->chunk, j->n_chunks, &j->cap_chunks, sizeof *j->chunk, err))
		return HPS_MEMORY;
	j->line[j->n_lines++] = *line;
	if (chunk->mark != s->serial) {
		chunk->mark = s->serial;
		hps_chunk_hold(s->r->lines, chunk);
		j->chunk[j->n_chunks++] = chunk;
	}
	return HPS_OK;
}

static enum hps_status fill_straight(struct scan *s, struct hps_job *j, struct hps_err *err)
{
	enum hps_status st = skip(s, j->begin - s->row, err);

	while (st == HPS_OK && s->row < j->end && (st = load(s, err)) == HPS_OK && !s->ended) {
		struct hps_chunk *chunk = s->chunk;
		struct hps_line l = take(s);

		st = job_add(s, j, &l, chunk, err);
	}
	return st;
}

/* --- shuffling --- */

static void drop_window(struct scan *s)
{
	for (size_t i = 0; i < s->n_held; i++)
		hps_chunk_put(s->r->lines, s->held[i]);
	s->n_held = s->n_spots = 0;
}

static enum hps_status window_add(struct scan *s, struct hps_err *err)
{
	struct hps_chunk *chunk = s->chunk;

	if (hps_reader_room((void **)&s->spot, s->n_spots, &s->cap_spots, sizeof *s->spot, err) ||
	    hps_reader_room((void **)&s->held, s->n_held, &s->cap_held, sizeof *s->held, err))
		return HPS_MEMORY;
	if (s->n_held == 0 || s->held[s->n_held - 1] != chunk) {
		hps_chunk_hold(s->r->lines, chunk);
		s->held[s->n_held++] = chunk;
	}
	s->spot[s->n_spots++] = (struct spot){ take(s), chunk };
	return HPS_OK;
}

static void permute(struct scan *s, uint64_t window)
{
	struct hps_rng rng;

	hps_rng_init(&rng, hps_hash3(s->r->opts.seed, s->r->epoch, window), 0);
	for (size_t i = s->n_spots; i > 1; i--) {
		size_t j = (size_t)hps_rng_below(&rng, i);
		struct spot swap = s->spot[i - 1];

		s->spot[i - 1] = s->spot[j];
		s->spot[j] = swap;
	}
}

/* Read the window that holds row; it lies ahead of the cursor. */
static enum hps_status load_window(struct scan *s, uint64_t row, struct hps_err *err)
{
	uint64_t size = s->r->opts.shuffle_rows, window = row / size;
	enum hps_status st;

	drop_window(s);
	s->spot_row = window * size;
	st = skip(s, s->spot_row - s->row, err);
	while (st == HPS_OK && s->n_spots < size && (st = load(s, err)) == HPS_OK && !s->ended)
		st = window_add(s, err);
	permute(s, window);
	return st;
}

static enum hps_status fill_shuffled(struct scan *s, struct hps_job *j, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (uint64_t row = j->begin; st == HPS_OK && row < j->end;) {
		if (row - s->spot_row < s->n_spots) {
			struct spot *spot = &s->spot[row - s->spot_row];

			st = job_add(s, j, &spot->line, spot->chunk, err);
			row++;
		} else if (s->ended) {
			break;
		} else {
			st = load_window(s, row, err);
		}
	}
	return st;
}

/* --- the thread --- */

/* Fill a job that is empty; false: it is the last. */
static bool fill(struct scan *s, struct hps_job *j)
{
	struct hps_reader *r = s->r;

	s->serial++;
	if (s->pending != HPS_OK) {
		j->status = s->pending;
		j->err = s->err;
	} else if (!r->wants.next(r->wants.ctx, &j->begin, &j->end)) {
		j->last = true;
		j->at_end = s->ended;
	} else if (j->begin < s->end || j->end < j->begin) {
		j->status = hps_err_set(&j->err, HPS_USAGE, "ranges of rows overlap");
	} else {
		s->end = j->end;
		if (r->opts.shuffle_rows > 1)
			j->status = fill_shuffled(s, j, &j->err);
		else
			j->status = fill_straight(s, j, &j->err);
		if (j->status == HPS_OK)
			s->pending = load(s, &s->err);
		j->at_end = s->ended && j->end >= s->row;
		j->rows = s->row;
	}
	return !j->last && j->status == HPS_OK;
}

/* Wait for a free job; NULL when the reader stops. */
static struct hps_job *next_job(struct hps_reader *r)
{
	struct hps_job *j = NULL;

	pthread_mutex_lock(&r->lock);
	while (!r->stopping && r->filled - r->given == r->opts.ahead)
		pthread_cond_wait(&r->can_fill, &r->lock);
	if (!r->stopping)
		j = &r->job[r->filled % r->opts.ahead];
	pthread_mutex_unlock(&r->lock);
	return j;
}

static void submit(struct hps_reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->filled++;
	pthread_cond_signal(&r->can_parse);
	pthread_mutex_unlock(&r->lock);
}

void *hps_reader_scan(void *arg)
{
	struct hps_reader *r = arg;
	struct scan s = { .r = r, .limit = UINT64_MAX };
	struct hps_job *j;

	s.pending = skip(&s, r->opts.first_row, &s.err);
	s.row = 0;
	if (r->opts.end_row > 0)
		s.limit = r->opts.end_row - r->opts.first_row;
	while ((j = next_job(r)) != NULL) {
		bool more = fill(&s, j);

		submit(r);
		if (!more)
			break;
	}
	drop_window(&s);
	leave_chunk(&s);
	free(s.spot);
	free(s.held);
	return NULL;
}
