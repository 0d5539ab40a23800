#include "plan/rl.h"
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "plan/policy_int.h"

double hps_rl_knob[16] = { 0.4, 400, 0.2, 0.03, 150, 1, 0, 32, 24 };
#define K_ENT hps_rl_knob[0]
#define K_DECAY hps_rl_knob[1]
#define K_ELITE hps_rl_knob[2]
#define K_LR hps_rl_knob[3]
#define K_STALE hps_rl_knob[4]
#define K_KEEP hps_rl_knob[5] /* reset elites */
#define K_VERB hps_rl_knob[6]
#define K_BIAS hps_rl_knob[9]
enum { WIDTH = 32, ELITES = 4 };

struct entry { uint64_t hash; double value; };
struct learner {
	const struct hps_problem *p;
	struct hps_search search;
	struct hps_policy_input in;
	struct hps_policy net;
	struct hps_rollout roll;
	struct hps_rng rng;
	float *grad, *m, *v;
	uint64_t t;
	struct entry *cache; size_t cap, used;
	uint64_t hits;
	struct { double value; uint64_t hash; uint32_t *type; uint8_t *cut; } elite[ELITES];
	uint32_t n_elite;
	struct hps_span *stage;
};

static uint64_t hash_of(const struct learner *x, uint32_t b)
{
	uint64_t h = 1;
	for (uint32_t l = 0; l < x->in.n_layers; l++)
		h = hps_mix64(h ^ ((uint64_t)x->roll.type[l * WIDTH + b] << 1 | x->roll.cut[l * WIDTH + b]));
	return h ? h : 1;
}

static enum hps_status score(struct learner *x, uint32_t b, double *out, uint64_t *hash, struct hps_err *err)
{
	uint64_t h = *hash = hash_of(x, b);
	size_t i = h & (x->cap - 1);
	struct hps_trial t;
	while (x->cache[i].hash && x->cache[i].hash != h)
		i = (i + 1) & (x->cap - 1);
	if (x->cache[i].hash) {
		*out = x->cache[i].value;
		x->search.evaluations++;
		x->hits++;
		return HPS_OK;
	}
	uint32_t n = hps_rollout_spans(&x->roll, b, x->stage);
	enum hps_status rc = hps_search_try(&x->search, x->stage, &n, &t, err);
	if (rc) return rc;
	*out = t.graded;
	if (x->used * 2 < x->cap) { x->cache[i].hash = h; x->cache[i].value = t.graded; x->used++; }
	return HPS_OK;
}

static void take_elite(struct learner *x, uint32_t b, double value, uint64_t hash)
{
	uint32_t L = x->in.n_layers, at = x->n_elite;
	for (uint32_t i = 0; i < x->n_elite; i++)
		if (x->elite[i].hash == hash) return;
	if (x->n_elite == ELITES) {
		at = 0;
		for (uint32_t i = 1; i < ELITES; i++)
			if (x->elite[i].value > x->elite[at].value) at = i;
		if (x->elite[at].value <= value) return;
	} else x->n_elite++;
	x->elite[at].value = value; x->elite[at].hash = hash;
	for (uint32_t l = 0; l < L; l++) {
		x->elite[at].type[l] = x->roll.type[l * WIDTH + b];
		x->elite[at].cut[l] = x->roll.cut[l * WIDTH + b];
	}
}

static void adam(struct learner *x, double lr)
{
	double norm = 0;
	size_t n = x->net.n_weights;
	for (size_t i = 0; i < n; i++) norm += (double)x->grad[i] * x->grad[i];
	norm = sqrt(norm);
	float scale = norm > 1 ? (float)(1 / norm) : 1;
	x->t++;
	float c1 = (float)(lr / (1 - pow(0.9, (double)x->t))), c2 = (float)(1 / (1 - pow(0.999, (double)x->t)));
	for (size_t i = 0; i < n; i++) {
		float g = x->grad[i] * scale;
		x->m[i] = 0.9f * x->m[i] + 0.1f * g;
		x->v[i] = 0.999f * x->v[i] + 0.001f * g * g;
		x->net.weight[i] -= c1 * x->m[i] / (sqrtf(x->v[i] * c2) + 1e-8f);
	}
}

