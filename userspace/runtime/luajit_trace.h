/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LuaJIT's traces as its memory has them, and what step needs of a region. Used
 * by luajit_trace.c, luajit_step.c and their tests.
 */
#ifndef OTP_RUNTIME_LUAJIT_TRACE_H
#define OTP_RUNTIME_LUAJIT_TRACE_H

#include <stddef.h>
#include <stdint.h>

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
	LUAJIT_WORD_ROOT,   /* it takes them itself; else the trace before it, some of them */
};

#endif
