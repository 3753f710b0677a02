// SPDX-License-Identifier: Apache-2.0
/* The address index: made of this very program, read back, and lied to. */
#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "symbol/index.h"
#include "symbol/index_build.h"
#include "symbol/index_write.h"
#include "symbol/naming.h"
#include "symbol/unpack.h"

Suite *index_suite(void);

static int file_new(void)
{
	int fd = memfd_create("check", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static int file_of(const void *data, size_t len)
{
	int fd = file_new();

	ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
	return fd;
}

static int no_file(void *ctx, enum index_root root, const char *path, int *ret_fd)
{
	return -ENOENT;
}

static int build(int elf, int out, struct index_report *report)
{
	struct index_job job = {.elf_fd = elf, .out_fd = out, .scratch_fd = file_new(), .path = "/check/program",
				.debug_dirs = "/usr/lib/debug", .inlines = true, .lines = true, .open = no_file};
	int r = index_build(&job, report);

	close(job.scratch_fd);
	return r;
}

static struct index *open_index(int elf, int out)
{
	struct binary *of, *file;
	struct index *x = NULL;

	ck_assert_int_eq(binary_open(dup(elf), "/check/program", &of), 0);
	ck_assert_int_eq(binary_open(dup(out), "[index]", &file), 0);
	ck_assert_int_eq(index_open(file, of, &x), 0);
	binary_put(of);
	return x;
}

/* --- of this program --- */

static volatile int sink;
static void *where;
static int line_of_call;

__attribute__((noinline)) static void innermost(void)
{
	where = __builtin_return_address(0);
	sink++;
}

static inline __attribute__((always_inline)) void inlined_here(void)
{
	innermost();
	sink++;
}

__attribute__((noinline)) static void outermost(void)
{
	line_of_call = __LINE__ + 1;
	inlined_here();
	sink++;
}

extern const char __executable_start[];

START_TEST(inlined_call_and_its_lines_are_known)
{
	const struct index_options o = {.inlines = true, .lines = true};
	int elf = open("/proc/self/exe", O_RDONLY), out = file_new();
	struct symbol_result res;
	struct index_report report;
	struct index *x;

	outermost();
	ck_assert_int_eq(build(elf, out, &report), 0);
	ck_assert_uint_eq(report.flags & (INDEX_HAS_DWARF | INDEX_HAS_SYMBOLS), INDEX_HAS_DWARF | INDEX_HAS_SYMBOLS);
	x = open_index(elf, out);
	ck_assert_int_eq(index_find(x, (uint64_t)((const char *)where - 1 - __executable_start), &o, &res), 0);
	ck_assert_uint_eq(res.count, 2);
	ck_assert_str_eq(str_c(res.lines[0].name), "inlined_here");
	ck_assert_str_eq(str_c(res.lines[1].name), "outermost");
	ck_assert_uint_eq(res.lines[1].line, (uint32_t)line_of_call);
	ck_assert_ptr_nonnull(strstr(str_c(res.lines[1].file), "tests/unit/check_index.c"));
	ck_assert_str_eq(res.resolver, "dwarf");
	symbol_result_done(&res);
	index_free(x);
	close(elf);
	close(out);
}
END_TEST

START_TEST(without_inlines_the_function_has_the_line_of_the_call)
{
	const struct index_options o = {.lines = true};
	int elf = open("/proc/self/exe", O_RDONLY), out = file_new();
	struct symbol_result res;
	struct index_report report;
	struct index *x;

	outermost();
	ck_assert_int_eq(build(elf, out, &report), 0);
	x = open_index(elf, out);
	ck_assert_int_eq(index_find(x, (uint64_t)((const char *)where - 1 - __executable_start), &o, &res), 0);
	ck_assert_uint_eq(res.count, 1);
	ck_assert_str_eq(str_c(res.lines[0].name), "outermost");
	ck_assert_uint_eq(res.lines[0].line, (uint32_t)line_of_call);
	symbol_result_done(&res);
	index_free(x);
	close(elf);
	close(out);
}
END_TEST

START_TEST(index_of_another_file_is_refused)
{
	int elf = open("/proc/self/exe", O_RDONLY), out = file_new(), other;
	static const char text[] = "another file";
	struct binary *of, *file;
	struct index_report report;
	struct index *x;

	other = file_of(text, sizeof(text));
	ck_assert_int_eq(build(elf, out, &report), 0);
	ck_assert_int_eq(binary_open(other, "/other", &of), 0);
	ck_assert_int_eq(binary_open(dup(out), "[index]", &file), 0);
	ck_assert_int_eq(index_open(file, of, &x), -ESTALE);
	binary_put(of);
	close(elf);
	close(out);
}
END_TEST

START_TEST(what_is_no_elf_file_has_no_index)
{
	static const char text[] = "#!/bin/sh\nexit 0\n";
	int elf = file_of(text, sizeof(text)), out = file_new();
	struct index_report report;

	ck_assert_int_eq(build(elf, out, &report), -EBADMSG);
	close(elf);
	close(out);
}
END_TEST

/* --- written by hand --- */

struct hand {
	int elf, out, scratch_fd;
	struct scratch scratch;
	struct index_writer *w;
};

static void hand_begin(struct hand *h)
{
	static const char text[] = "anything";

	h->elf = file_of(text, sizeof(text));
	h->out = file_new();
	h->scratch_fd = file_new();
	h->scratch = (struct scratch){.fd = h->scratch_fd, .limit = 1 << 20};
	ck_assert_int_eq(index_writer_new(h->out, &h->scratch, &h->w), 0);
}

static struct index *hand_end(struct hand *h)
{
	struct index_identity of;
	struct binary *b;

	ck_assert_int_eq(binary_open(dup(h->elf), "/check", &b), 0);
	index_identity_of(b, &of);
	ck_assert_int_eq(index_writer_finish(h->w, &of, 0), 0);
	index_writer_free(h->w);
	binary_put(b);
	close(h->scratch_fd);
	return open_index(h->elf, h->out);
}

static void add_symbols(struct hand *h, uint32_t rows)
{
	char name[32];

	uint32_t *names = calloc(rows, sizeof(*names));

	for (uint32_t i = 0; i < rows; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		names[i] = index_add_string(h->w, name, strlen(name));
	}
	index_table_begin(h->w, INDEX_SYMBOLS);
	for (uint32_t i = 0; i < rows; i++)
		index_add_row(h->w, 0x1000 + i * 16ull, names[i], 0);
	index_add_row(h->w, 0x1000 + rows * 16ull, 0, 0);
	ck_assert_int_eq(index_table_end(h->w), 0);
	free(names);
}

START_TEST(every_row_of_many_blocks_is_found)
{
	const struct index_options o = {.lines = true};
	struct symbol_result res;
	struct index *x;
	struct hand h;
	char want[32];

	hand_begin(&h);
	add_symbols(&h, 1000);
	x = hand_end(&h);
	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(want, sizeof(want), "f%u", i);
		ck_assert_int_eq(index_find(x, 0x1000 + i * 16ull + i % 16, &o, &res), 0);
		ck_assert_str_eq(str_c(res.lines[0].name), want);
		symbol_result_done(&res);
	}
	ck_assert_int_eq(index_find(x, 0xfff, &o, &res), -ENOENT);
	ck_assert_int_eq(index_find(x, 0x1000 + 16000, &o, &res), -ENOENT);
	index_free(x);
	close(h.elf);
	close(h.out);
}
END_TEST

START_TEST(chain_that_is_too_long_keeps_its_outermost_function)
{
	const struct index_options o = {.inlines = true, .lines = true};
	struct index_node n = {0};
	struct symbol_result res;
	uint32_t node = 0;
	struct index *x;
	struct hand h;
	char name[32];

	hand_begin(&h);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "level%d", i);
		n.parent = node;
		n.name = n.call_file = index_add_string(h.w, name, strlen(name));
		n.call_line = (uint32_t)i;
		node = index_add_node(h.w, &n);
	}
	index_table_begin(h.w, INDEX_FUNCTIONS);
	index_add_row(h.w, 0x1000, node, 0);
	ck_assert_int_eq(index_table_end(h.w), 0);
	x = hand_end(&h);
	ck_assert_int_eq(index_find(x, 0x1234, &o, &res), 0);
	ck_assert_uint_eq(res.count, SYMBOL_LINES_MAX);
	ck_assert_str_eq(str_c(res.lines[0].name), "level99");
	ck_assert_str_eq(str_c(res.lines[SYMBOL_LINES_MAX - 1].name), "level0");
	/* Where it called the one inside it that is not shown. */
	ck_assert_uint_eq(res.lines[SYMBOL_LINES_MAX - 1].line, 1);
	ck_assert_uint_eq(res.lines[SYMBOL_LINES_MAX - 2].line, 100 - SYMBOL_LINES_MAX + 2);
	symbol_result_done(&res);
	index_free(x);
	close(h.elf);
	close(h.out);
}
END_TEST

