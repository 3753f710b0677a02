// SPDX-License-Identifier: Apache-2.0
/* LuaJIT: made-up slots and traces; how the thread is found, what its frames mean, and the way out of a trace. */
#include <check.h>

#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "tests/lib/code_world.h"
#include "tests/lib/luajit_world.h"
#include "tests/lib/walked.h"

Suite *runtime_luajit_suite(void);

static struct binary *file;
static struct runtime_attached attached;
static struct otp_walker walker;
static struct otp_walked head;
static struct runtime_code_made made;
static struct runtime_function function;
static struct runtime_frame frame[16];
static char why[RUNTIME_WHY_MAX];
static uint64_t tls;

static void setup(void)
{
	const struct runtime_seen seen = {.nr = 3, .word = {WORLD + 0x40, LW_SLOTS, LW_MAIN}};

	memset(world, 0, sizeof(world));
	lw_make();
	file = lw_open_file("LuaJIT 2.1.1700008891", EM_X86_64);
	ck_assert(file);
	ck_assert_int_eq(lw_attach(file, &seen, &attached, why), 0);
	memset(&walker, 0, sizeof(walker));
	tls = 0;
	walker.sp = LW_STACK;
	walker.pc = LW_VM + 0x20;
	walker.regs[1] = LW_BASE(LW_SLOTS, 2);
	walker.regs[3] = LW_BC(LW_LEAF) + 12;
}

static void teardown(void)
{
	file = binary_put(file);
}

/* Walks; returns the number of frames. position: of compiled code. */
static uint32_t walk(uint32_t position)
{
	struct otp_walks w = {.generation = 1, .plan = {attached.walk}};
	struct runtime_words words = {.position = position};

	ck_assert(otp_walk_sound(&w));
	walker.taken = 0;
	otp_walk_prepare(&walker.ready, &attached.walk);
	otp_walk_run(&walker, tls, 1, 0);
	memcpy(&head, walker.out, sizeof(head));
	for (uint32_t i = 0; i < head.frames && i < ARRAY_SIZE(frame); i++) {
		walked_words(&walker, &head, i, &words);
		frame[i] = (struct runtime_frame){0};
		ck_assert_int_eq(luajit_frame(&attached, &words, &frame[i]), 0);
	}
	return head.frames;
}

static const char *name_of(const struct runtime_frame *f)
{
	memset(&function, 0, sizeof(function));
	memory_question(&memory);
	ck_assert_int_eq(luajit_decode(&attached, &memory, f, &function), 0);
	return function.name;
}

static uint32_t line_of(const struct runtime_frame *f)
{
	uint32_t line = 0;

	name_of(f);
	for (uint32_t i = 0; i < function.nr_lines && function.lines[i].position <= f->position; i++)
		line = function.lines[i].line;
	return line;
}

/* --- attach --- */

START_TEST(the_state_is_found_among_words_that_were_seen)
{
	ck_assert_str_eq(attached.version, "2.1.1700008891");
	ck_assert_uint_eq(attached.param[LUAJIT_PARAM_GLOBAL], LW_GLOBAL);
	ck_assert_uint_eq(attached.walk.base + (uint64_t)attached.walk.chain[0], LW_CUR_L);
	ck_assert_uint_eq(attached.param[LUAJIT_PARAM_VM], LW_VM);
	ck_assert_uint_eq(attached.param[LUAJIT_PARAM_VM_BYTES], LW_CODE_BYTES);
	ck_assert_uint_eq(attached.code_start, LW_VM + LW_JFUNC + 4);
	ck_assert_uint_eq(attached.param[LUAJIT_PARAM_VM_EXIT], LW_VM + LW_EXIT);
	ck_assert_uint_eq(attached.param[LUAJIT_PARAM_VM_MATH], LW_VM + LW_MATH);
	ck_assert_uint_eq(attached.code_end, LW_VM + LW_MATH_END);
	ck_assert(runtime_attached_sound(&attached));
}
END_TEST

START_TEST(a_process_in_which_no_state_was_seen_is_asked_again)
{
	const struct runtime_seen none = {.nr = 1, .word = {LW_SLOTS}};

	ck_assert_int_eq(lw_attach(file, &none, &attached, why), -EAGAIN);
	ck_assert_int_eq(lw_attach(file, NULL, &attached, why), -EAGAIN);
}
END_TEST

