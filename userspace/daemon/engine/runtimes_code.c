// SPDX-License-Identifier: Apache-2.0
/*
 * Code of runtimes on the native stack of a sample: which region a frame is in,
 * by its decoder; how the frame is left, by its runtime; the functions of it.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "daemon/decode.h"
#include "daemon/engine/runtimes_state.h"

#define AHEAD_MAX (DECODE_FRAMES - 1)

/* --- places --- */

/*
 * Where pc lies for the decoder: code that was generated, where it is; that of the runtime's own file, where the file is
 * mapped first. 0: neither.
 */
static uint64_t runtimes_place(const struct runtimes *r, const struct runtime_slot *s, uint64_t pc)
{
	const struct mapping *m = space_find(r->stack_process->space, pc);
	const struct runtime_attached *a = s->found ? &s->found->found : NULL;
	uint64_t vaddr;

	if (!m || !m->file->binary || mapping_is_generated(m, pc))
		return pc;
	if (!a || !a->code_end || !binary_is_same_file(m->file->binary, s->binary))
		return 0;
	vaddr = mapping_address(m, pc);
	if (vaddr < a->code_vaddr || vaddr - a->code_vaddr >= a->code_end - a->code_start)
		return 0;
	return vaddr - a->code_vaddr + a->code_start;
}

/* --- regions --- */

/* The sample whose stack is unwound, as a slot sees it. */
static struct codes_when runtimes_when(const struct runtimes *r, const struct runtime_slot *s)
{
	return (struct codes_when){.time_ns = r->stack_time_ns, .epoch = s->code_epoch,
				   .stamp = s->stamp, .bound = s->code_bound,
				   .ran_ns = runtimes_ran_ns(s), .begins = runtimes_epoch_begins(r, s),
				   .waited = r->stack_has_waited};
}

/* A table that is full begins anew. */
static void runtimes_keep_codes(struct runtime_slot *s)
{
	if (s->codes.count >= CODES_MAX)
		codes_done(&s->codes);
}

/* Whether no code was found at an address a moment ago. A word of a stack is not asked for again so soon. */
static bool runtimes_is_in_vain(const struct runtimes *r, const struct runtime_slot *s, uint64_t pc)
{
	const struct code_entry *e = codes_find(&s->codes, pc);

	return e && !e->code && e->seen_ns && r->stack_time_ns < e->seen_ns + CODES_TRUST_NS;
}

/*
 * The callers' regions are asked for with the leaf's, lest each waits for the one before: a word of the stack that points
 * into the same mapping is most likely a return address, and else its region is of no use, or of use later.
 */
static uint32_t runtimes_ask_ahead(struct runtimes *r, struct runtime_slot *s, uint64_t pc, struct runtime_frame *to)
{
	const struct runtime_attached *a = s->found ? &s->found->found : NULL;
	const struct mapping *m = space_find(r->stack_process->space, pc);
	bool brought = a && pc >= a->code_start && pc < a->code_end;
	uint64_t word, start = brought ? a->code_start : (m ? m->start : 0), end = brought ? a->code_end : (m ? m->end : 0);
	const struct codes_when when = runtimes_when(r, s);
	const struct sample *sample = r->stack_sample;
	uint32_t n = 0;

	for (uint32_t i = 0; i + 8 <= sample->stack_len && n < AHEAD_MAX; i += 8) {
		memcpy(&word, sample->stack + i, sizeof(word));
		if (word > start && word <= end && !runtimes_is_in_vain(r, s, word - 1) &&
		    codes_want(&s->codes, word - 1, when, r->now_ns, &to[n]))
			n++;
	}
	return n;
}

static void runtimes_ask_code(struct runtimes *r, struct runtime_slot *s, uint64_t pc)
{
	struct runtime_frame question[1 + AHEAD_MAX];
	uint32_t n, taken;

	if (!runtimes_decoder(s) || !decoder_is_attached(s->decoder))
		return;
	runtimes_keep_codes(s);
	if (!codes_want(&s->codes, pc, runtimes_when(r, s), r->now_ns, &question[0]))
		return;
	n = 1 + runtimes_ask_ahead(r, s, pc, &question[1]);
	taken = (uint32_t)decoders_decode(s->decoder, question, n);
	for (uint32_t i = taken; i < n; i++)
		codes_unask(&s->codes, question[i].key);
}

