// SPDX-License-Identifier: Apache-2.0
/* HotSpot: a made-up heap of code; compressed numbers, scopes, lines, and the steps out of each kind of frame. */
#include <check.h>

#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "runtime/hotspot_flow.h"
#include "tests/lib/code_world.h"
#include "runtime/hotspot_pushed.h"
#include "tests/lib/hotspot_world.h"
#include "tests/lib/symbols_elf.h"

Suite *runtime_hotspot_suite(void);

static struct runtime_attached attached;
static struct runtime_code_made made;
static struct runtime_function function;

static void setup(void)
{
	memset(world, 0, sizeof(world));
	memory_question(&memory);
	hotspot_world_make(&attached, 17);
	memset(&made, 0, sizeof(made));
}

/* --- numbers --- */

static uint32_t number(uint16_t version, const uint8_t *bytes, size_t len, uint64_t *ret_used)
{
	struct hotspot_numbers n = {0};
	uint32_t v = 0;

	put(WORLD + 0x9000, bytes, len);
	hotspot_numbers_at(&n, &memory, version, WORLD + 0x9000);
	ck_assert_int_eq(hotspot_unsigned(&n, &v), 0);
	*ret_used = n.at - (WORLD + 0x9000);
	return v;
}

/* OpenJDK, unsigned5.hpp: the bytes are its own examples of limits. */
START_TEST(numbers_have_six_bits_a_byte)
{
	static const uint8_t small[] = {191}, two[] = {192, 0}, all[] = {255, 255, 255, 255, 255};
	uint64_t used;

	ck_assert_uint_eq(number(17, small, sizeof(small), &used), 191);
	ck_assert_uint_eq(used, 1);
	ck_assert_uint_eq(number(17, two, sizeof(two), &used), 192);
	ck_assert_uint_eq(used, 2);
	ck_assert_uint_eq(number(17, all, sizeof(all), &used),
			  255u + (255u << 6) + (255u << 12) + (255u << 18) + (255u << 24));
	ck_assert_uint_eq(used, 5);
}
END_TEST

START_TEST(since_20_no_byte_of_a_number_is_zero)
{
	static const uint8_t zero[] = {1}, small[] = {191}, two[] = {192, 1}, broken[] = {0};
	struct hotspot_numbers n = {0};
	uint64_t used;
	uint32_t v;

	ck_assert_uint_eq(number(20, zero, sizeof(zero), &used), 0);
	ck_assert_uint_eq(number(20, small, sizeof(small), &used), 190);
	ck_assert_uint_eq(number(20, two, sizeof(two), &used), 191);
	ck_assert_uint_eq(used, 2);
	put(WORLD + 0x9000, broken, sizeof(broken));
	hotspot_numbers_at(&n, &memory, 20, WORLD + 0x9000);
	ck_assert_int_eq(hotspot_unsigned(&n, &v), -EBADMSG);
}
END_TEST

START_TEST(numbers_end_with_the_memory)
{
	struct hotspot_numbers n = {0};
	uint8_t last = 255;
	uint32_t v;

	put(WORLD + WORLD_BYTES - 1, &last, 1);
	hotspot_numbers_at(&n, &memory, 17, WORLD + WORLD_BYTES - 1);
	ck_assert_int_lt(hotspot_unsigned(&n, &v), 0);
}
END_TEST

/* --- methods --- */

static int decode(uint64_t method, uint64_t cache)
{
	const struct runtime_frame f = {.key = method, .cookie = {cache}};

	memset(&function, 0, sizeof(function));
	memory_question(&memory);
	return hotspot_decode(&attached, &memory, &f, &function);
}

static uint32_t line_at(uint64_t method, int32_t bci)
{
	struct hotspot_method m;
	uint32_t position, line = 0;

	ck_assert_int_eq(hotspot_method_read(hotspot_of(&attached), &memory, method, &m), 0);
	position = hotspot_position(&m, bci);
	for (uint32_t i = 0; i < function.nr_lines && function.lines[i].position <= position; i++)
		line = function.lines[i].line;
	return line;
}

START_TEST(a_method_has_class_signature_file_and_lines)
{
	ck_assert_int_eq(decode(HW_METHOD(0), HW_CACHE(0)), 0);
	ck_assert_str_eq(function.name, "org.demo.Outer$Inner.put(int, String[], long[][])");
	ck_assert_str_eq(function.file, "org/demo/Outer.java");
	ck_assert_uint_eq(function.start_line, 40);
	ck_assert_uint_eq(line_at(HW_METHOD(0), 0), 40);
	ck_assert_uint_eq(line_at(HW_METHOD(0), 5), 42);
	ck_assert_uint_eq(line_at(HW_METHOD(0), 30), 300);
}
END_TEST

START_TEST(a_hidden_class_is_without_its_address)
{
	ck_assert_int_eq(decode(HW_METHOD(1), HW_CACHE(1)), 0);
	ck_assert_str_eq(function.name, "Main$$Lambda.run()");
	ck_assert_str_eq(function.file, "");
	ck_assert_uint_eq(line_at(HW_METHOD(1), 0), 0);
}
END_TEST

/* With lines and without. What begins in the last bytes of 32 bits has no rows that are in order. */
START_TEST(a_method_is_bounded_by_its_bytecodes)
{
	struct hotspot_method m;

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(decode(HW_METHOD(i), HW_CACHE(i)), 0);
		ck_assert_int_eq(hotspot_method_read(hotspot_of(&attached), &memory, HW_METHOD(i), &m), 0);
		ck_assert(function.is_bounded);
		ck_assert_uint_eq(function.lines[0].position, hotspot_position(&m, 0));
		ck_assert_uint_eq(function.lines[function.nr_lines - 1].position, hotspot_position(&m, 0) + m.code_size);
		ck_assert_uint_eq(function.lines[function.nr_lines - 1].line, 0);
	}
}
END_TEST

/* Addresses are those of 16 digits, and of fewer where the class is from the archive. */
/* As of the constructor of a record of 90 strings. */
START_TEST(a_method_of_many_parameters_has_its_name)
{
	const uint64_t symbol = WORLD + 0x30000;
	char signature[90 * 18 + 4] = "(";

	for (int i = 0; i < 90; i++)
		strcat(signature, "Ljava/lang/String;");
	strcat(signature, ")V");
	hotspot_put_symbol(symbol, signature);
	put64(HW_METHOD(0) + 0x200 + 72 + 8 * 2, symbol);
	ck_assert_int_eq(decode(HW_METHOD(0), HW_CACHE(0)), 0);
	ck_assert_ptr_nonnull(strstr(function.name, "(String, String, String, "));
}
END_TEST

