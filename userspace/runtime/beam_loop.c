// SPDX-License-Identifier: Apache-2.0
/*
 * BEAM without its compiler, as OTP 23 always is: process_main reads the
 * instructions of a module, words with the addresses of C code, and has the place
 * in rbx and the process' stack pointer in r13 (erts/emulator/beam/beam_emu.c,
 * REG_I and REG_stop); at some of its own instructions they are elsewhere, as its
 * regions tell (beam_flow.h). Where process_main's frame is and both are known, step
 * goes on in the module: its functions are regions as those of compiled code are,
 * but lie in data.
 * To the process it writes the stack pointer before what may collect garbage, and
 * the end of the heap before all that makes objects: between both, where C code has
 * been called, the stack may be longer than it was written.
 * The word at the stack pointer is of the running function if that has a frame
 * (beam/macros.tab, AH), and else the return address into its caller.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "runtime/beam.h"
#include "runtime/beam_flow.h"

enum { RSP = 7, R13 = 13 };

#define LOOP_NAME      "process_main"
#define PIECE	       4096u
#define NILS_MIN       4u
#define DATA_MAX       (2u << 20) /* of the file: OTP 23 has 100 KiB */
#define GROWN	       1024 /* as BEAM_GROWN */
#define LABELS_MIN     64u
#define LABELS_MAX     4096u
#define RUNS_MAX       4096u
#define READ_MAX       16 /* times that a decoder reads the loop */
#define CALL_WORDS_MAX 3    /* of an instruction that calls */
#define INSTRUCTIONS   16   /* bytes of the last of the loop's own instructions, at most */

/* movq $NIL,(%r13): a function's frame begins, or it was returned to. jmp *(%rbx): to the instruction's code. */
static const uint8_t nil_at_stack[] = {0x49, 0xc7, 0x45, 0x00, 0xfb, 0xff, 0xff, 0xff}, jump[] = {0xff, 0x23};

struct beam_loop_code {
	struct beam *b;
	uint64_t schedule; /* erts_schedule */
	uint32_t nils, jumps;
};

/* The call of erts_schedule: what it returns to has another process. */
static void beam_loop_see_call(struct beam_loop_code *c, const uint8_t *at, uint64_t address)
{
	int32_t relative;

	memcpy(&relative, at + 1, sizeof(relative));
	if (at[0] == 0xe8 && address + 5 + (uint64_t)(int64_t)relative == c->schedule)
		c->b->choice = address + 5;
}

static void beam_loop_see(struct beam_loop_code *c, const uint8_t *code, size_t len, uint64_t address)
{
	for (size_t i = 0; i + sizeof(nil_at_stack) <= len; i++) {
		c->nils += !memcmp(code + i, nil_at_stack, sizeof(nil_at_stack));
		c->jumps += !memcmp(code + i, jump, sizeof(jump));
		beam_loop_see_call(c, code + i, address + i);
	}
}

/* Whether it reads instructions, by the registers that are known: another compiler may have taken other ones. */
static bool beam_loop_is_known(struct memory *m, struct beam *b, uint64_t schedule)
{
	struct beam_loop_code c = {.b = b, .schedule = schedule};
	uint8_t code[PIECE];

	for (uint64_t at = b->loop; at < b->loop_end; at += PIECE - sizeof(nil_at_stack)) {
		size_t len = MIN(b->loop_end - at, (uint64_t)PIECE);

		if (memory_read(m, at, code, len))
			return false;
		beam_loop_see(&c, code, len, at);
	}
	return c.nils >= NILS_MIN && c.jumps && b->choice;
}

/* Instructions that belong to no module, as the one that a process' first function returns to, are words of the file's data. */
static void beam_loop_find_own(const struct runtime_file *file, struct beam *b)
{
	static const char *const names[] = {"beam_apply", "beam_exit", "beam_continue_exit", "beam_exception_trace",
					    "beam_return_trace", "beam_return_to_trace", "beam_return_time_trace"};
	uint64_t at;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (runtime_address(file, names[i], &at))
			continue;
		b->own = b->own ? MIN(b->own, at) : at;
		b->own_end = MAX(b->own_end, at + INSTRUCTIONS);
	}
}

/* The addresses of all kinds of instructions lie one behind the other, in a table that C code has of its labels. */
struct beam_labels { uint64_t from, at; };

static void beam_labels_see(struct beam *b, struct beam_labels *l, const uint64_t *word, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++) {
		if (word[i] - b->loop < b->loop_end - b->loop) {
			l->from = l->from ? l->from : address + 8 * i;
			l->at = address + 8 * i + 8;
			continue;
		}
		if (l->from && l->at - l->from > b->labels_end - b->labels) {
			b->labels = l->from;
			b->labels_end = l->at;
		}
		l->from = 0;
	}
}

