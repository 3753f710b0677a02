/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up LuaJIT in the memory of a process, with the file of its interpreter:
 * a main function, which made a function "work", which calls a local "leaf"; the
 * slots of their frames; a coroutine; and a trace in which "leaf" runs within
 * "work".
 *
 * Included after tests/lib/world.h.
 */
#ifndef OTP_TESTS_LUAJIT_WORLD_H
#define OTP_TESTS_LUAJIT_WORLD_H

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/binary.h"
#include "runtime/luajit.h"
#include "runtime/luajit_trace.h"

#define LW_MAIN	   (WORLD + 0x1000) /* lua_State */
#define LW_GLOBAL  (LW_MAIN + LUAJIT_L_BYTES)
#define LW_CUR_L   (LW_GLOBAL + 0x108)
#define LW_JIT_BASE (LW_GLOBAL + 0x110)
#define LW_PRNG	   (LW_JIT_BASE + 16)
#define LW_GCROOT  (LW_PRNG + 32)
#define LW_TRACES  (LW_GLOBAL + 0x400) /* J->trace, and its numbers */
#define LW_DISPATCH (LW_GLOBAL + 0x800)
#define LW_ARRAY   (WORLD + 0x6000)
#define LW_CO	   (WORLD + 0x7000) /* another lua_State */
#define LW_SLOTS   (WORLD + 0x8000)
#define LW_CO_SLOTS (WORLD + 0x9000)
#define LW_FN(i)   (WORLD + 0xa000 + 0x100ULL * (i))
#define LW_PROTO(i) (WORLD + 0xb000 + 0x400ULL * (i))
#define LW_BC(i)   (LW_PROTO(i) + LUAJIT_PT_BYTES)
#define LW_STR(i)  (WORLD + 0xd000 + 0x100ULL * (i))
#define LW_TRACE   (WORLD + 0xe000)
#define LW_SNAPS   (WORLD + 0xe100)
#define LW_MAP	   (WORLD + 0xe200)
#define LW_IR	   (WORLD + 0xf000) /* of the constant with the lowest number */
#define LW_MCODE   (WORLD + 0x10000)
#define LW_STACK   (WORLD + 0x20000) /* the thread's */
#define LW_C_FRAME (LW_STACK + 0x800)
#define LW_BIAS	   0x555500000000ULL

enum { LW_MAIN_FN, LW_WORK, LW_LEAF, LW_FUNCTIONS, LW_C_FN = LW_FUNCTIONS };
enum { LW_CHUNK, LW_NAME_WORK, LW_NAME_OTHER, LW_NAME_INDEX };
#define LW_STAMP 0x7a2b3c4d5e6f7081ULL
#define LW_TAG(fn) ((fn) | 0xfffbULL << 48 | 1ULL << 47) /* a function in a slot */

#define LW_INS(op, a, d) ((uint32_t)((op) | (a) << 8 | (d) << 16))
enum { LW_OP_UGET = 45, LW_OP_FNEW = 51, LW_OP_GSET = 55, LW_OP_CALL = 66, LW_OP_FUNCF = 89 };
#define LW_CALL 3 /* the index of a function's call instruction */

static inline void lw_put8(uint64_t at, uint8_t v)
{
	put(at, &v, 1);
}

static inline void lw_put_string(uint32_t i, const char *text)
{
	lw_put8(LW_STR(i) + LUAJIT_GCT, LUAJIT_STRING);
	put32(LW_STR(i) + LUAJIT_STR_HEAD + 4, 1000 + i);
	put32(LW_STR(i) + LUAJIT_STR_LEN, (uint32_t)strlen(text));
	put(LW_STR(i) + LUAJIT_STR_BYTES, text, strlen(text) + 1);
}

