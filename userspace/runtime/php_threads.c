// SPDX-License-Identifier: Apache-2.0
/*
 * Thread-safe PHP: each thread has its own executor_globals, at a fixed offset in
 * a block that pthread_getspecific returns for a key of PHP's own. The key is a
 * static variable, read by tsrm_get_ls_cache.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/php.h"
#include "runtime/thread_key.h"

#define CODE_BYTES 48
#define ARM64_RET  0xd65f03c0u

/* --- the key --- */

/* mov key(%rip),%edi before a call or jump to pthread_getspecific; 0: there is none. */
static uint64_t key_operand_x86_64(const uint8_t *code, size_t len, uint64_t pc)
{
	int32_t offset;

	for (size_t i = 0; i + 7 <= len && code[i] != 0xc3; i++) {
		if (code[i] != 0x8b || code[i + 1] != 0x3d || (code[i + 6] != 0xe9 && code[i + 6] != 0xe8))
			continue;
		memcpy(&offset, code + i + 2, sizeof(offset));
		return pc + i + 6 + (uint64_t)(int64_t)offset;
	}
	return 0;
}

/* adrp and ldr of the key into w0, by any register, before a call or jump to pthread_getspecific; 0: there is none. */
static uint64_t key_operand_arm64(const uint8_t *code, size_t len, uint64_t pc)
{
	uint64_t page = 0;
	uint32_t insn, base = 32;

	for (size_t i = 0; i + 4 <= len; i += 4) {
		memcpy(&insn, code + i, sizeof(insn));
		if (insn == ARM64_RET)
			break;
		if ((insn & 0x9f000000) == 0x90000000) { /* adrp */
			int64_t pages = (int64_t)((uint64_t)(insn >> 5 & 0x7ffff) << 45) >> 43 | (insn >> 29 & 3);

			base = insn & 31;
			page = ((pc + i) & ~0xfffULL) + (uint64_t)pages * 4096;
		} else if ((insn & 0xffc0001f) == 0xb9400000 && (insn >> 5 & 31) == base) { /* ldr w0, [base, #] */
			return page + 4 * (insn >> 10 & 0xfff);
		}
	}
	return 0;
}

static int key_read(const struct runtime_file *file, struct memory *m, uint32_t *ret)
{
	uint64_t (*find)(const uint8_t *code, size_t len, uint64_t pc);
	uint8_t code[CODE_BYTES];
	struct runtime_symbol s;
	uint64_t at;

	if (runtime_symbol(file->binary, "tsrm_get_ls_cache", &s) < 0 ||
	    binary_read_vaddr(file->binary, s.value, code, sizeof(code)) != sizeof(code))
		return -ENOENT;
	find = file->binary->machine == EM_AARCH64 ? key_operand_arm64 : key_operand_x86_64;
	at = find(code, sizeof(code), file->bias + s.value);
	return at ? memory_u32(m, at, ret) : -ENOENT;
}

/* --- the plan --- */

int php_plan_threads(const struct runtime_file *file, struct memory *m, const struct php_layout *l, struct otp_walk *w,
		     char why[RUNTIME_WHY_MAX])
{
	uint64_t at, offset;
	uint32_t key;
	int r = php_address(file, m, "executor_globals_offset", &at);

	if (r == 0)
		r = memory_u64(m, at, &offset);
	if (r < 0)
		return r;
	if (!offset) /* the globals are not allocated yet */
		return -EAGAIN;
	if (offset > INT32_MAX / 2 || key_read(file, m, &key) < 0 || thread_key_chain(file, m, key, w) < 0) {
		snprintf(why, RUNTIME_WHY_MAX, "the storage of threads in this build of PHP %s is not known", l->version);
		return -ENOTSUP;
	}
	w->root_at = w->nr_chain;
	w->root_off = (int32_t)offset + l->before_throw;
	w->chain[w->nr_chain++] = (int32_t)offset + l->current;
	return 0;
}
