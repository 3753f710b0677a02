// SPDX-License-Identifier: Apache-2.0
#include "probe_loop.h"

#if defined(__aarch64__)

/* x0: stack pointer; x1: x29 where it is not 0; x2, x3, x4: x0, x1 and x2 of the system call. */
__asm__(".text\n"
	".macro known_register n\n"
	"	mov x\\n, #\\n\n"
	"	movk x\\n, #0x5566, lsl #16\n"
	"	movk x\\n, #0x3344, lsl #32\n"
	"	movk x\\n, #0x1122, lsl #48\n"
	".endm\n"
	".macro known\n"
	"	mov sp, x0\n"
	"	mov x5, x2\n"
	"	mov x6, x1\n"
	"	mov x1, x3\n"
	"	mov x2, x4\n"
	"	.irp n, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30\n"
	"	known_register \\n\n"
	"	.endr\n"
	"	cmp x6, #0\n"
	"	csel x29, x29, x6, eq\n"
	".endm\n"
	".globl spin_user, spin_user_loop, spin_user_end\n"
	"spin_user:\n"
	"	known\n"
	"spin_user_loop:\n"
	"	add x0, x0, #1\n"
	"	b spin_user_loop\n"
	"spin_user_end:\n"
	".globl spin_kernel, spin_kernel_loop, spin_kernel_end\n"
	"spin_kernel:\n"
	"	known\n"
	"	mov x8, #63\n"
	"spin_kernel_loop:\n"
	"	mov x0, x5\n"
	"	svc #0\n"
	"	b spin_kernel_loop\n"
	"spin_kernel_end:\n");

/* Many processors have no 32-bit mode, and a process cannot enter it without another program. */
void spin_compat(struct stage *stage, uint64_t (*make_stack)(struct stage *stage, int flags))
{
	stage->ready = 1;
}

#endif