static bool runtimes_code_holds(struct runtimes *r, struct runtime_slot *s, uint64_t pc, struct code_entry **ret)
{
	const struct codes_when when = runtimes_when(r, s);

	*ret = codes_find(&s->codes, pc);
	if (!codes_hold(&s->codes, *ret, when))
		return false;
	codes_run(*ret, when);
	return true;
}

static int runtimes_slot_code_at(struct runtimes *r, struct runtime_slot *s, uint64_t pc, struct code_entry **ret)
{
	if (runtimes_code_holds(r, s, pc, ret))
		return 0;
	/* In a replay the answer arrives during the call. */
	runtimes_ask_code(r, s, pc);
	if (runtimes_code_holds(r, s, pc, ret))
		return 0;
	if (*ret ? (*ret)->pending : s->decoder && !decoder_is_attached(s->decoder))
		return -EAGAIN;
	return -ENOENT;
}

int runtimes_code_at(struct runtimes *r, uint64_t pc, struct runtime_slot **ret_slot, struct code_entry **ret)
{
	int err = -ENOENT;

	for (uint32_t i = 0; r->stack_of && i < r->stack_of->nr; i++) {
		struct runtime_slot *s = &r->stack_of->slot[i];
		uint64_t place;
		int one;

		if (!s->ops->code || s->state == SLOT_REFUSED)
			continue;
		place = s->state == SLOT_ASKED ? pc : runtimes_place(r, s, pc);
		if (!place)
			continue;
		one = s->state == SLOT_ASKED ? -EAGAIN : runtimes_slot_code_at(r, s, place, ret);
		*ret_slot = s;
		if (!one)
			return 0;
		if (one == -EAGAIN)
			err = one;
	}
	return err;
}

/* --- steps --- */

/* A frame in a known region; those of a former attempt at this stack are forgotten. */
static struct own_frame *runtimes_add_own(struct runtimes *r, uint32_t index)
{
	while (r->nr_own && r->own[r->nr_own - 1].index >= index)
		r->nr_own--;
	r->own[r->nr_own] = (struct own_frame){.index = index};
	return &r->own[r->nr_own++];
}

struct loading { struct runtimes *r; const struct unwind_code_frame *f; };

static int runtimes_load(void *ctx, uint64_t addr, uint64_t *ret)
{
	const struct loading *l = ctx;

	if (l->r->nr_loaded < RUNTIMES_LOADED_MAX)
		l->r->loaded[l->r->nr_loaded++] = addr;
	return l->f->load(l->f->ctx, addr, ret);
}

static int runtimes_step_out(struct runtimes *r, struct runtime_slot *s, const struct code_entry *e,
			     const struct unwind_code_frame *f, struct unwind_code_step *ret)
{
	struct loading loading = {.r = r, .f = f};
	const uint64_t place = runtimes_place(r, s, f->pc - !f->exact) + !f->exact;
	const struct runtime_place at = {.pc = place, .moved = f->pc - place, .exact = f->exact, .arch = f->arch,
					 .valid = f->valid, .reg = f->reg, .more = e->more, .left_sp = r->left_sp,
					 .left_low = r->left_low, .left_none = r->left_none,
					 .leads_to_heap = f->leads_to_heap, .in_heap = f->in_heap, .load = runtimes_load, .ctx = &loading};
	struct own_frame *own = runtimes_add_own(r, f->index);
	struct runtime_step step = {0};
	int err = s->ops->step(&s->found->found, e->code, &at, &step);

	if (!f->index)
		r->loaded_regs = s->ops->registers;
	own->frame = step.own;
	own->place = err ? 0 : step.place;
	own->inner = step.flags & RUNTIME_STEP_INNER ? (uint8_t)(s - r->stack_of->slot + 1) : 0;
	own->wraps = step.flags & RUNTIME_STEP_WRAPS ? (uint8_t)(s - r->stack_of->slot + 1) : 0;
	own->data = f->data ? (uint8_t)(s - r->stack_of->slot + 1) : 0;
	own->loop = !err && step.flags & RUNTIME_STEP_LOOP;
	*ret = (struct unwind_code_step){.pc = step.pc, .sp = step.sp, .fp = step.fp, .cfa = step.cfa,
					 .flags = (step.flags & RUNTIME_STEP_FP ? UNWIND_CODE_FP : 0) |
						  (step.flags & RUNTIME_STEP_ROOT ? UNWIND_CODE_ROOT : 0) |
						  (step.flags & RUNTIME_STEP_SAME ? UNWIND_CODE_SAME : 0) |
						  (step.flags & RUNTIME_STEP_FROZEN ? UNWIND_CODE_FROZEN : 0) |
						  (step.flags & RUNTIME_STEP_MOVES ? UNWIND_CODE_MOVES : 0) |
						  (step.flags & RUNTIME_STEP_LEFT_OUT ? UNWIND_CODE_LEFT_OUT : 0) |
						  (step.flags & RUNTIME_STEP_DATA ? UNWIND_CODE_DATA : 0)};
	r->data_of = s;
	return err;
}

