/* Which shard holds which key and which dense parameters. */
#include "ps/shard.h"

#include "base/rng.h"

enum { ALIGN = 16 }; /* floats: a cache line, so that slices do not share one */

uint32_t hps_shard_of_key(uint32_t table, uint64_t key, uint32_t n_shards)
{
	uint64_t h;

	if (n_shards < 2)
		return 0;
	h = hps_mix64(key + 0x9e3779b97f4a7c15u * (table + 1)); /* splitmix64's increment */
	return (uint32_t)(((h >> 32) * n_shards) >> 32);
}

void hps_shard_slice(uint64_t n_floats, uint32_t shard, uint32_t n_shards, uint64_t *first,
		     uint64_t *n)
{
	uint64_t lines = n_floats / ALIGN + (n_floats % ALIGN != 0);
	uint64_t each = lines / n_shards, more = lines % n_shards;
	uint64_t begin = (shard * each + (shard < more ? shard : more)) * ALIGN;
	uint64_t end = begin + (each + (shard < more)) * ALIGN;

	if (end > n_floats)
		end = n_floats;
	*first = begin < end ? begin : end;
	*n = end - *first;
}

void hps_shard_part(const struct hps_job *job, const struct hps_graph *g, uint32_t stage,
		    uint32_t shard, uint64_t *first, uint64_t *n)
{
	const struct hps_deployed_stage *s = &job->deployment.stage[stage];
	uint64_t begin = g->layer_offset[s->first], end = g->layer_offset[s->last + 1];
	uint64_t slice, len;

	hps_shard_slice(g->n_floats, shard, job->deployment.n_shards, &slice, &len);
	if (begin < slice)
		begin = slice;
	if (end > slice + len)
		end = slice + len;
	*first = begin;
	*n = begin < end ? end - begin : 0;
}

bool hps_stage_looks_up(const struct hps_job *job, uint32_t stage)
{
	const struct hps_deployed_stage *s = &job->deployment.stage[stage];

	for (uint32_t l = s->first; l <= s->last; l++)
		if (job->model.layer[l].op == HPS_OP_EMBEDDING ||
		    job->model.layer[l].op == HPS_OP_NEGATIVES)
			return true;
	return false;
}

struct hps_optim hps_optim_of(const struct hps_optimizer *o)
{
	static const enum hps_optim_rule rule[] = {
		[HPS_SGD] = HPS_RULE_SGD,
		[HPS_ADAGRAD] = HPS_RULE_ADAGRAD,
		[HPS_ADAM] = HPS_RULE_ADAM,
	};

	return (struct hps_optim){
		.rule = rule[o->kind],
		.lr = (float)o->lr,
		.accumulator = (float)o->accumulator,
		.eps = (float)o->eps,
		.beta1 = (float)o->beta1,
		.beta2 = (float)o->beta2,
	};
}
