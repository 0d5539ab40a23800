/* Is the table of connections bounded, and does it forget only whom it may? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "net/net.h"
#include "net/net_int.h"

static void found_by_id_and_by_number(void **state)
{
	struct hps_conns c;

	(void)state;
	assert_int_equal(hps_conns_init(&c, 10, NULL), HPS_OK);
	for (uint64_t i = 1; i <= 1000; i++) {
		assert_null(hps_conns_find(&c, i << 8));
		assert_int_equal(hps_conns_add(&c, i << 8,
					       i % 2 ? HPS_PEER_ANON + c.n_anon : (uint32_t)i % 10,
					       false, NULL),
				 HPS_OK);
	}
	for (uint64_t i = 1; i <= 1000; i++)
		assert_int_equal(hps_conns_find(&c, i << 8)->id, i << 8);
	assert_int_equal(c.n_anon, 500);
	for (uint32_t i = 0; i < 500; i++)
		assert_int_equal(hps_conns_route(&c, HPS_PEER_ANON + i), (2 * i + 1) << 8);
	assert_int_equal(hps_conns_route(&c, HPS_PEER_ANON + 500), 0);
	assert_int_equal(hps_conns_route(&c, 3), 0); /* nothing believed from there yet */
	c.node[3] = 5;
	assert_int_equal(hps_conns_route(&c, 3), 5);
	assert_int_equal(hps_conns_route(&c, 10), 0);
	hps_conns_release(&c);
}

static void the_refused_make_room(void **state)
{
	struct hps_conns c;
	uint64_t id;

	(void)state;
	assert_int_equal(hps_conns_init(&c, 1, NULL), HPS_OK);
	for (id = 1; id <= HPS_MAX_CONNS; id++)
		if (hps_conns_add(&c, id, HPS_PEER_ANON, id % 4 != 0, NULL) != HPS_OK)
			fail_msg("connection %llu", (unsigned long long)id);
	assert_int_equal(c.n, HPS_MAX_CONNS);
	assert_int_equal(hps_conns_add(&c, id, HPS_PEER_ANON, false, NULL), HPS_OK);
	assert_int_equal(c.n, HPS_MAX_CONNS / 4 + 1);
	assert_null(hps_conns_find(&c, 1));
	assert_non_null(hps_conns_find(&c, 4));
	assert_non_null(hps_conns_find(&c, HPS_MAX_CONNS));
	assert_non_null(hps_conns_find(&c, id));
	for (id++; c.n < HPS_MAX_CONNS; id++)
		if (hps_conns_add(&c, id, 0, false, NULL) != HPS_OK)
			fail_msg("connection %llu", (unsigned long long)id);
	assert_int_equal(hps_conns_add(&c, id, 0, false, NULL), HPS_NO);
	assert_null(hps_conns_find(&c, id));
	hps_conns_release(&c);
}

static void without_memory_it_stands(void **state)
{
	struct hps_conns c;
	uint64_t id = 1;

	(void)state;
	assert_int_equal(hps_conns_init(&c, 1, NULL), HPS_OK);
	for (unsigned long fail = 1; fail < 40; fail++) {
		enum hps_status st;

		do {
			hps_mem_fail_at(1);
			st = hps_conns_add(&c, id, HPS_PEER_ANON + c.n_anon, false, NULL);
			hps_mem_fail_at(0);
			id += st == HPS_OK;
		} while (st == HPS_OK);
		assert_int_equal(st, HPS_MEMORY);
		for (uint64_t i = 1; i < id; i++)
			assert_non_null(hps_conns_find(&c, i));
		assert_null(hps_conns_find(&c, id));
		assert_int_equal(hps_conns_add(&c, id, HPS_PEER_ANON + c.n_anon, false, NULL),
				 HPS_OK);
		id++;
		if (c.n > 5000)
			break;
	}
	assert_int_equal(c.n, id - 1);
	hps_conns_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_id_and_by_number),
		cmocka_unit_test(the_refused_make_room),
		cmocka_unit_test(without_memory_it_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
