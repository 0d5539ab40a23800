/* The readers against documents bent at random and against every allocation failing: always
 * a job that holds, or a message with a place; never a crash, never a leak. */
#include "cm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/rng.h"
#include "graph/graph.h"
#include "job_case.h"

enum { ALL = HPS_MODEL | HPS_CLUSTER | HPS_PROFILE | HPS_PLAN | HPS_DEPLOYMENT };

/* --- a scanner of valid JSON: where do its values and members stand? --- */

struct span {
	size_t key, begin, end; /* key: where the member's name begins; begin if no member */
};

struct spans {
	struct span at[2048];
	size_t n;
};

static void blank(const char *s, size_t *i)
{
	*i += strspn(s + *i, " \t\r\n");
}

static void skip_string(const char *s, size_t *i)
{
	for (++*i; s[*i] != '"'; ++*i)
		if (s[*i] == '\\')
			++*i;
	++*i;
}

static void scan(const char *s, size_t *i, size_t key, struct spans *out)
{
	char open = s[*i];
	size_t begin = *i;

	if (open == '"') {
		skip_string(s, i);
	} else if (open == '[' || open == '{') {
		++*i;
		for (blank(s, i); s[*i] != ']' && s[*i] != '}'; blank(s, i)) {
			size_t name = *i;

			if (open == '{') {
				skip_string(s, i);
				blank(s, i);
				++*i; /* the colon */
				blank(s, i);
			}
			scan(s, i, open == '{' ? name : *i, out);
			blank(s, i);
			if (s[*i] == ',')
				++*i;
		}
		++*i;
	} else {
		*i += strcspn(s + *i, ",]} \t\r\n");
	}
	assert_true(out->n < sizeof(out->at) / sizeof(*out->at));
	out->at[out->n++] = (struct span){ key, begin, *i };
}

static void spans_of(const char *text, struct spans *out)
{
	size_t i = 0;

	out->n = 0;
	blank(text, &i);
	scan(text, &i, i, out);
}

/* --- bending --- */

static const char *const values[] = {
	"null",
	"true",
	"0",
	"-1",
	"1",
	"2",
	"1.5",
	"1e308",
	"-1e308",
	"1048577",
	"4294967296",
	"9007199254740993",
	"\"18446744073709551615\"",
	"\"99999999999999999999\"",
	"\"\"",
	"\"x\"",
	"\"dense\"",
	"\"emb\"",
	"\"cpu\"",
	"\"ssp:3\"",
	"\"ftrl\"",
	"\"a\\u0001b\"",
	"[]",
	"{}",
	"[[]]",
	"[0]",
	"[\"emb\"]",
	"{\"kind\":\"adam\"}",
};

/* text[begin, end) replaced by the n bytes at by. */
static char *splice(char *text, size_t begin, size_t end, const char *by, size_t n)
{
	size_t len = strlen(text);
	char *out = malloc(len - (end - begin) + n + 1);

	assert_non_null(out);
	memcpy(out, text, begin);
	memcpy(out + begin, by, n);
	memcpy(out + begin + n, text + end, len - end + 1);
	free(text);
	return out;
}

/* Delete a member or element, with the comma that it leaves behind. */
static char *cut_out(char *text, struct span at)
{
	size_t begin = at.key, end = at.end;

	blank(text, &end);
	if (text[end] == ',') {
		end++;
	} else {
		end = at.end;
		while (begin && strchr(" \t\r\n", text[begin - 1]))
			begin--;
		if (begin && text[begin - 1] == ',')
			begin--;
		else
			begin = at.key;
	}
	return splice(text, begin, end, "", 0);
}

