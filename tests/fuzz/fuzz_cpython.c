// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the memory of a Python. The first byte chooses a reader, the
 * second a layout, the next 24 where to begin; the rest lies at every address,
 * again and again, or ends once.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/cpython.h"

#define HEAD 26

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
	struct memory memory; /* first */
	const uint8_t *data;
	size_t size;
	bool repeats;
};

static int bytes_read(struct memory *m, uint64_t addr, void *to, size_t len)
{
	const struct bytes *b = (const void *)m;
	uint8_t *out = to;

	if (!b->size || (!b->repeats && (addr >= b->size || len > b->size - addr)))
		return -EFAULT;
	for (size_t i = 0; i < len; i++)
		out[i] = b->data[(addr + i) % b->size];
	return 0;
}

/* As of 3.9 and 3.13; or whatever the bytes say. */
static struct cpython_layout layout_of(uint8_t choice, const uint8_t *data, size_t size)
{
	struct cpython_layout l = {
		.entry = CPYTHON_ENTRY_SHIM, .shim = 3, .lines = choice % 3, .tag = 3, .word_instr = 1, .word_owner = 2,
		.word_first = 3, .word_name = 4, .word_table = 5, .ob_type = 8, .frame_back = 8, .frame_instr = 56,
		.frame_owner = 70, .code_first_line = 68, .code_file = 112, .code_name = 128, .code_table = 136,
		.code_bytes = 200, .code_size = 200, .text_length = 16, .text_state = 32, .text_ascii = 40, .text_wide = 56,
		.bytes_size = 16, .bytes_data = 32,
	};

	if (choice & 0x80)
		memcpy(&l, data, MIN(size, sizeof(l)));
	return l;
}

/* The cookies are those of the object that lies there, or none is ever read. */
static void take_cookies(struct memory *m, const struct cpython_layout *l, struct runtime_frame *f)
{
	struct cpython_layout copy = *l;
	uint64_t type;

	if (memory_u64(m, f->key + (copy.code_first_line & ~7u), &f->cookie[0]) < 0 ||
	    memory_u64(m, f->key + copy.code_name, &f->cookie[1]) < 0 ||
	    memory_u64(m, f->key + copy.code_table, &f->cookie[2]) < 0 || memory_u64(m, f->key + copy.ob_type, &type) < 0)
		memset(f->cookie, 0, sizeof(f->cookie));
}

static void check_function(const struct runtime_function *fn)
{
	if (!memchr(fn->name, '\0', sizeof(fn->name)) || !memchr(fn->file, '\0', sizeof(fn->file)) ||
	    fn->nr_lines > RUNTIME_LINES_MAX)
		abort();
	for (uint32_t i = 1; i < fn->nr_lines; i++)
		if (fn->lines[i].position <= fn->lines[i - 1].position)
			abort();
}

static void fuzz_decode(struct bytes *b, uint8_t choice, const uint64_t *head)
{
	static struct runtime_function function;
	struct cpython_layout l = layout_of(choice, b->data, b->size);
	struct runtime_attached a = {0};
	struct runtime_frame f = {.key = head[0], .cookie = {head[1], head[2]}};

	take_cookies(&b->memory, &l, &f);
	if (memory_u64(&b->memory, f.key + l.ob_type, &l.code_type) < 0)
		return;
	cpython_layout_keep(&a, &l);
	memory_question(&b->memory);
	if (runtime_cpython.decode(&a, &b->memory, &f, &function) == 0)
		check_function(&function);
}

static void fuzz_lines(const struct bytes *b, uint8_t choice, const uint64_t *head)
{
	static struct runtime_function function;

	function.name[0] = function.file[0] = '\0';
	cpython_lines_decode(choice % 3, b->data, b->size, (uint32_t)head[0], &function);
	check_function(&function);
}

