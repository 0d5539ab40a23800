/* Whom does the coordinator let in, whom does it miss, and how does it end a job? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"

#include "coord/coord.h"
#include "coord/member.h"
#include "tiny.h"

/* Two stages on hosts a and b, two shards on "here" (the coordinator's) and "c". */
struct setup {
	struct tiny tiny;
	struct hps_coord *coord;
	struct hps_outbox out;
	double now_s;
};

enum { A = 101, B = 102, C = 103 };

static void rename_host(char **host, const char *name)
{
	free(*host);
	*host = strdup(name);
	assert_non_null(*host);
}

static void setup(struct setup *s, enum hps_sync sync, bool loaded)
{
	struct tiny_shape shape = { "ctrdnn", 2, { 1, 1 }, 2, 1, 24, HPS_DENSE_PS, sync };
	struct hps_coord_opts o = { .host = "here", .timeout_s = 10, .loaded = loaded };

	memset(s, 0, sizeof *s);
	tiny_init(&s->tiny, &shape);
	rename_host(&s->tiny.job.deployment.stage[0].replica[0].host, "a");
	rename_host(&s->tiny.job.deployment.stage[1].replica[0].host, "b");
	rename_host(&s->tiny.job.deployment.shard[1].host, "c");
	o.job = &s->tiny.job;
	s->now_s = 100;
	assert_int_equal(hps_coord_new(&o, s->now_s, &s->coord, NULL), HPS_OK);
}

static void teardown(struct setup *s)
{
	hps_outbox_release(&s->out);
	hps_coord_free(s->coord);
	tiny_release(&s->tiny);
}

/* JSON with ' for " */
static struct hps_doc *doc(const char *json)
{
	char *text = strdup(json);
	struct hps_doc *d = NULL;
	struct hps_err err = { 0 };

	assert_non_null(text);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	if (hps_doc_parse(text, strlen(text), "test", &d, &err) != HPS_OK)
		fail_msg("%s: %s", text, err.msg);
	free(text);
	return d;
}

static enum hps_status say_err(struct setup *s, uint32_t peer, enum hps_control kind,
			       const char *json, struct hps_err *err)
{
	struct hps_msg m;

	assert_int_equal(hps_talk_make(kind, json ? doc(json) : NULL, &m, NULL), HPS_OK);
	return hps_coord_message(s->coord, peer, &m, s->now_s, &s->out, err);
}

static void say(struct setup *s, uint32_t peer, enum hps_control kind, const char *json)
{
	struct hps_err err = { 0 };

	if (say_err(s, peer, kind, json, &err) != HPS_OK)
		fail_msg("%s: %s: %s", hps_talk_name(kind), err.where, err.msg);
}

/* The first message of this kind to the peer is taken out; its body, or NULL if there is none. */
static struct hps_doc *told(struct setup *s, uint32_t peer, enum hps_control kind)
{
	for (size_t i = 0; i < s->out.n; i++) {
		struct hps_msg *m = &s->out.item[i].msg;
		enum hps_control k;
		struct hps_doc *body;

		if (s->out.item[i].dst != peer || m->head.arg != (uint32_t)kind)
			continue;
		assert_int_equal(hps_talk_read(m, &k, &body, NULL), HPS_OK);
		hps_msg_release(m);
		m->head.arg = 0;
		return body;
	}
	return NULL;
}

static void assert_told(struct setup *s, uint32_t peer, enum hps_control kind)
{
	struct hps_doc *d = told(s, peer, kind);

	if (!d)
		fail_msg("%s was not told %s",
			 peer == A   ? "a"
			 : peer == B ? "b"
				     : "c",
			 hps_talk_name(kind));
	hps_doc_free(d);
}

static void assert_not_told(struct setup *s, uint32_t peer, enum hps_control kind)
{
	struct hps_doc *d = told(s, peer, kind);

	assert_null(d);
}

static void assert_told_error(struct setup *s, uint32_t peer, enum hps_control kind,
			      enum hps_status status, const char *where, const char *msg)
{
	struct hps_doc *d = told(s, peer, kind);
	struct hps_err e;

