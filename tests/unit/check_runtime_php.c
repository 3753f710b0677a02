// SPDX-License-Identifier: Apache-2.0
/* PHP's runtime over a made-up memory, in the layout of each version. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define WORLD_BYTES	(4u << 20)
#define WORLD_TICK_READ tick_read
#include "tests/lib/world.h"

#include "runtime/php.h"
#include "tests/lib/symbols_elf.h"

Suite *runtime_php_suite(void);

static uint64_t absent; /* 256 bytes that the tick cannot read; 0: none */

static int tick_read(void *to, size_t len, uint64_t from)
{
	return absent && from >= absent && from < absent + 256 ? -EFAULT : world_read(to, len, from);
}

static uint64_t get64(uint64_t at)
{
	uint64_t v = 0;

	world_read(&v, sizeof(v), at);
	return v;
}

/* A zend_string. */
static uint64_t put_bytes(uint64_t at, const char *text, size_t len)
{
	uint64_t hash = 5381;

	for (size_t i = 0; i < len; i++)
		hash = hash * 33 + (uint8_t)text[i];
	put32(at + 4, 6);
	put64(at + 8, hash | 1ULL << 63);
	put64(at + 16, len);
	put(at + 24, text, len);
	return at;
}

static uint64_t put_string(uint64_t at, const char *text)
{
	return put_bytes(at, text, strlen(text));
}

/* --- what lies in it --- */

enum {
	GLOBALS = 0x1000, REGISTRY = 0x2000, BUCKETS = 0x2100, MODULE = 0x3000, STANDARD = 0x3100, NAMES = 0x3200,
	DATA = 0x5000,	 /* frames, 0x100 each, the innermost first */
	FUNC = 0x6000,	 /* functions, 0x200 each */
	CLASS = 0x8000,
	STRING = 0x9000, /* 0x100 each */
	OPS = 0x10000,	 /* 0x1000 for each function */
	INCLUDED = 0x1d0000, STORAGE = 0x1f0000, OFFSET = 0x1e0000, KEY = 0x1e0010,
};

static const struct php_layout *layout;
static struct runtime_attached attached;
static struct otp_walker walker;
static struct runtime_function function;

static uint64_t at(uint32_t offset)
{
	return WORLD + offset;
}

static uint64_t frame_at(uint32_t i)
{
	return at(DATA + i * 0x100);
}

static uint64_t func_at(uint32_t i)
{
	return at(FUNC + i * 0x200);
}

static uint64_t ops_at(uint32_t i)
{
	return at(OPS + i * 0x1000);
}

static uint64_t string_at(uint32_t i, const char *text)
{
	return put_string(at(STRING + i * 0x100), text);
}

/* A function with 8 opcodes, the one of index k on line start + k / 2. */
static void put_function(uint32_t i, uint32_t type, uint64_t name, uint64_t class, uint64_t file, uint32_t start)
{
	uint64_t f = func_at(i);

	put32(f, type);
	put64(f + 8, name);
	put64(f + 16, class);
	put32(f + layout->last, 8);
	put64(f + layout->opcodes, ops_at(i));
	put64(f + layout->filename, file);
	put32(f + layout->filename + 8u, start);
	put32(f + layout->filename + 12u, start + 9);
	for (uint32_t k = 0; k < 8; k++)
		put32(ops_at(i) + k * 32 + 24, start + k / 2);
}

static void put_frame(uint32_t i, uint64_t func, uint64_t opline, uint32_t info)
{
	put64(frame_at(i), opline);
	put64(frame_at(i) + 24, func);
	put32(frame_at(i) + 40, info);
	put64(frame_at(i) + 48, 0);
	if (i)
		put64(frame_at(i - 1) + 48, frame_at(i));
}

#define TOP 0x20000u
#define CODE 0x10000u

/* {main} calls array_map, which calls A::{closure}, which calls spin. */
static void put_program(void)
{
	uint64_t file = string_at(0, "/srv/app/main.php"), class = at(CLASS);

	put64(class, 2);
	put64(class + 8, string_at(1, "A"));
	put_function(0, PHP_USER, string_at(2, "spin"), 0, file, 40);
	put_function(1, PHP_USER, string_at(3, "{closure}"), class, file, 5);
	put32(func_at(2), PHP_INTERNAL);
	put64(func_at(2) + 8, string_at(4, "array_map"));
	put_function(3, PHP_USER, 0, 0, file, 1);
	put_frame(0, func_at(0), ops_at(0) + 3 * 32, 0);
	put_frame(1, func_at(1), ops_at(1) + 5 * 32, TOP);
	put_frame(2, func_at(2), 0, 0);
	put_frame(3, func_at(3), ops_at(3) + 7 * 32, TOP | CODE);
	put64(at(GLOBALS) + layout->current, frame_at(0));
}

