// SPDX-License-Identifier: Apache-2.0
/*
 * The functions that run bytecode: vm_exec_core, in which every instruction's
 * handler is a label, and vm_exec, which calls it. Neither has a symbol in a
 * stripped library: a handler's address is the first word of any code, and who
 * calls its function is found by looking for call instructions.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/ruby.h"

#define LOOPS_FRAMES_MAX 64 /* in which one that runs bytecode is sought */
#define LOOPS_CODE_MAX	 (64u << 20)
#define LOOPS_CHUNK	 16384u
#define LOOPS_TABLE_MAX	 (1u << 20)

/* The head of .eh_frame_hdr as all linkers write it, and a row of its table. */
struct loops_table { uint8_t version, frame, count, rows; int32_t frame_at; uint32_t nr; };
struct loops_row { int32_t start, fde; };

/* --- vm_exec_core --- */

static int loops_handler(const struct ruby *r, const struct runtime_file *file, uint64_t iseq, uint64_t *ret)
{
	uint64_t head[3], body[2];
	int err = ruby_words(r, iseq, head, 3);

	if (err == 0 && !ruby_is_imemo(head[0], RUBY_IMEMO_ISEQ))
		err = -ENOENT;
	if (err == 0)
		err = ruby_words(r, head[2], body, 2);
	if (err == 0)
		err = memory_u64(r->memory, body[RUBY_BODY_ENCODED / 8], ret);
	return err == 0 && !binary_is_code(file->binary, *ret - file->bias) ? -ENOENT : err;
}

static int loops_any_handler(const struct ruby *r, const struct runtime_file *file, uint64_t ec, uint64_t *ret)
{
	uint64_t words[3], frame[3];

	if (ruby_words(r, ec, words, 3) < 0)
		return -EAGAIN;
	for (int i = 0; i < LOOPS_FRAMES_MAX; i++) {
		uint64_t at = words[2] + (uint64_t)i * r->layout->frame;

		if (at >= words[0] + words[1] * 8 || ruby_words(r, at, frame, 3) < 0)
			break;
		if (frame[0] && frame[2] && loops_handler(r, file, frame[2], ret) == 0)
			return 0;
	}
	return -EAGAIN;
}

/* --- vm_exec --- */

static bool loops_row(struct binary *b, uint64_t i, struct loops_row *ret)
{
	return binary_read_vaddr(b, b->eh_frame_hdr + sizeof(struct loops_table) + i * sizeof(*ret), ret, sizeof(*ret)) ==
	       sizeof(*ret);
}

/* Where the function begins that vaddr is in; 0: unknown. */
static uint64_t loops_function(struct binary *b, uint64_t vaddr)
{
	struct loops_table table;
	struct loops_row row;
	uint64_t low = 0, high, start = 0;

	if (!b->eh_frame_hdr || binary_read_vaddr(b, b->eh_frame_hdr, &table, sizeof(table)) != sizeof(table) ||
	    table.version != 1 || table.frame != 0x1b || table.count != 0x03 || table.rows != 0x3b)
		return 0;
	high = MIN(table.nr, LOOPS_TABLE_MAX);
	while (low < high) {
		uint64_t i = low + (high - low) / 2;

		if (!loops_row(b, i, &row))
			return 0;
		if (b->eh_frame_hdr + (uint64_t)(int64_t)row.start > vaddr) {
			high = i;
			continue;
		}
		start = b->eh_frame_hdr + (uint64_t)(int64_t)row.start;
		low = i + 1;
	}
	return start;
}

static bool loops_is_known(struct binary *b, const struct runtime_attached *a, uint64_t bias, uint64_t start)
{
	for (uint32_t i = 0; i < a->nr_loops; i++)
		if (loops_function(b, a->loop[i] - bias) == start)
			return true;
	return false;
}

static void loops_add(const struct runtime_file *file, uint64_t vaddr, struct runtime_attached *a)
{
	uint64_t start = loops_function(file->binary, vaddr);

	if (a->nr_loops < RUNTIME_LOOPS && !(start && loops_is_known(file->binary, a, file->bias, start)))
		a->loop[a->nr_loops++] = file->bias + vaddr;
}

/* Whether a call of target is at vaddr: call rel32, or bl. */
static bool loops_is_call(uint16_t machine, const uint8_t *code, uint64_t vaddr, uint64_t target)
{
	uint32_t bl;
	int32_t rel;

	if (machine == EM_X86_64) {
		memcpy(&rel, code + 1, sizeof(rel));
		return code[0] == 0xe8 && vaddr + 5 + (uint64_t)(int64_t)rel == target;
	}
	memcpy(&bl, code, sizeof(bl));
	return bl >> 26 == 0x25 && vaddr + (uint64_t)((int64_t)(int32_t)(bl << 6) >> 4) == target;
}

static void loops_add_callers(const struct runtime_file *file, const struct binary_segment *s, uint64_t target,
			      struct runtime_attached *a)
{
	static uint8_t code[LOOPS_CHUNK + 8];
	uint32_t step = file->binary->machine == EM_X86_64 ? 1 : 4;

	for (uint64_t at = 0; at < MIN(s->filesz, (uint64_t)LOOPS_CODE_MAX); at += LOOPS_CHUNK) {
		ssize_t n = binary_read(file->binary, s->offset + at, code, MIN(sizeof(code), s->filesz - at));

		for (ssize_t i = 0; i + 5 <= n && i < (ssize_t)LOOPS_CHUNK; i += step)
			if (loops_is_call(file->binary->machine, code + i, s->vaddr + at + (uint64_t)i, target))
				loops_add(file, s->vaddr + at + (uint64_t)i, a);
	}
}

int ruby_loops(const struct ruby *r, const struct runtime_file *file, uint64_t ec, struct runtime_attached *ret)
{
	const struct binary *b = file->binary;
	uint64_t handler, start;
	int err = loops_any_handler(r, file, ec, &handler);

	if (err < 0)
		return err;
	loops_add(file, handler - file->bias, ret);
	start = loops_function(file->binary, handler - file->bias);
	for (uint16_t i = 0; start && i < b->nr_segments; i++)
		if (b->segments[i].flags & PF_X)
			loops_add_callers(file, &b->segments[i], start, ret);
	return 0;
}
