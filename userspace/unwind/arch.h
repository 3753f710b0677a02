/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between processors: registers by DWARF number, which of them
 * survive a call, and code without tables that is recognised by its bytes:
 * signal trampolines, procedure linkage tables, thread starts.
 * One constant object for each, x86_64.c and arm64.c; adding a processor is
 * adding one and its line in arch_find.
 */
#ifndef OTP_UNWIND_ARCH_H
#define OTP_UNWIND_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/binary.h"
#include "unwind/insn.h"
#include "unwind/row.h"

#define REG(n) (1ULL << (n))

/*
 * Code bytes around an address as rows are keyed: the last byte of the call
 * where it is a caller's. CODE_AT is the index of that byte, CODE_RETURN that
 * of the byte that a call returns to.
 */
#define CODE_AT 16
#define CODE_RETURN (CODE_AT + 1)
struct code {
	uint8_t bytes[32];
};

enum arch_call {
	CALL_NONE,
	CALL_DIRECT,
	CALL_INDIRECT,
	CALL_SLOT /* through a variable of the file: a pointer, or a linkage table's slot for a name */
};

enum go_stack {
	GO_STACK_UNKNOWN,
	GO_STACK_OWN,	/* still, on that which it came on */
	GO_STACK_OTHER, /* and not back yet */
};

struct arch {
	uint16_t machine; /* EM_* */
	uint8_t nr_regs;
	uint8_t pc, sp, fp;
	uint8_t ra; /* the usual column of the return address */
	uint8_t result; /* of a call; a new thread finds zero in it */
	uint64_t survive;      /* registers that a call preserves by the ABI */
	uint64_t address_end;  /* user addresses lie below */
	uint64_t address_mask; /* bits of a code pointer that are address */
	bool sp_is_cfa_by_fp;  /* the frame record touches the caller's frame */
	uint8_t leaf_slack;    /* 1: a leaf's CFA may equal its stack pointer */
	uint8_t red_zone;      /* bytes that a function may use below its stack pointer; 0: calls push no return address */

	/* The row of a function's first instruction: only the call has run. */
	void (*frameless)(struct row *ret);
	/* The row of code without tables that is recognised by its bytes; false: it is not. */
	bool (*known)(struct binary *b, uint64_t vaddr, const struct code *code, struct row *ret);
	/* The row of code whose tables, if any, are wrong; false: not such code. */
	bool (*misled)(struct binary *b, uint64_t vaddr, struct row *ret);
	/*
	 * The row of Go's compiled code, whose stack pointer is depth below where it was at the function's first
	 * instruction; moved is the address from which on it first was below, 0: it never is.
	 */
	void (*go)(struct binary *b, uint64_t vaddr, uint64_t moved, int64_t depth, struct row *ret);
	/*
	 * Of Go's function from start on, up to vaddr: from where on it keeps the stack pointer that it has there in a
	 * register, and in which, to return from another stack; 0: nowhere.
	 */
	uint64_t (*go_keeps_sp)(struct binary *b, uint64_t start, uint64_t vaddr, uint8_t *ret_reg);
	/*
	 * Likewise, of a function that calls at vaddr: which word of its frame holds it, if that is loaded behind the call.
	 */
	uint64_t (*go_saves_sp)(struct binary *b, uint64_t start, uint64_t vaddr, uint8_t *ret_offset);
	/* Of Go's function, which goes over to the stack that another g has saved: on which one it is at vaddr. */
	enum go_stack (*go_stack)(struct binary *b, uint64_t start, uint64_t end, uint64_t vaddr);
	/* A thread's first function, or main, returns here: its caller is a root. */
	bool (*thread_start)(const struct code *code);
	/* The system call that begins a thread has just returned, in the caller and in the new one alike. */
	bool (*after_clone)(const struct code *code);
	/* A call instruction ends right before CODE_RETURN. */
	bool (*after_call)(const struct code *code);
	/* Which call ends right before CODE_RETURN, whose address is ret; *target: where a direct one leads. */
	enum arch_call (*call_kind)(const struct code *code, uint64_t ret, uint64_t *target);
	/* Whether bytes of code, the first of them at address at, contain a direct call of target. */
	bool (*has_call)(const uint8_t *bytes, size_t len, uint64_t at, uint64_t target);
	/*
	 * Whether bytes of code, the first of them at address at, take an address of the function from start to end, call
	 * into its middle, or jump to its first instruction; *called becomes true by a call of that. NULL: it cannot be told.
	 */
	bool (*mentions)(const uint8_t *bytes, size_t len, uint64_t at, uint64_t start, uint64_t end, bool *called);
	/*
	 * A call instruction ends right before CODE_RETURN, whose address is ret: one of target, or one through a
	 * register or a variable, not through a member of an object.
	 */
	bool (*may_call)(const struct code *code, uint64_t ret, uint64_t target);
	/*
	 * The row of code that is not recognised, from its instructions up to a return, or, where none is reached, from its
	 * function's first ones. called: vaddr is what a call returns to. -ENOENT.
	 */
	int (*returns)(struct binary *b, uint64_t vaddr, bool called, struct row *ret);
	int (*decode)(const uint8_t *code, size_t len, struct insn *ret); /* -EBADMSG */
};

extern const struct arch arch_x86_64, arch_arm64;

static inline const struct arch *arch_find(uint16_t otp_arch)
{
	switch (otp_arch) {
	case OTP_ARCH_X86_64:
		return &arch_x86_64;
	case OTP_ARCH_ARM64:
		return &arch_arm64;
	default:
		return NULL;
	}
}

#endif