/* Six instructions, on lines that follow the first one. */
static inline void lw_put_proto(uint32_t i, uint32_t firstline)
{
	static const char lines[] = {0, 1, 2, 3, 4};
	uint64_t at = LW_PROTO(i);

	lw_put8(at + LUAJIT_GCT, LUAJIT_PROTO);
	put32(at + LUAJIT_PT_SIZEBC, 6);
	put64(at + LUAJIT_PT_K, at + 0x200);
	put32(at + LUAJIT_PT_SIZEKGC, 2);
	put32(at + LUAJIT_PT_SIZEKGC + 8, 0x300);
	lw_put8(at + LUAJIT_PT_SIZEKGC + 12, 1);
	put64(at + LUAJIT_PT_CHUNKNAME, LW_STR(LW_CHUNK));
	put32(at + LUAJIT_PT_FIRSTLINE, firstline);
	put32(at + LUAJIT_PT_NUMLINE, 9);
	put64(at + LUAJIT_PT_LINEINFO, at + 0x240);
	put(at + 0x240, lines, sizeof(lines));
	put32(LW_BC(i), LW_INS(LW_OP_FUNCF, 10, 0));
	put32(LW_BC(i) + 4 * LW_CALL, LW_INS(LW_OP_CALL, 3, 1));
	lw_put8(LW_FN(i) + LUAJIT_GCT, LUAJIT_FUNCTION);
	put64(LW_FN(i) + LUAJIT_FN_PC, LW_BC(i));
}

static inline void lw_put_functions(void)
{
	lw_put_string(LW_CHUNK, "@lib/app.lua");
	lw_put_string(LW_NAME_WORK, "work");
	lw_put_proto(LW_MAIN_FN, 0);
	lw_put_proto(LW_WORK, 10);
	lw_put_proto(LW_LEAF, 30);
	/* main: function work, a global. */
	put32(LW_BC(LW_MAIN_FN) + 4, LW_INS(LW_OP_FNEW, 1, 0));
	put32(LW_BC(LW_MAIN_FN) + 8, LW_INS(LW_OP_GSET, 1, 1));
	put64(LW_PROTO(LW_MAIN_FN) + 0x200 - 8, LW_PROTO(LW_WORK));
	put64(LW_PROTO(LW_MAIN_FN) + 0x200 - 16, LW_STR(LW_NAME_WORK));
	/* work: calls its upvalue leaf, of which no function that is still there says where it was made. */
	put32(LW_BC(LW_WORK) + 8, LW_INS(LW_OP_UGET, 3, 0));
	put64(LW_PROTO(LW_WORK) + LUAJIT_PT_UVINFO, LW_PROTO(LW_WORK) + 0x280);
	put(LW_PROTO(LW_WORK) + 0x280, "leaf", 5);
	lw_put8(LW_FN(LW_C_FN) + LUAJIT_GCT, LUAJIT_FUNCTION);
	lw_put8(LW_FN(LW_C_FN) + 10, 1);
}

static inline void lw_put_state(uint64_t l, uint64_t slots, uint64_t base, uint64_t c_frame)
{
	lw_put8(l + LUAJIT_GCT, LUAJIT_THREAD);
	put64(l + LUAJIT_L_GLREF, LW_GLOBAL);
	put64(l + LUAJIT_L_BASE, base);
	put64(l + LUAJIT_L_LIMIT, slots + 0x800);
	put64(l + LUAJIT_L_STACK, slots);
	put64(l + LUAJIT_L_C_FRAME, c_frame);
}

/* A frame: what is below its base. */
static inline void lw_put_frame(uint64_t base, uint64_t fn, uint64_t link)
{
	put64(base - 16, LW_TAG(fn));
	put64(base - 8, link);
}

/* Behind the call, at slot 3: the callee's base is 5 slots higher. */
#define LW_AFTER_CALL(i) (LW_BC(i) + 4 * (LW_CALL + 1))
#define LW_BASE(slots, depth) ((slots) + 32 + 40ULL * (depth))

/* Called from C: the first frame is 2 slots above the lowest base. */
static inline void lw_put_frames(uint64_t slots)
{
	lw_put_frame(LW_BASE(slots, 0), LW_FN(LW_MAIN_FN), 16 | LUAJIT_FRAME_C);
	lw_put_frame(LW_BASE(slots, 1), LW_FN(LW_WORK), LW_AFTER_CALL(LW_MAIN_FN));
	lw_put_frame(LW_BASE(slots, 2), LW_FN(LW_LEAF), LW_AFTER_CALL(LW_WORK));
}

