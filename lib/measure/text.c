/* What does a profile look like to a person? */
#include <stdio.h>
#include <string.h>
#include "measure/measure.h"

/* A time in the unit that suits it: "33.1 ms". */
static const char *seconds(double s, char out[16])
{
	if (s < 1e-6)
		snprintf(out, 16, "%.3g ns", s * 1e9);
	else if (s < 1e-3)
		snprintf(out, 16, "%.3g us", s * 1e6);
	else if (s < 1)
		snprintf(out, 16, "%.3g ms", s * 1e3);
	else
		snprintf(out, 16, "%.3g s", s);
	return out;
}

static const char *count(double v, char out[16])
{
	static const char unit[] = " kMGTP";
	int u = 0;

	while (v >= 1000 && u < 5) {
		v /= 1000;
		u++;
	}
	snprintf(out, 16, u ? "%.3g%c" : "%.3g", v, unit[u]);
	return out;
}

static enum hps_status type_table(const struct hps_profile *p, uint32_t t, struct hps_buf *b,
				  struct hps_err *err)
{
	const struct hps_layer_time *time = &p->time[(size_t)t * p->n_layers];
	double forward = 0, backward = 0, error;
	char f[16], w[16], o[16];
	enum hps_status st;

	st = hps_buf_printf(b, err, "\n%s%s, one unit, a batch of %g\n", p->type[t],
			    p->simulated[t] ? " (declared, not measured)" : "", p->batch);
	if (st == HPS_OK)
		st = hps_buf_printf(b, err, "%-16s %10s %10s %10s %6s %6s\n", "layer", "forward",
				    "backward", "both", "alpha", "error");
	for (uint32_t l = 0; l < p->n_layers && st == HPS_OK; l++) {
		const struct hps_layer_time *x = &time[l];
		double fs = x->forward.c0 + x->forward.c1 * p->batch;
		double bs = x->backward.c0 + x->backward.c1 * p->batch;

		forward += fs;
		backward += bs;
		error = x->forward.error > x->backward.error ? x->forward.error : x->backward.error;
		st = hps_buf_printf(b, err, "%-16s %10s %10s %10s %6.3f %5.1f%%\n", p->size[l].name,
				    seconds(fs, f), seconds(bs, w), seconds(x->oct, o), x->alpha,
				    100 * error);
	}
	if (st == HPS_OK)
		st = hps_buf_printf(b, err, "%-16s %10s %10s %10s\n", "all", seconds(forward, f),
				    seconds(backward, w), seconds(forward + backward, o));
	if (st == HPS_OK && forward + backward > 0)
		st = hps_buf_printf(b, err, "%s samples/s of layers alone\n",
				    count(p->batch / (forward + backward), f));
	return st;
}

enum hps_status hps_profile_text(const struct hps_profile *p, struct hps_buf *b,
				 struct hps_err *err)
{
	char x[16], y[16], z[16], w[16];
	enum hps_status st;

	st = hps_buf_printf(b, err, "%-16s %10s %10s %10s %10s %10s\n", "layer", "params", "output",
			    "rows", "flops", "cut after");
	for (uint32_t l = 0; l < p->n_layers && st == HPS_OK; l++) {
		const struct hps_layer_size *s = &p->size[l];

		st = hps_buf_printf(b, err, "%-16s %9sB %9sB %10.4g %10s %9sB\n", s->name,
				    count(s->param_bytes, x), count(s->output_bytes, y),
				    s->sparse_keys, count(s->flops, z),
				    count(p->cut_forward_bytes[l] + p->cut_backward_bytes[l], w));
	}
	if (st == HPS_OK)
		st = hps_buf_printf(b, err, "(bytes, rows and flops a sample; params in all)\n");
	for (uint32_t t = 0; t < p->n_types && st == HPS_OK; t++)
		st = type_table(p, t, b, err);
	if (st == HPS_OK)
		st = hps_buf_printf(b, err, "\nlink   %sB/s, %s\n", count(p->link.bandwidth, x),
				    seconds(p->link.latency, y));
	if (st == HPS_OK)
		st = hps_buf_printf(b, err, "shard  %s rows/s, %sB/s of dense parameters\n",
				    count(p->shard.rows_per_s, x), count(p->shard.bytes_per_s, y));
	if (st == HPS_OK)
		st = hps_buf_printf(b, err, "step   %s besides its samples\n",
				    seconds(p->step_overhead_s, x));
	if (st == HPS_OK && p->input_s_per_sample > 0)
		st = hps_buf_printf(b, err, "input  %s a sample\n",
				    seconds(p->input_s_per_sample, x));
	return st;
}
