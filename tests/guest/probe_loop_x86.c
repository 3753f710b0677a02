// SPDX-License-Identifier: Apache-2.0
#include "probe_loop.h"

#if defined(__x86_64__)

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* rdi: stack pointer; rsi: rbp where it is not 0; rdx, rcx, r8: rdi, rsi and rdx of the system call. */
__asm__(".text\n"
	".macro known\n"
	"	movq %rdi, %rsp\n"
	"	movabsq $0x1122334455660003, %rbx\n"
	"	movabsq $0x1122334455660006, %rbp\n"
	"	testq %rsi, %rsi\n"
	"	cmovneq %rsi, %rbp\n"
	"	movq %rdx, %rdi\n"
	"	movq %rcx, %rsi\n"
	"	movq %r8, %rdx\n"
	"	movabsq $0x1122334455660008, %r8\n"
	"	movabsq $0x1122334455660009, %r9\n"
	"	movabsq $0x112233445566000a, %r10\n"
	"	movabsq $0x112233445566000c, %r12\n"
	"	movabsq $0x112233445566000d, %r13\n"
	"	movabsq $0x112233445566000e, %r14\n"
	"	movabsq $0x112233445566000f, %r15\n"
	".endm\n"
	".globl spin_user, spin_user_loop, spin_user_end\n"
	"spin_user:\n"
	"	known\n"
	"spin_user_loop:\n"
	"	addq $1, %rax\n"
	"	jmp spin_user_loop\n"
	"spin_user_end:\n"
	".globl spin_kernel, spin_kernel_loop, spin_kernel_end\n"
	"spin_kernel:\n"
	"	known\n"
	"spin_kernel_loop:\n"
	"	xorl %eax, %eax\n"
	"	syscall\n"
	"	jmp spin_kernel_loop\n"
	"spin_kernel_end:\n"
	".globl spin_far\n"
	"spin_far:\n" /* rdi: stack pointer, rsi: far pointer to the code, below 4 GiB; QEMU's lret fails here */
	"	movq %rdi, %rsp\n"
	"	ljmpl *(%rsi)\n");

struct far_pointer {
	uint32_t offset;
	uint16_t selector;
};
_Noreturn void spin_far(uint64_t sp, const struct far_pointer *code);

void spin_compat(struct stage *stage, uint64_t (*make_stack)(struct stage *stage, int flags))
{
	static const uint8_t loop[] = {0xeb, 0xfe}; /* jmp . */
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	struct far_pointer to = {.offset = (uint32_t)(uintptr_t)code, .selector = 0x23};

	if (code == MAP_FAILED)
		abort();
	make_stack(stage, MAP_32BIT);
	memcpy(code, loop, sizeof(loop));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	stage->sp = stage->stack_end - 65536;
	stage->ip_start = (uint64_t)(uintptr_t)code;
	stage->ip_end = stage->ip_start + sizeof(loop);
	stage->ready = 1;
	spin_far(stage->sp, &to);
}

#endif
