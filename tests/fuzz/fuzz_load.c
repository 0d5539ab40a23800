/* Loads and events, fed anything. The first byte chooses: even: a load file, which is refused with
 * a place, or whose times rise and rates are finite and >= 0; odd: lines into a watch of one stage,
 * in pieces of that many bytes, which must print the same as when they come at once. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "plan/watcher.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
	if (!ok)
		abort();
}

static void load_file(const char *text, size_t len)
{
	struct hps_err err = { 0 };
	struct hps_load l;

	if (hps_load_parse(text, len, "load", &l, &err)) {
		must(err.msg[0] && !strncmp(err.where, "load", 4));
		return;
	}
	must(l.n > 0 && l.end_s > l.point[l.n - 1].time_s);
	for (uint32_t i = 0; i < l.n; i++) {
		must(isfinite(l.point[i].rate) && l.point[i].rate >= 0);
		must(l.point[i].time_s >= 0 && (!i || l.point[i].time_s > l.point[i - 1].time_s));
	}
	hps_load_release(&l);
}

static enum hps_status print(void *arg, const struct hps_doc *line, struct hps_err *err)
{
	return hps_doc_to_json_line(line, arg, err);
}

static void complain(void *arg, const struct hps_err *err)
{
	(void)arg;
	must(err->msg[0] && !strncmp(err->where, "events: line ", 13));
}

/* One layer of 1 us a sample on a type of 100 units at a dollar an hour. */
static void watch(const char *text, size_t len, size_t piece, struct hps_buf *out)
{
	char layer[] = "l", type[] = "t";
	struct hps_layer_size size = { .name = layer };
	struct hps_layer_time time = { .oct = 1e-4, .alpha = 1 };
	bool simulated = false;
	char *types[] = { type };
	double none = 0;
	struct hps_profile profile = {
		.batch = 100,
		.n_layers = 1,
		.size = &size,
		.n_types = 1,
		.type = types,
		.simulated = &simulated,
		.time = &time,
		.cut_forward_bytes = &none,
		.cut_backward_bytes = &none,
	};
	struct hps_type t = { .name = type, .price = 1, .limit = 100 };
	struct hps_cluster cluster = { .type = &t, .n_types = 1 };
	struct hps_cost_options how = { .form = HPS_COST_PAPER };
	struct hps_watch_options opt = hps_watch_defaults();
	struct hps_deploy_options deploy = { .job = "j", .run_dir = "/x", .base_port = 1 };
	const struct hps_span stage = { 0, 0, 0, 1 };
	struct hps_problem p = { 0 };
	struct hps_cost cost;
	struct hps_watcher x = { .problem = &p,
				 .deploy = &deploy,
				 .name = "events",
				 .emit = print,
				 .complain = complain,
				 .arg = out };
	enum hps_status rc = HPS_OK;

	must(!hps_cost_init(&cost, &profile, &cluster, &how, NULL));
	p.cost = &cost;
	must(!hps_watcher_init(&x, &opt, &stage, 1, NULL));
	for (size_t at = 0; !rc && at < len && !x.over; at += piece)
		rc = hps_watcher_feed(&x, text + at, at + piece < len ? piece : len - at, 3, NULL);
	must(!rc);
	rc = hps_watcher_end(&x, 4, NULL);
	must(rc == HPS_OK || rc == HPS_NO || rc == HPS_BAD_INPUT);
	must(out->len > 0);
	hps_watcher_release(&x);
	hps_cost_release(&cost);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hps_buf whole = HPS_BUF_INIT, pieces = HPS_BUF_INIT;

	if (!size)
		return 0;
	if (data[0] % 2 == 0) {
		load_file((const char *)data + 1, size - 1);
		return 0;
	}
	watch((const char *)data + 1, size - 1, SIZE_MAX / 2, &whole);
	watch((const char *)data + 1, size - 1, data[0], &pieces);
	must(whole.len == pieces.len && !memcmp(whole.data, pieces.data, whole.len));
	hps_buf_release(&whole);
	hps_buf_release(&pieces);
	return 0;
}