static bool beam_loop_find_labels(const struct runtime_file *file, struct memory *m, struct beam *b)
{
	const struct binary *f = file->binary;
	uint64_t word[PIECE / 8];

	for (uint16_t i = 0; i < f->nr_segments; i++) {
		uint64_t at = (file->bias + f->segments[i].vaddr + 7) & ~7ULL, end = at + MIN(f->segments[i].memsz, (uint64_t)DATA_MAX);
		struct beam_labels l = {0};

		if (!(f->segments[i].flags & PF_W))
			continue;
		for (; at + sizeof(word) <= end && !memory_read(m, at, word, sizeof(word)); at += sizeof(word))
			beam_labels_see(b, &l, word, ARRAY_SIZE(word), at);
	}
	return b->labels_end - b->labels >= 8 * LABELS_MIN && b->labels_end - b->labels <= 8 * LABELS_MAX;
}

int beam_find_loop(const struct runtime_file *file, struct memory *m, struct beam *b)
{
	struct runtime_symbol loop, schedule;
	uint64_t apply;

	if (runtime_symbol(file->binary, LOOP_NAME, &loop) || runtime_symbol(file->binary, "erts_schedule", &schedule) ||
	    runtime_address(file, "beam_apply", &apply) || !loop.size || loop.size > BEAM_FLOW_CODE_MAX)
		return -ENOENT;
	b->loop = file->bias + loop.value;
	b->loop_end = b->loop + loop.size;
	if (!beam_loop_is_known(m, b, file->bias + schedule.value) || !beam_loop_find_labels(file, m, b)) {
		b->loop = b->loop_end = 0;
		return -ENOENT;
	}
	beam_loop_find_own(file, b);
	/* A process begins at the first instruction, whose call returns to the second one. */
	b->exits[0] = b->exits[1] = apply + 8;
	return 0;
}

void beam_loop_attach(const struct runtime_file *file, const struct beam *b, struct runtime_attached *ret)
{
	ret->code_start = b->loop;
	ret->code_end = b->loop_end;
	ret->code_vaddr = b->loop - file->bias;
	ret->code_has_tables = 1;
}

void beam_loop_plan(const struct beam *b, struct otp_walk *w)
{
	const struct beam_row *row = &beam_rows[b->row];

	w->root_keep |= (uint16_t)(1u << (row->heap - row->stop) / 8);
	w->first.bias = -GROWN;
	w->held = (struct otp_walk_held){.code = b->loop, .code_len = (uint32_t)(b->loop_end - b->loop), .at_reg = R13};
}

/* --- regions --- */

/* The code is the file's, and stays: what was read of it holds for later questions, if its bytes are the same. */
static struct {
	struct beam_flow_run run[RUNS_MAX];
	uint32_t nr, times;
	uint64_t hash;
} read_runs;

/* A bit for each byte of the loop at which an instruction of BEAM begins. */
static int beam_loop_entries(const struct beam *b, struct memory *m, uint8_t entry[BEAM_FLOW_CODE_MAX / 8 + 1])
{
	uint64_t label[LABELS_MAX], n = (b->labels_end - b->labels) / 8;

	if (n > LABELS_MAX || memory_read(m, b->labels, label, 8 * n))
		return -EFAULT;
	for (uint64_t i = 0; i < n; i++)
		if (label[i] - b->loop < b->loop_end - b->loop)
			entry[(label[i] - b->loop) / 8] |= (uint8_t)(1u << (label[i] - b->loop) % 8);
	return 0;
}

static int beam_loop_read(const struct beam *b, struct memory *m)
{
	static uint8_t code[BEAM_FLOW_CODE_MAX], entry[BEAM_FLOW_CODE_MAX / 8 + 1];
	struct beam_flow_code c = {.code = code, .len = (uint32_t)(b->loop_end - b->loop), .entry = entry,
			      .stop = beam_rows[b->row].stop};
	uint64_t hash;
	int n;

	if (b->loop_end - b->loop > BEAM_FLOW_CODE_MAX)
		return -EBADMSG;
	memset(entry, 0, c.len / 8 + 1);
	if (memory_read(m, b->loop, code, c.len) || beam_loop_entries(b, m, entry))
		return -EFAULT;
	hash = hash_bytes(entry, c.len / 8 + 1, hash_bytes(code, c.len, (uint64_t)c.stop));
	if (read_runs.times && read_runs.hash == hash)
		return read_runs.nr ? 0 : -EBADMSG;
	/* It is code that nothing changes. */
	if (read_runs.times == READ_MAX)
		return -EBADMSG;
	n = beam_flow_read(&c, read_runs.run, RUNS_MAX);
	read_runs.times++;
	read_runs.nr = n > 0 ? (uint32_t)n : 0;
	read_runs.hash = hash;
	return n < 0 ? n : 0;
}

