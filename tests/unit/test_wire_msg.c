/* Headers, frames, directories, outboxes and control messages: round trips and refusals. */
#include "cm.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "wire/control.h"
#include "wire/msg.h"

static const struct hps_head head = {
	.type = HPS_MSG_PUSH,
	.flags = HPS_FLAG_STATE,
	.src = 0x01020304,
	.job = 0x1112131415161718,
	.incarnation = 0x2122232425262728,
	.seq = 0x3132333435363738,
	.step = 0x4142434445464748,
	.epoch = 0x51525354,
	.mb = 0x61626364,
	.count = 0x71727374,
	.arg = 0x81828384,
	.aux = 0x9192939495969798,
};

/* The picture in wire/msg.h, byte by byte. */
static void a_header_is_laid_out_as_pictured(void **state)
{
	static const uint8_t expect[HPS_HEAD_BYTES] = {
		'H',  'P',  'S',  '1',	1,    0,    3,	  0,	2,    0,    0,	  0,
		4,    3,    2,	  1,	0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
		0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35,
		0x34, 0x33, 0x32, 0x31, 0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41,
		0x54, 0x53, 0x52, 0x51, 0x64, 0x63, 0x62, 0x61, 0x74, 0x73, 0x72, 0x71,
		0x84, 0x83, 0x82, 0x81, 0x98, 0x97, 0x96, 0x95, 0x94, 0x93, 0x92, 0x91,
	};
	uint8_t got[HPS_HEAD_BYTES];

	hps_head_encode(&head, got);
	assert_memory_equal(got, expect, sizeof(expect));
}

static void a_header_reads_back(void **state)
{
	uint8_t bytes[HPS_HEAD_BYTES];
	struct hps_head h;

	hps_head_encode(&head, bytes);
	assert_int_equal(hps_head_decode(bytes, sizeof(bytes), &h, NULL), HPS_OK);
	assert_int_equal(h.type, head.type);
	assert_int_equal(h.flags, head.flags);
	assert_int_equal(h.src, head.src);
	assert_int_equal(h.job, head.job);
	assert_int_equal(h.incarnation, head.incarnation);
	assert_int_equal(h.seq, head.seq);
	assert_int_equal(h.step, head.step);
	assert_int_equal(h.epoch, head.epoch);
	assert_int_equal(h.mb, head.mb);
	assert_int_equal(h.count, head.count);
	assert_int_equal(h.arg, head.arg);
	assert_int_equal(h.aux, head.aux);
}

static void refused(const uint8_t *bytes, size_t len, const char *why)
{
	struct hps_head h = { .seq = 77 };
	struct hps_err err = { 0 };

	assert_int_equal(hps_head_decode(bytes, len, &h, &err), HPS_NET);
	assert_non_null(strstr(err.msg, why));
	assert_int_equal(h.seq, 77);
}

static void a_bad_header_is_refused(void **state)
{
	uint8_t good[HPS_HEAD_BYTES + 1], b[HPS_HEAD_BYTES];

	hps_head_encode(&head, good);
	refused(good, HPS_HEAD_BYTES - 1, "72 bytes");
	refused(good, HPS_HEAD_BYTES + 1, "72 bytes");
	refused(good, 0, "72 bytes");
	memcpy(b, good, sizeof(b));
	b[3] = '2';
	refused(b, sizeof(b), "not a message");
	memcpy(b, good, sizeof(b));
	b[4] = 2;
	refused(b, sizeof(b), "version 1, got 2");
	memcpy(b, good, sizeof(b));
	b[6] = 0;
	refused(b, sizeof(b), "type 0");
	b[6] = HPS_MSG_REFUSED + 1;
	refused(b, sizeof(b), "type");
	memcpy(b, good, sizeof(b));
	b[10] = 1;
	refused(b, sizeof(b), "flags 0x10002");
}

