/* Run a piece of a test in a child process, to see what it prints and how it ends, and a
 * scratch directory. For unit tests; failures here fail the running cmocka test. */
#ifndef HPS_TESTS_CHILD_H
#define HPS_TESTS_CHILD_H

#include <stddef.h>

/* What a child did: exit status (128 + signal if killed), standard output, standard error. */
struct child {
	int status;
	char out[16384], err[16384]; /* cut, NUL-terminated */
};

/* Fork, run fn(arg), exit with what it returns (or as it exits itself), collect. */
void child_run(struct child *c, int (*fn)(void *arg), void *arg);

/* A new directory, its name in path; removed with all its files by scratch_remove. */
void scratch_make(char *path, size_t size);
void scratch_remove(const char *path);
/* Entries in a directory other than "." and "..". */
size_t scratch_count(const char *path);

#endif
