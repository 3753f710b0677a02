// SPDX-License-Identifier: Apache-2.0
/*
 * A Perl with threads finds its interpreter by a pthread key. Where a C library
 * keeps a thread's values is its own affair, and part of no interface; but glibc
 * and musl have not changed it in the years of the Perls known here.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/perl.h"

#define GLIBC_FIRST_BLOCK 0x310 /* struct pthread: specific_1stblock (glibc 2.28 to 2.42) */
#define GLIBC_BLOCKS	  0x510 /* specific */
#define GLIBC_BLOCK_KEYS  32u
#define GLIBC_KEYS	  1024u
#define MUSL_TSD	  0x80 /* struct pthread: tsd */
#define MUSL_KEYS	  128u
#define NEEDED_MAX	  512u

static bool perl_needs_musl(struct binary *b, const struct binary_section *strings, const Elf64_Dyn *d)
{
	static const char musl[] = "libc.musl-";
	char name[sizeof(musl)] = "";

	return d->d_tag == DT_NEEDED && d->d_un.d_val < strings->size &&
	       binary_read(b, strings->offset + d->d_un.d_val, name, sizeof(name) - 1) > 0 &&
	       (strcmp(name, musl) == 0 || strcmp(name, "libc.so") == 0);
}

static bool perl_is_musl(struct binary *b)
{
	const struct binary_section *dynamic = binary_section(b, ".dynamic"), *strings = binary_section(b, ".dynstr");
	Elf64_Dyn d;

	for (uint64_t i = 0; dynamic && strings && i < MIN(dynamic->size / sizeof(d), (uint64_t)NEEDED_MAX); i++)
		if (binary_read(b, dynamic->offset + i * sizeof(d), &d, sizeof(d)) != sizeof(d) || d.d_tag == DT_NULL)
			return false;
		else if (perl_needs_musl(b, strings, &d))
			return true;
	return false;
}

static int perl_chain_musl(uint32_t key, struct otp_walk *to)
{
	if (key >= MUSL_KEYS)
		return -ENOTSUP;
	to->chain[to->nr_chain++] = MUSL_TSD;
	to->chain[to->nr_chain++] = (int32_t)(8 * key);
	return 0;
}

/* Each key has 16 bytes: a sequence number, the value. */
static int perl_chain_glibc(uint32_t key, struct otp_walk *to)
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

int perl_thread_chain(struct binary *b, uint32_t key, struct otp_walk *to)
{
	to->start = OTP_WALK_TLS;
	to->base = 0;
	if (b->machine != EM_X86_64)
		return -ENOTSUP;
	return perl_is_musl(b) ? perl_chain_musl(key, to) : perl_chain_glibc(key, to);
}
