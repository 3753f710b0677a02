// SPDX-License-Identifier: Apache-2.0
/* Ruby's runtime over a made-up memory, in the layout of each version. */
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/world.h"

#include "tests/lib/ruby_file.h"

Suite *runtime_ruby_suite(void);

static uint64_t free_at; /* what lies behind is free */

static uint64_t take(size_t bytes)
{
	uint64_t at = free_at;

	free_at += ALIGN_UP(bytes, 64);
	ck_assert_uint_lt(free_at, WORLD + WORLD_BYTES);
	return at;
}

/* --- a ruby --- */

#define POINTER	    (WORLD + 0x1800) /* thread pointer, pthread_t */
#define STACK_WORDS 256
#define ID_CLASSPATH 0x9990
#define ID_ATTACHED  0x9980

static const uint32_t versions[] = {207, 300, 301, 302, 303, 304, 400};
static const struct ruby_layout *layout;
static uint64_t vm, thread, ec, stack, frame_at, shapes, object_class, symbol_unit;
static uint32_t nr_shapes;

static uint64_t string(const char *text)
{
	uint64_t at = take(32 + strlen(text) + 1), chars = at + layout->text;
	bool fits = layout->text == 24 || strlen(text) < 24;

	put64(at, RUBY_T_STRING | (fits ? 0 : RUBY_NOEMBED) | (layout->text == 16 && fits ? strlen(text) << 14 : 0));
	if (layout->text == 24 || !fits)
		put64(at + 16, strlen(text));
	if (!fits)
		put64(at + 24, chars = at + 32);
	put(chars, text, strlen(text));
	return at;
}

static uint64_t array(const uint64_t *value, uint64_t n)
{
	uint64_t at = take(40 + n * 8);

	put64(at, RUBY_T_ARRAY);
	put64(at + 16, n);
	put64(at + 32, at + 40);
	put(at + 40, value, n * 8);
	return at;
}

static uint64_t pair(uint64_t a, uint64_t b)
{
	uint64_t at = take(40);

	put64(at, RUBY_T_ARRAY | RUBY_NOEMBED | 2 << 15);
	put64(at + 16, a);
	put64(at + 24, b);
	return at;
}

static uint64_t imemo(uint32_t type, size_t bytes)
{
	uint64_t at = take(bytes);

	put64(at, RUBY_T_IMEMO | (uint64_t)type << RUBY_IMEMO_SHIFT);
	return at;
}

/* An instance variable of a class that has no other: 2.7 to 3.1 in a table, 3.2 by a shape. */
static void class_variable(uint64_t class, uint64_t id, uint64_t value)
{
	uint64_t ext = take(64), table = take(64), entry = take(24);

	put64(entry, 1);
	put64(entry + 8, id);
	put64(entry + 16, value);
	if (layout->vm_shapes) {
		put64(class, (uint64_t)++nr_shapes << 32 | *(uint64_t *)(world + (class - WORLD)));
		put64(class + layout->class_ext, entry + 16);
		put64(shapes + nr_shapes * 32 + 8, id);
		put32(shapes + nr_shapes * 32 + 16, 1);
		put64(shapes + nr_shapes * 32 + 24, 1);
		return;
	}
	put64(class + layout->class_ext, ext);
	put64(ext + 8, table);
	put64(table + 40, 1);
	put64(table + 48, entry);
}

static uint64_t class(const char *name)
{
	uint64_t at = take(256);

	put64(at, RUBY_T_CLASS);
	if (layout->class_path)
		put64(at + layout->class_ext + layout->class_path, string(name));
	else
		class_variable(at, ID_CLASSPATH, string(name));
	return at;
}

static uint64_t singleton(uint64_t of)
{
	uint64_t at = take(256);

	put64(at, RUBY_T_CLASS | 1ULL << layout->singleton);
	if (layout->class_attached)
		put64(at + layout->class_ext + layout->class_attached, of);
	else
		class_variable(at, ID_ATTACHED, of);
	return at;
}

