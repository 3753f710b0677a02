// SPDX-License-Identifier: Apache-2.0
/*
 * Where a process has its struct global_State, and the plan to walk the thread
 * that runs. It lies on the heap, behind the lua_State of the main thread, and
 * nothing but the callers of the library knows where: so each word that was seen
 * in their registers and frames is taken for a lua_State, which has a shape.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/luajit.h"

#define GLOBAL_BYTES   16384 /* of GG_State, in which the dispatch table begins */
#define GLOBAL_FIELDS  1024  /* in which cur_L is */
#define DISPATCH_MIN   90u    /* instructions of any version: lj_bc.h */
#define BC_FUNCC_MIN   80u    /* the number of BC_FUNCC in any version */
#define BC_FUNCC_MAX   112u
#define C_SLOTS	       20u   /* LUA_MINSTACK */
#define VM_BYTES_MAX   (64u << 10)
#define SLOTS_MAX      (1u << 20)
#define RODATA_MAX     (16u << 20) /* of a file in which the version is sought */

struct luajit_attaching {
	const struct runtime_file *file;
	struct memory *m;
	struct runtime_attached *ret;
	uint64_t global, cur_l, jit_base; /* the last two: offsets in struct global_State */
	uint64_t dispatch, vm, vm_bytes;
	uint8_t bytes[GLOBAL_BYTES]; /* of global */
	char *why;
};

static uint64_t luajit_word(const uint8_t *bytes, size_t at)
{
	uint64_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return v;
}

/* --- struct global_State --- */

/* Whether a lua_State is there; *ret_global: what it belongs to. */
static bool luajit_is_state(struct memory *m, uint64_t at, uint64_t *ret_global)
{
	uint8_t l[LUAJIT_L_BYTES];
	uint64_t base, limit, stack;

	if (memory_read(m, at, l, sizeof(l)) || l[LUAJIT_GCT] != LUAJIT_THREAD)
		return false;
	base = luajit_word(l, LUAJIT_L_BASE);
	limit = luajit_word(l, LUAJIT_L_LIMIT);
	stack = luajit_word(l, LUAJIT_L_STACK);
	*ret_global = luajit_word(l, LUAJIT_L_GLREF);
	return *ret_global && *ret_global % 8 == 0 && stack && stack % 8 == 0 && base > stack && base <= limit + 64 &&
	       limit - stack < 8ull * SLOTS_MAX;
}

/* It is the one of a main thread, which lies in front of it. */
static bool luajit_is_global(struct memory *m, uint64_t global)
{
	uint64_t own;

	for (uint64_t bytes = LUAJIT_L_BYTES; bytes <= LUAJIT_L_BYTES_MAX; bytes += 8)
		if (luajit_is_state(m, global - bytes, &own) && own == global)
			return true;
	return false;
}

static bool luajit_find_global(struct luajit_attaching *a, uint64_t seen)
{
	uint64_t global;

	if (luajit_is_state(a->m, seen, &global) && luajit_is_global(a->m, global)) {
		a->global = global;
		return true;
	}
	if (!luajit_is_global(a->m, seen))
		return false;
	a->global = seen;
	return true;
}

/*
 * cur_L and jit_base follow two instructions that call C functions: BC_FUNCC with 20 slots. The second one may be
 * BC_FUNCCW, where a hook wraps calls.
 */
static bool luajit_is_before_cur_l(uint64_t word)
{
	uint32_t inner = (uint32_t)word, outer = (uint32_t)(word >> 32), op = inner & 0xff;

	return inner >> 8 == C_SLOTS && op >= BC_FUNCC_MIN && op <= BC_FUNCC_MAX &&
	       (outer == inner || outer == inner + 1);
}

static int luajit_find_cur_l(struct luajit_attaching *a)
{
	for (size_t i = 0; i + 24 <= GLOBAL_FIELDS; i += 8) {
		uint64_t global, l = luajit_word(a->bytes, i + 8);

		if (!luajit_is_before_cur_l(luajit_word(a->bytes, i)))
			continue;
		if (!l)
			return -EAGAIN;
		if (!luajit_is_state(a->m, l, &global) || global != a->global)
			continue;
		a->cur_l = i + 8;
		a->jit_base = i + 16;
		return 0;
	}
	return -ENOENT;
}

