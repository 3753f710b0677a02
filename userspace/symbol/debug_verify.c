// SPDX-License-Identifier: Apache-2.0
#include "symbol/debug_verify.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/binary.h"

static void binary_putp(struct binary **b)
{
	if (*b)
		binary_put(*b);
}

static bool ends_before(const struct binary *b, uint64_t offset, uint64_t len)
{
	return offset > b->size || len > b->size - offset;
}

/* What is cut off is the end: the section table, mostly, or what it speaks of. */
static bool is_cut(struct binary *b)
{
	Elf64_Ehdr e;

	if (binary_read(b, 0, &e, sizeof(e)) != sizeof(e) || ends_before(b, e.e_shoff, (uint64_t)e.e_shnum * e.e_shentsize))
		return true;
	for (uint32_t i = 0; i < b->nr_sections; i++) {
		const struct binary_section *s = &b->sections[i];

		if (s->type != SHT_NOBITS && s->type != SHT_NULL && ends_before(b, s->offset, s->size))
			return true;
	}
	return !b->nr_sections;
}

static bool has_id(const struct binary *b, const char *id)
{
	char own[2 * BINARY_BUILD_ID_MAX + 1] = "";

	for (uint8_t i = 0; i < b->build_id_len; i++)
		snprintf(own + 2 * i, 3, "%02x", b->build_id[i]);
	return *own && !strcmp(own, id);
}

/* By type: what is compressed is renamed by some tools. */
static bool has_names(const struct binary *b)
{
	for (uint32_t i = 0; i < b->nr_sections; i++) {
		const struct binary_section *s = &b->sections[i];

		if (s->type == SHT_SYMTAB || (s->type == SHT_PROGBITS && s->size && strstr(s->name, "debug_info")))
			return true;
	}
	return false;
}

enum debug_verdict debug_verify_binary(struct binary *b, const char *id)
{
	if (!b->is_elf || !b->is_64)
		return DEBUG_IS_NO_ELF;
	if (is_cut(b))
		return DEBUG_IS_CUT;
	if (!has_id(b, id))
		return DEBUG_IS_ANOTHERS;
	return has_names(b) ? DEBUG_IS_GOOD : DEBUG_IS_EMPTY;
}

enum debug_verdict debug_verify(int fd, const char *id)
{
	_cleanup_(binary_putp) struct binary *b = NULL;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (own < 0 || binary_open(own, "[fetched]", &b) < 0)
		return DEBUG_IS_NO_ELF;
	return debug_verify_binary(b, id);
}