static uint64_t iseq(uint32_t type, const char *label, uint64_t local)
{
	uint64_t at = imemo(RUBY_IMEMO_ISEQ, 24), body = take(192), encoded = take(1024), rows = take(64);

	put64(at + RUBY_ISEQ_BODY, body);
	put32(body, type);
	put32(body + RUBY_BODY_SIZE, 100);
	put64(body + RUBY_BODY_ENCODED, encoded);
	put64(encoded, WORLD + CODE);
	put64(body + RUBY_BODY_PATH, pair(string("cart.rb"), string("/srv/cart.rb")));
	put64(body + RUBY_BODY_LABEL, string(label));
	put64(body + RUBY_BODY_FIRST_LINE, layout->line_is_fixnum ? 7 << 1 | 1 : 7);
	put64(body + layout->parent_iseq, local);
	put64(body + layout->local_iseq, local ? local : at);
	put64(body + layout->insns_info, rows);
	put32(body + layout->insns_info + 16, 1);
	put32(rows, 8);
	return at;
}

static uint64_t method(uint64_t owner, uint64_t code, uint64_t id)
{
	uint64_t at = imemo(RUBY_IMEMO_ENTRY, 40), definition = take(48);

	put64(at + RUBY_ENTRY_CLASS, owner);
	put64(at + RUBY_ENTRY_DEFINITION, definition);
	put64(at + RUBY_ENTRY_OWNER, owner);
	put64(definition + RUBY_DEFINITION_ISEQ, code);
	put64(definition + RUBY_DEFINITION_ID, id);
	return at;
}

/* Pushes a frame; returns its ep. */
static uint64_t push(uint64_t code, uint64_t entry, uint64_t spec, uint64_t flags)
{
	uint64_t env = take(24), body, encoded = 0;

	frame_at -= layout->frame;
	if (code) {
		memcpy(&body, world + (code + RUBY_ISEQ_BODY - WORLD), 8);
		memcpy(&encoded, world + (body + RUBY_BODY_ENCODED - WORLD), 8);
		encoded += 8;
	}
	put64(frame_at, encoded);
	put64(frame_at + 16, code);
	put64(frame_at + 32, env + 16);
	put64(env, entry);
	put64(env + 8, spec);
	put64(env + 16, flags);
	put64(ec + RUBY_EC_FRAME, frame_at);
	return env + 16;
}

#define METHOD_FLAGS (0x11110001 | RUBY_ENV_LOCAL)
#define BLOCK_FLAGS  0x22220001
#define NATIVE_FLAGS (RUBY_FRAME_CFUNC | 0x80 | RUBY_ENV_LOCAL)
#define DUMMY_FLAGS  (RUBY_FRAME_DUMMY | RUBY_FRAME_FINISH | RUBY_ENV_LOCAL)

static void ruby_thread_local(void)
{
	uint64_t vector = take(128), block = take(64);

	if (layout->version < 300) {
		put64(POINTER + 0x310 + 5 * 16 + 8, thread);
		return;
	}
	put64(POINTER + 8, vector);
	put64(vector + 3 * 16, block);
	put64(block + 16, ec);
	put64(WORLD + MODULE, 3);
}

static void ruby_symbols(void)
{
	uint64_t unit[1024] = {0}, units[2] = {0};

	unit['+' * 2] = string("+");
	unit[300 * 2] = string("each");
	symbol_unit = array(unit, 1024);
	units[0] = symbol_unit;
	put64(WORLD + DATA + 0x20, 600);
	put64(WORLD + DATA + 0x28, POINTER);
	put64(WORLD + DATA + 0x30, array(units, 2));
}

