// SPDX-License-Identifier: Apache-2.0
/* Lua 5.1 to 5.4: made-up states; how the plan is found, which states it walks, and what their frames mean. */
#include <check.h>
#include <stdio.h>

#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "tests/lib/puclua_world.h"
#include "tests/lib/walked.h"

Suite *runtime_puclua_suite(void);

/* One of each layout. */
static const uint32_t versions[] = {50101, 50105, 50200, 50204, 50300, 50301, 50306, 50400, 50401, 50402, 50408};

static struct binary *file;
static struct runtime_attached attached;
static struct otp_walker walker;
static struct otp_walked head;
static struct runtime_function function;
static struct runtime_frame frame[16];
static union { struct otp_regs regs; uint64_t room[1 + OTP_REGS_MAX]; } sampled;
static char why[RUNTIME_WHY_MAX];

static void make_world(uint32_t version)
{
	const struct runtime_seen seen = {.nr = 3, .word = {WORLD + 0x40, PW_VALUE(0), PW_MAIN}};

	memset(world, 0, sizeof(world));
	memset(&sampled, 0, sizeof(sampled));
	pw = puclua_layout_find(version);
	ck_assert_ptr_nonnull(pw);
	pw_make();
	file = binary_put(file);
	file = pw_open_file(pw_ident(version), EM_X86_64);
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(pw_attach(file, &seen, &attached, why), 0);
	memset(&walker, 0, sizeof(walker));
	walker.sp = PW_STACK + 4;
}

static void teardown(void)
{
	file = binary_put(file);
}

/* The place of the innermost function, in a register. */
static void set_register(uint32_t reg, uint64_t pc)
{
	sampled.regs.valid |= 1u << reg;
	sampled.regs.reg[reg] = pc;
}

/* Walks; returns the number of frames. */
static uint32_t walk(void)
{
	struct otp_walks w = {.generation = 1, .plan = {attached.walk}};
	struct runtime_words words = {.regs = &sampled.regs, .arch = OTP_ARCH_X86_64};

	ck_assert(otp_walk_sound(&w));
	walker.taken = 0;
	otp_walk_prepare(&walker.ready, &attached.walk);
	otp_walk_run(&walker, 0, 1, 0);
	memcpy(&head, walker.out, sizeof(head));
	for (uint32_t i = 0; i < head.frames && i < ARRAY_SIZE(frame); i++) {
		walked_words(&walker, &head, i, &words);
		frame[i] = (struct runtime_frame){0};
		ck_assert_int_eq(puclua_frame(&attached, &words, &frame[i]), 0);
	}
	return head.frames;
}

