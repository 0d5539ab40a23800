/* What does the simulator say of a plan, and how far is that from the formula? */
#include "plan/simulate.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/opt.h"

static const char *const mode_name[] = { "bsp", "ssp", "asp" };

/* --- words --- */

static const char *value_of(const char *word, const char *name)
{
	size_t n = strlen(name);

	return strncmp(word, name, n) ? NULL : word + n;
}

static enum hps_status parse_stragglers(const char *s, struct hps_sim_options *o,
					struct hps_err *err)
{
	char share[64];
	const char *star = strchr(s, '*');
	size_t n = star ? (size_t)(star - s) : 0;
	enum hps_status rc;

	if (!star || n >= sizeof(share))
		return hps_err_set(err, HPS_USAGE, "expected SHARE*FACTOR, got \"%s\"", s);
	memcpy(share, s, n);
	share[n] = '\0';
	rc = hps_parse_double(share, 0, 1, &o->straggler_share, err);
	return rc ? rc : hps_parse_double(star + 1, 1e-6, 1e6, &o->straggler_factor, err);
}

static enum hps_status parse_word(const char *word, struct hps_sim_options *o, struct hps_err *err)
{
	const char *v;
	enum hps_status rc;
	int64_t n = 0;

	for (int m = 0; m < 3; m++) {
		if (m != HPS_SIM_SSP && !strcmp(word, mode_name[m])) {
			o->mode = (enum hps_sim_mode)m;
			return HPS_OK;
		}
	}
	if (!strcmp(word, "duplex")) {
		o->duplex = true;
		return HPS_OK;
	}
	if ((v = value_of(word, "ssp:"))) {
		rc = hps_parse_int(v, 0, UINT32_MAX, &n, err);
		o->mode = HPS_SIM_SSP;
		o->bound = (uint32_t)n;
		return rc;
	}
	if ((v = value_of(word, "steps="))) {
		rc = hps_parse_int(v, 1, HPS_SIM_MOST_STEPS, &n, err);
		o->steps = (uint32_t)n;
		return rc;
	}
	if ((v = value_of(word, "jitter=")))
		return hps_parse_double(v, 0, HPS_SIM_MOST_JITTER, &o->jitter, err);
	if ((v = value_of(word, "stragglers=")))
		return parse_stragglers(v, o, err);
	hps_err_set(err, HPS_USAGE, "unknown word");
	hps_err_hint(err,
		     "bsp, asp, ssp:BOUND, jitter=CV, stragglers=SHARE*FACTOR, steps=N, duplex");
	return HPS_USAGE;
}

enum hps_status hps_simulation_words(const struct hps_problem *p, const char *words,
				     struct hps_sim_options *o, struct hps_err *err)
{
	*o = hps_sim_defaults(p->cost);
	o->seed = p->seed;
	for (const char *end; *words; words = *end ? end + 1 : end) {
		char word[128];
		size_t n;
		enum hps_status rc;

		end = strchrnul(words, ',');
		n = (size_t)(end - words);
		snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1),
			 words);
		rc = n < sizeof(word) ? parse_word(word, o, err)
				      : hps_err_set(err, HPS_USAGE, "a word of %zu bytes", n);
		if (rc) {
			if (err)
				err->status = HPS_USAGE;
			hps_err_at(err, "simulate: \"%s\"", word);
			return HPS_USAGE;
		}
	}
	return HPS_OK;
}

/* --- the run --- */

static bool stop(void *arg)
{
	const struct hps_problem *p = arg;

	return p->hooks.stop && p->hooks.stop(p->hooks.arg);
}

enum hps_status hps_simulate(const struct hps_problem *p, const struct hps_solution *s,
			     const struct hps_sim_options *o, struct hps_simulation *out,
			     struct hps_err *err)
{
	struct hps_schedule sched = { s->stage, s->n_stages, s->trial.shards };
	struct hps_sim_options run = *o;
	enum hps_status rc;

