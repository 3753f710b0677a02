// SPDX-License-Identifier: Apache-2.0
/* BEAM: made-up modules; where their tables are, names, lines, and steps along a process' stack. */
#include <check.h>

#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "tests/lib/beam_world.h"
#include "tests/lib/code_world.h"
#include "runtime/beam_flow.h"

Suite *runtime_beam_suite(void);

#define STACK (WORLD + 0x40000)

static struct runtime_attached attached;
static struct runtime_code_made made;
static struct runtime_function function;

static void setup(void)
{
	memset(world, 0, sizeof(world));
	memory_question(&memory);
	beam_world_make(&attached);
	ck_assert_int_eq(beam_world_find(&memory, &attached), 0);
	memset(&made, 0, sizeof(made));
}

static int code(uint64_t pc)
{
	memset(&made, 0, sizeof(made));
	memory_question(&memory);
	return beam_code(&attached, &memory, pc, &made);
}

static uint32_t line_at(uint64_t pc, bool caller)
{
	uint32_t node = runtime_code_node_at(&made.code, made.rows, pc, caller);

	return node == RUNTIME_NO_NODE ? 0 : made.nodes[node].position;
}

static int decode(void)
{
	memset(&function, 0, sizeof(function));
	memory_question(&memory);
	return beam_decode(&attached, &memory, &made.functions[0], &function);
}

START_TEST(tables_are_found_by_their_shape)
{
	const struct beam *b = beam_of(&attached);

	ck_assert_uint_eq(b->ranges, BW_RANGES);
	ck_assert_uint_eq(b->low, BW_MODULE(0));
	ck_assert_uint_eq(b->functions, 96);
	ck_assert_uint_eq(b->lines, 72);
	ck_assert_uint_eq(b->active, BW_ACTIVE);
	ck_assert_uint_eq(b->exits[0], BW_EXIT);
	ck_assert_uint_eq(b->exits[1], BW_EXIT_2);
}
END_TEST

/* The table's last words lie in the second piece that is read of a file's data. */
START_TEST(tables_are_found_across_pieces)
{
	struct beam b = *beam_of(&attached);
	const uint64_t at = WORLD + 0x50000;

	memory_question(&memory);
	memcpy(&world[at - WORLD], &world[BW_RANGES - WORLD], 96);
	ck_assert_int_eq(beam_find_tables(&memory, at + 0x50 - 0x10000, at + 0x1000, &b), 0);
	ck_assert_uint_eq(b.ranges, at);
}
END_TEST

START_TEST(shared_code_without_exits_is_not_that_of_a_compiler)
{
	struct beam b = *beam_of(&attached);

	memory_question(&memory);
	put64(BW_SHARED + 0x80 + 24, BW_TERM(3));
	ck_assert_int_eq(beam_find_shared(&memory, &b), -ENOENT);
}
END_TEST

/* Modules of areas that were mapped later lie lower, with room before each, or none. */
START_TEST(shared_code_is_beneath_the_module_that_was_loaded_first)
{
	struct beam b = *beam_of(&attached);

	for (uint32_t index = 0; index < 3; index++)
		put64(BW_RANGES + 32 * index + 8, 4);
	for (uint32_t i = 0; i < 2; i++) {
		put64(BW_MODULES + 32 + 16 * i, BW_MODULE(i));
		put64(BW_MODULES + 40 + 16 * i, BW_MODULE(i) + 0x800);
		put64(BW_MODULES + 16 * i, WORLD + 0x14000 + 0x2000 * i);
		put64(BW_MODULES + 16 * i + 8, WORLD + 0x14000 + 0x2000 * i + 0x800);
	}
	memory_question(&memory);
	b.low = 0;
	ck_assert_int_eq(beam_find_shared(&memory, &b), 0);
	ck_assert_uint_eq(b.low, BW_MODULE(0));
	put64(BW_MODULES + 24, BW_MODULE(0) - 1016);
	ck_assert_int_eq(beam_find_shared(&memory, &b), -ENOENT);
}
END_TEST

#define PURGED 200u

/* Modules of later areas that are gone: before each is a gap. */
static void put_purged(void)
{
	const uint64_t below = WORLD - (1u << 20);

	for (uint32_t index = 0; index < 3; index++)
		put64(BW_RANGES + 32 * index + 8, PURGED + 2);
	for (uint32_t i = 0; i < PURGED + 2; i++) {
		put64(BW_MODULES + 16 * i, i < PURGED ? below + 0x800 * i : BW_MODULE(i - PURGED));
		put64(BW_MODULES + 16 * i + 8, i < PURGED ? below + 0x800 * i : BW_MODULE(i - PURGED) + 0x800);
	}
}

static void put_call(uint64_t at, uint64_t to)
{
	const int32_t relative = (int32_t)(to - at - 5);
	const uint8_t call = 0xe8;

	put(at, &call, 1);
	put(at + 1, &relative, sizeof(relative));
}

START_TEST(among_many_gaps_shared_code_is_what_modules_call)
{
	struct beam b = *beam_of(&attached);

	put_purged();
	memory_question(&memory);
	b.low = 0;
	ck_assert_int_eq(beam_find_shared(&memory, &b), -ENOENT);
	put_call(BW_INFO(1, 0) + 0x30, BW_INFO(1, 1) + 0x30);
	put_call(BW_INFO(1, 0) + 0x40, BW_MODULE(0) + 0x100);
	put_call(BW_INFO(1, 0) + 0x50, WORLD - 0x10000000);
	put_call(BW_INFO(1, 0) + 0x60, BW_SHARED - 0x10000);
	memory_question(&memory);
	ck_assert_int_eq(beam_find_shared(&memory, &b), -ENOENT);
	put_call(BW_INFO(1, 1) + 0x30, BW_SHARED + 0x300);
	memory_question(&memory);
	ck_assert_int_eq(beam_find_shared(&memory, &b), 0);
	ck_assert_uint_eq(b.low, BW_MODULE(0));
	ck_assert_uint_eq(b.exits[1], BW_EXIT_2);
}
END_TEST

static void put_enters(uint32_t n)
{
	static const uint8_t enter[2][4] = {{0x55, 0x48, 0x89, 0xe5}, {0x55, 0x48, 0x8b, 0xec}};

	for (uint32_t i = 0; i < n; i++)
		put(BW_SHARED + 0x400 + 5 * i, enter[i % 2], sizeof(enter[0]));
}

START_TEST(shared_code_tells_of_frame_pointers)
{
	struct beam b = *beam_of(&attached);

	ck_assert(!b.framed);
	memory_question(&memory);
	put_enters(15);
	ck_assert_int_eq(beam_find_shared(&memory, &b), 0);
	ck_assert_uint_eq(b.framed, 0);
	put_enters(16);
	ck_assert_int_eq(beam_find_shared(&memory, &b), 0);
	ck_assert_uint_eq(b.framed, 1);
}
END_TEST

/* What is loaded into another register, or lies elsewhere, is not the index. */
START_TEST(the_index_in_force_is_the_one_that_code_loads)
{
	struct beam b = *beam_of(&attached);
	static const uint8_t other[] = {0x44, 0x8b, 0x2f};

	memory_question(&memory);
	b.active = 0;
	put(BW_SHARED + 0x203 + 15, other, sizeof(other));
	ck_assert_int_eq(beam_find_shared(&memory, &b), -ENOENT);
	beam_put_shared();
	put64(BW_SHARED + 0x205, BW_RANGES + 0x100000);
	ck_assert_int_eq(beam_find_shared(&memory, &b), -ENOENT);
	beam_put_shared();
	ck_assert_int_eq(beam_find_shared(&memory, &b), 0);
	ck_assert_uint_eq(b.active, BW_ACTIVE);
}
END_TEST

/* A pointer to the text, at any address, or a term: a binary with its header, its size in bits and the text. */
START_TEST(atoms_have_their_text_in_either_form)
{
	struct beam *b = (void *)attached.param;
	char text[BEAM_ATOM_MAX];

	put(BW_ATOM(0) + 82, "false", 5);
	put64(BW_ATOM(0) + 32, BW_ATOM(0) + 82);
	ck_assert_int_eq(beam_find_text(&memory, b), 0);
	ck_assert_int_eq(beam_atom(b, &memory, BW_TERM(0), text), 5);
	ck_assert_str_eq(text, "false");
	put64(BW_ATOM(0) + 32, (BW_ATOM(0) + 64) | 2);
	put(BW_ATOM(0) + 80, "false", 5);
	ck_assert_int_eq(beam_find_text(&memory, b), 0);
	ck_assert_int_eq(beam_atom(b, &memory, BW_TERM(0), text), 5);
	put64(BW_ATOM(0) + 32, BW_ATOM(1) + 64);
	ck_assert_int_eq(beam_find_text(&memory, b), -EAGAIN);
}
END_TEST

START_TEST(tables_that_are_not_there_yet_are_sought_again)
{
	struct beam b = {0};

	put64(BW_RANGES + 8, 0);
	ck_assert_int_eq(beam_find_tables(&memory, BW_DATA, BW_DATA_END, &b), -EAGAIN);
	ck_assert_int_eq(beam_find_tables(&memory, BW_DATA, BW_DATA + 8, &b), -EAGAIN);
	ck_assert_int_eq(beam_find_tables(&memory, BW_DATA + 5, BW_DATA, &b), -EAGAIN);
}
END_TEST

