/* Do the parts of a profile come together as stated: fits, sizes, merging, declaring, picking? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "measure/measure.h"

static const char model_text[] =
	"{\"name\": \"m\", \"inputs\": {\"slots\": 2, \"dense\": 3},"
	"\"tables\": [{\"name\": \"t\", \"dim\": 4, \"rows\": 100}],"
	"\"layers\": ["
	"{\"name\": \"emb\", \"op\": \"embedding\", \"table\": \"t\", \"slots\": [0, 1],"
	" \"pooling\": \"concat\"},"
	"{\"name\": \"in\", \"op\": \"concat\", \"inputs\": [\"emb\", \"dense\"]},"
	"{\"name\": \"fc\", \"op\": \"dense\", \"inputs\": [\"in\"], \"units\": 5},"
	"{\"name\": \"out\", \"op\": \"dense\", \"inputs\": [\"fc\"], \"units\": 1}],"
	"\"loss\": {\"kind\": \"sigmoid_cross_entropy\", \"inputs\": [\"out\"]},"
	"\"train\": {\"batch\": 64, \"optimizer\": {\"kind\": \"sgd\", \"lr\": 0.1}}}";

enum { LAYERS = 4 };

static void read_model(struct hps_model *m)
{
	struct hps_err err;
	struct hps_doc *d;
	struct hps_at at;

	assert_int_equal(hps_doc_parse(model_text, strlen(model_text), "m", &d, &err), HPS_OK);
	at = hps_at_root(d, "m");
	if (hps_model_read(&at, m, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
	hps_doc_free(d);
}

static void read_cluster(const char *text, struct hps_cluster *c)
{
	struct hps_err err;
	struct hps_doc *d;
	struct hps_at at;

	assert_int_equal(hps_doc_parse(text, strlen(text), "c", &d, &err), HPS_OK);
	at = hps_at_root(d, "c");
	if (hps_cluster_read(&at, c, &err) != HPS_OK)
		fail_msg("%s: %s", err.where, err.msg);
	hps_doc_free(d);
}

/* A profile of one type whose layer l takes (l + 1) * scale us and 10 * (l + 1) * scale ns a
 * sample, measured at 8 and 16. */
static void make_profile(const struct hps_model *m, const char *type, double scale,
			 struct hps_profile *p)
{
	struct hps_layer_time *t = calloc(LAYERS, sizeof(*t));

	assert_int_equal(hps_profile_sizes(m, NULL, p, NULL), HPS_OK);
	p->batches = calloc(2, sizeof(double));
	p->n_batches = 2;
	p->batches[0] = 8;
	p->batches[1] = 16;
	for (int l = 0; l < LAYERS; l++) {
		t[l].forward = t[l].backward =
			(struct hps_fit){ (l + 1) * scale * 1e-6, (l + 1) * scale * 1e-8, 0.01 };
		t[l].forward_s = calloc(2, sizeof(double));
		t[l].backward_s = calloc(2, sizeof(double));
		t[l].forward_s[0] = scale;
		t[l].oct = 1;
		t[l].alpha = 0.5;
	}
	assert_int_equal(hps_profile_add(p, type, false, t, NULL), HPS_OK);
	free(t);
}

static void close_to(double got, double want)
{
	if (fabs(got - want) > 1e-9 * fabs(want))
		fail_msg("%.17g, expected %.17g", got, want);
}

/* --- the fit --- */

/* A busy machine: small frames may take longer than large ones. */
static void a_link_under_noise(void **state)
{
	const double bytes[] = { 4096, 65536, 1 << 20 };
	const double line[] = { 1e-4 + 4096e-9, 1e-4 + 65536e-9, 1e-4 + (1 << 20) * 1e-9 };
	const double falls[] = { 8e-3, 4e-3, 2e-3 };
	struct hps_link l = hps_link_of(bytes, line, 3);

	(void)state;
	close_to(l.bandwidth, 1e9);
	close_to(l.latency, 1e-4);
	l = hps_link_of(bytes, falls, 3);
	close_to(l.bandwidth, (1 << 20) / 2e-3);
	assert_true(l.latency >= 0);
}

static void a_line_is_found(void **state)
{
	const double b[] = { 1, 4, 16, 64 };
	double s[4];
	struct hps_fit f;

	(void)state;
	for (int i = 0; i < 4; i++)
		s[i] = 3e-6 + 2e-7 * b[i];
	hps_fit_affine(b, s, 4, &f);
	close_to(f.c0, 3e-6);
	close_to(f.c1, 2e-7);
	assert_true(f.error < 1e-9);
	hps_fit_affine(b, s, 1, &f); /* one point: through the origin */
	close_to(f.c0 + f.c1 * b[0], s[0]);
}

