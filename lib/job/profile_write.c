/* A profile as a document. */
#include "job/job_int.h"
#include "job/profile.h"

static struct hps_doc *write_size(const struct hps_profile *p, uint32_t l)
{
	const struct hps_layer_size *s = &p->size[l];
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(
		d, !d || hps_doc_put(d, "name", hps_doc_string(s->name)) ||
			   hps_doc_put(d, "param_bytes", hps_doc_double(s->param_bytes)) ||
			   hps_doc_put(d, "output_bytes", hps_doc_double(s->output_bytes)) ||
			   hps_doc_put(d, "sparse_bytes", hps_doc_double(s->sparse_bytes)) ||
			   hps_doc_put(d, "sparse_keys", hps_doc_double(s->sparse_keys)) ||
			   hps_doc_put(d, "flops", hps_doc_double(s->flops)) ||
			   hps_doc_put(d, "cut_forward_bytes",
				       hps_doc_double(p->cut_forward_bytes[l])) ||
			   hps_doc_put(d, "cut_backward_bytes",
				       hps_doc_double(p->cut_backward_bytes[l])));
}

static struct hps_doc *write_sizes(const struct hps_profile *p)
{
	struct hps_doc *d = hps_doc_array();
	int failed = !d;

	for (uint32_t l = 0; !failed && l < p->n_layers; l++)
		failed = hps_doc_add(d, write_size(p, l));
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_fit(const struct hps_fit *f)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(d, !d || hps_doc_put(d, "c0", hps_doc_double(f->c0)) ||
					 hps_doc_put(d, "c1", hps_doc_double(f->c1)) ||
					 hps_doc_put(d, "error", hps_doc_double(f->error)));
}

static struct hps_doc *write_time(const struct hps_profile *p, uint32_t l,
				  const struct hps_layer_time *t)
{
	struct hps_doc *d = hps_doc_object();
	int failed;

	failed = !d || hps_doc_put(d, "name", hps_doc_string(p->size[l].name));
	if (!failed && t->forward_s)
		failed = hps_doc_put(d, "forward_s", hps_doc_doubles(t->forward_s, p->n_batches));
	if (!failed && t->backward_s)
		failed = hps_doc_put(d, "backward_s", hps_doc_doubles(t->backward_s, p->n_batches));
	if (!failed)
		failed = hps_doc_put(d, "forward", write_fit(&t->forward)) ||
			 hps_doc_put(d, "backward", write_fit(&t->backward)) ||
			 hps_doc_put(d, "oct", hps_doc_double(t->oct)) ||
			 hps_doc_put(d, "alpha", hps_doc_double(t->alpha));
	if (!failed && t->n_scaling)
		failed = hps_doc_put(d, "scaling", hps_doc_doubles(t->scaling, t->n_scaling));
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_times(const struct hps_profile *p, uint32_t t)
{
	struct hps_doc *d = hps_doc_array();
	int failed = !d;

	for (uint32_t l = 0; !failed && l < p->n_layers; l++)
		failed = hps_doc_add(d, write_time(p, l, &p->time[(size_t)t * p->n_layers + l]));
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_types(const struct hps_profile *p)
{
	struct hps_doc *d = hps_doc_array();
	int failed = !d;

	for (uint32_t t = 0; !failed && t < p->n_types; t++) {
		struct hps_doc *one = hps_doc_object();

		one = hps_doc_finish(
			one, !one || hps_doc_put(one, "name", hps_doc_string(p->type[t])) ||
				     hps_doc_put(one, "simulated", hps_doc_bool(p->simulated[t])) ||
				     hps_doc_put(one, "layers", write_times(p, t)));
		failed = hps_doc_add(d, one);
	}
	return hps_doc_finish(d, failed);
}

static struct hps_doc *write_link(const struct hps_profile *p)
{
	struct hps_doc *d = hps_link_write(&p->link);

	return hps_doc_finish(d, !d || hps_doc_put(d, "measured", hps_doc_bool(p->link_measured)));
}

static struct hps_doc *write_shard(const struct hps_profile *p)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(
		d, !d || hps_doc_put(d, "rows_per_s", hps_doc_double(p->shard.rows_per_s)) ||
			   hps_doc_put(d, "bytes_per_s", hps_doc_double(p->shard.bytes_per_s)) ||
			   hps_doc_put(d, "measured", hps_doc_bool(p->shard.measured)));
}

struct hps_doc *hps_profile_write(const struct hps_profile *p)
{
	struct hps_doc *d = hps_doc_object();

	return hps_doc_finish(
		d, !d || hps_doc_put(d, "digest", hps_doc_digest(p->digest)) ||
			   (p->source && hps_doc_put(d, "source", hps_doc_string(p->source))) ||
			   hps_doc_put(d, "batch", hps_doc_double(p->batch)) ||
			   hps_doc_put(d, "batches", hps_doc_doubles(p->batches, p->n_batches)) ||
			   hps_doc_put(d, "layers", write_sizes(p)) ||
			   hps_doc_put(d, "types", write_types(p)) ||
			   hps_doc_put(d, "link", write_link(p)) ||
			   hps_doc_put(d, "shard", write_shard(p)) ||
			   hps_doc_put(d, "step_overhead_s", hps_doc_double(p->step_overhead_s)) ||
			   (p->input_s_per_sample > 0 &&
			    hps_doc_put(d, "input_s_per_sample",
					hps_doc_double(p->input_s_per_sample))));
}
