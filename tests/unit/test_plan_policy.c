/* Does the policy network do what it says? Its gradients against finite differences, its choices
 * against the rules, width and chance, and files that are not to be trusted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "cm.h"
#include "plan/policy_int.h"
#include "plan_case.h"

enum { WIDTH = 6, LAYERS = 7, MOST = 64 * 1024 };

/* All features of layers and types in use. */
static void make(struct plan_case *c, uint32_t types, bool merge)
{
	plan_case_init(c, LAYERS, types, 40);
	for (uint32_t l = 0; l < LAYERS; l++) {
		for (uint32_t t = 0; t < types; t++)
			plan_case_time(c, t, l, 1e-5 * (1 + (l + t) % 3),
				       1e-6 * (1 + (l * (t + 2)) % 5));
		c->size[l].output_bytes = 400 + 4000 * (l % 3);
		c->size[l].param_bytes = 2e5 * (l % 2);
		c->size[l].sparse_keys = l ? 0 : 26;
		c->size[l].flops = l == 3 ? 0 : 1e6;
		if (l + 1 < LAYERS)
			c->cut_forward[l] = c->cut_backward[l] = c->size[l].output_bytes;
	}
	for (uint32_t t = 0; t < types; t++)
		c->type[t].price = 0.1 * (t + 1);
	c->profile.link = (struct hps_link){ 1e9, 5e-5 };
	plan_case_ready(c);
	c->problem.floor = 1e4;
	c->problem.merge = merge;
}

struct net_case {
	struct plan_case plan;
	struct hps_policy_input in;
	struct hps_policy net;
	struct hps_rollout roll;
};

static void open_net(struct net_case *x, enum hps_cell cell, uint32_t types, bool merge,
		     uint32_t width)
{
	struct hps_err err = { 0 };

	make(&x->plan, types, merge);
	assert_int_equal(hps_policy_input_init(&x->in, &x->plan.problem, &err), HPS_OK);
	assert_int_equal(hps_policy_init(&x->net, cell, 5, 11, &err), HPS_OK);
	assert_int_equal(hps_rollout_init(&x->roll, &x->net, &x->in, width, &err), HPS_OK);
}

static void close_net(struct net_case *x)
{
	hps_rollout_release(&x->roll);
	hps_policy_release(&x->net);
	hps_policy_input_release(&x->in);
	plan_case_release(&x->plan);
}

/* The walks drawn once are forced, so the loss is a smooth function of the weights. */
static void check_gradient(enum hps_cell cell, uint32_t types, bool merge)
{
	const float weight[WIDTH] = { 1, -0.5f, 0.25f, 2, -1, 0.5f };
	const float bonus[WIDTH] = { 0.3f, 0.1f, 0, 0.5f, 0.2f, 0.4f };
	struct net_case x;
	struct hps_rng rng;
	double worst = 0, largest = 0;
	float *grad;

	open_net(&x, cell, types, merge, WIDTH);
	grad = calloc(x.net.n_weights, sizeof(*grad));
	assert_non_null(grad);
	/* Larger than they begin, so that everything has an effect. */
	for (size_t i = 0; i < x.net.n_weights; i++)
		x.net.weight[i] = 3 * x.net.weight[i] + 0.05f * (float)((int)(i % 7) - 3);
	hps_rng_init(&rng, 3, 0);
	hps_rollout_run(&x.roll, &x.net, &rng, 0);
	hps_rollout_run(&x.roll, &x.net, NULL, WIDTH);
	hps_rollout_gradient(&x.roll, &x.net, weight, bonus, grad);
	for (size_t i = 0; i < x.net.n_weights; i++) {
		const float h = 1.0f / 256;
		float before = x.net.weight[i];
		double up, down, slope;

		x.net.weight[i] = before + h;
		hps_rollout_run(&x.roll, &x.net, NULL, WIDTH);
		up = hps_rollout_loss(&x.roll, weight, bonus);
		x.net.weight[i] = before - h;
		hps_rollout_run(&x.roll, &x.net, NULL, WIDTH);
		down = hps_rollout_loss(&x.roll, weight, bonus);
		slope = (up - down) / ((double)(before + h) - (double)(before - h));
		x.net.weight[i] = before;
		worst = fmax(worst, fabs(slope - grad[i]));
		largest = fmax(largest, fabs(slope));
	}
	print_message("# %s, %u types%s: gradients off by %.2g, the largest is %.2g\n",
		      hps_cell_name(cell), types, merge ? ", merge" : "", worst, largest);
	assert_true(largest > 0.1);
	assert_true(worst < 2e-3 * largest);
	free(grad);
	close_net(&x);
}

