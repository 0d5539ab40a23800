/* Private to lib/plan: how a policy's weights lie.
 *
 * One block of floats, input-major (a row holds what one input gives to every output):
 *   layer   HPS_POLICY_LAYER rows of `gates`     x_l
 *   bias    gates
 *   input   inputs rows of `gates`               p_l, then h_l-1
 *   head    hidden rows of OUTPUTS               h_l to cut, q and "same type as before"
 *   bias    OUTPUTS
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
};

/* Where the parts begin, in floats. */
struct hps_policy_shape {
	uint32_t gates, inputs;
	size_t layer, bias, input, head, head_bias, n;
};
struct hps_policy_shape hps_policy_shape(enum hps_cell cell, uint32_t hidden);

#endif
