/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LuaJIT's traces as its memory has them, and what step needs of a region. Used
 * by luajit_trace.c, luajit_step.c and their tests.
 */
#ifndef OTP_RUNTIME_LUAJIT_TRACE_H
#define OTP_RUNTIME_LUAJIT_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/code.h"
#include "runtime/memory.h"

/* GCtrace (lj_jit.h). */
struct luajit_trace {
	uint64_t nextgc;
	uint8_t marked, gct;
	uint16_t nsnap;
	uint32_t nins;
	uint32_t unused[2];
	uint64_t gclist, ir;
	uint32_t nk, nsnapmap;
	uint64_t snap, snapmap, startpt, startpc;
	uint32_t startins, szmcode;
	uint64_t mcode;
	uint32_t mcloop;
	uint16_t nchild, spadjust, traceno, link, root, nextroot, nextside;
	uint8_t others[6];
};
_Static_assert(offsetof(struct luajit_trace, snap) == 48 && offsetof(struct luajit_trace, mcode) == 88 &&
	       offsetof(struct luajit_trace, root) == 108 && sizeof(struct luajit_trace) == 120, "it has no padding");

enum luajit_code_kind {
	LUAJIT_CODE_TRACE,
	LUAJIT_CODE_VM, /* the parts of the interpreter of which its unwind table is wrong, and what lies between */
};

enum luajit_code_word {
	LUAJIT_WORD_ADJUST, /* bytes of stack that the trace takes */
	/* From these offsets on it has taken so many of them, and given back; offsets of 0: it does not. */
	LUAJIT_WORD_HEAD,
	LUAJIT_WORD_HEAD_BYTES,
	LUAJIT_WORD_TAIL,
	LUAJIT_WORD_TAIL_BYTES,
};

/* luajit_mcode.c: fills in the last four, by the instructions; ADJUST is known. */
void luajit_mcode_read(struct memory *m, uint64_t mcode, uint32_t size, struct runtime_code *c);
/* Bytes of stack that are taken where an instruction begins at an offset. */
uint64_t luajit_mcode_adjust(const struct runtime_code *c, uint64_t offset);

#endif