	memset(out, 0, sizeof(*out));
	out->options = *o;
	out->n_stages = s->n_stages;
	out->stage = hps_calloc(s->n_stages, sizeof(*out->stage), err);
	if (!out->stage)
		return HPS_MEMORY;
	run.stop = stop;
	run.stop_arg = (void *)(uintptr_t)p;
	rc = hps_sim_run(p->cost, &sched, &run, &out->result, out->stage, err);
	if (rc)
		hps_simulation_release(out);
	return rc;
}

void hps_simulation_release(struct hps_simulation *x)
{
	free(x->stage);
	x->stage = NULL;
}

/* --- reports --- */

/* Simulated over predicted, minus 1. */
static double difference(const struct hps_solution *s, const struct hps_simulation *x)
{
	return x->result.throughput / s->trial.throughput - 1;
}

static enum hps_status heading(const struct hps_solution *s, const struct hps_simulation *x,
			       struct hps_buf *b, struct hps_err *err)
{
	const struct hps_sim_options *o = &x->options;
	const struct hps_sim_result *r = &x->result;
	char bound[24] = "", noise[96] = "";

	if (o->mode == HPS_SIM_SSP)
		snprintf(bound, sizeof(bound), ":%u", o->bound);
	if (o->jitter > 0)
		snprintf(noise, sizeof(noise), ", jitter %g", o->jitter);
	if (o->straggler_share > 0)
		snprintf(noise + strlen(noise), sizeof(noise) - strlen(noise),
			 ", %g %% of units %g times as slow", 100 * o->straggler_share,
			 o->straggler_factor);
	return hps_buf_printf(b, err,
			      "simulated    %.6g samples/s, %+.3g %% to the prediction; %s%s, %u "
			      "steps%s%s\n"
			      "step         %.4g s, from %.4g to %.4g\n",
			      r->throughput, 100 * difference(s, x), mode_name[o->mode], bound,
			      r->steps, o->duplex ? ", duplex links" : "", noise, r->step_s,
			      r->step_least_s, r->step_most_s);
}

enum hps_status hps_simulation_text(const struct hps_problem *p, const struct hps_solution *s,
				    const struct hps_simulation *x, struct hps_buf *b,
				    struct hps_err *err)
{
	const struct hps_sim_result *r = &x->result;
	enum hps_status rc = heading(s, x, b, err);

	if (!rc && s->trial.shards)
		rc = hps_buf_printf(b, err, "shards       %.3g %% busy, their links %.3g %%\n",
				    100 * r->shard_use, 100 * r->shard_link_use);
	if (!rc && r->cores_use > 0)
		rc = hps_buf_printf(b, err, "cores        %.3g %% busy\n", 100 * r->cores_use);
	if (!rc)
		rc = hps_buf_printf(b, err, "\n%-6s%-12s%6s", "stage", "type", "units");
	for (int w = 0; !rc && w < HPS_SIM_WHERES; w++)
		rc = hps_buf_printf(b, err, "%9s", hps_sim_where_name((enum hps_sim_where)w));
	if (!rc)
		rc = hps_buf_printf(b, err, "%10s\n", "link_busy");
	for (uint32_t i = 0; !rc && i < x->n_stages; i++) {
		rc = hps_buf_printf(b, err, "%-6u%-12s%6u", i, p->cost->type[s->stage[i].type].name,
				    s->stage[i].units);
		for (int w = 0; !rc && w < HPS_SIM_WHERES; w++)
			rc = hps_buf_printf(b, err, "%8.1f%%", 100 * x->stage[i].share[w]);
		if (!rc)
			rc = hps_buf_printf(b, err, "%9.1f%%\n", 100 * x->stage[i].link_use);
	}
	return rc;
}

