// SPDX-License-Identifier: Apache-2.0
/* V8: a made-up heap; names, lines, what is inlined, and steps out of frames that are there, not yet, or not any more. */
#include <check.h>

#define WORLD_BYTES (5u << 20) /* with room for large code */
#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "tests/lib/code_world.h"
#include "tests/lib/v8_world.h"
#include "tests/lib/v8_wasm_world.h"

Suite *runtime_v8_suite(void);

#define FP (WORLD + 0x30000)
#define HEAP 3u /* the number of the isolate's thread */
#define VW_ISOLATE_2 (WORLD + 0x60000)

static struct runtime_attached attached;
static struct otp_walker walker;
static struct runtime_code_made made;
static struct runtime_function function;

static void setup_row(uint16_t row)
{
	memset(world, 0, sizeof(world));
	memory.read = memory_of_world;
	memory_question(&memory);
	v8_world_make(&attached, row);
	v8_wasm_put(&attached, row);
	memset(&made, 0, sizeof(made));
}

static void setup(void)
{
	setup_row(VW_ROW);
}

static int decode_frame_of(const struct runtime_frame *f)
{
	memset(&function, 0, sizeof(function));
	memory_question(&memory);
	return v8_decode(&attached, &memory, f, &function);
}

static int decode(uint64_t key, uint64_t cookie, uint64_t how)
{
	return decode_frame_of(&(struct runtime_frame){.key = key, .cookie = {cookie, how}});
}

static int decode_bytecodes(uint64_t bytecodes, uint64_t closure, uint64_t epoch)
{
	return decode_frame_of(&(struct runtime_frame){.key = bytecodes, .flags = RUNTIME_HINTED,
						       .cookie = {0, V8_BY_BYTECODES, closure, 0, epoch}});
}

static void put_epochs(uint32_t epoch, uint32_t moved)
{
	const struct v8_row *row = v8_row(v8_of(&attached));

	put32(VW_ISOLATE + VW_EPOCH, epoch);
	put32(VW_ISOLATE + VW_EPOCH + 4, moved);
	put64(VW_ISOLATE + VW_EPOCH - row->heap_epoch + row->heap_isolate, VW_ISOLATE);
	put32(VW_ISOLATE + row->isolate_thread, HEAP);
}

/* A thread keeps its isolate at its pointer. */
static int attach_epoch(void)
{
	put_epochs(6, 106);
	attached.walk = (struct otp_walk){.start = OTP_WALK_TLS, .nr_chain = 1};
	return v8_epoch_attach((struct v8 *)attached.param, &memory, &attached.walk);
}

/* Another isolate, whose counters are at 0. */
static void put_second_isolate(uint32_t heap)
{
	const uint64_t node[] = {0, VW_ISOLATE_2};

	put64(VW_NODE(7), VW_NODE(10));
	put(VW_NODE(10), node, sizeof(node));
	put32(VW_ISOLATE_2 + v8_row(v8_of(&attached))->isolate_thread, heap);
}

static uint32_t line_at(uint32_t position)
{
	uint32_t line = 0;

	for (uint32_t i = 0; i < function.nr_lines && function.lines[i].position <= position; i++)
		line = function.lines[i].line;
	return line;
}

START_TEST(lines_end_where_the_language_says)
{
	static const uint16_t text[] = {'a', 0x2028, 'b', '\r', '\n', 'c', 0x2029, 'd', '\r', 'e', '\n', 'f'};
	static const uint32_t line[] = {1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6};
	const struct v8_flat source = {.at = VW_STRING(6), .len = ARRAY_SIZE(text), .wide = true};
	struct v8_lines lines;

	put(source.at, text, sizeof(text));
	ck_assert_int_eq(v8_lines_read(&memory, &source, 78, 0, ARRAY_SIZE(text), &lines), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(text); i++)
		ck_assert_uint_eq(v8_line_at(&lines, i), line[i]);
}
END_TEST

/* A script of spaces, with a line's end before each of so many places behind its begin, step apart. */
#define LONG_SCRIPT  (WORLD + 0x50000)
#define LONG_CHARS   (9u << 19) /* more than a question may read */
static struct v8_lines long_lines;

static struct v8_flat put_long_script(uint32_t nr, uint32_t step)
{
	memset(world + (LONG_SCRIPT - WORLD), ' ', LONG_CHARS);
	for (uint32_t i = 1; i <= nr; i++)
		put(LONG_SCRIPT + (uint64_t)i * step - 1, "\n", 1);
	return (struct v8_flat){.at = LONG_SCRIPT, .len = LONG_CHARS};
}

static uint64_t bytes_read;

static int memory_that_counts(struct memory *m, uint64_t addr, void *to, size_t len)
{
	bytes_read += len;
	return memory_of_world(m, addr, to, len);
}

static int read_lines(const struct v8_flat *source, uint64_t script, uint32_t from, uint32_t to)
{
	memory.read = memory_that_counts;
	bytes_read = 0;
	memory_question(&memory);
	return v8_lines_read(&memory, source, script, from, to, &long_lines);
}

START_TEST(lines_at_the_end_of_a_long_script_are_known_at_once)
{
	const uint32_t step = 1u << 19, at = 8 * step + 10;
	const struct v8_flat source = put_long_script(8, step);

	ck_assert_int_eq(read_lines(&source, 79, at, at + 10), 0);
	ck_assert_uint_eq(v8_line_at(&long_lines, at), 9);
	ck_assert_uint_lt(memory.bytes, MEMORY_BYTES_MAX / 8);
}
END_TEST

START_TEST(a_long_script_is_not_counted_again_for_others)
{
	const uint32_t step = 1u << 19, at = 8 * step + 10;
	const struct v8_flat source = put_long_script(8, step);

	ck_assert_int_eq(read_lines(&source, 79, at, at + 10), 0);
	for (uint32_t i = 0; i < 100; i++) {
		const struct v8_flat other = {.at = LONG_SCRIPT + i, .len = 1000};

		ck_assert_int_eq(read_lines(&other, 80 + i, 10, 20), 0);
	}
	ck_assert_int_eq(read_lines(&source, 79, at, at + 10), 0);
	ck_assert_uint_eq(v8_line_at(&long_lines, at), 9);
	ck_assert_uint_lt(bytes_read, 1u << 16);
}
END_TEST

/* Nor is any kept for ever. */
START_TEST(long_scripts_that_are_not_asked_for_make_room)
{
	const struct v8_flat source = put_long_script(8, 1u << 19);

	for (uint32_t i = 0; i < 8; i++)
		ck_assert_int_eq(read_lines(&source, 200 + i, LONG_CHARS - 10, LONG_CHARS), 0);
	for (uint32_t i = 0; i < 10000; i++) {
		const struct v8_flat other = {.at = LONG_SCRIPT + i % 1000, .len = 1000};

		ck_assert_int_eq(read_lines(&other, 300 + i, 10, 20), 0);
	}
	ck_assert_int_eq(read_lines(&source, 200, LONG_CHARS - 10, LONG_CHARS), 0);
	ck_assert_uint_gt(bytes_read, 1u << 20);
}
END_TEST

/* As what a bundle wraps all of its own in. */
START_TEST(a_function_that_is_longer_than_may_be_read_has_its_first_lines)
{
	const uint32_t step = 1u << 19;
	const struct v8_flat source = put_long_script(8, step);

	ck_assert_int_eq(read_lines(&source, 79, 5, LONG_CHARS), 0);
	ck_assert_uint_eq(v8_line_at(&long_lines, 5), 1);
	ck_assert_uint_eq(v8_line_at(&long_lines, step + 5), 2);
	ck_assert_uint_eq(v8_line_at(&long_lines, LONG_CHARS - 1), 0);
}
END_TEST

START_TEST(behind_the_last_line_that_there_is_room_for_nothing_is_read)
{
	const struct v8_flat source = put_long_script(RUNTIME_LINES_MAX + 10, 20);

	ck_assert_int_eq(read_lines(&source, 79, 5, LONG_CHARS), 0);
	ck_assert_uint_eq(v8_line_at(&long_lines, 25), 2);
	ck_assert_uint_eq(v8_line_at(&long_lines, LONG_CHARS - 1), 0);
	ck_assert_uint_lt(bytes_read, 1u << 17);
}
END_TEST

/* In whatever part of a word the line's end is. */
START_TEST(each_character_is_looked_at)
{
	const struct v8_flat source = {.at = LONG_SCRIPT, .len = 40};

	for (uint32_t i = 0; i < 30; i++) {
		put_long_script(1, i + 1);
		put(LONG_SCRIPT + 30, i % 2 ? "\r\n" : "\xff\r", 2);
		ck_assert_int_eq(read_lines(&source, 400 + i, 0, 40), 0);
		ck_assert_uint_eq(long_lines.nr, 3);
		ck_assert_uint_eq(long_lines.row[1].at, i + 1);
		ck_assert_uint_eq(long_lines.row[2].at, 32);
	}
}
END_TEST

START_TEST(a_script_goes_by_the_url_that_its_source_gives)
{
	put64(VW_SCRIPT - 1 + v8_row(v8_of(&attached))->script_url, v8_put_string(6, "webpack://app/a.js"));
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), 0);
	ck_assert_str_eq(function.file, "webpack://app/a.js");
}
END_TEST

START_TEST(a_function_has_name_script_and_lines_of_its_bytecodes)
{
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), 0);
	ck_assert_str_eq(function.name, "first");
	ck_assert_str_eq(function.file, "/srv/app.js");
	ck_assert_uint_eq(function.start_line, 1);
	ck_assert_uint_eq(line_at(V8_AT(0)), 1);
	ck_assert_uint_eq(line_at(V8_AT(4)), 3);
}
END_TEST

/* In another line than the first bytecode: place 3, in line 1; bytecodes 0, 4 and 8 are at 13, 21 and 8. */
static const uint8_t positions_from_entry[] = {1, 4 << 2, 1 << 1, 10 << 2, 4 << 1, 8 << 2, 4 << 1, (13 << 2) - 1};

START_TEST(the_entry_of_a_function_is_a_place_before_its_first_bytecode)
{
	v8_put_bytes(0, positions_from_entry, sizeof(positions_from_entry));
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), 0);
	ck_assert_uint_eq(line_at(0), 0); /* a position that is not known */
	ck_assert_uint_eq(line_at(V8_AT(0)), 3);
	ck_assert_uint_eq(line_at(V8_AT(3)), 3);
	ck_assert_uint_eq(line_at(V8_AT(4)), 4);
	ck_assert_uint_eq(line_at(V8_AT(7)), 4);
	ck_assert_uint_eq(line_at(V8_AT(8)), 2);
	/* It alone: until there is another one. */
	v8_put_bytes(0, positions_from_entry, 2);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), 0);
	ck_assert_uint_eq(line_at(0), 0);
	ck_assert_uint_eq(line_at(V8_AT(0)), 1);
}
END_TEST

START_TEST(a_place_that_no_bytecode_can_have_ends_a_table)
{
	static const uint8_t beyond[] = {1 << 1, 4 << 2, 0xfe, 0xff, 0xff, 0xff, 0x0f, 10 << 2, 1 << 1, 0};
	static struct v8_positions p;

	v8_put_bytes(0, beyond, sizeof(beyond));
	ck_assert_int_eq(v8_positions_open(v8_of(&attached), &memory, VW_TABLE(0), &p), 0);
	ck_assert_int_eq(v8_positions_next(&p), 0);
	ck_assert_int_eq(p.offset, 0);
	ck_assert_int_eq(v8_positions_next(&p), 0);
	ck_assert_int_eq(p.offset, INT32_MAX);
	ck_assert_int_eq(v8_positions_next(&p), -EBADMSG);
}
END_TEST

START_TEST(a_function_without_name_has_the_inferred_one)
{
	ck_assert_int_eq(decode(VW_SHARED(1), 77ULL << 32 | 6, V8_BY_SHARED), 0);
	ck_assert_str_eq(function.name, "it.second");
	ck_assert_uint_eq(function.start_line, 2);
	ck_assert_uint_eq(line_at(V8_AT(13)), 3);
}
END_TEST