	assert_non_null(d);
	hps_talk_error_read(d, &e);
	hps_doc_free(d);
	assert_int_equal(e.status, status);
	if (!strstr(e.where, where) || !strstr(e.msg, msg))
		fail_msg("\"%s: %s\" where \"%s: %s\" is expected", e.where, e.msg, where, msg);
}

/* Nodes: 1, 2 the shards; 3 stage 0, 4 stage 1. */
#define SETTINGS "'settings':{'mode':'train','epochs':1,'test':false,'seed':7"
static const char join_a[] =
	"{'name':'work@a','incarnation':11,'nodes':[3]," SETTINGS ",'train_digest':'d'}}";
static const char join_b[] = "{'name':'work@b','incarnation':12,'nodes':[4]," SETTINGS "}}";
static const char join_c[] = "{'name':'serve@c','incarnation':13,'nodes':[2]}";

static void join_all(struct setup *s)
{
	say(s, A, HPS_CTL_JOIN, join_a);
	say(s, B, HPS_CTL_JOIN, join_b);
	say(s, C, HPS_CTL_JOIN, join_c);
	assert_told(s, A, HPS_CTL_GO);
	assert_told(s, B, HPS_CTL_GO);
	assert_told(s, C, HPS_CTL_GO);
	assert_told(s, A, HPS_CTL_EPOCH);
	assert_told(s, B, HPS_CTL_EPOCH);
	assert_not_told(s, C, HPS_CTL_EPOCH);
}

static void assert_outcome(struct setup *s, enum hps_status status, const char *where,
			   const char *msg)
{
	struct hps_err e = { 0 };

	assert_int_equal(hps_coord_want(s->coord), HPS_COORD_OVER);
	assert_int_equal(hps_coord_outcome(s->coord, &e), status);
	if (!strstr(e.where, where) || !strstr(e.msg, msg))
		fail_msg("\"%s: %s\" where \"%s: %s\" is expected", e.where, e.msg, where, msg);
}

/* --- admission --- */

static void test_go_when_all_are_in(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	say(&s, A, HPS_CTL_JOIN, join_a);
	assert_told(&s, A, HPS_CTL_WELCOME);
	say(&s, C, HPS_CTL_JOIN, join_c);
	assert_not_told(&s, A, HPS_CTL_GO);
	say(&s, B, HPS_CTL_JOIN, join_b);
	assert_told(&s, A, HPS_CTL_GO);
	teardown(&s);
}

static void test_a_repeated_join_is_answered_again(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	say(&s, A, HPS_CTL_JOIN, join_a);
	assert_told(&s, A, HPS_CTL_WELCOME);
	say(&s, A, HPS_CTL_JOIN, join_a);
	assert_told(&s, A, HPS_CTL_WELCOME);
	say(&s, 109, HPS_CTL_JOIN, join_a); /* over a new connection: it is known by that now */
	assert_told(&s, 109, HPS_CTL_WELCOME);
	say(&s, B, HPS_CTL_JOIN, join_b);
	say(&s, C, HPS_CTL_JOIN, join_c);
	assert_told(&s, 109, HPS_CTL_GO);
	assert_not_told(&s, A, HPS_CTL_GO);
	teardown(&s);
}

