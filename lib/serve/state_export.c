/* What a save holds, for other programs: dense tensors as .npy files, figures as a document. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "serve/npy.h"
#include "serve/state_file_int.h"

struct table_figures {
	uint64_t rows, freq_sum, freq_max, floats;
	double square_sum; /* of embedding elements */
};

struct exporting {
	const struct hps_state *state;
	struct hps_model model;
	bool has_model;
	struct hps_graph graph;
	float *flat; /* n_floats */
	uint64_t updates;
	struct table_figures *table;
};

static enum hps_status read_model(struct exporting *x, const struct state_reader *r,
				  struct hps_err *err)
{
	struct hps_doc *d = NULL;
	struct hps_at at;
	enum hps_status st;

	if (x->has_model)
		return HPS_OK;
	st = hps_doc_parse(r->body, r->block.bytes, r->path, &d, err);
	if (st != HPS_OK)
		return st;
	at = hps_at_root(d, r->path);
	st = hps_model_read(&at, &x->model, err);
	hps_doc_free(d);
	if (st != HPS_OK)
		return st;
	x->has_model = true;
	if (x->model.digest != r->head.digest || x->model.n_tables != r->head.n_tables)
		return hps_state_reader_bad(r, err, "the model is not the one that the head is of");
	st = hps_graph_build(&x->model, &x->graph, err);
	if (st != HPS_OK)
		return st;
	if (x->graph.n_floats != r->head.n_floats)
		return hps_state_reader_bad(r, err,
					    "expected %llu dense parameters, the head says %llu",
					    (unsigned long long)x->graph.n_floats,
					    (unsigned long long)r->head.n_floats);
	x->flat = hps_calloc(x->graph.n_floats, sizeof(*x->flat), err);
	x->table = hps_calloc(x->model.n_tables, sizeof(*x->table), err);
	return x->flat && x->table ? HPS_OK : HPS_MEMORY;
}

static enum hps_status take_rows(struct exporting *x, const struct state_reader *r,
				 struct hps_err *err)
{
	const struct state_block *b = &r->block;
	struct table_figures *f = &x->table[b->table];
	size_t stride = STATE_ROW_HEAD + f->floats * sizeof(float);

	if (b->a > b->bytes / stride || b->a * stride != b->bytes)
		return hps_state_reader_bad(r, err, "expected rows of %zu bytes", stride);
	f->rows += b->a;
	for (uint64_t i = 0; i < b->a; i++) {
		const char *p = r->body + i * stride;
		uint32_t freq;

		memcpy(&freq, p + sizeof(uint64_t), sizeof(freq));
		f->freq_sum += freq;
		f->freq_max = freq > f->freq_max ? freq : f->freq_max;
		for (uint32_t j = 0; j < x->model.table[b->table].dim; j++) {
			float v;

			memcpy(&v, p + STATE_ROW_HEAD + j * sizeof(v), sizeof(v));
			f->square_sum += (double)v * v;
		}
	}
	return HPS_OK;
}

static enum hps_status take_block(struct exporting *x, const struct state_reader *r,
				  struct hps_err *err)
{
	const struct state_block *b = &r->block;

	if (b->kind == STATE_MODEL)
		return read_model(x, r, err);
	if (!x->has_model || (b->kind != STATE_DENSE && b->table >= x->model.n_tables))
		return hps_state_reader_bad(r, err, "not the block expected here");
	if (b->kind == STATE_TABLE) {
		if (b->b < x->model.table[b->table].dim || b->b > 3ull * HPS_MAX_COLS)
			return hps_state_reader_bad(r, err, "rows of %llu floats",
						    (unsigned long long)b->b);
		x->table[b->table].floats = b->b;
		return HPS_OK;
	}
	if (b->kind == STATE_ROWS)
		return x->table[b->table].floats
			       ? take_rows(x, r, err)
			       : hps_state_reader_bad(r, err, "not the block expected here");
	if (b->b > x->graph.n_floats || b->a > x->graph.n_floats - b->b ||
	    b->bytes < b->b * sizeof(float))
		return hps_state_reader_bad(r, err, "parameters do not fit");
	memcpy(x->flat + b->a, r->body, b->b * sizeof(float));
	x->updates = b->c > x->updates ? b->c : x->updates;
	return HPS_OK;
}

static enum hps_status read_file(struct exporting *x, const char *path, struct hps_err *err)
{
	struct state_reader r;
	enum hps_status st = hps_state_reader_open(&r, path, err);
	bool end = false;

	if (st != HPS_OK)
		return st;
	if (r.head.save != x->state->save || r.head.digest != x->state->digest)
		st = hps_state_reader_bad(&r, err, "the head is of another save");
	while (st == HPS_OK && !end) {
		st = hps_state_reader_next(&r, &end, err);
		if (st == HPS_OK && !end)
			st = take_block(x, &r, err);
	}
	hps_state_reader_close(&r);
	return st;
}

/* --- writing --- */