START_TEST(a_class_may_have_a_plus_in_its_name)
{
	static const struct { const char *class, *function; } names[] = {
		{"org/demo/A+B", "org.demo.A+B.run()"},
		{"org/demo/A+B+0x0000000800c03000", "org.demo.A+B.run()"},
		{"org/demo/A$$Lambda+0x80000003b", "org.demo.A$$Lambda.run()"},
		{"org/demo/+", "org.demo.+.run()"},
		{"org/demo/A+0x", "org.demo.A+0x.run()"},
		{"org/demo/A+0xface+more", "org.demo.A+0xface+more.run()"},
		{"org/demo/A+0xfeatures", "org.demo.A+0xfeatures.run()"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		hotspot_put_method(HW_METHOD(1), names[i].class, "run", "()V", "", (const uint8_t *)"", 0);
		ck_assert_int_eq(decode(HW_METHOD(1), HW_CACHE(1)), 0);
		ck_assert_str_eq(function.name, names[i].function);
	}
}
END_TEST

START_TEST(a_method_of_another_class_by_now_is_stale)
{
	ck_assert_int_eq(decode(HW_METHOD(0), HW_CACHE(1)), -ESTALE);
	ck_assert_int_eq(decode(HW_METHOD(0), 0), 0);
	ck_assert_int_lt(decode(HW_METHOD(0) + 1, 0), 0);
	ck_assert_int_lt(decode(WORLD + WORLD_BYTES, 0), 0);
}
END_TEST

START_TEST(a_method_of_code_that_is_gone_is_stale)
{
	struct runtime_frame f = {.key = HW_METHOD(0), .cookie = {HW_CACHE(0), 77ULL << 32, HW_BLOB}};
	const uint8_t unused = 0;

	ck_assert_int_eq(hotspot_decode(&attached, &memory, &f, &function), 0);
	f.cookie[1] = 78ULL << 32;
	ck_assert_int_eq(hotspot_decode(&attached, &memory, &f, &function), -ESTALE);
	f.cookie[1] = 77ULL << 32;
	put(HW_BLOCK + HW_BLOCK_USED, &unused, 1);
	ck_assert_int_eq(hotspot_decode(&attached, &memory, &f, &function), -ESTALE);
}
END_TEST

START_TEST(a_method_without_its_texts_is_stale)
{
	const uint16_t none = 0;

	put(HW_METHOD(0) + 0xa00 + 0x80 + 4, &none, sizeof(none));
	ck_assert_int_eq(decode(HW_METHOD(0), 0), -ESTALE);
}
END_TEST

/* --- epochs --- */

static int code_at(uint64_t pc);

static struct otp_walk walk;
static struct binary no_symbols;
static const struct runtime_file file = {.binary = &no_symbols};

static void attach_epoch(void)
{
	memset(&walk, 0, sizeof(walk));
	memory_question(&memory);
	hotspot_epoch_attach(&file, &memory, (void *)attached.param, &walk);
}

/* The epoch of a sample that is taken now, by its walk. */
static uint64_t epoch_of_sample(void)
{
	static struct otp_walker walker;
	const struct otp_walked *w = (const void *)walker.out;
	uint64_t root;

	otp_walk_prepare(&walker.ready, &walk);
	walker.taken = 0;
	otp_walk_run(&walker, 0, 1, 0);
	ck_assert_uint_eq(w->end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(w->frames, 0);
	ck_assert_uint_eq(w->root_words, 1);
	root = walker.out[OTP_WALK_HEAD];
	return hotspot_epoch(&attached, &root, w->root_words);
}

static int decode_of_epoch(uint64_t epoch)
{
	const struct runtime_frame f = {.key = HW_METHOD(0), .cookie = {HW_CACHE(0), [RUNTIME_COOKIE_EPOCH] = epoch}};

	memory_question(&memory);
	return hotspot_decode(&attached, &memory, &f, &function);
}

START_TEST(a_method_is_not_named_once_a_class_was_unloaded_since_the_sample)
{
	uint64_t before, after;

	put64(HW_UNLOADED, 7);
	attach_epoch();
	before = epoch_of_sample();
	ck_assert_uint_eq(before, hotspot_epoch(&attached, NULL, 0));
	ck_assert_uint_ne(before, 0);
	ck_assert_int_eq(decode_of_epoch(before), 0);
	put64(HW_UNLOADED, 8);
	after = epoch_of_sample();
	ck_assert_uint_gt(after, before);
	ck_assert_int_eq(decode_of_epoch(before), -ESTALE);
	ck_assert_int_eq(decode_of_epoch(after), 0);
	ck_assert_int_eq(decode_of_epoch(0), 0);
}
END_TEST

START_TEST(without_counters_collections_are_the_epochs)
{
	uint64_t before;

	put64(HW_PERF, 0);
	put32(HW_COLLECTOR + HW_COLLECTIONS, 7);
	put32(HW_COLLECTOR + HW_COLLECTIONS - 4, 99);
	attach_epoch();
	before = epoch_of_sample();
	ck_assert_uint_eq(before, 8);
	put32(HW_COLLECTOR + HW_COLLECTIONS - 4, 100);
	ck_assert_int_eq(decode_of_epoch(before), 0);
	put32(HW_COLLECTOR + HW_COLLECTIONS, 8);
	ck_assert_int_eq(decode_of_epoch(before), -ESTALE);
}
END_TEST

/* Methods stay, and their names with them; a region is of the epoch in which it was read. */
START_TEST(code_has_epochs_of_its_own)
{
	struct hotspot *h = (void *)attached.param;
	uint64_t root[] = {7, 41};

	put64(HW_UNLOADED, 7);
	put64(HW_CODE_EPOCH, 41);
	attach_epoch();
	ck_assert_uint_eq(h->code_epoch_at, 0); /* there is no symbol */
	ck_assert_uint_eq(hotspot_code_epoch(&attached, root, 1), 8); /* of 17: that of classes has to do */
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(made.code.epoch, 8);
	h->version = 21;
	ck_assert_uint_eq(hotspot_code_epoch(&attached, root, 1), 0);
	h->version = 17;
	h->code_epoch_at = HW_CODE_EPOCH;
	ck_assert_uint_eq(hotspot_code_epoch(&attached, root, 2), 49);
	ck_assert_uint_eq(hotspot_epoch(&attached, root, 2), 8);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(made.code.epoch, 49);
	put64(HW_CODE_EPOCH, 43);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(made.code.epoch, 51);
	ck_assert_int_eq(decode_of_epoch(8), 0);
}
END_TEST

/* Within a traversal, code of unloaded classes is given up. Since 20 collections give up code, which the counter tells. */
START_TEST(the_end_of_a_class_ends_an_epoch_of_code_where_there_is_a_sweeper)
{
	struct hotspot *h = (void *)attached.param;
	uint64_t root[] = {7, 41}, later[] = {8, 41};

	put64(HW_UNLOADED, 8);
	put64(HW_CODE_EPOCH, 41);
	attach_epoch();
	h->code_epoch_at = HW_CODE_EPOCH;
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(hotspot_code_epoch(&attached, later, 2), made.code.epoch);
	ck_assert_uint_lt(hotspot_code_epoch(&attached, root, 2), made.code.epoch);
	h->version = 21;
	ck_assert_uint_eq(hotspot_code_epoch(&attached, root, 2), 40);
	ck_assert_uint_eq(hotspot_code_epoch(&attached, later, 2), 40);
}
END_TEST

START_TEST(epochs_of_code_begin_with_one)
{
	struct hotspot *h = (void *)attached.param;
	uint64_t root[] = {0, 0};

	attach_epoch();
	h->code_epoch_at = HW_CODE_EPOCH;
	ck_assert_uint_eq(hotspot_code_epoch(&attached, root, 2), 1);
	h->version = 21;
	ck_assert_uint_eq(hotspot_code_epoch(&attached, root, 2), 0); /* none of theirs says so */
	root[1] = 2;
	ck_assert_uint_eq(hotspot_code_epoch(&attached, root, 2), 1);
}
END_TEST

#define REDEFINED "_ZN18VM_RedefineClasses11_id_counterE"
#define GC_EPOCH  "_ZN9CodeCache9_gc_epochE"
#define SWEEPER	  "_ZN14NMethodSweeper11_traversalsE"
#define VARIABLES 0x900 /* in the file; where the first one is in the process: */
#define VARIABLE(i) (HW_CODE_EPOCH + 8 * (i))

static int code_at(uint64_t pc);

/* Where the counter for code lies, of a file with these symbols. */
static uint64_t code_epoch_with(const char *first, const char *second, uint64_t bias)
{
	struct hotspot *h = (void *)attached.param;
	struct runtime_file with = {.bias = bias};
	struct symbols_elf elf;

	symbols_elf_init(&elf, EM_X86_64);
	symbols_elf_add(&elf, "", 0);
	symbols_elf_add(&elf, first, VARIABLES);
	symbols_elf_add(&elf, second, VARIABLES + 8);
	with.binary = symbols_elf_open(&elf);
	memset(&walk, 0, sizeof(walk));
	memory_question(&memory);
	hotspot_epoch_attach(&with, &memory, h, &walk);
	binary_put(with.binary);
	ck_assert_uint_eq(walk.also.at[0], h->code_epoch_at);
	ck_assert_uint_eq(walk.also.at[1], h->redefined_at);
	return h->code_epoch_at;
}

START_TEST(the_counter_for_code_is_that_of_the_collector_or_the_sweeper)
{
	const uint64_t bias = HW_CODE_EPOCH - VARIABLES;
	uint8_t used = 1;

	ck_assert_uint_eq(code_epoch_with(SWEEPER, "other", bias), VARIABLE(0));
	ck_assert(((struct hotspot *)attached.param)->code_may_go); /* that of loops, of classes that are counted already */
	ck_assert_uint_eq(code_epoch_with(SWEEPER, GC_EPOCH, bias), VARIABLE(1));
	ck_assert_uint_eq(code_epoch_with("other", "UseZGC", bias), 0);
	ck_assert_uint_eq(code_epoch_with(GC_EPOCH, "UseZGC", bias), VARIABLE(0));
	ck_assert_uint_eq(code_epoch_with(GC_EPOCH, "UseShenandoahGC", bias), VARIABLE(0));
	ck_assert(!((struct hotspot *)attached.param)->code_may_go);
	put(VARIABLE(1), &used, 1);
	ck_assert_uint_eq(code_epoch_with(GC_EPOCH, "UseG1GC", bias), VARIABLE(0));
	ck_assert(!((struct hotspot *)attached.param)->code_may_go);
}
END_TEST

/* Of a sample, by the words in the order of the plan; also where there is no counter for code. */
START_TEST(a_redefined_class_ends_an_epoch_of_methods)
{
	const uint64_t with[] = {7, 41, 3}, without[] = {7, 3};

	put64(HW_UNLOADED, 7);
	put64(VARIABLE(1), 3);
	ck_assert_uint_ne(code_epoch_with(SWEEPER, REDEFINED, HW_CODE_EPOCH - VARIABLES), 0);
	ck_assert_uint_eq(hotspot_epoch(&attached, with, 3), 11);
	ck_assert_uint_eq(hotspot_epoch(&attached, NULL, 0), 11);
	ck_assert_uint_eq(hotspot_code_epoch(&attached, with, 3), 49); /* no code is given up for that */
	ck_assert_int_eq(decode_of_epoch(11), 0);
	put64(VARIABLE(1), 4);
	ck_assert_int_eq(decode_of_epoch(11), -ESTALE);
	ck_assert_int_eq(decode_of_epoch(12), 0);
	ck_assert_uint_eq(code_epoch_with("other", REDEFINED, HW_CODE_EPOCH - VARIABLES), 0);
	ck_assert_uint_eq(hotspot_epoch(&attached, without, 2), 11);
}
END_TEST

START_TEST(a_counter_that_could_not_be_read_says_no_epoch)
{
	const uint64_t code[] = {7, OTP_WALK_UNREAD, 3}, redefined[] = {7, 41, OTP_WALK_UNREAD};

	put64(HW_UNLOADED, 7);
	ck_assert_uint_ne(code_epoch_with(SWEEPER, REDEFINED, HW_CODE_EPOCH - VARIABLES), 0);
	ck_assert_uint_eq(hotspot_epoch(&attached, code, 3), 11);
	ck_assert_uint_eq(hotspot_code_epoch(&attached, code, 3), 0);
	ck_assert_uint_eq(hotspot_epoch(&attached, redefined, 3), 0);
	ck_assert_uint_eq(hotspot_code_epoch(&attached, redefined, 3), 49);
}
END_TEST

START_TEST(collectors_that_run_beside_the_program_give_up_code_within_an_epoch)
{
	static const char *const flag[] = {"UseZGC", "UseShenandoahGC"};
	const uint64_t bias = HW_CODE_EPOCH - VARIABLES;
	uint8_t used = 1;

	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(made.code.flags, 0);
	put(VARIABLE(1), &used, 1);
	ck_assert_uint_eq(code_epoch_with(GC_EPOCH, flag[_i], bias), VARIABLE(0));
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(made.code.flags, RUNTIME_CODE_MAY_GO);
}
END_TEST

START_TEST(a_counter_for_code_that_cannot_be_read_is_none)
{
	ck_assert_uint_eq(code_epoch_with(SWEEPER, "other", HW_CODE_EPOCH - VARIABLES + 4), 0);
	ck_assert(!((struct hotspot *)attached.param)->code_may_go);
	ck_assert_uint_eq(code_epoch_with(SWEEPER, "other", WORLD + WORLD_BYTES), 0);
	/* Where the collector's flag cannot be read, it may be one of those that give up code at any time. */
	ck_assert_uint_ne(code_epoch_with(GC_EPOCH, "UseZGC", WORLD + WORLD_BYTES - VARIABLES - 8), 0);
	ck_assert(((struct hotspot *)attached.param)->code_may_go);
}
END_TEST

START_TEST(without_either_there_are_no_epochs)
{
	struct hotspot *h = (void *)attached.param;

	h->perf = h->collected = 0;
	attach_epoch();
	ck_assert_uint_eq(walk.start, OTP_WALK_NONE);
	ck_assert_uint_eq(hotspot_epoch(&attached, NULL, 0), 0);
	ck_assert_int_eq(decode_of_epoch(0), 0);
}
END_TEST

/* --- regions --- */

static int code_at(uint64_t pc)
{
	memset(&made.code, 0, sizeof(made.code));
	memory_question(&memory);
	return hotspot_code(&attached, &memory, pc, &made);
}

START_TEST(compiled_code_has_its_methods_and_what_was_inlined)
{
	uint64_t chain[4];

	ck_assert_int_eq(code_at(HW_CODE + 0x40), 0);
	ck_assert_uint_eq(made.code.start, HW_CODE);
	ck_assert_uint_eq(made.code.kind, HOTSPOT_COMPILED);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	ck_assert_uint_eq(code_chain(&made, HW_CODE + 2, false, chain), 1);
	ck_assert_uint_eq(chain[0], HW_METHOD(0));
	ck_assert_uint_eq(code_chain(&made, HW_CODE + HW_CALL, true, chain), 2);
	ck_assert_uint_eq(chain[0], HW_METHOD(1));
	ck_assert_uint_eq(chain[1], HW_METHOD(0));
	ck_assert_uint_eq(code_chain(&made, HW_CODE + HW_POLL, false, chain), 1);
	ck_assert_uint_eq(code_chain(&made, HW_CODE + 0x80, false, chain), 1);
	ck_assert_uint_eq(chain[0], HW_METHOD(0));
}
END_TEST

START_TEST(code_ends_where_its_data_begin)
{
	static const uint32_t data[] = {HW_CODE - HW_BLOB + 0x90, 0, HW_CODE - HW_BLOB, HW_BLOB_BYTES + 8};

	put32(HW_BLOB + 0x18, data[_i]);
	ck_assert_int_eq(code_at(HW_CODE + 0x40), 0);
	ck_assert_uint_eq(made.code.end, _i ? HW_BLOB + HW_BLOB_BYTES : HW_CODE + 0x90); /* where it is not sound, with the blob */
	ck_assert_int_eq(code_at(HW_CODE + 0x90), _i ? 0 : -ENOENT);
}
END_TEST

/* jne to before the call's descriptor: the loop goes on behind it. */
START_TEST(the_end_of_a_loop_is_of_the_method_whose_poll_is_in_it)
{
	static const uint8_t back[] = {0x75, 0xf7};
	uint64_t chain[4];

	put(HW_CODE + 0x35, back, sizeof(back));
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(code_chain(&made, HW_CODE + HW_CALL, true, chain), 2);
	ck_assert_uint_eq(code_chain(&made, HW_CODE + 0x35, false, chain), 2);
	ck_assert_uint_eq(chain[0], HW_METHOD(1));
	ck_assert_uint_eq(code_chain(&made, HW_CODE + 0x37, false, chain), 1);
	ck_assert_uint_eq(code_chain(&made, HW_CODE + HW_POLL, true, chain), 1);
	ck_assert_uint_eq(chain[0], HW_METHOD(0));
}
END_TEST

/* What does not lead to inlined code is of the method around it. */
START_TEST(what_jumps_away_before_inlined_code_is_not_of_it)
{
	static const int32_t pcs[4][4] = {{-1}, {HW_CALL, 1}, {HW_POLL, 8}, {INT32_MAX}};
	static const uint8_t away[] = {0xeb, 0x21};
	uint64_t chain[4];

	put(HW_BLOB + 0x1a0, pcs, sizeof(pcs));
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(code_chain(&made, HW_CODE + 0x3d, false, chain), 2);
	put(HW_CODE + 0x41, away, sizeof(away));
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(code_chain(&made, HW_CODE + 0x3d, false, chain), 1);
	ck_assert_uint_eq(chain[0], HW_METHOD(0));
	ck_assert_uint_eq(code_chain(&made, HW_CODE + 0x43, false, chain), 2);
	ck_assert_uint_eq(code_chain(&made, HW_CODE + HW_POLL, true, chain), 2);
}
END_TEST

/* Two other methods are inlined beside each other, at scopes 8 and 12; all is nops but where a test puts something else. */
static void put_flow(const int32_t (*pcs)[4], uint32_t nr)
{
	static const uint8_t sibling[] = {1, 3, 1}, no_lines[] = {0};

	hotspot_put_method(HW_METHOD(2), "Other", "go", "()V", "", no_lines, 0);
	put64(HW_BLOB + 0x1a0, HW_METHOD(2));
	put(HW_SCOPES + 12, sibling, sizeof(sibling));
	put32(HW_BLOB + 0x10c, 0x1b0);
	put32(HW_BLOB + 0x110, 0x1b0 + nr * sizeof(*pcs));
	put(HW_BLOB + 0x1b0, pcs, nr * sizeof(*pcs));
	memset(world + (HW_CODE + 5 - WORLD), 0x90, HW_DOWN - 4 - 5);
}

static void put_short_jump(uint8_t op, uint32_t from, uint32_t to)
{
	const uint8_t jump[] = {op, (uint8_t)(to - from - 2)};

	put(HW_CODE + from, jump, sizeof(jump));
}

#define JMP 0xeb
#define JNE 0x75

/* The innermost function at an offset. */
static uint64_t flow_at(uint64_t offset)
{
	uint64_t chain[4];

	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	ck_assert_uint_gt(code_chain(&made, HW_CODE + offset, false, chain), 0);
	return chain[0];
}

START_TEST(what_leads_to_two_inlined_methods_is_of_the_one_around_them)
{
	static const int32_t pcs[][4] = {{-1}, {0x30, 8}, {0x50, 12}, {INT32_MAX}};

	put_flow(pcs, ARRAY_SIZE(pcs));
	put_short_jump(JNE, 0x10, 0x32);
	ck_assert_uint_eq(flow_at(0x08), HW_METHOD(0));
	ck_assert_uint_eq(flow_at(0x11), HW_METHOD(0));
	ck_assert_uint_eq(flow_at(0x12), HW_METHOD(1));
	ck_assert_uint_eq(flow_at(0x30), HW_METHOD(1));
	ck_assert_uint_eq(flow_at(0x32), HW_METHOD(2));
}
END_TEST

static uint32_t functions_at(uint64_t offset)
{
	uint64_t chain[4];

	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	return code_chain(&made, HW_CODE + offset, false, chain);
}

/* Its callers would be missing, if it were of the method around it. */
START_TEST(what_is_inlined_and_refused_is_of_no_method)
{
	static const int32_t pcs[][4] = {{-1}, {0x30, 8}, {0x50, 12}, {INT32_MAX}};

	put_flow(pcs, ARRAY_SIZE(pcs));
	put_short_jump(JNE, 0x10, 0x32);
	put64(HW_BLOB + 0x1a0, 0);
	ck_assert_uint_eq(functions_at(0x08), 0); /* it may lead there */
	ck_assert_uint_eq(functions_at(0x30), 2);
	ck_assert_uint_eq(functions_at(0x32), 0);
	ck_assert_uint_eq(functions_at(0x50), 0);
}
END_TEST

/* What lies there leads on to what was read, but is of others. */
START_TEST(behind_as_many_descriptors_as_are_read_nothing_is_known)
{
	static int32_t pcs[RUNTIME_CODE_ROWS + 2][4] = {{-1}};
	const uint64_t at = WORLD + 0x30000;

	put_flow(pcs, 1);
	for (uint32_t i = 1; i < RUNTIME_CODE_ROWS; i++)
		memcpy(pcs[i], (const int32_t[]){0x30, 8}, 8);
	memcpy(pcs[RUNTIME_CODE_ROWS], (const int32_t[]){0x50, 12}, 8);
	pcs[RUNTIME_CODE_ROWS + 1][0] = INT32_MAX;
	put(at, pcs, sizeof(pcs));
	put32(HW_BLOB + 0x10c, (uint32_t)(at - HW_BLOB));
	put32(HW_BLOB + 0x110, (uint32_t)(at - HW_BLOB + sizeof(pcs)));
	put_short_jump(JMP, 0x40, 0x20);
	ck_assert_uint_eq(flow_at(0x30), HW_METHOD(1));
	ck_assert_uint_eq(functions_at(0x32), 0);
	ck_assert_uint_eq(functions_at(0x50), 0);
}
END_TEST

START_TEST(a_jump_back_to_what_is_behind_all_makes_no_loop)
{
	static const int32_t pcs[][4] = {{-1}, {0x50, 12}, {INT32_MAX}};
	static const uint8_t epilogue[] = {0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3};

	put_flow(pcs, ARRAY_SIZE(pcs));
	put_short_jump(JNE, 0x10, 0x40);
	put(HW_CODE + 0x18, epilogue, sizeof(epilogue));
	put_short_jump(JMP, 0x52, 0x18);
	ck_assert_uint_eq(flow_at(0x18), HW_METHOD(0));
	ck_assert_uint_eq(flow_at(0x1d), HW_METHOD(0));
	ck_assert_uint_eq(flow_at(0x40), HW_METHOD(2));
	ck_assert_uint_eq(flow_at(0x52), HW_METHOD(0));
}
END_TEST

START_TEST(a_loop_that_ends_before_its_poll_is_of_the_method_of_that)
{
	static const int32_t pcs[][4] = {{-1}, {0x30, 8}, {INT32_MAX}};

	put_flow(pcs, ARRAY_SIZE(pcs));
	put_short_jump(JNE, 0x14, 0x58);
	put_short_jump(JMP, 0x34, 0x10);
	ck_assert_uint_eq(flow_at(0x08), HW_METHOD(0));
	ck_assert_uint_eq(flow_at(0x10), HW_METHOD(1));
	ck_assert_uint_eq(flow_at(0x32), HW_METHOD(1));
	ck_assert_uint_eq(flow_at(0x58), HW_METHOD(0));
	/* Past the poll, it is not said whose the loop is. */
	put_short_jump(JNE, 0x20, 0x32);
	ck_assert_uint_eq(flow_at(0x10), HW_METHOD(0));
}
END_TEST

/* A loop within one that has a poll, entered by a jump past what aligns it. */
START_TEST(what_aligns_a_loop_does_not_lead_to_it)
{
	static const int32_t pcs[][4] = {{-1}, {0x50, 8}, {INT32_MAX}};

	put_flow(pcs, ARRAY_SIZE(pcs));
	put_short_jump(JMP, 0x1e, 0x34);
	put_short_jump(JNE, 0x3e, 0x30);
	put_short_jump(JNE, 0x52, 0x08);
	ck_assert_uint_eq(flow_at(0x32), HW_METHOD(1));
	ck_assert_uint_eq(flow_at(0x36), HW_METHOD(1));
	/* What nothing leads to either, but is more than that, may be a handler. */
	put_short_jump(JMP, 0x0a, 0x34);
	memset(world + (HW_CODE + 0x1e - WORLD), 0x90, 2);
	ck_assert_uint_eq(flow_at(0x32), HW_METHOD(0));
}
END_TEST

START_TEST(a_loop_without_a_poll_between_inlined_methods_is_of_neither)
{
	static const int32_t pcs[][4] = {{-1}, {0x20, 8}, {0x50, 12}, {INT32_MAX}};

	put_flow(pcs, ARRAY_SIZE(pcs));
	ck_assert_uint_eq(flow_at(0x28), HW_METHOD(2));
	put_short_jump(JNE, 0x36, 0x30);
	ck_assert_uint_eq(flow_at(0x10), HW_METHOD(1));
	ck_assert_uint_eq(flow_at(0x28), HW_METHOD(0));
	ck_assert_uint_eq(flow_at(0x32), HW_METHOD(0));
	ck_assert_uint_eq(flow_at(0x40), HW_METHOD(2));
}
END_TEST

START_TEST(code_whose_flow_is_not_known_has_what_its_marks_say)
{
	uint64_t chain[4];

	put32(HW_BLOB + 0xc, 0x200 + 0x100 + 2 * (FLOW_JUMPS + 2));
	for (uint32_t i = 0; i < FLOW_JUMPS + 2; i++)
		put_short_jump(JNE, 0x100 + 2 * i, 0x100 + 2 * i + 2);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	ck_assert_uint_eq(code_chain(&made, HW_CODE + HW_CALL, true, chain), 2);
	ck_assert_uint_eq(chain[0], HW_METHOD(1));
	ck_assert_uint_eq(code_chain(&made, HW_CODE + HW_CALL - 8, false, chain), 1);
	ck_assert_uint_eq(chain[0], HW_METHOD(0));
	ck_assert_uint_eq(code_chain(&made, HW_CODE + HW_CALL + 1, false, chain), 1);
}
END_TEST

/* goto, from a bytecode of the first method to another one. */
static void put_jump(uint32_t from, uint32_t to)
{
	const uint8_t jump[] = {167, (uint8_t)((to - from) >> 8), (uint8_t)(to - from)};

	put(HW_METHOD(0) + 0x100 + 48 + from, jump, sizeof(jump));
}

static bool loop_of_method(int32_t *ret_bci)
{
	struct hotspot_method m;

	memory_question(&memory);
	ck_assert_int_eq(hotspot_method_read(hotspot_of(&attached), &memory, HW_METHOD(0), &m), 0);
	return hotspot_loop(hotspot_of(&attached), &memory, &m, ret_bci);
}

START_TEST(the_innermost_loop_of_a_method_is_found_if_there_is_one)
{
	const uint8_t switched[] = {171, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 167, 0xff, 0xf0, 0}, breakpoint = 202;
	int32_t bci = 0;

	ck_assert(!loop_of_method(&bci));
	put_jump(20, 10);
	ck_assert(loop_of_method(&bci));
	ck_assert_int_eq(bci, 15);
	put_jump(34, 4);
	ck_assert(loop_of_method(&bci));
	ck_assert_int_eq(bci, 15);
	put_jump(30, 24);
	ck_assert(!loop_of_method(&bci));
	memset(world + (HW_METHOD(0) + 0x100 + 48 - WORLD), 0, 40);
	put(HW_METHOD(0) + 0x100 + 48, switched, sizeof(switched));
	ck_assert(!loop_of_method(&bci));
	put_jump(25, 21);
	ck_assert(loop_of_method(&bci));
	put(HW_METHOD(0) + 0x100 + 48 + 30, &breakpoint, 1);
	ck_assert(!loop_of_method(&bci));
}
END_TEST

/* A jump back, with no descriptor in between. */
START_TEST(a_loop_without_a_poll_is_on_the_line_of_the_only_loop)
{
	static const int32_t pcs[4][4] = {{-1}, {HW_CALL, 1}, {HW_POLL, 1}, {INT32_MAX}};
	static const uint8_t back[] = {0x75, 0xfa};
	struct hotspot_method m;
	uint32_t node;

	put(HW_BLOB + 0x1a0, pcs, sizeof(pcs));
	put(HW_CODE + 0x5b, back, sizeof(back));
	ck_assert_int_eq(hotspot_method_read(hotspot_of(&attached), &memory, HW_METHOD(0), &m), 0);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	node = runtime_code_node_at(&made.code, made.rows, HW_CODE + 0x59, false);
	ck_assert_uint_eq(made.nodes[node].position, 0);
	put_jump(20, 10);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	node = runtime_code_node_at(&made.code, made.rows, HW_CODE + 0x59, false);
	ck_assert_uint_eq(made.nodes[node].position, hotspot_position(&m, 15));
	/* Behind it, the line is that of the poll, which control came by last. */
	node = runtime_code_node_at(&made.code, made.rows, HW_CODE + 0x5f, false);
	ck_assert_uint_eq(node, runtime_code_node_at(&made.code, made.rows, HW_CODE + HW_POLL, false));
}
END_TEST

/* As of collectors whose code has no polls in counted loops: nothing is said of the whole method. */
START_TEST(the_only_loop_of_a_method_without_descriptors_has_its_line)
{
	static const int32_t none[2][4] = {{-1}, {INT32_MAX}};
	static const uint8_t back[] = {0x75, 0xfa};
	struct hotspot_method m;
	uint32_t node;

	put(HW_BLOB + 0x1a0, none, sizeof(none));
	put32(HW_BLOB + 0x1a0 + 2 * 16, INT32_MAX);
	put32(HW_BLOB + 0x1a0 + 3 * 16, INT32_MAX);
	put(HW_CODE + 0x5b, back, sizeof(back));
	put_jump(20, 10);
	ck_assert_int_eq(hotspot_method_read(hotspot_of(&attached), &memory, HW_METHOD(0), &m), 0);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	node = runtime_code_node_at(&made.code, made.rows, HW_CODE + 0x59, false);
	ck_assert_uint_eq(made.nodes[node].position, hotspot_position(&m, 15));
	node = runtime_code_node_at(&made.code, made.rows, HW_CODE + 0x5f, false);
	ck_assert_uint_eq(made.nodes[node].position, 0);
}
END_TEST

static void check_stubs(uint16_t version)
{
	hotspot_world_make(&attached, version);
	hotspot_put_stubs(version);
	ck_assert_int_eq(code_at(HW_STUB + 3), 0);
	ck_assert_str_eq(made.code.name, "[stub: jbyte_arraycopy]");
	ck_assert_uint_eq(made.code.start, HW_STUB);
	ck_assert_uint_eq(made.code.end, HW_BARRIER - 1);
	ck_assert_uint_eq(made.code.kind, HOTSPOT_STUB);
	/* A frame returns to the first byte of the barrier: its call would be before it. */
	ck_assert_int_eq(code_at(HW_BARRIER - 1), 0);
	ck_assert_str_eq(made.code.name, "[virtual thread: its callers are in the heap]");
	ck_assert_uint_eq(made.code.end, HW_BARRIER + 0x40);
	ck_assert_int_eq(code_at(HW_STUB - 1), 0);
	ck_assert_str_eq(made.code.name, "[StubRoutines (1)]");
	ck_assert_uint_eq(made.code.end, HW_STUB);
}

START_TEST(hand_written_code_has_the_names_of_its_list)
{
	check_stubs(17);
	check_stubs(8);
	((struct hotspot *)attached.param)->stubs = 0;
	ck_assert_int_eq(code_at(HW_STUB + 3), 0);
	ck_assert_str_eq(made.code.name, "[StubRoutines (1)]");
	ck_assert_uint_eq(made.code.start, HW_CODE);
}
END_TEST

/* The list may be a ring. */
START_TEST(a_list_of_stubs_without_an_end_is_left)
{
	hotspot_put_stubs(17);
	put64(HW_STUBS + 0x80, HW_STUBS + 0x20);
	ck_assert_int_eq(code_at(HW_STUB + 3), 0);
	ck_assert_uint_eq(made.code.start, HW_STUB);
	ck_assert_uint_eq(made.code.end, HW_BARRIER - 1);
}
END_TEST

START_TEST(a_stub_that_is_still_there_is_the_same_to_another_decoder)
{
	uint64_t identity[RUNTIME_CODE_IDENTITY];

	hotspot_put_stubs(17);
	ck_assert_int_eq(code_at(HW_STUB - 1), 0);
	memcpy(identity, made.code.identity, sizeof(identity));
	hash_seed++;
	ck_assert_int_eq(code_at(HW_STUB - 1), 0);
	ck_assert_mem_eq(made.code.identity, identity, sizeof(identity));
}
END_TEST

START_TEST(code_that_is_still_there_is_not_read_again)
{
	ck_assert_int_eq(code_at(HW_CODE), 0);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	ck_assert_int_eq(code_at(HW_CODE), -EALREADY);
	put32(HW_BLOB + HW_NMETHOD_ID, 78);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_mem_ne(made.known, made.code.identity, sizeof(made.known));
}
END_TEST

START_TEST(free_blocks_and_other_addresses_have_no_code)
{
	const uint8_t unused = 0, free_segment = 0xff;

	ck_assert_int_eq(code_at(HW_BLOB), -ENOENT);
	ck_assert_int_eq(code_at(HW_HEAP + HW_HEAP_BYTES), -ENOENT);
	put(HW_BLOCK + HW_BLOCK_USED, &unused, 1);
	ck_assert_int_eq(code_at(HW_CODE), -ENOENT);
	put(HW_SEGMENTS + ((HW_CODE - HW_HEAP) >> HW_SHIFT), &free_segment, 1);
	ck_assert_int_eq(code_at(HW_CODE), -ENOENT);
}
END_TEST

/* --- steps --- */

static uint64_t stack[64], regs[OTP_REGS_MAX];
static struct runtime_step step;

#define STACK 0x7ffe0000ULL

static int load(void *ctx, uint64_t addr, uint64_t *ret)
{
	if (addr < STACK || addr - STACK > sizeof(stack) - 8)
		return -EFAULT;
	memcpy(ret, (uint8_t *)stack + (addr - STACK), 8);
	return 0;
}

static int step_at(uint32_t kind, uint64_t offset, bool exact)
{
	const struct runtime_place at = {.pc = made.code.start + offset, .exact = exact, .arch = OTP_ARCH_X86_64,
					 .valid = 0x1ffff, .reg = regs, .more = made.more, .load = load};

	made.code.kind = kind;
	step = (struct runtime_step){0};
	return hotspot_step(&attached, &made.code, &at, &step);
}

static void at_rsp(uint64_t words)
{
	memset(stack, 0, sizeof(stack));
	memset(regs, 0, sizeof(regs));
	regs[7] = STACK;
	regs[6] = 0xbb;
	stack[words - 1] = HW_CODE + 5; /* the return address */
	stack[words - 2] = 0xcc;	/* the caller's frame pointer */
}

/* Of a frame in the heap: words of it that lead elsewhere are distances, and the outermost one's caller is none. */
static int step_in_heap(uint32_t kind, uint64_t offset)
{
	const struct runtime_place at = {.pc = made.code.start + offset, .arch = OTP_ARCH_X86_64, .valid = 0x1ffff, .reg = regs,
					 .more = made.more, .load = load, .in_heap = true};

	made.code.kind = kind;
	step = (struct runtime_step){0};
	return hotspot_step(&attached, &made.code, &at, &step);
}

/* push rbp; sub rsp, 0x20; ... add rsp, 0x20; pop rbp; ret */
START_TEST(a_compiled_frame_is_left_at_each_of_its_instructions)
{
	static const struct { uint32_t offset, words; bool saved; } at[] = {
		{0, 1, false}, {1, 2, true}, {5, 6, true}, {HW_POLL, 6, true}, {HW_DOWN - 4, 6, true},
		{HW_DOWN, 2, true}, {HW_DOWN + 1, 1, false}, {HW_DOWN + 2, 6, true},
	};

	ck_assert_int_eq(code_at(HW_CODE), 0);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		at_rsp(MAX(at[i].words, 2u));
		if (at[i].words == 1)
			stack[0] = HW_CODE + 5;
		ck_assert_int_eq(step_at(HOTSPOT_COMPILED, at[i].offset, true), 0);
		ck_assert_uint_eq(step.pc, HW_CODE + 5);
		ck_assert_uint_eq(step.sp, STACK + 8 * at[i].words);
		ck_assert_uint_eq(step.fp, at[i].saved ? 0xcc : 0xbb);
	}
	at_rsp(6);
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, HW_DOWN, false), 0);
	ck_assert_uint_eq(step.sp, STACK + 48);
}
END_TEST