static void test_who_is_refused(void **state)
{
	static const struct {
		const char *join, *msg;
		enum hps_status status;
	} bad[] = {
		{ "{'name':'work@a','incarnation':99,'nodes':[3]," SETTINGS "}}",
		  "in the job already", HPS_NET },
		{ "{'name':'work@x','incarnation':1,'nodes':[3]," SETTINGS "}}",
		  "is taken by work@a", HPS_NET },
		{ "{'name':'work@x','incarnation':1,'nodes':[1]," SETTINGS "}}",
		  "is the coordinator's own", HPS_NET },
		{ "{'name':'work@x','incarnation':1,'nodes':[7]," SETTINGS "}}", "expected",
		  HPS_BAD_INPUT },
		{ "{'name':'work@x','incarnation':1,'nodes':[0]," SETTINGS "}}", "expected",
		  HPS_BAD_INPUT },
		{ "{'name':'work@x','incarnation':1,'nodes':[4,4]," SETTINGS "}}", "twice",
		  HPS_BAD_INPUT },
		{ "{'name':'work@x','incarnation':1,'nodes':[4,2]," SETTINGS "}}",
		  "shards and replicas", HPS_BAD_INPUT },
		{ "{'name':'work@x','incarnation':1,'nodes':[]," SETTINGS "}}", "0 nodes",
		  HPS_BAD_INPUT },
		{ "{'name':'work@b','incarnation':1,'nodes':[4],'settings':{'mode':'train',"
		  "'epochs':2,'test':false,'seed':7}}",
		  "epochs is not what another process", HPS_USAGE },
		{ "{'name':'work@b','incarnation':1,'nodes':[4]," SETTINGS ",'train_digest':'e'}}",
		  "training data are not the same bytes", HPS_USAGE },
		{ "{'name':'work@b','incarnation':1,'nodes':[4]}", "expected", HPS_BAD_INPUT },
	};
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	say(&s, A, HPS_CTL_JOIN, join_a);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint32_t peer = 200 + (uint32_t)i;
		struct hps_doc *d;
		struct hps_err e;

		say(&s, peer, HPS_CTL_JOIN, bad[i].join);
		d = told(&s, peer, HPS_CTL_REFUSED);
		assert_non_null(d);
		hps_talk_error_read(d, &e);
		hps_doc_free(d);
		if (!strstr(e.msg, bad[i].msg))
			fail_msg("case %zu: %s: %s", i, e.where, e.msg);
	}
	assert_int_equal(hps_coord_want(s.coord), HPS_COORD_NOTHING);
	say(&s, B, HPS_CTL_JOIN, join_b); /* none of them took its place */
	say(&s, C, HPS_CTL_JOIN, join_c);
	assert_told(&s, B, HPS_CTL_GO);
	say(&s, 300, HPS_CTL_JOIN,
	    "{'name':'work@late','incarnation':1,'nodes':[4]," SETTINGS "}}");
	assert_told_error(&s, 300, HPS_CTL_REFUSED, HPS_NET, "work@late", "has begun without it");
	teardown(&s);
}

static void test_strangers_are_not_listened_to(void **state)
{
	struct hps_msg junk = { .head.type = HPS_MSG_CONTROL, .head.arg = HPS_CTL_JOIN };
	struct hps_err err;
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	assert_int_equal(say_err(&s, 300, HPS_CTL_EPOCH_DONE, "{'epoch':0}", &err), HPS_NET);
	assert_int_equal(say_err(&s, 300, HPS_CTL_JOIN, "{'name':3}", &err), HPS_NET);
	assert_int_equal(say_err(&s, 300, HPS_CTL_GO, NULL, &err), HPS_NET);
	assert_int_equal(hps_msg_copy(&junk, "\x01\x02", 2, NULL), HPS_OK);
	assert_int_equal(hps_coord_message(s.coord, 300, &junk, s.now_s, &s.out, &err), HPS_NET);
	join_all(&s); /* and the job goes on */
	assert_int_equal(say_err(&s, 300, HPS_CTL_BYE, NULL, &err), HPS_NET);
	assert_int_equal(hps_coord_want(s.coord), HPS_COORD_NOTHING);
	teardown(&s);
}

static void test_eval_needs_a_loaded_model(void **state)
{
	static const char join[] =
		"{'name':'work@a','incarnation':11,'nodes':[3],'settings':{'mode':'eval',"
		"'epochs':1,'test':true}}";
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	say(&s, A, HPS_CTL_JOIN, join);
	assert_told_error(&s, A, HPS_CTL_REFUSED, HPS_BAD_INPUT, "serve@here", "no trained model");
	teardown(&s);
	setup(&s, HPS_BSP, true);
	say(&s, A, HPS_CTL_JOIN, join);
	assert_told(&s, A, HPS_CTL_WELCOME);
	teardown(&s);
}

/* --- missing and dead --- */

static void tick(struct setup *s, double to_s)
{
	for (; s->now_s < to_s; s->now_s += 0.25)
		assert_int_equal(hps_coord_tick(s->coord, s->now_s, &s->out, NULL), HPS_OK);
}

