// SPDX-License-Identifier: Apache-2.0
/*
 * The list:
 * - The file's entry point, and the code right behind it: _start of musl's and
 *   of hand-made programs; of ld.so, whose _start runs on into _dl_start_user.
 *   All of them are shorter than ENTRY_LENGTH. glibc's own _start says it in
 *   its table and does not come here.
 * - Where a thread's first function returns to, known by its code: musl's
 *   __clone; and where main returns to in musl's
 *   libc_start_main_stage2, which hands the result to exit and ends there
 *   (see each architecture's thread_start).
 * - The system call that begins a thread, returned from in the new one: there is
 *   nothing yet on its stack. Told from its caller by the result: unwind.c.
 * - Where the first function of a stack that Boost.Context made returns to, known
 *   by its code.
 * - Where Go's runtime begins a goroutine or a thread, or has left a goroutine's stack for good:
 *   see misled in x86_64.c, for the tables there say otherwise.
 * - The first byte of a function, returned to though no call precedes it and
 *   no function ends there: a stack made by hand starts so (glibc's makecontext
 *   with __start_context, coroutine libraries alike).
 * - A return address of zero, read where a table or a frame pointer says that
 *   it lies: what makes stacks by hand (coroutines, threads) ends them so.
 * - The end of a chain of frame pointers: System V ABI, AMD64 supplement,
 *   section 3.4.1, and AAPCS64, section 6.4.6, mark the deepest frame by zero.
 * The last two are read from the stack and tested in unwind.c and fp.c.
 */
#include "unwind/roots.h"

#include "unwind/cfi.h"

#define ENTRY_LENGTH 64

static bool at_entry(const struct binary *b, uint64_t vaddr)
{
	return b->entry && vaddr >= b->entry && vaddr - b->entry < ENTRY_LENGTH;
}

static bool begins_function(struct binary *b, uint64_t vaddr)
{
	struct fde f;

	return cfi_find(b, vaddr, &f) == 0 && f.start == vaddr;
}

bool root_is_listed(const struct arch *arch, struct binary *b, uint64_t vaddr, const struct code *code)
{
	return at_entry(b, vaddr) || arch->thread_start(code) ||
	       (!arch->after_call(code) && begins_function(b, vaddr + 1));
}