static void no_part_is_negative(void **state)
{
	const double b[] = { 1, 2, 4, 8 }, falls[] = { 4, 3, 2, 1 };
	const double convex[] = { 1, 4, 16, 64 }; /* b * b: the plain line has c0 < 0 */
	struct hps_fit f;
	double sum_y = 0, sum_yy = 0;

	(void)state;
	hps_fit_affine(b, falls, 4, &f);
	assert_true(f.c1 == 0);
	assert_true(f.c0 > 1 && f.c0 < 4);
	hps_fit_affine(b, convex, 4, &f);
	assert_true(f.c0 == 0);
	for (int i = 0; i < 4; i++) {
		sum_y += b[i] / convex[i];
		sum_yy += b[i] / convex[i] * (b[i] / convex[i]);
	}
	close_to(f.c1, sum_y / sum_yy);
	close_to(f.error, fabs(f.c1 * 1 - 1) > fabs(f.c1 * 8 / 64 - 1) ? fabs(f.c1 - 1)
								       : fabs(f.c1 / 8 - 1));
}

/* Relative errors count: the smallest sum of them, found by looking around. */
static void the_fit_is_the_least(void **state)
{
	const double b[] = { 10, 100, 1000, 2000 }, s[] = { 2.1e-5, 1.3e-4, 1.4e-3, 2.6e-3 };
	struct hps_fit f;
	double best = 0;

	(void)state;
	hps_fit_affine(b, s, 4, &f);
	for (int i = 0; i < 4; i++)
		best += pow((f.c0 + f.c1 * b[i]) / s[i] - 1, 2);
	for (int dx = -2; dx <= 2; dx++)
		for (int dy = -2; dy <= 2; dy++) {
			double sum = 0;

			for (int i = 0; i < 4; i++)
				sum += pow(
					(f.c0 * (1 + 1e-3 * dx) + f.c1 * (1 + 1e-3 * dy) * b[i]) /
							s[i] -
						1,
					2);
			assert_true(sum >= best * (1 - 1e-12));
		}
}

/* --- sizes --- */

static void sizes_are_the_graphs(void **state)
{
	const double keys[LAYERS] = { 1.5, 0, 0, 0 };
	struct hps_profile p;
	struct hps_model m;

	(void)state;
	read_model(&m);
	assert_int_equal(hps_profile_sizes(&m, keys, &p, NULL), HPS_OK);
	assert_true(p.digest == m.digest);
	close_to(p.batch, 64);
	assert_int_equal(p.n_layers, LAYERS);
	assert_string_equal(p.size[2].name, "fc");
	close_to(p.size[2].param_bytes, 4 * (11 * 5 + 5));
	close_to(p.size[3].param_bytes, 4 * (5 + 1));
	close_to(p.size[0].sparse_keys, 1.5);
	close_to(p.size[0].sparse_bytes, 1.5 * 4 * 4);
	close_to(p.size[0].output_bytes, 2 * 4 * 4);
	/* row number and label, emb's output, the dense features */
	close_to(p.cut_forward_bytes[0], 12 + 32 + 12);
	close_to(p.cut_backward_bytes[0], 32);
	close_to(p.cut_forward_bytes[3], 0);
	hps_profile_release(&p);
	assert_int_equal(hps_profile_sizes(&m, NULL, &p, NULL), HPS_OK);
	close_to(p.size[0].sparse_keys, 2);
	hps_profile_release(&p);
	hps_model_release(&m);
}

/* --- merging --- */

static int told;

static void tell(const char *name, const char *type)
{
	assert_string_equal(name, "b.json");
	assert_string_equal(type, "a");
	told++;
}

static const char three_types[] =
	"{\"types\": [{\"name\": \"g\", \"device\": \"cuda\", \"price\": 1},"
	"{\"name\": \"d\", \"device\": \"cuda\", \"price\": 1, \"like\": \"a\", \"speed\": 4,"
	" \"op_speed\": {\"dense\": 20, \"embedding\": 0.5}},"
	"{\"name\": \"a\", \"price\": 1}]}";