static void test_the_missing_are_named(void **state)
{
	struct setup s;
	struct hps_doc *d;
	struct hps_at at, missing;
	const char *who;

	(void)state;
	setup(&s, HPS_BSP, false);
	say(&s, A, HPS_CTL_JOIN, join_a);
	tick(&s, 102);
	d = told(&s, A, HPS_CTL_HEARTBEAT);
	assert_non_null(d);
	at = hps_at_root(d, "heartbeat");
	missing = hps_at_member(&at, "missing");
	assert_int_equal(hps_at_string(&missing, &who, NULL), HPS_OK);
	assert_non_null(strstr(who, "shard 1 on host c (hps-serve)"));
	assert_non_null(strstr(who, "stage 1 replica 0 on host b (hps-work)"));
	hps_doc_free(d);
	for (double t = 102; t < 110; t += 1) {
		say(&s, A, HPS_CTL_HEARTBEAT, NULL);
		tick(&s, t);
	}
	assert_int_equal(hps_coord_want(s.coord), HPS_COORD_NOTHING);
	tick(&s, 111);
	assert_told_error(&s, A, HPS_CTL_ABORT, HPS_NET, "", "stage 1 replica 0 on host b");
	assert_outcome(&s, HPS_NET, "", "within 10 s; missing: shard 1 on host c");
	teardown(&s);
}

static void test_a_silent_member_is_dead(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	join_all(&s);
	for (double t = 101; t < 107; t += 1) {
		say(&s, A, HPS_CTL_HEARTBEAT, NULL);
		say(&s, C, HPS_CTL_HEARTBEAT, NULL);
		tick(&s, t);
	}
	assert_told_error(&s, A, HPS_CTL_ABORT, HPS_NET, "work@b", "silent for 5 s");
	assert_told(&s, C, HPS_CTL_ABORT);
	assert_outcome(&s, HPS_NET, "work@b", "silent");
	teardown(&s);
}

static void test_an_error_ends_the_job_for_all(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	join_all(&s);
	say(&s, A, HPS_CTL_ERROR,
	    "{'status':3,'where':'train.tsv:17','msg':'column 3: no number','hint':'look'}");
	assert_told_error(&s, B, HPS_CTL_ABORT, HPS_BAD_INPUT, "work@a: train.tsv:17", "column 3");
	assert_told(&s, C, HPS_CTL_ABORT);
	assert_outcome(&s, HPS_BAD_INPUT, "work@a: train.tsv:17", "column 3: no number");
	/* what comes late is let go */
	say(&s, B, HPS_CTL_HEARTBEAT, NULL);
	say(&s, B, HPS_CTL_BYE, NULL);
	teardown(&s);
}

static void test_a_failure_of_the_servers_ends_the_job(void **state)
{
	struct hps_err why = { 0 };
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	join_all(&s);
	hps_err_set(&why, HPS_MEMORY, "out of memory");
	assert_int_equal(hps_coord_fail(s.coord, &why, s.now_s, &s.out, NULL), HPS_OK);
	assert_told_error(&s, A, HPS_CTL_ABORT, HPS_MEMORY, "serve@here", "out of memory");
	assert_outcome(&s, HPS_MEMORY, "serve@here", "out of memory");
	teardown(&s);
}

