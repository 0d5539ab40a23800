/* The pieces of hps_cpu_count, apart so that tests can hand them another root. */
#ifndef HPS_BASE_CPU_INT_H
#define HPS_BASE_CPU_INT_H

/* Cores that cgroup quotas leave to the groups listed in the file `groups` (the format of
 * /proc/self/cgroup), read below `root` (/sys/fs/cgroup), v1 or v2, the tightest of a group
 * and its ancestors; a fraction is rounded down, to at least 1. 0 = no quota. */
int hps_cgroup_cpus(const char *groups, const char *root);

#endif
