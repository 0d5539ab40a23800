/* Every op, every loss and one step of the four models against PyTorch, in double:
 * tests/golden/make_golden.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "nn_case.h"
#include "optim/optim.h"

/* Within 1e-5 of each value, or of the tensor's rms where the value is smaller. */
static void same_tensor(const struct nn_case *c, const char *what, const double *want,
			const double *got, size_t n)
{
	double rms = 0;

	for (size_t i = 0; i < n; i++)
		rms += want[i] * want[i] / (double)n;
	rms = sqrt(rms);
	for (size_t i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) <= 1e-5 * fmax(fabs(want[i]), rms)))
			fail_msg("%s: %s[%zu]: %.9g, golden %.9g", c->model.name, what, i, got[i],
				 want[i]);
}

static double *widen(const float *v, size_t n)
{
	double *out = calloc(n ? n : 1, sizeof(*out));

	assert_non_null(out);
	for (size_t i = 0; i < n; i++)
		out[i] = v[i];
	return out;
}

static void check_floats(const struct nn_case *c, const char *what, const float *got, size_t n)
{
	size_t n_want;
	double *want = nn_numbers(nn_member(c->doc, "result"), what, &n_want);
	double *wide = widen(got, n);

	assert_int_equal(n, n_want);
	same_tensor(c, what, want, wide, n);
	free(want);
	free(wide);
}

/* A row's gradient sum over the lookups of its table. */
static void sum_row(const struct nn_run *run, uint32_t table, uint64_t key, uint32_t dim, float *g)
{
	double sum[64] = { 0 };

	assert_true(dim <= 64);
	for (uint32_t i = 0; i < run->n_lookups; i++) {
		const struct nn_rows *u = &run->lookup[i];

		for (uint32_t k = 0; u->table == table && k < u->n; k++)
			for (uint32_t d = 0; u->key[k] == key && d < dim; d++)
				sum[d] += u->grad[(size_t)k * dim + d];
	}
	for (uint32_t d = 0; d < dim; d++)
		g[d] = (float)sum[d];
}

static void check_row_step(const struct nn_case *c, uint32_t table, uint64_t key, const float *grad,
			   const struct hps_at *want_after)
{
	const struct hps_optim o = {
		.rule = HPS_RULE_ADAGRAD, .lr = 0.05f, .accumulator = 0.1f, .eps = 1e-10f
	};
	uint32_t dim = c->model.table[table].dim;
	float w[64], state[64];
	double *after, *wide;
	size_t n;

	for (uint32_t d = 0; d < dim; d++)
		w[d] = nn_row_value(table, key, d);
	hps_optim_state_init(&o, state, dim);
	hps_optim_update(&o, w, state, dim, grad, c->rows, 1, dim);
	after = nn_numbers(want_after->node, NULL, &n);
	wide = widen(w, dim);
	same_tensor(c, "row after a step", after, wide, dim);
	free(after);
	free(wide);
}

static void check_rows(const struct nn_case *c, const struct nn_run *run)
{
	struct hps_at result = hps_at_root(nn_member(c->doc, "result"), "result");
	struct hps_at rows = hps_at_member(&result, "row_grads");
	struct hps_at after = hps_at_member(&result, "rows_after");
	size_t seen = 0;

	for (size_t i = 0; i < hps_at_count(&rows); i++) {
		struct hps_at item = hps_at_item(&rows, i), step = hps_at_item(&after, i);
		size_t n, n_grad;
		double *table = nn_numbers(item.node, "table", &n);
		double *key = nn_numbers(item.node, "key", &n);
		double *want = nn_numbers(item.node, "grad", &n_grad), *wide;
		float got[64];

		sum_row(run, (uint32_t)*table, (uint64_t)*key, (uint32_t)n_grad, got);
		wide = widen(got, n_grad);
		same_tensor(c, "row gradient", want, wide, n_grad);
		check_row_step(c, (uint32_t)*table, (uint64_t)*key, got, &step);
		free(table);
		free(key);
		free(want);
		free(wide);
	}
	/* No row that the golden values do not have. */
	for (uint32_t i = 0; i < run->n_lookups; i++)
		seen += run->lookup[i].n;
	assert_true(seen >= hps_at_count(&rows));
	assert_true((seen > 0) == (c->model.n_tables > 0));
}

static void check_dense_step(const struct nn_case *c, const float *grads)
{
	const struct hps_optim adam = {
		.rule = HPS_RULE_ADAM, .lr = 0.001f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f
	};
	size_t n = c->graph.n_floats;
	float *w = calloc(n, sizeof(*w)), *state = calloc(2 * n, sizeof(*state));

	assert_non_null(w);
	assert_non_null(state);
	for (size_t i = 0; i < n; i++)
		w[i] = c->params[i];
	hps_optim_state_init(&adam, state, n);
	hps_optim_update(&adam, w, state, n, grads, c->rows, 1, n);
	check_floats(c, "params_after", w, n);
	free(w);
	free(state);
}

static void check_case(const struct nn_case *c)
{
	uint32_t last = c->model.n_layers - 1;
	struct nn_run run;
	double *loss;
	size_t n;

	nn_case_run(c, &last, 1, c->rows, c->rows, &run);
	loss = nn_numbers(nn_member(c->doc, "result"), "loss", &n);
	same_tensor(c, "loss", loss, &run.loss, 1);
	free(loss);
	check_floats(c, "scores", run.scores, c->rows);
	check_floats(c, "grads", run.grads, c->graph.n_floats);
	check_rows(c, &run);
	if (c->graph.n_floats > 0)
		check_dense_step(c, run.grads);
	nn_run_release(&run);
}

static void test_models(void **state)
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
		cmocka_unit_test(test_models),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
