// SPDX-License-Identifier: Apache-2.0
/* What is found in beam.smp's file and its data: the loop of an interpreter, and the process that purges modules. */
#include <check.h>
#include <errno.h>

#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "runtime/beam.h"
#include "tests/lib/symbols_elf.h"

Suite *runtime_beam_file_suite(void);

#define LOOP	 0x20000ULL /* in the file, as all of these */
#define LOOP_LEN 0x1100u
#define SCHEDULE 0x30000ULL
#define APPLY	 0x5000ULL
#define DATA_LEN 0x8000u
#define LABELS	 0x6ff0ULL /* across two pieces that are read */
#define PURGER	 0x4000ULL
#define PROCESS	 (WORLD + 0x9000)
#define NR_LABELS 64u

enum { NILS = 4 };
/* The last one lies across two pieces of code. */
static const uint32_t nil_at[NILS] = {0x10, 0x40, 0x80, 4090};
static const uint8_t nil[] = {0x49, 0xc7, 0x45, 0x00, 0xfb, 0xff, 0xff, 0xff}, jump[] = {0xff, 0x23};

static struct symbols_elf elf;
static struct runtime_file file;
static struct beam beam;

static void put_call(uint32_t offset, uint64_t to)
{
	const int32_t relative = (int32_t)(to - (LOOP + offset + 5));
	const uint8_t call = 0xe8;

	put(WORLD + LOOP + offset, &call, 1);
	put(WORLD + LOOP + offset + 1, &relative, sizeof(relative));
}

static void put_labels(uint64_t at, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		put64(WORLD + at + 8 * i, WORLD + LOOP + 16 * i);
}

static void setup(void)
{
	memset(world, 0, sizeof(world));
	memory_question(&memory);
	beam = (struct beam){0};
	symbols_elf_init(&elf, EM_X86_64);
	elf.segment.p_flags = PF_R | PF_W;
	elf.segment.p_memsz = DATA_LEN;
	symbols_elf_add(&elf, "process_main", LOOP);
	elf.symbol[0].st_size = LOOP_LEN;
	symbols_elf_add(&elf, "erts_schedule", SCHEDULE);
	symbols_elf_add(&elf, "beam_apply", APPLY);
	symbols_elf_add(&elf, "beam_return_trace", APPLY + 0x40);
	symbols_elf_add(&elf, "beam_exit", APPLY - 0x20);
	symbols_elf_add(&elf, "erts_code_purger", PURGER);
	for (uint32_t i = 0; i < NILS; i++)
		put(WORLD + LOOP + nil_at[i], nil, sizeof(nil));
	put(WORLD + LOOP + 0x100, jump, sizeof(jump));
	put_call(0x200, SCHEDULE + 0x40);
	put_call(0x300, SCHEDULE);
	put_labels(LABELS, NR_LABELS);
}

static void open_file(void)
{
	file = (struct runtime_file){.binary = symbols_elf_open(&elf), .bias = WORLD};
	ck_assert_ptr_nonnull(file.binary);
}

static void teardown(void)
{
	file.binary = binary_put(file.binary);
}

/* --- the interpreter --- */

static int find_loop(void)
{
	open_file();
	return beam_find_loop(&file, &memory, &beam);
}

START_TEST(a_loop_has_its_labels_and_instructions_of_no_module)
{
	put_labels(LABELS - 0x1000, 10);
	ck_assert_int_eq(find_loop(), 0);
	ck_assert_uint_eq(beam.loop, WORLD + LOOP);
	ck_assert_uint_eq(beam.loop_end, WORLD + LOOP + LOOP_LEN);
	ck_assert_uint_eq(beam.choice, WORLD + LOOP + 0x305);
	ck_assert_uint_eq(beam.labels, WORLD + LABELS);
	ck_assert_uint_eq(beam.labels_end, WORLD + LABELS + 8 * NR_LABELS);
	ck_assert_uint_eq(beam.own, WORLD + APPLY - 0x20);
	ck_assert_uint_eq(beam.own_end, WORLD + APPLY + 0x50);
	ck_assert_uint_eq(beam.exits[0], WORLD + APPLY + 8);
	ck_assert_uint_eq(beam.exits[1], WORLD + APPLY + 8);
}
END_TEST

static void no_name(void) { elf.symbol[0].st_name = elf.symbol[1].st_name; }
static void no_scheduler(void) { elf.symbol[1].st_name = elf.symbol[2].st_name; }
static void no_apply(void) { elf.symbol[2].st_name = elf.symbol[3].st_name; }
static void no_size(void) { elf.symbol[0].st_size = 0; }
static void too_long(void) { elf.symbol[0].st_size = (128u << 10) + 1; }
static void fewer_frames(void) { memset(&world[LOOP + nil_at[NILS - 1]], 0, 1); }
static void no_jump(void) { memset(&world[LOOP + 0x100], 0, 1); }
static void no_choice(void) { put_call(0x300, SCHEDULE + 8); }
static void fewer_labels(void) { put64(WORLD + LABELS + 8 * (NR_LABELS - 1), 0); }
static void not_data(void) { elf.segment.p_flags = PF_R; }
static void not_readable(void) { elf.symbol[0].st_value = WORLD_BYTES - 64; }