/* A module that was purged is in the table, without bytes. What has none at all is no table. */
START_TEST(tables_have_modules_that_are_gone)
{
	struct beam b = {0};

	put64(BW_MODULES + 16 + 8, BW_MODULE(1));
	ck_assert_int_eq(beam_find_tables(&memory, BW_DATA, BW_DATA_END, &b), 0);
	ck_assert_uint_eq(b.ranges, BW_RANGES);
	put64(BW_MODULES + 8, BW_MODULE(0));
	put64(BW_MODULES + 16, BW_MODULE(0));
	put64(BW_MODULES + 24, BW_MODULE(0));
	ck_assert_int_eq(beam_find_tables(&memory, BW_DATA, BW_DATA_END, &b), -EAGAIN);
}
END_TEST

START_TEST(a_function_has_name_file_and_lines)
{
	ck_assert_int_eq(code(BW_INFO(0, 0) + 0x30), 0);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	ck_assert_uint_eq(made.code.start, BW_INFO(0, 0));
	ck_assert_uint_eq(made.code.end, BW_INFO(0, 1));
	ck_assert_uint_eq(line_at(BW_INFO(0, 0) + 0x30, false), 10);
	ck_assert_uint_eq(line_at(BW_INFO(0, 0) + 0x40, false), 12);
	/* A return address is that of the instruction before. */
	ck_assert_uint_eq(line_at(BW_INFO(0, 0) + 0x40, true), 10);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.name, "lists:map/0");
	ck_assert_str_eq(function.file, "lists.erl");
	ck_assert_uint_eq(function.start_line, 10);
}
END_TEST

START_TEST(a_line_may_be_of_another_file)
{
	ck_assert_int_eq(code(BW_INFO(0, 1) + 0x30), 0);
	ck_assert_uint_eq(line_at(BW_INFO(0, 1) + 0x30, false), 20);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.name, "lists:'-do it/1-'/1");
	ck_assert_str_eq(function.file, "src/my.ex");
}
END_TEST

/* Each of its 16-byte pieces has a line of its own. */
START_TEST(lines_that_do_not_fit_are_unknown)
{
	const uint64_t module = WORLD + 0x80000, info = module + 0x100, places = WORLD + 0x60000, locations = WORLD + 0x70000;
	const uint32_t n = 4000;

	put64(BW_MODULES + 16, module);
	put64(BW_MODULES + 24, module + 0x20000);
	put64(module, 1);
	put64(module + 72, BW_TABLE(0));
	put64(module + 96, info);
	put64(module + 104, info + 16 * (n + 1));
	put64(info + 16, BW_TERM(1));
	put64(info + 24, BW_TERM(3));
	put64(BW_TABLE(0) + 16, locations);
	put64(BW_TABLE(0) + 24, places);
	put64(BW_TABLE(0) + 32, places + 8 * n);
	for (uint32_t i = 0; i < n; i++) {
		put64(places + 8 * i, info + 16 * (i + 1));
		put32(locations + 4 * i, i + 1);
	}
	ck_assert_int_eq(code(info + 0x100), 0);
	ck_assert_uint_eq(line_at(info + 16 * 100, false), 100);
	ck_assert_uint_eq(line_at(info + 16 * n, false), 0);
}
END_TEST

START_TEST(a_module_of_elixir_is_written_as_there)
{
	ck_assert_int_eq(code(BW_INFO(1, 0) + 0x30), 0);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.name, "My.Module.map/0");
}
END_TEST

static const char *name_of(const char *module, const char *of, uint32_t arity)
{
	static char name[RUNTIME_NAME_MAX];

	beam_write(module, of, arity, name);
	return name;
}

START_TEST(names_are_written_as_the_language_does)
{
	ck_assert_str_eq(name_of("lists", "map", 2), "lists:map/2");
	ck_assert_str_eq(name_of("lists", "-do it/1-", 1), "lists:'-do it/1-'/1");
	ck_assert_str_eq(name_of("lists", "-map/2-fun-0-", 1), "lists:'-map/2-fun-0-'/1");
	ck_assert_str_eq(name_of("Elixir.Enum", "map", 2), "Enum.map/2");
	ck_assert_str_eq(name_of("Elixir.Enum", "-map/2-fun-0-", 1), "anonymous fn/1 in Enum.map/2");
	ck_assert_str_eq(name_of("Elixir.A.B", "-each/2-fun-13-", 3), "anonymous fn/3 in A.B.each/2");
	ck_assert_str_eq(name_of("Elixir.A", "-run/0-fun-1-", 0), "anonymous fn/0 in A.run/0");
	ck_assert_str_eq(name_of("Elixir.A", "-map/2-lists^map/1-0-", 2), "A.\"-map/2-lists^map/1-0-\"/2");
	ck_assert_str_eq(name_of("Elixir.A", "-/2-fun-0-", 1), "A.\"-/2-fun-0-\"/1");
	ck_assert_str_eq(name_of("Elixir.A", "-fun-0-", 1), "A.\"-fun-0-\"/1");
	ck_assert_str_eq(name_of("Elixir.A", "valid?", 1), "A.valid?/1");
	ck_assert_str_eq(name_of("Elixir.A", "+", 2), "A.+/2");
	ck_assert_str_eq(name_of("Elixir.A", "__info__", 1), "A.__info__/1");
	ck_assert_str_eq(name_of("Elixir.A", "two words", 0), "A.\"two words\"/0");
}
END_TEST

/* The purger's count of reductions lies behind the words of the process. */
START_TEST(a_region_is_of_the_epoch_in_which_it_was_read)
{
	struct beam *b = (void *)attached.param;
	const uint64_t root[] = {STACK, 41, STACK}, unread[] = {STACK, OTP_WALK_UNREAD, STACK};
	uint64_t known[RUNTIME_CODE_IDENTITY];

	ck_assert_uint_eq(beam_epoch(&attached, root, 3), 0);
	b->epoch_at = WORLD + 0x60000;
	b->epoch = 7;
	put64(b->epoch_at, 41);
	ck_assert_int_eq(code(BW_INFO(0, 0) + 0x30), 0);
	ck_assert_uint_eq(made.code.epoch, beam_epoch(&attached, root, 3));
	ck_assert_uint_eq(beam_epoch(&attached, root, 0), 7);
	ck_assert_uint_eq(beam_epoch(&attached, root, 1), 0);
	ck_assert_uint_eq(beam_epoch(&attached, unread, 3), 0);
	ck_assert_uint_eq(made.code.flags, RUNTIME_CODE_RECURS);
	memcpy(known, made.code.identity, sizeof(known));
	/* What was known in a former epoch is described anew. */
	for (uint64_t of = 41; of <= 42; of++) {
		memcpy(made.known, known, sizeof(known));
		made.known_epoch = of;
		memory_question(&memory);
		ck_assert_int_eq(beam_code(&attached, &memory, BW_INFO(0, 0) + 0x30, &made), of == 42 ? -EALREADY : 0);
	}
}
END_TEST

/* Atoms stay: of a function that is gone, all but the text of its file's name is known. */
START_TEST(a_name_holds_when_the_function_is_gone)
{
	ck_assert_int_eq(code(BW_INFO(0, 1) + 0x30), 0);
	memset(&world[BW_INFO(0, 1) - WORLD], 0, BEAM_INFO_BYTES);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.name, "lists:'-do it/1-'/1");
	ck_assert_str_eq(function.file, "");
}
END_TEST

/* OTP 23 has an atom in place of a string. */
START_TEST(the_name_of_a_file_may_be_an_atom)
{
	put64(BW_FILES(0), BW_TERM(1));
	ck_assert_int_eq(code(BW_INFO(0, 1) + 0x30), 0);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.file, "lists");
}
END_TEST

START_TEST(another_function_in_its_place_is_told)
{
	uint64_t known[RUNTIME_CODE_IDENTITY];

	ck_assert_int_eq(code(BW_INFO(0, 0) + 0x30), 0);
	memcpy(known, made.code.identity, sizeof(known));
	/* The same name, in a module that was loaded anew. */
	put64(BW_MD5(0), 0x9999);
	ck_assert_int_eq(code(BW_INFO(0, 0) + 0x30), 0);
	ck_assert_int_ne(memcmp(known, made.code.identity, sizeof(known)), 0);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	memory_question(&memory);
	ck_assert_int_eq(beam_code(&attached, &memory, BW_INFO(0, 0) + 0x30, &made), -EALREADY);
}
END_TEST

START_TEST(code_of_no_module_is_shared_or_none)
{
	ck_assert_int_eq(code(BW_MODULE(0) - 0x100), 0);
	ck_assert_uint_eq(made.code.kind, BEAM_SHARED);
	ck_assert_uint_eq(made.code.nr_functions, 0);
	ck_assert_int_eq(code(BW_MODULE(1) + 0x900), -ENOENT);
	/* A header is no function. */
	ck_assert_int_eq(code(BW_MODULE(0) + 8), -ENOENT);
}
END_TEST