static void every_type_has_a_name(void **state)
{
	for (uint16_t t = HPS_MSG_PULL; t <= HPS_MSG_REFUSED; t++)
		assert_string_not_equal(hps_msg_name(t), "unknown");
	assert_string_equal(hps_msg_name(0), "unknown");
	assert_string_equal(hps_msg_name(HPS_MSG_REFUSED + 1), "unknown");
	assert_string_equal(hps_msg_name(UINT16_MAX), "unknown");
}

/* --- frames --- */

static int released;

static void count_release(void *data, void *hint)
{
	released++;
}

static void frames_are_released_once(void **state)
{
	struct hps_msg m = { 0 };
	char borrowed[16];

	for (int i = 0; i < HPS_MAX_FRAMES - 2; i++)
		assert_int_equal(hps_msg_copy(&m, "x", 1, NULL), HPS_OK);
	assert_int_equal(hps_msg_take(&m, malloc(3), 3, NULL), HPS_OK);
	m.frame[m.n_frames++] =
		(struct hps_frame){ borrowed, sizeof(borrowed), count_release, NULL };
	assert_int_equal(hps_msg_take(&m, malloc(3), 3, NULL), HPS_MEMORY); /* and freed */
	assert_int_equal(hps_msg_copy(&m, "x", 1, NULL), HPS_MEMORY);
	hps_msg_release(&m);
	hps_msg_release(&m);
	assert_int_equal(released, 1);
	assert_int_equal(m.n_frames, 0);
}

static void an_unaligned_frame_is_moved(void **state)
{
	static char bytes[24] __attribute__((aligned(8))) = "?abcdefghijklmnop";
	struct hps_msg m = { .n_frames = 3 };
	int before = released;
	char *p;

	m.frame[0] = (struct hps_frame){ bytes + 1, 16, count_release, NULL };
	m.frame[1] = (struct hps_frame){ bytes + 8, 16, NULL, NULL };
	p = hps_msg_array(&m, 0, NULL);
	assert_int_equal((uintptr_t)p % 8, 0);
	assert_memory_equal(p, "abcdefghijklmnop", 16);
	assert_int_equal(released, before + 1);
	assert_ptr_equal(hps_msg_array(&m, 1, NULL), bytes + 8);
	assert_non_null(hps_msg_array(&m, 2, NULL)); /* empty, data NULL */
	hps_msg_release(&m);
	assert_int_equal(released, before + 1);
}

/* --- directories --- */

static const uint32_t dims[3] = { 4, 10, 1 };

/* A PULL or PUSH as the directory says, before it is spoilt. */
static struct hps_msg with_dir(uint16_t type, const struct hps_dir_entry *e, uint32_t n)
{
	struct hps_msg m = { .head.type = type };
	size_t keys = 0, floats = 0;

	for (uint32_t i = 0; i < n; i++) {
		keys += e[i].n;
		floats += (size_t)e[i].n * dims[e[i].table];
	}
	assert_int_equal(hps_msg_copy(&m, e, n * sizeof(*e), NULL), HPS_OK);
	if (type != HPS_MSG_ROWS)
		assert_int_equal(hps_msg_take(&m, calloc(keys + 1, 8), keys * 8, NULL), HPS_OK);
	if (type != HPS_MSG_PULL)
		assert_int_equal(hps_msg_take(&m, calloc(floats + 1, 4), floats * 4, NULL), HPS_OK);
	return m;
}

static void directories_that_hold(void **state)
{
	static const struct hps_dir_entry e[] = { { 0, 3 }, { 2, 0 } };
	static const uint16_t type[] = { HPS_MSG_PULL, HPS_MSG_PUSH, HPS_MSG_ROWS };

	for (size_t i = 0; i < 3; i++)
		for (uint32_t n = 0; n <= 2; n++) {
			struct hps_msg m = with_dir(type[i], e, n);

			assert_int_equal(hps_dir_check(&m, dims, 3, NULL), HPS_OK);
			assert_int_equal(hps_dir_count(&m), n);
			if (n == 2) {
				assert_int_equal(hps_dir_entry(&m, 1).table, 2);
				assert_int_equal(hps_dir_entry(&m, 0).n, 3);
			}
			hps_msg_release(&m);
		}
}

