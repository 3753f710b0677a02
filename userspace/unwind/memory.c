// SPDX-License-Identifier: Apache-2.0
/* The copied stack, and the reason why an address is not in it. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "unwind/cursor.h"

/* The reason why bytes after the end of the copy are missing. */
static enum unwind_end memory_why_missing(const struct cursor *c, uint64_t above)
{
	/* So far away is another stack, or a wrong address: no larger copy would contain it. */
	if (above > OTP_STACK_LIMIT)
		return UNWIND_UNREADABLE;
	if (c->in->chunk_lost)
		return UNWIND_CHUNK_LOST;
	return c->in->short_read ? UNWIND_UNREADABLE : UNWIND_SHORT;
}

#define HOLE 4096ULL

/* A page that was not copied is all zeros: one with other bytes was copied. */
static bool memory_in_hole(const uint8_t *copy, uint64_t copy_addr, uint32_t len, uint64_t addr)
{
	uint64_t start = MAX(ALIGN_DOWN(addr, HOLE), copy_addr) - copy_addr;
	uint64_t end = MIN(ALIGN_DOWN(addr, HOLE) + HOLE - copy_addr, (uint64_t)len);

	while (start < end && !copy[start])
		start++;
	return start == end;
}

static int memory_load_from(struct cursor *c, const uint8_t *copy, uint64_t copy_addr, uint32_t len, uint64_t addr,
			    uint64_t *ret)
{
	memcpy(ret, copy + (addr - copy_addr), 8);
	if (likely(!c->in->holes || *ret || !memory_in_hole(copy, copy_addr, len, addr)))
		return 0;
	c->fault = UNWIND_UNREADABLE;
	c->fault_addr = addr;
	return -EFAULT;
}

static bool memory_in_base(const struct unwind_input *in, uint64_t addr)
{
	return in->base_len >= 8 && addr >= in->base_addr && addr - in->base_addr <= in->base_len - 8;
}

/* A word of a frame record; NULL: there is none. */
static const uint64_t *memory_of_record(const struct unwind_other *o, uint64_t addr)
{
	const uint32_t n = array_count_up_to(o->records, o->nr_records, sizeof(*o->records),
					     offsetof(struct unwind_record, at), addr);
	const struct unwind_record *r = n ? &o->records[n - 1] : NULL;

	if (!r || (addr != r->at && addr != r->at + 8))
		return NULL;
	return addr == r->at ? &r->fp : &r->pc;
}

/* A word of the stack that was left; NULL: it was not copied. */
static const uint8_t *memory_of_other(const struct cursor *c, uint64_t addr)
{
	const struct unwind_other *o = c->in->other;

	if (o && o->len >= 8 && addr >= o->addr && addr - o->addr <= o->len - 8)
		return o->bytes + (addr - o->addr);
	if (o && o->far_len >= 8 && addr >= o->far_addr && addr - o->far_addr <= o->far_len - 8)
		return o->bytes + o->len + (addr - o->far_addr);
	return o && o->nr_records ? (const uint8_t *)memory_of_record(o, addr) : NULL;
}

bool cursor_in_other(const struct cursor *c, uint64_t addr)
{
	return memory_of_other(c, addr);
}

/* Beyond the copy of the other stack, but not so far that it is none of its own. */
static bool memory_beyond_other(const struct cursor *c, uint64_t addr)
{
	const struct unwind_other *o = c->in->other;

	return c->left && o->cut && addr >= o->addr + o->len && addr - o->addr - o->len < OTP_STACK_LIMIT;
}

static int memory_not_copied(struct cursor *c, uint64_t addr, uint64_t end)
{
	if (memory_beyond_other(c, addr)) {
		c->fault = UNWIND_SHORT;
		c->fault_addr = addr;
		return -EFAULT;
	}
	c->fault = addr < c->in->stack_addr ? UNWIND_UNREADABLE : memory_why_missing(c, end);
	c->fault_addr = addr;
	if (addr >= c->in->stack_addr && end <= OTP_STACK_LIMIT && end > c->reach.missed)
		c->reach.missed = end;
	return -EFAULT;
}

int cursor_load(struct cursor *c, uint64_t addr, uint64_t *ret)
{
	const struct unwind_input *in = c->in;
	uint64_t at = addr - in->stack_addr, end;
	const uint8_t *other;
	const struct unwind_part *part;

	if (unlikely(addr < in->stack_addr || __builtin_add_overflow(at, 8, &end) || end > in->stack_len)) {
		if (memory_in_base(in, addr)) {
			c->reach.base_low = MIN(c->reach.base_low, addr);
			return memory_load_from(c, in->base, in->base_addr, in->base_len, addr, ret);
		}
		other = memory_of_other(c, addr);
		if (other) {
			memcpy(ret, other, 8);
			return 0;
		}
		if ((part = frozen_part(c, addr))) {
			memcpy(ret, part->bytes + (addr - part->addr), 8);
			return 0;
		}
		return memory_not_copied(c, addr, addr < in->stack_addr ? 0 : at + 8);
	}
	if (end > c->reach.read)
		c->reach.read = end;
	return memory_load_from(c, in->stack, in->stack_addr, in->stack_len, addr, ret);
}

void cursor_report_used(const struct cursor *c)
{
	uint64_t base_end = c->in->base_addr + c->in->base_len;

	/* Both lie within OTP_STACK_LIMIT. */
	c->out->stack_read = (uint32_t)c->reach.read;
	c->out->stack_used = (uint32_t)MAX(c->reach.read, c->reach.missed);
	c->out->base_used = c->reach.base_low < base_end ? (uint32_t)(base_end - c->reach.base_low) : 0;
}

bool cursor_climbs(struct cursor *c, uint64_t cfa)
{
	if (cfa > c->low)
		return true;
	if (!c->left && cursor_in_other(c, cfa - 8) && !cursor_in_other(c, c->low)) {
		c->left = true;
		return true;
	}
	/* From a stack that was switched to, at whatever address, back to the thread's own. */
	if (c->based || !memory_in_base(c->in, cfa - 8) || memory_in_base(c->in, c->low))
		return false;
	c->based = true;
	return true;
}

int cursor_cut(struct cursor *c, enum unwind_end end)
{
	bool bytes = end == UNWIND_SHORT || end == UNWIND_UNREADABLE || end == UNWIND_CHUNK_LOST;

	c->out->end = end;
	c->out->fail_pc = c->reg[c->arch->pc];
	c->out->fail_addr = bytes ? c->fault_addr : 0;
	c->out->fail_in_other = bytes && memory_beyond_other(c, c->fault_addr);
	return 0;
}
