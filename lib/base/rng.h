/* Random numbers by counter: the same (seed, stream, index) gives the same bits
 * on every host, whatever order they are drawn in. */
#ifndef HPS_BASE_RNG_H
#define HPS_BASE_RNG_H

#include <stdint.h>

/* Mix of 64 bits, a bijection: the finaliser of splitmix64 (Steele, Lea, Flood 2014). */
uint64_t hps_mix64(uint64_t x);

/* A hash of three words: what (seed, table, key) draws. */
uint64_t hps_hash3(uint64_t a, uint64_t b, uint64_t c);

/* A hash of bytes with a seed, quality of xxHash64; for keys and digests, not for secrets. */
uint64_t hps_hash_bytes(const void *data, uint64_t len, uint64_t seed);

/* A sequential generator: xoshiro256** (Blackman, Vigna 2018), seeded by splitmix64. */
struct hps_rng {
	uint64_t s[4];
};

void hps_rng_init(struct hps_rng *r, uint64_t seed, uint64_t stream);
uint64_t hps_rng_u64(struct hps_rng *r);
uint64_t hps_rng_below(struct hps_rng *r, uint64_t n); /* [0, n), unbiased; n > 0 */
double hps_rng_uniform(struct hps_rng *r);	       /* [0, 1), 53 bits */
double hps_rng_normal(struct hps_rng *r);	       /* mean 0, variance 1 */

/* A float in [-1, 1) from 24 bits of a hashed word: initial weights. */
float hps_unit_float(uint64_t hash);

#endif