static void profiles_are_joined(void **state)
{
	struct hps_profile p, other;
	struct hps_cluster c;
	struct hps_model m;
	struct hps_layer_time *t;

	(void)state;
	read_model(&m);
	read_cluster(three_types, &c);
	make_profile(&m, "a", 1, &p);
	make_profile(&m, "g", 3, &other);
	t = calloc(LAYERS, sizeof(*t));
	assert_int_equal(hps_profile_add(&other, "a", false, t, NULL), HPS_OK);
	assert_int_equal(hps_profile_add(&other, "elsewhere", false, t, NULL), HPS_OK);
	assert_int_equal(hps_profile_add(&other, "d", true, t, NULL), HPS_OK);
	free(t);
	other.link = (struct hps_link){ 1e9, 1e-5 };
	other.link_measured = true;
	other.shard.rows_per_s = 5;
	other.shard.measured = true;
	p.shard.rows_per_s = 6;
	p.shard.measured = true;

	told = 0;
	assert_int_equal(hps_profile_merge(&p, &other, "b.json", &c, tell, NULL), HPS_OK);
	assert_int_equal(told, 1);
	assert_int_equal(p.n_types, 2);
	assert_int_equal(hps_profile_type(&p, "a"), 0);
	assert_int_equal(hps_profile_type(&p, "g"), 1);
	close_to(p.time[0].forward.c0, 1e-6); /* its own a */
	close_to(p.time[LAYERS + 1].forward.c0, 6e-6);
	close_to(p.time[LAYERS + 1].forward_s[0], 3);
	close_to(p.link.bandwidth, 1e9);
	close_to(p.shard.rows_per_s, 6);

	/* declared: by kind of op where stated */
	assert_int_equal(hps_profile_derive(&p, &m, &c, NULL), HPS_OK);
	assert_int_equal(p.n_types, 3);
	assert_true(p.simulated[2]);
	assert_false(p.simulated[0] || p.simulated[1]);
	t = p.time + 2 * LAYERS;
	close_to(t[0].forward.c1, 1e-8 / 0.5);
	close_to(t[1].backward.c0, 2e-6 / 4);
	close_to(t[2].forward.c0, 3e-6 / 20);
	close_to(t[2].oct, 2 * (3e-6 + 3e-8 * 64) / 20);
	close_to(t[2].alpha, 3e-8 * 64 / (3e-6 + 3e-8 * 64));
	assert_null(t[0].forward_s);
	assert_int_equal(hps_profile_derive(&p, &m, &c, NULL), HPS_OK); /* not twice */
	assert_int_equal(p.n_types, 3);

	hps_profile_sort(&p, &c);
	assert_string_equal(p.type[0], "g");
	assert_string_equal(p.type[1], "d");
	assert_string_equal(p.type[2], "a");
	assert_true(p.simulated[1] && !p.simulated[2]);
	close_to(p.time[2 * LAYERS].forward.c0, 1e-6);

	hps_profile_release(&p);
	hps_profile_release(&other);
	hps_cluster_release(&c);
	hps_model_release(&m);
}

static void other_batches_leave_the_fits(void **state)
{
	struct hps_profile p, other;
	struct hps_cluster c;
	struct hps_model m;

	(void)state;
	read_model(&m);
	read_cluster(three_types, &c);
	make_profile(&m, "a", 1, &p);
	make_profile(&m, "g", 3, &other);
	other.batches[1] = 17;
	p.batch = 32;
	assert_int_equal(hps_profile_merge(&p, &other, "b", &c, NULL, NULL), HPS_OK);
	assert_null(p.time[LAYERS].forward_s);
	close_to(p.time[LAYERS].forward.c0, 3e-6);
	close_to(p.time[LAYERS].oct, 2 * (3e-6 + 3e-8 * 32)); /* at this model's batch */
	hps_profile_release(&p);
	/* a profile without any type takes the other's sizes */
	assert_int_equal(hps_profile_sizes(&m, NULL, &p, NULL), HPS_OK);
	assert_int_equal(hps_profile_merge(&p, &other, "b", &c, NULL, NULL), HPS_OK);
	assert_int_equal(p.n_batches, 2);
	close_to(p.batches[1], 17);
	assert_non_null(p.time[0].forward_s);
	hps_profile_release(&p);
	hps_profile_release(&other);
	hps_cluster_release(&c);
	hps_model_release(&m);
}

static void another_models_profile_is_refused(void **state)
{
	struct hps_err err;
	struct hps_profile p, other;
	struct hps_cluster c;
	struct hps_model m;

	(void)state;
	read_model(&m);
	read_cluster(three_types, &c);
	make_profile(&m, "a", 1, &p);
	make_profile(&m, "g", 3, &other);
	other.digest ^= 1;
	assert_int_equal(hps_profile_merge(&p, &other, "b.json", &c, tell, &err), HPS_BAD_INPUT);
	assert_string_equal(err.where, "b.json");
	assert_non_null(strstr(err.msg, "another model"));
	assert_int_equal(p.n_types, 1);
	hps_profile_release(&p);
	hps_profile_release(&other);
	hps_cluster_release(&c);
	hps_model_release(&m);
}