static inline void lw_put_trace(void)
{
	static const struct luajit_trace t = {
		.gct = LUAJIT_TRACE, .nsnap = 2, .nins = 0x8010, .ir = LW_IR - 8 * 0x7ff0ULL, .nk = 0x7ff0, .nsnapmap = 8,
		.snap = LW_SNAPS, .snapmap = LW_MAP, .startpt = LW_PROTO(LW_WORK), .startpc = LW_BC(LW_WORK) + 4,
		.szmcode = 0x100, .mcode = LW_MCODE, .spadjust = 32, .traceno = 1,
	};
	/* Of the snapshots: the first is in work, the second in leaf, which work called. */
	static const struct { uint32_t mapofs; uint16_t ref, mcofs; uint8_t nslots, topslot, nent, count; } snap[2] = {
		{.mapofs = 0, .nent = 0, .mcofs = 0}, {.mapofs = 2, .nent = 1, .mcofs = 0x40}};
	uint64_t place = (LW_BC(LW_WORK) + 4) << 8, inner = (LW_BC(LW_LEAF) + 8) << 8 | 5;

	put(LW_TRACE, &t, sizeof(t));
	put(LW_SNAPS, snap, sizeof(snap));
	put(LW_MAP, &place, 8);
	put32(LW_MAP + 8, 6u << 24 | 0x010000 | 0x7ff2);
	put(LW_MAP + 12, &inner, 8);
	/* Constants: the function leaf, and the link of its frame. */
	put64(LW_IR, 24ULL << 40 | 8ULL << 32);
	put64(LW_IR + 8, LW_FN(LW_LEAF));
	put64(LW_IR + 16, 28ULL << 40);
	put64(LW_IR + 24, LW_AFTER_CALL(LW_WORK));
	put64(LW_TRACES, LW_ARRAY);
	put64(LW_TRACES + 8, 8ULL << 32 | 2);
	put64(LW_ARRAY + 8, LW_TRACE);
}

/* --- the file --- */

#define LW_CODE	      0x1000
#define LW_CODE_BYTES 0x1000
#define LW_JFUNC      0x600 /* in it: the end of BC_JFUNC */
#define LW_LEAVE      0x640 /* vm_leave_unw's epilogue */
#define LW_ENTER(i)   (0x680 + 0x20 * (i)) /* vm_resume, and three like it */
#define LW_EXIT	      0x800 /* vm_exit_handler */
#define LW_EXIT_END   0x900
#define LW_MATH	      0xa00
#define LW_MATH_END   0xb01

struct lw_file {
	Elf64_Ehdr head;
	Elf64_Phdr segment[2];
	Elf64_Shdr section[3];
	char names[32];
	char rodata[128];
	struct { uint8_t version, encodings[3]; int32_t frame; uint32_t count; int32_t entry[2]; } hdr;
	struct { uint32_t len, cie; int32_t start; uint32_t bytes; } fde;
	uint8_t pad[LW_CODE - 64 - 2 * 56 - 3 * 64 - 32 - 128 - 20 - 16];
	uint8_t code[LW_CODE_BYTES];
};
_Static_assert(offsetof(struct lw_file, code) == LW_CODE, "the code is a page of its own");

static bool lw_is_plain; /* without what has to do with traces */