static const struct { const char *text; void (*change)(void); } unlike[] = {
	{"no process_main", no_name}, {"no erts_schedule", no_scheduler}, {"no beam_apply", no_apply},
	{"no size", no_size}, {"too long", too_long}, {"three frames begin", fewer_frames}, {"no jump by rbx", no_jump},
	{"no process is chosen", no_choice}, {"63 labels", fewer_labels}, {"labels in no data", not_data},
	{"not readable", not_readable},
};

START_TEST(what_lacks_a_mark_is_no_loop)
{
	unlike[_i].change();
	ck_assert_msg(find_loop() == -ENOENT, "%s", unlike[_i].text);
	ck_assert_uint_eq(beam.loop | beam.loop_end | beam.own | beam.exits[0], 0);
}
END_TEST

/* --- the purger --- */

static struct otp_walk walk;

static void attach_epoch(void)
{
	walk = (struct otp_walk){.start = OTP_WALK_TLS};
	put64(WORLD + PURGER, PROCESS);
	put64(PROCESS + (uint64_t)beam_rows[beam.row].reds, 41);
}

START_TEST(the_walk_copies_the_purgers_reductions)
{
	for (beam.row = 0; beam_rows[beam.row].erts; beam.row++) {
		const struct runtime_attached none = {0};
		struct runtime_attached a = {0};
		uint64_t now;

		attach_epoch();
		open_file();
		beam_epoch_attach(&file, &memory, &beam, &walk);
		ck_assert_uint_eq(walk.held.also, PROCESS + (uint64_t)beam_rows[beam.row].reds);
		ck_assert_uint_eq(beam.epoch_at, walk.held.also);
		ck_assert_int_eq(beam_epoch_now(&beam, &memory, &now), 0);
		ck_assert_uint_eq(now, beam.epoch);
		memcpy(a.param, &beam, sizeof(beam));
		ck_assert_uint_eq(beam_epoch(&a, (uint64_t[]){PROCESS, 41}, 2), now);
		ck_assert_uint_ne(beam_epoch(&a, (uint64_t[]){PROCESS, 42}, 2), now);
		ck_assert_uint_eq(beam_epoch(&none, (uint64_t[]){PROCESS, 41}, 2), 0);
		teardown();
	}
}
END_TEST

/* --- the greeting --- */

#define GREETING "[erts-13.1.5] [source] [64-bit] [smp:%beu:%beu] [ds:%beu:%beu:%beu] [async-threads:%d] "

static const struct { const char *greeting, *version, *why; } greetings[] = {
	{GREETING "[jit%s]\n", "OTP 25 (ERTS 13.1.5)", "it is built without the native stack"},
	{GREETING "[jit]\n", "OTP 25 (ERTS 13.1.5)", "it is built without the native stack"},
	{GREETING "[jit:ns%s]\n", "OTP 25 (ERTS 13.1.5)", "it does not tell where its atoms are"},
	{GREETING "\n", "OTP 25 (ERTS 13.1.5)", "it does not tell where its atoms are"},
	{"[erts-", "ERTS ", "it does not tell where its atoms are"},
	{"", "ERTS ", "it does not tell where its atoms are"},
};

/* Elsewhere the process' stack is another one, as are its words: there would be wrong callers. */
START_TEST(an_emulator_without_the_native_stack_is_refused)
{
	struct runtime_attached a = {0};
	char why[RUNTIME_WHY_MAX] = "";

	strcpy((char *)elf.room, greetings[_i].greeting);
	symbols_elf_section(&elf, 4, ".data", SHT_PROGBITS, offsetof(struct symbols_elf, room), sizeof(elf.room), 0);
	open_file();
	ck_assert_int_eq(beam_attach(&file, &memory, &a, why), -ENOTSUP);
	ck_assert_str_eq(why, greetings[_i].why);
	ck_assert_str_eq(a.version, greetings[_i].version);
}
END_TEST

/* --- a process by its name --- */

#define TABLE	(WORLD + 0xffe8) /* across two pieces of data */
#define OTHER	(WORLD + 0x7800) /* another table of that kind */
#define SLOTS	(WORLD + 0x40000)
#define NAMED(i) (WORLD + 0x41000 + 0x100ULL * (i))
#define NAME	(0xf2ULL << BEAM_ATOM_BITS | BEAM_ATOM_TAG)
#define SHIFT	59 /* 32 slots, of which that atom's is one */
#define SLOT	(11400714819323198485ULL * 0xf2 >> SHIFT)
#define TEXT	0x900ULL

static void put_table(uint64_t at, const char *name, uint64_t slots)
{
	const uint64_t text = TEXT + (at == TABLE ? 0 : 64);

	for (uint32_t i = 0; i < 7; i++)
		put64(at + 8 * i, WORLD + 0x1000 + 0x10 * i);
	put64(at + 56, 0x30e4ULL << 32);
	put64(at + 64, WORLD + text);
	put64(at + 72, SHIFT + (60ULL << 32));
	put64(at + 96, slots);
	put(WORLD + text, name, strlen(name) + 1);
}

