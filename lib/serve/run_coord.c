/* A run in the process that hosts the coordinator. */
#include "serve/process_int.h"

#include "base/clock.h"
#include "base/sig.h"

static enum hps_status coord_receive(struct process *p, struct hps_err *err)
{
	enum hps_status st;
	struct hps_err why;
	struct hps_msg m;
	uint32_t peer;
	bool got;
	int n = 0;

	st = hps_net_recv(p->net, TICK_MS, &m, &peer, &got, err);
	while (st == HPS_OK && got) {
		st = hps_coord_message(p->coord, peer, &m, hps_now_s(), &p->out, err);
		if (st == HPS_NET) { /* the peer's fault; if it is a member, the run has ended */
			why = *err;
			st = hps_net_send_all(p->net, &p->out, err);
			hps_net_refuse(p->net, peer, why.msg);
		}
		if (st == HPS_OK)
			st = hps_net_send_all(p->net, &p->out, err);
		if (st != HPS_OK || ++n == TURN)
			break;
		st = hps_net_recv(p->net, 0, &m, &peer, &got, err);
	}
	if (st == HPS_OK && hps_net_refused(p->net, &peer, &why))
		st = hps_coord_refused(p->coord, peer, &why, &p->out, err);
	return st;
}

static enum hps_status coord_turn(struct process *p, struct hps_err *err)
{
	enum hps_status st = coord_receive(p, err);

	if (st == HPS_OK && hps_sig_caught() && !p->interrupted) {
		p->interrupted = true;
		st = hps_coord_interrupt(p->coord, hps_now_s(), &p->out, err);
	}
	if (st == HPS_OK)
		st = hps_process_look(p, err);
	if (st == HPS_OK && !p->saving && hps_coord_want(p->coord) == HPS_COORD_SAVE)
		st = hps_process_save(p, err);
	if (st == HPS_OK)
		st = hps_coord_tick(p->coord, hps_now_s(), &p->out, err);
	if (st == HPS_OK)
		st = hps_net_send_all(p->net, &p->out, err);
	return st;
}

enum hps_status hps_process_coordinate(struct process *p, struct hps_err *err)
{
	struct hps_coord_opts o = { .job = p->job,
				    .host = p->host,
				    .incarnation = p->incarnation,
				    .timeout_s = p->o->keep ? 0 : p->o->timeout_s,
				    .dead_after_s = p->o->dead_after_s,
				    .first_step = p->first_step,
				    .state = p->o->state,
				    .loaded = p->loaded };
	struct hps_coord_stats stats;
	enum hps_status st = hps_coord_new(&o, hps_now_s(), &p->coord, err), told;
	struct hps_err second;

	if (st != HPS_OK)
		return st;
	while (st == HPS_OK && hps_coord_want(p->coord) != HPS_COORD_OVER)
		st = coord_turn(p, err);
	if (st != HPS_OK) { /* something here failed: the others must know */
		told = hps_coord_fail(p->coord, err, hps_now_s(), &p->out, &second);
		if (told == HPS_OK)
			hps_net_send_all(p->net, &p->out, &second);
	} else {
		st = hps_net_send_all(p->net, &p->out, err);
		if (st == HPS_OK)
			st = hps_coord_outcome(p->coord, err);
	}
	hps_coord_stats(p->coord, &stats);
	p->first_step = stats.next_step;
	hps_coord_free(p->coord);
	p->coord = NULL;
	return st;
}