static void put_module(uint32_t i, uint32_t where, const char *name, const char *version)
{
	uint64_t names = at(NAMES + i * 0x100);

	put64(at(BUCKETS + i * 32), at(where));
	put32(at(where), 168);
	put32(at(where) + 4, layout->api);
	put64(at(where) + 32, names);
	put64(at(where) + 88, names + 64);
	put(names, name, strlen(name) + 1);
	put(names + 64, version, strlen(version) + 1);
}

static void put_modules(void)
{
	put64(at(REGISTRY) + 16, at(BUCKETS));
	put32(at(REGISTRY) + 24, 2);
	put_module(0, MODULE, "Core", "4.0.0");
	put_module(1, STANDARD, "standard", "8.9.1");
}

static void world_begin(int version)
{
	layout = php_layout_at((uint64_t)version);
	memset(world, 0, sizeof(world));
	memory_question(&memory);
	put_modules();
	put_program();
}

static int attach_elf(const struct symbols_elf *e, char why[RUNTIME_WHY_MAX])
{
	struct runtime_file file = {.binary = symbols_elf_open(e), .bias = WORLD, .thread = at(STORAGE + 0x740)};
	int r;

	ck_assert_ptr_nonnull(file.binary);
	attached = (struct runtime_attached){0};
	memory_question(&memory);
	r = runtime_php.attach(&file, &memory, &attached, why);
	binary_put(file.binary);
	return r;
}

static int attach_why(char why[RUNTIME_WHY_MAX])
{
	static struct symbols_elf e;

	symbols_elf_init(&e, EM_X86_64);
	symbols_elf_add(&e, "executor_globals", GLOBALS);
	symbols_elf_add(&e, "module_registry", REGISTRY);
	symbols_elf_add(&e, "execute_ex", 0x800);
	return attach_elf(&e, why);
}

static int attach(void)
{
	char why[RUNTIME_WHY_MAX] = "";

	return attach_why(why);
}

/* --- a sample --- */

static struct runtime_frame frames[OTP_WALK_FRAMES];
static struct { uint64_t valid, reg[OTP_REGS_X86_64]; } regs; /* struct otp_regs */
static bool compiled; /* the thread runs code that opcache has compiled */

static int frame_of(uint32_t i)
{
	uint32_t words = otp_walk_frame_words(&attached.walk), root = otp_walk_count(attached.walk.root_keep);
	const uint64_t *from = (const void *)&walker.out[2 + root + i * words];
	struct runtime_words w = {.address = *from & OTP_WALK_ADDRESS, .missing = (uint32_t)(*from >> 56), .count = words - 1,
				  .word = from + 1, .root = (const void *)&walker.out[2], .nr_root = root, .index = i,
				  .nr_outer = walker.frames - 1 - i, .regs = (const void *)&regs,
				  .arch = OTP_ARCH_X86_64, .compiled = compiled};

	return runtime_php.frame(&attached, &w, &frames[i]);
}

static uint32_t sample_tls(uint64_t tls)
{
	otp_walk_prepare(&walker.ready, &attached.walk);
	walker.taken = 0;
	otp_walk_run(&walker, tls, 1, 0);
	return walker.frames;
}

static uint32_t sample(void)
{
	return sample_tls(0);
}

static int decode(uint32_t i)
{
	memory_question(&memory);
	return runtime_php.decode(&attached, &memory, &frames[i], &function);
}

static uint32_t line_of(uint32_t i)
{
	uint32_t line = 0;

	for (uint32_t k = 0; k < function.nr_lines && function.lines[k].position <= frames[i].position; k++)
		line = function.lines[k].line;
	return line;
}

static void expect(uint32_t i, const char *name, uint32_t line, uint32_t flags)
{
	ck_assert_int_eq(frame_of(i), 0);
	ck_assert_int_eq(decode(i), 0);
	ck_assert_str_eq(function.name, name);
	ck_assert_uint_eq(line_of(i), line);
	ck_assert_uint_eq(frames[i].flags, flags);
}

static void sample_begin(int version)
{
	world_begin(version);
	memset(&regs, 0, sizeof(regs));
	compiled = false;
	ck_assert_int_eq(attach(), 0);
}

/* --- attach --- */

#define VERSIONS 8

START_TEST(version_is_found_by_its_modules)
{
	world_begin(_i);
	ck_assert_int_eq(attach(), 0);
	ck_assert_str_eq(attached.version, "8.9.1");
	ck_assert_uint_eq(attached.walk.base, at(GLOBALS));
	ck_assert_uint_eq(attached.nr_loops, 1);
	ck_assert_uint_eq(attached.loop[0], at(0x800));
}
END_TEST