/* Code behind the first call; instructions begin at odd offsets there, as zeros are two bytes each. */
#define PUSHES (HW_CALL + 5)

static void read_with(const void *bytes, size_t len)
{
	put(HW_CODE + PUSHES, bytes, len);
	memset(&made, 0, sizeof(made));
	ck_assert_int_eq(code_at(HW_CODE), 0);
}

static void expect_words(uint64_t at, bool exact, uint32_t more)
{
	at_rsp(6 + more);
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + at, exact), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 8 * (6 + more));
	ck_assert_uint_eq(step.fp, 0xcc);
}

static void expect_unknown(uint64_t at, bool exact)
{
	at_rsp(6);
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + at, exact), -ENOENT);
}

static void expect_taken_down(uint64_t at)
{
	at_rsp(2);
	stack[0] = HW_CODE + 5;
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + at, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 8);
	ck_assert_uint_eq(step.fp, 0xbb);
}

START_TEST(words_that_compiled_code_takes_for_a_while_lie_beneath_its_frame)
{
	/* sub rsp, 8; push rax; pop rax; sub rsp, 16; call +0; jp -2; add rsp, 16; add rsp, 8; nop */
	read_with("\x48\x83\xec\x08\x50\x58\x48\x83\xec\x10\xe8\0\0\0\0\x7a\xfe\x48\x83\xc4\x10\x48\x83\xc4\x08\x90", 26);
	expect_words(0, true, 0);
	expect_words(4, true, 1);
	expect_words(5, true, 2);
	expect_words(6, true, 1);
	expect_words(10, true, 3);
	expect_words(15, false, 3); /* the call returns there */
	expect_words(17, true, 3);
	expect_words(21, true, 1);
	expect_words(25, true, 0);
}
END_TEST

