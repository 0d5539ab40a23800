/* Cosine of two inputs: a.b / (|a| |b|). Where a norm is below 1e-8 (a dead relu layer,
 * say) it is 0 and passes no gradient, as the derivative there has no bound. Sums in double.
 */
#include "nn/stage_int.h"

#include <math.h>

struct products {
	double ab, aa, bb;
};

static const double least_norm = 1e-8;

static struct products multiply(const float *a, const float *b, uint32_t n)
{
	struct products s = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		s.ab += (double)a[i] * b[i];
		s.aa += (double)a[i] * a[i];
		s.bb += (double)b[i] * b[i];
	}
	return s;
}

/* False for NaN: it goes on into the result. */
static bool vanishes(const struct products *s)
{
	return s->aa < least_norm * least_norm || s->bb < least_norm * least_norm;
}

static void forward(struct hps_pass *p, const struct hps_node *n, const float *params)
{
	const struct hps_edge *ea = &n->edge[0], *eb = &n->edge[1];
	const float *a = hps_read(p, &ea->value), *b = hps_read(p, &eb->value);
	float *y = hps_write(p, &n->value);

	for (uint32_t r = 0; r < p->rows; r++) {
		struct products s = multiply(a, b, ea->cols);

		*y = vanishes(&s) ? 0.0f : (float)(s.ab / (sqrt(s.aa) * sqrt(s.bb)));
		a += ea->value.ld;
		b += eb->value.ld;
		y += n->value.ld;
	}
}

/* dx (n) = or += scale * (y / (|x||y|) - cos * x / |x|^2) */
static void one_side(const struct hps_edge *e, float *dx, const float *x, const float *y, double xx,
		     const struct products *s, double dy)
{
	double norms = sqrt(s->aa) * sqrt(s->bb);
	double from_y = dy / norms, from_x = dy * (s->ab / norms) / xx;
	bool none = vanishes(s);

	for (uint32_t i = 0; i < e->cols; i++) {
		float g = none ? 0.0f : (float)(from_y * y[i] - from_x * x[i]);

		dx[i] = e->adds ? dx[i] + g : g;
	}
}

static void backward(struct hps_pass *p, const struct hps_node *n, const float *params,
		     float *grads)
{
	const struct hps_edge *ea = &n->edge[0], *eb = &n->edge[1];
	const float *a = hps_read(p, &ea->value), *b = hps_read(p, &eb->value);
	const float *dy = hps_read(p, &n->grad);

	for (uint32_t r = 0; r < p->rows; r++) {
		struct products s = multiply(a, b, ea->cols);

		if (ea->wants_grad)
			one_side(ea, hps_write(p, &ea->grad) + (size_t)r * ea->grad.ld, a, b, s.aa,
				 &s, *dy);
		if (eb->wants_grad)
			one_side(eb, hps_write(p, &eb->grad) + (size_t)r * eb->grad.ld, b, a, s.bb,
				 &s, *dy);
		a += ea->value.ld;
		b += eb->value.ld;
		dy += n->grad.ld;
	}
}

const struct hps_op_code hps_op_cosine = {
	.min_inputs = 2,
	.max_inputs = 2,
	.forward = forward,
	.backward = backward,
};