/* A row is where a line begins, be it before the function, or a long one. */
START_TEST(places_of_compiled_code_have_columns)
{
	ck_assert_int_eq(decode(VW_SHARED(0), 77ULL << 32 | 5, V8_BY_SHARED), 0);
	ck_assert(function.has_columns);
	ck_assert_uint_eq(function.lines[0].position, V8_AT(0));
	ck_assert_uint_eq(function.lines[1].position, V8_AT(7));
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), 0);
	ck_assert(!function.has_columns);
	v8_put_smi(VW_SCRIPT - 1 + 32, 4); /* the script begins within a line */
	ck_assert_int_eq(decode(VW_SHARED(0), 77ULL << 32 | 5, V8_BY_SHARED), 0);
	ck_assert(!function.has_columns);
}
END_TEST

/* As of a bundle: the line with the function begins long before it. */
START_TEST(a_long_line_has_columns_too)
{
	static const char line[] = "a\nbbbbbbbbbbbbbbb";

	put64(VW_SCRIPT - 1 + 8, WORLD + 0x34001);
	v8_put_object(WORLD + 0x34001, 40);
	put32(WORLD + 0x34001 - 1 + 12, 40000);
	for (uint32_t i = 0; i < 40000; i++)
		put(WORLD + 0x34000 + 16 + i, "b", 1);
	put(WORLD + 0x34000 + 16 + 10, line, strlen(line));
	v8_put_smi(VW_SCOPE(1) - 1 + v8_rows[VW_ROW].scope_names + 8, 39000);
	v8_put_smi(VW_SCOPE(1) - 1 + v8_rows[VW_ROW].scope_names + 16, 39500);
	ck_assert_int_eq(decode(VW_SHARED(1), 77ULL << 32 | 6, V8_BY_SHARED), 0);
	ck_assert_uint_eq(function.start_line, 2);
	ck_assert_uint_eq(function.lines[0].position, V8_AT(12));
}
END_TEST

START_TEST(a_function_that_was_copied_is_found_where_it_is)
{
	put64(VW_FUNCTION - 1 + 0x800, VW_MAP(300));
	put64(VW_FUNCTION - 1 + 0x800 + 24, VW_SHARED(0));
	put64(VW_FUNCTION - 1, VW_FUNCTION - 1 + 0x800);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), 0);
	ck_assert_str_eq(function.name, "first");
}
END_TEST

START_TEST(another_function_in_its_place_is_stale)
{
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES + 8, VW_FUNCTION, 0), -ESTALE);
	ck_assert_int_eq(decode(VW_SHARED(0), 77ULL << 32 | 6, V8_BY_SHARED), -ESTALE);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_SCRIPT, 0), -ESTALE);
	ck_assert_int_eq(decode(VW_SCRIPT, 0, 0), -ESTALE);
	ck_assert_int_lt(decode(VW_FUNCTION + 1, 0, 0), 0);
	ck_assert_int_lt(decode(WORLD + WORLD_BYTES + 1, 0, 0), 0);
}
END_TEST

static int code_at(uint64_t pc)
{
	memset(&made.code, 0, sizeof(made.code));
	memory_question(&memory);
	return v8_code(&attached, &memory, pc, &made);
}

START_TEST(optimized_code_has_what_was_inlined)
{
	uint64_t chain[4];

	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(made.code.start, VW_CODE_START);
	ck_assert_uint_eq(made.code.kind, V8_OPTIMIZED);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	ck_assert_uint_eq(code_chain(&made, VW_CODE_START + 0x20, true, chain), 1);
	ck_assert_uint_eq(chain[0], VW_SHARED(0));
	ck_assert_uint_eq(code_chain(&made, VW_CODE_START + VW_CALL, true, chain), 2);
	ck_assert_uint_eq(chain[0], VW_SHARED(1));
	ck_assert_uint_eq(chain[1], VW_SHARED(0));
}
END_TEST

static uint32_t frames_at(uint32_t offset)
{
	uint64_t chain[4];
	uint32_t nr = code_chain(&made, VW_CODE_START + offset, false, chain);

	ck_assert_uint_eq(chain[nr - 1], VW_SHARED(0));
	if (nr == 2)
		ck_assert_uint_eq(chain[0], VW_SHARED(1));
	return nr;
}

/* At its call, at the jump by which it leaves the code, and between the two. */
START_TEST(what_lies_between_places_of_an_inlined_function_is_its_own)
{
	setup_row((uint16_t)_i);
	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(frames_at(VW_CALL - 8), 1);
	ck_assert_uint_eq(frames_at(VW_CALL - 1), 2);
	ck_assert_uint_eq(frames_at(VW_CALL + 8), 2);
	ck_assert_uint_eq(frames_at(VW_JUMP + 5), 2);
	ck_assert_uint_eq(frames_at(VW_JUMP + 6), 1);
}
END_TEST

/* Maglev's deoptimization data do not tell it: the position is where the call's arguments begin to be pushed. */
START_TEST(a_position_is_of_all_up_to_its_call)
{
	/* mov rax, n; mov rax, n; call rax */
	static const uint8_t code[] = {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xd0};

	put32(VW_CODE(&v8_rows[VW_ROW]) - 1 + v8_rows[VW_ROW].code_flags, v8_rows[VW_ROW].kind_maglev);
	v8_put_smi(VW_DEOPT(v8_rows[VW_ROW].deopt_inlining + 9), VW_EXITS + 4);
	put(VW_CODE_START + VW_CALL - 5, code, sizeof(code));
	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(frames_at(VW_CALL - 6), 1);
	ck_assert_uint_eq(frames_at(VW_CALL - 5), 2);
	ck_assert_uint_eq(frames_at(VW_CALL - 5 + sizeof(code) - 1), 2);
	ck_assert_uint_eq(frames_at(VW_CALL - 5 + sizeof(code)), 1);
}
END_TEST

/*
 * Maglev has no positions, as a rule. Behind its code: a frame of 7 slots, two calls of which the second one leaves by the
 * second entry, two bytes for a place and one for an entry's number; tagged slots; place, entry, where to, spilled slots.
 */
START_TEST(a_call_of_maglev_is_known_by_the_table_behind_its_code)
{
	static const uint8_t safepoints[] = {7, 0, 0, 0, 2, 0, 0, 0, 0xa1, 0, 0, 0, 2, 0, 0, 0,
					     0x18, 0, 0, 0, 0, 0, VW_CALL, 0, 2, VW_EXITS + 5, 0, 0};

	setup_row((uint16_t)_i);
	put32(VW_CODE(&v8_rows[_i]) - 1 + v8_rows[_i].code_flags, v8_rows[_i].kind_maglev);
	v8_put_smi(VW_DEOPT(v8_rows[_i].deopt_inlining + 9), VW_EXITS + 4);
	v8_put_bytes(1, "", 0);
	put(VW_CODE_START + VW_JUMP, "\x90\x90\x90\x90\x90\x90", 6);
	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(frames_at(VW_CALL - 1), 1);
	put(VW_CODE_START + VW_CODE_BYTES, safepoints, sizeof(safepoints));
	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(frames_at(0x18), 1);
	ck_assert_uint_eq(frames_at(VW_CALL - 2), 1);
	ck_assert_uint_eq(frames_at(VW_CALL - 1), 2);
	ck_assert_uint_eq(frames_at(VW_CALL), 1);
	/* Places that it cannot have: all is of the function around. */
	put(VW_CODE_START + VW_CODE_BYTES + 22, "\xff", 1);
	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(made.code.nr_rows, 1);
	ck_assert_uint_eq(frames_at(VW_CALL - 1), 1);
	put(VW_CODE_START + VW_CODE_BYTES + 22, "\x30\x00\x03", 3);
	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(frames_at(VW_CALL - 1), 1);
}
END_TEST