static void ruby_threads(void)
{
	uint64_t native;

	vm = take(512);
	thread = take(256);
	ec = take(128);
	stack = take(STACK_WORDS * 8);
	native = layout->thread_native ? take(64) : thread;
	frame_at = stack + STACK_WORDS * 8;
	put64(vm + layout->vm_main_thread, thread);
	put64(thread + layout->thread_vm, vm);
	put64(thread + layout->thread_ec, ec);
	if (layout->thread_native)
		put64(thread + layout->thread_native, native);
	put64(native + layout->thread_id, POINTER);
	put64(ec, stack);
	put64(ec + 8, STACK_WORDS);
	put64(ec + layout->ec_thread, thread);
}

/* A ruby of that version whose main program runs. */
static void ruby_init(uint32_t version)
{
	char text[16];

	layout = ruby_layout_find(version);
	memset(world, 0, sizeof(world));
	free_at = WORLD + 0x2000;
	nr_shapes = 0;
	file_init();
	snprintf(text, sizeof(text), "%u.%u.5", version / 100, version % 100);
	put(WORLD + VERSION, text, strlen(text));
	ruby_threads();
	ruby_thread_local();
	ruby_symbols();
	shapes = take(2048);
	put64(WORLD + BSS + 0x10, vm);
	if (layout->vm_shapes)
		put64(vm + layout->vm_shapes, shapes);
	object_class = class("Object");
	put64(object_class + 8, singleton(object_class));
	put64(WORLD + BSS + 0x18, object_class);
	file_symbol("ruby_current_vm_ptr", BSS + 0x10, STT_OBJECT);
	file_symbol("rb_cObject", BSS + 0x18, STT_OBJECT);
	push(0, 0, 0, DUMMY_FLAGS);
	push(iseq(7, "<main>", 0), 0, 0, 0x77770001 | RUBY_FRAME_FINISH | RUBY_ENV_LOCAL);
}

/* --- what the runtime makes of it --- */

static struct runtime_attached attached;
static char why[RUNTIME_WHY_MAX];
static struct otp_walker walker;
static struct runtime_function function;

static int attach(void)
{
	int err;

	attached = (struct runtime_attached){0};
	why[0] = '\0';
	memory_question(&memory);
	err = runtime_ruby.attach(file_open(WORLD), &memory, &attached, why);
	binary_put(opened.binary);
	return err;
}

static void walk(void)
{
	otp_walk_prepare(&walker.ready, &attached.walk);
	walker.taken = 0;
	otp_walk_run(&walker, POINTER, 1, 0);
}

static bool compiled; /* the thread runs code that YJIT has compiled */

static int frame(uint32_t i, struct runtime_frame *ret)
{
	uint32_t words = otp_walk_frame_words(&attached.walk);
	const uint64_t *at = (const void *)&walker.out[2 + i * words];
	const struct runtime_words w = {.address = *at & OTP_WALK_ADDRESS, .missing = (uint32_t)(*at >> 56),
					.count = words - 1, .word = at + 1, .index = i, .compiled = compiled,
					.nr_outer = walker.frames - 1 - i};

	ck_assert_uint_lt(i, walker.frames);
	*ret = (struct runtime_frame){0};
	return runtime_ruby.frame(&attached, &w, ret);
}

static int decode(const struct runtime_frame *f)
{
	memory_question(&memory);
	return runtime_ruby.decode(&attached, &memory, f, &function);
}

/* The frame has this name, and these flags. */
static void expect(uint32_t i, const char *name, uint32_t flags)
{
	struct runtime_frame f;

	ck_assert_int_eq(frame(i, &f), 0);
	ck_assert_uint_eq(f.flags, flags);
	ck_assert_int_eq(decode(&f), 0);
	ck_assert_str_eq(function.name, name);
}

static void attach_and_walk(void)
{
	ck_assert_int_eq(attach(), 0);
	walk();
	ck_assert_uint_eq(walker.end, OTP_WALK_END_DONE);
}

/* --- attach --- */

