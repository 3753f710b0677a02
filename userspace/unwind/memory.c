// SPDX-License-Identifier: Apache-2.0
/*
 * The copied stack, and what it means when an address is not in it.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/cursor.h"

/* What is missing at the end of the copy has a reason that the copy knows. */
static enum unwind_end why_missing(const struct cursor *c, uint64_t above)
{
	/* Far away lies another stack, or nonsense: no larger copy would hold it. */
	if (above > OTP_STACK_LIMIT)
		return UNWIND_UNREADABLE;
	if (c->in->chunk_lost)
		return UNWIND_CHUNK_LOST;
	return c->in->short_read ? UNWIND_UNREADABLE : UNWIND_SHORT;
}

int cursor_load(struct cursor *c, uint64_t addr, uint64_t *ret)
{
	const struct unwind_input *in = c->in;
	uint64_t at = addr - in->stack_addr, end;

	if (unlikely(addr < in->stack_addr || __builtin_add_overflow(at, 8, &end))) {
		c->fault = UNWIND_UNREADABLE;
		return -EFAULT;
	}
	if (unlikely(end > in->stack_len)) {
		c->fault = why_missing(c, end);
		if (end <= OTP_STACK_LIMIT && end > c->need)
			c->need = end;
		return -EFAULT;
	}
	if (end > c->need)
		c->need = end;
	memcpy(ret, in->stack + at, 8);
	return 0;
}

uint32_t cursor_used(const struct cursor *c)
{
	return (uint32_t)MIN(c->need, (uint64_t)UINT32_MAX);
}

int cursor_cut(struct cursor *c, enum unwind_end end)
{
	c->out->end = end;
	c->out->fail_pc = c->reg[c->arch->pc];
	return 0;
}
