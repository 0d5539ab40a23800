/* How does a trained policy lie in a file?
 *
 *   0  "HPSPOLI1"               8 bytes
 *   8  version                  u32, little-endian as all
 *  12  cell                     u32  enum hps_cell
 *  16  hidden units             u32
 *  20  features of layer, type, walk   3 u32: another set of features is another version
 *  32  weights                  u64 n
 *  40  weights                  n floats, in the order of policy_int.h
 *  .. checksum                  u64  hps_hash_bytes of all before it, seed 1
 */
#include <math.h>
#include <string.h>
#include "base/file.h"
#include "plan/policy_int.h"

static const char magic[] = "HPSPOLI1";
enum { VERSION = 1, HEADER = 40, SUM = 8, SUM_SEED = 1 };
#define MAX_BYTES ((size_t)1 << 26) /* 1024 hidden units are 17 MiB */

static void put(unsigned char *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static uint64_t get(const unsigned char *p, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

enum hps_status hps_policy_save(const struct hps_policy *n, const char *path, struct hps_err *err)
{
	size_t len = HEADER + 4 * n->n_weights + SUM;
	struct hps_buf b = HPS_BUF_INIT;
	enum hps_status rc = hps_buf_reserve(&b, len, err);
	unsigned char *p = (unsigned char *)b.data;

	if (rc)
		return rc;
	memcpy(p, magic, 8);
	put(p + 8, VERSION, 4);
	put(p + 12, n->cell, 4);
	put(p + 16, n->hidden, 4);
	put(p + 20, HPS_POLICY_LAYER, 4);
	put(p + 24, HPS_POLICY_TYPE, 4);
	put(p + 28, HPS_POLICY_PAST, 4);
	put(p + 32, n->n_weights, 8);
	for (size_t i = 0; i < n->n_weights; i++) {
		uint32_t bits;

		memcpy(&bits, &n->weight[i], 4);
		put(p + HEADER + 4 * i, bits, 4);
	}
	put(p + len - SUM, hps_hash_bytes(p, len - SUM, SUM_SEED), SUM);
	rc = hps_file_write(path, p, len, 0666, err);
	hps_buf_release(&b);
	return rc;
}

static enum hps_status check_header(const unsigned char *p, size_t len, struct hps_err *err)
{
	uint32_t version, cell, hidden;
	struct hps_policy_shape s;
	uint64_t weights;

	if (len < 12 || memcmp(p, magic, 8))
		return hps_err_set(err, HPS_BAD_INPUT, "not a policy file");
	version = (uint32_t)get(p + 8, 4);
	if (version != VERSION)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "a policy file of version %u, expected version %d", version,
				   VERSION);
	weights = len >= HEADER ? get(p + 32, 8) : 0;
	if (len < HEADER + SUM || (weights < MAX_BYTES && len < HEADER + 4 * (size_t)weights + SUM))
		return hps_err_set(err, HPS_BAD_INPUT, "a policy file cut short at %zu bytes", len);
	if (get(p + len - SUM, SUM) != hps_hash_bytes(p, len - SUM, SUM_SEED))
		return hps_err_set(err, HPS_BAD_INPUT,
				   "a damaged policy file: its checksum does not hold");
	cell = (uint32_t)get(p + 12, 4);
	hidden = (uint32_t)get(p + 16, 4);
	if (cell > HPS_CELL_RNN || !hidden || hidden > HPS_POLICY_MAX_HIDDEN)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "a policy of cell %u with %u hidden units, expected 0 or 1 with "
				   "1..%d",
				   cell, hidden, HPS_POLICY_MAX_HIDDEN);
	if (get(p + 20, 4) != HPS_POLICY_LAYER || get(p + 24, 4) != HPS_POLICY_TYPE ||
	    get(p + 28, 4) != HPS_POLICY_PAST)
		return hps_err_set(err, HPS_BAD_INPUT, "a policy that sees other features");
	s = hps_policy_shape((enum hps_cell)cell, hidden);
	if (weights != s.n || len != HEADER + 4 * s.n + SUM)
		return hps_err_set(err, HPS_BAD_INPUT,
				   "a policy of %llu weights in %zu bytes, expected %zu",
				   (unsigned long long)weights, len, s.n);
	return HPS_OK;
}

static enum hps_status read_weights(const unsigned char *p, struct hps_policy *n,
				    struct hps_err *err)
{
	for (size_t i = 0; i < n->n_weights; i++) {
		uint32_t bits = (uint32_t)get(p + HEADER + 4 * i, 4);

		memcpy(&n->weight[i], &bits, 4);
		if (!isfinite(n->weight[i]))
			return hps_err_set(err, HPS_BAD_INPUT, "weight %zu is not finite", i);
	}
	return HPS_OK;
}

enum hps_status hps_policy_load(const char *path, struct hps_policy *n, struct hps_err *err)
{
	struct hps_buf b = HPS_BUF_INIT;
	const unsigned char *p;
	enum hps_status rc;

	memset(n, 0, sizeof(*n));
	rc = hps_file_read(path, MAX_BYTES, &b, err);
	if (rc) {
		hps_buf_release(&b);
		return rc;
	}
	p = (const unsigned char *)b.data;
	rc = check_header(p, b.len, err);
	if (!rc)
		rc = hps_policy_init(n, (enum hps_cell)get(p + 12, 4), (uint32_t)get(p + 16, 4), 0,
				     err);
	if (!rc)
		rc = read_weights(p, n, err);
	if (rc == HPS_BAD_INPUT)
		hps_err_at(err, "%s", path);
	if (rc)
		hps_policy_release(n);
	hps_buf_release(&b);
	return rc;
}