static void test_gradients(void **state)
{
	(void)state;
	check_gradient(HPS_CELL_LSTM, 2, false);
	check_gradient(HPS_CELL_LSTM, 5, false);
	check_gradient(HPS_CELL_LSTM, 3, true);
	check_gradient(HPS_CELL_RNN, 3, false);
	check_gradient(HPS_CELL_RNN, 2, true);
}

/* Stages cover the layers in order; under merge no two neighbours are on one type. */
static void test_walks(void **state)
{
	(void)state;
	for (uint32_t types = 1; types <= 20; types += types < 3 ? 1 : 17) {
		for (int merge = 0; merge < 2; merge++) {
			uint64_t cuts = 0, used[20] = { 0 };
			struct net_case x;
			struct hps_rng rng;

			if (types > PLAN_CASE_TYPES)
				break;
			open_net(&x, HPS_CELL_LSTM, types, merge, 32);
			hps_rng_init(&rng, 5, 0);
			hps_rollout_run(&x.roll, &x.net, &rng, 0);
			for (uint32_t b = 0; b < 32; b++) {
				struct hps_span s[LAYERS];
				uint32_t n = hps_rollout_spans(&x.roll, b, s);

				assert_int_equal(s[0].first, 0);
				assert_int_equal(s[n - 1].last, LAYERS - 1);
				for (uint32_t i = 0; i < n; i++) {
					assert_true(s[i].type < types && s[i].last >= s[i].first);
					used[s[i].type]++;
					cuts += i > 0;
					if (!i)
						continue;
					assert_int_equal(s[i].first, s[i - 1].last + 1);
					assert_true(!merge || s[i].type != s[i - 1].type);
				}
			}
			assert_true(types == 1 && merge ? !cuts : cuts > 0);
			for (uint32_t t = 0; t < types; t++)
				assert_true(used[t] > 0);
			close_net(&x);
		}
	}
}

/* A column is what a roll-out of one walk would be: the same choices and the same bits. */
static void test_width(void **state)
{
	struct hps_err err = { 0 };
	struct hps_rollout one;
	struct net_case x;

	(void)state;
	open_net(&x, HPS_CELL_LSTM, 3, false, 32);
	assert_int_equal(hps_rollout_init(&one, &x.net, &x.in, 1, &err), HPS_OK);
	hps_rollout_run(&x.roll, &x.net, NULL, 0);
	hps_rollout_run(&one, &x.net, NULL, 0);
	for (uint32_t b = 0; b < 32; b++)
		for (uint32_t l = 0; l < LAYERS; l++) {
			assert_int_equal(x.roll.type[l * 32 + b], one.type[l]);
			assert_int_equal(x.roll.cut[l * 32 + b], one.cut[l]);
			assert_memory_equal(
				&x.roll.part->head[(l * HPS_POLICY_OUTPUTS + 1) * 32 + b],
				&one.part->head[l * HPS_POLICY_OUTPUTS + 1], sizeof(float));
		}
	hps_rollout_release(&one);
	close_net(&x);
}

/* Types in another order: the same choices, by their new numbers. */
static void test_order(void **state)
{
	struct plan_case c;
	struct hps_policy_input in;
	struct hps_err err = { 0 };
	struct net_case x;

	(void)state;
	open_net(&x, HPS_CELL_LSTM, 3, false, 1);
	make(&c, 3, false);
	for (uint32_t t = 0; t < 3; t++) {
		for (uint32_t l = 0; l < LAYERS; l++)
			plan_case_time(&c, t, l, 1e-5 * (1 + (l + 2 - t) % 3),
				       1e-6 * (1 + (l * (2 - t + 2)) % 5));
		c.type[t].price = 0.1 * (2 - t + 1);
	}
	hps_cost_release(&c.cost);
	plan_case_ready(&c);
	c.problem.floor = x.plan.problem.floor;
	assert_int_equal(hps_policy_input_init(&in, &c.problem, &err), HPS_OK);
	for (uint32_t l = 0; l < LAYERS; l++)
		for (uint32_t t = 0; t < 3; t++)
			for (uint32_t k = 0; k < HPS_POLICY_TYPE; k++)
				assert_true(
					fabsf(in.by_type[(l * 3 + t) * HPS_POLICY_TYPE + k] -
					      x.in.by_type[(l * 3 + 2 - t) * HPS_POLICY_TYPE + k]) <
					1e-4f);
	hps_policy_input_release(&in);
	plan_case_release(&c);
	close_net(&x);
}