static inline void lw_put_code(struct lw_file *f)
{
	static const uint8_t exit[] = {0x41, 0x55, 0x41, 0x54, 0x41, 0x53, 0x41, 0x52, 0x41, 0x51, 0x41, 0x50, 0x57, 0x56, 0x55};
	static const uint8_t end[] = {0x48, 0x8d, 0x4c, 0x24, 0x10, 0x4c, 0x8b, 0x69, 0xf8, 0x4c, 0x8b, 0x21, 0x48, 0x89, 0xcc};
	static const uint8_t floor[] = {0x48, 0xb8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
	static const uint8_t jfunc[] = {0x48, 0x83, 0xec, 0x10, 0x4c, 0x89, 0x64, 0x24,
					0x10, 0x4c, 0x89, 0x6c, 0x24, 0x08, 0xff, 0xe0};
	static const uint8_t leave[] = {0x48, 0x83, 0xc4, 0x28, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d, 0xc3};
	static const uint8_t enter[] = {0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28};

	memcpy(f->code + LW_LEAVE, leave, sizeof(leave));
	for (uint32_t i = 0; i < 4; i++)
		memcpy(f->code + LW_ENTER(i), enter, sizeof(enter));
	if (lw_is_plain)
		return;
	memcpy(f->code + LW_JFUNC, jfunc, sizeof(jfunc));
	memcpy(f->code + LW_EXIT, exit, sizeof(exit));
	memcpy(f->code + LW_EXIT_END, end, sizeof(end));
	memcpy(f->code + LW_MATH, floor, sizeof(floor));
	f->code[LW_MATH_END - 1] = 0xc3;
	f->code[LW_MATH_END] = 0xcc;
}

static inline struct binary *lw_open_file(const char *version, uint16_t machine)
{
	static struct lw_file f;
	struct binary *b = NULL;

	memset(&f, 0, sizeof(f));
	f.head = (Elf64_Ehdr){.e_type = ET_DYN, .e_machine = machine, .e_version = EV_CURRENT, .e_ehsize = sizeof(f.head),
			      .e_phoff = offsetof(struct lw_file, segment), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2,
			      .e_shoff = offsetof(struct lw_file, section), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3,
			      .e_shstrndx = 2};
	memcpy(f.head.e_ident, ELFMAG, SELFMAG);
	f.head.e_ident[EI_CLASS] = ELFCLASS64;
	f.head.e_ident[EI_DATA] = ELFDATA2LSB;
	f.head.e_ident[EI_VERSION] = EV_CURRENT;
	f.segment[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof(f), .p_memsz = sizeof(f)};
	f.segment[1] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_offset = offsetof(struct lw_file, hdr),
				    .p_vaddr = offsetof(struct lw_file, hdr), .p_filesz = sizeof(f.hdr), .p_memsz = sizeof(f.hdr)};
	memcpy(f.names, "\0.rodata\0.shstrtab", 19);
	f.section[1] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC,
				    .sh_addr = offsetof(struct lw_file, rodata), .sh_offset = offsetof(struct lw_file, rodata),
				    .sh_size = sizeof(f.rodata)};
	f.section[2] = (Elf64_Shdr){.sh_name = 9, .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct lw_file, names),
				    .sh_size = sizeof(f.names)};
	strcpy(f.rodata + 8, version);
	f.hdr = (__typeof__(f.hdr)){.version = 1, .encodings = {0x1b, 0x03, 0x3b}, .count = 1,
				    .entry = {LW_CODE - (int)offsetof(struct lw_file, hdr),
					      (int)offsetof(struct lw_file, fde) - (int)offsetof(struct lw_file, hdr)}};
	f.fde = (__typeof__(f.fde)){.len = 20, .cie = 4, .bytes = LW_CODE_BYTES,
				    .start = LW_CODE - (int)(offsetof(struct lw_file, fde) + 8)};
	lw_put_code(&f);
	return binary_open_memory(&f, sizeof(f), "libluajit", &b) ? NULL : b;
}

#define LW_VM (LW_BIAS + LW_CODE)

/* A thread that runs leaf in the interpreter; registers: LW_BASE(LW_SLOTS, 2) and LW_BC(LW_LEAF) + 12. */
static inline void lw_make(void)
{
	lw_put_functions();
	lw_put_frames(LW_SLOTS);
	lw_put_state(LW_MAIN, LW_SLOTS, LW_BASE(LW_SLOTS, 1), LW_C_FRAME);
	put32(LW_GLOBAL + 0x100, 20 << 8 | 0x60);
	put32(LW_GLOBAL + 0x104, 20 << 8 | 0x61);
	put64(LW_CUR_L, LW_MAIN);
	put64(LW_PRNG, LW_STAMP);
	lw_put_string(LW_NAME_INDEX, "__index");
	put64(LW_GCROOT, LW_STR(LW_NAME_INDEX));
	for (uint32_t i = 0; i < 100; i++)
		put64(LW_DISPATCH + 8 * i, LW_VM + 0x10 + 0x10 * (99 - i));
	put64(LW_C_FRAME + LUAJIT_C_L, LW_MAIN);
	put64(LW_C_FRAME + LUAJIT_C_PC, LW_BC(LW_WORK) + 12);
	lw_put_trace();
}

static inline int lw_attach(struct binary *b, const struct runtime_seen *seen, struct runtime_attached *ret,
			    char why[RUNTIME_WHY_MAX])
{
	const struct runtime_file file = {.binary = b, .bias = LW_BIAS, .seen = seen};

	*ret = (struct runtime_attached){0};
	memory_question(&memory);
	return luajit_attach(&file, &memory, ret, why);
}

#endif