/* Each byte of an index turned, one at a time: a lookup ends, and says what it says. */
START_TEST(broken_index_ends_every_lookup)
{
	const struct index_options o = {.inlines = true, .lines = true};
	struct index_head head;
	struct stat st;
	struct hand h;

	hand_begin(&h);
	add_symbols(&h, 200);
	index_free(hand_end(&h));
	fstat(h.out, &st);
	for (off_t at = 0; at < st.st_size; at += at < (off_t)sizeof(head) ? 1 : 7) {
		int out = file_new();
		struct binary *of, *file;
		struct symbol_result res;
		struct index *x;
		uint8_t *copy = malloc((size_t)st.st_size);

		ck_assert_int_eq(pread(h.out, copy, (size_t)st.st_size, 0), st.st_size);
		copy[at] ^= (uint8_t)(0xff >> (at % 7));
		/* A head that is well sealed may still lie. */
		memcpy(&head, copy, sizeof(head));
		head.crc = (uint32_t)crc32(0, (const Bytef *)&head, offsetof(struct index_head, crc));
		memcpy(copy, &head, sizeof(head));
		ck_assert_int_eq(pwrite(out, copy, (size_t)st.st_size, 0), st.st_size);
		free(copy);
		ck_assert_int_eq(binary_open(dup(h.elf), "/check", &of), 0);
		ck_assert_int_eq(binary_open(out, "[index]", &file), 0);
		if (index_open(file, of, &x) == 0) {
			for (uint64_t a = 0x1000; a < 0x2000; a += 256)
				if (index_find(x, a, &o, &res) == 0)
					symbol_result_done(&res);
			index_free(x);
		}
		binary_put(of);
	}
	close(h.elf);
	close(h.out);
}
END_TEST

