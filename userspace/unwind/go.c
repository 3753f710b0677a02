// SPDX-License-Identifier: Apache-2.0
#include "unwind/go.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/go_table.h"
#include "unwind/rules.h"

/* What the function does to stacks; its frames may look like any other's. */
enum go_role {
	GO_PLAIN,
	GO_ROOT,     /* it has no caller */
	GO_LEAVES,   /* what it calls runs on another stack, and returns to it */
	GO_ABANDONS, /* likewise, and never returns: a root, as to Go's own tracebacks */
	GO_GROWS,    /* likewise, but while what it called keeps the goroutine it is not: so it is to the runtime's profiles */
	GO_INJECTED, /* a signal's handler has put the call in: runtime/signal_amd64.go, pushCall, and preparePanic */
	GO_CALLBACK, /* it returns to where its goroutine's stack was left, which is a function's first instruction as well */
};

/*
 * By name, for Go before 1.17, whose table has no flags, and numbers for some of these only; and where they say too much:
 * cgocallback leaves a copy of its frame on the stack that it goes to, mstart may have a C library's thread below it.
 */
static const struct {
	const char *name;
	enum go_role role;
} go_roles[] = {
	{"runtime.cgocallback", GO_CALLBACK}, {"runtime.cgocallback_gofunc", GO_CALLBACK}, {"runtime.mstart", GO_PLAIN},
	{"runtime.goexit", GO_ROOT},	   {"runtime.rt0_go", GO_ROOT},		     {"runtime.systemstack", GO_LEAVES},
	{"runtime.asmcgocall", GO_LEAVES}, {"runtime.mcall", GO_ABANDONS},	     {"runtime.morestack", GO_GROWS},
	{"runtime.nanotime1", GO_LEAVES},  {"runtime.walltime1", GO_LEAVES},	     {"runtime.sigpanic", GO_INJECTED},
	{"runtime.asyncPreempt", GO_INJECTED}, {"runtime.debugCallV1", GO_INJECTED}, {"runtime.debugCallV2", GO_INJECTED},
};

/* A name of the table may have a suffix: .abi0 */
static bool go_is_named(const char *name, const char *want)
{
	size_t len = strlen(want);

	return !strncmp(name, want, len) && (!name[len] || name[len] == '.');
}

/* FuncIDWrapper of Go 1.16 and 1.17 (runtime/symtab.go). */
#define GO_1_16_WRAPPER 22

/*
 * What leaves its stack writes the stack pointer. A function of its name that does not was made by the compiler, and calls
 * it by the other of Go's two calling conventions.
 */
static bool go_is_wrapper(const struct go_table *t, const struct go_function *f)
{
	return !(f->flags & GO_WRITES_SP) && (t->format > GO_1_16 || (t->format == GO_1_16 && f->id == GO_1_16_WRAPPER));
}

static bool go_is_switching(enum go_role role)
{
	return role == GO_LEAVES || role == GO_ABANDONS || role == GO_GROWS;
}

static enum go_role go_named_role(const struct go_table *t, const struct go_function *f, enum go_role role)
{
	return go_is_switching(role) && go_is_wrapper(t, f) ? GO_PLAIN : role;
}

static enum go_role go_role(const struct go_table *t, const struct go_function *f)
{
	char name[GO_NAME_MAX];

	if (!f->id && !f->flags && t->format > GO_1_16)
		return GO_PLAIN;
	if (go_name(t, f->name, name) == 0)
		for (size_t i = 0; i < ARRAY_SIZE(go_roles); i++)
			if (go_is_named(name, go_roles[i].name))
				return go_named_role(t, f, go_roles[i].role);
	/* The signal handler is a top frame as well; beyond it is the code that it interrupted. */
	if (f->flags & GO_TOP_FRAME && f->id)
		return GO_ROOT;
	return f->flags & GO_WRITES_SP ? GO_LEAVES : GO_PLAIN;
}

static bool go_is_called_from(const struct arch *arch, struct binary *b, uint64_t vaddr)
{
	struct code code;

	code_read(b, vaddr, &code);
	return arch->after_call(&code);
}

static int go_plain_row(const struct arch *arch, const struct go_table *t, const struct go_function *f, uint64_t vaddr,
			struct row *ret)
{
	uint64_t moved = 0;
	struct go_steps s;
	int r;

	go_steps_init(&s, t, f, f->sp);
	while ((r = go_steps_next(&s)) > 0) {
		if (!moved && s.value)
			moved = s.start;
		if (vaddr >= s.end)
			continue;
		/* Below: it took its return address off the stack (rawVforkSyscall). */
		if (s.value < 0 || s.value > INT32_MAX)
			return -ENOENT;
		arch->go(t->binary, vaddr, moved, s.value, ret);
		return 0;
	}
	return r < 0 ? r : -ENOENT;
}

