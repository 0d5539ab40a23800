/* Gradients of every op and loss against central differences of the double reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "nn_case.h"

static const double step = 1e-5;

static double difference(const struct nn_case *c, struct nn_bump b)
{
	double up, down;

	b.delta = step;
	up = nn_case_loss64(c, &b);
	b.delta = -step;
	down = nn_case_loss64(c, &b);
	return (up - down) / (2 * step);
}

/* Gradients are sums of float32 products; the model's largest sets their rounding. */
static void close_to(const struct nn_case *c, const char *what, uint64_t i, double got, double want)
{
	if (!(fabs(got - want) <= 2e-5 * (1 + fabs(want))))
		fail_msg("%s: %s %llu: %.9g, differences say %.9g", c->model.name, what,
			 (unsigned long long)i, got, want);
}

/* A row's gradient over all lookups of its table. */
static double row_grad(const struct nn_run *run, uint32_t table, uint64_t key, uint32_t d)
{
	double sum = 0;

	for (uint32_t i = 0; i < run->n_lookups; i++) {
		const struct nn_rows *u = &run->lookup[i];

		for (uint32_t k = 0; u->table == table && k < u->n; k++)
			if (u->key[k] == key)
				sum += u->grad[(size_t)k * u->dim + d];
	}
	return sum;
}

static void check_case(const struct nn_case *c)
{
	uint32_t last = c->model.n_layers - 1;
	struct nn_run run;

	nn_case_run(c, &last, 1, c->rows, c->rows, &run);
	close_to(c, "loss", 0, run.loss, nn_case_loss64(c, NULL));
	for (uint64_t i = 0; i < c->graph.n_floats; i++)
		close_to(c, "parameter", i, run.grads[i],
			 difference(c, (struct nn_bump){ .param = (int64_t)i }));
	for (uint32_t l = 0; l < run.n_lookups; l++) {
		const struct nn_rows *u = &run.lookup[l];

		for (uint32_t k = 0; k < u->n; k++)
			for (uint32_t d = 0; d < u->dim; d++)
				close_to(c, "row element", u->key[k] * u->dim + d,
					 row_grad(&run, u->table, u->key[k], d),
					 difference(c, (struct nn_bump){ .param = -1,
									 .table = u->table,
									 .key = u->key[k],
									 .d = d }));
	}
	nn_run_release(&run);
}

static void test_finite_differences(void **state)
{
	struct hps_doc *golden = nn_golden("nn.json");

	assert_true(nn_golden_count(golden) >= 16);
	for (size_t i = 0; i < nn_golden_count(golden); i++) {
		struct nn_case c;

		nn_case_init(&c, golden, i);
		check_case(&c);
		nn_case_release(&c);
	}
	hps_doc_free(golden);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finite_differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
