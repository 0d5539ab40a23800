/* Do two hosts read the same data? A digest of sizes and of samples of the bytes: enough
 * to tell a shifted, shortened or other file, without reading terabytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/reader.h"
#include "data/source_int.h"

enum { BLOCKS = 64, BLOCK_BYTES = 64 << 10 };

static enum hps_status hash_block(int fd, const char *path, char *block, uint64_t offset,
				  uint64_t *digest, struct hps_err *err)
{
	size_t have = 0;

	while (have < BLOCK_BYTES) {
		ssize_t got = pread(fd, block + have, BLOCK_BYTES - have, (off_t)(offset + have));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			hps_err_errno(err, HPS_IO, "cannot read");
			hps_err_at(err, "%s", path);
			return HPS_IO;
		}
		if (got == 0)
			break;
		have += (size_t)got;
	}
	*digest = hps_hash_bytes(block, have, *digest);
	return HPS_OK;
}

/* *regular: false for what cannot be read twice. */
static enum hps_status hash_file(const char *path, char *block, uint64_t *digest, bool *regular,
				 struct hps_err *err)
{
	struct stat info;
	uint64_t size, span, blocks;
	enum hps_status st;
	int fd;

	*regular = false;
	if ((st = hps_source_check(path, &fd, err)) != HPS_OK)
		return st;
	if (fd >= 0) {
		if (fd > STDIN_FILENO)
			close(fd);
		return HPS_OK;
	}
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0 || fstat(fd, &info) != 0) {
		st = hps_err_errno(err, HPS_IO, "cannot open");
		hps_err_at(err, "%s", path);
		goto out;
	}
	*regular = true;
	size = (uint64_t)info.st_size;
	*digest = hps_hash3(*digest, size, 0);
	/* The first block begins the file, the last one ends it. */
	span = size > BLOCK_BYTES ? size - BLOCK_BYTES : 0;
	blocks = span / BLOCK_BYTES + 2 < BLOCKS ? span / BLOCK_BYTES + 2 : BLOCKS;
	for (uint64_t i = 0; st == HPS_OK && i < blocks; i++)
		st = hash_block(fd, path, block, i * span / (blocks - 1), digest, err);
out:
	if (fd >= 0)
		close(fd);
	return st;
}

enum hps_status hps_data_digest(const char *const *path, size_t n, uint64_t *digest,
				struct hps_err *err)
{
	char *block = hps_calloc(1, BLOCK_BYTES, err);
	enum hps_status st = block == NULL ? HPS_MEMORY : HPS_OK;
	bool regular = n > 0;
	uint64_t d = n;

	for (size_t i = 0; st == HPS_OK && regular && i < n; i++)
		st = hash_file(path[i], block, &d, &regular, err);
	if (st == HPS_OK)
		*digest = !regular ? 0 : d == 0 ? 1 : d;
	free(block);
	return st;
}
