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

/* --- the key --- */

/* mov key(%rip),%edi before a call or jump to pthread_getspecific; 0: there is none. */
static uint64_t key_operand(const uint8_t *code, size_t len, uint64_t pc)
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

static int key_read(const struct runtime_file *file, struct memory *m, uint32_t *ret)
{
	uint8_t code[CODE_BYTES];
	struct runtime_symbol s;
	uint64_t at;

	if (runtime_symbol(file->binary, "tsrm_get_ls_cache", &s) < 0 ||
	    binary_read_vaddr(file->binary, s.value, code, sizeof(code)) != sizeof(code))
		return -ENOENT;
	at = key_operand(code, sizeof(code), file->bias + s.value);
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
	if (offset > INT32_MAX / 2 || file->binary->machine != EM_X86_64 || key_read(file, m, &key) < 0 ||
	    thread_key_chain(file->binary, key, w) < 0) {
		snprintf(why, RUNTIME_WHY_MAX, "the storage of threads in this build of PHP %s is not known", l->version);
		return -ENOTSUP;
	}
	w->root_at = w->nr_chain;
	w->root_off = (int32_t)offset + l->before_throw;
	w->chain[w->nr_chain++] = (int32_t)offset + l->current;
	return 0;
}
