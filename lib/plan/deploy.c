/* Where does each replica and shard run, where does it listen, and how fast will it be? */
#include "plan/deploy.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include "base/mem.h"
#include "plan/deploy_int.h"
#include "plan/plan_int.h"

struct deploying {
	const struct hps_problem *p;
	const struct hps_solution *s;
	const struct hps_deploy_options *opt;
	struct hps_host_use *host; /* n_hosts */
	uint32_t *replica, *shard; /* host of each */
	double *host_s;
	uint32_t n_replicas;
	bool ipc;
	uint32_t *group; /* n_hosts: the first host of the same address */
	uint32_t *port;	 /* n_hosts: the next one of a group, at its first host */
};

/* --- placement --- */

/* HPS_NO unless the hosts have the units that the plan takes of type t. */
static enum hps_status check_units(const struct deploying *x, uint32_t t, struct hps_err *err)
{
	const struct hps_cluster *cl = x->p->cost->cluster;
	uint64_t have = 0, need = 0;

	for (uint32_t h = 0; h < cl->n_hosts; h++)
		have += cl->host[h].units[t];
	for (uint32_t i = 0; i < x->s->n_stages; i++)
		if (x->s->stage[i].type == t)
			need += x->s->stage[i].units;
	if (need <= have)
		return HPS_OK;
	hps_err_set(err, HPS_NO,
		    "type \"%s\": the plan takes %" PRIu64 " units, the hosts have %" PRIu64
		    ", %" PRIu64 " are missing",
		    cl->type[t].name, need, have, need - have);
	if (!have)
		hps_err_hint(err,
			     "no host has type \"%s\"%s; plan without it, or see it on paper "
			     "with --text",
			     cl->type[t].name, cl->type[t].like ? ", it is declared only" : "");
	return HPS_NO;
}

static enum hps_status place_replicas(struct deploying *x, struct hps_err *err)
{
	const struct hps_cluster *cl = x->p->cost->cluster;
	uint32_t cursor[2 * HPS_MAX_TYPES] = { 0 };
	uint32_t *r = x->replica;

	for (uint32_t t = 0; t < cl->n_types; t++) {
		enum hps_status rc = check_units(x, t, err);

		if (rc)
			return rc;
	}
	/* Each type fills hosts in order: a cursor of (host, units taken there) for each. */
	for (uint32_t i = 0; i < x->s->n_stages; i++) {
		uint32_t t = x->s->stage[i].type;

		for (uint32_t left = x->s->stage[i].units; left; left--) {
			/* check_units has seen that there are enough. */
			while (cursor[2 * t] + 1 < cl->n_hosts &&
			       cursor[2 * t + 1] == cl->host[cursor[2 * t]].units[t]) {
				cursor[2 * t]++;
				cursor[2 * t + 1] = 0;
			}
			cursor[2 * t + 1]++;
			*r++ = cursor[2 * t];
			x->host[cursor[2 * t]].replicas++;
		}
	}
	return HPS_OK;
}

/* Threads that share a host's cores, a core. */
static double crowd(const struct deploying *x, const uint32_t *cpu, uint32_t h)
{
	double cores = hps_cost_host_cores(x->p->cost->cluster, h);

	return (cpu[h] + x->host[h].shards) / fmax(cores, 1e-9);
}

static enum hps_status place_shards(struct deploying *x, uint32_t *cpu, struct hps_err *err)
{
	const struct hps_cluster *cl = x->p->cost->cluster;
	uint32_t n = x->s->trial.shards, r = 0;

	for (uint32_t i = 0; i < x->s->n_stages; i++)
		for (uint32_t k = 0; k < x->s->stage[i].units; k++, r++)
			cpu[x->replica[r]] +=
				cl->type[x->s->stage[i].type].device == HPS_DEVICE_CPU;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t best = UINT32_MAX;

		for (uint32_t h = 0; h < cl->n_hosts; h++)
			if (x->host[h].shards < cl->host[h].ps_cores &&
			    (best == UINT32_MAX || crowd(x, cpu, h) < crowd(x, cpu, best)))
				best = h;
		if (best == UINT32_MAX)
			return hps_err_set(err, HPS_NO,
					   "%u parameter server shards are needed, the hosts have "
					   "%u PS cores",
					   n, i);
		x->shard[i] = best;
		x->host[best].shards++;
	}
	return HPS_OK;
}