/* Finds in the code up to vaddr where the function keeps the stack pointer that it came with: from where on, and where. */
typedef uint64_t go_find_fn(struct binary *b, uint64_t start, uint64_t vaddr, uint8_t *ret_where);

/* The row of where it was kept. -ENOENT: it is not. */
static int go_row_where_kept(const struct arch *arch, const struct go_table *t, const struct go_function *f, uint64_t vaddr,
			     go_find_fn *find, uint8_t *ret_where, struct row *ret)
{
	const uint64_t at = find ? find(t->binary, f->start, vaddr, ret_where) : 0;

	return at ? go_plain_row(arch, t, f, at, ret) : -ENOENT;
}

/*
 * By the register in which the function keeps the stack pointer that it came with, from there to its end (nanotime1, which
 * calls the vDSO): whether it is on the other stack already, still or no more.
 */
static int go_kept_row(const struct arch *arch, const struct go_table *t, const struct go_function *f, uint64_t vaddr,
		       struct row *ret)
{
	uint8_t reg = 0;
	int r = go_row_where_kept(arch, t, f, vaddr, arch->go_keeps_sp, &reg, ret);

	if (r < 0)
		return r;
	ret->cfa_reg = reg;
	ret->flags |= ROW_RETURNS;
	return 0;
}

/*
 * By the word in which the function saves the stack pointer that it came with, which it aligned: asmcgocall, where the
 * thread is on a stack of its own already and leaves none.
 */
static int go_saved_row(const struct arch *arch, const struct go_table *t, const struct go_function *f, uint64_t vaddr,
			struct row *ret)
{
	uint8_t offset = 0;
	int r = go_row_where_kept(arch, t, f, vaddr, arch->go_saves_sp, &offset, ret);

	if (r < 0)
		return r;
	ret->cfa_kind = CFA_DEREF;
	ret->cfa_add = (int32_t)ret->cfa_n;
	ret->cfa_n = offset;
	return 0;
}

/*
 * Its instructions tell on which stack it is; where they do not, it has left its own where it calls, and elsewhere that is a
 * guess.
 */
static uint16_t go_switching_flags(const struct arch *arch, const struct go_table *t, const struct go_function *f,
				   enum go_role role, uint64_t vaddr)
{
	enum go_stack stack = role == GO_LEAVES && arch->go_stack ? arch->go_stack(t->binary, f->start, f->end, vaddr) :
								    GO_STACK_UNKNOWN;

	if (stack == GO_STACK_OWN)
		return 0;
	return stack == GO_STACK_OTHER || go_is_called_from(arch, t->binary, vaddr) ? ROW_SWITCHED : ROW_GUESS;
}

/* Within a function that leaves its stack, the depth is that of the stack that it came on. */
static int go_switching_row(const struct arch *arch, const struct go_table *t, const struct go_function *f,
			    enum go_role role, uint64_t vaddr, struct row *ret)
{
	uint16_t flags;
	int r;

	if (role == GO_LEAVES && (go_kept_row(arch, t, f, vaddr, ret) == 0 || go_saved_row(arch, t, f, vaddr, ret) == 0))
		return 0;
	r = go_plain_row(arch, t, f, vaddr, ret);
	if (r < 0)
		return r;
	flags = go_switching_flags(arch, t, f, role, vaddr);
	if (flags != ROW_SWITCHED || role == GO_LEAVES) {
		ret->flags |= flags;
		return 0;
	}
	ret->reg[ret->ra].kind = RULE_UNDEFINED;
	ret->flags |= role == GO_GROWS ? ROW_PROVES_BELOW : ROW_PROVES;
	return 0;
}

bool go_stands_in(struct binary *b, uint64_t vaddr, uint64_t saved)
{
	const struct go_table *t = go_table_get(b);
	char name[GO_NAME_MAX];
	struct go_function f;

	if (!t || go_function_find(t, saved, &f) < 0 || go_name(t, f.name, name) < 0)
		return false;
	return go_is_named(name, "runtime.systemstack_switch") ||
	       (go_is_named(name, "runtime.asmcgocall") && vaddr >= f.start && vaddr < f.end);
}

int go_row(const struct arch *arch, struct binary *b, uint64_t vaddr, struct row *ret)
{
	const struct go_table *t = go_table_get(b);
	struct go_function f;
	enum go_role role;
	int r = t ? go_function_find(t, vaddr, &f) : -ENOENT;

	/* Host code that Go's linker took in has no depths. */
	if (r < 0 || !f.sp)
		return r < 0 ? r : -ENOENT;
	role = go_role(t, &f);
	if (go_is_switching(role))
		return go_switching_row(arch, t, &f, role, vaddr, ret);
	r = go_plain_row(arch, t, &f, vaddr, ret);
	if (r == 0 && role == GO_ROOT)
		ret->reg[ret->ra].kind = RULE_UNDEFINED;
	if (r == 0 && (role == GO_INJECTED || role == GO_CALLBACK))
		ret->flags |= ROW_INJECTED;
	return r;
}