static void bad_dir(struct hps_msg *m, const char *why)
{
	struct hps_err err = { 0 };

	assert_int_equal(hps_dir_check(m, dims, 3, &err), HPS_NET);
	assert_non_null(strstr(err.msg, why));
	hps_msg_release(m);
}

static void directories_that_do_not(void **state)
{
	static const struct hps_dir_entry e[] = { { 0, 3 }, { 1, 1 } };
	static const struct hps_dir_entry same[] = { { 1, 3 }, { 1, 1 } };
	static const struct hps_dir_entry down[] = { { 1, 3 }, { 0, 1 } };
	static const struct hps_dir_entry four[] = { { 0, 0 }, { 1, 0 }, { 2, 0 }, { 2, 0 } };
	struct hps_msg m = with_dir(HPS_MSG_PUSH, e, 2);

	m.head.type = HPS_MSG_FLUSH;
	bad_dir(&m, "no directory");
	m = with_dir(HPS_MSG_PUSH, e, 2);
	m.head.type = HPS_MSG_PULL;
	bad_dir(&m, "expected 2 frames, got 3");
	m = with_dir(HPS_MSG_PULL, e, 2);
	m.head.type = HPS_MSG_PUSH;
	bad_dir(&m, "expected 3 frames, got 2");
	m = with_dir(HPS_MSG_PUSH, e, 2);
	m.frame[1].len -= 8;
	bad_dir(&m, "expected 32 bytes in frame 1, got 24");
	m = with_dir(HPS_MSG_PUSH, e, 2);
	m.frame[1].len -= 1;
	bad_dir(&m, "frame 1");
	m = with_dir(HPS_MSG_PUSH, e, 2);
	m.frame[2].len += 4;
	bad_dir(&m, "frame 2");
	m = with_dir(HPS_MSG_PUSH, e, 2);
	m.frame[0].len -= 3;
	bad_dir(&m, "directory");
	m = with_dir(HPS_MSG_PULL, same, 2);
	bad_dir(&m, "ascending");
	m = with_dir(HPS_MSG_PULL, down, 2);
	bad_dir(&m, "ascending");
	m = with_dir(HPS_MSG_PULL, four, 4);
	bad_dir(&m, "at most 3 entries");
	m = with_dir(HPS_MSG_PULL, e, 2);
	((struct hps_dir_entry *)m.frame[0].data)[1].table = 3;
	bad_dir(&m, "below 3, got 3");
	m = with_dir(HPS_MSG_PULL, e, 2);
	((struct hps_dir_entry *)m.frame[0].data)[1].n = UINT32_MAX;
	bad_dir(&m, "expected 34359738384 bytes in frame 1");
	m = (struct hps_msg){ .head.type = HPS_MSG_PULL };
	bad_dir(&m, "got 0");
}

/* --- outbox --- */

static void an_outbox_takes_and_releases(void **state)
{
	struct hps_outbox o = { 0 };
	int before = released;

	for (uint32_t i = 0; i < 20; i++) {
		struct hps_msg m = { .head.seq = i };

		m.frame[m.n_frames++] = (struct hps_frame){ NULL, 0, count_release, NULL };
		assert_int_equal(hps_outbox_put(&o, i, &m, NULL), HPS_OK);
		assert_int_equal(m.n_frames, 0);
	}
	assert_int_equal(o.n, 20);
	assert_int_equal(o.item[7].dst, 7);
	assert_int_equal(o.item[7].msg.head.seq, 7);
	hps_outbox_release(&o);
	assert_int_equal(released, before + 20);
	assert_int_equal(o.n, 0);
}