START_TEST(each_version_is_attached_by_its_threads)
{
	char text[16];

	ruby_init(versions[_i]);
	attach_and_walk();
	snprintf(text, sizeof(text), "%u.%u.5", versions[_i] / 100, versions[_i] % 100);
	ck_assert_str_eq(attached.version, text);
	ck_assert_uint_eq(walker.frames, 2);
	expect(0, "<main>", RUNTIME_ENTRY);
	ck_assert_str_eq(function.file, "cart.rb");
	ck_assert_uint_eq(function.start_line, 7);
	ck_assert_uint_eq(attached.param[RUBY_PARAM_SYMBOLS], WORLD + DATA + 0x20);
}
END_TEST

START_TEST(loops_are_the_function_with_a_handler_and_its_caller)
{
	ruby_init(versions[_i]);
	ck_assert_int_eq(attach(), 0);
	ck_assert_uint_eq(attached.nr_loops, 2);
	ck_assert_uint_eq(attached.loop[0], WORLD + CODE);
	ck_assert_uint_eq(attached.loop[1], WORLD + CALL);
}
END_TEST

START_TEST(stripped_build_is_attached_by_what_its_data_points_to)
{
	ruby_init(versions[_i]);
	file.symbol[1].st_shndx = SHN_UNDEF;
	attach_and_walk();
	expect(0, "<main>", RUNTIME_ENTRY);
}
END_TEST

START_TEST(symbol_of_the_ec_says_where_in_the_block_it_is)
{
	ruby_init(301);
	file_symbol("ruby_current_ec", 8, STT_TLS);
	ck_assert_int_eq(attach(), -EAGAIN);
	file.symbol[file.nr - 1].st_value = 16;
	ck_assert_int_eq(attach(), 0);
}
END_TEST

START_TEST(block_is_sought_among_all_where_no_relocation_names_it)
{
	ruby_init(304);
	file.rela.r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE);
	attach_and_walk();
	ck_assert_uint_eq(walker.frames, 2);
}
END_TEST

START_TEST(vector_of_one_word_a_block_is_that_of_musl)
{
	uint64_t vector, block = 0;

	ruby_init(303);
	memcpy(&vector, world + (POINTER + 8 - WORLD), 8);
	memcpy(&block, world + (vector + 3 * 16 - WORLD), 8);
	put64(vector + 3 * 16, 0);
	put64(vector + 3 * 8, block);
	attach_and_walk();
	ck_assert_uint_eq(walker.frames, 2);
}
END_TEST

START_TEST(unknown_version_is_refused_with_its_name)
{
	ruby_init(304);
	put(WORLD + VERSION, "9.1.0", 6);
	ck_assert_int_eq(attach(), -ENOTSUP);
	ck_assert_str_eq(why, "Ruby 9.1.0 is not known");
	put(WORLD + VERSION, "not a version", 14);
	ck_assert_int_eq(attach(), -ENOTSUP);
}
END_TEST

START_TEST(file_without_a_version_holds_no_ruby)
{
	ruby_init(304);
	file.symbol[0].st_shndx = SHN_UNDEF;
	ck_assert_int_eq(attach(), -ENOENT);
}
END_TEST

START_TEST(ruby_that_has_not_started_is_asked_again)
{
	ruby_init(versions[_i]);
	put64(WORLD + BSS + 0x10, 0);
	ck_assert_int_eq(attach(), -EAGAIN);
	put64(WORLD + BSS + 0x10, vm);
	put64(thread + layout->thread_ec, 0);
	ck_assert_int_eq(attach(), -EAGAIN);
	put64(thread + layout->thread_ec, ec);
	put64(ec + RUBY_EC_FRAME, stack + STACK_WORDS * 8 - layout->frame);
	ck_assert_int_eq(attach(), -EAGAIN);
}
END_TEST

/* --- frames and names --- */

static uint64_t cart, add, entry;