enum hps_status hps_plan_rl(const struct hps_problem *p, const char *arg, struct hps_solution *out,
			    struct hps_err *err)
{
	struct learner x = { .p = p };
	enum hps_cell cell = *arg == 'r' ? HPS_CELL_RNN : HPS_CELL_LSTM;
	uint32_t hidden = (uint32_t)hps_rl_knob[8];
	uint64_t run = 0;
	uint32_t L = p->cost->n_layers;
	hps_search_init(&x.search, p, HPS_RL_EVALUATIONS, err);
	hps_policy_input_init(&x.in, p, err);
	hps_policy_init(&x.net, cell, hidden, p->seed, err);
	hps_rollout_init(&x.roll, &x.net, &x.in, WIDTH, err);
	hps_rng_init(&x.rng, p->seed, 99);
	x.grad = calloc(x.net.n_weights, 4); x.m = calloc(x.net.n_weights, 4); x.v = calloc(x.net.n_weights, 4);
	x.cap = 1 << 18; x.cache = calloc(x.cap, sizeof(*x.cache));
	x.stage = calloc(L, sizeof(*x.stage));
	for (int i = 0; i < ELITES; i++) { x.elite[i].type = calloc(L, 4); x.elite[i].cut = calloc(L, 1); }
	while (hps_search_more(&x.search)) {
		double best = INFINITY;
		int stale = 0;
		memset(x.m, 0, 4 * x.net.n_weights); memset(x.v, 0, 4 * x.net.n_weights); x.t = 0;
		if (K_KEEP) x.n_elite = 0;
		if (run) { hps_policy_release(&x.net); hps_policy_init(&x.net, cell, hidden, p->seed + 1000003 * run, err); }
		x.net.weight[hps_policy_shape(cell, hidden).head_bias] = (float)K_BIAS;
		run++;
		for (int round = 0;; round++) {
			uint32_t forced = round % 4 == 3 ? x.n_elite : 0, n = WIDTH - forced;
			double value[WIDTH], mean = 0, var = 0;
			uint64_t hash[WIDTH];
			float weight[WIDTH], bonus[WIDTH];
			if (K_ELITE == 0) { forced = 0; n = WIDTH; }
			for (uint32_t e = 0; e < forced; e++)
				for (uint32_t l = 0; l < L; l++) {
					x.roll.type[l * WIDTH + n + e] = x.elite[e].type[l];
					x.roll.cut[l * WIDTH + n + e] = x.elite[e].cut[l];
				}
			hps_rollout_run(&x.roll, &x.net, &x.rng, forced);
			for (uint32_t b = 0; b < n; b++) {
				if (!hps_search_more(&x.search)) goto done;
				if (score(&x, b, &value[b], &hash[b], err)) goto done;
				if (value[b] < best * (1 - 1e-9)) { best = value[b]; stale = -1; }
				value[b] = -log(value[b]);
				take_elite(&x, b, -value[b], hash[b]);
			}
			stale++;
			for (uint32_t b = 0; b < n; b++) mean += value[b] / n;
			for (uint32_t b = 0; b < n; b++) var += (value[b] - mean) * (value[b] - mean) / n;
			if (K_VERB > 1 && round % 25 == 0) fprintf(stderr, "run %lu round %d mean %.4f sd %.4f best %.4f bestall %.6g ev %lu hits %lu\n", run, round, exp(-mean), sqrt(var), best, x.search.best_trial.graded, x.search.evaluations, x.hits);
			if (var < 1e-18 || stale >= K_STALE) break;
			double frac = round < K_DECAY ? 1 - 0.95 * round / K_DECAY : 0.05;
			for (uint32_t b = 0; b < n; b++) {
				weight[b] = (float)(fmin(fmax((value[b] - mean) / sqrt(var), -2), 3) / n);
				bonus[b] = (float)(K_ENT * frac / n);
			}
			for (uint32_t b = n; b < WIDTH; b++) { weight[b] = (float)(K_ELITE / forced); bonus[b] = 0; }
			memset(x.grad, 0, 4 * x.net.n_weights);
			hps_rollout_gradient(&x.roll, &x.net, weight, bonus, x.grad);
			adam(&x, K_LR);
		}
		if (K_VERB) fprintf(stderr, "run %lu ends: best %.6g all %.6g ev %lu hits %lu\n", run, best, x.search.best_trial.graded, x.search.evaluations, x.hits);
	}
done:
	if (K_VERB) fprintf(stderr, "done ev %lu hits %lu\n", x.search.evaluations, x.hits);
	free(x.grad); free(x.m); free(x.v); free(x.cache); free(x.stage);
	for (int i = 0; i < ELITES; i++) { free(x.elite[i].type); free(x.elite[i].cut); }
	hps_rollout_release(&x.roll); hps_policy_release(&x.net); hps_policy_input_release(&x.in);
	return hps_search_finish(&x.search, out, err);
}
