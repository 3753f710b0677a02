// SPDX-License-Identifier: Apache-2.0
/*
 * An assembly's file as it lies in memory: its PE headers, and where in memory a
 * part of it is (ECMA-335, II.25). A file is mapped as it is, or by its sections.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define SECTIONS_MAX   96
#define CLI_DIRECTORY  14
#define CLI_BYTES      72
#define METADATA_MAGIC 0x424a5342u

struct dotnet_section { char name[8]; uint32_t size, rva, raw_size, raw; uint8_t rest[16]; };

static int dotnet_pe_head(struct memory *m, uint64_t base, struct dotnet_pe *ret)
{
	uint32_t pe, magic;
	uint16_t nr, size, format;

	if (memory_u32(m, base + 0x3c, &pe) || memory_u32(m, base + pe, &magic) ||
	    memory_read(m, base + pe + 6, &nr, sizeof(nr)) || memory_read(m, base + pe + 20, &size, sizeof(size)) ||
	    memory_read(m, base + pe + 24, &format, sizeof(format)))
		return -EFAULT;
	if (magic != 0x4550 || nr > SECTIONS_MAX || (format != 0x10b && format != 0x20b))
		return -EBADMSG;
	*ret = (struct dotnet_pe){.memory = m, .base = base, .sections = base + pe + 24 + size, .nr_sections = nr,
				  .directories = base + pe + 24 + (format == 0x20b ? 112 : 96)};
	return 0;
}

int dotnet_pe_directory(const struct dotnet_pe *pe, uint32_t i, struct dotnet_directory *ret)
{
	return memory_read(pe->memory, pe->directories + sizeof(*ret) * i, ret, sizeof(*ret));
}

/* Of a file that is mapped as it is. */
static int dotnet_pe_raw(const struct dotnet_pe *pe, uint32_t rva, uint64_t *ret)
{
	struct dotnet_section s;

	for (uint32_t i = 0; i < pe->nr_sections; i++) {
		if (memory_read(pe->memory, pe->sections + sizeof(s) * i, &s, sizeof(s)))
			return -EFAULT;
		if (rva >= s.rva && rva - s.rva < s.raw_size) {
			*ret = pe->base + s.raw + (rva - s.rva);
			return 0;
		}
	}
	return -ENOENT;
}

int dotnet_pe_address(const struct dotnet_pe *pe, uint32_t rva, uint64_t *ret)
{
	*ret = pe->base + rva;
	return pe->raw ? dotnet_pe_raw(pe, rva, ret) : 0;
}

/* Whether the metadata is found so, by their first words. */
static bool dotnet_pe_has_metadata(struct dotnet_pe *pe, uint32_t cli, bool raw)
{
	uint32_t head[4], magic;
	uint64_t at;

	pe->raw = raw;
	return dotnet_pe_address(pe, cli, &at) == 0 && memory_read(pe->memory, at, head, sizeof(head)) == 0 &&
	       head[0] == CLI_BYTES && dotnet_pe_address(pe, head[2], &pe->metadata) == 0 &&
	       memory_u32(pe->memory, pe->metadata, &magic) == 0 && magic == METADATA_MAGIC;
}

int dotnet_pe_open(struct memory *m, uint64_t base, struct dotnet_pe *ret)
{
	struct dotnet_directory cli;
	int err = dotnet_pe_head(m, base, ret);

	if (err)
		return err;
	if (dotnet_pe_directory(ret, CLI_DIRECTORY, &cli))
		return -EFAULT;
	return dotnet_pe_has_metadata(ret, cli.rva, false) || dotnet_pe_has_metadata(ret, cli.rva, true) ? 0 : -EBADMSG;
}