/* --- endpoints --- */

static bool one_host(const struct deploying *x)
{
	for (uint32_t i = 0; i < x->n_replicas; i++)
		if (x->replica[i] != x->shard[0])
			return false;
	for (uint32_t i = 0; i < x->s->trial.shards; i++)
		if (x->shard[i] != x->shard[0])
			return false;
	return true;
}

static bool used(const struct deploying *x, uint32_t h)
{
	return x->host[h].replicas || x->host[h].shards;
}

/* A loopback address is reached from its own machine alone: all that are used, or none. */
static enum hps_status check_reach(const struct deploying *x, struct hps_err *err)
{
	const struct hps_cluster *cl = x->p->cost->cluster;
	const struct hps_host *in = NULL, *out = NULL;

	for (uint32_t h = 0; h < cl->n_hosts; h++) {
		if (used(x, h))
			*(hps_address_loopback(cl->host[h].address) ? &in : &out) = &cl->host[h];
	}
	if (!in || !out)
		return HPS_OK;
	hps_err_set(err, HPS_BAD_INPUT,
		    "host \"%s\" is at %s, where host \"%s\" (%s) does not reach it", in->name,
		    in->address, out->name, out->address);
	hps_err_hint(err, "give it an \"address\" in the cluster");
	return HPS_BAD_INPUT;
}

static enum hps_status settle_transport(struct deploying *x, struct hps_err *err)
{
	bool one = one_host(x);

	x->ipc = x->opt->transport == HPS_TRANSPORT_IPC ||
		 (x->opt->transport == HPS_TRANSPORT_AUTO && one);
	if (x->ipc && !one)
		return hps_err_set(err, HPS_USAGE,
				   "ipc sockets reach no other host, and this plan takes several; "
				   "use --transport tcp");
	return x->ipc ? HPS_OK : check_reach(x, err);
}

/* The hosts of one address have more nodes than it has ports from base_port on. */
static enum hps_status no_ports(const struct deploying *x, uint32_t h, struct hps_err *err)
{
	const struct hps_host *host = x->p->cost->cluster->host;
	uint32_t other = x->group[h];

	while (other < h && !used(x, other))
		other++;
	if (other == h)
		return hps_err_set(err, HPS_USAGE, "no ports left on host \"%s\" from %u on",
				   host[h].name, x->opt->base_port);
	hps_err_set(err, HPS_BAD_INPUT,
		    "hosts \"%s\" and \"%s\" are both at %s, which has no ports left from %u on",
		    host[other].name, host[h].name, host[h].address, x->opt->base_port);
	hps_err_hint(err, "give each its own \"address\" in the cluster, or a lower --base-port");
	return HPS_BAD_INPUT;
}

/* "ipc://DIR/NAME" or "tcp://ADDRESS:PORT", malloc()ed. */
static enum hps_status endpoint(struct deploying *x, uint32_t h, const char *name, char **out,
				struct hps_err *err)
{
	const size_t path_max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
	const struct hps_host *host = &x->p->cost->cluster->host[h];
	uint32_t *port = &x->port[x->group[h]];
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status rc;

	if (x->ipc) {
		rc = hps_buf_printf(&b, err, "ipc://%s/%s", x->opt->run_dir, name);
		if (!rc && b.len - strlen("ipc://") > path_max)
			rc = hps_err_set(
				err, HPS_USAGE,
				"socket path %s is longer than %zu bytes; choose a shorter "
				"--run-dir",
				b.data + strlen("ipc://"), path_max);
	} else if (x->opt->base_port + *port > UINT16_MAX) {
		rc = no_ports(x, h, err);
	} else {
		rc = hps_address_endpoint(host->address, x->opt->base_port + (*port)++, &b, err);
	}
	if (!rc) {
		*out = hps_buf_take(&b);
		rc = *out ? HPS_OK : HPS_MEMORY;
	}
	hps_buf_release(&b);
	return rc;
}

static enum hps_status name_node(struct deploying *x, uint32_t h, const char *name, char **host,
				 char **where, struct hps_err *err)
{
	*host = hps_strdup(x->p->cost->cluster->host[h].name, err);
	return *host ? endpoint(x, h, name, where, err) : HPS_MEMORY;
}

