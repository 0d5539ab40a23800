/* A trace is JSON, whatever layers are called, and keeps to its ceiling. */
#include <string.h>
#include "cm.h"
#include "doc/doc.h"
#include "draw/trace.h"
#include "sim_case.h"

static void test_hostile_names(void **state)
{
	struct hps_sim_result r;
	struct hps_solution s = { 0 };
	struct hps_problem p = { 0 };
	struct hps_trace t = { 0 };
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_doc *d;
	struct hps_at root, list, item, args;
	const char *name;
	struct sim_case c;
	uint32_t slices = 0;

	(void)state;
	sim_case_init(&c, 2, 1e-5);
	sim_case_pipeline(&c, 2);
	c.forward[0] = c.backward[0] = 40;
	c.profile.link.bandwidth = 1e6;
	assert_true(sim_case_ready(&c));
	c.size[0].name = (char *)"a\"],}\n\x01\xff</script>";
	p.cost = &c.cost;
	s.stage = c.stage;
	s.n_stages = 2;
	c.sim.steps = 2;
	c.sim.event = hps_trace_event;
	c.sim.arg = &t;
	assert_int_equal(hps_sim_run(&c.cost, &c.schedule, &c.sim, &r, NULL, NULL), HPS_OK);
	assert_int_equal(hps_trace_write(&t, &p, &s, &b, NULL), HPS_OK);
	assert_int_equal(hps_doc_parse(b.data, b.len, "trace", &d, NULL), HPS_OK);
	root = hps_at_root(d, "trace");
	list = hps_at_member(&root, "traceEvents");
	item = hps_at_item(&list, 0);
	args = hps_at_member(&item, "args");
	args = hps_at_member(&args, "name");
	assert_int_equal(hps_at_string(&args, &name, NULL), HPS_OK);
	assert_string_equal(name, "stage 0: a\"],}\n\x01\xef\xbf\xbd</script> .. "
				  "a\"],}\n\x01\xef\xbf\xbd</script> on t");
	for (size_t i = 0; i < hps_at_count(&list); i++) {
		struct hps_at ph;

		item = hps_at_item(&list, i);
		ph = hps_at_member(&item, "ph");
		assert_int_equal(hps_at_string(&ph, &name, NULL), HPS_OK);
		slices += !strcmp(name, "X");
	}
	assert_int_equal(slices, t.n);
	hps_doc_free(d);
	hps_buf_release(&b);
	hps_trace_release(&t);
	sim_case_release(&c);
}

static void test_ceiling(void **state)
{
	struct hps_sim_event e = { .kind = HPS_SIM_FORWARD };
	struct hps_trace t = { 0 };

	(void)state;
	for (int i = 0; i < HPS_TRACE_MOST + 3; i++)
		hps_trace_event(&t, &e);
	assert_int_equal(t.n, HPS_TRACE_MOST);
	assert_int_equal(t.left_out, 3);
	hps_trace_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