/* --- sorting --- */

static int by_key(const void *pa, const void *pb)
{
	const struct sort_record *a = pa, *b = pb;

	return a->key < b->key ? -1 : a->key > b->key;
}

static int count_in_order(void *ctx, const struct sort_record *r)
{
	uint64_t *next = ctx;

	ck_assert_uint_eq(r->key, *next);
	(*next)++;
	return 0;
}

START_TEST(more_records_than_memory_come_out_in_order)
{
	struct scratch scratch = {.fd = file_new(), .limit = 64 << 20};
	const uint64_t n = 5 * SORT_MEMORY + 17, prime = 99991;
	struct sort_record r = {0};
	struct sorter *s;
	uint64_t next = 0;

	ck_assert_int_eq(sorter_new(&scratch, by_key, &s), 0);
	for (uint64_t i = 0; i < n; i++) {
		r.key = i * prime % n;
		ck_assert_int_eq(sorter_add(s, &r), 0);
	}
	ck_assert_int_eq(sorter_finish(s, count_in_order, &next), 0);
	ck_assert_uint_eq(next, n);
	sorter_free(s);
	close(scratch.fd);
}
END_TEST

START_TEST(full_scratch_file_is_an_error_not_a_loss)
{
	struct scratch scratch = {.fd = file_new(), .limit = 4096};
	struct sort_record r = {0};
	struct sorter *s;
	int err = 0;

	ck_assert_int_eq(sorter_new(&scratch, by_key, &s), 0);
	for (uint32_t i = 0; i <= SORT_MEMORY && !err; i++)
		err = sorter_add(s, &r);
	ck_assert_int_eq(err, -ENOSPC);
	sorter_free(s);
	close(scratch.fd);
}
END_TEST

/* Which would be tried again, with all that was sorted, for each record that follows. */
START_TEST(full_disk_is_no_bound_of_ours)
{
	struct scratch scratch = {.fd = open("/dev/full", O_RDWR | O_CLOEXEC), .limit = 64 << 20};
	struct sort_record r = {0};
	struct sorter *s;
	struct spool out;
	int err = 0;

	ck_assert_int_ge(scratch.fd, 0);
	ck_assert_int_eq(sorter_new(&scratch, by_key, &s), 0);
	for (uint32_t i = 0; i <= SORT_MEMORY && !err; i++)
		err = sorter_add(s, &r);
	ck_assert_int_eq(err, -EDQUOT);
	sorter_free(s);
	spool_init(&out, scratch.fd, 0, 4096);
	spool_add(&out, "x", 1);
	ck_assert_int_eq(spool_flush(&out), -EDQUOT);
	close(scratch.fd);
}
END_TEST

/* --- unpacking --- */