/* As what saves registers of vectors, or aligns the stack for a call. */
START_TEST(where_nobody_knows_how_much_was_taken_the_caller_is_unknown)
{
	/* sub rsp, 256; call +0; add rsp, 256; push rax; and rsp, -16; call +0; mov rsp, rbx; nop */
	read_with("\x48\x81\xec\0\x01\0\0\xe8\0\0\0\0\x48\x81\xc4\0\x01\0\0\x50\x48\x83\xe4\xf0\xe8\0\0\0\0\x48\x8b\xe3\x90", 33);
	expect_words(7, true, 32);
	expect_words(12, false, 32);
	expect_words(19, true, 0);
	expect_unknown(24, true);
	expect_unknown(29, false);
	expect_words(32, true, 0);
	/* sub rsp, 1 MiB; nop; mov rsp, rbx; nop */
	read_with("\x48\x81\xec\0\0\x10\0\x90\x48\x8b\xe3\x90", 12);
	expect_unknown(7, true);
	expect_words(11, true, 0);
}
END_TEST

/* As a native method does before it waits for a safepoint (sharedRuntime_x86_64.cpp, generate_native_wrapper). */
START_TEST(a_frame_that_is_aligned_already_stays_as_it_is)
{
	/* mov r12, rsp; and rsp, -16; call +0; mov rsp, r12; nop; and rsp, -32; call +0 */
	read_with("\x4c\x8b\xe4\x48\x83\xe4\xf0\xe8\0\0\0\0\x49\x8b\xe4\x90\x48\x83\xe4\xe0\xe8\0\0\0\0", 25);
	expect_words(7, true, 0);
	expect_words(12, false, 0);
	expect_words(15, true, 0);
	at_rsp(40);
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + 20, true), -ENOENT);
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + 25, false), -ENOENT);
}
END_TEST

START_TEST(pushed_arguments_are_taken_away_by_who_is_called)
{
	/* push rsi; push rdi; call +0; pop rdi; pop rsi; nop */
	read_with("\x56\x57\xe8\0\0\0\0\x5f\x5e\x90", 10);
	expect_words(1, true, 1);
	expect_words(2, true, 2);
	expect_words(7, false, 0);
	expect_words(7, true, 2);
	expect_words(9, true, 0);
}
END_TEST

/* As an array of objects is copied whose types are not known (c1_LIRAssembler_x86.cpp, emit_arraycopy). */
START_TEST(what_was_pushed_before_the_arguments_stays_there)
{
	/* push rsi; push rdi; push rsi; push rdi; call +0; pop rdi; pop rsi; nop; pop rdi; pop rsi; nop */
	read_with("\x56\x57\x56\x57\xe8\0\0\0\0\x5f\x5e\x90\x5f\x5e\x90", 15);
	expect_words(4, true, 4);
	expect_words(9, false, 2);
	expect_words(9, true, 4);
	expect_words(11, true, 2);
	expect_words(14, true, 0);
}
END_TEST

/* As texts are compared: what is pushed is given back on each of several ways. */
START_TEST(behind_a_jump_there_is_what_others_lead_there_with)
{
	/* push rax; jne 7; pop rax; jmp 8; nop; nop; 7: pop rax; 8: nop; push rax; jmp +1; nop; nop */
	read_with("\x50\x75\x05\x58\xeb\x03\x90\x90\x58\x90\x50\xeb\x01\x90\x90", 15);
	expect_words(1, true, 1);
	expect_words(3, true, 1);
	expect_words(4, true, 0);
	expect_words(6, true, 0);
	expect_words(8, true, 1);
	expect_words(9, true, 0);
	expect_words(11, true, 1);
	expect_words(13, true, 0); /* nothing leads there */
	expect_words(14, true, 1);
}
END_TEST

/* As what reads a byte at a time into the stack: from two ways there come other numbers of words. */
START_TEST(where_ways_meet_that_took_different_words_the_caller_is_unknown)
{
	/* jne 5; push rax; nop; nop; 5: nop; mov rsp, rbx; nop */
	read_with("\x75\x03\x50\x90\x90\x90\x48\x8b\xe3\x90", 10);
	expect_words(4, true, 1);
	expect_unknown(5, true);
	expect_words(9, true, 0); /* behind mov rsp, rbx */
	/* push rax; jne 5; push rax; nop; 5: nop; mov rsp, rbx; nop */
	read_with("\x50\x75\x02\x50\x90\x90\x48\x8b\xe3\x90", 10);
	expect_words(4, true, 2);
	expect_unknown(5, true);
	expect_words(9, true, 0);
	/* push rax; jne 6; pop rax; jmp 6; 6: nop */
	read_with("\x50\x75\x03\x58\xeb\x00\x90", 7);
	expect_unknown(6, true);
	/* What nothing leads to is no such way: push rax; jmp 7; jmp 7; nop; nop; 7: pop rax; nop */
	read_with("\x50\xeb\x04\xeb\x02\x90\x90\x58\x90", 9);
	expect_words(7, true, 1);
	expect_words(8, true, 0);
}
END_TEST

/* jmp +10; what was a movabs has zeros, and the next jump; nothing leads to enter. */
START_TEST(what_is_left_of_a_patched_instruction_takes_nothing)
{
	read_with("\xe9\x0a\0\0\0\0\0\0\0\0\xe9\xc8\x5c\0\0\x90\x90", 17);
	expect_words(15, true, 0);
	expect_words(16, true, 0);
	/* 10: jmp -2; mov rdx, rax; movabs r8, 0x7f545807b478, of which 58 and 54 are no instructions; 28: nop; jmp -3 */
	read_with("\xe9\x0a\0\0\0\0\0\0\0\0\xe9\xf9\xff\xff\xff\x48\x8b\xd0\x49\xb8\x78\xb4\x07\x58\x54\x7f\0\0\x90\xeb\xfd", 31);
	expect_words(18, true, 0);
	expect_words(28, true, 0);
}
END_TEST