/* Each argument takes an instruction or two. */
START_TEST(a_call_of_many_arguments_is_its_positions)
{
	static const uint8_t rows[] = {1 << 1, 4 << 2, 0x56, 0xa8, 0x80, 0x80, 0x80, 0x10, 0x1a, 0xa7, 0x80, 0x80, 0x80, 0x10};
	static const uint8_t mov[] = {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, call[] = {0xff, 0xd0};
	const uint32_t at = VW_CALL - 5, nr = 5, end = at + nr * (uint32_t)sizeof(mov) + (uint32_t)sizeof(call);

	put32(VW_CODE(&v8_rows[VW_ROW]) - 1 + v8_rows[VW_ROW].code_flags, v8_rows[VW_ROW].kind_maglev);
	v8_put_smi(VW_DEOPT(v8_rows[VW_ROW].deopt_inlining + 9), VW_EXITS + 4);
	for (uint32_t i = 0; i < nr; i++)
		put(VW_CODE_START + at + i * sizeof(mov), mov, sizeof(mov));
	put(VW_CODE_START + end - sizeof(call), call, sizeof(call));
	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(frames_at(at), 2);
	ck_assert_uint_eq(frames_at(end - 1), 2);
	ck_assert_uint_eq(frames_at(end), 1);
	v8_put_bytes(1, rows, sizeof(rows)); /* a position of the outer function in between */
	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(frames_at(at), 2);
	ck_assert_uint_eq(frames_at(end - 1), 1);
}
END_TEST

/* At 0x38, the outer function itself calls: what lies before and behind may be its own. */
START_TEST(a_position_of_another_function_parts_those_around_it)
{
	static const uint8_t rows[] = {1 << 1, 4 << 2, 0x56, 0xa8, 0x80, 0x80, 0x80, 0x10, 0x1a, 0xa7, 0x80, 0x80, 0x80, 0x10};

	v8_put_bytes(1, rows, sizeof(rows));
	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(frames_at(VW_CALL - 1), 2);
	ck_assert_uint_eq(frames_at(VW_CALL + 1), 1);
	ck_assert_uint_eq(frames_at(0x38), 1);
	ck_assert_uint_eq(frames_at(VW_JUMP), 2);
}
END_TEST

START_TEST(deoptimization_data_that_makes_no_sense_leaves_calls)
{
	const struct v8_row *row = &v8_rows[_i];

	setup_row((uint16_t)_i);
	put64(VW_DEOPT(row->deopt_inlining + 2), VW_STRING(0));
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
	ck_assert_uint_eq(frames_at(VW_CALL - 1), 2);
	ck_assert_uint_eq(frames_at(VW_JUMP), 1);
}
END_TEST

/* As is the return address of a frame of code that is wrong by now. */
START_TEST(at_its_exits_code_is_where_they_are_left_from)
{
	uint64_t chain[4];

	setup_row((uint16_t)_i);
	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(frames_at(VW_EXITS), 2); /* the eager one, at its jump */
	ck_assert_uint_eq(code_chain(&made, VW_CODE_START + VW_EXITS + V8_EXIT_BYTES, true, chain), 2);
	ck_assert_uint_eq(chain[0], VW_SHARED(1));
	ck_assert_uint_eq(chain[1], VW_SHARED(0));
	ck_assert_uint_eq(runtime_code_node_at(&made.code, made.rows, VW_CODE_START + VW_EXITS + V8_EXIT_BYTES, true),
			  runtime_code_node_at(&made.code, made.rows, VW_CODE_START + VW_CALL, true));
	ck_assert_uint_eq(runtime_code_node_at(&made.code, made.rows, VW_CODE_START + VW_EXITS + 2 * V8_EXIT_BYTES, false),
			  RUNTIME_NO_NODE);
}
END_TEST

START_TEST(a_place_behind_the_code_is_left_out)
{
	v8_put_smi(VW_DEOPT(v8_rows[VW_ROW].deopt_inlining + 9), INT32_MAX);
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
}
END_TEST

/* Paths: 0 the code's own function, 1 and 2 inlined into it, 3 into 1. */
static struct v8_anchors anchors;

static void setup_anchors(void)
{
	memset(&anchors, 0, sizeof(anchors));
	ck_assert_int_eq(v8_path_add(&anchors, V8_NO_PATH, 0, -1), 0);
	ck_assert_int_eq(v8_path_add(&anchors, 0, 1, 10), 1);
	ck_assert_int_eq(v8_path_add(&anchors, 0, 2, 20), 2);
	ck_assert_int_eq(v8_path_add(&anchors, 1, 3, 30), 3);
	ck_assert_int_eq(v8_path_add(&anchors, 0, 2, 20), 2);
}

static const struct { uint16_t one, two, path; int32_t bytecode; } betweens[] = {
	{1, 1, 1, 5}, {1, 2, 0, 10}, {2, 1, 0, 20}, {0, 1, 0, 5}, {1, 0, 0, 7}, {3, 1, 1, 7}, {3, 2, 0, 10}, {1, 3, 1, 5},
};

START_TEST(what_lies_between_two_functions_is_the_one_around_both)
{
	const struct v8_anchor one = {.path = betweens[_i].one, .bytecode = 5}, two = {.path = betweens[_i].two, .bytecode = 7};
	struct v8_between between;

	setup_anchors();
	between = v8_anchors_between(&anchors, &one, &two);
	ck_assert_uint_eq(between.path, betweens[_i].path);
	ck_assert_int_eq(between.bytecode, betweens[_i].bytecode);
}
END_TEST

/* The path at an offset, as the rows of the code would say. */
static int path_at(uint32_t offset)
{
	const struct v8_anchor *before = NULL, *behind = NULL;

	for (uint32_t i = 0; i < anchors.nr; i++) {
		const struct v8_anchor *a = &anchors.row[i];

		if (a->at <= offset && offset < a->end)
			return a->path;
		if (a->at <= offset)
			before = a;
		else if (!behind)
			behind = a;
	}
	return before && behind ? v8_anchors_between(&anchors, before, behind).path : -1;
}

/*
 * A loop of an inlined function, from 8 to 24, whose check is done rarely: the jump at 16 leads to 48, behind the last
 * return, from where a call at 52 goes back. Before and behind the loop the outer function may leave the code.
 */
START_TEST(a_loop_belongs_to_the_function_that_checks_in_it)
{
	static const uint8_t jumps[][8] = {
		{0x0f, 0x80, 58, 0, 0, 0}, /* at 0, to the exit at 64 */
		{0x0f, 0x8c, 26, 0, 0, 0}, /* at 16, to 48 */
		{0xe9, 0xeb, 0xff, 0xff, 0xff}, /* at 24, to 8 */
		{0x0f, 0x80, 26, 0, 0, 0}, /* at 32, to the exit */
		{0x48, 0x8b, 0xe5, 0x5d}, /* at 40 */
		{0xe9, 0xd9, 0xff, 0xff, 0xff}, /* at 56, to 22 */
	};
	static const uint8_t places[] = {0, 16, 24, 32, 40, 56};
	const struct v8_anchor exit = {.path = 0, .node = RUNTIME_NO_NODE, .bytecode = 3};
	const struct v8_anchor call = {.at = 52, .end = 53, .path = 1, .calls = true, .node = RUNTIME_NO_NODE, .bytecode = 4};
	uint8_t code[64] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		memcpy(code + places[i], jumps[i], sizeof(jumps[i]));
	setup_anchors();
	v8_anchor_add(&anchors, &call);
	v8_anchors_scan(&anchors, code, sizeof(code), &exit, 1, 64);
	v8_anchors_sort(&anchors);
	ck_assert_int_eq(path_at(3), 0);
	ck_assert_int_eq(path_at(7), 0);
	ck_assert_int_eq(path_at(8), 1);
	ck_assert_int_eq(path_at(23), 1);
	ck_assert_int_eq(path_at(28), 1);
	ck_assert_int_eq(path_at(30), 0);
	ck_assert_int_eq(path_at(34), 0);
	ck_assert_int_eq(path_at(49), 1);
	ck_assert_int_eq(path_at(57), 1);
}
END_TEST

START_TEST(each_version_has_its_own_offsets)
{
	uint64_t chain[4];

	setup_row((uint16_t)_i);
	ck_assert_uint_ne(v8_rows[_i].major, 0);
	ck_assert_int_eq(decode(VW_FUNCTION, VW_BYTECODES, 0), 0);
	ck_assert_str_eq(function.name, "first");
	ck_assert_uint_eq(line_at(V8_AT(4)), 3);
	ck_assert_int_eq(decode(VW_SHARED(1), 77ULL << 32 | 6, V8_BY_SHARED), 0);
	ck_assert_str_eq(function.name, "it.second");
	ck_assert_int_eq(code_at(VW_CODE_START + 0x70), 0);
	ck_assert_uint_eq(made.code.start, VW_CODE_START);
	ck_assert_uint_eq(made.code.end, VW_CODE_START + VW_CODE_BYTES);
	ck_assert_uint_eq(code_chain(&made, VW_CODE_START + VW_CALL, true, chain), 2);
	ck_assert_uint_eq(chain[0], VW_SHARED(1));
	ck_assert_uint_eq(chain[1], VW_SHARED(0));
}
END_TEST

START_TEST(the_top_level_of_a_module_has_a_name)
{
	const struct vw_scope scope = {.module = true, .inferred = true, .locals = 2, .name = VW_STRING(6), .from = 7, .to = 20};

	setup_row((uint16_t)_i);
	v8_put_string(6, "top");
	v8_put_scope(&v8_rows[_i], VW_SCOPE(0), &scope);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), 0);
	ck_assert_str_eq(function.name, "top");
	ck_assert_uint_eq(function.start_line, 2);
}
END_TEST

/* Modules that were bundled into one scope. */
START_TEST(a_function_of_many_locals_has_a_name)
{
	const uint64_t object = WORLD + 0x34001;
	const struct vw_scope scope = {.locals = 6000, .name = VW_STRING(6), .from = 7, .to = 20};

	setup_row((uint16_t)_i);
	v8_put_string(6, "bundle");
	v8_put_scope(&v8_rows[_i], object, &scope);
	put64(VW_SHARED(0) - 1 + v8_rows[_i].shared_name, object);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), 0);
	ck_assert_str_eq(function.name, "bundle");
	ck_assert_uint_eq(function.start_line, 2);
	v8_put_smi(object - 1 + v8_rows[_i].scope_locals, 1 << 21); /* no function has so many */
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), -EBADMSG);
}
END_TEST

/* As where coverage is counted: before V8 12, what belongs to that takes the place of the script. */
START_TEST(a_function_that_is_watched_has_its_script)
{
	const uint64_t info = WORLD + 0x34001;

	setup_row((uint16_t)_i);
	v8_put_object(info, 153);
	put64(info - 1 + 8, VW_SHARED(0));
	put64(info - 1 + 24, VW_SCRIPT);
	put64(VW_SHARED(0) - 1 + v8_rows[_i].shared_script, info);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), 0);
	ck_assert_str_eq(function.file, "/srv/app.js");
	ck_assert_uint_eq(line_at(V8_AT(4)), 3);
	ck_assert_int_eq(decode(VW_SHARED(0), 77ULL << 32 | 5, V8_BY_SHARED), 0); /* as before that began */
	put64(info - 1 + 8, VW_SHARED(1));
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), 0);
	ck_assert_str_eq(function.name, "first");
	ck_assert_str_eq(function.file, "");
}
END_TEST

/* Up to V8 12, a page that guards it is before its first object. */
static const struct { uint16_t row, at; } larges[] = {{0, 0x3080}, {VW_ROW, 0x3040}, {2, 0x3040}, {3, 0x40}};

START_TEST(large_code_is_found_from_far_behind_its_begin)
{
	const struct v8_row *row = &v8_rows[larges[_i].row];
	const uint64_t start = WORLD + 0x140000 + larges[_i].at, stream = start - row->stream_start;
	const uint64_t code = row->stream_code ? VW_CODE(row) : stream + 1;
	const uint32_t size = 3u << 20;

	setup_row(larges[_i].row);
	v8_put_object(stream + 1, row->stream_code ? 252 : 245);
	if (row->stream_code)
		put64(stream + row->stream_code, code);
	else
		put64(stream + 8, VW_TABLE(3));
	if (row->stream_code)
		put64(code - 1 + row->code_start, start);
	put32(code - 1 + row->code_flags, row->kind_baseline);
	put32(code - 1 + row->code_size, size);
	ck_assert_int_eq(code_at(start + size - 1), 0);
	ck_assert_uint_eq(made.code.kind, V8_BASELINE);
	ck_assert_uint_eq(made.code.start, start);
	ck_assert_uint_eq(made.code.end, start + size);
	ck_assert_int_eq(code_at(start + (2u << 20)), 0);
	ck_assert_int_eq(code_at(start + size), -ENOENT);
}
END_TEST

START_TEST(no_row_lacks_a_test)
{
	ck_assert_uint_eq(v8_rows[VW_ROWS].major, 0);
	ck_assert_uint_eq(v8_rows[VW_ROW].major, 11);
}
END_TEST

START_TEST(a_scope_that_extends_its_context_has_a_name)
{
	v8_put_smi(VW_SCOPE(0) - 1 + 8, 2 | 1 << 12 | 1 << 26);
	ck_assert_int_eq(decode(VW_FUNCTION, VW_BYTECODES, 0), 0);
	ck_assert_str_eq(function.name, "first");
}
END_TEST

/* As of what a bundler has put into one file: names of more locals than a few are in a table, places are for each. */
START_TEST(a_scope_of_many_locals_has_a_name)
{
	const struct v8_row *row = v8_row(v8_of(&attached));
	const uint64_t scope = WORLD + 0x40001, locals[] = {2000, 20000};
	uint64_t at = scope - 1 + row->scope_names + 8 + 8 * locals[_i];

	v8_put_object(scope, 261);
	put64(VW_SHARED(0) - 1 + row->shared_name, scope);
	put32(scope - 1 + row->scope_flags + (row->scope_raw ? 0 : 4), 2 | 1 << 12);
	v8_put_smi(scope - 1 + row->scope_locals, (int32_t)locals[_i]);
	put64(at, v8_put_string(6, "bundle"));
	at = row->scope_positions ? scope - 1 + row->scope_positions : at + 16;
	v8_put_smi(at, 0);
	v8_put_smi(at + 8, 10);
	ck_assert_int_eq(decode(VW_FUNCTION, VW_BYTECODES, 0), 0);
	ck_assert_str_eq(function.name, "bundle");
	ck_assert_uint_eq(function.start_line, 1);
}
END_TEST

START_TEST(code_that_is_still_there_is_not_read_again)
{
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	ck_assert_int_eq(code_at(VW_CODE_START), -EALREADY);
	v8_put_smi(VW_DEOPT(5), 10);
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
}
END_TEST

#define IN_RAX (WORLD + 0x444)
#define IN_RCX (WORLD + 0x555)
static uint64_t fp = FP;

static int step(uint64_t pc, bool exact, uint64_t sp, struct runtime_step *ret)
{
	uint64_t reg[OTP_REGS_MAX] = {[0] = IN_RAX, [2] = IN_RCX, [5] = VW_FUNCTION, [6] = fp, [7] = sp, [10] = WORLD + 0x333};
	const struct runtime_place at = {.pc = pc, .exact = exact, .valid = 0x1ffff, .reg = reg, .more = made.more,
					 .load = word_of_world};

	*ret = (struct runtime_step){0};
	fp = FP;
	return v8_step(&attached, &made.code, &at, ret);
}