/* Of code that is interpreted, the callers are known even where it is not. */
static int runtimes_step_unknown(struct runtimes *r, const struct unwind_code_frame *f, struct unwind_code_step *ret)
{
	struct runtime_code unknown = {0};
	const struct code_entry e = {.code = &unknown};

	return runtimes_step_out(r, r->data_of, &e, f, ret);
}

/*
 * Whether code there has something else in the frame pointer's register, or leaves it to its caller. Of a runtime that has
 * not been attached to, it is not known where its code lies: any that was generated may be.
 */
static bool runtimes_slot_lacks_fp(const struct runtime_slot *s, uint64_t pc, bool generated)
{
	if (s->state == SLOT_REFUSED)
		return false;
	if (s->ops->leaves_fp && generated)
		return true;
	if (!s->ops->lacks_fp)
		return false;
	return s->state == SLOT_ASKED ? generated : s->ops->lacks_fp(&s->found->found, pc);
}

static bool runtimes_lack_fp(const struct runtimes *r, uint64_t pc, bool generated)
{
	for (uint32_t i = 0; r->stack_of && i < r->stack_of->nr; i++)
		if (runtimes_slot_lacks_fp(&r->stack_of->slot[i], pc, generated))
			return true;
	return false;
}

static void runtimes_begin_in_code(struct runtimes *r)
{
	r->stack_is_code = true;
	for (uint32_t i = 0; r->stack_of && i < r->stack_of->nr; i++)
		runtimes_see_run(r, &r->stack_of->slot[i]);
}

static int runtimes_on_step(void *ctx, const struct unwind_code_frame *f, bool final, struct unwind_code_step *ret,
			    const struct mapping **ret_wait)
{
	struct runtimes *r = ctx;
	const struct mapping *m = space_find(r->stack_process->space, f->pc - !f->exact);
	const bool generated = !m || mapping_is_generated(m, f->pc - !f->exact);
	struct runtime_slot *s = NULL;
	struct code_entry *e = NULL;
	int err = 0;

	r->stack_has_waited |= final;
	if (!f->index)
		runtimes_begin_in_code(r);
	if (!generated && m->file->binary)
		runtimes_meet_brought(r, m);
	else
		err = runtimes_meet_library(r, ret_wait);
	if (!err)
		err = runtimes_code_at(r, f->pc - !f->exact, &s, &e);
	if (!err)
		err = runtimes_step_out(r, s, e, f, ret);
	if (err == -EAGAIN && final) {
		*ret_wait = NULL;
		err = -ENOENT;
	}
	if (err == -ENOENT && f->data)
		return runtimes_step_unknown(r, f, ret);
	return err == -ENOENT && runtimes_lack_fp(r, f->pc - !f->exact, generated) ? -ENODATA : err;
}

/* Code for which a runtime goes before its file's tables. */
static void runtimes_set_override(struct runtimes *r)
{
	static_assert(UNWIND_OVER_MAX >= OTP_WALK_PLANS, "a process has no more runtimes");

	for (uint32_t i = 0; r->stack_of && i < r->stack_of->nr; i++) {
		const struct runtime_slot *s = &r->stack_of->slot[i];

		if (s->state == SLOT_READY && s->found->found.code_has_tables)
			r->hook.over[r->hook.nr_over++] =
				(struct unwind_over){s->found->found.code_start, s->found->found.code_end};
	}
}

const struct unwind_code *runtimes_begin_stack(struct runtimes *r, const struct process *p, const struct sample *s,
					       uint64_t now_ns)
{
	r->nr_own = r->nr_loaded = 0;
	r->loaded_regs = 0;
	r->library_sought = 0;
	r->now_ns = now_ns;
	r->stack_sample = s;
	r->stack_time_ns = s->head.time_ns;
	r->stack_has_waited = r->stack_is_code = false;
	r->stack_process = p;
	r->stack_of = p && r->cfg.decoders ? runtimes_find(r, p) : NULL;
	for (uint32_t i = 0; r->stack_of && i < r->stack_of->nr; i++)
		runtimes_find_epoch(r, p, s, i);
	runtimes_renew_functions(r, s);
	r->walked = 0;
	r->hook = (struct unwind_code){.step = runtimes_on_step, .ctx = r, .owns = runtimes_has_code(r->stack_of)};
	runtimes_set_override(r);
	return p && r->cfg.decoders ? &r->hook : NULL;
}

