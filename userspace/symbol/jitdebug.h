/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source positions in a jitdump: the entries of one JIT_CODE_DEBUG_INFO record.
 *
 * Called by symbol/jit.c, one thread. Pure: bytes in, a place out; the bytes
 * are hostile. Cost: one pass over the entries, JIT_DEBUG_MAX bytes at most.
 * Formats: Linux, tools/perf/Documentation/jitdump-specification.txt; V8 12,
 * src/diagnostics/perf-jit.cc (address, column).
 */
#ifndef OTP_SYMBOL_JITDEBUG_H
#define OTP_SYMBOL_JITDEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JIT_DEBUG_MAX (64u << 10) /* bytes of a record's entries that are read; places beyond have none */

struct jit_code {
	uint64_t start, size;
	bool of_v8; /* its entries may be in V8's variant: shifted addresses, columns for discriminators */
};

struct jit_place {
	const char *file; /* points into the entries */
	size_t file_len;
	uint32_t line, column; /* 0: unknown */
};

/*
 * The place of pc, from nr entries. -ENOENT: none covers pc, or the entry that
 * does may lie beyond len; -EBADMSG: the entries contradict the code that they
 * describe, and none of them counts.
 */
int jit_place_find(const uint8_t *entries, size_t len, uint64_t nr, const struct jit_code *code, uint64_t pc,
		   struct jit_place *ret);

#endif