START_TEST(the_caller_is_found_before_in_and_behind_a_frame)
{
	struct runtime_step s;

	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x111);
	put64(FP - 0x100, WORLD + 0x222);
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
	ck_assert_int_eq(step(VW_CODE_START + 2, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x222);
	ck_assert_uint_eq(s.fp, FP);
	ck_assert_int_eq(step(VW_CODE_START + 5, true, FP, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
	ck_assert_uint_eq(s.fp, FP + 0x100);
	ck_assert_int_eq(step(VW_CODE_START + 0x20, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
	ck_assert_int_eq(step(VW_CODE_START + 0x54, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x222);
	ck_assert_int_eq(step(VW_CODE_START + 0x56, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x333);
	ck_assert_int_eq(step(VW_CODE_START + 2, false, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
}
END_TEST

/* Code of this kind with these instructions at its begin, and nothing behind. */
static void code_of(uint32_t flags, const void *code, size_t len)
{
	static const uint8_t zeros[VW_CODE_BYTES];

	put32(VW_CODE(&v8_rows[VW_ROW]) - 1 + 48, flags);
	put(VW_CODE_START, zeros, sizeof(zeros));
	put(VW_CODE_START, code, len);
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
}

/* The caller's address lies above the frame pointer, and another word at the stack pointer. */
static uint64_t caller_at(uint32_t offset)
{
	struct runtime_step s;

	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x111);
	put64(FP - 0x100, WORLD + 0x222);
	ck_assert_int_eq(step(VW_CODE_START + offset, true, FP - 0x100, &s), 0);
	return s.pc - WORLD;
}

/* In each version; a moment after it ran, as it was deoptimized. */
START_TEST(optimized_code_without_data_is_its_frames_function)
{
	const struct v8_row *row = &v8_rows[_i];
	struct runtime_step s;

	setup_row((uint16_t)_i);
	v8_put_smi(VW_ARRAY(0) - 1 + 8, 0);
	ck_assert_int_eq(code_at(VW_CODE_START + 0x20), 0);
	ck_assert_uint_eq(made.code.kind, V8_WITHOUT_DATA);
	ck_assert_uint_eq(made.code.nr_functions, 0);
	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x111);
	put64(FP - 8, VW_SCOPE(0));
	put64(FP - 16, VW_SHARED(1));
	ck_assert_int_eq(step(VW_CODE_START + 0x20, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
	ck_assert_uint_eq(s.own.key, VW_SHARED(1));
	ck_assert_uint_eq(s.own.flags, RUNTIME_MOVED);
	ck_assert_int_eq(step(VW_CODE_START + 2, true, FP - 0x100, &s), 0); /* in the register */
	ck_assert_uint_eq(s.own.key, VW_FUNCTION);
	ck_assert_int_eq(step(VW_CODE_START + 8, true, FP, &s), 0); /* its words are being pushed */
	ck_assert_uint_eq(s.own.key, 0);
	ck_assert_int_eq(step(VW_CODE_START + 0x53, true, FP, &s), 0); /* its frame is taken down */
	ck_assert_uint_eq(s.own.key, 0);
	ck_assert_int_eq(step(VW_CODE_START + 0x54, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.own.key, 0);
	ck_assert_int_eq(step(VW_CODE_START + 0x20, false, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.own.key, VW_SHARED(1));
	v8_put_length(VW_ARRAY(0), row->deopt_inlining + 10u);
	ck_assert_int_eq(code_at(VW_CODE_START + 0x20), 0);
	ck_assert_uint_eq(made.code.kind, V8_OPTIMIZED);
}
END_TEST

START_TEST(data_that_were_taken_from_code_are_found_where_they_were_made)
{
	uint64_t whole[RUNTIME_CODE_IDENTITY];

	setup_row(0);
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
	memcpy(whole, made.code.identity, sizeof(whole));
	v8_put_parted(&v8_rows[0]);
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
	ck_assert_uint_eq(made.code.kind, V8_OPTIMIZED);
	ck_assert_mem_eq(whole, made.code.identity, sizeof(whole));
	ck_assert_uint_eq(frames_at(VW_CALL - 1), 2);
	memcpy(made.known, whole, sizeof(made.known));
	ck_assert_int_eq(code_at(VW_CODE_START), -EALREADY);
}
END_TEST

/* Of other code, or of another type, or code of versions that take no data. */
START_TEST(what_else_lies_behind_a_table_of_positions_is_not_a_codes_data)
{
	setup_row(_i == 3);
	v8_put_parted(&v8_rows[_i == 3]);
	if (_i == 0)
		put(VW_CODE_START + VW_EXITS, "\x90", 1);
	if (_i == 1)
		put(VW_CODE_START + VW_CALL - 1, "\x90\x90", 2);
	if (_i == 1)
		put(VW_CODE_START + VW_CALL - 5, "\x90", 1);
	if (_i == 2)
		v8_put_object(VW_TABLE(1) + 24, 176);
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
	ck_assert_uint_eq(made.code.kind, V8_WITHOUT_DATA);
}
END_TEST

/* Which code it was is lost with the data. */
START_TEST(code_that_was_parted_from_its_data_is_not_what_was_known)
{
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	v8_put_smi(VW_ARRAY(0) - 1 + 8, 0);
	ck_assert_int_eq(code_at(VW_CODE_START), -ESTALE);
	memset(made.known, 0, sizeof(made.known));
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	ck_assert_int_eq(code_at(VW_CODE_START), -EALREADY);
}
END_TEST

START_TEST(code_that_takes_a_frame_over_has_it_from_its_begin)
{
	static const uint8_t code[] = {0x48, 0x83, 0xec, 0x18, 0x90, 0x48, 0x8b, 0xe5, 0x5d, 0x49, 0x83, 0xf8, 0x02,
				       0x0f, 0x8f, 3, 0, 0, 0, 0xc2, 0x10, 0, 0x41, 0x59, 0x4a, 0x8d, 0x24, 0xc4,
				       0x41, 0x51, 0xc3, 0x90};

	code_of(v8_rows[VW_ROW].kind_optimized, code, sizeof(code));
	ck_assert_uint_eq(caller_at(0), 0x111);
	ck_assert_uint_eq(caller_at(4), 0x111);
	ck_assert_uint_eq(caller_at(9), 0x222);
	ck_assert_uint_eq(caller_at(22), 0x222);
	ck_assert_uint_eq(caller_at(30), 0x222);
	ck_assert_uint_eq(caller_at(31), 0x111);
}
END_TEST

START_TEST(baseline_code_has_its_frame_from_its_first_call_on)
{
	/* mov ebx, n; mov r12, n, which has the byte of a call in it */
	static const uint8_t near[] = {0xbb, 8, 0, 0, 0, 0x49, 0xbc, 0xe8, 1, 2, 3, 4, 5, 0, 0, 0xe8, 1, 2, 3, 4, 0x50};
	static const uint8_t far[] = {0x33, 0xdb, 0x49, 0xbc, 1,    1,	  0xe8, 3, 4, 5,
				      0,    0,	  0x41, 0xff, 0x95, 0xe0, 0x5c, 0, 0, 0x50};

	code_of(v8_rows[VW_ROW].kind_baseline, near, sizeof(near));
	ck_assert_uint_eq(caller_at(15), 0x222);
	ck_assert_uint_eq(caller_at(20), 0x111);
	code_of(v8_rows[VW_ROW].kind_baseline, far, sizeof(far));
	ck_assert_uint_eq(caller_at(12), 0x222);
	ck_assert_uint_eq(caller_at(19), 0x111);
}
END_TEST

START_TEST(a_regular_expression_makes_its_frame_at_its_end)
{
	/* jmp 12; 3 of body; lea rsp, [rbp - 40]; pop rbx; pop rbp; ret; nop; push rbp; mov rbp, rsp; push rbx */
	static const uint8_t code[] = {0xe9, 11, 0, 0, 0, 0x90, 0x90, 0x90, 0x48, 0x8d, 0x65, 0xd8, 0x5b,
				       0x5d, 0xc3, 0x90, 0x55, 0x48, 0x89, 0xe5, 0x53};

	code_of(3, code, sizeof(code));
	ck_assert_uint_eq(caller_at(0), 0x222);
	for (uint32_t i = 5; i <= 13; i++)
		ck_assert_uint_eq(caller_at(i), 0x111);
	ck_assert_uint_eq(caller_at(14), 0x222);
	ck_assert_uint_eq(caller_at(15), 0x111);
	ck_assert_uint_eq(caller_at(16), 0x222);
	ck_assert_uint_eq(caller_at(20), 0x111);
}
END_TEST

START_TEST(a_bytecode_that_runs_stands_for_its_function)
{
	struct runtime_step s;

	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x111);
	put64(FP - 8, VW_SCOPE(0));
	put64(FP - 16, VW_FUNCTION);
	put64(FP - 32, VW_BYTECODES);
	v8_put_smi(FP - 40, 53 + 4);
	put64(FP - 0x100, VW_BUILTINS + 0x80);
	ck_assert_int_eq(code_at(VW_BUILTINS + 0x420), 0);
	ck_assert_uint_eq(made.code.kind, V8_HANDLER);
	ck_assert_uint_eq(made.code.flags, RUNTIME_CODE_LASTS);
	ck_assert_int_eq(step(VW_BUILTINS + 0x420, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
	ck_assert_uint_eq(s.own.key, VW_BYTECODES);
	ck_assert_uint_eq(s.own.cookie[RUNTIME_COOKIE_HINT], VW_FUNCTION);
	ck_assert(s.own.flags & RUNTIME_HINTED);
	ck_assert_uint_eq(s.own.position, V8_AT(4));
}
END_TEST

/* Behind the end of one way through it, another one has a frame. */
START_TEST(a_bytecode_that_calls_has_a_frame_whatever_its_instructions_say)
{
	const uint64_t own = FP - 0x80;
	struct runtime_step s;

	put(VW_BUILTINS + 0x410, "\x48\x8b\xe5\x5d\x90", 5);
	put64(own, FP);
	put64(own + 8, VW_BUILTINS + 0x80);
	put64(own - 8, 0x2a);
	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x111);
	put64(FP - 8, VW_SCOPE(0));
	put64(FP - 16, VW_FUNCTION);
	put64(FP - 32, VW_BYTECODES);
	put64(FP - 0x100, WORLD + 0x222); /* a former return address */
	ck_assert_int_eq(code_at(VW_BUILTINS + 0x420), 0);
	fp = own;
	ck_assert_int_eq(step(VW_BUILTINS + 0x420, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
	ck_assert_uint_eq(s.fp, FP + 0x100);
	ck_assert_uint_eq(s.own.key, VW_BYTECODES);
}
END_TEST

/* Without a frame of its own it still has its caller's frame pointer, whatever its instructions before say. */
START_TEST(a_stub_without_frame_is_known_by_its_callers_context)
{
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x6a, 0x22, 0x90, 0x90};
	struct runtime_step s;

	put(VW_BUILTINS + 0x100, code, sizeof(code));
	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x111);
	put64(FP - 0x100, WORLD + 0x222);
	ck_assert_int_eq(code_at(VW_BUILTINS + 0x107), 0);
	ck_assert_uint_eq(made.code.kind, V8_STUB);
	put64(FP - 8, 0x22);
	ck_assert_int_eq(step(VW_BUILTINS + 0x107, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
	put64(FP - 8, VW_SCOPE(0));
	ck_assert_int_eq(step(VW_BUILTINS + 0x107, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x222);
	ck_assert_uint_eq(s.fp, FP);
	ck_assert_int_eq(step(VW_BUILTINS + 0x107, false, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
}
END_TEST

START_TEST(a_bytecode_without_frame_is_its_functions)
{
	struct runtime_step s;

	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x111);
	put64(FP - 8, VW_SCOPE(0));
	put64(FP - 16, VW_FUNCTION);
	put64(FP - 32, VW_BYTECODES);
	put64(FP - 0x100, WORLD + 0x222);
	ck_assert_int_eq(code_at(VW_BUILTINS + 0x420), 0);
	ck_assert_int_eq(step(VW_BUILTINS + 0x420, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
	ck_assert_uint_eq(s.own.key, VW_BYTECODES);
}
END_TEST

static uint64_t epoch_of_heap(uint64_t counters, uint32_t heap)
{
	const uint64_t root[] = {counters, heap, 0, 0};

	return v8_epoch(&attached, root, ARRAY_SIZE(root));
}

static int code_of_heap_at(uint64_t pc, uint32_t heap)
{
	made.heap = heap;
	return code_at(pc);
}

static uint64_t epoch_of(uint64_t counters)
{
	return epoch_of_heap(counters, HEAP);
}

START_TEST(what_is_read_is_of_an_epoch)
{
	const uint64_t word = 107ULL << 32 | 6, epoch = (uint64_t)HEAP << 32 | 7;

	attach_epoch();
	ck_assert_uint_eq(epoch_of(word), epoch);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, 0), 0);
	ck_assert_uint_eq(function.epoch, 0);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, epoch), 0);
	ck_assert_uint_eq(function.epoch, epoch);
	ck_assert_int_eq(code_at(VW_CODE_START + 5), 0);
	ck_assert_uint_eq(made.code.epoch, epoch);
	put_epochs(7, 109); /* the closure may be dead, and intact */
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, epoch), -ESTALE);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, epoch + 1), 0);
	ck_assert_uint_eq(v8_epoch(&attached, NULL, 0), epoch);
	ck_assert_uint_eq(v8_moved(&attached, NULL, 0), 0);
}
END_TEST

START_TEST(a_closure_is_known_until_something_moves)
{
	const uint64_t root[] = {106ULL << 32 | 6, HEAP, 0, 0};
	struct runtime_frame f = {.key = VW_FUNCTION, .flags = RUNTIME_MOVED};

	attach_epoch();
	f.cookie[RUNTIME_COOKIE_EPOCH] = v8_moved(&attached, root, ARRAY_SIZE(root));
	ck_assert_int_eq(decode_frame_of(&f), 0);
	put_epochs(6, 107);
	ck_assert_int_eq(decode_frame_of(&f), -ESTALE);
	f.cookie[RUNTIME_COOKIE_EPOCH] = 0;
	ck_assert_int_eq(decode_frame_of(&f), 0);
}
END_TEST

/* A process that gets little time has none for long. */
START_TEST(until_there_is_an_isolate_nothing_is_attached)
{
	put64(VW_MANAGER + v8_rows[VW_ROW].wasm.isolates, 0);
	ck_assert_int_eq(attach_epoch(), -EAGAIN);
	put64(VW_MANAGER + v8_rows[VW_ROW].wasm.isolates, VW_NODE(7));
	put64(VW_WASM, 0);
	ck_assert_int_eq(attach_epoch(), -EAGAIN);
	put64(VW_WASM, VW_MANAGER);
	ck_assert_int_eq(attach_epoch(), 0);
	ck_assert_uint_eq(attached.walk.start, OTP_WALK_TLS);
}
END_TEST

/* In each version, of the isolate that the thread is in. */
START_TEST(a_walk_copies_counters_and_the_number_of_the_thread)
{
	const struct otp_walked *w = (const void *)walker.out;
	const uint64_t *root = (const void *)(walker.out + OTP_WALK_HEAD);

	setup_row((uint16_t)_i);
	ck_assert_int_eq(attach_epoch(), 0);
	ck_assert(otp_walk_plan_sound(&attached.walk));
	put64(VW_ISOLATE + 8, VW_ISOLATE);
	put64(VW_NODE(11), VW_ISOLATE);
	otp_walk_prepare(&walker.ready, &attached.walk);
	otp_walk_run(&walker, VW_NODE(11), 1, 0);
	ck_assert_uint_eq(w->end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(v8_epoch(&attached, root, w->root_words), (uint64_t)HEAP << 32 | 7);
	ck_assert_uint_eq(v8_moved(&attached, root, w->root_words), (uint64_t)HEAP << 32 | 107);
	put64(VW_NODE(11), 0); /* it runs no JavaScript */
	otp_walk_run(&walker, VW_NODE(11), 1, 0);
	ck_assert_uint_eq(w->root_words, 0);
}
END_TEST

/* Each has a heap of its own. */
START_TEST(each_isolate_has_its_epochs)
{
	attach_epoch();
	put_second_isolate(4);
	v8_put_scripts(&v8_rows[VW_ROW], VW_ISOLATE);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, 0, epoch_of(6)), 0);
	ck_assert_uint_eq(function.epoch, epoch_of(6));
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, epoch_of_heap(0, 4)), 0);
	ck_assert_uint_eq(function.epoch, epoch_of_heap(0, 4));
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, 0, epoch_of_heap(0, 4)), -ESTALE); /* it is in the first one's lists */
	ck_assert_int_eq(code_of_heap_at(VW_CODE_START + 5, 4), 0);
	ck_assert_uint_eq(made.code.epoch, epoch_of_heap(0, 4));
	ck_assert_uint_eq(v8_epoch(&attached, NULL, 0), epoch_of(6));
	ck_assert_int_eq(attach_epoch(), 0);
	ck_assert_uint_eq(attached.walk.start, OTP_WALK_TLS);
}
END_TEST

/* A bytecode's handler in a copy, whose caller is in the copy too, as its names are the file's. */
START_TEST(a_copy_of_builtins_is_left_as_the_files_own)
{
	const uint64_t at = VW_COPY + 0x420, own = FP - 0x80;
	struct runtime_step s;

	attach_epoch();
	v8_put_copy(&attached);
	put64(own, FP);
	put64(own + 8, VW_COPY + 0x80);
	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x111);
	put64(FP - 8, VW_SCOPE(0));
	put64(FP - 16, VW_FUNCTION);
	put64(FP - 32, VW_BYTECODES);
	ck_assert_int_eq(code_of_heap_at(at, HEAP), 0);
	ck_assert_uint_eq(made.code.kind, V8_HANDLER);
	ck_assert_uint_eq(made.code.start, VW_COPY + 0x400);
	ck_assert_uint_eq(made.code.end, VW_COPY + 0x500);
	ck_assert_uint_eq(made.code.copy_of, VW_BUILTINS + 0x400);
	ck_assert_uint_eq(made.code.flags, RUNTIME_CODE_OF_EPOCH);
	ck_assert_uint_eq(made.code.epoch, epoch_of(6));
	fp = own;
	ck_assert_int_eq(step(at, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
	ck_assert_uint_eq(s.own.key, VW_BYTECODES);
	ck_assert_int_eq(code_at(VW_BUILTINS + 0x420), 0);
	ck_assert_uint_eq(made.code.copy_of, 0);
	fp = own;
	ck_assert_int_eq(step(VW_BUILTINS + 0x420, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.own.key, 0);
}
END_TEST

/* Its frame returns to the begin of what goes on there, before which another builtin ends. */
START_TEST(a_frame_that_was_deoptimized_is_its_functions)
{
	const uint64_t at = VW_BUILTINS + 0x100;
	struct runtime_step s;

	((struct v8 *)attached.param)->resumed[1] = 0x100;
	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x111);
	put64(FP - 8, VW_SCOPE(0));
	put64(FP - 16, VW_FUNCTION);
	put64(FP - 32, VW_BYTECODES);
	put32(VW_LAYOUT + 4, 0xf0); /* of the builtin before */
	ck_assert_int_eq(code_at(at - 1), 0);
	ck_assert_uint_eq(made.code.kind, V8_TRAMPOLINE);
	ck_assert_uint_eq(made.code.start, at - 1);
	fp = FP;
	ck_assert_int_eq(step(at, false, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
	ck_assert_uint_eq(s.own.key, VW_BYTECODES);
	ck_assert_int_eq(code_at(at + 8), 0);
	ck_assert_uint_eq(made.code.start, at - 1);
	ck_assert_int_eq(step(at, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.own.key, VW_BYTECODES);
	ck_assert_int_eq(code_at(VW_BUILTINS + 0xef), 0);
	ck_assert_uint_eq(made.code.start, VW_BUILTINS);
	ck_assert_int_eq(code_at(VW_BUILTINS + 0xf0), -ENOENT);
}
END_TEST

START_TEST(the_rest_of_a_builtin_is_named_where_a_frame_returns_to_its_begin)
{
	((struct v8 *)attached.param)->resumed[6] = 0x100;
	ck_assert_int_eq(code_at(VW_BUILTINS + 0xff), 0);
	ck_assert_uint_eq(made.code.kind, V8_BUILTIN);
	ck_assert_str_eq(made.code.name, "Builtins_ContinueToJavaScriptBuiltin");
	ck_assert(made.code.flags & RUNTIME_CODE_IS_NATIVE);
}
END_TEST

/*
 * As of CEntry: leave; mov rsi, [r13 + n]; mov [r13 + n], 0; pop rcx; lea rsp, [r15 + 8]; push rcx; ret. Before it a frame, and
 * behind it one that has not ended.
 */
START_TEST(a_builtin_that_restores_the_context_takes_its_frame_down_before)
{
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x6a, 6, 0xc9, 0x49, 0x8b, 0xb5, 0xd0, 0, 0, 0,
				       0x49, 0xc7, 0x85, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0x59,
				       0x49, 0x8d, 0x67, 8, 0x51, 0xc3, 0x31, 0xff};
	static const struct { uint32_t at; bool in_frame, in_rcx; } places[] = {
		{6, true, false}, {7, false, false}, {14, false, false}, {25, false, false},
		{26, false, true}, {30, false, true}, {31, false, false}, {32, true, false}};
	const uint64_t at = VW_BUILTINS + 0x100;
	struct runtime_step s;

	put(at, code, sizeof(code));
	put64(FP - 0x100, WORLD + 0x222);
	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x333);
	put64(FP - 8, 6);
	ck_assert_int_eq(code_at(at), 0);
	fp = FP;
	ck_assert_int_eq(step(at + places[_i].at, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, places[_i].in_rcx ? IN_RCX : WORLD + (places[_i].in_frame ? 0x333 : 0x222));
	ck_assert_uint_eq(s.fp, places[_i].in_frame ? FP + 0x100 : FP);
}
END_TEST

/* mov rdi, rdx; pop rax; push [rbx + 15]; push rax; jmp rcx. What lies behind has a frame of its own. */
START_TEST(a_builtin_that_passes_arguments_on_has_its_return_address_in_a_register)
{
	static const uint8_t code[] = {0x48, 0x8b, 0xfa, 0x58, 0xff, 0x73, 0x0f, 0x50, 0xff, 0xe1,
				       0x55, 0x48, 0x89, 0xe5, 0x6a, 8};
	const uint64_t at = VW_BUILTINS + 0x100;
	struct runtime_step s;

	put(at, code, sizeof(code));
	put64(FP - 0x100, WORLD + 0x222);
	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x333);
	ck_assert_int_eq(code_at(at), 0);
	fp = FP;
	ck_assert_int_eq(step(at + 3, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x222);
	ck_assert_int_eq(step(at + 4, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, IN_RAX);
	ck_assert_uint_eq(s.sp, FP - 0x100);
	ck_assert_int_eq(step(at + 7, true, FP - 0x108, &s), 0);
	ck_assert_uint_eq(s.pc, IN_RAX);
	ck_assert_int_eq(step(at + 8, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x222);
	ck_assert_int_eq(step(at + 14, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x333);
	put(at + 5, "\x58", 1); /* another pop: whatever this is */
	ck_assert_int_eq(code_at(at), 0);
	ck_assert_int_eq(step(at + 4, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x222);
}
END_TEST

START_TEST(places_of_a_function_are_read_once)
{
	static struct v8_places places;
	const struct v8 *v = v8_of(&attached);
	uint32_t reads;

	v8_places_begin(&places);
	ck_assert_uint_eq(v8_places_of(&places, v, &memory, 0, VW_SHARED(0), 3), V8_AT(3));
	ck_assert_uint_eq(v8_places_of(&places, v, &memory, 1, VW_SHARED(1), -1), V8_AT(7));
	reads = memory.reads;
	ck_assert_uint_eq(v8_places_of(&places, v, &memory, 0, VW_SHARED(0), 4), V8_AT(13));
	ck_assert_uint_eq(v8_places_of(&places, v, &memory, 0, VW_SHARED(0), -1), V8_AT(2)); /* its begin */
	ck_assert_uint_eq(v8_places_of(&places, v, &memory, 1, VW_SHARED(1), 4), V8_AT(13));
	ck_assert_uint_eq(memory.reads, reads);
}
END_TEST

START_TEST(a_place_of_the_entry_is_that_of_the_first_bytecode)
{
	static struct v8_places places;
	const struct v8 *v = v8_of(&attached);

	v8_put_bytes(0, positions_from_entry, 2);
	v8_places_begin(&places);
	ck_assert_uint_eq(v8_places_of(&places, v, &memory, 0, VW_SHARED(0), 3), V8_AT(3));
	v8_put_bytes(0, positions_from_entry, sizeof(positions_from_entry));
	v8_places_begin(&places);
	ck_assert_uint_eq(v8_places_of(&places, v, &memory, 0, VW_SHARED(0), 0), V8_AT(13));
	ck_assert_uint_eq(v8_places_of(&places, v, &memory, 0, VW_SHARED(0), 7), V8_AT(21));
	ck_assert_uint_eq(v8_places_of(&places, v, &memory, 0, VW_SHARED(0), 8), V8_AT(8));
}
END_TEST

/* It is asked for again in each epoch of the heap that has it, and gone with the isolate. */
START_TEST(a_copy_of_builtins_is_there_as_long_as_its_isolate)
{
	const uint64_t at = VW_COPY + 0x120;

	attach_epoch();
	ck_assert_int_eq(code_of_heap_at(at, HEAP), -ENOENT);
	put_second_isolate(4);
	v8_put_copy(&attached);
	put64(VW_ISOLATE + VW_ISOLATE_BUILTINS, VW_BUILTINS);
	put64(VW_ISOLATE_2 + VW_ISOLATE_BUILTINS, VW_COPY);
	ck_assert_int_eq(code_of_heap_at(at, 4), 0);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	made.known_epoch = made.code.epoch;
	ck_assert_int_eq(code_of_heap_at(at, 4), -EALREADY);
	put32(VW_ISOLATE_2 + VW_EPOCH, 1);
	ck_assert_int_eq(code_of_heap_at(at, 4), 0);
	put64(VW_NODE(7), 0);
	ck_assert_int_eq(code_of_heap_at(at, 4), -ESTALE);
}
END_TEST

/* Its module is held until a collection of the whole heap. */
START_TEST(code_of_webassembly_is_of_its_samples_epoch)
{
	attach_epoch();
	ck_assert_int_eq(code_of_heap_at(VW_WASM_START(VW_FIRST) + 5, HEAP), 0);
	ck_assert_uint_eq(made.code.epoch, epoch_of(6));
	ck_assert_uint_eq(made.code.flags, RUNTIME_CODE_OF_EPOCH);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	made.known_epoch = made.code.epoch;
	ck_assert_int_eq(code_of_heap_at(VW_WASM_START(VW_FIRST) + 5, HEAP), -EALREADY);
	put_epochs(7, 107);
	ck_assert_int_eq(code_of_heap_at(VW_WASM_START(VW_FIRST) + 5, HEAP), 0);
	ck_assert_uint_eq(made.code.epoch, epoch_of(7));
	made.known_epoch = 0;
	memset(made.known, 0, sizeof(made.known));
	ck_assert_int_eq(code_of_heap_at(VW_WASM_START(VW_FIRST) + 5, 0), 0);
	ck_assert_uint_eq(made.code.epoch, 0);
	put_second_isolate(4); /* which may run it, too */
	ck_assert_int_eq(code_of_heap_at(VW_WASM_START(VW_FIRST) + 5, HEAP), 0);
	ck_assert_uint_eq(made.code.epoch, 0);
}
END_TEST

/* Its memory may be there yet, or be another one's. */
START_TEST(of_an_isolate_that_has_ended_nothing_is_known)
{
	attach_epoch();
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, epoch_of_heap(6, 4)), -ESTALE);
	ck_assert_int_eq(code_of_heap_at(VW_CODE_START + 5, 4), -ESTALE);
	put_second_isolate(HEAP); /* whose memory it is cannot be told */
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, epoch_of(6)), -ESTALE);
}
END_TEST

/* As in a library. */
START_TEST(where_a_thread_keeps_its_isolate_is_not_known_the_only_one_has_epochs)
{
	attached.walk.start = OTP_WALK_NONE;
	put_epochs(6, 106);
	ck_assert_int_eq(v8_epoch_attach((struct v8 *)attached.param, &memory, &attached.walk), 0);
	ck_assert_uint_eq(attached.walk.start, OTP_WALK_AT);
	ck_assert_uint_eq(attached.walk.base, VW_ISOLATE);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, epoch_of(6)), 0);
	ck_assert_uint_eq(function.epoch, epoch_of(6));
	put_second_isolate(4);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, epoch_of(6)), 0);
	ck_assert_uint_eq(function.epoch, 0);
	attached.walk.start = OTP_WALK_NONE;
	ck_assert_int_eq(v8_epoch_attach((struct v8 *)attached.param, &memory, &attached.walk), 0);
	ck_assert_uint_eq(attached.walk.start, OTP_WALK_NONE);
	ck_assert_uint_eq(epoch_of(6), 0);
}
END_TEST

/* As of a release whose Heap is laid out otherwise: a word that never changes would be taken for the counter. */
START_TEST(where_there_is_no_heap_there_are_no_epochs)
{
	const struct v8_row *row = v8_row(v8_of(&attached));

	put_epochs(6, 106);
	put64(VW_ISOLATE + VW_EPOCH - row->heap_epoch + row->heap_isolate, VW_ISOLATE + 8);
	attached.walk = (struct otp_walk){.start = OTP_WALK_TLS, .nr_chain = 1};
	ck_assert_int_eq(v8_epoch_attach((struct v8 *)attached.param, &memory, &attached.walk), 0);
	ck_assert_uint_eq(attached.walk.start, OTP_WALK_NONE);
	ck_assert_uint_eq(epoch_of(6), 0);
}
END_TEST

/* A closure that was made for one call, and what lies in its place now. */
START_TEST(bytecodes_whose_closure_is_dead_are_found_by_the_lists_of_scripts)
{
	setup_row((uint16_t)_i);
	v8_put_scripts(&v8_rows[_i], VW_ISOLATE);
	attach_epoch();
	put64(VW_FUNCTION - 1, VW_MAP(40));
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, epoch_of(6)), 0);
	ck_assert_str_eq(function.name, "first");
	ck_assert_str_eq(function.file, "/srv/app.js");
	ck_assert_uint_eq(function.epoch, epoch_of(6));
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES + 0x100, VW_FUNCTION, epoch_of(6)), -ESTALE);
	v8_put_length_at(VW_SCRIPTS - 1 + v8_rows[_i].list_length, UINT32_MAX);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, VW_FUNCTION, epoch_of(6)), -ESTALE);
}
END_TEST

