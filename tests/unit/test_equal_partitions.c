/* Does it matter how layers and rows are split? Against gradients in double, and after 20
 * steps against the unsplit job: only in rounding. */
#include <math.h>
#include <string.h>
#include <stdio.h>
#include "cm.h"

#include "oracle.h"
#include "ref64.h"
#include "tiny.h"

enum { BATCH = 24, STEPS = 20 };
static const double near = 1e-5;

static const char *const models[] = { "ctrdnn", "matchnet", "2emb", "nce", "shared" };
static const struct tiny_shape shapes[] = {
	{ .stages = 1, .replicas = { 1 }, .micro_batches = 1 },
	{ .stages = 1, .replicas = { 3 }, .micro_batches = 2, .dense_sync = HPS_DENSE_RING },
	{ .stages = 2, .replicas = { 2, 3 }, .micro_batches = 1 },
	{ .stages = 2, .replicas = { 1, 2 }, .micro_batches = 4, .dense_sync = HPS_DENSE_RING },
	{ .stages = 3, .replicas = { 3, 1, 2 }, .micro_batches = 2 },
	{ .stages = 3, .replicas = { 2, 2, 2 }, .micro_batches = 4 },
};

struct setup {
	struct tiny tiny;
	struct oracle *oracle;
	struct hps_batch data;
};

static void setup(struct setup *s, const char *model, size_t shape, uint32_t rows)
{
	struct tiny_shape t = shapes[shape];

	t.model = model;
	t.shards = 1;
	t.batch = BATCH;
	tiny_init(&s->tiny, &t);
	tiny_data(&s->tiny.job.model, rows, 3, &s->data);
	s->oracle = oracle_new(&s->tiny.job, &s->tiny.graph);
}

static void teardown(struct setup *s)
{
	oracle_free(s->oracle);
	hps_batch_release(&s->data);
	tiny_release(&s->tiny);
}

struct initial {
	const struct hps_model *model;
	uint64_t seed;
	float row[512];
};

static const float *initial_row(void *ctx, uint32_t table, uint64_t key)
{
	struct initial *i = ctx;

	hps_row_init(&i->model->table[table], table, key, i->seed, i->row);
	return i->row;
}

/* |a - b| / |b| over all gradients, dense and rows. */
static double grad_distance(const struct setup *s, const struct ref64 *ref)
{
	const struct hps_graph *g = &s->tiny.graph;
	double diff = 0, norm = 0;

	for (uint64_t i = 0; i < g->n_floats; i++) {
		diff += pow(oracle_dense_grad(s->oracle)[i] - ref->dense[i], 2);
		norm += pow(ref->dense[i], 2);
	}
	for (uint32_t t = 0; t < ref->n_tables; t++) {
		assert_int_equal(ref->rows[t].n, oracle_rows(s->oracle, t));
		for (size_t k = 0; k < ref->rows[t].n; k++) {
			uint32_t dim = g->model->table[t].dim;
			const float *row = oracle_row_grad(s->oracle, t, ref->rows[t].key[k]);

			assert_non_null(row);
			for (uint32_t c = 0; c < dim; c++) {
				double want = ref->rows[t].grad[k * dim + c];

				diff += pow(row[c] - want, 2);
				norm += want * want;
			}
		}
	}
	assert_true(norm > 0);
	return sqrt(diff / norm);
}

static void test_one_step(void **state)
{
	(void)state;
	for (size_t m = 0; m < sizeof(models) / sizeof(*models); m++)
		for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
			struct setup s;
			struct ref64 ref;
			struct initial init;
			double loss;
			float *start;

			setup(&s, models[m], i, BATCH);
			init = (struct initial){ .model = &s.tiny.job.model,
						 .seed = s.tiny.job.deployment.seed };
			start = test_malloc(s.tiny.graph.n_floats * sizeof(float));
			memcpy(start, oracle_dense(s.oracle),
			       s.tiny.graph.n_floats * sizeof(float));
			loss = oracle_step(s.oracle, 0, &s.data, 0, BATCH);
			ref64_gradient(&s.tiny.graph, start, initial_row, &init, &s.data, 0, BATCH,
				       init.seed, 0, &ref);
			assert_true(fabs(loss - ref.loss) <= near * fabs(ref.loss));
			assert_true(grad_distance(&s, &ref) <= near);
			ref64_release(&ref);
			test_free(start);
			teardown(&s);
		}
}

static double rms(const float *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * x[i];
	return sqrt(sum / (double)n);
}

static void assert_close(const float *a, const float *b, size_t n, double scale, const char *what)
{
	for (size_t i = 0; i < n; i++)
		if (!(fabs((double)a[i] - b[i]) <= near * scale))
			fail_msg("%s: element %zu: %.9g, unsplit %.9g, rms %g", what, i, a[i], b[i],
				 scale);
}

static void test_twenty_steps(void **state)
{
	/* sgd and adagrad with accumulator 0.1; the last step is short */
	static const char *const names[] = { "ctrdnn", "ctrdnn-sgd", "matchnet", "2emb", "nce" };

	(void)state;
	for (size_t m = 0; m < sizeof(names) / sizeof(*names); m++) {
		struct setup one;

		setup(&one, names[m], 0, BATCH * STEPS - 7);
		for (uint64_t t = 0; t < STEPS; t++)
			oracle_step(one.oracle, 0, &one.data, t * BATCH,
				    t + 1 < STEPS ? (t + 1) * BATCH : one.data.rows);
		for (size_t i = 1; i < sizeof(shapes) / sizeof(*shapes); i++) {
			const struct hps_graph *g = &one.tiny.graph;
			struct setup s;

			setup(&s, names[m], i, BATCH * STEPS - 7);
			for (uint64_t t = 0; t < STEPS; t++)
				oracle_step(s.oracle, 0, &s.data, t * BATCH,
					    t + 1 < STEPS ? (t + 1) * BATCH : s.data.rows);
			for (uint32_t p = 0; p < g->n_params; p++) {
				size_t n = (size_t)g->param[p].rows * g->param[p].cols;
				const float *want = oracle_dense(one.oracle) + g->param[p].offset;

				assert_close(oracle_dense(s.oracle) + g->param[p].offset, want, n,
					     rms(want, n), names[m]);
			}
			for (uint32_t t = 0; t < one.tiny.job.model.n_tables; t++) {
				uint32_t dim = one.tiny.job.model.table[t].dim;
				double sum = 0, scale;
				uint64_t key;

				assert_int_equal(oracle_rows(s.oracle, t),
						 oracle_rows(one.oracle, t));
				for (size_t r = 0; r < oracle_rows(one.oracle, t); r++)
					sum += pow(rms(oracle_row_at(one.oracle, t, r, &key), dim),
						   2);
				scale = sqrt(sum / (double)oracle_rows(one.oracle, t));
				for (size_t r = 0; r < oracle_rows(one.oracle, t); r++) {
					const float *want = oracle_row_at(one.oracle, t, r, &key);

					assert_close(oracle_row(s.oracle, t, key), want, dim, scale,
						     names[m]);
				}
			}
			teardown(&s);
		}
		teardown(&one);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_step),
		cmocka_unit_test(test_twenty_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
