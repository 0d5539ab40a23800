/* Private to lib/plan: hosts by the address that they listen at. */
#ifndef HPS_PLAN_DEPLOY_INT_H
#define HPS_PLAN_DEPLOY_INT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "job/cluster.h"

/* group[h] (n_hosts): the first host with host h's address; hosts of one group take their ports
 * from one row. */
enum hps_status hps_address_groups(const struct hps_cluster *cl, uint32_t *group,
				   struct hps_err *err);

/* 127.x.x.x, ::1 or localhost: no other machine reaches it. */
bool hps_address_loopback(const char *address);

/* Append "tcp://ADDRESS:PORT", an IPv6 address in brackets. */
enum hps_status hps_address_endpoint(const char *address, uint32_t port, struct hps_buf *b,
				     struct hps_err *err);

#endif
