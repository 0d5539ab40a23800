/* How many cores may this process use? Affinity (sched_getaffinity(2)), then the cgroup
 * CPU quota, v2 (cpu.max) and v1 (cpu.cfs_quota_us): a container with half a machine
 * shows all cores in its affinity. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/cpu_int.h"

enum { PATH_SIZE = 4096 };

/* Cores given by quota microseconds a period; 0 = no limit. */
static int cores_of(double quota, double period)
{
	double n;

	if (!(quota > 0) || !(period > 0))
		return 0;
	n = quota / period;
	return n < 1 ? 1 : n > 1e6 ? 1000000 : (int)n;
}

static int read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");
	int ok = f && fgets(line, size, f);

	if (f)
		fclose(f);
	return ok ? 0 : -1;
}

/* The quota of the one group whose folder is dir; 0 = none there. */
static int group_cores(const char *dir, int v2)
{
	char path[PATH_SIZE + 32], line[64];
	double quota = 0, period = 0;

	if (v2) {
		snprintf(path, sizeof(path), "%s/cpu.max", dir);
		if (read_line(path, line, sizeof(line)) ||
		    sscanf(line, "%lf %lf", &quota, &period) != 2)
			return 0; /* absent, or "max 100000" */
		return cores_of(quota, period);
	}
	snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
	if (read_line(path, line, sizeof(line)))
		return 0;
	quota = strtod(line, NULL); /* -1 = no limit */
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
	if (read_line(path, line, sizeof(line)))
		return 0;
	period = strtod(line, NULL);
	return cores_of(quota, period);
}

/* The tightest quota from base/group up to base itself. In a container the group's path may
 * lie outside what is mounted; the walk then ends at base, which is the container's own. */
static int tightest(const char *base, const char *group, int v2)
{
	char dir[PATH_SIZE];
	size_t keep = strlen(base);
	int best = 0;

	if ((size_t)snprintf(dir, sizeof(dir), "%s%s", base, group) >= sizeof(dir))
		return 0;
	for (;;) {
		int n = group_cores(dir, v2);

		if (n && (!best || n < best))
			best = n;
		if (strlen(dir) <= keep)
			return best;
		char *slash = strrchr(dir + keep, '/');
		*(slash ? slash : dir + keep) = '\0';
	}
}

static int names_cpu(const char *controllers)
{
	size_t n;

	for (const char *p = controllers; *p; p += n + (p[n] == ',')) {
		n = strcspn(p, ",");
		if (n == 3 && !memcmp(p, "cpu", 3))
			return 1;
	}
	return 0;
}

int hps_cgroup_cpus(const char *groups, const char *root)
{
	char line[PATH_SIZE], base[PATH_SIZE];
	int best = 0;
	FILE *f = fopen(groups, "re");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		char *name = strchr(line, ':'), *group = name ? strchr(name + 1, ':') : NULL;
		int n;

		if (!group)
			continue;
		*group++ = '\0';
		name++;
		group[strcspn(group, "\n")] = '\0';
		if (!strcmp(group, "/"))
			*group = '\0';
		if (!*name) { /* v2, mounted at the root or, in hybrid set-ups, below it */
			n = tightest(root, group, 1);
		} else if (names_cpu(name)) {
			if ((size_t)snprintf(base, sizeof(base), "%s/cpu", root) >= sizeof(base))
				continue;
			if (access(base, F_OK) && (size_t)snprintf(base, sizeof(base), "%s/%s",
								   root, name) >= sizeof(base))
				continue;
			n = tightest(base, group, 0);
		} else {
			continue;
		}
		if (n && (!best || n < best))
			best = n;
	}
	fclose(f);
	return best;
}

/* Cores in the affinity mask; the mask must be as large as the kernel's, or it fails. */
static int affinity_cores(void)
{
	for (int n = 1024; n <= 1 << 20; n *= 2) {
		cpu_set_t *set = CPU_ALLOC((size_t)n);
		size_t size = CPU_ALLOC_SIZE((size_t)n);
		int count = 0, rc;

		if (!set)
			break;
		rc = sched_getaffinity(0, size, set);
		if (rc == 0)
			count = CPU_COUNT_S(size, set);
		CPU_FREE(set);
		if (rc == 0)
			return count;
		if (errno != EINVAL)
			break;
	}
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? (int)online : 1;
}

int hps_cpu_count(void)
{
	int n = affinity_cores();
	int quota = hps_cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup");

	if (quota && quota < n)
		n = quota;
	return n > 0 ? n : 1;
}
