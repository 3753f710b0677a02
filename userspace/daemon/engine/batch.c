// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ring/ring.h"

struct batch_chunk {
	const struct otp_chunk *rec;
	uint32_t next; /* index + 1 */
	uint32_t reserved;
};

void batch_init(struct batch *b)
{
	*b = (struct batch){0};
	buf_init_secret(&b->base, 0);
	buf_init_secret(&b->stack, 0);
}

void batch_done(struct batch *b)
{
	buf_done(&b->items);
	buf_done(&b->chunks);
	buf_done(&b->base);
	buf_done(&b->sideband);
	buf_done(&b->stack);
	map_done(&b->open);
}

void batch_reset(struct batch *b)
{
	buf_reset(&b->items);
	buf_reset(&b->chunks);
	buf_reset(&b->sideband);
	map_clear(&b->open);
	b->sideband_lost = 0;
	b->bad = 0;
}

static struct batch_item *batch_item_at(struct batch *b, size_t i)
{
	return (struct batch_item *)b->items.data + i;
}

static int batch_add_item(struct batch *b, struct batch_item item)
{
	item.order = batch_count(b);
	buf_add(&b->items, &item, sizeof(item));
	return b->items.failed ? -ENOMEM : 0;
}

/* Any later record of a CPU closes its open sample, since chunks of one sample are consecutive. */
static void batch_close_sample(struct batch *b, uint32_t cpu)
{
	uint64_t *open = map_find(&b->open, cpu);

	if (!open)
		return;
	batch_item_at(b, *open)->chunk_lost = true;
	map_remove(&b->open, cpu);
}

static int batch_add_sample(struct batch *b, const struct otp_sample *s)
{
	int r;

	if (s->rec.len < sizeof(*s))
		return -EBADMSG;
	batch_close_sample(b, s->cpu);
	r = batch_add_item(b, (struct batch_item){.time_ns = s->time_ns, .kind = BATCH_SAMPLE, .at = (uintptr_t)s});
	if (r == 0 && s->mode & OTP_MODE_CHUNKED)
		r = map_put(&b->open, s->cpu, batch_count(b) - 1);
	return r;
}

static const struct otp_sample *batch_open_sample(struct batch *b, const struct otp_chunk *c, size_t *ret_item)
{
	const uint64_t *open = map_find(&b->open, c->cpu);
	const struct otp_sample *s;

	if (!open)
		return NULL;
	*ret_item = *open;
	s = (const void *)(uintptr_t)batch_item_at(b, *open)->at;
	return s->seq == c->seq && s->origin == c->origin ? s : NULL;
}

static int batch_add_chunk(struct batch *b, const struct otp_chunk *c)
{
	struct batch_chunk entry = {.rec = c};
	struct batch_chunk *all;
	struct batch_item *it;
	size_t item;

	if (c->rec.len < sizeof(*c) || c->len > c->rec.len - sizeof(*c))
		return -EBADMSG;
	if (!batch_open_sample(b, c, &item))
		return 0; /* its head was lost, or was in the last batch, which cut the stack */
	buf_add(&b->chunks, &entry, sizeof(entry));
	if (b->chunks.failed)
		return -ENOMEM;
	all = (struct batch_chunk *)b->chunks.data;
	it = batch_item_at(b, item);
	if (it->chunk)
		all[it->last_chunk - 1].next = (uint32_t)(b->chunks.len / sizeof(entry));
	else
		it->chunk = (uint32_t)(b->chunks.len / sizeof(entry));
	it->last_chunk = (uint32_t)(b->chunks.len / sizeof(entry));
	if (c->rec.flags & OTP_CHUNK_LAST)
		map_remove(&b->open, c->cpu);
	return 0;
}

/* Process life that the sampler reports: a side-band record behind a head. */
static int batch_add_event(struct batch *b, const struct otp_life *e)
{
	if (e->rec.len < sizeof(*e) + sizeof(uint64_t))
		return -EBADMSG;
	batch_add_sideband(b, e + 1, e->rec.len - sizeof(*e));
	return 0;
}