/* One change to a valid text, which stays one. */
static char *bend(struct hps_rng *r, char *text)
{
	static struct spans spans; /* too large for a stack under a sanitizer */
	struct span at, from;
	const char *by;
	char *copy;

	spans_of(text, &spans);
	at = spans.at[hps_rng_below(r, spans.n - 1)]; /* not the whole document, the last one */
	switch (hps_rng_below(r, 4)) {
	case 0:
		return cut_out(text, at);
	case 1: /* another value of the document */
		from = spans.at[hps_rng_below(r, spans.n - 1)];
		copy = malloc(from.end - from.begin);
		assert_non_null(copy);
		memcpy(copy, text + from.begin, from.end - from.begin);
		text = splice(text, at.begin, at.end, copy, from.end - from.begin);
		free(copy);
		return text;
	case 2: /* a slip in a name or a text */
		if (text[at.key] == '"' && text[at.key + 1] != '"' && text[at.key + 1] != '\\')
			text[at.key + 1] = "aex0"[hps_rng_below(r, 4)];
		return text;
	default:
		by = values[hps_rng_below(r, sizeof(values) / sizeof(*values))];
		return splice(text, at.begin, at.end, by, strlen(by));
	}
}

/* --- what must hold of whatever is read --- */

/* Everything that was accepted can be written, read again, and planned with. */
static void check_accepted(struct hps_job *job)
{
	struct hps_doc *doc = hps_doc_object();
	struct hps_err err = { 0 };
	struct hps_job again;
	struct hps_graph g;
	int failed;

	failed = hps_doc_put(doc, "hps", hps_doc_int(1));
	if (job->has_model)
		failed |= hps_doc_put(doc, "model", hps_model_write(&job->model));
	if (job->has_cluster)
		failed |= hps_doc_put(doc, "cluster", hps_cluster_write(&job->cluster));
	if (job->has_profile)
		failed |= hps_doc_put(doc, "profile", hps_profile_write(&job->profile));
	if (job->has_plan)
		failed |= hps_doc_put(doc, "plan", hps_plan_write(&job->plan));
	if (job->has_deployment)
		failed |= hps_doc_put(doc, "deployment", hps_deployment_write(&job->deployment));
	assert_int_equal(failed, 0);
	if (hps_job_parse(doc, "t", 0, ALL, &again, &err))
		fail_msg("written, then refused: %s: %s", err.where, err.msg);
	if (job->has_model)
		job_case_same_model(&job->model, &again.model);
	if (job->has_cluster)
		job_case_same_cluster(&job->cluster, &again.cluster);
	if (job->has_profile)
		job_case_same_profile(&job->profile, &again.profile);
	if (job->has_plan)
		job_case_same_plan(&job->plan, &again.plan);
	if (job->has_deployment)
		job_case_same_deployment(&job->deployment, &again.deployment);
	hps_job_release(&again);
	if (job->has_model) {
		assert_int_equal(hps_graph_build(&job->model, &g, &err), HPS_OK);
		hps_graph_release(&g);
	}
}

/* Read whatever it is; returns whether it was taken. */
static bool feed(struct hps_doc *d, unsigned trust)
{
	struct hps_err err = { 0 };
	struct hps_job job;
	enum hps_status rc = hps_job_parse(d, "t", 0, trust, &job, &err);

	if (!rc) {
		check_accepted(&job);
		hps_job_release(&job);
		return true;
	}
	if (rc != HPS_BAD_INPUT || err.status != rc || strncmp(err.where, "t", 1) || !*err.msg)
		fail_msg("status %d, \"%s: %s\"", rc, err.where, err.msg);
	assert_null(job.doc);
	return false;
}