START_TEST(unknown_version_is_refused_with_its_name)
{
	char why[RUNTIME_WHY_MAX] = "";

	world_begin(0);
	put32(at(STANDARD) + 4, 20991231);
	ck_assert_int_eq(attach_why(why), -ENOTSUP);
	ck_assert_str_eq(why, "PHP 8.9.1 (API 20991231) is not known");
}
END_TEST

START_TEST(program_that_has_not_started_is_asked_again)
{
	world_begin(0);
	put32(at(REGISTRY) + 24, 0);
	ck_assert_int_eq(attach(), -EAGAIN);
	put32(at(REGISTRY) + 24, 1);
	ck_assert_int_eq(attach(), -EAGAIN);
}
END_TEST

START_TEST(modules_that_are_none_are_refused)
{
	world_begin(0);
	put32(at(STANDARD), 7);
	ck_assert_int_eq(attach(), -EBADMSG);
	put64(at(BUCKETS + 32), 0x1234);
	ck_assert_int_eq(attach(), -EFAULT);
	put_module(1, STANDARD, "none", "1");
	put32(at(STANDARD), 168);
	put32(at(REGISTRY) + 24, UINT32_MAX);
	ck_assert_int_eq(attach(), -EFAULT);
}
END_TEST

/* zend_vm_kind's code, and how compiled code is then said to be entered. */
static const struct kind_case { uint8_t code[12]; uint16_t machine; enum runtime_compiled want; } kind_cases[] = {
	{{0xb8, 4, 0, 0, 0, 0xc3}, EM_X86_64, RUNTIME_JUMPED},
	{{0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 4, 0, 0, 0, 0xc3}, EM_X86_64, RUNTIME_JUMPED},
	{{0xb8, 1, 0, 0, 0, 0xc3}, EM_X86_64, RUNTIME_CALLED},
	{{0xb8, 5, 0, 0, 0, 0xc3}, EM_X86_64, RUNTIME_CALLED},
	{{0xb8, 2, 0, 0, 0, 0xc3}, EM_X86_64, RUNTIME_NOT_COMPILED},
	{{0x48, 4, 0, 0, 0, 0xc3}, EM_X86_64, RUNTIME_NOT_COMPILED},
	{{0x80, 0, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6}, EM_AARCH64, RUNTIME_JUMPED},
};

START_TEST(how_compiled_code_is_entered_is_told_by_the_kind_of_loop)
{
	const struct kind_case *k = &kind_cases[_i];
	static struct symbols_elf e;
	char why[RUNTIME_WHY_MAX] = "";

	world_begin(5);
	symbols_elf_init(&e, k->machine);
	symbols_elf_add(&e, "executor_globals", GLOBALS);
	symbols_elf_add(&e, "module_registry", REGISTRY);
	symbols_elf_add(&e, "zend_vm_kind", SYMBOLS_ELF_CODE);
	memcpy(e.code, k->code, sizeof(k->code));
	ck_assert_int_eq(attach_elf(&e, why), 0);
	ck_assert_uint_eq(attached.compiled, k->want);
}
END_TEST

/* endbr64; mov KEY(%rip),%edi; jmp */
static void put_key_code(struct symbols_elf *e, uint32_t key)
{
	static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x8b, 0x3d, 0, 0, 0, 0, 0xe9};
	int32_t offset = KEY - (SYMBOLS_ELF_CODE + 10);

	memcpy(e->code, code, sizeof(code));
	memcpy(e->code + 6, &offset, sizeof(offset));
	put32(at(KEY), key);
}

/* bti c; adrp x8, KEY's page; ldr w0, [x8, #KEY's place in it]; b: as gcc has it, and by another register. */
static void put_key_code_arm64(struct symbols_elf *e, uint32_t key)
{
	const uint32_t pages = (KEY >> 12) - (SYMBOLS_ELF_CODE >> 12);
	const uint32_t code[] = {0xd503245f, 0x90000008 | (pages & 3) << 29 | pages >> 2 << 5,
				 0xb9400100 | (KEY & 0xfff) / 4 << 10, 0x14000003};

	memcpy(e->code, code, sizeof(code));
	put32(at(KEY), key);
}

static int attach_threads(uint32_t key, const char *library)
{
	static struct symbols_elf e;
	char why[RUNTIME_WHY_MAX] = "";

	symbols_elf_init(&e, EM_X86_64);
	symbols_elf_add(&e, "executor_globals_offset", OFFSET);
	symbols_elf_add(&e, "module_registry", REGISTRY);
	symbols_elf_add(&e, "tsrm_get_ls_cache", SYMBOLS_ELF_CODE);
	symbols_elf_need(&e, library);
	put_key_code(&e, key);
	return attach_elf(&e, why);
}