/* --- files --- */

static char path[] = "/tmp/hps-policy-XXXXXX";

static void refused(const unsigned char *p, size_t len, const char *why)
{
	struct hps_policy n;
	struct hps_err err = { 0 };

	assert_int_equal(hps_file_write(path, p, len, 0600, &err), HPS_OK);
	assert_int_equal(hps_policy_load(path, &n, &err), HPS_BAD_INPUT);
	if (!strstr(err.msg, why))
		fail_msg("\"%s\" says nothing of \"%s\"", err.msg, why);
	assert_non_null(strstr(err.where, path));
	assert_null(n.weight);
}

/* The checksum made right again, so that what it guards is looked at. */
static void refused_sealed(unsigned char *p, size_t len, const char *why)
{
	uint64_t sum = hps_hash_bytes(p, len - 8, 1);

	for (int i = 0; i < 8; i++)
		p[len - 8 + (size_t)i] = (unsigned char)(sum >> 8 * i);
	refused(p, len, why);
}

static void test_file(void **state)
{
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_policy n, again;
	struct hps_err err = { 0 };
	unsigned char *p;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(hps_policy_init(&n, HPS_CELL_RNN, 9, 4, &err), HPS_OK);
	assert_int_equal(hps_policy_save(&n, path, &err), HPS_OK);
	assert_int_equal(hps_policy_load(path, &again, &err), HPS_OK);
	assert_int_equal(again.cell, HPS_CELL_RNN);
	assert_int_equal(again.hidden, 9);
	assert_int_equal(again.n_weights, n.n_weights);
	assert_memory_equal(again.weight, n.weight, n.n_weights * sizeof(float));
	hps_policy_release(&again);
	assert_int_equal(hps_file_read(path, MOST, &b, &err), HPS_OK);
	p = malloc(b.len + 4);
	assert_non_null(p);
#define FRESH() memcpy(p, b.data, b.len)
	FRESH();
	for (size_t len = 0; len < b.len; len += len < 60 ? 1 : 97)
		refused(p, len, "policy file");
	refused(p, b.len + 4, "damaged");
	p[0] ^= 1;
	refused(p, b.len, "not a policy file");
	FRESH();
	p[8] = 2;
	refused(p, b.len, "version 2, expected version 1");
	FRESH();
	p[b.len / 2] ^= 4;
	refused(p, b.len, "damaged");
	FRESH();
	p[12] = 7;
	refused_sealed(p, b.len, "cell 7");
	FRESH();
	p[16] = 10;
	refused_sealed(p, b.len, "weights in");
	p[16] = 0;
	refused_sealed(p, b.len, "0 hidden units");
	p[19] = 0xff;
	refused_sealed(p, b.len, "hidden units");
	FRESH();
	p[20]++;
	refused_sealed(p, b.len, "other features");
	FRESH();
	memset(p + 40 + 4 * 3, 0xff, 4);
	refused_sealed(p, b.len, "weight 3 is not finite");
	free(p);
	hps_buf_release(&b);
	hps_policy_release(&n);
	unlink(path);
	assert_int_equal(hps_policy_load(path, &n, &err), HPS_IO);
}

static void test_init(void **state)
{
	struct hps_policy n;
	struct hps_err err = { 0 };

	(void)state;
	assert_int_equal(hps_policy_init(&n, HPS_CELL_LSTM, 0, 1, &err), HPS_USAGE);
	assert_int_equal(hps_policy_init(&n, HPS_CELL_LSTM, HPS_POLICY_MAX_HIDDEN + 1, 1, &err),
			 HPS_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients), cmocka_unit_test(test_walks),
		cmocka_unit_test(test_width),	  cmocka_unit_test(test_order),
		cmocka_unit_test(test_file),	  cmocka_unit_test(test_init),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
