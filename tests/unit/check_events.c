// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "process/events.h"

Suite *events_suite(void);

/* A record as the kernel lays it out; the tail goes at the end. */
struct record {
	uint8_t data[512];
	size_t len;
};

static void put(struct record *r, const void *data, size_t len)
{
	memcpy(r->data + r->len, data, len);
	r->len += len;
}

static void put32(struct record *r, uint32_t v)
{
	put(r, &v, sizeof(v));
}

static void put64(struct record *r, uint64_t v)
{
	put(r, &v, sizeof(v));
}

/* With its terminator, padded to eight bytes. */
static void put_name(struct record *r, const char *name)
{
	size_t n = strlen(name) + 1;

	memset(r->data + r->len, 0, ALIGN_UP(n, (size_t)8));
	memcpy(r->data + r->len, name, n);
	r->len += ALIGN_UP(n, (size_t)8);
}

static void begin(struct record *r, uint32_t type, uint16_t misc)
{
	struct perf_event_header h = {.type = type, .misc = misc};

	r->len = 0;
	put(r, &h, sizeof(h));
}

static void end(struct record *r)
{
	uint16_t size;

	put32(r, 70);
	put32(r, 71);
	put64(r, 123456789);
	size = (uint16_t)r->len;
	memcpy(r->data + offsetof(struct perf_event_header, size), &size, sizeof(size));
}

static void task(struct record *r, uint32_t type)
{
	begin(r, type, 0);
	put32(r, 10);
	put32(r, 5);
	put32(r, 11);
	put32(r, 6);
	put64(r, 99);
	end(r);
}

static void comm(struct record *r, uint16_t misc, const char *name)
{
	begin(r, PERF_RECORD_COMM, misc);
	put32(r, 10);
	put32(r, 10);
	put_name(r, name);
	end(r);
}

static void mmap_head(struct record *r, uint32_t type, uint16_t misc, uint64_t start, uint64_t len)
{
	begin(r, type, misc);
	put32(r, 10);
	put32(r, 12);
	put64(r, start);
	put64(r, len);
	put64(r, 0x3000);
}

static void mmap2(struct record *r, uint16_t misc, uint32_t prot, const char *name)
{
	mmap_head(r, PERF_RECORD_MMAP2, misc, 0x7000, 0x2000);
	if (misc & (1 << 14)) {
		const uint8_t id[24] = {20, 0, 0, 0, 1, 2, 3, [23] = 20};

		put(r, id, sizeof(id));
	} else {
		put32(r, 8);
		put32(r, 1);
		put64(r, 4242);
		put64(r, 7);
	}
	put32(r, prot);
	put32(r, MAP_PRIVATE);
	put_name(r, name);
	end(r);
}

START_TEST(fork_and_exit_name_both_processes)
{
	struct proc_event ev;
	struct record r;

	task(&r, PERF_RECORD_FORK);
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), 0);
	ck_assert_int_eq(ev.type, PROC_FORK);
	ck_assert_uint_eq(ev.pid, 10);
	ck_assert_uint_eq(ev.ppid, 5);
	ck_assert_uint_eq(ev.tid, 11);
	ck_assert_uint_eq(ev.ptid, 6);
	ck_assert_uint_eq(ev.time_ns, 123456789);
	task(&r, PERF_RECORD_EXIT);
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), 0);
	ck_assert_int_eq(ev.type, PROC_EXIT);
}
END_TEST

START_TEST(a_comm_of_exec_is_an_exec)
{
	struct proc_event ev;
	struct record r;

	comm(&r, PERF_RECORD_MISC_COMM_EXEC, "redis-server");
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), 0);
	ck_assert_int_eq(ev.type, PROC_EXEC);
	ck_assert_uint_eq(ev.name_len, 12);
	ck_assert_str_eq(ev.name, "redis-server");
	comm(&r, 0, "");
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), 0);
	ck_assert_int_eq(ev.type, PROC_COMM);
	ck_assert_uint_eq(ev.name_len, 0);
}
END_TEST

START_TEST(a_mapping_tells_its_inode)
{
	struct proc_event ev;
	struct record r;

	mmap2(&r, PERF_RECORD_MISC_USER, PROT_READ | PROT_EXEC, "/usr/bin/new\nline");
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), 0);
	ck_assert_int_eq(ev.type, PROC_MMAP);
	ck_assert_uint_eq(ev.start, 0x7000);
	ck_assert_uint_eq(ev.end, 0x9000);
	ck_assert_uint_eq(ev.offset, 0x3000);
	ck_assert_uint_eq(ev.dev, makedev(8, 1));
	ck_assert_uint_eq(ev.ino, 4242);
	ck_assert_uint_eq(ev.ino_generation, 7);
	ck_assert_uint_eq(ev.build_id_len, 0);
	ck_assert_str_eq(ev.name, "/usr/bin/new\nline");
}
END_TEST

