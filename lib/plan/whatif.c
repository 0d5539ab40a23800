/* Which number of the cluster does an edit mean, and what follows from it? */
#include "plan/whatif.h"
#include <stdio.h>
#include <string.h>
#include "base/buf.h"
#include "base/opt.h"
#include "plan/compare.h"

enum field {
	PRICE,
	LIMIT,
	MEMORY,
	SPEED,
	BANDWIDTH,
	LATENCY,
	CORES,
	PS_CORES,
	ROWS_PER_S,
	BYTES_PER_S,
	NAMED,	       /* fields up to here have a name */
	UNITS = NAMED, /* HOST.units.TYPE */
};

struct range {
	const char *name;
	double min, max;
	bool whole;
};
/* As the readers of cluster and profile take them. */
static const struct range ranges[] = {
	[PRICE] = { "price", 0, 1e9 },
	[LIMIT] = { "limit", 1, HPS_MAX_UNITS, true },
	[MEMORY] = { "memory", 0, 1e18 },
	[SPEED] = { "speed", 1e-9, 1e9 },
	[BANDWIDTH] = { "bandwidth", 1, 1e18 },
	[LATENCY] = { "latency", 0, 1e6 },
	[CORES] = { "cores", 1, HPS_MAX_UNITS, true },
	[PS_CORES] = { "ps_cores", 0, HPS_MAX_UNITS, true },
	[ROWS_PER_S] = { "rows_per_s", 1e-3, 1e15 },
	[BYTES_PER_S] = { "bytes_per_s", 1e-3, 1e18 },
	[UNITS] = { "units", 0, HPS_MAX_UNITS, true },
};

enum place { TYPE, HOST, NETWORK, PS, LINK, SHARD };
static const unsigned fields_of[] = {
	[TYPE] = 1 << PRICE | 1 << LIMIT | 1 << MEMORY | 1 << SPEED | 1 << BANDWIDTH | 1 << LATENCY,
	[HOST] = 1 << MEMORY | 1 << CORES | 1 << PS_CORES,
	[NETWORK] = 1 << BANDWIDTH | 1 << LATENCY,
	[PS] = 1 << PRICE,
	[LINK] = 1 << BANDWIDTH | 1 << LATENCY,
	[SHARD] = 1 << ROWS_PER_S | 1 << BYTES_PER_S,
};

struct edit {
	enum place place;
	uint32_t at;   /* the type or host */
	uint32_t type; /* of UNITS */
	enum field field;
	double value;
};

static bool find_host(const struct hps_cluster *c, const char *name, uint32_t *at)
{
	for (*at = 0; *at < c->n_hosts; ++*at)
		if (!strcmp(c->host[*at].name, name))
			return true;
	return false;
}

static bool find_place(const struct hps_cluster *c, const char *name, struct edit *e)
{
	static const char *const single[] = {
		[NETWORK] = "network", [PS] = "ps", [LINK] = "link", [SHARD] = "shard"
	};
	int type = hps_cluster_type(c, name);

	for (int i = NETWORK; i <= SHARD; i++) {
		e->place = (enum place)i;
		if (!strcmp(name, single[i]))
			return true;
	}
	e->place = type >= 0 ? TYPE : HOST;
	e->at = (uint32_t)type;
	return type >= 0 || find_host(c, name, &e->at);
}

static enum hps_status list_names(const struct hps_cluster *c, const char *name,
				  struct hps_err *err)
{
	struct hps_buf b = { .max = 300 };

	for (uint32_t t = 0; t < c->n_types; t++)
		if (hps_buf_printf(&b, NULL, "%s, ", c->type[t].name))
			break;
	for (uint32_t h = 0; h < c->n_hosts; h++)
		if (hps_buf_printf(&b, NULL, "%s, ", c->host[h].name))
			break;
	hps_err_set(err, HPS_USAGE,
		    "what-if: the cluster has no \"%s\"; it has %snetwork, ps, link, shard", name,
		    b.data ? b.data : "");
	hps_buf_release(&b);
	return HPS_USAGE;
}

static enum hps_status list_fields(enum place place, const char *name, const char *field,
				   struct hps_err *err)
{
	char list[128] = "";
	size_t len = 0;

	for (int f = 0; f < NAMED; f++)
		if (fields_of[place] >> f & 1)
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
						len ? ", " : "", ranges[f].name);
	return hps_err_set(err, HPS_USAGE, "what-if: \"%s\" has no \"%s\"; it has %s%s", name,
			   field, list, place == HOST ? ", units.TYPE" : "");
}

/* "HOST.units.TYPE": true if it begins like that; names may have dots. */
static bool find_units(const struct hps_cluster *c, const char *text, struct edit *e, int *type)
{
	static const char middle[] = ".units.";

	for (uint32_t h = 0; h < c->n_hosts; h++) {
		size_t len = strlen(c->host[h].name);

		if (strncmp(text, c->host[h].name, len) ||
		    strncmp(text + len, middle, sizeof(middle) - 1))
			continue;
		e->place = HOST;
		e->at = h;
		e->field = UNITS;
		*type = hps_cluster_type(c, text + len + sizeof(middle) - 1);
		return true;
	}
	return false;
}

/* "NAME.FIELD", the place and field that an edit is of. */
static enum hps_status parse_name(const struct hps_cluster *c, char *text, struct edit *e,
				  struct hps_err *err)
{
	char *dot = strrchr(text, '.');
	int type, f = 0;

