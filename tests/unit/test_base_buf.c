/* Allocation and buffers: arithmetic, ceilings, and every allocation failing once. */
#include "cm.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/mem.h"

static void test_arithmetic(void **state)
{
	size_t v = 7;

	assert_int_equal(hps_mul_size(6, 7, &v), 0);
	assert_int_equal(v, 42);
	assert_int_equal(hps_mul_size(SIZE_MAX / 2, 3, &v), -1);
	assert_int_equal(hps_mul_size(SIZE_MAX, 0, &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(hps_add_size(40, 2, &v), 0);
	assert_int_equal(v, 42);
	assert_int_equal(hps_add_size(SIZE_MAX, 1, &v), -1);
}

static void test_alloc(void **state)
{
	struct hps_err err = { 0 };
	unsigned char *p = hps_calloc(3, 5, &err);
	void *grown;

	assert_non_null(p);
	for (int i = 0; i < 15; i++)
		assert_int_equal(p[i], 0);
	free(p);
	p = hps_calloc(0, 8, &err);
	assert_non_null(p);
	free(p);

	for (size_t n = 0; n < 200; n += 33) {
		p = hps_calloc_aligned(n, 1, &err);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 64, 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(p[i], 0);
		free(p);
	}

	grown = hps_strdup("hello", &err);
	assert_string_equal(grown, "hello");
	assert_int_equal(hps_realloc(&grown, 100, 1, &err), HPS_OK);
	assert_string_equal(grown, "hello");
	assert_int_equal(err.status, HPS_OK); /* untouched on success */

	/* Overflow is told, and leaves what was there. */
	assert_int_equal(hps_realloc(&grown, SIZE_MAX / 4, 8, &err), HPS_MEMORY);
	assert_string_equal(grown, "hello");
	assert_int_equal(err.status, HPS_MEMORY);
	assert_null(hps_calloc(SIZE_MAX / 2, 3, NULL));
	assert_null(hps_calloc(SIZE_MAX, 1, NULL));
	assert_null(hps_calloc_aligned(SIZE_MAX / 2, 3, NULL));
	free(grown);
}

static void test_fail_at(void **state)
{
	struct hps_err err = { 0 };
	void *p = NULL;

	hps_mem_fail_at(2);
	p = hps_calloc(1, 1, &err);
	assert_non_null(p);
	assert_int_equal(hps_realloc(&p, 50, 1, &err), HPS_MEMORY);
	assert_int_equal(hps_realloc(&p, 50, 1, &err), HPS_OK); /* once */
	free(p);
	hps_mem_fail_at(1);
	hps_mem_fail_at(0);
	p = hps_calloc_aligned(1, 1, &err);
	assert_non_null(p);
	free(p);
	hps_mem_fail_at(1);
	assert_null(hps_calloc_aligned(1, 1, &err));
	hps_mem_fail_at(1);
	assert_null(hps_strdup("x", &err));
}

static void test_buf(void **state)
{
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_err err = { 0 };
	char *text;

	text = hps_buf_take(&b);
	assert_string_equal(text, "");
	free(text);

	assert_int_equal(hps_buf_add(&b, "abc", 3, &err), HPS_OK);
	assert_int_equal(hps_buf_add(&b, NULL, 0, &err), HPS_OK);
	assert_int_equal(hps_buf_printf(&b, &err, "-%d-%s", 42, "x"), HPS_OK);
	assert_string_equal(b.data, "abc-42-x");
	assert_int_equal(b.len, 8);

	/* Many small steps: the content and its NUL hold through every growth. */
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(hps_buf_add(&b, "0123456789", 10, &err), HPS_OK);
		assert_int_equal(b.data[b.len], '\0');
	}
	assert_int_equal(b.len, 100008);
	assert_true(b.len < b.cap);
	text = hps_buf_take(&b);
	assert_null(b.data);
	assert_int_equal(b.len, 0);
	assert_memory_equal(text + 8 + 99990, "0123456789", 11);
	free(text);
	hps_buf_release(&b);
	hps_buf_release(&b); /* twice is fine */
}

static void test_ceiling(void **state)
{
	struct hps_buf b = { .max = 100 };
	struct hps_err err = { 0 };

	assert_int_equal(hps_buf_printf(&b, &err, "%90s", "x"), HPS_OK);
	assert_int_equal(hps_buf_add(&b, "0123456789", 10, &err), HPS_OK); /* exactly full */
	assert_int_equal(b.len, 100);
	assert_true(b.cap <= 101);
	assert_int_equal(hps_buf_add(&b, "x", 1, &err), HPS_MEMORY);
	assert_int_equal(err.status, HPS_MEMORY);
	assert_int_equal(hps_buf_printf(&b, &err, "x"), HPS_MEMORY);
	assert_int_equal(b.len, 100);
	assert_int_equal(b.data[100], '\0');
	hps_buf_release(&b);

	b = (struct hps_buf)HPS_BUF_INIT;
	assert_int_equal(hps_buf_add(&b, "x", 1, &err), HPS_OK);
	assert_int_equal(hps_buf_reserve(&b, SIZE_MAX, &err), HPS_MEMORY);
	assert_int_equal(hps_buf_reserve(&b, SIZE_MAX / 2, &err), HPS_MEMORY);
	assert_string_equal(b.data, "x");
	hps_buf_release(&b);
}

static enum hps_status fill(struct hps_buf *b, struct hps_err *err)
{
	enum hps_status st = HPS_OK;

	for (int i = 0; i < 40 && st == HPS_OK; i++)
		st = hps_buf_printf(b, err, "%050d", i);
	for (int i = 0; i < 40 && st == HPS_OK; i++)
		st = hps_buf_add(b, "0123456789", 10, err);
	return st;
}

static void test_torture(void **state)
{
	enum hps_status st = HPS_MEMORY;
	unsigned long n;

	for (n = 1; st != HPS_OK; n++) {
		struct hps_buf b = HPS_BUF_INIT;
		struct hps_err err = { 0 };

		hps_mem_fail_at(n);
		st = fill(&b, &err);
		hps_mem_fail_at(0);
		assert_true(st == HPS_OK || (st == HPS_MEMORY && err.status == HPS_MEMORY));
		if (b.data)
			assert_int_equal(b.data[b.len], '\0'); /* whole up to the failure */
		hps_buf_release(&b);
	}
	assert_true(n > 4); /* it really grew several times */

	struct hps_buf b = HPS_BUF_INIT;
	hps_mem_fail_at(1);
	assert_null(hps_buf_take(&b));
}

/* No more than the machine has, no less than this process uses, and a limit is seen. */
static void test_total(void **state)
{
	double all = hps_mem_total();
	struct rlimit before, less;

	assert_true(all > 16 << 20);
	assert_true(all <= (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE));
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	less = before;
	less.rlim_cur = (rlim_t)(all / 2);
	assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
	assert_true(hps_mem_total() == floor(all / 2));
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_total),	cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_alloc),	cmocka_unit_test(test_fail_at),
		cmocka_unit_test(test_buf),	cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_torture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
