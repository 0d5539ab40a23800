/* Any partition of the layers gives the same bits: losses, scores, parameter gradients and
 * row gradients, activations and their gradients passed by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "nn_case.h"

static void same_floats(const struct nn_case *c, const char *what, const float *a, const float *b,
			uint64_t n, const uint32_t *last, uint32_t stages)
{
	if (n > 0 && memcmp(a, b, n * sizeof(*a)) != 0)
		fail_msg("%s cut after %u and %u (%u stages): %s differ", c->model.name, last[0],
			 last[stages > 1 ? 1 : 0], stages, what);
}

static void same_run(const struct nn_case *c, const struct nn_run *a, const struct nn_run *b,
		     const uint32_t *last, uint32_t stages)
{
	if (memcmp(&a->loss, &b->loss, sizeof(a->loss)) != 0)
		fail_msg("%s cut after %u: loss %.17g and %.17g", c->model.name, last[0], a->loss,
			 b->loss);
	same_floats(c, "scores", a->scores, b->scores, a->rows, last, stages);
	same_floats(c, "parameter gradients", a->grads, b->grads, c->graph.n_floats, last, stages);
	assert_int_equal(a->n_lookups, b->n_lookups);
	for (uint32_t i = 0; i < a->n_lookups; i++) {
		const struct nn_rows *x = &a->lookup[i], *y = &b->lookup[i];

		assert_int_equal(x->layer, y->layer);
		assert_int_equal(x->n, y->n);
		assert_memory_equal(x->key, y->key, x->n * sizeof(*x->key));
		same_floats(c, "row gradients", x->grad, y->grad, (uint64_t)x->n * x->dim, last,
			    stages);
	}
}

static void one_cut(const struct nn_case *c, const struct nn_run *whole, const uint32_t *last,
		    uint32_t stages)
{
	struct nn_run run;

	nn_case_run(c, last, stages, c->rows, c->rows, &run);
	same_run(c, whole, &run, last, stages);
	nn_run_release(&run);
}

static void test_every_cut(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");
	unsigned tried = 0;

	for (size_t i = 0; i < nn_golden_count(golden); i++) {
		struct nn_run whole;
		struct nn_case c;
		uint32_t n;

		nn_case_init(&c, golden, i);
		n = c.model.n_layers;
		nn_case_run(&c, (uint32_t[]){ n - 1 }, 1, c.rows, c.rows, &whole);
		for (uint32_t a = 0; a + 1 < n; a++) {
			one_cut(&c, &whole, (uint32_t[]){ a, n - 1 }, 2);
			for (uint32_t b = a + 1; b + 1 < n; b++, tried++)
				one_cut(&c, &whole, (uint32_t[]){ a, b, n - 1 }, 3);
		}
		nn_run_release(&whole);
		nn_case_release(&c);
	}
	assert_true(tried > 200);
	hps_doc_free(golden);
}

/* Each layer a stage of its own. */
static void test_finest_cut(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");

	for (size_t i = 0; i < nn_golden_count(golden); i++) {
		struct nn_run whole;
		struct nn_case c;
		uint32_t last[64], n;

		nn_case_init(&c, golden, i);
		n = c.model.n_layers;
		assert_true(n <= 64);
		for (uint32_t l = 0; l < n; l++)
			last[l] = l;
		nn_case_run(&c, &last[n - 1], 1, c.rows, c.rows, &whole);
		one_cut(&c, &whole, last, n);
		nn_run_release(&whole);
		nn_case_release(&c);
	}
	hps_doc_free(golden);
}

/* A pass keeps nothing of the micro-batch before. */
static void test_used_passes(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");

	for (size_t i = 0; i < nn_golden_count(golden); i++) {
		struct nn_case c;
		uint32_t n;

		nn_case_init(&c, golden, i);
		n = c.model.n_layers;
		for (uint32_t a = 0; a < n; a++) {
			uint32_t last[2] = { a, n - 1 }, stages = a + 1 < n ? 2 : 1;
			struct nn_run fresh, used;

			nn_case_run(&c, last, stages, c.rows, c.rows, &fresh);
			c.used_passes = true;
			nn_case_run(&c, last, stages, c.rows, c.rows, &used);
			c.used_passes = false;
			same_run(&c, &fresh, &used, last, stages);
			nn_run_release(&fresh);
			nn_run_release(&used);
		}
		nn_case_release(&c);
	}
	hps_doc_free(golden);
}

/* Fewer rows than planned, down to none: the same as a pass planned for just these. */
static void test_fewer_rows(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");

	for (size_t i = 0; i < nn_golden_count(golden); i++) {
		struct nn_case c;

		nn_case_init(&c, golden, i);
		for (uint32_t rows = 0; rows <= c.rows; rows++) {
			uint32_t n = c.model.n_layers, last[2] = { (n - 1) / 2, n - 1 };
			uint32_t keep = c.rows;
			struct nn_run a, b;

			c.rows = rows; /* what negatives are stated for */
			c.used_passes = rows % 2;
			nn_case_run(&c, last, 2, rows, keep + 3, &a);
			c.used_passes = false;
			nn_case_run(&c, &last[1], 1, rows, rows ? rows : 1, &b);
			same_run(&c, &a, &b, last, 2);
			if (rows == 0)
				assert_true(a.loss == 0);
			c.rows = keep;
			nn_run_release(&a);
			nn_run_release(&b);
		}
		nn_case_release(&c);
	}
	hps_doc_free(golden);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_finest_cut),
		cmocka_unit_test(test_used_passes),
		cmocka_unit_test(test_fewer_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
