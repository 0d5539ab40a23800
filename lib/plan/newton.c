/* Which cycle time is cheapest if units were real numbers? Guarded Newton on F'(tau), see
 * provision.h. Derivatives are carried along as second-order jets instead of written by hand. */
#include <stdlib.h>
#include "base/mem.h"
#include "plan/plan_int.h"
#include "plan/provision.h"

/* A value with its first and second derivative by tau. */
struct jet {
	double v, d1, d2;
};

enum { SCAN = 64, MAX_STEPS = 200 };

static struct jet constant(double v)
{
	return (struct jet){ v, 0, 0 };
}

static struct jet add(struct jet x, struct jet y)
{
	return (struct jet){ x.v + y.v, x.d1 + y.d1, x.d2 + y.d2 };
}

static struct jet scale(double s, struct jet x)
{
	return (struct jet){ s * x.v, s * x.d1, s * x.d2 };
}

static struct jet mul(struct jet x, struct jet y)
{
	return (struct jet){ x.v * y.v, x.d1 * y.v + x.v * y.d1,
			     x.d2 * y.v + 2 * x.d1 * y.d1 + x.v * y.d2 };
}

static struct jet inverse(struct jet x)
{
	double i = 1 / x.v;

	return (struct jet){ i, -x.d1 * i * i, (2 * x.d1 * x.d1 * i - x.d2) * i * i };
}

static struct jet larger(struct jet x, struct jet y)
{
	return x.v >= y.v ? x : y;
}

/* A stage with k_1, the first stage's units, as a variable: b = b + b_first k_1. */
struct part {
	struct hps_stage_time time; /* at k_1 = 1 */
	double b_first;
	double cores, cores_first, cores_unit; /* HT's share: + cores_first k_1 + cores_unit k */
	double dense, dense_unit;	       /* D: + dense_unit k */
	double least, most;		       /* units: memory, type and micro-batches */
	bool regular;
};

struct relaxed {
	const struct hps_problem *p;
	const struct hps_span *stage;
	uint32_t n;
	struct part *part; /* n */
	struct jet *k;	   /* n, at the tau last asked for */
	struct jet shards;
};

/* Bytes of a unit fit its type: k from here on. */
static double memory_units(const struct hps_cost *c, const struct hps_stage_time *t)
{
	double memory = c->type[t->type].memory;

	if (memory <= 0 || hps_stage_memory(t, 1) <= memory)
		return 1;
	return memory > t->mem_fixed ? t->mem_shared / (memory - t->mem_fixed) : INFINITY;
}

static void make_part(const struct relaxed *x, uint32_t i, struct part *q)
{
	const struct hps_cost *c = x->p->cost;
	const struct hps_span *sp = &x->stage[i];
	int left = i ? (int)sp[-1].type : -1, right = i + 1 < x->n ? (int)sp[1].type : -1;
	struct hps_stage_time two =
		hps_cost_stage(c, sp->first, sp->last, sp->type, left, right, 2);
	struct hps_stage_load one, more, other;

	q->time = hps_cost_stage(c, sp->first, sp->last, sp->type, left, right, 1);
	q->regular = hps_stage_regular(c, &q->time);
	q->b_first = two.b - q->time.b;
	one = hps_cost_load(c, &q->time, left, 1);
	more = hps_cost_load(c, &q->time, left, 2);
	other = hps_cost_load(c, &two, left, 1);
	q->cores_unit = c->opt.weak ? 0 : more.cores_s - one.cores_s;
	q->cores_first = other.cores_s - one.cores_s;
	q->cores = one.cores_s - q->cores_unit - q->cores_first;
	q->dense_unit = more.dense_bytes - one.dense_bytes;
	q->dense = one.dense_bytes - q->dense_unit;
	q->least = fmax(1, memory_units(c, &q->time));
	q->most = c->type[sp->type].limit;
	if (!i && c->opt.form == HPS_COST_EXECUTOR) {
		/* CT = a + (b + b_first k) / k */
		q->time.a += q->b_first;
		q->time.b -= q->b_first;
		q->b_first = 0;
		q->most = fmin(q->most, q->time.max_units);
	} else if (c->opt.form == HPS_COST_EXECUTOR) {
		q->time.b -= q->b_first;
		q->time.busy = UINT32_MAX; /* as many micro-batches as it takes */
		q->time.max_units = c->type[sp->type].limit;
	} else {
		q->most = fmin(q->most, q->time.max_units);
	}
}

/* work / (tau - fixed), or false where tau is not above. */
static bool share(struct jet work, double fixed, double tau, struct jet *k)
{
	if (work.v <= 0)
		return true;
	if (tau <= fixed)
		return false;
	*k = larger(*k, mul(work, inverse((struct jet){ tau - fixed, 1, 0 })));
	return true;
}

/* Between the integers around it, on a straight line. */
static bool interpolated(const struct hps_cost *c, const struct part *q, double first, double tau,
			 struct jet *k)
{
	struct hps_stage_time t = q->time;
	double memory = c->type[t.type].memory, slow, fast;
	uint32_t n;

