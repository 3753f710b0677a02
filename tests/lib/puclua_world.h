/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up Lua of any version in the memory of a process, with its file: a main
 * function, which made a global function "work", which calls its upvalue "leaf";
 * their CallInfos; the thread's stack, with the frame of luaD_rawrunprotected;
 * and a coroutine, whose frame lies below that one.
 *
 * Included after tests/lib/world.h.
 */
#ifndef OTP_TESTS_PUCLUA_WORLD_H
#define OTP_TESTS_PUCLUA_WORLD_H

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/binary.h"
#include "runtime/puclua.h"

#define PW_MAIN	     (WORLD + 0x1000) /* lua_State */
#define PW_CO	     (WORLD + 0x1400) /* another */
#define PW_CI(s, i)  (WORLD + 0x2000 + 0x800ULL * (s) + 80ULL * (i)) /* in a list */
#define PW_ARRAY(s)  (WORLD + 0x3000 + 0x800ULL * (s)) /* of 5.1 */
#define PW_VALUE(i)  (WORLD + 0x4000 + 16ULL * (i)) /* functions on the Lua stack */
#define PW_FN(i)     (WORLD + 0x5000 + 0x100ULL * (i))
#define PW_PROTO(i)  (WORLD + 0x6000 + 0x800ULL * (i))
#define PW_CODE(i)   (PW_PROTO(i) + 0x100)
#define PW_LINES(i)  (PW_PROTO(i) + 0x200)
#define PW_K(i)	     (PW_PROTO(i) + 0x300)
#define PW_CHILD(i)  (PW_PROTO(i) + 0x400)
#define PW_UPVALUES(i) (PW_PROTO(i) + 0x480)
#define PW_LOCALS(i) (PW_PROTO(i) + 0x500)
#define PW_STR(i)    (WORLD + 0x9000 + 0x100ULL * (i))
#define PW_STACK     (WORLD + WORLD_BYTES - 0x2000) /* the thread's, which ends with the world */
#define PW_CALL	     (PW_STACK + 0x900) /* the return address in the main thread's frame; its jump buffer is above */
#define PW_CO_CALL   (PW_STACK + 0x300)
#define PW_JUMP	     0x28
#define PW_KEPT	     8
#define PW_BIAS	     0x555500000000ULL

enum { PW_MAIN_FN, PW_WORK, PW_LEAF, PW_FUNCTIONS, PW_C_FN = PW_FUNCTIONS, PW_NIL };
enum { PW_CHUNK, PW_NAME_WORK, PW_NAME_LEAF, PW_NAME_LOCAL };
#define PW_CALLS 3 /* the index of a function's call instruction */
#define PW_INSNS 6

static const struct puclua_layout *pw; /* of the version that the world is of */

static inline void pw_put8(uint64_t at, uint8_t v)
{
	put(at, &v, 1);
}

static inline uint32_t pw_insn(enum puclua_op op, uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t number = pw->op->number[op];

	return pw->op->is_wide ? number | a << 7 | b << 16 | c << 24 : number | a << 6 | c << 14 | b << 23;
}

static inline uint32_t pw_insn_bx(enum puclua_op op, uint32_t a, uint32_t bx)
{
	return pw->op->is_wide ? pw->op->number[op] | a << 7 | bx << 15 : pw->op->number[op] | a << 6 | bx << 14;
}

static inline void pw_put_string(uint32_t i, const char *text)
{
	pw_put8(PW_STR(i) + PUCLUA_TAG, PUCLUA_STRING);
	put(PW_STR(i) + pw->string_bytes, text, strlen(text) + 1);
}