/* <main> calls Shop::Cart#add. */
static uint64_t call_add(void)
{
	cart = class("Shop::Cart");
	add = iseq(RUBY_ISEQ_METHOD, "add", 0);
	entry = method(cart, add, 0);
	return push(add, entry, 0, METHOD_FLAGS);
}

START_TEST(method_has_its_class_and_block_that_of_its_maker)
{
	uint64_t ep, each;

	ruby_init(versions[_i]);
	ep = call_add();
	each = method(class("Array"), 0, 300 << 4 | 1);
	push(0, each, 0, NATIVE_FLAGS);
	ep = push(iseq(2, "block in add", add), 0, ep | 1, BLOCK_FLAGS | RUBY_FRAME_FINISH);
	push(iseq(2, "block (2 levels) in add", add), 0, ep | 1, BLOCK_FLAGS);
	attach_and_walk();
	expect(0, "block (2 levels) in Shop::Cart#add", 0);
	expect(1, "block in Shop::Cart#add", RUNTIME_ENTRY);
	expect(2, "Array#each", RUNTIME_NATIVE);
	expect(3, "Shop::Cart#add", 0);
	expect(4, "<main>", RUNTIME_ENTRY);
}
END_TEST

START_TEST(singleton_method_has_the_class_that_it_belongs_to)
{
	uint64_t load;

	ruby_init(versions[_i]);
	cart = class("Shop::Cart");
	load = iseq(RUBY_ISEQ_METHOD, "load", 0);
	push(load, method(singleton(cart), load, 0), 0, METHOD_FLAGS);
	attach_and_walk();
	expect(0, "Shop::Cart.load", 0);
}
END_TEST

START_TEST(rescue_is_named_as_backtraces_of_the_version_do)
{
	struct runtime_frame f;
	uint64_t ep;

	ruby_init(versions[_i]);
	ep = call_add();
	push(iseq(RUBY_ISEQ_RESCUE, "rescue in add", add), 0, ep | 1, 0x78880001);
	attach_and_walk();
	expect(0, layout->version >= 304 ? "Shop::Cart#add" : "rescue in Shop::Cart#add", 0);
	ck_assert_int_eq(frame(1, &f), 0);
	ck_assert_uint_eq(f.flags, layout->version >= 304 ? RUNTIME_HIDDEN : 0);
}
END_TEST

START_TEST(block_whose_maker_has_returned_has_no_class)
{
	ruby_init(304);
	add = iseq(RUBY_ISEQ_METHOD, "add", 0);
	push(iseq(2, "block in add", add), 0, POINTER | 1, BLOCK_FLAGS);
	attach_and_walk();
	expect(0, "block in add", 0);
}
END_TEST

START_TEST(method_that_matched_a_regexp_keeps_its_class)
{
	uint64_t svar;

	ruby_init(301);
	call_add();
	svar = imemo(RUBY_IMEMO_SVAR, 40);
	put64(svar + 8, entry);
	push(add, svar, 0, METHOD_FLAGS);
	attach_and_walk();
	expect(0, "Shop::Cart#add", 0);
}
END_TEST

START_TEST(method_of_a_class_without_a_name_has_only_its_own)
{
	ruby_init(versions[_i]);
	add = iseq(RUBY_ISEQ_METHOD, "add", 0);
	push(add, method(class("#<Class:0x1>::Cart"), add, 0), 0, METHOD_FLAGS);
	attach_and_walk();
	expect(0, "add", 0);
}
END_TEST

START_TEST(operator_is_named_by_its_token)
{
	ruby_init(versions[_i]);
	push(0, method(class("Integer"), 0, '+'), 0, NATIVE_FLAGS);
	attach_and_walk();
	expect(0, "Integer#+", RUNTIME_NATIVE);
}
END_TEST