static const struct { uint32_t key; const char *library; uint32_t chain[2]; } keys[] = {
	{0, "libc.so.6", {0x318, 0}},
	{3, "libc.so.6", {0x348, 0}},
	{70, "libc.so.6", {0x520, 16 * 6 + 8}},
	{3, "libc.musl-x86_64.so.1", {0x80, 24}},
};

/* executor_globals lie 0x2000 into the thread's storage, which its slot points to. */
START_TEST(threads_have_globals_of_their_own)
{
	uint64_t slot = at(STORAGE);

	world_begin(4);
	put64(at(OFFSET), 0x2000);
	ck_assert_int_eq(attach_threads(keys[_i].key, keys[_i].library), 0);
	ck_assert_uint_eq(attached.walk.start, OTP_WALK_TLS);
	put64(slot + keys[_i].chain[0], at(STORAGE + 0x1000));
	if (keys[_i].chain[1])
		put64(at(STORAGE + 0x1000) + keys[_i].chain[1], at(STORAGE + 0x1000));
	put64(at(STORAGE + 0x3000) + layout->current, frame_at(0));
	ck_assert_uint_eq(sample_tls(slot), 4);
	expect(0, "spin", 41, 0);
}
END_TEST

START_TEST(threads_of_arm64_have_them_too)
{
	static struct symbols_elf e;
	char why[RUNTIME_WHY_MAX] = "";

	world_begin(4);
	put64(at(OFFSET), 0x2000);
	symbols_elf_init(&e, EM_AARCH64);
	symbols_elf_add(&e, "executor_globals_offset", OFFSET);
	symbols_elf_add(&e, "module_registry", REGISTRY);
	symbols_elf_add(&e, "tsrm_get_ls_cache", SYMBOLS_ELF_CODE);
	symbols_elf_need(&e, "libc.so.6");
	put_key_code_arm64(&e, 3);
	ck_assert_int_eq(attach_elf(&e, why), -ENOTSUP);
	put64(at(STORAGE) + 0x310, at(STORAGE) + 0x110);
	ck_assert_int_eq(attach_elf(&e, why), 0);
	put64(at(STORAGE) + 0x110 + 3 * 16 + 8, at(STORAGE + 0x1000));
	put64(at(STORAGE + 0x3000) + layout->current, frame_at(0));
	ck_assert_uint_eq(sample_tls(at(STORAGE + 0x740)), 4);
	expect(0, "spin", 41, 0);
	e.code[0] = 0xc0; /* ret, before the key */
	e.code[1] = 0x03;
	e.code[2] = 0x5f;
	e.code[3] = 0xd6;
	ck_assert_int_eq(attach_elf(&e, why), -ENOTSUP);
}
END_TEST

START_TEST(threads_that_have_not_started_are_asked_again)
{
	world_begin(4);
	ck_assert_int_eq(attach_threads(3, "libc.so.6"), -EAGAIN);
}
END_TEST

START_TEST(storage_of_unknown_libraries_is_refused)
{
	world_begin(4);
	put64(at(OFFSET), 0x2000);
	ck_assert_int_eq(attach_threads(3, "libc.so.7"), -ENOTSUP);
	ck_assert_int_eq(attach_threads(1024, "libc.so.6"), -ENOTSUP);
	ck_assert_int_eq(attach_threads(128, "libc.so"), -ENOTSUP);
	put64(at(OFFSET), 1ULL << 40);
	ck_assert_int_eq(attach_threads(3, "libc.so.6"), -ENOTSUP);
}
END_TEST

/* --- frames --- */

START_TEST(frames_have_names_lines_and_flags)
{
	sample_begin(_i);
	ck_assert_uint_eq(sample(), 4);
	ck_assert_uint_eq(walker.end, OTP_WALK_END_DONE);
	expect(0, "spin", 41, 0);
	ck_assert_str_eq(function.file, "/srv/app/main.php");
	ck_assert_uint_eq(function.start_line, 40);
	expect(1, "A::{closure}", 7, RUNTIME_ENTRY);
	expect(2, "array_map", 0, RUNTIME_NATIVE);
	expect(3, "{main}", 4, RUNTIME_ENTRY);
}
END_TEST

START_TEST(code_of_files_is_named_by_how_it_runs)
{
	sample_begin(4);
	put_frame(3, func_at(3), ops_at(3), CODE);
	sample();
	expect(3, "include main.php", 1, 0);
	put32(func_at(3), PHP_EVAL);
	sample();
	expect(3, "{eval}", 1, 0);
	ck_assert_str_eq(function.file, "/srv/app/main.php");
}
END_TEST

