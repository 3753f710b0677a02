// SPDX-License-Identifier: Apache-2.0
/*
 * Thread-safe PHP: each thread has its own executor_globals, at a fixed offset in
 * a block that pthread_getspecific returns for a key of PHP's own. The key is a
 * static variable, read by tsrm_get_ls_cache; where the C library keeps what
 * belongs to a key is a matter of its ABI, unchanged for many years.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/php.h"

#define CODE_BYTES   48
#define NEEDED_MAX   256 /* entries of .dynamic */
#define GLIBC_FIRST  0x310 /* struct pthread.specific_1stblock, from the thread pointer */
#define GLIBC_BLOCKS 0x510 /* struct pthread.specific */
#define GLIBC_BLOCK  32u   /* keys of a block; each has a sequence number, then the value */
#define GLIBC_KEYS   1024u
#define MUSL_TSD     0x80 /* struct pthread.tsd */
#define MUSL_KEYS    128u

enum php_libc { LIBC_UNKNOWN, LIBC_GLIBC, LIBC_MUSL };

static enum php_libc libc_of_name(const char *name)
{
	if (strcmp(name, "libc.so.6") == 0)
		return LIBC_GLIBC;
	return strcmp(name, "libc.so") == 0 || strncmp(name, "libc.musl-", 10) == 0 ? LIBC_MUSL : LIBC_UNKNOWN;
}

static enum php_libc libc_of_entry(struct binary *b, const struct binary_section *strings, const Elf64_Dyn *d)
{
	char name[32] = "";

	if (d->d_tag != DT_NEEDED || d->d_un.d_val >= strings->size ||
	    binary_read(b, strings->offset + d->d_un.d_val, name, sizeof(name) - 1) <= 0)
		return LIBC_UNKNOWN;
	return libc_of_name(name);
}

/* By the libraries that the file needs, or in a static program by a function of each library's start. */
static enum php_libc libc_of(struct binary *b)
{
	const struct binary_section *dynamic = binary_section(b, ".dynamic"), *strings = binary_section(b, ".dynstr");
	enum php_libc libc = LIBC_UNKNOWN;
	struct runtime_symbol s;
	Elf64_Dyn d;

	for (uint64_t i = 0; dynamic && strings && libc == LIBC_UNKNOWN && i < NEEDED_MAX && i * sizeof(d) < dynamic->size; i++)
		if (binary_read(b, dynamic->offset + i * sizeof(d), &d, sizeof(d)) == sizeof(d))
			libc = libc_of_entry(b, strings, &d);
	if (libc == LIBC_UNKNOWN && runtime_symbol(b, "__libc_setup_tls", &s) == 0)
		return LIBC_GLIBC;
	if (libc == LIBC_UNKNOWN && runtime_symbol(b, "__init_tp", &s) == 0)
		return LIBC_MUSL;
	return libc;
}

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

static int chain_key(enum php_libc libc, uint32_t key, struct otp_walk *w)
{
	if (libc == LIBC_MUSL && key < MUSL_KEYS) {
		w->chain[w->nr_chain++] = MUSL_TSD;
		w->chain[w->nr_chain++] = (int32_t)(8 * key);
		return 0;
	}
	if (libc != LIBC_GLIBC || key >= GLIBC_KEYS)
		return -ENOTSUP;
	if (key < GLIBC_BLOCK) {
		w->chain[w->nr_chain++] = (int32_t)(GLIBC_FIRST + 16 * key + 8);
		return 0;
	}
	w->chain[w->nr_chain++] = (int32_t)(GLIBC_BLOCKS + 8 * (key / GLIBC_BLOCK));
	w->chain[w->nr_chain++] = (int32_t)(16 * (key % GLIBC_BLOCK) + 8);
	return 0;
}

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
	w->start = OTP_WALK_TLS;
	if (offset > INT32_MAX / 2 || file->binary->machine != EM_X86_64 || key_read(file, m, &key) < 0 ||
	    chain_key(libc_of(file->binary), key, w) < 0) {
		snprintf(why, RUNTIME_WHY_MAX, "the storage of threads in this build of PHP %s is not known", l->version);
		return -ENOTSUP;
	}
	w->root_at = w->nr_chain;
	w->root_off = (int32_t)offset + l->before_throw;
	w->chain[w->nr_chain++] = (int32_t)offset + l->current;
	return 0;
}
