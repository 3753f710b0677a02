// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_key.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/runtime.h"

#define GLIBC_FIRST_BLOCK 0x310 /* struct pthread: specific_1stblock (glibc 2.28 to 2.42) */
#define GLIBC_BLOCKS	  0x510 /* specific */
#define GLIBC_BLOCK_KEYS  32u	/* each has a sequence number, then the value */
#define GLIBC_KEYS	  1024u
#define MUSL_TSD	  0x80 /* struct pthread: tsd (musl 1.1.16 to 1.2.5) */
#define MUSL_KEYS	  128u
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

static int thread_chain_musl(uint32_t key, struct otp_walk *to)
{
	if (key >= MUSL_KEYS)
		return -ENOTSUP;
	to->chain[to->nr_chain++] = MUSL_TSD;
	to->chain[to->nr_chain++] = (int32_t)(8 * key);
	return 0;
}

static int thread_chain_glibc(uint32_t key, struct otp_walk *to)
{
	int32_t in_block = (int32_t)(16 * (key % GLIBC_BLOCK_KEYS) + 8);

	if (key >= GLIBC_KEYS)
		return -ENOTSUP;
	if (key < GLIBC_BLOCK_KEYS) {
		to->chain[to->nr_chain++] = GLIBC_FIRST_BLOCK + in_block;
		return 0;
	}
	to->chain[to->nr_chain++] = (int32_t)(GLIBC_BLOCKS + 8 * (key / GLIBC_BLOCK_KEYS));
	to->chain[to->nr_chain++] = in_block;
	return 0;
}

int thread_key_chain(struct binary *b, uint32_t key, struct otp_walk *to)
{
	to->start = OTP_WALK_TLS;
	to->base = 0;
	if (b->machine != EM_X86_64)
		return -ENOTSUP;
	switch (thread_library(b)) {
	case LIBRARY_GLIBC:
		return thread_chain_glibc(key, to);
	case LIBRARY_MUSL:
		return thread_chain_musl(key, to);
	default:
		return -ENOTSUP;
	}
}
