/* Private to lib/cost. */
#ifndef HPS_COST_COST_INT_H
#define HPS_COST_COST_INT_H

#include "cost/cost.h"

/* PT's two sides for one shard: seconds a sample. */
double hps_cost_ps_cpu(const struct hps_cost *c, double dense_bytes);
double hps_cost_ps_link(const struct hps_cost *c, double dense_bytes);

#endif