static void test_nonsense_of_a_member_ends_the_job(void **state)
{
	static const struct {
		uint32_t peer;
		enum hps_control kind;
		const char *body;
	} bad[] = {
		{ B, HPS_CTL_STEPS, "{'step':[0],'mb':[0],'loss':[1.0]}" },
		{ B, HPS_CTL_STEPS, "{'step':[0],'mb':[1],'loss':[1.0],'count':[24]}" },
		{ B, HPS_CTL_STEPS, "{'step':[0,1],'mb':[0],'loss':[1.0],'count':[24]}" },
		{ B, HPS_CTL_STEPS, "{'step':[0,0],'mb':[0,0],'loss':[1,1],'count':[24,24]}" },
		{ B, HPS_CTL_STEPS, "{'step':[9000],'mb':[0],'loss':[1.0],'count':[24]}" },
		{ A, HPS_CTL_STEPS, "{'step':[0],'mb':[0],'loss':[1.0],'count':[24]}" },
		{ A, HPS_CTL_EPOCH_DONE, "{'epoch':1,'steps':2,'skipped':0}" },
		{ A, HPS_CTL_EPOCH_DONE, "{'epoch':0,'steps':-2,'skipped':0}" },
		{ A, HPS_CTL_LEASE, "{'epoch':0,'node':3}" }, /* bsp */
		{ A, HPS_CTL_SCORES, "{'epoch':0,'step':0,'mb':0}" },
		{ A, HPS_CTL_FINISHED, NULL },
		{ C, HPS_CTL_SAVED, "{'path':null,'tables':[]}" },
		{ A, HPS_CTL_PRINTED, "{'step':0}" },
		{ A, HPS_CTL_EVAL_DONE, "{'skipped':0}" },
		{ C, HPS_CTL_EPOCH_DONE, "{'epoch':0,'steps':2,'skipped':0}" },
		{ A, HPS_CTL_ABORT, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hps_err err = { 0 };
		struct setup s;

		setup(&s, HPS_BSP, false);
		join_all(&s);
		if (say_err(&s, bad[i].peer, bad[i].kind, bad[i].body, &err) == HPS_OK)
			fail_msg("case %zu was accepted", i);
		assert_int_equal(hps_coord_want(s.coord), HPS_COORD_OVER);
		assert_told(&s, bad[i].peer == A ? B : A, HPS_CTL_ABORT);
		teardown(&s);
	}
}

/* --- a job from start to end --- */

static void test_epochs_finish_save_and_leave(void **state)
{
	struct hps_coord_table table = { .rows = 5, .bytes = 50, .refused = 1 };
	struct hps_coord_stats stats;
	struct setup s;
	struct hps_doc *d;
	struct hps_at at, m;
	uint64_t n;
	double loss;

	(void)state;
	setup(&s, HPS_BSP, false);
	join_all(&s);
	/* out of order: steps are told in order */
	say(&s, B, HPS_CTL_STEPS, "{'step':[1],'mb':[0],'loss':[2.5],'count':[10]}");
	assert_not_told(&s, B, HPS_CTL_STEP);
	say(&s, B, HPS_CTL_STEPS, "{'step':[0],'mb':[0],'loss':[1.5],'count':[24]}");
	d = told(&s, B, HPS_CTL_STEP);
	assert_non_null(d);
	at = hps_at_root(d, "step");
	m = hps_at_member(&at, "step");
	assert_int_equal(hps_at_u64(&m, 0, 0, &n, NULL), HPS_OK);
	m = hps_at_member(&at, "loss");
	assert_int_equal(hps_at_double(&m, 1.5, 1.5, &loss, NULL), HPS_OK);
	hps_doc_free(d);
	assert_told(&s, B, HPS_CTL_STEP);
	say(&s, A, HPS_CTL_EPOCH_DONE, "{'epoch':0,'steps':2,'skipped':3}");
	assert_not_told(&s, A, HPS_CTL_FINISH);
	say(&s, B, HPS_CTL_EPOCH_DONE, "{'epoch':0,'steps':2,'skipped':0}");
	assert_told(&s, A, HPS_CTL_FINISH);
	say(&s, A, HPS_CTL_FINISHED, NULL);
	assert_int_equal(hps_coord_want(s.coord), HPS_COORD_NOTHING);
	say(&s, B, HPS_CTL_FINISHED, NULL);
	assert_int_equal(hps_coord_want(s.coord), HPS_COORD_SAVE);
	assert_told(&s, C, HPS_CTL_SAVE);
	assert_int_equal(hps_coord_saved(s.coord, "/state", &table, s.now_s, &s.out, NULL), HPS_OK);
	assert_not_told(&s, A, HPS_CTL_DONE);
	say(&s, C, HPS_CTL_SAVED, "{'path':'/other','tables':[{'rows':7,'bytes':70,'refused':2}]}");
	d = told(&s, B, HPS_CTL_DONE);
	assert_non_null(d);
	at = hps_at_root(d, "done");
	m = hps_at_member(&at, "skipped");
	assert_int_equal(hps_at_u64(&m, 3, 3, &n, NULL), HPS_OK);
	m = hps_at_member(&at, "samples");
	assert_int_equal(hps_at_u64(&m, 34, 34, &n, NULL), HPS_OK);
	m = hps_at_member(&at, "loss");
	assert_int_equal(hps_at_double(&m, 4.0 / 34, 4.0 / 34, &loss, NULL), HPS_OK);
	m = hps_at_member(&at, "tables");
	m = hps_at_member(&m, "emb");
	m = hps_at_member(&m, "refused");
	assert_int_equal(hps_at_u64(&m, 3, 3, &n, NULL), HPS_OK);
	hps_doc_free(d);
	hps_coord_stats(s.coord, &stats);
	assert_int_equal(stats.next_step, 2);
	say(&s, A, HPS_CTL_BYE, NULL);
	say(&s, B, HPS_CTL_BYE, NULL);
	assert_int_equal(hps_coord_want(s.coord), HPS_COORD_NOTHING);
	say(&s, C, HPS_CTL_BYE, NULL);
	assert_outcome(&s, HPS_OK, "", "");
	teardown(&s);
}

static void test_disagreement_on_steps_is_told(void **state)
{
	struct hps_err err = { 0 };
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	join_all(&s);
	say(&s, A, HPS_CTL_EPOCH_DONE, "{'epoch':0,'steps':2,'skipped':0}");
	assert_int_equal(
		say_err(&s, B, HPS_CTL_EPOCH_DONE, "{'epoch':0,'steps':3,'skipped':0}", &err),
		HPS_BAD_INPUT);
	assert_outcome(&s, HPS_BAD_INPUT, "work@b", "3 steps here, elsewhere 2");
	teardown(&s);
}

static void test_an_interrupt_holds_then_stops(void **state)
{
	struct hps_doc *d;
	struct hps_at at, m;
	struct setup s;
	uint64_t step;

	(void)state;
	setup(&s, HPS_BSP, false);
	join_all(&s);
	say(&s, B, HPS_CTL_INTERRUPT, NULL);
	assert_told(&s, A, HPS_CTL_HOLD);
	assert_not_told(&s, B, HPS_CTL_HOLD); /* no first-stage replica there */
	say(&s, A, HPS_CTL_INTERRUPT, NULL);  /* once is enough */
	assert_not_told(&s, A, HPS_CTL_HOLD);
	say(&s, A, HPS_CTL_HELD, "{'epoch':0,'step':2}");
	d = told(&s, A, HPS_CTL_STOP);
	assert_non_null(d);
	at = hps_at_root(d, "stop");
	m = hps_at_member(&at, "step");
	assert_int_equal(hps_at_u64(&m, 2, 2, &step, NULL), HPS_OK);
	hps_doc_free(d);
	teardown(&s);
}

static void test_an_interrupt_before_the_start_ends_it(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	say(&s, A, HPS_CTL_JOIN, join_a);
	assert_int_equal(hps_coord_interrupt(s.coord, s.now_s, &s.out, NULL), HPS_OK);
	assert_told(&s, A, HPS_CTL_DONE);
	assert_outcome(&s, HPS_OK, "", "");
	teardown(&s);
}

static uint64_t lease(struct setup *s)
{
	struct hps_doc *d;
	struct hps_at at, m;
	uint64_t step;

	say(s, A, HPS_CTL_LEASE, "{'epoch':0,'node':3}");
	d = told(s, A, HPS_CTL_LEASE);
	assert_non_null(d);
	at = hps_at_root(d, "lease");
	m = hps_at_member(&at, "step");
	assert_int_equal(hps_at_u64(&m, 0, UINT64_MAX, &step, NULL), HPS_OK);
	hps_doc_free(d);
	return step;
}

static void test_leases_are_in_order_and_end_with_the_data(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, HPS_ASP, false);
	join_all(&s);
	assert_int_equal(lease(&s), 0);
	assert_int_equal(lease(&s), 1);
	say(&s, A, HPS_CTL_DATA_END, "{'epoch':0,'rows':49}"); /* chunks of 24: three */
	assert_int_equal(lease(&s), 2);
	assert_true(lease(&s) == HPS_NONE);
	teardown(&s);
	setup(&s, HPS_ASP, false);
	join_all(&s);
	assert_int_equal(lease(&s), 0);
	assert_int_equal(hps_coord_interrupt(s.coord, s.now_s, &s.out, NULL), HPS_OK);
	assert_true(lease(&s) == HPS_NONE);
	teardown(&s);
}

