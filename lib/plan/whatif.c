/* Which number of the cluster does an edit mean, and what follows from it? */
#include "plan/whatif.h"
#include <stdio.h>
#include <string.h>
#include "base/buf.h"
#include "base/opt.h"
#include "plan/compare.h"

enum field { PRICE, LIMIT, MEMORY, SPEED, BANDWIDTH, LATENCY, FIELDS };

struct range {
	const char *name;
	double min, max;
};
/* As the cluster's reader takes them. */
static const struct range ranges[FIELDS] = {
	[PRICE] = { "price", 0, 1e9 },		[LIMIT] = { "limit", 1, HPS_MAX_UNITS },
	[MEMORY] = { "memory", 0, 1e18 },	[SPEED] = { "speed", 1e-9, 1e9 },
	[BANDWIDTH] = { "bandwidth", 1, 1e18 }, [LATENCY] = { "latency", 0, 1e6 },
};
static const unsigned of_type =
	1 << PRICE | 1 << LIMIT | 1 << MEMORY | 1 << SPEED | 1 << BANDWIDTH | 1 << LATENCY;
static const unsigned of_network = 1 << BANDWIDTH | 1 << LATENCY;
static const unsigned of_ps = 1 << PRICE;

enum { NETWORK = -1, PS = -2 };

struct edit {
	int where; /* a type, or one of the above */
	enum field field;
	double value;
};

static unsigned fields_of(int where)
{
	return where >= 0 ? of_type : where == NETWORK ? of_network : of_ps;
}

static enum hps_status list_names(const struct hps_cluster *c, const char *name,
				  struct hps_err *err)
{
	struct hps_buf b = { .max = 300 };

	for (uint32_t t = 0; t < c->n_types; t++)
		if (hps_buf_printf(&b, NULL, "%s, ", c->type[t].name))
			break;
	hps_err_set(err, HPS_USAGE, "what-if: the cluster has no \"%s\"; it has %snetwork, ps",
		    name, b.data ? b.data : "");
	hps_buf_release(&b);
	return HPS_USAGE;
}

static enum hps_status list_fields(int where, const char *name, const char *field,
				   struct hps_err *err)
{
	char list[128] = "";
	size_t len = 0;

	for (int f = 0; f < FIELDS; f++)
		if (fields_of(where) >> f & 1)
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
						len ? ", " : "", ranges[f].name);
	return hps_err_set(err, HPS_USAGE, "what-if: \"%s\" has no \"%s\"; it has %s", name, field,
			   list);
}

/* "NAME.FIELD=NUMBER"; a type's name may have dots. */
static enum hps_status parse(const struct hps_cluster *c, char *text, struct edit *e,
			     struct hps_err *err)
{
	char *equals = strrchr(text, '='), *dot;
	struct hps_err why = { 0 };
	int64_t units;
	int f = 0;

	if (equals)
		*equals = '\0';
	dot = strrchr(text, '.');
	if (!equals || !dot || dot == text)
		return hps_err_set(err, HPS_USAGE,
				   "what-if: expected NAME.FIELD=NUMBER, got \"%s%s%s\"", text,
				   equals ? "=" : "", equals ? equals + 1 : "");
	*dot = '\0';
	e->where = !strcmp(text, "network") ? NETWORK
		   : !strcmp(text, "ps")    ? PS
					    : hps_cluster_type(c, text);
	if (e->where == -1 && strcmp(text, "network"))
		return list_names(c, text, err);
	while (f < FIELDS && (strcmp(dot + 1, ranges[f].name) || !(fields_of(e->where) >> f & 1)))
		f++;
	if (f == FIELDS)
		return list_fields(e->where, text, dot + 1, err);
	e->field = (enum field)f;
	if (e->field == LIMIT) {
		if (hps_parse_int(equals + 1, 1, HPS_MAX_UNITS, &units, &why))
			goto bad;
		e->value = (double)units;
	} else if (hps_parse_double(equals + 1, ranges[f].min, ranges[f].max, &e->value, &why)) {
		goto bad;
	}
	return HPS_OK;
bad:
	return hps_err_set(err, HPS_USAGE, "what-if: %s.%s: %s", text, dot + 1, why.msg);
}

/* Layers of a type take 1 / times as long. */
static void speed_up(struct hps_profile *p, uint32_t t, double times)
{
	for (uint32_t l = 0; l < p->n_layers; l++) {
		struct hps_layer_time *x = &p->time[(size_t)t * p->n_layers + l];

		x->forward.c0 /= times;
		x->forward.c1 /= times;
		x->backward.c0 /= times;
		x->backward.c1 /= times;
		x->oct /= times;
		for (uint32_t i = 0; x->forward_s && i < p->n_batches; i++)
			x->forward_s[i] /= times;
		for (uint32_t i = 0; x->backward_s && i < p->n_batches; i++)
			x->backward_s[i] /= times;
	}
	p->simulated[t] = true;
}