/* Six instructions, on lines that follow the first one. */
static inline void pw_put_proto(uint32_t i, uint32_t line)
{
	uint64_t at = PW_PROTO(i);

	pw_put8(at + PUCLUA_TAG, pw->pt.tag);
	put64(at + pw->pt.k, PW_K(i));
	put32(at + pw->pt.sizek, 2);
	put64(at + pw->pt.code, PW_CODE(i));
	put32(at + pw->pt.sizecode, PW_INSNS);
	put64(at + pw->pt.p, PW_CHILD(i));
	put64(at + pw->pt.upvalues, PW_UPVALUES(i));
	put32(at + pw->pt.sizeupvalues, 1);
	put64(at + pw->pt.locvars, PW_LOCALS(i));
	put64(at + pw->pt.source, PW_STR(PW_CHUNK));
	put32(at + pw->pt.linedefined, line);
	put32(at + pw->pt.lastlinedefined, line ? line + 9 : 0);
	put64(at + pw->pt.lineinfo, PW_LINES(i));
	put32(at + pw->pt.sizelineinfo, PW_INSNS);
	for (uint32_t k = 0; k < PW_INSNS; k++) {
		if (pw->pt.abslineinfo)
			pw_put8(PW_LINES(i) + k, 1);
		else
			put32(PW_LINES(i) + 4 * k, line + 1 + k);
		put32(PW_CODE(i) + 4 * k, pw_insn(PUCLUA_MOVE, 7, 7, 0));
	}
	put32(PW_CODE(i) + 4 * PW_CALLS, pw_insn(PUCLUA_CALL, 3, 1, 1));
	put64(PW_FN(i) + pw->closure_p, at);
	put64(PW_VALUE(i), PW_FN(i));
	pw_put8(PW_VALUE(i) + PUCLUA_VALUE_TAG, pw->tag_lua);
}

static inline void pw_put_functions(void)
{
	uint32_t constant = pw->op->is_wide ? 0 : 256;

	pw_put_string(PW_CHUNK, "@lib/app.lua");
	pw_put_string(PW_NAME_WORK, "work");
	pw_put_string(PW_NAME_LEAF, "leaf");
	pw_put_string(PW_NAME_LOCAL, "own");
	pw_put_proto(PW_MAIN_FN, 0);
	pw_put_proto(PW_WORK, 10);
	pw_put_proto(PW_LEAF, 30);
	/* main: function work, a global. */
	put32(PW_CODE(PW_MAIN_FN), pw_insn_bx(PUCLUA_CLOSURE, 1, 0));
	if (pw->op->number[PUCLUA_SETGLOBAL] == PUCLUA_NO_OP)
		put32(PW_CODE(PW_MAIN_FN) + 4, pw_insn(PUCLUA_SETTABUP, 0, constant, 1));
	else
		put32(PW_CODE(PW_MAIN_FN) + 4, pw_insn_bx(PUCLUA_SETGLOBAL, 1, 0));
	put64(PW_K(PW_MAIN_FN), PW_STR(PW_NAME_WORK));
	pw_put8(PW_K(PW_MAIN_FN) + PUCLUA_VALUE_TAG, PUCLUA_STRING);
	put64(PW_CHILD(PW_MAIN_FN), PW_PROTO(PW_WORK));
	put32(PW_PROTO(PW_MAIN_FN) + pw->pt.sizep, 1);
	/* work: calls its upvalue leaf, of which no function that is still there says where it was made. */
	put32(PW_CODE(PW_WORK) + 4, pw_insn(PUCLUA_GETUPVAL, 3, 0, 0));
	put64(PW_UPVALUES(PW_WORK), PW_STR(PW_NAME_LEAF));
	/* A function of C, and what a state begins with. */
	put64(PW_VALUE(PW_C_FN), PW_FN(PW_C_FN));
	pw_put8(PW_VALUE(PW_C_FN) + PUCLUA_VALUE_TAG, pw->tag_lua == 6 ? 6 : 0x66);
	if (pw->closure_is_c)
		pw_put8(PW_FN(PW_C_FN) + pw->closure_is_c, 1);
}

static inline uint64_t pw_ci(uint32_t state, uint32_t i)
{
	return pw->ci_bytes ? PW_ARRAY(state) + (uint64_t)pw->ci_bytes * i : PW_CI(state, i);
}

