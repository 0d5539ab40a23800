/* Private to lib/plan: how a policy's weights and a roll-out's values lie, and the arithmetic on
 * them.
 *
 * Weights are one block of floats, input-major (a row holds what one input gives to every output):
 *   layer   HPS_POLICY_LAYER rows of `gates`     from x_l
 *   bias    gates
 *   input   `inputs` rows of gates               from p_l, then h_l-1
 *   head    hidden rows of HPS_POLICY_OUTPUTS    from h_l to cut, "same type as before", q
 *   bias    HPS_POLICY_OUTPUTS
 * gates is 4 * hidden (i, f, o, then g) for an LSTM, hidden for an Elman cell.
 */
#ifndef HPS_PLAN_POLICY_INT_H
#define HPS_PLAN_POLICY_INT_H

#include "plan/policy.h"

enum {
	HPS_POLICY_P = HPS_POLICY_PAST + HPS_POLICY_TYPE,
	HPS_POLICY_CUT = 0,
	HPS_POLICY_SAME = 1,
	HPS_POLICY_Q = 2,
	HPS_POLICY_OUTPUTS = HPS_POLICY_Q + HPS_POLICY_TYPE,
	HPS_POLICY_LANES = 16, /* floats of the widest vector: strides are multiples of it */
};

/* Where the parts begin, in floats. */
struct hps_policy_shape {
	uint32_t gates, inputs;
	size_t layer, bias, input, head, head_bias, n;
};
struct hps_policy_shape hps_policy_shape(enum hps_cell cell, uint32_t hidden);

/* Rows of floats, `width` columns each. One block; l: of each layer. */
struct hps_rollout_parts {
	struct hps_policy_shape shape;
	float *fixed;  /* l: gates, one column. W x_l + b */
	float *input;  /* l, and one more: inputs. p_l, h_l-1 */
	float *gate;   /* l: gates, after their functions */
	float *cell;   /* l, and one more: hidden. c_l-1 */
	float *head;   /* l: outputs */
	float *logp;   /* l: width x stride. ln P(type), where a stage begins */
	float *prob;   /* stride */
	float *past;   /* 3: stages so far; length and work of the stage */
	float *z;      /* gates: the gradient before their functions */
	float *zt;     /* width x gates, width x outputs: transposed */
	float *dhead;  /* outputs */
	float *dinput; /* inputs */
	float *dcell;  /* hidden */
	float *sum;    /* gates, one column */
};

/* May a stage begin at layer l > 0? Not where it would be on the only type, under `merge`. */
static inline bool hps_policy_may_cut(const struct hps_policy_input *in)
{
	return !in->merge || in->n_types > 1;
}

/* --- policy_math.c: matrices row-major; sums are in the order of the summed index --- */

/* out[0..n) += sum over k < count of coef[k * step] * row[k * n ..] */
void hps_policy_add(float *restrict out, size_t n, const float *restrict coef, size_t step,
		    const float *restrict row, size_t count);
/* z (outputs, width) += w^T x, w (k, outputs), x (k, width) */
void hps_policy_forward(float *restrict z, size_t outputs, size_t width, const float *restrict w,
			const float *restrict x, size_t k);
/* d (k, width) += w z, w (k, n), z (n, width) */
void hps_policy_backward(float *restrict d, size_t k, size_t width, const float *restrict w,
			 const float *restrict z, size_t n);
/* grad (k, n) += x zt, x (k, width), zt (width, n) */
void hps_policy_outer(float *restrict grad, size_t k, size_t n, const float *restrict x,
		      const float *restrict zt, size_t width);
void hps_policy_sigmoid(float *restrict x, size_t n);
void hps_policy_tanh(float *restrict x, size_t n);
/* gate: i, f, o (sigmoids), g (tanh), n values each; before: c_l-1; out: c_l and h_l. */
void hps_policy_lstm(const float *restrict gate, const float *restrict before, float *restrict cell,
		     float *restrict h, size_t n);
/* dh: of h_l. dc: in, of c_l from later layers; out, of c_l-1. dz: out, of the gates' sums. */
void hps_policy_lstm_back(const float *restrict gate, const float *restrict before,
			  const float *restrict cell, const float *restrict dh, float *restrict dc,
			  float *restrict dz, size_t n);
void hps_policy_rnn_back(const float *restrict h, const float *restrict dh, float *restrict dz,
			 size_t n);
/* x becomes ln of its softmax, prob the softmax; n a multiple of HPS_POLICY_LANES. */
void hps_policy_log_softmax(float *restrict x, float *restrict prob, size_t n);
/* logp becomes the gradient of -weight logp[choice] - bonus * entropy by the scores. prob:
 * scratch. */
void hps_policy_score_back(float *restrict logp, float *restrict prob, size_t n, uint32_t choice,
			   float weight, float bonus);
/* A step of Adam (Kingma, Ba 2015; beta 0.9, 0.999) with the gradient's norm clipped at 1. m, v:
 * its moments, 0 before step 1. */
void hps_policy_adam(float *restrict weight, const float *restrict grad, float *restrict m,
		     float *restrict v, size_t n, uint64_t step, double rate);

#endif