	if (find_units(c, text, e, &type)) {
		e->type = (uint32_t)type;
		return type >= 0 ? HPS_OK
				 : hps_err_set(err, HPS_USAGE,
					       "what-if: %s: the cluster has no such type", text);
	}
	if (!dot || dot == text)
		return hps_err_set(err, HPS_USAGE,
				   "what-if: expected NAME.FIELD=NUMBER, got \"%s\"", text);
	*dot = '\0';
	if (!find_place(c, text, e))
		return list_names(c, text, err);
	while (f < NAMED && (strcmp(dot + 1, ranges[f].name) || !(fields_of[e->place] >> f & 1)))
		f++;
	if (f == NAMED)
		return list_fields(e->place, text, dot + 1, err);
	e->field = (enum field)f;
	*dot = '.';
	return HPS_OK;
}

static enum hps_status parse(const struct hps_cluster *c, char *text, struct edit *e,
			     struct hps_err *err)
{
	char *equals = strrchr(text, '=');
	struct hps_err why = { 0 };
	const struct range *range;
	int64_t whole;
	enum hps_status rc;

	if (!equals)
		return hps_err_set(err, HPS_USAGE,
				   "what-if: expected NAME.FIELD=NUMBER, got \"%s\"", text);
	*equals = '\0';
	rc = parse_name(c, text, e, err);
	if (rc)
		return rc;
	range = &ranges[e->field];
	if (range->whole) {
		rc = hps_parse_int(equals + 1, (int64_t)range->min, (int64_t)range->max, &whole,
				   &why);
		e->value = rc ? 0 : (double)whole;
	} else {
		rc = hps_parse_double(equals + 1, range->min, range->max, &e->value, &why);
	}
	return rc ? hps_err_set(err, HPS_USAGE, "what-if: %s: %s", text, why.msg) : HPS_OK;
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

static void apply_to_host(struct hps_host *h, const struct edit *e)
{
	if (e->field == MEMORY)
		h->memory = e->value;
	else if (e->field == CORES)
		h->cores = (uint32_t)e->value;
	else if (e->field == PS_CORES)
		h->ps_cores = (uint32_t)e->value;
	else
		h->units[e->type] = (uint32_t)e->value;
}

static void apply(struct hps_job *job, const struct edit *e)
{
	struct hps_cluster *c = &job->cluster;
	struct hps_type *t = e->place == TYPE ? &c->type[e->at] : NULL;
	struct hps_link *link = t		      ? &t->link
				: e->place == NETWORK ? &c->network
						      : &job->profile.link;

	if (e->place == HOST) {
		apply_to_host(&c->host[e->at], e);
		return;
	}
	switch (e->field) {
	case PRICE:
		*(t ? &t->price : &c->ps_price) = e->value;
		break;
	case LIMIT:
		c->type[e->at].limit = (uint32_t)e->value;
		break;
	case MEMORY:
		c->type[e->at].memory = e->value;
		break;
	case SPEED:
		set_speed(job, &c->type[e->at], e->value);
		break;
	case BANDWIDTH:
		link->bandwidth = e->value;
		break;
	case LATENCY:
		link->latency = e->value;
		break;
	case ROWS_PER_S:
		job->profile.shard.rows_per_s = e->value;
		break;
	case BYTES_PER_S:
		job->profile.shard.bytes_per_s = e->value;
		break;
	default:
		break;
	}
	/* What was said is not measured. */
	if (e->place == LINK)
		job->profile.link_measured = false;
	if (e->place == SHARD)
		job->profile.shard.measured = false;
}

/* Edits that something else overrides, one line each, so that nobody takes "the same plan" for an
 * answer. */
static enum hps_status note_idle(const struct hps_job *job, const struct edit *e,
				 struct hps_buf *notes, struct hps_err *err)
{
	const struct hps_cluster *c = &job->cluster;
	const char *name = e->place == TYPE ? c->type[e->at].name : "network";
	bool is_link = e->field == BANDWIDTH || e->field == LATENCY;
	uint64_t units = 0;

	for (uint32_t h = 0; e->place == TYPE && h < c->n_hosts; h++)
		units += c->host[h].units[e->at];
	if (e->field == LIMIT && units && units < c->type[e->at].limit)
		return hps_buf_printf(notes, err,
				      "what-if: hosts have %llu units of %s, more of its limit is "
				      "not used (HOST.units.%s=N gives them some)\n",
				      (unsigned long long)units, name, name);
	if (e->place == TYPE && is_link && c->n_hosts > 1 && c->network.bandwidth > 0)
		return hps_buf_printf(notes, err,
				      "what-if: the link of %s is not used between hosts, the "
				      "network is\n",
				      name);
	if (is_link && c->n_hosts == 1 && (e->place == NETWORK || units))
		return hps_buf_printf(notes, err,
				      "what-if: the link of %s is not used within one host, the "
				      "measured link is (link.%s)\n",
				      name, ranges[e->field].name);
	return HPS_OK;
}

enum { MOST_EDITS = 64 };

enum hps_status hps_what_if(struct hps_job *job, const char *edits, struct hps_buf *notes,
			    struct hps_err *err)
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
	for (size_t i = 0; i < n; i++)
		if (note_idle(job, &edit[i], notes, err))
			return HPS_MEMORY;
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