START_TEST(a_frame_ends_at_the_next_return_address)
{
	uint64_t reg[OTP_REGS_MAX] = {[6] = 1, [7] = STACK};
	struct runtime_place at = {.pc = BW_INFO(0, 0) + 0x30, .exact = true, .valid = 1 << 7, .reg = reg, .load = word_of_world};
	struct runtime_step step = {0};

	ck_assert_int_eq(code(at.pc), 0);
	put64(STACK, BW_TERM(1));
	put64(STACK + 8, 0x3b);
	put64(STACK + 16, BW_INFO(0, 1) + 0x50);
	put64(STACK + 24, 15);
	put64(STACK + 32, BW_EXIT);
	ck_assert_int_eq(runtime_beam.step(&attached, &made.code, &at, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
	ck_assert_uint_eq(step.sp, STACK + 24);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_FP | RUNTIME_STEP_DATA);
	reg[6] = step.fp;
	reg[7] = step.sp;
	at = (struct runtime_place){.pc = step.pc, .valid = 3 << 6, .reg = reg, .load = word_of_world};
	step = (struct runtime_step){0};
	ck_assert_int_eq(runtime_beam.step(&attached, &made.code, &at, &step), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_ROOT);
}
END_TEST

static void set_framed(void)
{
	((struct beam *)(void *)attached.param)->framed = 1;
}

/* lea -64(%rbx),%rsp */
static const uint8_t enter[] = {0x48, 0x8d, 0x63, 0xc0};

/* What has taken the thread's own stack: the registers are those of that. */
static int step_from_native_at(uint64_t offset, bool exact, uint64_t left_sp, uint64_t rbp, struct runtime_step *ret)
{
	const uint64_t reg[OTP_REGS_MAX] = {[6] = rbp, [7] = WORLD + 0x50000};
	const struct runtime_place at = {.pc = BW_INFO(0, 0) + offset, .exact = exact, .valid = 3 << 6, .reg = reg,
					 .load = word_of_world, .left_sp = left_sp};

	*ret = (struct runtime_step){0};
	ck_assert_int_eq(code(at.pc), 0);
	return runtime_beam.step(&attached, &made.code, &at, ret);
}

/* A caller of C code. */
static int step_from_native(uint64_t left_sp, uint64_t rbp, struct runtime_step *ret)
{
	return step_from_native_at(0x46, false, left_sp, rbp, ret);
}

START_TEST(a_caller_of_c_code_goes_on_in_the_process_stack)
{
	static const uint8_t fetch[] = {0x85, 0xc0, 0x49, 0x8b, 0x65, 0x58};
	struct runtime_step step;

	put64(STACK, 15);
	put64(STACK + 8, BW_INFO(0, 1) + 0x50);
	put64(STACK + 16, 15);
	put64(STACK + 24, BW_INFO(0, 1) + 0x60);
	/* The pointer is in rbp, unless the code behind the call fetches it from the process. */
	ck_assert_int_eq(step_from_native(STACK, STACK + 16, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x60);
	put(BW_INFO(0, 0) + 0x46, fetch, sizeof(fetch));
	ck_assert_int_eq(step_from_native(STACK, STACK + 16, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
	ck_assert_int_eq(step_from_native(0, STACK, &step), -ENOENT);
}
END_TEST

START_TEST(a_stack_pointer_that_is_not_in_the_copy_is_none)
{
	struct runtime_step step;

	put64(STACK + 8, BW_INFO(0, 1) + 0x50);
	ck_assert_int_eq(step_from_native(STACK + BEAM_GROWN + 16, STACK + 8, &step), -ENOENT);
	ck_assert_int_eq(step_from_native(STACK, STACK + OTP_WALK_BYTES, &step), -ENOENT);
	/* The process has not been told of its last frames. */
	ck_assert_int_eq(step_from_native(STACK + BEAM_GROWN + 8, STACK + 8, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
}
END_TEST

START_TEST(a_scheduler_without_a_process_is_a_root)
{
	const uint64_t reg[OTP_REGS_MAX] = {0};
	const struct runtime_place at = {.pc = BW_MODULE(0) - 0x100, .reg = reg, .load = word_of_world, .left_none = true};
	struct runtime_step step = {0};

	ck_assert_int_eq(code(at.pc), 0);
	ck_assert_int_eq(runtime_beam.step(&attached, &made.code, &at, &step), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_ROOT);
}
END_TEST

/* Of a call in shared code that returns to pc: the process' stack was copied. */
static int step_from_shared_at(uint64_t pc, uint64_t rbp, struct runtime_step *ret)
{
	const uint64_t reg[OTP_REGS_MAX] = {[6] = rbp, [7] = WORLD + 0x50000};
	const struct runtime_place at = {.pc = pc, .valid = 3 << 6, .reg = reg, .load = word_of_world, .left_sp = STACK};

	*ret = (struct runtime_step){0};
	ck_assert_int_eq(code(pc - 1), 0);
	return runtime_beam.step(&attached, &made.code, &at, ret);
}

/* rbp is none. */
static int step_from_shared(uint64_t pc, struct runtime_step *ret)
{
	return step_from_shared_at(pc, 0, ret);
}

START_TEST(the_stack_pointer_may_be_fetched_behind_the_index_in_force)
{
	static const uint8_t fetch[] = {0x49, 0x8b, 0x65, 0x58};
	const uint64_t pc = BW_SHARED + 0x303;
	struct runtime_step step;

	put64(STACK, BW_EXIT);
	memcpy(&world[pc - WORLD], &world[BW_SHARED + 0x203 - WORLD], 18);
	put(pc + 22, fetch, sizeof(fetch));
	ck_assert_int_eq(step_from_shared(pc, &step), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_ROOT);
	/* Behind where the thread's own stack is taken again, it is another call's. */
	put(pc + 18, enter, sizeof(enter));
	ck_assert_int_eq(step_from_shared(pc, &step), -ENOENT);
}
END_TEST

/* A binary is made by a call for each of its parts, the process' stack is left once for all of them. */
static const struct { uint64_t at; bool fetched; } parts[] = {
	{0x46, true}, {0x50, true}, {0x6e, true}, {0x43, false}, {0x3e, false}, {0x72, false},
};

START_TEST(several_calls_may_have_one_way_back)
{
	static const uint8_t fetch[] = {0x49, 0x8b, 0x65, 0x58};
	struct runtime_step step;

	put64(STACK, BW_INFO(0, 1) + 0x50);
	put64(STACK + 16, BW_INFO(0, 1) + 0x60);
	put(BW_INFO(0, 0) + 0x41, enter, sizeof(enter));
	put(BW_INFO(0, 0) + 0x6e, fetch, sizeof(fetch));
	ck_assert_int_eq(step_from_native_at(parts[_i].at, false, STACK, STACK + 16, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + (parts[_i].fetched ? 0x50 : 0x60));
	/* Between two calls. */
	ck_assert_int_eq(step_from_native_at(parts[_i].at, true, STACK, STACK + 16, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + (parts[_i].fetched ? 0x50 : 0x60));
	ck_assert_int_eq(step_from_native_at(parts[_i].at, true, 0, STACK + 16, &step), -ENOENT);
}
END_TEST

/* Of code from WORLD + 0x60000 on; a fetch at its end, which may need several marks. */
START_TEST(a_way_back_may_be_far_from_the_call)
{
	static const uint8_t fetch[] = {0x49, 0x8b, 0x65, 0x58};
	struct runtime_code c = {.start = WORLD + 0x60000, .end = WORLD + 0x64000};

	put(c.start + 0x1000, enter, sizeof(enter));
	put(c.start + 0x3ffc, fetch, sizeof(fetch));
	memory_question(&memory);
	ck_assert_int_eq(beam_fetches(beam_of(&attached), &memory, &c), 0);
	for (uint64_t at = 0; at < 0x4000; at++)
		ck_assert_int_eq(beam_is_fetched(&c, c.start + at), at >= 0x1004 - 1 && at <= 0x3ffc);
}
END_TEST

/* The call is the last instruction of a piece. */
START_TEST(the_stack_pointer_may_be_fetched_in_the_next_piece)
{
	static const uint8_t fetch[] = {0x49, 0x8b, 0x65, 0x58};
	struct runtime_step step;

	put64(STACK, BW_EXIT);
	put(BW_SHARED + 0x340, fetch, sizeof(fetch));
	ck_assert_int_eq(step_from_shared(BW_SHARED + 0x340, &step), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_ROOT);
	ck_assert_int_eq(step_from_shared(BW_SHARED + 0x33e, &step), 0);
	ck_assert_int_eq(step_from_shared(BW_SHARED + 0x345, &step), -ENOENT);
}
END_TEST

/* A call whose part of an instruction ends at once, by either encoding of mov %rbp,%rsp, and the next one begins. */
START_TEST(what_is_fetched_behind_the_end_of_a_fragment_is_of_another_call)
{
	static const uint8_t leave[2][8] = {{0x48, 0x8b, 0xe5, 0xc3, 0x49, 0x8b, 0x65, 0x58},
					    {0x48, 0x89, 0xec, 0xc3, 0x49, 0x8b, 0x65, 0x58}};
	const uint64_t pc = BW_SHARED + 0x348;
	struct runtime_step step;

	put64(STACK, BW_INFO(0, 1) + 0x50);
	put64(STACK + 8, BW_INFO(0, 0) + 0x50);
	put(pc, leave[_i], sizeof(leave[_i]));
	ck_assert_int_eq(step_from_shared(pc, &step), -ENOENT);
	ck_assert_int_eq(step_from_shared_at(pc, STACK + 8, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 0) + 0x50);
	/* A call that returns behind it is the fetch's own. */
	ck_assert_int_eq(step_from_shared(pc + 4, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
}
END_TEST

START_TEST(the_caller_of_a_fragment_need_not_have_the_tag_of_one)
{
	const uint64_t pc = BW_SHARED + 0x348;
	struct runtime_step step;

	put64(STACK, BW_INFO(0, 1) + 0x53);
	put64(STACK + 8, BW_INFO(0, 0) + 0x50);
	ck_assert_int_eq(step_from_shared_at(pc, STACK, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x53);
	ck_assert_uint_eq(step.sp, STACK + 8);
	/* Not a number, nor further on, nor that of a function. */
	put64(STACK, ~(uint64_t)0);
	ck_assert_int_eq(step_from_shared_at(pc, STACK, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 0) + 0x50);
	put64(STACK + 8, BW_INFO(0, 1) + 0x53);
	put64(STACK + 16, BW_INFO(0, 0) + 0x60);
	ck_assert_int_eq(step_from_shared_at(pc, STACK, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 0) + 0x60);
	ck_assert_int_eq(step_from_native(STACK, STACK + 8, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 0) + 0x60);
}
END_TEST

/* Its words are all written; not so where a part of an instruction was called. */
START_TEST(a_caller_of_a_function_is_left_where_its_code_is_not_known)
{
	const uint64_t reg[OTP_REGS_MAX] = {[6] = STACK, [7] = STACK};
	const struct runtime_place at = {.pc = 0x1234, .valid = 3 << 6, .reg = reg, .load = word_of_world};
	static const uint8_t fetch[] = {0x49, 0x8b, 0x65, 0x58};
	const struct runtime_code unknown = {0};
	struct runtime_step step = {0};

	put64(STACK, 15);
	put64(STACK + 8, BW_INFO(0, 1) + 0x50);
	ck_assert_int_eq(runtime_beam.step(&attached, &unknown, &at, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_FP | RUNTIME_STEP_DATA);
	ck_assert_int_eq(step_from_shared_at(BW_SHARED + 0x348, STACK, &step), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_FP);
	/* C code that may look at the stack. */
	put(BW_SHARED + 0x348, fetch, sizeof(fetch));
	ck_assert_int_eq(step_from_shared_at(BW_SHARED + 0x348, 0, &step), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_FP | RUNTIME_STEP_DATA);
	set_framed();
	ck_assert_int_eq(step_from_shared_at(BW_SHARED + 0x348, 0, &step), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_FP);
}
END_TEST

/* From C code that a dirty scheduler has called. */
static int step_from_dirty(bool exact, uint64_t left_sp, struct runtime_step *ret)
{
	const uint64_t reg[OTP_REGS_MAX] = {[6] = STACK + 8, [7] = WORLD + 0x50000};
	const struct runtime_place at = {.pc = BW_DATA + 0x40, .exact = exact, .valid = 3 << 6, .reg = reg, .load = word_of_world,
					 .left_sp = left_sp, .left_none = !left_sp};
	struct beam *b = (void *)attached.param;

	b->dirty = BW_DATA;
	b->dirty_end = BW_DATA + 0x80;
	*ret = (struct runtime_step){0};
	ck_assert_int_eq(code(at.pc - 1), 0);
	ck_assert_uint_eq(made.code.kind, BEAM_DIRTY);
	return runtime_beam.step(&attached, &made.code, &at, ret);
}

START_TEST(a_dirty_scheduler_runs_for_a_process)
{
	struct runtime_step step;

	put64(STACK, BW_INFO(0, 1) + 0x50);
	put64(STACK + 8, BW_INFO(0, 1) + 0x60);
	ck_assert_int_eq(step_from_dirty(false, STACK, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
	ck_assert_uint_eq(step.sp, STACK + 8);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_FP | RUNTIME_STEP_DATA);
	ck_assert_int_eq(step_from_dirty(true, STACK, &step), -ENOENT);
	ck_assert_int_eq(step_from_dirty(false, 0, &step), -ENOENT);
	/* It waits, in a function that has a frame. */
	put64(STACK, BW_TERM(1));
	ck_assert_int_eq(step_from_dirty(false, STACK, &step), -ENOENT);
	put64(STACK, BW_EXIT);
	ck_assert_int_eq(step_from_dirty(false, STACK, &step), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_ROOT);
	/* With frame pointers, one lies beneath each return address. */
	set_framed();
	put64(STACK, STACK + 32);
	ck_assert_int_eq(step_from_dirty(false, STACK, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x60);
	ck_assert_int_eq(code(BW_DATA + 0x80), 0);
	ck_assert_uint_eq(made.code.kind, BEAM_SHARED);
}
END_TEST

/* Functions to which traced ones return, one behind the other, and another one behind them. */
static void put_traces(void)
{
	static const char *const names[] = {"return_trace", "return_to_trace", "call_trace_return", "run_process"};
	struct beam *b = (void *)attached.param;

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		beam_put_atom(13 + i, names[i]);
		put64(BW_SHARED + 0x400 + 0x80 * i + 16, BW_TERM(5));
		put64(BW_SHARED + 0x400 + 0x80 * i + 24, BW_TERM(13 + i));
	}
	memory_question(&memory);
	ck_assert_int_eq(beam_find_shared(&memory, b), 0);
}
#define TRACE(i) (BW_SHARED + 0x400 + 0x80 * (i) + BEAM_INFO_BYTES)

static int step_again(uint64_t pc, bool exact, struct runtime_step *ret)
{
	const uint64_t reg[OTP_REGS_MAX] = {[6] = STACK, [7] = STACK};
	const struct runtime_place at = {.pc = pc, .exact = exact, .valid = 3 << 6, .reg = reg, .load = word_of_world};

	*ret = (struct runtime_step){0};
	return runtime_beam.step(&attached, &made.code, &at, ret);
}

static int step_from_trace(uint64_t pc, bool exact, struct runtime_step *ret)
{
	ck_assert_int_eq(code(pc - 1), 0);
	return step_again(pc, exact, ret);
}

static const struct { uint64_t at; bool exact; int word; } traces[] = { /* word: -1: unknown */
	{TRACE(0), false, 2}, {TRACE(0), true, 2}, {TRACE(0) + 8, true, -1}, {TRACE(0) + 8, false, 2}, {TRACE(1), false, 0},
	{TRACE(2), false, 2}, {TRACE(2) + 0x57, false, 2}, {TRACE(2) + 0x58, false, 0}, {TRACE(3), false, 0}, {TRACE(3), true, 0},
};

/* The code of the function that was traced lies behind where that returns to, then what looks like a pointer nearby. */
START_TEST(a_traced_function_is_not_its_own_caller)
{
	struct runtime_step step, again = {0};

	put_traces();
	put64(STACK, BW_INFO(0, 1) + 0x50);
	put64(STACK + 8, BW_INFO(0, 1) + 2);
	put64(STACK + 16, BW_INFO(1, 1) + 0x50);
	ck_assert_int_eq(step_from_trace(traces[_i].at, traces[_i].exact, &step), traces[_i].word < 0 ? -ENOENT : 0);
	if (traces[_i].word >= 0) {
		ck_assert_uint_eq(step.pc, traces[_i].word ? BW_INFO(1, 1) + 0x50 : BW_INFO(0, 1) + 0x50);
		ck_assert_uint_eq(step.sp, STACK + 8 * (uint64_t)traces[_i].word + 8);
	}
	memset(&made.code, 0, sizeof(made.code)); /* that is not known yet */
	if (traces[_i].word >= 0)
		ck_assert_int_eq(step_again(traces[_i].at, traces[_i].exact, &again), 0);
	ck_assert_uint_eq(again.pc, step.pc);
	/* What has no such word may have a term at its stack pointer. */
	put64(STACK, BW_INFO(0, 1) + 2);
	put64(STACK + 8, BW_INFO(0, 0) + 0x50);
	ck_assert_int_eq(step_from_trace(TRACE(1), false, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 0) + 0x50);
}
END_TEST

START_TEST(the_choice_of_a_process_is_a_root)
{
	static const uint8_t choice[] = {0x49, 0x89, 0xc5};
	struct runtime_step step;

	put(BW_SHARED + 0x340, choice, sizeof(choice));
	ck_assert_int_eq(step_from_shared(BW_SHARED + 0x340, &step), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_ROOT);
	ck_assert_int_eq(step_from_shared(BW_SHARED + 0x33c, &step), -ENOENT);
}
END_TEST

START_TEST(a_function_with_too_many_ways_back_is_left_by_none)
{
	static const uint8_t fetch[] = {0x49, 0x8b, 0x65, 0x58};
	struct runtime_step step;

	for (uint32_t i = 0; i < BEAM_MARKS + 2; i++)
		put(BW_INFO(0, 0) + 0x50 + 4 * i, fetch, sizeof(fetch));
	ck_assert_int_eq(step_from_native(STACK, STACK, &step), -ENOENT);
}
END_TEST

START_TEST(a_stack_that_was_not_copied_has_no_caller)
{
	uint64_t reg[OTP_REGS_MAX] = {[7] = WORLD + WORLD_BYTES};
	const struct runtime_place at = {.pc = BW_INFO(0, 0) + 0x30, .exact = true, .valid = 1 << 7, .reg = reg, .load = word_of_world};
	struct runtime_step step = {0};

	ck_assert_int_eq(code(at.pc), 0);
	ck_assert_int_eq(runtime_beam.step(&attached, &made.code, &at, &step), -EFAULT);
	reg[7] = STACK; /* nothing but zeros */
	ck_assert_int_eq(runtime_beam.step(&attached, &made.code, &at, &step), -ENOENT);
}
END_TEST

/* --- where a frame begins --- */

/* A function behind its info: it asks for room, begins a frame of three words, writes to each, and calls. */
static const uint8_t framed[] = {
	0x49, 0x8d, 0x57, 0x38,		/* 28: lea 56(%r15),%rdx */
	0x48, 0x39, 0xe2,		/* 2c: cmp %rsp,%rdx */
	0x76, 0x0a,			/* 2f: jbe 3b */
	0xb9, 0x01, 0, 0, 0,		/* 31: mov $1,%ecx */
	0xe8, 0, 0x10, 0, 0,		/* 36: call */
	0x48, 0x83, 0xec, 0x18,		/* 3b: sub $24,%rsp */
	0xb8, 0x3b, 0, 0, 0,		/* 3f: mov $NIL,%eax */
	0x48, 0x89, 0xe7,		/* 44: mov %rsp,%rdi */
	0x48, 0xab,			/* 47: stos %rax,(%rdi) */
	0xc4, 0xe3, 0x79, 0x05, 0x03, 0x01, /* 49: vpermilpd $1,(%rbx),%xmm0 */
	0xc5, 0xf8, 0x11, 0x44, 0x24, 0x08, /* 4f: vmovups %xmm0,8(%rsp) */
	0xe8, 0, 0x10, 0, 0,		/* 55: call */
	0x48, 0x83, 0xc4, 0x18,		/* 5a: add $24,%rsp */
	0xc3,				/* 5e: ret */
};
#define FRAMED_CALL	14 /* in these bytes: the first one */
#define FRAMED_BEGIN	19
#define FRAMED_BEGUN	0x3f
#define FRAMED_RETURN	0x5a

/* The words beneath the return address are return addresses of old. */
static int step_from_frame(uint32_t at, bool exact, struct runtime_step *ret)
{
	const uint64_t reg[OTP_REGS_MAX] = {[6] = STACK, [7] = STACK};
	const struct runtime_place place = {.pc = BW_INFO(0, 0) + at, .exact = exact, .valid = 3 << 6, .reg = reg,
					    .load = word_of_world};

	for (uint32_t i = 0; i < 3; i++)
		put64(STACK + 8 * i, BW_INFO(0, 1) + 0x50);
	put64(STACK + 24, BW_INFO(0, 1) + 0x60);
	*ret = (struct runtime_step){0};
	ck_assert_int_eq(code(place.pc), 0);
	return runtime_beam.step(&attached, &made.code, &place, ret);
}

static void put_framed(void)
{
	put(BW_INFO(0, 0) + BEAM_INFO_BYTES, framed, sizeof(framed));
}

/* Whether it is the frame's own place, and whether the new words are below the return address there. */
static const struct { uint32_t at; bool exact, below; } frame_places[] = {
	{0x28, true, false}, {FRAMED_BEGUN - 4, true, false}, {FRAMED_BEGUN, true, true}, {0x47, true, true},
	{0x4f, true, true}, {0x55, true, true}, {FRAMED_RETURN, false, true}, {FRAMED_RETURN, true, false},
	{0x5e, true, false},
};

START_TEST(what_lies_in_new_words_of_a_frame_is_no_caller)
{
	const bool below = frame_places[_i].below;
	struct runtime_step step;

	put_framed();
	ck_assert_int_eq(step_from_frame(frame_places[_i].at, frame_places[_i].exact, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + (below ? 0x60 : 0x50));
	ck_assert_uint_eq(step.sp, STACK + (below ? 32 : 8));
}
END_TEST

/* A frame of three words: C code is called in line, then by way of shared code, for its results; then a function. */
static const uint8_t inline_calls[] = {
	0xe8, 0, 0x10, 0, 0,		/* 28: call */
	0x48, 0x83, 0xec, 0x18,		/* 2d: sub $24,%rsp */
	0x48, 0x89, 0xe5,		/* 31: mov %rsp,%rbp */
	0x48, 0x8d, 0x63, 0xc0,		/* 34: lea -64(%rbx),%rsp */
	0xe8, 0, 0x10, 0, 0,		/* 38: call */
	0x48, 0x89, 0xec,		/* 3d: mov %rbp,%rsp */
	0x48, 0x89, 0x04, 0x24,		/* 40: mov %rax,(%rsp) */
	0xe8, 0, 0x10, 0, 0,		/* 44: call */
	0x48, 0x89, 0x44, 0x24, 0x08,	/* 49: mov %rax,8(%rsp) */
	0xe8, 0, 0x10, 0, 0,		/* 4e: call */
	0x48, 0x89, 0x03,		/* 53: mov %rax,(%rbx) */
	0xe8, 0, 0x10, 0, 0,		/* 56: call */
	0xb8, 0x3b, 0, 0, 0,		/* 5b: mov $NIL,%eax */
	0x48, 0x89, 0x44, 0x24, 0x10,	/* 60: mov %rax,16(%rsp) */
	0xc3,				/* 65: ret */
};

static const struct { uint32_t at; bool exact, below; } inline_places[] = {
	{0x31, true, true}, {0x34, true, true}, {0x38, true, true}, {0x3d, false, true}, {0x40, true, true}, {0x49, false, true},
	{0x49, true, true}, {0x53, false, true}, {0x56, true, true}, {0x5b, false, true}, {0x5b, true, false}, {0x65, true, false},
};

START_TEST(new_words_of_a_frame_are_old_while_c_code_is_called_for_them)
{
	const bool below = inline_places[_i].below;
	struct runtime_step step;

	put(BW_INFO(0, 0) + BEAM_INFO_BYTES, inline_calls, sizeof(inline_calls));
	ck_assert_int_eq(step_from_frame(inline_places[_i].at, inline_places[_i].exact, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + (below ? 0x60 : 0x50));
}
END_TEST

/* Another stack is left by the register that was set before it was taken; what else moves the stack pointer ends the frame. */
START_TEST(a_frame_ends_where_the_stack_pointer_has_another_value)
{
	const uint64_t code_at = BW_INFO(0, 0) + BEAM_INFO_BYTES;
	struct runtime_step step;

	put(code_at, inline_calls, sizeof(inline_calls));
	put(code_at + 0x3d - 0x28, "\x48\x89\xfc", 3); /* mov %rdi,%rsp */
	ck_assert_int_eq(step_from_frame(0x40, true, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
	put(code_at, inline_calls, sizeof(inline_calls));
	put(code_at + 0x34 - 0x28, "\x48\x8d\x65\xc0", 4); /* lea -64(%rbp),%rsp */
	ck_assert_int_eq(step_from_frame(0x3d, false, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
}
END_TEST

START_TEST(a_frame_begins_behind_a_call_only)
{
	static const uint8_t indirect[] = {0xff, 0x15, 0, 0x10, 0, 0};
	struct runtime_step step;

	put_framed();
	world[BW_INFO(0, 0) + BEAM_INFO_BYTES + FRAMED_CALL - WORLD] = 0xb8;
	ck_assert_int_eq(step_from_frame(FRAMED_BEGUN, true, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
	put(BW_INFO(0, 0) + BEAM_INFO_BYTES + FRAMED_CALL - 1, indirect, sizeof(indirect));
	ck_assert_int_eq(step_from_frame(FRAMED_BEGUN, true, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x60);
}
END_TEST

START_TEST(where_a_return_address_must_be_nothing_else_is_one)
{
	struct runtime_step step;

	put_framed();
	world[BW_INFO(0, 0) + BEAM_INFO_BYTES + FRAMED_BEGIN + 3 - WORLD] = 0x20;
	ck_assert_int_eq(step_from_frame(FRAMED_BEGUN, true, &step), -ENOENT);
}
END_TEST

/* Many clauses, each with a frame: from the first one on that there is no room for, no word is skipped. */
START_TEST(of_a_function_with_too_many_frames_the_first_ones_are_known)
{
	const uint64_t module = WORLD + 0x80000, info = module + 0x100;
	struct runtime_step step;
	const uint64_t reg[OTP_REGS_MAX] = {[7] = STACK};
	struct runtime_place at = {.exact = true, .valid = 1 << 7, .reg = reg, .load = word_of_world};

	put64(BW_MODULES + 16, module);
	put64(BW_MODULES + 24, module + 0x20000);
	put64(module, 1);
	put64(module + 96, info);
	put64(module + 104, info + 64 * (BEAM_MARKS + 4));
	put64(info + 16, BW_TERM(1));
	put64(info + 24, BW_TERM(3));
	for (uint32_t i = 1; i < BEAM_MARKS + 2; i++)
		put(info + 64 * i, framed, sizeof(framed));
	put64(STACK, 15);
	put64(STACK + 8, BW_INFO(0, 1) + 0x50);
	put64(STACK + 24, BW_INFO(0, 1) + 0x60);
	for (uint32_t i = 1; i < BEAM_MARKS + 2; i++) {
		at.pc = info + 64 * i + FRAMED_BEGIN + 4;
		ck_assert_int_eq(code(at.pc), 0);
		step = (struct runtime_step){0};
		ck_assert_int_eq(runtime_beam.step(&attached, &made.code, &at, &step), i <= BEAM_MARKS ? 0 : -ENOENT);
		ck_assert_uint_eq(step.pc, i <= BEAM_MARKS ? BW_INFO(0, 1) + 0x60 : 0);
	}
	/* Behind the beginning of the last one that is known. */
	at.pc = info + 64 * BEAM_MARKS + FRAMED_RETURN - BEAM_INFO_BYTES;
	ck_assert_int_eq(runtime_beam.step(&attached, &made.code, &at, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
}
END_TEST

/* At any place relative to the pieces in which a function is read. */
START_TEST(a_frame_may_begin_across_pieces)
{
	const uint64_t module = WORLD + 0x80000, info = module + 0x100;
	static struct runtime_code c;

	for (uint32_t at = 3700; at < 4200; at++) {
		memset(&world[info - WORLD], 0x90, 0x2000);
		put(info + at, framed, sizeof(framed));
		c = (struct runtime_code){.start = info, .end = info + 0x2000};
		memory_question(&memory);
		ck_assert_int_eq(beam_frames(&memory, &c), 0);
		ck_assert_int_eq(beam_frame_words(&c, info + at + FRAMED_BEGIN + 3), -ENOENT);
		ck_assert_int_eq(beam_frame_words(&c, info + at + FRAMED_BEGIN + 4), 3);
		ck_assert_uint_ne(runtime_code_half(&c, 0), 0);
		ck_assert_uint_eq(runtime_code_half(&c, 1), 0);
	}
}
END_TEST

/* --- frame pointers --- */

/* A frame of one word, beneath it the caller's, whose frame is the outermost one. */
static void put_frame_pointers(void)
{
	set_framed();
	put64(STACK, 15);
	put64(STACK + 8, STACK + 32);
	put64(STACK + 16, BW_INFO(0, 1) + 0x50);
	put64(STACK + 24, 15);
	put64(STACK + 32, 0);
	put64(STACK + 40, BW_EXIT);
}

static int step_framed(uint64_t pc, bool exact, uint64_t sp, uint64_t left_sp, struct runtime_step *ret)
{
	const uint64_t reg[OTP_REGS_MAX] = {[6] = exact || left_sp ? STACK + 8 : sp, [7] = sp};
	const struct runtime_place at = {.pc = pc, .exact = exact, .valid = 3 << 6, .reg = reg, .load = word_of_world,
					 .left_sp = left_sp};

	*ret = (struct runtime_step){0};
	ck_assert_int_eq(code(pc - !exact), 0);
	return runtime_beam.step(&attached, &made.code, &at, ret);
}

START_TEST(a_frame_pointer_in_the_stack_is_no_caller)
{
	struct runtime_step step;

	put_frame_pointers();
	ck_assert_int_eq(step_framed(BW_INFO(0, 0) + 0x40, true, STACK, 0, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
	ck_assert_uint_eq(step.sp, STACK + 24);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_FP | RUNTIME_STEP_DATA);
	ck_assert_int_eq(step_framed(step.pc, false, step.sp, 0, &step), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_ROOT);
}
END_TEST

/* Before it is pushed, and behind where it is popped. */
START_TEST(a_function_without_a_frame_returns_to_the_first_word)
{
	struct runtime_step step;

	put_frame_pointers();
	ck_assert_int_eq(step_framed(BW_INFO(0, 0) + 0x30, true, STACK + 16, 0, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
	ck_assert_uint_eq(step.sp, STACK + 24);
}
END_TEST

START_TEST(new_words_of_a_frame_are_beneath_its_frame_pointer)
{
	struct runtime_step step;

	set_framed();
	put_framed();
	ck_assert_int_eq(step_from_frame(FRAMED_BEGUN, true, &step), 0);
	ck_assert_uint_eq(step.sp, STACK + 32);
	put64(STACK + 24, STACK + 64);
	put64(STACK + 32, BW_INFO(0, 0) + 0x60);
	ck_assert_int_eq(step_framed(BW_INFO(0, 0) + FRAMED_BEGUN, true, STACK, 0, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 0) + 0x60);
	ck_assert_uint_eq(step.sp, STACK + 40);
}
END_TEST

/* Whatever the code behind the call does; rbp is the frame's. Also where compiled code is on the thread's stack. */
START_TEST(with_frame_pointers_the_process_has_its_stack_pointer_in_c_code)
{
	struct runtime_step step;

	put_frame_pointers();
	for (uint32_t exact = 0; exact < 2; exact++) {
		ck_assert_int_eq(step_framed(BW_INFO(0, 0) + 0x46, exact, WORLD + 0x50000, STACK, &step), 0);
		ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
	}
	/* A part of an instruction that was called without regard to tags. */
	put64(STACK + 16, BW_INFO(0, 1) + 0x53);
	ck_assert_int_eq(step_framed(BW_SHARED + 0x348, false, WORLD + 0x50000, STACK + 8, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x53);
}
END_TEST

/* It would be code's address as well as any. */
START_TEST(what_leads_further_than_a_frame_is_no_frame_pointer)
{
	struct runtime_step step;

	put_frame_pointers();
	put64(STACK + 8, STACK + 8 + 8 * (BEAM_SLOTS + 2));
	ck_assert_int_eq(step_framed(BW_INFO(0, 0) + 0x40, true, STACK, 0, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x50);
	put64(STACK + 8, STACK + 8 + 8 * (BEAM_SLOTS + 3));
	ck_assert_int_eq(step_framed(BW_INFO(0, 0) + 0x40, true, STACK, 0, &step), 0);
	ck_assert_uint_eq(step.pc, STACK + 8 + 8 * (BEAM_SLOTS + 3));
	put64(STACK + 8, STACK);
	ck_assert_int_eq(step_framed(BW_INFO(0, 0) + 0x40, true, STACK, 0, &step), 0);
	ck_assert_uint_eq(step.pc, STACK);
}
END_TEST

START_TEST(functions_with_frame_pointers_keep_no_fetches)
{
	static const uint8_t fetch[] = {0x49, 0x8b, 0x65, 0x58};

	set_framed();
	put_framed();
	for (uint32_t i = 0; i < BEAM_MARKS + 2; i++)
		put(BW_INFO(0, 0) + 0x60 + 4 * i, fetch, sizeof(fetch));
	ck_assert_int_eq(code(BW_INFO(0, 0) + 0x30), 0);
	ck_assert_int_eq(beam_frame_words(&made.code, BW_INFO(0, 0) + FRAMED_BEGUN), 3);
	ck_assert(!beam_is_fetched(&made.code, BW_INFO(0, 0) + 0x60));
}
END_TEST

/* --- the interpreter --- */

#define LOOP	 (WORLD + 0x70000)
#define LABELS	 (WORLD + 0x71000)
#define SCHEDULE (WORLD + 0x72000)

/*
 * Two instructions of BEAM, at 0 and 0x22, which offsets are counted from. In the first, the place moves to r8, and rbx is something else; it ends at a jump
 * by r8. The second one calls C code while the place is in the frame, and returns.
 */
static const uint8_t loop_code[] = {
	0x90, 0xc3,			/* nop; ret */
	0x49, 0x89, 0xd8,		/* 00: mov %rbx,%r8 */
	0x4d, 0x8d, 0x40, 0x08,		/* 03: lea 8(%r8),%r8 */
	0x48, 0x8b, 0x5c, 0x24, 0x10,	/* 07: mov 16(%rsp),%rbx */
	0x48, 0x83, 0xfb, 0x0f,		/* 0c: cmp $15,%rbx */
	0x74, 0x0c,			/* 10: je 1e */
	0x48, 0x89, 0x03,		/* 12: mov %rax,(%rbx) */
	0x49, 0x8d, 0x58, 0x18,		/* 15: lea 24(%r8),%rbx */
	0x41, 0xff, 0x60, 0x18,		/* 19: jmp *24(%r8) */
	0x90,				/* 1d: nop */
	0xff, 0xe0,			/* 1e: jmp *%rax */
	0x66, 0x90,			/* 20: nop */
	0x48, 0x89, 0x5c, 0x24, 0x38,	/* 22: mov %rbx,56(%rsp) */
	0x31, 0xdb,			/* 27: xor %ebx,%ebx */
	0xe8, 0, 0, 0, 0,		/* 29: call */
	0x49, 0x83, 0xc5, 0x10,		/* 2e: add $16,%r13 */
	0x49, 0x8b, 0x5d, 0x00,		/* 32: mov 0(%r13),%rbx */
	0x49, 0xc7, 0x45, 0x00, 0xfb, 0xff, 0xff, 0xff, /* 36: movq $NIL,0(%r13) */
	0xff, 0x23,			/* 3e: jmp *(%rbx) */
	0x4c, 0x01, 0xeb,		/* 40: add %r13,%rbx */
	0xc3,				/* 43: ret */
};
static const uint32_t loop_labels[] = {0, 0x22};
#define LOOP_AT(offset) (LOOP + 2 + (offset))

static void put_loop(void)
{
	struct beam *b = (void *)attached.param;

	put(LOOP, loop_code, sizeof(loop_code));
	for (uint32_t i = 0; i < ARRAY_SIZE(loop_labels); i++)
		put64(LABELS + 8 * i, LOOP_AT(loop_labels[i]));
	b->loop = LOOP;
	b->loop_end = LOOP + sizeof(loop_code);
	b->labels = LABELS;
	b->labels_end = LABELS + 8 * ARRAY_SIZE(loop_labels);
	b->choice = LOOP_AT(0x13);
	b->own = BW_DATA;
	b->own_end = BW_DATA + 16;
	b->exits[0] = b->exits[1] = BW_DATA + 8;
}

static const struct {
	uint32_t at;
	uint64_t place, stack; /* BEAM_FLOW_REGISTER + DWARF's number, or BEAM_FLOW_SLOT + word */
} loop_places[] = {
	{0x00, BEAM_FLOW_REGISTER + 3, BEAM_FLOW_REGISTER + 13},
	{0x07, BEAM_FLOW_REGISTER + 3, BEAM_FLOW_REGISTER + 13},
	{0x0c, BEAM_FLOW_REGISTER + 8, BEAM_FLOW_REGISTER + 13},
	{0x15, BEAM_FLOW_REGISTER + 8, BEAM_FLOW_REGISTER + 13},
	{0x19, BEAM_FLOW_REGISTER + 3, BEAM_FLOW_REGISTER + 13},
	{0x1e, BEAM_FLOW_REGISTER + 8, BEAM_FLOW_REGISTER + 13},
	{0x22, BEAM_FLOW_REGISTER + 3, BEAM_FLOW_REGISTER + 13},
	{0x29, BEAM_FLOW_SLOT + 7, BEAM_FLOW_REGISTER + 13},
	{0x36, BEAM_FLOW_REGISTER + 3, BEAM_FLOW_REGISTER + 13},
	{0x3e, BEAM_FLOW_REGISTER + 3, BEAM_FLOW_REGISTER + 13},
	{0x40, BEAM_FLOW_NOWHERE, BEAM_FLOW_NOWHERE},
};

START_TEST(the_interpreter_moves_the_place_within_an_instruction)
{
	put_loop();
	ck_assert_int_eq(code(LOOP_AT(loop_places[_i].at)), 0);
	ck_assert_uint_eq(made.code.kind, BEAM_LOOP);
	ck_assert_uint_eq(made.code.word[BEAM_PLACE_WORD], loop_places[_i].place);
	ck_assert_uint_eq(made.code.word[BEAM_STACK_WORD], loop_places[_i].stack);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	ck_assert_int_eq(beam_code(&attached, &memory, LOOP_AT(loop_places[_i].at), &made), -EALREADY);
}
END_TEST

/* The interpreter's registers at an offset of its code: the place, the stack pointer of the process, its own. */
static uint64_t loop_reg[OTP_REGS_MAX];

static int step_from_loop(uint64_t offset, bool exact, struct runtime_step *ret)
{
	const struct runtime_place at = {.pc = LOOP_AT(offset) + !exact, .exact = exact, .valid = 0x1ffff, .reg = loop_reg,
					 .load = word_of_world, .left_sp = STACK + 16, .left_low = STACK - 0x1000};

	*ret = (struct runtime_step){0};
	put_loop();
	ck_assert_int_eq(code(LOOP_AT(offset)), 0);
	return runtime_beam.step(&attached, &made.code, &at, ret);
}

static void set_loop(uint64_t rbx, uint64_t r8, uint64_t r13)
{
	loop_reg[3] = rbx;
	loop_reg[8] = r8;
	loop_reg[13] = r13;
	loop_reg[7] = WORLD + 0x50000;
}

START_TEST(a_step_out_of_the_interpreter_is_into_what_it_reads)
{
	struct runtime_step step;

	set_loop(BW_INFO(0, 0) + 0x30, 0, STACK);
	ck_assert_int_eq(step_from_loop(0, true, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 0) + 0x31 + BEAM_TOP_KEPT);
	ck_assert_uint_eq(step.sp, STACK);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_FP | RUNTIME_STEP_DATA | RUNTIME_STEP_LOOP);
	/* Where the place is no word, the function is not known. */
	set_loop(BW_INFO(0, 0) + 0x33, 0, STACK);
	ck_assert_int_eq(step_from_loop(0, true, &step), 0);
	ck_assert_uint_eq(step.pc, BEAM_NO_PLACE + 1 + BEAM_TOP_KEPT);
	put64(WORLD + 0x50000 + 56, BW_INFO(0, 1) + 0x60);
	ck_assert_int_eq(step_from_loop(0x29, false, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 1) + 0x61 + BEAM_TOP_KEPT);
	/* Where the interpreter returns, the word at the stack pointer is the place itself. */
	set_loop(BW_INFO(0, 0) + 0x30, 0, STACK);
	ck_assert_int_eq(step_from_loop(0x36, true, &step), 0);
	ck_assert_uint_eq(step.pc, BW_INFO(0, 0) + 0x31);
}
END_TEST

/* What it called has collected garbage: the register leads to the former stack. But a stack that was not copied is none. */
START_TEST(a_stack_that_was_moved_is_where_the_process_has_it)
{
	struct runtime_step step;

	set_loop(0, BW_INFO(0, 0) + 0x30, STACK - 0x2000);
	ck_assert_int_eq(step_from_loop(0x12, false, &step), -ENOENT); /* another process was chosen */
	ck_assert_int_eq(step_from_loop(0x15, false, &step), 0);
	ck_assert_uint_eq(step.sp, STACK + 16);
	set_loop(0, BW_INFO(0, 0) + 0x30, STACK - 0x800);
	ck_assert_int_eq(step_from_loop(0x15, false, &step), 0);
	ck_assert_uint_eq(step.sp, STACK - 0x800);
	set_loop(0, BW_INFO(0, 0) + 0x30, STACK + 4);
	ck_assert_int_eq(step_from_loop(0x15, false, &step), -ENOENT);
}
END_TEST

/* A return address at the stack pointer that is behind the place itself: it is being called, or was returned to. */
START_TEST(a_function_that_calls_is_not_its_own_caller)
{
	static const struct { uint32_t place, word; uint64_t caller; } call[] = {
		{0x38, 0x40, BW_INFO(1, 1) + 0x50}, {0x38, 0x38, BW_INFO(1, 1) + 0x50}, {0x38, 0x30, BW_INFO(0, 1) + 0x30},
		{0x28, 0x40, BW_INFO(0, 1) + 0x40}, {0x38, 0x58, BW_INFO(0, 1) + 0x58},
	};
	uint64_t reg[OTP_REGS_MAX] = {[6] = STACK, [7] = STACK};
	const struct runtime_place at = {.pc = BW_INFO(0, 1) + call[_i].place + 1, .valid = 3 << 6, .reg = reg, .load = word_of_world,
					 .left_sp = STACK};
	struct runtime_step step = {0};

	put_loop();
	put64(STACK, BW_INFO(0, 1) + call[_i].word);
	put64(STACK + 8, BW_INFO(1, 1) + 0x50);
	ck_assert_int_eq(code(at.pc - 1), 0);
	ck_assert_int_eq(runtime_beam.step(&attached, &made.code, &at, &step), 0);
	ck_assert_uint_eq(step.pc, call[_i].caller);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_FP | RUNTIME_STEP_DATA);
}
END_TEST

/* The same words, but the interpreter's own code has not put the one there: a function that calls itself, before it does. */
START_TEST(a_function_that_was_called_by_itself_is_its_own_caller)
{
	const uint64_t place = BW_INFO(0, 1) + 0x38;
	uint64_t reg[OTP_REGS_MAX] = {0};
	struct runtime_place at = {.valid = 3 << 6, .reg = reg, .load = word_of_world, .left_sp = STACK};
	struct runtime_step step;

	set_loop(place, 0, STACK);
	ck_assert_int_eq(step_from_loop(0, true, &step), 0);
	put64(STACK, place + 8);
	put64(STACK + 8, BW_INFO(1, 1) + 0x50);
	at.pc = step.pc;
	reg[6] = reg[7] = step.sp;
	ck_assert_int_eq(code(at.pc - 1), 0);
	ck_assert_uint_eq(made.code.start, BW_INFO(0, 1));
	step = (struct runtime_step){0};
	ck_assert_int_eq(runtime_beam.step(&attached, &made.code, &at, &step), 0);
	ck_assert_uint_eq(step.pc, place + 8);
}
END_TEST

START_TEST(instructions_of_no_module_are_shared)
{
	put_loop();
	ck_assert_int_eq(code(BW_DATA + 8), 0);
	ck_assert_uint_eq(made.code.kind, BEAM_SHARED);
	ck_assert_str_eq(made.code.name, BEAM_SHARED_NAME);
	ck_assert_int_eq(code(BW_MODULE(0) - 0x100), -ENOENT);
}
END_TEST

/* --- processes --- */

static struct runtime_context context;

/* "": the process has no name. */
static const char *process_name(void)
{
	beam_world_context(&attached, &context);
	memset(&function, 0, sizeof(function));
	memory_question(&memory);
	if (context.named.key)
		ck_assert_int_eq(beam_decode(&attached, &memory, &context.named, &function), 0);
	ck_assert_uint_eq(context.labels_left, !context.named.key);
	return function.name;
}

START_TEST(a_process_of_proc_lib_is_what_that_began)
{
	struct otp_walks w = {.generation = 1, .plan = {attached.walk, attached.more}};

	ck_assert(otp_walk_sound(&w));
	ck_assert_str_eq(process_name(), "My.Module.map/1");
	/* A value that is no function. */
	put64(BW_HEAP(1) + 16, 15);
	ck_assert_str_eq(process_name(), "");
	put64(BW_HEAP(0) + 16, BW_TERM(3));
	ck_assert_str_eq(process_name(), "");
}
END_TEST

/* Keys whose numbers are alike share a slot. */
START_TEST(its_key_may_be_one_of_a_list)
{
	const uint64_t other = beam_put_pair(2, BW_TERM(3), BW_TERM(3)), pair = BW_HEAP(0) | BEAM_BOXED_TAG;

	beam_put_slot(beam_put_cell(4, pair, beam_put_cell(3, other, 0x3b)));
	ck_assert_str_eq(process_name(), "My.Module.map/1");
	beam_put_slot(beam_put_cell(4, other, beam_put_cell(3, pair, 0x3b)));
	ck_assert_str_eq(process_name(), "My.Module.map/1");
	beam_put_slot(beam_put_cell(4, other, BW_HEAP(4) | 1));
	ck_assert_str_eq(process_name(), "");
}
END_TEST

/* Slots in use are split one by one: a key's number, 8, may lead to a new one by more of its bits. */
static const struct { uint32_t mask, used, slot; } dictionaries[] = {
	{15, 8, 0}, {15, 9, 8}, {15, 16, 8}, {31, 17, 8}, {255, 200, 8}, {0, 1, 0}, {1, 1, 0},
};

START_TEST(its_key_is_where_a_dictionary_of_any_size_has_it)
{
	const uint64_t pair = BW_HEAP(0) | BEAM_BOXED_TAG;

	beam_put_dictionary(dictionaries[_i].mask, dictionaries[_i].used, dictionaries[_i].slot, pair);
	ck_assert_str_eq(process_name(), "My.Module.map/1");
	beam_put_dictionary(dictionaries[_i].mask, dictionaries[_i].used, UINT32_MAX, 0);
	ck_assert_str_eq(process_name(), "");
}
END_TEST

/* In the place of what was moved is its new address; the rest of it stays. */
START_TEST(a_process_has_its_name_while_it_is_collected)
{
	const uint64_t other = beam_put_pair(2, BW_TERM(3), BW_TERM(3)), pair = BW_HEAP(0) | BEAM_BOXED_TAG;

	put64(BW_HEAP(1), BW_HEAP(8) | BEAM_BOXED_TAG);
	ck_assert_str_eq(process_name(), "My.Module.map/1");
	put64(BW_HEAP(0), BW_HEAP(7) | BEAM_BOXED_TAG);
	ck_assert_str_eq(process_name(), "My.Module.map/1");
	beam_put_slot(beam_put_cell(4, other, BW_HEAP(5) | 1));
	beam_put_cell(5, 0, beam_put_cell(6, pair, 0x3b));
	ck_assert_str_eq(process_name(), "My.Module.map/1");
}
END_TEST

START_TEST(a_process_is_named_by_its_registration_first)
{
	static const char *const names[] = {"my_server", "My.Server", "'My server'"};

	beam_put_registered(BW_TERM(10 + _i), 0);
	ck_assert_str_eq(process_name(), names[_i]);
	put64(BW_PROCESS + (uint64_t)beam_rows[0].dictionary, 0);
	ck_assert_str_eq(process_name(), names[_i]);
	beam_put_registered(BW_TERM(10 + _i), 8);
	ck_assert_str_eq(process_name(), "");
}
END_TEST

START_TEST(another_process_is_the_function_that_it_began_with)
{
	beam_put_initial(BW_TERM(1), BW_TERM(3), 2);
	beam_put_slot(0x3b);
	ck_assert_str_eq(process_name(), "lists:map/2");
	put64(BW_PROCESS + (uint64_t)beam_rows[0].dictionary, 0);
	ck_assert_str_eq(process_name(), "lists:map/2");
	beam_put_initial(BW_TERM(1), BW_TERM(3), 256);
	ck_assert_str_eq(process_name(), "");
	beam_put_initial(BW_TERM(BW_PROC_LIB), BW_TERM(3), 5);
	ck_assert_str_eq(process_name(), "");
}
END_TEST

START_TEST(a_scheduler_without_a_process_has_no_name)
{
	put64(BW_SCHEDULER + (uint64_t)beam_rows[0].process, 0);
	beam_world_context(&attached, &context);
	ck_assert_uint_eq(context.named.key, 0);
	ck_assert_uint_eq(context.labels_left, 0);
}
END_TEST

/* While it starts, they may be there soon; a system without them has no names of processes. */
START_TEST(names_need_two_atoms)
{
	struct beam *b = (void *)attached.param;

	beam_put_atom(BW_INITIAL_CALL, "initial_call$");
	b->initial_call = 0;
	attached.more = (struct otp_walk){0};
	memory_question(&memory);
	ck_assert_int_eq(beam_attach_process(&memory, b, &attached), -EAGAIN);
	put64(BW_RANGES + 8, 100);
	ck_assert_int_eq(beam_attach_process(&memory, b, &attached), 0);
	ck_assert_uint_eq(attached.more.start, OTP_WALK_NONE);
}
END_TEST

Suite *runtime_beam_suite(void)
{
	Suite *s = suite_create("runtime_beam");
	TCase *t = tcase_create("beam");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, a_process_of_proc_lib_is_what_that_began);
	tcase_add_test(t, its_key_may_be_one_of_a_list);
	tcase_add_loop_test(t, its_key_is_where_a_dictionary_of_any_size_has_it, 0, ARRAY_SIZE(dictionaries));
	tcase_add_test(t, a_process_has_its_name_while_it_is_collected);
	tcase_add_loop_test(t, a_process_is_named_by_its_registration_first, 0, 3);
	tcase_add_test(t, another_process_is_the_function_that_it_began_with);
	tcase_add_test(t, a_scheduler_without_a_process_has_no_name);
	tcase_add_test(t, names_need_two_atoms);
	tcase_add_test(t, tables_are_found_by_their_shape);
	tcase_add_test(t, tables_are_found_across_pieces);
	tcase_add_test(t, shared_code_without_exits_is_not_that_of_a_compiler);
	tcase_add_test(t, the_index_in_force_is_the_one_that_code_loads);
	tcase_add_test(t, atoms_have_their_text_in_either_form);
	tcase_add_test(t, tables_that_are_not_there_yet_are_sought_again);
	tcase_add_test(t, tables_have_modules_that_are_gone);
	tcase_add_test(t, a_function_has_name_file_and_lines);
	tcase_add_test(t, a_line_may_be_of_another_file);
	tcase_add_test(t, lines_that_do_not_fit_are_unknown);
	tcase_add_test(t, a_module_of_elixir_is_written_as_there);
	tcase_add_test(t, names_are_written_as_the_language_does);
	tcase_add_test(t, a_region_is_of_the_epoch_in_which_it_was_read);
	tcase_add_test(t, a_name_holds_when_the_function_is_gone);
	tcase_add_test(t, the_name_of_a_file_may_be_an_atom);
	tcase_add_test(t, another_function_in_its_place_is_told);
	tcase_add_test(t, code_of_no_module_is_shared_or_none);
	tcase_add_test(t, a_frame_ends_at_the_next_return_address);
	tcase_add_test(t, a_caller_of_c_code_goes_on_in_the_process_stack);
	tcase_add_test(t, a_stack_pointer_that_is_not_in_the_copy_is_none);
	tcase_add_test(t, a_scheduler_without_a_process_is_a_root);
	tcase_add_test(t, the_stack_pointer_may_be_fetched_behind_the_index_in_force);
	tcase_add_test(t, the_stack_pointer_may_be_fetched_in_the_next_piece);
	tcase_add_loop_test(t, several_calls_may_have_one_way_back, 0, ARRAY_SIZE(parts));
	tcase_add_test(t, a_way_back_may_be_far_from_the_call);
	tcase_add_loop_test(t, what_is_fetched_behind_the_end_of_a_fragment_is_of_another_call, 0, 2);
	tcase_add_test(t, the_caller_of_a_fragment_need_not_have_the_tag_of_one);
	tcase_add_test(t, a_caller_of_a_function_is_left_where_its_code_is_not_known);
	tcase_add_test(t, a_dirty_scheduler_runs_for_a_process);
	tcase_add_loop_test(t, a_traced_function_is_not_its_own_caller, 0, ARRAY_SIZE(traces));
	tcase_add_test(t, the_choice_of_a_process_is_a_root);
	tcase_add_test(t, a_function_with_too_many_ways_back_is_left_by_none);
	tcase_add_test(t, a_stack_that_was_not_copied_has_no_caller);
	tcase_add_loop_test(t, what_lies_in_new_words_of_a_frame_is_no_caller, 0, ARRAY_SIZE(frame_places));
	tcase_add_loop_test(t, new_words_of_a_frame_are_old_while_c_code_is_called_for_them, 0, ARRAY_SIZE(inline_places));
	tcase_add_test(t, a_frame_ends_where_the_stack_pointer_has_another_value);
	tcase_add_test(t, a_frame_begins_behind_a_call_only);
	tcase_add_test(t, where_a_return_address_must_be_nothing_else_is_one);
	tcase_add_test(t, of_a_function_with_too_many_frames_the_first_ones_are_known);
	tcase_add_test(t, a_frame_may_begin_across_pieces);
	tcase_add_test(t, shared_code_is_beneath_the_module_that_was_loaded_first);
	tcase_add_test(t, among_many_gaps_shared_code_is_what_modules_call);
	tcase_add_test(t, shared_code_tells_of_frame_pointers);
	tcase_add_test(t, a_frame_pointer_in_the_stack_is_no_caller);
	tcase_add_test(t, a_function_without_a_frame_returns_to_the_first_word);
	tcase_add_test(t, new_words_of_a_frame_are_beneath_its_frame_pointer);
	tcase_add_test(t, with_frame_pointers_the_process_has_its_stack_pointer_in_c_code);
	tcase_add_test(t, what_leads_further_than_a_frame_is_no_frame_pointer);
	tcase_add_test(t, functions_with_frame_pointers_keep_no_fetches);
	tcase_add_loop_test(t, the_interpreter_moves_the_place_within_an_instruction, 0, ARRAY_SIZE(loop_places));
	tcase_add_test(t, a_step_out_of_the_interpreter_is_into_what_it_reads);
	tcase_add_test(t, a_stack_that_was_moved_is_where_the_process_has_it);
	tcase_add_loop_test(t, a_function_that_calls_is_not_its_own_caller, 0, 5);
	tcase_add_test(t, a_function_that_was_called_by_itself_is_its_own_caller);
	tcase_add_test(t, instructions_of_no_module_are_shared);
	suite_add_tcase(s, t);
	return s;
}