static void an_outbox_without_memory_releases_the_message(void **state)
{
	struct hps_outbox o = { 0 };
	struct hps_msg m = { .n_frames = 1 };
	int before = released;

	m.frame[0] = (struct hps_frame){ NULL, 0, count_release, NULL };
	hps_mem_fail_at(1);
	assert_int_equal(hps_outbox_put(&o, 1, &m, NULL), HPS_MEMORY);
	hps_mem_fail_at(0);
	assert_int_equal(released, before + 1);
	assert_int_equal(m.n_frames, 0);
	hps_outbox_release(&o);
}

/* --- control --- */

static void a_document_travels(void **state)
{
	struct hps_doc *d = hps_doc_object(), *back = NULL;
	struct hps_msg m;

	assert_int_equal(hps_doc_put(d, "kind", hps_doc_string("join")), 0);
	assert_int_equal(hps_doc_put(d, "step", hps_doc_u64(UINT64_MAX)), 0);
	assert_int_equal(hps_control_pack(d, &m, NULL), HPS_OK);
	assert_int_equal(m.head.type, HPS_MSG_CONTROL);
	assert_int_equal(hps_msg_copy(&m, "raw", 3, NULL), HPS_OK);
	assert_int_equal(hps_control_unpack(&m, &back, NULL), HPS_OK);
	assert_true(hps_doc_equal(d, back));
	hps_msg_release(&m);
	hps_doc_free(d);
	hps_doc_free(back);
}

static void a_control_frame_that_does_not_hold(void **state)
{
	static const char *const bad[] = {
		"",	     "{}",	"\x81", "\x01", "\x90", "\xc1", "\xdf\xff\xff\xff\xff",
		"\x81\xa1k", "\x80\x80"
	};
	struct hps_doc *d = NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct hps_msg m = { .head.type = HPS_MSG_CONTROL };
		struct hps_err err = { 0 };

		assert_int_equal(hps_msg_copy(&m, bad[i], strlen(bad[i]), NULL), HPS_OK);
		assert_int_equal(hps_control_unpack(&m, &d, &err), HPS_NET);
		assert_int_equal(err.status, HPS_NET);
		assert_null(d);
		m.head.type = HPS_MSG_FLUSH;
		assert_int_equal(hps_control_unpack(&m, &d, NULL), HPS_NET);
		hps_msg_release(&m);
		m.head.type = HPS_MSG_CONTROL;
		assert_int_equal(hps_control_unpack(&m, &d, NULL), HPS_NET); /* no frame */
	}
}

static void a_document_of_random_bytes_never_crashes(void **state)
{
	struct hps_rng r;

	hps_rng_init(&r, 3, 1);
	for (int i = 0; i < 2000; i++) {
		struct hps_msg m = { .head.type = HPS_MSG_CONTROL };
		size_t len = 1 + hps_rng_below(&r, 60);
		uint8_t *b = malloc(len);
		struct hps_doc *d = NULL;

		for (size_t j = 0; j < len; j++)
			b[j] = (uint8_t)hps_rng_u64(&r);
		b[0] = 0x80 | (b[0] & 0x0f);
		assert_int_equal(hps_msg_take(&m, b, len, NULL), HPS_OK);
		if (hps_control_unpack(&m, &d, NULL) == HPS_OK)
			hps_doc_free(d);
		hps_msg_release(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_laid_out_as_pictured),
		cmocka_unit_test(a_header_reads_back),
		cmocka_unit_test(a_bad_header_is_refused),
		cmocka_unit_test(every_type_has_a_name),
		cmocka_unit_test(frames_are_released_once),
		cmocka_unit_test(an_unaligned_frame_is_moved),
		cmocka_unit_test(directories_that_hold),
		cmocka_unit_test(directories_that_do_not),
		cmocka_unit_test(an_outbox_takes_and_releases),
		cmocka_unit_test(an_outbox_without_memory_releases_the_message),
		cmocka_unit_test(a_document_travels),
		cmocka_unit_test(a_control_frame_that_does_not_hold),
		cmocka_unit_test(a_document_of_random_bytes_never_crashes),
	};

	return cmocka_run_group_tests_name("wire_msg", tests, NULL, NULL);
}
