// SPDX-License-Identifier: Apache-2.0
/*
 * Go: the stack that a goroutine left while its thread is on another one, in
 * systemstack, mcall, C code or the vDSO. Its frames are native code, so nothing
 * is decoded here; the bytes are copied, and unwind/ goes on in them.
 *
 * A thread finds its goroutine by g (thread-local) -> m -> m.curg. The offsets
 * differ by version, and by how the program was linked; all of them stand in the
 * machine code of the program itself, in two assembly functions that its table
 * names (Go, src/runtime/asm_amd64.s and sys_linux_amd64.s of 1.15 to 1.27). So
 * no table of versions is needed, and stripped programs and new versions work.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/go.h"

/* struct g and struct gobuf (src/runtime/runtime2.go), the same since Go 1.5. */
enum { GO_STACK_LO = 0, GO_STACK_HI = 8, GO_M = 48, GO_SCHED_SP = 56, GO_SCHED_PC = 64, GO_SCHED_G = 72 };
/* As the root keeps them. */
enum { GO_ROOT_SP, GO_ROOT_PC, GO_ROOT_G, GO_ROOT_WORDS, GO_ROOT_SAVED = GO_ROOT_WORDS };
/*
 * Of a goroutine's stack, where its copy does not reach the end: from its entry up to a frame too large to copy; or, with
 * frame pointers, for 512 frames.
 */
#define GO_FAR (4096 / OTP_WALK_BLOCK * OTP_WALK_BLOCK)
#define GO_FAR_RECORDS (512 * 16)
#define GO_BIT(offset) (1u << (offset) / 8)

/* --- functions --- */

/* A name of the table may have a suffix: .abi0 */
static bool go_name_is(const char *name, const char *want)
{
	size_t len = strlen(want);

	return !strncmp(name, want, len) && (!name[len] || !strcmp(name + len, ".abi0"));
}

static void go_take(struct go_attaching *g, const struct go_function *f)
{
	char name[GO_NAME_MAX];

	if (go_name(g->table, f->name, name) < 0 || strncmp(name, "runtime", 7))
		return;
	if (go_name_is(name, "runtime.systemstack"))
		g->systemstack = *f;
	else if (go_name_is(name, "runtime.systemstack_switch"))
		g->systemstack_switch = *f;
	else if (go_name_is(name, "runtime.nanotime1"))
		g->nanotime = *f;
	else if (go_name_is(name, "runtime.goexit"))
		g->goexit = *f;
	else if (go_name_is(name, "runtime.printcreatedby"))
		g->created = *f;
	else if (go_name_is(name, "runtime/pprof.runtime_setProfLabel"))
		g->set_labels = *f;
	else if (g->nr_begins < ARRAY_SIZE(g->begins) && (go_name_is(name, "runtime.newproc") || go_name_is(name, "runtime.rt0_go")))
		g->begins[g->nr_begins++] = *f;
}

static int go_attach_functions(struct go_attaching *g)
{
	struct go_function f;

	for (uint32_t i = 0; i < g->table->count; i++)
		if (go_function_at(g->table, i, &f) == 0)
			go_take(g, &f);
	return g->systemstack.end && g->systemstack_switch.end ? 0 : -ENOENT;
}

/* --- their code --- */

void go_code_read(struct binary *b, const struct go_function *f, struct go_code *ret)
{
	ssize_t n;

	ret->vaddr = f->start;
	n = binary_read_vaddr(b, f->start, ret->byte, MIN(f->end - f->start, sizeof(ret->byte)));
	ret->len = n > 0 ? (uint32_t)n : 0;
}

int32_t go_code_s32(const struct go_code *c, uint32_t at)
{
	int32_t v;

	memcpy(&v, c->byte + at, sizeof(v));
	return v;
}

int64_t go_code_find(const struct go_code *c, uint32_t from, const uint8_t *bytes, uint32_t len, uint32_t more)
{
	for (uint32_t at = from; at + len + more <= c->len; at++)
		if (!memcmp(c->byte + at, bytes, len))
			return at;
	return -1;
}