static void fuzz_frame(const struct bytes *b, uint8_t choice, const uint64_t *head)
{
	struct cpython_layout l = layout_of(choice, b->data, b->size);
	struct runtime_attached a = {0};
	_cleanup_(freep) uint64_t *word = malloc(b->size + 8);
	struct runtime_words w = {.address = head[0], .missing = head[1] & 1, .count = (uint32_t)(b->size / 8), .word = word};
	struct runtime_frame f;

	if (!word)
		return;
	memcpy(word, b->data, b->size);
	cpython_layout_keep(&a, &l);
	(void)runtime_cpython.frame(&a, &w, &f);
}

static void fuzz_slot(struct bytes *b, uint8_t choice, const uint64_t *head)
{
	struct otp_walk walk = {0};

	const struct cpython_local local = {
		.shared = choice & 2, .module = (uint32_t)head[2] & 0xffff, .offset = (int32_t)(head[2] >> 32)};
	uint16_t machine = choice & 1 ? EM_AARCH64 : EM_X86_64;

	memory_question(&b->memory);
	if (cpython_slot_find(&b->memory, machine, head[0] & ~15ULL, head[1], &walk) == 0 &&
	    (walk.nr_chain < 1 || walk.nr_chain > 2))
		abort();
	if (cpython_local_find(&b->memory, machine, &local, head[0], head[1], &walk) == 0 &&
	    walk.nr_chain != (local.shared ? 3 : 1))
		abort();
}

static void fuzz_local(struct bytes *b, uint8_t choice, const uint64_t *head)
{
	uint8_t code[CPYTHON_LOCAL_CODE] = {0};
	struct cpython_local l;

	memcpy(code, b->data, MIN(b->size, sizeof(code)));
	memory_question(&b->memory);
	if (cpython_local_decode(choice & 1 ? EM_AARCH64 : EM_X86_64, code, head[0], &b->memory, &l) == 0 && l.shared &&
	    (l.offset < 0 || l.module > UINT16_MAX))
		abort();
}

static int load_word(void *ctx, uint64_t addr, uint64_t *ret)
{
	return memory_u64(ctx, addr, ret);
}

/* The region around an address, and the step out of it there. */
static void fuzz_code(struct bytes *b, const uint64_t *head)
{
	static struct runtime_code_made made;
	const uint64_t reg[OTP_REGS_MAX] = {[6] = head[1], [7] = head[2], [29] = head[1], [31] = head[2]};
	struct runtime_place at = {.pc = head[0], .exact = head[1] & 1, .arch = head[1] & 2 ? OTP_ARCH_ARM64 : OTP_ARCH_X86_64,
				   .valid = UINT64_MAX, .reg = reg, .load = load_word, .ctx = &b->memory};
	struct runtime_attached a = {0};
	struct runtime_step step = {0};

	memset(&made, 0, sizeof(made));
	memory_question(&b->memory);
	if (runtime_cpython.code(&a, &b->memory, head[0], &made) < 0)
		return;
	if (!runtime_code_sound(&made.code, made.nodes, made.rows) || head[0] < made.code.start || head[0] >= made.code.end)
		abort();
	(void)runtime_cpython.step(&a, &made.code, &at, &step);
	/* As from a decoder that was taken over. */
	memcpy(made.code.word, b->data, b->size < sizeof(made.code.word) ? b->size : sizeof(made.code.word));
	made.code.kind = (uint32_t)head[2];
	(void)runtime_cpython.step(&a, &made.code, &at, &step);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) uint8_t *copy = NULL;
	struct bytes b = {.memory.read = bytes_read};
	uint64_t head[3];

	if (size < HEAD || !(copy = malloc(size - HEAD + 1)))
		return 0;
	memcpy(head, data + 2, sizeof(head));
	memcpy(copy, data + HEAD, size - HEAD);
	b.data = copy;
	b.size = size - HEAD;
	b.repeats = data[0] & 0x80;
	switch (data[0] & 7) {
	case 0:
		fuzz_decode(&b, data[1], head);
		break;
	case 1:
		fuzz_lines(&b, data[1], head);
		break;
	case 2:
		fuzz_frame(&b, data[1], head);
		break;
	case 4:
		fuzz_code(&b, head);
		break;
	case 5:
		fuzz_local(&b, data[1], head);
		break;
	default:
		fuzz_slot(&b, data[1], head);
	}
	return 0;
}