/* As of baseline code. */
START_TEST(bytecodes_behind_code_are_found_by_the_lists_of_scripts)
{
	const struct v8_row *row = &v8_rows[VW_ROW];

	v8_put_scripts(row, VW_ISOLATE);
	attach_epoch();
	put64(VW_SHARED(0) - 1 + row->shared_data, VW_CODE(row));
	put64(VW_CODE(row) - 1 + row->code_interpreted, VW_BYTECODES);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, 0, epoch_of(6)), 0);
	ck_assert_str_eq(function.name, "first");
}
END_TEST

/* What a collection has found to be dead, it takes out of the lists before it counts; the objects stay for a while. */
START_TEST(what_is_dead_is_in_no_list)
{
	v8_put_scripts(&v8_rows[VW_ROW], VW_ISOLATE);
	attach_epoch();
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, 0, epoch_of(6)), 0);
	put_epochs(7, 107);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, 0, epoch_of(6)), -ESTALE);
	put64(VW_FUNCTIONS - 1 + 32, VW_CLEARED);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, 0, epoch_of(7)), -ESTALE);
	put64(VW_FUNCTIONS - 1 + 32, VW_SHARED(0) | VW_WEAK);
	put64(VW_SCRIPTS - 1 + 32, VW_CLEARED);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, 0, epoch_of(7)), -ESTALE);
}
END_TEST