/* --- the member's side --- */

static struct hps_member *member(struct setup *s)
{
	uint32_t node = 3;
	struct hps_member_opts o = { .job = &s->tiny.job,
				     .name = "work@a",
				     .incarnation = 11,
				     .node = &node,
				     .n_nodes = 1,
				     .settings = doc("{'mode':'train','epochs':1,'test':false}"),
				     .timeout_s = 10 };
	struct hps_member *m;

	assert_int_equal(hps_member_new(&o, s->now_s, &m, NULL), HPS_OK);
	return m;
}

static void test_a_member_names_an_absent_coordinator(void **state)
{
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	struct hps_member *m;
	struct setup s;
	double t;

	(void)state;
	setup(&s, HPS_BSP, false);
	m = member(&s);
	for (t = 100; t <= 110; t += 0.25)
		assert_int_equal(hps_member_tick(m, t, &out, &err), HPS_OK);
	assert_in_range(out.n, 20, 22); /* it asked again and again */
	assert_int_equal(hps_member_tick(m, t, &out, &err), HPS_NET);
	assert_non_null(strstr(err.msg, "hps-serve on here"));
	assert_non_null(strstr(err.msg, "has not answered within 10 s"));
	hps_outbox_release(&out);
	hps_member_free(m);
	teardown(&s);
}