/*
 * The offset of g from the thread's storage base. mov %fs:disp32,%rax in a program at a fixed address. Otherwise
 * mov $imm32,%rcx or mov disp(%rip),%rcx, a word that the loader filled in; then mov %fs:(%rcx),%rax.
 */
static int go_attach_tls(struct go_attaching *g, const struct go_code *c)
{
	int64_t at = GO_FIND(c, 0, 4, 0x64, 0x48, 0x8b, 0x04, 0x25);
	uint64_t slot, at_tls;

	if (at >= 0) {
		g->walk->base = (uint64_t)(int64_t)go_code_s32(c, (uint32_t)at + 5);
		return 0;
	}
	at = GO_FIND(c, 0, 0, 0x64, 0x48, 0x8b, 0x01);
	if (at < 7)
		return -ENOTSUP;
	at -= 7;
	if (GO_FIND(c, (uint32_t)at, 4, 0x48, 0xc7, 0xc1) == at) {
		g->walk->base = (uint64_t)(int64_t)go_code_s32(c, (uint32_t)at + 3);
		return 0;
	}
	if (GO_FIND(c, (uint32_t)at, 4, 0x48, 0x8b, 0x0d) != at)
		return -ENOTSUP;
	slot = g->file->bias + c->vaddr + (uint64_t)at + 7 + (uint64_t)(int64_t)go_code_s32(c, (uint32_t)at + 3);
	if (memory_u64(g->m, slot, &at_tls) < 0)
		return -EFAULT;
	g->walk->base = at_tls;
	return 0;
}

/* mov 48(%rax),%rbx: g.m; the last cmp disp32(%rbx),%rax before the stack is left: m.curg, after gsignal and g0. */
static int go_attach_curg(struct go_attaching *g, const struct go_code *c)
{
	int64_t at = GO_FIND(c, 0, 0, 0x48, 0x8b, 0x58, GO_M);

	at = at < 0 ? at : GO_FIND(c, (uint32_t)at, 4, 0x48, 0x3b, 0x83);
	if (at < 0)
		return -ENOTSUP;
	g->walk->chain[0] = 0;
	g->walk->chain[1] = GO_M;
	g->walk->chain[2] = go_code_s32(c, (uint32_t)at + 3);
	g->walk->nr_chain = 3;
	return 0;
}

/*
 * mov 56(%rax),%rsp; mov g.sched.bp(%rax),%rbp: back on the goroutine's stack, since Go 1.21. Since then each frame that
 * calls has a frame record, too.
 */
static void go_attach_frames(struct go_attaching *g, const struct go_code *c)
{
	int64_t at = GO_FIND(c, 0, 4, 0x48, 0x8b, 0x60, GO_SCHED_SP, 0x48, 0x8b, 0x68);

	g->walk->far = GO_FAR;
	if (at < 0 || c->byte[at + 7] <= GO_SCHED_SP || c->byte[at + 7] > INT8_MAX)
		return;
	g->walk->held.frame = c->byte[at + 7];
	g->walk->far = GO_FAR_RECORDS;
}

/* mov -8(%rdx),%rcx; mov %rcx,m.vdsoPC(%rbx); mov %rdx,m.vdsoSP(%rbx); without, such a stack stays cut. */
static void go_attach_vdso(struct go_attaching *g, const struct go_code *c)
{
	int64_t at = GO_FIND(c, 0, 14, 0x48, 0x8b, 0x4a, 0xf8, 0x48, 0x89, 0x8b);
	int32_t offset;

	if (at < 0 || GO_FIND(c, (uint32_t)at + 11, 4, 0x48, 0x89, 0x93) != at + 11)
		return;
	offset = go_code_s32(c, (uint32_t)at + 14);
	if (offset <= 0 || offset > INT16_MAX)
		return;
	g->walk->via = GO_M;
	g->walk->via_at = (int16_t)offset;
	g->walk->held.home = 1; /* m.g0, its first word */
}

/* --- attaching --- */