START_TEST(frame_of_the_stack_end_is_hidden_and_enters_nothing)
{
	struct runtime_frame f;

	ruby_init(301);
	attach_and_walk();
	ck_assert_int_eq(frame(1, &f), 0);
	ck_assert_uint_eq(f.key, 0);
	ck_assert_uint_eq(f.flags, RUNTIME_HIDDEN);
}
END_TEST

START_TEST(pc_outside_of_its_code_has_no_line)
{
	struct runtime_frame f;

	ruby_init(303);
	call_add();
	put64(frame_at, 12345);
	attach_and_walk();
	ck_assert_int_eq(frame(0, &f), 0);
	ck_assert_uint_eq(f.flags, RUNTIME_LINE);
	ck_assert_uint_eq(f.position, 0);
}
END_TEST

START_TEST(innermost_line_of_compiled_code_is_its_first)
{
	struct runtime_frame f;
	uint64_t pc;

	ruby_init(303);
	call_add();
	memcpy(&pc, world + (frame_at - WORLD), sizeof(pc));
	put64(frame_at, pc + 24);
	attach_and_walk();
	ck_assert_uint_eq(attached.compiled, RUNTIME_CALLED);
	ck_assert_int_eq(frame(0, &f), 0);
	ck_assert_uint_ne(f.position, 0);
	compiled = true;
	ck_assert_int_eq(frame(0, &f), 0);
	compiled = false;
	ck_assert_uint_eq(f.flags & RUNTIME_LINE, 0);
	ck_assert_uint_eq(f.position, 0);
}
END_TEST

START_TEST(words_of_no_frame_end_the_walk)
{
	uint64_t ep;
	struct runtime_frame f;

	ruby_init(303);
	ep = call_add();
	put64(ep, 0);
	attach_and_walk();
	ck_assert_int_eq(frame(0, &f), -EBADMSG);
	put64(frame_at + 32, 64);
	walk();
	ck_assert_int_eq(frame(0, &f), -EBADMSG);
}
END_TEST

/* --- objects that changed --- */

START_TEST(other_code_in_the_place_is_stale)
{
	uint64_t body;
	struct runtime_frame f;

	ruby_init(versions[_i]);
	call_add();
	attach_and_walk();
	ck_assert_int_eq(frame(0, &f), 0);
	memcpy(&body, world + (add + RUBY_ISEQ_BODY - WORLD), 8);
	put64(body + RUBY_BODY_LABEL, string("other"));
	ck_assert_int_eq(decode(&f), -ESTALE);
	put64(add, RUBY_T_STRING);
	ck_assert_int_eq(decode(&f), -ESTALE);
}
END_TEST

START_TEST(other_method_in_the_place_is_stale)
{
	struct runtime_frame f;

	ruby_init(versions[_i]);
	call_add();
	attach_and_walk();
	ck_assert_int_eq(frame(0, &f), 0);
	put64(entry + RUBY_ENTRY_DEFINITION, take(48));
	ck_assert_int_eq(decode(&f), -ESTALE);
}
END_TEST

START_TEST(other_native_function_in_the_place_is_stale)
{
	struct runtime_frame f;

	ruby_init(301);
	entry = method(class("Array"), 0, 300 << 4);
	push(0, entry, 0, NATIVE_FLAGS);
	attach_and_walk();
	ck_assert_int_eq(frame(0, &f), 0);
	put64(entry + RUBY_ENTRY_CLASS, class("Hash"));
	ck_assert_int_eq(decode(&f), -ESTALE);
	put64(entry, 0);
	ck_assert_int_eq(decode(&f), -ESTALE);
}
END_TEST

/* --- lines --- */