/* As before the walk is set: where the epoch at least of which a sample is has not passed, it is the sample's. */
START_TEST(an_epoch_that_is_bounded_is_known_while_it_lasts)
{
	struct runtime_frame f = {.key = VW_BYTECODES, .flags = RUNTIME_HINTED | RUNTIME_BOUND,
				  .cookie = {0, V8_BY_BYTECODES}};

	v8_put_scripts(&v8_rows[VW_ROW], VW_ISOLATE);
	attach_epoch();
	f.cookie[RUNTIME_COOKIE_EPOCH] = epoch_of(6);
	ck_assert_int_eq(decode_frame_of(&f), 0);
	ck_assert_str_eq(function.name, "first");
	ck_assert_uint_eq(function.epoch, 0); /* it says nothing of other samples */
	put_epochs(7, 107);
	ck_assert_int_eq(decode_frame_of(&f), -ESTALE);
	f.cookie[RUNTIME_COOKIE_HINT] = VW_FUNCTION;
	ck_assert_int_eq(decode_frame_of(&f), 0); /* as without any */
}
END_TEST

/* Others may have lain where they lie when the sample was taken. */
START_TEST(without_epochs_no_list_tells_whose_bytecodes_these_were)
{
	v8_put_scripts(&v8_rows[VW_ROW], VW_ISOLATE);
	attach_epoch();
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, 0, 0), -ESTALE);
	ck_assert_int_eq(decode_bytecodes(VW_BYTECODES, 0, (uint64_t)HEAP << 32), -ESTALE);
}
END_TEST

/* One of many functions, each of which lies on a page of its own. */
START_TEST(a_long_list_is_searched_by_several_questions)
{
	const struct v8_row *row = &v8_rows[VW_ROW];
	const uint32_t nr = 2000, page = 4096, alone = 0x60000;
	int asked = 1;

	v8_put_scripts(row, VW_ISOLATE);
	attach_epoch();
	v8_put_smi(VW_FUNCTIONS - 1 + 8, (int32_t)nr);
	for (uint32_t i = 0; i < nr; i++)
		put64(VW_FUNCTIONS - 1 + 16 + 8ULL * i, (WORLD + alone + i % 128 * page + 1) | VW_WEAK);
	for (uint32_t i = 0; i < 128; i++) {
		v8_put_object(WORLD + alone + i * page + 1, 262);
		put64(WORLD + alone + i * page + row->shared_data, VW_BYTECODES + 0x40);
	}
	v8_put_object(VW_BYTECODES + 0x40, 191);
	put64(VW_FUNCTIONS - 1 + 16 + 8ULL * (nr - 1), VW_SHARED(0) | VW_WEAK);
	while (decode_bytecodes(VW_BYTECODES, 0, epoch_of(6)) && asked < 10) {
		ck_assert_uint_le(memory.bytes, 15u << 18);
		asked++;
	}
	ck_assert_int_gt(asked, 1);
	ck_assert_int_lt(asked, 10);
	ck_assert_str_eq(function.name, "first");
}
END_TEST

/* Lists that name one script and one function over and over need no more memory to be read. */
START_TEST(lists_without_end_keep_nobody_busy)
{
	const uint32_t scripts = 10000, functions = 10000;

	v8_put_scripts(&v8_rows[VW_ROW], VW_ISOLATE);
	attach_epoch();
	put64(VW_ISOLATE + v8_rows[VW_ROW].isolate_scripts, WORLD + 0x80001);
	put64(VW_SCRIPT - 1 + v8_rows[VW_ROW].script_functions, WORLD + 0xa0001);
	v8_put_smi(WORLD + 0x80000 + 16, (int32_t)scripts);
	v8_put_smi(WORLD + 0xa0000 + 8, (int32_t)functions);
	for (uint32_t i = 0; i < scripts; i++)
		put64(WORLD + 0x80000 + 24 + 8ULL * i, VW_SCRIPT | VW_WEAK);
	for (uint32_t i = 0; i < functions; i++)
		put64(WORLD + 0xa0000 + 16 + 8ULL * i, VW_SHARED(0) | VW_WEAK);
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(decode_bytecodes(VW_BYTECODES + 8, 0, epoch_of(6)), -ESTALE);
}
END_TEST

/* As it may hold more than was asked for. */
START_TEST(code_of_a_former_epoch_is_described_anew)
{
	attach_epoch();
	ck_assert_int_eq(code_at(VW_CODE_START + 5), 0);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	made.known_epoch = made.code.epoch;
	ck_assert_int_eq(v8_code(&attached, &memory, VW_CODE_START + 5, &made), -EALREADY);
	put_epochs(7, 107);
	memory_question(&memory);
	ck_assert_int_eq(v8_code(&attached, &memory, VW_CODE_START + 5, &made), 0);
}
END_TEST

static int decode_wasm(uint32_t i, uint32_t of)
{
	memset(&function, 0, sizeof(function));
	ck_assert_int_eq(code_at(VW_WASM_START(i) + 5), 0);
	ck_assert_uint_eq(made.code.kind, V8_WASM);
	ck_assert_uint_eq(made.code.start, VW_WASM_START(i));
	ck_assert_uint_eq(made.code.end, VW_WASM_START(i) + VW_WASM_BYTES);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	memory_question(&memory);
	return v8_decode(&attached, &memory, &made.functions[of], &function);
}

