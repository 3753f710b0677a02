// SPDX-License-Identifier: Apache-2.0
/*
 * Where in an image of code that was compiled before the debug information of a
 * function lies: a sparse array by the function's number, in trees of 16
 * (dotnet/runtime, src/coreclr/inc/readytorun.h, src/coreclr/vm/nativeformatreader.h,
 * readytoruninfo.cpp: GetDebugInfo).
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define CORE_HEADER    8  /* of a ReadyToRunCoreInfo; there: flags, number of sections, sections */
#define SECTIONS_MAX   64
#define SECTION_DEBUG  105
#define BLOCK	       16u

struct dotnet_part { uint32_t type; struct dotnet_directory at; };

/* A number of 1 to 5 bytes, by the last bits of the first one; *at: behind it. */
static int dotnet_r2r_number(struct memory *m, uint64_t *at, uint32_t *ret)
{
	uint8_t b[4];
	uint32_t more;

	if (memory_u8(m, *at, &b[0]))
		return -EFAULT;
	more = (uint32_t)__builtin_ctz(~(uint32_t)b[0]);
	if (more > 4)
		return -EBADMSG;
	if (more && memory_read(m, *at + 1, more == 4 ? b : b + 1, more))
		return -EFAULT;
	*at += 1 + more;
	*ret = b[0];
	for (uint32_t i = 1; i < (more == 4 ? 4 : more + 1); i++)
		*ret |= (uint32_t)b[i] << 8 * i;
	*ret >>= more == 4 ? 0 : more + 1;
	return 0;
}

static int dotnet_r2r_section(struct memory *m, uint64_t core, struct dotnet_directory *ret)
{
	struct dotnet_part part;
	uint32_t head[2];
	uint64_t at;

	if (memory_u64(m, core + CORE_HEADER, &at) || memory_read(m, at, head, sizeof(head)))
		return -EFAULT;
	at += sizeof(head);
	for (uint32_t i = 0; i < MIN(head[1], (uint32_t)SECTIONS_MAX); i++) {
		if (memory_read(m, at + sizeof(part) * i, &part, sizeof(part)))
			return -EFAULT;
		if (part.type != SECTION_DEBUG)
			continue;
		*ret = part.at;
		return 0;
	}
	return -ENOENT;
}

/* The root of the tree that has the index. */
static int dotnet_r2r_block(struct memory *m, uint64_t array, uint32_t index, uint64_t *ret)
{
	uint32_t head, width, offset = 0;

	if (dotnet_r2r_number(m, &array, &head))
		return -EFAULT;
	if (index >= head >> 2)
		return -ENOENT;
	width = 1u << MIN(head & 3, 2u);
	if (memory_read(m, array + (uint64_t)width * (index / BLOCK), &offset, width))
		return -EFAULT;
	*ret = array + offset;
	return 0;
}

/* A node has bits of which children it has, and how far the second one is; or neither, and which leaf alone it has. */
static int dotnet_r2r_leaf(struct memory *m, uint32_t index, uint64_t *at)
{
	for (uint32_t bit = BLOCK / 2; bit; bit /= 2) {
		uint64_t next = *at;
		uint32_t node;

		if (dotnet_r2r_number(m, &next, &node))
			return -EFAULT;
		if (index & bit && node & 2) {
			*at += node >> 2;
		} else if (!(index & bit) && node & 1) {
			*at = next;
		} else if (!(node & 3) && node >> 2 == index % BLOCK) {
			*at = next;
			return 0;
		} else {
			return -ENOENT;
		}
	}
	return 0;
}

uint64_t dotnet_r2r_debug(struct memory *m, uint64_t core, uint64_t base, uint32_t index)
{
	struct dotnet_directory section;
	uint64_t at, next;
	uint32_t back;

	if (dotnet_r2r_section(m, core, &section) || dotnet_r2r_block(m, base + section.rva, index, &at) ||
	    dotnet_r2r_leaf(m, index, &at))
		return 0;
	/* Functions that have the same share it: it lies so far back, or behind this number. */
	next = at;
	if (dotnet_r2r_number(m, &next, &back))
		return 0;
	return back ? at - back : next;
}
