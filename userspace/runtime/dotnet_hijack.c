// SPDX-License-Identifier: Apache-2.0
/*
 * The stub that stops a thread for the collector (OnHijackTripThread;
 * dotnet/runtime 8 to 10, src/coreclr/vm/amd64/unixasmhelpers.S). Where a method
 * must not be stopped, its return address is replaced by the stub's (threadsuspend.cpp:
 * Thread::HijackThread), for as long as it runs, and all that it calls. The stub pushes
 * rax, to make room for the true one, then all registers that it must keep, and its
 * worker writes it there; before, only the runtime's Thread has it. The file's tables
 * know none of that. No symbol leads to the stub; its instructions do.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define PUSHED	 0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54 /* rax; rbp, rbx, r15 to r12 */
#define MOVED	 0x48, 0x89, 0xe7, 0x48, 0x8d, 0x64, 0x24 /* mov rdi, rsp; lea rsp, [rsp + n] */
#define SAVED	 0x66, 0x0f, 0x7f, 0x04, 0x24, 0x66, 0x0f, 0x7f, 0x4c, 0x24, 0x10, 0xe8 /* xmm0, xmm1; call */
#define CALL	 4u  /* bytes of it behind its first one */
#define RESTORED 16u /* bytes: xmm0, xmm1, lea */
#define TEXT_MAX (32u << 20)
#define PIECE	 16384u

/* What is pushed behind rax: rbp and rbx, four registers whose instructions have two bytes, and the return values'. */
static const struct dotnet_hijack_form {
	uint8_t len, values, allocated;
	uint8_t code[34];
} dotnet_hijack_forms[] = {
	{33, 2, 0x28, {PUSHED, 0x52, 0x50, MOVED, 0xd8, SAVED}},
	{34, 3, 0x20, {PUSHED, 0x51, 0x52, 0x50, MOVED, 0xe0, SAVED}},
};
#define KEPT	  6u
#define KEPT_WIDE 4u

/* --- where it is --- */

bool dotnet_hijack_in(const uint8_t *code, size_t len, size_t *ret_at, uint64_t *ret_form)
{
	for (size_t i = 0; i < ARRAY_SIZE(dotnet_hijack_forms); i++) {
		const uint8_t *found = memmem(code, len, dotnet_hijack_forms[i].code, dotnet_hijack_forms[i].len);

		if (!found)
			continue;
		*ret_at = (size_t)(found - code);
		*ret_form = i;
		return true;
	}
	return false;
}

/* 0: it is not there. */
static uint64_t dotnet_hijack_find(const struct runtime_file *file, uint64_t *ret_form)
{
	const struct binary_section *text = binary_section(file->binary, ".text");
	uint64_t size = text ? MIN(text->size, (uint64_t)TEXT_MAX) : 0;
	uint8_t piece[PIECE];
	ssize_t n = 1;
	size_t in;

	for (uint64_t at = 0; at < size && n > 0; at += PIECE - sizeof(dotnet_hijack_forms[0].code)) {
		n = binary_read(file->binary, text->offset + at, piece, MIN((uint64_t)PIECE, size - at));
		if (n > 0 && dotnet_hijack_in(piece, (size_t)n, &in, ret_form))
			return file->bias + text->addr + at + in;
	}
	return 0;
}

/* --- its code --- */

static const struct dotnet_hijack_form *dotnet_hijack_form(const struct dotnet *d)
{
	return &dotnet_hijack_forms[MIN(d->hijack_form, ARRAY_SIZE(dotnet_hijack_forms) - 1)];
}

/* As of a method that pushes all but the room for its return address, from where its prologue has called the worker. */
static void dotnet_hijack_words(const struct dotnet_hijack_form *form, struct runtime_code *c)
{
	const uint32_t pushes = form->values + KEPT, worked = form->len + CALL;
	const uint64_t wide = ((1u << KEPT_WIDE) - 1) << form->values;

	c->word[DOTNET_HEAD] = worked << 8 | (pushes + 1);
	runtime_code_set_half(c, 2 * DOTNET_CODES, form->allocated / 8u << 12 | DOTNET_ALLOCATED << 8);
	for (uint32_t i = 1; i < pushes; i++)
		runtime_code_set_half(c, 2 * DOTNET_CODES + i, DOTNET_PUSHED << 8);
	runtime_code_set_half(c, 2 * DOTNET_CODES + pushes, DOTNET_PUSHED_RBP << 8);
	c->word[DOTNET_EPILOGUES] = (uint64_t)(worked + RESTORED) << 32 | wide << 8 | pushes << 4 | pushes;
}

/* A return to its first instruction is found by the byte before that, which is a region of its own. */
int dotnet_hijack(const struct dotnet *d, uint64_t pc, struct runtime_code *c)
{
	const struct dotnet_hijack_form *form = dotnet_hijack_form(d);
	const uint64_t bytes = form->len + CALL + RESTORED + form->values + KEPT + KEPT_WIDE + 1;

	if (!d->hijack || pc - (d->hijack - 1) > bytes)
		return -ENOENT;
	c->kind = pc < d->hijack ? DOTNET_HIJACKED : DOTNET_HIJACK;
	c->start = pc < d->hijack ? d->hijack - 1 : d->hijack;
	c->end = pc < d->hijack ? d->hijack : d->hijack + bytes;
	c->flags = RUNTIME_CODE_LASTS;
	c->identity[0] = c->start;
	c->identity[1] = c->end;
	if (pc < d->hijack)
		snprintf(c->name, sizeof(c->name), "[stub: hijacked return]");
	else
		dotnet_hijack_words(form, c);
	return 0;
}

void dotnet_hijack_attach(const struct runtime_file *file, struct runtime_attached *ret)
{
	struct dotnet *d = (void *)ret->param;
	struct runtime_code c = {0};

	d->hijack = dotnet_hijack_find(file, &d->hijack_form);
	if (dotnet_hijack(d, d->hijack, &c))
		return;
	ret->code_start = c.start - 1;
	ret->code_end = c.end;
	ret->code_vaddr = ret->code_start - file->bias;
	ret->code_has_tables = true;
}
