/* Holds what shards ended with against the oracle, bit for bit. */
#ifndef HPS_TESTS_EQUAL_H
#define HPS_TESTS_EQUAL_H

#include "oracle.h"
#include "router.h"
#include "tiny.h"

/* Dense parameters, the rows there are and their values; of r only the shards are looked at.
 * Fails the test naming `name` and the place. */
void equal_assert(const struct tiny *t, const struct oracle *o, const struct router_result *r,
		  const char *name);

#endif