/* Carry what the member says to the coordinator and back. */
static enum hps_status carry(struct setup *s, struct hps_member *m, struct hps_outbox *out,
			     struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (size_t i = 0; i < out->n; i++) {
		struct hps_msg msg = out->item[i].msg;

		out->item[i].msg = (struct hps_msg){ 0 };
		hps_coord_message(s->coord, A, &msg, s->now_s, &s->out, NULL);
	}
	out->n = 0;
	for (size_t i = 0; i < s->out.n; i++) {
		struct hps_msg msg = s->out.item[i].msg;
		struct hps_notice n = { 0 };

		s->out.item[i].msg = (struct hps_msg){ 0 };
		if (s->out.item[i].dst != A || st != HPS_OK) {
			hps_msg_release(&msg);
			continue;
		}
		st = hps_member_message(m, &msg, s->now_s, &n, err);
		hps_notice_release(&n);
	}
	s->out.n = 0;
	return st;
}

static void test_a_member_names_the_missing_and_the_dead(void **state)
{
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	struct hps_member *m;
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	m = member(&s);
	for (; s.now_s < 109; s.now_s += 0.5) {
		assert_int_equal(hps_member_tick(m, s.now_s, &out, &err), HPS_OK);
		assert_int_equal(hps_coord_tick(s.coord, s.now_s, &s.out, NULL), HPS_OK);
		assert_int_equal(carry(&s, m, &out, &err), HPS_OK);
	}
	assert_true(hps_member_in(m));
	assert_int_equal(hps_member_tick(m, 110.5, &out, &err), HPS_NET);
	assert_non_null(strstr(err.msg, "missing: shard 1 on host c"));
	hps_member_free(m);
	hps_outbox_release(&out);

	s.now_s = 109;
	m = member(&s); /* a coordinator that falls silent */
	assert_int_equal(hps_member_tick(m, s.now_s, &out, &err), HPS_OK);
	assert_int_equal(carry(&s, m, &out, &err), HPS_OK);
	assert_true(hps_member_in(m));
	assert_int_equal(hps_member_tick(m, s.now_s + 4.9, &out, &err), HPS_OK);
	assert_int_equal(hps_member_tick(m, s.now_s + 5.1, &out, &err), HPS_NET);
	assert_non_null(strstr(err.msg, "has been silent for 5 s"));
	hps_member_free(m);
	hps_outbox_release(&out);
	teardown(&s);
}