START_TEST(innermost_line_is_the_registers)
{
	sample_begin(4);
	sample();
	regs.valid = 1 << 15;
	regs.reg[15] = ops_at(0) + 6 * 32;
	regs.reg[14] = frame_at(0);
	expect(0, "spin", 43, 0);
	regs.reg[15] = ops_at(1) + 2 * 32;
	expect(0, "spin", 41, 0);
	expect(1, "A::{closure}", 7, RUNTIME_ENTRY);
}
END_TEST

START_TEST(innermost_line_of_compiled_code_is_its_first)
{
	sample_begin(4);
	sample();
	regs.valid = 1 << 15;
	regs.reg[15] = ops_at(0) + 6 * 32;
	regs.reg[14] = frame_at(0);
	compiled = true;
	expect(0, "spin", 40, 0);
	expect(1, "A::{closure}", 7, RUNTIME_ENTRY);
}
END_TEST

START_TEST(registers_of_a_callee_that_ends_are_not_the_frames)
{
	sample_begin(4);
	sample();
	regs.valid = 1 << 15;
	regs.reg[15] = ops_at(0) + 6 * 32;
	regs.reg[14] = frame_at(0) + 0x100;
	expect(0, "spin", 41, 0);
}
END_TEST

START_TEST(opline_outside_of_the_function_is_its_first_line)
{
	static const int64_t wrong[] = {-32, 8 * 32, 33, -0x7000};

	sample_begin(4);
	put_frame(0, func_at(0), ops_at(0) + (uint64_t)wrong[_i], 0);
	put64(frame_at(0) + 48, frame_at(1));
	sample();
	expect(0, "spin", 40, 0);
}
END_TEST

START_TEST(line_of_an_exception_is_where_it_was_thrown)
{
	sample_begin(4);
	put_frame(0, func_at(0), at(GLOBALS), 0);
	put64(frame_at(0) + 48, frame_at(1));
	put64(at(GLOBALS) + layout->before_throw, ops_at(0) + 4 * 32);
	sample();
	expect(0, "spin", 42, 0);
}
END_TEST

START_TEST(frames_without_function_are_hidden_or_delegate)
{
	sample_begin(4);
	put_frame(2, 0, 0, 0);
	put_frame(3, 0, 0, 8 | 0x300);
	sample();
	ck_assert_int_eq(frame_of(2), 0);
	ck_assert_uint_eq(frames[2].key, 0);
	ck_assert_uint_eq(frames[2].flags, RUNTIME_HIDDEN);
	expect(3, "{yield from}", 0, RUNTIME_NATIVE);
}
END_TEST

START_TEST(root_of_a_fiber_is_hidden)
{
	sample_begin(4);
	put64(func_at(2) + 8, 0);
	sample();
	ck_assert_int_eq(frame_of(2), 0);
	ck_assert_uint_eq(frames[2].key, 0);
	ck_assert_uint_eq(frames[2].flags, RUNTIME_NATIVE | RUNTIME_HIDDEN);
}
END_TEST

START_TEST(words_that_are_no_frame_end_the_walk)
{
	struct runtime_words w = {0};

	sample_begin(4);
	ck_assert_int_eq(runtime_php.frame(&attached, &w, &frames[0]), -EBADMSG);
	put32(func_at(0), 3);
	put_frame(1, func_at(1) + 4, 0, 0);
	put_frame(2, 1ULL << 60, 0, 0);
	sample();
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_int_eq(frame_of(i), -EBADMSG);
	attached.param[PHP_LAYOUT] = VERSIONS;
	ck_assert_int_eq(frame_of(3), -EBADMSG);
	ck_assert_int_eq(runtime_php.decode(&attached, &memory, &frames[3], &function), -EBADMSG);
}
END_TEST

/* --- functions --- */

START_TEST(anonymous_class_is_named_without_its_place)
{
	static const char name[] = "class@anonymous\0/srv/app/main.php:3$0";

	sample_begin(4);
	put_bytes(at(STRING + 0x100), name, sizeof(name) - 1);
	sample();
	expect(1, "class@anonymous::{closure}", 7, RUNTIME_ENTRY);
}
END_TEST

/* The sample saw A::{closure}; then memory changes. */
static void expect_stale(uint64_t where, uint64_t word)
{
	uint64_t before = get64(where);

	put64(where, word);
	ck_assert_int_eq(decode(1), -ESTALE);
	put64(where, before);
	ck_assert_int_eq(decode(1), 0);
}

static void forget_function(uint32_t i)
{
	static const uint8_t free_memory[0x200];

	put(func_at(i), free_memory, sizeof(free_memory));
}

