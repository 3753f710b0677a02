// SPDX-License-Identifier: Apache-2.0
/*
 * What a decoder may look at when it attaches: words of the sample in which the
 * runtime was met. Where a runtime's state lies on the heap, and only registers
 * and frames of its functions lead there, one of these words is the way.
 */
#include <string.h>

#include "base/cleanup.h"
#include "daemon/engine/runtimes_state.h"

#define SEEN_LOWEST  0x10000u
#define SEEN_BITS    47
#define SEEN_STACK   (16u << 20) /* above the stack pointer: the stack itself */
#define SEEN_COPY    (32u << 10) /* bytes of the stack that are looked at */

static bool seen_has(const struct runtime_seen *s, uint64_t word)
{
	for (uint32_t i = 0; i < s->nr; i++)
		if (s->word[i] == word)
			return true;
	return false;
}

static void seen_add(struct runtime_seen *s, uint64_t word)
{
	if (s->nr < RUNTIME_SEEN && word >= SEEN_LOWEST && !(word >> SEEN_BITS) && word % 8 == 0 && !seen_has(s, word))
		s->word[s->nr++] = word;
}

/* Neither code nor stack. */
static bool seen_may_be_data(const struct runtimes *r, uint64_t word)
{
	const struct sample *s = r->stack_sample;

	return word - s->stack_addr >= SEEN_STACK && !space_find(r->stack_process->space, word);
}

static void seen_add_sample(const struct runtimes *r, struct runtime_seen *ret)
{
	const struct sample *s = r->stack_sample;
	uint64_t word;

	for (uint32_t i = 0; s->reg && i < OTP_REGS_X86_64; i++)
		if (s->valid >> i & 1 && seen_may_be_data(r, s->reg[i]))
			seen_add(ret, s->reg[i]);
	for (uint32_t i = 0; i + 8 <= MIN(s->stack_len, SEEN_COPY) && ret->nr < RUNTIME_SEEN; i += 8) {
		memcpy(&word, s->stack + i, sizeof(word));
		if (seen_may_be_data(r, word))
			seen_add(ret, word);
	}
}

void runtimes_see(struct runtimes *r, const struct runtime_slot *s, struct runtime_seen *ret)
{
	*ret = (struct runtime_seen){0};
	for (uint32_t i = 0; s->found && i < RUNTIME_PARAMS; i++)
		seen_add(ret, s->found->found.param[i]);
	if (r->stack_process && r->stack_process->pid == s->of->pid && r->stack_sample)
		seen_add_sample(r, ret);
}