/* Rows at positions 0, 10, 60 and 600. */
static void put_lines(uint64_t code, const uint32_t *line)
{
	uint64_t body, rows = take(64), table = take(48 + 2 * 80);

	memcpy(&body, world + (code + RUBY_ISEQ_BODY - WORLD), 8);
	put32(body + RUBY_BODY_SIZE, 700);
	put64(body + layout->insns_info, rows);
	put32(body + layout->insns_info + 16, 4);
	put64(body + layout->insns_info + 24, table);
	for (int i = 0; i < 4; i++)
		put32(rows + (uint64_t)i * layout->insn, line[i]);
	for (uint32_t p = 0; p < 54; p++) {
		uint64_t part;

		memcpy(&part, world + (table + p / 9 * 8 - WORLD), 8);
		put64(table + p / 9 * 8, part | (p < 10 ? 1ULL : 2ULL) << (p % 9 * 7));
	}
	put64(table + 48 + 16, 1ULL << (60 - 54));
	put64(table + 48 + 80 + 16, 1ULL << (600 - 54 - 512));
}

static void expect_lines(const struct runtime_line *want, uint32_t n)
{
	struct runtime_frame f;

	attach_and_walk();
	ck_assert_int_eq(frame(0, &f), 0);
	ck_assert_int_eq(decode(&f), 0);
	ck_assert_uint_eq(function.nr_lines, n);
	ck_assert_mem_eq(function.lines, want, n * sizeof(*want));
}

START_TEST(lines_are_those_of_the_bit_vector)
{
	ruby_init(versions[_i]);
	call_add();
	put_lines(add, (const uint32_t[]){8, 9, 12, 11});
	expect_lines((const struct runtime_line[]){{0, 8}, {10, 9}, {60, 12}, {600, 11}}, 4);
}
END_TEST

START_TEST(code_that_the_compiler_added_has_the_line_before)
{
	ruby_init(304);
	call_add();
	put_lines(add, (const uint32_t[]){0, 9, 0, 11});
	expect_lines((const struct runtime_line[]){{0, 7}, {10, 9}, {600, 11}}, 3);
}
END_TEST

START_TEST(more_rows_than_instructions_are_refused)
{
	uint64_t body;
	struct runtime_frame f;

	ruby_init(304);
	call_add();
	attach_and_walk();
	ck_assert_int_eq(frame(0, &f), 0);
	memcpy(&body, world + (add + RUBY_ISEQ_BODY - WORLD), 8);
	put32(body + layout->insns_info + 16, 1u << 30);
	ck_assert_int_eq(decode(&f), -EBADMSG);
	put32(body + RUBY_BODY_SIZE, 1u << 31);
	ck_assert_int_eq(decode(&f), -EBADMSG);
}
END_TEST

/* --- hostile --- */

START_TEST(parents_in_a_circle_end)
{
	struct runtime_frame f;
	uint64_t body;

	ruby_init(304);
	call_add();
	add = iseq(RUBY_ISEQ_RESCUE, "rescue in add", 0);
	memcpy(&body, world + (add + RUBY_ISEQ_BODY - WORLD), 8);
	put64(body + layout->parent_iseq, add);
	push(add, 0, 0, METHOD_FLAGS);
	attach_and_walk();
	ck_assert_int_eq(frame(0, &f), 0);
	ck_assert_int_eq(decode(&f), -EBADMSG);
}
END_TEST

START_TEST(string_of_any_length_is_cut)
{
	struct runtime_frame f;
	uint64_t text, chars;

	ruby_init(303);
	chars = take(2048);
	memset(world + (chars - WORLD), 'x', 2048);
	add = iseq(2, "a", 0);
	text = string("long");
	put64(text, RUBY_T_STRING | RUBY_NOEMBED);
	put64(text + 16, UINT64_MAX / 2);
	put64(text + 24, chars);
	memcpy(&chars, world + (add + RUBY_ISEQ_BODY - WORLD), 8);
	put64(chars + RUBY_BODY_LABEL, text);
	push(add, 0, 0, BLOCK_FLAGS | RUBY_ENV_LOCAL);
	attach_and_walk();
	ck_assert_int_eq(frame(0, &f), 0);
	ck_assert_int_eq(decode(&f), 0);
	ck_assert_uint_eq(strlen(function.name), RUNTIME_NAME_MAX - 1);
}
END_TEST

