/* The losses: what each computes of one sample with label y (0 or 1), and its score.
 *
 * The stage's loss is the sum over samples, in double. sigma(x) = 1 / (1 + e^-x),
 * softplus(x) = log(1 + e^x) = -log sigma(-x); both in forms that never overflow. A NaN
 * among the inputs of a row that counts makes the loss NaN.
 *
 *   sigmoid_cross_entropy   input z (1): softplus(z) - y z = softplus(y ? -z : z).
 *       dz = sigma(z) - y.   score sigma(z)
 *   softmax_cross_entropy   input z (2): log(e^z0 + e^z1) - z_y.
 *       dz_k = softmax_k - [k = y].   score softmax_1
 *   hinge                   inputs pos, neg (1 each): on rows with y = 1
 *       max(0, margin - pos + neg).   dpos = -1, dneg = 1 where it is positive.  score pos
 *   nce                     inputs hidden h (D), target t (D), noise n_1..n_k (k D): on rows
 *       with y = 1. Noise-contrastive estimation (Gutmann, Hyvarinen, AISTATS 2010; for
 *       words: Mnih, Teh, ICML 2012): tell the target from k rows drawn of the noise
 *       distribution q, here uniform over the table, q = 1/rows, with the model's
 *       unnormalised log-probability s(w) = h . w and the normaliser fixed at 1:
 *           softplus(-(s(t) - log(k q))) + sum_j softplus(s(n_j) - log(k q))
 *       With a = sigma(s(t) - log kq) - 1 and c_j = sigma(s(n_j) - log kq):
 *           dh = a t + sum_j c_j n_j;   dt = a h;   dn_j = c_j h.
 *       score sigma(h . t). `noise` must be a negatives layer, pooled by concat, of a
 *       table with `rows`: a table of whole hashes has no q.
 *
 * Rows with another label than 1 give hinge and nce no loss and no gradient, but a score.
 */
#ifndef HPS_NN_LOSS_H
#define HPS_NN_LOSS_H

#include <math.h>
#include <stdbool.h>

/* All that a loss needs of one x, from one exp. */
struct hps_logistic {
	double softplus, sigma, other; /* other: sigma(-x) = 1 - sigma(x), with all its digits */
};

static inline struct hps_logistic hps_logistic(double x)
{
	double e = exp(-fabs(x)), large = 1 / (1 + e), small = e / (1 + e);
	bool above = x > 0;

	return (struct hps_logistic){
		.softplus = (above ? x : 0) + log1p(e), /* a NaN stays, in e */
		.sigma = above ? large : small,
		.other = above ? small : large,
	};
}

#endif
