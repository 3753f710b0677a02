// SPDX-License-Identifier: Apache-2.0
/* Perf maps and jitdumps, as programs write them and as they should not. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/ledger.h"
#include "daemon/engine/jit.h"

Suite *jit_suite(void);

static int text_file(const char *text)
{
	int fd = memfd_create("check", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static void expect(struct jit_map *m, uint64_t pc, const char *name)
{
	struct symbol_line l = {0};

	if (!name) {
		ck_assert_int_eq(jit_map_find(m, pc, &l), -ENOENT);
		return;
	}
	ck_assert_int_eq(jit_map_find(m, pc, &l), 0);
	ck_assert_str_eq(str_c(l.name), name);
	symbol_line_done(&l);
}

static void expect_place(struct jit_map *m, uint64_t pc, const char *file, uint32_t line, uint32_t column)
{
	struct symbol_line l = {0};

	ck_assert_int_eq(jit_map_find(m, pc, &l), 0);
	ck_assert_str_eq(l.file ? str_c(l.file) : "none", file);
	ck_assert_uint_eq(l.line, line);
	ck_assert_uint_eq(l.column, column);
	symbol_line_done(&l);
}

START_TEST(perf_map_names_addresses)
{
	struct jit_map *m;

	ck_assert_int_eq(jit_map_new(text_file("1000 10 first\n0x2000 0x20 second one\n1010 8 LazyCompile:~x a.js:1\n"),
				     JIT_PERF_MAP, &m), 0);
	ck_assert_uint_eq(jit_map_functions(m), 3);
	expect(m, 0x1000, "first");
	expect(m, 0x100f, "first");
	expect(m, 0x1017, "LazyCompile:~x a.js:1");
	expect(m, 0x1018, NULL);
	expect(m, 0x201f, "second one");
	expect(m, 0xfff, NULL);
	jit_map_free(m);
}
END_TEST

START_TEST(perf_map_that_grows_is_read_on)
{
	int fd = text_file("1000 10 old\n2000 10 half"), mine = dup(fd);
	struct jit_map *m;

	ck_assert_int_eq(jit_map_new(fd, JIT_PERF_MAP, &m), 0);
	expect(m, 0x2000, NULL);
	ck_assert_int_eq(write(mine, " a line\n1000 20 new\n", 20), 20);
	ck_assert(jit_map_refresh(m));
	expect(m, 0x2000, "half a line");
	expect(m, 0x1018, "new");
	expect(m, 0x1000, "new");
	jit_map_free(m);
	close(mine);
}
END_TEST

START_TEST(perf_map_begun_anew_forgets)
{
	int fd = text_file("1000 10 old\n2000 10 older\n"), mine = dup(fd);
	struct jit_map *m;

	ck_assert_int_eq(jit_map_new(fd, JIT_PERF_MAP, &m), 0);
	ck_assert_int_eq(ftruncate(mine, 0), 0);
	ck_assert_int_eq(pwrite(mine, "3000 10 x\n", 10, 0), 10);
	ck_assert(jit_map_refresh(m));
	expect(m, 0x1000, NULL);
	expect(m, 0x3001, "x");
	jit_map_free(m);
	close(mine);
}
END_TEST

/* As a JVM does each time that it is asked for its map: the same file, longer than it was. */
START_TEST(perf_map_written_anew_is_read_anew)
{
	const char *now = "1000 10 a name that is longer\n1010 8 other\n3000 20 third and last\n";
	int fd = text_file("1000 10 old\n2000 10 older\n"), mine = dup(fd);
	struct jit_map *m;

	ck_assert_int_eq(jit_map_new(fd, JIT_PERF_MAP, &m), 0);
	ck_assert_int_eq(ftruncate(mine, 0), 0);
	ck_assert_int_eq(pwrite(mine, now, strlen(now), 0), (ssize_t)strlen(now));
	/* Not read again yet: no name, rather than a piece of another's. */
	expect(m, 0x2000, NULL);
	ck_assert(jit_map_refresh(m));
	expect(m, 0x1000, "a name that is longer");
	expect(m, 0x1010, "other");
	expect(m, 0x2000, NULL);
	expect(m, 0x301f, "third and last");
	ck_assert(!jit_map_refresh(m));
	jit_map_free(m);
	close(mine);
}
END_TEST

