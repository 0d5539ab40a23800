/* What does a Gaussian process say of schedules? Exact inference by Cholesky factors (Rasmussen, Williams
 * 2006, algorithm 2.1). Loops run over rows innermost, so that vectors fill without summing in
 * another order. */
#include "plan/gp.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/hot.h"
#include "base/mem.h"

/* Share of the variance that is noise: keeps factors well conditioned. */
#define NOISE 1e-6

enum hps_status hps_gp_init(struct hps_gp *g, uint32_t n_layers, uint32_t max_points,
			    uint32_t max_asked, struct hps_err *err)
{
	size_t L = n_layers, N = max_points, M = max_asked;

	memset(g, 0, sizeof(*g));
	g->n_layers = n_layers;
	g->max_points = max_points;
	g->max_asked = max_asked;
	g->point = hps_calloc(N * L, sizeof(*g->point), err);
	g->ask = hps_calloc(M * L, sizeof(*g->ask), err);
	g->value = hps_calloc(N, sizeof(*g->value), err);
	g->mean = hps_calloc(M, sizeof(*g->mean), err);
	g->sd = hps_calloc(M, sizeof(*g->sd), err);
	g->distance = hps_calloc(N * N, sizeof(*g->distance), err);
	g->kernel = hps_calloc(3 * L + 1, sizeof(*g->kernel), err);
	g->factor = hps_calloc(N * N, sizeof(*g->factor), err);
	g->solved = hps_calloc(N, sizeof(*g->solved), err);
	g->weight = hps_calloc(N, sizeof(*g->weight), err);
	g->across = hps_calloc(N * M, sizeof(*g->across), err);
	if (g->point && g->ask && g->value && g->mean && g->sd && g->distance && g->kernel &&
	    g->factor && g->solved && g->weight && g->across)
		return HPS_OK;
	hps_gp_release(g);
	return HPS_MEMORY;
}

void hps_gp_release(struct hps_gp *g)
{
	free(g->point);
	free(g->ask);
	free(g->value);
	free(g->mean);
	free(g->sd);
	free(g->distance);
	free(g->kernel);
	free(g->factor);
	free(g->solved);
	free(g->weight);
	free(g->across);
	memset(g, 0, sizeof(*g));
}

/* 2 d */
HPS_HOT static uint32_t distance(const uint16_t *a, const uint16_t *b, uint32_t n)
{
	uint32_t types = 0, cuts = 0;

	for (uint32_t l = 0; l < n; l++) {
		types += (a[l] ^ b[l]) >> 1 != 0;
		cuts += (a[l] ^ b[l]) & 1;
	}
	return 2 * types + cuts;
}

/* The factor of the kernel at a scale, and solved = factor^-1 y; returns the marginal likelihood's
 * logarithm but for a constant. The factor is kept as its transpose: row j is column j. */
HPS_HOT static double factorise(struct hps_gp *g, double scale)
{
	uint32_t n = g->n;
	double *f = g->factor, *y = g->solved, score = 0;

	for (uint32_t d = 0; d <= 3 * g->n_layers; d++)
		g->kernel[d] = exp(-0.5 * d / scale);
	for (uint32_t j = 0; j < n; j++) {
		for (uint32_t i = j; i < n; i++)
			f[j * n + i] = g->kernel[g->distance[j * n + i]];
		f[j * n + j] += NOISE;
		y[j] = (g->value[j] - g->center) / g->spread;
	}
	for (uint32_t j = 0; j < n; j++) {
		double *col = f + (size_t)j * n, root = sqrt(fmax(col[j], NOISE * NOISE));

		for (uint32_t i = j; i < n; i++)
			col[i] /= root;
		col[j] = root;
		y[j] /= root;
		score -= log(root) + 0.5 * y[j] * y[j];
		for (uint32_t i = j + 1; i < n; i++)
			y[i] -= col[i] * y[j];
		for (uint32_t k = j + 1; k < n; k++) {
			double *to = f + (size_t)k * n, by = col[k];

			for (uint32_t i = k; i < n; i++)
				to[i] -= by * col[i];
		}
	}
	return score;
}

static void standardise(struct hps_gp *g)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < g->n; i++)
		sum += g->value[i];
	g->center = sum / g->n;
	for (uint32_t i = 0; i < g->n; i++)
		squares += (g->value[i] - g->center) * (g->value[i] - g->center);
	g->spread = fmax(sqrt(squares / g->n), 1e-12);
}

static double choose_scale(struct hps_gp *g)
{
	double best = -INFINITY, scale = g->n_layers;

	for (double s = 0.1 * g->n_layers; s < 7.0 * g->n_layers; s *= 2) {
		double score = factorise(g, s);

		if (score > best) {
			best = score;
			scale = s;
		}
	}
	return scale;
}

void hps_gp_fit(struct hps_gp *g, uint32_t n, bool choose)
{
	uint32_t L = g->n_layers;

	g->n = n;
	standardise(g);
	for (uint32_t j = 0; j < n; j++)
		for (uint32_t i = j; i < n; i++)
			g->distance[j * n + i] =
				distance(g->point + (size_t)i * L, g->point + (size_t)j * L, L);
	if (choose || g->scale <= 0)
		g->scale = choose_scale(g);
	factorise(g, g->scale);
	/* weight = factor^-T solved */
	for (uint32_t j = n; j-- > 0;) {
		const double *col = g->factor + (size_t)j * n;
		double sum = g->solved[j];

		for (uint32_t i = j + 1; i < n; i++)
			sum -= col[i] * g->weight[i];
		g->weight[j] = sum / col[j];
	}
}

HPS_HOT void hps_gp_ask(struct hps_gp *g, uint32_t m)
{
	uint32_t n = g->n, L = g->n_layers;

	for (uint32_t a = 0; a < m; a++)
		g->mean[a] = g->sd[a] = 0;
	for (uint32_t j = 0; j < n; j++) {
		double *row = g->across + (size_t)j * m;

		for (uint32_t a = 0; a < m; a++) {
			row[a] = g->kernel[distance(g->point + (size_t)j * L,
						    g->ask + (size_t)a * L, L)];
			g->mean[a] += g->weight[j] * row[a];
		}
	}
	/* across = factor^-1 across, a column for each that is asked */
	for (uint32_t j = 0; j < n; j++) {
		const double *col = g->factor + (size_t)j * n;
		double *row = g->across + (size_t)j * m;

		for (uint32_t a = 0; a < m; a++) {
			row[a] /= col[j];
			g->sd[a] += row[a] * row[a];
		}
		for (uint32_t i = j + 1; i < n; i++) {
			double *to = g->across + (size_t)i * m, by = col[i];

			for (uint32_t a = 0; a < m; a++)
				to[a] -= by * row[a];
		}
	}
	for (uint32_t a = 0; a < m; a++) {
		g->mean[a] = g->center + g->spread * g->mean[a];
		g->sd[a] = g->spread * sqrt(fmax(1 - g->sd[a], 0));
	}
}
