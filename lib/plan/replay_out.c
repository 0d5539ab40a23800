/* How is a replay told? As a document and as a table. */
#include <math.h>
#include <stdio.h>
#include "plan/replay.h"

const char *hps_policy_name(enum hps_policy p)
{
	static const char *const names[] = { "exact", "newton", "staratio", "stapsratio", "peak" };

	return names[p];
}

/* Samples that the load asks for. */
static double asked(const struct hps_load *l)
{
	double sum = 0;

	for (uint32_t i = 0; i < l->n; i++)
		sum += l->point[i].rate *
		       ((i + 1 < l->n ? l->point[i + 1].time_s : l->end_s) - l->point[i].time_s);
	return sum;
}

static double seconds(const struct hps_load *l)
{
	return l->end_s - l->point[0].time_s;
}

/* Takes o, as the put functions do. */
static struct hps_doc *done(struct hps_doc *o, int failed)
{
	if (!failed)
		return o;
	hps_doc_free(o);
	return NULL;
}

static struct hps_doc *types(const struct hps_replay *r, const struct hps_replay_row *row)
{
	struct hps_doc *o = hps_doc_object();
	int bad = !o;

	for (uint32_t t = 0; !bad && t < r->cost->n_types; t++)
		if (!isnan(row->type_use[t]))
			bad = hps_doc_put(o, r->cost->type[t].name,
					  hps_doc_double(row->type_use[t]));
	return done(o, bad);
}

static struct hps_doc *policy(const struct hps_replay *r, enum hps_policy p)
{
	const struct hps_replay_row *row = &r->row[p];
	struct hps_doc *o = hps_doc_object();
	int bad = !o || hps_doc_put(o, "policy", hps_doc_string(hps_policy_name(p)));

	if (!row->done)
		return done(o, bad || hps_doc_put(o, "not_done", hps_doc_string(row->why)));
	bad = bad || hps_doc_put(o, "dollars", hps_doc_double(row->dollars)) ||
	      hps_doc_put(o, "change_dollars", hps_doc_double(row->change_dollars)) ||
	      hps_doc_put(o, "changes", hps_doc_int(row->changes)) ||
	      hps_doc_put(o, "utilisation", hps_doc_double(row->utilisation)) ||
	      hps_doc_put(o, "types", types(r, row)) ||
	      hps_doc_put(o, "ps", hps_doc_double(row->ps_use)) ||
	      hps_doc_put(o, "samples", hps_doc_double(row->samples)) ||
	      hps_doc_put(o, "unmet_s", hps_doc_double(row->unmet_s)) ||
	      hps_doc_put(o, "unmet_samples", hps_doc_double(row->unmet_samples));
	if (!bad && row->unmet_s > 0)
		bad = hps_doc_put(o, "unmet_from_s", hps_doc_double(row->unmet_from_s)) ||
		      hps_doc_put(o, "best_samples_per_s", hps_doc_double(row->best_rate));
	if (!bad && p != HPS_POLICY_EXACT)
		bad = hps_doc_put(o, "utilisation_over",
				  hps_doc_double(hps_replay_utilisation_over(r, p))) ||
		      hps_doc_put(o, "cost_over", hps_doc_double(hps_replay_cost_over(r, p)));
	return done(o, bad);
}

static struct hps_doc *load(const struct hps_load *l)
{
	struct hps_doc *o = hps_doc_object();

	return done(o,
		    !o || hps_doc_put(o, "points", hps_doc_int(l->n)) ||
			    hps_doc_put(o, "seconds", hps_doc_double(seconds(l))) ||
			    hps_doc_put(o, "samples", hps_doc_double(asked(l))) ||
			    hps_doc_put(o, "mean_samples_per_s",
					hps_doc_double(asked(l) / seconds(l))) ||
			    hps_doc_put(o, "peak_samples_per_s", hps_doc_double(hps_load_peak(l))));
}

static struct hps_doc *settings(const struct hps_watch_options *w)
{
	struct hps_doc *o = hps_doc_object();

	return done(
		o, !o || hps_doc_put(o, "headroom", hps_doc_double(w->headroom)) ||
			   hps_doc_put(o, "margin", hps_doc_double(w->margin)) ||
			   hps_doc_put(o, "change_dollars", hps_doc_double(w->change_dollars)) ||
			   hps_doc_put(o, "change_s", hps_doc_double(w->change_s)) ||
			   hps_doc_put(o, "cpus_per_gpu", hps_doc_double(w->ratios.cpus_per_gpu)) ||
			   hps_doc_put(o, "ps_per_unit", hps_doc_double(w->ratios.ps_per_unit)));
}

struct hps_doc *hps_replay_doc(const struct hps_replay *r)
{
	struct hps_doc *o = hps_doc_object(), *a = hps_doc_array();
	int bad = !o || !a;

	for (int i = 0; !bad && i < HPS_POLICIES; i++)
		bad = hps_doc_add(a, policy(r, (enum hps_policy)i));
	if (bad)
		hps_doc_free(a);
	return done(o, bad || hps_doc_put(o, "load", load(r->load)) ||
			       hps_doc_put(o, "settings", settings(&r->opt)) ||
			       hps_doc_put(o, "policies", a));
}

static enum hps_status text_row(const struct hps_replay *r, enum hps_policy p, struct hps_buf *b,
				struct hps_err *err)
{
	const struct hps_replay_row *row = &r->row[p];

	if (!row->done)
		return hps_buf_printf(b, err, "%-12s%s\n", hps_policy_name(p), row->why);
	return hps_buf_printf(b, err, "%-12s%12.6g%12.4g%9u%12.1f%%%12.3f%12.3f%12.6g\n",
			      hps_policy_name(p), row->dollars, row->change_dollars, row->changes,
			      100 * row->utilisation, hps_replay_utilisation_over(r, p),
			      hps_replay_cost_over(r, p), row->unmet_s);
}

enum hps_status hps_replay_text(const struct hps_replay *r, struct hps_buf *b, struct hps_err *err)
{
	enum hps_status rc;

	rc = hps_buf_printf(b, err,
			    "load         %u rates over %.6g hours, %.6g samples/s on average, "
			    "%.6g at the peak\n"
			    "changing     %.6g dollars and %.6g s, margin %.4g, headroom %.4g\n"
			    "ratios       %.6g CPU units a GPU unit, %.6g shards a unit\n\n",
			    r->load->n, seconds(r->load) / 3600, asked(r->load) / seconds(r->load),
			    hps_load_peak(r->load), r->opt.change_dollars, r->opt.change_s,
			    r->opt.margin, r->opt.headroom, r->opt.ratios.cpus_per_gpu,
			    r->opt.ratios.ps_per_unit);
	if (!rc)
		rc = hps_buf_printf(b, err, "%-12s%12s%12s%9s%13s%12s%12s%12s\n", "policy",
				    "dollars", "changing", "changes", "utilised", "exact/this",
				    "cost/exact", "unmet_s");
	for (int i = 0; !rc && i < HPS_POLICIES; i++)
		rc = text_row(r, (enum hps_policy)i, b, err);
	for (int i = 0; !rc && i < HPS_POLICIES; i++)
		if (r->row[i].done && r->row[i].unmet_s > 0)
			rc = hps_buf_printf(b, err,
					    "%s: from %.17g s on a target is out of reach; the "
					    "best there is are %.6g samples/s\n",
					    hps_policy_name((enum hps_policy)i),
					    r->row[i].unmet_from_s, r->row[i].best_rate);
	return rc;
}
