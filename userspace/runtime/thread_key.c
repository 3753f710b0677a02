// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_key.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define GLIBC_X86_64_BLOCKS 0x510 /* struct pthread: specific (glibc 2.28 to 2.42), behind specific_1stblock */
#define GLIBC_BLOCK_KEYS    32u	  /* each has a sequence number, then the value */
#define GLIBC_BLOCK	    (16 * (int32_t)GLIBC_BLOCK_KEYS)
#define GLIBC_KEYS	    1024u
#define GLIBC_ARM64_PIECE   0x100 /* specific_1stblock begins later in struct pthread: a piece less loses nothing */
#define GLIBC_ARM64_PIECES  12	  /* more than struct pthread has (0x6f0 to 0x820 bytes, glibc 2.31 to 2.42) */
#define GLIBC_X86_64_BLOCKS_OF_TLS 8  /* tcbhead_t: dtv (nptl, tls.h), a table by modules' numbers, with 16 bytes for each */
#define GLIBC_MODULES	    1024u
#define MUSL_X86_64_TSD	    0x80  /* struct pthread: tsd (musl 1.1.16 to 1.2.5) */
#define MUSL_ARM64_TSD	    (0x70 - 0xc8) /* the thread pointer is behind struct pthread */
#define MUSL_KEYS	    128u
#define NEEDED_MAX	  512u

enum thread_library { LIBRARY_UNKNOWN, LIBRARY_GLIBC, LIBRARY_MUSL };

static enum thread_library thread_library_of_name(const char *name)
{
	if (strcmp(name, "libc.so.6") == 0)
		return LIBRARY_GLIBC;
	return strcmp(name, "libc.so") == 0 || strncmp(name, "libc.musl-", 10) == 0 ? LIBRARY_MUSL : LIBRARY_UNKNOWN;
}

static enum thread_library thread_library_needed(struct binary *b, const struct binary_section *strings,
						 const Elf64_Dyn *d)
{
	char name[32] = "";

	if (d->d_tag != DT_NEEDED || d->d_un.d_val >= strings->size ||
	    binary_read(b, strings->offset + d->d_un.d_val, name, sizeof(name) - 1) <= 0)
		return LIBRARY_UNKNOWN;
	return thread_library_of_name(name);
}

/* A static program: by a function of each library's start. */
static enum thread_library thread_library_inside(struct binary *b)
{
	struct runtime_symbol s;

	if (runtime_symbol(b, "__libc_setup_tls", &s) == 0)
		return LIBRARY_GLIBC;
	return runtime_symbol(b, "__init_tp", &s) == 0 ? LIBRARY_MUSL : LIBRARY_UNKNOWN;
}

static enum thread_library thread_library(struct binary *b)
{
	const struct binary_section *dynamic = binary_section(b, ".dynamic"), *strings = binary_section(b, ".dynstr");
	enum thread_library found = LIBRARY_UNKNOWN;
	Elf64_Dyn d;

	for (uint64_t i = 0; dynamic && strings && i < MIN(dynamic->size / sizeof(d), (uint64_t)NEEDED_MAX); i++) {
		if (binary_read(b, dynamic->offset + i * sizeof(d), &d, sizeof(d)) != sizeof(d) || d.d_tag == DT_NULL)
			break;
		found = thread_library_needed(b, strings, &d);
		if (found != LIBRARY_UNKNOWN)
			return found;
	}
	return thread_library_inside(b);
}

/* --- where in a thread --- */

/* The table of blocks lies behind the first block, and its first entry points there. */
static int glibc_table_in(const uint64_t *word, size_t n, uint64_t at)
{
	for (size_t i = GLIBC_BLOCK / 8; i < n; i++)
		if (word[i] == at + 8 * i - GLIBC_BLOCK)
			return (int)i;
	return -ENOENT;
}

/* Struct pthread ends at the thread pointer; memory before it may not be there. */
static int glibc_arm64_blocks(struct memory *m, uint64_t thread, int32_t *ret)
{
	uint64_t word[GLIBC_ARM64_PIECES * GLIBC_ARM64_PIECE / 8];
	size_t first = ARRAY_SIZE(word);
	uint64_t at = thread;
	int found;

	if (!thread || thread % 8)
		return -ENOTSUP;
	while (first && memory_read(m, at - GLIBC_ARM64_PIECE, &word[first - GLIBC_ARM64_PIECE / 8], GLIBC_ARM64_PIECE) == 0) {
		first -= GLIBC_ARM64_PIECE / 8;
		at -= GLIBC_ARM64_PIECE;
	}
	found = glibc_table_in(word + first, ARRAY_SIZE(word) - first, at);
	if (found < 0)
		return -ENOTSUP;
	*ret = (int32_t)(8 * found) - (int32_t)(thread - at);
	return 0;
}

/* --- chains --- */

static int thread_chain_musl(int32_t tsd, uint32_t key, struct otp_walk *to)
{
	if (key >= MUSL_KEYS)
		return -ENOTSUP;
	to->chain[to->nr_chain++] = tsd;
	to->chain[to->nr_chain++] = (int32_t)(8 * key);
	return 0;
}

static int thread_chain_glibc(int32_t blocks, uint32_t key, struct otp_walk *to)
{
	int32_t in_block = (int32_t)(16 * (key % GLIBC_BLOCK_KEYS) + 8);

	if (key >= GLIBC_KEYS)
		return -ENOTSUP;
	if (key < GLIBC_BLOCK_KEYS) {
		to->chain[to->nr_chain++] = blocks - GLIBC_BLOCK + in_block;
		return 0;
	}
	to->chain[to->nr_chain++] = blocks + (int32_t)(8 * (key / GLIBC_BLOCK_KEYS));
	to->chain[to->nr_chain++] = in_block;
	return 0;
}

int thread_key_chain(const struct runtime_file *file, struct memory *m, uint32_t key, struct otp_walk *to)
{
	bool arm64 = file->binary->machine == EM_AARCH64;
	int32_t blocks = GLIBC_X86_64_BLOCKS;

	to->start = OTP_WALK_TLS;
	to->base = 0;
	if (!arm64 && file->binary->machine != EM_X86_64)
		return -ENOTSUP;
	switch (thread_library(file->binary)) {
	case LIBRARY_GLIBC:
		return arm64 && glibc_arm64_blocks(m, file->thread, &blocks) ? -ENOTSUP : thread_chain_glibc(blocks, key, to);
	case LIBRARY_MUSL:
		return thread_chain_musl(arm64 ? MUSL_ARM64_TSD : MUSL_X86_64_TSD, key, to);
	default:
		return -ENOTSUP;
	}
}

int thread_block_chain(const struct runtime_file *file, uint64_t module, struct otp_walk *to)
{
	if (file->binary->machine != EM_X86_64 || thread_library(file->binary) != LIBRARY_GLIBC || !module ||
	    module >= GLIBC_MODULES)
		return -ENOTSUP;
	to->start = OTP_WALK_TLS;
	to->base = 0;
	to->chain[to->nr_chain++] = GLIBC_X86_64_BLOCKS_OF_TLS;
	to->chain[to->nr_chain++] = (int32_t)(16 * module);
	return 0;
}