/* The i-th CallInfo of a state, from the outermost on; its function's place is behind that instruction. */
static inline void pw_put_ci(uint32_t state, uint32_t i, uint32_t fn, uint32_t insn, bool entry)
{
	uint64_t at = pw_ci(state, i), status = 0;
	bool is_lua = fn < PW_FUNCTIONS;

	if (pw->entry != PUCLUA_ENTRY_BY_CALL)
		status = (uint64_t)(entry == (pw->entry == PUCLUA_ENTRY_IF)) << pw->status_entry;
	for (uint64_t kind = 0; pw->status_lua && kind < 16; kind++)
		if ((kind & status) == (status & 15) && (pw->status_lua >> kind & 1) == is_lua) {
			status |= kind;
			break;
		}
	put64(at + (pw->ci_bytes ? 8 : 0), PW_VALUE(fn));
	if (!pw->ci_bytes)
		put64(at + pw->ci_previous, i ? pw_ci(state, i - 1) : 0);
	put64(at + pw->ci_savedpc, is_lua ? PW_CODE(fn) + 4ULL * (insn + 1) : 0);
	put64(at + pw->ci_status, status << pw->status_shift);
}

static inline void pw_put_state(uint32_t state, uint64_t at, uint32_t nr_ci, uint64_t call)
{
	pw_put8(at + PUCLUA_TAG, PUCLUA_THREAD);
	put64(at + pw->l_ci, pw_ci(state, nr_ci - 1));
	if (pw->ci_bytes)
		put64(at + pw->l_base_ci, pw_ci(state, 0));
	put64(at + pw->l_jump, call ? call + PW_JUMP : 0);
}

/* --- the file --- */

#define PW_TEXT	      0x1000
#define PW_LUA_CALL   PW_TEXT
#define PW_D_CALL     (PW_TEXT + 0x40)
#define PW_EXECUTE    (PW_TEXT + 0x100)
#define PW_EXECUTE_BYTES 0xd00
#define PW_PROTECTED  (PW_TEXT + 0xe00)
#define PW_RESUME     (PW_TEXT + 0xe80)
#define PW_TEXT_BYTES 0x1000
#define PW_BACK	      (PW_BIAS + PW_PROTECTED + 0x22) /* behind its call *%rax */
#define PW_NR_FDES    5

struct pw_fde { uint32_t len, cie; int32_t start; uint32_t bytes; uint8_t rest[8]; };
struct pw_file {
	Elf64_Ehdr head;
	Elf64_Phdr segment[2];
	Elf64_Shdr section[5];
	char names[64];
	char rodata[192];
	Elf64_Sym symbol[3];
	char text[64];
	struct { uint8_t version, encodings[3]; int32_t frame; uint32_t count; int32_t entry[2 * PW_NR_FDES]; } hdr;
	struct { uint32_t len, id; uint8_t bytes[16]; } cie;
	struct pw_fde fde[PW_NR_FDES];
	uint8_t end[4];
	uint8_t pad[PW_TEXT - 64 - 2 * 56 - 5 * 64 - 64 - 192 - 3 * 24 - 64 - 12 - 8 * PW_NR_FDES - 24 - 24 * PW_NR_FDES - 4];
	uint8_t code[PW_TEXT_BYTES];
};
_Static_assert(offsetof(struct pw_file, code) == PW_TEXT, "the code is a page of its own");

static inline void pw_put_tables(struct pw_file *f)
{
	static const struct { uint32_t start, bytes; } function[PW_NR_FDES] = {
		{PW_LUA_CALL, 0x40}, {PW_D_CALL, 0x40}, {PW_EXECUTE, PW_EXECUTE_BYTES}, {PW_PROTECTED, 0x80}, {PW_RESUME, 0x40}};
	/* zR, aligned by 1 and -8, return address in 16, relative addresses; def_cfa rsp+8, offset rip at cfa-8. */
	static const uint8_t cie[16] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1};
	int32_t hdr = (int32_t)offsetof(struct pw_file, hdr);

	f->cie.len = sizeof(f->cie) - 4;
	memcpy(f->cie.bytes, cie, sizeof(cie));
	f->hdr.version = 1;
	f->hdr.encodings[0] = 0x1b;
	f->hdr.encodings[1] = 0x03;
	f->hdr.encodings[2] = 0x3b;
	f->hdr.count = PW_NR_FDES;
	f->hdr.frame = (int32_t)offsetof(struct pw_file, cie) - hdr - 4;
	for (uint32_t i = 0; i < PW_NR_FDES; i++) {
		int32_t at = (int32_t)(offsetof(struct pw_file, fde) + i * sizeof(struct pw_fde));

		f->fde[i] = (struct pw_fde){.len = sizeof(struct pw_fde) - 4, .bytes = function[i].bytes};
		f->fde[i].cie = (uint32_t)(at + 4 - (int32_t)offsetof(struct pw_file, cie));
		f->fde[i].start = (int32_t)function[i].start - (at + 8);
		f->hdr.entry[2 * i] = (int32_t)function[i].start - hdr;
		f->hdr.entry[2 * i + 1] = at - hdr;
	}
}