	t.b += q->b_first * first;
	n = hps_stage_units(c, &t, tau, 1);
	if (!n)
		return false;
	*k = constant(n);
	if (n == 1 || (memory > 0 && hps_stage_memory(&t, n - 1) > memory))
		return true;
	slow = hps_stage_et(c, &t, n - 1);
	fast = hps_stage_et(c, &t, n);
	if (slow > fast && slow > tau)
		*k = (struct jet){ n - 1 + (slow - tau) / (slow - fast), -1 / (slow - fast), 0 };
	return true;
}

static bool units(const struct relaxed *x, uint32_t i, double tau)
{
	const struct hps_cost *c = x->p->cost;
	const struct part *q = &x->part[i];
	const struct hps_stage_time *t = &q->time;
	struct jet *k = &x->k[i], work = constant(t->b);

	*k = constant(q->least);
	if (i && q->b_first > 0)
		work = add(work, scale(q->b_first, x->k[0]));
	if (!q->regular)
		return interpolated(c, q, x->k[0].v, tau, k);
	if (c->opt.serial)
		return share(add(work, constant(t->d)), t->a + t->c, tau, k) &&
		       k->v <= q->most * (1 + HPS_TIME_EPS) &&
		       t->a + t->c + (work.v + t->d) / k->v <= tau * (1 + 1e-9);
	return share(work, t->a, tau, k) && share(constant(t->d), t->c, tau, k) &&
	       k->v <= q->most * (1 + HPS_TIME_EPS) &&
	       fmax(t->a + work.v / k->v, t->c + t->d / k->v) <= tau * (1 + 1e-9);
}

static bool limits_hold(const struct relaxed *x)
{
	const struct hps_cost *c = x->p->cost;

	for (uint32_t i = 0; i < x->n; i++) {
		double used = 0;

		for (uint32_t j = 0; j < x->n; j++)
			if (x->stage[j].type == x->stage[i].type)
				used += x->k[j].v;
		if (used > c->type[x->stage[i].type].limit * (1 + 1e-9))
			return false;
	}
	return true;
}

/* S(tau), and whether shards and shared cores do. */
static bool servers(struct relaxed *x, double tau)
{
	const struct hps_cost *c = x->p->cost;
	struct jet dense = constant(0), cpu, link, need;
	double cores = 0;

	for (uint32_t i = 0; i < x->n; i++) {
		const struct part *q = &x->part[i];

		dense = add(dense, add(constant(q->dense), scale(q->dense_unit, x->k[i])));
		cores += q->cores + q->cores_first * x->k[0].v + q->cores_unit * x->k[i].v;
	}
	x->shards = constant(c->ps.min);
	if (hps_cost_cores_time(c, cores, dense.v) > tau * (1 + 1e-9))
		return false;
	if (!c->ps.max && !c->ps.min)
		return true;
	cpu = scale(1 / c->ps.bytes_per_s, dense);
	cpu.v += 2 * c->keys[c->n_layers] / c->ps.rows_per_s;
	link = dense;
	link.v += 2 * c->sparse[c->n_layers];
	link = link.v > 0 ? scale(1 / c->ps.bandwidth, link) : constant(0);
	need = mul(larger(cpu, link), inverse((struct jet){ tau, 1, 0 }));
	x->shards = larger(x->shards, need);
	return x->shards.v <= c->ps.max * (1 + 1e-9);
}

/* The objective at tau; false where it cannot be. */
static bool value_at(struct relaxed *x, double tau, struct jet *f)
{
	const struct hps_cost *c = x->p->cost;
	struct jet price;

	for (uint32_t i = 0; i < x->n; i++)
		if (!units(x, i, tau))
			return false;
	if (!limits_hold(x) || !servers(x, tau))
		return false;
	price = scale(c->ps.price, x->shards);
	for (uint32_t i = 0; i < x->n; i++)
		price = add(price, scale(c->type[x->stage[i].type].price, x->k[i]));
	*f = x->p->objective == HPS_PRICE_PER_HOUR
		     ? price
		     : scale(1.0 / 3600, mul(price, (struct jet){ tau, 1, 0 }));
	return true;
}

/* From this tau on one unit each and the least shards will do: F rises beyond. */
static double idle_tau(struct relaxed *x)
{
	const struct hps_cost *c = x->p->cost;
	double tau = 0, dense = 0, cores = 0;

	for (uint32_t i = 0; i < x->n; i++) {
		const struct part *q = &x->part[i];
		struct hps_stage_time t = q->time;
		double k = fmax(1, ceil(q->least)), first = ceil(x->part[0].least);

		if (!(k < UINT32_MAX))
			return 0;
		t.b += q->b_first * first;
		tau = fmax(tau, hps_stage_et(c, &t, (uint32_t)k));
		dense += q->dense + q->dense_unit * k;
		cores += q->cores + q->cores_first * first + q->cores_unit * k;
	}
	tau = fmax(tau, hps_cost_cores_time(c, cores, dense));
	if (c->ps.max || c->ps.min)
		tau = fmax(tau, hps_cost_ps_time(c, dense, c->ps.min ? c->ps.min : 1));
	return tau;
}