bool runtimes_own_code(const struct runtimes *r)
{
	return r->hook.owns;
}

bool runtimes_read_code(const struct runtimes *r)
{
	for (uint32_t i = 0; r->stack_of && i < r->stack_of->nr; i++)
		if (runtimes_makes_code(&r->stack_of->slot[i]) && r->stack_of->slot[i].state == SLOT_READY)
			return true;
	return false;
}

const uint64_t *runtimes_loaded(const struct runtimes *r, uint32_t *ret_nr, uint64_t *ret_regs)
{
	*ret_nr = r->nr_loaded;
	*ret_regs = r->loaded_regs;
	return r->loaded;
}

/* --- what the frames stand for --- */

static bool runtimes_is_walked(const struct runtimes *r, const struct runtime_slot *s)
{
	return r->walked >> (s - r->stack_of->slot) & 1;
}

static const struct own_frame *runtimes_own(const struct runtimes *r, uint32_t index)
{
	uint32_t n = array_count_up_to(r->own, r->nr_own, sizeof(r->own[0]), offsetof(struct own_frame, index), index);

	return n && r->own[n - 1].index == index ? &r->own[n - 1] : NULL;
}

uint8_t runtimes_wrapped(const struct runtimes *r, uint32_t index)
{
	const struct own_frame *own = runtimes_own(r, index);

	return own ? own->wraps : 0;
}

uint8_t runtimes_inner(const struct runtimes *r, uint32_t index)
{
	const struct own_frame *own = runtimes_own(r, index);

	return own ? own->inner : 0;
}

bool runtimes_is_loop(const struct runtimes *r, uint32_t index)
{
	const struct own_frame *own = runtimes_own(r, index);

	return own && own->loop;
}

/* The functions at a place of a region, innermost first; those too far out are left out. */
static uint32_t runtimes_chain(const struct code_entry *e, const struct own_frame *own, const struct frame *f,
			       struct runtime_frame to[RUNTIMES_EXPANDED])
{
	const uint64_t pc = own->place ? own->place : f->pc;
	uint32_t node = runtime_code_node_at(e->code, e->rows, pc, f->flags & FRAME_CALLER), n = 0;

	for (; node != RUNTIME_NO_NODE && n < RUNTIMES_EXPANDED; n++) {
		to[n] = e->functions[e->nodes[node].function];
		to[n].position = e->nodes[node].position;
		node = e->nodes[node].outer ? e->nodes[node].outer - 1u : RUNTIME_NO_NODE;
	}
	return n;
}

/* Functions that are moved, and known by what is not, are not of one epoch, but of one heap. */
static void runtimes_set_epoch(const struct runtime_slot *s, struct runtime_frame *f)
{
	if (f->flags & RUNTIME_MOVED)
		f->cookie[RUNTIME_COOKIE_EPOCH] = s->moved;
	else if (s->ops->epoch && !s->ops->names_last)
		f->cookie[RUNTIME_COOKIE_EPOCH] = s->ops->moves ? s->epoch & RUNTIME_EPOCH_OF_HEAP : s->epoch;
}

/* The functions of a frame; *ret the region, where it is in one. */
static uint32_t runtimes_functions(struct runtimes *r, const struct own_frame *own, const struct frame *f,
				   struct runtime_frame to[RUNTIMES_EXPANDED], struct runtime_slot **ret_slot,
				   struct code_entry **ret)
{
	uint32_t n = 0;

	if (runtimes_code_at(r, f->pc - !!(f->flags & FRAME_CALLER), ret_slot, ret)) {
		*ret = NULL;
		return 0;
	}
	if (own->frame.key)
		to[n++] = own->frame;
	else
		n = runtimes_chain(*ret, own, f, to);
	for (uint32_t i = 0; i < n; i++)
		runtimes_set_epoch(*ret_slot, &to[i]);
	return n;
}