START_TEST(what_a_former_decoder_has_found_is_enough)
{
	const struct runtime_seen found = {.nr = 1, .word = {LW_GLOBAL}};

	ck_assert_int_eq(lw_attach(file, &found, &attached, why), 0);
}
END_TEST

START_TEST(another_version_or_layout_is_refused_in_words)
{
	const struct runtime_seen seen = {.nr = 1, .word = {LW_MAIN}};
	struct binary *old = lw_open_file("LuaJIT 2.0.5", EM_X86_64), *other = lw_open_file("LuaJIT 2.1.0", EM_AARCH64);

	ck_assert_int_eq(lw_attach(old, &seen, &attached, why), -ENOTSUP);
	ck_assert_str_eq(why, "LuaJIT 2.0.5 is not known");
	ck_assert_int_eq(lw_attach(other, &seen, &attached, why), -ENOTSUP);
	ck_assert_str_eq(why, "LuaJIT 2.1.0: its frames are known on x86-64 only");
	put32(LW_GLOBAL + 0x100, 0);
	ck_assert_int_eq(lw_attach(file, &seen, &attached, why), -ENOTSUP);
	ck_assert(strstr(why, "layout that is not known"));
	binary_put(old);
	binary_put(other);
}
END_TEST

/* --- frames --- */

START_TEST(frames_have_names_and_lines)
{
	ck_assert_uint_eq(walk(0), 3);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	/* By the call, as the function around it is not there any more; by what it was assigned to; a file's. */
	ck_assert_str_eq(name_of(&frame[0]), "leaf");
	ck_assert_str_eq(function.file, "lib/app.lua");
	ck_assert_uint_eq(function.start_line, 30);
	ck_assert_str_eq(name_of(&frame[1]), "work");
	ck_assert_str_eq(name_of(&frame[2]), "main chunk");
	ck_assert_uint_eq(line_of(&frame[0]), 31);
	ck_assert_uint_eq(line_of(&frame[1]), 12);
	ck_assert_uint_eq(line_of(&frame[2]), 2);
	ck_assert_uint_eq(frame[2].flags, RUNTIME_ENTRY);
	ck_assert_uint_eq(frame[0].flags | frame[1].flags, 0);
}
END_TEST

START_TEST(in_c_code_the_frame_is_the_one_that_was_saved)
{
	walker.pc = LW_VM - 0x100;
	ck_assert_uint_eq(walk(0), 2);
	ck_assert_str_eq(name_of(&frame[0]), "work");
	ck_assert_uint_eq(line_of(&frame[0]), 11);
}
END_TEST

START_TEST(a_register_that_c_code_has_changed_is_not_believed)
{
	walker.regs[1] = LW_SLOTS + 0x10000;
	ck_assert_uint_eq(walk(0), 2);
	walker.regs[1] = LW_BASE(LW_SLOTS, 2) + 4;
	ck_assert_uint_eq(walk(0), 2);
}
END_TEST

START_TEST(a_function_that_is_being_entered_or_left_is_not_shown)
{
	walker.regs[3] = LW_AFTER_CALL(LW_WORK);
	ck_assert_uint_eq(walk(0), 3);
	ck_assert_uint_eq(frame[0].flags, RUNTIME_HIDDEN);
	ck_assert_uint_eq(line_of(&frame[1]), 12);
	/* Results lie where its link was. */
	put64(LW_BASE(LW_SLOTS, 2) - 8, 0x3ff0000000000000);
	ck_assert_uint_eq(walk(0), 3);
	ck_assert_uint_eq(frame[0].flags, RUNTIME_HIDDEN);
	ck_assert_str_eq(name_of(&frame[1]), "work");
}
END_TEST

START_TEST(a_link_that_is_not_written_yet_is_that_of_the_register)
{
	walker.pc = WORLD + 0x30000;
	put32(walker.pc, attached.walk.slots.store);
	attached.walk.slots.code = walker.pc;
	put64(LW_BASE(LW_SLOTS, 2) - 8, LW_AFTER_CALL(LW_MAIN_FN));
	walker.regs[3] = LW_AFTER_CALL(LW_WORK);
	ck_assert_uint_eq(walk(0), 3);
	ck_assert_uint_eq(frame[0].flags, RUNTIME_HIDDEN);
	ck_assert_str_eq(name_of(&frame[1]), "work");
}
END_TEST

