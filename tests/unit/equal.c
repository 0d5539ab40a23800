/* Holds what shards ended with against the oracle. See equal.h. */
#include "equal.h"

#include <stdlib.h>
#include <string.h>
#include "cm.h"

void equal_assert(const struct tiny *t, const struct oracle *o, const struct router_result *r,
		  const char *name)
{
	float *dense = router_dense(r, &t->graph);
	const struct hps_model *m = &t->job.model;

	for (uint64_t i = 0; i < t->graph.n_floats; i++)
		if (memcmp(dense + i, oracle_dense(o) + i, sizeof(float)) != 0)
			fail_msg("%s: dense parameter %llu: %.9g, oracle %.9g", name,
				 (unsigned long long)i, dense[i], oracle_dense(o)[i]);
	free(dense);
	for (uint32_t k = 0; k < m->n_tables; k++) {
		if (router_rows(r, k) != oracle_rows(o, k))
			fail_msg("%s: table %u: %llu rows, oracle %zu", name, k,
				 (unsigned long long)router_rows(r, k), oracle_rows(o, k));
		for (size_t i = 0; i < oracle_rows(o, k); i++) {
			float row[64];
			uint64_t key;
			const float *want = oracle_row_at(o, k, i, &key);

			assert_true(m->table[k].dim <= 64);
			if (!router_row(r, &t->graph, k, key, row) ||
			    memcmp(row, want, m->table[k].dim * sizeof(float)) != 0)
				fail_msg("%s: table %u: row %llu differs from the oracle's", name,
					 k, (unsigned long long)key);
		}
	}
}