START_TEST(closure_that_was_freed_is_named)
{
	sample_begin(_i);
	sample();
	forget_function(1);
	ck_assert_int_eq(frame_of(1), 0);
	expect(1, "A::{closure}", 7, RUNTIME_ENTRY);
	ck_assert_str_eq(function.file, "/srv/app/main.php");
	ck_assert_uint_eq(function.start_line, 5);
}
END_TEST

START_TEST(copies_of_a_closure_are_one_function)
{
	sample_begin(4);
	put_function(0, PHP_USER, at(STRING + 0x300), at(CLASS), at(STRING), 5);
	put64(func_at(0) + layout->opcodes, ops_at(1));
	sample();
	ck_assert_int_eq(frame_of(0), 0);
	ck_assert_int_eq(frame_of(1), 0);
	ck_assert_uint_eq(frames[0].key, frames[1].key);
	ck_assert_mem_eq(frames[0].cookie, frames[1].cookie, sizeof(frames[0].cookie));
}
END_TEST

START_TEST(memory_of_names_that_is_used_again_is_stale)
{
	sample_begin(_i);
	sample();
	ck_assert_int_eq(frame_of(1), 0);
	expect_stale(at(STRING + 0x300), 0);	  /* no string */
	expect_stale(at(STRING + 0x300) + 8, 1);  /* no hash */
	expect_stale(at(STRING), 0);
	expect_stale(at(STRING) + 8, 1);
	expect_stale(at(STRING + 0x100) + 24, 'B');
	expect_stale(at(CLASS), 0);
	string_at(3, "another");
	ck_assert_int_eq(decode(1), -ESTALE);
	string_at(3, "{closure}");
	string_at(0, "/srv/app/another.php");
	ck_assert_int_eq(decode(1), -ESTALE);
}
END_TEST

/* The list of included files, an array with one element. */
static void put_included(uint64_t name)
{
	uint64_t buckets = at(INCLUDED + 0x100);

	put32(at(GLOBALS) + 360 + 12, UINT32_MAX - 1);
	put64(at(GLOBALS) + 360 + 16, buckets);
	put32(buckets - 4, 0);
	put32(buckets - 8, 0);
	put32(buckets + 12, UINT32_MAX);
	put64(buckets + 16, get64(name + 8));
	put64(buckets + 24, name);
}

START_TEST(name_of_a_file_that_was_freed_is_that_of_an_included_one)
{
	sample_begin(4);
	put_frame(3, func_at(3), ops_at(3), CODE);
	sample();
	string_at(0, "something else");
	ck_assert_int_eq(frame_of(3), 0);
	ck_assert_int_eq(decode(3), -ESTALE);
	put_included(string_at(5, "/srv/app/main.php"));
	expect(3, "include main.php", 1, 0);
	expect(1, "A::{closure}", 7, RUNTIME_ENTRY);
	ck_assert_str_eq(function.file, "/srv/app/main.php");
	put_included(string_at(5, "/srv/app/other.php"));
	ck_assert_int_eq(decode(3), -ESTALE);
}
END_TEST

START_TEST(list_of_included_files_is_bounded)
{
	uint64_t name = at(STRING + 0x500), buckets = at(INCLUDED + 0x100);

	sample_begin(4);
	sample();
	string_at(0, "something else");
	ck_assert_int_eq(frame_of(1), 0);
	string_at(5, "no name");
	put_included(name);
	put32(buckets + 12, 0);
	ck_assert_int_eq(decode(1), -ESTALE);
	ck_assert_uint_lt(memory.reads, 200);
	put64(at(GLOBALS) + 360 + 16, 8);
	ck_assert_int_eq(decode(1), -ESTALE);
}
END_TEST

/* spin, on line 41, runs eval's code; both its function and its file's name are freed at once. */
static void sample_eval(const char *file)
{
	sample_begin(4);
	put_function(1, PHP_EVAL, 0, 0, string_at(6, file), 1);
	put_frame(1, func_at(1), ops_at(1) + 2 * 32, CODE);
	put_frame(2, func_at(0), ops_at(0) + 3 * 32, 0);
	put_frame(0, func_at(3), ops_at(3), 0);
	put64(frame_at(0) + 48, frame_at(1));
	sample();
	forget_function(1);
	string_at(6, "something else");
}

START_TEST(file_of_eval_is_made_of_its_caller)
{
	sample_eval("/srv/app/main.php(41) : eval()'d code");
	expect(1, "{eval}", 2, 0);
	ck_assert_str_eq(function.file, "/srv/app/main.php(41) : eval()'d code");
}
END_TEST