static const char *const nonsense[] = {
	"", "\n\n\n", "zz 10 a\n", "1000 zz a\n", "1000\n", "1000 10\n", "1000 10 \n", "1000 0 empty\n",
	"ffffffffffffffff 10 wraps\n", "11111111111111111 10 long\n", "1000 100000000 huge\n", "1000 10 unfinished",
};

START_TEST(nonsense_names_nothing)
{
	struct jit_map *m;

	ck_assert_int_eq(jit_map_new(text_file(nonsense[_i]), JIT_PERF_MAP, &m), 0);
	ck_assert_uint_eq(jit_map_functions(m), 0);
	jit_map_free(m);
}
END_TEST

START_TEST(endless_line_is_skipped)
{
	char *text = malloc(300000 + 64);
	struct jit_map *m;

	memset(text, 'a', 300000);
	strcpy(text + 300000, "\n1000 10 after\n");
	ck_assert_int_eq(jit_map_new(text_file(text), JIT_PERF_MAP, &m), 0);
	ck_assert_uint_eq(jit_map_functions(m), 1);
	expect(m, 0x1000, "after");
	jit_map_free(m);
	free(text);
}
END_TEST

struct dump_head {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t time, flags;
};

struct dump_load {
	uint32_t id, total_size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, addr, size, index;
	char name[16], code[16];
};

static int dump_file(uint32_t total_size, uint64_t addr, const char *name)
{
	struct dump_head head = {.magic = 0x4A695444, .version = 1, .total_size = sizeof(head), .elf_mach = 62};
	struct dump_load load = {.total_size = total_size, .addr = addr, .size = 16};
	int fd = memfd_create("check", MFD_CLOEXEC);

	snprintf(load.name, sizeof(load.name), "%s", name);
	ck_assert_int_eq(write(fd, &head, sizeof(head)), sizeof(head));
	ck_assert_int_eq(write(fd, &load, sizeof(load)), sizeof(load));
	return fd;
}

START_TEST(jitdump_names_addresses)
{
	struct jit_map *m;

	ck_assert_int_eq(jit_map_new(dump_file(sizeof(struct dump_load), 0x7000, "compiled"), JIT_DUMP, &m), 0);
	ck_assert_uint_eq(jit_map_functions(m), 1);
	expect(m, 0x700f, "compiled");
	expect(m, 0x7010, NULL);
	jit_map_free(m);
}
END_TEST

struct dump_debug {
	uint32_t id, total_size;
	uint64_t time, addr, entries;
};

static void put_entry(int fd, uint64_t addr, uint32_t line, uint32_t discriminator, const char *file)
{
	struct {
		uint64_t addr;
		uint32_t line, discriminator;
	} e = {addr, line, discriminator};

	ck_assert_int_eq(write(fd, &e, sizeof(e)), sizeof(e));
	ck_assert_int_eq(write(fd, file, strlen(file) + 1), (ssize_t)strlen(file) + 1);
}

/* A function of 256 bytes at 0x7000 with three entries, whose addresses are shifted. */
static int dump_of(const char *name, uint64_t shift, uint64_t of, const char *second)
{
	struct dump_head head = {.magic = 0x4A695444, .version = 1, .total_size = sizeof(head), .elf_mach = 62};
	struct dump_load load = {.total_size = sizeof(load), .addr = 0x7000, .size = 256};
	struct dump_debug debug = {.id = 2, .addr = of, .entries = 3};
	int fd = memfd_create("check", MFD_CLOEXEC);

	snprintf(load.name, sizeof(load.name), "%s", name);
	debug.total_size = (uint32_t)(sizeof(debug) + 3 * 16 + 8 + strlen(second) + 1 + 2);
	ck_assert_int_eq(write(fd, &head, sizeof(head)), sizeof(head));
	ck_assert_int_eq(write(fd, &debug, sizeof(debug)), sizeof(debug));
	put_entry(fd, 0x7000 + shift, 10, 1, "/app.js");
	put_entry(fd, 0x7020 + shift, 20, 2, second);
	put_entry(fd, 0x7080 + shift, 11, 3, "\xff");
	ck_assert_int_eq(write(fd, &load, sizeof(load)), sizeof(load));
	return fd;
}

