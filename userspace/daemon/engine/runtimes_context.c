// SPDX-License-Identifier: Apache-2.0
/*
 * What a sample has besides its frames, by a runtime's second walk: who created
 * its coroutine, and the labels of that, of which a decoder may have to name one;
 * or the frames that lie in the heap.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/engine/runtimes_state.h"
#include "process/go_table.h"
#include "unwind/arch.h"
#include "unwind/rules.h"

#define CONTEXT_PLAN (OTP_WALK_PLANS - 1)

/* Whose second walk a sample has. */
static struct runtime_slot *context_walked(struct runtimes *r, const struct process *p, const struct sample *s)
{
	const struct otp_walked *w = p ? s->walks[CONTEXT_PLAN] : NULL;
	struct runtime_process *of = w ? runtimes_of_walk(r, p, w->generation) : NULL;
	struct runtime_slot *slot = of ? runtimes_more(of) : NULL;

	return slot && w->step == slot->found->found.more.step ? slot : NULL;
}

static struct runtime_slot *context_slot(struct runtimes *r, const struct process *p, const struct sample *s)
{
	struct runtime_slot *slot = context_walked(r, p, s);

	return slot && slot->ops->context ? slot : NULL;
}

bool runtimes_is_context(struct runtimes *r, const struct process *p, const struct sample *s, uint32_t plan)
{
	return plan == CONTEXT_PLAN && context_walked(r, p, s);
}

static struct runtime_copied context_copied(const struct otp_walked *w)
{
	return (struct runtime_copied){
		.root = sample_walk_words(w),
		.nr_root = w->root_words,
		.frames = sample_walk_words(w) + w->root_words,
		.nr_frames = w->frames,
		.frame_words = w->frame_words,
		.cut = w->end != OTP_WALK_END_DONE && w->end != OTP_WALK_END_NO_ROOT,
	};
}

static void context_read(const struct runtime_slot *slot, const struct otp_walked *w, struct runtime_context *ret)
{
	const struct runtime_copied words = context_copied(w);

	*ret = (struct runtime_context){0};
	slot->ops->context(&slot->found->found, &words, ret);
}

/* The program's first goroutine was created by its start, which is nobody's go statement. */
static bool context_is_start(const struct go_table *t, const struct go_function *f)
{
	char name[GO_NAME_MAX];

	return go_name(t, f->name, name) < 0 || !strncmp(name, "runtime.rt0_go", 14);
}

/* The address that follows a call in a function of Go's. */
static bool context_is_go_statement(const struct arch *arch, struct binary *b, uint64_t vaddr)
{
	const struct go_table *t = go_table_get(b);
	struct go_function f;
	struct code code;

	if (!arch || !t || !vaddr || go_function_find(t, vaddr - 1, &f) < 0 || context_is_start(t, &f))
		return false;
	code_read(b, vaddr - 1, &code);
	return arch->after_call(&code);
}

static bool context_holds(struct runtimes *r, uint16_t arch, struct binary *b, uint64_t vaddr)
{
	struct context_checked *c = &r->checked[(vaddr ^ b->id) % CONTEXT_CHECKED];

	if (c->address != vaddr || c->binary != b->id)
		*c = (struct context_checked){.address = vaddr, .binary = b->id,
					      .holds = context_is_go_statement(arch_find(arch), b, vaddr)};
	return c->holds;
}

/* Of a stack that ends where its coroutine does. */
static void context_creator(struct runtimes *r, const struct runtime_slot *slot, const struct process *p,
			    const struct sample *s, const struct unwind_stack *stack, uint64_t pc, struct frame *ret)
{
	const struct mapping *m;

	if (!pc || !stack->count || !unwind_end_is_root(stack->end) ||
	    !slot->ops->is_end(&slot->found->found, stack->frames[stack->count - 1].pc))
		return;
	m = space_find(p->space, pc - 1);
	if (!m || m->file->state != MAPPED_READY || !m->file->binary ||
	    !context_holds(r, s->head.arch, m->file->binary, mapping_address(m, pc)))
		return;
	*ret = (struct frame){.kind = KIND_NATIVE, .flags = FRAME_CALLER | FRAME_CREATOR, .pc = pc, .map = m};
}