START_TEST(eval_of_an_unknown_file_is_named)
{
	sample_eval("/srv/app/main.php(40) : eval()'d code");
	expect(1, "{eval}", 2, 0);
	ck_assert_str_eq(function.file, "");
}
END_TEST

START_TEST(main_program_of_an_unknown_file_is_named)
{
	sample_begin(4);
	sample();
	string_at(0, "something else");
	expect(3, "{main}", 4, RUNTIME_ENTRY);
	ck_assert_str_eq(function.file, "");
}
END_TEST

START_TEST(opcodes_that_were_overwritten_have_no_lines)
{
	sample_begin(4);
	sample();
	put32(ops_at(1) + 2 * 32 + 28, 0x6b6b6b6b);
	expect(1, "A::{closure}", 0, RUNTIME_ENTRY);
	put32(ops_at(1) + 2 * 32 + 28, 0);
	expect(1, "A::{closure}", 7, RUNTIME_ENTRY);
	put32(ops_at(1) + 5 * 32 + 24, 15);
	expect(1, "A::{closure}", 0, RUNTIME_ENTRY);
	put32(ops_at(1) + 5 * 32 + 24, 4);
	expect(1, "A::{closure}", 0, RUNTIME_ENTRY);
}
END_TEST

/* The sampler cannot read what is not in memory at that moment: the hash of a name, or the function's end. */
START_TEST(hash_that_the_sampler_could_not_copy_is_not_compared)
{
	static const uint32_t absent_parts[] = {STRING, STRING + 0x300};

	sample_begin(4);
	absent = at(absent_parts[_i]);
	sample();
	absent = 0;
	expect(1, "A::{closure}", 7, RUNTIME_ENTRY);
	string_at(_i ? 0 : 3, "something else");
	ck_assert_int_eq(decode(1), -ESTALE);
}
END_TEST

START_TEST(place_that_the_sampler_could_not_copy_is_read_while_the_function_lives)
{
	sample_begin(4);
	absent = func_at(1) + 128;
	sample();
	absent = 0;
	expect(1, "A::{closure}", 7, RUNTIME_ENTRY);
	ck_assert_str_eq(function.file, "/srv/app/main.php");
	expect_stale(func_at(1) + 8, at(STRING + 0x200));
	expect_stale(func_at(1) + 16, 0);
	expect_stale(func_at(1) + layout->opcodes, ops_at(2));
}
END_TEST

START_TEST(flags_of_a_function_may_change)
{
	sample_begin(4);
	sample();
	ck_assert_int_eq(frame_of(1), 0);
	put32(func_at(1) + 4, 0x400000);
	ck_assert_int_eq(decode(1), 0);
}
END_TEST

START_TEST(name_that_was_overwritten_is_stale)
{
	sample_begin(4);
	sample();
	ck_assert_int_eq(frame_of(1), 0);
	put(at(STRING + 0x300) + 24, "{clOsure}", 9);
	ck_assert_int_eq(decode(1), -ESTALE);
}
END_TEST

START_TEST(endless_name_is_cut)
{
	sample_begin(4);
	put64(at(STRING + 0x300) + 16, UINT64_MAX);
	put64(at(STRING + 0x100) + 16, UINT64_MAX);
	sample();
	ck_assert_int_eq(frame_of(1), 0);
	ck_assert_int_eq(decode(1), 0);
	ck_assert_uint_lt(strlen(function.name), RUNTIME_NAME_MAX);
}
END_TEST

START_TEST(lines_beyond_the_table_are_unknown)
{
	uint32_t nr = RUNTIME_LINES_MAX + 100;

	sample_begin(4);
	put32(func_at(3) + layout->last, nr);
	put32(func_at(3) + layout->filename + 12u, nr + 10);
	for (uint32_t k = 0; k < nr; k++)
		put32(ops_at(3) + k * 32 + 24, 10 + k);
	put_frame(3, func_at(3), ops_at(3) + (nr - 1) * 32, TOP | CODE);
	sample();
	expect(3, "{main}", 0, RUNTIME_ENTRY);
	frames[3].position = 1000;
	ck_assert_uint_eq(line_of(3), 1009);
	ck_assert_uint_eq(function.nr_lines, RUNTIME_LINES_MAX);
}
END_TEST

START_TEST(opcodes_without_end_are_bounded)
{
	sample_begin(4);
	put32(func_at(3) + layout->last, UINT32_MAX);
	sample();
	ck_assert_int_eq(frame_of(3), 0);
	ck_assert_int_eq(decode(3), 0);
	ck_assert_uint_lt(memory.bytes, MEMORY_BYTES_MAX);
	frames[3].position = PHP_OPCODES_MAX + 1;
	ck_assert_uint_eq(line_of(3), 0);
}
END_TEST