static void go_plan(struct otp_walk *w)
{
	w->start = OTP_WALK_TLS;
	w->step = OTP_WALK_STACK;
	w->root_at = w->nr_chain;
	w->root_keep = GO_BIT(GO_SCHED_SP) | GO_BIT(GO_SCHED_PC) | GO_BIT(GO_SCHED_G);
	w->low = GO_STACK_LO;
	w->first.at = GO_SCHED_SP;
	w->last.at = GO_STACK_HI;
	w->stride = OTP_WALK_BLOCK;
	w->keep = (1u << OTP_WALK_WORDS) - 1;
	w->frames_max = OTP_WALK_BLOCKS;
}

/* "go1.21.13" at the build information's 33rd byte since Go 1.18; only shown. */
static void go_attach_version(const struct go_attaching *g, char version[RUNTIME_VERSION_MAX])
{
	static const char *const formats[GO_FORMAT_NR] = {"1.2 to 1.15", "1.16, 1.17", "1.18, 1.19", "1.20 or later"};
	const struct binary_section *s = binary_section(g->file->binary, ".go.buildinfo");
	char text[33 + RUNTIME_VERSION_MAX] = "";
	uint8_t len;

	snprintf(version, RUNTIME_VERSION_MAX, "%s", formats[g->table->format]);
	if (!s || binary_read_vaddr(g->file->binary, s->addr, text, sizeof(text)) != sizeof(text))
		return;
	len = (uint8_t)text[32];
	if (len > 2 && len < RUNTIME_VERSION_MAX && !strncmp(text + 33, "go", 2))
		snprintf(version, RUNTIME_VERSION_MAX, "%.*s", len - 2, text + 35);
}

static int go_attach_code(struct go_attaching *g)
{
	struct go_code c;
	int r;

	go_code_read(g->file->binary, &g->systemstack, &c);
	go_attach_frames(g, &c);
	r = go_attach_tls(g, &c);
	if (r == 0)
		r = go_attach_curg(g, &c);
	if (r == -ENOTSUP)
		snprintf(g->why, RUNTIME_WHY_MAX, "how this build finds its goroutine is not known");
	if (r < 0 || !g->nanotime.end)
		return r;
	go_code_read(g->file->binary, &g->nanotime, &c);
	go_attach_vdso(g, &c);
	return 0;
}

static int go_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		     char why[RUNTIME_WHY_MAX])
{
	const struct go_table *t = go_table_get(file->binary);
	struct go_attaching g = {.file = file, .m = m, .table = t, .walk = &ret->walk, .why = why};
	int r = t ? 0 : -ENOENT;

	if (r == 0 && file->binary->machine != EM_X86_64) {
		snprintf(why, RUNTIME_WHY_MAX, "stacks of goroutines are followed on x86-64 only");
		return -ENOTSUP;
	}
	r = r < 0 ? r : go_attach_functions(&g);
	r = r < 0 ? r : go_attach_code(&g);
	if (r < 0)
		return r;
	go_plan(&ret->walk);
	go_attach_version(&g, ret->version);
	ret->param[GO_SWITCH] = file->bias + g.systemstack_switch.start;
	ret->param[GO_SWITCH_END] = file->bias + g.systemstack_switch.end;
	go_attach_context(&g, ret);
	return 0;
}

/* --- what was copied --- */

static int go_stack(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root, struct runtime_stack *ret)
{
	if (nr_root != GO_ROOT_WORDS + 1)
		return -ENOENT;
	*ret = (struct runtime_stack){.id = root[GO_ROOT_G]};
	/* In the vDSO, the race detector and signal handlers registers lead back; what is in sched is of an earlier switch. */
	if (root[GO_ROOT_SAVED] & OTP_WALK_VIA)
		return 0;
	ret->pc = root[GO_ROOT_PC];
	ret->sp = root[GO_ROOT_SP];
	ret->stand_in = ret->pc >= a->param[GO_SWITCH] && ret->pc < a->param[GO_SWITCH_END];
	return 0;
}

static bool go_holds(struct binary *b)
{
	return go_table_get(b);
}

static const char *const go_markers[] = {NULL};

const struct runtime_ops runtime_go = {
	.name = "go",
	.label = "Go",
	.kind = KIND_GO,
	.markers = go_markers,
	.holds = go_holds,
	.attach = go_attach,
	.stack = go_stack,
	.context = go_context,
	.is_end = go_is_end,
};