/* As of String.indexOf (macroAssembler_x86.cpp, string_indexof): the stack pointer is copied before, and then pushed. */
START_TEST(a_stack_pointer_that_was_pushed_leads_to_the_frame)
{
	/* mov rcx, rsp; jne 9; sub rsp, 16; 9: push rax; push rcx; 11: nop; pop rsp; nop */
	read_with("\x48\x8b\xcc\x75\x04\x48\x83\xec\x10\x50\x51\x90\x5c\x90", 14);
	expect_unknown(9, true); /* of a register that has anything else */
	for (uint64_t more = 0; more <= 2; more += 2) {
		at_rsp(6 + more);
		regs[2] = STACK + 8 * more;
		ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + 9, true), 0);
		ck_assert_uint_eq(step.sp, STACK + 8 * (6 + more));
		ck_assert_uint_eq(step.fp, 0xcc);
	}
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + 9, false), -ENOENT);
	for (uint64_t at = 11; at <= 12; at++) {
		at_rsp(6 + 4);
		stack[0] = STACK + 8 * 4;
		ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + at, true), 0);
		ck_assert_uint_eq(step.pc, HW_CODE + 5);
		ck_assert_uint_eq(step.sp, STACK + 8 * 10);
		ck_assert_uint_eq(step.fp, 0xcc);
	}
	expect_words(13, true, 0);
	for (size_t i = 0; i < 3; i++) {
		const uint64_t wrong[] = {STACK, STACK + 4, STACK + 0x1000};

		at_rsp(6 + 4);
		stack[0] = wrong[i];
		ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + 11, true), -ENOENT);
	}
	/* A way on which it is not copied: jne 10; nop; mov rcx, rsp; sub rsp, 8; 10: push rcx; nop */
	read_with("\x75\x08\x90\x48\x8b\xcc\x48\x83\xec\x08\x51\x90", 12);
	at_rsp(6 + 2);
	regs[2] = STACK + 8 * 2;
	stack[0] = STACK + 8 * 2;
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + 10, true), -ENOENT);
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + 11, true), -ENOENT);
	/* What else is in the register by then is none: mov rcx, rsp; mov ecx, eax; push rcx; nop; pop rcx; nop */
	read_with("\x48\x8b\xcc\x8b\xc8\x51\x90\x59\x90", 9);
	expect_words(6, true, 1);
	expect_words(8, true, 0);
}
END_TEST

START_TEST(what_jumps_part_of_one_range_is_one)
{
	uint8_t code[2 + 3 * 10 + 2] = {0x50};

	/* push rax; ten times: jne 1; jmp 0 */
	for (size_t i = 1; i + 4 < sizeof(code); i += 4)
		memcpy(code + i, "\x75\x02\xeb\x00", 4);
	read_with(code, sizeof(code));
	ck_assert_uint_eq(made.code.nr_more, 2 * 2); /* and the epilogue */
	expect_words(1, true, 1);
	expect_words(25, true, 1);
}
END_TEST

static int range_at(uint64_t offset, bool exact, struct hotspot_range *ret)
{
	return hotspot_range_at(&made.code, made.more, offset, exact, ret);
}

static void take(struct hotspot_pushed *p, uint8_t kind, uint32_t end, int64_t n)
{
	const struct x86_insn i = {.len = 1, .kind = kind, .reg = X86_AX, .n = n};

	hotspot_pushed_take(p, &i, end);
}

START_TEST(of_more_places_that_jumps_lead_to_than_there_is_room_for_nothing_is_known)
{
	static struct hotspot_pushed p;
	struct hotspot_range found;

	memset(&made.code, 0, sizeof(made.code));
	made.code.start = WORLD + 0x30000;
	made.code.end = made.code.start + 0x2000;
	made.code.word[HOTSPOT_FRAME] = 48;
	put(made.code.start + 0x1e00, "\x48\x8b\xe3", 3); /* mov rsp, rbx */
	memory_question(&memory);
	hotspot_pushed_begin(&p, &made);
	take(&p, INSN_PUSH, 1, 8);
	for (uint32_t i = 0; i < WAYS_AIMS; i++)
		take(&p, INSN_BRANCH, 2 + i, 0x1000 + i);
	take(&p, INSN_BRANCH, 2 + WAYS_AIMS, 0x1000); /* leads to where another one does */
	if (_i)
		take(&p, INSN_BRANCH, 3 + WAYS_AIMS, 0x1c00);
	hotspot_pushed_read(&p, &memory);
	ck_assert_int_eq(range_at(0x1f00, false, &found), _i ? -ENOENT : 0);
	ck_assert_int_eq(range_at(2, true, &found), _i ? -ENOENT : 0);
	ck_assert(!_i || !made.code.nr_more);
}
END_TEST

/* As of cases of a switch, and of handlers of exceptions. */
START_TEST(code_that_no_jump_leads_to_has_jumps_of_its_own)
{
	/* jmp rax, or jmp +0x20; 2: push rax; jne 7; jmp 8; 7: nop; 8: pop rax; nop */
	read_with(_i ? "\xff\xe0\x50\x75\x02\xeb\x01\x90\x58\x90" : "\xeb\x20\x50\x75\x02\xeb\x01\x90\x58\x90", 10);
	expect_words(3, true, 1);
	expect_words(7, true, 1);
	expect_words(8, true, 1);
	expect_words(9, true, 0);
	/* The same; 2: and rsp, -32; nop; mov rsp, rbx; nop */
	read_with(_i ? "\xff\xe0\x48\x83\xe4\xe0\x90\x48\x8b\xe3\x90" : "\xeb\x20\x48\x83\xe4\xe0\x90\x48\x8b\xe3\x90", 11);
	expect_unknown(6, true);
	expect_words(10, true, 0);
}
END_TEST

/* Each leads back to the one before it, which is known once more is gone through. */
START_TEST(ways_that_are_not_all_found_are_not_known)
{
	const uint32_t nr = _i ? PUSHED_PASSES + 2 : PUSHED_PASSES - 3;
	uint8_t code[64] = {0x50, 0xeb, (uint8_t)(2 * nr), 0x58, 0xc3}; /* push rax; jmp to the last; 3: pop rax; ret; jmp -4 ... */

	for (uint32_t i = 0; i < nr; i++)
		memcpy(code + 5 + 2 * i, "\xeb\xfc", 2);
	read_with(code, 5 + 2 * nr);
	if (_i)
		expect_unknown(3, true);
	else
		expect_words(3, true, 1);
}
END_TEST

/* As of loops that are entered at their ends, and of code that is moved out of the way. */
START_TEST(jumps_lead_back_with_words)
{
	/* push rax; jmp 6; nop; 4: nop; nop; 6: jne 4; pop rax; nop */
	read_with("\x50\xeb\x03\x90\x90\x90\x75\xfc\x58\x90", 10);
	expect_words(4, true, 1);
	expect_words(5, true, 1);
	expect_words(8, true, 1);
	expect_words(9, true, 0);
	/* And where the way back has other words than the way ahead: push rax; 1: nop; push rcx; jne 1; mov rsp, rbx; nop */
	read_with("\x50\x90\x51\x75\xfc\x48\x8b\xe3\x90", 9);
	expect_unknown(1, true);
	expect_words(8, true, 0);
}
END_TEST

START_TEST(a_second_prologue_takes_no_words)
{
	/* push rbp; sub rsp, 0x20; nop; push rax; pop rax; add rsp, 0x20; pop rbp; ret */
	read_with("\x55\x48\x83\xec\x20\x90\x50\x58\x48\x83\xc4\x20\x5d\xc3", 14);
	expect_words(5, true, 0);
	expect_words(7, true, 1);
	expect_words(8, true, 0);
	/* push rbp; sub rsp, 0x20; sub rsp, 16; call +0; add rsp, 16 */
	read_with("\x55\x48\x83\xec\x20\x48\x83\xec\x10\xe8\0\0\0\0\x48\x83\xc4\x10", 18);
	expect_words(5, true, 0);
	expect_words(9, true, 2);
	expect_words(14, false, 2);
	/* sub rsp, 0x28; mov [rsp + 0x20], rbp; nop */
	read_with("\x48\x83\xec\x28\x48\x89\x6c\x24\x20\x90", 10);
	expect_words(9, true, 0);
	/* sub rsp, 0x28; mov [rsp], rax; add rsp, 0x28 */
	read_with("\x48\x83\xec\x28\x48\x89\x04\x24\x48\x83\xc4\x28", 12);
	expect_words(8, true, 5);
}
END_TEST

START_TEST(behind_leave_the_frame_pointer_is_the_callers)
{
	read_with("\xc9\xc3", 2); /* leave; ret */
	expect_words(0, true, 0);
	at_rsp(2);
	stack[0] = HW_CODE + 5;
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, PUSHES + 1, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 8);
	ck_assert_uint_eq(step.fp, 0xbb);
}
END_TEST

/* As of a method into which ReentrantLock.lock was inlined. */
START_TEST(a_return_behind_the_check_of_the_reserved_stack_is_one)
{
	/* add rsp, 0x20; pop rbp; cmp rsp, [r15 + 0x490]; jb 64; 18: call +0; hlt ... */
	uint8_t code[100] = "\x48\x83\xc4\x20\x5d\x49\x3b\xa7\x90\x04\0\0\x0f\x82\x2e\0\0\0\xe8\0\0\0\0";

	memset(code + 23, 0xf4, sizeof(code) - 23);
	/* 64: cmp rsp, [r15 + 0x398]; ja +0x100; ret */
	memcpy(code + 64, "\x49\x3b\xa7\x98\x03\0\0\x0f\x87\0\x01\0\0\xc3", 14);
	read_with(code, sizeof(code));
	expect_taken_down(5);
	expect_taken_down(12);
	expect_taken_down(64);
	expect_taken_down(71);
	expect_taken_down(77);
	expect_words(78, true, 0);
	expect_unknown(18, true);
	expect_unknown(23, false);
}
END_TEST

/* As to what rethrows an exception. A byte of what lies behind is no return. */
START_TEST(a_jump_away_ends_a_frame_as_a_return_does)
{
	/* add rsp, 0x20; pop rbp; jmp +0x100; mov ebx, eax; ret */
	read_with("\x48\x83\xc4\x20\x5d\xe9\0\x01\0\0\x8b\xd8\xc3", 13);
	expect_taken_down(5);
	expect_words(10, true, 0);
	expect_words(12, true, 0);
}
END_TEST

/* Native methods look for what went wrong in between (sharedRuntime_x86_64.cpp, generate_native_wrapper). */
START_TEST(a_native_method_has_no_frame_between_leave_and_its_ends)
{
	put(WORLD + 0x700, "native nmethod", 15);
	/* leave; test rax, rax; jne 8; nop; ret; 8: jmp +0x40; nop */
	read_with("\xc9\x48\x85\xc0\x75\x02\x90\xc3\xeb\x40\x90", 11);
	for (uint64_t at = 1; at <= 8; at += at == 1 ? 3 : (at == 4 ? 2 : 1))
		expect_taken_down(at);
	expect_words(10, true, 0);
}
END_TEST

/* As of C1's code: each is three ranges, of one word, two, and one. A callee takes its arguments away. */
START_TEST(of_many_checks_of_types_each_place_is_known)
{
	enum { CHECKS = 30 };
	uint8_t checks[10 * CHECKS];

	for (size_t i = 0; i < sizeof(checks); i += 10) /* push rsi; push rdi; call +0; pop rdi; pop rsi; nop */
		memcpy(checks + i, "\x56\x57\xe8\0\0\0\0\x5f\x5e\x90", 10);
	read_with(checks, sizeof(checks));
	for (uint32_t at = 0; at < sizeof(checks); at += 10) {
		expect_words(at, true, 0);
		expect_words(at + 2, true, 2);
		expect_words(at + 7, false, 0);
		expect_words(at + 8, true, 1);
		expect_words(at + 9, true, 0);
	}
}
END_TEST

/* As of a long switch. */
START_TEST(of_many_returns_each_is_known)
{
	uint8_t returns[6 * 40];

	for (size_t i = 0; i < sizeof(returns); i += 6) /* add rsp, 0x20; pop rbp; ret */
		memcpy(returns + i, "\x48\x83\xc4\x20\x5d\xc3", 6);
	read_with(returns, sizeof(returns));
	for (uint32_t at = 0; at < sizeof(returns); at += 6) {
		expect_words(at, true, 0);
		expect_taken_down(at + 5);
	}
}
END_TEST

START_TEST(of_more_ranges_than_a_region_has_room_for_the_last_are_not_known)
{
	const uint32_t room = RUNTIME_CODE_MORE / 2, end = 10 * room;
	struct hotspot_range found;

	memset(&made.code, 0, sizeof(made.code));
	for (uint32_t i = 0; i <= room; i++)
		hotspot_range_add(&made, &(struct hotspot_range){.from = 10 * i, .end = 10 * i + 5, .words = _i, .left = !_i});
	ck_assert_int_eq(range_at(end - 10, true, &found), 1);
	ck_assert_int_eq(range_at(end - 5, true, &found), 0);
	ck_assert_int_eq(range_at(end, true, &found), -ENOENT);
	ck_assert_int_eq(range_at(end, false, &found), _i ? -ENOENT : 0); /* nothing is called where a frame is taken down */
	ck_assert_int_eq(hotspot_ranges_are_told(&made.code), _i);
}
END_TEST

