/* Which host of the deployment is this? */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "serve/serve.h"

static void list_hosts(const struct hps_job *job, struct hps_err *err)
{
	const struct hps_deployment *d = &job->deployment;
	char list[200] = "";
	size_t len = 0;

	for (uint32_t i = 0; i < d->n_shards && len + 3 < sizeof(list); i++) {
		const char *h = d->shard[i].host;

		if (i && !strcmp(h, d->shard[i - 1].host))
			continue;
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", len ? ", " : "", h);
		if (len >= sizeof(list))
			len = sizeof(list) - 1;
	}
	hps_err_hint(err, "--host takes one of the deployment's hosts; shards are on %s", list);
}

/* The deployment's own copy of a host's name, or NULL. */
static const char *find_host(const struct hps_job *job, const char *name)
{
	const struct hps_deployment *d = &job->deployment;

	for (uint32_t i = 0; i < d->n_shards; i++)
		if (!strcmp(d->shard[i].host, name))
			return d->shard[i].host;
	for (uint32_t s = 0; s < d->n_stages; s++)
		for (uint32_t r = 0; r < d->stage[s].n_replicas; r++)
			if (!strcmp(d->stage[s].replica[r].host, name))
				return d->stage[s].replica[r].host;
	return NULL;
}

static bool single_host(const struct hps_job *job)
{
	const struct hps_deployment *d = &job->deployment;
	const char *name = d->coordinator.host;

	for (uint32_t i = 0; i < d->n_shards; i++)
		if (strcmp(d->shard[i].host, name) != 0)
			return false;
	for (uint32_t s = 0; s < d->n_stages; s++)
		for (uint32_t r = 0; r < d->stage[s].n_replicas; r++)
			if (strcmp(d->stage[s].replica[r].host, name) != 0)
				return false;
	return true;
}

enum hps_status hps_serve_host(const struct hps_job *job, const char *asked, const char **host,
			       struct hps_err *err)
{
	char here[256] = "";

	if (!asked && single_host(job)) {
		*host = job->deployment.coordinator.host;
		return HPS_OK;
	}
	if (!asked && gethostname(here, sizeof(here) - 1))
		return hps_err_errno(err, HPS_IO, "cannot get this host's name");
	*host = find_host(job, asked ? asked : here);
	if (*host)
		return HPS_OK;
	hps_err_set(err, HPS_USAGE, "the deployment has no host \"%s\"%s", asked ? asked : here,
		    asked ? "" : ", which is this machine's name");
	list_hosts(job, err);
	return HPS_USAGE;
}

bool hps_serve_has_shards(const struct hps_job *job, const char *host)
{
	for (uint32_t i = 0; i < job->deployment.n_shards; i++)
		if (!strcmp(job->deployment.shard[i].host, host))
			return true;
	return false;
}
