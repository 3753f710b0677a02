// SPDX-License-Identifier: Apache-2.0
#include "unwind/code_follow.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"

static bool code_window_covers(const struct code_window *w, uint64_t in)
{
	return in < w->len && w->len - in >= w->arch->insn_max;
}

int code_window_insn(struct code_window *w, uint64_t at, struct insn *ret)
{
	uint64_t in = at - w->at;
	ssize_t n;

	if (!code_window_covers(w, in)) {
		n = binary_read_vaddr(w->binary, at, w->byte, sizeof(w->byte));
		if (n <= 0)
			return -ENOENT;
		w->at = at;
		w->len = (size_t)n;
		in = 0;
	}
	return w->arch->decode(w->byte + in, w->len - in, ret) < 0 ? -ENOENT : 0;
}

void code_blocks_begin(struct code_blocks *b)
{
	b->nr = 0;
	memset(b->slots, 0, sizeof(b->slots));
}

int code_blocks_add(struct code_blocks *b, uint64_t at)
{
	size_t i = (size_t)hash_u64(at ^ hash_seed) % CODE_SLOTS;

	while (b->slots[i] && b->at[b->slots[i] - 1] != at)
		i = (i + 1) % CODE_SLOTS;
	if (b->slots[i])
		return -EEXIST;
	if (b->nr == CODE_BLOCKS)
		return -ENOSPC;
	b->at[b->nr++] = at;
	b->slots[i] = b->nr;
	return b->nr - 1;
}
