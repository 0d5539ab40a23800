/* Allocation that checks its arithmetic and reports instead of aborting. */
#ifndef HPS_BASE_MEM_H
#define HPS_BASE_MEM_H

#include <stddef.h>
#include "base/err.h"

/* n * size zeroed bytes, free()d by the caller; NULL with HPS_MEMORY in err on
 * overflow or exhaustion. n * size == 0 yields a valid pointer. */
void *hps_calloc(size_t n, size_t size, struct hps_err *err);

/* As hps_calloc, aligned to 64 bytes (a cache line, an AVX-512 vector); free(). */
void *hps_calloc_aligned(size_t n, size_t size, struct hps_err *err);

/* Grow *ptr to n * size bytes, the new part not cleared; *ptr stays valid on failure. */
enum hps_status hps_realloc(void **ptr, size_t n, size_t size, struct hps_err *err);

char *hps_strdup(const char *s, struct hps_err *err);

/* a * b and a + b; 0 and *out set on success, -1 on overflow. */
int hps_mul_size(size_t a, size_t b, size_t *out);
int hps_add_size(size_t a, size_t b, size_t *out);

/* Bytes of memory that this process can have: the machine's, or what a control group or a limit
 * on its address space leaves of it. */
double hps_mem_total(void);

/* Tests only: the n-th allocation from now on fails once (0 = never). */
void hps_mem_fail_at(unsigned long n);

#endif