static enum hps_status fill_shards(struct deploying *x, struct hps_deployment *d,
				   struct hps_err *err)
{
	enum hps_status rc;

	d->shard = hps_calloc(x->s->trial.shards, sizeof(*d->shard), err);
	if (!d->shard)
		return HPS_MEMORY;
	d->n_shards = x->s->trial.shards;
	rc = name_node(x, x->shard[0], "c", &d->coordinator.host, &d->coordinator.endpoint, err);
	for (uint32_t i = 0; !rc && i < d->n_shards; i++) {
		char name[16];

		snprintf(name, sizeof(name), "s%u", i);
		rc = name_node(x, x->shard[i], name, &d->shard[i].host, &d->shard[i].endpoint, err);
	}
	return rc;
}

static enum hps_status fill_stages(struct deploying *x, const struct hps_stage_cost *cost,
				   struct hps_deployment *d, struct hps_err *err)
{
	const struct hps_cost *c = x->p->cost;
	const uint32_t *at = x->replica;
	enum hps_status rc = HPS_OK;

	d->stage = hps_calloc(x->s->n_stages, sizeof(*d->stage), err);
	if (!d->stage)
		return HPS_MEMORY;
	d->n_stages = x->s->n_stages;
	for (uint32_t i = 0; !rc && i < d->n_stages; i++) {
		const struct hps_span *sp = &x->s->stage[i];
		struct hps_deployed_stage *st = &d->stage[i];

		st->first = sp->first;
		st->last = sp->last;
		st->dense_sync = cost[i].dense_sync;
		st->type = hps_strdup(c->type[sp->type].name, err);
		st->replica = hps_calloc(sp->units, sizeof(*st->replica), err);
		if (!st->type || !st->replica)
			return HPS_MEMORY;
		st->n_replicas = sp->units;
		d->simulated |= c->type[sp->type].simulated;
		for (uint32_t k = 0; !rc && k < sp->units; k++) {
			char name[32];

			snprintf(name, sizeof(name), "r%u.%u", i, k);
			rc = name_node(x, *at++, name, &st->replica[k].host,
				       &st->replica[k].endpoint, err);
		}
	}
	return rc;
}

/* --- memory --- */

/* Bytes of all tables as the servers hold them, at their ceilings: a row is its floats, the
 * optimizer's as many (adam twice), frequency and last use; the key and a slot of the index. */
static double table_bytes(const struct hps_model *m)
{
	double sum = 0;

	for (uint32_t i = 0; m && i < m->n_tables; i++) {
		const struct hps_table_spec *t = &m->table[i];
		double state = t->optimizer.kind == HPS_SGD    ? 0
			       : t->optimizer.kind == HPS_ADAM ? 2
							       : 1;
		double row = 4.0 * t->dim * (1 + state) + 8 + 16;
		double rows = (double)t->rows;

		if (t->max_rows && (!t->rows || (double)t->max_rows < rows))
			rows = (double)t->max_rows;
		row *= rows;
		if (t->max_bytes && (row <= 0 || (double)t->max_bytes < row))
			row = (double)t->max_bytes;
		sum += row;
	}
	return sum;
}

static void add_memory(struct deploying *x, const struct hps_stage_cost *cost)
{
	const struct hps_cost *c = x->p->cost;
	/* Weights and two states of Adam. */
	double shard =
		(table_bytes(x->opt->model) + 3 * c->params[c->n_layers]) / x->s->trial.shards;
	uint32_t r = 0;

	for (uint32_t i = 0; i < x->s->n_stages; i++)
		for (uint32_t k = 0; k < x->s->stage[i].units; k++)
			x->host[x->replica[r++]].memory_bytes += cost[i].memory_bytes;
	for (uint32_t i = 0; i < x->s->trial.shards; i++)
		x->host[x->shard[i]].memory_bytes += shard;
}

/* --- all of it --- */

static enum hps_status predict(struct deploying *x, struct hps_deploy_report *r,
			       struct hps_err *err)
{
	struct hps_cost step = *x->p->cost; /* shares its arrays */
	struct hps_schedule sched = { x->s->stage, x->s->n_stages, x->s->trial.shards };
	struct hps_placement place = { x->replica, x->shard, x->host_s };