/* As of a frame without words of its own: pop rbp; ret; pop rbp; ret. */
START_TEST(two_returns_that_touch_are_two)
{
	struct hotspot_range found;

	memset(&made.code, 0, sizeof(made.code));
	hotspot_range_add(&made, &(struct hotspot_range){.from = 10, .end = 12});
	hotspot_range_add(&made, &(struct hotspot_range){.from = 12, .end = 14});
	ck_assert_int_eq(range_at(11, true, &found), 1);
	ck_assert_uint_eq(found.from, 10);
	ck_assert_int_eq(range_at(12, true, &found), 1);
	ck_assert_uint_eq(found.from, 12);
}
END_TEST

START_TEST(a_range_may_be_longer_than_its_entry)
{
	struct hotspot_range found;

	memset(&made.code, 0, sizeof(made.code));
	hotspot_range_add(&made, &(struct hotspot_range){.from = 10, .end = 200, .words = 3});
	hotspot_range_add(&made, &(struct hotspot_range){.from = 200, .end = 1000, .words = 3});
	hotspot_range_add(&made, &(struct hotspot_range){.from = 1000, .end = 29000, .words = HOTSPOT_RANGE_UNKNOWN});
	hotspot_range_add(&made, &(struct hotspot_range){.from = 29100, .end = 29101, .left = true});
	for (uint32_t at = 10; at < 1000; at++) {
		ck_assert_int_eq(range_at(at, false, &found), 1);
		ck_assert_uint_eq(found.words, 3);
	}
	ck_assert_int_eq(range_at(9, true, &found), 0);
	ck_assert_int_eq(range_at(1000, true, &found), -ENOENT);
	ck_assert_int_eq(range_at(28999, false, &found), -ENOENT);
	ck_assert_int_eq(range_at(29050, true, &found), 0);
	ck_assert_int_eq(range_at(29100, false, &found), 0);
	ck_assert_int_eq(range_at(29100, true, &found), 1);
	ck_assert(found.left && !found.arguments);
	hotspot_range_add(&made, &(struct hotspot_range){.from = 1 << 18, .end = (1 << 18) + 1, .words = 1});
	ck_assert_int_eq(range_at(1 << 18, false, &found), -ENOENT);
}
END_TEST

static int step_given_up(void)
{
	at_rsp(6);
	stack[2] = HW_CODE + HW_CALL;
	return step_at(HOTSPOT_COMPILED, 0x70, false);
}

START_TEST(a_frame_that_is_given_up_has_kept_where_it_was)
{
	put32(HW_BLOB + 0x118, 16);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_int_eq(step_given_up(), 0);
	ck_assert_uint_eq(step.place, 0);
	put64(HW_BLOB + 0x80, HW_CODE + 0x70);
	memset(&made, 0, sizeof(made));
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_int_eq(step_given_up(), 0);
	ck_assert_uint_eq(step.place, HW_CODE + HW_CALL);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 48);
	ck_assert_uint_eq(step.fp, 0xcc);
	/* A thread's own pc, or what was not kept. */
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, 0x70, true), 0);
	ck_assert_uint_eq(step.place, 0);
	stack[2] = HW_CODE - 1;
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, 0x70, false), -ENOENT);
}
END_TEST

/* In 8 both are offsets, as since 23 and since 26 by other names. */
START_TEST(the_handler_is_an_offset_or_an_address)
{
	struct hotspot *h = (void *)attached.param;
	uint16_t *const names[] = {&h->nmethod_deopt_8, &h->nmethod_deopt, &h->nmethod_deopt_26};

	put32(HW_BLOB + 0x118, 16);
	put32(HW_BLOB + 0x11c, 0x200 + 0x70);
	h->compiled_deopt = h->nmethod_deopt_8 = h->nmethod_deopt = h->nmethod_deopt_26 = HOTSPOT_NONE;
	*names[_i] = 0x11c;
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(made.code.word[HOTSPOT_GIVEN_UP], 0x70 | 16ULL << 32);
	/* Out of its code, and out of its frame. */
	put32(HW_BLOB + 0x11c, 0x200);
	memset(&made, 0, sizeof(made));
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(made.code.word[HOTSPOT_GIVEN_UP], 0);
	put32(HW_BLOB + 0x11c, 0x270);
	put32(HW_BLOB + 0x118, 48);
	memset(&made, 0, sizeof(made));
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(made.code.word[HOTSPOT_GIVEN_UP], 0);
}
END_TEST

static void put_unsafe_blob(const char *name, uint32_t words, const void *code, size_t len)
{
	put(WORLD + 0x700, name, strlen(name) + 1);
	put32(HW_BLOB + 0x14, (uint32_t)-1); /* frame_never_safe */
	put32(HW_BLOB + 0x1c, words);
	put(HW_CODE, code, len);
	memset(&made, 0, sizeof(made));
	ck_assert_int_eq(code_at(HW_CODE), 0);
}

/* A poll has pushed anything in place of the return address (sharedRuntime_x86_64.cpp, generate_handler_blob). */
START_TEST(where_nobody_tells_when_a_frame_is_there_callers_alone_are_known)
{
	/* push rbx; push rbp; mov rbp, rsp; pushf; sub rsp, 16; mov [rbp + 8], rbx; call +0; add rsp, 24; pop rbp; ret */
	put_unsafe_blob("SafepointBlob", 6, "\x53\x55\x48\x8b\xec\x9c\x48\x83\xec\x10\x48\x89\x5d\x08\xe8\0\0\0\0\x48\x83\xc4\x18"
			"\x5d\xc3", 25);
	for (uint64_t at = 0; at < 25; at++) {
		at_rsp(6);
		stack[0] = HW_CODE + 5;
		ck_assert_int_eq(step_at(HOTSPOT_COMPILED, at, true), -ENOENT);
	}
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, 19, false), 0);
	ck_assert_uint_eq(step.sp, STACK + 8 * 6);
}
END_TEST

/* As what finds a method for a call site: its frame is there and gone in many steps (RegisterSaver). */
START_TEST(what_saves_all_registers_is_left_at_each_of_its_instructions)
{
	/* push rbp; mov rbp, rsp; pushf; sub rsp, 24; call +0; mov rbp, [rsp]; add rsp, 24; popf; pop rbp; jmp rax */
	static const char code[] = "\x55\x48\x8b\xec\x9c\x48\x83\xec\x18\xe8\0\0\0\0\x48\x8b\x2c\x24\x48\x83\xc4\x18\x9d\x5d"
				   "\xff\xe0";
	static const char *const names[] = {
		"resolve_static_call", "SafepointBlob", "polling_page_return_handler_blob (shared runtime)"};
	static const int32_t complete[] = {14, -1, -1};
	static const struct { uint32_t offset, words; } at[] = {
		{0, 1}, {1, 2}, {4, 2}, {5, 3}, {9, 6}, {14, 6}, {18, 6}, {22, 3}, {23, 2}, {24, 1},
	};

	put(WORLD + 0x700, names[_i], strlen(names[_i]) + 1);
	put32(HW_BLOB + 0x14, (uint32_t)complete[_i]);
	put(HW_CODE, code, sizeof(code) - 1);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		at_rsp(MAX(at[i].words, 2u));
		if (at[i].words == 1)
			stack[0] = HW_CODE + 5;
		ck_assert_int_eq(step_at(made.code.kind, at[i].offset, true), 0);
		ck_assert_uint_eq(step.pc, HW_CODE + 5);
		ck_assert_uint_eq(step.sp, STACK + 8 * at[i].words);
		ck_assert_uint_eq(step.fp, at[i].words > 1 ? 0xcc : 0xbb);
	}
	at_rsp(6);
	ck_assert_int_eq(step_at(made.code.kind, 14, false), 0);
	ck_assert_uint_eq(step.sp, STACK + 8 * 6);
}
END_TEST

/* OpenJDK, runtime_x86_64.cpp, generate_exception_blob: the return address is pushed first, and taken away last. */
START_TEST(what_handles_an_exception_has_its_frame_up_to_where_it_is_taken_down)
{
	/* push rdx; sub rsp, 8; mov [rsp], rbp; call +0; mov rbp, [rsp]; add rsp, 8; pop rdx; jmp r8 */
	put_unsafe_blob("ExceptionBlob", 2, "\x52\x48\x83\xec\x08\x48\x89\x2c\x24\xe8\0\0\0\0\x48\x8b\x2c\x24\x48\x83\xc4\x08\x5a"
			"\x41\xff\xe0", 26);
	for (uint64_t at = 0; at < 26; at++) {
		const bool there = at >= 5 && at <= 18;

		at_rsp(2);
		ck_assert_int_eq(step_at(HOTSPOT_COMPILED, at, true), there ? 0 : -ENOENT);
		ck_assert(!there || step.sp == STACK + 16);
	}
	at_rsp(2);
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, 14, false), 0);
	ck_assert_uint_eq(step.fp, 0xcc);
}
END_TEST

START_TEST(a_frame_whose_caller_would_be_no_code_of_java_is_not_left)
{
	static const uint64_t wrong[] = {0, 0x401000, HW_HEAP + HW_HEAP_BYTES};

	ck_assert_int_eq(code_at(HW_CODE), 0);
	at_rsp(6);
	stack[5] = wrong[_i];
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, HW_POLL, true), -ENOENT);
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, HW_POLL, false), -ENOENT);
}
END_TEST

static void interpreted_frame(void)
{
	at_rsp(1 + 20);
	regs[6] = STACK + 8 * 19;
	regs[13] = HW_METHOD(0) + 7;
	stack[18] = STACK + 8 * 25; /* the caller's stack pointer */
	stack[16] = HW_METHOD(0);
	stack[13] = HW_CACHE(0);
	stack[11] = HW_METHOD(0) + 4;
}

START_TEST(an_interpreted_frame_says_its_method_and_bytecode)
{
	interpreted_frame();
	ck_assert_int_eq(step_at(HOTSPOT_INTERPRETER, 0, false), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 8 * 25);
	ck_assert_uint_eq(step.fp, 0xcc);
	ck_assert_uint_eq(step.cfa, STACK + 8 * 21);
	ck_assert_uint_eq(step.own.key, HW_METHOD(0));
	ck_assert_uint_eq(step.own.cookie[0], HW_CACHE(0));
	ck_assert_uint_eq(step.own.position, (uint32_t)(HW_METHOD(0) + 4));
	ck_assert_int_eq(step_at(HOTSPOT_INTERPRETER, 0, true), 0);
	ck_assert_uint_eq(step.own.position, (uint32_t)(HW_METHOD(0) + 7));
	/* What is too far from the bytecode in the frame is another value. */
	regs[13] = HW_METHOD(0) + 0x20000;
	ck_assert_int_eq(step_at(HOTSPOT_INTERPRETER, 0, true), 0);
	ck_assert_uint_eq(step.own.position, (uint32_t)(HW_METHOD(0) + 4));
}
END_TEST