static int dump_with_debug(uint64_t shift, uint64_t of, const char *second)
{
	return dump_of("compiled", shift, of, second);
}

START_TEST(jitdump_says_file_and_line)
{
	struct jit_map *m;

	ck_assert_int_eq(jit_map_new(dump_with_debug(0, 0x7000, "/inlined.js"), JIT_DUMP, &m), 0);
	expect(m, 0x7000, "compiled");
	for (int twice = 0; twice < 2; twice++) {
		expect_place(m, 0x701f, "/app.js", 10, 0);
		expect_place(m, 0x7020, "/inlined.js", 20, 0);
		expect_place(m, 0x70ff, "/inlined.js", 11, 0);
	}
	jit_map_free(m);
}
END_TEST

START_TEST(long_file_name_is_cut_between_characters)
{
	char name[JIT_FILE_NAME_MAX + 100], *end = name + JIT_FILE_NAME_MAX - 1;
	struct symbol_line l = {0};
	struct jit_map *m;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memcpy(end, "\xc3\xa9", 2);
	ck_assert_int_eq(jit_map_new(dump_with_debug(0, 0x7000, name), JIT_DUMP, &m), 0);
	ck_assert_int_eq(jit_map_find(m, 0x7020, &l), 0);
	ck_assert_uint_eq(l.file->len, JIT_FILE_NAME_MAX - 1);
	ck_assert_mem_eq(l.file->s, name, JIT_FILE_NAME_MAX - 1);
	ck_assert_uint_eq(l.line, 20);
	symbol_line_done(&l);
	jit_map_free(m);
}
END_TEST

/* As V8 counts: from where perf inject would place the code, and with a column. */
START_TEST(jitdump_of_v8_says_column)
{
	struct jit_map *m;

	ck_assert_int_eq(jit_map_new(dump_of("JS:*compiled", 64, 0x7000, "/inlined.js"), JIT_DUMP, &m), 0);
	expect_place(m, 0x701f, "/app.js", 10, 1);
	expect_place(m, 0x7020, "/inlined.js", 20, 2);
	expect_place(m, 0x70ff, "/inlined.js", 11, 3);
	jit_map_free(m);
}
END_TEST

/* As of Java: the first entry is a safepoint, not the start. */
START_TEST(jitdump_of_others_is_exact_wherever_it_begins)
{
	struct jit_map *m;

	ck_assert_int_eq(jit_map_new(dump_with_debug(64, 0x7000, "/inlined.js"), JIT_DUMP, &m), 0);
	expect_place(m, 0x703f, "none", 0, 0);
	expect_place(m, 0x7040, "/app.js", 10, 0);
	expect_place(m, 0x7060, "/inlined.js", 20, 0);
	jit_map_free(m);
}
END_TEST

/* A function at 0x7000 with so many entries, each step bytes of code and a line after the one before. */
static int dump_of_many(const char *name, uint32_t entries, uint32_t step)
{
	struct dump_head head = {.magic = 0x4A695444, .version = 1, .total_size = sizeof(head), .elf_mach = 62};
	struct dump_load load = {.total_size = sizeof(load), .addr = 0x7000, .size = (uint64_t)step * entries};
	struct dump_debug debug = {.id = 2, .addr = 0x7000, .entries = entries};
	int fd = memfd_create("check", MFD_CLOEXEC);

	snprintf(load.name, sizeof(load.name), "%s", name);
	debug.total_size = (uint32_t)sizeof(debug) + entries * 23; /* 16 bytes and the file's 7 */
	ck_assert_int_eq(write(fd, &head, sizeof(head)), sizeof(head));
	ck_assert_int_eq(write(fd, &debug, sizeof(debug)), sizeof(debug));
	for (uint32_t i = 0; i < entries; i++)
		put_entry(fd, 0x7000 + (uint64_t)step * i, i + 1, 0, "/a.js.");
	ck_assert_int_eq(write(fd, &load, sizeof(load)), sizeof(load));
	return fd;
}