int batch_add_ring(struct batch *b, const struct otp_rec *rec)
{
	int r = 0;

	if (rec->type == OTP_REC_SAMPLE)
		r = batch_add_sample(b, (const void *)rec);
	else if (rec->type == OTP_REC_CHUNK)
		r = batch_add_chunk(b, (const void *)rec);
	else if (rec->type == OTP_REC_LOSS && rec->len >= sizeof(struct otp_loss))
		batch_close_sample(b, ((const struct otp_loss *)rec)->cpu);
	else if (rec->type == OTP_REC_LIFE)
		r = batch_add_event(b, (const void *)rec);
	/* Records of other types are of a newer sampler, and skipped. */
	if (r == -EBADMSG)
		b->bad++;
	return r;
}

void batch_add_sideband(struct batch *b, const void *record, size_t len)
{
	struct proc_event ev;
	size_t room = ALIGN_UP(len, 8);
	void *to;

	if (proc_event_decode(record, len, &ev) < 0)
		return;
	if (b->sideband.len + room > BATCH_SIDEBAND_MAX || !(to = buf_reserve(&b->sideband, room))) {
		b->sideband_lost++;
		return;
	}
	memcpy(to, record, len);
	if (batch_add_item(b, (struct batch_item){.time_ns = ev.time_ns, .kind = BATCH_EVENT,
						  .at = b->sideband.len, .size = (uint32_t)len}) < 0)
		b->sideband_lost++;
	else
		buf_commit(&b->sideband, room);
}

const struct otp_rec *batch_incomplete(const struct batch *b)
{
	const struct batch_item *first = NULL;

	map_for_each(&b->open, s) {
		const struct batch_item *it = batch_item(b, s->value);

		if (!first || it->order < first->order)
			first = it;
	}
	return first ? (const struct otp_rec *)(uintptr_t)first->at : NULL;
}