/* The least tau that will do, within a relative 1e-12; high does. */
static double least_tau(struct relaxed *x, double high)
{
	double low = 0;
	struct jet f;

	for (int i = 0; i < 100 && high - low > 1e-12 * high; i++) {
		double tau = low > 0 ? (low + high) / 2 : high / 16;

		if (value_at(x, tau, &f))
			high = tau;
		else
			low = tau;
		if (high < 1e-18)
			break;
	}
	return high;
}

/* Where F' changes sign in [low, high]. */
static double newton(struct relaxed *x, double low, double high, struct hps_continuous *out)
{
	double tau = high, before = high - low;
	struct jet f;

	if (!value_at(x, low, &f) || f.d1 >= 0)
		return low;
	if (!value_at(x, high, &f) || f.d1 <= 0)
		return high;
	for (int i = 0; i < MAX_STEPS && high - low > 1e-14 * high; i++) {
		double step = f.d2 > 0 ? f.d1 / f.d2 : INFINITY, next = tau - step;

		/* Twice what is left would be no faster than halving. */
		if (!(next > low && next < high) || fabs(step) > before / 2) {
			next = (low + high) / 2;
			out->bisect++;
		} else {
			out->newton++;
		}
		before = fabs(next - tau);
		tau = next;
		if (!value_at(x, tau, &f))
			return high;
		if (f.d1 < 0)
			low = tau;
		else
			high = tau;
		if (f.d1 == 0 || before <= 1e-14 * tau)
			break;
	}
	return tau;
}

/* The tau of the least value among SCAN points, evenly spaced in log tau; [*low, *high] becomes the
 * bracket of its neighbours. */
static double scan(struct relaxed *x, double *low, double *high)
{
	double ratio = pow(*high / *low, 1.0 / SCAN), best = INFINITY, at = *high, tau = *low;
	struct jet f;

	for (int i = 0; i <= SCAN; i++, tau *= ratio) {
		if (value_at(x, fmin(tau, *high), &f) && f.v < best) {
			best = f.v;
			at = fmin(tau, *high);
		}
	}
	*low = fmax(*low, at / ratio);
	*high = fmin(*high, at * ratio);
	return at;
}

/* Where F jumps and bends: two scans, then Newton in what they leave; the best of the three. */
static double search(struct relaxed *x, double low, double high, struct hps_continuous *out)
{
	double coarse = scan(x, &low, &high), fine = scan(x, &low, &high);
	double tau[] = { newton(x, low, high, out), fine, coarse }, best = INFINITY, at = coarse;
	struct jet f;

	for (int i = 0; i < 3; i++) {
		if (value_at(x, tau[i], &f) && f.v < best) {
			best = f.v;
			at = tau[i];
		}
	}
	return at;
}

static enum hps_status relax(struct relaxed *x, const struct hps_problem *p,
			     const struct hps_span *stage, uint32_t n, struct hps_err *err)
{
	*x = (struct relaxed){ .p = p, .stage = stage, .n = n };
	x->part = hps_calloc(n, sizeof(*x->part) + sizeof(*x->k), err);
	if (!x->part)
		return HPS_MEMORY;
	x->k = (struct jet *)(x->part + n);
	for (uint32_t i = 0; i < n; i++)
		make_part(x, i, &x->part[i]);
	return HPS_OK;
}

static void solve(struct relaxed *x, double high, struct hps_continuous *out)
{
	double low = least_tau(x, high);
	bool convex = true;
	struct jet f = { 0 };

	for (uint32_t i = 0; i < x->n; i++)
		convex &= x->part[i].regular;
	out->tau = high;
	if (x->p->objective == HPS_COST_PER_SAMPLE && low < high)
		out->tau = convex ? newton(x, low, high, out) : search(x, low, high, out);
	/* Units that lie on a kink may be off by rounding: high always does. */
	if (!value_at(x, out->tau, &f)) {
		out->tau = high;
		value_at(x, high, &f);
	}
	out->value = f.v;
	out->shards = x->shards.v;
	out->bound = convex;
	for (uint32_t i = 0; i < x->n; i++)
		out->k[i] = x->k[i].v;
}

enum hps_status hps_newton(const struct hps_problem *p, const struct hps_span *stage,
			   uint32_t n_stages, struct hps_continuous *out, struct hps_err *err)
{
	struct relaxed x;
	double high;
	struct jet f;
	enum hps_status rc = relax(&x, p, stage, n_stages, err);

	if (rc)
		return rc;
	high = fmin(idle_tau(&x), hps_floor_tau(p));
	out->newton = out->bisect = 0;
	if (high > 0 && value_at(&x, high, &f))
		solve(&x, high, out);
	else
		rc = hps_err_set(err, HPS_NO, "no real number of units reaches %.6g samples/s",
				 p->floor);
	free(x.part);
	return rc;
}

double hps_continuous_at(const struct hps_problem *p, const struct hps_span *stage,
			 uint32_t n_stages, double tau)
{
	struct relaxed x;
	struct jet f;

	if (relax(&x, p, stage, n_stages, NULL))
		return INFINITY;
	if (!value_at(&x, tau, &f))
		f.v = INFINITY;
	free(x.part);
	return f.v;
}
