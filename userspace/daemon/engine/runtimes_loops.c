// SPDX-License-Identifier: Apache-2.0
/*
 * The native functions in which a runtime runs interpreted code, and the code
 * that it has compiled: which frames of a native stack stand for interpreted
 * ones, and where unwinding finds its way out of compiled code.
 */
#include "daemon/engine/runtimes_state.h"

#include "base/cleanup.h"
#include "unwind/cfi.h"

/* Compiled code, beside the functions of the loop that entered it: to merging it is one of them. */
#define LOOPS_COMPILED RUNTIME_LOOPS
#define LOOPS_INNER    (RUNTIME_LOOPS + 1)

/* The function around an address of the process, by unwind tables. */
static bool loops_extent(const struct space *space, uint64_t pc, struct loop_range *ret)
{
	const struct mapping *m = space_find(space, pc);
	uint64_t vaddr;
	struct fde f;

	if (!m || m->file->state != MAPPED_READY || !m->file->binary)
		return false;
	vaddr = mapping_address(m, pc);
	if (cfi_find(m->file->binary, vaddr, &f) < 0)
		return false;
	*ret = (struct loop_range){pc - (vaddr - f.start), pc + (f.end - vaddr)};
	return true;
}

static void loops_seek(struct attachment *a, const struct space *space)
{
	if (a->loops_sought)
		return;
	a->loops_sought = true;
	for (uint32_t i = 0; i < a->found.nr_loops; i++)
		if (loops_extent(space, a->found.loop[i], &a->loops[a->nr_loops]))
			a->nr_loops++;
	if (a->found.resume)
		loops_extent(space, a->found.resume, &a->resume);
}

static bool loops_contain(const struct attachment *a, uint64_t pc, uint8_t *ret_function)
{
	for (uint32_t i = 0; i < a->nr_loops; i++)
		if (pc >= a->loops[i].start && pc < a->loops[i].end) {
			*ret_function = (uint8_t)i;
			return true;
		}
	return false;
}

static struct merge_native loops_of_frame(const struct runtimes *r, const struct runtime_process *p,
					  const struct unwind_stack *stack, uint32_t index)
{
	const struct frame *f = &stack->frames[index];
	uint64_t pc = f->pc - (f->flags & FRAME_CALLER ? 1 : 0);
	struct merge_native n = {.runtime = p == r->stack_of ? runtimes_wrapped(r, index) : 0};

	n.wraps = n.runtime;
	if (n.wraps)
		return n;
	for (uint32_t i = 0; i < p->nr; i++) {
		const struct attachment *a = p->slot[i].found;

		if (a && pc >= a->resume.start && pc < a->resume.end) {
			n.resumes = (uint8_t)(i + 1);
			break;
		}
		if (a && loops_contain(a, pc, &n.function)) {
			n.runtime = (uint8_t)(i + 1);
			break;
		}
	}
	return n;
}

/* Code from which unwinding went through a gate. */
static bool loops_is_compiled(const struct unwind_stack *stack, uint32_t i)
{
	const struct frame *f = &stack->frames[i];

	return f->map && mapped_file_is_generated(f->map->file) && i + 1 < stack->count &&
	       f[1].guess == FRAME_BY_SCAN && f[1].map && !mapped_file_is_generated(f[1].map->file);
}

/* Code that runs in the loop's own frame, or is called by it, and has nothing of its own to show. */
static void loops_fold(struct runtimes *r, const struct unwind_stack *stack, uint32_t i, struct merge_native *to)
{
	uint8_t loop = to[i + 1].runtime;

	if (runtimes_inner(r, i) == loop)
		to[i] = (struct merge_native){.runtime = loop, .function = LOOPS_INNER};
	else if (runtimes_folded(r, stack, i) == loop)
		to[i] = (struct merge_native){.runtime = loop, .function = LOOPS_COMPILED};
}

void runtimes_loops(struct runtimes *r, const struct process *p, const struct unwind_stack *stack,
		    struct merge_native *to)
{
	const struct runtime_process *have = p ? runtimes_peek(r, p) : NULL;

	for (uint32_t i = 0; have && i < have->nr; i++)
		if (have->slot[i].found)
			loops_seek(have->slot[i].found, p->space);
	for (uint32_t i = stack->count; i-- > 0;) {
		to[i] = have ? loops_of_frame(r, have, stack, i) : (struct merge_native){0};
		if (have && loops_is_compiled(stack, i) && to[i + 1].runtime)
			to[i] = (struct merge_native){.runtime = to[i + 1].runtime, .function = LOOPS_COMPILED};
		if (have && have == r->stack_of && i + 1 < stack->count && to[i + 1].runtime)
			loops_fold(r, stack, i, to);
	}
}

bool runtimes_is_compiled(const struct runtime_slot *s, const struct unwind_stack *stack)
{
	uint8_t function;

	return stack->count && loops_is_compiled(stack, 0) &&
	       loops_contain(s->found, stack->frames[1].pc - 1, &function);
}

static uint32_t loops_gates(struct attachment *a, const struct space *space, struct unwind_gate *to)
{
	uint32_t n;

	if (a->found.compiled == RUNTIME_NOT_COMPILED)
		return 0;
	loops_seek(a, space);
	n = a->found.compiled == RUNTIME_JUMPED ? MIN(a->nr_loops, 1u) : a->nr_loops;
	for (uint32_t i = 0; i < n; i++)
		to[i] = (struct unwind_gate){.start = a->loops[i].start, .end = a->loops[i].end,
					     .jumps = a->found.compiled == RUNTIME_JUMPED,
					     .shared = a->found.compiled_is_shared};
	return n;
}

uint32_t runtimes_gates(const struct runtimes *r, const struct process *p, struct unwind_gate to[RUNTIME_GATES])
{
	const struct runtime_process *have = p ? runtimes_peek(r, p) : NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; have && i < have->nr; i++)
		if (have->slot[i].found)
			n += loops_gates(have->slot[i].found, p->space, &to[n]);
	return n;
}
