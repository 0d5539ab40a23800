/* The policy: a recurrent network that walks over the layers and chooses, at each, whether a
 * stage ends before it and, if so, on which type the next one runs.
 *
 *   layer features x_l  --+                     +--> cut?   sigmoid
 *   features of what was  +--> LSTM or Elman h_l|
 *   chosen so far   p_l --+      (h_l-1, c_l-1) +--> q_l    one weight for each type feature
 *                                                      score of type t = q_l . f_l,t
 *
 * A step a layer; the choice before is fed back as p_l: how far the stage has come, and the
 * features f_l,t that its type has at this layer. Types are scored by their features, never by
 * their position, and layers are described by what they do, so a policy of one cluster and
 * model serves every other. Layer 0 always begins a stage; with `merge` the type before is not
 * to be had again.
 *
 * A roll-out is a batch of `width` walks in lock step, values stored [feature][column] so that
 * columns are vector lanes. Column by column the arithmetic is the same for every width and
 * every processor: the same bytes come out.
 *
 * Not thread-safe; nothing is shared between two policies or roll-outs.
 */
#ifndef HPS_PLAN_POLICY_H
#define HPS_PLAN_POLICY_H

#include "base/rng.h"
#include "plan/plan.h"

enum hps_cell { HPS_CELL_LSTM, HPS_CELL_RNN };
const char *hps_cell_name(enum hps_cell c); /* "lstm", "rnn" */

enum {
	HPS_POLICY_LAYER = 18, /* features of a layer */
	HPS_POLICY_TYPE = 8,   /* features of a type at a layer */
	HPS_POLICY_PAST = 5,   /* of the walk so far, before the type's */
	HPS_POLICY_HIDDEN = 24,
	HPS_POLICY_MAX_HIDDEN = 1024,
};

/* --- what a policy sees of a problem --- */

struct hps_policy_input {
	uint32_t n_layers, n_types;
	uint32_t stride; /* n_types rounded up to whole vectors */
	bool merge;
	float *layer;	/* n_layers x HPS_POLICY_LAYER */
	float *type;	/* n_layers x HPS_POLICY_TYPE x stride */
	float *by_type; /* the same as n_layers x n_types x HPS_POLICY_TYPE */
	float *work;	/* n_layers: share of all work, on each layer's cheapest type */
};
/* Features, each within about -3..3, see policy_input.c. Borrows nothing of p. */
enum hps_status hps_policy_input_init(struct hps_policy_input *in, const struct hps_problem *p,
				      struct hps_err *err);
void hps_policy_input_release(struct hps_policy_input *in);

/* --- the network --- */

struct hps_policy {
	enum hps_cell cell;
	uint32_t hidden;
	size_t n_weights;
	float *weight; /* one block, laid out as policy.c says */
};
/* Drawn from the seed: Glorot-uniform, the output layer scaled by 0.1, the forget gate's bias 1.
 * HPS_USAGE for hidden of 0 or above HPS_POLICY_MAX_HIDDEN. */
enum hps_status hps_policy_init(struct hps_policy *n, enum hps_cell cell, uint32_t hidden,
				uint64_t seed, struct hps_err *err);
enum hps_status hps_policy_copy(struct hps_policy *to, const struct hps_policy *from,
				struct hps_err *err); /* to is empty, or of the same shape */
void hps_policy_release(struct hps_policy *n);

/* --- roll-outs --- */

struct hps_rollout {
	const struct hps_policy_input *in; /* borrowed */
	enum hps_cell cell;
	uint32_t hidden, width;
	uint32_t *type; /* n_layers x width: out, or in for forced columns */
	uint8_t *cut;	/* n_layers x width: a stage begins here; 1 at layer 0 */
	void *block;
	struct hps_rollout_parts *part; /* policy.c's own */
};
/* net and in give the shape; in must outlive r. */
enum hps_status hps_rollout_init(struct hps_rollout *r, const struct hps_policy *net,
				 const struct hps_policy_input *in, uint32_t width,
				 struct hps_err *err);
void hps_rollout_release(struct hps_rollout *r);
/* Walk. rng NULL: the likelier choice each time (the first of equals); else drawn from it. The
 * last n_forced columns are not drawn: type and cut hold their walks. */
void hps_rollout_run(struct hps_rollout *r, const struct hps_policy *net, struct hps_rng *rng,
		     uint32_t n_forced);
/* After a run with the same weights: add to grad (n_weights) the
 * gradient of
 *   sum over columns of  -weight[b] log P(walk b)  -  bonus[b] * (entropy of its choices)
 * An entropy over n types counts by 1 / sqrt(log2(n)): many types shall neither outweigh the cuts
 * nor be settled too soon. */
void hps_rollout_gradient(struct hps_rollout *r, const struct hps_policy *net, const float *weight,
			  const float *bonus, float *grad);
/* That sum itself, for tests. */
double hps_rollout_loss(const struct hps_rollout *r, const float *weight, const float *bonus);

/* Column b as stages, units 0; returns how many. out has room for n_layers. */
uint32_t hps_rollout_spans(const struct hps_rollout *r, uint32_t b, struct hps_span *out);

/* --- files --- */

/* A trained policy in a file: PATH appears by rename. */
enum hps_status hps_policy_save(const struct hps_policy *n, const char *path, struct hps_err *err);
/* HPS_BAD_INPUT names a file that is no policy, of another version, or damaged. */
enum hps_status hps_policy_load(const char *path, struct hps_policy *n, struct hps_err *err);

#endif