/* Entries 16 bytes apart, far more than are read: the places of the first of them are right, the others unknown. */
START_TEST(jitdump_debug_that_is_too_long_counts_as_far_as_it_is_read)
{
	struct jit_map *m;

	ck_assert_int_eq(jit_map_new(dump_of_many("long", 9000, 16), JIT_DUMP, &m), 0);
	expect_place(m, 0x7000 + 16 * 2000, "/a.js.", 2001, 0);
	expect_place(m, 0x7000 + 16 * 8000, "none", 0, 0);
	jit_map_free(m);
}
END_TEST

/* Each lookup reads all entries: an attacker's are as many as we read, and no address comes twice. */
START_TEST(places_are_read_within_a_bound_until_the_next_refresh)
{
	struct symbol_line l;
	struct jit_map *m;
	int with = 0;

	ck_assert_int_eq(jit_map_new(dump_of_many("busy", 4000, 1), JIT_DUMP, &m), 0);
	for (uint32_t i = 0; i < 100; i++) {
		ck_assert_int_eq(jit_map_find(m, 0x7000 + i, &l), 0);
		ck_assert_str_eq(str_c(l.name), "busy");
		with += l.file != NULL;
		symbol_line_done(&l);
	}
	ck_assert_int_ge(with, 4);
	ck_assert_int_le(with, 8);
	jit_map_refresh(m);
	ck_assert_int_eq(jit_map_find(m, 0x7000 + 99, &l), 0);
	ck_assert_ptr_nonnull(l.file);
	symbol_line_done(&l);
	jit_map_free(m);
}
END_TEST

/* Seen of V8 12: entries of baseline code whose file names are no text, so that all that follow are shifted. */
START_TEST(jitdump_debug_that_makes_no_sense_is_left_out)
{
	static const struct {
		uint64_t shift, of;
		const char *file;
	} bad[] = {{0, 0x7000, "\x85\xe2\x01"}, {0, 0x7000, ""}, {0, 0x7100, "/inlined.js"}, {0x1000, 0x7000, "/inlined.js"},
		   {-0x10ULL, 0x7000, "/inlined.js"}};
	struct jit_map *m;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ck_assert_int_eq(jit_map_new(dump_with_debug(bad[i].shift, bad[i].of, bad[i].file), JIT_DUMP, &m), 0);
		expect(m, 0x7030, "compiled");
		expect_place(m, 0x7030, "none", 0, 0);
		jit_map_free(m);
	}
}
END_TEST

static const uint32_t wrong_sizes[] = {0, 1, 15, 16, 71, 72, 73, 0xffffffff};

START_TEST(jitdump_record_of_wrong_size_names_nothing)
{
	struct jit_map *m;

	ck_assert_int_eq(jit_map_new(dump_file(wrong_sizes[_i], 0x7000, "compiled"), JIT_DUMP, &m), 0);
	expect(m, 0x7010, NULL);
	jit_map_free(m);
}
END_TEST

START_TEST(what_is_no_jitdump_is_refused)
{
	struct jit_map *m;
	int null = open("/dev/null", O_RDONLY);

	ck_assert_int_eq(jit_map_new(text_file("1000 10 a perf map is none\n"), JIT_DUMP, &m), -EBADMSG);
	ck_assert_int_eq(jit_map_new(null, JIT_PERF_MAP, &m), -EIO);
}
END_TEST

/* --- as the engine asks --- */

#define CGROUP 9

static int map_fd;

static int answer_map(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	ck_assert_uint_eq(req->pid_start_ns, 1);
	ck_assert_uint_eq(req->group, CGROUP);
	fn(ctx, 0, dup(map_fd), NULL, 0);
	return 0;
}

static void cancel_nothing(struct host *h, void *ctx)
{
}