START_TEST(a_mapping_tells_its_build_id_instead)
{
	struct proc_event ev;
	struct record r;

	mmap2(&r, PERF_RECORD_MISC_USER | 1 << 14, PROT_EXEC, "/usr/bin/x");
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), 0);
	ck_assert_uint_eq(ev.build_id_len, 20);
	ck_assert_uint_eq(ev.build_id[0], 1);
	ck_assert_uint_eq(ev.build_id[19], 20);
	ck_assert_uint_eq(ev.ino, 0);
	r.data[40] = 21;
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), -EBADMSG);
}
END_TEST

START_TEST(data_and_kernel_mappings_say_nothing)
{
	struct proc_event ev;
	struct record r;

	mmap2(&r, PERF_RECORD_MISC_USER, PROT_READ | PROT_WRITE, "/x");
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), -ENOENT);
	mmap2(&r, PERF_RECORD_MISC_KERNEL, PROT_EXEC, "[kernel]");
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), -ENOENT);
	mmap_head(&r, PERF_RECORD_MMAP, PERF_RECORD_MISC_MMAP_DATA, 0x1000, 0x1000);
	put_name(&r, "/x");
	end(&r);
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), -ENOENT);
}
END_TEST

START_TEST(an_old_mmap_record_is_code)
{
	struct proc_event ev;
	struct record r;

	mmap_head(&r, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER, 0x1000, 0x1000);
	put_name(&r, "[vdso]");
	end(&r);
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), 0);
	ck_assert_str_eq(ev.name, "[vdso]");
}
END_TEST

START_TEST(a_mapping_that_wraps_or_is_empty_is_malformed)
{
	static const uint64_t bad[][2] = {{0x1000, 0}, {UINT64_MAX - 10, 0x1000}, {1, UINT64_MAX}};
	struct proc_event ev;
	struct record r;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		mmap_head(&r, PERF_RECORD_MMAP, 0, bad[i][0], bad[i][1]);
		put_name(&r, "/x");
		end(&r);
		ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), -EBADMSG);
	}
}
END_TEST

START_TEST(losses_are_counted)
{
	struct proc_event ev;
	struct record r;

	begin(&r, PERF_RECORD_LOST, 0);
	put64(&r, 1);
	put64(&r, 77);
	end(&r);
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), 0);
	ck_assert_int_eq(ev.type, PROC_LOST);
	ck_assert_uint_eq(ev.lost, 77);
	begin(&r, PERF_RECORD_LOST_SAMPLES, 0);
	put64(&r, 5);
	end(&r);
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), 0);
	ck_assert_uint_eq(ev.lost, 5);
}
END_TEST

START_TEST(unknown_types_say_nothing_of_process_life)
{
	struct proc_event ev;
	struct record r;

	begin(&r, PERF_RECORD_THROTTLE, 0);
	put64(&r, 1);
	end(&r);
	ck_assert_int_eq(proc_event_decode(r.data, r.len, &ev), -ENOENT);
}
END_TEST

START_TEST(every_cut_of_a_record_is_malformed)
{
	struct proc_event ev = {.type = 99};
	struct record whole, r;

	mmap2(&whole, PERF_RECORD_MISC_USER, PROT_EXEC, "/x");
	for (size_t len = 0; len < whole.len; len++) {
		uint16_t size = (uint16_t)len;

		r = whole;
		memset(r.data + 88 - 16, 'x', 8);
		if (len >= 8)
			memcpy(r.data + 6, &size, sizeof(size));
		ck_assert_int_eq(proc_event_decode(r.data, len, &ev), -EBADMSG);
	}
	/* The length inside must be that of the whole. */
	ck_assert_int_eq(proc_event_decode(whole.data, whole.len - 8, &ev), -EBADMSG);
	ck_assert_uint_eq(ev.type, 99);
}
END_TEST

Suite *events_suite(void)
{
	Suite *s = suite_create("events");
	TCase *t = tcase_create("perf");

	tcase_add_test(t, fork_and_exit_name_both_processes);
	tcase_add_test(t, a_comm_of_exec_is_an_exec);
	tcase_add_test(t, a_mapping_tells_its_inode);
	tcase_add_test(t, a_mapping_tells_its_build_id_instead);
	tcase_add_test(t, data_and_kernel_mappings_say_nothing);
	tcase_add_test(t, an_old_mmap_record_is_code);
	tcase_add_test(t, a_mapping_that_wraps_or_is_empty_is_malformed);
	tcase_add_test(t, losses_are_counted);
	tcase_add_test(t, unknown_types_say_nothing_of_process_life);
	tcase_add_test(t, every_cut_of_a_record_is_malformed);
	suite_add_tcase(s, t);
	return s;
}
