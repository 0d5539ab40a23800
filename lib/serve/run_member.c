/* A run in a process whose coordinator is elsewhere. */
#include "serve/process_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sig.h"

/* The coordinator says which step the run begins with: shards that stand elsewhere have loaded
 * another save, or none. */
static enum hps_status check_go(const struct process *p, const struct hps_doc *body,
				struct hps_err *err)
{
	struct hps_at root = hps_at_root(body, "go"), at = hps_at_member(&root, "step");
	uint64_t step;
	enum hps_status st = hps_at_u64(&at, 0, UINT64_MAX, &step, err);

	if (st != HPS_OK || step == p->first_step || p->job->deployment.sync != HPS_BSP)
		return st;
	hps_err_set(err, HPS_BAD_INPUT, "the run begins at step %llu, the shards here are at %llu",
		    (unsigned long long)step, (unsigned long long)p->first_step);
	hps_err_hint(err, "give every hps-serve of a job the same save with --state");
	return HPS_BAD_INPUT;
}

static enum hps_status member_notice(struct process *p, struct hps_msg *m, bool *over,
				     struct hps_err *err)
{
	uint64_t from = m->head.incarnation;
	struct hps_notice n;
	enum hps_status st = hps_member_message(p->member, m, hps_now_s(), &n, err);

	p->heard = true;
	if (st != HPS_OK)
		return st;
	switch (n.kind) {
	case HPS_CTL_GO:
		p->begun = true;
		st = check_go(p, n.body, err);
		break;
	case HPS_CTL_SAVE:
		p->coordinator = from;
		st = hps_process_save(p, err);
		break;
	case HPS_CTL_DONE:
		*over = true;
		st = hps_member_say(p->member, HPS_CTL_BYE, NULL, &p->out, err);
		break;
	default:
		break;
	}
	hps_notice_release(&n);
	return st;
}

static enum hps_status member_turn(struct process *p, bool *over, struct hps_err *err)
{
	enum hps_status st;
	struct hps_msg m;
	uint32_t peer;
	bool got;

	st = hps_net_recv(p->net, TICK_MS, &m, &peer, &got, err);
	while (st == HPS_OK && got && !*over) {
		st = member_notice(p, &m, over, err);
		if (st != HPS_OK)
			return st;
		st = hps_net_recv(p->net, 0, &m, &peer, &got, err);
	}
	if (st == HPS_NET && peer == HPS_NODE_COORDINATOR)
		hps_err_at(err, "coordinator");
	if (st == HPS_OK && got)
		hps_msg_release(&m);
	if (st == HPS_OK && hps_sig_caught() && !p->interrupted) {
		p->interrupted = true;
		if (p->heard)
			st = hps_member_say(p->member, HPS_CTL_INTERRUPT, NULL, &p->out, err);
		else
			*over = true; /* nobody to ask */
	}
	if (st == HPS_OK)
		st = hps_process_look(p, err);
	if (st == HPS_OK && !*over)
		st = hps_member_tick(p->member, hps_now_s(), &p->out, err);
	if (st == HPS_OK)
		st = hps_net_send_all(p->net, &p->out, err);
	return st;
}

static enum hps_status run_once(struct process *p, struct hps_err *err)
{
	const struct hps_deployment *d = &p->job->deployment;
	struct hps_err mine = { 0 }, second;
	enum hps_status st;
	uint32_t *node = hps_calloc(p->n_here, sizeof(*node), err), n = 0;
	char name[160];
	struct hps_member_opts o = { .job = p->job,
				     .name = name,
				     .incarnation = p->incarnation,
				     .node = node,
				     .n_nodes = p->n_here,
				     .timeout_s = p->o->keep ? 0 : p->o->timeout_s,
				     .dead_after_s = p->o->dead_after_s };
	bool over = false;

	if (!node)
		return HPS_MEMORY;
	for (uint32_t i = 0; i < d->n_shards; i++)
		if (p->shard[i])
			node[n++] = hps_node_of_shard(d, i);
	snprintf(name, sizeof(name), "serve@%s", p->host);
	st = hps_member_new(&o, hps_now_s(), &p->member, err);
	free(node);
	while (st == HPS_OK && !over)
		st = member_turn(p, &over, &mine);
	if (st != HPS_OK && p->member) {
		if (err)
			*err = mine;
		if (hps_member_error(p->member, &mine, &p->out, &second) == HPS_OK)
			hps_net_send_all(p->net, &p->out, &second);
	}
	hps_member_free(p->member);
	p->member = NULL;
	return st;
}

/* With --keep a member asks to join the next run while the coordinator may still be ending the one
 * before: it is refused until that is over, and asks again. */
static bool between_runs(const struct process *p)
{
	return p->o->keep && p->run && !p->begun;
}

enum hps_status hps_process_join(struct process *p, struct hps_err *err)
{
	const struct timespec pause = { .tv_nsec = 200 * 1000 * 1000 };
	enum hps_status st;

	for (;;) {
		p->begun = p->heard = false;
		st = run_once(p, err);
		if (st != HPS_NET || !between_runs(p))
			return st;
		if (hps_sig_caught())
			return HPS_OK; /* nothing was under way */
		nanosleep(&pause, NULL);
	}
}