static void expect_of_process(struct jit *j, const struct process *p, uint64_t now, const char *name)
{
	struct frame f = {.kind = KIND_NATIVE, .flags = FRAME_CALLER, .guess = FRAME_BY_FRAME_POINTER, .pc = 0x1005};
	bool wait;

	ck_assert(jit_name_frame(jit_get(j, p, now, &wait), 0x1004, &f));
	ck_assert_str_eq(str_c(f.function), name);
	ck_assert_uint_eq(f.kind, KIND_JIT);
	ck_assert_uint_eq(f.flags, FRAME_CALLER | FRAME_NAMED);
	ck_assert_uint_eq(f.guess, FRAME_BY_FRAME_POINTER);
	ck_assert_uint_eq(f.named_by, NAME_PERF_MAP);
	str_put(f.function);
	str_put(f.file);
}

START_TEST(address_of_another_function_has_its_name_soon)
{
	static const struct host_ops ops = {.ask = answer_map, .cancel = cancel_nothing};
	struct host host = {.ops = &ops};
	struct jit j = {.host = &host};
	struct process p = {.pid = 7, .start_ns = 1, .cgroup_id = CGROUP};

	map_fd = text_file("1000 10 before\n");
	expect_of_process(&j, &p, NSEC_PER_SEC, "before");
	ck_assert_int_eq(write(map_fd, "1000 10 after\n", 14), 14);
	expect_of_process(&j, &p, NSEC_PER_SEC + 1, "before");
	expect_of_process(&j, &p, 2 * NSEC_PER_SEC, "after");
	jit_done(&j);
	close(map_fd);
}
END_TEST

START_TEST(names_of_a_program_end_with_its_exec)
{
	static const struct host_ops ops = {.ask = answer_map, .cancel = cancel_nothing};
	struct host host = {.ops = &ops};
	struct jit j = {.host = &host};
	struct process p = {.pid = 7, .start_ns = 1, .exec_id = 3, .cgroup_id = CGROUP};

	map_fd = text_file("1000 10 before\n");
	expect_of_process(&j, &p, NSEC_PER_SEC, "before");
	close(map_fd);
	map_fd = text_file("1000 10 after\n");
	p.exec_id++;
	expect_of_process(&j, &p, NSEC_PER_SEC + 1, "after");
	jit_done(&j);
	close(map_fd);
}
END_TEST

Suite *jit_suite(void)
{
	Suite *s = suite_create("jit");
	TCase *tc = tcase_create("jit");

	tcase_add_test(tc, perf_map_names_addresses);
	tcase_add_test(tc, perf_map_that_grows_is_read_on);
	tcase_add_test(tc, perf_map_begun_anew_forgets);
	tcase_add_test(tc, perf_map_written_anew_is_read_anew);
	tcase_add_loop_test(tc, nonsense_names_nothing, 0, (int)ARRAY_SIZE(nonsense));
	tcase_add_test(tc, endless_line_is_skipped);
	tcase_add_test(tc, jitdump_names_addresses);
	tcase_add_test(tc, jitdump_says_file_and_line);
	tcase_add_test(tc, long_file_name_is_cut_between_characters);
	tcase_add_test(tc, jitdump_of_v8_says_column);
	tcase_add_test(tc, jitdump_of_others_is_exact_wherever_it_begins);
	tcase_add_test(tc, jitdump_debug_that_is_too_long_counts_as_far_as_it_is_read);
	tcase_add_test(tc, places_are_read_within_a_bound_until_the_next_refresh);
	tcase_add_test(tc, jitdump_debug_that_makes_no_sense_is_left_out);
	tcase_add_loop_test(tc, jitdump_record_of_wrong_size_names_nothing, 0, (int)ARRAY_SIZE(wrong_sizes));
	tcase_add_test(tc, what_is_no_jitdump_is_refused);
	tcase_add_test(tc, address_of_another_function_has_its_name_soon);
	tcase_add_test(tc, names_of_a_program_end_with_its_exec);
	suite_add_tcase(s, tc);
	return s;
}