START_TEST(name_that_cannot_be_read_is_an_error)
{
	sample_begin(4);
	sample();
	ck_assert_int_eq(frame_of(1), 0);
	frames[1].cookie[PHP_COOKIE_NAME] = 8;
	ck_assert_int_eq(decode(1), -EFAULT);
}
END_TEST

START_TEST(function_whose_opcodes_cannot_be_read_is_named)
{
	sample_begin(4);
	sample();
	ck_assert_int_eq(frame_of(1), 0);
	frames[1].key = 8;
	ck_assert_int_eq(decode(1), 0);
	ck_assert_str_eq(function.name, "A::{closure}");
	ck_assert_uint_eq(function.start_line, 5);
	ck_assert_uint_eq(line_of(1), 0);
}
END_TEST

static void add_frames(Suite *s)
{
	TCase *t = tcase_create("frames");

	tcase_add_loop_test(t, frames_have_names_lines_and_flags, 0, VERSIONS);
	tcase_add_test(t, code_of_files_is_named_by_how_it_runs);
	tcase_add_test(t, innermost_line_is_the_registers);
	tcase_add_test(t, innermost_line_of_compiled_code_is_its_first);
	tcase_add_loop_test(t, how_compiled_code_is_entered_is_told_by_the_kind_of_loop, 0,
			    (int)(sizeof(kind_cases) / sizeof(kind_cases[0])));
	tcase_add_test(t, registers_of_a_callee_that_ends_are_not_the_frames);
	tcase_add_loop_test(t, opline_outside_of_the_function_is_its_first_line, 0, 4);
	tcase_add_test(t, line_of_an_exception_is_where_it_was_thrown);
	tcase_add_test(t, frames_without_function_are_hidden_or_delegate);
	tcase_add_test(t, root_of_a_fiber_is_hidden);
	tcase_add_test(t, words_that_are_no_frame_end_the_walk);
	suite_add_tcase(s, t);
}

static void add_functions(Suite *s)
{
	TCase *t = tcase_create("functions");

	tcase_add_test(t, anonymous_class_is_named_without_its_place);
	tcase_add_loop_test(t, closure_that_was_freed_is_named, 0, VERSIONS);
	tcase_add_test(t, copies_of_a_closure_are_one_function);
	tcase_add_loop_test(t, memory_of_names_that_is_used_again_is_stale, 0, VERSIONS);
	tcase_add_loop_test(t, hash_that_the_sampler_could_not_copy_is_not_compared, 0, 2);
	tcase_add_test(t, place_that_the_sampler_could_not_copy_is_read_while_the_function_lives);
	tcase_add_test(t, opcodes_that_were_overwritten_have_no_lines);
	tcase_add_test(t, flags_of_a_function_may_change);
	tcase_add_test(t, name_that_was_overwritten_is_stale);
	tcase_add_test(t, endless_name_is_cut);
	tcase_add_test(t, lines_beyond_the_table_are_unknown);
	tcase_add_test(t, opcodes_without_end_are_bounded);
	tcase_add_test(t, name_that_cannot_be_read_is_an_error);
	tcase_add_test(t, function_whose_opcodes_cannot_be_read_is_named);
	suite_add_tcase(s, t);
}

static void add_freed(Suite *s)
{
	TCase *t = tcase_create("freed");

	tcase_add_test(t, name_of_a_file_that_was_freed_is_that_of_an_included_one);
	tcase_add_test(t, list_of_included_files_is_bounded);
	tcase_add_test(t, file_of_eval_is_made_of_its_caller);
	tcase_add_test(t, eval_of_an_unknown_file_is_named);
	tcase_add_test(t, main_program_of_an_unknown_file_is_named);
	suite_add_tcase(s, t);
}

Suite *runtime_php_suite(void)
{
	Suite *s = suite_create("runtime_php");
	TCase *t = tcase_create("attach");

	tcase_add_loop_test(t, version_is_found_by_its_modules, 0, VERSIONS);
	tcase_add_test(t, unknown_version_is_refused_with_its_name);
	tcase_add_test(t, program_that_has_not_started_is_asked_again);
	tcase_add_test(t, modules_that_are_none_are_refused);
	tcase_add_loop_test(t, threads_have_globals_of_their_own, 0, ARRAY_SIZE(keys));
	tcase_add_test(t, threads_of_arm64_have_them_too);
	tcase_add_test(t, threads_that_have_not_started_are_asked_again);
	tcase_add_test(t, storage_of_unknown_libraries_is_refused);
	suite_add_tcase(s, t);
	add_frames(s);
	add_functions(s);
	add_freed(s);
	return s;
}