static const char *name_of(const struct runtime_frame *f)
{
	memset(&function, 0, sizeof(function));
	memory_question(&memory);
	ck_assert_int_eq(puclua_decode(&attached, &memory, f, &function), 0);
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

START_TEST(calls_are_found_where_a_state_runs)
{
	make_world(versions[_i]);
	ck_assert_uint_eq(attached.walk.start, OTP_WALK_CALL);
	ck_assert_uint_eq(attached.walk.base, PW_BACK);
	ck_assert_int_eq(attached.walk.call_root, PW_KEPT);
	ck_assert_int_eq(attached.walk.call_at, PW_JUMP);
	ck_assert_int_eq(attached.walk.call_proof, pw->l_jump);
	ck_assert(runtime_attached_sound(&attached));
}
END_TEST

START_TEST(calls_are_found_in_code_where_no_state_runs)
{
	const struct otp_walk *w = &attached.walk;
	struct otp_walk seen;

	make_world(versions[_i]);
	seen = *w;
	memset(world, 0, sizeof(world));
	pw_tells = true;
	file = binary_put(file);
	file = pw_open_file(pw_ident(versions[_i]), EM_X86_64);
	pw_tells = false;
	ck_assert_int_eq(pw_attach(file, NULL, &attached, why), 0);
	ck_assert_mem_eq(w, &seen, sizeof(seen));
}
END_TEST

START_TEST(the_state_may_be_kept_in_the_jump_buffer)
{
	const struct runtime_seen main = {.nr = 1, .word = {PW_MAIN}};

	make_world(50404);
	put64(PW_CALL + PW_KEPT, 0);
	put64(PW_CALL + PW_JUMP + 24, PW_MAIN);
	ck_assert_int_eq(pw_attach(file, &main, &attached, why), 0);
	ck_assert_int_eq(attached.walk.call_root, PW_JUMP + 24);
	ck_assert_uint_eq(walk(), 4);
}
END_TEST

START_TEST(the_loop_is_found_by_who_calls_it)
{
	make_world(50404);
	ck_assert_uint_eq(attached.nr_loops, 1);
	ck_assert_uint_eq(attached.loop[0], PW_BIAS + PW_EXECUTE);
	ck_assert_uint_eq(attached.resume, PW_BIAS + PW_RESUME);
	ck_assert_uint_eq(attached.unseen, 0);
	ck_assert_str_eq(attached.version, "5.4.4");
}
END_TEST

START_TEST(a_process_in_which_no_running_state_was_seen_is_asked_again)
{
	const struct runtime_seen none = {.nr = 2, .word = {PW_VALUE(0), PW_CO}}, main = {.nr = 1, .word = {PW_MAIN}};

	make_world(50404);
	ck_assert_int_eq(pw_attach(file, &none, &attached, why), -EAGAIN);
	ck_assert_int_eq(pw_attach(file, NULL, &attached, why), -EAGAIN);
	/* A state that has ended, and one whose frame is not of a call through a pointer. */
	put64(PW_MAIN + pw->l_jump, 0);
	ck_assert_int_eq(pw_attach(file, &main, &attached, why), -EAGAIN);
	put64(PW_MAIN + pw->l_jump, PW_CALL + PW_JUMP);
	put64(PW_CALL, PW_BACK + 1);
	ck_assert_int_eq(pw_attach(file, &main, &attached, why), -EAGAIN);
	put64(PW_CALL, PW_BACK);
	ck_assert_int_eq(pw_attach(file, &main, &attached, why), 0);
}
END_TEST

static int attach_as(const char *ident, uint16_t machine)
{
	const struct runtime_seen main = {.nr = 1, .word = {PW_MAIN}};
	struct binary *b = pw_open_file(ident, machine);
	int err = pw_attach(b, &main, &attached, why);

	binary_put(b);
	return err;
}

START_TEST(another_version_or_machine_is_refused_in_words)
{
	make_world(50404);
	ck_assert_int_eq(attach_as(pw_ident(50500), EM_X86_64), -ENOTSUP);
	ck_assert_str_eq(why, "Lua 5.5.0 is not known");
	ck_assert_int_eq(attach_as("$Lua: Lua 5.0.3 Copyright (C) 1994-2006 Tecgraf, PUC-Rio $", EM_X86_64), -ENOTSUP);
	ck_assert_str_eq(why, "Lua 5.0.3 is not known");
	ck_assert_int_eq(attach_as("something else", EM_X86_64), -ENOTSUP);
	ck_assert_str_eq(why, "Lua of a version that its file does not tell");
	ck_assert_int_eq(attach_as(pw_ident(50404), EM_AARCH64), -ENOTSUP);
	ck_assert_str_eq(why, "Lua 5.4.4: its frames are known on x86-64 only");
}
END_TEST

/* --- frames --- */

START_TEST(frames_have_names_and_lines)
{
	make_world(versions[_i]);
	set_register(13, PW_CODE(PW_LEAF) + 8);
	ck_assert_uint_eq(walk(), 4);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	/* By the call, as the function around it is not there any more; by what it was assigned to; a file's. */
	ck_assert_str_eq(name_of(&frame[0]), "leaf");
	ck_assert_str_eq(function.file, "lib/app.lua");
	ck_assert_uint_eq(function.start_line, 30);
	ck_assert_str_eq(name_of(&frame[1]), "work");
	ck_assert_str_eq(name_of(&frame[2]), "main chunk");
	ck_assert_uint_eq(line_of(&frame[0]), 32);
	ck_assert_uint_eq(line_of(&frame[1]), 10 + PW_CALLS + 1);
	ck_assert_uint_eq(line_of(&frame[2]), PW_CALLS + 1);
	ck_assert_uint_eq(frame[0].flags, pw->entry == PUCLUA_ENTRY_EACH ? RUNTIME_ENTRY : 0);
	ck_assert_uint_eq(frame[2].flags, RUNTIME_ENTRY);
	ck_assert_uint_eq(frame[3].flags, RUNTIME_HIDDEN | RUNTIME_STACK);
}
END_TEST

START_TEST(a_place_is_in_the_register_that_the_loop_saves)
{
	make_world(50404);
	ck_assert_uint_eq(attached.param[PUCLUA_PARAM_PLACE], 13 + 1);
	set_register(12, PW_CODE(PW_LEAF) + 8);
	walk();
	ck_assert_uint_eq(line_of(&frame[0]), 0);
	set_register(13, PW_CODE(PW_LEAF) + 12);
	walk();
	ck_assert_uint_eq(line_of(&frame[0]), 33);
	/* A function that the loop called uses it for something else. */
	set_register(13, PW_CODE(PW_WORK) + 12);
	walk();
	ck_assert_uint_eq(line_of(&frame[0]), 0);
	/* 5.2 and 5.3 keep it in memory alone. */
	make_world(50306);
	walk();
	ck_assert_uint_eq(line_of(&frame[0]), 32);
}
END_TEST

/* main called work, which resumed a coroutine: leaf runs in it. */
static void make_coroutine(void)
{
	pw_put_ci(0, 3, PW_C_FN, 0, false);
	pw_put_ci(1, 0, PW_NIL, 0, false);
	pw_put_ci(1, 1, PW_LEAF, 1, true);
	pw_put_state(1, PW_CO, 2, PW_CO_CALL);
	pw_put_call(PW_CO_CALL, PW_CO);
}

START_TEST(a_coroutine_goes_on_with_whoever_resumed_it)
{
	make_world(versions[_i]);
	make_coroutine();
	ck_assert_uint_eq(walk(), 6);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	/* Nothing names what C called. */
	ck_assert_str_eq(name_of(&frame[0]), "function <app.lua:30>");
	ck_assert_uint_eq(frame[0].flags, RUNTIME_ENTRY);
	ck_assert_uint_eq(frame[1].flags, RUNTIME_HIDDEN | RUNTIME_STACK);
	ck_assert_uint_eq(frame[2].flags, RUNTIME_HIDDEN);
	ck_assert_str_eq(name_of(&frame[3]), "work");
	ck_assert_str_eq(name_of(&frame[4]), "main chunk");
	ck_assert_uint_eq(frame[5].flags, RUNTIME_HIDDEN | RUNTIME_STACK);
}
END_TEST

/* Compiled as C++: lua_resume has a frame of its own for errors, that no plan finds. */
START_TEST(coroutines_that_are_entered_elsewhere_are_not_seen_but_the_main_thread_is_known)
{
	uint32_t is_main;

	pw_is_inlined = true;
	make_world(versions[_i]);
	pw_is_inlined = false;
	is_main = pw->ci_bytes ? 0 : RUNTIME_MAIN;
	ck_assert_uint_eq(attached.unseen, 1);
	ck_assert(runtime_attached_sound(&attached));
	put64(PW_MAIN + pw->l_ci - 8, pw_ci(0, 0) + 112);
	put64(PW_CO + pw->l_ci - 8, pw_ci(0, 0) + 112);
	ck_assert_uint_eq(walk(), 4);
	ck_assert_uint_eq(frame[3].flags, RUNTIME_HIDDEN | RUNTIME_STACK | is_main);
	make_coroutine();
	ck_assert_uint_eq(walk(), 6);
	ck_assert_uint_eq(frame[1].flags, RUNTIME_HIDDEN | RUNTIME_STACK);
	ck_assert_uint_eq(frame[5].flags, RUNTIME_HIDDEN | RUNTIME_STACK | is_main);
	/* Where all are seen, nobody asks. */
	make_world(versions[_i]);
	ck_assert_uint_eq(attached.unseen, 0);
	ck_assert_uint_eq(attached.walk.root_keep, 0);
}
END_TEST

START_TEST(what_calls_have_left_on_the_stack_is_not_followed)
{
	make_world(50404);
	make_coroutine();
	/* It has yielded; another state's frame was there before; an outer call of the same state. */
	put64(PW_CO + pw->l_jump, 0);
	pw_put_call(PW_STACK + 0x100, PW_MAIN);
	pw_put_call(PW_STACK + 0x1400, PW_MAIN);
	pw_put_call(PW_STACK + 0x200, 8);
	ck_assert_uint_eq(walk(), 4);
	ck_assert_uint_eq(frame[0].flags, RUNTIME_HIDDEN);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
}
END_TEST

START_TEST(a_tail_call_has_no_name_by_its_call)
{
	make_world(50404);
	put64(pw_ci(0, 3) + pw->ci_status, 1ULL << (pw->status_shift + pw->status_tail));
	walk();
	ck_assert_str_eq(name_of(&frame[0]), "function <app.lua:30>");
	make_world(50105);
	put64(pw_ci(0, 3) + pw->ci_status, 1ULL << pw->status_shift);
	walk();
	ck_assert_str_eq(name_of(&frame[0]), "function <app.lua:30>");
}
END_TEST

START_TEST(a_metamethod_of_51_enters_the_loop)
{
	make_world(50105);
	/* work is at an addition, which C code called leaf for. */
	put32(PW_CODE(PW_WORK) + 4 * PW_CALLS, 12);
	walk();
	ck_assert_uint_eq(frame[0].flags, RUNTIME_ENTRY);
	ck_assert_uint_eq(frame[1].flags, 0);
	ck_assert_str_eq(name_of(&frame[0]), "function <app.lua:30>");
}
END_TEST

/* --- names and lines --- */

START_TEST(a_local_and_a_field_have_names)
{
	make_world(versions[_i]);
	/* The first local variable is register 3. */
	for (uint32_t i = 0; i < 4; i++) {
		put64(PW_LOCALS(PW_WORK) + 16 * i, PW_STR(PW_NAME_LOCAL));
		put32(PW_LOCALS(PW_WORK) + 16 * i + 8, 1);
		put32(PW_LOCALS(PW_WORK) + 16 * i + 12, 5);
	}
	put32(PW_PROTO(PW_WORK) + pw->pt.sizelocvars, 4);
	walk();
	ck_assert_str_eq(name_of(&frame[0]), "own");
	put32(PW_PROTO(PW_WORK) + pw->pt.sizelocvars, 0);
	put64(PW_K(PW_WORK), PW_STR(PW_NAME_LOCAL));
	pw_put8(PW_K(PW_WORK) + PUCLUA_VALUE_TAG, PUCLUA_STRING);
	put32(PW_CODE(PW_WORK) + 4, pw->op->is_wide ? pw_insn(PUCLUA_GETFIELD, 3, 1, 0) : pw_insn(PUCLUA_GETTABLE, 3, 1, 256));
	ck_assert_str_eq(name_of(&frame[0]), "own");
	/* What a jump may skip is not known to be there. */
	put32(PW_CODE(PW_WORK), pw->op->is_wide ? 56 | 16777216u << 7 : pw_insn_bx(PUCLUA_JMP, 0, 131071 + 1));
	ck_assert_str_eq(name_of(&frame[0]), "function <app.lua:30>");
}
END_TEST

START_TEST(absolute_lines_are_in_a_table_beside)
{
	make_world(50404);
	pw_put8(PW_LINES(PW_LEAF) + 1, 0x80);
	put64(PW_PROTO(PW_LEAF) + pw->pt.abslineinfo, PW_LINES(PW_LEAF) + 16);
	put32(PW_PROTO(PW_LEAF) + pw->pt.sizeabslineinfo, 1);
	put32(PW_LINES(PW_LEAF) + 20, 37);
	set_register(13, PW_CODE(PW_LEAF) + 12);
	walk();
	ck_assert_uint_eq(line_of(&frame[0]), 38);
	/* No line is outside of its function. */
	put32(PW_LINES(PW_LEAF) + 20, 300);
	ck_assert_uint_eq(line_of(&frame[0]), 0);
}
END_TEST

START_TEST(a_function_that_is_another_by_now_is_stale)
{
	make_world(50404);
	walk();
	put32(PW_PROTO(PW_LEAF) + pw->pt.linedefined, 31);
	ck_assert_int_eq(puclua_decode(&attached, &memory, &frame[0], &function), -ESTALE);
	pw_put8(PW_PROTO(PW_WORK) + PUCLUA_TAG, PUCLUA_STRING);
	ck_assert_int_eq(puclua_decode(&attached, &memory, &frame[1], &function), -ESTALE);
}
END_TEST

/* All of it was collected, and what was loaded next has the same shape, and a name of the same length. */
START_TEST(a_chunk_in_the_place_of_another_one_is_not_named_after_it)
{
	make_world(versions[_i]);
	walk();
	if (puclua_row_last_is_code(pw))
		put64(PW_PROTO(PW_LEAF) + pw->pt.lineinfo, PW_LINES(PW_LEAF) + 4);
	else
		put32(PW_STR(PW_CHUNK) + PUCLUA_STRING_HEAD + 4, 78);
	ck_assert_int_eq(puclua_decode(&attached, &memory, &frame[0], &function), -ESTALE);
	hash_seed++; /* of another process */
	walk();
	ck_assert_int_eq(puclua_decode(&attached, &memory, &frame[0], &function), 0);
}
END_TEST

Suite *runtime_puclua_suite(void)
{
	Suite *s = suite_create("runtime_puclua");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_loop_test(t, calls_are_found_where_a_state_runs, 0, ARRAY_SIZE(versions));
	tcase_add_loop_test(t, calls_are_found_in_code_where_no_state_runs, 0, ARRAY_SIZE(versions));
	tcase_add_test(t, the_state_may_be_kept_in_the_jump_buffer);
	tcase_add_test(t, the_loop_is_found_by_who_calls_it);
	tcase_add_test(t, a_process_in_which_no_running_state_was_seen_is_asked_again);
	tcase_add_test(t, another_version_or_machine_is_refused_in_words);
	tcase_add_loop_test(t, frames_have_names_and_lines, 0, ARRAY_SIZE(versions));
	tcase_add_test(t, a_place_is_in_the_register_that_the_loop_saves);
	tcase_add_loop_test(t, a_coroutine_goes_on_with_whoever_resumed_it, 0, ARRAY_SIZE(versions));
	tcase_add_loop_test(t, coroutines_that_are_entered_elsewhere_are_not_seen_but_the_main_thread_is_known, 0,
			    ARRAY_SIZE(versions));
	tcase_add_test(t, what_calls_have_left_on_the_stack_is_not_followed);
	tcase_add_test(t, a_tail_call_has_no_name_by_its_call);
	tcase_add_test(t, a_metamethod_of_51_enters_the_loop);
	tcase_add_loop_test(t, a_local_and_a_field_have_names, 0, ARRAY_SIZE(versions));
	tcase_add_test(t, absolute_lines_are_in_a_table_beside);
	tcase_add_test(t, a_function_that_is_another_by_now_is_stale);
	tcase_add_loop_test(t, a_chunk_in_the_place_of_another_one_is_not_named_after_it, 0, ARRAY_SIZE(versions));
	suite_add_tcase(s, t);
	return s;
}