int runtimes_stack(struct runtimes *r, const struct unwind_stack *stack, bool final)
{
	struct runtime_frame wanted[RUNTIMES_EXPANDED];
	bool pending = false;

	for (uint32_t i = 0; i < r->nr_own && r->own[i].index < stack->count; i++) {
		struct runtime_slot *s;
		struct code_entry *e;
		uint32_t n = runtimes_functions(r, &r->own[i], &stack->frames[r->own[i].index], wanted, &s, &e);

		if (!n)
			continue;
		runtimes_want(r, s, wanted, n);
		pending |= runtimes_is_pending(s, wanted, n);
	}
	return pending && !final ? -EAGAIN : 0;
}

/* Whether a frame in code is known, by its functions or as that of the walk: then it is not shown as native code. */
static uint32_t runtimes_own_chain(struct runtimes *r, const struct unwind_stack *stack, uint32_t i,
				   struct runtime_frame to[RUNTIMES_EXPANDED], struct runtime_slot **ret_slot)
{
	const struct own_frame *own = runtimes_own(r, i);
	struct code_entry *e = NULL;

	return own ? runtimes_functions(r, own, &stack->frames[i], to, ret_slot, &e) : 0;
}

uint8_t runtimes_folded(struct runtimes *r, const struct unwind_stack *stack, uint32_t index)
{
	struct runtime_frame functions[RUNTIMES_EXPANDED];
	struct runtime_slot *s = NULL;
	uint32_t n = runtimes_own_chain(r, stack, index, functions, &s);
	bool folded = n == 1 && functions[0].flags & RUNTIME_WALKED && runtimes_is_walked(r, s);

	return folded ? (uint8_t)(s - r->stack_of->slot + 1) : 0;
}

uint32_t runtimes_walked_position(struct runtimes *r, const struct runtime_slot *of, const struct unwind_stack *stack)
{
	struct runtime_frame functions[RUNTIMES_EXPANDED];

	for (uint32_t i = 0; of->of == r->stack_of && i < r->nr_own && r->own[i].index < stack->count; i++) {
		struct runtime_slot *s = NULL;
		uint32_t n = runtimes_own_chain(r, stack, (uint32_t)r->own[i].index, functions, &s);

		if (n && s == of)
			return functions[n - 1].flags & RUNTIME_WALKED ? functions[n - 1].position : 0;
	}
	return 0;
}

/* Where the runtime has copied it from. */
void runtimes_set_original(struct runtimes *r, uint32_t i, struct frame *f)
{
	const bool caller = f->flags & FRAME_CALLER;
	const struct mapping *m;
	struct runtime_slot *s;
	struct code_entry *e;
	uint64_t pc;

	if (!runtimes_own(r, i) || runtimes_code_at(r, f->pc - caller, &s, &e) || !e->code->copy_of)
		return;
	pc = f->pc - e->code->start + e->code->copy_of;
	m = space_find(r->stack_process->space, pc - caller);
	if (!m || !m->file->binary || !binary_is_same_file(m->file->binary, s->binary))
		return;
	f->pc = pc;
	f->map = m;
}

static uint32_t runtimes_name_region(const struct runtime_slot *s, const struct code_entry *e, struct frame *to)
{
	if (!e->name)
		return 0;
	*to = (struct frame){.kind = e->code->flags & RUNTIME_CODE_IS_NATIVE ? KIND_NATIVE : (uint8_t)s->ops->kind,
			     .flags = FRAME_NAMED, .named_by = NAME_RUNTIME, .function = e->name};
	return 1;
}

uint32_t runtimes_expand(struct runtimes *r, const struct unwind_stack *stack, uint32_t i,
			 struct frame to[RUNTIMES_EXPANDED])
{
	const struct own_frame *own = runtimes_own(r, i);
	struct runtime_frame functions[RUNTIMES_EXPANDED];
	struct runtime_slot *s = NULL;
	struct code_entry *e = NULL;
	uint32_t n;

	if (!own)
		return 0;
	n = runtimes_functions(r, own, &stack->frames[i], functions, &s, &e);
	if (!n && !e && own->data) {
		runtimes_name(r, &r->stack_of->slot[own->data - 1], NULL, &(struct runtime_frame){0}, to);
		return 1;
	}
	if (!n)
		return e ? runtimes_name_region(s, e, to) : 0;
	if (n > 1 && functions[n - 1].flags & RUNTIME_WALKED && runtimes_is_walked(r, s))
		n--;
	for (uint32_t k = 0; k < n; k++)
		runtimes_name(r, s, functions_find(&s->functions, &functions[k]), &functions[k], &to[k]);
	return n;
}
