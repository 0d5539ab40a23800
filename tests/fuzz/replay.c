/* Feed the files of testdata/fuzz/NAME to the fuzz target this is linked with, as TAP: what
 * a fuzzer once found stays found, and no clang is needed. The program is named replay_NAME;
 * operands are files or directories to take instead.
 *
 * A new target: tests/fuzz/fuzz_NAME.c with libFuzzer's LLVMFuzzerTestOneInput, seeds in
 * testdata/fuzz/NAME/. `make check` replays, `make fuzz FUZZ=NAME SECONDS=60` searches. */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PER_FILE_S = 20 }; /* longer is a hang: SIGALRM ends the program */

static int count;
static char current[4096]; /* what on_death says */

/* Say which file it was; the default action follows. */
static void on_death(int signo)
{
	ssize_t n = write(STDERR_FILENO, current, strlen(current));

	(void)n;
	signal(signo, SIG_DFL);
	raise(signo);
}

static int replay_file(const char *path)
{
	struct hps_buf b = HPS_BUF_INIT;
	struct hps_err err = { 0 };
	uint8_t *exact;

	if (hps_file_read(path, 0, &b, &err) != HPS_OK)
		return hps_err_print("replay", &err);
	exact = malloc(b.len ? b.len : 1); /* exact, so that a sanitizer sees a read past it */
	if (!exact)
		return HPS_MEMORY;
	memcpy(exact, b.data, b.len);
	alarm(PER_FILE_S);
	snprintf(current, sizeof(current), "# died on %s\n", path);
	LLVMFuzzerTestOneInput(exact, b.len);
	alarm(0);
	printf("ok %d - %s\n", ++count, path);
	fflush(stdout);
	free(exact);
	hps_buf_release(&b);
	return 0;
}

static int only_files(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int replay(const char *path)
{
	struct dirent **e = NULL;
	int n = scandir(path, &e, only_files, alphasort), rc = 0;
	char file[4096];

	if (n < 0)
		return replay_file(path);
	for (int i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, e[i]->d_name);
		rc = rc ? rc : replay_file(file);
		free(e[i]);
	}
	free(e);
	return rc;
}

int main(int argc, char **argv)
{
	const char *root = getenv("HPS_ROOT"), *name = strrchr(argv[0], '_');
	char corpus[4096];
	int rc = 0;

	signal(SIGABRT, on_death);
	signal(SIGALRM, on_death);
	signal(SIGSEGV, on_death);
	snprintf(corpus, sizeof(corpus), "%s/testdata/fuzz/%s", root ? root : ".",
		 name ? name + 1 : "");
	if (argc < 2)
		rc = replay(corpus);
	for (int i = 1; i < argc && !rc; i++)
		rc = replay(argv[i]);
	printf("1..%d\n", count);
	if (!count)
		fprintf(stderr, "replay: no files in %s\n", corpus);
	return rc ? rc : !count;
}