/* --- the interpreter's code --- */

static bool luajit_is_code(const struct luajit_attaching *a, uint64_t addr)
{
	return binary_is_code(a->file->binary, addr - a->file->bias);
}

/* The dispatch table is the first long row of addresses in the file's code. Its lowest one is where the code begins. */
static int luajit_find_dispatch(struct luajit_attaching *a)
{
	uint32_t n = 0;
	uint64_t low = UINT64_MAX;

	for (size_t i = 0; i + 8 <= GLOBAL_BYTES; i += 8) {
		uint64_t word = luajit_word(a->bytes, i);

		if (!luajit_is_code(a, word)) {
			n = 0;
			low = UINT64_MAX;
			continue;
		}
		low = MIN(low, word);
		if (++n == DISPATCH_MIN) {
			a->dispatch = i + 8 - 8 * n;
			a->vm = low;
			return 0;
		}
	}
	return -ENOENT;
}

struct luajit_eh_frame_hdr { uint8_t version, frame_encoding, count_encoding, table_encoding; int32_t frame; uint32_t count; };

#define EH_SDATA4_PCREL 0x1b
#define EH_SDATA4_DATA	0x3b
#define EH_UDATA4	0x03
#define EH_FDES_MAX	(1u << 24)

static bool luajit_read_file(const struct luajit_attaching *a, uint64_t vaddr, void *to, size_t len)
{
	return binary_read_vaddr(a->file->binary, vaddr, to, len) == (ssize_t)len;
}