static void without_memory(void **state)
{
	struct hps_profile p, other;
	struct hps_cluster c;
	struct hps_model m;
	enum hps_status st = HPS_MEMORY;
	unsigned long nth = 0;

	(void)state;
	read_model(&m);
	read_cluster(three_types, &c);
	make_profile(&m, "g", 3, &other);
	while (st == HPS_MEMORY) {
		make_profile(&m, "a", 1, &p);
		hps_mem_fail_at(++nth);
		st = hps_profile_merge(&p, &other, "b", &c, NULL, NULL);
		if (st == HPS_OK)
			st = hps_profile_derive(&p, &m, &c, NULL);
		hps_mem_fail_at(0);
		hps_profile_release(&p);
	}
	assert_int_equal(st, HPS_OK);
	assert_true(nth > 10);
	st = HPS_MEMORY;
	for (nth = 0; st == HPS_MEMORY;) {
		hps_mem_fail_at(++nth);
		st = hps_profile_sizes(&m, NULL, &p, NULL);
		hps_mem_fail_at(0);
	}
	assert_int_equal(st, HPS_OK);
	assert_true(nth > 5);
	hps_profile_release(&p);
	hps_profile_release(&other);
	hps_cluster_release(&c);
	hps_model_release(&m);
}

/* --- which type is this machine --- */

static void pick(const char *cluster, const char *wanted, const struct hps_profile *have,
		 enum hps_status status, int type, const char *msg)
{
	struct hps_err err = { 0 };
	struct hps_cluster c;
	enum hps_status st;
	int got = -2;

	read_cluster(cluster, &c);
	st = hps_measure_pick(&c, wanted, &have, have ? 1 : 0, &got, &err);
	if (st != status || (st == HPS_OK && got != type) || (st && !strstr(err.msg, msg)))
		fail_msg("status %d, type %d, \"%s\"", st, got, err.msg);
	hps_cluster_release(&c);
}

static void the_type_here_is_found(void **state)
{
	static const char two_cpus[] =
		"{\"types\": [{\"name\": \"a\", \"price\": 1}, {\"name\": \"b\", \"price\": 1}]}";
	static const char a_cuda[] = "{\"types\": [{\"name\": \"a\", \"price\": 1},"
				     "{\"name\": \"g\", \"device\": \"cuda\", \"price\": 1}]}";
	static const char only_cuda[] =
		"{\"types\": [{\"name\": \"g\", \"device\": \"cuda\", \"price\": 1}]}";
	struct hps_profile b, g;
	struct hps_model m;

	(void)state;
	read_model(&m);
	make_profile(&m, "b", 1, &b);
	make_profile(&m, "g", 1, &g);
	pick("{\"types\": [{\"name\": \"a\", \"price\": 1}]}", NULL, NULL, HPS_OK, 0, "");
	pick(two_cpus, NULL, NULL, HPS_USAGE, 0, "\"a\" and \"b\" are both CPUs");
	pick(two_cpus, "b", NULL, HPS_OK, 1, "");
	pick(two_cpus, NULL, &b, HPS_OK, 0, "");
	pick(two_cpus, "c", NULL, HPS_USAGE, 0, "no type \"c\"");
	pick(a_cuda, NULL, NULL, HPS_DEVICE, 0, "no backend for device cuda");
	pick(a_cuda, "a", NULL, HPS_OK, 0, "");
	pick(a_cuda, "g", NULL, HPS_DEVICE, 0, "no backend for device cuda");
	pick(a_cuda, NULL, &g, HPS_OK, 0, "");
	pick(only_cuda, NULL, &g, HPS_OK, -1, "");
	pick(three_types, "d", NULL, HPS_USAGE, 0, "declared by \"a\"");
	pick(three_types, NULL, &g, HPS_OK, 2, "");
	hps_profile_release(&b);
	hps_profile_release(&g);
	hps_model_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_found),
		cmocka_unit_test(a_link_under_noise),
		cmocka_unit_test(no_part_is_negative),
		cmocka_unit_test(the_fit_is_the_least),
		cmocka_unit_test(sizes_are_the_graphs),
		cmocka_unit_test(profiles_are_joined),
		cmocka_unit_test(other_batches_leave_the_fits),
		cmocka_unit_test(another_models_profile_is_refused),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(the_type_here_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
