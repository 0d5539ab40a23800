/* Clocks, the number of cores, and kernels compiled for several vector widths. */
#include "cm.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/cpu_int.h"
#include "base/file.h"
#include "base/hot.h"
#include "base/rng.h"
#include "child.h"

static char dir[128];

static void test_clocks(void **state)
{
	double t = hps_now_s(), cpu = hps_cpu_s(), sum = 0;
	int64_t ms = hps_now_ms();

	while (hps_cpu_s() - cpu < 0.01)
		sum += 1;
	assert_true(sum > 0);
	assert_true(hps_now_s() - t >= 0.009); /* CPU time passes no faster than the clock */
	assert_true(hps_now_ms() >= ms + 9);
	assert_true(hps_now_s() * 1000 + 1 >= (double)hps_now_ms());
}

static int count_pinned(void *arg)
{
	cpu_set_t all, one;
	int keep = *(int *)arg, n = 0;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && n < keep; i++)
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			n++;
		}
	sched_setaffinity(0, sizeof(one), &one);
	return hps_cpu_count();
}

static void test_affinity(void **state)
{
	struct child c;
	int all = hps_cpu_count();

	assert_true(all >= 1);
	for (int keep = 1; keep <= all && keep <= 2; keep++) {
		child_run(&c, count_pinned, &keep);
		assert_int_equal(c.status, keep);
	}
}

/* Write a file of the pretended cgroup tree. */
static void put(const char *name, const char *text)
{
	char path[256], parent[256];
	struct hps_err err = { 0 };

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(parent, sizeof(parent), "%s", path);
	*strrchr(parent, '/') = '\0';
	assert_int_equal(hps_mkdirs(parent, 0755, &err), HPS_OK);
	assert_int_equal(hps_file_write(path, text, strlen(text), 0644, &err), HPS_OK);
}

static int quota(void)
{
	char groups[256];

	snprintf(groups, sizeof(groups), "%s/groups", dir);
	return hps_cgroup_cpus(groups, dir);
}

static void test_cgroup_v2(void **state)
{
	scratch_make(dir, sizeof(dir));
	assert_int_equal(quota(), 0); /* no cgroups at all */
	put("groups", "0::/a/b\n");
	assert_int_equal(quota(), 0);
	put("a/b/cpu.max", "max 100000\n");
	assert_int_equal(quota(), 0);
	put("a/b/cpu.max", "400000 100000\n");
	assert_int_equal(quota(), 4);
	put("a/cpu.max", "250000 100000\n"); /* the parent is tighter: 2.5 cores are 2 units */
	assert_int_equal(quota(), 2);
	put("cpu.max", "50000 100000\n"); /* half a core is still one */
	assert_int_equal(quota(), 1);
	put("groups", "0::/elsewhere/outside/the/mount\n");
	assert_int_equal(quota(), 1);
	put("cpu.max", "nonsense\n");
	assert_int_equal(quota(), 0);
	put("groups", "0::/../../a\nnonsense\n::\n");
	assert_true(quota() >= 0);
	scratch_remove(dir);
}

static void test_cgroup_v1(void **state)
{
	scratch_make(dir, sizeof(dir));
	put("groups", "9:cpuset:/x\n4:cpuacct,cpu:/a\n1:name=systemd:/\n");
	put("x/cpu.max", "100000 100000\n"); /* not of the cpu controller */
	assert_int_equal(quota(), 0);
	put("cpu/a/cpu.cfs_quota_us", "-1\n");
	put("cpu/a/cpu.cfs_period_us", "100000\n");
	assert_int_equal(quota(), 0);
	put("cpu/a/cpu.cfs_quota_us", "350000\n");
	assert_int_equal(quota(), 3);
	put("cpu/cpu.cfs_quota_us", "200000\n");
	put("cpu/cpu.cfs_period_us", "100000\n");
	assert_int_equal(quota(), 2);
	put("cpu/a/cpu.cfs_period_us", "0\n");
	assert_int_equal(quota(), 2);
	scratch_remove(dir);
}

static void test_cgroup_v1_joined_name(void **state)
{
	scratch_make(dir, sizeof(dir));
	put("groups", "4:cpu,cpuacct:/\n");
	put("cpu,cpuacct/cpu.cfs_quota_us", "500000\n");
	put("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
	assert_int_equal(quota(), 5);
	scratch_remove(dir);
}

/* The promise of hot.h: no clone fuses a multiply and an add, so all give the same bits. */
HPS_HOT void hot_axpy(float *restrict y, const float *restrict x, float a, int n);
HPS_HOT void hot_axpy(float *restrict y, const float *restrict x, float a, int n)
{
	for (int i = 0; i < n; i++)
		y[i] += a * x[i];
}

HPS_HOT float hot_dot(const float *x, const float *y, int n);
HPS_HOT float hot_dot(const float *x, const float *y, int n)
{
	float sum = 0;

	for (int i = 0; i < n; i++)
		sum += x[i] * y[i];
	return sum;
}

static void test_hot(void **state)
{
	enum { N = 1003 };
	float x[N], y[N], want[N];
	volatile float product, sum = 0; /* rounded at each step, whatever the compiler likes */

	for (uint64_t i = 0; i < N; i++) {
		x[i] = hps_unit_float(hps_hash3(1, 0, i));
		y[i] = want[i] = hps_unit_float(hps_hash3(2, 0, i));
	}
	for (int i = 0; i < N; i++) {
		product = x[i] * y[i];
		sum = sum + product;
	}
	assert_true(hot_dot(x, y, N) == sum);
	for (int i = 0; i < N; i++) {
		product = 0.3f * x[i];
		want[i] = want[i] + product;
	}
	hot_axpy(y, x, 0.3f, N);
	assert_memory_equal(y, want, sizeof(y));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_affinity),
		cmocka_unit_test(test_cgroup_v2),
		cmocka_unit_test(test_cgroup_v1),
		cmocka_unit_test(test_cgroup_v1_joined_name),
		cmocka_unit_test(test_hot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