static void set_speed(struct hps_job *job, struct hps_type *t, double value)
{
	int at = job->has_profile ? hps_profile_type(&job->profile, t->name) : -1;
	double times = t->like ? value / t->speed : value;

	if (at >= 0)
		speed_up(&job->profile, (uint32_t)at, times);
	if (!t->like)
		return;
	t->speed = value;
	for (size_t i = 0; i < sizeof(t->op_speed) / sizeof(*t->op_speed); i++)
		t->op_speed[i] *= times;
}

static void apply(struct hps_job *job, const struct edit *e)
{
	struct hps_cluster *c = &job->cluster;
	struct hps_type *t = e->where >= 0 ? &c->type[e->where] : NULL;
	struct hps_link *link = t ? &t->link : &c->network;

	switch (e->field) {
	case PRICE:
		*(t ? &t->price : &c->ps_price) = e->value;
		break;
	case LIMIT:
		t->limit = (uint32_t)e->value;
		break;
	case MEMORY:
		t->memory = e->value;
		break;
	case SPEED:
		set_speed(job, t, e->value);
		break;
	case BANDWIDTH:
		link->bandwidth = e->value;
		break;
	case LATENCY:
		link->latency = e->value;
		break;
	case FIELDS:
		break;
	}
}

enum { MOST_EDITS = 64 };

enum hps_status hps_what_if(struct hps_job *job, const char *edits, struct hps_err *err)
{
	struct edit edit[MOST_EDITS] = { 0 };
	size_t n = 0;

	for (const char *s = edits, *end;; s = end + 1) {
		char text[512];
		enum hps_status rc;

		end = strchrnul(s, ',');
		if (n == MOST_EDITS || (size_t)(end - s) >= sizeof(text))
			return hps_err_set(err, HPS_USAGE, "what-if: at most %d edits of %zu bytes",
					   MOST_EDITS, sizeof(text) - 1);
		memcpy(text, s, (size_t)(end - s));
		text[end - s] = '\0';
		rc = parse(&job->cluster, text, &edit[n++], err);
		if (rc)
			return rc;
		if (!*end)
			break;
	}
	for (size_t i = 0; i < n; i++)
		apply(job, &edit[i]);
	if (hps_doc_put(job->doc, "cluster", hps_cluster_write(&job->cluster)) ||
	    (job->has_profile &&
	     hps_doc_put(job->doc, "profile", hps_profile_write(&job->profile))))
		return hps_err_set(err, HPS_MEMORY, "no memory for the job document");
	return HPS_OK;
}

enum hps_status hps_what_before(const struct hps_job *job, const struct hps_plan_words *words,
				const struct hps_method *method, const char *arg,
				const struct hps_plan_hooks *hooks, struct hps_before *out,
				struct hps_err *err)
{
	struct hps_solution s = { 0 };
	struct hps_cost cost = { 0 };
	struct hps_problem p;
	struct hps_err why = { 0 };
	enum hps_status rc = hps_problem_setup(job, words, false, &cost, &p, err);

	memset(out, 0, sizeof(*out));
	if (rc)
		return rc;
	p.hooks = *hooks;
	rc = method->solve(&p, arg, &s, &why);
	out->trial = s.trial;
	out->found = !rc;
	if (!rc)
		rc = hps_stages_text(&cost, &s, &out->stages, err);
	else if (rc != HPS_NO && err)
		*err = why;
	hps_solution_release(&s);
	hps_cost_release(&cost);
	return rc == HPS_NO ? HPS_OK : rc;
}

void hps_before_release(struct hps_before *b)
{
	hps_buf_release(&b->stages);
}

enum hps_status hps_what_changed(const struct hps_problem *p, const struct hps_before *before,
				 const struct hps_solution *after, struct hps_buf *b,
				 struct hps_err *err)
{
	bool hourly = p->objective == HPS_PRICE_PER_HOUR;
	double unit = hourly ? 1 : 1e6, now = after->trial.objective * unit;
	double then = before->trial.objective * unit;
	const char *what = hourly ? "dollars per hour" : "dollars per million samples";
	struct hps_buf stages = HPS_BUF_INIT;
	enum hps_status rc = hps_stages_text(p->cost, after, &stages, err);

	if (!rc && !before->found)
		rc = hps_buf_printf(b, err,
				    "what-if: no plan before; now %.6g %s at %.6g samples/s", now,
				    what, after->trial.throughput);
	else if (!rc)
		rc = hps_buf_printf(b, err,
				    "what-if: %.6g -> %.6g %s (%+.3g %%), %.6g -> %.6g samples/s",
				    then, now, what, then > 0 ? 100 * (now / then - 1) : 0,
				    before->trial.throughput, after->trial.throughput);
	if (!rc && before->found && !strcmp(before->stages.data, stages.data))
		rc = hps_buf_printf(b, err, "; the same stages");
	else if (!rc)
		rc = hps_buf_printf(b, err, "; %s%s%s", before->found ? before->stages.data : "",
				    before->found ? " -> " : "", stages.data);
	hps_buf_release(&stages);
	return rc;
}