static enum hps_status write_tensor(const struct exporting *x, const struct hps_param *p,
				    const char *dir, struct hps_doc *list, struct hps_err *err)
{
	const char *layer = x->model.layer[p->layer].name;
	bool vector = p->suffix[0] == 'b';
	struct hps_doc *d = hps_doc_object(), *shape = hps_doc_array();
	char *name = NULL, *path = NULL;
	enum hps_status st = HPS_MEMORY;

	if (asprintf(&name, "%s.%s", layer, p->suffix) < 0)
		name = NULL;
	if (name && asprintf(&path, "%s/%s.npy", dir, name) < 0)
		path = NULL;
	if (!d || !shape || !path || (!vector && hps_doc_add(shape, hps_doc_int(p->rows))) ||
	    hps_doc_add(shape, hps_doc_int(p->cols)) ||
	    hps_doc_put(d, "name", hps_doc_string(name))) {
		hps_err_set(err, HPS_MEMORY, "out of memory");
		goto out;
	}
	if (hps_doc_put(d, "shape", shape) || hps_doc_put(d, "file", hps_doc_string(path))) {
		shape = NULL;
		hps_err_set(err, HPS_MEMORY, "out of memory");
		goto out;
	}
	shape = NULL;
	st = hps_npy_write(path, x->flat + p->offset, vector ? 0 : p->rows, p->cols, err);
	if (st == HPS_OK) {
		if (hps_doc_add(list, d))
			st = hps_err_set(err, HPS_MEMORY, "out of memory");
		d = NULL;
	}
out:
	hps_doc_free(d);
	hps_doc_free(shape);
	free(name);
	free(path);
	return st;
}

static struct hps_doc *describe_table(const struct hps_table_spec *spec,
				      const struct table_figures *f)
{
	struct hps_doc *d = hps_doc_object();
	double rows = (double)f->rows, elements = rows * spec->dim;

	if (!d || hps_doc_put(d, "name", hps_doc_string(spec->name)) ||
	    hps_doc_put(d, "dim", hps_doc_int(spec->dim)) ||
	    hps_doc_put(d, "optimizer", hps_doc_string(hps_optim_name(spec->optimizer.kind))) ||
	    hps_doc_put(d, "rows", hps_doc_u64(f->rows)) ||
	    hps_doc_put(d, "row_bytes", hps_doc_u64(f->floats * sizeof(float) + STATE_ROW_HEAD)) ||
	    hps_doc_put(d, "frequency_mean",
			f->rows ? hps_doc_double((double)f->freq_sum / rows) : hps_doc_null()) ||
	    hps_doc_put(d, "frequency_max", hps_doc_u64(f->freq_max)) ||
	    hps_doc_put(d, "mean_square",
			f->rows ? hps_doc_double(f->square_sum / elements) : hps_doc_null())) {
		hps_doc_free(d);
		return NULL;
	}
	return d;
}

static struct hps_doc *describe(const struct exporting *x)
{
	struct hps_doc *d = hps_doc_object(), *tables = hps_doc_array();
	char digest[HPS_DIGEST_LEN];
	int bad = !d || !tables;

	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)x->state->digest);
	for (uint32_t t = 0; !bad && t < x->model.n_tables; t++)
		bad = hps_doc_add(tables, describe_table(&x->model.table[t], &x->table[t]));
	if (bad || hps_doc_put(d, "model", hps_doc_string(x->model.name)) ||
	    hps_doc_put(d, "digest", hps_doc_string(digest)) ||
	    hps_doc_put(d, "step", hps_doc_u64(x->state->step)) ||
	    hps_doc_put(d, "epochs", hps_doc_u64(x->state->epochs)) ||
	    hps_doc_put(d, "shards", hps_doc_int(x->state->n_files)) ||
	    hps_doc_put(d, "dense_parameters", hps_doc_u64(x->graph.n_floats)) ||
	    hps_doc_put(d, "dense_updates", hps_doc_u64(x->updates))) {
		hps_doc_free(d);
		hps_doc_free(tables);
		return NULL;
	}
	if (hps_doc_put(d, "tables", tables)) {
		hps_doc_free(d);
		return NULL;
	}
	return d;
}

static enum hps_status write_all(struct exporting *x, const char *dir, struct hps_doc **out,
				 struct hps_err *err)
{
	enum hps_status st = hps_mkdirs(dir, 0777, err);
	struct hps_doc *list = hps_doc_array(), *d;

	for (uint32_t i = 0; list && i < x->graph.n_params && st == HPS_OK; i++)
		st = write_tensor(x, &x->graph.param[i], dir, list, err);
	if (st != HPS_OK) {
		hps_doc_free(list);
		return st;
	}
	d = describe(x);
	if (!list || !d || hps_doc_put(d, "tensors", list)) {
		if (!d)
			hps_doc_free(list);
		hps_doc_free(d);
		return hps_err_set(err, HPS_MEMORY, "out of memory");
	}
	*out = d;
	return HPS_OK;
}

enum hps_status hps_state_export(const struct hps_state *s, const struct hps_job *job,
				 const char *dir, struct hps_doc **out, struct hps_err *err)
{
	struct exporting x = { .state = s };
	enum hps_status st = HPS_OK;

	if (job && job->model.digest != s->digest) {
		st = hps_err_set(err, HPS_BAD_INPUT,
				 "of another model: digest %016llx, the job's has %016llx",
				 (unsigned long long)s->digest,
				 (unsigned long long)job->model.digest);
		hps_err_at(err, "%s", s->path[0]);
	}
	for (uint32_t i = 0; i < s->n_files && st == HPS_OK; i++)
		st = read_file(&x, s->path[i], err);
	if (st == HPS_OK && !x.has_model)
		st = hps_err_set(err, HPS_BAD_INPUT, "%s: holds no model", s->path[0]);
	if (st == HPS_OK)
		st = write_all(&x, dir, out, err);
	if (x.has_model) {
		hps_graph_release(&x.graph);
		hps_model_release(&x.model);
	}
	free(x.flat);
	free(x.table);
	return st;
}