static const uint8_t *pw_code; /* what luaD_rawrunprotected and lua_resume are made of instead */
static size_t pw_code_len;
#define PW_PROTECTED_BYTES 0xc0
static bool pw_tells; /* the code of luaD_rawrunprotected is as gcc makes it */
static bool pw_is_inlined; /* it is, in lua_pcall's helper and in lua_resume, as in C++ */

/*
 * mov [rsp], rdi; lea rax, [rsp + 0x20]; mov [rdi + errorJmp], rax; then its call is at 0x20.
 */
static inline void pw_put_protected(uint8_t *code)
{
	static const uint8_t keep[] = {0x48, 0x89, 0x3c, 0x24}, jump[] = {0x48, 0x8d, 0x44, 0x24, PW_JUMP - 8};
	const uint8_t write[] = {0x48, 0x89, 0x87, pw->l_jump, 0, 0, 0};

	memcpy(code, keep, sizeof(keep));
	memcpy(code + 4, jump, sizeof(jump));
	memcpy(code + 12, write, sizeof(write));
}

/* It calls luaD_rawrunprotected, or is that itself: mov r12, rsp; mov [rbx + errorJmp], r12. */
static inline void pw_put_resume(uint8_t *code)
{
	const uint8_t inlined[] = {0x49, 0x89, 0xe4, 0x4c, 0x89, 0xa3, pw->l_jump, 0, 0, 0};
	int32_t to = PW_PROTECTED - (PW_RESUME + 5);

	code[0] = 0xe8;
	memcpy(code + 1, &to, sizeof(to));
	if (pw_is_inlined)
		memcpy(code, inlined, sizeof(inlined));
}

/*
 * lua_call calls, what that calls jumps to luaV_execute, which saves r13, once another register; luaD_rawrunprotected calls
 * through a register.
 */
static inline void pw_put_code(struct pw_file *f)
{
	int32_t to = PW_D_CALL - (PW_LUA_CALL + 8 + 5), on = PW_EXECUTE - (PW_D_CALL + 16 + 5);

	memset(f->code, 0x90, sizeof(f->code));
	f->code[8] = 0xe8;
	memcpy(f->code + 9, &to, 4);
	f->code[PW_D_CALL - PW_TEXT + 16] = 0xe9;
	memcpy(f->code + (PW_D_CALL - PW_TEXT + 17), &on, 4);
	for (uint32_t i = 0; i < 4; i++) {
		uint8_t save[] = {0x4c, 0x89, i ? 0x6d : 0x65, pw ? pw->saves_pc : 0};

		memcpy(f->code + (PW_EXECUTE - PW_TEXT + 16 * i), save, sizeof(save));
	}
	if (pw_tells)
		pw_put_protected(f->code + (PW_PROTECTED - PW_TEXT));
	if (pw)
		pw_put_resume(f->code + (PW_RESUME - PW_TEXT));
	f->code[PW_PROTECTED - PW_TEXT + 0x20] = 0xff;
	f->code[PW_PROTECTED - PW_TEXT + 0x21] = 0xd0;
	if (pw_code_len)
		memcpy(f->code + (PW_PROTECTED - PW_TEXT), pw_code, MIN(pw_code_len, (size_t)PW_PROTECTED_BYTES));
}

static inline void pw_section(struct pw_file *f, uint32_t i, uint32_t name, uint32_t type, size_t at, size_t size)
{
	f->section[i] = (Elf64_Shdr){.sh_name = name, .sh_type = type, .sh_flags = SHF_ALLOC, .sh_addr = at, .sh_offset = at,
				     .sh_size = size};
}

