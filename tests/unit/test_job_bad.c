/* testdata/bad: whole files as people get them wrong, each with what it is told. tests/cli/bad.bats
 * gives the same files to the commands. */
#include "cm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "job_case.h"

static enum hps_status read_as(const char *kind, const char *path, struct hps_err *err)
{
	enum hps_status rc;

	if (!strcmp(kind, "model")) {
		struct hps_model m;

		rc = hps_model_load(path, &m, err);
		if (!rc)
			hps_model_release(&m);
	} else if (!strcmp(kind, "cluster")) {
		struct hps_cluster c;

		rc = hps_cluster_load(path, &c, err);
		if (!rc)
			hps_cluster_release(&c);
	} else {
		struct hps_job job;

		assert_string_equal(kind, "job");
		rc = hps_job_read(path, HPS_MODEL | HPS_CLUSTER | HPS_PLAN, 0, &job, err);
		if (!rc)
			hps_job_release(&job);
	}
	return rc;
}

static void check(char *line)
{
	struct hps_err err = { 0 };
	char name[128], path[512], told[1400], expected[1024];
	char *file = strtok(line, "\t"), *kind = strtok(NULL, "\t"), *message = strtok(NULL, "\n");

	assert_non_null(message);
	snprintf(name, sizeof(name), "bad/%s", file);
	job_case_path(name, path, sizeof(path));
	if (read_as(kind, path, &err) != HPS_BAD_INPUT)
		fail_msg("%s: not refused as bad input: %s", file, err.msg);
	snprintf(told, sizeof(told), "%s: %s", err.where, err.msg);
	/* A place below the document's root is joined by ": " too. */
	snprintf(expected, sizeof(expected), "%s: %s", path, message);
	if (strncmp(told, expected, strlen(expected)))
		fail_msg("%s\nexpected %s\ngot      %s", file, expected, told);
}

static void test_bad_files(void **state)
{
	char path[512], line[2048];
	int files = 0;
	FILE *f;

	job_case_path("bad/expected.tsv", path, sizeof(path));
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (*line == '#')
			continue;
		check(line);
		files++;
	}
	fclose(f);
	assert_true(files >= 35);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_files),
	};

	return cmocka_run_group_tests_name("job bad", tests, NULL, NULL);
}
