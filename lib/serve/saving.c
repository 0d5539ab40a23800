/* What a process does to save: an order to its shards, one rename when all have written. */
#include "serve/process_int.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"

enum hps_status hps_process_save(struct process *p, struct hps_err *err)
{
	struct hps_state_write w = { .job = p->job, .graph = &p->graph, .epochs = p->epochs };
	enum hps_status st;

	p->saving = true;
	if (!p->o->state) {
		hps_pool_save(p->pool, NULL);
		return HPS_OK;
	}
	st = hps_state_begin(&p->dir, err);
	if (st != HPS_OK)
		return st;
	w.tmp = p->dir.tmp;
	w.save = hps_hash3(hps_deployment_id(&p->job->deployment), p->coordinator, p->run);
	hps_pool_save(p->pool, &w);
	return HPS_OK;
}

static enum hps_status say_saved(struct process *p, struct hps_err *err)
{
	const char *path = p->o->state;

	return p->coord ? hps_coord_saved(p->coord, path, p->table, hps_now_s(), &p->out, err)
			: hps_member_saved(p->member, path, p->table, &p->out, err);
}

static enum hps_status end_save(struct process *p, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	p->saving = false;
	if (p->o->state) {
		st = hps_state_commit(&p->dir, p->n_here == p->job->deployment.n_shards, err);
		if (st == HPS_OK)
			hps_info("saved in %s", p->dir.dir);
	}
	p->loaded = true;
	return st == HPS_OK ? say_saved(p, err) : st;
}

enum hps_status hps_process_look(struct process *p, struct hps_err *err)
{
	switch (hps_pool_poll(p->pool, p->table, &p->first_step, err)) {
	case POOL_SAVED:
		return end_save(p, err);
	case POOL_FAILED:
		return err->status;
	default:
		return HPS_OK;
	}
}