static inline struct binary *pw_open_file(const char *ident, uint16_t machine)
{
	static struct pw_file f;
	struct binary *b = NULL;

	memset(&f, 0, sizeof(f));
	f.head = (Elf64_Ehdr){.e_type = ET_DYN, .e_machine = machine, .e_version = EV_CURRENT, .e_ehsize = sizeof(f.head),
			      .e_phoff = offsetof(struct pw_file, segment), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2,
			      .e_shoff = offsetof(struct pw_file, section), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 5,
			      .e_shstrndx = 4};
	memcpy(f.head.e_ident, ELFMAG, SELFMAG);
	f.head.e_ident[EI_CLASS] = ELFCLASS64;
	f.head.e_ident[EI_DATA] = ELFDATA2LSB;
	f.head.e_ident[EI_VERSION] = EV_CURRENT;
	f.segment[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof(f), .p_memsz = sizeof(f)};
	f.segment[1] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_offset = offsetof(struct pw_file, hdr),
				    .p_vaddr = offsetof(struct pw_file, hdr), .p_filesz = sizeof(f.hdr), .p_memsz = sizeof(f.hdr)};
	memcpy(f.names, "\0.rodata\0.symtab\0.strtab\0.shstrtab", 35);
	pw_section(&f, 1, 1, SHT_PROGBITS, offsetof(struct pw_file, rodata), sizeof(f.rodata));
	pw_section(&f, 2, 9, SHT_SYMTAB, offsetof(struct pw_file, symbol), sizeof(f.symbol));
	pw_section(&f, 3, 17, SHT_STRTAB, offsetof(struct pw_file, text), sizeof(f.text));
	pw_section(&f, 4, 25, SHT_STRTAB, offsetof(struct pw_file, names), sizeof(f.names));
	f.section[2].sh_link = 3;
	f.section[2].sh_entsize = sizeof(Elf64_Sym);
	memcpy(f.text, "\0lua_call\0lua_resume", 21);
	f.symbol[1] = (Elf64_Sym){.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1,
				  .st_value = PW_LUA_CALL, .st_size = 0x40};
	f.symbol[2] = (Elf64_Sym){.st_name = 10, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1,
				  .st_value = PW_RESUME, .st_size = 0x40};
	strcpy(f.rodata + 8, ident);
	pw_put_tables(&f);
	pw_put_code(&f);
	return binary_open_memory(&f, sizeof(f), "liblua", &b) ? NULL : b;
}

/* "$LuaVersion: Lua 5.4.4  ...", as lua_ident of that version is. */
static inline const char *pw_ident(uint32_t version)
{
	static char text[96];

	snprintf(text, sizeof(text), "%s Lua 5.%u.%u%s Copyright (C) 1994-2022 Lua.org, PUC-Rio $",
		 version < 50200 ? "$Lua:" : "$LuaVersion:", version / 100 % 100, version % 100, version < 50200 ? "" : " ");
	return text;
}

static inline void pw_put_call(uint64_t call, uint64_t state)
{
	put64(call, PW_BACK);
	put64(call + PW_KEPT, state);
}

/* The main thread runs leaf, which work called, which main called. */
static inline void pw_make(void)
{
	pw_put_functions();
	pw_put_ci(0, 0, PW_NIL, 0, false);
	pw_put_ci(0, 1, PW_MAIN_FN, PW_CALLS, true);
	pw_put_ci(0, 2, PW_WORK, PW_CALLS, false);
	pw_put_ci(0, 3, PW_LEAF, 1, false);
	pw_put_state(0, PW_MAIN, 4, PW_CALL);
	pw_put_state(1, PW_CO, 1, 0);
	pw_put_call(PW_CALL, PW_MAIN);
}

static inline int pw_attach(struct binary *b, const struct runtime_seen *seen, struct runtime_attached *ret,
			    char why[RUNTIME_WHY_MAX])
{
	const struct runtime_file file = {.binary = b, .bias = PW_BIAS, .seen = seen};

	*ret = (struct runtime_attached){0};
	memory_question(&memory);
	return puclua_attach(&file, &memory, ret, why);
}

#endif