static void test_a_member_ends_with_the_job(void **state)
{
	struct hps_outbox out = { 0 };
	struct hps_err err = { 0 };
	struct hps_member *m;
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	m = member(&s);
	assert_int_equal(hps_member_tick(m, s.now_s, &out, &err), HPS_OK);
	assert_int_equal(carry(&s, m, &out, &err), HPS_OK);
	hps_err_set(&err, HPS_IO, "disk full");
	assert_int_equal(hps_coord_fail(s.coord, &err, s.now_s, &s.out, NULL), HPS_OK);
	assert_int_equal(carry(&s, m, &out, &err), HPS_IO);
	assert_string_equal(err.where, "serve@here");
	assert_string_equal(err.msg, "disk full");
	hps_member_free(m);
	hps_outbox_release(&out);
	teardown(&s);
}

/* --- a job that cannot go on --- */

static void test_a_member_refused_by_the_socket_ends_the_job(void **state)
{
	struct setup s;
	struct hps_err why = { 0 };

	(void)state;
	setup(&s, HPS_BSP, false);
	join_all(&s);
	hps_err_set(&why, HPS_NET, "a damaged message");
	assert_int_equal(hps_coord_refused(s.coord, 555, &why, &s.out, NULL), HPS_OK);
	assert_int_equal(hps_coord_want(s.coord), HPS_COORD_NOTHING); /* a stranger */
	assert_int_equal(hps_coord_refused(s.coord, B, &why, &s.out, NULL), HPS_OK);
	assert_outcome(&s, HPS_NET, "work@b", "sent the coordinator what does not hold: a damaged");
	assert_told_error(&s, A, HPS_CTL_ABORT, HPS_NET, "work@b", "damaged");
	assert_told_error(&s, C, HPS_CTL_ABORT, HPS_NET, "work@b", "damaged");
	teardown(&s);
}

/* Heartbeats alone do not keep a job alive that was told to stop. */
static void test_a_job_that_stands_still_can_be_stopped(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, HPS_BSP, false);
	join_all(&s);
	say(&s, A, HPS_CTL_INTERRUPT, NULL);
	for (int i = 0; i < 15; i++) {
		assert_int_equal(hps_coord_want(s.coord), HPS_COORD_NOTHING);
		s.now_s += 1;
		say(&s, A, HPS_CTL_HEARTBEAT, NULL);
		say(&s, B, HPS_CTL_HEARTBEAT, NULL);
		say(&s, C, HPS_CTL_HEARTBEAT, NULL);
		assert_int_equal(hps_coord_tick(s.coord, s.now_s, &s.out, NULL), HPS_OK);
	}
	s.now_s += 0.5;
	assert_int_equal(hps_coord_tick(s.coord, s.now_s, &s.out, NULL), HPS_OK);
	assert_outcome(&s, HPS_NET, "", "nothing has moved for 15 s");
	assert_told_error(&s, B, HPS_CTL_ABORT, HPS_NET, "", "nothing is saved");
	teardown(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_go_when_all_are_in),
		cmocka_unit_test(test_a_repeated_join_is_answered_again),
		cmocka_unit_test(test_who_is_refused),
		cmocka_unit_test(test_strangers_are_not_listened_to),
		cmocka_unit_test(test_eval_needs_a_loaded_model),
		cmocka_unit_test(test_the_missing_are_named),
		cmocka_unit_test(test_a_silent_member_is_dead),
		cmocka_unit_test(test_an_error_ends_the_job_for_all),
		cmocka_unit_test(test_a_failure_of_the_servers_ends_the_job),
		cmocka_unit_test(test_nonsense_of_a_member_ends_the_job),
		cmocka_unit_test(test_epochs_finish_save_and_leave),
		cmocka_unit_test(test_disagreement_on_steps_is_told),
		cmocka_unit_test(test_an_interrupt_holds_then_stops),
		cmocka_unit_test(test_an_interrupt_before_the_start_ends_it),
		cmocka_unit_test(test_a_member_refused_by_the_socket_ends_the_job),
		cmocka_unit_test(test_a_job_that_stands_still_can_be_stopped),
		cmocka_unit_test(test_leases_are_in_order_and_end_with_the_data),
		cmocka_unit_test(test_a_member_names_an_absent_coordinator),
		cmocka_unit_test(test_a_member_names_the_missing_and_the_dead),
		cmocka_unit_test(test_a_member_ends_with_the_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