static struct hps_doc *stage_doc(const struct hps_problem *p, const struct hps_span *sp,
				 const struct hps_sim_stage *x)
{
	struct hps_doc *d = hps_doc_object(), *share = hps_doc_object();
	int bad = !d || !share;

	for (int w = 0; !bad && w < HPS_SIM_WHERES; w++)
		bad = hps_doc_put(share, hps_sim_where_name((enum hps_sim_where)w),
				  hps_doc_double(x->share[w]));
	if (bad) {
		hps_doc_free(share);
		share = NULL;
	}
	if (!d)
		return NULL;
	if (hps_doc_put(d, "type", hps_doc_string(p->cost->type[sp->type].name)) ||
	    hps_doc_put(d, "units", hps_doc_int(sp->units)) || hps_doc_put(d, "time", share) ||
	    hps_doc_put(d, "busiest", hps_doc_double(x->busiest)) ||
	    hps_doc_put(d, "idlest", hps_doc_double(x->idlest)) ||
	    hps_doc_put(d, "link_use", hps_doc_double(x->link_use)) ||
	    hps_doc_put(d, "link_use_most", hps_doc_double(x->link_use_most))) {
		hps_doc_free(d);
		return NULL;
	}
	return d;
}

static int put_options(struct hps_doc *d, const struct hps_sim_options *o)
{
	return hps_doc_put(d, "sync", hps_doc_string(mode_name[o->mode])) ||
	       (o->mode == HPS_SIM_SSP && hps_doc_put(d, "bound", hps_doc_int(o->bound))) ||
	       hps_doc_put(d, "jitter", hps_doc_double(o->jitter)) ||
	       hps_doc_put(d, "straggler_share", hps_doc_double(o->straggler_share)) ||
	       hps_doc_put(d, "straggler_factor", hps_doc_double(o->straggler_factor)) ||
	       hps_doc_put(d, "duplex", hps_doc_bool(o->duplex)) ||
	       hps_doc_put(d, "seed", hps_doc_u64(o->seed));
}

struct hps_doc *hps_simulation_doc(const struct hps_problem *p, const struct hps_solution *s,
				   const struct hps_simulation *x)
{
	const struct hps_sim_result *r = &x->result;
	struct hps_doc *d = hps_doc_object(), *list = hps_doc_array();
	int bad = !d || !list;

	for (uint32_t i = 0; !bad && i < x->n_stages; i++)
		bad = hps_doc_add(list, stage_doc(p, &s->stage[i], &x->stage[i]));
	bad = bad || put_options(d, &x->options) ||
	      hps_doc_put(d, "steps", hps_doc_int(r->steps)) ||
	      hps_doc_put(d, "warm_steps", hps_doc_int(r->warm)) ||
	      hps_doc_put(d, "throughput_samples_per_s", hps_doc_double(r->throughput)) ||
	      hps_doc_put(d, "over_prediction", hps_doc_double(difference(s, x))) ||
	      hps_doc_put(d, "step_s", hps_doc_double(r->step_s)) ||
	      hps_doc_put(d, "step_least_s", hps_doc_double(r->step_least_s)) ||
	      hps_doc_put(d, "step_most_s", hps_doc_double(r->step_most_s)) ||
	      hps_doc_put(d, "shard_use", hps_doc_double(r->shard_use)) ||
	      hps_doc_put(d, "shard_link_use", hps_doc_double(r->shard_link_use)) ||
	      hps_doc_put(d, "cores_use", hps_doc_double(r->cores_use)) ||
	      hps_doc_put(d, "events", hps_doc_u64(r->events));
	if (!bad)
		bad = hps_doc_put(d, "stages", list);
	else
		hps_doc_free(list);
	if (bad) {
		hps_doc_free(d);
		return NULL;
	}
	return d;
}

/* --- the reward --- */

enum hps_status hps_simulate_reward(void *arg, const struct hps_cost *c,
				    const struct hps_schedule *s, double *out, struct hps_err *err)
{
	struct hps_sim_options o = *(const struct hps_sim_options *)arg;

	o.event = NULL;
	o.stop = NULL;
	o.most_events = HPS_SIMULATE_MOST;
	return hps_sim_throughput(c, s, &o, out, err);
}