static void test_bent_documents(void **state)
{
	char *document = job_case_document();
	int taken = 0, refused = 0;

	for (uint32_t round = 0; round < 3000; round++) {
		char *text = job_case_patch(document, NULL, NULL);
		struct hps_err err = { 0 };
		struct hps_doc *d = NULL;
		struct hps_rng r;

		hps_rng_init(&r, 1, round);
		for (uint64_t n = hps_rng_below(&r, 3) + 1; n; n--)
			text = bend(&r, text);
		/* Cut-out names may meet: a member twice is no document. */
		if (hps_doc_parse(text, strlen(text), "t", &d, &err) == HPS_OK) {
			/* Sections alone too, so that a later one is not hidden by an earlier. */
			unsigned trust = round % 2 ? ALL : 1u << hps_rng_below(&r, 5);

			if (feed(d, trust))
				taken++;
			else
				refused++;
		} else {
			assert_int_equal(err.status, HPS_BAD_INPUT);
		}
		free(text);
	}
	/* Both happen, often: the test exercises refusals and what is behind them. */
	assert_true(taken > 250);
	assert_true(refused > 250);
	free(document);
}

/* Bytes flipped, cut off and doubled, in both forms: mostly no documents at all. */
static void test_bent_bytes(void **state)
{
	char *document = job_case_document();
	struct hps_doc *whole = job_case_parse(document);
	struct hps_buf form[2] = { HPS_BUF_INIT, HPS_BUF_INIT };

	assert_int_equal(hps_doc_to_json(whole, &form[0], NULL), HPS_OK);
	assert_int_equal(hps_doc_to_msgpack(whole, &form[1], NULL), HPS_OK);
	for (uint32_t round = 0; round < 3000; round++) {
		const struct hps_buf *b = &form[round % 2];
		char *bytes = malloc(b->len);
		struct hps_err err = { 0 };
		struct hps_doc *d = NULL;
		struct hps_rng r;
		size_t len = b->len;

		assert_non_null(bytes);
		memcpy(bytes, b->data, len);
		hps_rng_init(&r, 2, round);
		for (uint64_t n = hps_rng_below(&r, 4) + 1; n; n--)
			bytes[hps_rng_below(&r, len)] ^= (char)(1 << hps_rng_below(&r, 8));
		if (hps_rng_below(&r, 4) == 0)
			len = hps_rng_below(&r, len + 1);
		if (hps_doc_parse(bytes, len, "t", &d, &err) == HPS_OK) {
			feed(d, ALL);
		} else {
			assert_int_equal(err.status, HPS_BAD_INPUT);
			assert_true(!strncmp(err.where, "t", 1) && *err.msg);
		}
		free(bytes);
	}
	hps_buf_release(&form[0]);
	hps_buf_release(&form[1]);
	hps_doc_free(whole);
	free(document);
}

/* Every allocation of a reading fails in turn: told as such, and nothing stays behind. */
static void test_memory(void **state)
{
	char *document = job_case_document();
	enum hps_status rc = HPS_MEMORY;
	unsigned long n = 0;

	while (rc) {
		struct hps_doc *d = job_case_parse(document);
		struct hps_err err = { 0 };
		struct hps_job job;

		hps_mem_fail_at(++n);
		rc = hps_job_parse(d, "t", ALL, ALL, &job, &err);
		hps_mem_fail_at(0);
		if (!rc) {
			hps_job_release(&job);
			break;
		}
		assert_int_equal(rc, HPS_MEMORY);
		assert_int_equal(err.status, HPS_MEMORY);
		assert_null(job.doc);
		assert_false(job.has_model || job.has_cluster || job.has_profile || job.has_plan ||
			     job.has_deployment);
	}
	assert_in_range(n, 80, 1000); /* names, arrays, indices of five sections */
	free(document);
}

static void test_memory_here(void **state)
{
	enum hps_status rc = HPS_MEMORY;
	unsigned long n = 0;

	while (rc) {
		struct hps_err err = { 0 };
		struct hps_cluster c;

		hps_mem_fail_at(++n);
		rc = hps_cluster_here(2, &c, &err);
		hps_mem_fail_at(0);
		if (rc)
			assert_int_equal(err.status, HPS_MEMORY);
		else
			hps_cluster_release(&c);
	}
	assert_int_equal(n, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bent_documents),
		cmocka_unit_test(test_bent_bytes),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_here),
	};

	return cmocka_run_group_tests_name("job hostile", tests, NULL, NULL);
}