/* Of the same time, an event precedes the sample, which it explains. */
static int batch_compare_items(const void *a, const void *b)
{
	const struct batch_item *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void batch_sort(struct batch *b)
{
	map_for_each(&b->open, s)
		batch_item_at(b, s->value)->chunk_lost = true;
	if (batch_count(b))
		qsort(b->items.data, batch_count(b), sizeof(struct batch_item), batch_compare_items);
}

/* Each base chunk continues the last one. */
static void batch_join_base(struct batch *b, const struct otp_chunk *c, struct sample *s)
{
	if (!b->base.len)
		s->base_addr = c->addr;
	if (c->addr != s->base_addr + b->base.len || b->base.len + c->len > OTP_BASE_LIMIT)
		return;
	buf_add(&b->base, c + 1, c->len);
	if (b->base.failed)
		return;
	s->base = b->base.data;
	s->base_len = (uint32_t)b->base.len;
}

/* Chunks continue the head's bytes without a gap; the first gap ends the stack. */
static void batch_join_chunks(struct batch *b, const struct batch_item *it, struct sample *s)
{
	const struct batch_chunk *all = (const struct batch_chunk *)b->chunks.data;
	uint32_t expected = 0;

	buf_reset(&b->base);
	buf_reset(&b->stack);
	buf_add(&b->stack, s->stack, s->stack_len);
	for (uint32_t i = it->chunk; i; i = all[i - 1].next) {
		const struct otp_chunk *c = all[i - 1].rec;

		if (c->index != expected++) {
			s->chunk_lost = true;
			break;
		}
		if (c->rec.flags & OTP_CHUNK_HOLES)
			s->head.mode |= OTP_MODE_HOLES;
		if (c->rec.flags & OTP_CHUNK_BASE) {
			batch_join_base(b, c, s);
			continue;
		}
		if (c->addr != s->stack_addr + b->stack.len ||
		    b->stack.len + c->len > OTP_STACK_LIMIT) {
			s->chunk_lost = true;
			break;
		}
		buf_add(&b->stack, c + 1, c->len);
		if (c->rec.flags & OTP_CHUNK_SHORT)
			s->head.mode |= OTP_MODE_SHORT;
	}
	if (b->stack.failed) {
		s->chunk_lost = true;
		return;
	}
	s->stack = b->stack.data;
	s->stack_len = (uint32_t)b->stack.len;
}

static uint32_t batch_arch_regs(uint16_t arch)
{
	switch (arch) {
	case OTP_ARCH_X86_64:
		return OTP_REGS_X86_64;
	case OTP_ARCH_ARM64:
		return OTP_REGS_ARM64;
	default:
		return 0;
	}
}

/* Whether all of the section is there, and no more than a sampler writes. */
static bool batch_walk_is_whole(const struct otp_walked *w, uint32_t len)
{
	return len >= sizeof(*w) && w->generation && w->plan < OTP_WALK_PLANS && w->end < OTP_WALK_END_NR &&
	       w->frames <= OTP_WALK_FRAMES && w->root_words <= OTP_WALK_WORDS + OTP_WALK_ROOT_MORE && w->frame_words &&
	       w->frame_words <= OTP_WALK_FRAME_WORDS && len == sample_walk_bytes(w);
}

static int batch_find_walks(const struct otp_sample *head, struct sample *s)
{
	const struct otp_walked *w;
	uint32_t len, bytes = 0;

	for (uint32_t i = 0; (w = sample_section_nth(head, OTP_SEC_WALK, i, &len)); i++) {
		bytes += (uint32_t)sizeof(struct otp_section) + len;
		if (i >= OTP_WALK_PLANS || !batch_walk_is_whole(w, len) || s->walks[w->plan] || bytes > OTP_WALK_BYTES)
			return -EBADMSG;
		s->walks[w->plan] = w;
	}
	return 0;
}

int batch_sample(struct batch *b, const struct batch_item *it, struct sample *ret)
{
	const struct otp_sample *head = (const void *)(uintptr_t)it->at;
	struct sample s = {.head = *head, .chunk_lost = it->chunk_lost, .value = 1};
	const struct otp_ustack *stack, *base;
	const struct otp_value *value;
	const struct otp_regs *regs;
	uint32_t len;

	/* A thread chooses its name, which may lack the NUL. */
	s.head.comm[OTP_COMM_LEN - 1] = '\0';
	regs = sample_section(head, OTP_SEC_REGS, &len);
	if (regs) {
		if (!batch_arch_regs(head->arch) ||
	    len < sizeof(*regs) + batch_arch_regs(head->arch) * sizeof(uint64_t))
			return -EBADMSG;
		s.valid = regs->valid;
		s.reg = (const uint64_t *)regs->reg;
	}
	value = sample_section(head, OTP_SEC_VALUE, &len);
	if (value && len >= sizeof(*value))
		s.value = value->value;
	s.kernel = sample_section(head, OTP_SEC_KSTACK, &len);
	s.nr_kernel = s.kernel ? MIN(len / (uint32_t)sizeof(uint64_t), (uint32_t)OTP_KSTACK_MAX) : 0;
	base = sample_section(head, OTP_SEC_UBASE, &len);
	if (base && len >= sizeof(*base)) {
		s.base_addr = base->addr;
		s.base = (const uint8_t *)(base + 1);
		s.base_len = len - (uint32_t)sizeof(*base);
	}
	if (batch_find_walks(head, &s) < 0)
		return -EBADMSG;
	stack = sample_section(head, OTP_SEC_USTACK, &len);
	if (stack) {
		if (len < sizeof(*stack))
			return -EBADMSG;
		s.stack_addr = stack->addr;
		s.stack = (const uint8_t *)(stack + 1);
		s.stack_len = len - (uint32_t)sizeof(*stack);
		if (it->chunk)
			batch_join_chunks(b, it, &s);
	}
	*ret = s;
	return 0;
}

const void *batch_event_bytes(const struct batch *b, const struct batch_item *it)
{
	return b->sideband.data + it->at;
}

int batch_event(const struct batch *b, const struct batch_item *it, struct proc_event *ret)
{
	return proc_event_decode(batch_event_bytes(b, it), it->size, ret);
}