static void put_name(uint32_t i, uint64_t next, uint64_t process, uint64_t name)
{
	const uint64_t words[] = {next, name >> BEAM_ATOM_BITS, process, 0, name};

	put(NAMED(i), words, sizeof(words));
	if (process)
		put64(process + (uint64_t)beam_rows[beam.row].registered, NAMED(i));
}

/* The second one in its slot, of a file without a symbol for it. */
static void put_purger(void)
{
	elf.symbol[5].st_name = elf.symbol[4].st_name;
	elf.segment.p_flags = PF_R | PF_W | PF_X;
	elf.segment.p_memsz = 0x18000;
	beam.purger = NAME;
	put_table(OTHER, "atom_tab", SLOTS + 0x800);
	put_table(TABLE, "process_reg", SLOTS);
	put64(SLOTS + 8 * SLOT, NAMED(0));
	put_name(0, NAMED(1), PROCESS + 0x2000, NAME + (32 << BEAM_ATOM_BITS));
	put_name(1, 0, PROCESS, NAME);
	attach_epoch();
}

START_TEST(without_a_symbol_the_purger_is_found_by_its_name)
{
	put_purger();
	open_file();
	beam_epoch_attach(&file, &memory, &beam, &walk);
	ck_assert_uint_eq(beam.epoch_at, PROCESS + (uint64_t)beam_rows[0].reds);
	ck_assert_uint_eq(walk.held.also, beam.epoch_at);
}
END_TEST

static void unknown_atom(void) { beam.purger = 0; }
static void another_table(void) { put_table(TABLE, "process_regs", SLOTS); }
static void no_code(void) { put64(TABLE + 48, WORLD + 0x18000); }
static void on_the_heap(void) { put32(TABLE + 56, 1); }
static void too_many_slots(void) { put32(TABLE + 72, 64 - 21); }
static void one_slot(void) { put32(TABLE + 72, 64); }
static void another_name(void) { put_name(1, 0, PROCESS, NAME + 64); }
static void endless(void) { put_name(1, NAMED(0), PROCESS, NAME + 64); }
static void empty(void) { put64(SLOTS + 8 * SLOT, 0); }
static void nowhere(void) { put64(SLOTS + 8 * SLOT, WORLD - 8); }
static void of_a_port(void) { put64(NAMED(1) + 24, PROCESS); }
static void was_renamed(void) { put64(PROCESS + (uint64_t)beam_rows[0].registered, NAMED(0)); }

static void (*const unnamed[])(void) = {unknown_atom, another_table, no_code, on_the_heap, too_many_slots, one_slot,
					another_name, endless, empty, nowhere, of_a_port, was_renamed};

START_TEST(what_has_not_that_name_is_no_purger)
{
	put_purger();
	unnamed[_i]();
	open_file();
	beam_epoch_attach(&file, &memory, &beam, &walk);
	ck_assert_uint_eq(beam.epoch_at, 0);
	ck_assert_uint_eq(walk.held.also, 0);
}
END_TEST

static void no_walk(void) { walk.start = OTP_WALK_NONE; }
static void no_purger_symbol(void) { elf.symbol[5].st_name = elf.symbol[4].st_name; }
static void no_purger_yet(void) { put64(WORLD + PURGER, 0); }
static void no_variable(void) { elf.symbol[5].st_value = WORLD_BYTES; }
static void no_process(void) { put64(WORLD + PURGER, WORLD + WORLD_BYTES - 8); }
static void no_version(void) { while (beam_rows[beam.row].erts) beam.row++; }

static void (*const without[])(void) = {no_walk, no_purger_symbol, no_purger_yet, no_variable, no_process, no_version};

START_TEST(without_a_purger_there_is_no_epoch)
{
	uint64_t now = 1;

	attach_epoch();
	without[_i]();
	open_file();
	beam_epoch_attach(&file, &memory, &beam, &walk);
	ck_assert_uint_eq(walk.held.also, 0);
	ck_assert_uint_eq(beam.epoch_at, 0);
	ck_assert_int_eq(beam_epoch_now(&beam, &memory, &now), 0);
	ck_assert_uint_eq(now, 0);
}
END_TEST

Suite *runtime_beam_file_suite(void)
{
	Suite *s = suite_create("runtime_beam_file");
	TCase *t = tcase_create("beam_file");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_loop_has_its_labels_and_instructions_of_no_module);
	tcase_add_loop_test(t, what_lacks_a_mark_is_no_loop, 0, ARRAY_SIZE(unlike));
	tcase_add_test(t, the_walk_copies_the_purgers_reductions);
	tcase_add_loop_test(t, without_a_purger_there_is_no_epoch, 0, ARRAY_SIZE(without));
	tcase_add_loop_test(t, an_emulator_without_the_native_stack_is_refused, 0, ARRAY_SIZE(greetings));
	tcase_add_test(t, without_a_symbol_the_purger_is_found_by_its_name);
	tcase_add_loop_test(t, what_has_not_that_name_is_no_purger, 0, ARRAY_SIZE(unnamed));
	suite_add_tcase(s, t);
	return s;
}