START_TEST(a_function_of_webassembly_has_the_name_of_the_name_section)
{
	setup_row((uint16_t)_i);
	ck_assert_int_eq(decode_wasm(VW_FIRST, 0), 0);
	ck_assert_str_eq(function.name, "first");
	ck_assert_str_eq(function.file, "/srv/app.js");
	ck_assert_uint_eq(function.nr_lines, 0);
}
END_TEST

/*
 * A memory full of modules, each with a name section of NAMES names of the same length. Numbers take five bytes, be they
 * small.
 */
#define NAMED_MODULE(i) (WORLD + ((uint64_t)(i) << 32))
#define NAME_STRIDE	64u
#define NAME_TEXT	6u /* of a name, behind its number and length */
#define NAMES		500000u
static const uint8_t names_head[] = {0, 'a', 's', 'm', 1, 0, 0, 0, 0, 0x90, 0x90, 0xa1, 0x8f, 0, 4, 'n', 'a', 'm', 'e', 1,
				     0x85, 0x90, 0xa1, 0x8f, 0, 0xa0, 0xc2, 0x9e, 0x80, 0};
#define NAMES_END (sizeof(names_head) + NAME_STRIDE * NAMES)

static uint8_t names_byte(uint64_t at)
{
	const uint64_t i = at < sizeof(names_head) ? 0 : (at - sizeof(names_head)) / NAME_STRIDE;
	const uint32_t in = (uint32_t)((at - sizeof(names_head)) % NAME_STRIDE);

	if (at < sizeof(names_head))
		return names_head[at];
	if (in < NAME_TEXT - 1)
		return (uint8_t)((i >> 7 * in & 0x7f) | (in < NAME_TEXT - 2 ? 0x80 : 0));
	return in < NAME_TEXT ? NAME_STRIDE - NAME_TEXT : (uint8_t)('a' + i % 26);
}

static int memory_of_names(struct memory *m, uint64_t addr, void *to, size_t len)
{
	(void)m;
	bytes_read += len;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = names_byte((addr + i - WORLD) & UINT32_MAX);
	return 0;
}

static int wasm_name(uint32_t i, int32_t script, uint32_t of)
{
	const struct v8_wasm_module module = {.address = 0x1000 + i, .script_id = script, .wire = NAMED_MODULE(i),
					      .wire_end = NAMED_MODULE(i) + NAMES_END};

	memory.read = memory_of_names;
	bytes_read = 0;
	memset(&function, 0, sizeof(function));
	memory_question(&memory);
	return v8_wasm_name(&memory, &module, of, function.name, sizeof(function.name));
}

START_TEST(modules_in_turn_do_not_have_their_names_looked_through_again)
{
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(wasm_name(i, 7, 100000), 0);
		ck_assert_uint_eq(function.name[0], 'a' + 100000 % 26);
	}
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(wasm_name(i, 7, 100001), 0);
		ck_assert_uint_eq(function.name[0], 'a' + 100001 % 26);
		ck_assert_uint_lt(bytes_read, 100000);
	}
}
END_TEST

START_TEST(a_name_that_is_far_away_is_not_given_up)
{
	ck_assert_int_eq(wasm_name(0, 7, NAMES - 1), -EBUSY);
	ck_assert_int_eq(wasm_name(1, 7, 0), 0);
	ck_assert_int_eq(wasm_name(0, 7, NAMES - 1), 0);
	ck_assert_uint_eq(function.name[0], 'a' + (NAMES - 1) % 26);
	ck_assert_int_eq(wasm_name(0, 7, NAMES), -ENOENT);
	ck_assert_int_eq(wasm_name(0, 0, NAMES - 1), -E2BIG);
}
END_TEST

START_TEST(a_function_of_webassembly_that_was_just_compiled_is_found)
{
	setup_row((uint16_t)_i);
	put32(VW_WASM_CODE(VW_SECOND) + v8_rows[_i].wasm.index, 300);
	ck_assert_int_eq(decode_wasm(VW_SECOND, 0), 0);
	ck_assert_str_eq(function.name, "far");
}
END_TEST

START_TEST(a_function_of_webassembly_without_a_name_has_its_number)
{
	ck_assert_int_eq(decode_wasm(VW_SECOND, 0), 0);
	ck_assert_str_eq(function.name, "wasm-function[2]");
	put64(VW_WIRE - 8, 30); /* cut within the name section */
	ck_assert_int_eq(decode_wasm(VW_FIRST, 0), 0);
	ck_assert_str_eq(function.name, "wasm-function[1]");
}
END_TEST

START_TEST(wrappers_and_jump_tables_of_webassembly_are_named_for_what_they_are)
{
	setup_row((uint16_t)_i);
	ck_assert_int_eq(code_at(VW_WASM_START(VW_TABLE_CODE) + 0x100), 0);
	ck_assert_str_eq(made.code.name, "[wasm jump table]");
	ck_assert_uint_eq(made.code.nr_functions, 0);
	if (!v8_rows[_i].wasm.wrappers)
		return;
	ck_assert_int_eq(code_at(VW_WASM_START(VW_TO_JS)), 0);
	ck_assert_str_eq(made.code.name, "[wasm-to-js wrapper]");
}
END_TEST

START_TEST(wrappers_in_the_heap_are_left_as_webassembly_is)
{
	code_of(7, "\x55\x48\x89\xe5", 4);
	ck_assert_str_eq(made.code.name, "[js-to-wasm wrapper]");
	ck_assert_uint_eq(made.code.kind, V8_WASM);
	code_of(3, "\x55\x48\x89\xe5", 4);
	ck_assert_str_eq(made.code.name, "[regular expression]");
	ck_assert_uint_eq(made.code.kind, V8_REGEXP);
	code_of(1, "\x55\x48\x89\xe5", 4);
	ck_assert_str_eq(made.code.name, "[generated code of V8]");
}
END_TEST

/* Where one module lay, another one lies: nothing but its script's number tells. */
START_TEST(another_module_in_its_place_is_stale)
{
	struct runtime_frame f;

	ck_assert_int_eq(decode_wasm(VW_FIRST, 0), 0);
	f = made.functions[0];
	memcpy(made.known, made.code.identity, sizeof(made.known));
	ck_assert_int_eq(code_at(VW_WASM_START(VW_FIRST)), -EALREADY);
	put64(VW_NODE(9) + 8, WORLD + 0x335); /* the script is being moved, and is the same */
	ck_assert_int_eq(code_at(VW_WASM_START(VW_FIRST)), -EALREADY);
	put64(VW_NODE(8) + 24, VW_SCRIPT_ID + 1);
	memory_question(&memory);
	ck_assert_int_eq(v8_decode(&attached, &memory, &f, &function), -ESTALE);
	ck_assert_int_eq(code_at(VW_WASM_START(VW_FIRST)), 0);
	put64(VW_MANAGER + v8_rows[VW_ROW].wasm.spaces, 0);
	memory_question(&memory);
	ck_assert_int_eq(v8_decode(&attached, &memory, &f, &function), -ESTALE);
}
END_TEST

/* Without a script, names tell modules apart. */
START_TEST(a_module_without_a_script_has_names_but_no_file)
{
	struct runtime_frame f;

	put64(VW_MANAGER + v8_rows[VW_ROW].wasm.isolates, 0);
	ck_assert_int_eq(decode_wasm(VW_FIRST, 0), 0);
	ck_assert_str_eq(function.name, "first");
	ck_assert_str_eq(function.file, "");
	f = made.functions[0];
	put(VW_WIRE + 34, "other", 5);
	memory_question(&memory);
	ck_assert_int_eq(v8_decode(&attached, &memory, &f, &function), -ESTALE);
	ck_assert_int_eq(decode_wasm(VW_FIRST, 0), 0);
	ck_assert_str_eq(function.name, "other");
}
END_TEST

/* How many functions are at an offset of the first one, in which the second one is inlined. */
static uint32_t wasm_frames_at(uint32_t offset)
{
	uint64_t chain[4];

	return code_chain(&made, VW_WASM_START(VW_FIRST) + offset, false, chain);
}

START_TEST(what_is_inlined_into_webassembly_is_told_by_its_calls)
{
	setup_row(3);
	ck_assert_int_eq(decode_wasm(VW_FIRST, 1), 0);
	ck_assert_str_eq(function.name, "wasm-function[2]");
	ck_assert_uint_eq(made.code.nr_functions, 2);
	ck_assert_uint_eq(wasm_frames_at(0x1f), 1);
	ck_assert_uint_eq(wasm_frames_at(0x20), 2);
	ck_assert_uint_eq(wasm_frames_at(0x2f), 2);
	ck_assert_uint_eq(wasm_frames_at(0x30), 1);
	ck_assert_uint_eq(wasm_frames_at(0x60), 1);
	ck_assert_uint_eq(wasm_frames_at(0x1ff), 1);
}
END_TEST

START_TEST(inlinings_of_webassembly_that_lead_in_a_circle_are_left_out)
{
	const int64_t itself = (int64_t)1 << 31 | 2;

	setup_row(3);
	for (uint32_t i = 0; i < 64; i++)
		put(VW_METADATA + i, &itself, sizeof(itself));
	ck_assert_int_eq(code_at(VW_WASM_START(VW_FIRST)), 0);
	ck_assert_uint_eq(made.code.nr_functions, 1);
	ck_assert_uint_eq(wasm_frames_at(0x20), 1);
}
END_TEST

/* The caller's address as of code of WebAssembly, as caller_at. */
static uint64_t wasm_caller_at(uint32_t offset)
{
	struct runtime_step s;

	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x111);
	put64(FP - 8, 8);
	put64(FP - 0x100, WORLD + 0x222);
	ck_assert_int_eq(step(VW_WASM_START(VW_FIRST) + offset, true, FP - 0x100, &s), 0);
	return s.pc - WORLD;
}

START_TEST(webassembly_has_a_frame_by_its_own_instructions_or_by_a_call)
{
	static const uint8_t own[] = {0x55, 0x48, 0x89, 0xe5, 0x6a, 8, 0x90, 0x48, 0x8b, 0xe5, 0x5d, 0xc2, 0x10, 0, 0x50};
	static const uint8_t call[] = {0x41, 0xbc, 6, 0, 0, 0, 0xe8, 1, 2, 3, 4, 0x48, 0x81, 0xec};

	put(VW_WASM_START(VW_FIRST), own, sizeof(own));
	ck_assert_int_eq(code_at(VW_WASM_START(VW_FIRST)), 0);
	ck_assert_uint_eq(wasm_caller_at(0), 0x222);
	ck_assert_uint_eq(wasm_caller_at(6), 0x111);
	ck_assert_uint_eq(wasm_caller_at(11), 0x222);
	ck_assert_uint_eq(wasm_caller_at(14), 0x111);
	put(VW_WASM_START(VW_FIRST), call, sizeof(call));
	ck_assert_int_eq(code_at(VW_WASM_START(VW_FIRST)), 0);
	ck_assert_uint_eq(wasm_caller_at(6), 0x222);
	ck_assert_uint_eq(wasm_caller_at(11), 0x111);
}
END_TEST

/* As Maglev makes it: each return has an epilogue of its own. */
START_TEST(each_of_many_returns_leads_to_the_caller)
{
	static const uint8_t prologue[] = {0x55, 0x48, 0x89, 0xe5, 0x56};
	static const uint8_t epilogue[] = {0x48, 0x8b, 0xe5, 0x5d, 0x49, 0x83, 0xf8, 0x02, 0x0f, 0x8f, 3, 0, 0, 0, 0xc2, 0x10, 0,
					   0x41, 0x5a, 0x4a, 0x8d, 0x24, 0xc4, 0x41, 0x52, 0xc3};

	put32(VW_CODE(&v8_rows[VW_ROW]) - 1 + v8_rows[VW_ROW].code_size, 0x400);
	put32(VW_CODE(&v8_rows[VW_ROW]) - 1 + v8_rows[VW_ROW].code_flags, v8_rows[VW_ROW].kind_maglev);
	put(VW_CODE_START, prologue, sizeof(prologue));
	for (uint32_t i = 0; i < 18; i++)
		put(VW_CODE_START + 0x80 + 48 * i, epilogue, sizeof(epilogue));
	ck_assert_int_eq(code_at(VW_CODE_START), 0);
	ck_assert_uint_eq(made.code.kind, V8_OPTIMIZED);
	for (uint32_t i = 0; i < 18; i++) {
		ck_assert_uint_eq(caller_at(0x80 + 48 * i), 0x111);
		ck_assert_uint_eq(caller_at(0x80 + 48 * i + 4), 0x222);
		ck_assert_uint_eq(caller_at(0x80 + 48 * i + 14), 0x222);
		ck_assert_uint_eq(caller_at(0x80 + 48 * i + sizeof(epilogue)), 0x111);
	}
}
END_TEST