START_TEST(a_method_that_is_being_entered_has_no_frame_yet)
{
	at_rsp(2);
	stack[0] = HW_CODE + 5;
	regs[3] = HW_METHOD(0);
	regs[13] = STACK + 8;
	ck_assert_int_eq(step_at(HOTSPOT_ENTRY, 0, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 8);
	ck_assert_uint_eq(step.fp, 0xbb);
	ck_assert_uint_eq(step.own.key, HW_METHOD(0));
	/* The return address was taken from the stack, for locals. */
	at_rsp(2);
	regs[0] = HW_CODE + 9;
	regs[13] = STACK + 64;
	ck_assert_int_eq(step_at(HOTSPOT_ENTRY, 0, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 9);
	ck_assert_uint_eq(step.sp, STACK + 64);
}
END_TEST

/* Interpreted code calls all of its methods at one place, and returns from all to one: callers' return addresses are the same. */
START_TEST(the_frame_of_an_interpreted_caller_is_not_that_of_the_method_being_entered)
{
	at_rsp(2);
	regs[0] = stack[11] = HW_CODE + 9;
	regs[6] = STACK + 8 * 10;
	regs[13] = STACK + 16;
	regs[3] = HW_METHOD(0);
	ck_assert_int_eq(step_at(HOTSPOT_ENTRY, 0, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 9);
	ck_assert_uint_eq(step.sp, STACK + 16);
	ck_assert_uint_eq(step.fp, STACK + 8 * 10);
	ck_assert_uint_eq(step.own.key, HW_METHOD(0));
}
END_TEST

START_TEST(a_method_without_locals_has_the_callers_stack_pointer_once_it_took_the_return_address)
{
	at_rsp(2);
	regs[0] = HW_CODE + 9;
	regs[13] = STACK;
	regs[3] = HW_METHOD(0);
	ck_assert_int_eq(step_at(HOTSPOT_ENTRY, 0, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 9);
	ck_assert_uint_eq(step.sp, STACK);
	ck_assert_uint_eq(step.fp, 0xbb);
	ck_assert_uint_eq(step.own.key, HW_METHOD(0));
}
END_TEST

START_TEST(an_adapter_has_the_callers_stack_pointer_once_it_took_the_return_address)
{
	at_rsp(2);
	stack[0] = HW_CODE + 5;
	regs[13] = STACK + 64; /* not the adapter's yet */
	ck_assert_int_eq(step_at(HOTSPOT_ADAPTER, 0, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 8);
	regs[0] = HW_CODE + 5;
	stack[0] = 0;
	ck_assert_int_eq(step_at(HOTSPOT_ADAPTER, 0, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 64);
	ck_assert_int_eq(step_at(HOTSPOT_ADAPTER, 0, false), -ENOENT);
	/* There are no arguments: it is that very place. */
	regs[13] = STACK;
	ck_assert_int_eq(step_at(HOTSPOT_ADAPTER, 0, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK);
}
END_TEST

START_TEST(an_adapter_that_has_its_caller_mended_knows_where_the_return_address_lies)
{
	at_rsp(2);
	regs[0] = stack[20] = HW_CODE + 5;
	regs[13] = STACK + 8 * 20;
	for (int exact = 0; exact < 2; exact++) {
		ck_assert_int_eq(step_at(HOTSPOT_ADAPTER, 0, exact), 0);
		ck_assert_uint_eq(step.pc, HW_CODE + 5);
		ck_assert_uint_eq(step.sp, STACK + 8 * 21);
	}
	regs[13] = STACK + 8 * 19;
	ck_assert_int_eq(step_at(HOTSPOT_ADAPTER, 0, false), -ENOENT);
}
END_TEST

START_TEST(a_frame_whose_words_are_being_pushed_is_of_the_method_in_its_register)
{
	interpreted_frame();
	regs[7] = STACK + 8 * 15;
	regs[3] = HW_METHOD(1);
	stack[13] = 0xdead;
	ck_assert_int_eq(step_at(HOTSPOT_ENTRY, 0, true), 0);
	ck_assert_uint_eq(step.own.key, HW_METHOD(1));
	ck_assert_uint_eq(step.own.cookie[0], 0);
	ck_assert_uint_eq(step.sp, STACK + 8 * 25);
}
END_TEST

START_TEST(frame_pointers_in_the_heap_are_distances)
{
	ck_assert_int_eq(code_at(HW_CODE), 0);
	at_rsp(6);
	stack[4] = 10;
	ck_assert_int_eq(step_in_heap(HOTSPOT_COMPILED, HW_POLL), 0);
	ck_assert_uint_eq(step.fp, STACK + 8 * (4 + 10));
	ck_assert_uint_eq(step.flags & RUNTIME_STEP_FROZEN, 0);
	interpreted_frame();
	stack[18] = 6;
	stack[19] = 12;
	ck_assert_int_eq(step_in_heap(HOTSPOT_INTERPRETER, 0), 0);
	ck_assert_uint_eq(step.sp, STACK + 8 * (19 + 6));
	ck_assert_uint_eq(step.fp, STACK + 8 * (19 + 12));
	ck_assert_uint_eq(step.own.key, HW_METHOD(0));
	/* On the stack they are what compiled code has in its registers. */
	at_rsp(6);
	stack[4] = 10;
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, HW_POLL, false), 0);
	ck_assert_uint_eq(step.fp, 10);
}
END_TEST

START_TEST(the_outermost_frame_in_the_heap_leads_out_of_it)
{
	struct hotspot *h = (void *)attached.param;
	const uint64_t callers[] = {0, HW_BARRIER};

	h->barrier = HW_BARRIER;
	ck_assert_int_eq(code_at(HW_CODE), 0);
	at_rsp(6);
	stack[5] = callers[_i];
	ck_assert_int_eq(step_in_heap(HOTSPOT_COMPILED, HW_POLL), 0);
	ck_assert_uint_eq(step.flags & RUNTIME_STEP_FROZEN, RUNTIME_STEP_FROZEN);
	/* On the stack, every frame has a caller. */
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, HW_POLL, false), callers[_i] ? 0 : -ENOENT);
	ck_assert_uint_eq(step.flags & RUNTIME_STEP_FROZEN, 0);
}
END_TEST

/* Where the thread returns to it; not as its own code runs, nor where nothing was copied. */
START_TEST(the_barrier_leads_to_frames_in_the_heap)
{
	struct hotspot *h = (void *)attached.param;
	struct runtime_place at = {.pc = HW_BARRIER, .arch = OTP_ARCH_X86_64, .valid = 0x1ffff, .reg = regs, .more = made.more, .load = load,
				   .leads_to_heap = true};

	h->barrier = HW_BARRIER;
	at_rsp(10);
	regs[6] = STACK + 8 * 8;
	made.code.kind = HOTSPOT_BARRIER;
	step = (struct runtime_step){0};
	ck_assert_int_eq(hotspot_step(&attached, &made.code, &at, &step), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_FROZEN);
	at.exact = true;
	step = (struct runtime_step){0};
	ck_assert_int_eq(hotspot_step(&attached, &made.code, &at, &step), 0);
	ck_assert_uint_eq(step.flags & RUNTIME_STEP_FROZEN, 0);
	at.exact = at.leads_to_heap = false;
	step = (struct runtime_step){0};
	ck_assert_int_eq(hotspot_step(&attached, &made.code, &at, &step), 0);
	ck_assert_uint_eq(step.flags & (RUNTIME_STEP_FROZEN | RUNTIME_STEP_LEFT_OUT), RUNTIME_STEP_LEFT_OUT);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	/* Without a walk, as with some collectors, and while it runs. */
	h->barrier = 0;
	at.pc = HW_BARRIER + 8;
	at.exact = true;
	step = (struct runtime_step){0};
	ck_assert_int_eq(hotspot_step(&attached, &made.code, &at, &step), 0);
	ck_assert_uint_eq(step.flags & RUNTIME_STEP_LEFT_OUT, RUNTIME_STEP_LEFT_OUT);
}
END_TEST

START_TEST(where_nothing_leads_on_from_the_barrier_it_is_the_end)
{
	const uint64_t fp[] = {STACK + 8 * 8, STACK + (1 << 16), 12345};

	at_rsp(10);
	stack[9] = 0x1234; /* no code */
	regs[6] = fp[_i];
	ck_assert_int_eq(step_at(HOTSPOT_BARRIER, 0, false), 0);
	ck_assert_uint_eq(step.flags, RUNTIME_STEP_ROOT | RUNTIME_STEP_LEFT_OUT);
}
END_TEST

START_TEST(beyond_the_copied_stack_the_barriers_carrier_is_missing)
{
	const uint64_t fp[] = {STACK + sizeof(stack), STACK + sizeof(stack) - 8};

	at_rsp(10);
	regs[6] = fp[_i];
	ck_assert_int_eq(step_at(HOTSPOT_BARRIER, 0, false), -EFAULT);
}
END_TEST

/* Its callers are being put into the heap: what is there is not what called them. */
START_TEST(what_a_virtual_thread_waits_in_is_known_by_its_name)
{
	put(WORLD + 0x700, "native nmethod", 15);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(made.code.kind, HOTSPOT_COMPILED);
	hotspot_put_method(HW_METHOD(0), "jdk/internal/vm/Continuation", "doYield", "()I", "", (const uint8_t *)"", 0);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(made.code.kind, HOTSPOT_YIELD);
	at_rsp(6);
	ck_assert_int_eq(step_at(HOTSPOT_YIELD, HW_POLL, false), 0);
	ck_assert_uint_eq(step.flags & RUNTIME_STEP_MOVES, RUNTIME_STEP_MOVES);
	ck_assert_uint_eq(step.sp, STACK + 48);
	hotspot_put_method(HW_METHOD(0), "org/demo/Continuation", "doYield", "()I", "", (const uint8_t *)"", 0);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_uint_eq(made.code.kind, HOTSPOT_COMPILED);
}
END_TEST

/* linkToStatic and the like go on to the method that an argument names (sharedRuntime_x86_64.cpp, gen_special_dispatch). */
START_TEST(a_native_method_without_a_frame_has_its_name)
{
	uint64_t chain[4];

	put(WORLD + 0x700, "native nmethod", 15);
	put32(HW_BLOB + 0x1c, 0);
	ck_assert_int_eq(code_at(HW_CODE + 0x40), 0);
	ck_assert_uint_eq(made.code.kind, HOTSPOT_STUB);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	ck_assert_uint_eq(code_chain(&made, HW_CODE, false, chain), 1);
	ck_assert_uint_eq(chain[0], HW_METHOD(0));
	ck_assert_uint_eq(code_chain(&made, HW_CODE + 0x40, false, chain), 1);
	ck_assert_int_eq(hotspot_decode(&attached, &memory, &made.functions[0], &function), 0);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	made.known_epoch = made.code.epoch;
	ck_assert_int_eq(code_at(HW_CODE + 0x40), -EALREADY);
}
END_TEST

START_TEST(hand_written_code_has_a_frame_pointer_or_no_frame)
{
	at_rsp(2);
	stack[0] = HW_CODE + 5;
	ck_assert_int_eq(step_at(HOTSPOT_STUB, 0, true), 0);
	ck_assert_uint_eq(step.sp, STACK + 8);
	at_rsp(10);
	regs[6] = STACK + 8 * 8;
	ck_assert_int_eq(step_at(HOTSPOT_STUB, 0, true), 0);
	ck_assert_uint_eq(step.sp, STACK + 80);
	ck_assert_uint_eq(step.fp, 0xcc);
	regs[6] = STACK - 8;
	ck_assert_int_eq(step_at(HOTSPOT_STUB, 0, false), -ENOENT);
}
END_TEST

/* push rdi; push rsi; test; pop rsi; pop rdi; ret */
static void put_pushes(const char *name, size_t size, uint32_t frame)
{
	put(WORLD + 0x700, name, size);
	put32(HW_BLOB + 0x1c, frame);
	put(HW_CODE, "\x57\x56\x48\x85\xf6\x5e\x5f\xc3", 8);
	ck_assert_int_eq(code_at(HW_CODE), 0);
}

/* Another stub of the same size at the same place is not the same; a collection says nothing of what the program gives up. */
START_TEST(code_of_no_method_is_known_by_its_instructions)
{
	uint64_t identity[RUNTIME_CODE_IDENTITY];
	uint8_t other = 0x90;

	((struct hotspot *)attached.param)->code_may_go = 1;
	put_pushes("monitorexit Runtime1 stub", 26, 4);
	ck_assert_uint_eq(made.code.flags, 0);
	memcpy(identity, made.code.identity, sizeof(identity));
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_mem_eq(identity, made.code.identity, sizeof(identity));
	put(HW_CODE + 2, &other, 1);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_mem_ne(identity, made.code.identity, sizeof(identity));
	put_pushes("upcall_stub_(LL)I", 18, 0);
	ck_assert_uint_eq(made.code.flags, RUNTIME_CODE_FLEETING);
}
END_TEST

START_TEST(hand_written_code_is_left_by_what_it_has_pushed)
{
	struct hotspot_depth d;

	put_pushes("monitorexit Runtime1 stub", 26, 4);
	ck_assert_uint_eq(made.code.kind, HOTSPOT_STUB);
	at_rsp(3);
	stack[0] = HW_CODE + 9; /* looks like a return address, too */
	ck_assert_int_eq(step_at(HOTSPOT_STUB, 2, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 24);
	ck_assert_uint_eq(step.fp, 0xbb);
	/* Others jump to this one, with their frames. */
	put_pushes("forward_exception Runtime1 stub", 32, 4);
	ck_assert_int_eq(hotspot_depth_at(&made.code, HW_CODE + 2, &d), -ENOENT);
	put_pushes("monitorexit Runtime1 stub", 26, 4);
	/* Something else has called it. */
	stack[0] = stack[2] = 0xdead;
	stack[9] = HW_CODE + 5;
	stack[8] = 0xcc;
	regs[6] = STACK + 8 * 8;
	ck_assert_int_eq(step_at(HOTSPOT_STUB, 2, true), 0);
	ck_assert_uint_eq(step.sp, STACK + 80);
}
END_TEST

START_TEST(for_a_check_of_a_subtype_the_caller_has_pushed_two_words)
{
	put_pushes("slow_subtype_check Runtime1 stub", 33, (uint32_t)-1);
	ck_assert_uint_eq(made.code.kind, HOTSPOT_SUBTYPE);
	at_rsp(3);
	ck_assert_int_eq(step_at(HOTSPOT_SUBTYPE, 3, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 24 + 16);
	/* By the frame pointer it is another caller's. */
	at_rsp(10);
	regs[6] = STACK + 8 * 8;
	ck_assert_int_eq(step_at(HOTSPOT_SUBTYPE, 3, true), 0);
	ck_assert_uint_eq(step.sp, STACK + 80);
	put_pushes("C1 Runtime slow_subtype_check_blob", 35, (uint32_t)-1);
	ck_assert_uint_eq(made.code.kind, HOTSPOT_SUBTYPE);
	put_pushes("slow_subtype_check_blob (C1 runtime)", 37, (uint32_t)-1);
	ck_assert_uint_eq(made.code.kind, HOTSPOT_SUBTYPE);
}
END_TEST

START_TEST(hand_written_code_that_uses_the_frame_pointers_register_is_left_by_the_one_it_kept)
{
	put_pushes("sha512 Runtime1 stub", 21, 4);
	put(HW_CODE, "\x55\x48\x89\xe5\x48\x83\xe4\xe0\x48\x89\x6c\x24\x40\x31\xed\x90", 16);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	at_rsp(20);
	stack[8] = STACK + 8 * 18;
	ck_assert_int_eq(step_at(HOTSPOT_STUB, 15, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 8 * 20);
	ck_assert_uint_eq(step.fp, 0xcc);
}
END_TEST

/* Until their frame is there, the frame pointer is still that of native code, which has its own frame. */
START_TEST(stubs_that_native_code_calls_lead_back_to_it)
{
	const uint64_t native = 0x7f0012345678;

	for (int i = 0; i < 2; i++) {
		if (i)
			hotspot_put_stubs(17);
		else
			put_pushes("upcall_stub_(LL)I", 18, 0);
		((struct hotspot *)attached.param)->call_return = i ? HW_STUB + 8 : 0;
		put(i ? HW_STUB : HW_CODE, "\x55\x48\x8b\xec\x48\x83\xec\x20\x90", 9); /* push rbp; mov rbp, rsp; sub rsp, 32 */
		ck_assert_int_eq(code_at(i ? HW_STUB : HW_CODE), 0);
		ck_assert_uint_eq(made.code.kind, HOTSPOT_UPCALL);
		for (uint32_t at = 0, words = 1; at < 8; at += at ? 3 : 1, words = 2) {
			at_rsp(MAX(words, 2u));
			stack[words - 1] = native;
			regs[6] = STACK + 8 * 20;
			ck_assert_int_eq(step_at(HOTSPOT_UPCALL, at, true), 0);
			ck_assert_uint_eq(step.pc, native);
			ck_assert_uint_eq(step.sp, STACK + 8 * words);
			ck_assert_uint_eq(step.fp, words == 1 ? STACK + 8 * 20 : 0xcc);
		}
	}
}
END_TEST

START_TEST(of_a_blob_of_many_stubs_only_what_a_descriptor_tells_of_has_a_depth)
{
	struct hotspot_depth d;

	hotspot_put_stubs(17);
	put(HW_STUB, "\x57\x56\xc3", 3);
	ck_assert_int_eq(code_at(HW_STUB), 0);
	ck_assert_int_eq(hotspot_depth_at(&made.code, HW_STUB + 2, &d), 0);
	ck_assert_uint_eq(d.depth, 24);
	((struct hotspot *)attached.param)->stubs = 0;
	ck_assert_int_eq(code_at(HW_STUB), 0);
	ck_assert_int_eq(hotspot_depth_at(&made.code, HW_STUB + 2, &d), -ENOENT);
}
END_TEST

START_TEST(the_barrier_at_a_methods_entry_has_a_word_above_its_frame)
{
	at_rsp(10);
	regs[6] = STACK + 8 * 7;
	stack[7] = 0xcc;
	stack[8] = UINT64_MAX;
	ck_assert_int_eq(step_at(HOTSPOT_STUB, 0, false), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 80);
	ck_assert_uint_eq(step.fp, 0xcc);
	regs[7] = STACK + 8 * 8;
	ck_assert_int_eq(step_at(HOTSPOT_STUB, 0, true), 0);
	ck_assert_uint_eq(step.pc, HW_CODE + 5);
	ck_assert_uint_eq(step.sp, STACK + 80);
	ck_assert_uint_eq(step.fp, STACK + 8 * 7);
}
END_TEST

START_TEST(a_frame_beyond_the_copied_stack_is_missing)
{
	at_rsp(2);
	regs[7] = STACK + sizeof(stack);
	ck_assert_int_eq(code_at(HW_CODE), 0);
	ck_assert_int_eq(step_at(HOTSPOT_COMPILED, HW_POLL, true), -EFAULT);
	regs[6] = STACK + sizeof(stack) - 8;
	ck_assert_int_eq(step_at(HOTSPOT_INTERPRETER, 0, false), -EFAULT);
}
END_TEST

Suite *runtime_hotspot_suite(void)
{
	Suite *s = suite_create("runtime_hotspot");
	TCase *t = tcase_create("hotspot");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, numbers_have_six_bits_a_byte);
	tcase_add_test(t, since_20_no_byte_of_a_number_is_zero);
	tcase_add_test(t, numbers_end_with_the_memory);
	tcase_add_test(t, a_method_has_class_signature_file_and_lines);
	tcase_add_test(t, a_hidden_class_is_without_its_address);
	tcase_add_test(t, a_method_is_bounded_by_its_bytecodes);
	tcase_add_test(t, a_method_of_many_parameters_has_its_name);
	tcase_add_test(t, a_class_may_have_a_plus_in_its_name);
	tcase_add_test(t, a_method_of_another_class_by_now_is_stale);
	tcase_add_test(t, a_method_of_code_that_is_gone_is_stale);
	tcase_add_test(t, a_method_without_its_texts_is_stale);
	tcase_add_test(t, a_method_is_not_named_once_a_class_was_unloaded_since_the_sample);
	tcase_add_test(t, without_counters_collections_are_the_epochs);
	tcase_add_test(t, a_redefined_class_ends_an_epoch_of_methods);
	tcase_add_test(t, a_counter_that_could_not_be_read_says_no_epoch);
	tcase_add_test(t, the_counter_for_code_is_that_of_the_collector_or_the_sweeper);
	tcase_add_loop_test(t, collectors_that_run_beside_the_program_give_up_code_within_an_epoch, 0, 2);
	tcase_add_test(t, a_counter_for_code_that_cannot_be_read_is_none);
	tcase_add_test(t, without_either_there_are_no_epochs);
	tcase_add_test(t, code_has_epochs_of_its_own);
	tcase_add_test(t, epochs_of_code_begin_with_one);
	tcase_add_test(t, the_end_of_a_class_ends_an_epoch_of_code_where_there_is_a_sweeper);
	tcase_add_test(t, frame_pointers_in_the_heap_are_distances);
	tcase_add_loop_test(t, the_outermost_frame_in_the_heap_leads_out_of_it, 0, 2);
	tcase_add_test(t, the_barrier_leads_to_frames_in_the_heap);
	tcase_add_loop_test(t, where_nothing_leads_on_from_the_barrier_it_is_the_end, 0, 3);
	tcase_add_loop_test(t, beyond_the_copied_stack_the_barriers_carrier_is_missing, 0, 2);
	tcase_add_test(t, what_a_virtual_thread_waits_in_is_known_by_its_name);
	tcase_add_test(t, compiled_code_has_its_methods_and_what_was_inlined);
	tcase_add_loop_test(t, code_ends_where_its_data_begin, 0, 4);
	tcase_add_test(t, the_end_of_a_loop_is_of_the_method_whose_poll_is_in_it);
	tcase_add_test(t, what_jumps_away_before_inlined_code_is_not_of_it);
	tcase_add_test(t, what_leads_to_two_inlined_methods_is_of_the_one_around_them);
	tcase_add_test(t, what_is_inlined_and_refused_is_of_no_method);
	tcase_add_test(t, behind_as_many_descriptors_as_are_read_nothing_is_known);
	tcase_add_test(t, a_jump_back_to_what_is_behind_all_makes_no_loop);
	tcase_add_test(t, a_loop_that_ends_before_its_poll_is_of_the_method_of_that);
	tcase_add_test(t, what_aligns_a_loop_does_not_lead_to_it);
	tcase_add_test(t, a_loop_without_a_poll_between_inlined_methods_is_of_neither);
	tcase_add_test(t, code_whose_flow_is_not_known_has_what_its_marks_say);
	tcase_add_test(t, the_innermost_loop_of_a_method_is_found_if_there_is_one);
	tcase_add_test(t, a_loop_without_a_poll_is_on_the_line_of_the_only_loop);
	tcase_add_test(t, the_only_loop_of_a_method_without_descriptors_has_its_line);
	tcase_add_test(t, hand_written_code_has_the_names_of_its_list);
	tcase_add_test(t, a_list_of_stubs_without_an_end_is_left);
	tcase_add_test(t, a_stub_that_is_still_there_is_the_same_to_another_decoder);
	tcase_add_test(t, code_that_is_still_there_is_not_read_again);
	tcase_add_test(t, free_blocks_and_other_addresses_have_no_code);
	tcase_add_test(t, a_compiled_frame_is_left_at_each_of_its_instructions);
	tcase_add_test(t, a_frame_that_is_given_up_has_kept_where_it_was);
	tcase_add_loop_test(t, the_handler_is_an_offset_or_an_address, 0, 3);
	tcase_add_test(t, where_nobody_tells_when_a_frame_is_there_callers_alone_are_known);
	tcase_add_loop_test(t, what_saves_all_registers_is_left_at_each_of_its_instructions, 0, 3);
	tcase_add_test(t, what_handles_an_exception_has_its_frame_up_to_where_it_is_taken_down);
	tcase_add_loop_test(t, a_frame_whose_caller_would_be_no_code_of_java_is_not_left, 0, 3);
	tcase_add_test(t, words_that_compiled_code_takes_for_a_while_lie_beneath_its_frame);
	tcase_add_test(t, where_nobody_knows_how_much_was_taken_the_caller_is_unknown);
	tcase_add_test(t, code_of_no_method_is_known_by_its_instructions);
	tcase_add_test(t, a_frame_that_is_aligned_already_stays_as_it_is);
	tcase_add_test(t, pushed_arguments_are_taken_away_by_who_is_called);
	tcase_add_test(t, what_was_pushed_before_the_arguments_stays_there);
	tcase_add_test(t, behind_a_jump_there_is_what_others_lead_there_with);
	tcase_add_test(t, where_ways_meet_that_took_different_words_the_caller_is_unknown);
	tcase_add_test(t, what_is_left_of_a_patched_instruction_takes_nothing);
	tcase_add_test(t, a_stack_pointer_that_was_pushed_leads_to_the_frame);
	tcase_add_test(t, what_jumps_part_of_one_range_is_one);
	tcase_add_loop_test(t, of_more_places_that_jumps_lead_to_than_there_is_room_for_nothing_is_known, 0, 2);
	tcase_add_loop_test(t, code_that_no_jump_leads_to_has_jumps_of_its_own, 0, 2);
	tcase_add_loop_test(t, ways_that_are_not_all_found_are_not_known, 0, 2);
	tcase_add_test(t, jumps_lead_back_with_words);
	tcase_add_test(t, a_second_prologue_takes_no_words);
	tcase_add_test(t, behind_leave_the_frame_pointer_is_the_callers);
	tcase_add_test(t, a_return_behind_the_check_of_the_reserved_stack_is_one);
	tcase_add_test(t, a_jump_away_ends_a_frame_as_a_return_does);
	tcase_add_test(t, a_native_method_has_no_frame_between_leave_and_its_ends);
	tcase_add_loop_test(t, of_more_ranges_than_a_region_has_room_for_the_last_are_not_known, 0, 2);
	tcase_add_test(t, of_many_checks_of_types_each_place_is_known);
	tcase_add_test(t, of_many_returns_each_is_known);
	tcase_add_test(t, two_returns_that_touch_are_two);
	tcase_add_test(t, a_range_may_be_longer_than_its_entry);
	tcase_add_test(t, an_interpreted_frame_says_its_method_and_bytecode);
	tcase_add_test(t, a_method_that_is_being_entered_has_no_frame_yet);
	tcase_add_test(t, the_frame_of_an_interpreted_caller_is_not_that_of_the_method_being_entered);
	tcase_add_test(t, a_method_without_locals_has_the_callers_stack_pointer_once_it_took_the_return_address);
	tcase_add_test(t, an_adapter_that_has_its_caller_mended_knows_where_the_return_address_lies);
	tcase_add_test(t, an_adapter_has_the_callers_stack_pointer_once_it_took_the_return_address);
	tcase_add_test(t, a_frame_whose_words_are_being_pushed_is_of_the_method_in_its_register);
	tcase_add_test(t, a_native_method_without_a_frame_has_its_name);
	tcase_add_test(t, hand_written_code_has_a_frame_pointer_or_no_frame);
	tcase_add_test(t, hand_written_code_is_left_by_what_it_has_pushed);
	tcase_add_test(t, for_a_check_of_a_subtype_the_caller_has_pushed_two_words);
	tcase_add_test(t, hand_written_code_that_uses_the_frame_pointers_register_is_left_by_the_one_it_kept);
	tcase_add_test(t, stubs_that_native_code_calls_lead_back_to_it);
	tcase_add_test(t, of_a_blob_of_many_stubs_only_what_a_descriptor_tells_of_has_a_depth);
	tcase_add_test(t, the_barrier_at_a_methods_entry_has_a_word_above_its_frame);
	tcase_add_test(t, a_frame_beyond_the_copied_stack_is_missing);
	suite_add_tcase(s, t);
	return s;
}