static const struct beam_flow_run *beam_loop_run(uint32_t offset)
{
	const uint32_t n = ARRAY_COUNT_WHILE(read_runs.nr, i, read_runs.run[i].end <= offset);

	return n < read_runs.nr && offset >= read_runs.run[n].start ? &read_runs.run[n] : NULL;
}

/* A region of the loop is known by its bounds, and stays. */
static bool beam_loop_has(const struct beam *b, uint64_t pc, const uint64_t known[RUNTIME_CODE_IDENTITY])
{
	return known[2] == b->loop && pc >= known[0] && pc < known[1];
}

static int beam_loop_region(const struct beam *b, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	struct runtime_code *c = &ret->code;
	const struct beam_flow_run *run;
	int err;

	if (beam_loop_has(b, pc, ret->known))
		return -EALREADY;
	err = beam_loop_read(b, m);
	if (err)
		return err;
	run = beam_loop_run((uint32_t)(pc - b->loop));
	if (!run)
		return -EBADMSG;
	c->start = c->identity[0] = b->loop + run->start;
	c->end = c->identity[1] = b->loop + run->end;
	c->identity[2] = b->loop;
	c->kind = BEAM_LOOP;
	c->word[BEAM_PLACE_WORD] = run->place;
	c->word[BEAM_STACK_WORD] = run->stack;
	c->word[BEAM_TOP_KEPT_WORD] = run->top_kept;
	return 0;
}

int beam_loop_code(const struct beam *b, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	struct runtime_code *c = &ret->code;

	if (pc >= b->loop && pc < b->loop_end)
		return beam_loop_region(b, m, pc, ret);
	if (pc < b->own || pc >= b->own_end)
		return -ENOENT;
	c->start = c->identity[0] = b->own;
	c->end = b->own_end;
	c->kind = BEAM_SHARED;
	snprintf(c->name, sizeof(c->name), BEAM_SHARED_NAME);
	return memcmp(ret->known, c->identity, sizeof(c->identity)) ? 0 : -EALREADY;
}

/* --- steps --- */

/* What a region says of a value: 0, -ENOENT: it is nowhere, or not known. */
static int beam_loop_value(const struct runtime_place *at, uint64_t where, uint64_t *ret)
{
	if (where >= BEAM_FLOW_SLOT && where < BEAM_FLOW_SLOT + BEAM_FLOW_SLOTS && at->valid >> RSP & 1)
		return at->load(at->ctx, at->reg[RSP] + 8 * (where - BEAM_FLOW_SLOT), ret) ? -ENOENT : 0;
	if (where < BEAM_FLOW_REGISTER || where >= BEAM_FLOW_REGISTER + 16 ||
	    !(at->valid >> (where - BEAM_FLOW_REGISTER) & 1))
		return -ENOENT;
	*ret = at->reg[where - BEAM_FLOW_REGISTER];
	return 0;
}

/* Garbage was collected: the process has its stack elsewhere, and the register is the former one. */
static bool beam_loop_is_moved(const struct runtime_place *at, uint64_t sp)
{
	return !at->exact && at->left_low && (sp < at->left_low || sp >= at->left_sp + OTP_WALK_BYTES);
}

/* Of an instruction whose place is not known, the function is not, but its callers are. */
static uint64_t beam_loop_place(const struct runtime_code *c, const struct runtime_place *at)
{
	uint64_t place;

	return beam_loop_value(at, c->word[BEAM_PLACE_WORD], &place) || place % 8 ? BEAM_NO_PLACE : place;
}

/* Where another process was chosen, or none runs, no code of a module called: process_main's own table leads on. */
int beam_loop_step(const struct beam *b, const struct runtime_code *c, const struct runtime_place *at, struct runtime_step *ret)
{
	uint64_t sp, word;

	if (at->left_none || !at->left_sp || (!at->exact && at->pc == b->choice) ||
	    beam_loop_value(at, c->word[BEAM_STACK_WORD], &sp))
		return -ENOENT;
	if (beam_loop_is_moved(at, sp))
		sp = at->left_sp;
	if (sp % 8 || at->load(at->ctx, sp, &word))
		return -ENOENT;
	/* As of a return address: the instruction before its end. The stack goes on at sp itself. */
	*ret = (struct runtime_step){.pc = beam_loop_place(c, at) + 1, .sp = sp, .fp = sp, .cfa = sp + 1,
				     .flags = RUNTIME_STEP_FP | RUNTIME_STEP_DATA | RUNTIME_STEP_LOOP};
	if (c->word[BEAM_TOP_KEPT_WORD])
		ret->pc += BEAM_TOP_KEPT;
	return 0;
}

bool beam_loop_is_own_word(const struct runtime_code *c, const struct runtime_place *at, uint64_t word)
{
	uint64_t place = at->pc - 1;

	/* Places of callers are words. What called the function at its first instruction is its caller. */
	if (place % 8 || place == c->start + BEAM_INFO_BYTES)
		return false;
	return word - place <= 8 * CALL_WORDS_MAX;
}