/* More returns than a region has room for. */
START_TEST(behind_the_last_return_that_is_told_nothing_is_known)
{
	static const uint8_t epilogue[] = {0x48, 0x8b, 0xe5, 0x5d, 0xc3};
	const uint64_t start = WORLD + 0x10000;
	struct runtime_step s;

	memset(&made, 0, sizeof(made));
	made.code = (struct runtime_code){.start = start, .end = start + 8 * RUNTIME_CODE_MORE, .kind = V8_WASM};
	put(start, "\x55\x48\x89\xe5", 4);
	for (uint32_t i = 0; i < RUNTIME_CODE_MORE / 2; i++)
		put(start + 8 * (i + 1), epilogue, sizeof(epilogue));
	memory_question(&memory);
	v8_events(&memory, &made, 1);
	ck_assert_uint_eq(made.code.nr_more, RUNTIME_CODE_MORE);
	ck_assert_int_eq(step(start + 8 + 4, true, FP - 0x100, &s), 0);
	ck_assert_int_eq(step(start + 4 * RUNTIME_CODE_MORE, true, FP - 0x100, &s), -ENODATA);
}
END_TEST

/* It is called by code whose frame it makes, and stands for that code until then. */
START_TEST(what_makes_a_frame_of_webassembly_leads_to_its_caller)
{
	static const uint8_t code[] = {0x5f, 0x55, 0x48, 0x89, 0xe5, 0x6a, 8, 0x57, 0xc3};
	struct runtime_step s;

	((struct v8 *)attached.param)->setup = VW_BUILTINS + 0x100;
	put(VW_BUILTINS + 0x100, code, sizeof(code));
	put64(FP - 0x100, WORLD + 0x222);
	put64(FP - 0xf8, WORLD + 0x333);
	put64(FP, FP + 0x100);
	put64(FP + 8, WORLD + 0x111);
	ck_assert_int_eq(code_at(VW_BUILTINS + 0x100), 0);
	ck_assert_int_eq(step(VW_BUILTINS + 0x100, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x333);
	ck_assert_uint_eq(s.fp, FP);
	ck_assert_int_eq(step(VW_BUILTINS + 0x101, true, FP - 0x100, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x222);
	ck_assert_int_eq(step(VW_BUILTINS + 0x107, true, FP - 8, &s), 0);
	ck_assert_uint_eq(s.pc, WORLD + 0x111);
}
END_TEST

/* --interpreted-frames-native-stack; of what else is built in, only jumps are on the heap. */
START_TEST(a_copy_of_what_enters_bytecodes_is_its_functions)
{
	const struct v8_row *row = &v8_rows[_i];

	setup_row((uint16_t)_i);
	put32(VW_CODE(row) - 1 + row->code_flags, row->kind_builtin);
	ck_assert_int_eq(code_at(VW_CODE_START + 0x20), 0);
	ck_assert_uint_eq(made.code.kind, V8_TRAMPOLINE);
	put32(VW_CODE(row) - 1 + row->code_size, 0x40);
	ck_assert_int_eq(code_at(VW_CODE_START + 0x20), 0);
	ck_assert_uint_eq(made.code.kind, V8_BUILTIN);
}
END_TEST

Suite *runtime_v8_suite(void)
{
	Suite *s = suite_create("runtime_v8");
	TCase *t = tcase_create("v8");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, a_copy_of_what_enters_bytecodes_is_its_functions, 0, VW_ROWS);
	tcase_add_test(t, lines_end_where_the_language_says);
	tcase_add_test(t, lines_at_the_end_of_a_long_script_are_known_at_once);
	tcase_add_test(t, a_long_script_is_not_counted_again_for_others);
	tcase_add_test(t, long_scripts_that_are_not_asked_for_make_room);
	tcase_add_test(t, a_function_that_is_longer_than_may_be_read_has_its_first_lines);
	tcase_add_test(t, behind_the_last_line_that_there_is_room_for_nothing_is_read);
	tcase_add_test(t, each_character_is_looked_at);
	tcase_add_test(t, a_script_goes_by_the_url_that_its_source_gives);
	tcase_add_test(t, a_function_has_name_script_and_lines_of_its_bytecodes);
	tcase_add_test(t, the_entry_of_a_function_is_a_place_before_its_first_bytecode);
	tcase_add_test(t, a_place_that_no_bytecode_can_have_ends_a_table);
	tcase_add_test(t, a_function_without_name_has_the_inferred_one);
	tcase_add_test(t, places_of_compiled_code_have_columns);
	tcase_add_test(t, a_long_line_has_columns_too);
	tcase_add_test(t, a_function_that_was_copied_is_found_where_it_is);
	tcase_add_test(t, another_function_in_its_place_is_stale);
	tcase_add_test(t, what_is_read_is_of_an_epoch);
	tcase_add_test(t, a_closure_is_known_until_something_moves);
	tcase_add_test(t, until_there_is_an_isolate_nothing_is_attached);
	tcase_add_loop_test(t, a_walk_copies_counters_and_the_number_of_the_thread, 0, VW_ROWS);
	tcase_add_test(t, each_isolate_has_its_epochs);
	tcase_add_test(t, a_copy_of_builtins_is_left_as_the_files_own);
	tcase_add_test(t, a_frame_that_was_deoptimized_is_its_functions);
	tcase_add_test(t, the_rest_of_a_builtin_is_named_where_a_frame_returns_to_its_begin);
	tcase_add_test(t, a_builtin_that_passes_arguments_on_has_its_return_address_in_a_register);
	tcase_add_loop_test(t, a_builtin_that_restores_the_context_takes_its_frame_down_before, 0, 8);
	tcase_add_test(t, places_of_a_function_are_read_once);
	tcase_add_test(t, a_place_of_the_entry_is_that_of_the_first_bytecode);
	tcase_add_test(t, a_copy_of_builtins_is_there_as_long_as_its_isolate);
	tcase_add_test(t, code_of_webassembly_is_of_its_samples_epoch);
	tcase_add_test(t, of_an_isolate_that_has_ended_nothing_is_known);
	tcase_add_test(t, where_a_thread_keeps_its_isolate_is_not_known_the_only_one_has_epochs);
	tcase_add_test(t, where_there_is_no_heap_there_are_no_epochs);
	tcase_add_loop_test(t, bytecodes_whose_closure_is_dead_are_found_by_the_lists_of_scripts, 0, VW_ROWS);
	tcase_add_test(t, bytecodes_behind_code_are_found_by_the_lists_of_scripts);
	tcase_add_test(t, what_is_dead_is_in_no_list);
	tcase_add_test(t, an_epoch_that_is_bounded_is_known_while_it_lasts);
	tcase_add_test(t, without_epochs_no_list_tells_whose_bytecodes_these_were);
	tcase_add_test(t, a_long_list_is_searched_by_several_questions);
	tcase_add_test(t, lists_without_end_keep_nobody_busy);
	tcase_add_test(t, code_of_a_former_epoch_is_described_anew);
	tcase_add_test(t, optimized_code_has_what_was_inlined);
	tcase_add_loop_test(t, what_lies_between_places_of_an_inlined_function_is_its_own, 0, VW_ROWS);
	tcase_add_test(t, a_position_is_of_all_up_to_its_call);
	tcase_add_loop_test(t, a_call_of_maglev_is_known_by_the_table_behind_its_code, VW_ROW, VW_ROWS);
	tcase_add_test(t, a_call_of_many_arguments_is_its_positions);
	tcase_add_test(t, a_position_of_another_function_parts_those_around_it);
	tcase_add_loop_test(t, deoptimization_data_that_makes_no_sense_leaves_calls, 0, VW_ROWS);
	tcase_add_loop_test(t, at_its_exits_code_is_where_they_are_left_from, 0, VW_ROWS);
	tcase_add_test(t, a_place_behind_the_code_is_left_out);
	tcase_add_loop_test(t, what_lies_between_two_functions_is_the_one_around_both, 0, ARRAY_SIZE(betweens));
	tcase_add_test(t, a_loop_belongs_to_the_function_that_checks_in_it);
	tcase_add_loop_test(t, each_version_has_its_own_offsets, 0, VW_ROWS);
	tcase_add_loop_test(t, the_top_level_of_a_module_has_a_name, 0, VW_ROWS);
	tcase_add_loop_test(t, a_function_of_many_locals_has_a_name, 0, VW_ROWS);
	tcase_add_loop_test(t, a_function_that_is_watched_has_its_script, 0, VW_ROW + 1);
	tcase_add_loop_test(t, large_code_is_found_from_far_behind_its_begin, 0, ARRAY_SIZE(larges));
	tcase_add_test(t, no_row_lacks_a_test);
	tcase_add_test(t, a_scope_that_extends_its_context_has_a_name);
	tcase_add_loop_test(t, a_scope_of_many_locals_has_a_name, 0, 2);
	tcase_add_test(t, code_that_is_still_there_is_not_read_again);
	tcase_add_test(t, the_caller_is_found_before_in_and_behind_a_frame);
	tcase_add_loop_test(t, optimized_code_without_data_is_its_frames_function, 0, VW_ROWS);
	tcase_add_test(t, code_that_was_parted_from_its_data_is_not_what_was_known);
	tcase_add_test(t, data_that_were_taken_from_code_are_found_where_they_were_made);
	tcase_add_loop_test(t, what_else_lies_behind_a_table_of_positions_is_not_a_codes_data, 0, 4);
	tcase_add_test(t, code_that_takes_a_frame_over_has_it_from_its_begin);
	tcase_add_test(t, baseline_code_has_its_frame_from_its_first_call_on);
	tcase_add_test(t, a_regular_expression_makes_its_frame_at_its_end);
	tcase_add_test(t, a_bytecode_that_runs_stands_for_its_function);
	tcase_add_test(t, a_bytecode_that_calls_has_a_frame_whatever_its_instructions_say);
	tcase_add_test(t, a_stub_without_frame_is_known_by_its_callers_context);
	tcase_add_test(t, a_bytecode_without_frame_is_its_functions);
	tcase_add_loop_test(t, a_function_of_webassembly_has_the_name_of_the_name_section, 0, VW_WASM_ROWS);
	tcase_add_test(t, modules_in_turn_do_not_have_their_names_looked_through_again);
	tcase_add_test(t, a_name_that_is_far_away_is_not_given_up);
	tcase_add_loop_test(t, a_function_of_webassembly_that_was_just_compiled_is_found, 0, VW_WASM_ROWS);
	tcase_add_test(t, a_function_of_webassembly_without_a_name_has_its_number);
	tcase_add_loop_test(t, wrappers_and_jump_tables_of_webassembly_are_named_for_what_they_are, 0, VW_WASM_ROWS);
	tcase_add_test(t, wrappers_in_the_heap_are_left_as_webassembly_is);
	tcase_add_test(t, another_module_in_its_place_is_stale);
	tcase_add_test(t, a_module_without_a_script_has_names_but_no_file);
	tcase_add_test(t, what_is_inlined_into_webassembly_is_told_by_its_calls);
	tcase_add_test(t, inlinings_of_webassembly_that_lead_in_a_circle_are_left_out);
	tcase_add_test(t, webassembly_has_a_frame_by_its_own_instructions_or_by_a_call);
	tcase_add_test(t, each_of_many_returns_leads_to_the_caller);
	tcase_add_test(t, behind_the_last_return_that_is_told_nothing_is_known);
	tcase_add_test(t, what_makes_a_frame_of_webassembly_leads_to_its_caller);
	suite_add_tcase(s, t);
	return s;
}