/* The entry of the sorted table that begins at or before vaddr: where its FDE is. 0: none. */
static uint64_t luajit_fde_of(const struct luajit_attaching *a, uint64_t vaddr)
{
	uint64_t table = a->file->binary->eh_frame_hdr, low = 0, high;
	struct luajit_eh_frame_hdr h;
	int32_t entry[2];

	if (!table || !luajit_read_file(a, table, &h, sizeof(h)) || h.frame_encoding != EH_SDATA4_PCREL ||
	    h.count_encoding != EH_UDATA4 || h.table_encoding != EH_SDATA4_DATA || h.count > EH_FDES_MAX)
		return 0;
	for (high = h.count; low < high;) {
		uint64_t middle = low + (high - low) / 2;

		if (!luajit_read_file(a, table + sizeof(h) + 8 * middle, entry, sizeof(entry)))
			return 0;
		if (table + (uint64_t)(int64_t)entry[0] <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !luajit_read_file(a, table + sizeof(h) + 8 * (low - 1), entry, sizeof(entry)))
		return 0;
	return table + (uint64_t)(int64_t)entry[1];
}

/* All of it is one function to the unwind table. */
static int luajit_find_vm(struct luajit_attaching *a)
{
	uint64_t vaddr = a->vm - a->file->bias, fde = luajit_fde_of(a, vaddr), start;
	struct { uint32_t len, cie; int32_t start; uint32_t bytes; } f;

	if (!fde || !luajit_read_file(a, fde, &f, sizeof(f)))
		return -ENOENT;
	start = fde + offsetof(__typeof__(f), start) + (uint64_t)(int64_t)f.start;
	if (vaddr - start >= f.bytes || f.bytes > VM_BYTES_MAX)
		return -ENOENT;
	a->vm = start + a->file->bias;
	a->vm_bytes = f.bytes;
	return 0;
}

static const uint8_t *luajit_search(const uint8_t *from, const uint8_t *end, const void *what, size_t len)
{
	return from ? memmem(from, (size_t)(end - from), what, len) : NULL;
}

/* A part that begins behind the first bytes of what is sought. */
static void luajit_find_part(const struct luajit_attaching *a, const uint8_t *code, const void *what, size_t len,
			     size_t skip, enum luajit_params to)
{
	const uint8_t *at = luajit_search(code, code + a->vm_bytes, what, len);

	if (!at)
		return;
	a->ret->param[to] = a->vm + (uint64_t)(at - code) + skip;
	a->ret->param[to + 1] = a->vm + (uint64_t)(at - code) + len;
}

/*
 * Where the interpreter's frame is made, in vm_resume, vm_pcall, vm_call and vm_cpcall, where it is given back, and where
 * it has become larger for a trace: the table tells what it is in between.
 */
static void luajit_find_frames(const struct luajit_attaching *a, const uint8_t *code)
{
	/* push rbp; push rbx; push r15; push r14; sub rsp, 40 */
	static const uint8_t enter[LUAJIT_ENTER_BYTES] = {0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28};
	/* add rsp, 40; pop r14; pop r15; pop rbx; pop rbp; ret */
	static const uint8_t leave[] = {0x48, 0x83, 0xc4, 0x28, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d, 0xc3};
	/* sub rsp, 16; then mov [rsp+16], r12; mov [rsp+8], r13; jmp rax */
	static const uint8_t jfunc[] = {0x48, 0x83, 0xec, 0x10, 0x4c, 0x89, 0x64, 0x24,
					0x10, 0x4c, 0x89, 0x6c, 0x24, 0x08, 0xff, 0xe0};
	const uint8_t *stop = code + a->vm_bytes, *at = luajit_search(code, stop, enter, sizeof(enter));

	luajit_find_part(a, code, leave, sizeof(leave), 0, LUAJIT_PARAM_VM_LEAVE);
	luajit_find_part(a, code, jfunc, sizeof(jfunc), 4, LUAJIT_PARAM_VM_JFUNC);
	for (uint32_t i = 0; at && i < LUAJIT_ENTERS; i++, at = luajit_search(at + 1, stop, enter, sizeof(enter)))
		a->ret->param[LUAJIT_PARAM_VM_ENTER + i] = a->vm + (uint64_t)(at - code);
}

/*
 * More of them, by instructions that are found nowhere else before.
 *   - vm_exit_handler pushes all registers: r13, r12, r11, r10, r9, r8, rdi, rsi, rbp. It ends where vm_exit_interp
 *     begins to restore two of them: lea rcx, [rsp+16].
 *   - vm_floor, the first of the functions, begins with mov rax, 0x7fffffffffffffff. Behind the last one is int3.
 */
static void luajit_find_exits(const struct luajit_attaching *a, const uint8_t *code)
{
	static const uint8_t begin[] = {0x41, 0x55, 0x41, 0x54, 0x41, 0x53, 0x41, 0x52, 0x41, 0x51, 0x41, 0x50, 0x57, 0x56, 0x55};
	static const uint8_t end[] = {0x48, 0x8d, 0x4c, 0x24, 0x10};
	/* mov r13, [rcx-8]; mov r12, [rcx]; mov rsp, rcx */
	static const uint8_t interp[] = {0x4c, 0x8b, 0x69, 0xf8, 0x4c, 0x8b, 0x21, 0x48, 0x89, 0xcc};
	static const uint8_t floor[] = {0x48, 0xb8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
	static const uint8_t last[] = {0xc3, 0xcc};
	const uint8_t *stop = code + a->vm_bytes, *from, *to, *math, *math_end;
	uint64_t *param = a->ret->param;

	from = luajit_search(code, stop, begin, sizeof(begin));
	to = luajit_search(from, stop, end, sizeof(end));
	math = luajit_search(to, stop, floor, sizeof(floor));
	math_end = luajit_search(math, stop, last, sizeof(last));
	if (!math_end)
		return;
	param[LUAJIT_PARAM_VM_EXIT] = a->vm + (uint64_t)(from - code);
	param[LUAJIT_PARAM_VM_EXIT_END] = param[LUAJIT_PARAM_VM_INTERP_END] = a->vm + (uint64_t)(to - code);
	if ((size_t)(math - to) > sizeof(end) + sizeof(interp) && !memcmp(to + sizeof(end), interp, sizeof(interp)))
		param[LUAJIT_PARAM_VM_INTERP_END] += sizeof(end) + sizeof(interp);
	param[LUAJIT_PARAM_VM_MATH] = a->vm + (uint64_t)(math - code);
	param[LUAJIT_PARAM_VM_MATH_END] = a->vm + (uint64_t)(math_end + 1 - code);
}

/* Parts of which the table is wrong. */
static void luajit_find_parts(const struct luajit_attaching *a)
{
	uint8_t code[VM_BYTES_MAX];

	if (!luajit_read_file(a, a->vm - a->file->bias, code, a->vm_bytes))
		return;
	luajit_find_frames(a, code);
	luajit_find_exits(a, code);
}

static void luajit_describe_part(struct runtime_attached *ret, uint64_t start, uint64_t end)
{
	if (!start)
		return;
	ret->code_start = ret->code_start ? MIN(ret->code_start, start) : start;
	ret->code_end = MAX(ret->code_end, end);
}

static void luajit_describe_parts(const struct luajit_attaching *a)
{
	struct runtime_attached *ret = a->ret;
	const uint64_t *param = ret->param;

	luajit_describe_part(ret, param[LUAJIT_PARAM_VM_EXIT], param[LUAJIT_PARAM_VM_MATH_END]);
	luajit_describe_part(ret, param[LUAJIT_PARAM_VM_JFUNC], param[LUAJIT_PARAM_VM_JFUNC_END]);
	luajit_describe_part(ret, param[LUAJIT_PARAM_VM_LEAVE], param[LUAJIT_PARAM_VM_LEAVE_END]);
	for (uint32_t i = LUAJIT_PARAM_VM_ENTER; i < LUAJIT_PARAM_VM_ENTER + LUAJIT_ENTERS; i++)
		luajit_describe_part(ret, param[i], param[i] + LUAJIT_ENTER_BYTES);
	ret->code_vaddr = ret->code_start ? ret->code_start - a->file->bias : 0;
	ret->code_has_tables = ret->code_start != 0;
}

/* --- the plan --- */

enum { X86_RDX = 1, X86_RBX = 3 };
#define STORE_LINK 0xf85a8948u /* mov [rdx-8], rbx: a call's return address */

static void luajit_plan(const struct luajit_attaching *a, struct otp_walk *w)
{
	w->start = OTP_WALK_AT;
	w->step = OTP_WALK_SLOTS;
	w->base = a->global;
	w->nr_chain = 1;
	w->chain[0] = (int32_t)a->cur_l;
	w->frames_max = OTP_WALK_FRAMES;
	w->copy_off = -24;
	w->keep = 7;
	w->link = LUAJIT_LINK;
	w->first.at = LUAJIT_L_BASE;
	w->last = (struct otp_walk_edge){.at = LUAJIT_L_STACK, .bias = OTP_WALK_SLOT_HEAD};
	w->nr_subs = 3;
	w->sub[0] = (struct otp_walk_sub){.at = LUAJIT_FN, .high = 17, .off = LUAJIT_FN_HEAD,
					  .keep = 1 | 1 << (LUAJIT_FN_PC - LUAJIT_FN_HEAD) / 8};
	w->sub[1] = (struct otp_walk_sub){.from = 1, .at = (LUAJIT_FN_PC - LUAJIT_FN_HEAD) / 8,
					  .off = LUAJIT_PT_HEAD - LUAJIT_PT_BYTES,
					  .keep = 1 | 1 << (LUAJIT_PT_CHUNKNAME - LUAJIT_PT_HEAD) / 8 |
						  1 << (LUAJIT_PT_FIRSTLINE - LUAJIT_PT_HEAD) / 8};
	w->sub[2] = (struct otp_walk_sub){.from = 2, .at = (LUAJIT_PT_CHUNKNAME - LUAJIT_PT_HEAD) / 8,
					  .off = LUAJIT_STR_HEAD, .keep = 1};
	w->slots = (struct otp_walk_slots){.code = a->vm, .code_len = (uint32_t)a->vm_bytes, .store = STORE_LINK,
					   .at_reg = X86_RDX, .place_reg = X86_RBX, .compiled = (int16_t)a->jit_base,
					   .limit = LUAJIT_L_LIMIT, .c_frame = LUAJIT_L_C_FRAME, .place = LUAJIT_C_PC,
					   .prev = LUAJIT_C_PREV, .back = LUAJIT_C_BACK,
					   .resumer = LUAJIT_C_BYTES + LUAJIT_C_L};
}

/* --- all --- */

/* "LuaJIT 2.1.0-beta3", or "LuaJIT 2.1.1700008891", is the constant jit.version. */
static bool luajit_take_version(const char *text, size_t len, char *to)
{
	static const char name[] = "LuaJIT ";
	const char *at = memmem(text, len, name, sizeof(name) - 1);
	size_t n = 0;

	if (!at || (size_t)(text + len - at) < sizeof(name) + RUNTIME_VERSION_MAX)
		return false;
	at += sizeof(name) - 1;
	while (n + 1 < RUNTIME_VERSION_MAX && at[n] > ' ' && at[n] < 0x7f)
		n++;
	if (!n || at[0] < '0' || at[0] > '9')
		return false;
	memcpy(to, at, n);
	to[n] = '\0';
	return true;
}

/* Whether take finds something in a piece of the file's constants. Pieces overlap, so that no text lies across two. */
static bool luajit_find_text(const struct luajit_attaching *a, bool (*take)(const char *text, size_t len, char *to), char *to)
{
	const struct binary_section *s = binary_section(a->file->binary, ".rodata");
	char text[4096];
	ssize_t n = 1;

	for (uint64_t at = 0; s && n > 0 && at < MIN(s->size, (uint64_t)RODATA_MAX); at += sizeof(text) - 64) {
		n = binary_read(a->file->binary, s->offset + at, text, MIN(sizeof(text), s->size - at));
		if (n > 0 && take(text, (size_t)n, to))
			return true;
	}
	return false;
}

/* jit.prngstate, of OpenResty's alone: its traces are placed by a generator that jit_State has. */
static bool luajit_take_prngstate(const char *text, size_t len, char *to)
{
	static const char name[] = "prngstate";

	(void)to;
	return memmem(text, len, name, sizeof(name) - 1);
}

static int luajit_attach_found(struct luajit_attaching *a)
{
	int err = memory_read(a->m, a->global, a->bytes, sizeof(a->bytes));

	if (!err)
		err = luajit_find_cur_l(a);
	if (!err)
		err = luajit_find_dispatch(a);
	if (!err)
		err = luajit_find_vm(a);
	if (err == -ENOENT) {
		snprintf(a->why, RUNTIME_WHY_MAX, "LuaJIT %s: its global_State is of a layout that is not known", a->ret->version);
		return -ENOTSUP;
	}
	return err;
}

int luajit_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		  char why[RUNTIME_WHY_MAX])
{
	struct luajit_attaching a = {.file = file, .m = m, .ret = ret, .why = why};
	uint32_t i = 0, seen = file->seen ? file->seen->nr : 0;
	int err;

	snprintf(ret->version, sizeof(ret->version), "unknown");
	luajit_find_text(&a, luajit_take_version, ret->version);
	if (file->binary->machine != EM_X86_64) {
		snprintf(why, RUNTIME_WHY_MAX, "LuaJIT %s: its frames are known on x86-64 only", ret->version);
		return -ENOTSUP;
	}
	if (strncmp(ret->version, "2.1", 3) != 0) {
		snprintf(why, RUNTIME_WHY_MAX, "LuaJIT %s is not known", ret->version);
		return -ENOTSUP;
	}
	while (i < MIN(seen, (uint32_t)RUNTIME_SEEN) && !luajit_find_global(&a, file->seen->word[i]))
		i++;
	if (!a.global)
		return -EAGAIN;
	err = luajit_attach_found(&a);
	if (err)
		return err;
	ret->param[LUAJIT_PARAM_GLOBAL] = a.global;
	ret->param[LUAJIT_PARAM_VM] = a.vm;
	ret->param[LUAJIT_PARAM_VM_BYTES] = a.vm_bytes;
	ret->param[LUAJIT_PARAM_DISPATCH] = a.dispatch;
	luajit_find_parts(&a);
	luajit_describe_parts(&a);
	luajit_plan(&a, &ret->walk);
	luajit_stamp_attach(m, a.jit_base, !luajit_find_text(&a, luajit_take_prngstate, NULL), ret);
	ret->loop[ret->nr_loops++] = a.vm;
	return 0;
}