START_TEST(shapes_in_a_circle_end)
{
	ruby_init(302);
	call_add();
	put64(shapes + nr_shapes * 32 + 8, 1);
	put64(shapes + nr_shapes * 32 + 24, (uint64_t)nr_shapes << 32 | 1);
	attach_and_walk();
	expect(0, "add", 0);
}
END_TEST

static void add_attach(Suite *s)
{
	TCase *t = tcase_create("attach");

	tcase_add_loop_test(t, each_version_is_attached_by_its_threads, 0, ARRAY_SIZE(versions));
	tcase_add_loop_test(t, loops_are_the_function_with_a_handler_and_its_caller, 0, ARRAY_SIZE(versions));
	tcase_add_loop_test(t, stripped_build_is_attached_by_what_its_data_points_to, 0, ARRAY_SIZE(versions));
	tcase_add_test(t, symbol_of_the_ec_says_where_in_the_block_it_is);
	tcase_add_test(t, block_is_sought_among_all_where_no_relocation_names_it);
	tcase_add_test(t, vector_of_one_word_a_block_is_that_of_musl);
	tcase_add_test(t, unknown_version_is_refused_with_its_name);
	tcase_add_test(t, file_without_a_version_holds_no_ruby);
	tcase_add_loop_test(t, ruby_that_has_not_started_is_asked_again, 0, ARRAY_SIZE(versions));
	suite_add_tcase(s, t);
}

static void add_frames(Suite *s)
{
	TCase *t = tcase_create("frames");

	tcase_add_loop_test(t, method_has_its_class_and_block_that_of_its_maker, 0, ARRAY_SIZE(versions));
	tcase_add_loop_test(t, singleton_method_has_the_class_that_it_belongs_to, 0, ARRAY_SIZE(versions));
	tcase_add_loop_test(t, rescue_is_named_as_backtraces_of_the_version_do, 0, ARRAY_SIZE(versions));
	tcase_add_test(t, block_whose_maker_has_returned_has_no_class);
	tcase_add_test(t, method_that_matched_a_regexp_keeps_its_class);
	tcase_add_loop_test(t, method_of_a_class_without_a_name_has_only_its_own, 0, ARRAY_SIZE(versions));
	tcase_add_loop_test(t, operator_is_named_by_its_token, 0, ARRAY_SIZE(versions));
	tcase_add_test(t, frame_of_the_stack_end_is_hidden_and_enters_nothing);
	tcase_add_test(t, pc_outside_of_its_code_has_no_line);
	tcase_add_test(t, innermost_line_of_compiled_code_is_its_first);
	tcase_add_test(t, words_of_no_frame_end_the_walk);
	suite_add_tcase(s, t);
}

static void add_functions(Suite *s)
{
	TCase *t = tcase_create("functions");

	tcase_add_loop_test(t, other_code_in_the_place_is_stale, 0, ARRAY_SIZE(versions));
	tcase_add_loop_test(t, other_method_in_the_place_is_stale, 0, ARRAY_SIZE(versions));
	tcase_add_test(t, other_native_function_in_the_place_is_stale);
	tcase_add_loop_test(t, lines_are_those_of_the_bit_vector, 0, ARRAY_SIZE(versions));
	tcase_add_test(t, code_that_the_compiler_added_has_the_line_before);
	tcase_add_test(t, more_rows_than_instructions_are_refused);
	tcase_add_test(t, parents_in_a_circle_end);
	tcase_add_test(t, string_of_any_length_is_cut);
	tcase_add_test(t, shapes_in_a_circle_end);
	suite_add_tcase(s, t);
}

Suite *runtime_ruby_suite(void)
{
	Suite *s = suite_create("runtime_ruby");

	add_attach(s);
	add_frames(s);
	add_functions(s);
	return s;
}
