/* Allocation that checks its arithmetic and reports instead of aborting. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/mem.h"

enum { ALIGN = 64 };

/* Allocations left until one fails; 0 = none will. For tests only. */
static atomic_ulong fail_in;

void hps_mem_fail_at(unsigned long n)
{
	atomic_store(&fail_in, n);
}

/* Does this allocation fail on request? */
static int told_to_fail(void)
{
	unsigned long left = atomic_load_explicit(&fail_in, memory_order_relaxed);

	while (left)
		if (atomic_compare_exchange_weak(&fail_in, &left, left - 1))
			return left == 1;
	return 0;
}

static void *no_memory(size_t bytes, struct hps_err *err)
{
	hps_err_set(err, HPS_MEMORY, "cannot allocate %zu bytes", bytes);
	return NULL;
}

int hps_mul_size(size_t a, size_t b, size_t *out)
{
	return __builtin_mul_overflow(a, b, out) ? -1 : 0;
}

int hps_add_size(size_t a, size_t b, size_t *out)
{
	return __builtin_add_overflow(a, b, out) ? -1 : 0;
}

/* n * size, at least 1 so that an empty array is a valid pointer; -1 with err on overflow. */
static int array_bytes(size_t n, size_t size, size_t *bytes, struct hps_err *err)
{
	if (hps_mul_size(n, size, bytes) || *bytes > SIZE_MAX / 2) {
		hps_err_set(err, HPS_MEMORY, "cannot allocate %zu items of %zu bytes", n, size);
		return -1;
	}
	if (*bytes == 0)
		*bytes = 1;
	return 0;
}

void *hps_calloc(size_t n, size_t size, struct hps_err *err)
{
	size_t bytes;
	void *p;

	if (array_bytes(n, size, &bytes, err))
		return NULL;
	p = told_to_fail() ? NULL : calloc(1, bytes);
	return p ? p : no_memory(bytes, err);
}

void *hps_calloc_aligned(size_t n, size_t size, struct hps_err *err)
{
	size_t bytes;
	void *p;

	if (array_bytes(n, size, &bytes, err))
		return NULL;
	bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN; /* aligned_alloc wants a multiple */
	p = told_to_fail() ? NULL : aligned_alloc(ALIGN, bytes);
	if (!p)
		return no_memory(bytes, err);
	memset(p, 0, bytes);
	return p;
}

enum hps_status hps_realloc(void **ptr, size_t n, size_t size, struct hps_err *err)
{
	size_t bytes;
	void *p;

	if (array_bytes(n, size, &bytes, err))
		return HPS_MEMORY;
	p = told_to_fail() ? NULL : realloc(*ptr, bytes);
	if (!p) {
		no_memory(bytes, err);
		return HPS_MEMORY;
	}
	*ptr = p;
	return HPS_OK;
}

char *hps_strdup(const char *s, struct hps_err *err)
{
	size_t len = strlen(s) + 1;
	char *p = hps_calloc(len, 1, err);

	if (p)
		memcpy(p, s, len);
	return p;
}

/* The number in a file of one, or `most` where there is none or it is larger ("max"). */
static double limit_in(const char *path, double most)
{
	FILE *f = fopen(path, "re");
	double v = most;

	if (f && fscanf(f, "%lf", &v) != 1)
		v = most;
	if (f)
		fclose(f);
	return v > 0 && v < most ? v : most;
}

double hps_mem_total(void)
{
	double total = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	struct rlimit space;

	total = limit_in("/sys/fs/cgroup/memory.max", total);
	total = limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", total);
	if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur != RLIM_INFINITY &&
	    (double)space.rlim_cur < total)
		total = (double)space.rlim_cur;
	return total;
}
