#include "cm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ps_case.h"

static const char *const optimizer[] = {
	[HPS_SGD] = "{\"kind\":\"sgd\",\"lr\":0.1}",
	[HPS_ADAGRAD] = "{\"kind\":\"adagrad\",\"lr\":0.05}",
	[HPS_ADAM] = "{\"kind\":\"adam\",\"lr\":0.01}",
};

static const char model[] =
	"{\"name\":\"ps-case\",\"inputs\":{\"slots\":4,\"dense\":3},\"tables\":["
	"{\"name\":\"a\",\"dim\":4,\"init\":{\"kind\":\"uniform\",\"scale\":0.1},\"optimizer\":%s%s},"
	"{\"name\":\"b\",\"dim\":3,\"rows\":50,\"init\":{\"kind\":\"uniform\",\"scale\":0.1},"
	"\"optimizer\":%s}],\"layers\":["
	"{\"name\":\"ea\",\"op\":\"embedding\",\"table\":\"a\",\"slots\":[0,1],\"pooling\":\"concat\"},"
	"{\"name\":\"eb\",\"op\":\"embedding\",\"table\":\"a\",\"slots\":[2],\"pooling\":\"sum\"},"
	"{\"name\":\"ec\",\"op\":\"embedding\",\"table\":\"b\",\"slots\":[3],\"pooling\":\"sum\"},"
	"{\"name\":\"in\",\"op\":\"concat\",\"inputs\":[\"ea\",\"eb\",\"ec\",\"dense\"]},"
	"{\"name\":\"fc1\",\"op\":\"dense\",\"inputs\":[\"in\"],\"units\":7,\"activation\":\"relu\"},"
	"{\"name\":\"ed\",\"op\":\"embedding\",\"table\":\"b\",\"slots\":[0],\"pooling\":\"sum\"},"
	"{\"name\":\"in2\",\"op\":\"concat\",\"inputs\":[\"fc1\",\"ed\"]},"
	"{\"name\":\"fc2\",\"op\":\"dense\",\"inputs\":[\"in2\"],\"units\":2,\"activation\":\"linear\"}],"
	"\"loss\":{\"kind\":\"softmax_cross_entropy\",\"inputs\":[\"fc2\"]},"
	"\"train\":{\"batch\":12,\"optimizer\":%s}}";

/* Last layers of the stages, by number of stages. */
static const uint32_t last_layer[4][3] = { { 0 }, { 7 }, { 4, 7 }, { 4, 6, 7 } };

static char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;

	va_start(ap, fmt);
	assert_true(vasprintf(&s, fmt, ap) >= 0);
	va_end(ap);
	return s;
}

static void make_deployment(struct hps_deployment *d, const struct ps_case_opts *o)
{
	const char *dir = o->endpoints ? o->endpoints : "/nowhere";
	uint32_t first = 0;

	d->job = strdup("ps-case");
	d->coordinator.host = strdup("here");
	d->coordinator.endpoint = format("ipc://%s/c.ipc", dir);
	d->n_shards = o->shards;
	d->shard = calloc(o->shards, sizeof(*d->shard));
	for (uint32_t i = 0; i < o->shards; i++) {
		d->shard[i].host = strdup("here");
		d->shard[i].endpoint = format("ipc://%s/s%u.ipc", dir, i);
	}
	d->n_stages = o->stages;
	d->stage = calloc(o->stages, sizeof(*d->stage));
	for (uint32_t i = 0; i < o->stages; i++) {
		struct hps_deployed_stage *s = &d->stage[i];

		s->first = first;
		s->last = last_layer[o->stages][i];
		first = s->last + 1;
		s->type = strdup("cpu");
		s->dense_sync = i == o->stages - 1 ? o->dense_sync : HPS_DENSE_PS;
		s->n_replicas = o->replicas[i] ? o->replicas[i] : 1;
		s->replica = calloc(s->n_replicas, sizeof(*s->replica));
		for (uint32_t r = 0; r < s->n_replicas; r++) {
			s->replica[r].host = strdup("here");
			s->replica[r].endpoint = format("ipc://%s/r%u-%u.ipc", dir, i, r);
		}
	}
	d->batch = 12;
	d->micro_batches = o->micro_batches ? o->micro_batches : 1;
	d->epochs = 1;
	d->sync = o->sync;
	d->seed = o->seed;
}

void ps_case_init(struct ps_case *c, const struct ps_case_opts *o)
{
	char *limits = format("%s", ""), *text;
	struct hps_err err = { 0 };
	struct hps_doc *doc = NULL;
	struct hps_at at;

	memset(c, 0, sizeof(*c));
	if (o->max_rows || o->max_bytes) {
		free(limits);
		limits = o->max_rows
				 ? format(",\"max_rows\":%llu", (unsigned long long)o->max_rows)
				 : format(",\"max_bytes\":%llu", (unsigned long long)o->max_bytes);
	}
	text = format(model, optimizer[o->table_optim], limits, optimizer[HPS_ADAGRAD],
		      optimizer[o->dense_optim]);
	if (hps_doc_parse(text, strlen(text), "model", &doc, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
	at = hps_at_root(doc, "model");
	if (hps_model_read(&at, &c->job.model, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
	hps_doc_free(doc);
	free(text);
	free(limits);
	make_deployment(&c->job.deployment, o);
	c->job.deployment.digest = c->job.model.digest;
	c->job.has_model = c->job.has_deployment = true;
	assert_int_equal(hps_graph_build(&c->job.model, &c->graph, NULL), HPS_OK);
}

void ps_case_release(struct ps_case *c)
{
	hps_graph_release(&c->graph);
	hps_job_release(&c->job);
}