/* The input lies in a mapping of a file, as everywhere. */
static const uint8_t *map_packed(const void *plain, size_t len, size_t *ret_len)
{
	uLongf size = compressBound(len);
	uint8_t *packed = malloc(size);
	void *mapped;
	int fd;

	ck_assert_int_eq(compress2(packed, &size, plain, len, 9), Z_OK);
	fd = file_of(packed, size);
	mapped = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	ck_assert(mapped != MAP_FAILED);
	close(fd);
	free(packed);
	*ret_len = size;
	return mapped;
}

START_TEST(bomb_is_given_up_at_its_bound)
{
	size_t plain_len = 16 << 20, len;
	uint8_t *plain = calloc(1, plain_len);
	const uint8_t *packed = map_packed(plain, plain_len, &len);
	int fd = file_new();
	struct stat st;

	ck_assert_int_eq(unpack_section(ELFCOMPRESS_ZLIB, packed, len, fd, 0, 1 << 20), -EFBIG);
	fstat(fd, &st);
	ck_assert_int_le(st.st_size, 1 << 20);
	ck_assert_int_eq(unpack_section(ELFCOMPRESS_ZLIB, packed, len, fd, 0, plain_len), 0);
	ck_assert_int_eq(unpack_section(ELFCOMPRESS_ZLIB, packed, len, fd, 0, plain_len + 1), -EBADMSG);
	ck_assert_int_eq(unpack_section(ELFCOMPRESS_ZLIB, packed, len / 2, fd, 0, plain_len), -EBADMSG);
	ck_assert_int_eq(unpack_section(99, packed, len, fd, 0, plain_len), -ENOTSUP);
	close(fd);
	free(plain);
}
END_TEST

/* --- names --- */

static const struct {
	const char *name;
	size_t len;
} clones[] = {
	{"foo.cold", 3},	 {"foo.part.0", 3},	{"foo.constprop.0.isra.0", 3}, {"foo.isra.0.cold", 3},
	{"foo.lto_priv.0", 3},	 {"foo.llvm.123456", 3}, {"foo", 3},		       {"foo.bar", 7},
	{"foo.1", 5},		 {"main.cold.1", 4},	{".cold", 5},		       {"a.b.cold", 3},
	{"runtime.mallocgc", 16}, {"", 0},
	/* Zig's and Go's functions have dots of their own. */
	{"runtime.exit", 12},	 {"os.linux.x86_64.clone", 21}, {"process.exit", 12}, {"io.hot", 6},
	{"foo.exit.0", 3},	 {"foo.localalias", 3}, {"foo.localalias.1.cold", 3}, {"mem.part", 8},
	{"__tm.start.local", 16},
};

START_TEST(marks_of_clones_are_known)
{
	ck_assert_uint_eq(name_without_clones(clones[_i].name), clones[_i].len);
}
END_TEST

START_TEST(people_know_malloc)
{
	const struct name_traits global = {0}, weak = {.weak = true}, local = {.local = true};

	ck_assert_uint_lt(name_rank(&global, "malloc"), name_rank(&global, "__libc_malloc"));
	ck_assert_uint_lt(name_rank(&weak, "write"), name_rank(&global, "__write"));
	ck_assert_uint_lt(name_rank(&global, "__write"), name_rank(&local, "write_nocancel"));
	ck_assert_uint_lt(name_rank(&global, "_ZN1AC1Ev"), name_rank(&global, "_ZN1AC2EvLonger"));
}
END_TEST

static TCase *case_of_index(void)
{
	TCase *tc = tcase_create("index");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, inlined_call_and_its_lines_are_known);
	tcase_add_test(tc, without_inlines_the_function_has_the_line_of_the_call);
	tcase_add_test(tc, index_of_another_file_is_refused);
	tcase_add_test(tc, what_is_no_elf_file_has_no_index);
	tcase_add_test(tc, every_row_of_many_blocks_is_found);
	tcase_add_test(tc, chain_that_is_too_long_keeps_its_outermost_function);
	tcase_add_test(tc, broken_index_ends_every_lookup);
	tcase_add_test(tc, more_records_than_memory_come_out_in_order);
	tcase_add_test(tc, full_scratch_file_is_an_error_not_a_loss);
	tcase_add_test(tc, full_disk_is_no_bound_of_ours);
	tcase_add_test(tc, bomb_is_given_up_at_its_bound);
	tcase_add_loop_test(tc, marks_of_clones_are_known, 0, (int)ARRAY_SIZE(clones));
	tcase_add_test(tc, people_know_malloc);
	return tc;
}

Suite *index_suite(void)
{
	Suite *s = suite_create("index");

	suite_add_tcase(s, case_of_index());
	return s;
}