int runtimes_want_context(struct runtimes *r, const struct process *p, const struct sample *s, bool final)
{
	struct runtime_slot *slot = context_slot(r, p, s);
	struct runtime_context c;

	if (!slot || !slot->ops->named)
		return 0;
	context_read(slot, s->walks[CONTEXT_PLAN], &c);
	runtimes_want(r, slot, &c.named, 1);
	return !final && runtimes_is_pending(slot, &c.named, 1) ? -EAGAIN : 0;
}

/* A text, cut before a character of UTF-8 that does not fit. */
static void context_cut(char *to, size_t size, const struct str *text)
{
	size_t n = MIN(text->len, size - 1);

	while (n && n < text->len && ((uint8_t)text->s[n] & 0xc0) == 0x80)
		n--;
	memcpy(to, text->s, n);
	to[n] = '\0';
}

/* The label that a decoder named. */
static void context_add_named(struct runtime_slot *slot, struct runtime_context *c)
{
	const struct function *fn = function_after(functions_find(&slot->functions, &c->named), slot->functions_after_ns);
	struct runtime_label *l = &c->label[c->nr_labels];

	if (!fn || c->nr_labels == RUNTIME_LABELS) {
		c->labels_left++;
		return;
	}
	snprintf(l->key, sizeof(l->key), "%s", slot->ops->named);
	context_cut(l->value, sizeof(l->value), fn->name);
	l->is_name = true;
	c->nr_labels++;
}

void runtimes_context(struct runtimes *r, const struct process *p, const struct sample *s, const struct unwind_stack *stack,
		      struct runtimes_context *ret)
{
	struct runtime_slot *slot = context_slot(r, p, s);
	struct runtime_context c;

	*ret = (struct runtimes_context){0};
	r->labels = str_put(r->labels);
	if (!slot)
		return;
	context_read(slot, s->walks[CONTEXT_PLAN], &c);
	context_creator(r, slot, p, s, stack, c.creator, &ret->creator);
	if (c.named.key)
		context_add_named(slot, &c);
	if (c.nr_labels || c.labels_left)
		ret->labels = r->labels = labels_take(&slot->labels, &c, &r->cfg.ledger->labels_left);
}

/* --- frames in the heap --- */

_Static_assert(UNWIND_PARTS >= RUNTIME_PARTS, "each part has its place");

/* The blocks of a part, one behind the other. Returns the bytes. */
static uint32_t context_join(const struct otp_walked *w, const struct runtime_part *p, uint8_t *to)
{
	const uint64_t *block = sample_walk_words(w) + w->root_words + (size_t)p->first * w->frame_words;

	for (uint32_t i = 0; i < p->nr; i++, block += w->frame_words)
		memcpy(to + (size_t)i * OTP_WALK_BLOCK, block + 1, OTP_WALK_BLOCK);
	return p->nr * OTP_WALK_BLOCK;
}

static void context_put_parts(struct runtimes *r, const struct otp_walked *w, const struct runtime_frozen *from,
			      struct unwind_frozen *ret)
{
	const uint64_t *frames = sample_walk_words(w) + w->root_words;
	uint8_t *to = (uint8_t *)r->blocks;

	*ret = (struct unwind_frozen){.nr = from->nr, .low = from->low, .high = from->high, .back_pc = from->back_pc,
				      .back_sp = from->back_sp};
	for (uint32_t i = 0; i < from->nr; i++) {
		const struct runtime_part *p = &from->part[i];

		ret->part[i] = (struct unwind_part){.addr = frames[(size_t)p->first * w->frame_words] & OTP_WALK_ADDRESS,
						    .bytes = to, .len = context_join(w, p, to), .pc = p->pc, .sp = p->sp,
						    .fp = p->fp};
		to += ret->part[i].len;
	}
}

bool runtimes_frozen(struct runtimes *r, const struct process *p, const struct sample *s, struct unwind_frozen *ret)
{
	struct runtime_slot *slot = context_walked(r, p, s);
	const struct otp_walked *w = s->walks[CONTEXT_PLAN];
	struct runtime_frozen frozen = {0};
	struct runtime_copied copied;

	if (!slot || !slot->ops->frozen || w->step != OTP_WALK_CHUNKS || w->frame_words != OTP_WALK_WORDS + 1)
		return false;
	copied = context_copied(w);
	if (slot->ops->frozen(&slot->found->found, &copied, &frozen) || !frozen.nr)
		return false;
	context_put_parts(r, w, &frozen, ret);
	return true;
}
