/* Formula and simulator agree where the formula's assumptions hold (sim/sim.h): random cases. */
#include <math.h>
#include "cm.h"
#include "sim_case.h"

enum { CASES = 60 };

static void family(enum sim_family f, double tolerance)
{
	uint32_t n = 0;

	for (uint64_t seed = 1; n < CASES; seed++) {
		struct sim_case c;

		if (sim_case_random(&c, f, seed)) {
			double error = sim_case_error(&c);

			n++;
			if (!(fabs(error) <= tolerance))
				fail_msg("%s, seed %llu: the simulator says %+.3f %%",
					 sim_family_name[f], (unsigned long long)seed, 100 * error);
		}
		sim_case_release(&c);
		assert_true(seed < 50 * CASES);
	}
}

/* The steady state, but for what the window's ends cut off. */
static void test_rates(void **state)
{
	(void)state;
	family(SIM_STAGE_RATE, 0.05);
	family(SIM_PIPELINE_RATE, 0.05);
	family(SIM_PAPER_RATE, 0.05);
	family(SIM_CORES_RATE, 0.05);
}

/* A step is a step. */
static void test_steps(void **state)
{
	(void)state;
	family(SIM_STAGE_STEP, 1e-6);
	family(SIM_PIPELINE_STEP, 1e-6);
	family(SIM_ROWS_STEP, 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