START_TEST(compiled_code_has_the_frame_in_the_root_and_tells_the_place)
{
	put64(LW_JIT_BASE, LW_BASE(LW_SLOTS, 1));
	ck_assert_uint_eq(walk(4), 2);
	ck_assert_str_eq(name_of(&frame[0]), "work");
	ck_assert_uint_eq(line_of(&frame[0]), 13);
	ck_assert_uint_eq(walk(0), 2);
	ck_assert_uint_eq(line_of(&frame[0]), 0);
}
END_TEST

START_TEST(a_thread_whose_stack_has_no_frame_of_the_interpreter_is_not_walked)
{
	walker.sp = LW_C_FRAME + 8;
	ck_assert_uint_eq(walk(0), 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	walker.sp = LW_STACK;
	put64(LW_MAIN + LUAJIT_L_C_FRAME, 0);
	ck_assert_uint_eq(walk(0), 0);
}
END_TEST

/* One state for each thread: the one that was found may run on another thread's stack, above this one's. */
START_TEST(a_state_that_runs_on_another_thread_is_not_walked)
{
	tls = LW_C_FRAME + 0x800; /* of a thread, above its stack */
	ck_assert_uint_eq(walk(0), 3);
	tls = LW_STACK + 0x100; /* below the C frame */
	ck_assert_uint_eq(walk(0), 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	tls = LW_STACK - 0x1000; /* of the main thread, anywhere below */
	ck_assert_uint_eq(walk(0), 3);
}
END_TEST

START_TEST(a_coroutine_goes_on_in_its_resumer)
{
	uint64_t inner = LW_C_FRAME - LUAJIT_C_BYTES;

	lw_put_frames(LW_CO_SLOTS);
	lw_put_state(LW_CO, LW_CO_SLOTS, LW_BASE(LW_CO_SLOTS, 1), inner);
	put64(LW_CUR_L, LW_CO);
	put64(inner + LUAJIT_C_BACK, LW_VM + 0x40);
	walker.regs[1] = LW_BASE(LW_CO_SLOTS, 2);
	ck_assert_uint_eq(walk(0), 5);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(frame[2].flags, RUNTIME_ENTRY);
	ck_assert_str_eq(name_of(&frame[3]), "work");
	ck_assert_uint_eq(frame[4].flags, RUNTIME_ENTRY);
	/* Resumed from C code. */
	put64(inner + LUAJIT_C_BACK, LW_VM - 0x40);
	ck_assert_uint_eq(walk(0), 3);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
}
END_TEST

START_TEST(a_function_of_variable_arguments_is_one_frame)
{
	uint64_t base = LW_BASE(LW_SLOTS, 2) + 32;

	lw_put_frame(base, LW_FN(LW_LEAF), 32 | LUAJIT_FRAME_VARG);
	walker.regs[1] = base;
	ck_assert_uint_eq(walk(0), 4);
	ck_assert_str_eq(name_of(&frame[0]), "leaf");
	ck_assert_uint_eq(frame[1].flags, RUNTIME_HIDDEN);
	ck_assert_uint_eq(line_of(&frame[2]), 12);
}
END_TEST

START_TEST(a_c_function_has_no_frame_of_its_own)
{
	lw_put_frame(LW_BASE(LW_SLOTS, 2), LW_FN(LW_C_FN), LW_AFTER_CALL(LW_WORK));
	ck_assert_uint_eq(walk(0), 3);
	ck_assert_uint_eq(frame[0].flags, RUNTIME_HIDDEN);
	ck_assert_uint_eq(line_of(&frame[1]), 12);
}
END_TEST

START_TEST(another_prototype_in_the_same_place_is_not_named)
{
	ck_assert_uint_eq(walk(0), 3);
	put32(LW_PROTO(LW_LEAF) + LUAJIT_PT_FIRSTLINE, 31);
	memory_question(&memory);
	ck_assert_int_eq(luajit_decode(&attached, &memory, &frame[0], &function), -ESTALE);
	lw_put8(LW_PROTO(LW_WORK) + LUAJIT_GCT, LUAJIT_STRING);
	ck_assert_int_eq(luajit_decode(&attached, &memory, &frame[1], &function), -ESTALE);
}
END_TEST

/* All of it was collected, and what was loaded next has the same shape, and a name of the same length. */
START_TEST(a_chunk_in_the_place_of_another_one_is_not_named_after_it)
{
	ck_assert_uint_eq(walk(0), 3);
	put32(LW_STR(LW_CHUNK) + LUAJIT_STR_HEAD + 4, 78);
	ck_assert_int_eq(luajit_decode(&attached, &memory, &frame[0], &function), -ESTALE);
	ck_assert_uint_eq(walk(0), 3);
	ck_assert_str_eq(name_of(&frame[0]), "leaf");
}
END_TEST

START_TEST(a_function_that_nothing_names_is_called_by_its_place)
{
	ck_assert_uint_eq(walk(0), 3);
	frame[0].cookie[LUAJIT_COOKIE_CALL] = frame[0].cookie[LUAJIT_COOKIE_MAIN] = 0;
	ck_assert_str_eq(name_of(&frame[0]), "function <app.lua:30>");
}
END_TEST

START_TEST(lines_that_do_not_fit_are_not_known)
{
	memset(&function, 0, sizeof(function));
	for (uint32_t i = 0; i < RUNTIME_LINES_MAX - 1; i++)
		ck_assert(runtime_add_line(&function, i, 1 + i));
	ck_assert(runtime_add_line(&function, 5000, RUNTIME_LINES_MAX - 1)); /* it goes on */
	ck_assert(!runtime_add_line(&function, 6000, 7));
	ck_assert(!runtime_add_line(&function, 7000, 8));
	ck_assert_uint_eq(function.nr_lines, RUNTIME_LINES_MAX);
	ck_assert_uint_eq(function.lines[RUNTIME_LINES_MAX - 1].position, 6000);
	ck_assert_uint_eq(function.lines[RUNTIME_LINES_MAX - 1].line, 0);
}
END_TEST

START_TEST(links_that_lead_nowhere_end_the_walk)
{
	static const uint64_t links[] = {0, 8 | LUAJIT_FRAME_C, 0x100000000 | LUAJIT_FRAME_CONT, WORLD - 64, 4, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		put64(LW_BASE(LW_SLOTS, 1) - 8, links[i]);
		walk(0);
		ck_assert_uint_eq(head.end, OTP_WALK_END_UNREADABLE);
		ck_assert_uint_le(head.frames, 3);
	}
}
END_TEST

/* --- traces --- */

static int code(uint64_t pc)
{
	memset(&made, 0, sizeof(made));
	memory_question(&memory);
	return luajit_code(&attached, &memory, pc, &made);
}

START_TEST(a_trace_has_the_functions_of_its_snapshots)
{
	uint64_t chain[4];
	uint32_t node;

	ck_assert_int_eq(code(LW_MCODE + 0x50), 0);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	ck_assert_uint_eq(made.code.start, LW_MCODE);
	ck_assert_uint_eq(made.code.end, LW_MCODE + 0x100);
	ck_assert_str_eq(made.code.name, "[trace 1]");
	ck_assert_uint_eq(code_chain(&made, LW_MCODE + 0x10, false, chain), 1);
	ck_assert_uint_eq(chain[0], LW_PROTO(LW_WORK));
	ck_assert_uint_eq(code_chain(&made, LW_MCODE + 0x50, false, chain), 2);
	ck_assert_uint_eq(chain[0], LW_PROTO(LW_LEAF));
	ck_assert_uint_eq(chain[1], LW_PROTO(LW_WORK));
	node = runtime_code_node_at(&made.code, made.rows, LW_MCODE + 0x50, false);
	ck_assert_uint_eq(made.nodes[node].position, 2);
	ck_assert_str_eq(name_of(&made.functions[made.nodes[node].function]), "leaf");
	ck_assert_uint_eq(made.functions[made.nodes[node].function].flags, 0);
	node = made.nodes[node].outer - 1u;
	ck_assert_uint_eq(made.nodes[node].position, LW_CALL);
	ck_assert_uint_eq(made.functions[made.nodes[node].function].flags, RUNTIME_WALKED);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	hash_seed++; /* of another decoder */
	ck_assert_int_eq(luajit_code(&attached, &memory, LW_MCODE + 0x50, &made), -EALREADY);
}
END_TEST

/* As what a sort compares with: it leads back into C code, and reads nothing but its arguments. */
START_TEST(a_trace_without_constants_is_left_and_has_its_function)
{
	const uint32_t none = 0x7ffd; /* REF_TRUE */
	uint64_t chain[4];

	put32(LW_TRACE + offsetof(struct luajit_trace, nk), none);
	ck_assert_int_eq(code(LW_MCODE + 0x50), 0);
	ck_assert_uint_eq(made.code.word[LUAJIT_WORD_ADJUST], 32);
	ck_assert_uint_eq(code_chain(&made, LW_MCODE + 0x10, false, chain), 1);
	ck_assert_uint_eq(chain[0], LW_PROTO(LW_WORK));
	put32(LW_TRACE + offsetof(struct luajit_trace, nk), none + 1);
	ck_assert_int_eq(code(LW_MCODE + 0x50), -E2BIG);
}
END_TEST

static uint64_t stamp_of_walk(void)
{
	ck_assert_int_eq(walk(0), 3);
	return luajit_stamp(&attached, (const uint64_t *)(const void *)(walker.out + OTP_WALK_HEAD), head.root_words);
}

START_TEST(a_sample_and_a_trace_have_the_stamp_of_their_time)
{
	ck_assert_uint_eq(stamp_of_walk(), LW_STAMP);
	ck_assert_int_eq(code(LW_MCODE + 0x50), 0);
	ck_assert_uint_eq(made.code.stamp, LW_STAMP);
	put64(LW_PRNG, LW_STAMP + 1);
	ck_assert_uint_eq(stamp_of_walk(), LW_STAMP + 1);
}
END_TEST

START_TEST(where_another_generator_places_traces_there_is_no_stamp)
{
	const struct runtime_seen seen = {.nr = 1, .word = {LW_MAIN}};
	struct binary *openresty = lw_open_file("LuaJIT 2.1.1700008891 prngstate", EM_X86_64);

	ck_assert_int_eq(lw_attach(openresty, &seen, &attached, why), 0);
	ck_assert_uint_eq(stamp_of_walk(), 0);
	ck_assert_int_eq(code(LW_MCODE + 0x50), 0);
	ck_assert_uint_eq(made.code.stamp, 0);
	binary_put(openresty);
}
END_TEST

/* Of before 2020: the names of metamethods are where later ones have the generator. */
START_TEST(without_a_generator_there_is_no_stamp)
{
	const struct runtime_seen seen = {.nr = 1, .word = {LW_MAIN}};

	put64(LW_PRNG, LW_STR(LW_NAME_INDEX));
	ck_assert_int_eq(lw_attach(file, &seen, &attached, why), 0);
	ck_assert_uint_eq(stamp_of_walk(), 0);
	ck_assert_int_eq(code(LW_MCODE + 0x50), 0);
	ck_assert_uint_eq(made.code.stamp, 0);
}
END_TEST

START_TEST(where_there_is_no_trace_there_is_no_code)
{
	ck_assert_int_eq(code(LW_MCODE + 0x100), -ENOENT);
	put64(LW_ARRAY + 8, 0);
	ck_assert_int_eq(code(LW_MCODE + 0x50), -ENOENT);
}
END_TEST

/* It has the lowest number where the one that had it was collected. */
START_TEST(a_trace_that_is_being_recorded_hides_no_other)
{
	const uint16_t two = 2;

	put(LW_TRACE + offsetof(struct luajit_trace, traceno), &two, sizeof(two));
	put64(LW_ARRAY + 8, LW_GLOBAL + 0x200);
	put64(LW_ARRAY + 16, LW_TRACE);
	ck_assert_int_eq(code(LW_MCODE + 0x50), 0);
}
END_TEST

static int step(uint64_t pc, bool exact, struct runtime_step *ret)
{
	const uint64_t reg[OTP_REGS_MAX] = {[2] = LW_STACK + 512, [6] = LW_MAIN, [7] = LW_STACK};
	const struct runtime_place at = {.pc = pc, .exact = exact, .valid = 0x1ffff, .reg = reg, .load = word_of_world};

	*ret = (struct runtime_step){0};
	return luajit_step(&attached, &made.code, &at, ret);
}

START_TEST(a_trace_is_left_into_the_interpreters_frame)
{
	struct runtime_step s;

	ck_assert_int_eq(code(LW_MCODE), 0);
	ck_assert_int_eq(step(LW_MCODE + 0x50, true, &s), 0);
	ck_assert_uint_eq(s.sp, LW_STACK + 32 + LUAJIT_C_TRACE);
	ck_assert_uint_eq(s.pc, LW_VM + 1);
}
END_TEST

static uint64_t trace_takes(uint32_t offset, bool exact)
{
	struct runtime_step s;

	ck_assert_int_eq(step(LW_MCODE + offset, exact, &s), 0);
	return s.sp - LW_STACK - LUAJIT_C_TRACE;
}

START_TEST(a_trace_takes_its_stack_at_its_head_and_gives_it_back_at_its_tail)
{
	/* A side trace takes what the one before it has less: lea rax, [rbx + 8]; sub rsp, 16. add rsp, 32; jmp */
	put(LW_MCODE, "\x48\x8d\x43\x08\x48\x83\xec\x10", 8);
	put(LW_MCODE + 0xf0, "\x48\x83\xc4\x20\xe9\x00\x00\x00\x00", 9);
	ck_assert_int_eq(code(LW_MCODE), 0);
	ck_assert_uint_eq(trace_takes(0, true), 16);
	ck_assert_uint_eq(trace_takes(4, true), 16);
	ck_assert_uint_eq(trace_takes(8, true), 32);
	ck_assert_uint_eq(trace_takes(0xf0, true), 32);
	ck_assert_uint_eq(trace_takes(0xf4, true), 0);
	ck_assert_uint_eq(trace_takes(0xf4, false), 32);
	put(LW_MCODE, "\x48\x83\xec\x20\x90\x90\x90\x90", 8);
	ck_assert_int_eq(code(LW_MCODE), 0);
	ck_assert_uint_eq(trace_takes(0, true), 0);
	ck_assert_uint_eq(trace_takes(4, true), 32);
	/* More than a trace has is not its own. */
	put(LW_MCODE, "\x48\x83\xec\x40\x90\x90\x90\x90", 8);
	ck_assert_int_eq(code(LW_MCODE), 0);
	ck_assert_uint_eq(trace_takes(0, true), 32);
}
END_TEST

START_TEST(the_way_out_of_a_trace_is_left_by_the_thread_in_the_c_frame)
{
	struct runtime_step s;

	ck_assert_int_eq(code(LW_VM + LW_EXIT + 0x40), 0);
	put64(LW_STACK + 256 + 16 + 64 + LUAJIT_C_L, LW_MAIN);
	ck_assert_int_eq(step(LW_VM + LW_EXIT + 0x40, false, &s), 0);
	ck_assert_uint_eq(s.sp, LW_STACK + 256 + 16 + 64);
	/* The trace has spilled it, beside a number. */
	put64(LW_STACK + 256 + 16 + 16 + LUAJIT_C_L, LW_MAIN);
	put64(LW_STACK + 256 + 16 + 16 + LUAJIT_C_PREV, 0x7777);
	ck_assert_int_eq(step(LW_VM + LW_EXIT + 0x40, false, &s), 0);
	ck_assert_uint_eq(s.sp, LW_STACK + 256 + 16 + 64);
	put64(LW_STACK + 256 + 16 + 16 + LUAJIT_C_L, 0);
	/* The leaf's own stack pointer is anywhere in between: nothing is better than the table, which is wrong. */
	ck_assert_int_eq(step(LW_VM + LW_EXIT + 0x40, true, &s), -ENODATA);
	put64(LW_STACK + 256 + 16 + 64 + LUAJIT_C_L, 0);
	put64(LW_C_FRAME + LUAJIT_C_L, 0);
	ck_assert_int_eq(step(LW_VM + LW_EXIT + 0x40, false, &s), -ENODATA);
}
END_TEST

START_TEST(a_function_of_arithmetic_has_no_frame)
{
	struct runtime_step s;

	ck_assert_int_eq(code(LW_VM + LW_MATH + 4), 0);
	put64(LW_STACK, LW_MCODE + 0x20);
	ck_assert_int_eq(step(LW_VM + LW_MATH + 4, true, &s), 0);
	ck_assert_uint_eq(s.pc, LW_MCODE + 0x20);
	ck_assert_uint_eq(s.sp, LW_STACK + 8);
	ck_assert_uint_eq(s.flags, RUNTIME_STEP_SAME | RUNTIME_STEP_INNER | RUNTIME_STEP_FP);
	/* What lies between is as its table says. */
	ck_assert_int_eq(step(LW_VM + LW_EXIT_END + 15, true, &s), -ENOENT);
}
END_TEST

START_TEST(the_way_from_a_trace_to_the_interpreter_has_its_frame_in_a_register)
{
	struct runtime_step s;

	ck_assert_int_eq(code(LW_VM + LW_EXIT_END), 0);
	ck_assert_int_eq(step(LW_VM + LW_EXIT_END, true, &s), 0);
	ck_assert_uint_eq(s.pc, LW_VM + 1);
	ck_assert_uint_eq(s.sp, LW_STACK + LUAJIT_C_TRACE);
	ck_assert_uint_eq(s.flags, RUNTIME_STEP_INNER);
	ck_assert_int_eq(step(LW_VM + LW_EXIT_END + 5, true, &s), 0);
	ck_assert_uint_eq(s.sp, LW_STACK + 512);
	ck_assert_int_eq(step(LW_VM + LW_EXIT_END + 12, true, &s), 0);
	ck_assert_uint_eq(s.sp, LW_STACK + 512);
	ck_assert_int_eq(step(LW_VM + LW_EXIT_END + 12, false, &s), -ENOENT);
}
END_TEST

static const struct { uint32_t at, below; bool same; } frame_parts[] = {
	{LW_ENTER(0), 0, true}, {LW_ENTER(0) + 1, 8, true}, {LW_ENTER(1) + 2, 16, true}, {LW_ENTER(2) + 4, 24, true},
	{LW_ENTER(3), 0, true}, {LW_ENTER(3) + 6, 32, true}, {LW_LEAVE + 4, 32, false}, {LW_LEAVE + 6, 24, false},
	{LW_LEAVE + 8, 16, false}, {LW_LEAVE + 9, 8, false}, {LW_LEAVE + 10, 0, true},
};

START_TEST(a_frame_of_the_interpreter_is_made_and_given_back_in_parts)
{
	const uint64_t at = LW_VM + frame_parts[_i].at, below = frame_parts[_i].below;
	struct runtime_step s;

	ck_assert_int_eq(code(at), 0);
	put64(LW_STACK + below, 0x4711);
	put64(LW_STACK + below - 8, below ? 0x1234 : 0);
	ck_assert_int_eq(step(at, true, &s), 0);
	ck_assert_uint_eq(s.pc, 0x4711);
	ck_assert_uint_eq(s.sp, LW_STACK + below + 8);
	ck_assert_uint_eq(s.cfa, s.sp);
	ck_assert_uint_eq(s.fp, below ? 0x1234 : LW_MAIN);
	ck_assert_uint_eq(s.flags, RUNTIME_STEP_FP | (frame_parts[_i].same ? RUNTIME_STEP_SAME : 0));
	ck_assert_int_eq(step(at, false, &s), -ENOENT);
}
END_TEST

START_TEST(a_frame_of_the_interpreter_that_is_whole_is_as_its_table_says)
{
	static const uint32_t at[] = {LW_ENTER(0) + 10, LW_ENTER(1) + 3, LW_LEAVE, LW_LEAVE + 5, LW_LEAVE + 11, LW_JFUNC,
				      LW_JFUNC + 16, LW_ENTER(0) - 1};
	struct runtime_step s;

	ck_assert_int_eq(code(LW_VM + LW_LEAVE), 0);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		ck_assert_int_eq(step(LW_VM + at[i], true, &s), -ENOENT);
}
END_TEST

START_TEST(the_way_into_a_trace_has_taken_some_of_its_stack)
{
	struct runtime_step s;

	ck_assert_int_eq(code(LW_VM + LW_JFUNC + 4), 0);
	for (uint32_t into = 4; into <= 14; into += 5) {
		ck_assert_int_eq(step(LW_VM + LW_JFUNC + into, true, &s), 0);
		ck_assert_uint_eq(s.pc, LW_VM + 1);
		ck_assert_uint_eq(s.sp, LW_STACK + LUAJIT_C_TRACE);
		ck_assert_uint_eq(s.flags, RUNTIME_STEP_INNER);
	}
}
END_TEST

START_TEST(without_compiler_there_are_other_parts_all_the_same)
{
	const struct runtime_seen seen = {.nr = 1, .word = {LW_MAIN}};
	struct runtime_step s;
	struct binary *plain;

	lw_is_plain = true;
	plain = lw_open_file("LuaJIT 2.1.1700008891", EM_X86_64);
	lw_is_plain = false;
	ck_assert_int_eq(lw_attach(plain, &seen, &attached, why), 0);
	ck_assert_uint_eq(attached.code_start, LW_VM + LW_LEAVE);
	ck_assert_uint_eq(attached.code_end, LW_VM + LW_ENTER(3) + 10);
	ck_assert_int_eq(code(LW_VM + LW_ENTER(0)), 0);
	ck_assert_int_eq(step(LW_VM + LW_ENTER(0), true, &s), 0);
	ck_assert_int_eq(step(LW_VM + LW_EXIT, true, &s), -ENOENT);
	binary_put(plain);
}
END_TEST

Suite *runtime_luajit_suite(void)
{
	Suite *s = suite_create("runtime_luajit");
	TCase *t = tcase_create("memory");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, the_state_is_found_among_words_that_were_seen);
	tcase_add_test(t, a_process_in_which_no_state_was_seen_is_asked_again);
	tcase_add_test(t, what_a_former_decoder_has_found_is_enough);
	tcase_add_test(t, another_version_or_layout_is_refused_in_words);
	tcase_add_test(t, frames_have_names_and_lines);
	tcase_add_test(t, in_c_code_the_frame_is_the_one_that_was_saved);
	tcase_add_test(t, a_register_that_c_code_has_changed_is_not_believed);
	tcase_add_test(t, a_function_that_is_being_entered_or_left_is_not_shown);
	tcase_add_test(t, a_link_that_is_not_written_yet_is_that_of_the_register);
	tcase_add_test(t, compiled_code_has_the_frame_in_the_root_and_tells_the_place);
	tcase_add_test(t, a_thread_whose_stack_has_no_frame_of_the_interpreter_is_not_walked);
	tcase_add_test(t, a_state_that_runs_on_another_thread_is_not_walked);
	tcase_add_test(t, a_coroutine_goes_on_in_its_resumer);
	tcase_add_test(t, a_function_of_variable_arguments_is_one_frame);
	tcase_add_test(t, a_c_function_has_no_frame_of_its_own);
	tcase_add_test(t, another_prototype_in_the_same_place_is_not_named);
	tcase_add_test(t, a_chunk_in_the_place_of_another_one_is_not_named_after_it);
	tcase_add_test(t, a_function_that_nothing_names_is_called_by_its_place);
	tcase_add_test(t, lines_that_do_not_fit_are_not_known);
	tcase_add_test(t, links_that_lead_nowhere_end_the_walk);
	tcase_add_test(t, a_trace_has_the_functions_of_its_snapshots);
	tcase_add_test(t, a_trace_without_constants_is_left_and_has_its_function);
	tcase_add_test(t, a_sample_and_a_trace_have_the_stamp_of_their_time);
	tcase_add_test(t, where_another_generator_places_traces_there_is_no_stamp);
	tcase_add_test(t, without_a_generator_there_is_no_stamp);
	tcase_add_test(t, where_there_is_no_trace_there_is_no_code);
	tcase_add_test(t, a_trace_that_is_being_recorded_hides_no_other);
	tcase_add_test(t, a_trace_is_left_into_the_interpreters_frame);
	tcase_add_test(t, a_trace_takes_its_stack_at_its_head_and_gives_it_back_at_its_tail);
	tcase_add_test(t, the_way_out_of_a_trace_is_left_by_the_thread_in_the_c_frame);
	tcase_add_test(t, a_function_of_arithmetic_has_no_frame);
	tcase_add_test(t, the_way_from_a_trace_to_the_interpreter_has_its_frame_in_a_register);
	tcase_add_loop_test(t, a_frame_of_the_interpreter_is_made_and_given_back_in_parts, 0, ARRAY_SIZE(frame_parts));
	tcase_add_test(t, a_frame_of_the_interpreter_that_is_whole_is_as_its_table_says);
	tcase_add_test(t, the_way_into_a_trace_has_taken_some_of_its_stack);
	tcase_add_test(t, without_compiler_there_are_other_parts_all_the_same);
	suite_add_tcase(s, t);
	return s;
}