	r->stage = hps_calloc(sched.n_stages, sizeof(*r->stage), err);
	if (!r->stage)
		return HPS_MEMORY;
	step.opt.evaluator = HPS_EVAL_STEP;
	hps_cost_eval(&step, &sched, &place, &r->cost, r->stage);
	for (uint32_t h = 0; h < step.cluster->n_hosts; h++)
		if (isfinite(step.cores) && r->cost.cycle_s > 0)
			x->host[h].cores_use = x->host_s[h] / r->cost.cycle_s;
	return HPS_OK;
}

static enum hps_status fill_settings(const struct deploying *x, const struct hps_deploy_report *r,
				     struct hps_deployment *d, struct hps_err *err)
{
	const struct hps_cost *c = x->p->cost;

	d->job = hps_strdup(x->opt->job, err);
	d->digest = c->profile->digest;
	d->batch = (uint64_t)c->opt.batch;
	d->micro_batches = c->opt.micro_batches;
	d->epochs = x->opt->epochs;
	d->sync = c->opt.mode;
	d->seed = x->opt->seed;
	d->predicted_samples_per_s = r->cost.throughput;
	d->price_per_hour = r->cost.price;
	return d->job ? HPS_OK : HPS_MEMORY;
}

static enum hps_status start(struct deploying *x, struct hps_err *err)
{
	const struct hps_cluster *cl = x->p->cost->cluster;

	if (!cl->n_hosts) {
		hps_err_set(err, HPS_NO, "the cluster has no hosts to run on");
		hps_err_hint(err, "see it on paper with --text");
		return HPS_NO;
	}
	if (!x->s->trial.shards) {
		hps_err_set(err, HPS_NO, "a job needs at least one parameter server shard");
		return HPS_NO;
	}
	for (uint32_t i = 0; i < x->s->n_stages; i++)
		x->n_replicas += x->s->stage[i].units;
	x->host = hps_calloc(cl->n_hosts, sizeof(*x->host), err);
	x->port = hps_calloc(2 * (size_t)cl->n_hosts, sizeof(*x->port), err);
	x->group = hps_calloc(cl->n_hosts, sizeof(*x->group), err);
	x->host_s = hps_calloc(cl->n_hosts, sizeof(*x->host_s), err);
	x->replica = hps_calloc(x->n_replicas, sizeof(*x->replica), err);
	x->shard = hps_calloc(x->s->trial.shards, sizeof(*x->shard), err);
	if (!x->host || !x->port || !x->group || !x->host_s || !x->replica || !x->shard)
		return HPS_MEMORY;
	return hps_address_groups(cl, x->group, err);
}

void hps_deploy_report_release(struct hps_deploy_report *r)
{
	free(r->stage);
	free(r->host);
	memset(r, 0, sizeof(*r));
}

enum hps_status hps_deploy(const struct hps_problem *p, const struct hps_solution *s,
			   const struct hps_deploy_options *opt, struct hps_deployment *d,
			   struct hps_deploy_report *r, struct hps_err *err)
{
	struct deploying x = { .p = p, .s = s, .opt = opt };
	struct hps_deploy_report mine = { 0 };
	enum hps_status rc;

	memset(d, 0, sizeof(*d));
	rc = start(&x, err);
	if (!rc)
		rc = place_replicas(&x, err);
	if (!rc)
		rc = place_shards(&x, x.port + p->cost->cluster->n_hosts, err);
	if (!rc)
		rc = settle_transport(&x, err);
	if (!rc)
		rc = predict(&x, &mine, err);
	if (!rc)
		rc = fill_settings(&x, &mine, d, err);
	if (!rc)
		rc = fill_shards(&x, d, err);
	if (!rc)
		rc = fill_stages(&x, mine.stage, d, err);
	if (!rc) {
		add_memory(&x, mine.stage);
		mine.host = x.host;
		x.host = NULL;
		rc = hps_usage_of(p, s, &mine, opt, &d->usage, err);
		d->has_usage = !rc;
	}
	free(x.host);
	free(x.port);
	free(x.group);
	free(x.host_s);
	free(x.replica);
	free(x.shard);
	if (rc) {
		hps_deployment_release(d);
		hps_deploy_report_release(&mine);
	} else if (r) {
		*r = mine;
	} else {
		hps_deploy_report_release(&mine);
	}
	return rc;
}
