// SPDX-License-Identifier: Apache-2.0
#include "runtime/x86_scan.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define PIECE 4096u

struct x86_scan { x86_scan_fn *take; void *ctx; bool enough; };

#define NUMBER_LEFT 5u

static bool x86_scan_is_left(const struct x86_insn *i, const uint8_t *next, uint32_t len)
{
	static const uint8_t zeros[NUMBER_LEFT];

	return i->kind == INSN_JUMP && i->len == 5 && len >= NUMBER_LEFT && !memcmp(next, zeros, NUMBER_LEFT);
}

/* Whole instructions of a piece that lies at an offset; the bytes of it that they are. */
static uint32_t x86_scan_piece(struct x86_scan *s, const uint8_t *code, uint32_t len, uint32_t offset, bool last)
{
	struct x86_insn insn;
	uint32_t at = 0;

	while (at < len && !s->enough && (last || len - at >= X86_INSN_MAX)) {
		if (x86_decode(code + at, len - at, &insn) || !insn.len) {
			at++;
			continue;
		}
		at += insn.len;
		s->enough = !s->take(s->ctx, &insn, offset + at);
		at += x86_scan_is_left(&insn, code + at, len - at) ? NUMBER_LEFT : 0;
	}
	return at;
}

int x86_scan(struct memory *m, uint64_t code, uint32_t from, uint32_t size, x86_scan_fn *take, void *ctx)
{
	struct x86_scan s = {.take = take, .ctx = ctx};
	uint8_t bytes[PIECE];

	while (from < size && !s.enough) {
		uint32_t len = MIN(size - from, PIECE);
		int err = memory_read(m, code + from, bytes, len);

		if (err)
			return err;
		from += x86_scan_piece(&s, bytes, len, from, from + len == size);
	}
	return s.enough ? -ECANCELED : 0;
}
